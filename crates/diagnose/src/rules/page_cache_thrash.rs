//! Page-cache thrash: file pages are dropped and read again.

use timeline::facts::{MGLRU, SWAPPINESS, ZONE_RECLAIM_MODE};
use timeline::signals::{
    ACTIVATE_FILE, MEM_AVAILABLE, MEM_SHMEM, PAGE_CACHE, PGPGIN, PGSCAN_KSWAPD, REFAULT_FILE,
    SWAP_TOTAL,
};

use crate::measures::refaults::{OF_READS, evicted_by_another, rereading};
use crate::prelude::*;

declare_rule! {
    /// The page cache is too small for the files in use: their pages are dropped and read again.
    ///
    /// ## What it means
    /// The files that programs keep using do not fit into the memory that is left for the page cache. The kernel drops
    /// pages that are wanted again a moment later, and a read that should come from memory waits for a disk. Swap can
    /// be quiet all the while, and free memory looks like some.
    /// ## How it is recognised
    /// File pages come back after eviction (the kernel calls it a refault) at 1 MiB/s or more, they are at least a third
    /// of all that is read from disks, for 4 s or longer. Stalls confirm it: memory 5 % or I/O 10 % of the time.
    /// Memory stalls may stay near zero where files are read in turn and each page is used once per turn; I/O stalls
    /// then show the wait. Where nothing waits it is only worth a note, and where the cache is so large that what comes back
    /// in the worst 10 s would take longer than 20 s to read all of it again, unless nothing ran for want of memory for a quarter
    /// of the time: a backup passes through for the second time.
    /// ## Not this
    /// - `streaming-read`: much is read, but hardly anything twice.
    /// - A file that is read once more after it was evicted: while it comes back the host evicts nothing.
    /// - `cgroup-cache-starved`: a control group's limit evicts, not the host.
    /// - `node-reclaim-on`: one NUMA node evicts while another has free memory.
    /// - `exec-pages-evicted`: the pages are program text, and anonymous memory cannot be swapped instead.
    /// ## What to do
    /// Now: give the cache room (cap or stop what grew last), or protect the victim with MemoryLow. For good: fewer or
    /// smaller programs beside it, a job that reads once, or more RAM. Verify: what comes back after eviction is below
    /// 2 % of what is read.
    /// ## References
    /// - kernel mm/workingset.c: what counts as a refault, and activation as its near miss
    /// - kernel mm/filemap.c, folio_wait_bit_common: why reading files may cause no memory pressure
    pub(crate) RULE = {
        id: "page-cache-thrash", since: "0.1.0", class: Shortage,
        trigger: trigger, waits: MemoryOrDisk, story: story,
        verify: "memtide check --for 1m under the same load: what comes back after eviction is below 2 % of what is read",
        brings_about: &[
            "available-exhaustion", "cache-starved-floor", "swappiness-misfit", "no-swap-risk", "direct-reclaim-stall",
            "kswapd-saturated",
        ],
        explained_by: &[Explains::Maybe(SWAPPINESS)],
    }
}

/// Activations per refault from which a little more cache helps, and below which only room for all files does; an
/// engineering choice.
const NEAR_MISS: Ratio = Ratio::from_percent(50.0);
const FAR_MISS: Ratio = Ratio::from_percent(10.0);
/// Shared memory that takes this share of RAM crowds the cache out and looks like it.
const MUCH_SHARED: Ratio = Ratio::from_percent(25.0);

/// What is thrashed comes back while it is still in use. Labelled captures read all of their page cache again within 0.5 to 5 s;
/// streams through a cache that is large enough, on guests with busy healthy work, within 77 s and more (November 2026).
const TURN: Span = Span::from_secs(20);

fn trigger() -> Trigger {
    Trigger::on_host(STALL, rereading())
}

/// How long it takes to read all of the page cache again.
fn turn(cache: Bytes, again: BytesPerSecond) -> Option<Span> {
    (again.get() > 0.0).then(|| Span::from_secs_f64(cache.as_f64() / again.get()))
}

