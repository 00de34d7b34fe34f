//! Kernel reports and kill notices of a timeline. Each belongs to the sample that shows memory as the report does, and has the log's
//! own time. Reports from before the first sample belong to no sample.

use std::sync::Arc;

use units::{Span, WallClock};

use super::Timeline;
use crate::event::Event;
use crate::identity;
use crate::kernel_report::KernelReport;
use crate::kill_notice::KillNotice;
use crate::memory_budget::MemoryBudget;
use crate::sample::Stamp;

/// A kernel report and the sample that shows the host's memory as the report does.
#[derive(Debug, Clone)]
pub struct Reported {
    /// Index of the sample in the whole timeline.
    pub sample: usize,
    /// Its time on the timeline's clock.
    pub at: Span,
    /// Its time on the wall clock; `None` where unknown.
    pub wall: Option<WallClock>,
    /// Its time on all clocks: that of the log, or that of the sample where the log has none.
    pub stamp: Stamp,
    /// The kernel's report.
    pub report: KernelReport,
    /// Its lines in the log; `None` beyond the bound of memory.
    pub text: Option<Arc<str>>,
}

/// A program's message about a kill, and the sample that it stands with.
#[derive(Debug, Clone)]
pub struct Noticed {
    /// Index of the sample in the whole timeline.
    pub sample: usize,
    /// The message.
    pub notice: KillNotice,
}

/// A kernel report from before the first sample.
#[derive(Debug, Clone)]
pub struct EarlierReport {
    /// Its time on all clocks.
    pub stamp: Stamp,
    /// The kernel's report.
    pub report: KernelReport,
    /// Its lines in the log; `None` beyond the bound of memory.
    pub text: Option<Arc<str>>,
}

impl Timeline {
    /// Texts of kernel reports are stored up to this total size.
    const REPORT_BYTES_MAX: usize = 16 << 20;

    /// Adds a kernel report of the last sample, with its lines; the lines are dropped beyond a bound for all reports.
    pub fn report(&mut self, report: KernelReport, text: Option<Arc<str>>) {
        if let Some(last) = self.len().checked_sub(1) {
            self.report_at(last, report, text);
        }
    }

    /// Adds a kernel report of an earlier sample, as [`report`](Self::report) does for the last one.
    pub fn report_at(&mut self, index: usize, report: KernelReport, text: Option<Arc<str>>) {
        if let Some(stamp) = self.stamp(index) {
            self.report_when(index, stamp, report, text);
        }
    }

