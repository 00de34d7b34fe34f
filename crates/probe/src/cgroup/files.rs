//! Memory of a cgroup: `memory.*` and `io.pressure` of the unified hierarchy (v2).
//!
//! Sizes are bytes; `max` means no limit. `memory.stat` mixes bytes with event counters, and `memory.events` counts the
//! cgroup *and everything below it*. Since 4.5; `memory.peak` 5.19, the pressure files 4.20 with PSI. The machine's own
//! root cgroup has `memory.stat` and the pressure files only; the root of a cgroup namespace has all of them. Fields
//! come and go with kernels; fields that the catalogue does not know are skipped, as unknown fields are stored without
//! a cgroup. Traps: a page is charged to the cgroup that touched it first, so shared files belong to one cgroup; `file`
//! contains `shmem`.
//!
//! Cost: 3 to 5 µs a file; `memory.stat` more, because it sums per-CPU counters of the whole subtree.

use timeline::{
    EntityRow, EntityTable, Facts, Gauge, Row, Signal, SignalId,
    facts::CgroupMode,
    signals::{
        CGROUP_CURRENT, CGROUP_EVENTS, CGROUP_HIGH, CGROUP_IO_PRESSURE, CGROUP_LOW, CGROUP_MAX,
        CGROUP_MEMORY_PRESSURE, CGROUP_MIN, CGROUP_PEAK, CGROUP_PSI_IO_FULL, CGROUP_PSI_IO_SOME,
        CGROUP_PSI_MEMORY_FULL, CGROUP_PSI_MEMORY_FULL_AVG10, CGROUP_PSI_MEMORY_FULL_AVG60,
        CGROUP_PSI_MEMORY_FULL_AVG300, CGROUP_PSI_MEMORY_SOME, CGROUP_PSI_MEMORY_SOME_AVG10,
        CGROUP_PSI_MEMORY_SOME_AVG60, CGROUP_PSI_MEMORY_SOME_AVG300, CGROUP_STAT,
        CGROUP_SWAP_CURRENT, CGROUP_SWAP_MAX,
    },
};
use units::{Bytes, Limit};

use crate::cgroup::v1;
use crate::error::ParseError;
use crate::fields::Fields;
use crate::pressure::{Averages, Pressure};
use crate::text;

const MEMORY_PRESSURE: Pressure = Pressure {
    file: CGROUP_MEMORY_PRESSURE,
    some: CGROUP_PSI_MEMORY_SOME,
    full: CGROUP_PSI_MEMORY_FULL,
    averages: Some(Averages {
        some: [
            CGROUP_PSI_MEMORY_SOME_AVG10,
            CGROUP_PSI_MEMORY_SOME_AVG60,
            CGROUP_PSI_MEMORY_SOME_AVG300,
        ],
        full: [
            CGROUP_PSI_MEMORY_FULL_AVG10,
            CGROUP_PSI_MEMORY_FULL_AVG60,
            CGROUP_PSI_MEMORY_FULL_AVG300,
        ],
    }),
};
const IO_PRESSURE: Pressure = Pressure {
    file: CGROUP_IO_PRESSURE,
    some: CGROUP_PSI_IO_SOME,
    full: CGROUP_PSI_IO_FULL,
    averages: None,
};

/// Parses the files of a cgroup, of either version, and remembers their layout.
#[derive(Debug)]
pub struct CgroupFiles {
    stat: Fields,
    events: Fields,
}

impl Default for CgroupFiles {
    fn default() -> Self {
        Self { stat: Fields::for_file(CGROUP_STAT), events: Fields::for_file(CGROUP_EVENTS) }
    }
}

impl CgroupFiles {
    /// The files of a v2 cgroup that have a parser.
    pub const NAMES: [&str; 12] = [
        "memory.current",
        "memory.stat",
        "memory.events",
        "memory.pressure",
        "memory.max",
        "memory.high",
        "memory.low",
        "memory.min",
        "memory.peak",
        "memory.swap.current",
        "memory.swap.max",
        "io.pressure",
    ];

