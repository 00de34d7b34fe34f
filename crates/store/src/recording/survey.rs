//! A long range, read by the minute where nothing could hold and sample by sample elsewhere.

use timeline::Timeline;

use super::load::Loading;
use super::screen::{HARMS, MOST_SAMPLES, Plan, Screen, Survey};
use super::{Loaded, Recording, Selection, is_there, steps};
use crate::head::{self, HeadFile};
use crate::minutes::{Before, Columns, Index, Signals, minutes, of_samples};
use crate::segment::host::Taken;
use crate::segment::{Segment, names};

/// Head files that are kept in memory from the look over them until they are read: a recorder has one or two. Of more,
/// which none has sealed, each is read twice.
const HEADS_KEPT: usize = 2;

/// Bytes of indexes of roll-ups that are kept until their segments are read; those of a week of 30 services and 200 processes take
/// half of it. The others are read again.
const INDEX_BYTES_KEPT: usize = 32 << 20;

/// A part of a recording.
enum Part<'a> {
    Segment(&'a Segment, Option<Index>),
    /// What a head file has become since the recording was opened.
    Sealed(Box<Segment>),
    Head(&'a HeadFile, Option<Box<Timeline>>),
    /// There is nothing in it any more.
    Gone,
}

impl Part<'_> {
    fn segment(&self) -> Option<&Segment> {
        match self {
            Self::Segment(segment, _) => Some(segment),
            Self::Sealed(segment) => Some(segment),
            Self::Head(..) | Self::Gone => None,
        }
    }
}

impl Recording {
    /// Reads a part as [`load`](Self::load) does, and of a range that is too long to be read sample by sample all those minutes
    /// sample by sample in which something could hold, with one minute on each side. Where these are more than are held at once,
    /// the worst: by kills, then memory pressure, then I/O pressure. [`Loaded::screened`] tells what came of it.
    pub fn load_screened(
        &self,
        selection: Selection,
        screen: Screen<'_>,
        progress: &mut dyn FnMut(f64),
    ) -> Loaded {
        self.load_within(selection, screen, MOST_SAMPLES, progress)
    }

    /// The same with room for so many samples of minutes that are opened.
    pub(super) fn load_within(
        &self,
        selection: Selection,
        mut screen: Screen<'_>,
        most: usize,
        progress: &mut dyn FnMut(f64),
    ) -> Loaded {
        let segments = self.wanted(selection);
        if !self.is_by_minute(selection, &segments) {
            return self.load(selection, progress);
        }
        let mut loading = Loading::new(selection.since, selection.until, true);
        loading.problems.clone_from(&self.problems);
        loading.make_room(segments.iter().copied());
        let parts = self.in_order(segments);
        let mut done = steps(2 * parts.len(), progress);
        let (parts, plan) = self.survey(parts, &mut loading, &mut screen, most, &mut done);
        let of_segments = parts.iter().enumerate();
        let of_segments = of_segments.filter_map(|(number, part)| Some((number, part.segment()?)));
        loading.make_room_for(&plan, of_segments);
        for (number, part) in parts.into_iter().enumerate() {
            self.read_part(part, plan.part(number), &mut loading);
            done();
        }
        let mut screened = plan.screened;
        screened.opened -= loading.not_opened.min(screened.opened);
        loading.say_unopened(screened.unopened);
        loading.finish();
        Loaded {
            screened: Some(screened),
            ..self.loaded(loading, selection)
        }
    }

