//! The statistics of trials, against figures of R and against chance.

use stats::{BlockDesign, MaxT};

const THIRD: f64 = 1.0 / 3.0;

/// Comparisons, correlation, degrees of freedom, limit, and the probability that none exceeds it: `pmvt` of R 4.2 with
/// mvtnorm 1.1 (Genz and Bretz, abseps 1e-6).
const OF_R: [(usize, f64, u32, f64, f64); 48] = [
    (2, THIRD, 2, 2.5, 0.79805),
    (2, THIRD, 2, 4.0, 0.90950),
    (2, THIRD, 4, 2.5, 0.88508),
    (2, THIRD, 4, 4.0, 0.97151),
    (2, THIRD, 12, 2.5, 0.94777),
    (2, THIRD, 12, 4.0, 0.99659),
    (2, THIRD, 28, 2.5, 0.96444),
    (2, THIRD, 28, 4.0, 0.99917),
    (2, 0.5, 2, 2.5, 0.80388),
    (2, 0.5, 2, 4.0, 0.91221),
    (2, 0.5, 4, 2.5, 0.88933),
    (2, 0.5, 4, 4.0, 0.97257),
    (2, 0.5, 12, 2.5, 0.94979),
    (2, 0.5, 12, 4.0, 0.99669),
    (2, 0.5, 28, 2.5, 0.96569),
    (2, 0.5, 28, 4.0, 0.99918),
    (3, THIRD, 2, 2.5, 0.74954),
    (3, THIRD, 2, 4.0, 0.88641),
    (3, THIRD, 4, 2.5, 0.84762),
    (3, THIRD, 4, 4.0, 0.96144),
    (3, THIRD, 12, 2.5, 0.92613),
    (3, THIRD, 12, 4.0, 0.99504),
    (3, THIRD, 28, 2.5, 0.94868),
    (3, THIRD, 28, 4.0, 0.99877),
    (3, 0.5, 2, 2.5, 0.76055),
    (3, 0.5, 2, 4.0, 0.89165),
    (3, 0.5, 4, 2.5, 0.85655),
    (3, 0.5, 4, 4.0, 0.96374),
    (3, 0.5, 12, 2.5, 0.93097),
    (3, 0.5, 12, 4.0, 0.99530),
    (3, 0.5, 28, 2.5, 0.95183),
    (3, 0.5, 28, 4.0, 0.99881),
    (7, THIRD, 2, 2.5, 0.64336),
    (7, THIRD, 2, 4.0, 0.83314),
    (7, THIRD, 4, 2.5, 0.74998),
    (7, THIRD, 4, 4.0, 0.93295),
    (7, THIRD, 12, 2.5, 0.85716),
    (7, THIRD, 12, 4.0, 0.98954),
    (7, THIRD, 28, 2.5, 0.89475),
    (7, THIRD, 28, 4.0, 0.99723),
    (7, 0.5, 2, 2.5, 0.66751),
    (7, 0.5, 2, 4.0, 0.84545),
    (7, 0.5, 4, 2.5, 0.77405),
    (7, 0.5, 4, 4.0, 0.93991),
    (7, 0.5, 12, 2.5, 0.87477),
    (7, 0.5, 12, 4.0, 0.99066),
    (7, 0.5, 28, 2.5, 0.90783),
    (7, 0.5, 28, 4.0, 0.99745),
];

#[test]
fn the_largest_of_several_t_is_as_likely_as_r_says() {
    for (comparisons, correlation, freedom, limit, of_r) in OF_R {
        let max = MaxT { comparisons, correlation, freedom: f64::from(freedom) };
        let ours = max.confidence(limit);
        assert!((ours - of_r).abs() < 5e-5, "{max:?} {limit}: {ours} and {of_r}");
        assert!((max.limit(ours) - limit).abs() < 1e-4, "{max:?} {limit}");
    }
}

/// `qt` of R, and Dunnett's table (1964) for seven treatments and 30 degrees of freedom at 95 %.
#[test]
fn limits_are_those_of_printed_tables() {
    for (freedom, level, of_r) in [(1.0, 0.95, 12.7062), (2.0, 0.95, 4.3027), (28.0, 0.98, 2.4671)]
    {
        let one = MaxT { comparisons: 1, correlation: 0.0, freedom };
        assert!((one.limit(level) - of_r).abs() < 5e-4, "{freedom} {level}: {}", one.limit(level));
    }
    let seven = MaxT { comparisons: 7, correlation: 0.5, freedom: 30.0 };
    assert!((seven.limit(0.95) - 2.77).abs() < 0.006, "{}", seven.limit(0.95));
}

