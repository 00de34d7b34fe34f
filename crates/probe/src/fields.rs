//! Files of `name value` lines: `/proc/meminfo`, `/proc/vmstat`, a node's meminfo, a cgroup's memory.stat.
//!
//! The catalogue maps names to signals. The kernel prints the same names in the same order every time, so each name
//! remembers which one followed it, and a line is compared only with the expected name: no splitting, search or hashing
//! in steady state, 10 ns per line. An unexpected line costs a lookup and is expected from then on.

use std::collections::HashMap;
use std::hash::BuildHasher;
use std::ops::Range;

use timeline::{Row, SignalId, signals};

use crate::error::{First, ParseError};
use crate::text;

/// The target of a field's value.
#[derive(Debug, Clone, Copy)]
enum FieldTarget {
    /// The signal's reading, with the value's scale in the signal's unit.
    Reading(SignalId, u32),
    /// One of several fields that are summed; the index is that of the sum.
    Part(u16),
    /// Not in the catalogue under this name.
    Unknown,
    /// Known, but not used here.
    Unwanted,
}

/// A known name of the file: only 16 bytes, as a recorder that wakes up with cold caches waits for all of them.
#[derive(Debug, Clone, Copy)]
struct Name {
    target: FieldTarget,
    /// Where the name begins in [`Fields::written`], and its length including its `:` or blank.
    start: u32,
    length: u16,
    /// The name that followed in the last text.
    next: u16,
}

impl Name {
    fn place(self) -> Range<usize> {
        let start = self.start as usize;
        start..start + usize::from(self.length)
    }
}

/// A signal that is the sum of several fields.
#[derive(Debug)]
struct FieldSum {
    signal: SignalId,
    scale: u32,
    of_this_text: Option<u64>,
    /// Whether a part in this text is not a number, so that there is no sum.
    lacks_a_part: bool,
}

/// Reads one file's `name value` lines into a row.
#[derive(Debug)]
pub(crate) struct Fields {
    file: &'static str,
    by_field: HashMap<&'static str, (SignalId, u32)>,
    /// Maps a name to the catalogue's field that it is a part of.
    part_of: fn(&str) -> Option<&'static str>,
    is_unwanted: fn(&str) -> bool,
    /// The known names. The first is empty: it stands for the start of the text.
    names: Vec<Name>,
    /// The text of the names, one after the other, each with the `:` or blank that follows it in the file.
    written: String,
    /// Indexes of the names by their hash: separate strings would lie between the data that every sample reads.
    by_hash: HashMap<u64, u16>,
    sums: Vec<FieldSum>,
}

impl Fields {
    /// A hostile file may have any number of names; a kernel's file has a few hundred.
    const NAMES_MAX: usize = 1024;
    /// Initial capacity for names, so that they are adjacent in memory.
    const USUAL_NAMES: usize = 256;
    /// A longer name is not the kernel's and is not stored.
    const NAME_LEN_MAX: usize = 255;
    /// The index of the empty name: the start of the text.
    const START: u16 = 0;

    /// Creates a reader for a file that the catalogue names as a source.
    pub(crate) fn for_file(file: &'static str) -> Self {
        let mut names = Vec::with_capacity(Self::USUAL_NAMES);
        names.push(Name { target: FieldTarget::Unwanted, start: 0, length: 0, next: Self::START });
        Self {
            file,
            by_field: signals::field_of(file)
                .filter_map(|(field, signal, def)| {
                    // Scales are 1, 512 and 1024.
                    Some((field, (signal, u32::try_from(def.scale).ok()?)))
                })
                .collect(),
            part_of: |_| None,
            is_unwanted: |_| false,
            names,
            written: String::with_capacity(Self::USUAL_NAMES * 24),
            by_hash: HashMap::new(),
            sums: Vec::new(),
        }
    }

    /// Sets which names are parts of a field of the catalogue: their values are summed.
    pub(crate) fn adding_up(mut self, part_of: fn(&str) -> Option<&'static str>) -> Self {
        self.part_of = part_of;
        self
    }

    /// Sets which known names are skipped, as the catalogue does not have them for this file.
    pub(crate) fn without(mut self, is_unwanted: fn(&str) -> bool) -> Self {
        self.is_unwanted = is_unwanted;
        self
    }

