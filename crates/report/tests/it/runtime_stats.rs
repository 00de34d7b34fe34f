//! The answer about a runtime's own report: its contract, and that any number and any name can be drawn.

use proptest::prelude::*;
use report::Screen;
use report::model::runtime_stats::{
    JemallocBinEntry, JemallocEntry, NativeCategoryEntry, NativeMemoryEntry, ObjectPoolEntry,
    ObjectSpaceEntry, RUNTIME_STATS_SCHEMA, RuntimeStatsReport, ServerMemoryEntry, ServerPartEntry,
};
use report::model::schema_of;
use serde_json::Value;
use unicode_width::UnicodeWidthStr as _;
use units::{Bytes, Ratio, SignedBytes};

/// A report with this number in all places, and this name.
pub(crate) fn report(runtime: &'static str, n: u64, name: &str) -> RuntimeStatsReport {
    let ratio = Some(Ratio::new(n as f64 / 1000.0));
    let pool = ObjectPoolEntry {
        slot_size_bytes: Some(Bytes::new(n)),
        eden_pages: n,
        eden_slots: n,
        live_slots: None,
        slot_occupancy_ratio: ratio,
        free_bytes: Some(Bytes::new(n)),
    };
    let category = NativeCategoryEntry {
        name: name.to_owned(),
        meaning: None,
        reserved_bytes: Bytes::new(n),
        committed_bytes: Bytes::new(n),
        committed_ratio: ratio,
        committed_change_bytes: Some(SignedBytes::new(n.cast_signed())),
    };
    let bin = JemallocBinEntry {
        region_size_bytes: Bytes::new(n),
        slabs: n,
        regions: n,
        used_regions: n,
        occupancy_ratio: ratio,
        unused_bytes: Bytes::new(n),
    };
    RuntimeStatsReport {
        schema: RUNTIME_STATS_SCHEMA,
        runtime,
        version: Some(name.to_owned()),
        pid: Some(n),
        class: "full",
        is_concern: n > 3,
        headline: name.to_owned(),
        remarks: vec![name.to_owned()],
        evidence: vec![name.to_owned(); 2],
        not_counted: Vec::new(),
        advice: vec![name.to_owned()],
        rss_bytes: Some(Bytes::new(n)),
        malloc_free_bytes: None,
        ruby: (runtime == "ruby").then(|| ObjectSpaceEntry {
            size_bytes: Bytes::new(n),
            pools: vec![pool; 12],
            ..ObjectSpaceEntry::default()
        }),
        jvm: (runtime == "jvm").then(|| NativeMemoryEntry {
            committed_bytes: Bytes::new(n),
            committed_change_bytes: Some(SignedBytes::new(n.cast_signed())),
            categories: vec![category; 12],
            ..NativeMemoryEntry::default()
        }),
        jemalloc: (runtime == "jemalloc").then(|| JemallocEntry {
            allocated_bytes: Bytes::new(n),
            retained_bytes: Some(Bytes::new(n)),
            bins: vec![bin; 2],
            ..JemallocEntry::default()
        }),
        server: (runtime == "redis").then(|| ServerMemoryEntry {
            total_bytes: Bytes::new(n),
            parts: vec![
                ServerPartEntry { name: name.to_owned(), ..ServerPartEntry::default() };
                12
            ],
        }),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_number_and_name_is_drawn_within_the_width_and_is_valid_json(
        runtime in prop::sample::select(vec!["ruby", "jvm", "jemalloc", "redis"]),
        n in any::<u64>(),
        name in "\\PC{0,60}|[\u{0}-\u{ff}\u{202e}]{0,30}",
        columns in 40_usize..=120,
    ) {
        let report = report(runtime, n, &name);
        let text = report::text::runtime_stats(&report, &Screen::of_width(columns));
        prop_assert!(text.chars().all(|c| c == '\n' || !c.is_control()), "{text}");
        for line in text.lines() {
            prop_assert!(line.width() <= columns, "{columns}: {line}");
        }
        let schema: Value = serde_json::from_str(&schema_of::<RuntimeStatsReport>().unwrap()).unwrap();
        let value: Value = serde_json::from_str(&report::json(&report).unwrap()).unwrap();
        prop_assert!(jsonschema::is_valid(&schema, &value));
    }
}

#[test]
fn rows_beyond_the_bound_are_counted() {
    let text = report::text::runtime_stats(&report("jvm", 7, "Other"), &Screen::default());
    assert!(text.contains("3 more; --format json lists all."), "{text}");
}
