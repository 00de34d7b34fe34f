//! A figure as a drawing that needs no script: a panel of curves, areas or bars, with its axes and its names.

use chart::ChartUnit;
use report::html::{Html, Tag, tag};

use crate::model::{LabCurve, LabFigure, LabFigureKind, LabPanel, LabUnit};

/// Style of a drawing that stands alone.
const STYLE: &str = include_str!("../assets/figure.css");

/// A panel in its own units; the page scales it.
const WIDTH: f64 = 480.0;
const HEIGHT: f64 = 240.0;
/// Where the curves are drawn: room for the axes' names at the left and below.
const LEFT_MIN: f64 = 74.0;
const RIGHT: f64 = 472.0;
const TOP: f64 = 10.0;
const BOTTOM: f64 = 212.0;
/// Intervals of each axis.
const TICKS: usize = 4;
/// Room for a character of a name, at the size that phones show it in, and between a name and its axis.
const CHARACTER: f64 = 7.6;
const NAME_GAP: f64 = 6.0;
/// Names of limits that are closer than this would be written over each other.
const LINE: f64 = 13.0;

/// The scale that all panels of a figure share.
#[derive(Debug, Clone, Copy)]
struct FigureScale {
    /// Where the vertical axis stands.
    left: f64,
    x: (f64, f64),
    top: f64,
    is_log: bool,
}

impl FigureScale {
    fn of(figure: &LabFigure) -> Self {
        let curves = || figure.panels.iter().flat_map(|panel| &panel.curves);
        let xs = curves().flat_map(|curve| curve.points.iter().map(|(x, _)| *x));
        let (min, max) =
            xs.fold((f64::INFINITY, f64::NEG_INFINITY), |(min, max), x| (min.min(x), max.max(x)));
        let room = match figure.kind {
            LabFigureKind::Bars => 0.5,
            LabFigureKind::Stack | LabFigureKind::Lines => 0.0,
        };
        let tops = figure.panels.iter().map(|panel| match figure.kind {
            LabFigureKind::Stack => highest_sum(panel),
            LabFigureKind::Lines | LabFigureKind::Bars => highest(panel),
        });
        let scale = Self {
            left: LEFT_MIN,
            x: (min - room, (max + room).max(min + 1.0)),
            top: round_up(tops.fold(0.0, f64::max), figure.unit),
            is_log: figure.is_log,
        };
        let names = scale.ticks().into_iter().map(|tick| width(&amount(figure.unit, tick)));
        Self { left: names.map(|width| width + NAME_GAP).fold(LEFT_MIN, f64::max), ..scale }
    }

    fn x(self, x: f64) -> f64 {
        let (from, to) = self.x;
        self.left + (x - from) / (to - from) * (RIGHT - self.left)
    }

    fn y(self, y: f64) -> f64 {
        let share =
            if self.is_log { 1.0 + (y / self.top).log(10.0) / Self::DECADES } else { y / self.top };
        BOTTOM - share.clamp(0.0, 1.05) * (BOTTOM - TOP)
    }

    /// Powers of ten that a logarithmic axis shows.
    const DECADES: f64 = 3.0;

    /// The values at which the horizontal axis is named: those of bars are whole numbers.
    fn ticks_below(self, kind: LabFigureKind) -> Vec<f64> {
        let (from, to) = self.x;
        #[allow(clippy::cast_precision_loss)] // a few
        let step = round_step((to - from) / TICKS as f64);
        let first = (from / step).ceil() * step;
        let mut ticks: Vec<f64> = std::iter::successors(Some(first), |at| Some(at + step))
            .take_while(|at| *at <= to)
            .collect();
        if kind == LabFigureKind::Bars {
            ticks.iter_mut().for_each(|tick| *tick = tick.round());
            ticks.retain(|tick| (from..=to).contains(tick));
            ticks.dedup();
        }
        ticks
    }

    /// The values at which the vertical axis is named.
    fn ticks(self) -> Vec<f64> {
        #[allow(clippy::cast_precision_loss)] // a few
        let linear = |tick: usize| self.top * tick as f64 / TICKS as f64;
        if self.is_log {
            [1e-3, 1e-2, 1e-1, 1.0].map(|share| share * self.top).to_vec()
        } else {
            (0..=TICKS).map(linear).collect()
        }
    }
}

/// The room that a name takes, at most.
#[allow(clippy::cast_precision_loss)] // a few characters
fn width(name: &str) -> f64 {
    name.chars().count() as f64 * CHARACTER
}

fn highest(panel: &LabPanel) -> f64 {
    let points = panel.curves.iter().flat_map(|curve| &curve.points);
    points.filter_map(|(_, y)| *y).fold(0.0, f64::max)
}

