//! The page of `memtide compare`: the headline, then both sources side by side, in the words of the terminal and with
//! the blocks of the report's page.
//!
//! Every chart is drawn twice, before and after, on one scale; the script puts one cursor on both ([`opening`] says
//! where). Without the script the page is complete text.

mod amounts;
mod charts;
mod findings;
mod headroom;
mod opening;
mod sides;
mod table;

use self::opening::CursorAlignment;
use self::sides::Both;
use self::table::{table, tables};
use super::block::section;
use super::escape::{Html, Tag, tag};
use super::page;
use super::{ComparedSide, Page, Scene, data, document, icon};
use crate::Screen;
use crate::model::{CompareReport, Direction, Level, Severity};
use crate::phrases::compare::{self as phrases, Extent};
use crate::phrases::source::host_items;

/// Style that only this page needs, added to the report's.
const STYLE: &str = include_str!("../../assets/compare.css");

/// Returns the page as one file.
pub fn compare(report: &CompareReport, before: &Page, after: &Page, screen: &Screen) -> String {
    let both = Both {
        report,
        before: Scene::new(before, screen, ComparedSide::Before),
        after: Scene::new(after, screen, ComparedSide::After),
    };
    let word = phrases::word(report.direction);
    let (before, after) = names(report);
    let title = format!("{word}: {before} and {after} · memtide");
    let head = document::DocumentHead {
        title: &title,
        style: STYLE,
        script: Some(page::SCRIPT),
        is_served: false,
    };
    document::draw(&head, |html| body(html, &both))
}

fn body(html: &mut Html, both: &Both<'_>) {
    let report = both.report;
    html.raw("<a class=\"skip\" href=\"#findings\">Skip to the findings</a>\n");
    host_line(html, report);
    html.raw("\n");
    let main = Tag::of("main", "compare")
        .with("data-opens", opening::side(both).word())
        .with("data-beside", CursorAlignment::of(both).word());
    html.within(main, |html| {
        draw_verdict(html, report);
        sides(html, both);
        navigator(html, both);
        findings::draw(html, both);
        amounts::draw(html, report);
        charts::draw(html, both);
        rates(html, report);
        headroom::draw(html, both);
        facts(html, report);
    });
    page::footer(html);
    for (_, scene) in both.sides() {
        data::draw(html, scene);
    }
    page::script(html, page::SCRIPT);
}

fn host_line(html: &mut Html, report: &CompareReport) {
    let (before, after) = names(report);
    html.within(Tag::of("header", "host-line"), |html| {
        html.tagged(Tag::of("span", "brand"), "memtide");
        html.tagged(Tag::of("span", "host"), &before);
        html.raw("<span class=\"versus\">compared with</span>");
        html.tagged(Tag::of("span", "host"), &after);
    });
}

/// Returns the names of the sides: their hosts if these differ, else their files.
fn names(report: &CompareReport) -> (String, String) {
    let sides = [&report.before, &report.after];
    let [before, after] = sides.map(|side| side.host.hostname.clone());
    match before.zip(after) {
        Some((before, after)) if before != after => (before, after),
        _ => {
            let [before, after] = sides.map(|side| {
                let file = side.source.file_name();
                file.unwrap_or("this host").to_owned()
            });
            (before, after)
        }
    }
}

fn draw_verdict(html: &mut Html, report: &CompareReport) {
    // A change that is neither better nor worse has no sign and no severity colour.
    let level = match report.direction {
        Direction::Better | Direction::Same => Some(Level::Ok),
        Direction::Different => None,
        Direction::Worse => Some(Level::Critical),
        Direction::Unknown => Some(Level::Unknown),
    };
    let block = Tag::standing("section", "verdict", level.map_or("is-info", icon::class_of_level));
    let block = block.with("id", "verdict");
    html.within(block.with("aria-labelledby", "headline"), |html| {
        match level {
            Some(level) => icon::of_level(html, level),
            None => icon::of_severity(html, Severity::Info),
        }
        html.tagged(Tag::of("p", "level"), phrases::word(report.direction));
        html.tagged(tag("h1").with("id", "headline"), &report.headline);
        for sentence in report.more.iter().chain(&report.basis) {
            html.tagged(Tag::of("p", "remark"), sentence);
        }
    });
}

/// Draws the host, the time and the verdict of each side.
fn sides(html: &mut Html, both: &Both<'_>) {
    let reports = [&both.report.before, &both.report.after];
    section(html, ("sides", "sides-heading"), "The two", |html| {
        html.within(Tag::of("div", "pair"), |html| {
            for ((word, scene), side) in both.sides().into_iter().zip(reports) {
                let class = icon::class_of_level(side.verdict);
                html.within(Tag::standing("article", "side", class), |html| {
                    html.tagged(tag("h3"), word);
                    let items = host_items(&side.host, &side.source, &scene.clock);
                    html.tagged(Tag::of("p", "meta"), &items.join(" · "));
                    html.within(Tag::of("p", "stood"), |html| {
                        icon::of_level(html, side.verdict);
                        html.raw(" ").text(&side.headline);
                    });
                });
            }
        });
        if let Some(note) = opening::alignment_note(both) {
            html.tagged(Tag::of("p", "part js-only"), &note);
        }
    });
}

/// Draws the place where the script writes the readings at the cursor for each side.
fn navigator(html: &mut Html, both: &Both<'_>) {
    if !both.sides().iter().any(|(_, scene)| scene.has_charts()) {
        return;
    }
    html.raw("\n<div id=\"navigator\" class=\"pair\">");
    for (word, _) in both.sides() {
        html.within(tag("div").with("data-side", word), |_| {});
    }
    html.raw("</div>\n");
}

fn rates(html: &mut Html, report: &CompareReport) {
    let [changed, all] =
        [Extent::Changed, Extent::All].map(|extent| phrases::rates(report, extent));
    section(html, ("rates", "rates-heading"), changed.heading, |html| {
        tables(html, &changed, &all);
    });
}

fn facts(html: &mut Html, report: &CompareReport) {
    let facts = phrases::facts(report, Extent::Changed);
    section(html, ("facts", "facts-heading"), facts.heading, |html| {
        table(html, &facts, |_, _| {});
    });
}
