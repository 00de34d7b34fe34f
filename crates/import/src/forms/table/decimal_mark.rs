//! Decides whether `1,925` in a column is 1925 or 1.925.
//!
//! Often the other cells show it: in `0,955` and `7.746,125` the comma is the decimal mark, in `1,234,567` it is not.
//! If nothing decides, the column is not used: it could be wrong by a factor of a thousand.

use crate::text::figure::{MIB, PrintedFigure};

use super::header::Separator;

/// A decimal mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DecimalMark {
    Comma,
    Point,
}

impl DecimalMark {
    const fn char(self) -> char {
        match self {
            Self::Comma => ',',
            Self::Point => '.',
        }
    }

    const fn other(self) -> Self {
        match self {
            Self::Comma => Self::Point,
            Self::Point => Self::Comma,
        }
    }

    /// The figure in a cell with this decimal mark; blanks before the unit are allowed: `349408 kB`.
    pub(super) fn figure(self, cell: &str) -> Option<PrintedFigure> {
        let cell = cell.trim_end_matches('%').replace(' ', "");
        let plain = cell.replace(self.other().char(), "");
        if plain.matches(self.char()).count() > 1 {
            return None;
        }
        PrintedFigure::binary(&plain.replace(self.char(), "."))
    }
}

/// Whether a cell is a figure with any decimal mark.
pub(super) fn is_figure(cell: &str) -> bool {
    [DecimalMark::Point, DecimalMark::Comma].iter().any(|mark| mark.figure(cell).is_some())
}

/// Which decimal marks the cells show.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct MarksSeen {
    comma: bool,
    point: bool,
    /// An ambiguous mark.
    open: Option<DecimalMark>,
    /// Whether both marks are ambiguous.
    both_open: bool,
    /// Whole figures below a thousand: together with `1,025` they show that there are no decimals.
    small: bool,
}

