//! What processes have beside their RSS, or locked: page tables, huge pages, stacks in the kernel, sockets, pipes, rings, BPF maps,
//! buffers of GPUs, memory that reclaim may not take.

use timeline::ProcessHoldings;
use units::{Bytes, PageSize};

use super::shared_objects::process_in_words;
use super::{Accounting, Inventory, MemoryNode, REST, TermKind, and_others, others};
use crate::evidence::Evidence;
use crate::measures::sockets;

/// Less is not worth lines or a sentence of its own.
const NAMED_MIN: Bytes = Bytes::from_mib(16);
/// At most 3 processes in a sentence.
const NAMED_MAX: usize = 3;

/// Less of what no counter has is not worth a line.
const UNCOUNTED_MIN: Bytes = Bytes::from_mib(4);

/// How much of something a process has.
type HoldingOf = fn(&ProcessHoldings) -> Bytes;

/// What one process has of something.
type HoldingSize<'a> = (&'a ProcessHoldings, Bytes);

/// What all processes have.
fn total(all: &[ProcessHoldings], size: HoldingOf) -> Bytes {
    all.iter().map(size).sum()
}

/// The processes that have any, the largest first.
fn descending(
    all: &[ProcessHoldings],
    size: impl Fn(&ProcessHoldings) -> Bytes,
) -> Vec<HoldingSize<'_>> {
    let sizes = all.iter().map(|process| (process, size(process)));
    let mut parts: Vec<HoldingSize<'_>> = sizes.filter(|(_, bytes)| *bytes > Bytes::ZERO).collect();
    parts.sort_by_key(|(process, bytes)| (std::cmp::Reverse(*bytes), process.process.pid));
    parts
}

/// `python3 (812) 64 MiB, qemu (7) 2 MiB and 4 others`; `None` if no process has any.
pub(super) fn most(all: &[ProcessHoldings], size: HoldingOf) -> Option<String> {
    let parts = descending(all, size);
    let (named, rest) = parts.split_at(parts.len().min(NAMED_MAX));
    let named: Vec<String> = named
        .iter()
        .map(|(process, bytes)| format!("{} {bytes}", process_in_words(&process.process)))
        .collect();
    let rest = and_others(rest.len() as u64);
    (!named.is_empty()).then(|| format!("{}{rest}", named.join(", ")))
}

/// Mlocked, and who locked it.
pub(super) fn locked_in_words(locked: Bytes, inventory: &Inventory) -> String {
    let by = most(&inventory.holdings, |process| process.locked);
    let by = by.map_or_else(String::new, |by| format!("; locked by {by}"));
    format!(
        "Mlocked ({locked}) is a part of anonymous memory, shared memory and page cache that \
         reclaim may not take{by}."
    )
}

/// Buffers of sockets, as the kernel counts them or as they were found; `None` if they are few. The count of a host leaves out
/// Unix sockets.
pub(super) fn socket_buffers(
    cx: &Evidence<'_>,
    index: usize,
    inventory: &Inventory,
) -> Option<Bytes> {
    let counted = sockets::buffers(cx, index);
    let found = total(&inventory.holdings, |process| process.sockets);
    let buffers = counted.unwrap_or_default().max(found);
    (buffers >= NAMED_MIN).then_some(buffers)
}

/// Sockets and BPF maps, and who has them: the kernel counts their memory in terms of other names.
pub(super) fn kernel_objects_in_words(
    cx: &Evidence<'_>,
    index: usize,
    inventory: &Inventory,
) -> Vec<String> {
    let by =
        |size| most(&inventory.holdings, size).map_or_else(String::new, |by| format!("; {by}"));
    let mut texts = Vec::new();
    if let Some(sockets) = socket_buffers(cx, index, inventory) {
        let owners = by(|process| process.sockets);
        texts.push(format!(
            "Buffers of sockets ({sockets}) are parts of slab and of unaccounted memory{owners}."
        ));
    }
    let bpf = total(&inventory.holdings, |process| process.bpf);
    if bpf >= NAMED_MIN {
        let owners = by(|process| process.bpf);
        texts.push(format!(
            "BPF maps and programs ({bpf}) are parts of vmalloc, slab and per-CPU memory{owners}."
        ));
    }
    texts
}

