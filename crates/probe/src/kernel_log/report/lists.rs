//! ReportLists that follow the memory if kernel memory is short: unreclaimable slab caches, and allocations by place in the
//! source. The caches are stored; the allocations are recognised only.

use timeline::kernel_report::ReportSlab;

use super::scan::{self, cut, number, size};

/// The lists as far as they are read.
#[derive(Debug, Default)]
pub(super) struct ReportLists {
    /// The list that the last line belongs to.
    current: ReportList,
    /// Unreclaimable slab caches, in the order printed.
    pub(super) slabs: Vec<ReportSlab>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum ReportList {
    #[default]
    None,
    /// `Unreclaimable slab info:`, since 4.15.
    Slab,
    /// `Memory allocations:`, since 6.10.
    Allocations,
}

/// A kernel has some 200 caches.
const SLABS_MAX: usize = 1000;

impl ReportLists {
    pub(super) fn take(&mut self, line: &str) -> bool {
        let line = line.trim_end();
        self.current = match line {
            "Unreclaimable slab info:" => ReportList::Slab,
            "Memory allocations:" => ReportList::Allocations,
            _ if self.takes_row(line) => return true,
            // What somebody left out of a list.
            "..." | "…" | "[...]" | "[…]" => return false,
            _ => ReportList::None,
        };
        self.current != ReportList::None
    }

    fn takes_row(&mut self, line: &str) -> bool {
        match self.current {
            ReportList::None => false,
            ReportList::Slab => {
                let cache = slab(line);
                let is_row = cache.is_some() || line.starts_with("Name ");
                if self.slabs.len() < SLABS_MAX {
                    self.slabs.extend(cache);
                }
                is_row
            }
            // `12.3 MiB` in some kernels, bytes in others.
            ReportList::Allocations => {
                line.contains(" func:")
                    && scan::words(line)
                        .next()
                        .is_some_and(|word| number(word).is_some() || word.parse::<f64>().is_ok())
            }
        }
    }
}

/// Parses `btrfs_extent_map     3207098KB    3375622KB`. The name of a cache may contain blanks: its two sizes come last.
fn slab(line: &str) -> Option<ReportSlab> {
    let mut words = line.rsplitn(2, char::is_whitespace);
    let total = size(words.next()?)?;
    let mut words = words.next()?.trim_end().rsplitn(2, char::is_whitespace);
    let used = size(words.next()?)?;
    let name = words.next()?.trim();
    (!name.is_empty()).then(|| ReportSlab { name: cut(name, 100), used, total })
}
