//! A control group at its limit drops its files and reads them again.

use timeline::{
    EntitySeries, Stretch, Track,
    signals::{
        CGROUP_ANON, CGROUP_CURRENT, CGROUP_EVENTS_MAX, CGROUP_EVENTS_OOM_KILL, CGROUP_FILE,
        CGROUP_MAX, CGROUP_PSI_IO_FULL, CGROUP_PSI_IO_SOME, CGROUP_PSI_MEMORY_FULL,
        CGROUP_PSI_MEMORY_SOME, CGROUP_REFAULT_FILE, CGROUP_SHMEM, MEM_AVAILABLE,
    },
};
use units::{Bytes, BytesPerSecond, Count, PerSecond, Ratio, Span};

use super::oom_cgroup::rounded;
use super::page_cache_thrash::{READ_AGAIN, has_free};
use crate::evidence::Evidence;
use crate::finding::{Affected, Held, Severity};
use crate::groups::{self, Knob};
use crate::missing::{Missing, Need};
use crate::rule::{Outcome, clear, declare_rule};
use crate::stalls::Stalls;

declare_rule! {
    /// A control group at its memory limit has no room for the files it uses, and reads them again and again.
    ///
    /// ## What it means
    /// Page cache counts into a control group's memory. When anonymous memory fills the limit, the group's own file pages
    /// are what the kernel drops, and they are read again a moment later: slow I/O in a container on a host with free
    /// memory. No counter of the host's reclaim moves.
    /// ## How it is recognised
    /// The group's memory is at 95 % of its limit or more, it keeps running into the limit (the `max` event, v1
    /// `memory.failcnt`), and its file pages come back after eviction at 1 MiB/s or more, for long; in small
    /// groups the kernel forgets most of what it evicted, so that is a lower bound. Where the group does
    /// not count them, the host's count stands in while the host has free memory. It is a note where nothing in the group
    /// waits (memory 10 % or I/O 10 % of the time), and critical where nothing ran for a quarter of the time.
    /// ## Not this
    /// - `page-cache-thrash`: the host is short, not one group.
    /// - `oom-cgroup`: nothing was left to drop, so the kernel killed.
    /// - Streaming: the group's cache is full of what was read once, and nothing comes back.
    /// ## What to do
    /// Now: raise the limit to anonymous memory plus the files in use. For good: the same in the unit or pod; a
    /// database's own cache counts twice unless it reads with O_DIRECT. Verify: what comes back after eviction in the group
    /// is below 2 % of what it reads.
    /// ## References
    /// - kernel Documentation/admin-guide/cgroup-v2.rst, memory.stat and memory.events
    /// - kernel mm/workingset.c: what counts as a refault
    pub(crate) RULE = { id: "cgroup-cache-starved", since: "0.1.0", purpose: Finding, check: check }
}

/// Charges are batched (the kernel's MEMCG_CHARGE_BATCH), so a group at its limit reads a little below it.
const AT_LIMIT: Ratio = Ratio::from_percent(95.0);
/// As in cgroup-high-throttle.
const STALLED: Ratio = Ratio::from_percent(10.0);
const HOLD: Span = Span::from_mins(10);

/// A group that reads its files again.
struct Starved<'a> {
    group: &'a EntitySeries,
    limit: Bytes,
    again: Track<BytesPerSecond>,
    came_back: BytesPerSecond,
    /// Whether the group counts refaults itself.
    counted: bool,
    /// How often it ran into its limit; `None` where that is not counted.
    hits: Option<f64>,
    stretch: Stretch,
    /// Every time at which it re-read them.
    held_when: Held,
}

