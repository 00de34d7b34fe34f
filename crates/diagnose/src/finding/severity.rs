//! How much a finding matters, and how sure it is.

use schemars::JsonSchema;
use serde::Serialize;
use units::Ratio;

/// How much a finding matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Worth knowing; never changes the verdict.
    Info,
    /// Something is slower or nearer to an edge than it should be.
    Warning,
    /// Work stands still, or processes were or will be killed.
    Critical,
}

impl Severity {
    /// Returns it as a word within a sentence.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Critical => "critical",
        }
    }

    /// The severity of this word.
    pub fn by_word(word: &str) -> Option<Self> {
        [Self::Info, Self::Warning, Self::Critical].into_iter().find(|it| it.word() == word)
    }

    /// Returns a warning if it does harm, else info.
    pub(crate) const fn warning_if(hurts: bool) -> Self {
        if hurts { Self::Warning } else { Self::Info }
    }

    /// Returns critical if `is_severe`, else a warning.
    pub(crate) const fn critical_if(is_severe: bool) -> Self {
        if is_severe { Self::Critical } else { Self::Warning }
    }
}

/// How sure a finding is, and why.
#[derive(Debug, Clone, PartialEq)]
pub struct Confidence {
    /// From 0 to 1. At 0.9 and above it is *confirmed*, at 0.6 and above *probable*, below that *possible*.
    pub value: f64,
    /// What it rests on, and what would settle the matter.
    pub why: String,
}

/// How sure a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Sureness {
    /// From 0.9.
    Confirmed,
    /// From 0.6.
    Probable,
    /// Below.
    Possible,
}

impl Confidence {
    /// Returns the step of its value.
    pub fn sureness(&self) -> Sureness {
        Sureness::of(Ratio::new(self.value))
    }

    /// Returns the step as a word, for assertions.
    #[cfg(test)]
    pub(crate) fn word(&self) -> &'static str {
        self.sureness().word()
    }
}

impl Sureness {
    /// Returns the step of a confidence.
    pub fn of(confidence: Ratio) -> Self {
        match confidence.get() {
            0.9.. => Self::Confirmed,
            0.6.. => Self::Probable,
            _ => Self::Possible,
        }
    }

    /// Returns it as a word within a sentence.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Confirmed => "confirmed",
            Self::Probable => "probable",
            Self::Possible => "possible",
        }
    }
}
