//! Gives each read(2), pread(2), write(2) and pwrite(2) of a file `RWF_DONTCACHE` (Linux 6.14), for a program that does not.
//!
//! The flag belongs to a call, so the calls must be made by somebody who gives it. A seccomp filter has the kernel hand them to
//! a server (`SECCOMP_RET_USER_NOTIF`), which borrows the very open file (pidfd_getfd(2)), so that its position and mode are the
//! program's, and copies the bytes (process_vm_readv(2)). What is no regular file, and what a file system refuses, goes on as if
//! nothing were there. Mappings, readv(2), sendfile(2) and io_uring are not handed over. The server is this program again, in
//! the cgroup of the job, so that its pages and its I/O are counted as the job's.
#![allow(unsafe_code)]

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fs::File;
use std::io::{Error, IoSlice, IoSliceMut, Result};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, AsRawFd as _, FromRawFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use sampler::CommandGroup;

use crate::observe::JobIo;
use crate::observe::account::{read_io, read_open};

/// Longer calls go on as they are.
const LENGTH_MAX: u64 = 64 << 20;

/// Open handles of processes that are kept.
const PROCESSES_MAX: usize = 1024;

/// Of `include/uapi/linux/fs.h`, since 6.14.
const RWF_DONTCACHE: i32 = 0x80;

/// `PIDFD_THREAD`, so that a thread's number is taken as well.
const PIDFD_THREAD: u32 = libc::O_EXCL.cast_unsigned();

/// `include/uapi/linux/seccomp.h`: the sizes of both structures are part of the numbers.
const NOTIF_RECV: u64 = 0xc050_2100;
const NOTIF_SEND: u64 = 0xc018_2101;
/// Whoever calls and the server take turns on one CPU (6.6).
const SET_FLAGS: u64 = 0x4008_2104;
const SYNC_WAKE_UP: u64 = 1;
const CONTINUES: u32 = 1;

/// The exit code of `memtide` where no call could be given the flag: no answer.
const ALL_REFUSED: i32 = 3;

#[cfg(target_arch = "x86_64")]
const ARCH: u32 = 0xc000_003e;
#[cfg(target_arch = "aarch64")]
const ARCH: u32 = 0xc000_00b7;
/// No filter is for it.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const ARCH: u32 = 0;

const CALLS: [libc::c_long; 4] =
    [libc::SYS_read, libc::SYS_pread64, libc::SYS_write, libc::SYS_pwrite64];

/// A call as the kernel hands it over: `struct seccomp_notif`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
struct HandedCall {
    id: u64,
    thread: u32,
    flags: u32,
    number: i32,
    arch: u32,
    instruction: u64,
    arguments: [u64; 6],
}

/// What becomes of it: `struct seccomp_notif_resp`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
struct CallAnswer {
    id: u64,
    value: i64,
    error: i32,
    flags: u32,
}

/// The server of a command's calls.
#[derive(Debug)]
pub(super) struct DontCache {
    server: Child,
    account: Option<File>,
}

impl DontCache {
    /// Has a command hand over its calls from its first instruction on.
    pub(super) fn prepare(command: &mut Command, group: &CommandGroup) -> Result<Self> {
        if ARCH == 0 {
            return Err(Errno::NOSYS.into());
        }
        let (here, there) = UnixStream::pair()?;
        let mut server = Command::new(std::env::current_exe()?);
        server.args(["job", "--serve-dontcache"]).stdin(OwnedFd::from(here)).stdout(Stdio::null());
        group.admit(&mut server).map_err(Error::other)?;
        let server = server.spawn()?;
        let account = File::open(format!("/proc/{}/io", server.id())).ok();
        let filter = filter();
        // SAFETY: the closure runs in the child between fork and exec; it makes system calls on memory that was allocated
        // before, and takes no lock.
        unsafe {
            command.pre_exec(move || install(&filter, &there));
        }
        Ok(Self { server, account })
    }

    /// Ends serving, once the command has ended. Returns what the server read and wrote for it.
    ///
    /// # Errors
    /// No call was made with the flag, as the kernel or the file system lacks it.
    pub(super) fn end(mut self) -> Result<JobIo> {
        /// It ends by itself when no process of the job is left.
        const WAIT_MAX: Duration = Duration::from_secs(1);
        let begun = Instant::now();
        let path = format!("/proc/{}/stat", self.server.id());
        let is_zombie = || {
            let text = std::fs::read_to_string(&path).unwrap_or_default();
            text.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('Z'))
        };
        while !is_zombie() && begun.elapsed() < WAIT_MAX {
            std::thread::sleep(Duration::from_millis(5));
        }
        let io = self.account.take().and_then(read_open);
        let io = io.or_else(|| read_io(&format!("/proc/{}/io", self.server.id())));
        let _ = self.server.kill();
        let status = self.server.wait()?;
        if status.code() == Some(ALL_REFUSED) {
            return Err(Errno::OPNOTSUPP.into());
        }
        Ok(io.unwrap_or_default())
    }
}

