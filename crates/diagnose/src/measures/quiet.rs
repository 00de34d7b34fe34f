//! Whether anybody missed memory for a while: refaults, swap-ins, stalls. What a note that says "this is fine" rests on;
//! without it such a note would contradict a finding of that time.

use timeline::{
    Gauge, Signal, Stretch, Track,
    signals::{
        ALLOCSTALL, MEM_ACTIVE_FILE, MEM_AVAILABLE, MEM_BUFFERS, MEM_CACHED, MEM_FREE,
        MEM_INACTIVE_FILE, MEM_SLAB_RECLAIMABLE, PGSCAN_DIRECT, PSI_MEMORY_SOME, PSWPIN,
        REFAULT_FILE,
    },
};
use units::{Bytes, Count, Pages, PerSecond, Quantity, Ratio, Span};

use crate::evidence::{Evidence, Missing};
use crate::finding::Finding;
use crate::measures::pressure::Stalls;
use crate::measures::psi_average::Lately;
use crate::measures::readings::{page_cache, refaults_file, swapped_in};
use crate::oom;
use crate::trigger::{LEVEL, Predicate, Reading, all, gauge, rate, stall};

/// What was measured, all of it low.
#[derive(Debug, Clone, Default)]
pub(crate) struct Calm {
    refaults: Option<PerSecond<Pages>>,
    swapped_in: Option<PerSecond<Pages>>,
    stalled: Option<Ratio>,
}

impl Calm {
    /// An engineering choice: a labelled capture of files that fit shows 91 in its busiest second, of thrash 8,000 and more.
    pub(crate) const REFAULTS: PerSecond<Pages> = PerSecond::new(100.0);
    /// Half of what swap-thrash asks.
    const SWAPPED_IN: PerSecond<Pages> = PerSecond::new(100.0);

    /// Holds where nothing that is measured disturbs.
    pub(crate) fn holds() -> Predicate {
        let again = refaults_file().at_most("files read again", Self::REFAULTS);
        let swapped_in = swapped_in().at_most("swapped in", Self::SWAPPED_IN);
        let stalls = stall(PSI_MEMORY_SOME).at_most("memory stalls", Stalls::MEMORY);
        let scanned = rate(PGSCAN_DIRECT).at_most("scanned by allocating tasks", Stalls::SCANNED);
        let waited = rate(ALLOCSTALL).at_most("allocation stalls", Stalls::ALLOCATION_STALLS);
        all![
            again.if_measured(),
            swapped_in.if_measured(),
            stalls.if_measured(),
            scanned.if_measured(),
            waited.if_measured(),
        ]
    }

    /// How calm `stretch` was, or what disturbed it.
    pub(crate) fn during(cx: &Evidence<'_>, stretch: &Stretch) -> Result<Self, String> {
        fn low<Q: Quantity>(
            track: Result<Track<Q>, Missing>,
            stretch: &Stretch,
            from: Q,
            what: &str,
        ) -> Result<Option<Q>, String> {
            let mean = track.ok().and_then(|track| track.mean_in(stretch));
            match mean.filter(|mean| *mean >= from) {
                Some(mean) => Err(format!("{mean} {what}")),
                None => Ok(mean),
            }
        }
        let refaults = low(
            cx.refaults_file(),
            stretch,
            Self::REFAULTS,
            "of files were read again after eviction",
        )?;
        let swapped_in = low(
            cx.swapped_in(),
            stretch,
            Self::SWAPPED_IN,
            "were swapped in",
        )?;
        let stalled = low(
            cx.stall(PSI_MEMORY_SOME),
            stretch,
            Stalls::MEMORY,
            "of the time somebody waited for memory",
        )?;
        low(
            cx.rate(PGSCAN_DIRECT),
            stretch,
            Stalls::SCANNED,
            "were scanned by tasks that had to reclaim memory themselves",
        )?;
        low(
            cx.allocation_stalls(),
            stretch,
            Stalls::ALLOCATION_STALLS,
            "allocations had to reclaim memory themselves",
        )?;
        if let Some(lately) = Lately::for_memory(cx).filter(Lately::matters) {
            return Err(format!(
                "{} of the {} somebody waited for memory",
                lately.some, lately.of
            ));
        }
        Ok(Self {
            refaults,
            swapped_in,
            stalled,
        })
    }

