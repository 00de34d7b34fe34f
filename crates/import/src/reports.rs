//! Kernel reports with a time, from the events of a recording or from the kernel log. Each is added to the sample
//! after it, as in a capture, and replaces levels of that sample, as its own are of the right time. A report before
//! the first sample is added to none.

use timeline::{Stamp, Timeline};

use crate::paste::Paste;

/// Adds a report to its sample.
pub(crate) fn place(timeline: &mut Timeline, stamp: Stamp, lines: &str, sample: Option<usize>) {
    let Some(snapshot) = Paste::report(lines) else {
        return;
    };
    let Some(report) = snapshot.report else {
        return;
    };
    let index = match sample {
        Some(index) => {
            timeline.report_when(index, stamp, report, snapshot.text);
            Some(index)
        }
        None => timeline.report_by_time(stamp, report, snapshot.text),
    };
    let Some(index) = index else { return };
    for (signal, raw) in snapshot.sample.host.iter() {
        timeline.amend(index, signal, raw);
    }
}
