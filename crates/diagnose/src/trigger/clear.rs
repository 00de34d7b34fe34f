//! How near a quiet host came to a trigger: the sentence of a rule that found nothing.

use units::{Count, Quantity as _, Span};

use super::evaluate::Subject;
use super::reading::{Comparison, Predicate};
use super::{Found, While};
use crate::evidence::Evidence;
use crate::finding::ThresholdSide;

impl While {
    /// Why it held nowhere for long enough: the first part that never held, else the longest time that all did.
    pub(crate) fn clear(&self, subjects: &[Subject<'_>]) -> String {
        let Some(nearest) = subjects.first() else {
            return match self.scope {
                super::Scope::Host => "nothing was measured".to_owned(),
                super::Scope::Each(entity, _) => format!("no {} to look at", entity.name()),
            };
        };
        // Of many entities the one that came nearest is not worth finding: their number is said.
        let of = match (self.scope, subjects.len()) {
            (super::Scope::Host, _) => String::new(),
            (super::Scope::Each(entity, _), count) => {
                let count = Count::new(u64::try_from(count).unwrap_or(u64::MAX));
                format!("{}: {count}; ", entity.name())
            }
        };
        let never: Vec<String> = subjects
            .iter()
            .filter_map(|subject| self.when.never(*subject))
            .collect();
        match never.first() {
            Some(why) if never.len() == subjects.len() => format!("{of}{why}"),
            _ => format!("{of}{}", self.too_short(*nearest, subjects)),
        }
    }

    fn too_short(&self, nearest: Subject<'_>, subjects: &[Subject<'_>]) -> String {
        let longest = subjects
            .iter()
            .filter_map(|subject| self.when.holds(*subject).ok()?.longest_run())
            .map(|run| run.lasts())
            .max()
            .unwrap_or(Span::ZERO);
        let peak = self.when.first_flow(nearest).unwrap_or_default();
        match longest {
            Span::ZERO => format!("{peak}its conditions never held together"),
            longest => format!(
                "{peak}for {longest} at most, or seen too rarely; it takes {}",
                self.at_least
            ),
        }
    }
}

impl Found {
    /// Why it was not there: how near its signs came, where a predicate says them.
    pub(crate) fn clear(&self, cx: &Evidence<'_>) -> String {
        let host = Subject { cx, of: None };
        let never = self.could.as_ref().and_then(|could| could.never(host));
        never.unwrap_or_default()
    }
}

impl Predicate {
    /// The part that held at no time, in words; `None` where each part held at some time.
    pub(crate) fn never(&self, subject: Subject<'_>) -> Option<String> {
        match self {
            Self::Compare(comparison) => {
                let holds = self.holds(subject).ok()?;
                (!holds.ever_holds()).then(|| comparison.nearest_miss(subject))?
            }
            Self::All(parts) => parts.iter().find_map(|part| part.never(subject)),
            Self::Any(parts) => {
                let never: Option<Vec<String>> =
                    parts.iter().map(|part| part.never(subject)).collect();
                never?.into_iter().next()
            }
            Self::Measured(this, other) => match (this.holds(subject), other) {
                (Ok(_), _) => this.never(subject),
                (Err(_), Some(other)) => other.never(subject),
                (Err(_), None) => None,
            },
        }
    }

    /// How far the first of its parts went.
    fn first_flow(&self, subject: Subject<'_>) -> Option<String> {
        match self {
            Self::Compare(comparison) => Some(format!("{}, ", comparison.nearest_miss(subject)?)),
            Self::All(parts) | Self::Any(parts) => {
                parts.iter().find_map(|part| part.first_flow(subject))
            }
            Self::Measured(this, _) => this.first_flow(subject),
        }
    }
}

impl Comparison {
    /// `swapped in: at most 0.4 MiB/s, threshold 1 MiB/s`.
    fn nearest_miss(&self, subject: Subject<'_>) -> Option<String> {
        let left = self.left.numbers(subject).ok()?;
        let right = self.right.numbers(subject).ok()?;
        let (word, best) = match self.side {
            ThresholdSide::From => ("at most", left.max()?),
            ThresholdSide::Below => ("at least", left.min()?),
        };
        let (value, index) = best;
        let threshold = right.at(index).or_else(|| right.last())?;
        let print = self.print;
        Some(format!(
            "{}: {word} {}, threshold {}",
            self.name,
            print(value.as_f64()),
            print(threshold.as_f64())
        ))
    }
}
