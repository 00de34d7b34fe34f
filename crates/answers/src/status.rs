//! `memtide record --status`: how the recorder of a directory is doing, from what it wrote last and what lies there.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use probe::Root;
use sampler::status::Status;
use serde::Serialize;
use store::{Recording, StoreError};
use units::{Bytes, Quantity, Span, WallClock};

/// Why the status of a directory is not known.
#[derive(Debug, thiserror::Error)]
pub enum StatusError {
    /// The directory cannot be read.
    #[error("cannot read the directory {}: {error}", directory.display())]
    Directory {
        /// The directory.
        directory: PathBuf,
        /// The operating system's error.
        error: std::io::Error,
    },
    /// The recording cannot be read.
    #[error(transparent)]
    Recording(#[from] StoreError),
}

/// The answer, as programs read it. Lengths of time are seconds, sizes bytes, times RFC 3339.
#[derive(Debug, Serialize)]
pub struct StatusReport {
    /// Form of this answer.
    pub schema: &'static str,
    /// The recording's directory.
    pub directory: String,
    /// How it is with the recorder.
    pub state: RecorderState,
    /// Its PID; absent where it is not known, or none runs.
    pub pid: Option<u32>,
    /// The user who records, or did last: its number; 0 is root. Absent where the recorder wrote nothing yet.
    pub user_id: Option<u32>,
    /// What the recorder wrote last; absent where none did.
    pub recorder: Option<Status>,
    /// What is stored; absent where nothing is.
    pub recording: Option<RecordingStatus>,
}

/// How it is with a recorder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum RecorderState {
    /// It records.
    Running,
    /// It stopped cleanly.
    Stopped,
    /// It ended without stopping: killed, or the machine crashed.
    Gone,
    /// It runs, and its directory is gone.
    Vanished,
    /// Nothing was ever recorded there.
    None,
}

/// What is stored, and how fast it grows.
#[derive(Debug, Serialize)]
pub struct RecordingStatus {
    /// Size of all files.
    pub size_bytes: u64,
    /// Sealed segments.
    pub segments: usize,
    /// The oldest sample.
    pub from: Option<Timestamp>,
    /// The newest sample that is on the disk.
    pub to: Option<Timestamp>,
    /// Free on its file system, for us.
    pub free_bytes: Option<u64>,
    /// How much a day takes, as it went so far; absent for less than ten minutes.
    pub bytes_per_day: Option<f64>,
    /// What is wrong with it, in words.
    pub problems: Vec<String>,
}

/// The answer of `record --status` about a recording's directory.
///
/// # Errors
/// Where the directory, or the recording in it, cannot be read.
pub fn status(directory: &Path) -> Result<StatusReport, StatusError> {
    let mut answer = StatusReport {
        schema: "memtide-recorder/1",
        directory: directory.display().to_string(),
        state: RecorderState::None,
        pid: None,
        user_id: owner(directory),
        recorder: Status::read(directory),
        recording: None,
    };
    match std::fs::read_dir(directory) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            return Err(StatusError::Directory {
                directory: directory.to_owned(),
                error,
            });
        }
        _ if !Recording::is_at(directory) => {
            answer.pid = recorder_without(directory, &Root::default());
            if answer.pid.is_some() {
                answer.state = RecorderState::Vanished;
            }
            return Ok(answer);
        }
        _ => {}
    }
    let info = Recording::open(directory)?.info(false);
    let lives = answer
        .recorder
        .as_ref()
        .filter(|status| status.is_of_living(&Root::default()));
    let pid = lives.map(|status| status.pid);
    answer.state = match (&info.writer, pid, &answer.recorder) {
        // The lock is held by whoever writes, whatever the status says: it may be of the recorder before.
        (Some(_), ..) => RecorderState::Running,
        (None, _, Some(status)) if status.has_ended => RecorderState::Stopped,
        (None, ..) => RecorderState::Gone,
    };
    answer.pid = info.writer.and_then(|known| known.or(pid));
    answer.recording = Some(recording_status(directory, &info));
    Ok(answer)
}

/// Whose status it is: the recorder makes the file anew each time.
fn owner(directory: &Path) -> Option<u32> {
    let status = std::fs::symlink_metadata(directory.join(sampler::status::FILE));
    Some(status.ok()?.uid())
}

