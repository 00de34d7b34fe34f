//! What changes rarely on a host (kernel, tunables, topology, limits) and when it changed.
//!
//! Each fact is declared once here, with the file it comes from. Rules use the constant; a fact that the source lacks
//! is `None`, never a default.

use std::collections::BTreeMap;

use units::{Bytes, PageSize, Span};

use crate::cgroup::{GroupName, GroupNames, ROOT};
use crate::memory_budget::{MemoryBudget, start_of};

/// A tunable or setting that a kernel file gives as a short text.
#[allow(missing_docs)] // names say it
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fact {
    /// Dotted name: `vm.swappiness`, `thp.enabled`.
    pub name: &'static str,
    /// The kernel file.
    pub file: &'static str,
    pub meaning: &'static str,
}

macro_rules! facts {
    ($($const:ident = $name:literal, $file:literal, $meaning:literal;)*) => {
        $(
            #[doc = $meaning]
            pub const $const: Fact = Fact { name: $name, file: $file, meaning: $meaning };
        )*
        /// Every fact that is read from a file of its own.
        pub const ALL: &[Fact] = &[$($const,)*];
    };
}

facts! {
    SWAPPINESS = "vm.swappiness", "/proc/sys/vm/swappiness",
        "How readily anonymous memory is swapped out instead of page cache dropped; 0 to 200, 100 \
         is even.";
    MIN_FREE = "vm.min_free_kbytes", "/proc/sys/vm/min_free_kbytes",
        "Sum of the zones' min watermarks, in KiB; the floor of free memory follows from it.";
    WATERMARK_SCALE = "vm.watermark_scale_factor", "/proc/sys/vm/watermark_scale_factor",
        "Distance between the watermarks in 1/10,000 of the zone.";
    WATERMARK_BOOST = "vm.watermark_boost_factor", "/proc/sys/vm/watermark_boost_factor",
        "How far fragmentation may raise the watermarks, in 1/10,000 of the high watermark.";
    ZONE_RECLAIM_MODE = "vm.zone_reclaim_mode", "/proc/sys/vm/zone_reclaim_mode",
        "Whether a full NUMA node reclaims its own pages before it takes free ones of another \
         node; bits 1 on, 2 write, 4 swap.";
    OVERCOMMIT_MEMORY = "vm.overcommit_memory", "/proc/sys/vm/overcommit_memory",
        "0 refuses absurd requests, 1 refuses none, 2 refuses what exceeds CommitLimit.";
    OVERCOMMIT_RATIO = "vm.overcommit_ratio", "/proc/sys/vm/overcommit_ratio",
        "Share of RAM that CommitLimit counts, in percent.";
    OVERCOMMIT_KBYTES = "vm.overcommit_kbytes", "/proc/sys/vm/overcommit_kbytes",
        "RAM that CommitLimit counts, in KiB; 0 means that the ratio holds.";
    DIRTY_RATIO = "vm.dirty_ratio", "/proc/sys/vm/dirty_ratio",
        "Share of dirtyable memory at which writers wait, in percent; 0 means that the bytes \
         hold.";
    DIRTY_BYTES = "vm.dirty_bytes", "/proc/sys/vm/dirty_bytes",
        "Dirty bytes at which writers wait; 0 means that the ratio holds.";
    DIRTY_BACKGROUND_RATIO = "vm.dirty_background_ratio", "/proc/sys/vm/dirty_background_ratio",
        "Share of dirtyable memory at which background writing starts, in percent.";
    DIRTY_BACKGROUND_BYTES = "vm.dirty_background_bytes", "/proc/sys/vm/dirty_background_bytes",
        "Dirty bytes at which background writing starts.";
    DIRTY_EXPIRE = "vm.dirty_expire_centisecs", "/proc/sys/vm/dirty_expire_centisecs",
        "Age at which a dirty page must be written, in hundredths of a second.";
    DIRTY_WRITEBACK = "vm.dirty_writeback_centisecs", "/proc/sys/vm/dirty_writeback_centisecs",
        "How often the flusher wakes, in hundredths of a second.";
    VFS_CACHE_PRESSURE = "vm.vfs_cache_pressure", "/proc/sys/vm/vfs_cache_pressure",
        "How readily dentries and inodes are reclaimed; 100 is even.";
    PAGE_CLUSTER = "vm.page-cluster", "/proc/sys/vm/page-cluster",
        "Swap readahead: 2 to this power pages.";
    LOWMEM_RESERVE = "vm.lowmem_reserve_ratio", "/proc/sys/vm/lowmem_reserve_ratio",
        "Divisors of the lowmem reserve, which lower zones withhold from allocations that could \
         use higher ones.";
    MIN_UNMAPPED = "vm.min_unmapped_ratio", "/proc/sys/vm/min_unmapped_ratio",
        "Share of unmapped file pages above which node reclaim acts, in percent.";
    NR_HUGEPAGES = "vm.nr_hugepages", "/proc/sys/vm/nr_hugepages",
        "Reserved huge pages of the default size.";
    MAX_MAP_COUNT = "vm.max_map_count", "/proc/sys/vm/max_map_count",
        "The most mappings a process may have.";
    PANIC_ON_OOM = "vm.panic_on_oom", "/proc/sys/vm/panic_on_oom",
        "Whether the kernel panics instead of killing a process.";
    OOM_KILL_ALLOCATING = "vm.oom_kill_allocating_task", "/proc/sys/vm/oom_kill_allocating_task",
        "Whether the allocating process is killed instead of the one with the highest score.";
    ADMIN_RESERVE = "vm.admin_reserve_kbytes", "/proc/sys/vm/admin_reserve_kbytes",
        "RAM reserved for root when overcommit is off, in KiB.";
    USER_RESERVE = "vm.user_reserve_kbytes", "/proc/sys/vm/user_reserve_kbytes",
        "RAM reserved for a user's recovery when overcommit is off, in KiB.";
    COMPACTION_PROACTIVENESS = "vm.compaction_proactiveness", "/proc/sys/vm/compaction_proactiveness",
        "How eagerly kcompactd makes huge-page blocks in the background; 0 to 100.";
    TCP_MEM_LIMITS = "net.ipv4.tcp_mem", "/proc/sys/net/ipv4/tcp_mem",
        "Limits of the memory of all TCP sockets, in pages: where pressure ends, where it begins, \
         and the most.";
    NUMA_BALANCING = "kernel.numa_balancing", "/proc/sys/kernel/numa_balancing",
        "Whether pages are moved to the node that uses them.";
    THP_ENABLED = "thp.enabled", "/sys/kernel/mm/transparent_hugepage/enabled",
        "Whether anonymous memory gets huge pages: always, madvise or never.";
    THP_DEFRAG = "thp.defrag", "/sys/kernel/mm/transparent_hugepage/defrag",
        "How hard a page fault tries for a huge page.";
    THP_MAX_PTES_NONE = "thp.max_ptes_none", "/sys/kernel/mm/transparent_hugepage/khugepaged/max_ptes_none",
        "How many untouched small pages khugepaged may fill in when it makes a huge page.";
    MGLRU = "lru_gen.enabled", "/sys/kernel/mm/lru_gen/enabled",
        "Whether the multi-generational LRU is in use; a bit mask.";
    KSM_RUN = "ksm.run", "/sys/kernel/mm/ksm/run", "Whether KSM merges equal pages.";
    ZSWAP_ENABLED = "zswap.enabled", "/sys/module/zswap/parameters/enabled",
        "Whether swapped pages are compressed in RAM first.";
    ZSWAP_MAX_POOL = "zswap.max_pool_percent", "/sys/module/zswap/parameters/max_pool_percent",
        "The most RAM that zswap's pool may take, in percent.";
    KERNEL_CMDLINE = "kernel.cmdline", "/proc/cmdline", "The kernel's boot parameters.";
    KERNEL_VERSION = "kernel.version", "/proc/version", "The kernel's version and build.";
}

