//! Which samples of a part are loaded, and where they stand in the timeline.

use timeline::{Entity, Timeline};
use units::WallClock;

use super::MINUTE;
use super::losses::Losses;
use super::screen::Take;
use super::strides::Strides;
use crate::head;
use crate::segment::host::StoredSample;
use crate::segment::minutes::{MinuteRange, MinutesFile, minutes};
use crate::segment::names;
use crate::segment::picks::SamplePicks;

/// Samples of a segment, with their indexes in the timeline.
pub(super) struct IndexedSamples<'a> {
    taken: &'a [StoredSample],
    /// `None` for samples that are not loaded. Samples of one minute may share an index.
    pub(super) places: Vec<Option<usize>>,
    /// For each sample of a long range, whether its minute is read sample by sample; empty if no minute is.
    opened: Vec<bool>,
}

impl IndexedSamples<'_> {
    /// Returns the selected reads of a kind of entity.
    pub(super) fn picks(&self, entity: Entity, strides: &Strides) -> SamplePicks {
        let mut wanted: Vec<Option<usize>> = vec![None; self.taken.len()];
        let strides = strides.of(entity);
        let mut reads = [0_usize; 2];
        let mut before: Option<(usize, usize)> = None;
        for (at, sample) in self.taken.iter().enumerate() {
            let Some(place) = self.places[at].filter(|_| sample.was_read(entity)) else {
                continue;
            };
            let is_opened = self.opened.get(at) == Some(&true);
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
        let is_partial = |place: usize| self.taken[place].was_read_in_part(entity);
        SamplePicks::of_table(wanted, is_partial)
    }
}

/// Which samples are loaded.
#[derive(Clone, Copy)]
pub(super) enum Placement<'a> {
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

/// Returns the minutes of a segment's samples, checked against its roll-ups.
pub(super) fn of_the_same(
    rolled: &MinutesFile,
    taken: &[StoredSample],
) -> Result<Vec<MinuteRange>, String> {
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
pub(super) struct WovenRanges {
    pub(super) of_roll_ups: Vec<(usize, usize)>,
    pub(super) of_samples: Vec<(usize, usize)>,
}

/// Splits placed samples: returns the ends of minutes that are read by roll-ups, and removes their samples.
pub(super) fn parted<'a>(
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

/// Changes the plan so that a minute cut by the window is read from samples, as a roll-up covers all of it.
pub(super) fn without_cut(
    plan: &[Take],
    ranges: &[MinuteRange],
    taken: &[StoredSample],
    window: head::Window,
) -> Vec<Take> {
    let take = |(take, minute): (&Take, &MinuteRange)| {
        let is_cut = !is_within(window, taken[minute.last].stamp.wall);
        match take {
            Take::RollUp if is_cut => Take::Last,
            take => *take,
        }
    };
    plan.iter().zip(ranges).map(take).collect()
}

/// Appends samples without readings to a timeline.
pub(super) struct Placing<'a> {
    pub(super) timeline: &'a mut Timeline,
    pub(super) window: head::Window,
    pub(super) losses: &'a mut Losses,
}

impl Placing<'_> {
    /// Appends samples without readings; of each minute only the selected ones.
    pub(super) fn place<'t>(
        &mut self,
        taken: &'t [StoredSample],
        how: Placement<'_>,
    ) -> IndexedSamples<'t> {
        let wanted: Vec<bool> =
            taken.iter().map(|sample| is_within(self.window, sample.stamp.wall)).collect();
        self.losses.undated += (taken.iter().zip(&wanted))
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
        if !append(self.timeline, sample) {
            self.losses.unexplained += 1;
        }
        self.timeline.len() - 1
    }
}
