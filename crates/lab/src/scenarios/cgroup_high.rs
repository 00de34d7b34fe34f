//! A service that outgrows its memory.high: it is slowed down, not killed.

use timeline::signals::{CGROUP_CURRENT, CGROUP_EVENTS_HIGH, MEM_AVAILABLE, MEM_TOTAL};
use units::Span;

use crate::claim::{Claim, MeasuredArms, percent, plain};
use crate::guest::{Guest, mib};
use crate::host::machine::Machine;
use crate::scenario::{Arm, Scenario, ScenarioFigure};
use crate::setting::ScenarioSetting;

pub(super) const SCENARIO: Scenario = Scenario {
    name: "cgroup-high",
    shows: "A service above its memory.high is put to sleep again and again, although the host has \
            memory left.",
    machine: || Machine::with_mib(768),
    time: Span::from_secs(30),
    settings: &[
        ScenarioSetting {
            name: "high_mib",
            default: 80.0,
            range: (32.0, 250.0),
            about: "memory.high of the cgroup in MiB",
        },
        ScenarioSetting {
            name: "grow_mib",
            default: 200.0,
            range: (50.0, 240.0),
            about: "MiB to which the program grows",
        },
    ],
    arms: &[
        Arm { name: "throttled", settings: &[], finds: &["cgroup-high-throttle"], may_find: &[] },
        Arm { name: "fits", settings: &[("high_mib", 250.0)], finds: &[], may_find: &[] },
    ],
    variants: &[&[("grow_mib", 160.0)], &[("grow_mib", 240.0)]],
    hot: &[("throttled", "memcg-high"), ("fits", "")],
    play,
    claims,
    figures: &[ScenarioFigure::Chart("cgroups"), ScenarioFigure::Chart("pressure")],
    ..Scenario::DEFAULT
};

fn play(guest: &mut Guest) -> Result<(), String> {
    let high = guest.setting("high_mib")?;
    let grow = guest.setting("grow_mib")?;
    let high_text = format!("{high:.0}M");
    let app = guest.cgroup("app", &[("memory.high", &high_text)])?;
    guest.record();
    guest.sleep(3.0);
    guest.phase(format!(
        "a program grows to {grow:.0} MiB in a cgroup with memory.high {high:.0} MiB"
    ));
    let size = format!("{grow:.0}M");
    let hog = guest.start(&["hog", &size, "--fill", "4s", "--join", &app])?;
    guest.sleep(20.0);
    guest.measured("events_high", guest.row("/app", CGROUP_EVENTS_HIGH)?);
    guest.measured("grown_of_wanted", mib(guest.row("/app", CGROUP_CURRENT)?) / grow);
    let (available, total) = (guest.host(MEM_AVAILABLE)?, guest.host(MEM_TOTAL)?);
    guest.measured("available_share", available / total);
    drop(hog);
    Ok(())
}

fn claims(outcomes: &dyn MeasuredArms) -> Vec<Claim> {
    let of = |arm, name| outcomes.measured(arm, name);
    vec![
        Claim::of("memory.events high", of("throttled", "events_high"), plain).at_least(20.0),
        Claim::of("grown in 20 s, of what it wants", of("throttled", "grown_of_wanted"), percent)
            .at_most(0.9),
        Claim::of("the same with room", of("fits", "grown_of_wanted"), percent).at_least(0.95),
        Claim::of("available on the host", of("throttled", "available_share"), percent)
            .at_least(0.3),
    ]
}
