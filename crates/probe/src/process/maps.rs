//! The mappings of a process: `/proc/PID/maps`. `/proc/PID/smaps` begins each block with the same line.
//!
//! A line is `start-end perms offset device inode   name`, numbers hexadecimal but the inode. The name of a file ends
//! with ` (deleted)` if it was removed; `[heap]`, `[stack]` and the like are the kernel's own names, and `[anon:NAME]`
//! is what the process itself calls anonymous memory (`PR_SET_VMA_ANON_NAME`, 5.17).
//!
//! Cost: about 1 µs for each mapping, under the process's mmap lock for reading, a page of text at a time (since 6.11
//! without it). Needs the right to trace the process.

use std::fs::File;
use std::ops::Range;
use std::path::PathBuf;

use rustix::io::Errno;
use units::Span;

use crate::error::{First, ParseError, ReadError};
use crate::kernel_file::{Root, open, retrying};
use crate::process::timed_read::{NoAnswer, read_within};
use crate::text;

/// One mapping: a range of addresses, what it may be used for, and what lies behind it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Mapping {
    /// Its addresses.
    pub range: Range<u64>,
    /// What it may be used for.
    pub access: Access,
    /// Where in the file it begins, in bytes.
    pub offset: u64,
    /// Major and minor number of the file's device; zeros for anonymous memory.
    pub device: (u32, u32),
    /// The file; 0 for anonymous memory.
    pub inode: u64,
    /// Path of the file or the kernel's name, as bytes; empty for anonymous memory without a name.
    pub name: Vec<u8>,
}

/// What a mapping may be used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Access {
    /// `r`.
    pub read: bool,
    /// `w`.
    pub write: bool,
    /// `x`.
    pub execute: bool,
    /// `s`: writes are visible to other processes; `p`: they are not.
    pub shared: bool,
}

impl Mapping {
    /// Its length in bytes.
    pub const fn size_bytes(&self) -> u64 {
        self.range.end.saturating_sub(self.range.start)
    }

    /// Whether no file lies behind it. The kernel's and the process's own names do not make it a file.
    pub const fn is_anonymous(&self) -> bool {
        self.inode == 0
    }

    /// Whether it is private memory that can be written: where a program's data may be.
    pub const fn is_private_writable(&self) -> bool {
        self.access.write && !self.access.shared
    }

    /// Whether the file was removed after it was mapped.
    pub fn is_deleted(&self) -> bool {
        !self.is_anonymous() && self.name.ends_with(DELETED)
    }

    /// The file's path without the mark of a removed file; `None` for anonymous memory.
    pub fn path(&self) -> Option<&[u8]> {
        let path = self.name.strip_suffix(DELETED).unwrap_or(&self.name);
        (!self.is_anonymous() && path.first() == Some(&b'/')).then_some(path)
    }
}

/// What the kernel appends to the path of a removed file.
pub(crate) const DELETED: &[u8] = b" (deleted)";

/// The mappings of a process in order of address.
#[derive(Debug, Clone, Default)]
pub struct Mappings {
    /// In order of address.
    pub all: Vec<Mapping>,
    /// Mappings beyond [`MAPPINGS_MAX`], which were not read.
    pub left_out: usize,
    /// The first malformed line; the other lines are read.
    pub malformed: Option<ParseError>,
}

/// More mappings than this are not read: 64 times the kernel's default limit for a process (`vm.max_map_count`).
pub const MAPPINGS_MAX: usize = 64 * 65_530;

impl Mappings {
    /// Reads the mappings of a process.
    ///
    /// # Errors
    /// [`ReadError`] if the file cannot be opened or read: the process has ended, or this user may not trace it.
    pub fn read(root: &Root, pid: u32) -> Result<Self, ReadError> {
        let mut mappings = Self::default();
        let mut first = First::default();
        each_line(root, pid, "maps", &mut |number, line| {
            mappings.add(number, line, &mut first);
        })?;
        mappings.malformed = first.into_result().err();
        Ok(mappings)
    }

    /// Returns the mappings in a text.
    pub fn parse(text: &[u8]) -> Self {
        let mut mappings = Self::default();
        let mut first = First::default();
        for (number, line) in text::lines(text) {
            mappings.add(number, line, &mut first);
        }
        mappings.malformed = first.into_result().err();
        mappings
    }

    fn add(&mut self, number: usize, line: &[u8], first: &mut First) {
        match parse_line(line) {
            Some(_) if self.all.len() >= MAPPINGS_MAX => self.left_out += 1,
            Some(mapping) => self.all.push(mapping),
            None => first.note(|| ParseError::new("/proc/PID/maps", number, "a mapping", line)),
        }
    }

    /// Returns the mapping that contains an address.
    pub fn at(&self, address: u64) -> Option<&Mapping> {
        self.within(&(address..address.saturating_add(1))).next()
    }

