//! Which process is it? Small files of `/proc/PID`: `comm`, `exe`, `stat`, `status`, `cgroup`, `oom_score`. None of them takes
//! the lock of its address space, as `cmdline` does: that could wait for ever. `stat` and `exe` wait while the process is in exec(2), so
//! other threads read them.
//!
//! All but `exe` are readable by every user. `oom_score` is 0 to 2000, with `oom_score_adj` counted in; the process with
//! the highest is killed first. The link `exe` ends with ` (deleted)` if the program was replaced since it was started;
//! reading it needs the right to trace the process. Cost: 28 system calls of 1 to 5 µs each.

use std::os::unix::ffi::OsStringExt as _;

use timeline::EntityRow;
use timeline::signals::{PROC_OOM_ADJ, PROC_RSS, PROC_RSS_ANON, PROC_SWAP};
use units::{Bytes, PageSize, Span};

use crate::cgroup::hierarchy::Hierarchy;
use crate::error::ReadError;
use crate::host::facts::page_size;
use crate::host::live::now;
use crate::kernel_file::Root;
use crate::process::files::ProcessFiles;
use crate::process::links;
use crate::process::reader_thread::ReaderThread;
use crate::process::stat;
use crate::process::status::StatusFacts;
use crate::text;

/// A process by its small files; what cannot be read is absent.
#[derive(Debug, Clone, Default)]
pub struct ProcessIdentity {
    /// Its PID as the reader sees it.
    pub pid: u32,
    /// Its name, at most 15 bytes of any value but 0.
    pub name: Vec<u8>,
    /// Its program file, without the mark of a removed file.
    pub program: Option<Vec<u8>>,
    /// Whether the program file was removed or replaced since it was started.
    pub is_program_deleted: bool,
    /// When it was started, in clock ticks since boot: with the PID it names a process for good.
    pub start_ticks: Option<u64>,
    /// How long it has been running.
    pub age: Option<Span>,
    /// Its anonymous memory, in RAM and in swap; before 4.5 all that it has in RAM, files included, and in swap.
    pub size: Bytes,
    /// Whether it is a thread of the kernel: it has no memory of its own.
    pub is_kernel_thread: bool,
    /// User, threads, PIDs in namespaces.
    pub facts: StatusFacts,
    /// Path of the cgroup that its memory is charged to, below the mount of the hierarchy.
    pub cgroup: Option<String>,
    /// Its service, container or pod.
    pub service: Option<String>,
    /// How likely the kernel kills it when memory is exhausted: 0 to 2000.
    pub oom_score: Option<u64>,
    /// What an administrator adds to that score: -1000 to 1000.
    pub oom_score_adj: Option<i64>,
}

/// Length of the names that the kernel keeps; longer ones are cut.
const COMM_LEN: usize = 15;

impl ProcessIdentity {
    /// Reads the identity of a process.
    ///
    /// # Errors
    /// [`ReadError`] if there is no such process.
    pub fn read(root: &Root, pid: u32) -> Result<Self, ReadError> {
        Self::read_in(root, pid, Hierarchy::find(root).as_ref(), &mut stat_of(root))
    }

