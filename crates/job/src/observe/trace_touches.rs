//! Touches out of trace events.
//!
//! An event of a read names what was asked for from there on, beyond the end of the file and beyond what one step of the kernel
//! takes, so that events of one read overlap: each thread's events are cut where its last one ended, and at the end of the
//! file, as the file system or the largest page in the cache shows it. Of pages that a program maps only those are touches that
//! the job itself brought into the cache: libraries that others use stay there anyway.

use std::collections::{HashMap, HashSet};

use units::{Bytes, PageSize, Span};

use crate::observe::file_lookup::{FileLookup, InodeFile};
use crate::observe::steps::{SeenStep, Steps};
use crate::observe::trace_line::{TraceEvent, TraceLine};
use crate::touches::{FileNumber, TouchKind, Touches};

/// Entries of a map that only makes the answer better; it is emptied when full.
const MAP_LEN_MAX: usize = 1 << 18;

/// Files without a row that are remembered.
const NAMELESS_MAX: usize = 1 << 16;

/// The largest page number that has a bit: files of 16 TiB would have 512 MiB of bits.
const BITS_MAX: u32 = 1 << 28;

/// What a trace gave.
#[derive(Debug)]
pub(super) struct Traced {
    pub(super) touches: Touches,
    pub(super) steps: Vec<SeenStep>,
    pub(super) events: u64,
    pub(super) lost: u64,
    pub(super) read_from_disk: Bytes,
    pub(super) found_cached: Bytes,
}

impl Default for Traced {
    fn default() -> Self {
        Self {
            touches: Touches::of_unit(PageSize::USUAL.bytes()),
            steps: Vec::new(),
            events: 0,
            lost: 0,
            read_from_disk: Bytes::ZERO,
            found_cached: Bytes::ZERO,
        }
    }
}

impl Traced {
    /// Adds names of open files that were seen, and removals that no event showed.
    pub(super) fn name(&mut self, names: HashMap<FileNumber, String>, now: Span) {
        for (number, name) in names {
            let Some(file) = self.touches.find(number) else { continue };
            if let Some(row) = self.touches.file_mut(file).filter(|row| row.name.is_none()) {
                row.name = Some(name);
            }
        }
        super::open_files::remove_missing(&mut self.touches, now);
    }
}

/// A file as far as events and its file system show it.
#[derive(Debug, Default)]
struct TracedFile {
    /// How many pages it has; `None`: not known.
    end: Option<u32>,
    is_other_kind: bool,
    /// Pages of which it is known how they came into the cache, a bit each.
    known: Vec<u64>,
}

impl TracedFile {
    /// Marks a page; returns whether it was marked.
    fn mark(&mut self, page: u32) -> bool {
        if page >= BITS_MAX {
            return true;
        }
        let (word, bit) = (page as usize / 64, 1_u64 << (page % 64));
        if self.known.len() <= word {
            self.known.resize(word + 1, 0);
        }
        let was = self.known[word] & bit != 0;
        self.known[word] |= bit;
        was
    }

    fn is_marked(&self, page: u32) -> bool {
        self.known.get(page as usize / 64).is_some_and(|word| word & (1 << (page % 64)) != 0)
    }
}

/// Takes events and keeps touches.
#[derive(Debug)]
pub(super) struct TraceTouches {
    page: u64,
    begun: Span,
    touches: Touches,
    steps: Steps,
    lookup: FileLookup,
    files: HashMap<u32, TracedFile>,
    /// Of these, so many have no row.
    nameless: usize,
    /// What a thread asked for last: file, first page, end.
    asked: HashMap<u32, (u32, u32, u32)>,
    /// What a thread added last, until it is made dirty: inode, page, pages.
    added: HashMap<u32, (u64, u64, u64)>,
    devices: HashMap<u64, u64>,
    orders: HashMap<(u64, u64), u32>,
    threads: HashSet<(u16, u32)>,
    /// Steps of threads by what they executed, or were made by.
    executed: HashMap<u32, u16>,
    /// Steps of other threads by their names in lines.
    step_of_thread: HashMap<u32, u16>,
    events: u64,
    lost: u64,
    read_from_disk: u64,
    found_cached: u64,
}

impl TraceTouches {
    pub(super) fn new(page: PageSize, begun: Span) -> Self {
        Self {
            page: page.bytes().get(),
            begun,
            touches: Touches::of_unit(page.bytes()),
            steps: Steps::default(),
            lookup: FileLookup::new(),
            files: HashMap::new(),
            nameless: 0,
            asked: HashMap::new(),
            added: HashMap::new(),
            devices: HashMap::new(),
            orders: HashMap::new(),
            threads: HashSet::new(),
            executed: HashMap::new(),
            step_of_thread: HashMap::new(),
            events: 0,
            lost: 0,
            read_from_disk: 0,
            found_cached: 0,
        }
    }

