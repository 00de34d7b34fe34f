//! RAM is full of page cache, which is normal.

use timeline::signals::{
    MEM_AVAILABLE, MEM_BUFFERS, MEM_CACHED, MEM_DIRTY, MEM_FREE, MEM_SHMEM, MEM_SLAB_RECLAIMABLE,
    MEM_WRITEBACK, PAGE_CACHE, PGPGIN,
};

use crate::measures::available;
use crate::measures::quiet::Quiet;
use crate::measures::readings::page_cache;
use crate::oom;
use crate::prelude::*;

declare_rule! {
    /// RAM looks full, but much of it is page cache that the kernel drops on demand, and no task needed it back.
    ///
    /// ## What it means
    /// Linux uses idle memory to cache the files, names and inodes it has read. Tools that count this cache as used
    /// make a healthy host look full. This is the most common false alarm.
    /// ## How it is recognised
    /// For {LEVEL} or longer, or in a single sample: page cache (without shared memory, dirty pages and pages under
    /// writeback) plus reclaimable slab is {CACHE} of RAM or more, MemAvailable contains at least {GIVEN_BACK} of it,
    /// more than {available::AVAILABLE_CALM_SHARE} of RAM is available, almost nothing refaults (is read again after
    /// eviction), and no task waits for memory. Where RAM is unknown (vmstat), the cache must be {CACHE_UNKNOWN_RAM} or
    /// more, and free memory plus what the cache gained by reading files must be more than
    /// {available::AVAILABLE_CALM_SHARE} of cache plus free memory.
    /// ## Not this
    /// - `shmem-growth`: shared memory and tmpfs count as cache too, but cannot be dropped.
    /// - `page-cache-thrash`: the cache is full and still too small; files are read again and again.
    /// - `dirty-throttle`: the cache is full of pages that must be written first.
    /// ## What to do
    /// Nothing. Dropping caches only slows the next reads. Alert on MemAvailable. Verify: MemAvailable stays above
    /// {available::AVAILABLE_CALM_SHARE} over a working day.
    /// ## References
    /// - kernel Documentation/filesystems/proc.rst, MemAvailable
    /// - free(1): buff/cache and available
    pub(crate) RULE = { id: "cache-full-harmless", since: "0.1.0", class: Note,
        numbers: [LEVEL, available::AVAILABLE_CALM_SHARE, CACHE_UNKNOWN_RAM, CACHE, GIVEN_BACK],
        trigger: trigger, story: story,
        cause: "The kernel caches files, names and inodes in memory that nothing else uses.",
        verify: "memtide check over a working day: MemAvailable stays above \
                 {available::AVAILABLE_CALM_SHARE}, no refaults",
    }
}

/// Hosts posted with the question where the memory went had 35 % to 94 %.
const CACHE: Ratio = Ratio::new(1.0 / 3.0);
/// Where RAM is unknown: a third of 3 GiB, about the smallest host in such questions. An engineering choice.
const CACHE_UNKNOWN_RAM: Bytes = Bytes::from_gib(1);
/// At least this share of the cache must be in MemAvailable: the rest is locked, or shared memory that the source does
/// not report.
const GIVEN_BACK: Ratio = Ratio::from_percent(50.0);

fn trigger() -> Trigger {
    // vmstat does not report RAM; free memory plus cache is a lower bound.
    let known = given_back().and(gauge(MEM_FREE));
    let much = ram().share(CACHE).or(known.share(CACHE).max(CACHE_UNKNOWN_RAM));
    let least = ram().share(available::AVAILABLE_CALM_SHARE);
    let beyond_free = gauge(MEM_AVAILABLE).minus(gauge(MEM_FREE));
    let contained = beyond_free.at_least("cache that is available", given_back().share(GIVEN_BACK));
    Trigger::on_host(
        LEVEL,
        all![
            gauge(MEM_FREE).and(given_back()).at_least("free memory and cache", Bytes::new(1)),
            given_back().at_least("droppable cache", much),
            available::can_be_had().at_least("available memory", least).if_measured(),
            contained.if_measured(),
            Quiet::holds(),
        ],
    )
}