/// Buffers of GPU drivers that are shared memory, with their processes if they are much.
pub(super) fn gpu_buffers_in_words(holdings: &[ProcessHoldings]) -> String {
    let all = total(holdings, |process| process.gpu_shared);
    match most(holdings, |process| process.gpu_shared).filter(|_| all >= UNCOUNTED_MIN) {
        Some(owners) => format!("buffers of GPU drivers (≈{all}: {owners})"),
        None => "buffers of GPU drivers".to_owned(),
    }
}

/// The kernel's stack of a thread: 16 KiB on 64-bit machines, a page where pages are larger (`THREAD_SIZE`).
const STACK_MIN: Bytes = Bytes::from_kib(16);

impl Accounting {
    /// Returns page tables by process.
    pub(super) fn page_tables(&self, holdings: &[ProcessHoldings]) -> Option<MemoryNode> {
        let node = self.leaf(TermKind::PageTables)?;
        Some(by_process(self, node, holdings, |process| process.page_tables))
    }

    /// Returns the kernel's stacks by process.
    pub(super) fn kernel_stacks(
        &self,
        page: Option<PageSize>,
        holdings: &[ProcessHoldings],
    ) -> Option<MemoryNode> {
        let stack = page.unwrap_or(PageSize::USUAL).bytes().max(STACK_MIN);
        let node = self.leaf(TermKind::KernelStack)?;
        Some(by_process(self, node, holdings, |process| {
            Bytes::new(stack.get().saturating_mul(process.threads.get()))
        }))
    }
}

/// Whether buffers that drivers of GPUs have allocated themselves are named among what no counter has.
pub(super) fn has_gpu_buffers(holdings: &[ProcessHoldings]) -> bool {
    total(holdings, |process| process.gpu_pages) >= UNCOUNTED_MIN
}

/// Returns what no counter of the host has: data in pipes and rings, buffers, by kind.
pub(super) fn uncounted_objects(holdings: &[ProcessHoldings]) -> Vec<MemoryNode> {
    // Drivers may have moved buffers of GPUs to swap or back: an estimate.
    let kinds: [(&str, bool, HoldingOf); 5] = [
        ("buffers of GPUs", true, |process| process.gpu_pages),
        ("buffers of DMA heaps", false, |process| process.dma_heaps),
        ("data in pipes", false, |process| process.pipes),
        ("rings of io_uring", false, |process| process.io_rings),
        ("rings of packet sockets", false, |process| process.packet_rings),
    ];
    let mut nodes: Vec<MemoryNode> = kinds
        .into_iter()
        .map(|(label, is_estimate, size)| {
            MemoryNode::new(label, total(holdings, size))
                .noted(most(holdings, size).unwrap_or_default())
                .estimated(is_estimate)
        })
        .filter(|node| node.bytes >= UNCOUNTED_MIN)
        .collect();
    nodes.sort_by_key(|node| std::cmp::Reverse(node.bytes));
    nodes
}

/// Divides a node among the processes that have most of it, if it is worth lines.
fn by_process(
    accounting: &Accounting,
    mut node: MemoryNode,
    holdings: &[ProcessHoldings],
    size: impl Fn(&ProcessHoldings) -> Bytes,
) -> MemoryNode {
    if node.bytes < NAMED_MIN {
        return node;
    }
    let parts = descending(holdings, size);
    let (named, rest) = accounting.largest(&parts, Accounting::NAMED);
    let named = named
        .iter()
        .map(|(process, bytes)| MemoryNode::new(process_in_words(&process.process), *bytes));
    node.children.extend(named);
    node.children.extend(others(rest.len(), rest.iter().map(|(_, bytes)| *bytes).sum()));
    node.complete(
        MemoryNode::new(REST, Bytes::ZERO)
            .noted("the kernel's own, and processes that were not read"),
    );
    node
}

#[cfg(test)]
mod tests {
    use super::super::tests::{child, facts, host, sizes, tree_with};
    use super::*;
    use timeline::signals::{MEM_KERNEL_STACK, MEM_PAGE_TABLES, TCP_MEM};
    use timeline::{Timeline, UserProcess};
    use units::{Count, Pages};

    fn process(pid: u32, name: &str, [tables, huge, locked]: [u64; 3]) -> ProcessHoldings {
        ProcessHoldings {
            process: UserProcess { pid, name: name.to_owned(), ..UserProcess::default() },
            page_tables: Bytes::from_mib(tables),
            huge_pages: Bytes::from_mib(huge),
            locked: Bytes::from_mib(locked),
            ..ProcessHoldings::default()
        }
    }

