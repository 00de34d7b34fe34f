//! A large process forks, and copy-on-write duplicates the pages that parent or child write.

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
    /// A large process forks, and copy-on-write duplicates the pages that parent or child write.
    ///
    /// ## What it means
    /// After a fork, parent and child share all pages. The kernel copies each page before one of them writes to it
    /// (copy-on-write). A database that forks to save its data, as Redis does, needs up to twice its memory while it
    /// saves; with huge pages, writing one byte copies 2 MiB.
    /// ## How it is recognised
    /// Two processes have the same name, one is the parent of the other, and the child is at least half as large. While
    /// both live, the host's anonymous memory grows by {COPIED} of the parent's size or more beyond what processes
    /// allocated themselves, or as many of the parent's pages turn from shared to private (smaps_rollup). It is a
    /// warning if available memory halves, or falls below {AVAILABLE_LOW_SHARE} of RAM.
    /// ## Not this
    /// - Workers that a server forks once at its start: they keep sharing their pages.
    /// - A process that grows by itself: its own RSS grows; copying does not change the RSS.
    /// ## What to do
    /// Now: nothing during the save; keep as much memory free as is written during a save. For good: THP at `madvise`
    /// for such a database, saves at quiet times, or on a replica. Verify: over the next save, available memory falls
    /// by less.
    /// ## References
    /// - kernel mm/memory.c, do_wp_page
    /// - Redis documentation: persistence, latency of fork
    pub(crate) RULE = {
        id: "fork-cow-spike", since: "0.1.0", class: Growth,
        numbers: [COPIED, AVAILABLE_LOW_SHARE, COPIED],
        trigger: trigger, story: story,
        verify: "over the next fork, available memory falls by less than {COPIED} of the parent's \
                 size",
        brings_about: WANT_AND_THRASH,
        aliases: &["cow-fork-spike"],
    }
}

/// An engineering choice.
const COPIED: Ratio = Ratio::from_percent(20.0);
/// A child right after a fork is as large as its parent; after an exec it is not.
const CHILD: Ratio = Ratio::from_percent(50.0);
/// Smaller processes do not matter for the host.
const PARENT: Ratio = Ratio::from_percent(5.0);
const PARENT_AT_LEAST: Bytes = Bytes::from_mib(16);
/// The share of its earlier level to which available memory falls.
const FALL: Ratio = Ratio::from_percent(50.0);

/// A parent and its child of the same name while both were alive.
struct Fork<'a> {
    parent: &'a EntitySeries,
    child: &'a EntitySeries,
    size: Bytes,
    /// From the sample before the child to the last sample with both.
    stretch: Stretch,
    /// Whether the child started after the first sample.
    begins: bool,
    /// Whether the stretch begins with the sample just before the child's first.
    is_close: bool,
}

fn trigger() -> Trigger {
    // Every parent is at least this large.
    let least = ram().share(PARENT).max(PARENT_AT_LEAST);
    Trigger::Found(FoundBy {
        find,
        could: Some(gauge(MEM_ANON).at_least("anonymous memory", least).if_measured()),
        scope: Subjects::Each(Entity::Process, |_, _| true),
        none: None,
    })
}

/// Forks with enough copied memory; overlapping forks of one parent are one incident.
fn find(cx: &Evidence<'_>) -> Result<Vec<Occurrence>, Missing> {
    let ram = cx.ram()?;
    let lacks = |def: &'static SignalDef| Missing::signal(def, cx.timeline.absent.get(def.file));
    let mut processes = cx.timeline.entities(Entity::Process).peekable();
    if processes.peek().is_none() {
        return Err(Missing::file(PROC_PARENT.def()));
    }
    if !processes.any(|process| cx.timeline.last_of(process, PROC_PARENT).is_some()) {
        return Err(lacks(PROC_PARENT.def()));
    }
    if cx.is_single_sample() {
        let names = vec![PROC_PARENT.def().name];
        return Err(Missing::because(names, Need::TwoSamples));
    }
    let forks = forks(cx, ram);
    if !forks.is_empty() && forks.iter().all(|fork| copied(cx, fork).is_none()) {
        return Err(lacks(MEM_ANON.def()));
    }
    let mut joined: BTreeMap<&str, Vec<Occurrence>> = BTreeMap::new();
    for fork in forks.iter().filter(|fork| is_copied(cx, fork)) {
        let (first, last) = (fork.stretch.first, fork.stretch.last);
        let of_parent = joined.entry(&fork.parent.key).or_default();
        match of_parent.iter_mut().find(|known| first <= known.last && known.first <= last) {
            Some(known) => {
                known.first = known.first.min(first);
                known.last = known.last.max(last);
            }
            None => of_parent.push(Occurrence { first, last, key: Some(fork.parent.key.clone()) }),
        }
    }
    Ok(joined.into_values().flatten().collect())
}

