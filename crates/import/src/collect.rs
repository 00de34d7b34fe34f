//! This host's kernel files as they are, to be brought home in a capture: read by the same walks as live, shown as text.
//!
//! What is decided here is how often a file is kept, which processes are too small to matter, and what must stay out:
//! environments always; command lines unless asked for; mounts other than memory's.

use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

use probe::{Cgroups, Closeness, HostTexts, Processes, Root, host_facts, text};
use timeline::signals::{PROC_RSS, PROC_SWAP};
use timeline::{Entity, EntityRow, Facts, Sample, facts};
use units::{Bytes, PageSize};

/// What a capture may contain beyond the kernel's own numbers and names of programs.
#[derive(Debug, Clone, Copy, Default)]
pub struct Secrets {
    /// Command lines of processes and of the kernel.
    pub command_lines: bool,
    /// The host's name.
    pub hostname: bool,
}

/// Reads a host's kernel files, sample by sample.
#[derive(Debug)]
pub(crate) struct Collector {
    root: Root,
    secrets: Secrets,
    page_size: Option<PageSize>,
    host: HostTexts,
    cgroups: Cgroups,
    processes: Processes,
    sample: Sample,
    taken: usize,
}

/// Slab caches and proportional shares are kept in the first sample and every fifth: they cost more and change slowly.
const EVERY_FIFTH: usize = 5;
/// Processes that hold less than this are left out, as nothing that fills memory is that small.
const SMALLEST_PROCESS: Bytes = Bytes::from_mib(1);
/// Processes of one sample, the largest: with 2 KiB for each, a sample stays well below a line's bound.
const MOST_PROCESSES: usize = 5_000;
/// How many processes are looked at closely. More than live (20 µs for each), as nobody can ask the host again.
const CLOSELY: usize = 1_000;
/// How long proportional shares may take in all, which is also the longest that a process can be held: 14 GiB of it.
const SHARES: Duration = Duration::from_millis(50);
/// Kernel threads hold nothing, but the CPU time of these is the cost of reclaim.
const RECLAIM: [&str; 3] = ["kswapd", "kcompactd", "khugepaged"];

impl Collector {
    /// For the host below `root`, of which these facts are known.
    pub(crate) fn new(root: &Root, facts: &Facts, secrets: Secrets) -> Self {
        Self {
            root: root.clone(),
            secrets,
            page_size: facts.page_size,
            host: HostTexts::open(root),
            cgroups: Cgroups::new(root),
            processes: Processes::new(root),
            sample: Sample::default(),
            taken: 0,
        }
    }

    /// Reads one sample: kernel path → text. What cannot be read is left out.
    pub(crate) fn sample(&mut self) -> BTreeMap<String, String> {
        let mut files = BTreeMap::new();
        let mut keep = |path: &str, text: &[u8]| {
            files.insert(path.to_owned(), text::lossy(text).into_owned());
        };
        let is_fifth = self.taken.is_multiple_of(EVERY_FIFTH);
        // The host's own files first and together: per-process files may wait for a busy process's locks.
        self.host.read(is_fifth, &mut keep);
        if self.taken == 0 {
            self.facts(&mut keep);
        }
        self.sample.clear();
        self.cgroups.sample_showing(&mut self.sample, &mut keep);
        self.processes.closeness = Closeness {
            largest: CLOSELY,
            shares: is_fifth.then_some(SHARES),
        };
        self.processes.sample_showing(&mut self.sample, &mut keep);
        self.keep_large_processes(&mut files);
        self.taken += 1;
        files
    }

    /// What changes rarely.
    fn facts(&self, keep: &mut dyn FnMut(&str, &[u8])) {
        for path in host_facts::files(&self.root) {
            let is_secret = path == facts::KERNEL_CMDLINE.file;
            if is_secret && !self.secrets.command_lines {
                continue;
            }
            if let Ok(text) = self.root.read(&path) {
                keep(&path, &host_facts::without_private(&path, &text));
            }
        }
    }

