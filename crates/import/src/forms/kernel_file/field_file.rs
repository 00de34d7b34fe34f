//! Finds the kernel file that names and values are from: the one that has most of the names.
//!
//! Some names are in several files (`pgfault`, `shmem`, `AnonHugePages`), and some are common words (`Cached`,
//! `Active`): neither decides alone.

use std::collections::HashMap;
use std::sync::LazyLock;

use probe::saved;
use timeline::signals::{
    self, CGROUP_EVENTS, CGROUP_STAT, MEMINFO, NODE_NUMASTAT, PROCESS_IO, PROCESS_STATUS,
    SMAPS_ROLLUP,
};

use crate::text::figure::{KIB, PrintedFigure, raw};

use super::pairs::{FieldPair, FieldValue};

/// A kernel file of names and values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FieldFile {
    Meminfo,
    Vmstat,
    CgroupStat,
    CgroupStatV1,
    CgroupEvents,
    NodeNumastat,
    SmapsRollup,
    Status,
    Io,
}

impl FieldFile {
    const ALL: [Self; 9] = [
        Self::Meminfo,
        Self::Vmstat,
        Self::CgroupStat,
        Self::CgroupStatV1,
        Self::CgroupEvents,
        Self::NodeNumastat,
        Self::SmapsRollup,
        Self::Status,
        Self::Io,
    ];

    const fn bit(self) -> u16 {
        1 << self as u16
    }

