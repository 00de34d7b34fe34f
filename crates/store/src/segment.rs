//! Sealed segments: directories of Parquet files, which any Parquet reader opens and memtide loads into the same
//! timeline.
//!
//! A segment is written under a temporary name, synced and renamed, so it appears as a whole. `segment.json` lists its
//! files with checksums: a damaged file is skipped, the others are read.

pub(crate) mod about;
mod boots;
mod entities;
mod events;
pub(crate) mod host;
mod manifest;
pub(crate) mod minutes;
pub(crate) mod names;
pub(crate) mod picks;
pub(crate) mod runs;
pub(crate) mod table;

use std::fs;
use std::path::{Path, PathBuf};

use timeline::{BootId, Entity, Facts, SignalId, Timeline};
use units::{Span, WallClock};

use crate::StoreError;
use crate::directory::identity::HostIdentity;
use crate::files::{self, sync};
use crate::format::{FORMAT, FORMAT_KEY};
use about::{About, AboutFile};
use boots::BootColumn;
pub(crate) use events::KeptEvents;
use host::StoredSample;
pub(crate) use manifest::Manifest;
use minutes::{Before, MinutesFile, RollUpIndex, Rolled};
use picks::SamplePicks;
use runs::RunSink;
use table::{ColumnChunk, OpenedTable};

/// The directory of segments in a recording.
pub(crate) const SEGMENTS: &str = "segments";
/// A larger file is not the table of an hour: 2,000 processes that all change at each scan take a fifth of it.
const TABLE_BYTES_MAX: u64 = 128 << 20;
/// A larger file is not what a recorder says of itself: names of unknown fields, and files that could not be read.
const ABOUT_BYTES_MAX: u64 = 16 << 20;
/// Prefix of the names of unfinished segments.
pub(crate) const UNFINISHED: &str = ".tmp-";
/// Suffix of the names of segments that are being removed.
pub(crate) const DROPPED: &str = "-dropped";

/// The head file from which a segment is made.
#[derive(Debug, Clone, Default)]
pub(crate) struct SegmentOrigin {
    /// What is missing in it.
    pub(crate) lost: Vec<String>,
    /// Earlier sequence numbers of head files without a sample.
    pub(crate) empty: Vec<u64>,
}

/// Writes a segment and renames it into place. Returns its path. The caller holds the sealing lock.
///
/// # Errors
/// [`StoreError::Io`]; nothing is left on the disk then, as it may be full.
pub(crate) fn write(
    directory: &Path,
    sequence: u64,
    host: &HostIdentity,
    timeline: &Timeline,
    facts: &Facts,
    origin: &SegmentOrigin,
) -> Result<PathBuf, StoreError> {
    let segments = directory.join(SEGMENTS);
    let name = names::directory(sequence, timeline.stamp(0).and_then(|stamp| stamp.wall));
    let unfinished = segments.join(format!("{UNFINISHED}{name}"));
    let place = segments.join(name);
    let fail = |doing, path: &Path, e: std::io::Error| StoreError::io(doing, path, e);
    if unfinished.exists() {
        fs::remove_dir_all(&unfinished).map_err(|e| fail("remove", &unfinished, e))?;
    }
    files::ensure_directory(&segments).map_err(|e| fail("create", &segments, e))?;
    files::create_directory(&unfinished).map_err(|e| fail("create", &unfinished, e))?;
    let writing = Writing {
        path: &unfinished,
        sequence,
        host,
        facts,
        taken: StoredSample::all(timeline),
        before: before(&segments, sequence),
        timeline,
        origin,
    };
    let written = writing.all().and_then(|()| {
        // `rename` fails if the target is a non-empty directory, which is not ours.
        fs::rename(&unfinished, &place).map_err(|e| fail("rename", &unfinished, e))
    });
    if let Err(error) = written {
        let _ = fs::remove_dir_all(&unfinished);
        return Err(error);
    }
    sync(&segments).map_err(|e| fail("sync", &segments, e))?;
    Ok(place)
}

/// Whether a complete segment of this number exists, so that its head file is no longer needed.
pub(crate) fn has(directory: &Path, sequence: u64) -> bool {
    let (found, _) = list(directory).unwrap_or_default();
    let its = found.iter().filter(|segment| segment.sequence == sequence);
    its.clone().any(Segment::is_whole)
}

