//! Reports as runtimes wrote them. Ruby 3.1 of Debian 12; 3.2 to 4.0 as WebAssembly, where slots have half the size; OpenJDK
//! 17 and 25 with a Java heap of 128 MiB, and direct buffers of 32 MiB that grow to 112 MiB in the difference; jemalloc 5.3
//! under a Ruby program of 20 threads, shortened.

use proptest::prelude::*;
use units::{Bytes, Count, Ratio, SignedBytes};

use super::*;

const RUBY_31: &[u8] = include_bytes!("../../tests/runtime_stats/ruby-3.1.json");
const RUBY_31_HOLES: &[u8] = include_bytes!("../../tests/runtime_stats/ruby-3.1-holes.json");
const RUBY_32: &[u8] = include_bytes!("../../tests/runtime_stats/ruby-3.2.json");
const RUBY_33: &[u8] = include_bytes!("../../tests/runtime_stats/ruby-3.3.json");
const RUBY_34: &[u8] = include_bytes!("../../tests/runtime_stats/ruby-3.4.json");
const RUBY_40: &[u8] = include_bytes!("../../tests/runtime_stats/ruby-4.0.json");
const NMT_17: &[u8] = include_bytes!("../../tests/runtime_stats/nmt-17-summary.txt");
const NMT_17_BYTES: &[u8] = include_bytes!("../../tests/runtime_stats/nmt-17-bytes.txt");
const NMT_17_DETAIL: &[u8] = include_bytes!("../../tests/runtime_stats/nmt-17-detail.txt");
const NMT_17_DIFF: &[u8] = include_bytes!("../../tests/runtime_stats/nmt-17-summary-diff.txt");
const NMT_25_MB: &[u8] = include_bytes!("../../tests/runtime_stats/nmt-25-mb.txt");
const NMT_25_DIFF: &[u8] = include_bytes!("../../tests/runtime_stats/nmt-25-summary-diff.txt");
const JEMALLOC: &[u8] = include_bytes!("../../tests/runtime_stats/jemalloc-5.3.txt");
const JEMALLOC_JSON: &[u8] = include_bytes!("../../tests/runtime_stats/jemalloc-5.3.json");

const REDIS: &[u8] = include_bytes!("../../tests/runtime_stats/redis-7.0.txt");
const RUBY_31_THREADS: &[u8] = include_bytes!("../../tests/runtime_stats/ruby-3.1-threads.json");

const ALL: [&[u8]; 16] = [
    REDIS,
    RUBY_31,
    RUBY_31_THREADS,
    RUBY_31_HOLES,
    RUBY_32,
    RUBY_33,
    RUBY_34,
    RUBY_40,
    NMT_17,
    NMT_17_BYTES,
    NMT_17_DETAIL,
    NMT_17_DIFF,
    NMT_25_MB,
    NMT_25_DIFF,
    JEMALLOC,
    JEMALLOC_JSON,
];

/// A server of Debian 12 with 1,200,000 keys, of which three of four were deleted.
#[test]
fn redis_reports_what_lies_between_its_keys() {
    let RuntimeStats::Redis(stats) = RuntimeStats::parse(REDIS).unwrap() else {
        panic!("another kind");
    };
    assert_eq!((stats.version.as_deref(), stats.pid), (Some("7.0.15"), Some(25_083)));
    assert_eq!((stats.used, stats.limit), (Bytes::new(86_360_888), None));
    // As Redis itself computes it: allocator_frag_bytes, allocator_rss_bytes.
    assert_eq!(stats.unused(), Some(Bytes::new(209_884_864)));
    assert_eq!(stats.unpurged(), Some(Bytes::new(11_517_952)));
    let cut = RuntimeStats::parse(b"# Memory\r\nused_memory_dataset:12x\r\n").unwrap_err();
    assert!(cut.to_string().contains("a number of bytes"), "{cut}");
    let none = RuntimeStats::parse(b"used_memory_dataset:12\n").unwrap_err();
    assert!(none.to_string().contains("used_memory"), "{none}");
}

fn ruby(text: &[u8]) -> RubyStats {
    match RuntimeStats::parse(text).unwrap() {
        RuntimeStats::Ruby(stats) => stats,
        other => panic!("{other:?}"),
    }
}

fn jvm(text: &[u8]) -> JvmStats {
    match RuntimeStats::parse(text).unwrap() {
        RuntimeStats::Jvm(stats) => stats,
        other => panic!("{other:?}"),
    }
}

fn jemalloc(text: &[u8]) -> JemallocStats {
    match RuntimeStats::parse(text).unwrap() {
        RuntimeStats::Jemalloc(stats) => stats,
        other => panic!("{other:?}"),
    }
}

fn percent(ratio: Option<Ratio>) -> f64 {
    (ratio.unwrap().get() * 1000.0).round() / 10.0
}

