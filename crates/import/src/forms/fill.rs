//! Units that text tells, and the figures that people print.

use crate::figure::{Base, Figure};

/// What a figure without suffix counts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Unit {
    /// For people: `MiB`.
    pub(super) name: &'static str,
    pub(super) bytes: f64,
}

pub(super) const KIB: f64 = 1024.0;

/// The cache of `free` and `vmstat` holds reclaimable slab, and buffers too where they share a column: the kernel's own
/// figure is better, so that this one counts as off by a page at least.
pub(super) const SLAB_IN_CACHE: f64 = 4096.0;

/// The unit of a name: `kB`, `MiB`. Tools that print sizes of memory as MB mean MiB.
pub(super) fn unit(name: &str) -> Option<Unit> {
    let of = |name, bytes| Some(Unit { name, bytes });
    match name.to_ascii_lowercase().as_str() {
        "b" | "bytes" | "byte" => of("bytes", 1.0),
        "kb" | "kib" | "kbytes" => of("KiB", KIB),
        "mb" | "mib" | "mbytes" => of("MiB", KIB * KIB),
        "gb" | "gib" | "gbytes" => of("GiB", KIB * KIB * KIB),
        "tb" | "tib" => of("TiB", KIB * KIB * KIB * KIB),
        _ => None,
    }
}

/// The unit that a heading tells in brackets: `series (MiB)`, `slab [kB]`, `memory in MB`.
pub(super) fn unit_in(heading: &str) -> Option<Unit> {
    let in_brackets = heading
        .split(['(', '['])
        .skip(1)
        .filter_map(|rest| rest.split([')', ']']).next())
        .flat_map(|inside| inside.split([' ', ',', ';']))
        .find_map(unit);
    in_brackets.or_else(|| {
        let words: Vec<&str> = heading.split_whitespace().collect();
        words
            .windows(2)
            .find_map(|two| (two[0] == "in").then(|| unit(two[1]))?)
    })
}

/// A figure of text that people print sizes in: binary suffixes.
pub(super) fn figure(word: &str) -> Option<Figure> {
    Figure::parse(word, Base::Binary)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings_tell_units() {
        for (heading, name) in [
            ("series (MiB)", Some("MiB")),
            ("slab series boot-1 (kB)", Some("KiB")),
            (
                "slab series boot-2 fault disabled (kB, every 10 s)",
                Some("KiB"),
            ),
            ("memory in MB", Some("MiB")),
            ("free [GiB]", Some("GiB")),
            ("atop (10 s)", None),
            ("free -m", None),
        ] {
            assert_eq!(unit_in(heading).map(|unit| unit.name), name, "{heading}");
        }
    }
}
