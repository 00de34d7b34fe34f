//! What a kernel report of an OOM kill or a failed allocation means: what was requested, why no zone could serve it,
//! which tasks used the memory, and why a process was killed. Pure functions of one [`KernelReport`]; the rules only
//! use them.

mod cause;
mod history;
mod holders;
pub(crate) mod kills;
pub(crate) mod notices;
mod report_story;
mod request;
mod shortage;
mod watermarks;

use timeline::kernel_report::ReportKind;
use timeline::{KernelReport, Stretch, facts::KernelVersion};
use units::Span;

use crate::evidence::{Evidence, Missing};
use crate::finding::Finding;
use crate::trigger::{self, FoundBy, Occurrence, SourceQuestion, Subjects, Trigger};

pub(crate) use cause::{Filler, LimitHit, OomCause, SwapState, too_small};
pub(crate) use cause::{LISTED_MIN, MUCH_FREE, free_share, is_at_a_limit};
pub(crate) use history::{KillHistory, among, when};
pub(crate) use holders::{Holders, PROTECTED, held};
pub(crate) use report_story::{effect, explain, fate, kill, measures, moment, sure, victim};
pub(crate) use request::{Asked, ZoneType};
pub(crate) use shortage::{apart_from_shortage, shortage};
use watermarks::Checked;
pub(crate) use watermarks::Hurdle;

/// Kills that follow each other within this time are one incident: a service is restarted into the same shortage. An
/// engineering choice; systemd restarts after 100 ms, and gives up after five times in 10 s.
pub(crate) const AGAIN: Span = Span::from_secs(10);

/// A function that finds occurrences.
type Find = fn(&Evidence<'_>) -> Result<Vec<Occurrence>, Missing>;

/// A kernel report with its explanation.
#[derive(Debug)]
pub(crate) struct Explained<'a> {
    pub(crate) report: &'a KernelReport,
    /// Index of the sample that shows memory as the report does.
    pub(crate) index: usize,
    /// When the kernel wrote it, on the timeline's clock.
    pub(crate) at: Span,
    /// The request, decoded.
    pub(crate) asked: Option<Asked>,
    /// The zones, each with what prevented it from serving the request.
    pub(crate) zones: Vec<Checked<'a>>,
    /// The tasks that used memory, and the victim.
    pub(crate) holders: Holders<'a>,
    /// Why the report was written.
    pub(crate) cause: OomCause,
}

impl<'a> Explained<'a> {
    fn from_report(report: &'a KernelReport, index: usize, at: Span) -> Self {
        let asked = report.request.as_ref().and_then(Asked::from_request);
        let zones = watermarks::replay(report, asked.as_ref());
        Self {
            report,
            index,
            at,
            cause: cause::of(report, asked.as_ref(), &zones),
            holders: Holders::from_report(report),
            asked,
            zones,
        }
    }

    /// The path of the cgroup at its limit, as printed; `None` for any other cause, or where the report does not name
    /// it.
    pub(crate) fn group(&self) -> Option<&'a str> {
        let path = self.report.group.as_ref()?.path.as_str();
        (matches!(self.cause, OomCause::GroupLimit(_)) && !path.is_empty()).then_some(path)
    }

    /// Whether the report is of an OOM kill, even if no victim was found.
    pub(crate) fn is_kill(&self) -> bool {
        self.report.kind == ReportKind::OomKill
    }
}

/// Explains the reports within the evidence.
pub(crate) fn reports<'a>(cx: &Evidence<'a>) -> Vec<Explained<'a>> {
    let timeline = cx.timeline;
    timeline
        .reports()
        .filter_map(|reported| {
            let index = timeline.sample_of(reported)?;
            Some(Explained::from_report(&reported.report, index, reported.at))
        })
        .collect()
}

/// The last report that `is_such` admits.
pub(crate) fn last<'a>(
    cx: &Evidence<'a>,
    is_such: impl Fn(&Explained<'a>) -> bool,
) -> Option<Explained<'a>> {
    reports(cx).into_iter().rev().find(is_such)
}

