//! How the readings were recorded and sampled, and what was wrong with that.

use units::Count;

use super::Scene;
use super::block::section;
use super::escape::{Html, Tag, tag};
use super::note;
use crate::model::{Source, SourceKind};
use crate::phrases::source::{is_about_the_source, unknown_fields as unknown};

pub(super) fn draw(html: &mut Html, scene: &Scene<'_>) {
    let source = &scene.report.source;
    section(html, ("recorded", "recorded-heading"), "How this was recorded", |html| {
        html.within(Tag::of("dl", "recorded"), |html| {
            for (name, value) in rows(scene) {
                html.tagged(tag("dt"), name).tagged(tag("dd"), &value);
            }
        });
        list(html, "Problems with this source", &source.problems);
        inputs(html, source);
        unknown_fields(html, &source.unknown_fields);
        let notes = scene.report.notes.iter().filter(|note| is_about_the_source(note));
        notes.for_each(|note| note::draw(html, note));
    });
}

fn rows(scene: &Scene<'_>) -> Vec<(&'static str, String)> {
    let source = &scene.report.source;
    let mut rows = vec![("kind", kind(source.kind).to_owned())];
    // Pages are sent by mail, so the directory is left out.
    let file = source.file_name();
    rows.extend(file.map(|name| ("name", name.to_owned())));
    rows.push(("time", scene.clock.whole()));
    rows.push(("samples", Count::new(source.samples as u64).to_string()));
    rows.extend(
        source.interval_s.map(|every| ("interval of samples", format!("{every} (median)"))),
    );
    if let Some(every) = source.thinned_to_s {
        let what = format!(
            "one sample every {every}; charts have every peak, and the worst times in full"
        );
        rows.push(("judged", what));
    }
    if scene.picture.is_reduced() {
        let columns = Count::new(scene.picture.times().len() as u64);
        rows.push((
            "drawn",
            format!("{columns} columns, each with its least, mean and largest value"),
        ));
    }
    let lines = Count::new(source.lines_skipped as u64);
    if source.lines_skipped > 0 {
        rows.push(("lines skipped", lines.to_string()));
    }
    rows
}

const fn kind(kind: SourceKind) -> &'static str {
    match kind {
        SourceKind::Live => "this host, watched",
        SourceKind::Capture => "a capture of kernel files",
        SourceKind::Text => "text that somebody pasted or saved",
        SourceKind::Bundle => "a support bundle",
        SourceKind::Recording => "a recording by memtide record",
    }
}

fn list(html: &mut Html, heading: &str, items: &[String]) {
    if items.is_empty() {
        return;
    }
    html.tagged(tag("h3"), &format!("{heading} ({})", items.len()));
    html.within(tag("ul"), |html| {
        for item in items {
            html.tagged(tag("li"), item);
        }
    });
}

/// Draws the kernel fields that memtide does not know, for whoever adds support for a kernel.
fn unknown_fields(html: &mut Html, fields: &[String]) {
    if fields.is_empty() {
        return;
    }
    html.within(tag("details"), |html| {
        html.tagged(tag("summary"), "Kernel fields that memtide has no name for");
        html.tagged(tag("p"), &unknown(fields));
    });
}

/// Draws what was recognised in a text, block by block.
fn inputs(html: &mut Html, source: &Source) {
    if source.inputs.is_empty() {
        return;
    }
    html.tagged(tag("h3"), "What was recognised");
    html.within(Tag::of("table", "inputs"), |html| {
        html.raw("<thead><tr><th scope=\"col\">lines</th><th scope=\"col\">form</th><th scope=\"col\">what</th></tr></thead>");
        html.within(tag("tbody"), |html| {
            for input in &source.inputs {
                let file = input.file.as_ref().map_or_else(String::new, |file| format!("{file}, "));
                html.within(tag("tr"), |html| {
                    html.tagged(tag("td"), &format!("{file}{} to {}", input.first_line, input.last_line));
                    html.tagged(tag("td"), &input.form).tagged(tag("td"), &input.what);
                });
            }
        });
    });
}