fn check(cx: &Evidence<'_>) -> Result<Outcome, Missing> {
    let limited: Vec<_> = groups::with(cx, CGROUP_MAX)?
        .into_iter()
        .filter_map(|group| Some((group, groups::limit(cx, group, CGROUP_MAX)?)))
        .collect();
    if limited.is_empty() {
        return clear!("no control group has a memory limit");
    }
    if cx.is_single_look() {
        return Err(Missing::because(
            vec![CGROUP_REFAULT_FILE.def().name],
            Need::TwoLooks,
        ));
    }
    let page = cx.page_size()?;
    let counts = |group: &EntitySeries| cx.timeline.rate_of(group, CGROUP_REFAULT_FILE).is_some();
    let of_host = match cx.refaults_file() {
        Ok(again) => Some(again.to_bytes(page)),
        Err(missing) if !limited.iter().any(|(group, _)| counts(group)) => return Err(missing),
        Err(_) => None,
    };
    let mut starved: Vec<_> = limited
        .iter()
        .filter_map(|(group, limit)| {
            let (again, counted) = match cx.timeline.rate_of(group, CGROUP_REFAULT_FILE) {
                Some(own) => (own.to_bytes(page), true),
                None => (of_host.clone()?, false),
            };
            starved(cx, group, *limit, again, counted)
        })
        .collect();
    starved.sort_by(|a, b| b.came_back.get().total_cmp(&a.came_back.get()));
    let Some(worst) = starved.first() else {
        return clear!(
            "control groups with a memory limit: {}; none re-read its files at it",
            limited.len()
        );
    };

    let stretch = &worst.stretch;
    let mean = |signal| {
        cx.timeline
            .gauge_of(worst.group, signal)
            .and_then(|track| track.mean_in(stretch))
    };
    let share = |signal| {
        let stalled = cx.timeline.rate_of(worst.group, signal)?;
        stalled.to_share().mean_in(stretch)
    };
    let (memory, io) = (share(CGROUP_PSI_MEMORY_SOME), share(CGROUP_PSI_IO_SOME));
    // The host's stalls stand in for a group without pressure files.
    let host = Stalls::during(cx, stretch);
    let waits = if memory.is_some() || io.is_some() {
        [memory, io].iter().flatten().any(|some| *some >= STALLED)
    } else {
        host.any() || !host.measured()
    };
    let full = [share(CGROUP_PSI_MEMORY_FULL), share(CGROUP_PSI_IO_FULL)]
        .into_iter()
        .flatten()
        .map(Ratio::get)
        .reduce(f64::max)
        .map(Ratio::new);
    let severity = match full {
        _ if !waits => Severity::Info,
        Some(full) if full >= Stalls::STANDSTILL => Severity::Critical,
        _ => Severity::Warning,
    };
    let anon = mean(CGROUP_ANON);
    // Shared memory counts as files' pages there; kernels before 4.5 do not tell it apart.
    let cache = mean(CGROUP_FILE).map(|file| match mean(CGROUP_SHMEM) {
        Some(shared) => file.saturating_sub(shared),
        None => file,
    });
    let leaves = cache.map_or_else(String::new, |cache| format!(" leaves {cache} for files"));
    let available = cx
        .gauge(MEM_AVAILABLE)
        .ok()
        .and_then(|available| available.min_in(stretch))
        .map(|(least, _)| least);
    let host_has = available.map_or_else(String::new, |available| {
        format!(" The host had {available} available.")
    });
    let too_small = if leaves.is_empty() {
        " is too small"
    } else {
        ""
    };
    let mut finding = RULE
        .found(
            severity,
            format!(
                "Control group {} re-reads its files ({} came back after eviction): its limit of {}{leaves}{too_small}.{host_has}",
                worst.group.label, worst.came_back, worst.limit
            ),
        )
        .during(worst.held_when.clone())
        .graph("read again after eviction", &worst.again)
        .shows_from(
            CGROUP_REFAULT_FILE,
            worst.came_back, READ_AGAIN,
            None,
            format!(
                "{} of files came back after eviction (refaults{})",
                worst.came_back,
                if worst.counted { "" } else { ", counted by the host" }
            ),
        );
    if let Some(current) = mean(CGROUP_CURRENT) {
        finding = finding.shows_from(
            CGROUP_CURRENT,
            current,
            worst.limit.share(AT_LIMIT),
            None,
            format!("{current} of the limit of {} used", worst.limit),
        );
    }
    if let Some(hits) = worst.hits {
        let hits = Count::new(rounded(hits));
        finding = finding.shows_from(
            CGROUP_EVENTS_MAX,
            hits,
            Count::new(1),
            None,
            format!("{hits} times it ran into the limit"),
        );
    }
    if let Some(anon) = anon {
        finding = finding.shows(CGROUP_ANON, anon, None, format!("{anon} of it anonymous"));
    }
    if let Some(cache) = cache {
        finding = finding.shows(
            CGROUP_FILE,
            cache,
            None,
            format!("{cache} of it page cache"),
        );
    }
    for (signal, some, what) in [
        (CGROUP_PSI_MEMORY_SOME, memory, "memory"),
        (CGROUP_PSI_IO_SOME, io, "I/O"),
    ] {
        if let Some(some) = some {
            finding = finding.shows_from(
                signal,
                some,
                STALLED,
                None,
                format!("{what} stalls of the group: some {some}"),
            );
        }
    }
    if let Some(available) = available {
        finding = finding
            .shows(
                MEM_AVAILABLE,
                available,
                None,
                format!("at least {available} available on the host"),
            )
            .not(
                "page-cache-thrash",
                format!("the host had {available} available"),
            );
    }
    let mut kinds = vec!["the group at its limit"];
    if worst.counted {
        kinds.push("its refaults");
    }
    if waits && (memory.is_some() || io.is_some()) {
        kinds.push("its stalls");
    }
    let open = if worst.counted {
        ""
    } else {
        "the group does not count its refaults; the host's stand in"
    };
    let needs = anon.map_or_else(
        || "its anonymous memory plus the files it uses".to_owned(),
        |anon| format!("{anon} of anonymous memory plus the files it uses"),
    );
    let wanted = groups::more(worst.limit);
    let raised = groups::set_limit(cx, worst.group, Knob::kills_at(cx), wanted);
    Ok(finding
        .not("oom-cgroup", "nothing was killed; there were file pages to drop")
        .cause(format!("The group needs {needs}, which is more than its limit of {}.", worst.limit))
        .fix(raised.told(format!("Raise its limit (it was {}) to {needs}, or make the program smaller; a quarter more is a beginning.", worst.limit)))
        .verify("the group's workingset_refault_file no longer rises under the same load, and max in its memory.events neither")
        .affects(starved.iter().take(5).map(|s| Affected {
            kind: "cgroup",
            name: s.group.label.clone(),
            what: format!("{} came back, limit {}", s.came_back, s.limit),
        }))
        .sure(cx.confidence(&kinds, open))
        .see("kernel: Documentation/admin-guide/cgroup-v2.rst, memory.stat")
        .see("kernel: mm/workingset.c")
        .into())
}

