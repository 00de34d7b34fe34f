//! The terminal's text of a report: the verdict first, in words; colour only repeats them.
//!
//! Every line is written by one sink that makes text from the host harmless ([`timeline::plain`]): no name can move the
//! cursor, change colours or reorder a line. Widths are in terminal cells. Cost: proportional to the report.

mod ansi;
mod bar;
mod brief;
mod check;
mod compare;
mod events;
mod explain;
mod finding;
mod group;
mod growth;
mod headroom;
mod heap_picture;
mod input;
mod list;
mod markdown;
mod memory;
mod not_evaluated;
mod page;
mod runtime_stats;
mod spark;
mod status;
pub mod top;
mod tree;
mod where_by;
mod where_tree;
mod wrap;

pub use crate::plain::width;
pub use crate::screen::{ColourMode, Detail, Screen};
pub use ansi::Style;
pub use brief::{PerformanceDatum, PerformanceValue};
pub use page::{StyledLine, StyledText, TextPage, piece};

use jiff::Timestamp;

use crate::clock::ReportClock;
use crate::model::status::StatusReport;
use crate::model::{
    Answer, CompareReport, EventsReport, Report, RuleEntry, SignalEntry, WhereByReport, WhereReport,
};

/// Returns the answer of `check`.
pub fn check(report: &Report, screen: &Screen) -> String {
    check::draw(report, screen)
}

/// Returns the answer of `check` without the line of the host, as lines for a program that draws them itself.
pub fn check_lines(report: &Report, screen: &Screen) -> Vec<StyledLine> {
    let mut page = TextPage::new(screen);
    check::below_host(&mut page, report, &ReportClock::new(&report.source, screen), screen);
    page.into_lines()
}

/// Returns one finding in full by its index, as lines.
pub fn finding_lines(report: &Report, index: usize, screen: &Screen) -> Vec<StyledLine> {
    check::answer_page(report, index, screen).into_lines()
}

/// Returns the full answer of one rule, findings and notes; `None` if it has neither.
pub fn answer(report: &Report, id: &str, screen: &Screen) -> Option<String> {
    check::answer(report, id, screen)
}

/// Returns the answers of `check` about several sources, without those that could not be read.
pub fn check_all(answers: &[Answer], screen: &Screen) -> String {
    each(answers, |report| check(report, screen))
}

/// Returns the answer of `check` in one line for a monitoring system, with its performance data.
pub fn brief(report: &Report, data: &[PerformanceDatum], screen: &Screen) -> String {
    brief::draw(report, data, screen)
}

/// The same where there is no answer.
pub fn brief_unknown(why: &str) -> String {
    brief::unknown(why)
}

/// What was recognised in several sources, block by block.
pub fn explain_inputs(answers: &[Answer], screen: &Screen) -> String {
    each(answers, |report| explain_input(report, screen))
}

fn each(answers: &[Answer], draw: impl Fn(&Report) -> String) -> String {
    let reports = answers.iter().filter_map(Answer::report);
    reports.map(draw).collect::<Vec<_>>().join("\n")
}

/// What was recognised in a text, block by block.
pub fn explain_input(report: &Report, screen: &Screen) -> String {
    input::explain(&report.source, screen)
}

/// The answer of `where`.
pub fn where_tree(report: &WhereReport, screen: &Screen) -> String {
    where_tree::draw(report, screen)
}

/// The answer of `where --by`.
pub fn where_by(report: &WhereByReport, screen: &Screen) -> String {
    where_by::draw(report, screen)
}

/// Returns how many processes' PSS `where` did not read and how to read it, if any. `deep`: all were requested.
pub fn pss_not_read(processes: u64, deep: bool) -> Option<String> {
    where_tree::pss_not_read(processes, deep)
}

/// The answer of `events`.
pub fn events(report: &EventsReport, screen: &Screen) -> String {
    events::draw(report, screen)
}

/// The answer of `headroom`.
pub fn headroom(report: &crate::model::headroom::HeadroomReport, screen: &Screen) -> String {
    headroom::draw(report, screen)
}

/// The answer of `compare`.
pub fn compare(report: &CompareReport, screen: &Screen) -> String {
    compare::draw(report, screen)
}

/// The answer of `record --status`, as of `now`.
pub fn status(report: &StatusReport, screen: &Screen, now: Timestamp) -> String {
    status::draw(report, screen, now)
}

/// Returns the screen of `growth`.
pub fn growth(report: &crate::model::growth::GrowthReport, screen: &Screen) -> String {
    growth::draw(report, screen)
}

/// Returns the screen of `explain`.
pub fn explain(report: &crate::model::explain::ExplainReport, screen: &Screen) -> String {
    explain::draw(report, screen)
}

/// Returns a malloc heap as a picture of characters, at most 27 lines at 80 columns.
pub fn heap_picture(report: &crate::model::explain::ExplainReport, screen: &Screen) -> String {
    heap_picture::draw(report, screen)
}

/// Returns the screen of a runtime's own report.
pub fn runtime_stats(
    report: &crate::model::runtime_stats::RuntimeStatsReport,
    screen: &Screen,
) -> String {
    runtime_stats::draw(report, screen)
}

/// Returns a graph of one line and at most `cells` cells, from zero to its peak, with gaps where nothing was measured.
pub fn sparkline(values: &[Option<f64>], cells: usize) -> String {
    spark::graph(values, cells)
}

/// Returns rows of columns, each with a text beside it that is wrapped on a terminal.
pub fn columns(rows: &[(String, String)], screen: &Screen) -> String {
    list::columns(rows, screen)
}

/// All rules, one or two lines each.
pub fn rules(rules: &[RuleEntry], screen: &Screen) -> String {
    list::rules(rules, screen)
}

/// One rule, explained.
pub fn rule(rule: &RuleEntry, screen: &Screen) -> String {
    list::rule(rule, screen)
}

/// All signals, one or two lines each.
pub fn signals(signals: &[SignalEntry], screen: &Screen) -> String {
    list::signals(signals, screen)
}

/// One signal, explained.
pub fn signal(signal: &SignalEntry, screen: &Screen) -> String {
    list::signal(signal, screen)
}
