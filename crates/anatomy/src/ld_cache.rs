//! `/etc/ld.so.cache`: where the dynamic linker finds libraries by their sonames, as `ldconfig` wrote it.
//!
//! Format: glibc's `sysdeps/generic/dl-cache.h`. A header of 48 bytes that begins with `glibc-ld.so.cache1.1`, then an entry of
//! 24 bytes for each library, then texts; offsets count from the header, before which glibc up to 2.31 wrote the older format.

const MAGIC: &[u8] = b"glibc-ld.so.cache1.1";
const HEADER_LEN: usize = 48;
const ENTRY_LEN: usize = 24;
/// Paths of one soname: variants for processors, and one for each architecture.
const PATHS_MAX: usize = 32;

/// Returns the paths of a soname, that which the linker prefers first.
pub(crate) fn paths_in_cache<'a>(cache: &'a [u8], soname: &[u8]) -> Vec<&'a [u8]> {
    let Some(start) = memchr::memmem::find(cache, MAGIC) else {
        return Vec::new();
    };
    let cache = &cache[start..];
    let Some(count) = number_at(cache, MAGIC.len()) else {
        return Vec::new();
    };
    let entries = cache.get(HEADER_LEN..).unwrap_or_default().chunks_exact(ENTRY_LEN);
    let named = entries.take(count).filter_map(|entry| {
        let key = text_at(cache, number_at(entry, 4)?)?;
        (key == soname).then(|| text_at(cache, number_at(entry, 8)?)).flatten()
    });
    named.take(PATHS_MAX).collect()
}

fn number_at(bytes: &[u8], at: usize) -> Option<usize> {
    let number = bytes.get(at..)?.first_chunk().map(|b| u32::from_le_bytes(*b))?;
    usize::try_from(number).ok()
}

/// A text that ends within the bounds of a path.
fn text_at(bytes: &[u8], at: usize) -> Option<&[u8]> {
    const PATH_LEN_MAX: usize = 4096;
    let rest = bytes.get(at..)?;
    let rest = &rest[..rest.len().min(PATH_LEN_MAX)];
    Some(&rest[..memchr::memchr(0, rest)?])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A cache of these sonames and paths.
    fn cache(entries: &[(&str, &str)]) -> Vec<u8> {
        let number = |n: usize| u32::try_from(n).unwrap().to_le_bytes();
        let mut texts = Vec::new();
        let mut rows = Vec::new();
        let start = HEADER_LEN + entries.len() * ENTRY_LEN;
        for (soname, path) in entries {
            rows.extend(number(0x303));
            for text in [soname, path] {
                rows.extend(number(start + texts.len()));
                texts.extend(text.bytes().chain([0]));
            }
            rows.extend([0; 12]);
        }
        let mut all = MAGIC.to_vec();
        all.extend(number(entries.len()));
        all.extend(number(texts.len()));
        all.resize(HEADER_LEN, 0);
        [all, rows, texts].concat()
    }

    const ENTRIES: [(&str, &str); 3] =
        [("libx.so.1", "/opt/libx.so.1"), ("liby.so", "/lib/liby.so"), ("libx.so.1", "/b")];

    #[test]
    fn a_soname_may_have_several_paths() {
        let cache = cache(&ENTRIES);
        assert_eq!(paths_in_cache(&cache, b"libx.so.1"), [b"/opt/libx.so.1".as_slice(), b"/b"]);
        assert_eq!(paths_in_cache(&cache, b"liby.so"), [b"/lib/liby.so"]);
        assert!(paths_in_cache(&cache, b"libx.so").is_empty());
        let older = [b"ld.so-1.7.0\0\0\0\0\0".as_slice(), &cache].concat();
        assert_eq!(paths_in_cache(&older, b"liby.so"), [b"/lib/liby.so"]);
    }

    proptest! {
        #[test]
        fn any_bytes_are_no_panic(bytes: Vec<u8>, cut in 0..200_usize) {
            paths_in_cache(&bytes, b"liby.so");
            paths_in_cache(&[MAGIC, &bytes].concat(), b"");
            let cache = cache(&ENTRIES);
            paths_in_cache(&cache[..cut.min(cache.len())], b"liby.so");
        }
    }
}
