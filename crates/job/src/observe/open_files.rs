//! Open files of the job's processes, looked at again and again: which file, how far (`/proc/PID/fd`, `/proc/PID/fdinfo`).
//!
//! From one look to the next a file was read or written from the old position to the new one. A reader that is gone is taken
//! to have read to the end. What a process read by its account, and no position shows, is one pass through a file without a
//! name, at its place in time: left out, it would make distances too short. pread(2), mappings and what lives for less than a
//! look are missed.

use std::collections::{HashMap, HashSet};
use std::os::fd::AsFd as _;
use std::path::Path;
use std::time::{Duration, Instant};

use probe::{ProcessFiles, Root};
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, open, statat};
use units::{Bytes, Count, PageSize, Span};

use crate::observe::JobIo;
use crate::observe::account::read_io;
use crate::observe::file_lookup::device_of;
use crate::observe::process_tree;
use crate::observe::steps::{SeenStep, Steps};
use crate::touches::{FileNumber, TouchKind, Touches};

/// Names of files that are kept.
const NAMES_MAX: usize = 200_000;

/// Open files that are followed at once.
const OPEN_MAX: usize = 1 << 16;

/// Written files of which one look asks whether they are still there.
const REMOVED_LOOKS_MAX: usize = 32;

/// From one sum of the processes' own memory to the next.
const MEMORY_EVERY: Duration = Duration::from_millis(100);

/// The device and inode of what was read without being seen: no file has it.
const UNSEEN: FileNumber = (u64::MAX, 0);

/// What the positions of open files gave.
#[derive(Debug)]
pub(super) struct Sampled {
    pub(super) touches: Touches,
    pub(super) steps: Vec<SeenStep>,
    pub(super) names: HashMap<FileNumber, String>,
    /// Bytes of which the place was seen.
    pub(super) seen: Bytes,
    /// Asked to read, and read from disks, by the accounts of all processes that were met.
    pub(super) asked: Bytes,
    pub(super) read_from_disk: Bytes,
    pub(super) own_memory: Bytes,
}

/// An open file as it was at the last look.
#[derive(Debug, Clone)]
struct SeenOpenFile {
    number: FileNumber,
    position: u64,
    size: u64,
    is_written: bool,
    step: u16,
}

/// How far a process is in a file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FilePosition<'a> {
    pub(crate) pid: u32,
    pub(crate) descriptor: u32,
    pub(crate) number: FileNumber,
    pub(crate) position: u64,
    pub(crate) is_written: bool,
    pub(crate) name: Option<&'a str>,
}

/// A process as it was at the last look.
#[derive(Debug, Default)]
struct AccountedProcess {
    io: JobIo,
    /// Read by positions, and as unseen.
    explained: u64,
    /// Its standard input is a pipe, a terminal or a socket, which its account counts as well.
    reads_no_file: bool,
}

/// Reads positions of open files.
#[derive(Debug)]
pub(crate) struct OpenFiles {
    page: u64,
    begun: Instant,
    takes_touches: bool,
    /// What is open at the first look was read and written before.
    is_attached: bool,
    open: HashMap<(u32, u32), SeenOpenFile>,
    processes: HashMap<u32, AccountedProcess>,
    counted: HashSet<(u16, u32)>,
    names: HashMap<FileNumber, String>,
    /// Written files that are asked for, in turns.
    written: Vec<FileNumber>,
    is_written: HashSet<FileNumber>,
    touches: Touches,
    steps: Steps,
    seen: u64,
    unseen_pages: u32,
    asked: Bytes,
    read_from_disk: Bytes,
    own_memory: Bytes,
    memory_due: Instant,
    root: Root,
}

impl OpenFiles {
    /// Without touches only names are kept.
    pub(super) fn new(
        page: PageSize,
        begun: Instant,
        takes_touches: bool,
        is_attached: bool,
    ) -> Self {
        Self {
            page: page.bytes().get(),
            begun,
            takes_touches,
            is_attached,
            open: HashMap::new(),
            processes: HashMap::new(),
            counted: HashSet::new(),
            names: HashMap::new(),
            written: Vec::new(),
            is_written: HashSet::new(),
            touches: Touches::of_unit(page.bytes()),
            steps: Steps::default(),
            seen: 0,
            unseen_pages: 0,
            asked: Bytes::ZERO,
            read_from_disk: Bytes::ZERO,
            own_memory: Bytes::ZERO,
            memory_due: begun,
            root: Root::default(),
        }
    }

    /// What was open last is taken to be read to its end, unless the job goes on.
    pub(super) fn finish(mut self, goes_on: bool) -> Sampled {
        for (_, open) in std::mem::take(&mut self.open) {
            if !goes_on {
                self.close(&open, None);
            }
        }
        let now = self.now();
        for (number, name) in &self.names {
            if let Some(file) = self.touches.find(*number)
                && let Some(row) = self.touches.file_mut(file)
            {
                row.name = Some(name.clone());
            }
        }
        remove_missing(&mut self.touches, now);
        Sampled {
            touches: self.touches,
            steps: self.steps.finish(),
            names: self.names,
            seen: Bytes::new(self.seen),
            asked: self.asked,
            read_from_disk: self.read_from_disk,
            own_memory: self.own_memory,
        }
    }

