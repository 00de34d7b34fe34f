//! Page-cache thrash: file pages are dropped and read again.

use timeline::{
    Condition, Entity, Stretch, Track,
    facts::{MGLRU, ZONE_RECLAIM_MODE},
    signals::{
        ACTIVATE_FILE, CGROUP_REFAULT_FILE, MEM_AVAILABLE, MEM_FREE, MEM_SHMEM, PAGE_CACHE, PGPGIN,
        PGSCAN_DIRECT, PGSCAN_KSWAPD, REFAULT_FILE, SWAP_TOTAL,
    },
};
use units::{Bytes, BytesPerSecond, Pages, PerSecond, Quantity, Ratio, Span};

use crate::evidence::Evidence;
use crate::finding::{Computed, Finding, Severity};
use crate::fix::Fix;
use crate::floor::Floor;
use crate::missing::Missing;
use crate::rule::{Outcome, clear, declare_rule};
use crate::stalls::Stalls;
use crate::{groups, who};

declare_rule! {
    /// The page cache is too small for the files in use: their pages are dropped and read again.
    ///
    /// ## What it means
    /// The files that programs keep using do not fit into the memory that is left for the page cache. The kernel drops
    /// pages that are wanted again a moment later, and a read that should come from memory waits for a disk. Swap can
    /// be quiet all the while, and free memory looks like some.
    /// ## How it is recognised
    /// File pages come back after eviction (the kernel calls it a refault) at 1 MiB/s or more, they are at least a third
    /// of all that is read from disks, and this is sustained. Stalls confirm it: memory 5 % or I/O 10 % of the time.
    /// Memory stalls may stay near zero where files are read in turn and each page is used once per turn; I/O stalls
    /// then show the wait. Where nothing waits it is only worth a note.
    /// ## Not this
    /// - `streaming-read`: much is read, but hardly anything twice.
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
    pub(crate) RULE = { id: "page-cache-thrash", since: "0.1.0", purpose: Finding, check: check }
}

/// 256 pages of 4 KiB a second. Labelled captures, November 2026: 30 MiB/s and more while thrashing, one second of
/// 0.4 MiB/s on a calm host. A slow disk gives no more than this when every page is sought.
pub(crate) const READ_AGAIN: BytesPerSecond = BytesPerSecond::from_mib(1.0);
/// Below this share of the disk reads something else reads ; an engineering choice: a cold start that re-reads
/// a few pages stays below a third.
const OF_READS: Ratio = Ratio::new(1.0 / 3.0);
/// The catalogue's time for a recording.
pub(crate) const HOLD: Span = Span::from_mins(10);
/// The host evicts at least as many pages as come back; a limit's reclaim is not in these counters (mm/vmscan.c, cgroup_reclaim), so
/// far fewer scanned pages mean that a limit evicts.
const SCANNED_PER_REFAULT: f64 = 0.1;
/// Groups that explain this share of what came back explain it.
const IN_GROUPS: Ratio = Ratio::from_percent(60.0);
/// Free on the whole host beyond its floor, as in node-reclaim-on: then the host as such was not short.
const FREE: Ratio = Ratio::from_percent(5.0);
/// Activations per refault from which a little more cache helps, and below which only room for all files does; an
/// engineering choice.
const NEAR_MISS: Ratio = Ratio::from_percent(50.0);
const FAR_MISS: Ratio = Ratio::from_percent(10.0);
/// Shared memory that takes this share of RAM crowds the cache out and looks like it.
const MUCH_SHARED: Ratio = Ratio::from_percent(25.0);

/// Where files are read again for want of cache: enough of them, and a good part of all reads.
pub(crate) fn reading_again(cx: &Evidence<'_>) -> Result<Condition, Missing> {
    let again = cx.refaults_file()?.to_bytes(cx.page_size()?);
    let much = again.at_least(READ_AGAIN);
    Ok(match cx.rate(PGPGIN) {
        Ok(read) => much.and(&again.at_least_track(&read.scaled(OF_READS.get()))),
        Err(_) => much,
    })
}

