//! The screen of `compare`: both sources, the sentence, and what changed as columns `before  after  change`; what did not
//! change is counted.

use units::{Bytes, Count, Ratio};

use super::page::{Page, Piece, Style, piece};
use super::when::Clock;
use super::wrap::{cut, pad, width, wrap_items};
use super::{Detail, Screen, check};
use crate::model::{
    AmountEntry, CompareReport, Direction, FactEntry, FindingEntry, RateEntry, Side, SpreadEntry,
};

/// Where the verdict's sentences begin, as those of `check`.
const VERDICT_INDENT: usize = 10;
/// Cells of a value.
const VALUE: usize = 14;
/// Cells of a change.
const CHANGE: usize = 11;
/// So many rows of a table are shown unless all are asked for.
const MOST_ROWS: usize = 10;
/// So many facts.
const MOST_FACTS: usize = 12;
/// So many names of what only one side tells.
const MOST_NAMES: usize = 8;

pub(super) fn draw(report: &CompareReport, screen: &Screen) -> String {
    let mut it = Sheet {
        page: Page::new(screen),
        screen,
        report,
    };
    it.sides();
    it.basis();
    it.verdict();
    it.findings();
    it.memory();
    it.rates();
    it.facts();
    it.page.finish()
}

/// The screen being drawn.
struct Sheet<'a> {
    page: Page,
    screen: &'a Screen,
    report: &'a CompareReport,
}

/// A row of a table: what it is about, the two values, the change; how they stand out.
struct Row {
    label: String,
    before: String,
    after: String,
    change: String,
    style: Style,
    /// A line below it; empty for none.
    more: String,
}

