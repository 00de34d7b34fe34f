//! The status of a recorder, a file in its recording: `status.json`, rewritten every 30 seconds and at the end.
//!
//! Its last field, `crc32`, is the checksum of the text before it, as in other files of a recording.
//!
//! `--status` reads it. So does the next recorder, which continues in the kernel log where this one ended. The file
//! outlives a killed recorder, so it names the process that wrote it: PID, start and boot.

use std::fs::File;
use std::io::{ErrorKind, Read as _, Write as _};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

use jiff::Timestamp;
use probe::{ProcessFiles, Root};
use recorder_status::RecorderStatus;
use serde::Deserialize;
use serde_json::Value;
use timeline::{BootId, EntityRow, Stamp};
use units::{Span, WallClock};

/// Name of the status file in the recording's directory.
pub const FILE: &str = "status.json";
/// Name of the new file before it replaces the old one; never read.
const UNFINISHED: &str = "status.json.tmp";
/// A larger file is not a status.
const STATUS_BYTES_MAX: u64 = 1 << 20;

/// A year, in seconds: nothing that a recorder measures lasts longer than a thousand of them.
const YEAR_S: f64 = 365.25 * 86_400.0;
/// No file, no process and no disk of a recorder is larger.
const BYTES_MAX: f64 = 1.125e15;
/// No recorder counts so far: a thousand million of anything a second, for a month.
const COUNT_MAX: f64 = 1e15;

/// The checksum of the file.
#[derive(Deserialize)]
struct StatusChecksum {
    /// `None` from an earlier memtide, which wrote a field a line.
    crc32: Option<u32>,
}

/// Reads the status in a directory; `None` if there is none, or the file is damaged.
pub fn read(directory: &Path) -> Option<RecorderStatus> {
    let mut text = Vec::new();
    let file = store::open_own(File::options().read(true), &directory.join(FILE)).ok()?;
    file.take(STATUS_BYTES_MAX).read_to_end(&mut text).ok()?;
    let text = text.trim_ascii_end();
    let StatusChecksum { crc32 } = serde_json::from_slice(text).ok()?;
    let is_sound = match crc32 {
        Some(crc32) => store::is_unchanged(text, crc32),
        None => text.contains(&b'\n'),
    };
    let value: Value = serde_json::from_slice(text).ok().filter(|_| is_sound)?;
    let is_possible = is_possible("", &value);
    let status: RecorderStatus = serde_json::from_value(value).ok()?;
    // Without a PID, the file is not a status: even an empty list would parse as one.
    (status.pid > 0 && is_possible).then_some(status)
}

/// Whether the figures of a status are possible. Its fields have their unit at the end of their names.
fn is_possible(name: &str, value: &Value) -> bool {
    match value {
        Value::Object(fields) => fields.iter().all(|(name, value)| is_possible(name, value)),
        Value::Array(values) => values.iter().all(|value| is_possible(name, value)),
        Value::Number(number) => {
            let most = match name.rsplit('_').next() {
                // From the boot.
                Some("ns") => YEAR_S * 1e11,
                Some("s") => YEAR_S * 1e3,
                Some("bytes") => BYTES_MAX,
                _ => COUNT_MAX,
            };
            number.as_f64().is_some_and(|it| (0.0..=most).contains(&it))
        }
        _ => true,
    }
}

/// Writes a status, atomically for readers. On a full disk it overwrites the previous one: that is when a status is
/// needed most.
///
/// # Errors
/// The operating system's; the previous status stays.
pub(crate) fn write(status: &RecorderStatus, directory: &Path) -> std::io::Result<()> {
    let mut text = store::checked_json(status).into_bytes();
    text.push(b'\n');
    let (file, unfinished) = (directory.join(FILE), directory.join(UNFINISHED));
    let new = store::create_draft(&unfinished);
    let written = new.and_then(|mut new| new.write_all(&text));
    let written = written.and_then(|()| std::fs::rename(&unfinished, &file));
    match written {
        Ok(()) => Ok(()),
        Err(error) => {
            // On a full disk its space is needed.
            let _ = std::fs::remove_file(&unfinished);
            if error.kind() == ErrorKind::StorageFull {
                write_over(&file, &text)
            } else {
                Err(error)
            }
        }
    }
}

