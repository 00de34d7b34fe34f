//! Loads segments and head files into one timeline.

use std::path::PathBuf;

use timeline::{Entity, EventKind, Timeline};
use units::WallClock;

use super::losses::Losses;
use super::placement::{
    IndexedSamples, Placement, Placing, is_within, of_the_same, parted, without_cut,
};
use super::screen::Take;
use super::strides::Strides;
use super::woven::{self, ReadMode, SeparateRuns};
use super::{MINUTE, part};
use crate::head;
use crate::segment::host::StoredSample;
use crate::segment::minutes::{BY_IMPORTANCE, Buffers, MinuteRange, MinutesFile, RollUpIndex};
use crate::segment::picks::SamplePicks;
use crate::segment::{HostTable, KeptEvents, Segment, names};

/// The content of a head file.
pub(super) struct HeadPart {
    pub(super) timeline: Timeline,
    /// Its path, if its last frame is whole and no end: after a kill, or cut.
    pub(super) cut: Option<PathBuf>,
}

/// The state of loading a recording.
pub(super) struct Loading {
    pub(super) timeline: Timeline,
    pub(super) losses: Losses,
    /// Recorder's events that belong to a sample: index in [`Timeline::recorder_events`], index of the sample.
    pub(super) reported: Vec<(usize, usize)>,
    pub(super) strides: Strides,
    window: head::Window,
    by_minute: bool,
    buffers: Buffers,
    /// The head file before, if it has no end.
    cut: Option<PathBuf>,
}

const ONE_A_MINUTE: &str = "one sample a minute is read instead of every sample";

/// Returns the name of the table with a segment's minutes or samples.
fn table(by_minute: bool) -> &'static str {
    if by_minute { names::MINUTES } else { names::file_of(Entity::Host) }
}

/// Says in words which table is read in place of the other.
fn read_are(by_minute: bool) -> &'static str {
    if by_minute {
        "its roll-ups are read instead, one sample a minute"
    } else {
        "its samples are read instead"
    }
}