fn story<'a>(cx: &Evidence<'a>, incident: &Incident<'a>) -> Result<Outcome, Missing> {
    let stretch = &incident.stretch;
    let pages = cx.refaults_file()?;
    if let Some(why) = evicted_by_another(cx, stretch, &pages) {
        return Ok(Outcome::Clear(why));
    }
    let again = pages.to_bytes(cx.page_size()?);
    let came_back = cx.mean_in(stretch, REFAULT_FILE, &again)?;
    let stalls = Stalls::during(cx, stretch);
    let cache = cx.page_cache().ok();
    let least = cache.and_then(|cache| cache.min_in(stretch));
    let left = least.map_or_else(String::new, |(cache, _)| {
        format!(": {cache} of page cache is too little for those in use")
    });
    let title = format!(
        "Files are read again and again ({came_back} came back after eviction){left}.{}",
        stalls.sentence()
    );
    let text = format!("{came_back} of files came back after eviction (refaults)");
    let fastest = pressure::worst(&again, stretch).unwrap_or(came_back);
    let is_slow = least
        .and_then(|(cache, _)| turn(cache, fastest))
        .is_some_and(|turn| turn > TURN);
    // A large cache takes its time to be read again although it thrashes: then work stands still for memory, not for the disk
    // of one stream.
    let stands_still = stalls
        .memory_full
        .is_some_and(|full| full >= Stalls::STANDSTILL);
    let passes_through = is_slow && !stands_still;
    let severity = if passes_through {
        Severity::Info
    } else {
        stalls.severity()
    };
    let near = near(cx, stretch, &pages);
    let worst = least.map_or(stretch.last, |(_, index)| index);
    Ok(RULE
        .found(severity, title)
        .graph("read again after eviction", &again)
        .shows_from(REFAULT_FILE, came_back, READ_AGAIN, None, text)
        .counts_as("refaults")
        .with(of_reads(cx, stretch, came_back), |finding, share| {
            let text = format!("that is {share} of all that was read from disks");
            finding.shows_from(Computed(PGPGIN), share, OF_READS, None, text).counts_as("their share of disk reads")
        })
        .shows_stalls(&stalls)
        .with(least, |finding, (cache, index)| finding.shows(PAGE_CACHE, cache, cx.time(index), format!("page cache down to {cache}")))
        .shows_lowest(cx, MEM_AVAILABLE, stretch, |least| format!("available fell to {least}, cache in use included"))
        .with(near, |finding, (share, is_near)| {
            let text = match is_near {
                true => format!("{share} of it had been evicted only just before: a little more cache helps"),
                false => format!("hardly any of it ({share}) had been evicted only just before: only room for all of the files helps"),
            };
            finding.shows(Computed(ACTIVATE_FILE), share, None, text)
        })
        .and(|finding| excluded(cx, stretch, finding))
        .cause(cause(cx, stretch, near.map(|(_, is_near)| is_near)))
        .fix(Fix::cap(cx, worst, "Give the cache room: stop what grew last, or cap the group it belongs to."))
        .fix(Fix::say("Protect the cache of the service that re-reads: MemoryLow in its unit file, as much as the files that it reads again."))
        .fix(Fix::say("Keep a batch job that only passes through (a backup, an index run) from pushing it out: systemd-run --scope -p MemoryHigh=512M before its command, or MemoryHigh=512M in its unit file."))
        .affects(processes::largest(cx, worst, 3))
        .sure_by_kinds(cx, stalls.open())
        .into())
}

/// What part of the disk reads came back after eviction.
fn of_reads(cx: &Evidence<'_>, stretch: &Stretch, came_back: BytesPerSecond) -> Option<Ratio> {
    let read = cx.mean_rate(PGPGIN, stretch)?;
    (read.get() > 0.0).then(|| Ratio::new((came_back.get() / read.get()).min(1.0)))
}

/// Whether little is missing: what came back had been evicted recently, or long ago. The multi-generational LRU counts
/// activations in another way.
fn near(
    cx: &Evidence<'_>,
    stretch: &Stretch,
    pages: &Track<PerSecond<Pages>>,
) -> Option<(Ratio, bool)> {
    if cx.facts.number(MGLRU).is_some_and(|mask| mask & 1 == 1) {
        return None;
    }
    let near = cx.mean_rate(ACTIVATE_FILE, stretch)?.get();
    let all = pages.mean_in(stretch)?.get();
    let share = (all > 0.0).then(|| Ratio::new(near / all))?;
    let is_near = share >= NEAR_MISS;
    (is_near || share < FAR_MISS).then_some((share, is_near))
}

