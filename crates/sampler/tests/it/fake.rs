//! A host as a directory of saved kernel files, whose processes and figures a test changes.

// What is not in a test function counts as other code.
#![allow(clippy::unwrap_used)]

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};

use probe::{Root, TaskSource};
use sampler::{Health, Message, Recorder, Settings};
use store::{HostIdentity, Recording, Selection, Writer, WriterOptions};
use timeline::Facts;
use units::{Ratio, Span};

pub(crate) struct Fake {
    directory: tempfile::TempDir,
}

/// A process as its files tell.
#[derive(Clone)]
pub(crate) struct Process {
    pub(crate) pid: u32,
    pub(crate) start: u64,
    pub(crate) name: String,
    pub(crate) unit: String,
    pub(crate) pages: u64,
    pub(crate) ticks: u64,
}

impl Process {
    pub(crate) fn new(pid: u32, name: &str, unit: &str) -> Self {
        Self {
            pid,
            start: 100 + u64::from(pid),
            name: name.to_owned(),
            unit: unit.to_owned(),
            pages: 1_000,
            ticks: 50,
        }
    }
}

impl Fake {
    /// A host of kernel 6.1 without processes.
    pub(crate) fn host() -> Self {
        let fake = Self { directory: tempfile::tempdir().unwrap() };
        let kernel = Path::new(env!("CARGO_MANIFEST_DIR")).join("../probe/tests/kernel/6.1");
        for (saved, path) in [
            ("vmstat", "proc/vmstat"),
            ("zoneinfo", "proc/zoneinfo"),
            ("buddyinfo", "proc/buddyinfo"),
            ("stat", "proc/stat"),
            ("diskstats", "proc/diskstats"),
            ("swaps", "proc/swaps"),
            ("node0_meminfo", "sys/devices/system/node/node0/meminfo"),
        ] {
            let text = fs::read_to_string(kernel.join(saved)).unwrap();
            fake.write(path, &text);
        }
        fake.meminfo(1_000_000);
        fake
    }

    pub(crate) fn root(&self) -> Root {
        Root::at(self.directory.path())
    }

    pub(crate) fn recording(&self) -> PathBuf {
        self.directory.path().join("recording")
    }

    pub(crate) fn write(&self, path: &str, text: &str) {
        let path = self.directory.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub(crate) fn meminfo(&self, free_kib: u64) {
        let text = format!("MemTotal: 8000000 kB\nMemFree: {free_kib} kB\nCached: 5000 kB\n");
        self.write("proc/meminfo", &text);
    }

    pub(crate) fn group(&self, path: &str, current: u64) {
        let at = |name: &str| format!("sys/fs/cgroup/{path}/{name}");
        self.write("sys/fs/cgroup/cgroup.controllers", "memory\n");
        self.write("sys/fs/cgroup/memory.stat", "anon 5\nfile 6\n");
        self.write(&at("memory.current"), &format!("{current}\n"));
        self.write(&at("memory.max"), "max\n");
        self.write(&at("memory.stat"), &format!("anon {current}\nfile 7\n"));
    }

    /// Writes how often a cgroup met its limit.
    pub(crate) fn hits(&self, path: &str, hits: u64) {
        let text = format!("low 0\nhigh 0\nmax {hits}\noom 0\noom_kill 0\n");
        self.write(&format!("sys/fs/cgroup/{path}/memory.events"), &text);
    }

    /// Writes the files of a process, or writes them anew.
    pub(crate) fn process(&self, process: &Process) {
        let Process { pid, start, name, unit, pages, ticks } = process;
        let size = pages << 12;
        let at = |file: &str| format!("proc/{pid}/{file}");
        let stat = format!(
            "{pid} ({name}) S 1 {pid} {pid} 0 -1 4194560 900 0 3 0 {ticks} 7 0 0 20 0 1 0 {start} \
             {size} {pages} 0"
        );
        // Whoever reads in between sees one or the other.
        let mut text = stat;
        text.push_str(&" 0".repeat(27));
        self.replace(&at("stat"), &text);
        let kib = pages * 4;
        let mut status = format!("Name:\t{name}\nVmSize:\t{kib} kB\nVmRSS:\t{kib} kB\n");
        let _ =
            write!(status, "RssAnon:\t{kib} kB\nRssFile:\t0 kB\nRssShmem:\t0 kB\nVmSwap:\t8 kB\n");
        self.replace(&at("status"), &status);
        self.replace(&at("statm"), &format!("{} {pages} 0 1 0 0 0\n", pages * 2));
        self.replace(&at("oom_score_adj"), "0\n");
        self.replace(&at("comm"), &format!("{name}\n"));
        self.replace(&at("cgroup"), &format!("0::{unit}\n"));
        self.replace(
            &at("io"),
            "rchar: 1\nwchar: 2\nsyscr: 3\nsyscw: 4\nread_bytes: 4096\nwrite_bytes: 0\ncancelled_write_bytes: 0\n",
        );
        let rollup = format!("0-1 ---p 0 0:0 0 [rollup]\nRss: {kib} kB\nPss: {} kB\n", kib / 2);
        self.replace(&at("smaps_rollup"), &rollup);
    }

    fn replace(&self, path: &str, text: &str) {
        let draft = self.directory.path().join("draft");
        fs::write(&draft, text).unwrap();
        let path = self.directory.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::rename(draft, path).unwrap();
    }

    pub(crate) fn end(&self, pid: u32) {
        fs::remove_dir_all(self.directory.path().join(format!("proc/{pid}"))).unwrap();
    }

    /// A recorder of this host that reads it through files, and where to send it messages.
    pub(crate) fn recorder(
        &self,
        settings: Settings,
    ) -> (Recorder, Arc<Health>, SyncSender<Message>) {
        recorder(&self.root(), &self.recording(), settings)
    }

    /// What was recorded.
    pub(crate) fn loaded(&self) -> store::Loaded {
        let recording = Recording::open(&self.recording()).unwrap();
        let loaded = recording.load(Selection::default(), &mut |_| ());
        assert_eq!(loaded.problems, Vec::<String>::new());
        loaded
    }
}

/// Settings under which all that is read is read in every sample, through files.
pub(crate) fn always() -> Settings {
    Settings {
        processes: Some(Span::from_secs(1)),
        groups: Some(Span::from_secs(1)),
        // However much CPU time a scan takes on this machine.
        groups_share: Ratio::from_percent(100.0),
        source: Some(TaskSource::Proc),
        shares: None,
        ..Settings::default()
    }
}

pub(crate) fn recorder(
    root: &Root,
    directory: &Path,
    settings: Settings,
) -> (Recorder, Arc<Health>, SyncSender<Message>) {
    let identity = HostIdentity { id: "fake".to_owned(), name: "fake".to_owned() };
    let options = WriterOptions { every: settings.every, ..WriterOptions::default() };
    let mut facts = Facts::default();
    facts.cpus = Some(2);
    let writer = Writer::open(directory, &identity, &facts, options).unwrap();
    let health = Arc::new(Health::default());
    let (outbox, inbox) = sync_channel(sampler::INBOX);
    let recorder = Recorder::new(root, writer, settings, Arc::clone(&health), inbox);
    (recorder, health, outbox)
}
