//! How much page cache must stay because its files are read again: bounds, and an estimate where the evidence allows
//! one.
//!
//! No counter shows how much page cache is needed. It follows from this: a cache that was small for a while without
//! refaults was large enough; one with refaults was not; and the classic LRU lists separate pages that were used more
//! than once. With one sample, or without refault counters, the need stays unknown; it is never taken for zero.

use std::collections::VecDeque;

use timeline::facts::{KernelVersion, MGLRU, THP_ENABLED};
use timeline::signals::{MEM_ACTIVE_FILE, MEM_FREE, MEM_MAPPED, PGPGIN, PROC_RSS_SHMEM};
use timeline::{Entity, Stretch, Track};
use units::{Bytes, BytesPerSecond, Pages, PerSecond, Quantity, Ratio, Span};

use super::terms::{Levels, flat_edge};
use super::{Short, Unknown};
use crate::evidence::{Evidence, Missing};
use crate::measures::floor::Floor;
use crate::measures::quiet::Quiet;

/// A cache that stays small for this long under the usual load is large enough for it. In short recordings a part of
/// this time is enough.
const LASTING: Span = Span::from_mins(10);
/// A page that is not used within this time does not stay for its use.
const USED_WITHIN: Span = Span::from_mins(1);
/// Bounds this close together, as a share of RAM, count as an estimate; an engineering choice: the watermarks of an
/// ordinary host change headroom by as much.
const CLOSE: Ratio = Ratio::from_percent(5.0);
/// Reading this many times the usual amount is not the usual load: a cold start, a backup.
const MUCH_READ: f64 = 2.0;
const SOME_READ: BytesPerSecond = BytesPerSecond::from_mib(1.0);
/// Kernels before this one have no multi-generational LRU, so their lists show what was used more than once.
const GENERATIONS: KernelVersion = KernelVersion { major: 6, minor: 1 };

/// The evidence that the estimate rests on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    /// Files refaulted: more cache is needed than there was.
    Refaults,
    /// The smallest cache that lasted with hardly any refaults.
    Experience,
    /// The same, counting only the kernel's list of files used more than once.
    ActiveList,
    /// The cache was never squeezed while it was watched: all of it is the upper bound.
    NeverSqueezed,
    /// Nothing bounds it from above.
    Unknown,
}

/// Page cache that must stay.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadCache {
    /// The lower bound.
    pub lower: Bytes,
    /// The best estimate; `None` where only bounds are known.
    pub likely: Option<Bytes>,
    /// The upper bound; `None` if unknown.
    pub upper: Option<Bytes>,
    /// The evidence that it rests on.
    pub how: How,
    /// The same in words.
    pub text: String,
}

/// What shows how much cache is needed: readings of the host, or of a cgroup.
pub(super) struct CacheReadings {
    /// File pages that reclaim can take; `None` where shared memory is not separate.
    pub(super) files: Option<Track<Bytes>>,
    /// Unwritten data; `None` if unknown.
    pub(super) unwritten: Option<Track<Bytes>>,
    /// File pages that were evicted and read again.
    pub(super) refaults: Result<Track<PerSecond<Pages>>, Missing>,
    /// Files in the list of those used more than once, plus mapped files; `None` if unknown.
    pub(super) used_again: Option<Track<Bytes>>,
    /// What must lie in the other list for those to stay, as a share of them.
    pub(super) beside: Ratio,
    /// What was read from disks, by which an unusual load is known; `None` if unknown.
    pub(super) reads: Option<Track<BytesPerSecond>>,
    /// When a rule found that files refaulted for lack of cache.
    pub(super) thrashed: Option<Stretch>,
    /// Whether cache was given up at any time.
    pub(super) is_squeezed: bool,
    /// RAM, or the cgroup's limit; `None` if unknown.
    pub(super) capacity: Option<Bytes>,
}

