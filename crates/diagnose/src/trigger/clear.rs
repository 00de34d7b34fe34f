//! How near a quiet host came to a trigger: the sentence of a rule that found nothing.

use std::cmp::Ordering;

use timeline::Condition;
use units::{Count, Quantity, Span};

use super::evaluate::{Subject, ThresholdValues};
use super::reading::{Numbers, Predicate, ThresholdTest};
use super::{FoundBy, Subjects, While};
use crate::evidence::{Evidence, Missing};
use crate::finding::ThresholdSide;

impl While {
    /// Returns why it held nowhere for long enough. For the entity that came nearest: the first part that never held,
    /// else the longest time that all parts held.
    pub(crate) fn clear(&self, subjects: &[Subject<'_>]) -> String {
        if subjects.is_empty() {
            return match self.scope {
                Subjects::Host => "nothing was measured".to_owned(),
                Subjects::Each(entity, _) => format!("no {} to check", entity.name()),
            };
        }
        let mut nearest: Option<(Subject<'_>, Near)> = None;
        for subject in subjects {
            let Some(came) = self.came(*subject) else {
                continue;
            };
            let is_nearer = |(_, known): &(Subject<'_>, Near)| came.compared(known).is_gt();
            if nearest.as_ref().is_none_or(is_nearer) {
                nearest = Some((*subject, came));
            }
        }
        let (of, near) = nearest.map_or((subjects[0], None), |(of, near)| (of, Some(near)));
        let near = near.map_or_else(|| NEVER_TOGETHER.to_owned(), |near| near.text);
        format!("{}{near}", self.named(of, subjects.len()))
    }

    /// Returns `cgroup: 12, nearest /app; `.
    fn named(&self, nearest: Subject<'_>, count: usize) -> String {
        let (Subjects::Each(entity, _), Some(of)) = (self.scope, nearest.of) else {
            return String::new();
        };
        let number = Count::new(u64::try_from(count).unwrap_or(u64::MAX));
        match count {
            1 => format!("{}: {number}; ", entity.name()),
            _ => {
                let name = Some(&of.label).filter(|label| !label.is_empty());
                let name = name.unwrap_or(&of.key);
                format!("{}: {number}, nearest {name}; ", entity.name())
            }
        }
    }

    /// Returns how near it came in an entity; `None` if unknown.
    fn came(&self, subject: Subject<'_>) -> Option<Near> {
        if let Some(miss) = self.when.never(subject) {
            return Some(miss);
        }
        let longest = self.when.holds(subject).ok()?.longest_run();
        let longest = longest.map_or(Span::ZERO, |run| run.duration());
        let peak = self.when.rarest(subject).unwrap_or_default();
        let text = match longest {
            Span::ZERO => format!("{peak}{NEVER_TOGETHER}"),
            longest => format!(
                "{peak}for {longest} at most, or seen too rarely; it takes {}",
                self.at_least
            ),
        };
        Some(Near { all_held: Some(longest), share: 1.0, text })
    }
}

const NEVER_TOGETHER: &str = "its conditions never held together";

impl FoundBy {
    /// Returns why nothing was found: how near the host came to `could`, if there is such a predicate.
    pub(crate) fn clear(&self, cx: &Evidence<'_>) -> String {
        let host = Subject { cx, of: None };
        let Some(could) = &self.could else {
            return String::new();
        };
        could.never(host).map_or_else(
            || {
                let peak = could.rarest(host).unwrap_or_default();
                format!("{peak}but nothing else showed it")
            },
            |near| near.text,
        )
    }
}

/// How near an entity came to a predicate that held nowhere for long enough.
#[derive(Debug)]
pub(crate) struct Near {
    /// If each part held at some time: the longest time that all of them held.
    all_held: Option<Span>,
    /// The share of its threshold that the part that never held reached.
    share: f64,
    text: String,
}

impl Near {
    fn compared(&self, other: &Self) -> Ordering {
        let share = self.share.total_cmp(&other.share);
        self.all_held.cmp(&other.all_held).then(share)
    }
}

impl Predicate {
    /// Returns the part that never held; `None` if each part held at some time.
    pub(crate) fn never(&self, subject: Subject<'_>) -> Option<Near> {
        match self {
            Self::Compare(comparison) => comparison.never(subject).ok()?,
            Self::All(parts) => parts.iter().find_map(|part| part.never(subject)),
            Self::Any(parts) | Self::Also(parts) => {
                // What was not measured says nothing.
                let never = parts.iter().filter_map(|part| part.measured_never(subject));
                never.collect::<Option<Vec<Near>>>()?.into_iter().next()
            }
            Self::Measured(this, other) => match (this.measured_never(subject), other) {
                (Some(never), _) => never,
                (None, Some(other)) => other.never(subject),
                (None, None) => None,
            },
        }
    }

    /// Returns what [`never`](Self::never) returns; `None` if it cannot be evaluated.
    fn measured_never(&self, subject: Subject<'_>) -> Option<Option<Near>> {
        match self {
            // Its sides are evaluated once for both.
            Self::Compare(comparison) => comparison.never(subject).ok(),
            _ => self.holds(subject).is_ok().then(|| self.never(subject)),
        }
    }

    /// Returns the nearest miss of the part that held for the least time, followed by a comma.
    fn rarest(&self, subject: Subject<'_>) -> Option<String> {
        match self {
            Self::Compare(comparison) => {
                Some(format!("{}, ", comparison.nearest_miss(subject)?.text))
            }
            Self::All(parts) | Self::Any(parts) | Self::Also(parts) => {
                let misses = parts.iter().filter_map(|part| {
                    let duration = part.holds(subject).as_ref().map(Condition::total).ok()?;
                    Some((duration, part.rarest(subject)?))
                });
                misses.min_by_key(|(duration, _)| *duration).map(|(_, text)| text)
            }
            Self::Measured(this, other) => match (this.holds(subject), other) {
                (Err(_), Some(other)) => other.rarest(subject),
                _ => this.rarest(subject),
            },
        }
    }
}

impl ThresholdTest {
    /// Returns its nearest miss; `None` if it held at some time.
    ///
    /// # Errors
    /// [`Missing`] if the source lacks what it reads.
    fn never(&self, subject: Subject<'_>) -> Result<Option<Near>, Missing> {
        let (left, right) = self.sides(subject)?;
        let held = self.holds_where(&left, &right).ever_holds();
        Ok(if held { None } else { self.nearest_miss_of(&left, &right) })
    }

    fn nearest_miss(&self, subject: Subject<'_>) -> Option<Near> {
        let (left, right) = self.sides(subject).ok()?;
        self.nearest_miss_of(&left, &right)
    }

    /// Returns `swapped in: at most 0.4 MiB/s, threshold 1 MiB/s`, by the values of its sides.
    fn nearest_miss_of(&self, left: &Numbers, right: &ThresholdValues) -> Option<Near> {
        let (word, best) = match self.side {
            ThresholdSide::From => ("at most", left.max()?),
            ThresholdSide::Below => ("at least", left.min()?),
        };
        let (value, index) = best;
        let threshold = right.at(index)?;
        let print = self.print;
        Some(Near {
            all_held: None,
            share: self.share(value.as_f64(), threshold),
            text: format!(
                "{}: {word} {}, threshold {}",
                self.name,
                print(value.as_f64()),
                print(threshold)
            ),
        })
    }

    /// Returns the share of the threshold that was reached.
    fn share(&self, value: f64, threshold: f64) -> f64 {
        let (part, whole) = match self.side {
            ThresholdSide::From => (value, threshold),
            ThresholdSide::Below => (threshold, value),
        };
        if whole > 0.0 { part / whole } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use timeline::Entity;
    use timeline::signals::{CGROUP_CURRENT, MEM_AVAILABLE, MEM_FREE};
    use units::Bytes;

    use super::*;
    use crate::rules::testing::Case;
    use crate::trigger::{LEVEL, Trigger, all, gauge};

    const MIB: fn(u64) -> Bytes = Bytes::from_mib;

    /// The text for cgroups with these MiB in each of 20 seconds; the trigger needs 100 MiB for 10 s.
    fn clear_text(groups: &[(&str, [u64; 21])]) -> String {
        let case = groups.iter().fold(Case::over(20), |case, (key, mib)| {
            let steps = mib.map(MIB);
            case.gauge_steps_of(Entity::Cgroup, key, CGROUP_CURRENT, &steps)
        });
        let large = gauge(CGROUP_CURRENT).at_least("memory", MIB(100));
        let Trigger::While(trigger) = Trigger::on(Subjects::each_cgroup(), LEVEL, large) else {
            unreachable!("a predicate is watched")
        };
        case.with(|cx| {
            let all = cx.timeline.entities(Entity::Cgroup);
            let subjects: Vec<_> = all.map(|of| Subject { cx, of: Some(of) }).collect();
            trigger.clear(&subjects)
        })
    }

    #[test]
    fn of_many_entities_the_nearest_to_the_threshold_is_told() {
        assert_eq!(
            clear_text(&[("/a", [10; 21]), ("/b", [90; 21]), ("/c", [50; 21])]),
            "cgroup: 3, nearest /b; memory: at most 90 MiB, threshold 100 MiB"
        );
        assert_eq!(
            clear_text(&[("/a", [10; 21])]),
            "cgroup: 1; memory: at most 10 MiB, threshold 100 MiB"
        );
    }

    #[test]
    fn nearer_than_any_level_is_what_was_reached_for_a_while_the_longer_the_nearer() {
        let for_seconds = |seconds: usize| {
            let mut mib = [10; 21];
            mib[5..=5 + seconds].fill(120);
            mib
        };
        let text = clear_text(&[("/a", [99; 21]), ("/b", for_seconds(3)), ("/c", for_seconds(5))]);
        assert!(text.starts_with("cgroup: 3, nearest /c; "), "{text}");
        assert!(text.contains("for 6 s at most"), "{text}");
    }

    #[test]
    fn what_is_found_in_another_way_says_how_near_its_signs_came() {
        let found = FoundBy {
            find: |_| Ok(Vec::new()),
            could: Some(all![
                gauge(MEM_FREE).at_most("free", MIB(100)),
                gauge(MEM_AVAILABLE).at_most("available", MIB(100)),
            ]),
            scope: Subjects::Host,
            none: None,
        };
        let clear_text = |available: [u64; 3]| {
            Case::over(2)
                .gauge(MEM_FREE, MIB(20))
                .gauge_steps(MEM_AVAILABLE, &available.map(MIB))
                .with(|cx| found.clear(cx))
        };
        assert_eq!(clear_text([300, 200, 300]), "available: at least 200 MiB, threshold 100 MiB");
        assert_eq!(
            clear_text([300, 90, 300]),
            "available: at least 90 MiB, threshold 100 MiB, but nothing else showed it"
        );
    }
}