fn highest_sum(panel: &LabPanel) -> f64 {
    let len = panel.curves.first().map_or(0, |curve| curve.points.len());
    let sum = |at: usize| -> f64 {
        let curves = panel.curves.iter().filter(|curve| !curve.is_limit);
        curves.filter_map(|curve| curve.points.get(at)?.1).sum()
    };
    (0..len).map(sum).fold(0.0, f64::max)
}

/// A round number at or above this, of which a quarter is round, too. Bytes are round as multiples of 1024.
fn round_up(value: f64, unit: LabUnit) -> f64 {
    if value <= 0.0 {
        return 1.0;
    }
    let base: f64 = match unit {
        LabUnit::Bytes | LabUnit::BytesPerSecond => 1024.0_f64.powf(value.log(1024.0).floor()),
        _ => 1.0,
    };
    let power = base * 10_f64.powf((value / base).log10().floor());
    let steps = [1.0, 1.2, 1.6, 2.0, 2.4, 3.2, 4.0, 6.0, 8.0, 10.0];
    let fits = steps.iter().find(|step| *step * power >= value * 0.999);
    fits.unwrap_or(&10.0) * power
}

/// The round step at or above this: 1, 2 or 5 of a power of ten, and whole, as names of the horizontal axis are.
fn round_step(least: f64) -> f64 {
    let power = 10_f64.powf(least.log10().floor());
    let fits = [1.0, 2.0, 5.0, 10.0].into_iter().find(|step| step * power >= least * 0.999);
    (fits.unwrap_or(10.0) * power).max(1.0)
}

/// Draws a figure: its heading, then a panel for each arm.
pub(crate) fn draw(html: &mut Html, figure: &LabFigure) {
    let scale = FigureScale::of(figure);
    html.within(Tag::of("section", "drawn"), |html| {
        html.tagged(tag("h2"), &figure.title);
        html.tagged(Tag::of("p", "help"), &figure.help);
        html.within(Tag::of("div", "panels"), |html| {
            for panel in figure.panels.iter().filter(|panel| highest(panel) > 0.0) {
                html.within(tag("figure"), |html| {
                    html.tagged(tag("figcaption"), &panel.arm);
                    draw_panel(html, figure, panel, scale, SvgUse::InPage);
                });
            }
        });
        legend(html, figure);
    });
}

/// Where a drawing stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SvgUse {
    InPage,
    Alone,
}

/// Returns a panel as a drawing of its own (SVG).
pub fn panel_drawing(figure: &LabFigure, panel: &LabPanel) -> String {
    let mut html = Html::default();
    draw_panel(&mut html, figure, panel, FigureScale::of(figure), SvgUse::Alone);
    html.finish()
}

fn draw_panel(
    html: &mut Html,
    figure: &LabFigure,
    panel: &LabPanel,
    scale: FigureScale,
    place: SvgUse,
) {
    let mut svg = Tag::of("svg", "panel")
        .with("viewBox", &format!("0 0 {WIDTH} {HEIGHT}"))
        .with("role", "img")
        .with("aria-label", &format!("{}: {}", figure.title, panel.arm));
    if place == SvgUse::Alone {
        svg = svg.with("xmlns", "http://www.w3.org/2000/svg").with("width", "960");
    }
    html.within(svg, |html| {
        if place == SvgUse::Alone {
            html.raw("<style>").raw(STYLE).raw("</style>");
            let ground = tag("rect").with("width", "100%").with("height", "100%");
            html.open(&ground.with("fill", "var(--panel)")).raw("</rect>");
        }
        axes(html, figure, scale);
        match figure.kind {
            LabFigureKind::Stack => stack(html, panel, scale),
            LabFigureKind::Lines => {
                for curve in &panel.curves {
                    line(html, curve, scale);
                }
            }
            LabFigureKind::Bars => bars(html, panel, scale),
        }
        limit_names(html, figure, panel, scale);
    });
}

/// Names the limits at their right ends, each above the one below it.
fn limit_names(html: &mut Html, figure: &LabFigure, panel: &LabPanel, scale: FigureScale) {
    let named = panel.curves.iter().filter(|curve| curve.is_limit).filter_map(|curve| {
        let value = curve.points.iter().rev().find_map(|(_, y)| *y)?;
        Some((scale.y(value), format!("{} {}", curve.label, amount(figure.unit, value))))
    });
    let mut named: Vec<(f64, String)> = named.collect();
    named.sort_by(|(one, _), (other, _)| other.total_cmp(one));
    let mut below = f64::INFINITY;
    for (y, text) in named {
        // At the upper edge a name stands below its line.
        let above = if y - LINE < TOP { y + LINE - 2.0 } else { y - 4.0 };
        below = above.min(below - LINE);
        let name = Tag::of("text", "limit-name")
            .showing("x", RIGHT - 2.0)
            .with("y", &format!("{below:.1}"))
            .with("text-anchor", "end");
        html.tagged(name, &text);
    }
}