fn check(cx: &Evidence<'_>) -> Result<Outcome, Missing> {
    let pages = cx.refaults_file()?;
    let again = pages.to_bytes(cx.page_size()?);
    let reads = cx.rate(PGPGIN).ok();
    let rereading = reading_again(cx)?;
    let Some((stretch, came_back)) = cx.held(&rereading, &again, HOLD) else {
        return nothing(cx, &again, reads.as_ref());
    };
    if let Some(why) = evicted_by_another(cx, &stretch, &pages) {
        return Ok(Outcome::Clear(why));
    }
    let stalls = Stalls::during(cx, &stretch);
    let share = reads
        .as_ref()
        .and_then(|reads| reads.mean_in(&stretch))
        .filter(|read| read.get() > 0.0)
        .map(|read| Ratio::new((came_back.get() / read.get()).min(1.0)));
    let cache = cx.page_cache().ok();
    let least = cache.as_ref().and_then(|cache| cache.min_in(&stretch));

    let severity = match stalls.any() {
        true if stalls.standstill() => Severity::Critical,
        true => Severity::Warning,
        false if stalls.measured() => Severity::Info,
        false => Severity::Warning,
    };
    let left = least.map_or_else(String::new, |(cache, _)| {
        format!(": {cache} of page cache is too little for those in use")
    });
    let mut finding = RULE
        .found(
            severity,
            format!(
                "Files are read again and again ({came_back} came back after eviction){left}.{}",
                stalls.sentence()
            ),
        )
        .during(cx.each_time(stretch, &rereading, HOLD, |one| {
            evicted_by_another(cx, one, &pages).is_none()
        }))
        .graph("read again after eviction", &again)
        .shows_from(
            REFAULT_FILE,
            came_back,
            READ_AGAIN,
            None,
            format!("{came_back} of files came back after eviction (refaults)"),
        );
    if let Some(share) = share {
        finding = finding.shows_from(
            Computed(PGPGIN),
            share,
            OF_READS,
            None,
            format!("that is {share} of all that was read from disks"),
        );
    }
    finding = stalls.shown_in(finding);
    if let Some((cache, index)) = least {
        finding = finding.shows(
            PAGE_CACHE,
            cache,
            Some(cx.timeline.times()[index]),
            format!("page cache down to {cache}"),
        );
    }
    if let Ok(available) = cx.gauge(MEM_AVAILABLE)
        && let Some((least, index)) = available.min_in(&stretch)
    {
        finding = finding.shows(
            MEM_AVAILABLE,
            least,
            Some(cx.timeline.times()[index]),
            format!("available fell to {least}, cache in use included"),
        );
    }
    let (mut finding, near) = near_or_far(cx, &stretch, &pages, finding);
    finding = excluded(cx, &stretch, finding);
    let mut kinds = vec!["refaults"];
    if share.is_some() {
        kinds.push("their share of disk reads");
    }
    if stalls.any() {
        kinds.push("stalls");
    }
    let worst = least.map_or(stretch.last, |(_, index)| index);
    Ok(finding
        .cause(cause(cx, &stretch, near))
        .fix(Fix::cap(cx, worst, "Give the cache room: stop what grew last, or cap the group it belongs to."))
        .fix(Fix::say("Protect the cache of the service that re-reads: MemoryLow in its unit file, as much as the files that it reads again."))
        .fix(Fix::say("Keep a batch job that only passes through (a backup, an index run) from pushing it out: systemd-run --scope -p MemoryHigh=512M before its command, or MemoryHigh=512M in its unit file."))
        .verify("memtide check --for 1m under the same load: what comes back after eviction is below 2 % of what is read")
        .affects(who::largest(cx, worst, 3))
        .sure(cx.confidence(&kinds, stalls.open()))
        .see("kernel: mm/workingset.c")
        .see("kernel: mm/filemap.c, folio_wait_bit_common")
        .into())
}

fn nothing(
    cx: &Evidence<'_>,
    again: &Track<BytesPerSecond>,
    reads: Option<&Track<BytesPerSecond>>,
) -> Result<Outcome, Missing> {
    let Some((peak, _)) = again.max() else {
        return clear!("nothing came back after eviction");
    };
    if peak >= READ_AGAIN {
        return clear!(
            "files came back after eviction at up to {peak}, but not for {} on end as a third of all reads",
            cx.hold(HOLD)
        );
    }
    match reads.and_then(Track::max) {
        Some((read, _)) if read >= READ_AGAIN => {
            clear!("up to {read} was read from disks, but at most {peak} of it for a second time")
        }
        _ => clear!("at most {peak} of files came back after eviction"),
    }
}

/// Why it is not the host that lacks cache, if something narrower evicts while the host has memory.
pub(crate) fn evicted_by_another(
    cx: &Evidence<'_>,
    stretch: &Stretch,
    pages: &Track<PerSecond<Pages>>,
) -> Option<String> {
    let again = pages.mean_in(stretch)?;
    let scanned = |signal| cx.rate(signal).ok()?.mean_in(stretch);
    let host_evicts = match (scanned(PGSCAN_KSWAPD), scanned(PGSCAN_DIRECT)) {
        (Some(kswapd), Some(direct)) => {
            kswapd.get() + direct.get() >= again.get() * SCANNED_PER_REFAULT
        }
        _ => true,
    };
    if !host_evicts {
        return Some(format!(
            "{again} came back after eviction, but the host itself evicts nothing: a control group's limit does (cgroup-cache-starved)"
        ));
    }
    if !has_free(cx, stretch) {
        return None;
    }
    let in_groups: f64 = groups::with(cx, CGROUP_REFAULT_FILE)
        .unwrap_or_default()
        .into_iter()
        .filter(|group| super::cgroup_cache_starved::at_its_limit(cx, group, stretch))
        .filter_map(|group| {
            let rate = cx.rate_of(group, CGROUP_REFAULT_FILE).ok()?;
            Some(rate.mean_in(stretch)?.get())
        })
        .fold(0.0, f64::max);
    if in_groups >= again.get() * IN_GROUPS.get() {
        return Some(format!(
            "{again} came back after eviction, in a control group at its limit while the host has free memory (cgroup-cache-starved)"
        ));
    }
    let mode = cx.facts.number(ZONE_RECLAIM_MODE);
    let nodes = cx
        .facts
        .nodes
        .len()
        .max(cx.timeline.entities(Entity::Node).count());
    (mode.is_some_and(|mode| mode != 0) && nodes > 1).then(|| {
        format!(
            "{again} came back after eviction while the host has free memory: vm.zone_reclaim_mode is on (node-reclaim-on)"
        )
    })
}

