//! Checks that a long recording drawn from its parts looks the same as drawn at once.

use timeline::signals::{MEM_FREE, PSWPIN};
use timeline::{Facts, Sample, Timeline};
use units::{Bytes, Pages, WallClock};

use super::*;
use crate::{ChartKind, ChartSeries, ChartUnit, Colour};

const HOURS: u64 = 10;
const MIB: u64 = 1 << 20;
/// A second in which free memory was exhausted, and swap was read.
const WORST: u64 = 7 * 3600 + 17;

fn sample(second: u64) -> Sample {
    let mut sample = Sample::at(Span::from_secs(5_000 + second));
    let wall = (1_700_000_000 + second) * 1_000_000_000;
    sample.stamp.wall = Some(WallClock::from_unix_nanos(wall.cast_signed()));
    let free = if second == WORST { 1 } else { 500 + second % 50 };
    sample.host.set(MEM_FREE, Bytes::new(free * MIB));
    let pages = second * 3 + if second >= WORST { 9_000 } else { 0 };
    sample.host.set(PSWPIN, Pages::new(pages));
    sample
}

/// Creates samples at these seconds.
fn watched(seconds: impl Iterator<Item = u64>) -> Timeline {
    let mut timeline = Timeline::default();
    for second in seconds {
        timeline.push(&sample(second)).unwrap();
    }
    timeline
}

/// Whether a second was recorded: all but five minutes of the fifth hour.
fn is_recorded(second: u64) -> bool {
    !(15_000..15_300).contains(&second)
}

