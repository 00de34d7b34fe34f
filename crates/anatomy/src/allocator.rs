//! Which allocators and runtimes with a heap of their own exist, and by which signs each is recognised.
//!
//! Signs are names of libraries, names of symbols that a file defines, and texts in its constants. They come from the
//! projects' sources: `je_` and `_rjem_` prefixes from jemalloc's and tikv-jemallocator's build, `mallctl` from
//! `jemalloc.h`, `tc_` from gperftools' `tcmalloc.h`, `mi_` from `mimalloc.h`, `.go.buildinfo` from `debug/buildinfo`.

/// An allocator, or a runtime with a heap of its own.
#[allow(missing_docs)] // names say it
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum AllocatorKind {
    /// glibc's malloc.
    Ptmalloc,
    Jemalloc,
    /// tcmalloc of gperftools.
    Gperftools,
    /// tcmalloc of Google's own repository.
    GoogleTcmalloc,
    Mimalloc,
    /// musl's malloc.
    Musl,
    /// Go's runtime.
    Go,
    /// A Java virtual machine.
    Jvm,
    /// V8: Node.js, Chromium, Deno.
    V8,
    /// CPython: pymalloc for small objects.
    Python,
    /// Ruby: pages of objects.
    Ruby,
    /// The Erlang virtual machine: carriers of its own allocators.
    Erlang,
    /// PHP: the Zend memory manager.
    Php,
}

impl AllocatorKind {
    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ptmalloc => "ptmalloc (glibc)",
            Self::Jemalloc => "jemalloc",
            Self::Gperftools => "tcmalloc (gperftools)",
            Self::GoogleTcmalloc => "tcmalloc (Google)",
            Self::Mimalloc => "mimalloc",
            Self::Musl => "musl malloc",
            Self::Go => "Go runtime",
            Self::Jvm => "Java virtual machine",
            Self::V8 => "V8",
            Self::Python => "CPython",
            Self::Ruby => "Ruby",
            Self::Erlang => "Erlang virtual machine",
            Self::Php => "PHP",
        }
    }

    /// Its name for programs.
    pub const fn id(self) -> &'static str {
        match self {
            Self::Ptmalloc => "ptmalloc",
            Self::Jemalloc => "jemalloc",
            Self::Gperftools => "gperftools",
            Self::GoogleTcmalloc => "tcmalloc",
            Self::Mimalloc => "mimalloc",
            Self::Musl => "musl",
            Self::Go => "go",
            Self::Jvm => "jvm",
            Self::V8 => "v8",
            Self::Python => "cpython",
            Self::Ruby => "ruby",
            Self::Erlang => "erlang",
            Self::Php => "php",
        }
    }

    /// Whether it provides `malloc` itself. Of those, one serves the process; the others are a runtime's own heap.
    pub const fn is_malloc(self) -> bool {
        match self {
            Self::Ptmalloc
            | Self::Jemalloc
            | Self::Gperftools
            | Self::GoogleTcmalloc
            | Self::Mimalloc
            | Self::Musl => true,
            Self::Go
            | Self::Jvm
            | Self::V8
            | Self::Python
            | Self::Ruby
            | Self::Erlang
            | Self::Php => false,
        }
    }
}

/// An allocator of a process.
#[allow(missing_docs)] // names say it
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Allocator {
    pub kind: AllocatorKind,
    /// Its version, where the file shows it.
    pub version: Option<String>,
    /// The file that has it, as the process names it.
    pub file: String,
    /// By what it was recognised, the first sign first.
    pub evidence: Vec<String>,
}

