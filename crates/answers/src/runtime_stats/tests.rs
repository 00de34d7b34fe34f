//! Answers about reports that runtimes wrote; `anatomy/tests/runtime_stats` has their origin.

use report::text::{self, Detail};
use report::{ColourMode, Screen};
use units::Bytes;

use super::{ProcessBeside, runtime_stats};
use crate::runtime_stats::RuntimeStatsReport;

macro_rules! recorded {
    ($name:literal) => {
        include_bytes!(concat!("../../../anatomy/tests/runtime_stats/", $name))
    };
}

const REDIS: &[u8] = recorded!("redis-7.0.txt");
const RUBY: &[u8] = recorded!("ruby-3.1.json");
const RUBY_THREADS: &[u8] = recorded!("ruby-3.1-threads.json");
const RUBY_HOLES: &[u8] = recorded!("ruby-3.1-holes.json");
const RUBY_34: &[u8] = recorded!("ruby-3.4.json");
const NMT: &[u8] = recorded!("nmt-17-summary.txt");
const NMT_MB: &[u8] = recorded!("nmt-25-mb.txt");
const NMT_DIFF: &[u8] = recorded!("nmt-25-summary-diff.txt");
const JEMALLOC: &[u8] = recorded!("jemalloc-5.3.txt");
const JEMALLOC_JSON: &[u8] = recorded!("jemalloc-5.3.json");

fn alone(text: &[u8]) -> RuntimeStatsReport {
    runtime_stats(text, &ProcessBeside::default()).unwrap()
}

fn with_rss(text: &[u8], rss: Bytes) -> RuntimeStatsReport {
    let process = ProcessBeside { rss: Some(rss), ..ProcessBeside::default() };
    runtime_stats(text, &process).unwrap()
}

#[test]
fn redis_with_deleted_keys_is_fragmented_and_says_what_returns_it() {
    let report = alone(REDIS);
    assert_eq!((report.class, report.is_concern), ("fragmented", true));
    insta::assert_snapshot!(screen(&report, 80));
    screen(&report, 40);
}

fn screen(report: &RuntimeStatsReport, columns: usize) -> String {
    let text = text::runtime_stats(report, &Screen::of_width(columns));
    for line in text.lines() {
        assert!(line.chars().count() <= columns, "{columns}: {line}");
    }
    text
}

/// The report of a program of 16 threads that had built strings, with its RSS and what `malloc_stats()` called free.
#[test]
fn the_slack_is_mallocs_and_not_rubys() {
    let process = ProcessBeside {
        pid: Some(10_676),
        rss: Some(Bytes::from_kib(438_860)),
        malloc_free: Some(Bytes::new(401_125_376 - 27_130_992)),
    };
    let report = runtime_stats(RUBY_THREADS, &process).unwrap();
    assert_eq!((report.class, report.is_concern), ("usual", false));
    assert!(report.remarks.is_empty());
    insta::assert_snapshot!(screen(&report, 80));
}

#[test]
fn a_full_object_space_has_nothing_to_gain() {
    let process =
        ProcessBeside { malloc_free: Some(Bytes::from_mib(130)), ..ProcessBeside::default() };
    let report = runtime_stats(RUBY, &process).unwrap();
    assert_eq!((report.class, report.is_concern), ("full", false));
    assert_eq!(
        report.headline,
        "Object space (848 KiB) is 95 % full: the 130 MiB of slack sit in malloc's arenas."
    );
}

#[test]
fn rubys_sparse_pages() {
    let report = alone(RUBY_HOLES);
    assert_eq!((report.class, report.is_concern), ("sparse", true));
    insta::assert_snapshot!(screen(&report, 80));
}

#[test]
fn rubys_pools() {
    let report = alone(RUBY_34);
    assert_eq!((report.class, report.is_concern), ("usual", false));
    insta::assert_snapshot!(screen(&report, 80));
    insta::assert_snapshot!(screen(&report, 40));
}

#[test]
fn a_few_free_slots_are_no_concern_however_sparse() {
    let text = br#"{"stat":{"heap_live_slots":500,"heap_eden_pages":10},"constants":{"RVALUE_SIZE":40,"HEAP_PAGE_OBJ_LIMIT":409}}"#;
    let report = alone(text);
    assert_eq!((report.class, report.is_concern), ("sparse", false));
}

