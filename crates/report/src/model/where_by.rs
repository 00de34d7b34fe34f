//! The answer of `where --by`: RAM by owners of one kind.

use diagnose::accounting::{OwnerRow, OwnerTable};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;
use units::{Bytes, Ratio, SignedBytes, Span};

use super::time::wall;
use super::{Host, Source};

/// Name and version of the contract of `where --by`.
pub const WHERE_BY_SCHEMA: &str = "memtide-where-by/1";

/// The whole answer of `where --by`. `rows` and `rest` add up to `total_bytes`, or to `exceeds_bytes` more.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct WhereByReport {
    /// Name and version of this contract.
    #[schemars(extend("const" = "memtide-where-by/1"))]
    pub schema: &'static str,
    /// The host.
    pub host: Host,
    /// Where the samples came from.
    pub source: Source,
    /// What has a row: `unit`, `container`, `pod`, `user`, `process`, `cgroup`, `node`, `mount`.
    pub by: &'static str,
    /// When; null where the source has no wall clock.
    pub at: Option<Timestamp>,
    /// When, from the first sample on.
    pub at_s: f64,
    /// MemTotal.
    pub total_bytes: Bytes,
    /// What the sizes are.
    pub measured: &'static str,
    /// Whether sizes count shared memory more than once.
    pub is_estimate: bool,
    /// How much more the rows have than RAM that is in use, because shared memory counts more than once.
    pub exceeds_bytes: Bytes,
    /// Since when growth counts; null where the source has one sample of them.
    pub grown_for_s: Option<Span>,
    /// The owners, the largest first.
    pub rows: Vec<OwnerEntry>,
    /// What no row has, free memory last.
    pub rest: Vec<RestEntry>,
    /// What this table cannot know, in sentences.
    pub unknown: Vec<String>,
}

/// An owner of memory.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct OwnerEntry {
    /// What identifies it: the path of its cgroup, an id of a container, a UID, a PID with its start time.
    pub key: String,
    /// What people call it; may be a name from the host.
    pub name: String,
    /// What else is worth knowing; empty if nothing.
    pub note: String,
    /// Its memory, without that of owners within it.
    pub bytes: Bytes,
    /// Its share of MemTotal.
    pub share: Option<Ratio>,
    /// Its own limit; null where it has none below RAM, or none is known.
    pub limit_bytes: Option<Bytes>,
    /// How much of that is used, memory of owners within it included.
    pub of_limit: Option<Ratio>,
    /// How much it grew since the first sample; null where that is not known.
    pub growth_bytes: Option<SignedBytes>,
    /// Whether it was not there at the first sample.
    pub is_new: bool,
}

/// Memory that no row has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RestEntry {
    /// What it is.
    pub label: &'static str,
    /// Its size.
    pub bytes: Bytes,
}

impl WhereByReport {
    /// The answer of `where --by`, about the time of the table.
    pub fn new(source: &timeline::Source, table: &OwnerTable) -> Self {
        let rest = table.rest.iter();
        Self {
            schema: WHERE_BY_SCHEMA,
            host: Host::new(source),
            source: Source::new(source),
            by: table.by.name(),
            at: wall(&source.timeline, table.at),
            at_s: table.at.as_secs_f64(),
            total_bytes: table.total,
            measured: table.measured,
            is_estimate: table.is_estimate,
            exceeds_bytes: table.exceeds,
            grown_for_s: table.grown_for,
            rows: table.rows.iter().map(|row| entry(row, table.total)).collect(),
            rest: rest.map(|row| RestEntry { label: row.label, bytes: row.bytes }).collect(),
            unknown: table.unknown.clone(),
        }
    }
}

fn entry(row: &OwnerRow, total: Bytes) -> OwnerEntry {
    OwnerEntry {
        key: row.key.clone(),
        name: row.name.clone(),
        note: row.note.clone(),
        bytes: row.bytes,
        share: row.bytes.ratio_of(total),
        limit_bytes: row.limit,
        of_limit: row.of_limit,
        growth_bytes: row.growth,
        is_new: row.is_new,
    }
}
