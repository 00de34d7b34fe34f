//! Can `LD_PRELOAD`, `MALLOC_ARENA_MAX` or `GLIBC_TUNABLES` have an effect on a program? Decided by its file, before it runs.
//!
//! It is a prospect: a script may start another program, and one that runs may drop its environment. What came of it is seen
//! by [`crate::effective_allocator()`]. Cost: below 1 ms for a program of 2 MiB, 10 ms for one of 300 MiB.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use probe::Root;

use crate::allocator::{Allocator, AllocatorKind};
use crate::elf::ElfMachine;
use crate::find_library::CLibrary;

/// Where a program is to run, and as whom.
#[derive(Debug, Clone)]
pub struct RunPlace {
    /// The root directory that it will have.
    pub root: Root,
    /// Its `PATH`: names without a slash are looked up there, those behind `env` too.
    pub search_path: OsString,
    /// The user and the group that start it.
    pub user: u32,
    #[allow(missing_docs)] // see above
    pub group: u32,
}

/// What settings in the environment can do to a program.
#[derive(Debug, Clone)]
pub struct PreloadProspect {
    /// The program without links; in front of it the scripts that lead to it, and `env`.
    pub chain: Vec<PathBuf>,
    /// How it gets its libraries.
    pub linkage: ProgramLinkage,
    /// Its processor, which a library must have too.
    pub machine: ElfMachine,
    /// Whether it has a malloc of its own for itself and for its libraries: the dynamic linker takes a program's functions before
    /// those of what is preloaded.
    pub defines_malloc: bool,
    /// Allocators among the libraries that it asks for.
    pub linked: Vec<LinkedAllocator>,
    /// Allocators in its own file, Go's runtime among them.
    pub bundled: Vec<Allocator>,
    /// What it gets beyond the rights of the user who starts it.
    pub extra_rights: Option<ExtraRights>,
}

/// How a program gets its libraries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProgramLinkage {
    /// By a dynamic linker.
    Dynamic {
        /// Its path, as the program names it.
        loader: PathBuf,
        /// Of which C library it is.
        c_library: CLibrary,
    },
    /// They are in its file.
    Static,
}

/// An allocator among the libraries that a program asks for.
#[allow(missing_docs)] // names say it
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkedAllocator {
    pub kind: AllocatorKind,
    pub soname: String,
}

/// By what a program gets more rights than the user who starts it has; the environment is ignored then (`AT_SECURE`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExtraRights {
    /// Its set-user-ID bit, with another owner.
    SetUser,
    /// Its set-group-ID bit, with another group.
    SetGroup,
    /// Its file capabilities (`setcap(8)`).
    Capabilities,
}

/// What a setting can do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SettingEffect {
    /// It reaches all that the program allocates by malloc.
    Full,
    /// It reaches a part, or needs something.
    Part(SettingLimit),
    /// It does nothing, and no message says so.
    None(SettingLimit),
}

/// What stands between a setting and the program's memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SettingLimit {
    /// The program is static: no library is loaded.
    Static,
    /// It starts with more rights than its user has.
    ExtraRights(ExtraRights),
    /// It has a malloc of its own, which its libraries use, too.
    OwnMalloc,
    /// Its C library is musl, which loads libraries that were built for it only, and has no such settings.
    Musl,
    /// Its dynamic linker is of another C library.
    OtherLoader,
    /// Go's runtime takes its memory from the kernel; only parts in C use malloc.
    Go,
    /// Another allocator is in its file; only libraries use malloc.
    Bundled(AllocatorKind),
    /// It is linked to another allocator, which has settings of its own.
    Linked(AllocatorKind),
}

