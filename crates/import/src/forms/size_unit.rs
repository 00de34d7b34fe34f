//! Units of sizes without a suffix, and the names of such units in text.

use crate::text::figure::{GIB, KIB, MIB, TIB};

/// What a figure without a suffix counts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct SizeUnit {
    /// Human-readable: `MiB`, `GiB, by the size`.
    pub(super) name: &'static str,
    pub(super) bytes: f64,
}

impl SizeUnit {
    pub(super) const KIB: Self = Self::new("KiB", KIB);

    pub(super) const fn new(name: &'static str, bytes: f64) -> Self {
        Self { name, bytes }
    }

    /// The unit with this name: `kB`, `MiB`. Tools that print memory in MB mean MiB.
    pub(super) fn named(name: &str) -> Option<Self> {
        Some(match name.to_ascii_lowercase().as_str() {
            "b" | "bytes" | "byte" => Self::new("bytes", 1.0),
            "kb" | "kib" | "kbytes" => Self::KIB,
            "mb" | "mib" | "mbytes" => Self::new("MiB", MIB),
            "gb" | "gib" | "gbytes" => Self::new("GiB", GIB),
            "tb" | "tib" => Self::new("TiB", TIB),
            _ => return None,
        })
    }

    /// The unit in a heading: `series (MiB)`, `slab [kB]`, `memory in MB`.
    pub(super) fn in_heading(heading: &str) -> Option<Self> {
        let in_brackets = heading
            .split(['(', '['])
            .skip(1)
            .filter_map(|rest| rest.split([')', ']']).next())
            .flat_map(|inside| inside.split([' ', ',', ';']))
            .find_map(Self::named);
        in_brackets.or_else(|| {
            let words: Vec<&str> = heading.split_whitespace().collect();
            words.windows(2).find_map(|two| (two[0] == "in").then(|| Self::named(two[1]))?)
        })
    }
}

/// The cache column of `free` and `vmstat` includes reclaimable slab, and buffers in `buff/cache`. An error of at
/// least a page lets the kernel's own figure take precedence.
pub(super) const SLAB_IN_CACHE: f64 = 4096.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings_name_units() {
        for (heading, name) in [
            ("series (MiB)", Some("MiB")),
            ("slab series boot-1 (kB)", Some("KiB")),
            ("slab series boot-2 fault disabled (kB, every 10 s)", Some("KiB")),
            ("memory in MB", Some("MiB")),
            ("free [GiB]", Some("GiB")),
            ("atop (10 s)", None),
            ("free -m", None),
        ] {
            let unit = SizeUnit::in_heading(heading);
            assert_eq!(unit.map(|unit| unit.name), name, "{heading}");
        }
    }
}
