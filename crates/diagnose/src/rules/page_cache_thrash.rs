//! Page-cache thrash: file pages are evicted and read again.

use timeline::facts::{MGLRU, SWAPPINESS, ZONE_RECLAIM_MODE};
use timeline::signals::{
    ACTIVATE_FILE, MEM_AVAILABLE, MEM_SHMEM, PAGE_CACHE, PGPGIN, PGSCAN_KSWAPD, REFAULT_FILE,
    SWAP_TOTAL,
};

use crate::measures::refaults::{
    OF_READS, REREAD_GOAL, evicted_by_another, host_evicts, rereading,
};
use crate::prelude::*;

declare_rule! {
    /// The page cache is too small for the files in use: their pages are evicted and read again (refaults).
    ///
    /// ## What it means
    /// The working set of files does not fit into the memory left for the page cache. The kernel evicts pages that are
    /// needed again a moment later, and a read that should come from memory waits for a disk. Swap can be quiet all the
    /// while, and some memory looks free.
    /// ## How it is recognised
    /// File pages refault (are read again after eviction) at {READ_AGAIN} or more, and refaults are at least {OF_READS} of
    /// all disk reads, for {STALL} or longer. Stalls confirm it: memory {PressureWindow::MEMORY} or I/O
    /// {PressureWindow::IO} of the time. Memory stalls may stay near zero when files are read in turn and each page is
    /// used once per turn; I/O stalls then show the wait. It is informational if nothing waits, or if the cache is so
    /// large that reading all of it again takes more than {TURN} at the refault rate of the worst {pressure::WORST} (a
    /// backup that passes through a second time), unless nothing ran for lack of memory for {PressureWindow::STANDSTILL} of the time.
    /// ## Not this
    /// - `streaming-read`: much is read, but hardly anything twice.
    /// - A file that is read once more after it was evicted: the host evicts nothing while it is read.
    /// - `cgroup-cache-starved`: a cgroup limit evicts, not the host.
    /// - `node-reclaim-on`: one NUMA node evicts while another has free memory.
    /// - `exec-pages-evicted`: the pages are program text, and anonymous memory cannot be swapped out instead.
    /// ## What to do
    /// Now: free memory for the cache (cap or stop what grew last), or protect the victim with MemoryLow. For good:
    /// fewer or smaller programs next to it, a job that reads once, or more RAM. Verify: refaults are below
    /// {REREAD_GOAL} of disk reads.
    /// ## References
    /// - kernel mm/workingset.c: what counts as a refault, and activation as its near miss
    /// - kernel mm/filemap.c, folio_wait_bit_common: why reading files may cause no memory pressure
    pub(crate) RULE = {
        id: "page-cache-thrash", since: "0.1.0", class: Shortage,
        numbers: [READ_AGAIN, STALL, PressureWindow::MEMORY, PressureWindow::IO, TURN,
            pressure::WORST, REREAD_GOAL, PressureWindow::STANDSTILL, OF_READS],
        trigger: trigger, waits: MemoryOrDisk, story: story,
        verify: "memtide check --for 1m under the same load: refaults are below {REREAD_GOAL} of \
                 disk reads",
        brings_about: &[
            "available-exhaustion", "cache-starved-floor", "swappiness-misfit", "no-swap-risk", "direct-reclaim-stall",
            "kswapd-saturated",
        ],
        explained_by: &[Explains::Maybe(SWAPPINESS)],
        replaces: &["NodeMemoryMajorPagesFaults"],
    }
}

/// With more activations per refault than this a little more cache helps; with fewer than the next constant only cache
/// for all files does. An engineering choice.
const NEAR_MISS: Ratio = Ratio::from_percent(50.0);
const FAR_MISS: Ratio = Ratio::from_percent(10.0);
/// Shared memory of this share of RAM displaces the cache and looks like it.
const MUCH_SHARED: Ratio = Ratio::from_percent(25.0);

/// Labelled captures of thrashing read all of their page cache again within 0.5 to 5 s; streams through a cache that
/// is large enough, on busy healthy guests, need 77 s and more (November 2026).
const TURN: Span = Span::from_secs(20);

fn trigger() -> Trigger {
    Trigger::on_host(STALL, rereading()).alert_if(host_evicts())
}

/// The time to read all of the page cache again.
fn turn(cache: Bytes, rate: BytesPerSecond) -> Option<Span> {
    (rate.get() > 0.0).then(|| Span::from_secs_f64(cache.as_f64() / rate.get()))
}

