//! Notes: what seems alarming and is harmless.

use super::Scene;
use super::block::section;
use super::escape::{Html, Tag, tag};
use crate::model::Finding;
use crate::phrases::source::is_about_the_source;

pub(super) fn draw_all(html: &mut Html, scene: &Scene<'_>) {
    let notes = scene.report.notes.iter().filter(|note| !is_about_the_source(note));
    let notes: Vec<&Finding> = notes.collect();
    if notes.is_empty() {
        return;
    }
    let ids = ("looks-alarming", "looks-alarming-heading");
    section(html, ids, "Looks alarming, but is not", |html| {
        notes.into_iter().for_each(|note| draw(html, note));
    });
}

pub(super) fn draw(html: &mut Html, note: &Finding) {
    html.within(Tag::of("article", "note"), |html| {
        html.tagged(tag("h3"), &note.whole_title());
        html.within(tag("p"), |html| {
            html.tagged(Tag::of("code", "id"), &note.id);
            if !note.cause.is_empty() {
                html.raw(" ").text(&note.cause);
            }
        });
        if note.evidence.is_empty() {
            return;
        }
        html.within(tag("details"), |html| {
            html.raw("<summary>Evidence</summary>");
            html.within(tag("ul"), |html| {
                for line in &note.evidence {
                    html.tagged(tag("li"), &line.text);
                }
            });
        });
    });
}
