//! The verdict in words: what is wrong, and when it was if it is over.

use crate::clock::ReportClock;
use crate::model::{Level, Report};

/// The headline; if its finding is over, with its time and the state since.
pub(crate) fn headline(report: &Report, clock: &ReportClock<'_>) -> String {
    let since = match report.now {
        None => return report.headline.clone(),
        Some(Level::Ok) => "Since then memory has been enough.",
        Some(Level::Warning) => "That is over; what is wrong since is a warning.",
        Some(Level::Critical | Level::Unknown) => "",
    };
    let first = report.findings.first();
    let began = first.and_then(|finding| clock.moment(finding.from_s?, finding.from));
    match began {
        Some(began) => format!("At {began}: {} {since}", report.headline),
        None => format!("{} {since}", report.headline),
    }
}
