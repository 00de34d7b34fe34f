//! Somebody drops the caches (vm.drop_caches).

use timeline::signals::{
    DROP_PAGECACHE, DROP_SLAB, MEM_AVAILABLE, MEM_SLAB_RECLAIMABLE, PAGE_CACHE, PGPGIN, PSI_IO_SOME,
};
use timeline::{CounterRise, Timeline, host_counter_rises};

use crate::measures::available::AVAILABLE_CALM_SHARE;
use crate::measures::readings::page_cache;
use crate::prelude::*;

declare_rule! {
    /// The caches were dropped by hand or by a job (vm.drop_caches): what was in them must be read again.
    ///
    /// ## What it means
    /// `echo 3 > /proc/sys/vm/drop_caches` throws away page cache, dentries and inodes. It is meant for tests. As a job
    /// it is a mistake with a wish behind it, that free memory look larger: the kernel would have dropped these pages
    /// by itself as soon as memory was needed, and now programs wait for the disk to get them back.
    /// ## How it is recognised
    /// The kernel's counter of dropped caches (`drop_pagecache` or `drop_slab`) rises. It is a warning if page cache
    /// fell by {CACHE_LOST} of RAM or more, {READ_AFTER} or more are read in the seconds after it, twice as much as
    /// before, and tasks wait for disks {PressureWindow::IO} of the time or more; otherwise informational.
    /// ## Not this
    /// - `page-cache-thrash`: reclaim evicts files because memory is short.
    /// - Files that were deleted, or a container that ended: cache goes, and the counter stays.
    /// - A benchmark that drops caches between its runs: it is meant so.
    /// ## What to do
    /// Now and for good: remove the job; its author probably watches MemFree, which should be MemAvailable. Verify:
    /// `grep drop_ /proc/vmstat` stays the same for a day.
    /// ## References
    /// - kernel Documentation/admin-guide/sysctl/vm.rst, drop_caches
    pub(crate) RULE = {
        id: "caches-dropped", since: "0.1.0", class: Setting,
        numbers: [CACHE_LOST, READ_AFTER, PressureWindow::IO],
        trigger: trigger, waits: MemoryOrDisk, story: story,
        cause: "A person or a job wrote to /proc/sys/vm/drop_caches.",
        verify: "grep drop_ /proc/vmstat stays the same for a day",
        aliases: &["drop-caches-cron"],
    }
}

/// One of them a day, as the threshold for any rise of the counters.
const ANY: PerSecond<Count> = PerSecond::new(1.0 / 86_400.0);
/// A drop of less costs little to read again: an engineering choice.
const CACHE_LOST: Ratio = Ratio::from_percent(5.0);
/// A tenth of an old disk's speed: an engineering choice.
const READ_AFTER: BytesPerSecond = BytesPerSecond::from_mib(10.0);
/// As many times what was read before: an engineering choice.
const MORE_THAN_BEFORE: f64 = 2.0;
/// For so long after it, reads are those of what was lost.
const AFTER: Span = Span::from_secs(10);

/// A drop of a large cache takes a second or two.
const TAKES: Span = Span::from_secs(2);

fn trigger() -> Trigger {
    Trigger::Found(FoundBy {
        find,
        could: Some(any![
            rate(DROP_PAGECACHE).at_least("drops of page cache", ANY),
            rate(DROP_SLAB).at_least("drops of dentries and inodes", ANY),
        ]),
        scope: Subjects::Host,
        none: Some(|_| clear!("the kernel's counters of dropped caches did not rise")),
    })
}

/// Each rise of one of the counters; those within ten seconds are one.
fn find(cx: &Evidence<'_>) -> Result<Vec<Occurrence>, Missing> {
    cx.rate(DROP_PAGECACHE).or_else(|_| cx.rate(DROP_SLAB))?;
    let at = |rise: CounterRise| Occurrence::on_host(rise.from, rise.to);
    Ok(joined(cx, rises(cx).map(at).collect(), AFTER))
}

