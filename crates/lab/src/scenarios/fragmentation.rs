//! A program that frees most of its heap and keeps it resident. In a minute no rule can tell it from a program that needs it.

use timeline::signals::MEM_ANON;
use units::Span;

use crate::claim::{Claim, MeasuredArms, percent};
use crate::guest::{Guest, mib};
use crate::host::machine::Machine;
use crate::scenario::{Arm, MeasuredFigure, Scenario, ScenarioFigure};
use crate::setting::ScenarioSetting;

pub(super) const SCENARIO: Scenario = Scenario {
    name: "fragmentation",
    shows: "A program frees most of its heap; the kernel gets little of it back, as some object \
            lives in each page.",
    machine: || Machine::with_mib(768),
    time: Span::from_secs(30),
    settings: &[ScenarioSetting {
        name: "keep_one_of",
        default: 20.0,
        range: (1.0, 10_000.0),
        about: "keep one object in this many",
    }],
    arms: &[
        Arm { name: "scattered", settings: &[], finds: &[], may_find: &[] },
        Arm { name: "apart", settings: &[("keep_one_of", 10_000.0)], finds: &[], may_find: &[] },
    ],
    play,
    claims,
    figures: &[
        ScenarioFigure::Measured(MeasuredFigure {
            title: "Live and resident memory in MiB",
            help: "The program frees most of what it allocated; what stays resident is held by the \
                   objects that live.",
            x: "step",
            unit: None,
            is_bars: true,
            curves: &["live", "resident"],
        }),
        ScenarioFigure::Chart("where"),
    ],
    ..Scenario::DEFAULT
};

fn play(guest: &mut Guest) -> Result<(), String> {
    guest.record();
    guest.sleep(2.0);
    let before = mib(guest.host(MEM_ANON)?);
    let keep = format!("{:.0}", guest.setting("keep_one_of")?);
    guest.phase(format!("a program allocates 200 MiB and keeps one object of {keep}"));
    let mut program = guest.start(&["fragment", "200M", "--keep-one-of", &keep])?;
    let mut live = [0.0; 2];
    let mut resident = [0.0; 2];
    for (step, name) in (0_u32..).zip(["allocated", "freed"]) {
        let line = program.next_line().ok_or("the program ended")?;
        guest.sleep(2.0);
        let at = step as usize;
        live[at] = line.first().copied().unwrap_or_default() / 1_048_576.0;
        resident[at] = mib(guest.host(MEM_ANON)?) - before;
        guest.phase(format!("{name}: {:.0} MiB live, {:.0} MiB resident", live[at], resident[at]));
        guest.point("live", f64::from(step), live[at]);
        guest.point("resident", f64::from(step), resident[at]);
    }
    guest.measured("live_of_resident", live[1] / resident[1].max(1.0));
    guest.measured("resident_left", resident[1] / resident[0].max(1.0));
    guest.sleep(8.0);
    Ok(())
}

fn claims(outcomes: &dyn MeasuredArms) -> Vec<Claim> {
    let of = |arm, name| outcomes.measured(arm, name);
    vec![
        Claim::of(
            "resident after the free, of before (one of 20 stays)",
            of("scattered", "resident_left"),
            percent,
        )
        .at_least(0.7),
        Claim::of("live, of resident", of("scattered", "live_of_resident"), percent).at_most(0.2),
        Claim::of("the same with one of 10,000", of("apart", "live_of_resident"), percent)
            .at_most(0.05),
    ]
}
