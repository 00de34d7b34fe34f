//! Series of each kind, and the confusion matrix.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use diagnose::growth::{Growth, GrowthClass, GrowthSeries};

use crate::generator::{KINDS, NOISE, Random, series};

/// What became of the series.
#[derive(Default)]
struct Tally {
    /// For each class: right answers, and all.
    right: BTreeMap<GrowthClass, (u64, u64)>,
    /// Wrong answers, in words.
    wrong: Vec<String>,
    /// Confident confusions of leaks and fragmentation.
    confused: Vec<String>,
}

/// Judges this many series of each kind and prints the confusion matrix.
fn judged(each: u64, seed: u64, noise: &RangeInclusive<f64>) -> Tally {
    let mut tally = Tally::default();
    for (k, (kind, class, model)) in KINDS.iter().enumerate() {
        let mut row: BTreeMap<&str, u64> = BTreeMap::new();
        for n in 0..each {
            let mut random = Random::new(seed + 1000 * k as u64 + n + 1);
            let model = model(&mut random);
            let growth = Growth::of(&series(&mut random, &model, noise));
            *row.entry(growth.class.name()).or_default() += 1;
            let right = tally.right.entry(*class).or_default();
            right.0 += u64::from(growth.class == *class);
            right.1 += 1;
            if growth.class == *class {
                continue;
            }
            let sure = growth.confidence.get();
            let line =
                format!("{kind} #{n}: {} {sure:.2} ({:?})", growth.class.name(), growth.method);
            let pair = [GrowthClass::Leak, GrowthClass::Fragmentation];
            if sure >= 0.8 && pair.contains(class) && pair.contains(&growth.class) {
                tally.confused.push(line.clone());
            }
            tally.wrong.push(line);
        }
        println!("{kind:24} {row:?}");
    }
    tally
}

#[test]
fn each_class_is_right_in_95_of_100_series_and_never_surely_wrong_between_leak_and_fragmentation() {
    assert_right(&judged(200, 7, &NOISE));
}

/// A large heap is read less often than the size of its process.
#[test]
fn a_heap_that_is_read_each_tenth_time_gives_the_same_classes_and_confirms_none() {
    let (mut right, mut all) = (0, 0);
    for (k, (kind, class, model)) in KINDS.iter().enumerate() {
        for n in 0..40 {
            let mut random = Random::new(50_000 + 1000 * k as u64 + n);
            let model = model(&mut random);
            let mut series = series(&mut random, &model, &NOISE);
            let step = series.points.len().div_ceil(25);
            let has_heap = series.points.iter().all(|point| point.live.is_some());
            for (at, point) in series.points.iter_mut().enumerate() {
                if at % step > 0 {
                    (point.live, point.free) = (None, None);
                }
            }
            if !has_heap {
                continue;
            }
            let growth = Growth::of(&series);
            assert!(growth.confidence.get() < 0.9, "{kind} #{n}: {growth:?}");
            all += 1;
            right += i32::from(growth.class == *class);
            if growth.class != *class {
                println!("{kind} #{n}: {} {:.2}", growth.class.name(), growth.confidence.get());
            }
        }
    }
    println!("{right} of {all}");
    assert!(right * 100 >= all * 80, "{right} of {all}");
}

/// A watch that is too short says for how long to go on: after that, there is a class.
#[test]
fn what_is_said_to_be_needed_decides() {
    let (mut decided, mut all, mut lines) = (0, 0, 0);
    for (k, (kind, _, model)) in KINDS.iter().enumerate() {
        for n in 0..20 {
            let mut random = Random::new(90_000 + 1000 * k as u64 + n);
            let model = model(&mut random);
            let whole = series(&mut random, &model, &NOISE);
            for share in [0.05, 0.1, 0.25] {
                let cut = |until: f64| {
                    let points =
                        whole.points.iter().filter(|point| point.at.as_secs_f64() <= until);
                    GrowthSeries { points: points.copied().collect(), ..GrowthSeries::default() }
                };
                let end = whole.points.last().unwrap().at.as_secs_f64();
                let growth = Growth::of(&cut(end * share));
                let Some(needs) = growth.needs else {
                    continue;
                };
                lines += usize::from(growth.rate.is_some());
                let until = growth.judged.as_secs_f64() + needs.as_secs_f64();
                if until > end {
                    continue;
                }
                all += 1;
                let is_decided = Growth::of(&cut(until)).class != GrowthClass::Unknown;
                decided += i32::from(is_decided);
                if !is_decided {
                    println!("{kind} #{n} at {share}: still open after {needs}");
                }
            }
        }
    }
    println!("{decided} of {all} decided; {lines} lines without a class");
    assert!(all > 20 && decided * 100 >= all * 80, "{decided} of {all}");
}

#[test]
fn noise_of_up_to_5_percent_changes_no_more() {
    assert_right(&judged(60, 1_000_007, &(0.01..=0.05)));
}

#[track_caller]
fn assert_right(tally: &Tally) {
    for line in &tally.wrong {
        println!("{line}");
    }
    assert_eq!(tally.confused, Vec::<String>::new());
    for (class, (good, all)) in &tally.right {
        println!("{:24} {good} of {all}", class.name());
        assert!(*good as f64 >= *all as f64 * 0.95, "{}: {good} of {all}", class.name());
    }
}
