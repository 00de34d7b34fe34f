//! The terms grouped for readers: free memory, the page cache, owners of anonymous memory, kernel memory. Every node
//! says what its number means, and every level adds up.

mod cached_files;
mod holdings;
mod huge_pages;
mod kernel;
mod outside;
mod shared;
mod shared_objects;
mod uncounted;

use timeline::{
    Counter, Entity, EntitySeries, Gauge, Inventory, Signal,
    signals::{
        CGROUPS_DYING, MEM_ANON_HUGE, MEM_CACHED, MEM_DIRTY, MEM_MAPPED, MEM_MLOCKED,
        MEM_SWAP_CACHED, MEM_WRITEBACK, MEM_ZSWAPPED, PROC_RSS, THP_DEFERRED_SPLIT, ZRAM_ORIG,
    },
};
use units::{Bytes, Count, Pages, Ratio};

use super::memory_node::{MemoryNode, SizeKind};
use super::owners::{self, Owner, Owners, UnreadOwners};
use super::{Accounting, TermKind};
use crate::evidence::Evidence;
use crate::measures::arc;

/// Locked memory of less, such as the kernel's helpers and time servers have, is not worth a sentence.
const LOCKED_MUCH: Ratio = Ratio::from_percent(2.0);
/// So much is worth one on any host.
const LOCKED_LARGE: Bytes = Bytes::from_mib(64);
/// Fewer removed cgroups than a deployment leaves for a while are not worth a sentence.
const DYING_MANY: Count = Count::new(100);
/// The label of a remainder that may have several owners.
const REST: &str = "not attributed";

impl Accounting {
    /// The number of owners and caches that one node names; the rest is one more line.
    const NAMED: usize = 5;

    /// Returns the terms as a tree with MemTotal as the root. Every level adds up.
    pub fn tree(&self, cx: &Evidence<'_>, inventory: &Inventory) -> MemoryNode {
        let mut root = MemoryNode::new("MemTotal", self.total)
            .noted(self.outside(cx, inventory.physical.as_ref()));
        let compressed = self.leaf(TermKind::CompressedPool);
        let broken = self.leaf(TermKind::HwCorrupted);
        let branches = [
            self.free(cx),
            self.page_cache(cx, inventory),
            self.anonymous(cx),
            self.shared(cx, inventory),
            self.huge_pages(cx, inventory),
            self.kernel(cx, inventory),
            compressed.map(|leaf| leaf.noted(self.compressed_note(cx))),
            self.leaf(TermKind::Balloon),
            broken.map(|leaf| leaf.noted("taken out of use after memory errors")),
        ];
        root.children =
            branches.into_iter().flatten().filter(|node| node.bytes > Bytes::ZERO).collect();
        let mut rest = self.unaccounted(cx, inventory);
        if let Some(sum) = root.reduce_parts() {
            rest.note = format!("the counters add up to {sum}, so all sizes are scaled down");
        }
        rest.bytes = root.lacks();
        rest.kind = SizeKind::Remainder;
        self.divide_unaccounted(cx, inventory, &mut rest);
        root.children.push(rest);
        root.set_shares(self.total);
        root
    }

