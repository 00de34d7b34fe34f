//! Taking a capture: the texts of this host's kernel files over time, to be read on another machine.
//!
//! This module decides how often a file is read, which processes are too small to matter, and what must stay out:
//! environments always; command lines unless requested; mounts that have nothing to do with memory.

use std::collections::{BTreeMap, HashSet};
use std::io::Write;
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::{Duration, Instant};

use probe::{CommandLine, ProcessDetail, ProcessFiles, Root, TaskSource, Tasks, host_facts, text};
use store::capture_format::{CaptureHeader, CaptureSample, CaptureWriter};
use store::{KeptName, NAMES_MAX};
use timeline::signals::{PROC_RSS, PROC_SWAP};
use timeline::{Entity, EntityRow, Facts, ProcessKey, Stamp, facts};
use units::{Bytes, PageSize, Span};

use crate::heaps::{HeapReading, HeapRound, read_heaps};
use crate::new_groups::{NameSearch, NewGroups, SEARCH_EVERY, WaitingGroups};
use crate::sampler::{Progress, Rates, Sampler};

/// What a capture may contain beyond the kernel's own numbers and names of programs.
#[derive(Debug, Clone, Copy, Default)]
pub struct Secrets {
    /// Command lines of processes and of the kernel.
    pub command_lines: bool,
    /// The host's name.
    pub hostname: bool,
}

/// How long to capture, how often, which secrets are included, and which malloc heaps.
#[derive(Debug, Clone)]
pub struct CaptureOptions {
    /// From the first sample to the last; zero takes one sample.
    pub duration: Span,
    /// From one sample to the next.
    pub every: Span,
    /// The secrets that are included.
    pub secrets: Secrets,
    /// Names of processes, services and cgroups with malloc heaps that are read; see [`read_heaps`].
    pub heaps: Vec<String>,
}

/// A capture that is complete.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Captured {
    /// Samples in it.
    pub samples: u64,
    /// Heaps that were not read at first, and why, in words.
    pub problems: Vec<String>,
}

/// Captures the host below `root` into `output`.
///
/// # Errors
/// Errors of the output; samples written before one are complete.
pub fn capture(
    root: &Root,
    options: &CaptureOptions,
    output: impl Write,
    progress: Progress<'_>,
) -> std::io::Result<Captured> {
    let mut facts = Facts::default();
    host_facts::read(root, Span::ZERO, &mut facts);
    if options.secrets.hostname {
        facts.hostname = host_facts::hostname(root);
    }
    let mut writer = CaptureWriter::new(output, &CaptureHeader::new(&facts, options.every))?;
    let mut collector = Collector::new(root, &facts, options);
    let mut first = None;
    loop {
        let begun = Instant::now();
        let (stamp, files) = collector.sample();
        let names = collector.names(stamp);
        let cost = begun.elapsed();
        writer.sample(&CaptureSample {
            cost_ms: Some(cost.as_secs_f64() * 1e3),
            names,
            ..CaptureSample::new(*first.get_or_insert(stamp), stamp, files)
        })?;
        let sampler = &collector.sampler;
        if sampler.due() > options.duration || sampler.wait_unless_ended(progress).is_break() {
            return Ok(Captured { samples: collector.taken, problems: collector.problems });
        }
    }
}

/// Reads a host's kernel files, sample by sample.
#[derive(Debug)]
struct Collector {
    root: Root,
    secrets: Secrets,
    page_size: Option<PageSize>,
    sampler: Sampler,
    tasks: Tasks,
    taken: u64,
    new_groups: NewGroups,
    names: NameSearch,
    /// When names are searched for next, on the boot clock.
    names_due: Span,
    heaps: Option<CaptureHeaps>,
    /// Heaps that arrived and are not in a sample yet.
    heaps_read: Vec<HeapReading>,
    problems: Vec<String>,
}

/// Heaps that a thread reads, as a walk takes longer than a sample may, and a process may not answer at all. The thread ends
/// with its receiver.
#[derive(Debug)]
struct CaptureHeaps(Receiver<HeapRound>);

