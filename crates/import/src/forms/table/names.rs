//! The meaning of the head of a column: which signal, in which unit, as a level, a total or a rate.
//!
//! Names are compared without case and punctuation: `MemAvailable`, `mem_available` and `mem.available` are equal.
//! Common words (`free`, `cached`) mean memory only together with other evidence.

use std::collections::HashMap;
use std::sync::LazyLock;

use timeline::signals::{
    self, MEM_AVAILABLE, MEM_BUFFERS, MEM_CACHED, MEM_FREE, MEM_SHMEM, MEM_TOTAL, MEMINFO,
    SWAP_FREE, SWAP_TOTAL, VMSTAT,
};
use timeline::{Entity, SignalId};

use crate::forms::size_unit::SizeUnit;
use crate::text::figure::KIB;

/// What a column means.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum ColumnMeaning {
    /// A size, and the unit that its name implies, in bytes: names of meminfo are KiB.
    Size(SignalId, Option<f64>),
    /// A level or a total in the unit of the kernel file.
    Plain(SignalId),
    /// A reading as the catalogue has it.
    Reading(SignalId),
    /// Per second.
    Rate(SignalId),
    /// Stall time.
    Pressure(SignalId, PressureKind),
    /// RSS of an unknown process.
    Resident,
    /// The name of a host: rows are of several hosts.
    Key,
    /// Not used.
    Other,
}

/// How stall time is given.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum PressureKind {
    /// A share in percent over this many seconds.
    Average(f64),
    Total,
    /// Either: the figures decide.
    Unknown,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct TableColumn {
    pub(super) name: String,
    pub(super) meaning: ColumnMeaning,
    /// The unit in its head.
    pub(super) unit: Option<SizeUnit>,
    /// Whether its name means memory without other evidence.
    pub(super) is_sure: bool,
}

impl TableColumn {
    /// The column with this head.
    pub(super) fn from_head(head: &str) -> Self {
        let plain = |meaning, is_sure| Self { meaning, is_sure, ..Self::unused(head) };
        if let Some(found) = find(head) {
            return plain(found.meaning, found.is_sure);
        }
        if let Some((base, unit)) = split_unit(head)
            && let Some(found) = find(base)
        {
            let is_size =
                matches!(found.meaning, ColumnMeaning::Size(..) | ColumnMeaning::Resident);
            return Self {
                unit: Some(unit).filter(|_| is_size),
                // With a unit, a common word is a size.
                ..plain(found.meaning, found.is_sure || is_size)
            };
        }
        if let Some(meaning) = pressure(head) {
            let is_sure = matches!(meaning, ColumnMeaning::Pressure(_, PressureKind::Average(_)));
            return plain(meaning, is_sure);
        }
        Self::unused(head)
    }

    /// The column of a signal of the host by its name in the catalogue, in the unit of the catalogue.
    pub(super) fn from_catalogue(name: &str) -> Self {
        let signal = signals::by_name(name).filter(|(_, def)| def.entity == Entity::Host);
        let meaning = match signal {
            Some((id, def)) if def.unit == "bytes" && !def.is_counter => {
                ColumnMeaning::Size(id, Some(1.0))
            }
            Some((id, _)) => ColumnMeaning::Reading(id),
            None => ColumnMeaning::Other,
        };
        Self { meaning, is_sure: signal.is_some(), ..Self::unused(name) }
    }

    /// A column that is not used.
    pub(super) fn unused(head: &str) -> Self {
        Self { name: head.to_owned(), meaning: ColumnMeaning::Other, unit: None, is_sure: false }
    }

    /// Whether it is used.
    pub(super) const fn is_known(&self) -> bool {
        !matches!(self.meaning, ColumnMeaning::Key | ColumnMeaning::Other)
    }
}

#[derive(Debug, Clone, Copy)]
struct KnownName {
    meaning: ColumnMeaning,
    is_sure: bool,
}

