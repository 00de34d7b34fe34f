//! A process's memory by owner as nested bars: each part below its whole, where its bytes are in the whole's bar.

use units::{Bytes, Count};

use super::{bar, panel, thousandths};
use crate::html::escape::{Html, Tag, tag};
use crate::model::explain::{ExplainReport, MemoryPart};
use crate::phrases::explain as phrases;

/// At most this many parts of a part; the rest is one line.
const PARTS_MAX: usize = 12;
/// Below the first level, parts with less than one in this many of all bytes are not shown one by one.
const SHOWN_FROM: u64 = 200;
/// At most this many levels: a hostile tree must not exhaust the stack.
const DEEPEST: usize = 5;

pub(super) fn draw(html: &mut Html, report: &ExplainReport) {
    let root = &report.memory;
    let help = "By owner; parts add up to RSS. PSS divides shared pages by their users.";
    panel(html, "explain-memory", "Where is it?", help, |html| {
        html.within(Tag::of("table", "tree"), |html| {
            html.raw(
                "<thead><tr><th scope=\"col\">owner</th><th scope=\"col\" \
                 class=\"of-bar\"></th><th scope=\"col\">RSS</th><th scope=\"col\">PSS</th><th \
                 scope=\"col\">swap</th></tr></thead>",
            );
            html.within(tag("tbody"), |html| {
                let place = TreePlace { whole: root.rss_bytes, from: Bytes::ZERO, depth: 0 };
                row(html, root, place);
                parts(html, root, place);
            });
        });
    });
}

/// Where a part is: its depth, and where its bytes begin in the whole.
#[derive(Clone, Copy)]
struct TreePlace {
    whole: Bytes,
    from: Bytes,
    depth: usize,
}

fn parts(html: &mut Html, part: &MemoryPart, place: TreePlace) {
    if place.depth == DEEPEST {
        return;
    }
    let mut from = place.from;
    let below = |from: Bytes| TreePlace { from, depth: place.depth + 1, ..place };
    let is_shown = |child: &&MemoryPart| {
        let bytes = child.rss_bytes.max(child.swap_bytes).max(child.hugetlb_bytes);
        let least = if place.depth == 0 { 1 } else { place.whole.get() / SHOWN_FROM };
        bytes.get() >= least.max(1)
    };
    let len = part.parts.iter().take(PARTS_MAX).take_while(is_shown).count();
    if len == 0 {
        return;
    }
    let (shown, rest) = part.parts.split_at(len);
    for child in shown {
        row(html, child, below(from));
        parts(html, child, below(from));
        from += child.rss_bytes;
    }
    let is_nothing = |part: &MemoryPart| part.rss_bytes + part.swap_bytes == Bytes::ZERO;
    if !rest.iter().all(is_nothing) {
        let sum = |of: fn(&MemoryPart) -> Bytes| rest.iter().map(of).sum();
        let others = MemoryPart {
            label: format!("{} more", Count::new(rest.len() as u64)),
            rss_bytes: sum(|part| part.rss_bytes),
            pss_bytes: sum(|part| part.pss_bytes),
            swap_bytes: sum(|part| part.swap_bytes),
            certainty: "certain",
            ..MemoryPart::default()
        };
        row(html, &others, below(from));
    }
}

fn row(html: &mut Html, part: &MemoryPart, place: TreePlace) {
    let class = ["at-0", "at-1", "at-2", "at-3", "at-4", "at-5"][place.depth.min(DEEPEST)];
    html.within(Tag::of("tr", class), |html| {
        let mut head = tag("th").with("scope", "row");
        if !part.recognised_by.is_empty() {
            head = head.with("title", &part.recognised_by);
        }
        html.within(head, |html| {
            html.tagged(Tag::of("span", "name"), &part.label);
            // Of what is certain, the pointer shows why.
            if part.certainty != "certain" && !part.recognised_by.is_empty() {
                let by = phrases::recognised(part);
                html.raw(" ").tagged(Tag::of("span", "aside by"), &by);
            }
        });
        html.within(Tag::of("td", "of-bar"), |html| {
            let from = thousandths(place.from, place.whole);
            let length = thousandths(part.rss_bytes, place.whole).min(1000 - from);
            let length = if part.rss_bytes > Bytes::ZERO { length.max(1) } else { 0 };
            bar(html, &[("ground", 0, 1000), ("bar-part", from, length)]);
        });
        html.tagged(Tag::of("td", "size"), &part.rss_bytes.to_string());
        html.tagged(Tag::of("td", "size"), &part.pss_bytes.to_string());
        html.tagged(Tag::of("td", "size"), &in_swap(part));
    });
}

/// Swap, or pages of hugetlbfs, which are in neither RSS nor swap.
fn in_swap(part: &MemoryPart) -> String {
    match (part.swap_bytes, part.hugetlb_bytes) {
        (Bytes::ZERO, Bytes::ZERO) => String::new(),
        (Bytes::ZERO, huge) => format!("hugetlb {huge}"),
        (swap, _) => swap.to_string(),
    }
}
