//! Any bytes as a profile of another tool: what is read is judged, drawn and written, and what is written is read.
#![no_main]

use libfuzzer_sys::fuzz_target;
use profile::{MIN_SHARE, ProfilePart, ProfileReport, firefox, flame_graph, folded, read_profile};

const STARTS: [&[u8]; 6] = [
    b"",
    b"PERFILE2",
    b"# {\"unit\": \"us\", \"seconds\": 10}\n",
    b"db 12 [000] 1.5: cpu-clock:\n\tffffffff81000000 ",
    b"    33.01%  java  [kernel.kallsyms]  [k] _spin_lock_irq\n            |\n            ---",
    b"@us[\n    schedule+35\n",
];

fuzz_target!(|data: &[u8]| {
    for start in STARTS {
        let Ok(profile) = read_profile("fuzz", &[start, data].concat()) else {
            continue;
        };
        let report = ProfileReport::of(&profile);
        for row in &report.reasons {
            assert!(row.share.is_none_or(|share| (0.0..=1.001).contains(&share)), "{row:?}");
        }
        let _ = profile::profile_screen(&report, &report::Screen::of_width(40), MIN_SHARE);
        for part in [ProfilePart::Cpu, ProfilePart::Waits] {
            let _ = flame_graph(&profile, &report, part);
            let _ = firefox(&profile, part);
            let _ = read_profile("fuzz", folded(&profile, part).as_bytes());
        }
    }
});