    /// Returns the names of the files that have a parser.
    pub const fn names(mode: CgroupMode) -> &'static [&'static str] {
        match mode {
            CgroupMode::V1 => &v1::NAMES,
            CgroupMode::V2 => &Self::NAMES,
        }
    }

    /// Returns the v1 source of a signal: the file's name and the field in it, which is empty if the file has only one
    /// number. `None`: v1 does not have it.
    pub fn place_in_v1(signal: SignalId) -> Option<(&'static str, &'static str)> {
        v1::place(signal)
    }

    /// Reads the text of the cgroup's file `name` into its row. `Ok(false)`: this file has no parser.
    ///
    /// # Errors
    /// The first malformed line; the other lines are read.
    pub fn parse(
        &mut self,
        mode: CgroupMode,
        name: &str,
        text: &[u8],
        row: &mut Row,
    ) -> Result<bool, ParseError> {
        if mode == CgroupMode::V1 {
            return v1::parse(name, text, row);
        }
        match name {
            "memory.stat" => self.stat.parse(text, row, |_, _| {}),
            "memory.events" => self.events.parse(text, row, |_, _| {}),
            "memory.pressure" => MEMORY_PRESSURE.parse(text, row),
            "io.pressure" => IO_PRESSURE.parse(text, row),
            "memory.current" => size(text, CGROUP_CURRENT, row),
            "memory.peak" => size(text, CGROUP_PEAK, row),
            "memory.swap.current" => size(text, CGROUP_SWAP_CURRENT, row),
            "memory.max" => limit(text, CGROUP_MAX, row),
            "memory.high" => limit(text, CGROUP_HIGH, row),
            "memory.low" => limit(text, CGROUP_LOW, row),
            "memory.min" => limit(text, CGROUP_MIN, row),
            "memory.swap.max" => limit(text, CGROUP_SWAP_MAX, row),
            _ => return Ok(false),
        }
        .map(|()| true)
    }
}

/// Reads a file with one size.
fn size(text: &[u8], signal: Signal<Gauge<Bytes>>, row: &mut Row) -> Result<(), ParseError> {
    let word = text::trim(text);
    let bytes = text::number(word)
        .ok_or_else(|| ParseError::new(signal.def().file, 1, "a size in bytes", word))?;
    row.set(signal, Bytes::new(bytes));
    Ok(())
}

/// Reads a file with one size, or `max`.
fn limit(text: &[u8], signal: Signal<Gauge<Limit>>, row: &mut Row) -> Result<(), ParseError> {
    let word = text::trim(text);
    let limit = match (word, text::number(word)) {
        (b"max", _) => Limit::Unlimited,
        (_, Some(bytes)) => Limit::Bytes(Bytes::new(bytes)),
        _ => {
            let file = signal.def().file;
            return Err(ParseError::new(file, 1, "a size in bytes or `max`", word));
        }
    };
    row.set(signal, limit);
    Ok(())
}

/// The location of a saved file in a hierarchy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CgroupFile<'a> {
    pub(crate) mode: CgroupMode,
    /// The cgroup's path below the mount: `/app`; `/` for the mount itself.
    pub(crate) group: &'a str,
    /// The file's name in it.
    pub(crate) name: &'a str,
}

impl<'a> CgroupFile<'a> {
    /// Splits the saved path of a cgroup file that has a parser. `None` for all other paths.
    ///
    /// `/sys/fs/cgroup/memory` is a v1 mount on one machine and a cgroup on another, so file names decide.
    /// `memory.stat`, which both have, counts as v1 there unless the machine is `known` to use v2: no cgroup is named
    /// after the controller.
    pub(crate) fn from_path(path: &'a str, known: Option<CgroupMode>) -> Option<Self> {
        let below = path.strip_prefix("/sys/fs/cgroup")?;
        let (_, name) = below.rsplit_once('/')?;
        let below_v1 = below.strip_prefix("/memory").filter(|rest| rest.starts_with('/'));
        let is_v1 =
            v1::NAMES.contains(&name) && (name != "memory.stat" || known != Some(CgroupMode::V2));
        let (mode, below) = match below_v1 {
            Some(rest) if is_v1 => (CgroupMode::V1, rest),
            _ if CgroupFiles::NAMES.contains(&name) => (CgroupMode::V2, below),
            _ => return None,
        };
        // On a host that runs both versions, the unified mount is here, with the pressure files of cgroups.
        let below = match below.strip_prefix("/unified") {
            Some(rest) if mode == CgroupMode::V2 && rest.starts_with('/') => rest,
            _ => below,
        };
        let group = below.strip_suffix(name)?.trim_end_matches('/');
        Some(Self { mode, group: if group.is_empty() { "/" } else { group }, name })
    }