fn story<'a>(cx: &Evidence<'a>, incident: &Incident<'a>) -> Result<Outcome, Missing> {
    let stretch = &incident.stretch;
    let pages = cx.refaults_file()?;
    if let Some(why) = evicted_by_another(cx, stretch, &pages) {
        return Ok(Outcome::Clear(why));
    }
    let refaults = pages.to_bytes(cx.page_size()?);
    let refaulted = cx.mean_in(stretch, REFAULT_FILE, &refaults)?;
    let stalls = PressureWindow::during(cx, stretch);
    let cache = cx.page_cache().ok();
    let least = cache.and_then(|cache| cache.min_in(stretch));
    let left = least.map_or_else(String::new, |(cache, _)| {
        format!(": {cache} of page cache is too small for the files in use")
    });
    let title =
        Title::from(format!("Files are read again and again (refaults: {refaulted}){left}."))
            .then(stalls.sentence());
    let text = format!("{refaulted} of files read again after eviction (refaults)");
    let fastest = pressure::worst(&refaults, stretch).unwrap_or(refaulted);
    let is_slow = least.and_then(|(cache, _)| turn(cache, fastest)).is_some_and(|turn| turn > TURN);
    // A large cache that thrashes also takes long to read again, but then tasks stand still for memory, not for the
    // disk.
    let stands_still = stalls.memory_full.is_some_and(|full| full >= PressureWindow::STANDSTILL);
    let passes_through = is_slow && !stands_still;
    let severity = if passes_through { Severity::Info } else { stalls.severity() };
    let near = near(cx, stretch, &pages);
    let worst = least.map_or(stretch.last, |(_, index)| index);
    Ok(RULE
        .found(severity, title)
        .graph("file refaults", &refaults)
        .shows_from(REFAULT_FILE, refaulted, READ_AGAIN, None, text)
        .counts_as("refaults")
        .with(share_of_reads(cx, stretch, refaulted), |finding, share| {
            let text = format!("that is {share} of all disk reads");
            finding
                .shows_from(Computed(PGPGIN), share, OF_READS, None, text)
                .counts_as("their share of disk reads")
        })
        .shows_stalls(&stalls)
        .with(least, |finding, (cache, index)| {
            finding.shows(PAGE_CACHE, cache, cx.time(index), format!("page cache fell to {cache}"))
        })
        .shows_lowest(cx, MEM_AVAILABLE, stretch, |least| {
            format!("available fell to {least}, including cache in use")
        })
        .with(near, |finding, (share, is_near)| {
            let text = if is_near {
                format!(
                    "{share} of the refaults were near misses (activations): a little more cache \
                     helps"
                )
            } else {
                format!(
                    "hardly any refaults ({share}) were near misses (activations): only cache for \
                     all of the files helps"
                )
            };
            finding.shows(Computed(ACTIVATE_FILE), share, None, text)
        })
        .and(|finding| rule_out(cx, stretch, finding))
        .cause(cause(cx, stretch, near.map(|(_, is_near)| is_near)))
        .fix(Fix::cap(
            cx,
            worst,
            "Free memory for the cache: stop what grew last, or cap its cgroup.",
        ))
        .fix(Fix::say(
            "Protect the cache of the service that re-reads: MemoryLow in its unit file, as large \
             as the files that it uses.",
        ))
        .fix(Fix::say(
            "Stop a batch job that reads once (a backup, an index run) from displacing the cache: \
             systemd-run --scope -p MemoryHigh=512M COMMAND, or MemoryHigh=512M in its unit \
             file.",
        ))
        .affects(processes::largest(cx, worst, 3))
        .sure_by_kinds(cx, stalls.open())
        .into())
}

/// The share of disk reads that are refaults.
fn share_of_reads(
    cx: &Evidence<'_>,
    stretch: &Stretch,
    refaulted: BytesPerSecond,
) -> Option<Ratio> {
    let read = cx.mean_rate(PGPGIN, stretch)?;
    (read.get() > 0.0).then(|| Ratio::new((refaulted.get() / read.get()).min(1.0)))
}

/// The share of refaults that are activations, and whether it is high: those pages were evicted recently, so only a
/// little more cache is needed. The multi-generational LRU counts activations differently.
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

fn rule_out(cx: &Evidence<'_>, stretch: &Stretch, finding: Finding) -> Finding {
    let scanned = cx.mean_rate(PGSCAN_KSWAPD, stretch);
    let swapped_in = cx.swapped_in().ok();
    let swapped_in = swapped_in.and_then(|swapped_in| swapped_in.mean_in(stretch));
    finding
        .not("streaming-read", "the same pages were read more than once")
        .when(scanned.is_some_and(|rate| rate.get() > 0.0), |finding| {
            let why = "the host itself evicts, not a cgroup limit";
            finding.not("cgroup-cache-starved", why)
        })
        .not_where(cx, ZONE_RECLAIM_MODE, 0, "node-reclaim-on")
        .with(swapped_in.filter(|rate| rate.get() < 10.0), |finding, mean| {
            finding.not("swap-thrash", format!("only {mean} swapped in"))
        })
}