/// What the keyboard may make the kernel do: a setting that no source reads.
pub const SYSRQ: Fact = Fact {
    name: "kernel.sysrq",
    file: "/proc/sys/kernel/sysrq",
    meaning: "Which requests by SysRq the kernel obeys; a bit mask, 1 means all.",
};

/// The text before the release in `/proc/version`.
const VERSION_PREFIX: &str = "Linux version ";

/// A kernel's version number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct KernelVersion {
    /// First number.
    pub major: u32,
    /// Second number.
    pub minor: u32,
}

impl KernelVersion {
    /// Parses a release (`6.1.0-56-cloud-amd64`) or the text of `/proc/version`.
    pub fn parse(text: &str) -> Option<Self> {
        let release = text.strip_prefix(VERSION_PREFIX).unwrap_or(text).trim_start();
        let mut numbers = release.split(|c: char| !c.is_ascii_digit());
        Some(Self { major: numbers.next()?.parse().ok()?, minor: numbers.next()?.parse().ok()? })
    }
}

/// Which cgroup hierarchy manages memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CgroupMode {
    /// The memory controller is on a v1 hierarchy.
    V1,
    /// The memory controller is on the unified hierarchy.
    V2,
}

/// A NUMA node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// Its number.
    pub id: u32,
    /// Distance to each node, in the order of their numbers; 10 is itself.
    pub distances: Vec<u32>,
}

