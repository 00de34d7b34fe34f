//! Small graphs without a script: a curve over the whole picture, tinted where a finding occurred.
//!
//! An `svg.spark` has `rect.tint`, `path.line` (filled down to the floor) and `path.limit` (a line).

use std::fmt::Write as _;

use units::Span;

use super::escape::{Html, Tag, tag};

/// A graph's width in its own units; the page's style sets the displayed size.
const WIDTH: f64 = 240.0;
/// Position of the curve's highest point; the graph is 56 high, and the margins keep strokes from being cut.
const CEILING: f64 = 4.0;
const FLOOR: f64 = 52.0;
/// At most 120 points; at the displayed size more cannot be distinguished.
const POINTS_MAX: usize = 120;

/// Which of several values represents them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Keep {
    /// The largest, of readings that harm when they rise.
    #[default]
    Most,
    /// The smallest, of readings that run out.
    Least,
}

/// A curve to draw small.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Spark<'a> {
    /// When each value was measured.
    pub(crate) times: &'a [Span],
    pub(crate) values: &'a [Option<f64>],
    /// What is a part of the values, at the same times and on the same scale; drawn into it.
    pub(crate) part: &'a [Option<f64>],
    /// The value at the lower edge.
    pub(crate) floor: f64,
    /// Which value represents several where there are too many.
    pub(crate) keep: Keep,
    /// The tinted range, in seconds.
    pub(crate) tint: Option<(f64, f64)>,
    /// The threshold, in the values' unit.
    pub(crate) threshold: Option<f64>,
    /// Whether it has the colour of findings instead of the text's.
    pub(crate) is_loud: bool,
    /// Times marked with a vertical line, in seconds.
    pub(crate) marks: &'a [f64],
    /// Whether it shows a part of the picture: drawn larger, and a click does not move the cursor.
    pub(crate) is_part: bool,
}

/// Draws the graph; nothing if fewer than two values were measured.
pub(crate) fn draw(html: &mut Html, spark: &Spark<'_>) {
    let measured = spark.values.iter().flatten();
    if measured.clone().count() < 2 {
        return;
    }
    let most = measured.copied().fold(0.0, f64::max);
    // A threshold far above the values would flatten the curve, so it is left out.
    let shown = spark.threshold.filter(|at| *at <= most * 4.0);
    let top = shown.map_or(most, |at| most.max(at));
    let place = SparkScale {
        span_s: spark.times.last().map_or(0.0, |last| last.as_secs_f64()),
        floor: spark.floor,
        range: if top > spark.floor { top - spark.floor } else { 1.0 },
    };
    let ink = if spark.is_loud { "var(--s)" } else { "var(--ink-2)" };
    let class = if spark.is_part { "spark is-part" } else { "spark" };
    let svg = Tag::of("svg", class)
        .with("viewBox", "0 0 240 56")
        .with("preserveAspectRatio", "none")
        .with("aria-hidden", "true")
        .with("color", ink);
    html.within(svg, |html| {
        tint(html, spark, place);
        // The style sets the stroke for the light and the dark theme.
        let curves = [("line", spark.values), ("line of-part", spark.part)];
        for (class, values) in curves.into_iter().filter(|(_, values)| !values.is_empty()) {
            let curve = Tag::of("path", class).with("fill", "currentColor");
            let curve = curve.with("fill-opacity", ".14");
            html.open(&curve.with_own("d", &path(values, spark, place))).raw("</path>");
        }
        for at in spark.marks {
            let mark = Tag::of("path", "kill");
            html.open(&mark.with_own("d", &format!("M{} 0v56", place.x(*at)))).raw("</path>");
        }
        if let Some(at) = shown {
            let limit = Tag::of("path", "limit");
            html.open(&limit.with_own("d", &format!("M0 {}h240", place.y(at)))).raw("</path>");
        }
    });
}

fn tint(html: &mut Html, spark: &Spark<'_>, place: SparkScale) {
    let Some((from, to)) = spark.tint else {
        return;
    };
    let (from, to) = (place.x(from), place.x(to));
    let tinted = Tag::of("rect", "tint").showing("x", from);
    let tinted = tinted.showing("width", (to - from).max(2)).with("height", "56");
    html.open(&tinted).raw("</rect>");
}

/// Maps values to positions in the drawing.
#[derive(Clone, Copy)]
struct SparkScale {
    span_s: f64,
    floor: f64,
    range: f64,
}

impl SparkScale {
    fn x(self, at_s: f64) -> i32 {
        if self.span_s > 0.0 { whole((at_s / self.span_s).clamp(0.0, 1.0) * WIDTH) } else { 0 }
    }

    fn y(self, value: f64) -> i32 {
        let share = ((value - self.floor) / self.range).clamp(0.0, 1.0);
        whole(FLOOR - share * (FLOOR - CEILING))
    }
}