/// Clean page cache; it includes shared memory where the source does not report that separately.
fn clean() -> Reading<Bytes> {
    let cache = page_cache().or(gauge(MEM_CACHED).plus([gauge(MEM_BUFFERS)])).named("page cache");
    let written = cache.clone().minus(gauge(MEM_DIRTY)).or(cache).named("cache that is not dirty");
    written.clone().minus(gauge(MEM_WRITEBACK)).or(written).named("clean cache")
}

/// Clean page cache plus reclaimable slab.
fn given_back() -> Reading<Bytes> {
    clean().plus([gauge(MEM_SLAB_RECLAIMABLE)]).named("droppable cache")
}

/// Levels at the end of an incident.
struct CacheLevels {
    clean: Bytes,
    slab: Option<Bytes>,
    given_back: Bytes,
    /// RAM, or the part of it that is known.
    whole: Bytes,
    share: Ratio,
    available: Bytes,
    /// Whether the source has MemAvailable.
    is_reported: bool,
    /// Cache that the kernel does not count as available: shared memory that the source does not report, or locked
    /// pages.
    kept: Bytes,
}

impl CacheLevels {
    fn at_end(cx: &Evidence<'_>, stretch: &Stretch) -> Result<Self, Missing> {
        let last = stretch.last;
        let lacks = || Missing::same_time(MEM_CACHED.def());
        let at = |reading: Reading<Bytes>| reading.track(cx)?.at(last).ok_or_else(lacks);
        let (clean, given_back) = (at(clean())?, at(given_back())?);
        let free = at(gauge(MEM_FREE))?;
        let ram = cx.ram().ok();
        let whole = ram.unwrap_or(given_back + free);
        let (available, is_reported) = match (available::available_at_most(cx), ram) {
            (Ok((track, is_reported)), Some(_)) => (track.at(last).ok_or_else(lacks)?, is_reported),
            _ => (free + read_into(cx, stretch)?, false),
        };
        let is_split = cx.timeline.gauge(MEM_SHMEM).is_some();
        let droppable = if is_reported && !is_split {
            given_back.min(available.saturating_sub(free))
        } else {
            given_back
        };
        Ok(Self {
            clean,
            slab: at(gauge(MEM_SLAB_RECLAIMABLE)).ok(),
            given_back: droppable,
            whole,
            share: given_back.ratio_of(whole).ok_or_else(lacks)?,
            available,
            is_reported,
            kept: given_back.saturating_sub(droppable),
        })
    }

    fn shown_in(&self, cx: &Evidence<'_>, shared_is_known: bool, finding: Finding) -> Finding {
        let (clean, available) = (self.clean, self.available);
        let remark = match self.kept {
            _ if shared_is_known => String::new(),
            Bytes::ZERO => "; the source does not say how much of it is shared memory".to_owned(),
            kept => format!(
                "; {kept} of it is not available: shared memory, which the source does not report, \
                 or locked"
            ),
        };
        let text = format!("{clean} of clean page cache{remark}");
        let finding = if cx.ram().is_ok() {
            finding.shows_from(PAGE_CACHE, clean, self.whole.share(CACHE), None, text)
        } else {
            finding.shows(PAGE_CACHE, clean, None, text)
        };
        finding
            .with(self.slab, |finding, slab| {
                let text = format!("{slab} of reclaimable slab: file names and inodes");
                finding.shows(MEM_SLAB_RECLAIMABLE, slab, None, text)
            })
            .with(cx.of_ram(available).ok(), |finding, share| {
                let text = if self.is_reported {
                    format!("{available} available ({share} of RAM)")
                } else {
                    format!(
                        "at most {available} in free memory, cache and reclaimable slab ({share} \
                         of RAM)"
                    )
                };
                finding.shows_from(
                    MEM_AVAILABLE,
                    available,
                    self.whole.share(available::AVAILABLE_CALM_SHARE),
                    None,
                    text,
                )
            })
    }
}

