//! `segment.json`: the files of a segment and its time range. It is small, so that weeks are searched without opening a
//! table.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::Path;

use serde::de::{Deserializer, IgnoredAny};
use serde::{Deserialize, Serialize};
use timeline::{BootId, Entity, Timeline};
use units::{Span, WallClock};

use super::host::StoredSample;
use super::{SegmentOrigin, names};
use crate::files;
use crate::format::{FORMAT, checked_json, is_unchanged};

/// A longer `segment.json` is invalid.
const MANIFEST_BYTES_MAX: u64 = 1 << 20;
/// The most runs per byte of a table. Repetition counts encode many runs in few bytes, but an impossible number must
/// not make a reader skip readings.
const RUNS_PER_BYTE: usize = 64;

/// More samples than an hour has at ten a second. Equal values take no bytes, so the size of a file does not bound the
/// memory for its samples.
const SAMPLES_MAX: usize = 1 << 18;

/// Checks that the host's table has one row per sample of the segment, if that number is known.
pub(super) fn check_samples(manifest: Option<&Manifest>, rows: usize) -> Result<(), String> {
    let listed = manifest.map_or(rows, |manifest| manifest.samples);
    if rows != listed {
        let manifest = names::MANIFEST;
        return Err(format!("it has {rows} rows, and {manifest} lists {listed}"));
    }
    if rows > SAMPLES_MAX {
        return Err(format!("it has {rows} rows, more than a segment has"));
    }
    Ok(())
}

/// The content of a segment.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Manifest {
    /// The format of its files.
    pub(crate) format: u32,
    /// Its sequence number in the recording.
    sequence: Option<u64>,
    /// How many samples it has.
    samples: usize,
    /// The earliest wall clock, in nanoseconds; `None` without one.
    from: Option<i64>,
    /// The latest wall clock, in nanoseconds.
    until: Option<i64>,
    /// Time from the first sample to the last by the boot clock, in nanoseconds; `None` from an earlier memtide.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    lasts: Option<u64>,
    /// The boot of its last sample, as text; `None` from a source that does not name it, or an earlier memtide.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    boot_id: Option<String>,
    /// The boot clock at its last sample, in nanoseconds; `None` from an earlier memtide.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    boot_ns: Option<u64>,
    files: BTreeMap<String, StoredTable>,
    /// Number of runs of each kind of entity, which gives their size in memory.
    runs: BTreeMap<String, usize>,
    /// Number of roll-up rows of each kind of entity.
    minute_rows: BTreeMap<String, usize>,
    /// Damage in the head file from which it was made, in words; the rest is here.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) lost: Vec<String>,
    /// Earlier sequence numbers of head files without a sample: they are not missing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) empty: Vec<u64>,
    /// CRC-32 (IEEE) of the text before this field, which is the last one; `None` from an earlier memtide.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    crc32: Option<u32>,
    /// Fields that only a later memtide knows.
    #[serde(flatten, skip_serializing)]
    unknown: BTreeMap<String, IgnoredField>,
}

/// A field that is not read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct IgnoredField;

impl<'de> Deserialize<'de> for IgnoredField {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        IgnoredAny::deserialize(input).map(|_| Self)
    }
}

/// Length and checksum of a file as it was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct StoredTable {
    bytes: usize,
    /// CRC-32 (IEEE) of the whole file.
    crc32: u32,
}

impl Manifest {
    pub(super) fn for_segment(
        sequence: u64,
        timeline: &Timeline,
        taken: &[StoredSample],
        origin: &SegmentOrigin,
    ) -> Self {
        let walls = || taken.iter().filter_map(StoredSample::wall);
        let end = taken.last().map(|sample| sample.stamp);
        Self {
            format: FORMAT,
            sequence: Some(sequence),
            samples: timeline.len(),
            from: walls().min(),
            until: walls().max(),
            lasts: timeline.whole().map(|all| (all.to - all.from).as_nanos()),
            boot_id: end.and_then(|end| Some(end.boot_id?.to_string())),
            boot_ns: end.map(|end| end.boot.as_nanos()),
            lost: origin.lost.clone(),
            empty: origin.empty.clone(),
            ..Self::default()
        }
    }

    pub(super) fn add(&mut self, name: &str, path: &Path) -> std::io::Result<()> {
        let bytes = fs::read(path)?;
        let stored = StoredTable { bytes: bytes.len(), crc32: crc32fast::hash(&bytes) };
        self.files.insert(name.to_owned(), stored);
        Ok(())
    }

    pub(super) fn runs(&mut self, entity: Entity, runs: usize) {
        self.runs.insert(entity.name().to_owned(), runs);
    }

    pub(super) fn minute_rows(&mut self, rows: impl Iterator<Item = (Entity, usize)>) {
        self.minute_rows = rows.map(|(entity, rows)| (entity.name().to_owned(), rows)).collect();
    }

    pub(super) fn write(&self, path: &Path) -> std::io::Result<()> {
        let mut file = files::create_draft(path)?;
        file.write_all(checked_json(self).as_bytes())?;
        file.sync_all()
    }

