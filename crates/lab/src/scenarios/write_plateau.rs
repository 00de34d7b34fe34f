//! Buffered writes are fast until dirty pages reach their limit, and as slow as the disk from there.

use units::{Bytes, Span};

use crate::guest::Guest;
use crate::host::machine::{Machine, VirtualDisk};
use crate::scenario::{Arm, ArmOutcomes, Claim, Scenario, percent, times};

/// Files of a run, and their size.
const FILES: u32 = 10;
const FILE: &str = "48M";

pub(super) const SCENARIO: Scenario = Scenario {
    name: "write-plateau",
    shows: "Writes run at the speed of RAM until dirty pages reach their limit, then at that of the disk.",
    article: "S0 exp. 2",
    time: Span::from_secs(40),
    machine: || Machine {
        ram: Bytes::from_mib(1024),
        cpus: 2,
        nodes: 1,
        disks: vec![VirtualDisk {
            size: Bytes::from_gib(2),
            is_formatted: true,
            speed: Some(Bytes::from_mib(8)),
        }],
    },
    arms: &[
        Arm {
            name: "dirty-ratio-20",
            settings: &[("dirty_ratio", "20"), ("dirty_background_ratio", "10")],
            finds: &["dirty-throttle"],
            may_find: &[],
        },
        Arm {
            name: "dirty-bytes-32m",
            settings: &[
                ("dirty_bytes", "33554432"),
                ("dirty_background_bytes", "16777216"),
            ],
            finds: &["dirty-throttle"],
            may_find: &[],
        },
    ],
    play,
    claims,
};

fn play(guest: &mut Guest) -> Result<(), String> {
    for name in [
        "dirty_ratio",
        "dirty_background_ratio",
        "dirty_bytes",
        "dirty_background_bytes",
    ] {
        if let Some(value) = guest.number(name) {
            guest.write(&format!("/proc/sys/vm/{name}"), &format!("{value:.0}"))?;
        }
    }
    guest.mount("/dev/vda", "/disk")?;
    guest.sleep(3.0);
    let available_before = guest.meminfo_bytes("MemAvailable");
    guest.phase(format!(
        "{FILES} files of {FILE} are written to a disk of 8 MiB/s"
    ));
    let writer = guest.start(&["write", "/disk", FILE, "--files", &FILES.to_string()])?;
    let mut speeds = Vec::new();
    let mut plateau: f64 = 0.0;
    let (mut number, mut available): (u32, f64) = (0, available_before);
    let is_well = writer.each(|line| {
        number += 1;
        let dirty = guest.meminfo_bytes("Dirty") + guest.meminfo_bytes("Writeback");
        plateau = plateau.max(dirty);
        available = available.min(guest.meminfo_bytes("MemAvailable"));
        speeds.extend(line.first().copied());
        guest.phase(format!(
            "file {number} of {FILES} written at {:.0} MiB/s, {:.0} MiB dirty",
            line.first().copied().unwrap_or_default() / 1_048_576.0,
            dirty / 1_048_576.0
        ));
    });
    if !is_well || speeds.len() < 8 {
        return Err("the writer failed".to_owned());
    }
    let limit = guest.vmstat("nr_dirty_threshold") * 4096.0;
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

fn claims(outcomes: &ArmOutcomes) -> Vec<Claim> {
    let arm = "dirty-ratio-20";
    let measured = |name| outcomes.measured(arm, name);
    let slowdown = measured("early_bytes_per_second")
        .zip(measured("late_bytes_per_second"))
        .map(|(early, late)| early / late);
    let small = outcomes
        .measured("dirty-bytes-32m", "early_bytes_per_second")
        .zip(measured("early_bytes_per_second"))
        .map(|(small, large)| large / small);
    vec![
        Claim::at_least(
            "slower once dirty pages are at their limit",
            "28 ×",
            slowdown,
            10.0,
            times,
        ),
        Claim::between(
            "dirty pages, of vm.nr_dirty_threshold",
            "the limit",
            measured("dirty_of_limit"),
            (0.8, 1.1),
            percent,
        ),
        Claim::at_least(
            "MemAvailable, of that before",
            "not affected",
            measured("available_left"),
            0.75,
            percent,
        ),
        Claim::at_least(
            "first file, 20 % of RAM against 32 MiB",
            "",
            small,
            2.0,
            times,
        ),
    ]
}
