//! System calls that no library wraps safely.
#![allow(unsafe_code)]

use std::ffi::{CStr, CString};
use std::fs::File;
use std::os::fd::AsRawFd as _;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use rustix::mm::{Advice, MapFlags, ProtFlags};
use rustix::mount::{
    MountFlags, MountPropagationFlags, UnmountFlags, mount, mount_change, unmount,
};
use rustix::thread::UnshareFlags;

/// Uses a swap area.
///
/// # Errors
/// The operating system's.
pub(crate) fn swap_on(disk: &str) -> std::io::Result<()> {
    let path = CString::new(disk)?;
    // SAFETY: the path is a string that ends with zero and lives until the call returns; the call keeps no pointer.
    match unsafe { libc::swapon(path.as_ptr(), 0) } {
        0 => Ok(()),
        _ => Err(std::io::Error::last_os_error()),
    }
}

/// Brings the loopback device up, which no network of a fresh machine is without.
///
/// # Errors
/// The operating system's.
pub(crate) fn loopback_up() -> std::io::Result<()> {
    let socket = std::net::UdpSocket::bind("0.0.0.0:0")?;
    // SAFETY: all zeros are a valid `ifreq`, a struct of C with a name and a union of numbers.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (place, byte) in request.ifr_name.iter_mut().zip(b"lo") {
        *place = (*byte).cast_signed();
    }
    request.ifr_ifru.ifru_flags = libc::c_short::try_from(libc::IFF_UP).unwrap_or_default();
    // SAFETY: the socket is open, and the request lives until the call returns, which reads the name and the flags only
    // (netdevice(7)).
    match unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS, &raw const request) } {
        0 => Ok(()),
        _ => Err(std::io::Error::last_os_error()),
    }
}

/// Lets a command have a terminal of its own: it leads a session, and Ctrl-C there reaches what it runs.
pub(crate) fn with_terminal(command: &mut Command, terminal: &File) -> std::io::Result<()> {
    let terminal = terminal.try_clone()?;
    // SAFETY: the closure runs in the child between fork and exec and makes two system calls, which are
    // async-signal-safe: it allocates nothing and takes no lock.
    unsafe {
        command.pre_exec(move || {
            rustix::process::setsid()?;
            rustix::process::ioctl_tiocsctty(&terminal)?;
            Ok(())
        });
    }
    Ok(())
}

/// Lets what this thread starts have a PID namespace of its own, of which the first process is the init.
///
/// # Errors
/// The operating system's.
pub(crate) fn unshare_processes() -> rustix::io::Result<()> {
    // SAFETY: file descriptors stay shared; only PIDs of later children change.
    unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWPID) }
}

/// Lets a command join a cgroup, by its open `cgroup.procs`, and see that cgroup as the root of all, and the processes of
/// its PID namespace only.
///
/// # Errors
/// The operating system's.
pub(crate) fn in_container(
    command: &mut Command,
    tasks: &File,
    is_cgroup_v1: bool,
) -> std::io::Result<()> {
    const CGROUPS: &CStr = c"/sys/fs/cgroup";
    let tasks = tasks.try_clone()?;
    let (kind, options) =
        if is_cgroup_v1 { (c"cgroup", Some(c"memory")) } else { (c"cgroup2", None) };
    // SAFETY: the closure runs in the child between fork and exec and makes system calls with constant texts, which are
    // async-signal-safe: it allocates nothing and takes no lock. The table of file descriptors is not unshared.
    unsafe {
        command.pre_exec(move || {
            rustix::io::write(&tasks, b"0")?;
            rustix::thread::unshare_unsafe(UnshareFlags::NEWNS | UnshareFlags::NEWCGROUP)?;
            let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
            mount_change(c"/", private)?;
            mount(c"proc", c"/proc", c"proc", MountFlags::empty(), None)?;
            unmount(CGROUPS, UnmountFlags::DETACH)?;
            mount(kind, CGROUPS, kind, MountFlags::empty(), options)?;
            Ok(())
        });
    }
    Ok(())
}

