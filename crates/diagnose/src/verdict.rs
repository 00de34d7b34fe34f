//! The verdict: one sentence for someone woken at two, and the level that becomes the exit code.

use timeline::signals::{MEM_AVAILABLE, MEM_FREE, MEM_TOTAL, SWAP_TOTAL};
use units::Quantity;

use crate::evidence::Evidence;
use crate::finding::{Finding, Severity};
use crate::floor::Floor;
use crate::own_limit::OwnLimit;

/// How it stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// Memory is enough, as far as the look could tell.
    Ok,
    /// At least one warning.
    Warning,
    /// At least one critical finding.
    Critical,
    /// The source cannot say.
    Unknown,
}

/// The answer in short.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// How it stands.
    pub level: Level,
    /// One or two sentences.
    pub headline: String,
    /// More lines that belong to it: what one look can and cannot say, whose memory is meant.
    pub remarks: Vec<String>,
}

impl Verdict {
    pub(crate) fn of(cx: &Evidence<'_>, findings: &[Finding]) -> Self {
        let limit = OwnLimit::of(cx);
        let worst = findings.iter().map(|f| f.severity).max();
        let (level, headline) = match (worst, findings.first()) {
            (Some(Severity::Critical), Some(top)) => (Level::Critical, top.title.clone()),
            (Some(Severity::Warning), Some(top)) => (Level::Warning, top.title.clone()),
            _ if cx.timeline.gauge(MEM_TOTAL).is_none() => (
                Level::Unknown,
                "Nothing can be said: the source has no /proc/meminfo with a MemTotal.".to_owned(),
            ),
            _ if cx.is_single_look() => (Level::Unknown, single_look(cx)),
            _ => (Level::Ok, all_is_well(limit.as_ref())),
        };
        Self {
            level,
            headline,
            remarks: whose_memory(cx, limit.as_ref()),
        }
    }
}

fn all_is_well(limit: Option<&OwnLimit>) -> String {
    match limit {
        None => "Memory is enough, and nothing waits for it.".to_owned(),
        Some(limit) => format!(
            "Memory is enough within this container's limit of {}, and nothing waits for it.",
            limit.max
        ),
    }
}

/// In a container: which of the two memories is meant, the container's first.
fn whose_memory(cx: &Evidence<'_>, limit: Option<&OwnLimit>) -> Vec<String> {
    let mut remarks = Vec::new();
    if let Some(limit) = limit {
        remarks.push(format!(
            "This container (control group {}): {} of {} used ({}), page cache included.",
            limit.cgroup,
            limit.current,
            limit.max,
            limit.used()
        ));
        if let (Ok(ram), Some(available)) = (cx.ram(), cx.timeline.last(MEM_AVAILABLE)) {
            remarks.push(format!(
                "The host below it: {available} of {ram} available; what is drawn here is the host's."
            ));
        }
    }
    if let Some(container) = &cx.facts.container {
        let signs = container.signs.join(", ");
        remarks.push(if container.meminfo_is_own {
            format!("Seen from inside a container ({signs}): /proc/meminfo shows the container, not the host.")
        } else {
            format!("Seen from inside a container ({signs}): processes outside it are not seen.")
        });
    }
    remarks
}

/// One look proves levels only; say which way they point.
fn single_look(cx: &Evidence<'_>) -> String {
    let (Some(total), Some(free)) = (cx.timeline.last(MEM_TOTAL), cx.timeline.last(MEM_FREE))
    else {
        return "One look cannot say whether this memory is enough.".to_owned();
    };
    let floor = cx
        .floor()
        .ok()
        .and_then(|floor| floor.high.last())
        .unwrap_or_else(|| Floor::predicted(total).1);
    let on_floor = free.as_f64() <= floor.as_f64() * Floor::NEAR.get();
    let swapped = cx.timeline.last(SWAP_TOTAL).is_some()
        && cx
            .swap_used()
            .ok()
            .and_then(|used| used.last())
            .is_some_and(|used| used.get() > 0);
    let little = cx
        .timeline
        .last(MEM_AVAILABLE)
        .and_then(|available| available.ratio_of(total))
        .is_some_and(|share| share.get() < 0.15);
    let but = if on_floor && (little || swapped) {
        ", but it does not look like room for more"
    } else {
        ""
    };
    format!("One look cannot say whether this memory is enough{but}.")
}
