//! Screened reading is exact in the minutes that it opens, and equals reading by the minute elsewhere.

use std::collections::HashMap;
use std::path::Path;

use proptest::prelude::*;
use timeline::signals::{
    CGROUP_CURRENT, CGROUP_EVENTS_MAX, MEM_FREE, PROC_RSS, PSI_MEMORY_SOME, PSWPIN, TCP_MEM,
};
use timeline::{Break, Entity, Facts, RollUp, RollUps, Sample, Stamp, Timeline};
use units::{Bytes, Count, Micros, Pages, Span, WallClock};

use super::super::screen::{SAMPLES_MAX, Screened};
use crate::tests::host;
use crate::{
    Loaded, Recording, Resolution, RollUpScreen, Selection, Writer, WriterOptions, add_timeline,
};

const DAY: i64 = 1_700_000_000;

/// The event before a part of a recording, or the clock change in the middle of it.
#[derive(Debug, Clone, Copy)]
enum Between {
    Nothing,
    Gap(u64),
    Reboot(u64),
    ClockSet(i64),
}

#[derive(Debug, Clone)]
struct Made {
    /// How many samples each part has, and the event before it.
    parts: Vec<(u64, Between)>,
    /// Interval of samples in seconds.
    every: u64,
    seed: u64,
    /// Whether the last part is a head file.
    has_head: bool,
}

fn made() -> impl Strategy<Value = Made> {
    let between = prop_oneof![
        3 => Just(Between::Nothing),
        1 => (40..2_000_u64).prop_map(Between::Gap),
        1 => (10..500_u64).prop_map(Between::Reboot),
        1 => prop_oneof![Just(-700_i64), Just(3_600), Just(45)].prop_map(Between::ClockSet),
    ];
    let part = (1..300_u64, between);
    let every = prop_oneof![Just(1_u64), Just(2), Just(5), Just(10)];
    (prop::collection::vec(part, 1..4), every, any::<u64>(), any::<bool>())
        .prop_map(|(parts, every, seed, has_head)| Made { parts, every, seed, has_head })
}

/// Pseudo-random numbers, the same in each run.
fn chance(seed: u64, at: u64) -> u64 {
    let mixed = (seed ^ at).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ (mixed >> 31)).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 33
}

fn sample(stamp: Stamp, second: u64, boot: u64, seed: u64) -> Sample {
    let mut sample = Sample::default();
    sample.stamp = stamp;
    let level = chance(seed, second / 50) % 5;
    sample.host.set(MEM_FREE, Bytes::new(level));
    sample.host.set(PSWPIN, Pages::new(boot / 7 + boot / 100 * (seed % 3)));
    sample.host.set(PSI_MEMORY_SOME, Micros::new(boot * (second % 90)));
    if second.is_multiple_of(10) {
        sample.host.set(TCP_MEM, Pages::new(level));
        for (key, life) in [("/web", 1), ("/db", 4), ("/job", 7)] {
            if chance(seed, second / (37 * life)).is_multiple_of(life) {
                let row = sample.table_mut(Entity::Cgroup).entry(key);
                row.row.set(CGROUP_CURRENT, Bytes::new(chance(seed, second / 30) % 3));
                row.row.set(CGROUP_EVENTS_MAX, Count::new(boot / 60));
            }
        }
    }
    if (second % 10) == 4 {
        let row = sample.table_mut(Entity::Process).entry("1@1");
        row.label = "init".to_owned();
        row.row.set(PROC_RSS, Pages::new(level));
    }
    sample
}

/// The samples of each part.
fn samples(made: &Made) -> Vec<Vec<Sample>> {
    let (mut boot, mut wall, mut second) = (1_000, DAY, 0);
    let part = |(count, between): &(u64, Between)| {
        match between {
            Between::Nothing => {}
            Between::Gap(gap) => {
                (boot, wall, second) = (boot + gap, wall + gap.cast_signed(), second + gap)
            }
            Between::Reboot(off) => (boot, wall) = (0, wall + off.cast_signed()),
            Between::ClockSet(_) => {}
        }
        // A part that is stored later must begin later.
        let by = match between {
            Between::ClockSet(by) if second == 0 => *by,
            Between::ClockSet(by) => by.abs(),
            _ => 0,
        };
        let one = |number| {
            if number == count / 2 {
                wall += by;
            }
            boot += made.every;
            wall += made.every.cast_signed();
            second += made.every;
            let stamp = Stamp {
                boot: Span::from_secs(boot),
                awake: Some(Span::from_secs(boot)),
                wall: Some(WallClock::from_unix_nanos(wall * 1_000_000_000)),
                ..Stamp::default()
            };
            sample(stamp, second, boot, made.seed)
        };
        let samples = (0..*count).map(one).collect();
        wall -= by.min(0);
        samples
    };
    made.parts.iter().map(part).collect()
}

