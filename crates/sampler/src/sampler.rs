//! Samples a host: first its files, all at once, then its cgroups, on a beat that a late sample does not shift.
//!
//! All cgroups are read at an interval that their cost allows. In the samples between, the busiest are: those that met a
//! limit, and those with the largest change of usage. Such a sample is partial: a cgroup without a row was not read.
//!
//! The caller pulls: it waits for the next sample as long as it likes and then takes it, so a terminal program can do
//! other things in between. Reading a process's files may wait for the process's locks, so the caller reads processes
//! after the sample, straight into their destination. In steady state nothing is allocated.

use std::ops::ControlFlow;

use probe::{Cgroups, HostProbe, Root, Sink, Walk, now, thread_cpu};
use timeline::{Sample, Stamp};
use units::{Ratio, Span};

use crate::busiest_pace::BusiestPace;
use crate::pace::{Beat, LastDone, Pace, interval_within, sleep_until};

/// Called repeatedly with the time since the first sample. It may end the sampling; the samples so far are kept.
pub type Progress<'a> = &'a mut dyn FnMut(Span) -> ControlFlow<()>;

/// How often a sampler reads each kind of file. All intervals are rounded up to whole samples.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rates {
    /// From one host sample to the next.
    pub every: Span,
    /// From one read to the next of the slowly changing host files: nodes, swap areas, zram, sockets, directory
    /// entries, KSM.
    pub slow: Span,
    /// The slab caches, which cost more than all other host files together.
    pub slabs: Span,
    /// The shortest interval between scans of the cgroups; `None`: never scanned.
    pub cgroups: Option<Span>,
    /// The share of one CPU that cgroups may take: on hosts with many, all are scanned less often, and fewer of the
    /// busiest are read in between.
    pub cgroups_share: Ratio,
    /// How many of the busiest cgroups are read with each sample between two scans; zero: none.
    pub busiest: usize,
}

/// Samples a host.
#[derive(Debug)]
pub struct Sampler {
    rates: Rates,
    host: HostProbe,
    cgroups: Cgroups,
    /// The interval between cgroup scans that their cost allows.
    cgroups_every: Span,
    cgroups_done: LastDone,
    busiest: BusiestPace,
    pace: Pace,
    sample: Sample,
}

/// A sample's time and lateness, and the scan of the cgroups.
#[derive(Debug)]
pub struct SampleTaken {
    /// When the host's files were read.
    pub stamp: Stamp,
    /// How late the sample was.
    pub beat: Beat,
    /// The scan of the cgroups, if it was due.
    pub cgroups: Option<Walk>,
}

impl Rates {
    /// The part of the cgroups' share that scans of all may take; the rest is for the busiest.
    const OF_SCANS: f64 = 2.0 / 3.0;

    /// Returns the share of one CPU that scans of all cgroups may take.
    pub(crate) fn share_of_scans(&self) -> Ratio {
        Ratio::new(self.cgroups_share.get() * Self::OF_SCANS)
    }

    /// Reads everything with every sample except the slab caches, which take 100 µs and change slowly.
    pub fn all(every: Span) -> Self {
        Self {
            every,
            slow: every,
            slabs: every.times(5.0),
            cgroups: Some(every),
            cgroups_share: Ratio::from_percent(100.0),
            busiest: 0,
        }
    }

    /// Returns the number of samples in a span, rounded up.
    fn samples_in(&self, span: Span) -> u32 {
        let samples = span.as_nanos().div_ceil(self.every.as_nanos().max(1));
        u32::try_from(samples).unwrap_or(u32::MAX)
    }
}

impl Sampler {
    /// The longest wait between two calls of [`Progress`]: a person perceives it as immediate.
    const NAP_MAX: Span = Span::from_millis(100);

    /// Opens the files of the host below `root`. The first sample is due now.
    pub fn open(root: &Root, rates: Rates) -> Self {
        let start = now();
        Self {
            rates,
            host: HostProbe::open(root)
                .slow_every(rates.samples_in(rates.slow))
                .slabinfo_every(rates.samples_in(rates.slabs)),
            cgroups: Cgroups::new(root),
            cgroups_every: Span::ZERO,
            cgroups_done: LastDone::default(),
            busiest: BusiestPace::new(rates.busiest),
            pace: Pace::from(start.awake_or_boot(), rates.every),
            sample: Sample::default(),
        }
    }

    /// Has each sample read the cgroup with this key, those around it, and those in it, whatever else there is time for.
    pub fn follow(&mut self, key: &str) {
        self.cgroups.follow(key);
    }

    /// Returns when the next sample is due, measured from when the first one was due. Suspends do not count.
    pub fn due(&self) -> Span {
        self.pace.due_after_start()
    }

    /// How long it is until the next sample is due; zero if it is.
    pub fn until_due(&self) -> Span {
        self.pace.due().saturating_sub(awake())
    }

    /// Whether the next sample is due. If not, waits until it is, until a signal comes, or for `at_most`.
    pub fn wait(&self, at_most: Span) -> bool {
        let now = awake();
        let is_due = now >= self.pace.due();
        if !is_due {
            sleep_until(self.pace.due().min(now.plus(at_most)));
        }
        is_due
    }

