//! Files that are read again and again: from the disk while programs leave no room for cache, from RAM once they do.

use units::{Bytes, Span};

use crate::guest::Guest;
use crate::host::machine::{Machine, VirtualDisk};
use crate::scenario::{Arm, ArmOutcomes, Claim, Scenario, percent, times};

pub(super) const SCENARIO: Scenario = Scenario {
    name: "read-cache",
    shows: "Files that fit in the page cache are read tens of times faster than under memory pressure.",
    article: "S0 exp. 3",
    time: Span::from_secs(35),
    machine: || Machine {
        ram: Bytes::from_mib(512),
        cpus: 2,
        nodes: 1,
        disks: vec![VirtualDisk {
            size: Bytes::from_mib(512),
            is_formatted: true,
            speed: Some(Bytes::from_mib(30)),
        }],
    },
    arms: &[Arm {
        name: "hogs",
        settings: &[],
        finds: &["page-cache-thrash"],
        may_find: &[
            "available-exhaustion",
            "cache-starved-floor",
            "no-swap-risk",
            "exec-pages-evicted",
            "kswapd-saturated",
            "direct-reclaim-stall",
        ],
    }],
    play,
    claims,
};

fn play(guest: &mut Guest) -> Result<(), String> {
    guest.mount("/dev/vda", "/disk")?;
    guest.phase("10 files of 12 MiB are written");
    guest
        .start(&["write", "/disk", "12M", "--files", "10"])?
        .wait();
    guest.drop_caches()?;
    guest.sleep(2.0);
    guest.phase("programs fill RAM but for some MiB");
    let free = guest.meminfo_bytes("MemFree");
    let hog_mib = (free / 1_048_576.0 - 60.0).max(64.0) / 6.0;
    let size = format!("{hog_mib:.0}M");
    let hogs: Result<Vec<_>, String> = (0..6)
        .map(|_| guest.start(&["hog", &size, "--touch", "300ms"]))
        .collect();
    let hogs = hogs?;
    guest.sleep(4.0);
    let refaults = guest.vmstat("workingset_refault_file");
    guest.phase("the files are read 4 times under pressure");
    let (mut pressed, mut bytes) = (Vec::new(), 0.0);
    guest
        .start(&["read", "/disk", "--passes", "4", "--for", "40s"])?
        .each(|line| {
            pressed.extend(line.first().copied());
            bytes += line.get(1).copied().unwrap_or_default();
        });
    let refaulted = (guest.vmstat("workingset_refault_file") - refaults) * 4096.0;
    guest.phase("the programs end; the files are read 4 times more");
    drop(hogs);
    let mut free = Vec::new();
    guest
        .start(&["read", "/disk", "--passes", "4"])?
        .each(|line| free.extend(line.first().copied()));
    guest.sleep(2.0);
    // The first pass warms the cache.
    let mean = |passes: &[f64]| match passes.get(1..) {
        Some(rest) if !rest.is_empty() => {
            #[allow(clippy::cast_precision_loss)] // three
            Some(rest.iter().sum::<f64>() / rest.len() as f64)
        }
        _ => None,
    };
    // A pass from the cache is short enough for a busy host to double it.
    let fastest = free.iter().copied().reduce(f64::min);
    let (Some(pressed), Some(free)) = (mean(&pressed), fastest) else {
        return Err("too few passes were read".to_owned());
    };
    guest.measured("pressed_s", pressed);
    guest.measured("free_s", free);
    guest.measured("refaulted_of_read", refaulted / bytes.max(1.0));
    Ok(())
}

fn claims(outcomes: &ArmOutcomes) -> Vec<Claim> {
    let measured = |name| outcomes.measured("hogs", name);
    let faster = measured("pressed_s")
        .zip(measured("free_s"))
        .map(|(pressed, free)| pressed / free);
    vec![
        Claim::at_least(
            "a pass from the cache against one under pressure",
            "faster",
            faster,
            20.0,
            times,
        ),
        Claim::at_least(
            "read again under pressure, of all that was read",
            "",
            measured("refaulted_of_read"),
            0.5,
            percent,
        ),
    ]
}
