//! The allocators of a process: its program and its libraries are searched for their signs.
//!
//! Of libraries only the dynamic symbols are read, which the dynamic linker has read too; of the program also its full
//! symbol table and 32 MiB of its constants, as allocators are often linked into it. Cost: 5 to 60 ms; pages of the
//! program that were not in the page cache are read from the disk.

use std::collections::{BTreeMap, HashMap};

use probe::{FileKey, MapFiles, MappedFile, Mapping, Root};

use crate::allocator::{self, Allocator, AllocatorKind};
use crate::elf::{Bytewise, ElfImage};

/// Libraries beyond this number are not opened.
const LIBRARIES_MAX: usize = 512;
/// Constants of a program are searched to this size.
const CONSTANTS_MAX: u64 = 32 << 20;
/// Of an allocator, this many signs are kept.
const SIGNS_MAX: usize = 4;

/// What the search found.
#[derive(Debug, Clone, Default)]
pub struct AllocatorSearch {
    /// The allocators, each once.
    pub allocators: Vec<Allocator>,
    /// Files that could not be opened, or are too many: an allocator in them is known by the file's name only.
    pub unread: Vec<String>,
    /// Size in memory of each image that was read: its zeroed data ends there.
    pub image_sizes: HashMap<FileKey, u64>,
}

impl AllocatorSearch {
    /// Searches the files that a process executes. `program` is the path of its program.
    pub fn run(root: &Root, pid: u32, mappings: &[Mapping], program: Option<&[u8]>) -> Self {
        let files = MapFiles::of(root, pid);
        Self::search(mappings, program, |mapping| files.open(mapping).ok())
    }

    /// Goes by the files' names alone: none of them is opened.
    pub(crate) fn by_names(mappings: &[Mapping], program: Option<&[u8]>) -> Self {
        Self::search(mappings, program, |_| None)
    }

    fn search(
        mappings: &[Mapping],
        program: Option<&[u8]>,
        open: impl Fn(&Mapping) -> Option<MappedFile>,
    ) -> Self {
        let mut search = Self::default();
        let mut signs = AllocatorSigns::default();
        for (index, mapping) in images(mappings).into_iter().enumerate() {
            let path = mapping.path().unwrap_or_default();
            let name = String::from_utf8_lossy(path).into_owned();
            let is_program = program == Some(path);
            if let Some((kind, version)) = allocator::by_library(path) {
                signs.add(kind, version, &name, "the name of the library".to_owned());
            }
            let file = (index < LIBRARIES_MAX).then(|| open(mapping));
            match file.flatten() {
                Some(file) => {
                    if let Some(size) = signs.read(&file, &name, is_program) {
                        let key = key_of(mapping);
                        search.image_sizes.insert(key, size);
                    }
                }
                None => search.unread.push(name.clone()),
            }
            if is_program {
                signs.by_program_name(&name);
            }
        }
        search.allocators = signs.finish();
        search
    }
}

impl AllocatorSearch {
    /// Adds glibc's malloc where its arenas were found in memory, but no file showed it: a static, stripped program.
    pub fn add_found_in_memory(&mut self, program: Option<&[u8]>) {
        let has_it = (self.allocators.iter()).any(|one| one.kind == AllocatorKind::Ptmalloc);
        if !has_it {
            let file = String::from_utf8_lossy(program.unwrap_or_default()).into_owned();
            let found = Allocator {
                kind: AllocatorKind::Ptmalloc,
                version: None,
                file,
                evidence: vec!["its arenas are in memory".to_owned()],
            };
            self.allocators.insert(0, found);
        }
    }
}

/// The allocators that a file shows. Of the program itself also its full symbols and its texts are read.
pub(crate) fn allocators_of_file(
    file: &dyn Bytewise,
    path: &[u8],
    is_program: bool,
) -> Vec<Allocator> {
    let mut signs = AllocatorSigns::default();
    let name = String::from_utf8_lossy(path).into_owned();
    if let Some((kind, version)) = allocator::by_library(path) {
        signs.add(kind, version, &name, "the name of the library".to_owned());
    }
    signs.read(file, &name, is_program);
    signs.finish()
}

/// Of the allocators that a program's file shows, those that are in it: any malloc, and Go's runtime. A dynamic program of musl
/// shows it by its dynamic linker, and has none of it.
pub(crate) fn bundled_in(signs: Vec<Allocator>, is_static: bool) -> Vec<Allocator> {
    let is_bundled = |kind: AllocatorKind| match kind {
        AllocatorKind::Musl => is_static,
        other => other.is_malloc() || other == AllocatorKind::Go,
    };
    signs.into_iter().filter(|one| is_bundled(one.kind)).collect()
}

pub(crate) fn key_of(mapping: &Mapping) -> FileKey {
    FileKey { device: mapping.device, inode: mapping.inode }
}

/// The first mapping of each file that is executed.
fn images(mappings: &[Mapping]) -> Vec<&Mapping> {
    let mut seen = std::collections::HashSet::new();
    let is_executed = |one: &&Mapping| one.access.execute && one.path().is_some();
    let executed = mappings.iter().filter(is_executed);
    executed.filter(|one| seen.insert(key_of(one))).collect()
}

/// Collects signs of allocators.
#[derive(Default)]
struct AllocatorSigns(BTreeMap<AllocatorKind, Allocator>);

