//! Tables of owners and sections about a cgroup: every line fits every screen, whatever names come from the host.

use proptest::prelude::*;
use report::model::{
    Around, ChargedPart, GroupFelt, GroupSection, HostFinding, Level, LimitEntry, OwnerRow,
    RestRow, WHERE_BY_SCHEMA, WhereByReport,
};
use report::{Screen, text};
use unicode_width::UnicodeWidthChar;
use units::{Bytes, Count, PerSecond, Ratio, SignedBytes, Span};

use crate::fixtures;
use crate::hostile::any_text;

fn owner(name: &str, bytes: u64, growth: Option<i64>) -> OwnerRow {
    OwnerRow {
        key: name.to_owned(),
        name: name.to_owned(),
        note: name.to_owned(),
        bytes: Bytes::new(bytes),
        share: Some(Ratio::new(0.5)),
        limit: Some(Bytes::new(bytes)),
        of_limit: Some(Ratio::new(1.1)),
        growth: growth.map(SignedBytes::new),
        is_new: growth.is_none(),
    }
}

fn table(name: &str, bytes: u64) -> WhereByReport {
    let model = fixtures::whereabouts();
    WhereByReport {
        schema: WHERE_BY_SCHEMA,
        host: model.host,
        source: model.source,
        by: "container",
        at: None,
        at_s: 1.0,
        total_bytes: Bytes::new(bytes),
        measured: "charged to cgroups",
        is_estimate: true,
        exceeds_bytes: Bytes::new(7),
        grown_for_s: Some(Span::from_secs(60)),
        rows: vec![owner(name, bytes, None), owner("/a", bytes / 2, Some(-5 << 20))],
        rest: vec![RestRow { label: "in cgroups of no container", bytes: Bytes::new(bytes) }],
        unknown: vec![name.to_owned()],
    }
}

fn section(name: &str, bytes: u64) -> GroupSection {
    GroupSection {
        path: name.to_owned(),
        name: Some(name.to_owned()),
        at: None,
        at_s: 1.0,
        current_bytes: Some(Bytes::new(bytes)),
        peak_bytes: bytes.checked_mul(2).map(Bytes::new),
        parts: vec![ChargedPart { label: "anonymous", bytes: Bytes::new(bytes) }],
        working_set_bytes: Some(Bytes::new(bytes)),
        droppable_bytes: Some(Bytes::ZERO),
        unwritten_bytes: Some(Bytes::new(bytes)),
        swap_bytes: Some(Bytes::new(bytes)),
        limits: vec![LimitEntry {
            path: name.to_owned(),
            place: name.to_owned(),
            file: "memory.limit_in_bytes",
            limit_bytes: Bytes::new(bytes),
            used_bytes: Some(Bytes::new(bytes)),
            used: Some(Ratio::new(1.0)),
            room_bytes: Some(Bytes::new(1)),
            undroppable_bytes: Some(Bytes::new(bytes)),
            hits: Some(bytes),
        }],
        felt: GroupFelt {
            during: Span::from_secs(60),
            some: Some(Ratio::new(0.5)),
            full: Some(Ratio::new(0.0)),
            throttled: Some(Count::ZERO),
            hits: Some(Count::new(bytes)),
            kills: None,
            refaults_file: Some(PerSecond::new(1e9)),
            refaults_anon: Some(PerSecond::new(0.0)),
        },
        raising: vec![name.to_owned()],
        unknown: vec![name.to_owned()],
        around: Around {
            verdict: Level::Warning,
            headline: name.to_owned(),
            available_bytes: Some(Bytes::new(bytes)),
            is_same: bytes.is_multiple_of(2),
            findings: vec![HostFinding {
                id: "swap-thrash".to_owned(),
                title: name.to_owned(),
                is_headline: false,
            }],
        },
    }
}

fn check_lines(drawn: &str, screen: &Screen) -> Result<(), TestCaseError> {
    for line in drawn.lines() {
        prop_assert!(!line.chars().any(char::is_control), "{line:?}");
        let width: usize = line.chars().map(|c| c.width().unwrap_or_default()).sum();
        prop_assert!(width <= screen.width(), "{width} {line:?}");
    }
    Ok(())
}

proptest! {
    #[test]
    fn any_table_is_drawn_on_any_screen(name in any_text(), bytes in any::<u64>(), columns in 0usize..200) {
        let screen = Screen::of_width(columns);
        check_lines(&text::where_by(&table(&name, bytes), &screen), &screen)?;
    }

    #[test]
    fn any_group_is_drawn_on_any_screen(name in any_text(), bytes in any::<u64>(), columns in 0usize..200) {
        let screen = Screen::of_width(columns);
        let mut report = fixtures::healthy();
        report.group = Some(section(&name, bytes));
        check_lines(&text::check(&report, &screen), &screen)?;
    }
}

#[test]
fn a_table_keeps_the_end_of_a_long_path() {
    let path = format!("/kubepods/burstable/{}/the-end", "x".repeat(100));
    let drawn = text::where_by(&table(&path, 100 << 20), &Screen::default());
    let row = drawn.lines().find(|line| line.contains("the-end"));
    assert!(row.is_some_and(|row| row.contains('…')), "{drawn}");
}
