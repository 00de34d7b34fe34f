//! Checks whether the kernel's own figures of total memory agree: zones, nodes, MemTotal, and the disjoint terms.

use timeline::{
    Entity, EntitySeries, Gauge, Signal,
    signals::{MEM_FREE, MEM_TOTAL, NODE_TOTAL, ZONE_FREE, ZONE_MANAGED},
};
use units::{Bytes, Pages, Quantity, Ratio};

use crate::accounting::account;
use crate::evidence::Evidence;

/// A larger difference is no drift: files of one sample legitimately drift by up to 1 %; the labelled captures show
/// 0.0 %.
pub(crate) const TOLERANCE: Ratio = Ratio::from_percent(2.0);
/// How many samples are compared, spread over the source. The median counts: files of one sample are read one after
/// another.
const SAMPLES: usize = 9;

/// Results of the checks; each is absent if the source lacks its figures.
pub(crate) struct Checks {
    pub(crate) managed: Option<Difference>,
    pub(crate) free: Option<Difference>,
    pub(crate) nodes: Option<Difference>,
    pub(crate) over: Option<Ratio>,
}

/// Two figures that should be equal.
#[derive(Clone, Copy)]
pub(crate) struct Difference {
    pub(crate) sum: Bytes,
    pub(crate) whole: Bytes,
    pub(crate) of_ram: f64,
}

impl Difference {
    pub(crate) fn matters(&self) -> bool {
        self.of_ram.abs() > TOLERANCE.get()
    }
}

impl Checks {
    pub(crate) fn run(cx: &Evidence<'_>) -> Self {
        let page = cx.facts.page_size;
        let zones = |signal: Signal<Gauge<Pages>>| {
            move |index: usize| {
                sum_of(cx, Entity::Zone, |zone| {
                    Some(cx.timeline.latest_of(zone, signal, index)?.to_bytes(page?))
                })
            }
        };
        let nodes = |index: usize| {
            sum_of(cx, Entity::Node, |node| cx.timeline.latest_of(node, NODE_TOTAL, index))
        };
        let over = middle(cx, |index| {
            let accounting = account(cx, index).ok()?;
            Some((accounting.unaccounted_share().get(), accounting))
        })
        .filter(|(_, accounting)| accounting.is_broken())
        .map(|(share, _)| Ratio::new(-share));
        Self {
            managed: difference(cx, zones(ZONE_MANAGED), MEM_TOTAL),
            free: difference(cx, zones(ZONE_FREE), MEM_FREE),
            nodes: difference(cx, nodes, MEM_TOTAL),
            over,
        }
    }

    /// Whether the source has any of these figures.
    pub(crate) fn are_measured(&self) -> bool {
        self.managed.is_some() || self.nodes.is_some() || self.over.is_some()
    }

    /// Whether the figures differ so much that shares of MemTotal mean little.
    pub(crate) fn disagree(&self) -> bool {
        let differences = [self.managed, self.free, self.nodes];
        differences.into_iter().flatten().any(|d| d.matters()) || self.over.is_some()
    }
}

fn sum_of(
    cx: &Evidence<'_>,
    entity: Entity,
    size: impl Fn(&EntitySeries) -> Option<Bytes>,
) -> Option<Bytes> {
    let mut sizes = cx.timeline.entities(entity).filter_map(size).peekable();
    sizes.peek()?;
    Some(sizes.sum())
}

/// Returns the median difference between a sum over entities and a host figure, as a share of RAM.
fn difference(
    cx: &Evidence<'_>,
    sum: impl Fn(usize) -> Option<Bytes>,
    whole: Signal<Gauge<Bytes>>,
) -> Option<Difference> {
    let (_, difference) = middle(cx, |index| {
        let sum = sum(index)?;
        let ram = cx.timeline.at(MEM_TOTAL, index)?.as_f64();
        let whole = cx.timeline.at(whole, index)?;
        let of_ram = (sum.as_f64() - whole.as_f64()) / ram.max(1.0);
        Some((of_ram, Difference { sum, whole, of_ram }))
    })?;
    Some(difference)
}

/// Returns the measurement at the sample with the median value.
fn middle<T>(cx: &Evidence<'_>, measure: impl Fn(usize) -> Option<(f64, T)>) -> Option<(f64, T)> {
    let mut measured: Vec<(f64, T)> =
        spread(cx.timeline.len(), SAMPLES).filter_map(measure).collect();
    measured.sort_by(|a, b| a.0.total_cmp(&b.0));
    let at = measured.len() / 2;
    measured.into_iter().nth(at)
}

/// Returns at most `most` indices spread over `len` samples, including the first and the last.
fn spread(len: usize, most: usize) -> impl Iterator<Item = usize> {
    let count = len.min(most);
    (0..count).map(move |i| match count {
        1 => len - 1,
        _ => i * (len - 1) / (count - 1),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_spread_from_the_first_to_the_last() {
        assert_eq!(spread(0, 4).count(), 0);
        assert_eq!(spread(1, 4).collect::<Vec<_>>(), [0]);
        assert_eq!(spread(100, 4).collect::<Vec<_>>(), [0, 33, 66, 99]);
    }
}