    /// Adds a report with its own time: its sample may be up to a minute later.
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
        if !self.has_room_for(text.as_deref()) {
            return;
        }
        let reported = Reported {
            sample: self.origin + index,
            at: self.time_of(stamp, sample, index),
            wall: stamp.wall.or(sample.wall),
            stamp,
            report,
            text: self.within_bound(text),
        };
        let place = self.log.reports.partition_point(|known| known.sample <= reported.sample);
        Arc::make_mut(&mut self.log.reports).insert(place, reported);
    }

    /// Adds a kernel report from before the first sample.
    pub fn report_earlier(&mut self, stamp: Stamp, report: KernelReport, text: Option<Arc<str>>) {
        if !self.has_room_for(text.as_deref()) {
            return;
        }
        let text = self.within_bound(text);
        let order = |stamp: Stamp| (stamp.wall, stamp.boot);
        let place = self.log.earlier.partition_point(|known| order(known.stamp) <= order(stamp));
        let report = EarlierReport { stamp, report, text };
        Arc::make_mut(&mut self.log.earlier).insert(place, report);
    }

    /// Adds a report by its own time: to the first sample at or after it, or else to the last sample; a report from
    /// before the first sample as an earlier report. A known report is skipped. Returns the sample that it was added
    /// to.
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

    /// The first sample at or after a time, or else the last sample; `None` for a time before all samples.
    pub fn sample_after(&self, stamp: Stamp) -> Option<usize> {
        let at = self.nanos_at(stamp)?;
        let nanos = |time: &Span| i128::from(time.as_nanos());
        if self.clock.times.first().is_none_or(|first| at < nanos(first)) {
            return None;
        }
        let index = self.clock.times.partition_point(|time| nanos(time) < at);
        Some(index.min(self.len() - 1))
    }

    fn knows(&self, report: &KernelReport, stamp: Stamp) -> bool {
        let reports = self.log.reports.iter().map(|known| (&known.report, known.stamp));
        let earlier = self.log.earlier.iter().map(|known| (&known.report, known.stamp));
        reports.chain(earlier).any(|known| identity::is_same_report(known, (report, stamp)))
    }

    /// Takes the memory of a report with these lines, or counts it as left out.
    fn has_room_for(&mut self, lines: Option<&str>) -> bool {
        let lines = lines.map_or(0, str::len);
        let has_room = self.budget.takes(MemoryBudget::of_report(lines));
        self.left_out.reports += usize::from(!has_room);
        has_room
    }

    fn within_bound(&mut self, text: Option<Arc<str>>) -> Option<Arc<str>> {
        self.log.report_bytes += text.as_ref().map_or(0, |text| text.len());
        text.filter(|_| self.log.report_bytes <= Self::REPORT_BYTES_MAX)
    }

    /// A report's time on the timeline's clock: its distance from the sample is that of the wall clocks.
    fn time_of(&self, stamp: Stamp, sample: Stamp, index: usize) -> Span {
        let time = self.clock.times[index];
        let Some((from, to)) = sample.wall.zip(stamp.wall) else {
            return time;
        };
        let apart = Span::from_nanos(from.unix_nanos().abs_diff(to.unix_nanos()));
        if to > from { time.plus(apart) } else { time.saturating_sub(apart) }
    }

    /// At most 10,000 messages about kills; further ones are dropped.
    const NOTICES_MAX: usize = 10_000;

    /// Adds a program's message about a kill to the last sample.
    pub fn notice(&mut self, notice: KillNotice) {
        let last = self.len().checked_sub(1);
        if let Some(last) = last.filter(|_| self.log.notices.len() < Self::NOTICES_MAX) {
            let sample = self.origin + last;
            Arc::make_mut(&mut self.log.notices).push(Noticed { sample, notice });
        }
    }

    /// Messages about kills of this timeline's range.
    pub fn notices(&self) -> impl Iterator<Item = &Noticed> {
        let range = self.origin..self.origin + self.len();
        self.log.notices.iter().filter(move |noticed| range.contains(&noticed.sample))
    }

    /// Index in this timeline of the sample that a message stands with.
    pub fn index_of(&self, noticed: &Noticed) -> Option<usize> {
        let index = noticed.sample.checked_sub(self.origin)?;
        (index < self.len()).then_some(index)
    }

    /// Kernel reports of this timeline's range.
    pub fn reports(&self) -> impl Iterator<Item = &Reported> {
        let end = self.origin + self.len();
        let first = self.log.reports.partition_point(|r| r.sample < self.origin);
        self.log.reports[first..].iter().take_while(move |r| r.sample < end)
    }

    /// All kernel reports of the source, including those outside of this timeline, without those from before its first
    /// sample.
    pub fn all_reports(&self) -> &[Reported] {
        &self.log.reports
    }

    /// Kernel reports from before the source's first sample, in order of time.
    pub fn earlier_reports(&self) -> &[EarlierReport] {
        &self.log.earlier
    }

    /// Index in this timeline of the sample that a report belongs to.
    pub fn sample_of(&self, reported: &Reported) -> Option<usize> {
        let index = reported.sample.checked_sub(self.origin)?;
        (index < self.len()).then_some(index)
    }

    /// Whether a recorder's event describes this report: then the event has its time and the kernel's lines.
    pub fn is_noted(&self, reported: &Reported) -> bool {
        self.log
            .recorder_events
            .iter()
            .filter(|event| !event.report.is_empty())
            .any(|event| event.is_of(&reported.report, reported.stamp))
    }
}

impl Event {
    /// Whether it is the event of a kernel report that was written at this time.
    pub fn is_of(&self, report: &KernelReport, written: Stamp) -> bool {
        identity::is_same_as_event((report, written), self)
    }
}
