//! What all rules share of a stretch of time, so that each does not make it anew: how long tasks waited, and wide windows.

use std::cell::RefCell;
use std::ops::Deref;
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
    /// The last window that was cut from a part: several rules ask for the same one after another.
    last: RefCell<Option<Rc<Part>>>,
}

/// The samples that a story is asked about.
pub(crate) enum Window<'a> {
    /// All of them.
    Whole(&'a Timeline),
    /// Some, asked for once.
    Own(Box<Timeline>),
    /// Some that others ask for too.
    Shared(Rc<Part>),
}

impl Deref for Window<'_> {
    type Target = Timeline;

    fn deref(&self) -> &Timeline {
        match self {
            Self::Whole(timeline) => timeline,
            Self::Own(timeline) => timeline,
            Self::Shared(part) => &part.timeline,
        }
    }
}

/// The samples from one to before another.
#[derive(Debug)]
pub(crate) struct Part {
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
            last: RefCell::default(),
        }
    }

    /// The samples from `first` to before `end`.
    pub(crate) fn window<'a>(
        &self,
        timeline: &'a Timeline,
        first: usize,
        end: usize,
    ) -> Window<'a> {
        if first == 0 && end == timeline.len() {
            return Window::Whole(timeline);
        }
        if timeline.len() <= Self::SHORT || end - first > Self::SHORT {
            return Window::Own(Box::new(timeline.part(first, end)));
        }
        let mut last = self.last.borrow_mut();
        let known = last.as_ref();
        if let Some(known) = known.filter(|it| (it.first, it.end) == (first, end)) {
            return Window::Shared(Rc::clone(known));
        }
        let around = self.around(timeline, first, end);
        let within = (first - around.first, end - around.first);
        let part = Rc::new(Part {
            first,
            end,
            timeline: around.timeline.part(within.0, within.1),
        });
        *last = Some(Rc::clone(&part));
        Window::Shared(part)
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
