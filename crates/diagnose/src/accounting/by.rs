//! RAM by units, containers, pods, users, processes, cgroups, NUMA nodes or file systems in RAM: a table that adds up to
//! MemTotal, with what no row has as rows of its own.
//!
//! Units, containers, pods and cgroups have what the kernel charges to their cgroups: page cache and kernel memory too.
//! Where one lies within another of the same kind, its memory counts for the inner one alone. Processes have their PSS or
//! RSS; measures are never mixed in one table.

mod cgroups;
mod others;
mod processes;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;
use timeline::{Entity, Inventory, signals::MEM_FREE};
use units::{Bytes, Ratio, SignedBytes, Span};

pub(crate) use cgroups::own_limit_at;

use super::account;
use crate::evidence::{Evidence, Missing};

/// What a table of memory has a row for.
#[allow(missing_docs)] // names say it
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GroupBy {
    /// Services and scopes of systemd.
    Unit,
    Container,
    /// Pods of Kubernetes or Podman.
    Pod,
    User,
    /// Processes.
    Process,
    /// Cgroups, each without those below it.
    Cgroup,
    /// NUMA nodes.
    Node,
    /// File systems in RAM.
    Mount,
}

impl GroupBy {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Unit,
        Self::Container,
        Self::Pod,
        Self::User,
        Self::Process,
        Self::Cgroup,
        Self::Node,
        Self::Mount,
    ];

    /// Its name, as it is typed.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Unit => "unit",
            Self::Container => "container",
            Self::Pod => "pod",
            Self::User => "user",
            Self::Process => "process",
            Self::Cgroup => "cgroup",
            Self::Node => "node",
            Self::Mount => "mount",
        }
    }
}

/// An owner of memory.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "OwnerEntry")]
pub struct OwnerRow {
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
    #[serde(rename = "limit_bytes")]
    pub limit: Option<Bytes>,
    /// How much of that is used, memory of owners within it included.
    pub of_limit: Option<Ratio>,
    /// How much it grew since the first sample; null where that is not known.
    #[serde(rename = "growth_bytes")]
    pub growth: Option<SignedBytes>,
    /// Whether it was not there at the first sample.
    pub is_new: bool,
}

/// Memory that no row has.
#[allow(missing_docs)] // names say it
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "RestEntry")]
pub struct RestRow {
    /// What it is.
    pub label: &'static str,
    pub bytes: Bytes,
}

/// RAM by owners: the rows, the rest and free memory add up to `total`, unless `exceeds`.
#[derive(Debug, Clone, PartialEq)]
pub struct OwnerTable {
    /// What has a row.
    pub by: GroupBy,
    /// The moment, on the timeline's clock.
    pub at: Span,
    /// MemTotal.
    pub total: Bytes,
    /// The largest first.
    pub rows: Vec<OwnerRow>,
    /// What no row has, free memory last.
    pub rest: Vec<RestRow>,
    /// What the sizes are.
    pub measured: &'static str,
    /// Whether sizes count shared memory more than once.
    pub is_estimate: bool,
    /// How much more the rows have than RAM that is in use: shared memory that counts more than once.
    pub exceeds: Bytes,
    /// Since when growth counts; `None` where one sample is all there is.
    pub grown_for: Option<Span>,
    /// What this table cannot know, in sentences.
    pub unknown: Vec<String>,
}

/// Why a source has no such table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoTable {
    /// It has no MemTotal.
    NoTotal(Missing),
    /// It lacks what says who owns memory: a sentence.
    NoOwners(String),
}

/// The owners of one kind at one sample, before they are sorted and completed.
#[derive(Debug, Default)]
struct OwnersFound {
    rows: Vec<OwnerRow>,
    /// Memory of others of the same measure that no row has, with its name.
    others: Option<RestRow>,
    /// What the last rest is.
    rest: &'static str,
    measured: &'static str,
    is_estimate: bool,
    /// The sample that they were read at.
    at: usize,
    /// Sizes at the first sample that has any, by key.
    first: Option<(usize, BTreeMap<String, Bytes>)>,
    unknown: Vec<String>,
}

/// Returns RAM by owners at sample `index`.
///
/// # Errors
/// [`NoTable`] if the source lacks what the table needs.
pub fn by_owner(
    cx: &Evidence<'_>,
    index: usize,
    by: GroupBy,
    inventory: &Inventory,
) -> Result<OwnerTable, NoTable> {
    let total = account(cx, index).map_err(NoTable::NoTotal)?.total;
    let found = match by {
        GroupBy::Process => processes::each(cx, index, inventory),
        GroupBy::User => {
            processes::of_users(cx, index, inventory).or_else(|_| cgroups::owners(cx, index, by))
        }
        GroupBy::Node => others::nodes(cx, index),
        GroupBy::Mount => others::mounts(inventory),
        GroupBy::Unit | GroupBy::Container | GroupBy::Pod | GroupBy::Cgroup => {
            cgroups::owners(cx, index, by)
        }
    };
    Ok(found.map_err(NoTable::NoOwners)?.table(cx, index, by, total))
}

impl OwnersFound {
    fn table(mut self, cx: &Evidence<'_>, index: usize, by: GroupBy, total: Bytes) -> OwnerTable {
        let times = cx.timeline.times();
        let at = |index: usize| times.get(index).copied().unwrap_or_default();
        let first = self.first.filter(|(first, _)| *first < self.at);
        for row in &mut self.rows {
            row.share = row.bytes.ratio_of(total);
            let Some((_, sizes)) = &first else { continue };
            row.growth = sizes.get(&row.key).map(|before| change(*before, row.bytes));
            row.is_new = row.growth.is_none();
        }
        self.rows.retain(|row| row.bytes > Bytes::ZERO);
        self.rows.sort_by(|a, b| b.bytes.cmp(&a.bytes).then_with(|| a.key.cmp(&b.key)));
        let free = cx.timeline.at(MEM_FREE, index);
        let used = total.saturating_sub(free.unwrap_or_default());
        let owned: Bytes = self.rows.iter().map(|row| row.bytes).sum();
        let mut left = used.saturating_sub(owned);
        let mut rest = Vec::new();
        if let Some(mut others) = self.others {
            others.bytes = others.bytes.min(left);
            left = left.saturating_sub(others.bytes);
            rest.push(others);
        }
        rest.push(RestRow { label: self.rest, bytes: left });
        rest.extend(free.map(|bytes| RestRow { label: "free", bytes }));
        rest.retain(|row| row.bytes > Bytes::ZERO);
        if free.is_none() {
            self.unknown
                .push("This source does not have free memory: it is in the rest.".to_owned());
        }
        if at(self.at) < at(index) {
            let before = at(index) - at(self.at);
            self.unknown.push(format!("The owners were read {before} before the rest."));
        }
        OwnerTable {
            by,
            at: at(index),
            total,
            rows: self.rows,
            rest,
            measured: self.measured,
            is_estimate: self.is_estimate,
            exceeds: owned.saturating_sub(used),
            grown_for: first.map(|(first, _)| at(self.at) - at(first)),
            unknown: self.unknown,
        }
    }
}

fn change(before: Bytes, after: Bytes) -> SignedBytes {
    let [before, after] =
        [before, after].map(|bytes| i64::try_from(bytes.get()).unwrap_or(i64::MAX));
    SignedBytes::between(before, after)
}

/// Returns the first sample in which entities of a kind were read.
fn first_read(cx: &Evidence<'_>, entity: Entity) -> Option<usize> {
    cx.timeline.read_after(entity, 0)
}

#[cfg(test)]
mod tests;
