//! All that a page shows of a source: `report` draws one, `compare` two side by side.

mod picture;

use std::path::Path;

use diagnose::headroom::{Question, headroom};
use diagnose::{Diagnosis, Evidence};
use import::{Opened, Range};
use report::html::Page;
use report::model::EventsReport;
use report::model::headroom::HeadroomReport;
use report::{Report, Screen, SourceInfo};

use picture::{Drawn, drawn};

use crate::output::Output;

/// A source that was read and judged.
#[derive(Clone, Copy)]
pub(super) struct Judged<'a> {
    pub(super) path: &'a Path,
    /// Which part of it was asked for.
    pub(super) range: Range,
    pub(super) opened: &'a Opened,
    pub(super) diagnosis: &'a Diagnosis,
    pub(super) info: &'a SourceInfo,
}

/// The answer about a source, its charts, what happened, and how much more fits.
pub(super) struct Shown<'a> {
    opened: &'a Opened,
    report: Report,
    drawn: Drawn,
    events: EventsReport,
    headroom: Option<HeadroomReport>,
}

impl<'a> Shown<'a> {
    /// Draws the charts, and says what was wrong with the source while it was read for them.
    pub(super) fn new(source: Judged<'a>, question: &Question, output: &Output) -> Self {
        let Judged {
            path,
            range,
            opened,
            diagnosis,
            info,
        } = source;
        let report = Report::new(diagnosis, &opened.timeline, &opened.facts, info);
        let drawn = drawn(path, range, opened, &report);
        for problem in &drawn.problems {
            output.warn(&format!("{}: {problem}", opened.name));
        }
        let happened = timeline::events(&opened.timeline, &opened.facts);
        Self {
            events: EventsReport::new(&happened, &opened.timeline, info),
            headroom: room(opened, info, question),
            opened,
            report,
            drawn,
        }
    }

    /// It as a page, with a heading instead of the host's name.
    pub(super) fn page<'b>(&'b self, title: Option<&'b str>, screen: &'b Screen) -> Page<'b> {
        Page {
            report: &self.report,
            picture: &self.drawn.picture,
            events: &self.events,
            facts: &self.opened.facts,
            headroom: self.headroom.as_ref(),
            part: self.drawn.part.as_deref(),
            title,
            screen,
        }
    }
}

/// How much more fits, and whether what was asked about does. Looks that nobody can put in order cannot tell.
fn room(opened: &Opened, info: &SourceInfo, question: &Question) -> Option<HeadroomReport> {
    let timeline = &opened.timeline;
    if !timeline.is_one_segment() {
        return None;
    }
    let answer = headroom(&Evidence::new(timeline, &opened.facts), question);
    Some(HeadroomReport::new(
        &answer,
        question,
        timeline,
        &opened.facts,
        info,
    ))
}
