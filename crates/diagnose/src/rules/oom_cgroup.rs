//! A cgroup hit its memory limit, and the kernel killed in it.

mod report;
mod root;

use std::collections::HashMap;

use timeline::Entity::Cgroup;
use timeline::facts::CgroupMode;
use timeline::signals::{
    CGROUP_ANON, CGROUP_CURRENT, CGROUP_EVENTS_OOM, CGROUP_EVENTS_OOM_KILL, CGROUP_FILE,
    CGROUP_HIGH, CGROUP_MAX, CGROUP_SHMEM, MEM_AVAILABLE, OOM_KILLS,
};

use crate::finding::LimitFile;
use crate::measures::cgroups;
use crate::measures::grew_until::{GrewUntil, LASTS_MIN, OF_LIMIT};
use crate::oom::kills::{self, GroupKills};
use crate::oom::{self, LimitHit};
use crate::prelude::*;
use crate::remedy;
use root::SHARED_MUCH;

declare_rule! {
    /// A cgroup hit its memory limit and the kernel killed a process in it; the host itself may have plenty of memory.
    ///
    /// ## What it means
    /// The memory of a service, container or pod is limited by its cgroup. When it needs more and nothing in it can be
    /// reclaimed, the kernel kills one of its processes: exit status 137, a restarted pod, a failed unit. The host's
    /// free memory does not matter for that.
    /// ## How it is recognised
    /// The cgroup's `oom_kill` event rises, and it or a cgroup above it hit its own limit at that moment (`oom`, or
    /// `max` if that is all there is). Every kill counts; there is no minimum duration. Kills at the limit of one
    /// cgroup that follow each other within {oom::AGAIN} are one incident; at another limit begins another. Kills
    /// before the first sample are informational. The kernel's own report in a pasted log names the cgroup, the limit
    /// and the memory charged to it.
    ///
    /// What led to it is sought in the samples before: a process of the cgroup, else its anonymous memory, that rose in
    /// a line for {LASTS_MIN} or longer until the kill, by {OF_LIMIT} of the limit or more; or shared memory and tmpfs
    /// of {SHARED_MUCH} of the limit.
    /// ## Not this
    /// - `oom-global`: the host was out of memory. The victim's cgroup counts that kill too, but no limit was hit.
    /// - A kill by systemd-oomd, earlyoom or by hand: the kernel's events do not count it.
    /// - `cgroup-high-throttle`: throttled at memory.high, not killed.
    /// ## What to do
    /// Now: raise the limit, or make the program smaller (heap size, workers). For good: the same in the unit or pod,
    /// and MemoryHigh at nine tenths of it as a warning. What grew in a line meets any limit: find what it keeps. Where
    /// tmpfs fills the limit, delete files, or mount it with size=. Verify: `oom_kill`
    /// does not rise.
    /// ## References
    /// - kernel Documentation/admin-guide/cgroup-v2.rst, memory.events
    /// - kernel mm/memcontrol.c, mem_cgroup_oom
    pub(crate) RULE = { id: "oom-cgroup", since: "0.1.0", class: Limit,
        numbers: [oom::AGAIN, LASTS_MIN, OF_LIMIT, SHARED_MUCH],
        trigger: trigger, story: story,
        looks_back: GrewUntil::begins,
        cause: "The programs of the cgroup need more memory than its limit allows, and too little \
                of it could be reclaimed.",
        brings_about: &["cgroup-cache-starved", "oom-score-misuse"],
        aliases: &["cgroup-oom"],
    }
}

fn trigger() -> Trigger {
    Trigger::Found(FoundBy {
        find,
        could: Some(rate(CGROUP_EVENTS_OOM_KILL).at_least("kills in the cgroup", kills::ANY)),
        scope: Subjects::each_cgroup(),
        none: Some(none),
    })
}

/// Each kill, in the cgroup that hit its limit.
fn find(cx: &Evidence<'_>) -> Result<Vec<Occurrence>, Missing> {
    let counted: Vec<Occurrence> = match kills::in_groups(cx) {
        Ok(all) => all.iter().filter_map(occurrence).collect(),
        Err(missing) if oom::reports(cx).is_empty() && may_have_killed(cx) => {
            return Err(missing);
        }
        Err(_) => Vec::new(),
    };
    let reported = report::occurrences(cx, &counted);
    Ok(at_one_limit_each(cx, [counted, reported].concat()))
}