    fn read_part(&self, part: Part<'_>, plan: &[super::screen::Take], loading: &mut Loading) {
        match part {
            Part::Head(_, Some(timeline)) => loading.part(&timeline, plan),
            Part::Head(file, None) => {
                let window = loading.window();
                // What is wrong with it was said when it was looked over.
                match self.head_or_segment(file, window, &mut Vec::new()) {
                    Some(Ok(timeline)) => loading.part(&timeline, plan),
                    Some(Err(segment)) => loading.segment(&segment, None, plan),
                    None => {}
                }
            }
            // One that is not there was dropped since the recording was opened, as the oldest.
            Part::Segment(segment, index) if is_there(&segment.path) => {
                loading.segment(segment, index, plan);
            }
            Part::Sealed(segment) if is_there(&segment.path) => {
                loading.segment(&segment, None, plan);
            }
            Part::Segment(..) | Part::Sealed(_) | Part::Gone => {}
        }
    }

    /// Looks over all parts.
    fn survey<'a>(
        &'a self,
        parts: Vec<Result<&'a Segment, &'a HeadFile>>,
        loading: &mut Loading,
        screen: &mut Screen<'_>,
        most: usize,
        done: &mut dyn FnMut(),
    ) -> (Vec<Part<'a>>, Plan) {
        let signals = screen.signals.iter().copied();
        let mut looking = Looking {
            wanted: Signals::new(signals.chain(HARMS)),
            window: loading.window(),
            survey: Survey::default(),
            before: Before::default(),
            columns: Columns::default(),
            screen,
            problems: &mut loading.problems,
        };
        let (mut kept, mut room) = (0, INDEX_BYTES_KEPT);
        let mut surveyed = Vec::with_capacity(parts.len());
        for (number, part) in parts.iter().enumerate() {
            let is_before_head = matches!(parts.get(number + 1), Some(Err(_)));
            surveyed.push(match part {
                Ok(segment) => {
                    let index = looking.segment(segment, is_before_head);
                    let index = index.filter(|index| index.bytes() <= room);
                    room -= index.as_ref().map_or(0, Index::bytes);
                    Part::Segment(segment, index)
                }
                Err(file) => match self.head_or_segment(file, looking.window, looking.problems) {
                    Some(Ok(timeline)) => {
                        looking.head(&timeline);
                        kept += 1;
                        let timeline = (kept <= HEADS_KEPT).then(|| Box::new(timeline));
                        Part::Head(file, timeline)
                    }
                    Some(Err(segment)) => {
                        looking.segment(&segment, is_before_head);
                        Part::Sealed(Box::new(segment))
                    }
                    None => {
                        looking.survey.pass();
                        Part::Gone
                    }
                },
            });
            done();
        }
        (surveyed, looking.survey.plan(most))
    }
}

/// A recording being looked over.
struct Looking<'a, 'b> {
    wanted: Signals,
    window: head::Window,
    survey: Survey,
    /// How the part before ended.
    before: Before,
    columns: Columns,
    screen: &'a mut Screen<'b>,
    problems: &'a mut Vec<String>,
}

impl Looking<'_, '_> {
    /// Looks over a segment. Gives the index of its roll-ups.
    fn segment(&mut self, segment: &Segment, is_before_head: bool) -> Option<Index> {
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
        // Where what follows goes on from there, all counters are asked how they ended.
        self.before = match is_before_head {
            true => minutes.end(),
            false => Before::after(minutes.taken().last().copied()),
        };
        Some(minutes.into_index())
    }

    /// What cannot be looked over is told of when it is read; here that nobody looked.
    fn lost(&mut self, segment: &Segment, error: &str) {
        self.survey.pass();
        self.before = Before::default();
        if is_there(&segment.path) {
            let name = segment.name();
            self.problems.push(format!(
                "{name}/{}: {error}; what lasted less than a minute is not seen in it",
                names::MINUTES
            ));
        }
    }

    fn head(&mut self, timeline: &Timeline) {
        let taken = Taken::all(timeline);
        let rolled = of_samples(timeline, &taken, &self.before, &self.wanted);
        let each = taken.len().div_ceil(minutes(&taken).len().max(1));
        self.survey.add(&rolled, each, self.window, self.screen);
        self.before = Before::of(timeline, &taken);
    }
}

#[cfg(test)]
mod tests;
