//! Breaks, rates and readings of a timeline.

use super::*;
use crate::signals::{CGROUP_CURRENT, MEM_FREE, PSWPIN};
use units::{Bytes, Pages, WallClock};

/// Samples of `vm.pswpin` at the given seconds of the boot clock.
fn counted(samples: &[(u64, u64)]) -> Timeline {
    let mut timeline = Timeline::default();
    for (seconds, pages) in samples {
        let mut sample = Sample::at(Span::from_secs(*seconds));
        sample.host.set(PSWPIN, Pages::new(*pages));
        timeline.push(&sample).unwrap();
    }
    timeline
}

fn rates(timeline: &Timeline) -> Vec<Option<f64>> {
    timeline.rate(PSWPIN).unwrap().values().to_vec()
}

#[test]
fn rates_divide_by_the_real_time_between_samples() {
    assert_eq!(rates(&counted(&[(10, 0), (11, 100), (15, 500)])), [None, Some(100.0), Some(100.0)]);
}

#[test]
fn a_counter_that_falls_gives_no_rate() {
    assert_eq!(rates(&counted(&[(0, 500), (1, 3), (2, 5)])), [None, None, Some(2.0)]);
}

#[test]
fn a_late_sample_is_a_neighbour_and_a_gap_is_not() {
    let late = counted(&[(0, 0), (1, 1), (2, 2), (6, 6)]);
    assert!(late.breaks().is_empty());
    let gap = counted(&[(0, 0), (1, 1), (2, 2), (602, 602)]);
    assert_eq!(gap.breaks(), [Break { before: 3, kind: BreakKind::Gap(Span::from_mins(10)) }]);
    assert_eq!(rates(&gap)[3], None);
}

fn stamped(stamps: &[(u64, Option<u64>, Option<i64>)]) -> Result<Timeline, OutOfOrder> {
    let mut timeline = Timeline::default();
    for (i, (boot, awake, wall)) in stamps.iter().enumerate() {
        let mut sample = Sample::at(Span::from_secs(*boot));
        sample.stamp.awake = awake.map(Span::from_secs);
        sample.stamp.wall = wall.map(|s| WallClock::from_unix_nanos(s * 1_000_000_000));
        sample.host.set(PSWPIN, Pages::new(i as u64));
        timeline.push(&sample)?;
    }
    Ok(timeline)
}

#[test]
fn a_reboot_is_a_smaller_boot_clock_at_a_later_time() {
    let timeline =
        stamped(&[(1000, None, Some(5000)), (1001, None, Some(5001)), (3, None, Some(5061))])
            .unwrap();
    assert_eq!(timeline.breaks()[0].kind, BreakKind::Reboot);
    assert_eq!(timeline.duration(), Span::from_secs(61));
    assert_eq!(timeline.recorded(), Span::from_secs(1));
    assert_eq!(rates(&timeline)[2], None);
}

#[test]
fn a_sample_from_the_past_is_refused() {
    assert_eq!(stamped(&[(5, None, None), (4, None, None)]).unwrap_err(), OutOfOrder);
    assert_eq!(stamped(&[(5, None, Some(50)), (4, None, Some(49))]).unwrap_err(), OutOfOrder);
}

#[test]
fn suspend_breaks_rates_and_a_clock_step_does_not() {
    let slept = stamped(&[(0, Some(0), None), (1, Some(1), None), (101, Some(2), None)]);
    let slept = slept.unwrap();
    assert!(matches!(slept.breaks()[0].kind, BreakKind::Suspend(_)));
    assert_eq!(rates(&slept)[2], None);
    let stepped = stamped(&[(0, None, Some(0)), (1, None, Some(3601))]).unwrap();
    assert_eq!(stepped.breaks()[0].kind, BreakKind::ClockForward(Span::from_secs(3600)));
    assert_eq!(rates(&stepped)[1], Some(1.0));
    let back = stamped(&[(0, None, Some(5000)), (1, None, Some(0))]).unwrap();
    assert!(matches!(back.breaks()[0].kind, BreakKind::ClockBack(_)));
    assert_eq!(back.duration(), Span::from_secs(1));
}

