//! Which mappings are stacks.
//!
//! The kernel names the first thread's. Another thread's stack is anonymous memory in which its stack pointer lies, with
//! a guard without access directly below: glibc, musl and HotSpot all place one (`allocate_stack` in glibc's
//! `nptl/allocatestack.c`). glibc keeps up to 40 MiB of ended threads' stacks, and fibers have guarded memory of their
//! own, so a guard alone makes no thread's stack.

use std::collections::HashMap;

use probe::{SmapsBlock, StackPointer, VmFlag};
use units::{Bytes, Limit};

use crate::part::{Certainty, PartKind, PartStep, Place};

/// A guard is at most this large; a larger range without access is a reservation.
const GUARD_MAX: u64 = 1 << 20;
/// A larger mapping is no stack as a whole, even if a stack pointer lies in it: the kernel joins neighbours.
const STACK_MAX: u64 = 256 << 20;
/// So many mappings of one size, each with a guard below, are stacks of something.
const ALIKE_MIN: usize = 4;

/// The role of each block that belongs to a stack.
pub(crate) struct StackRoles(HashMap<usize, Place>);

impl StackRoles {
    pub(crate) fn find(
        blocks: &[SmapsBlock],
        pointers: &[StackPointer],
        limit: Option<Limit>,
    ) -> Self {
        let mut roles = Self(HashMap::new());
        for (index, block) in blocks.iter().enumerate() {
            if let Some(place) = by_name(block) {
                roles.0.insert(index, place);
            }
        }
        let mut sizes = roles.by_pointer(blocks, pointers);
        if let Some(Limit::Bytes(soft)) = limit {
            sizes.push(soft.get());
        }
        roles.by_shape(blocks, &sizes);
        roles
    }

    pub(crate) fn of(&self, index: usize) -> Option<&Place> {
        self.0.get(&index)
    }

    /// Finds stacks by stack pointers; returns the sizes of those with a guard.
    fn by_pointer(&mut self, blocks: &[SmapsBlock], pointers: &[StackPointer]) -> Vec<u64> {
        let mut sizes = Vec::new();
        for pointer in pointers {
            let end = |block: &SmapsBlock| block.mapping.range.end <= pointer.address;
            let index = blocks.partition_point(end);
            let Some(block) = blocks.get(index) else {
                continue;
            };
            let is_inside = block.mapping.range.contains(&pointer.address);
            if !is_inside || !may_be_stack(block) || self.0.contains_key(&index) {
                continue;
            }
            let Some(guard) = guard_below(blocks, index) else {
                continue;
            };
            let evidence = "a thread's stack pointer lies in it, above a guard without access";
            let place = stack(PartKind::ThreadStacks, "threads", evidence, Certainty::Certain);
            self.0.insert(guard, place.clone());
            self.0.insert(index, place);
            sizes.push(block.mapping.size_bytes());
        }
        sizes
    }

    /// Finds mappings with a guard below that are as large as known stacks, or of which there are several.
    fn by_shape(&mut self, blocks: &[SmapsBlock], sizes: &[u64]) {
        let mut alike: HashMap<u64, Vec<(usize, usize)>> = HashMap::new();
        for (index, block) in blocks.iter().enumerate() {
            if self.0.contains_key(&index) || !may_be_stack(block) {
                continue;
            }
            if let Some(guard) = guard_below(blocks, index) {
                let size = block.mapping.size_bytes();
                alike.entry(size).or_default().push((guard, index));
            }
        }
        for (size, found) in alike {
            let (kind, label, evidence) = if sizes.contains(&size) {
                let evidence = "as large as a thread's stack, above a guard without access; the \
                                thread runs now or has ended";
                (PartKind::ThreadStacks, "threads", evidence)
            } else if found.len() >= ALIKE_MIN {
                let evidence = "several of one size, each above a guard without access; no stack \
                                pointer of a thread lies in them";
                (PartKind::IdleStacks, "fibers or ended threads", evidence)
            } else {
                continue;
            };
            let place = stack(kind, label, evidence, Certainty::Likely);
            for (guard, index) in found {
                self.0.insert(guard, place.clone());
                self.0.insert(index, place.clone());
            }
        }
    }
}

fn stack(
    kind: PartKind,
    label: &'static str,
    evidence: &'static str,
    certainty: Certainty,
) -> Place {
    let group = PartStep::new(PartKind::Stacks, "stacks");
    Place::new([group, PartStep::new(kind, label).by(evidence)], certainty)
}

/// Stacks that the kernel or the process names.
fn by_name(block: &SmapsBlock) -> Option<Place> {
    let name = block.mapping.name.as_slice();
    if name == b"[stack]" || (name.is_empty() && block.has(VmFlag::GrowsDown)) {
        let evidence = "the kernel names it [stack], or lets it grow downward";
        return Some(stack(PartKind::MainStack, "first thread", evidence, Certainty::Certain));
    }
    // Kernels 3.4 to 4.4; Android's bionic; glibc with glibc.mem.decorate_maps.
    let named: [&[u8]; 4] =
        [b"[stack:", b"[anon:stack_and_tls:", b"[anon: glibc: pthread", b"[anon:thread stack"];
    let is_named =
        named.iter().any(|start| name.starts_with(start)) || block.has(VmFlag::ShadowStack);
    let evidence = "its name, or its flag of a shadow stack";
    is_named.then(|| stack(PartKind::ThreadStacks, "threads", evidence, Certainty::Certain))
}

fn may_be_stack(block: &SmapsBlock) -> bool {
    let mapping = &block.mapping;
    let is_plain = mapping.is_anonymous() && mapping.name.is_empty();
    is_plain
        && mapping.is_private_writable()
        && mapping.access.read
        && mapping.size_bytes() <= STACK_MAX
}

/// Returns the block directly below, if it is a guard.
fn guard_below(blocks: &[SmapsBlock], index: usize) -> Option<usize> {
    let below = index.checked_sub(1)?;
    let (guard, block) = (&blocks[below].mapping, &blocks[index].mapping);
    let is_guard = guard.range.end == block.range.start
        && guard.is_anonymous()
        && !(guard.access.read || guard.access.write || guard.access.execute)
        && guard.size_bytes() <= GUARD_MAX;
    is_guard.then_some(below)
}

/// Returns the soft limit of stacks, if a thread's stack may be that large.
pub(crate) fn soft(limit: Option<probe::SoftHard>) -> Option<Limit> {
    let plausible = |limit: &Limit| match limit {
        Limit::Bytes(size) => *size <= Bytes::new(STACK_MAX),
        Limit::Unlimited => false,
    };
    limit.map(|limit| limit.soft).filter(plausible)
}
