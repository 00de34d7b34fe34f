//! A heap's parts as lines of columns, all on one scale: where a picture has each cell.
//!
//! A part that is longer than a line goes on in the next. The scale is the finest at which all parts fit; parts beyond
//! the picture's bound, those with the least memory in RAM, are counted instead. Cost: proportional to the cells.

use units::Bytes;

use crate::model::explain::{HeapCell, HeapReport, HeapRow};
use crate::phrases::heap_cells;

/// How large a picture may be.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PictureBounds {
    /// At most this many columns in a line; a power of two makes equal columns.
    pub(crate) columns_max: usize,
    /// At least this many columns in a line; the same as the most where all lines have one width.
    pub(crate) columns_min: usize,
    /// At most this many lines.
    pub(crate) lines_max: usize,
}

/// A heap as lines of columns.
#[derive(Debug, Clone)]
pub(crate) struct HeapLines {
    /// Columns of a full line.
    pub(crate) columns: usize,
    /// Address space of a column.
    pub(crate) column_bytes: Bytes,
    /// The parts that are shown: the main arena's first, then by arena and address.
    pub(crate) parts: Vec<PartColumns>,
    /// How many parts are not shown.
    pub(crate) left_out: usize,
    pub(crate) left_out_sum: HeapCell,
}

/// A part of an arena as columns.
#[derive(Debug, Clone)]
pub(crate) struct PartColumns {
    /// Its arena; 0 is the main one.
    pub(crate) arena: u64,
    /// Which part of its arena it is, from 1 on, and how many that arena has.
    pub(crate) place: (usize, usize),
    /// Its columns, in order of address.
    pub(crate) columns: Vec<HeapCell>,
    pub(crate) sum: HeapCell,
}

impl HeapLines {
    /// Places the parts of a heap within bounds.
    pub(crate) fn new(heap: &HeapReport, bounds: PictureBounds) -> Self {
        let all = in_order(&heap.rows);
        let mut by_size: Vec<usize> = (0..all.len()).collect();
        by_size.sort_by_key(|index| std::cmp::Reverse(all[*index].0.resident_bytes));
        let (shown, rest) = by_size.split_at(all.len().min(bounds.lines_max));
        let mut left_out_sum = HeapCell::default();
        for index in rest {
            heap_cells::add(&mut left_out_sum, &sum(&all[*index].0.cells));
        }
        let mut shown = shown.to_vec();
        shown.sort_unstable();
        let rows: Vec<_> = shown.into_iter().map(|index| all[index]).collect();
        let (columns, cells) = scale(&rows, bounds);
        let part = |(row, place): &(&HeapRow, _)| PartColumns {
            arena: row.arena,
            place: *place,
            columns: row.cells.chunks(cells).map(sum).collect(),
            sum: sum(&row.cells),
        };
        Self {
            columns,
            column_bytes: heap.cell_bytes.times(cells as u64),
            parts: rows.iter().map(part).collect(),
            left_out: rest.len(),
            left_out_sum,
        }
    }

    /// Returns the address space of a full line.
    pub(crate) fn line_bytes(&self) -> Bytes {
        self.offset(self.columns)
    }

    /// Returns the lines of a part: its columns, and the number of the first.
    pub(crate) fn lines_of<'a>(
        &self,
        part: &'a PartColumns,
    ) -> impl Iterator<Item = (usize, &'a [HeapCell])> + use<'a> {
        let columns = self.columns.max(1);
        let lines = part.columns.chunks(columns).enumerate();
        lines.map(move |(line, cells)| (line * columns, cells))
    }

    /// Returns the number of lines.
    pub(crate) fn len(&self) -> usize {
        self.parts.iter().map(|part| self.lines_of(part).count()).sum()
    }

    /// Returns where a column begins in its part.
    pub(crate) fn offset(&self, column: usize) -> Bytes {
        self.column_bytes.times(column as u64)
    }
}

/// `main`, `arena 3`, `arena 3, part 2 of 4`.
pub(crate) fn name(part: &PartColumns) -> String {
    let arena = match part.arena {
        0 => "main arena".to_owned(),
        number => format!("arena {number}"),
    };
    match part.place {
        (_, 0 | 1) => arena,
        (place, of) => format!("{arena}, part {place} of {of}"),
    }
}

