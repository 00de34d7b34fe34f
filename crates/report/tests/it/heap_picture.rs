//! The picture of a malloc heap: what people see of one and the same process in a file, on a page and in a terminal,
//! and that any heap, however damaged or forged, is drawn within bounds and as text.

use diagnose::Sureness;
use diagnose::growth::GrowthClass;
use proptest::prelude::*;
use report::model::explain::{
    ArenaEntry, ChunkSizes, EXPLAIN_SCHEMA, ExplainCost, ExplainReport, ExplainedProcess,
    FewerArenas, FoundAllocator, HeapCell, HeapForecast, HeapReport, HeapRow, LimitEntry,
    MappedFileEntry, MemoryPart, ProcessSizes,
};
use report::model::growth::GrowthEntry;
use report::model::runtime_stats::RuntimeStatsReport;
use report::{ColourMode, Screen, html, text};
use unicode_width::UnicodeWidthChar;
use units::{Bytes, BytesPerSecond, Ratio, Span};

use crate::hostile::any_text;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const CELL: u64 = 64 * KIB;

/// A cell that is wholly in RAM, with live bytes; the rest is free.
fn used(live: u64) -> HeapCell {
    HeapCell {
        resident_bytes: Bytes::new(CELL),
        live_bytes: Bytes::new(live),
        free_bytes: Bytes::new(CELL - live),
        ..HeapCell::default()
    }
}

fn returnable() -> HeapCell {
    HeapCell { returnable_bytes: Bytes::new(CELL), ..used(0) }
}

fn thread_top() -> HeapCell {
    HeapCell { thread_top_bytes: Bytes::new(CELL), ..used(0) }
}

/// Each look once, and neighbours alike.
fn cells() -> Vec<HeapCell> {
    let cached =
        HeapCell { cached_bytes: Bytes::new(CELL / 2), free_bytes: Bytes::ZERO, ..used(CELL / 2) };
    let swapped = HeapCell { swapped_bytes: Bytes::new(CELL), ..HeapCell::default() };
    let unknown = HeapCell { free_bytes: Bytes::ZERO, ..used(0) };
    let half_in_ram = HeapCell {
        resident_bytes: Bytes::new(CELL / 2),
        free_bytes: Bytes::ZERO,
        ..used(CELL / 2)
    };
    let mut cells = vec![used(CELL); 6];
    cells.extend([used(CELL * 9 / 10), used(CELL * 6 / 10), used(CELL * 4 / 10)]);
    cells.extend([used(CELL / 10), used(0), cached, swapped, unknown, half_in_ram]);
    cells.extend(vec![returnable(); 20]);
    cells.extend(vec![HeapCell::default(); 4]);
    cells
}

fn thread_cells(len: usize) -> Vec<HeapCell> {
    let mut cells: Vec<HeapCell> = (0..len as u64)
        .map(|i| match i % 7 {
            0..=3 => returnable(),
            n => used(CELL / 8 * (n % 5)),
        })
        .collect();
    cells.extend(vec![thread_top(); 3]);
    cells
}

fn entry(number: Option<u64>, rows: &[&HeapRow]) -> ArenaEntry {
    let sum = |of: fn(&HeapCell) -> Bytes| -> Bytes {
        rows.iter().flat_map(|row| &row.cells).map(of).sum()
    };
    let (live, free) = (sum(|cell| cell.live_bytes), sum(|cell| cell.free_bytes));
    let returnable = sum(|cell| cell.returnable_bytes);
    let top = sum(|cell| cell.thread_top_bytes);
    ArenaEntry {
        number,
        heaps: rows.len() as u64,
        system_bytes: rows.iter().map(|row| Bytes::new(CELL).times(row.cells.len() as u64)).sum(),
        live_bytes: live,
        live_chunks: live.get() / 64,
        cached_bytes: sum(|cell| cell.cached_bytes),
        binned_bytes: free.saturating_sub(top),
        top_bytes: top,
        resident_bytes: sum(|cell| cell.resident_bytes),
        live_resident_bytes: live,
        swapped_bytes: sum(|cell| cell.swapped_bytes),
        free_resident_bytes: free,
        returnable_bytes: returnable,
        thread_top_bytes: top,
        pinned_bytes: free.saturating_sub(returnable + top),
        ..ArenaEntry::default()
    }
}