fn rises(cx: &Evidence<'_>) -> impl Iterator<Item = CounterRise> {
    let signals = [DROP_PAGECACHE.id(), DROP_SLAB.id()];
    let timeline = cx.timeline;
    signals.into_iter().flat_map(move |signal| host_counter_rises(timeline, signal))
}

fn story<'a>(cx: &Evidence<'a>, incident: &Incident<'a>) -> Result<Outcome, Missing> {
    let stretch = &incident.stretch;
    let within = |signal: Signal<Counter<Count>>| -> u64 {
        let rises = host_counter_rises(cx.timeline, signal.id()).into_iter();
        // A damaged counter may rise by 2^64.
        rises
            .filter(|rise| rise.from >= stretch.first && rise.to <= stretch.last)
            .map(|rise| rise.by)
            .fold(0, u64::saturating_add)
    };
    let (pages, objects) = (within(DROP_PAGECACHE), within(DROP_SLAB));
    if pages == 0 && objects == 0 {
        return clear!("no cache was dropped");
    }
    let loss = CacheLoss::around(cx, stretch);
    let lost = loss.lost.map_or_else(String::new, |lost| format!(": page cache fell by {lost}"));
    let again = loss
        .read_again
        .map_or_else(String::new, |(after, _)| format!(", and {after} were read afterwards"));
    let what = match (pages, objects) {
        (_, 0) => "Page cache was",
        (0, _) => "Dentries and inodes were",
        _ => "Page cache, dentries and inodes were",
    };
    let title = format!("{what} dropped by hand or by a job{lost}{again}.");
    let costs = loss.costs(cx);
    Ok(RULE
        .found(Severity::warning_if(costs), title)
        .with(page_cache().track(cx).ok(), |finding, cache| finding.graph("page cache", &cache))
        .when(pages > 0, |finding| {
            finding.shows(
                DROP_PAGECACHE,
                Count::new(pages),
                None,
                format!("page cache was dropped {}", Count::new(pages).named("time", "times")),
            )
        })
        .when(objects > 0, |finding| {
            finding.shows(
                DROP_SLAB,
                Count::new(objects),
                None,
                format!(
                    "dentries and inodes were dropped {}",
                    Count::new(objects).named("time", "times")
                ),
            )
        })
        .counts_as("the kernel's counter")
        .and(|finding| loss.shown_in(cx, finding))
        .shows_lowest(cx, MEM_AVAILABLE, stretch, |least| {
            let calm = cx.ram().is_ok_and(|ram| least >= ram.share(AVAILABLE_CALM_SHARE));
            let remark = if calm { ": nothing was short" } else { "" };
            format!("at least {least} was available{remark}")
        })
        .with(cx.level(MEM_SLAB_RECLAIMABLE, stretch.last), |finding, slab| {
            finding.shows(
                MEM_SLAB_RECLAIMABLE,
                slab,
                cx.time(stretch.last),
                format!("{slab} of dentries, inodes and the like are left"),
            )
        })
        .not("page-cache-thrash", "the kernel was asked to drop the cache; reclaim did not need it")
        .fix(Fix::say("Find the job, and remove it. The kernel log names the process.").inspect(
            "journalctl -k -g drop_caches --no-pager | tail\n\
             grep -rs drop_caches /etc/cron* /etc/systemd /var/spool/cron\n\
             grep -rs drop_caches /usr/local /opt | head",
        ))
        .fix(Fix::say(
            "Watch MemAvailable instead of MemFree: page cache is memory that can be had.",
        ))
        .sure_by_kinds(cx, "")
        .into())
}