/// Returns the sum of some cells.
pub(crate) fn sum(cells: &[HeapCell]) -> HeapCell {
    let mut sum = HeapCell::default();
    cells.iter().for_each(|cell| heap_cells::add(&mut sum, cell));
    sum
}

/// Returns the rows by arena, each with its place in its arena; rows without a cell are left out.
fn in_order(rows: &[HeapRow]) -> Vec<(&HeapRow, (usize, usize))> {
    let mut rows: Vec<&HeapRow> = rows.iter().filter(|row| !row.cells.is_empty()).collect();
    rows.sort_by_key(|row| row.arena);
    let arenas = rows.chunk_by(|one, next| one.arena == next.arena);
    let placed = arenas.flat_map(|parts| {
        let numbered = parts.iter().enumerate();
        numbered.map(|(index, row)| (*row, (index + 1, parts.len())))
    });
    placed.collect()
}

/// Returns how many columns a line has and how many cells a column: the finest scale at which all rows fit.
fn scale(rows: &[(&HeapRow, (usize, usize))], bounds: PictureBounds) -> (usize, usize) {
    let lines = |cells: usize| -> usize {
        let each = rows.iter().map(|(row, _)| row.cells.len().div_ceil(cells));
        each.sum()
    };
    let (mut columns, mut cells) = (bounds.columns_min.max(1), 1);
    // Steps of at most an eighth leave little of a line empty. With one line each, all rows fit.
    while lines(columns.saturating_mul(cells)) > bounds.lines_max.max(rows.len()) {
        if columns < bounds.columns_max {
            columns = (columns * 2).min(bounds.columns_max);
        } else {
            cells = cells.saturating_add(cells.div_ceil(8));
        }
    }
    (columns, cells)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUNDS: PictureBounds = PictureBounds { columns_max: 256, columns_min: 32, lines_max: 8 };

    fn heap(cells: &[(u64, usize)]) -> HeapReport {
        let row = |(arena, cells): &(u64, usize)| HeapRow {
            arena: *arena,
            resident_bytes: Bytes::new(*cells as u64),
            cells: vec![HeapCell { resident_bytes: Bytes::new(1), ..HeapCell::default() }; *cells],
        };
        HeapReport {
            rows: cells.iter().map(row).collect(),
            cell_bytes: Bytes::new(65_536),
            ..HeapReport::default()
        }
    }

    #[test]
    fn a_small_heap_has_short_lines_and_a_large_one_coarse_columns() {
        let small = HeapLines::new(&heap(&[(0, 20), (1, 3)]), BOUNDS);
        assert_eq!((small.columns, small.column_bytes, small.len()), (32, Bytes::new(65_536), 2));
        let large = HeapLines::new(&heap(&[(0, 16_384), (1, 3)]), BOUNDS);
        assert_eq!((large.columns, large.column_bytes), (256, Bytes::new(65_536 * 11)));
        assert_eq!(large.len(), 7);
    }

    #[test]
    fn no_cell_is_lost_and_arenas_are_in_order() {
        let lines = HeapLines::new(&heap(&[(2, 300), (0, 1000), (2, 7), (1, 65)]), BOUNDS);
        let names: Vec<String> = lines.parts.iter().map(name).collect();
        let expected = ["main arena", "arena 1", "arena 2, part 1 of 2", "arena 2, part 2 of 2"];
        assert_eq!(names, expected);
        let all: Bytes = lines.parts.iter().map(|part| part.sum.resident_bytes).sum();
        assert_eq!(all, Bytes::new(1372));
        let drawn = lines.parts.iter().flat_map(|part| lines.lines_of(part));
        let drawn: Bytes = drawn.map(|(_, cells)| sum(cells).resident_bytes).sum();
        assert_eq!(drawn, Bytes::new(1372));
    }

    #[test]
    fn parts_beyond_the_bound_are_counted_the_smallest_first() {
        let rows: Vec<(u64, usize)> = (0..20).zip(10..).collect();
        let lines = HeapLines::new(&heap(&rows), BOUNDS);
        assert_eq!((lines.parts.len(), lines.left_out), (8, 12));
        assert_eq!(lines.left_out_sum.resident_bytes, Bytes::new((10..22).sum()));
        assert_eq!(lines.parts.first().map(|part| part.arena), Some(12));
    }
}
