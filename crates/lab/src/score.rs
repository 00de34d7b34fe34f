//! Scores `check` on labelled cases: each rule against each scenario.

use std::collections::BTreeMap;

use report::model::lab::{SCORE_SCHEMA, ScoreCase, ScoreCell, ScoreReport};

use crate::LabError;
use crate::case::{Case, CaseVerdict};

/// Checks each case and compares it with its labels; `done` hears how many are.
///
/// # Errors
/// [`LabError::Recording`] where a source cannot be read.
pub fn score(cases: &[Case], done: &mut dyn FnMut(usize)) -> Result<ScoreReport, LabError> {
    let mut report = ScoreReport {
        schema: SCORE_SCHEMA,
        found: 0,
        missed: 0,
        wrong: 0,
        precision: None,
        recall: None,
        perfect: 0,
        cases: Vec::new(),
        matrix: Vec::new(),
    };
    let mut matrix = BTreeMap::new();
    for (number, case) in (1..).zip(cases) {
        if let (Some(labels), Some(source)) = (&case.file.labels, case.source()) {
            let source = answers::open(&source, import::OpenOptions::default(), &mut |_| ())?;
            let verdict = labels.judge(&answers::check(&source));
            let scored = scored(case, &verdict);
            count(&mut matrix, &scored.scenario, &verdict);
            report.found += verdict.found.len() as u64;
            report.missed += verdict.missed.len() as u64;
            report.wrong += verdict.wrong.len() as u64;
            report.perfect += u64::from(verdict.missed.is_empty() && verdict.wrong.is_empty());
            report.cases.push(scored);
        }
        done(number);
    }
    report.matrix = matrix.into_values().collect();
    report.precision = share(report.found, report.wrong);
    report.recall = share(report.found, report.missed);
    Ok(report)
}

/// How much of all is good; `None` of nothing.
fn share(good: u64, bad: u64) -> Option<f64> {
    #[allow(clippy::cast_precision_loss)] // cases
    let share = good as f64 / (good + bad) as f64;
    (good + bad > 0).then_some(share)
}

fn scored(case: &Case, verdict: &CaseVerdict) -> ScoreCase {
    let name = case.name();
    // Other cases are named FAMILY--VARIANT.
    let (family, variant) = name.split_once("--").unwrap_or((&name, ""));
    let lab = case.file.lab.as_ref();
    ScoreCase {
        scenario: lab.map_or(family, |lab| &lab.scenario).to_owned(),
        variant: variant.to_owned(),
        expected: [verdict.found.clone(), verdict.missed.clone()].concat(),
        found: [
            verdict.found.clone(),
            verdict.wrong.clone(),
            verdict.allowed.clone(),
        ]
        .concat(),
        missed: verdict.missed.clone(),
        wrong: verdict.wrong.clone(),
        unproven: lab.map_or_else(Vec::new, |lab| lab.unproven.clone()),
    }
}

/// Adds a case to the cells of its scenario.
fn count(
    matrix: &mut BTreeMap<(String, String), ScoreCell>,
    scenario: &str,
    verdict: &CaseVerdict,
) {
    let mut add = |rules: &[String], field: fn(&mut ScoreCell) -> &mut u64| {
        for rule in rules {
            let cell = matrix
                .entry((rule.clone(), scenario.to_owned()))
                .or_insert_with(|| ScoreCell {
                    rule: rule.clone(),
                    scenario: scenario.to_owned(),
                    found: 0,
                    missed: 0,
                    wrong: 0,
                    allowed: 0,
                });
            *field(cell) += 1;
        }
    };
    add(&verdict.found, |cell| &mut cell.found);
    add(&verdict.missed, |cell| &mut cell.missed);
    add(&verdict.wrong, |cell| &mut cell.wrong);
    add(&verdict.allowed, |cell| &mut cell.allowed);
}
