//! The terms grouped for readers: free memory, the page cache, owners of anonymous memory, kernel memory. Every node
//! says what its number means.

use timeline::{
    Counter, Entity, EntitySeries, Gauge, Signal,
    facts::MemoryMount,
    signals::{
        HUGEPAGE_SIZE, HUGEPAGES_RSVD, MEM_ANON_HUGE, MEM_CACHED, MEM_DIRTY, MEM_MAPPED,
        MEM_SWAP_CACHED, MEM_WRITEBACK, MEM_ZSWAPPED, PROC_RSS, THP_DEFERRED_SPLIT, ZRAM_ORIG,
    },
};
use units::{Bytes, Count, Pages, Ratio};

use super::owners::{self, Owner, Owners};
use super::{Accounting, TermKind};
use crate::evidence::Evidence;
use crate::measures::slab;

/// A part of RAM and its own parts.
#[derive(Debug, Clone, PartialEq)]
pub struct MemoryNode {
    /// Its common name; the name of a process or cache is untrusted text.
    pub label: String,
    /// Its size; `None` if only its presence is known (a tmpfs mount, drift below zero).
    pub bytes: Option<Bytes>,
    /// Its share of MemTotal.
    pub share: Option<Ratio>,
    /// Further remarks; empty if there are none.
    pub note: String,
    /// Its parts, largest first. They need not add up: each parent's note says how they were measured.
    pub children: Vec<MemoryNode>,
}

impl Accounting {
    /// The number of owners and caches that one node names; the rest is one more line.
    const NAMED: usize = 5;

    /// Returns the terms as a tree with MemTotal as the root.
    pub fn tree(&self, cx: &Evidence<'_>) -> MemoryNode {
        let mut children = vec![
            self.free(cx),
            self.page_cache(cx),
            self.anonymous(cx),
            self.shared(cx),
        ];
        children.extend(self.huge_pages(cx));
        children.push(self.kernel(cx));
        for (kind, note) in [
            (TermKind::CompressedPool, self.compressed_note(cx)),
            (TermKind::Balloon, String::new()),
            (
                TermKind::HwCorrupted,
                "taken out of use after memory errors".to_owned(),
            ),
        ] {
            children.extend(self.leaf(kind).map(|leaf| leaf.noted(note)));
        }
        children.push(self.unaccounted(cx));
        children
            .retain(|node| node.bytes.is_some_and(|b| b > Bytes::ZERO) || node.is_unaccounted());
        MemoryNode {
            label: "MemTotal".to_owned(),
            bytes: Some(self.total),
            share: Some(Ratio::new(1.0)),
            note: String::new(),
            children,
        }
    }

    fn node(&self, label: impl Into<String>, bytes: Option<Bytes>) -> MemoryNode {
        MemoryNode {
            label: label.into(),
            bytes,
            share: bytes.and_then(|b| b.ratio_of(self.total)),
            note: String::new(),
            children: Vec::new(),
        }
    }

    /// Returns a term as a node; `None` if it is unknown or empty.
    fn leaf(&self, kind: TermKind) -> Option<MemoryNode> {
        let term = self.terms.iter().find(|term| term.kind == kind)?;
        (term.bytes > Bytes::ZERO).then(|| self.node(term.label, Some(term.bytes)))
    }

    /// Returns the sum of those of these terms that are known; `None` if none is.
    fn known(&self, kinds: &[TermKind]) -> Option<Bytes> {
        kinds
            .iter()
            .any(|kind| self.term(*kind).is_some())
            .then(|| self.sum(kinds))
    }

    fn free(&self, cx: &Evidence<'_>) -> MemoryNode {
        let mut notes = Vec::new();
        if let Some(floor) = cx.floor().ok().and_then(|f| f.high.at(self.index)) {
            notes.push(format!("the kernel keeps about {floor} free"));
        }
        if let Some(lists) = self.term(TermKind::Pcp) {
            notes.push(format!("{lists} in per-CPU lists"));
        }
        self.node("free", self.known(&[TermKind::Free, TermKind::Pcp]))
            .noted(notes.join("; "))
    }

