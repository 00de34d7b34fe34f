//! Charts: a place for the script to draw in, a sentence on the curves, and a table for readers without a script.

use super::block::section;
use super::escape::{Html, Tag, tag};
use super::{ComparedSide, Scene, memory, run_up};
use crate::model::{Finding, ThresholdSide};
use crate::picture::{SeriesIndex, shown};

/// At most 12 rows in a chart's table.
const ROWS_MAX: usize = 12;
/// At most 48 values in a chart's table: with many curves it has fewer rows.
const VALUES_MAX: usize = 48;
/// At least 6 rows, however many curves: fewer would show nothing.
const FEWEST_ROWS: usize = 6;

pub(super) fn draw_all(html: &mut Html, scene: &Scene<'_>) {
    let picture = scene.picture;
    if picture.charts.is_empty() && picture.absent.is_empty() && scene.report.accounting.is_none() {
        return;
    }
    section(html, ("charts", "charts-heading"), "Charts", |html| {
        run_up::draw(html, scene);
        // That is the host's; a cgroup's own is in its verdict and in its first chart.
        if scene.report.group.is_none() {
            memory::draw(html, scene);
        }
        if scene.picture.times().len() < 2 {
            html.tagged(
                Tag::of("p", "absent"),
                "One sample shows levels only; rates need a second one.",
            );
            return;
        }
        part(html, scene);
        let all = 0..picture.charts.len();
        let (quiet, loud): (Vec<usize>, Vec<usize>) =
            all.partition(|index| picture.is_quiet(*index));
        loud.iter().for_each(|index| figure(html, scene, *index, false));
        self::quiet(html, scene, &quiet);
        for absent in &picture.absent {
            let text = format!("{}: {}", absent.title, absent.why);
            html.tagged(Tag::of("p", "absent"), &text);
        }
    });
}

/// Says which part of the source the charts show, if it is not all.
fn part(html: &mut Html, scene: &Scene<'_>) {
    if let Some(text) = &scene.page.part {
        html.tagged(Tag::of("p", "part"), text);
    }
}

/// Draws the charts without news below one line that unfolds them.
fn quiet(html: &mut Html, scene: &Scene<'_>, charts: &[usize]) {
    if charts.is_empty() {
        return;
    }
    html.within(Tag::of("details", "quiet"), |html| {
        let titles: Vec<&str> =
            charts.iter().map(|index| scene.picture.charts[*index].title.as_str()).collect();
        html.within(tag("summary"), |html| {
            html.raw("Quiet signals, nothing happened in the whole range: ")
                .text(&titles.join(", "));
        });
        for index in charts {
            figure(html, scene, *index, true);
        }
    });
}

/// Draws a chart. When two sources are compared, its title stands above both.
pub(super) fn figure(html: &mut Html, scene: &Scene<'_>, index: usize, is_quiet: bool) {
    let chart = &scene.picture.charts[index];
    let class = match (chart.is_wide(), is_quiet) {
        (true, true) => "chart is-wide is-quiet",
        (true, false) => "chart is-wide",
        (false, true) => "chart is-quiet",
        (false, false) => "chart",
    };
    let figure = Tag::of("figure", class)
        .with("id", &scene.id("chart", &chart.id))
        .with("data-chart", &chart.id);
    html.raw("\n").within(scene.sided(figure), |html| {
        caption(html, scene, index);
        let says = format!("{}: {}", chart.title, scene.picture.says(index));
        let plot = Tag::of("div", "plot").with("role", "img").with("aria-label", &says);
        html.within(plot, |_| {});
        html.raw("<div class=\"values\"></div>");
        table(html, scene, index);
    });
}

fn caption(html: &mut Html, scene: &Scene<'_>, index: usize) {
    let chart = &scene.picture.charts[index];
    html.within(tag("figcaption"), |html| {
        match scene.which {
            ComparedSide::Only => {
                html.tagged(tag("h3"), &chart.title);
                html.tagged(Tag::of("p", "help"), chart.help);
            }
            side => {
                html.tagged(Tag::of("p", "of"), side.word());
            }
        }
        let proves = scene.picture.evidence_of(index);
        if proves.is_empty() {
            return;
        }
        html.within(Tag::of("p", "evidence-for"), |html| {
            html.raw("evidence for ");
            for (i, finding) in proves.iter().enumerate() {
                html.raw(if i > 0 { ", " } else { "" });
                let link = tag("a").with("href", &format!("#{}", scene.id("finding", finding)));
                html.tagged(link, &scene.report.findings[*finding].id);
            }
        });
    });
}