fn story<'a>(cx: &Evidence<'a>, incident: &Incident<'a>) -> Result<Outcome, Missing> {
    let (ram, parent) = (cx.ram()?, incident.entity()?);
    let mut forks = forks(cx, ram);
    forks.retain(|fork| fork.parent.key == parent.key && fork.stretch.overlaps(&incident.stretch));
    let copies = forks.iter().filter_map(|fork| Some((fork, copied(cx, fork)?)));
    let Some((fork, copied)) = copies.max_by_key(|(_, copied)| *copied) else {
        return clear!("no large process had a child of its own name and size");
    };
    let name = &fork.parent.label;
    if !is_copied(cx, fork) {
        return clear!("{name} ({}) forked, but only {copied} was copied", fork.size);
    }
    let share = copied.ratio_of(fork.size).unwrap_or_default();
    let available = available::available(cx).ok().map(|(track, _)| track);
    let fell = available.as_ref().and_then(|available| {
        let before = available.at(fork.stretch.first)?;
        Some((before, available.min_in(&fork.stretch)?))
    });
    let tight = fell.is_some_and(|(before, (least, _))| {
        // If processes are read rarely, the parent itself may have grown since the sample before the child.
        (fork.is_close && least < before.share(FALL)) || least < ram.share(AVAILABLE_LOW_SHARE)
    });
    let title = format!(
        "{name} ({}) forked, and {copied} of it ({share}) was copied in {} by copy-on-write, as it \
         is written while the child lives.",
        fork.size,
        fork.stretch.duration()
    );
    let finding = show_copies(RULE.found(Severity::warning_if(tight), title), cx, fork)
        .with(fell, |finding, (before, (least, index))| {
            let text = format!("available fell from {before} to {least}");
            finding.shows(MEM_AVAILABLE, least, cx.time(index), text)
        })
        .with(cx.gauge(MEM_ANON).ok(), |finding, anon| finding.graph("anonymous memory", &anon))
        .counts_if(fork.begins, "a child of the same size that started during it")
        .not("a memory leak", "the RSS of the processes did not grow by this amount");
    let open = if finding.kinds.len() < 2 {
        "smaps_rollup of parent and child (root) would settle it"
    } else {
        ""
    };
    Ok(advised(finding, cx, fork.size)
        .affects([fork.parent, fork.child].map(|process| affected(process, fork)))
        .sure_by_kinds(cx, open)
        .into())
}

/// The memory copied while both lived; `None` where the source cannot show it.
fn copied(cx: &Evidence<'_>, fork: &Fork<'_>) -> Option<Bytes> {
    by_host(cx, fork).max(by_mappings(cx, fork))
}

fn is_copied(cx: &Evidence<'_>, fork: &Fork<'_>) -> bool {
    copied(cx, fork).is_some_and(|copied| copied >= fork.size.share(COPIED))
}

/// Adds the evidence of copied memory.
fn show_copies(finding: Finding, cx: &Evidence<'_>, fork: &Fork<'_>) -> Finding {
    let (least, at) = (fork.size.share(COPIED), Some(fork.stretch.to));
    let much = |copied: Option<Bytes>| copied.filter(|copied| *copied >= least);
    finding
        .with(much(by_host(cx, fork)), |finding, grown| {
            let text = format!(
                "anonymous memory grew by {grown} beyond what processes allocated themselves"
            );
            finding
                .shows_from(MEM_ANON, grown, least, at, text)
                .counts_as("anonymous memory of the host")
        })
        .with(much(by_mappings(cx, fork)), |finding, private| {
            let text = format!("{private} of the parent's pages turned from shared to private");
            finding
                .shows_from(PROC_PRIVATE_DIRTY, private, least, at, text)
                .counts_as("the parent's mappings")
        })
}

/// Adds cause and fixes: huge pages make copies larger.
fn advised(finding: Finding, cx: &Evidence<'_>, size: Bytes) -> Finding {
    let choice = cx.choice(THP_ENABLED).ok();
    let plan = Fix::say(format!(
        "Keep up to {size} more available while the child lives, or save at quiet times or on a \
         replica."
    ));
    if choice != Some("always") {
        return finding
            .cause(
                "Parent or child writes to memory that both share; the kernel copies each page \
                 before the write.",
            )
            .fix(plan);
    }
    finding
        .cause(
            "Parent or child writes to memory that both share, and huge pages are on for all: one \
             written byte copies up to 2 MiB.",
        )
        .fix(plan)
        .fix(Fix::file(
            "Limit huge pages to programs that request them (madvise). If the kernel command line \
             sets the mode: transparent_hugepage=madvise.",
            THP_ENABLED,
            "madvise",
            choice,
        ))
}

