//! What the kernel gave a program at its start: `/proc/PID/auxv`, pairs of machine words.
//!
//! `AT_SECURE` says that the program was started with more rights than its user has: by set-user-ID, set-group-ID, file
//! capabilities or a security module. The dynamic linker and malloc then ignore `LD_PRELOAD`, `MALLOC_*` and `GLIBC_TUNABLES`,
//! which `environ` shows all the same. Needs the right to trace the process. Cost: one read of 400 bytes.

use crate::error::ReadError;
use crate::kernel_file::Root;

/// Number of the entry, in `include/uapi/linux/auxvec.h`.
const AT_SECURE: u64 = 23;

/// Returns whether a process was started with more rights than its user has; `None` if the kernel does not show it.
///
/// # Errors
/// [`ReadError`] if there is no such process, or this user may not trace it.
pub fn is_secure_start(root: &Root, pid: u32) -> Result<Option<bool>, ReadError> {
    Ok(secure(&root.read(&format!("/proc/{pid}/auxv"))?))
}

/// The entries of a process of 64 bits. One of 32 bits has shorter words: read as these, its kinds are far too large.
fn secure(text: &[u8]) -> Option<bool> {
    /// The largest kind is 51 (6.18).
    const KIND_MAX: u64 = 1 << 16;
    let (words, _) = text.as_chunks::<8>();
    let words: Vec<u64> = words.iter().map(|word| u64::from_le_bytes(*word)).collect();
    let (pairs, _) = words.as_chunks::<2>();
    if pairs.iter().any(|[kind, _]| *kind > KIND_MAX) {
        return None;
    }
    pairs.iter().find(|[kind, _]| *kind == AT_SECURE).map(|[_, value]| *value != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(pairs: &[[u64; 2]]) -> Vec<u8> {
        pairs.as_flattened().iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    #[test]
    fn the_entry_is_found_among_others() {
        assert_eq!(secure(&text(&[[6, 4096], [23, 0], [0, 0]])), Some(false));
        assert_eq!(secure(&text(&[[23, 1], [0, 0]])), Some(true));
        assert_eq!(secure(&text(&[[6, 23], [0, 0]])), None, "a value is no kind");
        assert_eq!(secure(b""), None);
        let short = [33_u32, 0x7fff_e000, 16, 0xbfeb_fbff, 23, 0, 6, 4096, 0, 0, 0, 0];
        let short: Vec<u8> = short.iter().flat_map(|word| word.to_le_bytes()).collect();
        assert_eq!(secure(&short), None, "a process of 32 bits");
    }

    #[test]
    fn tests_are_started_by_their_own_user() {
        let own = is_secure_start(&Root::default(), std::process::id()).unwrap();
        assert_eq!(own, Some(false));
        assert!(is_secure_start(&Root::default(), 0x3fff_ffff).is_err());
    }
}