fn chart(id: &str, kind: ChartKind, draw: fn(&Evidence<'_>) -> Option<Curve>) -> Chart {
    Chart {
        id: id.to_owned(),
        title: String::new(),
        help: "",
        kind,
        unit: ChartUnit::Bytes,
        size: crate::ChartSize::Small,
        band: None,
        is_of_changes: false,
        is_log: false,
        top: None,
        series: vec![ChartSeries {
            id: id.to_owned(),
            label: String::new(),
            colour: Colour::Free,
            is_steps: false,
            is_negative: false,
            signals: vec![MEM_FREE.id(), PSWPIN.id()],
            related: Vec::new(),
            inputs: Vec::new(),
            group: None,
            standing: None,
        }],
        limits: Vec::new(),
        quiet_up_to: None,
        absent: None,
        is_of_host: true,
        draw: Box::new(move |cx| vec![draw(cx).unwrap_or_default()]),
    }
}

fn charts() -> Vec<Chart> {
    let free = |cx: &Evidence<'_>| Some(cx.timeline.gauge(MEM_FREE)?.values().to_vec());
    let swap = |cx: &Evidence<'_>| Some(cx.timeline.rate(PSWPIN)?.values().to_vec());
    vec![
        chart("free", ChartKind::Lines, free),
        chart("swap", ChartKind::Mirror, swap),
        chart("stack", ChartKind::Stack, free),
    ]
}

fn by_minute() -> Timeline {
    let last_of_minutes = (0..HOURS * 60).map(|minute| minute * 60 + 59);
    watched(last_of_minutes.filter(|second| is_recorded(*second)))
}

/// Reduces a recording in parts of an hour, each of which begins with the last samples of the one before.
fn reduced(charts: &[Chart], whole: &Timeline, facts: &Facts) -> Drawing {
    let whole = Evidence::new(whole, facts);
    let mut reducer = Reducer::new(charts, &whole);
    for hour in 0..HOURS {
        let from = (hour * 3600).saturating_sub(9);
        let part = watched((from..(hour + 1) * 3600).filter(|second| is_recorded(*second)));
        reducer.take(&Evidence::new(&part, facts));
    }
    assert_eq!(reducer.interval(), Some(Span::from_secs(1)));
    reducer.drawing()
}

fn least(cells: &ColumnCells) -> f64 {
    let (least, _) = cells.extremes.as_ref().unwrap();
    least.iter().flatten().copied().fold(f64::INFINITY, f64::min)
}

fn most(cells: &ColumnCells) -> f64 {
    let (_, most) = cells.extremes.as_ref().unwrap();
    most.iter().flatten().copied().fold(0.0, f64::max)
}

#[test]
#[allow(clippy::cast_precision_loss)]
fn the_peak_of_a_second_is_seen_in_every_level_of_a_long_recording() {
    let (charts, facts, whole) = (charts(), Facts::default(), by_minute());
    let drawing = reduced(&charts, &whole, &facts);
    assert_eq!(drawing.levels.len(), 2);
    let [coarse, fine] = &drawing.levels[..] else {
        panic!("{}", drawing.levels.len());
    };
    assert!(coarse.times.len() <= COLUMNS_MAX && fine.times.len() > COLUMNS_MAX);
    for level in [coarse, fine] {
        assert_eq!(least(&level.cells[0][0]), MIB as f64);
        assert_eq!(most(&level.cells[1][0]), 9_003.0);
        let column = level.times.partition_point(|time| *time < Span::from_secs(WORST - 59));
        let (found, _) = level.cells[0][0].extremes.as_ref().unwrap();
        assert_eq!(found[column], Some(MIB as f64), "at its place");
        assert_eq!(level.cells[2][0].extremes, None, "stacks have no band");
        assert!(!level.cells[2][0].is_empty());
    }
}

#[test]
fn means_lie_within_extremes_and_what_parts_share_counts_once() {
    let (charts, facts, whole) = (charts(), Facts::default(), by_minute());
    let drawing = reduced(&charts, &whole, &facts);
    let all = watched((59..HOURS * 3600).filter(|second| is_recorded(*second)));
    let grid = ColumnGrid::of_step(&whole, drawing.levels[1].times[0]);
    let slots = Slots::of(&all, all.times(), &grid);
    let cx = Evidence::new(&all, &facts);
    for (chart, cells) in charts.iter().zip(&drawing.levels[1].cells).take(2) {
        let mut sums = ColumnSums::new(&grid);
        sums.take(&slots, &draw(chart, &cx)[0]);
        let at_once = sums.cells(true);
        // The first column of the recording has samples of its first minute, too.
        let pairs = cells[0].mean.iter().zip(&at_once.mean).skip(1);
        for (a, b) in pairs {
            assert_eq!(a.is_some(), b.is_some());
            let (a, b) = (a.unwrap_or_default(), b.unwrap_or_default());
            assert!((a - b).abs() <= 1e-9 * b.abs(), "{a} {b}");
        }
        let (least, most) = cells[0].extremes.as_ref().unwrap();
        for (mean, (least, most)) in cells[0].mean.iter().zip(least.iter().zip(most)) {
            assert!(least <= mean && mean <= most);
        }
    }
}

#[test]
fn a_gap_that_minutes_hardly_show_is_one_and_has_no_values() {
    let (charts, facts, whole) = (charts(), Facts::default(), by_minute());
    assert_eq!(gaps::of(&whole), [], "six minutes are late");
    let drawing = reduced(&charts, &whole, &facts);
    let second = |n: u64| Span::from_secs(n - 59);
    assert_eq!(drawing.gaps, [(second(14_999), second(15_300))]);
    let fine = &drawing.levels[1];
    let within = fine.times.iter().position(|time| *time > second(15_150)).unwrap();
    assert_eq!(fine.cells[0][0].mean[within], None);
}

#[test]
fn without_its_samples_a_recording_is_drawn_from_its_minutes() {
    let (charts, facts, whole) = (charts(), Facts::default(), by_minute());
    let cx = Evidence::new(&whole, &facts);
    let drawing = Reducer::new(&charts, &cx).drawing();
    let cells = &drawing.levels[0].cells[0][0];
    assert!(cells.extremes.is_none() && cells.mean.iter().flatten().count() > 400);
}

#[test]
fn a_stretch_is_sharpened_where_it_lies() {
    let (charts, facts, whole) = (charts(), Facts::default(), by_minute());
    let mut drawing = reduced(&charts, &whole, &facts);
    let at = Span::from_secs(WORST - 59);
    let found = worth_sharpening(&[(at, at)], &whole, Span::from_secs(1));
    let minutes = Span::from_mins(10);
    assert_eq!(found, [(at - minutes, at.plus(minutes))]);
    let part = watched(WORST - 600..=WORST + 600);
    assert!(drawing.sharpen(&charts, &Evidence::new(&part, &facts), &whole));
    let sharp = drawing.levels.last().unwrap();
    assert_eq!((sharp.times.len(), sharp.is_reduced), (1_201, false));
    assert_eq!(sharp.times[600], at);
    assert_eq!(sharp.cells[0][0].mean[600], Some(1_048_576.0));
}

#[test]
fn a_short_source_is_drawn_sample_by_sample_and_a_longer_one_in_columns_too() {
    let (charts, facts) = (charts(), Facts::default());
    let levels = |samples: u64| {
        let timeline = watched(0..samples);
        let cx = Evidence::new(&timeline, &facts);
        let worst = Span::from_secs(samples / 2);
        let drawing = Drawing::new(&charts, &cx, &[(worst, worst)]);
        let levels = drawing.levels.iter();
        levels.map(|level| (level.times.len(), level.is_reduced)).collect::<Vec<_>>()
    };
    assert_eq!(levels(1_500), [(1_500, false)]);
    assert_eq!(levels(5_000), [(1_500, true), (5_000, false)]);
    // Too long to be drawn sample by sample: a finer level, ten minutes on each side of the worst second, and a sample
    // beside each end; and ten minutes from the first second in which the swap-in rate was at its highest.
    assert_eq!(levels(20_000), [(1_500, true), (10_080, true), (1_203, false), (603, false)]);
}

#[test]
fn a_peak_of_a_second_is_sharp_where_nothing_was_found_there() {
    let (charts, facts) = (charts(), Facts::default());
    let timeline = watched(0..HOURS * 3_600);
    let drawing = Drawing::new(&charts, &Evidence::new(&timeline, &facts), &[]);
    let sharp = drawing.levels.iter().filter(|level| !level.is_reduced);
    let worst = Span::from_secs(WORST);
    let mut at = sharp.filter_map(|level| {
        let column = level.times.iter().position(|time| *time == worst)?;
        level.cells[0][0].mean[column]
    });
    assert_eq!(at.next(), Some(1_048_576.0));
}

#[test]
fn a_part_that_begins_later_is_drawn_from_its_beginning() {
    let facts = Facts::default();
    let mut timeline = watched(0..10);
    for second in 50_000..53_000 {
        match second {
            50_000 => timeline.push_new_segment(&sample(second)),
            _ => timeline.push(&sample(second)).unwrap(),
        }
    }
    let part = timeline.segments().pop().unwrap();
    let drawing = Drawing::new(&charts(), &Evidence::new(&part, &facts), &[]);
    let coarse = &drawing.levels[0];
    assert!(coarse.times[0] > part.times()[0] && coarse.times[0] < part.times()[10]);
    assert!(coarse.cells[0][0].mean.iter().all(Option::is_some));
}

#[test]
fn what_is_no_number_was_not_measured() {
    let timeline = watched(0..3);
    let facts = Facts::default();
    let cx = Evidence::new(&timeline, &facts);
    let charts = [
        chart("none", ChartKind::Lines, |_| Some(vec![Some(f64::NAN); 3])),
        chart("some", ChartKind::Lines, |_| Some(vec![Some(f64::INFINITY), Some(1.0), None])),
    ];
    let drawing = Drawing::new(&charts, &cx, &[]);
    assert!(!drawing.has(0));
    assert!(drawing.has(1));
}
