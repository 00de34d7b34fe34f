//! Segments and head files become one timeline.

use timeline::{Entity, Timeline};
use units::{Count, WallClock};

use super::part;
use crate::head;
use crate::minutes::{BY_IMPORTANCE, Buffers, minutes};
use crate::segment::host::Taken;
use crate::segment::picks::Picks;
use crate::segment::table::Opened;
use crate::segment::{Kept, Segment, names};

/// Runs of entities' readings in memory at most, of 24 bytes each: with the host's own of a week by the minute, a load
/// stays below 200 MiB (`cargo bench --bench read`).
const ENTITY_RUNS: usize = 2_500_000;

/// A recording being read.
pub(super) struct Loading {
    pub(super) timeline: Timeline,
    pub(super) problems: Vec<String>,
    /// Noted events that belong to a sample: their places among [`Timeline::noted`], and of the samples.
    pub(super) reported: Vec<(usize, usize)>,
    since: Option<WallClock>,
    until: Option<WallClock>,
    by_minute: bool,
    /// For each of [`Entity::ALL`]: of how many reads one is taken.
    strides: [usize; Entity::ALL.len()],
    buffers: Buffers,
    /// Samples that begin anew without anything that says so, as a reboot with a clock that was set back does.
    unexplained: usize,
    undated: usize,
    /// Segments that had no room for all entities when they were written.
    crowded: usize,
}

/// Samples of a segment, with their places in the timeline.
struct Placed<'a> {
    taken: &'a [Taken],
    /// `None` where it is not wanted. Samples of one minute may share a place.
    places: Vec<Option<usize>>,
}

/// Whether a sample lies in a window; one without a wall clock lies in no part of the time.
pub(super) fn is_within((since, until): head::Window, wall: Option<WallClock>) -> bool {
    let Some(wall) = wall else {
        return since.is_none() && until.is_none();
    };
    since.is_none_or(|since| since <= wall) && until.is_none_or(|until| wall <= until)
}

/// Appends a sample without readings. Gives whether it follows the one before, or is known to be unrelated to it.
pub(super) fn append(timeline: &mut Timeline, sample: &Taken) -> bool {
    let follows = sample.is_unrelated || timeline.push_bare(sample.stamp).is_ok();
    if sample.is_unrelated || !follows {
        timeline.push_bare_unrelated(sample.stamp);
    }
    follows
}

/// The table that a segment's samples are read from, or its minutes.
fn table(by_minute: bool) -> &'static str {
    match by_minute {
        true => names::MINUTES,
        false => names::file_of(Entity::Host),
    }
}

/// What is read in place of the other, in words.
fn read_are(by_minute: bool) -> &'static str {
    match by_minute {
        true => "its roll-ups are read instead, one sample a minute",
        false => "its samples are read instead",
    }
}

impl Loading {
    pub(super) fn new(since: Option<WallClock>, until: Option<WallClock>, by_minute: bool) -> Self {
        Self {
            timeline: Timeline::default(),
            problems: Vec::new(),
            reported: Vec::new(),
            since,
            until,
            by_minute,
            strides: [1; Entity::ALL.len()],
            buffers: Buffers::default(),
            unexplained: 0,
            undated: 0,
            crowded: 0,
        }
    }

    /// From when until when.
    pub(super) fn window(&self) -> head::Window {
        (self.since, self.until)
    }

