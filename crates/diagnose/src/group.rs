//! One cgroup as its own host: the limits around it, what counts towards them, what it felt, and what rules found about
//! it. Judges nothing itself: findings are those of the host's diagnosis that are about the cgroup.

mod findings;
mod raising;

use schemars::JsonSchema;
use serde::Serialize;
use timeline::cgroup::ancestors;
use timeline::facts::CgroupMode;
use timeline::signals::{
    CGROUP_ACTIVE_FILE, CGROUP_ANON, CGROUP_CURRENT, CGROUP_EVENTS_HIGH, CGROUP_EVENTS_MAX,
    CGROUP_EVENTS_OOM_KILL, CGROUP_FILE, CGROUP_FILE_DIRTY, CGROUP_FILE_WRITEBACK,
    CGROUP_INACTIVE_FILE, CGROUP_KERNEL, CGROUP_KERNEL_STACK, CGROUP_PAGETABLES, CGROUP_PEAK,
    CGROUP_PERCPU, CGROUP_PSI_MEMORY_FULL, CGROUP_PSI_MEMORY_SOME, CGROUP_REFAULT_ANON,
    CGROUP_REFAULT_FILE, CGROUP_SHMEM, CGROUP_SLAB_RECLAIMABLE, CGROUP_SLAB_UNRECLAIMABLE,
    CGROUP_SOCK, CGROUP_SWAP_CURRENT, MEM_AVAILABLE,
};
use timeline::{Counter, Entity, EntitySeries, Gauge, Signal, SignalId, Stretch, limit_steps};
use units::{Bytes, Count, Limit, Pages, PerSecond, Quantity as _, Ratio, Span};

use crate::evidence::Evidence;
use crate::finding::Finding;
use crate::finding::LimitFile;
use crate::measures::cgroups::{counts_hits, own_events, stalled, undroppable};
use crate::remedy;

pub use findings::GroupDiagnosis;

/// A cgroup at the moment that matters: where it had most memory during its worst finding, else at the last sample.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct GroupState {
    /// Its path.
    pub path: String,
    /// The moment, on the timeline's clock.
    pub at: Span,
    /// Its sample; `None` where no sample has figures of the cgroup.
    pub index: Option<usize>,
    /// What is charged to it, and to those below it.
    pub current: Option<Bytes>,
    /// The most that was ever charged to it.
    pub peak: Option<Bytes>,
    /// What that is made of, the largest first; a part that no counter explains is the last one.
    pub parts: Vec<ChargedPart>,
    /// `current` without inactive file cache: what Kubernetes compares with limits, and evicts by.
    pub working_set: Option<Bytes>,
    /// What reclaim can take without swap: file cache that is clean, and reclaimable kernel objects.
    pub droppable: Option<Bytes>,
    /// File cache that has to be written before reclaim can take it.
    pub unwritten: Option<Bytes>,
    /// What it has in swap.
    pub swap: Option<Bytes>,
    /// The limits of it and of the cgroups around it, from the inside.
    pub limits: Vec<GroupLimitState>,
    /// MemTotal.
    pub ram: Option<Bytes>,
    /// MemAvailable.
    pub available: Option<Bytes>,
    /// What it felt since the first sample.
    pub felt: GroupFelt,
    /// What raising which limit would change, in sentences.
    pub raising: Vec<String>,
    /// What the source cannot show, in sentences.
    pub unknown: Vec<String>,
}

/// A part of what is charged to a cgroup.
#[allow(missing_docs)] // names say it
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "Part")]
pub struct ChargedPart {
    /// What it is.
    pub label: &'static str,
    pub bytes: Bytes,
}

