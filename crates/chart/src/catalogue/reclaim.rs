//! Reclaim: refaults, and which tasks scanned for pages to reclaim.

use diagnose::Evidence;
use diagnose::baselines;
use timeline::signals::{
    ALLOCSTALL, PGSCAN_DIRECT, PGSCAN_KSWAPD, REFAULT, REFAULT_ANON, REFAULT_FILE,
};

use super::builder::{ChartBuilder, curve, rate, signals};
use crate::{Chart, ChartKind, ChartUnit, Colour};

/// Chart of refaults.
pub(super) fn refaults(cx: &Evidence<'_>) -> Chart {
    ChartBuilder::new(
        "refaults",
        "Evicted too early (refaults)",
        "Pages that were dropped and soon needed again: memory is smaller than what is in use.",
        ChartKind::Lines,
        ChartUnit::PagesPerSecond,
    )
    .quiet_up_to(baselines::REFAULTS)
    .line(
        cx,
        rate("file", "file pages read again", Colour::FileCache, signals![REFAULT_FILE, REFAULT]),
        |cx| cx.refaults_file().map(|track| curve(&track)),
    )
    .line(
        cx,
        rate("anon", "process pages swapped in again", Colour::Anon, signals![REFAULT_ANON]),
        |cx| cx.refaults_anon().map(|track| curve(&track)),
    )
    .done()
}

/// Chart of pages scanned for reclaim.
pub(super) fn scanned(cx: &Evidence<'_>) -> Chart {
    ChartBuilder::new(
        "reclaim",
        "Reclaim",
        "Pages looked at. Direct: by the very task that waits for memory (an allocation stall); \
         kswapd works in the background.",
        ChartKind::Lines,
        ChartUnit::PagesPerSecond,
    )
    .quiet_up_to(baselines::SCANNED)
    .line(
        cx,
        rate("kswapd", "in the background (kswapd)", Colour::Kswapd, signals![PGSCAN_KSWAPD]),
        |cx| cx.rate(PGSCAN_KSWAPD).map(|track| curve(&track)),
    )
    .line(
        cx,
        // An allocation stall is one task that entered direct reclaim.
        rate("direct", "by allocating tasks (direct)", Colour::Direct, signals![PGSCAN_DIRECT])
            .related(signals![ALLOCSTALL]),
        |cx| cx.rate(PGSCAN_DIRECT).map(|track| curve(&track)),
    )
    .done()
}
