//! `about.json`: the content of a segment besides its tables. One file for all of it, as metadata of Parquet is not
//! compressed.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use timeline::{Absence, Entity, Facts, SignalId, Timeline};

use super::names;
use crate::directory::identity::HostIdentity;
use crate::files;
use crate::head::kernel_file;

/// What applies to all samples of a segment.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct About {
    /// Kernel files that could not be read, and why.
    pub(crate) absent: BTreeMap<String, Why>,
    /// Fields of kernel files that the catalogue did not know: file, field, last value.
    pub(crate) unknown: Vec<(String, String, u64)>,
    /// Host signals that were rounded when they were printed, with the largest rounding error.
    pub(crate) rounded: BTreeMap<String, u64>,
    /// How many rows of entities were dropped before the segment was written.
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

/// Returns how many ended entities were evicted.
fn evicted(timeline: &Timeline) -> usize {
    let kinds = Entity::ALL.into_iter();
    kinds.map(|kind| timeline.evicted(kind).count).sum()
}

impl About {
    /// Collects it from a timeline.
    pub(crate) fn from_timeline(timeline: &Timeline) -> Self {
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
            Some((signal.def().name.to_owned(), timeline.rounding_error(signal)?))
        });
        Self {
            absent: absent.collect(),
            unknown: unknown
                .map(|(file, field, value)| (file.to_owned(), field.to_owned(), value))
                .collect(),
            rounded: rounded.collect(),
            entities_cut: timeline.left_out().entity_rows + evicted(timeline),
        }
    }

    /// Adds it to a timeline.
    pub(crate) fn add_to(self, timeline: &mut Timeline) {
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

/// The content of `about.json`. memtide reads only [`About`] from it; the other fields describe the tables to other
/// programs.
#[derive(Debug, Serialize)]
pub(super) struct AboutFile {
    /// The version of memtide that wrote it.
    memtide: &'static str,
    host: Value,
    /// The facts of the host, by name.
    facts: BTreeMap<String, Value>,
    /// Names of the tables' signals by kind and unit.
    signals: BTreeMap<&'static str, BTreeMap<&'static str, Vec<&'static str>>>,
    #[serde(flatten)]
    about: About,
}

impl AboutFile {
    /// Creates the content without signals, which [`Self::signals`] adds.
    pub(super) fn new(host: &HostIdentity, facts: &Facts, about: About) -> Self {
        Self {
            memtide: env!("CARGO_PKG_VERSION"),
            host: serde_json::json!({ "id": host.id, "name": host.name }),
            facts: crate::facts::entries(facts).into_iter().collect(),
            signals: BTreeMap::new(),
            about,
        }
    }

    /// Adds a table's signals.
    pub(super) fn signals(&mut self, signals: impl IntoIterator<Item = SignalId>) {
        for def in signals.into_iter().map(SignalId::def) {
            let of_kind = self.signals.entry(def.kind()).or_default();
            of_kind.entry(def.unit).or_default().push(def.name);
        }
    }

    /// Writes and syncs it.
    pub(super) fn write(&self, path: &Path) -> std::io::Result<()> {
        let mut file = files::create_draft(path)?;
        file.write_all(&serde_json::to_vec(self)?)?;
        file.sync_all()
    }
}
