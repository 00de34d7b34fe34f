//! Judges a profile: shares of each reason, and which of them is hot.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use crate::callers::CallTree;
use crate::cgroup_stalls::{cgroup_stalls, has_met_limit};
use crate::classify::{StackClass, classify};
use crate::collected::{CpuUnit, Profile};
use crate::episode::EpisodeTimes;
use crate::limits::{
    HOT_EPISODES_OF_TIME, HOT_P99_S, HOT_SAMPLES_MIN, HOT_SHARE, HOT_SHORT_EPISODES_OF_TIME,
    HOT_STALLED_TASKS, REFAULT_PAGES_PER_S, REFAULT_SHARE,
};
use crate::model::{
    BlockedSummary, CpuSummary, EpisodeSummary, HotBy, NameShare, PROFILE_SCHEMA, ProfileReport,
    PurposeShare, ReasonRow, WorkShare,
};
use crate::reason::{Reason, ReasonGroup};
use crate::stack::{FramePlace, NAMELESS, Stack, StackTable};
use crate::words;

/// How much CPU time counts that is spent in the background, where reasons are put into order.
const BACKGROUND_COUNTS: f64 = 0.5;
/// The rule about what reclaim finds in slab caches.
const SLAB_RULE: &str = "dentry-inode-bloat";
/// How many names of a kind a row has.
const NAMES_MAX: usize = 5;

/// What is added up for a reason.
#[derive(Debug, Default)]
struct ReasonSum {
    weight: f64,
    works: BTreeMap<&'static str, (crate::KernelWork, f64)>,
    comms: HashMap<Arc<str>, f64>,
    entries: HashMap<Arc<str>, f64>,
    cgroups: HashMap<Arc<str>, f64>,
    blocked_cgroups: HashMap<Arc<str>, f64>,
    purposes: PurposeSums,
    calls: CallTree,
    blocked_s: f64,
    blocked_comms: HashMap<Arc<str>, f64>,
    blocked_works: BTreeMap<&'static str, (crate::KernelWork, f64)>,
    episodes: HashMap<Arc<str>, EpisodeTimes>,
}

