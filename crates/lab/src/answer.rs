//! What came of a scenario, as a value of the report's model.

use crate::model::{
    ClaimState, LAB_SCHEMA, LabArm, LabClaim, LabCurve, LabFigure, LabFigureKind, LabFinding,
    LabPanel, LabReport, LabUnit,
};
use chart::{Chart, ChartKind, ChartUnit, Colour};
use diagnose::Evidence;
use report::model::Level;
use units::Bytes;

use crate::claim::Claim;
use crate::outcome::{ArmOutcome, ArmOutcomes};
use crate::scenario::{MeasuredFigure, Scenario, ScenarioFigure};

/// What came of a scenario: its claims, its arms and its figures.
pub fn answer(scenario: &Scenario, outcomes: &ArmOutcomes) -> LabReport {
    let of_profiles = outcomes.arms.iter().filter_map(|arm| profile_claim(scenario, arm));
    let judged: Vec<Claim> = (scenario.claims)(outcomes).into_iter().chain(of_profiles).collect();
    // With all arms played, what is not measured was lost.
    let is_whole = outcomes.arms.len() == scenario.arms.len();
    let is_good = |claim: &Claim| match claim.state {
        ClaimState::Holds | ClaimState::NoBounds => true,
        ClaimState::Fails => false,
        ClaimState::NotMeasured => !is_whole,
    };
    let hold = judged.iter().all(is_good);
    let claims: Vec<LabClaim> = judged
        .into_iter()
        .map(|claim| LabClaim {
            what: claim.what,
            article: claim.article,
            ours: claim.ours,
            state: claim.state,
        })
        .collect();
    let arms: Vec<LabArm> = outcomes.arms.iter().map(arm).collect();
    let is_found = |arm: &LabArm| {
        arm.verdict != Level::Unknown && arm.missed.is_empty() && arm.wrong.is_empty()
    };
    let first = outcomes.arms.first();
    LabReport {
        schema: LAB_SCHEMA,
        scenario: scenario.name.to_owned(),
        shows: scenario.shows.to_owned(),
        article: scenario.article.to_owned(),
        kernel: first.map_or_else(String::new, |arm| arm.kernel.clone()),
        accelerator: first.map_or("", |arm| arm.accelerator.name()).to_owned(),
        ram_bytes: first.map_or(Bytes::ZERO, |arm| arm.ram),
        holds: hold && arms.iter().all(is_found),
        claims,
        arms,
        figures: figures(scenario, outcomes),
    }
}

fn arm(outcome: &ArmOutcome) -> LabArm {
    let report = &outcome.report;
    let found = report.findings.iter().chain(&report.notes).map(|finding| LabFinding {
        id: finding.id.clone(),
        title: finding.whole_title().into_owned(),
        severity: finding.severity,
    });
    let verdict = outcome.verdict();
    LabArm {
        name: outcome.arm.to_owned(),
        settings: outcome.settings.clone(),
        verdict: outcome.report.verdict,
        headline: outcome.report.headline.clone(),
        found: found.collect(),
        missed: verdict.missed,
        wrong: verdict.wrong,
        measured: outcome.measured.clone(),
        profile: outcome.profile.clone(),
        capture: None,
        page: None,
    }
}

/// Whether `profile` names first what the kernel is busy with; `None` where it was not asked, or nothing is expected.
fn profile_claim(scenario: &Scenario, outcome: &ArmOutcome) -> Option<Claim> {
    let profile = outcome.profile.as_ref()?;
    let (_, expected) = scenario.hot.iter().find(|(arm, _)| *arm == outcome.arm)?;
    let first = profile.hot.first().map_or("", String::as_str);
    let named =
        |reason: &str| if reason.is_empty() { "nothing".to_owned() } else { reason.to_owned() };
    Some(Claim {
        what: format!("hot in {}: {}", outcome.arm, named(&expected.replace('|', " or "))),
        article: String::new(),
        value: None,
        ours: named(first),
        state: if expected.split('|').any(|one| one == first) {
            ClaimState::Holds
        } else {
            ClaimState::Fails
        },
    })
}

fn figures(scenario: &Scenario, outcomes: &ArmOutcomes) -> Vec<LabFigure> {
    let figures = scenario.figures.iter().map(|figure| match figure {
        ScenarioFigure::Chart(id) => charted(id, outcomes),
        ScenarioFigure::Measured(figure) => Some(measured(figure, outcomes)),
    });
    let has_points = |figure: &LabFigure| {
        let mut curves = figure.panels.iter().flat_map(|panel| &panel.curves);
        curves.any(|curve| !curve.points.is_empty())
    };
    figures.flatten().filter(has_points).collect()
}

/// A chart of the report's page, of every arm; `None` if no arm has it.
fn charted(id: &str, outcomes: &ArmOutcomes) -> Option<LabFigure> {
    let mut figure: Option<LabFigure> = None;
    for outcome in &outcomes.arms {
        let cx = Evidence::new(&outcome.source.timeline, &outcome.source.facts);
        let charts = chart::comparable_charts(&cx);
        let Some(chart) = charts.iter().find(|chart| chart.id == id) else {
            continue;
        };
        let panel = LabPanel { arm: outcome.arm.to_owned(), curves: curves(chart, &cx) };
        figure
            .get_or_insert_with(|| LabFigure {
                title: chart.title.clone(),
                help: chart.help.to_owned(),
                x: "s".to_owned(),
                unit: unit(chart.unit),
                kind: match chart.kind {
                    ChartKind::Stack => LabFigureKind::Stack,
                    ChartKind::Lines | ChartKind::Mirror => LabFigureKind::Lines,
                },
                is_log: chart.is_log,
                panels: Vec::new(),
            })
            .panels
            .push(panel);
    }
    figure
}

