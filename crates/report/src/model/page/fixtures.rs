//! What the page's own tests in `web/` read: this contract with every kind of value, and times as the text writes them.
//! `BLESS=1 cargo test -p memtide-report fixtures` writes them, otherwise stale files fail.

use std::path::Path;

use chart::{ChartKind, ChartUnit, Colour};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use super::*;
use crate::Screen;
use crate::model::{ClockStep, Source, SourceKind};

const COLOURS: [Colour; 30] = [
    Colour::Free,
    Colour::Pcp,
    Colour::FileCache,
    Colour::Buffers,
    Colour::SlabReclaimable,
    Colour::Anon,
    Colour::SwapCache,
    Colour::Shared,
    Colour::SlabUnreclaimable,
    Colour::PageTables,
    Colour::KernelStacks,
    Colour::Percpu,
    Colour::Vmalloc,
    Colour::Hugetlb,
    Colour::Zram,
    Colour::Balloon,
    Colour::Unaccounted,
    Colour::SwapIn,
    Colour::SwapOut,
    Colour::Dirty,
    Colour::Writeback,
    Colour::PsiSome,
    Colour::PsiFull,
    Colour::Kswapd,
    Colour::Direct,
    Colour::Read,
    Colour::Write,
    Colour::Limit,
    Colour::Others,
    Colour::Nth(0),
];

/// Does not compile when there is a colour that [`COLOURS`] may lack.
const fn is_listed(colour: Colour) {
    match colour {
        Colour::Free | Colour::Pcp | Colour::FileCache | Colour::Buffers => {}
        Colour::SlabReclaimable | Colour::Anon | Colour::SwapCache | Colour::Shared => {}
        Colour::SlabUnreclaimable | Colour::PageTables | Colour::KernelStacks => {}
        Colour::Percpu | Colour::Vmalloc | Colour::Hugetlb | Colour::Zram => {}
        Colour::Balloon | Colour::Unaccounted | Colour::SwapIn | Colour::SwapOut => {}
        Colour::Dirty | Colour::Writeback | Colour::PsiSome | Colour::PsiFull => {}
        Colour::Kswapd | Colour::Direct | Colour::Read | Colour::Write => {}
        Colour::Limit | Colour::Others | Colour::Nth(_) => {}
    }
}

#[allow(clippy::disallowed_methods)] // fixtures beside the page's tests
fn is_fresh(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../web/test/fixtures").join(name);
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, text).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        kept == text,
        "web/test/fixtures/{name} is out of date: BLESS=1 cargo test -p memtide-report fixtures"
    );
}

#[test]
fn the_page_is_tested_with_this_contract() {
    COLOURS.into_iter().for_each(is_listed);
    let meta = serde_json::to_string_pretty(&meta()).unwrap();
    let head = "// The writer's contract with every kind of value: made by crates/report/src/model/page/fixtures.rs.\n\n\
                import type { Meta } from \"../../src/page\";\n\nexport const PAGE = ";
    is_fresh("page.ts", &format!("{head}{meta} satisfies Meta;\n"));
}

fn meta() -> PageMeta {
    PageMeta {
        format: PAGE_FORMAT,
        start_unix_ms: Some(1_700_000_000_000),
        offsets: vec![(0.0, 7_200.0), (3_600.0, 3_600.0)],
        last_day: Some(19_675),
        last_year: Some(2023),
        offset_s: 0.0,
        span_s: 40.0,
        interval_s: Some(Span::from_secs(1)),
        worst_s: 12.5,
        levels: vec![LevelMeta { from_s: 0.0, to_s: 40.0, rows: 41 }],
        gaps: vec![[10.0, 15.0, 4.0]],
        charts: vec![overview(), small()],
        findings: vec![finding(Severity::Critical), finding(Severity::Info)],
        events: vec![EventMeta { at_s: 12.0, text: "oom-kill".to_owned(), is_main: true }],
    }
}

fn overview() -> ChartMeta {
    ChartMeta {
        id: "where".to_owned(),
        title: "Where memory went".to_owned(),
        kind: kind(ChartKind::Stack),
        unit: unit(ChartUnit::Bytes),
        size: "overview",
        is_log: false,
        top: Some(1e9),
        series: COLOURS.into_iter().map(of_colour).collect(),
        limits: vec![LimitMeta { label: "MemTotal".to_owned(), value: Some(1e9), series: None }],
        band: None,
        evidence_of: vec![0],
        says: "free 1–2 GiB".to_owned(),
    }
}

fn small() -> ChartMeta {
    ChartMeta {
        id: "free".to_owned(),
        kind: kind(ChartKind::Mirror),
        unit: unit(ChartUnit::Share),
        size: "small",
        top: None,
        limits: vec![LimitMeta {
            label: "floor".to_owned(),
            value: None,
            series: Some("floor-low".to_owned()),
        }],
        band: Some(["floor-low".to_owned(), "floor-high".to_owned()]),
        ..overview()
    }
}

fn of_colour(colour: Colour) -> SeriesMeta {
    SeriesMeta {
        id: colour.name(),
        label: colour.name(),
        colour: colour.name(),
        scale: 4096.0,
        is_steps: false,
        is_negative: false,
        is_limit: false,
        is_pale: colour == Colour::SwapOut,
        is_hatched: colour == Colour::Unaccounted,
        is_alike: colour == Colour::Nth(0),
        group: (colour == Colour::Free).then_some("free"),
    }
}

