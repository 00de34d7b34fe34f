//! How much wanted memory at once where it was short: what RAM held, and what lay in swap beside it.

use timeline::signals::MEM_SWAP_CACHED;
use units::Bytes;

use super::terms::Levels;
use super::{ReadCache, Short};
use crate::evidence::Evidence;

/// The most of it, with the kernel's floor and the page cache that is read again; `None` where memory was not short, or
/// nothing lay in swap: then it is not known what else would have been wanted.
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
        // Pages that are in both count once.
        let both = cached.as_ref().and_then(|cached| cached.at(index));
        let swapped = swap.saturating_sub(both.unwrap_or_default());
        Some(ram.saturating_sub(levels.available.at(index)?) + swapped)
    };
    let samples = 0..cx.timeline.len();
    let while_short = samples.filter(|index| short.iter().any(|short| short.covers(*index)));
    let most = while_short.filter_map(at).max()?;
    Some(most + cache.likely.unwrap_or(cache.lower))
}
