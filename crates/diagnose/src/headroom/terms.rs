//! The terms of headroom sample by sample (available memory, what the kernel keeps of it, the room that writers fill),
//! and the headroom that follows from them.

use timeline::facts::KernelVersion;
use timeline::signals::{
    MEM_DIRTY, MEM_FREE, MEM_TOTAL, MEM_WRITEBACK, NR_DIRTIED, NR_DIRTY_BACKGROUND_THRESHOLD,
    NR_DIRTY_THRESHOLD, ZONE_BOOST, ZONE_LOW,
};
use timeline::{Entity, Gauge, Signal, Track};
use units::{Bytes, Pages, Quantity, Ratio, Span};

use super::{Bounds, LimitTerms, ReadCache, Room, Short, Unknown};
use crate::evidence::{Evidence, Missing};
use crate::measures::available;
use crate::measures::floor::Floor;

/// The part of dirtyable memory up to which writers are not throttled with the kernel's defaults: the middle of 10 and
/// 20 %, and some of what is under writeback (mm/page-writeback.c, dirty_freerun_ceiling).
pub(super) const WRITERS_RUN_FREE: Ratio = Ratio::from_percent(17.5);
/// Since this kernel MemAvailable leaves out the whole reserve; before, it left out the low watermarks only.
const RESERVE_IS_LEFT_OUT: KernelVersion = KernelVersion { major: 4, minor: 6 };

/// The measured levels, sample by sample.
#[derive(Debug, Clone)]
pub(super) struct Levels {
    /// Memory that can be had without swapping.
    pub(super) available: Track<Bytes>,
    /// Whether the kernel reported it; else it is computed.
    pub(super) is_from_kernel: bool,
    /// File pages that reclaim can take; `None` where shared memory is not separate.
    pub(super) files: Option<Track<Bytes>>,
    /// Unwritten data; `None` if unknown.
    pub(super) unwritten: Option<Track<Bytes>>,
    /// Memory that the kernel keeps beyond what `available` leaves out.
    pub(super) kept_by_kernel: Option<Track<Bytes>>,
    /// The part of the cache that `available` leaves out already.
    pub(super) left_out: Option<Track<Bytes>>,
    /// The most unwritten data at which writers are not throttled: they need no more room than this.
    pub(super) writers_run_free: Bytes,
    /// MemTotal, or the cgroup's limit.
    pub(super) capacity: Option<Bytes>,
    /// Free memory under load: the lower and upper edge.
    pub(super) floor: (Bytes, Bytes),
    /// Whether the floor was measured, not predicted.
    pub(super) floor_is_measured: bool,
}

/// The terms at one sample.
#[derive(Debug, Clone, PartialEq)]
pub struct Terms {
    /// Memory that can be had without swapping.
    pub available: Bytes,
    /// Whether the kernel reported it; else it is the sum of free memory and files.
    pub available_is_from_kernel: bool,
    /// Free memory under load, lower and upper edge: what `available` leaves out already.
    pub floor: (Bytes, Bytes),
    /// Whether the floor is from the zones' watermarks; else it is predicted for a host of this size.
    pub floor_is_measured: bool,
    /// Memory that the kernel keeps beyond the floor.
    pub kept: Option<Bytes>,
    /// Room for data that waited for disks: lower and upper bound; equal where it was measured.
    pub write_cache: (Bytes, Bytes),
    /// All file data that waited for disks; `None` where it was not measured.
    pub unwritten: Option<Bytes>,
    /// Page cache that must stay.
    pub read_cache: ReadCache,
    /// The part of the cache that `available` leaves out already.
    pub left_out: Option<Bytes>,
    /// All page cache that could be dropped.
    pub page_cache: Option<Bytes>,
    /// The cgroup's limit, where that takes the place of RAM: `available` is what is left below it if reclaim takes all
    /// it can.
    pub limit: Option<LimitTerms>,
}

impl Levels {
    /// # Errors
    /// If available memory is unknown, or larger than RAM.
    pub(super) fn measured(cx: &Evidence<'_>, unknown: &mut Vec<Unknown>) -> Result<Self, Unknown> {
        let (available, is_from_kernel) =
            available::available(cx).map_err(|lacks| not_told(&lacks))?;
        plausible(cx, &available)?;
        let files = available::files(cx).ok();
        let unwritten = unwritten(cx);
        let floor = floor(cx, unknown);
        let low_marks = zone_sum(cx, ZONE_LOW);
        let left_out = low_marks
            .as_ref()
            .zip(files.as_ref())
            .filter(|_| is_from_kernel)
            .map(|(low, files)| files.scaled(0.5).lower(low));
        let writers_run_free = writers_run_free(cx, &available);
        if unwritten.is_none() {
            unknown.push(write_cache_is_not_told(writers_run_free));
        }
        Ok(Self {
            kept_by_kernel: kept_by_kernel(cx, low_marks.as_ref()),
            available,
            is_from_kernel,
            files,
            unwritten,
            left_out,
            writers_run_free,
            capacity: cx.ram().ok(),
            floor: floor.0,
            floor_is_measured: floor.1,
        })
    }

