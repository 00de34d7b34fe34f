//! A program that uses a little of each huge page: the kernel gives it all of it.

use timeline::signals::{MEM_ANON, MEM_ANON_HUGE};
use units::Span;

use crate::claim::{Claim, MeasuredArms, times};
use crate::guest::{Guest, mib};
use crate::host::machine::Machine;
use crate::scenario::{Arm, Scenario};
use crate::setting::ScenarioSetting;

pub(super) const SCENARIO: Scenario = Scenario {
    name: "thp-bloat",
    shows: "With transparent huge pages on, a program that uses 64 KiB of every 2 MiB takes all of \
            it.",
    machine: || Machine::with_mib(1024),
    time: Span::from_secs(25),
    settings: &[
        ScenarioSetting {
            name: "is_always",
            default: 1.0,
            range: (0.0, 1.0),
            about: "whether transparent huge pages are on for all",
        },
        ScenarioSetting {
            name: "areas_mib",
            default: 600.0,
            range: (100.0, 3000.0),
            about: "MiB that are reserved",
        },
    ],
    arms: &[
        Arm {
            name: "always",
            settings: &[],
            finds: &["thp-bloat"],
            may_find: &["available-exhaustion"],
        },
        Arm { name: "never", settings: &[("is_always", 0.0)], finds: &[], may_find: &[] },
    ],
    variants: &[&[("areas_mib", 500.0)], &[("areas_mib", 700.0)]],
    play,
    claims,
    ..Scenario::DEFAULT
};

fn play(guest: &mut Guest) -> Result<(), String> {
    let mode = if guest.is_set("is_always")? { "always" } else { "never" };
    guest.write("/sys/kernel/mm/transparent_hugepage/enabled", mode)?;
    guest.record();
    guest.sleep(3.0);
    let anon = guest.host(MEM_ANON)?;
    let size = guest.setting("areas_mib")?;
    guest.phase(format!("a program uses 64 KiB of every 2 MiB, {size:.0} MiB in all"));
    let reserved = format!("{size:.0}M");
    let hog = guest.start(&["hog", &reserved, "--of-each-huge-page", "64K"])?;
    guest.sleep(14.0);
    let taken = mib(guest.host(MEM_ANON)? - anon);
    guest.measured("taken_of_used", taken / (size / 32.0));
    guest.measured("huge_mib", mib(guest.host(MEM_ANON_HUGE)?));
    drop(hog);
    Ok(())
}

fn claims(outcomes: &dyn MeasuredArms) -> Vec<Claim> {
    let of = |arm| outcomes.measured(arm, "taken_of_used");
    vec![
        Claim::of("memory taken, of what is used (always)", of("always"), times)
            .between(28.0, 34.0),
        Claim::of("memory taken, of what is used (never)", of("never"), times).at_most(2.0),
    ]
}
