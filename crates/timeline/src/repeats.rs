//! Finds events that a recorder read again: after it was killed, the next one reads a part of the kernel's log again.
//!
//! Events are found by hashes of what must be equal, and by the boot clock, so that a log of many thousand messages costs
//! by its length. What is found is compared in full.

use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeMap, HashMap};
use std::hash::{Hash, Hasher};
use std::ops::RangeInclusive;

use units::Span;

use crate::event::{Event, EventKind};
use crate::identity::MAX_CLOCK_DRIFT;

/// The index of a list of events in the order in which they were read.
#[derive(Debug, Clone, Default)]
pub(crate) struct RepeatIndex {
    /// How many events of the list it covers.
    len: usize,
    /// Kills, by subject.
    kills: Places,
    /// Reports that a later one may repeat, by their text: kills, and all that a recorder read before the last one
    /// started.
    texts: Places,
    /// Other reports since the last recorder started: one process may fail to allocate many times while it runs.
    recent: Vec<usize>,
    #[cfg(test)]
    pub(crate) compared: usize,
}

/// Places in the list, by hash and by the boot clock in nanoseconds.
type Places = HashMap<u64, BTreeMap<u64, Vec<usize>>>;

/// By how many lines one text of a report may be longer than another: the kernel adds a line when the OOM reaper is done.
const LINES_APART: usize = 2;

impl RepeatIndex {
    /// Whether an event repeats one of the list; `all` is the list.
    pub(crate) fn has(&mut self, event: &Event, all: &[Event]) -> bool {
        if event.report.is_empty() {
            return false;
        }
        self.follow(all);
        let is_kill = event.kind == EventKind::OomKill;
        let mut candidates = Vec::new();
        if is_kill {
            take_near(&self.kills, subject_hash(event), event, &mut candidates);
        }
        for hash in text_hashes(event) {
            take_near(&self.texts, hash, event, &mut candidates);
        }
        candidates.into_iter().any(|at| {
            #[cfg(test)]
            {
                self.compared += 1;
            }
            if is_kill { event.is_same_kill(&all[at]) } else { event.has_same_text(&all[at]) }
        })
    }

    /// Covers the events that were added since the last call; all of them where the list is another one.
    fn follow(&mut self, all: &[Event]) {
        if self.len > all.len() {
            *self = Self::default();
        }
        for (at, event) in all.iter().enumerate().skip(self.len) {
            self.add(at, event, all);
        }
        self.len = all.len();
    }

    fn add(&mut self, at: usize, event: &Event, all: &[Event]) {
        if event.kind == EventKind::RecorderStarted {
            for at in std::mem::take(&mut self.recent) {
                self.add_text(at, &all[at]);
            }
        }
        // A kill may have no report: that it happened is known from a counter.
        if event.kind == EventKind::OomKill {
            put(&mut self.kills, subject_hash(event), event, at);
            self.add_text(at, event);
        } else if !event.report.is_empty() {
            self.recent.push(at);
        }
    }

    fn add_text(&mut self, at: usize, event: &Event) {
        for hash in text_hashes(event) {
            put(&mut self.texts, hash, event, at);
        }
    }
}

fn put(places: &mut Places, hash: u64, event: &Event, at: usize) {
    let by_time = places.entry(hash).or_default();
    by_time.entry(event.stamp.boot.as_nanos()).or_default().push(at);
}

/// Takes the places of events with a hash at about the same time after boot.
fn take_near(places: &Places, hash: u64, event: &Event, into: &mut Vec<usize>) {
    let near = places.get(&hash).map(|times| times.range(near(event.stamp.boot)));
    into.extend(near.into_iter().flatten().flat_map(|(_, at)| at));
}

fn near(boot: Span) -> RangeInclusive<u64> {
    let from = boot.saturating_sub(MAX_CLOCK_DRIFT);
    from.as_nanos()..=boot.plus(MAX_CLOCK_DRIFT).as_nanos()
}

fn subject_hash(event: &Event) -> u64 {
    let mut hasher = DefaultHasher::new();
    event.subject.hash(&mut hasher);
    hasher.finish()
}

/// Returns hashes of a report's text, and of what it was before its last lines were added. Of two reports one of which
/// is the beginning of the other, at least one hash is equal.
fn text_hashes(event: &Event) -> impl Iterator<Item = u64> + '_ {
    let texts = std::iter::successors(Some(event.report.as_str()), |text| {
        text.rsplit_once('\n').map(|(before, _)| before)
    });
    let texts = texts.take(1 + LINES_APART).filter(|text| !text.is_empty());
    texts.map(|text| {
        let mut hasher = DefaultHasher::new();
        (event.kind, &event.subject, text).hash(&mut hasher);
        hasher.finish()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Stamp, Timeline};

    fn event(kind: EventKind, subject: &str, second: u64, report: &str) -> Event {
        Event {
            stamp: Stamp { boot: Span::from_secs(second), ..Stamp::default() },
            kind,
            subject: subject.to_owned(),
            text: String::new(),
            report: report.to_owned(),
        }
    }

    /// So many kills, and so many failures of one process with the same text; everything is read twice, as after a
    /// recorder was killed. Returns how many events there are then, and how many were compared.
    fn read_twice(count: u64) -> (usize, usize) {
        let mut all = Vec::new();
        let mut index = RepeatIndex::default();
        for _ in 0..2 {
            all.push(event(EventKind::RecorderStarted, "", 0, ""));
            for number in 0..count {
                let killed =
                    event(EventKind::OomKill, &format!("hog ({number})"), number / 10, "Killed");
                let failed =
                    event(EventKind::AllocationFailure, "kswapd0 (40)", number / 10, "failure");
                for next in [killed, failed] {
                    if !index.has(&next, &all) {
                        all.push(next);
                    }
                }
            }
        }
        (all.len(), index.compared)
    }

    #[test]
    fn a_log_of_many_messages_costs_by_its_length() {
        let (few, compared_few) = read_twice(300);
        let (many, compared_many) = read_twice(3_000);
        assert_eq!((few, many), (2 * 300 + 2, 2 * 3_000 + 2));
        assert!(compared_many <= 11 * compared_few, "{compared_few} {compared_many}");
        assert!(compared_many <= 3 * many, "{compared_many}");
    }

    #[test]
    fn a_list_that_was_replaced_is_read_anew() {
        let mut timeline = Timeline::default();
        let kill = || event(EventKind::OomKill, "hog (7)", 10, "Killed");
        timeline.add_recorder_event(kill());
        timeline.add_recorder_event(kill());
        assert_eq!(timeline.recorder_events().len(), 1);
        timeline.set_recorder_events(Vec::new());
        timeline.add_recorder_event(kill());
        assert_eq!(timeline.recorder_events().len(), 1);
        let mut part = timeline.part(0, 0).alone();
        part.add_recorder_event(kill());
        assert_eq!(part.recorder_events().len(), 1);
    }
}
