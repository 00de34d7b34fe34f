//! Verdicts on trials of known truth: equal programs, a planted effect, blocks that a neighbour slows down.

use stats::BlockDesign;
use trial::{
    Analysis, ChoiceReason, Effect, Recommendation, TrialMetric, TrialPlan, TrialRun, TrialVerdict,
};

/// A plan of so many variants, the baseline twice in each block, looked at after 3 to 20 blocks.
fn plan(variants: usize) -> TrialPlan {
    let variants: Vec<_> = (0..variants)
        .map(|number| serde_json::json!({ "name": format!("v{number}"), "settings": [] }))
        .collect();
    serde_json::from_value(serde_json::json!({
        "format": "memtide-trial-plan/1", "id": "1", "command": { "line": "./work" }, "variants": variants,
        "left_out": [], "notes": [], "working_directory": "/", "has_control": true,
        "confidence": 0.95, "looks": [3, 5, 8, 12, 20], "seed": 1,
        "goals": { "margin": 0.05, "max_slowdown": 0.05, "memory_budget": null },
        "runs": { "timeout": 600.0, "idle": 0.0, "prepare": null, "server": null },
        "time_limit": null,
        "host": { "name": "", "kernel": "", "boot": "", "cpus": 2, "ram": 1 }
    }))
    .expect("a plan and a run are as the program reads them")
}

/// A run of 100 MiB and a second, times these.
fn run(block: usize, column: usize, memory: f64, speed: f64) -> TrialRun {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let bytes = (memory * 104_857_600.0) as u64;
    let mean = serde_json::json!({ "mean": bytes, "growth": null });
    serde_json::from_value(serde_json::json!({
        "trial": "1", "block": block, "place": column, "column": column, "variant": column.saturating_sub(1),
        "repeated": [], "begun": "2026-01-01T00:00:00Z", "outcome": "completed", "message": null,
        "applied": "yes", "processes": [],
        "memory": { "over_operations": null, "over_cpu": mean, "over_time": mean, "peak": bytes, "end": null,
            "idle": null, "group_peak": null },
        "speed": { "wall": speed, "cpu": speed, "operations": null, "p50_ms": null, "p95_ms": null,
            "p99_ms": null, "faults": null, "major_faults": null },
        "outside_cpus": 0.0, "steal": 0.0, "left_over": 0, "is_killed_at_end": false, "group": null, "own_cpu": 0.0, "curve": []
    }))
    .expect("a plan and a run are as the program reads them")
}

/// Normal noise.
struct Chance(u64);

impl Chance {
    fn uniform(&mut self) -> f64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        #[allow(clippy::cast_precision_loss)]
        let share = (self.0 >> 11) as f64 / (1_u64 << 53) as f64;
        share
    }

    fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.uniform()).sum::<f64>() - 6.0
    }
}

/// How runs scatter: memory and speed within a block, and a neighbour that slows whole blocks.
const MEMORY_SPREAD: f64 = 0.03;
const SPEED_SPREAD: f64 = 0.06;
const NEIGHBOUR: f64 = 0.4;

