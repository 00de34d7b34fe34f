//! The table: every setting that a rule names or a fix changes, and every fact that is a setting.

use crate::facts::{
    ADMIN_RESERVE, COMPACTION_PROACTIVENESS, DIRTY_BACKGROUND_BYTES, DIRTY_BACKGROUND_RATIO,
    DIRTY_BYTES, DIRTY_EXPIRE, DIRTY_RATIO, DIRTY_WRITEBACK, Fact, KSM_RUN, KernelVersion,
    LOWMEM_RESERVE, MAX_MAP_COUNT, MGLRU, MIN_FREE, MIN_UNMAPPED, NR_HUGEPAGES, NUMA_BALANCING,
    OOM_KILL_ALLOCATING, OVERCOMMIT_KBYTES, OVERCOMMIT_MEMORY, OVERCOMMIT_RATIO, PAGE_CLUSTER,
    PANIC_ON_OOM, SWAPPINESS, SYSRQ, TCP_MEM_LIMITS, THP_DEFRAG, THP_ENABLED, THP_MAX_PTES_NONE,
    USER_RESERVE, VFS_CACHE_PRESSURE, WATERMARK_BOOST, WATERMARK_SCALE, ZONE_RECLAIM_MODE,
    ZSWAP_ENABLED, ZSWAP_MAX_POOL,
};

use super::defaults::{
    COMPACTION_PROACTIVENESS_DEFAULT, DIRTY_BACKGROUND_RATIO_DEFAULT, DIRTY_RATIO_DEFAULT,
    MAX_PTES_NONE_DEFAULT, SWAPPINESS_DEFAULT, WATERMARK_SCALE_DEFAULT, ZSWAP_MAX_POOL_DEFAULT,
};
use super::{
    AllowedValues, DefaultValue, FromKernel, INT_MAX, LONG_MAX, Setting, SettingScope, SettingUnit,
};

const AT_ONCE: &str = "at once";
const AT_REQUEST: &str = "at the next request for memory";
const AT_RECLAIM: &str = "at the next reclaim";
const AT_FAULT: &str = "at the next page fault; huge pages that are there stay";
const AT_CHARGE: &str = "at once; the kernel reclaims what is above it";
const BY_WRITING: &str = "the value before";
const BY_NOTHING: &str = "nothing";
const BY_OTHER: &str =
    "the value before, of it or of its counterpart: writing one sets the other to 0";

const SYSCTL_VM: &str = "Documentation/admin-guide/sysctl/vm.rst";
const SYSCTL_KERNEL: &str = "Documentation/admin-guide/sysctl/kernel.rst";
const THP: &str = "Documentation/admin-guide/mm/transhuge.rst";
const ZSWAP: &str = "Documentation/admin-guide/mm/zswap.rst";
const ZRAM: &str = "Documentation/admin-guide/blockdev/zram.rst";
const CGROUP_V2: &str = "Documentation/admin-guide/cgroup-v2.rst";
const CGROUP_V1: &str = "Documentation/admin-guide/cgroup-v1/memory.rst";

/// Of the host, set at once, taken back by the value before: what most settings are.
const HOST: Setting = Setting {
    name: "",
    file: "",
    since: "",
    unit: SettingUnit::Plain,
    values: &[number(0, INT_MAX)],
    default: &[is(0)],
    counterpart: None,
    scope: SettingScope::Host,
    takes_effect: AT_ONCE,
    undone_by: BY_WRITING,
    source: SYSCTL_VM,
};

/// A file of a cgroup, with a limit in bytes.
const LIMIT: Setting = Setting {
    since: "4.5",
    unit: SettingUnit::Bytes,
    values: &[values(AllowedValues::Limit)],
    default: &[word("max")],
    scope: SettingScope::Cgroup,
    takes_effect: AT_CHARGE,
    source: CGROUP_V2,
    ..HOST
};

/// A file below /sys that takes a word.
const SWITCH: Setting = Setting { values: &[values(AllowedValues::Switch)], ..HOST };