fn affected(process: &EntitySeries, fork: &Fork<'_>) -> Affected {
    let is_parent = std::ptr::eq(process, fork.parent);
    let role = if is_parent { "parent" } else { "child" };
    let what = format!("PID {}, {role}", process.pid());
    Affected::new("process", &process.label, what)
}

/// Resident anonymous memory; RSS on kernels before 4.5.
fn size(cx: &Evidence<'_>, process: &EntitySeries, index: usize) -> Option<Bytes> {
    let timeline = cx.timeline;
    timeline.at_of(process, PROC_RSS_ANON, index).or_else(|| {
        let pages = timeline.at_of(process, PROC_RSS, index)?;
        Some(pages.to_bytes(cx.facts.page_size?))
    })
}

/// Resident anonymous memory over time.
fn sizes(cx: &Evidence<'_>, process: &EntitySeries) -> Option<Track<Bytes>> {
    cx.timeline.gauge_of(process, PROC_RSS_ANON).or_else(|| {
        let pages = cx.timeline.gauge_of(process, PROC_RSS)?;
        Some(pages.to_bytes(cx.facts.page_size?))
    })
}

/// The samples in which processes were read; between them their sizes are unknown.
fn process_samples(
    cx: &Evidence<'_>,
    within: std::ops::RangeInclusive<usize>,
) -> impl DoubleEndedIterator<Item = usize> {
    within.filter(|index| cx.timeline.was_read(Entity::Process, *index))
}

/// All pairs of a large parent and a child of the same name and similar size.
fn forks<'a>(cx: &Evidence<'a>, ram: Bytes) -> Vec<Fork<'a>> {
    let large = ram.share(PARENT).max(PARENT_AT_LEAST);
    let timeline = cx.timeline;
    let mut by_pid: BTreeMap<&str, Vec<&'a EntitySeries>> = BTreeMap::new();
    for process in timeline.entities(Entity::Process) {
        by_pid.entry(process.pid()).or_default().push(process);
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

/// The time in which both were alive, if the parent was large and the child of similar size.
fn fork<'a>(
    cx: &Evidence<'a>,
    parent: &'a EntitySeries,
    child: &'a EntitySeries,
    large: Bytes,
) -> Option<Fork<'a>> {
    let (of_parent, of_child) = (sizes(cx, parent)?, sizes(cx, child)?);
    let both = |i: &usize| of_parent.at(*i).is_some() && of_child.at(*i).is_some();
    let mut shared = process_samples(cx, 0..=cx.timeline.len().checked_sub(1)?).filter(both);
    let first = shared.next()?;
    let last = shared.next_back().unwrap_or(first);
    let before = process_samples(cx, 0..=first).rev().nth(1);
    let size = of_parent.at(first)?;
    if size < large || of_child.at(first)? < size.share(CHILD) {
        return None;
    }
    Some(Fork {
        parent,
        child,
        size,
        // The first copies are already in the first sample with both.
        stretch: cx.timeline.stretch(before.unwrap_or(first), last)?,
        begins: before.is_some(),
        is_close: before.is_none_or(|before| before + 1 == first),
    })
}

/// Growth of the host's anonymous memory while both lived, beyond what processes allocated themselves: a copied page is
/// new to the host, but not to the process that writes it. At most the parent's size.
fn by_host(cx: &Evidence<'_>, fork: &Fork<'_>) -> Option<Bytes> {
    let anon = cx.timeline.gauge(MEM_ANON)?;
    let before = anon.at(fork.stretch.first)?;
    // Compare the host and its processes only where both were read.
    let first = (fork.stretch.first + 1).min(fork.stretch.last);
    let (after, at) = process_samples(cx, first..=fork.stretch.last)
        .filter_map(|at| Some((anon.at(at)?, at)))
        .max()?;
    let allocated: Bytes = cx
        .timeline
        .entities(Entity::Process)
        .filter(|process| process.key != fork.child.key)
        .filter_map(|process| {
            let now = size(cx, process, at)?;
            // A new process allocated all it has.
            let then = size(cx, process, fork.stretch.first).unwrap_or_default();
            Some(now.saturating_sub(then))
        })
        .sum();
    let by_child = || {
        let first = (fork.stretch.first..=at).find_map(|at| size(cx, fork.child, at))?;
        Some(size(cx, fork.child, at)?.saturating_sub(first))
    };
    let allocated = allocated + by_child().unwrap_or_default();
    let grown = after.saturating_sub(before).saturating_sub(allocated);
    Some(grown.min(fork.size))
}

