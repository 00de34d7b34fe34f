//! What a recording takes on disk, beside the least that plain means reach for the same values in the same run.
//!
//! `cargo bench -p memtide-store --bench bytes -- SOURCE`, a capture or a recording of ten minutes or more.
#![allow(clippy::unwrap_used, clippy::print_stdout, missing_docs)]

use std::path::Path;

use store::{HostIdentity, add_timeline};
use timeline::{Entity, Run, Timeline};
use units::Span;

fn main() {
    let Some(capture) = std::env::args().nth(1).filter(|argument| !argument.starts_with('-'))
    else {
        println!("no source was named: cargo bench -p memtide-store --bench bytes -- SOURCE");
        return;
    };
    let opened = import::open(Path::new(&capture), &mut |_| ()).unwrap();
    let timeline = &opened.timeline;
    let temporary = tempfile::tempdir().unwrap();
    let directory = temporary.path().join("recording");
    let host = HostIdentity { id: "bench".to_owned(), name: "bench".to_owned() };
    let before = cpu();
    add_timeline(&directory, &host, timeline, &opened.facts, Span::from_secs(1)).unwrap();
    let sealed = cpu() - before;
    println!("{} samples, written in {sealed:.2} s of CPU", timeline.len());
    let per_sample = |bytes: usize| bytes / timeline.len().max(1);
    for (file, bytes) in files(&directory) {
        println!("{file:20} {bytes:9} bytes  {:6} per sample", per_sample(bytes));
    }
    let columns: Vec<Vec<i64>> = timeline.host_runs().map(|(_, runs)| dense(runs)).collect();
    compare(&directory, "host.parquet", deltas(&columns), 1.4);
    let best = deltas(&dense_processes(timeline)).min(changes(timeline));
    compare(&directory, "process.parquet", best, 1.6);
}

/// CPU time of this thread so far, in seconds.
fn cpu() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    text.split(' ').next().unwrap().parse::<f64>().unwrap() / 1e9
}

/// Sizes of the files of all segments, by name.
fn files(directory: &Path) -> Vec<(String, usize)> {
    let mut sizes = std::collections::BTreeMap::<String, usize>::new();
    for segment in std::fs::read_dir(directory.join("segments")).unwrap() {
        for file in std::fs::read_dir(segment.unwrap().path()).unwrap() {
            let file = file.unwrap();
            let size = usize::try_from(file.metadata().unwrap().len()).unwrap();
            *sizes.entry(file.file_name().to_string_lossy().into_owned()).or_default() += size;
        }
    }
    sizes.into_iter().collect()
}

fn compare(directory: &Path, name: &str, best: usize, gate: f64) {
    let files = files(directory);
    let (_, bytes) = files.iter().find(|(file, _)| file == name).unwrap();
    #[allow(clippy::cast_precision_loss)] // a ratio to print
    let ratio = *bytes as f64 / best as f64;
    println!("{name}: {bytes} bytes, {ratio:.2} × the {best} of deltas and zstd-3 (gate {gate})");
}

/// A reading for each sample of the runs.
fn dense(runs: &[Run]) -> Vec<i64> {
    let samples = runs.iter().flat_map(|run| (run.first()..=run.last()).map(|_| run.value));
    samples.map(u64::cast_signed).collect()
}

fn put(into: &mut Vec<u8>, value: i64) {
    let mut left = ((value << 1) ^ (value >> 63)).cast_unsigned();
    while left > 127 {
        into.push(u8::try_from(left & 127 | 128).unwrap());
        left >>= 7;
    }
    into.push(u8::try_from(left).unwrap());
}

/// Zigzag varints of differences, column by column, with zstd-3: all in one, or each by itself.
fn deltas(columns: &[Vec<i64>]) -> usize {
    let (mut whole, mut each) = (Vec::new(), 0);
    for column in columns {
        let mut bytes = Vec::new();
        let mut before = 0_i64;
        for value in column {
            put(&mut bytes, value.wrapping_sub(before));
            before = *value;
        }
        each += zstd::bulk::compress(&bytes, 3).unwrap().len();
        whole.extend(bytes);
    }
    each.min(zstd::bulk::compress(&whole, 3).unwrap().len())
}

/// For each signal the readings of all processes, one after the other, in every sample in which they were read.
fn dense_processes(timeline: &Timeline) -> Vec<Vec<i64>> {
    let mut columns = std::collections::BTreeMap::<_, Vec<i64>>::new();
    for series in timeline.entities(Entity::Process) {
        for (signal, runs) in series.runs() {
            columns.entry(signal).or_default().extend(dense(runs));
        }
    }
    columns.into_values().collect()
}

/// For each signal where it changed and by how much.
fn changes(timeline: &Timeline) -> usize {
    let mut columns = std::collections::BTreeMap::<_, (Vec<u8>, Vec<u8>)>::new();
    for series in timeline.entities(Entity::Process) {
        for (signal, runs) in series.runs() {
            let (places, values) = columns.entry(signal).or_default();
            let (mut at, mut before) = (0, 0_i64);
            for run in runs {
                let value = run.value.cast_signed();
                put(places, i64::try_from(run.first()).unwrap() - at);
                put(values, value.wrapping_sub(before));
                (at, before) = (i64::try_from(run.first()).unwrap(), value);
            }
        }
    }
    let bytes = columns.into_values().flat_map(|(places, values)| [places, values]);
    zstd::bulk::compress(&bytes.flatten().collect::<Vec<_>>(), 3).unwrap().len()
}
