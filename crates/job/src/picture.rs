//! The curve as a picture of characters: I/O over the size of the cache.

use report::text::{Style, StyledText, piece, width};
use units::{Bytes, Quantity};

use crate::curve::{CurvePoint, JobCurve};

/// Lines of the picture, without its axis.
const HEIGHT: usize = 8;

/// Columns left of it.
const MARGIN: usize = 10;

/// Reads: the colour of page cache in all of memtide.
const READ: Style = Style::Data(36);

/// What is written to the disk.
const WRITTEN: Style = Style::Data(166);

/// The largest size by the smallest one from which the axis is one of powers of two.
const LOGARITHMIC_FROM: f64 = 40.0;

/// Sizes along the axis.
struct SizeAxis {
    from: f64,
    to: f64,
    columns: usize,
    is_logarithmic: bool,
}

impl SizeAxis {
    fn of(curve: &JobCurve, columns: usize) -> Self {
        let edge = curve.cliffs.iter().map(|cliff| cliff.from_bytes).min().unwrap_or_default();
        let top = curve.cliffs.iter().map(|cliff| cliff.to_bytes).max().unwrap_or_default();
        let (edge, to) = (edge.as_f64().max(1.0), top.as_f64() * 1.15);
        let is_logarithmic = to / edge > LOGARITHMIC_FROM;
        Self { from: if is_logarithmic { edge / 4.0 } else { 0.0 }, to, columns, is_logarithmic }
    }

    fn size_at(&self, column: usize) -> Bytes {
        let share = column as f64 / self.columns.saturating_sub(1).max(1) as f64;
        Bytes::from_f64(if self.is_logarithmic {
            self.from * (self.to / self.from).powf(share)
        } else {
            self.to * share
        })
    }

    fn column_of(&self, size: Bytes) -> Option<usize> {
        (0..self.columns).find(|column| self.size_at(*column) >= size)
    }
}

/// Returns the lines of the picture; none where there is no cliff to see.
pub(crate) fn picture(curve: &JobCurve, now: Option<Bytes>, cells: usize) -> Vec<Vec<StyledText>> {
    if curve.cliffs.is_empty() || curve.net_bytes_most == Bytes::ZERO {
        return Vec::new();
    }
    let columns = cells.saturating_sub(MARGIN + 2).clamp(20, 66);
    let axis = SizeAxis::of(curve, columns);
    let at: Vec<&CurvePoint> =
        (0..columns).filter_map(|column| below(curve, axis.size_at(column))).collect();
    let most = curve.net_bytes_most.as_f64();
    let eighths = |bytes: Bytes| bytes.as_f64() / most * (HEIGHT * 8) as f64;
    let mut lines = vec![vec![
        piece(Style::Faint, format!("{:MARGIN$}", "I/O")),
        piece(READ, "█"),
        piece(Style::Plain, " read  "),
        piece(WRITTEN, "▒"),
        piece(Style::Plain, " written"),
    ]];
    for row in (0..HEIGHT).rev() {
        let floor = (row * 8) as f64;
        let mut line = vec![piece(Style::Faint, format!("{:>MARGIN$}", label(curve, row)))];
        line.push(piece(Style::Faint, "┤"));
        for point in &at {
            let (net, written) = (eighths(point.net()), eighths(point.written_bytes));
            line.push(if written >= floor + 4.0 {
                piece(WRITTEN, "▒")
            } else {
                piece(READ, block(net - floor).to_string())
            });
        }
        lines.push(line);
    }
    let corner = format!("{:>MARGIN$}└", "0 B ");
    lines.push(vec![piece(Style::Faint, format!("{corner}{}", "─".repeat(columns)))]);
    lines.push(vec![piece(Style::Faint, labels(curve, now, &axis))]);
    lines
}

/// The last point at or below a size: with that cache it is no more I/O.
fn below(curve: &JobCurve, size: Bytes) -> Option<&CurvePoint> {
    let next = curve.points.partition_point(|point| point.cache_bytes <= size);
    curve.points.get(next.saturating_sub(1))
}

/// The value of a row: the most and the least.
fn label(curve: &JobCurve, row: usize) -> String {
    let share = curve.net_bytes_least.as_f64() / curve.net_bytes_most.as_f64();
    let of_least = share * HEIGHT as f64;
    // The row that the least ends in.
    let is_least = of_least > row as f64 && of_least <= (row + 1) as f64;
    match row {
        top if top + 1 == HEIGHT => format!("{} ", curve.net_bytes_most),
        _ if is_least => format!("{} ", curve.net_bytes_least),
        _ => String::new(),
    }
}

/// A cell that is filled from below by this many eighths.
fn block(eighths: f64) -> char {
    const LEVELS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let level = usize::try_from(units::Count::from_f64(eighths.clamp(0.0, 8.0)).get()).unwrap_or(0);
    LEVELS[level]
}

/// Sizes below the axis: the edges of cliffs and the size of now, as far as there is room for their names.
fn labels(curve: &JobCurve, now: Option<Bytes>, axis: &SizeAxis) -> String {
    let mut sizes: Vec<(Bytes, String)> = curve
        .cliffs
        .iter()
        .flat_map(|cliff| [cliff.from_bytes, cliff.to_bytes])
        .map(|size| (size, format!("↑{size}")))
        .collect();
    sizes.extend(now.map(|now| (now, format!("↑now: {now}"))));
    sizes.sort_by_key(|(size, _)| *size);
    let mut text = format!("{:MARGIN$} {}", "  cache:", axis.size_at(0));
    for (size, name) in sizes {
        let Some(column) = axis.column_of(size) else { continue };
        let place = MARGIN + 1 + column;
        if place > width(&text) && place + width(&name) <= MARGIN + 1 + axis.columns + 8 {
            text = format!("{text}{}{name}", " ".repeat(place - width(&text)));
        }
    }
    text
}
