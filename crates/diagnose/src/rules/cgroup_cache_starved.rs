//! A control group at its limit drops its files and reads them again.

use timeline::signals::{
    CGROUP_ANON, CGROUP_CURRENT, CGROUP_EVENTS_MAX, CGROUP_EVENTS_OOM_KILL, CGROUP_FILE,
    CGROUP_MAX, CGROUP_PSI_IO_FULL, CGROUP_PSI_IO_SOME, CGROUP_PSI_MEMORY_FULL,
    CGROUP_PSI_MEMORY_SOME, CGROUP_REFAULT_FILE, CGROUP_SHMEM, MEM_AVAILABLE,
};

use crate::measures::cgroups;
use crate::measures::readings::{NOTICED, refaults_file};
use crate::measures::refaults::has_free;
use crate::prelude::*;
use crate::remedy::{self, Knob};

declare_rule! {
    /// A control group at its memory limit has no room for the files it uses, and reads them again and again.
    ///
    /// ## What it means
    /// Page cache counts into a control group's memory. When anonymous memory fills the limit, the group's own file pages
    /// are what the kernel drops, and they are read again a moment later: slow I/O in a container on a host with free
    /// memory. No counter of the host's reclaim moves.
    /// ## How it is recognised
    /// The group's memory is at 95 % of its limit or more, it keeps running into the limit (the `max` event, v1
    /// `memory.failcnt`), and its file pages come back after eviction at 1 MiB/s or more, for 4 s or longer; in small
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
    pub(crate) RULE = { id: "cgroup-cache-starved", since: "0.1.0", class: Limit,
        trigger: trigger, waits: MemoryOrDisk, story: story,
        verify: "the group's workingset_refault_file no longer rises under the same load, and max in its memory.events neither",
    }
}

fn trigger() -> Trigger {
    let full = limit(CGROUP_MAX).share(cgroups::AT_LIMIT);
    let again = rate(CGROUP_REFAULT_FILE).bytes();
    let again = again.at_least("files read again by the group", READ_AGAIN);
    let of_host = refaults_file().bytes();
    let of_host = of_host.at_least("files read again on the host", READ_AGAIN);
    Trigger::on(
        Scope::Each(Entity::Cgroup, has_limit),
        STALL,
        all![
            gauge(CGROUP_CURRENT).at_least("memory of the group", full),
            again.or_without(of_host),
        ],
    )
}

fn has_limit(cx: &Evidence<'_>, group: &EntitySeries) -> bool {
    cgroups::limit(cx, group, CGROUP_MAX).is_some()
}

fn story<'a>(cx: &Evidence<'a>, incident: &Incident<'a>) -> Result<Outcome, Missing> {
    let (group, stretch) = (incident.entity()?, &incident.stretch);
    let starved = Starved::of(cx, group, stretch)?;
    let label = &group.label;
    if let Some(why) = starved.another_reason(cx, group, stretch) {
        return clear!("{label}: {why}");
    }
    let (limit, came_back) = (starved.limit, starved.came_back);
    let waits = Waits::of(cx, group, stretch);
    let mean = |signal| cx.timeline.gauge_of(group, signal)?.mean_in(stretch);
    let anon = mean(CGROUP_ANON);
    // Shared memory counts as files' pages there; kernels before 4.5 do not tell it apart.
    let cache =
        mean(CGROUP_FILE).map(|file| file.saturating_sub(mean(CGROUP_SHMEM).unwrap_or_default()));
    let room = cache.map_or_else(
        || " is too small".to_owned(),
        |cache| format!(" leaves {cache} for files"),
    );
    let available = cx.lowest_in(MEM_AVAILABLE, stretch).map(|(least, _)| least);
    let host = cgroups::while_the_host_had(available);
    let open = if starved.counted {
        ""
    } else {
        "the group does not count its refaults; the host's stand in"
    };
    let needs = anon.map_or_else(
        || "its anonymous memory plus the files it uses".to_owned(),
        |anon| format!("{anon} of anonymous memory plus the files it uses"),
    );
    let raised = remedy::set_limit(cx, group, Knob::kills_at(cx), remedy::more(limit));
    Ok(RULE
        .found(
            waits.severity(),
            format!("Control group {label} re-reads its files ({came_back} came back after eviction): its limit of {limit}{room}.{host}"),
        )
        .graph("read again after eviction", &starved.again)
        .counts_as("the group at its limit")
        .and(|finding| starved.shown_in(cx, group, stretch, finding))
        .with(anon, |it, anon| it.shows(CGROUP_ANON, anon, None, format!("{anon} of it anonymous")))
        .with(cache, |it, cache| it.shows(CGROUP_FILE, cache, None, format!("{cache} of it page cache")))
        .and(|finding| waits.shown_in(finding))
        .with(available, |it, available| {
            let text = format!("at least {available} available on the host");
            it.shows(MEM_AVAILABLE, available, None, text).not("page-cache-thrash", format!("the host had {available} available"))
        })
        .not("oom-cgroup", "nothing was killed; there were file pages to drop")
        .cause(format!("The group needs {needs}, which is more than its limit of {limit}."))
        .fix(raised.told(format!("Raise its limit (it was {limit}) to {needs}, or make the program smaller; a quarter more is a beginning.")))
        .affects([Affected::new("cgroup", label, format!("{came_back} came back, limit {limit}"))])
        .sure_by_kinds(cx, open)
        .into())
}

