//! A part of RAM with its own parts, which add up to it exactly.
//!
//! Counters and owners are not read at one instant, and owners are not read completely. What the parts lack is one more
//! part, the remainder. What they have too much is taken off them: within drift off the largest, where it shows least;
//! else off all in proportion, and then they are estimates.

use schemars::JsonSchema;
use serde::Serialize;
use units::{Bytes, Ratio};

/// How the size of a part of RAM is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "BranchKind")]
pub enum SizeKind {
    /// A counter, or a sum of counters.
    #[default]
    Measured,
    /// An upper bound, or scaled because the parts of one whole were read at different times.
    Estimate,
    /// What the other parts of the same whole leave over.
    Remainder,
}

/// A part of RAM and what it is made of.
#[allow(missing_docs)] // names say it
#[derive(Debug, Clone, PartialEq, Default, Serialize, JsonSchema)]
#[schemars(rename = "Branch")]
pub struct MemoryNode {
    /// What people call it; may be a name from the host.
    pub label: String,
    pub bytes: Bytes,
    /// How its size is known.
    pub kind: SizeKind,
    /// Its share of MemTotal.
    pub share: Option<Ratio>,
    /// What else is worth knowing; how its parts were measured.
    pub note: String,
    /// Its parts, largest first, the remainder last; empty where they are not known. They add up to it.
    pub children: Vec<MemoryNode>,
}

impl MemoryNode {
    /// Parts that exceed their whole by less than a hundredth may still be of one time: files of one sample drift by 1 %
    /// at most.
    const DRIFT_PARTS: u64 = 100;

    pub(super) fn new(label: impl Into<String>, bytes: Bytes) -> Self {
        Self { label: label.into(), bytes, ..Self::default() }
    }

    pub(super) fn noted(mut self, note: impl Into<String>) -> Self {
        self.note = note.into();
        self
    }

    /// Marks its size as an estimate, if it is one.
    pub(super) fn estimated(mut self, is_estimate: bool) -> Self {
        if is_estimate {
            self.kind = SizeKind::Estimate;
        }
        self
    }

    pub(super) fn note_also(&mut self, remark: &str) {
        if !self.note.is_empty() && !remark.is_empty() {
            self.note.push_str("; ");
        }
        self.note.push_str(remark);
    }

    /// Makes the parts add up to the node; `rest` becomes the remainder if they lack something. A node without parts
    /// stays as it is.
    pub(super) fn complete(&mut self, rest: Self) {
        if self.children.is_empty() {
            return;
        }
        if let Some(sum) = self.reduce_parts() {
            self.note_also(&format!("together {sum}, scaled down"));
        }
        let left = self.lacks();
        if left > Bytes::ZERO {
            self.children.push(Self { bytes: left, kind: SizeKind::Remainder, ..rest });
        }
    }

    /// Returns what the parts lack.
    pub(super) fn lacks(&self) -> Bytes {
        let left = u128::from(self.bytes.get()).saturating_sub(self.parts_sum());
        bytes_of(left)
    }

    /// Reduces parts that exceed the node. Returns their sum if they had to be scaled because that was no drift.
    pub(super) fn reduce_parts(&mut self) -> Option<Bytes> {
        let sum = self.parts_sum();
        let excess = bytes_of(sum.saturating_sub(u128::from(self.bytes.get())));
        if excess == Bytes::ZERO {
            return None;
        }
        let is_drift = excess.get().saturating_mul(Self::DRIFT_PARTS) <= self.bytes.get();
        match self.largest().filter(|part| is_drift && part.bytes > excess) {
            Some(largest) => {
                largest.shrink(largest.bytes.saturating_sub(excess));
                None
            }
            None => {
                self.scale_parts(sum);
                for part in &mut self.children {
                    part.kind = SizeKind::Estimate;
                }
                Some(bytes_of(sum))
            }
        }
    }

    fn parts_sum(&self) -> u128 {
        let sizes = self.children.iter().map(|part| part.bytes.get());
        sizes.map(u128::from).sum()
    }

