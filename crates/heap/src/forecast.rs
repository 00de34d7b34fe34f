//! What a heap would give back with fewer arenas: a model, checked against real programs.
//!
//! Threads that need memory at different times leave each arena with room for its own peak. The peaks of independent
//! demands add up like the square root of their number, so the free memory of A arenas shrinks to √(max/A) of it with
//! at most `max`. Live data stays what it is.

use crate::heap::{Arena, Heap};

/// What a restart with fewer arenas would save.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ArenaForecast {
    /// Arenas that have more than a hundredth of the free memory: the others do not matter.
    pub arenas: u64,
    /// The number of arenas that it is about.
    pub arenas_max: u64,
    /// At least about this many bytes.
    pub low_bytes: u64,
    /// At most about this many bytes.
    pub high_bytes: u64,
}

/// Real savings were between these shares of the model's.
const RANGE: (f64, f64) = (0.65, 1.1);

impl Heap {
    /// Returns what a restart with at most `arenas_max` arenas (`MALLOC_ARENA_MAX`) would save; `None` if the heap has
    /// no more than that.
    pub fn with_arenas(&self, arenas_max: u64) -> Option<ArenaForecast> {
        let free: Vec<u64> = self.arenas.iter().map(free_resident).collect();
        let all: u64 = free.iter().sum();
        let arenas = free.iter().filter(|one| **one > all / 100).count() as u64;
        if arenas <= arenas_max {
            return None;
        }
        let saving = all as f64 * (1.0 - (arenas_max as f64 / arenas as f64).sqrt());
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // a share of a u64
        let share = |of: f64| (saving * of) as u64;
        Some(ArenaForecast {
            arenas,
            arenas_max,
            low_bytes: share(RANGE.0),
            high_bytes: share(RANGE.1),
        })
    }
}

fn free_resident(arena: &Arena) -> u64 {
    arena.pages.free_resident
}
