//! Parts of al that no shell can play.
#![allow(unsafe_code)]

use std::fs::File;
use std::io::{IoSliceMut, Read as _, Write as _};
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::Command;

use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};

/// Plays a part for ever.
pub(crate) fn play(part: &str, words: &[&str]) {
    match (part, words) {
        ("fuse", [point, options, count]) => serve_nothing(point, options, count),
        ("lease", [file]) => keep_lease(file),
        ("swap", [one, other]) => swap(one, other),
        ("stay", [group]) => stay(group),
        _ => panic!("al has no part {part} {words:?}"),
    }
}

/// Two names are exchanged all the time.
fn swap(one: &str, other: &str) {
    loop {
        renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE).unwrap();
    }
}

/// Lives in a cgroup of its own making.
fn stay(group: &str) {
    std::fs::create_dir_all(group).unwrap();
    std::fs::write(format!("{group}/cgroup.procs"), std::process::id().to_string()).unwrap();
    // Some memory to be seen.
    let memory = std::hint::black_box(vec![1_u8; 1 << 20]);
    std::thread::sleep(std::time::Duration::from_secs(3600));
    drop(memory);
}

/// A lease for writing: whoever opens the file waits until this process gives it up, which it does not.
fn keep_lease(file: &str) {
    let file = File::options().read(true).write(true).open(file).unwrap();
    // SIGIO, by which the kernel asks for it, would end this process.
    // SAFETY: no handler is installed, and the descriptor is open; both calls take numbers only.
    let leased = unsafe {
        libc::signal(libc::SIGIO, libc::SIG_IGN);
        libc::fcntl(file.as_raw_fd(), libc::F_SETLEASE, libc::F_WRLCK)
    };
    assert_eq!(leased, 0, "{}", std::io::Error::last_os_error());
    std::fs::write("/tmp/al-has-a-lease", "").unwrap();
    std::thread::sleep(std::time::Duration::from_secs(3600));
}

/// A file system that answers the kernel's first request and no other. Each that waits is a line in the file `count`: who
/// asked (user and program), and the number of the request.
fn serve_nothing(point: &str, options: &str, count: &str) {
    const INIT: u32 = 26;
    /// `FORGET`, `BATCH_FORGET` and `INTERRUPT`, which want no answer.
    const WITHOUT_ANSWER: [u32; 3] = [2, 42, 36];
    let mut device = File::from(mounted(point, options));
    let mut counted = File::create(count).unwrap();
    let mut request = vec![0; 1 << 18];
    while let Ok(len) = device.read(&mut request) {
        if len < 40 {
            continue;
        }
        let operation = u32::from_ne_bytes(request[4..8].try_into().unwrap());
        if operation == INIT {
            // Version 7.31, writes of a page (include/uapi/linux/fuse.h).
            let body: Vec<u8> = [7_u32, 31, 0, 0, 0, 4096, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]
                .iter()
                .flat_map(|word| word.to_ne_bytes())
                .collect();
            let mut reply = Vec::new();
            reply.extend(80_u32.to_ne_bytes());
            reply.extend(0_u32.to_ne_bytes());
            reply.extend(&request[8..16]);
            reply.extend(body);
            device.write_all(&reply).unwrap();
        } else if !WITHOUT_ANSWER.contains(&operation) {
            // struct fuse_in_header: length, operation, number, node, user, group, thread.
            let word = |at: usize| u32::from_ne_bytes(request[at..at + 4].try_into().unwrap());
            let (user, thread) = (word(24), word(32));
            let program = std::fs::read_to_string(format!("/proc/{thread}/comm"));
            let program = program.unwrap_or_default();
            let line = format!("{user} {} {operation}\n", program.trim());
            counted.write_all(line.as_bytes()).unwrap();
        }
    }
}

/// Mounts with the set-user-ID program that users have for it; it sends the descriptor back.
fn mounted(point: &str, options: &str) -> OwnedFd {
    let (ours, its) = UnixStream::pair().unwrap();
    fcntl_setfd(&its, FdFlags::empty()).unwrap();
    let status = Command::new("fusermount3")
        .args(["-o", options, "--", point])
        .env("_FUSE_COMMFD", its.as_raw_fd().to_string())
        .status()
        .unwrap();
    assert!(status.success(), "fusermount3 {options} {point}: {status}");
    drop(its);
    let mut byte = [0];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let parts = &mut [IoSliceMut::new(&mut byte)];
    recvmsg(&ours, parts, &mut control, RecvFlags::CMSG_CLOEXEC).unwrap();
    let sent = control.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
        _ => None,
    });
    sent.expect("a descriptor of /dev/fuse")
}
