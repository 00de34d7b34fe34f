//! The key of a process, `PID@START`: a PID that is used again is another process.

use std::fmt;

use crate::timeline::EntitySeries;

/// The parts of a process's key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessKey<'a> {
    /// The PID; 0 where the source does not show it.
    pub pid: &'a str,
    /// When it began, in clock ticks since boot (`/proc/PID/stat`, field 22); `None` in a key without it.
    pub start_ticks: Option<&'a str>,
}

impl<'a> ProcessKey<'a> {
    /// Splits a key.
    pub fn parse(key: &'a str) -> Self {
        match key.split_once('@') {
            Some((pid, start)) => Self { pid, start_ticks: Some(start) },
            None => Self { pid: key, start_ticks: None },
        }
    }
}

impl fmt::Display for ProcessKey<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.pid)?;
        self.start_ticks.map_or(Ok(()), |start| write!(f, "@{start}"))
    }
}

impl EntitySeries {
    /// Returns the PID of a process.
    pub fn pid(&self) -> &str {
        ProcessKey::parse(&self.key).pid
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_has_a_pid_and_a_start() {
        for (key, pid, start) in [("7@4000", "7", Some("4000")), ("7", "7", None), ("", "", None)] {
            let parsed = ProcessKey::parse(key);
            assert_eq!((parsed.pid, parsed.start_ticks), (pid, start));
            assert_eq!(parsed.to_string(), key);
        }
    }
}