/// A block device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Disk {
    /// Kernel name.
    pub name: String,
    /// What the kernel takes it for: a rotating disk, or not; `None` where unknown.
    pub rotational: Option<bool>,
}

impl Disk {
    /// Whether it is known to spin. The kernel takes a virtual disk for a rotating one unless its host says otherwise.
    pub fn spins(&self) -> bool {
        const VIRTUAL: [&str; 3] = ["vd", "xvd", "nbd"];
        let is_virtual = VIRTUAL.iter().any(|kind| self.name.starts_with(kind));
        self.rotational == Some(true) && !is_virtual
    }
}

/// A mounted file system that keeps its data in RAM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryMount {
    /// Where it is mounted.
    pub point: String,
    /// `tmpfs`, `ramfs`, `devtmpfs`.
    pub kind: String,
    /// Its `size=` option in bytes; `None` where not given as such.
    pub size: Option<Bytes>,
}

/// The container that memtide runs in.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Container {
    /// How it was detected: `docker (/.dockerenv)`, `a private PID namespace`, `lxcfs on /proc/meminfo`.
    pub signs: Vec<String>,
    /// Whether `/proc/meminfo` shows the container instead of the machine (lxcfs, gVisor).
    pub meminfo_is_own: bool,
}

/// A fact that changed while the source was recorded, at some time between two readings of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The last reading of the old value, on the timeline's clock; `None` where it is unknown or from before the
    /// timeline's beginning.
    pub since: Option<Span>,
    /// The first reading of the new value, on the timeline's clock.
    pub at: Span,
    /// The fact that changed.
    pub fact: Fact,
    /// The old value.
    pub from: String,
    /// The new value.
    pub to: String,
}

