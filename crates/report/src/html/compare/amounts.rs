//! Where memory was: a bar of RAM for each side, both on one scale, with a legend that gives each part's change.

use chart::Colour;
use diagnose::accounting::TermKind;
use units::{Bytes, SignedBytes};

use super::table::{table, tables};
use crate::html::block::section;
use crate::html::escape::{Html, Tag, tag};
use crate::html::memory::{self, BarPart};
use crate::model::{AmountEntry, AmountKind, CompareReport, Side};
use crate::phrases::compare::{self as phrases, ComparisonRow, ComparisonTable, Extent};

pub(super) fn draw(html: &mut Html, report: &CompareReport) {
    let [changed, all] =
        [Extent::Changed, Extent::All].map(|extent| phrases::memory(report, extent));
    section(html, ("memory", "memory-heading"), changed.heading, |html| {
        bars(html, report);
        // Terms of RAM add up; other amounts are listed separately.
        let is_term = |row: &ComparisonRow| {
            entry(report, row).is_some_and(|entry| entry.kind == AmountKind::Term)
        };
        let (mut parts, others): (Vec<_>, Vec<_>) = all.rows.into_iter().partition(is_term);
        parts.retain(|row| entry(report, row).is_some_and(is_there));
        legend(html, report, parts);
        let (_, moved): (Vec<_>, Vec<_>) = changed.rows.into_iter().partition(is_term);
        let beside = |rows, below| ComparisonTable { heading: changed.heading, rows, below };
        tables(html, &beside(moved, changed.below), &beside(others, all.below));
    });
}

fn entry<'a>(report: &'a CompareReport, row: &ComparisonRow) -> Option<&'a AmountEntry> {
    report.memory.get(row.entry?)
}

/// Whether either side has a non-zero amount, so that its colour is in a bar.
fn is_there(entry: &AmountEntry) -> bool {
    [entry.before_bytes, entry.after_bytes]
        .iter()
        .flatten()
        .any(|bytes| *bytes != SignedBytes::default())
}

/// Selects one side's amount of an entry.
type OfSide = fn(&AmountEntry) -> Option<SignedBytes>;

fn bars(html: &mut Html, report: &CompareReport) {
    let sides: [(&str, &Side, OfSide); 2] = [
        ("before", &report.before, |entry| entry.before_bytes),
        ("after", &report.after, |entry| entry.after_bytes),
    ];
    let largest = sides.iter().filter_map(|(_, side, _)| side.host.ram_bytes);
    let Some(largest) = largest.max() else {
        return;
    };
    html.within(Tag::of("div", "ram"), |html| {
        for (word, side, of_side) in sides {
            let parts = parts(report, of_side);
            if parts.is_empty() {
                continue;
            }
            html.within(Tag::of("p", "of"), |html| {
                html.tagged(tag("b"), word);
                html.raw(" ").text(&typical(side));
            });
            memory::bar(html, &parts, largest);
        }
    });
}

/// Returns how much RAM there is and which time is shown.
fn typical(side: &Side) -> String {
    let ram = side.host.ram_bytes.map_or_else(String::new, |ram| format!("{ram} of RAM"));
    match side.typical_s {
        Some(at) => format!("{ram}, {} after the beginning", at),
        None => ram,
    }
}

/// The terms of a side in the order of the bar.
fn parts(report: &CompareReport, of_side: OfSide) -> Vec<BarPart<'_>> {
    let terms = report.memory.iter().filter(|entry| entry.kind == AmountKind::Term);
    let mut parts: Vec<(Option<TermKind>, BarPart<'_>)> = terms
        .filter_map(|term| {
            let bytes =
                Some(of_side(term)?.at_least_zero()).filter(|bytes| *bytes > Bytes::ZERO)?;
            let part = (term.label.as_str(), colour(term), bytes);
            Some((TermKind::from_id(&term.name), part))
        })
        .collect();
    parts.sort_by_key(|(place, _)| *place);
    parts.into_iter().map(|(_, part)| part).collect()
}

fn colour(term: &AmountEntry) -> Colour {
    TermKind::from_id(&term.name).map_or(Colour::Unaccounted, Colour::from_term)
}

/// Draws the legend: all parts in the order of the bars, each with its colour.
fn legend(html: &mut Html, report: &CompareReport, mut rows: Vec<ComparisonRow>) {
    if rows.is_empty() {
        return;
    }
    let place =
        |row: &ComparisonRow| entry(report, row).map(|entry| TermKind::from_id(&entry.name));
    rows.sort_by_key(place);
    let parts = ComparisonTable { heading: "", rows, below: Vec::new() };
    table(html, &parts, |html, row| {
        if let Some(entry) = entry(report, row) {
            memory::key(html, colour(entry));
        }
    });
}