/// Converts the times of a status of this boot to the wall clock as it is set now.
pub fn on_present_clock(mut status: RecorderStatus, now: Stamp) -> RecorderStatus {
    let boot_id = BootId::from_text(&status.boot_id);
    let present = |boot_ns: Option<u64>| {
        let boot = Span::from_nanos(boot_ns?);
        let then = Stamp { boot, boot_id, ..Stamp::default() };
        timestamp(then.wall_as_set_at(now)?)
    };
    status.started = present(status.started_boot_ns).or(status.started);
    let Some((before, written)) = status.written.zip(present(status.written_boot_ns)) else {
        return status;
    };
    let set_by = written.duration_since(before);
    let samples = &mut status.samples;
    let times = [&mut status.written, &mut samples.last, &mut samples.worst_late];
    let of_heaps = status.heaps.as_mut().map(|heaps| &mut heaps.last);
    for time in times.into_iter().chain(of_heaps) {
        *time = time.and_then(|time| time.checked_add(set_by).ok());
    }
    status
}

/// Whether the process that wrote a status is alive, in the boot in which it was written.
pub fn is_of_living(status: &RecorderStatus, root: &Root) -> bool {
    !status.process.is_empty()
        && boot_id(root).as_deref() == Some(status.boot_id.as_str())
        && process(root, status.pid).as_deref() == Some(status.process.as_str())
}

/// Writes into the blocks that a file already has. A reader during the write finds no status; a later one does.
fn write_over(path: &Path, text: &[u8]) -> std::io::Result<()> {
    let file = store::open_own(File::options().write(true), path)?;
    let room = file.metadata()?.blocks().saturating_mul(512);
    let len = u64::try_from(text.len()).unwrap_or(u64::MAX);
    if len > room {
        return Err(ErrorKind::StorageFull.into());
    }
    file.write_all_at(text, 0)?;
    file.set_len(len)
}

/// Returns the ID of the current boot.
pub(crate) fn boot_id(root: &Root) -> Option<String> {
    probe::boot_id(root).map(|id| id.to_string())
}

/// Returns `PID@START` of a live process.
pub(crate) fn process(root: &Root, pid: u32) -> Option<String> {
    let text = root.read(&format!("/proc/{pid}/stat")).ok()?;
    let mut row = EntityRow::default();
    let mut files = ProcessFiles::default();
    files.parse(pid, "stat", &text, &mut row).ok()?;
    (!row.key.is_empty()).then_some(row.key)
}

