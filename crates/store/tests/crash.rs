//! Whatever happens to a recorder or its disk: what was synced is there and is what was written, what is lost is said, and
//! it goes on by itself.
#![allow(clippy::unwrap_used, clippy::cast_possible_truncation, clippy::print_stdout)] // helpers fail as the test does

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use store::{
    DiskState, HostIdentity, Recording, Resolution, Selection, StoreError, Writer, WriterOptions,
    WriterState,
};
use timeline::signals::{MEM_FREE, PROC_MAJFLT, PSWPIN};
use timeline::{Entity, Facts, ProcessCells, Sample, Stamp, Timeline};
use units::{Bytes, Count, Pages, Span, WallClock};

const CHILD: &str = "MEMTIDE_TEST_RECORD_INTO";

fn identity() -> HostIdentity {
    HostIdentity { id: "0123".to_owned(), name: "host".to_owned() }
}

fn options() -> WriterOptions {
    WriterOptions { patient: true, ..WriterOptions::default() }
}

fn open(directory: &Path, options: WriterOptions) -> Result<Writer, StoreError> {
    Writer::open(directory, &identity(), &Facts::default(), options)
}

/// A writer that waits for no disk, as a recorder's.
fn live(directory: &Path) -> Writer {
    let options = WriterOptions { patient: false, ..options() };
    open(directory, options).unwrap()
}

/// A sample whose contents follow from its number.
fn write(writer: &mut Writer, sample: &mut Sample, number: u64) {
    sample.clear();
    sample.stamp = Stamp {
        boot: Span::from_secs(1 + number),
        awake: None,
        wall: Some(WallClock::from_unix_nanos(
            1_700_000_000_000_000_000 + number as i64 * 1_000_000_000,
        )),
        ..Stamp::default()
    };
    sample.host.set(MEM_FREE, Bytes::new(number * 4096));
    sample.host.set(PSWPIN, Pages::new(number * number));
    writer.begin(sample.stamp);
    writer.rows(sample);
    writer.begin_processes();
    let mut cells = ProcessCells::default();
    cells.set(PROC_MAJFLT, Count::new(number / 2));
    let slot = writer.declare(7, number / 10, b"work", "work.service");
    assert!(writer.process(slot, &cells));
    writer.end();
}

fn read(directory: &Path) -> (Timeline, Vec<String>) {
    let recording = Recording::open(directory).unwrap();
    let selection = Selection { resolution: Resolution::Full, ..Selection::default() };
    let loaded = recording.load(selection, &mut |_| {});
    (loaded.timeline, loaded.problems)
}

/// Every sample is what its number says; gives the numbers.
fn numbers(timeline: &Timeline) -> Vec<u64> {
    let number = |at: usize| {
        let number = timeline.stamp(at).unwrap().boot.as_nanos() / 1_000_000_000 - 1;
        assert_eq!(timeline.at(MEM_FREE, at), Some(Bytes::new(number * 4096)));
        assert_eq!(timeline.at(PSWPIN, at), Some(Pages::new(number * number)));
        let key = format!("7@{}", number / 10);
        let process = timeline.entity(Entity::Process, &key).unwrap();
        assert_eq!(timeline.at_of(process, PROC_MAJFLT, at), Some(Count::new(number / 2)));
        number
    };
    (0..timeline.len()).map(number).collect()
}

/// Not a test of its own: what [`killed_at_any_moment_what_was_synced_is_there`] starts and kills.
#[test]
fn child_that_records_until_it_is_killed() {
    let Some(directory) = std::env::var_os(CHILD) else {
        return;
    };
    let mut writer = open(Path::new(&directory), options()).unwrap();
    let mut sample = Sample::default();
    for number in 0.. {
        write(&mut writer, &mut sample, number);
        println!("synced {}", writer.state().samples_written);
    }
}

