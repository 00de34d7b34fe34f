//! Where memory was on both sides, with a bar for each amount as a share of RAM.

use chart::Colour;

use super::super::escape::{Html, Tag, tag};
use super::super::memory;
use super::super::page::section;
use super::{CompareReport, Extent, OfSide, said, tables};
use crate::model::AmountEntry;

/// A bar's length in its own units: all of RAM.
const LENGTH: f64 = 100.0;

pub(super) fn draw(html: &mut Html, report: &CompareReport) {
    let [changed, all] = [Extent::Changed, Extent::All].map(|extent| said::memory(report, extent));
    section(
        html,
        ("memory", "memory-heading"),
        changed.heading,
        |html| {
            tables(html, &changed, &all, |html, row, side| {
                let entry = row.entry.and_then(|index| report.memory.get(index));
                let share = entry.and_then(|entry| match side {
                    OfSide::Before => entry.before_share,
                    OfSide::After => entry.after_share,
                });
                if let Some((entry, share)) = entry.zip(share) {
                    bar(html, entry, share);
                }
            });
        },
    );
}

fn bar(html: &mut Html, entry: &AmountEntry, share: f64) {
    let svg = Tag::of("svg", "share")
        .with("viewBox", "0 0 100 6")
        .with("preserveAspectRatio", "none")
        .with("aria-hidden", "true");
    html.within(svg, |html| {
        let fill = memory::fill(Colour::of_term(&entry.name));
        let rect = tag("rect")
            .with("height", "6")
            .showing("width", format!("{:.1}", share.clamp(0.0, 1.0) * LENGTH));
        let rect = match entry.kind.as_str() {
            "term" => rect.with("fill", &fill),
            _ => rect.with("class", "plain"),
        };
        html.within(rect, |_| {});
    });
}
