//! The pictures of a page: memory against speed, and memory over time.

use report::html::{Html, Tag, tag};
use units::{Bytes, Quantity as _};

use crate::analysis::{Effect, TrialMetric};
use crate::model::TrialReport;
use crate::recommend::VariantStanding;
use crate::run::TrialRun;

/// The trade-off in its own units; the page scales it.
const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 420.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 740.0;
const TOP: f64 = 14.0;
const BOTTOM: f64 = 372.0;

/// A variant with its intervals, as logarithms of ratios to the baseline.
#[derive(Debug, Clone)]
struct CrossPlace {
    name: String,
    /// Speed: low, ratio, high.
    x: [f64; 3],
    /// Memory: low, ratio, high.
    y: [f64; 3],
    is_on_front: bool,
}

/// Logarithms of ratios along an axis.
#[derive(Debug, Clone, Copy)]
struct LogScale {
    from: f64,
    to: f64,
    start: f64,
    end: f64,
}

impl LogScale {
    /// From the smallest to the largest, with room, and with the baseline.
    fn of(values: impl Iterator<Item = f64>, start: f64, end: f64) -> Self {
        let (low, high) =
            values.fold((0.0_f64, 0.0_f64), |(low, high), value| (low.min(value), high.max(value)));
        let room = (0.12 * (high - low)).max(0.06);
        Self { from: low - room, to: high + room, start, end }
    }

    fn at(self, value: f64) -> f64 {
        let share = (value - self.from) / (self.to - self.from);
        self.start + share.clamp(0.0, 1.0) * (self.end - self.start)
    }

    /// Ratios that are named.
    fn ticks(self) -> Vec<f64> {
        const NAMED: [f64; 17] = [
            0.1, 0.2, 0.3, 0.5, 0.7, 0.8, 0.9, 1.0, 1.1, 1.25, 1.5, 2.0, 3.0, 5.0, 10.0, 20.0, 50.0,
        ];
        let inside = |ratio: &f64| (self.from..=self.to).contains(&ratio.ln());
        NAMED.into_iter().filter(inside).collect()
    }
}

/// Draws memory against speed: a cross for each variant, as wide and as high as its intervals.
pub(crate) fn trade_off(html: &mut Html, report: &TrialReport) {
    let places = places(report);
    if places.len() < 2 {
        return;
    }
    let x = LogScale::of(places.iter().flat_map(|one| one.x), LEFT, RIGHT);
    let y = LogScale::of(places.iter().flat_map(|one| one.y), BOTTOM, TOP);
    let heading = report.analysis.speed().map_or("time", |one| one.metric.heading(false));
    let names: Vec<&str> = places.iter().map(|one| one.name.as_str()).collect();
    let svg = Tag::of("svg", "trade-off")
        .with("viewBox", &format!("0 0 {WIDTH} {HEIGHT}"))
        .with("role", "img")
        .with("aria-label", &format!("Memory against {heading}: {}", names.join(", ")));
    html.within(Tag::of("figure", "scrolled"), |html| {
        html.within(svg, |html| {
            margin_bands(html, report, x, y);
            axes(html, x, y, heading);
            front(html, &places, x, y);
            // From the top down, so that a name that gives way stands nearest to its own cross.
            let mut from_top: Vec<&CrossPlace> = places.iter().collect();
            from_top.sort_by(|one, other| other.y[1].total_cmp(&one.y[1]));
            let mut taken = Vec::new();
            for place in from_top {
                cross(html, place, x, y, &mut taken);
            }
        });
    });
}