fn story<'a>(cx: &Evidence<'a>, incident: &Incident<'a>) -> Result<Outcome, Missing> {
    let stretch = match oom::apart_from_shortage(cx, &incident.stretch) {
        Ok(stretch) => stretch,
        Err(why) => return clear!("much of RAM is cache, but {why}"),
    };
    let levels = CacheLevels::at_end(cx, &stretch)?;
    let (given_back, share) = (levels.given_back, levels.share);
    let (available, is_reported) = (levels.available, levels.is_reported);
    if available <= levels.whole.share(available::AVAILABLE_CALM_SHARE) {
        return clear!("{share} of RAM is cache, but only {available} is available");
    }
    let calm = match Quiet::during(cx, &stretch) {
        Ok(calm) => calm,
        Err(why) => return clear!("{share} of RAM is cache, but {why}"),
    };
    let shared_is_known = cx.timeline.gauge(MEM_SHMEM).is_some();
    let of_ram = cx.remark_of_ram(given_back);
    let unless = if shared_is_known || is_reported {
        calm.clause(cx)
    } else {
        ", unless it is shared memory, which this source does not report"
    };
    let open = if cx.is_single_sample() {
        "a second sample would show whether files refault"
    } else {
        calm.open()
    };
    let why_no_thrash = if calm.kinds().is_empty() {
        "nothing points to it; a single sample cannot exclude it"
    } else {
        "dropped pages were not needed again"
    };
    let bound = if levels.kept > Bytes::ZERO { "At most " } else { "" };
    let title = format!(
        "{bound}{given_back}{of_ram} looks used but is page cache, which the kernel drops on \
         demand{unless}."
    );
    let finding = RULE
        .found(Severity::Info, title)
        .during(stretch)
        .graph("page cache", &clean().track(cx)?)
        .counts_if(is_reported, "available memory");
    // All of Cached may be shared memory; then no evidence excludes that.
    let excludes = shared_is_known || is_reported;
    Ok(calm
        .shown_in(levels.shown_in(cx, shared_is_known, finding))
        .counts_as_all(calm.kinds().into_iter().filter(|_| excludes))
        .not("page-cache-thrash", why_no_thrash)
        .when(shared_is_known, |finding| {
            finding.not("shmem-growth", "shared memory is not counted here")
        })
        .fix(Fix::say("Nothing to do. Dropping caches only slows the next reads."))
        .sure_by_kinds(cx, open)
        .into())
}

