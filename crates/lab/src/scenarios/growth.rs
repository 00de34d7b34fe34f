//! Two programs that grow: one forgets its memory, one cannot give it back.

use timeline::signals::MEM_ANON;
use units::Span;

use crate::guest::{Guest, mib};
use crate::host::machine::Machine;
use crate::outcome::{ArmOutcomes, Claim, percent};
use crate::scenario::{Arm, MeasuredFigure, Scenario, ScenarioFigure, ScenarioSetting};

pub(super) const LEAK: Scenario = Scenario {
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
    arms: &[Arm {
        name: "linear",
        settings: &[],
        finds: &[],
        may_find: &[],
    }],
    variants: &[&[("mib", 200.0)], &[("seconds", 60.0)]],
    play: leak,
    claims: claims_of_leak,
    figures: &[
        ScenarioFigure::Chart("growth"),
        ScenarioFigure::Chart("where"),
    ],
    ..Scenario::DEFAULT
};

fn leak(guest: &mut Guest) -> Result<(), String> {
    guest.record();
    guest.sleep(2.0);
    let before = mib(guest.host(MEM_ANON)?);
    let (size, seconds) = (guest.setting("mib")?, guest.setting("seconds")?);
    let (text, time) = (format!("{size:.0}M"), format!("{seconds:.0}s"));
    guest.phase(format!("a program takes {size:.0} MiB in {seconds:.0} s"));
    let hog = guest.start(&["hog", &text, "--fill", &time])?;
    guest.sleep(seconds / 2.0);
    guest.measured(
        "grown_at_half",
        (mib(guest.host(MEM_ANON)?) - before) / size,
    );
    guest.sleep(seconds / 2.0 + 1.0);
    guest.measured("grown", (mib(guest.host(MEM_ANON)?) - before) / size);
    drop(hog);
    Ok(())
}

fn claims_of_leak(outcomes: &ArmOutcomes) -> Vec<Claim> {
    let of = |name| outcomes.measured("linear", name);
    vec![
        Claim::of("grown at half time", of("grown_at_half"), percent).between(0.3, 0.7),
        Claim::of("grown at the end", of("grown"), percent).between(0.8, 1.2),
    ]
}

pub(super) const FRAGMENTATION: Scenario = Scenario {
    name: "fragmentation",
    shows: "A program frees most of its heap; the kernel gets little of it back, as some object lives in each page.",
    machine: || Machine::with_mib(768),
    time: Span::from_secs(30),
    settings: &[ScenarioSetting {
        name: "keep_one_of",
        default: 20.0,
        range: (1.0, 10_000.0),
        about: "one object of so many stays",
    }],
    arms: &[
        Arm {
            name: "scattered",
            settings: &[],
            finds: &[],
            may_find: &[],
        },
        Arm {
            name: "apart",
            settings: &[("keep_one_of", 10_000.0)],
            finds: &[],
            may_find: &[],
        },
    ],
    play: fragment,
    claims: claims_of_fragmentation,
    figures: &[
        ScenarioFigure::Measured(MeasuredFigure {
            title: "Live and resident memory in MiB",
            help: "The program frees most of what it allocated; what stays resident is held by the objects that live.",
            x: "step",
            unit: None,
            is_bars: true,
            curves: &["live", "resident"],
        }),
        ScenarioFigure::Chart("where"),
    ],
    ..Scenario::DEFAULT
};

fn fragment(guest: &mut Guest) -> Result<(), String> {
    guest.record();
    guest.sleep(2.0);
    let before = mib(guest.host(MEM_ANON)?);
    let keep = format!("{:.0}", guest.setting("keep_one_of")?);
    guest.phase(format!(
        "a program allocates 200 MiB and keeps one object of {keep}"
    ));
    let mut program = guest.start(&["fragment", "200M", "--keep-one-of", &keep])?;
    let mut live = [0.0; 2];
    let mut resident = [0.0; 2];
    for (step, name) in (0_u32..).zip(["allocated", "freed"]) {
        let line = program.next_line().ok_or("the program ended")?;
        guest.sleep(2.0);
        let at = step as usize;
        live[at] = line.first().copied().unwrap_or_default() / 1_048_576.0;
        resident[at] = mib(guest.host(MEM_ANON)?) - before;
        guest.phase(format!(
            "{name}: {:.0} MiB live, {:.0} MiB resident",
            live[at], resident[at]
        ));
        guest.point("live", f64::from(step), live[at]);
        guest.point("resident", f64::from(step), resident[at]);
    }
    guest.measured("live_of_resident", live[1] / resident[1].max(1.0));
    guest.measured("resident_left", resident[1] / resident[0].max(1.0));
    guest.sleep(8.0);
    Ok(())
}

fn claims_of_fragmentation(outcomes: &ArmOutcomes) -> Vec<Claim> {
    let of = |arm, name| outcomes.measured(arm, name);
    vec![
        Claim::of(
            "resident after the free, of before (one of 20 stays)",
            of("scattered", "resident_left"),
            percent,
        )
        .at_least(0.7),
        Claim::of(
            "live, of resident",
            of("scattered", "live_of_resident"),
            percent,
        )
        .at_most(0.2),
    ]
}
