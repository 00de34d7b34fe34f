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
use crate::kernel_file::{Root, Shape};

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

/// A kind of host file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HostFile {
    Meminfo,
    Vmstat,
    Zoneinfo,
    Buddyinfo,
    PressureMemory,
    PressureIo,
    PressureCpu,
    Stat,
    Diskstats,
    Swaps,
    DentryState,
    InodeNr,
    FileNr,
    Sockstat,
    Netstat,
    CgroupStat,
    KsmShared,
    KsmSharing,
    Arcstats,
    NodeMeminfo,
    NodeNumastat,
    ZramMmStat,
    ZramIoStat,
    ZramDiskSize,
    Slabinfo,
}

impl HostFile {
    /// All kinds, in the order in which they are read; related files are adjacent.
    pub(crate) const ALL: [Self; 25] = [
        Self::Meminfo,
        Self::Vmstat,
        Self::Zoneinfo,
        Self::Buddyinfo,
        Self::PressureMemory,
        Self::PressureIo,
        Self::PressureCpu,
        Self::Stat,
        Self::Diskstats,
        Self::Swaps,
        Self::DentryState,
        Self::InodeNr,
        Self::FileNr,
        Self::Sockstat,
        Self::Netstat,
        Self::CgroupStat,
        Self::KsmShared,
        Self::KsmSharing,
        Self::Arcstats,
        Self::NodeMeminfo,
        Self::NodeNumastat,
        Self::ZramMmStat,
        Self::ZramIoStat,
        Self::ZramDiskSize,
        Self::Slabinfo,
    ];

    /// Returns the path as the catalogue has it.
    pub(crate) const fn path(self) -> &'static str {
        match self {
            Self::Meminfo => MEMINFO,
            Self::Vmstat => VMSTAT,
            Self::Zoneinfo => ZONEINFO,
            Self::Buddyinfo => BUDDYINFO,
            Self::PressureMemory => PRESSURE[0].file,
            Self::PressureIo => PRESSURE[1].file,
            Self::PressureCpu => PRESSURE[2].file,
            Self::Stat => STAT,
            Self::Diskstats => DISKSTATS,
            Self::Swaps => SWAPS,
            Self::DentryState => DENTRY_STATE,
            Self::InodeNr => INODE_NR,
            Self::FileNr => FILE_NR,
            Self::Sockstat => SOCKSTAT,
            Self::Netstat => NETSTAT,
            Self::CgroupStat => ROOT_CGROUP_STAT,
            Self::KsmShared => ksm::PAGES_SHARED,
            Self::KsmSharing => ksm::PAGES_SHARING,
            Self::Arcstats => ARCSTATS,
            Self::NodeMeminfo => NODE_MEMINFO,
            Self::NodeNumastat => NODE_NUMASTAT,
            Self::ZramMmStat => ZRAM_MM_STAT,
            Self::ZramIoStat => zram::IO_STAT,
            Self::ZramDiskSize => zram::DISK_SIZE,
            Self::Slabinfo => SLABINFO,
        }
    }

    /// Returns the shape in which the kernel returns the file.
    pub(crate) const fn shape(self) -> Shape {
        match self {
            // Records of any length (a node, a disk with its partitions, a swap area with its path), or of many pages.
            Self::Zoneinfo | Self::Diskstats | Self::Swaps | Self::Arcstats | Self::Slabinfo => {
                Shape::Records
            }
            // A field: the longest name has 30 characters, a number has 20 digits.
            Self::Vmstat => Shape::ShortRecords(96),
            // A node: at most six zones of 16 orders.
            Self::Buddyinfo => Shape::ShortRecords(2048),
            Self::DentryState
            | Self::InodeNr
            | Self::FileNr
            | Self::KsmShared
            | Self::KsmSharing
            | Self::ZramMmStat
            | Self::ZramIoStat
            | Self::ZramDiskSize => Shape::OneLine,
            Self::Meminfo
            | Self::PressureMemory
            | Self::PressureIo
            | Self::PressureCpu
            | Self::Stat
            | Self::Sockstat
            | Self::Netstat
            | Self::CgroupStat
            | Self::NodeMeminfo
            | Self::NodeNumastat => Shape::OneRecord,
        }
    }

    /// Returns how often a recorder reads the file.
    pub(crate) const fn cadence(self) -> Cadence {
        match self {
            Self::Meminfo
            | Self::Vmstat
            | Self::Zoneinfo
            | Self::Buddyinfo
            | Self::PressureMemory
            | Self::PressureIo
            | Self::PressureCpu
            | Self::Stat
            | Self::Diskstats => Cadence::Each,
            Self::Swaps
            | Self::DentryState
            | Self::InodeNr
            | Self::FileNr
            | Self::Sockstat
            | Self::Netstat
            | Self::CgroupStat
            | Self::KsmShared
            | Self::KsmSharing
            | Self::Arcstats
            | Self::NodeMeminfo
            | Self::NodeNumastat
            | Self::ZramMmStat
            | Self::ZramIoStat
            | Self::ZramDiskSize => Cadence::Slow,
            Self::Slabinfo => Cadence::Rare,
        }
    }

    /// Returns kind and instance of the file with this path; the instance of a file that exists once is empty. A capture
    /// has hundreds of thousands of paths, so none is compared with those of all kinds.
    pub(crate) fn at(path: &str) -> Option<(Self, &str)> {
        static SINGLE: LazyLock<HashMap<&str, HostFile>> = LazyLock::new(|| {
            let single = HostFile::ALL.iter().filter(|kind| kind.pattern().is_none());
            single.map(|kind| (kind.path(), *kind)).collect()
        });
        static SEVERAL: LazyLock<Vec<(HostFile, InstancePattern)>> = LazyLock::new(|| {
            let all = HostFile::ALL.iter();
            all.filter_map(|kind| Some((*kind, kind.pattern()?))).collect()
        });
        if let Some(kind) = SINGLE.get(path) {
            return Some((*kind, ""));
        }
        let mut several = SEVERAL.iter();
        several.find_map(|(kind, pattern)| Some((*kind, pattern.instance(path)?)))
    }

    /// Returns how paths of a kind with several instances are made.
    fn pattern(self) -> Option<InstancePattern> {
        let (before, file) = self.path().split_once('*')?;
        let (_, device) = before.rsplit_once('/')?;
        Some(InstancePattern { directory: before.strip_suffix(device)?, device, file })
    }

    /// Returns path and instance of all files of this kind below `root`. A file that exists once is included even if it
    /// is missing.
    pub(crate) fn below(self, root: &Root) -> Vec<(String, String)> {
        let Some(pattern) = self.pattern() else {
            return vec![(self.path().to_owned(), String::new())];
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
        file: HostFile,
        instance: &str,
        text: &[u8],
        sample: &mut Sample,
    ) -> Result<(), ParseError> {
        match file {
            HostFile::Meminfo => self.meminfo.parse(text, sample),
            HostFile::Vmstat => self.vmstat.parse(text, sample),
            HostFile::Zoneinfo => self.zoneinfo.parse(text, sample),
            HostFile::Buddyinfo => self.buddyinfo.parse(text, sample),
            HostFile::PressureMemory => PRESSURE[0].parse(text, &mut sample.host),
            HostFile::PressureIo => PRESSURE[1].parse(text, &mut sample.host),
            HostFile::PressureCpu => PRESSURE[2].parse(text, &mut sample.host),
            HostFile::Stat => stat::parse(text, sample),
            HostFile::Diskstats => diskstats::parse(text, sample),
            HostFile::Swaps => swaps::parse(text, sample),
            HostFile::DentryState => self.dentry_state.parse(text, &mut sample.host),
            HostFile::InodeNr => self.inode_nr.parse(text, &mut sample.host),
            HostFile::FileNr => self.file_nr.parse(text, &mut sample.host),
            HostFile::Sockstat => self.sockstat.parse(text, sample),
            HostFile::Netstat => self.netstat.parse(text, sample),
            HostFile::CgroupStat => self.cgroup_counts.parse(text, sample),
            HostFile::KsmShared => self.ksm_shared.parse(text, &mut sample.host),
            HostFile::KsmSharing => self.ksm_sharing.parse(text, &mut sample.host),
            HostFile::Arcstats => self.arcstats.parse(text, &mut sample.host),
            HostFile::NodeMeminfo => self.numa.parse_meminfo(instance, text, sample),
            HostFile::NodeNumastat => self.numa.parse_numastat(instance, text, sample),
            HostFile::ZramMmStat => zram_row(&self.zram_mm_stat, instance, text, sample),
            HostFile::ZramIoStat => zram_row(&self.zram_io_stat, instance, text, sample),
            HostFile::ZramDiskSize => zram_row(&self.zram_disk_size, instance, text, sample),
            HostFile::Slabinfo => self.slabinfo.parse(text, sample),
        }
    }
}