/// The curves of a chart that have anything but zeros.
fn curves(chart: &Chart, cx: &Evidence<'_>) -> Vec<LabCurve> {
    let times = cx.timeline.times();
    let begin = times.first().map_or(0.0, |first| first.as_secs_f64());
    let drawn = (chart.draw)(cx);
    let curves = chart.series.iter().zip(drawn).filter_map(|(series, curve)| {
        curve.iter().flatten().find(|value| **value != 0.0)?;
        Some(LabCurve {
            label: series.label.clone(),
            colour: series.colour.name(),
            is_limit: chart.is_limit(&series.id),
            points: times.iter().map(|at| at.as_secs_f64() - begin).zip(curve).collect(),
        })
    });
    curves.collect()
}

fn measured(figure: &MeasuredFigure, outcomes: &ArmOutcomes) -> LabFigure {
    let panel = |outcome: &ArmOutcome| LabPanel {
        arm: outcome.arm.to_owned(),
        curves: (0..)
            .zip(figure.curves)
            .filter_map(|(number, name)| {
                let points = outcome.curves.get(*name)?;
                Some(LabCurve {
                    label: (*name).to_owned(),
                    colour: Colour::Nth(number).name(),
                    is_limit: false,
                    points: points.iter().map(|(x, y)| (*x, Some(*y))).collect(),
                })
            })
            .collect(),
    };
    LabFigure {
        title: figure.title.to_owned(),
        help: figure.help.to_owned(),
        x: figure.x.to_owned(),
        unit: figure.unit.map_or(LabUnit::Number, unit),
        kind: if figure.is_bars { LabFigureKind::Bars } else { LabFigureKind::Lines },
        is_log: false,
        panels: outcomes.arms.iter().map(panel).collect(),
    }
}

fn unit(unit: ChartUnit) -> LabUnit {
    match unit {
        ChartUnit::Bytes => LabUnit::Bytes,
        ChartUnit::BytesPerSecond => LabUnit::BytesPerSecond,
        ChartUnit::PagesPerSecond => LabUnit::PagesPerSecond,
        ChartUnit::CountPerSecond => LabUnit::Number,
        ChartUnit::Share => LabUnit::Share,
        ChartUnit::Millis => LabUnit::Millis,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::path::Path;

    use super::*;
    use crate::host::accelerator::Accelerator;
    use crate::scenarios;
    use units::Bytes;

    /// An arm of `cgroup-oom` in which this many kills were counted, with a real capture of one.
    fn outcomes(kills: f64) -> ArmOutcomes {
        let scenario = scenarios::by_name("cgroup-oom").unwrap();
        let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus/captures");
        let capture = corpus.join("oom-cgroup--5.10-768m-150m/capture.jsonl.gz");
        let source = answers::open(&capture, import::OpenOptions::default(), &mut |_| ()).unwrap();
        let measured = [("kills", kills), ("available_share", 0.8)];
        let arm = &scenario.arms[0];
        ArmOutcomes {
            arms: vec![ArmOutcome {
                arm: arm.name,
                expected: scenario.expected(arm, &BTreeMap::new()),
                settings: BTreeMap::new(),
                measured: measured.map(|(name, value)| (name.to_owned(), value)).into(),
                curves: BTreeMap::new(),
                treatment: None,
                taken_back: None,
                profile: None,
                report: answers::check(&source),
                source,
                capture,
                accelerator: Accelerator::Tcg,
                kernel: "5.10".to_owned(),
                ram: Bytes::from_mib(768),
            }],
            _work: None,
        }
    }

    #[test]
    fn it_holds_if_every_claim_does_and_check_found_what_it_should() {
        let scenario = scenarios::by_name("cgroup-oom").unwrap();
        let report = answer(scenario, &outcomes(2.0));
        assert!(report.holds, "{report:#?}");
        assert!(!answer(scenario, &outcomes(0.0)).holds);
        let mut lost = outcomes(2.0);
        lost.arms[0].measured.clear();
        assert!(!answer(scenario, &lost).holds, "a number was lost");
        let mut other = outcomes(2.0);
        other.arms[0].expected.must_find = vec!["oom-global".to_owned()];
        let report = answer(scenario, &other);
        assert_eq!((report.holds, &report.arms[0].missed), (false, &vec!["oom-global".to_owned()]));
    }

    #[test]
    fn a_figure_has_a_panel_for_each_arm_that_has_its_chart() {
        let scenario = scenarios::by_name("cgroup-oom").unwrap();
        let figures = answer(scenario, &outcomes(2.0)).figures;
        assert!(!figures.is_empty());
        let panels = figures.iter().map(|figure| figure.panels.len());
        assert!(panels.into_iter().all(|panels| panels == 1));
    }
}
