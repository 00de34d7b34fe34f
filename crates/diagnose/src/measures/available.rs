//! Memory that can be allocated without swapping: MemAvailable, or an estimate if the kernel does not report it.

use timeline::signals::{
    MEM_ACTIVE_FILE, MEM_AVAILABLE, MEM_BUFFERS, MEM_CACHED, MEM_FREE, MEM_INACTIVE_FILE,
    MEM_SLAB_RECLAIMABLE,
};
use timeline::{Gauge, Signal, Stretch, Track};
use units::{Bytes, Ratio};

use super::readings::{AVAILABLE_LOW_SHARE, AVAILABLE_ROOMY_SHARE, page_cache, ram_at_least};
use crate::evidence::{Evidence, Missing};
use crate::trigger::{Reading, computed, gauge};

/// Calm labelled captures have at least this share of RAM available (November 2026).
pub(crate) const AVAILABLE_CALM_SHARE: Ratio = Ratio::from_percent(15.0);

/// An engineering choice. A process's bursts do not scale with the host, so a share alone would call a large host
/// exhausted while tens of GiB are available.
pub(crate) const AVAILABLE_EXHAUSTED_SHARE: Ratio = Ratio::from_percent(5.0);
pub(crate) const AVAILABLE_EXHAUSTED_MAX: Bytes = Bytes::from_gib(4);

/// Available memory that is a warning by itself where it stays as little.
pub(crate) fn little() -> Reading<Bytes> {
    ram_at_least().share(AVAILABLE_EXHAUSTED_SHARE).min(AVAILABLE_EXHAUSTED_MAX)
}

/// Returns the available memory that is a warning by itself where it stays as little; `None` if RAM is unknown.
pub fn least_available(cx: &Evidence<'_>) -> Option<Bytes> {
    little().track(cx).ok()?.last()
}

/// Memory that can be allocated without swapping; an upper bound if shared memory and page cache are not separate, as
/// in [`available_at_most`].
pub(crate) fn can_be_had() -> Reading<Bytes> {
    let free = || gauge(MEM_FREE);
    let slab = || gauge(MEM_SLAB_RECLAIMABLE);
    let lists = gauge(MEM_ACTIVE_FILE);
    let lists = lists.and(gauge(MEM_INACTIVE_FILE));
    let cached = gauge(MEM_CACHED).plus([gauge(MEM_BUFFERS)]);
    let files = lists.or(page_cache()).or(cached);
    gauge(MEM_AVAILABLE).or(free().and(files).plus([slab()]))
}

/// Returns the memory that can be allocated without swapping, and `true` for MemAvailable. If the source lacks that
/// (kernels before 3.14, old `free`): free memory plus file pages and reclaimable slab, and `false`.
pub(crate) fn available(cx: &Evidence<'_>) -> Result<(Track<Bytes>, bool), Missing> {
    measured_or_estimated(cx, files)
}

/// Returns the least available memory in a stretch and its sample, if it was little; `None` if it was not, or was not
/// measured.
pub(crate) fn little_left(cx: &Evidence<'_>, stretch: &Stretch) -> Option<(Bytes, usize)> {
    let edge = cx.ram().ok()?.share(AVAILABLE_LOW_SHARE);
    cx.lowest_in(MEM_AVAILABLE, stretch).filter(|(left, _)| *left < edge)
}

/// Returns the least available memory in a stretch, if it was [`AVAILABLE_ROOMY_SHARE`] or more all the time: the host
/// was not short.
pub(crate) fn room_left(cx: &Evidence<'_>, stretch: &Stretch) -> Option<Bytes> {
    let room = cx.ram().ok()?.share(AVAILABLE_ROOMY_SHARE);
    let (least, _) = cx.lowest_in(MEM_AVAILABLE, stretch)?;
    (least >= room).then_some(least)
}

