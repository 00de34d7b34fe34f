//! How much more fits: the answer, the terms it rests on, the bounds, and what else limits; in the words of the terminal.

use super::escape::{Html, Tag, tag};
use super::icon;
use super::page::section;
use crate::clock::Clock;
use crate::model::Level;
use crate::model::headroom::{FitAnswer, HeadroomReport};
use crate::said::headroom::{self as said, Line, TermLine};

pub(super) fn draw(html: &mut Html, report: &HeadroomReport, clock: &Clock<'_>) {
    section(html, ("headroom", "headroom-heading"), "Headroom", |html| {
        answer(html, report);
        lines(html, &said::first(report, clock));
        if let Some(terms) = &report.terms {
            html.tagged(tag("h3"), said::TERMS);
            draw_terms(html, &said::terms(terms));
        }
        lines(html, &said::further(report, clock));
        for (heading, more) in [
            (said::OTHER_LIMITS, said::other_limits(report)),
            (said::NOT_KNOWN, said::unknown(report)),
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
    html.within(
        Tag::standing("div", "fit", icon::class_of_level(level)),
        |html| {
            icon::of_level(html, level);
            html.tagged(Tag::of("p", "level"), said::word(report.answer));
            html.tagged(Tag::of("p", "headline"), &report.headline);
        },
    );
}

pub(super) fn lines(html: &mut Html, lines: &[Line]) {
    html.within(Tag::of("dl", "lines"), |html| {
        for line in lines {
            html.tagged(tag("dt"), line.label);
            html.tagged(tag("dd"), &line.text);
        }
    });
}

fn draw_terms(html: &mut Html, terms: &[TermLine]) {
    html.within(Tag::of("table", "room-terms"), |html| {
        html.raw("<thead><tr><th scope=\"col\">term</th><th scope=\"col\">size</th><th scope=\"col\">what it rests on</th></tr></thead>");
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
