//! A process forks, and what both then write is copied: its memory is needed twice.

use std::collections::BTreeMap;

use timeline::SignalDef;
use timeline::facts::THP_ENABLED;
use timeline::signals::{
    MEM_ANON, MEM_AVAILABLE, PROC_PARENT, PROC_PRIVATE_DIRTY, PROC_RSS, PROC_RSS_ANON,
    PROC_SHARED_DIRTY,
};

use crate::measures::available;
use crate::prelude::*;

declare_rule! {
    /// A large process forks, and the pages that parent or child write meanwhile exist twice.
    ///
    /// ## What it means
    /// After a fork both share all pages. Each page that one of them writes is copied first (copy on write). A database
    /// that forks to save itself, as Redis does, needs up to twice its memory while it saves; with huge pages a write of
    /// one byte copies 2 MiB.
    /// ## How it is recognised
    /// Two processes of one name, one the parent of the other, the child at least half as large; while both live, the
    /// host's anonymous memory grows by 20 % of the parent's size or more beyond what processes took for themselves, or
    /// the parent's pages turn from shared to private by as much (smaps_rollup). It is a warning if available memory
    /// falls to half meanwhile, or below 10 % of RAM.
    /// ## Not this
    /// - Workers that a server forks once at its start: they share and keep sharing.
    /// - A process that grows by itself: its own RSS grows; by copying it does not.
    /// ## What to do
    /// Now: nothing while it saves; keep as much memory free as is written during a save. For good: THP at `madvise` for
    /// such a database, saves at quiet times, or on a replica. Verify: over the next save available memory falls by less.
    /// ## References
    /// - kernel mm/memory.c, do_wp_page
    /// - Redis documentation: persistence, latency of fork
    pub(crate) RULE = {
        id: "fork-cow-spike", since: "0.1.0", class: Growth,
        trigger: trigger, story: story,
        verify: "over the next fork, available memory falls by less than a fifth of the parent's size",
        brings_about: WANT_AND_THRASH,
        aliases: &["cow-fork-spike"],
    }
}

/// An engineering choice.
const COPIED: Ratio = Ratio::from_percent(20.0);
/// A child right after a fork is as large as its parent; one that has run another program is not.
const CHILD: Ratio = Ratio::from_percent(50.0);
/// Smaller processes do not matter for the host.
const PARENT: Ratio = Ratio::from_percent(5.0);
const PARENT_AT_LEAST: Bytes = Bytes::from_mib(16);
/// Available memory falls by this share of what it was.
const FALL: Ratio = Ratio::from_percent(50.0);

/// A parent and its child of the same name while both live.
struct Fork<'a> {
    parent: &'a EntitySeries,
    child: &'a EntitySeries,
    size: Bytes,
    /// From the sample before the child to the last with both.
    stretch: Stretch,
    /// Whether the child began while it was watched.
    begins: bool,
    /// Whether the stretch begins with the sample just before the child was seen.
    is_close: bool,
}

fn trigger() -> Trigger {
    // A parent is at least so large.
    let least = ram().share(PARENT).max(PARENT_AT_LEAST);
    Trigger::Found(Found {
        find,
        could: Some(
            gauge(MEM_ANON)
                .at_least("anonymous memory", least)
                .if_measured(),
        ),
        scope: Scope::Each(Entity::Process, |_, _| true),
        none: None,
    })
}

/// Forks of which enough was copied; those of one parent that overlap are one incident.
fn find(cx: &Evidence<'_>) -> Result<Vec<Occurrence>, Missing> {
    let ram = cx.ram()?;
    let lacks = |def: &'static SignalDef| Missing::signal(def, cx.timeline.absent.get(def.file));
    let mut processes = cx.timeline.entities(Entity::Process).peekable();
    if processes.peek().is_none() {
        return Err(Missing::file(PROC_PARENT.def()));
    }
    if !processes.any(|p| cx.timeline.last_of(p, PROC_PARENT).is_some()) {
        return Err(lacks(PROC_PARENT.def()));
    }
    if cx.is_single_look() {
        let names = vec![PROC_PARENT.def().name];
        return Err(Missing::because(names, Need::TwoLooks));
    }
    let forks = forks(cx, ram);
    if !forks.is_empty() && forks.iter().all(|fork| copied(cx, fork).is_none()) {
        return Err(lacks(MEM_ANON.def()));
    }
    let mut joined: BTreeMap<&str, Vec<Occurrence>> = BTreeMap::new();
    for fork in forks.iter().filter(|fork| is_copied(cx, fork)) {
        let (first, last) = (fork.stretch.first, fork.stretch.last);
        let of_parent = joined.entry(&fork.parent.key).or_default();
        match of_parent
            .iter_mut()
            .find(|it| first <= it.last && it.first <= last)
        {
            Some(known) => {
                known.first = known.first.min(first);
                known.last = known.last.max(last);
            }
            None => of_parent.push(Occurrence {
                first,
                last,
                key: Some(fork.parent.key.clone()),
            }),
        }
    }
    Ok(joined.into_values().flatten().collect())
}

