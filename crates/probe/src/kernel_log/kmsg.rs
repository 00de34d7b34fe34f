//! The kernel log: `/dev/kmsg`, one record for each read.
//!
//! Since 3.5 (Documentation/ABI/testing/dev-kmsg): `6,339,5140900,-;text`, where 6 is priority and facility, 339 the
//! record's number since boot, and 5140900 µs on the clock that stands still in suspend. Unprintable bytes are escaped
//! as `\x1b`. Each reader of the device starts at the oldest record that is left. Records that were overwritten before
//! they were read are reported once by EPIPE, and the gap in the numbers shows how many there were.
//!
//! If `kernel.dmesg_restrict` is 1, only CAP_SYSLOG may open it; containers rarely have the device. Reading takes 1 to
//! 2 µs per record and never blocks here. Programs can write to the log too, but never as the kernel: see
//! [`is_of_kernel`](Record::is_of_kernel).

use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use units::Span;

use crate::error::ReadError;
use crate::kernel_file::Root;
use crate::text;

/// The device.
pub const KMSG: &str = "/dev/kmsg";

/// The kernel's own buffer for a record with its dictionary has 8 KiB (`CONSOLE_EXT_LOG_MAX`), since 6.2 2 KiB.
const RECORD_BYTES_MAX: usize = 16 << 10;

/// The kernel log, read from its oldest record on.
#[derive(Debug)]
pub struct KernelLog {
    file: File,
    buffer: Vec<u8>,
}

/// One record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Its number since boot.
    pub sequence: u64,
    /// When it was written, on the kernel's own clock: nearly CLOCK_MONOTONIC, from which it drifts by a few parts per
    /// million, as it is never adjusted.
    pub at: Span,
    /// Whether the kernel wrote it: records that programs write to the device have another facility, whatever they
    /// claim.
    pub is_of_kernel: bool,
    /// Whether it continues the line before (3.5 to 4.8).
    pub goes_on: bool,
    /// The text with the kernel's escapes undone; it may have line ends.
    pub text: String,
}

impl Record {
    /// Its messages: the lines of a list of counts, such as `memory.stat` of a cgroup, which kernels write as one record;
    /// else the text. A line end in any other text is part of a name, which its process chose.
    pub(super) fn messages(&self) -> impl Iterator<Item = &str> {
        let is_list = || self.text.lines().all(is_counts);
        let is_whole = !self.text.contains('\n') || !is_list();
        let whole = is_whole.then_some(self.text.as_str());
        let lines = (!is_whole).then(|| self.text.lines());
        whole.into_iter().chain(lines.into_iter().flatten())
    }
}

/// Whether a line has counts alone: `anon 98742272`, or ` mapped:9184 shmem:1204 pagetables:2210`.
fn is_counts(line: &str) -> bool {
    let is_name = |word: &str| word.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    let is_count = |word: &str| !word.is_empty() && word.bytes().all(|b| b.is_ascii_digit());
    let mut words = line.split_ascii_whitespace();
    words.clone().all(|word| {
        let field = word.split_once(':');
        field.is_some_and(|(name, count)| is_name(name) && is_count(count))
    }) || words.next().is_some_and(is_name)
        && words.next().is_some_and(is_count)
        && words.next().is_none()
}

/// The result of a read.
#[allow(missing_docs)] // names say it
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next {
    Record(Record),
    /// Bytes that are not a record; more records may follow.
    Unreadable,
    /// Nothing more for now.
    Nothing,
}

impl KernelLog {
    /// Opens the log.
    ///
    /// # Errors
    /// [`ReadError`] if it does not exist or may not be read.
    pub fn open(root: &Root) -> Result<Self, ReadError> {
        let path = root.path(KMSG);
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        match rustix::fs::open(&path, flags, Mode::empty()) {
            Ok(file) => Ok(Self { file: file.into(), buffer: vec![0; RECORD_BYTES_MAX] }),
            Err(errno) => Err(ReadError { path: path.display().to_string(), source: errno.into() }),
        }
    }

    /// Returns the next record, if there is one; never waits. Overwritten records show as a gap in the numbers.
    ///
    /// # Errors
    /// [`ReadError`] if the device fails.
    pub fn read(&mut self) -> Result<Next, ReadError> {
        loop {
            return match rustix::io::read(&self.file, self.buffer.as_mut_slice()) {
                Ok(0) | Err(Errno::AGAIN) => Ok(Next::Nothing),
                Ok(length) => {
                    let record = self.buffer.get(..length).and_then(parse);
                    Ok(record.map_or(Next::Unreadable, Next::Record))
                }
                // EPIPE: the next read returns the oldest record that is left.
                Err(Errno::INTR | Errno::PIPE) => continue,
                Err(errno) => Err(ReadError { path: KMSG.to_owned(), source: errno.into() }),
            };
        }
    }
}