    fn page_cache(&self, cx: &Evidence<'_>) -> MemoryNode {
        let at = |signal| cx.timeline.at(signal, self.index);
        let dirty: Bytes = [MEM_DIRTY, MEM_WRITEBACK].into_iter().filter_map(at).sum();
        let mut notes = Vec::new();
        if self.term(TermKind::Shmem).is_none() {
            notes.push("this source does not separate shared memory".to_owned());
        }
        if dirty > Bytes::ZERO {
            notes.push(format!("{dirty} dirty or under writeback"));
        }
        self.node(
            "page cache",
            self.known(&[TermKind::FileCache, TermKind::Buffers]),
        )
        .noted(notes.join("; "))
    }

    fn anonymous(&self, cx: &Evidence<'_>) -> MemoryNode {
        let mut node = self.node(
            "anonymous",
            self.known(&[TermKind::Anon, TermKind::SwapCache]),
        );
        if let Some(owners) = owners::of_anonymous(cx, self.index) {
            self.own(cx, &mut node, owners);
        }
        node
    }

    /// Returns shared memory: the processes that map it, and the file systems that may use it. No kernel file says how
    /// full each of those is.
    fn shared(&self, cx: &Evidence<'_>) -> MemoryNode {
        let mut node = self.node("shared memory", self.term(TermKind::Shmem));
        if let Some(owners) = owners::of_shared(cx, self.index)
            && !owners.owners.is_empty()
        {
            self.own(cx, &mut node, owners);
        }
        let may_hold_files = |mount: &&MemoryMount| {
            mount.kind != "devtmpfs" && mount.size.is_none_or(|size| size >= Bytes::from_mib(1))
        };
        for mount in cx.facts.memory_mounts.iter().filter(may_hold_files) {
            let size = mount
                .size
                .map_or_else(String::new, |size| format!(", at most {size}"));
            node.children.push(
                self.node(mount.point.clone(), None)
                    .noted(format!("{}{size}", mount.kind)),
            );
        }
        node
    }

    fn own(&self, cx: &Evidence<'_>, node: &mut MemoryNode, owners: Owners) {
        let Owners { owners, measured } = owners;
        measured.clone_into(&mut node.note);
        // A recorder reads processes more rarely than the host.
        let times = cx.timeline.times();
        let read = cx.rows_at(Entity::Process, self.index).map(|at| times[at]);
        if let Some(read) = read.filter(|read| *read < self.at) {
            node.note = format!("{measured}, {} before", self.at - read);
        }
        let (named, rest) = owners.split_at(owners.len().min(Self::NAMED));
        let node_of = |owner: &Owner| {
            let processes = match owner.processes {
                1 => String::new(),
                n => format!("{} processes", Count::new(n)),
            };
            self.node(owner.name.clone(), Some(owner.held))
                .noted(processes)
        };
        node.children.extend(named.iter().map(node_of));
        node.children
            .extend(self.others(rest.len(), rest.iter().map(|o| o.held).sum()));
    }

    /// Returns the rest in one line.
    fn others(&self, n: usize, held: Bytes) -> Option<MemoryNode> {
        let n = Count::new(n as u64);
        (held > Bytes::ZERO).then(|| self.node(format!("{n} others"), Some(held)))
    }

    fn huge_pages(&self, cx: &Evidence<'_>) -> Option<MemoryNode> {
        let bytes = self.known(&[TermKind::HugetlbUsed, TermKind::HugetlbUnused])?;
        let mut node = self.node("huge pages", Some(bytes));
        node.children.extend(self.leaf(TermKind::HugetlbUsed));
        let promised = cx
            .timeline
            .at(HUGEPAGES_RSVD, self.index)
            .zip(cx.timeline.at(HUGEPAGE_SIZE, self.index))
            .map(|(n, size)| Bytes::new(size.get().saturating_mul(n.get())))
            .filter(|promised| *promised > Bytes::ZERO)
            .map_or_else(String::new, |promised| {
                format!("{promised} of it promised to somebody")
            });
        node.children.extend(
            self.leaf(TermKind::HugetlbUnused)
                .map(|n| n.noted(promised)),
        );
        Some(node)
    }