fn table(html: &mut Html, scene: &Scene<'_>, index: usize) {
    let chart = &scene.picture.charts[index];
    let series: Vec<usize> =
        (0..chart.series.len()).filter(|series| has_news(scene, index, *series)).collect();
    html.within(Tag::of("details", "table"), |html| {
        html.raw("<summary>Table</summary>");
        html.tagged(tag("p"), scene.picture.says(index));
        if series.is_empty() {
            return;
        }
        html.within(tag("table"), |html| {
            html.raw("<thead><tr><th>time</th>");
            for series in &series {
                html.tagged(tag("th"), &chart.series[*series].label);
            }
            html.raw("</tr></thead>");
            html.within(tag("tbody"), |html| {
                for column in instants(scene, index, series.len()) {
                    row(html, scene, (index, &series), column);
                }
            });
        });
    });
}

/// Whether a series is not 0 throughout; the chart's sentence already names those that are.
fn has_news(scene: &Scene<'_>, chart: usize, series: usize) -> bool {
    let ends = scene.picture.least_and_most(SeriesIndex { chart, series });
    ends.is_some_and(|(least, most)| least < 0.0 || most > 0.0)
}

fn row(html: &mut Html, scene: &Scene<'_>, (chart, series): (usize, &[usize]), column: usize) {
    let unit = scene.picture.charts[chart].unit;
    let at = scene.picture.times()[column].as_secs_f64();
    html.within(tag("tr"), |html| {
        html.tagged(tag("th"), &scene.moment(at));
        for series in series {
            let cells = scene.picture.cells(SeriesIndex { chart, series: *series });
            let value = cells.and_then(|cells| *cells.mean.get(column)?);
            let value = value.map_or_else(|| "–".to_owned(), |value| shown(unit, value));
            html.tagged(tag("td"), &value);
        }
    });
}

/// Returns the columns of a chart's table: some spread over the picture, and the times that matter.
fn instants(scene: &Scene<'_>, chart: usize, series: usize) -> Vec<usize> {
    let times = scene.picture.times();
    let Some(last) = times.len().checked_sub(1) else {
        return Vec::new();
    };
    let most = (VALUES_MAX / series.max(1)).clamp(FEWEST_ROWS, ROWS_MAX);
    let mut columns = worst_columns(scene, chart);
    columns.truncate(most / 2);
    let rows = most - columns.len();
    if times.len() <= rows {
        columns.extend(0..times.len());
    } else {
        columns.extend((0..rows).map(|row| row * last / (rows - 1)));
    }
    columns.sort_unstable();
    columns.dedup();
    columns
}

/// Returns the worst columns of the findings that a chart proves: the peak of each finding's evidence in this chart,
/// and the time of the report's accounting.
fn worst_columns(scene: &Scene<'_>, chart: usize) -> Vec<usize> {
    let picture = scene.picture;
    let column = |at_s: f64| {
        let at = picture.times().partition_point(|time| time.as_secs_f64() < at_s);
        at.min(picture.times().len().saturating_sub(1))
    };
    let proven = picture.evidence_of(chart).iter();
    let peaks = proven.filter_map(|finding| {
        let finding = &scene.report.findings[*finding];
        let (from, to) = picture.stretch_of(finding)?;
        let at = shown_by(scene, chart, finding)?;
        let values = &picture.cells(at)?.mean;
        let measured = (column(from)..=column(to))
            .filter_map(|i| Some((i, *values.get(i)?)))
            .filter_map(|(i, value)| Some((i, value?)));
        measured.max_by(|(_, one), (_, other)| one.total_cmp(other)).map(|(i, _)| i)
    });
    let mut columns: Vec<usize> = peaks.collect();
    columns.push(column(picture.worst_s(scene.report)));
    let mut seen = Vec::new();
    columns.retain(|at| {
        let is_new = !seen.contains(at);
        seen.push(*at);
        is_new
    });
    columns
}

/// Returns the series of a chart that shows a finding's first rising evidence.
fn shown_by(scene: &Scene<'_>, chart: usize, finding: &Finding) -> Option<SeriesIndex> {
    let rising =
        finding.evidence.iter().filter(|line| line.threshold_side != Some(ThresholdSide::Below));
    rising
        .filter_map(|line| scene.picture.proof(finding, line.signal.as_ref()?))
        .find(|at| at.chart == chart)
}