/// How far page cache fell, from its peak to a later level, with the drops of a stretch.
fn fallen(timeline: &Timeline, cache: &Track<Bytes>, stretch: &Stretch) -> Bytes {
    let drops = host_counter_rises(timeline, DROP_PAGECACHE.id());
    if !drops.iter().any(|drop| drop.from >= stretch.first && drop.to <= stretch.last) {
        return Bytes::ZERO;
    }
    // The kernel counts a drop once all of it is done.
    let begun = timeline.times().partition_point(|time| time.plus(TAKES) < stretch.from);
    let (mut peak, mut fallen) = (Bytes::ZERO, Bytes::ZERO);
    for level in (begun..=stretch.last).filter_map(|at| cache.at(at)) {
        peak = peak.max(level);
        fallen = fallen.max(peak.saturating_sub(level));
    }
    fallen
}

/// What was lost, and what it cost.
struct CacheLoss {
    lost: Option<Bytes>,
    /// What was read per second after it, and before.
    read_again: Option<(BytesPerSecond, Option<BytesPerSecond>)>,
    waited: Option<Ratio>,
}

impl CacheLoss {
    /// Adds what was lost and what it cost to a finding.
    fn shown_in(&self, cx: &Evidence<'_>, finding: Finding) -> Finding {
        finding
            .with(self.lost, |finding, lost| {
                let text = format!("page cache fell by {lost}{}", cx.remark_of_ram(lost));
                finding
                    .shows(Computed(PAGE_CACHE), lost, None, text)
                    .counts_as("page cache that is gone")
            })
            .with(self.read_again, |finding, (after, before)| {
                let before = before.map_or_else(String::new, |before| format!(", {before} before"));
                finding.shows(
                    PGPGIN,
                    after,
                    None,
                    format!("{after} read in the seconds after it{before}"),
                )
            })
            .with(self.waited, |finding, waited| {
                finding.shows(
                    PSI_IO_SOME,
                    waited,
                    None,
                    format!("tasks then waited for disks {waited} of the time"),
                )
            })
    }

    fn around(cx: &Evidence<'_>, stretch: &Stretch) -> Self {
        let timeline = cx.timeline;
        let until = stretch.to.plus(AFTER);
        let last = timeline.times().partition_point(|time| *time <= until);
        // Where several drops are one incident, what is read between them counts; programs end some time after the last.
        let read = cx.rate(PGPGIN).ok();
        let mean = |part: Option<Stretch>| read.as_ref()?.mean_in(&part?);
        let windows = [Some(*stretch), timeline.stretch(stretch.last, last.saturating_sub(1))];
        let read_in = |part: &Option<Stretch>| mean(*part).map_or(0.0, BytesPerSecond::get);
        let after = windows.into_iter().max_by(|a, b| read_in(a).total_cmp(&read_in(b))).flatten();
        let before = timeline.stretch(0, stretch.first);
        let cache = page_cache().track(cx).ok();
        let lost = cache.map(|cache| fallen(timeline, &cache, stretch));
        let stalled = cx.stall(PSI_IO_SOME).ok();
        Self {
            lost: lost.filter(|lost| *lost > Bytes::ZERO),
            read_again: mean(after).map(|after| (after, mean(before))),
            waited: stalled.and_then(|stalled| stalled.mean_in(&after?)),
        }
    }