    pub(super) fn finish(self) -> Traced {
        let size = |pages| Bytes::new(self.page).times(pages);
        Traced {
            read_from_disk: size(self.read_from_disk),
            found_cached: size(self.found_cached),
            touches: self.touches,
            steps: self.steps.finish(),
            events: self.events,
            lost: self.lost,
        }
    }

    /// Takes a line of the trace.
    pub(super) fn take(&mut self, line: &str) {
        let Some(line) = TraceLine::parse(line) else { return };
        if let TraceEvent::Lost(lost) = line.event {
            self.lost += lost;
            return;
        }
        self.events += 1;
        if let TraceEvent::Executed { path } = line.event {
            let step = self.steps.of(name_of_program(path));
            make_room(&mut self.executed).insert(line.thread, step);
        }
        let step = self.step(&line);
        let at = line.at - self.begun;
        let page = self.page;
        match line.event {
            TraceEvent::Read { device, inode, first, last } => {
                let file = self.file((device, inode));
                self.read(file, (step, line.thread), (first / page, last / page), at);
            }
            TraceEvent::Mapped { device, inode, first, last } => {
                if let Some(file) = self.touches.find((device, inode)) {
                    self.mapped(file, step, (first / page, last / page), at);
                }
            }
            TraceEvent::Added { device, inode, first, order } => {
                self.add((device, inode), (step, line.thread), first / page, order);
            }
            TraceEvent::Dirtied { inode, page } => {
                self.dirty(inode, (step, line.thread), page, at);
            }
            TraceEvent::Gone { device, inode } => {
                if let Some(file) = self.touches.find((device, inode)) {
                    self.touches.remove(file, 0, at);
                    self.touches.forget((device, inode));
                    self.files.remove(&file);
                }
            }
            TraceEvent::Forked { name, thread } => {
                let step = self.steps.of(name);
                make_room(&mut self.executed).insert(thread, step);
            }
            TraceEvent::Executed { .. } | TraceEvent::Lost(_) => {}
        }
    }

    fn step(&mut self, line: &TraceLine<'_>) -> u16 {
        let step = match self.executed.get(&line.thread) {
            Some(step) => *step,
            None => self.step_by_name(line),
        };
        if self.threads.len() < MAP_LEN_MAX && self.threads.insert((step, line.thread)) {
            let processes = &mut self.steps.get(step).processes;
            *processes += units::Count::new(1);
        }
        step
    }

    /// By the name in the line, which may be that of the program before.
    fn step_by_name(&mut self, line: &TraceLine<'_>) -> u16 {
        // The kernel forgets names of threads that ended.
        let is_forgotten = line.name == "<...>";
        if let Some(step) = self.step_of_thread.get(&line.thread).filter(|_| is_forgotten) {
            return *step;
        }
        let step = self.steps.of(line.name);
        make_room(&mut self.step_of_thread).insert(line.thread, step);
        step
    }

    /// The number of a file, which is looked up when it is met first.
    fn file(&mut self, number: FileNumber) -> u32 {
        let file = self.touches.file(number);
        if !self.files.contains_key(&file) {
            // Files beyond the rows have no name: what is known of them only makes the answer better.
            if self.touches.files().get(file as usize).is_none() {
                self.nameless += 1;
                if self.nameless > NAMELESS_MAX {
                    self.nameless = 0;
                    let rows = self.touches.files().len();
                    self.files.retain(|file, _| (*file as usize) < rows);
                }
            }
            let found = self.lookup.find(number);
            let end = found.as_ref().map(|found| pages_of(found, self.page));
            let is_other_kind = found.as_ref().is_some_and(|found| !found.is_regular);
            self.files.insert(file, TracedFile { end, is_other_kind, known: Vec::new() });
            if let (Some(row), Some(found)) = (self.touches.file_mut(file), found) {
                row.name = found.name;
            }
        }
        file
    }

