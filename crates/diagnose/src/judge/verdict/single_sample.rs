//! What a single sample shows: levels only, and the meaning of each figure.

use timeline::signals::{MEM_AVAILABLE, MEM_FREE, MEM_TOTAL};
use units::{Bytes, Ratio};

use crate::evidence::{Evidence, rounding};
use crate::measures::available;
use crate::measures::floor::Floor;

/// Returns the floor of free memory (from the low and high watermarks) and its origin: the zones, else a prediction for
/// this size of RAM.
fn floor(cx: &Evidence<'_>, total: Bytes) -> (Bytes, Bytes, &'static str) {
    let measured = cx.floor().ok();
    match measured.and_then(|floor| floor.low.last().zip(floor.high.last())) {
        Some((low, high)) => (low, high, "from this host's zones"),
        None => {
            let (low, high) = Floor::expected(cx, total);
            (low, high, "predicted from x86-64 hosts of this size")
        }
    }
}

/// Whether free memory is at the floor; `None` if the rounding of the figure leaves that open.
fn on_floor(cx: &Evidence<'_>, free: Bytes, high: Bytes, total: Bytes) -> Option<bool> {
    let edge = Floor::rests_below(high, total);
    let (least, most) = rounding::bounds(cx, MEM_FREE, free).unwrap_or((free, free));
    ((least <= edge) == (most <= edge)).then_some(free <= edge)
}

fn swap_used(cx: &Evidence<'_>) -> Option<Bytes> {
    cx.swap_used().ok().and_then(|used| used.last()).filter(|used| *used > Bytes::ZERO)
}

/// A smaller share of available memory argues against headroom even in one sample (available-exhaustion warns from 10 %
/// down where tasks stall; one misjudged host had 12 %).
const AVAILABLE_DOUBTFUL: Ratio = Ratio::from_percent(15.0);

/// With swap in use, free memory at the floor argues against headroom below this share; an engineering choice. Idle pages
/// are swapped out on hosts with much cache, too.
const AVAILABLE_DOUBTFUL_WITH_SWAP: Ratio = Ratio::from_percent(50.0);

/// Less in swap than this share of RAM says nothing: an engineering choice.
const SWAP_NOTABLE: Ratio = Ratio::from_percent(1.0);

/// Returns the headline for one sample, which proves levels only, and whether they are low.
pub(super) fn headline(cx: &Evidence<'_>) -> String {
    let is_low = || {
        let total = cx.timeline.last(MEM_TOTAL)?;
        let free = cx.timeline.last(MEM_FREE)?;
        let (_, high, _) = floor(cx, total);
        let (available, _) = available::available_at_most(cx).ok()?;
        let available = available.last()?.ratio_of(total)?;
        let doubtful = match swap_used(cx).filter(|used| *used >= total.share(SWAP_NOTABLE)) {
            Some(_) => AVAILABLE_DOUBTFUL_WITH_SWAP,
            None => AVAILABLE_DOUBTFUL,
        };
        (on_floor(cx, free, high, total)? && available < doubtful).then_some(())
    };
    let but = match is_low() {
        Some(()) => ", but headroom seems small",
        None => "",
    };
    format!("One sample cannot show whether memory is enough{but}.")
}

/// Returns what each figure of one sample means and does not mean.
pub(super) fn explain_figures(cx: &Evidence<'_>) -> Vec<String> {
    let Some(total) = cx.timeline.last(MEM_TOTAL) else {
        return Vec::new();
    };
    let mut lines = Vec::new();
    if let Some(free) = cx.timeline.last(MEM_FREE) {
        let (low, high, how) = floor(cx, total);
        let shown = rounding::shown(cx, MEM_FREE, free);
        lines.push(match on_floor(cx, free, high, total) {
            Some(true) => format!(
                "free: {shown} is not headroom: the kernel keeps about this much free ({low} to \
                 {high}, {how})."
            ),
            Some(false) => {
                format!("free: {shown}, more than the kernel keeps free ({low} to {high}, {how}).")
            }
            None => format!(
                "free: {shown}; finer figures would show whether that is more than the kernel \
                 keeps free ({low} to {high}, {how})."
            ),
        });
    }
    if let Ok((track, is_measured)) = available::available_at_most(cx)
        && let Some(available) = track.last()
    {
        // The sum of parts that were read at different times may be more than RAM.
        let available = available.min(total);
        let share = available.ratio_of(total).unwrap_or_default();
        let available = rounding::shown(cx, MEM_AVAILABLE, available);
        lines.push(if is_measured {
            format!(
                "available: {available} ({share}), an upper bound: it includes page cache that the \
                 workload may use."
            )
        } else {
            format!(
                "available: not measured. Free memory, cache and reclaimable slab: {available} \
                 ({share}), an upper bound, far too high if the cache is shared memory."
            )
        });
    }
    if let Some(used) = swap_used(cx) {
        lines.push(format!(
            "swap: {used} used. Only swap-in means a shortage, and one sample cannot show it."
        ));
    }
    lines.push(
        "Needed: `memtide check --for 1m` on that host; for \"does more fit?\" a full cycle of its \
         work."
            .to_owned(),
    );
    lines
}
