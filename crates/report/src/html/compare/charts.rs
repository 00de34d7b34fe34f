//! Every chart twice, before and after. Charts without news on either side are folded.

use chart::Chart;

use super::opening::CursorAlignment;
use super::sides::Both;
use crate::html::Scene;
use crate::html::block::section;
use crate::html::chart::figure;
use crate::html::escape::{Html, Tag, tag};

/// Indices of a chart on both sides; `None` where that side has no data for it.
struct ChartPair {
    title: String,
    help: String,
    before: Option<usize>,
    after: Option<usize>,
}

pub(super) fn draw(html: &mut Html, both: &Both<'_>) {
    let pairs = pairs(charts_of(&both.before), charts_of(&both.after));
    if pairs.is_empty() {
        return;
    }
    let is_quiet = |pair: &ChartPair| {
        let sides = [(&both.before, pair.before), (&both.after, pair.after)];
        let mut there = sides.into_iter().filter_map(|(scene, at)| Some((scene, at?)));
        there.all(|(scene, at)| scene.picture.is_quiet(at))
    };
    let (quiet, loud): (Vec<ChartPair>, Vec<ChartPair>) = pairs.into_iter().partition(is_quiet);
    section(html, ("charts", "charts-heading"), "Charts", |html| {
        html.within(Tag::of("p", "part"), |html| {
            html.raw("Both sides have the same scale. ");
            html.raw(CursorAlignment::of(both).says());
        });
        for (_, scene) in both.sides() {
            if let Some(part) = &scene.page.part {
                html.tagged(Tag::of("p", "part"), part);
            }
        }
        loud.iter().for_each(|pair| draw_pair(html, both, pair));
        fold(html, both, &quiet);
    });
}

fn fold(html: &mut Html, both: &Both<'_>, quiet: &[ChartPair]) {
    if quiet.is_empty() {
        return;
    }
    html.within(Tag::of("details", "quiet"), |html| {
        let titles: Vec<&str> = quiet.iter().map(|pair| pair.title.as_str()).collect();
        html.within(tag("summary"), |html| {
            html.raw("Quiet signals, nothing happened on either side: ").text(&titles.join(", "));
        });
        quiet.iter().for_each(|pair| draw_pair(html, both, pair));
    });
}

/// Returns the charts of a side; none if it has nothing over time.
fn charts_of<'a>(scene: &'a Scene<'_>) -> &'a [Chart] {
    if scene.has_charts() { &scene.picture.charts } else { &[] }
}

/// Pairs the charts in the order of the first side; charts that only the second side has follow.
fn pairs(before: &[Chart], after: &[Chart]) -> Vec<ChartPair> {
    let place = |charts: &[Chart], id: &str| charts.iter().position(|chart| chart.id == id);
    let of_both = before.iter().enumerate().map(|(index, chart)| {
        let other = place(after, &chart.id);
        let beside = other.and_then(|index| after.get(index)).unwrap_or(chart);
        ChartPair {
            title: of_both(&chart.title, &beside.title),
            help: of_both(chart.help, beside.help),
            before: Some(index),
            after: other,
        }
    });
    let rest =
        after.iter().enumerate().filter(|(_, chart)| place(before, &chart.id).is_none()).map(
            |(index, chart)| ChartPair {
                title: chart.title.clone(),
                help: chart.help.to_owned(),
                before: None,
                after: Some(index),
            },
        );
    of_both.chain(rest).collect()
}

/// Joins two texts, once if they are equal: one side may know services where the other knows programs.
fn of_both(before: &str, after: &str) -> String {
    if before == after { before.to_owned() } else { format!("Before: {before} · After: {after}") }
}

fn draw_pair(html: &mut Html, both: &Both<'_>, pair: &ChartPair) {
    html.raw("\n").within(Tag::of("div", "pair charted"), |html| {
        html.tagged(tag("h3"), &pair.title);
        html.tagged(Tag::of("p", "help"), &pair.help);
        for (scene, at) in [(&both.before, pair.before), (&both.after, pair.after)] {
            match at {
                Some(index) => figure(html, scene, index, false),
                None => absent(html, scene, &pair.title),
            }
        }
    });
}

/// Says why a side lacks this chart.
fn absent(html: &mut Html, scene: &Scene<'_>, title: &str) {
    let mut known = scene.picture.absent.iter();
    let why = known.find(|chart| chart.title == title).map(|chart| chart.why.as_str());
    html.within(Tag::of("div", "chart absent"), |html| {
        html.tagged(Tag::of("p", "of"), scene.which.word());
        html.tagged(tag("p"), why.unwrap_or("this source has no such chart"));
    });
}
