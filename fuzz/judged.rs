//! Any bytes as a source, through all rules to the printed report.

#![allow(dead_code)] // each target uses a part

use timeline::Source;

/// Reads, judges and prints.
pub fn judged(data: &[u8]) {
    if let Ok(source) = import::open_bytes("fuzz", data) {
        judge(&source);
    }
}

/// Judges and prints; asserts what must hold of any input.
pub fn judge(source: &Source) {
    let diagnosis = diagnose::diagnose(&source.timeline, &source.facts);
    let report = report::Report::new(source, &diagnosis);
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
