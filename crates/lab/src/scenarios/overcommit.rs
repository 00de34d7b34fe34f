//! Strict overcommit: an allocation fails while most of RAM is free.

use timeline::signals::{COMMIT_LIMIT, COMMITTED_AS, MEM_AVAILABLE, MEM_TOTAL};
use units::Span;

use crate::claim::{Claim, MeasuredArms, percent, yes};
use crate::guest::Guest;
use crate::host::machine::Machine;
use crate::scenario::{Arm, Scenario, ScenarioFigure};
use crate::setting::ScenarioSetting;

pub(super) const SCENARIO: Scenario = Scenario {
    name: "overcommit",
    shows: "With vm.overcommit_memory at 2 an allocation fails although most of RAM is free.",
    machine: || Machine::with_mib(768),
    time: Span::from_secs(25),
    settings: &[
        ScenarioSetting {
            name: "mode",
            default: 2.0,
            range: (0.0, 2.0),
            about: "vm.overcommit_memory",
        },
        ScenarioSetting {
            name: "hog_mib",
            default: 64.0,
            range: (16.0, 500.0),
            about: "MiB that a program reserves at first; later ones a quarter, then an eighth",
        },
    ],
    arms: &[
        Arm { name: "mode-2", settings: &[], finds: &["overcommit-limit"], may_find: &[] },
        Arm { name: "mode-0", settings: &[("mode", 0.0)], finds: &[], may_find: &[] },
    ],
    variants: &[&[("hog_mib", 48.0)], &[("hog_mib", 96.0)]],
    revision: 2,
    play,
    claims,
    figures: &[ScenarioFigure::Chart("where")],
    ..Scenario::DEFAULT
};

fn play(guest: &mut Guest) -> Result<(), String> {
    // A huge page would be used whole.
    guest.write("/sys/kernel/mm/transparent_hugepage/enabled", "never")?;
    guest.vm("overcommit_memory", guest.setting("mode")?)?;
    guest.record();
    guest.sleep(2.0);
    guest.phase("programs reserve memory, and use little of it");
    let mut hogs = Vec::new();
    let mut failed = false;
    // Large programs, then smaller ones: the limit is nearly reached. At the limit itself nothing could be started.
    let size = guest.setting("hog_mib")?;
    for size in [size, size / 4.0, size / 8.0] {
        let size = format!("{size:.0}M");
        for _ in 0..12 {
            // The fork may be refused, or the program's own reservation.
            let hog = guest.start(&["hog", &size, "--committed", "--of-each-huge-page", "64K"]);
            match hog.map(|mut hog| (hog.next_line(), hog)) {
                Ok((Some(_), hog)) => hogs.push(hog),
                Ok((None, _)) | Err(_) => {
                    failed = true;
                    break;
                }
            }
        }
    }
    guest.sleep(12.0);
    let (committed, limit) = (guest.host(COMMITTED_AS)?, guest.host(COMMIT_LIMIT)?);
    guest.measured("committed_of_limit", committed / limit);
    guest.measured("is_refused", f64::from(u8::from(failed)));
    let (available, total) = (guest.host(MEM_AVAILABLE)?, guest.host(MEM_TOTAL)?);
    guest.measured("available_share", available / total);
    drop(hogs);
    Ok(())
}

fn claims(outcomes: &dyn MeasuredArms) -> Vec<Claim> {
    let of = |arm, name| outcomes.measured(arm, name);
    vec![
        Claim::of("an allocation is refused (mode 2)", of("mode-2", "is_refused"), yes)
            .at_least(1.0),
        Claim::of("committed, of the limit (mode 2)", of("mode-2", "committed_of_limit"), percent)
            .at_least(0.8),
        Claim::of("available meanwhile (mode 2)", of("mode-2", "available_share"), percent)
            .at_least(0.5),
        Claim::of("an allocation is refused (mode 0)", of("mode-0", "is_refused"), yes)
            .at_most(0.0),
        Claim::of("committed, of the limit (mode 0)", of("mode-0", "committed_of_limit"), percent)
            .at_least(1.2),
    ]
}