    /// Returns the mappings that overlap a range, in order of address.
    pub fn within(&self, range: &Range<u64>) -> impl Iterator<Item = &Mapping> {
        let (start, end) = (range.start, range.end);
        let first = self.all.partition_point(|one| one.range.end <= start);
        let rest = self.all.get(first..).unwrap_or_default().iter();
        rest.take_while(move |one| one.range.start < end)
    }
}

/// Calls `each` for every line of a process's file, with its number from 1; a buffer of 64 KiB serves a file of any
/// length. A line that is longer is cut. Waits as long as another task has the process's mmap lock.
pub(crate) fn each_line(
    root: &Root,
    pid: u32,
    name: &str,
    each: &mut dyn FnMut(usize, &[u8]),
) -> Result<(), ReadError> {
    let mut file = FileOfProcess::new(root, pid, name);
    lines(&mut |part| file.read(part), each)
}

/// The same, but waits for at most this long for each part of the file.
pub(crate) fn each_line_within(
    most: Span,
    root: &Root,
    pid: u32,
    name: &str,
    each: &mut dyn FnMut(usize, &[u8]),
) -> Result<(), ReadError> {
    let mut file = FileOfProcess::new(root, pid, name);
    let path = file.path.clone();
    let mut read = |part: FilePart| {
        // The thread has it meanwhile, and for good where it waits too long.
        let mut moved = std::mem::take(&mut file);
        let read = read_within(most, move || (moved.read(part), moved));
        let silent = |why: NoAnswer| ReadError::new(&path, std::io::Error::other(why));
        let (part, back) = read.map_err(silent)?;
        file = back;
        part
    };
    lines(&mut read, each)
}

/// A file of a process that is opened when it is first read: that may wait, too.
#[derive(Default)]
struct FileOfProcess {
    path: PathBuf,
    file: Option<File>,
}

/// What was read of a file so far and is not used up yet.
#[derive(Default)]
struct FilePart {
    bytes: Vec<u8>,
    filled: usize,
    is_last: bool,
}

impl FileOfProcess {
    fn new(root: &Root, pid: u32, name: &str) -> Self {
        Self { path: root.path(&format!("/proc/{pid}/{name}")), file: None }
    }

    /// Reads more behind what is filled.
    fn read(&mut self, mut part: FilePart) -> Result<FilePart, ReadError> {
        let file = match &mut self.file {
            Some(file) => file,
            None => self.file.insert(open(&self.path)?),
        };
        let got = retrying(|| rustix::io::read(&*file, &mut part.bytes[part.filled..]));
        let got = got.map_err(|errno: Errno| ReadError::new(&self.path, errno))?;
        part.filled += got;
        part.is_last = got == 0;
        Ok(part)
    }
}

fn lines(
    read: &mut dyn FnMut(FilePart) -> Result<FilePart, ReadError>,
    each: &mut dyn FnMut(usize, &[u8]),
) -> Result<(), ReadError> {
    let mut number = 0;
    let mut part = FilePart { bytes: vec![0; 64 << 10], ..FilePart::default() };
    loop {
        part = read(part)?;
        let (buffer, filled) = (&mut part.bytes, part.filled);
        let mut start = 0;
        while let Some(length) = memchr::memchr(b'\n', &buffer[start..filled]) {
            number += 1;
            each(number, &buffer[start..start + length]);
            start += length + 1;
        }
        if start < filled && (part.is_last || (start == 0 && filled == buffer.len())) {
            number += 1;
            each(number, &buffer[start..filled]);
            start = filled;
        }
        buffer.copy_within(start..filled, 0);
        part.filled = filled - start;
        if part.is_last {
            return Ok(());
        }
    }
}

/// Returns the mapping of a line; `None` if the line is none.
pub(crate) fn parse_line(line: &[u8]) -> Option<Mapping> {
    let (start, rest) = hexadecimal(line)?;
    let (end, rest) = hexadecimal(rest.strip_prefix(b"-")?)?;
    let rest = rest.strip_prefix(b" ")?;
    let access = Access::parse(rest.first_chunk()?)?;
    let (offset, rest) = hexadecimal(rest.get(4..)?.strip_prefix(b" ")?)?;
    let (major, rest) = hexadecimal(rest.strip_prefix(b" ")?)?;
    let (minor, rest) = hexadecimal(rest.strip_prefix(b":")?)?;
    let rest = rest.strip_prefix(b" ")?;
    let (inode, digits) = text::leading_number(rest)?;
    let name = rest.get(digits..)?.trim_ascii_start();
    (start < end).then_some(Mapping {
        range: start..end,
        access,
        offset,
        device: (u32::try_from(major).ok()?, u32::try_from(minor).ok()?),
        inode,
        name: with_line_feeds(name),
    })
}

