//! One finding: title, time, evidence, cause, consequences and fixes.

use std::borrow::Cow;

use super::ansi::Style;
use super::page::{NARROW, StyledText, TextPage, piece};
use super::spark;
use super::wrap::{cut, width, wrap};
use super::{Detail, Screen};
use crate::clock::ReportClock;
use crate::model::{Affected, Evidence, Finding, Fix, Graph, Severity, Sureness};
use crate::phrases::{occurrences, proven_on};

/// Column of labels.
const LABEL_INDENT: usize = 3;
/// Column of text, after the longest label.
const TEXT_INDENT: usize = 15;
/// Column of text below a label on its own line.
const NARROW_TEXT_INDENT: usize = 5;
/// With fewer than 20 cells beside its caption, a graph has a line of its own.
const FEWEST_GRAPH_CELLS: usize = 20;
/// At most 60 cells: a wider graph shows no more.
const GRAPH_CELLS_MAX: usize = 60;
/// At most 5 affected are named; the rest is counted.
const AFFECTED_MAX: usize = 5;

/// A finding in a numbered list.
pub(super) struct Numbered<'a> {
    pub(super) number: usize,
    pub(super) finding: &'a Finding,
    pub(super) consequences: &'a [&'a Finding],
    /// Whether the verdict's headline has named it.
    pub(super) is_named: bool,
}

/// The title: one sentence, or all of it where everything was requested.
pub(super) fn title_for<'a>(screen: &Screen, finding: &'a Finding) -> Cow<'a, str> {
    match screen.detail {
        Detail::Brief => Cow::Borrowed(&finding.title),
        Detail::All => finding.whole_title(),
    }
}

pub(super) fn draw(
    page: &mut TextPage,
    listed: &Numbered<'_>,
    clock: &ReportClock<'_>,
    screen: &Screen,
) {
    let finding = listed.finding;
    heading(page, listed, screen);
    if !listed.is_named {
        page.hanging(&[], LABEL_INDENT, Style::Plain, &finding.whole_title());
    }
    let mut block = FindingBlock { page, screen };
    block.graph(finding, clock);
    block.evidence(&finding.evidence, clock);
    block.text("why", [finding.cause.as_str()]);
    block.consequences(listed.consequences);
    block.affected(&finding.affected);
    let not = |other: &crate::model::RuledOut| format!("{}: {}", other.id, other.because);
    block.text("not", finding.ruled_out.iter().map(not));
    block.fixes(&finding.fix);
    block.text("verify", [finding.verify.as_str()]);
    if finding.confidence_word != Sureness::Confirmed || screen.detail == Detail::All {
        block.text("confidence", [finding.confidence_why.as_str()]);
    }
    if screen.detail == Detail::All {
        block.text("see", &finding.references);
        block.text("also called", &finding.aliases);
    }
}

/// `1  swap-thrash                    critical · confirmed`.
fn heading(page: &mut TextPage, listed: &Numbered<'_>, screen: &Screen) {
    let finding = listed.finding;
    let severity = match finding.severity {
        Severity::Info => "info",
        Severity::Warning => "warning",
        Severity::Critical => "critical",
    };
    let number = format!("{:<LABEL_INDENT$}", listed.number);
    let tail = format!(" · {}", finding.confidence_word.word());
    let taken = width(&number) + width(severity) + width(&tail);
    let id = cut(&finding.id, screen.width().saturating_sub(taken + 2).max(1));
    let blanks = screen.width().saturating_sub(taken + width(&id)).max(2);
    page.line(&[
        piece(Style::Strong, number),
        piece(Style::Strong, id),
        piece(Style::Plain, " ".repeat(blanks)),
        piece(finding.severity.into(), severity),
        piece(Style::Plain, tail),
    ]);
}

/// Labels on the left, text on the right.
struct FindingBlock<'p, 's> {
    page: &'p mut TextPage,
    screen: &'s Screen,
}

impl FindingBlock<'_, '_> {
    fn is_narrow(&self) -> bool {
        self.screen.width() < NARROW
    }

    fn indent(&self) -> usize {
        if self.is_narrow() { NARROW_TEXT_INDENT } else { TEXT_INDENT }
    }

    /// Returns the cells for text.
    fn room(&self) -> usize {
        self.screen.width() - self.indent()
    }