/// The occurrences of such reports, on the host or in the cgroup that they name: one at each report's sample; reports
/// within [`AGAIN`] of each other are joined.
pub(crate) fn occurrences(
    cx: &Evidence<'_>,
    is_such: impl Fn(&Explained<'_>) -> bool,
) -> Vec<Occurrence> {
    let such = reports(cx).into_iter().filter(is_such);
    let all = such.map(|one| Occurrence {
        first: one.index,
        last: one.index,
        key: one.group().map(str::to_owned),
    });
    trigger::joined(cx, all.collect(), AGAIN)
}

/// Levels, and the reports outside of them that `is_such` admits.
///
/// # Errors
/// What the levels lack, if there is no such report.
pub(crate) fn beside_levels(
    cx: &Evidence<'_>,
    levels: Result<Vec<Occurrence>, Missing>,
    is_such: impl Fn(&Explained<'_>) -> bool,
) -> Result<Vec<Occurrence>, Missing> {
    let mut reported = occurrences(cx, is_such);
    let mut all = match levels {
        Err(missing) if reported.is_empty() => return Err(missing),
        levels => levels.unwrap_or_default(),
    };
    let is_within = |one: &Occurrence| {
        let at = one.first;
        all.iter().any(|level| (level.first..=level.last).contains(&at))
    };
    reported.retain(|one| !is_within(one));
    all.extend(reported);
    Ok(all)
}

/// A trigger that fires on kernel reports of the host, with the outcome where there is none.
pub(crate) fn trigger(find: Find, none: SourceQuestion) -> Trigger {
    Trigger::Found(FoundBy { find, could: None, scope: Subjects::Host, none: Some(none) })
}

/// The matching reports of a stretch, in order.
pub(crate) fn within<'a>(
    cx: &Evidence<'a>,
    stretch: &Stretch,
    is_such: impl Fn(&Explained<'a>) -> bool,
) -> Vec<Explained<'a>> {
    let of_stretch = |one: &Explained<'a>| (stretch.first..=stretch.last).contains(&one.index);
    let all = reports(cx).into_iter();
    all.filter(|one| of_stretch(one) && is_such(one)).collect()
}

/// The number of processes killed according to these reports.
pub(crate) fn killed(reports: &[Explained<'_>]) -> u64 {
    let kills = reports.iter().filter(|one| one.is_kill());
    kills.map(|one| one.report.killed.len() as u64).sum()
}

/// Adds the last of an incident's reports to the finding, and the number of kills of all of them. With several reports
/// the finding holds for the whole incident, not at one moment.
pub(crate) fn tell_all(
    cx: &Evidence<'_>,
    stretch: &Stretch,
    reports: &[Explained<'_>],
    finding: Finding,
) -> Finding {
    let mut finding = match reports.last() {
        Some(one) => explain(cx, one, finding),
        None => finding,
    };
    if stretch.first < stretch.last {
        finding.when = None;
    }
    finding.harm.killed = finding.harm.killed.max(killed(reports));
    finding
}

/// Whether there are reports, and none of them shows that the host itself was short of memory.
pub(crate) fn only_others(cx: &Evidence<'_>) -> bool {
    let reports = reports(cx);
    !reports.is_empty() && reports.iter().all(|one| !one.cause.is_shortage())
}

/// The last report in a sentence, for reports that no rule describes.
pub(crate) fn headline(cx: &Evidence<'_>) -> String {
    let Some(one) = last(cx, |_| true) else {
        return String::new();
    };
    let what = if one.is_kill() {
        kill(&one)
    } else {
        let page = one.report.page_size.or(cx.facts.page_size);
        let of_pages = || one.asked.map(|asked| format!(" for {}", asked.size(page)));
        let of_vmalloc = one.report.vmalloc.map(|size| format!(" for {size} of vmalloc space"));
        let size = of_vmalloc.or_else(of_pages);
        format!(
            "A request{} {}, which alone kills no process",
            size.unwrap_or_default(),
            fate(&one)
        )
    };
    match one.cause {
        OomCause::Unknown(missing) => format!("{what}; the report does not show {missing}."),
        _ => format!("{what}."),
    }
}

/// The version of the kernel that wrote the report.
fn kernel(report: &KernelReport) -> Option<KernelVersion> {
    KernelVersion::parse(report.kernel.as_deref()?)
}

#[cfg(test)]
pub(crate) mod testing;