impl ProfileReport {
    /// Judges a profile.
    pub fn of(profile: &Profile) -> Self {
        let mut sums: BTreeMap<Reason, ReasonSum> = BTreeMap::new();
        let (mut busy, mut idle, mut nameless) = (0.0, 0.0, 0.0);
        if let Some((_, stacks)) = &profile.cpu {
            for (stack, weight, class) in classified(stacks) {
                if class.is_idle {
                    idle += weight;
                    continue;
                }
                busy += weight;
                if is_nameless(stack) {
                    nameless += weight;
                }
                sums.entry(class.reason).or_default().add(stack, weight, &class);
            }
        }
        let mut waited = 0.0;
        if let Some(blocked) = &profile.blocked {
            for (stack, seconds, mut class) in classified(&blocked.stacks) {
                // Nothing waits in state D in user mode: where it waits may not be read.
                if class.reason == Reason::User {
                    class.reason = Reason::OtherKernel;
                }
                // Kernel threads that wait for work in state D are idle.
                if is_idle_thread(stack) {
                    continue;
                }
                waited += seconds;
                let sum = sums.entry(class.reason).or_default();
                sum.blocked_s += seconds;
                *sum.blocked_comms.entry(Arc::clone(&stack.comm)).or_default() += seconds;
                if let Some(cgroup) = &stack.cgroup {
                    *sum.blocked_cgroups.entry(Arc::clone(cgroup)).or_default() += seconds;
                }
                if let Some(work) = class.work {
                    sum.blocked_works.entry(work.name()).or_insert((work, 0.0)).1 += seconds;
                }
            }
        }
        for (key, times) in profile.episodes.iter().flat_map(|table| table.sorted()) {
            let reason = likeliest(key.kind.reasons(&key.comm), &sums, busy, waited);
            let sum = sums.entry(reason).or_default();
            sum.episodes.entry(Arc::clone(&key.comm)).or_default().extend(times);
        }
        // The base of shares: busy samples, with those that a text does not print.
        let unprinted = if is_percent(profile) { profile.unprinted_percent } else { 0.0 };
        let base = ShareBase::of(profile, busy + unprinted, waited);
        let mut rows: Vec<ReasonRow> =
            sums.into_iter().map(|(reason, sum)| base.row(reason, sum, profile)).collect();
        rows.sort_by(|one, other| importance(other, 0.0).total_cmp(&importance(one, 0.0)));
        let cpu = profile.cpu.as_ref().map(|(unit, _)| CpuSummary {
            unit: *unit,
            samples: base.samples,
            busy_share: base.busy_share(profile),
            idle_share: (busy + idle > 0.0).then_some(idle / (busy + idle + unprinted)),
            unprinted_share: (unprinted > 0.0).then_some(unprinted / base.busy),
            nameless_share: (nameless > 0.0).then_some(nameless / base.busy),
        });
        let blocked = profile.blocked.as_ref().map(|blocked| BlockedSummary {
            how: blocked.how,
            tasks: profile.lasted().map(|lasted| waited / lasted.as_secs_f64()),
            seconds: waited,
        });
        let swap_share = swap_share(&rows);
        let cgroups = cgroup_stalls(profile, reads_again(profile));
        let of_host = profile.origin.scope.is_none();
        let lack = words::host_lack(&cgroups, profile.origin.seconds).filter(|_| of_host);
        let mut remarks = profile.remarks.clone();
        remarks.extend(lack.into_iter().chain(words::needless_zeroing(&rows)));
        let mut hot: Vec<ReasonRow> =
            rows.iter().filter(|row| !row.hot_by.is_empty()).cloned().collect();
        let is_cause = |row: &ReasonRow| !row.reason.is_file_wait() && !row.reason.is_background();
        let has_cause = hot.iter().any(is_cause);
        hot.sort_by(|one, other| {
            // Reads that wait are what reclaim brings about.
            let key = |row: &ReasonRow| {
                (row.reason.is_file_wait() && has_cause, -importance(row, swap_share))
            };
            let (one, other) = (key(one), key(other));
            one.0.cmp(&other.0).then(one.1.total_cmp(&other.1))
        });
        let mut report = Self {
            schema: PROFILE_SCHEMA.to_owned(),
            headline: String::new(),
            origin: profile.origin.clone(),
            cpu,
            blocked,
            has_episodes: profile.episodes.is_some(),
            cgroups,
            reread_bytes: reread_bytes(profile),
            swap_share: (swap_share > 0.0).then_some(swap_share),
            hot,
            reasons: rows,
            settings: profile.settings.clone(),
            remarks,
            not_measured: profile.not_measured.clone(),
            difference: None,
        };
        report.headline = words::headline(&report);
        report
    }
}

impl ProfileReport {
    /// Whether so many functions of the kernel have no name that trouble may hide in them.
    pub fn is_nameless(&self) -> bool {
        words::is_nameless(self)
    }

    /// The profile in a few words, for a list: `61 % of busy CPU in node reclaim in java`.
    pub fn in_brief(&self) -> String {
        words::in_brief(self)
    }
}

/// Stacks with their classes.
fn classified(stacks: &StackTable) -> impl Iterator<Item = (&Stack, f64, StackClass)> {
    stacks.sorted().into_iter().map(|(stack, weight)| (stack, weight, classify(stack)))
}

/// Of the reasons that an episode may have, the one with most samples and waits.
fn likeliest(
    reasons: &[Reason],
    sums: &BTreeMap<Reason, ReasonSum>,
    busy: f64,
    waited: f64,
) -> Reason {
    let part = |part: f64, of: f64| if of > 0.0 { part / of } else { 0.0 };
    let weight = |reason: &Reason| {
        sums.get(reason).map_or(0.0, |sum| part(sum.weight, busy).max(part(sum.blocked_s, waited)))
    };
    // Of equals the first.
    let most = reasons.iter().rev().max_by(|one, other| weight(one).total_cmp(&weight(other)));
    most.copied().unwrap_or(Reason::OtherKernel)
}

/// Whether it is in the kernel, and no function has a name.
fn is_nameless(stack: &Stack) -> bool {
    let mut kernel =
        stack.frames.iter().filter(|frame| frame.place == FramePlace::Kernel).peekable();
    kernel.peek().is_some() && kernel.all(|frame| &*frame.name == NAMELESS)
}

