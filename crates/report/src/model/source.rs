//! From a source to what the contract says of it and of its host.

use timeline::Timeline;
use timeline::signals::{MEM_TOTAL, SWAP_TOTAL};
use units::{PageSize, Ratio, Span};

use super::time::wall;
use super::{ClockStep, Container, History, Host, Input, Source, SourceKind};

/// A week of a new kernel's fields must not fill a report.
const UNKNOWN_FIELDS_MAX: usize = 200;

/// Tools of one host differ by less in what they call the size of RAM.
const RAM_DIFFERS: Ratio = Ratio::from_percent(25.0);

impl Host {
    /// The host of sample `index`: a text may be of several. RAM and swap are those of that sample, if it has them. Swap
    /// that it does not show is that of the last sample, if both have about the same RAM.
    pub(super) fn at(source: &timeline::Source, index: usize) -> Self {
        let timeline = &source.timeline;
        let host = Self::new(source);
        let Some(ram) = timeline.at(MEM_TOTAL, index) else {
            return host;
        };
        let is_same = timeline.last(MEM_TOTAL).is_some_and(|last| {
            let difference = last.max(ram).saturating_sub(last.min(ram));
            difference <= ram.share(RAM_DIFFERS)
        });
        Self {
            ram_bytes: Some(ram),
            swap_bytes: match timeline.at(SWAP_TOTAL, index) {
                Some(swap) => Some(swap),
                None if is_same => host.swap_bytes,
                None => None,
            },
            ..host
        }
    }

    pub(super) fn new(source: &timeline::Source) -> Self {
        let (timeline, facts) = (&source.timeline, &source.facts);
        Self {
            kernel: facts.kernel_release().map(str::to_owned),
            ram_bytes: timeline.last(MEM_TOTAL),
            swap_bytes: timeline.last(SWAP_TOTAL),
            cpus: facts.cpus,
            page_size_bytes: facts.page_size.map(PageSize::bytes),
            hostname: facts.hostname.clone(),
            container: facts.container.as_ref().map(|container| Container {
                signs: container.signs.clone(),
                meminfo_is_own: container.meminfo_is_own,
            }),
        }
    }
}

impl Source {
    pub(super) fn new(source: &timeline::Source) -> Self {
        let (timeline, origin) = (&source.timeline, &source.origin);
        let live_from = origin.live_from.filter(|from| *from > 0);
        let live = live_from.map(|from| timeline.part(from, timeline.len()));
        let judged = live.as_ref().unwrap_or(timeline);
        let ends = judged.whole();
        Self {
            kind: origin.kind.into(),
            name: (!origin.name.is_empty()).then(|| origin.name.clone()),
            from: ends.and_then(|ends| wall(timeline, ends.from)),
            to: ends.and_then(|ends| wall(timeline, ends.from.plus(judged.duration()))),
            samples: judged.len(),
            interval_s: judged.interval(),
            watched_s: judged.recorded(),
            unknown_fields: timeline
                .unknown()
                .take(UNKNOWN_FIELDS_MAX)
                .map(|(file, field, _)| format!("{file} {field}"))
                .collect(),
            problems: source.problems.clone(),
            inputs: origin.inputs.iter().map(Input::from).collect(),
            lines_skipped: origin.lines_skipped,
            thinned_to_s: origin.thinned_to,
            cut_at_s: origin.cut_at.map(Span::as_secs_f64),
            clock_steps: clock_steps(judged),
            history: live_from.map(|samples| History {
                from: wall(timeline, Span::ZERO),
                resolution_s: timeline.part(0, samples).interval(),
                samples,
            }),
        }
    }
}

impl From<timeline::SourceKind> for SourceKind {
    fn from(kind: timeline::SourceKind) -> Self {
        match kind {
            timeline::SourceKind::Live => Self::Live,
            timeline::SourceKind::Capture => Self::Capture,
            timeline::SourceKind::Text => Self::Text,
            timeline::SourceKind::Bundle => Self::Bundle,
            timeline::SourceKind::Recording => Self::Recording,
        }
    }
}

impl From<&timeline::Input> for Input {
    fn from(input: &timeline::Input) -> Self {
        let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        Self {
            form: input.form.to_owned(),
            what: input.what.clone(),
            file: some(&input.file),
            first_line: input.first_line,
            last_line: input.last_line,
            unit: some(input.unit),
            signals: input.signals.iter().map(|name| (*name).to_owned()).collect(),
            not_understood: input.not_understood,
        }
    }
}

/// Where the wall clock was set. Of very many times some that follow each other are one, after which it is right again.
fn clock_steps(timeline: &Timeline) -> Vec<ClockStep> {
    const INPUTS_MAX: usize = 200;
    let steps = timeline.clock_steps();
    let together = steps.chunks(steps.len().div_ceil(INPUTS_MAX).max(1));
    #[allow(clippy::cast_precision_loss)] // to the microsecond over centuries
    let entries = together.filter_map(|steps| {
        Some(ClockStep {
            at_s: steps.last()?.at.as_secs_f64(),
            by_s: steps.iter().map(|step| step.by_nanos as f64 / 1e9).sum(),
        })
    });
    entries.collect()
}
