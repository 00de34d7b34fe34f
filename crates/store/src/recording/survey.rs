//! Reads a long range by the minute where no condition could hold, and sample by sample elsewhere.

use timeline::Timeline;

use super::load::{HeadPart, Loading};
use super::screen::{HARMS, Plan, RollUpScreen, SAMPLES_MAX, Survey};
use super::{Loaded, Recording, Selection, is_there, steps};
use crate::head::{self, HeadFile};
use crate::segment::host::StoredSample;
use crate::segment::minutes::{
    Before, RollUpColumns, RollUpIndex, WantedSignals, minutes, of_samples,
};
use crate::segment::{Segment, names};

/// Head files that stay in memory between screening and reading: a recorder has one or two. Any further one is read
/// twice.
const HEADS_KEPT: usize = 2;

/// Bytes of roll-up indexes that stay in memory until their segments are read; those of a week of 30 services and 200
/// processes take half of it. Further indexes are read again.
const INDEX_BYTES_KEPT: usize = 32 << 20;

/// A part of a recording.
enum SurveyedPart<'a> {
    Segment(&'a Segment, Option<RollUpIndex>),
    /// The segment that was made from a head file since the recording was opened.
    Sealed(Box<Segment>),
    Head(&'a HeadFile, Option<Box<HeadPart>>),
    /// It has no content any more.
    Gone,
}

impl SurveyedPart<'_> {
    fn segment(&self) -> Option<&Segment> {
        match self {
            Self::Segment(segment, _) => Some(segment),
            Self::Sealed(segment) => Some(segment),
            Self::Head(..) | Self::Gone => None,
        }
    }
}

impl Recording {
    /// Loads a selection as [`load`](Self::load) does, but of a long range it reads those minutes sample by sample in
    /// which a condition could hold, with one minute on each side. If these exceed the memory limit, it takes the
    /// worst: by OOM kills, then memory pressure, then I/O pressure. [`Loaded::screened`] has the result.
    pub fn load_screened(
        &self,
        selection: Selection,
        screen: RollUpScreen<'_>,
        progress: &mut dyn FnMut(f64),
    ) -> Loaded {
        self.load_within(selection, screen, SAMPLES_MAX, progress)
    }

    /// Like [`load_screened`](Self::load_screened) with at most this many samples of opened minutes.
    pub(super) fn load_within(
        &self,
        selection: Selection,
        mut screen: RollUpScreen<'_>,
        most: usize,
        progress: &mut dyn FnMut(f64),
    ) -> Loaded {
        let segments = self.wanted(selection);
        if !self.is_by_minute(selection, &segments) {
            return self.load(selection, progress);
        }
        let window = (selection.since, selection.until);
        let mut loading = Loading::new(window, true, &self.problems, segments.iter().copied());
        let parts = self.in_order(segments);
        let mut done = steps(2 * parts.len(), progress);
        let (parts, plan) = self.survey(parts, &mut loading, &mut screen, most, &mut done);
        let of_segments =
            parts.iter().enumerate().filter_map(|(number, part)| Some((number, part.segment()?)));
        loading.strides.choose_opened(&plan, of_segments, &mut loading.losses);
        for (number, part) in parts.into_iter().enumerate() {
            self.read_part(part, plan.part(number), &mut loading);
            done();
        }
        let mut screened = plan.screened;
        screened.opened -= loading.losses.not_opened.min(screened.opened);
        loading.losses.unopened(screened.unopened);
        loading.losses.finish(&loading.timeline);
        Loaded { screened: Some(screened), ..self.loaded(loading, selection) }
    }

    fn read_part(
        &self,
        part: SurveyedPart<'_>,
        plan: &[super::screen::Take],
        loading: &mut Loading,
    ) {
        match part {
            SurveyedPart::Head(_, Some(part)) => loading.part(&part, plan),
            SurveyedPart::Head(file, None) => {
                let window = loading.window();
                // Its problems were already reported by screening.
                match self.head_or_segment(file, window, &mut Vec::new()) {
                    Some(Ok(part)) => loading.part(&part, plan),
                    Some(Err(segment)) => loading.segment(&segment, None, plan),
                    None => {}
                }
            }
            // A missing segment was dropped by retention since the recording was opened.
            SurveyedPart::Segment(segment, index) if is_there(&segment.path) => {
                loading.segment(segment, index, plan);
            }
            SurveyedPart::Sealed(segment) if is_there(&segment.path) => {
                loading.segment(&segment, None, plan);
            }
            SurveyedPart::Segment(..) | SurveyedPart::Sealed(_) | SurveyedPart::Gone => {}
        }
    }

