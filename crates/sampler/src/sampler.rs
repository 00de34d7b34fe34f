//! The sampling of a host: its files first and together, then its cgroups, on a beat that a late sample does not shift.
//!
//! It is pulled: a caller waits for the next sample as long as it likes and takes it, so a terminal program can do other
//! things in between. Processes have files that may wait for a busy process's locks: the caller reads them after it, straight
//! to where they belong. In steady state nothing is allocated.

use std::ops::ControlFlow;

use probe::{Cgroups, HostProbe, Root, Sink, Walk, now};
use rustix::time::{ClockId, clock_gettime};
use timeline::{Sample, Stamp};
use units::{Ratio, Span};

use crate::pace::{Beat, LastDone, Pace, sleep_until};

/// Gets the time since the first sample again and again; may end the sampling, which keeps what was sampled so far.
pub type Progress<'a> = &'a mut dyn FnMut(Span) -> ControlFlow<()>;

/// How often a sampler reads what. All are rounded up to whole samples.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rates {
    /// From sample to sample.
    pub every: Span,
    /// The host's files that move slowly: nodes, swap areas, zram, sockets, directory entries, KSM.
    pub slow: Span,
    /// The slab caches, which cost more than all other host files together.
    pub slabs: Span,
    /// The cgroups, at most so often; `None`: never.
    pub cgroups: Option<Span>,
    /// How much of one CPU the cgroups may take: where there are many, they are read more rarely.
    pub cgroups_share: Ratio,
}

/// Samples a host.
#[derive(Debug)]
pub struct Sampler {
    rates: Rates,
    host: HostProbe,
    cgroups: Cgroups,
    /// From scan to scan of the cgroups, as their cost allows.
    cgroups_every: Span,
    cgroups_done: LastDone,
    pace: Pace,
    sample: Sample,
}

/// What a sample was taken of, besides its readings.
#[derive(Debug)]
pub struct SampleTaken {
    /// When the host's files were read.
    pub stamp: Stamp,
    /// How late that was.
    pub beat: Beat,
    /// The scan of the cgroups, where it was due.
    pub cgroups: Option<Walk>,
}

impl Rates {
    /// Everything with every sample, but for the slab caches: 100 µs, and they change slowly.
    pub fn all(every: Span) -> Self {
        Self {
            every,
            slow: every,
            slabs: every.times(5.0),
            cgroups: Some(every),
            cgroups_share: Ratio::from_percent(100.0),
        }
    }

    /// How many samples there are in a span, rounded up.
    fn samples_in(&self, span: Span) -> u32 {
        let samples = span.as_nanos().div_ceil(self.every.as_nanos().max(1));
        u32::try_from(samples).unwrap_or(u32::MAX)
    }
}

impl Sampler {
    /// The longest wait for a sample between two calls of [`Progress`]: what a person takes for at once.
    const LONGEST_NAP: Span = Span::from_millis(100);

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
            pace: Pace::from(start.awake_or_boot(), rates.every),
            sample: Sample::default(),
        }
    }

    /// When the next sample is due, since the first one was due. Suspends do not count.
    pub fn due(&self) -> Span {
        self.pace.due_after_start()
    }

    /// Whether the next sample is due; else waits for it until a signal comes, and at most so long.
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
            if self.wait(Self::LONGEST_NAP) {
                return ControlFlow::Continue(());
            }
        }
    }

    /// Takes a sample of the host and, where they are due, of the cgroups. It does not wait.
    pub fn take(&mut self) -> SampleTaken {
        self.take_showing(&mut |_, _| ())
    }

    /// The same, and shows each text that is read.
    pub fn take_showing(&mut self, sink: Sink<'_>) -> SampleTaken {
        self.sample.clear();
        self.host.sample_showing(&mut self.sample, sink);
        let stamp = self.sample.stamp;
        let beat = self.pace.begin(stamp.awake_or_boot());
        SampleTaken {
            stamp,
            beat,
            cgroups: self.scan_cgroups(sink),
        }
    }

    fn scan_cgroups(&mut self, sink: Sink<'_>) -> Option<Walk> {
        let every = self.rates.cgroups?.max(self.cgroups_every);
        if !self.pace.takes(&mut self.cgroups_done, every) {
            return None;
        }
        let before = thread_cpu();
        let walk = self.cgroups.sample_showing(&mut self.sample, sink);
        let cost = thread_cpu().saturating_sub(before);
        self.cgroups_every = distance(cost, self.rates.cgroups_share);
        Some(walk)
    }

    /// How far apart scans of the cgroups are.
    pub fn cgroups_every(&self) -> Span {
        self.rates
            .cgroups
            .unwrap_or_default()
            .max(self.cgroups_every)
    }

    /// Whether something that is due once in `period` is due with the sample that was taken last, and notes it as done.
    pub fn takes(&self, done: &mut LastDone, period: Span) -> bool {
        self.pace.takes(done, period)
    }

    /// The sample that was taken last, to add processes to.
    pub fn sample(&mut self) -> &mut Sample {
        &mut self.sample
    }

    /// The host's files.
    pub fn host(&self) -> &HostProbe {
        &self.host
    }

    /// Opens what was plugged in or mounted meanwhile, or could not be opened before. It allocates.
    pub fn refresh(&mut self) {
        self.host.refresh();
    }
}

/// The clock that stands still in suspend.
fn awake() -> Span {
    let now = now();
    now.awake_or_boot()
}

/// CPU time of this thread.
fn thread_cpu() -> Span {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Span::from_secs(time.tv_sec.unsigned_abs()).plus(Span::from_nanos(time.tv_nsec.unsigned_abs()))
}

/// How far apart things that cost this much are, for them to take such a share of a CPU.
fn distance(cost: Span, share: Ratio) -> Span {
    Span::from_secs_f64(cost.as_secs_f64() / share.get().max(f64::MIN_POSITIVE))
}
