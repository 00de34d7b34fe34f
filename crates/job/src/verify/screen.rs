//! What remedies change, on a terminal: a line of figures for each way, and what of it is certain.

use report::Screen;
use report::text::{Style, TextPage, piece};
use trial::TrialVerdict;

use super::analysis::{VerifiedMetric, VerifiedValue, VerifiedWay, VerifyReport};
use crate::screen::table;

/// Returns the screen of a comparison.
pub fn verify_screen(report: &VerifyReport, screen: &Screen) -> String {
    let mut page = TextPage::new(screen);
    let [baseline, others @ ..] = &report.ways[..] else { return page.finish() };
    for way in others {
        page.hanging(&[], 0, Style::Strong, &finding(way));
    }
    page.gap();
    let is_shown = |metric: &VerifiedMetric| {
        let value = |way: &VerifiedWay| of(way, *metric).is_some_and(|one| one.median > 0.0);
        report.ways.iter().any(value)
    };
    let metrics: Vec<VerifiedMetric> = VerifiedMetric::ALL.into_iter().filter(is_shown).collect();
    let mut rows = vec![
        [report.name.clone()]
            .into_iter()
            .chain(metrics.iter().map(|one| one.name().to_owned()))
            .collect(),
    ];
    for way in [baseline].into_iter().chain(others) {
        let cells = metrics.iter().map(|metric| {
            of(way, *metric).map_or_else(String::new, |value| metric.shown(value.median))
        });
        rows.push([way.name.clone()].into_iter().chain(cells).collect());
    }
    table(&mut page, &rows);
    page.gap();
    let medians = format!(
        "Medians of {} runs each, in balanced blocks, each with the files of the job out of the cache. \
         Intervals of 95 % for all comparisons together; less than 5 % is the same.",
        report.blocks
    );
    let applied = others.iter().filter_map(|way| way.applied.clone());
    for says in applied.chain([medians]) {
        page.hanging(&[piece(Style::Faint, "- ")], 2, Style::Faint, &says);
    }
    page.finish()
}

fn of(way: &VerifiedWay, metric: VerifiedMetric) -> Option<&VerifiedValue> {
    way.values.iter().find(|one| one.metric == metric)
}

/// What a remedy changes, in a sentence.
fn finding(way: &VerifiedWay) -> String {
    let name = &way.name;
    if let Some(fault) = &way.fault {
        return format!("{name}: not compared, as a run ended with {fault}.");
    }
    let mut changed = Vec::new();
    let mut open = Vec::new();
    let mut same = Vec::new();
    for value in &way.values {
        let what = value.metric.name();
        match value.verdict {
            Some(TrialVerdict::Less | TrialVerdict::More) => changed.push(change(value)),
            Some(TrialVerdict::NoEvidence) => open.push(what),
            Some(_) => same.push(what),
            None => {}
        }
    }
    let mut parts = changed;
    if !same.is_empty() {
        parts.push(format!("the same within 5 %: {}", same.join(", ")));
    }
    if !open.is_empty() {
        parts.push(format!("not decided: {}", open.join(", ")));
    }
    if parts.is_empty() {
        return format!("{name}: nothing to compare.");
    }
    format!("{name}: {}.", parts.join("; "))
}

/// `left behind 97 to 99 % less`.
fn change(value: &VerifiedValue) -> String {
    let what = value.metric.name();
    let percent = |ratio: Option<units::Ratio>| {
        let percent = ratio.map_or(0.0, units::Ratio::get).abs() * 100.0;
        percent.min(if value.verdict == Some(TrialVerdict::Less) { 100.0 } else { f64::MAX })
    };
    let (low, high) = (percent(value.low), percent(value.high));
    let more = if value.verdict == Some(TrialVerdict::Less) { "less" } else { "more" };
    let (low, high) = (low.min(high), low.max(high));
    if format!("{low:.0}") == format!("{high:.0}") {
        format!("{what} {high:.0} % {more}")
    } else {
        format!("{what} {low:.0} to {high:.0} % {more}")
    }
}
