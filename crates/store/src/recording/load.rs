//! Loads segments and head files into one timeline.

use timeline::{Entity, Timeline};
use units::{Count, WallClock};

use super::screen::{Plan, Take};
use super::woven::{self, ReadMode, SeparateRuns};
use super::{MINUTE, part};
use crate::head;
use crate::segment::host::StoredSample;
use crate::segment::minutes::{
    BY_IMPORTANCE, Buffers, MinuteRange, MinutesFile, RollUpIndex, minutes,
};
use crate::segment::picks::SamplePicks;
use crate::segment::{HostTable, KeptEvents, Segment, names};

/// The most runs of entities' readings in memory, of 16 bytes each: with a week of host readings by the minute, a load
/// stays below 200 MiB (`cargo bench --bench read`).
const ENTITY_RUNS: usize = 2_500_000;
/// The most runs of minutes of a long range that are read sample by sample.
const OPENED_RUNS: usize = 1_000_000;

/// The state of loading a recording.
pub(super) struct Loading {
    pub(super) timeline: Timeline,
    pub(super) problems: Vec<String>,
    /// Noted events that belong to a sample: index in [`Timeline::noted`], index of the sample.
    pub(super) reported: Vec<(usize, usize)>,
    since: Option<WallClock>,
    until: Option<WallClock>,
    by_minute: bool,
    /// For each of [`Entity::ALL`]: one of how many reads is loaded.
    strides: [usize; Entity::ALL.len()],
    /// The same for minutes of a long range that are read sample by sample.
    opened_strides: [usize; Entity::ALL.len()],
    buffers: Buffers,
    /// Out-of-order samples without a known reason, such as a reboot with a clock that was set back.
    unexplained: usize,
    undated: usize,
    /// Minutes that should be read sample by sample but could not.
    pub(super) not_opened: usize,
    /// Segments without some entities, which were dropped before they were written.
    lacking_entities: usize,
    /// Parts that found no room in memory.
    parts_left_out: usize,
}

/// Samples of a segment, with their indexes in the timeline.
struct IndexedSamples<'a> {
    taken: &'a [StoredSample],
    /// `None` for samples that are not loaded. Samples of one minute may share an index.
    places: Vec<Option<usize>>,
    /// For each sample of a long range, whether its minute is read sample by sample; empty if no minute is.
    opened: Vec<bool>,
}

/// Which samples are loaded.
#[derive(Clone, Copy)]
enum Placement<'a> {
    /// Every sample.
    Every,
    /// The last sample of each minute.
    ByMinute,
    /// Each minute as it is planned.
    Planned(&'a [Take]),
}

/// Whether a sample is within a window; one without a wall clock is only within the unbounded window.
pub(super) fn is_within((since, until): head::Window, wall: Option<WallClock>) -> bool {
    let Some(wall) = wall else {
        return since.is_none() && until.is_none();
    };
    since.is_none_or(|since| since <= wall) && until.is_none_or(|until| wall <= until)
}

/// Appends a sample without readings. Returns false if it is out of order without starting a segment.
pub(super) fn append(timeline: &mut Timeline, sample: &StoredSample) -> bool {
    let follows = sample.is_unrelated || timeline.push_stamp(sample.stamp).is_ok();
    if sample.is_unrelated || !follows {
        timeline.push_stamp_new_segment(sample.stamp);
    }
    follows
}

const ONE_A_MINUTE: &str = "one sample a minute is read instead of every sample";

/// Returns the minutes of a segment's samples, checked against its roll-ups.
fn of_the_same(rolled: &MinutesFile, taken: &[StoredSample]) -> Result<Vec<MinuteRange>, String> {
    let ranges = minutes(taken);
    let ends = ranges.iter().map(|minute| taken[minute.last].stamp);
    if ends.eq(rolled.taken().iter().map(|end| end.stamp)) {
        Ok(ranges)
    } else {
        Err(format!("its minutes differ from those of {}", names::MINUTES))
    }
}

