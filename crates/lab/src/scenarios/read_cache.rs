//! Files that are read again and again: from the disk while programs leave no room for cache, from RAM once they do.

use chart::ChartUnit;
use timeline::signals::{MEM_FREE, REFAULT_FILE};
use units::Span;

use crate::claim::{Claim, MeasuredArms, percent, times};
use crate::guest::{Guest, mib, pages_mib};
use crate::host::machine::{Machine, VirtualDisk};
use crate::scenario::{Arm, MeasuredFigure, Scenario, ScenarioFigure};
use crate::setting::ScenarioSetting;

const MAY: &[&str] = &[
    "available-exhaustion",
    "cache-starved-floor",
    "exec-pages-evicted",
    "kswapd-saturated",
    "direct-reclaim-stall",
];

pub(super) const SCENARIO: Scenario = Scenario {
    name: "read-cache",
    shows: "Files that fit in the page cache are read tens of times faster than under memory \
            pressure.",
    article: "S0 exp. 3",
    time: Span::from_secs(75),
    machine: || Machine::with_mib(512).disk(VirtualDisk::ext4(512).slow(5)),
    settings: &[
        ScenarioSetting {
            name: "left_mib",
            default: 30.0,
            range: (10.0, 400.0),
            about: "MiB that the programs leave free",
        },
        ScenarioSetting {
            name: "hogs",
            default: 6.0,
            range: (0.0, 32.0),
            about: "programs that fill RAM; 0 for none",
        },
    ],
    arms: &[
        Arm { name: "hogs", settings: &[], finds: &["page-cache-thrash"], may_find: MAY },
        Arm { name: "no-hogs", settings: &[("hogs", 0.0)], finds: &[], may_find: &[] },
    ],
    variants: &[&[("left_mib", 40.0)], &[("left_mib", 50.0)]],
    advised: &[("hogs", &[("left_mib", 150.0)])],
    hot: &[("hogs", "file-read"), ("no-hogs", "")],
    play,
    claims,
    figures: &[
        ScenarioFigure::Measured(MeasuredFigure {
            title: "Time of each pass over the files",
            help: "With the programs every pass is read from the disk; once they have ended, from \
                   the page cache.",
            x: "pass",
            unit: Some(ChartUnit::Millis),
            is_bars: true,
            curves: &["beside programs", "alone"],
        }),
        ScenarioFigure::Chart("where"),
        ScenarioFigure::Chart("refaults"),
    ],
    ..Scenario::DEFAULT
};

/// Passes of each half.
const PASSES: &str = "4";

fn play(guest: &mut Guest) -> Result<(), String> {
    guest.mount("/dev/vda", "/disk")?;
    guest.record();
    guest.phase("5 files of 12 MiB are written");
    guest.run(&["write", "/disk", "12M", "--files", "5"])?;
    guest.sync();
    guest.sleep(2.0);
    let mut hogs = Vec::new();
    let count = guest.count("hogs")?;
    if count > 0 {
        // The files are still cached: the programs drive them out.
        guest.phase("programs fill RAM but for some MiB");
        let cached = guest.available_mib()?.max(mib(guest.host(MEM_FREE)?));
        let size = (cached - guest.setting("left_mib")?).max(64.0) / f64::from(count);
        let size = format!("{size:.0}M");
        for _ in 0..count {
            hogs.push(guest.start(&["hog", &size, "--touch", "300ms"])?);
        }
        guest.sleep(5.0);
    }
    let refaults = guest.host(REFAULT_FILE)?;
    let mut number = 0.0;
    guest.phase(format!("the files are read {PASSES} times beside them"));
    let (pressed, bytes) = passes(guest, "beside programs", &mut number)?;
    let refaulted = pages_mib(guest.host(REFAULT_FILE)? - refaults);
    guest.phase(format!("the programs end; the files are read {PASSES} times more"));
    drop(hogs);
    let (free, _) = passes(guest, "alone", &mut number)?;
    guest.sleep(2.0);
    // The first pass warms the cache.
    let warm = pressed.get(1..).unwrap_or_default();
    #[allow(clippy::cast_precision_loss)] // three
    let mean = warm.iter().sum::<f64>() / warm.len().max(1) as f64;
    // A pass from the cache is short enough for a busy host to double it.
    let fastest = free.iter().copied().reduce(f64::min);
    let (true, Some(free)) = (warm.len() >= 2, fastest) else {
        return Err("too few passes were read".to_owned());
    };
    guest.measured("pressed_s", mean);
    guest.measured("free_s", free);
    guest.measured("refaulted_of_read", refaulted / mib(bytes).max(1.0));
    Ok(())
}

/// Reads the files; gives the seconds of each pass, and all bytes.
fn passes(guest: &mut Guest, curve: &str, number: &mut f64) -> Result<(Vec<f64>, f64), String> {
    let (mut seconds, mut bytes) = (Vec::new(), 0.0);
    let reader = guest.start(&["read", "/disk", "--passes", PASSES, "--for", "60s"])?;
    reader.each(|line| {
        *number += 1.0;
        let (second, read) = (line.first().copied(), line.get(1).copied());
        seconds.extend(second);
        bytes += read.unwrap_or_default();
        guest.point(curve, *number, second.unwrap_or_default() * 1e3);
        Ok(())
    })?;
    Ok((seconds, bytes))
}

fn claims(outcomes: &dyn MeasuredArms) -> Vec<Claim> {
    let faster = |arm| outcomes.quotient(arm, "pressed_s", "free_s");
    let again = |arm| outcomes.measured(arm, "refaulted_of_read");
    vec![
        Claim::of("a pass from the cache against one beside programs", faster("hogs"), times)
            .article("70 ×")
            .at_least(20.0),
        Claim::of("read again beside programs, of all that was read", again("hogs"), percent)
            .at_least(0.5),
        Claim::of("the same without programs", faster("no-hogs"), times).at_most(5.0),
        Claim::of("read again without programs", again("no-hogs"), percent).at_most(0.05),
    ]
}