/// Threads that sleep in state D while they have nothing to do.
fn is_idle_thread(stack: &Stack) -> bool {
    let is_worker = stack.comm.starts_with("kworker") || &*stack.comm == "khugepaged";
    let leaf = stack.frames.iter().rev().find(|frame| !frame.name.contains("sched"));
    is_worker && leaf.is_some_and(|leaf| matches!(&*leaf.name, "worker_thread" | "kthread"))
}

fn is_percent(profile: &Profile) -> bool {
    profile.cpu.as_ref().is_some_and(|(unit, _)| *unit == CpuUnit::Percent)
}

impl ReasonSum {
    fn add(&mut self, stack: &Stack, weight: f64, class: &StackClass) {
        self.weight += weight;
        if let Some(work) = class.work {
            self.works.entry(work.name()).or_insert((work, 0.0)).1 += weight;
        }
        *self.comms.entry(Arc::clone(&stack.comm)).or_default() += weight;
        *self.entries.entry(Arc::clone(&class.entry)).or_default() += weight;
        if let Some(cgroup) = &stack.cgroup {
            *self.cgroups.entry(Arc::clone(cgroup)).or_default() += weight;
        }
        if let Some(purpose) = class.purpose {
            let (sum, functions) =
                self.purposes.entry((purpose, Arc::clone(&class.entry))).or_default();
            *sum += weight;
            if let Some(function) = &class.purpose_function {
                *functions.entry(Arc::clone(function)).or_default() += weight;
            }
        }
        if let Some(trigger) = class.trigger {
            let callers = stack.frames.get(class.start..=trigger).unwrap_or_default();
            self.calls.add(callers, weight);
        }
    }
}

/// What shares are shares of.
struct ShareBase {
    busy: f64,
    waited: f64,
    /// How many samples stand behind all shares.
    samples: Option<f64>,
    seconds: Option<f64>,
}

impl ShareBase {
    fn of(profile: &Profile, busy: f64, waited: f64) -> Self {
        let samples = match profile.cpu {
            Some((CpuUnit::Percent, _)) => profile.samples_of_text,
            Some(_) => Some(busy),
            None => None,
        };
        Self { busy, waited, samples, seconds: profile.origin.seconds.filter(|s| *s > 0.0) }
    }

    /// Which share of all CPUs was busy.
    fn busy_share(&self, profile: &Profile) -> Option<f64> {
        let origin = &profile.origin;
        let full = f64::from(origin.cpus?) * self.seconds? * origin.hz?;
        Some((self.samples? / full).min(1.0))
    }

    fn row(&self, reason: Reason, sum: ReasonSum, profile: &Profile) -> ReasonRow {
        let has_cpu = profile.cpu.is_some() && self.busy > 0.0;
        let share = has_cpu.then_some(sum.weight / self.busy);
        let samples = share.zip(self.samples).map(|(share, all)| share * all);
        let hz = profile.origin.hz.filter(|hz| *hz > 0.0);
        let cpus = samples.zip(hz.zip(self.seconds)).map(|(n, (hz, seconds))| n / (hz * seconds));
        let stalled = profile.blocked.as_ref().and(self.seconds).map(|all| sum.blocked_s / all);
        let of_blocked = (self.waited > 0.0).then_some(sum.blocked_s / self.waited);
        // What ran says more about the work than what waited, where both are known.
        let works = if sum.weight > 0.0 { sum.works } else { sum.blocked_works };
        let works = works_of(works, if sum.weight > 0.0 { self.busy } else { self.waited });
        let comms = if sum.weight > 0.0 { &sum.comms } else { &sum.blocked_comms };
        let episodes = episodes_of(&sum.episodes, self.seconds);
        let shrinks_slab =
            works.first().is_some_and(|work| work.work == crate::KernelWork::SlabShrink);
        let rule =
            if shrinks_slab && reason.is_reclaim() { Some(SLAB_RULE) } else { reason.entry().rule };
        let mut row = ReasonRow {
            reason,
            label: reason.label().to_owned(),
            group: reason.group(),
            means: reason.entry().means.to_owned(),
            hot_by: Vec::new(),
            work: works.first().map(|work| work.work),
            share,
            share_margin: share.zip(self.samples).map(|(share, all)| margin(share, all)),
            samples,
            cpus,
            stalled_tasks: stalled,
            blocked_share: of_blocked,
            blocked_s: profile.blocked.as_ref().map(|_| sum.blocked_s),
            episodes,
            works,
            comms: shares_of(comms),
            cgroups: shares_of(if sum.weight > 0.0 { &sum.cgroups } else { &sum.blocked_cgroups }),
            waiting_comms: shares_of(&sum.blocked_comms),
            entries: shares_of(&sum.entries),
            purposes: purposes_of(sum.purposes, self.busy, sum.weight),
            callers: sum.calls.branches(self.busy),
            rule: rule.map(str::to_owned),
            remedy: reason.entry().remedy.map(str::to_owned),
        };
        row.hot_by = hot_by(&row, profile);
        row
    }
}

