//! Where is the library of a soname, below the root directory of a program that is to load it, and does it fit?
//!
//! The linker's cache is asked first, then the usual directories. `LD_LIBRARY_PATH`, and search paths that a program has of its
//! own, are not: a library that is preloaded by its soname is to be the system's. Cost: 0.2 ms.

use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use checked_open::{RootedFile, look_up_rooted, open_found};
use probe::Root;
use rustix::fs::FileType;

use crate::elf::{Bytewise as _, ElfImage, ElfMachine};
use crate::ld_cache::paths_in_cache;
use crate::provider_file::ProviderFile;

/// More of a cache is not read: one of 3,000 libraries has 250 KiB.
const CACHE_BYTES_MAX: usize = 16 << 20;

/// A library that a program of this root can load.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundLibrary {
    /// The file with its path below the root, without links, and what it is.
    pub file: ProviderFile,
    /// The C library that it was built for.
    pub c_library: CLibrary,
}

/// A C library.
#[allow(missing_docs)] // names say it
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CLibrary {
    Glibc,
    Musl,
    /// Another, or none that the file names.
    Unknown,
}

/// Why there is no library of a soname.
#[derive(Debug, thiserror::Error)]
#[error("no library {soname} for this program is installed")]
pub struct LibraryNotFound {
    /// What was asked for.
    pub soname: String,
    /// Files of that name that do not fit.
    pub unfit: Vec<UnfitLibrary>,
}

/// A file of the wanted name that does not fit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnfitLibrary {
    /// Its path below the root.
    pub path: PathBuf,
    /// Why, in words.
    pub why: String,
}

impl CLibrary {
    /// By the libraries that a file asks for.
    pub(crate) fn among(needed: &[Vec<u8>]) -> Self {
        let has = |is_it: fn(&[u8]) -> bool| needed.iter().any(|name| is_it(name));
        if has(|name| name == b"libc.so.6") {
            Self::Glibc
        } else if has(|name| name == b"libc.so" || name.starts_with(b"libc.musl-")) {
            Self::Musl
        } else {
            Self::Unknown
        }
    }
}

/// Finds the library of a soname, or at a path, for programs of this processor, below a root directory. A file system that does
/// not answer there is waited for.
///
/// # Errors
/// [`LibraryNotFound`] if there is none, or none that fits.
pub fn find_library(
    root: &Root,
    soname: &str,
    machine: ElfMachine,
) -> Result<FoundLibrary, LibraryNotFound> {
    let mut unfit: Vec<UnfitLibrary> = Vec::new();
    for path in candidates(root, soname) {
        let Ok(found) = look_up_rooted(&root.path("/"), &path) else {
            continue;
        };
        match fitting(&found, machine) {
            Ok(library) => return Ok(library),
            Err(why) if unfit.iter().all(|one| one.path != found.path) => {
                unfit.push(UnfitLibrary { path: found.path, why });
            }
            Err(_) => {}
        }
    }
    Err(LibraryNotFound { soname: soname.to_owned(), unfit })
}

/// The paths at which a library may be, in the linker's order.
fn candidates(root: &Root, soname: &str) -> Vec<PathBuf> {
    const DIRECTORIES: [&str; 9] = [
        "/lib/x86_64-linux-gnu",
        "/usr/lib/x86_64-linux-gnu",
        "/lib/aarch64-linux-gnu",
        "/usr/lib/aarch64-linux-gnu",
        "/lib64",
        "/usr/lib64",
        "/lib",
        "/usr/lib",
        "/usr/local/lib",
    ];
    if soname.contains('/') {
        return vec![soname.into()];
    }
    let cache = read_cache(root).unwrap_or_default();
    let cached = paths_in_cache(&cache, soname.as_bytes());
    let paths = cached.into_iter().map(|path| PathBuf::from(OsStr::from_bytes(path)));
    paths.chain(DIRECTORIES.map(|one| Path::new(one).join(soname))).collect()
}

fn read_cache(root: &Root) -> Option<Vec<u8>> {
    let found = look_up_rooted(&root.path("/"), Path::new("/etc/ld.so.cache")).ok()?;
    let file = open_regular_found(&found).ok()?;
    let size = usize::try_from(file.metadata().ok()?.len()).unwrap_or(usize::MAX);
    let mut cache = vec![0; size.min(CACHE_BYTES_MAX)];
    let got = file.read_at(0, &mut cache);
    cache.truncate(got);
    Some(cache)
}

/// Opens what was looked up if it is a regular file.
pub(crate) fn open_regular_found(found: &RootedFile) -> std::io::Result<File> {
    let mode = rustix::fs::fstat(&found.found)?.st_mode;
    if FileType::from_raw_mode(mode) != FileType::RegularFile {
        return Err(std::io::Error::other("it is not a regular file"));
    }
    open_found(OpenOptions::new().read(true), &found.found)
}

/// The library, if a program of this processor can load it.
fn fitting(found: &RootedFile, machine: ElfMachine) -> Result<FoundLibrary, String> {
    let file = open_regular_found(found).map_err(|error| error.to_string())?;
    let image = ElfImage::open(&file).ok_or("it is no ELF file of 64 bits, little-endian")?;
    if image.machine != machine {
        return Err(format!("it is for another processor ({:?})", image.machine));
    }
    let path = found.path.as_os_str().as_bytes();
    Ok(FoundLibrary {
        file: ProviderFile::read(&file, path, false, false),
        c_library: CLibrary::among(&image.needed()),
    })
}
