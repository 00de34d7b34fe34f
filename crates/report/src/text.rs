//! The terminal's text, drawn from the report: the verdict first, in words; colour only repeats what they say.
//!
//! Every line goes through one sink that makes text from the host harmless ([`escape`]): no name can move the cursor,
//! change colours, or reorder a line. Widths are those of terminal cells. Cost: proportional to the report.

mod bar;
pub(crate) mod check;
mod compare;
pub mod escape;
mod events;
mod finding;
mod headroom;
mod input;
mod list;
mod markdown;
mod memory;
mod page;
mod place;
pub(crate) mod when;
mod wrap;

use jiff::tz::TimeZone;

use crate::model::{CompareReport, EventsReport, Report, RuleEntry, SignalEntry, WhereReport};

/// Whether to colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Colour {
    /// No escape sequences at all.
    #[default]
    Plain,
    /// ANSI sequences of the 256-colour palette.
    Ansi,
}

/// How much of a report to show.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Detail {
    /// What a reader needs to act.
    #[default]
    Brief,
    /// Also what was looked for and not found, and every rule that could not look.
    All,
}

/// What is drawn on.
#[derive(Debug, Clone)]
pub struct Screen {
    width: usize,
    /// Whether to colour.
    pub colour: Colour,
    /// How much to show.
    pub detail: Detail,
    /// In which zone the host's people read clocks.
    pub zone: TimeZone,
    /// Whether lines of lists are left as long as they are: in a file or a pipe each is one record.
    pub unbroken: bool,
}

impl Screen {
    /// Narrower than this, words would be cut.
    const NARROWEST: usize = 40;
    /// Wider than this, lines are hard to read.
    const WIDEST: usize = 120;

    /// A plain, brief screen of so many columns, held between 40 and 120, in UTC.
    pub fn of_width(columns: usize) -> Self {
        Self {
            width: columns.clamp(Self::NARROWEST, Self::WIDEST),
            colour: Colour::default(),
            detail: Detail::default(),
            zone: TimeZone::UTC,
            unbroken: false,
        }
    }

    /// Its columns.
    pub const fn width(&self) -> usize {
        self.width
    }
}

impl Default for Screen {
    fn default() -> Self {
        Self::of_width(80)
    }
}

/// The answer of `check`.
pub fn check(report: &Report, screen: &Screen) -> String {
    check::draw(report, screen)
}

/// What was recognised in a text, block by block.
pub fn explain_input(report: &Report, screen: &Screen) -> String {
    input::explain(&report.source, screen)
}

/// The answer of `where`.
pub fn place(report: &WhereReport, screen: &Screen) -> String {
    place::draw(report, screen)
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
