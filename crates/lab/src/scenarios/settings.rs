//! Settings and limits that do harm, each with a load that suffers from it.

use units::Span;

use crate::guest::{Guest, Part};
use crate::host::machine::{Machine, VirtualDisk};
use crate::scenario::{Arm, Scenario, ScenarioFigure};
use crate::setting::ScenarioSetting;

use super::afterwards::{claims, measure_available};

/// Where the files of readers and writers are.
const DISK: &str = "/disk";
const SWAP: &str = "/dev/vdb";

/// A setting or a limit that does harm.
struct HarmfulSetting {
    /// What is played, in a sentence.
    phase: &'static str,
    /// Sets it.
    set: fn(&Guest) -> Result<(), String>,
    /// Begins what suffers from it.
    load: fn(&Guest) -> Result<Vec<Part>, String>,
}

/// As the setting `harmful` numbers them.
const HARMFUL: [HarmfulSetting; 6] = [
    HarmfulSetting {
        phase: "a fifth of RAM is kept free, and files are read that would fit otherwise",
        set: |guest| {
            guest.run(&["write", DISK, "8M", "--files", "70"])?;
            guest.remount("/dev/vda", DISK)?;
            guest.vm("min_free_kbytes", 160_000.0)
        },
        load: |guest| Ok(vec![guest.launch(&["read", DISK, "--for", "25s"])?]),
    },
    HarmfulSetting {
        phase: "60 % of memory may be dirty, before a disk of 10 MiB/s",
        set: |guest| {
            guest.vm("dirty_ratio", 60.0)?;
            guest.vm("dirty_background_ratio", 50.0)
        },
        load: |guest| {
            let files = guest.times(44).to_string();
            Ok(vec![guest.launch(&["write", DISK, "16M", "--files", &files])?])
        },
    },
    HarmfulSetting {
        phase: "kernel samepage merging searches 240 MiB of noise at full speed",
        set: |guest| {
            for (file, value) in
                [("pages_to_scan", "20000"), ("sleep_millisecs", "10"), ("run", "1")]
            {
                guest.write(&format!("/sys/kernel/mm/ksm/{file}"), value)?;
            }
            Ok(())
        },
        load: |guest| {
            let hog = ["hog", "240M", "--content", "random", "--mergeable", "--for", "25s"];
            Ok(vec![guest.launch(&hog)?])
        },
    },
    HarmfulSetting {
        phase: "programs take most of RAM, and there is no swap",
        set: |_| Ok(()),
        load: |guest| {
            let files = ["read", DISK, "--for", "25s"];
            Ok(vec![guest.launch(&["hog", "480M", "--for", "25s"])?, guest.launch(&files)?])
        },
    },
    HarmfulSetting {
        phase: "a cgroup keeps cold memory by memory.min, and the others are short of it",
        set: |guest| {
            guest.swap_on(SWAP)?;
            guest.run(&["write", DISK, "8M", "--files", "30"])?;
            guest.remount("/dev/vda", DISK)?;
            let kept = format!("{:.0}M", guest.setting("protected_mib")?);
            guest.cgroup("db", &[("memory.min", &kept)]).map(drop)
        },
        load: |guest| {
            let cold = ["hog", "460M", "--for", "40s", "--join", "/sys/fs/cgroup/db"];
            let warm = ["hog", "120M", "--touch", "1s", "--for", "25s"];
            Ok(vec![
                guest.launch(&cold)?,
                guest.launch(&warm)?,
                guest.launch(&["read", DISK, "--for", "25s"])?,
            ])
        },
    },
    HarmfulSetting {
        phase: "a cgroup comes to need 178 MiB, and its limits of memory and swap hold 180 MiB",
        set: |guest| {
            guest.swap_on(SWAP)?;
            guest.write("/sys/kernel/mm/transparent_hugepage/enabled", "never")?;
            let limits = [("memory.max", "80M"), ("memory.swap.max", "100M")];
            guest.cgroup("app", &limits).map(drop)
        },
        load: |guest| {
            let join = ["--for", "25s", "--join", "/sys/fs/cgroup/app"];
            let [large, small] = [["hog", "171M"].as_slice(), &["hog", "6M", "--fill", "10s"]]
                .map(|hog| [hog, &join].concat());
            Ok(vec![guest.launch(&large)?, guest.launch(&small)?])
        },
    },
];

/// What a shortage of memory brings along, as the load and the speed of the host have it.
const SHORT: &[&str] = &[
    "available-exhaustion",
    "cache-starved-floor",
    "direct-reclaim-stall",
    "kswapd-saturated",
    "page-cache-thrash",
    "storage-bound",
    "swap-slow-device",
    "swap-thrash",
    "thp-bloat",
];

pub(super) const SCENARIO: Scenario = Scenario {
    name: "settings",
    shows: "Settings and limits that do harm: each is found by its effect, with the setting that \
            makes it.",
    machine: || {
        Machine::with_mib(768)
            .disk(VirtualDisk::ext4(3000).slow(10))
            .disk(VirtualDisk::empty(768).slow(40))
    },
    time: Span::from_secs(45),
    settings: &[
        ScenarioSetting {
            name: "harmful",
            default: 0.0,
            range: (0.0, 5.0),
            about: "0: vm.min_free_kbytes, 1: vm.dirty_ratio, 2: KSM, 3: no swap, 4: \
                    memory.min, 5: memory.swap.max",
        },
        ScenarioSetting {
            name: "protected_mib",
            default: 450.0,
            range: (0.0, 500.0),
            about: "memory.min of a cgroup with cold memory, in MiB",
        },
    ],
    arms: &[
        Arm {
            name: "min-free",
            settings: &[("harmful", 0.0)],
            finds: &["min-free-too-large"],
            may_find: &["page-cache-thrash", "storage-bound"],
        },
        Arm {
            name: "dirty-limit",
            settings: &[("harmful", 1.0)],
            finds: &["dirty-limit-too-big"],
            // A writer faster than its disk waits, with any limit.
            may_find: &["dirty-throttle", "storage-bound"],
        },
        Arm { name: "ksm", settings: &[("harmful", 2.0)], finds: &["ksm-cost"], may_find: &[] },
        Arm {
            name: "no-swap",
            settings: &[("harmful", 3.0)],
            finds: &["no-swap-risk"],
            may_find: &["thp-bloat"],
        },
        Arm {
            name: "memory-min",
            settings: &[("harmful", 4.0)],
            finds: &["protection-imbalance"],
            may_find: SHORT,
        },
        Arm {
            name: "swap-max",
            settings: &[("harmful", 5.0)],
            finds: &["cgroup-swap-limited"],
            may_find: &[],
        },
    ],
    advised: &[("memory-min", &[("protected_mib", 40.0)])],
    play,
    claims,
    figures: &[
        ScenarioFigure::Chart("where"),
        ScenarioFigure::Chart("dirty"),
        ScenarioFigure::Chart("pressure"),
    ],
    ..Scenario::DEFAULT
};

fn play(guest: &mut Guest) -> Result<(), String> {
    let number = guest.count("harmful")? as usize;
    let harmful = HARMFUL.get(number).ok_or("there is no such setting")?;
    guest.mount("/dev/vda", DISK)?;
    (harmful.set)(guest)?;
    guest.record();
    guest.sleep(1.0);
    guest.phase(harmful.phase);
    let load = (harmful.load)(guest)?;
    guest.sleep(25.0);
    drop(load);
    measure_available(guest)
}
