//! The floor: the level of free memory while the kernel reclaims.
//!
//! kswapd starts when a zone falls below its low watermark and stops at its high watermark; a zone also keeps a reserve
//! from allocations that could use a higher zone (`protection`). So under load free memory rests between Σ min(managed,
//! low + protection) and Σ min(managed, high + protection). The second sum is the kernel's `totalreserve_pages`, which
//! MemAvailable leaves out (mm/page_alloc.c, calculate_totalreserve_pages).

use timeline::{
    Entity, Gauge, Signal, Track, facts,
    signals::{ZONE_HIGH, ZONE_LOW, ZONE_MANAGED, ZONE_PROTECTION, ZONEINFO},
};
use units::{Bytes, Pages, Quantity, Ratio};

use crate::evidence::{Evidence, Missing, Need};
use crate::trigger::{Reading, computed, gauge, over, ram};

/// The floor over time. It changes with watermark boosts and memory hotplug.
#[derive(Debug, Clone)]
pub struct Floor {
    /// Where kswapd starts.
    pub low: Track<Bytes>,
    /// Where kswapd stops.
    pub high: Track<Bytes>,
}

impl Floor {
    /// Free memory up to this multiple of the floor's upper edge is "on the floor". An engineering choice: kswapd
    /// overshoots its high watermark a little, and above that it does not keep free memory down.
    pub const NEAR: Ratio = Ratio::new(1.15);
    /// Free memory up to this multiple of the floor's upper edge may still be held there: a busy kswapd overshoots its high
    /// watermark. An engineering choice, wider than [`Self::NEAR`], which suits an idle one.
    pub const REACH: f64 = 1.3;
    /// Free memory rests a little above the edge after kswapd has stopped: 0.2 % of RAM in a labelled capture.
    pub(crate) const ABOVE: Ratio = Ratio::from_percent(1.0);

    /// Returns the floor from the zones' watermarks of each sample.
    pub(crate) fn measured(cx: &Evidence<'_>) -> Result<Self, Missing> {
        Ok(Self { low: edge(ZONE_LOW).track(cx)?, high: edge(ZONE_HIGH).track(cx)? })
    }

    /// The level at which kswapd stops, of the host or of a NUMA node.
    pub(crate) fn high() -> Reading<Bytes> {
        edge(ZONE_HIGH)
    }

    /// The level up to which free memory is on the floor, also on a calm host.
    pub(crate) fn rests() -> Reading<Bytes> {
        let near = Self::high().share(Self::NEAR);
        let above = Self::high().plus([ram().share(Self::ABOVE)]);
        let predicted = computed("floor of such a host", |cx| {
            let ram = cx.ram()?;
            let edge = Self::rests_below(Self::expected(cx, ram).1, ram);
            Ok(cx.timeline.constant(edge).cast())
        });
        near.max(above).or(predicted)
    }

    /// Returns the floor of a NUMA node, from the watermarks of its zones.
    pub(crate) fn of_node(cx: &Evidence<'_>, node: &str) -> Result<Self, Missing> {
        let lacks = || Missing::because(vec![ZONE_HIGH.def().name], Need::File(ZONEINFO));
        let node = cx.timeline.entity(Entity::Node, node).ok_or_else(lacks)?;
        Ok(Self {
            low: edge(ZONE_LOW).track_of(cx, node)?,
            high: edge(ZONE_HIGH).track_of(cx, node)?,
        })
    }

    /// Returns the level up to which free memory is on a floor with this upper edge, also on a calm host.
    pub(crate) fn rests_below(edge: Bytes, ram: Bytes) -> Bytes {
        edge.share(Self::NEAR).max(edge + ram.share(Self::ABOVE))
    }

    /// Predicts the floor for a source without zone data: that of an ordinary machine of this size, with the source's
    /// own vm.min_free_kbytes if it has that.
    pub(crate) fn expected(cx: &Evidence<'_>, ram: Bytes) -> (Bytes, Bytes) {
        match cx.facts.number(facts::MIN_FREE) {
            Some(kib) => {
                let min_free = Bytes::new(kib.saturating_mul(1024)).min(ram);
                Self::with_min_free(ram, min_free.as_f64())
            }
            None => Self::predicted(ram),
        }
    }