/// The PID of a process that records into a directory which is gone, from command lines. A recorder of the default directory
/// does not name it, and is not found.
fn recorder_without(directory: &Path, root: &Root) -> Option<u32> {
    let processes = std::fs::read_dir(root.path("/proc")).ok()?;
    let pids = processes.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    pids.filter(|pid| *pid != std::process::id())
        .find(|pid: &u32| {
            let command = root
                .read(&format!("/proc/{pid}/cmdline"))
                .unwrap_or_default();
            records_into(&command, directory)
        })
}

/// Whether a command line is `memtide record … --to DIRECTORY`.
fn records_into(command: &[u8], directory: &Path) -> bool {
    let words: Vec<&[u8]> = command.split(|byte| *byte == 0).collect();
    let is_named = words
        .windows(2)
        .any(|pair| pair[0] == b"--to" && pair[1] == directory.as_os_str().as_bytes());
    let program = words
        .first()
        .map_or(Path::new(""), |word| Path::new(OsStr::from_bytes(word)));
    let is_ours = program.file_name() == Some(OsStr::new("memtide"));
    let other = [b"--status".as_slice(), b"--from", b"--install", b"--seal"];
    is_ours
        && is_named
        && words.get(1) == Some(&b"record".as_slice())
        && !words.iter().any(|word| other.contains(word))
}

fn recording_status(directory: &Path, info: &store::Info) -> RecordingStatus {
    let time = |wall: WallClock| Timestamp::from_nanosecond(wall.unix_nanos().into()).ok();
    RecordingStatus {
        size_bytes: info.bytes.get(),
        segments: info.segments,
        from: info.span.and_then(|(from, _)| time(from)),
        to: info.span.and_then(|(_, to)| time(to)),
        free_bytes: free(directory),
        bytes_per_day: info.span.and_then(|(from, to)| pace(info.bytes, from, to)),
        problems: info.damage.clone(),
    }
}

/// How much a day takes. A head file is larger than the segment that it becomes, so a short recording seems to grow faster
/// than it will.
fn pace(size: Bytes, from: WallClock, to: WallClock) -> Option<f64> {
    const LEAST: Span = Span::from_mins(10);
    let nanos = to.unix_nanos().checked_sub(from.unix_nanos())?;
    let lasts = Span::from_nanos(u64::try_from(nanos).ok()?);
    (lasts >= LEAST).then(|| size.as_f64() / lasts.as_secs_f64() * 86_400.0)
}

fn free(directory: &Path) -> Option<u64> {
    let stat = rustix::fs::statvfs(directory).ok()?;
    stat.f_bavail.checked_mul(stat.f_frsize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pace_of_a_recording_is_told_when_it_is_long_enough() {
        let at = |seconds: i64| WallClock::from_unix_nanos(seconds * 1_000_000_000);
        let day = pace(Bytes::from_mib(2), at(0), at(3600)).unwrap();
        assert_eq!(Bytes::from_f64(day), Bytes::from_mib(48));
        assert_eq!(pace(Bytes::from_mib(2), at(0), at(60)), None);
        assert_eq!(
            pace(Bytes::from_mib(2), at(9_000), at(0)),
            None,
            "the clock was moved"
        );
    }

    #[test]
    fn a_recorder_is_found_by_what_it_was_told_where_its_directory_is_gone() {
        let place = Path::new("/srv/rec");
        for (command, expected) in [
            ("/usr/bin/memtide\0record\0--to\0/srv/rec\0", true),
            ("memtide\0record\0--every\x005s\0--to\0/srv/rec", true),
            ("memtide\0record\0--to\0/srv/other\0", false),
            ("memtide\0record\0--status\0--to\0/srv/rec\0", false),
            ("vi\0record\0--to\0/srv/rec\0", false),
            ("", false),
        ] {
            assert_eq!(
                records_into(command.as_bytes(), place),
                expected,
                "{command:?}"
            );
        }
    }

    #[test]
    fn where_nothing_was_recorded_nothing_is_told() {
        let directory = tempfile::tempdir().unwrap();
        let answer = status(&directory.path().join("none")).unwrap();
        assert_eq!(answer.state, RecorderState::None);
        assert!(answer.recording.is_none() && answer.recorder.is_none());
    }
}
