//! A process's memory as a tree: by owner, and the malloc heap by what it is used for.

use units::{Bytes, Count, Ratio};

use crate::model::explain::{ExplainReport, HeapReport, MemoryPart};
use crate::phrases::explain::{file_name, of_rss, recognised, rss};
use crate::text::ansi::Style;
use crate::text::page::{TextPage, piece};
use crate::text::tree::{self, TreeNode};
use crate::text::{Detail, Screen};

/// In a brief answer, parts below this share of the process are counted together.
const SHARE_MIN: Ratio = Ratio::from_percent(1.0);
/// Parts below this level are named in a note: code and data of a library.
const DEPTH: usize = 1;

pub(super) fn draw(page: &mut TextPage, report: &ExplainReport, screen: &Screen) {
    let sizes = &report.sizes;
    let pss = format!("  PSS {}", sizes.pss_bytes);
    page.line(&[piece(Style::Strong, rss(report)), piece(Style::Faint, pss)]);
    let mut parts = parts(&report.memory, 0, report, screen.detail);
    if sizes.swap_bytes > Bytes::ZERO {
        parts.push(TreeNode {
            label: "in swap".to_owned(),
            size: sizes.swap_bytes.to_string(),
            note: "on top of RSS".to_owned(),
            ..TreeNode::default()
        });
    }
    tree::draw(page, &parts, screen);
}

/// Returns the parts of a part; in brief without their own, and small ones as one.
fn parts(part: &MemoryPart, depth: usize, report: &ExplainReport, detail: Detail) -> Vec<TreeNode> {
    let is_shown = |one: &&MemoryPart| {
        let of_rss = (one.rss_bytes + one.swap_bytes).ratio_of(report.sizes.rss_bytes);
        detail == Detail::All || of_rss.is_none_or(|share| share >= SHARE_MIN)
    };
    let (shown, small): (Vec<&MemoryPart>, Vec<&MemoryPart>) =
        part.parts.iter().partition(is_shown);
    let mut nodes: Vec<TreeNode> =
        shown.iter().map(|one| node(one, depth, report, detail)).collect();
    if !small.is_empty() {
        let bytes: Bytes = small.iter().map(|one| one.rss_bytes).sum();
        let names = small.iter().take(3).map(|one| one.label.as_str());
        nodes.push(TreeNode {
            label: "smaller parts".to_owned(),
            size: bytes.to_string(),
            share: of_rss(bytes, report),
            note: names.collect::<Vec<_>>().join(", "),
            ..TreeNode::default()
        });
    }
    nodes
}

fn node(part: &MemoryPart, depth: usize, report: &ExplainReport, detail: Detail) -> TreeNode {
    let heap = report.heap.as_ref().filter(|_| part.is_malloc_heap);
    let is_divided = detail == Detail::All && depth < DEPTH;
    let swapped = match part.swap_bytes {
        Bytes::ZERO => String::new(),
        bytes => format!("; {bytes} in swap"),
    };
    TreeNode {
        label: file_name(&part.label).to_owned(),
        size: part.rss_bytes.to_string(),
        share: of_rss(part.rss_bytes, report),
        note: match heap {
            Some(heap) => summary(heap) + &swapped,
            None if is_divided => recognised(part) + &swapped,
            None => note(part) + &swapped,
        },
        parts: match heap {
            Some(heap) => uses(part, heap),
            None if is_divided => parts(part, depth + 1, report, detail),
            None => Vec::new(),
        },
    }
}

/// Names the largest parts of a part.
fn note(part: &MemoryPart) -> String {
    if part.parts.is_empty() {
        return recognised(part);
    }
    if let [only] = part.parts.as_slice() {
        let mappings = Count::new(only.mappings).named("mapping", "mappings");
        return format!("{} ({mappings})", file_name(&only.label));
    }
    let largest =
        part.parts.iter().take(3).map(|one| format!("{} {}", file_name(&one.label), one.rss_bytes));
    largest.collect::<Vec<_>>().join(", ")
}

fn summary(heap: &HeapReport) -> String {
    let arenas = Count::new(heap.arenas.len() as u64).named("arena", "arenas");
    match heap.mmapped_chunks {
        0 => arenas,
        large => {
            let large = Count::new(large).named("large chunk", "large chunks");
            format!("{arenas}, {large} with a mapping each")
        }
    }
}

/// The resident heap by use: adds up to the part.
fn uses(part: &MemoryPart, heap: &HeapReport) -> Vec<TreeNode> {
    let total = &heap.total;
    let live = heap.live_resident_bytes();
    let chunks = Count::new(total.live_chunks + heap.mmapped_chunks).named("chunk", "chunks");
    let free = total.free_resident_bytes;
    let cached = heap.cached_resident_bytes();
    let rest = part.rss_bytes.saturating_sub(live + free + cached);
    let use_of = |label: &str, bytes: Bytes, note: String| TreeNode {
        label: label.to_owned(),
        size: bytes.to_string(),
        note,
        ..TreeNode::default()
    };
    let free_parts = [
        ("returnable", total.returnable_bytes, "malloc_trim(0) returns it"),
        ("thread arenas' tops", total.thread_top_bytes, "malloc_trim does not return them"),
        ("pinned", total.pinned_bytes, "on pages with live neighbours"),
    ];
    let mut free = use_of("free", free, String::new());
    let largest = free_parts.into_iter().filter(|(_, bytes, _)| *bytes > Bytes::ZERO);
    free.parts =
        largest.map(|(label, bytes, note)| use_of(label, bytes, note.to_owned())).collect();
    let uncertain = match heap.uncertain_bytes {
        Bytes::ZERO => String::new(),
        bytes => format!(", ±{bytes}"),
    };
    let rows = [
        ("thread caches", cached, "free, kept for the next allocation"),
        ("malloc's own", rest, "headers, and what changed meanwhile"),
    ];
    let mut uses = Vec::new();
    if live > Bytes::ZERO {
        uses.push(use_of("live", live, chunks + &uncertain));
    }
    if total.free_resident_bytes > Bytes::ZERO {
        uses.push(free);
    }
    let present = rows.into_iter().filter(|(_, bytes, _)| *bytes > Bytes::ZERO);
    uses.extend(present.map(|(label, bytes, note)| use_of(label, bytes, note.to_owned())));
    uses
}
