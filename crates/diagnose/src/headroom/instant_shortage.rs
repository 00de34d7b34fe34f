//! How much memory was needed at once while it was short: what RAM contained, and what was in swap.

use timeline::signals::MEM_SWAP_CACHED;
use units::Bytes;

use super::terms::Levels;
use super::{ReadCache, Short};
use crate::evidence::Evidence;

/// Returns the largest such sum, with the kernel's floor and the page cache that is read again. `None` where memory
/// was not short, or nothing was in swap: then it is unknown how much more was needed.
pub(super) fn wanted(
    cx: &Evidence<'_>,
    levels: &Levels,
    cache: &ReadCache,
    short: &[Short],
) -> Option<Bytes> {
    let ram = cx.ram().ok()?;
    let swap = cx.swap_used().ok()?;
    let cached = cx.timeline.gauge(MEM_SWAP_CACHED);
    let at = |index: usize| {
        let swap = swap.at(index).filter(|swap| *swap > Bytes::ZERO)?;
        // Pages that are both in RAM and in swap count once.
        let both = cached.as_ref().and_then(|cached| cached.at(index));
        let swapped = swap.saturating_sub(both.unwrap_or_default());
        Some(ram.saturating_sub(levels.available.at(index)?) + swapped)
    };
    let samples = 0..cx.timeline.len();
    let while_short = samples.filter(|index| short.iter().any(|short| short.covers(*index)));
    let most = while_short.filter_map(at).max()?;
    Some(most + cache.likely.unwrap_or(cache.lower))
}