    /// Reads `text`. Names that the catalogue does not know go to `unknown`. Lines without a value are skipped; a value
    /// that is not a number is an error, and the other lines are still read.
    pub(crate) fn parse(
        &mut self,
        text: &[u8],
        row: &mut Row,
        mut unknown: impl FnMut(&str, u64),
    ) -> Result<(), ParseError> {
        self.parse_after(b"", text, row, &mut unknown)
    }

    /// Like [`parse`](Self::parse) for lines that begin with `prefix`; others are skipped.
    pub(crate) fn parse_after(
        &mut self,
        prefix: &[u8],
        text: &[u8],
        row: &mut Row,
        // Not generic: each copy of this code would be loaded into a cold cache.
        unknown: &mut dyn FnMut(&str, u64),
    ) -> Result<(), ParseError> {
        let mut first = First::default();
        let mut last = Self::START;
        let mut count = 0;
        let mut rest = text;
        while !rest.is_empty() {
            count += 1;
            let expected = self.names[usize::from(last)].next;
            if let Some(line) = strip_prefix(rest, prefix)
                && let Some((value, length)) = self.usual_value(expected, line)
                && self.record(expected, value, row, unknown).is_ok()
            {
                rest = &line[length..];
                last = expected;
                continue;
            }
            let end = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
            let line = &rest[..end];
            rest = rest.get(end + 1..).unwrap_or_default();
            match self.other_line(prefix, line, row, unknown) {
                Ok(None) => {}
                Ok(Some(found)) => {
                    self.names[usize::from(last)].next = found;
                    last = found;
                }
                Err((expected, found)) => {
                    first.note(|| ParseError::new(self.file, count, expected, found));
                }
            }
        }
        for sum in &mut self.sums {
            let value = sum.of_this_text.take();
            if let (Some(value), false) = (value, std::mem::take(&mut sum.lacks_a_part)) {
                row.set_raw(sum.signal, value);
            }
        }
        first.into_result()
    }

