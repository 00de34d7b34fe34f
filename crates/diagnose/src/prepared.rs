//! What all rules share of a stretch of time, so that each does not make it anew: how long tasks waited, and wide windows.

use std::borrow::Cow;
use std::cell::RefCell;
use std::rc::Rc;

use timeline::Timeline;

use crate::evidence::Evidence;
use crate::incident::Waiting;

/// Shared by all rules.
#[derive(Debug)]
pub(crate) struct Prepared {
    pub(crate) waiting: Waiting,
    /// Parts of the timeline, the newest last. Incidents of several rules lie close together, and a window is cut from a
    /// part of minutes far more cheaply than from a week with all its processes.
    parts: RefCell<Vec<Rc<Part>>>,
}

/// The samples from one to before another.
#[derive(Debug)]
struct Part {
    first: usize,
    end: usize,
    timeline: Timeline,
}

impl Prepared {
    /// Samples on each side of a window that the next one may lie in.
    const AROUND: usize = 60;
    /// Parts that are kept: each holds megabytes where a host has thousands of processes.
    const MOST: usize = 2;
    /// A shorter timeline is cut as it is.
    const SHORT: usize = 600;

    pub(crate) fn of(cx: &Evidence<'_>) -> Self {
        Self {
            waiting: Waiting::of_host(cx),
            parts: RefCell::default(),
        }
    }

    /// The samples from `first` to before `end`.
    pub(crate) fn window<'a>(
        &self,
        timeline: &'a Timeline,
        first: usize,
        end: usize,
    ) -> Cow<'a, Timeline> {
        if first == 0 && end == timeline.len() {
            return Cow::Borrowed(timeline);
        }
        if timeline.len() <= Self::SHORT || end - first > Self::SHORT {
            return Cow::Owned(timeline.part(first, end));
        }
        let part = self.around(timeline, first, end);
        Cow::Owned(part.timeline.part(first - part.first, end - part.first))
    }

    /// A part that a window lies in.
    fn around(&self, timeline: &Timeline, first: usize, end: usize) -> Rc<Part> {
        let mut parts = self.parts.borrow_mut();
        let known = parts
            .iter()
            .find(|part| part.first <= first && end <= part.end);
        if let Some(part) = known {
            return Rc::clone(part);
        }
        let (first, end) = (
            first.saturating_sub(Self::AROUND),
            (end + Self::AROUND).min(timeline.len()),
        );
        let part = Rc::new(Part {
            first,
            end,
            timeline: timeline.part(first, end),
        });
        if parts.len() == Self::MOST {
            parts.remove(0);
        }
        parts.push(Rc::clone(&part));
        part
    }
}
