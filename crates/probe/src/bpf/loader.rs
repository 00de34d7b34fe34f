//! Loads a BPF iterator from an object file in this binary into the kernel, and starts passes of it.
//!
//! aya loads the program. It makes the two system calls that attach an iterator and start a pass only together, so both
//! are made here: then more than one pass can be started.

use std::error::Error;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use aya::programs::{Iter, ProgramError};
use aya::{Btf, EbpfLoader};
use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::{CapabilitySet, capabilities};
use units::Bytes;

use crate::host::facts;
use crate::kernel_file::Root;
use crate::memory_left::{self, MemoryLeft};

/// The kernel's type information, with which a program finds the kernel's data.
const TYPES: &str = "/sys/kernel/btf/vmlinux";

/// A compiled iterator program.
#[derive(Debug, Clone, Copy)]
pub(crate) struct IteratorProgram {
    /// The object file, aligned as by `aya::include_bytes_aligned`.
    pub(crate) object: &'static [u8],
    /// The program's name in the object, which also names it in messages.
    pub(crate) name: &'static str,
    /// What the kernel iterates over: `task`.
    pub(crate) target: &'static str,
}

impl IteratorProgram {
    /// Loads and attaches the program with a constant set, if there is enough memory: loading must not get this process
    /// killed. The returned descriptor keeps the program in the kernel; everything else needed for loading is freed.
    ///
    /// # Errors
    /// What is missing, in words.
    pub(crate) fn load(&self, constant: (&str, u32)) -> Result<OwnedFd, String> {
        let root = Root::default();
        let types = std::fs::metadata(root.path(TYPES)).map_or(0, |types| types.len());
        fits(types, memory_left::least(&root).as_ref())?;
        let link = self.load_and_attach(constant);
        // While a program is loaded, the types take 40 MiB in many small pieces.
        crate::give_back_free_heap();
        link
    }

    fn load_and_attach(&self, (name, value): (&str, u32)) -> Result<OwnedFd, String> {
        let _memlock = RaisedMemlock::raise();
        let types = Btf::from_sys_fs().map_err(|error| {
            format!("the kernel's types ({TYPES}) cannot be read: {}", one_line(&error))
        })?;
        let refused = |error: &dyn Error| {
            format!("the kernel takes no program that reads {}: {}", self.name, one_line(error))
        };
        let mut object = EbpfLoader::new()
            .btf(Some(&types))
            .override_global(name, &value, true)
            .load(self.object)
            .map_err(|error| refused(&error))?;
        let program = object.program_mut(self.name).ok_or("the program is not in its object")?;
        let program: &mut Iter =
            program.try_into().map_err(|error: ProgramError| refused(&error))?;
        program.load(self.target, &types).map_err(|error| refused(&error))?;
        let program = program.fd().map_err(|error| refused(&error))?;
        attach(program.as_fd().as_raw_fd()).map_err(|errno| refused(&errno))
    }
}

/// Checks that this process has the capabilities; the kernel's refusal does not name the missing ones.
pub(crate) fn check_capabilities() -> Result<(), String> {
    let ours = capabilities(None).map_or(CapabilitySet::empty(), |ours| ours.effective);
    let needed = CapabilitySet::BPF | CapabilitySet::PERFMON;
    if ours.contains(CapabilitySet::SYS_ADMIN) || ours.contains(needed) {
        return Ok(());
    }
    Err(if facts::user_is_root() {
        "that needs CAP_BPF and CAP_PERFMON, which root does not have here".to_owned()
    } else {
        "that needs root, or CAP_BPF and CAP_PERFMON".to_owned()
    })
}

/// Checks that type information of this many bytes fits into memory.
fn fits(types: u64, least: Option<&MemoryLeft>) -> Result<(), String> {
    /// Measured: 34 MiB for 5.3 MiB of types (6.18), a factor of 6.5; the rest is for what the process needs
    /// afterwards.
    const TIMES: u64 = 8;
    let needed = Bytes::new(types.saturating_mul(TIMES));
    match least {
        Some(MemoryLeft { left, place }) if *left < needed => Err(format!(
            "too little memory to load it: that takes {needed} for a moment, and {place} has \
             {left} left"
        )),
        _ => Ok(()),
    }
}

