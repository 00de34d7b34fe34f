//! CPU time of all CPUs, by kind.

use diagnose::{Evidence, Missing};
use timeline::signals::{
    CPU_IDLE, CPU_IOWAIT, CPU_IRQ, CPU_NICE, CPU_SOFTIRQ, CPU_STEAL, CPU_SYSTEM, CPU_USER,
};
use timeline::{Counter, Signal, Track};
use units::{PerSecond, Ticks};

use super::builder::{ChartBuilder, curve, rate, signals};
use crate::{Chart, ChartKind, ChartUnit, Colour, Curve};

type Cpu = Signal<Counter<Ticks>>;

/// All kinds. Guests are included in user and nice.
const ALL: [Cpu; 8] =
    [CPU_USER, CPU_NICE, CPU_SYSTEM, CPU_IRQ, CPU_SOFTIRQ, CPU_STEAL, CPU_IOWAIT, CPU_IDLE];

/// An area: id, label, colour, kinds.
type Area = (&'static str, &'static str, Colour, &'static [Cpu]);

/// The areas from the bottom. Kernel time comes first: reclaim is part of it.
const AREAS: [Area; 5] = [
    ("system", "kernel", Colour::Nth(0), &[CPU_SYSTEM]),
    ("irq", "interrupts", Colour::Nth(1), &[CPU_IRQ, CPU_SOFTIRQ]),
    ("user", "programs", Colour::Nth(2), &[CPU_USER, CPU_NICE]),
    ("steal", "stolen by the hypervisor", Colour::Nth(3), &[CPU_STEAL]),
    ("iowait", "idle, waiting for I/O", Colour::Nth(4), &[CPU_IOWAIT]),
];

/// Shares of the time of all CPUs.
pub(super) fn chart(cx: &Evidence<'_>) -> Chart {
    let builder = ChartBuilder::new(
        "cpu",
        "CPU",
        "Share of the time of all CPUs. Kernel time that rises while memory is short is reclaim.",
        ChartKind::Stack,
        ChartUnit::Share,
    )
    .top(Some(1.0));
    AREAS
        .into_iter()
        .fold(builder, |builder, (id, label, colour, kinds)| {
            let signals = kinds.iter().map(|kind| kind.id()).collect();
            let series = rate(id, label, colour, signals).inputs(signals![CPU_IDLE]);
            builder.line(cx, series, move |cx| share(cx, kinds))
        })
        .done()
}

/// Returns the share of these kinds in all CPU time.
fn share(cx: &Evidence<'_>, kinds: &[Cpu]) -> Result<Curve, Missing> {
    // Without idle time the total is unknown.
    cx.rate(CPU_IDLE)?;
    Ok(curve(&sum(cx, kinds)?.ratio_of(&sum(cx, &ALL)?)))
}

/// Returns the sum of those kinds that this kernel counts.
fn sum(cx: &Evidence<'_>, kinds: &[Cpu]) -> Result<Track<PerSecond<Ticks>>, Missing> {
    let known = kinds.iter().filter_map(|kind| cx.rate(*kind).ok());
    match known.reduce(|sum, next| sum.plus(&next)) {
        Some(sum) => Ok(sum),
        None => cx.rate(kinds.first().copied().unwrap_or(CPU_IDLE)),
    }
}
