//! Lists that follow the memory if kernel memory is short: unreclaimable slab caches, and allocations by place in the
//! source. They are recognised but not stored: rules need only the sums, which the memory part has.

use super::scan::{self, number, size};

/// The list that the lines belong to.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) enum List {
    /// None.
    #[default]
    None,
    /// `Unreclaimable slab info:`, since 4.15.
    Slab,
    /// `Memory allocations:`, since 6.10.
    Allocations,
}

impl List {
    pub(super) fn take(&mut self, line: &str) -> bool {
        let title = match line.trim_end() {
            "Unreclaimable slab info:" => Self::Slab,
            "Memory allocations:" => Self::Allocations,
            _ => {
                let is_row = self.is_row(line);
                if !is_row {
                    *self = Self::None;
                }
                return is_row;
            }
        };
        *self = title;
        true
    }

    fn is_row(self, line: &str) -> bool {
        let mut words = scan::words(line);
        match self {
            Self::None => false,
            // The name of a cache may contain blanks: its two sizes come last.
            Self::Slab => {
                let mut sizes = line.split_whitespace().rev().take(2);
                line.starts_with("Name ")
                    || (line.contains(' ') && sizes.all(|word| size(word).is_some()))
            }
            // `12.3 MiB` in some kernels, bytes in others.
            Self::Allocations => {
                line.contains(" func:")
                    && words
                        .next()
                        .is_some_and(|word| number(word).is_some() || word.parse::<f64>().is_ok())
            }
        }
    }
}