/// A trial of four variants, of which the last has so much of the baseline's memory.
fn runs(seed: u64, blocks: usize, last: f64) -> Vec<TrialRun> {
    let mut chance = Chance(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let mut all = Vec::new();
    for block in 0..blocks {
        let slow = NEIGHBOUR * chance.normal();
        for column in 0..5 {
            let memory = (MEMORY_SPREAD * chance.normal() + 0.2 * slow).exp();
            let memory = if column == 4 { memory * last } else { memory };
            all.push(run(block, column, memory, (SPEED_SPREAD * chance.normal() + slow).exp()));
        }
    }
    all
}

fn of(analysis: &Analysis, metric: TrialMetric) -> Vec<Effect> {
    analysis.metric(metric).map(|one| one.effects.clone()).unwrap_or_default()
}

const DESIGN: BlockDesign = BlockDesign { baselines: 2, treatments: 3 };

/// Each trial is looked at as long as it goes on; a false verdict at any look counts.
#[test]
fn equal_programs_are_called_different_in_at_most_six_of_a_hundred_trials() {
    let mut plan = plan(4);
    plan.confidence = DESIGN.confidence_of_each_look(&plan.looks, 0.95);
    let is_false =
        |verdict: TrialVerdict| !matches!(verdict, TrialVerdict::Same | TrialVerdict::NoEvidence);
    let mut wrong = [0, 0];
    const TRIALS: u64 = 200;
    for seed in 1..=TRIALS {
        let runs = runs(seed, 20, 1.0);
        for (count, metric) in wrong.iter_mut().zip([TrialMetric::Memory, TrialMetric::Cpu]) {
            let looks = plan.looks.iter().map(|look| &runs[..look * 5]);
            let called = looks.map(|some| of(&Analysis::of(&plan, some), metric));
            let mut called = called.flatten();
            *count += usize::from(called.any(|effect| is_false(effect.verdict)));
        }
    }
    eprintln!("false verdicts in {TRIALS} trials: memory {}, CPU time {}", wrong[0], wrong[1]);
    assert!(wrong.iter().all(|count| *count <= 12), "{wrong:?} of {TRIALS}");
}

/// As TRIAL's runs one after another: the first ten against the last ten of what a neighbour slows down.
#[test]
fn grouped_runs_of_equal_programs_differ_in_many_more() {
    let mut wrong = 0;
    for seed in 1..=200 {
        let mut chance = Chance(seed * 7919 + 1);
        // The neighbour comes and goes slowly.
        let mut load = 0.0;
        let speeds: Vec<f64> = (0..20)
            .map(|_| {
                load = 0.9 * load + 0.17 * chance.normal();
                load + SPEED_SPREAD * chance.normal()
            })
            .collect();
        let (first, second) = speeds.split_at(10);
        let t = (stats::mean(second).unwrap() - stats::mean(first).unwrap()).abs()
            / ((stats::squares_sum(first) + stats::squares_sum(second)) / 90.0).sqrt();
        wrong += usize::from(t > 2.101);
    }
    eprintln!("grouped: {wrong} of 200 false");
    assert!(wrong > 60, "{wrong}");
}

#[test]
fn a_planted_tenth_is_found_with_the_blocks_that_were_predicted() {
    let plan = plan(4);
    let predicted = DESIGN.blocks_until(1.1_f64.ln(), MEMORY_SPREAD, 0.95, 200).unwrap();
    // At that number the interval just reaches 1 on average; with twice as many it is clear of it.
    let found = (1..=100)
        .filter(|seed| {
            let analysis = Analysis::of(&plan, &runs(*seed, 2 * predicted, 0.9));
            of(&analysis, TrialMetric::Memory)[2].verdict == TrialVerdict::Less
        })
        .count();
    eprintln!(
        "a tenth less memory: predicted {predicted} blocks, found {found} of 100 with twice as many"
    );
    assert!(predicted <= 6 && found >= 95, "{predicted} {found}");
}

#[test]
fn a_planted_fiftieth_is_the_same_within_five_percent() {
    let plan = plan(4);
    let (mut same, mut different) = (0, 0);
    for seed in 1..=100 {
        let analysis = Analysis::of(&plan, &runs(seed, 20, 0.98));
        match of(&analysis, TrialMetric::Memory)[2].verdict {
            TrialVerdict::Same | TrialVerdict::LessUnderMargin => same += 1,
            // The interval may reach beyond 5 %; it is less, as well.
            TrialVerdict::NoEvidence | TrialVerdict::Less => {}
            TrialVerdict::More | TrialVerdict::MoreUnderMargin => different += 1,
        }
    }
    eprintln!(
        "two percent less: the same or less under the margin {same}, more {different} of 100"
    );
    assert!(same >= 70 && different == 0, "{same} {different}");
}

#[test]
fn what_saves_memory_is_recommended_and_what_fails_is_not_compared() {
    let mut plan = plan(4);
    // CPU time that scatters by 6 % is known to 8 % after 8 blocks.
    plan.goals.max_slowdown = units::Ratio::from_percent(15.0);
    let mut all = runs(3, 8, 0.6);
    let analysis = Analysis::of(&plan, &all);
    let recommended = Recommendation::of(&plan, &analysis, &all).unwrap();
    assert_eq!(recommended.variant, 3);
    for run in all.iter_mut().filter(|run| run.variant == 3) {
        run.outcome = trial::RunOutcome::OomKilled;
        run.speed = None;
    }
    let analysis = Analysis::of(&plan, &all);
    assert_eq!(
        analysis.variants[3].out.as_deref(),
        Some("killed 8 of 8: it needs more than 80 % of what is available here")
    );
    assert_eq!(of(&analysis, TrialMetric::Memory).len(), 2, "the others are compared");
    assert_eq!(Recommendation::of(&plan, &analysis, &all).unwrap().variant, 0);
}

#[test]
fn without_a_whole_block_nothing_is_compared() {
    let plan = plan(4);
    let all = runs(3, 2, 0.6);
    for some in [0, 3, 5, 9] {
        let analysis = Analysis::of(&plan, &all[..some]);
        assert_eq!((analysis.blocks, analysis.metrics.len()), (some / 5, 0));
        assert!(!analysis.is_settled(10) || analysis.blocks > 0);
    }
}

/// Two variants beside the baseline, each with its mean memory, its peak and its time, as ratios to it.
fn chosen(variants: [[f64; 3]; 2], budget: Option<u64>) -> (usize, ChoiceReason) {
    let mut plan = plan(3);
    plan.goals.memory_budget = budget.map(units::Bytes::from_mib);
    let mut chance = Chance(7);
    let mut all = Vec::new();
    for block in 0..6 {
        for column in 0..4 {
            let [memory, peak, speed] = if column < 2 { [1.0; 3] } else { variants[column - 2] };
            let noise = (0.004 * chance.normal()).exp();
            let mut run = run(block, column, memory * noise, speed * noise);
            if let Some(figures) = &mut run.memory {
                figures.peak = figures.over_time.mean.share(units::Ratio::new(2.0 * peak / memory));
            }
            all.push(run);
        }
    }
    let chosen = Recommendation::of(&plan, &Analysis::of(&plan, &all), &all)
        .expect("three variants in six whole blocks are compared");
    (chosen.variant, chosen.reason)
}

#[test]
fn what_is_chosen_and_why() {
    let same = [1.0, 1.0, 1.0];
    for (variants, budget, expected) in [
        ([[0.6, 0.6, 1.0], same], None, (1, ChoiceReason::LessMemory)),
        ([[0.6, 0.6, 1.0], [0.5, 0.5, 1.0]], None, (2, ChoiceReason::LessMemory)),
        // Hardly more memory, and much faster.
        ([[0.50, 0.5, 1.0], [0.51, 0.5, 0.6]], None, (2, ChoiceReason::LessMemory)),
        ([[0.6, 0.6, 1.3], same], None, (0, ChoiceReason::SavingsAreSlower)),
        ([[0.6, 1.4, 1.0], same], None, (0, ChoiceReason::PeaksAreHigher)),
        ([[1.0, 1.0, 0.7], same], None, (1, ChoiceReason::Faster)),
        ([same, same], None, (0, ChoiceReason::NothingSaves)),
        ([[1.3, 1.3, 1.0], same], None, (0, ChoiceReason::NothingSaves)),
        // The baseline has its peak at 200 MiB.
        ([[1.0, 0.7, 1.0], same], Some(160), (1, ChoiceReason::FitsBudget)),
        ([[1.0, 0.7, 1.3], same], Some(160), (0, ChoiceReason::OverBudget)),
        ([[0.6, 1.0, 1.0], same], Some(160), (0, ChoiceReason::OverBudget)),
    ] {
        assert_eq!(chosen(variants, budget), expected, "{variants:?} {budget:?}");
    }
}

/// A host on which the command is killed as it is has a question all the same: which setting lets it live, and best.
#[test]
fn where_the_baseline_is_killed_the_others_are_compared_with_the_first_that_lives() {
    let plan = plan(4);
    let mut all = runs(3, 6, 0.6);
    for run in all.iter_mut().filter(|run| run.variant == 0) {
        run.outcome = trial::RunOutcome::OomKilled;
        run.speed = None;
    }
    let analysis = Analysis::of(&plan, &all);
    assert_eq!((analysis.reference, analysis.variants[0].killed), (1, 12));
    let memory = of(&analysis, TrialMetric::Memory);
    assert_eq!(memory.iter().map(|one| one.variant).collect::<Vec<_>>(), [2, 3]);
    assert_eq!(memory[1].verdict, TrialVerdict::Less);
    // One that fails for another reason is no result of a setting.
    for run in all.iter_mut().filter(|run| run.variant == 0) {
        run.outcome = trial::RunOutcome::Failed(1);
    }
    assert!(Analysis::of(&plan, &all).metrics.is_empty());
}

#[test]
fn a_variant_of_one_command_without_operations_did_no_work() {
    let plan = plan(4);
    let mut all = runs(3, 6, 0.6);
    for run in all.iter_mut().filter(|run| run.variant != 3) {
        run.speed.as_mut().unwrap().operations = Some(100.0);
    }
    let analysis = Analysis::of(&plan, &all);
    assert!(analysis.variants[3].out.as_ref().unwrap().contains("announced no operation"));
    assert_eq!(of(&analysis, TrialMetric::Memory).len(), 2);
}
