//! Flipped bits, cuts and bursts in copies of a recording: what is read is what was written, and what is missing is named.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use store::{Loaded, WriterOptions};
use timeline::signals::{CGROUP_CURRENT, MEM_FREE, PSWPIN};
use timeline::{BreakKind, Entity, Event, EventKind, Facts, Sample, Stamp, Timeline};
use units::{Bytes, Pages, Span, WallClock};

use crate::bench::{Bench, Dice};
use crate::recorder::{load, writer};
use crate::score::Score;

pub(crate) fn damaged(bench: &Bench) -> Score {
    let count = bench.count(2_000);
    let dice = bench.dice(100);
    let sound = bench.path("sound");
    written(&sound);
    let known = contents(&load(&sound).unwrap());
    let files = files(&sound);
    let mut score = Score {
        done: format!("{count} flips, cuts and bursts in {} files", files.len()),
        ..Score::default()
    };
    // A panic is counted, and its message is not of interest a thousand times.
    let copy = bench.path("damaged");
    for number in 0..count {
        let _ = std::fs::remove_dir_all(&copy);
        copy_all(&sound, &copy, &files);
        let file = files[dice.index(files.len())].strip_prefix(&sound).unwrap();
        let what = damage(&copy.join(file), &dice);
        let what = format!("{number}: {what} in {}", file.display());
        match catch_unwind(AssertUnwindSafe(|| load(&copy))) {
            Err(_) => score.panics.push(what),
            // The reason is the note.
            Ok(Err(_)) => {}
            Ok(Ok(loaded)) => {
                let silent =
                    compare(&known, &loaded, &what, &mut score) && !is_as_after_a_kill(&copy);
                score.silent.extend(silent.then_some(what));
            }
        }
    }
    score
}

/// Samples by boot clock, events, and the last value of each fact.
struct Contents {
    samples: BTreeMap<Span, String>,
    events: Vec<String>,
    facts: BTreeMap<String, String>,
}

fn contents(loaded: &Loaded) -> Contents {
    let timeline = &loaded.timeline;
    let samples = (0..timeline.len()).map(|at| {
        let stamp = timeline.stamp(at).unwrap();
        let group = timeline.entity(Entity::Cgroup, "/web");
        let of_group = group.and_then(|group| timeline.at_of(group, CGROUP_CURRENT, at));
        let readings = (timeline.at(MEM_FREE, at), timeline.at(PSWPIN, at), of_group);
        (stamp.boot, format!("{stamp:?} {readings:?}"))
    });
    let facts = loaded.facts.iter();
    Contents {
        samples: samples.collect(),
        events: timeline.recorder_events().iter().map(|event| format!("{event:?}")).collect(),
        facts: facts.map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
    }
}

/// Compares what is read with what was written. Returns whether something is missing without a note.
fn compare(known: &Contents, loaded: &Loaded, what: &str, score: &mut Score) -> bool {
    let found = contents(loaded);
    let is_named = !loaded.problems.is_empty();
    score.compared += found.samples.len();
    for (boot, sample) in &found.samples {
        match known.samples.get(boot) {
            Some(expected) if expected == sample => {}
            // Readings of a table that is missing are not there; the note says so.
            Some(expected) if is_named && is_part(sample, expected) => {}
            expected => score.wrong.push(format!("{what}: {sample} instead of {expected:?}")),
        }
    }
    let strange = found.events.iter().find(|event| !known.events.contains(event));
    score.wrong.extend(strange.map(|event| format!("{what}: {event}")));
    for (name, value) in &found.facts {
        if known.facts.get(name) != Some(value)
            && !loaded.problems.iter().any(|text| text.contains("facts.jsonl"))
        {
            score.wrong.push(format!("{what}: {name} is {value}"));
        }
    }
    let is_less = found.samples.len() < known.samples.len()
        || found.events.len() < known.events.len()
        || found.facts.len() < known.facts.len();
    is_less && !is_named && !has_gap(&loaded.timeline)
}

/// Whether the answer has an event for time without samples. A head that is cut between two frames is whole up to there:
/// nothing but the gap before the next file shows that there was more.
fn has_gap(timeline: &Timeline) -> bool {
    let mut breaks = timeline.breaks().iter();
    breaks.any(|found| matches!(found.kind, BreakKind::Gap(_)))
}