/// Removes unfinished segments of a killed sealer. The caller holds the sealing lock.
pub(crate) fn sweep(directory: &Path) {
    let entries = fs::read_dir(directory.join(SEGMENTS)).into_iter();
    for entry in entries.flatten().flatten() {
        let name = entry.file_name();
        let rest = name.to_str().and_then(|name| name.strip_prefix(UNFINISHED));
        let of_ours = rest.map(|rest| rest.strip_suffix(DROPPED).unwrap_or(rest));
        if of_ours.and_then(names::sequence).is_some() {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// Reads the end of the previous segment, if possible: without it the first minute counts from its own first sample.
fn before(segments: &Path, sequence: u64) -> Before {
    let directory = segments.parent().unwrap_or(segments);
    let (found, _) = list(directory).unwrap_or_default();
    let before = found.into_iter().find(|segment| segment.sequence + 1 == sequence);
    let minutes = before.and_then(|before| before.minutes().ok());
    minutes.map_or_else(Before::default, |minutes| minutes.end())
}

/// The state of writing a segment.
struct Writing<'a> {
    path: &'a Path,
    sequence: u64,
    host: &'a HostIdentity,
    timeline: &'a Timeline,
    facts: &'a Facts,
    taken: Vec<StoredSample>,
    before: Before,
    origin: &'a SegmentOrigin,
}

impl Writing<'_> {
    /// Writes and syncs all files of the segment.
    fn all(&self) -> Result<(), StoreError> {
        let manifest = self.files()?;
        let path = self.path.join(names::MANIFEST);
        let written = manifest.write(&path);
        written.map_err(|e| StoreError::io("write", &path, e))?;
        sync(self.path).map_err(|e| StoreError::io("sync", self.path, e))
    }

    fn files(&self) -> Result<Manifest, StoreError> {
        let mut manifest =
            Manifest::for_segment(self.sequence, self.timeline, &self.taken, self.origin);
        let mut about = AboutFile::new(self.host, self.facts, About::from_timeline(self.timeline));
        about.signals(self.timeline.host_runs().map(|(id, _)| id));
        let boots = BootColumn::new(self.taken.iter().map(|sample| sample.stamp.boot_id));
        let mut columns = host::columns(self.timeline, &self.taken);
        columns.extend(boots.column());
        let file = names::file_of(Entity::Host);
        self.table(file, &columns, Vec::new(), &mut manifest)?;
        for entity in Entity::ALL.into_iter().skip(1) {
            self.entity(entity, &mut about, &mut manifest)?;
        }
        let rolled = Rolled::from_timeline(self.timeline, &self.taken, &self.before, self.facts);
        let columns = rolled.columns();
        let pairs = rolled.metadata();
        self.table(names::MINUTES, &columns, pairs, &mut manifest)?;
        manifest.minute_rows(rolled.rows());
        let events = events::stored_events(self.timeline);
        if !events.is_empty() {
            let boots = BootColumn::new(events.iter().map(|stored| stored.event.stamp.boot_id));
            let mut columns = events::columns(&events);
            columns.extend(boots.column());
            self.table(names::EVENTS, &columns, Vec::new(), &mut manifest)?;
        }
        self.file(names::ABOUT, &mut manifest, |path| about.write(path))?;
        Ok(manifest)
    }

    fn entity(
        &self,
        entity: Entity,
        about: &mut AboutFile,
        manifest: &mut Manifest,
    ) -> Result<(), StoreError> {
        let Some(table) =
            entities::EntityTableWriter::from_timeline(self.timeline, entity, &self.taken)
        else {
            return Ok(());
        };
        let file = names::file_of(entity);
        self.table(file, &table.columns(), Vec::new(), manifest)?;
        about.signals(table.signals().iter().copied());
        let runs = self
            .timeline
            .entities(entity)
            .flat_map(|series| series.runs().map(|(_, runs)| runs.len()));
        manifest.runs(entity, runs.sum());
        Ok(())
    }

    fn table(
        &self,
        name: &str,
        columns: &[ColumnChunk<'_>],
        pairs: Vec<(String, String)>,
        manifest: &mut Manifest,
    ) -> Result<(), StoreError> {
        let all = std::iter::once((FORMAT_KEY.to_owned(), FORMAT.to_string())).chain(pairs);
        self.file(name, manifest, |path| table::write(path, columns, all.collect()))
    }

    fn file(
        &self,
        name: &str,
        manifest: &mut Manifest,
        write: impl FnOnce(&Path) -> std::io::Result<()>,
    ) -> Result<(), StoreError> {
        let path = self.path.join(name);
        let written = write(&path).and_then(|()| manifest.add(name, &path));
        written.map_err(|e| StoreError::io("write", &path, e))
    }
}

/// A complete segment.
#[derive(Debug, Clone)]
pub(crate) struct Segment {
    /// Its sequence number in the recording.
    pub(crate) sequence: u64,
    /// Its directory.
    pub(crate) path: PathBuf,
    /// The list of its files; `None` if the manifest is damaged.
    pub(crate) manifest: Option<Manifest>,
}

/// Returns the segments of a recording, in order, and names of directories that are not segments.
pub(crate) fn list(directory: &Path) -> std::io::Result<(Vec<Segment>, Vec<String>)> {
    let mut found = Vec::new();
    let mut strange = Vec::new();
    let entries = match fs::read_dir(directory.join(SEGMENTS)) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok((found, strange)),
        entries => entries?,
    };
    for entry in entries {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        match names::sequence(&name) {
            _ if name.starts_with(UNFINISHED) => {}
            Some(sequence) => {
                let manifest = Manifest::read(&path);
                // A segment that was dropped meanwhile is gone, not damaged.
                if manifest.is_some() || path.is_dir() {
                    found.push(Segment { sequence, manifest, path });
                }
            }
            None => strange.push(name.into_owned()),
        }
    }
    found.sort_by_key(|segment| segment.sequence);
    Ok((found, strange))
}

impl Segment {
    /// Returns its name, for messages.
    pub(crate) fn name(&self) -> String {
        let name = self.path.file_name().unwrap_or_default();
        format!("{SEGMENTS}/{}", name.to_string_lossy())
    }

    /// Returns the earliest and the latest wall clock of its samples; the clock may have jumped in between.
    pub(crate) fn span(&self) -> Option<(WallClock, WallClock)> {
        self.manifest.as_ref()?.span()
    }

    /// Returns its duration by the boot clock; `None` if unknown.
    pub(crate) fn duration(&self) -> Option<Span> {
        self.manifest.as_ref()?.duration()
    }

    /// Returns the boot of its last sample, and the boot clock then; `None` if unknown.
    pub(crate) fn end(&self) -> Option<(BootId, Span)> {
        self.manifest.as_ref()?.end()
    }

    /// Returns its number of samples; `None` if unknown.
    pub(crate) fn samples(&self) -> Option<usize> {
        self.manifest.as_ref().map(Manifest::samples)
    }

    /// Whether it has a file, as far as is known.
    pub(crate) fn has(&self, name: &str) -> bool {
        match &self.manifest {
            Some(manifest) => manifest.has(name),
            None => self.path.join(name).exists(),
        }
    }

    /// Whether it has a manifest and all files listed there.
    pub(crate) fn is_whole(&self) -> bool {
        let manifest = self.manifest.as_ref();
        manifest.is_some_and(|manifest| manifest.is_whole(&self.path, self.sequence))
    }

    fn bytes_of(&self, name: &str) -> Result<Vec<u8>, String> {
        let longest = match name {
            names::ABOUT => ABOUT_BYTES_MAX,
            _ => TABLE_BYTES_MAX,
        };
        let bytes = files::read_regular(&self.path.join(name), longest);
        let bytes = bytes.map_err(|e| e.to_string())?;
        if let Some(manifest) = &self.manifest {
            manifest.check(name, &bytes)?;
        }
        Ok(bytes)
    }

    fn open(&self, name: &str) -> Result<OpenedTable, String> {
        OpenedTable::new(self.bytes_of(name)?).map_err(|e| e.to_string())
    }

    /// Opens the host's table.
    pub(crate) fn host(&self) -> Result<HostTable, String> {
        let file = self.open(names::file_of(Entity::Host))?;
        let rows = file.part(0).map_err(|e| e.to_string())?.rows;
        manifest::check_samples(self.manifest.as_ref(), rows)?;
        let taken = host::read_taken(&file)?;
        Ok(HostTable { file, taken })
    }

    /// Opens the roll-ups.
    pub(crate) fn minutes(&self) -> Result<MinutesFile, String> {
        self.minutes_with(None)
    }

    /// Opens the roll-ups, reusing the index from an earlier opening.
    pub(crate) fn minutes_with(&self, index: Option<RollUpIndex>) -> Result<MinutesFile, String> {
        // The checksum ensures that the index belongs to this file.
        let index = index.filter(|_| self.manifest.is_some());
        let file = self.open(names::MINUTES)?;
        if let Some(manifest) = &self.manifest {
            manifest.check_minute_rows(file.rows())?;
        }
        MinutesFile::open(file, index)
    }

    /// Appends the readings of a kind of entity to a timeline. Returns what is wrong with some of its rows, which are
    /// left out.
    pub(crate) fn read(
        &self,
        entity: Entity,
        picks: &SamplePicks,
        timeline: &mut impl RunSink,
    ) -> Result<Option<String>, String> {
        let file = self.open(names::file_of(entity))?;
        entities::read(&file, entity, picks, timeline)
    }

    /// Adds its `about.json` to a timeline. Returns how many rows of entities it lacks.
    pub(crate) fn load_about_into(&self, timeline: &mut Timeline) -> Result<usize, String> {
        let text = self.bytes_of(names::ABOUT)?;
        let about: About = serde_json::from_slice(&text).map_err(|e| e.to_string())?;
        let cut = about.entities_cut;
        about.add_to(timeline);
        Ok(cut)
    }

    /// Returns its events.
    pub(crate) fn events(&self) -> Result<(Vec<KeptEvents>, usize), String> {
        if !self.has(names::EVENTS) {
            return Ok((Vec::new(), 0));
        }
        events::read(&self.open(names::EVENTS)?)
    }

    /// Returns what was lost before it was written, in words.
    pub(crate) fn lost(&self) -> impl Iterator<Item = String> + '_ {
        let lost = self.manifest.iter().flat_map(|manifest| &manifest.lost);
        lost.map(|what| format!("{}: {what}", self.name()))
    }

    /// Returns its size in bytes, without foreign files.
    pub(crate) fn bytes(&self) -> u64 {
        let names = names::files().chain([names::MANIFEST]);
        let sizes = names.filter_map(|name| fs::symlink_metadata(self.path.join(name)).ok());
        let files = sizes.filter(fs::Metadata::is_file);
        files.map(|metadata| metadata.len()).sum()
    }

    /// Returns the space on the disk that it takes, without foreign files.
    pub(crate) fn disk_bytes(&self) -> u64 {
        let names = names::files().chain([names::MANIFEST]);
        let of_files = names.map(|name| files::disk_bytes(&self.path.join(name)));
        files::disk_bytes(&self.path) + of_files.sum::<u64>()
    }

    /// Describes the damage in each of its files.
    pub(crate) fn damage(&self) -> Vec<String> {
        let Some(manifest) = &self.manifest else {
            let what = "damaged; its files are read without checksums";
            return vec![format!("{}/{}: {what}", self.name(), names::MANIFEST)];
        };
        let files = manifest.files().filter_map(|name| {
            let error = self.check_file(name).err()?;
            Some(format!("{}/{name}: {error}", self.name()))
        });
        files.collect()
    }

    /// Checks that one of its files is unchanged and can be opened.
    fn check_file(&self, name: &str) -> Result<(), String> {
        match name {
            names::ABOUT => self.bytes_of(name).map(drop),
            names::MINUTES => self.minutes().map(drop),
            _ if name == names::file_of(Entity::Host) => self.host().map(drop),
            _ => self.open(name).map(drop),
        }
    }
}

/// The opened host table of a segment.
pub(crate) struct HostTable {
    pub(crate) file: OpenedTable,
    pub(crate) taken: Vec<StoredSample>,
}

impl HostTable {
    /// Appends its readings to a timeline.
    pub(crate) fn read(
        &self,
        picks: &SamplePicks,
        timeline: &mut impl RunSink,
    ) -> Result<(), String> {
        host::read(&self.file, |_| true, picks, timeline)
    }

    /// Appends only the readings of some signals, which are in the order of the catalogue.
    pub(crate) fn read_only(
        &self,
        signals: &[SignalId],
        picks: &SamplePicks,
        timeline: &mut Timeline,
    ) -> Result<(), String> {
        let wanted = |signal| signals.binary_search(&signal).is_ok();
        host::read(&self.file, wanted, picks, timeline)
    }
}