impl CacheReadings {
    pub(super) fn of_host(cx: &Evidence<'_>, levels: &Levels, short: &[Short]) -> Self {
        let is_about_files =
            |short: &&Short| ["page-cache-thrash", "exec-pages-evicted"].contains(&short.rule);
        Self {
            files: levels.files.clone(),
            unwritten: levels.unwritten.clone(),
            refaults: cx.refaults_file(),
            used_again: used_again(cx),
            beside: Ratio::new(0.0),
            reads: cx.rate(PGPGIN).ok(),
            thrashed: short.iter().filter(is_about_files).find_map(|short| short.when),
            is_squeezed: is_squeezed(cx),
            capacity: cx.ram().ok(),
        }
    }
}

impl ReadCache {
    pub(super) fn estimated(
        cx: &Evidence<'_>,
        readings: &CacheReadings,
        unknown: &mut Vec<Unknown>,
    ) -> Self {
        let Some(files) = &readings.files else {
            unknown.push(Unknown {
                what: "read cache",
                text: "page cache and shared memory are not separate: /proc/meminfo separates them"
                    .to_owned(),
            });
            return Self::unknown("the size of the page cache is unknown".to_owned());
        };
        if let Some(thrash) = read_again(cx, files, readings) {
            return thrash;
        }
        match &readings.refaults {
            Ok(refaults) => Self::seen(cx, readings, files, refaults, unknown),
            Err(missing) => {
                let (why, needs) = if cx.is_single_sample() {
                    (
                        "one sample cannot show how much of the page cache is read again",
                        "a recording over the cycle (memtide record)".to_owned(),
                    )
                } else {
                    ("refaults were not counted", missing.need.to_string())
                };
                unknown.push(Unknown { what: "read cache", text: format!("{why}: needs {needs}") });
                Self::not_counted(readings, files, why)
            }
        }
    }

    const fn unknown(text: String) -> Self {
        Self { lower: Bytes::ZERO, likely: None, upper: None, how: How::Unknown, text }
    }

    /// The estimate from calm times, without refaults.
    fn seen(
        cx: &Evidence<'_>,
        readings: &CacheReadings,
        files: &Track<Bytes>,
        refaults: &Track<PerSecond<Pages>>,
        unknown: &mut Vec<Unknown>,
    ) -> Self {
        let clean = match &readings.unwritten {
            Some(unwritten) => files.minus(unwritten),
            None => files.clone(),
        };
        let is_usual = usual_load(cx, refaults, readings.reads.as_ref());
        let Some(upper) = smallest_that_lasted(cx, &clean, &is_usual) else {
            let why = "no time was calm enough to show what is needed";
            return Self::not_counted(readings, files, why);
        };
        let (upper, lasted) = upper;
        let capacity = readings.capacity.unwrap_or_default();
        let active = readings.used_again.as_ref().filter(|_| lists_show_use(cx));
        let active = active.and_then(|active| smallest_that_lasted(cx, active, &is_usual));
        let seen = format!("{upper} of cache were enough for {lasted}, with hardly any refaults");
        let used = |active: Bytes| {
            let text = format!("{active} are mapped or in the list of files used more than once");
            match active.share(readings.beside) {
                Bytes::ZERO => text,
                beside => format!("{text}, which stay only beside {beside} of other files"),
            }
        };
        let needed = |active: Bytes| active + active.share(readings.beside);
        match active {
            Some((active, _)) if needed(active) < upper => Self {
                lower: Bytes::ZERO,
                likely: Some(needed(active)),
                upper: Some(upper),
                how: How::ActiveList,
                text: format!("{}; {seen}", used(active)),
            },
            Some((active, _)) => Self {
                lower: Bytes::ZERO,
                likely: Some(upper),
                upper: Some(upper),
                how: How::ActiveList,
                text: format!(
                    "{}, and the smallest cache that lasted was {upper} (for {lasted}, with \
                     hardly any refaults)",
                    used(active)
                ),
            },
            None if upper <= capacity.share(CLOSE) => Self {
                lower: Bytes::ZERO,
                likely: Some(upper),
                upper: Some(upper),
                how: How::Experience,
                text: seen,
            },
            None => {
                unknown.push(Unknown {
                    what: "read cache",
                    text: format!(
                        "with the multi-generational LRU no list shows what of the cache is used \
                         again: 0 to {upper}"
                    ),
                });
                Self {
                    lower: Bytes::ZERO,
                    likely: None,
                    upper: Some(upper),
                    how: How::Experience,
                    text: seen,
                }
            }
        }
    }

