//! Why no zone could serve a request: repeats the allocator's own check with the figures of the report.
//!
//! `free` less what the request may not use must exceed the zone's `min` watermark plus the zone's reserve against
//! requests that could use a higher zone; a large request also needs a free block of its size (mm/page_alloc.c,
//! __zone_watermark_ok).

use timeline::kernel_report::{FreeBlocks, ZoneReport};
use timeline::{KernelReport, facts::KernelVersion};
use units::{Bytes, PageSize};

use super::request::{Asked, ZoneType};

/// What prevented a zone from serving the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hurdle {
    /// The zone is higher than the request may use.
    TooHigh,
    /// The request may not use this node.
    OtherNode,
    /// Free memory is below the watermark.
    BelowWatermark,
    /// Enough is free, but it belongs to CMA and the request is not movable.
    CmaOnly,
    /// Free memory is above the watermark, but reserved for requests that cannot use a higher zone.
    Reserved,
    /// Enough is free, but not in one block.
    NoBlock,
    /// Nothing, by the time of the report.
    Nothing,
}

/// A zone at the time of the request.
#[derive(Debug, Clone)]
pub(crate) struct Checked<'a> {
    pub(crate) zone: &'a ZoneReport,
    /// What prevented it from serving the request.
    pub(crate) hurdle: Hurdle,
    /// Free memory that the request may use.
    pub(crate) usable: Bytes,
    /// The watermark for this request.
    pub(crate) watermark: Bytes,
    /// The zone's reserve against this request.
    pub(crate) reserve: Bytes,
}

impl Checked<'_> {
    /// Whether the request may use this zone.
    pub(crate) fn is_eligible(&self) -> bool {
        !matches!(self.hurdle, Hurdle::TooHigh | Hurdle::OtherNode)
    }

    /// Room above the `high` watermark: free memory if it is 1 % of the zone, plus file pages if they are 10 %.
    pub(crate) fn room(&self) -> Bytes {
        let free = self.zone.free.saturating_sub(self.zone.high);
        let hundredth = Bytes::new(self.zone.managed.get() / 100);
        let tenth = Bytes::new(self.zone.managed.get() / 10);
        let file = if self.zone.file >= tenth { self.zone.file } else { Bytes::ZERO };
        let free = if free >= hundredth { free } else { Bytes::ZERO };
        free + file
    }

    /// A line about the zone: what is free, and why that was not enough.
    pub(crate) fn line(&self, asked: &Asked, page: Option<PageSize>, with_node: bool) -> String {
        let zone = self.zone;
        let node = if with_node { format!("node {} ", zone.node) } else { String::new() };
        let why = match self.hurdle {
            Hurdle::TooHigh => "out of reach of this request".to_owned(),
            Hurdle::OtherNode => "on a node that this request may not use".to_owned(),
            Hurdle::BelowWatermark if self.usable == self.watermark => {
                format!("at its watermark of {}", self.watermark)
            }
            Hurdle::BelowWatermark => format!(
                "{} below its watermark of {}",
                self.watermark.saturating_sub(self.usable),
                self.watermark
            ),
            Hurdle::CmaOnly => {
                format!("but {} of it is CMA's, for movable memory", zone.free_cma)
            }
            Hurdle::Reserved => {
                format!("but {} are kept for requests that have no higher zone", self.reserve)
            }
            Hurdle::NoBlock => format!("but not {} in one piece", asked.size(page)),
            Hurdle::Nothing => {
                format!("above its watermark of {} by then", self.watermark + self.reserve)
            }
        };
        format!("{node}{}: {} free, {why}", zone.name, zone.free)
    }
}

/// Checks each zone at the time of the request; empty where the report shows no zones or no request.
pub(super) fn replay<'a>(report: &'a KernelReport, asked: Option<&Asked>) -> Vec<Checked<'a>> {
    let Some(asked) = asked else {
        return Vec::new();
    };
    let nodes = Nodes::allowed(report);
    let strict = match super::kernel(report) {
        Some(kernel) => kernel < ANY_BLOCK_SINCE,
        None => is_before_types(report),
    };
    let all = &report.zones;
    all.iter()
        .map(|zone| {
            let mut checked = Checked {
                zone,
                hurdle: Hurdle::Nothing,
                usable: usable(zone, asked, report.page_size),
                watermark: watermark(zone, asked),
                reserve: reserve(all, zone, asked.highest),
            };
            checked.hurdle = hurdle(&checked, asked, &nodes, strict, report.page_size);
            checked
        })
        .collect()
}

/// Whether free blocks have no types, which the kernel prints since 3.9.
fn is_before_types(report: &KernelReport) -> bool {
    let mut free = report.zones.iter().flat_map(|zone| &zone.blocks);
    free.clone().any(|blocks| blocks.count > 0)
        && free.all(|blocks| blocks.count == 0 || blocks.types.is_empty())
}

