//! A demonstration of a minute: `free`, swap and the OOM counter of a host are calm, while a service in a container stands still.

use chart::ChartUnit;
use timeline::signals::OOM_KILLS;
use units::Span;

use super::rereader;
use crate::claim::{Claim, MeasuredArms, plain};
use crate::guest::Guest;
use crate::host::machine::{Machine, VirtualDisk};
use crate::scenario::{Arm, MeasuredFigure, Scenario, ScenarioFigure};
use crate::setting::ScenarioSetting;

/// A container as Docker names it with the cgroupfs driver.
const CONTAINER: &str = "docker/5a5a5a5a9be14f05a9d7b3cbb8ad4ee2f0a1c3e5d7960b8a4c2e1f3d5b7a9c0e";

pub(super) const SCENARIO: Scenario = Scenario {
    name: "container-starved",
    shows: "A minute's demonstration: free, swap and the OOM counter of the host are calm, while \
            a service stands still, as its files do not fit below its container's limit.",
    machine: || Machine::with_mib(768).disk(VirtualDisk::ext4(256).slow(8)),
    time: Span::from_secs(20),
    settings: &[ScenarioSetting {
        name: "limit_mib",
        default: 24.0,
        range: (16.0, 300.0),
        about: "memory.max of the container in MiB; the service reads 40 MiB of files",
    }],
    arms: &[
        Arm { name: "starved", settings: &[], finds: &["cgroup-cache-starved"], may_find: &[] },
        Arm { name: "room", settings: &[("limit_mib", 96.0)], finds: &[], may_find: &[] },
    ],
    variants: &[&[("limit_mib", 20.0)], &[("limit_mib", 30.0)]],
    advised: &[("starved", &[("limit_mib", 96.0)])],
    play,
    claims,
    figures: &[
        ScenarioFigure::Measured(MeasuredFigure {
            title: "Time of each pass of the service over its files",
            help: "Below the limit every pass is read from the disk; with room for the files, from \
                   the page cache.",
            x: "pass",
            unit: Some(ChartUnit::Millis),
            is_bars: true,
            curves: &["passes"],
        }),
        ScenarioFigure::Chart("cgroups"),
        ScenarioFigure::Chart("where"),
    ],
    ..Scenario::DEFAULT
};

fn play(guest: &mut Guest) -> Result<(), String> {
    let limit = guest.setting("limit_mib")?;
    rereader::write_files(guest, "5")?;
    let group = guest.nested_cgroup(CONTAINER, &[("memory.max", &format!("{limit:.0}M"))])?;
    guest.record();
    guest.sleep(2.0);
    guest.phase(format!(
        "a service reads its 40 MiB of files; its container may have {limit:.0} MiB"
    ));
    let passes = rereader::read(guest, &group, "16s")?;
    for (number, seconds) in (1_u32..).zip(&passes) {
        guest.point("passes", f64::from(number), seconds * 1e3);
    }
    guest.measured("swap_mib", guest.swap_used_mib()?);
    guest.measured("kills", guest.host(OOM_KILLS)?);
    Ok(())
}

fn claims(outcomes: &dyn MeasuredArms) -> Vec<Claim> {
    let of = |name| outcomes.measured("starved", name);
    let mut claims = rereader::claims(outcomes);
    claims.extend([
        Claim::of("swap used, in MiB", of("swap_mib"), plain).at_most(0.0),
        Claim::of("OOM kills", of("kills"), plain).at_most(0.0),
    ]);
    claims
}
