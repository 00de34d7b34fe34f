//! How fast things went on both sides, each with its curve; the two of a row are drawn on the same scale.

use super::super::escape::Html;
use super::super::page::section;
use super::super::spark::{self, Spark};
use super::{CompareReport, Extent, OfSide, said, tables};
use crate::model::RateEntry;

pub(super) fn draw(html: &mut Html, report: &CompareReport) {
    let [changed, all] = [Extent::Changed, Extent::All].map(|extent| said::rates(report, extent));
    section(html, ("rates", "rates-heading"), changed.heading, |html| {
        tables(html, &changed, &all, |html, row, side| {
            let entry = row.entry.and_then(|index| report.rates.get(index));
            if let Some(entry) = entry {
                curve(html, report, entry, side);
            }
        });
    });
}

fn curve(html: &mut Html, report: &CompareReport, entry: &RateEntry, side: OfSide) {
    let (of, spread) = match side {
        OfSide::Before => (&report.before, &entry.before),
        OfSide::After => (&report.after, &entry.after),
    };
    let Some(spread) = spread else {
        return;
    };
    let both = [&entry.before, &entry.after].into_iter().flatten();
    let values = both.flat_map(|spread| spread.course.iter().flatten());
    let top = values.copied().fold(0.0, f64::max);
    // What never moved on either side is told by its 0.
    if top > 0.0 {
        let spark = Spark {
            times: &of.times,
            values: &spread.course,
            top: Some(top),
            ..Spark::default()
        };
        spark::draw(html, &spark);
    }
}
