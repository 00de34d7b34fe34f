//! What was wrong with a source, in words, each thing once and not without end.

/// Collects problems.
#[derive(Debug, Default)]
pub struct Problems {
    texts: Vec<String>,
    dropped: usize,
}

impl Problems {
    /// More than this many say nothing new.
    const MOST: usize = 20;

    /// Notes a problem.
    pub fn note(&mut self, text: impl Into<String>) {
        let text = text.into();
        if self.texts.contains(&text) {
            return;
        }
        if self.texts.len() < Self::MOST {
            self.texts.push(text);
        } else {
            self.dropped += 1;
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
