//! Figures as tools print them: `1,028`, `3.6Gi`, `228M`, `0,01`, with the error of their rounding.

use timeline::Facts;
use units::{PageSize, Pages, Quantity};

pub(crate) const KIB: f64 = 1024.0;
pub(crate) const MIB: f64 = 1024.0 * KIB;
pub(crate) const GIB: f64 = 1024.0 * MIB;
pub(crate) const TIB: f64 = 1024.0 * GIB;

/// A printed figure.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct PrintedFigure {
    /// Its value: in bytes if it has a suffix.
    pub(crate) value: f64,
    /// By how much it may be off. Figures with decimals are rounded to the nearest: half a step. Whole figures may be
    /// truncated (`free -m`, `vmstat -S M`): a step.
    pub(crate) error: f64,
    /// Whether it has a suffix.
    pub(crate) has_unit: bool,
}

/// The base of a suffix without `i`: `3.6G` is binary from `free -h`, and decimal from `free --si`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Base {
    Binary,
    Decimal,
}

impl Base {
    fn pow(self, power: i32) -> f64 {
        match self {
            Self::Binary => 1024_f64.powi(power),
            Self::Decimal => 1000_f64.powi(power),
        }
    }
}

impl PrintedFigure {
    /// Reads a figure; `None` if the word is none. No size is negative.
    pub(crate) fn parse(word: &str, base: Base) -> Option<Self> {
        let suffix = word.trim_start_matches(|c: char| c.is_ascii_digit() || c == ',' || c == '.');
        let number = plain(word.strip_suffix(suffix)?)?;
        let decimals = number.split_once('.').map_or(0, |(_, after)| after.len());
        let value: f64 = number.parse().ok()?;
        let error = match decimals {
            0 => 1.0,
            _ => 0.1_f64.powi(i32::try_from(decimals).ok()?) / 2.0,
        };
        let unit = if suffix.is_empty() { None } else { Some(unit(suffix, base)?) };
        let factor = unit.unwrap_or(1.0);
        value.is_finite().then_some(Self {
            value: value * factor,
            error: error * factor,
            has_unit: unit.is_some(),
        })
    }

    /// Reads a figure with binary suffixes.
    pub(crate) fn binary(word: &str) -> Option<Self> {
        Self::parse(word, Base::Binary)
    }

    /// Reads a figure with a binary suffix; `None` without one.
    pub(crate) fn with_unit(word: &str) -> Option<Self> {
        Self::binary(word).filter(|figure| figure.has_unit)
    }

    /// A whole figure without a suffix.
    pub(crate) const fn whole(value: f64) -> Self {
        Self { value, error: 1.0, has_unit: false }
    }

    /// The error of a figure in bytes: 0 MiB of swap is exact, 0 GiB may be nearly 1 GiB.
    pub(crate) fn doubt(self) -> f64 {
        if self.value > 0.0 || self.error > MIB { self.error } else { 0.0 }
    }

    /// The figure in bytes. Without a suffix it counts `unit` bytes.
    pub(crate) fn in_bytes(self, unit: f64) -> Self {
        let factor = if self.has_unit { 1.0 } else { unit };
        Self { value: self.value * factor, error: self.error * factor, has_unit: true }
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
        "" | "B" | "b" => Some(base.pow(power)),
        "i" | "iB" | "ib" => Some(Base::Binary.pow(power)),
        _ => None,
    }
}

/// The number with a decimal point and without thousands separators. `1,028` has one; in `0,01` and `3,6` the comma is
/// a decimal point.
fn plain(number: &str) -> Option<String> {
    if !number.starts_with(|c: char| c.is_ascii_digit()) || number.len() > 30 {
        return None;
    }
    let are_thousands = |mark| {
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
        (1, 0) if !are_thousands(',') => number.replace(',', "."),
        (_, 0) if are_thousands(',') => number.replace(',', ""),
        (0, _) if are_thousands('.') => number.replace('.', ""),
        // `1,234.5` and `1.234,5`.
        (_, 1) if number.rfind('.') > number.rfind(',') => number.replace(',', ""),
        (1, _) if number.rfind(',') > number.rfind('.') => {
            number.replace('.', "").replace(',', ".")
        }
        _ => return None,
    })
}

/// Converts bytes to pages. An unknown page size is taken as 4 KiB; converting back gives the same bytes in any case.
pub(crate) fn pages(bytes: f64, facts: &mut Facts) -> Option<Pages> {
    let size = *facts.page_size.get_or_insert(PageSize::USUAL);
    raw(bytes / size.bytes().as_f64()).map(Pages::new)
}

/// The page size, from `getconf PAGESIZE` or from the list of free blocks in a kernel report, which begins with the
/// smallest (`DMA32: 2*4kB (UM) 0*8kB …`). It applies to the whole text.
pub(crate) fn page_size_in(lines: &[&str]) -> Option<PageSize> {
    let printed = lines
        .iter()
        .zip(lines.iter().skip(1))
        .filter(|(command, _)| command.contains("getconf PAGE"))
        .filter_map(|(_, output)| output.trim().parse().ok());
    let blocks = lines.iter().filter_map(|line| smallest_block(line));
    printed.chain(blocks).find_map(PageSize::from_bytes)
}

