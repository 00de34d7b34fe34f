//! A machine that does nothing: nothing may be found.

use units::Span;

use crate::guest::Guest;
use crate::scenario::{Arm, Scenario};
use crate::setting::ScenarioSetting;

pub(super) const SCENARIO: Scenario = Scenario {
    name: "idle",
    shows: "Nothing happens, and nothing is found.",
    time: Span::from_secs(25),
    settings: &[ScenarioSetting {
        name: "seconds",
        default: 15.0,
        range: (5.0, 7200.0),
        about: "how long",
    }],
    arms: &[Arm { name: "idle", settings: &[], finds: &[], may_find: &[] }],
    variants: &[&[("seconds", 30.0)], &[("seconds", 60.0)]],
    hot: &[("idle", "")],
    play,
    ..Scenario::DEFAULT
};

fn play(guest: &mut Guest) -> Result<(), String> {
    guest.record();
    guest.phase("nothing happens");
    guest.sleep(guest.setting("seconds")?);
    Ok(())
}
