//! The file system that a lab's kernel starts from: this program, the shared libraries that it maps, modules, and the job.
//!
//! The `newc` form of cpio, unpacked by the kernel (Documentation/driver-api/early-userspace/buffer-format.rst).

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::LabError;
use crate::error::AtPath as _;

/// A cpio archive in memory.
#[derive(Debug, Default)]
pub(crate) struct Archive {
    bytes: Vec<u8>,
    entries: u32,
    directories: BTreeSet<PathBuf>,
}

const DIRECTORY: u32 = 0o040_755;
const PROGRAM: u32 = 0o100_755;

impl Archive {
    /// An archive with this program as init, and what it needs to start.
    ///
    /// # Errors
    /// [`LabError::File`] where one of its files cannot be read.
    pub(crate) fn of_this_program() -> Result<Self, LabError> {
        let mut archive = Self::default();
        for place in ["/proc", "/sys", "/dev", "/tmp", "/disk"] {
            archive.directory(Path::new(place));
        }
        let program = Path::new("/proc/self/exe");
        let program = std::fs::read(program).at(program)?;
        archive.file(Path::new("/init"), loadable(&program));
        if let Some(linker) = interpreter(&program) {
            archive.copy(&linker)?;
        }
        for library in own_libraries()? {
            archive.copy(&library)?;
        }
        Ok(archive)
    }

    /// Adds a directory and those above it.
    pub(crate) fn directory(&mut self, path: &Path) {
        for path in path.ancestors().collect::<Vec<_>>().into_iter().rev() {
            let is_named = path.file_name().is_some();
            if is_named && self.directories.insert(path.to_owned()) {
                self.entry(path, DIRECTORY, &[]);
            }
        }
    }

    /// Adds a file that may be run, and its directory.
    pub(crate) fn file(&mut self, path: &Path, contents: &[u8]) {
        if let Some(directory) = path.parent() {
            self.directory(directory);
        }
        self.entry(path, PROGRAM, contents);
    }

    /// Adds a file of this host, at the same path.
    pub(crate) fn copy(&mut self, path: &Path) -> Result<(), LabError> {
        self.file(path, &std::fs::read(path).at(path)?);
        Ok(())
    }

    /// The whole archive.
    pub(crate) fn finish(mut self) -> Vec<u8> {
        self.entry(Path::new("TRAILER!!!"), 0, &[]);
        self.bytes
    }

    fn entry(&mut self, path: &Path, mode: u32, contents: &[u8]) {
        let path = path.strip_prefix("/").unwrap_or(path);
        let name = path.as_os_str().as_encoded_bytes();
        self.entries += 1;
        let size = u32::try_from(contents.len()).unwrap_or(u32::MAX);
        let name_size = u32::try_from(name.len() + 1).unwrap_or(u32::MAX);
        let fields = [self.entries, mode, 0, 0, 1, 0, size, 0, 0, 0, 0, name_size, 0];
        self.bytes.extend_from_slice(b"070701");
        for field in fields {
            self.bytes.extend_from_slice(format!("{field:08x}").as_bytes());
        }
        self.bytes.extend_from_slice(name);
        self.bytes.push(0);
        self.pad();
        self.bytes.extend_from_slice(contents);
        self.pad();
    }

    fn pad(&mut self) {
        let padded = self.bytes.len().next_multiple_of(4);
        self.bytes.resize(padded, 0);
    }
}

/// A segment of an ELF program.
struct ProgramHeader {
    kind: u64,
    offset: usize,
    len: usize,
}

/// The program headers of a 64-bit little-endian ELF file (include/uapi/linux/elf.h); none of anything else.
fn program_headers(program: &[u8]) -> impl Iterator<Item = ProgramHeader> {
    let number = move |at: usize, len: usize| {
        let bytes = program.get(at..at.checked_add(len)?)?;
        let number = bytes.iter().rev().fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
        usize::try_from(number).ok()
    };
    let is_elf = program.starts_with(b"\x7fELF\x02\x01");
    let count = if is_elf { number(56, 2).unwrap_or_default() } else { 0 };
    (0..count).filter_map(move |header| {
        let at = number(32, 8)?.checked_add(header.checked_mul(number(54, 2)?)?)?;
        Some(ProgramHeader {
            kind: number(at, 4)? as u64,
            offset: number(at + 8, 8)?,
            len: number(at + 32, 8)?,
        })
    })
}

/// The dynamic linker that a program names: its segment `PT_INTERP`. The kernel opens that path, which is often a link;
/// `None` for a static program.
pub(crate) fn interpreter(program: &[u8]) -> Option<PathBuf> {
    const PT_INTERP: u64 = 3;
    let header = program_headers(program).find(|header| header.kind == PT_INTERP)?;
    let path = program.get(header.offset..header.offset.checked_add(header.len)?)?;
    let path = path.strip_suffix(b"\0").unwrap_or(path);
    Some(PathBuf::from(std::str::from_utf8(path).ok()?))
}

/// A program without what is never loaded: sections of debug information lie behind its segments.
fn loadable(program: &[u8]) -> &[u8] {
    const PT_LOAD: u64 = 1;
    let ends = program_headers(program).filter(|header| header.kind == PT_LOAD);
    let end = ends.map(|header| header.offset.saturating_add(header.len)).max();
    end.and_then(|end| program.get(..end)).unwrap_or(program)
}

/// The shared libraries that this process maps, its dynamic linker included: what the program needs to start elsewhere.
///
/// # Errors
/// Where `/proc/self/maps` cannot be read.
fn own_libraries() -> Result<Vec<PathBuf>, LabError> {
    let maps = Path::new("/proc/self/maps");
    let maps = std::fs::read_to_string(maps).at(maps)?;
    let libraries: BTreeSet<PathBuf> = maps
        .lines()
        .filter_map(|line| line.find('/').and_then(|at| line.get(at..)))
        .filter(|path| path.ends_with(".so") || path.contains(".so."))
        .map(|path| path.trim_end_matches(" (deleted)"))
        .map(PathBuf::from)
        .collect();
    Ok(libraries.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_archive_lists_directories_before_files_and_ends_with_a_trailer() {
        let mut archive = Archive::default();
        archive.file(Path::new("/lib/x86/libc.so"), b"abcde");
        archive.file(Path::new("/lib/x86/ld.so"), b"");
        let bytes = archive.finish();
        assert_eq!(bytes.len() % 4, 0);
        let text = String::from_utf8_lossy(&bytes);
        let places: Vec<usize> =
            ["lib\0", "lib/x86\0", "lib/x86/libc.so\0", "lib/x86/ld.so\0", "TRAILER!!!\0"]
                .iter()
                .map(|name| text.find(name).unwrap())
                .collect();
        assert!(places.is_sorted(), "{places:?}");
        assert_eq!(text.matches("070701").count(), 5);
    }

    #[test]
    fn this_program_names_a_linker_that_is_there() {
        let program = std::fs::read("/proc/self/exe").unwrap();
        assert!(interpreter(&program).unwrap().exists());
        assert_eq!(interpreter(b"#!/bin/sh"), None);
        assert_eq!(interpreter(&program[..60]), None);
        assert_eq!(interpreter(loadable(&program)), interpreter(&program));
        assert!(loadable(&program).len() < program.len());
    }

    #[test]
    fn this_program_maps_a_libc() {
        let libraries = own_libraries().unwrap();
        assert!(
            libraries.iter().any(|path| path.to_string_lossy().contains("libc")),
            "{libraries:?}"
        );
    }
}
