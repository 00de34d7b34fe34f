//! Figures about the recorder itself, for its status: the sampler writes them and any thread reads them without a lock.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, OnceLock, PoisonError};

use probe::TaskSource;
use recorder_status::RecorderChecks;
use timeline::{Absence, Sample};
use units::{Bytes, Count, Micros, Quantity as _, Ratio, Span};

use crate::heaps::HeapRound;
use crate::new_groups::{NewGroups, WaitingGroups};
use crate::pace::Beat;
use crate::record::processes::ProcessScan;

/// How a recorder reads processes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TasksRead {
    /// By BPF or below `/proc`.
    pub source: TaskSource,
    /// Why not by BPF, in words; `None` if they are, or were not meant to be.
    pub why_not_bpf: Option<String>,
}

impl fmt::Display for TasksRead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.source.name())?;
        match &self.why_not_bpf {
            Some(why) => write!(f, "; no BPF task iterator: {why}"),
            None => Ok(()),
        }
    }
}

/// The recorder's own figures. All are zero before the first sample.
#[derive(Debug, Default)]
pub struct Health {
    started: AtomicU64,
    last_sample: AtomicU64,
    samples: AtomicU64,
    missed: AtomicU64,
    last_late: AtomicU64,
    worst_late: AtomicU64,
    worst_late_at: AtomicU64,
    late_samples: AtomicU64,
    lost: AtomicU64,
    own_cpu: AtomicU64,
    start_cpu: AtomicU64,
    own_rss: AtomicU64,
    processes: AtomicU64,
    processes_left_out: AtomicU64,
    groups: AtomicU64,
    cgroups_left_out: AtomicU64,
    cgroups_every: AtomicU64,
    services: AtomicU64,
    services_left_out: AtomicU64,
    shares_read: AtomicU64,
    shares_waiting: AtomicU64,
    blocked: AtomicU64,
    messages_dropped: AtomicU64,
    tasks: OnceLock<TasksRead>,
    privileges: OnceLock<Vec<String>>,
    absent: Mutex<Vec<(&'static str, Absence)>>,
    /// Cgroups that came, for those who read their names.
    new_groups: Mutex<WaitingGroups>,
    /// Only for threads that may wait: the sampler never touches it.
    heaps: Mutex<HeapsRead>,
    /// Only for threads that may wait, too.
    checks: Mutex<Option<RecorderChecks>>,
}

/// What was read of malloc heaps.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct HeapsRead {
    /// Processes of the last round.
    pub processes: usize,
    /// Rounds so far.
    pub rounds: u64,
    /// CPU time of the last round, in seconds.
    pub cpu_s: f64,
    /// When the last round began, on the boot clock.
    pub last: Span,
    /// From that one to the next: longer than planned where reading would cost too much.
    pub every: Span,
    /// What was not read in the last round, and why, in words.
    pub problems: Vec<String>,
}

/// The figures of one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Figures {
    /// When the first sample was due, on the boot clock.
    pub started: Span,
    /// When the last sample was taken, on the boot clock.
    pub last_sample: Span,
    /// Samples taken.
    pub samples: u64,
    /// Beats without a sample, because the previous sample was taken too late.
    pub missed: u64,
    /// How late the last sample was.
    pub last_late: Micros,
    /// The longest delay of a sample.
    pub worst_late: Micros,
    /// When the most delayed sample was taken, on the boot clock.
    pub worst_late_at: Span,
    /// Samples that were late by more than a tenth of the interval.
    pub late_samples: u64,
    /// Samples that the store could not keep.
    pub lost: u64,
    /// CPU time of the recorder since it started.
    pub own_cpu: Micros,
    /// The part of `own_cpu` that was spent before the second sample: loading the BPF program, the first scan of
    /// everything.
    pub start_cpu: Micros,
    /// Memory of the recorder itself.
    pub own_rss: Bytes,
    /// Processes at the last scan.
    pub processes: u64,
    /// Processes beyond the limit of a scan.
    pub processes_left_out: u64,
    /// Cgroups at the last scan.
    pub groups: u64,
    /// Cgroups beyond the limit of a scan.
    pub cgroups_left_out: u64,
    /// The interval between cgroup scans that their cost allows.
    pub cgroups_every: Span,
    /// Services at the last scan.
    pub services: u64,
    /// Services beyond those that become rows.
    pub services_left_out: u64,
    /// Proportional shares (PSS) read so far.
    pub shares_read: u64,
    /// Processes with a share that was never read or is due again.
    pub shares_waiting: u64,
    /// Processes skipped because reading them did not finish in time.
    pub blocked: u64,
    /// Messages of other threads that were dropped because the queue was full.
    pub messages_dropped: u64,
}

