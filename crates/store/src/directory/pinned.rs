//! The directory that is written, open from start to end: whatever takes its place in the file system, nothing outside
//! it is created or changed.
//!
//! It is found component by component, so a symbolic link can be refused by its owner without a race, on every kernel and
//! below every filter of system calls. Its files are reached through `/proc/self/fd`, which leads into the open directory
//! whatever its name has become; inside, only this user and root can put links in the way.

use std::ffi::{OsStr, OsString};
use std::fs::{self, Metadata, Permissions};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use crate::StoreError;
use crate::directory::identity::user;
use crate::files::{self, OWNER};

/// An open directory that only this user and root can write to.
#[derive(Debug, Clone)]
pub struct PinnedDirectory {
    descriptor: Arc<OwnedFd>,
    /// Where it was found, without symbolic links; for messages, and to find one that is made again.
    name: PathBuf,
    /// The way to it that no other program can change, valid in this process while it is open.
    inside: PathBuf,
    exposed: Option<String>,
}

impl PinnedDirectory {
    /// Opens a directory; one that is absent is created for its owner only, and those above it as the umask says.
    ///
    /// # Errors
    /// [`StoreError::Io`]; [`StoreError::NotTrusted`] if another user can write to it, or made a symbolic link that leads
    /// to it.
    pub fn make(path: &Path) -> Result<Self, StoreError> {
        let walk = PathWalk { creates: true, follows: true, ..PathWalk::default() };
        Self::open(path, walk)
    }

    /// Opens the directory that is now where this one was found. No symbolic link is followed: there was none.
    pub(crate) fn open_again(&self) -> Result<Self, StoreError> {
        Self::open(&self.name, PathWalk::default())
    }

    fn open(path: &Path, mut walk: PathWalk) -> Result<Self, StoreError> {
        let failed = |error: io::Error| StoreError::io("open", path, error);
        let whole = std::path::absolute(path).map_err(failed)?;
        let descriptor = walk.to(&whole).map_err(|error| match error {
            Refusal::Io(error) => failed(error),
            Refusal::NotTrusted(why) => StoreError::NotTrusted { path: path.to_owned(), why },
        })?;
        let inside = PathBuf::from(format!("/proc/self/fd/{}", descriptor.as_raw_fd()));
        let pinned = Self {
            descriptor: Arc::new(descriptor),
            name: walk.name,
            inside,
            exposed: walk.exposed,
        };
        if walk.has_created {
            // Whatever the umask.
            fs::set_permissions(&pinned.inside, Permissions::from_mode(OWNER)).map_err(failed)?;
        }
        pinned.is_ours()?;
        Ok(pinned)
    }

    /// Returns the way to it, for opening its files in this process while this value lives.
    pub fn path(&self) -> &Path {
        &self.inside
    }

    /// Returns the path where it was found, for messages.
    pub(crate) fn name(&self) -> &Path {
        &self.name
    }

    /// Returns who else can rename or remove it, in words; the samples written until then are safe.
    pub(crate) fn exposed(&self) -> Option<&str> {
        self.exposed.as_deref()
    }

    /// Whether it exists, under any name. A removed directory has no link left; on a network file system it is stale.
    pub(crate) fn is_there(&self) -> bool {
        rustix::fs::fstat(&self.descriptor).is_ok_and(|stat| stat.st_nlink > 0)
    }

    /// Returns its path if it is no longer where it was found.
    pub(crate) fn moved_to(&self) -> Option<PathBuf> {
        let ours = rustix::fs::fstat(&self.descriptor).ok()?;
        match rustix::fs::lstat(&self.name) {
            Ok(found) if is_same(&found, &ours) => None,
            Err(error) if error != Errno::NOENT && error != Errno::NOTDIR => None,
            _ => fs::read_link(&self.inside).ok(),
        }
    }

    /// Replaces the way inside by the name, in an error.
    pub(crate) fn named(&self, mut error: StoreError) -> StoreError {
        if let Some(path) = error.path_mut()
            && let Ok(rest) = path.strip_prefix(&self.inside)
        {
            // Without a slash at its end.
            *path = self.name.join(rest).components().collect();
        }
        error
    }

    /// As [`Self::named`], in a text.
    pub(crate) fn in_words(&self, text: &str) -> String {
        let inside = format!("{}/", self.inside.display());
        text.replace(&inside, &format!("{}/", self.name.display()))
    }

    /// Refuses a directory that another user can write to, who could lead what is written elsewhere by a symbolic link.
    /// The user's own group is no other user: with a umask of 002 it may write to everything.
    fn is_ours(&self) -> Result<(), StoreError> {
        let failed = |error: io::Error| StoreError::io("open", &self.name, error);
        let found = fs::metadata(&self.inside).map_err(failed)?;
        let refused = |why: String| StoreError::NotTrusted { path: self.name.clone(), why };
        if let Some(writers) = other_writers(&found) {
            return Err(refused(format!("{writers} can write to it")));
        }
        let is_squashed =
            || files::owner_of_new(&self.inside).is_ok_and(|ours| ours == found.uid());
        if is_trusted(found.uid()) || is_squashed() {
            return Ok(());
        }
        Err(refused(format!("it belongs to {}", user(found.uid()))))
    }
}

/// Creates the directory of a recording for its owner only, and the directories above it as the umask says. One that
/// exists stays as it is.
///
/// # Errors
/// As [`PinnedDirectory::make`].
pub fn ensure_recording(path: &Path) -> Result<(), StoreError> {
    PinnedDirectory::make(path).map(drop)
}

/// Whether nothing is lost by trusting this user: root, or the one who runs this program.
fn is_trusted(uid: u32) -> bool {
    uid == 0 || uid == rustix::process::geteuid().as_raw()
}

