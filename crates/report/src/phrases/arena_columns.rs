//! The columns and rows of the table of arenas.

use units::Bytes;

use crate::model::explain::ArenaEntry;

/// A column: its heading, what it means, its bytes.
pub(crate) type ArenaColumn = (&'static str, &'static str, fn(&ArenaEntry) -> Bytes);

/// From the left, the most important first: a narrow screen has only these.
pub(crate) const ARENA_COLUMNS: [ArenaColumn; 11] = [
    ("system", "taken from the kernel", |arena| arena.system_bytes),
    ("resident", "in RAM", |arena| arena.resident_bytes),
    ("live", "allocated by the program", |arena| arena.live_bytes),
    ("free", "free, but resident", |arena| arena.free_resident_bytes),
    ("returnable", "malloc_trim returns it", |arena| arena.returnable_bytes),
    ("top kept", "top of a thread arena: malloc_trim keeps it", |arena| arena.thread_top_bytes),
    ("pinned", "free, on pages that also have live chunks", |arena| arena.pinned_bytes),
    ("cached", "in thread caches", |arena| arena.cached_bytes),
    ("fast", "in fast bins", |arena| arena.fast_bytes),
    ("binned", "in other bins", |arena| arena.binned_bytes),
    ("top", "behind the last chunk, resident or not", |arena| arena.top_bytes),
];

/// What an arena is called; the sum of all has no number.
pub(crate) fn arena_name(number: Option<u64>) -> String {
    match number {
        Some(0) => "main".to_owned(),
        Some(number) => number.to_string(),
        None => "all".to_owned(),
    }
}
