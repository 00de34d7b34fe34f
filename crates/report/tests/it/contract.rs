//! The JSON contract: reports validate against the published schema, whatever numbers a host gives.

use proptest::prelude::*;
use report::Report;
use serde_json::Value;
use timeline::{Entity, Facts, Sample, Source, SourceKind, Timeline, facts, signals};
use units::{Bytes, PageSize, Pages, Span, WallClock};

use crate::fixtures;

fn valid(report: &Report) -> Value {
    let schema: Value = serde_json::from_str(&report::json_schema().unwrap()).unwrap();
    let value: Value = serde_json::from_str(&report::json(report).unwrap()).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let faults: Vec<String> = validator
        .iter_errors(&value)
        .map(|fault| format!("{}: {fault}", fault.instance_path()))
        .collect();
    assert!(faults.is_empty(), "{faults:#?}");
    value
}

/// A host of 512 MiB with two nodes, sampled `n` times a second apart; every counter rises by `step`.
fn host(n: u64, step: u64, wall: Option<i64>) -> Source {
    let mut timeline = Timeline::default();
    for i in 0..n {
        let mut sample = Sample::at(Span::from_secs(i));
        sample.stamp.wall =
            wall.map(|start| WallClock::from_unix_nanos(start).plus(Span::from_secs(i)));
        sample.host.set(signals::MEM_TOTAL, Bytes::from_mib(512));
        sample.host.set(signals::MEM_FREE, Bytes::from_mib(100));
        sample.host.set(signals::MEM_AVAILABLE, Bytes::from_mib(100 - i.min(50)));
        sample.host.set(signals::SWAP_TOTAL, Bytes::from_mib(64));
        sample.host.set(signals::SWAP_FREE, Bytes::from_mib(14));
        let count = Pages::new(step.saturating_mul(i));
        sample.host.set(signals::PSWPIN, count);
        sample.host.set(signals::PSWPOUT, count);
        sample.host.set(signals::REFAULT_ANON, count);
        for (key, free) in [("0", 20), ("1", 80)] {
            let node = sample.table_mut(Entity::Node).entry(key);
            node.row.set(signals::NODE_TOTAL, Bytes::from_mib(256));
            node.row.set(signals::NODE_FREE, Bytes::from_mib(free));
        }
        timeline.push(&sample).unwrap();
    }
    let mut facts = Facts::default();
    facts.page_size = PageSize::from_bytes(4096);
    facts.record(Span::ZERO, facts::KERNEL_VERSION, "Linux version 6.1.0 (gcc)");
    Source::new(SourceKind::Live, "", timeline, facts)
}

fn answer(source: &Source) -> Report {
    Report::new(source, &diagnose::diagnose(&source.timeline, &source.facts))
}

#[test]
fn reports_validate_against_the_schema() {
    for report in [
        fixtures::healthy(),
        fixtures::thrashing(),
        fixtures::node_reclaim(),
        fixtures::single_look(),
        fixtures::hostile(),
    ] {
        valid(&report);
    }
    let empty = valid(&answer(&Source::default()));
    assert_eq!(empty["verdict"], "unknown");
    assert_eq!(empty["accounting"], Value::Null);
    assert_eq!(empty["host"]["ram_bytes"], Value::Null);
}

#[test]
fn a_diagnosis_keeps_its_numbers_and_times() {
    // 2026-11-21T04:42:08.5Z
    let source = host(40, 2500, Some(1_795_236_128_500_000_000));
    let report = valid(&answer(&source));
    assert_eq!(report["schema"], "memtide-report/1");
    assert_eq!(report["host"]["kernel"], "6.1.0");
    assert_eq!(report["source"]["kind"], "live");
    assert_eq!(report["source"]["samples"], 40);
    assert_eq!(report["source"]["from"], "2026-11-21T04:42:08.5Z");
    let finding = &report["findings"][0];
    assert_eq!(finding["id"], "swap-thrash");
    assert_eq!(finding["from_s"], 0.0);
    assert_eq!(finding["to"], "2026-11-21T04:42:47.5Z");
    assert_eq!(finding["evidence"][0]["unit"], "bytes/s");
    assert_eq!(finding["evidence"][0]["value"], 10_240_000.0);
    assert_eq!(finding["graph"]["values"].as_array().unwrap().len(), 40);
    let accounting = &report["accounting"];
    assert_eq!(accounting["swap"]["used_bytes"], 50 << 20);
    assert_eq!(accounting["nodes"][1]["free_bytes"], 80 << 20);
}

#[test]
fn without_a_wall_clock_times_are_offsets_only() {
    let mut source = host(40, 2500, None).named("x");
    source.origin.kind = SourceKind::Capture;
    let report = valid(&answer(&source));
    assert_eq!(report["source"]["from"], Value::Null);
    assert_eq!(report["findings"][0]["from"], Value::Null);
    assert_eq!(report["findings"][0]["to_s"], 39.0);
    assert_eq!(report["source"]["kind"], "capture");
}

#[test]
fn terms_and_remainder_add_up_exactly() {
    let source = host(5, 1, None);
    let accounting = answer(&source).accounting.unwrap();
    let terms: i128 = accounting.terms.iter().map(|t| i128::from(t.bytes.get())).sum();
    assert_eq!(
        terms + i128::from(accounting.unaccounted_bytes.get()),
        i128::from(accounting.total_bytes.get())
    );
}

#[test]
fn lists_are_json_too() {
    let rules: Value =
        serde_json::from_str(&report::json(&report::RuleEntry::all()).unwrap()).unwrap();
    assert_eq!(rules.as_array().unwrap().len(), diagnose::rules::ALL.len());
    let signals: Value =
        serde_json::from_str(&report::json(&report::SignalEntry::all()).unwrap()).unwrap();
    let pswpin = signals.as_array().unwrap().iter().find(|s| s["name"] == "vm.pswpin").unwrap();
    assert_eq!(pswpin["kind"], "counter");
    assert_eq!(pswpin["sar"], "pswpin/s");
    assert_eq!(pswpin["since"], Value::Null);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    /// A number that is not finite would be written as null, which the schema refuses.
    #[test]
    fn any_counters_and_clocks_give_a_valid_report(n in 0u64..300, step in any::<u64>(), wall in any::<Option<i64>>()) {
        let source = host(n, step, wall);
        valid(&answer(&source));
    }
}