fn hurdle(
    checked: &Checked<'_>,
    asked: &Asked,
    nodes: &Nodes,
    strict: bool,
    page: Option<PageSize>,
) -> Hurdle {
    let zone = checked.zone;
    if !nodes.have(zone.node) {
        return Hurdle::OtherNode;
    }
    if ZoneType::named(&zone.name).is_none_or(|place| place > asked.highest) {
        return Hurdle::TooHigh;
    }
    if checked.usable <= checked.watermark {
        return if !asked.is_movable && checked.usable + zone.free_cma > checked.watermark {
            Hurdle::CmaOnly
        } else {
            Hurdle::BelowWatermark
        };
    }
    if checked.usable <= checked.watermark + checked.reserve {
        return Hurdle::Reserved;
    }
    let in_pieces = match page.filter(|_| strict) {
        Some(page) => is_scattered(checked, asked, page),
        None => has_no_block(zone, asked),
    };
    if asked.order > 0 && in_pieces { Hurdle::NoBlock } else { Hurdle::Nothing }
}

/// Free memory less what this request may not use: all but the first page of its own block, as the check is whether the
/// watermark would still hold with it taken (mm/page_alloc.c, __zone_watermark_unusable_free).
fn usable(zone: &ZoneReport, asked: &Asked, page: Option<PageSize>) -> Bytes {
    let page = page.unwrap_or(PageSize::USUAL).bytes();
    let others = 1_u64.checked_shl(asked.order).unwrap_or(u64::MAX) - 1;
    let block = Bytes::new(page.get().saturating_mul(others));
    let mut usable = zone.free.saturating_sub(block);
    if !(asked.is_atomic() && asked.is_privileged) {
        usable = usable.saturating_sub(zone.reserved_highatomic);
    }
    if !asked.is_movable {
        usable = usable.saturating_sub(zone.free_cma);
    }
    usable
}

/// The watermark: `min`; privileged requests may go down to half of it, and those that cannot sleep a quarter below
/// that.
fn watermark(zone: &ZoneReport, asked: &Asked) -> Bytes {
    let min = zone.min.get();
    match (asked.is_privileged, asked.is_atomic()) {
        (true, true) => Bytes::new(min / 2 - min / 8),
        (true, false) => Bytes::new(min / 2),
        (false, _) => zone.min,
    }
}

/// A zone's reserve against a request that could use `highest`. The list has one entry for each kind of zone that the
/// kernel was built with, and the report does not say which: the first entry that is not zero belongs to the next
/// higher zone that has memory.
fn reserve(all: &[ZoneReport], zone: &ZoneReport, highest: ZoneType) -> Bytes {
    let populated = |place: ZoneType| {
        let same = all.iter().filter(|z| z.node == zone.node && z.managed > Bytes::ZERO);
        same.filter_map(|z| Some((ZoneType::named(&z.name)?, z)))
            .filter(|(p, _)| *p <= place)
            .max_by_key(|(p, _)| *p)
    };
    let last = zone.reserve.last().copied().unwrap_or_default();
    let (Some((top, _)), Some((own, best))) = (populated(ZoneType::Movable), populated(highest))
    else {
        return last;
    };
    if own == top {
        return last;
    }
    if ZoneType::named(&zone.name) == Some(own) {
        return Bytes::ZERO;
    }
    // The best zone for the request has a reserve for the zone above it, from that zone's entry on.
    let above = best.reserve.iter().position(|kept| *kept > Bytes::ZERO);
    above.and_then(|above| zone.reserve.get(above.checked_sub(1)?)).copied().unwrap_or_default()
}

/// Since this kernel a large request needs one block of its size; before, the watermark was checked for each order.
const ANY_BLOCK_SINCE: KernelVersion = KernelVersion { major: 4, minor: 4 };

/// Whether there is no free block of this order or above that the request may have. Unknown counts as there is one.
fn has_no_block(zone: &ZoneReport, asked: &Asked) -> bool {
    let order = usize::try_from(asked.order).unwrap_or(usize::MAX);
    !zone.blocks.is_empty() && !zone.blocks.iter().skip(order).any(|blocks| serves(blocks, asked))
}

/// Whether a free block may serve the request: CMA blocks serve only movable requests, blocks reserved for high-order
/// atomic requests only these, and isolated blocks none.
fn serves(blocks: &FreeBlocks, asked: &Asked) -> bool {
    let fits = |kind: char| match kind {
        'C' => asked.is_movable,
        'H' => asked.is_atomic() && asked.is_privileged,
        'I' => false,
        _ => true,
    };
    blocks.count > 0 && (blocks.types.is_empty() || blocks.types.chars().any(fits))
}

/// The check before 4.4: free memory in blocks of each order and above must exceed the watermark, halved with each
/// order.
fn is_scattered(checked: &Checked<'_>, asked: &Asked, page: PageSize) -> bool {
    let order = usize::try_from(asked.order).unwrap_or(usize::MAX);
    let mut free = checked.usable;
    let mut watermark = checked.watermark.get();
    let mut block = page.bytes().get();
    for blocks in checked.zone.blocks.iter().take(order) {
        free = free.saturating_sub(Bytes::new(blocks.count.saturating_mul(block)));
        watermark /= 2;
        block = block.saturating_mul(2);
        if free.get() <= watermark {
            return true;
        }
    }
    false
}