impl AsFd for KernelLog {
    /// Allows waiting for new records.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// Parses a record of the device; `None` if it is malformed.
pub(super) fn parse(record: &[u8]) -> Option<Record> {
    let (prefix, rest) = split(record, b';')?;
    let mut fields = prefix.split(|byte| *byte == b',');
    let mut number = || text::number(fields.next()?);
    let (priority, sequence, micros) = (number()?, number()?, number()?);
    let flags = fields.next().unwrap_or_default();
    // The dictionary's lines begin with a space.
    let line = split(rest, b'\n').map_or(rest, |(line, _)| line);
    Some(Record {
        sequence,
        at: Span::from_nanos(micros.saturating_mul(1000)),
        is_of_kernel: priority >> 3 == 0,
        goes_on: flags == b"+",
        text: text::lossy(&unescaped(line)).into_owned(),
    })
}

fn split(bytes: &[u8], at: u8) -> Option<(&[u8], &[u8])> {
    let place = memchr::memchr(at, bytes)?;
    Some((&bytes[..place], &bytes[place + 1..]))
}

/// Replaces `\x0a` by the byte that it stands for. The kernel also escapes backslashes, so every backslash starts an
/// escape.
fn unescaped(line: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(line.len());
    let mut rest = line;
    while let Some((before, after)) = split(rest, b'\\') {
        bytes.extend_from_slice(before);
        match escape(after) {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[3..];
            }
            None => {
                bytes.push(b'\\');
                rest = after;
            }
        }
    }
    bytes.extend_from_slice(rest);
    bytes
}

/// Parses `x1b` at the start of the text.
fn escape(text: &[u8]) -> Option<u8> {
    let digits = text.strip_prefix(b"x")?.get(..2)?;
    let digit = |byte: &u8| char::from(*byte).to_digit(16);
    let value = digit(&digits[0])? * 16 + digit(&digits[1])?;
    u8::try_from(value).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(text: &str) -> Record {
        parse(text.as_bytes()).unwrap()
    }

    #[test]
    fn a_record_is_its_number_its_time_and_its_text() {
        // From a 6.18 guest, a 3.10 one with a dictionary, and one with the caller's thread.
        let record = read("6,339,5140900,-;NET: Registered protocol family 10\n");
        assert_eq!(record.sequence, 339);
        assert_eq!(record.at, Span::from_nanos(5_140_900_000));
        assert_eq!(record.text, "NET: Registered protocol family 10");
        assert!(record.is_of_kernel && !record.goes_on);
        let record = read(
            "7,160,424069,-;pci_root PNP0A03:00: host bridge\n SUBSYSTEM=acpi\n DEVICE=+acpi:PNP0A03:00\n",
        );
        assert_eq!(record.text, "pci_root PNP0A03:00: host bridge");
        let record = read("4,1,7,-,caller=T812;java invoked oom-killer: gfp_mask=0x0; order=0\n");
        assert_eq!(record.text, "java invoked oom-killer: gfp_mask=0x0; order=0");
        assert!(read("4,2,8,+; more").goes_on);
    }

    #[test]
    fn what_a_program_writes_is_never_the_kernels() {
        assert!(!read("14,5,9,-;Out of memory: Killed process 1 (init)").is_of_kernel);
        assert!(!read("30,6,9,-;systemd[1]: Started").is_of_kernel);
    }

    #[test]
    fn escapes_become_the_bytes_that_they_stand_for() {
        assert_eq!(read("6,1,1,-;a\\x0ab\\x5cc\\xc3\\xa9").text, "a\nb\\cé");
        assert_eq!(read("6,1,1,-;cut \\x1").text, "cut \\x1");
    }

    #[test]
    fn a_record_is_one_message_but_for_a_list_of_counts() {
        let messages = |record: &str| -> Vec<String> {
            let record = read(&format!("6,1,1,-;{record}\n"));
            record.messages().map(str::to_owned).collect()
        };
        // Of 5.10 and of 6.1.
        assert_eq!(
            messages(r"anon 3514368\x0afile 0\x0akernel_stack 49152\x0a"),
            ["anon 3514368", "file 0", "kernel_stack 49152"]
        );
        assert_eq!(
            messages(r"active_anon:9 inactive_anon:6\x0a active_file:3 free_cma:0").len(),
            2
        );
        for (record, text) in [
            (
                r"Killed process 812 (\x0aghost) total-vm:9kB",
                "Killed process 812 (\nghost) total-vm:9kB",
            ),
            (r"anon 1\x0a2 invoked oom-killer:", "anon 1\n2 invoked oom-killer:"),
            (r"\x0aOut of memory:[9]: segfault", "\nOut of memory:[9]: segfault"),
            ("anon 3514368", "anon 3514368"),
            ("", ""),
        ] {
            assert_eq!(messages(record), [text]);
        }
    }

    #[test]
    fn the_kernels_own_log_is_read_to_its_end() {
        let mut log = match KernelLog::open(&Root::default()) {
            Ok(log) => log,
            Err(error) => return println!("skipped: {error}"),
        };
        let (mut last, mut records) = (None, 0);
        loop {
            match log.read().unwrap() {
                Next::Record(record) => {
                    assert!(last < Some(record.sequence), "{record:?}");
                    last = Some(record.sequence);
                    records += 1;
                }
                Next::Unreadable => panic!("after {last:?}"),
                Next::Nothing => break,
            }
        }
        assert!(records > 0);
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes: Vec<u8>, text in "[0-9,;\\\\x -]{0,60}") {
            parse(&bytes);
            parse(text.as_bytes());
            parse(format!("6,1,2,-;{text}").as_bytes());
        }
    }
}