/// Lets a command get this signal when the thread that starts it ends.
pub(crate) fn die_with_parent(command: &mut Command, signal: rustix::process::Signal) {
    let parent = Some(rustix::process::getpid());
    // SAFETY: the closure runs in the child between fork and exec and makes two system calls, which are
    // async-signal-safe: it allocates nothing and takes no lock.
    unsafe {
        command.pre_exec(move || {
            rustix::process::set_parent_process_death_signal(Some(signal))?;
            // The signal is not sent for a parent that ended before.
            if rustix::process::getppid() == parent {
                Ok(())
            } else {
                Err(rustix::io::Errno::SRCH.into())
            }
        });
    }
}

/// Lets a command have an open file under the number that it has here.
pub(crate) fn keep_open(command: &mut Command, file: &impl std::os::fd::AsFd) {
    let number = file.as_fd().as_raw_fd();
    // SAFETY: the closure runs in the child between fork and exec and makes one system call, which is async-signal-safe. The
    // number is that of an open file as long as the caller has it, which starts the command before it drops it.
    unsafe {
        command.pre_exec(move || {
            let file = std::os::fd::BorrowedFd::borrow_raw(number);
            rustix::io::fcntl_setfd(file, rustix::io::FdFlags::empty())?;
            Ok(())
        });
    }
}

/// Lets a command see all file systems read-only; needs root. Before 5.12, where the kernel has no call for it, as they are.
pub(crate) fn read_only_files(command: &mut Command) {
    // SAFETY: the closure runs in the child between fork and exec and makes system calls with constant values, which are
    // async-signal-safe: it allocates nothing and takes no lock. The table of file descriptors is not unshared.
    unsafe {
        command.pre_exec(|| {
            rustix::thread::unshare_unsafe(UnshareFlags::NEWNS)?;
            mount_change(c"/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)?;
            // linux/mount.h, `struct mount_attr`: what is set, cleared, propagated, and a user namespace.
            let attributes: [u64; 4] = [libc::MOUNT_ATTR_RDONLY, 0, 0, 0];
            libc::syscall(
                libc::SYS_mount_setattr,
                libc::AT_FDCWD,
                c"/".as_ptr(),
                libc::AT_RECURSIVE,
                attributes.as_ptr(),
                size_of_val(&attributes),
            );
            Ok(())
        });
    }
}

/// Which process this is after a fork.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Forked {
    /// The new one.
    Child,
    /// The one that forked; its child's PID.
    Parent(rustix::process::Pid),
}

/// Forks this process. The child is killed when its parent ends.
///
/// # Errors
/// The operating system's, or that this process has several threads: of these a child has one only, and locks of the
/// others stay taken.
pub(crate) fn fork() -> std::io::Result<Forked> {
    if std::fs::read_dir("/proc/self/task")?.count() > 1 {
        return Err(std::io::Error::other("a process with threads cannot fork"));
    }
    let parent = Some(rustix::process::getpid());
    // SAFETY: this process has one thread, as was just seen, so the child is a whole copy of it.
    match unsafe { libc::fork() } {
        -1 => Err(std::io::Error::last_os_error()),
        0 => {
            rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?;
            // The signal is not sent for a parent that ended before.
            if rustix::process::getppid() == parent {
                Ok(Forked::Child)
            } else {
                Err(std::io::Error::other("the parent has ended"))
            }
        }
        pid => rustix::process::Pid::from_raw(pid)
            .map(Forked::Parent)
            .ok_or_else(|| std::io::Error::other("fork gave no PID")),
    }
}

/// Pages that this process maps: memory, or those of a file.
#[derive(Debug)]
pub(crate) struct MappedPages {
    start: *mut u8,
    len: usize,
    is_writable: bool,
}

impl MappedPages {
    /// Zeroed memory of this process: anonymous for the kernel, which does not count it as committed unless overcommit is
    /// strict.
    ///
    /// # Errors
    /// The operating system's.
    pub(crate) fn private(len: usize) -> std::io::Result<Self> {
        Self::anonymous(len, MapFlags::PRIVATE | MapFlags::NORESERVE)
    }