/// Whether the next recorder notes that the last one did not end in good order: a cut between two frames of the last
/// file is what a kill leaves behind.
fn is_as_after_a_kill(recording: &Path) -> bool {
    let options = WriterOptions { patient: true, ..WriterOptions::default() };
    let next = writer(recording, &Facts::default(), &options);
    next.before().is_some()
}

/// Whether a sample is another without some of its readings.
fn is_part(sample: &str, whole: &str) -> bool {
    let readings = |text: &str| {
        let (_, readings) = text.rsplit_once(" (").unwrap();
        readings.split(", ").map(str::to_owned).collect::<Vec<_>>()
    };
    let stamp = |text: &str| text.rsplit_once(" (").unwrap().0.to_owned();
    let pairs = readings(sample).into_iter().zip(readings(whole));
    stamp(sample) == stamp(whole)
        && pairs.into_iter().all(|(part, whole)| part == whole || part.starts_with("None"))
}

/// A recording of three segments and a head.
fn written(directory: &Path) {
    let mut facts = Facts::default();
    facts.record(Span::ZERO, timeline::facts::SWAPPINESS, "60");
    let mut number = 0;
    for part in 0..4 {
        let options = WriterOptions {
            patient: true,
            // The last file stays in the head, as after a kill.
            sealer: (part == 3).then(|| vec!["true".into()]),
            ..WriterOptions::default()
        };
        let mut writer = writer(directory, &facts, &options);
        for _ in 0..150 {
            number += 1;
            let sample = sample(number);
            writer.begin(sample.stamp);
            writer.rows(&sample);
            writer.end();
            if number.is_multiple_of(40) {
                writer.event(&event(&sample));
            }
        }
        writer.facts(sample(number).stamp, &facts);
        writer.close().unwrap();
    }
}

fn sample(number: u64) -> Sample {
    let mut sample = Sample::default();
    sample.stamp = Stamp {
        boot: Span::from_secs(number),
        awake: Some(Span::from_secs(number)),
        wall: Some(WallClock::from_unix_nanos(
            (1_795_000_000 + number.cast_signed()) * 1_000_000_000,
        )),
        boot_id: timeline::BootId::from_bytes([7; 16]),
    };
    let scattered = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20;
    sample.host.set(MEM_FREE, Bytes::new(scattered));
    sample.host.set(PSWPIN, Pages::new(number * number));
    let row = sample.table_mut(Entity::Cgroup).entry("/web");
    row.row.set(CGROUP_CURRENT, Bytes::new(scattered >> 3));
    sample
}

fn event(sample: &Sample) -> Event {
    Event {
        stamp: sample.stamp,
        kind: EventKind::CgroupLimit,
        subject: "/web".to_owned(),
        text: format!("a limit at {}", sample.stamp.boot),
        report: String::new(),
    }
}

fn files(directory: &Path) -> Vec<PathBuf> {
    let mut all = Vec::new();
    let mut entries: Vec<_> =
        std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            all.extend(files(&path));
        } else {
            all.push(path);
        }
    }
    all
}

fn copy_all(from: &Path, to: &Path, files: &[PathBuf]) {
    for file in files {
        let target = to.join(file.strip_prefix(from).unwrap());
        std::fs::create_dir_all(target.parent().unwrap()).unwrap();
        std::fs::copy(file, target).unwrap();
    }
}

/// Damages a file; returns how.
fn damage(path: &Path, dice: &Dice) -> String {
    let mut bytes = std::fs::read(path).unwrap();
    if bytes.is_empty() {
        return "nothing".to_owned();
    }
    let at = dice.index(bytes.len());
    let what = match dice.below(4) {
        0 | 1 => {
            let bit = dice.below(8);
            bytes[at] ^= 1 << bit;
            format!("bit {bit} of byte {at} flipped")
        }
        2 => {
            bytes.truncate(at);
            format!("cut at byte {at}")
        }
        _ => {
            let len = 1 + dice.index(512);
            for byte in bytes.iter_mut().skip(at).take(len) {
                *byte = u8::try_from(dice.below(256)).unwrap();
            }
            format!("{len} bytes from byte {at} replaced")
        }
    };
    std::fs::write(path, bytes).unwrap();
    what
}
