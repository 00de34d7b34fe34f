//! Scores `check` on labelled cases: each rule against each scenario.

use std::collections::BTreeMap;

use crate::model::{SCORE_SCHEMA, ScoreCase, ScoreCell, ScoreReport, UnscoredCase};

use crate::case::{Case, CaseLabels, CaseVerdict, CasesBelow};

/// Checks each case and compares it with its labels; `done` is given how many are.
/// A case that cannot be read is listed and does not count; one without labels is made for something else.
pub fn score(cases: &CasesBelow, done: &mut dyn FnMut(usize)) -> ScoreReport {
    let mut report = ScoreReport {
        schema: SCORE_SCHEMA,
        found: 0,
        missed: 0,
        wrong: 0,
        precision: None,
        recall: None,
        perfect: 0,
        unproven: 0,
        unlabelled: 0,
        unscored: cases.damaged.clone(),
        cases: Vec::new(),
        matrix: Vec::new(),
    };
    let mut matrix = BTreeMap::new();
    for (number, case) in (1..).zip(&cases.whole) {
        let Some(labels) = &case.file.labels else {
            report.unlabelled += 1;
            continue;
        };
        match judge(case, labels) {
            Ok(verdict) => {
                let scored = scored(case, &verdict);
                count(&mut matrix, &scored.scenario, &verdict);
                report.found += verdict.found.len() as u64;
                report.missed += verdict.missed.len() as u64;
                report.wrong += verdict.wrong.len() as u64;
                report.perfect += u64::from(verdict.missed.is_empty() && verdict.wrong.is_empty());
                report.unproven += u64::from(!scored.unproven.is_empty());
                report.cases.push(scored);
            }
            Err(why) => report.unscored.push(UnscoredCase { case: case.name(), why }),
        }
        done(number);
    }
    report.matrix = matrix.into_values().collect();
    report.precision = share(report.found, report.wrong);
    report.recall = share(report.found, report.missed);
    report
}

/// Checks a case and compares it with its labels; the error says why it cannot be.
fn judge(case: &Case, labels: &CaseLabels) -> Result<CaseVerdict, String> {
    let source = case.source().ok_or("it has no source")?;
    let opened = answers::open(&source, import::OpenOptions::default(), &mut |_| ());
    let source = opened.map_err(|error| timeline::with_causes(&error))?;
    if let Some(problem) = source.problems.first() {
        return Err(problem.clone());
    }
    Ok(labels.judge(&answers::check(&source)))
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
    let (family, rest) = name.split_once("--").unwrap_or((&name, ""));
    let lab = case.file.lab.as_ref();
    ScoreCase {
        scenario: lab.map_or(family, |lab| &lab.scenario).to_owned(),
        case: rest.to_owned(),
        expected: [verdict.found.clone(), verdict.missed.clone()].concat(),
        found: [verdict.found.clone(), verdict.wrong.clone(), verdict.allowed.clone()].concat(),
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
            let cell =
                matrix.entry((rule.clone(), scenario.to_owned())).or_insert_with(|| ScoreCell {
                    rule: rule.clone(),
                    scenario: scenario.to_owned(),
                    found: 0,
                    missed: 0,
                    wrong: 0,
                    allowed: 0,
                    noted: 0,
                });
            *field(cell) += 1;
        }
    };
    add(&verdict.found, |cell| &mut cell.found);
    add(&verdict.missed, |cell| &mut cell.missed);
    add(&verdict.wrong, |cell| &mut cell.wrong);
    add(&verdict.allowed, |cell| &mut cell.allowed);
    add(&verdict.noted, |cell| &mut cell.noted);
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::case::CaseFile;

    /// A labelled case beside a real capture.
    fn case(directory: &Path, capture: &str, labels: CaseLabels) -> Case {
        let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus/captures");
        let directory = directory.join(format!("{capture}--1"));
        std::fs::create_dir_all(&directory).unwrap();
        let source = "capture.jsonl.gz";
        std::fs::copy(corpus.join(capture).join(source), directory.join(source)).unwrap();
        Case { directory, file: CaseFile { labels: Some(labels), lab: None } }
    }

    #[test]
    fn what_is_found_missed_and_wrong_is_counted_and_a_broken_case_is_listed() {
        const KILL: &str = "oom-cgroup--5.10-768m-150m";
        let directory = tempfile::tempdir().unwrap();
        let directory = directory.path();
        let calm = CaseLabels { calm: true, ..CaseLabels::default() };
        let cases = [
            // A kill in a cgroup: found under either name; two others are not there.
            case(
                directory,
                KILL,
                CaseLabels::exactly(
                    &["oom-global|oom-cgroup", "swap-thrash", "fork-cow-spike"],
                    &[],
                ),
            ),
            // The same host, labelled as if nothing were wrong.
            case(&directory.join("calm"), KILL, calm),
            case(directory, "healthy--5.10-640m-commit", CaseLabels::exactly(&[], &[])),
        ];
        std::fs::write(cases[2].directory.join("capture.jsonl.gz"), "no gzip").unwrap();
        let unlabelled = Case { file: CaseFile { labels: None, lab: None }, ..cases[0].clone() };
        let damaged =
            UnscoredCase { case: "x--1".to_owned(), why: "case.toml: it is empty".to_owned() };
        let cases = CasesBelow {
            whole: [&cases[..], &[unlabelled]].concat(),
            damaged: vec![damaged.clone()],
        };
        let score = score(&cases, &mut |_| ());
        assert_eq!((score.unlabelled, score.unscored.len()), (1, 2));
        assert_eq!(score.unscored[0], damaged);
        assert_eq!((score.found, score.missed, score.wrong), (1, 2, 1));
        assert_eq!((score.precision, score.recall), (Some(0.5), Some(1.0 / 3.0)));
        assert_eq!((score.perfect, score.cases.len()), (0, 2));
        assert_eq!(score.unscored[1].case, "healthy--5.10-640m-commit--1");
        let cell = score.matrix.iter().find(|cell| cell.rule == "oom-cgroup");
        let cell = cell.unwrap();
        assert_eq!((cell.found, cell.missed, cell.wrong), (1, 0, 1));
    }
}
