//! The memory of another process, read while it runs: `process_vm_readv`, or `/proc/PID/mem` where that is refused.
//!
//! The target does not stop. Its mmap lock is taken for reading, a batch of pages at a time; a page that is read counts
//! as accessed. Needs the right to attach to it (`PTRACE_MODE_ATTACH`): same user and Yama's `ptrace_scope` 0, or
//! CAP_SYS_PTRACE. Cost: 0.17 s for a GiB in blocks of 64 KiB or more.

use std::fs::File;
use std::mem::MaybeUninit;
use std::ops::Range;

use rustix::io::{Errno, pread};

use crate::error::ReadError;
use crate::kernel_file::{Root, open, retrying};

/// The readable memory of a process.
#[derive(Debug)]
pub struct ProcessMemory {
    pid: u32,
    /// Open where `process_vm_readv` is refused: a seccomp profile of a container may permit only this.
    file: Option<File>,
}

/// `UIO_MAXIOV`: the most parts that one call takes.
const PARTS_MAX: usize = 1024;

impl ProcessMemory {
    /// Opens the memory of a process, and reads `probe`, an address in it, to learn whether that is permitted.
    ///
    /// # Errors
    /// [`ReadError`] if this user may not read it.
    pub fn open(root: &Root, pid: u32, probe: u64) -> Result<Self, ReadError> {
        let memory = Self { pid, file: None };
        let mut byte = [0];
        match memory.read_at(probe, &mut byte) {
            Ok(_) | Err(Errno::FAULT | Errno::IO) => return Ok(memory),
            Err(_) => {}
        }
        let path = root.path(&format!("/proc/{pid}/mem"));
        Ok(Self {
            pid,
            file: Some(open(&path)?),
        })
    }

    /// Reads from an address until `buffer` is full or unreadable memory begins. Returns the number of bytes read.
    ///
    /// # Errors
    /// The kernel's reason if nothing could be read.
    pub fn read_at(&self, address: u64, buffer: &mut [u8]) -> Result<usize, Errno> {
        let length = buffer.len() as u64;
        let whole = address..address.saturating_add(length);
        self.read_parts(std::slice::from_ref(&whole), buffer)
    }

    /// Reads ranges one after another into `buffer`, which is as long as they are together; at most 1024 ranges at
    /// once, more are left unread. Stops at the first byte that cannot be read. Returns the number of bytes read.
    ///
    /// # Errors
    /// The kernel's reason if nothing could be read.
    pub fn read_parts(&self, parts: &[Range<u64>], buffer: &mut [u8]) -> Result<usize, Errno> {
        match &self.file {
            Some(file) => read_file(file, parts, buffer),
            None => read_vm(self.pid, &parts[..parts.len().min(PARTS_MAX)], buffer),
        }
    }
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
        let (Ok(base), Ok(length)) = (
            usize::try_from(part.start),
            usize::try_from(part.end.saturating_sub(part.start)),
        ) else {
            return Err(Errno::FAULT);
        };
        to.write(libc::iovec {
            iov_base: std::ptr::without_provenance_mut(base),
            iov_len: length,
        });
    }
    let local = libc::iovec {
        iov_base: buffer.as_mut_ptr().cast(),
        iov_len: buffer.len(),
    };
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

    #[test]
    fn own_memory_is_read_by_both_ways_the_same() {
        let text: Vec<u8> = (0..=255).cycle().take(100_000).collect();
        let start = text.as_ptr() as u64;
        let parts = [start + 7..start + 50, start + 90_000..start + 91_000];
        let root = Root::default();
        let pid = std::process::id();
        let direct = ProcessMemory::open(&root, pid, start).unwrap();
        let path = format!("/proc/{pid}/mem");
        let by_file = ProcessMemory {
            pid,
            file: Some(File::open(path).unwrap()),
        };
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
        let error = ProcessMemory::open(&Root::default(), 0x3fff_ffff, 4096).unwrap_err();
        assert_eq!(error.absence(), timeline::Absence::NotFound);
    }
}
