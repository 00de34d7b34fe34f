//! Ruby's object space: `GC.stat`, `GC::INTERNAL_CONSTANTS` and `GC.stat_heap` as JSON.
//!
//! Objects are slots in pages: of 16 KiB up to Ruby 3.1, where a slot has 40 bytes; of 64 KiB since 3.2, where each of five
//! pools has slots of one size (40 to 640 bytes) and pages of its own. A page with a live object is an eden page, and its
//! free slots can only hold objects: that is fragmentation inside the object space. Fields come and go (`gc.c`,
//! `gc/default/default.c`): `heap_sorted_length` and `heap_tomb_pages` up to 3.3, `heap_empty_pages` since 3.4, live objects
//! of a pool as `total_allocated_objects − total_freed_objects` since 3.3 and as `heap_live_slots` since 4.0. A live slot is
//! one that was not swept: an object that died since the last collection still counts.

use std::collections::BTreeMap;

use serde::Deserialize;
use units::{Bytes, Count, Ratio};

use super::{RuntimeStatsError, StatsKind, from_json};

/// Ruby code of one line that prints the report; of Ruby 2.7 and later.
pub const SNIPPET: &str = r#"require "json"; puts JSON.generate(ruby: RUBY_VERSION, pid: $$, stat: GC.stat, constants: GC::INTERNAL_CONSTANTS, heaps: (GC.stat_heap if GC.respond_to?(:stat_heap)))"#;

/// The field by which a report is recognised.
pub(super) const FIELD: &str = "\"heap_live_slots\"";

/// What Ruby reports about its object space.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RubyStats {
    /// `RUBY_VERSION`.
    pub version: Option<String>,
    /// The process that wrote the report.
    pub pid: Option<u64>,
    /// Garbage collections since the start.
    pub collections: Option<Count>,
    /// Slots that were not swept.
    pub live_slots: Count,
    /// Slots that survived the last collection.
    pub survived_slots: Option<Count>,
    /// Slots of all pages, empty ones included.
    pub available_slots: Option<Count>,
    /// Slots of a page; up to Ruby 3.1, where all slots have one size.
    pub slots_per_page: Option<Count>,
    /// The size of a slot, up to Ruby 3.1.
    pub slot_size: Option<Bytes>,
    /// The size of a page.
    pub page_size: Bytes,
    /// Pages with a live object.
    pub eden_pages: Count,
    /// Pages without one, which are kept: `heap_tomb_pages`, `heap_empty_pages`.
    pub empty_pages: Option<Count>,
    /// Places in the list of pages; up to Ruby 3.3.
    pub list_places: Option<Count>,
    /// Places for pages that the collector may still add without a collection.
    pub allocatable_pages: Option<Count>,
    /// Pages by the size of their slots, since Ruby 3.2.
    pub pools: Vec<RubyPool>,
}

/// Pages of slots of one size.
#[allow(missing_docs)] // names say it
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RubyPool {
    /// The size of a slot.
    pub slot_size: Bytes,
    /// Pages with a live object.
    pub eden_pages: Count,
    pub eden_slots: Count,
    /// Live slots; unknown in Ruby 3.2.
    pub live_slots: Option<Count>,
}

impl RubyPool {
    /// Returns the share of slots that are live.
    pub fn occupancy(&self) -> Option<Ratio> {
        self.live_slots.and_then(|live| share(live, self.eden_slots))
    }

    /// Returns the size of its free slots.
    pub fn free(&self) -> Option<Bytes> {
        let free = self.eden_slots.saturating_sub(self.live_slots?);
        Some(times(self.slot_size, free))
    }
}

impl RubyStats {
    /// Reads the last report of a text: what [`SNIPPET`] prints, or a bare `GC.stat`.
    ///
    /// # Errors
    /// [`RuntimeStatsError`] if it is no JSON, or lacks live slots or eden pages.
    pub fn parse(text: &[u8]) -> Result<Self, RuntimeStatsError> {
        let kind = StatsKind::Ruby;
        let missing = |field| RuntimeStatsError::Missing { kind, field };
        let start = start_of_object(text).ok_or_else(|| missing("a JSON object"))?;
        let object = text.get(start..).unwrap_or_default();
        let report: RubyReport = from_json(kind, text, object)?;
        let stat = match report.stat {
            Some(stat) => stat,
            None => from_json(kind, text, object)?,
        };
        let constants = report.constants.unwrap_or_default();
        let heaps = report.heaps.unwrap_or_default();
        let mut pools: Vec<RubyPool> = heaps.values().map(GcPool::read).collect();
        let has_pools = !pools.is_empty();
        let live_slots = stat.heap_live_slots.ok_or_else(|| missing("`heap_live_slots`"))?;
        let eden_pages = stat.heap_eden_pages.ok_or_else(|| missing("`heap_eden_pages`"))?;
        if let [only] = pools.as_mut_slice() {
            only.live_slots = Some(Count::new(live_slots));
        }
        let page_size =
            constants.page_size().unwrap_or(Bytes::from_kib(if has_pools { 64 } else { 16 }));
        Ok(Self {
            version: report.ruby,
            pid: report.pid,
            collections: stat.count.map(Count::new),
            live_slots: Count::new(live_slots),
            survived_slots: stat.heap_marked_slots.map(Count::new),
            available_slots: stat.heap_available_slots.map(Count::new),
            slots_per_page: constants.objects.filter(|_| !has_pools).map(Count::new),
            slot_size: constants.slot.filter(|_| !has_pools).map(Bytes::new),
            page_size,
            eden_pages: Count::new(eden_pages),
            empty_pages: stat.heap_tomb_pages.or(stat.heap_empty_pages).map(Count::new),
            list_places: stat.heap_sorted_length.map(Count::new),
            allocatable_pages: stat.heap_allocatable_pages.map(Count::new),
            pools,
        })
    }

