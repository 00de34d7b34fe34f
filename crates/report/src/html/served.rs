//! What a server adds to a page that it sends: the range of time and how to choose another, a link to each incident, and
//! what the server costs.

use jiff::{SignedDuration, Timestamp};

use super::document::{self, DocumentHead};
use super::escape::{Html, Tag, tag};
use super::{DataAddress, page};
use crate::model::Finding;

/// Style of the parts here, added to that of all pages.
pub(super) const STYLE: &str = include_str!("../../assets/served.css");
/// The page's script with what only a server can answer, made in `web/`.
pub(super) const SCRIPT: &str = include_str!("../../assets/served.js");

/// What a server adds to a page.
#[derive(Debug, Clone, Copy, Default)]
pub struct ServedPage<'a> {
    /// Where the script gets the data of the charts.
    pub data: DataAddress<'a>,
    /// Where it gets the curves of a part in full detail, an address without a query; `None`: there are none finer.
    pub closer: Option<&'a str>,
    /// Where it gets the page's text as it is now; `None`: it stays.
    pub text: Option<&'a str>,
    /// Where events say that there are newer data; `None`: it asks from time to time.
    pub changes: Option<&'a str>,
    /// Ranges to choose from; empty: none.
    pub ranges: &'a [RangeLink],
    /// The start of the range as it was typed; may be empty.
    pub since: &'a str,
    /// Its end; may be empty.
    pub until: &'a str,
    /// What else was asked, to be asked of another range too: name and value.
    pub kept: &'a [(&'static str, String)],
    /// Where the data come from and what the server costs, in sentences.
    pub says: &'a str,
}

/// A range to choose.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RangeLink {
    /// Its name: `1 h`.
    pub name: &'static str,
    /// Where it leads, relative to the page.
    pub address: String,
    /// Whether the page shows it.
    pub is_shown: bool,
}

/// Returns a short page of a server: why it does not answer, or how to log in.
pub fn served_notice(title: &str, body: impl FnOnce(&mut Html)) -> String {
    let head = DocumentHead { title, style: STYLE, script: None, is_served: true };
    document::draw(&head, |html| {
        html.within(Tag::of("header", "host-line"), |html| {
            html.tagged(Tag::of("span", "brand"), "memtide");
        });
        html.within(Tag::of("main", "notice-page"), body);
    })
}

/// Draws the bar in which a range is chosen: links and a form, which work without a script and by keyboard.
pub(super) fn bar(html: &mut Html, served: &ServedPage<'_>) {
    if served.ranges.is_empty() {
        return;
    }
    html.raw("\n");
    html.within(Tag::of("nav", "ranges").with("aria-label", "Range of time"), |html| {
        html.within(Tag::of("span", "presets"), |html| {
            for range in served.ranges {
                let mut link = tag("a").with_own("href", &range.address);
                if range.is_shown {
                    link = link.with("aria-current", "true");
                }
                html.tagged(link, range.name);
            }
        });
        if served.data.every.is_some() {
            let live = Tag::of("span", "live").with("title", "The page follows what is recorded");
            html.tagged(live, "live");
        }
        html.within(tag("form").with("method", "get"), |html| {
            for (name, value) in served.kept {
                html.open(
                    &tag("input").with("type", "hidden").with("name", name).with("value", value),
                );
            }
            field(html, "since", "From", served.since, "2h ago");
            field(html, "until", "to", served.until, "now");
            html.raw("<button type=\"submit\">Show</button>");
        });
    });
}

fn field(
    html: &mut Html,
    name: &'static str,
    label: &'static str,
    value: &str,
    example: &'static str,
) {
    html.within(tag("label"), |html| {
        html.text(label);
        let input = tag("input").with("name", name).with("value", value);
        let input = input.with("placeholder", example).with("autocomplete", "off");
        html.open(&input.with("spellcheck", "false").with("size", "20"));
    });
}

/// What of the time around an incident is shown: half of its length on either side, and five minutes at least.
const AROUND_MIN: SignedDuration = SignedDuration::from_mins(5);

/// Draws a link to the page of an incident alone, by the clock, so that it leads there also tomorrow; nothing without a clock.
pub(super) fn link_to_incident(html: &mut Html, finding: &Finding) {
    let (Some(first), Some(last)) = (finding.stretches.first(), finding.stretches.last()) else {
        return;
    };
    let (Some(from), Some(to)) = (first.from, last.to) else { return };
    let around = (to.duration_since(from) / 2).max(AROUND_MIN);
    let (Ok(since), Ok(until)) = (from.checked_sub(around), to.checked_add(around)) else {
        return;
    };
    let address = format!("?since={}&until={}", in_seconds(since), in_seconds(until));
    html.raw(" ");
    html.tagged(Tag::of("a", "own").with_own("href", &address), "own page");
}

/// As people write it in a link: `2026-11-21T14:00:05Z`.
fn in_seconds(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

pub(super) fn footer(html: &mut Html, served: &ServedPage<'_>) {
    page::signature(html, served.says);
}
