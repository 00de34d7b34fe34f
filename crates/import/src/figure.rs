//! Figures as tools print them: `1,028`, `3.6Gi`, `228M`, `0,01`; with what their rounding leaves open.

use timeline::Facts;
use units::{PageSize, Pages, Quantity};

/// A printed figure.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Figure {
    /// Its value, in the suffix's unit converted to single bytes, or plain where it has none.
    pub(crate) value: f64,
    /// Distance to the next figure that could have been printed.
    pub(crate) step: f64,
    /// Whether it has a suffix: then `value` is in bytes.
    pub(crate) has_unit: bool,
}

/// What a suffix without `i` means: `free -h` prints `3.6G` for binary units, `free --si` for decimal ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Base {
    Binary,
    Decimal,
}

impl Base {
    fn of(self, power: i32) -> f64 {
        match self {
            Self::Binary => 1024_f64.powi(power),
            Self::Decimal => 1000_f64.powi(power),
        }
    }
}

impl Figure {
    /// Reads a figure; `None` where the word is none. Negative ones are none: no size is negative.
    pub(crate) fn parse(word: &str, base: Base) -> Option<Self> {
        let digits = word.find(|c: char| !(c.is_ascii_digit() || c == ',' || c == '.'));
        let (number, suffix) = word.split_at(digits.unwrap_or(word.len()));
        let number = plain(number)?;
        let decimals = number.split_once('.').map_or(0, |(_, after)| after.len());
        let value: f64 = number.parse().ok()?;
        let step = 0.1_f64.powi(i32::try_from(decimals).ok()?);
        let unit = match suffix {
            "" => None,
            _ => Some(unit(suffix, base)?),
        };
        let factor = unit.unwrap_or(1.0);
        value.is_finite().then_some(Self {
            value: value * factor,
            step: step * factor,
            has_unit: unit.is_some(),
        })
    }
}

impl Figure {
    /// The figure in bytes; one without suffix counts units of that size.
    pub(crate) fn in_bytes(self, unit: f64) -> Self {
        let factor = if self.has_unit { 1.0 } else { unit };
        Self {
            value: self.value * factor,
            step: self.step * factor,
            has_unit: true,
        }
    }
}

/// The size of a unit in bytes: `K`, `kB`, `KiB`, `Gi`, `B`.
fn unit(suffix: &str, base: Base) -> Option<f64> {
    let power = |c| match c {
        'k' | 'K' => Some(1),
        'm' | 'M' => Some(2),
        'g' | 'G' => Some(3),
        't' | 'T' => Some(4),
        'p' | 'P' => Some(5),
        _ => None,
    };
    let mut chars = suffix.chars();
    let first = chars.next()?;
    if first == 'B' && chars.as_str().is_empty() {
        return Some(1.0);
    }
    let power = power(first)?;
    match chars.as_str() {
        "" | "B" | "b" => Some(base.of(power)),
        "i" | "iB" | "ib" => Some(Base::Binary.of(power)),
        _ => None,
    }
}

/// The number with a point for its decimals and without marks between thousands. `1,028` is over a thousand, `0,01` and
/// `3,6` are not.
fn plain(number: &str) -> Option<String> {
    if !number.starts_with(|c: char| c.is_ascii_digit()) || number.len() > 30 {
        return None;
    }
    let groups = |mark| {
        let mut parts = number.split(mark);
        let head = parts.next().unwrap_or_default();
        (1..=3).contains(&head.len())
            && head != "0"
            && number.contains(mark)
            && parts.all(|p| p.len() == 3 && p.bytes().all(|b| b.is_ascii_digit()))
    };
    let (commas, points) = (number.matches(',').count(), number.matches('.').count());
    Some(match (commas, points) {
        (0, 0 | 1) => number.to_owned(),
        (1, 0) if !groups(',') => number.replace(',', "."),
        (_, 0) if groups(',') => number.replace(',', ""),
        (0, _) if groups('.') => number.replace('.', ""),
        // `1,234.5` and `1.234,5`.
        (_, 1) if number.rfind('.') > number.rfind(',') => number.replace(',', ""),
        (1, _) if number.rfind(',') > number.rfind('.') => {
            number.replace('.', "").replace(',', ".")
        }
        _ => return None,
    })
}

/// Pages that make up so many bytes. Where nothing told their size, they are the 4 KiB of all common machines; what is
/// computed back to bytes with that size is right either way.
pub(crate) fn pages(bytes: f64, facts: &mut Facts) -> Option<Pages> {
    let size = facts.page_size.or_else(|| PageSize::from_bytes(4096))?;
    facts.page_size = Some(size);
    raw(bytes / size.bytes().as_f64()).map(Pages::new)
}

/// A whole number of the catalogue's unit.
pub(crate) fn raw(value: f64) -> Option<u64> {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // checked
    (0.0..9e18).contains(&value).then(|| value.round() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_between_thousands_and_before_decimals_are_told_apart() {
        for (word, value) in [
            ("1,028", 1028.0),
            ("80,429", 80_429.0),
            ("1,234,567", 1_234_567.0),
            ("3,6", 3.6),
            ("0,01", 0.01),
            ("0,013", 0.013),
            ("1.234.567", 1_234_567.0),
            ("1,234.50", 1234.5),
            ("1.234,50", 1234.5),
            ("0", 0.0),
            ("207.55", 207.55),
        ] {
            assert_eq!(
                Figure::parse(word, Base::Binary).map(|f| f.value),
                Some(value),
                "{word}"
            );
        }
        for word in ["", "-1", "x", "1,2,3", "1,,028", ".5", "3.6Q", "1:2"] {
            assert_eq!(Figure::parse(word, Base::Binary), None, "{word}");
        }
    }

    #[test]
    fn suffixes_are_binary_unless_said_otherwise() {
        let mib = 1024.0 * 1024.0;
        for (word, base, value, step) in [
            ("228M", Base::Binary, 228.0 * mib, mib),
            (
                "3.5Gi",
                Base::Decimal,
                3.5 * 1024.0 * mib,
                0.1 * 1024.0 * mib,
            ),
            ("3.5G", Base::Decimal, 3.5e9, 0.1e9),
            ("0B", Base::Binary, 0.0, 1.0),
        ] {
            let figure = Figure::parse(word, base).unwrap();
            assert!((figure.value - value).abs() < 1.0, "{word} {figure:?}");
            assert!((figure.step - step).abs() < 1.0, "{word} {figure:?}");
            assert!(figure.has_unit);
        }
    }
}
