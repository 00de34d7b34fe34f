//! The answer of `where --by`: RAM by owners of one kind.

use diagnose::accounting::{OwnerRow, OwnerTable, RestRow};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;
use units::{Bytes, Span};

use super::time::wall;
use super::{Host, Source};

/// Name and version of the contract of `where --by`.
pub const WHERE_BY_SCHEMA: &str = "memtide-where-by/1";

/// The whole answer of `where --by`. `rows` and `rest` add up to `total_bytes`, or to `exceeds_bytes` more.
#[allow(missing_docs)] // names say it
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct WhereByReport {
    /// Name and version of this contract.
    #[schemars(extend("const" = "memtide-where-by/1"))]
    pub schema: &'static str,
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
    pub rows: Vec<OwnerRow>,
    /// What no row has, free memory last.
    pub rest: Vec<RestRow>,
    /// What this table cannot know, in sentences.
    pub unknown: Vec<String>,
}

impl WhereByReport {
    /// The answer of `where --by`, about the time of the table.
    pub fn new(source: &timeline::Source, table: &OwnerTable) -> Self {
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
            rows: table.rows.clone(),
            rest: table.rest.clone(),
            unknown: table.unknown.clone(),
        }
    }
}
