//! Watching this host: samples into a timeline, with the kernel's reports of kills and failed allocations.

mod kernel_reports;
mod unread;

use std::num::NonZeroUsize;
use std::time::Duration;

use probe::{ProcessDetail, Root, TaskSource, Tasks, host_facts};
use timeline::{Absence, Entity, Facts, Problems, Source, SourceKind, Timeline};
use units::Span;

use crate::sampler::{Progress, Rates, Sampler};
use kernel_reports::KernelReports;
use unread::Unread;

/// How long to watch, how often, and in how much detail.
#[derive(Debug, Clone, Copy)]
pub struct WatchOptions {
    /// From the first sample to the last; zero takes one sample.
    pub duration: Span,
    /// From one sample to the next.
    pub every: Span,
    /// The processes of which the last sample reads the expensive files; earlier samples read those that are worth it.
    pub last: ProcessDetail,
    /// How far back before the first sample the kernel log is searched for kills and failed allocations.
    pub recent: Span,
    /// Samples that are older are forgotten; `None` keeps all.
    pub window: Option<Span>,
    /// With every so many samples all files of the largest processes are read, PSS too, and in between what has changed; `None`:
    /// all but PSS with each sample.
    pub pss_every: Option<NonZeroUsize>,
}

/// CPU budget of PSS in one sample: at 3.5 µs per MiB, enough for the largest 55 GiB of processes.
const PSS_BUDGET: Duration = Duration::from_millis(200);
/// The same where it is read again and again: reading it takes a lock of each process.
const PSS_BUDGET_OF_MANY: Duration = Duration::from_millis(100);
/// Budget for every process: enough for 160 TiB, so it only guards against a kernel that does not answer.
const PSS_BUDGET_OF_ALL: Duration = Duration::from_secs(600);

impl WatchOptions {
    /// Takes one sample with the PSS of every process, or of the largest ones within 0.2 s.
    pub fn one_sample(of_every_process: bool) -> Self {
        let detail = ProcessDetail::COMPLETE;
        Self {
            duration: Span::ZERO,
            every: Span::from_secs(1),
            last: if of_every_process {
                ProcessDetail { largest: usize::MAX, pss: Some(PSS_BUDGET_OF_ALL), ..detail }
            } else {
                ProcessDetail { pss: Some(PSS_BUDGET), ..detail }
            },
            recent: RECENT,
            window: None,
            pss_every: None,
        }
    }
}

/// OOM kills of this long ago are relevant to the present state.
pub const RECENT: Span = Span::from_mins(15);

/// Watches the host below `root` for a while.
pub fn watch(root: &Root, options: WatchOptions, progress: Progress<'_>) -> Source {
    let mut watcher = Watcher::open(root, options);
    loop {
        watcher.take();
        if watcher.is_over() || watcher.sampler.wait_unless_ended(progress).is_break() {
            return watcher.finish();
        }
    }
}

/// Watches a host, sample by sample: the caller waits for the next one, takes it, and judges what was seen so far whenever
/// it likes.
///
/// ```
/// use probe::{ProcessDetail, Root};
/// use sampler::{RECENT, WatchOptions, Watcher};
/// use units::Span;
///
/// let mut watcher = Watcher::open(&Root::default(), WatchOptions {
///     duration: Span::from_hours(24),
///     every: Span::from_secs(1),
///     last: ProcessDetail::COMPLETE,
///     recent: RECENT,
///     window: Some(Span::from_mins(10)),
///     pss_every: None,
/// });
/// if watcher.wait(Span::from_millis(50)) {
///     watcher.take();
/// }
/// assert_eq!(watcher.source().timeline.len(), 1);
/// ```
#[derive(Debug)]
pub struct Watcher {
    options: WatchOptions,
    root: Root,
    sampler: Sampler,
    tasks: Tasks,
    /// What reads processes in samples that do not read all of their files, where the kernel has a cheaper way.
    tasks_between: Option<Tasks>,
    /// Samples and facts are always those of the last sample; the rest is brought up to date by `source`.
    source: Source,
    /// Of the samples.
    problems: Problems,
    cgroups: Unread,
    processes: Unread,
    reports: KernelReports,
    /// When the facts were read, on the boot clock.
    facts_read: Span,
    /// How many samples were taken.
    taken: usize,
}

/// Facts are read again as often as by a recorder.
const FACTS_EVERY: Span = Span::from_mins(1);
/// How much longer than its window a watcher remembers: to forget costs as much as to copy the window, so it is done once
/// in a tenth of it.
const FORGETS_AT: f64 = 1.1;