fn story<'a>(cx: &Evidence<'a>, incident: &Incident<'a>) -> Result<Outcome, Missing> {
    let (ram, parent) = (cx.ram()?, incident.entity()?);
    let mut forks = forks(cx, ram);
    forks.retain(|fork| fork.parent.key == parent.key && fork.stretch.overlaps(&incident.stretch));
    let worst = forks
        .iter()
        .filter_map(|fork| Some((fork, copied(cx, fork)?)));
    let Some((fork, copied)) = worst.max_by_key(|(_, copied)| *copied) else {
        return clear!("no large process lived beside a child of its own name and size");
    };
    let name = &fork.parent.label;
    if !is_copied(cx, fork) {
        return clear!(
            "{name} ({}) forked, but only {copied} were copied",
            fork.size
        );
    }
    let share = copied.ratio_of(fork.size).unwrap_or_default();
    let available = available::available(cx).ok().map(|(track, _)| track);
    let before = available.as_ref().and_then(|t| t.at(fork.stretch.first));
    let least = available.as_ref().and_then(|t| t.min_in(&fork.stretch));
    let fell = before.zip(least);
    let tight = fell.is_some_and(|(before, (least, _))| {
        // Where processes are read rarely, the parent may have grown itself since the look before the child.
        (fork.is_close && least < before.share(FALL)) || least < ram.share(LITTLE_AVAILABLE)
    });
    let title = format!(
        "{name} ({}) forked, and {copied} of it ({share}) had to be copied in {} because it is written while the child lives.",
        fork.size,
        fork.stretch.duration()
    );
    let finding = copies_shown_in(RULE.found(Severity::warning_if(tight), title), cx, fork)
        .with(fell, |it, (before, (least, index))| {
            let text = format!("available fell from {before} to {least}");
            it.shows(MEM_AVAILABLE, least, cx.time(index), text)
        })
        .with(cx.gauge(MEM_ANON).ok(), |it, anon| {
            it.graph("anonymous memory", &anon)
        })
        .counts_if(fork.begins, "a child of the same size that began meanwhile")
        .not(
            "a leak of the program",
            "the processes' own resident sets did not grow by it",
        );
    let open = match finding.kinds.len() {
        0 | 1 => "smaps_rollup of parent and child (root) would settle it",
        _ => "",
    };
    Ok(advised(finding, cx, fork.size)
        .affects([fork.parent, fork.child].map(|process| affected(process, fork)))
        .sure_by_kinds(cx, open)
        .into())
}

/// What had to be copied while both lived; `None` where the source does not tell.
fn copied(cx: &Evidence<'_>, fork: &Fork<'_>) -> Option<Bytes> {
    by_host(cx, fork).max(by_mappings(cx, fork))
}

fn is_copied(cx: &Evidence<'_>, fork: &Fork<'_>) -> bool {
    copied(cx, fork).is_some_and(|copied| copied >= fork.size.share(COPIED))
}

/// With what shows the copies.
fn copies_shown_in(finding: Finding, cx: &Evidence<'_>, fork: &Fork<'_>) -> Finding {
    let (least, at) = (fork.size.share(COPIED), Some(fork.stretch.to));
    let much = |copied: Option<Bytes>| copied.filter(|copied| *copied >= least);
    finding
        .with(much(by_host(cx, fork)), |it, grown| {
            let text = format!(
                "anonymous memory grew by {grown} beyond what processes took for themselves"
            );
            it.shows_from(MEM_ANON, grown, least, at, text)
                .counts_as("anonymous memory of the host")
        })
        .with(much(by_mappings(cx, fork)), |it, private| {
            let text = format!("{private} of the parent's pages turned from shared to its own");
            it.shows_from(PROC_PRIVATE_DIRTY, private, least, at, text)
                .counts_as("the parent's mappings")
        })
}