    /// The estimate without refault counters: while free memory is above its floor nothing was evicted, so all of the
    /// cache is enough.
    fn not_counted(readings: &CacheReadings, files: &Track<Bytes>, why: &str) -> Self {
        match files.max().filter(|_| !readings.is_squeezed) {
            Some((most, _)) => Self {
                upper: Some(most),
                how: How::NeverSqueezed,
                ..Self::unknown(format!(
                    "{why}; free memory stayed above its floor, so at most all {most}"
                ))
            },
            None => Self::unknown(format!("{why}; the cache may be too small already")),
        }
    }
}

/// The need where files refaulted: more than there was of cache.
fn read_again(
    cx: &Evidence<'_>,
    files: &Track<Bytes>,
    readings: &CacheReadings,
) -> Option<ReadCache> {
    let when = readings.thrashed?;
    let (lower, _) = files.min_in(&when)?;
    let refaulted = readings.refaults.as_ref().ok();
    let refaulted = refaulted.and_then(|pages| Some(pages.to_bytes(cx.page_size().ok()?)));
    let upper = refaulted.and_then(|refaulted| {
        let all = refaulted.integral_in(&when);
        let held = refaulted.mean_in(&when)?.get() * USED_WITHIN.as_secs_f64();
        let (most, _) = files.max_in(&when)?;
        Some(most + Bytes::from_f64(all.min(held)))
    });
    Some(ReadCache {
        lower,
        likely: None,
        // The page cache cannot exceed RAM, nor a cgroup's its limit.
        upper: upper.map(|upper| upper.max(lower).min(readings.capacity.unwrap_or(upper))),
        how: How::Refaults,
        text: format!("files refaulted while the cache was {lower}"),
    })
}

/// Files in the list of those used more than once, plus mapped files: the kernel checks whether mapped files are used
/// only when it needs memory, so they may be in the other list (mm/vmscan.c, folio_check_references). Files that are
/// both count twice, which underestimates headroom.
fn used_again(cx: &Evidence<'_>) -> Option<Track<Bytes>> {
    let active = cx.timeline.gauge(MEM_ACTIVE_FILE)?;
    let mapped = cx.timeline.gauge(MEM_MAPPED)?;
    // Mapped includes shared memory: at least as much as the process maps that maps most of it.
    let processes = cx.timeline.entities(Entity::Process);
    let shared = processes.filter_map(|process| cx.timeline.last_of(process, PROC_RSS_SHMEM)).max();
    let files = mapped.minus(&cx.timeline.constant(shared.unwrap_or_default()));
    Some(active.plus(&files))
}

/// Whether the lists of files show what was used more than once: not with multi-generational LRU, nor where its state
/// is unknown.
fn lists_show_use(cx: &Evidence<'_>) -> bool {
    match cx.facts.number(MGLRU) {
        Some(mask) => mask & 1 == 0,
        // memtide read this host's settings itself, others of that directory among them: the kernel was built without.
        None if cx.facts.own_cgroup.is_some() && cx.facts.choice(THP_ENABLED).is_some() => true,
        None => cx.facts.kernel().is_some_and(|kernel| kernel < GENERATIONS),
    }
}

/// Whether free memory was on its floor at any time: then cache was given up.
fn is_squeezed(cx: &Evidence<'_>) -> bool {
    let Ok(ram) = cx.ram() else { return true };
    let least = cx.gauge(MEM_FREE).ok().and_then(|free| free.min());
    let rests = |(least, _): (Bytes, usize), edge| least <= Floor::rests_below(edge, ram);
    match cx.floor().ok().and_then(|floor| floor.high.max()) {
        Some((edge, _)) => least.is_none_or(|least| rests(least, edge)),
        // A prediction may be far off (a raised vm.min_free_kbytes), so a flat edge counts as well, and a cache that
        // is nearly gone.
        None => {
            let edge = Floor::expected(cx, ram).1;
            let cache = cx.page_cache().ok().and_then(|cache| cache.min());
            least.is_none_or(|least| rests(least, edge))
                || flat_edge(cx).is_some()
                || cache.is_none_or(|(cache, _)| cache < ram.share(CLOSE))
        }
    }
}

