//! Files of one process below `/proc/PID`, all into the one row of that process.
//!
//! | file | holds | units | cost, traps |
//! |---|---|---|---|
//! | `stat` | start, name, faults, CPU time, size | ticks, bytes, pages | 6 µs |
//! | `statm` | resident pages | pages | 4 µs; size without identity |
//! | `status` | RSS by kind (since 4.5), swap, peaks, page tables | KiB | 7.5 µs; no lock; kernel threads have no memory lines |
//! | `io` | bytes requested and bytes from storage | bytes | 4 µs; needs the right to trace the process |
//! | `oom_score_adj` | who dies first | −1000 to 1000 | 3 µs |
//! | `smaps_rollup` | proportional shares | KiB | milliseconds, holds the mmap lock |
//! | `cgroup` | its cgroups | paths | 4 µs; where its service comes from |
//! | `malloc_heap` | figures of its malloc heap | bytes | no file of the kernel: memtide writes it into captures |
//!
//! In a capture they come in any order: a row is found by its PID, and `stat` completes its key with the start time.

use std::collections::HashMap;

use timeline::signals::{
    HEAP, PROC_HUGETLB, PROC_OOM_ADJ, PROC_RSS, PROC_RSS_ANON, PROCESS_IO, PROCESS_STATUS,
    SMAPS_ROLLUP,
};
use timeline::{EntityRow, EntityTable, ProcessKey, Row};
use units::{Bytes, Count, Pages};

use crate::cgroup::service;
use crate::error::{ParseError, ReadError};
use crate::fields::Fields;
use crate::kernel_file::Root;
use crate::process::smaps_rollup;
use crate::process::stat;
use crate::text;

const STATM: &str = "/proc/PID/statm";
const OOM_SCORE_ADJ: &str = "/proc/PID/oom_score_adj";

/// Parses the files of a process and remembers their layout.
#[derive(Debug)]
pub struct ProcessFiles {
    status: Fields,
    io: Fields,
    rollup: Fields,
    heap: Fields,
}

impl Default for ProcessFiles {
    fn default() -> Self {
        Self {
            status: Fields::for_file(PROCESS_STATUS),
            io: Fields::for_file(PROCESS_IO),
            rollup: Fields::for_file(SMAPS_ROLLUP),
            heap: Fields::for_file(HEAP),
        }
    }
}

impl ProcessFiles {
    /// The files that have a parser.
    pub const NAMES: [&str; 8] = [
        "stat",
        "statm",
        "status",
        "io",
        "oom_score_adj",
        "smaps_rollup",
        "cgroup",
        Self::MALLOC_HEAP,
    ];
    /// The figures of a malloc heap in a capture, a line each: a signal's field and its value.
    pub const MALLOC_HEAP: &str = "malloc_heap";

    /// Reads the text of the file `name` of process `pid` into its row. `Ok(false)`: this file has no parser.
    ///
    /// # Errors
    /// The first malformed line; the other lines are read.
    pub fn parse(
        &mut self,
        pid: u32,
        name: &str,
        text: &[u8],
        process: &mut EntityRow,
    ) -> Result<bool, ParseError> {
        match name {
            "stat" => stat::parse(pid, text, process),
            "statm" => statm(text, &mut process.row),
            "status" => self.status(text, process),
            "io" => self.io.parse(text, &mut process.row, |_, _| {}),
            "oom_score_adj" => oom_score_adj(text, &mut process.row),
            "smaps_rollup" => smaps_rollup::parse(&mut self.rollup, text, &mut process.row),
            Self::MALLOC_HEAP => self.heap.parse(text, &mut process.row, |_, _| {}),
            "cgroup" => {
                process.group.clear();
                service::push_name(text, &mut process.group);
                Ok(())
            }
            _ => return Ok(false),
        }
        .map(|()| true)
    }

    /// Reads how much memory of its own a process has in RAM: anonymous pages (4.5), and huge ones.
    ///
    /// # Errors
    /// [`ReadError`] if there is no such process.
    pub fn own_memory(root: &Root, pid: u32) -> Result<Bytes, ReadError> {
        let text = root.read(&format!("/proc/{pid}/status"))?;
        let mut process = EntityRow::default();
        // A malformed line is an absent reading.
        let _ = Self::default().status(&text, &mut process);
        let sizes = [PROC_RSS_ANON, PROC_HUGETLB].map(|signal| process.row.get(signal));
        Ok(sizes.into_iter().flatten().sum())
    }

