//! Guesses the unit of `vmstat`'s sizes if its command line was not pasted: by other blocks about the same memory,
//! else by the figures themselves.

use std::collections::BTreeSet;

use timeline::signals::{MEM_BUFFERS, MEM_CACHED, MEM_FREE};

use super::rows::VmstatRows;
use crate::builder::TimelineBuilder;
use crate::forms::size_unit::SizeUnit;
use crate::text::figure::{self, KIB};

const MIB: SizeUnit = SizeUnit::new("MiB, by the size", figure::MIB);
const BYTES: SizeUnit = SizeUnit::new("bytes, by the size", 1.0);
/// The unit if nothing decides.
const ASSUMED: SizeUnit = SizeUnit::new("KiB, assumed", KIB);

/// At most 64 rows are checked.
const ROWS: usize = 64;
/// This many different sizes are not whole pages of 4 KiB by chance.
const ROWS_ENOUGH: usize = 6;
/// In MiB this would be 2 TB of free memory and cache.
const TOO_MUCH: f64 = 2e6;
/// In KiB this would be less than 200 MB.
const TOO_LITTLE: f64 = 200_000.0;

/// Guesses the unit of rows.
pub(super) fn guess(rows: &VmstatRows<'_>, builder: &TimelineBuilder) -> SizeUnit {
    let sum = sum_of_first(rows);
    by_other_blocks(sum, builder).unwrap_or_else(|| by_figures(&sizes(rows), sum))
}

/// The problem to report if the unit is assumed.
pub(super) fn problem(unit: SizeUnit) -> Option<&'static str> {
    (unit == ASSUMED).then_some(
        "the command line of vmstat is missing, unit assumed: KiB; with -S M all sizes would be \
         1024 times larger",
    )
}

/// Free memory and cache of the first row.
fn sum_of_first(rows: &VmstatRows<'_>) -> f64 {
    ["free", "buff", "cache"]
        .into_iter()
        .filter_map(|column| rows.figure(rows.rows.first()?, column))
        .sum()
}

/// The unit in which the sum is about the free memory and cache that other blocks report.
fn by_other_blocks(sum: f64, builder: &TimelineBuilder) -> Option<SizeUnit> {
    builder.host(MEM_FREE.id())?;
    let parts = [MEM_FREE, MEM_BUFFERS, MEM_CACHED].map(|signal| builder.host(signal.id()));
    #[allow(clippy::cast_precision_loss)] // sizes below 2^53
    let expected: f64 = parts.into_iter().flatten().map(|bytes| bytes as f64).sum();
    let is_about = |unit: &SizeUnit| (0.5..=2.0).contains(&(sum * unit.bytes / expected));
    [SizeUnit::KIB, MIB, BYTES].into_iter().find(is_about)
}

/// All different sizes but 0.
fn sizes(rows: &VmstatRows<'_>) -> BTreeSet<u64> {
    let columns = ["swpd", "free", "buff", "cache", "inact", "active"];
    rows.rows
        .iter()
        .take(ROWS)
        .flat_map(|row| columns.map(|column| rows.figure(row, column)))
        .flatten()
        .filter_map(figure::raw)
        .filter(|size| *size > 0)
        .collect()
}

/// The kernel counts memory in pages: sizes in KiB are multiples of 4.
fn by_figures(sizes: &BTreeSet<u64>, sum: f64) -> SizeUnit {
    let are_multiples = |n: u64| sizes.iter().all(|size| size % n == 0);
    if sum > 1e8 && are_multiples(4096) {
        BYTES
    } else if sum >= TOO_MUCH || (sizes.len() >= ROWS_ENOUGH && are_multiples(4)) {
        SizeUnit::KIB
    } else if sum > 0.0 && sum < TOO_LITTLE && !are_multiples(4) {
        MIB
    } else {
        ASSUMED
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::paste;
    use timeline::signals::MEM_FREE;
    use units::Bytes;

    const HEAD: &str =
        " r  b   swpd   free   buff  cache   si   so    bi    bo   in   cs us sy id wa st\n";

    /// Free memory, and whether its unit was assumed.
    fn read(before: &str, sizes: &[&str]) -> (Option<Bytes>, bool) {
        let row = |sizes: &&str| format!(" 1  0 {sizes}  0  0  64  10  711  708 77 10  9  4  0\n");
        let rows: String = sizes.iter().map(row).collect();
        let opened = paste(&format!("{before}{HEAD}{rows}"));
        let is_assumed = opened.problems.iter().any(|p| p.contains("unit assumed: KiB"));
        (opened.timeline.last(MEM_FREE), is_assumed)
    }

    #[test]
    fn whole_pages_are_kib_and_small_odd_figures_are_mib() {
        for (sizes, bytes, is_assumed) in [
            (&["0 349408 12344 65432", "0 349412 12348 65436"][..], 349_412 << 10, false),
            (&["0 19408 1232 25432", "8 19412 1236 25440"], 19_412 << 10, false),
            (&["0 5123407 12345 8654321"], 5_123_407 << 10, false),
            (&["0 386 113 23123"], 386 << 20, false),
            (&["0 404750336 115642368 24246222848"], 404_750_336, false),
            (&["0 349408 123456 654321"], 349_408 << 10, true),
            (&["0 388 112 23124"], 388 << 10, true),
            (&["0 0 0 0"], 0, true),
        ] {
            assert_eq!(read("", sizes), (Some(Bytes::new(bytes)), is_assumed), "{sizes:?}");
        }
    }

    #[test]
    fn other_blocks_about_the_same_memory_decide() {
        let free = "               total        used        free      shared  buff/cache   available\nMem:           24105         482         388          12       23236       23240\nSwap:              0           0           0\n";
        let meminfo = "MemTotal:       24683520 kB\nMemFree:          397312 kB\nBuffers:          114688 kB\nCached:         23678976 kB\n";
        for before in [free, meminfo] {
            let read = read(before, &["0 388 112 23124"]);
            assert_eq!(read, (Some(Bytes::from_mib(388)), false), "{before}");
        }
    }
}
