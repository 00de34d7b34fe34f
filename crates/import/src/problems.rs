//! What was wrong with a source, in words, each thing once and not without end.

use timeline::{Entity, Evicted, Timeline};
use units::Count;

/// Collects problems.
#[derive(Debug, Default)]
pub struct Problems {
    texts: Vec<String>,
    dropped: usize,
}

impl Problems {
    /// More than this many say nothing new.
    const MOST: usize = 20;
    /// Characters of one: a quoted piece of a hostile line may be as long as the line.
    const LONGEST: usize = 300;

    /// Notes a problem.
    pub fn note(&mut self, text: impl Into<String>) {
        let mut text: String = text.into();
        if let Some((end, _)) = text.char_indices().nth(Self::LONGEST) {
            text.truncate(end);
            text.push('…');
        }
        if self.texts.contains(&text) {
            return;
        }
        if self.texts.len() < Self::MOST {
            self.texts.push(text);
        } else {
            self.dropped += 1;
        }
    }

    /// Notes which entities had no room in memory.
    pub fn note_crowd(&mut self, timeline: &Timeline) {
        if timeline.dropped_entity_rows() > 0 {
            self.note(format!(
                "{} rows of processes and control groups were dropped to bound memory",
                timeline.dropped_entity_rows()
            ));
        }
        for entity in Entity::ALL {
            let Evicted { count, at_most } = timeline.evicted(entity);
            if count > 0 {
                let none_held_more =
                    at_most.map_or_else(String::new, |held| format!(", none of more than {held}"));
                self.note(format!(
                    "{} {} that had ended are told by name only, to bound memory{none_held_more}; a shorter range tells each",
                    Count::new(u64::try_from(count).unwrap_or(u64::MAX)),
                    plural(entity.name())
                ));
            }
        }
    }

    /// The problems, in the order in which they were met.
    pub fn into_texts(mut self) -> Vec<String> {
        if self.dropped > 0 {
            self.texts
                .push(format!("{} more problems like these", self.dropped));
        }
        self.texts
    }
}

fn plural(name: &str) -> String {
    match name.ends_with('s') {
        true => format!("{name}es"),
        false => format!("{name}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_problem_is_cut_and_a_repeated_one_is_kept_once() {
        let mut problems = Problems::default();
        problems.note("é".repeat(10_000));
        problems.note("é".repeat(20_000));
        let texts = problems.into_texts();
        assert_eq!(texts.len(), 1);
        assert_eq!(texts[0].chars().count(), 301);
    }
}