impl CaptureHeaps {
    /// Starts reading the heaps of these names again and again; `None` without names, or without room for a thread.
    fn start(root: &Root, options: &CaptureOptions) -> Option<Self> {
        if options.heaps.is_empty() {
            return None;
        }
        let (root, names, every) = (root.clone(), options.heaps.clone(), options.every);
        let (sender, rounds) = sync_channel(1);
        let thread = std::thread::Builder::new().name("memtide-heaps".to_owned());
        let read = move || {
            // The capture's samples come first; a refusal does no harm.
            let _ = rustix::process::setpriority_process(None, 19);
            loop {
                let begun = Instant::now();
                let round = read_heaps(&root, &names);
                let took = Span::from_secs_f64(begun.elapsed().as_secs_f64());
                let pause = round.every(every).saturating_sub(took).as_secs_f64();
                if sender.send(round).is_err() {
                    return;
                }
                std::thread::sleep(Duration::from_secs_f64(pause));
            }
        };
        thread.spawn(read).ok()?;
        Some(Self(rounds))
    }
}

/// Proportional shares and slab caches are read with the first sample and every fifth: they cost more and change
/// slowly.
const EVERY_FIFTH: u64 = 5;
/// Processes below this size are left out: none of them can fill memory.
const PROCESS_BYTES_MIN: Bytes = Bytes::from_mib(1);
/// The largest processes of one sample: at 2 KiB each, a sample stays well below the bound on a line.
const PROCESSES_MAX: usize = 5_000;
/// The largest processes: their expensive files are read. More than live (20 µs each), as the host cannot be asked
/// again.
const DETAILED_PROCESSES_MAX: usize = 1_000;
/// Time budget of one sample for proportional shares. It also bounds how long a process's lock is taken: enough for 14
/// GiB.
const PSS: Duration = Duration::from_millis(50);
/// Kernel threads have no memory of their own, but the CPU time of these is the cost of reclaim, huge pages and merging.
const MEMORY_THREADS: [&str; 4] = ["kswapd", "kcompactd", "khugepaged", "ksmd"];

impl Collector {
    /// Creates a collector for the host below `root` with these facts.
    fn new(root: &Root, facts: &Facts, options: &CaptureOptions) -> Self {
        let heaps = CaptureHeaps::start(root, options);
        // The first round is waited for, so that the first sample has it and a wrong name shows at once.
        let first = heaps.as_ref().and_then(|heaps| heaps.0.recv().ok());
        let first = first.unwrap_or_default();
        Self {
            heaps,
            heaps_read: first.readings,
            problems: first.problems,
            new_groups: NewGroups::default(),
            names: NameSearch::new(root),
            names_due: Span::ZERO,
            root: root.clone(),
            secrets: options.secrets,
            page_size: facts.page_size,
            tasks: Tasks::open(root, Some(TaskSource::Proc)),
            sampler: Sampler::open(root, Rates::all(options.every)),
            taken: 0,
        }
    }

    /// Reads one sample, from kernel path to text. Files that cannot be read are left out.
    fn sample(&mut self) -> (Stamp, BTreeMap<String, String>) {
        let mut files = BTreeMap::new();
        let mut keep = |path: &str, text: &[u8]| {
            files.insert(path.to_owned(), text::lossy(text).into_owned());
        };
        let taken = self.sampler.take_showing(&mut keep);
        if self.taken == 0 {
            self.facts(&mut keep);
        }
        self.tasks.detail = ProcessDetail {
            largest: DETAILED_PROCESSES_MAX,
            pss: self.taken.is_multiple_of(EVERY_FIFTH).then_some(PSS),
            ..ProcessDetail::COMPLETE
        };
        self.tasks.rows(self.sampler.sample(), &mut keep);
        self.add_heaps(&mut files);
        self.keep_large_processes(&mut files);
        self.taken += 1;
        (taken.stamp, files)
    }

    /// Returns the names of the cgroups that are new since the last search, if one is due after the sample of `stamp`.
    fn names(&mut self, stamp: Stamp) -> Vec<KeptName> {
        if stamp.boot < self.names_due {
            return Vec::new();
        }
        self.names_due = stamp.boot.plus(SEARCH_EVERY);
        let mut new = WaitingGroups::default();
        self.new_groups.find(self.sampler.sample(), &mut new);
        self.names.add(new);
        KeptName::of_a_capture(&self.names.run(NAMES_MAX))
    }