    /// Memory that can be had at a sample, down to the floor, if all page cache is given up.
    fn base(&self, index: usize) -> Option<f64> {
        let available = self.available.values().get(index).copied().flatten()?;
        let kept = self.kept_by_kernel.as_ref();
        let kept = kept.and_then(|kept| kept.values()[index]);
        Some(available - kept.unwrap_or_default())
    }

    /// The lower and upper bound of the room that writers need at a sample: unwritten data, up to where writers are
    /// throttled. Where it was not measured, anything up to that.
    fn write_cache(&self, index: usize) -> (Bytes, Bytes) {
        let most = self.writers_run_free;
        let waits = self.unwritten.as_ref().and_then(|track| track.at(index));
        waits.map_or((Bytes::ZERO, most), |waits| (waits.min(most), waits.min(most)))
    }

    /// Headroom at a sample, given the cache that is needed for reading and for writing.
    fn room(&self, index: usize, cache: Bytes, written: Bytes) -> Option<f64> {
        let left_out = self.left_out.as_ref();
        let left_out = left_out.and_then(|kept| kept.values()[index]);
        let needed = cache.as_f64() + written.as_f64() - left_out.unwrap_or_default();
        // Neither the lack nor the need can exceed RAM, nor the cgroup's limit.
        let most = self.capacity.map_or(f64::MAX, Quantity::as_f64);
        Some(self.base(index)? - needed.clamp(0.0, most))
    }

    /// The terms at one sample.
    pub(super) fn at(&self, cache: &ReadCache, index: usize) -> Terms {
        let at = |track: &Option<Track<Bytes>>| track.as_ref().and_then(|track| track.at(index));
        Terms {
            available: self.available.at(index).unwrap_or_default(),
            available_is_from_kernel: self.is_from_kernel,
            floor: self.floor,
            floor_is_measured: self.floor_is_measured,
            kept: at(&self.kept_by_kernel),
            write_cache: self.write_cache(index),
            unwritten: at(&self.unwritten),
            read_cache: cache.clone(),
            left_out: at(&self.left_out),
            page_cache: at(&self.files),
            limit: None,
        }
    }
}

fn not_told(missing: &Missing) -> Unknown {
    Unknown {
        what: "available",
        text: format!("the source does not say what is available; needs {}", missing.need),
    }
}

/// Checks that available memory is a part of RAM at each sample. Tools round each figure by itself.
fn plausible(cx: &Evidence<'_>, available: &Track<Bytes>) -> Result<(), Unknown> {
    const ROUNDED: f64 = 1.05;
    let Some(ram) = cx.timeline.gauge(MEM_TOTAL) else {
        return Ok(());
    };
    let is_more = |index: usize| {
        let (available, ram) = (available.at(index)?, ram.at(index)?);
        let is_more = ram > Bytes::ZERO && available.as_f64() > ram.as_f64() * ROUNDED;
        is_more.then_some((available, ram))
    };
    match (0..cx.timeline.len()).find_map(is_more) {
        Some((available, ram)) => Err(Unknown {
            what: "available",
            text: format!(
                "{available} are reported available of {ram} of RAM, which is impossible"
            ),
        }),
        None => Ok(()),
    }
}

/// File data that waits for disks, sample by sample. `Writeback` also counts pages on their way to swap, which need no
/// room. So file data is at most what waited before plus what was dirtied since (`nr_dirtied` counts file pages only,
/// mm/page-writeback.c). Where that is unknown, all of `Writeback` counts as file data, which underestimates headroom.
fn unwritten(cx: &Evidence<'_>) -> Option<Track<Bytes>> {
    let dirty = cx.timeline.gauge(MEM_DIRTY)?;
    let Some(writeback) = cx.timeline.gauge(MEM_WRITEBACK) else {
        return Some(dirty);
    };
    let waits = dirty.plus(&writeback);
    let Ok(dirtied) = cx.bytes_rate(NR_DIRTIED) else {
        return Some(waits);
    };
    let times = cx.timeline.times();
    let came = |index: usize| {
        let since = times[index] - times[index.checked_sub(1)?];
        Some(dirtied.values()[index]? * since.as_secs_f64())
    };
    Some(waits.scan(|before, index, waits| {
        let of_files = before.zip(came(index)).map(|(before, came)| before + came);
        let least = dirty.values()[index].unwrap_or_default();
        of_files.map_or(waits, |of_files| of_files.clamp(least, waits.max(least)))
    }))
}