impl AllocatorSigns {
    fn add(&mut self, kind: AllocatorKind, version: Option<String>, file: &str, sign: String) {
        let found = self.0.entry(kind).or_insert_with(|| Allocator {
            kind,
            version: None,
            file: file.to_owned(),
            evidence: Vec::new(),
        });
        // A longer version is a more exact one: 3.1.2 instead of 3.1.
        let length = |version: &Option<String>| version.as_ref().map_or(0, String::len);
        if length(&version) > length(&found.version) {
            found.version = version;
        }
        if found.evidence.len() < SIGNS_MAX && !found.evidence.contains(&sign) {
            found.evidence.push(sign);
        }
    }

    /// Reads the signs in a file; returns its size in memory.
    fn read(&mut self, file: &dyn Bytewise, name: &str, is_program: bool) -> Option<u64> {
        let image = ElfImage::open(file)?;
        let by_name = allocator::by_library(name.as_bytes()).map(|(kind, _)| kind);
        if by_name != Some(AllocatorKind::Ptmalloc) {
            self.read_symbols(&image, name, is_program);
        }
        if is_program && let Some(section) = image.section(".go.buildinfo", 4096) {
            let version = allocator::go_version(&section);
            let sign = "a section .go.buildinfo".to_owned();
            self.add(AllocatorKind::Go, version, name, sign);
        }
        let interpreter = image.interpreter.as_deref().unwrap_or_default();
        if is_program && memchr::memmem::find(interpreter, b"/ld-musl-").is_some() {
            let sign = "the program's dynamic linker".to_owned();
            self.add(AllocatorKind::Musl, None, name, sign);
        }
        if is_program || by_name.is_some() {
            self.read_texts(&image, name, by_name);
        }
        Some(image.memory_size)
    }

    fn read_symbols(&mut self, image: &ElfImage<'_>, name: &str, is_program: bool) {
        image.each_defined(is_program, &mut |symbol| {
            if let Some(kind) = allocator::by_symbol(symbol) {
                let sign = format!("it defines {}", String::from_utf8_lossy(symbol));
                self.add(kind, None, name, sign);
            }
        });
    }

    /// Of a library that is one allocator by its name, only that allocator's texts count.
    fn read_texts(&mut self, image: &ElfImage<'_>, name: &str, by_name: Option<AllocatorKind>) {
        image.search(&allocator::TEXTS, CONSTANTS_MAX, &mut |number, following| {
            let Some((kind, version)) = allocator::by_text(number, following) else {
                return false;
            };
            let is_own = by_name.is_none_or(|one| one == kind);
            // Text alone is a sign of jemalloc, as it prints its messages with its name, and of glibc in a static
            // program. Other texts only date what is known: programs name nodejs.org or Java for many reasons.
            let is_sign = match kind {
                AllocatorKind::Ptmalloc => by_name == Some(kind) || image.interpreter.is_none(),
                AllocatorKind::Jemalloc if version.is_none() => true,
                _ => self.0.contains_key(&kind),
            };
            if is_own && is_sign {
                self.add(kind, version, name, "a text in its constants".to_owned());
            }
            false
        });
    }

    /// A static program of an interpreter defines no dynamic symbols, and may be stripped.
    fn by_program_name(&mut self, path: &str) {
        let name = path.rsplit('/').next().unwrap_or_default();
        let sign = || "the name of the program".to_owned();
        for (beginning, kind) in [
            ("python", AllocatorKind::Python),
            ("ruby", AllocatorKind::Ruby),
            ("node", AllocatorKind::V8),
        ] {
            let Some(rest) = name.strip_prefix(beginning) else {
                continue;
            };
            if rest.bytes().all(|c| c.is_ascii_digit() || c == b'.') {
                let version = allocator::number_after(rest.as_bytes(), b"");
                self.add(kind, version.filter(|_| kind != AllocatorKind::V8), path, sign());
            }
        }
    }

    fn finish(self) -> Vec<Allocator> {
        self.0.into_values().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use probe::Mappings;

    #[test]
    fn this_program_has_glibcs_malloc_and_its_version() {
        let pid = std::process::id();
        let root = Root::default();
        let mappings = Mappings::read(&root, pid).unwrap().all;
        let program = std::env::current_exe().unwrap();
        let program = program.as_os_str().as_encoded_bytes();
        let search = AllocatorSearch::run(&root, pid, &mappings, Some(program));
        let kinds: Vec<_> = search.allocators.iter().map(|one| one.kind).collect();
        // Its tests name other allocators, which are linked into it only as texts.
        assert!(kinds.contains(&AllocatorKind::Ptmalloc), "{search:?}");
        assert!(!kinds.contains(&AllocatorKind::Go) && !kinds.contains(&AllocatorKind::V8));
        let glibc = &search.allocators[0];
        assert!(glibc.version.as_ref().is_some_and(|text| text.starts_with("2.")));
        assert!(glibc.file.contains("libc"), "{glibc:?}");
        assert!(search.image_sizes.len() >= 2);
    }

    #[test]
    fn a_process_that_is_gone_leaves_names() {
        let text = b"7f00-7f10 r-xp 00000000 fe:00 18    /usr/lib/libjemalloc.so.2\n";
        let mappings = Mappings::parse(text).all;
        let search = AllocatorSearch::run(&Root::default(), 0x3fff_ffff, &mappings, None);
        assert_eq!(search.allocators[0].kind, AllocatorKind::Jemalloc);
        assert_eq!(search.allocators[0].evidence, ["the name of the library"]);
        assert_eq!(search.unread, ["/usr/lib/libjemalloc.so.2"]);
    }
}
