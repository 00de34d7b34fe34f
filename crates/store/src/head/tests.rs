//! Written samples can be read back whatever appears and disappears; damage costs only its block.
#![allow(clippy::cast_possible_truncation)] // small numbers

use std::collections::BTreeMap;
use std::io::Write;

use proptest::prelude::*;
use timeline::Row;
use timeline::signals::{self, Entity};
use timeline::{Sample, SignalId, Stamp, Timeline};
use units::{Span, WallClock};

use super::encode::BLOCK;
use super::*;

/// Returns a file with these bytes, in memory.
pub(super) fn file_with(bytes: &[u8]) -> File {
    let flags = rustix::fs::MemfdFlags::CLOEXEC;
    let mut file = File::from(rustix::fs::memfd_create("head", flags).unwrap());
    file.write_all(bytes).unwrap();
    file
}

fn load_bytes(bytes: &[u8], into: &mut Timeline, window: Option<Window>) -> HeadRead {
    load_file(&file_with(bytes), into, window)
}

/// The content of a table of a sample: key, then readings by column.
type Rows = Vec<(u8, Vec<(u8, u64)>)>;

fn column(entity: Entity, column: u8) -> SignalId {
    let signals = entity.signals();
    SignalId::from_index(signals.start + usize::from(column) % signals.len()).unwrap()
}

/// Sets each signal once, as kernel files do: overwriting it within a sample would only cut runs in the timeline.
fn once(entity: Entity, readings: &[(u8, u64)]) -> BTreeMap<SignalId, u64> {
    let readings = readings.iter();
    readings.map(|(place, raw)| (column(entity, *place), *raw)).collect()
}

fn stamp(index: usize) -> Stamp {
    let seconds = 1000 + index as u64;
    Stamp {
        boot: Span::from_secs(seconds),
        awake: (!index.is_multiple_of(7)).then(|| Span::from_secs(seconds - 3)),
        wall: Some(WallClock::from_unix_nanos(
            1_700_000_000_000_000_000 + seconds as i64 * 1_000_000_000,
        )),
        ..Stamp::default()
    }
}

fn sample(index: usize, host: &[(u8, u64)], tables: &[(Entity, Rows)]) -> Sample {
    let mut sample = Sample::default();
    sample.stamp = stamp(index);
    for (signal, raw) in once(Entity::Host, host) {
        sample.host.set_raw(signal, raw);
    }
    for (entity, rows) in tables {
        for (key, readings) in rows {
            let row = sample.table_mut(*entity).entry(&format!("key{key}"));
            row.label = format!("label{}", key % 3);
            row.group = "group".to_owned();
            row.row = Row::default();
            for (signal, raw) in once(*entity, readings) {
                row.row.set_raw(signal, raw);
            }
        }
    }
    sample
}

/// Returns a head file with these samples, and the offset of each frame.
fn written(samples: &[Sample]) -> (Vec<u8>, Vec<usize>) {
    let mut encoder = Encoder::new();
    let mut bytes = Vec::new();
    let mut starts = Vec::new();
    put_dictionary(&mut bytes);
    put_dictionary(&mut bytes);
    for sample in samples {
        encoder.begin(sample.stamp);
        encoder.rows(sample);
        starts.push(bytes.len());
        bytes.extend_from_slice(encoder.end());
        encoder.commit();
    }
    put_end(&mut bytes);
    (bytes, starts)
}

fn expected(samples: &[Sample]) -> Timeline {
    let mut timeline = Timeline::default();
    for sample in samples {
        timeline.push(sample).unwrap();
    }
    timeline
}