/// Why there is no prospect.
#[allow(missing_docs)] // names say it
#[derive(Debug, thiserror::Error)]
pub enum NoProspect {
    #[error("there is no program {}", .0.display())]
    NotFound(PathBuf),
    #[error("cannot read {}", path.display())]
    Unreadable { path: PathBuf, source: std::io::Error },
    /// No bit permits it, or it is neither an ELF file nor a script.
    #[error("{} is no program: {why}", path.display())]
    NotExecutable { path: PathBuf, why: &'static str },
    #[error("{} is a script of scripts of scripts, more than the kernel follows", .0.display())]
    TooDeep(PathBuf),
}

impl PreloadProspect {
    /// The dynamic linker; `None` for a static program.
    pub fn loader(&self) -> Option<&Path> {
        match &self.linkage {
            ProgramLinkage::Dynamic { loader, .. } => Some(loader),
            ProgramLinkage::Static => None,
        }
    }

    /// What `LD_PRELOAD` of another allocator can do.
    pub fn preload(&self) -> SettingEffect {
        if let Some(rights) = self.extra_rights {
            return SettingEffect::None(SettingLimit::ExtraRights(rights));
        }
        match &self.linkage {
            ProgramLinkage::Static => SettingEffect::None(SettingLimit::Static),
            ProgramLinkage::Dynamic { .. } if self.defines_malloc => {
                SettingEffect::None(SettingLimit::OwnMalloc)
            }
            ProgramLinkage::Dynamic { c_library, .. } => match (self.in_its_file(), c_library) {
                (Some(limit), _) => SettingEffect::Part(limit),
                (None, CLibrary::Glibc) => SettingEffect::Full,
                (None, CLibrary::Musl) => SettingEffect::Part(SettingLimit::Musl),
                (None, CLibrary::Unknown) => SettingEffect::Part(SettingLimit::OtherLoader),
            },
        }
    }

    /// What settings of glibc's malloc can do: `MALLOC_ARENA_MAX`, and `glibc.malloc` in `GLIBC_TUNABLES`. Where another
    /// allocator is linked, they count once glibc's own is preloaded (`libc.so.6`).
    pub fn malloc_settings(&self) -> SettingEffect {
        if let Some(rights) = self.extra_rights {
            return SettingEffect::None(SettingLimit::ExtraRights(rights));
        }
        match &self.linkage {
            ProgramLinkage::Static => self.static_malloc_settings(),
            ProgramLinkage::Dynamic { .. } if self.defines_malloc => {
                SettingEffect::None(SettingLimit::OwnMalloc)
            }
            ProgramLinkage::Dynamic { c_library: CLibrary::Musl, .. } => {
                SettingEffect::None(SettingLimit::Musl)
            }
            ProgramLinkage::Dynamic { c_library: CLibrary::Unknown, .. } => {
                SettingEffect::None(SettingLimit::OtherLoader)
            }
            ProgramLinkage::Dynamic { c_library: CLibrary::Glibc, .. } => {
                match (self.in_its_file(), self.linked.first()) {
                    (Some(limit), _) => SettingEffect::Part(limit),
                    (None, Some(one)) => SettingEffect::None(SettingLimit::Linked(one.kind)),
                    (None, None) => SettingEffect::Full,
                }
            }
        }
    }

    /// glibc's malloc reads them in a static program too.
    fn static_malloc_settings(&self) -> SettingEffect {
        let has = |kind| self.bundled.iter().any(|one| one.kind == kind);
        match (has(AllocatorKind::Ptmalloc), self.in_its_file()) {
            (true, None) => SettingEffect::Full,
            (true, Some(limit)) => SettingEffect::Part(limit),
            (false, _) => SettingEffect::None(SettingLimit::Static),
        }
    }

    /// What serves the program from its own file, besides glibc's malloc.
    fn in_its_file(&self) -> Option<SettingLimit> {
        let mut others = self.bundled.iter().map(|one| one.kind);
        others.find(|kind| *kind != AllocatorKind::Ptmalloc).map(|kind| match kind {
            AllocatorKind::Go => SettingLimit::Go,
            other => SettingLimit::Bundled(other),
        })
    }
}