fn starved<'a>(
    cx: &Evidence<'a>,
    group: &'a EntitySeries,
    limit: Bytes,
    again: Track<BytesPerSecond>,
    counted: bool,
) -> Option<Starved<'a>> {
    let current = cx.timeline.gauge_of(group, CGROUP_CURRENT)?;
    let condition = current
        .at_least(limit.share(AT_LIMIT))
        .and(&again.at_least(READ_AGAIN));
    let stretch = cx.sustained(&condition, HOLD)?;
    let hits = groups::own_events(cx, group, CGROUP_EVENTS_MAX);
    let kills = groups::own_events(cx, group, CGROUP_EVENTS_OOM_KILL);
    let by_its_limit = |stretch: &Stretch| {
        let some = |own: &Track<PerSecond<Count>>| own.integral_in(stretch) >= 1.0;
        // Another counter says that it never came to the limit: then something else evicts.
        (counted || has_free(cx, stretch))
            && hits.as_ref().is_none_or(some)
            && !kills.as_ref().is_some_and(some)
    };
    if !by_its_limit(&stretch) {
        return None;
    }
    let held_when = cx.each_time(stretch, &condition, HOLD, by_its_limit);
    Some(Starved {
        group,
        limit,
        came_back: again.mean_in(&stretch)?,
        again,
        counted,
        hits: hits.map(|own| own.integral_in(&stretch)),
        stretch,
        held_when,
    })
}

