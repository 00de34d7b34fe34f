//! A cgroup at its limit evicts its page cache and reads the files again.

use timeline::facts::CgroupMode;
use timeline::signals::{
    CGROUP_ANON, CGROUP_CURRENT, CGROUP_EVENTS_MAX, CGROUP_EVENTS_OOM_KILL, CGROUP_FILE,
    CGROUP_MAX, CGROUP_PSI_IO_FULL, CGROUP_PSI_IO_SOME, CGROUP_PSI_MEMORY_FULL,
    CGROUP_PSI_MEMORY_SOME, CGROUP_REFAULT_FILE, CGROUP_SHMEM, MEM_AVAILABLE,
};

use crate::measures::readings::{STALL_NOTICED_SHARE, refaults_file};
use crate::measures::refaults::{REREAD_GOAL, has_free};
use crate::measures::{cgroups, evicted};
use crate::prelude::*;
use crate::remedy::{self, in_whole_mib};

declare_rule! {
    /// A cgroup at its memory limit has too little page cache for the files it uses, and reads them again and again.
    ///
    /// ## What it means
    /// Page cache counts towards a cgroup's memory. When anonymous memory fills the limit, the kernel evicts the
    /// cgroup's own file pages, and they refault (are read again) a moment later: slow I/O in a container on a host
    /// with free memory. The host's reclaim counters do not move.
    /// ## How it is recognised
    /// The cgroup's memory is at {cgroups::AT_LIMIT} of its limit or more, it keeps hitting the limit (the `max` event,
    /// `memory.failcnt` on v1), and its file pages refault at {READ_AGAIN} or more, for {STALL} or longer. In small
    /// cgroups the kernel forgets most evicted pages, so this rate is a lower bound. If the cgroup does not count
    /// refaults, the host's count is used while the host has free memory. It is informational if nothing in the cgroup
    /// waits (for memory or for disks {STALL_NOTICED_SHARE} of the time), and critical if nothing ran for
    /// {PressureWindow::STANDSTILL} of the time.
    /// ## Not this
    /// - `page-cache-thrash`: the host is short of memory, not one cgroup.
    /// - `oom-cgroup`: nothing was left to evict, so the kernel killed.
    /// - Streaming: the cgroup's cache is full of data that was read once, and nothing refaults.
    /// ## What to do
    /// Now: raise the limit to anonymous memory plus the files in use. For good: do the same in the unit or pod. A
    /// database's own cache counts twice unless it reads with O_DIRECT. Verify: the cgroup's refaults are below
    /// {REREAD_GOAL} of what it reads.
    /// ## References
    /// - kernel Documentation/admin-guide/cgroup-v2.rst, memory.stat and memory.events
    /// - kernel mm/workingset.c: what counts as a refault
    pub(crate) RULE = { id: "cgroup-cache-starved", since: "0.1.0", class: Limit,
        numbers: [cgroups::AT_LIMIT, READ_AGAIN, STALL, STALL_NOTICED_SHARE, REREAD_GOAL,
            PressureWindow::STANDSTILL],
        trigger: trigger, waits: MemoryOrDisk, story: story,
        verify: "under the same load, neither workingset_refault_file in the cgroup's memory.stat \
                 nor max in its memory.events rises",
    }
}

fn trigger() -> Trigger {
    let full = limit(CGROUP_MAX).share(cgroups::AT_LIMIT);
    let refaults = rate(CGROUP_REFAULT_FILE).bytes();
    let host_refaults = refaults_file().bytes();
    Trigger::on(
        Subjects::Each(Entity::Cgroup, has_limit),
        STALL,
        all![
            gauge(CGROUP_CURRENT).at_least("memory of the cgroup", full),
            refaults
                .at_least("file refaults in the cgroup", READ_AGAIN)
                .or_without(host_refaults.at_least("file refaults on the host", READ_AGAIN)),
        ],
    )
}

fn has_limit(cx: &Evidence<'_>, group: &EntitySeries) -> bool {
    cgroups::limit(cx, group, CGROUP_MAX).is_some()
}

