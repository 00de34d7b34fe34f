//! Memory is full of page cache, and that is fine.

use timeline::signals::{
    MEM_AVAILABLE, MEM_BUFFERS, MEM_CACHED, MEM_DIRTY, MEM_FREE, MEM_SHMEM, MEM_SLAB_RECLAIMABLE,
    MEM_WRITEBACK, PAGE_CACHE, PGPGIN,
};

use crate::measures::available;
use crate::measures::quiet::Calm;
use crate::measures::readings::page_cache;
use crate::oom;
use crate::prelude::*;

declare_rule! {
    /// Memory looks full, but much of it is cache that is given back on demand, and nobody has missed any.
    ///
    /// ## What it means
    /// Linux uses memory that nobody else wants to keep files, names and inodes that were used once. Tools that count
    /// such pages as used make a healthy host look full. This is the commonest wrong worry.
    /// ## How it is recognised
    /// For 10 s or longer, or in a single sample, page cache (without shared memory, dirty pages and pages under writeback)
    /// and reclaimable slab are a third of RAM or more, MemAvailable contains at least half of them, more than 15 % of RAM is available, hardly anything is
    /// read again after eviction, and nobody waits for memory. Where RAM is not known (vmstat), the cache is 1 GiB or
    /// more, and what is free, with what the cache gained by reading files meanwhile, is more than 15 % of cache and
    /// free memory.
    /// ## Not this
    /// - `shmem-growth`: shared memory and tmpfs count as cache too, but cannot be dropped.
    /// - `page-cache-thrash`: the cache is full and still too small; files are read again and again.
    /// - `dirty-throttle`: the cache is full of pages that must be written first.
    /// ## What to do
    /// Nothing; dropping caches only makes the next reads slow. Alert on MemAvailable. Verify: available stays above
    /// 15 % over a working day.
    /// ## References
    /// - kernel Documentation/filesystems/proc.rst, MemAvailable
    /// - free(1): buff/cache and available
    pub(crate) RULE = { id: "cache-full-harmless", since: "0.1.0", class: Note,
        trigger: trigger, story: story,
        cause: "Files, names and inodes that were used once stay in memory that nobody else wants.",
        verify: "memtide check over a working day: available stays above 15 %, no refaults",
    }
}

/// From here on people ask where their memory went; hosts posted with that question had 35 % to 94 %.
const CACHE: Ratio = Ratio::new(1.0 / 3.0);
/// Where RAM is not known: a third of 3 GiB, about the least that a host has when its owner asks. An engineering choice.
const CACHE_UNKNOWN_RAM: Bytes = Bytes::from_gib(1);
/// Cache that MemAvailable does not contain is locked or is shared memory that the source does not tell apart.
const GIVEN_BACK: Ratio = Ratio::from_percent(50.0);

fn trigger() -> Trigger {
    // vmstat does not tell RAM; what it does tell is less than RAM.
    let known = given_back().and(gauge(MEM_FREE));
    let much = ram()
        .share(CACHE)
        .or(known.share(CACHE).max(CACHE_UNKNOWN_RAM));
    let least = ram().share(available::AVAILABLE);
    let beyond_free = gauge(MEM_AVAILABLE).minus(gauge(MEM_FREE));
    let contained = beyond_free.at_least("cache that is available", given_back().share(GIVEN_BACK));
    Trigger::on_host(
        LEVEL,
        all![
            gauge(MEM_FREE)
                .and(given_back())
                .at_least("free memory and cache", Bytes::new(1)),
            given_back().at_least("cache that can be dropped", much),
            available::can_be_had()
                .at_least("available memory", least)
                .if_measured(),
            contained.if_measured(),
            Calm::holds(),
        ],
    )
}

/// Clean page cache. Where the source does not tell shared memory apart, it is among it.
fn clean() -> Reading<Bytes> {
    let cache = page_cache().or(gauge(MEM_CACHED).plus([gauge(MEM_BUFFERS)]));
    let cache = cache.clone().minus(gauge(MEM_DIRTY)).or(cache);
    cache.clone().minus(gauge(MEM_WRITEBACK)).or(cache)
}

/// It and reclaimable slab.
fn given_back() -> Reading<Bytes> {
    clean().plus([gauge(MEM_SLAB_RECLAIMABLE)])
}

