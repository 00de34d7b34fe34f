//! The panel of findings: a line each, and below them the selected one in full.

use super::table::TopRow;
use super::{TopFrame, TopView};
use crate::clock::ReportClock;
use crate::model::top::TopReport;
use crate::model::{Finding, Level};
use crate::phrases::occurrences;
use crate::text::Screen;
use crate::text::ansi::Style;
use crate::text::check;
use crate::text::page::{TextPage, piece};
use crate::text::wrap::cut;

/// Column of a finding's sentence, after the longest word for a severity.
const INDENT: usize = 10;

/// Returns the findings that have a row: the roots, then what is over.
pub(super) fn rows(report: &TopReport) -> Vec<TopRow> {
    let roots = report.check.roots();
    roots.map(|(_, one)| TopRow::Finding(one.id.clone(), one.scope.key.clone())).collect()
}

pub(super) fn draw(
    report: &TopReport,
    view: &TopView,
    clock: &ReportClock<'_>,
    (screen, room): (&Screen, usize),
) -> TopFrame {
    let mut page = TextPage::new(screen);
    let roots: Vec<(usize, &Finding)> = report.check.roots().collect();
    if roots.is_empty() {
        nothing(&mut page, report, screen);
        return TopFrame { lines: page.into_lines(), room, ..TopFrame::default() };
    }
    let selected = view.selected.min(roots.len() - 1);
    // The list has at most a third of the panel, so that the selected one can be read.
    let most = (room / 3).max(1);
    let first = (selected + 1).saturating_sub(most);
    for (_, finding) in roots.iter().skip(first).take(most) {
        let when = occurrences::when(clock, finding);
        let when = when.map_or_else(String::new, |when| format!("  {when}"));
        let text = cut(&format!("{}{when}", finding.title), screen.width() - INDENT);
        let word = format!("{:<INDENT$}", finding.severity.word());
        page.line(&[piece(finding.severity.into(), word), piece(Style::Plain, text)]);
    }
    page.gap();
    let mut lines = page.into_lines();
    let (index, _) = roots[selected];
    lines.extend(check::answer_page(&report.check, index, &screen.reading()).into_lines());
    TopFrame { lines, selected: Some(selected - first), room, ..TopFrame::default() }
}

/// What a healthy host shows: what looks bad and is not.
fn nothing(page: &mut TextPage, report: &TopReport, screen: &Screen) {
    page.line(&[piece(
        Style::Plain,
        match report.check.verdict {
            Level::Unknown => "Nothing is known to be wrong; too little was seen to say more.",
            _ => "Nothing is wrong at this moment.",
        },
    )]);
    let notes = &report.check.notes;
    if !notes.is_empty() {
        page.gap();
        page.line(&[piece(Style::Strong, "Looks bad, is harmless, or limits this answer:")]);
    }
    for note in notes {
        check::entry(page, &note.id, &note.whole_title(), screen);
    }
    let quiet = report.check.clear.len();
    let open = report.check.not_evaluated.len();
    page.gap();
    let text = format!("{quiet} rules looked and found nothing; {open} could not be evaluated.");
    page.hanging(&[], 0, Style::Faint, &text);
}
