//! Any bytes as pasted text, through all rules to the printed report.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Ok(opened) = import::open_bytes("fuzz", data) else {
        return;
    };
    let diagnosis = diagnose::diagnose(&opened.timeline, &opened.facts);
    let info = report::SourceInfo {
        kind: report::SourceKind::Text,
        name: opened.name,
        problems: opened.problems,
        inputs: Vec::new(),
        lines_skipped: opened.lines_skipped,
    };
    let report = report::Report::new(&diagnosis, &opened.timeline, &opened.facts, &info);
    let text = report::text::check(&report, &report::Screen::default());
    assert!(!text.contains('\u{1b}'));
});
