//! Draws a source: all samples of a short one, every peak of a long recording.

use std::path::Path;

use chart::{Chart, Drawing, Reducer, charts, charts_of_group, comparable_charts, scanned};
use diagnose::Evidence;
use import::{OpenOptions, Resolution};
use report::Report;
use report::html::Picture;
use timeline::{Source, TimePoint, TimeRange, Timeline, with_causes};
use units::{Count, Span};

/// A picture and its notes.
pub(crate) struct Drawn {
    pub(crate) picture: Picture,
    /// Which part of the source it shows; `None` if all of it.
    pub(crate) part: Option<String>,
    /// Problems met while the source was read in more detail.
    pub(crate) problems: Vec<String>,
}

/// What a picture is about.
#[derive(Debug, Clone, Copy)]
pub(crate) enum PictureOf<'a> {
    Host,
    /// The host, beside that of another source.
    HostBesideAnother,
    Group(&'a str),
}

/// The charts of a source, before anything is known of its findings.
pub(crate) struct TracedCharts {
    /// The segment that they show, where the order of several is unknown.
    longest: Option<Timeline>,
    charts: Vec<Chart>,
    /// Every peak, of a recording of which only minutes are in memory.
    passed: Option<Passed>,
}

struct Passed {
    drawing: Drawing,
    interval: Span,
    problems: Vec<String>,
}

impl TracedCharts {
    /// Chooses the charts, and reads a long recording for them; that may take as long as a judgement.
    pub(crate) fn new(path: &Path, range: TimeRange, source: &Source, of: PictureOf<'_>) -> Self {
        let longest = longest(&source.timeline);
        let whole = Evidence::new(longest.as_ref().unwrap_or(&source.timeline), &source.facts);
        let charts = match of {
            PictureOf::Group(group) => charts_of_group(&whole, group),
            PictureOf::Host => charts(&whole),
            PictureOf::HostBesideAnother => comparable_charts(&whole),
        };
        let passed = source.origin.thinned_to.map(|_| pass(path, range, &charts, &whole));
        Self { longest, charts, passed }
    }

    /// Draws them, with every sample around what was found.
    pub(crate) fn drawn(self, path: &Path, source: &Source, report: &Report) -> Drawn {
        let Self { longest, charts, passed } = self;
        let timeline = longest.as_ref().unwrap_or(&source.timeline);
        let whole = Evidence::new(timeline, &source.facts);
        let stretches = stretches_in_full_detail(report);
        let (drawing, problems) = match passed {
            Some(passed) => sharpened(passed, path, &charts, &whole, &stretches),
            None => (Drawing::new(&charts, &whole, &stretches), Vec::new()),
        };
        let begin = timeline.times().first().copied().unwrap_or_default();
        Drawn {
            picture: Picture::new(charts, drawing, begin, &report.findings),
            part: longest.as_ref().map(|part| part_shown(part, &source.timeline)),
            problems,
        }
    }
}

/// Returns the longest of several unordered segments; `None` if there is only one segment.
fn longest(timeline: &Timeline) -> Option<Timeline> {
    if timeline.is_one_segment() {
        return None;
    }
    timeline.segments().into_iter().max_by_key(Timeline::len)
}

fn part_shown(part: &Timeline, whole: &Timeline) -> String {
    let count = |samples: usize| Count::new(samples as u64);
    format!(
        "The times of this source's segments are unknown: charts show the longest segment, {} of \
         {} samples.",
        count(part.len()),
        count(whole.len())
    )
}

/// Passes over all samples of a recording.
fn pass(path: &Path, range: TimeRange, charts: &[Chart], whole: &Evidence<'_>) -> Passed {
    let mut reducer = Reducer::new(charts, whole);
    let passed = import::scan(path, range, &scanned(charts), &mut |part| {
        reducer.take(&Evidence::new(part, whole.facts));
    });
    let problems = passed.unwrap_or_else(|error| vec![with_causes(&error)]);
    let interval = reducer.interval().unwrap_or(Span::from_secs(1));
    Passed { drawing: reducer.drawing(), interval, problems }
}

/// Draws a recording of which only minutes are in memory: every peak of the whole, every sample around findings.
fn sharpened(
    passed: Passed,
    path: &Path,
    charts: &[Chart],
    whole: &Evidence<'_>,
    stretches: &[(Span, Span)],
) -> (Drawing, Vec<String>) {
    let Passed { mut drawing, interval, mut problems } = passed;
    for (from, to) in chart::worth_sharpening(stretches, whole.timeline, interval) {
        match closely(path, whole.timeline, from, to) {
            Some(Ok(part)) => {
                let part = Evidence::new(&part.timeline, whole.facts);
                drawing.sharpen(charts, &part, whole.timeline);
            }
            Some(Err(error)) => problems.push(with_causes(&error)),
            None => {}
        }
    }
    (drawing, problems)
}

/// Reads every sample of a part of a recording; `None` without a wall clock.
fn closely(
    path: &Path,
    whole: &Timeline,
    from: Span,
    to: Span,
) -> Option<Result<Source, import::OpenError>> {
    let (since, until) = (whole.wall_at(from)?, whole.wall_at(to)?);
    let wanted = OpenOptions {
        range: TimeRange { since: Some(TimePoint::At(since)), until: Some(TimePoint::At(until)) },
        resolution: Resolution::Full,
        ..OpenOptions::default()
    };
    Some(import::open_part(path, wanted, &mut |_| {}))
}

/// Returns the stretches that are drawn in full detail: the time of the accounting, at which the cursor opens (a
/// stretch without length), then the findings, in the order of the report.
fn stretches_in_full_detail(report: &Report) -> Vec<(Span, Span)> {
    let ends = |(from, to)| (Span::from_secs_f64(from), Span::from_secs_f64(to));
    let longest =
        report.findings.iter().filter_map(|finding| Some(ends((finding.from_s?, finding.to_s?))));
    let every = report.findings.iter().flat_map(|finding| &finding.stretches);
    // Further occurrences come last: the byte budget goes first to the stretches that the evidence is about.
    let found = longest.chain(every.map(|one| ends((one.from_s, one.to_s))));
    let moment = report.accounting.as_ref().map(|accounting| {
        let at = Span::from_secs_f64(accounting.at_s);
        (at, at)
    });
    moment.into_iter().chain(found).collect()
}