    /// Reads it where the hierarchy of cgroups is already known: finding it parses all mounts.
    fn read_in(
        root: &Root,
        pid: u32,
        cgroups: Option<&Hierarchy>,
        stat: &mut ReaderThread,
    ) -> Result<Self, ReadError> {
        let file = |name: &str| root.read(&format!("/proc/{pid}/{name}"));
        let text = |name: &str| file(name).unwrap_or_default();
        let comm = file("comm")?;
        let status = text("status");
        let mut identity = Self {
            pid,
            name: comm.strip_suffix(b"\n").unwrap_or(&comm).to_vec(),
            facts: StatusFacts::parse(&status),
            oom_score: text::number(text::trim(&text("oom_score"))),
            ..Self::default()
        };
        let mut row = EntityRow::default();
        stat.one(pid, Span::ZERO, &mut |text| {
            let text = text.unwrap_or_default();
            let (found, _malformed) =
                stat::read(text, |signal, value| row.row.set_raw(signal, value));
            identity.start_ticks = found.and_then(|found| found.start);
            identity.is_kernel_thread = found.is_some_and(|found| found.is_kernel_thread);
        });
        identity.age = identity.start_ticks.map(age);
        if let Some(link) = links::read(root, pid, "exe") {
            identity.set_program(link.into_os_string().into_vec());
        }
        let mut parser = ProcessFiles::default();
        let cgroup = text("cgroup");
        for (name, text) in
            [("status", &status), ("oom_score_adj", &text("oom_score_adj")), ("cgroup", &cgroup)]
        {
            // A malformed text is an absent reading.
            let _ = parser.parse(pid, name, text, &mut row);
        }
        let swapped = row.row.get(PROC_SWAP).unwrap_or_default();
        identity.size = row.row.get(PROC_RSS_ANON).unwrap_or_else(|| {
            let page = page_size().unwrap_or(PageSize::USUAL);
            row.row.get(PROC_RSS).unwrap_or_default().to_bytes(page)
        }) + swapped;
        let shifted = row.row.get(PROC_OOM_ADJ);
        identity.oom_score_adj = shifted.and_then(|n| Some(i64::try_from(n.get()).ok()? - 1000));
        identity.service = (!row.group.is_empty()).then_some(row.group);
        identity.cgroup = cgroups.and_then(|found| found.key(&cgroup));
        Ok(identity)
    }

    /// Returns the processes for which `is_wanted` holds. Processes that end meanwhile are left out.
    ///
    /// # Errors
    /// [`ReadError`] if `/proc` cannot be listed.
    pub fn find(
        root: &Root,
        mut is_wanted: impl FnMut(&Self) -> bool,
    ) -> Result<Vec<Self>, ReadError> {
        let pids = root.numbers("/proc")?;
        let cgroups = Hierarchy::find(root);
        let mut stat = stat_of(root);
        let read =
            pids.filter_map(|pid| Self::read_in(root, pid, cgroups.as_ref(), &mut stat).ok());
        Ok(read.filter(|one| is_wanted(one)).collect())
    }

    /// Returns a thread of it that goes on, other than its first one.
    pub fn other_thread(&self, root: &Root) -> Option<u32> {
        let tasks = format!("/proc/{}/task", self.pid);
        root.numbers(&tasks).ok()?.find(|tid| {
            let status = root.read(&format!("{tasks}/{tid}/status"));
            let state = StatusFacts::parse(&status.unwrap_or_default()).state;
            *tid != self.pid && state.is_some_and(|state| !matches!(state, 'Z' | 'X'))
        })
    }

    /// Returns whether this is its name, or that of its program.
    pub fn is_named(&self, name: &[u8]) -> bool {
        let is_cut = self.name.len() == COMM_LEN && name.starts_with(&self.name);
        let program = self.program.as_deref().unwrap_or_default();
        self.name == name || is_cut || program.rsplit(|byte| *byte == b'/').next() == Some(name)
    }

    /// Returns whether it belongs to the service, container, pod or cgroup of this name.
    pub fn belongs_to(&self, name: &str) -> bool {
        let is_named = |cgroup: &str| {
            let part = cgroup.rsplit('/').next().unwrap_or_default();
            [cgroup, part].contains(&name) || part.strip_suffix(".service") == Some(name)
        };
        self.service.as_deref().is_some_and(is_named)
            || self.cgroup.as_deref().is_some_and(is_named)
    }

    fn set_program(&mut self, mut link: Vec<u8>) {
        const DELETED: &[u8] = b" (deleted)";
        if link.ends_with(DELETED) {
            link.truncate(link.len() - DELETED.len());
            self.is_program_deleted = true;
        }
        self.program = Some(link);
    }
}

