//! A control: swap holds what nobody needs.

use timeline::signals::PSWPIN;
use units::Span;

use crate::claim::{Claim, plain};
use crate::guest::Guest;
use crate::host::machine::{Machine, VirtualDisk};
use crate::scenario::{Arm, Scenario, ScenarioFigure};

pub(super) const SCENARIO: Scenario = Scenario {
    name: "swap-cold",
    shows: "Memory that nobody needs lies in swap, and stays there.",
    machine: || Machine::with_mib(512).disk(VirtualDisk::empty(512)),
    time: Span::from_secs(50),
    arms: &[Arm { name: "cold", settings: &[], finds: &["swap-cold-harmless"], may_find: &[] }],
    play,
    claims: |outcomes| {
        let of = |name| outcomes.measured("cold", name);
        vec![
            Claim::of("swap used in MiB", of("swap_mib"), plain).at_least(20.0),
            Claim::of("swap-ins while it is watched", of("swap_ins"), plain).at_most(500.0),
        ]
    },
    figures: &[ScenarioFigure::Chart("swap_used"), ScenarioFigure::Chart("where")],
    ..Scenario::DEFAULT
};

fn play(guest: &mut Guest) -> Result<(), String> {
    guest.swap_on("/dev/vda")?;
    guest.record();
    guest.sleep(2.0);
    guest.phase("a program takes 250 MiB and sleeps");
    let hog = guest.start(&["hog", "250M"])?;
    guest.sleep(4.0);
    guest.phase("another one needs most of RAM for some seconds, and pushes it out");
    guest.run(&["hog", "280M", "--fill", "4s", "--for", "5s"])?;
    guest.sleep(3.0);
    guest.phase("quiet");
    let before = guest.host(PSWPIN)?;
    guest.sleep(20.0);
    guest.measured("swap_mib", guest.swap_used_mib()?);
    guest.measured("swap_ins", guest.host(PSWPIN)? - before);
    drop(hog);
    Ok(())
}
