//! The dictionary: the names of entities and signals in the order of tables and columns, at the beginning of each file.
//! It keeps files of an older or later catalogue readable; unknown names are skipped and reported.

use std::sync::OnceLock;

use timeline::SignalId;
use timeline::signals::{self, Entity};

use super::bytes::{ByteReader, put, put_text};
use super::frame::{self, FrameKind, MARK};

/// The columns of one table in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DictionaryColumns {
    /// The kind of entity; `None` if this version does not know it.
    pub(super) entity: Option<Entity>,
    /// The signals, in order; `None` for those that this version does not know.
    pub(super) signals: Vec<Option<SignalId>>,
}

/// The tables of a file, and the names that this version does not know.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct NameDictionary {
    pub(super) tables: Vec<DictionaryColumns>,
    pub(super) strange: Vec<String>,
    /// Identifies the dictionary that a sample was written with.
    pub(super) checksum: u32,
}

impl NameDictionary {
    /// More tables or columns are invalid.
    const ENTRIES_MAX: u64 = 4096;

    /// Returns this memtide's own dictionary.
    pub(super) fn own() -> Self {
        Self::read(own_payload()).unwrap_or_default()
    }

    pub(super) fn read(payload: &[u8]) -> Option<Self> {
        let mut input = ByteReader(payload.strip_prefix(MARK)?);
        let mut dictionary = Self { checksum: crc32fast::hash(payload), ..Self::default() };
        for _ in 0..input.number().filter(|tables| *tables < 0x80)? {
            let name = input.string()?;
            let entity = Entity::ALL.into_iter().find(|entity| entity.name() == name);
            if entity.is_none() {
                dictionary.strange.push(name);
            }
            let count = input.number().filter(|count| *count <= Self::ENTRIES_MAX)?;
            let columns = 0..usize::try_from(count).ok()?;
            let signals = columns.map(|column| dictionary.signal(&mut input, entity, column));
            let signals = signals.collect::<Option<_>>()?;
            dictionary.tables.push(DictionaryColumns { entity, signals });
        }
        Some(dictionary)
    }

    /// Reads the name of the next signal; the outer `None`: the bytes are malformed, the inner: the signal is unknown.
    fn signal(
        &mut self,
        input: &mut ByteReader<'_>,
        entity: Option<Entity>,
        column: usize,
    ) -> Option<Option<SignalId>> {
        let name = input.string()?;
        // In a file of this same catalogue it is at the same index.
        let place = entity.map_or(0, |entity| entity.signals().start) + column;
        let here = SignalId::from_index(place).filter(|id| id.def().name == name);
        let found = here
            .or_else(|| signals::by_name(&name).map(|(id, _)| id))
            .filter(|id| Some(id.def().entity) == entity);
        if found.is_none() {
            self.strange.push(name);
        }
        Some(found)
    }
}

/// Appends this memtide's dictionary.
pub(crate) fn put_own(into: &mut Vec<u8>) {
    let at = frame::begin(into, FrameKind::Dictionary);
    into.extend_from_slice(own_payload());
    frame::end(into, at);
}

/// Returns the checksum of this memtide's dictionary.
pub(super) fn checksum_of_own() -> u32 {
    crc32fast::hash(own_payload())
}

fn own_payload() -> &'static [u8] {
    static PAYLOAD: OnceLock<Vec<u8>> = OnceLock::new();
    PAYLOAD.get_or_init(|| {
        let mut payload = MARK.to_vec();
        put(&mut payload, Entity::ALL.len() as u64);
        for entity in Entity::ALL {
            put_text(&mut payload, entity.name().as_bytes());
            put(&mut payload, entity.signals().len() as u64);
            for def in &signals::ALL[entity.signals()] {
                put_text(&mut payload, def.name.as_bytes());
            }
        }
        payload
    })
}
