//! A service that reads its files again and again below a limit that they do not fit in, on a host with memory to spare.

use timeline::signals::{MEM_AVAILABLE, MEM_TOTAL};
use units::Span;

use crate::claim::{Claim, MeasuredArms, percent, times};
use crate::guest::Guest;
use crate::host::machine::{Machine, VirtualDisk};
use crate::scenario::{Arm, Scenario, ScenarioFigure};
use crate::setting::ScenarioSetting;

const DISK: &str = "/disk";

pub(super) const SCENARIO: Scenario = Scenario {
    name: "cgroup-starved",
    shows: "A service reads all its files from the disk again and again, as they do not fit below \
            its limit; the host has memory to spare.",
    machine: || Machine::with_mib(768).disk(VirtualDisk::ext4(256).slow(20)),
    time: Span::from_secs(25),
    settings: &[
        ScenarioSetting::CGROUP_V1,
        ScenarioSetting {
            name: "limit_mib",
            default: 40.0,
            range: (16.0, 300.0),
            about: "the limit of the service in MiB; it reads 80 MiB of files",
        },
    ],
    arms: &[
        Arm { name: "starved", settings: &[], finds: &["cgroup-cache-starved"], may_find: &[] },
        Arm { name: "room", settings: &[("limit_mib", 160.0)], finds: &[], may_find: &[] },
    ],
    variants: &[&[("limit_mib", 30.0)], &[("limit_mib", 60.0)]],
    play,
    claims,
    figures: &[ScenarioFigure::Chart("cgroups"), ScenarioFigure::Chart("where")],
    ..Scenario::DEFAULT
};

fn play(guest: &mut Guest) -> Result<(), String> {
    let limit = guest.setting("limit_mib")?;
    guest.mount("/dev/vda", DISK)?;
    guest.run(&["write", DISK, "8M", "--files", "10"])?;
    // Nothing of it stays in the page cache: it would be the root's.
    guest.remount("/dev/vda", DISK)?;
    let group = guest.cgroup("web", &[("memory.max", &format!("{limit:.0}M"))])?;
    guest.record();
    guest.sleep(2.0);
    guest.phase(format!("a service reads its 80 MiB of files; it may have {limit:.0} MiB"));
    let reader = guest.start(&["read", DISK, "--for", "18s", "--join", &group])?;
    let mut passes = Vec::new();
    reader.each(|line| {
        passes.extend(line.first().copied());
        Ok(())
    })?;
    // The first pass fills the cache.
    let warm = passes.get(1..).unwrap_or_default();
    let fastest = warm.iter().copied().reduce(f64::min).ok_or("too few passes were read")?;
    guest.measured("pass_ms", fastest * 1e3);
    guest.measured("available", guest.host(MEM_AVAILABLE)? / guest.host(MEM_TOTAL)?);
    Ok(())
}

fn claims(outcomes: &dyn MeasuredArms) -> Vec<Claim> {
    vec![
        Claim::of(
            "a pass below the limit against one with room",
            outcomes.ratio("pass_ms", "starved", "room"),
            times,
        )
        .at_least(5.0),
        Claim::of(
            "available on the host meanwhile",
            outcomes.measured("starved", "available"),
            percent,
        )
        .at_least(0.5),
    ]
}