/// Like [`available`], also if shared memory and page cache are not separate: then all of it counts, which gives an
/// upper bound.
pub(crate) fn available_at_most(cx: &Evidence<'_>) -> Result<(Track<Bytes>, bool), Missing> {
    measured_or_estimated(cx, |cx| {
        files(cx).or_else(|_| Ok(plus_known(cx, cx.gauge(MEM_CACHED)?, MEM_BUFFERS)))
    })
}

/// Returns MemAvailable, or free memory plus `files` and reclaimable slab. An error names MemAvailable as missing.
fn measured_or_estimated(
    cx: &Evidence<'_>,
    files: impl Fn(&Evidence<'_>) -> Result<Track<Bytes>, Missing>,
) -> Result<(Track<Bytes>, bool), Missing> {
    let lacking = match cx.gauge(MEM_AVAILABLE) {
        Ok(track) => return Ok((track, true)),
        Err(lacking) => lacking,
    };
    match (cx.gauge(MEM_FREE), files(cx)) {
        (Ok(free), Ok(files)) => {
            let both = free.plus(&files);
            Ok((plus_known(cx, both, MEM_SLAB_RECLAIMABLE), false))
        }
        _ => Err(lacking),
    }
}

/// MemAvailable, or if the source lacks it an upper bound: free memory and all of the cache.
pub(crate) fn upper_bound() -> Reading<Bytes> {
    let estimated = computed("free memory and cache", |cx| Ok(available_at_most(cx)?.0.cast()));
    gauge(MEM_AVAILABLE).or(estimated)
}

/// Returns the pages of files, without shared memory.
pub(crate) fn files(cx: &Evidence<'_>) -> Result<Track<Bytes>, Missing> {
    match (cx.gauge(MEM_ACTIVE_FILE), cx.gauge(MEM_INACTIVE_FILE)) {
        (Ok(active), Ok(inactive)) => Ok(active.plus(&inactive)),
        _ => cx.page_cache(),
    }
}

/// Adds another gauge if the source has it.
pub(crate) fn plus_known(
    cx: &Evidence<'_>,
    track: Track<Bytes>,
    other: Signal<Gauge<Bytes>>,
) -> Track<Bytes> {
    match cx.timeline.gauge(other) {
        Some(more) => track.plus(&more),
        None => track,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use timeline::signals::MEM_SHMEM;
    use timeline::{Facts, Sample, Timeline};

    fn estimated(readings: &[(Signal<Gauge<Bytes>>, u64)]) -> [Option<(Option<Bytes>, bool)>; 2] {
        let mut sample = Sample::default();
        for (signal, mib) in readings {
            sample.host.set(*signal, Bytes::from_mib(*mib));
        }
        let mut timeline = Timeline::default();
        timeline.push(&sample).unwrap();
        let facts = Facts::default();
        let cx = Evidence::new(&timeline, &facts);
        [available(&cx), available_at_most(&cx)].map(|one| {
            let (track, is_measured) = one.ok()?;
            Some((track.last(), is_measured))
        })
    }

    #[test]
    fn kernels_without_memavailable_are_estimated() {
        let old = [
            (MEM_FREE, 100),
            (MEM_CACHED, 300),
            (MEM_SHMEM, 50),
            (MEM_BUFFERS, 10),
            (MEM_SLAB_RECLAIMABLE, 40),
        ];
        let estimate = Some((Some(Bytes::from_mib(400)), false));
        assert_eq!(estimated(&old), [estimate, estimate]);
    }

    #[test]
    fn shared_memory_that_nothing_tells_apart_is_in_the_upper_bound_only() {
        let old = [(MEM_FREE, 100), (MEM_CACHED, 300), (MEM_BUFFERS, 10)];
        let bound = Some((Some(Bytes::from_mib(410)), false));
        assert_eq!(estimated(&old), [None, bound]);
    }

    #[test]
    fn without_the_page_cache_nothing_is_estimated() {
        assert_eq!(estimated(&[(MEM_FREE, 100), (MEM_BUFFERS, 10)]), [None, None]);
    }
}
