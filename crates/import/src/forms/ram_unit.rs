//! The unit of a `MemTotal` without one, by the sizes that hosts have: not 16 MiB, and not 20 TiB.

use super::size_unit::SizeUnit;
use crate::text::figure::{KIB, MIB, TIB};

/// The RAM of any host is between these bounds.
const RAM_BYTES_MIN: f64 = 64.0 * MIB;
const RAM_BYTES_MAX: f64 = 16.0 * TIB;
/// Most hosts have at most this much RAM.
const USUAL: f64 = TIB;

/// The unit of sizes, as a `MemTotal` without a unit shows it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum TotalUnit {
    /// KiB, as in `/proc/meminfo`.
    Kib,
    /// The only unit that gives a plausible size.
    BySize(SizeUnit),
    /// Several units do, or none.
    Unknown,
}

/// Whether a host may have this much RAM.
pub(super) fn is_of_host(bytes: f64) -> bool {
    (RAM_BYTES_MIN..=RAM_BYTES_MAX).contains(&bytes)
}

/// The unit of a `MemTotal` without a unit.
pub(super) fn unit_of_total(total: f64) -> TotalUnit {
    if (RAM_BYTES_MIN..=USUAL).contains(&(total * KIB)) {
        return TotalUnit::Kib;
    }
    let units =
        [("bytes", RAM_BYTES_MAX), ("KiB", RAM_BYTES_MAX), ("MiB", RAM_BYTES_MAX), ("GiB", USUAL)];
    let could_be = |(name, most): (&str, f64)| {
        SizeUnit::named(name)
            .filter(|unit| is_of_host(total * unit.bytes) && total * unit.bytes <= most)
    };
    let mut possible = units.into_iter().filter_map(could_be);
    match (possible.next(), possible.next()) {
        (Some(only), None) => TotalUnit::BySize(only),
        _ => TotalUnit::Unknown,
    }
}

/// The problem to report for a unit that was assumed or is unknown.
pub(super) fn unit_problem(unit: TotalUnit) -> Option<String> {
    match unit {
        TotalUnit::Kib => None,
        TotalUnit::BySize(unit) => Some(format!(
            "MemTotal has no unit and cannot be KiB: taken as {}, unit by the size",
            unit.name
        )),
        TotalUnit::Unknown => Some(
            "MemTotal has no unit and can hardly be KiB: sizes are not used; paste them with their \
             kB"
                .to_owned(),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_total_without_a_unit_is_in_the_only_plausible_one() {
        let by_size = |name| TotalUnit::BySize(SizeUnit::named(name).unwrap());
        for (total, unit) in [
            (16_303_428.0, TotalUnit::Kib),
            (524_288.0, TotalUnit::Kib),
            (16_384.0, by_size("MiB")),
            (33_285_996_544.0, by_size("bytes")),
            // 15.5 GiB, or 15.5 TiB.
            (16_694_710_272.0, TotalUnit::Unknown),
            (512.0, TotalUnit::Unknown),
            (0.0, TotalUnit::Unknown),
            (1e30, TotalUnit::Unknown),
        ] {
            assert_eq!(unit_of_total(total), unit, "{total}");
        }
    }
}