    /// Splits a list that is sorted by size into what a node names, `usual` of them unless another number was chosen, and
    /// the others.
    fn largest<'a, T>(&self, all: &'a [T], usual: usize) -> (&'a [T], &'a [T]) {
        largest(all, self.top, usual)
    }

    /// Returns a term as a node; `None` if it is unknown or empty.
    fn leaf(&self, kind: TermKind) -> Option<MemoryNode> {
        let term = self.terms.iter().find(|term| term.kind == kind)?;
        (term.bytes > Bytes::ZERO).then(|| MemoryNode::new(term.label, term.bytes))
    }

    /// Returns the sum of those of these terms that are known; `None` if none is.
    fn known(&self, kinds: &[TermKind]) -> Option<Bytes> {
        kinds.iter().any(|kind| self.term(*kind).is_some()).then(|| self.sum(kinds))
    }

    fn free(&self, cx: &Evidence<'_>) -> Option<MemoryNode> {
        let mut node = MemoryNode::new("free", self.known(&[TermKind::Free, TermKind::Pcp])?);
        if let Some(floor) = cx.floor().ok().and_then(|f| f.high.at(self.index)) {
            node.note_also(&format!("the kernel keeps about {floor} free"));
        }
        if let Some(lists) = self.term(TermKind::Pcp) {
            node.note_also(&format!("{lists} in per-CPU lists"));
        }
        Some(node)
    }

    fn page_cache(&self, cx: &Evidence<'_>, inventory: &Inventory) -> Option<MemoryNode> {
        let cache = self.known(&[TermKind::FileCache, TermKind::Buffers])?;
        let mut node = MemoryNode::new("page cache", cache);
        let at = |signal| cx.timeline.at(signal, self.index);
        let dirty: Bytes = [MEM_DIRTY, MEM_WRITEBACK].into_iter().filter_map(at).sum();
        if self.term(TermKind::Shmem).is_none() {
            node.note_also("this source does not separate shared memory");
        }
        if dirty > Bytes::ZERO {
            node.note_also(&format!("{dirty} dirty or under writeback"));
        }
        if let Some(cached) = &inventory.cached_files {
            let buffers = self
                .leaf(TermKind::Buffers)
                .map(|leaf| leaf.noted("directories, inodes, journals"));
            node.children = self.cached_files(cached, buffers);
            let unseen = cached_files::unseen(cached).join("; ");
            node.complete(MemoryNode::new(REST, Bytes::ZERO).noted(unseen));
        }
        Some(node)
    }

    fn anonymous(&self, cx: &Evidence<'_>) -> Option<MemoryNode> {
        let bytes = self.known(&[TermKind::Anon, TermKind::SwapCache])?;
        let mut node = MemoryNode::new("anonymous", bytes);
        let Some(owners) = owners::of_anonymous(cx, self.index) else {
            return Some(node);
        };
        let unread = unread(&owners.unread)
            .unwrap_or_else(|| "processes that were not read, and drift of counters".to_owned());
        self.own(cx, &mut node, owners);
        node.children.extend(
            self.leaf(TermKind::SwapCache).map(|leaf| leaf.noted("in swap too, not mapped")),
        );
        node.complete(MemoryNode::new(REST, Bytes::ZERO).noted(unread));
        Some(node)
    }

    /// Adds the largest owners, and the others in one line.
    fn own(&self, cx: &Evidence<'_>, node: &mut MemoryNode, owners: Owners) {
        owners.measured.clone_into(&mut node.note);
        // A recorder reads processes more rarely than the host.
        let times = cx.timeline.times();
        let read = cx.rows_at(Entity::Process, self.index).map(|at| times[at]);
        if let Some(read) = read.filter(|read| *read < self.at) {
            node.note = format!("{}, {} before", owners.measured, self.at - read);
        }
        let node_of = |owner: &Owner| {
            let processes = match owner.processes {
                1 => String::new(),
                n => format!("{} processes", Count::new(n)),
            };
            MemoryNode::new(cx.facts.names.service(&owner.name), owner.bytes)
                .noted(processes)
                .estimated(owners.is_estimate)
        };
        let (named, rest) = self.largest(&owners.owners, Self::NAMED);
        node.children.extend(named.iter().map(node_of));
        node.children.extend(
            others(rest.len(), rest.iter().map(|o| o.bytes).sum())
                .map(|others| others.estimated(owners.is_estimate)),
        );
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

    /// Returns the remainder's name and its usual owners.
    fn unaccounted(&self, cx: &Evidence<'_>, inventory: &Inventory) -> MemoryNode {
        let over = Bytes::new(self.unaccounted_bytes.unsigned_abs());
        if !self.is_broken_down() {
            let lacks = self.missing.join(", ");
            return MemoryNode::new("not broken down", Bytes::ZERO)
                .noted(format!("this source lacks {lacks}"));
        }
        let node = MemoryNode::new("unaccounted", Bytes::ZERO);
        if self.unaccounted_bytes < 0 {
            let drift = format!("the counters add up to {over} more than MemTotal: they drift");
            return node.noted(drift);
        }
        let buffers = holdings::socket_buffers(cx, self.index, inventory)
            .map(|buffers| format!("buffers of sockets ({buffers})"));
        let mut owners: Vec<&str> = buffers.as_deref().into_iter().collect();
        owners.push("drivers (NIC rings, GPU, DMA buffers)");
        if cx.facts.container.is_none() {
            owners.push("a hypervisor's balloon");
        }
        if arc::pages(cx, self.index).is_none() {
            owners.push("ZFS's ARC");
        }
        if rose(cx, THP_DEFERRED_SPLIT) {
            owners.push("huge pages unmapped in part that still wait to be split");
        }
        let mut node = node.noted(format!("usual owners: {}", owners.join(", ")));
        if !self.missing.is_empty() {
            node.note_also(&format!("this source lacks {}", self.missing.join(", ")));
        }
        node
    }

    /// Returns sentences about numbers of meminfo that must not be added up, with this host's figures.
    pub fn explanations(&self, cx: &Evidence<'_>, inventory: &Inventory) -> Vec<String> {
        let at = |signal: Signal<Gauge<Bytes>>| {
            let value = cx.timeline.at(signal, self.index);
            value.filter(|v| *v > Bytes::ZERO)
        };
        let mut texts = Vec::new();
        if let (Some(cached), Some(shmem)) = (at(MEM_CACHED), self.term(TermKind::Shmem))
            && shmem > Bytes::ZERO
        {
            texts.push(format!(
                "Cached ({cached}) contains {shmem} of shared memory and tmpfs, which cannot be \
                 dropped."
            ));
        }
        if let (Some(mapped), Some(cached)) = (at(MEM_MAPPED), at(MEM_CACHED)) {
            texts.push(format!(
                "Mapped ({mapped}) is a part of Cached ({cached}), not an addition to it."
            ));
        }
        if let (Some(huge), Some(anon)) = (at(MEM_ANON_HUGE), self.term(TermKind::Anon)) {
            texts.push(format!("AnonHugePages ({huge}) is a part of AnonPages ({anon})."));
        }
        if let (Some(cached), Some(alone)) = (at(MEM_SWAP_CACHED), self.term(TermKind::SwapCache)) {
            texts.push(format!(
                "SwapCached ({cached}) is in RAM and in swap at once; {alone} of it is not in \
                 AnonPages already."
            ));
        }
        let much = self.total.share(LOCKED_MUCH).min(LOCKED_LARGE);
        let locked = at(MEM_MLOCKED).filter(|locked| *locked >= much);
        texts.extend(locked.map(|locked| holdings::locked_in_words(locked, inventory)));
        texts.extend(holdings::kernel_objects_in_words(cx, self.index, inventory));
        texts.extend(self.dying_cgroups(cx));
        texts.extend(self.resident_sets(cx));
        texts
    }

    /// Returns how many removed cgroups are still in the kernel, if they are many.
    fn dying_cgroups(&self, cx: &Evidence<'_>) -> Option<String> {
        let dying = cx.level(CGROUPS_DYING, self.index)?;
        (dying >= DYING_MANY).then(|| {
            format!(
                "{dying} removed cgroups are still in the kernel: memory of any kind above, such \
                 as files in the page cache or in a tmpfs, is charged to them."
            )
        })
    }

    /// Returns why the processes' RSS does not add up to used memory.
    fn resident_sets(&self, cx: &Evidence<'_>) -> Option<String> {
        let page = cx.facts.page_size?;
        let at = cx.rows_at(Entity::Process, self.index)?;
        let rss = |p: &EntitySeries| cx.timeline.at_of(p, PROC_RSS, at);
        let sets: Vec<Pages> = cx.timeline.entities(Entity::Process).filter_map(rss).collect();
        let sum = sets.iter().copied().sum::<Pages>().to_bytes(page);
        let n = Count::new(sets.len() as u64);
        (sets.len() > 1 && sum > Bytes::ZERO).then(|| {
            format!(
                "RSS of the {n} processes seen adds up to {sum}: a page that several map is in it \
                 several times; PSS divides it."
            )
        })
    }
}

