//! Programs of a job, by name: a compiler that runs a thousand times is one step.

use std::collections::HashMap;

use schemars::JsonSchema;
use serde::Serialize;
use units::{Bytes, Count};

/// Names that have a step of their own.
const STEPS_MAX: usize = 1000;

/// The step of all programs beyond that.
const OTHERS: &str = "others";

/// What the processes of one name did.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, JsonSchema)]
pub struct SeenStep {
    /// The name of its processes.
    pub name: String,
    /// How many there were; of those that live for milliseconds some are missed without trace points.
    pub processes: Count,
    /// What they asked to read of files.
    pub asked_bytes: Bytes,
    /// What of it came from disks.
    pub read_bytes: Bytes,
    /// What they made dirty.
    pub written_bytes: Bytes,
}

/// Steps by name.
#[derive(Debug, Default)]
pub(super) struct Steps {
    steps: Vec<SeenStep>,
    by_name: HashMap<String, u16>,
}

impl Steps {
    /// The step of this name.
    pub(super) fn of(&mut self, name: &str) -> u16 {
        if let Some(step) = self.by_name.get(name) {
            return *step;
        }
        if self.steps.len() >= STEPS_MAX && name != OTHERS {
            return self.of(OTHERS);
        }
        let step = u16::try_from(self.steps.len()).unwrap_or(u16::MAX);
        self.steps.push(SeenStep { name: name.to_owned(), ..SeenStep::default() });
        self.by_name.insert(name.to_owned(), step);
        step
    }

    pub(super) fn get(&mut self, step: u16) -> &mut SeenStep {
        &mut self.steps[usize::from(step)]
    }

    pub(super) fn finish(self) -> Vec<SeenStep> {
        self.steps
    }
}
