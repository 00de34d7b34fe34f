//! `names.jsonl`: what people call the containers, pods and users of the cgroups in a recording, and the same in captures.
//!
//! A line for each name that is new or has changed: `{"wall", "kind", "id", "name", "namespace", "pod", "crc32"}`. It is a
//! file of its own: a name means the same at any time, and a memtide that does not know the file passes over it. The id is
//! the [unique name](timeline::cgroup::unique_name) of a cgroup. The newest [`NAMES_MAX`] names count, of one user the
//! newest [`OF_USER_MAX`]: a user who makes containers without end displaces no name of others.

use std::collections::{BTreeMap, HashSet};
use std::io::ErrorKind;
use std::path::Path;

use serde::{Deserialize, Serialize};
use timeline::cgroup::{ContainerNames, GroupName, GroupNames, NAME_LEN_MAX, PodNames};
use timeline::start_of;
use units::WallClock;

use crate::json_lines::{self, ChecksummedLine};
use crate::{PinnedDirectory, StoreError};

/// The file in a recording.
pub(crate) const FILE: &str = "names.jsonl";

/// At most this many names are kept: as many containers as are searched for on a host.
pub const NAMES_MAX: usize = 4_096;

/// The longest id: the path of a cgroup.
const ID_LEN_MAX: usize = 1_024;

/// At most this many of the containers of one user.
const OF_USER_MAX: usize = 256;
/// At most this many of the containers of all users.
const OF_USERS_MAX: usize = 1_024;

/// The most bytes read of a longer file: its end, as the newest names count.
const FILE_BYTES_MAX: u64 = 2 << 20;
/// A longer file is compacted.
const COMPACTED_FROM: u64 = 1 << 20;
/// Bytes that compaction keeps, newest first, beside [`USERS_BYTES_MAX`]. A line of a container has about 170.
const LEFT_BYTES_MAX: usize = 512 << 10;
/// The same of the containers of users.
const USERS_BYTES_MAX: usize = 256 << 10;

/// What has a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum NamedKind {
    Container,
    Pod,
    User,
    /// A kind of a later memtide.
    #[serde(other)]
    Other,
}

/// One name, as recordings and captures keep it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptName {
    kind: NamedKind,
    /// The unique name of the cgroup of a container or a pod, the UID of a user.
    id: String,
    /// Of a container its own name, of a pod the pod's.
    name: String,
    /// The namespace of the pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    namespace: Option<String>,
    /// The pod of a container.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pod: Option<String>,
}

/// A line of the file.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct NameLine {
    /// When it was read, in nanoseconds since 1970; `None` where the source has no wall clock.
    wall: Option<i64>,
    #[serde(flatten)]
    name: KeptName,
    /// The checksum of the text before this field, which is the last one.
    #[serde(skip_serializing)]
    crc32: u32,
}

impl ChecksummedLine for NameLine {
    fn crc32(&self) -> Option<u32> {
        Some(self.crc32)
    }
}

impl KeptName {
    /// Returns these names as they are kept, as far as there is [`NameRoom`].
    pub fn all(names: &GroupNames) -> Vec<Self> {
        let short = |text: &str| start_of(text, NAME_LEN_MAX).to_owned();
        let plain = |kind, id: &str, name: &str| Self {
            kind,
            id: start_of(id, ID_LEN_MAX).to_owned(),
            name: short(name),
            namespace: None,
            pod: None,
        };
        let containers = names.containers.iter().map(|(id, names)| Self {
            namespace: names.pod.as_ref().map(|pod| short(&pod.namespace)),
            pod: names.pod.as_ref().map(|pod| short(&pod.name)),
            ..plain(NamedKind::Container, id, &names.name)
        });
        let pods = names.pods.iter().map(|(uid, pod)| Self {
            namespace: Some(short(&pod.namespace)),
            ..plain(NamedKind::Pod, uid, &pod.name)
        });
        let user = |(uid, name): (&u32, &String)| plain(NamedKind::User, &uid.to_string(), name);
        let all = containers.chain(pods).chain(names.users.iter().map(user));
        let mut room = NameRoom::default();
        all.filter(|name| room.admits(name.owner())).collect()
    }

    /// The user with the slice in which the container or pod is.
    fn owner(&self) -> Option<u32> {
        let is_group = matches!(self.kind, NamedKind::Container | NamedKind::Pod);
        let name = GroupName::of(&self.id);
        name.user.filter(|_| is_group).map(|user| user.what)
    }

    /// As [`all`](Self::all), without users: a capture is given to others, who need no login names.
    pub fn of_a_capture(names: &GroupNames) -> Vec<Self> {
        Self::all(&GroupNames { users: BTreeMap::new(), ..names.clone() })
    }

    /// Adds the name to others; the later of two of one id counts. What finds no room is left out.
    pub fn add_to(self, names: &mut GroupNames, room: &mut NameRoom) {
        let owner = self.owner();
        let mut one = GroupNames::default();
        let short = |text: String| start_of(&text, NAME_LEN_MAX).to_owned();
        let id = start_of(&self.id, ID_LEN_MAX).to_owned();
        let name = short(self.name);
        let namespace = self.namespace.map(short);
        match self.kind {
            NamedKind::Container => {
                let named = |(namespace, name)| PodNames { namespace, name };
                let pod = namespace.zip(self.pod.map(short)).map(named);
                one.containers.insert(id, ContainerNames { name, pod });
            }
            NamedKind::Pod => {
                let namespace = namespace.unwrap_or_default();
                one.pods.insert(id, PodNames { namespace, name });
            }
            NamedKind::User => {
                one.users.extend(id.parse().ok().map(|uid: u32| (uid, name)));
            }
            NamedKind::Other => {}
        }
        if one.is_known_to(names) || room.admits(owner) {
            names.containers.append(&mut one.containers);
            names.pods.append(&mut one.pods);
            names.users.append(&mut one.users);
        }
    }
}

