//! Reads this host's kernel files as they are, to be brought home in a capture. Nothing is interpreted here but what
//! must stay out: environments always, command lines and the host's name unless asked for, mounts other than memory's.

use std::collections::BTreeMap;

use probe::{KernelFile, Root, text};
use timeline::facts;

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
pub struct Collector {
    root: Root,
    secrets: Secrets,
    nodes: Vec<String>,
    zrams: Vec<String>,
    hierarchy: Option<&'static str>,
    taken: usize,
    buffer: Vec<u8>,
}

/// Read in every sample.
const EVERY_SAMPLE: &[&str] = &[
    "/proc/meminfo",
    "/proc/vmstat",
    "/proc/zoneinfo",
    "/proc/buddyinfo",
    "/proc/pressure/memory",
    "/proc/pressure/io",
    "/proc/pressure/cpu",
    "/proc/stat",
    "/proc/loadavg",
    "/proc/diskstats",
    "/proc/swaps",
    "/proc/net/sockstat",
    "/proc/sys/fs/dentry-state",
    "/proc/sys/fs/inode-nr",
    "/proc/sys/fs/file-nr",
    "/sys/kernel/mm/ksm/pages_shared",
    "/sys/kernel/mm/ksm/pages_sharing",
];
/// Read in the first sample and every fifth: they cost more and change slowly.
const EVERY_FIFTH: usize = 5;
/// Processes with fewer resident pages than this are left out, as nothing that fills memory is that small.
const SMALLEST_PROCESS_PAGES: u64 = 256;
/// Processes whose PSS is read: each costs some 3 µs a MiB while it holds the process's mmap lock.
const MOST_PSS: usize = 20;
/// PSS of a larger process is not read: 1 GiB takes about 3 ms.
const LARGEST_PSS_PAGES: u64 = 1 << 20;
/// Processes of one sample.
const MOST_PROCESSES: usize = 5_000;
/// Control groups of one sample.
const MOST_CGROUPS: usize = 500;
/// Depth of the control-group tree.
const DEEPEST_CGROUP: usize = 8;
const CGROUP_V2_FILES: &[&str] = &[
    "memory.current",
    "memory.peak",
    "memory.max",
    "memory.high",
    "memory.low",
    "memory.min",
    "memory.swap.current",
    "memory.swap.max",
    "memory.events",
    "memory.stat",
    "memory.pressure",
    "io.pressure",
];
const CGROUP_V1_FILES: &[&str] = &[
    "memory.usage_in_bytes",
    "memory.limit_in_bytes",
    "memory.max_usage_in_bytes",
    "memory.failcnt",
    "memory.oom_control",
    "memory.stat",
];

impl Collector {
    /// For the host below `root`.
    pub fn new(root: Root, secrets: Secrets) -> Self {
        let numbered = |directory: &str, stem: &str| -> Vec<String> {
            root.names(directory)
                .into_iter()
                .filter(|name| {
                    name.strip_prefix(stem)
                        .is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
                })
                .map(|name| format!("{directory}/{name}"))
                .collect()
        };
        let nodes = numbered("/sys/devices/system/node", "node");
        let zrams = numbered("/sys/block", "zram");
        let hierarchy = if root.has("/sys/fs/cgroup/memory/memory.stat") {
            Some("/sys/fs/cgroup/memory")
        } else if root.has("/sys/fs/cgroup/cgroup.controllers") {
            Some("/sys/fs/cgroup")
        } else {
            None
        };
        Self {
            root,
            secrets,
            nodes,
            zrams,
            hierarchy,
            taken: 0,
            buffer: Vec::new(),
        }
    }

    /// Reads one sample: kernel path → text. What cannot be read is left out.
    pub fn sample(&mut self) -> BTreeMap<String, String> {
        let mut files = BTreeMap::new();
        let fifth = self.taken.is_multiple_of(EVERY_FIFTH);
        // The host's own files first and together: per-process files may wait for a busy process's locks.
        for path in EVERY_SAMPLE {
            self.read(path, &mut files);
        }
        for node in self.nodes.clone() {
            for file in ["meminfo", "numastat"] {
                self.read(&format!("{node}/{file}"), &mut files);
            }
        }
        for zram in self.zrams.clone() {
            for file in ["mm_stat", "io_stat", "disksize"] {
                self.read(&format!("{zram}/{file}"), &mut files);
            }
        }
        if self.taken == 0 {
            self.once(&mut files);
        }
        if fifth {
            self.read("/proc/slabinfo", &mut files);
        }
        self.cgroups(&mut files);
        self.processes(fifth, &mut files);
        self.taken += 1;
        files
    }