/// The 95 % interval of a share, to each side.
fn margin(share: f64, samples: f64) -> f64 {
    1.96 * (share * (1.0 - share) / samples.max(1.0)).max(0.0).sqrt()
}

/// By which measures a reason is hot.
fn hot_by(row: &ReasonRow, profile: &Profile) -> Vec<HotBy> {
    let is_single = matches!(profile.cpu, Some((CpuUnit::Backtraces, _)));
    let is_trouble = row.group == ReasonGroup::Trouble;
    let mut by = Vec::new();
    let has_enough = row.samples.is_none_or(|samples| samples >= HOT_SAMPLES_MIN);
    if is_trouble && !is_single && has_enough && row.share.is_some_and(|share| share >= HOT_SHARE) {
        by.push(HotBy::Share);
    }
    let is_wait = is_trouble || (row.reason.is_file_wait() && is_for_evicted(row, profile));
    if is_wait && row.stalled_tasks.is_some_and(|tasks| tasks >= HOT_STALLED_TASKS) {
        by.push(HotBy::StalledTasks);
    }
    let times = row.episodes.as_ref().filter(|_| is_trouble && !row.reason.is_background());
    if let (Some(times), Some(of_time)) = (times, times.and_then(|times| times.of_time)) {
        let are_long = times.p99_s > HOT_P99_S && of_time >= HOT_EPISODES_OF_TIME;
        if are_long || of_time >= HOT_SHORT_EPISODES_OF_TIME {
            by.push(HotBy::Episodes);
        }
    }
    by
}

/// Whether a wait for files is one for what was evicted. The host's counters say it of the host; of a part of it only where a limit
/// around that was met.
fn is_for_evicted(row: &ReasonRow, profile: &Profile) -> bool {
    let met_limit = || row.cgroups.iter().any(|one| has_met_limit(&one.name, profile));
    reads_again(profile) && (profile.origin.scope.is_none() || met_limit())
}

/// A page of 64 KiB would only make it more.
const PAGE_BYTES: u64 = 4096;

/// File pages that the host read again after an eviction while it was profiled; where those are not counted apart, all pages.
fn refaults(profile: &Profile) -> Option<u64> {
    risen(profile, "workingset_refault_file").or_else(|| risen(profile, "workingset_refault"))
}

/// By how much a counter of the host rose meanwhile, if it did.
fn risen(profile: &Profile, counter: &str) -> Option<u64> {
    let more = u64::try_from(*profile.vmstat_delta.get(counter)?).ok()?;
    (more > 0).then_some(more)
}

/// Whether so many pages are many for the time of a profile.
#[allow(clippy::cast_precision_loss)] // pages of a minute
fn are_many(refaults: u64, profile: &Profile) -> bool {
    let seconds = profile.origin.seconds;
    seconds.is_some_and(|seconds| refaults as f64 >= REFAULT_PAGES_PER_S * seconds)
}

/// What the host read again, where it was so much that programs may have waited for it.
fn reread_bytes(profile: &Profile) -> Option<u64> {
    let refaults = refaults(profile).filter(|pages| are_many(*pages, profile))?;
    Some(refaults * PAGE_BYTES)
}

/// Whether much of what is read was in memory before: else files are read for the first time, which is no lack of memory.
#[allow(clippy::cast_precision_loss)] // pages of a minute
fn reads_again(profile: &Profile) -> bool {
    let Some(refaults) = refaults(profile).filter(|_| profile.origin.seconds.is_some()) else {
        return false;
    };
    match risen(profile, "pgpgin") {
        Some(read_kib) => {
            (refaults * PAGE_BYTES) as f64 >= REFAULT_SHARE * (read_kib * 1024) as f64
        }
        None => are_many(refaults, profile),
    }
}

