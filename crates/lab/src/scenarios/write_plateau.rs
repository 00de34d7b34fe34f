//! Buffered writes are fast until dirty pages reach their limit, and as slow as the disk from there.

use chart::ChartUnit;
use timeline::signals::{MEM_AVAILABLE, MEM_DIRTY, MEM_WRITEBACK, NR_DIRTY_THRESHOLD};
use units::Span;

use crate::claim::{Claim, MeasuredArms, percent, times};
use crate::guest::{Guest, mib, pages_mib};
use crate::host::machine::{Machine, VirtualDisk};
use crate::scenario::{Arm, MeasuredFigure, Scenario, ScenarioFigure};
use crate::setting::ScenarioSetting;

pub(super) const SCENARIO: Scenario = Scenario {
    name: "write-plateau",
    shows: "Writes run at the speed of RAM until dirty pages reach their limit, then at that of \
            the disk.",
    article: "S0 exp. 2",
    time: Span::from_secs(60),
    machine: || Machine::with_mib(1024).disk(VirtualDisk::ext4(2048).slow(8)),
    settings: &[
        ScenarioSetting {
            name: "dirty_ratio",
            default: 20.0,
            range: (1.0, 100.0),
            about: "vm.dirty_ratio; the background ratio is half of it",
        },
        ScenarioSetting {
            name: "dirty_mib",
            default: 0.0,
            range: (0.0, 1024.0),
            about: "vm.dirty_bytes in MiB instead of a ratio; 0 for the ratio",
        },
        ScenarioSetting {
            name: "files",
            default: 10.0,
            range: (8.0, 40.0),
            about: "files that are written, one after the other",
        },
        ScenarioSetting {
            name: "file_mib",
            default: 48.0,
            range: (8.0, 256.0),
            about: "MiB of a file",
        },
    ],
    arms: &[
        Arm {
            name: "dirty-ratio-20",
            settings: &[("dirty_ratio", 20.0)],
            finds: &["dirty-throttle"],
            may_find: &["dirty-limit-too-big"],
        },
        Arm {
            name: "dirty-bytes-32m",
            settings: &[("dirty_mib", 32.0)],
            finds: &["dirty-throttle"],
            may_find: &[],
        },
    ],
    variants: &[&[("file_mib", 64.0)], &[("files", 14.0), ("file_mib", 32.0)]],
    advised: &[("dirty-ratio-20", &[("files", 8.0), ("file_mib", 8.0)])],
    hot: &[("dirty-ratio-20", "dirty-throttle"), ("dirty-bytes-32m", "dirty-throttle")],
    play,
    claims,
    figures: &[
        ScenarioFigure::Measured(MeasuredFigure {
            title: "Speed of each file",
            help: "The first files go into RAM; once dirty pages are at their limit, each waits \
                   for the disk.",
            x: "file",
            unit: Some(ChartUnit::BytesPerSecond),
            is_bars: true,
            curves: &["speed"],
        }),
        ScenarioFigure::Chart("dirty"),
        ScenarioFigure::Chart("where"),
    ],
    ..Scenario::DEFAULT
};

fn play(guest: &mut Guest) -> Result<(), String> {
    let dirty_mib = guest.setting("dirty_mib")?;
    if dirty_mib > 0.0 {
        guest.vm("dirty_bytes", dirty_mib * 1_048_576.0)?;
        guest.vm("dirty_background_bytes", dirty_mib * 524_288.0)?;
    } else {
        let ratio = guest.setting("dirty_ratio")?;
        guest.vm("dirty_ratio", ratio)?;
        guest.vm("dirty_background_ratio", (ratio / 2.0).floor())?;
    }
    let (files, size) = (guest.setting("files")?, guest.setting("file_mib")?);
    guest.mount("/dev/vda", "/disk")?;
    guest.record();
    guest.sleep(3.0);
    let available_before = guest.host(MEM_AVAILABLE)?;
    guest.phase(format!("{files:.0} files of {size:.0} MiB are written to a disk of 8 MiB/s"));
    let (count, size) = (format!("{files:.0}"), format!("{size:.0}M"));
    let writer = guest.start(&["write", "/disk", &size, "--files", &count])?;
    let mut speeds = Vec::new();
    let (mut plateau, mut available) = (0.0_f64, available_before);
    let is_well = writer.each(|line| {
        let speed = line.first().copied().unwrap_or_default();
        speeds.push(speed);
        let number = speeds.len();
        let dirty = guest.host(MEM_DIRTY)? + guest.host(MEM_WRITEBACK)?;
        plateau = plateau.max(mib(dirty));
        available = available.min(guest.host(MEM_AVAILABLE)?);
        #[allow(clippy::cast_precision_loss)] // files
        guest.point("speed", number as f64, speed);
        let (speed, dirty) = (speed / 1_048_576.0, mib(dirty));
        guest.phase(format!(
            "file {number} of {files:.0} written at {speed:.0} MiB/s, {dirty:.0} MiB dirty"
        ));
        Ok(())
    })?;
    if !is_well || speeds.len() < 8 {
        return Err("the writer failed".to_owned());
    }
    let limit = pages_mib(guest.host(NR_DIRTY_THRESHOLD)?);
    // Writes come in bursts once they are throttled: the speed of the last files is that of all of them together.
    let last = speeds.get(speeds.len() - 5..).unwrap_or_default();
    let early = speeds.iter().take(2).copied().fold(0.0, f64::max);
    let late = 5.0 / last.iter().map(|speed| 1.0 / speed).sum::<f64>();
    guest.measured("early_bytes_per_second", early);
    guest.measured("late_bytes_per_second", late);
    guest.measured("dirty_of_limit", plateau / limit);
    guest.measured("available_left", available / available_before);
    Ok(())
}

fn claims(outcomes: &dyn MeasuredArms) -> Vec<Claim> {
    let (ratio, small) = ("dirty-ratio-20", "dirty-bytes-32m");
    let slowdown = |arm| outcomes.quotient(arm, "early_bytes_per_second", "late_bytes_per_second");
    let early = outcomes.ratio("early_bytes_per_second", ratio, small);
    let left = outcomes.measured(ratio, "available_left");
    let mut all = vec![
        Claim::of("slower once dirty pages are at their limit", slowdown(ratio), times)
            .article("28 ×")
            .at_least(10.0),
    ];
    all.extend([ratio, small].map(|arm| {
        let of_limit = outcomes.measured(arm, "dirty_of_limit");
        Claim::of(&format!("peak of dirty pages, of the limit ({arm})"), of_limit, percent)
            .article("at the limit")
            .between(0.7, 1.15)
    }));
    all.extend([
        Claim::of("lowest MemAvailable, of its level before", left, percent)
            .article("not affected")
            .at_least(0.75),
        Claim::of("first file, 20 % of RAM against 32 MiB", early, times).at_least(2.0),
    ]);
    all
}
