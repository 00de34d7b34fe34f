//! How much of a file is in the page cache.
//!
//! `cachestat(2)` counts the pages, since Linux 6.5. Before that, `mincore(2)` says of each page of a mapping whether it is
//! there; the mapping is never touched. Neither answers everybody: the caller must own the file or may write it, else the
//! first is refused and the second, since 5.2, claims that every page is there. So `mincore` is asked only by the owner and
//! by root of the machine. Cost: 1 µs for a small file; for a GiB of cached pages 3 ms, with `mincore` 10 ms for a GiB of
//! the file's length.

use std::os::fd::{AsRawFd as _, BorrowedFd};
use std::ptr::null_mut;

use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags};
use units::{Bytes, PageSize, Pages};

use crate::inventory::SearchTime;

/// How much of a file is in the page cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FileCacheUse {
    /// Pages in the cache.
    pub cached: Bytes,
    /// Of these, changed and not yet written; `None` before Linux 6.5.
    pub dirty: Option<Bytes>,
}

/// The most of a file that one call counts: the time is looked at in between.
const CACHESTAT_WINDOW: u64 = 64 << 30;
/// The same for `mincore`, which needs a byte for each page.
const MINCORE_WINDOW: u64 = 1 << 30;

/// Counts the pages of a regular file.
///
/// # Errors
/// `EPERM` if the kernel would not say it or not the truth, `EOPNOTSUPP` for hugetlbfs, `ETIMEDOUT` when the time is over.
pub(crate) fn of(
    file: BorrowedFd<'_>,
    page: PageSize,
    time: SearchTime,
) -> Result<FileCacheUse, Errno> {
    match by_cachestat(file, page, time) {
        // A sandbox may refuse calls that are newer than it.
        Err(Errno::NOSYS | Errno::PERM) => by_mincore(file, page, time),
        counted => counted,
    }
}

/// Offset and length of each window of a file.
fn windows(
    size: u64,
    window: u64,
    time: SearchTime,
) -> impl Iterator<Item = Result<(u64, u64), Errno>> {
    let count = size.div_ceil(window);
    (0..count).map(move |at| {
        let offset = at * window;
        if time.is_over() {
            Err(Errno::TIMEDOUT)
        } else {
            Ok((offset, window.min(size - offset)))
        }
    })
}

fn size_of(file: BorrowedFd<'_>) -> Result<u64, Errno> {
    let size = rustix::fs::fstat(file)?.st_size;
    Ok(u64::try_from(size).unwrap_or_default())
}

fn by_cachestat(
    file: BorrowedFd<'_>,
    page: PageSize,
    time: SearchTime,
) -> Result<FileCacheUse, Errno> {
    let (mut cached, mut dirty) = (0, 0);
    for window in windows(size_of(file)?, CACHESTAT_WINDOW, time) {
        let stat = cachestat(file, window?)?;
        cached += stat.cached;
        dirty += stat.dirty;
    }
    let bytes = |pages| Pages::new(pages).to_bytes(page);
    Ok(FileCacheUse {
        cached: bytes(cached),
        dirty: Some(bytes(dirty)),
    })
}

/// `struct cachestat` of `include/uapi/linux/mman.h`, in pages.
#[repr(C)]
#[derive(Default)]
struct CacheStat {
    cached: u64,
    dirty: u64,
    writeback: u64,
    evicted: u64,
    recently_evicted: u64,
}

/// The number of `cachestat` on every architecture but alpha.
const CACHESTAT: libc::c_long = 451;

#[allow(unsafe_code)] // the one call of cachestat
fn cachestat(file: BorrowedFd<'_>, (offset, length): (u64, u64)) -> Result<CacheStat, Errno> {
    // `struct cachestat_range`.
    let range = [offset, length];
    let mut stat = CacheStat::default();
    // SAFETY: both pointers are to live values of the sizes and layouts that the kernel reads and writes: two and five
    // 64-bit words; the descriptor is open during the call. A kernel without the call returns ENOSYS.
    let got = unsafe {
        libc::syscall(
            CACHESTAT,
            file.as_raw_fd(),
            range.as_ptr(),
            &raw mut stat,
            0_u32,
        )
    };
    if got == 0 {
        return Ok(stat);
    }
    Err(last_errno())
}

fn last_errno() -> Errno {
    let error = std::io::Error::last_os_error();
    Errno::from_io_error(&error).unwrap_or(Errno::IO)
}