/// Parts of names: each name has one.
pub(super) const STEMS: [&str; 94] = [
    "fault/s",
    "flt/s",
    "proc/s",
    "mem",
    "Mem",
    "MEM",
    "free",
    "Free",
    "FREE",
    "swap",
    "Swap",
    "SWAP",
    "swp",
    "vail",
    "VAIL",
    "cache",
    "Cache",
    "CACHE",
    "cached",
    "buff",
    "Buff",
    "BUFF",
    "active",
    "Active",
    "ACTIVE",
    "slab",
    "Slab",
    "SLAB",
    "rss",
    "RSS",
    "Rss",
    "anon",
    "Anon",
    "ANON",
    "page",
    "Page",
    "PAGE",
    "pg",
    "PG",
    "psi",
    "avg10",
    "avg60",
    "avg300",
    "nr_",
    "thp",
    "THP",
    "workingset",
    "oom",
    "OOM",
    "dirty",
    "Dirty",
    "DIRTY",
    "writeback",
    "Writeback",
    "kb",
    "numa",
    "compact",
    "drop_",
    "allocstall",
    "kswapd",
    "ommit",
    "Huge",
    "huge",
    "Direct",
    "Vmalloc",
    "ercpu",
    "apped",
    "total",
    "Total",
    "TOTAL",
    "eclaim",
    "tack",
    "ounce",
    "alloon",
    "shared",
    "Shared",
    "SHARED",
    "nevict",
    "NEVICT",
    "locked",
    "LOCKED",
    "nfs",
    "NFS",
    "ardware",
    "naccept",
    "htlb",
    "some ",
    "some_",
    "some,",
    "some|",
    "full ",
    "full_",
    "full,",
    "full|",
];

/// Words that mean memory only together with other evidence.
const COMMON: [&str; 24] = [
    "active",
    "inactive",
    "available",
    "avail",
    "free",
    "total",
    "cached",
    "cache",
    "buffers",
    "buff",
    "shared",
    "dirty",
    "mapped",
    "writeback",
    "bounce",
    "slab",
    "percpu",
    "hugetlb",
    "zswap",
    "balloon",
    "memcached",
    "unaccepted",
    "rss",
    "buffcache",
];

/// Other names of the fields of meminfo.
const ALIASES: [(&str, SignalId); 21] = [
    ("memavail", MEM_AVAILABLE.id()),
    ("available", MEM_AVAILABLE.id()),
    ("avail", MEM_AVAILABLE.id()),
    ("availablememory", MEM_AVAILABLE.id()),
    ("free", MEM_FREE.id()),
    ("freememory", MEM_FREE.id()),
    ("freemem", MEM_FREE.id()),
    ("total", MEM_TOTAL.id()),
    ("totalmem", MEM_TOTAL.id()),
    ("cache", MEM_CACHED.id()),
    ("memcached", MEM_CACHED.id()),
    ("memcache", MEM_CACHED.id()),
    ("buffcache", MEM_CACHED.id()),
    ("buff", MEM_BUFFERS.id()),
    ("membuffers", MEM_BUFFERS.id()),
    ("shared", MEM_SHMEM.id()),
    ("memshared", MEM_SHMEM.id()),
    ("memshmem", MEM_SHMEM.id()),
    ("freeswap", SWAP_FREE.id()),
    ("swpfree", SWAP_FREE.id()),
    ("totalswap", SWAP_TOTAL.id()),
];

/// Columns with the name of a host.
const KEYS: [&str; 5] = ["host", "hostname", "instance", "machine", "vm"];

/// Columns with the name of a part of a host: such rows are not of the host.
const PARTS: [&str; 21] = [
    // arcstat: `avail` is what ZFS's cache may grow by.
    "miss",
    "arcsz",
    "node",
    "pod",
    "container",
    "pid",
    "tid",
    "uid",
    "user",
    "process",
    "comm",
    "command",
    "cmd",
    "name",
    "program",
    "service",
    "unit",
    "zone",
    "device",
    "cgroup",
    "namespace",
];

/// Whether rows of a table with this column are of parts of a host.
pub(super) fn is_part(head: &str) -> bool {
    PARTS.contains(&normal(head).as_str())
}

