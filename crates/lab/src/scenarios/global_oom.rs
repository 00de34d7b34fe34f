//! A program that grows past RAM without swap.

use timeline::signals::{MEM_FREE, OOM_KILLS};
use units::Span;

use crate::claim::{Claim, MeasuredArms, plain, yes};
use crate::guest::{Guest, mib};
use crate::scenario::{Arm, Scenario, ScenarioFigure};
use crate::setting::ScenarioSetting;

pub(super) const SCENARIO: Scenario = Scenario {
    name: "global-oom",
    shows: "A program that grows past RAM without swap is killed by the kernel.",
    time: Span::from_secs(25),
    settings: &[
        ScenarioSetting {
            name: "fill_s",
            default: 8.0,
            range: (1.0, 300.0),
            about: "seconds in which the program grows",
        },
        ScenarioSetting {
            name: "grow_mib",
            default: 700.0,
            range: (100.0, 100_000.0),
            about: "MiB to which it would grow",
        },
    ],
    arms: &[
        Arm { name: "slowly", settings: &[], finds: &["oom-global"], may_find: MAY },
        Arm {
            name: "at-once",
            settings: &[("fill_s", 1.0)],
            finds: &["oom-global"],
            may_find: MAY,
        },
    ],
    variants: &[&[("grow_mib", 600.0)], &[("grow_mib", 1000.0)]],
    advised: &[("slowly", SMALLER), ("at-once", SMALLER)],
    play,
    claims,
    figures: &[ScenarioFigure::Chart("where"), ScenarioFigure::Chart("free")],
    ..Scenario::DEFAULT
};

/// A program that fits.
const SMALLER: &[(&str, f64)] = &[("grow_mib", 250.0)];

const MAY: &[&str] = &["available-exhaustion", "direct-reclaim-stall"];

fn play(guest: &mut Guest) -> Result<(), String> {
    guest.record();
    guest.sleep(3.0);
    let kills = guest.host(OOM_KILLS)?;
    let fill = format!("{:.0}s", guest.setting("fill_s")?);
    let size = format!("{:.0}M", guest.setting("grow_mib")?);
    guest.phase(format!("a program grows to {size} in {fill}"));
    let is_well = guest.start(&["hog", &size, "--fill", &fill, "--for", "30s"])?.wait()?;
    guest.sleep(3.0);
    let kills = guest.host(OOM_KILLS)? - kills;
    guest.measured("kills", kills);
    guest.measured("is_killed", f64::from(u8::from(!is_well)));
    guest.measured("free_mib", mib(guest.host(MEM_FREE)?));
    Ok(())
}

fn claims(outcomes: &dyn MeasuredArms) -> Vec<Claim> {
    let arms = outcomes.arms().into_iter();
    arms.flat_map(|arm| {
        let of = |name| outcomes.measured(arm, name);
        [
            Claim::of(&format!("OOM kills ({arm})"), of("kills"), plain).at_least(1.0),
            Claim::of(&format!("the program was killed ({arm})"), of("is_killed"), yes)
                .at_least(1.0),
        ]
    })
    .collect()
}
