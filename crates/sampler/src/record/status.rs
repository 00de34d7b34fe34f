//! How a recorder is doing, as a file in its recording: `status.json`, written anew every half a minute and at the end.
//!
//! It is for `--status`, and for the next recorder, which reads on in the kernel log where this one ended.
//! It outlives a recorder that was killed, so it names the process that wrote it: PID, start and boot. Lengths of time are
//! seconds, sizes bytes, times RFC 3339. Fields that an older or later memtide does not have are absent.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read as _, Write as _};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

use jiff::Timestamp;
use probe::{ProcessFiles, Root};
use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};
use timeline::EntityRow;
use units::WallClock;

/// Its name in the recording's directory.
pub const FILE: &str = "status.json";
/// What is written before it takes the other's place; never read.
const UNFINISHED: &str = "status.json.tmp";
/// More than this is no status.
const LONGEST: u64 = 1 << 20;

/// How a recorder is doing.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Status {
    /// Version of memtide that records.
    pub memtide: String,
    /// Which boot of which machine: `/proc/sys/kernel/random/boot_id`.
    pub boot_id: String,
    /// The recorder's PID.
    pub pid: u32,
    /// `PID@START`, START in clock ticks since boot: distinguishes it from a later process with its PID.
    pub process: String,
    /// Whether it has ended in good order.
    pub has_ended: bool,
    /// When it began.
    pub started: Option<Timestamp>,
    /// When this was written.
    pub written: Option<Timestamp>,
    /// How it records.
    pub settings: SettingsStatus,
    /// Its samples.
    pub samples: Samples,
    /// What it costs.
    pub cost: Cost,
    /// What it scanned last.
    pub seen: Seen,
    /// How processes are read, and why not better; absent where they are not read.
    pub tasks_source: Option<String>,
    /// What it was allowed and refused, in words.
    pub privileges: Vec<String>,
    /// Kernel files that it cannot read.
    pub absent: Vec<Absent>,
    /// How its disk is doing.
    pub disk: DiskStatus,
    /// How it reads the kernel log.
    pub kernel_log: KernelLogStatus,
    /// Events that found no room on their way to the disk.
    pub events_lost: u64,
}

/// The options of a recorder.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct SettingsStatus {
    /// From sample to sample.
    pub every_s: f64,
    /// From scan to scan of processes; absent: none.
    pub processes_s: Option<f64>,
    /// How long samples are stored.
    pub keep_s: f64,
    /// How much is stored at most.
    pub keep_size_bytes: u64,
    /// What may be lost when the power fails.
    pub sync_s: f64,
}

/// A recorder's samples.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Samples {
    /// Taken since it began.
    pub taken: u64,
    /// Beats that passed without a sample.
    pub missed: u64,
    /// Taken late by more than a tenth of the distance between two.
    pub late: u64,
    /// Taken, and lost, as the disk did not take them.
    pub lost: u64,
    /// When the last was taken.
    pub last: Option<Timestamp>,
    /// How late it was.
    pub last_late_s: f64,
    /// How late the latest one was.
    pub worst_late_s: f64,
    /// When that was.
    pub worst_late: Option<Timestamp>,
}

/// What a recorder costs, sealing included.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Cost {
    /// CPU time since it began.
    pub cpu_s: f64,
    /// What of it starting took: loading the BPF program, the first scan of everything.
    pub cpu_start_s: Option<f64>,
    /// CPU time of each sample, without starting; absent until there are three.
    pub cpu_s_per_sample: Option<f64>,
    /// The same as a share of one CPU.
    pub cpu_share: Option<f64>,
    /// Resident memory.
    pub rss_bytes: u64,
    /// Its proportional share of it (PSS).
    pub pss_bytes: Option<u64>,
}

/// What a recorder scanned last.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Seen {
    /// Processes.
    pub processes: u64,
    /// Processes beyond the bound.
    pub processes_left_out: u64,
    /// Cgroups.
    pub groups: u64,
    /// Cgroups beyond the bound.
    pub groups_left_out: u64,
    /// From scan to scan of cgroups: longer than set where there are so many that a scan costs too much.
    pub groups_every_s: Option<f64>,
    /// Services.
    pub services: u64,
    /// Proportional shares of processes read since it began.
    pub shares_read: u64,
    /// Processes with a share that is due.
    pub shares_waiting: u64,
    /// Processes left alone, as they did not answer in time.
    pub blocked: u64,
}

/// A kernel file that cannot be read.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Absent {
    /// Which.
    pub file: String,
    /// Why, in words.
    pub why: String,
}

/// How a recorder's disk is doing.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct DiskStatus {
    /// What is wrong, in words; absent where nothing is.
    pub problem: Option<String>,
    /// Samples that are safe.
    pub samples_written: u64,
    /// Parts of the recording, the oldest first, that were dropped because the disk was full.
    pub parts_dropped: u64,
    /// Since when samples are being lost.
    pub lost_since: Option<Timestamp>,
    /// What is in memory only.
    pub waiting_bytes: u64,
    /// What went wrong last, in words; it may be over.
    pub last_error: Option<String>,
}

/// How a recorder reads the kernel log.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct KernelLogStatus {
    /// Why it is not read.
    pub problem: Option<String>,
    /// The number of the first record that is not reported yet, in this boot.
    pub next: Option<u64>,
    /// Records that were overwritten before they were read.
    pub overwritten: u64,
    /// Reports of kills and failed allocations stored since it began.
    pub reports: u64,
}

impl Status {
    /// The status that a directory holds; `None` where there is none, or what is there is none.
    pub fn read(directory: &Path) -> Option<Self> {
        let mut text = Vec::new();
        let file = open_own(File::options().read(true), &directory.join(FILE)).ok()?;
        file.take(LONGEST).read_to_end(&mut text).ok()?;
        let status: Self = serde_json::from_slice(&text).ok()?;
        // An empty list would be a status of nothing, too.
        (status.pid > 0).then_some(status)
    }

