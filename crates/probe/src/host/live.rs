//! All of the host's kernel files, live: opened once, read together into a sample. Processes and cgroups are read
//! elsewhere.
//!
//! A sample is some 20 `pread`s: on 2 CPUs 60 µs of CPU in a hot loop, 10 of them above the bare reads, and 0.2 to 0.3
//! ms if other processes used the CPU's caches in between (`benches/host_sample.rs`). In steady state nothing is
//! allocated, so it also works while the host has no memory left. `/proc/slabinfo` alone costs more than all others
//! together and changes slowly: it is read every 60th time. A recorder also reads others less often:
//! [`HostProbe::slow_every`].
//!
//! A file that cannot be opened or read is noted with the reason and costs nothing else. New files (of a zram device,
//! of a node) are found by [`HostProbe::refresh`].

use std::ops::Range;
use std::path::Path;
use std::sync::OnceLock;

use rustix::io::Errno;
use rustix::time::{ClockId, Timespec, clock_gettime};
use timeline::{Absence, BootId, Sample, Stamp};
use units::{Span, WallClock};

use crate::directory::Sink;
use crate::error::{ParseError, ReadError};
use crate::host::file::{Cadence, FILES, HostFile, HostParsers};
use crate::kernel_file::{KernelFile, Root};

/// The boot of this machine, read once: a process does not outlive it.
static THIS_BOOT: OnceLock<Option<BootId>> = OnceLock::new();

/// Returns the current time on the three clocks, and the boot.
pub fn now() -> Stamp {
    // Read in this order, a machine that never slept is never awake for longer than it is up.
    let awake = span(clock_gettime(ClockId::Monotonic));
    let boot = span(clock_gettime(ClockId::Boottime));
    let wall = clock_gettime(ClockId::Realtime);
    let wall_nanos = wall.tv_sec.saturating_mul(1_000_000_000);
    Stamp {
        boot,
        awake: Some(awake),
        wall: Some(WallClock::from_unix_nanos(wall_nanos.saturating_add(wall.tv_nsec))),
        boot_id: *THIS_BOOT.get_or_init(|| boot_id(&Root::default())),
    }
}

/// Returns the boot of the machine below `root`: a random number that its kernel chose, since 2.6. `None` where it is not
/// shown.
pub fn boot_id(root: &Root) -> Option<BootId> {
    let text = root.read("/proc/sys/kernel/random/boot_id").ok()?;
    BootId::from_text(&crate::text::lossy(crate::text::trim(&text)))
}

/// Returns the CPU time of this thread.
pub fn thread_cpu() -> Span {
    span(clock_gettime(ClockId::ThreadCPUTime))
}

/// Returns the CPU time of this process.
pub fn process_cpu() -> Span {
    span(clock_gettime(ClockId::ProcessCPUTime))
}

/// Returns the CPU time of children that have ended and were waited for, in steps of a microsecond.
#[allow(unsafe_code)] // the one call of getrusage
pub fn children_cpu() -> Span {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the kernel writes a `rusage` to the pointer, which is valid for one; all zeros is a valid `rusage`.
    let usage = unsafe {
        libc::getrusage(libc::RUSAGE_CHILDREN, usage.as_mut_ptr());
        usage.assume_init()
    };
    let part = |part: i64| u64::try_from(part).unwrap_or(0);
    let of = |time: libc::timeval| {
        Span::from_secs(part(time.tv_sec)).plus(Span::from_nanos(part(time.tv_usec) * 1000))
    };
    of(usage.ru_utime).plus(of(usage.ru_stime))
}

fn span(time: Timespec) -> Span {
    Span::from_secs(time.tv_sec.unsigned_abs()).plus(Span::from_nanos(time.tv_nsec.unsigned_abs()))
}

/// The open files of a host and their parsers.
#[derive(Debug)]
pub struct HostProbe {
    root: Root,
    sources: Vec<HostSource>,
    parsers: HostParsers,
    buffer: Vec<u8>,
    problems: Vec<ParseError>,
    slow: ReadTurn,
    rare: ReadTurn,
}

/// A turn that comes with the first sample and then once per number of samples.
#[derive(Debug)]
struct ReadTurn {
    every: u32,
    /// Samples until the next turn.
    left: u32,
}

impl ReadTurn {
    fn every(samples: u32) -> Self {
        Self { every: samples.max(1), left: 0 }
    }

    fn takes(&mut self) -> bool {
        let is_up = self.left == 0;
        if is_up {
            self.left = self.every;
        }
        self.left -= 1;
        is_up
    }
}

