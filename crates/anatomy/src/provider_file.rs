//! A file that provides malloc: which allocator it is, and which version.

use crate::allocator::{self, Allocator, AllocatorKind};
use crate::elf::{Bytewise, ElfImage};
use crate::find_allocators::allocators_of_file;

/// A file that provides malloc.
#[allow(missing_docs)] // names say it
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderFile {
    /// As its process, or its root directory, names it.
    pub path: String,
    /// The allocator; `None` for one without a known sign.
    pub kind: Option<AllocatorKind>,
    /// Where the file shows it.
    pub version: Option<String>,
    pub soname: Option<String>,
    pub build_id: Option<String>,
    /// Whether the file was removed since: a new version in its place is not what runs.
    pub is_deleted: bool,
}

impl ProviderFile {
    pub(crate) fn read(
        file: &dyn Bytewise,
        path: &[u8],
        is_program: bool,
        is_deleted: bool,
    ) -> Self {
        let mut found = Self::by_name(path, is_deleted);
        let signs = allocators_of_file(file, path, is_program);
        // A library's name decides: jemalloc's texts may stand in others too.
        let named = found.kind;
        let mut mallocs = signs.into_iter().filter(|one| one.kind.is_malloc());
        let chosen = mallocs.find(|one: &Allocator| named.is_none_or(|kind| one.kind == kind));
        if let Some(chosen) = chosen {
            found.kind = Some(chosen.kind);
            found.version = chosen.version.or(found.version);
        }
        if let Some(image) = ElfImage::open(file) {
            let soname = image.soname();
            found.soname = soname.map(|name| String::from_utf8_lossy(&name).into_owned());
            found.build_id = image.build_id();
        }
        found
    }

    /// What its name alone shows.
    pub(crate) fn by_name(path: &[u8], is_deleted: bool) -> Self {
        let named = allocator::by_library(path).filter(|(kind, _)| kind.is_malloc());
        let (kind, version) = named.unzip();
        Self {
            path: String::from_utf8_lossy(path).into_owned(),
            kind,
            version: version.flatten(),
            soname: None,
            build_id: None,
            is_deleted,
        }
    }
}