/// How much a row matters: a whole CPU, a task that waits, or the whole time in episodes are alike.
fn importance(row: &ReasonRow, swap_share: f64) -> f64 {
    let share = row.share.unwrap_or(0.0);
    // What threads of the kernel do in the background keeps no task waiting by itself.
    let share = if row.reason.is_background() { share * BACKGROUND_COUNTS } else { share };
    // Pages that are reclaimed into swap belong to the disease that swap-in names.
    let share = if row.reason == Reason::SwapIn { share.max(swap_share) } else { share };
    let by_episodes = if row.group == ReasonGroup::Trouble && !row.reason.is_background() {
        row.episodes.as_ref().and_then(|times| times.of_time).unwrap_or(0.0).min(1.0)
    } else {
        0.0
    };
    share.max(row.stalled_tasks.or(row.blocked_share).unwrap_or(0.0)).max(by_episodes)
}

/// The share of the busy CPU that goes into swapping: swap-in, and reclaim that writes to swap.
fn swap_share(rows: &[ReasonRow]) -> f64 {
    let swaps_in = rows.iter().find(|row| row.reason == Reason::SwapIn);
    let Some(swaps_in) = swaps_in.and_then(|row| row.share) else {
        return 0.0;
    };
    let writes: f64 = rows
        .iter()
        .filter(|row| row.reason.is_reclaim())
        .flat_map(|row| &row.works)
        .filter(|work| work.work == crate::KernelWork::SwapIo)
        .map(|work| work.share)
        .sum();
    swaps_in + writes
}

fn works_of(works: BTreeMap<&'static str, (crate::KernelWork, f64)>, base: f64) -> Vec<WorkShare> {
    let mut all: Vec<WorkShare> = works
        .into_values()
        .filter(|_| base > 0.0)
        .map(|(work, weight)| WorkShare { work, share: weight / base })
        .collect();
    all.sort_by(|one, other| other.share.total_cmp(&one.share));
    all
}

/// Names with their shares of a row, the largest first.
fn shares_of(weights: &HashMap<Arc<str>, f64>) -> Vec<NameShare> {
    let total: f64 = weights.values().sum();
    let mut all: Vec<NameShare> = weights
        .iter()
        .filter(|_| total > 0.0)
        .map(|(name, weight)| NameShare { name: name.to_string(), of_reason: weight / total })
        .collect();
    all.sort_by(|one, other| {
        other.of_reason.total_cmp(&one.of_reason).then_with(|| one.name.cmp(&other.name))
    });
    all.truncate(NAMES_MAX);
    all
}

/// Weights by what memory was wanted for and how the kernel was entered, with the functions that show it.
type PurposeSums = HashMap<(crate::Purpose, Arc<str>), (f64, HashMap<Arc<str>, f64>)>;

fn purposes_of(sums: PurposeSums, busy: f64, of_reason: f64) -> Vec<PurposeShare> {
    let mut all: Vec<PurposeShare> = sums
        .into_iter()
        .filter(|_| busy > 0.0 && of_reason > 0.0)
        .map(|((purpose, entry), (weight, functions))| PurposeShare {
            purpose,
            entry: entry.to_string(),
            function: shares_of(&functions).into_iter().next().map(|one| one.name),
            share: weight / busy,
            of_reason: weight / of_reason,
        })
        .collect();
    all.sort_by(|one, other| {
        other.share.total_cmp(&one.share).then_with(|| one.entry.cmp(&other.entry))
    });
    all
}

fn episodes_of(
    rows: &HashMap<Arc<str>, EpisodeTimes>,
    seconds: Option<f64>,
) -> Option<EpisodeSummary> {
    let mut all = EpisodeTimes::default();
    for times in rows.values() {
        all.extend(times);
    }
    let (comm, most) = rows.iter().max_by(|one, other| {
        one.1.total_s().total_cmp(&other.1.total_s()).then(other.0.cmp(one.0))
    })?;
    #[allow(clippy::cast_precision_loss)] // thousands
    let per_second = seconds.map(|seconds| all.count() as f64 / seconds);
    Some(EpisodeSummary {
        count: all.count(),
        per_second,
        total_s: all.total_s(),
        of_time: seconds.map(|seconds| most.total_s() / seconds),
        p50_s: all.quantile_s(0.5),
        p99_s: all.quantile_s(0.99),
        max_s: all.max_s(),
        comm: comm.to_string(),
    })
}