impl Watcher {
    /// Opens the host's files. The first sample is due now.
    pub fn open(root: &Root, options: WatchOptions) -> Self {
        let mut facts = Facts::default();
        host_facts::read(root, Span::ZERO, &mut facts);
        Self {
            options,
            root: root.clone(),
            tasks: Tasks::open(root, Some(TaskSource::Proc)),
            tasks_between: options
                .pss_every
                .map(|_| Tasks::open(root, None))
                .filter(|tasks| tasks.source() == TaskSource::Bpf),
            source: Source::new(SourceKind::Live, "", Timeline::default(), facts),
            problems: Problems::default(),
            cgroups: Unread::new(Entity::Cgroup),
            processes: Unread::new(Entity::Process),
            reports: KernelReports::open(root, options.recent),
            sampler: Sampler::open(root, Rates::all(options.every)),
            facts_read: probe::now().boot,
            taken: 0,
        }
    }

    /// Whether the next sample is due. If not, waits until it is, until a signal comes, or for `at_most`.
    pub fn wait(&self, at_most: Span) -> bool {
        self.sampler.wait(at_most)
    }

    /// Until the next sample is due.
    pub fn until_due(&self) -> Span {
        self.sampler.until_due()
    }

    /// Takes a sample. A late one is recorded at its actual time. Forgets what is older than the window.
    pub fn take(&mut self) {
        let taken = self.sampler.take();
        if let Some(walk) = taken.cgroups {
            self.cgroups.note(walk, &mut self.problems);
        }
        let (is_over, is_whole) = (self.is_over(), self.is_whole_sample());
        let sample = self.sampler.sample();
        let tasks = match &mut self.tasks_between {
            Some(tasks) if !is_over && !is_whole => tasks,
            _ => &mut self.tasks,
        };
        tasks.detail = if is_over {
            self.options.last
        } else if !is_whole {
            ProcessDetail::INCREMENTAL
        } else {
            let pss = self.options.pss_every.map(|_| PSS_BUDGET_OF_MANY);
            ProcessDetail { pss, ..ProcessDetail::COMPLETE }
        };
        let walk = tasks.rows(sample, &mut |_, _| ());
        self.processes.note(walk, &mut self.problems);
        let now = sample.stamp.boot;
        if self.source.timeline.push(sample).is_err() {
            self.problems.note("a sample was not later than the one before it and was passed over");
        }
        if now.saturating_sub(self.facts_read) >= FACTS_EVERY {
            self.facts_read = now;
            read_again(&self.root, self.source.timeline.duration(), &mut self.source.facts);
        }
        self.reports.read_new(false);
        if let Some(window) = self.options.window {
            self.forget_before(window);
        }
    }

    /// Whether a sample reads all files of the largest processes.
    fn is_whole_sample(&mut self) -> bool {
        let taken = self.taken;
        self.taken += 1;
        self.options.pss_every.is_none_or(|every| taken.is_multiple_of(every.get()))
    }

    /// Forgets samples, reports and changes of settings that are older than this, once there are a tenth more of them.
    fn forget_before(&mut self, window: Span) {
        let Source { timeline, facts, .. } = &mut self.source;
        let watched = timeline.duration();
        if watched < window.times(FORGETS_AT) {
            return;
        }
        let from = watched.saturating_sub(window);
        let first = timeline.times().partition_point(|time| *time < from);
        let from = timeline.times().get(first).copied().unwrap_or_default();
        timeline.keep_last(timeline.len() - first);
        *facts = std::mem::take(facts).within(from, watched);
        self.reports.forget_before(window.max(self.options.recent));
        // A busy minute would else count as memory of this process for ever.
        probe::give_back_free_heap();
    }

    /// Whether the last sample is taken.
    pub fn is_over(&self) -> bool {
        self.sampler.due() > self.options.duration
    }

    /// Returns everything found so far, complete to be judged: samples, facts, the kernel's reports, and what was wrong. Names
    /// that a caller adds to the facts stay.
    pub fn source(&mut self) -> &mut Source {
        self.complete();
        &mut self.source
    }

    /// Returns everything found.
    pub fn finish(mut self) -> Source {
        self.reports.read_new(true);
        self.complete();
        self.source
    }

    fn complete(&mut self) {
        let Source { timeline, facts, .. } = &mut self.source;
        let mut problems = self.problems.clone();
        self.reports.add_to(timeline, &mut problems);
        for unread in [&self.cgroups, &self.processes] {
            unread.note_to(timeline, &mut problems);
        }
        problems.note_left_out(timeline, facts);
        for problem in self.sampler.host().problems() {
            problems.note(problem.to_string());
        }
        timeline.absent.extend(self.sampler.host().absent());
        if !host_facts::user_is_root()
            && let Some(more) = more_as_root(timeline)
        {
            problems.note(more);
        }
        self.source.problems = problems.into_texts();
    }
}

