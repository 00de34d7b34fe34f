//! The four figures below the verdict: evidence of the leading finding, or the tightest readings if nothing is wrong.

use chart::{ChartSeries, ChartUnit};
use timeline::AnySignal as _;
use timeline::signals::{MEM_AVAILABLE, PSI_MEMORY_SOME, PSWPIN, REFAULT_FILE};
use units::Bytes;

use super::Scene;
use super::escape::{Html, Tag};
use super::spark::{self, Keep, Spark};
use crate::model::page::unit;
use crate::model::{Evidence, Finding, ThresholdSide};
use crate::phrases::capital;
use crate::picture::{SeriesIndex, shown};

/// At most 4 figures, as many as are read at a glance.
const FIGURES_MAX: usize = 4;
/// At most 32 characters of a name, as figures stand side by side.
const NAME_LEN_MAX: usize = 32;

struct KeyFigure<'a> {
    name: String,
    value: String,
    about: String,
    /// The series that it is read from; `None` where no chart shows it.
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
                let name = Tag::of("p", "name").with("title", &figure.name);
                html.tagged(name, &figure.name);
                html.tagged(Tag::of("p", "value"), &figure.value);
                html.tagged(Tag::of("p", "about"), &figure.about);
                let spark = Spark { is_loud: true, ..figure.spark };
                spark::draw(html, &spark);
            });
        }
    });
}

/// Returns the figures: first the leading finding's evidence, then the usual ones, available memory first.
fn chosen<'a>(scene: &'a Scene<'_>) -> Vec<KeyFigure<'a>> {
    let leading = scene.report.findings.first();
    let mut figures = leading.map_or_else(Vec::new, |finding| of_finding(scene, finding));
    figures.truncate(FIGURES_MAX - 1);
    let usual = [
        available(scene),
        most(scene, PSI_MEMORY_SOME.definition().name, "Peak memory stall (PSI some)"),
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

/// Returns evidence that a series shows, each series once. Available memory is left to its own figure.
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

/// Returns the series that shows a line of evidence in the same unit, and the value as readers see it. `None` for a
/// reading that did not cross its threshold.
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

/// Returns the graph of the series that shows a line of evidence.
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

/// Whether a chart's unit is the one named in evidence.
fn measures(of_chart: ChartUnit, name: &str) -> bool {
    unit(of_chart) == name || of_chart == ChartUnit::Share && name == "ratio"
}

/// Returns the graph of a series over the whole picture.
pub(super) fn of_series<'a>(scene: &'a Scene<'_>, at: SeriesIndex, keep: Keep) -> Spark<'a> {
    let cells = scene.picture.cells(at);
    let values = cells.map_or(&[][..], |cells| match (&cells.extremes, keep) {
        (Some((least, _)), Keep::Least) => least,
        (Some((_, most)), Keep::Most) => most,
        (None, _) => &cells.mean,
    });
    Spark { times: scene.picture.times(), values, keep, ..Spark::default() }
}

/// Returns a series' name for use away from its chart: with the chart's name if both fit, or if the series is that of a process,
/// a cgroup or a disk. If the signal covers more than the series, or the chart has only this one, the chart's name.
fn name(scene: &Scene<'_>, at: SeriesIndex, signal: Option<&str>) -> String {
    let chart = &scene.picture.charts[at.chart];
    let series: &ChartSeries = &chart.series[at.series];
    let both = format!("{}: {}", chart.title, series.label);
    let is_of_all =
        || chart.series.len() == 1 || series.signals.first().map(|id| id.def().name) != signal;
    if !chart.is_of_host {
        both
    } else if is_of_all() {
        chart.title.clone()
    } else if both.chars().count() <= NAME_LEN_MAX {
        both
    } else {
        capital(&series.label)
    }
}

fn available<'a>(scene: &'a Scene<'_>) -> Option<KeyFigure<'a>> {
    let at = *scene.picture.showing(MEM_AVAILABLE.definition().name).first()?;
    let (least, _) = scene.picture.least_and_most(at)?;
    let ram = scene.report.host.ram_bytes;
    Some(KeyFigure {
        name: "Lowest available".to_owned(),
        value: shown(scene.picture.charts[at.chart].unit, least),
        about: ram.map_or_else(String::new, |ram| format!("of {ram}")),
        at: Some(at),
        spark: of_series(scene, at, Keep::Least),
    })
}

/// Returns the peak of swap-in, or that the host has no swap.
fn swap_in<'a>(scene: &'a Scene<'_>) -> Option<KeyFigure<'a>> {
    if scene.report.host.swap_bytes != Some(Bytes::ZERO) {
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