/// For each sample, whether hardly anything refaulted and reads were not above the usual amount.
fn usual_load(
    cx: &Evidence<'_>,
    refaults: &Track<PerSecond<Pages>>,
    reads: Option<&Track<BytesPerSecond>>,
) -> Vec<bool> {
    let calm = refaults.at_most(Quiet::REFAULTS);
    let usually = reads.and_then(|reads| reads.quantile(Ratio::new(0.5)));
    let most = usually.map(|usually| usually.get() * MUCH_READ + SOME_READ.get());
    (0..cx.timeline.len())
        .map(|index| {
            let read = reads.and_then(|reads| reads.values()[index]);
            let is_much = read.zip(most).is_some_and(|(read, most)| read > most);
            calm.at(index).unwrap_or(index == 0) && !is_much
        })
        .collect()
}

/// How long a level must last to be typical of the load: ten minutes in recordings of an hour or more, a quarter of a
/// minute in recordings of minutes.
fn long_enough(recorded: Span) -> Span {
    const BURST: Span = Span::from_secs(15);
    const DURATION_MIN: Span = Span::from_secs(4);
    let hours = (recorded.as_secs_f64() / 3600.0).min(1.0);
    let short = recorded.times(0.2).min(BURST);
    short.max(LASTING.times(hours)).max(DURATION_MIN)
}

/// The smallest level that a track did not exceed for long enough at the usual load, and how long it lasted.
fn smallest_that_lasted(
    cx: &Evidence<'_>,
    track: &Track<Bytes>,
    is_usual: &[bool],
) -> Option<(Bytes, Span)> {
    let lasting = long_enough(cx.recorded());
    let (times, values) = (track.times(), track.values());
    let mut window: VecDeque<(usize, f64)> = VecDeque::new();
    let (mut first, mut smallest) = (0, None::<f64>);
    for (index, value) in values.iter().enumerate() {
        let Some(value) = value.filter(|_| is_usual[index]) else {
            window.clear();
            first = index + 1;
            continue;
        };
        while window.back().is_some_and(|(_, last)| *last <= value) {
            window.pop_back();
        }
        window.push_back((index, value));
        // `first` moves to the start of the shortest window that ends here and lasts long enough.
        while first < index && times[index] - times[first + 1] >= lasting {
            first += 1;
        }
        while window.front().is_some_and(|(at, _)| *at < first) {
            window.pop_front();
        }
        if times[index] - times[first] >= lasting
            && let Some((_, most)) = window.front()
        {
            smallest = Some(smallest.map_or(*most, |known| known.min(*most)));
        }
    }
    smallest.map(|bytes| (Bytes::from_f64(bytes), lasting))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::testing::Case;
    use timeline::signals::MEM_CACHED;

    const MIB: fn(u64) -> Bytes = Bytes::from_mib;

    #[test]
    fn the_smallest_level_counts_only_where_it_lasted() {
        let mut levels = vec![MIB(100); 60];
        // A dip of two seconds proves nothing, one of twenty does.
        levels[5] = MIB(10);
        levels[6] = MIB(10);
        levels[20..40].fill(MIB(40));
        let case = Case::over(59).gauge_steps(MEM_CACHED, &levels);
        let smallest = case.with(|cx| {
            let track = cx.gauge(MEM_CACHED).unwrap();
            smallest_that_lasted(cx, &track, &[true; 60])
        });
        assert_eq!(smallest, Some((MIB(40), Span::from_secs_f64(11.8))));
        let disturbed = case.with(|cx| {
            let track = cx.gauge(MEM_CACHED).unwrap();
            let mut usual = [true; 60];
            usual[30] = false;
            smallest_that_lasted(cx, &track, &usual)
        });
        assert_eq!(disturbed.map(|(bytes, _)| bytes), Some(MIB(100)));
    }
}
