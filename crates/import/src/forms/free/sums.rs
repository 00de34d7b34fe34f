//! Whether the figures of a row can be what their columns say: parts are no larger than the whole, and add up to it as
//! one of the versions of procps adds them.

use crate::figure::Figure;

/// What is wrong with a row of RAM.
#[derive(Debug, PartialEq)]
pub(super) struct Doubt {
    /// In words.
    pub(super) problem: String,
    /// Columns that it does not touch.
    pub(super) stay: &'static [&'static str],
}

/// A sum that misses the total by less is of the right columns: each is read at a moment of its own, and hosts differ in
/// what they count as used. Shifted columns miss by more.
const NEARLY: f64 = 0.05;

/// Why a row of RAM cannot be right; `None` where nothing speaks against it. A row that was cut off need not add up.
pub(super) fn doubt(row: &[(&str, Figure)], is_short: bool) -> Option<Doubt> {
    let of = |column: &str| {
        row.iter()
            .find(|(name, _)| *name == column)
            .map(|(_, f)| *f)
    };
    let total = of("total")?;
    let shifted = |what: String| Doubt {
        problem: format!("{what}: columns are shifted or wrong, and left out"),
        stay: &["total"],
    };
    let too_large =
        |(_, part): &&(&str, Figure)| part.value > total.value + part.error + total.error;
    if let Some((name, _)) = row.iter().find(too_large) {
        return Some(shifted(format!("`{name}` is larger than `total`")));
    }
    let (used, free) = (of("used")?, of("free")?);
    let cache = of("buff/cache").into_iter().chain(of("buffers"));
    let cache: Vec<Figure> = cache.chain(of("cache").or(of("cached"))).collect();
    let with_cache: Vec<Figure> = [used, free].into_iter().chain(cache).collect();
    let since_4 = of("available").map(|available| vec![used, available]);
    let sums = [vec![used, free], with_cache].into_iter().chain(since_4);
    let misses = sums.map(|parts| miss(total, &parts));
    let least = misses.fold(f64::INFINITY, f64::min);
    if least <= 0.0 || is_short {
        return None;
    }
    // Used memory that is all there is, is the total, in the wrong column.
    let is_total = used.value > (1.0 - NEARLY) * total.value;
    if is_total || least > NEARLY * total.value {
        let what = "used, free and cache do not add up to `total`";
        return Some(shifted(what.to_owned()));
    }
    Some(Doubt {
        problem: "used, free and cache do not quite add up to `total`: used and cache are left out"
            .to_owned(),
        stay: &["total", "free", "available"],
    })
}

/// Why a row of swap cannot be right.
pub(super) fn doubt_of_swap(row: &[Figure]) -> Option<String> {
    let [total, used, free, ..] = row else {
        return None;
    };
    (!adds_up(*total, &[*used, *free]))
        .then(|| "swap's used and free do not add up to its total: left out".to_owned())
}

/// Whether used and free are all there is, as before procps 3.3.10.
pub(super) fn is_old(row: &[Figure]) -> bool {
    match row {
        [total, used, free, ..] => adds_up(*total, &[*used, *free]),
        _ => false,
    }
}

/// Whether used is total − available, as since procps 4.
pub(super) fn is_since_4(row: &[(&str, Figure)]) -> bool {
    let of = |column: &str| {
        row.iter()
            .find(|(name, _)| *name == column)
            .map(|(_, f)| *f)
    };
    let parts = || Some((of("total")?, [of("used")?, of("available")?]));
    parts().is_some_and(|(total, parts)| adds_up(total, &parts))
}

fn adds_up(total: Figure, parts: &[Figure]) -> bool {
    miss(total, parts) <= 0.0
}

/// By how much parts miss the total, beyond what each figure may be off; not above 0 where they add up.
fn miss(total: Figure, parts: &[Figure]) -> f64 {
    let sum: f64 = parts.iter().map(|part| part.value).sum();
    let errors: f64 = parts.iter().map(|part| part.error).sum();
    (sum - total.value).abs() - errors - total.error
}
