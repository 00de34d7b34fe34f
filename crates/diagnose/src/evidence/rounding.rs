//! Bounds of rounded readings (`free -h` prints `3.6Gi`).

use timeline::{Gauge, Signal};
use units::{Bytes, Quantity as _, Ratio};

use super::Evidence;

/// Formats a reading, with its bounds if it is rounded so coarsely that the plain figure would mislead.
pub(crate) fn shown(cx: &Evidence<'_>, signal: Signal<Gauge<Bytes>>, value: Bytes) -> String {
    /// A coarser figure is printed with its bounds.
    const COARSE: Ratio = Ratio::from_percent(10.0);
    match bounds(cx, signal, value) {
        Some((least, most)) if least == Bytes::ZERO => format!("less than {most} (rounded)"),
        Some((least, most))
            if most.saturating_sub(least).as_f64() > 2.0 * COARSE.get() * value.as_f64() =>
        {
            format!("{least} to {most} (rounded)")
        }
        _ => value.to_string(),
    }
}

/// Returns the bounds between which the true reading lies; `None` if the reading is exact.
pub(crate) fn bounds(
    cx: &Evidence<'_>,
    signal: Signal<Gauge<Bytes>>,
    value: Bytes,
) -> Option<(Bytes, Bytes)> {
    let error = Bytes::new(cx.timeline.rounding_error(signal.id())?);
    Some((value.saturating_sub(error), Bytes::new(value.get().saturating_add(error.get()))))
}