fn places(report: &TrialReport) -> Vec<CrossPlace> {
    let memory = report.analysis.metric(TrialMetric::Memory);
    let speed = report.analysis.speed();
    let (Some(memory), Some(speed)) = (memory, speed) else {
        return Vec::new();
    };
    let logs = |effect: &Effect| [effect.low, effect.ratio, effect.high].map(|one| one.get().ln());
    let variants = report.analysis.variants.iter().enumerate();
    let place = |(variant, state): (usize, &crate::analysis::VariantState)| {
        let standing = report.standings.get(variant).copied().flatten();
        let is_on_front = matches!(standing, Some(VariantStanding::Front));
        let (x, y) = match variant {
            0 => ([0.0; 3], [0.0; 3]),
            _ => (logs(speed.effect(variant)?), logs(memory.effect(variant)?)),
        };
        Some(CrossPlace { name: state.name.clone(), x, y, is_on_front })
    };
    variants.filter_map(place).collect()
}

/// What counts as the same.
fn margin_bands(html: &mut Html, report: &TrialReport, x: LogScale, y: LogScale) {
    let margin = report.plan.goals.margin.get().ln_1p();
    let band = |html: &mut Html, left: f64, top: f64, right: f64, bottom: f64| {
        let rect = Tag::of("rect", "margin")
            .showing("x", left)
            .showing("y", top)
            .with("width", &format!("{:.1}", right - left))
            .with("height", &format!("{:.1}", bottom - top));
        html.open(&rect).raw("</rect>");
    };
    band(html, x.at(-margin), TOP, x.at(margin), BOTTOM);
    band(html, LEFT, y.at(margin), RIGHT, y.at(-margin));
}

fn axes(html: &mut Html, x: LogScale, y: LogScale, heading: &str) {
    let path = |html: &mut Html, d: String| {
        html.open(&Tag::of("path", "axis").with("fill", "none").with_own("d", &d)).raw("</path>");
    };
    let text = |html: &mut Html, at: (f64, f64), anchor: &'static str, text: &str| {
        let name = Tag::of("text", "faint")
            .with("x", &format!("{:.1}", at.0))
            .with("y", &format!("{:.1}", at.1))
            .with("text-anchor", anchor);
        html.tagged(name, text);
    };
    for ratio in x.ticks() {
        let at = x.at(ratio.ln());
        path(html, format!("M{at:.1} {TOP}V{BOTTOM}"));
        text(html, (at, BOTTOM + 16.0), "middle", &format!("× {ratio}"));
    }
    for ratio in y.ticks() {
        let at = y.at(ratio.ln());
        path(html, format!("M{LEFT} {at:.1}H{RIGHT}"));
        text(html, (LEFT - 8.0, at + 4.0), "end", &format!("× {ratio}"));
    }
    text(html, (RIGHT, BOTTOM + 36.0), "end", &format!("{heading}, against the baseline →"));
    text(html, (4.0, TOP - 3.0), "start", "↑ memory");
}

/// The front: from one variant to the next that takes more time and less memory.
fn front(html: &mut Html, places: &[CrossPlace], x: LogScale, y: LogScale) {
    let mut on: Vec<(f64, f64)> =
        places.iter().map(|one| (x.at(one.x[1]), y.at(one.y[1]))).collect();
    on.sort_by(|one, other| one.0.total_cmp(&other.0));
    // On the screen less memory is further down.
    let mut lowest = f64::NEG_INFINITY;
    on.retain(|(_, y)| {
        let is_lower = *y > lowest;
        lowest = lowest.max(*y);
        is_lower
    });
    let steps: Vec<String> = on.iter().map(|(x, y)| format!("{x:.1} {y:.1}")).collect();
    if steps.len() > 1 {
        let line = Tag::of("path", "front").with_own("d", &format!("M{}", steps.join("L")));
        html.open(&line).raw("</path>");
    }
}

