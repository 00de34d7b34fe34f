//! Files of `name value` lines: `/proc/meminfo`, `/proc/vmstat`, a node's meminfo, a cgroup's memory.stat.
//!
//! Which signal a name is comes from the catalogue. The kernel prints the same names in the same order every time, so
//! the answer for line *i* is remembered and only compared afterwards: no hashing in steady state.

use std::collections::HashMap;

use timeline::{Row, SignalId, signals};

use crate::error::{First, ParseError};
use crate::text;

/// Where a field's value goes.
#[derive(Debug, Clone, Copy)]
struct Target {
    signal: SignalId,
    scale: u64,
}

/// Reads one file's `name value` lines into a row.
#[derive(Debug)]
pub(crate) struct Fields {
    file: &'static str,
    by_name: HashMap<&'static [u8], Target>,
    /// What the lines of the last text were: name and target.
    remembered: Vec<(Vec<u8>, Option<Target>)>,
}

impl Fields {
    /// For a file that the catalogue names as a source.
    pub(crate) fn of(file: &'static str) -> Self {
        let by_name = signals::field_of(file)
            .map(|(field, signal, def)| {
                let target = Target {
                    signal,
                    scale: def.scale,
                };
                (field.as_bytes(), target)
            })
            .collect();
        Self {
            file,
            by_name,
            remembered: Vec::new(),
        }
    }

    /// Reads `text`. Names that the catalogue does not know go to `unknown`. Lines without a value are skipped;
    /// a value that is no number is an error, and the other lines are read all the same.
    pub(crate) fn parse(
        &mut self,
        text: &[u8],
        row: &mut Row,
        mut unknown: impl FnMut(&str, u64),
    ) -> Result<(), ParseError> {
        let mut first = First::default();
        for (count, line) in text::lines(text) {
            let Some((name, rest)) = split_name(line) else {
                continue;
            };
            let Some(value) = leading_number(rest) else {
                if !text::trim(rest).is_empty() {
                    first.note(|| ParseError::new(self.file, count, "a number", text::trim(rest)));
                }
                continue;
            };
            match self.target(count - 1, name) {
                Some(target) => match value.checked_mul(target.scale) {
                    Some(value) => row.set_raw(target.signal, value),
                    None => first.note(|| {
                        ParseError::new(
                            self.file,
                            count,
                            "a size below 2^64 bytes",
                            text::trim(rest),
                        )
                    }),
                },
                None => unknown(&text::lossy(name), value),
            }
        }
        first.into_result()
    }

    fn target(&mut self, index: usize, name: &[u8]) -> Option<Target> {
        if let Some((known, target)) = self.remembered.get(index)
            && known == name
        {
            return *target;
        }
        let target = self.by_name.get(name).copied();
        // A hostile file may have any number of lines; a kernel's has a few hundred.
        if index < 1024 {
            if index >= self.remembered.len() {
                self.remembered.resize(index + 1, (Vec::new(), None));
            }
            self.remembered[index] = (name.to_vec(), target);
        }
        target
    }
}

/// `MemFree:    12 kB` and `pswpin 12` into name and rest.
fn split_name(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = memchr::memchr3(b' ', b':', b'\t', line)?;
    let (name, rest) = line.split_at(end);
    (!name.is_empty()).then(|| (name, &rest[1..]))
}

/// The number at the start of `rest`, which must end there or at a blank.
fn leading_number(rest: &[u8]) -> Option<u64> {
    let start = rest.iter().position(|b| *b != b' ' && *b != b'\t')?;
    let rest = &rest[start..];
    let end = rest
        .iter()
        .position(|b| *b == b' ' || *b == b'\t')
        .unwrap_or(rest.len());
    text::number(&rest[..end])
}
