//! How much RAM the host has, from tables that do not print it.
//!
//! Every version of sysstat prints `%memused` as the share of RAM that `kbmemused` is, whatever it counts as used. So RAM
//! lies between two bounds that follow from the share's two decimals; all rows together narrow them. What is free and used
//! adds up to RAM exactly, without the cache (before 11.7.3) or with it; where one of the sums is the same in all rows and
//! lies within the bounds, it is exact.

/// The memory table's figures of one row, in KiB and percent.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct MemoryRow {
    pub(crate) free: Option<f64>,
    pub(crate) used: Option<f64>,
    pub(crate) share: Option<f64>,
    pub(crate) buffers: Option<f64>,
    pub(crate) cached: Option<f64>,
    pub(crate) slab: Option<f64>,
}

/// RAM in KiB, and how far the true figure may lie from it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Total {
    pub(crate) kib: f64,
    pub(crate) half_step: f64,
}

/// Collects rows.
#[derive(Debug)]
pub(crate) struct TotalFinder {
    least: f64,
    most: f64,
    sums: [Sum; 3],
}

/// A sum that may be RAM.
#[derive(Debug, Clone, Copy)]
enum Sum {
    Unseen,
    Always(f64),
    Varies,
}

impl Sum {
    fn see(&mut self, sum: Option<f64>) {
        *self = match (*self, sum) {
            (Self::Unseen, Some(sum)) => Self::Always(sum),
            (Self::Always(known), Some(sum)) if (known - sum).abs() < 0.5 => Self::Always(known),
            _ => Self::Varies,
        };
    }
}

impl Default for TotalFinder {
    fn default() -> Self {
        Self {
            least: 0.0,
            most: f64::INFINITY,
            sums: [Sum::Unseen; 3],
        }
    }
}

impl TotalFinder {
    /// Half of the share's last decimal, and what adding up in binary fractions may cost.
    const HALF_PERCENT_STEP: f64 = 0.005 + 1e-9;
    /// Below this share its decimals say too little.
    const LEAST_SHARE: f64 = 1.0;

    /// Looks at a row.
    pub(crate) fn see(&mut self, row: MemoryRow) {
        let (Some(used), Some(share)) = (row.used, row.share) else {
            return;
        };
        if !(Self::LEAST_SHARE..=100.0).contains(&share) {
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
            sum.see(seen);
        }
    }

    /// RAM, where the rows agree on it; `None` where they do not (it changed) or say nothing.
    pub(crate) fn total(&self) -> Option<Total> {
        if !self.most.is_finite() || self.least > self.most {
            return None;
        }
        let mut exact = self.sums.iter().filter_map(|sum| match sum {
            Sum::Always(kib) if (self.least..=self.most).contains(kib) => Some(*kib),
            _ => None,
        });
        let Some(kib) = exact.next() else {
            let kib = f64::midpoint(self.least, self.most);
            let half_step = (self.most - self.least) / 2.0;
            return Some(Total { kib, half_step });
        };
        // Two sums within the bounds differ by less than the bounds do.
        let half_step = if exact.next().is_some() {
            self.most - self.least
        } else {
            0.0
        };
        Some(Total { kib, half_step })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn total(rows: &[MemoryRow]) -> Option<Total> {
        let mut finder = TotalFinder::default();
        for row in rows {
            finder.see(*row);
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
    fn used_with_the_cache_and_free_are_all_of_ram() {
        let rows = [
            row(2_000_000.0, 6_000_000.0, 75.0, 3_000_000.0),
            row(1_000_000.0, 7_000_000.0, 87.5, 3_500_000.0),
        ];
        let exact = Total {
            kib: 8_000_000.0,
            half_step: 0.0,
        };
        assert_eq!(total(&rows), Some(exact));
    }

    #[test]
    fn used_without_the_cache_needs_the_cache_for_it() {
        let rows = [
            row(2_000_000.0, 3_000_000.0, 37.5, 3_000_000.0),
            row(1_000_000.0, 3_500_000.0, 43.75, 3_500_000.0),
        ];
        assert_eq!(total(&rows).map(|t| t.kib), Some(8_000_000.0));
    }

    #[test]
    fn where_slab_is_left_out_the_share_bounds_it() {
        // 500,000 of slab are neither used nor printed.
        let rows = [row(2_000_000.0, 2_500_000.0, 31.25, 3_000_000.0)];
        let found = total(&rows).unwrap();
        assert!((found.kib - 8e6).abs() <= found.half_step, "{found:?}");
        assert!(found.half_step < 8e6 * 0.0005);
    }

    #[test]
    fn ram_that_changed_is_not_known() {
        let rows = [
            row(2_000_000.0, 6_000_000.0, 75.0, 0.0),
            row(2_000_000.0, 6_000_000.0, 37.5, 0.0),
        ];
        assert_eq!(total(&rows), None);
        assert_eq!(total(&[]), None);
        assert_eq!(total(&[row(1.0, 0.0, 0.0, 0.0)]), None);
    }
}