    fn kernel(&self, cx: &Evidence<'_>) -> MemoryNode {
        const SLAB: [TermKind; 3] = [
            TermKind::Slab,
            TermKind::SlabUnreclaimable,
            TermKind::SlabReclaimable,
        ];
        const REST: [TermKind; 6] = [
            TermKind::PageTables,
            TermKind::KernelStack,
            TermKind::Percpu,
            TermKind::Vmalloc,
            TermKind::KernelReclaimable,
            TermKind::Bounce,
        ];
        let all = [&SLAB[..], &REST].concat();
        let mut node = self.node("kernel", self.known(&all));
        let mut slab = self.node("slab", self.known(&SLAB));
        if let Some(reclaimable) = self.term(TermKind::SlabReclaimable) {
            slab.note = format!("{reclaimable} reclaimable");
        }
        let caches = slab::caches(cx, self.index);
        let (named, rest) = caches.split_at(caches.len().min(Self::NAMED));
        let named = named
            .iter()
            .map(|c| self.node(c.name.clone(), Some(c.bytes)));
        slab.children.extend(named);
        slab.children
            .extend(self.others(rest.len(), rest.iter().map(|c| c.bytes).sum()));
        node.children.push(slab);
        node.children
            .extend(REST.into_iter().filter_map(|kind| self.leaf(kind)));
        node.children
            .retain(|n| n.bytes.is_some_and(|b| b > Bytes::ZERO));
        node.children.sort_by_key(|n| std::cmp::Reverse(n.bytes));
        node
    }

    fn compressed_note(&self, cx: &Evidence<'_>) -> String {
        let zram: Bytes = cx
            .timeline
            .entities(Entity::Zram)
            .filter_map(|device| cx.timeline.latest_of(device, ZRAM_ORIG, self.index))
            .sum();
        let zswap: Bytes = cx.timeline.at(MEM_ZSWAPPED, self.index).into_iter().sum();
        match zram + zswap {
            Bytes::ZERO => String::new(),
            holds => format!("holds {holds} of swapped pages"),
        }
    }

    fn unaccounted(&self, cx: &Evidence<'_>) -> MemoryNode {
        if !self.is_broken_down() {
            return self
                .node(
                    "not broken down",
                    u64::try_from(self.unaccounted_bytes).ok().map(Bytes::new),
                )
                .noted(format!("this source lacks {}", self.missing.join(", ")));
        }
        let mut node = self.node(
            "unaccounted",
            u64::try_from(self.unaccounted_bytes).ok().map(Bytes::new),
        );
        if self.unaccounted_bytes < 0 {
            let over = Bytes::new(self.unaccounted_bytes.unsigned_abs());
            node.note = format!("the counters add up to {over} more than MemTotal: they drift");
            return node;
        }
        let mut owners = vec!["drivers (NIC rings, GPU, DMA buffers)"];
        if cx.facts.container.is_none() {
            owners.push("a hypervisor's balloon");
        }
        owners.push("ZFS's ARC");
        if rose(cx, THP_DEFERRED_SPLIT) {
            owners.push("huge pages unmapped in part that still wait to be split");
        }
        node.note = format!("usual owners: {}", owners.join(", "));
        if !self.missing.is_empty() {
            let lacks = self.missing.join(", ");
            node.note = format!("{}; this source lacks {lacks}", node.note);
        }
        node
    }