fn story<'a>(cx: &Evidence<'a>, incident: &Incident<'a>) -> Result<Outcome, Missing> {
    let (group, stretch) = (incident.entity()?, &incident.stretch);
    let starved = Starved::during(cx, group, stretch)?;
    let name = cgroups::called(cx, group);
    if let Some(why) = starved.another_reason(cx, group, stretch) {
        return clear!("{name}: {why}");
    }
    let (limit, refaulted) = (starved.limit, starved.refaulted);
    let waits = CgroupWaits::during(cx, group, stretch);
    let mean = |signal| cx.timeline.gauge_of(group, signal)?.mean_in(stretch);
    let anon = mean(CGROUP_ANON);
    // memory.stat counts shared memory as file pages; kernels before 4.5 do not report it.
    let cache =
        mean(CGROUP_FILE).map(|file| file.saturating_sub(mean(CGROUP_SHMEM).unwrap_or_default()));
    let remainder = cache.map_or_else(
        || " is too small".to_owned(),
        |cache| format!(" leaves {cache} for page cache"),
    );
    let available = cx.lowest_in(MEM_AVAILABLE, stretch).map(|(least, _)| least);
    let host = cgroups::while_the_host_had(available);
    let open = if starved.counted {
        ""
    } else {
        "the cgroup does not count refaults; the host's count is used"
    };
    let needs = anon.map_or_else(
        || "its anonymous memory plus the files it uses".to_owned(),
        |anon| format!("{anon} of anonymous memory plus the files it uses"),
    );
    Ok(RULE
        .found(
            waits.severity(),
            Title::from(format!(
                "{} re-reads its files (refaults: {refaulted}): its limit of {limit}{remainder}.",
                capital(&name)
            ))
            .then(host),
        )
        .graph("file refaults", &starved.refaults)
        .counts_as("the cgroup at its limit")
        .and(|finding| starved.shown_in(cx, group, stretch, finding))
        .with(anon, |finding, anon| {
            finding.shows(CGROUP_ANON, anon, None, format!("{anon} of it is anonymous memory"))
        })
        .with(cache, |finding, cache| {
            finding.shows(CGROUP_FILE, cache, None, format!("{cache} of it is page cache"))
        })
        .and(|finding| waits.shown_in(finding))
        .with(available, |finding, available| {
            let text = format!("at least {available} available on the host");
            finding
                .shows(MEM_AVAILABLE, available, None, text)
                .not("page-cache-thrash", format!("the host had {available} available"))
        })
        .not("oom-cgroup", "nothing was killed; there was page cache to evict")
        .cause(format!("The cgroup needs {needs}, more than its limit of {limit}."))
        .fix(match evicted::read_again(cx, group, stretch) {
            Some(lacks) => raised_by(cx, group, limit, lacks, available),
            None => raised(cx, group, limit, &needs, available),
        })
        .affects([Affected::new(
            "cgroup",
            &group.key,
            format!("{refaulted} refaulted, limit {limit}"),
        )])
        .when(cx.facts.cgroup_mode == Some(CgroupMode::V1), |finding| {
            finding.verify(starved.verify_on_v1())
        })
        .sure_by_kinds(cx, open)
        .into())
}

/// What a limit has beyond the memory that a cgroup needs: pages are charged in batches, and reclaim begins before the
/// limit. An engineering choice.
const SLACK: Ratio = Ratio::from_percent(5.0);

/// Raises the limit by what the cgroup evicts and reads again, if there is room for it.
fn raised_by(
    cx: &Evidence<'_>,
    group: &EntitySeries,
    limit: Bytes,
    lacks: Bytes,
    available: Option<Bytes>,
) -> Fix {
    let needed = limit + lacks;
    let to = in_whole_mib(needed + needed.share(SLACK));
    let known = format!(
        "{lacks} of its pages are evicted and read again, beside the {limit} that it keeps"
    );
    match remedy::room_for(cx, group, limit, available).filter(|room| *room < to) {
        Some(room) => Fix::say(format!(
            "Make the program smaller, or give it fewer files: it needs a limit of {to} ({known}), and \
             there is room for {room}. A loop over files that does not fit as a whole is read from \
             the disk as before."
        )),
        None => {
            remedy::raise_limit_to(cx, group, remedy::kills_at(cx), limit, to).described(format!(
                "Raise its limit (it was {limit}) to {to}: {known}. Or make the program smaller."
            ))
        }
    }
}

/// Raises the limit to where the need of the cgroup shows, else by a quarter.
fn raised(
    cx: &Evidence<'_>,
    group: &EntitySeries,
    limit: Bytes,
    needs: &str,
    available: Option<Bytes>,
) -> Fix {
    let file = remedy::kills_at(cx);
    match remedy::limit_to_measure(cx, group, limit, available) {
        Some(to) => remedy::raise_limit_to(cx, group, file, limit, to).described(format!(
            "Raise its limit (it was {limit}) to {to}, for which there is room: it needs {needs}, \
             and a loop over files that does not fit as a whole is read from the disk as before. \
             Once nothing refaults, set it a little above what the cgroup has then. Or make the \
             program smaller."
        )),
        None => remedy::raise_limit(cx, group, file, limit).described(format!(
            "Raise its limit (it was {limit}) to {needs}, or make the program smaller. Start with \
             a quarter more."
        )),
    }
}