#[test]
fn killed_at_any_moment_what_was_synced_is_there() {
    let mut random = 0x2545_f491_4f6c_dd1du64;
    // On CI as many as were promised; at a desk as many as one waits for.
    let rounds = match std::env::var_os("CI") {
        Some(_) => 200,
        None => 40,
    };
    for round in 0..rounds {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let directory = tempfile::tempdir().unwrap();
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "child_that_records_until_it_is_killed", "--nocapture"])
            .env(CHILD, directory.path())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut synced = 0;
        for (count, line) in lines.map_while(Result::ok).enumerate() {
            let told = line.rsplit_once("synced ").and_then(|(_, told)| told.parse().ok());
            synced = told.unwrap_or(synced);
            if count as u64 == 5 + random % 400 {
                std::thread::sleep(Duration::from_micros(random % 1000));
                child.kill().unwrap();
            }
        }
        child.wait().unwrap();
        let (timeline, problems) = read(directory.path());
        let found = numbers(&timeline);
        assert_eq!(found, (0..found.len() as u64).collect::<Vec<_>>(), "round {round}");
        assert!(
            found.len() as u64 >= synced,
            "round {round}: {} of {synced}, {problems:?}",
            found.len()
        );
        // The next recorder goes on.
        let mut writer = open(directory.path(), options()).unwrap();
        write(&mut writer, &mut Sample::default(), 1_000_000);
        writer.close().unwrap();
        assert_eq!(read(directory.path()).0.len(), found.len() + 1, "round {round}");
    }
}

#[test]
fn a_second_recorder_is_refused_and_told_of_the_first() {
    let directory = tempfile::tempdir().unwrap();
    let first = open(directory.path(), options()).unwrap();
    let error = open(directory.path(), options()).unwrap_err();
    assert!(
        matches!(error, StoreError::Locked { pid: Some(pid), .. } if pid == std::process::id()),
        "{error}"
    );
    first.close().unwrap();
    open(directory.path(), options()).unwrap().close().unwrap();
}

#[test]
fn directories_that_are_something_else_are_refused_untouched() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("file");
    std::fs::write(&file, "mine").unwrap();
    let error = open(&file, options()).unwrap_err().to_string();
    assert!(error.contains("as it is a file"), "{error}");
    let error = open(place.path(), options()).unwrap_err().to_string();
    assert!(error.contains("it contains `file`"), "{error}");
    assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 1);

    let theirs = place.path().join("theirs");
    open(&theirs, options()).unwrap().close().unwrap();
    let other = HostIdentity { id: "other".to_owned(), name: "web3".to_owned() };
    let error = Writer::open(&theirs, &other, &Facts::default(), options()).unwrap_err();
    assert!(
        error.to_string().ends_with("is the recording of host, but this host is web3"),
        "{error}"
    );
    std::fs::write(theirs.join("recording.json"), r#"{"format": 3, "new": []}"#).unwrap();
    let error = open(&theirs, options()).unwrap_err();
    assert!(matches!(error, StoreError::OtherFormat { format: 3, known: 2, .. }), "{error}");
}

/// How long the disk thread is waited for: a sync on the disk of a busy host takes seconds.
const PATIENCE: Duration = Duration::from_secs(120);