    /// The independent kinds of evidence that were measured. That nothing was swapped in is none: files may be missed.
    pub(crate) fn kinds(&self) -> Vec<&'static str> {
        let mut kinds = Vec::new();
        if self.refaults.is_some() {
            kinds.push("no refaults");
        }
        if self.stalled.is_some() {
            kinds.push("no stalls");
        }
        kinds
    }

    /// What would settle it.
    pub(crate) fn open(&self) -> &'static str {
        match (self.refaults, self.stalled) {
            (Some(_), Some(_)) => "",
            (Some(_), None) => "memory stalls (PSI) would settle it",
            (None, Some(_)) => "refaults would settle it",
            (None, None) => "refaults and memory stalls would settle it",
        }
    }

    /// `, and nobody missed any`, as far as that was measured.
    pub(crate) fn clause(&self, cx: &Evidence<'_>) -> &'static str {
        if self.refaults.is_some() {
            ", and nobody missed any"
        } else if self.stalled.is_some() {
            ", and nobody waited for memory; whether any is missed was not measured"
        } else if cx.is_single_look() {
            "; whether anybody misses some, one look cannot tell"
        } else {
            "; whether anybody misses some was not measured"
        }
    }

    /// Adds what was measured to a finding's evidence.
    pub(crate) fn shown_in(&self, mut finding: Finding) -> Finding {
        if let Some(refaults) = self.refaults {
            finding = finding.shows_below(
                REFAULT_FILE,
                refaults,
                Self::REFAULTS,
                None,
                format!("{refaults} of files read again after eviction"),
            );
        }
        if let Some(swapped_in) = self.swapped_in {
            finding = finding.shows_below(
                PSWPIN,
                swapped_in,
                Self::SWAPPED_IN,
                None,
                format!("{swapped_in} swapped in"),
            );
        }
        if let Some(stalled) = self.stalled {
            finding = finding.shows_below(
                PSI_MEMORY_SOME,
                stalled,
                Stalls::MEMORY,
                None,
                format!("somebody waited for memory {stalled} of the time"),
            );
        }
        finding
    }
}

/// Calm labelled captures have this share of RAM available and more (November 2026).
pub(crate) const AVAILABLE: Ratio = Ratio::from_percent(15.0);

/// A kernel report of a shortage among the samples: their levels are of a moment at which memory was wanted and not there,
/// and nothing of them is called harmless.
pub(crate) fn shortage(cx: &Evidence<'_>) -> Option<&'static str> {
    let last = shortages(cx).last();
    last.map(|one| {
        if one.is_kill() {
            "the kernel had to kill for want of memory"
        } else {
            "a request for memory failed"
        }
    })
}

fn shortages<'a>(cx: &Evidence<'a>) -> impl DoubleEndedIterator<Item = oom::Explained<'a>> {
    let all = oom::reports(cx).into_iter();
    all.filter(|one| {
        one.report.group.is_none() && !one.report.is_by_hand() && !one.report.is_memory_dump()
    })
}

/// The longest part of a stretch that is not within seconds of a kernel report of a shortage.
///
/// # Errors
/// What the kernel reported, where that leaves no time.
pub(crate) fn apart_from_shortage(
    cx: &Evidence<'_>,
    stretch: &Stretch,
) -> Result<Stretch, &'static str> {
    /// Levels of so much time before and after are of that moment.
    const NEAR: Span = LEVEL;
    let Some(why) = shortage(cx) else {
        return Ok(*stretch);
    };
    let at: Vec<Span> = shortages(cx).map(|one| one.at).collect();
    let times = cx.timeline.times();
    let apart = (0..times.len()).map(|index| {
        let is_inside = stretch.first <= index && index <= stretch.last;
        let is_near = |at: &Span| *at <= times[index].plus(NEAR) && times[index] <= at.plus(NEAR);
        let is_apart = is_inside && !at.iter().any(is_near);
        Some(if is_apart { 1.0 } else { 0.0 })
    });
    let apart = cx.timeline.track(apart.collect()).at_least(Count::new(1));
    let longest = apart.runs().into_iter().max_by_key(Stretch::duration);
    longest
        .filter(|longest| longest.duration() >= LEVEL)
        .ok_or(why)
}