/// The colour of a curve as a variable of the page's style.
fn ink(curve: &LabCurve) -> String {
    format!("var(--{})", curve.colour.replace('_', "-"))
}

fn axes(html: &mut Html, figure: &LabFigure, scale: FigureScale) {
    for value in scale.ticks() {
        let y = scale.y(value);
        let grid = Tag::of("path", "grid");
        html.open(&grid.with_own("d", &format!("M{} {y:.1}H{RIGHT}", scale.left))).raw("</path>");
        let name = Tag::of("text", "axis")
            .with("x", &format!("{:.1}", scale.left - NAME_GAP))
            .with("y", &format!("{:.1}", y + 3.5))
            .with("text-anchor", "end");
        html.tagged(name, &amount(figure.unit, value));
    }
    let ticks = scale.ticks_below(figure.kind);
    let is_at_end = |value: f64| scale.x(value) + width(&figure.x) > RIGHT;
    for (number, value) in ticks.iter().enumerate() {
        let is_last = number + 1 == ticks.len();
        let name = Tag::of("text", "axis")
            .with("x", &format!("{:.1}", scale.x(*value)))
            .with("y", &format!("{:.1}", BOTTOM + 14.0))
            .with("text-anchor", if is_last && is_at_end(*value) { "end" } else { "middle" });
        let unit = if is_last { &figure.x } else { "" };
        html.tagged(name, format!("{value:.0} {unit}").trim_end());
    }
}

fn amount(unit: LabUnit, value: f64) -> String {
    let unit = match unit {
        LabUnit::Number if value.fract() == 0.0 => return format!("{value:.0}"),
        LabUnit::Number => return format!("{value:.1}"),
        LabUnit::Bytes => ChartUnit::Bytes,
        LabUnit::BytesPerSecond => ChartUnit::BytesPerSecond,
        LabUnit::PagesPerSecond => ChartUnit::PagesPerSecond,
        LabUnit::Share => ChartUnit::Share,
        LabUnit::Millis => ChartUnit::Millis,
    };
    report::shown(unit, value)
}

/// Draws a curve; what was not measured is a gap.
fn line(html: &mut Html, curve: &LabCurve, scale: FigureScale) {
    let mut path = String::new();
    let mut is_open = false;
    for (x, y) in &curve.points {
        let Some(y) = y else {
            is_open = false;
            continue;
        };
        let step = if is_open { 'L' } else { 'M' };
        path.push_str(&format!("{step}{:.1} {:.1}", scale.x(*x), scale.y(*y)));
        is_open = true;
    }
    let class = if curve.is_limit { "limit" } else { "curve" };
    let line = Tag::of("path", class).with("stroke", &ink(curve));
    html.open(&line.with_own("d", &path)).raw("</path>");
}

/// Draws areas on top of each other, then the limits.
fn stack(html: &mut Html, panel: &LabPanel, scale: FigureScale) {
    let len = panel.curves.first().map_or(0, |curve| curve.points.len());
    let mut floor = vec![0.0; len];
    for curve in panel.curves.iter().filter(|curve| !curve.is_limit) {
        let heights = curve.points.iter().map(|(_, y)| y.unwrap_or_default());
        let roof: Vec<f64> = floor.iter().zip(heights).map(|(low, y)| low + y).collect();
        let place = |(at, y): (usize, &f64)| {
            let x = curve.points.get(at).map_or(0.0, |(x, _)| *x);
            format!("{:.1} {:.1}", scale.x(x), scale.y(*y))
        };
        let up = roof.iter().enumerate().map(place);
        let back = floor.iter().enumerate().rev().map(place);
        let outline: Vec<String> = up.chain(back).collect();
        if !outline.is_empty() {
            let area = tag("path").with("fill", &ink(curve));
            html.open(&area.with_own("d", &format!("M{}Z", outline.join("L")))).raw("</path>");
        }
        floor = roof;
    }
    for curve in panel.curves.iter().filter(|curve| curve.is_limit) {
        line(html, curve, scale);
    }
}

/// Draws a bar for each point; curves share a place side by side where both have a point.
fn bars(html: &mut Html, panel: &LabPanel, scale: FigureScale) {
    let at_same = |x: f64| {
        let has = |curve: &&LabCurve| curve.points.iter().any(|(other, _)| *other == x);
        panel.curves.iter().filter(has).count().max(1)
    };
    let points: usize = panel.curves.iter().map(|curve| curve.points.len()).sum();
    #[allow(clippy::cast_precision_loss)] // a few
    let room = ((RIGHT - scale.left) / points.max(1) as f64 * 0.7).min(40.0);
    for (number, curve) in panel.curves.iter().enumerate() {
        for (x, y) in &curve.points {
            let count = at_same(*x);
            #[allow(clippy::cast_precision_loss)] // a few
            let (width, shift) = if count > 1 {
                let width = room / count as f64;
                (width, width * number as f64 - room / 2.0)
            } else {
                (room, -room / 2.0)
            };
            let top = scale.y(y.unwrap_or_default());
            let bar = tag("rect")
                .with("fill", &ink(curve))
                .with("x", &format!("{:.1}", scale.x(*x) + shift))
                .with("y", &format!("{top:.1}"))
                .with("width", &format!("{width:.1}"))
                .with("height", &format!("{:.1}", (BOTTOM - top).max(0.5)));
            html.open(&bar).raw("</rect>");
        }
    }
}