fn finding(severity: Severity) -> FindingMeta {
    let is_root = severity == Severity::Critical;
    FindingMeta {
        severity,
        id: "swap-thrash".to_owned(),
        subject: is_root.then(|| "hog".to_owned()),
        title: "Pages are swapped in and out".to_owned(),
        from_s: is_root.then_some(1.0),
        to_s: is_root.then_some(39.0),
        stretches: is_root.then_some((1.0, 39.0)).into_iter().collect(),
        charts: vec!["where".to_owned()],
        is_root,
    }
}

/// Berlin's, where a clock changes twice a year.
const RULE: &str = "CET-1CEST,M3.5.0,M10.5.0/3";

fn source(kind: SourceKind, from: &str, watched_s: f64) -> Source {
    let from: Timestamp = from.parse().unwrap();
    Source {
        kind,
        name: None,
        from: Some(from),
        to: later(from, watched_s),
        samples: 2,
        interval_s: Some(Span::from_secs(1)),
        watched_s: Span::from_secs_f64(watched_s),
        unknown_fields: Vec::new(),
        problems: Vec::new(),
        inputs: Vec::new(),
        lines_skipped: 0,
        thinned_to_s: None,
        cut_at_s: (kind == SourceKind::Capture).then_some(60.0),
        clock_steps: Vec::new(),
        history: None,
    }
}

/// The same source, with a clock that was set so many seconds after its beginning by so many.
fn set(source: Source, steps: &[(f64, f64)]) -> Source {
    let steps: Vec<_> =
        steps.iter().map(|(at_s, by_s)| ClockStep { at_s: *at_s, by_s: *by_s }).collect();
    let by_s: f64 = steps.iter().map(|step| step.by_s).sum();
    Source { to: source.to.and_then(|to| later(to, by_s)), clock_steps: steps, ..source }
}

fn later(at: Timestamp, seconds: f64) -> Option<Timestamp> {
    at.checked_add(SignedDuration::from_secs_f64(seconds)).ok()
}

#[test]
fn the_page_tells_times_as_the_text_does() {
    let mut screen = Screen::of_width(80);
    screen.zone = TimeZone::posix(RULE).unwrap();
    let sources = [
        // Two days over the change of October, which ends in the second one; then that of March, and plain days.
        source(SourceKind::Recording, "2026-10-24T20:00:00.250Z", 90_000.0),
        source(SourceKind::Live, "2026-10-25T00:30:00Z", 7_200.0),
        source(SourceKind::Recording, "2026-03-28T12:00:00Z", 604_800.0),
        source(SourceKind::Live, "2026-11-21T02:23:09Z", 40.0),
        // Set forward and back; and begun without a battery, until the network set the time.
        set(
            source(SourceKind::Recording, "2026-11-21T22:30:00Z", 3_600.0),
            &[(600.0, 3_600.0), (1_800.5, -3_599.25)],
        ),
        set(
            source(SourceKind::Recording, "1970-01-01T00:00:39Z", 120.0),
            &[(9.0, 1_794_999_961.0)],
        ),
        source(SourceKind::Text, "2026-11-21T02:23:09Z", 40.0),
        source(SourceKind::Capture, "2026-11-21T02:23:09Z", 600.0),
        source(SourceKind::Capture, "2026-11-21T02:23:09Z", 7_200.0),
    ];
    let cases = sources.iter().map(|source| moments(source, &screen));
    let cases = cases.collect::<Vec<_>>().join(",\n");
    is_fresh("moments.json", &format!("[\n{cases}\n]\n"));
}

/// A clock as the page knows it, and what the text says of moments and stretches spread over its source.
fn moments(source: &Source, screen: &Screen) -> String {
    let clock = ReportClock::new(source, screen);
    let begin = source.from.filter(|_| clock.is_of_the_wall());
    let at = |part: f64| (part * source.watched_s.as_secs_f64() * 1e3).round() / 1e3;
    let when = |at_s: f64| begin.and_then(|_| clock.wall(at_s));
    let moments: Vec<_> = (0..=40_u8)
        .map(|part| {
            let at_s = at(f64::from(part) / 40.0);
            json!([at_s, clock.moment(at_s, when(at_s))])
        })
        .collect();
    let ranges = [(0.0, 0.1), (0.2, 0.9), (0.95, 1.0), (1.0, 1.0)].map(|(from, to)| {
        let (from, to) = (at(from), at(to));
        json!([from, to, clock.range((from, when(from)), (to, when(to)))])
    });
    json!({
        "start_unix_ms": begin.map(Timestamp::as_millisecond),
        "offsets": begin.map_or_else(Vec::new, |_| clock.ahead(0.0, source.watched_s.as_secs_f64())),
        "last_day": begin.and_then(|_| clock.last_day()),
        "last_year": begin.and_then(|_| clock.last_year()),
        "offset_s": source.cut_at_s.unwrap_or_default(),
        "moments": moments,
        "ranges": ranges,
    })
    .to_string()
}