    /// Adds the heaps that have arrived; of a process that has ended meanwhile nothing.
    fn add_heaps(&mut self, files: &mut BTreeMap<String, String>) {
        let newer = self.heaps.as_ref().and_then(|heaps| heaps.0.try_recv().ok());
        self.heaps_read.extend(newer.into_iter().flat_map(|round| round.readings));
        for reading in self.heaps_read.drain(..) {
            let pid = reading.pid;
            if files.contains_key(&format!("/proc/{pid}/stat")) {
                let path = format!("/proc/{pid}/{}", ProcessFiles::MALLOC_HEAP);
                files.insert(path, reading.figures);
            }
        }
    }

    /// Reads what changes rarely.
    fn facts(&self, keep: &mut dyn FnMut(&str, &[u8])) {
        for path in host_facts::files(&self.root) {
            let is_secret = path == facts::KERNEL_CMDLINE.file;
            if is_secret && !self.secrets.command_lines {
                continue;
            }
            if let Ok(text) = host_facts::file_text(&self.root, &path) {
                keep(&path, &host_facts::without_private(&path, &text));
            }
        }
    }

    /// Drops processes that are too small, and adds the command lines of the others where requested.
    fn keep_large_processes(&mut self, files: &mut BTreeMap<String, String>) {
        let page_size = self.page_size.unwrap_or(PageSize::USUAL);
        let rows = self.sampler.sample().table(Entity::Process).rows();
        let mut large: Vec<(Bytes, &str)> = rows
            .iter()
            .filter_map(|process| {
                let pid = ProcessKey::parse(&process.key).pid;
                let size = size(process, page_size);
                let reclaims = MEMORY_THREADS.iter().any(|name| process.label.starts_with(name));
                if reclaims {
                    return Some((Bytes::new(u64::MAX), pid));
                }
                (size >= PROCESS_BYTES_MIN).then_some((size, pid))
            })
            .collect();
        large.sort_unstable_by(|a, b| b.cmp(a));
        large.truncate(PROCESSES_MAX);
        let large: HashSet<&str> = large.into_iter().map(|(_, pid)| pid).collect();
        files.retain(|path, _| pid_of(path).is_none_or(|pid| large.contains(pid)));
        if self.secrets.command_lines {
            for pid in large {
                let read = text::number(pid.as_bytes()).and_then(|n| u32::try_from(n).ok());
                if let Some(line) = read.and_then(|pid| CommandLine::read(&self.root, pid)) {
                    let text = text::lossy(&line.text).into_owned();
                    files.insert(format!("/proc/{pid}/cmdline"), text);
                }
            }
        }
    }
}

/// Returns the known memory of a process in RAM and swap. An unknown page size, as below a foreign root, counts as the
/// smallest possible, 4 KiB.
fn size(process: &EntityRow, page: PageSize) -> Bytes {
    let swapped = process.row.get(PROC_SWAP).unwrap_or_default();
    let resident = process.row.get(PROC_RSS).unwrap_or_default();
    resident.to_bytes(page) + swapped
}

/// Returns the PID in the path of a process's file.
fn pid_of(path: &str) -> Option<&str> {
    let (pid, _) = path.strip_prefix("/proc/")?.split_once('/')?;
    text::number(pid.as_bytes()).map(|_| pid)
}

#[cfg(test)]
mod tests {
    use super::*;
    use import::open_bytes;
    use std::fs;
    use std::ops::ControlFlow;
    use timeline::signals::PROC_HEAP_LIVE;

    fn collect(root: &Root, secrets: Secrets) -> BTreeMap<String, String> {
        let mut facts = Facts::default();
        host_facts::read(root, units::Span::ZERO, &mut facts);
        let options = CaptureOptions {
            duration: Span::ZERO,
            every: Span::from_secs(1),
            secrets,
            heaps: Vec::new(),
        };
        Collector::new(root, &facts, &options).sample().1
    }

    #[test]
    fn secrets_stay_out_unless_requested() {
        let quiet = collect(&Root::default(), Secrets::default());
        assert!(quiet.contains_key("/proc/meminfo"));
        assert!(quiet.contains_key("/proc/sys/vm/swappiness"));
        let loud = quiet.keys().find(|path| {
            ["/cmdline", "/environ", "hostname"].iter().any(|name| path.ends_with(name))
        });
        assert_eq!(loud, None);
        let mounts = quiet.iter().filter(|(path, _)| path.ends_with("/mounts"));
        for (_, mounts) in mounts {
            assert!(!mounts.contains(" ext4 ") && !mounts.contains(" proc "));
        }
    }

