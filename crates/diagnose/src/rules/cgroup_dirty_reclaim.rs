//! Writers in a cgroup of v1 meet its limit with their own dirty pages, and wait in reclaim until the disk has written them.

use timeline::cgroup::ancestors;
use timeline::signals::{
    ALLOCSTALL, CGROUP_CURRENT, CGROUP_EVENTS_MAX, CGROUP_FILE_DIRTY, CGROUP_REFAULT_FILE,
    MEM_AVAILABLE, PGPGOUT, PSI_MEMORY_SOME, PSWPOUT,
};

use crate::measures::cgroups;
use crate::measures::readings::{SWAP_OUT_NOTABLE, swapped_in};
use crate::measures::writeback::{
    CgroupWrites, LIMIT_HITS, UNWRITTEN_OF_LIMIT_MIN, background_level, filled_cgroups,
    is_far_from_limit, may_fill, other_refaulting_cgroup, refaults_of,
};
use crate::prelude::*;
use crate::remedy;
use crate::rule::DIRTY_LIMITS;
use crate::trigger::{computed_of, total};

declare_rule! {
    /// Writers in a cgroup of v1 wait for the disk: their own dirty pages fill the cgroup up to its limit.
    ///
    /// ## What it means
    /// Cgroup v1 has no dirty limits of its own, and the host's are shares of RAM: a container of 256 MiB is full of
    /// dirty pages long before the host begins to write. At its limit each new page has to be reclaimed from the
    /// cgroup, there are no clean ones, and the writer waits in reclaim until the disk has written some. So does every
    /// other task of the cgroup that needs a page. The host has memory to spare.
    /// ## How it is recognised
    /// For {STALL} or longer tasks of the host wait for memory while the cgroup hits its limit ten times a second or
    /// more, in the mean of {BETWEEN_BURSTS}: a writer that waits for a slow disk hits none meanwhile. Dirty pages plus
    /// pages under writeback are, in the mean, {UNWRITTEN_OF_LIMIT_MIN} of the cgroup's limit or more. The host's dirty
    /// pages are at most half of its own level. It is probable, not confirmed: v1 does not count the waits of a cgroup.
    /// ## Not this
    /// - A cgroup that reads files through its limit: its pages are clean, and reclaim drops them at once.
    /// - `dirty-throttle`: the host's own limit is reached; every writer waits.
    /// - `cgroup-dirty-throttle`: the same on v2, which throttles the writers of a cgroup before it is full.
    /// - `cgroup-cache-starved`: the cgroup itself reads evicted files again: that is waiting for memory too. Where
    ///   another cgroup does, the waits may be of both, and the finding is only possible: v1 does not count them apart.
    /// - The host itself swaps in, reclaims for allocations, or has little available.
    /// ## What to do
    /// Let the program use O_DIRECT, or call sync_file_range or fdatasync as it writes; or move to cgroup v2. The
    /// kernel can also write earlier, unless it does: `vm.dirty_background_bytes` of {WRITTEN_FROM} of the limit, of
    /// the smallest where several cgroups are full. That helps before a fast disk. Measured, November 2026: a writer in
    /// 64 MiB, memory stalls fell from 18 % to 6 %, and 11 % more was written; in 40 MiB on a disk of 10 MiB/s they
    /// fell from 73 % to 44 %, and the limit was hit as often. A limit of a quarter more ended nothing. Verify: tasks
    /// wait less for memory during the same writes.
    /// ## References
    /// - kernel Documentation/admin-guide/cgroup-v1/memory.rst, Reclaim
    /// - kernel mm/vmscan.c, shrink_folio_list and reclaim_throttle
    pub(crate) RULE = {
        id: "cgroup-dirty-reclaim", since: "0.1.0", class: Limit,
        numbers: [STALL, BETWEEN_BURSTS, UNWRITTEN_OF_LIMIT_MIN, WRITTEN_FROM],
        trigger: trigger, waits: Memory, story: story,
        cause: "The levels from which the kernel writes dirty pages are those of the host; a \
                cgroup of v1 has none of its own.",
        verify: "memtide check --for 1m during the same writes: tasks wait less for memory",
        explained_by: DIRTY_LIMITS,
    }
}

/// From one burst of limit hits to the next: an engineering choice. Measured, November 2026, a disk of 10 MiB/s and a limit
/// of 40 MiB: 4 s at most.
const BETWEEN_BURSTS: Span = Span::from_secs(6);

