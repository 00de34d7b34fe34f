//! `memtide record --status`: the state of a directory's recorder, from its last status file and the recording.

mod health;

use std::borrow::Cow;
use std::ffi::OsStr;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use probe::{CommandLine, Root};
use report::model::status::{RecorderState, RecordingStatus, STATUS_SCHEMA, StatusReport};
use store::{Recording, StoreError};
use timeline::Stamp;
use units::{Bytes, Quantity, Span, WallClock};

/// Why the status of a directory is unknown.
// The message of a variant says what its fields are.
#[allow(missing_docs)]
#[derive(Debug, thiserror::Error)]
pub enum StatusError {
    /// The directory cannot be read.
    #[error("cannot read the directory {}", directory.display())]
    Directory { directory: PathBuf, source: std::io::Error },
    /// The recording cannot be read.
    #[error(transparent)]
    Recording(#[from] StoreError),
}

impl StatusError {
    /// What to do about it.
    pub fn help(&self) -> Option<Cow<'static, str>> {
        match self {
            Self::Recording(error) => Some(error.help()),
            Self::Directory { source, .. } if source.kind() == ErrorKind::PermissionDenied => {
                Some(Cow::Borrowed("run memtide as the owner of the directory or as root (sudo)"))
            }
            Self::Directory { source, .. } if source.kind() == ErrorKind::NotADirectory => {
                Some(Cow::Borrowed("name the directory of a recording with `--to DIR`"))
            }
            Self::Directory { .. } => None,
        }
    }
}

/// Returns the answer of `record --status` about a recording's directory.
///
/// # Errors
/// If the directory, or the recording in it, cannot be read.
pub fn status(directory: &Path) -> Result<StatusReport, StatusError> {
    let now = probe::now();
    let written = sampler::status::read(directory)
        .map(|status| sampler::status::on_present_clock(status, now));
    let mut report = StatusReport {
        schema: STATUS_SCHEMA,
        directory: directory.display().to_string(),
        state: RecorderState::None,
        pid: None,
        user_id: status_owner(directory),
        health: None,
        recorder: written.clone(),
        recording: None,
    };
    match std::fs::read_dir(directory) {
        Err(source) if source.kind() != ErrorKind::NotFound => {
            return Err(StatusError::Directory { directory: directory.to_owned(), source });
        }
        _ if !Recording::is_at(directory) => {
            report.pid = recorder_without_directory(directory, &Root::default());
            if report.pid.is_some() {
                report.state = RecorderState::Vanished;
            }
            return Ok(report);
        }
        _ => {}
    }
    let info = Recording::open(directory)?.info(false);
    let living_pid = written
        .as_ref()
        .filter(|status| sampler::status::is_of_living(status, &Root::default()))
        .map(|status| status.pid);
    report.state = match (&info.writer, &written) {
        // A writer holds the lock. The status does not decide: the recorder before it may have written it.
        (Some(_), _) => RecorderState::Running,
        (None, Some(status)) if status.has_ended => RecorderState::Stopped,
        (None, _) => RecorderState::Gone,
    };
    report.pid = info.writer.and_then(|lock_pid| lock_pid.or(living_pid));
    let mut recording = recording_status(directory, &info, now);
    if written.is_none() && report.user_id.is_some() {
        let file = sampler::status::FILE;
        recording.problems.push(format!(
            "{file} is damaged, or no regular file: samples, cost and what was not read are unknown"
        ));
    }
    report.recording = Some(recording);
    report.health = now.wall.and_then(timestamp).and_then(|now| health::health(&report, now));
    Ok(report)
}

pub(crate) fn timestamp(wall: WallClock) -> Option<Timestamp> {
    Timestamp::from_nanosecond(wall.unix_nanos().into()).ok()
}

/// Returns the UID of the user who wrote the status; the recorder creates the file anew each time.
fn status_owner(directory: &Path) -> Option<u32> {
    let status = std::fs::symlink_metadata(directory.join(sampler::status::FILE));
    Some(status.ok()?.uid())
}