const fn of(fact: Fact) -> Setting {
    Setting { name: fact.name, file: fact.file, ..HOST }
}

const fn from<T>(major: u32, minor: u32, value: T) -> FromKernel<T> {
    FromKernel { kernel: KernelVersion { major, minor }, value }
}

const fn values(value: AllowedValues) -> FromKernel<AllowedValues> {
    from(0, 0, value)
}

const fn number(min: u64, max: u64) -> FromKernel<AllowedValues> {
    values(AllowedValues::Number { min, max })
}

const fn is(value: u64) -> FromKernel<DefaultValue> {
    from(0, 0, DefaultValue::Number(value))
}

const fn word(value: &'static str) -> FromKernel<DefaultValue> {
    from(0, 0, DefaultValue::Word(value))
}

const fn computed(how: &'static str) -> FromKernel<DefaultValue> {
    from(0, 0, DefaultValue::Computed(how))
}

const fn built(option: &'static str) -> FromKernel<DefaultValue> {
    from(0, 0, DefaultValue::BuildOption(option))
}

const PERCENT: &[FromKernel<AllowedValues>] = &[number(0, 100)];
const ANY: &[FromKernel<AllowedValues>] = &[number(0, LONG_MAX)];
const NO_DEFAULT: &[FromKernel<DefaultValue>] = &[from(0, 0, DefaultValue::Nothing)];