#[test]
fn what_is_no_report_names_all_kinds_and_their_commands() {
    let error = RuntimeStats::parse(b"\n\x1b[2Jhello\nworld").unwrap_err();
    assert_eq!(
        error.to_string(),
        "expected Ruby's GC.stat as JSON, the JVM's Native Memory Tracking, jemalloc's statistics \
         or Redis's INFO memory, found ` [2Jhello`"
    );
    for command in [ruby::SNIPPET, jvm_nmt::COMMAND, jemalloc::COMMAND, redis::COMMAND] {
        assert!(error.help().contains(command));
    }
    assert!(RuntimeStats::parse(b"").is_err());
}

#[test]
fn a_file_that_is_too_large_is_not_searched() {
    let size = usize::try_from(FILE_SIZE_MAX.get()).unwrap() + 1;
    let error = RuntimeStats::parse(&vec![b' '; size]).unwrap_err();
    assert!(matches!(error, RuntimeStatsError::TooLarge { .. }));
}

#[test]
fn ruby_has_the_occupancy_of_the_article_it_was_first_described_in() {
    let text = br#"{"stat":{"heap_live_slots":24508,"heap_eden_pages":83,"heap_sorted_length":91},
        "constants":{"RVALUE_SIZE":40,"HEAP_PAGE_OBJ_LIMIT":408}}"#;
    let stats = ruby(text);
    assert_eq!(stats.eden_slots(), Some(Count::new(83 * 408)));
    // 24,508 / 33,864; the article cuts the digit after 72.3.
    assert_eq!(percent(stats.slot_occupancy()), 72.4);
    assert_eq!(percent(stats.list_occupancy()), 91.2);
    assert_eq!(stats.page_size, Bytes::from_kib(16));
}

#[test]
fn ruby_up_to_3_1_has_slots_of_one_size() {
    let stats = ruby(RUBY_31);
    assert_eq!(stats.version.as_deref(), Some("3.1.2"));
    assert_eq!(stats.size(), Bytes::from_kib(53 * 16));
    assert_eq!(percent(stats.slot_occupancy()), 94.7);
    assert_eq!(stats.free(), Some(Bytes::new((53 * 409 - 20_520) * 40)));
    let holes = ruby(RUBY_31_HOLES);
    assert_eq!(percent(holes.slot_occupancy()), 25.8);
    assert_eq!(percent(holes.list_occupancy()), 69.6);
    // As many as `total_freed_pages`.
    assert_eq!(holes.freed_places(), Some(Count::new(111)));
}

#[test]
fn the_snippet_runs_in_the_ruby_of_this_host() {
    // Nothing to run where there is no Ruby.
    let Ok(output) = std::process::Command::new("ruby").args(["-e", ruby::SNIPPET]).output() else {
        return;
    };
    let stats = ruby(&output.stdout);
    assert!(stats.version.is_some() && stats.pid.is_some(), "{stats:?}");
    let occupancy = stats.slot_occupancy().unwrap().get();
    assert!((0.05..=1.0).contains(&occupancy), "{stats:?}");
}

#[test]
fn ruby_since_3_2_has_pools_and_their_live_slots_add_up() {
    let only = ruby(RUBY_32);
    assert_eq!(only.pools.len(), 1);
    assert_eq!(percent(only.slot_occupancy()), 78.6);
    assert!(only.free().is_some());
    for text in [RUBY_33, RUBY_34, RUBY_40] {
        let stats = ruby(text);
        assert_eq!(stats.pools.len(), 5);
        let live: u64 = stats.pools.iter().map(|pool| pool.live_slots.unwrap().get()).sum();
        assert!(live.abs_diff(stats.live_slots.get()) < 20, "{stats:?}");
        assert_eq!(stats.page_size, Bytes::from_kib(64));
        let pages: Count = stats.pools.iter().map(|pool| pool.eden_pages).sum();
        assert_eq!(pages, stats.eden_pages);
        assert!(stats.free().unwrap() < stats.size());
    }
    assert_eq!(ruby(RUBY_40).empty_pages, Some(Count::new(15)));
    assert_eq!(ruby(RUBY_34).list_places, None);
}

#[test]
fn ruby_of_several_pools_without_live_slots_has_no_free_size() {
    let pool = r#"{"slot_size":40,"heap_eden_pages":2,"heap_eden_slots":3276}"#;
    let text = format!(
        r#"{{"stat":{{"heap_live_slots":3000,"heap_eden_pages":4}},"heaps":{{"0":{pool},"1":{pool}}}}}"#
    );
    let stats = ruby(text.as_bytes());
    assert_eq!(stats.free(), None);
    assert_eq!(percent(stats.slot_occupancy()), 45.8);
}