/// A group that reads its files again.
struct Starved {
    limit: Bytes,
    again: Track<BytesPerSecond>,
    came_back: BytesPerSecond,
    /// Whether the group counts refaults itself.
    counted: bool,
    /// How often it ran into its limit; `None` where that is not counted.
    hits: Option<Count>,
}

impl Starved {
    fn of(cx: &Evidence<'_>, group: &EntitySeries, stretch: &Stretch) -> Result<Self, Missing> {
        let own = cx.rate_of(group, CGROUP_REFAULT_FILE).ok();
        let counted = own.is_some();
        let again = own.map_or_else(|| cx.refaults_file(), Ok)?;
        let again = again.to_bytes(cx.page_size()?);
        let limit = cgroups::limit(cx, group, CGROUP_MAX);
        let signal = CGROUP_MAX.def().name;
        Ok(Self {
            limit: limit.ok_or_else(|| Missing::because(vec![signal], Need::SameTime))?,
            came_back: cx.mean_in(stretch, CGROUP_REFAULT_FILE, &again)?,
            again,
            counted,
            hits: events(cx, group, CGROUP_EVENTS_MAX, stretch),
        })
    }

    /// Why it is not the limit that makes it read again.
    fn another_reason(
        &self,
        cx: &Evidence<'_>,
        group: &EntitySeries,
        stretch: &Stretch,
    ) -> Option<&'static str> {
        let killed = events(cx, group, CGROUP_EVENTS_OOM_KILL, stretch);
        if killed.is_some_and(|killed| killed > Count::ZERO) {
            Some("the kernel killed in it, so nothing was left to drop (oom-cgroup)")
        } else if self.hits == Some(Count::ZERO) {
            Some("files came back after eviction, but it never ran into its limit")
        } else if !self.counted && !has_free(cx, stretch) {
            Some("files came back after eviction, but the host itself was short")
        } else {
            None
        }
    }

    fn shown_in(
        &self,
        cx: &Evidence<'_>,
        group: &EntitySeries,
        stretch: &Stretch,
        finding: Finding,
    ) -> Finding {
        let (limit, came_back) = (self.limit, self.came_back);
        let by = if self.counted {
            ""
        } else {
            ", counted by the host"
        };
        let text = format!("{came_back} of files came back after eviction (refaults{by})");
        let full = limit.share(cgroups::AT_LIMIT);
        let current = cx.timeline.gauge_of(group, CGROUP_CURRENT);
        finding
            .shows_from(CGROUP_REFAULT_FILE, came_back, READ_AGAIN, None, text)
            .counts_if(self.counted, "its refaults")
            .with(current.and_then(|it| it.mean_in(stretch)), |it, current| {
                let text = format!("{current} of the limit of {limit} used");
                it.shows_from(CGROUP_CURRENT, current, full, None, text)
            })
            .with(self.hits, |it, hits| {
                let text = format!("{hits} times it ran into the limit");
                it.shows_from(CGROUP_EVENTS_MAX, hits, Count::new(1), None, text)
            })
    }
}

/// How often something happened in the group itself; `None` where that is not counted.
fn events(
    cx: &Evidence<'_>,
    group: &EntitySeries,
    signal: Signal<Counter<Count>>,
    stretch: &Stretch,
) -> Option<Count> {
    let own = cgroups::own_events(cx, group, signal)?;
    Some(Count::from_f64(own.integral_in(stretch)))
}

/// What part of the time the group's tasks waited.
struct Waits {
    memory: Option<Ratio>,
    io: Option<Ratio>,
    /// Nothing in the group ran.
    full: Option<Ratio>,
    /// Somebody waited long enough to notice.
    any: bool,
    over: Over,
}