/// Growth of the cache that disk reads explain: it is files and not shared memory. Without RAM and MemAvailable, only
/// this growth and free memory are certain to be available.
fn read_into(cx: &Evidence<'_>, stretch: &Stretch) -> Result<Bytes, Missing> {
    let cache = clean().track(cx)?;
    let (Some(first), Some(last), Ok(read)) =
        (cache.at(stretch.first), cache.at(stretch.last), cx.rate(PGPGIN))
    else {
        return Ok(Bytes::ZERO);
    };
    let read = Bytes::from_f64(read.integral_in(stretch));
    Ok(last.saturating_sub(first).min(read))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::testing::{Case, clear, found, not_evaluated, times};
    use timeline::signals::{MEM_TOTAL, PSI_MEMORY_SOME, REFAULT_FILE};
    use units::Bytes;

    const MIB: fn(u64) -> Bytes = Bytes::from_mib;

    fn host(case: Case, free: u64, cached: u64, shared: u64, available: u64) -> Case {
        case.gauge(MEM_TOTAL, MIB(1000))
            .gauge(MEM_FREE, MIB(free))
            .gauge(MEM_CACHED, MIB(cached))
            .gauge(MEM_SHMEM, MIB(shared))
            .gauge(MEM_AVAILABLE, MIB(available))
    }

    fn watched(free: u64, cached: u64, shared: u64, available: u64) -> Case {
        host(Case::over(20), free, cached, shared, available)
            .counter(REFAULT_FILE, 5)
            .counter(PSI_MEMORY_SOME, 100)
    }

    #[test]
    fn found_on_a_host_full_of_cache() {
        let finding = found(RULE, &watched(50, 620, 20, 640));
        assert_eq!(finding.severity, Severity::Info);
        assert!(finding.title.contains("600 MiB (60 % of RAM)"));
        assert_eq!(finding.confidence.word(), "confirmed");
    }

    #[test]
    fn a_single_sample_is_probable() {
        let finding = found(RULE, &host(Case::once(), 50, 620, 20, 640));
        assert!(finding.title.contains("one sample"), "{}", finding.title);
        assert_eq!(finding.confidence.word(), "probable");
    }

    #[test]
    fn clear_when_cached_is_shared_memory() {
        clear(RULE, &watched(50, 620, 500, 160));
        // Without MEM_SHMEM, MemAvailable shows it.
        let unreported = Case::once()
            .gauge(MEM_TOTAL, MIB(1000))
            .gauge(MEM_FREE, MIB(80))
            .gauge(MEM_CACHED, MIB(520))
            .gauge(MEM_AVAILABLE, MIB(195));
        clear(RULE, &unreported);
    }

    #[test]
    fn of_a_cache_that_may_be_shared_memory_what_is_available_counts() {
        let unsplit = Case::once()
            .gauge(MEM_TOTAL, MIB(1000))
            .gauge(MEM_FREE, MIB(50))
            .gauge(MEM_CACHED, MIB(700))
            .gauge(MEM_AVAILABLE, MIB(500));
        let title = found(RULE, &unsplit).title.to_string();
        assert!(title.starts_with("At most 450 MiB (45 % of RAM) looks used"), "{title}");
    }

    #[test]
    fn clear_when_the_cache_is_dirty() {
        clear(RULE, &watched(200, 400, 20, 500).gauge(MEM_DIRTY, MIB(150)));
    }

    #[test]
    fn clear_on_refaults_little_available_or_little_cache() {
        clear(RULE, &watched(50, 620, 20, 640).counter(REFAULT_FILE, 5_000));
        clear(RULE, &watched(20, 400, 20, 140));
        clear(RULE, &watched(700, 200, 20, 850));
    }

    #[test]
    fn vmstat_alone_is_possible() {
        let case = Case::over(20)
            .gauge(MEM_FREE, Bytes::from_gib(20))
            .gauge(MEM_CACHED, Bytes::from_gib(70))
            .gauge(MEM_BUFFERS, MIB(200));
        assert_eq!(found(RULE, &case).confidence.word(), "possible");
    }

    #[test]
    fn cache_that_grew_by_reading_files_counts_as_available() {
        let filling = |read_mib: u64| {
            Case::over(12)
                .gauge_steps(MEM_FREE, &[MIB(6000), MIB(4000), MIB(2000), MIB(300)])
                .gauge_steps(MEM_CACHED, &[MIB(800), MIB(2800), MIB(4800), MIB(6500)])
                .counter_steps(PGPGIN, &[read_mib << 20; 3])
        };
        assert_eq!(found(RULE, &filling(1950)).confidence.word(), "possible");
        // Nothing was read, so the growth may be shared memory.
        clear(RULE, &filling(1));
    }

    #[test]
    fn clear_with_little_cache_and_unknown_ram() {
        let case = Case::once().gauge(MEM_FREE, MIB(60));
        clear(RULE, &case.gauge(MEM_CACHED, MIB(80)));
    }

    #[test]
    fn an_old_free_is_possible() {
        let old = |cached| {
            Case::once()
                .gauge(MEM_TOTAL, MIB(4000))
                .gauge(MEM_FREE, MIB(300))
                .gauge(MEM_CACHED, MIB(cached))
                .gauge(MEM_BUFFERS, MIB(30))
        };
        let finding = found(RULE, &old(2300));
        assert_eq!(finding.confidence.word(), "possible");
        assert!(finding.title.contains("unless it is shared memory"));
        clear(RULE, &old(900));
        // Shared memory is known, and little else is left.
        clear(RULE, &old(2300).gauge(MEM_SHMEM, MIB(2200)));
    }

    #[test]
    fn not_evaluated_without_free_and_cached() {
        assert_eq!(not_evaluated(RULE, &Case::over(20)).names, ["mem.free"]);
    }

    #[test]
    fn only_calm_times_are_reported() {
        let an_hour = |calm: u64, then: u64| {
            let mut refaults = vec![calm; 3600];
            refaults[1800..1830].fill(then);
            host(Case::over(3600), 50, 620, 20, 640).counter_steps(REFAULT_FILE, &refaults)
        };
        assert_eq!(times(&found(RULE, &an_hour(5000, 0))), [(1800, 1830)]);
        let calm = times(&found(RULE, &an_hour(0, 5000)));
        assert_eq!(calm, [(0, 1800), (1830, 3600)]);
        clear(RULE, &an_hour(5000, 5000));
    }
}