/// Joins kills that follow each other at the same limit.
fn at_one_limit_each(cx: &Evidence<'_>, mut all: Vec<Occurrence>) -> Vec<Occurrence> {
    let mut parts: Vec<Vec<Occurrence>> = Vec::new();
    let mut known: HashMap<String, Vec<usize>> = HashMap::new();
    let mut numbers: HashMap<(Option<String>, usize), usize> = HashMap::new();
    all.sort_by_key(|kill| (kill.first, kill.last));
    for kill in all {
        let changes = kill.key.as_ref().map(|key| {
            known.entry(key.clone()).or_insert_with(|| {
                let group = cx.timeline.entity(Cgroup, key);
                group.map_or_else(Vec::new, |group| cgroups::other_limits(cx, group))
            })
        });
        // The limit that the last reading before the kill shows.
        let before = changes.map_or(0, |changes| changes.partition_point(|at| *at <= kill.first));
        let part = *numbers.entry((kill.key.clone(), before)).or_insert(parts.len());
        if part == parts.len() {
            parts.push(Vec::new());
        }
        parts[part].push(kill);
    }
    let mut all: Vec<Occurrence> =
        parts.into_iter().flat_map(|part| joined(cx, part, oom::AGAIN)).collect();
    all.sort_by_key(|kill| (kill.first, kill.last));
    all
}

fn occurrence(kills: &GroupKills) -> Option<Occurrence> {
    Some(Occurrence { first: kills.from, last: kills.to, key: Some(kills.at_limit_of.clone()?) })
}

/// Whether the host may have killed since boot; if not, the answer needs no cgroups.
fn may_have_killed(cx: &Evidence<'_>) -> bool {
    cx.timeline.last(OOM_KILLS) != Some(Count::ZERO)
}

/// The answer where no limit caused a kill.
fn none(cx: &Evidence<'_>) -> Result<Outcome, Missing> {
    if !oom::reports(cx).is_empty() {
        return clear!("the kernel report names no cgroup limit");
    }
    match kills::in_groups(cx) {
        Ok(all) if all.is_empty() => before_the_first_sample(cx),
        Ok(_) => {
            clear!("processes in cgroups were killed, but no cgroup had hit its limit")
        }
        Err(missing) if may_have_killed(cx) => Err(missing),
        Err(_) => clear!("no process was OOM-killed since boot"),
    }
}

fn story<'a>(cx: &Evidence<'a>, incident: &Incident<'a>) -> Result<Outcome, Missing> {
    let kills = LimitKills::during(cx, incident);
    if let Some(finding) = report::finding(cx, incident) {
        let finding = finding.killed(kills.in_all());
        return Ok(root::with_root(cx, incident, finding).into());
    }
    let Some((limited, victims, worst)) = kills.worst() else {
        return clear!("no cgroup had hit its limit when processes were killed");
    };
    let count = kills.in_group(victims);
    if worst.is_around_container {
        return Ok(around_container(cx, &kills, limited, count, worst).into());
    }
    let limit = cgroups::limit_at(cx, limited, CGROUP_MAX, worst.from);
    let available = cx.level(MEM_AVAILABLE, worst.from);
    let enough = limit.and_then(|limit| remedy::larger_limit(cx, limited, limit, available));
    let has_events = cx.timeline.last_of(limited, CGROUP_EVENTS_OOM).is_some();
    let is_v1 = cx.facts.cgroup_mode == Some(CgroupMode::V1);
    let title = title(cx, limited, limit, victims, count, available);
    let text = format!("{count} killed in {}", cgroups::called(cx, victims));
    Ok(RULE
        .found(Severity::Critical, title)
        .killed(kills.in_all())
        .shows_from(CGROUP_EVENTS_OOM_KILL, count, Count::new(1), cx.time(worst.to), text)
        .counts_as("the cgroup's kill counter")
        .and(|finding| show_memory(cx, limited, worst.from, limit, finding))
        .with(available, |finding, available| {
            let text = format!("{available} available on the host before the kill");
            finding.shows(MEM_AVAILABLE, available, cx.time(worst.from), text).not(
                "oom-global",
                format!("the cgroup hit its limit, and the host had {available} available"),
            )
        })
        .counts_if(has_events, "its limit events")
        .fix(raised(cx, limited, limit, enough))
        .when(!is_v1, |finding| throttle_first(cx, finding, limited, enough, worst.from))
        .verify(report::verify(is_v1, LimitHit::Memory))
        .affects(kills.affected(cx))
        .sure_by_kinds(cx, "")
        .and(|finding| root::with_root(cx, incident, finding))
        .into())
}

