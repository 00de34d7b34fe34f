//! What a page draws of a long recording: no peak between its minutes is lost, and the signals that are read for that are
//! all that is needed.

use chart::{ChartKind, Drawing, Reducer, charts, scanned};
use diagnose::Evidence;
use import::{OpenOptions, Resolution};
use store::{HostIdentity, add_timeline};
use timeline::TimeRange;
use timeline::signals::MEM_AVAILABLE;
use timeline::{Facts, Sample, Timeline};
use units::{Bytes, Span, WallClock};

use crate::cases;

/// A timeline with only what is scanned for these charts.
fn thinned(whole: &Timeline, charts: &[chart::Chart]) -> Timeline {
    let signals = scanned(charts);
    let mut thin = Timeline::default();
    for index in 0..whole.len() {
        if whole.starts_segment(index) {
            thin.push_stamp_new_segment(whole.stamp(index).unwrap())
        } else {
            thin.push_stamp(whole.stamp(index).unwrap()).unwrap()
        }
    }
    for (signal, runs) in whole.host_runs().filter(|(signal, _)| signals.contains(signal)) {
        thin.append_host_runs(signal, runs);
    }
    thin
}

#[test]
fn lines_drawn_from_what_is_scanned_are_those_drawn_from_all() {
    let mut compared = 0;
    for case in cases::captures() {
        let cx = case.judged().evidence();
        let charts = charts(&cx);
        let thin = thinned(cx.timeline, &charts);
        let part = Evidence::new(&thin, cx.facts);
        let lines = |chart: &&chart::Chart| chart.is_of_host && chart.kind != ChartKind::Stack;
        for chart in charts.iter().filter(lines) {
            let pairs = (chart.draw)(&cx).into_iter().zip((chart.draw)(&part));
            for ((all, scanned), series) in pairs.zip(&chart.series) {
                let place = format!("{}: {} {}", case.id, chart.id, series.id);
                // The floor is that of zones, and drawn from the minutes.
                if series.id.starts_with("floor-") {
                    assert_eq!(scanned.len(), 0, "{place}");
                    continue;
                }
                assert_eq!(all, scanned, "{place}");
                compared += 1;
            }
        }
    }
    assert!(compared > 200, "{compared}");
}

const START: u64 = 1_790_000_040;
const WORST: u64 = 7 * 3600 + 1_234;

/// Eight hours; for one second hardly anything was available.
fn recorded(directory: &std::path::Path) {
    let host = HostIdentity { id: "a1".to_owned(), name: "web3".to_owned() };
    for hour in 0..8 {
        let mut timeline = Timeline::default();
        for second in hour * 3600..(hour + 1) * 3600 {
            let mut sample = Sample::at(Span::from_secs(100 + second));
            let wall = ((START + second) * 1_000_000_000).cast_signed();
            sample.stamp.wall = Some(WallClock::from_unix_nanos(wall));
            let mib = if second == WORST { 3 } else { 900 };
            sample.host.set(MEM_AVAILABLE, Bytes::from_mib(mib));
            timeline.push(&sample).unwrap();
        }
        add_timeline(directory, &host, &timeline, &Facts::default(), Span::from_secs(1)).unwrap();
    }
}

fn least_available(drawing: &Drawing, charts: &[chart::Chart]) -> Vec<f64> {
    let free = charts.iter().position(|chart| chart.id == "free").unwrap();
    let levels = drawing.levels.iter().map(|level| {
        let (least, _) = level.cells[free][0].extremes.as_ref().unwrap();
        least.iter().flatten().copied().fold(f64::INFINITY, f64::min)
    });
    levels.collect()
}

#[test]
fn a_second_between_two_minutes_is_drawn() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("recording");
    recorded(&path);
    let wanted = OpenOptions { resolution: Resolution::Minutes, ..OpenOptions::default() };
    let source = import::open_part(&path, wanted, &mut |_| ()).unwrap();
    assert_eq!(source.timeline.len(), 480);
    let cx = Evidence::new(&source.timeline, &source.facts);
    let charts = charts(&cx);
    let mut reducer = Reducer::new(&charts, &cx);
    let problems = import::scan(&path, TimeRange::default(), &scanned(&charts), &mut |part| {
        reducer.take(&Evidence::new(part, cx.facts));
    });
    assert_eq!(problems.unwrap(), Vec::<String>::new());
    let least = least_available(&reducer.drawing(), &charts);
    assert!(!least.is_empty() && least.iter().all(|bytes| *bytes == 3_145_728.0), "{least:?}");
}
