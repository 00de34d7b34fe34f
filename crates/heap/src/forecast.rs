//! What a heap would give back with fewer arenas: a model, checked against real programs.
//!
//! Each arena keeps room for the largest demand that it ever had. Live data stays what it is with fewer arenas; how much
//! room they need depends on what one reading cannot show: when the threads' demands coincide. Two cases bound it. Of
//! independent demands, peaks add up like the square root of their number, so the free memory of A arenas shrinks to
//! √(max/A) of it. Demands that never coincide (threads that start one after another, jobs under a global lock) shrink
//! it to max/A. Peaks of all threads at once save nothing.
//!
//! Compared with real savings of 25 programs (C, C++, Ruby, Python, MariaDB) on a host with 2 CPUs and glibc 2.36, 21 are
//! inside: 8 of the 10 that the two shares below were chosen by, 10 of 10 that were run next (the lower share was raised
//! from 0.4 to 0.5 when 7 of these were known; all are inside with both), and 3 of 5 that were run last, when nothing was
//! changed any more. All four outside saved less: a queue with a backlog that grew by 35 MiB as its threads waited for
//! locks, threads that peak together at a barrier, strings that grow by `realloc`, and Python's blocks of up to 1 MiB.
//! The lower figure is no guarantee. `tests/it/forecast.rs` repeats eleven of them.

use crate::heap::{Arena, Heap};

/// What a restart with fewer arenas would save.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ArenaForecast {
    /// Arenas that have more than a hundredth of the resident heap: the others do not matter.
    pub arenas: u64,
    /// The number of arenas that it is about.
    pub arenas_max: u64,
    /// At least about this many bytes.
    pub low_bytes: u64,
    /// At most about this many bytes.
    pub high_bytes: u64,
}

/// Of what independent demands save, real programs saved at least this share: large blocks do not fit into each hole.
const LOW: f64 = 0.5;
/// Of what demands that never coincide save, at most this share: live data of one thread fills the holes of another.
const HIGH: f64 = 1.2;

impl Heap {
    /// Returns what a restart with at most `arenas_max` arenas (`MALLOC_ARENA_MAX`) would save; `None` if the heap has
    /// no more than that.
    pub fn with_arenas(&self, arenas_max: u64) -> Option<ArenaForecast> {
        let sum = |of: fn(&Arena) -> u64| self.arenas.iter().map(of).sum::<u64>();
        let resident = sum(|arena| arena.pages.resident);
        let counts = |arena: &&Arena| arena.pages.resident > resident / 100;
        let arenas = self.arenas.iter().filter(counts).count() as u64;
        if arenas <= arenas_max {
            return None;
        }
        let free = sum(|arena| arena.pages.free_resident) as f64;
        let left = arenas_max as f64 / arenas as f64;
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // shares of a u64
        let (low, high) = (
            (free * LOW * (1.0 - left.sqrt())) as u64,
            (free * (HIGH * (1.0 - left)).min(1.0)) as u64,
        );
        Some(ArenaForecast { arenas, arenas_max, low_bytes: low, high_bytes: high })
    }
}
