//! When samples are due, and waiting for that without keeping the caller from ending it.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use units::Span;

/// Is told again and again how much time has passed; may end the watch, which keeps what was seen so far.
pub type Progress<'a> = &'a mut dyn FnMut(Span) -> ControlFlow<()>;

/// When samples are due: on the beat since the start, so that a late one does not make all later ones late.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pace {
    started: Instant,
    every: Duration,
    lasts: Duration,
}

impl Pace {
    /// How long a caller who wants to end waits at most; people take less than this for at once.
    const LONGEST_NAP: Duration = Duration::from_millis(100);

    /// A beat every so often, for so long, from now on.
    pub(crate) fn start(every: Span, lasts: Span) -> Self {
        Self {
            started: Instant::now(),
            every: duration(every).max(Duration::from_millis(1)),
            lasts: duration(lasts),
        }
    }

    /// The next beat, counted from the start; `None` where the last one is over.
    pub(crate) fn next(&self) -> Option<Duration> {
        self.after(self.started.elapsed())
    }

    fn after(&self, passed: Duration) -> Option<Duration> {
        let beats = u32::try_from(passed.as_nanos() / self.every.as_nanos()).unwrap_or(u32::MAX);
        let next = self.every.saturating_mul(beats.saturating_add(1));
        (next <= self.lasts).then_some(next)
    }

    /// Waits for a beat, or until told to end.
    pub(crate) fn wait(&self, beat: Duration, progress: Progress<'_>) -> ControlFlow<()> {
        loop {
            let passed = self.started.elapsed();
            progress(Span::from_nanos(
                u64::try_from(passed.as_nanos()).unwrap_or(u64::MAX),
            ))?;
            let left = beat.saturating_sub(passed);
            if left.is_zero() {
                return ControlFlow::Continue(());
            }
            std::thread::sleep(left.min(Self::LONGEST_NAP));
        }
    }
}

fn duration(span: Span) -> Duration {
    Duration::from_nanos(span.as_nanos())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_late_sample_does_not_shift_the_beat() {
        let pace = Pace::start(Span::from_secs(1), Span::from_secs(10));
        let at = Duration::from_secs_f64;
        assert_eq!(pace.after(at(0.0)), Some(at(1.0)));
        assert_eq!(pace.after(at(3.7)), Some(at(4.0)));
        assert_eq!(pace.after(at(9.99)), Some(at(10.0)));
        assert_eq!(pace.after(at(10.0)), None);
    }

    #[test]
    fn a_wait_ends_when_told_to() {
        let pace = Pace::start(Span::from_hours(1), Span::from_hours(2));
        let mut told = 0;
        let ended = pace.wait(Duration::from_secs(3600), &mut |_| {
            told += 1;
            if told == 2 {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        });
        assert!(ended.is_break());
        assert!(pace.started.elapsed() < Duration::from_secs(60));
    }
}