/// The finding about kills at a limit that lies around the container in which the source was read.
fn around_container(
    cx: &Evidence<'_>,
    kills: &LimitKills<'_>,
    root: &EntitySeries,
    count: Count,
    worst: &GroupKills,
) -> Finding {
    // The limit at the time of the kill.
    let rows = cx.rows_at(Cgroup, worst.from);
    let limit = rows.and_then(|at| cx.timeline.at_of(root, CGROUP_MAX, at));
    let below = match limit {
        Some(units::Limit::Bytes(limit)) => format!(", which did not hit its limit of {limit}"),
        Some(units::Limit::Unlimited) => ", which has no limit of its own".to_owned(),
        None => String::new(),
    };
    let available = cx.level(MEM_AVAILABLE, worst.from);
    let share = available.and_then(|available| cx.of_ram(available).ok());
    let is_host_short = share.is_some_and(|share| share < AVAILABLE_LOW_SHARE);
    let why = if is_host_short {
        "the host was nearly out of memory, or a limit around the container was hit"
    } else {
        "a limit around it, such as that of its pod, was hit"
    };
    let processes = processes_words(count);
    let is_v1 = cx.facts.cgroup_mode == Some(CgroupMode::V1);
    RULE.found(
        Severity::Critical,
        format!("The kernel killed {processes} of this container{below}: {why}."),
    )
    .killed(kills.in_all())
    .shows_from(
        CGROUP_EVENTS_OOM_KILL,
        count,
        Count::new(1),
        cx.time(worst.to),
        format!("{count} killed in this container"),
    )
    .counts_as("the container's kill counter")
    .with(available, |finding, available| {
        let text = format!("{available} available on the host before the kill");
        finding.shows(MEM_AVAILABLE, available, cx.time(worst.from), text)
    })
    .cause(
        "What shares that limit with this container took what it needed, or this container took \
         it.",
    )
    .fix(
        Fix::say(
            "See on the host which limit was hit, and what else counts towards it. A higher limit \
             of this container alone does not help.",
        )
        .inspect("memtide check --since 10m\ndmesg | grep -A1 oom-kill:"),
    )
    .verify(report::verify(is_v1, LimitHit::Memory))
    .affects(kills.affected(cx))
    .sure_by_kinds(cx, "the kernel log of the host shows which limit")
}

fn processes_words(count: Count) -> String {
    match count.get() {
        1 => "a process".to_owned(),
        _ => format!("{count} processes"),
    }
}

/// `Cgroup X hit its limit of 96 MiB, and the kernel killed a process of X/y. The host had …`
fn title(
    cx: &Evidence<'_>,
    limited: &EntitySeries,
    limit: Option<Bytes>,
    victims: &EntitySeries,
    count: Count,
    available: Option<Bytes>,
) -> Title {
    let name = cgroups::called(cx, limited);
    let hit = match limit {
        Some(limit) => format!("{} hit its limit of {limit}", capital(&name)),
        None => format!("A cgroup below {name} hit its limit"),
    };
    let processes = processes_words(count);
    let inside = if limited.key == victims.key {
        String::new()
    } else {
        format!(" of {}", cgroups::called(cx, victims))
    };
    let host = cgroups::while_the_host_had(available);
    Title::from(format!("{hit}, and the kernel killed {processes}{inside}.")).then(host)
}

