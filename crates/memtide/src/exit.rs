//! Exit codes, for cron, Nagios and CI.

use std::process::ExitCode;

use report::Answer;
use report::model::headroom::FitAnswer;
use report::model::{Direction, Level};

/// The exit code, by the monitoring-plugins convention. `check` uses all four, and so does `headroom` (fits, tight, does not
/// fit, unknown); `compare` ends with 1 if it became worse; other commands end with 0 or 3.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Success; for `check`, no finding is a warning or worse.
    Ok = 0,
    /// At least one warning.
    Warning = 1,
    /// At least one critical finding.
    Critical = 2,
    /// Unknown: bad usage, an unreadable source, too little data.
    Unknown = 3,
}

impl Exit {
    /// Returns the worse of two codes: critical, then unknown, then warning.
    pub(crate) fn worse(self, other: Self) -> Self {
        let rank = |exit| match exit {
            Self::Ok => 0,
            Self::Warning => 1,
            Self::Unknown => 2,
            Self::Critical => 3,
        };
        if rank(other) > rank(self) { other } else { self }
    }
}

impl From<Level> for Exit {
    fn from(verdict: Level) -> Self {
        match verdict {
            Level::Ok => Self::Ok,
            Level::Warning => Self::Warning,
            Level::Critical => Self::Critical,
            Level::Unknown => Self::Unknown,
        }
    }
}

impl From<&Answer> for Exit {
    /// The code of a source's answer; a source that could not be read is unknown.
    fn from(answer: &Answer) -> Self {
        answer.report().map_or(Self::Unknown, |report| report.verdict.into())
    }
}

impl From<FitAnswer> for Exit {
    fn from(answer: FitAnswer) -> Self {
        match answer {
            FitAnswer::Fits => Self::Ok,
            FitAnswer::Tight => Self::Warning,
            FitAnswer::DoesNotFit => Self::Critical,
            FitAnswer::FitsSoFar | FitAnswer::Unknown => Self::Unknown,
        }
    }
}

impl From<Direction> for Exit {
    fn from(direction: Direction) -> Self {
        match direction {
            Direction::Better | Direction::Same | Direction::Different => Self::Ok,
            Direction::Worse => Self::Warning,
            Direction::Unknown => Self::Unknown,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_that_is_critical_outdoes_a_source_that_says_nothing() {
        use Exit::{Critical, Ok, Unknown, Warning};
        for (one, other, worse) in [
            (Ok, Warning, Warning),
            (Warning, Unknown, Unknown),
            (Unknown, Critical, Critical),
            (Ok, Ok, Ok),
        ] {
            assert_eq!(one.worse(other), worse);
            assert_eq!(other.worse(one), worse);
        }
    }
}