    fn largest(&mut self) -> Option<&mut Self> {
        self.children.iter_mut().max_by_key(|part| part.bytes)
    }

    /// Gives the node a smaller size, and its parts in proportion.
    fn shrink(&mut self, bytes: Bytes) {
        self.bytes = bytes;
        let sum = self.parts_sum();
        if sum > u128::from(bytes.get()) {
            self.scale_parts(sum);
        }
    }

    /// Adds what rounding has left over, down to the smallest of its largest parts.
    fn grow(&mut self, by: Bytes) {
        self.bytes += by;
        if let Some(largest) = self.largest() {
            largest.grow(by);
        }
    }

    /// Scales the parts from their sum to the node's size.
    fn scale_parts(&mut self, sum: u128) {
        let whole = u128::from(self.bytes.get());
        for part in &mut self.children {
            let scaled = u128::from(part.bytes.get()).saturating_mul(whole);
            part.shrink(bytes_of(scaled.checked_div(sum).unwrap_or(0)));
        }
        let left = self.lacks();
        if let Some(largest) = self.largest() {
            largest.grow(left);
        }
    }

    /// Sets the shares of the node and of all below it.
    pub(super) fn set_shares(&mut self, total: Bytes) {
        self.share = self.bytes.ratio_of(total);
        for part in &mut self.children {
            part.set_shares(total);
        }
    }
}

fn bytes_of(number: u128) -> Bytes {
    Bytes::new(u64::try_from(number).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn node(bytes: u64, parts: &[u64]) -> MemoryNode {
        let part = |size: &u64| MemoryNode::new("part", Bytes::new(*size));
        MemoryNode {
            children: parts.iter().map(part).collect(),
            ..MemoryNode::new("whole", Bytes::new(bytes))
        }
    }

    fn completed(mut node: MemoryNode) -> MemoryNode {
        node.complete(MemoryNode::new("rest", Bytes::ZERO));
        node
    }

    fn sizes(node: &MemoryNode) -> Vec<(u64, SizeKind)> {
        let parts = node.children.iter();
        parts.map(|part| (part.bytes.get(), part.kind)).collect()
    }

    #[test]
    fn what_the_parts_lack_is_the_remainder() {
        use SizeKind::{Measured, Remainder};
        let whole = completed(node(100, &[60, 30]));
        assert_eq!(sizes(&whole), [(60, Measured), (30, Measured), (10, Remainder)]);
        assert_eq!(completed(node(90, &[60, 30])).children.len(), 2);
        assert_eq!(sizes(&completed(node(90, &[]))), []);
    }

    #[test]
    fn drift_is_taken_off_the_largest_and_more_off_all() {
        use SizeKind::{Estimate, Measured};
        let drifted = completed(node(1000, &[605, 400]));
        assert_eq!(sizes(&drifted), [(600, Measured), (400, Measured)]);
        assert_eq!(drifted.note, "");
        let scaled = completed(node(100, &[150, 50]));
        assert_eq!(sizes(&scaled), [(75, Estimate), (25, Estimate)]);
        assert!(scaled.note.contains("200 B"), "{}", scaled.note);
    }

    fn adds_up(node: &MemoryNode) -> bool {
        let is_whole = node.children.is_empty() || node.lacks() == Bytes::ZERO;
        let is_within = node.parts_sum() <= u128::from(node.bytes.get());
        is_whole && is_within && node.children.iter().all(adds_up)
    }

    proptest! {
        #[test]
        fn parts_add_up_on_every_level(
            whole: u64,
            parts in prop::collection::vec((any::<u64>(), prop::collection::vec(any::<u64>(), 0..4)), 0..5),
            shift in 0_u32..64,
        ) {
            let inner = |(size, sizes): &(u64, Vec<u64>)| completed(node(size >> shift, sizes));
            let mut outer = node(whole, &[]);
            outer.children = parts.iter().map(inner).collect();
            let outer = completed(outer);
            prop_assert!(adds_up(&outer), "{outer:#?}");
        }
    }
}