    /// Screens all parts.
    fn survey<'a>(
        &'a self,
        parts: Vec<Result<&'a Segment, &'a HeadFile>>,
        loading: &mut Loading,
        screen: &mut RollUpScreen<'_>,
        most: usize,
        done: &mut dyn FnMut(),
    ) -> (Vec<SurveyedPart<'a>>, Plan) {
        let signals = screen.signals.iter().copied();
        let mut looking = Screening {
            wanted: WantedSignals::new(signals.chain(HARMS)),
            window: loading.window(),
            survey: Survey::default(),
            before: Before::default(),
            columns: RollUpColumns::default(),
            screen,
            problems: &mut loading.losses.problems,
        };
        let (mut heads_read, mut room) = (0, INDEX_BYTES_KEPT);
        let mut surveyed = Vec::with_capacity(parts.len());
        for (number, part) in parts.iter().enumerate() {
            let is_before_head = matches!(parts.get(number + 1), Some(Err(_)));
            surveyed.push(match part {
                Ok(segment) => {
                    let index = looking
                        .segment(segment, is_before_head)
                        .filter(|index| index.bytes() <= room);
                    room -= index.as_ref().map_or(0, RollUpIndex::bytes);
                    SurveyedPart::Segment(segment, index)
                }
                Err(file) => match self.head_or_segment(file, looking.window, looking.problems) {
                    Some(Ok(part)) => {
                        looking.head(&part.timeline);
                        heads_read += 1;
                        let part = (heads_read <= HEADS_KEPT).then(|| Box::new(part));
                        SurveyedPart::Head(file, part)
                    }
                    Some(Err(segment)) => {
                        looking.segment(&segment, is_before_head);
                        SurveyedPart::Sealed(Box::new(segment))
                    }
                    None => {
                        looking.survey.pass();
                        SurveyedPart::Gone
                    }
                },
            });
            done();
        }
        (surveyed, looking.survey.plan(most))
    }
}

/// The state of screening a recording.
struct Screening<'a, 'b> {
    wanted: WantedSignals,
    window: head::Window,
    survey: Survey,
    /// The end of the previous part.
    before: Before,
    columns: RollUpColumns,
    screen: &'a mut RollUpScreen<'b>,
    problems: &'a mut Vec<String>,
}

impl Screening<'_, '_> {
    /// Screens a segment. Returns the index of its roll-ups.
    fn segment(&mut self, segment: &Segment, is_before_head: bool) -> Option<RollUpIndex> {
        let minutes = match segment.minutes() {
            Ok(minutes) => minutes,
            Err(error) => {
                self.lost(segment, &error);
                return None;
            }
        };
        let rolled = minutes.roll_ups(&self.wanted, self.before.last(), &mut self.columns);
        match rolled {
            Ok(rolled) => {
                let samples = segment.samples().unwrap_or(60 * rolled.len());
                let each = samples.div_ceil(rolled.len().max(1));
                self.survey.add(&rolled, each, self.window, self.screen);
            }
            Err(error) => {
                self.lost(segment, &error);
                return None;
            }
        }
        // A head file that continues from here needs the last value of each counter.
        self.before = if is_before_head {
            minutes.end()
        } else {
            Before::after(minutes.taken().last().copied())
        };
        Some(minutes.into_index())
    }

    /// Reports that a segment was not screened; its damage is reported when it is read.
    fn lost(&mut self, segment: &Segment, error: &str) {
        self.survey.pass();
        self.before = Before::default();
        if is_there(&segment.path) {
            let name = segment.name();
            self.problems.push(format!(
                "{name}/{}: {error}; problems shorter than a minute may be missed in it",
                names::MINUTES
            ));
        }
    }

    fn head(&mut self, timeline: &Timeline) {
        let taken = StoredSample::all(timeline);
        let rolled = of_samples(timeline, &taken, &self.before, &self.wanted);
        let each = taken.len().div_ceil(minutes(&taken).len().max(1));
        self.survey.add(&rolled, each, self.window, self.screen);
        self.before = Before::from_timeline(timeline, &taken);
    }
}

#[cfg(test)]
mod tests;
