//! `about.json`: what a segment says beside its tables. Once for all of them, as metadata of Parquet is never compressed.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use timeline::{Absence, Entity, Facts, SignalId, Timeline};

use super::names;
use crate::head::kernel_file;
use crate::identity::Identity;

/// What is known of the samples of a segment as a whole.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct About {
    /// Kernel files that could not be read, and why.
    pub(crate) absent: BTreeMap<String, Why>,
    /// Fields of kernel files that the catalogue did not know: file, field, last value.
    pub(crate) unknown: Vec<(String, String, u64)>,
    /// Host signals that were rounded when they were printed: how far the true readings may lie from those given.
    pub(crate) rounded: BTreeMap<String, u64>,
    /// Rows of entities that were dropped before they came here.
    pub(crate) entities_cut: usize,
}

/// Why a kernel file could not be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Why {
    NotFound,
    PermissionDenied,
    Failed(String),
}

/// How many entities had ended and were left out.
fn left_out(timeline: &Timeline) -> usize {
    let kinds = Entity::ALL.into_iter();
    kinds.map(|kind| timeline.evicted(kind).count).sum()
}

impl About {
    /// What a timeline says.
    pub(crate) fn of(timeline: &Timeline) -> Self {
        let absent = timeline.absent.iter().map(|(file, why)| {
            let why = match why {
                Absence::NotFound => Why::NotFound,
                Absence::PermissionDenied => Why::PermissionDenied,
                Absence::Failed(reason) => Why::Failed(reason.clone()),
            };
            ((*file).to_owned(), why)
        });
        let unknown = timeline.unknown();
        let rounded = timeline.rounded_signals().filter_map(|signal| {
            Some((
                signal.def().name.to_owned(),
                timeline.rounding_error(signal)?,
            ))
        });
        Self {
            absent: absent.collect(),
            unknown: unknown
                .map(|(file, field, value)| (file.to_owned(), field.to_owned(), value))
                .collect(),
            rounded: rounded.collect(),
            entities_cut: timeline.dropped_entity_rows() + left_out(timeline),
        }
    }

    /// Tells a timeline.
    pub(crate) fn tell(self, timeline: &mut Timeline) {
        for (file, why) in self.absent {
            let why = match why {
                Why::NotFound => Absence::NotFound,
                Why::PermissionDenied => Absence::PermissionDenied,
                Why::Failed(reason) => Absence::Failed(reason),
            };
            if let Some(file) = kernel_file(&file) {
                timeline.absent.insert(file, why);
            }
        }
        for (file, field, value) in self.unknown {
            if let Some(file) = kernel_file(&file) {
                timeline.note_unknown(file, field, value);
            }
        }
        for (name, error) in self.rounded {
            if let Some(signal) = names::signal(&name) {
                timeline.note_rounding(signal, error);
            }
        }
    }
}

/// A segment's `about.json`. Readers take [`About`] from it; the rest is for who has the tables only.
#[derive(Debug, Serialize)]
pub(super) struct Told {
    /// The memtide that wrote it.
    memtide: &'static str,
    host: Value,
    /// All that was known of the host apart from samples, by name.
    facts: BTreeMap<String, Value>,
    /// Names of the tables' signals by kind and unit.
    signals: BTreeMap<&'static str, BTreeMap<&'static str, Vec<&'static str>>>,
    #[serde(flatten)]
    about: About,
}

impl Told {
    /// What is told of a segment; its signals come with [`Self::signals`].
    pub(super) fn new(host: &Identity, facts: &Facts, about: About) -> Self {
        Self {
            memtide: env!("CARGO_PKG_VERSION"),
            host: serde_json::json!({ "id": host.id, "name": host.name }),
            facts: crate::facts::entries(facts).into_iter().collect(),
            signals: BTreeMap::new(),
            about,
        }
    }

    /// Tells of a table's signals.
    pub(super) fn signals(&mut self, signals: impl IntoIterator<Item = SignalId>) {
        for def in signals.into_iter().map(SignalId::def) {
            let of_kind = self.signals.entry(def.kind()).or_default();
            of_kind.entry(def.unit).or_default().push(def.name);
        }
    }

    /// Writes and syncs it.
    pub(super) fn write(&self, path: &Path) -> std::io::Result<()> {
        let mut file = File::create(path)?;
        file.write_all(&serde_json::to_vec(self)?)?;
        file.sync_all()
    }
}

/// What is serialised here has no maps with odd keys, so it never fails.
pub(crate) fn json<T: Serialize>(value: &T) -> String {
    serde_json::to_string(value).unwrap_or_default()
}
