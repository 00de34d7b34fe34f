//! However the wall clock is set, and however many boots begin at one time: no sample is lost, none is mixed with those of
//! another boot, each step is there with its size.
#![allow(clippy::unwrap_used)] // helpers fail as the test does

use std::path::Path;

use proptest::prelude::*;
use store::{HostIdentity, Loaded, Recording, Resolution, Selection, Writer, WriterOptions};
use timeline::signals::{MEM_FREE, PSWPIN};
use timeline::{BootId, BreakKind, Facts, Sample, Stamp, Timeline};
use units::{Bytes, Pages, Span, WallClock};

const SECOND: i64 = 1_000_000_000;

/// A boot of a machine while it is recorded.
#[derive(Debug, Clone)]
struct Boot {
    /// The wall clock when it began, in seconds.
    begins: i64,
    /// The boot clock at the first sample, in seconds.
    first: u64,
    samples: u64,
    /// Before which sample the wall clock is set, and by how many seconds.
    sets: Vec<(u64, i64)>,
}

impl Boot {
    fn id(number: usize) -> Option<BootId> {
        BootId::from_bytes([u8::try_from(number).unwrap() + 1; 16])
    }

    fn stamp(&self, number: usize, sample: u64) -> Stamp {
        let boot = self.first + sample;
        let sets = self.sets.iter().filter(|(at, _)| *at <= sample);
        let wall = self.begins + boot.cast_signed() + sets.map(|(_, by)| by).sum::<i64>();
        Stamp {
            boot: Span::from_secs(boot),
            awake: Some(Span::from_secs(boot)),
            wall: Some(WallClock::from_unix_nanos(wall * SECOND)),
            boot_id: Self::id(number),
        }
    }

    /// By how many seconds the wall clock is set before a sample, in all.
    fn set_before(&self, sample: u64) -> i64 {
        let sets = self.sets.iter().filter(|(at, _)| *at == sample);
        sets.map(|(_, by)| by).sum()
    }
}

fn facts() -> Facts {
    let mut known = Facts::default();
    known.record(Span::ZERO, timeline::facts::SWAPPINESS, "60");
    known
}

fn recorded(directory: &Path, boots: &[Boot], segment: Span) {
    for (number, boot) in boots.iter().enumerate() {
        let host = HostIdentity { id: "0123".to_owned(), name: "host".to_owned() };
        let options = WriterOptions { patient: true, segment, ..WriterOptions::default() };
        let mut writer = Writer::open(directory, &host, &facts(), options).unwrap();
        for at in 0..boot.samples {
            let mut sample = Sample::default();
            sample.stamp = boot.stamp(number, at);
            sample.host.set(MEM_FREE, Bytes::new(at * 4096));
            sample.host.set(PSWPIN, Pages::new(1_000_000 * number as u64 + at));
            writer.begin(sample.stamp);
            writer.rows(&sample);
            writer.end();
        }
        writer.close().unwrap();
    }
}

fn load(directory: &Path, resolution: Resolution) -> Loaded {
    let selection = Selection { resolution, ..Selection::default() };
    Recording::open(directory).unwrap().load(selection, &mut |_| {})
}

/// The steps of the wall clock, with the number of the sample after each.
fn steps(timeline: &Timeline) -> Vec<(usize, i64)> {
    let step = |found: &timeline::Break| {
        let size = |span: Span| (span.as_nanos() / 1_000_000_000).cast_signed();
        match found.kind {
            BreakKind::ClockForward(by) => Some((found.before, size(by))),
            BreakKind::ClockBack(by) => Some((found.before, -size(by))),
            _ => None,
        }
    };
    timeline.breaks().iter().filter_map(step).collect()
}