/// Reads a zram device's file into its row.
fn zram_row(
    columns: &NumberColumns,
    device: &str,
    text: &[u8],
    sample: &mut Sample,
) -> Result<(), ParseError> {
    let device = sample.table_mut(Entity::Zram).entry(device);
    columns.parse(text, &mut device.row)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::saved::Parsers;
    use timeline::{Facts, signals};

    #[test]
    fn a_path_says_kind_and_instance() {
        for (path, expected) in [
            ("/proc/vmstat", Some((HostFile::Vmstat, ""))),
            ("/proc/pressure/io", Some((HostFile::PressureIo, ""))),
            ("/sys/devices/system/node/node12/meminfo", Some((HostFile::NodeMeminfo, "12"))),
            ("/sys/devices/system/node/node0/numastat", Some((HostFile::NodeNumastat, "0"))),
            ("/sys/block/zram1/mm_stat", Some((HostFile::ZramMmStat, "zram1"))),
            ("/sys/block/zram1/disksize", Some((HostFile::ZramDiskSize, "zram1"))),
            ("/sys/block/zram/mm_stat", None),
            ("/sys/block/zramx/mm_stat", None),
            ("/sys/block/sda/mm_stat", None),
            ("/sys/devices/system/node/node0/vmstat", None),
            ("/sys/devices/system/node/node*/meminfo", None),
            ("/proc/vmstat/", None),
            ("", None),
        ] {
            assert_eq!(HostFile::at(path), expected, "{path}");
        }
    }

    #[test]
    fn a_saved_text_of_every_file_finds_its_parser() {
        let mut parsers = Parsers::default();
        for file in HostFile::ALL {
            let path = file.path().replace('*', "0");
            let (mut sample, mut facts) = (Sample::default(), Facts::default());
            let read = parsers.read(&path, b"\xff 1", &mut sample, &mut facts);
            assert_ne!(read, Ok(false), "{path}");
        }
    }

    #[test]
    fn every_host_signal_of_the_catalogue_has_a_file_here() {
        let elsewhere = ["/sys/fs/cgroup/**/", "/proc/PID/", signals::HEAP, signals::DERIVED];
        for def in signals::ALL {
            let is_here = HostFile::ALL.iter().any(|file| file.path() == def.file);
            let is_elsewhere = elsewhere.iter().any(|start| def.file.starts_with(start));
            assert!(is_here != is_elsewhere, "{} of {}", def.name, def.file);
        }
        for file in HostFile::ALL {
            assert!(
                signals::field_of(file.path()).next().is_some(),
                "{} is read for nothing",
                file.path()
            );
        }
    }
}