fn cause(cx: &Evidence<'_>, stretch: &Stretch, near: Option<bool>) -> String {
    let mut cause = match near {
        Some(true) => "The files in use are slightly larger than the page cache that is left",
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
        cause.push_str("; without swap, cold anonymous memory cannot leave RAM");
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

    /// Disk reads of `read` KiB per second, `again` of them refaults, on a host that reclaims.
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
    fn refaults_are_found_although_memory_hardly_stalls() {
        let finding = found(RULE, &waiting(reading(30_000, 29_000), 1, 15));
        assert_eq!(finding.severity, Severity::Warning);
        assert_eq!(finding.confidence.word(), "confirmed");
        assert!(finding.title.contains("295 MiB"), "{}", finding.title);
    }

    #[test]
    fn a_standstill_is_critical() {
        let finding = found(RULE, &waiting(reading(30_000, 29_000), 40, 15));
        assert_eq!(finding.severity, Severity::Critical);
        assert!(finding.title.contains("stalled up to 40 %"));
    }

    #[test]
    fn informational_when_no_task_waits() {
        let finding = found(RULE, &waiting(reading(30_000, 29_000), 0, 2));
        assert_eq!(finding.severity, Severity::Info);
    }

    #[test]
    fn a_stream_through_a_large_cache_is_informational_unless_work_stands_still() {
        let large = |memory, io| {
            let cached = Bytes::from_mib(2_000);
            found(RULE, &waiting(reading(30_000, 29_000), memory, io).gauge(MEM_CACHED, cached))
                .severity
        };
        assert_eq!(large(5, 60), Severity::Info);
        assert_eq!(large(40, 60), Severity::Critical);
    }

    #[test]
    fn found_without_pressure_files() {
        let finding = found(RULE, &reading(30_000, 29_000));
        assert_eq!(finding.severity, Severity::Warning);
        assert!(finding.confidence.why.contains("PSI"));
    }

    #[test]
    fn clear_on_a_stream_and_a_cold_start() {
        assert!(clear(RULE, &reading(60_000, 0)).contains("read again after eviction"));
        clear(RULE, &waiting(reading(60_000, 3_000), 1, 60));
    }

    /// An hour of `read` KiB per second, for 30 s with `again` KiB of refaults and `evicted` scanned pages.
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
    fn finds_30_s_within_an_hour() {
        let finding = found(RULE, &in_an_hour(30_000, 29_000, 7_000));
        assert_eq!(finding.severity, Severity::Critical);
        assert_eq!(times(&finding), [(1800, 1830)]);
    }

    #[test]
    fn clear_on_a_stream_of_new_or_formerly_evicted_files() {
        clear(RULE, &in_an_hour(60_000, 0, 15_000));
        let again = clear(RULE, &in_an_hour(30_000, 29_000, 0));
        assert!(again.contains("evicts nothing"), "{again}");
    }

    #[test]
    fn clear_after_a_burst_of_3_s() {
        let mut rates = vec![0; 60];
        rates[10..13].fill(7000);
        clear(RULE, &reading(30_000, 0).counter_steps(REFAULT_FILE, &rates));
    }

    #[test]
    fn clear_when_a_cgroup_limit_evicts() {
        // Evidence from the host's counters, which do not count reclaim under a limit.
        let case = reading(50_000, 49_000)
            .counter(PGSCAN_KSWAPD, 0)
            .gauge(MEM_FREE, Bytes::from_mib(3000));
        assert!(clear(RULE, &case).contains("cgroup-cache-starved"));
        // Evidence from the cgroup's own counters.
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
    fn clear_on_node_reclaim() {
        let mut case = reading(50_000, 49_000)
            .gauge(MEM_FREE, Bytes::from_mib(1800))
            .fact(ZONE_RECLAIM_MODE, "1");
        case.facts.nodes = (0..2).map(|id| Node { id, distances: vec![10, 21] }).collect();
        assert!(clear(RULE, &case).contains("node-reclaim-on"));
    }

    #[test]
    fn found_on_old_kernels_with_one_refault_counter() {
        use timeline::signals::REFAULT;
        let old = |refaulted| {
            Case::over(60)
                .counter(PGPGIN, 30_000 * 1024)
                .counter(REFAULT, refaulted)
                .counter(PSWPIN, 7000)
        };
        found(RULE, &old(7000));
        clear(RULE, &old(0));
    }

    #[test]
    fn not_evaluated_without_refaults() {
        let case = Case::over(60).counter(PGPGIN, 1);
        assert_eq!(not_evaluated(RULE, &case).names, ["vm.workingset_refault_file"]);
    }
}