/// Converts a wall-clock time for JSON.
pub(crate) fn timestamp(wall: WallClock) -> Option<Timestamp> {
    Timestamp::from_nanosecond(i128::from(wall.unix_nanos())).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_this_process() -> RecorderStatus {
        let root = Root::default();
        RecorderStatus {
            boot_id: boot_id(&root).unwrap(),
            pid: std::process::id(),
            process: process(&root, std::process::id()).unwrap(),
            started: Some(Timestamp::from_second(1_795_240_800).unwrap()),
            ..RecorderStatus::default()
        }
    }

    #[test]
    fn what_is_written_is_read_and_leaves_nothing_else_behind() {
        let directory = tempfile::tempdir().unwrap();
        assert_eq!(read(directory.path()), None);
        let status = of_this_process();
        write(&status, directory.path()).unwrap();
        assert_eq!(read(directory.path()), Some(status));
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
        let gone = directory.path().join("gone");
        assert!(write(&RecorderStatus::default(), &gone).is_err());
    }

    #[test]
    fn times_of_this_boot_are_those_of_the_clock_as_it_is_set_now() {
        let second = |n: i64| Timestamp::from_second(n).unwrap();
        let id = "de91fbcf-0ae3-435d-82e6-8dacd242095d";
        let status = RecorderStatus {
            boot_id: id.to_owned(),
            started: Some(second(24)),
            started_boot_ns: Some(20_000_000_000),
            written: Some(second(54)),
            written_boot_ns: Some(50_000_000_000),
            samples: recorder_status::RecorderSamples {
                last: Some(second(53)),
                ..Default::default()
            },
            ..RecorderStatus::default()
        };
        // The clock was not set at boot; 60 s after boot it is 2026.
        let now = Stamp {
            boot: Span::from_secs(60),
            wall: Some(WallClock::from_unix_nanos(1_795_000_000_000_000_000)),
            boot_id: BootId::from_text(id),
            awake: None,
        };
        let present = on_present_clock(status.clone(), now);
        assert_eq!(present.started, Some(second(1_794_999_960)));
        assert_eq!(present.written, Some(second(1_794_999_990)));
        assert_eq!(present.samples.last, Some(second(1_794_999_989)));
        let other_boot = Stamp { boot_id: BootId::from_bytes([1; 16]), ..now };
        assert_eq!(on_present_clock(status.clone(), other_boot), status);
    }

    #[test]
    fn no_link_is_followed_and_no_pipe_waited_for() {
        let place = tempfile::tempdir().unwrap();
        let (directory, target) = (place.path().join("recording"), place.path().join("target"));
        std::fs::create_dir(&directory).unwrap();
        std::fs::write(&target, "foreign").unwrap();
        for name in [FILE, UNFINISHED] {
            std::os::unix::fs::symlink(&target, directory.join(name)).unwrap();
        }
        assert_eq!(read(&directory), None);
        assert!(write_over(&directory.join(FILE), b"{}").is_err());
        write(&of_this_process(), &directory).unwrap();
        assert_eq!(std::fs::read(&target).unwrap(), b"foreign");
        std::fs::remove_file(directory.join(FILE)).unwrap();
        let pipe = std::process::Command::new("mkfifo").arg(directory.join(FILE)).status();
        assert!(pipe.unwrap().success());
        assert_eq!(read(&directory), None);
    }

    #[test]
    fn on_a_full_disk_the_room_of_the_one_before_is_enough_and_more_is_not_taken() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(FILE);
        std::fs::write(&path, "a longer text\nof before").unwrap();
        write_over(&path, b"short\n").unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "short\n");
        let error = write_over(&path, &vec![b'x'; 1 << 20]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::StorageFull);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "short\n");
    }

    #[test]
    fn other_versions_and_damage_are_read_as_far_as_they_go() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(FILE);
        std::fs::write(&path, "{\n\"pid\": 7, \"samples\": {\"taken\": 3}, \"later\": [1]}")
            .unwrap();
        let status = read(directory.path()).unwrap();
        assert_eq!((status.pid, status.samples.taken), (7, 3));
        for damage in ["", "{\"pid\": 7", "[]", "\0\0\0\0"] {
            std::fs::write(&path, damage).unwrap();
            assert_eq!(read(directory.path()), None, "{damage:?}");
        }
    }

    #[test]
    fn an_altered_byte_is_damage_and_so_is_a_part() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(FILE);
        let mut status = of_this_process();
        status.samples.taken = 812;
        write(&status, directory.path()).unwrap();
        let text = std::fs::read(&path).unwrap();
        for at in 0..text.len() - 1 {
            let mut altered = text.clone();
            altered[at] = if altered[at] == b'7' { b'8' } else { b'7' };
            std::fs::write(&path, &altered).unwrap();
            assert_eq!(read(directory.path()), None, "byte {at}");
            std::fs::write(&path, &text[..at]).unwrap();
            assert_eq!(read(directory.path()), None, "{at} bytes");
        }
        std::fs::write(&path, &text).unwrap();
        assert_eq!(read(directory.path()), Some(status));
    }

    #[test]
    fn impossible_figures_of_an_earlier_memtide_are_none() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(FILE);
        let is_read = |field: &str| {
            std::fs::write(&path, format!("{{\n  \"pid\": 7,\n  {field}\n}}\n")).unwrap();
            read(directory.path()).is_some()
        };
        for (field, expected) in [
            (r#""started_boot_ns": 1795240800000000"#, true),
            (r#""settings": {"keep_s": 1209600.0, "keep_size_bytes": 2147483648}"#, true),
            (r#""settings": {"keep_s": 1e99}"#, false),
            (r#""samples": {"worst_late_s": -1.0}"#, false),
            (r#""samples": {"taken": 9223372036854775807}"#, false),
            (r#""cost": {"rss_bytes": 18446744073709551615}"#, false),
            (r#""heaps": {"cpu_s": 812345678901234567890}"#, false),
        ] {
            assert_eq!(is_read(field), expected, "{field}");
        }
    }

    #[test]
    fn a_process_that_only_has_the_same_pid_is_not_the_recorder() {
        let root = Root::default();
        let status = of_this_process();
        assert!(is_of_living(&status, &root));
        let other = |change: fn(&mut RecorderStatus)| {
            let mut status = of_this_process();
            change(&mut status);
            is_of_living(&status, &root)
        };
        assert!(!other(|status| status.process.push('1')));
        assert!(!other(|status| status.boot_id.push('0')));
        assert!(!is_of_living(&RecorderStatus::default(), &root));
    }
}