/// Beginnings of names of library files, without the folder.
const LIBRARIES: [(&[u8], AllocatorKind); 17] = [
    (b"libc.so.6", AllocatorKind::Ptmalloc),
    (b"libc-2.", AllocatorKind::Ptmalloc),
    (b"libjemalloc", AllocatorKind::Jemalloc),
    (b"libtcmalloc", AllocatorKind::Gperftools),
    (b"libmimalloc", AllocatorKind::Mimalloc),
    (b"ld-musl-", AllocatorKind::Musl),
    (b"libc.musl-", AllocatorKind::Musl),
    (b"libjvm.so", AllocatorKind::Jvm),
    (b"libnode.so", AllocatorKind::V8),
    (b"libv8.so", AllocatorKind::V8),
    (b"libv8_monolith", AllocatorKind::V8),
    (b"libpython2", AllocatorKind::Python),
    (b"libpython3", AllocatorKind::Python),
    (b"libruby.so", AllocatorKind::Ruby),
    (b"libruby-", AllocatorKind::Ruby),
    (b"libruby2", AllocatorKind::Ruby),
    (b"libruby3", AllocatorKind::Ruby),
];

/// Returns the allocator of a library by its file name, and the version that the name has.
pub(crate) fn by_library(path: &[u8]) -> Option<(AllocatorKind, Option<String>)> {
    let name = path.rsplit(|byte| *byte == b'/').next()?;
    let (beginning, kind) = LIBRARIES.iter().find(|(beginning, _)| name.starts_with(beginning))?;
    let version = match kind {
        AllocatorKind::Python => number_after(name, b"libpython"),
        // `libruby-3.1.so.3.1.2`: the last part is the whole version.
        // `libmimalloc.so.2.0` likewise; a single number is that of the interface alone.
        AllocatorKind::Ruby | AllocatorKind::Mimalloc => memchr::memmem::rfind(name, b".so.")
            .and_then(|at| number_after(&name[at..], b".so."))
            .filter(|version| version.contains('.')),
        AllocatorKind::Ptmalloc if *beginning == b"libc-2." => number_after(name, b"libc-"),
        _ => None,
    };
    Some((*kind, version))
}

/// Symbols that only these allocators define.
const SYMBOLS: [(&[u8], AllocatorKind); 28] = [
    (b"gnu_get_libc_version", AllocatorKind::Ptmalloc),
    (b"__libc_mallopt", AllocatorKind::Ptmalloc),
    (b"__malloc_hugepage_config", AllocatorKind::Ptmalloc),
    (b"mallctl", AllocatorKind::Jemalloc),
    (b"je_mallctl", AllocatorKind::Jemalloc),
    (b"_rjem_mallctl", AllocatorKind::Jemalloc),
    (b"je_malloc", AllocatorKind::Jemalloc),
    (b"_rjem_malloc", AllocatorKind::Jemalloc),
    (b"je_malloc_conf", AllocatorKind::Jemalloc),
    (b"je_arena_malloc_hard", AllocatorKind::Jemalloc),
    (b"tc_malloc", AllocatorKind::Gperftools),
    (b"MallocExtension_ReleaseFreeMemory", AllocatorKind::Gperftools),
    (b"mi_malloc", AllocatorKind::Mimalloc),
    (b"mi_heap_malloc", AllocatorKind::Mimalloc),
    (b"mi_version", AllocatorKind::Mimalloc),
    (b"__malloc_donate", AllocatorKind::Musl),
    (b"__malloc_alloc_meta", AllocatorKind::Musl),
    (b"__libc_malloc_impl", AllocatorKind::Musl),
    // musl's dynamic linker, which is its C library.
    (b"__dls2b", AllocatorKind::Musl),
    (b"runtime.mallocgc", AllocatorKind::Go),
    (b"JNI_CreateJavaVM", AllocatorKind::Jvm),
    (b"_ZN2v82V810GetVersionEv", AllocatorKind::V8),
    (b"_PyObject_Malloc", AllocatorKind::Python),
    (b"PyObject_Malloc", AllocatorKind::Python),
    (b"rb_gc_start", AllocatorKind::Ruby),
    (b"ruby_description", AllocatorKind::Ruby),
    // Of the interface for native functions of Erlang, and of PHP's for extensions.
    (b"enif_alloc", AllocatorKind::Erlang),
    (b"zend_mm_startup", AllocatorKind::Php),
];