fn heap() -> HeapReport {
    let row = |arena: u64, cells: Vec<HeapCell>| HeapRow {
        arena,
        resident_bytes: cells.iter().map(|cell| cell.resident_bytes).sum(),
        cells,
    };
    let rows = vec![
        row(0, cells()),
        row(1, thread_cells(40)),
        row(1, thread_cells(12)),
        row(2, thread_cells(70)),
    ];
    let arenas = (0..3).map(|number| {
        let own: Vec<&HeapRow> = rows.iter().filter(|row| row.arena == number).collect();
        entry(Some(number), &own)
    });
    let total = entry(None, &rows.iter().collect::<Vec<_>>());
    HeapReport {
        arenas: arenas.collect(),
        mmapped_chunks: 3,
        mmapped_bytes: Bytes::from_mib(6),
        mmapped_resident_bytes: Bytes::from_mib(5),
        mmapped_is_verified: Some(true),
        unused_resident_bytes: total.free_resident_bytes + total.cached_bytes,
        uncertain_bytes: Bytes::from_kib(12),
        uncertain_resident_bytes: Bytes::from_kib(12),
        forecast: HeapForecast {
            trim_bytes: total.returnable_bytes,
            thread_tops_bytes: total.thread_top_bytes,
            pinned_bytes: total.pinned_bytes,
            fewer_arenas: Some(FewerArenas {
                arenas: 3,
                arenas_max: 2,
                low_bytes: Bytes::from_mib(1),
                high_bytes: Bytes::from_mib(2),
            }),
        },
        sizes: (5..9)
            .map(|power| ChunkSizes {
                from_bytes: Bytes::new(1 << power),
                live_chunks: 1000 * power,
                live_bytes: Bytes::new(100 * KIB * power),
                free_chunks: 30,
                free_bytes: Bytes::new(90 * KIB * (10 - power)),
            })
            .collect(),
        is_whole: true,
        is_cut: false,
        has_changed: false,
        resident_by_live_share_bytes: [6 * 1024, 512, 900, 1024, 300, 700].map(Bytes::from_kib),
        cell_bytes: Bytes::new(CELL),
        rows,
        total,
    }
}

fn part(label: &str, rss_mib: u64, is_certain: bool, parts: Vec<MemoryPart>) -> MemoryPart {
    MemoryPart {
        label: label.to_owned(),
        rss_bytes: Bytes::from_mib(rss_mib),
        ram_bytes: Bytes::from_mib(rss_mib),
        pss_bytes: Bytes::from_mib(rss_mib),
        uss_bytes: Bytes::from_mib(rss_mib),
        certainty: if is_certain { "certain" } else { "likely" },
        recognised_by: "its shape".to_owned(),
        parts,
        ..MemoryPart::default()
    }
}

fn puma() -> ExplainedProcess {
    ExplainedProcess {
        pid: 4711,
        namespace_pid: Some(7),
        name: "puma".to_owned(),
        program: Some("/usr/bin/ruby3.1".to_owned()),
        is_program_deleted: true,
        service: Some("shop.service".to_owned()),
        cgroup: Some("/system.slice/shop.service".to_owned()),
        age_s: Some(Span::from_secs(22_320)),
        threads: Some(3),
        oom_score: Some(667),
        oom_score_adj: Some(-100),
        thp_enabled: Some(true),
        memory_variables: Some(vec!["MALLOC_ARENA_MAX"]),
        memory_values: [("MALLOC_ARENA_MAX", "4".to_owned())].into(),
        ignores_variables: Some(false),
        limits: Some(vec![LimitEntry { name: "stack", bytes: Bytes::from_mib(8) }]),
    }
}

