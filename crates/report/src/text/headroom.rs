//! The screen of `headroom`: first whether it fits and by how much, what limits it and when the worst moment was; then
//! the terms, the cycle, the effect of the demand, and what is unknown.

use super::Screen;
use super::ansi::Style;
use super::check::host_line;
use super::page::{TextPage, piece};
use crate::clock::ReportClock;
use crate::model::headroom::{FitAnswer, HeadroomReport};
use crate::phrases::LabelledText;
use crate::phrases::headroom::{self as phrases, TermLine};

/// Column of the text of a labelled line.
const INDENT: usize = 13;

pub(super) fn draw(report: &HeadroomReport, screen: &Screen) -> String {
    let mut page = TextPage::new(screen);
    let clock = ReportClock::new(&report.source, screen);
    let word = phrases::word(report.answer);
    page.hanging(
        &[piece(style(report.answer), word), piece(Style::Plain, "  ")],
        word.len() + 2,
        Style::Strong,
        &report.headline,
    );
    labelled(&mut page, phrases::first(report, &clock));
    page.gap();
    host_line(&mut page, &report.host, &report.source, &clock, screen);
    if let Some(terms) = &report.terms {
        page.heading(phrases::TERMS);
        for term in phrases::terms(terms) {
            draw_term(&mut page, &term);
        }
    }
    page.gap();
    labelled(&mut page, phrases::further(report, &clock));
    for (heading, lines) in [
        (phrases::OTHER_LIMITS, phrases::other_limits(report)),
        (phrases::NOT_KNOWN, phrases::unknown(report)),
    ] {
        if !lines.is_empty() {
            page.heading(heading);
            labelled(&mut page, lines);
        }
    }
    page.finish()
}

const fn style(answer: FitAnswer) -> Style {
    match answer {
        FitAnswer::Fits => Style::Fine,
        FitAnswer::Tight => Style::Warning,
        FitAnswer::DoesNotFit => Style::Critical,
        FitAnswer::FitsSoFar | FitAnswer::Unknown => Style::Unknown,
    }
}

fn labelled(page: &mut TextPage, lines: Vec<LabelledText>) {
    for LabelledText { label, text } in lines {
        let head = [piece(Style::Faint, format!("{label}:"))];
        page.hanging(&head, INDENT.max(label.len() + 2), Style::Plain, &text);
    }
}

fn draw_term(page: &mut TextPage, term: &TermLine) {
    let head = [
        piece(Style::Faint, format!("  {:1} ", term.sign)),
        piece(Style::Plain, format!("{:12}", term.label)),
        piece(Style::Strong, format!("{:>10}  ", term.size)),
    ];
    page.hanging(&head, 28, Style::Faint, &term.text);
}
