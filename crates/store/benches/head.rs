//! What the head costs: nanoseconds for a host sample and for a process, bytes, and how fast it is read.
//!
//! `cargo bench -p memtide-store --bench head`
#![allow(missing_docs, clippy::print_stdout)]

use std::time::Instant;

use store::{HostIdentity, Recording, Resolution, Selection, Writer, WriterOptions};
use timeline::{Entity, Facts, ProcessCells, Sample, SignalId, Stamp};
use units::{Span, WallClock};

const SAMPLES: u64 = 3_600;
const PROCESSES: usize = 2_000;

/// A generator of the kind that any bench may have: the same numbers each time.
fn next(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

fn stamp(number: u64) -> Stamp {
    let boot = Span::from_nanos(number * 1_000_000_000 + number % 7 * 10_000);
    Stamp {
        boot,
        awake: Some(boot),
        wall: Some(WallClock::from_unix_nanos(1_700_000_000_000_000_000).plus(boot)),
        ..Stamp::default()
    }
}

/// A busy host: 130 of its 208 signals move, most by little.
fn host(sample: &mut Sample, values: &mut [u64], random: &mut u64) {
    for (place, value) in values.iter_mut().enumerate() {
        if place % 8 < 5 {
            let step = next(random) % [4, 200, 40, 3000, 16][place % 5];
            *value = value.wrapping_add(step * [1, 1, 1, 1, 4096][place % 5]);
        }
        if let Some(signal) = SignalId::from_index(place) {
            sample.host.set_raw(signal, *value);
        }
    }
}

fn open(directory: &std::path::Path) -> Writer {
    let identity = HostIdentity { id: "bench".to_owned(), name: "bench".to_owned() };
    let options =
        WriterOptions { patient: true, segment: Span::from_hours(99), ..WriterOptions::default() };
    Writer::open(directory, &identity, &Facts::default(), options).expect("a directory of its own")
}

fn hosts() {
    let place = tempfile::tempdir().expect("room for a recording");
    let directory = place.path().join("recording");
    let mut writer = open(&directory);
    let (mut sample, mut random) = (Sample::default(), 1);
    let mut values = vec![1 << 30; Entity::Host.signals().len()];
    let mut taken = 0;
    for number in 0..SAMPLES {
        sample.clear();
        sample.stamp = stamp(number);
        host(&mut sample, &mut values, &mut random);
        let begun = Instant::now();
        writer.begin(sample.stamp);
        writer.rows(&sample);
        writer.end();
        taken += begun.elapsed().as_nanos();
    }
    writer.close().expect("written");
    println!("host: {} ns a sample of {} signals", taken / u128::from(SAMPLES), values.len());
    let files = std::fs::read_dir(directory.join("head")).expect("a head").flatten();
    let bytes: u64 = files.map(|file| file.metadata().map_or(0, |meta| meta.len())).sum();
    println!("host: {} bytes a sample", bytes / SAMPLES);
    let begun = Instant::now();
    let selection = Selection { resolution: Resolution::Full, ..Selection::default() };
    let loaded = Recording::open(&directory).expect("a recording").load(selection, &mut |_| {});
    println!("read: {:?} for {} samples", begun.elapsed(), loaded.timeline.len());
}

fn processes(changing: usize) {
    let place = tempfile::tempdir().expect("room for a recording");
    let mut writer = open(&place.path().join("recording"));
    let signals: Vec<SignalId> =
        Entity::Process.signals().filter_map(SignalId::from_index).collect();
    let mut cells = vec![ProcessCells::default(); PROCESSES];
    writer.begin(stamp(0));
    writer.begin_processes();
    let mut slots = Vec::new();
    for (index, cells) in (0..).zip(&mut cells) {
        signals.iter().take(20).for_each(|signal| cells.set_raw(*signal, u64::from(index) * 1000));
        let slot = writer.declare(index, 100, b"process", "some.service");
        writer.process(slot, cells);
        slots.push(slot);
    }
    writer.end();
    let mut taken = 0;
    const ROUNDS: u64 = 300;
    // Between samples a recorder reads kernel files, and its caches go cold.
    let mut cold = vec![1u8; 16 << 20];
    for number in 1..ROUNDS {
        for cells in cells.iter_mut().take(changing) {
            signals[8..13].iter().for_each(|signal| cells.set_raw(*signal, number * 77));
        }
        cold.iter_mut().step_by(64).for_each(|byte| *byte = byte.wrapping_add(1));
        let begun = Instant::now();
        writer.begin(stamp(number));
        writer.begin_processes();
        for (slot, cells) in slots.iter().zip(&cells) {
            writer.process(*slot, cells);
        }
        writer.end();
        taken += begun.elapsed().as_nanos();
    }
    let each = taken / u128::from(ROUNDS - 1);
    println!(
        "{PROCESSES} processes, {changing} of them changing: {} µs, {} ns each",
        each / 1000,
        each / PROCESSES as u128
    );
}

fn main() {
    hosts();
    processes(0);
    processes(PROCESSES / 20);
    processes(PROCESSES);
}
