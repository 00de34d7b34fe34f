//! The end of `check`: how many rules could not be evaluated and how many found nothing, in one line; in full, each by its
//! need or reason.

use super::ansi::Style;
use super::check::entry;
use super::page::{TextPage, piece};
use super::{Detail, Screen};
use crate::model::{NeedKind, NotEvaluated, Report, by_need};

pub(super) fn draw(page: &mut TextPage, report: &Report, screen: &Screen) {
    match screen.detail {
        Detail::Brief => in_brief(page, report),
        Detail::All => in_full(page, report, screen),
    }
}

/// Counts the rules, but names those for which the readings could mean a finding: finer ones may change the verdict.
fn in_brief(page: &mut TextPage, report: &Report) {
    let (undecided, others): (Vec<_>, Vec<_>) =
        report.not_evaluated.iter().partition(|rule| rule.kind == NeedKind::Precision);
    if !undecided.is_empty() {
        page.heading("Cannot tell:");
        for (needs, alike) in by_need(undecided) {
            bullet(page, &lacking(needs, &alike));
        }
    }
    let of_root = others.iter().filter(|rule| rule.kind == NeedKind::Root).count();
    let of_root = match of_root {
        0 => String::new(),
        1 => " (1 needs root)".to_owned(),
        n => format!(" ({n} need root)"),
    };
    let text = match (others.len(), report.clear.len()) {
        (0, 0) => return,
        (0, clear) => format!("{} found nothing", rules(clear)),
        (open, 0) => format!("{} not evaluated{of_root}", rules(open)),
        (open, clear) => format!("{} not evaluated{of_root}, {clear} found nothing", rules(open)),
    };
    page.gap();
    page.hanging(&[], 0, Style::Faint, &format!("{text}: memtide check --all"));
}

fn in_full(page: &mut TextPage, report: &Report, screen: &Screen) {
    if !report.not_evaluated.is_empty() {
        page.heading(&format!("Not evaluated ({}):", report.not_evaluated.len()));
        for (needs, alike) in by_need(&report.not_evaluated) {
            bullet(page, &with_signals(lacking(needs, &alike), &alike));
        }
    }
    if !report.clear.is_empty() {
        page.heading(&format!("{} found nothing:", rules(report.clear.len())));
        for rule in &report.clear {
            entry(page, &rule.id, &rule.because, screen);
        }
    }
}

fn bullet(page: &mut TextPage, text: &str) {
    page.hanging(&[piece(Style::Faint, "   -")], 5, Style::Plain, text);
}

fn rules(count: usize) -> String {
    match count {
        1 => "1 rule".to_owned(),
        n => format!("{n} rules"),
    }
}

/// `swap-thrash, swap-full need /proc/vmstat`.
fn lacking(needs: &str, alike: &[&NotEvaluated]) -> String {
    let ids: Vec<&str> = alike.iter().map(|rule| rule.id.as_str()).collect();
    let verb = if ids.len() == 1 { "needs" } else { "need" };
    format!("{} {verb} {needs}", ids.join(", "))
}

/// The same with the names of the signals and facts: `… need /proc/vmstat (vm.pswpin)`.
fn with_signals(text: String, alike: &[&NotEvaluated]) -> String {
    let mut missing: Vec<&str> = Vec::new();
    for name in alike.iter().flat_map(|rule| &rule.missing) {
        if !missing.contains(&name.as_str()) {
            missing.push(name);
        }
    }
    if missing.is_empty() { text } else { format!("{text} ({})", missing.join(", ")) }
}
