//! A process's name, start, faults, CPU time and size: `/proc/PID/stat`.
//!
//! One line of blank-separated fields, counted from 1. Times are USER_HZ ticks, `vsize` is bytes, `rss` is pages.
//! Kernel threads (kswapd0, kcompactd0, khugepaged) have one too, with sizes 0; their CPU time is the cost of reclaim.
//!
//! Traps: field 2, the name in parentheses, is chosen by the process and may contain blanks, parentheses, newlines and
//! escape sequences, so fields are counted from the *last* `)`; whoever prints the name must replace what a terminal
//! must not receive. `rss` is summed lazily and may lag by 64 pages per thread before 6.2. Readable by every user; no
//! lock on memory. Cost: 6 µs, and 0.16 µs for each thread.

use timeline::{
    EntityRow, SignalId,
    signals::{
        PROC_BLKIO_DELAY, PROC_MAJFLT, PROC_MINFLT, PROC_PARENT, PROC_RSS, PROC_SIZE, PROC_STIME,
        PROC_THREADS, PROC_UTIME, PROCESS_STAT,
    },
};

use crate::error::{First, ParseError};
use crate::text;

/// The first field after the name.
const STATE: usize = 3;
/// The field of the kernel's flags, and the one of kernel threads, which has been the same since 2.6.27 (`PF_KTHREAD`).
const FLAGS: usize = 9;
const KERNEL_THREAD: u64 = 0x0020_0000;
/// The field that, with the PID, distinguishes a process from a later one with the same PID.
const START: usize = 22;
/// All kernels in use have at least these fields; those beyond came later.
const ALWAYS: usize = 24;
/// The last field that is used.
const LAST: usize = 42;

/// The signal of each field.
const FIELDS: [(usize, SignalId); 9] = [
    (4, PROC_PARENT.id()),
    (10, PROC_MINFLT.id()),
    (12, PROC_MAJFLT.id()),
    (14, PROC_UTIME.id()),
    (15, PROC_STIME.id()),
    (20, PROC_THREADS.id()),
    (23, PROC_SIZE.id()),
    (24, PROC_RSS.id()),
    (42, PROC_BLKIO_DELAY.id()),
];

/// The identity of a process, from its text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StatIdentity<'a> {
    pub(crate) name: &'a [u8],
    /// Clock ticks since boot; `None` if the text is cut or malformed.
    pub(crate) start: Option<u64>,
    /// Letter of its state: `R`, `S`, `D`, `T`, `Z`.
    pub(crate) state: Option<u8>,
    pub(crate) is_kernel_thread: bool,
}

/// Reads the text into the process's row: readings, the name as its label, and the start time into its key.
///
/// # Errors
/// The first field that is missing or not a number; the others are read.
pub(crate) fn parse(pid: u32, text: &[u8], process: &mut EntityRow) -> Result<(), ParseError> {
    let row = &mut process.row;
    let (identity, result) = read(text, |signal, value| row.set_raw(signal, value));
    if let Some(StatIdentity { name, start, .. }) = identity {
        process.label.clear();
        text::push_lossy(&mut process.label, name);
        if let Some(start) = start {
            set_key(pid, start, process);
        }
    }
    result
}

/// Reads the text: each reading goes to `set`. The identity is `None` without a name in parentheses.
pub(crate) fn read(
    text: &[u8],
    mut set: impl FnMut(SignalId, u64),
) -> (Option<StatIdentity<'_>>, Result<(), ParseError>) {
    let (Some(open), Some(close)) = (memchr::memchr(b'(', text), memchr::memrchr(b')', text))
    else {
        return (None, Err(no_name(text)));
    };
    if close < open {
        return (None, Err(no_name(text)));
    }
    let (mut start, mut state, mut is_kernel_thread) = (None, None, false);
    // The name may contain newlines, so the line number is that of the remaining fields.
    let line = || 1 + memchr::memchr_iter(b'\n', &text[..close]).count();
    let mut first = First::default();
    let mut wanted = FIELDS.iter().peekable();
    let mut last = STATE - 1;
    for (field, word) in (STATE..=LAST).zip(text::words(text::trim(&text[close + 1..]))) {
        last = field;
        if field == STATE {
            state = word.first().copied();
        } else if field == FLAGS {
            is_kernel_thread = text::number(word).is_some_and(|flags| flags & KERNEL_THREAD != 0);
        } else if field == START {
            start = text::number(word);
            if start.is_none() {
                first.note(|| ParseError::new(PROCESS_STAT, line(), "a start time", word));
            }
        } else if let Some((_, signal)) = wanted.next_if(|(number, _)| *number == field) {
            match text::number(word) {
                Some(value) => set(*signal, value),
                None => first.note(|| ParseError::new(PROCESS_STAT, line(), "a number", word)),
            }
        }
    }
    if last < ALWAYS {
        let found = text::trim(&text[close + 1..]);
        first.note(|| ParseError::new(PROCESS_STAT, line(), "24 fields", found));
    }
    let identity = StatIdentity { name: &text[open + 1..close], start, state, is_kernel_thread };
    (Some(identity), first.into_result())
}

fn no_name(text: &[u8]) -> ParseError {
    ParseError::new(PROCESS_STAT, 1, "a name in parentheses", text)
}