/// The kills of an incident: at the limit of one cgroup, in it and in cgroups below it.
struct LimitKills<'a> {
    /// The cgroup at its limit.
    limited: Option<&'a EntitySeries>,
    /// Each with the cgroup of the victims.
    all: Vec<(&'a EntitySeries, GroupKills)>,
    /// How many there are in each cgroup.
    counts: HashMap<&'a str, u64>,
}

impl<'a> LimitKills<'a> {
    fn during(cx: &Evidence<'a>, incident: &Incident<'_>) -> Self {
        let limited = incident.key.unwrap_or_default();
        let kills = kills::in_groups(cx);
        let all: Vec<(&EntitySeries, GroupKills)> = kills
            .iter()
            .flat_map(|kills| kills.iter())
            .filter(|kills| kills.are_of(limited, &incident.stretch))
            .filter_map(|kills| Some((cx.timeline.entity(Cgroup, &kills.group)?, kills.clone())))
            .collect();
        let mut counts = HashMap::new();
        for (group, kills) in &all {
            *counts.entry(group.key.as_str()).or_default() += kills.count;
        }
        Self { limited: cx.timeline.entity(Cgroup, limited), all, counts }
    }

    /// The cgroup at its limit, and the first kills in the cgroup with most kills, with that cgroup.
    fn worst(&self) -> Option<(&'a EntitySeries, &'a EntitySeries, &GroupKills)> {
        // max_by_key returns the last of equal items; the first is wanted.
        let (worst, _) = self.all.iter().rev().max_by_key(|(group, _)| self.in_group(group))?;
        let (group, first) = self
            .all
            .iter()
            .filter(|(group, _)| group.key == worst.key)
            .min_by_key(|(_, kills)| kills.to)?;
        Some((self.limited?, group, first))
    }

    fn in_group(&self, group: &EntitySeries) -> Count {
        let count = self.counts.get(group.key.as_str());
        Count::new(count.copied().unwrap_or_default())
    }

    fn in_all(&self) -> u64 {
        self.all.iter().map(|(_, kills)| kills.count).sum()
    }

    /// The cgroups with kills, the one with most first, and the likely victim.
    fn affected(&self, cx: &Evidence<'_>) -> Vec<Affected> {
        let worst = self.worst();
        let mut affected: Vec<Affected> = Vec::new();
        let groups = self.all.iter().map(|(group, _)| *group);
        for group in worst.iter().map(|(_, group, _)| *group).chain(groups) {
            if affected.len() < 5 && affected.iter().all(|known| known.name != group.key) {
                let what = format!("{} killed", self.in_group(group));
                affected.push(Affected::new("cgroup", &group.key, what));
            }
        }
        let victim = worst.and_then(|(_, _, worst)| processes::gone(cx, worst.to));
        affected.extend(victim.map(|(process, used)| {
            let what = format!("had {used} and is gone: likely the victim");
            Affected::new("process", &process.label, what)
        }));
        affected
    }
}

/// Raises the limit to one that may be enough, if it is known: a kill does not show what the cgroup needs.
fn raised(
    cx: &Evidence<'_>,
    group: &EntitySeries,
    limit: Option<Bytes>,
    enough: Option<Bytes>,
) -> Fix {
    if limit.is_some() && enough.is_none() {
        return Fix::say(remedy::NO_ROOM);
    }
    let Some((limit, to)) = limit.zip(enough) else {
        return Fix::say(
            "Raise the limit to what the cgroup needs, or make its programs smaller (heap, \
             workers).",
        );
    };
    let raise = remedy::raise_limit_to(cx, group, remedy::kills_at(cx), limit, to);
    raise.described(remedy::raise_words(limit, to))
}

/// Advises a memory.high below the raised limit, unless there is one.
fn throttle_first(
    cx: &Evidence<'_>,
    finding: Finding,
    group: &EntitySeries,
    raised: Option<Bytes>,
    at: usize,
) -> Finding {
    let high = raised.map(remedy::high_below);
    let current = cgroups::limit_at(cx, group, CGROUP_HIGH, at);
    if current.zip(high).is_some_and(|(current, high)| current <= high) {
        return finding;
    }
    let set = high.map(|high| remedy::set_limit(cx, group, LimitFile::High, high));
    finding.fix(set.unwrap_or_default().described(THROTTLE_FIRST))
}

