//! Shared memory: its objects, or else the processes that map it and the file systems that may have the rest.

use timeline::facts::MemoryMount;
use timeline::signals::{SWAP_FREE, SWAP_TOTAL};
use timeline::{Inventory, SharedKind, SharedObject};
use units::{Bytes, Count};

use super::{MemoryNode, REST, holdings, shared_objects, unread};
use crate::accounting::{Accounting, TermKind, owners};
use crate::evidence::Evidence;

/// The number of mounts that a remark names.
const MOUNTS_NAMED: usize = 4;

impl Accounting {
    /// Returns shared memory: by object if a search found any, else by the processes that map it.
    pub(super) fn shared(&self, cx: &Evidence<'_>, inventory: &Inventory) -> Option<MemoryNode> {
        let mut node = MemoryNode::new("shared memory", self.term(TermKind::Shmem)?);
        let mounts = mounts_in_words(&cx.facts.memory_mounts);
        if let Some(shared) = &inventory.shared {
            node.children = shared_objects::nodes(shared, self.is_swap_used(cx), self.top);
        }
        if let Some(shared) = inventory.shared.as_ref().filter(|_| !node.children.is_empty()) {
            let mut likely = Vec::new();
            let is_mounted =
                |object: &SharedObject| matches!(object.kind, SharedKind::FileSystem { .. });
            // A bundle has the segments only.
            if !shared.objects.iter().any(is_mounted) {
                likely.extend(mounts.map(|mounts| format!("files in {mounts}")));
                likely.push("memfd and shared mappings".to_owned());
            }
            likely.extend(shared_objects::unseen(shared));
            likely.push(holdings::gpu_buffers_in_words(&inventory.holdings));
            node.complete(MemoryNode::new(REST, Bytes::ZERO).noted(likely.join("; ")));
            return Some(node);
        }
        let Some(owners) = owners::of_shared(cx, self.index) else {
            node.note = mounts.map_or_else(String::new, |mounts| format!("files in {mounts}"));
            return Some(node);
        };
        let unread = unread(&owners.unread);
        self.own(cx, &mut node, owners);
        let files = mounts.map(|mounts| format!("files in {mounts}"));
        let segments = "memfd and System V memory that no process maps".to_owned();
        let likely: Vec<String> = files.into_iter().chain([segments]).chain(unread).collect();
        let likely = likely.join("; ");
        node.complete(MemoryNode::new(REST, Bytes::ZERO).noted(likely));
        Some(node)
    }

    /// Whether pages may be in swap; unknown swap may have some.
    fn is_swap_used(&self, cx: &Evidence<'_>) -> bool {
        let at = |signal| cx.timeline.at(signal, self.index);
        at(SWAP_TOTAL).is_none_or(|total| total > at(SWAP_FREE).unwrap_or_default())
    }
}

/// Names the file systems that may hold shared memory; `None` if there is none. Files in a ramfs are no shared memory.
fn mounts_in_words(mounts: &[MemoryMount]) -> Option<String> {
    let may_hold_files = |mount: &&MemoryMount| {
        !matches!(mount.kind.as_str(), "devtmpfs" | "ramfs")
            && mount.size.is_none_or(|size| size >= Bytes::from_mib(1))
    };
    let named: Vec<&MemoryMount> = mounts.iter().filter(may_hold_files).collect();
    let words = named.iter().take(MOUNTS_NAMED).map(|mount| {
        let limit = mount.size.map_or_else(String::new, |size| format!(", at most {size}"));
        format!("{} ({}{limit})", mount.point, mount.kind)
    });
    let more = named.len().saturating_sub(MOUNTS_NAMED);
    let more = (more > 0).then(|| format!("{} more", Count::new(more as u64)));
    let words: Vec<String> = words.chain(more).collect();
    (!words.is_empty()).then(|| words.join(", "))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{child, facts, host, sizes, tree_with};
    use super::*;
    use timeline::Entity;
    use timeline::signals::{PROC_PSS_SHMEM, PROC_RSS_SHMEM, PROC_THREADS};

    #[test]
    fn shared_memory_that_nobody_maps_has_likely_owners() {
        let mut sample = host();
        let row = sample.table_mut(Entity::Process).entry("1@1");
        row.label.push_str("db");
        row.row.set(PROC_PSS_SHMEM, Bytes::from_mib(20));
        row.row.set(PROC_RSS_SHMEM, Bytes::from_mib(20));
        row.row.set(PROC_THREADS, Count::new(1));
        let mut facts = facts();
        for i in 0..6 {
            facts.memory_mounts.push(MemoryMount {
                point: format!("/mnt/{i}"),
                kind: if i == 0 { "ramfs" } else { "tmpfs" }.to_owned(),
                size: None,
            });
        }
        let shared = tree_with(&sample, &facts, &Inventory::default());
        let shared = child(&shared, "shared memory");
        assert_eq!(sizes(shared), [("db", 20), (REST, 30)]);
        let note = &child(shared, REST).note;
        assert!(
            note.starts_with(
                "files in /mnt/1 (tmpfs), /mnt/2 (tmpfs), /mnt/3 (tmpfs), /mnt/4 (tmpfs), 1 more; \
                 memfd"
            ),
            "{note}"
        );
    }
}
