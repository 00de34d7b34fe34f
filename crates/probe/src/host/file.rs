//! The host's kernel files: the path of each, the shape in which the kernel returns it, and its parser.
//!
//! One table serves live and saved texts. There is one file for each node and zram device: its path contains a `*` in
//! the catalogue, and the file's *instance* says which one: `0` of `node0`, `zram0`.

use std::collections::HashMap;
use std::sync::LazyLock;

use timeline::{
    Entity, Sample,
    signals::{
        ARCSTATS, BUDDYINFO, DENTRY_STATE, DISKSTATS, FILE_NR, INODE_NR, MEMINFO, NETSTAT,
        NODE_MEMINFO, NODE_NUMASTAT, ROOT_CGROUP_STAT, SLABINFO, SOCKSTAT, STAT, SWAPS, VMSTAT,
        ZONEINFO, ZRAM_MM_STAT,
    },
};

use crate::columns::NumberColumns;
use crate::error::ParseError;
use crate::host::arcstats::Arcstats;
use crate::host::buddyinfo::Buddyinfo;
use crate::host::cgroup_stat::CgroupCounts;
use crate::host::diskstats;
use crate::host::fs_state;
use crate::host::ksm;
use crate::host::meminfo::Meminfo;
use crate::host::netstat::Netstat;
use crate::host::numa::Numa;
use crate::host::pressure::PRESSURE;
use crate::host::slabinfo::Slabinfo;
use crate::host::sockstat::Sockstat;
use crate::host::stat;
use crate::host::swaps;
use crate::host::vmstat::Vmstat;
use crate::host::zoneinfo::Zoneinfo;
use crate::host::zram;
use crate::kernel_file::Root;
use crate::kernel_file::Shape::{self, OneLine, OneRecord, Records, ShortRecords};
use Cadence::{Each, Rare, Slow};

/// How often a recorder reads a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cadence {
    /// With every sample: values that change within seconds and are needed to explain any stall.
    Each,
    /// Every few samples: totals of kernel objects, which change slowly, and values that other files also have: a
    /// node's free memory is that of its zones.
    Slow,
    /// Rarely: slabinfo costs more than all others together.
    Rare,
}

/// A host file: one, or one for each node or zram device.
#[derive(Debug)]
pub(crate) struct HostFile {
    /// As the catalogue has it.
    pub(crate) path: &'static str,
    /// The shape in which the kernel returns it.
    pub(crate) shape: Shape,
    /// How often a recorder reads it.
    pub(crate) cadence: Cadence,
    /// Its parser.
    parse: ParseHostFile,
}

type ParseHostFile = fn(&mut HostParsers, HostText<'_>) -> Result<(), ParseError>;

/// The text of a file, and where its readings go.
struct HostText<'a> {
    instance: &'a str,
    text: &'a [u8],
    sample: &'a mut Sample,
}

/// All host files, in the order in which they are read; related files are adjacent. `Records` are of any length (a node, a
/// disk with its partitions, a swap area with its path), or of many pages.
#[rustfmt::skip] // One file, one line.
pub(crate) static FILES: [HostFile; 25] = [
    HostFile::new(MEMINFO, OneRecord, Each, |p, t| p.meminfo.parse(t.text, t.sample)),
    // A field: the longest name has 30 characters, a number has 20 digits.
    HostFile::new(VMSTAT, ShortRecords(96), Each, |p, t| p.vmstat.parse(t.text, t.sample)),
    HostFile::new(ZONEINFO, Records, Each, |p, t| p.zoneinfo.parse(t.text, t.sample)),
    // A node: at most six zones of 16 orders.
    HostFile::new(BUDDYINFO, ShortRecords(2048), Each, |p, t| p.buddyinfo.parse(t.text, t.sample)),
    HostFile::new(PRESSURE[0].file, OneRecord, Each, |_, t| PRESSURE[0].parse(t.text, &mut t.sample.host)),
    HostFile::new(PRESSURE[1].file, OneRecord, Each, |_, t| PRESSURE[1].parse(t.text, &mut t.sample.host)),
    HostFile::new(PRESSURE[2].file, OneRecord, Each, |_, t| PRESSURE[2].parse(t.text, &mut t.sample.host)),
    HostFile::new(STAT, OneRecord, Each, |_, t| stat::parse(t.text, t.sample)),
    HostFile::new(DISKSTATS, Records, Each, |_, t| diskstats::parse(t.text, t.sample)),
    HostFile::new(SWAPS, Records, Slow, |_, t| swaps::parse(t.text, t.sample)),
    HostFile::new(DENTRY_STATE, OneLine, Slow, |p, t| p.dentry_state.parse(t.text, &mut t.sample.host)),
    HostFile::new(INODE_NR, OneLine, Slow, |p, t| p.inode_nr.parse(t.text, &mut t.sample.host)),
    HostFile::new(FILE_NR, OneLine, Slow, |p, t| p.file_nr.parse(t.text, &mut t.sample.host)),
    HostFile::new(SOCKSTAT, OneRecord, Slow, |p, t| p.sockstat.parse(t.text, t.sample)),
    HostFile::new(NETSTAT, OneRecord, Slow, |p, t| p.netstat.parse(t.text, t.sample)),
    HostFile::new(ROOT_CGROUP_STAT, OneRecord, Slow, |p, t| p.cgroup_counts.parse(t.text, t.sample)),
    HostFile::new(ksm::PAGES_SHARED, OneLine, Slow, |p, t| p.ksm_shared.parse(t.text, &mut t.sample.host)),
    HostFile::new(ksm::PAGES_SHARING, OneLine, Slow, |p, t| p.ksm_sharing.parse(t.text, &mut t.sample.host)),
    HostFile::new(ARCSTATS, Records, Slow, |p, t| p.arcstats.parse(t.text, &mut t.sample.host)),
    HostFile::new(NODE_MEMINFO, OneRecord, Slow, |p, t| p.numa.parse_meminfo(t.instance, t.text, t.sample)),
    HostFile::new(NODE_NUMASTAT, OneRecord, Slow, |p, t| p.numa.parse_numastat(t.instance, t.text, t.sample)),
    HostFile::new(ZRAM_MM_STAT, OneLine, Slow, |p, t| zram_row(&p.zram_mm_stat, t)),
    HostFile::new(zram::IO_STAT, OneLine, Slow, |p, t| zram_row(&p.zram_io_stat, t)),
    HostFile::new(zram::DISK_SIZE, OneLine, Slow, |p, t| zram_row(&p.zram_disk_size, t)),
    HostFile::new(SLABINFO, Records, Rare, |p, t| p.slabinfo.parse(t.text, t.sample)),
];

