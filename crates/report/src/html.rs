//! The page of `memtide report`: one file with everything in it, that opens offline and reads without a script.
//!
//! It draws what [`Report`] says, in its words; the script only adds charts, a cursor and zoom. Text from the host goes
//! through one writer ([`escape`]) that makes it harmless. Nothing is fetched, and the page's own policy forbids it. Cost:
//! proportional to the report and to the columns of the picture.

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
mod spark;
mod verdict;

use timeline::Facts;

pub use crate::picture::{Picture, worth_a_closer_look};
pub use compare::compare;
pub(crate) use escape::short;

use crate::Screen;
use crate::model::headroom::HeadroomReport;
use crate::model::{EventsReport, Report};
use crate::text::when::Clock;

/// What a page shows.
#[derive(Debug)]
pub struct Page<'a> {
    /// The answer.
    pub report: &'a Report,
    /// The charts.
    pub picture: &'a Picture,
    /// What happened.
    pub events: &'a EventsReport,
    /// The host's settings.
    pub facts: &'a Facts,
    /// How much more fits, where that can be told.
    pub headroom: Option<&'a HeadroomReport>,
    /// Which part of the source the charts show, where that is not all of it.
    pub part: Option<&'a str>,
    /// A heading instead of the host's name.
    pub title: Option<&'a str>,
    /// In which zone its readers live.
    pub screen: &'a Screen,
}

/// The page of a report, as one file.
pub fn report(page: &Page<'_>) -> String {
    page::draw(&Scene {
        report: page.report,
        picture: page.picture,
        clock: Clock::new(&page.report.source, page.screen),
        page,
    })
}

/// What every block of the page is drawn from.
pub(crate) struct Scene<'a> {
    pub(crate) report: &'a Report,
    pub(crate) picture: &'a Picture,
    pub(crate) clock: Clock<'a>,
    pub(crate) page: &'a Page<'a>,
}

impl Scene<'_> {
    /// Whether there is anything over time: a curve needs two samples.
    pub(crate) fn has_charts(&self) -> bool {
        self.picture.times().len() > 1 && !self.picture.charts.is_empty()
    }

    /// A time of the picture, as people read it.
    pub(crate) fn moment(&self, picture_s: f64) -> String {
        let offset_s = picture_s + self.picture.begin_s();
        let from = self.report.source.from;
        let at = from.and_then(|from| {
            let later = jiff::SignedDuration::try_from_secs_f64(offset_s).ok()?;
            from.checked_add(later).ok()
        });
        self.clock.moment(offset_s, at).unwrap_or_default()
    }
}