/// A limit of a cgroup.
#[allow(missing_docs)] // names say it
#[derive(Debug, Clone, PartialEq)]
pub struct GroupLimitState {
    /// The cgroup that has it.
    pub path: String,
    /// The same in a sentence: by the name of its container or pod.
    pub place: String,
    /// The kernel's file: `memory.max`, on cgroup v1 `memory.limit_in_bytes`.
    pub file: &'static str,
    /// Whether tasks are throttled there, and none are killed.
    pub is_soft: bool,
    pub limit: Bytes,
    /// What counts towards it.
    pub used: Option<Bytes>,
    /// The part of this that reclaim cannot take without swap.
    pub undroppable: Option<Bytes>,
    /// How often it was hit since the first sample, by this cgroup itself where children count too. Hits of another limit,
    /// which it had before or has since, do not count.
    pub hits: Option<Count>,
    /// The limit at the end, where that is another one.
    pub since: Option<Limit>,
}

impl GroupLimitState {
    /// Returns how much of it is used; above one where the kernel let it be exceeded.
    pub fn share(&self) -> Option<Ratio> {
        self.used?.ratio_of(self.limit)
    }

    /// Returns what is left below it.
    pub fn room(&self) -> Option<Bytes> {
        Some(self.limit.saturating_sub(self.used?))
    }
}

/// What a cgroup felt since the first sample; null where the source does not measure it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "Felt")]
pub struct GroupFelt {
    /// The time of which it speaks.
    #[serde(rename = "during_s")]
    pub during: Span,
    /// The share of the worst ten seconds in which a task waited for memory.
    #[serde(rename = "stalled_some")]
    pub some: Option<Ratio>,
    /// The same for all tasks at once.
    #[serde(rename = "stalled_full")]
    pub full: Option<Ratio>,
    /// How often tasks were throttled above memory.high.
    pub throttled: Option<Count>,
    /// How often the hard limit was hit.
    #[serde(rename = "limit_hits")]
    pub hits: Option<Count>,
    /// Processes that the kernel killed in it.
    pub kills: Option<Count>,
    /// File pages that were evicted and read again, a second.
    #[serde(rename = "refaults_file_per_s")]
    pub refaults_file: Option<PerSecond<Pages>>,
    /// Anonymous pages that were swapped out and needed again, a second.
    #[serde(rename = "refaults_anon_per_s")]
    pub refaults_anon: Option<PerSecond<Pages>>,
}

impl GroupState {
    /// Returns the state of a cgroup from sample `from` on; `findings` are those about it, the worst first; `has_notes`:
    /// there are harmless ones, too.
    pub(crate) fn new(
        cx: &Evidence<'_>,
        path: &str,
        from: usize,
        findings: &[Finding],
        has_notes: bool,
    ) -> Self {
        let mut state = Self { path: path.to_owned(), ram: cx.ram().ok(), ..Self::default() };
        let group = cx.timeline.entity(Entity::Cgroup, path);
        let Some((group, at)) =
            group.and_then(|group| Some((group, moment(cx, group, from, findings)?)))
        else {
            state.unknown.push(
                "No sample of this source has figures of this cgroup: only messages name it."
                    .to_owned(),
            );
            return state;
        };
        let times = cx.timeline.times();
        state.at = times.get(at).copied().unwrap_or_default();
        state.index = Some(at);
        state.available = cx.timeline.at(MEM_AVAILABLE, at);
        state.read_levels(cx, group, at);
        let last = cx.timeline.len().saturating_sub(1);
        if let Some(whole) = cx.timeline.stretch(from, last) {
            state.felt = GroupFelt::of(cx, group, &whole);
            state.limits = limits(cx, group, at, &whole);
            let since = |finding: &&Finding| finding.when.is_some_and(|when| when.last > from);
            for finding in findings.iter().filter(since) {
                state.note_kills(finding);
            }
        }
        if let Some(kernel) = kernel_memory_of_unknown_use(cx, group, at) {
            state.unknown.push(format!(
                "How much of its {kernel} of kernel memory can be dropped: cgroup v1 does not count \
                 reclaimable slab (dentries, inodes)."
            ));
        }
        state.lacks(cx, group);
        let has_finding = has_notes || !findings.is_empty();
        state.raising = raising::sentences(&state, has_finding);
        state
    }

