//! Any bytes as a source, through all rules to the printed report.

/// Reads, judges and prints; asserts what must hold of any input.
pub fn judged(data: &[u8]) {
    let Ok(source) = import::open_bytes("fuzz", data) else {
        return;
    };
    let diagnosis = diagnose::diagnose(&source.timeline, &source.facts);
    let report = report::Report::new(&source, &diagnosis);
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