    /// All positions as they were at the last look, where touches are taken.
    pub(crate) fn positions(&self) -> impl Iterator<Item = FilePosition<'_>> {
        self.open.iter().map(|((pid, descriptor), open)| FilePosition {
            pid: *pid,
            descriptor: *descriptor,
            number: open.number,
            position: open.position,
            is_written: open.is_written,
            name: self.names.get(&open.number).map(String::as_str),
        })
    }

    fn now(&self) -> Span {
        Span::from_secs_f64(self.begun.elapsed().as_secs_f64())
    }

    /// Reads the positions of all processes of the job.
    pub(super) fn look(&mut self, pids: &[u32]) {
        let mut met = HashSet::new();
        for pid in pids {
            self.look_at(*pid, &mut met);
        }
        let gone: Vec<(u32, u32)> =
            self.open.keys().filter(|key| !met.contains(*key)).copied().collect();
        for key in gone {
            if let Some(open) = self.open.remove(&key) {
                self.close(&open, Some(key.0));
            }
        }
        let is_attached = std::mem::replace(&mut self.is_attached, false);
        if self.takes_touches {
            for pid in pids {
                self.take_account(*pid, is_attached);
            }
            self.processes.retain(|pid, _| pids.contains(pid));
            self.look_for_removed();
        }
        if Instant::now() >= self.memory_due {
            let own = pids.iter().filter_map(|pid| ProcessFiles::own_memory(&self.root, *pid).ok());
            self.own_memory = self.own_memory.max(own.sum());
            self.memory_due = Instant::now() + MEMORY_EVERY;
        }
    }

    fn look_at(&mut self, pid: u32, met: &mut HashSet<(u32, u32)>) {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let Ok(directory) = open(format!("/proc/{pid}/fd"), flags, Mode::empty()) else { return };
        let Ok(entries) = Dir::read_from(&directory) else { return };
        let step = self.steps.of(&process_tree::name_of(pid).unwrap_or_default());
        self.processes.entry(pid).or_default();
        if self.counted.len() < OPEN_MAX && self.counted.insert((step, pid)) {
            self.steps.get(step).processes += Count::new(1);
        }
        for entry in entries.flatten() {
            let Some(descriptor) =
                entry.file_name().to_str().ok().and_then(|name| name.parse().ok())
            else {
                continue;
            };
            let Ok(stat) = statat(directory.as_fd(), entry.file_name(), AtFlags::empty()) else {
                continue;
            };
            if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
                if descriptor == 0
                    && let Some(process) = self.processes.get_mut(&pid)
                {
                    process.reads_no_file = true;
                }
                continue;
            }
            let key = (pid, descriptor);
            let now = SeenOpenFile {
                number: (device_of(stat.st_dev), stat.st_ino),
                position: 0,
                size: stat.st_size.unsigned_abs(),
                is_written: false,
                step,
            };
            if self.look_at_file(key, now).is_some() {
                met.insert(key);
            }
        }
    }

    /// Takes the position of an open file.
    fn look_at_file(&mut self, key: (u32, u32), mut now: SeenOpenFile) -> Option<()> {
        let (pid, descriptor) = key;
        let before = self.open.get(&key).filter(|open| open.number == now.number).cloned();
        if before.is_none() {
            if let Some(other) = self.open.remove(&key) {
                self.close(&other, Some(pid));
            }
            if self.open.len() >= OPEN_MAX {
                return None;
            }
            if self.names.len() < NAMES_MAX && !self.names.contains_key(&now.number) {
                let path = std::fs::read_link(format!("/proc/{pid}/fd/{descriptor}")).ok()?;
                let path = path.to_string_lossy().into_owned();
                let name = path.strip_suffix(" (deleted)").unwrap_or(&path).to_owned();
                self.names.insert(now.number, name);
            }
            if !self.takes_touches {
                self.open.insert(key, now);
                return Some(());
            }
        }
        if !self.takes_touches {
            return Some(());
        }
        let text = std::fs::read(format!("/proc/{pid}/fdinfo/{descriptor}")).ok()?;
        let field = |name| probe::fdinfo_field(&text, name);
        now.position = field("pos")?.parse().ok()?;
        let flags = u32::from_str_radix(field("flags")?, 8).ok()?;
        let access = OFlags::from_bits_retain(flags) & OFlags::RWMODE;
        now.is_written = access != OFlags::RDONLY;
        let appends = OFlags::from_bits_retain(flags).contains(OFlags::APPEND);
        let from = match &before {
            Some(before) if before.position <= now.position => before.position,
            None if appends || self.is_attached => now.position,
            // From the beginning: opened meanwhile, or rewound.
            _ => 0,
        };
        self.moved(&now, from, now.position, Some(pid));
        self.open.insert(key, now);
        Some(())
    }

    /// A file was read or written between two positions.
    fn moved(&mut self, file: &SeenOpenFile, from: u64, to: u64, pid: Option<u32>) {
        if to <= from {
            return;
        }
        self.seen += to - from;
        let (first, end) = (from / self.page, to.div_ceil(self.page));
        // A page in which the last segment ended was touched by it.
        let first = if from.is_multiple_of(self.page) { first } else { first + 1 };
        let at = self.now();
        let row = self.touches.file(file.number);
        if file.is_written {
            if self.written.len() < OPEN_MAX && self.is_written.insert(file.number) {
                self.written.push(file.number);
            }
        } else if let Some(process) = pid.and_then(|pid| self.processes.get_mut(&pid)) {
            process.explained += to - from;
        }
        let kind = if file.is_written { TouchKind::Written } else { TouchKind::Read };
        if let (Ok(first), Ok(pages)) =
            (u32::try_from(first), u32::try_from(end.saturating_sub(first)))
        {
            self.touches.touch(kind, (row, file.step), (first, pages), at);
        }
    }

    /// A file is closed: a reader is taken to have gone on to its end, a writer to its size.
    fn close(&mut self, open: &SeenOpenFile, pid: Option<u32>) {
        if !self.takes_touches || open.position == 0 {
            return;
        }
        let mut end = open.size;
        if open.is_written
            && let Some(name) = self.names.get(&open.number)
        {
            end = size_of(name, open.number).unwrap_or(end);
        }
        self.moved(open, open.position, end.max(open.position), pid);
    }

    /// Adds what the account of a process has more than before, and what of it no position explains.
    fn take_account(&mut self, pid: u32, did_before: bool) {
        let name = process_tree::name_of(pid).unwrap_or_default();
        let mut io = JobIo::default();
        // Each thread has its own; that of the process has those of its children that ended, too.
        for thread in process_tree::threads(&pid.to_string()) {
            let of_thread = read_io(&format!("/proc/{pid}/task/{thread}/io"));
            let Some(of_thread) = of_thread else { continue };
            io.rchar_bytes += of_thread.rchar_bytes;
            io.read_bytes += of_thread.read_bytes;
            io.write_bytes += of_thread.write_bytes;
        }
        let step = self.steps.of(&name);
        let Some(process) = self.processes.get_mut(&pid) else { return };
        if did_before {
            process.io = io;
            process.explained = io.rchar_bytes.get();
            return;
        }
        let step_row = self.steps.get(step);
        step_row.asked_bytes += io.rchar_bytes.saturating_sub(process.io.rchar_bytes);
        step_row.read_bytes += io.read_bytes.saturating_sub(process.io.read_bytes);
        step_row.written_bytes += io.write_bytes.saturating_sub(process.io.write_bytes);
        self.asked += io.rchar_bytes.saturating_sub(process.io.rchar_bytes);
        self.read_from_disk += io.read_bytes.saturating_sub(process.io.read_bytes);
        process.io = io;
        let unseen = io.rchar_bytes.get().saturating_sub(process.explained) / self.page;
        if process.reads_no_file || unseen == 0 {
            return;
        }
        process.explained += unseen * self.page;
        let pages = u32::try_from(unseen).unwrap_or(u32::MAX);
        let at = self.now();
        let file = self.touches.file(UNSEEN);
        self.touches.touch(TouchKind::Read, (file, step), (self.unseen_pages, pages), at);
        self.unseen_pages = self.unseen_pages.saturating_add(pages);
    }

    /// Asks of some written files whether they are still there.
    fn look_for_removed(&mut self) {
        let at = self.now();
        let some = self.written.len().min(REMOVED_LOOKS_MAX);
        self.written.rotate_left(some);
        let asked = self.written.split_off(self.written.len() - some);
        for number in asked {
            let is_open = self.open.values().any(|open| open.number == number);
            let name = self.names.get(&number);
            let is_there = name.is_none_or(|name| size_of(name, number).is_some());
            match self.touches.find(number) {
                Some(file) if !is_there && !is_open => {
                    if let Some(row) = self.touches.file_mut(file) {
                        row.name = name.cloned();
                    }
                    self.touches.remove(file, 0, at);
                    self.touches.forget(number);
                    self.names.remove(&number);
                    self.is_written.remove(&number);
                }
                _ => self.written.push(number),
            }
        }
    }
}

/// The size of a file, if the name is still that of this file.
fn size_of(name: &str, number: FileNumber) -> Option<u64> {
    let stat = rustix::fs::lstat(Path::new(name)).ok()?;
    let is_same = (device_of(stat.st_dev), stat.st_ino) == number;
    is_same.then_some(stat.st_size.unsigned_abs())
}

/// Removes written files that have a name, and are no longer there under it.
pub(super) fn remove_missing(touches: &mut Touches, now: Span) {
    let is_gone = |(file, row): (usize, &crate::TouchedFile)| {
        let name = row.name.as_deref().filter(|_| row.written > 0 && row.removed.is_none())?;
        let is_missing = rustix::fs::lstat(Path::new(name)).is_err();
        u32::try_from(file).ok().filter(|_| is_missing)
    };
    let gone: Vec<u32> = touches.files().iter().enumerate().filter_map(is_gone).collect();
    for file in gone {
        touches.remove(file, 0, now);
    }
}