    /// Returns sentences about numbers of meminfo that must not be added up, with this host's figures.
    pub fn explanations(&self, cx: &Evidence<'_>) -> Vec<String> {
        let at = |signal: Signal<Gauge<Bytes>>| {
            let value = cx.timeline.at(signal, self.index);
            value.filter(|v| *v > Bytes::ZERO)
        };
        let mut texts = Vec::new();
        if let (Some(cached), Some(shmem)) = (at(MEM_CACHED), self.term(TermKind::Shmem))
            && shmem > Bytes::ZERO
        {
            texts.push(format!(
                "Cached ({cached}) contains {shmem} of shared memory and tmpfs, which cannot be dropped."
            ));
        }
        if let (Some(mapped), Some(cached)) = (at(MEM_MAPPED), at(MEM_CACHED)) {
            texts.push(format!(
                "Mapped ({mapped}) is a part of Cached ({cached}), not an addition to it."
            ));
        }
        if let (Some(huge), Some(anon)) = (at(MEM_ANON_HUGE), self.term(TermKind::Anon)) {
            texts.push(format!(
                "AnonHugePages ({huge}) is a part of AnonPages ({anon})."
            ));
        }
        if let (Some(cached), Some(alone)) = (at(MEM_SWAP_CACHED), self.term(TermKind::SwapCache)) {
            texts.push(format!(
                "SwapCached ({cached}) is in RAM and in swap at once; {alone} of it is not in AnonPages already."
            ));
        }
        texts.extend(self.resident_sets(cx));
        texts
    }

    /// Returns why the processes' RSS does not add up to used memory.
    fn resident_sets(&self, cx: &Evidence<'_>) -> Option<String> {
        let page = cx.facts.page_size?;
        let at = cx.rows_at(Entity::Process, self.index)?;
        let rss = |p: &EntitySeries| cx.timeline.at_of(p, PROC_RSS, at);
        let sets: Vec<Pages> = cx
            .timeline
            .entities(Entity::Process)
            .filter_map(rss)
            .collect();
        let sum = sets.iter().copied().sum::<Pages>().to_bytes(page);
        let n = Count::new(sets.len() as u64);
        (sets.len() > 1 && sum > Bytes::ZERO).then(|| {
            format!(
                "RSS of the {n} processes seen adds up to {sum}: a page that several map is in it several times; PSS divides it."
            )
        })
    }
}

/// Whether a counter is above zero, that is, has risen since boot.
fn rose(cx: &Evidence<'_>, counter: Signal<Counter<Count>>) -> bool {
    cx.timeline.last(counter).is_some_and(|n| n > Count::ZERO)
}

impl MemoryNode {
    fn noted(mut self, note: impl Into<String>) -> Self {
        self.note = note.into();
        self
    }