/// The nodes that a request may use.
pub(super) struct Nodes(Vec<(u32, u32)>);

impl Nodes {
    /// Those that the report says the request was confined to; all where it was not confined.
    pub(super) fn allowed(report: &KernelReport) -> Self {
        Self(report.confined_to().map(ranges).unwrap_or_default())
    }

    fn have(&self, node: u32) -> bool {
        self.0.is_empty() || self.0.iter().any(|(from, to)| (*from..=*to).contains(&node))
    }
}

/// Parses `0-1,4` as ranges; skips what is not a number.
fn ranges(list: &str) -> Vec<(u32, u32)> {
    let parts = list.split(',').take(1024);
    parts
        .filter_map(|part| {
            let (from, to) = part.split_once('-').unwrap_or((part, part));
            Some((from.trim().parse().ok()?, to.trim().parse().ok()?))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oom::testing::{Report, kib};

    fn hurdles(report: &Report) -> Vec<Hurdle> {
        let asked = Asked::from_request(report.0.request.as_ref().unwrap());
        replay(&report.0, asked.as_ref()).iter().map(|zone| zone.hurdle).collect()
    }

    #[test]
    fn what_lower_zones_keep_does_not_count_as_free() {
        let report = Report::of_a_host();
        assert_eq!(hurdles(&report), [Hurdle::Reserved, Hurdle::Reserved, Hurdle::BelowWatermark]);
    }

    #[test]
    fn a_request_that_only_the_low_zone_may_serve_may_use_what_it_keeps() {
        let report = Report::of_a_host().asking(0xcc4, 0);
        assert_eq!(hurdles(&report), [Hurdle::Nothing, Hurdle::Nothing, Hurdle::TooHigh]);
    }

    #[test]
    fn reserves_are_found_whatever_kinds_of_zones_the_kernel_knows() {
        // 32 bit: DMA, Normal, HighMem, Movable.
        let report = Report::default()
            .asking(0xd0, 0)
            .zone("DMA", 3500, 64, 15_900, &[0, 861, 5000, 5000])
            .zone("Normal", 3000, 3700, 880_000, &[0, 0, 33_000, 33_000])
            .zone("HighMem", 900_000, 512, 4_000_000, &[0, 0, 0, 0]);
        let asked = Asked::from_request(report.0.request.as_ref().unwrap());
        let zones = replay(&report.0, asked.as_ref());
        assert_eq!(zones[0].reserve, kib(861 * 4));
        assert_eq!(zones[0].hurdle, Hurdle::Reserved);
        assert_eq!(zones[1].reserve, Bytes::ZERO);
        assert_eq!(zones[2].hurdle, Hurdle::TooHigh);
    }

    #[test]
    fn a_large_request_needs_a_block_of_its_size_and_kind() {
        let roomy = |types: &str| {
            Report::default()
                .asking(0xcc0, 3)
                .zone("Normal", 500_000, 60_000, 8_000_000, &[0; 5])
                .blocks(&[(100_000, "UM"), (10_000, "U"), (0, ""), (3, types), (0, "")])
        };
        assert_eq!(hurdles(&roomy("C")), [Hurdle::NoBlock]);
        assert_eq!(hurdles(&roomy("H")), [Hurdle::NoBlock]);
        assert_eq!(hurdles(&roomy("UM")), [Hurdle::Nothing]);
    }

    #[test]
    fn before_4_4_few_large_blocks_do_not_do() {
        let report = |kernel: &str| {
            Report::default()
                .kernel(kernel)
                .asking(0xd0, 2)
                .zone("Normal", 105_000, 60_000, 8_000_000, &[0; 4])
                .blocks(&[(20_000, ""), (3000, ""), (60, ""), (0, "")])
        };
        assert_eq!(hurdles(&report("3.10.0-514.el7")), [Hurdle::NoBlock]);
        assert_eq!(hurdles(&report("4.18.0-80.el8")), [Hurdle::Nothing]);
    }

    #[test]
    fn atomic_requests_may_go_deeper() {
        let report = |gfp| {
            Report::default().asking(gfp, 0).zone("Normal", 30_000, 60_000, 8_000_000, &[0; 5])
        };
        assert_eq!(hurdles(&report(0xcc0)), [Hurdle::BelowWatermark]);
        assert_eq!(hurdles(&report(0xa20)), [Hurdle::Nothing]);
    }

    #[test]
    fn cma_serves_movable_memory_only() {
        let report = |gfp| {
            let mut report =
                Report::default().asking(gfp, 0).zone("DMA", 300_000, 8_000, 900_000, &[0; 4]);
            report.0.zones[0].free_cma = kib(296_000);
            report
        };
        assert_eq!(hurdles(&report(0xcc0)), [Hurdle::CmaOnly]);
        assert_eq!(hurdles(&report(0x100cca)), [Hurdle::Nothing]);
    }

    #[test]
    fn lists_of_nodes_are_read_however_hostile() {
        assert_eq!(ranges("0-1,4"), [(0, 1), (4, 4)]);
        assert_eq!(ranges("x,-,99999999999999,3"), [(3, 3)]);
    }
}
