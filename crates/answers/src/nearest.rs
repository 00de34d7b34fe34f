//! Names that resemble what was typed.

use diagnose::rules;

/// So many rules are proposed: a list of all that share a word would be as long as no help.
const RULES_MAX: usize = 3;
/// One letter in so many may be wrong: an engineering choice, as typing errors are one or two letters of a name.
const LETTERS_PER_ERROR: usize = 3;

/// In what a name resembles what was typed, the most likely first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum NameLikeness {
    /// A few letters are wrong.
    FewLetters,
    /// It has a whole word of it.
    Word,
    /// One contains the other.
    Part,
}

/// Returns the ids of at most three rules that may be meant, the nearest first: they contain what was typed, have a word of it,
/// or differ in few letters.
pub fn nearest_rules(typed: &str) -> Vec<&'static str> {
    let typed = typed.to_lowercase();
    let letters = typed.chars().count();
    let mut ranked: Vec<_> = rules::ALL
        .iter()
        .filter_map(|rule| {
            let wrong = letters_to_change(rule.id, &typed);
            let of_id = |word: &str| rule.id.split('-').any(|other| other == word);
            let likeness = if wrong <= letters / LETTERS_PER_ERROR {
                NameLikeness::FewLetters
            } else if typed.split('-').any(of_id) {
                NameLikeness::Word
            } else if is_within(&typed, rule.id) {
                NameLikeness::Part
            } else {
                return None;
            };
            Some((likeness, wrong, rule.id))
        })
        .collect();
    ranked.sort_unstable();
    // Beside the name that was meant, one that only shares a word with it would be noise.
    if let Some((NameLikeness::FewLetters, ..)) = ranked.first() {
        ranked.retain(|(likeness, ..)| *likeness == NameLikeness::FewLetters);
    }
    ranked.into_iter().map(|(.., id)| id).take(RULES_MAX).collect()
}

/// Whether one is a part of the other; one or two letters are a part of anything.
fn is_within(typed: &str, id: &str) -> bool {
    const LETTERS_MIN: usize = 3;
    typed.len() >= LETTERS_MIN && (id.contains(typed) || typed.contains(id))
}

/// Levenshtein's distance of two names of at most 128 letters each; what is longer counts by its begin.
pub(crate) fn letters_to_change(a: &str, b: &str) -> usize {
    const LETTERS_MAX: usize = 128;
    let b: Vec<char> = b.chars().take(LETTERS_MAX).collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, letter) in a.chars().take(LETTERS_MAX).enumerate() {
        let mut diagonal = i;
        if let Some(first) = row.first_mut() {
            *first = i + 1;
        }
        for j in 0..b.len() {
            let changed = diagonal + usize::from(b[j] != letter);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_typing_error_names_the_rule_that_was_meant() {
        assert_eq!(nearest_rules("swap-trash"), ["swap-thrash"]);
        assert_eq!(nearest_rules("swap-thrashing"), ["swap-thrash"]);
        assert_eq!(nearest_rules("OOM-globl"), ["oom-global"]);
    }

    #[test]
    fn a_word_names_three_rules_that_have_it() {
        for word in ["thrash", "swap", "oom", "oom-kill"] {
            let near = nearest_rules(word);
            assert_eq!(near.len(), RULES_MAX, "{word}: {near:?}");
            let first = word.split('-').next().unwrap();
            assert!(near.iter().all(|id| id.contains(first)), "{word}: {near:?}");
        }
    }

    #[test]
    fn what_resembles_no_rule_names_none() {
        for typed in ["", "-", "xyz", "a", "nothing-of-the-kind"] {
            assert_eq!(nearest_rules(typed), [""; 0], "{typed}");
        }
    }

    #[test]
    fn the_letters_to_change_are_counted() {
        for (a, b, letters) in [
            ("", "", 0),
            ("abc", "abc", 0),
            ("ngnix", "nginx", 2),
            ("a", "", 1),
            ("kitten", "sitting", 3),
        ] {
            assert_eq!(letters_to_change(a, b), letters, "{a} {b}");
        }
    }
}
