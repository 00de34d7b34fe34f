//! Writing: data waiting for the disk and its limits, and how fast it is produced and written.

use diagnose::Evidence;
use diagnose::baselines;
use timeline::signals::{
    DIRTY_AND_WRITEBACK, MEM_DIRTY, MEM_WRITEBACK, NR_DIRTIED, NR_DIRTY_BACKGROUND_THRESHOLD,
    NR_DIRTY_THRESHOLD, NR_WRITTEN,
};

use super::builder::{ChartBuilder, curve, level, rate, signals};
use crate::{Chart, ChartKind, ChartUnit, Colour};

/// Chart of data waiting to be written, and the kernel's limits for it.
pub(super) fn dirty(cx: &Evidence<'_>) -> Chart {
    // The sum is a line of its own: as the top of a stack, its peaks would be lost if one pixel shows many samples.
    let unwritten =
        level("unwritten", "not written yet", Colour::Dirty, signals![DIRTY_AND_WRITEBACK]);
    let builder = ChartBuilder::new(
        "dirty",
        "Waiting to be written",
        "Data that is in memory only, of files and on its way to swap. Writers are slowed down as \
         that of files nears the limit.",
        ChartKind::Lines,
        ChartUnit::Bytes,
    )
    .quiet_up_to(baselines::UNWRITTEN)
    .line(cx, unwritten.inputs(signals![MEM_DIRTY, MEM_WRITEBACK]), |cx| {
        let dirty = cx.gauge(MEM_DIRTY)?;
        Ok(curve(&dirty.plus(&cx.gauge(MEM_WRITEBACK)?)))
    })
    .line(
        cx,
        level("writeback", "being written", Colour::Writeback, signals![MEM_WRITEBACK]),
        |cx| cx.gauge(MEM_WRITEBACK).map(|track| curve(&track)),
    );
    let limits = [
        ("limit", "limit", NR_DIRTY_THRESHOLD),
        ("background", "writing begins", NR_DIRTY_BACKGROUND_THRESHOLD),
    ];
    limits
        .into_iter()
        .fold(builder, |builder, (id, label, signal)| {
            builder.moving_limit(cx, level(id, label, Colour::Limit, signals![signal]), move |cx| {
                cx.bytes(signal).map(|track| curve(&track))
            })
        })
        .done()
}

/// Chart of how fast data is produced, and how fast it is written.
pub(super) fn speed(cx: &Evidence<'_>) -> Chart {
    ChartBuilder::new(
        "write",
        "Write speed",
        "What writers put into memory, and what reaches the disk.",
        ChartKind::Lines,
        ChartUnit::BytesPerSecond,
    )
    .quiet_up_to(baselines::DISK_TRAFFIC)
    .line(cx, rate("dirtied", "into the cache", Colour::Dirty, signals![NR_DIRTIED]), |cx| {
        cx.bytes_rate(NR_DIRTIED).map(|track| curve(&track))
    })
    .line(cx, rate("written", "to disk", Colour::Write, signals![NR_WRITTEN]), |cx| {
        cx.bytes_rate(NR_WRITTEN).map(|track| curve(&track))
    })
    .done()
}