const THROTTLE_FIRST: &str = "Set memory.high a tenth below the raised limit: the kernel then \
                              throttles the cgroup before it kills, and you can alert on that.";

/// Adds the cgroup's memory at its last reading before the kill.
fn show_memory(
    cx: &Evidence<'_>,
    group: &EntitySeries,
    index: usize,
    limit: Option<Bytes>,
    finding: Finding,
) -> Finding {
    let Some(index) = cx.rows_at(Cgroup, index) else {
        return finding;
    };
    let parts = [
        (CGROUP_CURRENT, "in all"),
        (CGROUP_ANON, "of anonymous memory"),
        (CGROUP_FILE, "of page cache and shared memory"),
        (CGROUP_SHMEM, "of shared memory and tmpfs"),
    ];
    let finding = parts.into_iter().fold(finding, |finding, (signal, what)| {
        let bytes = cx.timeline.at_of(group, signal, index);
        finding.with(bytes.filter(|bytes| *bytes > Bytes::ZERO), |finding, bytes| {
            let text = format!("{bytes} {what} in the cgroup before the kill");
            finding.shows(signal, bytes, cx.time(index), text)
        })
    });
    finding.with(limit, |finding, limit| {
        finding.shows(CGROUP_MAX, limit, None, format!("its limit was {limit}"))
    })
}

/// The answer where nothing was killed since the first sample: earlier kills are informational.
fn before_the_first_sample(cx: &Evidence<'_>) -> Result<Outcome, Missing> {
    let worst = cgroups::with(cx, CGROUP_EVENTS_OOM_KILL)?
        .into_iter()
        .filter_map(|group| {
            let total = cx.timeline.last_of(group, CGROUP_EVENTS_OOM_KILL)?;
            let limit = cgroups::limit_at(cx, group, CGROUP_MAX, first_reading(group));
            // Where memory.max was not read, hits of a limit show that there is one.
            let is_unread = cx.timeline.last_of(group, CGROUP_MAX).is_none();
            let hits = cx.timeline.last_of(group, CGROUP_EVENTS_OOM);
            let is_hit = is_unread && hits.is_some_and(|hits| hits > Count::ZERO);
            (limit.is_some() || is_hit).then_some((total, limit, group))
        })
        .max_by_key(|(total, _, _)| *total);
    let Some((total, limit, group)) = worst.filter(|(total, _, _)| *total > Count::ZERO) else {
        return clear!("no process of a limited cgroup was killed");
    };
    let processes = match total.get() {
        1 => "a process was",
        _ => "processes were",
    };
    let of_limit = match limit {
        Some(limit) => format!("limit {limit}"),
        None => "its limit, memory.max, is not shown".to_owned(),
    };
    let place = cgroups::called(cx, group);
    let title = format!(
        "In {place} {processes} OOM-killed before the first sample ({total} in all, {of_limit})."
    );
    let text = format!("{total} killed in {place} since its start, none since the first sample");
    Ok(RULE
        .found(Severity::Info, title)
        .shows(CGROUP_EVENTS_OOM_KILL, total, None, text)
        .counts_as("the cgroup's kill counter")
        .cause(
            "The cgroup's counter shows that it happened, but not when, nor whether its limit or \
             the host was the reason.",
        )
        .fix(limit.map_or_else(Fix::default, |limit| {
            let raise = remedy::raise_limit(cx, group, remedy::kills_at(cx), limit);
            raise.described("If its limit is still too small: raise it by a quarter.")
        }))
        .verify(report::verify(cx.facts.cgroup_mode == Some(CgroupMode::V1), LimitHit::Memory))
        .sure_by_kinds(cx, "the kernel log shows when and why")
        .into())
}

