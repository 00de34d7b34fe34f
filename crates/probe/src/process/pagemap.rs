//! Which pages of a process are in RAM: `/proc/PID/pagemap`, eight bytes for each page of its address space.
//!
//! Bit 63: the page is present; bit 62: it is in swap; bit 61: it belongs to a file or to shared memory. An ordinary
//! user sees these bits of an own process; only the frame numbers are hidden (4.2). Format: kernel docs,
//! `admin-guide/mm/pagemap.rst`. Cost: 24 ns a page, under the mmap lock for reading;
//! `PAGEMAP_SCAN` (6.7) passes over 1 TiB of untouched memory within a millisecond.

use std::fs::File;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::path::PathBuf;

use rustix::io::pread;
use units::PageSize;

use crate::error::ReadError;
use crate::kernel_file::{Root, open, retrying};

/// The argument of `PAGEMAP_SCAN`: `struct pm_scan_arg` of `linux/fs.h`.
#[repr(C)]
#[derive(Debug, Default)]
struct PagemapScan {
    size: u64,
    flags: u64,
    start: u64,
    end: u64,
    walk_end: u64,
    vec: u64,
    vec_len: u64,
    max_pages: u64,
    category_inverted: u64,
    category_mask: u64,
    category_anyof_mask: u64,
    return_mask: u64,
}

/// `PAGEMAP_SCAN`: `_IOWR('f', 16, struct pm_scan_arg)`.
const PAGEMAP_SCAN: u64 = 0xc060_6610;
const PAGE_IS_PRESENT: u64 = 1 << 3;
const PAGE_IS_SWAPPED: u64 = 1 << 4;
const PAGE_IS_PFNZERO: u64 = 1 << 5;
/// Runs that one call returns.
const RUNS_MAX: usize = 256;
/// Words that one call reads where the kernel cannot scan.
const WORDS_MAX: u64 = 8192;

/// One range of `PAGEMAP_SCAN`'s answer: `struct page_region`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
struct PageRegion {
    start: u64,
    end: u64,
    categories: u64,
}

/// The open page map of a process.
#[derive(Debug)]
pub struct Pagemap {
    file: File,
    page: PageSize,
    path: PathBuf,
}

/// A word of the page map.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct PageState(u64);

/// Pages next to each other that are all in RAM, or all in swap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageRun {
    /// Their addresses.
    pub range: Range<u64>,
    /// Whether they are in swap.
    pub is_swapped: bool,
}

/// How far the populated pages of a range are known, and what it took.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PagesKnown {
    /// Up to this address.
    pub until: u64,
    /// Words of the page map that were read: none where the kernel scans it.
    pub words: u64,
}

impl PageRun {
    /// Appends pages to runs in order of address.
    pub fn push(runs: &mut Vec<Self>, range: Range<u64>, is_swapped: bool) {
        match runs.last_mut() {
            Some(last) if last.range.end == range.start && last.is_swapped == is_swapped => {
                last.range.end = range.end;
            }
            _ => runs.push(Self { range, is_swapped }),
        }
    }
}

impl PageState {
    const fn is_present(self) -> bool {
        self.0 & (1 << 63) != 0
    }

    const fn is_swapped(self) -> bool {
        self.0 & (1 << 62) != 0
    }
}

impl Pagemap {
    /// Opens the page map of a process.
    ///
    /// # Errors
    /// [`ReadError`] if it cannot be opened: the process has ended, or this user may not trace it.
    pub fn open(root: &Root, pid: u32, page: PageSize) -> Result<Self, ReadError> {
        let path = root.path(&format!("/proc/{pid}/pagemap"));
        Ok(Self { file: open(&path)?, page, path })
    }

    /// Returns whether the process has ended since it was opened, or started another program: its old memory is gone.
    pub fn is_gone(&self) -> bool {
        let mut entry = [0; size_of::<u64>()];
        retrying(|| pread(&self.file, &mut entry, 0)) != Ok(entry.len())
    }

    /// Reads the words of the pages in `range` into `states`, which it replaces. The caller bounds the range. Pages
    /// behind the last one that the kernel returns are absent: the address space ends there.
    fn read(&self, range: &Range<u64>, states: &mut Vec<PageState>) -> Result<(), ReadError> {
        const ENTRY: usize = size_of::<u64>();
        const BATCH: usize = 512;
        let page = self.page.bytes().get();
        let first = range.start / page;
        let pages =
            (range.end.div_ceil(page).saturating_sub(first)).try_into().unwrap_or(usize::MAX);
        states.clear();
        let mut buffer = [0_u8; BATCH * ENTRY];
        while states.len() < pages {
            let wanted = (pages - states.len()).min(BATCH) * ENTRY;
            let at = (first + states.len() as u64) * ENTRY as u64;
            let got = retrying(|| pread(&self.file, &mut buffer[..wanted], at))
                .map_err(|errno| ReadError::new(&self.path, errno))?;
            let entries = buffer[..got].chunks_exact(ENTRY);
            states
                .extend(entries.filter_map(|entry| {
                    Some(PageState(u64::from_ne_bytes(*entry.first_chunk()?)))
                }));
            if got < wanted {
                states.resize(pages, PageState::default());
            }
        }
        Ok(())
    }