/// Blocks of noise, a load that comes and goes, and an effect on the last column.
fn rows(columns: usize, blocks: usize, effect: f64, seed: u64) -> Vec<Vec<f64>> {
    let mut state = seed;
    let mut uniform = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        #[allow(clippy::cast_precision_loss)]
        let share = (state >> 11) as f64 / (1_u64 << 53) as f64;
        share
    };
    // A sum of twelve is nearly normal, with a variance of 1.
    let mut normal = || (0..12).map(|_| uniform()).sum::<f64>() - 6.0;
    (0..blocks)
        .map(|_| {
            let load = 0.3 * normal();
            let mut row: Vec<f64> = (0..columns).map(|_| load + 0.03 * normal()).collect();
            if let Some(last) = row.last_mut() {
                *last += effect;
            }
            row
        })
        .collect()
}

#[test]
fn equal_treatments_differ_as_seldom_as_stated_however_often_one_looks() {
    const LOOKS: [usize; 5] = [3, 5, 8, 12, 20];
    const TRIALS: u64 = 2000;
    for treatments in [1, 6] {
        let design = BlockDesign { baselines: 2, treatments };
        let each = design.confidence_of_each_look(&LOOKS, 0.95);
        assert!((0.95..0.99).contains(&each), "{each}");
        let limits = LOOKS.map(|look| design.limits(look, each));
        let is_false = |seed: &u64| {
            let rows = rows(2 + treatments, 20, 0.0, *seed * 7919);
            LOOKS.iter().zip(&limits).any(|(look, limits)| {
                let found = design.compare(&rows[..*look], limits).unwrap();
                found.differences.iter().any(stats::MeanDifference::is_clear)
            })
        };
        let false_alarms = (0..TRIALS).filter(is_false).count();
        assert!((40..=140).contains(&false_alarms), "{treatments}: {false_alarms} of {TRIALS}");
    }
}

#[test]
fn a_planted_effect_is_found_with_the_blocks_that_were_predicted() {
    let design = BlockDesign { baselines: 2, treatments: 3 };
    let effect = 1.1_f64.ln();
    let needed = design.blocks_until(effect, 0.03, 0.95, 200).unwrap();
    assert!((2..=6).contains(&needed), "{needed}");
    let single = BlockDesign { baselines: 1, treatments: 1 };
    for (design, wanted, error) in
        [(design, effect, 0.03), (single, 1.0, 0.4), (single, 0.05, 0.06)]
    {
        let needed = design.blocks_until(wanted, error, 0.98, 200).unwrap();
        assert!(design.half_width(error, needed, 0.98) <= wanted, "{needed}");
        assert!(needed == 2 || design.half_width(error, needed - 1, 0.98) > wanted, "{needed}");
    }
    // Twice that for certain: at the predicted number a half of the trials find it.
    let limits = design.limits(2 * needed, 0.95);
    let found = (0..200)
        .filter(|seed| {
            let rows = rows(5, 2 * needed, effect, seed * 104_729);
            design.compare(&rows, &limits).unwrap().differences[2].is_clear()
        })
        .count();
    assert!(found >= 190, "{found} of 200");
    assert_eq!(design.blocks_until(0.001, 0.3, 0.95, 200), None);
}

#[test]
fn a_block_that_is_slow_as_a_whole_changes_nothing() {
    let design = BlockDesign { baselines: 1, treatments: 1 };
    let even = [vec![1.0, 2.0], vec![1.1, 2.0], vec![0.9, 2.0]];
    let mut uneven = even.clone();
    uneven[1].iter_mut().for_each(|value| *value += 50.0);
    let limits = design.limits(3, 0.95);
    let [calm, loaded] = [&even, &uneven].map(|rows| design.compare(rows, &limits).unwrap());
    assert!((calm.differences[0].mean - 1.0).abs() < 1e-12);
    assert!((calm.differences[0].half_width - loaded.differences[0].half_width).abs() < 1e-9);
    assert_eq!(calm.control, None);
    assert_eq!(design.compare(&even[..1], &limits), None);
    assert_eq!(design.compare(&[vec![1.0], vec![1.0, 2.0]], &limits), None);
}

/// One of six treatments that spreads four times as much has a wide interval of its own, and widens no other.
#[test]
fn a_treatment_that_spreads_more_is_judged_by_its_own_spread() {
    let design = BlockDesign { baselines: 2, treatments: 6 };
    let mut rows = rows(8, 10, 0.0, 5);
    for (block, row) in rows.iter_mut().enumerate() {
        row[7] += if block % 2 == 0 { 0.4 } else { -0.4 };
    }
    let found = design.compare(&rows, &design.limits(10, 0.95)).unwrap();
    let widths: Vec<f64> = found.differences.iter().map(|one| one.half_width).collect();
    assert!(widths[5] > 2.0 * widths[0], "{widths:?}");
}
