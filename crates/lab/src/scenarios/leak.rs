//! A program that takes a little more memory every second. In a minute no rule can tell: growth needs a longer recording.

use timeline::signals::MEM_ANON;
use units::Span;

use crate::claim::{Claim, MeasuredArms, percent};
use crate::guest::{Guest, mib};
use crate::host::machine::Machine;
use crate::scenario::{Arm, Scenario, ScenarioFigure};
use crate::setting::ScenarioSetting;

pub(super) const SCENARIO: Scenario = Scenario {
    name: "leak",
    shows: "A program takes a little more memory every second and gives none back.",
    machine: || Machine::with_mib(768),
    time: Span::from_secs(50),
    settings: &[
        ScenarioSetting {
            name: "seconds",
            default: 40.0,
            range: (10.0, 3600.0),
            about: "how long it grows",
        },
        ScenarioSetting {
            name: "mib",
            default: 300.0,
            range: (16.0, 2000.0),
            about: "MiB that it takes in this time",
        },
    ],
    arms: &[Arm { name: "linear", settings: &[], finds: &[], may_find: &[] }],
    variants: &[&[("mib", 200.0)], &[("seconds", 60.0)]],
    play,
    claims,
    figures: &[ScenarioFigure::Chart("growth"), ScenarioFigure::Chart("where")],
    ..Scenario::DEFAULT
};

fn play(guest: &mut Guest) -> Result<(), String> {
    guest.record();
    guest.sleep(2.0);
    let before = mib(guest.host(MEM_ANON)?);
    let (size, seconds) = (guest.setting("mib")?, guest.setting("seconds")?);
    let (text, time) = (format!("{size:.0}M"), format!("{seconds:.0}s"));
    guest.phase(format!("a program takes {size:.0} MiB in {seconds:.0} s"));
    let hog = guest.start(&["hog", &text, "--fill", &time])?;
    guest.sleep(seconds / 2.0);
    guest.measured("grown_at_half", (mib(guest.host(MEM_ANON)?) - before) / size);
    guest.sleep(seconds / 2.0 + 1.0);
    guest.measured("grown", (mib(guest.host(MEM_ANON)?) - before) / size);
    drop(hog);
    Ok(())
}

fn claims(outcomes: &dyn MeasuredArms) -> Vec<Claim> {
    let of = |name| outcomes.measured("linear", name);
    vec![
        Claim::of("grown at half time", of("grown_at_half"), percent).between(0.3, 0.7),
        Claim::of("grown at the end", of("grown"), percent).between(0.8, 1.2),
    ]
}