/// The readings of a cgroup that reads its files again.
struct Starved {
    limit: Bytes,
    refaults: Track<BytesPerSecond>,
    /// The mean of the refaults.
    refaulted: BytesPerSecond,
    /// Whether the cgroup counts refaults itself.
    counted: bool,
    /// The number of limit hits; `None` where they are not counted.
    hits: Option<Count>,
}

impl Starved {
    fn during(cx: &Evidence<'_>, group: &EntitySeries, stretch: &Stretch) -> Result<Self, Missing> {
        let in_cgroup = cx.rate_of(group, CGROUP_REFAULT_FILE).ok();
        let counted = in_cgroup.is_some();
        let refaults = in_cgroup.map_or_else(|| cx.refaults_file(), Ok)?.to_bytes(cx.page_size()?);
        let limit = cgroups::limit_in(cx, group, CGROUP_MAX, stretch);
        let signal = CGROUP_MAX.def().name;
        Ok(Self {
            limit: limit.ok_or_else(|| Missing::because(vec![signal], Need::SameTime))?,
            refaulted: cx.mean_in(stretch, CGROUP_REFAULT_FILE, &refaults)?,
            refaults,
            counted,
            hits: events(cx, group, CGROUP_EVENTS_MAX, stretch)
                .filter(|_| cgroups::counts_hits(cx, group)),
        })
    }

    /// Why the limit is not the reason for the refaults.
    fn another_reason(
        &self,
        cx: &Evidence<'_>,
        group: &EntitySeries,
        stretch: &Stretch,
    ) -> Option<&'static str> {
        let killed = events(cx, group, CGROUP_EVENTS_OOM_KILL, stretch);
        if killed.is_some_and(|killed| killed > Count::ZERO) {
            Some("the kernel killed in it, so nothing was left to evict (oom-cgroup)")
        } else if self.hits == Some(Count::ZERO) {
            Some("files refaulted, but it never hit its limit")
        } else if !self.counted && !has_free(cx, stretch) {
            Some("files refaulted, but the host itself was short of memory")
        } else {
            None
        }
    }

    /// The counters of cgroup v1 that must not rise.
    fn verify_on_v1(&self) -> &'static str {
        if self.counted {
            "under the same load, neither workingset_refault_file in the cgroup's memory.stat nor \
             its memory.failcnt rises"
        } else {
            "under the same load, the cgroup's memory.failcnt does not rise"
        }
    }

    fn shown_in(
        &self,
        cx: &Evidence<'_>,
        group: &EntitySeries,
        stretch: &Stretch,
        finding: Finding,
    ) -> Finding {
        let (limit, refaulted) = (self.limit, self.refaulted);
        let by = if self.counted { "" } else { ", counted for the host" };
        let text = format!("{refaulted} of files read again after eviction (refaults{by})");
        let full = limit.share(cgroups::AT_LIMIT);
        let current = cx.timeline.gauge_of(group, CGROUP_CURRENT);
        finding
            .shows_from(CGROUP_REFAULT_FILE, refaulted, READ_AGAIN, None, text)
            .counts_if(self.counted, "its refaults")
            .with(current.and_then(|current| current.mean_in(stretch)), |finding, current| {
                let text = format!("{current} of the {limit} limit used");
                finding.shows_from(CGROUP_CURRENT, current, full, None, text)
            })
            .with(self.hits, |finding, hits| {
                let text = format!("limit hits: {hits}");
                finding.shows_from(CGROUP_EVENTS_MAX, hits, Count::new(1), None, text)
            })
    }
}

/// The number of events in the cgroup itself, without its descendants; `None` where they are not counted.
fn events(
    cx: &Evidence<'_>,
    group: &EntitySeries,
    signal: Signal<Counter<Count>>,
    stretch: &Stretch,
) -> Option<Count> {
    let rate = cgroups::own_events(cx, group, signal)?;
    Some(Count::from_f64(rate.integral_in(stretch)))
}

/// Shares of the time for which the cgroup's tasks waited.
struct CgroupWaits {
    memory: Option<Ratio>,
    io: Option<Ratio>,
    /// The share of the time in which no task of the cgroup ran.
    full: Option<Ratio>,
    /// Whether some task waited long enough to notice.
    any: bool,
    over: WindowPart,
}

