//! What processes have beside their RSS, or locked: page tables, huge pages, sockets, BPF maps, memory that reclaim may not take.

use timeline::ProcessHoldings;
use units::{Bytes, Count};

use super::shared_objects::process_in_words;
use super::{Accounting, Inventory, MemoryNode, REST, TermKind, largest, others};
use crate::evidence::Evidence;
use crate::measures::sockets;

/// Less is not worth lines or a sentence of its own.
const NAMED_MIN: Bytes = Bytes::from_mib(16);
/// At most 3 processes in a sentence.
const NAMED_MAX: usize = 3;

/// What one process has of something.
type HoldingSize<'a> = (&'a ProcessHoldings, Bytes);

/// The processes that have any, the largest first.
fn descending(
    all: &[ProcessHoldings],
    size: fn(&ProcessHoldings) -> Bytes,
) -> Vec<HoldingSize<'_>> {
    let sizes = all.iter().map(|process| (process, size(process)));
    let mut parts: Vec<HoldingSize<'_>> = sizes.filter(|(_, bytes)| *bytes > Bytes::ZERO).collect();
    parts.sort_by_key(|(process, bytes)| (std::cmp::Reverse(*bytes), process.process.pid));
    parts
}

/// `python3 (812) 64 MiB, qemu (7) 2 MiB and 4 others`; `None` if no process has any.
pub(super) fn most(all: &[ProcessHoldings], size: fn(&ProcessHoldings) -> Bytes) -> Option<String> {
    let parts = descending(all, size);
    let (named, rest) = parts.split_at(parts.len().min(NAMED_MAX));
    let named: Vec<String> = named
        .iter()
        .map(|(process, bytes)| format!("{} {bytes}", process_in_words(&process.process)))
        .collect();
    let rest = match rest.len() {
        0 => String::new(),
        n => format!(" and {}", Count::new(n as u64).named("other", "others")),
    };
    (!named.is_empty()).then(|| format!("{}{rest}", named.join(", ")))
}

/// Mlocked, and who locked it.
pub(super) fn locked_in_words(locked: Bytes, inventory: &Inventory) -> String {
    let by = most(&inventory.holdings, |process| process.locked);
    let by = by.map_or_else(String::new, |by| format!("; locked by {by}"));
    format!(
        "Mlocked ({locked}) is a part of anonymous memory, shared memory and page cache that reclaim may not take{by}."
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
    let found: Bytes = inventory
        .holdings
        .iter()
        .map(|process| process.sockets)
        .sum();
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
    let bpf: Bytes = inventory.holdings.iter().map(|process| process.bpf).sum();
    if bpf >= NAMED_MIN {
        let owners = by(|process| process.bpf);
        texts.push(format!(
            "BPF maps and programs ({bpf}) are parts of vmalloc, slab and per-CPU memory{owners}."
        ));
    }
    texts
}

impl Accounting {
    /// Returns page tables by process.
    pub(super) fn page_tables(&self, holdings: &[ProcessHoldings]) -> Option<MemoryNode> {
        let mut node = self.leaf(TermKind::PageTables)?;
        if node.bytes < NAMED_MIN {
            return Some(node);
        }
        let parts = descending(holdings, |process| process.page_tables);
        let (named, rest) = largest(&parts);
        let named = named
            .iter()
            .map(|(process, bytes)| MemoryNode::new(process_in_words(&process.process), *bytes));
        node.children.extend(named);
        node.children.extend(others(
            rest.len(),
            rest.iter().map(|(_, bytes)| *bytes).sum(),
        ));
        node.complete(
            MemoryNode::new(REST, Bytes::ZERO)
                .noted("the kernel's own, and processes that were not read"),
        );
        Some(node)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{child, facts, host, sizes, tree_with};
    use super::*;
    use timeline::signals::{MEM_PAGE_TABLES, TCP_MEM};
    use timeline::{Timeline, UserProcess};
    use units::Pages;

    fn process(pid: u32, name: &str, [tables, huge, locked]: [u64; 3]) -> ProcessHoldings {
        ProcessHoldings {
            process: UserProcess {
                pid,
                name: name.to_owned(),
                ..UserProcess::default()
            },
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
        let inventory = Inventory {
            holdings: vec![of(7, 30, 0), of(8, 2, 20)],
            ..Inventory::default()
        };
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
                "Buffers of sockets (40 MiB) are parts of slab and of unaccounted memory; proxy (7) 30 MiB, proxy (8) 2 MiB.",
                "BPF maps and programs (20 MiB) are parts of vmalloc, slab and per-CPU memory; proxy (8) 20 MiB.",
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
    fn a_sentence_names_the_largest_and_counts_the_others() {
        let all: Vec<ProcessHoldings> = (1..=5)
            .map(|n| process(n, "qemu", [0, 0, u64::from(n)]))
            .collect();
        let inventory = Inventory {
            holdings: all,
            ..Inventory::default()
        };
        assert_eq!(
            most(&inventory.holdings, |process| process.locked).as_deref(),
            Some("qemu (5) 5 MiB, qemu (4) 4 MiB, qemu (3) 3 MiB and 2 others")
        );
        assert_eq!(
            most(&inventory.holdings, |process| process.page_tables),
            None
        );
        assert!(locked_in_words(Bytes::from_mib(15), &inventory).contains("locked by qemu (5)"));
    }
}
