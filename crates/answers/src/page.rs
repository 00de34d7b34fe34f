//! The contents of the page of `report`, and of each side of `compare`.

use std::panic::resume_unwind;
use std::path::Path;
use std::thread;

use diagnose::Diagnosis;
use diagnose::headroom::Question;
use report::Report;
use report::html::Page;
use timeline::{Source, TimePoint, TimeRange};
use units::Span;

use crate::charts::{PictureOf, TracedCharts};

/// A source with its path, to read it again: from a downsampled recording a page draws every peak, and every sample
/// around findings.
#[allow(missing_docs)] // names say it
#[derive(Debug, Clone, Copy)]
pub struct PageSource<'a> {
    pub source: &'a Source,
    /// Its path.
    pub path: &'a Path,
    /// The part of it that was read.
    pub range: TimeRange,
    /// The path of the cgroup that the page is about; `None`: the host.
    pub group: Option<&'a str>,
    /// The moment that the page is about; what happened then leads.
    pub at: Option<TimePoint>,
}

/// Returns the page of a source, without a title, and the problems met while it was read again for its charts.
pub fn page(of: PageSource<'_>, question: &Question) -> (Page, Vec<String>) {
    let picture = of.group.map_or(PictureOf::Host, PictureOf::Group);
    reported_page(of, picture, || crate::check_about(of.source, of.group, of.at), question)
}

/// Returns the page of what goes on now, as [`crate::check_now`] judges it.
pub fn page_now(of: PageSource<'_>, recent: Span, question: &Question) -> (Page, Vec<String>) {
    let picture = of.group.map_or(PictureOf::Host, PictureOf::Group);
    reported_page(of, picture, || crate::check_now(of.source, recent, of.group), question)
}

/// As `page`, of one of two sources, which was already diagnosed.
pub(crate) fn diagnosed_page(
    of: PageSource<'_>,
    diagnosis: &Diagnosis,
    question: &Question,
) -> (Page, Vec<String>) {
    let picture = of.group.map_or(PictureOf::HostBesideAnother, PictureOf::Group);
    reported_page(of, picture, || Report::new(of.source, diagnosis), question)
}

fn reported_page(
    of: PageSource<'_>,
    picture: PictureOf<'_>,
    judge: impl FnOnce() -> Report,
    question: &Question,
) -> (Page, Vec<String>) {
    let PageSource { source, path, range, group, .. } = of;
    let trace = || TracedCharts::new(path, range, source, picture);
    let (traced, report) = match source.origin.thinned_to {
        // To read a long recording for its charts takes as long as to judge it, and needs no finding: both run at once.
        Some(_) => thread::scope(|scope| {
            let tracing = scope.spawn(trace);
            let report = judge();
            (tracing.join().unwrap_or_else(|panic| resume_unwind(panic)), report)
        }),
        None => (trace(), judge()),
    };
    let drawn = traced.drawn(path, source, &report);
    // Headroom over time needs segments in a known order.
    let headroom =
        source.timeline.is_one_segment().then(|| crate::headroom(source, question, group));
    let page = Page {
        report,
        picture: drawn.picture,
        events: crate::events(source, &[], group),
        facts: source.facts.clone(),
        headroom,
        part: drawn.part,
        title: None,
        explain: None,
    };
    (page, drawn.problems)
}
