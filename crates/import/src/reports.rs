//! Kernel reports that come with a time of their own, from a recorder's notes or from the kernel's log itself: each is put
//! where a capture has it, on the sample that follows, whose levels it replaces, as they are of the moment and the sample's
//! are of a little later. What was before the first sample belongs to none.

use timeline::{Stamp, Timeline};

use crate::paste::Paste;

/// Puts a report on the sample that it belongs to.
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