/// Serves the calls of a command until none of its processes is left: the socket on standard input has their listener.
/// Returns whether the flag was taken, where it was given at all.
pub fn serve_dont_cache() -> bool {
    // Where the command cannot be started there is none.
    let Some(listener) = receive() else { return true };
    let mut server = Server::new(&listener);
    server.run();
    server.done > 0 || server.refused == 0
}

/// The program of the filter: the four calls are handed over, all others go on.
fn filter() -> [libc::sock_filter; 9] {
    const LOAD: u16 = 0x20;
    const IS_EQUAL: u16 = 0x15;
    const RETURN: u16 = 0x06;
    const ALLOW: u32 = 0x7fff_0000;
    const HAND_OVER: u32 = 0x7fc0_0000;
    let step = |code, jt, jf, k| libc::sock_filter { code, jt, jf, k };
    let call = |at: usize| {
        let skipped = u8::try_from(CALLS.len() - at).unwrap_or(0);
        step(IS_EQUAL, skipped, 0, u32::try_from(CALLS[at]).unwrap_or(u32::MAX))
    };
    [
        // The architecture, then the number of the call.
        step(LOAD, 0, 0, 4),
        step(IS_EQUAL, 0, 5, ARCH),
        step(LOAD, 0, 0, 0),
        call(0),
        call(1),
        call(2),
        call(3),
        step(RETURN, 0, 0, ALLOW),
        step(RETURN, 0, 0, HAND_OVER),
    ]
}

/// Installs the filter in this process and sends its listener to the one that serves.
fn install(filter: &[libc::sock_filter; 9], there: &UnixStream) -> Result<()> {
    const SET_MODE_FILTER: libc::c_ulong = 1;
    const NEW_LISTENER: libc::c_ulong = 1 << 3;
    let program = libc::sock_fprog { len: 9, filter: filter.as_ptr().cast_mut() };
    // SAFETY: the kernel reads the program and its nine steps, which live during the call, and keeps no pointer.
    let set = || unsafe {
        libc::syscall(libc::SYS_seccomp, SET_MODE_FILTER, NEW_LISTENER, &raw const program)
    };
    let mut listener = set();
    if listener < 0 && Error::last_os_error().raw_os_error() == Some(libc::EACCES) {
        // Who is not root may only filter what can gain no rights.
        rustix::thread::set_no_new_privs(true)?;
        listener = set();
    }
    let listener = i32::try_from(listener).ok().filter(|fd| *fd >= 0);
    let listener = listener.ok_or_else(Error::last_os_error)?;
    // SAFETY: the call returned a new descriptor, which nothing else owns.
    let listener = unsafe { OwnedFd::from_raw_fd(listener) };
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let sent = [listener.as_fd()];
    control.push(SendAncillaryMessage::ScmRights(&sent));
    sendmsg(there, &[IoSlice::new(b"!")], &mut control, SendFlags::empty())?;
    Ok(())
}

fn receive() -> Option<OwnedFd> {
    let here = std::io::stdin();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    recvmsg(&here, &mut [IoSliceMut::new(&mut byte)], &mut control, RecvFlags::CMSG_CLOEXEC)
        .ok()?;
    let mut messages = control.drain();
    messages.find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut files) => files.next(),
        _ => None,
    })
}

struct Server<'a> {
    listener: &'a OwnedFd,
    done: u64,
    refused: u64,
    processes: HashMap<u32, OwnedFd>,
    buffer: Vec<u8>,
}

impl<'a> Server<'a> {
    fn new(listener: &'a OwnedFd) -> Self {
        Self { listener, done: 0, refused: 0, processes: HashMap::new(), buffer: Vec::new() }
    }

    fn run(&mut self) {
        // SAFETY: the call takes a number and no pointer. A kernel without it returns EINVAL.
        unsafe {
            libc::ioctl(self.listener.as_raw_fd(), SET_FLAGS as libc::Ioctl, SYNC_WAKE_UP);
        }
        loop {
            let mut polled = [PollFd::new(self.listener, PollFlags::IN)];
            let _ = poll(&mut polled, None);
            let events = polled[0].revents();
            if events.contains(PollFlags::IN) {
                let mut call = HandedCall::default();
                if self.control(NOTIF_RECV, &raw mut call) {
                    let answer = self.answer(&call);
                    let mut answer = CallAnswer { id: call.id, ..answer };
                    self.control(NOTIF_SEND, &raw mut answer);
                }
            } else if events.contains(PollFlags::HUP) {
                return;
            }
        }
    }

