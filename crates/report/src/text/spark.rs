//! Small graphs of block characters, one line high.

/// Returns a graph of one line and `cells` cells from zero to its peak, with gaps where nothing was measured.
pub(super) fn graph(values: &[Option<f64>], cells: usize) -> String {
    let peak = values.iter().flatten().fold(0.0_f64, |peak, v| peak.max(*v));
    largest_of_cells(values, cells)
        .map(|largest| match largest {
            None => ' ',
            Some(value) if peak > 0.0 => block((value / peak * 8.0).max(1.0)),
            Some(_) => block(1.0),
        })
        .collect()
}

/// Returns the largest value of each of at most `cells` cells, into which the values are divided evenly.
pub(super) fn largest_of_cells(
    values: &[Option<f64>],
    cells: usize,
) -> impl Iterator<Item = Option<f64>> + '_ {
    let cells = cells.min(values.len());
    (0..cells).map(move |cell| {
        let (begin, end) = (cell * values.len() / cells, (cell + 1) * values.len() / cells);
        values[begin..end].iter().flatten().copied().reduce(f64::max)
    })
}

/// Returns a cell that is filled from below by this many eighths, rounded up.
pub(super) fn block(eighths: f64) -> char {
    const LEVELS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    // From 0 to 8: the clamp makes the cast exact.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let level = eighths.ceil().clamp(0.0, 8.0) as usize;
    LEVELS[level]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_graph_shows_zero_peak_and_gap_apart() {
        assert_eq!(graph(&[Some(0.0), None, Some(8.0), Some(4.0)], 10), "▁ █▄");
        assert_eq!(graph(&[Some(0.0), Some(9.0), Some(1.0), Some(1.0)], 2), "█▁");
        assert_eq!(graph(&[Some(0.0); 3], 3), "▁▁▁");
        assert_eq!(graph(&[], 3), "");
    }
}