    /// Returns the low and high edge on an ordinary x86-64 machine of this size (one node, 4 KiB pages, default
    /// tunables).
    pub fn predicted(ram: Bytes) -> (Bytes, Bytes) {
        // khugepaged raises min_free_kbytes to 22,528 kB for each populated zone, at most 5 % of RAM
        // (mm/khugepaged.c, set_recommended_min_free_kbytes).
        let zones = if ram > Bytes::from_mib(15 + 3 * 1024) { 3.0 } else { 2.0 };
        let min_free = (Bytes::from_kib(22_528).as_f64() * zones).min(0.05 * ram.as_f64());
        Self::with_min_free(ram, min_free)
    }

    fn with_min_free(ram: Bytes, min_free: f64) -> (Bytes, Bytes) {
        // Zone sizes as x86-64 lays them out: DMA 15 MiB, DMA32 up to about 3 GiB, Normal the rest.
        let dma = Bytes::from_mib(15).min(ram).as_f64();
        let dma32 = (Bytes::from_gib(3).as_f64()).min(ram.as_f64() - dma);
        let normal = (ram.as_f64() - dma - dma32).max(0.0);
        let edge = |gaps: f64| {
            let zone = |managed: f64, protection: f64| {
                let min = min_free * managed / ram.as_f64().max(1.0);
                let gap = (min / 4.0).max(managed / 1000.0);
                (min + gap * gaps + protection).min(managed)
            };
            // lowmem_reserve_ratio is 256 for both: a zone keeps this share of the zones above it.
            let protection = |above: f64| above / 256.0;
            let lowest = zone(dma, protection(dma32 + normal));
            Bytes::from_f64(lowest + zone(dma32, protection(normal)) + zone(normal, 0.0))
        };
        (edge(1.0), edge(2.0))
    }
}

impl Evidence<'_> {
    /// Returns the floor from the zones' watermarks in each sample.
    pub fn floor(&self) -> Result<Floor, Missing> {
        Floor::measured(self)
    }
}

/// Σ min(managed, watermark + protection) over the zones; a zone without managed pages (an empty Movable zone) adds
/// nothing.
fn edge(watermark: Signal<Gauge<Pages>>) -> Reading<Bytes> {
    let kept = gauge(watermark).plus([gauge(ZONE_PROTECTION)]);
    over(Entity::Zone, kept.min(gauge(ZONE_MANAGED)).bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::testing::Case;

    /// Expected values are computed from the kernel's formulas (mm/page_alloc.c, __setup_per_zone_wmarks and
    /// setup_per_zone_lowmem_reserve) for hosts of these sizes.
    #[test]
    fn the_prediction_reproduces_known_hosts() {
        for (ram_mib, low, high) in [
            // Nothing is set aside for zones above that a board does not have.
            (8, 0.5, 0.6),
            (8 * 1024, 118.0, 134.0),
            (20 * 1024, 170.0, 190.0),
            (32 * 1024, 230.0, 263.0),
            (70 * 1024, 421.0, 493.0),
            (80_429, 464.0, 544.0),
        ] {
            let (l, h) = Floor::predicted(Bytes::from_mib(ram_mib));
            let mib = |b: Bytes| b.as_f64() / 1_048_576.0;
            assert!((mib(l) / low - 1.0).abs() < 0.08, "{ram_mib}: {l}");
            assert!((mib(h) / high - 1.0).abs() < 0.08, "{ram_mib}: {h}");
        }
    }

    #[test]
    fn a_known_min_free_moves_the_prediction() {
        let ram = Bytes::from_gib(24);
        let (low, high) =
            Case::once().fact(facts::MIN_FREE, "4194304").with(|cx| Floor::expected(cx, ram));
        assert!(low > Bytes::from_gib(4) && high < Bytes::from_gib(7), "{low} {high}");
        let absurd = Case::once().fact(facts::MIN_FREE, "99999999999999999999");
        assert_eq!(absurd.with(|cx| Floor::expected(cx, ram)), Floor::predicted(ram));
    }

    #[test]
    fn a_tiny_host_does_not_panic() {
        let (l, h) = Floor::predicted(Bytes::ZERO);
        assert!(l <= h);
    }
}