impl Sheet<'_> {
    fn is_all(&self) -> bool {
        self.screen.detail == Detail::All
    }

    fn sides(&mut self) {
        for (name, side) in [
            ("before", &self.report.before),
            ("after", &self.report.after),
        ] {
            let clock = Clock::new(&side.source, self.screen);
            let items = check::host_items(&side.host, &side.source, &clock);
            let lines = wrap_items(&items, " · ", self.screen.width().saturating_sub(8));
            for (nth, line) in lines.into_iter().enumerate() {
                let head = if nth == 0 { name } else { "" };
                self.page.line(&[
                    piece(Style::Strong, pad(head, 8)),
                    piece(Style::Faint, line),
                ]);
            }
        }
    }

    fn basis(&mut self) {
        if self.report.basis.is_empty() {
            return;
        }
        self.page.gap();
        for sentence in &self.report.basis {
            let head = [piece(Style::Warning, "!")];
            self.page.hanging(&head, 2, Style::Plain, sentence);
        }
    }

    fn verdict(&mut self) {
        let (word, style) = match self.report.direction {
            Direction::Better => ("BETTER", Style::Fine),
            Direction::Same => ("SAME", Style::Fine),
            Direction::Worse => ("WORSE", Style::Critical),
            Direction::Unknown => ("UNKNOWN", Style::Unknown),
        };
        self.page.gap();
        let head = [piece(style, word)];
        self.page
            .hanging(&head, VERDICT_INDENT, Style::Strong, &self.report.headline);
    }

    fn findings(&mut self) {
        let row = |finding: &FindingEntry| {
            let severity = |found: &Option<crate::model::FoundEntry>| {
                found.as_ref().map_or("-".to_owned(), |found| {
                    format!("{:?}", found.severity).to_lowercase()
                })
            };
            Row {
                label: finding.id.clone(),
                before: severity(&finding.before),
                after: severity(&finding.after),
                change: match finding.change.as_str() {
                    "unknown" => "cannot tell".to_owned(),
                    change => change.to_owned(),
                },
                style: Style::Plain,
                more: String::new(),
            }
        };
        let level = |side: &Side| format!("{:?}", side.verdict).to_lowercase();
        let (before, after) = (level(&self.report.before), level(&self.report.after));
        let mut rows = vec![Row {
            label: "verdict".to_owned(),
            change: format!("{:?}", self.report.direction).to_lowercase(),
            before,
            after,
            style: Style::Strong,
            more: String::new(),
        }];
        rows.extend(self.report.findings.iter().map(row));
        self.table("Findings", rows, usize::MAX);
    }

    fn memory(&mut self) {
        let is_other_size = self.is_other_size();
        let size = |bytes: Option<i64>, share: Option<f64>| match (bytes, share) {
            (None, _) => "-".to_owned(),
            (Some(bytes), Some(share)) if is_other_size => {
                let percent = Ratio::new(share).to_string().replace(' ', "");
                format!("{} {percent}", signed(bytes))
            }
            (Some(bytes), _) => signed(bytes),
        };
        let row = |amount: &AmountEntry| Row {
            label: match amount.kind.as_str() {
                "owner" => format!("by {}", amount.label),
                _ => amount.label.clone(),
            },
            before: size(amount.before_bytes, amount.before_share),
            after: size(amount.after_bytes, amount.after_share),
            change: amount_change(amount, is_other_size),
            style: Style::Plain,
            more: String::new(),
        };
        let all = self.is_all();
        let told = |amount: &&AmountEntry| all || is_told(amount);
        let (told, rest): (Vec<_>, Vec<_>) = self.report.memory.iter().partition(told);
        let rows = told.into_iter().map(row).collect();
        self.table("Memory (typical sample of each)", rows, MOST_ROWS);
        if !self.report.memory.is_empty() && !all {
            let noise = rest
                .iter()
                .filter(|a| a.certainty.is_some() && a.kind != "owner");
            self.same(
                noise.count(),
                "amounts differ by less than 1 % of RAM, or than within a side",
            );
        }
    }

    fn rates(&mut self) {
        let all = self.is_all();
        let row = |rate: &RateEntry| Row {
            label: rate.label.clone(),
            before: text(rate.before.as_ref()),
            after: text(rate.after.as_ref()),
            change: match (rate.certainty, &rate.change) {
                (Some("too-few"), _) => "too few".to_owned(),
                (Some("noise"), _) => "~".to_owned(),
                (Some(_), Some(change)) => change.clone(),
                _ if rate.before.is_some() => "before only".to_owned(),
                _ => "after only".to_owned(),
            },
            style: Style::Plain,
            more: match (&rate.before, &rate.after, rate.lead) {
                (Some(before), Some(after), Some(lead)) if all => spreads(before, after, lead),
                _ => String::new(),
            },
        };
        let is_told = |rate: &&RateEntry| {
            let moved = |it: &Option<SpreadEntry>| it.as_ref().is_some_and(|it| it.mean > 0.0);
            match rate.certainty {
                Some("clear") => true,
                Some("too-few") => moved(&rate.before) || moved(&rate.after),
                Some(_) => all,
                None => moved(&rate.before) || moved(&rate.after),
            }
        };
        let (told, rest): (Vec<_>, Vec<_>) = self.report.rates.iter().partition(is_told);
        let noise = rest.iter().filter(|rate| rate.certainty.is_some()).count();
        let rows = told.into_iter().map(row).collect();
        self.table("Rates (mean over the time)", rows, MOST_ROWS + 4);
        if !self.report.rates.is_empty() && !all {
            self.same(
                noise,
                "rates do not differ by more than the intervals within a side",
            );
        }
    }

    fn facts(&mut self) {
        let row = |fact: &FactEntry| Row {
            label: fact.name.clone(),
            before: fact.before.clone().unwrap_or_default(),
            after: fact.after.clone().unwrap_or_default(),
            change: if fact.explains { "explains" } else { "" }.to_owned(),
            style: if fact.explains {
                Style::Strong
            } else {
                Style::Plain
            },
            more: String::new(),
        };
        let facts = &self.report.facts;
        let (differ, one): (Vec<_>, Vec<_>) = facts
            .iter()
            .partition(|fact| fact.before.is_some() && fact.after.is_some());
        let rows = differ.into_iter().map(row).collect();
        self.table("Facts that differ", rows, MOST_FACTS);
        for (name, is_there) in [
            (
                "before",
                (|fact: &FactEntry| fact.before.is_some()) as fn(&FactEntry) -> bool,
            ),
            ("after", |fact| fact.after.is_some()),
        ] {
            let names = one.iter().filter(|fact| is_there(fact));
            let names: Vec<&str> = names.map(|fact| fact.name.as_str()).collect();
            if names.is_empty() {
                continue;
            }
            let most = if self.is_all() {
                usize::MAX
            } else {
                MOST_NAMES
            };
            let shown = names
                .iter()
                .take(most)
                .copied()
                .collect::<Vec<_>>()
                .join(", ");
            let more = names.len().saturating_sub(most);
            let more = match more {
                0 => String::new(),
                n => format!(" and {} more", Count::new(n as u64)),
            };
            let told = format!("Told {name} only, so not compared: {shown}{more}.");
            self.page.hanging(&[], 3, Style::Faint, &told);
        }
    }

    /// Whether the hosts' RAM differs: then amounts alone say little.
    fn is_other_size(&self) -> bool {
        self.report
            .facts
            .iter()
            .any(|fact| fact.name == "ram" && fact.before.is_some() && fact.after.is_some())
    }

    fn same(&mut self, n: usize, what: &str) {
        if n > 0 {
            let text = format!("{} {what}.", Count::new(n as u64));
            self.page.hanging(&[], 3, Style::Faint, &text);
        }
    }

    fn table(&mut self, heading: &str, rows: Vec<Row>, most: usize) {
        self.page.gap();
        let label = self.label_cells();
        self.page.line(&[
            piece(Style::Strong, pad(&cut(heading, label + 2), label + 3)),
            piece(
                Style::Faint,
                format!("{:>VALUE$} {:>VALUE$}  change", "before", "after"),
            ),
        ]);
        if rows.is_empty() {
            self.page.line(&[piece(Style::Faint, "   none")]);
        }
        let most = if self.is_all() { usize::MAX } else { most };
        let left = rows.len().saturating_sub(most);
        for row in rows.into_iter().take(most) {
            self.row(&row, label);
        }
        if left > 0 {
            let text = format!(
                "{} smaller changes are left out; --all shows them.",
                Count::new(left as u64)
            );
            self.page.hanging(&[], 3, Style::Faint, &text);
        }
    }

    fn label_cells(&self) -> usize {
        let taken = 3 + 2 * (VALUE + 1) + 2 + CHANGE;
        self.screen.width().saturating_sub(taken)
    }

    /// A row whose values are too wide for their columns, or on a narrow screen, is told in a sentence.
    fn row(&mut self, row: &Row, label: usize) {
        let fits = width(&row.before) <= VALUE && width(&row.after) <= VALUE && label >= 10;
        if fits {
            let long = width(&row.label) > label;
            if long {
                self.page
                    .line(&[piece(row.style, format!("   {}", row.label))]);
            }
            let name = if long {
                String::new()
            } else {
                row.label.clone()
            };
            self.page.line(&[
                piece(row.style, format!("   {}", pad(&name, label))),
                right(&row.before),
                right(&row.after),
                piece(row.style, format!("  {}", row.change)),
            ]);
        } else {
            let head = [piece(row.style, format!("   {}", row.label))];
            self.page.line(&head);
            for (side, value) in [("before", &row.before), ("after", &row.after)] {
                let head = [piece(Style::Faint, format!("     {side}"))];
                self.page.hanging(&head, 13, row.style, value);
            }
            if !row.change.is_empty() {
                let head = [piece(Style::Faint, "     change")];
                self.page.hanging(&head, 13, row.style, &row.change);
            }
        }
        if !row.more.is_empty() {
            self.page.hanging(&[], 5, Style::Faint, &row.more);
        }
    }
}

