//! A cgroup for a command that somebody else starts and waits for.
#![allow(unsafe_code)]

use std::os::unix::process::CommandExt as _;
use std::process::Command;

use units::Span;

use super::error::CgroupRunError;
use super::group::RunGroup;
use super::guard::RunGuard;
use super::place::GroupPlace;
use super::readings::{GroupFiles, awake};
use super::{CgroupRunOptions, GroupReading};

/// A cgroup with limits, which is emptied and removed with this value; if this process is killed, by a guard.
#[derive(Debug)]
pub struct CommandGroup {
    files: GroupFiles,
    begun: Span,
    // In this order: it is never without a guard.
    group: RunGroup,
    _guard: RunGuard,
}

impl CommandGroup {
    /// Makes it beside or below that of this process, and sets its limits.
    ///
    /// # Errors
    /// No cgroup can be made, or a limit is not taken.
    pub fn make(options: &CgroupRunOptions) -> Result<Self, CgroupRunError> {
        let place = GroupPlace::choose(options.name)?;
        let guard = RunGuard::start(&place)?;
        let group = RunGroup::make(place)?;
        options.limits.set(&group)?;
        Ok(Self { files: GroupFiles::open(&group), begun: awake(), group, _guard: guard })
    }

    /// Has a command join it before its program is loaded.
    ///
    /// # Errors
    /// It takes no process.
    pub fn admit(&self, command: &mut Command) -> Result<(), CgroupRunError> {
        let doors = self.group.doors()?;
        // SAFETY: the closure runs in the child between fork and exec and writes to open files, which is async-signal-safe: it
        // allocates nothing and takes no lock.
        unsafe {
            command.pre_exec(move || {
                for door in &doors {
                    rustix::io::write(door, b"0")?;
                }
                Ok(())
            });
        }
        Ok(())
    }

    /// Its state now.
    pub fn read(&mut self) -> GroupReading {
        self.files.read(self.begun)
    }

    /// Kills what is left in it and removes it; returns how many processes those were.
    ///
    /// # Errors
    /// A process cannot be ended, or the cgroup not removed.
    pub fn end(mut self) -> Result<usize, CgroupRunError> {
        self.group.remove()
    }
}