/// Returns the PID of a process that records into a deleted directory, found by its command line. A recorder of the
/// default directory does not name it there and is not found.
fn recorder_without_directory(directory: &Path, root: &Root) -> Option<u32> {
    probe::command_lines(root)
        .ok()?
        .filter(|process| process.pid != std::process::id())
        .find(|process| records_into(process, directory))
        .map(|process| process.pid)
}

/// Whether a process was started as `memtide record … --to DIRECTORY`.
fn records_into(process: &CommandLine, directory: &Path) -> bool {
    let words = process.words();
    let is_named = words
        .windows(2)
        .any(|pair| pair[0] == b"--to" && pair[1] == directory.as_os_str().as_bytes());
    let program = words.first().map_or(Path::new(""), |word| Path::new(OsStr::from_bytes(word)));
    let is_memtide = program.file_name() == Some(OsStr::new("memtide"));
    let other_modes = [b"--status".as_slice(), b"--from", b"--install", b"--seal"];
    is_memtide
        && is_named
        && words.get(1) == Some(&b"record".as_slice())
        && !words.iter().any(|word| other_modes.contains(word))
}

fn recording_status(directory: &Path, info: &store::Info, now: Stamp) -> RecordingStatus {
    let end = info.end.and_then(|end| end.wall_as_set_at(now).or(end.wall));
    let end = end.or(info.span.map(|(_, to)| to));
    RecordingStatus {
        size_bytes: info.bytes,
        segments: info.segments,
        from: info.span.and_then(|(from, _)| timestamp(from)),
        to: end.and_then(timestamp),
        recorded_s: info.lasts,
        free_bytes: free_bytes(directory),
        bytes_per_day: bytes_per_day(info.bytes, info.lasts),
        problems: info.damage.clone(),
    }
}

/// Returns the growth per day. A head file is larger than the segment made from it, so the growth of a short recording
/// is overestimated.
fn bytes_per_day(size: Bytes, duration: Span) -> Option<f64> {
    const GROWTH_DURATION_MIN: Span = Span::from_mins(10);
    (duration >= GROWTH_DURATION_MIN).then(|| size.as_f64() / duration.as_secs_f64() * 86_400.0)
}

fn free_bytes(directory: &Path) -> Option<Bytes> {
    let stat = rustix::fs::statvfs(directory).ok()?;
    stat.f_bavail.checked_mul(stat.f_frsize).map(Bytes::new)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_is_stated_for_a_recording_that_is_long_enough() {
        let day = bytes_per_day(Bytes::from_mib(2), Span::from_hours(1)).unwrap();
        assert_eq!(Bytes::from_f64(day), Bytes::from_mib(48));
        assert_eq!(bytes_per_day(Bytes::from_mib(2), Span::from_mins(1)), None);
    }

    #[test]
    fn the_recorder_of_a_deleted_directory_is_found_by_its_command_line() {
        let place = Path::new("/srv/rec");
        for (command, expected) in [
            ("/usr/bin/memtide\0record\0--to\0/srv/rec\0", true),
            ("memtide\0record\0--every\x005s\0--to\0/srv/rec", true),
            ("memtide\0record\0--to\0/srv/other\0", false),
            ("memtide\0record\0--status\0--to\0/srv/rec\0", false),
            ("vi\0record\0--to\0/srv/rec\0", false),
            ("", false),
        ] {
            let process = CommandLine { pid: 1, text: command.as_bytes().to_vec() };
            assert_eq!(records_into(&process, place), expected, "{command:?}");
        }
    }

    #[test]
    fn a_directory_without_a_recording_has_no_recorder() {
        let directory = tempfile::tempdir().unwrap();
        let answer = status(&directory.path().join("none")).unwrap();
        assert_eq!(answer.state, RecorderState::None);
        assert!(answer.recording.is_none() && answer.recorder.is_none());
    }
}
