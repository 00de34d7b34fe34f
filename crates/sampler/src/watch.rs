//! Watching this host: samples into a timeline, with the kernel's reports of kills and failed allocations.

mod kernel_reports;

use std::time::Duration;

use probe::{ProcessDetail, Root, TaskSource, Tasks, Walk, host_facts};
use timeline::{Absence, Entity, Facts, Problems, Source, SourceKind, Timeline, signals};
use units::{Count, Span};

use crate::sampler::{Progress, Rates, Sampler};
use kernel_reports::KernelReports;

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
}

/// CPU budget of PSS in one sample: at 3.5 µs per MiB, enough for the largest 55 GiB of processes.
const PSS_BUDGET: Duration = Duration::from_millis(200);
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

/// Watches a host, sample by sample: the caller waits for the next one, takes it, and may read the timeline in between.
///
/// ```no_run
/// use probe::{ProcessDetail, Root};
/// use sampler::{RECENT, WatchOptions, Watcher};
/// use units::Span;
///
/// let mut watcher = Watcher::open(&Root::default(), WatchOptions {
///     duration: Span::from_hours(24),
///     every: Span::from_secs(1),
///     last: ProcessDetail::COMPLETE,
///     recent: RECENT,
/// });
/// loop {
///     if watcher.wait(Span::from_millis(50)) {
///         watcher.take();
///         println!("{} samples", watcher.timeline().len());
///     }
/// }
/// ```
#[derive(Debug)]
pub struct Watcher {
    options: WatchOptions,
    sampler: Sampler,
    tasks: Tasks,
    timeline: Timeline,
    facts: Facts,
    problems: Problems,
    cgroups: Unread,
    processes: Unread,
    reports: KernelReports,
}

impl Watcher {
    /// Opens the host's files. The first sample is due now.
    pub fn open(root: &Root, options: WatchOptions) -> Self {
        let mut facts = Facts::default();
        host_facts::read(root, Span::ZERO, &mut facts);
        Self {
            options,
            tasks: Tasks::open(root, Some(TaskSource::Proc)),
            timeline: Timeline::default(),
            facts,
            problems: Problems::default(),
            cgroups: Unread::new(Entity::Cgroup),
            processes: Unread::new(Entity::Process),
            reports: KernelReports::open(root, options.recent),
            sampler: Sampler::open(root, Rates::all(options.every)),
        }
    }

    /// Whether the next sample is due. If not, waits until it is, until a signal comes, or for `at_most`.
    pub fn wait(&self, at_most: Span) -> bool {
        self.sampler.wait(at_most)
    }

    /// Takes a sample into the timeline. A late one is recorded at its actual time.
    pub fn take(&mut self) {
        let taken = self.sampler.take();
        if let Some(walk) = taken.cgroups {
            self.cgroups.note(walk, &mut self.problems);
        }
        self.tasks.detail =
            if self.is_over() { self.options.last } else { ProcessDetail::COMPLETE };
        let sample = self.sampler.sample();
        let walk = self.tasks.rows(sample, &mut |_, _| ());
        self.processes.note(walk, &mut self.problems);
        if self.timeline.push(sample).is_err() {
            self.problems.note("a sample was not later than the one before it and was passed over");
        }
        self.reports.read_new(false);
    }

    /// Whether the last sample is taken.
    pub fn is_over(&self) -> bool {
        self.sampler.due() > self.options.duration
    }

    /// Returns the samples so far. Kernel reports are added at the end.
    pub fn timeline(&self) -> &Timeline {
        &self.timeline
    }