    /// Counts kills at a limit that the kernel's log shows: counters may not have been read after them.
    fn note_kills(&mut self, finding: &Finding) {
        let killed = Count::new(finding.harm.killed);
        let scope = &finding.scope;
        if killed == Count::ZERO || scope.entity != Entity::Cgroup {
            return;
        }
        let once = Some(Count::new(1));
        if scope.key == self.path {
            self.felt.kills = self.felt.kills.max(Some(killed));
            self.felt.hits = self.felt.hits.max(once);
        }
        let is_at = |limit: &&mut GroupLimitState| limit.path == scope.key && !limit.is_soft;
        if let Some(limit) = self.limits.iter_mut().find(is_at) {
            limit.hits = limit.hits.max(once);
        }
    }

    fn read_levels(&mut self, cx: &Evidence<'_>, group: &EntitySeries, at: usize) {
        let level = |signal| cx.timeline.at_of(group, signal, at);
        self.current = level(CGROUP_CURRENT);
        self.peak = level(CGROUP_PEAK);
        self.swap = level(CGROUP_SWAP_CURRENT);
        self.working_set = self
            .current
            .zip(level(CGROUP_INACTIVE_FILE))
            .map(|(current, inactive)| current.saturating_sub(inactive));
        let unwritten = [CGROUP_FILE_DIRTY, CGROUP_FILE_WRITEBACK].map(level);
        if unwritten.iter().any(Option::is_some) {
            self.unwritten = Some(unwritten.into_iter().flatten().sum());
        }
        let files = [CGROUP_INACTIVE_FILE, CGROUP_ACTIVE_FILE].map(level);
        let is_known = kernel_memory_of_unknown_use(cx, group, at).is_none();
        if let ([Some(inactive), Some(active)], true) = (files, is_known) {
            let clean = (inactive + active).saturating_sub(self.unwritten.unwrap_or_default());
            self.droppable = Some(clean + level(CGROUP_SLAB_RECLAIMABLE).unwrap_or_default());
        }
        self.parts = parts(self.current, level);
    }

    /// Lists what would have made the answer better.
    fn lacks(&mut self, cx: &Evidence<'_>, group: &EntitySeries) {
        // A cgroup that was read once, or has nothing, lacks no file.
        let was_read = |signal: SignalId| group.runs().any(|(known, _)| known == signal);
        let mut lacks = Vec::new();
        let is_v1 = cx.facts.cgroup_mode == Some(CgroupMode::V1);
        if self.felt.some.is_none() && is_v1 {
            self.unknown.push(
                "How long its tasks waited: cgroup v1 has no pressure (PSI) of its own, only the \
                 host has."
                    .to_owned(),
            );
        } else if !was_read(CGROUP_PSI_MEMORY_SOME.id()) {
            lacks.push("its pressure (cgroup v2, kernel 4.20 or later)");
        }
        if ![CGROUP_ANON.id(), CGROUP_FILE.id()].into_iter().any(was_read) {
            lacks.push("what is charged to it (memory.stat)");
        }
        if !was_read(CGROUP_REFAULT_FILE.id()) {
            lacks.push("its refaults");
        }
        if cx.is_single_sample() {
            lacks.push("what happens over time, as it has one sample");
        } else if cx.timeline.readings_of(group, CGROUP_CURRENT).nth(1).is_none() {
            lacks.push("what happens over time, as it was read once");
        }
        if !lacks.is_empty() {
            let lacks = lacks.join(", ");
            self.unknown.push(format!("This source does not have {lacks}."));
        }
    }
}

