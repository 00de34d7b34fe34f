//! Figures as tools print them: `1,028`, `3.6Gi`, `228M`, `0,01`; with what their rounding leaves open.

use timeline::Facts;
use units::{PageSize, Pages, Quantity};

/// A printed figure.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Figure {
    /// Its value, in the suffix's unit converted to single bytes, or plain where it has none.
    pub(crate) value: f64,
    /// How far the true value may lie from it. Decimals are printed to the nearest, half a step either way; of a whole
    /// figure, tools cut off the rest (`free -m`, `vmstat -S M`), or nothing tells that this one did not.
    pub(crate) error: f64,
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
        let suffix = word.trim_start_matches(|c: char| c.is_ascii_digit() || c == ',' || c == '.');
        let number = plain(word.strip_suffix(suffix)?)?;
        let decimals = number.split_once('.').map_or(0, |(_, after)| after.len());
        let value: f64 = number.parse().ok()?;
        let error = match decimals {
            0 => 1.0,
            _ => 0.1_f64.powi(i32::try_from(decimals).ok()?) / 2.0,
        };
        let unit = match suffix {
            "" => None,
            _ => Some(unit(suffix, base)?),
        };
        let factor = unit.unwrap_or(1.0);
        value.is_finite().then_some(Self {
            value: value * factor,
            error: error * factor,
            has_unit: unit.is_some(),
        })
    }
}

impl Figure {
    /// A whole figure without a suffix.
    pub(crate) const fn whole(value: f64) -> Self {
        Self {
            value,
            error: 1.0,
            has_unit: false,
        }
    }

    /// How far a figure in bytes leaves the true size open: 0 MiB of swap is none, 0 GiB may be nearly one.
    pub(crate) fn doubt(self) -> f64 {
        const NOTHING: f64 = 1_048_576.0;
        match self.value > 0.0 || self.error > NOTHING {
            true => self.error,
            false => 0.0,
        }
    }

    /// The figure in bytes; one without suffix counts units of that size.
    pub(crate) fn in_bytes(self, unit: f64) -> Self {
        let factor = if self.has_unit { 1.0 } else { unit };
        Self {
            value: self.value * factor,
            error: self.error * factor,
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
    let size = *facts.page_size.get_or_insert(PageSize::USUAL);
    raw(bytes / size.bytes().as_f64()).map(Pages::new)
}

/// The size of a page, where a line tells: a kernel report's list of free blocks begins with the smallest
/// (`DMA32: 2*4kB (UM) 0*8kB …`), and people ask for it (`getconf PAGESIZE`). It holds for the whole text, also for what
/// stands before it.
pub(crate) fn told_page_size(lines: &[&str]) -> Option<PageSize> {
    let answers = lines.iter().zip(lines.iter().skip(1));
    let asked = answers.filter(|(asked, _)| asked.contains("getconf PAGE"));
    let asked = asked.filter_map(|(_, answer)| answer.trim().parse().ok());
    let blocks = lines.iter().filter_map(|line| smallest_block(line));
    asked.chain(blocks).find_map(PageSize::from_bytes)
}

/// The size of the first of a list of free blocks, where the next is twice as large.
fn smallest_block(line: &str) -> Option<u64> {
    let (_, list) = line.split_once('*')?;
    let (kib, rest) = list.split_once("kB")?;
    let kib: u64 = kib.parse().ok()?;
    let (_, next) = rest.split_once('*')?;
    let (next, _) = next.split_once("kB")?;
    (next.parse() == Ok(kib.checked_mul(2)?)).then(|| kib.saturating_mul(1024))
}

/// A whole number of the catalogue's unit.
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
    fn each_tool_s_figures_carry_how_far_they_may_be_off() {
        const HEAD: &str = "       total  used  free  shared  buff/cache  available\n";
        const MIB: u64 = 1 << 20;
        for (text, signal, error) in [
            // Cut off, or nothing tells that they are not.
            (
                "$ free -m\nHEADMem: 7000 3000 1000 10 3000 3900\n",
                MEM_FREE.id(),
                Some(MIB),
            ),
            (
                "$ free -g\nHEADMem: 7 3 0 0 3 3\n",
                MEM_FREE.id(),
                Some(1024 * MIB),
            ),
            (
                "$ free -h\nHEADMem: 6.8Gi 2.9Gi 228Mi 10Mi 3.7Gi 3.8Gi\n",
                MEM_FREE.id(),
                Some(MIB),
            ),
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
            (
                "MemTotal:  15887 MB\nMemFree: 341 MB\n",
                MEM_FREE.id(),
                Some(MIB),
            ),
            (
                "NAME TYPE SIZE USED PRIO\n/swapfile file 2G 512M -2\n",
                SWAP_FREE.id(),
                Some(1025 * MIB),
            ),
            (
                "$ series (MiB)\nmem_avail\n1503\n",
                MEM_AVAILABLE.id(),
                Some(MIB),
            ),
            // To the nearest.
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
            // The kernel's own; reclaimable slab in the cache.
            (
                "$ free\nHEADMem: 7000000 3000000 1000000 10 3000000 3900000\n",
                MEM_FREE.id(),
                None,
            ),
            (
                "$ free\nHEADMem: 7000000 3000000 1000000 10 3000000 3900000\n",
                MEM_CACHED.id(),
                Some(4096),
            ),
            (
                "$ free -m\nHEADMem: 7000 3000 1000 0 3000 3900\n",
                MEM_SHMEM.id(),
                None,
            ),
        ] {
            let opened = paste(&text.replace("HEAD", HEAD));
            assert_eq!(opened.timeline.rounding_error(signal), error, "{text}");
        }
    }

    #[test]
    fn lists_of_free_blocks_and_getconf_tell_the_size_of_a_page() {
        for (text, bytes) in [
            (
                "Node 0 Normal: 105*64kB (UME) 9*128kB (U) 0*256kB = 1kB",
                Some(65_536),
            ),
            ("kernel: DMA: 1*4kB 0*8kB 1*16kB", Some(4_096)),
            ("$ getconf PAGESIZE\n16384", Some(16_384)),
            ("2*4kB and 3*4kB", None),
            ("2*99999999999999999999kB 3*1kB", None),
            ("1*18446744073709551615kB 3*1kB", None),
            ("$ getconf PAGE_SIZE", None),
        ] {
            let lines: Vec<&str> = text.lines().collect();
            let told = told_page_size(&lines).map(|page| page.bytes().get());
            assert_eq!(told, bytes, "{text}");
        }
    }

    #[test]
    fn suffixes_are_binary_unless_said_otherwise() {
        let mib = 1024.0 * 1024.0;
        for (word, base, value, error) in [
            ("228M", Base::Binary, 228.0 * mib, mib),
            (
                "3.5Gi",
                Base::Decimal,
                3.5 * 1024.0 * mib,
                0.05 * 1024.0 * mib,
            ),
            ("3.5G", Base::Decimal, 3.5e9, 0.05e9),
            ("0B", Base::Binary, 0.0, 1.0),
        ] {
            let figure = Figure::parse(word, base).unwrap();
            assert!((figure.value - value).abs() < 1.0, "{word} {figure:?}");
            assert!((figure.error - error).abs() < 1.0, "{word} {figure:?}");
            assert!(figure.has_unit);
        }
    }
}
