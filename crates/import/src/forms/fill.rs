//! Figures into looks: units that text tells, and rounding that rules must know of.

use timeline::{Gauge, Signal};
use units::Bytes;

use crate::figure::{Base, Figure, raw};
use crate::looks::Look;

/// What a figure without suffix counts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Unit {
    /// For people: `MiB`.
    pub(super) name: &'static str,
    pub(super) bytes: f64,
}

pub(super) const KIB: f64 = 1024.0;

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

/// Sets a size, and notes how far the true one may lie from it. A figure without a suffix counts `unit` bytes.
pub(super) fn size(look: &mut Look, signal: Signal<Gauge<Bytes>>, figure: Figure, unit: f64) {
    let factor = match figure.has_unit {
        true => 1.0,
        false => unit,
    };
    let Some(value) = raw(figure.value * factor) else {
        return;
    };
    look.sample.host.set(signal, Bytes::new(value));
    // Tools cut off or round: a whole step either way. Sizes in KiB are the kernel's own.
    let step = raw(figure.step * factor).filter(|step| *step > 1024 && figure.value > 0.0);
    look.rounded.extend(step.map(|step| (signal.id(), step)));
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
