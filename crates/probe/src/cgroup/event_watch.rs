//! Changes of `memory.events` on v2, as the kernel reports them to `poll` (`cgroup_file_notify` in
//! `kernel/cgroup/cgroup.c`): which cgroups met a limit or had a kill, without reading those that did not.
//!
//! A reading of the file acknowledges the change (`kernfs_generic_poll`). On v1 no file reports limits.

use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};

use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::time::Timespec;

/// The files that are watched; nothing until one is added.
#[derive(Debug, Default)]
pub(super) struct EventWatch {
    epoll: Option<OwnedFd>,
}

impl EventWatch {
    /// Changes that are taken at once; others follow.
    const EVENTS_MAX: usize = 128;

    /// Watches the open `memory.events` of a cgroup, until it is closed. Returns whether that is possible: a saved file
    /// cannot be watched.
    pub(super) fn add(&mut self, file: &OwnedFd, index: usize) -> bool {
        if self.epoll.is_none() {
            self.epoll = epoll::create(CreateFlags::CLOEXEC).ok();
        }
        let data = EventData::new_u64(index as u64);
        let epoll = self.epoll.as_ref();
        epoll.is_some_and(|epoll| epoll::add(epoll, file.as_fd(), data, EventFlags::PRI).is_ok())
    }

    /// Passes on the index of each cgroup with a change since its last reading.
    pub(super) fn each(&self, mut see: impl FnMut(usize)) {
        let Some(epoll) = &self.epoll else {
            return;
        };
        let mut events = [MaybeUninit::<Event>::uninit(); Self::EVENTS_MAX];
        let now = Timespec::default();
        if let Ok((events, _)) = epoll::wait(epoll, &mut events[..], Some(&now)) {
            for event in events {
                see(usize::try_from(event.data.u64()).unwrap_or(usize::MAX));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, File};

    /// `cgroup.events` reports changes as `memory.events` does, and needs no controller.
    #[test]
    #[allow(clippy::print_stderr)]
    fn a_change_is_reported_until_it_is_read() {
        let mount = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"];
        let group = mount.iter().map(|mount| {
            std::path::Path::new(mount).join(format!("memtide-watch-{}", std::process::id()))
        });
        let is_v2 = |path: &std::path::PathBuf| {
            let is_made = fs::create_dir(path).is_ok();
            let is_v2 = is_made && path.join("cgroup.events").exists();
            if is_made && !is_v2 {
                fs::remove_dir(path).unwrap();
            }
            is_v2
        };
        let Some(group) = group.into_iter().find(is_v2) else {
            eprintln!("skipped: no cgroup of v2 can be made");
            return;
        };
        let file = OwnedFd::from(File::open(group.join("cgroup.events")).unwrap());
        let mut buffer = [0; 256];
        let mut watch = EventWatch::default();
        assert!(watch.add(&file, 7));
        let changes = |watch: &EventWatch| {
            let mut all = Vec::new();
            watch.each(|index| all.push(index));
            all
        };
        rustix::io::pread(&file, &mut buffer, 0).unwrap();
        assert!(changes(&watch).is_empty());
        fs::create_dir(group.join("below")).unwrap();
        let mut sleep = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        fs::write(group.join("cgroup.procs"), sleep.id().to_string()).unwrap();
        assert_eq!(changes(&watch), [7], "it is populated");
        assert_eq!(changes(&watch), [7], "until it is read");
        rustix::io::pread(&file, &mut buffer, 0).unwrap();
        assert!(changes(&watch).is_empty());
        sleep.kill().unwrap();
        sleep.wait().unwrap();
        fs::remove_dir(group.join("below")).unwrap();
        while fs::remove_dir(&group).is_err() {
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
    }
}
