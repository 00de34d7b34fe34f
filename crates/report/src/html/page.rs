//! The file of the page: its head with the policy, the blocks in order, and the data for the script.

use super::escape::{Html, Tag};
use super::{
    Scene, chart, clear, data, document, events, explain, facts, finding, headroom, incidents,
    note, recorded, served, verdict,
};
use crate::phrases::source::{hardware_items, source_items};

/// The page's script, made in `web/`.
pub(super) const SCRIPT: &str = include_str!("../../assets/page.js");

pub(super) fn draw(scene: &Scene<'_>) -> String {
    let title = title(scene);
    let head = document::DocumentHead {
        title: &title,
        style: match scene.served {
            Some(_) => served::STYLE,
            None => scene.page.explain.as_ref().map_or("", |_| explain::STYLE),
        },
        script: Some(if scene.served.is_some() { served::SCRIPT } else { SCRIPT }),
        is_served: scene.served.is_some(),
    };
    document::draw(&head, |html| body(html, scene))
}

/// Draws what a page shows besides its charts' data and its script, as a document of its own.
pub(super) fn draw_text(scene: &Scene<'_>) -> String {
    let mut html = Html::default();
    html.raw("<!doctype html>\n<html lang=\"en\">\n<title>").text(&title(scene)).raw("</title>\n");
    shown(&mut html, scene);
    html.raw("\n</html>\n");
    html.finish()
}

fn title(scene: &Scene<'_>) -> String {
    format!("{}: {} · memtide", verdict::word(scene.report.verdict), name(scene))
}

fn body(html: &mut Html, scene: &Scene<'_>) {
    shown(html, scene);
    data::draw(html, scene);
    script(html, if scene.served.is_some() { served::SCRIPT } else { SCRIPT });
}

fn shown(html: &mut Html, scene: &Scene<'_>) {
    let has_findings = !scene.report.findings.is_empty();
    let first = if has_findings { "#findings" } else { "#verdict" };
    html.tagged(Tag::of("a", "skip").with("href", first), "Skip to the findings").raw("\n");
    host_line(html, scene);
    if let Some(served) = scene.served {
        served::bar(html, served);
    }
    strip(html, scene);
    html.raw("\n<main>\n");
    verdict::draw(html, scene);
    if scene.has_charts() {
        html.raw("\n<div id=\"navigator\"></div>\n");
    }
    incidents::draw(html, scene);
    finding::draw_all(html, scene);
    note::draw_all(html, scene);
    if let Some(report) = &scene.page.explain {
        html.raw("\n");
        explain::within_a_page(html, report);
    }
    chart::draw_all(html, scene);
    if let Some(report) = &scene.page.headroom {
        headroom::draw(html, report, &scene.clock);
    }
    facts::draw(html, scene);
    events::draw(html, scene);
    clear::not_evaluated(html, scene);
    clear::clear(html, scene);
    recorded::draw(html, scene);
    html.raw("\n</main>");
    match scene.served {
        Some(served) => served::footer(html, served),
        None => footer(html),
    }
}

pub(super) fn footer(html: &mut Html) {
    signature(html, "This page is complete: it loads nothing.");
}

pub(super) fn signature(html: &mut Html, loads: &str) {
    html.raw("\n<footer>Written by memtide ")
        .text(env!("CARGO_PKG_VERSION"))
        .raw(". ")
        .text(loads)
        .raw("</footer>\n");
}

/// Returns the page's title: the requested heading, else the host, else the file.
pub(super) fn name(scene: &Scene<'_>) -> String {
    let source = &scene.report.source;
    let file = source.file_name().or(source.name.as_deref());
    let known = scene.page.title.as_deref().or(scene.report.host.hostname.as_deref());
    known.or(file).unwrap_or("this host").to_owned()
}

fn host_line(html: &mut Html, scene: &Scene<'_>) {
    let report = scene.report;
    html.within(Tag::of("header", "host-line"), |html| {
        html.tagged(Tag::of("span", "brand"), "memtide");
        let name = name(scene);
        html.tagged(Tag::of("span", "host"), &name);
        let mut hardware = hardware_items(&report.host);
        hardware.extend(report.host.cpus.map(cpus));
        for item in &hardware {
            html.tagged(Tag::of("span", "meta"), item);
        }
        let source = source_items(&report.source, &scene.clock);
        for item in source.iter().filter(|item| **item != name) {
            html.tagged(Tag::of("span", "meta of-source"), item);
        }
        let range = scene.clock.whole();
        let ends = scene.clock.until();
        let is_shown = |text: &str| source.iter().any(|item| item.contains(text));
        if report.source.samples > 1 && !is_shown(&range) && !ends.is_some_and(|at| is_shown(&at)) {
            html.tagged(Tag::of("span", "range"), &range);
        }
    });
}

fn cpus(count: u32) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} CPU{plural}")
}

/// Draws the source's problems above everything that depends on it.
fn strip(html: &mut Html, scene: &Scene<'_>) {
    let problems = &scene.report.source.problems;
    let Some(first) = problems.first() else {
        return;
    };
    html.within(Tag::of("p", "strip"), |html| {
        html.text(first);
        if let Some(more) = problems.len().checked_sub(1).filter(|more| *more > 0) {
            html.raw(" · <a href=\"#recorded\">").text(&format!("and {more} more")).raw("</a>");
        }
    });
}

pub(super) fn script(html: &mut Html, text: &'static str) {
    html.raw("<script>").raw(text).raw("</script>");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::html::document::STYLE;

    #[test]
    fn our_own_script_and_style_end_where_we_end_them() {
        for (text, end) in [(SCRIPT, "</script"), (STYLE, "</style")] {
            assert!(!text.to_lowercase().contains(end));
            assert!(!text.contains("<!--"));
        }
    }
}
