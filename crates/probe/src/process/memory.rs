//! The memory of another process, read while it runs: `process_vm_readv`, or `/proc/PID/mem` where that is refused.
//!
//! The page map comes first: only pages in RAM or in swap are read. Reading an absent one would map a page into the
//! process, and for one behind a userfaultfd(2) the kernel waits for whoever serves it, which may be nobody, or the process
//! itself, which is stopped. A page can still go between the look and the read, and the look takes the process's mmap lock:
//! whoever reads a process that is not trusted does so in a [`TimedRead`](crate::TimedRead).
//!
//! The target does not stop. Its mmap lock is taken for reading, a batch of pages at a time; a page that is read counts
//! as accessed. Needs the right to attach to it (`PTRACE_MODE_ATTACH`): same user and Yama's `ptrace_scope` 0, or
//! CAP_SYS_PTRACE. Cost: 0.17 s for a GiB in blocks of 64 KiB or more; 1 µs to ask for a page that the last answer did not
//! cover.

use std::cell::RefCell;
use std::fs::File;
use std::mem::MaybeUninit;
use std::ops::Range;

use rustix::io::{Errno, pread};
use units::PageSize;

use crate::error::ReadError;
use crate::kernel_file::{Root, open, retrying};
use crate::process::pagemap::{PageRun, Pagemap, PagesKnown};

/// The memory of a process, as far as it is populated.
#[derive(Debug)]
pub struct ProcessMemory {
    pid: u32,
    /// Open where `process_vm_readv` is refused: a seccomp profile of a container may permit only this.
    file: Option<File>,
    pages: Pagemap,
    page_bytes: u64,
    /// The pages that the last look found: what lies on them is read without another.
    seen: RefCell<Vec<PageRun>>,
}

/// `UIO_MAXIOV`: the most parts that one call takes.
const PARTS_MAX: usize = 1024;
/// An address that no process has: whether it is refused shows whether reading is permitted, and touches no page.
const NOWHERE: u64 = 0u64.wrapping_sub(1 << 16);

impl ProcessMemory {
    /// Opens the memory of a process on a host with pages of this size.
    ///
    /// # Errors
    /// [`ReadError`] if this user may not read it.
    pub fn open(root: &Root, pid: u32, page: PageSize) -> Result<Self, ReadError> {
        let nowhere = NOWHERE..NOWHERE + 1;
        let file = match read_vm(pid, std::slice::from_ref(&nowhere), &mut [0]) {
            Ok(_) | Err(Errno::FAULT | Errno::IO) => None,
            Err(_) => Some(open(&root.path(&format!("/proc/{pid}/mem")))?),
        };
        Ok(Self {
            pid,
            file,
            pages: Pagemap::open(root, pid, page)?,
            page_bytes: page.bytes().get(),
            seen: RefCell::default(),
        })
    }

    /// Appends the pages of a page-aligned range that are in RAM or in swap to `runs`. Stops at the range's end, after 256
    /// runs or, on kernels before 6.7, after 8192 pages.
    ///
    /// # Errors
    /// [`ReadError`] if the page map cannot be read: the process has ended.
    pub fn populated(
        &self,
        range: &Range<u64>,
        runs: &mut Vec<PageRun>,
    ) -> Result<PagesKnown, ReadError> {
        // The last run may become longer.
        let first = runs.len().saturating_sub(1);
        let known = self.pages.populated(range, runs)?;
        let mut seen = self.seen.borrow_mut();
        seen.clear();
        seen.extend_from_slice(runs.get(first..).unwrap_or_default());
        Ok(known)
    }

    /// Returns whether the page that contains an address is in RAM.
    pub fn is_present(&self, address: u64) -> bool {
        let mut runs = Vec::new();
        let known = self.populated(&self.pages_of(&(address..address)), &mut runs);
        known.is_ok() && runs.first().is_some_and(|run| !run.is_swapped)
    }

    /// Reads from an address until `buffer` is full, or memory begins that is unreadable or in neither RAM nor swap. Returns
    /// the number of bytes read.
    ///
    /// # Errors
    /// The kernel's reason if nothing could be read.
    pub fn read_at(&self, address: u64, buffer: &mut [u8]) -> Result<usize, Errno> {
        let length = buffer.len() as u64;
        let whole = address..address.saturating_add(length);
        self.read_parts(std::slice::from_ref(&whole), buffer)
    }

