//! When samples are due: on a beat that a late sample does not shift.
//!
//! The beat uses the clock that stands still in suspend, so that a machine that slept is not late.

use rustix::io::Errno;
use rustix::thread::clock_nanosleep_absolute;
use rustix::time::{ClockId, Timespec};
use units::{Ratio, Span};

/// A beat of the clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Beat {
    /// How late the sample was taken.
    pub late: Span,
    /// Beats missed meanwhile; they get no samples of their own.
    pub missed: u64,
}

/// The beat in which a job was last done that is not due with every sample.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LastDone(Option<u64>);

impl LastDone {
    /// Whether it was never done.
    pub fn is_never(self) -> bool {
        self.0.is_none()
    }
}

/// The beat of the samples.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pace {
    every: Span,
    start: Span,
    due: Span,
    /// Number of the beat that is due.
    number: u64,
}

impl Pace {
    /// The shortest interval: below it the host would be busy with the recorder alone.
    const INTERVAL_MIN: Span = Span::from_millis(10);

    /// Creates a beat; its first sample is due at `start`, and begins it.
    pub(crate) fn from(start: Span, every: Span) -> Self {
        Self { every: every.max(Self::INTERVAL_MIN), start, due: start, number: 0 }
    }

    /// Returns when the first sample began; before it, when it is due.
    pub(crate) fn start(&self) -> Span {
        self.start
    }

    /// Returns when the next sample is due.
    pub(crate) fn due(&self) -> Span {
        self.due
    }

    /// Returns when the next sample is due, measured from when the first one was due.
    pub(crate) fn due_after_start(&self) -> Span {
        self.due.saturating_sub(self.start)
    }

    /// Records that the due sample began at `now`: several missed beats become one late sample. The beat counts from the first
    /// one, before which files are opened: what is asked for as a second has to last one.
    pub(crate) fn begin(&mut self, now: Span) -> Beat {
        if self.number == 0 {
            self.start = now;
            self.due = now;
        }
        let late = now.saturating_sub(self.due);
        let missed = late.as_nanos() / self.every.as_nanos();
        let beats = missed + 1;
        let ahead = self.every.as_nanos().saturating_mul(beats);
        self.due = self.due.plus(Span::from_nanos(ahead));
        self.number += beats;
        Beat { late, missed }
    }

    /// Whether a job that runs once per `period` is due in the current beat; if so, notes it as done.
    pub(crate) fn takes(&self, done: &mut LastDone, period: Span) -> bool {
        let beats = period.as_nanos().div_ceil(self.every.as_nanos()).max(1);
        let current = self.number.saturating_sub(1);
        let is_due = done.0.is_none_or(|last| current >= last.saturating_add(beats));
        if is_due {
            done.0 = Some(current);
        }
        is_due
    }
}

/// Sleeps until `time` on the clock that stands still in suspend, or until a signal arrives.
pub(crate) fn sleep_until(time: Span) {
    let until = time.as_nanos();
    let whole = |nanos: u64| i64::try_from(nanos).unwrap_or(i64::MAX);
    let wake =
        Timespec { tv_sec: whole(until / 1_000_000_000), tv_nsec: whole(until % 1_000_000_000) };
    match clock_nanosleep_absolute(ClockId::Monotonic, &wake) {
        Ok(()) | Err(Errno::INTR) => {}
        // Only an invalid time fails here. It must not become a busy loop.
        Err(_) => std::thread::sleep(std::time::Duration::from_millis(10)),
    }
}

/// Returns the interval at which work of this cost takes this share of one CPU.
pub fn interval_within(cost: Span, share: Ratio) -> Span {
    Span::from_secs_f64(cost.as_secs_f64() / share.get().max(f64::MIN_POSITIVE))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Span = Span::from_secs(1);

    #[test]
    fn a_late_sample_does_not_shift_the_beat_and_missed_beats_are_one_sample() {
        let mut pace = Pace::from(Span::from_secs(100), SECOND);
        for (now, late, missed, next) in [
            (100_000, 0, 0, 101),
            (101_300, 300, 0, 102),
            (102_000, 0, 0, 103),
            (107_250, 4_250, 4, 108),
            (107_900, 0, 0, 109),
        ] {
            let beat = pace.begin(Span::from_millis(now));
            let late = Span::from_millis(late);
            assert_eq!(beat, Beat { late, missed }, "at {now}");
            assert_eq!(pace.due(), Span::from_secs(next), "at {now}");
        }
    }

    #[test]
    fn the_beat_begins_with_the_first_sample_however_long_files_take_to_open() {
        let mut pace = Pace::from(Span::from_secs(100), SECOND);
        let opened = Span::from_millis(100_027);
        assert_eq!(pace.begin(opened).late, Span::ZERO);
        assert_eq!((pace.start(), pace.due()), (opened, opened.plus(SECOND)));
    }

    #[test]
    fn what_is_done_more_rarely_keeps_to_the_beat_and_is_made_up_for_once() {
        let mut pace = Pace::from(Span::ZERO, SECOND);
        let mut last = LastDone::default();
        let mut done = Vec::new();
        for now in [0, 1, 2, 3, 4, 5, 13, 14, 15, 16] {
            pace.begin(Span::from_secs(now));
            if pace.takes(&mut last, Span::from_millis(2_500)) {
                done.push(now);
            }
        }
        assert_eq!(done, [0, 3, 13, 16]);
    }

    #[test]
    fn a_beat_of_nothing_is_no_busy_loop() {
        let mut pace = Pace::from(Span::ZERO, Span::ZERO);
        pace.begin(Span::ZERO);
        assert!(pace.due() > Span::ZERO);
    }
}
