//! The recorder itself: its delay, and its resource use.

use diagnose::Evidence;
use diagnose::baselines;
use timeline::signals::{RECORDER_CPU, RECORDER_LATE};

use super::builder::{ChartBuilder, level, scaled, signals};
use crate::{Chart, ChartKind, ChartUnit, Colour};

/// Milliseconds in a microsecond, the unit of both signals.
const MILLISECONDS: f64 = 1e-3;

/// Chart of the delay of samples. A host that does not let its recorder run does not let other tasks run either.
pub(super) fn chart(cx: &Evidence<'_>) -> Chart {
    let builder = ChartBuilder::new(
        "recorder",
        "The recorder itself",
        "How late samples were, and the CPU time that recording took in each second. Late samples \
         mean that nothing could run.",
        ChartKind::Lines,
        ChartUnit::Millis,
    )
    .quiet_up_to(baselines::LATE);
    if cx.gauge(RECORDER_LATE).is_err() && cx.rate(RECORDER_CPU).is_err() {
        return builder.absent("not recorded: only memtide record measures itself".to_owned());
    }
    builder
        .line(cx, level("late", "late by", Colour::Nth(0), signals![RECORDER_LATE]), |cx| {
            cx.gauge(RECORDER_LATE).map(|track| scaled(&track, MILLISECONDS))
        })
        .line(
            cx,
            super::builder::rate(
                "cpu",
                "CPU time per second",
                Colour::Nth(1),
                signals![RECORDER_CPU],
            ),
            |cx| cx.rate(RECORDER_CPU).map(|track| scaled(&track, MILLISECONDS)),
        )
        .done()
}
