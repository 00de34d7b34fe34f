//! Resident memory by how much of its page is live: the bar of pages without a live byte is the waste.

use units::Bytes;

use super::cells;
use crate::html::escape::{Html, Tag, tag};
use crate::model::explain::HeapReport;
use crate::phrases::heap_cells::{
    CellFill, LIVE_CLASS_WORDS, LIVE_CLASSES, live_share_parts, share,
};

/// Length of the longest bar, in the drawing's units.
pub(super) const BAR_WIDTH: u64 = 768;
/// From a bar to the next, and a bar's height.
pub(super) const BAR_STEP: usize = 22;
pub(super) const BAR_HEIGHT: usize = 15;

/// A bar: its name, its pieces, its size and its share in words.
pub(super) struct LiveShareBar {
    pub(super) name: String,
    pub(super) pieces: Vec<(CellFill, Bytes)>,
    pub(super) bytes: Bytes,
    pub(super) size: String,
    pub(super) share: String,
}

/// Returns the bars; the first is divided by who may return its pages.
pub(super) fn bars(heap: &HeapReport) -> Vec<LiveShareBar> {
    let all = heap.resident_by_live_share_bytes;
    let whole = all.into_iter().sum();
    let bar = |(class, bytes): (usize, Bytes)| LiveShareBar {
        name: match class {
            0 => "no live byte".to_owned(),
            class if class + 1 == LIVE_CLASSES => "fully live".to_owned(),
            class => format!("{} live", LIVE_CLASS_WORDS[class]),
        },
        pieces: live_share_parts(heap, class),
        bytes,
        size: bytes.to_string(),
        share: share(bytes, whole),
    };
    all.into_iter().enumerate().map(bar).collect()
}

/// Draws a bar at `(0, 0)`; `most` bytes have the full length.
pub(super) fn bar(html: &mut Html, bar: &LiveShareBar, most: Bytes) {
    let length = |bytes: Bytes| {
        let exact = u128::from(bytes.get()) * u128::from(BAR_WIDTH) / u128::from(most.get().max(1));
        u64::try_from(exact).unwrap_or(BAR_WIDTH).min(BAR_WIDTH)
    };
    let mut from = 0;
    for (fill, bytes) in bar.pieces.iter().filter(|(_, bytes)| *bytes > Bytes::ZERO) {
        let long = length(*bytes).max(1);
        let piece = Tag::of("rect", cells::class(*fill))
            .showing("x", from)
            .showing("width", long)
            .showing("height", BAR_HEIGHT);
        html.open(&piece).raw("</rect>");
        from += long;
    }
}

/// Returns the size of the largest bar.
pub(super) fn most(bars: &[LiveShareBar]) -> Bytes {
    bars.iter().map(|bar| bar.bytes).max().unwrap_or_default()
}

/// Draws the bars as a block of a page.
pub(crate) fn draw(html: &mut Html, heap: &HeapReport) {
    let bars = bars(heap);
    let most = most(&bars);
    html.within(Tag::of("table", "live-shares"), |html| {
        html.raw("<caption>Resident pages by how much of each is live or cached</caption><tbody>");
        for one in &bars {
            html.within(tag("tr"), |html| {
                html.tagged(tag("th").with("scope", "row"), &one.name);
                html.within(Tag::of("td", "of-bar"), |html| {
                    let svg = tag("svg")
                        .with("class", "heap-bar")
                        .showing("viewBox", format!("0 0 {BAR_WIDTH} {BAR_HEIGHT}"))
                        .with("preserveAspectRatio", "none")
                        .with("aria-hidden", "true");
                    html.within(svg, |html| bar(html, one, most));
                });
                html.tagged(Tag::of("td", "size"), &one.size);
                html.tagged(Tag::of("td", "size"), &one.share);
            });
        }
        html.raw("</tbody>");
    });
}