    /// Reads a line that is unexpected or in another form. Returns the index of its name; `None` if it has no value; or
    /// the malformed text and what was expected.
    #[cold]
    fn other_line<'a>(
        &mut self,
        prefix: &[u8],
        line: &'a [u8],
        row: &mut Row,
        unknown: &mut dyn FnMut(&str, u64),
    ) -> Result<Option<u16>, (&'static str, &'a [u8])> {
        let Some((name, separator, words)) = strip_prefix(line, prefix).and_then(split_name) else {
            return Ok(None);
        };
        let Some(word) = text::words(words).next() else {
            return Ok(None);
        };
        let Some(name) = self.find(name, separator) else {
            return Ok(None);
        };
        let value = text::number(word).ok_or("a number");
        match value.and_then(|value| self.record(name, value, row, unknown)) {
            Ok(()) => Ok(Some(name)),
            Err(expected) => {
                if let FieldTarget::Part(sum) = self.names[usize::from(name)].target {
                    self.sums[usize::from(sum)].lacks_a_part = true;
                }
                Err((expected, text::trim(words)))
            }
        }
    }

    /// Returns the value and the length of a line in its usual form, `name 12` or `name:   12 kB` with a line end;
    /// `None` if it has another form or name.
    #[inline(always)]
    fn usual_value(&self, name: u16, line: &[u8]) -> Option<(u64, usize)> {
        let name = self.names[usize::from(name)].place();
        let name = self.written.as_bytes().get(name)?;
        if !begins_with(line, name) {
            return None;
        }
        let mut at = name.len();
        while matches!(line.get(at), Some(b' ' | b'\t')) {
            at += 1;
        }
        let (value, digits) = text::leading_number(line.get(at..)?)?;
        at += digits;
        match line.get(at..)? {
            [b'\n', ..] => Some((value, at + 1)),
            [b' ', b'k', b'B', b'\n', ..] => Some((value, at + 4)),
            _ => None,
        }
    }

    /// Stores a value in its target, or returns the bound that it exceeds.
    #[inline(always)]
    fn record(
        &mut self,
        name: u16,
        value: u64,
        row: &mut Row,
        unknown: &mut dyn FnMut(&str, u64),
    ) -> Result<(), &'static str> {
        let name = self.names[usize::from(name)];
        match name.target {
            FieldTarget::Reading(signal, scale) => row.set_raw(signal, scaled(value, scale)?),
            FieldTarget::Part(sum) => {
                let sum = &mut self.sums[usize::from(sum)];
                let value = scaled(value, sum.scale)?;
                let before = sum.of_this_text.unwrap_or(0);
                sum.of_this_text = Some(before.checked_add(value).ok_or("a sum below 2^64")?);
            }
            FieldTarget::Unknown => {
                unknown(self.name(name), value);
            }
            FieldTarget::Unwanted => {}
        }
        Ok(())
    }

    /// Returns a name without its final `:` or blank.
    fn name(&self, name: Name) -> &str {
        let Range { start, end } = name.place();
        let name = self.written.get(start..end.saturating_sub(1));
        name.unwrap_or_default()
    }

    /// Returns the index of a name and remembers it. `None` for an unknown name beyond the limit, and for one that is
    /// not valid text: the kernel has neither.
    fn find(&mut self, name: &[u8], separator: u8) -> Option<u16> {
        let name = std::str::from_utf8(name).ok()?;
        let hash = self.by_hash.hasher().hash_one(name);
        if let Some(found) = self.by_hash.get(&hash) {
            let known = self.name(self.names[usize::from(*found)]);
            return (known == name).then_some(*found);
        }
        let is_one_too_many = self.names.len() > Self::NAMES_MAX || name.len() > Self::NAME_LEN_MAX;
        if is_one_too_many && !self.by_field.contains_key(name) {
            return None;
        }
        let start = u32::try_from(self.written.len()).ok()?;
        let found = u16::try_from(self.names.len()).ok()?;
        self.written.push_str(name);
        self.written.push(char::from(separator));
        let target = self.target(name);
        self.names.push(Name {
            target,
            start,
            length: u16::try_from(name.len() + 1).ok()?,
            next: Self::START,
        });
        self.by_hash.insert(hash, found);
        Some(found)
    }

    fn target(&mut self, name: &str) -> FieldTarget {
        if let Some((signal, scale)) = self.by_field.get(name) {
            return FieldTarget::Reading(*signal, *scale);
        }
        let whole = (self.part_of)(name).and_then(|field| self.by_field.get(field));
        if let Some((signal, scale)) = whole {
            let known = self.sums.iter().position(|sum| sum.signal == *signal);
            let sum = known.unwrap_or_else(|| {
                self.sums.push(FieldSum {
                    signal: *signal,
                    scale: *scale,
                    of_this_text: None,
                    lacks_a_part: false,
                });
                self.sums.len() - 1
            });
            // There are fewer sums than signals in the catalogue.
            return u16::try_from(sum).map_or(FieldTarget::Unknown, FieldTarget::Part);
        }
        if (self.is_unwanted)(name) {
            return FieldTarget::Unwanted;
        }
        FieldTarget::Unknown
    }
}

/// Removes the prefix, which is empty for most files.
#[inline(always)]
fn strip_prefix<'a>(line: &'a [u8], prefix: &[u8]) -> Option<&'a [u8]> {
    if prefix.is_empty() {
        return Some(line);
    }
    line.strip_prefix(prefix)
}

/// Whether `line` begins with `name`. Names have 8 to 32 bytes, which are compared in two blocks that may overlap: no
/// loop, and no call.
#[inline(always)]
fn begins_with(line: &[u8], name: &[u8]) -> bool {
    let Some(line) = line.get(..name.len()) else {
        return false;
    };
    match name.len() {
        8..=16 => {
            line.first_chunk::<8>() == name.first_chunk()
                && line.last_chunk::<8>() == name.last_chunk()
        }
        17..=32 => {
            line.first_chunk::<16>() == name.first_chunk()
                && line.last_chunk::<16>() == name.last_chunk()
        }
        _ => line == name,
    }
}

/// Converts a value to the signal's unit; the error is the bound that it exceeds.
#[inline(always)]
fn scaled(value: u64, scale: u32) -> Result<u64, &'static str> {
    let scaled = value.checked_mul(scale.into()).ok_or("a size below 2^64 bytes")?;
    // The kernel prints a counter below zero as almost 2^64; it is not a reading.
    if scaled > i64::MAX.unsigned_abs() {
        return Err("a number below 2^63");
    }
    Ok(scaled)
}