    /// Writes it, atomically for readers. On a full disk it takes the room of the one before: then of all times
    /// it is wanted.
    ///
    /// # Errors
    /// The operating system's; what was there before stays.
    pub fn write(&self, directory: &Path) -> std::io::Result<()> {
        let mut text = serde_json::to_vec_pretty(self)?;
        text.push(b'\n');
        let (file, unfinished) = (directory.join(FILE), directory.join(UNFINISHED));
        // What a kill, or anybody else, left there: it is not written to.
        let _ = std::fs::remove_file(&unfinished);
        let new = open_own(File::options().write(true).create_new(true), &unfinished);
        let written = new.and_then(|mut new| new.write_all(&text));
        let written = written.and_then(|()| std::fs::rename(&unfinished, &file));
        match written {
            Ok(()) => Ok(()),
            Err(error) => {
                // On a full disk it is worth its room.
                let _ = std::fs::remove_file(&unfinished);
                if error.kind() == ErrorKind::StorageFull {
                    write_over(&file, &text)
                } else {
                    Err(error)
                }
            }
        }
    }

    /// Whether the process that wrote it lives, in the boot that it was written in.
    pub fn is_of_living(&self, root: &Root) -> bool {
        !self.process.is_empty()
            && boot_id(root).as_deref() == Some(self.boot_id.as_str())
            && process(root, self.pid).as_deref() == Some(self.process.as_str())
    }
}

/// Opens a file that must be a regular one and no symbolic link: a user who may write to the directory must not choose what
/// else is written to, nor keep us waiting at a pipe.
fn open_own(options: &mut OpenOptions, path: &Path) -> std::io::Result<File> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits();
    let file = options.custom_flags(flags.cast_signed()).open(path)?;
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(std::io::Error::other("it is not a regular file"))
    }
}

/// Writes into the blocks that a file has already. A reader in this moment finds no status, and one in the next.
fn write_over(path: &Path, text: &[u8]) -> std::io::Result<()> {
    let file = open_own(File::options().write(true), path)?;
    let room = file.metadata()?.blocks().saturating_mul(512);
    let len = u64::try_from(text.len()).unwrap_or(u64::MAX);
    if len > room {
        return Err(ErrorKind::StorageFull.into());
    }
    file.write_all_at(text, 0)?;
    file.set_len(len)
}

/// Which boot this is.
pub(crate) fn boot_id(root: &Root) -> Option<String> {
    let text = root.read("/proc/sys/kernel/random/boot_id").ok()?;
    let id = probe::text::lossy(probe::text::trim(&text)).into_owned();
    (!id.is_empty()).then_some(id)
}

/// `PID@START` of a process that lives.
pub(crate) fn process(root: &Root, pid: u32) -> Option<String> {
    let text = root.read(&format!("/proc/{pid}/stat")).ok()?;
    let mut row = EntityRow::default();
    let mut files = ProcessFiles::default();
    files.parse(pid, "stat", &text, &mut row).ok()?;
    (!row.key.is_empty()).then_some(row.key)
}

/// A wall clock's time as JSON has it.
pub(crate) fn timestamp(wall: WallClock) -> Option<Timestamp> {
    Timestamp::from_nanosecond(i128::from(wall.unix_nanos())).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_this_process() -> Status {
        let root = Root::default();
        Status {
            boot_id: boot_id(&root).unwrap(),
            pid: std::process::id(),
            process: process(&root, std::process::id()).unwrap(),
            started: Some(Timestamp::from_second(1_795_240_800).unwrap()),
            ..Status::default()
        }
    }

    #[test]
    fn what_is_written_is_read_and_leaves_nothing_else_behind() {
        let directory = tempfile::tempdir().unwrap();
        assert_eq!(Status::read(directory.path()), None);
        let status = of_this_process();
        status.write(directory.path()).unwrap();
        assert_eq!(Status::read(directory.path()), Some(status));
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
        let gone = directory.path().join("gone");
        assert!(Status::default().write(&gone).is_err());
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
        assert_eq!(Status::read(&directory), None);
        assert!(write_over(&directory.join(FILE), b"{}").is_err());
        of_this_process().write(&directory).unwrap();
        assert_eq!(std::fs::read(&target).unwrap(), b"foreign");
        std::fs::remove_file(directory.join(FILE)).unwrap();
        let pipe = std::process::Command::new("mkfifo")
            .arg(directory.join(FILE))
            .status();
        assert!(pipe.unwrap().success());
        assert_eq!(Status::read(&directory), None);
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
        std::fs::write(
            &path,
            r#"{"pid": 7, "samples": {"taken": 3}, "later": [1]}"#,
        )
        .unwrap();
        let status = Status::read(directory.path()).unwrap();
        assert_eq!((status.pid, status.samples.taken), (7, 3));
        for damage in ["", "{\"pid\": 7", "[]", "\0\0\0\0"] {
            std::fs::write(&path, damage).unwrap();
            assert_eq!(Status::read(directory.path()), None, "{damage:?}");
        }
    }

    #[test]
    fn a_process_that_only_has_the_same_pid_is_not_the_recorder() {
        let root = Root::default();
        let status = of_this_process();
        assert!(status.is_of_living(&root));
        let other = |change: fn(&mut Status)| {
            let mut status = of_this_process();
            change(&mut status);
            status.is_of_living(&root)
        };
        assert!(!other(|status| status.process.push('1')));
        assert!(!other(|status| status.boot_id.push('0')));
        assert!(!Status::default().is_of_living(&root));
    }
}