/// Reads the facts again; one that cannot be read keeps its value. A changed one is a change at `at` on the timeline's clock.
pub(crate) fn read_again(root: &Root, at: Span, facts: &mut Facts) {
    let (nodes, disks) = (std::mem::take(&mut facts.nodes), std::mem::take(&mut facts.disks));
    host_facts::read(root, at, facts);
    if facts.nodes.is_empty() {
        facts.nodes = nodes;
    }
    if facts.disks.is_empty() {
        facts.disks = disks;
    }
}

/// Names the files that another user could have read.
fn more_as_root(timeline: &Timeline) -> Option<String> {
    let denied: Vec<&str> = timeline
        .absent
        .iter()
        .filter_map(|(file, why)| (*why == Absence::PermissionDenied).then_some(*file))
        .collect();
    (!denied.is_empty()).then(|| format!("root would also have read {}", denied.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ops::ControlFlow;
    use timeline::signals;

    fn options(duration: Span, every: Span) -> WatchOptions {
        WatchOptions {
            duration,
            every,
            last: ProcessDetail::COMPLETE,
            recent: RECENT,
            window: None,
            pss_every: None,
        }
    }

    #[test]
    fn one_sample_is_taken_even_of_no_time() {
        let root = Root::at("/nonexistent");
        let once = options(Span::ZERO, Span::from_secs(1));
        let timeline = watch(&root, once, &mut |_| ControlFlow::Continue(())).timeline;
        assert_eq!(timeline.len(), 1);
        for def in [signals::CGROUP_CURRENT.def(), signals::PROC_RSS.def()] {
            let absent = timeline.absent.get(def.file);
            assert_eq!(absent, Some(&Absence::NotFound), "{}", def.file);
        }
    }

    #[test]
    fn a_watch_that_is_ended_early_keeps_what_it_saw() {
        let long = options(Span::from_hours(1), Span::from_secs(60));
        let watched = watch(&Root::default(), long, &mut |_| ControlFlow::Break(()));
        assert_eq!(watched.timeline.len(), 1);
    }

    #[test]
    fn a_watcher_is_pulled_sample_by_sample() {
        let short = options(Span::from_millis(40), Span::from_millis(20));
        let mut watcher = Watcher::open(&Root::default(), short);
        let mut taken = 0;
        while !watcher.is_over() {
            if watcher.wait(Span::from_millis(5)) {
                watcher.take();
                taken += 1;
                assert_eq!(watcher.source().timeline.len(), taken);
            }
        }
        assert!((1..=3).contains(&taken), "{taken}");
        assert_eq!(watcher.finish().timeline.len(), taken);
    }

    #[test]
    fn only_files_that_root_could_read_are_named() {
        let mut timeline = Timeline::default();
        assert_eq!(more_as_root(&timeline), None);
        timeline.absent.insert("/proc/PID/io", Absence::PermissionDenied);
        let more = more_as_root(&timeline).unwrap();
        assert_eq!(more, "root would also have read /proc/PID/io");
    }

    #[test]
    fn a_window_forgets_what_is_older() {
        let every = Span::from_millis(2);
        let window = Span::from_millis(40);
        let options = WatchOptions { window: Some(window), ..options(Span::from_hours(1), every) };
        // A directory instead of the host: its files are read in microseconds.
        let proc = tempfile::tempdir().unwrap();
        let mut watcher = Watcher::open(&Root::at(proc.path()), options);
        for _ in 0..100 {
            while !watcher.wait(Span::from_secs(1)) {}
            watcher.take();
        }
        let source = watcher.source();
        let samples = source.timeline.len();
        assert!((2..100).contains(&samples), "{samples}");
        assert!(source.timeline.duration() < window.times(FORGETS_AT).plus(every));
        assert_eq!(source.timeline.times().first(), Some(&Span::ZERO));
    }

    #[test]
    fn a_setting_that_changes_while_a_host_is_watched_is_a_change() {
        let proc = tempfile::tempdir().unwrap();
        let directory = proc.path().join("proc/sys/vm");
        std::fs::create_dir_all(&directory).unwrap();
        let set = |value: &str| std::fs::write(directory.join("swappiness"), value).unwrap();
        set("60\n");
        let root = Root::at(proc.path());
        let mut watcher = Watcher::open(&root, options(Span::from_hours(1), Span::from_millis(1)));
        watcher.take();
        set("10\n");
        // A minute is over.
        watcher.facts_read = Span::ZERO;
        while !watcher.wait(Span::from_secs(1)) {}
        watcher.take();
        let changes = watcher.source().facts.changes();
        let changes: Vec<_> = changes.iter().map(|it| (it.from.as_str(), it.to.as_str())).collect();
        assert_eq!(changes, [("60", "10")]);
    }
}
