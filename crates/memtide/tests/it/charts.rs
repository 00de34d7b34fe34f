//! Charts of the labelled captures: every stack adds up, and every finding is seen on some chart.

use std::collections::{BTreeMap, BTreeSet};

use chart::{Chart, ChartKind, Curve, charts};
use diagnose::Evidence;
use timeline::signals::{MEM_TOTAL, by_name};
use units::Quantity;

use crate::cases;

/// Signals that findings rest on and that no chart shows, and why.
const NOT_DRAWN: [(&str, &str); 20] = [
    ("cgroup.oom_kill_disable", "a switch; its finding has a time"),
    ("cgroup.under_oom", "a switch; its finding has a time"),
    ("vm.drop_pagecache", "an event; the page cache that falls is drawn"),
    ("cgroup.events_high", "events; the group and its limit are drawn"),
    ("cgroup.events_max", "events; the group and its limit are drawn"),
    ("cgroup.events_oom_kill", "an event, and listed as such"),
    (
        "cgroup.file_dirty",
        "of one group; unwritten data of the host is drawn, and its own with the finding",
    ),
    ("cgroup.psi.io.some", "of one group; its memory and limit are drawn"),
    ("cgroup.psi.memory.some", "of one group; its memory and limit are drawn"),
    ("cgroup.refault_file", "of one group; its memory and limit are drawn"),
    ("mem.committed_as", "a promise, not memory"),
    ("proc.private_dirty", "read of few processes and rarely; what they want is drawn"),
    ("swap.total", "drawn as the limit of swap used, unless the finding is that there is none"),
    ("vm.oom_kill", "an event, and listed as such"),
    ("vm.pgmajfault", "faults, while the pages that they read again are drawn"),
    ("vm.thp_fault_alloc", "a total; what huge pages take is process memory"),
    ("vm.workingset_activate_file", "told as a share of the refaults, which are drawn"),
    ("vm.zone_reclaim_success", "counts reclaims whose scanned pages are drawn"),
    (
        "disk.read_time",
        "the mean time of a read is computed from it; traffic and busy time of disks are drawn",
    ),
    ("zone.min", "of one zone; the floor is drawn for the host"),
];

fn drawn(chart: &Chart, cx: &Evidence<'_>, name: &str) -> Vec<Curve> {
    let curves = (chart.draw)(cx);
    assert_eq!(curves.len(), chart.series.len(), "{name}: {}", chart.id);
    for (curve, series) in curves.iter().zip(&chart.series) {
        let place = format!("{name}: {} {}", chart.id, series.id);
        assert_eq!(curve.len(), cx.timeline.len(), "{place}");
        assert!(curve.iter().flatten().all(|v| v.is_finite()), "{place}");
    }
    curves
}

fn sum(curves: &[Curve], index: usize) -> f64 {
    curves.iter().filter_map(|curve| curve[index]).sum()
}

#[test]
fn the_stack_of_memory_adds_up_to_memtotal_at_every_sample_of_every_capture() {
    let mut samples = 0;
    for case in cases::captures() {
        let (name, cx) = (&case.id, case.judged().evidence());
        let charts = charts(&cx);
        let memory = &charts[0];
        assert_eq!((memory.id.as_str(), &memory.absent), ("where", &None), "{name}");
        let curves = drawn(memory, &cx, name);
        for index in 0..cx.timeline.len() {
            let total = cx.timeline.at(MEM_TOTAL, index).unwrap().as_f64();
            assert_eq!(sum(&curves, index), total, "{name} at {index}");
            samples += 1;
        }
        assert_eq!(memory.top, Some(cx.timeline.last(MEM_TOTAL).unwrap().as_f64()));
    }
    assert!(samples > 1000);
}

#[test]
fn charts_of_captures_and_pastes_are_whole() {
    for case in cases::captures().chain(cases::pastes()) {
        let (name, cx) = (&case.id, case.judged().evidence());
        let charts = charts(&cx);
        let ids: BTreeSet<_> = charts.iter().map(|chart| chart.id.as_str()).collect();
        assert_eq!(ids.len(), charts.len(), "{name}");
        for chart in &charts {
            let curves = drawn(chart, &cx, name);
            assert_eq!(chart.absent.is_some(), curves.is_empty(), "{name}: {}", chart.id);
            if let (ChartKind::Stack, Some(top)) = (chart.kind, chart.top) {
                let highest = (0..cx.timeline.len()).map(|index| sum(&curves, index));
                let highest = highest.fold(0.0, f64::max);
                assert!(highest <= top * (1.0 + 1e-9), "{name}: {} {highest}", chart.id);
            }
        }
    }
}

#[test]
fn what_a_finding_rests_on_is_seen_on_a_chart() {
    let mut not_drawn: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for case in cases::captures() {
        let (name, cx) = (&case.id, case.judged().evidence());
        let charts = charts(&cx);
        let shown = charts.iter().flat_map(|chart| &chart.series);
        let shown = shown.flat_map(|series| series.covered());
        let shown: BTreeSet<&str> = shown.map(|id| id.def().name).collect();
        for finding in &case.judged().diagnosis.findings {
            let measured = finding.evidence.iter().filter_map(|line| line.measured.as_ref());
            // A setting is no signal.
            let signals = measured.map(|measured| measured.signal);
            let signals: Vec<_> = signals.filter(|signal| by_name(signal).is_some()).collect();
            let mut unseen = signals.clone();
            unseen.retain(|signal| !shown.contains(signal));
            // What was before the first sample has no place on a chart.
            if finding.when.is_none() && unseen == signals {
                continue;
            }
            assert!(
                signals.is_empty() || unseen.len() < signals.len(),
                "{name}: {} is on no chart: {unseen:?}",
                finding.id
            );
            for signal in unseen {
                not_drawn.entry(signal).or_default().insert(finding.id);
            }
        }
    }
    let allowed: BTreeSet<&str> = NOT_DRAWN.iter().map(|(signal, _)| *signal).collect();
    let found: BTreeSet<&str> = not_drawn.keys().copied().collect();
    assert_eq!(found, allowed, "{not_drawn:#?}");
}