/// How many names there may still be, of each user and in all.
#[derive(Debug, Default)]
pub struct NameRoom {
    of_host: usize,
    of_users: usize,
    of_user: BTreeMap<u32, usize>,
}

impl NameRoom {
    /// Counts a new name of this user, or of the host, if there is room for it.
    fn admits(&mut self, owner: Option<u32>) -> bool {
        let Some(user) = owner else {
            let has_room = self.of_host + self.of_users < NAMES_MAX;
            self.of_host += usize::from(has_room);
            return has_room;
        };
        let of_user = self.of_user.entry(user).or_default();
        let in_all = self.of_host + self.of_users;
        let has_room = *of_user < OF_USER_MAX && self.of_users < OF_USERS_MAX && in_all < NAMES_MAX;
        *of_user += usize::from(has_room);
        self.of_users += usize::from(has_room);
        has_room
    }
}

/// The names in a recording, for what adds to them.
#[derive(Debug, Default)]
pub struct NameBook {
    written: GroupNames,
    /// Names that a disk refused.
    waiting: GroupNames,
}

impl NameBook {
    /// Reads the names that a recording has.
    pub fn open(directory: &PinnedDirectory) -> Self {
        Self::at(directory.path())
    }

    pub(crate) fn at(directory: &Path) -> Self {
        Self { written: read(directory, &mut Vec::new()), waiting: GroupNames::default() }
    }

    /// Appends those of these names that are new or have changed. Another directory that took the place of the recording
    /// gets all.
    ///
    /// # Errors
    /// [`StoreError::Io`]; the names are written with the next ones.
    pub fn keep(
        &mut self,
        directory: &PinnedDirectory,
        wall: Option<WallClock>,
        found: GroupNames,
    ) -> Result<(), StoreError> {
        let kept = self.keep_at(directory.path(), wall, found);
        kept.map_err(|error| directory.named(error))
    }

    pub(crate) fn keep_at(
        &mut self,
        directory: &Path,
        wall: Option<WallClock>,
        found: GroupNames,
    ) -> Result<(), StoreError> {
        let path = directory.join(FILE);
        let before = KeptName::all(&self.waiting);
        self.waiting = kept(before.into_iter().chain(KeptName::all(&found)));
        if path.symlink_metadata().is_err() {
            self.waiting.fill_from(std::mem::take(&mut self.written));
        }
        let lines = self.lines(wall);
        if !lines.is_empty() {
            let write = || {
                if json_lines::append(&path, &lines)? > COMPACTED_FROM {
                    compact(directory, &path)?;
                }
                Ok(())
            };
            write().map_err(|error| StoreError::io("write", &path, error))?;
        }
        let mut written = kept(lines.into_iter().map(|line| line.name));
        written.fill_from(std::mem::take(&mut self.written));
        self.written = written;
        self.waiting = self.waiting.without(&self.written);
        if self.written.count() > 2 * NAMES_MAX {
            // An id alone does not say how old it is; the lines of the file are in order.
            *self = Self::at(directory);
        }
        Ok(())
    }

    /// Returns the lines of what is not written yet.
    fn lines(&self, wall: Option<WallClock>) -> Vec<NameLine> {
        let new = self.waiting.without(&self.written);
        let line = |name| NameLine { wall: wall.map(WallClock::unix_nanos), name, crc32: 0 };
        KeptName::all(&new).into_iter().map(line).collect()
    }
}

/// Returns these names as a reader finds them.
fn kept(names: impl IntoIterator<Item = KeptName>) -> GroupNames {
    let (mut kept, mut room) = (GroupNames::default(), NameRoom::default());
    for name in names {
        name.add_to(&mut kept, &mut room);
    }
    kept
}

/// Reads the names of a recording; what is wrong with the file becomes problems. An older recording has none.
pub(crate) fn read(directory: &Path, problems: &mut Vec<String>) -> GroupNames {
    let bytes = match json_lines::tail(&directory.join(FILE), FILE_BYTES_MAX, problems) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == ErrorKind::NotFound => return GroupNames::default(),
        Err(error) => {
            problems.push(format!("{FILE}: {error}; containers are called by their ids"));
            return GroupNames::default();
        }
    };
    let lines: Vec<NameLine> = json_lines::sound(FILE, &bytes, problems);
    let mut seen = HashSet::new();
    let newest = lines.into_iter().rev().map(|line| line.name);
    kept(newest.filter(|name| seen.insert((name.kind, name.id.clone()))))
}

/// Rewrites the file with the last line of each of the newest names.
fn compact(directory: &Path, path: &Path) -> std::io::Result<()> {
    let bytes = json_lines::tail(path, FILE_BYTES_MAX, &mut Vec::new())?;
    let mut seen = HashSet::new();
    let mut left = Vec::new();
    let mut room = NameRoom::default();
    let (mut left_bytes, mut of_users) = (0, 0);
    for text in bytes.split_inclusive(|byte| *byte == b'\n').rev() {
        let Ok(NameLine { name, .. }) = json_lines::sound_line(text.trim_ascii_end()) else {
            continue;
        };
        let (bytes, bytes_max) = match name.owner() {
            None => (&mut left_bytes, LEFT_BYTES_MAX),
            Some(_) => (&mut of_users, USERS_BYTES_MAX),
        };
        if seen.contains(&(name.kind, name.id.clone())) || !room.admits(name.owner()) {
            continue;
        }
        seen.insert((name.kind, name.id));
        *bytes += text.len();
        if *bytes <= bytes_max {
            left.push(text);
        }
    }
    json_lines::replace(directory, FILE, left.into_iter().rev())
}

#[cfg(test)]
mod tests;