fn boot() -> impl Strategy<Value = Boot> {
    let begins =
        prop_oneof![Just(0), Just(1_795_000_000), Just(1_795_000_060), Just(1_700_000_000)];
    let by = prop_oneof![
        Just(1),
        Just(-1),
        Just(3_600),
        Just(-3_600),
        Just(31_536_000),
        Just(-31_536_000),
        Just(-1_795_000_000),
        Just(1_795_000_000),
    ];
    let sets = prop::collection::vec((1..150_u64, by), 0..4);
    (begins, 1..100_u64, 1..200_u64, sets).prop_map(|(begins, first, samples, sets)| Boot {
        begins,
        first,
        samples,
        sets,
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn no_clock_loses_or_mixes_samples(boots in prop::collection::vec(boot(), 1..5), segment in 30..300_u64) {
        let directory = tempfile::tempdir().unwrap();
        recorded(directory.path(), &boots, Span::from_secs(segment));
        let loaded = load(directory.path(), Resolution::Full);
        let are_known = loaded.problems.iter().all(|text| text.contains("the clock was wrong"));
        prop_assert!(are_known, "{:?}", loaded.problems);
        let timeline = loaded.timeline;
        let stamps = boots.iter().enumerate().flat_map(|(number, boot)| {
            (0..boot.samples).map(move |at| boot.stamp(number, at))
        });
        let found = (0..timeline.len()).map(|at| timeline.stamp(at).unwrap());
        prop_assert!(found.eq(stamps), "all samples, in order");
        let mut begins = 0;
        let (mut expected, mut reboots) = (Vec::new(), Vec::new());
        for boot in &boots {
            reboots.extend((begins > 0).then_some(begins));
            for at in 1..boot.samples {
                let by = boot.set_before(at);
                // Smaller ones are below the tolerance: clocks drift.
                if by.abs() > 2 {
                    expected.push((begins + usize::try_from(at).unwrap(), by));
                }
            }
            begins += usize::try_from(boot.samples).unwrap();
        }
        prop_assert_eq!(steps(&timeline), expected);
        let found: Vec<usize> = timeline
            .breaks()
            .iter()
            .filter(|found| found.kind == BreakKind::Reboot)
            .map(|found| found.before)
            .collect();
        prop_assert_eq!(&found, &reboots);
        // No rate crosses a boot: within one, a page a second is swapped in.
        let rates = timeline.rate(PSWPIN);
        let rates = rates.iter().flat_map(|track| track.values().iter().flatten());
        prop_assert!(rates.clone().all(|rate| (rate - 1.0).abs() < 1e-6), "{:?}", rates.collect::<Vec<_>>());
        let minutes = load(directory.path(), Resolution::Minutes).timeline;
        let boots_of = |timeline: &Timeline| {
            let mut ids: Vec<_> = (0..timeline.len()).map(|at| timeline.stamp(at).unwrap().boot_id).collect();
            ids.dedup();
            ids
        };
        prop_assert_eq!(boots_of(&minutes), boots_of(&timeline));
        let lasts: u64 = boots.iter().map(|boot| boot.samples - 1).sum();
        let known = Recording::open(directory.path()).unwrap().info(false).lasts.as_nanos() / 1_000_000_000;
        // From one segment to the next is not counted.
        prop_assert!(known <= lasts && known + 40 >= lasts, "{known} of {lasts}");
    }
}

#[test]
fn a_recorder_that_was_killed_is_reported_by_the_clock_that_cannot_be_set() {
    let boot = |begins| Boot { begins, first: 100, samples: 20, sets: Vec::new() };
    for (second, id, expected) in [
        (
            boot(1_795_000_000 - 3_600),
            0,
            "the previous recorder was killed: nothing was recorded for 81 s",
        ),
        (
            boot(1_795_000_000),
            1,
            "the machine went down while it was recorded: nothing was recorded for 81 s",
        ),
        (boot(0), 1, "the machine went down while it was recorded"),
    ] {
        let place = tempfile::tempdir().unwrap();
        let directory = place.path().join("recording");
        recorded(&directory, &[boot(1_795_000_000)], Span::from_hours(1));
        // What a kill leaves: a head file without its end.
        let options = WriterOptions {
            patient: true,
            sealer: Some(vec!["true".into()]),
            ..WriterOptions::default()
        };
        let host = HostIdentity { id: "0123".to_owned(), name: "host".to_owned() };
        let write = |writer: &mut Writer, boot: &Boot, number: usize, from: u64| {
            let mut sample = Sample::default();
            sample.stamp = boot.stamp(number, from);
            sample.host.set(MEM_FREE, Bytes::new(1));
            writer.begin(sample.stamp);
            writer.rows(&sample);
            writer.end();
        };
        let open = || Writer::open(&directory, &host, &facts(), options.clone()).unwrap();
        let mut writer = open();
        write(&mut writer, &boot(1_795_000_000), 0, 19);
        writer.close().unwrap();
        let heads = std::fs::read_dir(directory.join("head")).unwrap();
        let head = heads.map(|head| head.unwrap().path()).max().unwrap();
        let bytes = std::fs::read(&head).unwrap();
        std::fs::write(&head, &bytes[..bytes.len() - 9]).unwrap();
        let mut writer = open();
        write(&mut writer, &second, id, 100);
        writer.close().unwrap();
        let timeline = load(&directory, Resolution::Full).timeline;
        let texts: Vec<_> = timeline.recorder_events().iter().map(|event| &event.text).collect();
        assert_eq!(texts, [expected]);
    }
}
