//! A trigger: what must hold for an incident, as data.
//!
//! One definition has five readers: incidents sample by sample ([`evaluate`]), the minutes of a long recording in which it
//! could hold ([`screen`]), PromQL ([`promql`]), the words of the rule's documentation ([`words`]), and the sentence that says
//! how near a quiet host came to it ([`clear`]).

mod clear;
mod evaluate;
mod occurrence;
mod promql;
mod reading;
mod screen;
mod words;

use timeline::{Entity, EntitySeries};
use units::Span;

pub(crate) use crate::evidence::STALL;
use crate::evidence::{Evidence, Missing};
use crate::finding::Outcome;

pub(crate) use evaluate::Subject;
pub(crate) use occurrence::{Occurrence, holding, joined, lasting, subjects, wherever};
pub(crate) use reading::{
    Numbers, Predicate, Reading, computed, computed_of, computed_within, fact, gauge, limit,
    most_of_others, over, ram, rate, stall, total,
};
pub(crate) use screen::minutes as screen;

/// When an incident of a rule begins and ends.
#[derive(Debug, Clone)]
pub(crate) enum Trigger {
    /// As long as a predicate holds.
    While(While),
    /// At times that a function finds: kills, kernel reports, levels that rose.
    Found(FoundBy),
    /// Never: the rule is asked once, about all that was watched.
    Source,
}

/// A predicate over the readings of an entity, and for how long it must hold.
#[derive(Debug, Clone)]
pub(crate) struct While {
    pub(crate) scope: Subjects,
    pub(crate) when: Predicate,
    /// What lasts less is no evidence.
    pub(crate) at_least: Span,
}

/// A question about all that was watched.
pub(crate) type SourceQuestion = fn(&Evidence<'_>) -> Result<Outcome, Missing>;

/// Incidents that no predicate at one instant expresses.
#[derive(Debug, Clone)]
pub(crate) struct FoundBy {
    pub(crate) find: fn(&Evidence<'_>) -> Result<Vec<Occurrence>, Missing>,
    /// What holds in a minute in which one begins; `None` if only kernel reports show it.
    pub(crate) could: Option<Predicate>,
    pub(crate) scope: Subjects,
    /// The outcome without an occurrence: why there is none, or a finding that belongs to no interval. `None`: how near it came to `could`.
    pub(crate) none: Option<SourceQuestion>,
}

/// Which entities a trigger is about.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Subjects {
    /// The host as a whole.
    Host,
    /// Each entity of a kind that the function accepts.
    Each(Entity, fn(&Evidence<'_>, &EntitySeries) -> bool),
}

impl Subjects {
    /// Every cgroup.
    pub(crate) const fn each_cgroup() -> Self {
        Self::Each(Entity::Cgroup, |_, _| true)
    }

    /// The kind of entity.
    pub(crate) const fn entity(self) -> Entity {
        match self {
            Self::Host => Entity::Host,
            Self::Each(entity, _) => entity,
        }
    }
}

/// A level or a setting that held for this long was no passing dip.
pub(crate) const LEVEL: Span = Span::from_secs(10);

impl While {
    /// What is shorter is not even a burst: half of an incident of a flow, all of one of a level.
    pub(crate) fn shortest(&self) -> Span {
        if self.when.is_flow() {
            self.at_least.times(0.5)
        } else {
            self.at_least
        }
    }
}

impl Trigger {
    /// On the host, as long as this holds.
    pub(crate) fn on_host(at_least: Span, when: Predicate) -> Self {
        Self::on(Subjects::Host, at_least, when)
    }

    /// In each such entity, as long as this holds.
    pub(crate) fn on(scope: Subjects, at_least: Span, when: Predicate) -> Self {
        Self::While(While {
            scope,
            when,
            at_least,
        })
    }

    /// The kind of entity that it is about.
    pub(crate) fn entity(&self) -> Entity {
        match self {
            Self::While(it) => it.scope.entity(),
            Self::Found(it) => it.scope.entity(),
            Self::Source => Entity::Host,
        }
    }

    /// How long an incident lasts at least; a moment is enough for what is found.
    pub(crate) fn at_least(&self) -> Span {
        match self {
            Self::While(it) => it.at_least,
            Self::Found(_) | Self::Source => Span::ZERO,
        }
    }

    /// What is watched: the predicate of a long recording's screen.
    pub(crate) fn predicate(&self) -> Option<(&Predicate, Subjects)> {
        match self {
            Self::While(it) => Some((&it.when, it.scope)),
            Self::Found(it) => Some((it.could.as_ref()?, it.scope)),
            Self::Source => None,
        }
    }
}

/// All of these hold.
macro_rules! all {
    ($($part:expr),+ $(,)?) => { crate::trigger::Predicate::All(vec![$($part),+]) };
}

/// One of these holds.
macro_rules! any {
    ($($part:expr),+ $(,)?) => { crate::trigger::Predicate::Any(vec![$($part),+]) };
}

pub(crate) use {all, any};
