//! A container as a runtime makes it: a cgroup, and programs that see the processes and the cgroups in it only.

use std::fs::File;
use std::os::fd::AsFd as _;
use std::process::{Child, Command, Stdio};

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use super::part::Part;
use super::program::MemtideCommand;
use crate::sys;

/// What managers of containers set for the programs in them (systemd's container interface).
const VARIABLE: &str = "container";

/// A running container; its processes are killed when it is dropped.
#[derive(Debug)]
pub struct GuestContainer {
    /// `cgroup.procs` of its cgroup.
    tasks: File,
    /// Its PID namespace.
    processes: File,
    is_cgroup_v1: bool,
    /// How many times as long as they say its parts work.
    stretch: f64,
    /// Its first process: with it all others end.
    _first: Part,
}

impl GuestContainer {
    pub(super) fn start(cgroup: &str, is_cgroup_v1: bool, stretch: f64) -> Result<Self, String> {
        let open = |path: String, options: &std::fs::OpenOptions| {
            let file = options.open(&path);
            file.map_err(|error| format!("cannot open {path}: {error}"))
        };
        let tasks = open(format!("{cgroup}/cgroup.procs"), File::options().write(true))?;
        let first = Part::start(&["hog", "64K"], 1.0, Stdio::null(), |command| {
            spawn(command, &tasks, is_cgroup_v1, sys::unshare_processes)
        })?;
        let processes = format!("/proc/{}/ns/pid", first.pid());
        Ok(Self {
            tasks,
            processes: open(processes, File::options().read(true))?,
            is_cgroup_v1,
            stretch,
            _first: first,
        })
    }

    /// Whether this process runs in such a container.
    pub(crate) fn is_around() -> bool {
        std::env::var_os(VARIABLE).is_some()
    }

    /// Starts a part of a workload in it, as [`super::Guest::launch`].
    ///
    /// # Errors
    /// Where it cannot be started.
    pub fn launch(&self, part: &[&str]) -> Result<Part, String> {
        Part::start(part, self.stretch, Stdio::null(), |command| self.spawn(command))
    }

    /// Starts this program with other arguments in it, as `docker exec` does.
    ///
    /// # Errors
    /// Where it cannot be started.
    pub fn memtide(&self, arguments: &[&str]) -> Result<MemtideCommand, String> {
        MemtideCommand::start(arguments, |command| self.spawn(command))
    }

    fn spawn(&self, command: &mut Command) -> std::io::Result<Child> {
        let processes = self.processes.as_fd();
        spawn(command, &self.tasks, self.is_cgroup_v1, || {
            let kind = Some(LinkNameSpaceType::ProcessID);
            move_into_link_name_space(processes, kind)
        })
    }
}

/// Starts a command from a thread with children in another PID namespace, as a thread of this process cannot leave its
/// own again.
fn spawn(
    command: &mut Command,
    tasks: &File,
    is_cgroup_v1: bool,
    enter: impl FnOnce() -> rustix::io::Result<()> + Send,
) -> std::io::Result<Child> {
    sys::in_container(command.env(VARIABLE, "memtide-lab"), tasks, is_cgroup_v1)?;
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            enter()?;
            command.spawn()
        });
        thread.join().unwrap_or_else(|_| Err(std::io::Error::other("the thread panicked")))
    })
}