/// With less available, the host may be short itself: an engineering choice.
const PLENTY: Ratio = Ratio::from_percent(15.0);
/// Where the kernel is to begin to write, of the cgroup's limit: an engineering choice.
const WRITTEN_FROM: Ratio = Ratio::from_percent(25.0);
/// Writers that wait for a disk keep it busy: an engineering choice.
const WRITTEN: BytesPerSecond = BytesPerSecond::new(1_048_576.0);

/// How sure it can be that the waits of the host are those of the writers: engineering choices.
const ALONE: f64 = 0.75;
const BESIDE_READERS: f64 = 0.5;

const WHO_WAITED: &str = "cgroup v1 does not count who waited: the stack of a writer \
                          (/proc/PID/stack) has reclaim_throttle or folio_wait_writeback";
const NO_REFAULTS: &str = "this kernel counts neither who waited nor the refaults of a cgroup of \
                           v1, so it may read evicted files again: the stack of a writer \
                           (/proc/PID/stack) has reclaim_throttle or folio_wait_writeback";

fn trigger() -> Trigger {
    let hits: Reading<PerSecond<Count>> = computed_of("limit hits of the cgroup", recent_hits);
    Trigger::on(
        Subjects::Each(Entity::Cgroup, may_fill),
        STALL,
        all![
            total(CGROUP_EVENTS_MAX).at_least("limit hits of the cgroup so far", Count::new(1)),
            hits.at_least("limit hits of the cgroup", LIMIT_HITS),
            // The kernel counts no allocation stall where a cgroup is reclaimed (mm/vmscan.c, do_try_to_free_pages).
            stall(PSI_MEMORY_SOME).at_least("memory stalls", PressureWindow::MEMORY),
            rate(ALLOCSTALL)
                .at_most("allocation stalls", PressureWindow::ALLOCATION_STALLS)
                .if_measured(),
            swapped_in().at_most("swapped in", SWAP_OUT_NOTABLE).if_measured(),
            gauge(MEM_AVAILABLE).at_least("available", ram().share(PLENTY)).if_measured(),
            is_far_from_limit(),
            // Writeback of a cgroup contains swap-out.
            rate(PSWPOUT).at_most("swapped out", SWAP_OUT_NOTABLE).if_measured(),
        ],
    )
}

/// Limit hits of the time before each sample: a writer that waits for a slow disk hits no limit meanwhile.
fn recent_hits(cx: &Evidence<'_>, group: &EntitySeries) -> Result<Numbers, Missing> {
    let hits = cx.timeline.rate_of(group, CGROUP_EVENTS_MAX);
    let hits = hits.ok_or_else(|| cx.lacks_signal(CGROUP_EVENTS_MAX.id()))?;
    Ok(hits.mean_before(BETWEEN_BURSTS).cast())
}