/// One file of the host.
#[derive(Debug)]
struct HostSource {
    kind: &'static HostFile,
    /// The path as captures have it.
    path: String,
    instance: String,
    /// `None` if it could not be opened, or its device is gone.
    file: Option<KernelFile>,
    /// Why the last attempt to open or read it failed.
    absence: Option<Absence>,
    /// Where its text is in the buffer; `None` if this sample does not have it.
    text: Option<Range<usize>>,
}

impl HostProbe {
    /// One minute at one sample a second: a leak into a cache that matters lasts longer.
    const SLABINFO_EVERY: u32 = 60;

    /// Opens the files of the host below `root`. What cannot be opened is [absent](Self::absent).
    pub fn open(root: &Root) -> Self {
        let mut probe = Self {
            root: root.clone(),
            sources: Vec::new(),
            parsers: HostParsers::default(),
            buffer: Vec::new(),
            problems: Vec::new(),
            slow: ReadTurn::every(1),
            rare: ReadTurn::every(Self::SLABINFO_EVERY),
        };
        probe.refresh();
        probe
    }

    /// Reads `/proc/slabinfo` with the next sample and then with every `samples`th instead of every 60th.
    #[must_use]
    pub fn slabinfo_every(mut self, samples: u32) -> Self {
        self.rare = ReadTurn::every(samples);
        self
    }

    /// Reads slowly changing files (nodes, swap areas, zram, sockets, directory entries, KSM) with the next sample and
    /// then with every `samples`th instead of every one: half of the files on a host of one node. Fields that the
    /// catalogue does not know are also kept only then.
    #[must_use]
    pub fn slow_every(mut self, samples: u32) -> Self {
        self.slow = ReadTurn::every(samples);
        self
    }

    /// Opens new files and those that could not be opened before, and forgets devices that are gone. It allocates and
    /// lists directories: call it every few minutes, not for every sample.
    pub fn refresh(&mut self) {
        let mut before = std::mem::take(&mut self.sources);
        for kind in &FILES {
            for (path, instance) in kind.below(&self.root) {
                let open = before.iter().position(|source| {
                    std::ptr::eq(source.kind, kind)
                        && source.instance == instance
                        && source.file.is_some()
                });
                self.sources.push(match open {
                    Some(open) => before.swap_remove(open),
                    None => HostSource::open(&self.root, kind, &path, instance),
                });
            }
        }
    }

    /// Reads all files into the sample and stamps it. The caller clears the sample first.
    pub fn sample(&mut self, sample: &mut Sample) {
        self.sample_showing(sample, &mut |_, _| ());
    }

    /// Like [`sample`](Self::sample), and passes each text that is read to `sink`.
    pub fn sample_showing(&mut self, sample: &mut Sample, sink: Sink<'_>) {
        sample.stamp = now();
        let (with_slow, with_rare) = (self.slow.takes(), self.rare.takes());
        if !with_slow {
            sample.unknown.close();
        }
        // All files are read before any is parsed: their numbers are of almost the same moment, and kernel code and
        // ours do not evict each other from the CPU's caches.
        self.buffer.clear();
        for source in &mut self.sources {
            let is_due = match source.kind.cadence {
                Cadence::Each => true,
                Cadence::Slow => with_slow,
                Cadence::Rare => with_rare,
            };
            source.text = is_due.then(|| source.read(&mut self.buffer)).flatten();
        }
        for source in &self.sources {
            let Some(text) = source.text.clone().and_then(|text| self.buffer.get(text)) else {
                continue;
            };
            sink(&source.path, text);
            let parsed = self.parsers.parse(source.kind, &source.instance, text, sample);
            if let Err(problem) = parsed {
                // Files and expectations are few and fixed, so this list stays short without a limit.
                let is_known = |known: &ParseError| {
                    (known.file, known.expected) == (problem.file, problem.expected)
                };
                if !self.problems.iter().any(is_known) {
                    self.problems.push(problem);
                }
            }
        }
        // Cgroups and processes are read at their own intervals.
        sample.unknown.open();
    }

    /// Returns the files that could not be read last, by their path in the catalogue. A file with several instances is
    /// absent if none of them can be read.
    pub fn absent(&self) -> impl Iterator<Item = (&'static str, Absence)> + '_ {
        FILES.iter().filter_map(|kind| {
            let of_kind = || self.sources.iter().filter(|source| std::ptr::eq(source.kind, kind));
            if of_kind().any(|source| source.absence.is_none()) {
                return None;
            }
            let first = of_kind().find_map(|source| source.absence.clone());
            Some((kind.path, first.unwrap_or(Absence::NotFound)))
        })
    }

    /// Returns the files that are open: what a sample reads, slabinfo included.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        let files = self.sources.iter().filter_map(|source| source.file.as_ref());
        files.map(KernelFile::path)
    }

