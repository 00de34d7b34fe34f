//! Which settings of allocators a process was started with: names of variables in `/proc/PID/environ`.
//!
//! Only names leave this module: a value may be a secret. The file shows the variables with which the program was
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

/// Returns the names of the variables for allocators and runtimes that a process was started with, in their order.
///
/// # Errors
/// [`ReadError`] if it cannot be read: the process has ended, or this user may not trace it.
pub fn memory_variables(root: &Root, pid: u32) -> Result<Vec<&'static str>, ReadError> {
    Ok(known(&root.read(&format!("/proc/{pid}/environ"))?))
}

/// Returns the known names in a text, each once.
fn known(text: &[u8]) -> Vec<&'static str> {
    let mut found = Vec::new();
    let names = text.split(|byte| *byte == 0).filter_map(|entry| {
        let equals = memchr::memchr(b'=', entry)?;
        known_name(&entry[..equals])
    });
    for name in names {
        if !found.contains(&name) {
            found.push(name);
        }
    }
    found
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
        let expected = ["MALLOC_ARENA_MAX", "RUBY_GC_*", "LD_PRELOAD", "GOGC"];
        assert_eq!(known(TEXT), expected);
        let printed = format!("{:?}", known(TEXT));
        assert!(!printed.contains("hunter2") && !printed.contains("jemalloc"));
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
