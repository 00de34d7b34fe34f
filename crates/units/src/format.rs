//! Formats of numbers: three significant digits at most, binary prefixes for sizes.

use std::fmt;

/// Writes `value` with just enough decimals for three significant digits: `1.5`, `12`, `0.03`, `61`.
pub(crate) fn number(value: f64, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let size = value.abs();
    if size == 0.0 || size >= 9.95 {
        write!(f, "{}", DigitGroups(value))
    } else if size >= 0.095 {
        let text = format!("{value:.1}");
        f.write_str(text.strip_suffix(".0").unwrap_or(&text))
    } else if size >= 0.0095 {
        write!(f, "{value:.2}")
    } else if size >= 0.00095 {
        write!(f, "{value:.3}")
    } else {
        f.write_str(if value < 0.0 { "-0" } else { "about 0" })
    }
}

/// A whole number with a comma between groups of three digits: `11,900`.
struct DigitGroups(f64);

impl fmt::Display for DigitGroups {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = format!("{:.0}", self.0.abs());
        if self.0 < -0.5 {
            f.write_str("-")?;
        }
        for (i, digit) in digits.chars().enumerate() {
            if i > 0 && (digits.len() - i).is_multiple_of(3) {
                f.write_str(",")?;
            }
            write!(f, "{digit}")?;
        }
        Ok(())
    }
}

/// Joins two quantities with a word, and names the unit once if both are printed in the same: `24 of 497 MiB`,
/// `900 KiB to 403 MiB`.
pub fn in_one_unit(first: impl fmt::Display, word: &str, second: impl fmt::Display) -> String {
    let (first, second) = (first.to_string(), second.to_string());
    match (first.split_once(' '), second.split_once(' ')) {
        (Some((number, unit)), Some((_, same))) if unit == same => {
            format!("{number} {word} {second}")
        }
        _ => format!("{first} {word} {second}"),
    }
}

/// Writes a size in bytes with the binary prefix that leaves one to four digits before the point.
pub(crate) fn bytes(value: f64, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    if value.is_infinite() {
        return f.write_str("unlimited");
    }
    const PREFIXES: [&str; 6] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
    let mut scaled = value;
    let mut prefix = 0;
    // 1023.5 would print as "1,024"; carry it into the next prefix instead.
    while scaled.abs() >= 1023.5 && prefix + 1 < PREFIXES.len() {
        scaled /= 1024.0;
        prefix += 1;
    }
    number(scaled, f)?;
    write!(f, " {}", PREFIXES[prefix])
}

/// Writes a duration given in seconds: `0.4 ms`, `12 s`, `5 min`, `3 h`, `2 d`.
pub(crate) fn seconds(value: f64, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let (scaled, unit) = match value.abs() {
        0.0 => (0.0, "s"),
        // A value that would be rounded up to the next unit is printed in that unit.
        s if s < 0.9995e-3 => (value * 1e6, "µs"),
        s if s < 0.9995 => (value * 1e3, "ms"),
        s if s < 119.5 => (value, "s"),
        s if s < 119.5 * 60.0 => (value / 60.0, "min"),
        s if s < 47.5 * 3600.0 => (value / 3600.0, "h"),
        _ => (value / 86_400.0, "d"),
    };
    number(scaled, f)?;
    write!(f, " {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Bytes;

    #[test]
    fn a_unit_that_both_have_is_written_once() {
        let free = Bytes::from_mib(24);
        assert_eq!(in_one_unit(free, "of", Bytes::from_mib(497)), "24 of 497 MiB");
        assert_eq!(in_one_unit(Bytes::from_kib(24), "of", free), "24 KiB of 24 MiB");
    }
}