#[test]
fn a_bare_gc_stat_and_the_last_of_several_reports_are_read() {
    let bare =
        br#"{"count":3,"heap_available_slots":1000,"heap_live_slots":900,"heap_eden_pages":3}"#;
    let stats = ruby(bare);
    assert_eq!(percent(stats.slot_occupancy()), 90.0);
    let text = [b"Loading {production}\n=> nil\n", RUBY_31_HOLES, RUBY_31, b"irb> exit\n"].concat();
    assert_eq!(ruby(&text), ruby(RUBY_31));
}

#[test]
fn the_jvms_categories_add_up_to_its_total_in_every_scale() {
    for (text, scale) in
        [(NMT_17, 1 << 10), (NMT_17_BYTES, 1), (NMT_17_DETAIL, 1 << 10), (NMT_25_MB, 1 << 20)]
    {
        let stats = jvm(text);
        assert_eq!(stats.scale, Bytes::new(scale));
        assert!(!stats.is_difference);
        let sum: Bytes = stats.categories.iter().map(|one| one.size.committed).sum();
        let rounding = scale * 30;
        assert!(sum.get().abs_diff(stats.total.committed.get()) <= rounding, "{stats:?}");
        let heap = stats.by_committed()[0];
        assert_eq!((heap.name.as_str(), heap.size.committed), ("Java Heap", Bytes::from_mib(128)));
    }
    let stats = jvm(NMT_17);
    assert_eq!(stats.pid, Some(20_702));
    assert_eq!(stats.malloc, Some(Bytes::from_kib(39_623)));
    let named = |name: &str| stats.categories.iter().find(|one| one.name == name).unwrap();
    assert_eq!(named("Thread").threads, Some(Count::new(20)));
    assert_eq!(named("Class").classes, Some(Count::new(499)));
    assert_eq!(named("Other").malloc, Some(Bytes::from_mib(32)));
}

#[test]
fn the_category_that_grew_most_since_the_baseline_is_found() {
    for text in [NMT_17_DIFF, NMT_25_DIFF] {
        let stats = jvm(text);
        assert!(stats.is_difference);
        let grown = stats.fastest_growing().unwrap();
        assert_eq!(grown.name, "Other");
        assert_eq!(grown.size.committed_change, SignedBytes::new(80 << 20));
        let change = stats.total.committed_change;
        assert!(change > SignedBytes::new(80 << 20) && change < SignedBytes::new(90 << 20));
    }
}

#[test]
fn what_a_cut_report_lacks_is_known_by_its_total() {
    for whole in [NMT_17, NMT_17_BYTES, NMT_17_DETAIL, NMT_17_DIFF, NMT_25_MB, NMT_25_DIFF] {
        assert_eq!(jvm(whole).cut_off(), Bytes::ZERO);
        let text = String::from_utf8_lossy(whole);
        let second = text.match_indices("\n-").nth(2).unwrap().0;
        let cut = jvm(text[..second].as_bytes());
        let shown: Bytes = cut.categories.iter().map(|one| one.size.committed).sum();
        assert_eq!(
            (cut.categories.len(), cut.cut_off()),
            (2, cut.total.committed.saturating_sub(shown))
        );
    }
}

#[test]
fn a_jvm_that_does_not_track_says_how_it_would() {
    let error =
        RuntimeStats::parse(b"23520:\nNative memory tracking is not enabled\n").unwrap_err();
    assert_eq!(
        error.to_string(),
        "Native Memory Tracking line 2: the JVM reports `Native memory tracking is not enabled`"
    );
    assert!(error.help().contains("-XX:NativeMemoryTracking=summary"));
}

#[test]
fn jemallocs_text_and_json_give_the_same_figures() {
    let text = jemalloc(JEMALLOC);
    assert_eq!(text.allocated, Bytes::new(107_710_456));
    assert_eq!(text.dirty, Some(Bytes::new(19_934 * 4096)));
    assert_eq!(text.thread_caches, Some(Bytes::new(3_352_688)));
    assert_eq!(text.background_thread, Some(false));
    assert_eq!(percent(text.active_unused_share()), 64.0);
    let json = jemalloc(JEMALLOC_JSON);
    assert_eq!(json.dirty, Some(Bytes::new(21_576 * 4096)));
    assert_eq!((json.arenas, text.arenas), (Some(Count::new(9)), Some(Count::new(9))));
    for stats in [text, json] {
        assert_eq!(stats.bins.len(), 36);
        // What is free in active pages is free in slabs.
        let unused: Bytes = stats.bins.iter().map(JemallocBin::unused).sum();
        let share = unused.get() as f64 / stats.active_unused().get() as f64;
        assert!((0.98..1.02).contains(&share), "{share}");
        // Decay returns what resident has beyond active and metadata.
        let rest = stats.resident.saturating_sub(stats.active + stats.metadata);
        assert!(rest.get().abs_diff(stats.returnable().get()) < 2 << 20, "{stats:?}");
        assert_eq!(stats.by_unused()[0].region_size, Bytes::new(2560));
    }
}

