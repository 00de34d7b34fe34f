//! When and in what a rule's condition held, and what that cost.

use timeline::{Entity, Stretch};
use units::Span;

/// In what an incident happened.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Scope {
    /// The kind of entity.
    pub entity: Entity,
    /// Its key, as in the timeline; empty for the host.
    pub key: String,
}

impl Scope {
    /// The host as a whole.
    pub const fn host() -> Self {
        Self {
            entity: Entity::Host,
            key: String::new(),
        }
    }
}

/// What an incident cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Harm {
    /// Processes that were killed.
    pub killed: u64,
    /// How long tasks waited; `None` if the source does not measure it, or no task need wait.
    pub waited: Option<Span>,
}

impl Harm {
    /// Of both together.
    pub(crate) fn plus(self, other: Self) -> Self {
        Self {
            killed: self.killed + other.killed,
            waited: match (self.waited, other.waited) {
                (Some(a), Some(b)) => Some(a.plus(b)),
                (a, b) => a.or(b),
            },
        }
    }
}

/// One of the times that a finding is about.
#[derive(Debug, Clone, PartialEq)]
pub struct Occasion {
    /// From when to when.
    pub stretch: Stretch,
    /// How much it mattered then.
    pub severity: super::Severity,
    /// How sure that is.
    pub confidence: f64,
    /// What it cost.
    pub harm: Harm,
    /// What happened then.
    pub title: String,
}

/// Incidents too short and too cheap for a finding each.
#[derive(Debug, Clone, PartialEq)]
pub struct Bursts {
    /// The rule that they are of.
    pub id: &'static str,
    /// All of them, in order.
    pub stretches: Vec<Stretch>,
    /// How long tasks waited in all of them; `None` where that is not measured.
    pub waited: Option<Span>,
}

impl Bursts {
    /// How many.
    pub fn count(&self) -> usize {
        self.stretches.len()
    }

    /// The longest of them, the first of several.
    pub fn longest(&self) -> Option<&Stretch> {
        self.stretches
            .iter()
            .rev()
            .max_by_key(|stretch| stretch.duration())
    }
}