fn sizes() -> ProcessSizes {
    ProcessSizes {
        vss_bytes: Bytes::from_mib(400),
        rss_bytes: Bytes::from_mib(20),
        ram_bytes: Bytes::from_mib(20),
        pss_bytes: Bytes::from_mib(18),
        uss_bytes: Bytes::from_mib(17),
        swap_bytes: Bytes::from_mib(1),
        never_touched_bytes: Bytes::from_mib(60),
        without_access_bytes: Bytes::from_mib(319),
        shared_bytes: Bytes::from_mib(3),
        hugetlb_bytes: Bytes::ZERO,
        huge_bytes: Bytes::from_mib(2),
        anonymous_bytes: Bytes::from_mib(16),
    }
}

/// A program of three threads, fragmented.
/// As the program uses up what it freed before: the total is level, the live bytes rise.
fn growth() -> GrowthEntry {
    let mib = |at: u64| Some((at * MIB) as f64);
    GrowthEntry {
        kind: "process",
        name: "puma".to_owned(),
        pid: Some(4711),
        ended: None,
        ended_s: None,
        is_killed: false,
        kills: 0,
        class: GrowthClass::Fragmentation,
        class_text: "fragmentation",
        meaning: "The heap keeps free memory that the program does not use.",
        confidence: Ratio::new(0.82),
        confidence_text: Sureness::Probable,
        method: "Theil-Sen slope of the live bytes".to_owned(),
        now_bytes: Bytes::from_mib(20),
        judged_s: Span::from_secs(600),
        readings: 121,
        rate_bytes_per_s: Some(BytesPerSecond::new(1024.0)),
        rate_from_bytes_per_s: Some(BytesPerSecond::new(512.0)),
        rate_to_bytes_per_s: Some(BytesPerSecond::new(2048.0)),
        levels_off_at_bytes: Some(Bytes::from_mib(24)),
        limit_bytes: Some(Bytes::from_mib(512)),
        limit_in_s: Some(Span::from_secs(500_000)),
        needs_s: None,
        evidence: vec!["Live bytes are level.".to_owned()],
        advice: "Try jemalloc.",
        course_s: Span::from_secs(600),
        course_bytes: [15, 16, 17, 19, 19, 20, 20, 20].map(mib).to_vec(),
        live_course_bytes: vec![mib(4), mib(5), mib(4), None, mib(5), mib(4), mib(5), mib(5)],
    }
}

fn object_space() -> RuntimeStatsReport {
    RuntimeStatsReport {
        evidence: vec!["15 pages have a live object.".to_owned()],
        advice: vec!["Look for the slack in malloc.".to_owned()],
        remarks: vec!["The report is of PID 7.".to_owned()],
        ..crate::runtime_stats::report("ruby", 15, "3.1.2")
    }
}