impl HostFile {
    const fn new(path: &'static str, shape: Shape, cadence: Cadence, parse: ParseHostFile) -> Self {
        Self { path, shape, cadence, parse }
    }

    /// Returns kind and instance of the file with this path; the instance of a file that exists once is empty. A capture
    /// has hundreds of thousands of paths, so none is compared with those of all kinds.
    pub(crate) fn at(path: &str) -> Option<(&'static Self, &str)> {
        static SINGLE: LazyLock<HashMap<&str, &HostFile>> = LazyLock::new(|| {
            let single = FILES.iter().filter(|kind| kind.pattern().is_none());
            single.map(|kind| (kind.path, kind)).collect()
        });
        static SEVERAL: LazyLock<Vec<(&HostFile, InstancePattern)>> = LazyLock::new(|| {
            FILES.iter().filter_map(|kind| Some((kind, kind.pattern()?))).collect()
        });
        if let Some(kind) = SINGLE.get(path) {
            return Some((*kind, ""));
        }
        let mut several = SEVERAL.iter();
        several.find_map(|(kind, pattern)| Some((*kind, pattern.instance(path)?)))
    }

    /// Returns how paths of a kind with several instances are made.
    fn pattern(&self) -> Option<InstancePattern> {
        let (before, file) = self.path.split_once('*')?;
        let (_, device) = before.rsplit_once('/')?;
        Some(InstancePattern { directory: before.strip_suffix(device)?, device, file })
    }

    /// Returns path and instance of all files of this kind below `root`. A file that exists once is included even if it
    /// is missing.
    pub(crate) fn below(&self, root: &Root) -> Vec<(String, String)> {
        let Some(pattern) = self.pattern() else {
            return vec![(self.path.to_owned(), String::new())];
        };
        let InstancePattern { directory, file, .. } = pattern;
        let paths = root.names(directory).into_iter();
        paths
            .map(|name| format!("{directory}{name}{file}"))
            .filter_map(|path| Some((pattern.instance(&path)?.to_owned(), path)))
            .map(|(instance, path)| (path, instance))
            .collect()
    }
}

/// The paths of a kind with several instances: `/sys/block/` `zram` and a number, `/mm_stat`.
#[derive(Debug, Clone, Copy)]
struct InstancePattern {
    directory: &'static str,
    /// What the name of an instance begins with.
    device: &'static str,
    file: &'static str,
}

impl InstancePattern {
    /// Returns the instance of the file with this path; `None` if it is of another kind.
    fn instance(self, path: &str) -> Option<&str> {
        let name = path.strip_prefix(self.directory)?.strip_suffix(self.file)?;
        let number = name.strip_prefix(self.device)?;
        let is_number = !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit());
        // A node is keyed by its number, a zram device by its name.
        let instance = if self.device == "node" { number } else { name };
        is_number.then_some(instance)
    }
}