    #[test]
    fn sockets_and_bpf_maps_name_their_processes() {
        let mut sample = host();
        // 40 MiB: some of it in another network namespace.
        sample.host.set(TCP_MEM, Pages::new(40 * 256));
        let of = |pid, sockets, bpf| ProcessHoldings {
            sockets: Bytes::from_mib(sockets),
            bpf: Bytes::from_mib(bpf),
            ..process(pid, "proxy", [0, 0, 0])
        };
        let inventory =
            Inventory { holdings: vec![of(7, 30, 0), of(8, 2, 20)], ..Inventory::default() };
        let mut timeline = Timeline::default();
        timeline.push(&sample).unwrap();
        let facts = facts();
        let words = |inventory| {
            let cx = Evidence::new(&timeline, &facts);
            kernel_objects_in_words(&cx, 0, inventory)
        };
        assert_eq!(
            words(&inventory),
            [
                "Buffers of sockets (40 MiB) are parts of slab and of unaccounted memory; proxy \
                 (7) 30 MiB, proxy (8) 2 MiB.",
                "BPF maps and programs (20 MiB) are parts of vmalloc, slab and per-CPU memory; \
                 proxy (8) 20 MiB.",
            ]
        );
        assert_eq!(words(&Inventory::default()).len(), 1);
    }

    #[test]
    fn page_tables_name_their_processes() {
        let mut sample = host();
        sample.host.set(MEM_PAGE_TABLES, Bytes::from_mib(40));
        let inventory = Inventory {
            holdings: vec![process(7, "java", [6, 0, 0]), process(9, "db", [30, 0, 0])],
            ..Inventory::default()
        };
        let tree = tree_with(&sample, &facts(), &inventory);
        let tables = child(child(&tree, "kernel"), "page tables");
        assert_eq!(sizes(tables), [("db (9)", 30), ("java (7)", 6), (REST, 4)]);
    }

    #[test]
    fn kernel_stacks_are_divided_by_threads() {
        let mut sample = host();
        sample.host.set(MEM_KERNEL_STACK, Bytes::from_mib(40));
        let of = |pid, threads| ProcessHoldings {
            threads: Count::new(threads),
            ..process(pid, "java", [0, 0, 0])
        };
        let inventory =
            Inventory { holdings: vec![of(7, 1_920), of(8, 64)], ..Inventory::default() };
        let tree = tree_with(&sample, &facts(), &inventory);
        let stacks = child(child(&tree, "kernel"), "kernel stacks");
        assert_eq!(sizes(stacks), [("java (7)", 30), ("java (8)", 1), (REST, 9)]);
    }

    #[test]
    fn what_no_counter_has_is_a_part_of_unaccounted_memory() {
        let of = |pid, pipes, io_rings| ProcessHoldings {
            pipes: Bytes::from_mib(pipes),
            io_rings: Bytes::from_mib(io_rings),
            ..process(pid, "proxy", [0, 0, 0])
        };
        let part = |holdings: Vec<ProcessHoldings>| {
            let inventory = Inventory { holdings, ..Inventory::default() };
            let tree = tree_with(&host(), &facts(), &inventory);
            child(&tree, "unaccounted").clone()
        };
        let without = part(vec![of(7, 1, 2)]);
        assert_eq!(sizes(&without), [], "too little for lines");
        let whole = without.bytes.get() >> 20;
        let divided = part(vec![of(7, 2, 4), of(8, 3, 0)]);
        assert_eq!(
            sizes(&divided),
            [("data in pipes", 5), ("rings of io_uring", 4), (REST, whole - 9)]
        );
        assert_eq!(divided.children[0].note, "proxy (8) 3 MiB, proxy (7) 2 MiB");
        assert!(divided.children[2].note.starts_with("usual owners: "));
        assert_eq!(divided.note, "");
    }

    #[test]
    fn a_sentence_names_the_largest_and_counts_the_others() {
        let all: Vec<ProcessHoldings> =
            (1..=5).map(|n| process(n, "qemu", [0, 0, u64::from(n)])).collect();
        let inventory = Inventory { holdings: all, ..Inventory::default() };
        assert_eq!(
            most(&inventory.holdings, |process| process.locked).as_deref(),
            Some("qemu (5) 5 MiB, qemu (4) 4 MiB, qemu (3) 3 MiB and 2 others")
        );
        assert_eq!(most(&inventory.holdings, |process| process.page_tables), None);
        assert!(locked_in_words(Bytes::from_mib(15), &inventory).contains("locked by qemu (5)"));
    }
}