fn by_mincore(
    file: BorrowedFd<'_>,
    page: PageSize,
    time: SearchTime,
) -> Result<FileCacheUse, Errno> {
    if !is_answered_truly(file)? {
        return Err(Errno::PERM);
    }
    let mut pages = 0;
    let mut in_cache = Vec::new();
    for window in windows(size_of(file)?, MINCORE_WINDOW, time) {
        let (offset, length) = window?;
        let count = length.div_ceil(page.bytes().get());
        in_cache.clear();
        in_cache.resize(usize::try_from(count).unwrap_or(0), 0);
        mincore(file, offset, length, &mut in_cache)?;
        pages += in_cache.iter().map(|page| u64::from(page & 1)).sum::<u64>();
    }
    Ok(FileCacheUse {
        cached: Pages::new(pages).to_bytes(page),
        dirty: None,
    })
}

/// Whether `mincore` gives this user the truth, as `inode_owner_or_capable` decides.
fn is_answered_truly(file: BorrowedFd<'_>) -> Result<bool, Errno> {
    let user = rustix::process::geteuid();
    let owner = rustix::fs::fstat(file)?.st_uid;
    // Root of another user namespace is not root of the file's owner.
    let is_root = || {
        let map = std::fs::read("/proc/self/uid_map").unwrap_or_default();
        user.is_root()
            && crate::text::words(&map).nth(2).map(<[u8]>::trim_ascii) == Some(b"4294967295")
    };
    Ok(user.as_raw() == owner || is_root())
}

/// Writes for each page of a window of a file whether it is in the page cache, in the lowest bit.
#[allow(unsafe_code)] // a mapping that is never touched, and the one call of mincore
fn mincore(
    file: BorrowedFd<'_>,
    offset: u64,
    length: u64,
    in_cache: &mut [u8],
) -> Result<(), Errno> {
    let length = usize::try_from(length).map_err(|_| Errno::OVERFLOW)?;
    // SAFETY: the kernel chooses addresses that nothing uses; nothing reads or writes the mapping, so a file that is cut
    // meanwhile does no harm.
    let mapped = unsafe {
        rustix::mm::mmap(
            null_mut(),
            length,
            ProtFlags::READ,
            MapFlags::SHARED,
            file,
            offset,
        )
    }?;
    // SAFETY: the range is the mapping above, and `in_cache` has a byte for each of its pages (asserted by the slice that
    // the caller sized from the same length); the kernel writes these bytes only.
    let got = unsafe { libc::mincore(mapped, length, in_cache.as_mut_ptr()) };
    let answer = if got == 0 { Ok(()) } else { Err(last_errno()) };
    // SAFETY: the mapping above, which nothing refers to.
    unsafe { rustix::mm::munmap(mapped, length) }?;
    answer
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::os::fd::AsFd as _;
    use std::time::Duration;

    use super::*;

    fn long() -> SearchTime {
        SearchTime::starts(Duration::from_secs(60))
    }

    #[test]
    fn both_calls_count_the_pages_of_a_file_that_was_just_written() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&vec![7; (3 << 20) + 1]).unwrap();
        let page = PageSize::USUAL;
        let written = Bytes::new((3 << 20) + page.bytes().get());
        let of_mincore = by_mincore(file.as_fd(), page, long()).unwrap();
        assert_eq!((of_mincore.cached, of_mincore.dirty), (written, None));
        // A sandbox may not know or not permit it.
        if let Ok(of_cachestat) = by_cachestat(file.as_fd(), page, long()) {
            assert_eq!(of_cachestat.cached, written);
            assert!(of_cachestat.dirty <= Some(written));
        }
        // A hole is not in the cache.
        file.set_len(1 << 32).unwrap();
        assert_eq!(
            by_mincore(file.as_fd(), page, long()).unwrap().cached,
            written
        );
        assert_eq!(of(file.as_fd(), page, long()).unwrap().cached, written);
    }

    #[test]
    fn an_empty_file_has_no_pages_and_time_that_is_over_ends_the_count() {
        let file = tempfile::tempfile().unwrap();
        let page = PageSize::USUAL;
        assert_eq!(
            by_mincore(file.as_fd(), page, long()).unwrap().cached,
            Bytes::ZERO
        );
        file.set_len(1 << 20).unwrap();
        let over = SearchTime::starts(Duration::ZERO);
        assert_eq!(of(file.as_fd(), page, over), Err(Errno::TIMEDOUT));
    }
}