/// The levels at the end of an incident.
struct Levels {
    clean: Bytes,
    slab: Option<Bytes>,
    given_back: Bytes,
    /// RAM, or what is known of it.
    whole: Bytes,
    share: Ratio,
    available: Bytes,
    /// Whether the kernel says what is available.
    is_reported: bool,
}

impl Levels {
    fn of(cx: &Evidence<'_>, stretch: &Stretch) -> Result<Self, Missing> {
        let last = stretch.last;
        let lacks = || Missing::same_time(MEM_CACHED.def());
        let at = |reading: Reading<Bytes>| reading.track(cx)?.at(last).ok_or_else(lacks);
        let (clean, given_back) = (at(clean())?, at(given_back())?);
        let left = at(gauge(MEM_FREE))?;
        let ram = cx.ram().ok();
        let whole = ram.unwrap_or(given_back + left);
        let (available, is_reported) = match (available::available_at_most(cx), ram) {
            (Ok((track, told)), Some(_)) => (track.at(last).ok_or_else(lacks)?, told),
            _ => (left + read_into(cx, stretch)?, false),
        };
        Ok(Self {
            clean,
            slab: at(gauge(MEM_SLAB_RECLAIMABLE)).ok(),
            given_back,
            whole,
            share: given_back.ratio_of(whole).ok_or_else(lacks)?,
            available,
            is_reported,
        })
    }

