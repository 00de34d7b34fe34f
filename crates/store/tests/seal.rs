//! A head becomes a segment: killed at any step, nothing is lost, and what was damaged stays known.
#![allow(clippy::unwrap_used, missing_docs)]

use std::fs;
use std::path::{Path, PathBuf};

use store::{HostIdentity, Recording, Resolution, Selection, Writer, WriterOptions, enforce, seal};
use timeline::signals::{MEM_FREE, PSWPIN};
use timeline::{Facts, Sample, Stamp};
use units::{Bytes, Pages, Span, WallClock};

const BEGINS: i64 = 1_700_000_000;

fn wall(number: u64) -> WallClock {
    WallClock::from_unix_nanos((BEGINS + number.cast_signed()) * 1_000_000_000)
}

/// The clocks of a sample with a number, as of a source that does not name its boots.
fn at(number: u64) -> Stamp {
    Stamp { wall: Some(wall(number)), ..Stamp::default() }
}

/// A recording whose samples, `count` of them, are all in its first head file. Gives that file.
fn recorded(directory: &Path, count: u64) -> PathBuf {
    let host = HostIdentity { id: "0123".to_owned(), name: "host".to_owned() };
    let options = WriterOptions {
        patient: true,
        segment: Span::from_hours(1000),
        // Nobody seals by himself.
        sealer: Some(vec!["true".into()]),
        ..WriterOptions::default()
    };
    let mut known = Facts::default();
    known.record(Span::ZERO, timeline::facts::SWAPPINESS, "60");
    let mut writer = Writer::open(directory, &host, &known, options).unwrap();
    for number in 0..count {
        let mut sample = Sample::at(Span::from_secs(1 + number));
        sample.stamp = Stamp { wall: Some(wall(number)), ..sample.stamp };
        sample.host.set(MEM_FREE, Bytes::new(number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 16));
        sample.host.set(PSWPIN, Pages::new(number * number));
        writer.begin(sample.stamp);
        writer.rows(&sample);
        writer.end();
    }
    writer.close().unwrap();
    let head = directory.join("head/00000001.log");
    assert!(head.exists());
    head
}

/// The samples that a recording gives, each by its number, and its problems.
fn numbers(recording: &Recording) -> (Vec<u64>, Vec<String>) {
    let selection = Selection { resolution: Resolution::Full, ..Selection::default() };
    let loaded = recording.load(selection, &mut |_| ());
    let number = |at: usize| {
        let number = loaded.timeline.stamp(at).unwrap().boot.as_nanos() / 1_000_000_000 - 1;
        let free = Bytes::new(number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 16);
        assert_eq!(loaded.timeline.at(MEM_FREE, at), Some(free));
        number
    };
    ((0..loaded.timeline.len()).map(number).collect(), loaded.problems)
}

fn read(directory: &Path) -> (Vec<u64>, Vec<String>) {
    numbers(&Recording::open(directory).unwrap())
}

fn all(count: u64) -> (Vec<u64>, Vec<String>) {
    ((0..count).collect(), Vec::new())
}

#[test]
fn sealing_twice_is_sealing_once() {
    let directory = tempfile::tempdir().unwrap();
    let head = recorded(directory.path(), 200);
    assert_eq!(seal(directory.path()).unwrap().segments, [1]);
    assert!(!head.exists());
    assert_eq!(read(directory.path()), all(200));
    assert_eq!(seal(directory.path()).unwrap(), store::Sealed::default());
    assert_eq!(read(directory.path()), all(200));
}

#[test]
fn killed_while_it_writes_it_begins_anew() {
    let directory = tempfile::tempdir().unwrap();
    recorded(directory.path(), 200);
    let unfinished = directory.path().join("segments/.tmp-00000001-20231114T221320Z");
    fs::create_dir_all(&unfinished).unwrap();
    fs::write(unfinished.join("host.parquet"), "PAR1 half a file").unwrap();
    assert_eq!(read(directory.path()), all(200));
    assert_eq!(seal(directory.path()).unwrap().segments, [1]);
    assert_eq!(read(directory.path()), all(200));
    assert!(!unfinished.exists());
}

#[test]
fn killed_before_it_removes_the_head_the_segment_counts() {
    let directory = tempfile::tempdir().unwrap();
    let head = recorded(directory.path(), 200);
    let bytes = fs::read(&head).unwrap();
    seal(directory.path()).unwrap();
    fs::write(&head, bytes).unwrap();
    assert_eq!(read(directory.path()), all(200));
    assert_eq!(seal(directory.path()).unwrap().segments, [] as [u64; 0]);
    assert!(!head.exists());
    assert_eq!(read(directory.path()), all(200));
}

#[test]
fn a_reader_finds_what_is_sealed_under_its_hands() {
    let directory = tempfile::tempdir().unwrap();
    recorded(directory.path(), 200);
    let opened = Recording::open(directory.path()).unwrap();
    seal(directory.path()).unwrap();
    assert_eq!(numbers(&opened), all(200));
}