/// Returns the allocator that a symbol belongs to.
pub(crate) fn by_symbol(name: &[u8]) -> Option<AllocatorKind> {
    let exact = SYMBOLS.iter().find(|(symbol, _)| *symbol == name);
    if let Some((_, kind)) = exact {
        return Some(*kind);
    }
    // `tcmalloc::tcmalloc_internal::…`: the namespace of Google's tcmalloc; gperftools has no `tcmalloc_internal`.
    let google = b"_ZN8tcmalloc17tcmalloc_internal";
    name.starts_with(google).then_some(AllocatorKind::GoogleTcmalloc)
}

/// Texts in constants. What must follow some of them stands in [`by_text`], so that the constants of this very program
/// are no sign.
pub(crate) const TEXTS: [&[u8]; 8] = [
    b"GNU C Library",
    b"<jemalloc>",
    b"gperftools ",
    b" JRE (",
    b"\0ruby ",
    b"nodejs.org/download/release/v",
    // glibc's own message; a static program has it, but no banner.
    b"corrupted size vs. prev_",
    // jemalloc's `JEMALLOC_VERSION`, as `git describe` prints it: `5.3.0-0-g54eaed1d`.
    b"\x005.",
];

/// What a text in the constants shows: an allocator, and perhaps its version.
pub(crate) fn by_text(number: usize, following: &[u8]) -> Option<(AllocatorKind, Option<String>)> {
    let version = |text: &[u8]| number_after(text, b"");
    match number {
        0 => {
            let at = memchr::memmem::find(following, b"version ")?;
            let found = version(&following[at + 8..])?;
            Some((AllocatorKind::Ptmalloc, Some(found)))
        }
        1 => (following.starts_with(b": ")).then_some((AllocatorKind::Jemalloc, None)),
        2 => Some((AllocatorKind::Gperftools, Some(version(following)?))),
        3 => {
            let end = memchr::memchr(b')', following)?;
            let text = std::str::from_utf8(&following[..end]).ok()?;
            let is_version = text.starts_with(|c: char| c.is_ascii_digit());
            let is_plain = text.bytes().all(|c| c.is_ascii_graphic());
            (is_version && is_plain).then(|| (AllocatorKind::Jvm, Some(text.to_owned())))
        }
        4 => {
            let found = version(following).filter(|text| text.contains('.'))?;
            Some((AllocatorKind::Ruby, Some(found)))
        }
        5 => Some((AllocatorKind::V8, Some(format!("Node.js {}", version(following)?)))),
        6 => (following.starts_with(b"size")).then_some((AllocatorKind::Ptmalloc, None)),
        7 => Some((AllocatorKind::Jemalloc, Some(described(following)?))),
        _ => None,
    }
}

/// Returns the number with points that follows a text at the start of another: `3.11` in `libpython3.11.so`.
pub(crate) fn number_after(text: &[u8], before: &[u8]) -> Option<String> {
    let rest = text.strip_prefix(before)?;
    let is_part = |c: &&u8| c.is_ascii_digit() || **c == b'.';
    let length = rest.iter().take(16).take_while(is_part).count();
    let number = std::str::from_utf8(&rest[..length]).ok()?;
    let number = number.trim_end_matches('.');
    number.starts_with(|c: char| c.is_ascii_digit()).then(|| number.to_owned())
}

/// Returns jemalloc's version behind its `5.`: two numbers, then commits since and `-g` with the commit.
fn described(following: &[u8]) -> Option<String> {
    let minor = number_after(following, b"")?;
    let rest = following.get(minor.len()..)?.strip_prefix(b"-")?;
    let commits = rest.iter().take_while(|c| c.is_ascii_digit()).count();
    let commit = rest.get(commits..)?.strip_prefix(b"-g")?;
    let is_commit =
        commits > 0 && commit.iter().take(8).filter(|c| c.is_ascii_hexdigit()).count() == 8;
    (is_commit && minor.contains('.')).then(|| format!("5.{minor}"))
}