/// Half way between the background threshold and the threshold at which the kernel throttles writers, at its highest.
fn writers_run_free(cx: &Evidence<'_>, available: &Track<Bytes>) -> Bytes {
    let thresholds =
        cx.bytes(NR_DIRTY_THRESHOLD).ok().zip(cx.bytes(NR_DIRTY_BACKGROUND_THRESHOLD).ok());
    let middle = thresholds.map(|(limit, background)| limit.plus(&background).scaled(0.5));
    middle
        .and_then(|middle| middle.max())
        .or_else(|| available.scaled(WRITERS_RUN_FREE.get()).max())
        .map_or(Bytes::ZERO, |(most, _)| most)
}

fn write_cache_is_not_told(most: Bytes) -> Unknown {
    Unknown {
        what: "write cache",
        text: format!(
            "Dirty and Writeback of /proc/meminfo are unknown, so writers may need anything up to \
             {most}"
        ),
    }
}

/// The flat lower edge of free memory, if it has one: the floor of this host as its free memory shows it.
pub(super) fn flat_edge(cx: &Evidence<'_>) -> Option<Bytes> {
    /// Free memory at rest swings by less than this factor; an engineering choice.
    const SWING: f64 = 1.05;
    /// And it falls to the edge from at least this factor higher: a calm host's free memory is flat too.
    const FALL: f64 = 1.3;
    /// The least share of samples that lie on an edge.
    const PART_SHARE: f64 = 0.25;
    const SAMPLES: usize = 3;
    let free = cx.gauge(MEM_FREE).ok()?;
    let ((least, _), (most, _)) = free.min().zip(free.max())?;
    let edge = least.as_f64() * SWING;
    let known = || free.values().iter().flatten();
    let (resting, all) = (known().filter(|free| **free <= edge).count(), known().count());
    #[allow(clippy::cast_precision_loss)] // a number of samples
    let is_edge = resting >= SAMPLES && resting as f64 >= all as f64 * PART_SHARE;
    (is_edge && most.as_f64() >= least.as_f64() * FALL).then_some(least)
}

/// Free memory under load (lower and upper edge), and whether the zones' watermarks give it.
fn floor(cx: &Evidence<'_>, unknown: &mut Vec<Unknown>) -> ((Bytes, Bytes), bool) {
    if let Ok(floor) = cx.floor()
        && let (Some((low, _)), Some((high, _))) = (floor.low.max(), floor.high.max())
    {
        return ((low, high), true);
    }
    let edges = cx.ram().map(|ram| Floor::expected(cx, ram)).ok();
    let predicted = edges.map_or_else(String::new, |(low, high)| {
        format!(": predicted {low} to {high} for a host of this size")
    });
    unknown.push(Unknown {
        what: "floor",
        text: format!("/proc/zoneinfo shows what the kernel keeps free; without it{predicted}"),
    });
    (edges.unwrap_or_default(), false)
}

/// Memory that the kernel keeps beyond what MemAvailable leaves out: watermarks that are raised for a while, and
/// before 4.6 the reserve above the low watermarks.
fn kept_by_kernel(cx: &Evidence<'_>, low_marks: Option<&Track<Bytes>>) -> Option<Track<Bytes>> {
    if cx.facts.kernel().is_some_and(|kernel| kernel < RESERVE_IS_LEFT_OUT) {
        return Some(cx.floor().ok()?.high.minus(low_marks?));
    }
    zone_sum(cx, ZONE_BOOST)
}

/// The sum of a gauge over all zones that have it.
fn zone_sum(cx: &Evidence<'_>, signal: Signal<Gauge<Pages>>) -> Option<Track<Bytes>> {
    let page = cx.page_size().ok()?;
    let zones = cx.timeline.entities(Entity::Zone);
    zones
        .filter_map(|zone| cx.gauge_of(zone, signal).ok())
        .reduce(|sum, next| sum.plus(&next))
        .map(|sum| sum.to_bytes(page))
}

/// Headroom at each sample, for the largest, the likely and the smallest read cache.
pub(super) struct RoomSeries<'a> {
    levels: &'a Levels,
    pub(super) lower: Option<Vec<Option<f64>>>,
    pub(super) likely: Option<Vec<Option<f64>>>,
    pub(super) upper: Vec<Option<f64>>,
}

