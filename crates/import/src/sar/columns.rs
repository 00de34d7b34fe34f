//! The signals behind sar's columns, one line each, for all forms of sar.
//!
//! Left out on purpose: `kbmemused` (includes the cache before sysstat 11.7.3; only its share of RAM is used, see
//! `ram_total.rs`), `pgsteal/s` (sums counters that overlap on kernels since 5.8, until late in sysstat 12.7),
//! `pgprom/s` and `pgdem/s` (0 also in files too old to have them; the second is a sum of several signals), `%system`,
//! `%usr` and `%nice` (their meaning depends on `-u ALL`), huge pages (in KiB without the page size), and the pressure
//! averages, which `%smem` and the like give exactly.

use crate::text::figure::KIB;
use timeline::SignalId;
use timeline::signals::{
    COMMITTED_AS, CPU_GUEST, CPU_IDLE, CPU_IOWAIT, CPU_IRQ, CPU_SOFTIRQ, CPU_STEAL, CPU_SYSTEM,
    CPU_USER, DENTRIES_UNUSED, DISK_IO_TIME, DISK_QUEUE_TIME, DISK_READ_BYTES, DISK_WRITE_BYTES,
    FILES_OPEN, FORKS, MEM_ACTIVE, MEM_ANON, MEM_AVAILABLE, MEM_BUFFERS, MEM_CACHED, MEM_DIRTY,
    MEM_FREE, MEM_INACTIVE, MEM_KERNEL_STACK, MEM_PAGE_TABLES, MEM_SHMEM, MEM_SLAB,
    MEM_SWAP_CACHED, MEM_VMALLOC_USED, PGFAULT, PGFREE, PGMAJFAULT, PGPGIN, PGPGOUT, PGSCAN_DIRECT,
    PGSCAN_KSWAPD, PSI_CPU_SOME, PSI_IO_FULL, PSI_IO_SOME, PSI_MEMORY_FULL, PSI_MEMORY_SOME,
    PSWPIN, PSWPOUT, SWAP_FREE, TASKS_BLOCKED, TASKS_RUNNING,
};

/// What a column means.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum SarMeaning {
    /// A gauge, and the factor to the unit of the catalogue.
    Level(SignalId, f64),
    /// The rate of a counter, and the factor to the unit of the catalogue.
    PerSecond(SignalId, f64),
    /// Percent of the time of all CPUs.
    CpuShare(SignalId),
    /// `kbswpused`: together with free swap the size of swap.
    SwapUsed,
    /// `kbmemused`, with or without the cache.
    MemUsed,
    /// `%memused`: `kbmemused` as a share of RAM.
    MemUsedShare,
}

/// What the rows of a table are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SarSubject {
    Host,
    /// All CPUs together; rows of single CPUs are skipped.
    Cpus,
    Disk,
}

/// A column of sar.
#[derive(Debug)]
pub(crate) struct SarColumn {
    /// Its heading in `sar`, `sadf -d` and `sadf -p`.
    pub(crate) heading: &'static str,
    /// Its group in `sadf -j` and `sadf -x`.
    pub(crate) group: &'static str,
    /// Its name there.
    pub(crate) name: &'static str,
    /// What its rows are for.
    pub(crate) subject: SarSubject,
    /// What it means.
    pub(crate) meaning: SarMeaning,
}

/// Microseconds per second in 1 %.
const PERCENT_US: f64 = 10_000.0;
/// Milliseconds per second in 1 %.
const PERCENT_MS: f64 = 10.0;

macro_rules! columns {
    ($($subject:ident, $group:literal: $($heading:literal $name:literal = $meaning:expr;)*)*) => {
        &[$($(SarColumn {
            heading: $heading,
            group: $group,
            name: $name,
            subject: SarSubject::$subject,
            meaning: $meaning,
        },)*)*]
    };
}

use SarMeaning::{CpuShare, Level, MemUsed, MemUsedShare, PerSecond, SwapUsed};

