//! Exports a source to formats of other programs and to captures: each format is a file here, behind [`Exporter`].
//!
//! Three nouns: an **exporter** writes a source in one format; **picks** are the requested signals; [`Packed`] is a
//! file that is compressed as its name says. No format knows file names or a terminal: each writes bytes to any
//! writer. Nothing is computed: readings are those of the source, in the catalogue's units unless the format has its
//! own.
//!
//! ```
//! use export::{Csv, Exporter, Picks};
//! let mut text = Vec::new();
//! let csv = Csv { table: timeline::Entity::Host };
//! csv.export(&timeline::Source::default(), &Picks::default(), &mut text).unwrap();
//! assert_eq!(text, b"time,elapsed_s\n");
//! ```

#![cfg_attr(test, allow(clippy::string_slice))] // tests cut texts of their own

mod capture;
mod columns;
mod csv;
mod metric;
mod metrics_text;
mod packed;

use std::collections::BTreeSet;
use std::io::{self, Write};

use timeline::{SignalId, Source};

pub use capture::Capture;
pub use csv::{Csv, field, rfc3339};
pub use metrics_text::{MetricsFormat, MetricsText, OwnMetric};
pub use packed::Packed;
pub use timeline::metric::MetricNaming;

/// No signal has this name, or a name that begins so.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no signal `{0}`")]
pub struct UnknownSignal(pub String);

/// The requested signals; all if none is named.
#[derive(Debug, Clone, Default)]
pub struct Picks(BTreeSet<SignalId>);

impl Picks {
    /// Picks of these signals only.
    pub fn only(signals: impl IntoIterator<Item = SignalId>) -> Self {
        Self(signals.into_iter().collect())
    }

    /// Picks of the signals with these names; a name that ends in `*` is a prefix.
    ///
    /// # Errors
    /// The first name that no signal has.
    pub fn from_names(names: &[String]) -> Result<Self, UnknownSignal> {
        let mut picked = BTreeSet::new();
        for name in names {
            let before = picked.len();
            let is_named = |signal: &SignalId| match name.strip_suffix('*') {
                Some(start) => signal.def().name.starts_with(start),
                None => signal.def().name == name,
            };
            picked.extend(SignalId::all().filter(is_named));
            if picked.len() == before {
                return Err(UnknownSignal(name.clone()));
            }
        }
        Ok(Self(picked))
    }

    /// Whether all signals are requested.
    pub fn are_all(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a signal is requested.
    pub fn has(&self, signal: SignalId) -> bool {
        self.0.is_empty() || self.0.contains(&signal)
    }
}

/// The result of an export.
#[derive(Debug, Default)]
pub struct Exported {
    /// Rows, samples or metrics written.
    pub written: usize,
    /// Data that the format could not store, in words.
    pub left_out: Vec<String>,
}

/// A format.
pub trait Exporter {
    /// Returns what [`Exported::written`] counts, in the singular.
    fn unit(&self) -> &'static str;

    /// Writes a source.
    ///
    /// # Errors
    /// Those of the output; [`io::ErrorKind::Unsupported`] with a sentence if the source lacks what the format needs.
    fn export(
        &self,
        source: &Source,
        picks: &Picks,
        output: &mut dyn Write,
    ) -> io::Result<Exported>;
}

#[cfg(test)]
mod tests;
