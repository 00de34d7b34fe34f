//! The four figures below the verdict: what proves the leading finding, or the tightest moments where nothing is wrong.

use chart::{ChartSeries, ChartUnit};
use timeline::AnySignal as _;
use timeline::signals::{MEM_AVAILABLE, PSI_MEMORY_SOME, PSWPIN, REFAULT_FILE};
use units::Bytes;

use super::Scene;
use super::escape::{Html, Tag};
use super::spark::{self, Keep, Spark};
use crate::model::page::unit;
use crate::model::{Evidence, Finding, ThresholdSide};
use crate::picture::{SeriesIndex, shown};

/// More would not be read.
const FIGURES_MAX: usize = 4;
/// Longer names are cut where figures stand side by side.
const LONGEST_NAME: usize = 32;

/// One of them.
struct KeyFigure<'a> {
    name: String,
    value: String,
    about: String,
    /// The series that it is taken from; `None` where no chart shows it.
    at: Option<SeriesIndex>,
    spark: Spark<'a>,
}

pub(super) fn draw(html: &mut Html, scene: &Scene<'_>) {
    let figures = chosen(scene);
    if figures.is_empty() {
        return;
    }
    html.within(Tag::of("div", "figures"), |html| {
        for figure in &figures {
            html.within(Tag::of("div", "figure"), |html| {
                html.tagged(Tag::of("p", "name"), &figure.name);
                html.tagged(Tag::of("p", "value"), &figure.value);
                html.tagged(Tag::of("p", "about"), &figure.about);
                let spark = Spark {
                    is_loud: true,
                    ..figure.spark
                };
                spark::draw(html, &spark);
            });
        }
    });
}

/// Of the leading finding, what is available at worst, and then the usual figures.
fn chosen<'a>(scene: &'a Scene<'_>) -> Vec<KeyFigure<'a>> {
    let leading = scene.report.findings.first();
    let mut figures = leading.map_or_else(Vec::new, |finding| of_finding(scene, finding));
    figures.truncate(FIGURES_MAX - 1);
    let usual = [
        available(scene),
        most(
            scene,
            PSI_MEMORY_SOME.definition().name,
            "Peak memory stall (PSI some)",
        ),
        swap_in(scene),
        most(scene, REFAULT_FILE.definition().name, "Peak file refaults"),
    ];
    for figure in usual.into_iter().flatten() {
        if figures.iter().all(|known| known.at != figure.at) {
            figures.push(figure);
        }
    }
    figures.truncate(FIGURES_MAX);
    figures
}

/// Evidence that a series shows, each series once. What is available has a figure of its own.
fn of_finding<'a>(scene: &'a Scene<'_>, finding: &'a Finding) -> Vec<KeyFigure<'a>> {
    let mut figures: Vec<KeyFigure<'a>> = Vec::new();
    for evidence in &finding.evidence {
        let Some((at, value)) = measured(scene, finding, evidence) else {
            continue;
        };
        let is_known = figures.iter().any(|figure| figure.at == Some(at));
        if is_known || evidence.signal.as_deref() == Some(MEM_AVAILABLE.definition().name) {
            continue;
        }
        let threshold = evidence.threshold_text.as_ref();
        figures.push(KeyFigure {
            name: name(scene, at, evidence.signal.as_deref()),
            value: value.to_owned(),
            about: threshold.map_or_else(String::new, |text| format!("threshold {text}")),
            at: Some(at),
            spark: of_evidence(scene, finding, evidence, at),
        });
    }
    figures
}

/// The series that shows a piece of evidence in the same unit, and its value as people read it; what was measured beside the
/// proof and stayed on the calm side is no figure.
fn measured<'e>(
    scene: &Scene<'_>,
    finding: &Finding,
    evidence: &'e Evidence,
) -> Option<(SeriesIndex, &'e str)> {
    let at = scene.picture.proof(finding, evidence.signal.as_ref()?)?;
    let unit = scene.picture.charts[at.chart].unit;
    let is_same = measures(unit, evidence.unit.as_deref()?);
    let value = evidence.value_text.as_deref()?;
    (is_same && evidence.counts()).then_some((at, value))
}