/// The first size in a list of free blocks, in which the next one is twice as large.
fn smallest_block(line: &str) -> Option<u64> {
    let (_, list) = line.split_once('*')?;
    let (kib, rest) = list.split_once("kB")?;
    let kib: u64 = kib.parse().ok()?;
    let (_, next) = rest.split_once('*')?;
    let (next, _) = next.split_once("kB")?;
    (next.parse() == Ok(kib.checked_mul(2)?)).then(|| kib.saturating_mul(1024))
}

/// Rounds a reading to a whole number.
pub(crate) fn raw(value: f64) -> Option<u64> {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // checked
    (0.0..9e18).contains(&value).then(|| value.round() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::paste;
    use timeline::signals::*;

    #[test]
    fn thousands_separators_and_decimal_points_are_distinguished() {
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
                PrintedFigure::parse(word, Base::Binary).map(|f| f.value),
                Some(value),
                "{word}"
            );
        }
        for word in ["", "-1", "x", "1,2,3", "1,,028", ".5", "3.6Q", "1:2"] {
            assert_eq!(PrintedFigure::parse(word, Base::Binary), None, "{word}");
        }
    }

    #[test]
    fn figures_of_each_tool_have_their_rounding_error() {
        const HEAD: &str = "       total  used  free  shared  buff/cache  available\n";
        const MIB: u64 = 1 << 20;
        for (text, signal, error) in [
            // Truncated, or possibly so.
            ("$ free -m\nHEADMem: 7000 3000 1000 10 3000 3900\n", MEM_FREE.id(), Some(MIB)),
            ("$ free -g\nHEADMem: 7 3 0 0 3 3\n", MEM_FREE.id(), Some(1024 * MIB)),
            ("$ free -h\nHEADMem: 6.8Gi 2.9Gi 228Mi 10Mi 3.7Gi 3.8Gi\n", MEM_FREE.id(), Some(MIB)),
            (
                "$ vmstat -S M\n r b swpd free buff cache si so\n 1 0 5 386 113 2123 0 0\n",
                MEM_FREE.id(),
                Some(MIB),
            ),
            (
                "$ vmstat -s -S M\n 7000 M total memory\n 386 M free memory\n",
                MEM_FREE.id(),
                Some(MIB),
            ),
            ("MemTotal:  15887 MB\nMemFree: 341 MB\n", MEM_FREE.id(), Some(MIB)),
            (
                "NAME TYPE SIZE USED PRIO\n/swapfile file 2G 512M -2\n",
                SWAP_FREE.id(),
                Some(1025 * MIB),
            ),
            ("$ series (MiB)\nmem_avail\n1503\n", MEM_AVAILABLE.id(), Some(MIB)),
            // Rounded to the nearest.
            (
                "$ free -h\nHEADMem: 6.8Gi 2.9Gi 228Mi 10Mi 3.7Gi 3.8Gi\n",
                MEM_TOTAL.id(),
                Some(53_687_091),
            ),
            (
                "MiB Mem :  15887.4 total,    341.2 free,  10007.1 used,   5539.1 buff/cache\n",
                MEM_FREE.id(),
                Some(52_429),
            ),
            // Exact, as from the kernel; but the cache includes reclaimable slab.
            ("$ free\nHEADMem: 7000000 3000000 1000000 10 3000000 3900000\n", MEM_FREE.id(), None),
            (
                "$ free\nHEADMem: 7000000 3000000 1000000 10 3000000 3900000\n",
                MEM_CACHED.id(),
                Some(4096),
            ),
            ("$ free -m\nHEADMem: 7000 3000 1000 0 3000 3900\n", MEM_SHMEM.id(), None),
        ] {
            let opened = paste(&text.replace("HEAD", HEAD));
            assert_eq!(opened.timeline.rounding_error(signal), error, "{text}");
        }
    }

    #[test]
    fn lists_of_free_blocks_and_getconf_have_the_page_size() {
        for (text, bytes) in [
            ("Node 0 Normal: 105*64kB (UME) 9*128kB (U) 0*256kB = 1kB", Some(65_536)),
            ("kernel: DMA: 1*4kB 0*8kB 1*16kB", Some(4_096)),
            ("$ getconf PAGESIZE\n16384", Some(16_384)),
            ("2*4kB and 3*4kB", None),
            ("2*99999999999999999999kB 3*1kB", None),
            ("1*18446744073709551615kB 3*1kB", None),
            ("$ getconf PAGE_SIZE", None),
        ] {
            let lines: Vec<&str> = text.lines().collect();
            let found = page_size_in(&lines).map(|page| page.bytes().get());
            assert_eq!(found, bytes, "{text}");
        }
    }

    #[test]
    fn suffixes_are_binary_by_default() {
        for (word, base, value, error) in [
            ("228M", Base::Binary, 228.0 * super::MIB, super::MIB),
            ("3.5Gi", Base::Decimal, 3.5 * 1024.0 * super::MIB, 0.05 * 1024.0 * super::MIB),
            ("3.5G", Base::Decimal, 3.5e9, 0.05e9),
            ("0B", Base::Binary, 0.0, 1.0),
        ] {
            let figure = PrintedFigure::parse(word, base).unwrap();
            assert!((figure.value - value).abs() < 1.0, "{word} {figure:?}");
            assert!((figure.error - error).abs() < 1.0, "{word} {figure:?}");
            assert!(figure.has_unit);
        }
    }
}