impl Figures {
    /// Returns the CPU time of one sample, without the cost of starting; `None` before the third sample.
    pub fn cpu_per_sample(&self) -> Option<Span> {
        // The first sample belongs to the start, and the cost of the last is not known yet.
        let samples = self.samples.checked_sub(2).filter(|n| *n > 0)?;
        let cpu = self.own_cpu.to_span();
        let cpu = cpu.saturating_sub(self.start_cpu.to_span());
        Some(Span::from_nanos(cpu.as_nanos() / samples))
    }

    /// Returns the CPU time per sample as a share of one CPU, at the actual rate of samples.
    pub fn cpu_share(&self) -> Option<Ratio> {
        let lasted = self.last_sample.saturating_sub(self.started);
        let each = lasted.as_secs_f64() / Count::new(self.samples.checked_sub(1)?).as_f64();
        let cpu = self.cpu_per_sample()?.as_secs_f64();
        (each > 0.0).then(|| Ratio::new(cpu / each))
    }
}

impl Health {
    /// Returns the current figures. They may mix those of two neighbouring samples.
    pub fn figures(&self) -> Figures {
        let get = |figure: &AtomicU64| figure.load(Relaxed);
        Figures {
            started: Span::from_nanos(get(&self.started)),
            last_sample: Span::from_nanos(get(&self.last_sample)),
            samples: get(&self.samples),
            missed: get(&self.missed),
            last_late: Micros::new(get(&self.last_late)),
            worst_late: Micros::new(get(&self.worst_late)),
            worst_late_at: Span::from_nanos(get(&self.worst_late_at)),
            late_samples: get(&self.late_samples),
            lost: get(&self.lost),
            own_cpu: Micros::new(get(&self.own_cpu)),
            start_cpu: Micros::new(get(&self.start_cpu)),
            own_rss: Bytes::new(get(&self.own_rss)),
            processes: get(&self.processes),
            processes_left_out: get(&self.processes_left_out),
            groups: get(&self.groups),
            cgroups_left_out: get(&self.cgroups_left_out),
            cgroups_every: Span::from_nanos(get(&self.cgroups_every)),
            services: get(&self.services),
            services_left_out: get(&self.services_left_out),
            shares_read: get(&self.shares_read),
            shares_waiting: get(&self.shares_waiting),
            blocked: get(&self.blocked),
            messages_dropped: get(&self.messages_dropped),
        }
    }

    /// Returns how processes are read; `None` before the recorder runs or if processes are not read.
    pub fn tasks(&self) -> Option<&TasksRead> {
        self.tasks.get()
    }

    /// Returns what the recorder was allowed and refused, in words; empty until [set](Self::set_privileges).
    pub fn privileges(&self) -> &[String] {
        self.privileges.get().map_or(&[], Vec::as_slice)
    }

    /// Returns the kernel files that cannot be read, and why; updated every few minutes.
    pub fn absent(&self) -> Vec<(&'static str, Absence)> {
        let absent = self.absent.lock().unwrap_or_else(PoisonError::into_inner);
        absent.clone()
    }

    /// Returns what was read of malloc heaps; `None` before the first round.
    pub fn heaps(&self) -> Option<HeapsRead> {
        let heaps = self.heaps.lock().unwrap_or_else(PoisonError::into_inner);
        (heaps.rounds > 0).then(|| heaps.clone())
    }

    /// Stores the result of a round of reading heaps.
    pub(crate) fn heaps_read(&self, began: Span, every: Span, round: &HeapRound) {
        let mut heaps = self.heaps.lock().unwrap_or_else(PoisonError::into_inner);
        heaps.processes = round.readings.len();
        heaps.rounds += 1;
        heaps.cpu_s = round.cpu_s;
        heaps.last = began;
        heaps.every = every;
        heaps.problems.clone_from(&round.problems);
    }