    /// Chooses how often tables are taken, so that all kinds fit: each gets half of what is left at most.
    pub(super) fn make_room<'a>(&mut self, segments: impl Iterator<Item = &'a Segment> + Clone) {
        let mut left = ENTITY_RUNS;
        for entity in BY_IMPORTANCE.into_iter().skip(1) {
            let manifests = segments
                .clone()
                .filter_map(|segment| segment.manifest.as_ref());
            let size: usize = manifests.map(|it| it.size(entity, self.by_minute)).sum();
            let stride = size.div_ceil((left / 2).max(1)).max(1);
            self.strides[entity as usize] = stride;
            left -= (size / stride).min(left);
            if stride > 1 {
                self.problems.push(format!(
                    "{} readings are more than are held at once ({} changes): one {} in {stride} is shown; a shorter range shows all",
                    entity.name(),
                    Count::new(u64::try_from(size).unwrap_or(u64::MAX)),
                    if self.by_minute { "minute" } else { "reading" },
                ));
            }
        }
    }

    /// Appends a segment.
    pub(super) fn segment(&mut self, segment: &Segment) {
        if segment.manifest.is_none() {
            self.problems.extend(segment.damage());
        }
        self.problems.extend(segment.lost());
        let before = self.problems.len();
        let Err(error) = self.read(segment, self.by_minute) else {
            return;
        };
        let (file, other) = (table(self.by_minute), table(!self.by_minute));
        let name = segment.name();
        let problem = match self.read(segment, !self.by_minute) {
            Ok(()) => format!("{name}/{file}: {error}; {}", read_are(!self.by_minute)),
            Err(reason) => {
                format!("{name}: all of it is lost; {file}: {error}; {other}: {reason}")
            }
        };
        // What the other way met with in turn comes after it.
        self.problems.insert(before, problem);
    }

    fn read(&mut self, segment: &Segment, by_minute: bool) -> Result<(), String> {
        match by_minute {
            true => self.rolled_up(segment),
            false => self.every_sample(segment),
        }
    }

    fn lost(&mut self, segment: &Segment, file: &str, error: &str, rest: &str) {
        let name = segment.name();
        self.problems
            .push(format!("{name}/{file}: {error}; {rest}"));
    }

    fn every_sample(&mut self, segment: &Segment) -> Result<(), String> {
        let host = segment.host()?;
        let placed = self.place(&host.taken, self.by_minute);
        let picks = self.picks(&placed, Entity::Host);
        if let Err(error) = host.read(&picks, &mut self.timeline) {
            let file = names::file_of(Entity::Host);
            self.lost(segment, file, &error, "the rest of its signals are lost");
        }
        self.tell(segment, &host.file);
        for entity in Entity::ALL.into_iter().skip(1) {
            let file = names::file_of(entity);
            // They may have been read and there were none.
            let picks = self.picks(&placed, entity);
            if picks.places().is_empty() || !segment.has(file) {
                continue;
            }
            if let Err(error) = segment.read(entity, &picks, &mut self.timeline) {
                let what = format!(
                    "its {} readings are lost, the other tables are kept",
                    entity.name()
                );
                self.lost(segment, file, &error, &what);
            }
        }
        self.events(segment, &placed.places);
        self.timeline.make_room();
        Ok(())
    }

    fn rolled_up(&mut self, segment: &Segment) -> Result<(), String> {
        let minutes = segment.minutes()?;
        self.buffers.clear();
        minutes.check(&mut self.buffers)?;
        let placed = self.place(minutes.taken(), false);
        self.tell(segment, minutes.file());
        let mut buffers = std::mem::take(&mut self.buffers);
        for entity in BY_IMPORTANCE {
            // They may have been read and there were none.
            let picks = self.picks(&placed, entity);
            let Some(kind) = minutes.kind(entity) else {
                continue;
            };
            if let Err(error) = minutes.read(kind, &picks, &mut self.timeline, &mut buffers) {
                let what = format!("its {} readings are lost", entity.name());
                self.lost(segment, names::MINUTES, &error, &what);
            }
        }
        self.buffers = buffers;
        self.events(segment, &[]);
        self.timeline.make_room();
        Ok(())
    }

    /// Takes what a segment says beside its tables, of which one is given.
    fn tell(&mut self, segment: &Segment, file: &Opened) {
        match segment.tell(file, &mut self.timeline) {
            Ok(cut) => self.crowded += usize::from(cut > 0),
            Err(error) => {
                let what = "what could not be read then is not known; its readings are all there";
                self.lost(segment, names::ABOUT, &error, what);
            }
        }
    }

    /// Appends what a head file holds.
    pub(super) fn part(&mut self, from: &Timeline) {
        let taken = Taken::all(from);
        let placed = self.place(&taken, self.by_minute);
        for entity in Entity::ALL {
            let picks = self.picks(&placed, entity);
            part::append(from, entity, &picks, &mut self.timeline);
        }
        self.timeline.make_room();
        for (file, why) in &from.absent {
            self.timeline.absent.insert(file, why.clone());
        }
        for (file, field, value) in from.unknown() {
            self.timeline.note_unknown(file, field.to_owned(), value);
        }
        for event in from.noted() {
            if self.wants(event.stamp.wall) {
                self.timeline.note(event.clone());
            }
        }
    }

    fn wants(&self, wall: Option<WallClock>) -> bool {
        is_within(self.window(), wall)
    }

    /// Appends samples without readings; of each minute only the last where they are to be thinned out.
    fn place<'a>(&mut self, taken: &'a [Taken], thin: bool) -> Placed<'a> {
        let mut places = vec![None; taken.len()];
        let wanted: Vec<bool> = taken.iter().map(|one| self.wants(one.stamp.wall)).collect();
        self.undated += (taken.iter().zip(&wanted))
            .filter(|(one, wanted)| one.stamp.wall.is_none() && !**wanted)
            .count();
        if thin {
            for minute in minutes(taken) {
                let within = minute.first..=minute.last;
                let Some(last) = within.clone().rev().find(|at| wanted[*at]) else {
                    continue;
                };
                let mut sample = taken[last];
                sample.is_unrelated = taken[minute.first].is_unrelated;
                let place = self.push(&sample);
                for at in within.filter(|at| wanted[*at]) {
                    places[at] = Some(place);
                }
            }
        } else {
            for at in (0..taken.len()).filter(|at| wanted[*at]) {
                places[at] = Some(self.push(&taken[at]));
            }
        }
        Placed { taken, places }
    }

    fn push(&mut self, sample: &Taken) -> usize {
        if !append(&mut self.timeline, sample) {
            self.unexplained += 1;
        }
        self.timeline.len() - 1
    }

    /// The reads of a kind of entity that are taken, which the timeline is told of.
    fn picks(&mut self, placed: &Placed<'_>, entity: Entity) -> Picks {
        let stride = self.strides[entity as usize];
        let mut wanted: Vec<Option<usize>> = vec![None; placed.taken.len()];
        let (mut before, mut reads): (Option<(usize, usize)>, usize) = (None, 0);
        for (at, sample) in placed.taken.iter().enumerate() {
            let Some(place) = placed.places[at].filter(|_| sample.was_read(entity)) else {
                continue;
            };
            match before.filter(|(_, other)| *other == place) {
                // The last read of a minute counts.
                Some((earlier, _)) => wanted[at] = wanted[earlier].take(),
                None => {
                    wanted[at] = reads.is_multiple_of(stride).then_some(place);
                    reads += 1;
                }
            }
            before = Some((at, place));
        }
        let picks = Picks::new(wanted);
        for place in picks.places() {
            self.timeline.mark_read(entity, *place);
        }
        picks
    }

    fn events(&mut self, segment: &Segment, places: &[Option<usize>]) {
        let (events, unknown) = match segment.events() {
            Ok(read) => read,
            Err(error) => {
                self.lost(segment, names::EVENTS, &error, "its events are lost");
                return;
            }
        };
        if unknown > 0 {
            let what = format!("events of kinds that this memtide does not know: {unknown}");
            self.lost(segment, names::EVENTS, &what, "a later one reads them");
        }
        for Kept { event, sample } in events {
            if !self.wants(event.stamp.wall) {
                continue;
            }
            let place = sample.and_then(|sample| places.get(sample).copied().flatten());
            if let Some(place) = place {
                self.reported.push((self.timeline.noted().len(), place));
            }
            self.timeline.note(event);
        }
    }

    /// Says what the whole lacks.
    pub(super) fn finish(&mut self) {
        if self.unexplained > 0 {
            self.problems.push(format!(
                "at {} places the recording begins anew with an earlier time, as after a reboot with a wrong clock; nothing is computed across them",
                self.unexplained
            ));
        }
        if self.undated > 0 {
            self.problems.push(format!(
                "{} samples have no wall clock and lie in no range of time; they are left out",
                self.undated
            ));
        }
        if self.crowded > 0 {
            self.problems.push(format!(
                "{} segments had no room for all processes, cgroups and other series when they were written: some are missing",
                self.crowded
            ));
        }
        let cut = self.timeline.entities_cut();
        if cut > 0 {
            self.problems.push(format!(
                "{cut} series of entities found no room in memory and are left out; a shorter range shows them"
            ));
        }
    }
}
