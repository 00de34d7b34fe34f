//! A trigger: the condition of an incident, as data.
//!
//! One definition has five readers: incidents sample by sample ([`evaluate`]), the minutes of a long recording in which
//! it could hold ([`mod@screen`]), PromQL ([`promql`]), the words of the rule's documentation ([`words`]), and the sentence
//! that says how near a quiet host came to it ([`clear`]).

mod clear;
mod evaluate;
mod occurrence;
mod promql;
mod reading;
mod screen;
mod words;

use timeline::{Entity, EntitySeries, NoticeKind};
use units::Span;

pub(crate) use crate::evidence::STALL;
use crate::evidence::{Evidence, Missing};
use crate::finding::Outcome;
use crate::oom::Explained;

pub(crate) use evaluate::Subject;
pub(crate) use occurrence::{Occurrence, holding, joined, lasting, subjects};
pub use promql::{AlertMetrics, PrometheusAlert, RecordedPart};
pub(crate) use reading::{
    Expr, Numbers, Predicate, Reading, computed, computed_of, computed_within, fact, gauge, limit,
    most_of_others, over, ram, rate, stall, total,
};
pub(crate) use screen::minutes as screen;

/// The condition under which an incident of a rule begins and ends.
#[derive(Debug, Clone)]
pub(crate) enum Trigger {
    /// As long as a predicate holds.
    While(While),
    /// At times that a function finds: kills, kernel reports, levels that rose.
    Found(FoundBy),
    /// Never: the rule is evaluated once, about the whole recording.
    Source,
}

/// A predicate over the readings of an entity, and how long it must hold.
#[derive(Debug, Clone)]
pub(crate) struct While {
    pub(crate) scope: Subjects,
    pub(crate) when: Predicate,
    /// An incident is at least this long.
    pub(crate) at_least: Span,
    /// What the story requires besides, as far as the monitoring of a fleet can ask it.
    pub(crate) alert_if: Option<Predicate>,
    /// Kernel reports that are incidents as well, each a moment.
    pub(crate) reported: Option<ReportFilter>,
    /// Messages that are an incident as well.
    pub(crate) noticed: Option<NoticeKind>,
}

/// Whether a kernel report is an incident of a rule.
pub(crate) type ReportFilter = fn(&Explained<'_>) -> bool;

/// A question about the whole recording.
pub(crate) type SourceQuestion = fn(&Evidence<'_>) -> Result<Outcome, Missing>;

/// Incidents that no predicate at one instant can express.
#[derive(Debug, Clone)]
pub(crate) struct FoundBy {
    pub(crate) find: fn(&Evidence<'_>) -> Result<Vec<Occurrence>, Missing>,
    /// What holds in a minute in which an incident begins; `None` if only kernel reports show it.
    pub(crate) could: Option<Predicate>,
    pub(crate) scope: Subjects,
    /// The outcome if there is no occurrence: why, or a finding that belongs to no interval. With `None`, the reason is
    /// how near the host came to `could`.
    pub(crate) none: Option<SourceQuestion>,
}

/// The entities that a trigger is about.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Subjects {
    /// The host as a whole.
    Host,
    /// Each entity of a kind that the function accepts.
    Each(Entity, fn(&Evidence<'_>, &EntitySeries) -> bool),
}

impl Subjects {
    pub(crate) const fn each_cgroup() -> Self {
        Self::Each(Entity::Cgroup, |_, _| true)
    }

    /// Returns the kind of entity.
    pub(crate) const fn entity(self) -> Entity {
        match self {
            Self::Host => Entity::Host,
            Self::Each(entity, _) => entity,
        }
    }
}

/// A level or a setting that lasts this long is not a passing dip.
pub(crate) const LEVEL: Span = Span::from_secs(10);

impl While {
    /// Returns the duration below which it is not even a burst: half of `at_least` for a flow, all of it for a level.
    pub(crate) fn shortest(&self) -> Span {
        if self.when.is_flow() { self.at_least.times(0.5) } else { self.at_least }
    }
}

impl Trigger {
    /// A trigger on the host, as long as `when` holds.
    pub(crate) fn on_host(at_least: Span, when: Predicate) -> Self {
        Self::on(Subjects::Host, at_least, when)
    }

    /// A trigger on each entity of `scope`, as long as `when` holds.
    pub(crate) fn on(scope: Subjects, at_least: Span, when: Predicate) -> Self {
        Self::While(While { scope, when, at_least, alert_if: None, reported: None, noticed: None })
    }

    /// The same trigger, of which an alert fires only where this holds as well.
    pub(crate) fn alert_if(self, also: Predicate) -> Self {
        match self {
            Self::While(it) => Self::While(While { alert_if: Some(also), ..it }),
            other => other,
        }
    }

    /// The same trigger, which also fires on kernel reports of the host.
    pub(crate) fn or_reported(self, is_reported: ReportFilter) -> Self {
        match self {
            Self::While(it) => Self::While(While { reported: Some(is_reported), ..it }),
            other => other,
        }
    }

    /// The same trigger, which also fires on messages of this kind.
    pub(crate) fn or_noticed(self, kind: NoticeKind) -> Self {
        match self {
            Self::While(it) => Self::While(While { noticed: Some(kind), ..it }),
            other => other,
        }
    }

    /// Returns the kind of entity that it is about.
    pub(crate) fn entity(&self) -> Entity {
        match self {
            Self::While(it) => it.scope.entity(),
            Self::Found(it) => it.scope.entity(),
            Self::Source => Entity::Host,
        }
    }

    /// Returns the least duration of an incident; a moment is enough for [`Trigger::Found`].
    pub(crate) fn at_least(&self) -> Span {
        match self {
            Self::While(it) => it.at_least,
            Self::Found(_) | Self::Source => Span::ZERO,
        }
    }

    /// Returns the predicate that screens a long recording.
    pub(crate) fn predicate(&self) -> Option<(&Predicate, Subjects)> {
        match self {
            Self::While(it) => Some((&it.when, it.scope)),
            Self::Found(it) => Some((it.could.as_ref()?, it.scope)),
            Self::Source => None,
        }
    }
}

/// All of these predicates hold.
macro_rules! all {
    ($($part:expr),+ $(,)?) => { crate::trigger::Predicate::All(vec![$($part),+]) };
}

/// At least one of these predicates holds.
macro_rules! any {
    ($($part:expr),+ $(,)?) => { crate::trigger::Predicate::Any(vec![$($part),+]) };
}

pub(crate) use {all, any};