/// All columns that are read.
#[rustfmt::skip] // a table
pub(crate) const COLUMNS: &[SarColumn] = columns! {
    Host, "memory":
        "kbmemfree" "memfree" = Level(MEM_FREE.id(), KIB);
        "kbavail" "avail" = Level(MEM_AVAILABLE.id(), KIB);
        "kbmemused" "memused" = MemUsed;
        "%memused" "memused-percent" = MemUsedShare;
        "kbbuffers" "buffers" = Level(MEM_BUFFERS.id(), KIB);
        "kbcached" "cached" = Level(MEM_CACHED.id(), KIB);
        "kbcommit" "commit" = Level(COMMITTED_AS.id(), KIB);
        "kbactive" "active" = Level(MEM_ACTIVE.id(), KIB);
        "kbinact" "inactive" = Level(MEM_INACTIVE.id(), KIB);
        "kbdirty" "dirty" = Level(MEM_DIRTY.id(), KIB);
        "kbshmem" "shared" = Level(MEM_SHMEM.id(), KIB);
        "kbanonpg" "anonpg" = Level(MEM_ANON.id(), KIB);
        "kbslab" "slab" = Level(MEM_SLAB.id(), KIB);
        "kbkstack" "kstack" = Level(MEM_KERNEL_STACK.id(), KIB);
        "kbpgtbl" "pgtbl" = Level(MEM_PAGE_TABLES.id(), KIB);
        "kbvmused" "vmused" = Level(MEM_VMALLOC_USED.id(), KIB);
        "kbswpfree" "swpfree" = Level(SWAP_FREE.id(), KIB);
        "kbswpused" "swpused" = SwapUsed;
        "kbswpcad" "swpcad" = Level(MEM_SWAP_CACHED.id(), KIB);
    Host, "swap-pages":
        "pswpin/s" "pswpin" = PerSecond(PSWPIN.id(), 1.0);
        "pswpout/s" "pswpout" = PerSecond(PSWPOUT.id(), 1.0);
    Host, "paging":
        "pgpgin/s" "pgpgin" = PerSecond(PGPGIN.id(), KIB);
        "pgpgout/s" "pgpgout" = PerSecond(PGPGOUT.id(), KIB);
        "fault/s" "fault" = PerSecond(PGFAULT.id(), 1.0);
        "majflt/s" "majflt" = PerSecond(PGMAJFAULT.id(), 1.0);
        "pgfree/s" "pgfree" = PerSecond(PGFREE.id(), 1.0);
        "pgscank/s" "pgscank" = PerSecond(PGSCAN_KSWAPD.id(), 1.0);
        "pgscand/s" "pgscand" = PerSecond(PGSCAN_DIRECT.id(), 1.0);
    Host, "queue":
        "runq-sz" "runq-sz" = Level(TASKS_RUNNING.id(), 1.0);
        "blocked" "blocked" = Level(TASKS_BLOCKED.id(), 1.0);
    Host, "process-and-context-switch":
        "proc/s" "proc" = PerSecond(FORKS.id(), 1.0);
    Host, "kernel":
        "dentunusd" "dentunusd" = Level(DENTRIES_UNUSED.id(), 1.0);
        "file-nr" "file-nr" = Level(FILES_OPEN.id(), 1.0);
    Host, "psi-cpu":
        "%scpu" "some_avg" = PerSecond(PSI_CPU_SOME.id(), PERCENT_US);
    Host, "psi-io":
        "%sio" "some_avg" = PerSecond(PSI_IO_SOME.id(), PERCENT_US);
        "%fio" "full_avg" = PerSecond(PSI_IO_FULL.id(), PERCENT_US);
    Host, "psi-mem":
        "%smem" "some_avg" = PerSecond(PSI_MEMORY_SOME.id(), PERCENT_US);
        "%fmem" "full_avg" = PerSecond(PSI_MEMORY_FULL.id(), PERCENT_US);
    Cpus, "cpu-load":
        "%user" "user" = CpuShare(CPU_USER.id());
        "%sys" "sys" = CpuShare(CPU_SYSTEM.id());
        "%iowait" "iowait" = CpuShare(CPU_IOWAIT.id());
        "%steal" "steal" = CpuShare(CPU_STEAL.id());
        "%irq" "irq" = CpuShare(CPU_IRQ.id());
        "%soft" "soft" = CpuShare(CPU_SOFTIRQ.id());
        "%guest" "guest" = CpuShare(CPU_GUEST.id());
        "%idle" "idle" = CpuShare(CPU_IDLE.id());
    Disk, "disk":
        "rkB/s" "rkB" = PerSecond(DISK_READ_BYTES.id(), KIB);
        "wkB/s" "wkB" = PerSecond(DISK_WRITE_BYTES.id(), KIB);
        "rd_sec/s" "rd_sec" = PerSecond(DISK_READ_BYTES.id(), 512.0);
        "wr_sec/s" "wr_sec" = PerSecond(DISK_WRITE_BYTES.id(), 512.0);
        "aqu-sz" "aqu-sz" = PerSecond(DISK_QUEUE_TIME.id(), 1000.0);
        "avgqu-sz" "avgqu-sz" = PerSecond(DISK_QUEUE_TIME.id(), 1000.0);
        "%util" "util-percent" = PerSecond(DISK_IO_TIME.id(), PERCENT_MS);
};

