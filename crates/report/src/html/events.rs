//! Events, in order of time.

use super::Scene;
use super::block::section;
use super::escape::{Html, Tag, tag};
use crate::model::EventEntry;
use crate::model::page::is_main;
use timeline::EventKind;

/// At most 300 events; the rest is counted.
const EVENTS_MAX: usize = 300;

pub(super) fn draw(html: &mut Html, scene: &Scene<'_>) {
    let all = &scene.page.events.events;
    if all.is_empty() {
        return;
    }
    section(html, ("events", "events-heading"), "Events", |html| {
        let shown = chosen(all);
        html.within(Tag::of("ol", "events"), |html| {
            shown.iter().for_each(|event| entry(html, scene, event));
        });
        if let Some(more) = all.len().checked_sub(shown.len()).filter(|more| *more > 0) {
            let more = format!("And {more} more: memtide events lists all of them.");
            html.tagged(Tag::of("p", "more"), &more);
        }
    });
}

/// Returns all events if they fit, else first those that explain what charts show.
fn chosen(all: &[EventEntry]) -> Vec<&EventEntry> {
    let main = all.iter().filter(|event| is_main(event)).count();
    let mut room_for_main = EVENTS_MAX;
    let mut room_for_rest = EVENTS_MAX.saturating_sub(main);
    let is_shown = |event: &&EventEntry| {
        let room = if is_main(event) { &mut room_for_main } else { &mut room_for_rest };
        let has_room = *room > 0;
        *room = room.saturating_sub(1);
        has_room
    };
    all.iter().filter(is_shown).collect()
}

fn entry(html: &mut Html, scene: &Scene<'_>, event: &EventEntry) {
    let begin_s = scene.picture.begin_s();
    let ends = 0.0..=scene.picture.span_s();
    let at_s = event.offset_s.map(|at_s| at_s - begin_s);
    let mut item = tag("li");
    if let Some(at_s) = at_s.filter(|at_s| ends.contains(at_s)) {
        item = item.showing("data-at", format!("{at_s:.3}"));
    }
    html.within(item, |html| {
        if let Some(when) = scene.clock.listed(event.offset_s, event.at) {
            html.tagged(tag("time"), &when).raw(" ");
        }
        html.tagged(Tag::of("span", "text"), &scene.clock.sentence(event));
        if let Some(report) = &event.report {
            html.within(tag("details"), |html| {
                let is_profile = event.kind == EventKind::KernelProfile.name();
                let title = if is_profile { "The profile" } else { "The kernel's report" };
                html.tagged(tag("summary"), title).raw("<pre>");
                html.lines(report).raw("</pre>");
            });
        }
    });
}
