//! Checks the figures of a row: no part exceeds the total, and the parts add up to it as in some version of procps.

use crate::text::figure::PrintedFigure;

/// Why a row of RAM is not trusted.
#[derive(Debug, PartialEq)]
pub(super) struct RowFault {
    /// Human-readable.
    pub(super) problem: String,
    /// Columns that are used all the same.
    pub(super) keep: &'static [&'static str],
}

/// A sum of the right columns misses the total by less than 5 %: figures are not read at one instant, and versions
/// differ in what counts as used. Shifted columns miss by more.
const TOLERANCE: f64 = 0.05;

/// Checks a row of RAM; `None` if it is plausible. A truncated row need not add up.
pub(super) fn check(row: &[(&str, PrintedFigure)], is_truncated: bool) -> Option<RowFault> {
    let figure = |column| figure(row, column);
    let total = figure("total")?;
    let shifted = |what: String| RowFault {
        problem: format!("{what}: columns are shifted or wrong; not used"),
        keep: &["total"],
    };
    let too_large =
        |(_, part): &&(&str, PrintedFigure)| part.value > total.value + part.error + total.error;
    if let Some((name, _)) = row.iter().find(too_large) {
        return Some(shifted(format!("`{name}` is larger than `total`")));
    }
    let (used, free) = (figure("used")?, figure("free")?);
    let cache = figure("buff/cache").into_iter().chain(figure("buffers"));
    let cache: Vec<PrintedFigure> = cache.chain(figure("cache").or(figure("cached"))).collect();
    let with_cache: Vec<PrintedFigure> = [used, free].into_iter().chain(cache).collect();
    let since_4 = figure("available").map(|available| vec![used, available]);
    let sums = [vec![used, free], with_cache].into_iter().chain(since_4);
    let misses = sums.map(|parts| miss(total, &parts));
    let least = misses.fold(f64::INFINITY, f64::min);
    if least <= 0.0 || is_truncated {
        return None;
    }
    // `used` is the total, in the wrong column.
    let is_total = used.value > (1.0 - TOLERANCE) * total.value;
    if is_total || least > TOLERANCE * total.value {
        let what = "used, free and cache do not add up to `total`";
        return Some(shifted(what.to_owned()));
    }
    Some(RowFault {
        problem: "used, free and cache do not quite add up to `total`: only total, free and \
                  available are used"
            .to_owned(),
        keep: &["total", "free", "available"],
    })
}

/// Checks a row of swap. Returns the problem.
pub(super) fn check_swap(row: &[PrintedFigure]) -> Option<String> {
    let [total, used, free, ..] = row else {
        return None;
    };
    (!adds_up(*total, &[*used, *free]))
        .then(|| "used and free swap do not add up to its total: not used".to_owned())
}

/// Whether used + free is the total and used includes what follows shared, as before procps 3.3.10.
pub(super) fn is_before_3_3_10(row: &[PrintedFigure]) -> bool {
    let includes = |used: PrintedFigure, parts: &[PrintedFigure]| {
        let sum: f64 = parts.iter().map(|part| part.value - part.error).sum();
        sum <= used.value + used.error
    };
    match row {
        [total, used, free, _shared, parts @ ..] => {
            adds_up(*total, &[*used, *free]) && includes(*used, parts)
        }
        [total, used, free] => adds_up(*total, &[*used, *free]),
        _ => false,
    }
}

/// Whether used is total − available, as since procps 4.
pub(super) fn is_since_4(row: &[(&str, PrintedFigure)]) -> bool {
    let parts = || {
        let parts = [figure(row, "used")?, figure(row, "available")?];
        Some(adds_up(figure(row, "total")?, &parts))
    };
    parts().unwrap_or(false)
}

/// The figure in a column.
pub(super) fn figure(row: &[(&str, PrintedFigure)], column: &str) -> Option<PrintedFigure> {
    row.iter().find(|(name, _)| *name == column).map(|(_, figure)| *figure)
}

fn adds_up(total: PrintedFigure, parts: &[PrintedFigure]) -> bool {
    miss(total, parts) <= 0.0
}

/// By how much the parts miss the total, beyond rounding. At most 0 if they add up.
fn miss(total: PrintedFigure, parts: &[PrintedFigure]) -> f64 {
    let sum: f64 = parts.iter().map(|part| part.value).sum();
    let errors: f64 = parts.iter().map(|part| part.error).sum();
    (sum - total.value).abs() - errors - total.error
}