#[test]
fn what_was_damaged_in_the_head_is_told_by_the_segment() {
    let directory = tempfile::tempdir().unwrap();
    let head = recorded(directory.path(), 200);
    let mut bytes = fs::read(&head).unwrap();
    let late = bytes.len() - 2000;
    bytes[late] ^= 0x10;
    fs::write(&head, bytes).unwrap();
    let (before, _) = read(directory.path());
    assert!((100..200).contains(&before.len()), "{}", before.len());
    seal(directory.path()).unwrap();
    let (after, problems) = read(directory.path());
    assert_eq!(after, before);
    let damage = Recording::open(directory.path()).unwrap().info(false).damage;
    for text in [problems.join("\n"), damage.join("\n")] {
        assert!(text.contains("are damaged"), "{text}");
        assert!(text.contains("segments/00000001-"), "{text}");
        assert!(!text.contains(&*directory.path().to_string_lossy()), "{text}");
    }
}

#[test]
fn a_head_of_which_nothing_can_be_read_is_kept_aside_until_there_is_no_room() {
    let directory = tempfile::tempdir().unwrap();
    let head = recorded(directory.path(), 200);
    fs::write(&head, vec![0x5a; 10_000]).unwrap();
    let sealed = seal(directory.path()).unwrap();
    assert_eq!((sealed.unreadable, sealed.segments.len()), (vec![1], 0));
    let aside = head.with_extension("damaged");
    assert_eq!(fs::read(&aside).unwrap().len(), 10_000);
    let info = Recording::open(directory.path()).unwrap().info(false);
    assert!(info.damage[0].contains("it cannot be read at all"), "{:?}", info.damage);
    assert!(info.bytes.get() >= 10_000, "{}", info.bytes);
    let day = Span::from_hours(24);
    let now = at(0);
    let dropped = enforce(directory.path(), day, Bytes::new(5_000), now).unwrap();
    assert_eq!((dropped.parts, aside.exists()), (1, false));
}

#[test]
fn a_long_head_tells_its_ends() {
    let directory = tempfile::tempdir().unwrap();
    let head = recorded(directory.path(), 20_000);
    let length = fs::metadata(&head).unwrap().len();
    assert!(length > 540_000, "{length} bytes are read whole");
    let recording = Recording::open(directory.path()).unwrap();
    assert_eq!(recording.span(), Some((wall(0), wall(19_999))));
    // A torn end is no end.
    let bytes = fs::read(&head).unwrap();
    fs::write(&head, &bytes[..bytes.len() - 200]).unwrap();
    let (first, last) = Recording::open(directory.path()).unwrap().span().unwrap();
    assert_eq!(first, wall(0));
    assert!((wall(19_900)..wall(19_999)).contains(&last), "{last:?}");
}

/// Another head file of the same samples, under another number.
fn another(directory: &Path, sequence: u64, bytes: &[u8]) -> PathBuf {
    let path = directory.join(format!("head/{sequence:08}.log"));
    fs::write(&path, bytes).unwrap();
    path
}

#[test]
fn what_cannot_be_read_stays_and_the_next_is_sealed() {
    let directory = tempfile::tempdir().unwrap();
    let head = recorded(directory.path(), 20);
    let bytes = fs::read(&head).unwrap();
    fs::remove_file(&head).unwrap();
    fs::create_dir(&head).unwrap();
    let nowhere = directory.path().join("head/00000002.log");
    std::os::unix::fs::symlink("itself", &nowhere).unwrap();
    another(directory.path(), 3, &bytes);
    let sealed = seal(directory.path()).unwrap();
    assert_eq!(
        (sealed.left, sealed.segments, sealed.empty),
        (vec![1, 2], vec![3], vec![]),
        "{:?}",
        sealed.problems
    );
    assert!(head.is_dir() && nowhere.is_symlink());
    assert!(sealed.problems[0].contains("00000001.log"), "{:?}", sealed.problems);
    assert_eq!(read(directory.path()).0, all(20).0);
}