    /// Waits for the next sample, unless `progress` ends it.
    pub fn wait_unless_ended(&self, progress: Progress<'_>) -> ControlFlow<()> {
        loop {
            progress(awake().saturating_sub(self.pace.start()))?;
            if self.wait(Self::NAP_MAX) {
                return ControlFlow::Continue(());
            }
        }
    }

    /// Takes a sample of the host and, where they are due, of the cgroups. It does not wait.
    pub fn take(&mut self) -> SampleTaken {
        self.take_with(None)
    }

    /// Like [`take`](Self::take), and passes each text that is read to `sink`.
    pub fn take_showing(&mut self, sink: Sink<'_>) -> SampleTaken {
        self.take_with(Some(sink))
    }

    fn take_with(&mut self, mut sink: Option<Sink<'_>>) -> SampleTaken {
        self.sample.clear();
        let show = &mut |path: &str, text: &[u8]| {
            if let Some(sink) = &mut sink {
                sink(path, text);
            }
        };
        self.host.sample_showing(&mut self.sample, show);
        let stamp = self.sample.stamp;
        let beat = self.pace.begin(stamp.awake_or_boot());
        SampleTaken { stamp, beat, cgroups: self.scan_cgroups(sink) }
    }

    fn scan_cgroups(&mut self, sink: Option<Sink<'_>>) -> Option<Walk> {
        let every = self.rates.cgroups?.max(self.cgroups_every);
        let is_first = self.cgroups_done.is_never();
        let before = thread_cpu();
        if !self.pace.takes(&mut self.cgroups_done, every) {
            self.read_busiest(before);
            return None;
        }
        let walk = match sink {
            Some(sink) => self.cgroups.sample_showing(&mut self.sample, sink),
            None => self.cgroups.sample(&mut self.sample),
        };
        // The first opens the files: its cost is not that of the next.
        if !is_first {
            let cost = thread_cpu().saturating_sub(before);
            self.cgroups_every = interval_within(cost, self.rates.share_of_scans());
        }
        Some(walk)
    }

    fn read_busiest(&mut self, before: Span) {
        let pace = &mut self.busiest;
        if self.rates.busiest == 0 || !self.pace.takes(&mut pace.done, pace.every) {
            if self.cgroups.follows() {
                self.cgroups.sample_busiest(&mut self.sample, 0, 0);
            }
            return;
        }
        self.cgroups.sample_busiest(&mut self.sample, pace.busiest, pace.probes);
        let cost = thread_cpu().saturating_sub(before);
        let share = self.rates.cgroups_share.get() * (1.0 - Rates::OF_SCANS);
        let known = self.cgroups.known();
        pace.note(cost, Ratio::new(share), self.rates.every, known);
    }

    /// Returns how many of the busiest cgroups are read between two scans, how many others are asked whether they met a
    /// limit, and the interval.
    pub fn busiest(&self) -> (usize, usize, Span) {
        let pace = &self.busiest;
        let every = pace.every.max(self.rates.every);
        (pace.busiest.min(self.cgroups.known()), pace.probes, every)
    }

    /// Returns the current interval between cgroup scans.
    pub fn cgroups_every(&self) -> Span {
        self.rates.cgroups.unwrap_or_default().max(self.cgroups_every)
    }

    /// Whether a job that runs once per `period` is due with the last sample; if so, notes it as done.
    pub fn takes(&self, done: &mut LastDone, period: Span) -> bool {
        self.pace.takes(done, period)
    }

    /// Returns the last sample, to add processes to it.
    pub fn sample(&mut self) -> &mut Sample {
        &mut self.sample
    }

    /// Returns the host's files.
    pub fn host(&self) -> &HostProbe {
        &self.host
    }

    /// Opens files that appeared since the last call, or could not be opened before. It allocates.
    pub fn refresh(&mut self) {
        self.host.refresh();
    }
}

/// Returns the time on the clock that stands still in suspend.
fn awake() -> Span {
    let now = now();
    now.awake_or_boot()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_followed_cgroup_is_in_every_sample_although_nothing_happens_in_it() {
        let directory = tempfile::tempdir().unwrap();
        let mount = directory.path().join("sys/fs/cgroup");
        fs::create_dir_all(mount.join("web")).unwrap();
        fs::write(mount.join("cgroup.controllers"), "memory\n").unwrap();
        fs::write(mount.join("web/memory.current"), "10\n").unwrap();
        let rates = Rates {
            cgroups: Some(Span::from_hours(1)),
            // Too little for any of the busiest.
            cgroups_share: Ratio::new(1e-9),
            busiest: 64,
            ..Rates::all(Span::from_millis(1))
        };
        let rows = |follows: bool| {
            let mut sampler = Sampler::open(&Root::at(directory.path()), rates);
            if follows {
                sampler.follow("/web");
            }
            let mut rows = 0;
            for _ in 0..10 {
                sampler.take();
                let table = sampler.sample().table(timeline::Entity::Cgroup);
                rows += table.rows().iter().filter(|row| row.key == "/web").count();
            }
            rows
        };
        assert_eq!((rows(false), rows(true)), (1, 10));
    }
}
