//! Which part of a job's files is in the page cache when it has ended: room that others had, or could have.

use std::path::Path;
use std::time::Duration;

use probe::{NamedCache, Root};
use schemars::JsonSchema;
use serde::Serialize;
use units::{Bytes, PageSize};

use crate::observe::file_lookup::device;
use crate::touches::Touches;

/// A person who waits for the answer waits so much longer.
const TIME_MAX: Duration = Duration::from_secs(3);

/// Files of a job that are in the page cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, JsonSchema)]
pub struct LeftCached {
    /// What is in the cache of files that have a name, whoever brought it there.
    pub bytes: Bytes,
    /// Of that, not written to the disk yet; `null` before Linux 6.5.
    pub dirty_bytes: Option<Bytes>,
    /// Whether the time was over before all files were counted: there may be more.
    pub is_cut: bool,
}

impl LeftCached {
    /// Counts the files that the job touched and that are there still, those with the most bytes first.
    pub(super) fn of(touches: &Touches, page: PageSize) -> Self {
        let files = NamedCache::within(&Root::default(), page, TIME_MAX);
        let mut left = Self::default();
        let mut rows: Vec<_> = touches
            .files()
            .iter()
            .filter(|row| row.removed.is_none() && row.read + row.written > 0)
            .filter_map(|row| Some((row.name.as_deref()?, row)))
            .collect();
        rows.sort_by_key(|(_, row)| std::cmp::Reverse(row.end));
        for (name, row) in rows {
            if files.is_over() {
                left.is_cut = true;
                break;
            }
            let Some(found) = files.count(Path::new(name)) else { continue };
            let number = (device(found.device.0.into(), found.device.1.into()), found.inode);
            // Another file may have the name by now.
            if number == row.number {
                left.bytes += found.cache.cached;
                left.is_cut |= found.cache.is_cut;
                let dirty = found.cache.dirty;
                left.dirty_bytes = dirty.map(|dirty| dirty + left.dirty_bytes.unwrap_or_default());
            }
        }
        left
    }
}
