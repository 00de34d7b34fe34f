//! The title of a finding: a sentence that can stand alone, and sentences that add to it.

use std::fmt;
use std::ops::Deref;

/// The title of a finding. Read as a `str` it is the whole title.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Title {
    text: String,
    /// Length of the first sentence in bytes.
    first: usize,
}

impl Title {
    /// Returns the first sentence: the effect, the number, the cause.
    pub fn first(&self) -> &str {
        self.text.get(..self.first).unwrap_or_default()
    }

    /// Returns the sentences after the first; empty if there are none.
    pub fn more(&self) -> &str {
        self.text.get(self.first..).unwrap_or_default().trim_start()
    }

    /// Adds sentences; nothing if `more` is empty.
    #[must_use]
    pub(crate) fn then(mut self, more: impl AsRef<str>) -> Self {
        let more = more.as_ref().trim_start();
        if !more.is_empty() {
            self.text.push(' ');
            self.text.push_str(more);
        }
        self
    }

    /// Adds a clause to the first sentence, before its full stop.
    #[must_use]
    pub(crate) fn adding(mut self, clause: &str) -> Self {
        let end = self.first().trim_end_matches('.').len();
        self.text.insert_str(end, clause);
        self.first += clause.len();
        self
    }

    /// Puts words before the first sentence.
    #[must_use]
    pub(crate) fn after(mut self, words: &str) -> Self {
        self.text.insert_str(0, words);
        self.first += words.len();
        self
    }
}

/// A title of one sentence.
impl<T: Into<String>> From<T> for Title {
    fn from(sentence: T) -> Self {
        let text = sentence.into();
        Self { first: text.len(), text }
    }
}

impl Deref for Title {
    type Target = str;

    fn deref(&self) -> &str {
        &self.text
    }
}

#[cfg(test)]
impl PartialEq<&str> for Title {
    fn eq(&self, other: &&str) -> bool {
        self.text == *other
    }
}

impl fmt::Display for Title {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_sentence_stands_alone() {
        let title = Title::from("Swap is full: 0.5 MiB is free.").then(" There is no zram.");
        assert_eq!(title.first(), "Swap is full: 0.5 MiB is free.");
        assert_eq!(title.more(), "There is no zram.");
        assert_eq!(&*title, "Swap is full: 0.5 MiB is free. There is no zram.");
        assert_eq!(Title::from("One.").then("").more(), "");
        let longer = title.adding("; it was 2 GiB");
        assert_eq!(longer.first(), "Swap is full: 0.5 MiB is free; it was 2 GiB.");
        assert_eq!(longer.more(), "There is no zram.");
    }
}
