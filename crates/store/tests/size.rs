//! A recording stays as large and as long as it was asked to be, all files counted, however long it goes on.
#![allow(clippy::unwrap_used, missing_docs)]

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use store::{HostIdentity, Recording, Writer, WriterOptions};
use timeline::signals::{MEM_FREE, PROC_MAJFLT, PROC_MINFLT, PROC_RSS_ANON, PROC_UTIME};
use timeline::{Facts, ProcessCells, Sample, Stamp};
use units::{Bytes, Count, Span, Ticks, WallClock};

fn open(directory: &Path, options: WriterOptions) -> Writer {
    let identity = HostIdentity { id: "0123".to_owned(), name: "host".to_owned() };
    Writer::open(directory, &identity, &Facts::default(), options).unwrap()
}

/// Values that no method makes smaller, so that segments are as large as they come.
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 >> 16
    }
}

fn write(writer: &mut Writer, number: u64, processes: u32, noise: &mut Noise) {
    let mut sample = Sample::default();
    sample.stamp = Stamp {
        boot: Span::from_secs(1 + number),
        awake: None,
        wall: Some(WallClock::from_unix_nanos(
            1_700_000_000_000_000_000 + i64::try_from(number).unwrap() * 1_000_000_000,
        )),
        ..Stamp::default()
    };
    sample.host.set(MEM_FREE, Bytes::new(number * 4096));
    writer.begin(sample.stamp);
    writer.rows(&sample);
    writer.begin_processes();
    for pid in 0..processes {
        let mut cells = ProcessCells::default();
        cells.set(PROC_MAJFLT, Count::new(noise.next()));
        cells.set(PROC_MINFLT, Count::new(noise.next()));
        cells.set(PROC_UTIME, Ticks::new(noise.next() >> 16));
        cells.set(PROC_RSS_ANON, Bytes::new(noise.next() & !4095));
        let slot = writer.declare(pid, 1, b"work", "work.service");
        assert!(writer.process(slot, &cells));
    }
    writer.end();
}

/// The disk space of what a directory has.
fn size(directory: &Path) -> u64 {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let sizes = entries.map(|entry| match entry.metadata() {
        Ok(metadata) if metadata.is_dir() => size(&entry.path()) + metadata.blocks() * 512,
        Ok(metadata) => metadata.blocks() * 512,
        Err(_) => 0,
    });
    sizes.sum()
}

#[test]
fn the_smallest_recording_never_takes_more_disk_than_asked_for() {
    let directory = tempfile::tempdir().unwrap();
    let keep_size = Bytes::from_mib(16);
    let options = WriterOptions { keep_size, patient: true, ..WriterOptions::default() };
    let mut writer = open(directory.path(), options);
    // What the recorder keeps beside samples counts as well.
    fs::write(directory.path().join("status.json"), vec![b' '; 4096]).unwrap();
    let mut noise = Noise(0x2545_f491_4f6c_dd1d);
    let (mut largest, mut dropped) = (0, 0);
    let mut before = 0;
    for number in 0..2_400 {
        write(&mut writer, number, 400, &mut noise);
        if number % 4 > 0 {
            // Looking takes longer than writing.
            continue;
        }
        let now = size(directory.path());
        largest = largest.max(now);
        dropped += u64::from(now + (200 << 10) < before);
        before = now;
    }
    writer.close().unwrap();
    assert!(dropped > 3, "it was not filled: {largest}, {dropped}");
    let most = keep_size.get();
    assert!(largest <= most, "{largest} of {most}");
    assert!(largest > keep_size.get() * 8 / 10, "{largest} of {most}");
    let info = Recording::open(directory.path()).unwrap().info(false);
    assert_eq!(info.damage, Vec::<String>::new());
}

#[test]
fn what_is_older_than_asked_for_goes_with_its_segment_and_no_more() {
    let directory = tempfile::tempdir().unwrap();
    let (keep, segment) = (Span::from_mins(20), Span::from_mins(2));
    let options = WriterOptions { keep, segment, patient: true, ..WriterOptions::default() };
    let mut writer = open(directory.path(), options);
    let mut noise = Noise(7);
    (0..3_600).for_each(|number| write(&mut writer, number, 1, &mut noise));
    writer.close().unwrap();
    let recording = Recording::open(directory.path()).unwrap();
    let (from, to) = recording.info(false).span.unwrap();
    let lasts = Span::from_nanos(u64::try_from(to.unix_nanos() - from.unix_nanos()).unwrap());
    assert!(lasts >= keep, "{lasts}");
    // The head and two segments: the one that is not old to its end, and one as the earlier of two clocks counts.
    let most = keep.plus(segment).plus(segment).plus(segment);
    assert!(lasts <= most, "{lasts}");
}
