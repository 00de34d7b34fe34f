//! A file system of a program that answers until it is told to be silent, as a hostile user's does.
//!
//! It has a file, `file`, and a directory, `below`, and speaks the kernel's protocol (include/uapi/linux/fuse.h) as far as that
//! takes. When it is dropped, its connection is ended: whoever waits goes on.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

/// It is mounted until dropped.
pub(crate) struct SilentFuse {
    point: PathBuf,
    is_silent: Arc<AtomicBool>,
    unanswered: Arc<Mutex<Vec<u32>>>,
}

const DIRECTORY: u64 = 1;
const FILE: u64 = 2;
/// A directory in it.
const BELOW: u64 = 3;
const SIZE: u64 = 8192;
/// `FORGET` and `BATCH_FORGET`, which want no answer.
const FORGETS: [u32; 2] = [2, 42];
/// The kernel's greeting.
const INIT: u32 = 26;

impl SilentFuse {
    /// Mounts it for this user.
    pub(crate) fn mount(point: &Path, uid: u32) -> Result<Self, String> {
        let device = File::options().read(true).write(true).open("/dev/fuse");
        let device = device.map_err(|error| format!("/dev/fuse: {error}"))?;
        rustix::io::fcntl_setfd(&device, rustix::io::FdFlags::empty()).unwrap();
        std::fs::create_dir_all(point).unwrap();
        let options = format!(
            "fd={},rootmode=40000,user_id={uid},group_id=0,allow_other",
            device.as_raw_fd()
        );
        let mounted = Command::new("mount")
            .args(["-i", "-t", "fuse", "-o", &options, "silent"])
            .arg(point)
            .output()
            .unwrap();
        if !mounted.status.success() {
            return Err(String::from_utf8_lossy(&mounted.stderr).into_owned());
        }
        let fuse =
            Self { point: point.to_owned(), is_silent: Arc::default(), unanswered: Arc::default() };
        let (is_silent, unanswered) = (fuse.is_silent.clone(), fuse.unanswered.clone());
        std::thread::spawn(move || serve(device, &is_silent, &unanswered));
        Ok(fuse)
    }

    /// From now on it answers nobody.
    pub(crate) fn be_silent(&self) {
        self.is_silent.store(true, SeqCst);
    }

    /// The requests that came since then, by their operations.
    pub(crate) fn unanswered(&self) -> Vec<u32> {
        self.unanswered.lock().unwrap().clone()
    }
}

impl Drop for SilentFuse {
    fn drop(&mut self) {
        use rustix::mount::{UnmountFlags, unmount};
        // A program would ask for the place first, and wait.
        let _ = unmount(&self.point, UnmountFlags::FORCE | UnmountFlags::DETACH);
    }
}

fn serve(mut device: File, is_silent: &AtomicBool, unanswered: &Mutex<Vec<u32>>) {
    let mut request = vec![0; 1 << 18];
    while let Ok(length) = device.read(&mut request) {
        let word = |at: usize| u32::from_ne_bytes(request[at..at + 4].try_into().unwrap());
        let long = |at: usize| u64::from_ne_bytes(request[at..at + 8].try_into().unwrap());
        let (operation, unique, node) = (word(4), long(8), long(16));
        if length < 40 || FORGETS.contains(&operation) {
            continue;
        }
        if is_silent.load(SeqCst) && operation != INIT {
            unanswered.lock().unwrap().push(operation);
            continue;
        }
        let answer = answer(operation, node, &request[40..length]);
        let (error, body) = match answer {
            Ok(body) => (0, body),
            Err(error) => (-error, Vec::new()),
        };
        let mut reply = Vec::new();
        reply.extend(u32::try_from(16 + body.len()).unwrap().to_ne_bytes());
        reply.extend(error.to_ne_bytes());
        reply.extend(unique.to_ne_bytes());
        reply.extend(body);
        // A request that was interrupted needs no answer.
        let _ = device.write(&reply);
    }
}

fn answer(operation: u32, node: u64, body: &[u8]) -> Result<Vec<u8>, i32> {
    const NOENT: i32 = 2;
    const NOSYS: i32 = 38;
    let words = |words: &[u32]| words.iter().flat_map(|word| word.to_ne_bytes()).collect();
    match operation {
        // LOOKUP
        1 => match body {
            b"file\0" => Ok(entry(FILE)),
            b"below\0" => Ok(entry(BELOW)),
            _ => Err(NOENT),
        },
        // GETATTR
        3 => Ok([vec![0; 16], attributes(node)].concat()),
        // OPEN, OPENDIR
        14 | 27 => Ok(vec![0; 16]),
        // READ
        15 => Ok(vec![7; 4096]),
        // STATFS
        17 => Ok(vec![0; 80]),
        // RELEASE, FLUSH, READDIR, RELEASEDIR
        18 | 25 | 28 | 29 => Ok(Vec::new()),
        // Version 7.31, with reading ahead.
        INIT => Ok(words(&[7, 31, 1 << 16, 0, 0, 1 << 16, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0])),
        _ => Err(NOSYS),
    }
}

/// No entry and no attribute stays valid.
fn entry(node: u64) -> Vec<u8> {
    let valid = [node, 0, 0, 0].map(u64::to_ne_bytes).concat();
    [valid, vec![0; 8], attributes(node)].concat()
}

fn attributes(node: u64) -> Vec<u8> {
    let (mode, size): (u32, u64) = match node {
        DIRECTORY | BELOW => (0o040_755, 0),
        _ => (0o100_644, SIZE),
    };
    let mut attributes = Vec::new();
    for word in [node, size, size / 512, 0, 0, 0] {
        attributes.extend(word.to_ne_bytes());
    }
    for word in [0, 0, 0, mode, 1, 0, 0, 0, 4096, 0] {
        attributes.extend(word.to_ne_bytes());
    }
    attributes
}