impl CgroupWaits {
    fn during(cx: &Evidence<'_>, group: &EntitySeries, stretch: &Stretch) -> Self {
        let share = |signal| cgroups::stalled(cx, group, signal, stretch);
        let (memory, io) = (share(CGROUP_PSI_MEMORY_SOME), share(CGROUP_PSI_IO_SOME));
        let full = [share(CGROUP_PSI_MEMORY_FULL), share(CGROUP_PSI_IO_FULL)];
        let any = if memory.is_some() || io.is_some() {
            [memory, io].iter().flatten().any(|some| *some >= STALL_NOTICED_SHARE)
        } else {
            // A cgroup without pressure files: the host's stalls are used.
            let host = PressureWindow::during(cx, stretch);
            host.any() || !host.measured()
        };
        let full = full.into_iter().flatten().map(Ratio::get);
        Self {
            memory,
            io,
            full: full.reduce(f64::max).map(Ratio::new),
            any,
            over: WindowPart::for_stretch(stretch),
        }
    }

    /// Whether the cgroup's own pressure files show the wait.
    fn of_group(&self) -> bool {
        self.any && (self.memory.is_some() || self.io.is_some())
    }

    fn severity(&self) -> Severity {
        match self.full {
            _ if !self.any => Severity::Info,
            Some(full) if full >= PressureWindow::STANDSTILL => Severity::Critical,
            _ => Severity::Warning,
        }
    }

