//! Zones: `/proc/zoneinfo` and `/proc/buddyinfo`.

use timeline::EntityRow;
use timeline::signals::{
    BUDDYINFO, ZONE_BLOCKS, ZONE_BOOST, ZONE_FREE, ZONE_FREE_CMA, ZONE_HIGH, ZONE_LOW,
    ZONE_MANAGED, ZONE_MIN, ZONE_PCP, ZONE_PRESENT, ZONE_PROTECTION, ZONE_SPANNED, ZONEINFO,
};
use units::Count;

use super::{Texts, leading, push};

/// Writes a zone; its key is `NODE/ZONE`.
pub(super) fn write(zone: &EntityRow, texts: &mut Texts) {
    let Some((node, name)) = zone.key.split_once('/') else {
        return;
    };
    let head = format!("Node {node}, zone {name:>8}");
    let block = block(zone);
    if !block.is_empty() {
        push(texts, ZONEINFO, format_args!("{head}\n  pages {}", block.trim_start()));
    }
    let blocks = ZONE_BLOCKS.map(|order| zone.row.get(order).map(Count::get));
    let blocks = leading(blocks);
    if !blocks.is_empty() {
        push(texts, BUDDYINFO, format_args!("{head} {blocks}\n"));
    }
}

/// Writes a line for each reading, in the kernel's format.
fn block(zone: &EntityRow) -> String {
    let mut text = String::new();
    for signal in [
        ZONE_FREE,
        ZONE_BOOST,
        ZONE_MIN,
        ZONE_LOW,
        ZONE_HIGH,
        ZONE_SPANNED,
        ZONE_PRESENT,
        ZONE_MANAGED,
    ] {
        if let Some(pages) = zone.row.get(signal) {
            text.push_str(&format!("        {:<8} {}\n", signal.def().field, pages.get()));
        }
    }
    // Readings are the largest of a list, and the sum of per-CPU lists.
    if let Some(pages) = zone.row.get(ZONE_PROTECTION) {
        text.push_str(&format!("        protection: ({})\n", pages.get()));
    }
    if let Some(pages) = zone.row.get(ZONE_FREE_CMA) {
        text.push_str(&format!("      nr_free_cma  {}\n", pages.get()));
    }
    if let Some(pages) = zone.row.get(ZONE_PCP) {
        let pages = pages.get();
        text.push_str(&format!("  pagesets\n    cpu: 0\n              count: {pages}\n"));
    }
    text
}