fn story<'a>(cx: &Evidence<'a>, incident: &Incident<'a>) -> Result<Outcome, Missing> {
    let (group, stretch) = (incident.entity()?, &incident.stretch);
    let name = cgroups::called(cx, group);
    let writes = CgroupWrites::during(cx, group, stretch)?;
    let CgroupWrites { limit, mean, .. } = writes;
    if !writes.fill_it() {
        return clear!("{mean} of {name} was unwritten, of a limit of {limit}");
    }
    let hits = writes.hits.ok_or_else(|| Missing::same_time(CGROUP_EVENTS_MAX.def()))?;
    if hits < LIMIT_HITS {
        return clear!("{name} hit its limit {hits}");
    }
    let written = cx.mean_rate(PGPGOUT, stretch);
    if let Some(written) = written.filter(|written| *written < WRITTEN) {
        return clear!("only {written} was written to disks");
    }
    let refaults = refaults_of(cx, group, stretch);
    if let Some(refaults) = refaults.filter(|refaults| *refaults >= READ_AGAIN) {
        return clear!(
            "{name} reads evicted files again ({refaults}), which is waiting for memory too"
        );
    }
    let other = other_refaulting_cgroup(cx, group, stretch);
    let open = refaults.map_or(NO_REFAULTS, |_| WHO_WAITED);
    let stalls = PressureWindow::during(cx, stretch);
    let share = mean.ratio_of(limit).unwrap_or_default();
    let title = Title::from(format!(
        "Writers in {name} wait for the disk: {share} of its limit of \
                                     {limit} is unwritten data, and a cgroup of v1 that meets its \
                                     limit waits until the disk has written some."
    ))
    .then(stalls.sentence_beside_a_cgroup());
    let usage = cx.timeline.gauge_of(group, CGROUP_CURRENT);
    let used = usage.and_then(|usage| usage.max_in(stretch));
    Ok(RULE
        .found(Severity::Warning, title)
        .graph("unwritten data of the cgroup", &writes.unwritten)
        .shows_from(
            CGROUP_FILE_DIRTY,
            mean,
            writes.filled_from(),
            None,
            format!("{mean} of the cgroup dirty or under writeback, of a limit of {limit}"),
        )
        .counts_as("the cgroup's dirty pages")
        .shows_from(
            CGROUP_EVENTS_MAX,
            hits,
            LIMIT_HITS,
            None,
            format!("the cgroup hit its limit {hits}"),
        )
        .counts_as("its limit hits")
        .with(used, |finding, (used, _)| {
            finding.shows(CGROUP_CURRENT, used, None, format!("the cgroup had up to {used}"))
        })
        .shows_stalls(&stalls)
        .with(other, |finding, (other, refaults)| {
            let text = read_beside(cx, group, other, refaults);
            finding.shows(CGROUP_REFAULT_FILE, refaults, None, text)
        })
        .shows_lowest(cx, MEM_AVAILABLE, stretch, |least| {
            format!("at least {least} available on the host")
        })
        .with(refaults, |finding, refaults| {
            let why = format!("it reads no evicted files again ({refaults})");
            finding.not("cgroup-cache-starved", why)
        })
        .not("dirty-throttle", "the host is far from its own limit of dirty pages")
        .fix(remedy::write_otherwise(true))
        .with(earlier_writes(cx, stretch, limit), Finding::fix)
        .affects([Affected::new("cgroup", &group.key, format!("{mean} unwritten, limit {limit}"))])
        .sure_by_kinds(cx, open)
        .sure_at_most(if other.is_some() { BESIDE_READERS } else { ALONE })
        .into())
}

/// Who reads evicted files again beside the writers: of a cgroup around them it is its own tasks.
fn read_beside(
    cx: &Evidence<'_>,
    group: &EntitySeries,
    other: &EntitySeries,
    refaults: BytesPerSecond,
) -> String {
    let is_around = ancestors(&group.key).any(|above| above == other.key);
    let who = if is_around {
        format!("what is in {} and in no cgroup below it", other.key)
    } else {
        cgroups::called(cx, other)
    };
    format!(
        "{who} reads evicted files again ({refaults}): part of the host's stalls may be its own"
    )
}