/// Repeats `step` until the writer's state is as wanted.
fn until(
    writer: &mut Writer,
    is_so: impl Fn(&WriterState) -> bool,
    mut step: impl FnMut(&mut Writer),
) {
    let began = Instant::now();
    while !is_so(&writer.state()) {
        let is_late = began.elapsed() > PATIENCE;
        assert!(!is_late, "it does not come: {:?}", writer.state());
        step(writer);
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Waits for a state that comes with what the disk thread was given so far.
fn wait_for(writer: &mut Writer, is_so: impl Fn(&WriterState) -> bool) {
    until(writer, is_so, |_| ());
}

/// Writes samples from `number` on until the state is as wanted, and returns the next number: a buffer is passed on with
/// the next sample after the disk thread has returned the last one.
fn write_until(
    writer: &mut Writer,
    sample: &mut Sample,
    mut number: u64,
    is_so: impl Fn(&WriterState) -> bool,
) -> u64 {
    until(writer, is_so, |writer| {
        write(writer, sample, number);
        number += 1;
    });
    number
}

#[test]
fn a_directory_that_is_renamed_while_it_is_written_loses_nothing() {
    let place = tempfile::tempdir().unwrap();
    let (directory, away) = (place.path().join("recording"), place.path().join("away"));
    let mut writer = live(&directory);
    let mut sample = Sample::default();
    (0..20).for_each(|number| write(&mut writer, &mut sample, number));
    wait_for(&mut writer, |state| state.waiting == Bytes::ZERO || state.samples_written > 0);
    std::fs::rename(&directory, &away).unwrap();
    let number =
        write_until(&mut writer, &mut sample, 20, |state| state.moved_to.as_deref() == Some(&away));
    assert_eq!(writer.state().disk, DiskState::Ok);
    std::fs::rename(&away, &directory).unwrap();
    let end = number + 20;
    (number..end).for_each(|number| write(&mut writer, &mut sample, number));
    writer.close().unwrap();
    assert_eq!(numbers(&read(&directory).0), (0..end).collect::<Vec<_>>());
}

#[test]
fn a_directory_that_is_made_anew_is_recorded_into_from_the_next_whole_sample_on() {
    let place = tempfile::tempdir().unwrap();
    let directory = place.path().join("recording");
    let mut writer = live(&directory);
    let mut sample = Sample::default();
    (0..20).for_each(|number| write(&mut writer, &mut sample, number));
    // The disk thread may be writing into what is removed.
    while directory.exists() {
        let _ = std::fs::remove_dir_all(&directory);
    }
    let number =
        write_until(&mut writer, &mut sample, 20, |state| state.disk == DiskState::Vanished);
    std::fs::create_dir(&directory).unwrap();
    let number = write_until(&mut writer, &mut sample, number, |state| state.disk == DiskState::Ok);
    let end = number + 160;
    (number..end).for_each(|number| write(&mut writer, &mut sample, number));
    writer.close().unwrap();
    let found = numbers(&read(&directory).0);
    let since = &found[found.len().saturating_sub(160)..];
    assert_eq!(since, (number..end).collect::<Vec<_>>());
}

/// A small file system of its own; `None` where this user may not mount.
struct Small(tempfile::TempDir);

impl Small {
    fn mount() -> Option<Self> {
        let place = tempfile::tempdir().unwrap();
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=2m", "tmpfs"]).arg(place.path());
        let is_done = mount.stderr(Stdio::null()).status().is_ok_and(|status| status.success());
        if !is_done {
            assert!(std::env::var_os("CI").is_none(), "run as root: this test mounts a tmpfs");
            println!("skipped: mounting a tmpfs needs root");
        }
        is_done.then(|| Self(place))
    }

    /// Mounts it with other options. While a file is open for writing it is busy, and cannot become read-only.
    fn remount(&self, option: &str) {
        let began = Instant::now();
        let mut mount = Command::new("mount");
        mount.args(["-o", &format!("remount,{option}")]).arg(self.0.path());
        while !mount.status().unwrap().success() {
            assert!(began.elapsed() < PATIENCE, "it stays busy");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0.path()).status();
    }
}

#[test]
fn a_full_disk_is_said_and_recording_goes_on_when_there_is_room() {
    let Some(disk) = Small::mount() else { return };
    let directory = disk.0.path().join("recording");
    let mut writer = live(&directory);
    let mut sample = Sample::default();
    (0..100).for_each(|number| write(&mut writer, &mut sample, number));
    let ballast = disk.0.path().join("ballast");
    let _ = std::fs::write(&ballast, vec![1; 4 << 20]);
    let mut number = 100;
    while writer.lost() == 0 {
        write(&mut writer, &mut sample, number);
        number += 1;
    }
    wait_for(&mut writer, |state| state.disk == DiskState::Full);
    assert!(writer.state().lost_since.is_some());
    std::fs::remove_file(&ballast).unwrap();
    wait_for(&mut writer, |state| state.disk == DiskState::Ok);
    // The buffer is returned after the disk is known to be well: a sample in between is lost as well.
    let number = write_until(&mut writer, &mut sample, number, |state| state.lost_since.is_none());
    (number..number + 100).for_each(|number| write(&mut writer, &mut sample, number));
    let lost = writer.lost();
    writer.close().unwrap();
    let (timeline, problems) = read(&directory);
    let found = numbers(&timeline);
    assert_eq!(found.len() as u64, number + 100 - lost, "{problems:?}");
    assert_eq!(found.last(), Some(&(number + 99)));
    assert!(
        timeline
            .recorder_events()
            .iter()
            .any(|event| event.text.starts_with(&format!("{lost} samples")))
    );
}

#[test]
fn a_recorder_that_starts_on_a_full_disk_records_when_there_is_room() {
    let Some(disk) = Small::mount() else { return };
    let directory = disk.0.path().join("recording");
    let mut sample = Sample::default();
    let mut writer = live(&directory);
    (0..20).for_each(|number| write(&mut writer, &mut sample, number));
    writer.close().unwrap();
    let ballast = disk.0.path().join("ballast");
    let _ = std::fs::write(&ballast, vec![1; 4 << 20]);
    let mut facts = Facts::default();
    facts.hostname = Some("n".repeat(5000));
    let live = WriterOptions::default();
    let mut writer = Writer::open(&directory, &identity(), &facts, live).unwrap();
    assert_eq!(writer.state().disk, DiskState::Full);
    (20..40).for_each(|number| write(&mut writer, &mut sample, number));
    std::fs::remove_file(&ballast).unwrap();
    wait_for(&mut writer, |state| state.disk == DiskState::Ok);
    writer.close().unwrap();
    let (timeline, problems) = read(&directory);
    assert_eq!(numbers(&timeline), (0..40).collect::<Vec<_>>());
    assert!(problems.is_empty(), "{problems:?}");
    // What waits for its disk would wait for ever.
    let _ = std::fs::write(&ballast, vec![1; 4 << 20]);
    assert!(open(&directory, options()).is_err());
}

#[test]
fn a_disk_that_may_only_be_read_is_said_and_nothing_is_lost() {
    let Some(disk) = Small::mount() else { return };
    let directory = disk.0.path().join("recording");
    let mut writer = live(&directory);
    let mut sample = Sample::default();
    (0..20).for_each(|number| write(&mut writer, &mut sample, number));
    wait_for(&mut writer, |state| state.samples_written > 0);
    disk.remount("ro");
    let end = write_until(&mut writer, &mut sample, 20, |state| state.disk == DiskState::ReadOnly);
    disk.remount("rw");
    wait_for(&mut writer, |state| state.disk == DiskState::Ok);
    writer.close().unwrap();
    assert_eq!(numbers(&read(&directory).0), (0..end).collect::<Vec<_>>());
}

#[test]
fn a_recorder_that_was_killed_leaves_an_event_and_one_that_ended_leaves_none() {
    let place = tempfile::tempdir().unwrap();
    let (directory, copy) = (place.path().join("recording"), place.path().join("killed"));
    let mut sample = Sample::default();
    let mut writer = open(&directory, options()).unwrap();
    assert_eq!(writer.before(), None);
    (0..20).for_each(|number| write(&mut writer, &mut sample, number));
    wait_for(&mut writer, |state| state.samples_written > 0);
    // What a kill leaves.
    copy_all(&directory, &copy);
    writer.close().unwrap();
    for (place, was_killed) in [(&directory, false), (&copy, true)] {
        let mut writer = open(place, options()).unwrap();
        assert_eq!(writer.before().is_some(), was_killed);
        (40..50).for_each(|number| write(&mut writer, &mut sample, number));
        writer.close().unwrap();
        let (timeline, _) = read(place);
        let last = numbers(&timeline).iter().position(|n| *n == 40).unwrap() - 1;
        let ended = timeline.stamp(last).unwrap().boot;
        let lasted = Span::from_secs(41).saturating_sub(ended);
        let noted = timeline.recorder_events().iter().map(|event| event.text.clone());
        let said = format!("killed or the machine went down: nothing was recorded for {lasted}");
        let times = noted.filter(|text| text.ends_with(&said)).count();
        assert_eq!(times, usize::from(was_killed), "{:?}", timeline.recorder_events());
    }
}

#[test]
fn a_recorder_that_was_killed_before_its_first_sample_leaves_an_event() {
    let place = tempfile::tempdir().unwrap();
    let (directory, copy) = (place.path().join("recording"), place.path().join("killed"));
    let mut sample = Sample::default();
    let mut writer = open(&directory, options()).unwrap();
    (0..20).for_each(|number| write(&mut writer, &mut sample, number));
    writer.close().unwrap();
    // It has begun a file, and no more.
    let writer = open(&directory, options()).unwrap();
    copy_all(&directory, &copy);
    let head = std::fs::read_dir(copy.join("head")).unwrap().next().unwrap().unwrap().path();
    assert!(head.metadata().unwrap().len() > 0);
    drop(writer);
    let mut writer = open(&copy, options()).unwrap();
    assert!(writer.before().is_some());
    (40..50).for_each(|number| write(&mut writer, &mut sample, number));
    writer.close().unwrap();
    let (timeline, _) = read(&copy);
    let noted = timeline.recorder_events().iter();
    let kills = noted.filter(|event| event.text.contains("killed or the machine went down"));
    assert_eq!(kills.count(), 1, "{:?}", timeline.recorder_events());
}

fn copy_all(from: &Path, to: &Path) {
    std::fs::create_dir(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let place = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy_all(&entry.path(), &place);
        } else {
            std::fs::copy(entry.path(), place).unwrap();
        }
    }
}

#[test]
fn the_number_of_an_empty_head_is_used_again_and_one_without_a_next_is_refused_and_stays() {
    let directory = tempfile::tempdir().unwrap();
    let mut sample = Sample::default();
    let mut writer = open(directory.path(), options()).unwrap();
    (0..20).for_each(|number| write(&mut writer, &mut sample, number));
    writer.close().unwrap();
    // Killed before its first sample reached the disk.
    for _ in 0..3 {
        open(directory.path(), options()).unwrap().close().unwrap();
    }
    let mut writer = open(directory.path(), options()).unwrap();
    (20..40).for_each(|number| write(&mut writer, &mut sample, number));
    writer.close().unwrap();
    let (timeline, problems) = read(directory.path());
    assert_eq!(numbers(&timeline), (0..40).collect::<Vec<_>>());
    let missing = problems.iter().filter(|told| told.contains("is missing"));
    assert_eq!(missing.count(), 0, "{problems:?}");
    let last = directory.path().join(format!("head/{}.log", u64::MAX));
    std::fs::write(&last, "somebody's").unwrap();
    let refused = open(directory.path(), options()).unwrap_err();
    let told = timeline::with_causes(&refused);
    assert!(told.contains(&format!("the number {}", u64::MAX)), "{told}");
    assert_eq!(std::fs::read(&last).unwrap(), b"somebody's");
}

#[test]
fn no_file_that_a_link_leads_to_is_written_to() {
    for name in ["lock", ".recording.json", "facts.jsonl"] {
        let place = tempfile::tempdir().unwrap();
        let (directory, target) = (place.path().join("recording"), place.path().join("target"));
        std::fs::create_dir(&directory).unwrap();
        std::fs::write(&target, "somebody's").unwrap();
        std::os::unix::fs::symlink(&target, directory.join(name)).unwrap();
        if let Ok(mut writer) = open(&directory, options()) {
            write(&mut writer, &mut Sample::default(), 0);
            let _ = writer.close();
        }
        assert_eq!(std::fs::read(&target).unwrap(), b"somebody's", "{name}");
    }
}
