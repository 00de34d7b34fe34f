use timeline::kernel_report::{Invoker, LogStamp};
use timeline::signals::{MEM_FREE, PSWPIN, PSWPOUT, REFAULT_ANON};
use timeline::{Facts, KernelReport, Sample, Stamp};
use units::{PageSize, Pages, Span};

use super::*;
use crate::diagnose;
use crate::oom::testing::Report;

fn source(reports: Vec<KernelReport>) -> Diagnosis {
    let mut timeline = Timeline::default();
    for (second, report) in (1..).zip(reports) {
        let mut sample = Sample::default();
        sample.stamp = Stamp { boot: Span::from_secs(second), ..Stamp::default() };
        sample.host = report.host.clone();
        timeline.push_new_segment(&sample);
        timeline.report(report, None);
    }
    diagnose(&timeline, &Facts::default())
}

fn stamped(mut report: Report, text: &str, seconds: u64) -> KernelReport {
    report.0.stamp = Some(LogStamp { text: text.to_owned(), of_year: Span::from_secs(seconds) });
    report.0
}

fn failed(pid: u32, name: &str) -> Report {
    let mut report = Report::of_a_host().failed();
    report.0.invoker = Some(Invoker { name: name.to_owned(), pid: Some(pid), oom_score_adj: None });
    report
}

#[test]
fn a_failed_allocation_of_a_killed_process_is_part_of_the_kill() {
    let with = |failed: Report| source(vec![Report::of_a_host().0, failed.0]);
    let dying = with(failed(20, "doxygen"));
    assert_eq!(dying.findings[0].id, "oom-global");
    let shows = |text: &str| dying.findings[0].evidence.iter().any(|e| e.text.contains(text));
    assert!(shows("one failed allocation belongs to it"));
    assert!(shows("seen in snapshot 1 of 2"));
    let other = with(failed(20, "nginx"));
    let evidence = &other.findings[0].evidence;
    assert!(evidence.iter().all(|e| !e.text.contains("belongs to it")));
}

#[test]
fn a_failed_allocation_that_names_a_victim_does_not_explain_itself() {
    let mut both = Report::of_a_host().failed().0;
    both.killed = Report::of_a_host().0.killed;
    both.tasks.clear();
    let both = || stamped(Report(both.clone()), "Nov 21 04:12:01", 100);
    assert!(!both().killed.is_empty());
    source(vec![both(), both()]);
}

#[test]
fn a_failed_allocation_within_a_second_of_a_kill_is_part_of_it() {
    let at = |seconds| {
        let kill = stamped(Report::of_a_host(), "Nov 21 04:12:01", 100);
        source(vec![kill, stamped(failed(7, "nginx"), "", seconds)])
    };
    let is_part = |diagnosis: Diagnosis| {
        let evidence = &diagnosis.findings[0].evidence;
        evidence.iter().any(|e| e.text.contains("belongs to it"))
    };
    assert!(is_part(at(101)));
    assert!(!is_part(at(3_700)));
}

#[test]
fn of_many_findings_of_a_rule_the_worst_remain_and_the_others_are_counted() {
    let kills = |groups: usize| {
        let kill = |group: usize| {
            let mut report = Report::of_a_group(100, 100).0;
            if let Some(at) = &mut report.group {
                at.path = format!("/pod{group}");
            }
            report
        };
        let diagnosis = source((0..groups).map(kill).collect());
        let lines = diagnosis.findings.iter().flat_map(|one| &one.evidence);
        let others = lines.filter(|line| line.text.contains("without findings of their own"));
        let others: Vec<_> = others.map(|line| line.text.clone()).collect();
        (diagnosis.findings.len(), others)
    };
    assert_eq!(kills(MAX_STORIES), (MAX_STORIES, Vec::new()));
    let (count, others) = kills(MAX_STORIES + 7);
    assert_eq!(count, MAX_STORIES);
    assert_eq!(others, ["also in 7 more cgroups without findings of their own, with 7 kills"]);
}

#[test]
fn a_kill_a_week_before_the_newest_snapshot_is_not_critical() {
    let after_days = |days: u64| {
        let mut timeline = Timeline::default();
        let mut snapshot = |days: u64, report: Option<KernelReport>| {
            let mut sample = Sample::default();
            let wall = WallClock::from_unix_nanos(0).plus(Span::from_hours(24 * days));
            sample.stamp.wall = Some(wall);
            sample.host = Report::of_a_host().0.host;
            timeline.push_new_segment(&sample);
            if let Some(report) = report {
                timeline.report(report, None);
            }
        };
        snapshot(20_000 + days, None);
        snapshot(20_000, Some(Report::of_a_host().0));
        let diagnosis = diagnose(&timeline, &Facts::default());
        let mut remarks = diagnosis.verdict.remarks.iter();
        let is_old = remarks.any(|remark| remark.contains("before the newest snapshot"));
        (diagnosis.findings[0].severity, is_old)
    };
    assert_eq!(after_days(6), (Severity::Critical, false));
    assert_eq!(after_days(8), (Severity::Warning, true));
}