fn known() -> Facts {
    let mut known = Facts::default();
    known.record(Span::ZERO, timeline::facts::SWAPPINESS, "60");
    known
}

fn recorded(directory: &Path, made: &Made) -> Recording {
    let parts = samples(made);
    let sealed = parts.len() - usize::from(made.has_head);
    for samples in &parts[..sealed] {
        let mut timeline = Timeline::default();
        samples.iter().for_each(|sample| timeline.push(sample).unwrap());
        let every = Span::from_secs(made.every);
        add_timeline(directory, &host(), &timeline, &known(), every).unwrap();
    }
    if made.has_head {
        let options = WriterOptions {
            patient: true,
            segment: Span::from_hours(1_000),
            sealer: Some(vec!["true".into()]),
            ..WriterOptions::default()
        };
        let mut writer = Writer::open(directory, &host(), &known(), options).unwrap();
        for sample in &parts[sealed] {
            writer.begin(sample.stamp);
            writer.rows(sample);
            writer.end();
        }
        writer.close().unwrap();
    }
    Recording::open(directory).unwrap()
}

fn all(resolution: Resolution) -> Selection {
    Selection { resolution, ..Selection::default() }
}

/// One minute in five.
fn is_suspicious(end: Stamp, seed: u64) -> bool {
    chance(seed, end.boot.as_nanos() / 1_000_000_000).is_multiple_of(5)
}

fn screened(recording: &Recording, selection: Selection, seed: u64, most: usize) -> Loaded {
    let screen = RollUpScreen {
        signals: &[PSWPIN.id(), CGROUP_EVENTS_MAX.id()],
        could_hold: &mut |rolled| {
            let minutes = rolled.minutes().iter();
            minutes.map(|minute| is_suspicious(minute.end, seed)).collect()
        },
    };
    recording.load_within(selection, screen, most, &mut |_| ())
}

/// Describes a sample and which tables it read.
fn shown(timeline: &Timeline, index: usize) -> String {
    let read = Entity::ALL.map(|entity| timeline.was_read(entity, index));
    format!("{:?} {read:?}", timeline.sample(index).unwrap())
}

/// Maps samples to their indexes by their clocks.
fn places(timeline: &Timeline) -> HashMap<(Span, Option<i64>), usize> {
    let key = |index: usize| of(timeline.stamp(index).unwrap());
    (0..timeline.len()).map(|index| (key(index), index)).collect()
}

fn of(stamp: Stamp) -> (Span, Option<i64>) {
    (stamp.boot, stamp.wall.map(WallClock::unix_nanos))
}

/// Returns each break, and the two samples of the full timeline around it.
fn breaks(
    timeline: &Timeline,
    full: &HashMap<(Span, Option<i64>), usize>,
) -> Vec<(String, usize, usize)> {
    let place = |index: usize| full[&of(timeline.stamp(index).unwrap())];
    let named = |Break { before, kind }: &Break| {
        let kind = format!("{kind:?}");
        let kind = kind.split('(').next().unwrap().to_owned();
        (kind, place(before - 1), place(*before))
    };
    timeline.breaks().iter().map(named).collect()
}