/// All samples of a timeline, as text.
fn dump(timeline: &Timeline) -> Vec<String> {
    let mut lines: Vec<String> = (0..timeline.len())
        .map(|index| {
            let read = Entity::ALL.map(|entity| {
                let is_partial = timeline.was_read_in_part(entity, index);
                (timeline.was_read(entity, index), is_partial)
            });
            let sample = timeline.sample(index).unwrap();
            let tables = Entity::ALL.map(|entity| {
                let rows = sample.table(entity).rows().iter();
                rows.map(|row| {
                    (row.key.clone(), row.label.clone(), row.row.iter().collect::<Vec<_>>())
                })
                .collect::<Vec<_>>()
            });
            let host: Vec<_> = sample.host.iter().collect();
            format!("{:?} {read:?} {host:?} {tables:?}", timeline.stamp(index))
        })
        .collect();
    let runs = timeline.host_runs();
    lines.extend(runs.map(|(signal, runs)| format!("{signal:?} {runs:?}")));
    for entity in Entity::ALL {
        for series in timeline.entities(entity) {
            let runs: Vec<_> = series.runs().collect();
            lines.push(format!("{} {} {} {runs:?}", series.key, series.label, series.group));
        }
    }
    lines
}

fn readings() -> impl Strategy<Value = Vec<(u8, u64)>> {
    let value = prop_oneof![Just(0), Just(u64::MAX), 0..5u64, any::<u64>()];
    proptest::collection::vec((any::<u8>(), value), 0..6)
}

fn rows() -> impl Strategy<Value = Rows> {
    proptest::collection::vec((0..6u8, readings()), 0..5)
}

/// A sample of some cgroups, each with the same signals and a value: whether it is partial, and its rows.
type CgroupValues = (bool, Vec<(u8, u64)>);

fn cgroup_values() -> impl Strategy<Value = Vec<CgroupValues>> {
    let rows = proptest::collection::btree_map(0..5u8, 0..4u64, 0..5);
    let rows = rows.prop_map(|rows| rows.into_iter().collect());
    let is_partial = prop_oneof![1 => Just(false), 4 => Just(true)];
    proptest::collection::vec((is_partial, rows), 1..150)
}

fn partial_samples(all: &[CgroupValues]) -> Vec<Sample> {
    let made = |(index, (is_partial, rows)): (usize, &CgroupValues)| {
        let rows =
            rows.iter().map(|(key, value)| (*key, vec![(0, *value), (1, value / 2), (2, 7)]));
        let mut sample = sample(index, &[], &[(Entity::Cgroup, rows.collect())]);
        if *is_partial {
            sample.table_mut(Entity::Cgroup).set_partial();
        }
        sample
    };
    all.iter().enumerate().map(made).collect()
}