    fn costs(&self, cx: &Evidence<'_>) -> bool {
        let much = |lost: Bytes| cx.ram().is_ok_and(|ram| lost >= ram.share(CACHE_LOST));
        let more = |(after, before): (BytesPerSecond, Option<BytesPerSecond>)| {
            let is_more = |before: BytesPerSecond| after.get() >= before.get() * MORE_THAN_BEFORE;
            after >= READ_AFTER && before.is_none_or(is_more)
        };
        self.lost.is_some_and(much)
            && self.read_again.is_some_and(more)
            && self.waited.is_some_and(|waited| waited >= PressureWindow::IO)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::testing::{Case, clear, found, in_second, incidents, not_evaluated, times};
    use timeline::signals::{MEM_BUFFERS, MEM_CACHED, MEM_SHMEM, MEM_TOTAL};

    /// A host of 1,000 MiB with 500 MiB of cache, of which `lost` MiB go in second 30.
    fn dropping(lost: u64, read_after: u64, waits: u64) -> Case {
        let levels = |before: u64, after: u64| {
            [vec![Bytes::from_mib(before); 31], vec![Bytes::from_mib(after); 30]].concat()
        };
        let steps = |before: u64, after: u64| [vec![before; 30], vec![after; 30]].concat();
        Case::over(60)
            .gauge(MEM_TOTAL, Bytes::from_mib(1000))
            .gauge(MEM_AVAILABLE, Bytes::from_mib(700))
            .gauge(MEM_SHMEM, Bytes::ZERO)
            .gauge(MEM_BUFFERS, Bytes::ZERO)
            .gauge_steps(MEM_CACHED, &levels(500, 500 - lost))
            .counter_steps(DROP_PAGECACHE, &in_second(30, 60, 1))
            .counter_steps(PGPGIN, &steps(1 << 20, read_after << 20))
            .counter_steps(PSI_IO_SOME, &steps(1_000, waits))
    }

    #[test]
    fn counters_that_rise_by_more_than_a_number_holds_are_no_overflow() {
        let rise = in_second(30, 60, u64::MAX - 2_000);
        let case = dropping(450, 60, 600_000)
            .counter_steps(DROP_PAGECACHE, &rise)
            .counter_steps(DROP_SLAB, &rise);
        found(RULE, &case);
    }

    #[test]
    fn a_drop_that_must_be_read_again_is_a_warning() {
        let finding = found(RULE, &dropping(450, 60, 600_000));
        assert_eq!(finding.severity, Severity::Warning);
        assert_eq!(finding.confidence.word(), "confirmed");
        assert!(finding.title.contains("page cache fell by 450 MiB"), "{}", finding.title);
        assert_eq!(times(&finding), [(30, 31)]);
    }

    #[test]
    fn informational_if_nothing_is_read_again_or_no_task_waits() {
        for case in [dropping(450, 1, 600_000), dropping(450, 60, 5_000), dropping(10, 60, 600_000)]
        {
            assert_eq!(found(RULE, &case).severity, Severity::Info);
        }
    }

    #[test]
    fn dentries_and_inodes_alone_are_named() {
        let case = Case::over(60).counter_steps(DROP_SLAB, &in_second(30, 60, 1));
        let finding = found(RULE, &case);
        assert!(finding.title.starts_with("Dentries and inodes"), "{}", finding.title);
    }

    #[test]
    fn a_drop_is_counted_once_it_is_done() {
        let levels = [vec![500; 29], vec![200], vec![50; 31]].concat();
        let levels: Vec<_> = levels.into_iter().map(Bytes::from_mib).collect();
        let finding = found(RULE, &dropping(450, 60, 600_000).gauge_steps(MEM_CACHED, &levels));
        assert!(finding.title.contains("page cache fell by 450 MiB"), "{}", finding.title);
    }

    #[test]
    fn each_drop_within_an_hour_is_an_incident() {
        let mut steps = vec![0; 3600];
        (steps[600], steps[1_800], steps[1_803]) = (1, 1, 1);
        let case = Case::over(3600).counter_steps(DROP_PAGECACHE, &steps);
        let all = incidents(RULE, &case);
        let found: Vec<_> = all.iter().flat_map(times).collect();
        assert_eq!(found, [(600, 601), (1_800, 1_804)]);
    }

    #[test]
    fn clear_when_cache_goes_with_its_files() {
        let levels = [vec![Bytes::from_mib(500); 30], vec![Bytes::from_mib(50); 30]].concat();
        let case = Case::over(60).counter_at(DROP_PAGECACHE, 12).gauge_steps(MEM_CACHED, &levels);
        clear(RULE, &case);
    }

    #[test]
    fn not_evaluated_without_the_counters() {
        assert_eq!(not_evaluated(RULE, &Case::over(60)).names, ["vm.drop_slab"]);
    }
}