/// Lets the kernel write before the smallest cgroup that is full of unwritten data is full; `None` where it does.
fn earlier_writes(cx: &Evidence<'_>, stretch: &Stretch, limit: Bytes) -> Option<Fix> {
    let limits = filled_cgroups(cx, stretch).map(|(_, writes)| writes.limit);
    let smallest = limits.fold(limit, Bytes::min);
    let level = smallest.share(WRITTEN_FROM);
    let background = background_level().track(cx).ok();
    let is_lower = background.and_then(|track| track.max_in(stretch));
    if is_lower.is_some_and(|(background, _)| background <= level) {
        return None;
    }
    Some(Fix::say(format!(
        "Before a fast disk it also helps to let the kernel begin to write earlier, on the whole host: \
         vm.dirty_background_bytes={level}, {WRITTEN_FROM} of the limit of {smallest}.",
        level = level.get()
    )))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::testing::{Case, amid_calm, clear, found, not_evaluated, times};
    use timeline::Entity::Cgroup;
    use timeline::facts::CgroupMode;
    use timeline::signals::{
        CGROUP_FILE_WRITEBACK, CGROUP_MAX, MEM_DIRTY, MEM_TOTAL, MEM_WRITEBACK,
        NR_DIRTY_BACKGROUND_THRESHOLD, NR_DIRTY_THRESHOLD, PSI_MEMORY_SOME, PSWPIN,
    };
    use units::Limit;

    const MIB: fn(u64) -> Bytes = Bytes::from_mib;
    const JOB: &str = "/docker/job";

    /// A host of v1, on which tasks wait for memory 18 % of the time, with this much dirty in all.
    fn host(case: Case, dirty: u64) -> Case {
        let mut case = case
            .gauge(MEM_TOTAL, MIB(8000))
            .gauge(MEM_AVAILABLE, MIB(6000))
            .gauge(MEM_DIRTY, MIB(dirty))
            .gauge(MEM_WRITEBACK, MIB(30))
            .gauge(NR_DIRTY_THRESHOLD, Pages::new(1200 * 256))
            .gauge(NR_DIRTY_BACKGROUND_THRESHOLD, Pages::new(600 * 256));
        case.facts.cgroup_mode = Some(CgroupMode::V1);
        case
    }

    /// A cgroup with a limit of 64 MiB, of which this much is dirty, second by second.
    fn job(case: Case, dirty: &[u64]) -> Case {
        let dirty: Vec<Bytes> = dirty.iter().map(|mib| MIB(*mib)).collect();
        case.gauge_of(Cgroup, JOB, CGROUP_MAX, Limit::Bytes(MIB(64)))
            .gauge_of(Cgroup, JOB, CGROUP_CURRENT, MIB(63))
            .gauge_of(Cgroup, JOB, CGROUP_FILE_WRITEBACK, Bytes::ZERO)
            .gauge_steps_of(Cgroup, JOB, CGROUP_FILE_DIRTY, &dirty)
    }

    /// Bursts, as a file is truncated and written again: in the mean 30 MiB.
    fn bursts(seconds: usize) -> Vec<u64> {
        [60, 30, 0].into_iter().cycle().take(seconds + 1).collect()
    }

    fn writing() -> Case {
        job(host(Case::over(30), 40), &bursts(30)).counter(PSI_MEMORY_SOME, 180_000).counter_of(
            Cgroup,
            JOB,
            CGROUP_EVENTS_MAX,
            500,
        )
    }

    #[test]
    fn writers_that_fill_a_cgroup_of_v1_are_found_and_probable() {
        let finding = found(RULE, &writing());
        assert_eq!(finding.severity, Severity::Warning);
        assert_eq!(finding.confidence.word(), "probable");
        assert!(finding.title.contains("of its limit of 64 MiB is unwritten"), "{}", finding.title);
        assert_eq!(finding.fixes[0].changes, []);
        let level = &finding.fixes[1].what;
        assert!(level.contains("vm.dirty_background_bytes=16777216"), "{level}");
    }

    #[test]
    fn clear_where_files_are_read_and_where_the_limit_is_hardly_hit() {
        let reading = job(host(Case::over(30), 40), &[0])
            .counter(PSI_MEMORY_SOME, 180_000)
            .counter_of(Cgroup, JOB, CGROUP_EVENTS_MAX, 5_000);
        clear(RULE, &reading);
        clear(
            RULE,
            &job(host(Case::over(30), 40), &bursts(30))
                .counter(PSI_MEMORY_SOME, 180_000)
                .counter_of(Cgroup, JOB, CGROUP_EVENTS_MAX, 1),
        );
    }

    #[test]
    fn clear_where_evicted_files_are_read_again() {
        let refaults = |n| writing().counter_of(Cgroup, JOB, CGROUP_REFAULT_FILE, n);
        clear(RULE, &refaults(20_000));
        let finding = found(RULE, &refaults(30));
        assert!(finding.ruled_out.iter().any(|out| out.id == "cgroup-cache-starved"));
        // An old kernel does not count them.
        let open = found(RULE, &writing()).confidence.why;
        assert!(open.contains("nor the refaults"), "{open}");
    }

    #[test]
    fn refaults_of_others_leave_a_doubt_and_those_counted_around_it_too_only_with_its_own() {
        let refaults = |key, n| writing().counter_of(Cgroup, key, CGROUP_REFAULT_FILE, n);
        let beside = found(RULE, &refaults("/docker/other", 5_000));
        assert_eq!(beside.confidence.word(), "possible");
        let texts: Vec<_> = beside.evidence.iter().map(|line| line.text.as_str()).collect();
        let of_other = |text: &&str| text.starts_with("cgroup /docker/other reads evicted files");
        assert!(texts.iter().any(of_other), "{texts:?}");
        for (key, n) in [("/docker/other", 50), ("/docker", 5_000), ("/", 5_000)] {
            assert_eq!(found(RULE, &refaults(key, n)).confidence.word(), "probable", "{key}");
        }
        let around = refaults("/", 5_000)
            .counter_of(Cgroup, "/docker", CGROUP_REFAULT_FILE, 0)
            .counter_of(Cgroup, JOB, CGROUP_REFAULT_FILE, 0);
        let finding = found(RULE, &around);
        assert_eq!(finding.confidence.word(), "possible");
        let texts: Vec<_> = finding.evidence.iter().map(|line| line.text.as_str()).collect();
        let of_root =
            |text: &&str| text.starts_with("what is in / and in no cgroup below it reads");
        assert!(texts.iter().any(of_root), "{texts:?}");
        // One that reads through its limit drops clean pages at once.
        found(RULE, &writing().counter_of(Cgroup, "/docker/other", CGROUP_EVENTS_MAX, 5_000));
    }

    #[test]
    fn a_level_that_is_low_enough_is_not_advised_again() {
        let at = |mib: u64| {
            let case = writing();
            let case = case.gauge(NR_DIRTY_THRESHOLD, Pages::new(1200 * 256));
            found(RULE, &case.gauge(NR_DIRTY_BACKGROUND_THRESHOLD, Pages::new(mib * 256)))
        };
        let advises = |mib| at(mib).fixes.len() == 2;
        assert!(advises(17));
        assert!(!advises(16));
        assert!(!advises(4));
    }

    #[test]
    fn of_two_full_cgroups_the_smaller_decides() {
        let case = writing()
            .gauge_of(Cgroup, "/small", CGROUP_MAX, Limit::Bytes(MIB(32)))
            .gauge_of(Cgroup, "/small", CGROUP_FILE_WRITEBACK, Bytes::ZERO)
            .gauge_of(Cgroup, "/small", CGROUP_FILE_DIRTY, MIB(20))
            .counter_of(Cgroup, "/small", CGROUP_EVENTS_MAX, 900);
        let small = &found(RULE, &case).fixes[1].what;
        assert!(small.contains("vm.dirty_background_bytes=8388608"), "{small}");
    }

    /// A writer that waits for a slow disk: at the limit all the while, which it hits in bursts, some seconds apart.
    fn on_a_slow_disk(hits: u64) -> Case {
        let hits: Vec<u64> = [hits, 0, 0, 0].into_iter().cycle().take(31).collect();
        job(host(Case::over(30), 40), &[60; 31]).counter(PSI_MEMORY_SOME, 800_000).counter_steps_of(
            Cgroup,
            JOB,
            CGROUP_EVENTS_MAX,
            &hits,
        )
    }

    #[test]
    fn a_writer_that_waits_for_a_slow_disk_hits_no_limit_meanwhile() {
        found(RULE, &on_a_slow_disk(4_000));
        clear(RULE, &on_a_slow_disk(20));
    }

    #[test]
    fn clear_where_the_host_itself_is_short_or_reclaims_or_nothing_is_written() {
        let writing_out = || writing().counter(PGPGOUT, 30 << 20);
        found(RULE, &writing_out());
        clear(RULE, &writing_out().gauge(MEM_AVAILABLE, MIB(300)));
        clear(RULE, &writing_out().counter(ALLOCSTALL, 40));
        clear(RULE, &writing_out().counter(PSWPIN, 3_000).counter(PSWPOUT, 0));
        clear(RULE, &writing().counter(PGPGOUT, 10_000));
    }

    #[test]
    fn the_limit_of_the_time_counts_and_not_an_earlier_one() {
        let limits: Vec<Limit> =
            (0..31).map(|second| Limit::Bytes(MIB(if second == 0 { 10 } else { 400 }))).collect();
        clear(RULE, &writing().gauge_steps_of(Cgroup, JOB, CGROUP_MAX, &limits));
    }

    #[test]
    fn clear_where_nobody_waits() {
        clear(RULE, &writing().counter(PSI_MEMORY_SOME, 5_000));
    }

    #[test]
    fn clear_when_the_host_is_at_its_own_limit_swaps_out_or_has_v2() {
        clear(RULE, &host(writing(), 900));
        clear(RULE, &writing().counter(PSWPOUT, 3_000));
        let mut new = writing();
        new.facts.cgroup_mode = Some(CgroupMode::V2);
        clear(RULE, &new);
    }

    #[test]
    fn finds_30_s_within_an_hour() {
        let hour = |hits| {
            job(host(Case::over(3600), 40), &bursts(3600))
                .counter(PSI_MEMORY_SOME, 180_000)
                .counter_steps_of(Cgroup, JOB, CGROUP_EVENTS_MAX, &amid_calm(hits, 0))
        };
        // The mean of the hits falls below its threshold some seconds after the last.
        assert_eq!(times(&found(RULE, &hour(500))), [(1800, 1835)]);
        clear(RULE, &hour(5));
    }

    #[test]
    fn not_evaluated_without_limit_hits() {
        let case = job(host(Case::over(30), 40), &bursts(30)).counter(PSI_MEMORY_SOME, 180_000);
        assert_eq!(not_evaluated(RULE, &case).names, ["cgroup.events_max"]);
    }
}