    fn shown_in(&self, cx: &Evidence<'_>, shared_is_known: bool, finding: Finding) -> Finding {
        let (clean, available) = (self.clean, self.available);
        let apart = if shared_is_known {
            ""
        } else {
            "; shared memory in it could not be told apart"
        };
        let text = format!("{clean} of clean page cache{apart}");
        let finding = if cx.ram().is_ok() {
            finding.shows_from(PAGE_CACHE, clean, self.whole.share(CACHE), None, text)
        } else {
            finding.shows(PAGE_CACHE, clean, None, text)
        };
        finding
            .with(self.slab, |it, slab| {
                let text = format!("{slab} of reclaimable slab: names and inodes of files");
                it.shows(MEM_SLAB_RECLAIMABLE, slab, None, text)
            })
            .with(cx.of_ram(available).ok(), |it, share| {
                let text = if self.is_reported {
                    format!("{available} available ({share} of RAM)")
                } else {
                    format!("at most {available} free, cache or reclaimable slab ({share} of RAM)")
                };
                it.shows_from(
                    MEM_AVAILABLE,
                    available,
                    self.whole.share(available::AVAILABLE),
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
    let levels = Levels::of(cx, &stretch)?;
    let (given_back, share) = (levels.given_back, levels.share);
    let (available, is_reported) = (levels.available, levels.is_reported);
    if available <= levels.whole.share(available::AVAILABLE) {
        return clear!("{share} of RAM is cache, but only {available} are available");
    }
    let calm = match Calm::during(cx, &stretch) {
        Ok(calm) => calm,
        Err(why) => return clear!("{share} of RAM is cache, but {why}"),
    };
    let shared_is_known = cx.timeline.gauge(MEM_SHMEM).is_some();
    let of_ram = cx.remark_of_ram(given_back);
    let unless = if shared_is_known || is_reported {
        calm.clause(cx)
    } else {
        " unless it is shared memory, which this source does not tell apart"
    };
    let open = if cx.is_single_look() {
        "a second look would tell whether cache is missed"
    } else {
        calm.open()
    };
    let wanted = if calm.kinds().is_empty() {
        "nothing speaks for it; one look cannot exclude it"
    } else {
        "what was dropped was not wanted again"
    };
    let title =
        format!("{given_back}{of_ram} that look used are cache, given back on demand{unless}.");
    let finding = RULE
        .found(Severity::Info, title)
        .during(stretch)
        .graph("page cache", &clean().track(cx)?)
        .counts_if(is_reported, "available memory");
    // Cached may be shared memory to the last page: then no kind of evidence excludes it.
    let excludes = shared_is_known || is_reported;
    Ok(calm
        .shown_in(levels.shown_in(cx, shared_is_known, finding))
        .counts_as_all(calm.kinds().into_iter().filter(|_| excludes))
        .not("page-cache-thrash", wanted)
        .when(shared_is_known, |it| {
            it.not("shmem-growth", "shared memory is not counted here")
        })
        .fix(Fix::say(
            "Nothing to do; dropping caches only makes the next reads slow.",
        ))
        .sure_by_kinds(cx, open)
        .into())
}

/// What the cache gained meanwhile, as far as so much was read from disks: that part is files, not shared memory. Without
/// RAM and MemAvailable, only this and what is free are certain.
fn read_into(cx: &Evidence<'_>, stretch: &Stretch) -> Result<Bytes, Missing> {
    let cache = clean().track(cx)?;
    let (Some(first), Some(last), Ok(read)) = (
        cache.at(stretch.first),
        cache.at(stretch.last),
        cx.rate(PGPGIN),
    ) else {
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
    fn explains_a_host_full_of_cache() {
        let finding = found(RULE, &watched(50, 620, 20, 640));
        assert_eq!(finding.severity, Severity::Info);
        assert!(finding.title.contains("600 MiB (60 % of RAM)"));
        assert_eq!(finding.confidence.word(), "confirmed");
    }

    #[test]
    fn one_look_says_so() {
        let finding = found(RULE, &host(Case::once(), 50, 620, 20, 640));
        assert!(finding.title.contains("one look"), "{}", finding.title);
        assert_eq!(finding.confidence.word(), "probable");
    }

    #[test]
    fn shared_memory_is_not_cache() {
        clear(RULE, &watched(50, 620, 500, 160));
        // Also where the source does not tell it apart: MemAvailable does.
        let untold = Case::once()
            .gauge(MEM_TOTAL, MIB(1000))
            .gauge(MEM_FREE, MIB(80))
            .gauge(MEM_CACHED, MIB(520))
            .gauge(MEM_AVAILABLE, MIB(195));
        clear(RULE, &untold);
    }

    #[test]
    fn dirty_pages_are_not_given_back() {
        clear(RULE, &watched(200, 400, 20, 500).gauge(MEM_DIRTY, MIB(150)));
    }

    #[test]
    fn clear_where_cache_is_missed_or_little_is_available() {
        clear(
            RULE,
            &watched(50, 620, 20, 640).counter(REFAULT_FILE, 5_000),
        );
        clear(RULE, &watched(20, 400, 20, 140));
        clear(RULE, &watched(700, 200, 20, 850));
    }

    #[test]
    fn vmstat_alone_makes_it_possible() {
        let case = Case::over(20)
            .gauge(MEM_FREE, Bytes::from_gib(20))
            .gauge(MEM_CACHED, Bytes::from_gib(70))
            .gauge(MEM_BUFFERS, MIB(200));
        assert_eq!(found(RULE, &case).confidence.word(), "possible");
    }

    #[test]
    fn free_memory_that_falls_as_files_are_read_is_not_lost() {
        let filling = |read_mib: u64| {
            Case::over(12)
                .gauge_steps(MEM_FREE, &[MIB(6000), MIB(4000), MIB(2000), MIB(300)])
                .gauge_steps(MEM_CACHED, &[MIB(800), MIB(2800), MIB(4800), MIB(6500)])
                .counter_steps(PGPGIN, &[read_mib << 20; 3])
        };
        assert_eq!(found(RULE, &filling(1950)).confidence.word(), "possible");
        // Nothing was read: what grew may be shared memory.
        clear(RULE, &filling(1));
    }

    #[test]
    fn little_cache_where_ram_is_unknown_is_no_question() {
        let case = Case::once().gauge(MEM_FREE, MIB(60));
        clear(RULE, &case.gauge(MEM_CACHED, MIB(80)));
    }

    #[test]
    fn an_old_free_makes_it_possible() {
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
        // Where shared is known, what is left may be next to nothing.
        clear(RULE, &old(2300).gauge(MEM_SHMEM, MIB(2200)));
    }

    #[test]
    fn needs_free_and_cached() {
        assert_eq!(not_evaluated(RULE, &Case::over(20)).names, ["mem.free"]);
    }

    #[test]
    fn it_speaks_of_calm_times_and_of_no_others() {
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
