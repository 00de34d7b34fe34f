//! What a segment says beside its tables: the metadata of its files, as JSON for anyone.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use timeline::{Absence, Facts, SignalId, Timeline};

use super::names;
use crate::head::kernel_file;
use crate::identity::{FORMAT, Identity};

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
        let rounded = timeline.rounded().filter_map(|signal| {
            Some((
                signal.def().name.to_owned(),
                timeline.error_at_most(signal)?,
            ))
        });
        Self {
            absent: absent.collect(),
            unknown: unknown
                .map(|(file, field, value)| (file.to_owned(), field.to_owned(), value))
                .collect(),
            rounded: rounded.collect(),
            entities_cut: timeline.entities_cut(),
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
                timeline.round(signal, error);
            }
        }
    }
}

/// The pairs of metadata that all files of a segment have.
pub(super) fn pairs(host: &Identity, facts: &Facts, signals: &[SignalId]) -> Vec<(String, String)> {
    let host = serde_json::json!({ "id": host.id, "name": host.name });
    let facts: BTreeMap<_, _> = crate::facts::entries(facts).into_iter().collect();
    let pairs = [
        ("memtide.format", FORMAT.to_string()),
        ("memtide.catalogue", env!("CARGO_PKG_VERSION").to_owned()),
        ("memtide.host", host.to_string()),
        ("memtide.facts", json(&facts)),
        ("memtide.signals", json(&units_of(signals))),
    ];
    pairs.map(|(key, value)| (key.to_owned(), value)).into()
}

/// The key of [`About`].
pub(crate) const ABOUT: &str = "memtide.about";

/// What is serialised here has no maps with odd keys, so it never fails.
pub(crate) fn json<T: Serialize>(value: &T) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

/// Names of signals by kind and unit: `{"counter": {"pages": ["vm.pswpin"]}}`.
fn units_of(signals: &[SignalId]) -> BTreeMap<&str, BTreeMap<&str, Vec<&str>>> {
    let mut all: BTreeMap<_, BTreeMap<_, Vec<_>>> = BTreeMap::new();
    for def in signals.iter().map(|signal| signal.def()) {
        let of_kind = all.entry(def.kind()).or_default();
        of_kind.entry(def.unit).or_default().push(def.name);
    }
    all
}