    /// Names that are not in the catalogue, but are typical of the file.
    const fn more_names(self) -> &'static [&'static str] {
        match self {
            Self::Meminfo => {
                &["VmallocTotal", "VmallocChunk", "HighTotal", "ShmemPmdMapped", "FilePmdMapped"]
            }
            Self::CgroupStatV1 => &[
                "cache",
                "rss",
                "rss_huge",
                "mapped_file",
                "shmem",
                "swap",
                "dirty",
                "writeback",
                "inactive_anon",
                "active_anon",
                "inactive_file",
                "active_file",
                "unevictable",
                "pgpgin",
                "pgpgout",
                "pgfault",
                "pgmajfault",
                "hierarchical_memory_limit",
                "hierarchical_memsw_limit",
                "total_cache",
                "total_rss",
                "total_rss_huge",
                "total_shmem",
                "total_mapped_file",
                "total_swap",
                "total_dirty",
                "total_writeback",
                "total_inactive_anon",
                "total_active_anon",
                "total_inactive_file",
                "total_active_file",
                "total_unevictable",
            ],
            Self::CgroupEvents => &["oom_group_kill"],
            Self::NodeNumastat => &["interleave_hit", "local_node", "other_node"],
            Self::SmapsRollup => &[
                "Rss",
                "Size",
                "KernelPageSize",
                "MMUPageSize",
                "Shared_Clean",
                "Referenced",
                "Anonymous",
                "ShmemPmdMapped",
                "FilePmdMapped",
                "Swap",
                "Locked",
                "Pss_Dirty",
                "THPeligible",
            ],
            Self::Status => &["VmRSS", "VmSize", "VmPeak", "VmStk", "VmExe", "VmLib"],
            Self::Io => &["syscr", "syscw"],
            Self::Vmstat | Self::CgroupStat => &[],
        }
    }

    /// The name of the file in the catalogue.
    const fn source(self) -> &'static str {
        match self {
            Self::Meminfo => MEMINFO,
            Self::Vmstat => signals::VMSTAT,
            Self::CgroupStat => CGROUP_STAT,
            // v1 is read into the signals of v2; its names are above.
            Self::CgroupStatV1 => "",
            Self::CgroupEvents => CGROUP_EVENTS,
            Self::NodeNumastat => NODE_NUMASTAT,
            Self::SmapsRollup => SMAPS_ROLLUP,
            Self::Status => PROCESS_STATUS,
            Self::Io => PROCESS_IO,
        }
    }

    /// Whether it has this name.
    pub(super) fn knows(self, name: &str) -> bool {
        files_with(name) & self.bit() != 0
    }

    /// Whether its lines are `name: value`, not `name value`.
    const fn has_colons(self) -> bool {
        matches!(self, Self::Meminfo | Self::SmapsRollup | Self::Status | Self::Io)
    }

    /// Whether its sizes are in KiB.
    const fn is_in_kib(self) -> bool {
        matches!(self, Self::Meminfo | Self::SmapsRollup | Self::Status)
    }

    /// The file at a path.
    pub(super) fn at(path: &str) -> Option<Self> {
        let name = path.rsplit('/').next()?;
        let is_below = |start: &str| path.starts_with(start);
        match name {
            "meminfo" if path == MEMINFO => Some(Self::Meminfo),
            "vmstat" if path == signals::VMSTAT => Some(Self::Vmstat),
            "memory.stat" if is_below("/sys/fs/cgroup/memory/") => Some(Self::CgroupStatV1),
            "memory.stat" if is_below("/sys/fs/cgroup/") => Some(Self::CgroupStat),
            "memory.events" if is_below("/sys/fs/cgroup/") => Some(Self::CgroupEvents),
            "numastat" if is_below("/sys/devices/system/node/") => Some(Self::NodeNumastat),
            "smaps_rollup" | "smaps" if is_below("/proc/") => Some(Self::SmapsRollup),
            "io" if is_below("/proc/") && path != signals::IO_PRESSURE => Some(Self::Io),
            _ => None,
        }
    }

    /// The file that the pairs are from; `None` if from none, `Err` with the reason if it is ambiguous.
    pub(super) fn find(pairs: &[FieldPair<'_>]) -> Option<Result<Self, &'static str>> {
        let known = |file: Self| pairs.iter().filter(|p| file.knows(p.name)).count();
        let is_only = |file: Self| pairs.iter().any(|p| files_with(p.name) == file.bit());
        let most = Self::ALL.into_iter().map(known).max().filter(|n| *n > 0)?;
        let mut best: Vec<Self> =
            Self::ALL.into_iter().filter(|file| known(*file) == most).collect();
        if best.len() > 1 && best.iter().any(|file| is_only(*file)) {
            best.retain(|file| is_only(*file));
        }
        match best.as_slice() {
            [file] if file.is_sure(most, pairs) => Some(match file {
                Self::NodeNumastat => Err("the number of the node is missing"),
                file => Ok(*file),
            }),
            [_] => None,
            _ if most > 1 => Some(Err("several kernel files have these names")),
            _ => None,
        }
    }

    fn is_sure(self, known: usize, pairs: &[FieldPair<'_>]) -> bool {
        let mine = || pairs.iter().filter(|p| self.knows(p.name));
        match self {
            Self::Meminfo => {
                known > 1
                    || mine().any(|p| {
                        p.has_colon
                            && (matches!(p.value, FieldValue::Size(_)) || is_distinct(p.name))
                    })
            }
            Self::Vmstat => mine().any(|p| p.name.contains('_') || p.name.starts_with('p')),
            // `Size: 8192 MB` and `Swap: 0 kB` occur anywhere.
            Self::SmapsRollup | Self::Status => mine().any(|p| {
                (is_distinct(p.name) || matches!(p.name, "Pss" | "Rss"))
                    && (known > 1 || matches!(p.value, FieldValue::Size(_)))
            }),
            _ => known > 1,
        }
    }

    /// Whether a value is a size without a unit.
    pub(super) fn is_size_without_unit(self, pair: &FieldPair<'_>) -> bool {
        let is_count = pair.name.starts_with("HugePages_");
        self.is_in_kib() && !is_count && matches!(pair.value, FieldValue::Plain(_))
    }

    /// The line in the notation of the kernel, and its rounding error in bytes. Sizes without a unit count `default`
    /// bytes. `None` if the value does not fit the file.
    pub(super) fn line(self, pair: &FieldPair<'_>, default: Option<f64>) -> Option<(String, f64)> {
        let name = pair.name;
        let is_count = |name: &str| name.starts_with("HugePages_");
        let default = default.filter(|_| self.is_in_kib() && !is_count(name));
        let size = match (&pair.value, default) {
            (FieldValue::Plain(digits), Some(unit)) => {
                Some(PrintedFigure::whole(digits.parse().ok()?).in_bytes(unit))
            }
            (FieldValue::Plain(_), None) => None,
            (FieldValue::Size(size), _) => Some(*size),
        };
        let digits = match (&pair.value, size) {
            (_, Some(size)) if self.is_in_kib() => raw(size.value / KIB)?.to_string(),
            // `anon 12 MB`: the kernel prints bytes.
            (_, Some(size)) => raw(size.value)?.to_string(),
            (FieldValue::Plain(digits), None) => digits.to_string(),
            (FieldValue::Size(_), None) => return None,
        };
        let line = match (self.has_colons(), self.is_in_kib() && !is_count(name)) {
            (true, true) => format!("{name}: {digits} kB"),
            (true, false) => format!("{name}: {digits}"),
            _ => format!("{name} {digits}"),
        };
        Some((line, size.map_or(0.0, PrintedFigure::doubt)))
    }
}

/// The files with a name, as bits.
pub(super) fn files_with(name: &str) -> u16 {
    static FILES: LazyLock<HashMap<&'static str, u16>> = LazyLock::new(|| {
        let mut files: HashMap<&'static str, u16> = HashMap::new();
        for file in FieldFile::ALL {
            let catalogue = signals::field_of(file.source()).map(|(field, ..)| field);
            for name in catalogue.chain(file.more_names().iter().copied()) {
                *files.entry(name).or_default() |= file.bit();
            }
        }
        files
    });
    let found = FILES.get(name).copied().unwrap_or(0);
    if saved::is_split_by_zone(name) { found | FieldFile::Vmstat.bit() } else { found }
}

/// Whether a name is not a common word: `MemFree`, `Active(anon)`, `HugePages_Total`.
fn is_distinct(name: &str) -> bool {
    name.contains(['_', '('])
        || name.bytes().filter(u8::is_ascii_uppercase).count() > 1
        || name.bytes().any(|b| b.is_ascii_digit())
}