    /// Drops processes that are too small, and adds the command lines of the others where asked for.
    fn keep_large_processes(&self, files: &mut BTreeMap<String, String>) {
        let rows = self.sample.table(Entity::Process).rows();
        let mut large: Vec<(Bytes, &str)> = rows
            .iter()
            .filter_map(|process| {
                let (pid, _) = process.key.split_once('@')?;
                let held = self.held(process);
                let reclaims = RECLAIM.iter().any(|name| process.label.starts_with(name));
                if reclaims {
                    return Some((Bytes::new(u64::MAX), pid));
                }
                (held >= SMALLEST_PROCESS).then_some((held, pid))
            })
            .collect();
        large.sort_unstable_by(|a, b| b.cmp(a));
        large.truncate(MOST_PROCESSES);
        let large: HashSet<&str> = large.into_iter().map(|(_, pid)| pid).collect();
        files.retain(|path, _| pid_of(path).is_none_or(|pid| large.contains(pid)));
        if self.secrets.command_lines {
            for pid in large {
                let path = format!("/proc/{pid}/cmdline");
                if let Ok(text) = self.root.read(&path) {
                    files.insert(path, text::lossy(&text).into_owned());
                }
            }
        }
    }

    /// What a process has in RAM and in swap, as far as it is known.
    fn held(&self, process: &EntityRow) -> Bytes {
        let swapped = process.row.get(PROC_SWAP).unwrap_or_default();
        // Without a page size, as below a foreign root, 4 KiB is the least that a page can be.
        let resident = process.row.get(PROC_RSS).unwrap_or_default();
        let page = self.page_size.unwrap_or(PageSize::USUAL);
        resident.to_bytes(page) + swapped
    }
}

/// The PID of a process's file.
fn pid_of(path: &str) -> Option<&str> {
    let (pid, _) = path.strip_prefix("/proc/")?.split_once('/')?;
    text::number(pid.as_bytes()).map(|_| pid)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn collect(root: &Root, secrets: Secrets) -> BTreeMap<String, String> {
        let mut facts = Facts::default();
        host_facts::read(root, units::Span::ZERO, &mut facts);
        Collector::new(root, &facts, secrets).sample()
    }

    #[test]
    fn secrets_stay_out_unless_asked_for() {
        let quiet = collect(&Root::default(), Secrets::default());
        assert!(quiet.contains_key("/proc/meminfo"));
        assert!(quiet.contains_key("/proc/sys/vm/swappiness"));
        let loud = quiet.keys().find(|path| {
            ["/cmdline", "/environ", "hostname"]
                .iter()
                .any(|name| path.ends_with(name))
        });
        assert_eq!(loud, None);
        let mounts = quiet.iter().filter(|(path, _)| path.ends_with("/mounts"));
        for (_, mounts) in mounts {
            assert!(!mounts.contains(" ext4 ") && !mounts.contains(" proc "));
        }
    }

    #[test]
    fn command_lines_come_when_asked_for() {
        let secrets = Secrets {
            command_lines: true,
            hostname: false,
        };
        let files = collect(&Root::default(), secrets);
        assert!(files.contains_key("/proc/cmdline"));
        assert!(files.contains_key(&format!("/proc/{}/cmdline", std::process::id())));
    }

    #[test]
    fn small_processes_are_left_out_and_those_that_reclaim_or_are_swapped_out_stay() {
        let directory = tempfile::tempdir().unwrap();
        for (pid, name, size, pages, swap) in [
            (1, "init", 1 << 20, 10, 0),
            (20, "server", 1 << 30, 5_000, 0),
            (30, "idle", 1 << 30, 3, 4_096),
            (40, "kswapd0", 0, 0, 0),
            (41, "kworker", 0, 0, 0),
        ] {
            let at = directory.path().join(format!("proc/{pid}"));
            fs::create_dir_all(&at).unwrap();
            let stat = format!(
                "{pid} ({name}) S 1 0 0 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 7 {size} {pages} 0"
            );
            fs::write(at.join("stat"), stat).unwrap();
            fs::write(at.join("status"), format!("VmSwap:\t{swap} kB\n")).unwrap();
        }
        let files = collect(&Root::at(directory.path()), Secrets::default());
        let stats: Vec<&str> = files
            .keys()
            .filter(|path| path.ends_with("/stat"))
            .map(String::as_str)
            .collect();
        assert_eq!(stats, ["/proc/20/stat", "/proc/30/stat", "/proc/40/stat"]);
    }
}