impl MarksSeen {
    /// Checks all cells of a column.
    pub(super) fn in_cells<'c>(cells: impl Iterator<Item = &'c str>) -> Self {
        let mut seen = Self::default();
        cells.for_each(|cell| seen.add(cell));
        seen
    }

    fn add(&mut self, cell: &str) {
        let is_other = |c: char| !(c.is_ascii_digit() || ",.".contains(c));
        let number = cell.split(is_other).next().unwrap_or_default();
        let count = |mark: DecimalMark| number.matches(mark.char()).count();
        match (count(DecimalMark::Comma), count(DecimalMark::Point)) {
            (0, 0) => self.small |= number.len() < 4 && number.parse() != Ok(0),
            (1, 0) => self.single(number, DecimalMark::Comma),
            (0, 1) => self.single(number, DecimalMark::Point),
            (_, 0) => self.set(DecimalMark::Point),
            (0, _) => self.set(DecimalMark::Comma),
            _ if number.rfind(',') > number.rfind('.') => self.set(DecimalMark::Comma),
            _ => self.set(DecimalMark::Point),
        }
    }

    fn single(&mut self, number: &str, mark: DecimalMark) {
        let (head, tail) = number.split_once(mark.char()).unwrap_or((number, ""));
        let may_be_thousands = tail.len() == 3 && (1..=3).contains(&head.len()) && head != "0";
        if !may_be_thousands {
            return self.set(mark);
        }
        self.both_open |= self.open.is_some_and(|open| open != mark);
        self.open = Some(mark);
    }

    fn set(&mut self, decimals: DecimalMark) {
        match decimals {
            DecimalMark::Comma => self.comma = true,
            DecimalMark::Point => self.point = true,
        }
    }

    /// Combines the marks of all columns of a table.
    pub(super) fn and(self, other: Self) -> Self {
        Self {
            comma: self.comma || other.comma,
            point: self.point || other.point,
            ..Self::default()
        }
    }

    /// The decimal mark, if only one was seen.
    const fn single_mark(self) -> Option<DecimalMark> {
        match (self.comma, self.point) {
            (true, false) => Some(DecimalMark::Comma),
            (false, true) => Some(DecimalMark::Point),
            _ => None,
        }
    }

    /// The decimal mark of a column of sizes in `unit` bytes; `table` has the marks of all columns. `None` if it is
    /// unknown or cells contradict each other.
    pub(super) fn decimals(
        mut self,
        table: Self,
        separator: Separator,
        unit: Option<f64>,
    ) -> Option<DecimalMark> {
        if self.both_open || (self.comma && self.point) {
            return None;
        }
        let Some(open) = self.open else {
            return Some(self.single_mark().or(table.single_mark()).unwrap_or(DecimalMark::Point));
        };
        if self.small {
            self.set(open.other());
        }
        // No host has thousands of GiB.
        if unit.is_some_and(|unit| unit > MIB) {
            self.set(open);
        }
        if self.comma && self.point {
            return None;
        }
        let is_between_semicolons = separator == Separator::Semicolon && open == DecimalMark::Comma;
        // Figures of the kernel are whole.
        let is_whole = unit.is_some_and(|unit| unit < MIB);
        let guess = || {
            if is_between_semicolons {
                (!is_whole).then_some(open)
            } else {
                is_whole.then_some(open.other())
            }
        };
        self.single_mark().or(table.single_mark()).or_else(guess)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cells_of_a_column_decide_together() {
        use DecimalMark::{Comma, Point};
        const KIB: Option<f64> = Some(1024.0);
        const MIB: Option<f64> = Some(1_048_576.0);
        const GIB: Option<f64> = Some(1_073_741_824.0);
        for (cells, unit, decimals) in [
            (&["1,925", "0,955"][..], MIB, Some(Comma)),
            (&["1,925", "1,225"], MIB, None),
            (&["1.925", "1.225"], MIB, None),
            (&["1,925", "1,225"], GIB, Some(Comma)),
            (&["88,500", "575,208"], KIB, Some(Point)),
            (&["310.722", "299.100"], KIB, Some(Comma)),
            (&["1,025", "980"], MIB, Some(Point)),
            (&["1,025", "980"], GIB, None),
            (&["7.746,125", "999,125"], MIB, Some(Comma)),
            (&["1,234,567", "999,125"], MIB, Some(Point)),
            (&["1,234.5", "2,000"], MIB, Some(Point)),
            (&["3,6", "3.6"], MIB, None),
            (&["1,925", "1.925"], KIB, None),
            (&["12", "0"], MIB, Some(Point)),
        ] {
            let shown = MarksSeen::in_cells(cells.iter().copied());
            let found = shown.decimals(MarksSeen::default(), Separator::Blanks, unit);
            assert_eq!(found, decimals, "{cells:?} {unit:?}");
        }
    }

    #[test]
    fn the_table_decides_if_the_column_does_not() {
        let open = MarksSeen::in_cells(["1,925"].into_iter());
        let mib = Some(1_048_576.0);
        for (other, decimals) in
            [("0.5", Some(DecimalMark::Point)), ("0,5", Some(DecimalMark::Comma)), ("5", None)]
        {
            let table = MarksSeen::in_cells([other].into_iter()).and(open);
            let found = open.decimals(table, Separator::Blanks, mib);
            assert_eq!(found, decimals, "{other}");
        }
        let found = open.decimals(MarksSeen::default(), Separator::Semicolon, mib);
        assert_eq!(found, Some(DecimalMark::Comma));
    }

    #[test]
    fn figures_are_read_with_their_decimal_mark() {
        for (mark, cell, value) in [
            (DecimalMark::Comma, "1,925", Some(1.925)),
            (DecimalMark::Point, "1,925", Some(1925.0)),
            (DecimalMark::Comma, "7.746,125", Some(7746.125)),
            (DecimalMark::Comma, "1,2,3", None),
            (DecimalMark::Point, "7 %", Some(7.0)),
            (DecimalMark::Point, "x", None),
        ] {
            assert_eq!(mark.figure(cell).map(|f| f.value), value, "{cell}");
        }
    }
}
