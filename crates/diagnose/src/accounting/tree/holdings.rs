//! What processes have beside their RSS, or locked: page tables, huge pages, memory that reclaim may not take.

use timeline::ProcessHoldings;
use units::{Bytes, Count};

use super::shared_objects::process_in_words;
use super::{Accounting, Inventory, MemoryNode, REST, TermKind, largest, others};

/// Page tables of less are not worth lines of their own.
const PAGE_TABLES_MIN: Bytes = Bytes::from_mib(16);
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

impl Accounting {
    /// Returns page tables by process.
    pub(super) fn page_tables(&self, holdings: &[ProcessHoldings]) -> Option<MemoryNode> {
        let mut node = self.leaf(TermKind::PageTables)?;
        if node.bytes < PAGE_TABLES_MIN {
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
    use timeline::UserProcess;
    use timeline::signals::MEM_PAGE_TABLES;

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
        }
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