    /// As [`Self::private`], and counted as committed, as memory of malloc is.
    ///
    /// # Errors
    /// The operating system's.
    pub(crate) fn committed(len: usize) -> std::io::Result<Self> {
        Self::anonymous(len, MapFlags::PRIVATE)
    }

    /// Zeroed memory that children share: shmem for the kernel.
    ///
    /// # Errors
    /// The operating system's.
    pub(crate) fn shared(len: usize) -> std::io::Result<Self> {
        Self::anonymous(len, MapFlags::SHARED)
    }

    /// As [`Self::shared`], in huge pages that the host has reserved.
    ///
    /// # Errors
    /// The operating system's: `ENOMEM` where too few are free.
    pub(crate) fn shared_huge(len: usize) -> std::io::Result<Self> {
        Self::anonymous(len, MapFlags::SHARED | MapFlags::HUGETLB)
    }

    fn anonymous(len: usize, flags: MapFlags) -> std::io::Result<Self> {
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping at an address that the kernel chooses overlaps nothing.
        let start =
            unsafe { rustix::mm::mmap_anonymous(std::ptr::null_mut(), len, access, flags) }?;
        Ok(Self { start: start.cast(), len, is_writable: true })
    }

    /// The first bytes of a file, to read.
    ///
    /// # Errors
    /// The operating system's.
    pub(crate) fn of_file(file: &std::fs::File, len: usize) -> std::io::Result<Self> {
        // SAFETY: as above; pages that the file loses meanwhile end this process, which is a workload's own.
        let start = unsafe {
            rustix::mm::mmap(std::ptr::null_mut(), len, ProtFlags::READ, MapFlags::SHARED, file, 0)
        }?;
        Ok(Self { start: start.cast(), len, is_writable: false })
    }

    /// Offers its pages to kernel samepage merging.
    ///
    /// # Errors
    /// The operating system's, where the kernel has none (CONFIG_KSM).
    pub(crate) fn offer_to_merge(&mut self) -> std::io::Result<()> {
        // SAFETY: the mapping is this one's; merging does not change what its pages hold.
        unsafe { rustix::mm::madvise(self.start.cast(), self.len, Advice::LinuxMergeable) }?;
        Ok(())
    }

    /// Keeps all of it in RAM.
    ///
    /// # Errors
    /// The operating system's, beyond `RLIMIT_MEMLOCK`.
    pub(crate) fn lock(&mut self) -> std::io::Result<()> {
        // SAFETY: the mapping is this one's; a locked page holds what it held.
        unsafe { rustix::mm::mlock(self.start.cast(), self.len) }?;
        Ok(())
    }

    /// Reads a byte: the page is there afterwards.
    pub(crate) fn read(&self, at: usize) -> u8 {
        assert!(at < self.len, "outside the mapping");
        // SAFETY: within the mapping, which lives as long as this.
        unsafe { self.start.add(at).read_volatile() }
    }

    /// Writes a byte; the mapping must be writable.
    pub(crate) fn write(&mut self, at: usize, byte: u8) {
        self.fill(at, &[byte]);
    }

    /// Writes bytes; the mapping must be writable.
    pub(crate) fn fill(&mut self, at: usize, bytes: &[u8]) {
        let is_inside = at.checked_add(bytes.len()).is_some_and(|end| end <= self.len);
        assert!(is_inside, "outside the mapping");
        assert!(self.is_writable, "the mapping is for reading");
        for (byte, place) in bytes.iter().zip(at..) {
            // SAFETY: within the mapping, which is writable and which nothing else borrows.
            unsafe { self.start.add(place).write_volatile(*byte) }
        }
    }
}

impl Drop for MappedPages {
    fn drop(&mut self) {
        // SAFETY: the mapping is this one's, and nothing refers to it any more.
        let _ = unsafe { rustix::mm::munmap(self.start.cast(), self.len) };
    }
}
