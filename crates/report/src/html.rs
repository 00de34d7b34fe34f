//! The page of `memtide report`: one file with everything in it, that opens offline and reads without a script.
//!
//! It draws what [`Report`] says, in its words; the script only adds charts, a cursor and zoom. Text from the host goes
//! through one writer ([`escape`]) that makes it harmless. Nothing is fetched, and the page's own policy forbids it. Cost:
//! proportional to the report and to the columns of the picture.

mod block;
mod chart;
mod clear;
mod compare;
mod document;
mod escape;
mod events;
mod facts;
mod figures;
mod finding;
mod headroom;
mod icon;
mod memory;
mod note;
mod page;
mod recorded;
mod run_up;
mod spark;
mod verdict;

use timeline::Facts;

pub use crate::picture::Picture;
pub use compare::compare;

use self::escape::Tag;
use crate::Screen;
use crate::clock::ReportClock;
use crate::model::headroom::HeadroomReport;
use crate::model::{EventsReport, Report};

/// What a page shows of a source.
#[derive(Debug)]
pub struct Page {
    /// The answer of `check`.
    pub report: Report,
    /// The charts.
    pub picture: Picture,
    /// What happened.
    pub events: EventsReport,
    /// The host's settings.
    pub facts: Facts,
    /// How much more fits; `None` where the source cannot show it.
    pub headroom: Option<HeadroomReport>,
    /// Which part of the source the charts show, where that is not all of it.
    pub part: Option<String>,
    /// A heading instead of the host's name.
    pub title: Option<String>,
}

/// The page of a report, as one file; the screen has its readers' time zone.
pub fn report(page: &Page, screen: &Screen) -> String {
    page::draw(&Scene::new(page, screen, ComparedSide::Only))
}

/// Which source a block is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ComparedSide {
    /// The page has one.
    Only,
    /// The one of two that are compared.
    Before,
    /// The other.
    After,
}

impl ComparedSide {
    /// Its word; empty where there is only one.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Only => "",
            Self::Before => "before",
            Self::After => "after",
        }
    }

    /// What its ids have behind the kind of block, so that those of two sources differ.
    pub(crate) const fn id_suffix(self) -> &'static str {
        match self {
            Self::Only => "",
            Self::Before => "-before",
            Self::After => "-after",
        }
    }
}

/// What every block of the page is drawn from.
pub(crate) struct Scene<'a> {
    pub(crate) report: &'a Report,
    pub(crate) picture: &'a Picture,
    pub(crate) clock: ReportClock<'a>,
    pub(crate) page: &'a Page,
    pub(crate) which: ComparedSide,
}

impl<'a> Scene<'a> {
    fn new(page: &'a Page, screen: &'a Screen, which: ComparedSide) -> Self {
        Self {
            report: &page.report,
            picture: &page.picture,
            clock: ReportClock::new(&page.report.source, screen),
            page,
            which,
        }
    }

    /// Whether there is anything over time: a curve needs two samples.
    pub(crate) fn has_charts(&self) -> bool {
        self.picture.times().len() > 1 && !self.picture.charts.is_empty()
    }

    /// Says of an element which of two sources it is about.
    pub(crate) fn sided(&self, tag: Tag) -> Tag {
        match self.which {
            ComparedSide::Only => tag,
            side => tag.with("data-side", side.word()),
        }
    }

    /// The id of a block of which there is one for each source.
    pub(crate) fn id(&self, kind: &'static str, name: impl std::fmt::Display) -> String {
        format!("{kind}{}-{name}", self.which.id_suffix())
    }

    /// A time of the picture, as people read it.
    pub(crate) fn moment(&self, picture_s: f64) -> String {
        let offset_s = picture_s + self.picture.begin_s();
        let at = self.clock.wall(offset_s);
        self.clock.moment(offset_s, at).unwrap_or_default()
    }
}