proptest! {
    #[test]
    fn partial_samples_give_the_timeline_that_was_written(all in cgroup_values(), since in 0..150usize, len in 0..150usize) {
        let samples = partial_samples(&all);
        let (bytes, _) = written(&samples);
        let mut timeline = Timeline::default();
        let read = load_bytes(&bytes, &mut timeline, None);
        prop_assert!(read.ended && read.problems.is_empty(), "{:?}", read.problems);
        prop_assert_eq!(dump(&timeline), dump(&expected(&samples)));
        let mut within = Timeline::default();
        load_bytes(&bytes, &mut within, Some((stamp(since).wall, stamp(since + len).wall)));
        let end = (since + len + 1).min(samples.len());
        prop_assert_eq!(dump(&within), dump(&expected(&samples[since.min(end)..end])));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, max_shrink_iters: 300, ..ProptestConfig::default() })]
    #[test]
    fn a_head_gives_the_timeline_that_was_written(
        rows_by_sample in proptest::collection::vec((readings(), rows(), rows()), 1..150),
    ) {
        let samples: Vec<Sample> = rows_by_sample.iter().enumerate().map(|(index, (host, groups, processes))| {
            let tables = [(Entity::Cgroup, groups.clone()), (Entity::Process, processes.clone())];
            sample(index, host, &tables)
        }).collect();
        let (bytes, _) = written(&samples);
        let mut timeline = Timeline::default();
        let read = load_bytes(&bytes, &mut timeline, None);
        prop_assert!(read.ended && read.problems.is_empty(), "{:?}", read.problems);
        prop_assert_eq!(dump(&timeline), dump(&expected(&samples)));
    }

    #[test]
    fn a_window_gives_the_samples_in_it(
        rows_by_sample in proptest::collection::vec((readings(), rows()), 1..90),
        since in 0..90usize,
        len in 0..90usize,
    ) {
        let samples: Vec<Sample> = rows_by_sample.iter().enumerate()
            .map(|(index, (host, groups))| sample(index, host, &[(Entity::Cgroup, groups.clone())]))
            .collect();
        let (bytes, _) = written(&samples);
        let mut timeline = Timeline::default();
        let window = (stamp(since).wall, stamp(since + len).wall);
        load_bytes(&bytes, &mut timeline, Some(window));
        let end = (since + len + 1).min(samples.len());
        prop_assert_eq!(dump(&timeline), dump(&expected(&samples[since.min(end)..end])));
    }

    #[test]
    fn any_bytes_after_a_head_are_no_harm(noise: Vec<u8>) {
        let samples: Vec<Sample> = (0..5).map(|index| sample(index, &[(1, index as u64)], &[])).collect();
        let (mut bytes, _) = written(&samples);
        bytes.extend(noise);
        let mut timeline = Timeline::default();
        load_bytes(&bytes, &mut timeline, None);
        prop_assert!(timeline.len() >= 5);
    }

    #[test]
    fn whole_frames_of_any_bytes_do_not_panic(payloads in proptest::collection::vec((0..10u8, any::<Vec<u8>>()), 0..20)) {
        let (mut bytes, _) = written(&[sample(0, &[(1, 1)], &[(Entity::Cgroup, vec![(1, vec![(1, 1)])])])]);
        for (kind, payload) in payloads {
            let at = frame::begin(&mut bytes, frame::FrameKind::Step);
            bytes[at + frame::HEADER - 1] = kind;
            if kind < 3 {
                bytes.extend_from_slice(frame::MARK);
            }
            bytes.extend(payload);
            frame::end(&mut bytes, at);
        }
        load_bytes(&bytes, &mut Timeline::default(), None);
    }
}

/// Derives the content of a sample from its index, so that it can be verified without the original.
fn derived(index: usize) -> Sample {
    let host: Vec<(u8, u64)> =
        (100..200).filter(|c| c % 3 == 1).map(|c| (c, index as u64 * u64::from(c))).collect();
    let processes = (0..20u8).filter(|pid| !(index / 10 + usize::from(*pid)).is_multiple_of(5));
    let rows = processes.map(|pid| (pid, vec![(0, u64::from(pid)), (5, (index / 3) as u64)]));
    let every_third = index.is_multiple_of(3).then(|| (Entity::Process, rows.collect()));
    sample(index, &host, every_third.as_slice())
}

fn is_derived(timeline: &Timeline, at: usize, index: usize) -> bool {
    let (found, expected) = (timeline.sample(at).unwrap(), derived(index));
    let sorted = |sample: &Sample| {
        let mut host: Vec<_> = sample.host.iter().collect();
        host.sort();
        let rows = sample.table(Entity::Process).rows().iter();
        let mut rows: Vec<_> =
            rows.map(|row| (row.key.clone(), row.row.iter().collect::<Vec<_>>())).collect();
        rows.sort();
        (host, rows)
    };
    sorted(&found) == sorted(&expected)
}

