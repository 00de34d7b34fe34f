//! When and in which entity a rule's condition held, and what that cost.

use std::cmp::Ordering;

use schemars::JsonSchema;
use serde::{Serialize, Serializer};
use timeline::{Entity, Stretch};
use units::Span;

/// In what something happened.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
pub struct Scope {
    /// `host`, `cgroup`, `node`, `disk`, `process`, …
    #[serde(serialize_with = "name_of")]
    #[schemars(with = "String")]
    pub entity: Entity,
    /// Its key, as the kernel gives it; empty for the host.
    pub key: String,
}

fn name_of<S: Serializer>(entity: &Entity, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(entity.name())
}

impl Scope {
    /// The host as a whole.
    pub const fn host() -> Self {
        Self { entity: Entity::Host, key: String::new() }
    }
}

/// What something cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, JsonSchema)]
pub struct Harm {
    /// How long tasks waited; null where the source does not measure it, or nobody need wait.
    #[serde(rename = "waited_s")]
    pub waited: Option<Span>,
    /// How many processes were killed.
    pub killed: u64,
}

/// A killed process is worse than any wait.
impl Ord for Harm {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.killed, self.waited).cmp(&(other.killed, other.waited))
    }
}

impl PartialOrd for Harm {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
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