/// What is known about a host besides its signals.
#[derive(Debug, Clone, Default)]
pub struct Facts {
    values: BTreeMap<&'static str, String>,
    /// When each fact was last read; absent for facts that were read only before the timeline's beginning.
    read: BTreeMap<&'static str, Span>,
    changes: Vec<Change>,
    budget: FactsBudget,
    /// How many changes found no room in memory.
    changes_left_out: usize,
    /// Size of a base page.
    pub page_size: Option<PageSize>,
    /// USER_HZ: clock ticks a second in `/proc/stat`; 100 where unknown.
    pub ticks_per_second: Option<u64>,
    /// CPUs online.
    pub cpus: Option<u32>,
    /// NUMA nodes; empty where unknown.
    pub nodes: Vec<Node>,
    /// Block devices; empty where unknown.
    pub disks: Vec<Disk>,
    /// File systems in RAM; empty where unknown.
    pub memory_mounts: Vec<MemoryMount>,
    /// Which hierarchy manages memory; `None` where the source has no cgroup files.
    pub cgroup_mode: Option<CgroupMode>,
    /// The cgroup of memtide itself, as keyed in the timeline.
    pub own_cgroup: Option<String>,
    /// The container that memtide runs in; `None` on the machine itself.
    pub container: Option<Container>,
    /// What people call containers, pods and users.
    pub names: GroupNames,
    /// Name of the host, where requested.
    pub hostname: Option<String>,
    /// Of a text with figures of several hosts, the index of the first sample of each, with the host's name; else empty.
    pub hosts: Vec<(usize, String)>,
}

/// The memory of changes.
#[derive(Debug, Clone)]
struct FactsBudget(MemoryBudget);

impl Default for FactsBudget {
    fn default() -> Self {
        Self(MemoryBudget::of_facts())
    }
}

/// The chosen word of a kernel file that lists its choices: `always [madvise] never`; `None` if no word is in brackets.
pub fn chosen_word(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once('[')?;
    rest.split_once(']').map(|(word, _)| word)
}

impl Facts {
    /// The longest text that is kept: the kernel's boot parameters have at most 64 KiB on any machine.
    const TEXT_LEN_MAX: usize = 64 << 10;

    /// At most this many changes: a host has some in a week, and each is compared with each sample.
    const CHANGES_MAX: usize = 2_000;

    /// The cgroup of the container in which the source was read, as keyed in the timeline; on the machine itself the root. The
    /// limit of a recorder's own unit, or of a session, is none of the host's.
    pub fn own_container(&self) -> &str {
        let own = self.own_cgroup.as_deref().unwrap_or(ROOT);
        let name = GroupName::of(own);
        let is_container =
            self.container.is_some() || name.container.is_some() || name.pod.is_some();
        if is_container { own } else { ROOT }
    }

    /// How many changes found no room in memory: of these the last values are known, and not when they changed.
    pub fn changes_left_out(&self) -> usize {
        self.changes_left_out
    }

    /// Records a fact's text (without its final newline). A value that differs from the one before is a change.
    pub fn record(&mut self, at: Span, fact: Fact, text: &str) {
        let text = text.trim();
        let text = start_of(text, Self::TEXT_LEN_MAX);
        let since = self.read.insert(fact.name, at);
        match self.values.get_mut(fact.name) {
            Some(known) if known == text => {}
            Some(known) if fact == KERNEL_VERSION && text.starts_with(known.as_str()) => {
                // Only the release was known; now the build is known as well.
                text.clone_into(known);
            }
            Some(known) => {
                let from = std::mem::replace(known, text.to_owned());
                let texts = from.len() + text.len();
                let is_full = self.changes.len() >= Self::CHANGES_MAX;
                if is_full || !self.budget.0.takes(MemoryBudget::of_change(texts)) {
                    self.changes_left_out += 1;
                    return;
                }
                self.changes.push(Change {
                    since: since.filter(|since| *since <= at),
                    at,
                    fact,
                    from,
                    to: text.to_owned(),
                });
            }
            None => {
                self.values.insert(fact.name, text.to_owned());
            }
        }
    }

    /// Records that a fact was read again with the same value.
    pub fn read_again(&mut self, at: Span, fact: Fact) {
        let last = self.read.entry(fact.name).or_insert(at);
        *last = at.max(*last);
    }

    /// Records that a fact was read only before the timeline's beginning.
    pub fn read_before(&mut self, fact: Fact) {
        self.read.remove(fact.name);
    }

