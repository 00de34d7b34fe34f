//! Which settings of allocators a process was started with: variables in `/proc/PID/environ`.
//!
//! Names leave this module, and of those that set nothing but an allocator a value that is plain: numbers, sizes, options of
//! the allocator. Every other value may be a secret. The file shows the variables with which the program was
//! started, as `NAME=value` with a zero byte after each; later changes of the process are not in it (`setenv` puts them
//! elsewhere), and a process may overwrite it. Needs the right to trace the process. Cost: one read.

use crate::error::ReadError;
use crate::kernel_file::Root;

/// Names that change how a process uses memory.
const NAMES: [&str; 55] = [
    "GLIBC_TUNABLES",
    "LD_PRELOAD",
    "LD_LIBRARY_PATH",
    "MALLOC_CONF",
    "_RJEM_MALLOC_CONF",
    "JE_MALLOC_CONF",
    "HEAPPROFILE",
    "HEAPCHECK",
    "PYTHONMALLOC",
    "PYTHONMALLOCSTATS",
    "GOGC",
    "GOMEMLIMIT",
    "GODEBUG",
    "GOMAXPROCS",
    "NODE_OPTIONS",
    "JAVA_TOOL_OPTIONS",
    "JDK_JAVA_OPTIONS",
    "_JAVA_OPTIONS",
    "JAVA_OPTS",
    "CATALINA_OPTS",
    "RUBYOPT",
    "USE_ZEND_ALLOC",
    "DOTNET_GCHeapHardLimit",
    "DOTNET_gcServer",
    "MALLOC_ARENA_MAX",
    "MALLOC_ARENA_TEST",
    "MALLOC_CHECK_",
    "MALLOC_MMAP_MAX_",
    "MALLOC_MMAP_THRESHOLD_",
    "MALLOC_PERTURB_",
    "MALLOC_TOP_PAD_",
    "MALLOC_TRIM_THRESHOLD_",
    "MALLOC_TCACHE_COUNT",
    "TCMALLOC_RELEASE_RATE",
    "TCMALLOC_MAX_TOTAL_THREAD_CACHE_BYTES",
    "TCMALLOC_HEAP_LIMIT_MB",
    "TCMALLOC_SAMPLE_PARAMETER",
    "TCMALLOC_AGGRESSIVE_DECOMMIT",
    "TCMALLOC_MEMFS_MALLOC_PATH",
    "MIMALLOC_PAGE_RESET",
    "MIMALLOC_PURGE_DELAY",
    "MIMALLOC_LARGE_OS_PAGES",
    "MIMALLOC_ALLOW_LARGE_OS_PAGES",
    "MIMALLOC_RESERVE_HUGE_OS_PAGES",
    "MIMALLOC_EAGER_COMMIT",
    "MIMALLOC_ARENA_EAGER_COMMIT",
    "RUBY_GC_HEAP_INIT_SLOTS",
    "RUBY_GC_HEAP_FREE_SLOTS",
    "RUBY_GC_HEAP_GROWTH_FACTOR",
    "RUBY_GC_HEAP_GROWTH_MAX_SLOTS",
    "RUBY_GC_HEAP_OLDOBJECT_LIMIT_FACTOR",
    "RUBY_GC_MALLOC_LIMIT",
    "RUBY_GC_MALLOC_LIMIT_MAX",
    "RUBY_GC_OLDMALLOC_LIMIT",
    "RUBY_YJIT_ENABLE",
];

/// Beginnings of such names, and what a name is called that is not in the list: nothing that the process chose is
/// repeated.
const BEGINNINGS: [(&str, &str); 6] = [
    ("MALLOC_", "MALLOC_*"),
    ("TCMALLOC_", "TCMALLOC_*"),
    ("MIMALLOC_", "MIMALLOC_*"),
    ("RUBY_GC_", "RUBY_GC_*"),
    ("JEMALLOC", "JEMALLOC*"),
    ("RUBY_YJIT_", "RUBY_YJIT_*"),
];

/// A variable for an allocator or a runtime.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryVariable {
    /// Its name; `MALLOC_*` of one that is not known.
    pub name: &'static str,
    /// Its value, if nothing else than a setting of an allocator can stand there.
    pub value: Option<String>,
}

