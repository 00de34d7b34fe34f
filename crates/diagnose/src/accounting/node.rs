//! Where the memory of one NUMA node is, sample by sample: disjoint parts that add up to the node's total.
//!
//! A node's file counts fewer fields than a host's, so the parts are coarser than [`super::Term`]s.

use timeline::signals::{NODE_ANON, NODE_FILE, NODE_FREE, NODE_SHMEM, NODE_SLAB, NODE_TOTAL};
use timeline::{Entity, Gauge, Signal};
use units::Bytes;

use super::stack::fill_up;
use crate::evidence::Evidence;

/// The parts of a node in bytes; `None` at samples that lack them.
#[allow(missing_docs)] // names say it
#[derive(Debug, Clone, PartialEq)]
pub struct OfNode {
    /// The remainder: the node's total minus the other parts.
    pub rest: Vec<Option<f64>>,
    pub slab: Vec<Option<f64>>,
    /// Shared memory, tmpfs.
    pub shared: Vec<Option<f64>>,
    /// Anonymous memory.
    pub anon: Vec<Option<f64>>,
    /// Page cache without shared memory.
    pub file: Vec<Option<f64>>,
    /// Free memory.
    pub free: Vec<Option<f64>>,
}

/// The remainder's place in the stack: the bottom.
const REMAINDER_INDEX: usize = 0;

/// Returns the parts of the node with this key at each sample.
pub fn of_node(cx: &Evidence<'_>, key: &str) -> OfNode {
    let samples = cx.timeline.len();
    let gauge = |signal: Signal<Gauge<Bytes>>| {
        let node = cx.timeline.entity(Entity::Node, key);
        let track = node.and_then(|node| cx.timeline.gauge_of(node, signal));
        track.map_or_else(|| vec![None; samples], |track| track.values().to_vec())
    };
    let shared = gauge(NODE_SHMEM);
    let mut file = gauge(NODE_FILE);
    for (file, shared) in file.iter_mut().zip(&shared) {
        *file = file.map(|file| (file - shared.unwrap_or_default()).max(0.0));
    }
    let mut parts =
        [vec![None; samples], gauge(NODE_SLAB), shared, gauge(NODE_ANON), file, gauge(NODE_FREE)];
    for (index, total) in gauge(NODE_TOTAL).into_iter().enumerate() {
        let Some(total) = total else {
            continue;
        };
        let mut sizes = parts.each_ref().map(|part| part[index]);
        fill_up(&mut sizes, REMAINDER_INDEX, total);
        for (part, size) in parts.iter_mut().zip(sizes) {
            part[index] = size;
        }
    }
    let [rest, slab, shared, anon, file, free] = parts;
    OfNode { rest, slab, shared, anon, file, free }
}
