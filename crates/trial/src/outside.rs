//! What else the host did while a run ran: CPU time that others took, and time that the hypervisor took.

use probe::{HostProbe, Root};
use timeline::Sample;
use timeline::signals::{
    CPU_IRQ, CPU_NICE, CPU_SOFTIRQ, CPU_STEAL, CPU_SYSTEM, CPU_USER, MEM_AVAILABLE, MEM_TOTAL,
};
use units::{Bytes, Ratio, Span, Ticks};

/// The host at one time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HostMoment {
    busy: Option<Span>,
    steal: Option<Span>,
    at: Span,
    pub(crate) available: Option<Bytes>,
    pub(crate) ram: Option<Bytes>,
}

/// The files of the host, open as long as a trial goes on: opening them costs more than reading them.
#[derive(Debug)]
pub(crate) struct HostGauge {
    probe: HostProbe,
    sample: Sample,
}

impl HostGauge {
    pub(crate) fn open() -> Self {
        Self { probe: HostProbe::open(&Root::default()), sample: Sample::default() }
    }

    pub(crate) fn read(&mut self) -> HostMoment {
        self.sample.clear();
        self.probe.sample(&mut self.sample);
        let host = &self.sample.host;
        let time = |signal| host.get(signal).map(Ticks::to_span);
        let busy = [CPU_USER, CPU_NICE, CPU_SYSTEM, CPU_IRQ, CPU_SOFTIRQ]
            .into_iter()
            .try_fold(Span::ZERO, |sum, signal| Some(sum.plus(time(signal)?)));
        let now = probe::now();
        HostMoment {
            busy,
            steal: time(CPU_STEAL),
            at: now.awake.unwrap_or(now.boot),
            available: host.get(MEM_AVAILABLE),
            ram: host.get(MEM_TOTAL),
        }
    }
}

/// What happened between two moments.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Outside {
    /// CPUs that others than the run used, on average.
    pub(crate) cpus: Option<Ratio>,
    /// CPUs that the hypervisor gave to other machines.
    pub(crate) steal: Option<Ratio>,
}

impl Outside {
    /// `own` is the CPU time of the run itself.
    pub(crate) fn between(before: &HostMoment, after: &HostMoment, own: Option<Span>) -> Self {
        let wall = (after.at - before.at).as_secs_f64().max(1e-3);
        let grown =
            |before: Option<Span>, after: Option<Span>| Some((after? - before?).as_secs_f64());
        let busy = grown(before.busy, after.busy);
        let others =
            busy.map(|busy| (busy - own.unwrap_or_default().as_secs_f64()).max(0.0) / wall);
        Self {
            cpus: others.map(Ratio::new),
            steal: grown(before.steal, after.steal).map(|steal| Ratio::new(steal / wall)),
        }
    }
}