    /// Draws lines beside a label; nothing if there are none. A command too long for its column begins further left.
    fn lines(&mut self, label: &str, lines: impl IntoIterator<Item = Vec<StyledText>>) {
        let (indent, room) = (self.indent(), self.room());
        let mut label = Some(label);
        for line in lines {
            let is_long = matches!(line.as_slice(), [(Style::Command, text)] if width(text) > room);
            let mut pieces = Vec::new();
            if let Some(label) = label.take() {
                let label = piece(Style::Faint, format!("{:LABEL_INDENT$}{label}", ""));
                if is_long || self.is_narrow() {
                    self.page.line(&[label]);
                } else {
                    pieces.push(label);
                }
            }
            let indent = if is_long { NARROW_TEXT_INDENT } else { indent };
            let taken: usize = pieces.iter().map(|(_, text)| width(text)).sum();
            let blanks = " ".repeat(indent.saturating_sub(taken));
            pieces.push(piece(Style::Plain, blanks));
            pieces.extend(line.into_iter().map(|(style, text)| {
                if is_long { piece(style, text.trim_start()) } else { (style, text) }
            }));
            self.page.line(&pieces);
        }
    }

    /// Draws paragraphs beside a label; nothing if all are empty.
    fn text(&mut self, label: &str, paragraphs: impl IntoIterator<Item = impl AsRef<str>>) {
        let room = self.room();
        let lines: Vec<_> =
            paragraphs.into_iter().flat_map(|text| paragraph(text.as_ref(), room)).collect();
        self.lines(label, lines);
    }

    /// Draws when it occurred, and its main signal over that time.
    fn graph(&mut self, finding: &Finding, clock: &ReportClock<'_>) {
        let when = occurrences::when(clock, finding);
        let curve = finding.graph.as_ref();
        let Some(graph) = curve.filter(|graph| graph.values.len() > 1) else {
            if let Some(when) = when {
                self.text("when", [when]);
            }
            return;
        };
        let caption = format!("{}, peak {}", graph.label, graph.peak);
        let beside = self.room().saturating_sub(width(&caption) + 2);
        let cells = if beside < FEWEST_GRAPH_CELLS { self.room() } else { beside };
        let curve = spark::graph(within(finding, graph), cells.min(GRAPH_CELLS_MAX));
        let mut drawn = vec![piece(Style::Data(32), curve)];
        let mut lines = Vec::new();
        if beside < FEWEST_GRAPH_CELLS {
            lines.push(drawn);
            lines.extend(paragraph(&caption, self.room()));
        } else {
            drawn.push(piece(Style::Plain, format!("  {caption}")));
            lines.push(drawn);
        }
        // A clock range is wider than a label; then it is above its graph.
        let label = when.unwrap_or_default();
        if self.is_narrow() || LABEL_INDENT + width(&label) < self.indent() {
            self.lines(&label, lines);
        } else {
            let when = vec![piece(Style::Plain, label)];
            self.lines("when", std::iter::once(when).chain(lines));
        }
    }

    /// Draws sentences on the left and their thresholds on the right.
    fn evidence(&mut self, evidence: &[Evidence], clock: &ReportClock<'_>) {
        let room = self.room();
        let mut lines: Vec<Vec<StyledText>> = Vec::new();
        let mut is_explained = false;
        for line in evidence {
            match line.at_s.and_then(|at_s| clock.moment(at_s, line.at)) {
                Some(at) => lines.extend(paragraph(&format!("{} ({at})", line.text), room)),
                None => lines.extend(paragraph(&line.text, room)),
            }
            let Some(threshold) = line.threshold_shown() else {
                continue;
            };
            let is_first = !std::mem::replace(&mut is_explained, true);
            let word = if is_first { "threshold " } else { "" };
            let threshold = cut(&format!("{word}{threshold}"), room);
            let used =
                |line: &Vec<StyledText>| -> usize { line.iter().map(|(_, t)| width(t)).sum() };
            let fits = |line: &&mut Vec<StyledText>| used(line) + 2 + width(&threshold) <= room;
            match lines.last_mut().filter(fits) {
                Some(last) => {
                    let blanks = room - used(last) - width(&threshold);
                    last.push(piece(Style::Plain, " ".repeat(blanks)));
                    last.push(piece(Style::Faint, threshold));
                }
                None => {
                    let blanks = room - width(&threshold);
                    lines.push(vec![
                        piece(Style::Plain, " ".repeat(blanks)),
                        piece(Style::Faint, threshold),
                    ]);
                }
            }
        }
        self.lines("evidence", lines);
    }

