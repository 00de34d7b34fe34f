//! A cgroup of v1 is out of memory, and the kernel may not kill in it: its tasks sleep.

use timeline::cgroup::parent;
use timeline::facts::CgroupMode;
use timeline::signals::{
    CGROUP_CURRENT, CGROUP_EVENTS_OOM_KILL, CGROUP_MAX, CGROUP_OOM_KILL_DISABLE, CGROUP_UNDER_OOM,
    MEM_AVAILABLE,
};

use crate::finding::LimitFile;
use crate::measures::cgroups::{self, AT_LIMIT};
use crate::prelude::*;
use crate::remedy;

declare_rule! {
    /// A cgroup stands still at its limit: the kernel may not kill in it, so tasks that need memory sleep.
    ///
    /// ## What it means
    /// On cgroup v1 `memory.oom_control` can forbid the kernel to kill in a cgroup (`oom_kill_disable`, docker's
    /// `--oom-kill-disable`). A task that needs a page at the limit then sleeps until there is one: if all of them
    /// do, nobody frees any, and it is for ever. The cgroup uses no CPU, stalls by no counter, logs nothing and is
    /// not restarted. The host has memory to spare.
    /// ## How it is recognised
    /// `oom_kill_disable` and `under_oom` of the cgroup are 1 for {STALL} or longer, and `under_oom` of the cgroup
    /// around it is 0: all in a cgroup at its limit have it, too.
    /// ## Not this
    /// - `oom-cgroup`: the kernel may kill, and does; `under_oom` is 1 for that moment.
    /// - A program that the kernel calls and that makes room (`cgroup.event_control`): it takes less long.
    /// - A cgroup near its limit in which the kernel may not kill: nothing waits yet.
    /// - `cgroup-high-throttle`: the same on cgroup v2, at memory.high, but tasks go on slowly.
    /// ## What to do
    /// Now: raise the limit, or let the kernel kill (0 into `memory.oom_control`): either wakes the tasks. For good:
    /// leave oom_kill_disable off, unless a program watches the cgroup and makes room. Verify: `under_oom` is 0.
    /// ## References
    /// - kernel Documentation/admin-guide/cgroup-v1/memory.rst, OOM Control
    /// - kernel mm/memcontrol-v1.c, mem_cgroup_oom_synchronize
    pub(crate) RULE = {
        id: "cgroup-oom-standstill", since: "0.1.0", class: Limit,
        numbers: [STALL],
        trigger: trigger, story: story,
        cause: "The cgroup needs more than its limit, and oom_kill_disable forbids the kernel to \
                make room by a kill.",
        verify: "under_oom in the cgroup's memory.oom_control is 0",
    }
}

fn trigger() -> Trigger {
    let is_set = Count::new(1);
    Trigger::on(
        Subjects::Each(Entity::Cgroup, |cx, _| cx.facts.cgroup_mode == Some(CgroupMode::V1)),
        STALL,
        all![
            gauge(CGROUP_UNDER_OOM).at_least("tasks of the cgroup out of memory", is_set),
            gauge(CGROUP_OOM_KILL_DISABLE).at_least("kills in the cgroup disabled", is_set),
        ],
    )
}

