//! Many processes that map one segment: each has page tables of its own.

use timeline::signals::{MEM_PAGE_TABLES, MEM_TOTAL};
use units::Span;

use crate::claim::{Claim, MeasuredArms, percent};
use crate::guest::{Guest, mib};
use crate::host::machine::Machine;
use crate::scenario::{Arm, Scenario, ScenarioFigure};
use crate::setting::ScenarioSetting;

pub(super) const SCENARIO: Scenario = Scenario {
    name: "page-tables",
    shows: "Hundreds of processes that map one shared segment take nearly as much again for page \
            tables.",
    machine: || Machine::with_mib(768),
    time: Span::from_secs(60),
    settings: &[
        ScenarioSetting {
            name: "processes",
            default: 350.0,
            range: (1.0, 2000.0),
            about: "processes that map it",
        },
        ScenarioSetting {
            name: "segment_mib",
            default: 192.0,
            range: (16.0, 1024.0),
            about: "MiB of the segment",
        },
        ScenarioSetting {
            name: "huge",
            default: 0.0,
            range: (0.0, 1.0),
            about: "whether the segment has huge pages",
        },
    ],
    arms: &[
        Arm {
            name: "many",
            settings: &[],
            finds: &["page-tables-large"],
            may_find: &["shmem-growth", "available-exhaustion"],
        },
        Arm {
            name: "few",
            settings: &[("processes", 10.0)],
            finds: &[],
            may_find: &["shmem-growth"],
        },
    ],
    variants: &[&[("segment_mib", 160.0)], &[("segment_mib", 220.0)]],
    advised: &[("many", &[("huge", 1.0)])],
    play,
    claims,
    figures: &[ScenarioFigure::Chart("where")],
    ..Scenario::DEFAULT
};

/// The usual huge page of x86-64.
const HUGE_PAGE_MIB: f64 = 2.0;

fn play(guest: &mut Guest) -> Result<(), String> {
    let (processes, size) = (guest.setting("processes")?, guest.setting("segment_mib")?);
    let is_huge = guest.is_set("huge")?;
    if is_huge {
        guest.vm("nr_hugepages", (size / HUGE_PAGE_MIB).ceil())?;
    }
    guest.record();
    guest.sleep(2.0);
    guest.phase(format!("{processes:.0} processes map a segment of {size:.0} MiB"));
    let (count, text) = (format!("{processes:.0}"), format!("{size:.0}M"));
    let share = ["share", &text, "--processes", &count];
    let huge: &[&str] = if is_huge { &["--huge"] } else { &[] };
    let mut share = guest.start(&[&share, huge].concat())?;
    while let Some(line) = share.next_line() {
        if line.first() == Some(&processes) {
            break;
        }
    }
    // The last ones still read the segment.
    let mut tables = guest.host(MEM_PAGE_TABLES)?;
    loop {
        guest.sleep(2.0);
        let now = guest.host(MEM_PAGE_TABLES)?;
        if mib(now) < mib(tables) + 1.0 {
            break;
        }
        tables = now;
    }
    guest.sleep(10.0);
    guest.measured("of_segment", mib(tables) / size);
    guest.measured("of_ram", tables / guest.host(MEM_TOTAL)?);
    Ok(())
}

fn claims(outcomes: &dyn MeasuredArms) -> Vec<Claim> {
    let of = |arm, name| outcomes.measured(arm, name);
    vec![
        Claim::of("page tables, of the segment (many)", of("many", "of_segment"), percent)
            .at_least(0.25),
        Claim::of("page tables, of RAM (many)", of("many", "of_ram"), percent).at_least(0.05),
        Claim::of("page tables, of RAM (few)", of("few", "of_ram"), percent).at_most(0.03),
    ]
}