    /// What does not change from sample to sample.
    fn once(&mut self, files: &mut BTreeMap<String, String>) {
        for fact in facts::ALL {
            if fact != &facts::KERNEL_CMDLINE || self.secrets.command_lines {
                self.read(fact.file, files);
            }
        }
        for node in self.nodes.clone() {
            self.read(&format!("{node}/distance"), files);
        }
        for disk in self.root.names("/sys/block") {
            if !disk.starts_with("loop") && !disk.starts_with("ram") {
                self.read(&format!("/sys/block/{disk}/queue/rotational"), files);
            }
        }
        // Other mounts tell of servers, users and paths that are nobody's business.
        self.read("/proc/mounts", files);
        if let Some(mounts) = files.get_mut("/proc/mounts") {
            *mounts = mounts
                .lines()
                .filter(|line| {
                    let kind = line.split(' ').nth(2).unwrap_or_default();
                    matches!(
                        kind,
                        "tmpfs" | "ramfs" | "devtmpfs" | "hugetlbfs" | "cgroup" | "cgroup2"
                    )
                })
                .map(|line| format!("{line}\n"))
                .collect();
        }
        if self.secrets.hostname {
            self.read("/proc/sys/kernel/hostname", files);
        }
    }

    fn cgroups(&mut self, files: &mut BTreeMap<String, String>) {
        let Some(mount) = self.hierarchy else { return };
        let names = if mount.ends_with("/memory") {
            CGROUP_V1_FILES
        } else {
            CGROUP_V2_FILES
        };
        let mut groups = vec![(mount.to_owned(), 0)];
        let mut next = 0;
        while let Some((group, depth)) = groups.get(next).cloned() {
            next += 1;
            for name in names {
                self.read(&format!("{group}/{name}"), files);
            }
            if depth == DEEPEST_CGROUP {
                continue;
            }
            for name in self.root.names(&group) {
                let path = format!("{group}/{name}");
                if groups.len() < MOST_CGROUPS && self.root.path(&path).is_dir() {
                    groups.push((path, depth + 1));
                }
            }
        }
    }

    fn processes(&mut self, with_pss: bool, files: &mut BTreeMap<String, String>) {
        let mut sizes: Vec<(u64, String)> = Vec::new();
        for pid in self.root.names("/proc") {
            if !pid.bytes().all(|b| b.is_ascii_digit()) || sizes.len() >= MOST_PROCESSES {
                continue;
            }
            let Some(stat) = self.text(&format!("/proc/{pid}/stat")) else {
                continue; // it has ended
            };
            let after_name = stat.rsplit(')').next().unwrap_or_default();
            let resident = after_name
                .split(' ')
                .nth(22)
                .and_then(|pages| pages.parse().ok());
            let reclaims = ["(kswapd", "(kcompactd", "(khugepaged"]
                .iter()
                .any(|name| stat.contains(name));
            let Some(pages) = resident.filter(|p| *p >= SMALLEST_PROCESS_PAGES || reclaims) else {
                continue;
            };
            files.insert(format!("/proc/{pid}/stat"), stat);
            if !reclaims {
                for name in ["status", "io", "oom_score_adj", "cgroup"] {
                    self.read(&format!("/proc/{pid}/{name}"), files);
                }
                if self.secrets.command_lines {
                    self.read(&format!("/proc/{pid}/cmdline"), files);
                }
            }
            sizes.push((pages, pid));
        }
        if with_pss {
            sizes.retain(|(pages, _)| *pages <= LARGEST_PSS_PAGES);
            sizes.sort_unstable_by_key(|(pages, _)| std::cmp::Reverse(*pages));
            for (_, pid) in sizes.into_iter().take(MOST_PSS) {
                self.read(&format!("/proc/{pid}/smaps_rollup"), files);
            }
        }
    }

    fn read(&mut self, path: &str, files: &mut BTreeMap<String, String>) {
        if let Some(text) = self.text(path) {
            files.insert(path.to_owned(), text);
        }
    }

    fn text(&mut self, path: &str) -> Option<String> {
        KernelFile::open(&self.root, path)
            .and_then(|file| file.read(&mut self.buffer))
            .ok()?;
        Some(text::lossy(&self.buffer).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_stay_out_unless_asked_for() {
        let quiet = Collector::new(Root::default(), Secrets::default()).sample();
        assert!(quiet.contains_key("/proc/meminfo"));
        assert!(quiet.contains_key("/proc/sys/vm/swappiness"));
        assert!(!quiet.contains_key("/proc/cmdline"));
        assert!(!quiet.contains_key("/proc/sys/kernel/hostname"));
        let loud = quiet
            .keys()
            .find(|path| path.ends_with("/cmdline") || path.ends_with("/environ"));
        assert_eq!(loud, None);
        if let Some(mounts) = quiet.get("/proc/mounts") {
            assert!(
                mounts
                    .lines()
                    .all(|line| !line.contains(" ext4 ") && !line.contains(" nfs"))
            );
        }
    }

    #[test]
    fn command_lines_come_when_asked_for() {
        let secrets = Secrets {
            command_lines: true,
            hostname: true,
        };
        let files = Collector::new(Root::default(), secrets).sample();
        assert!(files.contains_key("/proc/cmdline"));
        assert!(files.contains_key("/proc/sys/kernel/hostname"));
        assert!(files.contains_key(&format!("/proc/{}/cmdline", std::process::id())));
    }
}
