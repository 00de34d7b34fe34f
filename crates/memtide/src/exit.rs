//! Exit codes: what cron, Nagios and CI read.

use std::process::ExitCode;

use diagnose::Level;

/// How memtide ends. `check` follows the monitoring-plugins convention; other commands end with 0 or 3.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Exit {
    /// Done; for `check`: memory is enough as far as it was seen.
    Ok = 0,
    /// At least one warning.
    Warning = 1,
    /// Nothing can be said: bad usage, an unreadable source, too little data.
    Unknown = 3,
    /// At least one critical finding.
    Critical = 2,
}

impl Exit {
    /// The code of a verdict.
    pub(crate) fn of(level: Level) -> Self {
        match level {
            Level::Ok => Self::Ok,
            Level::Warning => Self::Warning,
            Level::Critical => Self::Critical,
            Level::Unknown => Self::Unknown,
        }
    }

    /// The worse of two sources: critical before unknown before warning.
    pub(crate) fn worse(self, other: Self) -> Self {
        let rank = |exit| match exit {
            Self::Ok => 0,
            Self::Warning => 1,
            Self::Unknown => 2,
            Self::Critical => 3,
        };
        if rank(other) > rank(self) {
            other
        } else {
            self
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}