/// With cause and fixes: huge pages make copies larger.
fn advised(finding: Finding, cx: &Evidence<'_>, size: Bytes) -> Finding {
    let choice = cx.choice(THP_ENABLED).ok();
    let plan = Fix::say(format!(
        "Plan for it: up to {size} more while the child lives, or save at quiet times or on a replica."
    ));
    if choice != Some("always") {
        return finding
            .cause("Parent or child writes while both share their memory; each written page is copied first.")
            .fix(plan);
    }
    finding
        .cause("Parent or child writes while both share their memory, and huge pages are on for all: one written byte copies up to 2 MiB.")
        .fix(plan)
        .fix(Fix::file(
            "Keep huge pages for programs that ask for them. Where the kernel's command line sets it: transparent_hugepage=madvise.",
            "/sys/kernel/mm/transparent_hugepage/enabled",
            "madvise",
            choice,
        ))
}

fn affected(process: &EntitySeries, fork: &Fork<'_>) -> Affected {
    let is_parent = std::ptr::eq(process, fork.parent);
    let role = if is_parent { "parent" } else { "child" };
    let what = format!("PID {}, {role}", pid(process));
    Affected::new("process", &process.label, what)
}

/// The process ID in the key `PID@START`.
fn pid(process: &EntitySeries) -> &str {
    process.key.split('@').next().unwrap_or_default()
}

/// Resident anonymous memory; RSS on kernels before 4.5.
fn size(cx: &Evidence<'_>, process: &EntitySeries, index: usize) -> Option<Bytes> {
    let timeline = cx.timeline;
    timeline.at_of(process, PROC_RSS_ANON, index).or_else(|| {
        let pages = timeline.at_of(process, PROC_RSS, index)?;
        Some(pages.to_bytes(cx.facts.page_size?))
    })
}

/// The same over time.
fn sizes(cx: &Evidence<'_>, process: &EntitySeries) -> Option<Track<Bytes>> {
    cx.timeline.gauge_of(process, PROC_RSS_ANON).or_else(|| {
        let pages = cx.timeline.gauge_of(process, PROC_RSS)?;
        Some(pages.to_bytes(cx.facts.page_size?))
    })
}

/// The samples in which processes were read; between them nothing tells their sizes.
fn read(
    cx: &Evidence<'_>,
    within: std::ops::RangeInclusive<usize>,
) -> impl DoubleEndedIterator<Item = usize> {
    within.filter(|index| cx.timeline.was_read(Entity::Process, *index))
}

/// All pairs of a large parent and a child of its name and size.
fn forks<'a>(cx: &Evidence<'a>, ram: Bytes) -> Vec<Fork<'a>> {
    let large = ram.share(PARENT).max(PARENT_AT_LEAST);
    let timeline = cx.timeline;
    let mut by_pid: BTreeMap<&str, Vec<&'a EntitySeries>> = BTreeMap::new();
    for process in timeline.entities(Entity::Process) {
        by_pid.entry(pid(process)).or_default().push(process);
    }
    let mut forks = Vec::new();
    for child in timeline.entities(Entity::Process) {
        if processes::is_recorder(cx, child) {
            continue;
        }
        let Some(parent) = timeline.last_of(child, PROC_PARENT) else {
            continue;
        };
        let parents = by_pid.get(parent.get().to_string().as_str());
        for parent in parents.into_iter().flatten() {
            if parent.label == child.label {
                forks.extend(fork(cx, parent, child, large));
            }
        }
    }
    forks
}

/// The time in which both lived, if the parent was large and the child like it.
fn fork<'a>(
    cx: &Evidence<'a>,
    parent: &'a EntitySeries,
    child: &'a EntitySeries,
    large: Bytes,
) -> Option<Fork<'a>> {
    let (of_parent, of_child) = (sizes(cx, parent)?, sizes(cx, child)?);
    let both = |i: &usize| of_parent.at(*i).is_some() && of_child.at(*i).is_some();
    let mut looks = read(cx, 0..=cx.timeline.len().checked_sub(1)?).filter(both);
    let first = looks.next()?;
    let last = looks.next_back().unwrap_or(first);
    let before = read(cx, 0..=first).rev().nth(1);
    let size = of_parent.at(first)?;
    if size < large || of_child.at(first)? < size.share(CHILD) {
        return None;
    }
    Some(Fork {
        parent,
        child,
        size,
        // What the first moments copied is in the first sample with both already.
        stretch: cx.timeline.stretch(before.unwrap_or(first), last)?,
        begins: before.is_some(),
        is_close: before.is_none_or(|before| before + 1 == first),
    })
}