fn find(name: &str) -> Option<KnownName> {
    static NAMES: LazyLock<HashMap<String, KnownName>> = LazyLock::new(all_names);
    NAMES.get(&normal(name)).copied()
}

fn all_names() -> HashMap<String, KnownName> {
    let mut names = HashMap::new();
    let mut add = |name: &str, meaning| {
        let key = normal(name);
        let is_sure = !COMMON.contains(&key.as_str());
        if !name.is_empty() {
            names.entry(key).or_insert(KnownName { meaning, is_sure });
        }
    };
    let host = || {
        let defs = signals::ALL.iter().filter(|def| def.entity == Entity::Host);
        defs.filter_map(|def| Some((def.id()?, def)))
    };
    let with_scale = |id: SignalId, scale: f64| match id.def().unit {
        "bytes" if !id.def().is_counter => ColumnMeaning::Size(id, Some(scale)),
        _ => ColumnMeaning::Plain(id),
    };
    for (id, def) in host() {
        if def.file == MEMINFO || def.file == VMSTAT {
            add(def.field, with_scale(id, KIB));
        }
    }
    for (name, id) in ALIASES {
        add(name, ColumnMeaning::Size(id, None));
    }
    add("rss", ColumnMeaning::Resident);
    for key in KEYS {
        add(key, ColumnMeaning::Key);
    }
    for (id, def) in host() {
        if def.is_counter && def.sar.ends_with("/s") {
            add(def.sar, ColumnMeaning::Rate(id));
        } else if def.sar.starts_with("kb") {
            add(def.sar, with_scale(id, KIB));
        }
        if def.is_counter && def.file == VMSTAT {
            add(&format!("{}/s", def.field), ColumnMeaning::Rate(id));
        }
        if ["mem.util.", "mem.physmem", "mem.vmstat."]
            .iter()
            .any(|start| def.pcp.starts_with(start))
        {
            add(def.pcp, with_scale(id, KIB));
        }
        if def.node_exporter.starts_with("node_memory_")
            || def.node_exporter.starts_with("node_vmstat_")
        {
            add(def.node_exporter, with_scale(id, 1.0));
        }
    }
    names
}

/// A name without case and punctuation; `/s` stays.
fn normal(name: &str) -> String {
    let is_significant = |c: &char| c.is_alphanumeric() || *c == '/';
    name.chars().filter(is_significant).map(|c| c.to_ascii_lowercase()).collect()
}

/// A head and its unit: `free_MB`, `MemFree(kB)`, `Slab [MiB]`, `mem_avail_kb`.
fn split_unit(head: &str) -> Option<(&str, SizeUnit)> {
    if let Some(inside) = head.strip_suffix([')', ']']) {
        let (base, unit) = inside.rsplit_once(['(', '['])?;
        return Some((base.trim(), SizeUnit::named(unit)?));
    }
    if let Some((base, last)) = head.rsplit_once(['_', '-', '.', ' ', '/'])
        && let Some(unit) = SizeUnit::named(last)
    {
        return Some((base, unit));
    }
    ["kB", "KB", "KiB", "MB", "MiB", "GB", "GiB"]
        .iter()
        .find_map(|unit| Some((head.strip_suffix(unit)?, SizeUnit::named(unit)?)))
}

/// `some_avg10`, `psi_io_full_total`, `mem some`. The default resource is memory.
fn pressure(head: &str) -> Option<ColumnMeaning> {
    let lower = head.to_ascii_lowercase();
    let words: Vec<&str> =
        lower.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let has = |word: &str| words.contains(&word);
    let known = |word: &&str| {
        [
            "some", "full", "psi", "pressure", "memory", "mem", "io", "cpu", "avg10", "avg60",
            "avg300", "total", "us", "pct",
        ]
        .contains(word)
    };
    if !words.iter().all(known) || has("some") == has("full") {
        return None;
    }
    let full = has("full");
    let signal = match (has("io"), has("cpu"), full) {
        (true, _, false) => signals::PSI_IO_SOME,
        (true, _, true) => signals::PSI_IO_FULL,
        (_, true, false) => signals::PSI_CPU_SOME,
        (_, true, true) => signals::PSI_CPU_FULL,
        (_, _, false) => signals::PSI_MEMORY_SOME,
        (_, _, true) => signals::PSI_MEMORY_FULL,
    };
    let how = if has("avg10") {
        PressureKind::Average(10.0)
    } else if has("avg60") {
        PressureKind::Average(60.0)
    } else if has("avg300") {
        PressureKind::Average(300.0)
    } else if has("total") {
        PressureKind::Total
    } else {
        PressureKind::Unknown
    };
    Some(ColumnMeaning::Pressure(signal.id(), how))
}