/// Whether free memory stayed well clear of the floor: then no shortage of the host evicted anything.
pub(crate) fn has_free(cx: &Evidence<'_>, stretch: &Stretch) -> bool {
    let (Some(free), Ok(ram)) = (
        cx.gauge(MEM_FREE)
            .ok()
            .and_then(|free| free.mean_in(stretch)),
        cx.ram(),
    ) else {
        return false;
    };
    let floor = cx
        .floor()
        .ok()
        .and_then(|floor| floor.high.mean_in(stretch))
        .unwrap_or_else(|| Floor::predicted(ram).1);
    free.as_f64() >= floor.as_f64() * 2.0 && free >= ram.share(FREE)
}

/// Whether little is missing: what came back had been evicted recently, or long ago. The multi-generational LRU counts
/// activations in another way.
fn near_or_far(
    cx: &Evidence<'_>,
    stretch: &Stretch,
    pages: &Track<PerSecond<Pages>>,
    finding: Finding,
) -> (Finding, Option<bool>) {
    let generations = cx.facts.number(MGLRU).is_some_and(|mask| mask & 1 == 1);
    let share = || {
        let near = cx.rate(ACTIVATE_FILE).ok()?.mean_in(stretch)?.get();
        let all = pages.mean_in(stretch)?.get();
        (all > 0.0).then(|| Ratio::new(near / all))
    };
    match share().filter(|_| !generations) {
        Some(share) if share >= NEAR_MISS => (
            finding.shows(
                Computed(ACTIVATE_FILE),
                share,
                None,
                format!("{share} of it had been evicted only just before: a little more cache helps"),
            ),
            Some(true),
        ),
        Some(share) if share < FAR_MISS => (
            finding.shows(
                Computed(ACTIVATE_FILE),
                share,
                None,
                format!("{share} of it had been evicted only just before: only room for all of the files helps"),
            ),
            Some(false),
        ),
        _ => (finding, None),
    }
}

fn excluded(cx: &Evidence<'_>, stretch: &Stretch, mut finding: Finding) -> Finding {
    finding = finding.not("streaming-read", "the same pages were read more than once");
    if let Ok(scanned) = cx.rate(PGSCAN_KSWAPD)
        && scanned.mean_in(stretch).is_some_and(|s| s.get() > 0.0)
    {
        finding = finding.not(
            "cgroup-cache-starved",
            "the host itself evicts, not a control group's limit",
        );
    }
    if cx.facts.number(ZONE_RECLAIM_MODE) == Some(0) {
        finding = finding.not("node-reclaim-on", "vm.zone_reclaim_mode is 0");
    }
    if let Ok(swapped_in) = cx.swapped_in()
        && let Some(mean) = swapped_in.mean_in(stretch)
        && mean.get() < 10.0
    {
        finding = finding.not("swap-thrash", format!("{mean} came back from swap"));
    }
    finding
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
    let shared = cx
        .gauge(MEM_SHMEM)
        .ok()
        .and_then(|shared| shared.mean_in(stretch));
    if let (Some(shared), Ok(ram)) = (shared, cx.ram())
        && shared >= ram.share(MUCH_SHARED)
    {
        cause.push_str(&format!(
            "; {shared} of shared memory looks like cache and cannot be dropped"
        ));
    }
    if cx.timeline.last(SWAP_TOTAL) == Some(Bytes::ZERO) {
        cause.push_str("; without swap, cold anonymous memory cannot make room");
    }
    cause.push('.');
    cause
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::testing::{Case, clear, found, not_evaluated};
    use timeline::facts::Node;
    use timeline::signals::{
        CGROUP_CURRENT, CGROUP_MAX, MEM_BUFFERS, MEM_CACHED, MEM_TOTAL, PSI_IO_FULL, PSI_IO_SOME,
        PSI_MEMORY_FULL, PSI_MEMORY_SOME, PSWPIN,
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
        assert!(finding.title.contains("stood still 40 %"));
    }

    #[test]
    fn a_fast_disk_that_nobody_waits_for_is_a_note() {
        let finding = found(RULE, &waiting(reading(30_000, 29_000), 0, 2));
        assert_eq!(finding.severity, Severity::Info);
    }

    #[test]
    fn without_pressure_files_it_is_found_all_the_same() {
        let finding = found(RULE, &reading(30_000, 29_000));
        assert_eq!(finding.severity, Severity::Warning);
        assert!(finding.confidence.why.contains("PSI"));
    }

    #[test]
    fn a_stream_is_clear_and_so_is_a_cold_start() {
        assert!(clear(RULE, &reading(60_000, 0)).contains("for a second time"));
        clear(RULE, &waiting(reading(60_000, 3_000), 1, 60));
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