/// Writes the process's identity. Without `stat` the start is unknown and written as 0.
pub(crate) fn set_key(pid: u32, start: u64, process: &mut EntityRow) {
    process.key.clear();
    text::push_number(&mut process.key, pid.into());
    process.key.push('@');
    text::push_number(&mut process.key, start);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use units::{Bytes, Count, Pages, Ticks};

    fn read(text: &[u8]) -> (EntityRow, Result<(), ParseError>) {
        let mut process = EntityRow::default();
        set_key(103, 0, &mut process);
        let result = parse(103, text, &mut process);
        (process, result)
    }

    /// From a 6.1 guest.
    const MISC: &[u8] = b"103 (misc) R 1 0 0 0 -1 4194304 370 0 2 0 3 5 0 0 20 0 1 0 241 44056576 4074 18446744073709551615 4198400 4735665 140725565948320 0 0 0 0 6 0 0 0 0 17 0 0 0 9 0 0 4908696 4932272 917012480 140725565951918 140725565951940 140725565951940 140725565951982 0\n";

    #[test]
    fn the_kernels_flags_tell_its_threads() {
        const KTHREADD: &[u8] = b"2 (kthreadd) S 0 0 0 0 -1 2129984 0 0 0 0 0 2 0 0 20 0 1 0 6 0 0 18446744073709551615 0\n";
        for (text, expected) in [(KTHREADD, true), (MISC, false), (&b"9 (x) R 1"[..], false)] {
            let (identity, _) = super::read(text, |_, _| {});
            assert_eq!(identity.unwrap().is_kernel_thread, expected);
        }
    }

    #[test]
    fn fields_meet_their_signals() {
        let (process, result) = read(MISC);
        result.unwrap();
        assert_eq!(process.key, "103@241");
        assert_eq!(process.label, "misc");
        assert_eq!(process.row.get(PROC_PARENT), Some(Count::new(1)));
        assert_eq!(process.row.get(PROC_MINFLT), Some(Count::new(370)));
        assert_eq!(process.row.get(PROC_MAJFLT), Some(Count::new(2)));
        assert_eq!(process.row.get(PROC_UTIME), Some(Ticks::new(3)));
        assert_eq!(process.row.get(PROC_STIME), Some(Ticks::new(5)));
        assert_eq!(process.row.get(PROC_THREADS), Some(Count::new(1)));
        assert_eq!(process.row.get(PROC_SIZE), Some(Bytes::new(44_056_576)));
        assert_eq!(process.row.get(PROC_RSS), Some(Pages::new(4074)));
        assert_eq!(process.row.get(PROC_BLKIO_DELAY), Some(Ticks::new(9)));
    }

    #[test]
    fn kernel_threads_are_processes_too() {
        let text = b"43 (kswapd0) S 2 0 0 0 -1 2230336 0 0 0 0 0 17 0 0 20 0 1 0 89 0 0 18446744073709551615 0 0 0 0 0 0 0 2147483647 0 1 0 0 17 1 0 0 0 0 0 0 0 0 0 0 0 0 0\n";
        let mut process = EntityRow::default();
        parse(43, text, &mut process).unwrap();
        assert_eq!((&*process.key, &*process.label), ("43@89", "kswapd0"));
        assert_eq!(process.row.get(PROC_STIME), Some(Ticks::new(17)));
        assert_eq!(process.row.get(PROC_RSS), Some(Pages::ZERO));
    }

    #[test]
    fn a_name_cannot_forge_fields() {
        for name in [
            ") R 1 (",
            "a) S 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 7 7 7",
            "two\nlines",
            "\u{1b}]0;title\u{7}\u{1b}[2J",
            "<script>alert(1)</script>",
            "",
            " ",
            "(((",
        ] {
            let text = [b"103 (", name.as_bytes(), &MISC[9..]].concat();
            let (process, result) = read(&text);
            assert_eq!(result, Ok(()), "{name}");
            assert_eq!((&*process.key, &*process.label), ("103@241", name));
            assert_eq!(process.row.get(PROC_RSS), Some(Pages::new(4074)));
        }
        let (process, _) = read(&[b"103 (\xff\xfe", &MISC[9..]].concat());
        assert_eq!(process.label, "\u{fffd}\u{fffd}");
    }

    #[test]
    fn a_bad_field_costs_itself_only() {
        let text =
            b"103 (a) R 1 0 0 0 -1 0 -370 0 1180591620717411303424 0 3 5 0 0 20 0 1 0 241 4096 7";
        let (process, result) = read(text);
        assert_eq!(
            result.unwrap_err().to_string(),
            "/proc/PID/stat, line 1: expected a number, found `-370`"
        );
        assert_eq!(process.key, "103@241");
        assert_eq!(process.row.get(PROC_MINFLT), None);
        assert_eq!(process.row.get(PROC_MAJFLT), None);
        assert_eq!(process.row.get(PROC_RSS), Some(Pages::new(7)));
        assert_eq!(process.row.get(PROC_BLKIO_DELAY), None, "old kernels");
    }

    #[test]
    fn a_cut_text_says_so_and_keeps_what_was_there() {
        for (text, expected) in [
            (&b""[..], "a name in parentheses"),
            (b"103", "a name in parentheses"),
            (b"103 )misc(", "a name in parentheses"),
            (b"103 (misc", "a name in parentheses"),
            (b"103 (misc) R 1 0 0", "24 fields"),
        ] {
            let (process, result) = read(text);
            assert_eq!(result.unwrap_err().expected, expected);
            assert_eq!(process.key, "103@0");
        }
        let (process, _) = read(b"103 (misc) R 1 0 0");
        assert_eq!(process.label, "misc");
        assert_eq!(process.row.get(PROC_PARENT), Some(Count::new(1)));
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text: Vec<u8>) {
            let _ = read(&text);
            let _ = read(&[b"1 (", &text[..], b") R 1"].concat());
        }
    }
}