/// The ranges of a timeline that are read by roll-ups, and those read by samples.
#[derive(Default)]
struct WovenRanges {
    of_roll_ups: Vec<(usize, usize)>,
    of_samples: Vec<(usize, usize)>,
}

/// Splits placed samples: returns the ends of minutes that are read by roll-ups, and removes their samples.
fn parted<'a>(
    minutes: &'a MinutesFile,
    ranges: &[MinuteRange],
    plan: &[Take],
    samples: &mut IndexedSamples<'_>,
) -> (IndexedSamples<'a>, WovenRanges) {
    let mut ends = IndexedSamples {
        taken: minutes.taken(),
        places: Vec::with_capacity(ranges.len()),
        opened: Vec::new(),
    };
    let mut parts = WovenRanges::default();
    let note = |part: &mut Vec<(usize, usize)>, place: usize| match part.last_mut() {
        Some(last) if last.1 + 1 == place => last.1 = place,
        _ => part.push((place, place)),
    };
    for (minute, take) in ranges.iter().zip(plan) {
        let within = &mut samples.places[minute.first..=minute.last];
        if *take == Take::RollUp {
            let place = within.last().copied().flatten();
            place.into_iter().for_each(|place| note(&mut parts.of_roll_ups, place));
            ends.places.push(place);
            within.fill(None);
        } else {
            let places = within.iter().flatten();
            places.for_each(|place| note(&mut parts.of_samples, *place));
            ends.places.push(None);
        }
    }
    (ends, parts)
}