    /// Returns what the recorder's checks of its own recording found; `None` where it makes none.
    pub fn checks(&self) -> Option<RecorderChecks> {
        self.checks.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Changes what the recorder's checks found; the first change begins with none.
    pub fn with_checks<T>(&self, change: impl FnOnce(&mut RecorderChecks) -> T) -> T {
        let mut checks = self.checks.lock().unwrap_or_else(PoisonError::into_inner);
        change(checks.get_or_insert_default())
    }

    /// How many findings came, went or changed so far.
    pub(crate) fn finding_changes(&self) -> u64 {
        let checks = self.checks.lock().unwrap_or_else(PoisonError::into_inner);
        checks.as_ref().map_or(0, |checks| checks.changes)
    }

    /// Stores what the recorder was allowed and refused.
    pub fn set_privileges(&self, privileges: Vec<String>) {
        // Set once, at the start; a second call would pass the same.
        let _ = self.privileges.set(privileges);
    }

    pub(crate) fn set_tasks(&self, tasks: TasksRead) {
        let _ = self.tasks.set(tasks);
    }

    /// Stores which kernel files cannot be read, unless another thread is reading the list just now.
    pub(crate) fn absent_are(&self, absent: &[(&'static str, Absence)]) {
        if let Ok(mut known) = self.absent.try_lock() {
            known.clear();
            known.extend_from_slice(absent);
        }
    }

    /// Counts a sample that was taken.
    pub(crate) fn sampled(&self, boot: Span, beat: Beat, every: Span) {
        let late = beat.late.as_nanos() / 1_000;
        if self.samples.fetch_add(1, Relaxed) == 0 {
            self.started.store(boot.as_nanos(), Relaxed);
        }
        self.last_sample.store(boot.as_nanos(), Relaxed);
        self.missed.fetch_add(beat.missed, Relaxed);
        self.last_late.store(late, Relaxed);
        if late > self.worst_late.load(Relaxed) {
            self.worst_late.store(late, Relaxed);
            self.worst_late_at.store(boot.as_nanos(), Relaxed);
        }
        if beat.late > every.times(0.1) {
            self.late_samples.fetch_add(1, Relaxed);
        }
    }

    /// Stores what the recorder has cost so far, in a sample that is [counted](Self::sampled) but not yet complete.
    pub(crate) fn cost(&self, cpu: Micros, rss: Option<Bytes>, lost: u64) {
        self.own_cpu.store(cpu.get(), Relaxed);
        if self.samples.load(Relaxed) <= 2 {
            self.start_cpu.store(cpu.get(), Relaxed);
        }
        self.own_rss.store(rss.map_or(0, Bytes::get), Relaxed);
        self.lost.store(lost, Relaxed);
    }

    /// Stores the result of a cgroup scan.
    pub(crate) fn groups(&self, read: usize, left_out: usize, every: Span) {
        self.cgroups_every.store(every.as_nanos(), Relaxed);
        store(&self.groups, read);
        store(&self.cgroups_left_out, left_out);
    }

    /// Passes on the cgroups of a scan that are new, unless another thread is taking them just now: they are new in the
    /// next scan, too.
    pub(crate) fn note_groups(&self, new: &mut NewGroups, scan: &Sample) {
        if let Ok(mut waiting) = self.new_groups.try_lock() {
            new.find(scan, &mut waiting);
        }
    }

    /// Returns the cgroups that came since the last call.
    pub(crate) fn take_new_groups(&self) -> WaitingGroups {
        let waiting = self.new_groups.lock();
        std::mem::take(&mut *waiting.unwrap_or_else(PoisonError::into_inner))
    }

    /// Stores the result of a process scan.
    pub(crate) fn scanned(&self, scan: &ProcessScan) {
        store(&self.processes, scan.processes);
        store(&self.processes_left_out, scan.left_out);
        store(&self.services, scan.services);
        store(&self.services_left_out, scan.services_left_out);
        store(&self.shares_waiting, scan.shares_waiting);
        self.shares_read.fetch_add(whole(scan.shares_read), Relaxed);
    }

    /// Counts a process that was not read in time.
    pub(crate) fn blocked(&self) {
        self.blocked.fetch_add(1, Relaxed);
    }

    /// Counts a message that found the queue full.
    pub fn message_dropped(&self) {
        self.messages_dropped.fetch_add(1, Relaxed);
    }
}

fn store(figure: &AtomicU64, value: usize) {
    figure.store(whole(value), Relaxed);
}

fn whole(value: usize) -> u64 {
    u64::try_from(value).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_start_takes_is_no_samples_cost() {
        let (health, every) = (Health::default(), Span::from_secs(2));
        let mut cpu = Micros::new(350_000);
        let mut seen = Vec::new();
        for second in 0..5 {
            let beat = Beat { late: Span::ZERO, missed: 0 };
            health.sampled(Span::from_secs(100 + 2 * second), beat, every);
            health.cost(cpu, None, 0);
            // The first sample reads everything for the first time.
            let cost = if second == 0 { 20_000 } else { 1_000 };
            cpu = Micros::new(cpu.get() + cost);
            seen.push(health.figures());
        }
        let each = |figures: &Figures| figures.cpu_per_sample();
        let expected = Some(Span::from_millis(1));
        assert_eq!(
            seen.iter().map(each).collect::<Vec<_>>(),
            [None, None, expected, expected, expected]
        );
        let last = seen.last().unwrap();
        assert_eq!(last.start_cpu, Micros::new(370_000));
        let share = last.cpu_share().unwrap();
        assert!((share.get() - 0.0005).abs() < 1e-9, "{share}");
        assert_eq!(Figures::default().cpu_share(), None);
    }
}