#[test]
fn an_entity_that_comes_and_goes_is_absent_in_between() {
    let mut timeline = Timeline::default();
    for i in 0..4u64 {
        let mut sample = Sample::at(Span::from_secs(i));
        sample.host.set(MEM_FREE, Bytes::new(i));
        let other = sample.table_mut(Entity::Cgroup).entry("/db");
        other.row.set(CGROUP_CURRENT, Bytes::new(5));
        if i != 1 {
            let row = sample.table_mut(Entity::Cgroup).entry("/web");
            row.row.set(CGROUP_CURRENT, Bytes::new(10 + i));
        }
        timeline.push(&sample).unwrap();
    }
    let web = timeline.entity(Entity::Cgroup, "/web").unwrap();
    assert_eq!(
        timeline.gauge_of(web, CGROUP_CURRENT).unwrap().values(),
        [Some(10.0), None, Some(12.0), Some(13.0)]
    );
    assert_eq!(timeline.entities(Entity::Cgroup).count(), 2);
    assert_eq!(timeline.entities(Entity::Process).count(), 0);
}

#[test]
fn a_reading_is_exact_or_the_latest_so_far() {
    let mut timeline = Timeline::default();
    for i in 0..4u64 {
        let mut sample = Sample::at(Span::from_secs(i));
        sample.host.set(MEM_FREE, Bytes::new(i));
        if i == 1 {
            let row = sample.table_mut(Entity::Cgroup).entry("/web");
            row.row.set(CGROUP_CURRENT, Bytes::new(7));
        }
        timeline.push(&sample).unwrap();
    }
    let web = timeline.entity(Entity::Cgroup, "/web").unwrap();
    assert_eq!(timeline.at(MEM_FREE, 2), Some(Bytes::new(2)));
    assert_eq!(timeline.at(MEM_FREE, 9), None);
    assert_eq!(timeline.latest_of(web, CGROUP_CURRENT, 0), None);
    assert_eq!(timeline.latest_of(web, CGROUP_CURRENT, 3), Some(Bytes::new(7)));
}

#[test]
fn an_empty_timeline_answers_everything_with_nothing() {
    let timeline = Timeline::default();
    assert!(timeline.whole().is_none());
    assert!(timeline.interval().is_none());
    assert!(timeline.gauge(MEM_FREE).is_none());
}

#[test]
fn a_million_processes_take_no_more_than_a_source_may_and_are_counted() {
    let mut timeline = Timeline::default();
    let mut sample = Sample::default();
    for second in 0..4u64 {
        sample.clear();
        sample.stamp.boot = Span::from_secs(second);
        sample.host.set(MEM_FREE, Bytes::new(second));
        for pid in 0..60_000u64 {
            let row = sample.table_mut(crate::Entity::Process).add();
            row.key = format!("{pid}@{second}");
            row.label = "n".repeat(2_000);
        }
        timeline.push(&sample).unwrap();
    }
    let kept = timeline.entities(crate::Entity::Process);
    let names: usize = kept.map(|process| process.label.len()).sum();
    assert!(names < 110 << 20, "{names}");
    assert!(timeline.left_out().entity_rows > 0);
    // The host's own samples have room of their own.
    assert_eq!((timeline.len(), timeline.is_full()), (4, false));
}

#[test]
fn a_timeline_that_is_full_says_why_and_takes_no_more_reports() {
    let mut timeline = Timeline::of_a_part();
    assert_eq!(timeline.why_full(), "");
    let text: std::sync::Arc<str> = "x".repeat(1 << 20).into();
    timeline.push(&Sample::at(Span::ZERO)).unwrap();
    for _ in 0..100 {
        timeline.report(crate::KernelReport::default(), Some(text.clone()));
    }
    let all = timeline.all_reports().len();
    assert!((20..60).contains(&all), "{all}");
    assert_eq!(timeline.left_out().reports, 100 - all);
}
