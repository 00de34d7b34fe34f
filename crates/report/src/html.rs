//! The page of `memtide report`: one self-contained file that opens offline and is readable without a script.
//!
//! It draws what [`Report`] says, in the same words; the script only adds charts, a cursor and zoom. Text from the
//! host is escaped by one writer ([`escape`]). The page fetches nothing, and its own content security policy forbids
//! it. A server may send it without the data of its charts ([`served_report`]), and that apart ([`page_data`]).
//! Cost: proportional to the report and to the columns of the picture.

mod block;
mod chart;
mod clear;
mod compare;
mod data;
mod document;
mod escape;
mod events;
mod explain;
mod facts;
mod figures;
mod finding;
mod headroom;
mod heap_picture;
mod icon;
mod incidents;
mod memory;
mod note;
mod page;
mod recorded;
mod run_up;
mod served;
mod spark;
mod verdict;

use timeline::Facts;

pub use crate::picture::Picture;
pub use compare::compare;
pub use data::{DataAddress, PageData, closer_data};
pub use escape::{Html, Tag, tag};
pub use served::{RangeLink, ServedPage, served_notice};

use self::document::DocumentHead;
use crate::Screen;
use crate::clock::ReportClock;
use crate::model::explain::ExplainReport;
use crate::model::headroom::HeadroomReport;
use crate::model::{EventsReport, Report};

/// The contents of a page about one source.
#[allow(missing_docs)] // names say it
#[derive(Debug)]
pub struct Page {
    /// The answer of `check`.
    pub report: Report,
    /// The charts.
    pub picture: Picture,
    pub events: EventsReport,
    /// The host's settings.
    pub facts: Facts,
    /// How much more fits; `None` where the source cannot show it.
    pub headroom: Option<HeadroomReport>,
    /// Which part of the source the charts show; `None` if they show all of it.
    pub part: Option<String>,
    /// A heading that replaces the host's name.
    pub title: Option<String>,
    /// A process that was read when the page was written.
    pub explain: Option<ExplainReport>,
}

/// Returns the page of a report as one file; `screen` has the readers' time zone.
pub fn report(page: &Page, screen: &Screen) -> String {
    page::draw(&Scene::new(page, screen, ComparedSide::Only))
}

/// Returns the same page without the data of its charts, which its script fetches, first when it opens.
pub fn served_report(page: &Page, screen: &Screen, served: &ServedPage<'_>) -> String {
    let scene = Scene::new(page, screen, ComparedSide::Only);
    page::draw(&Scene { served: Some(served), ..scene })
}

/// Returns the text of that page alone, as it is now: for its script, which puts it in the place of what was sent.
pub fn served_text(page: &Page, screen: &Screen, served: &ServedPage<'_>) -> String {
    let scene = Scene::new(page, screen, ComparedSide::Only);
    page::draw_text(&Scene { served: Some(served), ..scene })
}

/// Returns the data of a page's charts; without charts, that there are none.
pub fn page_data(page: &Page, screen: &Screen) -> PageData {
    PageData::of(&Scene::new(page, screen, ComparedSide::Only))
}

/// Returns the page of a process as one file: its malloc heap page by page, and all else that `explain` found. It runs
/// nothing, and its size is bounded by the picture, not by the heap: below 1 MB.
pub fn explain(report: &ExplainReport) -> String {
    explain::alone(report)
}

/// Returns a page without a script as one file, in the style of all pages and the one given.
pub fn unscripted(title: &str, style: &'static str, body: impl FnOnce(&mut Html)) -> String {
    let head = DocumentHead { title, style, script: None, is_served: false };
    document::draw(&head, |html| {
        body(html);
        page::footer(html);
    })
}

/// The source that a block is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ComparedSide {
    /// The only source of the page.
    Only,
    /// The first of two compared sources.
    Before,
    /// The second of two compared sources.
    After,
}

impl ComparedSide {
    /// The side's word; empty where there is only one source.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Only => "",
            Self::Before => "before",
            Self::After => "after",
        }
    }

    /// The suffix of the side's element ids, so that the ids of two sources differ.
    pub(crate) const fn id_suffix(self) -> &'static str {
        match self {
            Self::Only => "",
            Self::Before => "-before",
            Self::After => "-after",
        }
    }
}

/// The data that every block of the page is drawn from.
pub(crate) struct Scene<'a> {
    pub(crate) report: &'a Report,
    pub(crate) picture: &'a Picture,
    pub(crate) clock: ReportClock<'a>,
    pub(crate) page: &'a Page,
    pub(crate) which: ComparedSide,
    /// The server's part of the page, and where the script gets the data of the charts; `None`: from the page.
    pub(crate) served: Option<&'a ServedPage<'a>>,
}

impl<'a> Scene<'a> {
    fn new(page: &'a Page, screen: &'a Screen, which: ComparedSide) -> Self {
        Self {
            report: &page.report,
            picture: &page.picture,
            clock: ReportClock::new(&page.report.source, screen),
            page,
            which,
            served: None,
        }
    }

    /// Whether anything is shown over time: a curve needs two samples.
    pub(crate) fn has_charts(&self) -> bool {
        self.picture.times().len() > 1 && !self.picture.charts.is_empty()
    }

    /// Adds to an element which of two sources it is about.
    pub(crate) fn sided(&self, tag: Tag) -> Tag {
        match self.which {
            ComparedSide::Only => tag,
            side => tag.with("data-side", side.word()),
        }
    }

    /// Returns the id of a block that exists once for each source.
    pub(crate) fn id(&self, kind: &'static str, name: impl std::fmt::Display) -> String {
        format!("{kind}{}-{name}", self.which.id_suffix())
    }

    /// Returns a time of the picture as readers see it.
    pub(crate) fn moment(&self, picture_s: f64) -> String {
        let offset_s = picture_s + self.picture.begin_s();
        let at = self.clock.wall(offset_s);
        self.clock.moment(offset_s, at).unwrap_or_default()
    }
}