fn stat_of(root: &Root) -> ReaderThread {
    ReaderThread::new(&root.path("/proc"), "stat")
}

/// Returns how long ago this many ticks after boot were. The clock of `stat` counts suspended time too.
fn age(start_ticks: u64) -> Span {
    let per_second = rustix::param::clock_ticks_per_second().max(1);
    let started = Span::from_secs_f64(start_ticks as f64 / per_second as f64);
    now().boot.saturating_sub(started)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_thread_is_one_that_goes_on() {
        let (sender, receiver) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::spawn(move || receiver.recv());
        let identity = ProcessIdentity::read(&Root::default(), std::process::id()).unwrap();
        let other = identity.other_thread(&Root::default());
        drop(sender);
        assert!(other.is_some_and(|tid| tid != identity.pid));
        assert!(thread.join().unwrap().is_err());
    }

    #[test]
    fn this_process_is_its_program() {
        let identity = ProcessIdentity::read(&Root::default(), std::process::id()).unwrap();
        let program = std::env::current_exe().unwrap();
        assert_eq!(identity.program.as_deref(), Some(program.as_os_str().as_encoded_bytes()));
        assert_eq!(identity.facts.namespace_pids.first(), Some(&std::process::id()));
        assert!(identity.facts.threads.is_some_and(|n| n >= 1));
        assert!(identity.oom_score.is_some_and(|score| score <= 2000));
        assert!(identity.oom_score_adj.is_some_and(|adj| adj.abs() <= 1000));
        assert!(identity.size > Bytes::ZERO);
        assert!(identity.age.is_some_and(|age| age < Span::from_hours(1)));
    }

    #[test]
    fn processes_are_found_by_what_they_are() {
        let own = std::process::id();
        let found = ProcessIdentity::find(&Root::default(), |one| one.pid == own).unwrap();
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].pid, own);
    }

    #[test]
    fn saved_files_of_a_process_are_enough_and_what_is_missing_is_absent() {
        let directory = tempfile::tempdir().unwrap();
        let process = directory.path().join("proc/7");
        std::fs::create_dir_all(&process).unwrap();
        std::fs::write(process.join("comm"), "a\nb\n").unwrap();
        std::fs::write(process.join("oom_score_adj"), "-998\n").unwrap();
        std::os::unix::fs::symlink("/opt/x (deleted)", process.join("exe")).unwrap();
        let root = Root::at(directory.path());
        let identity = ProcessIdentity::read(&root, 7).unwrap();
        assert_eq!(identity.name, b"a\nb");
        assert_eq!(identity.program.as_deref(), Some(b"/opt/x".as_slice()));
        assert!(identity.is_program_deleted);
        assert_eq!(identity.oom_score_adj, Some(-998));
        assert_eq!((identity.oom_score, identity.cgroup), (None, None));
        assert_eq!(identity.size, Bytes::ZERO);
        assert!(ProcessIdentity::read(&root, 8).is_err());
    }

    fn process(name: &str, program: &str, service: &str) -> ProcessIdentity {
        ProcessIdentity {
            name: name.as_bytes().to_vec(),
            program: Some(program.as_bytes().to_vec()),
            service: Some(service.to_owned()),
            cgroup: Some("/system.slice/ruby.service".to_owned()),
            ..ProcessIdentity::default()
        }
    }

    #[test]
    fn a_process_has_several_names() {
        let one = process("puma: cluster w", "/usr/bin/ruby3.1", "jobs.service");
        assert!(one.is_named(b"ruby3.1") && one.is_named(b"puma: cluster worker 1"));
        assert!(!one.is_named(b"ruby") && !one.is_named(b"puma"));
        assert!(one.belongs_to("jobs") && one.belongs_to("jobs.service"));
        assert!(one.belongs_to("/system.slice/ruby.service") && one.belongs_to("ruby"));
        assert!(!one.belongs_to("job"));
    }
}