/// The graph of the series that shows a piece of evidence.
pub(super) fn of_evidence<'a>(
    scene: &'a Scene<'_>,
    finding: &Finding,
    evidence: &Evidence,
    at: SeriesIndex,
) -> Spark<'a> {
    let keep = match evidence.threshold_side {
        Some(ThresholdSide::Below) => Keep::Least,
        Some(ThresholdSide::From) | None => Keep::Most,
    };
    let is_same = evidence
        .unit
        .as_deref()
        .is_some_and(|name| measures(scene.picture.charts[at.chart].unit, name));
    Spark {
        tint: scene.picture.stretch_of(finding),
        threshold: evidence.threshold.filter(|_| is_same),
        ..of_series(scene, at, keep)
    }
}

/// Whether a chart's values are in the unit of this name, as evidence has it.
fn measures(of_chart: ChartUnit, name: &str) -> bool {
    unit(of_chart) == name || of_chart == ChartUnit::Share && name == "ratio"
}

/// The graph of a series, over all of the picture.
pub(super) fn of_series<'a>(scene: &'a Scene<'_>, at: SeriesIndex, keep: Keep) -> Spark<'a> {
    let cells = scene.picture.cells(at);
    let values = cells.map_or(&[][..], |cells| match (&cells.extremes, keep) {
        (Some((least, _)), Keep::Least) => least,
        (Some((_, most)), Keep::Most) => most,
        (None, _) => &cells.mean,
    });
    Spark {
        times: scene.picture.times(),
        values,
        keep,
        ..Spark::default()
    }
}

/// What a series is called where its chart is not beside it: with the chart's name where there is room. Of a signal that
/// takes more into account than the series the chart's name is true.
fn name(scene: &Scene<'_>, at: SeriesIndex, signal: Option<&str>) -> String {
    let chart = &scene.picture.charts[at.chart];
    let series: &ChartSeries = &chart.series[at.series];
    let both = format!("{}: {}", chart.title, series.label);
    match chart.series.len() {
        1 => chart.title.clone(),
        _ if series.signals.first().map(|id| id.def().name) != signal => chart.title.clone(),
        _ if both.chars().count() <= LONGEST_NAME => both,
        _ => capital(&series.label),
    }
}

/// With a capital letter, as a heading has it.
fn capital(text: &str) -> String {
    let mut rest = text.chars();
    let first = rest.next().map(char::to_uppercase);
    first.into_iter().flatten().chain(rest).collect()
}

fn available<'a>(scene: &'a Scene<'_>) -> Option<KeyFigure<'a>> {
    let at = *scene
        .picture
        .showing(MEM_AVAILABLE.definition().name)
        .first()?;
    let (least, _) = scene.picture.least_and_most(at)?;
    let ram = scene.report.host.ram_bytes;
    Some(KeyFigure {
        name: "Lowest available".to_owned(),
        value: shown(scene.picture.charts[at.chart].unit, least),
        about: ram.map_or_else(String::new, |ram| format!("of {}", Bytes::new(ram))),
        at: Some(at),
        spark: of_series(scene, at, Keep::Least),
    })
}

/// The peak of swap-in, or that the host has no swap.
fn swap_in<'a>(scene: &'a Scene<'_>) -> Option<KeyFigure<'a>> {
    if scene.report.host.swap_bytes != Some(0) {
        return most(scene, PSWPIN.definition().name, "Peak swap-in");
    }
    Some(KeyFigure {
        name: "Swap".to_owned(),
        value: "no swap".to_owned(),
        about: String::new(),
        at: None,
        spark: Spark::default(),
    })
}

fn most<'a>(scene: &'a Scene<'_>, signal: &str, name: &str) -> Option<KeyFigure<'a>> {
    let at = *scene.picture.showing(signal).first()?;
    let (_, most) = scene.picture.least_and_most(at)?;
    Some(KeyFigure {
        name: name.to_owned(),
        value: shown(scene.picture.charts[at.chart].unit, most),
        about: String::new(),
        at: Some(at),
        spark: of_series(scene, at, Keep::Most),
    })
}
