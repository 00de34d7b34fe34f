//! Sizes between which more cache saves I/O; below and above them it saves nothing.

use schemars::JsonSchema;
use serde::Serialize;
use units::{Bytes, Quantity, Ratio};

/// Savings belong together where the next one needs less than this share more cache.
const GAP: Ratio = Ratio::new(0.08);

/// And less than this: touches are known to no better than the length of a run of them.
const GAP_MIN: Bytes = Bytes::from_mib(1);

/// A cliff saves at least this share of all I/O.
const SAVED_MIN: f64 = 0.03;

/// What is left out at both ends of a cliff: single pages far from the rest.
const OUTLIERS: f64 = 0.005;

/// What a cliff saves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CliffKind {
    /// Files are read again from the cache.
    Rereads,
    /// Files are removed before they are written.
    UnwrittenFiles,
}

/// More cache saves I/O between two sizes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct JobCliff {
    /// What is saved.
    pub kind: CliffKind,
    /// With less cache than this nothing of it is saved.
    pub from_bytes: Bytes,
    /// With this much all of it is saved: the smallest cache that avoids the cliff.
    pub to_bytes: Bytes,
    /// How much I/O is saved.
    pub saved_bytes: Bytes,
}

/// Finds cliffs among sizes at which one page is read from the cache instead of the disk, the smallest first; each saves
/// `weight` bytes. `unwritten`: from which size on what is not written.
pub(crate) fn cliffs(
    sizes: impl Iterator<Item = Bytes>,
    weight: f64,
    unwritten: Option<(Bytes, Bytes)>,
    net: Bytes,
) -> Vec<JobCliff> {
    let least = net.as_f64() * SAVED_MIN;
    let mut found = Vec::new();
    let mut group: Vec<Bytes> = Vec::new();
    let mut close = |group: &mut Vec<Bytes>| {
        let saved = Bytes::from_f64(weight * group.len() as f64);
        if !group.is_empty() && saved.as_f64() >= least {
            found.push(JobCliff {
                kind: CliffKind::Rereads,
                from_bytes: quantile(group, OUTLIERS),
                to_bytes: quantile(group, 1.0 - OUTLIERS),
                saved_bytes: saved,
            });
        }
        group.clear();
    };
    for size in sizes {
        let is_far = group.last().is_some_and(|last| size > *last + GAP_MIN.max(last.share(GAP)));
        if is_far {
            close(&mut group);
        }
        group.push(size);
    }
    close(&mut group);
    if let Some((from, saved)) = unwritten.filter(|(_, saved)| saved.as_f64() >= least) {
        found.push(JobCliff {
            kind: CliffKind::UnwrittenFiles,
            from_bytes: from,
            to_bytes: from,
            saved_bytes: saved,
        });
    }
    found
}

/// A value of a sorted list that is not empty.
fn quantile(sorted: &[Bytes], share: f64) -> Bytes {
    let at = units::Count::from_f64((sorted.len() - 1) as f64 * share).get();
    sorted[usize::try_from(at).unwrap_or(0).min(sorted.len() - 1)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_far_from_each_other_are_two_cliffs_and_few_pages_are_none() {
        let mib = Bytes::from_mib;
        let sizes = (100..200).chain([300; 50]).chain([900]).map(mib);
        let found = cliffs(sizes, 1_048_576.0, None, mib(400));
        let expected = [(mib(100), mib(199), mib(100)), (mib(300), mib(300), mib(50))];
        let ends: Vec<_> =
            found.iter().map(|one| (one.from_bytes, one.to_bytes, one.saved_bytes)).collect();
        assert_eq!(ends, expected);
    }
}
