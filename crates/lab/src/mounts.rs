//! File systems and swap areas of the machine.

use std::ffi::CString;
use std::fs::File;
use std::os::unix::fs::FileExt as _;

use rustix::mount::{MountFlags, UnmountFlags, mount};
use units::Bytes;

/// Mounts a file system of the kernel's own at a place, which is made.
pub(crate) fn mount_at(kind: &str, place: &str, options: Option<&str>) -> Result<(), String> {
    let fails = |error: &dyn std::fmt::Display| format!("cannot mount {kind} at {place}: {error}");
    std::fs::create_dir_all(place).map_err(|error| fails(&error))?;
    let options = match options {
        Some(options) => Some(CString::new(options).map_err(|error| fails(&error))?),
        None => None,
    };
    mount(kind, place, kind, MountFlags::empty(), options.as_deref()).map_err(|error| fails(&error))
}

pub(crate) fn mount_disk(disk: &str, place: &str) -> Result<(), String> {
    let fails = |error: &dyn std::fmt::Display| format!("cannot mount {disk} at {place}: {error}");
    std::fs::create_dir_all(place).map_err(|error| fails(&error))?;
    mount(disk, place, "ext4", MountFlags::NOATIME, None).map_err(|error| fails(&error))
}

pub(crate) fn unmount(place: &str) -> Result<(), String> {
    rustix::mount::unmount(place, UnmountFlags::empty())
        .map_err(|error| format!("cannot unmount {place}: {error}"))
}

/// Makes a disk a swap area, as mkswap does (include/linux/swap.h, `union swap_header`), and uses it.
pub(crate) fn swap_on(disk: &str) -> Result<(), String> {
    let fails = |error: &dyn std::fmt::Display| format!("cannot swap to {disk}: {error}");
    let file = File::options().read(true).write(true).open(disk).map_err(|error| fails(&error))?;
    let page = rustix::param::page_size();
    let size = size_of_disk(disk).map_err(|error| fails(&error))?;
    let mut header = vec![0_u8; page];
    let last_page = u32::try_from(size / page as u64 - 1).unwrap_or(u32::MAX);
    for (at, value) in [(1024, 1), (1028, last_page)] {
        header[at..at + 4].copy_from_slice(&value.to_ne_bytes());
    }
    header[page - 10..].copy_from_slice(b"SWAPSPACE2");
    file.write_all_at(&header, 0).map_err(|error| fails(&error))?;
    file.sync_all().map_err(|error| fails(&error))?;
    crate::sys::swap_on(disk).map_err(|error| fails(&error))
}

/// Makes a zram device for so much data a swap area, and uses it.
pub(crate) fn swap_on_zram(size: Bytes) -> Result<(), String> {
    const SIZE: &str = "/sys/block/zram0/disksize";
    std::fs::write(SIZE, size.get().to_string())
        .map_err(|error| format!("cannot write {} to {SIZE}: {error}", size.get()))?;
    swap_on("/dev/zram0")
}

/// The size of a block device in bytes.
fn size_of_disk(disk: &str) -> std::io::Result<u64> {
    let name = disk.trim_start_matches("/dev/");
    let sectors = std::fs::read_to_string(format!("/sys/class/block/{name}/size"))?;
    let sectors: u64 = sectors.trim().parse().map_err(std::io::Error::other)?;
    Ok(sectors * 512)
}