/// Whether the group was at its own limit during a stretch: then its reclaim is not the host's.
pub(crate) fn at_its_limit(cx: &Evidence<'_>, group: &EntitySeries, stretch: &Stretch) -> bool {
    let (Some(limit), Some(current)) = (
        groups::limit(cx, group, CGROUP_MAX),
        cx.timeline
            .gauge_of(group, CGROUP_CURRENT)
            .and_then(|current| current.mean_in(stretch)),
    ) else {
        return false;
    };
    current >= limit.share(AT_LIMIT)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::testing::{Case, clear, found, not_evaluated};
    use timeline::Entity::Cgroup;
    use timeline::facts::CgroupMode;
    use timeline::signals::{MEM_FREE, MEM_TOTAL, REFAULT_FILE};
    use units::Limit;

    const WEB: &str = "/web";

    /// A group of 80 MiB limit that holds `held`, to which `pages` file pages a second come back.
    fn web(held: u64, pages: u64, hits: u64) -> Case {
        Case::over(30)
            .gauge(MEM_TOTAL, Bytes::from_mib(2000))
            .gauge(MEM_FREE, Bytes::from_mib(1500))
            .gauge(MEM_AVAILABLE, Bytes::from_mib(1600))
            .counter(REFAULT_FILE, pages)
            .gauge_of(Cgroup, WEB, CGROUP_MAX, Limit::Bytes(Bytes::from_mib(80)))
            .gauge_of(Cgroup, WEB, CGROUP_CURRENT, Bytes::from_mib(held))
            .gauge_of(Cgroup, WEB, CGROUP_ANON, Bytes::from_mib(71))
            .gauge_of(Cgroup, WEB, CGROUP_FILE, Bytes::from_mib(8))
            .counter_of(Cgroup, WEB, CGROUP_EVENTS_MAX, hits)
    }

    fn counted(case: Case, pages: u64) -> Case {
        case.counter_of(Cgroup, WEB, CGROUP_REFAULT_FILE, pages)
    }

    fn stalled(case: Case, io: u64) -> Case {
        case.counter_of(Cgroup, WEB, CGROUP_PSI_IO_SOME, io * 10_000)
            .counter_of(Cgroup, WEB, CGROUP_PSI_IO_FULL, io * 9_000)
    }

    #[test]
    fn a_group_that_rereads_its_files_at_its_limit_is_found() {
        let finding = found(RULE, &stalled(counted(web(79, 12_000, 200), 12_000), 20));
        assert_eq!(finding.severity, Severity::Warning);
        assert_eq!(finding.confidence.word(), "confirmed");
        assert!(
            finding.title.contains("leaves 8 MiB for files"),
            "{}",
            finding.title
        );
        let finding = found(RULE, &stalled(counted(web(79, 12_000, 200), 12_000), 60));
        assert_eq!(finding.severity, Severity::Critical);
    }

    #[test]
    fn one_that_waits_for_nothing_is_a_note() {
        let finding = found(RULE, &stalled(counted(web(79, 12_000, 200), 12_000), 1));
        assert_eq!(finding.severity, Severity::Info);
    }

    #[test]
    fn on_v1_the_hosts_refaults_stand_in() {
        let mut case = web(79, 12_000, 200);
        case.facts.cgroup_mode = Some(CgroupMode::V1);
        assert_eq!(found(RULE, &case).confidence.word(), "probable");
        // On a host that is short itself they prove nothing.
        clear(RULE, &case.gauge(MEM_FREE, Bytes::from_mib(20)));
    }

    #[test]
    fn clear_below_the_limit_and_while_streaming() {
        clear(RULE, &counted(web(60, 12_000, 0), 12_000));
        clear(RULE, &counted(web(79, 0, 200), 0));
        clear(RULE, &counted(web(79, 12_000, 0), 12_000));
    }

    #[test]
    fn a_group_in_which_the_kernel_killed_is_left_to_oom_cgroup() {
        let case = counted(web(79, 12_000, 200), 12_000);
        clear(
            RULE,
            &case.counter_of(Cgroup, WEB, CGROUP_EVENTS_OOM_KILL, 1),
        );
    }

    #[test]
    fn without_limits_it_is_clear_and_without_groups_not_evaluated() {
        clear(
            RULE,
            &web(79, 0, 0).gauge_of(Cgroup, WEB, CGROUP_MAX, Limit::Unlimited),
        );
        assert_eq!(not_evaluated(RULE, &Case::over(30)).names, ["cgroup.max"]);
        let once =
            Case::once().gauge_of(Cgroup, WEB, CGROUP_MAX, Limit::Bytes(Bytes::from_mib(80)));
        assert_eq!(not_evaluated(RULE, &once).need, Need::TwoLooks);
    }
}
