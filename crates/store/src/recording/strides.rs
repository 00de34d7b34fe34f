//! One of how many reads of each table is loaded, so that what is loaded fits in memory.

use timeline::Entity;

use super::losses::Losses;
use super::screen::Plan;
use crate::segment::Segment;
use crate::segment::minutes::BY_IMPORTANCE;

/// The most runs of entities' readings in memory, of 16 bytes each: with a week of host readings by the minute, a load
/// stays below 200 MiB (`cargo bench --bench read`).
const ENTITY_RUNS: usize = 2_500_000;
/// The most runs of minutes of a long range that are read sample by sample.
const OPENED_RUNS: usize = 1_000_000;

/// For each of [`Entity::ALL`], one of how many reads is loaded.
type TableStrides = [usize; Entity::ALL.len()];

/// The strides of a load.
pub(super) struct Strides {
    every: TableStrides,
    /// Those in minutes of a long range that are read sample by sample.
    opened: TableStrides,
}

impl Strides {
    /// Chooses the strides of `segments`. Nothing is opened yet.
    pub(super) fn choose<'a>(
        segments: impl Iterator<Item = &'a Segment> + Clone,
        by_minute: bool,
        losses: &mut Losses,
    ) -> Self {
        let size = |entity| {
            let manifests = segments.clone().filter_map(|segment| segment.manifest.as_ref());
            manifests.map(|manifest| manifest.size(entity, by_minute)).sum()
        };
        let thinned = |entity, size, stride| losses.thinned(entity, size, stride, by_minute);
        Self { every: fitting(ENTITY_RUNS, size, thinned), opened: [1; Entity::ALL.len()] }
    }

    /// Chooses the strides in minutes that are read sample by sample. `segments`: each with its number in the plan.
    pub(super) fn choose_opened<'a>(
        &mut self,
        plan: &Plan,
        segments: impl Iterator<Item = (usize, &'a Segment)> + Clone,
        losses: &mut Losses,
    ) {
        let size = |entity| {
            let sizes = segments.clone().filter_map(|(number, segment)| {
                let size = segment.manifest.as_ref()?.size(entity, false);
                #[allow(
                    clippy::cast_precision_loss,
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss
                )] // an estimate
                let opened = (size as f64 * plan.share(number)) as usize;
                Some(opened)
            });
            sizes.sum()
        };
        self.opened =
            fitting(OPENED_RUNS, size, |entity, _, stride| losses.opened_thinned(entity, stride));
    }

    /// Returns the strides of a table: of its reads, and of those in minutes that are read sample by sample.
    pub(super) fn of(&self, entity: Entity) -> [usize; 2] {
        [self.every[entity as usize], self.opened[entity as usize]]
    }
}

/// Returns strides with which all tables fit in `left` runs: each gets at most half of the remaining space. `thinned` gets
/// each table that is not loaded in full, with its size and stride.
fn fitting(
    mut left: usize,
    size: impl Fn(Entity) -> usize,
    mut thinned: impl FnMut(Entity, usize, usize),
) -> TableStrides {
    let mut strides = [1; Entity::ALL.len()];
    for entity in BY_IMPORTANCE.into_iter().skip(1) {
        let size = size(entity);
        let stride = size.div_ceil((left / 2).max(1)).max(1);
        strides[entity as usize] = stride;
        left -= (size / stride).min(left);
        if stride > 1 {
            thinned(entity, size, stride);
        }
    }
    strides
}
