//! Which pages of a process are in RAM: `/proc/PID/pagemap`, eight bytes for each page of its address space.
//!
//! Bit 63: the page is present; bit 62: it is in swap; bit 61: it belongs to a file or to shared memory. An ordinary
//! user sees these bits of an own process; only the frame numbers are hidden (4.2). Format: kernel docs,
//! `admin-guide/mm/pagemap.rst`. Cost: 24 ns a page, under the mmap lock for reading;
//! `PAGEMAP_SCAN` (6.7) finds the next populated page in 1 TiB of untouched memory within a millisecond.

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
/// `PAGE_IS_PRESENT` and `PAGE_IS_SWAPPED`.
const POPULATED: u64 = 1 << 3 | 1 << 4;

/// One range of `PAGEMAP_SCAN`'s answer: `struct page_region`.
#[repr(C)]
#[derive(Debug, Default)]
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

/// State of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PageState(u64);

impl PageState {
    /// A page that is in RAM.
    pub const PRESENT: Self = Self(1 << 63);

    /// The state that this entry of the file stands for.
    pub const fn new(entry: u64) -> Self {
        Self(entry)
    }

    /// Whether it is in RAM.
    pub const fn is_present(self) -> bool {
        self.0 & (1 << 63) != 0
    }

    /// Whether it is in swap.
    pub const fn is_swapped(self) -> bool {
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
        Ok(Self {
            file: open(&path)?,
            page,
            path,
        })
    }

    /// Reads the states of the pages in `range` into `states`, which it replaces. The caller bounds the range. Pages
    /// behind the last one that the kernel returns are absent: the address space ends there.
    ///
    /// # Errors
    /// [`ReadError`] if a read fails: the process has ended.
    pub fn read(&self, range: &Range<u64>, states: &mut Vec<PageState>) -> Result<(), ReadError> {
        const ENTRY: usize = size_of::<u64>();
        const BATCH: usize = 8192;
        let page = self.page.bytes().get();
        let first = range.start / page;
        let pages = (range.end.div_ceil(page).saturating_sub(first))
            .try_into()
            .unwrap_or(usize::MAX);
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

    /// Returns where the first page of a page-aligned range is that is in RAM or in swap; the range's end if none is.
    /// `None` if this kernel does not show it: before 6.7. Page tables that are not there are passed over at once.
    #[allow(unsafe_code)] // the one call of ioctl
    pub fn populated_from(&self, range: &Range<u64>) -> Option<u64> {
        let mut region = PageRegion::default();
        let mut scan = PagemapScan {
            size: size_of::<PagemapScan>() as u64,
            start: range.start,
            end: range.end,
            vec: (&raw mut region) as u64,
            vec_len: 1,
            max_pages: 1,
            category_anyof_mask: POPULATED,
            return_mask: POPULATED,
            ..PagemapScan::default()
        };
        // SAFETY: the kernel reads and writes one `PagemapScan` and at most `vec_len`, one, `PageRegion`; both outlive
        // the call. Without flags it changes nothing of the process.
        let found = unsafe {
            libc::ioctl(
                self.file.as_raw_fd(),
                PAGEMAP_SCAN as libc::Ioctl,
                &raw mut scan,
            )
        };
        match found {
            0 => Some(range.end),
            1 => Some(region.start.clamp(range.start, range.end)),
            _ => None,
        }
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

    #[test]
    fn the_first_touched_page_of_a_large_range_is_found() {
        const BYTES: usize = 64 << 20;
        let size = rustix::param::page_size();
        let page = PageSize::from_bytes(size as u64).unwrap();
        let map = Pagemap::open(&Root::default(), std::process::id(), page).unwrap();
        // Zeroed memory of this size is a mapping of its own, and not touched.
        let mut memory = vec![0_u8; BYTES];
        let start = (memory.as_ptr() as u64 + 1).next_multiple_of(size as u64);
        let offset = usize::try_from(start - memory.as_ptr() as u64).unwrap();
        let range = start..start + (BYTES - 2 * size) as u64;
        let Some(none) = map.populated_from(&range) else {
            return; // before 6.7
        };
        assert_eq!(none, range.end);
        memory[offset + BYTES / 2] = 1;
        let found = map.populated_from(&range).unwrap();
        let touched = start + BYTES as u64 / 2;
        // A huge page may contain it.
        assert!(
            found <= touched && touched - found < 2 << 20,
            "{found:x} {touched:x}"
        );
        assert_eq!(memory[offset + BYTES / 2], 1);
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