    /// Reads a segment's manifest; `None` if it is absent or damaged, or names files elsewhere.
    pub(super) fn read(segment: &Path) -> Option<Self> {
        let path = segment.join(names::MANIFEST);
        let bytes = files::read_regular(&path, MANIFEST_BYTES_MAX).ok()?;
        let manifest: Self = serde_json::from_slice(&bytes).ok()?;
        let is_unchanged = match manifest.crc32 {
            Some(checksum) => is_unchanged(&bytes, checksum),
            // From an earlier memtide, which wrote no checksum and listed all files.
            None => manifest.unknown.is_empty() && manifest.lists_all(segment),
        };
        let is_within = manifest.files().all(|name| !name.contains('/'));
        (is_unchanged && is_within).then_some(manifest)
    }

    /// Whether it lists all files of a segment that exist, and no others than a segment has.
    fn lists_all(&self, segment: &Path) -> bool {
        let is_known = |name: &str| names::files().any(|known| known == name);
        self.files().all(is_known)
            && names::files().all(|name| self.has(name) || !segment.join(name).exists())
    }

    /// Whether the segment is complete: it has this number, and all listed files with their lengths.
    pub(super) fn is_whole(&self, directory: &Path, sequence: u64) -> bool {
        let is_there = |(name, stored): (&String, &StoredTable)| {
            let found = fs::symlink_metadata(directory.join(name));
            found
                .is_ok_and(|meta| meta.is_file() && usize::try_from(meta.len()) == Ok(stored.bytes))
        };
        self.sequence == Some(sequence) && self.files.iter().all(is_there)
    }

    pub(super) fn check(&self, name: &str, bytes: &[u8]) -> Result<(), String> {
        if self.format != FORMAT {
            return Err(format!("another memtide wrote it (format {})", self.format));
        }
        let stored =
            self.files.get(name).ok_or_else(|| format!("{} does not list it", names::MANIFEST))?;
        if stored.bytes != bytes.len() {
            return Err(format!("it has {} bytes instead of {}", bytes.len(), stored.bytes));
        }
        if stored.crc32 != crc32fast::hash(bytes) {
            return Err("its checksum is wrong".to_owned());
        }
        Ok(())
    }

    /// Checks that there are as many roll-ups as were written.
    pub(super) fn check_minute_rows(&self, rows: usize) -> Result<(), String> {
        let listed =
            self.minute_rows.values().fold(0, |sum: usize, rows| sum.saturating_add(*rows));
        if rows == listed {
            return Ok(());
        }
        let manifest = names::MANIFEST;
        Err(format!("it has {rows} rows, and {manifest} lists {listed}"))
    }

    /// Returns the earliest and the latest wall clock of its samples.
    pub(crate) fn span(&self) -> Option<(WallClock, WallClock)> {
        let (from, until) = (self.from?, self.until?);
        Some((WallClock::from_unix_nanos(from), WallClock::from_unix_nanos(until)))
    }

    /// Returns its duration by the boot clock.
    pub(crate) fn duration(&self) -> Option<Span> {
        self.lasts.map(Span::from_nanos)
    }

    /// Returns the boot of its last sample, and the boot clock then.
    pub(crate) fn end(&self) -> Option<(BootId, Span)> {
        let boot = BootId::from_text(self.boot_id.as_deref()?)?;
        Some((boot, Span::from_nanos(self.boot_ns?)))
    }

    /// Returns its number of samples, bounded.
    pub(super) fn samples(&self) -> usize {
        self.samples.min(SAMPLES_MAX)
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.files.contains_key(name)
    }

    pub(super) fn files(&self) -> impl Iterator<Item = &str> {
        self.files.keys().map(String::as_str)
    }

    /// Returns the number of runs of a kind of entity, in full or by the minute.
    pub(crate) fn size(&self, entity: Entity, by_minute: bool) -> usize {
        let sizes = if by_minute { &self.minute_rows } else { &self.runs };
        let listed = sizes.get(entity.name()).copied().unwrap_or(0);
        let file = if by_minute { names::MINUTES } else { names::file_of(entity) };
        let bytes = self.files.get(file).map_or(0, |stored| stored.bytes);
        listed.min(bytes.saturating_mul(RUNS_PER_BYTE))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_that_claims_more_samples_than_a_segment_has_is_refused() {
        let of = |samples| Manifest { samples, ..Manifest::default() };
        for (manifest, rows, problem) in [
            (Some(of(5)), 5, None),
            (None, 36_000, None),
            (Some(of(5)), 30_000_000, Some("30000000 rows, and segment.json lists 5")),
            (Some(of(30_000_000)), 30_000_000, Some("than a segment has")),
            (None, 30_000_000, Some("than a segment has")),
            (Some(of(5)), 0, Some("0 rows")),
        ] {
            let error = check_samples(manifest.as_ref(), rows).err();
            let is_expected =
                |error: &String| problem.is_some_and(|problem| error.contains(problem));
            assert_eq!(error.is_some(), problem.is_some(), "{rows}: {error:?}");
            assert!(error.iter().all(is_expected), "{rows}: {error:?}");
        }
    }
}
