//! The host at one moment.

use schemars::JsonSchema;
use serde::Serialize;
use timeline::Entity;
use timeline::signals::{
    MEM_AVAILABLE, MEM_TOTAL, PGSTEAL_DIRECT, PGSTEAL_KSWAPD, PSI_IO_SOME, PSI_MEMORY_FULL,
    PSI_MEMORY_SOME, PSWPIN, PSWPOUT, SWAP_FREE, SWAP_TOTAL,
};
use units::{Bytes, BytesPerSecond, PageSize, PerSecond, Ratio};

use super::window::RecentReadings;
use crate::evidence::Evidence;

/// Memory of the host, and who waits for it; null where the source does not have it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, JsonSchema)]
pub struct HostActivity {
    /// MemTotal of `/proc/meminfo`.
    #[serde(rename = "total_bytes")]
    pub total: Option<Bytes>,
    /// MemAvailable, which the kernel estimates.
    #[serde(rename = "available_bytes")]
    pub available: Option<Bytes>,
    /// SwapTotal of `/proc/meminfo`.
    #[serde(rename = "swap_total_bytes")]
    pub swap_total: Option<Bytes>,
    /// SwapTotal without SwapFree.
    #[serde(rename = "swap_used_bytes")]
    pub swap_used: Option<Bytes>,
    /// Read from swap.
    #[serde(rename = "swap_in_bytes_per_second")]
    pub swap_in: Option<BytesPerSecond>,
    /// Written to swap.
    #[serde(rename = "swap_out_bytes_per_second")]
    pub swap_out: Option<BytesPerSecond>,
    /// The share of the time in which a task waited for memory (PSI).
    pub memory_wait: Option<Ratio>,
    /// The share of the time in which all tasks did.
    pub memory_standstill: Option<Ratio>,
    /// The share of the time in which a task waited for I/O (PSI).
    pub io_wait: Option<Ratio>,
    /// What kswapd and tasks that need memory took back.
    #[serde(rename = "reclaimed_bytes_per_second")]
    pub reclaimed: Option<BytesPerSecond>,
}

pub(super) fn at(cx: &Evidence<'_>, index: usize) -> HostActivity {
    let window = RecentReadings::ending_at(cx, Entity::Host, index);
    let page = cx.facts.page_size.unwrap_or(PageSize::USUAL);
    let bytes = |signal| Some(window.rate(None, signal)?.to_bytes(page));
    let wait = |signal| Some(window.rate(None, signal)?.to_share());
    let swap_total = cx.timeline.at(SWAP_TOTAL, index);
    HostActivity {
        total: cx.timeline.at(MEM_TOTAL, index),
        available: cx.timeline.at(MEM_AVAILABLE, index),
        swap_total,
        swap_used: swap_total
            .zip(cx.timeline.at(SWAP_FREE, index))
            .map(|(total, free)| total.saturating_sub(free)),
        swap_in: bytes(PSWPIN),
        swap_out: bytes(PSWPOUT),
        memory_wait: wait(PSI_MEMORY_SOME),
        memory_standstill: wait(PSI_MEMORY_FULL),
        io_wait: wait(PSI_IO_SOME),
        reclaimed: match [bytes(PGSTEAL_KSWAPD), bytes(PGSTEAL_DIRECT)] {
            [Some(kswapd), Some(direct)] => Some(PerSecond::new(kswapd.get() + direct.get())),
            [one, other] => one.or(other),
        },
    }
}
