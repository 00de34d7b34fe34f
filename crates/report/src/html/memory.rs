//! What RAM, NUMA nodes and swap contained at the worst moment: a bar each, and a table of its parts.

use chart::Colour;
use diagnose::accounting::TermKind;
use units::{Bytes, Ratio};

use super::Scene;
use super::escape::{Html, Tag, tag};
use crate::model::Accounting;

/// Length of a bar in its own units.
const LENGTH: f64 = 1000.0;

/// A part of a bar: name, colour, size.
pub(super) type BarPart<'a> = (&'a str, Colour, Bytes);

pub(super) fn draw(html: &mut Html, scene: &Scene<'_>) {
    let Some(accounting) = &scene.report.accounting else {
        return;
    };
    html.within(Tag::of("figure", "accounting").with("id", "accounting"), |html| {
        html.within(tag("figcaption"), |html| {
            html.tagged(tag("h3"), &heading(scene, accounting));
            if let Some(available) = accounting.available_bytes {
                html.tagged(Tag::of("p", "help"), &format!("{available} available"));
            }
        });
        let parts = parts(accounting);
        bar(html, &parts, accounting.total_bytes);
        table(html, &parts, accounting.total_bytes);
        swap_and_nodes(html, scene, accounting);
    });
}

fn heading(scene: &Scene<'_>, accounting: &Accounting) -> String {
    let total = accounting.total_bytes;
    match scene.clock.moment(accounting.at_s, accounting.at) {
        Some(at) => format!("What {total} of RAM held at {at}"),
        None => format!("What {total} of RAM held"),
    }
}

/// Returns the terms and the remainder from the least reclaimable to free memory, without empty ones.
fn parts(accounting: &Accounting) -> Vec<BarPart<'_>> {
    let rest = accounting.unaccounted_bytes.at_least_zero();
    let name =
        if accounting.broken_down { TermKind::Unaccounted.label() } else { "not broken down" };
    let named = accounting
        .terms
        .iter()
        .map(|term| (term.kind, (term.label, Colour::from_term(term.kind), term.bytes)));
    let unaccounted = (TermKind::Unaccounted, (name, Colour::Unaccounted, rest));
    let mut all: Vec<_> = named.chain([unaccounted]).collect();
    all.retain(|(_, (_, _, bytes))| *bytes > Bytes::ZERO);
    all.sort_by_key(|(place, _)| *place);
    all.into_iter().map(|(_, part)| part).collect()
}

/// Draws RAM as one bar; `total` bytes are as wide as the page.
pub(super) fn bar(html: &mut Html, parts: &[BarPart<'_>], total: Bytes) {
    let labels: Vec<String> =
        parts.iter().map(|(name, _, bytes)| format!("{name} {bytes}")).collect();
    let svg = Tag::of("svg", "bar")
        .with("viewBox", "0 0 1000 40")
        .with("preserveAspectRatio", "none")
        .with("role", "img")
        .with("aria-label", &labels.join(", "));
    html.within(svg, |html| {
        let mut from = 0.0;
        for (_, colour, bytes) in parts {
            let length = share(*bytes, total).get() * LENGTH;
            let part = tag("rect")
                .with("fill", &fill(*colour))
                .showing("x", format!("{from:.1}"))
                .showing("width", format!("{length:.1}"));
            html.within(part.with("height", "40"), |_| {});
            from += length;
        }
    });
}

fn share(part: Bytes, whole: Bytes) -> Ratio {
    part.ratio_of(whole).unwrap_or_default()
}

fn table(html: &mut Html, parts: &[BarPart<'_>], total: Bytes) {
    html.within(Tag::of("table", "terms"), |html| {
        html.raw("<thead><tr><th scope=\"col\">what</th><th scope=\"col\">size</th><th scope=\"col\">share</th></tr></thead>");
        html.within(tag("tbody"), |html| {
            for (name, colour, bytes) in parts {
                html.within(tag("tr"), |html| {
                    html.within(tag("th").with("scope", "row"), |html| {
                        key(html, *colour);
                        html.text(name);
                    });
                    html.tagged(tag("td"), &bytes.to_string());
                    html.tagged(tag("td"), &share(*bytes, total).to_string());
                });
            }
        });
    });
}

/// Returns a colour's name in the page's style.
pub(super) fn fill(colour: Colour) -> String {
    format!("var(--{})", colour.name().replace('_', "-"))
}

/// Draws a patch of a colour.
pub(super) fn key(html: &mut Html, colour: Colour) {
    let svg = Tag::of("svg", "key").with("viewBox", "0 0 10 10").with("aria-hidden", "true");
    html.within(svg, |html| {
        let patch = tag("rect").with("fill", &fill(colour));
        html.within(patch.with("width", "10").with("height", "10"), |_| {});
    });
}

fn swap_and_nodes(html: &mut Html, scene: &Scene<'_>, accounting: &Accounting) {
    html.within(Tag::of("ul", "places"), |html| {
        for node in &accounting.nodes {
            let (free, total) = (node.free_bytes, node.total_bytes);
            html.tagged(tag("li"), &format!("node {}: {free} of {total} free", node.node));
        }
        if let Some(swap) = &accounting.swap {
            let (used, total) = (swap.used_bytes, swap.total_bytes);
            html.tagged(tag("li"), &format!("swap: {used} of {total} used"));
        } else if scene.report.host.swap_bytes == Some(Bytes::ZERO) {
            html.tagged(tag("li"), "no swap");
        }
    });
}
