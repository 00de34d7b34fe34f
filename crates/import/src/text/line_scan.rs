//! One search of a text for the words that blocks begin with, shared by all forms: a form is asked about the few lines
//! that have a word of it. Asking each form about each line reads 3 MB/s, the search 500 MB/s.

use aho_corasick::AhoCorasick;

/// What a line must have so that a block may begin there.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BlockStart {
    /// Words of which one stands in the first lines.
    pub(crate) words: &'static [&'static str],
    /// How many first lines these are.
    pub(crate) lines: usize,
    /// Another sign in the lines: blocks of figures have no words. Each line of a text is asked, with at most
    /// [`OR_LINES_MAX`](Self::OR_LINES_MAX) from it on.
    pub(crate) or: Option<fn(&[&str]) -> bool>,
    /// Words of a command above the block: its output needs no words.
    pub(crate) commands: &'static [&'static str],
}

impl BlockStart {
    /// A test must not read on to the end of a block: it would take the square.
    pub(crate) const OR_LINES_MAX: usize = 4;

    /// A block that has one of the words in its first line.
    pub(crate) const fn with(words: &'static [&'static str]) -> Self {
        Self { words, lines: 1, or: None, commands: &[] }
    }

    /// Whether a line has one of the words.
    pub(crate) fn is_in(&self, line: &str) -> bool {
        self.words.iter().any(|word| line.contains(word))
    }
}

/// Finds the words of up to 64 forms.
#[derive(Debug)]
pub(crate) struct LineSearch {
    automaton: AhoCorasick,
    /// The forms of each word, as bits.
    forms: Vec<u64>,
}

impl LineSearch {
    /// Prepares the search. `None` if the words cannot be searched for; then each form is asked about each line.
    pub(crate) fn new<'a>(forms: impl Iterator<Item = &'a BlockStart>) -> Option<Self> {
        let mut words: Vec<(&str, u64)> = Vec::new();
        for (form, begins) in forms.enumerate() {
            for word in begins.words {
                match words.iter_mut().find(|(known, _)| known == word) {
                    Some((_, forms)) => *forms |= 1 << form,
                    None => words.push((word, 1 << form)),
                }
            }
        }
        let automaton = AhoCorasick::builder()
            .kind(Some(aho_corasick::AhoCorasickKind::DFA))
            .build(words.iter().map(|(word, _)| word))
            .ok()?;
        Some(Self { automaton, forms: words.iter().map(|(_, forms)| *forms).collect() })
    }

    /// The forms with a word in each of some lines, as bits. These are parts of `text`, in its order.
    pub(crate) fn forms_of(&self, text: &str, lines: &[&str]) -> Vec<u64> {
        let mut found = vec![0; lines.len()];
        let start_of = |line: &str| (line.as_ptr() as usize).saturating_sub(text.as_ptr() as usize);
        let start = lines.first().map_or(0, |line| start_of(line));
        let end_of = |line: &str| start_of(line).saturating_sub(start) + line.len();
        let searched = text.get(start..).unwrap_or_default();
        let searched = lines.last().and_then(|line| searched.get(..end_of(line)));
        let mut at = 0;
        let mut end = lines.first().map_or(0, |line| end_of(line));
        for word in self.automaton.find_overlapping_iter(searched.unwrap_or_default()) {
            while word.end() > end && at + 1 < lines.len() {
                at += 1;
                end = end_of(lines[at]);
            }
            if let (Some(line), Some(forms)) =
                (found.get_mut(at), self.forms.get(word.pattern().as_usize()))
            {
                *line |= forms;
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_has_the_forms_of_its_words() {
        let forms = [BlockStart::with(&["Mem", "kB"]), BlockStart::with(&["Mem", "swpd"])];
        let search = LineSearch::new(forms.iter()).unwrap();
        let text = "Mem: 7kBprose swpdx";
        let lines = [&text[..8], &text[8..13], &text[13..13], &text[13..18]];
        assert_eq!(search.forms_of(text, &lines), [0b11, 0, 0, 0b10]);
        assert_eq!(search.forms_of(text, &lines[1..3]), [0, 0]);
        assert_eq!(search.forms_of(text, &lines[3..]), [0b10]);
        assert_eq!(search.forms_of("", &[]), [0_u64; 0]);
    }
}