#[cfg(test)]
mod tests {
    use super::*;
    use timeline::signals::{MEM_ACTIVE_ANON, MEM_SLAB_UNRECLAIMABLE, PGPGIN, PSI_IO_FULL, PSWPIN};

    #[test]
    fn heads_are_known_in_any_notation() {
        for (head, signal, bytes) in [
            ("MemAvailable", MEM_AVAILABLE, Some(KIB)),
            ("mem_available", MEM_AVAILABLE, Some(KIB)),
            ("mem_avail", MEM_AVAILABLE, None),
            ("SUnreclaim", MEM_SLAB_UNRECLAIMABLE, Some(KIB)),
            ("active(anon)", MEM_ACTIVE_ANON, Some(KIB)),
            ("kbmemfree", MEM_FREE, Some(KIB)),
            ("mem.util.free", MEM_FREE, Some(KIB)),
            ("node_memory_MemFree_bytes", MEM_FREE, Some(1.0)),
            ("free", MEM_FREE, None),
        ] {
            let column = TableColumn::from_head(head);
            assert_eq!(column.meaning, ColumnMeaning::Size(signal.id(), bytes), "{head}");
            assert_eq!(column.unit, None, "{head}");
        }
        for (head, unit) in [
            ("MemFree_kB", "KiB"),
            ("memfree(kB)", "KiB"),
            ("MemFree [MB]", "MiB"),
            ("free_mb", "MiB"),
            ("MemFreeGiB", "GiB"),
            ("mem_free_bytes", "bytes"),
        ] {
            let column = TableColumn::from_head(head);
            assert_eq!(column.unit.map(|unit| unit.name), Some(unit), "{head}");
            assert!(column.is_sure, "{head}");
        }
    }

    #[test]
    fn every_name_has_a_stem() {
        let defs = signals::ALL.iter().filter(|def| def.entity == Entity::Host);
        let names = defs
            .flat_map(|def| [def.field, def.sar, def.pcp, def.node_exporter])
            .chain(ALIASES.map(|(name, _)| name))
            .chain(["RSS", "rss"]);
        let without =
            |name: &&str| find(name).is_some() && !STEMS.iter().any(|stem| name.contains(stem));
        let missing: Vec<&str> = names.filter(without).collect();
        assert!(missing.is_empty(), "{missing:?}");
    }

    #[test]
    fn totals_rates_and_pressure_are_distinguished() {
        for (head, meaning) in [
            ("pswpin", ColumnMeaning::Plain(PSWPIN.id())),
            ("pswpin/s", ColumnMeaning::Rate(PSWPIN.id())),
            ("pgpgin", ColumnMeaning::Plain(PGPGIN.id())),
            (
                "psi_io_full_avg60",
                ColumnMeaning::Pressure(PSI_IO_FULL.id(), PressureKind::Average(60.0)),
            ),
            ("host", ColumnMeaning::Key),
            ("swap_used_pct", ColumnMeaning::Other),
            ("used", ColumnMeaning::Other),
        ] {
            assert_eq!(TableColumn::from_head(head).meaning, meaning, "{head}");
        }
        assert!(
            !TableColumn::from_head("free").is_sure && !TableColumn::from_head("Active").is_sure
        );
        assert!(TableColumn::from_head("SwapFree").is_sure);
    }
}