/// Draws the names of all curves with their colours.
fn legend(html: &mut Html, figure: &LabFigure) {
    let mut named: Vec<&LabCurve> = Vec::new();
    // Limits are named where they are drawn.
    let curves = figure.panels.iter().flat_map(|panel| &panel.curves);
    for curve in curves.filter(|curve| !curve.is_limit) {
        if named.iter().all(|known| known.label != curve.label) {
            named.push(curve);
        }
    }
    html.within(Tag::of("ul", "names"), |html| {
        for curve in named {
            html.within(tag("li"), |html| {
                let dot = Tag::of("svg", "dot").with("viewBox", "0 0 10 10");
                html.within(dot.with("aria-hidden", "true"), |html| {
                    let square = tag("rect").with("width", "10").with("height", "10");
                    html.open(&square.with("fill", &ink(curve))).raw("</rect>");
                });
                html.text(&curve.label);
            });
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_axis_ends_at_a_round_number() {
        for (value, top) in [(0.0, 1.0), (0.9, 1.0), (3.1, 3.2), (21.0, 24.0), (180.0, 200.0)] {
            assert!((round_up(value, LabUnit::Number) - top).abs() < 1e-9, "{value}");
        }
        let mib = 1_048_576.0;
        assert!((round_up(720.0 * mib, LabUnit::Bytes) - 800.0 * mib).abs() < 1.0);
    }

    fn figure(unit: LabUnit, curves: Vec<LabCurve>) -> LabFigure {
        LabFigure {
            title: "<b>".to_owned(),
            help: String::new(),
            x: "s".to_owned(),
            unit,
            kind: LabFigureKind::Lines,
            is_log: false,
            panels: vec![LabPanel { arm: "\"><script>".to_owned(), curves }],
        }
    }

    fn curve(label: &str, is_limit: bool, points: Vec<(f64, Option<f64>)>) -> LabCurve {
        LabCurve { label: label.to_owned(), colour: "line_1".to_owned(), is_limit, points }
    }

    #[test]
    fn no_name_of_an_axis_begins_left_of_the_drawing() {
        let points = vec![(0.0, Some(11_900.0)), (9.0, Some(3.0))];
        let figure = figure(LabUnit::PagesPerSecond, vec![curve("refaults", false, points)]);
        let svg = panel_drawing(&figure, &figure.panels[0]);
        let ends_at = FigureScale::of(&figure).left - NAME_GAP;
        assert!(svg.contains(">12,000 pages/s</text>"), "{svg}");
        assert!(svg.contains(&format!("x=\"{ends_at:.1}\"")), "{svg}");
        assert!(ends_at >= width("12,000 pages/s"), "{ends_at}");
    }

    #[test]
    fn every_limit_has_its_name_and_its_value_and_none_is_over_another() {
        let at = |value: f64| vec![(0.0, Some(value)), (9.0, Some(value))];
        let curves = vec![
            curve("used", false, at(90.0)),
            curve("high", true, at(95.0)),
            curve("max", true, at(96.0)),
        ];
        let figure = figure(LabUnit::Number, curves);
        let svg = panel_drawing(&figure, &figure.panels[0]);
        let heights: Vec<f64> = svg
            .split("class=\"limit-name\"")
            .skip(1)
            .filter_map(|rest| rest.split("y=\"").nth(1)?.split('"').next()?.parse().ok())
            .collect();
        assert!(svg.contains(">high 95<") && svg.contains(">max 96<"), "{svg}");
        assert!(heights.len() == 2 && heights[0] - heights[1] >= LINE, "{heights:?}");
    }

    #[test]
    fn names_from_outside_are_text() {
        let points = vec![(0.0, Some(1.0)), (1.0, None), (2.0, Some(2.0))];
        let figure = figure(LabUnit::Number, vec![curve("x", false, points)]);
        let svg = panel_drawing(&figure, &figure.panels[0]);
        assert!(!svg.contains("<script") && !svg.contains("<b>"), "{svg}");
        // The gap divides the curve.
        assert!(svg.contains("M74.0 111.0M472.0 10.0"), "{svg}");
    }
}