/// Returns the first and the last sample of each minute in the full timeline, in order.
fn minutes_of(
    minutes: &Timeline,
    full: &HashMap<(Span, Option<i64>), usize>,
) -> Vec<(usize, usize)> {
    let ends = (0..minutes.len()).map(|at| full[&of(minutes.stamp(at).unwrap())]);
    let ends: Vec<usize> = ends.collect();
    let starts = std::iter::once(0).chain(ends.iter().map(|end| end + 1));
    starts.zip(ends.iter().copied()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn what_is_opened_is_exact_and_the_rest_is_as_by_the_minute(made in made(), is_tight: bool) {
        let directory = tempfile::tempdir().unwrap();
        let recording = recorded(directory.path(), &made);
        let full = recording.load(all(Resolution::Full), &mut |_| ()).timeline;
        let by_minute = recording.load(all(Resolution::Minutes), &mut |_| ()).timeline;
        let most = if is_tight { 200 } else { SAMPLES_MAX };
        let loaded = screened(&recording, all(Resolution::Minutes), made.seed, most);
        let (mixed, screened) = (&loaded.timeline, loaded.screened.unwrap());
        let (in_full, in_minutes) = (places(&full), places(&by_minute));
        for index in 0..mixed.len() {
            let key = of(mixed.stamp(index).unwrap());
            let exact = shown(&full, in_full[&key]);
            let is_exact = shown(mixed, index) == exact;
            if mixed.resolution_at(index).is_none() {
                prop_assert_eq!(shown(mixed, index), exact);
            } else if !is_exact {
                let at = in_minutes.get(&key);
                prop_assert_eq!(Some(shown(mixed, index)), at.map(|at| shown(&by_minute, *at)));
            }
        }
        let minutes = minutes_of(&by_minute, &in_full);
        prop_assert_eq!(screened.minutes, minutes.len());
        let opened = opened_minutes(mixed, &minutes, &in_full);
        let ends = (0..by_minute.len()).map(|at| by_minute.stamp(at).unwrap());
        let suspicious: Vec<bool> = ends.map(|end| is_suspicious(end, made.seed)).collect();
        prop_assert_eq!(screened.suspicious, suspicious.iter().filter(|minute| **minute).count());
        prop_assert_eq!(screened.opened, opened.iter().filter(|minute| **minute).count());
        let closed = suspicious.iter().zip(&opened).filter(|(is, opened)| **is && !**opened);
        prop_assert_eq!(screened.unopened, closed.count());
        if !is_tight {
            prop_assert_eq!(screened.unopened, 0);
            let near = |at: usize| (at.saturating_sub(1)..=at + 1).any(|at| suspicious.get(at) == Some(&true));
            prop_assert_eq!(&opened, &(0..minutes.len()).map(near).collect::<Vec<_>>());
        }
        let known = [breaks(&full, &in_full), breaks(&by_minute, &in_full)].concat();
        for (kind, from, to) in breaks(mixed, &in_full) {
            let is_known = known.iter().any(|(other, first, last)| *other == kind && from < *last && *first < to);
            prop_assert!(is_known, "{kind} from {from} to {to}, of {known:?}");
        }
    }
}

/// Returns which minutes have all their samples, and checks that each other one has its last sample.
fn opened_minutes(
    mixed: &Timeline,
    minutes: &[(usize, usize)],
    full: &HashMap<(Span, Option<i64>), usize>,
) -> Vec<bool> {
    let is_opened_at: HashMap<usize, bool> = (0..mixed.len())
        .map(|index| {
            let place = full[&of(mixed.stamp(index).unwrap())];
            (place, mixed.resolution_at(index).is_none())
        })
        .collect();
    let is_opened = |(first, last): &(usize, usize)| {
        let all: Vec<_> = (*first..=*last).map(|at| is_opened_at.get(&at).copied()).collect();
        assert!(all.last().is_some_and(Option::is_some), "its last sample is there");
        let exact = all.iter().filter(|minute| **minute == Some(true)).count();
        assert!(exact == 0 || exact == all.len(), "opened as a whole: {all:?}");
        exact > 0
    };
    minutes.iter().map(is_opened).collect()
}

fn an_hour() -> Made {
    Made {
        parts: vec![(1_200, Between::Nothing), (1_300, Between::Nothing), (400, Between::Nothing)],
        every: 1,
        seed: 3,
        has_head: true,
    }
}

#[test]
fn a_part_of_the_time_is_opened_as_far_as_it_is_wanted() {
    let directory = tempfile::tempdir().unwrap();
    let recording = recorded(directory.path(), &an_hour());
    let wall = |second: i64| Some(WallClock::from_unix_nanos((DAY + second) * 1_000_000_000));
    let selection =
        Selection { since: wall(317), until: wall(2_611), resolution: Resolution::Minutes };
    let full = recording.load(Selection { resolution: Resolution::Full, ..selection }, &mut |_| ());
    let in_full = places(&full.timeline);
    for seed in 0..5 {
        let loaded = screened(&recording, selection, seed, SAMPLES_MAX);
        assert_eq!(loaded.problems, Vec::<String>::new());
        let mixed = &loaded.timeline;
        assert!(loaded.screened.unwrap().opened > 3);
        for index in 0..mixed.len() {
            let place = in_full[&of(mixed.stamp(index).unwrap())];
            if mixed.resolution_at(index).is_none() {
                assert_eq!(shown(mixed, index), shown(&full.timeline, place));
            }
        }
        assert_eq!(mixed.breaks(), []);
    }
}

#[test]
fn a_short_range_is_read_whole_and_a_screen_is_not_asked() {
    let directory = tempfile::tempdir().unwrap();
    let recording = recorded(directory.path(), &an_hour());
    let screen = RollUpScreen { signals: &[], could_hold: &mut |_| unreachable!("not asked") };
    let loaded = recording.load_screened(Selection::default(), screen, &mut |_| ());
    assert_eq!((loaded.timeline.len(), loaded.thinned_to, loaded.screened), (2_900, None, None));
}

#[test]
fn increases_count_across_borders_of_parts_and_levels_have_their_ends() {
    let directory = tempfile::tempdir().unwrap();
    let recording = recorded(directory.path(), &an_hour());
    let (mut swapped, mut lasts, mut groups, mut least) = (0, Span::ZERO, 0, u64::MAX);
    let screen = RollUpScreen {
        signals: &[PSWPIN.id(), MEM_FREE.id(), CGROUP_EVENTS_MAX.id()],
        could_hold: &mut |rolled: &RollUps| {
            let increases = rolled.host(PSWPIN.id()).unwrap().iter().flatten();
            swapped += increases.filter_map(|roll_up| roll_up.increase()).sum::<u64>();
            lasts = rolled.minutes().iter().fold(lasts, |all, minute| all.plus(minute.duration));
            let free = rolled.host(MEM_FREE.id()).unwrap().iter().flatten();
            least = least.min(free.filter_map(|roll_up| roll_up.min()).min().unwrap());
            assert!(rolled.host(TCP_MEM.id()).is_none(), "not asked for");
            assert!(
                rolled
                    .host(PSWPIN.id())
                    .unwrap()
                    .iter()
                    .all(|roll_up| matches!(roll_up, Some(RollUp::Increase { .. })))
            );
            groups = groups.max(rolled.entities(Entity::Cgroup).len());
            vec![false; rolled.len()]
        },
    };
    let loaded = recording.load_screened(all(Resolution::Minutes), screen, &mut |_| ());
    // From the first sample, at second 1,001 of the boot clock, to the last.
    let at = |boot: u64| boot / 7;
    assert_eq!(swapped, at(3_900) - at(1_001));
    assert!(groups >= 2);
    assert_eq!(least, 0);
    // The start of the first minute is unknown.
    let unknown = Span::from_secs(2_899).plus(Span::from_mins(1));
    assert!(lasts <= unknown && lasts > Span::from_secs(2_880), "{lasts}");
    let screened = loaded.screened.unwrap();
    assert_eq!((screened.suspicious, screened.opened, screened.unopened), (0, 0, 0));
    let by_minute = recording.load(all(Resolution::Minutes), &mut |_| ());
    assert_eq!(crate::tests::shown(&loaded.timeline), crate::tests::shown(&by_minute.timeline));
    assert_eq!(loaded.thinned_to, Some(Span::from_mins(1)));
}

#[test]
fn what_is_damaged_is_named_and_read_as_far_as_it_can_be() {
    let suspicious = |recording: &Recording| {
        let screen = RollUpScreen {
            signals: &[PSWPIN.id()],
            could_hold: &mut |rolled| vec![true; rolled.len()],
        };
        recording.load_screened(all(Resolution::Minutes), screen, &mut |_| ())
    };
    for (file, problem, opened) in [
        ("host.parquet", "one sample a minute is read instead", 28),
        ("cgroup.parquet", "one sample a minute is read instead", 51),
        ("minutes.parquet", "problems shorter than a minute may be missed in it", 28),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let recording = recorded(directory.path(), &an_hour());
        let whole = suspicious(&recording);
        assert_eq!(whole.problems, Vec::<String>::new());
        assert_eq!((whole.timeline.len(), whole.thinned_to), (2_900, None));
        let path = recording.segments[1].path.join(file);
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[40] ^= 0xff;
        std::fs::write(&path, bytes).unwrap();
        let loaded = suspicious(&recording);
        assert!(loaded.problems.iter().any(|text| text.contains(problem)), "{:?}", loaded.problems);
        let Screened { opened: found, .. } = loaded.screened.unwrap();
        assert_eq!(found, opened, "{file}");
        assert_eq!(loaded.timeline.breaks(), [], "{file}");
    }
}
