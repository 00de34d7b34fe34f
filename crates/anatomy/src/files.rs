//! Where mappings with a file belong: the program, a library, shared memory, a device, or a file of data.

use std::collections::{HashMap, HashSet};

use probe::{FileKey, Mapping, SmapsBlock, VmFlag};

use crate::allocator::AllocatorKind;
use crate::find_allocators::key_of;
use crate::part::{PartKind, PartStep, Place, ZGC_LABEL};
use crate::runtimes::ZGC_HEAP;

/// What is known of the files of a process.
pub(crate) struct FileRoles<'a> {
    program: Option<&'a [u8]>,
    tmpfs: &'a [(u32, u32)],
    /// Files of which some part is executed.
    executed: HashSet<FileKey>,
    /// Where the first page of each image is.
    bases: HashMap<FileKey, u64>,
    image_sizes: Option<&'a HashMap<FileKey, u64>>,
}

/// Zeroed data of an image of unknown size is at most this large.
const ZEROED_MAX: u64 = 1 << 20;

impl<'a> FileRoles<'a> {
    pub(crate) fn new(
        blocks: &[SmapsBlock],
        program: Option<&'a [u8]>,
        tmpfs: &'a [(u32, u32)],
        image_sizes: Option<&'a HashMap<FileKey, u64>>,
    ) -> Self {
        let mut roles =
            Self { program, tmpfs, executed: HashSet::new(), bases: HashMap::new(), image_sizes };
        for mapping in blocks.iter().map(|block| &block.mapping) {
            if mapping.path().is_some() {
                let key = key_of(mapping);
                let start = mapping.range.start;
                roles.bases.entry(key).or_insert(start);
                if mapping.access.execute {
                    roles.executed.insert(key);
                }
            }
        }
        roles
    }

    /// Returns the place of a mapping with a file.
    pub(crate) fn place(&self, block: &SmapsBlock) -> Place {
        let mapping = &block.mapping;
        let name = String::from_utf8_lossy(&mapping.name).into_owned();
        if block.has(VmFlag::Frames) || block.has(VmFlag::Io) || is_device(mapping) {
            let device =
                PartStep::new(PartKind::Device, name).by("its name, or its flag of a driver");
            return Place::certain([device]);
        }
        if mapping.name.starts_with(ZGC_HEAP) {
            let heap = PartKind::RuntimeHeap(AllocatorKind::Jvm);
            let by = "the name that ZGC gives its heap, which it maps up to three times";
            return Place::certain([PartStep::new(heap, ZGC_LABEL).by(by)]);
        }
        if let Some((kind, evidence)) = self.shared_memory(mapping) {
            let group = PartStep::new(PartKind::SharedMemory, "shared memory");
            let label = self.shared_name(kind, mapping).unwrap_or(name);
            return Place::certain([group, PartStep::new(kind, label).by(evidence)]);
        }
        if self.executed.contains(&key_of(mapping)) {
            let mut steps = self.image(mapping);
            steps.push(section_of(mapping));
            return Place::certain(steps);
        }
        let group = PartStep::new(PartKind::MappedFiles, "mapped files");
        let file = PartStep::new(PartKind::MappedFile, name);
        Place::certain([group, file])
    }

    /// Returns the place of zeroed data that follows an image directly: `.bss`, if `block` is that.
    pub(crate) fn zeroed_data(&self, before: &Mapping, block: &SmapsBlock) -> Option<Place> {
        let mapping = &block.mapping;
        let follows = before.range.end == mapping.range.start && before.path().is_some();
        let key = key_of(before);
        if !follows || !before.access.write || !self.executed.contains(&key) {
            return None;
        }
        let image_size = self.image_sizes.and_then(|sizes| sizes.get(&key));
        let fits = match (image_size, self.bases.get(&key)) {
            // The kernel may have joined a small neighbour to it.
            (Some(size), Some(base)) => {
                let end = base.saturating_add(*size);
                mapping.range.start < end && mapping.range.end <= end.saturating_add(ZEROED_MAX)
            }
            _ => mapping.size_bytes() <= ZEROED_MAX,
        };
        if !fits {
            return None;
        }
        let mut steps = self.image(before);
        steps.push(section_of(before));
        Some(Place::certain(steps))
    }

