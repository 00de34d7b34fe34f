//! The answer of `explain` on a page: one block, complete without a script, alone or within a host's report.

mod arenas;
mod facts;
mod files;
mod growth;
mod heap;
mod memory_tree;
mod runtime_stats;
mod sizes;

use units::Bytes;

use super::document::{self, DocumentHead};
use super::escape::{Html, Tag, tag};
use super::{icon, page};
use crate::model::explain::ExplainReport;
use crate::model::{Level, Severity};
use crate::phrases::explain::{self as phrases, ExplainStanding};

/// Style of this block, added to that of all pages.
pub(crate) const STYLE: &str = include_str!("../../assets/explain.css");

/// Returns the page of a process as one file.
pub(crate) fn alone(report: &ExplainReport) -> String {
    let title = format!("{}: {} · memtide explain", report.verdict_text, phrases::process(report));
    let head = DocumentHead { title: &title, style: STYLE, script: None, is_served: false };
    document::draw(&head, |html| {
        html.within(Tag::of("header", "host-line"), |html| {
            html.tagged(Tag::of("span", "brand"), "memtide explain");
            html.tagged(Tag::of("span", "host"), &phrases::process(report));
            for item in items(report) {
                html.tagged(Tag::of("span", "meta"), &item);
            }
        });
        html.raw("\n<main>\n");
        section(html, report, tag("h1"));
        html.raw("\n</main>");
        page::footer(html);
    })
}

/// Draws a process on the page of its host.
pub(crate) fn within_a_page(html: &mut Html, report: &ExplainReport) {
    let of_process = Tag::of("div", "of-process").with("id", "of-process");
    html.within(of_process, |html| {
        html.tagged(tag("h2"), &format!("Process {}", phrases::process(report)));
        let mut items = items(report);
        items.push("read when this page was written".to_owned());
        html.tagged(Tag::of("p", "help"), &items.join(" · "));
        section(html, report, tag("h3"));
    });
}

fn items(report: &ExplainReport) -> Vec<String> {
    let mut items = phrases::process_items(report);
    items.push(phrases::rss(report));
    items
}

/// Draws everything that `explain` found; `headline` is the element of the verdict's first sentence.
pub(crate) fn section(html: &mut Html, report: &ExplainReport, headline: Tag) {
    verdict(html, report, headline);
    html.raw("\n");
    heap::picture(html, report);
    if let Some(entry) = &report.growth {
        growth::draw(html, entry, report.is_watched);
    }
    sizes::draw(html, report);
    memory_tree::draw(html, report);
    heap::details(html, report);
    if let Some(stats) = &report.runtime_stats {
        runtime_stats::draw(html, stats);
    }
    files::draw(html, report);
    facts::draw(html, report);
}

/// Draws a panel with its heading.
fn panel(
    html: &mut Html,
    id: &'static str,
    heading: &str,
    help: &str,
    inside: impl FnOnce(&mut Html),
) {
    html.raw("\n");
    html.within(Tag::of("section", "explained").with("id", id), |html| {
        html.tagged(tag("h2"), heading);
        if !help.is_empty() {
            html.tagged(Tag::of("p", "help"), help);
        }
        inside(html);
    });
}

fn verdict(html: &mut Html, report: &ExplainReport, headline: Tag) {
    let class = match ExplainStanding::of(report) {
        ExplainStanding::Wasted => "is-warning",
        ExplainStanding::Used => "is-info",
        ExplainStanding::Fine => "is-ok",
        ExplainStanding::Unknown => "is-unknown",
    };
    let block = Tag::standing("section", "verdict", class).with("id", "explain");
    html.within(block.with("aria-labelledby", "explain-headline"), |html| {
        match ExplainStanding::of(report) {
            ExplainStanding::Wasted => icon::of_severity(html, Severity::Warning),
            ExplainStanding::Used => icon::of_severity(html, Severity::Info),
            ExplainStanding::Fine => icon::of_level(html, Level::Ok),
            ExplainStanding::Unknown => icon::of_level(html, Level::Unknown),
        }
        html.tagged(Tag::of("p", "level"), &report.verdict_text);
        let (first, more) = match report.headline.split_first() {
            Some((first, more)) => (first.as_str(), more),
            None => (report.verdict_text.as_str(), &[][..]),
        };
        html.tagged(headline.with("id", "explain-headline"), first);
        for sentence in more {
            html.tagged(Tag::of("p", "remark"), sentence);
        }
        figures(html, report);
    });
}

/// Draws the four figures that a reader needs first.
fn figures(html: &mut Html, report: &ExplainReport) {
    let rss = report.sizes.rss_bytes;
    let swapped = match report.sizes.swap_bytes {
        Bytes::ZERO => "nothing in swap".to_owned(),
        bytes => format!("and {bytes} in swap"),
    };
    let mut all = vec![("RSS", rss, swapped)];
    if let Some(heap) = &report.heap {
        let of_rss = |bytes: Bytes| match phrases::of_rss(bytes, report) {
            share if share.is_empty() => share,
            share => format!("{share} of RSS"),
        };
        let (live, in_ram) = (heap.live_bytes(), heap.live_resident_bytes());
        let about = if in_ram < live { format!("{in_ram} of it in RAM") } else { of_rss(live) };
        all.push(("Live malloc chunks", live, about));
        let free = heap.unused_resident_bytes;
        all.push(("Free, but in RAM", free, of_rss(free)));
        let now = heap.forecast.trim_bytes;
        all.push(("malloc_trim returns", now, of_rss(now)));
    } else {
        let own = report.sizes.uss_bytes;
        all.push(("Its own pages (USS)", own, "its end frees them".to_owned()));
        let anonymous = report.sizes.anonymous_bytes;
        all.push(("Anonymous", anonymous, "can only go to swap".to_owned()));
    }
    html.within(Tag::of("div", "figures"), |html| {
        for (name, bytes, about) in all {
            html.within(Tag::of("div", "figure"), |html| {
                html.tagged(Tag::of("span", "name"), name);
                html.tagged(Tag::of("span", "value"), &bytes.to_string());
                html.tagged(Tag::of("span", "about"), &about);
            });
        }
    });
}

/// Draws a bar: pieces as (class, from, length) of a whole of 1000.
fn bar(html: &mut Html, pieces: &[(&'static str, u64, u64)]) {
    let svg = Tag::of("svg", "heap-bar")
        .with("viewBox", "0 0 1000 12")
        .with("preserveAspectRatio", "none")
        .with("aria-hidden", "true");
    html.within(svg, |html| {
        for (class, from, length) in pieces {
            let piece = Tag::of("rect", class)
                .showing("x", from)
                .showing("width", length)
                .with("height", "12");
            html.open(&piece).raw("</rect>");
        }
    });
}

/// Returns a part of a whole of 1000, rounded down; at most 1000.
fn thousandths(part: Bytes, whole: Bytes) -> u64 {
    let exact = u128::from(part.get()) * 1000 / u128::from(whole.get().max(1));
    u64::try_from(exact).unwrap_or(1000).min(1000)
}
