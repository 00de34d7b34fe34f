//! A store that forks to save its data while it is written to: each page that is written is copied.

use timeline::signals::MEM_ANON;
use units::Span;

use crate::claim::{Claim, MeasuredArms, percent};
use crate::guest::{Guest, mib};
use crate::host::machine::Machine;
use crate::scenario::{Arm, Scenario, ScenarioFigure};
use crate::setting::ScenarioSetting;

pub(super) const SCENARIO: Scenario = Scenario {
    name: "fork-cow",
    shows: "A store that forks to save its data needs the written part of it twice while it saves.",
    machine: || Machine::with_mib(768),
    time: Span::from_secs(40),
    settings: &[
        ScenarioSetting {
            name: "data_mib",
            default: 300.0,
            range: (64.0, 2000.0),
            about: "MiB of data",
        },
        ScenarioSetting {
            name: "write_mib_s",
            default: 20.0,
            range: (0.0, 500.0),
            about: "MiB a second that are written to random pages",
        },
    ],
    arms: &[
        Arm {
            name: "written",
            settings: &[],
            finds: &["fork-cow-spike"],
            may_find: &["available-exhaustion"],
        },
        Arm { name: "only-read", settings: &[("write_mib_s", 0.0)], finds: &[], may_find: &[] },
    ],
    variants: &[&[("data_mib", 250.0)], &[("data_mib", 350.0)]],
    advised: &[("written", &[("write_mib_s", 5.0)])],
    hot: &[("written", ""), ("only-read", "")],
    play,
    claims,
    figures: &[ScenarioFigure::Chart("where")],
    ..Scenario::DEFAULT
};

fn play(guest: &mut Guest) -> Result<(), String> {
    // Since 5.8 a write splits a huge page and copies 4 KiB of it; with small pages the count is exact from the start.
    guest.write("/sys/kernel/mm/transparent_hugepage/enabled", "never")?;
    guest.record();
    guest.sleep(2.0);
    let size = format!("{:.0}M", guest.setting("data_mib")?);
    let write = format!("{:.0}M", guest.setting("write_mib_s")?);
    guest.phase(format!("a store of {size} forks, and is written to at {write} a second"));
    let mut store =
        guest.start(&["fork", &size, "--write", &write, "--save", "14s", "--for", "6s"])?;
    store.next_line().ok_or("the store could not be filled")?;
    let before = mib(guest.host(MEM_ANON)?);
    let mut highest = before;
    for _ in 0..44 {
        guest.sleep(0.5);
        highest = highest.max(mib(guest.host(MEM_ANON)?));
    }
    let after = mib(guest.host(MEM_ANON)?);
    let data = guest.setting("data_mib")?;
    guest.measured("copied_of_data", (highest - before) / data);
    guest.measured("left_of_data", (after - before) / data);
    store.wait()?;
    guest.sleep(2.0);
    Ok(())
}

fn claims(outcomes: &dyn MeasuredArms) -> Vec<Claim> {
    let of = |arm, name| outcomes.measured(arm, name);
    vec![
        Claim::of(
            "memory beside the data while it saves",
            of("written", "copied_of_data"),
            percent,
        )
        .at_least(0.25),
        Claim::of("left of it afterwards", of("written", "left_of_data"), percent).at_most(0.1),
        Claim::of("the same without writes", of("only-read", "copied_of_data"), percent)
            .at_most(0.1),
    ]
}