    /// Returns the errors in the files' texts: the first of each kind in each file.
    pub fn problems(&self) -> &[ParseError] {
        &self.problems
    }
}

impl HostSource {
    fn open(root: &Root, kind: &'static HostFile, path: &str, instance: String) -> Self {
        let opened = KernelFile::open(root, path).map(|file| file.shaped(kind.shape));
        let absence = opened.as_ref().err().map(ReadError::absence);
        Self { kind, path: path.to_owned(), instance, file: opened.ok(), absence, text: None }
    }

    /// Appends the file's text to the buffer and returns where it is, or notes why that failed. The next attempt may
    /// succeed: the kernel may have had no memory. A device that is gone does not come back in the same open file.
    fn read(&mut self, buffer: &mut Vec<u8>) -> Option<Range<usize>> {
        let start = buffer.len();
        match self.file.as_ref()?.append(buffer) {
            Ok(()) => {
                self.absence = None;
                Some(start..buffer.len())
            }
            Err(errno) => {
                // A failure that lasts must not allocate every time.
                if self.absence.is_none() {
                    let path = self.kind.path.to_owned();
                    let source = errno.into();
                    self.absence = Some(ReadError { path, source }.absence());
                }
                if matches!(errno, Errno::NODEV | Errno::NOENT | Errno::NXIO) {
                    self.file = None;
                }
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use timeline::Entity;
    use timeline::signals::{
        CPU_USER, DENTRIES, MEM_TOTAL, NR_FREE_PAGES, ZONE_MANAGED, ZONE_PCP, ZRAM_USED,
    };
    use units::{Bytes, Pages};

    /// A directory with these files below it.
    fn host(files: &[(&str, &str)]) -> (tempfile::TempDir, Root) {
        let directory = tempfile::tempdir().unwrap();
        for (path, text) in files {
            write(directory.path(), path, text);
        }
        let root = Root::at(directory.path());
        (directory, root)
    }

    fn write(root: &Path, path: &str, text: &str) {
        let path = root.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    fn absent(probe: &HostProbe, file: &str) -> Option<Absence> {
        let mut all = probe.absent();
        all.find(|(path, _)| *path == file).map(|(_, why)| why)
    }

    #[test]
    fn this_host_is_read() {
        let mut probe = HostProbe::open(&Root::default());
        let mut sample = Sample::default();
        probe.sample(&mut sample);
        let total = sample.host.get(MEM_TOTAL).unwrap();
        let free = sample.host.get(NR_FREE_PAGES).unwrap();
        assert!(total > Bytes::from_mib(64) && free > Pages::ZERO);
        assert!(sample.host.get(CPU_USER).is_some());
        assert!(sample.host.get(DENTRIES).is_some());
        let zones = sample.table(Entity::Zone).rows();
        assert!(!zones.is_empty());
        for zone in zones {
            assert!(zone.row.get(ZONE_MANAGED) > Some(Pages::ZERO), "{}", zone.key);
            assert!(zone.row.get(ZONE_PCP).is_some(), "{}", zone.key);
        }
        assert_eq!(probe.problems(), []);
        let stamp = sample.stamp;
        assert!(stamp.boot >= stamp.awake.unwrap() && stamp.wall.is_some());
    }

    #[test]
    fn time_goes_on_from_sample_to_sample() {
        let (first, second) = (now(), now());
        assert!(second.boot > first.boot);
        assert!(second.awake > first.awake);
    }

    #[test]
    fn what_is_missing_is_absent_and_the_rest_is_read() {
        let (_directory, root) = host(&[("proc/meminfo", "MemTotal: 8 kB\n")]);
        let mut probe = HostProbe::open(&root);
        let mut sample = Sample::default();
        probe.sample(&mut sample);
        assert_eq!(sample.host.get(MEM_TOTAL), Some(Bytes::from_kib(8)));
        assert_eq!(absent(&probe, "/proc/meminfo"), None);
        for file in ["/proc/vmstat", "/proc/pressure/io", "/sys/block/zram*/mm_stat"] {
            assert_eq!(absent(&probe, file), Some(Absence::NotFound), "{file}");
        }
        assert_eq!(probe.absent().count(), FILES.len() - 1);
    }

    #[test]
    fn a_file_that_fails_does_not_end_sampling_and_may_recover() {
        let (directory, root) =
            host(&[("proc/meminfo", "MemTotal: 8 kB\n"), ("proc/vmstat", "nr_free_pages 5\n")]);
        let mut probe = HostProbe::open(&root);
        // Reading a directory fails with EISDIR, as reading a kernel file may fail with ENOMEM.
        let directory_file = KernelFile::open_path(directory.path()).unwrap();
        let meminfo = &mut probe.sources[0];
        let good = meminfo.file.replace(directory_file);
        let mut sample = Sample::default();
        probe.sample(&mut sample);
        assert_eq!(sample.host.get(MEM_TOTAL), None);
        assert_eq!(sample.host.get(NR_FREE_PAGES), Some(Pages::new(5)));
        assert!(matches!(absent(&probe, "/proc/meminfo"), Some(Absence::Failed(_))));
        probe.sources[0].file = good;
        sample.clear();
        probe.sample(&mut sample);
        assert_eq!(sample.host.get(MEM_TOTAL), Some(Bytes::from_kib(8)));
        assert_eq!(absent(&probe, "/proc/meminfo"), None);
    }

    #[test]
    fn devices_that_come_and_go_are_seen_after_a_refresh() {
        let mm_stat = |used: u64| format!("5 4 {used} 0 0 0 0 0 0\n");
        let (directory, root) =
            host(&[("sys/block/zram0/mm_stat", &mm_stat(3)), ("sys/block/sda/size", "1\n")]);
        let mut probe = HostProbe::open(&root);
        let mut sample = Sample::default();
        let mut used = |probe: &mut HostProbe| -> Vec<(String, Option<Bytes>)> {
            sample.clear();
            probe.sample(&mut sample);
            let rows = sample.table(Entity::Zram).rows().iter();
            rows.map(|row| (row.key.clone(), row.row.get(ZRAM_USED))).collect()
        };
        let device = |name: &str, used| (name.to_owned(), Some(Bytes::new(used)));
        assert_eq!(used(&mut probe), [device("zram0", 3)]);
        write(directory.path(), "sys/block/zram1/mm_stat", &mm_stat(7));
        assert_eq!(used(&mut probe), [device("zram0", 3)]);
        probe.refresh();
        assert_eq!(used(&mut probe), [device("zram0", 3), device("zram1", 7)]);
        std::fs::remove_dir_all(directory.path().join("sys/block/zram0")).unwrap();
        probe.refresh();
        assert_eq!(used(&mut probe), [device("zram1", 7)]);
    }

    #[test]
    fn a_problem_is_reported_once() {
        let text = "pswpin -1\npswpout x\n";
        let (_directory, root) = host(&[("proc/vmstat", text), ("proc/stat", "cpu x\n")]);
        let mut probe = HostProbe::open(&root);
        let mut sample = Sample::default();
        for _ in 0..3 {
            sample.clear();
            probe.sample(&mut sample);
        }
        let all: Vec<_> = probe.problems().iter().map(ToString::to_string).collect();
        let expected = [
            "/proc/vmstat, line 1: expected a number, found `-1`",
            "/proc/stat, line 1: expected a number, found `x`",
        ];
        assert_eq!(all, expected);
    }

    #[test]
    fn what_moves_slowly_is_read_in_the_first_sample_and_every_nth() {
        let (_directory, root) = host(&[
            ("proc/slabinfo", "dentry 1 2 3 4 5 : tunables 0 0 0 : slabdata 6 7 0\n"),
            ("proc/sys/fs/dentry-state", "7 5 45 0 2 0\n"),
            ("proc/meminfo", "MemTotal: 8 kB\n"),
        ]);
        let mut probe = HostProbe::open(&root).slabinfo_every(3).slow_every(2);
        let mut sample = Sample::default();
        let seen: Vec<[bool; 3]> = (0..7)
            .map(|_| {
                sample.clear();
                probe.sample(&mut sample);
                let host = &sample.host;
                let slabs = sample.table(Entity::Slab).rows();
                [host.get(MEM_TOTAL).is_some(), host.get(DENTRIES).is_some(), !slabs.is_empty()]
            })
            .collect();
        let times = |file: usize| -> Vec<usize> { (0..7).filter(|at| seen[*at][file]).collect() };
        assert_eq!(times(0), [0, 1, 2, 3, 4, 5, 6]);
        assert_eq!(times(1), [0, 2, 4, 6]);
        assert_eq!(times(2), [0, 3, 6]);
    }
}
