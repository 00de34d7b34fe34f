//! A writer in a small cgroup, beside a host that could take much more: v2 throttles it, v1 lets it fill its limit.

use timeline::signals::{
    CGROUP_EVENTS_MAX, CGROUP_FILE_DIRTY, CGROUP_FILE_WRITEBACK, MEM_AVAILABLE, MEM_TOTAL,
    PSI_MEMORY_SOME,
};
use units::Span;

use crate::claim::{Claim, MeasuredArms, percent, plain};
use crate::guest::{Guest, mib};
use crate::host::machine::{Machine, VirtualDisk};
use crate::scenario::{Arm, Scenario, ScenarioFigure};
use crate::setting::ScenarioSetting;

/// The cgroup of the writer.
const WRITER: &str = "/writer";
/// From one reading of its dirty pages to the next.
const EVERY_S: f64 = 0.5;
/// Seconds of writing.
const FOR_S: u32 = 30;

pub(super) const SCENARIO: Scenario = Scenario {
    name: "cgroup-dirty",
    shows: "A writer in a small cgroup waits for the disk, although the host could take much more \
            unwritten data.",
    machine: || Machine::with_mib(1024).disk(VirtualDisk::ext4(1024).slow(10)),
    time: Span::from_secs(50),
    settings: &[
        ScenarioSetting::CGROUP_V1,
        ScenarioSetting {
            name: "limit_mib",
            default: 40.0,
            range: (24.0, 512.0),
            about: "the memory limit of the cgroup in MiB",
        },
        ScenarioSetting {
            name: "file_mib",
            default: 24.0,
            range: (8.0, 64.0),
            about: "MiB of a file; the writer writes one after the other",
        },
        ScenarioSetting {
            name: "background_mib",
            default: 0.0,
            range: (0.0, 512.0),
            about: "vm.dirty_background_bytes in MiB, the level from which the kernel writes; 0 \
                    for its ratio",
        },
        ScenarioSetting {
            name: "synced",
            default: 0.0,
            range: (0.0, 1.0),
            about: "whether the writer calls fdatasync after each MiB",
        },
    ],
    arms: &[
        Arm {
            name: "v1",
            settings: &[("cgroup_v1", 1.0)],
            finds: &["cgroup-dirty-reclaim"],
            may_find: &[],
        },
        Arm {
            name: "v1-early",
            settings: &[("cgroup_v1", 1.0), ("background_mib", 10.0)],
            finds: &["cgroup-dirty-reclaim"],
            may_find: &[],
        },
        Arm { name: "v2", settings: &[], finds: &["cgroup-dirty-throttle"], may_find: &[] },
    ],
    variants: &[&[("limit_mib", 32.0)], &[("limit_mib", 48.0)]],
    advised: &[("v1", SYNCED), ("v1-early", SYNCED), ("v2", SYNCED)],
    play,
    claims,
    figures: &[
        ScenarioFigure::Chart("cgroups"),
        ScenarioFigure::Chart("dirty"),
        ScenarioFigure::Chart("pressure"),
    ],
    ..Scenario::DEFAULT
};

/// A writer that fills nothing with what is unwritten.
const SYNCED: &[(&str, f64)] = &[("synced", 1.0)];

fn play(guest: &mut Guest) -> Result<(), String> {
    let limit = guest.setting("limit_mib")?;
    let group =
        guest.cgroup(WRITER.trim_start_matches('/'), &[("memory.max", &format!("{limit:.0}M"))])?;
    let background = guest.setting("background_mib")?;
    if background > 0.0 {
        guest.vm("dirty_background_bytes", background * 1_048_576.0)?;
    }
    guest.mount("/dev/vda", "/disk")?;
    guest.record();
    guest.sleep(3.0);
    guest.phase(format!("a program writes to a disk of 10 MiB/s, in a cgroup of {limit:.0} MiB"));
    let size = format!("{:.0}M", guest.setting("file_mib")?);
    let hits = guest.row(WRITER, CGROUP_EVENTS_MAX)?;
    let stalled = guest.host(PSI_MEMORY_SOME)?;
    let write = ["write", "/disk", &size, "--files", "200", "--join", &group];
    let synced: &[&str] = if guest.is_set("synced")? { &["--synced"] } else { &[] };
    let writer = guest.launch(&[&write, synced].concat())?;
    let mut unwritten = 0.0_f64;
    let mut available = f64::INFINITY;
    for _ in 0..FOR_S * 2 {
        guest.sleep(EVERY_S);
        let dirty = guest.row(WRITER, CGROUP_FILE_DIRTY)?;
        let dirty = dirty + guest.row(WRITER, CGROUP_FILE_WRITEBACK)?;
        unwritten = unwritten.max(mib(dirty));
        available = available.min(guest.host(MEM_AVAILABLE)?);
    }
    let hits = guest.row(WRITER, CGROUP_EVENTS_MAX)? - hits;
    let stalled = guest.host(PSI_MEMORY_SOME)? - stalled;
    drop(writer);
    guest.measured("stalled_share", stalled / (f64::from(FOR_S) * 1e6));
    guest.measured("unwritten_of_limit", unwritten / limit);
    guest.measured("limit_hits", hits);
    guest.measured("available_share", available / guest.host(MEM_TOTAL)?);
    Ok(())
}

fn claims(outcomes: &dyn MeasuredArms) -> Vec<Claim> {
    let of = |arm, name| outcomes.measured(arm, name);
    let unwritten = "most unwritten data, of the cgroup's limit";
    vec![
        Claim::of(&format!("{unwritten} (v1)"), of("v1", "unwritten_of_limit"), percent)
            .at_least(0.5),
        Claim::of(&format!("{unwritten} (v2)"), of("v2", "unwritten_of_limit"), percent)
            .at_most(0.4),
        Claim::of("tasks wait for memory (v1)", of("v1", "stalled_share"), percent).at_least(0.1),
        Claim::of(
            "the same where the kernel writes from 10 MiB on",
            of("v1-early", "stalled_share"),
            percent,
        )
        .at_most(of("v1", "stalled_share").map_or(1.0, |share| share * 0.9)),
        Claim::of("limit hits (v1)", of("v1", "limit_hits"), plain).at_least(100.0),
        Claim::of("available on the host, at least", of("v1", "available_share"), percent)
            .at_least(0.4),
    ]
}