    /// Reads ranges one after another into `buffer`, which is as long as they are together; at most 1024 ranges at
    /// once, more are left unread. Stops at the first range of which a byte cannot be read, or is in neither RAM nor swap;
    /// the first one is read up to there. Returns the number of bytes read.
    ///
    /// # Errors
    /// The kernel's reason if nothing could be read.
    pub fn read_parts(&self, parts: &[Range<u64>], buffer: &mut [u8]) -> Result<usize, Errno> {
        let parts = &parts[..parts.len().min(PARTS_MAX)];
        let whole = parts.iter().take_while(|part| self.reach(part) == part.end);
        let whole = whole.count();
        if let (0, Some(first)) = (whole, parts.first()) {
            let begin = first.start..self.reach(first);
            return self.read(std::slice::from_ref(&begin), buffer);
        }
        self.read(&parts[..whole], buffer)
    }

    fn read(&self, parts: &[Range<u64>], buffer: &mut [u8]) -> Result<usize, Errno> {
        let bytes = parts.iter().map(|part| part.end.saturating_sub(part.start));
        let length = usize::try_from(bytes.sum::<u64>()).unwrap_or(usize::MAX);
        if length == 0 {
            return Err(Errno::FAULT);
        }
        let length = length.min(buffer.len());
        let buffer = &mut buffer[..length];
        match &self.file {
            Some(file) => read_file(file, parts, buffer),
            None => read_vm(self.pid, parts, buffer),
        }
    }

    /// Returns up to where a range is populated from its start on; its start if it is not. Asks for its pages if the last
    /// look did not cover them.
    fn reach(&self, part: &Range<u64>) -> u64 {
        let seen = populated_until(&self.seen.borrow(), part.start);
        if seen >= part.end {
            return part.end;
        }
        let mut runs = Vec::new();
        match self.populated(&self.pages_of(part), &mut runs) {
            Ok(_) => populated_until(&runs, part.start).min(part.end),
            Err(_) => part.start,
        }
    }

    /// The pages that a range touches; one page for an empty range.
    fn pages_of(&self, part: &Range<u64>) -> Range<u64> {
        let start = part.start / self.page_bytes * self.page_bytes;
        let end = part.end.div_ceil(self.page_bytes).saturating_mul(self.page_bytes);
        start..end.max(start.saturating_add(self.page_bytes))
    }
}

/// Returns up to where runs in order of address are without a gap from an address on; the address if none has it.
fn populated_until(runs: &[PageRun], address: u64) -> u64 {
    let first = runs.partition_point(|run| run.range.end <= address);
    let mut until = address;
    for run in runs.get(first..).unwrap_or_default() {
        if run.range.start > until {
            break;
        }
        until = run.range.end;
    }
    until
}

fn read_file(file: &File, parts: &[Range<u64>], buffer: &mut [u8]) -> Result<usize, Errno> {
    let mut read = 0_usize;
    for part in parts.iter().take(PARTS_MAX) {
        let length = usize::try_from(part.end.saturating_sub(part.start)).unwrap_or(usize::MAX);
        let end = read.saturating_add(length).min(buffer.len());
        let mut at = part.start;
        while read < end {
            match retrying(|| pread(file, &mut buffer[read..end], at)) {
                Ok(0) => return Ok(read),
                Ok(got) => {
                    read += got;
                    at = at.saturating_add(got as u64);
                }
                Err(errno) if read == 0 => return Err(errno),
                Err(_) => return Ok(read),
            }
        }
    }
    Ok(read)
}