    /// The steps to an image: the program, or a library.
    fn image(&self, mapping: &Mapping) -> Vec<PartStep> {
        let name = String::from_utf8_lossy(mapping.path().unwrap_or_default()).into_owned();
        if self.program.is_some() && self.program == mapping.path() {
            return vec![PartStep::new(PartKind::Program, name)];
        }
        vec![
            PartStep::new(PartKind::Libraries, "libraries"),
            PartStep::new(PartKind::Library, name),
        ]
    }

    /// The last part of the program's path.
    fn program_name(&self) -> &[u8] {
        self.program.and_then(|path| path.rsplit(|byte| *byte == b'/').next()).unwrap_or_default()
    }

    /// Whether the program is a server of MariaDB or MySQL.
    pub(crate) fn is_mariadb(&self) -> bool {
        matches!(self.program_name(), b"mariadbd" | b"mysqld")
    }

    /// What shared memory without a file is: its kernel name, `/dev/zero` or a key, says nothing, and none was ever a file.
    fn shared_name(&self, kind: PartKind, mapping: &Mapping) -> Option<String> {
        match kind {
            PartKind::Memfd => {
                let path = mapping.path()?.strip_prefix(b"/")?;
                Some(String::from_utf8_lossy(path).into_owned())
            }
            PartKind::SystemV => {
                let key =
                    String::from_utf8_lossy(mapping.path()?.strip_prefix(b"/SYSV")?).into_owned();
                Some(format!("System V segment {} (key 0x{key})", mapping.inode))
            }
            PartKind::SharedAnonymous if mapping.name.starts_with(b"/dev/zero") => {
                Some(match self.program_name() {
                    b"postgres" => "PostgreSQL shared memory".to_owned(),
                    name if name.starts_with(b"php") => "PHP shared memory (opcache)".to_owned(),
                    _ => "anonymous shared memory".to_owned(),
                })
            }
            _ => None,
        }
    }

    fn shared_memory(&self, mapping: &Mapping) -> Option<(PartKind, &'static str)> {
        let name = mapping.name.as_slice();
        let starts = |start: &[u8]| name.starts_with(start);
        if starts(b"/memfd:") {
            Some((PartKind::Memfd, "the name of a memfd"))
        } else if starts(b"/SYSV") && mapping.is_deleted() {
            Some((PartKind::SystemV, "the name of a System V segment"))
        } else if starts(b"[anon_shmem:") || (starts(b"/dev/zero") && mapping.inode != 0) {
            Some((PartKind::SharedAnonymous, "the kernel's name for it"))
        } else if self.executed.contains(&key_of(mapping)) {
            // A program or library on a tmpfs is shown with the others.
            None
        } else if starts(b"/dev/shm/") || self.tmpfs.contains(&mapping.device) {
            Some((PartKind::TmpfsFile, "its file system is a tmpfs"))
        } else {
            None
        }
    }
}

fn is_device(mapping: &Mapping) -> bool {
    let name = mapping.name.as_slice();
    let is_of = |start: &[u8]| name.starts_with(start);
    let is_special =
        is_of(b"anon_inode:") || is_of(b"socket:") || is_of(b"/dmabuf") || is_of(b"/i915");
    let is_in_dev = is_of(b"/dev/")
        && !is_of(b"/dev/shm/")
        && !is_of(b"/dev/zero")
        && !is_of(b"/dev/hugepages/");
    is_special || is_in_dev
}

fn section_of(mapping: &Mapping) -> PartStep {
    let access = &mapping.access;
    let by = "access of the mapping";
    if access.execute {
        PartStep::new(PartKind::Text, "code").by(by)
    } else if access.write {
        PartStep::new(PartKind::Data, "data").by(by)
    } else {
        PartStep::new(PartKind::ReadOnlyData, "read-only data").by(by)
    }
}
