//! The unit of `vmstat`'s sizes where its command line was not pasted: what was said of the same memory tells, else the
//! figures themselves.

use std::collections::BTreeSet;

use timeline::signals::{MEM_BUFFERS, MEM_CACHED, MEM_FREE};

use super::options::Unit;
use super::rows::Rows;
use crate::looks::Looks;

const MIB: Unit = Unit {
    name: "MiB, by the size",
    bytes: 1_048_576.0,
};
const BYTES: Unit = Unit {
    name: "bytes, by the size",
    bytes: 1.0,
};
/// Where nothing decides.
const ASSUMED: Unit = Unit {
    name: "KiB, assumed",
    bytes: 1024.0,
};

/// Rows that are looked at.
const ROWS: usize = 64;
/// So many different sizes that are whole pages of 4 KiB are no accident.
const ENOUGH: usize = 6;
/// As MiB that were 2 TB, which few have and nobody leaves free or to the cache.
const TOO_MUCH: f64 = 2e6;
/// As KiB this were less than 200 MB in all.
const TOO_LITTLE: f64 = 200_000.0;

/// The unit of rows, of which the blocks before may tell.
pub(super) fn unit(rows: &Rows<'_>, looks: &Looks) -> Unit {
    let sum = of_first(rows);
    as_was_said(sum, looks).unwrap_or_else(|| of_figures(&sizes(rows), sum))
}

/// What is to be said where the unit is a guess.
pub(super) fn problem(unit: Unit) -> Option<&'static str> {
    (unit == ASSUMED).then_some(
        "the command line of vmstat is not shown, unit assumed: KiB; with -S M sizes are 1024 times as large",
    )
}

/// Free memory and cache of the first row.
fn of_first(rows: &Rows<'_>) -> f64 {
    let of = |column| rows.rows.first().and_then(|row| rows.figure(row, column));
    let columns = ["free", "buff", "cache"];
    columns.into_iter().filter_map(of).sum()
}

/// The unit in which the sum is about the free memory and cache of the blocks before.
fn as_was_said(sum: f64, looks: &Looks) -> Option<Unit> {
    looks.host(MEM_FREE.id())?;
    let parts = [MEM_FREE, MEM_BUFFERS, MEM_CACHED].map(|signal| looks.host(signal.id()));
    #[allow(clippy::cast_precision_loss)] // sizes below 2^53
    let said: f64 = parts.into_iter().flatten().map(|bytes| bytes as f64).sum();
    let is_about = |unit: &Unit| (0.5..=2.0).contains(&(sum * unit.bytes / said));
    [Unit::KIB, MIB, BYTES].into_iter().find(is_about)
}

/// Sizes that differ and are more than nothing.
fn sizes(rows: &Rows<'_>) -> BTreeSet<u64> {
    let columns = ["swpd", "free", "buff", "cache", "inact", "active"];
    let rows_seen = rows.rows.iter().take(ROWS);
    rows_seen
        .flat_map(|row| columns.map(|column| rows.figure(row, column)))
        .flatten()
        .filter_map(crate::figure::raw)
        .filter(|size| *size > 0)
        .collect()
}

/// The kernel counts memory in pages: sizes in KiB are multiples of 4.
fn of_figures(sizes: &BTreeSet<u64>, sum: f64) -> Unit {
    let are_whole = |of: u64| sizes.iter().all(|size| size % of == 0);
    if sum > 1e8 && are_whole(4096) {
        BYTES
    } else if sum >= TOO_MUCH || (sizes.len() >= ENOUGH && are_whole(4)) {
        Unit::KIB
    } else if sum > 0.0 && sum < TOO_LITTLE && !are_whole(4) {
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

    /// Free memory, and whether its unit is said to be assumed.
    fn read(before: &str, sizes: &[&str]) -> (Option<Bytes>, bool) {
        let row = |sizes: &&str| format!(" 1  0 {sizes}  0  0  64  10  711  708 77 10  9  4  0\n");
        let rows: String = sizes.iter().map(row).collect();
        let opened = paste(&format!("{before}{HEAD}{rows}"));
        let is_assumed = opened
            .problems
            .iter()
            .any(|p| p.contains("unit assumed: KiB"));
        (opened.timeline.last(MEM_FREE), is_assumed)
    }

    #[test]
    fn whole_pages_are_kib_and_small_odd_figures_are_mib() {
        for (sizes, bytes, is_assumed) in [
            (
                &["0 349408 12344 65432", "0 349412 12348 65436"][..],
                349_412 << 10,
                false,
            ),
            (
                &["0 19408 1232 25432", "8 19412 1236 25440"],
                19_412 << 10,
                false,
            ),
            (&["0 5123407 12345 8654321"], 5_123_407 << 10, false),
            (&["0 386 113 23123"], 386 << 20, false),
            (&["0 404750336 115642368 24246222848"], 404_750_336, false),
            (&["0 349408 123456 654321"], 349_408 << 10, true),
            (&["0 388 112 23124"], 388 << 10, true),
            (&["0 0 0 0"], 0, true),
        ] {
            assert_eq!(
                read("", sizes),
                (Some(Bytes::new(bytes)), is_assumed),
                "{sizes:?}"
            );
        }
    }

    #[test]
    fn what_was_said_of_the_same_memory_decides() {
        let free = "               total        used        free      shared  buff/cache   available\nMem:           24105         482         388          12       23236       23240\nSwap:              0           0           0\n";
        let meminfo = "MemTotal:       24683520 kB\nMemFree:          397312 kB\nBuffers:          114688 kB\nCached:         23678976 kB\n";
        for before in [free, meminfo] {
            let read = read(before, &["0 388 112 23124"]);
            assert_eq!(read, (Some(Bytes::from_mib(388)), false), "{before}");
        }
    }
}
