//! How much memory a source may take, counted by what is added to it: a hostile file of a few megabytes can name a million
//! processes.
//!
//! It bounds what a source keeps, so that two sources that are compared fit in 300 MiB with all that is computed of them.
//! What a reader needs for one line or one table is bounded where it reads.

use units::Bytes;

/// The memory that a source may take, and what of it is taken.
#[derive(Debug, Clone, Copy)]
pub struct MemoryBudget {
    bytes_max: usize,
    /// The part that entities may take: a quarter is left to the host's own samples.
    entities_bytes_max: usize,
    used: usize,
}

/// What found no room in a source.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LeftOut {
    /// Signals of the host, each with its readings in a part of a recording.
    pub host_signals: usize,
    /// Rows of processes, cgroups and other entities.
    pub entity_rows: usize,
    /// Kernel reports.
    pub reports: usize,
    /// Events that a recorder noted.
    pub events: usize,
}

impl MemoryBudget {
    /// The most memory of a source: of its timeline and its facts.
    pub const SOURCE: Bytes = Bytes::from_mib(144);
    /// The part of the facts: a thousand times what a host's settings and their changes take.
    const FACTS_BYTES_MAX: usize = 8 << 20;
    const TIMELINE_BYTES_MAX: usize = (144 << 20) - Self::FACTS_BYTES_MAX;

    /// An entity without its names and readings: its place in the tree, and what the allocator adds.
    const ENTITY_BYTES: usize = 400;
    /// A column with room for its first readings, of which one takes no allocation and more take four at least.
    const COLUMN_BYTES: usize = 112;
    const RUN_BYTES: usize = 16;
    /// A sample without its readings.
    pub(crate) const SAMPLE_BYTES: usize = 160;
    /// A kernel report without its lines, of which each may become a row.
    const REPORT_BYTES: usize = 2048;
    /// An event without its texts.
    const EVENT_BYTES: usize = 256;
    /// A change of a fact without its texts.
    const CHANGE_BYTES: usize = 160;

    /// That of a timeline which is copied into another one.
    pub(crate) const fn of_a_part() -> Self {
        Self::new(Self::TIMELINE_BYTES_MAX / 2)
    }

    /// That of a timeline of a recorder's own samples, of which no sample may be lost.
    pub(crate) const fn of_own_samples() -> Self {
        Self { bytes_max: usize::MAX, ..Self::new(Self::TIMELINE_BYTES_MAX) }
    }

    /// That of facts.
    pub(crate) const fn of_facts() -> Self {
        Self::new(Self::FACTS_BYTES_MAX)
    }

    const fn new(bytes_max: usize) -> Self {
        Self { bytes_max, entities_bytes_max: bytes_max / 4 * 3, used: 0 }
    }

    /// Whether nothing more has room.
    pub(crate) const fn is_spent(&self) -> bool {
        self.used >= self.bytes_max
    }

    /// Whether entities have room.
    pub(crate) const fn has_room_for_entities(&self) -> bool {
        self.used < self.entities_bytes_max
    }

    /// The same with nothing taken.
    pub(crate) const fn emptied(self) -> Self {
        Self { used: 0, ..self }
    }

    /// Takes memory, whether there is room or not.
    pub(crate) const fn take(&mut self, bytes: usize) {
        self.used = self.used.saturating_add(bytes);
    }

    /// Takes memory if there is room.
    pub(crate) const fn takes(&mut self, bytes: usize) -> bool {
        let has_room = self.used.saturating_add(bytes) <= self.bytes_max;
        if has_room {
            self.used += bytes;
        }
        has_room
    }

    /// Gives memory back.
    pub(crate) const fn give_back(&mut self, bytes: usize) {
        self.used = self.used.saturating_sub(bytes);
    }

    /// The memory of columns and their readings.
    pub(crate) const fn of_readings(columns: usize, runs: usize) -> usize {
        columns * Self::COLUMN_BYTES + runs * Self::RUN_BYTES
    }

    /// The memory of an entity with these names. The key is in the tree as well, and in up to three more copies while a
    /// source is compared or written.
    pub(crate) const fn of_entity(key: &str, label: &str, group: &str) -> usize {
        Self::ENTITY_BYTES + 5 * key.len() + label.len() + group.len()
    }

    /// The memory of a kernel report, from the length of its lines.
    pub(crate) const fn of_report(lines: usize) -> usize {
        Self::REPORT_BYTES + 2 * lines
    }

    /// The memory of an event with texts of this length in all.
    pub(crate) const fn of_event(texts: usize) -> usize {
        Self::EVENT_BYTES + texts
    }

    /// The memory of a change of a fact with texts of this length in all.
    pub(crate) const fn of_change(texts: usize) -> usize {
        Self::CHANGE_BYTES + texts
    }
}

/// The start of a text: at most this many bytes of it, and whole characters.
pub fn start_of(text: &str, bytes_max: usize) -> &str {
    let mut ends = (0..=bytes_max.min(text.len())).rev();
    let end = ends.find(|end| text.is_char_boundary(*end));
    end.and_then(|end| text.get(..end)).unwrap_or_default()
}

impl Default for MemoryBudget {
    /// That of a timeline.
    fn default() -> Self {
        Self::new(Self::TIMELINE_BYTES_MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_are_the_whole() {
        let parts = MemoryBudget::FACTS_BYTES_MAX + MemoryBudget::TIMELINE_BYTES_MAX;
        assert_eq!(parts as u64, MemoryBudget::SOURCE.get());
    }

    #[test]
    fn a_text_is_cut_between_characters() {
        assert_eq!(start_of("née", 2), "n");
        assert_eq!(start_of("née", 3), "né");
        assert_eq!(start_of("née", 9), "née");
    }

    #[test]
    fn what_has_no_room_takes_none() {
        let mut budget = MemoryBudget::of_facts();
        assert!(!budget.takes(9 << 20));
        assert!(budget.takes(5 << 20));
        assert!(!budget.takes(5 << 20));
        budget.give_back(5 << 20);
        assert!(budget.takes(8 << 20) && budget.is_spent());
    }
}
