//! The size of RAM, which the tables of sar do not print.
//!
//! Every version of sysstat prints `%memused` as `kbmemused` / RAM, whatever it counts as used. The two decimals of
//! that share give bounds for RAM, and all rows together narrow them. Before 11.7.3 free and used memory add up to
//! RAM, since then with the cache. A sum that is the same in all rows and within the bounds is exact.

/// One row of the memory table, in KiB and percent.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct MemoryRow {
    pub(crate) free: Option<f64>,
    pub(crate) used: Option<f64>,
    pub(crate) share: Option<f64>,
    pub(crate) buffers: Option<f64>,
    pub(crate) cached: Option<f64>,
    pub(crate) slab: Option<f64>,
}

/// RAM in KiB, and by how much it may be off.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct RamTotal {
    pub(crate) kib: f64,
    pub(crate) error: f64,
}

/// Collects rows and finds RAM.
#[derive(Debug)]
pub(crate) struct RamTotalFinder {
    least: f64,
    most: f64,
    sums: [SumCandidate; 3],
}

/// A sum that may be RAM, over all rows.
#[derive(Debug, Clone, Copy)]
enum SumCandidate {
    Unseen,
    Always(f64),
    Varies,
}

impl SumCandidate {
    fn add(&mut self, sum: Option<f64>) {
        *self = match (*self, sum) {
            (Self::Unseen, Some(sum)) => Self::Always(sum),
            (Self::Always(known), Some(sum)) if (known - sum).abs() < 0.5 => Self::Always(known),
            _ => Self::Varies,
        };
    }
}

impl Default for RamTotalFinder {
    fn default() -> Self {
        Self { least: 0.0, most: f64::INFINITY, sums: [SumCandidate::Unseen; 3] }
    }
}

impl RamTotalFinder {
    /// Half of the last decimal of the share, and the error of the arithmetic.
    const HALF_PERCENT_STEP: f64 = 0.005 + 1e-9;
    /// At least 1 %: smaller shares have too few digits.
    const SHARE_MIN: f64 = 1.0;

    /// Adds a row.
    pub(crate) fn add(&mut self, row: MemoryRow) {
        let (Some(used), Some(share)) = (row.used, row.share) else {
            return;
        };
        if !(Self::SHARE_MIN..=100.0).contains(&share) {
            return;
        }
        let with = |share: f64| used / share * 100.0;
        self.least = self.least.max(with(share + Self::HALF_PERCENT_STEP));
        self.most = self.most.min(with(share - Self::HALF_PERCENT_STEP));
        let plain = row.free.map(|free| free + used);
        let cache = row.buffers.zip(row.cached).map(|(b, c)| b + c);
        let with_cache = plain.zip(cache).map(|(p, c)| p + c);
        let with_slab = with_cache.zip(row.slab).map(|(s, slab)| s + slab);
        for (sum, seen) in self.sums.iter_mut().zip([plain, with_cache, with_slab]) {
            sum.add(seen);
        }
    }

    /// The size of RAM; `None` if no row has it or if it changed.
    pub(crate) fn total(&self) -> Option<RamTotal> {
        if !self.most.is_finite() || self.least > self.most {
            return None;
        }
        let mut exact = self.sums.iter().filter_map(|sum| match sum {
            SumCandidate::Always(kib) if (self.least..=self.most).contains(kib) => Some(*kib),
            _ => None,
        });
        let Some(kib) = exact.next() else {
            let kib = f64::midpoint(self.least, self.most);
            let error = (self.most - self.least) / 2.0;
            return Some(RamTotal { kib, error });
        };
        // Two sums within the bounds differ by less than the bounds do.
        let error = if exact.next().is_some() { self.most - self.least } else { 0.0 };
        Some(RamTotal { kib, error })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn total(rows: &[MemoryRow]) -> Option<RamTotal> {
        let mut finder = RamTotalFinder::default();
        for row in rows {
            finder.add(*row);
        }
        finder.total()
    }

    fn row(free: f64, used: f64, share: f64, cached: f64) -> MemoryRow {
        MemoryRow {
            free: Some(free),
            used: Some(used),
            share: Some(share),
            buffers: Some(0.0),
            cached: Some(cached),
            slab: None,
        }
    }

    #[test]
    fn used_with_cache_plus_free_is_ram() {
        let rows = [
            row(2_000_000.0, 6_000_000.0, 75.0, 3_000_000.0),
            row(1_000_000.0, 7_000_000.0, 87.5, 3_500_000.0),
        ];
        let exact = RamTotal { kib: 8_000_000.0, error: 0.0 };
        assert_eq!(total(&rows), Some(exact));
    }

    #[test]
    fn used_without_cache_plus_free_plus_cache_is_ram() {
        let rows = [
            row(2_000_000.0, 3_000_000.0, 37.5, 3_000_000.0),
            row(1_000_000.0, 3_500_000.0, 43.75, 3_500_000.0),
        ];
        assert_eq!(total(&rows).map(|t| t.kib), Some(8_000_000.0));
    }

    #[test]
    fn the_share_bounds_ram_if_slab_is_missing() {
        // 500,000 KiB of slab are neither used nor printed.
        let rows = [row(2_000_000.0, 2_500_000.0, 31.25, 3_000_000.0)];
        let found = total(&rows).unwrap();
        assert!((found.kib - 8e6).abs() <= found.error, "{found:?}");
        assert!(found.error < 8e6 * 0.0005);
    }

    #[test]
    fn ram_that_changed_is_unknown() {
        let rows =
            [row(2_000_000.0, 6_000_000.0, 75.0, 0.0), row(2_000_000.0, 6_000_000.0, 37.5, 0.0)];
        assert_eq!(total(&rows), None);
        assert_eq!(total(&[]), None);
        assert_eq!(total(&[row(1.0, 0.0, 0.0, 0.0)]), None);
    }
}
