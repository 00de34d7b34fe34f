//! Taking a capture of this host: the counterpart of watching it live.

use std::io::Write;
use std::time::Instant;

use probe::{Root, host_facts};
use timeline::Facts;
use units::Span;

use crate::capture::{Header, SampleLine, Writer};
use crate::collect::{Collector, Secrets};
use crate::pace::{Pace, Progress};

/// How long to capture, how often, and what may be in it.
#[derive(Debug, Clone, Copy)]
pub struct Recording {
    /// From the first sample to the last; zero takes one sample.
    pub lasts: Span,
    /// From sample to sample.
    pub every: Span,
    /// What may be in it.
    pub secrets: Secrets,
}

/// Captures the host below `root` into `output`; gives the number of samples.
///
/// # Errors
/// The output's; samples written before it are whole.
pub fn record(
    root: &Root,
    recording: Recording,
    output: impl Write,
    progress: Progress<'_>,
) -> std::io::Result<u64> {
    let mut facts = Facts::default();
    host_facts::read(root, Span::ZERO, &mut facts);
    if recording.secrets.hostname {
        facts.hostname = host_facts::hostname(root);
    }
    let mut writer = Writer::new(output, &Header::new(&facts, recording.every))?;
    let mut collector = Collector::new(root, &facts, recording.secrets);
    let pace = Pace::start(recording.every, recording.lasts);
    let first = probe::now();
    let mut samples = 0;
    loop {
        let next = pace.next();
        // The first sample is at 0; its own reading of the clocks would be a moment later.
        let stamp = if samples == 0 { first } else { probe::now() };
        let begun = Instant::now();
        let files = collector.sample();
        let cost = begun.elapsed();
        writer.sample(&SampleLine {
            cost_ms: Some(cost.as_secs_f64() * 1e3),
            ..SampleLine::new(first, stamp, files)
        })?;
        samples += 1;
        let Some(next) = next else { break };
        if pace.wait(next, progress).is_break() {
            break;
        }
    }
    Ok(samples)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Watch, open_bytes, watch};
    use std::ops::ControlFlow;

    fn recorded(root: &Root, secrets: Secrets) -> timeline::Source {
        let mut capture = Vec::new();
        let recording = Recording {
            lasts: Span::from_millis(40),
            every: Span::from_millis(20),
            secrets,
        };
        record(root, recording, &mut capture, &mut |_| {
            ControlFlow::Continue(())
        })
        .unwrap();
        open_bytes("capture", &capture).unwrap()
    }

    #[test]
    fn what_live_knows_of_the_host_survives_a_capture() {
        let root = Root::default();
        let secrets = Secrets {
            command_lines: true,
            hostname: true,
        };
        let read = recorded(&root, secrets);
        assert_eq!(read.problems, Vec::<String>::new());
        let once = Watch {
            lasts: Span::ZERO,
            every: Span::from_secs(1),
            last: probe::Closeness::default(),
            recent: crate::RECENT,
        };
        let live = watch(&root, once, &mut |_| ControlFlow::Continue(())).facts;
        let facts = read.facts;
        assert_eq!(
            facts.iter().collect::<Vec<_>>(),
            live.iter().collect::<Vec<_>>()
        );
        assert_eq!(facts.changes(), []);
        assert_eq!(facts.page_size, live.page_size);
        assert_eq!(facts.ticks_per_second, live.ticks_per_second);
        assert_eq!(facts.cpus, live.cpus);
        assert_eq!(facts.nodes, live.nodes);
        assert_eq!(facts.disks, live.disks);
        assert_eq!(facts.memory_mounts, live.memory_mounts);
        assert_eq!(facts.cgroup_mode, live.cgroup_mode);
        assert_eq!(facts.own_cgroup, live.own_cgroup);
        assert_eq!(facts.container, live.container);
        assert!(facts.hostname.is_some_and(|name| !name.is_empty()));
    }

    #[test]
    fn samples_carry_all_three_clocks() {
        let opened = recorded(&Root::default(), Secrets::default());
        assert_eq!(opened.facts.hostname, None);
        assert!(opened.timeline.len() >= 2);
        for i in 0..opened.timeline.len() {
            let stamp = opened.timeline.stamp(i).unwrap();
            assert!(stamp.awake.is_some() && stamp.wall.is_some());
        }
        assert_eq!(opened.timeline.stamp(0).unwrap().boot, Span::ZERO);
        assert_eq!(opened.timeline.breaks(), []);
    }

    #[test]
    fn a_capture_that_is_ended_early_keeps_what_it_has() {
        let mut capture = Vec::new();
        let recording = Recording {
            lasts: Span::from_hours(1),
            every: Span::from_secs(60),
            secrets: Secrets::default(),
        };
        let end = &mut |_| ControlFlow::Break(());
        assert_eq!(
            record(&Root::default(), recording, &mut capture, end).unwrap(),
            1
        );
        assert_eq!(open_bytes("capture", &capture).unwrap().timeline.len(), 1);
    }
}
