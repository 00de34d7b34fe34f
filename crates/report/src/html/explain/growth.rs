//! The process's memory over time: its course, what the course is, and what to do.

use units::{Bytes, Quantity, Span};

use super::panel;
use crate::html::block;
use crate::html::escape::{Html, Tag, tag};
use crate::html::spark::{self, Spark};
use crate::model::growth::GrowthEntry;
use crate::phrases::growth as phrases;

pub(super) fn draw(html: &mut Html, entry: &GrowthEntry, is_watched: bool) {
    let from = if is_watched { "Watched for this page" } else { "From this host's recording" };
    let heading = format!("Over time: {}", entry.class_text);
    let help = format!("{} {from}: {}.", entry.meaning, phrases::sure(entry));
    panel(html, "explain-growth", &heading, &help, |html| {
        course(html, entry);
        block::lines(html, &phrases::facts(entry, None));
    });
}

/// Draws the memory, and below it what of it is live.
fn course(html: &mut Html, entry: &GrowthEntry) {
    let (all, live) = (&entry.course_bytes, &entry.live_course_bytes);
    let Some((floor, high)) = phrases::axis(&[all, live]) else {
        return;
    };
    let last = all.len().saturating_sub(1).max(1) as f64;
    let times: Vec<Span> =
        (0..all.len()).map(|at| entry.course_s.times(at as f64 / last)).collect();
    html.within(Tag::of("figure", "course"), |html| {
        html.within(Tag::of("p", "axis"), |html| {
            html.tagged(tag("span"), &Bytes::from_f64(high).to_string());
            html.tagged(tag("span"), &Bytes::from_f64(floor).to_string());
        });
        let curves = Spark {
            times: &times,
            values: all,
            part: live,
            floor,
            is_part: true,
            ..Spark::default()
        };
        spark::draw(html, &curves);
        html.within(Tag::of("p", "ends"), |html| {
            html.tagged(tag("span"), &format!("{} earlier", entry.course_s));
            let key = |html: &mut Html, class, name| {
                html.within(Tag::of("span", class), |html| {
                    html.raw("<span class=\"swatch\"></span>").text(name);
                });
            };
            key(html, "entry", "memory");
            if !live.is_empty() {
                key(html, "entry of-part", "of it live");
            }
            html.raw("<span>last reading</span>");
        });
    });
}