/// Returns the sample that matters: where the cgroup had most memory during the worst finding with a time, the nearest one
/// with its figures if it was not read then; without such a finding the last one.
fn moment(
    cx: &Evidence<'_>,
    group: &EntitySeries,
    from: usize,
    findings: &[Finding],
) -> Option<usize> {
    let last = cx.timeline.len().checked_sub(1)?;
    let when = findings.iter().find_map(|finding| finding.when);
    let (first, end) = when.map_or((last, last), |when| (when.first.max(from), when.last));
    let charged = |at: usize| Some((cx.timeline.at_of(group, CGROUP_CURRENT, at)?, at));
    let most = (first..=end.min(last)).filter_map(charged).max();
    most.map(|(_, at)| at).or_else(|| {
        let is_read = |at: &usize| charged(*at).is_some();
        let before = (from..=end.min(last)).rev().find(is_read);
        let after = (end..=last).find(is_read);
        let away = |at: &usize| {
            let (at, when) = (cx.time(*at)?, when?);
            Some(when.from.saturating_sub(at).max(at.saturating_sub(when.to)))
        };
        before.into_iter().chain(after).min_by_key(away)
    })
}

/// Returns what is charged to a cgroup, by kind; empty without its memory.stat.
pub(crate) fn parts(
    current: Option<Bytes>,
    level: impl Fn(Signal<Gauge<Bytes>>) -> Option<Bytes>,
) -> Vec<ChargedPart> {
    let shared = level(CGROUP_SHMEM);
    let files = level(CGROUP_FILE).map(|file| file.saturating_sub(shared.unwrap_or_default()));
    let known = [
        ("anonymous", level(CGROUP_ANON)),
        ("page cache", files),
        ("shared memory and tmpfs", shared),
        ("reclaimable slab", level(CGROUP_SLAB_RECLAIMABLE)),
        ("slab", level(CGROUP_SLAB_UNRECLAIMABLE)),
        ("sockets", level(CGROUP_SOCK)),
        ("kernel stacks", level(CGROUP_KERNEL_STACK)),
        ("page tables", level(CGROUP_PAGETABLES)),
        ("per-CPU", level(CGROUP_PERCPU)),
    ];
    let mut parts: Vec<ChargedPart> = known
        .into_iter()
        .filter_map(|(label, bytes)| Some(ChargedPart { label, bytes: bytes? }))
        .filter(|part| part.bytes > Bytes::ZERO)
        .collect();
    parts.sort_by_key(|part| std::cmp::Reverse(part.bytes));
    let sum: Bytes = parts.iter().map(|part| part.bytes).sum();
    let rest = current.unwrap_or_default().saturating_sub(sum);
    if !parts.is_empty() && rest > Bytes::ZERO {
        parts.push(ChargedPart { label: "other", bytes: rest });
    }
    parts
}

/// Returns the limits of a cgroup and of those around it that are below RAM, from the inside; of one cgroup the soft one
/// first.
fn limits(
    cx: &Evidence<'_>,
    group: &EntitySeries,
    at: usize,
    whole: &Stretch,
) -> Vec<GroupLimitState> {
    let ram = cx.ram().ok();
    let mut limits = Vec::new();
    for key in ancestors(&group.key) {
        let Some(level) = cx.timeline.entity(Entity::Cgroup, key) else {
            continue;
        };
        let used = cx.timeline.at_of(level, CGROUP_CURRENT, at);
        let is_known = kernel_memory_of_unknown_use(cx, level, at).is_none();
        let held = undroppable().track_of(cx, level).ok().filter(|_| is_known);
        let undroppable = held.and_then(|held| held.at(at));
        for (knob, events) in
            [(LimitFile::High, CGROUP_EVENTS_HIGH), (remedy::kills_at(cx), CGROUP_EVENTS_MAX)]
        {
            let limit = cx.timeline.at_of(level, knob.signal(), at).and_then(Limit::limited);
            let Some(limit) = limit.filter(|limit| ram.is_none_or(|ram| *limit < ram)) else {
                continue;
            };
            limits.push(GroupLimitState {
                path: key.to_owned(),
                place: cx.facts.names.place(key).into_owned(),
                file: knob.name(),
                is_soft: knob == LimitFile::High,
                limit,
                used,
                undroppable,
                hits: events_at_limit(cx, level, knob, events, at, whole)
                    .filter(|_| counts_hits(cx, level)),
                since: cx
                    .timeline
                    .last_of(level, knob.signal())
                    .filter(|now| *now != Limit::Bytes(limit)),
            });
        }
    }
    limits
}

