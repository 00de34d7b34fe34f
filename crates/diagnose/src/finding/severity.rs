//! How much a finding matters, and how sure it is.

/// How much a finding matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Worth knowing; never changes the verdict.
    Info,
    /// Something is slower, or closer to a limit, than it should be.
    Warning,
    /// Work stalls, or processes were or will be killed.
    Critical,
}

impl Severity {
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

/// How sure a finding is, in steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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
        if self.value >= 0.9 {
            Sureness::Confirmed
        } else if self.value >= 0.6 {
            Sureness::Probable
        } else {
            Sureness::Possible
        }
    }

    /// Returns the step as a word, for assertions.
    #[cfg(test)]
    pub(crate) fn word(&self) -> &'static str {
        match self.sureness() {
            Sureness::Confirmed => "confirmed",
            Sureness::Probable => "probable",
            Sureness::Possible => "possible",
        }
    }
}
