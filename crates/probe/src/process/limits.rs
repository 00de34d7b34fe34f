//! Limits of a process on memory: `/proc/PID/limits`.
//!
//! A line is the limit's name in 25 columns, its soft and its hard value, `unlimited` or a number, and the unit. Since
//! 2.6.24; readable by every user. `Max resident set` has had no effect since 2.4.30. Cost: one read of 1.3 KB.

use units::{Bytes, Limit};

use crate::error::{First, ParseError, ReadError};
use crate::kernel_file::Root;
use crate::text;

/// A soft limit, which binds, and the hard limit up to which the process may raise it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SoftHard {
    /// What binds.
    pub soft: Limit,
    /// How far it may be raised without a capability.
    pub hard: Limit,
}

/// Limits on memory; absent where the file has no such line.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct ProcessLimits {
    /// `RLIMIT_AS`: all mappings together.
    pub address_space: Option<SoftHard>,
    /// `RLIMIT_DATA`: private writable memory.
    pub data: Option<SoftHard>,
    /// `RLIMIT_STACK`: of the first thread; glibc gives the others as much.
    pub stack: Option<SoftHard>,
    /// `RLIMIT_RSS`, which the kernel ignores.
    pub resident: Option<SoftHard>,
    /// `RLIMIT_MEMLOCK`.
    pub locked: Option<SoftHard>,
}

impl ProcessLimits {
    /// Reads the limits of a process.
    ///
    /// # Errors
    /// [`ReadError`] if the process has ended.
    pub fn read(root: &Root, pid: u32) -> Result<(Self, Option<ParseError>), ReadError> {
        Ok(Self::parse(&root.read(&format!("/proc/{pid}/limits"))?))
    }

    /// Returns the limits in a text, and the first malformed line.
    pub fn parse(text: &[u8]) -> (Self, Option<ParseError>) {
        let mut limits = Self::default();
        let mut first = First::default();
        for (number, line) in text::lines(text) {
            let Some((limit, values)) = limits.named(line) else {
                continue;
            };
            match soft_hard(values) {
                Some(pair) => *limit = Some(pair),
                None => {
                    let expected = "a soft and a hard limit";
                    first.note(|| ParseError::new("/proc/PID/limits", number, expected, line));
                }
            }
        }
        (limits, first.into_result().err())
    }

    fn named<'a>(&mut self, line: &'a [u8]) -> Option<(&mut Option<SoftHard>, &'a [u8])> {
        let names: [(&[u8], &mut Option<SoftHard>); 5] = [
            (b"Max address space", &mut self.address_space),
            (b"Max data size", &mut self.data),
            (b"Max stack size", &mut self.stack),
            (b"Max resident set", &mut self.resident),
            (b"Max locked memory", &mut self.locked),
        ];
        let mut found =
            names.into_iter().filter_map(|(name, limit)| Some((limit, line.strip_prefix(name)?)));
        found.next()
    }
}

fn soft_hard(values: &[u8]) -> Option<SoftHard> {
    let mut values = text::words(values).map(limit);
    Some(SoftHard { soft: values.next()??, hard: values.next()?? })
}

fn limit(word: &[u8]) -> Option<Limit> {
    match word {
        b"unlimited" => Some(Limit::Unlimited),
        _ => Some(Limit::Bytes(Bytes::new(text::number(word)?))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hostile;

    const TEXT: &[u8] =
        b"Limit                     Soft Limit           Hard Limit           Units     \n\
Max cpu time              unlimited            unlimited            seconds   \n\
Max data size             unlimited            unlimited            bytes     \n\
Max stack size            8388608              unlimited            bytes     \n\
Max resident set          unlimited            unlimited            bytes     \n\
Max locked memory         8388608              16777216             bytes     \n\
Max address space         4294967296           unlimited            bytes     \n\
Max nice priority         0                    0                    \n";

    #[test]
    fn each_line_is_a_soft_and_a_hard_limit() {
        let (limits, malformed) = ProcessLimits::parse(TEXT);
        assert_eq!(malformed, None);
        let of = |bytes| Limit::Bytes(Bytes::new(bytes));
        let stack = limits.stack.unwrap();
        assert_eq!((stack.soft, stack.hard), (of(8_388_608), Limit::Unlimited));
        assert_eq!(limits.locked.unwrap().hard, of(16_777_216));
        assert_eq!(limits.address_space.unwrap().soft, of(1 << 32));
        assert_eq!(limits.data.unwrap().soft, Limit::Unlimited);
    }

    #[test]
    fn a_bad_or_missing_line_leaves_its_limit_absent() {
        let text = b"Max stack size            -1   unlimited  bytes\nMax data size  7 8 bytes\n";
        let (limits, malformed) = ProcessLimits::parse(text);
        assert!(limits.stack.is_none() && limits.locked.is_none());
        assert!(limits.data.is_some());
        assert!(malformed.unwrap().to_string().contains("line 1"));
    }

    #[test]
    fn no_text_makes_it_panic() {
        hostile::feed(TEXT, |text| {
            ProcessLimits::parse(text);
        });
    }
}
