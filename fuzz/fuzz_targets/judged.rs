//! Any bytes as a source, through all rules to the printed report.

/// Reads, judges and prints; asserts what must hold of any input.
pub fn judged(kind: report::SourceKind, data: &[u8]) {
    let Ok(opened) = import::open_bytes("fuzz", data) else {
        return;
    };
    let diagnosis = diagnose::diagnose(&opened.timeline, &opened.facts);
    let info = report::SourceInfo {
        kind,
        name: opened.name,
        problems: opened.problems,
        lines_skipped: opened.lines_skipped,
        thinned_to: opened.thinned_to,
        cut_at: opened.cut_at,
        ..report::SourceInfo::live()
    };
    let report = report::Report::new(&diagnosis, &opened.timeline, &opened.facts, &info);
    let text = report::text::check(&report, &report::Screen::default());
    assert!(!text.contains('\u{1b}'));
    // Disjoint terms and the remainder are MemTotal, whatever the numbers.
    if let Ok(accounting) = &diagnosis.accounting {
        let terms: i128 = accounting.terms.iter().map(|t| i128::from(t.bytes.get())).sum();
        assert_eq!(
            terms + i128::from(accounting.unaccounted_bytes),
            i128::from(accounting.total.get())
        );
    }
}