/// By how much the host's anonymous memory grew while both lived, beyond what processes took for themselves: a copied
/// page is new to the host, but not to the process that writes it. Never more than the parent's size.
fn by_host(cx: &Evidence<'_>, fork: &Fork<'_>) -> Option<Bytes> {
    let anon = cx.timeline.gauge(MEM_ANON)?;
    let before = anon.at(fork.stretch.first)?;
    // The host's memory and the processes' are compared at moments at which both were read.
    let first = (fork.stretch.first + 1).min(fork.stretch.last);
    let looks = read(cx, first..=fork.stretch.last);
    let (after, at) = looks.filter_map(|at| Some((anon.at(at)?, at))).max()?;
    let taken: Bytes = cx
        .timeline
        .entities(Entity::Process)
        .filter(|process| process.key != fork.child.key)
        .filter_map(|process| {
            let now = size(cx, process, at)?;
            // A process that was not there before took all it has.
            let then = size(cx, process, fork.stretch.first);
            Some(then.map_or(now, |then| now.saturating_sub(then)))
        })
        .sum();
    let child = || {
        let first = (fork.stretch.first..=at).find_map(|i| size(cx, fork.child, i))?;
        Some(size(cx, fork.child, at)?.saturating_sub(first))
    };
    let taken = child().map_or(taken, |more| taken + more);
    let grown = after.saturating_sub(before).saturating_sub(taken);
    Some(grown.min(fork.size))
}