    /// Returns everything found.
    pub fn finish(self) -> Source {
        let (mut timeline, mut problems) = (self.timeline, self.problems);
        self.reports.finish(&mut timeline, &mut problems);
        for unread in [self.cgroups, self.processes] {
            unread.finish(&mut timeline, &mut problems);
        }
        problems.note_left_out(&timeline, &self.facts);
        for problem in self.sampler.host().problems() {
            problems.note(problem.to_string());
        }
        timeline.absent.extend(self.sampler.host().absent());
        if !host_facts::user_is_root()
            && let Some(more) = more_as_root(&timeline)
        {
            problems.note(more);
        }
        Source {
            problems: problems.into_texts(),
            ..Source::new(SourceKind::Live, "", timeline, self.facts)
        }
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

/// What the scans of one kind of entity could not read.
#[derive(Debug)]
struct Unread {
    entity: Entity,
    /// The most entities that one scan left out.
    left_out: usize,
    /// The most that did not answer in one scan.
    silent: usize,
    /// Why the last scan had nothing to read.
    absent: Option<Absence>,
    /// Files that this user may not read, by their catalogue names.
    denied: Vec<&'static str>,
}

impl Unread {
    fn new(entity: Entity) -> Self {
        Self { entity, left_out: 0, silent: 0, absent: None, denied: Vec::new() }
    }

    fn note(&mut self, walk: Walk, problems: &mut Problems) {
        if let Some(malformed) = &walk.malformed {
            problems.note(malformed.to_string());
        }
        self.left_out = self.left_out.max(walk.left_out);
        self.silent = self.silent.max(walk.silent);
        self.absent = walk.absent;
        for file in walk.denied_files {
            if !self.denied.contains(&file) {
                self.denied.push(file);
            }
        }
    }

    fn finish(self, timeline: &mut Timeline, problems: &mut Problems) {
        if self.left_out > 0 {
            let (what, which) = match self.entity {
                Entity::Cgroup => ("cgroups", "the largest were, eight levels deep"),
                _ => ("processes", "there were too many"),
            };
            problems.note(format!("up to {} {what} at once were not read: {which}", self.left_out));
        }
        if self.silent > 0 {
            problems.note(format!(
                "left out: {}, without an answer within 0.1 s as they wait in execve(2) for a file \
                 system",
                Count::new(self.silent as u64).named("process", "processes")
            ));
        }
        if let Some(absent) = &self.absent {
            let of_entity = signals::ALL.iter().filter(|def| def.entity == self.entity);
            for def in of_entity {
                timeline.absent.insert(def.file, absent.clone());
            }
        }
        for file in self.denied {
            timeline.absent.insert(file, Absence::PermissionDenied);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ops::ControlFlow;

    fn options(duration: Span, every: Span) -> WatchOptions {
        WatchOptions { duration, every, last: ProcessDetail::COMPLETE, recent: RECENT }
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
    fn what_scans_left_out_is_reported_once() {
        let mut problems = Problems::default();
        let mut timeline = Timeline::default();
        for (entity, expected) in [
            (Entity::Cgroup, "up to 9 cgroups at once were not read: the largest were"),
            (Entity::Process, "up to 9 processes at once were not read: there were too many"),
        ] {
            let mut unread = Unread::new(entity);
            for left_out in [7, 9, 8] {
                let walk = Walk { left_out, denied_files: vec!["/proc/PID/io"], ..Walk::default() };
                unread.note(walk, &mut problems);
            }
            unread.finish(&mut timeline, &mut problems);
            let texts = std::mem::take(&mut problems).into_texts();
            assert_eq!(texts.len(), 1, "{texts:?}");
            assert!(texts[0].starts_with(expected), "{texts:?}");
        }
        let denied = timeline.absent.get("/proc/PID/io");
        assert_eq!(denied, Some(&Absence::PermissionDenied));
        let more = more_as_root(&timeline).unwrap();
        assert_eq!(more, "root would also have read /proc/PID/io");
        assert_eq!(more_as_root(&Timeline::default()), None);
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
                assert_eq!(watcher.timeline().len(), taken);
            }
        }
        assert!((1..=3).contains(&taken), "{taken}");
        assert_eq!(watcher.finish().timeline.len(), taken);
    }
}
