//! System calls that no library wraps safely.
#![allow(unsafe_code)]

use std::ffi::CString;

use rustix::mm::{MapFlags, ProtFlags};

/// Uses a swap area.
///
/// # Errors
/// The operating system's.
pub(crate) fn swap_on(disk: &str) -> std::io::Result<()> {
    let path = CString::new(disk)?;
    // SAFETY: the path is a string that ends with zero and lives until the call returns; the call keeps no pointer.
    match unsafe { libc::swapon(path.as_ptr(), 0) } {
        0 => Ok(()),
        _ => Err(std::io::Error::last_os_error()),
    }
}

/// Memory that processes share, or pages of a file.
#[derive(Debug)]
pub(crate) struct MappedPages {
    start: *mut u8,
    len: usize,
}

// SAFETY: it owns its pages; nothing about them belongs to a thread.
unsafe impl Send for MappedPages {}

impl MappedPages {
    /// Zeroed memory that children share: shmem for the kernel.
    ///
    /// # Errors
    /// The operating system's.
    pub(crate) fn shared(len: usize) -> std::io::Result<Self> {
        // SAFETY: a new mapping at an address that the kernel chooses overlaps nothing.
        let start = unsafe {
            rustix::mm::mmap_anonymous(
                std::ptr::null_mut(),
                len,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::SHARED,
            )
        }?;
        Ok(Self {
            start: start.cast(),
            len,
        })
    }

    /// The first bytes of a file, to read.
    ///
    /// # Errors
    /// The operating system's.
    pub(crate) fn of_file(file: &std::fs::File, len: usize) -> std::io::Result<Self> {
        // SAFETY: as above; pages that the file loses meanwhile end this process, which is a workload's own.
        let start = unsafe {
            rustix::mm::mmap(
                std::ptr::null_mut(),
                len,
                ProtFlags::READ,
                MapFlags::SHARED,
                file,
                0,
            )
        }?;
        Ok(Self {
            start: start.cast(),
            len,
        })
    }

    /// Reads a byte: the page is there afterwards.
    pub(crate) fn read(&self, at: usize) -> u8 {
        assert!(at < self.len, "outside the mapping");
        // SAFETY: within the mapping, which lives as long as this.
        unsafe { self.start.add(at).read_volatile() }
    }

    /// Writes a byte; the mapping must be writable.
    pub(crate) fn write(&mut self, at: usize, byte: u8) {
        assert!(at < self.len, "outside the mapping");
        // SAFETY: within the mapping, which nothing else borrows.
        unsafe { self.start.add(at).write_volatile(byte) }
    }
}

impl Drop for MappedPages {
    fn drop(&mut self) {
        // SAFETY: the mapping is this one's, and nothing refers to it any more.
        let _ = unsafe { rustix::mm::munmap(self.start.cast(), self.len) };
    }
}