impl<'a> RoomSeries<'a> {
    pub(super) fn new(
        cx: &Evidence<'_>,
        levels: &'a Levels,
        cache: &ReadCache,
        is_short: impl Fn(usize) -> bool,
    ) -> Self {
        let room = |index: usize, cache: Bytes, written: Bytes| {
            let room = levels.room(index, cache, written)?;
            // A shortage that was observed outweighs the formula: at that time nothing more fitted.
            Some(if is_short(index) { room.min(0.0) } else { room })
        };
        let all = |of: &dyn Fn(usize, (Bytes, Bytes)) -> Option<f64>| -> Vec<Option<f64>> {
            let samples = 0..cx.timeline.len();
            samples.map(|index| of(index, levels.write_cache(index))).collect()
        };
        let likely = cache.likely.filter(|_| levels.unwritten.is_some());
        Self {
            levels,
            lower: cache.upper.map(|cache| all(&|index, (_, most)| room(index, cache, most))),
            likely: likely.map(|cache| {
                all(&|index, (least, most)| room(index, cache, most).filter(|_| least == most))
            }),
            upper: all(&|index, (least, _)| room(index, cache.lower, least)),
        }
    }

    /// The room at the worst moment and usually, and how far the worst moment is from the cliff; `swap_left` is what
    /// could still be swapped out at a sample.
    pub(super) fn room(
        &self,
        cx: &Evidence<'_>,
        quantile: Ratio,
        swap_left: impl Fn(usize) -> Option<Bytes>,
    ) -> Option<Room> {
        let by = self.likely.as_ref().or(self.lower.as_ref()).unwrap_or(&self.upper);
        let measured = by.iter().enumerate();
        let (worst, _) = measured
            .filter_map(|(index, room)| Some((index, (*room)?)))
            // While memory was short all are 0: then the one nearest to the cliff.
            .min_by(|(at_a, a), (at_b, b)| {
                let base = |at: &usize| self.levels.base(*at).unwrap_or(f64::MAX);
                a.total_cmp(b).then_with(|| base(at_a).total_cmp(&base(at_b)))
            })?;
        let last = by.iter().rposition(Option::is_some)?;
        Some(Room {
            least: self.bounds(least)?,
            usual: self.bounds(|series| at_quantile(series, cx, quantile))?,
            last: self.bounds(|series| series[last])?,
            worst,
            worst_at: cx.timeline.times().get(worst).copied().unwrap_or_default(),
            to_cliff: whole(self.levels.base(worst)?),
            swap_left: swap_left(worst),
        })
    }

    fn bounds(&self, of: impl Fn(&[Option<f64>]) -> Option<f64>) -> Option<Bounds> {
        let known = |series: &Option<Vec<Option<f64>>>| series.as_ref().and_then(|s| of(s));
        Some(Bounds {
            lower: known(&self.lower).map(whole),
            likely: known(&self.likely).map(whole),
            upper: whole(of(&self.upper)?),
        })
    }
}

impl Short {
    pub(super) fn covers(&self, index: usize) -> bool {
        self.when.is_some_and(|when| when.first <= index && index <= when.last)
    }
}

fn least(series: &[Option<f64>]) -> Option<f64> {
    series.iter().flatten().copied().reduce(f64::min)
}

/// The value that is reached for at least `share` of the recorded time; samples may be unevenly spaced.
fn at_quantile(series: &[Option<f64>], cx: &Evidence<'_>, share: Ratio) -> Option<f64> {
    let known = series.iter().enumerate();
    let mut weighted: Vec<(f64, f64)> = known
        .filter_map(|(index, room)| Some(((*room)?, speaks_for(cx, index).unwrap_or(0.0))))
        .collect();
    stats::weighted_quantile(&mut weighted, 1.0 - share.get())
}

/// The seconds that a sample covers: those since the sample before; after a gap the distance to its nearer neighbour,
/// as the sampling interval may have changed.
fn speaks_for(cx: &Evidence<'_>, index: usize) -> Option<f64> {
    let timeline = cx.timeline;
    let since = timeline.stretch(index.checked_sub(1)?, index)?;
    if since.duration() > Span::ZERO || !timeline.is_one_segment() {
        return Some(since.duration().as_secs_f64());
    }
    let until = timeline.stretch(index, index + 1)?;
    Some(since.elapsed().min(until.elapsed()).as_secs_f64())
}

/// Rounds to whole bytes.
#[allow(clippy::cast_possible_truncation)] // memory of a host is far below the bounds, and casts saturate
pub(super) fn whole(bytes: f64) -> i64 {
    bytes.round() as i64
}