/// All settings: reclaim, writeback, promises, huge pages, swap, kills, the network, cgroups, processes.
pub const ALL: &[Setting] = &[
    Setting {
        values: &[number(0, 100), from(5, 8, AllowedValues::Number { min: 0, max: 200 })],
        default: &[is(SWAPPINESS_DEFAULT)],
        takes_effect: AT_RECLAIM,
        ..of(SWAPPINESS)
    },
    Setting {
        unit: SettingUnit::Kib,
        default: &[computed(
            "√(16 × RAM in kB) kB, 128 kB at least, 256 MiB at most (64 MiB before 5.7); with \
             transparent huge pages on, 11 huge pages for each zone, at most 5 % of RAM",
        )],
        undone_by: "the value before; the kernel sets it anew when memory is added or taken away, \
                    and when huge pages are switched on",
        source: "Documentation/admin-guide/sysctl/vm.rst, mm/page_alloc.c, mm/khugepaged.c",
        ..of(MIN_FREE)
    },
    Setting {
        since: "4.6",
        unit: SettingUnit::PerTenThousand,
        values: &[number(1, 1000), from(5, 17, AllowedValues::Number { min: 1, max: 3000 })],
        default: &[is(WATERMARK_SCALE_DEFAULT)],
        ..of(WATERMARK_SCALE)
    },
    Setting {
        since: "5.0",
        unit: SettingUnit::PerTenThousand,
        default: &[is(15_000)],
        takes_effect: "at the next allocation that mixes mobilities; a boost that is there stays \
                       until kswapd has run",
        ..of(WATERMARK_BOOST)
    },
    Setting {
        values: &[number(0, 7)],
        default: &[
            computed("1 where the distance of two NUMA nodes exceeds 30 (20 before 3.0), else 0"),
            from(3, 16, DefaultValue::Number(0)),
        ],
        takes_effect: AT_REQUEST,
        source: "Documentation/admin-guide/sysctl/vm.rst, commit 4f9b16a64753",
        ..of(ZONE_RECLAIM_MODE)
    },
    Setting {
        since: "2.6.18",
        unit: SettingUnit::Percent,
        values: PERCENT,
        default: &[is(1)],
        takes_effect: "at the next reclaim of a node",
        ..of(MIN_UNMAPPED)
    },
    Setting {
        values: &[values(AllowedValues::Numbers { min_count: 1, max_count: 5 })],
        default: &[computed(
            "256 for DMA and DMA32, 32 for Normal; 0 for the zones above, which keep nothing",
        )],
        takes_effect: AT_REQUEST,
        ..of(LOWMEM_RESERVE)
    },
    Setting {
        unit: SettingUnit::Percent,
        default: &[is(100)],
        takes_effect: AT_RECLAIM,
        ..of(VFS_CACHE_PRESSURE)
    },
    Setting {
        file: "/proc/sys/vm/drop_caches",
        name: "vm.drop_caches",
        since: "2.6.16",
        values: &[values(AllowedValues::Trigger { min: 1, max: 4 })],
        default: NO_DEFAULT,
        undone_by: "nothing: what was dropped is read again",
        ..HOST
    },
    Setting {
        since: "6.1",
        values: &[values(AllowedValues::Bits)],
        default: &[built("CONFIG_LRU_GEN_ENABLED")],
        takes_effect: "at once; pages move to the other lists",
        source: "Documentation/admin-guide/mm/multigen_lru.rst",
        ..of(MGLRU)
    },
    Setting {
        unit: SettingUnit::Percent,
        values: PERCENT,
        default: &[is(DIRTY_RATIO_DEFAULT)],
        counterpart: Some(DIRTY_BYTES),
        undone_by: BY_OTHER,
        ..of(DIRTY_RATIO)
    },
    Setting {
        since: "2.6.29",
        unit: SettingUnit::Bytes,
        values: ANY,
        counterpart: Some(DIRTY_RATIO),
        undone_by: BY_OTHER,
        source: "Documentation/admin-guide/sysctl/vm.rst: two pages at least",
        ..of(DIRTY_BYTES)
    },
    Setting {
        unit: SettingUnit::Percent,
        values: PERCENT,
        default: &[is(DIRTY_BACKGROUND_RATIO_DEFAULT)],
        counterpart: Some(DIRTY_BACKGROUND_BYTES),
        undone_by: BY_OTHER,
        ..of(DIRTY_BACKGROUND_RATIO)
    },
    Setting {
        since: "2.6.29",
        unit: SettingUnit::Bytes,
        values: ANY,
        counterpart: Some(DIRTY_BACKGROUND_RATIO),
        undone_by: BY_OTHER,
        ..of(DIRTY_BACKGROUND_BYTES)
    },
    Setting {
        unit: SettingUnit::Centiseconds,
        default: &[is(3000)],
        takes_effect: "when the flusher wakes next",
        ..of(DIRTY_EXPIRE)
    },
    Setting {
        unit: SettingUnit::Centiseconds,
        default: &[is(500)],
        takes_effect: "when the flusher wakes next; at once where it was 0",
        ..of(DIRTY_WRITEBACK)
    },
    Setting {
        name: "bdi.max_ratio",
        file: "/sys/class/bdi/*/max_ratio",
        unit: SettingUnit::Percent,
        values: PERCENT,
        default: &[is(100)],
        scope: SettingScope::Device,
        source: "Documentation/ABI/testing/sysfs-class-bdi",
        ..HOST
    },
    Setting {
        values: &[number(0, 2)],
        takes_effect: AT_REQUEST,
        source: "Documentation/mm/overcommit-accounting.rst",
        ..of(OVERCOMMIT_MEMORY)
    },
    Setting {
        unit: SettingUnit::Percent,
        default: &[is(50)],
        takes_effect: AT_REQUEST,
        counterpart: Some(OVERCOMMIT_KBYTES),
        undone_by: BY_OTHER,
        ..of(OVERCOMMIT_RATIO)
    },
    Setting {
        since: "3.14",
        unit: SettingUnit::Kib,
        values: ANY,
        takes_effect: AT_REQUEST,
        counterpart: Some(OVERCOMMIT_RATIO),
        undone_by: BY_OTHER,
        ..of(OVERCOMMIT_KBYTES)
    },
    Setting {
        since: "3.10",
        unit: SettingUnit::Kib,
        values: ANY,
        default: &[computed("3 % of free memory, at most 8 MiB")],
        takes_effect: AT_REQUEST,
        ..of(ADMIN_RESERVE)
    },
    Setting {
        since: "3.10",
        unit: SettingUnit::Kib,
        values: ANY,
        default: &[computed("3 % of free memory, at most 128 MiB")],
        takes_effect: AT_REQUEST,
        ..of(USER_RESERVE)
    },
    Setting {
        values: ANY,
        takes_effect: "at once; a shortage of free memory gives fewer pages than asked for",
        undone_by: "the value before; pages in use stay until they are given back",
        source: "Documentation/admin-guide/mm/hugetlbpage.rst",
        ..of(NR_HUGEPAGES)
    },
    Setting { default: &[is(65_530)], takes_effect: "at the next mapping", ..of(MAX_MAP_COUNT) },
    Setting {
        since: "2.6.38",
        values: &[values(AllowedValues::Choice(&["always", "madvise", "never"]))],
        default: &[built(
            "CONFIG_TRANSPARENT_HUGEPAGE_ALWAYS, _MADVISE or _NEVER; never with less than 512 MiB \
             of RAM",
        )],
        takes_effect: AT_FAULT,
        source: THP,
        ..of(THP_ENABLED)
    },
    Setting {
        since: "2.6.38",
        values: &[
            values(AllowedValues::Choice(&["always", "madvise", "never"])),
            from(4, 6, AllowedValues::Choice(&["always", "defer", "madvise", "never"])),
            from(
                4,
                11,
                AllowedValues::Choice(&["always", "defer", "defer+madvise", "madvise", "never"]),
            ),
        ],
        default: &[word("always"), from(4, 6, DefaultValue::Word("madvise"))],
        takes_effect: "at the next page fault",
        source: THP,
        ..of(THP_DEFRAG)
    },
    Setting {
        since: "2.6.38",
        unit: SettingUnit::Pages,
        values: &[number(0, MAX_PTES_NONE_DEFAULT)],
        default: &[is(MAX_PTES_NONE_DEFAULT)],
        takes_effect: "at khugepaged's next pass; huge pages that are there stay",
        source: "Documentation/admin-guide/mm/transhuge.rst: 511 with base pages of 4 KiB",
        ..of(THP_MAX_PTES_NONE)
    },
    Setting {
        since: "5.9",
        unit: SettingUnit::Percent,
        values: PERCENT,
        default: &[is(COMPACTION_PROACTIVENESS_DEFAULT)],
        takes_effect: "within half a second; since 5.15 a value above 0 compacts at once",
        ..of(COMPACTION_PROACTIVENESS)
    },
    Setting {
        name: "vm.compact_memory",
        file: "/proc/sys/vm/compact_memory",
        since: "2.6.35",
        values: &[values(AllowedValues::Trigger { min: 1, max: 1 })],
        default: NO_DEFAULT,
        undone_by: BY_NOTHING,
        ..HOST
    },
    Setting {
        since: "2.6.32",
        values: &[number(0, 2)],
        undone_by: "the value before; 2 took merged pages apart, and 1 finds them again",
        source: "Documentation/admin-guide/mm/ksm.rst",
        ..of(KSM_RUN)
    },
    Setting {
        unit: SettingUnit::PowerOfTwoPages,
        values: &[number(0, 31)],
        default: &[is(3)],
        takes_effect: "at the next page that is read from swap",
        source: "Documentation/admin-guide/sysctl/vm.rst; mm/swap.c: 2 with less than 16 MiB of \
                 RAM",
        ..of(PAGE_CLUSTER)
    },
    Setting {
        since: "3.11",
        default: &[built("CONFIG_ZSWAP_DEFAULT_ON (since 5.7), else off")],
        takes_effect: "at the next page that is swapped out; what is in the pool stays there",
        source: ZSWAP,
        values: SWITCH.values,
        ..of(ZSWAP_ENABLED)
    },
    Setting {
        since: "3.11",
        unit: SettingUnit::Percent,
        values: PERCENT,
        default: &[is(ZSWAP_MAX_POOL_DEFAULT)],
        takes_effect: "at the next page that is swapped out",
        source: ZSWAP,
        ..of(ZSWAP_MAX_POOL)
    },
    Setting {
        name: "zswap.shrinker_enabled",
        file: "/sys/module/zswap/parameters/shrinker_enabled",
        since: "6.8",
        default: &[built("CONFIG_ZSWAP_SHRINKER_DEFAULT_ON, else off")],
        takes_effect: AT_RECLAIM,
        source: ZSWAP,
        ..SWITCH
    },
    Setting {
        name: "zram.disksize",
        file: "/sys/block/*/disksize",
        since: "3.14",
        unit: SettingUnit::Bytes,
        values: ANY,
        scope: SettingScope::Device,
        takes_effect: "at once; once set, only after a reset",
        undone_by: "swapoff and a reset, which drop what is in it",
        source: ZRAM,
        ..HOST
    },
    Setting {
        name: "zram.comp_algorithm",
        file: "/sys/block/*/comp_algorithm",
        since: "3.15",
        values: &[values(AllowedValues::Word)],
        default: &[
            word("lzo"),
            from(5, 1, DefaultValue::Word("lzo-rle")),
            from(5, 11, DefaultValue::BuildOption("CONFIG_ZRAM_DEF_COMP")),
        ],
        scope: SettingScope::Device,
        takes_effect: "when its size is set",
        undone_by: "swapoff and a reset, which drop what is in it",
        source: ZRAM,
        ..HOST
    },
    Setting {
        name: "zram.mem_limit",
        file: "/sys/block/*/mem_limit",
        since: "3.18",
        unit: SettingUnit::Bytes,
        values: ANY,
        scope: SettingScope::Device,
        takes_effect: "at the next page that is swapped out",
        undone_by: "0, which means no limit: the file cannot be read",
        source: ZRAM,
        ..HOST
    },
    Setting {
        since: "3.13",
        values: &[number(0, 1), from(5, 18, AllowedValues::Number { min: 0, max: 3 })],
        default: &[computed(
            "1 with more than one NUMA node (CONFIG_NUMA_BALANCING_DEFAULT_ENABLED), else 0",
        )],
        takes_effect: "within a task's next scan",
        source: SYSCTL_KERNEL,
        ..of(NUMA_BALANCING)
    },
    Setting {
        name: "kernel.numa_balancing_promote_rate_limit_MBps",
        file: "/proc/sys/kernel/numa_balancing_promote_rate_limit_MBps",
        since: "6.1",
        unit: SettingUnit::MibPerSecond,
        default: &[is(65_536)],
        source: SYSCTL_KERNEL,
        ..HOST
    },
    Setting {
        name: "numa.demotion_enabled",
        file: "/sys/kernel/mm/numa/demotion_enabled",
        since: "5.15",
        default: &[word("false")],
        takes_effect: AT_RECLAIM,
        source: "Documentation/ABI/testing/sysfs-kernel-mm-numa",
        ..SWITCH
    },
    Setting { values: &[number(0, 2)], takes_effect: "at the next shortage", ..of(PANIC_ON_OOM) },
    Setting { since: "2.6.24", takes_effect: "at the next kill", ..of(OOM_KILL_ALLOCATING) },
    Setting {
        values: &[number(0, 511)],
        default: &[built("CONFIG_MAGIC_SYSRQ_DEFAULT_ENABLE; distributions set another")],
        source: "Documentation/admin-guide/sysrq.rst",
        ..of(SYSRQ)
    },
    Setting {
        unit: SettingUnit::Pages,
        values: &[values(AllowedValues::Numbers { min_count: 3, max_count: 3 })],
        default: &[computed(
            "4.7, 6.25 and 9.4 % of memory that is free at boot (net/ipv4/tcp.c, tcp_init_mem)",
        )],
        scope: SettingScope::Host,
        takes_effect: "at the next allocation of a socket",
        source: "Documentation/networking/ip-sysctl.rst",
        ..of(TCP_MEM_LIMITS)
    },
    Setting {
        name: "net.ipv4.udp_mem",
        file: "/proc/sys/net/ipv4/udp_mem",
        since: "2.6.25",
        unit: SettingUnit::Pages,
        values: &[values(AllowedValues::Numbers { min_count: 3, max_count: 3 })],
        default: &[computed("9.4, 12.5 and 18.8 % of memory that is free at boot")],
        takes_effect: "at the next allocation of a socket",
        source: "Documentation/networking/ip-sysctl.rst, net/ipv4/udp.c",
        ..HOST
    },
    Setting {
        name: "net.ipv4.tcp_rmem",
        file: "/proc/sys/net/ipv4/tcp_rmem",
        unit: SettingUnit::Bytes,
        values: &[values(AllowedValues::Numbers { min_count: 3, max_count: 3 })],
        default: &[computed("4096, 131072, and up to 6 MiB by the host's memory")],
        scope: SettingScope::NetworkNamespace,
        takes_effect: "at the next connection",
        source: "Documentation/networking/ip-sysctl.rst",
        ..HOST
    },
    Setting {
        name: "memory.min",
        file: "/sys/fs/cgroup/**/memory.min",
        since: "4.18",
        default: &[is(0)],
        takes_effect: AT_RECLAIM,
        ..LIMIT
    },
    Setting {
        name: "memory.low",
        file: "/sys/fs/cgroup/**/memory.low",
        default: &[is(0)],
        takes_effect: AT_RECLAIM,
        ..LIMIT
    },
    Setting { name: "memory.high", file: "/sys/fs/cgroup/**/memory.high", ..LIMIT },
    Setting {
        name: "memory.max",
        file: "/sys/fs/cgroup/**/memory.max",
        takes_effect: "at once; the kernel reclaims what is above it, and kills where it cannot",
        ..LIMIT
    },
    Setting {
        name: "memory.swap.max",
        file: "/sys/fs/cgroup/**/memory.swap.max",
        takes_effect: "at the next page that is swapped out; what is in swap stays there",
        ..LIMIT
    },
    Setting {
        name: "memory.reclaim",
        file: "/sys/fs/cgroup/**/memory.reclaim",
        since: "5.19",
        values: &[values(AllowedValues::Trigger { min: 1, max: LONG_MAX })],
        default: NO_DEFAULT,
        takes_effect: AT_ONCE,
        undone_by: "nothing: what was reclaimed is read or swapped in again",
        ..LIMIT
    },
    Setting {
        name: "memory.limit_in_bytes",
        file: "/sys/fs/cgroup/memory/**/memory.limit_in_bytes",
        since: "2.6.25",
        values: &[values(AllowedValues::LimitV1)],
        default: &[word("-1")],
        takes_effect: "at once; refused (EBUSY) where the kernel cannot reclaim what is above it",
        source: CGROUP_V1,
        ..LIMIT
    },
    Setting {
        name: "memory.memsw.limit_in_bytes",
        file: "/sys/fs/cgroup/memory/**/memory.memsw.limit_in_bytes",
        since: "2.6.29",
        values: &[values(AllowedValues::LimitV1)],
        default: &[word("-1")],
        takes_effect: "at once; refused where it is below memory.limit_in_bytes",
        source: CGROUP_V1,
        ..LIMIT
    },
    Setting {
        name: "memory.swappiness",
        file: "/sys/fs/cgroup/memory/**/memory.swappiness",
        since: "2.6.29",
        values: &[number(0, 100), from(5, 8, AllowedValues::Number { min: 0, max: 200 })],
        default: &[computed(
            "the value of the cgroup above when it was made; the root has vm.swappiness",
        )],
        scope: SettingScope::Cgroup,
        takes_effect: AT_RECLAIM,
        source: CGROUP_V1,
        ..HOST
    },
    Setting {
        name: "oom_score_adj",
        file: "/proc/*/oom_score_adj",
        since: "2.6.36",
        values: &[values(AllowedValues::Word)],
        default: &[computed("that of the process that started it; 0 for init")],
        scope: SettingScope::Process,
        takes_effect: "at the next kill",
        source: "Documentation/filesystems/proc.rst: -1000 to 1000",
        ..HOST
    },
];
