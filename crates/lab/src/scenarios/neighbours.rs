//! A mix of two or three pathologies that nobody designed: which ones, and when each begins, follows from a seed.

use units::{Bytes, Span};

use crate::case::CaseLabels;
use crate::guest::{Guest, Part};
use crate::host::machine::{Machine, VirtualDisk};
use crate::parts::Noise;
use crate::scenario::{Arm, Scenario, ScenarioFigure};
use crate::setting::{ScenarioSetting, ScenarioSettings};

pub(super) const SCENARIO: Scenario = Scenario {
    name: "neighbours",
    shows: "Two or three pathologies or harmless programs at once, chosen by a seed: each \
            pathology must be found, and nothing else.",
    machine: || {
        Machine::with_mib(1536)
            .disk(VirtualDisk::ext4(1024).slow(8))
            .disk(VirtualDisk::ext4(512).slow(40))
    },
    time: Span::from_secs(60),
    settings: &[ScenarioSetting {
        name: "seed",
        default: 1.0,
        range: (0.0, 1e9),
        about: "which mix; the same seed gives the same",
    }],
    arms: &[Arm { name: "mix", settings: &[], finds: &[], may_find: &[] }],
    expects: Some(expects),
    play,
    figures: &[
        ScenarioFigure::Chart("where"),
        ScenarioFigure::Chart("cgroups"),
        ScenarioFigure::Chart("pressure"),
        ScenarioFigure::Chart("dirty"),
    ],
    ..Scenario::DEFAULT
};

/// One of the mix.
struct Neighbour {
    name: &'static str,
    finds: &'static [&'static str],
    may_find: &'static [&'static str],
    start: fn(&mut Guest) -> Result<Vec<Part>, String>,
}

const ALL: &[Neighbour] = &[
    Neighbour {
        name: "a service outgrows memory.max",
        finds: &["oom-cgroup"],
        may_find: &[],
        start: |guest| {
            let group = guest.cgroup("limited", &[("memory.max", "64M")])?;
            let hog = ["hog", "200M", "--fill", "6s", "--for", "25s", "--join", &group];
            Ok(vec![guest.launch(&hog)?])
        },
    },
    Neighbour {
        name: "a service outgrows memory.high",
        finds: &["cgroup-high-throttle"],
        may_find: &[],
        start: |guest| {
            let group = guest.cgroup("throttled", &[("memory.high", "64M")])?;
            let hog = ["hog", "180M", "--fill", "3s", "--join", &group];
            Ok(vec![guest.launch(&hog)?])
        },
    },
    Neighbour {
        name: "a writer meets its limit of dirty pages",
        finds: &["dirty-throttle"],
        may_find: &[],
        start: |guest| {
            guest.vm("dirty_bytes", 48.0 * 1_048_576.0)?;
            guest.vm("dirty_background_bytes", 24.0 * 1_048_576.0)?;
            Ok(vec![guest.launch(&["write", "/disk", "48M", "--files", "8"])?])
        },
    },
    Neighbour {
        name: "files pile up in tmpfs",
        finds: &["shmem-growth"],
        may_find: &[],
        start: |guest| {
            guest.mount_tmpfs("/shm", Bytes::from_mib(600))?;
            Ok(vec![guest.launch(&["write", "/shm", "30M", "--files", "17"])?])
        },
    },
    Neighbour {
        name: "a pool of huge pages is not used",
        finds: &["hugetlb-unused"],
        may_find: &[],
        start: |guest| {
            guest.vm("nr_hugepages", 90.0)?;
            Ok(Vec::new())
        },
    },
    Neighbour {
        name: "a cgroup has no room for its files",
        finds: &["cgroup-cache-starved"],
        may_find: &[],
        start: |guest| {
            let group = guest.cgroup("starved", &[("memory.max", "48M")])?;
            let read = ["read", "/files", "--for", "40s", "--join", &group];
            Ok(vec![guest.launch(&read)?])
        },
    },
    Neighbour {
        name: "a store forks and is written to",
        finds: &["fork-cow-spike"],
        may_find: &[],
        start: |guest| {
            let store = ["fork", "300M", "--write", "30M", "--save", "16s", "--for", "5s"];
            Ok(vec![guest.launch(&store)?])
        },
    },
    Neighbour {
        name: "a program works and fits",
        finds: &[],
        may_find: &[],
        start: |guest| Ok(vec![guest.launch(&["hog", "150M", "--touch", "1s"])?]),
    },
    Neighbour {
        name: "a file is read again and again from the cache",
        finds: &[],
        may_find: &[],
        start: |guest| Ok(vec![guest.launch(&["read", "/files", "--for", "40s"])?]),
    },
];

/// The mix of a seed: each neighbour, and the seconds after which it begins.
fn mix(seed: f64) -> Vec<(&'static Neighbour, f64)> {
    #[allow(clippy::cast_sign_loss, clippy::cast_possible_truncation)] // its range is checked
    let mut noise = Noise::new(seed as u64);
    let mut left: Vec<&Neighbour> = ALL.iter().collect();
    let count = 2 + noise.below(2);
    let mut chosen = Vec::new();
    for _ in 0..count {
        let neighbour = left.swap_remove(noise.below(left.len()));
        #[allow(clippy::cast_precision_loss)] // seconds
        chosen.push((neighbour, noise.below(8) as f64));
    }
    chosen.sort_by(|(_, a), (_, b)| a.total_cmp(b));
    chosen
}

fn expects(settings: &ScenarioSettings) -> CaseLabels {
    let mix = mix(settings.get("seed").copied().unwrap_or_default());
    CaseLabels::exactly(
        mix.iter().flat_map(|(one, _)| one.finds),
        mix.iter().flat_map(|(one, _)| one.may_find),
    )
}

fn play(guest: &mut Guest) -> Result<(), String> {
    guest.write("/sys/kernel/mm/transparent_hugepage/enabled", "never")?;
    guest.mount("/dev/vda", "/disk")?;
    guest.mount("/dev/vdb", "/files")?;
    guest.run(&["write", "/files", "10M", "--files", "10"])?;
    // Cached pages belong to the cgroup that read them first: none may be there yet.
    guest.remount("/dev/vdb", "/files")?;
    guest.record();
    guest.sleep(2.0);
    let mut parts = Vec::new();
    let mut at = 0.0;
    for (neighbour, begins) in mix(guest.setting("seed")?) {
        guest.sleep(begins - at);
        at = begins;
        guest.phase(neighbour.name);
        parts.extend((neighbour.start)(guest)?);
    }
    guest.sleep(36.0 - at);
    drop(parts);
    guest.sleep(2.0);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_two_or_three_and_always_the_same() {
        let names = |seed| -> Vec<&str> { mix(seed).iter().map(|(one, _)| one.name).collect() };
        for seed in 0..100 {
            let names_of = names(f64::from(seed));
            assert!((2..=3).contains(&names_of.len()), "{names_of:?}");
            assert_eq!(names_of, names(f64::from(seed)));
        }
        assert_ne!(names(1.0), names(2.0));
    }
}
