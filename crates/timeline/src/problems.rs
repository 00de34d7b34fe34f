//! Problems of a source, human-readable, each listed once, and bounded in number.

use crate::{Entity, Evicted, Facts, MemoryBudget, Timeline};
use units::Count;

/// Collects problems.
#[derive(Debug, Default, Clone)]
pub struct Problems {
    texts: Vec<String>,
    dropped: usize,
}

impl Problems {
    /// At most 20 problems are listed; further ones are only counted.
    const PROBLEMS_MAX: usize = 20;
    /// The most characters of a problem, which may quote a hostile line.
    const TEXT_BYTES_MAX: usize = 300;

    /// Notes a problem.
    pub fn note(&mut self, text: impl Into<String>) {
        let mut text: String = text.into();
        if let Some((end, _)) = text.char_indices().nth(Self::TEXT_BYTES_MAX) {
            text.truncate(end);
            text.push('…');
        }
        if self.texts.contains(&text) {
            return;
        }
        if self.texts.len() < Self::PROBLEMS_MAX {
            self.texts.push(text);
        } else {
            self.dropped += 1;
        }
    }

    /// Notes what of a source found no room in memory.
    pub fn note_left_out(&mut self, timeline: &Timeline, facts: &Facts) {
        let left_out = timeline.left_out();
        for (count, what) in [
            (left_out.host_signals, "signals of the host in a part"),
            (left_out.entity_rows, "rows of processes and cgroups"),
            (left_out.reports, "kernel reports"),
            (left_out.events, "events"),
            (facts.changes_left_out(), "changes of settings"),
        ] {
            if count > 0 {
                self.note(format!(
                    "{} {what} are left out: a source may take {} of memory",
                    Count::new(u64::try_from(count).unwrap_or(u64::MAX)),
                    MemoryBudget::SOURCE
                ));
            }
        }
        for entity in Entity::ALL {
            let Evicted { count, at_most } = timeline.evicted(entity);
            if count > 0 {
                let at_most =
                    at_most.map_or_else(String::new, |size| format!(", none larger than {size}"));
                self.note(format!(
                    "{} {} that ended are known by name only, to bound memory{at_most}; a shorter \
                     range shows each",
                    Count::new(u64::try_from(count).unwrap_or(u64::MAX)),
                    plural(entity.name())
                ));
            }
        }
    }

    /// The problems, in order.
    pub fn into_texts(mut self) -> Vec<String> {
        if self.dropped > 0 {
            self.texts.push(format!("{} more problems like these", self.dropped));
        }
        self.texts
    }
}

fn plural(name: &str) -> String {
    let ending = if name.ends_with('s') { "es" } else { "s" };
    format!("{name}{ending}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_problem_is_truncated_and_a_repeated_one_is_listed_once() {
        let mut problems = Problems::default();
        problems.note("é".repeat(10_000));
        problems.note("é".repeat(20_000));
        let texts = problems.into_texts();
        assert_eq!(texts.len(), 1);
        assert_eq!(texts[0].chars().count(), 301);
    }
}