/// Whether a counter is above zero, that is, has risen since boot.
fn rose(cx: &Evidence<'_>, counter: Signal<Counter<Count>>) -> bool {
    cx.timeline.last(counter).is_some_and(|n| n > Count::ZERO)
}

/// Splits a list that is sorted by size into the first `top` of it, `usual` where no number was chosen, and the others.
fn largest<T>(all: &[T], top: Option<usize>, usual: usize) -> (&[T], &[T]) {
    all.split_at(all.len().min(top.unwrap_or(usual)))
}

/// Returns the others in one line.
fn others(n: usize, bytes: Bytes) -> Option<MemoryNode> {
    let label = Count::new(n as u64).named("other", "others");
    (bytes > Bytes::ZERO).then(|| MemoryNode::new(label, bytes))
}

/// ` and 3 others`, behind what a sentence names; empty for none.
pub(super) fn and_others(n: u64) -> String {
    match n {
        0 => String::new(),
        n => format!(" and {}", Count::new(n).named("other", "others")),
    }
}

/// Names the processes that were not measured like the others.
fn unread(unread: &UnreadOwners) -> Option<String> {
    let largest = unread.largest.as_ref()?;
    let (name, bytes) = (&largest.name, largest.bytes);
    let others = and_others(unread.processes - 1);
    Some(format!("only RSS was read of {name} ({bytes}){others}"))
}

#[cfg(test)]
mod tests;
