//! What the lab keeps between runs, in the user's cache: kernels, and whether KVM works.

use std::path::PathBuf;

/// Its directory, `~/.cache/memtide`; `None` for a user without a home.
pub(crate) fn cache_directory() -> Option<PathBuf> {
    let cache = std::env::var_os("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache")))?;
    Some(cache.join("memtide"))
}