fn right(value: &str) -> Piece {
    let blanks = (VALUE + 1).saturating_sub(width(value));
    piece(Style::Plain, format!("{}{value}", " ".repeat(blanks)))
}

/// A part of what no counter explains may be below zero.
fn signed(bytes: i64) -> String {
    let sign = if bytes < 0 { "-" } else { "" };
    format!("{sign}{}", Bytes::new(bytes.unsigned_abs()))
}

fn is_told(amount: &AmountEntry) -> bool {
    /// What only one side tells is worth a line from here on.
    const WORTH: f64 = 0.01;
    match amount.certainty {
        Some("noise") => false,
        Some(_) => true,
        None => amount
            .before_share
            .or(amount.after_share)
            .is_some_and(|share| share >= WORTH),
    }
}

fn amount_change(amount: &AmountEntry, is_other_size: bool) -> String {
    let shares = amount.before_share.zip(amount.after_share);
    match (amount.certainty, shares) {
        (Some("noise"), _) => "~".to_owned(),
        (Some(_), Some((before, after))) if is_other_size => {
            let sign = if after < before { '-' } else { '+' };
            format!("{sign}{} RAM", Ratio::new((after - before).abs()))
        }
        (Some(_), _) => amount.change.clone().unwrap_or_default(),
        (None, _) if amount.before_bytes.is_some() => "before only".to_owned(),
        (None, _) => "after only".to_owned(),
    }
}

fn text(spread: Option<&SpreadEntry>) -> String {
    spread.map_or_else(|| "-".to_owned(), |it| it.text.clone())
}

fn spreads(before: &SpreadEntry, after: &SpreadEntry, lead: f64) -> String {
    let higher = Ratio::new(f64::midpoint(1.0, lead));
    format!(
        "8 of 10 intervals: {} before, {} after; after is higher in {higher} of {} × {} pairs",
        before.range_text,
        after.range_text,
        Count::new(before.intervals as u64),
        Count::new(after.intervals as u64)
    )
}
