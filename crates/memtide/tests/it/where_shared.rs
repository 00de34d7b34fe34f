//! `where` names the owners of shared memory: this test takes some of each kind and looks for it.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;

use rustix::fs::{MemfdFlags, memfd_create};
use serde_json::Value;

use crate::support::{asked_until, json, memtide};

const MIB: u64 = 1 << 20;

/// Parts of shared memory, as `where` prints them.
fn shared_parts() -> Vec<Value> {
    let report = json(&memtide(&["where", "--format", "json"]));
    let branches = report["tree"]["children"].as_array().unwrap();
    let shared = branches.iter().find(|node| node["label"] == "shared memory");
    shared.map_or_else(Vec::new, |node| node["children"].as_array().unwrap().clone())
}

fn part<'a>(parts: &'a [Value], label: &str) -> Option<&'a Value> {
    parts.iter().find(|part| part["label"] == label)
}

fn bytes(part: Option<&Value>) -> u64 {
    part.map_or(0, |part| part["bytes"].as_u64().unwrap())
}

fn is_near(found: u64, taken: u64) -> bool {
    found.abs_diff(taken) * 20 <= taken
}

/// Only one test at a time takes shared memory.
static TAKEN: Mutex<()> = Mutex::new(());

/// Asks `where` until it shows what was taken: if other programs take shared memory between its readings, sizes are
/// scaled.
#[track_caller]
fn parts_that(show: impl Fn(&[Value]) -> bool) -> Vec<Value> {
    let parts = asked_until(shared_parts, |parts| show(parts));
    assert!(show(&parts), "{parts:#?}");
    parts
}

fn fill(mut file: impl Write, mib: u64) {
    let block = vec![7; 1 << 20];
    for _ in 0..mib {
        file.write_all(&block).unwrap();
    }
}

/// A file that is removed with the test.
struct TemporaryFile(PathBuf);

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// A System V segment that no process has attached, removed with the test.
struct DetachedSegment(libc::c_int);

impl DetachedSegment {
    /// Makes a segment and writes all of it.
    #[allow(unsafe_code)]
    fn of(mib: u64) -> Self {
        let size = usize::try_from(mib * MIB).unwrap();
        // SAFETY: shmget takes numbers only.
        let id = unsafe { libc::shmget(libc::IPC_PRIVATE, size, libc::IPC_CREAT | 0o600) };
        assert!(id >= 0, "{}", std::io::Error::last_os_error());
        let segment = Self(id);
        // SAFETY: the kernel chooses the address of a new mapping of `size` bytes; nothing keeps it after shmdt.
        unsafe {
            let start = libc::shmat(id, std::ptr::null(), 0);
            assert!(start.addr() != usize::MAX, "{}", std::io::Error::last_os_error());
            start.cast::<u8>().write_bytes(7, size);
            assert_eq!(libc::shmdt(start), 0);
        }
        segment
    }
}

impl Drop for DetachedSegment {
    #[allow(unsafe_code)]
    fn drop(&mut self) {
        // SAFETY: removing takes no buffer.
        unsafe {
            libc::shmctl(self.0, libc::IPC_RMID, std::ptr::null_mut());
        }
    }
}

#[test]
fn a_tmpfs_a_memfd_and_a_detached_segment_are_named_with_their_sizes() {
    let _alone = TAKEN.lock();
    let before = bytes(part(&shared_parts(), "/dev/shm"));
    let path = PathBuf::from(format!("/dev/shm/memtide-where-{}", std::process::id()));
    let file = TemporaryFile(path.clone());
    fill(File::create(&path).unwrap(), 60);
    let name = format!("memtide-where-{}", std::process::id());
    let memfd = File::from(memfd_create(name.as_str(), MemfdFlags::CLOEXEC).unwrap());
    fill(&memfd, 64);
    let segment = DetachedSegment::of(40);

    let labels =
        ["/dev/shm".to_owned(), format!("memfd:{name}"), format!("System V segment {}", segment.0)];
    let parts = parts_that(|parts| {
        let [tmpfs, memfd, segment] = labels.each_ref().map(|label| bytes(part(parts, label)));
        is_near(tmpfs.saturating_sub(before), 60 * MIB)
            && is_near(memfd, 64 * MIB)
            && is_near(segment, 40 * MIB)
    });
    let [tmpfs, memfd_note, segment_note] =
        labels.each_ref().map(|label| part(&parts, label).unwrap()["note"].as_str().unwrap());
    let this = format!("({})", std::process::id());
    assert!(tmpfs.starts_with("tmpfs, at most "), "{tmpfs}");
    assert!(memfd_note.contains(&this), "{memfd_note}");
    let is_of_this = segment_note.starts_with("detached, made by ") && segment_note.contains(&this);
    assert!(is_of_this, "{segment_note}");
    drop((file, memfd));
}

/// A shell in a mount namespace with a tmpfs of its own.
struct OtherNamespace(Child);

impl OtherNamespace {
    /// `None` if this user may not make one.
    fn with_tmpfs_of(point: &std::path::Path, mib: u64) -> Option<Self> {
        let script = format!(
            "mount -t tmpfs -o size=100m memtide \"$0\" && head -c {}M /dev/zero > \"$0/file\" && \
             echo ready && read line",
            mib
        );
        let child = Command::new("unshare")
            .args(["--mount", "sh", "-c", &script])
            .arg(point)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .ok()?;
        let mut namespace = Self(child);
        let mut line = String::new();
        let mut output = BufReader::new(namespace.0.stdout.as_mut().unwrap());
        output.read_line(&mut line).unwrap();
        (line.trim() == "ready").then_some(namespace)
    }
}

impl Drop for OtherNamespace {
    fn drop(&mut self) {
        // Its standard input ends, and so does the shell; the tmpfs goes with its namespace.
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

#[test]
#[allow(clippy::print_stdout)] // why it was skipped
fn a_tmpfs_of_another_mount_namespace_is_named_with_its_process() {
    let _alone = TAKEN.lock();
    let directory = tempfile::tempdir().unwrap();
    let Some(namespace) = OtherNamespace::with_tmpfs_of(directory.path(), 50) else {
        println!("skipped: this user may not make a mount namespace");
        return;
    };
    let point = directory.path().to_str().unwrap();
    let parts = parts_that(|parts| is_near(bytes(part(parts, point)), 50 * MIB));
    let note = part(&parts, point).unwrap()["note"].as_str().unwrap();
    let expected = format!("tmpfs, at most 100 MiB, mounted for sh ({})", namespace.0.id());
    assert_eq!(note, expected);
}
