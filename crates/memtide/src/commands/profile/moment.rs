//! `--when`: waits for the right moment.

use std::time::{Duration, Instant};

use ::profile::{ProfileCondition, RightMoments};
use units::Span;

use crate::command_error::{CommandError, ErrorContext};
use crate::interrupt;
use crate::output::Output;

const EVERY: Duration = Duration::from_secs(1);
/// A condition that stays true is profiled again after so long.
const AGAIN_AFTER: Span = Span::from_mins(5);

pub(super) struct RightMoment {
    moments: RightMoments,
    condition: ProfileCondition,
    until: Instant,
}

impl RightMoment {
    pub(super) fn new(condition: ProfileCondition, at_most: Span) -> Self {
        Self {
            moments: RightMoments::new(condition.clone(), AGAIN_AFTER),
            condition,
            until: Instant::now() + Duration::from_secs_f64(at_most.as_secs_f64()),
        }
    }

    /// Waits until the condition is met, and returns its value; `None` where that takes too long or is interrupted.
    pub(super) fn wait(&mut self, output: &Output) -> Result<Option<String>, CommandError> {
        let is_interrupted = interrupt::listen_to_any();
        let bar = output.busy("");
        self.moments.begin_again();
        while Instant::now() < self.until && !is_interrupted() {
            let (is_due, value) = self.moments.check().with_context(|| {
                format!("this kernel does not count what {} is about", self.condition)
            })?;
            bar.set_message(format!("waiting for {} · now {value}", self.condition));
            if is_due {
                bar.finish_and_clear();
                return Ok(Some(value));
            }
            std::thread::sleep(EVERY);
        }
        bar.finish_and_clear();
        Ok(None)
    }
}
