//! How much of a file is in the page cache.
//!
//! `cachestat(2)` counts the pages, since Linux 6.5. Before that, `mincore(2)` says of each page of a mapping whether it is
//! there; the mapping is never touched. Neither answers everybody: the caller must own the file or may write it, else the
//! first is refused and the second, since 5.2, claims that every page is there. So `mincore` is asked only by the owner and
//! by root of the machine. Cost: 1 µs for a small file; for a GiB of cached pages 3 ms, with `mincore` 10 ms for a GiB of
//! the file's length.

use std::os::fd::{AsRawFd as _, BorrowedFd};
use std::ptr::null_mut;
use std::sync::LazyLock;

use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags};
use units::{Bytes, PageSize, Pages};

use crate::search_time::SearchTime;

/// How much of a file is in the page cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FileCacheUse {
    /// Pages in the cache.
    pub cached: Bytes,
    /// Of these, changed and not yet written; `None` before Linux 6.5.
    pub dirty: Option<Bytes>,
    /// Whether the time was over before the end of the file: there may be more.
    pub is_cut: bool,
}

/// The most of a file that one call counts: the time is checked in between.
const CACHESTAT_WINDOW: u64 = 64 << 30;
/// The same for `mincore`, which needs a byte for each page.
const MINCORE_WINDOW: u64 = 1 << 30;

/// Counts the pages of a regular file.
///
/// # Errors
/// `EPERM` if the kernel would not say it or not the truth, `EOPNOTSUPP` for hugetlbfs.
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

/// Adds up what `count` finds in each window of a file, given by offset and length.
fn in_windows(
    file: BorrowedFd<'_>,
    window: u64,
    time: SearchTime,
    count: &mut dyn FnMut(u64, u64) -> Result<FileCacheUse, Errno>,
) -> Result<FileCacheUse, Errno> {
    let size = u64::try_from(rustix::fs::fstat(file)?.st_size).unwrap_or_default();
    let mut sum = FileCacheUse::default();
    let mut offset = 0;
    while offset < size {
        if time.is_over() {
            sum.is_cut = true;
            break;
        }
        let found = count(offset, window.min(size - offset))?;
        sum.cached += found.cached;
        sum.dirty = found.dirty.map(|dirty| dirty + sum.dirty.unwrap_or_default());
        offset = offset.saturating_add(window);
    }
    Ok(sum)
}

fn by_cachestat(
    file: BorrowedFd<'_>,
    page: PageSize,
    time: SearchTime,
) -> Result<FileCacheUse, Errno> {
    let bytes = |pages| Pages::new(pages).to_bytes(page);
    in_windows(file, CACHESTAT_WINDOW, time, &mut |offset, length| {
        let stat = cachestat(file, (offset, length))?;
        Ok(FileCacheUse {
            cached: bytes(stat.cached),
            dirty: Some(bytes(stat.dirty)),
            is_cut: false,
        })
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
    let got =
        unsafe { libc::syscall(CACHESTAT, file.as_raw_fd(), range.as_ptr(), &raw mut stat, 0_u32) };
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
    let mut in_cache = Vec::new();
    in_windows(file, MINCORE_WINDOW, time, &mut |offset, length| {
        mincore(file, offset, length, &mut in_cache)?;
        let pages = in_cache.iter().map(|page| u64::from(page & 1)).sum();
        Ok(FileCacheUse { cached: Pages::new(pages).to_bytes(page), ..FileCacheUse::default() })
    })
}

/// Whether `mincore` gives this user the truth, as `inode_owner_or_capable` decides.
fn is_answered_truly(file: BorrowedFd<'_>) -> Result<bool, Errno> {
    static IS_CAPABLE: LazyLock<bool> = LazyLock::new(is_capable);
    let owner = rustix::fs::fstat(file)?.st_uid;
    Ok(rustix::process::geteuid().as_raw() == owner || *IS_CAPABLE)
}

/// Whether this process has CAP_FOWNER over all users: in a namespace with a part of them it has not.
fn is_capable() -> bool {
    const CAP_FOWNER: u32 = 3;
    const ALL_USERS: &[u8] = b"4294967295";
    let read = |path| std::fs::read(path).unwrap_or_default();
    let status = String::from_utf8_lossy(&read("/proc/self/status")).into_owned();
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let effective = effective.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    let map = read("/proc/self/uid_map");
    let users = crate::text::words(&map).nth(2).map(<[u8]>::trim_ascii);
    effective.is_some_and(|mask| mask >> CAP_FOWNER & 1 == 1) && users == Some(ALL_USERS)
}

/// Writes for each page of a window of a file whether it is in the page cache, in the lowest bit.
#[allow(unsafe_code)] // a mapping that is never touched, and the one call of mincore
fn mincore(
    file: BorrowedFd<'_>,
    offset: u64,
    length: u64,
    in_cache: &mut Vec<u8>,
) -> Result<(), Errno> {
    let length = usize::try_from(length).map_err(|_| Errno::OVERFLOW)?;
    in_cache.clear();
    in_cache.resize(length.div_ceil(rustix::param::page_size()), 0);
    // SAFETY: the kernel chooses addresses that nothing uses; nothing reads or writes the mapping, so a file that is cut
    // meanwhile does no harm.
    let mapped = unsafe {
        rustix::mm::mmap(null_mut(), length, ProtFlags::READ, MapFlags::SHARED, file, offset)
    }?;
    // SAFETY: the range is the mapping above. `in_cache` has a byte for each page of this kernel in `length`: it was
    // resized to that above, and the kernel writes no more.
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
        assert_eq!(by_mincore(file.as_fd(), page, long()).unwrap().cached, written);
        assert_eq!(of(file.as_fd(), page, long()).unwrap().cached, written);
    }

    #[test]
    fn an_empty_file_has_no_pages_and_time_that_is_over_ends_the_count() {
        let file = tempfile::tempfile().unwrap();
        let page = PageSize::USUAL;
        assert_eq!(by_mincore(file.as_fd(), page, long()).unwrap().cached, Bytes::ZERO);
        file.set_len(1 << 20).unwrap();
        let over = SearchTime::starts(Duration::ZERO);
        let cut = of(file.as_fd(), page, over).unwrap();
        assert_eq!((cut.cached, cut.is_cut), (Bytes::ZERO, true));
    }
}