/// A process with a heap that is mostly free, watched for ten minutes, beside what Ruby reports of its object space.
pub(crate) fn fragmented() -> ExplainReport {
    let heap = heap();
    ExplainReport {
        has_malloc: Some(true),
        schema: EXPLAIN_SCHEMA,
        process: puma(),
        verdict: "fragmented",
        verdict_text: "fragmented".to_owned(),
        headline: vec![
            "7.2 MiB of its 11 MiB malloc heap is free but resident, in 3 arenas.".to_owned(),
            "malloc_trim would return 5.9 MiB now.".to_owned(),
        ],
        sizes: sizes(),
        memory: part(
            "process",
            20,
            true,
            vec![
                part(
                    "malloc heap",
                    11,
                    true,
                    vec![
                        part("thread arenas", 8, true, vec![]),
                        part("main arena", 3, true, vec![]),
                    ],
                ),
                part("Ruby object pages", 5, false, vec![]),
                part("libraries", 4, true, vec![]),
            ],
        ),
        allocators: vec![FoundAllocator {
            name: "glibc malloc".to_owned(),
            version: Some("2.36".to_owned()),
            file: "/usr/lib/libc.so.6".to_owned(),
            evidence: vec!["the name of the library".to_owned()],
        }],
        heap: Some(heap),
        files: vec![MappedFileEntry {
            other_names: Vec::new(),
            name: "/usr/lib/libruby.so.3.1".to_owned(),
            is_deleted: false,
            rss_bytes: Bytes::from_mib(3),
            pss_bytes: Bytes::from_mib(1),
            cached_bytes: None,
            length_bytes: Some(Bytes::from_mib(4)),
            other_users: Some(2),
        }],
        growth: Some(growth()),
        is_watched: true,
        runtime_stats: Some(object_space()),
        files_left_out: 44,
        unsearched_files: vec!["/opt/lib/libcore.so.7 (deleted)".to_owned()],
        processes_unread: 12,
        absent_sizes: vec!["FilePmdMapped"],
        problems: vec!["/proc/4711/numa_maps: not permitted".to_owned()],
        cost: ExplainCost {
            cpu_s: Span::from_millis(41),
            wall_s: Span::from_millis(50),
            stopped_s: None,
        },
        ..ExplainReport::default()
    }
}

fn in_terminal(report: &ExplainReport, columns: usize, colour: ColourMode) -> String {
    let mut screen = Screen::of_width(columns);
    screen.colour = colour;
    text::heap_picture(report, &screen)
}

fn body(html: &str) -> &str {
    let (_, body) = html.split_once("<body>").unwrap();
    body.split_once("<footer>").unwrap().0
}

/// Checks that a text is XML: tags closed in order, attributes quoted, no character that XML does not have, references
/// whole. Returns the number of elements.
fn elements(xml: &str) -> Result<usize, String> {
    let is_char =
        |c: char| c == '\n' || c >= ' ' && !matches!(c, '\u{fffe}' | '\u{ffff}' | '\u{7f}');
    if let Some(c) = xml.chars().find(|c| !is_char(*c)) {
        return Err(format!("XML has no {c:?}"));
    }
    let (mut open, mut count) = (Vec::new(), 0);
    for (index, piece) in xml.split('<').enumerate() {
        let (tag, text) = match index {
            0 if piece.is_empty() => continue,
            0 => return Err("text before the first element".to_owned()),
            _ => piece.split_once('>').ok_or_else(|| format!("no end: {piece}"))?,
        };
        references(text)?;
        if let Some(name) = tag.strip_prefix('/') {
            if open.pop() != Some(name) {
                return Err(format!("</{name}> closes nothing"));
            }
            continue;
        }
        count += 1;
        let is_empty = tag.ends_with('/');
        let tag = tag.trim_end_matches('/');
        let (name, attributes) = tag.split_once(' ').unwrap_or((tag, ""));
        if !is_empty {
            open.push(name);
        }
        let mut rest = attributes;
        while !rest.is_empty() {
            let (name, after) =
                rest.split_once("=\"").ok_or_else(|| format!("`{rest}` in {tag}"))?;
            let (value, after) = after.split_once('"').ok_or_else(|| format!("no end: {after}"))?;
            if name.contains(|c: char| !c.is_ascii_alphanumeric() && c != '-') {
                return Err(format!("`{name}` is no attribute"));
            }
            references(value)?;
            rest = after.trim_start();
        }
    }
    match open.as_slice() {
        [] => Ok(count),
        open => Err(format!("not closed: {open:?}")),
    }
}

fn references(text: &str) -> Result<(), String> {
    for after in text.split('&').skip(1) {
        let (name, _) = after.split_once(';').ok_or_else(|| format!("&{after}"))?;
        if !["amp", "lt", "gt", "quot", "#39"].contains(&name) {
            return Err(format!("&{name};"));
        }
    }
    Ok(())
}

