//! The kernel's account of a job: what each direct child and each adopted orphan read and wrote, read while it is a zombie.
//!
//! A child's account contains those of all its descendants that were waited for; children of a process that ignores SIGCHLD
//! are in none.
#![allow(unsafe_code)]

use std::collections::HashMap;
use std::fs::File;
use std::io::Read as _;
use std::os::fd::OwnedFd;
use std::time::Duration;

use probe::ProcessFiles;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open};
use timeline::EntityRow;
use timeline::signals::{
    PROC_CANCELLED_WRITE_BYTES, PROC_RCHAR, PROC_READ_BYTES, PROC_WCHAR, PROC_WRITE_BYTES,
};
use units::{Bytes, Count, Span};

use crate::observe::process_tree;
use crate::observe::{JobEnd, JobIo};

/// The command and the orphans that it leaves to this process.
#[derive(Debug)]
pub(super) struct Children {
    command: u32,
    /// Children of this process that are no part of the job: guards.
    ours: Vec<u32>,
    ended: Option<OwnedFd>,
    sum: JobIo,
    cpu_before: Span,
    unreadable: u64,
    /// Accounts of children that live: that of a zombie is opened by root alone, and read by whoever opened it before.
    accounts: HashMap<u32, File>,
}

impl Children {
    pub(super) fn of(command: u32, ours: Vec<u32>) -> Self {
        let pid = i32::try_from(command).ok().and_then(Pid::from_raw);
        let mut children = Self {
            command,
            ours,
            ended: pid.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok()),
            sum: JobIo::default(),
            cpu_before: probe::children_cpu(),
            unreadable: 0,
            accounts: HashMap::new(),
        };
        children.open_accounts();
        children
    }

    /// Opens the accounts of children that are new: the command, orphans that this process adopted.
    pub(super) fn open_accounts(&mut self) {
        /// Orphans beyond that are read by root alone.
        const ACCOUNTS_MAX: usize = 512;
        for pid in process_tree::children("self") {
            if !self.ours.contains(&pid)
                && self.accounts.len() < ACCOUNTS_MAX
                && !self.accounts.contains_key(&pid)
                && let Ok(account) = File::open(format!("/proc/{pid}/io"))
            {
                self.accounts.insert(pid, account);
            }
        }
    }

    /// Waits until the command ends, or so long.
    pub(super) fn wait(&self, most: Duration) {
        match &self.ended {
            Some(process) => {
                let mut polled = [PollFd::new(process, PollFlags::IN)];
                let _ = poll(&mut polled, Timespec::try_from(most).ok().as_ref());
            }
            None => std::thread::sleep(most),
        }
    }

    /// Asks the command to end.
    pub(super) fn ask_to_end(&self) {
        // It is not reaped yet, so the PID is its own.
        if let Some(pid) = i32::try_from(self.command).ok().and_then(Pid::from_raw) {
            let _ = rustix::process::kill_process(pid, Signal::TERM);
        }
    }

    /// Adds the accounts of children that have ended, and lets them go. Returns how the command ended, once it has.
    pub(super) fn reap(&mut self) -> Option<JobEnd> {
        let mut end = None;
        // One by one: asked for any of them, the kernel names the same guard again and again.
        for pid in process_tree::children("self") {
            let Some(how) = has_ended(pid, true).filter(|_| !self.ours.contains(&pid)) else {
                continue;
            };
            let held = self.accounts.remove(&pid).and_then(read_open);
            match held.or_else(|| read_io(&format!("/proc/{pid}/io"))) {
                Some(io) => self.sum = self.sum.plus(io),
                None => self.unreadable += 1,
            }
            let _ = has_ended(pid, false);
            if pid == self.command {
                end = Some(how);
            }
        }
        end
    }

    /// Adds the accounts of these processes, which still run.
    pub(super) fn add_running(&mut self, running: &[u32]) {
        for pid in running {
            if let Some(io) = read_io(&format!("/proc/{pid}/io")) {
                self.sum = self.sum.plus(io);
            }
        }
    }

    /// All processes of the job that run now.
    pub(super) fn descendants(&self) -> Vec<u32> {
        process_tree::descendants(&self.ours)
    }

    pub(super) const fn sum(&self) -> JobIo {
        self.sum
    }

    pub(super) const fn unreadable(&self) -> Count {
        Count::new(self.unreadable)
    }

    /// CPU time of what was reaped since the command began.
    pub(super) fn cpu(&self) -> Span {
        probe::children_cpu() - self.cpu_before
    }
}

/// How a child ended, if it has; it stays a zombie, or is reaped.
fn has_ended(pid: u32, stays: bool) -> Option<JobEnd> {
    let options = libc::WEXITED | libc::WNOHANG | if stays { libc::WNOWAIT } else { 0 };
    // SAFETY: zero is a value of all fields; waitid(2) writes the structure and keeps no pointer to it. The accessors read the
    // part of its union that waitid fills.
    let (failed, ended, status, code) = unsafe {
        let mut info: libc::siginfo_t = std::mem::zeroed();
        let failed = libc::waitid(libc::P_PID, pid, &raw mut info, options);
        (failed != 0, info.si_pid(), info.si_status(), info.si_code)
    };
    if failed || ended == 0 {
        return None;
    }
    let has_exited = code == libc::CLD_EXITED;
    Some(if has_exited { JobEnd::Exited(status) } else { JobEnd::Signalled(status) })
}

/// The account in a file of the form of `/proc/PID/io`.
pub(crate) fn read_io(path: &str) -> Option<JobIo> {
    read_open(File::open(path).ok()?)
}

pub(crate) fn read_open(mut account: File) -> Option<JobIo> {
    let mut text = Vec::new();
    account.read_to_end(&mut text).ok()?;
    let mut process = EntityRow::default();
    // A malformed line is an absent reading.
    let _ = ProcessFiles::default().parse(0, "io", &text, &mut process);
    let row = &process.row;
    Some(JobIo {
        rchar_bytes: row.get(PROC_RCHAR)?,
        wchar_bytes: row.get(PROC_WCHAR)?,
        read_bytes: row.get(PROC_READ_BYTES)?,
        write_bytes: row.get(PROC_WRITE_BYTES)?,
        cancelled_bytes: row.get(PROC_CANCELLED_WRITE_BYTES).unwrap_or(Bytes::ZERO),
    })
}