#[test]
fn a_flip_or_a_cut_costs_its_block_and_is_named() {
    const SAMPLES: usize = 150;
    let samples: Vec<Sample> = (0..SAMPLES).map(derived).collect();
    let (bytes, starts) = written(&samples);
    let mut random = 0x9e37_79b9_7f4a_7c15u64;
    let mut next = |below: usize| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        (random % below as u64) as usize
    };
    for round in 0..500 {
        let mut damaged = bytes.clone();
        let at = next(bytes.len());
        let is_cut = round % 2 == 0;
        if is_cut {
            damaged.truncate(at);
        } else {
            damaged[at] ^= 1 << next(8);
        }
        let mut timeline = Timeline::default();
        let read = load_bytes(&damaged, &mut timeline, None);
        let hit = starts.partition_point(|start| *start <= at).checked_sub(1);
        let is_behind_all = is_cut && at == bytes.len();
        assert!(
            is_behind_all || !read.problems.is_empty() || read.tail.is_some() || !read.ended,
            "byte {at}"
        );
        let block = BLOCK as usize;
        let is_spared = |index: usize| match hit {
            Some(hit) if is_cut => index < hit,
            Some(hit) => index / block != hit / block || index < hit,
            None => !is_cut,
        };
        let found: Vec<usize> = (0..timeline.len())
            .map(|at| (timeline.stamp(at).unwrap().boot.as_nanos() / 1_000_000_000 - 1000) as usize)
            .collect();
        for index in (0..SAMPLES).filter(|index| is_spared(*index)) {
            assert!(found.binary_search(&index).is_ok(), "sample {index} is lost by byte {at}");
        }
        // Comparing all of them each time would take minutes.
        for _ in 0..found.len().min(8) {
            let at = next(found.len());
            assert!(is_derived(&timeline, at, found[at]), "sample {} is wrong", found[at]);
        }
    }
}

#[test]
fn names_that_are_not_known_are_passed_over_and_said() {
    let (bytes, _) = written(&[derived(0), derived(1)]);
    // Another memtide calls MemFree something else and knows no services.
    let free = signals::MEM_FREE.def().name.as_bytes();
    let mut payload = Vec::new();
    dictionary::put_own(&mut payload);
    let own = payload.split_off(frame::HEADER);
    let at = memchr::memmem::find(&own, free).unwrap();
    let mut other = own.clone();
    other[at] = b'x';
    let mut changed = Vec::new();
    let file = file_with(&bytes);
    let mut frames = frames::Frames::new(&file, 0, bytes.len() as u64);
    while let Some(found) = frames.take_next().unwrap() {
        let frames::FoundFrame::Frame(kind, payload) = found else { panic!() };
        let start = changed.len();
        frame::begin(&mut changed, frame::FrameKind::from_byte(kind).unwrap());
        if kind == frame::FrameKind::Dictionary as u8 {
            changed.extend_from_slice(&other);
        } else if kind == frame::FrameKind::Key as u8 {
            changed.extend_from_slice(&payload[..8]);
            changed.extend_from_slice(&crc32fast::hash(&other).to_le_bytes());
            changed.extend_from_slice(&payload[12..]);
        } else {
            changed.extend_from_slice(payload);
        }
        frame::end(&mut changed, start);
    }
    let mut timeline = Timeline::default();
    let read = load_bytes(&changed, &mut timeline, None);
    assert_eq!(timeline.len(), 2);
    assert!(read.problems[0].contains("xem.free"), "{:?}", read.problems);
    assert_eq!(timeline.at(signals::MEM_FREE, 1), None);
    let other = column(Entity::Host, 199);
    let found = timeline.sample(1).unwrap().host.iter().find(|(signal, _)| *signal == other);
    assert_eq!(found, Some((other, 199)));
}

#[test]
fn both_dictionaries_damaged_are_no_loss_for_the_memtide_that_wrote_them() {
    let (mut bytes, starts) = written(&[derived(0), derived(1)]);
    for at in [100, starts[0] - 100] {
        bytes[at] ^= 4;
    }
    let mut timeline = Timeline::default();
    let read = load_bytes(&bytes, &mut timeline, None);
    assert_eq!(timeline.len(), 2);
    assert!(!read.problems.is_empty());
    assert!(is_derived(&timeline, 1, 1));
}

#[test]
fn samples_behind_damage_are_counted() {
    let samples: Vec<Sample> = (0..20).map(derived).collect();
    let (mut bytes, starts) = written(&samples);
    bytes[starts[10] + 20] ^= 4;
    let mut timeline = Timeline::default();
    let read = load_bytes(&bytes, &mut timeline, None);
    assert_eq!(timeline.len(), 10);
    let problems = read.problems.join("\n");
    assert!(problems.contains("9 samples behind that"), "{problems}");
}