/// Index of a column in [`COLUMNS`].
pub(crate) type ColumnIndex = usize;

/// Whether every host has more than 0 of it. If it is 0 in all rows, this sysstat did not know it.
pub(crate) fn is_never_zero(column: ColumnIndex) -> bool {
    const NEVER: &[&str] = &[
        "kbmemfree",
        "kbavail",
        "kbcached",
        "kbcommit",
        "kbactive",
        "kbinact",
        "kbshmem",
        "kbanonpg",
        "kbslab",
        "kbkstack",
        "kbpgtbl",
        "blocked",
    ];
    NEVER.contains(&COLUMNS[column].heading)
}

/// Finds a column by its heading.
pub(crate) fn by_heading(heading: &str) -> Option<ColumnIndex> {
    let heading = match heading {
        // Its name in `sadf -p`.
        "kbshared" => "kbshmem",
        // Its name in `pmrep :sar-r` of PCP, where it is wider than its column.
        "kbmemavai" | "kbmemavail" => "kbavail",
        heading => heading,
    };
    COLUMNS.iter().position(|c| c.heading == heading)
}

/// Finds a column by its group and name.
pub(crate) fn by_name(group: &str, name: &str) -> Option<ColumnIndex> {
    COLUMNS.iter().position(|c| c.name == name && c.group == group)
}

/// Whether a group of `sadf -j` has columns that are read.
pub(crate) fn is_group(group: &str) -> bool {
    COLUMNS.iter().any(|c| c.group == group)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn the_catalogue_has_the_same_columns() {
        // Older names of other columns.
        let older = ["rd_sec/s", "wr_sec/s", "avgqu-sz"];
        for column in COLUMNS {
            let (Level(id, scale) | PerSecond(id, scale)) = column.meaning else {
                continue;
            };
            let def = id.def();
            if !older.contains(&column.heading) && !def.sar.is_empty() {
                assert_eq!(def.sar, column.heading, "{}", def.name);
            }
            assert_eq!(def.is_counter, matches!(column.meaning, PerSecond(..)), "{}", def.name);
            assert!(scale > 0.0);
        }
    }

    #[test]
    fn every_column_is_listed_once() {
        let mut headings = HashSet::new();
        let mut names = HashSet::new();
        for column in COLUMNS {
            assert!(headings.insert(column.heading), "{}", column.heading);
            assert!(names.insert((column.group, column.name)), "{}", column.name);
        }
    }
}
