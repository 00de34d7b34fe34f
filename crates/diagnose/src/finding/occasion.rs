//! When and in which entity a rule's condition held, and what that cost.

use timeline::{Entity, Stretch};
use units::Span;

/// The entity in which an incident happened.
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
        Self { entity: Entity::Host, key: String::new() }
    }
}

/// The harm of an incident.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Harm {
    /// Processes that were killed.
    pub killed: u64,
    /// How long tasks waited; `None` if the source does not measure it, or if no task need wait.
    pub waited: Option<Span>,
}

impl Harm {
    /// Returns the harm of both together.
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

/// One of the times at which a finding occurred.
#[derive(Debug, Clone, PartialEq)]
pub struct Occasion {
    /// The interval.
    pub stretch: Stretch,
    /// How severe it was then.
    pub severity: super::Severity,
    /// The confidence, from 0 to 1.
    pub confidence: f64,
    /// What it cost.
    pub harm: Harm,
    /// What happened then.
    pub title: String,
}

/// Bursts of one rule: incidents too short and too cheap for a finding each.
#[derive(Debug, Clone, PartialEq)]
pub struct Bursts {
    /// The rule's id.
    pub id: &'static str,
    /// The interval of each, in order.
    pub stretches: Vec<Stretch>,
    /// How long tasks waited in all of them; `None` if that is not measured.
    pub waited: Option<Span>,
}

impl Bursts {
    /// Returns the number of bursts.
    pub fn count(&self) -> usize {
        self.stretches.len()
    }

    /// Returns the longest of them, the first if several are equal.
    pub fn longest(&self) -> Option<&Stretch> {
        self.stretches.iter().rev().max_by_key(|stretch| stretch.duration())
    }
}
