//! A head file of any size is read in little memory, and a recorder begins beside it.
#![allow(clippy::unwrap_used)] // helpers fail as the test does

use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::process::{Resource, Rlimit, setrlimit};
use store::{HostIdentity, Recording, Resolution, Selection, Writer, WriterOptions};
use timeline::signals::MEM_FREE;
use timeline::{Facts, Sample, Timeline};
use units::{Bytes, Span, WallClock};

const CHILD: &str = "MEMTIDE_TEST_WITHIN_A_LIMIT";

/// Runs a test again in a process of its own that may have this much memory. Returns `true` in that process.
fn is_within(test: &str, limit: Bytes) -> bool {
    if std::env::var_os(CHILD).is_none() {
        let mut child = Command::new(std::env::current_exe().unwrap());
        let child = child.args(["--exact", test]).env(CHILD, "1");
        let output = child.output().unwrap();
        assert!(output.status.success(), "{output:?}");
        return false;
    }
    let limit = Rlimit { current: Some(limit.get()), maximum: Some(limit.get()) };
    setrlimit(Resource::Data, limit).unwrap();
    true
}

fn writer(directory: &Path) -> Writer {
    let identity = HostIdentity { id: "0123".to_owned(), name: "host".to_owned() };
    let options = WriterOptions { patient: true, ..WriterOptions::default() };
    Writer::open(directory, &identity, &Facts::default(), options).unwrap()
}

fn write(directory: &Path, seconds: std::ops::Range<u64>) {
    let mut writer = writer(directory);
    for second in seconds {
        let mut sample = Sample::at(Span::from_secs(1 + second));
        let nanos = (1_700_000_000 + second) * 1_000_000_000;
        sample.stamp.wall = Some(WallClock::from_unix_nanos(nanos.cast_signed()));
        sample.host.set(MEM_FREE, Bytes::new(second * 4096));
        writer.begin(sample.stamp);
        writer.rows(&sample);
        writer.end();
    }
    writer.close().unwrap();
}

fn read(directory: &Path) -> (Timeline, Vec<String>) {
    let selection = Selection { resolution: Resolution::Full, ..Selection::default() };
    let loaded = Recording::open(directory).unwrap().load(selection, &mut |_| {});
    (loaded.timeline, loaded.problems)
}

fn first_head(directory: &Path) -> PathBuf {
    directory.join("head/00000001.log")
}

#[test]
fn a_head_of_gib_of_nothing_is_damage_and_a_recorder_begins() {
    let name = "a_head_of_gib_of_nothing_is_damage_and_a_recorder_begins";
    if !is_within(name, Bytes::from_mib(256)) {
        return;
    }
    for size in [Bytes::from_gib(2), Bytes::from_gib(200)] {
        let directory = tempfile::tempdir().unwrap();
        write(directory.path(), 0..20);
        let head = OpenOptions::new().write(true).open(first_head(directory.path()));
        head.unwrap().set_len(size.get()).unwrap();
        let (timeline, problems) = read(directory.path());
        assert_eq!(timeline.len(), 20);
        let is_named = |text: &str| problems.iter().any(|problem| problem.contains(text));
        assert!(is_named(&format!("it has {size}, more")), "{problems:?}");
        assert!(is_named("incomplete frame"), "{problems:?}");
        write(directory.path(), 20..40);
        let (timeline, problems) = read(directory.path());
        assert_eq!(timeline.len(), 40);
        assert!(problems.iter().any(|problem| problem.contains("more than a recorder writes")));
    }
}

#[test]
fn a_head_that_grew_by_noise_costs_no_memory_for_it() {
    let name = "a_head_that_grew_by_noise_costs_no_memory_for_it";
    if !is_within(name, Bytes::from_mib(48)) {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    write(directory.path(), 0..20);
    let head = OpenOptions::new().append(true).open(first_head(directory.path()));
    let mut head = head.unwrap();
    let mut random = 0x2545_f491_4f6c_dd1d_u64;
    let mut noise = Vec::with_capacity(1 << 20);
    while noise.len() < 1 << 20 {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        noise.extend_from_slice(&random.to_le_bytes());
    }
    for _ in 0..100 {
        head.write_all(&noise).unwrap();
    }
    let (timeline, problems) = read(directory.path());
    assert_eq!(timeline.len(), 20);
    assert!(problems[0].contains("incomplete frame"), "{problems:?}");
}
