//! Kernel reports as events, joined with what a recorder noted of the same ones.

use units::Span;

use crate::event::{Event, EventKind};
use crate::kernel_report::{GroupReport, KernelReport, Killed, ReportKind};
use crate::sample::Stamp;
use crate::timeline::{Reported, Timeline};

use super::{Moment, Placed};

/// The reports of a timeline. A dump of memory that somebody asked for is no event.
pub(super) fn of_reports(timeline: &Timeline) -> Vec<Placed> {
    let reports = timeline.reports();
    let told = reports.filter(|reported| !reported.report.is_memory_dump());
    told.map(|reported| event(timeline, reported)).collect()
}

/// When processes were killed, as reports tell; once for each process.
pub(super) fn kills(timeline: &Timeline) -> Vec<Moment> {
    let of_kills = |reported: &&Reported| reported.report.kind == ReportKind::OomKill;
    let reports = timeline.reports().filter(of_kills);
    reports
        .flat_map(|reported| {
            std::iter::repeat_n(moment(timeline, reported), reported.report.killed.len())
        })
        .collect()
}

/// When a report was written. Its sample is of a little later, or of much later where it is the timeline's first.
fn moment(timeline: &Timeline, reported: &Reported) -> Moment {
    let sample = timeline.sample_of(reported);
    let own = sample.and_then(|index| Some((index, timeline.stamp(index)?.wall?)));
    let (Some((index, own)), Some(wall)) = (own, reported.wall) else {
        return reported.at.into();
    };
    let at = timeline.times().get(index).copied().unwrap_or_default();
    let by = Span::from_nanos(own.unix_nanos().abs_diff(wall.unix_nanos()));
    match own > wall {
        true => Moment::from(at).minus(by),
        false => Moment::from(at).plus(by),
    }
}

fn event(timeline: &Timeline, reported: &Reported) -> Placed {
    let report = &reported.report;
    let stamp = timeline
        .sample_of(reported)
        .and_then(|index| timeline.stamp(index));
    let text_of = |text: &std::sync::Arc<str>| text.trim_end().to_owned();
    let lines = reported.text.as_ref().map(text_of).unwrap_or_default();
    let mut event = Event::of_report(stamp.unwrap_or_default(), report, lines);
    // A log without years tells when as well as it can.
    if let (Some(log), None) = (&report.stamp, reported.wall) {
        event.text.push_str(&format!(" (log: {})", log.text));
    }
    Placed::moment(moment(timeline, reported), event)
}

impl Event {
    /// What a kernel report tells of, with the kernel's lines: also for a recorder that notes it.
    pub fn of_report(stamp: Stamp, report: &KernelReport, lines: String) -> Self {
        let (kind, subject, text) = match report.kind {
            ReportKind::OomKill => (EventKind::OomKill, victim(report), killed(report)),
            ReportKind::AllocationFailure => {
                (EventKind::AllocationFailure, asker(report), failed(report))
            }
        };
        Self {
            stamp,
            kind,
            subject,
            text,
            report: lines,
        }
    }
}

/// A note and a report of one kill or failure become one event, with the report's words and the kernel's lines.
pub(super) fn merge(reports: &mut [Placed], noted: &mut Vec<Placed>) {
    let mut is_taken = vec![false; reports.len()];
    noted.retain(|note| {
        let same = |at: &usize| {
            let report = &reports[*at];
            !is_taken[*at] && report.is_near(note) && has_words_of(&report.event, &note.event)
        };
        // Kills come in storms: the nearest in time is the one.
        let found = (0..reports.len())
            .filter(same)
            .min_by_key(|at| reports[*at].at.apart(note.at));
        let Some(at) = found else { return true };
        is_taken[at] = true;
        if note.event.stamp.wall.is_some() {
            // The sample that a report belongs to is of a little later.
            reports[at].event.stamp = note.event.stamp;
            (reports[at].at, reports[at].until) = (note.at, note.until);
        }
        if reports[at].event.report.is_empty() {
            reports[at].event.report.clone_from(&note.event.report);
        }
        false
    });
}

/// Whether the kernel's lines of both are the same, as far as both have some. One may have lost some at its ends.
fn has_words_of(one: &Event, other: &Event) -> bool {
    let (one, other) = (one.report.trim_end(), other.report.trim_end());
    one.contains(other) || other.contains(one)
}

/// `java (4242)`; empty where nobody is named.
fn victim(report: &KernelReport) -> String {
    report.killed.first().map(name).unwrap_or_default()
}

fn name(killed: &Killed) -> String {
    format!("{} ({})", killed.name, killed.pid)
}

fn asker(report: &KernelReport) -> String {
    let Some(by) = &report.invoker else {
        return String::new();
    };
    match by.pid {
        Some(pid) => format!("{} ({pid})", by.name),
        None => by.name.clone(),
    }
}

/// `OOM kill of java (4242), 3.1 GiB, in /web at its limit of 512 MiB`.
fn killed(report: &KernelReport) -> String {
    let mut text = match report.killed.as_slice() {
        [] => "out of memory, and nobody is named as killed".to_owned(),
        [one] => format!("OOM kill of {}", name(one)),
        [one, more @ ..] => format!("OOM kill of {} and {} more", name(one), more.len()),
    };
    if let Some(rss) = report.killed.first().and_then(Killed::rss) {
        text.push_str(&format!(", {rss}"));
    }
    if let Some(group) = &report.group {
        text.push_str(&at_limit(group));
    } else if report.is_by_hand() {
        text.push_str(", asked for by hand (SysRq f)");
    }
    text
}

fn at_limit(group: &GroupReport) -> String {
    let limits = [group.memory, group.swap, group.memory_and_swap];
    let full = limits.into_iter().flatten().find(|limit| limit.is_full());
    let limit = full.map_or_else(String::new, |full| {
        format!(" at its limit of {}", full.limit)
    });
    match group.path.as_str() {
        "" if limit.is_empty() => ", in a control group".to_owned(),
        "" => format!(", in a control group{limit}"),
        path => format!(", in {path}{limit}"),
    }
}

/// `allocation of order 5 failed for swapper/0 (0): GFP_ATOMIC`.
fn failed(report: &KernelReport) -> String {
    let request = report.request.as_ref();
    let mut text = match request {
        Some(request) => format!("allocation of order {} failed", request.order),
        None => "an allocation failed".to_owned(),
    };
    let by = asker(report);
    if !by.is_empty() {
        text.push_str(&format!(" for {by}"));
    }
    if let Some(names) = request.and_then(|request| request.gfp_names.as_deref()) {
        text.push_str(&format!(": {names}"));
    } else if let Some(cache) = &report.slab_cache {
        text.push_str(&format!(": slab cache {cache}"));
    }
    text
}
