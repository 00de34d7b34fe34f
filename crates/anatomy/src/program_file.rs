//! The file of a program that is to be run: an ELF file, or a script that names its interpreter.
//!
//! Rules of the kernel: `fs/binfmt_script.c` for scripts, of which the first 256 bytes count, and
//! `cap_bprm_creds_from_file` in `security/commoncap.c` for who gets more rights. A script's own set-user-ID bit is ignored.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Error;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use checked_open::{RootedFile, look_up_rooted};
use rustix::fs::{Mode, StatVfsMountFlags};
use rustix::io::Errno;

use crate::allocator::{self, AllocatorKind};
use crate::elf::{Bytewise as _, ElfImage};
use crate::find_allocators::{allocators_of_file, bundled_in};
use crate::find_library::{CLibrary, open_regular_found};
use crate::preload_prospect::{
    ExtraRights, LinkedAllocator, NoProspect, PreloadProspect, ProgramLinkage, RunPlace,
};

/// Scripts on the way to a program: more end in `ELOOP` (`exec_binprm` in `fs/exec.c`; tried on 6.18).
const SCRIPTS_MAX: usize = 5;

/// Returns what settings in the environment can do to a program. A name without a slash is looked up as a shell does; a relative
/// path begins at the working directory. The settings of whoever starts it are not seen: `no_new_privs`, a security module.
///
/// # Errors
/// [`NoProspect`] if there is no such program, it may not be read, or nothing of it can be run.
pub fn preload_prospect(program: &Path, place: &RunPlace) -> Result<PreloadProspect, NoProspect> {
    let mut chain = Vec::new();
    let mut file = ProgramFile::open(program.as_os_str(), place)?;
    for _ in 0..=SCRIPTS_MAX {
        chain.push(file.path.clone());
        let Some(line) = FirstLine::read(&file.file) else {
            return file.prospect(chain, place);
        };
        file = ProgramFile::open(&line.interpreter, place)?;
        if let Some(started) = line.started_by_env() {
            chain.push(file.path);
            file = ProgramFile::open(&started, place)?;
        }
    }
    Err(NoProspect::TooDeep(program.to_owned()))
}

/// An open program.
struct ProgramFile {
    /// Below its root, without links.
    path: PathBuf,
    file: File,
}

impl ProgramFile {
    fn open(name: &OsStr, place: &RunPlace) -> Result<Self, NoProspect> {
        let not_found = || NoProspect::NotFound(name.into());
        if name.is_empty() {
            return Err(not_found());
        }
        if name.as_bytes().contains(&b'/') {
            let path = std::path::absolute(name);
            let path = path.map_err(|source| unreadable(Path::new(name), source))?;
            return Self::open_path(&path, place);
        }
        let mut refused = None;
        for directory in std::env::split_paths(&place.search_path) {
            // A directory that this user may not search has no programs for him.
            let Ok(found) = look_up_rooted(&place.root.path("/"), &directory.join(name)) else {
                continue;
            };
            match Self::of(found) {
                Err(why) => refused = refused.or(Some(why)),
                opened => return opened,
            }
        }
        Err(refused.unwrap_or_else(not_found))
    }

    fn open_path(path: &Path, place: &RunPlace) -> Result<Self, NoProspect> {
        match look_up_rooted(&place.root.path("/"), path) {
            Err(Errno::NOENT | Errno::NOTDIR) => Err(NoProspect::NotFound(path.into())),
            Err(errno) => Err(unreadable(path, errno.into())),
            Ok(found) => Self::of(found),
        }
    }

    fn of(found: RootedFile) -> Result<Self, NoProspect> {
        let path = &found.path;
        let file = open_regular_found(&found).map_err(|source| unreadable(path, source))?;
        let stat = rustix::fs::fstat(&file).map_err(|errno| unreadable(path, errno.into()))?;
        let permits = Mode::XUSR | Mode::XGRP | Mode::XOTH;
        if !Mode::from_raw_mode(stat.st_mode).intersects(permits) {
            let why = "nobody may execute it";
            return Err(NoProspect::NotExecutable { path: found.path, why });
        }
        Ok(Self { path: found.path, file })
    }

    /// What settings can do to it. It is no script.
    fn prospect(
        self,
        chain: Vec<PathBuf>,
        place: &RunPlace,
    ) -> Result<PreloadProspect, NoProspect> {
        let Some(image) = ElfImage::open(&self.file) else {
            let why = "it is neither a script nor an ELF file of 64 bits";
            return Err(NoProspect::NotExecutable { path: self.path, why });
        };
        let signs = allocators_of_file(&self.file, self.path.as_os_str().as_bytes(), true);
        let is_static = image.interpreter.is_none();
        let needed = image.needed();
        Ok(PreloadProspect {
            chain,
            linkage: linkage(image.interpreter.as_deref()),
            machine: image.machine,
            defines_malloc: image.defines(b"malloc"),
            linked: needed.iter().filter_map(|soname| linked(soname)).collect(),
            bundled: bundled_in(signs, is_static),
            extra_rights: self.extra_rights(place),
        })
    }

    fn extra_rights(&self, place: &RunPlace) -> Option<ExtraRights> {
        let stat = rustix::fs::fstat(&self.file).ok()?;
        let mounted = rustix::fs::fstatvfs(&self.file).ok()?;
        if mounted.f_flag.contains(StatVfsMountFlags::NOSUID) {
            return None;
        }
        let mode = Mode::from_raw_mode(stat.st_mode);
        if mode.contains(Mode::SUID) && stat.st_uid != place.user {
            return Some(ExtraRights::SetUser);
        }
        // Without the group's right to execute, the bit once meant mandatory locks.
        if mode.contains(Mode::SGID | Mode::XGRP) && stat.st_gid != place.group {
            return Some(ExtraRights::SetGroup);
        }
        let mut capabilities = [0; 64];
        let got = rustix::fs::fgetxattr(&self.file, c"security.capability", &mut capabilities);
        let capabilities = &capabilities[..got.unwrap_or(0).min(64)];
        // Whoever is root has them anyway.
        (place.user != 0 && gives_capabilities(capabilities)).then_some(ExtraRights::Capabilities)
    }
}