/// What can be had without swapping, and at most that where nothing tells shared memory from page cache: as in
/// [`available_at_most`].
pub(crate) fn can_be_had() -> Reading<Bytes> {
    let free = || gauge(MEM_FREE);
    let slab = || gauge(MEM_SLAB_RECLAIMABLE);
    let lists = gauge(MEM_ACTIVE_FILE);
    let lists = lists.and(gauge(MEM_INACTIVE_FILE));
    let cached = gauge(MEM_CACHED).plus([gauge(MEM_BUFFERS)]);
    let files = lists.or(page_cache()).or(cached);
    gauge(MEM_AVAILABLE).or(free().and(files).plus([slab()]))
}

/// What can be had without swapping: MemAvailable, or where the source lacks it (kernels before 3.14, old `free`)
/// free memory plus files' pages and reclaimable slab; then `false`.
pub(crate) fn available(cx: &Evidence<'_>) -> Result<(Track<Bytes>, bool), Missing> {
    told_or(cx, files)
}

/// Like [`available`], also where nothing tells shared memory from page cache: then all of it counts, and no more than
/// this can be had.
pub(crate) fn available_at_most(cx: &Evidence<'_>) -> Result<(Track<Bytes>, bool), Missing> {
    told_or(cx, |cx| {
        files(cx).or_else(|_| Ok(plus_known(cx, cx.gauge(MEM_CACHED)?, MEM_BUFFERS)))
    })
}

/// MemAvailable, or free memory plus what `files` says and reclaimable slab; what lacks is MemAvailable.
fn told_or(
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

/// The pages of files, without shared memory.
pub(crate) fn files(cx: &Evidence<'_>) -> Result<Track<Bytes>, Missing> {
    match (cx.gauge(MEM_ACTIVE_FILE), cx.gauge(MEM_INACTIVE_FILE)) {
        (Ok(active), Ok(inactive)) => Ok(active.plus(&inactive)),
        _ => cx.page_cache(),
    }
}

/// With another gauge where the source has it.
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

    fn timeline(seconds: u64, fill: impl Fn(u64, &mut Sample)) -> Timeline {
        let mut timeline = Timeline::default();
        for s in 0..=seconds {
            let mut sample = Sample::at(Span::from_secs(s));
            fill(s, &mut sample);
            timeline.push(&sample).unwrap();
        }
        timeline
    }

    #[test]
    fn what_was_disturbed_before_may_be_calm_later() {
        // 300 pages a second in the first third, then nothing.
        let timeline = timeline(30, |s, sample| {
            sample.host.set(REFAULT_FILE, Pages::new(300 * s.min(10)));
        });
        let facts = Facts::default();
        let cx = Evidence::new(&timeline, &facts);
        let during = |first, last| Calm::during(&cx, &timeline.stretch(first, last).unwrap());
        let why = during(0, 10).unwrap_err();
        assert!(why.contains("read again"), "{why}");
        assert!(during(15, 30).is_ok());
    }

    #[test]
    fn what_was_not_measured_is_no_evidence_of_calm() {
        let timeline = timeline(10, |_, sample| sample.host.set(PSWPIN, Pages::ZERO));
        let facts = Facts::default();
        let cx = Evidence::new(&timeline, &facts);
        let calm = Calm::during(&cx, &timeline.whole().unwrap()).unwrap();
        assert!(calm.kinds().is_empty());
        assert!(calm.clause(&cx).contains("not measured"));
    }

    fn estimated(readings: &[(Signal<Gauge<Bytes>>, u64)]) -> [Option<(Option<Bytes>, bool)>; 2] {
        let timeline = timeline(0, |_, sample| {
            for (signal, mib) in readings {
                sample.host.set(*signal, Bytes::from_mib(*mib));
            }
        });
        let facts = Facts::default();
        let cx = Evidence::new(&timeline, &facts);
        [available(&cx), available_at_most(&cx)].map(|one| {
            let (track, told) = one.ok()?;
            Some((track.last(), told))
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
        assert_eq!(
            estimated(&[(MEM_FREE, 100), (MEM_BUFFERS, 10)]),
            [None, None]
        );
    }
}