fn story<'a>(cx: &Evidence<'a>, incident: &Incident<'a>) -> Result<Outcome, Missing> {
    let (group, stretch) = (incident.entity()?, &incident.stretch);
    let name = cgroups::called(cx, group);
    let around = parent(&group.key).and_then(|key| cx.timeline.entity(Entity::Cgroup, key));
    if let Some(around) = around.filter(|around| was_under_oom(cx, around, stretch)) {
        return clear!("{name} is in {}, which is at its limit", cgroups::called(cx, around));
    }
    let still = match Standstill::during(cx, group, stretch)? {
        Ok(still) => still,
        Err(why) => return clear!("{name}: {why}"),
    };
    let Standstill { since, used, limit, file, goes_on, .. } = still;
    let at_limit = still.at_limit();
    let available = cx.lowest_in(MEM_AVAILABLE, stretch).map(|(least, _)| least);
    let one = Count::new(1);
    let kills = cx.timeline.rate_of(group, CGROUP_EVENTS_OOM_KILL);
    let all = cx.timeline.stretch(0, cx.timeline.len().saturating_sub(1));
    let has_killed = kills.zip(all).is_some_and(|(kills, all)| kills.integral_in(&all) > 0.0);
    let enough = cx.ram().map_or(Bytes::ZERO, |ram| ram.share(AVAILABLE_LOW_SHARE));
    Ok(RULE
        .found(
            Severity::Critical,
            still.title(&name, stretch).then(cgroups::while_the_host_had(available)),
        )
        .shows_from(
            CGROUP_UNDER_OOM,
            one,
            one,
            cx.time(since),
            "under_oom is 1 from then on: tasks sleep until there is memory",
        )
        .counts_as("the cgroup's under_oom")
        .shows_from(
            CGROUP_OOM_KILL_DISABLE,
            one,
            one,
            None,
            "oom_kill_disable is 1: the kernel kills nothing",
        )
        .with(used, |finding, (used, at)| {
            let text = format!("the cgroup uses {used} of {at_limit}");
            finding
                .shows(CGROUP_CURRENT, used, cx.time(at), text)
                .counts_if(limit.is_some_and(|limit| is_met(used, limit)), "its memory at the limit")
        })
        .shows_lowest(cx, MEM_AVAILABLE, stretch, |least| {
            format!("at least {least} available on the host")
        })
        .when(!has_killed, |finding| {
            finding.not("oom-cgroup", "no process of the cgroup was killed")
        })
        .with(available.filter(|available| *available >= enough), |finding, available| {
            let why = format!("the host had {available} available; the cgroup's own limit is met");
            finding.not("available-exhaustion", why)
        })
        .with(limit, |finding, limit| {
            let Some(to) = remedy::larger_limit(cx, group, limit, available) else {
                return finding.fix(Fix::say(remedy::NO_ROOM));
            };
            finding.fix(remedy::raise_limit_to(cx, group, file, limit, to).described(
                "Raise the limit to one that may be enough: the tasks go on at once. What the \
                 cgroup needs shows only below it.",
            ))
        })
        .fix(if goes_on {
            remedy::let_kernel_kill(group).described(
                "Let the kernel kill in the cgroup: it ends a process at once, and the others go on.",
            )
        } else {
            Fix::say(
                "So that it goes on by itself at the next time, let the kernel kill in it (0 into \
                 memory.oom_control).",
            )
        })
        .affects([Affected::new("cgroup", &group.key, format!("tasks slept at {at_limit}"))])
        .sure_by_kinds(cx, "the stack of a task (/proc/PID/stack) has mem_cgroup_oom_synchronize")
        .into())
}

/// A time in which tasks of a cgroup slept at its limit.
struct Standstill {
    /// The first sample that saw it.
    since: usize,
    /// The time from that to the last one that saw it.
    seen: Span,
    /// Memory of the cgroup at the last one, and that sample.
    used: Option<(Bytes, usize)>,
    /// The limit that is met.
    limit: Option<Bytes>,
    file: LimitFile,
    /// Whether the last sample of all saw it.
    goes_on: bool,
}

impl Standstill {
    /// `Err`: why nothing stood still.
    fn during(
        cx: &Evidence<'_>,
        group: &EntitySeries,
        stretch: &Stretch,
    ) -> Result<Result<Self, String>, Missing> {
        let under = cx.gauge_of(group, CGROUP_UNDER_OOM)?;
        let is_under = |at: usize| under.at(at).is_some_and(|under| under > Count::ZERO);
        let mut within = stretch.first..=stretch.last;
        let Some(since) = within.find(|at| is_under(*at)) else {
            return Ok(Err("under_oom was 0".to_owned()));
        };
        let until = (since..=stretch.last).rfind(|at| is_under(*at)).unwrap_or(since);
        let current = cx.timeline.gauge_of(group, CGROUP_CURRENT);
        let used_at = |at| current.as_ref().and_then(|current| current.at(at));
        if let Some((before, after)) = used_at(since).zip(used_at(until))
            && after > before + before.share(RISES_MIN)
        {
            return Ok(Err(format!("its memory rose from {before} to {after}: it goes on")));
        }
        let used = used_at(until).map(|used| (used, until));
        // The limit of memory and swap together counts swapped pages, too: it may be met where memory alone is below its own.
        let max = cgroups::limit_at(cx, group, CGROUP_MAX, until);
        let is_full = used.zip(max).is_some_and(|((used, _), max)| is_met(used, max));
        let (file, limit) = match cgroups::with_swap(cx, group) {
            Some(with_swap) if !is_full => (LimitFile::MaxWithSwapV1, Some(with_swap)),
            _ => (remedy::kills_at(cx), max),
        };
        let seen = cx.timeline.stretch(since, until).map_or(Span::ZERO, |seen| seen.duration());
        let goes_on = is_under(cx.timeline.len().saturating_sub(1));
        Ok(Ok(Self { since, seen, used, limit, file, goes_on }))
    }