/// The parsers of all host files, and their state between samples.
#[derive(Debug)]
pub(crate) struct HostParsers {
    meminfo: Meminfo,
    vmstat: Vmstat,
    zoneinfo: Zoneinfo,
    buddyinfo: Buddyinfo,
    sockstat: Sockstat,
    netstat: Netstat,
    cgroup_counts: CgroupCounts,
    numa: Numa,
    arcstats: Arcstats,
    slabinfo: Slabinfo,
    dentry_state: NumberColumns,
    inode_nr: NumberColumns,
    file_nr: NumberColumns,
    ksm_shared: NumberColumns,
    ksm_sharing: NumberColumns,
    zram_mm_stat: NumberColumns,
    zram_io_stat: NumberColumns,
    zram_disk_size: NumberColumns,
}

impl Default for HostParsers {
    fn default() -> Self {
        Self {
            meminfo: Meminfo::default(),
            vmstat: Vmstat::default(),
            zoneinfo: Zoneinfo::default(),
            buddyinfo: Buddyinfo::default(),
            sockstat: Sockstat::default(),
            netstat: Netstat,
            cgroup_counts: CgroupCounts::default(),
            numa: Numa::default(),
            arcstats: Arcstats::default(),
            slabinfo: Slabinfo::default(),
            dentry_state: fs_state::dentry_state(),
            inode_nr: fs_state::inode_nr(),
            file_nr: fs_state::file_nr(),
            ksm_shared: ksm::pages_shared(),
            ksm_sharing: ksm::pages_sharing(),
            zram_mm_stat: zram::mm_stat(),
            zram_io_stat: zram::io_stat(),
            zram_disk_size: zram::disk_size(),
        }
    }
}

impl HostParsers {
    /// Reads a file's text into the sample.
    ///
    /// # Errors
    /// The first malformed line; readings of the other lines are valid.
    pub(crate) fn parse(
        &mut self,
        file: &HostFile,
        instance: &str,
        text: &[u8],
        sample: &mut Sample,
    ) -> Result<(), ParseError> {
        (file.parse)(self, HostText { instance, text, sample })
    }
}

/// Reads a zram device's file into its row.
fn zram_row(columns: &NumberColumns, text: HostText<'_>) -> Result<(), ParseError> {
    let device = text.sample.table_mut(Entity::Zram).entry(text.instance);
    columns.parse(text.text, &mut device.row)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::saved::Parsers;
    use timeline::{Facts, signals};

    #[test]
    fn a_path_says_kind_and_instance() {
        for (path, expected) in [
            ("/proc/vmstat", Some((VMSTAT, ""))),
            ("/proc/pressure/io", Some((signals::IO_PRESSURE, ""))),
            ("/sys/devices/system/node/node12/meminfo", Some((NODE_MEMINFO, "12"))),
            ("/sys/devices/system/node/node0/numastat", Some((NODE_NUMASTAT, "0"))),
            ("/sys/block/zram1/mm_stat", Some((ZRAM_MM_STAT, "zram1"))),
            ("/sys/block/zram1/disksize", Some((zram::DISK_SIZE, "zram1"))),
            ("/sys/block/zram/mm_stat", None),
            ("/sys/block/zramx/mm_stat", None),
            ("/sys/block/sda/mm_stat", None),
            ("/sys/devices/system/node/node0/vmstat", None),
            ("/sys/devices/system/node/node*/meminfo", None),
            ("/proc/vmstat/", None),
            ("", None),
        ] {
            let found = HostFile::at(path).map(|(kind, instance)| (kind.path, instance));
            assert_eq!(found, expected, "{path}");
        }
    }

    #[test]
    fn a_saved_text_of_every_file_finds_its_parser() {
        let mut parsers = Parsers::default();
        for file in &FILES {
            let path = file.path.replace('*', "0");
            let (mut sample, mut facts) = (Sample::default(), Facts::default());
            let read = parsers.read(&path, b"\xff 1", &mut sample, &mut facts);
            assert_ne!(read, Ok(false), "{path}");
        }
    }

    #[test]
    fn every_host_signal_of_the_catalogue_has_a_file_here() {
        let elsewhere = [
            "/sys/fs/cgroup/**/",
            signals::CGROUP_OOM_CONTROL,
            "/proc/PID/",
            signals::HEAP,
            signals::DERIVED,
        ];
        for def in signals::ALL {
            let is_here = FILES.iter().any(|file| file.path == def.file);
            let is_elsewhere = elsewhere.iter().any(|start| def.file.starts_with(start));
            assert!(is_here != is_elsewhere, "{} of {}", def.name, def.file);
        }
        for file in &FILES {
            assert!(
                signals::field_of(file.path).next().is_some(),
                "{} is read for nothing",
                file.path
            );
        }
    }
}