    /// Records the kernel's release (`6.1.0-56-cloud-amd64`) from a source that has no more of `/proc/version`. A
    /// kernel version that is already known stays.
    pub fn note_release(&mut self, release: &str) {
        if self.text(KERNEL_VERSION).is_none() {
            let text = format!("{VERSION_PREFIX}{}", release.trim());
            self.record(Span::ZERO, KERNEL_VERSION, &text);
        }
    }

    /// The fact's text.
    pub fn text(&self, fact: Fact) -> Option<&str> {
        self.values.get(fact.name).map(String::as_str)
    }

    /// The fact as a number; `None` also where its text is not a number.
    pub fn number(&self, fact: Fact) -> Option<u64> {
        number(self.text(fact)?)
    }

    /// All numbers that a fact is known to have had.
    pub fn numbers(&self, fact: Fact) -> impl Iterator<Item = u64> {
        let changes = self.changes_of(fact);
        let of_changes = changes.flat_map(|change| [&change.from, &change.to]);
        let texts = of_changes.map(String::as_str).chain(self.text(fact));
        texts.filter_map(number)
    }

    fn changes_of(&self, fact: Fact) -> impl Iterator<Item = &Change> {
        let changes = self.changes.iter();
        changes.filter(move |change| change.fact.name == fact.name)
    }

    /// The chosen word of a fact that lists its choices: `always [madvise] never`.
    pub fn choice(&self, fact: Fact) -> Option<&str> {
        chosen_word(self.text(fact)?)
    }

    /// The kernel's version.
    pub fn kernel(&self) -> Option<KernelVersion> {
        KernelVersion::parse(self.text(KERNEL_VERSION)?)
    }

    /// The kernel's release: `6.1.0-56-cloud-amd64`.
    pub fn kernel_release(&self) -> Option<&str> {
        let text = self.text(KERNEL_VERSION)?;
        text.strip_prefix(VERSION_PREFIX).unwrap_or(text).split_whitespace().next()
    }

    /// Clock ticks a second, 100 where unknown (all common machines).
    pub fn user_hz(&self) -> u64 {
        self.ticks_per_second.unwrap_or(100)
    }

    /// All known facts, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.values.iter().map(|(name, text)| (*name, text.as_str()))
    }

    /// The fact as a number at times of the timeline's clock, which are in order: later changes are undone.
    pub fn numbers_at(
        &self,
        fact: Fact,
        times: impl IntoIterator<Item = Span>,
    ) -> impl Iterator<Item = Option<u64>> {
        let last = self.number(fact);
        let mut later = self.changes_of(fact).peekable();
        times.into_iter().map(move |at| {
            while later.next_if(|change| change.at <= at).is_some() {}
            later.peek().map_or(last, |change| number(&change.from))
        })
    }

    /// The facts as they were at a time of the timeline's clock; earlier changes stay.
    #[must_use]
    pub fn as_of(&self, at: Span) -> Self {
        let mut then = self.clone();
        for change in self.changes.iter().rev().filter(|change| change.at > at) {
            then.values.insert(change.fact.name, change.from.clone());
        }
        then.changes.retain(|change| change.at <= at);
        then
    }

    /// The facts as they were within a part of the source, on the part's clock: later changes are undone.
    #[must_use]
    pub fn within(mut self, from: Span, to: Span) -> Self {
        let later = self.changes.extract_if(.., |change| change.at > to);
        let undone: Vec<Change> = later.collect();
        for change in undone.into_iter().rev() {
            self.values.insert(change.fact.name, change.from);
        }
        self.changes.retain(|change| change.at >= from);
        let moved = |at: Span| (at >= from).then(|| at - from);
        for change in &mut self.changes {
            change.since = change.since.and_then(moved);
            change.at = change.at - from;
        }
        self.read.retain(|_, at| *at <= to && *at >= from);
        self.read.values_mut().for_each(|at| *at = *at - from);
        self
    }

    /// The facts with the changes of the past added: `past` ends at `at` on its own clock, where this timeline begins.
    #[must_use]
    pub fn after(mut self, past: &Self, at: Span) -> Self {
        let own = std::mem::take(&mut self.changes);
        let mut begin = self.values.clone();
        for change in own.iter().rev() {
            begin.insert(change.fact.name, change.from.clone());
        }
        self.changes.clone_from(&past.changes);
        let between = ALL.iter().filter_map(|fact| {
            let (from, to) = (past.text(*fact)?, begin.get(fact.name)?);
            (from != to).then(|| Change {
                since: past.read.get(fact.name).copied(),
                at,
                fact: *fact,
                from: from.to_owned(),
                to: to.clone(),
            })
        });
        self.changes.extend(between);
        let moved = own.into_iter().map(|change| Change {
            since: change.since.map(|since| at.plus(since)),
            at: at.plus(change.at),
            ..change
        });
        self.changes.extend(moved);
        self.read.values_mut().for_each(|read| *read = at.plus(*read));
        for (name, read) in &past.read {
            self.read.entry(name).or_insert(*read);
        }
        self
    }

    /// Forgets all changes, so that they do not pile up where facts are read for months; the values and the times of
    /// reading stay.
    pub fn forget_changes(&mut self) {
        self.changes.clear();
    }

    /// The changes while the source was watched.
    pub fn changes(&self) -> &[Change] {
        &self.changes
    }
}

