//! Objects that several processes may have open: each counts for the first that is found with it.

use std::collections::{HashMap, HashSet};
use std::hash::Hash;

use units::Bytes;

/// At most this many objects of a kind are kept.
const OBJECTS_MAX: usize = 65_536;

/// Sizes of objects by process.
#[derive(Debug)]
pub(super) struct FirstOwners<Id> {
    seen: HashSet<Id>,
    by_process: HashMap<u32, Bytes>,
}

impl<Id> Default for FirstOwners<Id> {
    fn default() -> Self {
        Self { seen: HashSet::new(), by_process: HashMap::new() }
    }
}

impl<Id: Eq + Hash> FirstOwners<Id> {
    /// Whether one more object can be kept.
    pub(super) fn has_room(&self) -> bool {
        self.seen.len() < OBJECTS_MAX
    }

    /// Whether the object was found before.
    pub(super) fn has(&self, id: &Id) -> bool {
        self.seen.contains(id)
    }

    /// Adds an object of a process, unless it was found before.
    pub(super) fn add(&mut self, pid: u32, id: Id, size: Bytes) {
        if self.seen.insert(id) {
            *self.by_process.entry(pid).or_default() += size;
        }
    }

    /// What was found first with a process.
    pub(super) fn of(&self, pid: u32) -> Bytes {
        self.by_process.get(&pid).copied().unwrap_or_default()
    }
}