    /// Whether it is the remainder, which is shown even if it is zero.
    pub fn is_unaccounted(&self) -> bool {
        self.label == "unaccounted" || self.label == "not broken down"
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::accounting::account;
    use timeline::{
        Facts, Sample, Timeline,
        signals::{
            MEM_ANON, MEM_BUFFERS, MEM_FREE, MEM_KERNEL_STACK, MEM_PAGE_TABLES, MEM_SHMEM,
            MEM_SLAB_RECLAIMABLE, MEM_SLAB_UNRECLAIMABLE, MEM_TOTAL, PROC_PSS_ANON, PROC_RSS_ANON,
            SLAB_PAGES,
        },
    };
    use units::{PageSize, Span};

    fn host() -> Sample {
        let mut sample = Sample::at(Span::ZERO);
        for (signal, mib) in [
            (MEM_TOTAL, 1000),
            (MEM_FREE, 100),
            (MEM_ANON, 400),
            (MEM_CACHED, 300),
            (MEM_BUFFERS, 10),
            (MEM_SHMEM, 50),
            (MEM_SLAB_RECLAIMABLE, 60),
            (MEM_SLAB_UNRECLAIMABLE, 40),
            (MEM_KERNEL_STACK, 5),
            (MEM_PAGE_TABLES, 15),
            (MEM_DIRTY, 7),
        ] {
            sample.host.set(signal, Bytes::from_mib(mib));
        }
        sample
    }

    fn tree_of(sample: &Sample, facts: &Facts) -> MemoryNode {
        let mut timeline = Timeline::default();
        timeline.push(sample).unwrap();
        let cx = Evidence::new(&timeline, facts);
        account(&cx, 0).unwrap().tree(&cx)
    }

    fn child<'a>(node: &'a MemoryNode, label: &str) -> &'a MemoryNode {
        let found = node.children.iter().find(|n| n.label == label);
        found.unwrap_or_else(|| panic!("no {label} in {node:#?}"))
    }

    fn facts() -> Facts {
        let mut facts = Facts::default();
        facts.page_size = PageSize::from_bytes(4096);
        facts
    }

    #[test]
    fn the_branches_add_up_to_memtotal() {
        let tree = tree_of(&host(), &facts());
        let sum: Bytes = tree.children.iter().filter_map(|n| n.bytes).sum();
        assert_eq!(sum, Bytes::from_mib(1000));
        assert_eq!(child(&tree, "page cache").bytes, Some(Bytes::from_mib(260)));
        assert!(child(&tree, "page cache").note.contains("7 MiB dirty"));
        assert_eq!(child(&tree, "kernel").bytes, Some(Bytes::from_mib(120)));
    }

    #[test]
    fn anonymous_memory_is_divided_among_services_and_says_how() {
        let mut sample = host();
        for (key, group, pss) in [("1@1", "web.service", 100), ("2@1", "web.service", 50)] {
            let row = sample.table_mut(Entity::Process).entry(key);
            row.group.push_str(group);
            row.row.set(PROC_RSS_ANON, Bytes::from_mib(140));
            row.row.set(PROC_PSS_ANON, Bytes::from_mib(pss));
        }
        let row = sample.table_mut(Entity::Process).entry("3@1");
        row.label.push_str("hog");
        row.row.set(PROC_RSS_ANON, Bytes::from_mib(200));
        let tree = tree_of(&sample, &facts());
        let anonymous = child(&tree, "anonymous");
        assert_eq!(anonymous.children[0].label, "hog");
        assert_eq!(
            child(anonymous, "web.service").bytes,
            Some(Bytes::from_mib(150))
        );
        assert_eq!(anonymous.note, "by PSS where it could be read, else by RSS");
    }

    #[test]
    fn slab_names_its_caches_and_shared_memory_its_mounts() {
        let mut sample = host();
        let row = sample.table_mut(Entity::Slab).entry("dentry");
        row.row.set(SLAB_PAGES, Pages::new(30 * 256));
        let mut facts = facts();
        facts.memory_mounts.push(MemoryMount {
            point: "/dev/shm".to_owned(),
            kind: "tmpfs".to_owned(),
            size: Some(Bytes::from_mib(500)),
        });
        let tree = tree_of(&sample, &facts);
        let slab = child(child(&tree, "kernel"), "slab");
        assert_eq!(child(slab, "dentry").bytes, Some(Bytes::from_mib(30)));
        let mount = child(child(&tree, "shared memory"), "/dev/shm");
        assert_eq!(
            (mount.bytes, mount.note.as_str()),
            (None, "tmpfs, at most 500 MiB")
        );
    }

    #[test]
    fn the_output_of_free_is_not_called_unaccounted() {
        let mut sample = Sample::at(Span::ZERO);
        for (signal, mib) in [(MEM_TOTAL, 1000), (MEM_FREE, 100), (MEM_CACHED, 300)] {
            sample.host.set(signal, Bytes::from_mib(mib));
        }
        let tree = tree_of(&sample, &Facts::default());
        let rest = child(&tree, "not broken down");
        assert_eq!(rest.bytes, Some(Bytes::from_mib(600)));
        assert!(rest.note.contains("mem.anon"));
    }

    #[test]
    fn what_must_not_be_added_up_is_explained_with_the_hosts_numbers() {
        let mut sample = host();
        sample.host.set(MEM_ANON_HUGE, Bytes::from_mib(120));
        let mut timeline = Timeline::default();
        timeline.push(&sample).unwrap();
        let facts = facts();
        let cx = Evidence::new(&timeline, &facts);
        let texts = account(&cx, 0).unwrap().explanations(&cx).join("\n");
        assert!(
            texts.contains("Cached (300 MiB) contains 50 MiB"),
            "{texts}"
        );
        assert!(texts.contains("AnonHugePages (120 MiB)"), "{texts}");
        assert!(!texts.contains("SwapCached"), "{texts}");
    }
}
