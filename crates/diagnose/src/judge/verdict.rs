//! The verdict: the level, which becomes the exit code, and one headline for an on-call engineer.

mod no_finding;
mod remarks;
mod single_sample;
#[cfg(test)]
mod tests;

use schemars::JsonSchema;
use serde::Serialize;
use timeline::signals::MEM_TOTAL;
use units::{Bytes, Quantity, Span};

use crate::evidence::Evidence;
use crate::finding::{Finding, Severity};
use crate::measures::disk_wait;
use crate::measures::own_limit::OwnLimit;
use crate::oom;
pub(crate) use remarks::two_machines;

/// How it stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Memory is enough, as far as the source shows.
    Ok,
    /// At least one warning.
    Warning,
    /// At least one critical finding.
    Critical,
    /// The source cannot say.
    Unknown,
}

impl Level {
    /// Returns it as a word within a sentence.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warning => "warning",
            Self::Critical => "critical",
            Self::Unknown => "unknown",
        }
    }
}

/// The answer in short.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// The worst level in the source.
    pub level: Level,
    /// One or two sentences.
    pub headline: String,
    /// Further lines: the limits of a single sample, host or container.
    pub remarks: Vec<String>,
    /// The level at the end of the source, if it differs: findings of the worst level ended more than a minute before.
    pub now: Option<Level>,
}

/// A finding that ended longer ago is past: an engineering choice, the time in which an on-call engineer responds.
pub const RECENT: Span = Span::from_mins(15);

/// A shorter recording does not show slow growth: a leak that fills a host in a week adds 0.1 % of RAM in this time.
const LONG_RECORDING: Span = Span::from_mins(10);

impl Verdict {
    /// Returns the verdict on these findings, which rest on `watched`: the time of `cx`, or more if a recording
    /// precedes it. Marks the finding that gives the headline.
    pub(crate) fn from_findings(
        cx: &Evidence<'_>,
        watched: Span,
        findings: &mut [Finding],
    ) -> Self {
        let limit = OwnLimit::from_cgroups(cx);
        let is_event = cx.is_single_sample() && cx.timeline.reports().next().is_some();
        let severity = worst(findings);
        let (level, headline) = match findings.first_mut() {
            Some(top) if severity == Some(Severity::Critical) => (Level::Critical, top.lead()),
            Some(top) if severity == Some(Severity::Warning) => (Level::Warning, top.lead()),
            Some(top) if is_event => (Level::Unknown, top.lead()),
            None if is_event => (Level::Unknown, oom::headline(cx)),
            _ => no_finding::level_and_headline(cx, watched, limit.as_ref(), findings),
        };
        let mut remarks = remarks::container(cx, limit.as_ref());
        if let Some(totals) = cx.timeline.gauge(MEM_TOTAL) {
            let sizes = totals.values().iter().flatten();
            remarks.extend(two_machines(sizes.map(|bytes| Bytes::from_f64(*bytes))));
        }
        if level != Level::Critical {
            remarks.extend(disk_wait::sentence(cx).map(|waits| format!("{waits}.")));
        }
        // A kernel report is an event: its figures need no explanation as a state.
        if cx.is_single_sample() && !is_event {
            remarks.extend(single_sample::explain_figures(cx));
        } else if !is_event && level == Level::Ok {
            remarks.extend(too_short_for_growth(cx, watched));
        }
        let now = if is_event { None } else { level_at_end(level, findings) };
        Self { level, headline, remarks, now }
    }

    /// Returns the verdict on a source of which only the first `read` was read: it cannot show that memory is enough.
    pub(crate) fn first_part_only(mut self, read: Span) -> Self {
        if self.level == Level::Ok {
            self.level = Level::Unknown;
            self.headline = format!("Nothing found in the first {read}; the rest was not read.");
        } else {
            self.remarks.push(format!("This covers the first {read}; the rest was not read."));
        }
        // The end of the source was not read.
        self.now = None;
        self
    }
}

impl Verdict {
    /// Returns the verdict on a text without a reading of memory, of which this was recognised, in words.
    pub(crate) fn on_text_without_readings(mut self, recognised: &[&str]) -> Self {
        /// More say nothing that belongs into one sentence.
        const NAMED_MAX: usize = 3;
        let named = recognised.iter().map(|what| what.trim_end_matches(", not used"));
        if (1..=NAMED_MAX).contains(&recognised.len()) {
            let named: Vec<&str> = named.collect();
            self.headline = format!("{} Recognised: {}.", self.headline, named.join("; "));
        }
        self
    }

    /// Returns the verdict on a text of another system.
    pub(crate) fn on_another_system(mut self, system: &str) -> Self {
        self.headline = format!(
            "No answer: this is output of {system}, and memtide knows the memory of Linux only."
        );
        self
    }
}

/// Returns the remark that a source was recorded for too short a time to show growth, if it was.
pub(crate) fn too_short_for_growth(cx: &Evidence<'_>, watched: Span) -> Option<String> {
    let recorded = cx.recorded();
    (watched < LONG_RECORDING)
        .then(|| format!("{recorded} is too short to show slow growth or leaks."))
}

/// The worst severity: of what happened at the moment that was asked about, if something did.
pub(crate) fn worst(findings: &[Finding]) -> Option<Severity> {
    let asked = findings.first().filter(|first| first.is_asked).map(|first| first.severity);
    asked.or_else(|| findings.iter().map(|finding| finding.severity).max())
}

/// Returns the level at the end of the source, if it is better than the worst one.
pub(crate) fn level_at_end(level: Level, findings: &[Finding]) -> Option<Level> {
    let has_finding = worst(findings) > Some(Severity::Info);
    // Without a finding, the level applies to the whole source.
    if !has_finding || !matches!(level, Level::Warning | Level::Critical) {
        return None;
    }
    let goes_on = findings.iter().filter(|finding| !finding.is_over);
    match goes_on.map(|finding| finding.severity).max() {
        Some(Severity::Critical) => None,
        Some(Severity::Warning) => Some(Level::Warning).filter(|_| level == Level::Critical),
        _ => Some(Level::Ok),
    }
}
