//! The answer on a terminal.

use report::Screen;
use report::text::{Style, TextPage, piece, width};

use crate::analysis::{TrialMetric, TrialVerdict};
use crate::model::TrialReport;
use crate::words::{self, Table, VariantRow};

/// Cells between two columns.
const GAP: usize = 2;

/// Returns the screen of a trial. With every detail, all metrics are shown.
pub fn trial_screen(report: &TrialReport, screen: &Screen) -> String {
    let mut page = TextPage::new(screen);
    let head = words::headline(report);
    page.hanging(&[], 0, Style::Strong, &head);
    page.hanging(&[], 0, Style::Faint, &words::what_was_run(report));
    let all = screen.detail == report::text::Detail::All;
    let metrics: Vec<TrialMetric> =
        TrialMetric::ALL.into_iter().filter(|metric| all || words::is_shown(*metric)).collect();
    for some in fitting(report, &metrics, screen.width()) {
        page.gap();
        draw(&mut page, report, &words::table(report, &some));
    }
    if !report.analysis.metrics.is_empty() {
        page.hanging(&[], 0, Style::Faint, &words::legend(report));
    }
    page.gap();
    for remark in words::remarks(report) {
        page.hanging(&[piece(Style::Faint, "- ")], 2, Style::Plain, &remark);
    }
    page.hanging(
        &[],
        0,
        Style::Faint,
        &format!("Runs: {0} (memtide trial --show {0})", report.directory),
    );
    page.finish()
}

/// Splits metrics into tables that fit the width; each has one metric at least.
fn fitting(report: &TrialReport, metrics: &[TrialMetric], width: usize) -> Vec<Vec<TrialMetric>> {
    let has = |metric: &&TrialMetric| report.analysis.metric(**metric).is_some();
    let mut tables: Vec<Vec<TrialMetric>> = Vec::new();
    for metric in metrics.iter().filter(has) {
        let fits = tables.last().is_some_and(|last| {
            let wider: Vec<TrialMetric> = last.iter().copied().chain([*metric]).collect();
            let table = words::table(report, &wider);
            widths(&table).iter().map(|cells| cells + GAP).sum::<usize>() <= width + GAP
        });
        match tables.last_mut() {
            Some(last) if fits => last.push(*metric),
            _ => tables.push(vec![*metric]),
        }
    }
    if tables.is_empty() {
        tables.push(Vec::new());
    }
    tables
}

/// Cells of each column: the name, the metrics.
fn widths(table: &Table) -> Vec<usize> {
    let widest = |of: &dyn Fn(&VariantRow) -> usize| table.rows.iter().map(of).max().unwrap_or(0);
    let metric = |at: usize| widest(&|row| cell(row, at).map_or(0, |(text, _)| width(&text)));
    // A longer name has a line of its own.
    const NAME_MAX: usize = 24;
    let names = widest(&|row| width(&row.name).min(NAME_MAX));
    let headings = table.columns.iter().enumerate();
    let mut all = vec![names];
    all.extend(headings.map(|(at, heading)| width(heading).max(metric(at))));
    all
}

fn draw(page: &mut TextPage, report: &TrialReport, table: &Table) {
    let widths = widths(table);
    let mut head = vec![piece(Style::Faint, padded("", widths[0]))];
    for (heading, cells) in table.columns.iter().zip(&widths[1..]) {
        head.push(piece(Style::Faint, padded(heading, *cells)));
    }
    page.line(&head);
    for row in &table.rows {
        let mut name = row.name.clone();
        if width(&name) > widths[0] {
            page.line(&[piece(Style::Strong, name)]);
            name = String::new();
        }
        let style =
            if words::is_recommended(report, row.variant) { Style::Fine } else { Style::Strong };
        let mut pieces = vec![piece(style, padded(&name, widths[0]))];
        let out = report.analysis.variants.get(row.variant).and_then(|one| one.out.as_deref());
        if let Some(out) = out {
            page.hanging(&pieces, widths[0] + GAP, Style::Warning, out);
            continue;
        }
        for at in 0..table.columns.len() {
            if let Some((text, style)) = cell(row, at) {
                pieces.push(piece(style, padded(&text, widths[at + 1])));
            }
        }
        page.line(&pieces);
    }
}

fn padded(text: &str, cells: usize) -> String {
    format!("{text}{}", " ".repeat((cells + GAP).saturating_sub(width(text))))
}

/// A cell with its verdict.
fn cell(row: &VariantRow, at: usize) -> Option<(String, Style)> {
    let cell = row.cells.get(at)?;
    Some(match cell.verdict {
        Some(verdict) => (format!("{} {}", cell.text, verdict.sign()), style(verdict)),
        None => (cell.text.clone(), Style::Plain),
    })
}

const fn style(verdict: TrialVerdict) -> Style {
    match verdict {
        TrialVerdict::Less => Style::Fine,
        TrialVerdict::More => Style::Warning,
        TrialVerdict::NoEvidence => Style::Faint,
        TrialVerdict::LessUnderMargin | TrialVerdict::MoreUnderMargin | TrialVerdict::Same => {
            Style::Plain
        }
    }
}