fn excluded(cx: &Evidence<'_>, stretch: &Stretch, finding: Finding) -> Finding {
    let scanned = cx.mean_rate(PGSCAN_KSWAPD, stretch);
    let swapped_in = cx.swapped_in().ok();
    let swapped_in = swapped_in.and_then(|it| it.mean_in(stretch));
    finding
        .not("streaming-read", "the same pages were read more than once")
        .when(scanned.is_some_and(|it| it.get() > 0.0), |finding| {
            let why = "the host itself evicts, not a control group's limit";
            finding.not("cgroup-cache-starved", why)
        })
        .not_where(cx, ZONE_RECLAIM_MODE, 0, "node-reclaim-on")
        .with(swapped_in.filter(|it| it.get() < 10.0), |finding, mean| {
            finding.not("swap-thrash", format!("{mean} came back from swap"))
        })
}

fn cause(cx: &Evidence<'_>, stretch: &Stretch, near: Option<bool>) -> String {
    let mut cause = match near {
        Some(true) => "The files in use are a little larger than the page cache that is left",
        Some(false) => {
            "The files are read in turn and are far larger than the page cache that is left"
        }
        None => "The files in use are larger than the page cache that is left",
    }
    .to_owned();
    let shared = cx.mean_level(MEM_SHMEM, stretch);
    if let (Some(shared), Ok(ram)) = (shared, cx.ram())
        && shared >= ram.share(MUCH_SHARED)
    {
        cause.push_str(&format!(
            "; {shared} of shared memory looks like cache and cannot be dropped"
        ));
    }
    if cx.timeline.at(SWAP_TOTAL, stretch.last) == Some(Bytes::ZERO) {
        cause.push_str("; without swap, cold anonymous memory cannot make room");
    }
    cause.push('.');
    cause
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Severity;
    use crate::rules::testing::{Case, amid_calm, clear, found, not_evaluated, times};
    use timeline::Entity;
    use timeline::facts::Node;
    use timeline::signals::{
        CGROUP_CURRENT, CGROUP_MAX, CGROUP_REFAULT_FILE, MEM_BUFFERS, MEM_CACHED, MEM_FREE,
        MEM_TOTAL, PGSCAN_DIRECT, PSI_IO_FULL, PSI_IO_SOME, PSI_MEMORY_FULL, PSI_MEMORY_SOME,
        PSWPIN,
    };
    use units::Limit;

    /// `again` of `read` KiB a second are read a second time, on a host whose reclaim is at work.
    fn reading(read: u64, again: u64) -> Case {
        Case::over(60)
            .gauge(MEM_TOTAL, Bytes::from_mib(4000))
            .gauge(MEM_FREE, Bytes::from_mib(30))
            .gauge(MEM_CACHED, Bytes::from_mib(300))
            .gauge(MEM_BUFFERS, Bytes::from_mib(1))
            .gauge(MEM_SHMEM, Bytes::from_mib(6))
            .counter(PGPGIN, read * 1024)
            .counter(REFAULT_FILE, again / 4)
            .counter(PGSCAN_KSWAPD, again / 4)
            .counter(PGSCAN_DIRECT, 0)
    }

    fn waiting(case: Case, memory: u64, io: u64) -> Case {
        case.counter(PSI_MEMORY_SOME, memory * 10_000)
            .counter(PSI_MEMORY_FULL, memory * 10_000)
            .counter(PSI_IO_SOME, io * 10_000)
            .counter(PSI_IO_FULL, io * 9_000)
    }

    #[test]
    fn reads_that_come_back_are_found_although_memory_hardly_stalls() {
        let finding = found(RULE, &waiting(reading(30_000, 29_000), 1, 15));
        assert_eq!(finding.severity, Severity::Warning);
        assert_eq!(finding.confidence.word(), "confirmed");
        assert!(finding.title.contains("295 MiB"), "{}", finding.title);
    }

    #[test]
    fn work_that_stands_still_is_critical() {
        let finding = found(RULE, &waiting(reading(30_000, 29_000), 40, 15));
        assert_eq!(finding.severity, Severity::Critical);
        assert!(finding.title.contains("stood still up to 40 %"));
    }

    #[test]
    fn a_fast_disk_that_nobody_waits_for_is_a_note() {
        let finding = found(RULE, &waiting(reading(30_000, 29_000), 0, 2));
        assert_eq!(finding.severity, Severity::Info);
    }

    #[test]
    fn a_stream_through_a_large_cache_is_a_note_unless_work_stands_still_for_memory() {
        let large = |memory, io| {
            let cached = Bytes::from_mib(2_000);
            found(
                RULE,
                &waiting(reading(30_000, 29_000), memory, io).gauge(MEM_CACHED, cached),
            )
            .severity
        };
        assert_eq!(large(5, 60), Severity::Info);
        assert_eq!(large(40, 60), Severity::Critical);
    }

    #[test]
    fn without_pressure_files_it_is_found_all_the_same() {
        let finding = found(RULE, &reading(30_000, 29_000));
        assert_eq!(finding.severity, Severity::Warning);
        assert!(finding.confidence.why.contains("PSI"));
    }

    #[test]
    fn a_stream_is_clear_and_so_is_a_cold_start() {
        assert!(clear(RULE, &reading(60_000, 0)).contains("read again after eviction"));
        clear(RULE, &waiting(reading(60_000, 3_000), 1, 60));
    }

    /// An hour of `read` KiB a second: for half a minute `again` KiB of it come back and `evicted` pages are scanned.
    fn in_an_hour(read: u64, again: u64, evicted: u64) -> Case {
        Case::over(3600)
            .gauge(MEM_TOTAL, Bytes::from_mib(4000))
            .gauge(MEM_FREE, Bytes::from_mib(30))
            .counter(PGPGIN, read * 1024)
            .counter_steps(REFAULT_FILE, &amid_calm(again / 4, 0))
            .counter_steps(PGSCAN_KSWAPD, &amid_calm(evicted, 0))
            .counter(PGSCAN_DIRECT, 0)
            .counter_steps(PSI_IO_SOME, &amid_calm(300_000, 0))
            .counter_steps(PSI_IO_FULL, &amid_calm(270_000, 0))
    }

    #[test]
    fn half_a_minute_in_an_hour_is_found_as_if_alone() {
        let finding = found(RULE, &in_an_hour(30_000, 29_000, 7_000));
        assert_eq!(finding.severity, Severity::Critical);
        assert_eq!(times(&finding), [(1800, 1830)]);
    }

    #[test]
    fn a_stream_in_an_hour_is_clear_and_so_is_one_of_what_was_evicted_before() {
        clear(RULE, &in_an_hour(60_000, 0, 15_000));
        let again = clear(RULE, &in_an_hour(30_000, 29_000, 0));
        assert!(again.contains("evicts nothing"), "{again}");
    }

    #[test]
    fn a_burst_of_three_seconds_is_clear() {
        let mut rates = vec![0; 60];
        rates[10..13].fill(7000);
        clear(
            RULE,
            &reading(30_000, 0).counter_steps(REFAULT_FILE, &rates),
        );
    }

    #[test]
    fn a_limit_of_a_group_is_not_a_shortage_of_the_host() {
        // By the host's counters: reclaim under a limit is not in them.
        let case = reading(50_000, 49_000)
            .counter(PGSCAN_KSWAPD, 0)
            .gauge(MEM_FREE, Bytes::from_mib(3000));
        assert!(clear(RULE, &case).contains("cgroup-cache-starved"));
        // By the groups' own.
        let web = |limit| {
            reading(50_000, 49_000)
                .gauge(MEM_FREE, Bytes::from_mib(3000))
                .gauge_of(Entity::Cgroup, "/web", CGROUP_MAX, Limit::Bytes(limit))
                .gauge_of(Entity::Cgroup, "/web", CGROUP_CURRENT, Bytes::from_mib(80))
                .counter_of(Entity::Cgroup, "/web", CGROUP_REFAULT_FILE, 12_000)
        };
        assert!(clear(RULE, &web(Bytes::from_mib(80))).contains("cgroup-cache-starved"));
        found(RULE, &web(Bytes::from_mib(800)));
    }

    #[test]
    fn a_node_that_reclaims_beside_a_free_one_is_left_to_its_rule() {
        let mut case = reading(50_000, 49_000)
            .gauge(MEM_FREE, Bytes::from_mib(1800))
            .fact(ZONE_RECLAIM_MODE, "1");
        case.facts.nodes = (0..2)
            .map(|id| Node {
                id,
                distances: vec![10, 21],
            })
            .collect();
        assert!(clear(RULE, &case).contains("node-reclaim-on"));
    }

    #[test]
    fn old_kernels_count_both_kinds_of_refault_in_one() {
        use timeline::signals::REFAULT_BOTH;
        let old = |swapped_in| {
            Case::over(60)
                .counter(PGPGIN, 30_000 * 1024)
                .counter(REFAULT_BOTH, 7000)
                .counter(PSWPIN, swapped_in)
        };
        found(RULE, &old(0));
        clear(RULE, &old(7000));
    }

    #[test]
    fn without_refaults_it_says_what_it_lacks() {
        let case = Case::over(60).counter(PGPGIN, 1);
        assert_eq!(
            not_evaluated(RULE, &case).names,
            ["vm.workingset_refault_file"]
        );
    }
}