#[allow(unsafe_code)] // the one call of process_vm_readv
fn read_vm(pid: u32, parts: &[Range<u64>], buffer: &mut [u8]) -> Result<usize, Errno> {
    let Ok(pid) = libc::pid_t::try_from(pid) else {
        return Err(Errno::SRCH);
    };
    // 16 KiB that are not cleared first: most calls have one part.
    let mut remote = [const { MaybeUninit::uninit() }; PARTS_MAX];
    for (part, to) in parts.iter().zip(&mut remote) {
        let (Ok(base), Ok(length)) =
            (usize::try_from(part.start), usize::try_from(part.end.saturating_sub(part.start)))
        else {
            return Err(Errno::FAULT);
        };
        to.write(libc::iovec { iov_base: std::ptr::without_provenance_mut(base), iov_len: length });
    }
    let local = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    // SAFETY: `local` is this process's own buffer, borrowed mutably for the call, and the kernel writes at most its
    // length. The remote addresses are checked by the kernel against the other process's address space; they are
    // never dereferenced here. Counts match the arrays: `parts` has at most PARTS_MAX elements, and as many of `remote`
    // are written.
    let got = unsafe {
        libc::process_vm_readv(
            pid,
            &raw const local,
            1,
            remote.as_ptr().cast(),
            parts.len() as libc::c_ulong,
            0,
        )
    };
    usize::try_from(got).map_err(|_| {
        let error = std::io::Error::last_os_error();
        Errno::from_io_error(&error).unwrap_or(Errno::IO)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page() -> PageSize {
        PageSize::from_bytes(rustix::param::page_size() as u64).unwrap()
    }

    #[test]
    fn own_memory_is_read_by_both_ways_the_same() {
        let text: Vec<u8> = (0..=255).cycle().take(100_000).collect();
        let start = text.as_ptr() as u64;
        let parts = [start + 7..start + 50, start + 90_000..start + 91_000];
        let root = Root::default();
        let pid = std::process::id();
        let open = || ProcessMemory::open(&root, pid, page()).unwrap();
        let direct = open();
        let path = format!("/proc/{pid}/mem");
        let by_file = ProcessMemory { file: Some(File::open(path).unwrap()), ..open() };
        for memory in [direct, by_file] {
            let mut buffer = vec![0; 1043];
            assert_eq!(memory.read_parts(&parts, &mut buffer), Ok(1043));
            assert_eq!(buffer[..43], text[7..50]);
            assert_eq!(buffer[43..], text[90_000..91_000]);
            assert!(memory.read_at(8, &mut buffer).is_err());
        }
    }

    #[test]
    fn memory_of_no_process_is_refused() {
        let error = ProcessMemory::open(&Root::default(), 0x3fff_ffff, page()).unwrap_err();
        assert_eq!(error.absence(), timeline::Absence::NotFound);
    }

    #[test]
    fn a_page_that_was_never_touched_is_not_read() {
        let size = rustix::param::page_size();
        // Zeroed memory of this size is a mapping of its own, and not touched.
        let mut memory = vec![0_u8; 4096 * size];
        let start = (memory.as_ptr() as u64).next_multiple_of(size as u64);
        let offset = usize::try_from(start - memory.as_ptr() as u64).unwrap();
        // Far from its neighbours, so that no huge page joins them.
        let touched = 3000;
        memory[offset + touched * size] = 7;
        let at = |index: usize| start + (index * size) as u64;
        let own = ProcessMemory::open(&Root::default(), std::process::id(), page()).unwrap();
        let huge = own.is_present(at(touched + 1));
        let mut buffer = vec![0; 2 * size];
        assert_eq!(own.read_at(at(7), &mut buffer), Err(Errno::FAULT));
        assert!(!own.is_present(at(7)), "reading did not map it");
        if huge {
            return; // The host makes huge pages wherever it can.
        }
        assert_eq!(own.read_at(at(touched), &mut buffer), Ok(size));
        assert_eq!(buffer[0], 7);
        let parts = [at(touched)..at(touched) + 8, at(9)..at(9) + 8, at(touched)..at(touched) + 8];
        assert_eq!(own.read_parts(&parts, &mut buffer[..24]), Ok(8));
        assert!(!own.is_present(at(9)));
    }

    #[test]
    fn runs_without_a_gap_are_populated_from_an_address_on() {
        let run = |range: Range<u64>, is_swapped| PageRun { range, is_swapped };
        let runs = [run(1..3, false), run(3..4, true), run(6..9, false)];
        let until = |at| populated_until(&runs, at);
        assert_eq!([0, 1, 2, 3, 4, 6, 8, 9].map(until), [0, 4, 4, 4, 4, 9, 9, 9]);
    }
}