/// Returns a path in which `\012` is a line feed again: the only character that the kernel escapes here.
fn with_line_feeds(name: &[u8]) -> Vec<u8> {
    const ESCAPED: &[u8] = br"\012";
    let mut path = Vec::with_capacity(name.len());
    let mut rest = name;
    while let Some(at) = memchr::memmem::find(rest, ESCAPED) {
        path.extend_from_slice(&rest[..at]);
        path.push(b'\n');
        rest = &rest[at + ESCAPED.len()..];
    }
    path.extend_from_slice(rest);
    path
}

impl Access {
    fn parse(letters: &[u8; 4]) -> Option<Self> {
        let flag = |index: usize, set: u8, unset: u8| {
            let letter = letters[index];
            (letter == set || letter == unset).then_some(letter == set)
        };
        Some(Self {
            read: flag(0, b'r', b'-')?,
            write: flag(1, b'w', b'-')?,
            execute: flag(2, b'x', b'-')?,
            shared: flag(3, b's', b'p')?,
        })
    }
}

/// Parses the hexadecimal number at the start of `line`; returns it and what follows.
fn hexadecimal(line: &[u8]) -> Option<(u64, &[u8])> {
    let (value, length) = text::leading_hexadecimal(line)?;
    Some((value, &line[length..]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TEXT: &[u8] = b"\
55d0c8a00000-55d0c8a2d000 r-xp 0002d000 fe:00 1835023                    /usr/bin/a b (deleted)\n\
55d0c9fff000-55d0ca020000 rw-p 00000000 00:00 0                          [heap]\n\
7f2a44000000-7f2a44021000 rw-p 00000000 00:00 0 \n\
7f2a44021000-7f2a48000000 ---p 00000000 00:00 0 \n\
7f2a48000000-7f2a48001000 rw-s 00001000 00:01 9                          /dev/zero\\012x\n\
ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]\n";

    #[test]
    fn a_line_is_a_range_its_access_and_its_file() {
        let mappings = Mappings::parse(TEXT);
        assert_eq!(mappings.malformed, None);
        let [program, heap, arena, reserve, shared, vsyscall] = &mappings.all[..] else {
            panic!("{mappings:?}");
        };
        assert_eq!(program.range, 0x55d0_c8a0_0000..0x55d0_c8a2_d000);
        assert_eq!(
            (program.offset, program.device, program.inode),
            (0x2d000, (0xfe, 0), 1_835_023)
        );
        assert!(program.is_deleted());
        assert_eq!(program.path(), Some(b"/usr/bin/a b".as_slice()));
        assert_eq!((heap.path(), heap.name.as_slice()), (None, b"[heap]".as_slice()));
        assert!(arena.is_private_writable() && arena.is_anonymous() && arena.name.is_empty());
        assert!(!reserve.access.read && !reserve.access.write);
        assert_eq!(shared.name, b"/dev/zero\nx");
        assert!(!shared.is_private_writable() && vsyscall.access.execute);
    }

    #[test]
    fn an_address_finds_its_mapping() {
        let mappings = Mappings::parse(TEXT);
        assert_eq!(mappings.at(0x7f2a_4402_0fff), mappings.all.get(2));
        assert_eq!(mappings.at(0x7f2a_4402_1000), mappings.all.get(3));
        assert_eq!(mappings.at(0x7f2a_0000_0000), None);
    }

    #[test]
    fn a_malformed_line_costs_itself_only() {
        let text = [TEXT, b"7f-7e rw-p 0 0:0 0\n", TEXT].concat();
        let mappings = Mappings::parse(&text);
        assert_eq!(mappings.all.len(), 12);
        let error = mappings.malformed.unwrap().to_string();
        assert!(error.contains("line 7: expected a mapping"), "{error}");
    }

    #[test]
    fn this_process_has_its_program_and_its_stack() {
        let mappings = Mappings::read(&Root::default(), std::process::id()).unwrap();
        let here = TEXT.as_ptr() as u64;
        assert!(mappings.at(here).is_some_and(|one| one.path().is_some()));
        assert!(mappings.all.iter().any(|one| one.name == b"[stack]"));
        assert_eq!((mappings.left_out, mappings.malformed), (0, None));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_panic(bytes: Vec<u8>) {
            Mappings::parse(&bytes);
        }

        #[test]
        fn a_cut_text_loses_lines_only_behind_the_cut(cut in 0..TEXT.len()) {
            let whole = Mappings::parse(TEXT).all;
            let part = Mappings::parse(&TEXT[..cut]).all;
            let full = TEXT[..cut].iter().filter(|b| **b == b'\n').count();
            prop_assert_eq!(&part[..full], &whole[..full]);
        }
    }
}