    fn at_limit(&self) -> String {
        self.limit.map_or("its limit".to_owned(), |limit| format!("its limit of {limit}"))
    }

    fn title(&self, name: &str, stretch: &Stretch) -> Title {
        let name = capital(name);
        let (time, at_limit) = (self.time(stretch), self.at_limit());
        Title::from(if self.goes_on {
            format!(
                "{name} stands still{time}: it is at {at_limit}, and as the kernel may not kill in \
                 it (oom_kill_disable), tasks that need memory sleep."
            )
        } else {
            format!(
                "{name} stood still{time}: it was at {at_limit}, and as the kernel may not kill in \
                 it (oom_kill_disable), tasks that needed memory slept."
            )
        })
    }

    /// ` for 21 s`; it may have begun, and ended, between two samples.
    fn time(&self, stretch: &Stretch) -> String {
        let (seen, whole) = (self.seen, stretch.duration());
        let is_mostly_seen = seen.as_secs_f64() >= whole.as_secs_f64() * TIME_SEEN_MIN.get();
        match seen {
            Span::ZERO => String::new(),
            _ if self.since > stretch.first && is_mostly_seen => format!(" for {whole}"),
            _ => format!(" for at least {seen}"),
        }
    }
}

fn is_met(used: Bytes, limit: Bytes) -> bool {
    used >= limit.share(AT_LIMIT)
}

/// Whether tasks of a cgroup were out of memory in most of a stretch.
fn was_under_oom(cx: &Evidence<'_>, group: &EntitySeries, stretch: &Stretch) -> bool {
    let under = cx.timeline.gauge_of(group, CGROUP_UNDER_OOM);
    let mean = under.and_then(|under| under.cast::<Ratio>().mean_in(stretch));
    mean.is_some_and(|mean| mean >= IN_MOST)
}

/// Memory that rises by more while tasks sleep is taken by others that go on, as room is made: an engineering choice.
const RISES_MIN: Ratio = Ratio::from_percent(5.0);
/// Where less of its time lies between samples that saw it, the time is a bound.
const TIME_SEEN_MIN: Ratio = Ratio::from_percent(90.0);