    /// Stores which version manages memory. A pressure file does not show that: on a host that runs both versions it is
    /// in the unified hierarchy, while v1 manages memory.
    pub(crate) fn note_mode(self, facts: &mut Facts) {
        if !self.name.ends_with(".pressure") {
            facts.cgroup_mode = Some(self.mode);
        }
    }

    /// Returns the row of the cgroup. Saved files of one cgroup are usually adjacent, so the last row is tried first.
    pub(crate) fn row(self, table: &mut EntityTable) -> &mut EntityRow {
        if table.rows().last().is_some_and(|row| row.key == self.group) {
            let last = table.rows().len() - 1;
            return &mut table.rows_mut()[last];
        }
        table.entry(self.group)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use timeline::signals::{
        CGROUP_ANON, CGROUP_EVENTS_HIGH, CGROUP_EVENTS_MAX, CGROUP_EVENTS_OOM_KILL, CGROUP_FILE,
        CGROUP_PGSCAN, CGROUP_REFAULT_FILE, field_of,
    };
    use units::{Count, Micros, Pages};

    /// From a 6.12 guest with the cgroup `app` throttled at `memory.high`.
    const STAT_6_12: &[u8] = b"anon 71606272\nfile 4096\nkernel 585728\nkernel_stack 32768\npagetables 311296\n\
        sec_pagetables 0\npercpu 960\nsock 0\nvmalloc 0\nshmem 0\nfile_mapped 0\nfile_dirty 0\nfile_writeback 0\n\
        swapcached 0\nanon_thp 0\nfile_thp 0\nshmem_thp 0\ninactive_anon 71593984\nactive_anon 12288\n\
        inactive_file 4096\nactive_file 0\nunevictable 0\nslab_reclaimable 100\nslab_unreclaimable 200\nslab 300\n\
        workingset_refault_anon 0\nworkingset_refault_file 153601\npgscan 214528\npgsteal 214528\npgfault 17596\n";

    fn parse(name: &str, text: &[u8]) -> (Row, Result<bool, ParseError>) {
        let mut row = Row::default();
        let result = CgroupFiles::default().parse(CgroupMode::V2, name, text, &mut row);
        (row, result)
    }

    #[test]
    fn stat_holds_bytes_and_event_counts() {
        let (row, result) = parse("memory.stat", STAT_6_12);
        assert_eq!(result, Ok(true), "unknown fields are no error");
        assert_eq!(row.get(CGROUP_ANON), Some(Bytes::new(71_606_272)));
        assert_eq!(row.get(CGROUP_FILE), Some(Bytes::new(4096)));
        assert_eq!(row.get(CGROUP_REFAULT_FILE), Some(Pages::new(153_601)));
        assert_eq!(row.get(CGROUP_PGSCAN), Some(Pages::new(214_528)));
    }

    #[test]
    fn a_size_is_bytes_and_max_is_no_limit() {
        let (row, _) = parse("memory.current", b"72196096\n");
        assert_eq!(row.get(CGROUP_CURRENT), Some(Bytes::new(72_196_096)));
        let (row, _) = parse("memory.high", b"83886080\n");
        let limited = Limit::Bytes(Bytes::from_mib(80));
        assert_eq!(row.get(CGROUP_HIGH), Some(limited));
        for name in ["memory.max", "memory.swap.max", "memory.low", "memory.min"] {
            let (row, result) = parse(name, b"max\n");
            assert_eq!(result, Ok(true));
            assert_eq!(row.iter().next().map(|(_, raw)| raw), Some(u64::MAX));
        }
    }

    #[test]
    fn events_and_pressure_are_counters() {
        let text = b"low 0\nhigh 1190\nmax 7\noom 0\noom_kill 3\noom_group_kill 0\n";
        let (row, _) = parse("memory.events", text);
        assert_eq!(row.get(CGROUP_EVENTS_HIGH), Some(Count::new(1190)));
        assert_eq!(row.get(CGROUP_EVENTS_MAX), Some(Count::new(7)));
        assert_eq!(row.get(CGROUP_EVENTS_OOM_KILL), Some(Count::new(3)));
        let text = b"some avg10=74.14 avg60=24.66 avg300=6.03 total=21104711\nfull avg10=74.14 avg60=24.66 avg300=6.03 total=21101001\n";
        let (row, _) = parse("memory.pressure", text);
        assert_eq!(row.get(CGROUP_PSI_MEMORY_SOME), Some(Micros::new(21_104_711)));
        let (row, _) = parse("io.pressure", text);
        assert_eq!(row.get(CGROUP_PSI_IO_FULL), Some(Micros::new(21_101_001)));
    }

    #[test]
    fn what_is_no_size_is_an_error_that_names_the_file() {
        for (name, text, message) in [
            (
                "memory.current",
                &b"-4096\n"[..],
                "memory.current, line 1: expected a size in bytes, found `-4096`",
            ),
            (
                "memory.max",
                b"1180591620717411303424",
                "memory.max, line 1: expected a size in bytes or `max`, found \
                 `1180591620717411303424`",
            ),
            ("memory.high", b"", "found ``"),
        ] {
            let (row, result) = parse(name, text);
            let error = result.unwrap_err().to_string();
            assert!(error.ends_with(message), "{error}");
            assert!(row.is_empty(), "{name}");
        }
        assert_eq!(parse("cgroup.procs", b"1\n").1, Ok(false));
    }

    #[test]
    fn every_cgroup_signal_has_its_file_here() {
        for name in CgroupFiles::NAMES {
            let file = format!("/sys/fs/cgroup/**/{name}");
            assert!(field_of(&file).next().is_some(), "{file}");
        }
        let all = timeline::signals::ALL.iter();
        for def in all.filter(|def| def.entity == timeline::Entity::Cgroup) {
            let name = def.file.strip_prefix("/sys/fs/cgroup/**/");
            let has_parser = name.is_some_and(|name| CgroupFiles::NAMES.contains(&name));
            let is_of_v1 =
                timeline::signals::by_name(def.name).is_some_and(|(id, _)| v1::place(id).is_some());
            assert!(has_parser || is_of_v1, "{} has no parser", def.name);
        }
    }

    #[test]
    fn the_path_tells_version_group_and_file() {
        use CgroupMode::{V1, V2};
        for (path, known, expected) in [
            ("/sys/fs/cgroup/app/memory.current", None, Some((V2, "/app", "memory.current"))),
            ("/sys/fs/cgroup/memory.stat", Some(V1), Some((V2, "/", "memory.stat"))),
            (
                "/sys/fs/cgroup/system.slice/a.service/io.pressure",
                None,
                Some((V2, "/system.slice/a.service", "io.pressure")),
            ),
            ("/sys/fs/cgroup/memory/memory.stat", None, Some((V1, "/", "memory.stat"))),
            (
                "/sys/fs/cgroup/memory/a/b/memory.failcnt",
                Some(V2),
                Some((V1, "/a/b", "memory.failcnt")),
            ),
            ("/sys/fs/cgroup/memory/memory.stat", Some(V2), Some((V2, "/memory", "memory.stat"))),
            ("/sys/fs/cgroup/unified/a/memory.pressure", None, Some((V2, "/a", "memory.pressure"))),
            ("/sys/fs/cgroup/app/cgroup.procs", None, None),
            ("/sys/fs/cgroup/cpu/a/memory.failcnt", None, None),
            ("/proc/meminfo", None, None),
            ("/sys/fs/cgroupmemory.stat", None, None),
        ] {
            let found = CgroupFile::from_path(path, known).map(|p| (p.mode, p.group, p.name));
            assert_eq!(found, expected, "{path}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text: Vec<u8>, name in 0usize..20, path: String) {
            let mut row = Row::default();
            let mut files = CgroupFiles::default();
            for mode in [CgroupMode::V1, CgroupMode::V2] {
                if let Some(name) = CgroupFiles::names(mode).get(name) {
                    let _ = files.parse(mode, name, &text, &mut row);
                }
            }
            for known in [None, Some(CgroupMode::V1), Some(CgroupMode::V2)] {
                CgroupFile::from_path(&format!("/sys/fs/cgroup/{path}"), known);
                CgroupFile::from_path(&format!("/sys/fs/cgroup{path}memory.stat"), known);
            }
        }
    }
}