/// Splits `MemFree:    12 kB` or `pswpin 12` into name, separator and rest.
fn split_name(line: &[u8]) -> Option<(&[u8], u8, &[u8])> {
    let end = memchr::memchr3(b' ', b':', b'\t', line)?;
    let (name, rest) = line.split_at(end);
    let (separator, rest) = rest.split_first()?;
    (!name.is_empty()).then_some((name, *separator, rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use timeline::signals::{MEM_ACTIVE, MEM_ACTIVE_FILE, MEM_FREE, MEM_TOTAL, MEMINFO};
    use units::Bytes;

    fn parse(fields: &mut Fields, text: &str) -> (Row, Vec<(String, u64)>, Option<String>) {
        let mut row = Row::default();
        let mut unknown = Vec::new();
        let result = fields.parse(text.as_bytes(), &mut row, |name, value| {
            unknown.push((name.to_owned(), value));
        });
        (row, unknown, result.err().map(|error| error.to_string()))
    }

    #[test]
    fn lines_may_come_go_and_change_places_between_texts() {
        let mut fields = Fields::for_file(MEMINFO);
        for text in [
            "MemTotal: 8 kB\nMemFree: 4 kB\nNew: 3\nActive: 2 kB\n",
            "MemTotal: 8 kB\nMemFree: 4 kB\nNew: 3\nActive: 2 kB\n",
            "Active: 2 kB\nNew: 3\nMemFree: 4 kB\nMemTotal: 8 kB",
            "New: 3\nMemFree:\t4 kB\n\nMemTotal: 8 kB\nno value\nActive: 2 kB\n",
            "MemFree: 4 kB\nMemTotal: 8 kB\nActive: 2 kB\nNew: 3 kB extra\n",
        ] {
            let (row, unknown, _) = parse(&mut fields, text);
            for (signal, kib) in [(MEM_TOTAL, 8), (MEM_FREE, 4), (MEM_ACTIVE, 2)] {
                assert_eq!(row.get(signal), Some(Bytes::from_kib(kib)), "{text}");
            }
            assert_eq!(row.iter().count(), 3, "{text}");
            assert_eq!(unknown, [("New".to_owned(), 3)], "{text}");
        }
    }

    #[test]
    fn a_name_that_begins_like_the_expected_one_is_another() {
        let mut fields = Fields::for_file(MEMINFO);
        parse(&mut fields, "Active: 1 kB\n");
        let (row, _, _) = parse(&mut fields, "Active(file): 2 kB\n");
        assert_eq!(row.get(MEM_ACTIVE), None);
        assert_eq!(row.get(MEM_ACTIVE_FILE), Some(Bytes::from_kib(2)));
    }

    #[test]
    fn a_bad_line_is_the_same_error_whether_it_was_expected_or_not() {
        for (line, message) in [
            ("-5 kB", "line 2: expected a number, found `-5 kB`"),
            ("1180591620717411303424 kB", "line 2: expected a number"),
            ("18446744073709551615 kB", "line 2: expected a size below 2^64 bytes"),
            ("9007199254740992 kB", "line 2: expected a number below 2^63"),
            ("12kB", "line 2: expected a number, found `12kB`"),
        ] {
            let mut fields = Fields::for_file(MEMINFO);
            let text = format!("MemTotal: 8 kB\nMemFree: {line}\nActive: 2 kB\n");
            for good in ["", "MemTotal: 8 kB\nMemFree: 4 kB\nActive: 2 kB\n"] {
                parse(&mut fields, good);
                let (row, _, error) = parse(&mut fields, &text);
                let error = error.unwrap();
                assert!(error.contains(message), "{error}");
                assert_eq!(row.get(MEM_FREE), None);
                assert_eq!(row.get(MEM_ACTIVE), Some(Bytes::from_kib(2)));
            }
        }
    }

    #[test]
    fn a_flood_of_names_is_bounded() {
        let mut fields = Fields::for_file(MEMINFO);
        let flood: String = (0..5_000).map(|n| format!("name{n} {n}\n")).collect();
        let (row, unknown, error) = parse(&mut fields, &(flood + "MemFree: 4 kB\n"));
        assert_eq!(error, None);
        assert_eq!(row.get(MEM_FREE), Some(Bytes::from_kib(4)));
        assert_eq!(unknown.len(), Fields::NAMES_MAX);
        assert!(fields.names.len() <= Fields::NAMES_MAX + 2);
    }
}