#[allow(clippy::cast_possible_truncation)] // within the graph
fn whole(at: f64) -> i32 {
    at.round() as i32
}

/// Returns the curve as closed paths: up from the floor, along the values, down again; gaps where none was measured.
fn path(values: &[Option<f64>], spark: &Spark<'_>, place: SparkScale) -> String {
    let mut path = String::new();
    let mut run: Vec<(i32, i32)> = Vec::new();
    for (at, value) in thinned(values, spark).into_iter().chain([(0.0, None)]) {
        match value {
            Some(value) => push(&mut run, (place.x(at), place.y(value))),
            None => draw_run(&mut path, &std::mem::take(&mut run)),
        }
    }
    path
}

/// Adds a point, and drops the middle one of three on a level line.
fn push(run: &mut Vec<(i32, i32)>, point: (i32, i32)) {
    if let [.., before, last] = run.as_slice()
        && before.1 == last.1
        && last.1 == point.1
    {
        run.pop();
    }
    run.push(point);
}

fn draw_run(path: &mut String, run: &[(i32, i32)]) {
    let Some(first) = run.first() else {
        return;
    };
    // Writing to a String cannot fail.
    let _ = write!(path, "M{} {FLOOR}V{}", first.0, first.1);
    for (i, pair) in run.windows(2).enumerate() {
        let (x, y) = (pair[1].0 - pair[0].0, pair[1].1 - pair[0].1);
        // A minus sign separates two numbers as a blank does.
        let command = if i == 0 { "l" } else { " " };
        let blank = if y < 0 { "" } else { " " };
        let _ = write!(path, "{command}{x}{blank}{y}");
    }
    let _ = write!(path, "V{FLOOR}");
}

/// Returns at most [`POINTS_MAX`] points, each the largest or smallest of its part of the time.
fn thinned(values: &[Option<f64>], spark: &Spark<'_>) -> Vec<(f64, Option<f64>)> {
    let points = spark.times.iter().zip(values);
    let all: Vec<(f64, Option<f64>)> =
        points.map(|(at, value)| (at.as_secs_f64(), *value)).collect();
    if all.len() <= POINTS_MAX {
        return all;
    }
    let parts = all.chunks(all.len().div_ceil(POINTS_MAX));
    parts
        .filter_map(|part| {
            let measured = part.iter().filter_map(|(_, value)| *value);
            let speaks = match spark.keep {
                Keep::Most => measured.reduce(f64::max),
                Keep::Least => measured.reduce(f64::min),
            };
            Some((part.last()?.0, speaks))
        })
        .collect()
}

/// Draws a table cell with a graph in it.
pub(crate) fn cell(html: &mut Html, spark: Option<&Spark<'_>>) {
    html.within(tag("td"), |html| {
        if let Some(spark) = spark {
            draw(html, spark);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(n: u64) -> Vec<Span> {
        (0..n).map(Span::from_secs).collect()
    }

    fn drawn(spark: &Spark<'_>) -> String {
        let mut html = Html::default();
        draw(&mut html, spark);
        html.finish()
    }

    #[test]
    fn what_was_not_measured_breaks_the_line() {
        let times = seconds(5);
        let values = [Some(1.0), Some(2.0), None, Some(2.0), Some(0.0)];
        let spark = Spark { times: &times, values: &values, ..Spark::default() };
        let svg = drawn(&spark);
        assert!(svg.contains("d=\"M0 52V28l60-24V52M180 52V4l60 48V52\""), "{svg}");
    }

    #[test]
    fn level_stretches_are_two_points() {
        let times = seconds(9);
        let values = [1.0, 1.0, 1.0, 1.0, 2.0, 2.0, 2.0, 2.0, 2.0].map(Some);
        let spark = Spark { times: &times, values: &values, ..Spark::default() };
        let svg = drawn(&spark);
        assert!(svg.contains("M0 52V28l90 0 30-24 120 0V52"), "{svg}");
    }

    #[test]
    fn one_value_is_no_curve() {
        let times = seconds(2);
        let spark = Spark { times: &times, values: &[None, Some(1.0)], ..Spark::default() };
        assert_eq!(drawn(&spark), "");
    }

    #[test]
    fn a_peak_of_one_sample_is_seen_however_long_it_is() {
        let times = seconds(10_000);
        let mut values = vec![Some(1.0); times.len()];
        values[7_777] = Some(9.0);
        let spark = Spark { times: &times, values: &values, ..Spark::default() };
        let points = thinned(&values, &spark);
        assert!(points.len() <= POINTS_MAX);
        assert!(points.iter().any(|(_, value)| *value == Some(9.0)));
        let least = Spark { keep: Keep::Least, ..spark };
        assert!(thinned(&values, &least).iter().all(|(_, value)| *value == Some(1.0)));
    }
}