/// Returns who can write to a directory besides its owner, in words.
fn other_writers(found: &Metadata) -> Option<String> {
    let is_open = |bits: u32| found.mode() & bits == bits;
    if is_open(0o002) {
        return Some("everybody".to_owned());
    }
    let is_own_group = found.gid() == 0 || found.gid() == found.uid();
    (is_open(0o020) && !is_own_group).then(|| format!("the group of ID {}", found.gid()))
}

fn is_same(one: &Stat, other: &Stat) -> bool {
    (one.st_dev, one.st_ino) == (other.st_dev, other.st_ino)
}

/// Why a directory is not opened.
enum Refusal {
    Io(io::Error),
    NotTrusted(String),
}

impl From<Errno> for Refusal {
    fn from(error: Errno) -> Self {
        Self::Io(error.into())
    }
}

/// The way from the root directory to a directory.
#[derive(Debug, Default)]
struct PathWalk {
    /// Whether absent directories are created.
    creates: bool,
    /// Whether symbolic links of root and of this user are followed.
    follows: bool,
    name: PathBuf,
    /// Names that follow, the next one last.
    rest: Vec<OsString>,
    /// Symbolic links followed and directories created so far.
    turns: usize,
    /// Whether the last directory was created.
    has_created: bool,
    exposed: Option<String>,
}

impl PathWalk {
    /// The kernel's limit of symbolic links (`MAXSYMLINKS`), and as many directories.
    const TURNS_MAX: usize = 40;

    fn to(&mut self, whole: &Path) -> Result<OwnedFd, Refusal> {
        self.append(whole);
        let mut at = self.root()?;
        while let Some(next) = self.rest.pop() {
            at = self.step(at, next)?;
        }
        Ok(at)
    }

    fn root(&mut self) -> Result<OwnedFd, Refusal> {
        self.name = PathBuf::from("/");
        Ok(rustix::fs::open("/", Self::ENTRY, Mode::empty())?)
    }

    const LINK: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
    /// With `DIRECTORY`, automounted directories are mounted.
    const ENTRY: OFlags = Self::LINK.union(OFlags::DIRECTORY);

    /// Adds the names of a path before those that follow.
    fn append(&mut self, path: &Path) {
        let names = path.components().rev().filter_map(|part| match part {
            Component::Normal(name) => Some(name.to_owned()),
            Component::ParentDir => Some(OsString::from("..")),
            _ => None,
        });
        self.rest.extend(names);
    }

    fn step(&mut self, at: OwnedFd, next: OsString) -> Result<OwnedFd, Refusal> {
        match rustix::fs::openat(&at, &next, Self::ENTRY, Mode::empty()) {
            Ok(entered) => {
                if next == ".." {
                    self.name.pop();
                } else {
                    self.note_exposed(&at);
                    self.name.push(&next);
                }
                Ok(entered)
            }
            Err(Errno::NOENT) if self.creates => {
                self.turn()?;
                self.create(&at, &next)?;
                self.rest.push(next);
                Ok(at)
            }
            Err(error @ (Errno::NOTDIR | Errno::LOOP)) => self.follow(at, &next, error),
            Err(error) => Err(error.into()),
        }
    }

    fn turn(&mut self) -> Result<(), Refusal> {
        self.turns += 1;
        if self.turns > Self::TURNS_MAX {
            return Err(Errno::LOOP.into());
        }
        Ok(())
    }

    fn create(&mut self, at: &OwnedFd, next: &OsStr) -> Result<(), Refusal> {
        let is_last = self.rest.is_empty();
        let mode = if is_last { OWNER } else { 0o777 };
        match rustix::fs::mkdirat(at, next, Mode::from_raw_mode(mode)) {
            Ok(()) => {
                self.has_created = is_last;
                Ok(())
            }
            Err(Errno::EXIST) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Follows a symbolic link that root or this user made.
    fn follow(&mut self, at: OwnedFd, next: &OsStr, error: Errno) -> Result<OwnedFd, Refusal> {
        let link = rustix::fs::openat(&at, next, Self::LINK, Mode::empty())?;
        let found = rustix::fs::statat(&link, "", AtFlags::EMPTY_PATH)?;
        if FileType::from_raw_mode(found.st_mode) != FileType::Symlink {
            return Err(error.into());
        }
        self.note_exposed(&at);
        let shown = self.name.join(next);
        if !self.follows {
            let why = format!("{} is a symbolic link now", shown.display());
            return Err(Refusal::NotTrusted(why));
        }
        if !is_trusted(found.st_uid) {
            return Err(Refusal::NotTrusted(format!(
                "{} is a symbolic link of {}",
                shown.display(),
                user(found.st_uid)
            )));
        }
        self.turn()?;
        let target = rustix::fs::readlinkat(&link, "", Vec::new())?;
        let target = PathBuf::from(OsString::from_vec(target.into_bytes()));
        self.append(&target);
        if target.is_absolute() {
            return self.root();
        }
        Ok(at)
    }

    /// Notes who can rename or remove a directory besides root and this user; in a directory with the sticky bit nobody
    /// else can.
    fn note_exposed(&mut self, at: &OwnedFd) {
        const STICKY: u32 = 0o1000;
        let place = format!("/proc/self/fd/{}", at.as_raw_fd());
        let Ok(found) = fs::metadata(place) else {
            return;
        };
        let who = if !is_trusted(found.uid()) {
            Some(user(found.uid()))
        } else if found.mode() & STICKY == 0 {
            other_writers(&found)
        } else {
            None
        };
        if let Some(who) = who {
            self.exposed.get_or_insert(format!("{who} can write to {}", self.name.display()));
        }
    }
}