/// Beginnings of names of which values are shown, if they are plain.
const SHOWN: [&str; 10] = [
    "MALLOC_",
    "_RJEM_MALLOC_CONF",
    "JE_MALLOC_CONF",
    "GLIBC_TUNABLES",
    "TCMALLOC_",
    "MIMALLOC_",
    "RUBY_GC_",
    "PYTHONMALLOC",
    "GO",
    "USE_ZEND_ALLOC",
];
/// A longer value is not shown.
const VALUE_MAX: usize = 200;

/// Returns the variables for allocators and runtimes that a process was started with, in their order.
///
/// # Errors
/// [`ReadError`] if it cannot be read: the process has ended, or this user may not trace it.
pub fn memory_variables(root: &Root, pid: u32) -> Result<Vec<MemoryVariable>, ReadError> {
    Ok(known(&root.read(&format!("/proc/{pid}/environ"))?))
}

/// Returns the known variables in a text, each name once.
fn known(text: &[u8]) -> Vec<MemoryVariable> {
    let mut found: Vec<MemoryVariable> = Vec::new();
    let variables = text.split(|byte| *byte == 0).filter_map(|entry| {
        let equals = memchr::memchr(b'=', entry)?;
        let name = known_name(&entry[..equals])?;
        Some(MemoryVariable { name, value: plain_value(name, &entry[equals + 1..]) })
    });
    for variable in variables {
        if found.iter().all(|one| one.name != variable.name) {
            found.push(variable);
        }
    }
    found
}

/// Returns a value that can be shown: of a known name that only an allocator reads, and made of numbers and options alone.
fn plain_value(name: &'static str, value: &[u8]) -> Option<String> {
    let is_shown = SHOWN.iter().any(|start| name.starts_with(start)) && !name.ends_with('*');
    let is_plain = |c: &u8| c.is_ascii_alphanumeric() || b"_.:,=+-".contains(c);
    let is_path = name.ends_with("_PATH");
    (is_shown && !is_path && value.len() <= VALUE_MAX && value.iter().all(is_plain))
        .then(|| String::from_utf8_lossy(value).into_owned())
}

fn known_name(name: &[u8]) -> Option<&'static str> {
    let whole = NAMES.iter().find(|one| one.as_bytes() == name);
    whole.copied().or_else(|| {
        let beginning = |pair: &&(&str, &str)| name.starts_with(pair.0.as_bytes());
        BEGINNINGS.iter().find(beginning).map(|(_, starred)| *starred)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hostile;

    const TEXT: &[u8] =
        b"PATH=/bin\0MALLOC_ARENA_MAX=2\0TOKEN=MALLOC_ARENA_MAX=9\0MALLOC_SECRETnoequals\0\
        RUBY_GC_X=hunter2\0LD_PRELOAD=/usr/lib/libjemalloc.so.2\0MALLOC_ARENA_MAX=3\0GOGC=off";

    #[test]
    fn only_known_names_leave() {
        let expected = [
            ("MALLOC_ARENA_MAX", Some("2")),
            ("RUBY_GC_*", None),
            ("LD_PRELOAD", None),
            ("GOGC", Some("off")),
        ];
        let found = known(TEXT);
        let found: Vec<_> = found.iter().map(|one| (one.name, one.value.as_deref())).collect();
        assert_eq!(found, expected);
        let printed = format!("{found:?}");
        assert!(!printed.contains("hunter2") && !printed.contains("jemalloc"));
    }

    #[test]
    fn a_value_that_may_be_more_than_a_setting_is_not_shown() {
        let text =
            b"MALLOC_CONF=dirty_decay_ms:0,narenas:2\0NODE_OPTIONS=--max-old-space-size=64\0\
            MALLOC_TOP_PAD_=p@ss word\0TCMALLOC_MEMFS_MALLOC_PATH=x\0GODEBUG=madvdontneed=1";
        let found = known(text);
        let shown: Vec<_> = found.iter().filter_map(|one| one.value.as_deref()).collect();
        assert_eq!(shown, ["dirty_decay_ms:0,narenas:2", "madvdontneed=1"]);
        assert_eq!(found.len(), 5);
    }

    #[test]
    fn no_text_makes_it_panic() {
        hostile::feed(TEXT, |text| {
            known(text);
        });
    }

    #[test]
    fn a_process_that_is_gone_is_an_error() {
        assert!(memory_variables(&Root::default(), 0x3fff_ffff).is_err());
        assert!(memory_variables(&Root::default(), std::process::id()).is_ok());
    }
}