    /// Parses `status`. Only the memory lines, which are adjacent, are `name: value`; the others are text or have no
    /// fixed form.
    fn status(&mut self, text: &[u8], process: &mut EntityRow) -> Result<(), ParseError> {
        let is_memory = |line: &[u8]| {
            [&b"Vm"[..], b"Rss", b"Hugetlb"].iter().any(|start| line.starts_with(start))
        };
        let mut rest = text;
        let mut before = 0;
        let mut memory: &[u8] = &[];
        for (count, line) in text::lines(text) {
            if is_memory(line) {
                if memory.is_empty() {
                    before = count - 1;
                    memory = rest;
                }
            } else if !memory.is_empty() {
                memory = &memory[..memory.len() - rest.len()];
                break;
            } else if let Some(name) = line.strip_prefix(b"Name:\t")
                && process.label.is_empty()
            {
                // `stat` has the name unescaped; this one is used if only `status` was saved.
                text::push_lossy(&mut process.label, name);
            }
            rest = rest.get(line.len() + 1..).unwrap_or_default();
        }
        self.status
            .parse(memory, &mut process.row, |_, _| {})
            .map_err(|error| ParseError { line: error.line + before, ..error })
    }
}

/// Parses `size resident shared text lib data dt`, in pages. Only the second is read: `stat` has the size in bytes.
fn statm(text: &[u8], row: &mut Row) -> Result<(), ParseError> {
    let resident = text::words(text::trim(text)).nth(1);
    match resident.and_then(text::number) {
        Some(pages) => {
            row.set(PROC_RSS, Pages::new(pages));
            Ok(())
        }
        None => Err(ParseError::new(STATM, 1, "resident pages", text)),
    }
}

fn oom_score_adj(text: &[u8], row: &mut Row) -> Result<(), ParseError> {
    let word = text::trim(text);
    let (negative, digits) = match word.strip_prefix(b"-") {
        Some(digits) => (true, digits),
        None => (false, word),
    };
    // The catalogue stores it plus 1000, so that it is never negative.
    let shifted = match text::number(digits) {
        Some(n @ 0..=1000) if negative => 1000 - n,
        Some(n @ 0..=1000) => 1000 + n,
        _ => {
            let expected = "a number from -1000 to 1000";
            return Err(ParseError::new(OOM_SCORE_ADJ, 1, expected, word));
        }
    };
    row.set(PROC_OOM_ADJ, Count::new(shifted));
    Ok(())
}

/// Splits the saved path of a process's file that has a parser: `/proc/4242/stat` is `(4242, "stat")`.
pub(crate) fn place(path: &str) -> Option<(u32, &str)> {
    let (pid, name) = path.strip_prefix("/proc/")?.split_once('/')?;
    if !ProcessFiles::NAMES.contains(&name) {
        return None;
    }
    let pid = u32::try_from(text::number(pid.as_bytes())?).ok()?;
    Some((pid, name))
}

/// Finds the row of a process by its PID while its key is still incomplete.
#[derive(Debug, Default)]
pub(crate) struct RowsByPid(HashMap<u32, usize>);

impl RowsByPid {
    /// Returns the row of `pid`; adds it if it is missing.
    pub(crate) fn row<'a>(&mut self, pid: u32, table: &'a mut EntityTable) -> &'a mut EntityRow {
        // A cleared table, or another one, has different rows than remembered; then the row is searched.
        let remembered = self.0.get(&pid).copied();
        let found = remembered.filter(|i| table.rows().get(*i).and_then(pid_of) == Some(pid));
        if found.is_none() && (remembered.is_some() || self.0.len() != table.rows().len()) {
            self.0.clear();
            let rows = table.rows().iter().enumerate();
            self.0.extend(rows.filter_map(|(i, row)| Some((pid_of(row)?, i))));
        }
        match found.or_else(|| self.0.get(&pid).copied()) {
            Some(index) => &mut table.rows_mut()[index],
            None => {
                if !table.is_full() {
                    self.0.insert(pid, table.rows().len());
                }
                let row = table.add();
                stat::set_key(pid, 0, row);
                row
            }
        }
    }
}

