//! `names.jsonl`: what people call the containers, pods and users of the cgroups in a recording, and the same in captures.
//!
//! A line for each name that is new or has changed: `{"wall", "kind", "id", "name", "namespace", "pod", "crc32"}`. It is a
//! file of its own: an id means the same at any time, and a memtide that does not know the file passes over it. The
//! newest [`NAMES_MAX`] names count.

use std::collections::{BTreeMap, HashSet};
use std::io::ErrorKind;
use std::path::Path;

use serde::{Deserialize, Serialize};
use timeline::cgroup::{ContainerNames, GroupNames, NAME_LEN_MAX, PodNames};
use timeline::start_of;
use units::WallClock;

use crate::json_lines::{self, ChecksummedLine};
use crate::{PinnedDirectory, StoreError};

/// The file in a recording.
pub(crate) const FILE: &str = "names.jsonl";

/// At most this many names are kept: as many containers as are searched for on a host.
pub const NAMES_MAX: usize = 4_096;

/// The most bytes read of a longer file: its end, as the newest names count.
const FILE_BYTES_MAX: u64 = 2 << 20;
/// A longer file is compacted.
const COMPACTED_FROM: u64 = 1 << 20;
/// Bytes that compaction keeps, newest first. A line of a container has about 170.
const LEFT_BYTES_MAX: usize = 768 << 10;

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
    /// The id of a container, the UID of a pod or a user.
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
    /// Returns these names as they are kept, at most [`NAMES_MAX`].
    pub fn all(names: &GroupNames) -> Vec<Self> {
        let short = |text: &str| start_of(text, NAME_LEN_MAX).to_owned();
        let plain = |kind, id: &str, name: &str| Self {
            kind,
            id: short(id),
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
        all.take(NAMES_MAX).collect()
    }

    /// As [`all`](Self::all), without users: a capture is given to others, who need no login names.
    pub fn of_a_capture(names: &GroupNames) -> Vec<Self> {
        Self::all(&GroupNames {
            users: BTreeMap::new(),
            ..names.clone()
        })
    }

    /// Adds the name to others; the later of two of one id counts. What is beyond [`NAMES_MAX`] names is left out.
    pub fn add_to(self, names: &mut GroupNames) {
        let mut one = GroupNames::default();
        let short = |text: String| start_of(&text, NAME_LEN_MAX).to_owned();
        let (id, name) = (short(self.id), short(self.name));
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
                one.users
                    .extend(id.parse().ok().map(|uid: u32| (uid, name)));
            }
            NamedKind::Other => {}
        }
        let is_known = one.is_known_to(names);
        if is_known || names.count() < NAMES_MAX {
            names.containers.append(&mut one.containers);
            names.pods.append(&mut one.pods);
            names.users.append(&mut one.users);
        }
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
        Self {
            written: read(directory, &mut Vec::new()),
            waiting: GroupNames::default(),
        }
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
        let has_room = self.waiting.count() < NAMES_MAX;
        if has_room {
            let mut found = kept(KeptName::all(&found));
            found.fill_from(std::mem::take(&mut self.waiting));
            self.waiting = found;
        }
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
            write().map_err(|error| StoreError::io("write", &path, &error))?;
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
        let line = |name| NameLine {
            wall: wall.map(WallClock::unix_nanos),
            name,
            crc32: 0,
        };
        KeptName::all(&new).into_iter().map(line).collect()
    }
}

/// Returns these names as a reader finds them.
fn kept(names: impl IntoIterator<Item = KeptName>) -> GroupNames {
    let mut kept = GroupNames::default();
    for name in names {
        name.add_to(&mut kept);
    }
    kept
}

/// Reads the names of a recording; what is wrong with the file becomes problems. An older recording has none.
pub(crate) fn read(directory: &Path, problems: &mut Vec<String>) -> GroupNames {
    let bytes = match json_lines::tail(&directory.join(FILE), FILE_BYTES_MAX, problems) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == ErrorKind::NotFound => return GroupNames::default(),
        Err(error) => {
            problems.push(format!(
                "{FILE}: {error}; containers are called by their ids"
            ));
            return GroupNames::default();
        }
    };
    let lines: Vec<NameLine> = json_lines::sound(FILE, &bytes, problems);
    let mut names = GroupNames::default();
    let mut seen = HashSet::new();
    for line in lines.into_iter().rev() {
        if seen.insert((line.name.kind, line.name.id.clone())) {
            line.name.add_to(&mut names);
        }
    }
    names
}

/// Rewrites the file with the last line of each of the newest names.
fn compact(directory: &Path, path: &Path) -> std::io::Result<()> {
    let bytes = json_lines::tail(path, FILE_BYTES_MAX, &mut Vec::new())?;
    let mut seen = HashSet::new();
    let mut left = Vec::new();
    let mut left_bytes = 0;
    for text in bytes.split_inclusive(|byte| *byte == b'\n').rev() {
        let Ok(NameLine { name, .. }) = json_lines::sound_line(text.trim_ascii_end()) else {
            continue;
        };
        if !seen.insert((name.kind, name.id)) {
            continue;
        }
        left_bytes += text.len();
        if left.len() >= NAMES_MAX || left_bytes > LEFT_BYTES_MAX {
            break;
        }
        left.push(text);
    }
    json_lines::replace(directory, FILE, left.into_iter().rev())
}

#[cfg(test)]
mod tests;
