//! Swap: traffic and use.

use diagnose::baselines;
use diagnose::{Evidence, Missing};
use timeline::Track;
use timeline::signals::{
    PSWPIN, PSWPOUT, SWAP_AREA_USED, SWAP_FREE, SWAP_TOTAL, SWAP_USED, SWAPIN_ALL, SWPIN_ZERO,
    SWPOUT_ZERO, ZSWPIN, ZSWPOUT,
};
use units::{Pages, PerSecond, Quantity};

use super::builder::{ChartBuilder, curve, level, rate, signals};
use crate::{Chart, ChartKind, ChartUnit, Colour, Curve};

/// Chart of swap traffic, in and out.
pub(super) fn flow(cx: &Evidence<'_>) -> Chart {
    let builder = |unit| {
        ChartBuilder::new(
            "swap",
            "Swap in and out",
            "Swap-in hurts: a task waits for it. Swap-out alone is harmless.",
            ChartKind::Mirror,
            unit,
        )
    };
    let quiet = baselines::SWAP_TRAFFIC;
    let builder = match cx.page_size() {
        Ok(page) => builder(ChartUnit::BytesPerSecond).quiet_up_to(quiet.to_bytes(page)),
        Err(_) => builder(ChartUnit::PagesPerSecond).quiet_up_to(quiet),
    };
    builder
        .line(
            cx,
            rate("in", "swapped in", Colour::SwapIn, signals![PSWPIN, SWAPIN_ALL])
                .inputs(signals![ZSWPIN, SWPIN_ZERO]),
            |cx| moved(cx, cx.swapped_in()),
        )
        .line(
            cx,
            rate("out", "swapped out", Colour::SwapOut, signals![PSWPOUT])
                .inputs(signals![ZSWPOUT, SWPOUT_ZERO])
                .mirrored(),
            |cx| moved(cx, cx.swapped_out()),
        )
        .done()
}

/// Returns the traffic in bytes if the page size is known.
fn moved(
    cx: &Evidence<'_>,
    pages: Result<Track<PerSecond<Pages>>, Missing>,
) -> Result<Curve, Missing> {
    let pages = pages?;
    Ok(match cx.page_size() {
        Ok(page) => curve(&pages.to_bytes(page)),
        Err(_) => curve(&pages),
    })
}

/// Chart of used swap.
pub(super) fn used(cx: &Evidence<'_>) -> Chart {
    let size = cx.gauge(SWAP_TOTAL).ok();
    let most = size.and_then(|size| size.max()).map(|(size, _)| size.as_f64());
    let builder = ChartBuilder::new(
        "swap_used",
        "Swap used",
        "A stock: harmless while it does not move.",
        ChartKind::Lines,
        ChartUnit::Bytes,
    )
    .quiet_up_to(baselines::SWAP_USED);
    if most == Some(0.0) {
        return builder.absent("this host has no swap (SwapTotal is 0)".to_owned());
    }
    let builder = builder.top(most).line(
        cx,
        level("used", "used", Colour::SwapIn, signals![SWAP_USED])
            .related(signals![SWAP_FREE, SWAP_AREA_USED]),
        |cx| cx.swap_used().map(|track| curve(&track)),
    );
    builder
        .moving_limit(
            cx,
            level("size", "size of swap", Colour::Limit, signals![SWAP_TOTAL]),
            |cx| cx.gauge(SWAP_TOTAL).map(|track| curve(&track)),
        )
        .done()
}