    /// Returns the slots of pages with a live object: of all pools, or pages × slots of a page, or what all pages have.
    pub fn eden_slots(&self) -> Option<Count> {
        if !self.pools.is_empty() {
            return Some(self.pools.iter().map(|pool| pool.eden_slots).sum());
        }
        let of_pages = |slots: Count| times_count(self.eden_pages, slots);
        self.slots_per_page.map(of_pages).or(self.available_slots)
    }

    /// Returns the share of slots that are live: `live_slots / (eden_pages × slots of a page)`.
    pub fn slot_occupancy(&self) -> Option<Ratio> {
        share(self.live_slots, self.eden_slots()?)
    }

    /// Returns the share of places in the list of pages that have a page: `eden_pages / sorted_length`. The others are for
    /// pages to come, or of pages that were freed: a place has 8 bytes, so that they cost nothing.
    pub fn list_occupancy(&self) -> Option<Ratio> {
        share(self.eden_pages, self.list_places?)
    }

    /// Returns the places of pages that were given back to malloc.
    pub fn freed_places(&self) -> Option<Count> {
        let places = self.list_places?.saturating_sub(self.eden_pages);
        let kept =
            self.empty_pages.unwrap_or_default() + self.allocatable_pages.unwrap_or_default();
        Some(places.saturating_sub(kept))
    }

    /// Returns the size of all pages.
    pub fn size(&self) -> Bytes {
        times(self.page_size, self.eden_pages + self.empty_pages.unwrap_or_default())
    }

    /// Returns the size of free slots in pages that have a live object; `None` if a pool's live slots are unknown.
    pub fn free(&self) -> Option<Bytes> {
        if !self.pools.is_empty() {
            return self.pools.iter().map(RubyPool::free).sum();
        }
        let free = self.eden_slots()?.saturating_sub(self.live_slots);
        self.slot_size.map(|size| times(size, free))
    }
}

/// The report as JSON; all else in it is skipped.
#[derive(Deserialize)]
struct RubyReport {
    ruby: Option<String>,
    pid: Option<u64>,
    stat: Option<GcStat>,
    constants: Option<GcConstants>,
    /// A pool's number is below 256; a number that comes again replaces the one before.
    heaps: Option<BTreeMap<u8, GcPool>>,
}

#[derive(Deserialize)]
struct GcStat {
    count: Option<u64>,
    heap_live_slots: Option<u64>,
    heap_marked_slots: Option<u64>,
    heap_available_slots: Option<u64>,
    heap_eden_pages: Option<u64>,
    heap_tomb_pages: Option<u64>,
    heap_empty_pages: Option<u64>,
    heap_sorted_length: Option<u64>,
    heap_allocatable_pages: Option<u64>,
}

#[derive(Deserialize, Default)]
struct GcConstants {
    #[serde(rename = "HEAP_PAGE_OBJ_LIMIT")]
    objects: Option<u64>,
    #[serde(rename = "RVALUE_SIZE")]
    slot: Option<u64>,
    #[serde(rename = "HEAP_PAGE_SIZE")]
    page: Option<u64>,
}

impl GcConstants {
    /// The size of a page: named since Ruby 3.1; before, the power of two that its slots fill.
    fn page_size(&self) -> Option<Bytes> {
        let filled = || self.objects?.checked_mul(self.slot?)?.checked_next_power_of_two();
        self.page.or_else(filled).map(Bytes::new)
    }
}

#[derive(Deserialize)]
struct GcPool {
    slot_size: u64,
    heap_eden_pages: u64,
    heap_eden_slots: u64,
    heap_live_slots: Option<u64>,
    total_allocated_objects: Option<u64>,
    total_freed_objects: Option<u64>,
}

impl GcPool {
    fn read(&self) -> RubyPool {
        let counted = || self.total_allocated_objects?.checked_sub(self.total_freed_objects?);
        RubyPool {
            slot_size: Bytes::new(self.slot_size),
            eden_pages: Count::new(self.heap_eden_pages),
            eden_slots: Count::new(self.heap_eden_slots),
            live_slots: self.heap_live_slots.or_else(counted).map(Count::new),
        }
    }
}

/// Where the object begins that has the last live slots: at the start of a line, or else at the first brace of the text.
fn start_of_object(text: &[u8]) -> Option<usize> {
    let field = memchr::memmem::rfind(text, FIELD.as_bytes())?;
    let before = text.get(..field)?;
    memchr::memmem::rfind(before, b"\n{")
        .map(|line_end| line_end + 1)
        .or_else(|| memchr::memchr(b'{', before))
}

fn share(part: Count, whole: Count) -> Option<Ratio> {
    (whole > Count::ZERO).then(|| Ratio::new(part.get() as f64 / whole.get() as f64))
}

const fn times(size: Bytes, count: Count) -> Bytes {
    Bytes::new(size.get().saturating_mul(count.get()))
}

const fn times_count(count: Count, of_each: Count) -> Count {
    Count::new(count.get().saturating_mul(of_each.get()))
}
