//! Whether the figures of a row can be what their columns say: parts are no larger than the whole, and add up to it as
//! one of the versions of procps adds them.

use crate::figure::Figure;

/// Why a row of RAM cannot be right; `None` where nothing speaks against it. A row that was cut off need not add up.
pub(super) fn doubt(row: &[(&str, Figure)], is_short: bool) -> Option<String> {
    let of = |column: &str| {
        row.iter()
            .find(|(name, _)| *name == column)
            .map(|(_, f)| *f)
    };
    let total = of("total")?;
    let too_large = |(_, part): &&(&str, Figure)| part.value > total.value + part.step + total.step;
    if let Some((name, _)) = row.iter().find(too_large) {
        return Some(format!(
            "`{name}` is larger than `total`: columns are shifted or wrong, and left out"
        ));
    }
    let (used, free) = (of("used")?, of("free")?);
    let cache = of("buff/cache").into_iter().chain(of("buffers"));
    let cache: Vec<Figure> = cache.chain(of("cache").or(of("cached"))).collect();
    let adds_up = |parts: &[Figure]| adds_up(total, parts);
    let with_cache: Vec<Figure> = [used, free].into_iter().chain(cache).collect();
    let since_4 = of("available").is_some_and(|available| adds_up(&[used, available]));
    let is_right = adds_up(&[used, free]) || adds_up(&with_cache) || since_4;
    (!is_right && !is_short).then(|| {
        "used, free and cache do not add up to `total`: columns are shifted or wrong, and left out"
            .to_owned()
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

/// Each figure is cut off or rounded: the sum may be off by a step for each.
fn adds_up(total: Figure, parts: &[Figure]) -> bool {
    let sum: f64 = parts.iter().map(|part| part.value).sum();
    let steps: f64 = parts.iter().map(|part| part.step).sum();
    (sum - total.value).abs() <= steps + total.step
}
