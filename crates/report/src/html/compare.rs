//! The page of `memtide compare`: the sentence on top, then both sources side by side, in the words of the terminal. It needs
//! no script.

mod amounts;
mod findings;
mod rates;

use super::escape::{Html, Tag, tag};
use super::page::section;
use super::{document, icon};
use crate::Screen;
use crate::model::{CompareReport, Direction, Level, Side};
use crate::said::compare::{self as said, Extent, Row, Table};
use crate::text::check::host_items;
use crate::text::when::Clock;

/// What this page has of style beside the report's.
const STYLE: &str = include_str!("../../assets/compare.css");

/// The page, as one file.
pub fn compare(report: &CompareReport, screen: &Screen) -> String {
    let word = said::word(report.direction);
    let (before, after) = names(report);
    let title = format!("{word}: {before} and {after} · memtide");
    let head = document::Head {
        title: &title,
        style: STYLE,
        script: None,
    };
    document::draw(&head, |html| body(html, report, screen))
}

fn body(html: &mut Html, report: &CompareReport, screen: &Screen) {
    html.raw("<a class=\"skip\" href=\"#findings\">Skip to the findings</a>\n");
    html.within(Tag::of("header", "host-line"), |html| {
        html.tagged(Tag::of("span", "brand"), "memtide");
        let (before, after) = names(report);
        html.tagged(Tag::of("span", "host"), &before);
        html.raw("<span class=\"meta\">compared with</span>");
        html.tagged(Tag::of("span", "host"), &after);
    });
    html.raw("\n<main class=\"compare\">\n");
    verdict(html, report);
    sides(html, report, screen);
    findings::draw(html, report);
    amounts::draw(html, report);
    rates::draw(html, report);
    facts(html, report);
    html.raw("\n</main>\n<footer>Written by memtide ")
        .text(env!("CARGO_PKG_VERSION"))
        .raw(". This page holds everything it shows and asks nobody for anything.</footer>");
}

/// What people know the sides by: their hosts where these are two, else their files.
fn names(report: &CompareReport) -> (String, String) {
    let sides = [&report.before, &report.after];
    let [before, after] = sides.map(|side| side.host.hostname.clone());
    match before.zip(after) {
        Some((before, after)) if before != after => (before, after),
        _ => {
            let [before, after] = sides.map(file);
            (before, after)
        }
    }
}

fn file(side: &Side) -> String {
    side.source.file_name().unwrap_or("this host").to_owned()
}

fn verdict(html: &mut Html, report: &CompareReport) {
    let level = match report.direction {
        Direction::Better | Direction::Same => Level::Ok,
        Direction::Worse => Level::Critical,
        Direction::Unknown => Level::Unknown,
    };
    let block = Tag::standing("section", "verdict", icon::class_of_level(level));
    let block = block.with("id", "verdict");
    html.within(block.with("aria-labelledby", "headline"), |html| {
        icon::of_level(html, level);
        html.tagged(Tag::of("p", "level"), said::word(report.direction));
        html.tagged(tag("h1").with("id", "headline"), &report.headline);
        for sentence in &report.basis {
            html.tagged(Tag::of("p", "remark"), sentence);
        }
    });
}

/// How each side stood by itself.
fn sides(html: &mut Html, report: &CompareReport, screen: &Screen) {
    section(html, ("sides", "sides-heading"), "The two", |html| {
        html.within(Tag::of("div", "sides"), |html| {
            for (word, side) in [("before", &report.before), ("after", &report.after)] {
                html.within(Tag::of("article", "side"), |html| {
                    html.tagged(tag("h3"), word);
                    let clock = Clock::new(&side.source, screen);
                    let items = host_items(&side.host, &side.source, &clock);
                    html.tagged(Tag::of("p", "meta"), &items.join(" · "));
                    let class = icon::class_of_level(side.verdict);
                    html.within(Tag::standing("p", "stood", class), |html| {
                        icon::of_level(html, side.verdict);
                        html.raw(" ").text(&side.headline);
                    });
                });
            }
        });
    });
}

fn facts(html: &mut Html, report: &CompareReport) {
    let facts = said::facts(report, Extent::Changed);
    section(html, ("facts", "facts-heading"), facts.heading, |html| {
        table(html, &facts, |_, _, _| {});
    });
}

/// Which side of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OfSide {
    Before,
    After,
}

/// What changed; all of it folded away where there is more.
fn tables(html: &mut Html, changed: &Table, all: &Table, more: impl Fn(&mut Html, &Row, OfSide)) {
    table(html, changed, &more);
    if all.rows.len() > changed.rows.len() {
        html.within(tag("details"), |html| {
            html.raw("<summary>What did not change, too</summary>");
            table(html, all, &more);
        });
    }
}

/// Rows `label, before, after, change`, and what is said below; `more` draws below a value.
fn table(html: &mut Html, table: &Table, more: impl Fn(&mut Html, &Row, OfSide)) {
    if table.rows.is_empty() {
        html.raw("<p class=\"none\">none</p>");
    } else {
        html.within(Tag::of("table", "compared"), |html| {
            html.raw("<thead><tr><td></td><th scope=\"col\">before</th><th scope=\"col\">after</th><th scope=\"col\">change</th></tr></thead>");
            html.within(tag("tbody"), |html| {
                for row in &table.rows {
                    draw_row(html, row, &more);
                }
            });
        });
    }
    for sentence in &table.below {
        html.tagged(Tag::of("p", "below"), sentence);
    }
}

fn draw_row(html: &mut Html, row: &Row, more: &impl Fn(&mut Html, &Row, OfSide)) {
    let tr = match row.is_strong {
        true => Tag::of("tr", "is-strong"),
        false => tag("tr"),
    };
    html.within(tr, |html| {
        html.tagged(tag("th").with("scope", "row"), &row.label);
        for (class, side, value) in [
            ("before", OfSide::Before, &row.before),
            ("after", OfSide::After, &row.after),
        ] {
            html.within(Tag::of("td", class), |html| {
                html.text(value);
                more(html, row, side);
            });
        }
        html.within(Tag::of("td", "change"), |html| {
            html.text(&row.change);
            if !row.more.is_empty() {
                html.tagged(Tag::of("span", "spreads"), &row.more);
            }
        });
    });
}
