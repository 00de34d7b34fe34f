//! What a kernel report of an OOM kill or a failed allocation means: what was asked, why no zone could serve it, who held
//! the memory, and why somebody was killed. Pure functions of one [`KernelReport`]; the rules only ask and tell.

mod bouts;
mod cause;
mod history;
mod holders;
mod marks;
mod request;
mod told;

use timeline::kernel_report::ReportKind;
use timeline::{KernelReport, facts::KernelVersion};
use units::Span;

use crate::evidence::Evidence;

pub(crate) use bouts::{bout_at, bouts};
pub(crate) use cause::{Cause, Filler, Limit, SwapState, too_small};
pub(crate) use history::{Kills, among, when};
pub(crate) use holders::{Holders, held};
use marks::Checked;
pub(crate) use marks::{Hurdle, Place};
pub(crate) use request::Asked;
pub(crate) use told::{kill, measures, moment, sure, tell, victim};

/// A report, explained.
#[derive(Debug)]
pub(crate) struct Explained<'a> {
    /// What the kernel said.
    pub(crate) report: &'a KernelReport,
    /// The sample that shows memory as the report does.
    pub(crate) index: usize,
    /// When the kernel wrote it, on the timeline's clock.
    pub(crate) at: Span,
    /// What was asked for.
    pub(crate) asked: Option<Asked>,
    /// What stood in the way in each zone.
    pub(crate) zones: Vec<Checked<'a>>,
    /// Who held memory, and who was killed.
    pub(crate) holders: Holders<'a>,
    /// Why it happened.
    pub(crate) cause: Cause,
}

impl<'a> Explained<'a> {
    fn of(report: &'a KernelReport, index: usize, at: Span) -> Self {
        let asked = report.request.as_ref().and_then(Asked::of);
        let zones = marks::replay(report, asked.as_ref());
        Self {
            report,
            index,
            at,
            cause: cause::of(report, asked.as_ref(), &zones),
            holders: Holders::of(report),
            asked,
            zones,
        }
    }

    /// Whether somebody was killed for it, or should have been.
    pub(crate) fn is_kill(&self) -> bool {
        self.report.kind == ReportKind::OomKill
    }
}

/// The reports of the stretch that is judged, explained.
pub(crate) fn reports<'a>(cx: &Evidence<'a>) -> Vec<Explained<'a>> {
    let timeline = cx.timeline;
    timeline
        .reports()
        .filter_map(|reported| {
            let index = timeline.sample_of(reported)?;
            Some(Explained::of(&reported.report, index, reported.at))
        })
        .collect()
}

/// The last report of the stretch whose cause is such.
pub(crate) fn last<'a>(
    cx: &Evidence<'a>,
    is_such: impl Fn(&Explained<'a>) -> bool,
) -> Option<Explained<'a>> {
    reports(cx).into_iter().rev().find(is_such)
}

/// Whether the stretch has reports and none of them says that the host itself was short.
pub(crate) fn only_others(cx: &Evidence<'_>) -> bool {
    let reports = reports(cx);
    !reports.is_empty() && reports.iter().all(|one| !one.cause.is_shortage())
}

/// The last report in a sentence, where no rule has more to say of it.
pub(crate) fn headline(cx: &Evidence<'_>) -> String {
    let Some(one) = last(cx, |_| true) else {
        return String::new();
    };
    let what = if one.is_kill() {
        kill(&one)
    } else {
        let page = one.report.page_size.or(cx.facts.page_size);
        let size = one.asked.map(|asked| format!(" for {}", asked.size(page)));
        format!(
            "A request{} failed, and nobody was killed for it",
            size.unwrap_or_default()
        )
    };
    match one.cause {
        Cause::Unknown(missing) => format!("{what}; the report does not show {missing}."),
        _ => format!("{what}."),
    }
}

/// The kernel that wrote the report.
fn kernel(report: &KernelReport) -> Option<KernelVersion> {
    KernelVersion::parse(report.kernel.as_deref()?)
}

#[cfg(test)]
pub(crate) mod testing;