    #[test]
    fn command_lines_are_there_when_requested() {
        let secrets = Secrets { command_lines: true, hostname: false };
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
        let stats: Vec<&str> =
            files.keys().filter(|path| path.ends_with("/stat")).map(String::as_str).collect();
        assert_eq!(stats, ["/proc/20/stat", "/proc/30/stat", "/proc/40/stat"]);
    }

    fn recorded(root: &Root, secrets: Secrets) -> timeline::Source {
        recorded_with(root, secrets, &[])
    }

    fn recorded_with(root: &Root, secrets: Secrets, heaps: &[String]) -> timeline::Source {
        let mut bytes = Vec::new();
        let options = CaptureOptions {
            duration: Span::from_millis(40),
            every: Span::from_millis(20),
            secrets,
            heaps: heaps.to_vec(),
        };
        super::capture(root, &options, &mut bytes, &mut |_| ControlFlow::Continue(())).unwrap();
        open_bytes("capture", &bytes).unwrap()
    }

    #[test]
    fn what_live_knows_of_the_host_survives_a_capture() {
        let root = Root::default();
        let secrets = Secrets { command_lines: true, hostname: true };
        let read = recorded(&root, secrets);
        assert_eq!(read.problems, Vec::<String>::new());
        let mut live = Facts::default();
        host_facts::read(&root, Span::ZERO, &mut live);
        let facts = read.facts;
        assert_eq!(facts.iter().collect::<Vec<_>>(), live.iter().collect::<Vec<_>>());
        assert_eq!(facts.changes(), []);
        assert_eq!(facts.page_size, live.page_size);
        assert_eq!(facts.ticks_per_second, live.ticks_per_second);
        assert_eq!(facts.cpus, live.cpus);
        assert_eq!(facts.nodes, live.nodes);
        assert_eq!(facts.disks, live.disks);
        assert_eq!(facts.memory_mounts, live.memory_mounts);
        assert_eq!(facts.cgroup_mode, live.cgroup_mode);
        assert_eq!(facts.own_cgroup, live.own_cgroup);
        assert_eq!(facts.container, live.container);
        assert!(facts.hostname.is_some_and(|name| !name.is_empty()));
    }

    #[test]
    fn samples_carry_all_three_clocks() {
        let opened = recorded(&Root::default(), Secrets::default());
        assert_eq!(opened.facts.hostname, None);
        assert!(opened.timeline.len() >= 2);
        for i in 0..opened.timeline.len() {
            let stamp = opened.timeline.stamp(i).unwrap();
            assert!(stamp.awake.is_some() && stamp.wall.is_some());
        }
        assert_eq!(opened.timeline.stamp(0).unwrap().boot, Span::ZERO);
        assert_eq!(opened.timeline.breaks(), []);
    }

    #[test]
    fn a_heap_of_a_process_is_in_the_first_sample() {
        let mut command = std::process::Command::new("sh");
        let mut child = command
            .args(["-c", "x=$(printf '%2000000s'); echo; read x"])
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = [0];
        std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut line).unwrap();
        let names = [child.id().to_string()];
        let is_readable = !read_heaps(&Root::default(), &names).readings.is_empty();
        let read = recorded_with(&Root::default(), Secrets::default(), &names);
        let processes = read.timeline.entities(Entity::Process);
        let key = format!("{}@", child.id());
        let one = processes.into_iter().find(|one| one.key.starts_with(&key));
        let live = one.and_then(|one| read.timeline.last_of(one, PROC_HEAP_LIVE));
        drop(child.stdin.take());
        child.wait().unwrap();
        assert_eq!(live.is_some(), is_readable, "{live:?}");
    }

    #[test]
    fn a_capture_that_is_ended_early_keeps_what_it_has() {
        let mut bytes = Vec::new();
        let options = CaptureOptions {
            duration: Span::from_hours(1),
            every: Span::from_secs(60),
            secrets: Secrets::default(),
            heaps: Vec::new(),
        };
        let end = &mut |_| ControlFlow::Break(());
        assert_eq!(
            super::capture(&Root::default(), &options, &mut bytes, end).unwrap(),
            Captured { samples: 1, problems: Vec::new() }
        );
        assert_eq!(open_bytes("capture", &bytes).unwrap().timeline.len(), 1);
    }
}
