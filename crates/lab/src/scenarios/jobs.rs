//! Jobs and programs that do harm while nothing is short: no setting of the host ends it, only a change of the job.

use units::Span;

use crate::guest::{Guest, Part};
use crate::host::machine::{Machine, VirtualDisk};
use crate::scenario::{Arm, Scenario, ScenarioFigure};
use crate::setting::ScenarioSetting;

use super::afterwards::{claims, measure_available};

/// Where the files of readers and writers are.
const DISK: &str = "/disk";
/// How long a load works, in seconds.
const SECONDS: f64 = 25.0;

/// A job, as the setting `job` numbers them.
struct HarmfulJob {
    /// What is played, in a sentence.
    phase: &'static str,
    play: fn(&Guest) -> Result<(), String>,
}

const JOBS: [HarmfulJob; 3] = [
    HarmfulJob {
        phase: "a job drops the page cache every 8 s, and a program reads its files again",
        play: drop_caches,
    },
    HarmfulJob { phase: "two writers call fsync after every 16 KiB", play: commit },
    HarmfulJob {
        phase: "a program locks memory, and the others are left with little",
        play: lock_memory,
    },
];

pub(super) const SCENARIO: Scenario = Scenario {
    name: "jobs",
    shows: "Jobs and programs that do harm while the settings of the host are right: each is found \
            by its effect.",
    machine: || {
        Machine::with_mib(768)
            .disk(VirtualDisk::ext4(1024).slow(20))
            .disk(VirtualDisk::empty(768).slow(40))
    },
    time: Span::from_secs(45),
    settings: &[
        ScenarioSetting {
            name: "job",
            default: 0.0,
            range: (0.0, 2.0),
            about: "0: caches are dropped, 1: many small commits, 2: locked memory",
        },
        ScenarioSetting {
            name: "is_mended",
            default: 0.0,
            range: (0.0, 1.0),
            about: "whether the job works as it should: no drops, no commits, nothing locked",
        },
    ],
    arms: &[
        Arm {
            name: "drop-caches",
            settings: &[("job", 0.0)],
            finds: &["caches-dropped"],
            may_find: &["storage-bound"],
        },
        Arm {
            name: "commits",
            settings: &[("job", 1.0)],
            finds: &["fsync-storm"],
            may_find: &["storage-bound"],
        },
        Arm {
            name: "locked",
            settings: &[("job", 2.0)],
            finds: &["locked-memory-large"],
            may_find: &[
                "available-exhaustion",
                "direct-reclaim-stall",
                "kswapd-saturated",
                "storage-bound",
                "swap-slow-device",
                "swap-thrash",
            ],
        },
    ],
    advised: &[("drop-caches", MENDED), ("commits", MENDED), ("locked", MENDED)],
    play,
    claims,
    figures: &[
        ScenarioFigure::Chart("where"),
        ScenarioFigure::Chart("disks"),
        ScenarioFigure::Chart("pressure"),
    ],
    ..Scenario::DEFAULT
};

const MENDED: &[(&str, f64)] = &[("is_mended", 1.0)];

fn play(guest: &mut Guest) -> Result<(), String> {
    let number = guest.count("job")? as usize;
    let job = JOBS.get(number).ok_or("there is no such job")?;
    guest.mount("/dev/vda", DISK)?;
    if number == 0 {
        guest.run(&["write", DISK, "8M", "--files", "15"])?;
        // Dirty pages are not dropped: they are written first.
        guest.remount("/dev/vda", DISK)?;
        guest.run(&["read", DISK, "--passes", "1"])?;
    }
    guest.swap_on("/dev/vdb")?;
    guest.record();
    guest.sleep(2.0);
    guest.phase(job.phase);
    (job.play)(guest)?;
    measure_available(guest)
}

fn drop_caches(guest: &Guest) -> Result<(), String> {
    const DROPS: u32 = 3;
    let reader = guest.launch(&["read", DISK, "--for", "25s"])?;
    for _ in 0..DROPS {
        guest.sleep(SECONDS / f64::from(DROPS));
        if !guest.is_set("is_mended")? {
            guest.write("/proc/sys/vm/drop_caches", "1")?;
        }
    }
    drop(reader);
    Ok(())
}

fn commit(guest: &Guest) -> Result<(), String> {
    let files = guest.times(4000).to_string();
    let how: &[&str] = if guest.is_set("is_mended")? { &[] } else { &["--synced"] };
    let writers = (0..2).map(|number| {
        let directory = format!("{DISK}/{number}");
        std::fs::create_dir_all(&directory).map_err(|error| format!("{directory}: {error}"))?;
        let write = ["write", directory.as_str(), "16K", "--files", files.as_str()];
        guest.launch(&[write.as_slice(), how].concat())
    });
    let writers = writers.collect::<Result<Vec<Part>, String>>()?;
    guest.sleep(SECONDS);
    drop(writers);
    Ok(())
}

fn lock_memory(guest: &Guest) -> Result<(), String> {
    let how: &[&str] = if guest.is_set("is_mended")? { &[] } else { &["--locked"] };
    let cold = guest.launch(&[&["hog", "430M", "--for", "30s"], how].concat())?;
    let warm = guest.launch(&["hog", "150M", "--touch", "1s", "--for", "25s"])?;
    guest.sleep(SECONDS);
    drop((cold, warm));
    Ok(())
}
