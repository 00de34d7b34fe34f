//! Waiting: the shares of time for which tasks waited for memory and for disks.

use diagnose::Evidence;
use diagnose::baselines;
use timeline::signals::{PSI_IO_FULL, PSI_IO_SOME, PSI_MEMORY_FULL, PSI_MEMORY_SOME};
use timeline::{Counter, Signal};
use units::Micros;

use super::builder::{ChartBuilder, curve, rate, signals};
use crate::{Chart, ChartKind, ChartUnit, Colour};

/// Waiting for memory.
pub(super) fn memory(cx: &Evidence<'_>) -> Chart {
    waiting(cx, "pressure", "Waiting for memory", PSI_MEMORY_SOME, PSI_MEMORY_FULL)
        .quiet_up_to(baselines::WAITING_FOR_MEMORY)
        .done()
}

/// Waiting for disks.
pub(super) fn io(cx: &Evidence<'_>) -> Chart {
    waiting(cx, "io_wait", "Waiting for I/O", PSI_IO_SOME, PSI_IO_FULL)
        .quiet_up_to(baselines::WAITING_FOR_DISKS)
        .done()
}

fn waiting(
    cx: &Evidence<'_>,
    id: &str,
    title: &str,
    some: Signal<Counter<Micros>>,
    full: Signal<Counter<Micros>>,
) -> ChartBuilder {
    let share = |signal| move |cx: &Evidence<'_>| cx.stall(signal).map(|track| curve(&track));
    ChartBuilder::new(
        id,
        title,
        "Share of time, as the kernel measures it (PSI). All tasks: nothing could run.",
        ChartKind::Lines,
        ChartUnit::Share,
    )
    .top(Some(1.0))
    .line(cx, rate("some", "some task", Colour::PsiSome, signals![some]), share(some))
    .line(cx, rate("full", "all tasks", Colour::PsiFull, signals![full]), share(full))
}