    fn shown_in(&self, finding: Finding) -> Finding {
        let some =
            [(CGROUP_PSI_MEMORY_SOME, self.memory, "memory"), (CGROUP_PSI_IO_SOME, self.io, "I/O")];
        let remark = self.over.remark();
        let each = some.into_iter().fold(finding, |finding, (signal, some, what)| {
            finding.with(some, |finding, some| {
                let text = format!("{what} stalls of the cgroup: some {some}{remark}");
                finding.shows_from(signal, some, STALL_NOTICED_SHARE, None, text)
            })
        });
        each.counts_if(self.of_group(), "its stalls")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::testing::{Case, changed, clear, found, incidents, not_evaluated, times};
    use timeline::Entity::Cgroup;
    use timeline::signals::{
        CGROUP_PGSTEAL, CGROUP_SHADOW_NODES_DROPPED, MEM_FREE, MEM_TOTAL, REFAULT_FILE,
    };
    use units::Limit;

    const WEB: &str = "/web";

    /// A cgroup with an 80 MiB limit that uses `used` MiB and refaults `pages` file pages a second.
    fn web(used: u64, pages: u64, hits: u64) -> Case {
        Case::over(30)
            .gauge(MEM_TOTAL, Bytes::from_mib(2000))
            .gauge(MEM_FREE, Bytes::from_mib(1500))
            .gauge(MEM_AVAILABLE, Bytes::from_mib(1600))
            .counter(REFAULT_FILE, pages)
            .gauge_of(Cgroup, WEB, CGROUP_MAX, Limit::Bytes(Bytes::from_mib(80)))
            .gauge_of(Cgroup, WEB, CGROUP_CURRENT, Bytes::from_mib(used))
            .gauge_of(Cgroup, WEB, CGROUP_ANON, Bytes::from_mib(71))
            .gauge_of(Cgroup, WEB, CGROUP_FILE, Bytes::from_mib(8))
            .counter_of(Cgroup, WEB, CGROUP_EVENTS_MAX, hits)
    }

    fn counted(case: Case, pages: u64) -> Case {
        case.counter_of(Cgroup, WEB, CGROUP_REFAULT_FILE, pages)
    }

    fn stalled(case: Case, io: u64) -> Case {
        case.counter_of(Cgroup, WEB, CGROUP_PSI_IO_SOME, io * 10_000).counter_of(
            Cgroup,
            WEB,
            CGROUP_PSI_IO_FULL,
            io * 9_000,
        )
    }

    #[test]
    fn a_cgroup_at_its_limit_that_refaults_is_found() {
        let finding = found(RULE, &stalled(counted(web(79, 12_000, 200), 12_000), 20));
        assert_eq!(finding.severity, Severity::Warning);
        assert_eq!(finding.confidence.word(), "confirmed");
        assert!(finding.title.contains("leaves 8 MiB for page cache"), "{}", finding.title);
        let finding = found(RULE, &stalled(counted(web(79, 12_000, 200), 12_000), 60));
        assert_eq!(finding.severity, Severity::Critical);
    }

    /// A cgroup of which `first` pages are reclaimed in the first second, and then as many as refault and `new` more.
    fn evicts(first: u64, new: u64) -> Case {
        let each = |first, more: u64| [vec![first], vec![12_000 + more; 29]].concat();
        stalled(web(79, 12_000, 200), 20)
            .counter_steps_of(Cgroup, WEB, CGROUP_REFAULT_FILE, &each(12_000, 0))
            .counter_steps_of(Cgroup, WEB, CGROUP_PGSTEAL, &each(12_000 + first, new))
    }

    #[test]
    fn the_limit_that_suffices_follows_from_what_is_evicted_and_read_again() {
        let limit = |case: &Case| changed(&found(RULE, case).fixes[0]);
        // 60 MiB beside 80 MiB, and a twentieth.
        assert_eq!(
            limit(&evicts(15_360, 0)),
            ["/web/memory.max=83886080 -> /web/memory.max=154140672"]
        );
        let measured = ["/web/memory.max=83886080 -> /web/memory.max=335544320"];
        assert_eq!(limit(&evicts(15_360, 1_000)), measured, "ever new files");
        let forgets = evicts(15_360, 0).counter_of(Cgroup, WEB, CGROUP_SHADOW_NODES_DROPPED, 1);
        assert_eq!(limit(&forgets), measured);
        assert_eq!(limit(&evicts(0, 0)), measured, "what is evicted is not counted as it refaults");
    }

    #[test]
    fn without_room_for_what_is_read_again_no_limit_is_advised() {
        let large = found(RULE, &evicts(300_000, 0));
        assert_eq!(large.fixes[0].changes, []);
        assert!(
            large.fixes[0].what.contains("there is room for 880 MiB"),
            "{}",
            large.fixes[0].what
        );
    }

    #[test]
    fn a_cgroup_that_does_not_wait_is_informational() {
        let finding = found(RULE, &stalled(counted(web(79, 12_000, 200), 12_000), 1));
        assert_eq!(finding.severity, Severity::Info);
    }

    #[test]
    fn on_v1_the_hosts_refaults_are_used() {
        let mut case = web(79, 12_000, 200);
        case.facts.cgroup_mode = Some(CgroupMode::V1);
        let finding = found(RULE, &case);
        assert_eq!(finding.confidence.word(), "probable");
        assert!(finding.verify.contains("memory.failcnt does not rise"), "{}", finding.verify);
        let mut own = counted(web(79, 12_000, 200), 12_000);
        own.facts.cgroup_mode = Some(CgroupMode::V1);
        let verify = found(RULE, &own).verify;
        assert!(
            verify.contains("workingset_refault_file") && !verify.contains("memory.events"),
            "{verify}"
        );
        // On a host that is short of memory they prove nothing.
        clear(RULE, &case.gauge(MEM_FREE, Bytes::from_mib(20)));
    }

    #[test]
    fn clear_below_the_limit_and_while_streaming() {
        clear(RULE, &counted(web(60, 12_000, 0), 12_000));
        clear(RULE, &counted(web(79, 0, 200), 0));
        clear(RULE, &counted(web(79, 12_000, 0), 12_000));
    }

    #[test]
    fn clear_when_the_kernel_killed_in_the_cgroup() {
        let case = counted(web(79, 12_000, 200), 12_000);
        clear(RULE, &case.counter_of(Cgroup, WEB, CGROUP_EVENTS_OOM_KILL, 1));
    }

    #[test]
    fn clear_without_limits_and_not_evaluated_without_cgroups() {
        clear(RULE, &web(79, 0, 0).gauge_of(Cgroup, WEB, CGROUP_MAX, Limit::Unlimited));
        assert_eq!(not_evaluated(RULE, &Case::over(30)).names, ["cgroup.current"]);
        let once = Case::once()
            .gauge_of(Cgroup, WEB, CGROUP_MAX, Limit::Bytes(Bytes::from_mib(80)))
            .gauge_of(Cgroup, WEB, CGROUP_CURRENT, Bytes::from_mib(79))
            .counter(REFAULT_FILE, 0);
        assert_eq!(not_evaluated(RULE, &once).need, Need::TwoSamples);
    }

    /// An hour in which a cgroup is at its limit throughout, and refaults and waits for 30 s.
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
    fn finds_30_s_within_an_hour_but_not_streaming() {
        let finding = found(RULE, &hour(Case::over(3600), WEB, 12_000));
        assert_eq!(finding.severity, Severity::Critical);
        assert_eq!(times(&finding), [(1000, 1030)]);
        clear(RULE, &hour(Case::over(3600), WEB, 0));
    }

    #[test]
    fn two_cgroups_are_two_findings() {
        let both = hour(hour(Case::over(3600), WEB, 12_000), "/db", 9000);
        let all = incidents(RULE, &both);
        let mut keys: Vec<&str> = all.iter().map(|finding| finding.scope.key.as_str()).collect();
        keys.sort_unstable();
        assert_eq!(keys, ["/db", WEB]);
    }
}
