//! What a log says of a timeline: kernel reports, messages about kills, and events that a recorder noted.

use std::sync::Arc;

use super::Timeline;
use super::reported::{EarlierReport, Noticed, Reported};
use crate::event::Event;
use crate::memory_budget::MemoryBudget;
use crate::repeats::RepeatIndex;

/// Reports, messages and events of a source, shared by the parts of a timeline.
#[derive(Debug, Clone, Default)]
pub(super) struct TimelineLog {
    pub(super) reports: Arc<Vec<Reported>>,
    /// Messages of programs about kills, in the order of the source.
    pub(super) notices: Arc<Vec<Noticed>>,
    /// Reports from before the first sample, in order.
    pub(super) earlier: Arc<Vec<EarlierReport>>,
    /// Bytes of the reports' texts.
    pub(super) report_bytes: usize,
    /// Events that a recorder noted in the whole source, in order.
    pub(super) recorder_events: Arc<Vec<Event>>,
    repeats: RepeatIndex,
}

impl TimelineLog {
    /// The log of a part, which is that of the whole.
    pub(super) fn of_part(&self) -> Self {
        Self {
            reports: self.reports.clone(),
            notices: self.notices.clone(),
            earlier: self.earlier.clone(),
            report_bytes: self.report_bytes,
            recorder_events: self.recorder_events.clone(),
            // It is filled again from the events when one is added.
            repeats: RepeatIndex::default(),
        }
    }
}

impl Timeline {
    /// Adds an event that a recorder noted, unless a recorder that was killed had already read it from the log.
    pub fn add_recorder_event(&mut self, event: Event) {
        if self.log.repeats.has(&event, &self.log.recorder_events) {
            return;
        }
        let texts = event.subject.len() + event.text.len() + event.report.len();
        if self.budget.takes(MemoryBudget::of_event(texts)) {
            Arc::make_mut(&mut self.log.recorder_events).push(event);
        } else {
            self.left_out.events += 1;
        }
    }

    /// Replaces all recorder events.
    pub fn set_recorder_events(&mut self, events: Vec<Event>) {
        self.log.recorder_events = Arc::new(events);
        self.log.repeats = RepeatIndex::default();
    }

    /// Events that a recorder noted, of the whole source.
    pub fn recorder_events(&self) -> &[Event] {
        &self.log.recorder_events
    }
}