    fn read(&mut self, file: u32, (step, thread): (u16, u32), (first, last): (u64, u64), at: Span) {
        let (Ok(first), Ok(last)) = (u32::try_from(first), u32::try_from(last)) else { return };
        let number = self.touches.files().get(file as usize).map(|row| row.number);
        let Some(known) = self.files.get_mut(&file) else { return };
        if known.is_other_kind {
            return;
        }
        // A file that others append to has grown.
        if known.end.is_some_and(|end| first >= end) {
            let found = number.and_then(|number| self.lookup.find(number));
            let end = found.map(|found| pages_of(&found, self.page).max(first.saturating_add(1)));
            known.end = Some(end.unwrap_or(last.saturating_add(1)));
        }
        let end = last.saturating_add(1).min(known.end.unwrap_or(u32::MAX));
        let asked = make_room(&mut self.asked).insert(thread, (file, first, end));
        let begin = match asked {
            Some((same, before, after)) if same == file && (before..after).contains(&first) => {
                after
            }
            _ => first,
        };
        if begin >= end {
            // What was asked for last reaches further.
            if let Some(asked) = asked.filter(|(same, ..)| *same == file) {
                self.asked.insert(thread, (file, first, asked.2.max(end)));
            }
            return;
        }
        for page in begin..end {
            self.found_cached += u64::from(!known.mark(page));
        }
        let pages = end - begin;
        self.steps.get(step).asked_bytes += Bytes::new(self.page).times(u64::from(pages));
        self.touches.touch(TouchKind::Read, (file, step), (begin, pages), at);
    }

    fn mapped(&mut self, file: u32, step: u16, (first, last): (u64, u64), at: Span) {
        let (Ok(first), Ok(last)) = (u32::try_from(first), u32::try_from(last)) else { return };
        let Some(known) = self.files.get(&file) else { return };
        let own: Vec<u32> = (first..=last.min(first.saturating_add(1 << 16)))
            .filter(|page| known.is_marked(*page))
            .collect();
        for run in own.chunk_by(|one, next| one + 1 == *next) {
            let pages = u32::try_from(run.len()).unwrap_or(u32::MAX);
            self.touches.touch(TouchKind::Read, (file, step), (run[0], pages), at);
        }
    }

    fn add(&mut self, number: FileNumber, (step, thread): (u16, u32), first: u64, order: u32) {
        make_room(&mut self.devices).insert(number.1, number.0);
        let pages = 1_u64 << order.min(30);
        if order > 0 {
            make_room(&mut self.orders).insert((number.1, first), order);
        }
        make_room(&mut self.added).insert(thread, (number.1, first, pages));
        self.read_from_disk += pages;
        self.steps.get(step).read_bytes += Bytes::new(self.page).times(pages);
        let file = self.file(number);
        let (Ok(first), Ok(pages)) = (u32::try_from(first), u32::try_from(pages)) else { return };
        let Some(known) = self.files.get_mut(&file) else { return };
        for page in first..first.saturating_add(pages) {
            known.mark(page);
        }
        // A folio may reach beyond the end; where the end is not known, nothing is read ahead beyond it.
        let least = if known.end.is_some() { 1 } else { pages };
        known.end = known.end.max(Some(first.saturating_add(least)));
    }

    fn dirty(&mut self, inode: u64, (step, thread): (u16, u32), first: u64, at: Span) {
        let device = self.devices.get(&inode).copied().unwrap_or(0);
        let order = self.orders.get(&(inode, first)).copied().unwrap_or(0);
        let pages = 1_u64 << order.min(30);
        // A page that was added in order to be written was not read.
        if self.added.get(&thread).is_some_and(|added| (added.0, added.1) == (inode, first)) {
            self.added.remove(&thread);
            self.read_from_disk = self.read_from_disk.saturating_sub(pages);
            let read = &mut self.steps.get(step).read_bytes;
            *read = read.saturating_sub(Bytes::new(self.page).times(pages));
        }
        self.steps.get(step).written_bytes += Bytes::new(self.page).times(pages);
        let file = self.file((device, inode));
        let (Ok(first), Ok(pages)) = (u32::try_from(first), u32::try_from(pages)) else { return };
        if let Some(known) = self.files.get_mut(&file) {
            for page in first..first.saturating_add(pages) {
                known.mark(page);
            }
            if let Some(end) = &mut known.end {
                *end = (*end).max(first.saturating_add(pages));
            }
        }
        self.touches.touch(TouchKind::Written, (file, step), (first, pages), at);
    }
}

/// The name that the kernel gives to a process that executes this file: 15 bytes of it at most.
fn name_of_program(path: &str) -> &str {
    const NAME_MAX: usize = 15;
    let name = path.rsplit('/').next().unwrap_or(path);
    let end = (0..=NAME_MAX.min(name.len())).rev().find(|end| name.is_char_boundary(*end));
    name.get(..end.unwrap_or(0)).unwrap_or_default()
}

fn pages_of(found: &InodeFile, page: u64) -> u32 {
    u32::try_from(found.size.div_ceil(page)).unwrap_or(u32::MAX)
}