fn first_reading(group: &EntitySeries) -> usize {
    group.samples().map_or(0, |(first, _)| first)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oom::testing::Report;
    use crate::rules::testing::{Case, changed, clear, found, incidents, not_evaluated, times};
    use timeline::signals::CGROUP_EVENTS_MAX;
    use units::Limit;

    /// `kills` in second 5 in a cgroup with a 96 MiB limit, on a host with free memory.
    fn group(case: Case, key: &str, kills: u64) -> Case {
        let mut events = vec![0; 10];
        events[5] = kills;
        case.gauge_of(Cgroup, key, CGROUP_MAX, Limit::Bytes(Bytes::from_mib(96)))
            .gauge_of(Cgroup, key, CGROUP_CURRENT, Bytes::from_mib(95))
            .gauge_of(Cgroup, key, CGROUP_ANON, Bytes::from_mib(94))
            .counter_steps_of(Cgroup, key, CGROUP_EVENTS_OOM_KILL, &events)
            .counter_steps_of(Cgroup, key, CGROUP_EVENTS_OOM, &events)
    }

    fn host() -> Case {
        Case::over(10).gauge(MEM_AVAILABLE, Bytes::from_mib(500))
    }

    #[test]
    fn a_counter_of_kills_is_found_where_the_limit_is_not_shown() {
        let kills = || Case::once().counter_of(Cgroup, "/app", CGROUP_EVENTS_OOM_KILL, 0);
        let hit = kills().counter_of(Cgroup, "/app", CGROUP_EVENTS_OOM, 0);
        let finding = found(RULE, &hit);
        assert_eq!(finding.severity, Severity::Info);
        assert!(finding.title.contains("not shown"), "{}", finding.title);
        // Without a hit the host may have killed it.
        clear(RULE, &kills());
    }

    #[test]
    fn one_kill_at_a_limit_is_critical() {
        let finding = found(RULE, &group(host(), "/app", 2));
        assert_eq!(finding.severity, Severity::Critical);
        assert_eq!(finding.confidence.word(), "confirmed");
        assert!(finding.title.contains("/app hit its limit of 96 MiB"));
        assert!(finding.title.contains("2 processes"));
        assert_eq!(finding.affected[0].name, "/app");
    }

    #[test]
    fn memory_high_is_set_below_the_raised_limit_and_never_raised() {
        let slowed = |high: Limit| {
            let case = group(host(), "/app", 2).gauge_of(Cgroup, "/app", CGROUP_HIGH, high);
            let mut changes = found(RULE, &case).fixes.iter().flat_map(changed).collect::<Vec<_>>();
            changes.retain(|change| change.contains("memory.high"));
            changes
        };
        // 347 MiB is what the first fix raises the limit to.
        let to = "/app/memory.high=327155712";
        for (high, from) in
            [(Limit::Unlimited, "max"), (Limit::Bytes(Bytes::from_mib(380)), "398458880")]
        {
            assert_eq!(slowed(high), [format!("/app/memory.high={from} -> {to}")]);
        }
        assert!(slowed(Limit::Bytes(Bytes::from_mib(48))).is_empty());
    }

    #[test]
    fn kills_are_counted_once_when_cgroups_are_read_rarely() {
        for (kills, expected) in [(1, "killed a process"), (6, "killed 6 processes")] {
            let case = group(host(), "/app", kills).read_every(10, Cgroup);
            let finding = found(RULE, &case);
            assert!(finding.title.contains(expected), "{}", finding.title);
        }
    }

    #[test]
    fn the_growth_rate_is_that_between_readings() {
        let held: Vec<Bytes> = (0..41).map(|second| Bytes::from_mib(10 + 2 * second)).collect();
        let mut events = vec![0; 40];
        events[34] = 1;
        for (every, expected) in [
            (1, "the cgroup grew from 58 MiB to 78 MiB in the 10 s before the kill (2 MiB/s)"),
            (10, "the cgroup grew from 50 MiB to 70 MiB in the 10 s before the kill (2 MiB/s)"),
        ] {
            let case = Case::over(40)
                .gauge_of(Cgroup, "/app", CGROUP_MAX, Limit::Bytes(Bytes::from_mib(96)))
                .gauge_steps_of(Cgroup, "/app", CGROUP_CURRENT, &held)
                .counter_steps_of(Cgroup, "/app", CGROUP_EVENTS_OOM_KILL, &events)
                .counter_steps_of(Cgroup, "/app", CGROUP_EVENTS_OOM, &events)
                .read_every(every, Cgroup);
            let finding = found(RULE, &case);
            let lines: Vec<_> = finding.evidence.iter().map(|line| line.text.as_str()).collect();
            assert!(lines.contains(&expected), "{lines:?}");
        }
    }

    #[test]
    fn the_title_names_the_victims_cgroup() {
        let case = group(group(host(), "/pods", 1), "/pods/web", 1);
        let finding = found(RULE, &case);
        assert!(finding.title.contains("/pods/web hit its limit"));
        assert_eq!(finding.affected.len(), 1);
    }

    #[test]
    fn the_title_names_a_limit_above_the_victim() {
        let mut events = vec![0; 10];
        events[5] = 1;
        let case = group(host(), "/pods", 1)
            .counter_steps_of(Cgroup, "/pods/web", CGROUP_EVENTS_OOM_KILL, &events)
            .counter_of(Cgroup, "/pods/web", CGROUP_EVENTS_OOM, 0);
        let finding = found(RULE, &case);
        assert!(finding.title.contains("/pods hit its limit"), "{}", finding.title);
        assert!(finding.title.contains("a process of cgroup /pods/web"));
    }

    /// A container with a limit of 112 MiB in which the kernel kills, as the container sees it.
    fn within_a_container(hits: u64) -> Case {
        let mut kills = vec![0; 10];
        kills[5] = 1;
        let mut case = group(host(), "/", 0)
            .gauge_of(Cgroup, "/", CGROUP_MAX, Limit::Bytes(Bytes::from_mib(112)))
            .counter_steps_of(Cgroup, "/", CGROUP_EVENTS_OOM_KILL, &kills)
            .counter_of(Cgroup, "/", CGROUP_EVENTS_OOM, hits);
        case.facts.container = Some(timeline::facts::Container::default());
        case.facts.own_cgroup = Some("/".to_owned());
        case
    }

    #[test]
    fn within_a_container_a_kill_below_its_limit_points_to_a_limit_around_it() {
        let finding = found(RULE, &within_a_container(0));
        assert!(
            finding.title.contains("did not hit its limit of 112 MiB: a limit around it"),
            "{}",
            finding.title
        );
        assert_eq!(finding.scope.key, "/");
        assert!(finding.fixes.iter().all(|fix| fix.changes.is_empty()));
        let own = found(RULE, &within_a_container(1));
        assert!(own.title.contains("This container hit its limit of 112 MiB"), "{}", own.title);
        // On a host the root has no limit: the host was out of memory.
        let mut host = within_a_container(0).gauge_of(Cgroup, "/", CGROUP_MAX, Limit::Unlimited);
        host.facts.container = None;
        clear(RULE, &host);
        // A limit alone shows a container, too.
        let mut bare = within_a_container(0);
        bare.facts.container = None;
        assert!(found(RULE, &bare).title.contains("a limit around it"));
        let dry = within_a_container(0).gauge(timeline::signals::MEM_TOTAL, Bytes::from_mib(8000));
        let dry = found(RULE, &dry);
        assert!(dry.title.contains("the host was nearly out of memory, or"), "{}", dry.title);
    }

    #[test]
    fn the_title_names_a_cgroup_that_is_gone() {
        let slice = "/system.slice";
        let held = vec![Bytes::from_mib(95); 6];
        let case = group(host(), slice, 1)
            .gauge_of(Cgroup, slice, CGROUP_MAX, Limit::Unlimited)
            .gauge_until_of(Cgroup, "/system.slice/job.service", CGROUP_CURRENT, &held)
            .gauge_until_of(
                Cgroup,
                "/system.slice/job.service",
                CGROUP_MAX,
                &[Limit::Bytes(Bytes::from_mib(96)); 6],
            );
        let finding = found(RULE, &case);
        assert!(finding.title.contains("job.service hit its limit of 96 MiB"), "{}", finding.title);
    }

    #[test]
    fn clear_when_the_host_killed() {
        let case = group(host(), "/app", 1).counter_of(Cgroup, "/app", CGROUP_EVENTS_OOM, 0);
        clear(RULE, &case);
    }

    #[test]
    fn on_v1_a_limit_hit_counts() {
        let v1 = |hits| {
            let mut events = vec![0; 10];
            events[5] = 1;
            let mut case = host()
                .gauge_of(Cgroup, "/app", CGROUP_MAX, Limit::Bytes(Bytes::from_mib(96)))
                .counter_steps_of(Cgroup, "/app", CGROUP_EVENTS_OOM_KILL, &events)
                .counter_of(Cgroup, "/app", CGROUP_EVENTS_MAX, hits);
            case.facts.cgroup_mode = Some(CgroupMode::V1);
            case
        };
        found(RULE, &v1(10));
        clear(RULE, &v1(0));
    }

    #[test]
    fn kills_before_the_first_sample_are_informational() {
        let finding = found(RULE, &group(host(), "/app", 0));
        assert_eq!(finding.severity, Severity::Info);
    }

    #[test]
    fn without_cgroups_clear_only_if_nothing_was_killed() {
        assert_eq!(not_evaluated(RULE, &Case::over(10)).names, ["cgroup.events_oom_kill"]);
        clear(RULE, &Case::over(10).counter_at(OOM_KILLS, 0));
    }

    /// An hour with a kill in each of these seconds, in a cgroup with a 96 MiB limit.
    fn hour(key: &str, seconds: &[usize]) -> Case {
        let mut events = vec![0; 3600];
        for second in seconds {
            events[*second] = 1;
        }
        Case::over(3600)
            .gauge(MEM_AVAILABLE, Bytes::from_mib(500))
            .gauge_of(Cgroup, key, CGROUP_MAX, Limit::Bytes(Bytes::from_mib(96)))
            .gauge_of(Cgroup, key, CGROUP_CURRENT, Bytes::from_mib(95))
            .counter_steps_of(Cgroup, key, CGROUP_EVENTS_OOM_KILL, &events)
            .counter_steps_of(Cgroup, key, CGROUP_EVENTS_OOM, &events)
    }

    #[test]
    fn kills_four_minutes_apart_are_two_incidents() {
        let finding = found(RULE, &hour("/app", &[1000, 1240, 1245]));
        assert_eq!(finding.severity, Severity::Critical);
        assert_eq!(times(&finding), [(1000, 1001), (1240, 1246)]);
        assert_eq!(finding.harm.killed, 3);
        let scope = finding.scope;
        assert_eq!((scope.entity, scope.key.as_str()), (Cgroup, "/app"));
    }

    #[test]
    fn kills_in_two_cgroups_are_two_incidents() {
        let mut events = vec![0; 3600];
        events[1001] = 1;
        let case = hour("/app", &[1000])
            .gauge_of(Cgroup, "/db", CGROUP_MAX, Limit::Bytes(Bytes::from_mib(64)))
            .counter_steps_of(Cgroup, "/db", CGROUP_EVENTS_OOM_KILL, &events)
            .counter_steps_of(Cgroup, "/db", CGROUP_EVENTS_OOM, &events);
        let all = incidents(RULE, &case);
        let keys: Vec<&str> = all.iter().map(|one| one.scope.key.as_str()).collect();
        assert_eq!(keys, ["/app", "/db"]);
        assert!(all.iter().all(|one| one.harm.killed == 1));
    }

    #[test]
    fn a_counted_and_reported_kill_is_one_incident() {
        let mut report = Report::of_a_group(98_304, 98_304);
        if let Some(group) = &mut report.0.group {
            group.path = "/app".to_owned();
        }
        let all = incidents(RULE, &hour("/app", &[1000]).reporting(1001, report));
        let [one] = all.as_slice() else {
            panic!("one kill: {all:?}");
        };
        assert_eq!((one.harm.killed, times(one)), (1, vec![(1000, 1001)]));
        assert!(one.title.contains("killed worker"), "{}", one.title);
    }

    #[test]
    fn clear_when_the_host_killed_within_an_hour() {
        let case = hour("/app", &[1000]).counter_of(Cgroup, "/app", CGROUP_EVENTS_OOM, 0);
        clear(RULE, &case);
    }
}
