//! What the kernel knows of a file. No file system is asked for fresh attributes: some might never answer.

use std::os::fd::{AsFd, AsRawFd as _, OwnedFd};

use rustix::fs::{AtFlags, FileType, StatxFlags};
use rustix::io::Errno;
use units::Bytes;

use crate::fdinfo;
use crate::kernel_file::Root;
use crate::mounts::{DeviceNumbers, device_numbers};

/// What a file is, and where.
#[derive(Debug)]
pub(crate) struct FileStat {
    pub(crate) device: DeviceNumbers,
    pub(crate) inode: u64,
    pub(crate) kind: FileType,
    /// Its blocks: of a file in a tmpfs, what it has in RAM or swap.
    pub(crate) bytes: Bytes,
    /// The id of the mount it was reached by; `None` before 5.8.
    pub(crate) mount: Option<u64>,
}

/// Returns the id of the mount by which a file was reached; before 5.8 by `/proc/self/fdinfo`. No file system is asked.
pub(crate) fn mount_of(found: &OwnedFd) -> Option<u64> {
    let flags = AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC;
    match rustix::fs::statx(found, c"", flags, StatxFlags::MNT_ID) {
        Ok(stat) if stat.stx_mask & StatxFlags::MNT_ID.bits() != 0 => Some(stat.stx_mnt_id),
        _ => {
            let path = format!("/proc/self/fdinfo/{}", found.as_raw_fd());
            let text = Root::default().read(&path).ok()?;
            fdinfo::field(&text, "mnt_id")?.parse().ok()
        }
    }
}

/// Size of a block of `stat`, whatever the file system.
const BLOCK_BYTES: u64 = 512;

/// Asks about a path below a directory, or with `EMPTY_PATH` about an open file.
pub(crate) fn stat(
    directory: impl AsFd,
    path: impl rustix::path::Arg + Copy,
    flags: AtFlags,
) -> Result<FileStat, Errno> {
    let fields = StatxFlags::TYPE | StatxFlags::INO | StatxFlags::BLOCKS | StatxFlags::MNT_ID;
    let size = |blocks: u64| Bytes::new(blocks.saturating_mul(BLOCK_BYTES));
    let in_cache = flags | AtFlags::STATX_DONT_SYNC;
    match rustix::fs::statx(&directory, path, in_cache, fields) {
        Ok(stat) => {
            let has_mount = stat.stx_mask & StatxFlags::MNT_ID.bits() != 0;
            Ok(FileStat {
                device: (stat.stx_dev_major, stat.stx_dev_minor),
                inode: stat.stx_ino,
                kind: FileType::from_raw_mode(stat.stx_mode.into()),
                bytes: size(stat.stx_blocks),
                mount: has_mount.then_some(stat.stx_mnt_id),
            })
        }
        // Before 4.11.
        Err(Errno::NOSYS) => {
            let stat = rustix::fs::statat(&directory, path, flags)?;
            Ok(FileStat {
                device: device_numbers(stat.st_dev),
                inode: stat.st_ino,
                kind: FileType::from_raw_mode(stat.st_mode),
                bytes: size(u64::try_from(stat.st_blocks).unwrap_or_default()),
                mount: None,
            })
        }
        Err(errno) => Err(errno),
    }
}