impl Loading {
    /// Begins to load these segments, with the `problems` that the recording has anyway.
    pub(super) fn new<'a>(
        window: head::Window,
        by_minute: bool,
        problems: &[String],
        segments: impl Iterator<Item = &'a Segment> + Clone,
    ) -> Self {
        let mut losses = Losses::new(problems);
        Self {
            timeline: Timeline::default(),
            strides: Strides::choose(segments, by_minute, &mut losses),
            losses,
            reported: Vec::new(),
            window,
            by_minute,
            buffers: Buffers::default(),
            cut: None,
        }
    }

    /// Returns the window.
    pub(super) fn window(&self) -> head::Window {
        self.window
    }

    /// Appends a segment. `index`: that of its roll-ups, if they were opened before; `plan`: how its minutes are read,
    /// if some of them are read sample by sample.
    pub(super) fn segment(&mut self, segment: &Segment, index: Option<RollUpIndex>, plan: &[Take]) {
        if self.timeline.is_full() {
            self.losses.parts_left_out += 1;
            return;
        }
        self.cut = None;
        if segment.manifest.is_none() {
            self.losses.problems.extend(segment.damage());
        }
        self.losses.problems.extend(segment.lost());
        let before = self.losses.problems.len();
        let read = if plan.is_empty() {
            self.read(segment, index, self.by_minute)
        } else {
            self.opened(segment, index, plan)
        };
        let Err(error) = read else {
            return;
        };
        let (file, other) = (table(self.by_minute), table(!self.by_minute));
        let name = segment.name();
        let problem = match self.read(segment, None, !self.by_minute) {
            Ok(()) => format!("{name}/{file}: {error}; {}", read_are(!self.by_minute)),
            Err(reason) => {
                format!("{name}: it cannot be read; {file}: {error}; {other}: {reason}")
            }
        };
        // The fallback's own problems come after this one.
        self.losses.problems.insert(before, problem);
    }

    fn read(
        &mut self,
        segment: &Segment,
        index: Option<RollUpIndex>,
        by_minute: bool,
    ) -> Result<(), String> {
        if by_minute { self.rolled_up(segment, index) } else { self.every_sample(segment) }
    }

    fn every_sample(&mut self, segment: &Segment) -> Result<(), String> {
        let host = segment.host()?;
        let how = if self.by_minute { Placement::ByMinute } else { Placement::Every };
        let placed = self.place(&host.taken, how);
        let picks = self.picks(&placed, Entity::Host);
        if let Err(error) = host.read(&picks, &mut self.timeline) {
            let file = names::file_of(Entity::Host);
            self.losses.of_file(segment, file, &error, "its other signals are missing");
        }
        self.load_about(segment);
        for entity in Entity::ALL.into_iter().skip(1) {
            let file = names::file_of(entity);
            // Marked as read even if no entity was found.
            let picks = self.picks(&placed, entity);
            if picks.places().is_empty() || !segment.has(file) {
                continue;
            }
            match segment.read(entity, &picks, &mut self.timeline) {
                Ok(wrong) => self.losses.wrong_rows(segment, file, wrong),
                Err(error) => {
                    let what = format!(
                        "its {} readings are missing, the other tables are read",
                        entity.name()
                    );
                    self.losses.of_file(segment, file, &error, &what);
                }
            }
        }
        self.events(segment, &placed.places);
        self.timeline.evict_ended();
        Ok(())
    }

    fn rolled_up(&mut self, segment: &Segment, index: Option<RollUpIndex>) -> Result<(), String> {
        let minutes = self.minutes(segment, index)?;
        self.roll_ups(segment, &minutes);
        Ok(())
    }

    /// Opens a segment's roll-ups and checks that they can be read.
    fn minutes(
        &mut self,
        segment: &Segment,
        index: Option<RollUpIndex>,
    ) -> Result<MinutesFile, String> {
        let minutes = segment.minutes_with(index)?;
        self.buffers.clear();
        minutes.check(&mut self.buffers)?;
        Ok(minutes)
    }

    fn roll_ups(&mut self, segment: &Segment, minutes: &MinutesFile) {
        self.timeline.set_resolution(Some(MINUTE));
        let placed = self.place(minutes.taken(), Placement::Every);
        self.timeline.set_resolution(None);
        self.load_about(segment);
        let mut buffers = std::mem::take(&mut self.buffers);
        for entity in BY_IMPORTANCE {
            // Marked as read even if no entity was found.
            let picks = self.picks(&placed, entity);
            let Some(kind) = minutes.kind(entity) else {
                continue;
            };
            if let Err(error) = minutes.read(kind, &picks, &mut self.timeline, &mut buffers) {
                let what = format!("its {} readings are lost", entity.name());
                self.losses.of_file(segment, names::MINUTES, &error, &what);
            }
        }
        self.buffers = buffers;
        self.events(segment, &[]);
        self.timeline.evict_ended();
    }

    /// Appends a segment with some minutes that are read sample by sample.
    fn opened(
        &mut self,
        segment: &Segment,
        index: Option<RollUpIndex>,
        plan: &[Take],
    ) -> Result<(), String> {
        let minutes = self.minutes(segment, index)?;
        let host = segment.host().and_then(|host| {
            let ranges = of_the_same(&minutes, &host.taken)?;
            Ok((host, ranges))
        });
        match host {
            Ok((host, ranges)) => self.both(segment, &minutes, &host, &ranges, plan),
            Err(error) => {
                let file = names::file_of(Entity::Host);
                self.losses.of_file(segment, file, &error, ONE_A_MINUTE);
                self.losses.not_opened += plan.iter().filter(|take| **take == Take::All).count();
                self.roll_ups(segment, &minutes);
            }
        }
        Ok(())
    }

    /// Appends some minutes from roll-ups and the others from samples.
    fn both(
        &mut self,
        segment: &Segment,
        minutes: &MinutesFile,
        host: &HostTable,
        ranges: &[MinuteRange],
        plan: &[Take],
    ) {
        let plan = without_cut(plan, ranges, &host.taken, self.window);
        let mut samples = self.place(&host.taken, Placement::Planned(&plan));
        let (ends, parts) = parted(minutes, ranges, &plan, &mut samples);
        self.load_about(segment);
        let mut buffers = std::mem::take(&mut self.buffers);
        for entity in BY_IMPORTANCE {
            let (rolled, opened) =
                (ends.picks(entity, &self.strides), samples.picks(entity, &self.strides));
            self.mark(entity, &rolled, &opened);
            let mut readings = SeparateRuns::default();
            if let Some(kind) = minutes.kind(entity)
                && let Err(error) = minutes.read(kind, &rolled, &mut readings, &mut buffers)
            {
                let what = format!("its {} readings are lost", entity.name());
                self.losses.of_file(segment, names::MINUTES, &error, &what);
            }
            let file = names::file_of(entity);
            let mut other = SeparateRuns::default();
            let read = match entity {
                Entity::Host => host.read(&opened, &mut other).map(|()| None),
                _ if opened.places().is_empty() || !segment.has(file) => Ok(None),
                _ => segment.read(entity, &opened, &mut other),
            };
            match read {
                Ok(wrong) => self.losses.wrong_rows(segment, file, wrong),
                Err(error) => self.losses.of_file(segment, file, &error, ONE_A_MINUTE),
            }
            let rolled = ReadMode { readings, picks: rolled, others: &parts.of_samples };
            let opened = ReadMode { readings: other, picks: opened, others: &parts.of_roll_ups };
            woven::append(entity, rolled, opened, &mut self.timeline);
        }
        self.buffers = buffers;
        self.events(segment, &samples.places);
        self.timeline.evict_ended();
    }

    /// Loads the segment's `about.json`.
    fn load_about(&mut self, segment: &Segment) {
        match segment.load_about_into(&mut self.timeline) {
            Ok(cut) => self.losses.lacking_entities += usize::from(cut > 0),
            Err(error) => {
                let what = "its list of unreadable files is missing; all readings are present";
                self.losses.of_file(segment, names::ABOUT, &error, what);
            }
        }
    }

    /// Appends the content of a head file; `plan` as for a segment.
    pub(super) fn part(&mut self, HeadPart { timeline: from, cut }: &HeadPart, plan: &[Take]) {
        if self.timeline.is_full() {
            self.losses.parts_left_out += 1;
            return;
        }
        if let Some(first) = from.stamp(0) {
            // A kill is noted by the next recorder with its first sample.
            let mut events = from.recorder_events().iter();
            let is_kill = events.any(|event| event.stamp == first && event.kind == EventKind::Gap);
            if let Some(path) = std::mem::replace(&mut self.cut, cut.clone())
                && !is_kill
            {
                self.losses.problems.push(format!("{}: its end is missing", path.display()));
            }
        }
        self.timeline.note_left_out(from.left_out());
        let taken = StoredSample::all(from);
        let how = match (self.by_minute, plan.is_empty()) {
            (false, _) => Placement::Every,
            (true, true) => Placement::ByMinute,
            (true, false) => Placement::Planned(plan),
        };
        let placed = self.place(&taken, how);
        for entity in Entity::ALL {
            let picks = self.picks(&placed, entity);
            part::append(from, entity, &picks, &mut self.timeline);
        }
        self.timeline.evict_ended();
        for (file, why) in &from.absent {
            self.timeline.absent.insert(file, why.clone());
        }
        for (file, field, value) in from.unknown() {
            self.timeline.note_unknown(file, field.to_owned(), value);
        }
        for event in from.recorder_events() {
            if self.wants(event.stamp.wall) {
                self.timeline.add_recorder_event(event.clone());
            }
        }
    }

    fn wants(&self, wall: Option<WallClock>) -> bool {
        is_within(self.window(), wall)
    }

    /// Appends samples without readings.
    fn place<'t>(&mut self, taken: &'t [StoredSample], how: Placement<'_>) -> IndexedSamples<'t> {
        let timeline = &mut self.timeline;
        Placing { timeline, window: self.window, losses: &mut self.losses }.place(taken, how)
    }

    /// Returns the selected reads of a kind of entity, and marks them in the timeline.
    fn picks(&mut self, placed: &IndexedSamples<'_>, entity: Entity) -> SamplePicks {
        let picks = placed.picks(entity, &self.strides);
        self.mark(entity, &picks, &SamplePicks::default());
        picks
    }

    /// Marks in the timeline when a kind of entity was read.
    fn mark(&mut self, entity: Entity, picks: &SamplePicks, others: &SamplePicks) {
        let mut places: Vec<(usize, bool)> = picks.reads().chain(others.reads()).collect();
        places.sort_unstable();
        for (place, is_partial) in places {
            if is_partial {
                self.timeline.mark_read_in_part(entity, place);
            } else {
                self.timeline.mark_read(entity, place);
            }
        }
    }

    fn events(&mut self, segment: &Segment, places: &[Option<usize>]) {
        let (events, unknown) = match segment.events() {
            Ok(read) => read,
            Err(error) => {
                self.losses.of_file(segment, names::EVENTS, &error, "its events are missing");
                return;
            }
        };
        if unknown > 0 {
            let what = format!("events of unknown kinds: {unknown}");
            self.losses.of_file(segment, names::EVENTS, &what, "a later memtide reads them");
        }
        for KeptEvents { event, sample } in events {
            if !self.wants(event.stamp.wall) {
                continue;
            }
            let place = sample.and_then(|sample| places.get(sample).copied().flatten());
            if let Some(place) = place {
                self.reported.push((self.timeline.recorder_events().len(), place));
            }
            self.timeline.add_recorder_event(event);
        }
    }
}