#[test]
fn a_page() {
    let html = html::explain(&fragmented());
    insta::assert_snapshot!(body(&html).replace("><", ">\n<"));
}

#[test]
fn a_terminal_without_colour() {
    insta::assert_snapshot!(in_terminal(&fragmented(), 80, ColourMode::Plain));
}

#[test]
fn a_narrow_terminal() {
    insta::assert_snapshot!(in_terminal(&fragmented(), 40, ColourMode::Plain));
}

#[test]
fn a_terminal_with_colour() {
    let text = in_terminal(&fragmented(), 80, ColourMode::Ansi);
    insta::assert_snapshot!(text.replace('\u{1b}', "ESC"));
}

#[test]
fn a_page_loads_and_runs_nothing() {
    let html = html::explain(&fragmented());
    assert!(!html.contains("<script") && !html.contains("<img") && !html.contains("<link"));
    assert!(html.contains("default-src 'none'"));
    assert_eq!(body(&html).matches("style=").count(), 0, "the policy would refuse it");
}

#[test]
fn every_kind_of_memory_is_in_the_drawing_and_in_its_legend() {
    let html = html::explain(&fragmented());
    let drawing = body(&html);
    for class in [
        "live-0",
        "live-1",
        "live-2",
        "live-3",
        "live-4",
        "live-5",
        "cell-returnable",
        "cell-top",
        "cell-swapped",
        "cell-unknown",
        "cell-cached",
    ] {
        for element in ["path", "rect"] {
            let tag = format!("<{element} class=\"{class}\"");
            assert!(drawing.contains(&tag), "{tag}");
        }
    }
}

#[test]
fn a_heap_that_was_not_read_says_why() {
    let report = ExplainReport {
        heap: None,
        heap_not_read: Some("no data of glibc's malloc was found".to_owned()),
        ..fragmented()
    };
    let why = "The malloc heap was not read: no data of glibc";
    assert!(html::explain(&report).contains(why));
    let text = in_terminal(&report, 80, ColourMode::Plain);
    assert!(text.contains(why), "{text}");
}

/// Neighbours that differ, in many lines: nothing can be merged.
#[test]
fn the_most_varied_heap_of_16384_cells_is_below_a_megabyte() {
    let mut report = fragmented();
    let kinds = [used(CELL / 8), used(CELL), returnable(), used(CELL / 2)];
    let varied =
        |len: usize| -> Vec<HeapCell> { kinds.iter().copied().cycle().take(len).collect() };
    let heap = report.heap.as_mut().unwrap();
    for parts in [1, 16, 64, 500] {
        let row = |arena: u64| HeapRow {
            arena,
            resident_bytes: Bytes::new(CELL),
            cells: varied(16_384 / usize::try_from(parts).unwrap()),
        };
        heap.rows = (0..parts).map(row).collect();
        let mut all = fragmented();
        all.heap = Some(heap.clone());
        let size = html::explain(&all).len();
        assert!(size < 1_000_000, "{parts} parts: a page of {size} bytes");
    }
}

#[test]
fn a_terminal_of_80_columns_needs_27_lines_however_many_arenas_there_are() {
    let mut report = fragmented();
    let heap = report.heap.as_mut().unwrap();
    heap.rows = (0..200)
        .map(|arena| HeapRow {
            arena,
            resident_bytes: Bytes::new(arena * CELL),
            cells: thread_cells(100),
        })
        .collect();
    for colour in [ColourMode::Plain, ColourMode::Ansi] {
        let text = in_terminal(&report, 80, colour);
        assert!(text.lines().count() <= 27, "{text}");
        assert!(text.contains("180 smaller parts not drawn"), "{text}");
    }
}

