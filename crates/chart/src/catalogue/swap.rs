//! Swap: what moves, and how much lies there.

use diagnose::calm::levels;
use diagnose::{Evidence, Missing};
use timeline::Track;
use timeline::signals::{
    PSWPIN, PSWPOUT, SWAP_AREA_USED, SWAP_FREE, SWAP_TOTAL, SWAP_USED, SWAPIN_ALL, SWPIN_ZERO,
    SWPOUT_ZERO, ZSWPIN, ZSWPOUT,
};
use units::{Pages, PerSecond, Quantity};

use super::sketch::{Sketch, beside, curve, downwards, from, level, rate, signals};
use crate::{Chart, ChartKind, ChartUnit, Colour, Curve};

/// Swapped in and out.
pub(super) fn flow(cx: &Evidence<'_>) -> Chart {
    let sketch = |unit| {
        Sketch::new(
            "swap",
            "Swap in and out",
            "In hurts: somebody waits for it. Out is only preparation.",
            ChartKind::Mirror,
            unit,
        )
    };
    let quiet = levels::SWAP_TRAFFIC;
    let sketch = match cx.page_size() {
        Ok(page) => sketch(ChartUnit::BytesPerSecond).quiet_up_to(quiet.to_bytes(page)),
        Err(_) => sketch(ChartUnit::PagesPerSecond).quiet_up_to(quiet),
    };
    sketch
        .line(
            cx,
            from(
                rate(
                    "in",
                    "swapped in",
                    Colour::SwapIn,
                    signals![PSWPIN, SWAPIN_ALL],
                ),
                signals![ZSWPIN, SWPIN_ZERO],
            ),
            |cx| moved(cx, cx.swapped_in()),
        )
        .line(
            cx,
            from(
                downwards(rate(
                    "out",
                    "swapped out",
                    Colour::SwapOut,
                    signals![PSWPOUT],
                )),
                signals![ZSWPOUT, SWPOUT_ZERO],
            ),
            |cx| moved(cx, cx.swapped_out()),
        )
        .done()
}

/// In bytes where the size of a page is known.
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

/// Swap that is used.
pub(super) fn used(cx: &Evidence<'_>) -> Chart {
    let size = cx.gauge(SWAP_TOTAL).ok();
    let most = size
        .and_then(|size| size.max())
        .map(|(size, _)| size.as_f64());
    let sketch = Sketch::new(
        "swap_used",
        "Swap used",
        "A stock: harmless while it does not move.",
        ChartKind::Lines,
        ChartUnit::Bytes,
    )
    .quiet_up_to(levels::SWAP_USED);
    if most == Some(0.0) {
        return sketch.absent("this host has no swap (SwapTotal is 0)".to_owned());
    }
    let sketch = sketch.top(most).line(
        cx,
        beside(
            level("used", "used", Colour::SwapIn, signals![SWAP_USED]),
            signals![SWAP_FREE, SWAP_AREA_USED],
        ),
        |cx| cx.swap_used().map(|track| curve(&track)),
    );
    sketch
        .moving_limit(
            cx,
            level("size", "size of swap", Colour::Limit, signals![SWAP_TOTAL]),
            |cx| cx.gauge(SWAP_TOTAL).map(|track| curve(&track)),
        )
        .done()
}
