//! Levels as bytes: differences of integers, deflated.
//!
//! Format, for each level in order: its times; then, for each chart that has something to show and each of its series,
//! a byte that says which columns follow (none, the means, or means, least and largest values), and these columns. A
//! column has one number per row, in bytes of seven bits, the lowest first: 0 if nothing was measured, else one more
//! than the zigzag difference to the column's previous measured value. Values are integers, to be multiplied by the
//! scale of their series; times are in milliseconds.

use std::io::Write;

use flate2::Compression;
use flate2::write::DeflateEncoder;

use crate::{Chart, ColumnCells, CurveLevel, Drawing};

/// The bytes in the page, and the scales of their integers.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PackedLevels {
    /// Deflated, without a header.
    pub bytes: Vec<u8>,
    /// The value of one step, for each chart and each of its series. Empty for charts that have nothing to show, which
    /// have no bytes either.
    pub scales: Vec<Vec<f64>>,
}

/// The most bytes that packed levels may take. A page of a week has 3 MiB, of which the app, the text and tables take
/// 0.4; base64 makes four bytes of three.
pub(crate) const BYTES_MAX: usize = 1_950 << 10;

/// The least number of steps from 0 to the largest value of a series: half a step is less than a tenth of a pixel on a
/// chart 400 pixels high.
const STEPS: f64 = 4_096.0;
/// The same if small values must stay distinct: on a logarithmic axis, and if there are so few values that their bytes
/// do not matter.
const FINE_STEPS: f64 = 1_048_576.0;
/// Up to this many values count as few.
const PLAIN_VALUES_MAX: usize = 100_000;

/// The columns that a series has at a level.
const ABSENT: u8 = 0;
const MEANS: u8 = 1;
const WITH_EXTREMES: u8 = 3;

/// Packs a drawing into the bytes of the page.
pub fn pack(charts: &[Chart], drawing: &Drawing) -> PackedLevels {
    let levels: Vec<&CurveLevel> = drawing.levels.iter().collect();
    let scales = scales(charts, &levels);
    let mut writer = DeflateEncoder::new(Vec::new(), Compression::new(DEFLATE));
    let mut bytes = Vec::new();
    for level in levels {
        bytes.clear();
        put_level(level, &scales, &mut bytes);
        // Writing to memory cannot fail.
        let _ = writer.write_all(&bytes);
    }
    PackedLevels { bytes: writer.finish().unwrap_or_default(), scales }
}

/// Compression level, chosen by `cargo bench -p memtide --bench page`.
const DEFLATE: u32 = 6;

/// Returns an estimate of the bytes that a level takes, slightly too large.
pub(crate) fn size(charts: &[Chart], level: &CurveLevel) -> usize {
    let mut bytes = Vec::new();
    put_level(level, &scales(charts, &[level]), &mut bytes);
    let mut writer = DeflateEncoder::new(Vec::new(), Compression::fast());
    let _ = writer.write_all(&bytes);
    writer.finish().map_or(bytes.len(), |deflated| deflated.len())
}

fn scales(charts: &[Chart], levels: &[&CurveLevel]) -> Vec<Vec<f64>> {
    let values: usize = levels.iter().map(|level| values(level)).sum();
    let of_chart = |(place, chart): (usize, &Chart)| {
        let cells_of = |series| {
            let all = levels.iter().filter_map(move |level| level.cells.get(place)?.get(series));
            all.filter(|cells: &&ColumnCells| !cells.is_empty())
        };
        let series: Vec<_> = (0..chart.series.len()).map(cells_of).collect();
        if series.iter().all(|cells| cells.clone().next().is_none()) {
            return Vec::new();
        }
        let steps = if chart.is_log || values <= PLAIN_VALUES_MAX { FINE_STEPS } else { STEPS };
        let largest = series.into_iter().map(|cells| cells.map(largest).fold(0.0, f64::max));
        largest.map(|largest| scale(largest, steps)).collect()
    };
    charts.iter().enumerate().map(of_chart).collect()
}

fn values(level: &CurveLevel) -> usize {
    let all = level.cells.iter().flatten();
    all.map(|cells| columns(cells).map(<[_]>::len).sum::<usize>()).sum()
}

/// Returns the largest distance from 0.
fn largest(cells: &ColumnCells) -> f64 {
    let values = columns(cells).flatten().flatten();
    let sizes = values.map(|value| value.abs()).filter(|size| size.is_finite());
    sizes.fold(0.0, f64::max)
}

fn columns(cells: &ColumnCells) -> impl Iterator<Item = &[Option<f64>]> {
    let extremes =
        cells.extremes.iter().flat_map(|(least, most)| [least.as_slice(), most.as_slice()]);
    std::iter::once(cells.mean.as_slice()).chain(extremes)
}

/// Returns a power of two, so that integers convert back to values exactly, such that the largest value has at least
/// `steps` steps.
fn scale(largest: f64, steps: f64) -> f64 {
    if largest == 0.0 {
        return 1.0;
    }
    let scale = (largest / steps).log2().floor().exp2();
    if scale.is_normal() { scale } else { f64::MIN_POSITIVE }
}

fn put_level(level: &CurveLevel, scales: &[Vec<f64>], into: &mut Vec<u8>) {
    let mut before = 0;
    for time in &level.times {
        let at = time.as_nanos() / 1_000_000;
        put(at.saturating_sub(before), into);
        before = at.max(before);
    }
    let rows = level.times.len();
    for (chart, scales) in scales.iter().enumerate() {
        for (series, scale) in scales.iter().enumerate() {
            let cells = level.cells.get(chart).and_then(|cells| cells.get(series));
            put_series(cells, rows, *scale, into);
        }
    }
}

fn put_series(cells: Option<&ColumnCells>, rows: usize, scale: f64, into: &mut Vec<u8>) {
    let Some(cells) = cells.filter(|cells| !cells.is_empty()) else {
        into.push(ABSENT);
        return;
    };
    into.push(match cells.extremes {
        Some(_) => WITH_EXTREMES,
        None => MEANS,
    });
    for column in columns(cells) {
        let mut before = 0;
        for row in 0..rows {
            let value = column.get(row).copied().flatten();
            match value.filter(|value| value.is_finite()) {
                None => into.push(0),
                Some(value) => {
                    let number = steps(value, scale);
                    put(zigzag(number - before) + 1, into);
                    before = number;
                }
            }
        }
    }
}

/// Returns a value in steps of its scale. Only 0 becomes 0: the smallest value must not look like nothing.
fn steps(value: f64, scale: f64) -> i64 {
    const EXACT_INTEGER_MAX: f64 = 4_503_599_627_370_496.0; // 2⁵², as far as all integers are doubles with room for differences
    let steps = (value / scale).round().clamp(-EXACT_INTEGER_MAX, EXACT_INTEGER_MAX);
    #[allow(clippy::cast_possible_truncation)] // whole, and within 2⁵²
    let whole = steps as i64;
    match whole {
        0 if value > 0.0 => 1,
        0 if value < 0.0 => -1,
        _ => whole,
    }
}

fn zigzag(number: i64) -> u64 {
    (number << 1 ^ number >> 63).cast_unsigned()
}

/// Writes a number seven bits at a time, the lowest first. The highest bit is set in all bytes but the last.
fn put(mut number: u64, into: &mut Vec<u8>) {
    while number >= 0x80 {
        let [low, ..] = number.to_le_bytes();
        into.push(low | 0x80);
        number >>= 7;
    }
    let [low, ..] = number.to_le_bytes();
    into.push(low);
}

#[cfg(test)]
mod tests;