/// The parent's memory that turned from shared to private while both lived.
fn by_mappings(cx: &Evidence<'_>, fork: &Fork<'_>) -> Option<Bytes> {
    let timeline = cx.timeline;
    let readings: Vec<(Bytes, Bytes)> = (fork.stretch.first..=fork.stretch.last)
        // Only while the child lives: when it exits, all pages become private without a copy.
        .filter(|i| size(cx, fork.child, *i).is_some())
        .filter_map(|i| {
            Some((
                timeline.at_of(fork.parent, PROC_SHARED_DIRTY, i)?,
                timeline.at_of(fork.parent, PROC_PRIVATE_DIRTY, i)?,
            ))
        })
        .collect();
    let ((shared_first, private_first), (shared_last, private_last)) =
        (*readings.first()?, *readings.last()?);
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
    fn growth_beyond_what_processes_allocated_is_found() {
        let finding = found(RULE, &pair(&ramp(310, 140), 300, "redis"));
        assert_eq!(finding.severity, Severity::Info);
        assert!(finding.title.contains("140 MiB of it (47 %)"), "{}", finding.title);
        assert_eq!(finding.affected.len(), 2);
    }

    #[test]
    fn each_fork_is_an_occurrence() {
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
                .gauge_within_of(Entity::Process, key, samples.clone(), PROC_RSS_ANON, MIB(300))
                .gauge_within_of(Entity::Process, key, samples.clone(), PROC_PARENT, parent);
            case.named_within(key, samples, "redis")
        };
        let case = child(child(case, "11@7", 1..21), "12@9", 42..62);
        assert_eq!(times(&found(RULE, &case)), [(0, 20), (41, 61)]);
    }

    /// A fork for 30 s within an hour, with `copied` MiB copied.
    fn within_an_hour(copied: u64) -> Case {
        let anon =
            [vec![MIB(310); 1800], ramp(310, copied), vec![MIB(310 + copied); 10], vec![MIB(310)]]
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
            .gauge_within_of(Entity::Process, key, lives.clone(), PROC_PARENT, Count::new(10))
            .named_within(key, lives, "redis")
    }

    #[test]
    fn finds_30_s_within_an_hour() {
        let finding = found(RULE, &within_an_hour(140));
        assert_eq!(finding.severity, Severity::Warning);
        assert_eq!(times(&finding), [(1800, 1830)]);
        clear(RULE, &within_an_hour(10));
    }

    #[test]
    fn a_warning_when_available_memory_halves() {
        let mut available = vec![MIB(400); 10];
        available.extend([MIB(150); 11]);
        let case = pair(&ramp(310, 140), 300, "redis").gauge_steps(MEM_AVAILABLE, &available);
        assert_eq!(found(RULE, &case).severity, Severity::Warning);
    }

    #[test]
    fn pages_that_turn_private_make_it_confirmed() {
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
    fn clear_when_the_process_grows_by_itself() {
        let case = pair(&ramp(310, 140), 300, "redis").gauge_steps_of(
            Entity::Process,
            "10@1",
            PROC_RSS_ANON,
            &ramp(300, 140),
        );
        clear(RULE, &case);
    }

    #[test]
    fn clear_when_the_child_shares_or_is_another_program() {
        clear(RULE, &pair(&ramp(310, 10), 300, "redis"));
        clear(RULE, &pair(&ramp(310, 140), 300, "sh"));
        clear(RULE, &pair(&ramp(310, 140), 20, "redis"));
    }

    #[test]
    fn rss_is_used_without_rss_anon() {
        let case = Case::over(20)
            .gauge(MEM_TOTAL, MIB(1000))
            .gauge_steps(MEM_ANON, &ramp(310, 140))
            .gauge_of(Entity::Process, "10@1", PROC_RSS, Pages::new(300 * 256))
            .gauge_of(Entity::Process, "11@7", PROC_RSS, Pages::new(300 * 256))
            .gauge_of(Entity::Process, "11@7", PROC_PARENT, Count::new(10));
        // Without a name the label is the key, and keys differ.
        clear(RULE, &case);
        found(RULE, &case.named("10@1", "redis").named("11@7", "redis"));
    }

    #[test]
    fn not_evaluated_without_processes() {
        let case = Case::over(20).gauge(MEM_TOTAL, MIB(1000));
        assert_eq!(not_evaluated(RULE, &case).names, ["proc.parent"]);
    }
}