fn cross(
    html: &mut Html,
    place: &CrossPlace,
    x: LogScale,
    y: LogScale,
    taken: &mut Vec<(f64, f64)>,
) {
    let (left, at_x, right) = (x.at(place.x[0]), x.at(place.x[1]), x.at(place.x[2]));
    let (bottom, at_y, top) = (y.at(place.y[0]), y.at(place.y[1]), y.at(place.y[2]));
    let class = if place.is_on_front { "cross is-front" } else { "cross" };
    let lines = format!("M{left:.1} {at_y:.1}H{right:.1}M{at_x:.1} {top:.1}V{bottom:.1}");
    html.open(&Tag::of("path", class).with_own("d", &lines)).raw("</path>");
    let dot = Tag::of("circle", class)
        .with("cx", &format!("{at_x:.1}"))
        .with("cy", &format!("{at_y:.1}"))
        .with("r", "4.5");
    html.open(&dot).raw("</circle>");
    // A name below those that stand there already.
    let mut name_y = at_y - 7.0;
    let is_taken = |y: f64, taken: &[(f64, f64)]| {
        taken.iter().any(|(x, other)| (x - at_x).abs() < 110.0 && (y - other).abs() < 12.0)
    };
    while is_taken(name_y, taken) && name_y < BOTTOM {
        name_y += 12.0;
    }
    taken.push((at_x, name_y));
    let is_at_end = at_x > RIGHT - 120.0;
    let name = tag("text")
        .with("x", &format!("{:.1}", if is_at_end { at_x - 8.0 } else { at_x + 8.0 }))
        .with("y", &format!("{name_y:.1}"))
        .with("text-anchor", if is_at_end { "end" } else { "start" });
    html.tagged(name, &place.name);
}

/// A panel of memory over time.
const PANEL: (f64, f64) = (340.0, 150.0);

/// Draws a panel for each variant, with a line for each run, all on one scale.
pub(crate) fn courses(html: &mut Html, report: &TrialReport) {
    let points = || report.runs.iter().flat_map(|run| &run.curve);
    let longest = points().map(|(at, _)| *at).fold(0.0, f64::max);
    let most = points().map(|(_, bytes)| *bytes).max().unwrap_or(0);
    if longest <= 0.0 || most == 0 {
        return;
    }
    html.within(Tag::of("div", "courses"), |html| {
        for (variant, state) in report.analysis.variants.iter().enumerate() {
            let runs: Vec<&TrialRun> =
                report.runs.iter().filter(|run| run.variant == variant).collect();
            html.within(tag("figure"), |html| {
                html.tagged(tag("figcaption"), &state.name);
                panel(html, &state.name, &runs, longest, most);
            });
        }
    });
}

#[allow(clippy::cast_precision_loss)] // bytes on a screen
fn panel(html: &mut Html, name: &str, runs: &[&TrialRun], longest: f64, most: u64) {
    let (width, height) = PANEL;
    let (left, top, bottom) = (58.0, 8.0, height - 18.0);
    let svg = Tag::of("svg", "course")
        .with("viewBox", &format!("0 0 {width} {height}"))
        .with("width", "340")
        .with("role", "img")
        .with("aria-label", &format!("Memory over time of {} runs: {name}", runs.len()));
    html.within(svg, |html| {
        for share in [0.0, 0.5, 1.0] {
            let at = bottom - share * (bottom - top);
            let line = Tag::of("path", "axis").with_own("d", &format!("M{left} {at:.1}H{width}"));
            html.open(&line).raw("</path>");
            let label = Tag::of("text", "faint")
                .with("x", &format!("{:.1}", left - 6.0))
                .with("y", &format!("{:.1}", at + 4.0))
                .with("text-anchor", "end");
            html.tagged(label, &Bytes::from_f64(share * most as f64).to_string());
        }
        let end = Tag::of("text", "faint")
            .with("x", &format!("{width}"))
            .with("y", &format!("{:.1}", height - 4.0));
        let length = units::Span::from_secs_f64(longest).to_string();
        html.tagged(end.with("text-anchor", "end"), &length);
        for run in runs {
            let place = |(at, bytes): &(f64, u64)| {
                let x = left + at / longest * (width - left);
                let y = bottom - *bytes as f64 / most as f64 * (bottom - top);
                format!("{x:.1} {y:.1}")
            };
            let steps: Vec<String> = run.curve.iter().map(place).collect();
            if !steps.is_empty() {
                let line =
                    Tag::of("path", "run-line").with_own("d", &format!("M{}", steps.join("L")));
                html.open(&line).raw("</path>");
            }
        }
    });
}