    /// Appends the pages of a page-aligned range that are in RAM or in swap to `runs`. Stops at the range's end, after 256
    /// runs or, on kernels before 6.7, after 8192 pages.
    ///
    /// # Errors
    /// [`ReadError`] if a read fails: the process has ended.
    pub fn populated(
        &self,
        range: &Range<u64>,
        runs: &mut Vec<PageRun>,
    ) -> Result<PagesKnown, ReadError> {
        if let Some(until) = self.scan(range, runs) {
            return Ok(PagesKnown { until, words: 0 });
        }
        let page = self.page.bytes().get();
        let until = range.end.min(range.start.saturating_add(WORDS_MAX * page));
        let mut states = Vec::new();
        self.read(&(range.start..until), &mut states)?;
        for (state, index) in states.iter().zip(0..) {
            let from = range.start + index * page;
            if state.is_present() || state.is_swapped() {
                PageRun::push(runs, from..from + page, !state.is_present());
            }
        }
        Ok(PagesKnown { until, words: states.len() as u64 })
    }

    /// The same by `PAGEMAP_SCAN`, which passes over page tables that are not there; `None` on kernels before 6.7.
    #[allow(unsafe_code)] // the one call of ioctl
    fn scan(&self, range: &Range<u64>, runs: &mut Vec<PageRun>) -> Option<u64> {
        let mut regions = [PageRegion::default(); RUNS_MAX];
        let mut scan = PagemapScan {
            size: size_of::<PagemapScan>() as u64,
            start: range.start,
            end: range.end,
            vec: regions.as_mut_ptr() as u64,
            vec_len: RUNS_MAX as u64,
            // Without the zero page, which is mapped where a process reads what it never wrote: RSS leaves it out too.
            category_inverted: PAGE_IS_PFNZERO,
            category_mask: PAGE_IS_PFNZERO,
            category_anyof_mask: PAGE_IS_PRESENT | PAGE_IS_SWAPPED,
            return_mask: PAGE_IS_PRESENT | PAGE_IS_SWAPPED,
            ..PagemapScan::default()
        };
        // SAFETY: the kernel reads and writes one `PagemapScan` and at most `vec_len` elements of `regions`; both outlive
        // the call. Without flags it changes nothing of the process.
        let found = unsafe {
            libc::ioctl(self.file.as_raw_fd(), PAGEMAP_SCAN as libc::Ioctl, &raw mut scan)
        };
        let found = regions.get(..usize::try_from(found).ok()?)?;
        for region in found {
            let is_swapped = region.categories & PAGE_IS_PRESENT == 0;
            PageRun::push(runs, region.start..region.end, is_swapped);
        }
        Some(scan.walk_end.clamp(range.start, range.end))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_touched_page_is_present_and_an_untouched_one_is_not() {
        let page = PageSize::from_bytes(rustix::param::page_size() as u64).unwrap();
        let size = rustix::param::page_size();
        let mut memory = vec![0_u8; 64 * size];
        let start = (memory.as_ptr() as u64).next_multiple_of(size as u64);
        let offset = usize::try_from(start - memory.as_ptr() as u64).unwrap();
        memory[offset + 3 * size] = 1;
        let map = Pagemap::open(&Root::default(), std::process::id(), page).unwrap();
        let mut states = Vec::new();
        let end = start + 32 * size as u64;
        map.read(&(start..end), &mut states).unwrap();
        assert_eq!(states.len(), 32);
        assert!(states[3].is_present());
        assert_eq!(memory[offset + 3 * size], 1);
    }

    /// All runs of a range.
    fn runs(map: &Pagemap, range: &Range<u64>) -> (Vec<PageRun>, u64) {
        let (mut runs, mut at, mut words) = (Vec::new(), range.start, 0);
        while at < range.end {
            let known = map.populated(&(at..range.end), &mut runs).unwrap();
            assert!(known.until > at && known.until <= range.end);
            (at, words) = (known.until, words + known.words);
        }
        (runs, words)
    }

    #[test]
    fn runs_are_the_pages_that_the_words_name() {
        const PAGES: usize = 4096;
        let size = rustix::param::page_size();
        let page = PageSize::from_bytes(size as u64).unwrap();
        let map = Pagemap::open(&Root::default(), std::process::id(), page).unwrap();
        // Zeroed memory of this size is a mapping of its own, and not touched.
        let mut memory = vec![0_u8; PAGES * size];
        let start = (memory.as_ptr() as u64 + 1).next_multiple_of(size as u64);
        let offset = usize::try_from(start - memory.as_ptr() as u64).unwrap();
        let range = start..start + ((PAGES - 2) * size) as u64;
        // More runs than one call returns, where no huge page joins them.
        for index in (0..PAGES - 2).filter(|index| index % 5 == 1 || index % 7 == 2) {
            memory[offset + index * size] = 1;
        }
        let mut states = Vec::new();
        map.read(&range, &mut states).unwrap();
        let mut expected = Vec::new();
        for (state, at) in states.iter().zip((start..).step_by(size)) {
            if state.is_present() {
                PageRun::push(&mut expected, at..at + size as u64, false);
            }
        }
        let (found, words) = runs(&map, &range);
        assert_eq!(found, expected);
        assert!(words == 0 || words == (PAGES - 2) as u64);
        assert_eq!(memory[offset + size], 1);
    }

    #[test]
    fn the_map_of_a_process_that_ended_is_gone() {
        let open = |pid| Pagemap::open(&Root::default(), pid, PageSize::USUAL).unwrap();
        let mut child =
            std::process::Command::new("cat").stdin(std::process::Stdio::piped()).spawn().unwrap();
        let map = open(child.id());
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(map.is_gone());
        assert!(!open(std::process::id()).is_gone());
    }

    #[test]
    fn pages_behind_the_address_space_are_absent() {
        let map = Pagemap::open(&Root::default(), std::process::id(), PageSize::USUAL).unwrap();
        let mut states = Vec::new();
        let end = u64::MAX - 4095;
        map.read(&(end - 8192..end), &mut states).unwrap();
        assert_eq!(states, [PageState::default(); 2]);
    }
}