fn pid_of(row: &EntityRow) -> Option<u32> {
    u32::try_from(text::number(ProcessKey::parse(&row.key).pid.as_bytes())?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use timeline::signals::{
        PROC_CANCELLED_WRITE_BYTES, PROC_DATA, PROC_HUGETLB, PROC_LOCKED, PROC_PAGE_TABLES,
        PROC_PINNED, PROC_RCHAR, PROC_READ_BYTES, PROC_RSS_ANON, PROC_RSS_FILE, PROC_RSS_PEAK,
        PROC_RSS_SHMEM, PROC_SWAP, PROC_WCHAR, PROC_WRITE_BYTES,
    };
    use timeline::{Entity, Sample};
    use units::Bytes;

    /// From a 6.1 guest.
    const STATUS_6_1: &[u8] = b"Name:\tmisc\nUmask:\t0022\nState:\tR (running)\nTgid:\t103\nNgid:\t0\nPid:\t103\n\
        PPid:\t1\nTracerPid:\t0\nUid:\t0\t0\t0\t0\nGid:\t0\t0\t0\t0\nFDSize:\t64\nGroups:\t \nNStgid:\t103\n\
        NSpid:\t103\nNSpgid:\t0\nNSsid:\t0\nVmPeak:\t   43024 kB\nVmSize:\t   43024 kB\nVmLck:\t       5 kB\n\
        VmPin:\t       6 kB\nVmHWM:\t   16296 kB\nVmRSS:\t   16296 kB\nRssAnon:\t   15588 kB\n\
        RssFile:\t       4 kB\nRssShmem:\t     704 kB\nVmData:\t   42156 kB\nVmStk:\t     132 kB\n\
        VmExe:\t     528 kB\nVmLib:\t       8 kB\nVmPTE:\t      64 kB\nVmSwap:\t       7 kB\n\
        HugetlbPages:\t       8 kB\nCoreDumping:\t0\nTHP_enabled:\t1\nThreads:\t1\nSigQ:\t0/2837\n\
        Cpus_allowed_list:\t0-1\nvoluntary_ctxt_switches:\t1\nnonvoluntary_ctxt_switches:\t9\n";

    fn read(name: &str, text: &[u8]) -> (EntityRow, Result<bool, ParseError>) {
        let mut process = EntityRow::default();
        let result = ProcessFiles::default().parse(103, name, text, &mut process);
        (process, result)
    }

    #[test]
    fn the_memory_lines_of_status_are_kib() {
        let (process, result) = read("status", STATUS_6_1);
        assert_eq!(result, Ok(true), "text lines are no error");
        assert_eq!(process.label, "misc");
        for (signal, kib) in [
            (PROC_RSS_ANON, 15588),
            (PROC_RSS_FILE, 4),
            (PROC_RSS_SHMEM, 704),
            (PROC_SWAP, 7),
            (PROC_PAGE_TABLES, 64),
            (PROC_RSS_PEAK, 16296),
            (PROC_DATA, 42156),
            (PROC_LOCKED, 5),
            (PROC_PINNED, 6),
            (PROC_HUGETLB, 8),
        ] {
            assert_eq!(process.row.get(signal), Some(Bytes::from_kib(kib)));
        }
    }

    #[test]
    fn a_status_without_memory_lines_has_no_readings() {
        let text = b"Name:\tkswapd0\nState:\tS (sleeping)\nThreads:\t1\nSigQ:\t0/2837\n";
        let (process, result) = read("status", text);
        assert_eq!(result, Ok(true));
        assert!(process.row.is_empty(), "absent, not zero");
    }

    #[test]
    fn a_name_in_status_cannot_forge_a_memory_line() {
        // The kernel writes a newline in a name as `\n`.
        let text = b"Name:\tVmSwap: 99 kB\\nVmSwap: 99 kB\nVmPeak:\t1 kB\nVmSwap:\t7 kB\n";
        let (process, _) = read("status", text);
        assert_eq!(process.row.get(PROC_SWAP), Some(Bytes::from_kib(7)));
    }

    #[test]
    fn a_bad_line_of_status_is_counted_from_the_top() {
        let text = b"Name:\tx\nState:\tR\nVmPeak:\t1 kB\nVmSwap:\t-7 kB\nHugetlbPages:\t8 kB";
        let (process, result) = read("status", text);
        assert_eq!(
            result.unwrap_err().to_string(),
            "/proc/PID/status, line 4: expected a number, found `-7 kB`"
        );
        assert_eq!(process.row.get(PROC_HUGETLB), Some(Bytes::from_kib(8)));
        assert!(read("status", b"VmSwap: 1180591620717411303424 kB").1.is_err());
    }

    #[test]
    fn io_is_bytes() {
        let text = b"rchar: 366978\nwchar: 36\nsyscr: 40\nsyscw: 4\nread_bytes: 8192\nwrite_bytes: 4096\ncancelled_write_bytes: 1\n";
        let (process, result) = read("io", text);
        assert_eq!(result, Ok(true));
        for (signal, bytes) in [
            (PROC_RCHAR, 366_978),
            (PROC_WCHAR, 36),
            (PROC_READ_BYTES, 8192),
            (PROC_WRITE_BYTES, 4096),
            (PROC_CANCELLED_WRITE_BYTES, 1),
        ] {
            assert_eq!(process.row.get(signal), Some(Bytes::new(bytes)));
        }
        assert!(read("io", b"rchar: -1\n").1.is_err());
    }

    #[test]
    fn oom_score_adj_is_shifted_so_that_it_is_never_negative() {
        for (text, expected) in
            [(&b"-1000\n"[..], 0), (b"-999\n", 1), (b"0\n", 1000), (b"1000", 2000)]
        {
            let (process, _) = read("oom_score_adj", text);
            assert_eq!(process.row.get(PROC_OOM_ADJ), Some(Count::new(expected)));
        }
        for text in [&b""[..], b"-", b"1001", b"--1", b"-1180591620717411303424"] {
            let (process, result) = read("oom_score_adj", text);
            assert!(result.is_err() && process.row.is_empty(), "{text:?}");
        }
    }

    #[test]
    fn statm_gives_resident_pages() {
        let (process, _) = read("statm", b"765 442 414 5 0 123 0\n");
        assert_eq!(process.row.get(PROC_RSS), Some(Pages::new(442)));
        for text in [&b""[..], b"765", b"765 -1 0"] {
            assert!(read("statm", text).1.is_err(), "{text:?}");
        }
    }

    #[test]
    fn all_files_of_a_process_share_its_row_in_any_order() {
        let stat = b"103 (misc) R 1 0 0 0 -1 0 370 0 2 0 3 5 0 0 20 0 1 0 241 44056576 4074";
        let other = b"104 (rec) R 1 0 0 0 -1 0 370 0 2 0 3 5 0 0 20 0 1 0 242 44056576 1";
        let group = b"0::/system.slice/misc.service\n";
        let files: [(u32, &str, &[u8]); 6] = [
            (103, "status", STATUS_6_1),
            (104, "oom_score_adj", b"-1000"),
            (103, "stat", stat),
            (103, "cgroup", group),
            (104, "stat", other),
            (103, "oom_score_adj", b"0"),
        ];
        let mut parsers = ProcessFiles::default();
        let mut rows = RowsByPid::default();
        let mut sample = Sample::default();
        // The second round has the files in reverse order, and reuses rows.
        for round in 0..2 {
            sample.clear();
            for i in 0..files.len() {
                let i = if round == 0 { i } else { files.len() - 1 - i };
                let (pid, name, text) = files[i];
                let row = rows.row(pid, sample.table_mut(Entity::Process));
                parsers.parse(pid, name, text, row).unwrap();
            }
            let mut found = sample.table(Entity::Process).rows().to_vec();
            found.sort_by(|a, b| a.key.cmp(&b.key));
            assert_eq!(found.len(), 2);
            assert_eq!((&*found[0].key, &*found[0].label), ("103@241", "misc"));
            assert_eq!(found[0].group, "misc.service");
            assert_eq!(found[0].row.get(PROC_RSS), Some(Pages::new(4074)));
            assert_eq!(found[0].row.get(PROC_SWAP), Some(Bytes::from_kib(7)));
            assert_eq!(found[0].row.get(PROC_OOM_ADJ), Some(Count::new(1000)));
            assert_eq!((&*found[1].key, &*found[1].label), ("104@242", "rec"));
            assert_eq!(found[1].row.get(PROC_OOM_ADJ), Some(Count::ZERO));
        }
    }

    #[test]
    fn without_stat_the_start_is_zero() {
        let mut sample = Sample::default();
        RowsByPid::default().row(7, sample.table_mut(Entity::Process));
        assert_eq!(sample.table(Entity::Process).rows()[0].key, "7@0");
    }

    #[test]
    fn rows_of_another_sample_are_not_mistaken_for_this_ones() {
        let mut rows = RowsByPid::default();
        let mut one = Sample::default();
        let mut two = Sample::default();
        rows.row(1, one.table_mut(Entity::Process));
        rows.row(2, one.table_mut(Entity::Process));
        rows.row(2, two.table_mut(Entity::Process));
        rows.row(1, two.table_mut(Entity::Process));
        rows.row(1, one.table_mut(Entity::Process));
        let keys = |sample: &Sample| -> Vec<String> {
            let rows = sample.table(Entity::Process).rows();
            rows.iter().map(|row| row.key.clone()).collect()
        };
        assert_eq!(keys(&one), ["1@0", "2@0"]);
        assert_eq!(keys(&two), ["2@0", "1@0"]);
    }

    #[test]
    fn a_path_is_taken_apart() {
        for (path, expected) in [
            ("/proc/4242/stat", Some((4242, "stat"))),
            ("/proc/1/smaps_rollup", Some((1, "smaps_rollup"))),
            ("/proc/self/stat", None),
            ("/proc/1/maps", None),
            ("/proc/4294967296/stat", None),
            ("/proc/1/task/1/stat", None),
            ("/proc/stat", None),
        ] {
            assert_eq!(place(path), expected, "{path}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text: Vec<u8>, lines in "((Vm|Rss|X)[a-z:]{0,3}[ \t]?[-0-9]{0,3}( kB)?\n?){0,8}") {
            for name in ProcessFiles::NAMES {
                let _ = read(name, &text);
                let _ = read(name, lines.as_bytes());
            }
            let _ = place(&text::lossy(&text));
        }
    }
}
