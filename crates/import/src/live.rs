//! This host, live: samples taken at a steady pace for a while.
//!
//! System-wide files are read first and together; control groups and processes, whose files may wait for a busy
//! process's locks, after them. A late sample is recorded at the time at which it was taken.

use std::time::{Duration, Instant};

use probe::{Cgroups, HostProbe, Processes, Root, Walk, host_facts};
use timeline::{Facts, Sample, Timeline};
use units::Span;

use crate::problems::Problems;
use crate::{Opened, SourceKind};

/// How long to watch, how often and how closely to look.
#[derive(Debug, Clone, Copy)]
pub struct Watch {
    /// From the first sample to the last; zero takes one sample.
    pub lasts: Span,
    /// From sample to sample.
    pub every: Span,
    /// How long reading processes' proportional shares (PSS) may take in the last sample; zero reads none. Reading
    /// them holds a lock of the process for 3 µs a MiB.
    pub shares: Span,
}

/// Slab caches are read with the first sample and each this many after it: 100 µs, and they change slowly.
const SLABINFO_EVERY: u32 = 5;

/// Watches the host below `root`; `progress` is told how much time has passed.
pub fn watch(root: &Root, watch: Watch, progress: &mut dyn FnMut(Span)) -> Opened {
    let mut facts = Facts::default();
    host_facts::read(root, Span::ZERO, &mut facts);
    let mut host = HostProbe::open(root).slabinfo_every(SLABINFO_EVERY);
    let mut cgroups = Cgroups::new(root);
    let mut processes = Processes::new(root);
    let mut timeline = Timeline::default();
    let mut problems = Problems::default();
    let mut sample = Sample::default();
    let started = Instant::now();
    let pace = Pace::new(watch.every, watch.lasts);
    loop {
        let next = pace.after(started.elapsed());
        if next.is_none() && watch.shares > Span::ZERO {
            processes.closeness.shares = Some(duration(watch.shares));
        }
        sample.clear();
        host.sample(&mut sample);
        note(
            &mut problems,
            "control groups",
            &cgroups.sample(&mut sample),
        );
        note(&mut problems, "processes", &processes.sample(&mut sample));
        if timeline.push(&sample).is_err() {
            problems.note("a sample was not later than the one before it and was passed over");
        }
        let Some(next) = next else { break };
        let passed = started.elapsed();
        progress(Span::from_nanos(
            u64::try_from(passed.as_nanos()).unwrap_or(u64::MAX),
        ));
        std::thread::sleep(next.saturating_sub(passed));
    }
    for problem in host.problems() {
        problems.note(problem.to_string());
    }
    timeline.absent.extend(host.absent());
    Opened {
        kind: SourceKind::Live,
        name: String::new(),
        timeline,
        facts,
        problems: problems.into_texts(),
    }
}

fn note(problems: &mut Problems, what: &str, walk: &Walk) {
    if let Some(malformed) = &walk.malformed {
        problems.note(malformed.to_string());
    }
    if walk.left_out > 0 {
        problems.note(format!(
            "{} {what} were too many to read; the {} largest are shown",
            walk.left_out, walk.read
        ));
    }
}

/// When samples are due: on the beat since the start, so that a late one does not make all later ones late.
#[derive(Debug, Clone, Copy)]
pub struct Pace {
    every: Duration,
    lasts: Duration,
}

impl Pace {
    /// A beat every so often, for so long.
    pub fn new(every: Span, lasts: Span) -> Self {
        Self {
            every: duration(every).max(Duration::from_millis(1)),
            lasts: duration(lasts),
        }
    }

    /// The next beat after `passed` since the start; `None` where the last one is over.
    pub fn after(&self, passed: Duration) -> Option<Duration> {
        let beats = u32::try_from(passed.as_nanos() / self.every.as_nanos()).unwrap_or(u32::MAX);
        let next = self.every.saturating_mul(beats.saturating_add(1));
        (next <= self.lasts).then_some(next)
    }
}

fn duration(span: Span) -> Duration {
    Duration::from_nanos(span.as_nanos())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_late_sample_does_not_shift_the_beat() {
        let pace = Pace::new(Span::from_secs(1), Span::from_secs(10));
        let at = Duration::from_secs_f64;
        assert_eq!(pace.after(at(0.0)), Some(at(1.0)));
        assert_eq!(pace.after(at(3.7)), Some(at(4.0)));
        assert_eq!(pace.after(at(9.99)), Some(at(10.0)));
        assert_eq!(pace.after(at(10.0)), None);
    }

    #[test]
    fn one_sample_is_taken_even_of_no_time() {
        let root = Root::at("/nonexistent");
        let once = Watch {
            lasts: Span::ZERO,
            every: Span::from_secs(1),
            shares: Span::ZERO,
        };
        assert_eq!(watch(&root, once, &mut |_| ()).timeline.len(), 1);
    }
}