fn unreadable(path: &Path, source: Error) -> NoProspect {
    NoProspect::Unreadable { path: path.to_owned(), source }
}

/// `struct vfs_cap_data` of `include/uapi/linux/capability.h`: flags, then pairs of permitted and inheritable ones.
fn gives_capabilities(data: &[u8]) -> bool {
    const EFFECTIVE: u32 = 1;
    let (words, _) = data.as_chunks::<4>();
    let word = |at: usize| words.get(at).map_or(0, |word| u32::from_le_bytes(*word));
    word(0) & EFFECTIVE != 0 || word(1) != 0 || word(3) != 0
}

fn linkage(interpreter: Option<&[u8]>) -> ProgramLinkage {
    let Some(path) = interpreter else {
        return ProgramLinkage::Static;
    };
    let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
    let c_library = match allocator::by_library(name) {
        Some((AllocatorKind::Musl, _)) => CLibrary::Musl,
        _ if name.starts_with(b"ld-linux") || name.starts_with(b"ld-2.") => CLibrary::Glibc,
        _ => CLibrary::Unknown,
    };
    ProgramLinkage::Dynamic { loader: OsStr::from_bytes(path).into(), c_library }
}

/// An allocator by the name of a library, those of C libraries left out.
fn linked(soname: &[u8]) -> Option<LinkedAllocator> {
    let (kind, _) = allocator::by_library(soname)?;
    let is_other = !matches!(kind, AllocatorKind::Ptmalloc | AllocatorKind::Musl);
    let soname = String::from_utf8_lossy(soname).into_owned();
    (is_other && kind.is_malloc()).then_some(LinkedAllocator { kind, soname })
}

/// The first line of a script.
#[derive(Debug, PartialEq, Eq)]
struct FirstLine {
    interpreter: OsString,
    /// What stands behind it: one argument, whatever blanks it has.
    argument: Vec<u8>,
}

impl FirstLine {
    /// What the kernel reads of a file to recognise it.
    const LINE_LEN_MAX: usize = 256;

    /// Reads it; `None` if the file is no script.
    fn read(file: &File) -> Option<Self> {
        let mut start = [0; Self::LINE_LEN_MAX];
        let got = file.read_at(0, &mut start);
        Self::parse(&start[..got])
    }

    fn parse(start: &[u8]) -> Option<Self> {
        let line = start.strip_prefix(b"#!")?;
        let line = line[..memchr::memchr2(b'\n', 0, line).unwrap_or(line.len())].trim_ascii();
        let is_blank = |byte: &u8| *byte == b' ' || *byte == b'\t';
        let end = line.iter().position(is_blank).unwrap_or(line.len());
        Some(Self {
            interpreter: OsStr::from_bytes(&line[..end]).to_owned(),
            argument: line[end..].trim_ascii().to_vec(),
        })
    }

    /// The program that `env` starts: its argument, or with `-S` the first word that is neither an option nor a variable.
    fn started_by_env(&self) -> Option<OsString> {
        let name = Path::new(&self.interpreter).file_name()?;
        if name != "env" || self.argument.is_empty() {
            return None;
        }
        let Some(words) = self.argument.strip_prefix(b"-S") else {
            return Some(OsStr::from_bytes(&self.argument).to_owned());
        };
        let mut words = words.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
        let program = words.find(|word| word[0] != b'-' && !word.contains(&b'='))?;
        Some(OsStr::from_bytes(program).to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_first_line_of_a_script_names_its_interpreter() {
        for (text, interpreter, started) in [
            ("#!/bin/sh\necho", "/bin/sh", None),
            ("#! /usr/bin/python3 -u\n", "/usr/bin/python3", None),
            ("#!/usr/bin/env ruby\n", "/usr/bin/env", Some("ruby")),
            ("#!/usr/bin/env -S A=1 -v ruby -w\n", "/usr/bin/env", Some("ruby")),
            ("#!/usr/bin/env\n", "/usr/bin/env", None),
            ("#!\n", "", None),
        ] {
            let line = FirstLine::parse(text.as_bytes()).unwrap();
            assert_eq!(line.interpreter, interpreter, "{text}");
            assert_eq!(line.started_by_env().as_deref(), started.map(OsStr::new), "{text}");
        }
        assert_eq!(FirstLine::parse(b"echo"), None);
    }

    #[test]
    fn file_capabilities_that_give_nothing_are_none() {
        let data = |words: [u32; 5]| words.map(u32::to_le_bytes).as_flattened().to_vec();
        assert!(gives_capabilities(&data([0x0200_0001, 1 << 10, 0, 0, 0])));
        assert!(gives_capabilities(&data([0x0200_0000, 0, 0, 1, 0])), "permitted alone");
        assert!(!gives_capabilities(&data([0x0200_0000, 0, 1, 0, 0])), "inheritable alone");
        assert!(!gives_capabilities(&[]));
    }

    proptest! {
        #[test]
        fn any_bytes_are_no_panic(bytes: Vec<u8>) {
            gives_capabilities(&bytes);
            let line = FirstLine::parse(&[b"#!", bytes.as_slice()].concat());
            line.and_then(|line| line.started_by_env());
            linked(&bytes);
            linkage(Some(&bytes));
        }
    }
}
