//! Everything that the page of `report` shows, and each side of that of `compare`.

use std::path::Path;

use diagnose::headroom::Question;
use report::html::Page;
use timeline::{Source, TimeRange};

use crate::charts;

/// The page of a source, without a title, and what was wrong while the source was read again for its charts. Of a
/// downsampled recording, the part of `path` in `range` is read again: every peak is drawn, and every sample of
/// what was found.
pub fn page(
    source: &Source,
    path: &Path,
    range: TimeRange,
    question: &Question,
) -> (Page, Vec<String>) {
    let report = crate::check(source);
    let drawn = charts::draw(path, range, source, &report);
    // Segments without a known order have no headroom over time.
    let headroom = source
        .timeline
        .is_one_segment()
        .then(|| crate::headroom(source, question));
    let page = Page {
        report,
        picture: drawn.picture,
        events: crate::events(source, &[""; 0]),
        facts: source.facts.clone(),
        headroom,
        part: drawn.part,
        title: None,
    };
    (page, drawn.problems)
}
