//! A path that is looked up name by name, so that no link on it is followed and every directory is seen before it is
//! searched.
//!
//! As `openat2(2)` does with `RESOLVE_BENEATH` and `RESOLVE_NO_SYMLINKS`, also where there is none: before Linux 5.6, and in a
//! service with `RestrictSUIDSGID=`, from which systemd takes it away. Cost: a few µs for each name.

use std::os::fd::OwnedFd;
use std::path::{Component, Path};

use checked_open::{LastLink, look_up};
use rustix::fs::{AtFlags, FileType};
use rustix::io::Errno;

use crate::file_stat;

/// Looks up a path below a directory without opening it; a `/` in front means that directory. `may_pass` is asked about each
/// thing on the way, and about the last.
///
/// # Errors
/// The kernel's; `LOOP` for a link, `XDEV` for `..` and for what may not be passed.
pub(crate) fn look_up_below(
    directory: OwnedFd,
    path: &Path,
    may_pass: impl Fn(&OwnedFd) -> bool,
) -> Result<OwnedFd, Errno> {
    let mut at = directory;
    for part in path.components() {
        let name = match part {
            Component::Normal(name) => name,
            Component::RootDir | Component::CurDir => continue,
            Component::ParentDir | Component::Prefix(_) => return Err(Errno::XDEV),
        };
        at = look_up(&at, name, LastLink::Kept)?;
        if !may_pass(&at) {
            return Err(Errno::XDEV);
        }
        if file_stat::stat(&at, c"", AtFlags::EMPTY_PATH)?.kind == FileType::Symlink {
            return Err(Errno::LOOP);
        }
    }
    Ok(at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::CWD;
    use std::cell::Cell;
    use std::fs;
    use std::os::unix::fs::symlink;

    /// A directory `top` with a file, links in and out, and a directory beside it.
    fn place() -> tempfile::TempDir {
        let place = tempfile::tempdir().unwrap();
        let at = |path: &str| place.path().join(path);
        fs::create_dir_all(at("top/a/b")).unwrap();
        fs::create_dir(at("beside")).unwrap();
        fs::write(at("top/a/b/file"), "").unwrap();
        fs::write(at("beside/file"), "").unwrap();
        symlink("file", at("top/a/b/last")).unwrap();
        symlink("a", at("top/inside")).unwrap();
        symlink("../beside", at("top/out")).unwrap();
        place
    }

    fn top(place: &tempfile::TempDir) -> OwnedFd {
        look_up(CWD, place.path().join("top"), LastLink::Kept).unwrap()
    }

    #[test]
    fn a_path_is_found_only_below_its_directory_and_without_links() {
        let place = place();
        for (path, expected) in [
            ("a/b/file", None),
            ("/a/b/file", None),
            ("./a//b", None),
            ("a/b/last", Some(Errno::LOOP)),
            ("inside/b/file", Some(Errno::LOOP)),
            ("out/file", Some(Errno::LOOP)),
            ("../beside/file", Some(Errno::XDEV)),
            ("a/../a/b/file", Some(Errno::XDEV)),
            ("a/none", Some(Errno::NOENT)),
            ("a/b/file/more", Some(Errno::NOTDIR)),
        ] {
            let found = look_up_below(top(&place), Path::new(path), |_| true);
            assert_eq!(found.err(), expected, "{path}");
        }
    }

    #[test]
    fn nothing_is_looked_up_in_a_directory_that_may_not_be_passed() {
        let place = place();
        let asked = Cell::new(0);
        let found = look_up_below(top(&place), Path::new("a/b/file"), |_| {
            asked.set(asked.get() + 1);
            asked.get() < 2
        });
        assert_eq!((found.err(), asked.get()), (Some(Errno::XDEV), 2));
    }
}
