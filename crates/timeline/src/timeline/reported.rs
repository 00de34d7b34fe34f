//! Kernel reports of a timeline: each belongs to the sample that shows memory as it does, and has the log's own time. What
//! the log holds of before the first sample belongs to none, and keeps its time too.

use std::sync::Arc;

use units::{Span, WallClock};

use super::Timeline;
use crate::event::Event;
use crate::identity;
use crate::kernel_report::KernelReport;
use crate::sample::Stamp;

/// A kernel report and the sample that shows the host's memory as the report does.
#[derive(Debug, Clone)]
pub struct Reported {
    /// Index of the sample in the whole timeline.
    pub sample: usize,
    /// When, on the timeline's clock.
    pub at: Span,
    /// When, on the wall clock; `None` where the log does not tell.
    pub wall: Option<WallClock>,
    /// When, on all clocks: the log's time, or that of the sample where the log has none.
    pub stamp: Stamp,
    /// What the kernel said.
    pub report: KernelReport,
    /// Its lines as the log has them; `None` where they were too many to be kept.
    pub text: Option<Arc<str>>,
}

/// A kernel report of before the first sample: nothing is known of the host at that time.
#[derive(Debug, Clone)]
pub struct EarlierReport {
    /// When, on all clocks.
    pub stamp: Stamp,
    /// What the kernel said.
    pub report: KernelReport,
    /// Its lines as the log has them; `None` where they were too many to be kept.
    pub text: Option<Arc<str>>,
}

impl Timeline {
    /// Texts of kernel reports are kept up to this, as much as a text has at most.
    const MOST_REPORT_BYTES: usize = 16 << 20;

    /// Notes a kernel report that belongs to the last sample, with its lines. Beyond a bound for all of them the lines
    /// are not kept.
    pub fn report(&mut self, report: KernelReport, text: Option<Arc<str>>) {
        if let Some(last) = self.len().checked_sub(1) {
            self.report_at(last, report, text);
        }
    }

    /// Notes a kernel report that belongs to an earlier sample, as [`report`](Self::report) does for the last one.
    pub fn report_at(&mut self, index: usize, report: KernelReport, text: Option<Arc<str>>) {
        if let Some(stamp) = self.stamp(index) {
            self.report_when(index, stamp, report, text);
        }
    }

    /// The same of a report whose own time is known: the sample that shows what it says may be of a minute later.
    pub fn report_when(
        &mut self,
        index: usize,
        stamp: Stamp,
        report: KernelReport,
        text: Option<Arc<str>>,
    ) {
        let Some(sample) = self.stamp(index) else {
            return;
        };
        let reported = Reported {
            sample: self.origin + index,
            at: self.time_of(stamp, sample, index),
            wall: stamp.wall.or(sample.wall),
            stamp,
            report,
            text: self.kept(text),
        };
        let place = self
            .reports
            .partition_point(|known| known.sample <= reported.sample);
        Arc::make_mut(&mut self.reports).insert(place, reported);
    }

    /// Notes a kernel report of before the first sample, with its own time.
    pub fn report_earlier(&mut self, stamp: Stamp, report: KernelReport, text: Option<Arc<str>>) {
        let text = self.kept(text);
        let order = |stamp: Stamp| (stamp.wall, stamp.boot);
        let place = self
            .earlier
            .partition_point(|known| order(known.stamp) <= order(stamp));
        let report = EarlierReport {
            stamp,
            report,
            text,
        };
        Arc::make_mut(&mut self.earlier).insert(place, report);
    }

    /// Notes a report by its own time: on the first sample that is not earlier, else on the last; before the first sample as
    /// an earlier one. One that is known already is passed over. Gives the sample that it belongs to now.
    pub fn report_by_time(
        &mut self,
        stamp: Stamp,
        report: KernelReport,
        text: Option<Arc<str>>,
    ) -> Option<usize> {
        if self.knows(&report, stamp) {
            return None;
        }
        match self.sample_after(stamp) {
            Some(index) => {
                self.report_when(index, stamp, report, text);
                Some(index)
            }
            None => {
                self.report_earlier(stamp, report, text);
                None
            }
        }
    }

    /// The first sample at a time or after it, else the last one; `None` for what was before all of them.
    pub fn sample_after(&self, stamp: Stamp) -> Option<usize> {
        let at = self.nanos_at(stamp)?;
        let nanos = |time: &Span| i128::from(time.as_nanos());
        if self.times.first().is_none_or(|first| at < nanos(first)) {
            return None;
        }
        let index = self.times.partition_point(|time| nanos(time) < at);
        Some(index.min(self.len() - 1))
    }

    fn knows(&self, report: &KernelReport, stamp: Stamp) -> bool {
        let own = self.reports.iter().map(|it| (&it.report, it.stamp));
        let earlier = self.earlier.iter().map(|it| (&it.report, it.stamp));
        own.chain(earlier)
            .any(|known| identity::is_one(known, (report, stamp)))
    }

    fn kept(&mut self, text: Option<Arc<str>>) -> Option<Arc<str>> {
        self.report_bytes += text.as_ref().map_or(0, |text| text.len());
        text.filter(|_| self.report_bytes <= Self::MOST_REPORT_BYTES)
    }

    /// A report's time on the timeline's clock: as far off its sample's as the wall clock says.
    fn time_of(&self, stamp: Stamp, sample: Stamp, index: usize) -> Span {
        let time = self.times[index];
        let Some((from, to)) = sample.wall.zip(stamp.wall) else {
            return time;
        };
        let apart = Span::from_nanos(from.unix_nanos().abs_diff(to.unix_nanos()));
        match to > from {
            true => time.plus(apart),
            false => time.saturating_sub(apart),
        }
    }

    /// Kernel reports of this stretch of time.
    pub fn reports(&self) -> impl Iterator<Item = &Reported> {
        let end = self.origin + self.len();
        let first = self.reports.partition_point(|r| r.sample < self.origin);
        self.reports[first..]
            .iter()
            .take_while(move |r| r.sample < end)
    }

    /// All kernel reports of the source, of other stretches too: its history. Those of before its first sample are not
    /// among them.
    pub fn all_reports(&self) -> &[Reported] {
        &self.reports
    }

    /// Kernel reports of before the source's first sample, in order of time.
    pub fn earlier_reports(&self) -> &[EarlierReport] {
        &self.earlier
    }

    /// Index in this timeline of the sample that a report belongs to.
    pub fn sample_of(&self, reported: &Reported) -> Option<usize> {
        let index = reported.sample.checked_sub(self.origin)?;
        (index < self.len()).then_some(index)
    }

    /// Whether a recorder noted a report: then the note has its time, and the kernel's lines as they were written.
    pub fn is_noted(&self, reported: &Reported) -> bool {
        let noted = self.recorder_events.iter();
        noted
            .filter(|note| !note.report.is_empty())
            .any(|note| note.is_of(&reported.report, reported.stamp))
    }
}

impl Event {
    /// Whether it tells of a kernel report that was written at that time.
    pub fn is_of(&self, report: &KernelReport, written: Stamp) -> bool {
        identity::is_noted((report, written), self)
    }
}
