//! A service that reads its files again and again below a limit that they do not fit in, on a host with memory to spare.

use units::Span;

use super::rereader;
use crate::guest::Guest;
use crate::host::machine::{Machine, VirtualDisk};
use crate::scenario::{Arm, Scenario, ScenarioFigure};
use crate::setting::ScenarioSetting;

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
    hot: &[("starved", "memcg-max"), ("room", "")],
    play,
    claims: rereader::claims,
    figures: &[ScenarioFigure::Chart("cgroups"), ScenarioFigure::Chart("where")],
    ..Scenario::DEFAULT
};

fn play(guest: &mut Guest) -> Result<(), String> {
    let limit = guest.setting("limit_mib")?;
    rereader::write_files(guest, "10")?;
    let group = guest.cgroup("web", &[("memory.max", &format!("{limit:.0}M"))])?;
    guest.record();
    guest.sleep(2.0);
    guest.phase(format!("a service reads its 80 MiB of files; it may have {limit:.0} MiB"));
    rereader::read(guest, &group, "18s")?;
    Ok(())
}