/// Returns Go's version in a `.go.buildinfo` section: since 1.18 the text itself stands there.
pub(crate) fn go_version(section: &[u8]) -> Option<String> {
    let rest = section.strip_prefix(b"\xff Go buildinf:")?;
    let flags = *rest.get(1)?;
    if flags & 2 == 0 {
        return None;
    }
    let text = section.get(32..)?;
    let length = usize::from(*text.first()?).min(64);
    let text = std::str::from_utf8(text.get(1..=length)?).ok()?;
    let is_plain = text.bytes().all(|c| c.is_ascii_graphic() || c == b' ');
    (text.starts_with("go") && is_plain).then(|| text.trim_start_matches("go").to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn libraries_are_recognised_by_name_with_the_version_that_it_has() {
        let version = |text: &str| Some(text.to_owned());
        for (path, expected) in [
            ("/lib/x86_64-linux-gnu/libc.so.6", Some((AllocatorKind::Ptmalloc, None))),
            ("/lib64/libc-2.17.so", Some((AllocatorKind::Ptmalloc, version("2.17")))),
            ("/usr/lib/libjemalloc.so.2", Some((AllocatorKind::Jemalloc, None))),
            ("/usr/lib/libpython3.11.so.1.0", Some((AllocatorKind::Python, version("3.11")))),
            ("/usr/lib/libruby-3.1.so.3.1.2", Some((AllocatorKind::Ruby, version("3.1.2")))),
            ("/lib/ld-musl-x86_64.so.1", Some((AllocatorKind::Musl, None))),
            ("/opt/libjemalloc/libx.so", None),
            ("/usr/lib/libcap.so.2", None),
            ("", None),
        ] {
            assert_eq!(by_library(path.as_bytes()), expected, "{path}");
        }
    }

    #[test]
    fn symbols_and_texts_name_their_allocator() {
        assert_eq!(by_symbol(b"mallctl"), Some(AllocatorKind::Jemalloc));
        assert_eq!(by_symbol(b"_rjem_mallctl"), Some(AllocatorKind::Jemalloc));
        assert_eq!(by_symbol(b"malloc"), None, "every allocator has it");
        let google = b"_ZN8tcmalloc17tcmalloc_internal6Static5startE";
        assert_eq!(by_symbol(google), Some(AllocatorKind::GoogleTcmalloc));
        let banner = b" (Debian GLIBC 2.36-9+deb12u10) stable release version 2.36.\nCopyright";
        let expected = (AllocatorKind::Ptmalloc, Some("2.36".to_owned()));
        assert_eq!(by_text(0, banner), Some(expected));
        let java = b"17.0.15+6-Debian-1deb12u1), built on";
        let expected = (AllocatorKind::Jvm, Some("17.0.15+6-Debian-1deb12u1".to_owned()));
        assert_eq!(by_text(3, java), Some(expected));
        assert_eq!(by_text(3, b"%s)"), None);
        let jemalloc = b"3.0-0-g54eaed1d8b56b1aa528be3bdd1877e59c56fa90c\0";
        let expected = (AllocatorKind::Jemalloc, Some("5.3.0".to_owned()));
        assert_eq!(by_text(7, jemalloc), Some(expected));
        assert_eq!(by_text(7, b"3.0-0-glass\0"), None);
    }

    #[test]
    fn gos_version_is_in_its_build_information() {
        let mut section = b"\xff Go buildinf:\x08\x02".to_vec();
        section.resize(32, 0);
        section.extend(b"\x08go1.22.3mod");
        assert_eq!(go_version(&section).as_deref(), Some("1.22.3"));
        assert_eq!(go_version(&section[..36]), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_no_panic(bytes: Vec<u8>, number in 0..12_usize) {
            by_library(&bytes);
            by_symbol(&bytes);
            by_text(number, &bytes);
            go_version(&[b"\xff Go buildinf:\x08\x02", bytes.as_slice()].concat());
        }
    }
}