    /// Draws each consequence in one sentence; the whole title on request.
    fn consequences(&mut self, consequences: &[&Finding]) {
        let screen = self.screen;
        let summary =
            |finding: &&Finding| format!("{}: {}", finding.id, title_for(screen, finding));
        self.text("leads to", consequences.iter().map(summary));
    }

    fn affected(&mut self, affected: &[Affected]) {
        let room = self.room();
        let most = match self.screen.detail {
            Detail::Brief => AFFECTED_MAX,
            Detail::All => usize::MAX,
        };
        let mut lines: Vec<_> = affected
            .iter()
            .take(most)
            .flat_map(|one| {
                let name = cut(&one.name, room * 2 / 3);
                let who = match one.kind {
                    "process" => name,
                    kind => format!("{kind} {name}"),
                };
                let separator = if one.what.is_empty() { "" } else { ", " };
                paragraph(&format!("{who}{separator}{}", one.what), room)
            })
            .collect();
        if let Some(more) = affected.len().checked_sub(most).filter(|n| *n > 0) {
            lines.push(vec![piece(Style::Faint, format!("and {more} more"))]);
        }
        self.lines("who", lines);
    }

    /// Draws immediate fixes, then lasting ones. Advice without commands counts as lasting.
    fn fixes(&mut self, fixes: &[Fix]) {
        let room = self.room();
        let mut now = Vec::new();
        // What makes the commands above permanent comes before unrelated advice.
        let mut kept = Vec::new();
        let mut for_good = Vec::new();
        for fix in fixes {
            let has_now = !fix.now.trim().is_empty();
            if has_now {
                now.extend(paragraph(&fix.what, room));
                kept.extend(commands(&fix.persistent, false));
            } else {
                for_good.extend(paragraph(&fix.what, room));
                for_good.extend(commands(&fix.persistent, !fix.what.is_empty()));
            }
            now.extend(commands(&fix.now, !fix.what.is_empty()));
            now.extend(undo(&fix.undo, !fix.what.is_empty()));
            if let Some(proof) = proven_on(&fix.proven_on) {
                now.extend(paragraph(&format!("({proof})"), room));
            }
        }
        self.lines("do now", now);
        self.lines("for good", kept.into_iter().chain(for_good));
    }
}

/// Returns the part of a graph in which the finding lasted; all of it if that is unknown or it occurred several times.
fn within<'a>(finding: &Finding, graph: &'a Graph) -> &'a [Option<f64>] {
    let whole = graph.to_s - graph.from_s;
    let (Some(from), Some(to)) = (finding.from_s, finding.to_s) else {
        return &graph.values;
    };
    if finding.stretches.len() > 1 {
        return &graph.values;
    }
    let place = |at: f64| {
        #[allow(clippy::cast_precision_loss)] // at most 240 points
        let points = graph.values.len() as f64;
        let share = ((at - graph.from_s) / whole).clamp(0.0, 1.0);
        // Between 0 and the number of points.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let place = (share * points).round() as usize;
        place
    };
    match (whole > 0.0).then(|| place(from)..place(to)) {
        Some(range) if range.len() > 1 => &graph.values[range],
        _ => &graph.values,
    }
}

fn paragraph(text: &str, room: usize) -> Vec<Vec<StyledText>> {
    wrap(text, room).into_iter().map(|line| vec![piece(Style::Plain, line)]).collect()
}

/// Commands, indented below a sentence, and never wrapped, so that a copied command is one line.
fn commands(text: &str, below_sentence: bool) -> impl Iterator<Item = Vec<StyledText>> {
    let indent = if below_sentence { "  " } else { "" };
    text.lines()
        .filter(|line| !line.trim().is_empty())
        .map(move |line| vec![piece(Style::Command, format!("{indent}{line}"))])
}

/// How to undo the commands above, as a comment, so that it is not run with them.
fn undo(text: &str, below_sentence: bool) -> impl Iterator<Item = Vec<StyledText>> {
    let indent = if below_sentence { "  " } else { "" };
    text.lines().map(move |line| vec![piece(Style::Command, format!("{indent}# undo: {line}"))])
}