impl Waits {
    fn of(cx: &Evidence<'_>, group: &EntitySeries, stretch: &Stretch) -> Self {
        let share = |signal| cgroups::stalled(cx, group, signal, stretch);
        let (memory, io) = (share(CGROUP_PSI_MEMORY_SOME), share(CGROUP_PSI_IO_SOME));
        let full = [share(CGROUP_PSI_MEMORY_FULL), share(CGROUP_PSI_IO_FULL)];
        let any = if memory.is_some() || io.is_some() {
            [memory, io].iter().flatten().any(|some| *some >= NOTICED)
        } else {
            // The host's stalls stand in for a group without pressure files.
            let host = Stalls::during(cx, stretch);
            host.any() || !host.measured()
        };
        let full = full.into_iter().flatten().map(Ratio::get);
        Self {
            memory,
            io,
            full: full.reduce(f64::max).map(Ratio::new),
            any,
            over: Over::of(stretch),
        }
    }

    /// Whether the group's own files show it.
    fn of_group(&self) -> bool {
        self.any && (self.memory.is_some() || self.io.is_some())
    }

    fn severity(&self) -> Severity {
        match self.full {
            _ if !self.any => Severity::Info,
            Some(full) if full >= Stalls::STANDSTILL => Severity::Critical,
            _ => Severity::Warning,
        }
    }

    fn shown_in(&self, finding: Finding) -> Finding {
        let some = [
            (CGROUP_PSI_MEMORY_SOME, self.memory, "memory"),
            (CGROUP_PSI_IO_SOME, self.io, "I/O"),
        ];
        let remark = self.over.remark();
        let each = some
            .into_iter()
            .fold(finding, |finding, (signal, some, what)| {
                finding.with(some, |it, some| {
                    let text = format!("{what} stalls of the group: some {some}{remark}");
                    it.shows_from(signal, some, NOTICED, None, text)
                })
            });
        each.counts_if(self.of_group(), "its stalls")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::testing::{Case, clear, found, incidents, not_evaluated, times};
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
        assert_eq!(
            not_evaluated(RULE, &Case::over(30)).names,
            ["cgroup.current"]
        );
        let once = Case::once()
            .gauge_of(Cgroup, WEB, CGROUP_MAX, Limit::Bytes(Bytes::from_mib(80)))
            .gauge_of(Cgroup, WEB, CGROUP_CURRENT, Bytes::from_mib(79))
            .counter(REFAULT_FILE, 0);
        assert_eq!(not_evaluated(RULE, &once).need, Need::TwoLooks);
    }

    /// An hour in which a group is at its limit all the time, and re-reads its files and waits for half a minute.
    fn hour(case: Case, key: &str, pages: u64) -> Case {
        let for_half_a_minute = |n| [vec![0; 1000], vec![n; 30], vec![0; 2570]].concat();
        case.gauge(MEM_AVAILABLE, Bytes::from_mib(1600))
            .gauge_of(Cgroup, key, CGROUP_MAX, Limit::Bytes(Bytes::from_mib(80)))
            .gauge_of(Cgroup, key, CGROUP_CURRENT, Bytes::from_mib(79))
            .counter_of(Cgroup, key, CGROUP_EVENTS_MAX, 200)
            .counter_steps_of(Cgroup, key, CGROUP_REFAULT_FILE, &for_half_a_minute(pages))
            .counter_steps_of(Cgroup, key, CGROUP_PSI_IO_SOME, &for_half_a_minute(600_000))
            .counter_steps_of(Cgroup, key, CGROUP_PSI_IO_FULL, &for_half_a_minute(500_000))
    }

    #[test]
    fn half_a_minute_within_an_hour_is_found_and_streaming_is_not() {
        let finding = found(RULE, &hour(Case::over(3600), WEB, 12_000));
        assert_eq!(finding.severity, Severity::Critical);
        assert_eq!(times(&finding), [(1000, 1030)]);
        clear(RULE, &hour(Case::over(3600), WEB, 0));
    }

    #[test]
    fn two_groups_are_two_findings() {
        let both = hour(hour(Case::over(3600), WEB, 12_000), "/db", 9000);
        let all = incidents(RULE, &both);
        let mut keys: Vec<&str> = all.iter().map(|one| one.scope.key.as_str()).collect();
        keys.sort_unstable();
        assert_eq!(keys, ["/db", WEB]);
    }
}
