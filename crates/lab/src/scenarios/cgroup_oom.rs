//! A service that outgrows its limit on a host with memory to spare.

use timeline::signals::{CGROUP_EVENTS_OOM_KILL, MEM_AVAILABLE, MEM_TOTAL, OOM_KILLS};
use units::Span;

use crate::claim::{Claim, MeasuredArms, percent, plain};
use crate::guest::Guest;
use crate::host::machine::Machine;
use crate::scenario::{Arm, Scenario, ScenarioFigure};
use crate::setting::ScenarioSetting;

pub(super) const SCENARIO: Scenario = Scenario {
    name: "cgroup-oom",
    shows: "The kernel kills a service at its memory.max although the host has memory left.",
    machine: || Machine::with_mib(768),
    time: Span::from_secs(25),
    settings: &[ScenarioSetting {
        name: "limit_mib",
        default: 96.0,
        range: (48.0, 250.0),
        about: "memory.max of the cgroup in MiB",
    }],
    arms: &[Arm { name: "limit", settings: &[], finds: &["oom-cgroup"], may_find: &[] }],
    variants: &[&[("limit_mib", 64.0)], &[("limit_mib", 180.0)]],
    play,
    claims,
    figures: &[ScenarioFigure::Chart("cgroups"), ScenarioFigure::Chart("where")],
    ..Scenario::DEFAULT
};

fn play(guest: &mut Guest) -> Result<(), String> {
    let limit = format!("{:.0}M", guest.setting("limit_mib")?);
    let app = guest.cgroup("app", &[("memory.max", &limit)])?;
    guest.record();
    guest.sleep(3.0);
    for attempt in 1..=guest.times(2) {
        guest
            .phase(format!("a program grows to 300 MiB in a cgroup of {limit}, attempt {attempt}"));
        let hog = ["hog", "300M", "--fill", "6s", "--touch", "2s", "--for", "10s", "--join", &app];
        if guest.launch(&hog)?.wait()? {
            break;
        }
        // As long as a supervisor waits before it starts a service again.
        std::thread::sleep(std::time::Duration::from_secs(2));
    }
    // v1 does not count them for a cgroup; nothing else is killed here.
    let of_cgroup = guest.row("/app", CGROUP_EVENTS_OOM_KILL);
    let kills = of_cgroup.or_else(|_| guest.host(OOM_KILLS))?;
    guest.measured("kills", kills);
    let (available, total) = (guest.host(MEM_AVAILABLE)?, guest.host(MEM_TOTAL)?);
    guest.measured("available_share", available / total);
    Ok(())
}

fn claims(outcomes: &dyn MeasuredArms) -> Vec<Claim> {
    let of = |name| outcomes.measured("limit", name);
    vec![
        Claim::of("OOM kills in the cgroup", of("kills"), plain).between(2.0, 2.0),
        Claim::of("available on the host", of("available_share"), percent).at_least(0.3),
    ]
}