#[test]
fn the_jvm_beside_its_rss() {
    // What this JVM had: most of the Java heap was never touched.
    let report = with_rss(NMT, Bytes::from_kib(135_992));
    assert_eq!((report.class, report.is_concern), ("within", false));
    let jvm = report.jvm.as_ref().unwrap();
    assert_eq!(jvm.not_resident_bytes, Some(Bytes::from_kib(229_159 - 135_992)));
    insta::assert_snapshot!(screen(&report, 80));
    let report = with_rss(NMT, Bytes::from_mib(400));
    assert_eq!((report.class, report.is_concern), ("beyond", true));
    assert_eq!(alone(NMT).class, "committed");
    let process =
        ProcessBeside { malloc_free: Some(Bytes::from_mib(60)), ..ProcessBeside::default() };
    let report = runtime_stats(NMT, &process).unwrap();
    let slack = "malloc has 60 MiB free in its arenas, which the JVM does not count.";
    assert!(report.evidence.iter().any(|line| line == slack), "{report:?}");
}

#[test]
fn the_jvm_since_its_baseline() {
    let report = alone(NMT_DIFF);
    assert_eq!((report.class, report.is_concern), ("grows", true));
    assert_eq!(report.jvm.as_ref().unwrap().fastest_growing.as_deref(), Some("Other"));
    insta::assert_snapshot!(screen(&report, 80));
    insta::assert_snapshot!(screen(&report, 40));
    let level = b"Native Memory Tracking:\nTotal: reserved=9KB +1KB, committed=9KB +1KB\n";
    assert_eq!(alone(level).class, "level");
}

#[test]
fn rounded_sizes_are_named() {
    assert!(alone(NMT_MB).remarks[0].contains("rounded to 1 MiB"));
}

#[test]
fn jemalloc_is_fragmented() {
    let report = with_rss(JEMALLOC, Bytes::from_mib(390));
    assert_eq!((report.class, report.is_concern), ("fragmented", true));
    insta::assert_snapshot!(screen(&report, 80));
    insta::assert_snapshot!(screen(&report, 40));
    assert_eq!(alone(JEMALLOC_JSON).class, "fragmented");
}

#[test]
fn jemalloc_that_has_not_purged_or_is_packed() {
    let text = |active: u64, resident: u64| {
        format!(
            "___ Begin jemalloc statistics ___\n  opt.background_thread: false\nAllocated: 100000000, active: {active}, metadata: 1000000, resident: {resident}\n"
        )
    };
    let unpurged = alone(text(110_000_000, 200_000_000).as_bytes());
    assert_eq!(unpurged.class, "unpurged");
    assert!(unpurged.advice[0].contains("background_thread:true"));
    assert_eq!(alone(text(110_000_000, 115_000_000).as_bytes()).class, "packed");
}

#[test]
fn a_report_of_another_process_is_remarked() {
    let process = ProcessBeside { pid: Some(7), ..ProcessBeside::default() };
    let report = runtime_stats(RUBY, &process).unwrap();
    assert!(report.remarks[0].contains("PID 20292"), "{report:?}");
}

#[test]
fn names_and_versions_cannot_steer_the_terminal() {
    let text = "20702:\nNative Memory Tracking:\nTotal: reserved=9KB, committed=9KB\n- \u{1b}[2Jevil\u{202e} (reserved=9KB, committed=9KB)\n";
    let ruby = "{\"ruby\":\"\\u001b[31m3\",\"stat\":{\"heap_live_slots\":1,\"heap_eden_pages\":1}}";
    for text in [text, ruby] {
        for columns in [40, 80, 120] {
            let drawn = screen(&alone(text.as_bytes()), columns);
            assert!(!drawn.contains(['\u{1b}', '\u{202e}']), "{drawn}");
        }
    }
}

#[test]
fn all_screens_fit_and_have_colour_on_request() {
    for text in [RUBY, RUBY_HOLES, RUBY_34, NMT, NMT_MB, NMT_DIFF, JEMALLOC, JEMALLOC_JSON] {
        let report = alone(text);
        for columns in [40, 59, 60, 80, 120] {
            screen(&report, columns);
        }
        let mut coloured = Screen::of_width(80);
        (coloured.colour, coloured.detail) = (ColourMode::Ansi, Detail::All);
        assert!(text::runtime_stats(&report, &coloured).contains('\u{1b}'));
        let json = report::json(&report).unwrap();
        assert!(json.contains("\"schema\": \"memtide-runtime-stats/1\""));
    }
}
