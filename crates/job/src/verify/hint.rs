//! Remedies that a job is tried with.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;
use units::Bytes;

/// A remedy, as it is typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JobHint {
    /// What lies behind the job is dropped from the cache: `fadvise`.
    Fadvise,
    /// Each read and write drops its pages itself (`RWF_DONTCACHE`, Linux 6.14): `dontcache`.
    DontCache,
    /// A limit on the job's cgroup: `memory-high=SIZE`.
    MemoryHigh(Bytes),
    /// Another command that does the same: `command='…'`.
    Command(String),
}

/// What was typed is no remedy.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "`{0}` is no hint: write fadvise, dontcache, memory-high=SIZE or command='ANOTHER COMMAND'"
)]
pub struct NoSuchHint(String);

impl FromStr for JobHint {
    type Err = NoSuchHint;

    fn from_str(text: &str) -> Result<Self, NoSuchHint> {
        let wrong = || NoSuchHint(text.to_owned());
        match text.split_once('=') {
            None if text == "fadvise" => Ok(Self::Fadvise),
            None if text == "dontcache" => Ok(Self::DontCache),
            Some(("memory-high", size)) => {
                let size: Bytes = size.parse().map_err(|_| wrong())?;
                if size == Bytes::ZERO { Err(wrong()) } else { Ok(Self::MemoryHigh(size)) }
            }
            Some(("command", line)) if !line.trim().is_empty() => {
                Ok(Self::Command(line.to_owned()))
            }
            _ => Err(wrong()),
        }
    }
}

impl fmt::Display for JobHint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fadvise => f.write_str("fadvise"),
            Self::DontCache => f.write_str("dontcache"),
            Self::MemoryHigh(size) => write!(f, "memory-high={size}"),
            Self::Command(line) => f.write_str(line),
        }
    }
}

impl JobHint {
    /// What is done to the command, in a sentence.
    pub(super) fn what_is_applied(&self, is_v1: bool) -> String {
        match self {
            Self::Fadvise => "fadvise: memtide drops what lies behind the command's positions in its \
                              files from the cache (sync_file_range, POSIX_FADV_DONTNEED), as the \
                              program could itself; the command is unchanged."
                .to_owned(),
            Self::DontCache => "dontcache: the kernel hands each read and write of a file to a helper \
                                (seccomp), which makes it with RWF_DONTCACHE; the command is unchanged. \
                                Its time has that detour in it, its CPU time not that of the helper."
                .to_owned(),
            Self::MemoryHigh(size) if is_v1 => format!(
                "memory-high={size}: memory.limit_in_bytes of a cgroup, which is what cgroup v1 has; \
                 where its own memory does not fit, it is killed and not slowed."
            ),
            Self::MemoryHigh(size) => format!("memory-high={size}: memory.high of a cgroup."),
            Self::Command(line) => format!("{line}: run by sh -c."),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hints_are_read_as_typed() {
        for (typed, hint) in [
            ("fadvise", JobHint::Fadvise),
            ("dontcache", JobHint::DontCache),
            ("memory-high=64M", JobHint::MemoryHigh(Bytes::from_mib(64))),
            ("command=tar cz a=b", JobHint::Command("tar cz a=b".to_owned())),
        ] {
            assert_eq!(typed.parse(), Ok(hint), "{typed}");
        }
        for typed in ["", "nocache", "memory-high=", "memory-high=0", "command= ", "fadvise=1"] {
            assert!(typed.parse::<JobHint>().unwrap_err().to_string().contains("is no hint"));
        }
    }
}
