//! Kills shortly before the first sample, found in the kernel log. Each is judged by the sample in its report.

use timeline::kernel_report::ReportKind;
use timeline::signals::MEM_AVAILABLE;
use timeline::{EarlierReport, Entity, Facts, Sample, Timeline};
use units::Span;

use crate::evidence::Evidence;
use crate::finding::{Finding, Fix, FixChange, Severity};
use crate::judge::RuleAnswers;
use crate::judge::incidents::limits_now;
use crate::remedy;

/// Returns findings for kills at most `recent` before the timeline's end: the newest of each cgroup and of the host.
pub(crate) fn findings(timeline: &Timeline, facts: &Facts, recent: Span) -> Vec<Finding> {
    let Some(end) = timeline.len().checked_sub(1).and_then(|last| timeline.stamp(last)) else {
        return Vec::new();
    };
    let mut newest: Vec<(&str, &EarlierReport, u64)> = Vec::new();
    for known in timeline.earlier_reports() {
        let age = end.boot.saturating_sub(known.stamp.boot);
        let report = &known.report;
        if report.kind != ReportKind::OomKill || report.is_memory_dump() || age > recent {
            continue;
        }
        let group = report.group.as_ref().map_or("", |group| group.path.as_str());
        match newest.iter_mut().find(|(path, ..)| *path == group) {
            Some((_, newest, count)) => {
                *newest = known;
                *count += 1;
            }
            None => newest.push((group, known, 1)),
        }
    }
    // The newest kill is usually the one in question.
    newest.sort_by_key(|(_, known, _)| std::cmp::Reverse(known.stamp.boot));
    let watched = timeline.times().last().copied().unwrap_or_default();
    let cx = Evidence::new(timeline, facts);
    let mut findings = Vec::new();
    for (_, known, count) in newest {
        let ago = end.boot.saturating_sub(known.stamp.boot);
        findings.extend(judge_report(known, count, facts).map(|mut finding| {
            size_by_room(&cx, &mut finding);
            limits_now::as_of_now(&cx, &mut finding, None);
            Finding {
                title: finding.title.clone().after(&format!("{ago} ago: ")),
                when: None,
                before: Some(ago.saturating_sub(watched)),
                ..finding
            }
        }));
    }
    findings
}

/// Sizes a limit that is advised by the room that there is now: a report alone does not show any.
fn size_by_room(cx: &Evidence<'_>, finding: &mut Finding) {
    let available = cx.timeline.last(MEM_AVAILABLE);
    let Some(small) = finding.small_limit().cloned() else {
        return;
    };
    let group = cx.timeline.entity(Entity::Cgroup, &small.cgroup);
    let Some(group) =
        group.filter(|group| remedy::room_for(cx, group, small.size, available).is_some())
    else {
        return;
    };
    let to = remedy::limit_to_measure(cx, group, small.size, available);
    finding.fixes.retain_mut(|fix| {
        let is_raise = fix.raises.is_some();
        let mut limits = fix.changes.iter_mut().filter_map(|change| match change {
            FixChange::Limit(limit) => Some(limit),
            _ => None,
        });
        match (limits.next(), to) {
            (None, _) => {}
            (Some(limit), Some(to)) if is_raise => {
                limit.to = to;
                fix.what = remedy::raise_words(small.size, to);
            }
            // What throttles below it.
            (Some(limit), Some(to)) => limit.to = remedy::high_below(to),
            (Some(_), None) if is_raise => *fix = Fix::say(remedy::NO_ROOM),
            (Some(_), None) => return false,
        }
        true
    });
}

/// Returns what the rules find in one report alone.
fn judge_report(
    known: &EarlierReport,
    count: u64,
    facts: &Facts,
) -> impl Iterator<Item = Finding> + use<> {
    let mut sample = Sample::default();
    sample.stamp = known.stamp;
    sample.host = known.report.host.clone();
    let mut timeline = Timeline::default();
    timeline.push_new_segment(&sample);
    timeline.report(known.report.clone(), known.text.clone());
    RuleAnswers::collect(&Evidence::new(&timeline, facts))
        .incidents
        .into_iter()
        .filter(|finding| finding.severity > Severity::Info && finding.event.is_some())
        .map(move |mut finding| {
            finding.occasions.clear();
            finding.harm.killed = count;
            if count > 1 {
                finding = finding
                    .with_line(format!("{count} such kills in the kernel log; this is the last"));
            }
            finding
        })
}

#[cfg(test)]
mod tests {
    use timeline::signals::{CGROUP_MAX, MEM_TOTAL};
    use timeline::{KernelReport, Stamp};
    use units::{Bytes, Limit};

    use super::*;
    use crate::oom::testing::Report;
    use crate::{Diagnosis, Level, diagnose_now};

    /// Diagnoses a calm host with samples from second 1,000 on, and reports this many seconds before that.
    fn watched(reports: Vec<(u64, KernelReport)>) -> Diagnosis {
        let mut timeline = Timeline::default();
        for second in 0..20 {
            let mut sample = Sample::at(Span::from_secs(1_000 + second));
            sample.host.set(MEM_TOTAL, Bytes::from_gib(4));
            sample.host.set(MEM_AVAILABLE, Bytes::from_gib(3));
            let group = sample.table_mut(Entity::Cgroup).entry("/pods/web");
            group.row.set(CGROUP_MAX, Limit::Bytes(Bytes::from_mib(100)));
            timeline.push(&sample).expect("in order");
        }
        for (before, report) in reports {
            let stamp = Stamp { boot: Span::from_secs(1_000 - before), ..Stamp::default() };
            timeline.report_earlier(stamp, report, None);
        }
        let facts = Facts::default();
        diagnose_now(&timeline, 0, &facts, Span::from_mins(15))
    }

    #[test]
    fn a_kill_minutes_ago_is_over_and_one_seconds_ago_is_not() {
        let killed = |before| watched(vec![(before, Report::of_a_host().0)]);
        let over = killed(300);
        assert_eq!(over.findings[0].before, Some(Span::from_secs(300)));
        assert!(over.findings[0].title.starts_with("5.3 min ago: "));
        assert_eq!((over.verdict.level, over.verdict.now), (Level::Critical, Some(Level::Ok)));
        let fresh = killed(30).verdict;
        assert_eq!((fresh.level, fresh.now), (Level::Critical, None));
    }

    #[test]
    fn a_limit_is_advised_by_the_room_that_there_is_now() {
        let diagnosis = watched(vec![(20, Report::of_a_group(102_400, 102_400).0)]);
        let finding = diagnosis.findings.iter().find(|one| one.id == "oom-cgroup").unwrap();
        let raised = crate::rules::testing::changed(&finding.fixes[0]);
        assert_eq!(raised, ["/pods/web/memory.max=104857600 -> /pods/web/memory.max=419430400"]);
        assert!(finding.fixes[0].what.starts_with("Raise the limit to 400 MiB: the kill shows"));
    }
}
