//! A control: much happens, and all of it fits.

use timeline::signals::REFAULT_FILE;
use units::Span;

use crate::claim::{Claim, MeasuredArms, plain};
use crate::guest::Guest;
use crate::host::machine::{Machine, VirtualDisk};
use crate::scenario::{Arm, Scenario, ScenarioFigure};
use crate::setting::ScenarioSetting;

pub(super) const SCENARIO: Scenario = Scenario {
    name: "busy",
    shows: "Programs start, work and end, files are read and written, and all of it fits: nothing \
            is found.",
    machine: || Machine::with_mib(1024).disk(VirtualDisk::ext4(900)),
    time: Span::from_secs(50),
    settings: &[ScenarioSetting {
        name: "seconds",
        default: 40.0,
        range: (10.0, 7200.0),
        about: "how long; 3600 for an hour",
    }],
    arms: &[Arm { name: "fits", settings: &[], finds: &[], may_find: &[] }],
    hot: &[("fits", "")],
    play,
    claims: |outcomes: &dyn MeasuredArms| {
        let again = outcomes.measured("fits", "refaults");
        vec![Claim::of("pages read again", again, plain).at_most(2000.0)]
    },
    figures: &[ScenarioFigure::Chart("where"), ScenarioFigure::Chart("cpu")],
    ..Scenario::DEFAULT
};

fn play(guest: &mut Guest) -> Result<(), String> {
    guest.mount("/dev/vda", "/disk")?;
    guest.record();
    let refaults = guest.host(REFAULT_FILE)?;
    let end =
        std::time::Instant::now() + std::time::Duration::from_secs_f64(guest.setting("seconds")?);
    let mut round = 0_u32;
    while std::time::Instant::now() < end {
        round += 1;
        guest.phase(format!("round {round}: a program works, files are written and read"));
        let hog = guest.start(&["hog", "200M", "--fill", "2s", "--touch", "2s", "--for", "8s"])?;
        let directory = format!("/disk/{}", round % 4);
        std::fs::create_dir_all(&directory).map_err(|error| error.to_string())?;
        guest.run(&["write", &directory, "8M", "--files", "4", "--synced"])?;
        guest.run(&["read", &directory, "--passes", "3"])?;
        hog.wait()?;
        guest.sleep(1.0);
    }
    guest.measured("refaults", guest.host(REFAULT_FILE)? - refaults);
    Ok(())
}
