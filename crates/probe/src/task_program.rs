//! The BPF program that reads tasks, from its object file in this binary into the kernel.
//!
//! aya loads it; attaching and reading an iterator again and again are two system calls that aya makes only together.

use std::os::fd::{AsRawFd, OwnedFd};

use rustix::io::Errno;

/// The kernel's types, by which the program finds the kernel's data.
pub(crate) const TYPES: &str = "/sys/kernel/btf/vmlinux";

/// Whether this binary has the program.
pub(crate) const IS_THERE: bool = cfg!(has_task_program);

/// Loads and attaches the program for so many CPUs, or says in words what it needs where that fails.
///
/// What is given keeps the program in the kernel; all else that was needed to load it is freed.
#[cfg(has_task_program)]
pub(crate) fn load(cpus: u32) -> Result<OwnedFd, String> {
    let link = load_and_attach(cpus);
    give_back();
    link
}

/// The kernel's types are 40 MiB in many small pieces while the program is loaded, which the allocator would keep.
#[cfg(all(has_task_program, target_env = "gnu"))]
#[allow(unsafe_code)]
fn give_back() {
    // SAFETY: it takes a number, and only gives free memory back to the kernel.
    unsafe { libc::malloc_trim(0) };
}

#[cfg(all(has_task_program, not(target_env = "gnu")))]
fn give_back() {}

#[cfg(has_task_program)]
fn load_and_attach(cpus: u32) -> Result<OwnedFd, String> {
    use aya::programs::Iter;
    use aya::{Btf, EbpfLoader};
    use std::os::fd::AsFd;

    static OBJECT: &[u8] = aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/tasks.bpf.o"));
    let _lockable = Lockable::raise();
    let types = Btf::from_sys_fs().map_err(|error| {
        format!(
            "the kernel's types ({TYPES}) cannot be read: {}",
            chain(&error)
        )
    })?;
    let refused = |error: &dyn std::error::Error| {
        format!(
            "the kernel takes no program that reads tasks: {}",
            chain(error)
        )
    };
    let mut object = EbpfLoader::new()
        .btf(Some(&types))
        .override_global("CPUS", &cpus, true)
        .load(OBJECT)
        .map_err(|error| refused(&error))?;
    let program = object
        .program_mut("tasks")
        .ok_or("the program is not in its object")?;
    let program: &mut Iter = program
        .try_into()
        .map_err(|e: aya::programs::ProgramError| refused(&e))?;
    program
        .load("task", &types)
        .map_err(|error| refused(&error))?;
    let program = program.fd().map_err(|error| refused(&error))?;
    attach(program.as_fd().as_raw_fd()).map_err(|errno| refused(&errno))
}

/// There is no program in this binary.
#[cfg(not(has_task_program))]
pub(crate) fn load(_cpus: u32) -> Result<OwnedFd, String> {
    let reason = option_env!("MEMTIDE_NO_TASK_PROGRAM").unwrap_or("no reason is known");
    Err(format!(
        "memtide was built without the program that reads tasks: {reason}"
    ))
}

/// An error and its causes in one line. Of a verifier's log, which is pages long, the line that says what is wrong: the
/// last one that is no statistics.
#[cfg(has_task_program)]
fn chain(error: &dyn std::error::Error) -> String {
    let mut line = String::new();
    let mut next = Some(error);
    while let Some(error) = next {
        let message = error.to_string();
        let statistics = [
            "processed ",
            "verification time",
            "stack depth",
            "max_states",
        ];
        let tells = |line: &&str| !statistics.iter().any(|start| line.starts_with(start));
        let mut lines = message.lines().filter(|line| !line.trim().is_empty());
        let first = lines.next().unwrap_or_default();
        let last = lines.rfind(tells).unwrap_or_default();
        for part in [first, last] {
            if !part.is_empty() && !line.contains(part) {
                if !line.is_empty() {
                    line.push_str(": ");
                }
                line.push_str(part);
            }
        }
        next = error.source();
    }
    line
}

/// Before 5.11 what BPF holds counts as locked memory, of which a process may have 64 KiB to 8 MiB: as much as there is,
/// until this is dropped.
#[cfg(has_task_program)]
struct Lockable(rustix::process::Rlimit);

#[cfg(has_task_program)]
impl Lockable {
    fn raise() -> Self {
        use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
        let before = getrlimit(Resource::Memlock);
        let all = Rlimit {
            current: None,
            maximum: None,
        };
        // Without the right to do so the kernel may still not ask for it.
        let _ = setrlimit(Resource::Memlock, all);
        Self(before)
    }
}

#[cfg(has_task_program)]
impl Drop for Lockable {
    fn drop(&mut self) {
        let _ = rustix::process::setrlimit(rustix::process::Resource::Memlock, self.0);
    }
}

/// `bpf(2)`: the arguments of BPF_LINK_CREATE for an iterator of everything.
#[cfg(has_task_program)]
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

#[cfg(has_task_program)]
fn attach(program: i32) -> Result<OwnedFd, Errno> {
    const BPF_LINK_CREATE: i32 = 28;
    const BPF_TRACE_ITER: u32 = 28;
    let arguments = LinkCreate {
        program,
        attach_type: BPF_TRACE_ITER,
        ..LinkCreate::default()
    };
    bpf(BPF_LINK_CREATE, &arguments)
}

/// Starts a pass over the tasks; its records are read from what is given.
pub(crate) fn iterate(link: &OwnedFd) -> Result<OwnedFd, Errno> {
    const BPF_ITER_CREATE: i32 = 33;
    let arguments = IterCreate {
        link: link.as_raw_fd(),
        flags: 0,
    };
    bpf(BPF_ITER_CREATE, &arguments)
}

/// Calls `bpf(2)` for a command that gives a file descriptor.
#[allow(unsafe_code)]
fn bpf<T>(command: i32, arguments: &T) -> Result<OwnedFd, Errno> {
    use std::os::fd::FromRawFd;
    // SAFETY: the kernel reads `size_of::<T>()` bytes of arguments, which are there and have no padding, and writes none
    // for these commands.
    let result = unsafe {
        libc::syscall(
            libc::SYS_bpf,
            command,
            std::ptr::from_ref(arguments),
            size_of::<T>(),
        )
    };
    match i32::try_from(result) {
        // SAFETY: a result that is not negative is a new file descriptor that nobody else has.
        Ok(fd) if fd >= 0 => Ok(unsafe { OwnedFd::from_raw_fd(fd) }),
        _ => {
            let errno = std::io::Error::last_os_error().raw_os_error();
            Err(errno.map_or(Errno::INVAL, Errno::from_raw_os_error))
        }
    }
}