#[test]
fn errors_name_the_line_and_what_was_expected() {
    for (text, message) in [
        (
            "{\n\"stat\": {\"heap_live_slots\": -3,\n\"heap_eden_pages\": 3}}",
            "GC.stat line 2, column 30: invalid value: integer `-3`, expected u64",
        ),
        (
            "{\"stat\": {\"heap_live_slots\": 3}}",
            "GC.stat report: expected `heap_eden_pages`, found none",
        ),
        (
            "Native Memory Tracking:\n\nTotal: reserved=x, committed=3KB",
            "Native Memory Tracking line 3: expected `reserved=SIZE, committed=SIZE`, found \
             `Total: reserved=x, committed=3KB`",
        ),
        (
            "Native Memory Tracking:\n",
            "Native Memory Tracking report: expected `Total: reserved=SIZE, committed=SIZE`, found \
             none",
        ),
        (
            "___ Begin jemalloc statistics ___\nAllocated: 3, active: \n",
            "jemalloc statistics line 2: expected `Allocated: N, active: N, metadata: N, resident: \
             N`, found `Allocated: 3, active: `",
        ),
        (
            "{\"jemalloc\": {\"version\": \"5\"}}",
            "jemalloc statistics report: expected `stats` (option `g` omits it), found none",
        ),
        (
            "{\"jemalloc\": {\"stats\": {\"active\": 3",
            "jemalloc statistics line 1, column 35: EOF while parsing an object",
        ),
    ] {
        let error = RuntimeStats::parse(text.as_bytes()).unwrap_err();
        assert_eq!(error.to_string(), message);
        assert!(!error.help().is_empty());
    }
}

#[test]
fn lists_of_hostile_length_are_cut() {
    let bins = r#"{"size":8,"nregs":512},"#.repeat(100_000);
    let counts = r#"{"curregs":1,"curslabs":1},"#.repeat(100_000);
    let text = format!(
        r#"{{"jemalloc":{{"arenas":{{"bin":[{bins}{{"size":8,"nregs":1}}]}},"stats":{{"allocated":1,"active":2,"metadata":3,"resident":4}},"stats.arenas":{{"merged":{{"bins":[{counts}{{"curregs":1,"curslabs":1}}]}}}}}}}}"#
    );
    assert_eq!(jemalloc(text.as_bytes()).bins.len(), 512);
    let many = "- A (reserved=1KB, committed=1KB)\n".repeat(10_000);
    let text = format!("Native Memory Tracking:\nTotal: reserved=1KB, committed=1KB\n{many}");
    assert_eq!(jvm(text.as_bytes()).categories.len(), 256);
}

/// All figures of a report: none may panic.
fn figures(text: &[u8]) {
    match RuntimeStats::parse(text) {
        Ok(RuntimeStats::Ruby(stats)) => {
            let _ = (stats.slot_occupancy(), stats.list_occupancy(), stats.freed_places());
            let _ = (stats.size(), stats.free());
        }
        Ok(RuntimeStats::Jvm(stats)) => {
            let _ = (stats.by_committed(), stats.fastest_growing(), stats.malloc_total());
        }
        Ok(RuntimeStats::Jemalloc(stats)) => {
            let _ = (stats.active_unused_share(), stats.returnable(), stats.by_unused());
        }
        Ok(RuntimeStats::Redis(stats)) => {
            let _ = (stats.unused_share(), stats.unpurged());
        }
        Err(error) => assert!(!error.to_string().is_empty() && !error.help().is_empty()),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_cut_report_gives_figures_or_an_error(which in 0..ALL.len(), cut in any::<prop::sample::Index>()) {
        let text = ALL[which];
        figures(&text[..cut.index(text.len())]);
        figures(&text[cut.index(text.len())..]);
    }

    #[test]
    fn flipped_bytes_give_figures_or_an_error(
        which in 0..ALL.len(),
        flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
    ) {
        let mut text = ALL[which].to_vec();
        for (at, byte) in flips {
            let at = at.index(text.len());
            text[at] = byte;
        }
        figures(&text);
    }

    #[test]
    fn numbers_of_any_size_give_figures_or_an_error(which in 0..ALL.len(), number in any::<u64>(), nth in 0_usize..300) {
        let text = String::from_utf8(ALL[which].to_vec()).unwrap();
        let mut count = 0;
        let mut out = String::new();
        let mut digits = false;
        for c in text.chars() {
            if c.is_ascii_digit() {
                if !digits {
                    count += 1;
                    if count == nth { out.push_str(&number.to_string()); }
                }
                digits = true;
                if count == nth { continue; }
            } else {
                digits = false;
            }
            out.push(c);
        }
        figures(out.as_bytes());
    }
}