#[test]
fn only_a_whole_segment_makes_a_head_superfluous() {
    type Harm = fn(&Path);
    let harms: [(&str, Harm); 4] = [
        ("without segment.json", |segment| {
            fs::remove_file(segment.join("segment.json")).unwrap();
        }),
        ("of another number", |segment| {
            let path = segment.join("segment.json");
            let text = fs::read_to_string(&path).unwrap();
            fs::write(&path, text.replace("\"sequence\":1,", "\"sequence\":2,")).unwrap();
        }),
        ("with a file cut", |segment| {
            fs::write(segment.join("host.parquet"), "PAR1").unwrap();
        }),
        ("empty", |segment| {
            fs::remove_dir_all(segment).unwrap();
            fs::create_dir(segment).unwrap();
        }),
    ];
    for (name, harm) in harms {
        let directory = tempfile::tempdir().unwrap();
        let head = recorded(directory.path(), 20);
        let bytes = fs::read(&head).unwrap();
        seal(directory.path()).unwrap();
        fs::write(&head, bytes).unwrap();
        let segments = fs::read_dir(directory.path().join("segments")).unwrap();
        harm(&segments.last().unwrap().unwrap().path());
        assert_eq!(read(directory.path()).0, all(20).0, "{name}");
        let sealed = seal(directory.path()).unwrap();
        // An empty directory is replaced; in another somebody may find something.
        assert_eq!(head.exists(), name != "empty", "{name}: {sealed:?}");
        assert_eq!(read(directory.path()).0, all(20).0, "{name}");
    }
}

#[test]
fn a_head_without_a_sample_leaves_no_hole() {
    let directory = tempfile::tempdir().unwrap();
    let head = recorded(directory.path(), 20);
    let bytes = fs::read(&head).unwrap();
    // Only the names of what would be in it.
    let nothing = tempfile::tempdir().unwrap();
    let empty = fs::read(recorded(nothing.path(), 0)).unwrap();
    let empty = another(directory.path(), 2, &empty);
    assert_eq!(seal(directory.path()).unwrap().empty, [] as [u64; 0]);
    assert!(empty.exists(), "nothing tells of it yet");
    another(directory.path(), 3, &bytes);
    let sealed = seal(directory.path()).unwrap();
    assert_eq!((sealed.empty, sealed.segments), (vec![2], vec![3]));
    assert!(!empty.exists());
    let (_, problems) = read(directory.path());
    assert!(!problems.join("\n").contains("missing"), "{problems:?}");
}

#[test]
fn what_is_dropped_under_a_readers_hands_is_no_damage() {
    let directory = tempfile::tempdir().unwrap();
    let head = recorded(directory.path(), 20);
    let bytes = fs::read(&head).unwrap();
    seal(directory.path()).unwrap();
    let second = another(directory.path(), 2, &bytes);
    another(directory.path(), 3, &bytes);
    let opened = Recording::open(directory.path()).unwrap();
    assert!(store::drop_oldest(directory.path()).unwrap());
    fs::remove_file(second).unwrap();
    let (found, problems) = numbers(&opened);
    assert_eq!(found, all(20).0);
    assert_eq!(problems, Vec::<String>::new());
}

#[test]
fn only_what_is_the_recordings_own_counts_and_goes() {
    let directory = tempfile::tempdir().unwrap();
    let head = recorded(directory.path(), 20);
    let bytes = fs::read(&head).unwrap();
    seal(directory.path()).unwrap();
    another(directory.path(), 2, &bytes);
    let own = Recording::open(directory.path()).unwrap().info(false).bytes;
    let notes = directory.path().join("segments/00000000-notes");
    fs::create_dir(&notes).unwrap();
    for name in ["export.parquet", "segments/00000000-notes/more", "facts.jsonl"] {
        let file = fs::File::create(directory.path().join(name)).unwrap();
        file.set_len(40 << 20).unwrap();
    }
    let most = own + Bytes::from_mib(2);
    let now = at(20);
    let dropped = enforce(directory.path(), Span::from_hours(1), most, now).unwrap();
    assert_eq!(dropped.parts, 0, "{dropped:?}");
    let dropped = enforce(directory.path(), Span::from_hours(1), Bytes::new(1), now).unwrap();
    assert_eq!(dropped.parts, 1, "{dropped:?}");
    assert!(notes.join("more").exists());
}

#[test]
fn what_lies_beside_a_new_recording_is_not_touched() {
    let parent = tempfile::tempdir().unwrap();
    let place = parent.path().join("kept");
    for name in ["kept.unfinished", &format!("kept.unfinished-{}-0", std::process::id())] {
        fs::create_dir(parent.path().join(name)).unwrap();
        fs::write(parent.path().join(name).join("thesis.txt"), "dear").unwrap();
    }
    let host = HostIdentity { id: "0123".to_owned(), name: "host".to_owned() };
    let source = tempfile::tempdir().unwrap();
    recorded(source.path(), 20);
    let source = Recording::open(source.path()).unwrap();
    let loaded = source.load(Selection::default(), &mut |_| ());
    let every = Span::from_secs(1);
    store::add_timeline(&place, &host, &loaded.timeline, &loaded.facts, every).unwrap();
    assert_eq!(read(&place), all(20));
    let there = fs::read_dir(parent.path()).unwrap().flatten();
    let (whole, others): (Vec<_>, Vec<_>) =
        there.map(|entry| entry.path()).partition(|path| *path == place);
    assert_eq!((whole.len(), others.len()), (1, 2));
    assert!(others.iter().all(|path| path.join("thesis.txt").exists()));
}