/// Returns the last of some samples, and the last one in which each table was read, the whole table if there is one.
fn last_reads(taken: &[StoredSample], within: impl Iterator<Item = usize> + Clone) -> Vec<usize> {
    let last = |entity: Entity| {
        let reads = || within.clone().filter(|at| taken[*at].was_read(entity));
        let whole = reads().filter(|at| !taken[*at].was_read_in_part(entity));
        whole.last().or_else(|| reads().last())
    };
    let mut selected: Vec<usize> = Entity::ALL.into_iter().filter_map(last).collect();
    selected.extend(within.clone().last());
    selected.sort_unstable();
    selected.dedup();
    selected
}

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
    pub(super) fn new(since: Option<WallClock>, until: Option<WallClock>, by_minute: bool) -> Self {
        Self {
            timeline: Timeline::default(),
            problems: Vec::new(),
            reported: Vec::new(),
            since,
            until,
            by_minute,
            strides: [1; Entity::ALL.len()],
            opened_strides: [1; Entity::ALL.len()],
            buffers: Buffers::default(),
            unexplained: 0,
            undated: 0,
            not_opened: 0,
            lacking_entities: 0,
            parts_left_out: 0,
        }
    }

    /// Returns the window.
    pub(super) fn window(&self) -> head::Window {
        (self.since, self.until)
    }

    /// Chooses the stride of each table so that all kinds fit: each gets at most half of the remaining space.
    pub(super) fn choose_strides<'a>(
        &mut self,
        segments: impl Iterator<Item = &'a Segment> + Clone,
    ) {
        let mut left = ENTITY_RUNS;
        for entity in BY_IMPORTANCE.into_iter().skip(1) {
            let manifests = segments.clone().filter_map(|segment| segment.manifest.as_ref());
            let size: usize = manifests.map(|manifest| manifest.size(entity, self.by_minute)).sum();
            let stride = size.div_ceil((left / 2).max(1)).max(1);
            self.strides[entity as usize] = stride;
            left -= (size / stride).min(left);
            if stride > 1 {
                self.problems.push(format!(
                    "{} readings exceed the memory limit ({} changes): one {} in {stride} is \
                     shown; a shorter range shows all",
                    entity.name(),
                    Count::new(u64::try_from(size).unwrap_or(u64::MAX)),
                    if self.by_minute { "minute" } else { "reading" },
                ));
            }
        }
    }

    /// Chooses the stride of each table in minutes that are read sample by sample. `segments`: each with its number in
    /// the plan.
    pub(super) fn choose_opened_strides<'a>(
        &mut self,
        plan: &Plan,
        segments: impl Iterator<Item = (usize, &'a Segment)> + Clone,
    ) {
        let mut left = OPENED_RUNS;
        for entity in BY_IMPORTANCE.into_iter().skip(1) {
            let sizes = segments.clone().filter_map(|(number, segment)| {
                let size = segment.manifest.as_ref()?.size(entity, false);
                #[allow(
                    clippy::cast_precision_loss,
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss
                )] // an estimate
                let opened = (size as f64 * plan.share(number)) as usize;
                Some(opened)
            });
            let size: usize = sizes.sum();
            let stride = size.div_ceil((left / 2).max(1)).max(1);
            self.opened_strides[entity as usize] = stride;
            left -= (size / stride).min(left);
            if stride > 1 {
                self.problems.push(format!(
                    "in minutes that are read sample by sample, one reading in {stride} of each {} \
                     is shown to limit memory; a shorter range shows all",
                    entity.name(),
                ));
            }
        }
    }

    /// Appends a segment. `index`: that of its roll-ups, if they were opened before; `plan`: how its minutes are read,
    /// if some of them are read sample by sample.
    pub(super) fn segment(&mut self, segment: &Segment, index: Option<RollUpIndex>, plan: &[Take]) {
        if self.timeline.is_full() {
            self.parts_left_out += 1;
            return;
        }
        if segment.manifest.is_none() {
            self.problems.extend(segment.damage());
        }
        self.problems.extend(segment.lost());
        let before = self.problems.len();
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
        self.problems.insert(before, problem);
    }

    fn read(
        &mut self,
        segment: &Segment,
        index: Option<RollUpIndex>,
        by_minute: bool,
    ) -> Result<(), String> {
        if by_minute { self.rolled_up(segment, index) } else { self.every_sample(segment) }
    }

    fn lost(&mut self, segment: &Segment, file: &str, error: &str, rest: &str) {
        let name = segment.name();
        self.problems.push(format!("{name}/{file}: {error}; {rest}"));
    }

    fn wrong_rows(&mut self, segment: &Segment, file: &str, wrong: Option<String>) {
        if let Some(wrong) = wrong {
            self.lost(segment, file, &wrong, "their readings are missing, the other rows are read");
        }
    }

    fn every_sample(&mut self, segment: &Segment) -> Result<(), String> {
        let host = segment.host()?;
        let how = if self.by_minute { Placement::ByMinute } else { Placement::Every };
        let placed = self.place(&host.taken, how);
        let picks = self.picks(&placed, Entity::Host);
        if let Err(error) = host.read(&picks, &mut self.timeline) {
            let file = names::file_of(Entity::Host);
            self.lost(segment, file, &error, "its other signals are missing");
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
                Ok(wrong) => self.wrong_rows(segment, file, wrong),
                Err(error) => {
                    let what = format!(
                        "its {} readings are missing, the other tables are read",
                        entity.name()
                    );
                    self.lost(segment, file, &error, &what);
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
                self.lost(segment, names::MINUTES, &error, &what);
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
                self.lost(segment, file, &error, ONE_A_MINUTE);
                self.not_opened += plan.iter().filter(|take| **take == Take::All).count();
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
        let plan = self.without_cut(plan, ranges, &host.taken);
        let mut samples = self.place(&host.taken, Placement::Planned(&plan));
        let (ends, parts) = parted(minutes, ranges, &plan, &mut samples);
        self.load_about(segment);
        let mut buffers = std::mem::take(&mut self.buffers);
        for entity in BY_IMPORTANCE {
            let (rolled, opened) = (self.wanted(&ends, entity), self.wanted(&samples, entity));
            self.mark(entity, &rolled, &opened);
            let mut readings = SeparateRuns::default();
            if let Some(kind) = minutes.kind(entity)
                && let Err(error) = minutes.read(kind, &rolled, &mut readings, &mut buffers)
            {
                let what = format!("its {} readings are lost", entity.name());
                self.lost(segment, names::MINUTES, &error, &what);
            }
            let file = names::file_of(entity);
            let mut other = SeparateRuns::default();
            let read = match entity {
                Entity::Host => host.read(&opened, &mut other).map(|()| None),
                _ if opened.places().is_empty() || !segment.has(file) => Ok(None),
                _ => segment.read(entity, &opened, &mut other),
            };
            match read {
                Ok(wrong) => self.wrong_rows(segment, file, wrong),
                Err(error) => self.lost(segment, file, &error, ONE_A_MINUTE),
            }
            let rolled = ReadMode { readings, picks: rolled, others: &parts.of_samples };
            let opened = ReadMode { readings: other, picks: opened, others: &parts.of_roll_ups };
            woven::append(entity, rolled, opened, &mut self.timeline);
        }
        self.buffers = buffers;
        self.events(segment, &samples.places);
        self.timeline.evict_ended();
    }

    /// Changes the plan so that a minute cut by the window is read from samples, as a roll-up covers all of it.
    fn without_cut(
        &self,
        plan: &[Take],
        ranges: &[MinuteRange],
        taken: &[StoredSample],
    ) -> Vec<Take> {
        let take = |(take, minute): (&Take, &MinuteRange)| {
            let is_cut = !self.wants(taken[minute.last].stamp.wall);
            match take {
                Take::RollUp if is_cut => Take::Last,
                take => *take,
            }
        };
        plan.iter().zip(ranges).map(take).collect()
    }

    /// Loads the segment's `about.json`.
    fn load_about(&mut self, segment: &Segment) {
        match segment.load_about_into(&mut self.timeline) {
            Ok(cut) => self.lacking_entities += usize::from(cut > 0),
            Err(error) => {
                let what = "its list of unreadable files is missing; all readings are present";
                self.lost(segment, names::ABOUT, &error, what);
            }
        }
    }

    /// Appends the content of a head file; `plan` as for a segment.
    pub(super) fn part(&mut self, from: &Timeline, plan: &[Take]) {
        if self.timeline.is_full() {
            self.parts_left_out += 1;
            return;
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

    /// Appends samples without readings; of each minute only the selected ones.
    fn place<'a>(&mut self, taken: &'a [StoredSample], how: Placement<'_>) -> IndexedSamples<'a> {
        let wanted: Vec<bool> = taken.iter().map(|sample| self.wants(sample.stamp.wall)).collect();
        self.undated += (taken.iter().zip(&wanted))
            .filter(|(one, wanted)| one.stamp.wall.is_none() && !**wanted)
            .count();
        let mut placed =
            IndexedSamples { taken, places: vec![None; taken.len()], opened: Vec::new() };
        let plan = match how {
            Placement::Every => {
                for at in (0..taken.len()).filter(|at| wanted[*at]) {
                    placed.places[at] = Some(self.push(&taken[at]));
                }
                return placed;
            }
            Placement::ByMinute => &[],
            Placement::Planned(plan) => plan,
        };
        placed.opened.resize(taken.len(), false);
        for (number, minute) in minutes(taken).into_iter().enumerate() {
            let take = plan.get(number).copied().unwrap_or_default();
            self.place_minute(minute, take, &wanted, &mut placed);
        }
        self.timeline.set_resolution(None);
        placed
    }

    /// Appends the selected samples of a minute.
    fn place_minute(
        &mut self,
        minute: MinuteRange,
        take: Take,
        wanted: &[bool],
        placed: &mut IndexedSamples<'_>,
    ) {
        let within = (minute.first..=minute.last).filter(|at| wanted[*at]);
        let selected: Vec<usize> = match take {
            Take::All => within.clone().collect(),
            Take::RollUp => within.clone().next_back().into_iter().collect(),
            Take::Last => last_reads(placed.taken, within.clone()),
        };
        let thinned = (take != Take::All).then_some(MINUTE);
        self.timeline.set_resolution(thinned);
        let is_unrelated = placed.taken[minute.first].is_unrelated;
        for (number, at) in selected.into_iter().enumerate() {
            let mut sample = placed.taken[at];
            // A break before the minute is moved to its first selected sample.
            sample.is_unrelated |= number == 0 && is_unrelated;
            placed.places[at] = Some(self.push(&sample));
            placed.opened[at] = take != Take::RollUp;
        }
        if take == Take::RollUp {
            let place = within.clone().next_back().and_then(|last| placed.places[last]);
            within.for_each(|at| placed.places[at] = place);
        }
    }

    fn push(&mut self, sample: &StoredSample) -> usize {
        if !append(&mut self.timeline, sample) {
            self.unexplained += 1;
        }
        self.timeline.len() - 1
    }

    /// Returns the selected reads of a kind of entity, and marks them in the timeline.
    fn picks(&mut self, placed: &IndexedSamples<'_>, entity: Entity) -> SamplePicks {
        let picks = self.wanted(placed, entity);
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

    /// Returns the selected reads of a kind of entity.
    fn wanted(&self, placed: &IndexedSamples<'_>, entity: Entity) -> SamplePicks {
        let mut wanted: Vec<Option<usize>> = vec![None; placed.taken.len()];
        let strides = [self.strides, self.opened_strides].map(|all| all[entity as usize]);
        let mut reads = [0_usize; 2];
        let mut before: Option<(usize, usize)> = None;
        for (at, sample) in placed.taken.iter().enumerate() {
            let Some(place) = placed.places[at].filter(|_| sample.was_read(entity)) else {
                continue;
            };
            let is_opened = placed.opened.get(at) == Some(&true);
            let kind = usize::from(is_opened);
            let is_partial = sample.was_read_in_part(entity);
            match before.filter(|(_, other)| *other == place) {
                // Of the reads of a minute, the last one of the whole table counts.
                Some(_) if is_partial => continue,
                Some((earlier, _)) => wanted[at] = wanted[earlier].take(),
                // Where not all are shown, a read of some entities would take the place of one of all.
                None if is_partial && strides[kind] > 1 => continue,
                None => {
                    wanted[at] = reads[kind].is_multiple_of(strides[kind]).then_some(place);
                    reads[kind] += 1;
                }
            }
            before = Some((at, place));
        }
        let is_partial = |place: usize| placed.taken[place].was_read_in_part(entity);
        SamplePicks::of_table(wanted, is_partial)
    }

    fn events(&mut self, segment: &Segment, places: &[Option<usize>]) {
        let (events, unknown) = match segment.events() {
            Ok(read) => read,
            Err(error) => {
                self.lost(segment, names::EVENTS, &error, "its events are missing");
                return;
            }
        };
        if unknown > 0 {
            let what = format!("events of unknown kinds: {unknown}");
            self.lost(segment, names::EVENTS, &what, "a later memtide reads them");
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

    /// Reports that some suspicious minutes are not read sample by sample.
    pub(super) fn say_unopened(&mut self, minutes: usize) {
        if minutes > 0 {
            self.problems.push(format!(
                "{} minutes that may have problems are read by one sample each to limit memory; \
                 the worst are read in full, and a shorter range shows all",
                Count::new(u64::try_from(minutes).unwrap_or(u64::MAX))
            ));
        }
    }

    /// Reports what is missing in the result as a whole.
    pub(super) fn finish(&mut self) {
        if self.unexplained > 0 {
            self.problems.push(format!(
                "at {} places the recording continues with an earlier time, as after a reboot with \
                 a wrong clock; nothing is computed across them",
                self.unexplained
            ));
        }
        if self.undated > 0 {
            self.problems.push(format!(
                "{} samples have no wall clock and are in no range of time; they are left out",
                self.undated
            ));
        }
        if self.lacking_entities > 0 {
            self.problems.push(format!(
                "{} segments lack some processes, cgroups and other series: they exceeded the \
                 memory limit when they were written",
                self.lacking_entities
            ));
        }
        if self.parts_left_out > 0 {
            self.problems.push(format!(
                "only its first {} samples were read{}: {} later parts are left out; a shorter \
                 range shows them",
                Count::new(u64::try_from(self.timeline.len()).unwrap_or(u64::MAX)),
                self.timeline.why_full(),
                self.parts_left_out
            ));
        }
    }
}