/// What holds in more than this part of a time holds in most of it.
const IN_MOST: Ratio = Ratio::from_percent(50.0);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::FixChange;
    use crate::rules::testing::{Case, changed, clear, found, incidents, not_evaluated, times};
    use timeline::Entity::Cgroup;
    use units::Limit;

    const JOB: &str = "/docker/job";

    /// A cgroup of `used` MiB below 64 MiB, with these lines of memory.oom_control in each second.
    fn job(case: Case, key: &str, used: u64, disabled: u64, under: &[u64]) -> Case {
        let under: Vec<Count> = under.iter().map(|under| Count::new(*under)).collect();
        let mut case = case
            .gauge(MEM_AVAILABLE, Bytes::from_mib(6000))
            .gauge_of(Cgroup, key, CGROUP_MAX, Limit::Bytes(Bytes::from_mib(64)))
            .gauge_of(Cgroup, key, CGROUP_CURRENT, Bytes::from_mib(used))
            .gauge_of(Cgroup, key, CGROUP_OOM_KILL_DISABLE, Count::new(disabled))
            .gauge_steps_of(Cgroup, key, CGROUP_UNDER_OOM, &under)
            .counter_of(Cgroup, key, CGROUP_EVENTS_OOM_KILL, 0);
        case.facts.cgroup_mode = Some(CgroupMode::V1);
        case
    }

    /// Out of memory from this second on.
    fn from(second: usize, of: usize) -> Vec<u64> {
        (0..=of).map(|at| u64::from(at >= second)).collect()
    }

    #[test]
    fn a_cgroup_that_may_not_be_killed_in_stands_still() {
        let finding = found(RULE, &job(Case::over(30), JOB, 64, 1, &from(10, 30)));
        assert_eq!(finding.severity, Severity::Critical);
        assert_eq!(finding.confidence.word(), "confirmed");
        assert_eq!(times(&finding), [(9, 30)]);
        let title = &finding.title;
        assert!(title.contains("stands still for 21 s: it is at its limit of 64 MiB"), "{title}");
        assert!(changed(&finding.fixes[0])[0].contains("memory.limit_in_bytes="));
        let [FixChange::Command(kill)] = &finding.fixes[1].changes[..] else { panic!() };
        let file = "/sys/fs/cgroup/memory/docker/job/memory.oom_control";
        assert_eq!(kill.now, format!("echo 0 > {file}"));
        assert_eq!(kill.undo, format!("echo 1 > {file}"));
    }

    #[test]
    fn one_sample_is_enough_and_of_one_from_the_start_on_the_time_is_a_bound() {
        let finding = found(RULE, &job(Case::once(), JOB, 64, 1, &[1]));
        assert!(finding.title.contains("stands still: "), "{}", finding.title);
        let finding = found(RULE, &job(Case::over(30), JOB, 64, 1, &from(0, 30)));
        assert!(finding.title.contains("for at least 30 s"), "{}", finding.title);
    }

    #[test]
    fn clear_where_the_kernel_kills_where_room_is_made_and_where_nothing_waits() {
        clear(RULE, &job(Case::over(30), JOB, 64, 0, &from(10, 30)));
        let moments: Vec<u64> = (0..=30).map(|at| u64::from(at % 10 == 5)).collect();
        clear(RULE, &job(Case::over(30), JOB, 64, 1, &moments));
        clear(RULE, &job(Case::over(30), JOB, 63, 1, &[0; 31]));
    }

    #[test]
    fn of_cgroups_in_one_another_the_outermost_is_at_its_limit() {
        let under = from(10, 30);
        let around = job(Case::over(30), "/docker", 64, 1, &under);
        let all = incidents(RULE, &job(around, JOB, 20, 1, &under));
        let keys: Vec<&str> = all.iter().map(|one| one.scope.key.as_str()).collect();
        assert_eq!(keys, ["/docker"]);
    }

    #[test]
    fn the_limit_with_swap_is_raised_where_it_is_met() {
        use timeline::signals::CGROUP_MAX_WITH_SWAP;
        let limit = Limit::Bytes(Bytes::from_mib(64));
        let case = job(Case::over(30), JOB, 30, 1, &from(10, 30)).gauge_of(
            Cgroup,
            JOB,
            CGROUP_MAX_WITH_SWAP,
            limit,
        );
        let finding = found(RULE, &case);
        assert!(changed(&finding.fixes[0])[0].contains("memory.memsw.limit_in_bytes"));
    }

    #[test]
    fn half_a_minute_within_an_hour_is_found() {
        let hour: Vec<u64> = (0..=3600).map(|at| u64::from((1800..1830).contains(&at))).collect();
        let finding = found(RULE, &job(Case::over(3600), JOB, 64, 1, &hour));
        assert_eq!(times(&finding), [(1799, 1829)]);
    }

    #[test]
    fn clear_on_v2_and_not_evaluated_where_it_was_not_recorded() {
        let without = || {
            let mut case = Case::over(30).gauge_of(Cgroup, JOB, CGROUP_CURRENT, Bytes::from_mib(1));
            case.facts.cgroup_mode = Some(CgroupMode::V1);
            case
        };
        assert_eq!(not_evaluated(RULE, &without()).names, ["cgroup.under_oom"]);
        let mut v2 = without();
        v2.facts.cgroup_mode = Some(CgroupMode::V2);
        clear(RULE, &v2);
    }
}
