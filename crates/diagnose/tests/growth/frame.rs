//! What must not change a class: more data, fewer readings, a gap, a restart, another scale, a total without its parts.

use diagnose::growth::{Growth, GrowthClass, GrowthPoint, GrowthSeries};
use units::{Bytes, Quantity, Span};

use crate::generator::{KINDS, NOISE, Random, series};

/// Ten series of each kind that are long enough to be cut.
fn samples(mut each: impl FnMut(&str, GrowthClass, &GrowthSeries)) {
    for (k, (kind, class, model)) in KINDS.iter().enumerate() {
        let mut found = 0;
        for n in 0.. {
            let mut random = Random::new(91_000 + 500 * k as u64 + n);
            let model = model(&mut random);
            let series = series(&mut random, &model, &NOISE);
            if series.points.len() >= 1500 {
                each(kind, *class, &series);
                found += 1;
            }
            if found == 10 {
                break;
            }
        }
    }
}

/// Judges changed series; the class stays in nine of ten.
fn keeps(name: &str, kinds: &[&str], change: impl Fn(&GrowthSeries) -> GrowthSeries) {
    let (mut kept, mut all) = (0, 0);
    samples(|kind, class, series| {
        if kinds.iter().any(|one| kind.starts_with(one)) {
            let growth = Growth::of(&change(series));
            all += 1;
            kept += u64::from(growth.class == class);
            if growth.class != class {
                println!("{name}: {kind}: {} ({:?})", growth.class.name(), growth.method);
            }
        }
    });
    println!("{name}: {kept} of {all}");
    assert!(kept * 10 >= all * 9, "{name}: {kept} of {all}");
}

const EVERY: [&str; 1] = [""];
/// Kinds of which a half shows the same.
const ALIKE: [&str; 7] =
    ["leak steady", "leak threads", "leak bursty", "leak +", "sawtooth", "warm-up", "flat"];

fn with(points: Vec<GrowthPoint>) -> GrowthSeries {
    GrowthSeries { points, ..GrowthSeries::default() }
}

#[test]
fn a_tenth_of_the_readings_shows_the_same() {
    let kinds = [
        "leak steady",
        "leak threads",
        "leak bursty",
        "leak +",
        "fragmentation",
        "warm-up",
        "seasonal",
        "flat",
        "steps",
    ];
    keeps("a tenth", &kinds, |series| with(series.points.iter().step_by(10).copied().collect()));
}

#[test]
fn a_half_shows_the_same() {
    keeps("a half", &ALIKE, |series| with(series.points[..series.points.len() / 2].to_vec()));
}

#[test]
fn a_gap_changes_nothing() {
    let kinds = ["leak", "fragmentation", "warm-up", "sawtooth", "flat", "steps", "pinned"];
    keeps("a gap", &kinds, |series| {
        let count = series.points.len();
        let outside = |i: &usize| *i < count * 45 / 100 || *i > count * 55 / 100;
        with((0..count).filter(outside).map(|i| series.points[i]).collect())
    });
}

#[test]
fn readings_in_any_order_show_the_same() {
    keeps("reversed", &EVERY, |series| with(series.points.iter().rev().copied().collect()));
}

#[test]
fn the_part_after_a_restart_is_judged() {
    let kinds = ["leak steady", "leak threads", "leak bursty", "leak +"];
    keeps("a restart", &kinds, |series| {
        let end = series.points[series.points.len() - 1].at;
        let large = |bytes: Bytes| Bytes::from_f64(bytes.as_f64() * 9.0);
        // Another process, nine times as large, ran before.
        let earlier = series.points.iter().map(|point| GrowthPoint {
            total: large(point.total),
            live: point.live.map(large),
            free: point.free.map(large),
            ..*point
        });
        let later = series
            .points
            .iter()
            .map(|point| GrowthPoint { at: point.at.plus(end).plus(Span::from_secs(1)), ..*point });
        with(earlier.chain(later).collect())
    });
}

#[test]
fn neither_sizes_nor_times_matter() {
    samples(|kind, _, series| {
        let larger = |bytes: Bytes| Bytes::from_f64(bytes.as_f64() * 10.0);
        let scaled = series.points.iter().map(|point| GrowthPoint {
            at: point.at.times(24.0),
            total: larger(point.total),
            live: point.live.map(larger),
            free: point.free.map(larger),
        });
        let (one, other) = (Growth::of(series), Growth::of(&with(scaled.collect())));
        assert_eq!(one.class, other.class, "{kind}");
    });
}

#[test]
fn the_total_alone_never_distinguishes_a_warm_up_from_fragmentation() {
    samples(|kind, class, series| {
        let total =
            series.points.iter().map(|point| GrowthPoint { live: None, free: None, ..*point });
        let growth = Growth::of(&with(total.collect()));
        let ambiguous = [GrowthClass::Warmup, GrowthClass::Fragmentation];
        assert!(!ambiguous.contains(&growth.class), "{kind}: {}", growth.class.name());
        assert!(growth.confidence.get() <= 0.7, "{kind}");
        if class == GrowthClass::Warmup {
            assert_eq!(growth.class, GrowthClass::Saturating, "{kind}");
        }
    });
}

#[test]
fn too_few_readings_ask_for_more() {
    for count in [0, 1, 2, 5, 30] {
        let points = (0..count).map(|n| GrowthPoint {
            at: Span::from_mins(n),
            total: Bytes::from_mib(100 + 10 * n),
            ..GrowthPoint::default()
        });
        let growth = Growth::of(&with(points.collect()));
        assert_eq!(growth.class, GrowthClass::Unknown);
        assert!(growth.confidence.get() < 0.5);
        // One reading has no span of which more could be needed.
        assert_eq!(growth.needs.is_some(), count > 1);
    }
}

#[test]
fn a_leak_names_its_rate_and_when_the_limit_is_reached() {
    let points = (0..360).map(|n| GrowthPoint {
        at: Span::from_secs(10 * n),
        total: Bytes::from_mib(100) + Bytes::from_kib(20 * n),
        live: Some(Bytes::from_mib(90) + Bytes::from_kib(20 * n)),
        free: Some(Bytes::from_mib(1)),
    });
    let limit = Some(Bytes::from_mib(207));
    let growth =
        Growth::of(&GrowthSeries { points: points.collect(), limit, ..GrowthSeries::default() });
    assert_eq!(growth.class, GrowthClass::Leak);
    let rate = growth.rate.unwrap();
    assert!((rate.rate.get() - 2048.0).abs() < 20.0, "{rate:?}");
    assert!(rate.from.get() <= 2048.5 && rate.to.get() >= 2047.5, "{rate:?}");
    // A hundred MiB at 20 KiB in ten seconds.
    let hours = growth.limit_in.unwrap().as_secs_f64() / 3600.0;
    assert!((13.5..15.0).contains(&hours), "{hours}");
}