    fn control<T>(&self, request: u64, structure: *mut T) -> bool {
        // SAFETY: the pointer is to a live value of the type that the number of the request is made for; the kernel reads or
        // writes it and keeps no pointer.
        unsafe { libc::ioctl(self.listener.as_raw_fd(), request as libc::Ioctl, structure) == 0 }
    }

    /// Makes the call with the flag; where that cannot be, it goes on as it is.
    fn answer(&mut self, call: &HandedCall) -> CallAnswer {
        let goes_on = CallAnswer { flags: CONTINUES, ..CallAnswer::default() };
        let [descriptor, address, length, offset, ..] = call.arguments;
        let number = libc::c_long::from(call.number);
        let is_read = number == libc::SYS_read || number == libc::SYS_pread64;
        let has_offset = number == libc::SYS_pread64 || number == libc::SYS_pwrite64;
        let Some(file) =
            self.regular_file(call.thread, descriptor).filter(|_| length <= LENGTH_MAX)
        else {
            return goes_on;
        };
        let offset = if has_offset { offset.cast_signed() } else { -1 };
        let length = usize::try_from(length).unwrap_or(0);
        self.buffer.resize(self.buffer.len().max(length), 0);
        let there = libc::iovec { iov_base: address as *mut libc::c_void, iov_len: length };
        if !is_read && !self.copy(call.thread, there, length, true) {
            return goes_on;
        }
        let own = libc::iovec { iov_base: self.buffer.as_mut_ptr().cast(), iov_len: length };
        // SAFETY: the vector is of the buffer, which is as long as it says and lives during the call.
        let got = unsafe {
            if is_read {
                libc::preadv2(file.as_raw_fd(), &raw const own, 1, offset, RWF_DONTCACHE)
            } else {
                libc::pwritev2(file.as_raw_fd(), &raw const own, 1, offset, RWF_DONTCACHE)
            }
        };
        if got < 0 {
            let error = Error::last_os_error().raw_os_error().unwrap_or(libc::EIO);
            if error == libc::EOPNOTSUPP || error == libc::EINVAL {
                self.refused += 1;
                return goes_on;
            }
            return CallAnswer { error: -error, ..CallAnswer::default() };
        }
        self.done += 1;
        let bytes = usize::try_from(got).unwrap_or(0);
        if is_read && !self.copy(call.thread, there, bytes, false) {
            return CallAnswer { error: -libc::EFAULT, ..CallAnswer::default() };
        }
        CallAnswer { value: got as i64, ..CallAnswer::default() }
    }

    /// Copies between the buffer and a process; whether all of it.
    fn copy(&mut self, thread: u32, there: libc::iovec, length: usize, is_from: bool) -> bool {
        if length == 0 {
            return true;
        }
        let own = libc::iovec { iov_base: self.buffer.as_mut_ptr().cast(), iov_len: length };
        let there = libc::iovec { iov_len: length, ..there };
        let pid = thread.cast_signed();
        // SAFETY: the own vector is of the buffer, which is at least that long; the other's addresses are checked by the kernel.
        let copied = unsafe {
            if is_from {
                libc::process_vm_readv(pid, &raw const own, 1, &raw const there, 1, 0)
            } else {
                libc::process_vm_writev(pid, &raw const own, 1, &raw const there, 1, 0)
            }
        };
        usize::try_from(copied).is_ok_and(|copied| copied == length)
    }

    /// The open file of a thread, if it is a regular one.
    fn regular_file(&mut self, thread: u32, descriptor: u64) -> Option<File> {
        let descriptor = i32::try_from(descriptor).ok()?;
        if self.processes.len() >= PROCESSES_MAX {
            self.processes.clear();
        }
        let process = match self.processes.entry(thread) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => new.insert(handle(thread)?),
        };
        // SAFETY: the call has no pointer, and its descriptor is open.
        let got =
            unsafe { libc::syscall(libc::SYS_pidfd_getfd, process.as_raw_fd(), descriptor, 0) };
        let Some(got) = i32::try_from(got).ok().filter(|got| *got >= 0) else {
            // Its number may be another thread's by now.
            self.processes.remove(&thread);
            return None;
        };
        // SAFETY: the call returned a new descriptor, which nothing else owns.
        let file = unsafe { File::from_raw_fd(got) };
        file.metadata().is_ok_and(|about| about.is_file()).then_some(file)
    }
}

fn handle(thread: u32) -> Option<OwnedFd> {
    // SAFETY: the call has no pointer.
    let opened = unsafe { libc::syscall(libc::SYS_pidfd_open, thread, PIDFD_THREAD) };
    let opened = i32::try_from(opened).ok().filter(|opened| *opened >= 0)?;
    // SAFETY: the call returned a new descriptor, which nothing else owns.
    Some(unsafe { OwnedFd::from_raw_fd(opened) })
}
