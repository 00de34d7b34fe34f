//! A path below another root directory, as a process with that root follows it: links lead to places below it, and so does `..`.
//!
//! As `openat2(2)` does with `RESOLVE_IN_ROOT`, also where there is none: before Linux 5.6, and in a service with
//! `RestrictSUIDSGID=`. Each name is looked up in the directory that was found before, so nothing leads out meanwhile.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{CWD, FileType};
use rustix::io::Errno;

use crate::{LastLink, look_up};

/// A file that was looked up below a root directory.
#[derive(Debug)]
pub struct RootedFile {
    /// The file, not opened.
    pub found: OwnedFd,
    /// Its path without links, as a process with that root names it.
    pub path: PathBuf,
}

/// Links on one path: the kernel's own limit.
const LINKS_MAX: usize = 40;
/// Names on one path, with those of its links.
const NAMES_MAX: usize = 1024;

/// Looks a file up below a root directory; a relative path begins there too.
///
/// # Errors
/// The kernel's; `LOOP` for too many links.
pub fn look_up_rooted(root: &Path, path: &Path) -> Result<RootedFile, Errno> {
    let top = || look_up(CWD, root, LastLink::Followed);
    let mut waiting: VecDeque<OsString> = names_of(path).collect();
    let mut way: Vec<(OwnedFd, OsString)> = Vec::new();
    let mut links = 0;
    for _ in 0..NAMES_MAX {
        let Some(name) = waiting.pop_front() else {
            let path = way.iter().map(|(_, name)| name);
            let path = Path::new("/").join(path.collect::<PathBuf>());
            let found = way.pop().map_or_else(top, |(found, _)| Ok(found))?;
            return Ok(RootedFile { found, path });
        };
        if name == "/" {
            way.clear();
        } else if name == ".." {
            way.pop();
        } else {
            let found = match way.last() {
                Some((directory, _)) => look_up(directory, &name, LastLink::Kept)?,
                None => look_up(top()?, &name, LastLink::Kept)?,
            };
            let mode = rustix::fs::fstat(&found)?.st_mode;
            if FileType::from_raw_mode(mode) == FileType::Symlink {
                links += 1;
                let to = rustix::fs::readlinkat(&found, c"", Vec::new())?.into_bytes();
                let names: Vec<OsString> = names_of(Path::new(OsStr::from_bytes(&to))).collect();
                names.into_iter().rev().for_each(|name| waiting.push_front(name));
            } else {
                way.push((found, name));
            }
        }
        if links > LINKS_MAX {
            return Err(Errno::LOOP);
        }
    }
    Err(Errno::LOOP)
}

/// The names of a path; `/` in front is one.
fn names_of(path: &Path) -> impl Iterator<Item = OsString> {
    path.components()
        .filter(|part| *part != Component::CurDir)
        .map(|part| OsString::from_vec(part.as_os_str().as_bytes().to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    /// A root with links that lead up, to absolute places and around, and a file outside of it.
    fn place() -> tempfile::TempDir {
        let place = tempfile::tempdir().unwrap();
        let at = |path: &str| place.path().join(path);
        std::fs::create_dir_all(at("root/usr/lib")).unwrap();
        std::fs::write(at("root/usr/lib/libx.so.1.2"), "").unwrap();
        std::fs::write(at("outside"), "").unwrap();
        symlink("usr/lib", at("root/lib")).unwrap();
        symlink("/lib/libx.so.1.2", at("root/usr/lib/libx.so.1")).unwrap();
        symlink("../../../../outside", at("root/usr/out")).unwrap();
        symlink(at("outside"), at("root/usr/absolute")).unwrap();
        symlink("around", at("root/around")).unwrap();
        place
    }

    fn path_of(place: &tempfile::TempDir, path: &str) -> Result<PathBuf, Errno> {
        look_up_rooted(&place.path().join("root"), Path::new(path)).map(|file| file.path)
    }

    #[test]
    fn links_lead_to_places_below_the_root() {
        let place = place();
        for path in ["/lib/libx.so.1", "lib/libx.so.1", "/usr/../../lib/./libx.so.1.2"] {
            assert_eq!(path_of(&place, path), Ok("/usr/lib/libx.so.1.2".into()), "{path}");
        }
        assert_eq!(path_of(&place, "/"), Ok("/".into()));
    }

    #[test]
    fn nothing_outside_is_found() {
        let place = place();
        for (path, expected) in [
            ("/usr/out", Errno::NOENT),
            ("/usr/absolute", Errno::NOENT),
            ("../outside", Errno::NOENT),
            ("/around", Errno::LOOP),
            ("/lib/libx.so.1/more", Errno::NOTDIR),
        ] {
            assert_eq!(path_of(&place, path), Err(expected), "{path}");
        }
        assert_eq!(path_of(&place, &"a/../".repeat(2000)), Err(Errno::NOENT));
    }
}