/// The same map, emptied where it is full.
fn make_room<K, V>(map: &mut HashMap<K, V>) -> &mut HashMap<K, V> {
    if map.len() >= MAP_LEN_MAX {
        map.clear();
    }
    map
}

#[cfg(test)]
mod tests {
    use super::*;

    fn traced(lines: &[&str]) -> Traced {
        let mut touches = TraceTouches::new(PageSize::USUAL, Span::from_secs(100));
        for line in lines {
            touches.take(&format!("cat-7 [000] ..... 101.5: {line}\n"));
        }
        touches.finish()
    }

    /// The name of a line lags behind what the thread executed; a thread that it makes is of the same program.
    #[test]
    fn a_thread_is_named_by_what_it_executed() {
        let mut touches = TraceTouches::new(PageSize::USUAL, Span::from_secs(100));
        for line in [
            "sh-7 [000] ..... 101.5: mm_filemap_get_pages: dev=9:9 ino=fd ofs=0-4095",
            "sh-7 [000] ..... 101.5: sched_process_fork: comm=sh pid=7 child_comm=sh child_pid=8",
            "<...>-8 [000] ..... 101.5: mm_filemap_get_pages: dev=9:9 ino=fe ofs=0-4095",
            "<...>-8 [000] ..... 101.5: sched_process_exec: filename=/usr/bin/a-very-long-program pid=8 old_pid=8",
            "sh-8 [000] ..... 101.5: mm_filemap_get_pages: dev=9:9 ino=ff ofs=0-4095",
        ] {
            touches.take(line);
        }
        let traced = touches.finish();
        let reader = |row: &crate::TouchedFile| {
            let names = row.readers.iter().map(|(step, _)| &traced.steps[usize::from(*step)].name);
            names.cloned().collect::<Vec<_>>()
        };
        let readers: Vec<_> = traced.touches.files().iter().map(reader).collect();
        assert_eq!(readers, [["sh"], ["sh"], ["a-very-long-pro"]]);
    }

    /// cat reads ten pages with requests of 32: the kernel takes a few pages at a time.
    #[test]
    fn overlapping_events_of_one_read_touch_each_page_once() {
        let add = |page: u64| {
            format!(
                "mm_filemap_add_to_page_cache: dev 9:9 ino ff pfn=0x1 ofs={} order=0",
                page << 12
            )
        };
        let mut lines: Vec<String> = (0..40).map(add).collect();
        for first in [0, 15, 30] {
            let range = format!("ofs={}-{}", first << 12, (32 << 12) - 1);
            lines.push(format!("mm_filemap_get_pages: dev=9:9 ino=ff {range}"));
        }
        lines.push(format!(
            "mm_filemap_get_pages: dev=9:9 ino=ff ofs={}-{}",
            32 << 12,
            (40 << 12) - 1
        ));
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        let traced = traced(&lines);
        assert_eq!(traced.touches.read(), Bytes::from_kib(4 * 40));
        assert_eq!(traced.read_from_disk, Bytes::from_kib(4 * 40));
        assert_eq!(traced.found_cached, Bytes::ZERO);
        assert_eq!(traced.steps[0].name, "cat");
        assert_eq!(traced.steps[0].processes, units::Count::new(1));
    }

    #[test]
    fn a_page_that_is_added_and_dirtied_is_written_and_not_read() {
        let traced = traced(&[
            "mm_filemap_add_to_page_cache: dev 9:9 ino ff pfn=0x1 ofs=0 order=2",
            "writeback_dirty_folio: bdi 9:9: ino=255 index=0",
            "writeback_dirty_folio: bdi 9:9: ino=255 index=0",
            "ext4_evict_inode: dev 9,9 ino 255 nlink 0",
        ]);
        assert_eq!(traced.touches.written(), Bytes::from_kib(32));
        assert_eq!((traced.read_from_disk, traced.found_cached), (Bytes::ZERO, Bytes::ZERO));
        let file = &traced.touches.files()[0];
        assert_eq!(file.removed, Some(Span::from_secs_f64(1.5)));
    }

    #[test]
    fn what_was_in_the_cache_before_is_counted_once_and_libraries_are_no_touches() {
        let read = "mm_filemap_get_pages: dev=9:9 ino=ff ofs=0-8191";
        let other = "mm_filemap_get_pages: dev=9:9 ino=fe ofs=0-4095";
        let mapped = "mm_filemap_map_pages: dev=9:9 ino=aa ofs=0-65535";
        let traced = traced(&[read, other, mapped, read]);
        assert_eq!(traced.found_cached, Bytes::from_kib(12));
        assert_eq!(traced.touches.read(), Bytes::from_kib(20));
    }
}