fn any_cell() -> impl Strategy<Value = HeapCell> {
    let size = || prop_oneof![Just(0), 0..CELL, any::<u64>()];
    prop::array::uniform7(size()).prop_map(|sizes| HeapCell {
        resident_bytes: Bytes::new(sizes[0]),
        live_bytes: Bytes::new(sizes[1]),
        cached_bytes: Bytes::new(sizes[2]),
        free_bytes: Bytes::new(sizes[3]),
        returnable_bytes: Bytes::new(sizes[4]),
        thread_top_bytes: Bytes::new(sizes[5]),
        swapped_bytes: Bytes::new(sizes[6]),
    })
}

prop_compose! {
    fn any_explanation()(
        texts in prop::collection::vec(any_text(), 12),
        rows in prop::collection::vec((any::<u64>(), any::<u64>(), prop::collection::vec(any_cell(), 0..60)), 0..40),
        sizes in prop::collection::vec(any::<u64>(), 24),
        verdict in prop::sample::select(vec!["fragmented", "live", "small", "not-read", "?"]),
    ) -> ExplainReport {
        let mut texts = texts.into_iter().cycle();
        let mut text = || texts.next().unwrap();
        let mut report = fragmented();
        report.verdict = verdict;
        report.process.name = text();
        report.process.program = Some(text());
        report.process.service = Some(text());
        report.headline = vec![text(), text()];
        report.problems = vec![text()];
        report.unsearched_files = vec![text()];
        report.runtime_stats.as_mut().unwrap().headline = text();
        report.growth.as_mut().unwrap().course_s = Span::from_secs_f64(f64::from_bits(sizes[14]));
        report.growth.as_mut().unwrap().live_course_bytes[0] = Some(f64::from_bits(sizes[15]));
        report.memory.label = text();
        report.memory.rss_bytes = Bytes::new(sizes[0]);
        report.memory.parts[0].rss_bytes = Bytes::new(sizes[1]);
        report.memory.parts[0].label = text();
        report.memory.parts[1].recognised_by = text();
        report.files[0].name = text();
        report.allocators[0].file = text();
        report.sizes.rss_bytes = Bytes::new(sizes[2]);
        report.sizes.pss_bytes = Bytes::new(sizes[3]);
        let heap = report.heap.as_mut().unwrap();
        heap.cell_bytes = Bytes::new(sizes[4]);
        heap.resident_by_live_share_bytes = [sizes[5], sizes[6], sizes[7], 0, sizes[8], sizes[9]].map(Bytes::new);
        heap.total.returnable_bytes = Bytes::new(sizes[10]);
        heap.total.thread_top_bytes = Bytes::new(sizes[11]);
        heap.forecast.trim_bytes = Bytes::new(sizes[12]);
        heap.sizes[0].live_bytes = Bytes::new(sizes[13]);
        heap.rows = rows
            .into_iter()
            .map(|(arena, resident_bytes, cells)| HeapRow { arena: arena % 40, resident_bytes: Bytes::new(resident_bytes), cells })
            .collect();
        report
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_heap_is_drawn_as_xml_within_bounds(report in any_explanation()) {
        let html = html::explain(&report);
        let found = elements(&format!("<x>{}</x>", body(&html).trim()));
        prop_assert!(found.is_ok(), "{found:?}");
        prop_assert!(html.len() < 1_200_000, "{} bytes", html.len());
    }

    #[test]
    fn any_heap_fits_any_terminal(report in any_explanation(), columns in 0usize..200) {
        for colour in [ColourMode::Plain, ColourMode::Ansi] {
            let text = in_terminal(&report, columns, colour);
            for line in crate::hostile::without_colour(&text).lines() {
                prop_assert!(!line.chars().any(char::is_control), "{line:?}");
                let width: usize = line.chars().map(|c| c.width().unwrap_or(0)).sum();
                prop_assert!(width <= columns.clamp(40, 120), "{width} {line:?}");
            }
        }
    }
}
