//! `--when`: waits for the right moment.

use std::time::{Duration, Instant};

use ::profile::{ConditionWatch, ProfileCondition};
use units::Span;

use crate::command_error::{CommandError, ErrorContext};
use crate::interrupt;
use crate::output::Output;

const EVERY: Duration = Duration::from_secs(1);
/// A condition that stays true is profiled again after so long.
const AGAIN_AFTER: Duration = Duration::from_secs(300);

pub(super) struct RightMoment {
    watch: ConditionWatch,
    condition: ProfileCondition,
    until: Instant,
    /// When the last profile ended.
    last: Option<Instant>,
}

impl RightMoment {
    pub(super) fn new(condition: ProfileCondition, at_most: Span) -> Self {
        Self {
            watch: ConditionWatch::new(condition.clone()),
            condition,
            until: Instant::now() + Duration::from_secs_f64(at_most.as_secs_f64()),
            last: None,
        }
    }

    /// Waits until the condition is met, and returns its value; `None` where that takes too long or is interrupted.
    pub(super) fn wait(&mut self, output: &Output) -> Result<Option<String>, CommandError> {
        let is_interrupted = interrupt::listen_to_any();
        let bar = output.busy("");
        let mut must_end_first = self.last.is_some();
        if must_end_first {
            self.watch.begin_again();
        }
        while Instant::now() < self.until && !is_interrupted() {
            let (is_met, value) = self.watch.check().with_context(|| {
                format!("this kernel does not count what {} is about", self.condition)
            })?;
            bar.set_message(format!("waiting for {} · now {value}", self.condition));
            must_end_first &=
                !self.watch.is_over() && self.last.is_none_or(|last| last.elapsed() < AGAIN_AFTER);
            if is_met && !must_end_first {
                self.last = Some(Instant::now());
                bar.finish_and_clear();
                return Ok(Some(value));
            }
            std::thread::sleep(EVERY);
        }
        bar.finish_and_clear();
        Ok(None)
    }
}