/// How many of the parent's pages turned from shared to private while both lived.
fn by_mappings(cx: &Evidence<'_>, fork: &Fork<'_>) -> Option<Bytes> {
    let timeline = cx.timeline;
    let looks: Vec<(Bytes, Bytes)> = (fork.stretch.first..=fork.stretch.last)
        // Only while the child lives: when it ends, all becomes private without a copy.
        .filter(|i| size(cx, fork.child, *i).is_some())
        .filter_map(|i| {
            Some((
                timeline.at_of(fork.parent, PROC_SHARED_DIRTY, i)?,
                timeline.at_of(fork.parent, PROC_PRIVATE_DIRTY, i)?,
            ))
        })
        .collect();
    let ((shared_first, private_first), (shared_last, private_last)) =
        (*looks.first()?, *looks.last()?);
    let gained = private_last.saturating_sub(private_first);
    Some(gained.min(shared_first.saturating_sub(shared_last)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::testing::{Case, clear, found, not_evaluated, times};
    use timeline::signals::MEM_TOTAL;
    use units::Pages;

    const MIB: fn(u64) -> Bytes = Bytes::from_mib;

    fn ramp(from: u64, by: u64) -> Vec<Bytes> {
        (0..=20).map(|i| MIB(from + by * i / 20)).collect()
    }

    /// 1,000 MiB; `redis` with 300 MiB and its child.
    fn pair(anon: &[Bytes], child_size: u64, child_name: &str) -> Case {
        Case::over(20)
            .gauge(MEM_TOTAL, MIB(1000))
            .gauge(MEM_AVAILABLE, MIB(500))
            .gauge_steps(MEM_ANON, anon)
            .gauge_of(Entity::Process, "10@1", PROC_RSS_ANON, MIB(300))
            .gauge_of(Entity::Process, "10@1", PROC_PARENT, Count::new(1))
            .named("10@1", "redis")
            .gauge_of(Entity::Process, "11@7", PROC_RSS_ANON, MIB(child_size))
            .gauge_of(Entity::Process, "11@7", PROC_PARENT, Count::new(10))
            .named("11@7", child_name)
    }

    #[test]
    fn memory_that_no_process_took_for_itself_was_copied() {
        let finding = found(RULE, &pair(&ramp(310, 140), 300, "redis"));
        assert_eq!(finding.severity, Severity::Info);
        assert!(
            finding.title.contains("140 MiB of it (47 %)"),
            "{}",
            finding.title
        );
        assert_eq!(finding.affected.len(), 2);
    }

    #[test]
    fn each_fork_of_the_program_is_told() {
        let level = vec![MIB(310); 20];
        let anon = [ramp(310, 140), level, ramp(310, 120)].concat();
        let case = Case::over(61)
            .gauge(MEM_TOTAL, MIB(1000))
            .gauge(MEM_AVAILABLE, MIB(500))
            .gauge_steps(MEM_ANON, &anon)
            .gauge_of(Entity::Process, "10@1", PROC_RSS_ANON, MIB(300))
            .gauge_of(Entity::Process, "10@1", PROC_PARENT, Count::new(1))
            .named("10@1", "redis");
        let child = |case: Case, key: &str, samples: std::ops::Range<usize>| {
            let parent = Count::new(10);
            let case = case
                .gauge_within_of(
                    Entity::Process,
                    key,
                    samples.clone(),
                    PROC_RSS_ANON,
                    MIB(300),
                )
                .gauge_within_of(Entity::Process, key, samples.clone(), PROC_PARENT, parent);
            case.named_within(key, samples, "redis")
        };
        let case = child(child(case, "11@7", 1..21), "12@9", 42..62);
        assert_eq!(times(&found(RULE, &case)), [(0, 20), (41, 61)]);
    }

    /// A fork for 30 s within an hour, of which `copied` MiB are copied.
    fn within_an_hour(copied: u64) -> Case {
        let anon = [
            vec![MIB(310); 1800],
            ramp(310, copied),
            vec![MIB(310 + copied); 10],
            vec![MIB(310)],
        ]
        .concat();
        let available = [vec![MIB(500); 1820], vec![MIB(200); 11], vec![MIB(500)]].concat();
        let case = Case::over(3600)
            .gauge(MEM_TOTAL, MIB(1000))
            .gauge_steps(MEM_AVAILABLE, &available)
            .gauge_steps(MEM_ANON, &anon)
            .gauge_of(Entity::Process, "10@1", PROC_RSS_ANON, MIB(300))
            .gauge_of(Entity::Process, "10@1", PROC_PARENT, Count::new(1))
            .named("10@1", "redis");
        let (key, lives) = ("11@7", 1801..1831);
        case.gauge_within_of(Entity::Process, key, lives.clone(), PROC_RSS_ANON, MIB(300))
            .gauge_within_of(
                Entity::Process,
                key,
                lives.clone(),
                PROC_PARENT,
                Count::new(10),
            )
            .named_within(key, lives, "redis")
    }

    #[test]
    fn half_a_minute_within_a_calm_hour_is_found() {
        let finding = found(RULE, &within_an_hour(140));
        assert_eq!(finding.severity, Severity::Warning);
        assert_eq!(times(&finding), [(1800, 1830)]);
        clear(RULE, &within_an_hour(10));
    }

    #[test]
    fn a_spike_that_halves_what_is_available_is_a_warning() {
        let mut available = vec![MIB(400); 10];
        available.extend([MIB(150); 11]);
        let case = pair(&ramp(310, 140), 300, "redis").gauge_steps(MEM_AVAILABLE, &available);
        assert_eq!(found(RULE, &case).severity, Severity::Warning);
    }

    #[test]
    fn pages_that_turn_private_confirm_it() {
        let shared: Vec<Bytes> = (0..=20).map(|i| MIB(300 - 10 * i)).collect();
        let private: Vec<Bytes> = (0..=20).map(|i| MIB(10 * i)).collect();
        let case = pair(&ramp(310, 140), 300, "redis")
            .gauge_steps_of(Entity::Process, "10@1", PROC_SHARED_DIRTY, &shared)
            .gauge_steps_of(Entity::Process, "10@1", PROC_PRIVATE_DIRTY, &private);
        let finding = found(RULE, &case);
        assert_eq!(finding.confidence.word(), "confirmed");
        let copied = finding.evidence[1].measured.as_ref().unwrap();
        assert_eq!(copied.signal, "proc.private_dirty");
    }

    #[test]
    fn a_process_that_grows_by_itself_copies_nothing() {
        let case = pair(&ramp(310, 140), 300, "redis").gauge_steps_of(
            Entity::Process,
            "10@1",
            PROC_RSS_ANON,
            &ramp(300, 140),
        );
        clear(RULE, &case);
    }

    #[test]
    fn a_child_that_shares_or_is_another_program_is_clear() {
        clear(RULE, &pair(&ramp(310, 10), 300, "redis"));
        clear(RULE, &pair(&ramp(310, 140), 300, "sh"));
        clear(RULE, &pair(&ramp(310, 140), 20, "redis"));
    }

    #[test]
    fn kernels_without_rss_anon_are_judged_by_rss() {
        let case = Case::over(20)
            .gauge(MEM_TOTAL, MIB(1000))
            .gauge_steps(MEM_ANON, &ramp(310, 140))
            .gauge_of(Entity::Process, "10@1", PROC_RSS, Pages::new(300 * 256))
            .gauge_of(Entity::Process, "11@7", PROC_RSS, Pages::new(300 * 256))
            .gauge_of(Entity::Process, "11@7", PROC_PARENT, Count::new(10));
        // Without a name the key is the label, and keys differ.
        clear(RULE, &case);
        found(RULE, &case.named("10@1", "redis").named("11@7", "redis"));
    }

    #[test]
    fn without_processes_it_says_what_it_lacks() {
        let case = Case::over(20).gauge(MEM_TOTAL, MIB(1000));
        assert_eq!(not_evaluated(RULE, &case).names, ["proc.parent"]);
    }
}