#[test]
fn a_finding_of_several_segments_has_the_times_and_the_kills_of_all() {
    let kill = |name: &str, text: &str, at| {
        let mut report = Report::of_a_host().killing(20, name);
        report.0.tasks.clear();
        stamped(report, text, at)
    };
    let diagnosis = source(vec![
        kill("java", "Nov 21 04:12:01", 500),
        kill("nginx", "Nov 20 04:12:01", 100),
        kill("nginx", "Nov 22 04:12:01", 900),
    ]);
    let one = &diagnosis.findings[0];
    assert!(one.title.contains("nginx"), "{}", one.title);
    let samples: Vec<_> = one.stretches().iter().map(|when| when.first).collect();
    assert_eq!(samples, [1, 0, 2]);
    assert_eq!(one.harm.killed, 3);
    assert!(one.evidence.iter().any(|e| e.text == "seen in 3 of 3 snapshots"));
}

/// Returns two segments, each calm except for a short and cheap burst of thrash.
#[test]
fn bursts_of_all_segments_are_counted() {
    let mut timeline = Timeline::default();
    let mut pages = 0;
    for segment in 0..2 {
        for second in 0..60 {
            let mut sample = Sample::at(Span::from_secs(segment * 1000 + second));
            pages += if (20..25).contains(&second) { 3000 } else { 0 };
            for counter in [PSWPIN, PSWPOUT, REFAULT_ANON] {
                sample.host.set(counter, Pages::new(pages));
            }
            match second {
                0 => timeline.push_new_segment(&sample),
                _ => timeline.push(&sample).expect("in order"),
            }
        }
    }
    let mut facts = Facts::default();
    facts.page_size = PageSize::from_bytes(4096);
    let diagnosis = diagnose(&timeline, &facts);
    let bursts = &diagnosis.bursts[0];
    let samples: Vec<_> = bursts.stretches.iter().map(|when| when.first).collect();
    assert_eq!((bursts.id, samples.as_slice()), ("swap-thrash", &[19, 79][..]));
    assert!(!diagnosis.clear.iter().any(|(id, _)| *id == "swap-thrash"));
}

#[test]
fn a_program_that_was_started_again_did_not_grow() {
    let change = |second: &str| {
        let mut timeline = Timeline::default();
        for (key, pages) in [("7@0", 100_000), (second, 900_000)] {
            let mut sample = Sample::default();
            sample.host.set(MEM_TOTAL, Bytes::from_gib(16));
            let java = sample.table_mut(Entity::Process).add();
            java.key.push_str(key);
            java.label.push_str("java");
            java.row.set(PROC_RSS, Pages::new(pages));
            timeline.push_new_segment(&sample);
        }
        diagnose(&timeline, &Facts::default()).verdict.remarks.concat()
    };
    assert!(change("7@0").contains("java rose"), "{}", change("7@0"));
    assert!(!change("8@0").contains("java rose"), "{}", change("8@0"));
}

#[test]
fn of_snapshots_without_findings_one_with_available_memory_is_shown() {
    let mut timeline = Timeline::default();
    for available in [Some(6), None] {
        let mut sample = Sample::default();
        sample.host.set(MEM_TOTAL, Bytes::from_gib(31));
        sample.host.set(MEM_FREE, Bytes::from_gib(3));
        if let Some(gib) = available {
            sample.host.set(MEM_AVAILABLE, Bytes::from_gib(gib));
        }
        timeline.push_new_segment(&sample);
    }
    let remarks = diagnose(&timeline, &Facts::default()).verdict.remarks.concat();
    assert!(remarks.contains("available: 6 GiB"), "{remarks}");
}

#[test]
fn of_two_machines_the_verdict_names_its_own_and_parts_are_no_snapshots() {
    let mut timeline = Timeline::default();
    for gib in [64, 4] {
        for second in 0..2 {
            let mut sample = Sample::at(Span::from_secs(second));
            sample.host.set(MEM_TOTAL, Bytes::from_gib(gib));
            sample.host.set(MEM_AVAILABLE, Bytes::from_mib(20 * gib));
            match second {
                0 => timeline.push_new_segment(&sample),
                _ => timeline.push(&sample).expect("in order"),
            }
        }
    }
    let remarks = diagnose(&timeline, &Facts::default()).verdict.remarks.concat();
    assert!(remarks.contains("about the one with 4 GiB"), "{remarks}");
    assert!(remarks.contains("2 parts in unknown order"), "{remarks}");
}

#[test]
fn the_newest_kill_of_the_host_leads_however_the_log_is_sorted() {
    let kill = |name: &str, text: &str, at| {
        let mut report = Report::of_a_host().killing(20, name);
        report.0.tasks.clear();
        stamped(report, text, at)
    };
    let group = stamped(Report::of_a_group(100_000, 100_000), "Nov 22 07:00:00", 900);
    let diagnosis = source(vec![
        group,
        kill("java", "Nov 21 04:12:01", 500),
        kill("nginx", "Nov 20 04:12:01", 100),
    ]);
    let lead = &diagnosis.findings[0];
    assert!(lead.title.contains("java"), "{}", lead.title);
    assert_eq!(diagnosis.verdict.headline, *lead.title);
    assert!(lead.evidence.iter().any(|e| e.text.ends_with("Nov 21 04:12:01")));
    let mut roots = diagnosis.findings.iter().filter(|f| f.caused_by.is_none());
    assert_eq!(roots.nth(1).map(|f| f.id), Some("oom-cgroup"));
}