/// Formats an error and its causes in one line. Of a verifier's log, which is pages long, it takes only the line with
/// the error: the last one that is not statistics.
fn one_line(error: &dyn Error) -> String {
    const STATISTICS: [&str; 4] = ["processed ", "verification time", "stack depth", "max_states"];
    let is_message = |line: &&str| !STATISTICS.iter().any(|start| line.starts_with(start));
    let mut all = String::new();
    let mut next = Some(error);
    while let Some(error) = next {
        let message = error.to_string();
        let mut lines = message.lines().filter(|line| !line.trim().is_empty());
        let first = lines.next().unwrap_or_default();
        let last = lines.rfind(is_message).unwrap_or_default();
        for part in [first, last] {
            if !part.is_empty() && !all.contains(part) {
                if !all.is_empty() {
                    all.push_str(": ");
                }
                all.push_str(part);
            }
        }
        next = error.source();
    }
    all
}

/// Removes the limit on locked memory until dropped. Before 5.11 BPF memory counts as locked memory, which is limited
/// to 64 KiB to 8 MiB per process.
struct RaisedMemlock(Rlimit);

impl RaisedMemlock {
    fn raise() -> Self {
        let before = getrlimit(Resource::Memlock);
        let unlimited = Rlimit { current: None, maximum: None };
        // If this is not permitted, the kernel may still not need it.
        let _ = setrlimit(Resource::Memlock, unlimited);
        Self(before)
    }
}

impl Drop for RaisedMemlock {
    fn drop(&mut self) {
        let _ = setrlimit(Resource::Memlock, self.0);
    }
}

/// `bpf(2)`: the arguments of BPF_LINK_CREATE for an iterator over everything.
#[repr(C)]
#[derive(Default)]
struct LinkCreate {
    program: i32,
    target: u32,
    attach_type: u32,
    flags: u32,
    iter_info: u64,
    iter_info_length: u32,
    padding: u32,
}

/// The arguments of BPF_ITER_CREATE.
#[repr(C)]
struct IterCreate {
    link: i32,
    flags: u32,
}

fn attach(program: i32) -> Result<OwnedFd, Errno> {
    const BPF_LINK_CREATE: i32 = 28;
    const BPF_TRACE_ITER: u32 = 28;
    let arguments = LinkCreate { program, attach_type: BPF_TRACE_ITER, ..LinkCreate::default() };
    bpf(BPF_LINK_CREATE, &arguments)
}

/// Starts a pass of an iterator; its records are read from the returned descriptor.
pub(crate) fn iterate(link: &OwnedFd) -> Result<OwnedFd, Errno> {
    const BPF_ITER_CREATE: i32 = 33;
    let arguments = IterCreate { link: link.as_raw_fd(), flags: 0 };
    bpf(BPF_ITER_CREATE, &arguments)
}

/// Calls `bpf(2)` for a command that returns a file descriptor.
#[allow(unsafe_code)]
fn bpf<T>(command: i32, arguments: &T) -> Result<OwnedFd, Errno> {
    use std::os::fd::FromRawFd;
    // SAFETY: the kernel reads `size_of::<T>()` bytes of arguments, which are there and have no padding, and writes
    // none for these commands.
    let result = unsafe {
        libc::syscall(libc::SYS_bpf, command, std::ptr::from_ref(arguments), size_of::<T>())
    };
    match i32::try_from(result) {
        // SAFETY: a result that is not negative is a new file descriptor with no other owner.
        Ok(fd) if fd >= 0 => Ok(unsafe { OwnedFd::from_raw_fd(fd) }),
        _ => {
            let errno = std::io::Error::last_os_error().raw_os_error();
            Err(errno.map_or(Errno::INVAL, Errno::from_raw_os_error))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_not_loaded_where_the_process_could_be_killed_for_it() {
        let left = |mib| MemoryLeft {
            left: Bytes::from_mib(mib),
            place: "cgroup /a of 24 MiB".to_owned(),
        };
        let types = 5 << 20;
        let error = fits(types, Some(&left(20))).unwrap_err();
        assert_eq!(
            error,
            "too little memory to load it: that takes 40 MiB for a moment, and cgroup /a of 24 MiB \
             has 20 MiB left"
        );
        assert_eq!(fits(types, Some(&left(40))), Ok(()));
        assert_eq!(fits(types, None), Ok(()), "no limit is known");
    }
}
