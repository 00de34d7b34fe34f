//! Whether `1,925` in a column is over a thousand or a little under two.
//!
//! One cell cannot tell, all cells together often can: `0,955` or `7.746,125` show which mark stands before decimals,
//! `1,234,567` which one does not. Where nothing tells, the column is not used: one of the readings is wrong by a factor
//! of a thousand.

use crate::text::figure::PrintedFigure;

use super::header::Separator;

/// What a column's cells may have that is no digit.
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

    /// A cell's figure, where this mark stands before decimals; blanks may stand before the unit: `349408 kB`.
    pub(super) fn figure(self, cell: &str) -> Option<PrintedFigure> {
        let cell = cell.trim_end_matches('%').replace(' ', "");
        let plain = cell.replace(self.other().char(), "");
        if plain.matches(self.char()).count() > 1 {
            return None;
        }
        PrintedFigure::binary(&plain.replace(self.char(), "."))
    }
}

/// Whether a cell is a figure, whatever its marks mean.
pub(super) fn is_figure(cell: &str) -> bool {
    [DecimalMark::Point, DecimalMark::Comma]
        .iter()
        .any(|mark| mark.figure(cell).is_some())
}

/// Which marks the cells show to stand before decimals.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct MarksSeen {
    comma: bool,
    point: bool,
    /// A mark that may mean either, and whether there are two kinds of them.
    open: Option<DecimalMark>,
    both_open: bool,
    /// Whole figures below a thousand: beside `1,025` they show that there are no decimals.
    small: bool,
}

impl MarksSeen {
    /// What these cells show.
    pub(super) fn of<'c>(cells: impl Iterator<Item = &'c str>) -> Self {
        let mut shown = Self::default();
        cells.for_each(|cell| shown.look_at(cell));
        shown
    }

    fn look_at(&mut self, cell: &str) {
        let is_other = |c: char| !(c.is_ascii_digit() || ",.".contains(c));
        let number = cell.split(is_other).next().unwrap_or_default();
        let of = |mark: DecimalMark| number.matches(mark.char()).count();
        match (of(DecimalMark::Comma), of(DecimalMark::Point)) {
            (0, 0) => self.small |= number.len() < 4 && number.parse() != Ok(0),
            (1, 0) => self.single(number, DecimalMark::Comma),
            (0, 1) => self.single(number, DecimalMark::Point),
            (_, 0) => self.tell(DecimalMark::Point),
            (0, _) => self.tell(DecimalMark::Comma),
            _ if number.rfind(',') > number.rfind('.') => self.tell(DecimalMark::Comma),
            _ => self.tell(DecimalMark::Point),
        }
    }

    fn single(&mut self, number: &str, mark: DecimalMark) {
        let (head, tail) = number.split_once(mark.char()).unwrap_or((number, ""));
        let may_be_thousands = tail.len() == 3 && (1..=3).contains(&head.len()) && head != "0";
        if !may_be_thousands {
            return self.tell(mark);
        }
        self.both_open |= self.open.is_some_and(|open| open != mark);
        self.open = Some(mark);
    }

    fn tell(&mut self, decimals: DecimalMark) {
        match decimals {
            DecimalMark::Comma => self.comma = true,
            DecimalMark::Point => self.point = true,
        }
    }

    /// What one table's columns show together.
    pub(super) fn and(self, other: Self) -> Self {
        Self {
            comma: self.comma || other.comma,
            point: self.point || other.point,
            ..Self::default()
        }
    }

    /// The one mark that was shown to stand before decimals.
    const fn one(self) -> Option<DecimalMark> {
        match (self.comma, self.point) {
            (true, false) => Some(DecimalMark::Comma),
            (false, true) => Some(DecimalMark::Point),
            _ => None,
        }
    }

    /// The mark before the decimals of a column of sizes of `unit` bytes, in a table that shows `table`; `None` where
    /// nothing tells, or cells contradict each other.
    pub(super) fn decimals(
        mut self,
        table: Self,
        separator: Separator,
        unit: Option<f64>,
    ) -> Option<DecimalMark> {
        const MIB: f64 = 1_048_576.0;
        if self.both_open || (self.comma && self.point) {
            return None;
        }
        let Some(open) = self.open else {
            return Some(self.one().or(table.one()).unwrap_or(DecimalMark::Point));
        };
        if self.small {
            self.tell(open.other());
        }
        // Nobody's machine has thousands of GiB without a cell that shows it.
        if unit.is_some_and(|unit| unit > MIB) {
            self.tell(open);
        }
        if self.comma && self.point {
            return None;
        }
        let is_between_semicolons = separator == Separator::Semicolon && open == DecimalMark::Comma;
        // The kernel's own figures are whole.
        let is_whole = unit.is_some_and(|unit| unit < MIB);
        self.one().or(table.one()).or(match is_between_semicolons {
            true => Some(open).filter(|_| !is_whole),
            false => Some(open.other()).filter(|_| is_whole),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_s_cells_tell_together() {
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
            let shown = MarksSeen::of(cells.iter().copied());
            let found = shown.decimals(MarksSeen::default(), Separator::Blanks, unit);
            assert_eq!(found, decimals, "{cells:?} {unit:?}");
        }
    }

    #[test]
    fn the_table_tells_where_the_column_does_not() {
        let open = MarksSeen::of(["1,925"].into_iter());
        let mib = Some(1_048_576.0);
        for (other, decimals) in [
            ("0.5", Some(DecimalMark::Point)),
            ("0,5", Some(DecimalMark::Comma)),
            ("5", None),
        ] {
            let table = MarksSeen::of([other].into_iter()).and(open);
            let found = open.decimals(table, Separator::Blanks, mib);
            assert_eq!(found, decimals, "{other}");
        }
        let found = open.decimals(MarksSeen::default(), Separator::Semicolon, mib);
        assert_eq!(found, Some(DecimalMark::Comma));
    }

    #[test]
    fn figures_are_read_by_their_mark() {
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