/// A setting's text as a number; `None` where it is not a number.
fn number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None => text.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_setting_was_then() {
        let mut facts = Facts::default();
        for (second, text) in [(0, "0"), (60, "1"), (120, "0")] {
            facts.record(Span::from_secs(second), ZONE_RECLAIM_MODE, text);
        }
        let modes = [(0, 0), (59, 0), (60, 1), (119, 1), (120, 0), (999, 0)];
        let times = modes.map(|(second, _)| Span::from_secs(second));
        for at in 0..modes.len() {
            // Some times may be skipped.
            let numbers = facts.numbers_at(ZONE_RECLAIM_MODE, times[at..].iter().copied());
            let expected = modes[at..].iter().map(|(_, mode)| Some(*mode));
            assert!(numbers.eq(expected), "from {at}");
            let then = facts.as_of(times[at]);
            assert_eq!(then.number(ZONE_RECLAIM_MODE), Some(modes[at].1), "{at}");
        }
        assert_eq!(facts.as_of(Span::from_secs(60)).changes().len(), 1);
        assert!(facts.numbers_at(SWAPPINESS, times).all(|number| number.is_none()));
    }

    #[test]
    fn a_changed_sysctl_is_an_event() {
        let mut facts = Facts::default();
        facts.record(Span::ZERO, SWAPPINESS, "60\n");
        facts.record(Span::from_secs(1), SWAPPINESS, "60");
        facts.record(Span::from_secs(2), SWAPPINESS, "1");
        assert_eq!(facts.number(SWAPPINESS), Some(1));
        assert_eq!(facts.changes().len(), 1);
        assert_eq!(facts.changes()[0].from, "60");
    }

    #[test]
    fn a_change_lies_between_the_last_reading_before_and_the_first_after() {
        let mut facts = Facts::default();
        for (second, text) in [(0, "60"), (10, "60"), (20, "1"), (30, "1"), (40, "60")] {
            facts.record(Span::from_secs(second), SWAPPINESS, text);
        }
        let between = |facts: &Facts| -> Vec<_> {
            let ends = |it: &Change| (it.since.map(Span::as_secs_f64), it.at.as_secs_f64());
            facts.changes().iter().map(ends).collect()
        };
        assert_eq!(between(&facts), [(Some(10.0), 20.0), (Some(30.0), 40.0)]);
        // A part that begins between the two readings does not include the first.
        let part = facts.clone().within(Span::from_secs(15), Span::from_secs(60));
        assert_eq!(between(&part), [(None, 5.0), (Some(15.0), 25.0)]);
        let mut now = Facts::default();
        now.record(Span::ZERO, SWAPPINESS, "5");
        let joined = now.after(&facts, Span::from_secs(100));
        assert_eq!(between(&joined)[2], (Some(40.0), 100.0));
        let mut read_twice = Facts::default();
        read_twice.record(Span::ZERO, SWAPPINESS, "60");
        read_twice.read_again(Span::from_secs(7), SWAPPINESS);
        read_twice.record(Span::from_secs(9), SWAPPINESS, "1");
        assert_eq!(between(&read_twice), [(Some(7.0), 9.0)]);
    }

    #[test]
    fn within_a_part_facts_are_as_they_were_then() {
        let mut facts = Facts::default();
        for (second, text) in [(0, "60"), (10, "50"), (20, "40"), (30, "30"), (40, "20")] {
            facts.record(Span::from_secs(second), SWAPPINESS, text);
        }
        let part = facts.within(Span::from_secs(15), Span::from_secs(25));
        assert_eq!(part.number(SWAPPINESS), Some(40));
        let changes: Vec<_> = part.changes().iter().map(|c| (c.at, c.to.as_str())).collect();
        assert_eq!(changes, [(Span::from_secs(5), "40")]);
    }

    #[test]
    fn what_changed_before_and_between_is_kept_with_what_changes_now() {
        let facts = |texts: &[(u64, &str)]| {
            let mut facts = Facts::default();
            for (second, text) in texts {
                facts.record(Span::from_secs(*second), SWAPPINESS, text);
            }
            facts
        };
        let past = facts(&[(0, "60"), (10, "50")]);
        let joined = facts(&[(0, "40"), (2, "30")]).after(&past, Span::from_secs(100));
        let changes: Vec<_> = joined
            .changes()
            .iter()
            .map(|c| (c.at.as_secs_f64(), c.from.as_str(), c.to.as_str()))
            .collect();
        assert_eq!(changes, [(10.0, "60", "50"), (100.0, "50", "40"), (102.0, "40", "30")]);
        assert_eq!(joined.number(SWAPPINESS), Some(30));
    }

    #[test]
    fn a_release_alone_is_completed_and_completes_nothing() {
        let mut facts = Facts::default();
        facts.note_release("6.1.0-9-amd64");
        assert_eq!(facts.kernel_release(), Some("6.1.0-9-amd64"));
        let whole = "Linux version 6.1.0-9-amd64 (gcc 12) #1 SMP";
        facts.record(Span::from_secs(1), KERNEL_VERSION, whole);
        facts.note_release("5.10.0");
        assert_eq!(facts.text(KERNEL_VERSION), Some(whole));
        assert_eq!(facts.changes(), []);
        let other = "Linux version 6.1.0-10-amd64 (gcc 12) #1 SMP";
        facts.record(Span::from_secs(2), KERNEL_VERSION, other);
        assert_eq!(facts.changes().len(), 1);
    }

    #[test]
    fn the_chosen_word_is_in_brackets() {
        let mut facts = Facts::default();
        facts.record(Span::ZERO, THP_ENABLED, "always [madvise] never");
        assert_eq!(facts.choice(THP_ENABLED), Some("madvise"));
        facts.record(Span::ZERO, MGLRU, "0x0007");
        assert_eq!(facts.number(MGLRU), Some(7));
    }

    #[test]
    fn kernels_are_told_apart_by_number() {
        let old = KernelVersion::parse("Linux version 2.6.32-754.el6 (gcc)").unwrap();
        let new = KernelVersion::parse("6.12.107+deb13-cloud-amd64").unwrap();
        assert!(old < new);
        assert_eq!(KernelVersion::parse("nonsense"), None);
    }
}