/// Kernel memory is worth a word from this part of a cgroup on: an engineering choice.
const KERNEL_NOTABLE: Ratio = Ratio::from_percent(10.0);

/// Returns a cgroup's kernel memory, if that is much and the source does not say how much of it can be dropped: cgroup v1
/// counts no reclaimable slab, and dentries and inodes can be most of it.
fn kernel_memory_of_unknown_use(
    cx: &Evidence<'_>,
    group: &EntitySeries,
    at: usize,
) -> Option<Bytes> {
    let level = |signal| cx.timeline.at_of(group, signal, at);
    let kernel = level(CGROUP_KERNEL).filter(|_| level(CGROUP_SLAB_RECLAIMABLE).is_none())?;
    let is_much = kernel >= level(CGROUP_CURRENT)?.share(KERNEL_NOTABLE);
    (is_much && kernel > Bytes::ZERO).then_some(kernel)
}

/// Returns how often a cgroup hit the limit that it had at a sample.
fn events_at_limit(
    cx: &Evidence<'_>,
    group: &EntitySeries,
    knob: LimitFile,
    signal: Signal<Counter<Count>>,
    at: usize,
    whole: &Stretch,
) -> Option<Count> {
    let steps = limit_steps(cx.timeline, group, knob.signal());
    let steps = || steps.iter().filter(|step| step.is_other_limit());
    // Between the two readings of a change it is unknown which limit was hit: the earlier one counts.
    let first = steps().map(|step| step.at).rfind(|from| *from <= at);
    let last = steps().map(|step| step.at).find(|until| *until > at);
    let first = first.unwrap_or(whole.first).max(whole.first);
    let last = last.unwrap_or(whole.last).min(whole.last);
    events_in(cx, group, signal, &cx.timeline.stretch(first, last)?)
}

/// Returns how often something happened to a cgroup itself in a stretch.
fn events_in(
    cx: &Evidence<'_>,
    group: &EntitySeries,
    signal: Signal<Counter<Count>>,
    stretch: &Stretch,
) -> Option<Count> {
    let rate = own_events(cx, group, signal)?;
    let first = first_count(cx, group, signal, stretch).unwrap_or_default();
    Some(Count::from_f64(rate.integral_in(stretch).round()) + first)
}

/// Returns what the first reading of a cgroup's counter shows, if the cgroup was made within a stretch: all of it happened
/// there. Not where children are counted in it.
fn first_count(
    cx: &Evidence<'_>,
    group: &EntitySeries,
    signal: Signal<Counter<Count>>,
    stretch: &Stretch,
) -> Option<Count> {
    let (at, count) = cx.timeline.readings_of(group, signal).next()?;
    let before = cx.timeline.all_read_before(Entity::Cgroup, at.checked_sub(1)?)?;
    let is_made_within = before >= stretch.first && at <= stretch.last;
    let has_children = cx.timeline.cgroups_below(&group.key).next().is_some();
    (is_made_within && !has_children).then_some(count)
}

impl GroupFelt {
    fn of(cx: &Evidence<'_>, group: &EntitySeries, whole: &Stretch) -> Self {
        let rate = |signal| cx.timeline.rate_of(group, signal)?.mean_in(whole);
        let count = |signal| events_in(cx, group, signal, whole);
        Self {
            during: whole.duration(),
            some: stalled(cx, group, CGROUP_PSI_MEMORY_SOME, whole),
            full: stalled(cx, group, CGROUP_PSI_MEMORY_FULL, whole),
            throttled: count(CGROUP_EVENTS_HIGH),
            hits: count(CGROUP_EVENTS_MAX).filter(|_| counts_hits(cx, group)),
            kills: count(CGROUP_EVENTS_OOM_KILL),
            refaults_file: rate(CGROUP_REFAULT_FILE),
            refaults_anon: rate(CGROUP_REFAULT_ANON),
        }
    }
}

#[cfg(test)]
mod tests;
