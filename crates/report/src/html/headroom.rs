//! How much more fits: the answer, its terms, the bounds, and other limits, in the words of the terminal.

use super::block::{lines, section};
use super::escape::{Html, Tag, tag};
use super::icon;
use crate::clock::ReportClock;
use crate::model::Level;
use crate::model::headroom::{FitAnswer, HeadroomReport};
use crate::phrases::headroom::{self as phrases, TermLine};

pub(super) fn draw(html: &mut Html, report: &HeadroomReport, clock: &ReportClock<'_>) {
    section(html, ("headroom", "headroom-heading"), "Headroom", |html| {
        answer(html, report);
        lines(html, &phrases::first(report, clock));
        if let Some(terms) = &report.terms {
            html.tagged(tag("h3"), phrases::TERMS);
            draw_terms(html, &phrases::terms(terms));
        }
        lines(html, &phrases::further(report, clock));
        for (heading, more) in [
            (phrases::OTHER_LIMITS, phrases::other_limits(report)),
            (phrases::NOT_KNOWN, phrases::unknown(report)),
        ] {
            if !more.is_empty() {
                html.tagged(tag("h3"), heading);
                lines(html, &more);
            }
        }
    });
}

pub(super) fn answer(html: &mut Html, report: &HeadroomReport) {
    let level = match report.answer {
        FitAnswer::Fits => Level::Ok,
        FitAnswer::Tight => Level::Warning,
        FitAnswer::DoesNotFit => Level::Critical,
        FitAnswer::FitsSoFar | FitAnswer::Unknown => Level::Unknown,
    };
    html.within(Tag::standing("div", "fit", icon::class_of_level(level)), |html| {
        icon::of_level(html, level);
        html.tagged(Tag::of("p", "level"), phrases::word(report.answer));
        html.tagged(Tag::of("p", "headline"), &report.headline);
    });
}

fn draw_terms(html: &mut Html, terms: &[TermLine]) {
    html.within(Tag::of("table", "room-terms"), |html| {
        html.raw(
            "<thead><tr><th scope=\"col\">term</th><th scope=\"col\">size</th><th \
             scope=\"col\">what it rests on</th></tr></thead>",
        );
        html.within(tag("tbody"), |html| {
            for term in terms {
                html.within(tag("tr"), |html| {
                    html.within(tag("th").with("scope", "row"), |html| {
                        html.tagged(Tag::of("span", "sign"), term.sign);
                        html.raw(" ").text(term.label);
                    });
                    html.tagged(Tag::of("td", "size"), &term.size);
                    html.tagged(tag("td"), &term.text);
                });
            }
        });
    });
}
