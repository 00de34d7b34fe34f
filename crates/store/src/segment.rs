//! Sealed segments: directories of Parquet files that anything can read, and memtide back into the same timeline.
//!
//! A segment is written beside its place, synced and renamed, so it is there whole or not at all. What its files should
//! be is in `segment.json`, with checksums: a damaged file loses itself, the others are read.

pub(crate) mod about;
mod entities;
mod events;
pub(crate) mod host;
mod manifest;
pub(crate) mod names;
pub(crate) mod picks;
pub(crate) mod runs;
pub(crate) mod table;

use std::fs;
use std::path::{Path, PathBuf};

use timeline::{Entity, Facts, SignalId, Timeline};
use units::WallClock;

use crate::StoreError;
use crate::identity::Identity;
use crate::minutes::{Before, Minutes, Rolled};
use crate::place::{self, sync};
use about::{ABOUT, About, json};
pub(crate) use events::Kept;
use host::Taken;
pub(crate) use manifest::Manifest;
use picks::Picks;
use table::{Column, Opened};

/// The directory of segments in a recording.
pub(crate) const SEGMENTS: &str = "segments";
/// A file that is larger is no table of an hour.
const LARGEST_FILE: u64 = 1 << 30;
/// What names of unfinished segments begin with.
pub(crate) const UNFINISHED: &str = ".tmp-";
/// What names of segments that are being dropped end with, until they are gone.
pub(crate) const DROPPED: &str = "-dropped";
/// How many rows each entity of a table has, in order.
const ROWS: &str = "memtide.rows";

/// What is known of the head file that a segment is made of.
#[derive(Debug, Clone, Default)]
pub(crate) struct Origin {
    /// What is missing in it, in words.
    pub(crate) lost: Vec<String>,
    /// Numbers before it that were head files without a sample.
    pub(crate) empty: Vec<u64>,
}

/// Writes a segment and renames it into its place. Gives the place. Its caller keeps others from sealing.
///
/// # Errors
/// [`StoreError::Io`]; nothing is left behind then, as the room that it takes may be what is lacking.
pub(crate) fn write(
    directory: &Path,
    sequence: u64,
    host: &Identity,
    timeline: &Timeline,
    facts: &Facts,
    origin: &Origin,
) -> Result<PathBuf, StoreError> {
    let segments = directory.join(SEGMENTS);
    let name = names::directory(sequence, timeline.stamp(0).and_then(|stamp| stamp.wall));
    let unfinished = segments.join(format!("{UNFINISHED}{name}"));
    let place = segments.join(name);
    let fail = |doing, path: &Path, e: std::io::Error| StoreError::io(doing, path, &e);
    if unfinished.exists() {
        fs::remove_dir_all(&unfinished).map_err(|e| fail("remove", &unfinished, e))?;
    }
    fs::create_dir_all(&unfinished).map_err(|e| fail("create", &unfinished, e))?;
    let writing = Writing {
        path: &unfinished,
        sequence,
        host,
        facts,
        about: About::of(timeline),
        taken: Taken::all(timeline),
        before: before(&segments, sequence),
        timeline,
        origin,
    };
    let written = writing.all().and_then(|()| {
        // Onto a directory that has something in it nothing is renamed: what is there is somebody's.
        fs::rename(&unfinished, &place).map_err(|e| fail("rename", &unfinished, e))
    });
    if let Err(error) = written {
        let _ = fs::remove_dir_all(&unfinished);
        return Err(error);
    }
    sync(&segments).map_err(|e| fail("sync", &segments, e))?;
    Ok(place)
}

/// Whether a segment of this number is there as a whole: what it was made of is then of no more use.
pub(crate) fn has(directory: &Path, sequence: u64) -> bool {
    let (found, _) = list(directory).unwrap_or_default();
    let its = found.iter().filter(|it| it.sequence == sequence);
    its.clone().any(Segment::is_whole)
}

/// Removes what was not finished by somebody who was killed. Only for one who keeps others from sealing.
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

/// How the segment before ended, as far as it can be read: without it the first minute counts from its own first sample.
fn before(segments: &Path, sequence: u64) -> Before {
    let directory = segments.parent().unwrap_or(segments);
    let (found, _) = list(directory).unwrap_or_default();
    let before = found
        .into_iter()
        .find(|segment| segment.sequence + 1 == sequence);
    let minutes = before.and_then(|before| before.minutes().ok());
    minutes.map_or_else(Before::default, |minutes| minutes.end())
}

/// A segment being written.
struct Writing<'a> {
    path: &'a Path,
    sequence: u64,
    host: &'a Identity,
    timeline: &'a Timeline,
    facts: &'a Facts,
    about: About,
    taken: Vec<Taken>,
    before: Before,
    origin: &'a Origin,
}

impl Writing<'_> {
    /// Writes and syncs all that belongs to it.
    fn all(&self) -> Result<(), StoreError> {
        let manifest = self.files()?;
        let path = self.path.join(names::MANIFEST);
        let written = manifest.write(&path);
        written.map_err(|e| StoreError::io("write", &path, &e))?;
        sync(self.path).map_err(|e| StoreError::io("sync", self.path, &e))
    }

    fn files(&self) -> Result<Manifest, StoreError> {
        let mut manifest = Manifest::of(self.sequence, self.timeline, &self.taken, self.origin);
        let signals: Vec<SignalId> = self.timeline.host_runs().map(|(id, _)| id).collect();
        let columns = host::columns(self.timeline, &self.taken);
        let file = names::file_of(Entity::Host);
        let about = (ABOUT.to_owned(), json(&self.about));
        let mut pairs = self.pairs(&signals);
        pairs.push(about.clone());
        self.file(file, &columns, 1, pairs, &mut manifest)?;
        for entity in Entity::ALL.into_iter().skip(1) {
            self.entity(entity, &mut manifest)?;
        }
        let rolled = Rolled::of(self.timeline, &self.taken, &self.before, self.facts);
        let mut pairs = self.pairs(&[]);
        pairs.extend(rolled.metadata());
        pairs.push(about);
        let parts = rolled.parts();
        self.file(
            names::MINUTES,
            &rolled.columns(),
            parts,
            pairs,
            &mut manifest,
        )?;
        manifest.minute_rows(rolled.rows());
        let events = events::of(self.timeline);
        if !events.is_empty() {
            let columns = events::columns(&events);
            self.file(names::EVENTS, &columns, 1, self.pairs(&[]), &mut manifest)?;
        }
        Ok(manifest)
    }

    fn entity(&self, entity: Entity, manifest: &mut Manifest) -> Result<(), StoreError> {
        let Some(table) = entities::Table::of(self.timeline, entity, &self.taken) else {
            return Ok(());
        };
        let mut pairs = self.pairs(table.signals());
        pairs.push((ROWS.to_owned(), json(&table.rows_of_each())));
        let file = names::file_of(entity);
        self.file(file, &table.columns(), 1, pairs, manifest)?;
        let runs = self.timeline.entities(entity);
        let runs = runs.flat_map(|series| series.runs().map(|(_, runs)| runs.len()));
        manifest.runs(entity, runs.sum());
        Ok(())
    }

    fn pairs(&self, signals: &[SignalId]) -> Vec<(String, String)> {
        about::pairs(self.host, self.facts, signals)
    }

    fn file(
        &self,
        name: &str,
        columns: &[Column<'_>],
        parts: usize,
        pairs: Vec<(String, String)>,
        manifest: &mut Manifest,
    ) -> Result<(), StoreError> {
        let path = self.path.join(name);
        let fail = |reason: String| StoreError::Io {
            doing: "write",
            path: path.clone(),
            reason,
        };
        table::write(&path, columns, parts, pairs).map_err(|e| fail(e.to_string()))?;
        manifest.add(name, &path).map_err(|e| fail(e.to_string()))
    }
}

/// A segment in its place.
#[derive(Debug, Clone)]
pub(crate) struct Segment {
    /// Its place in the recording.
    pub(crate) sequence: u64,
    /// Its directory.
    pub(crate) path: PathBuf,
    /// What its files should be; `None` where that is damaged.
    pub(crate) manifest: Option<Manifest>,
}

/// The segments of a recording, in order, and names that are none.
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
                let manifest = Manifest::read(&path.join(names::MANIFEST));
                // One that was dropped in between is not damaged, but gone.
                if manifest.is_some() || path.is_dir() {
                    found.push(Segment {
                        sequence,
                        manifest,
                        path,
                    });
                }
            }
            None => strange.push(name.into_owned()),
        }
    }
    found.sort_by_key(|segment| segment.sequence);
    Ok((found, strange))
}

impl Segment {
    /// Its name for people.
    pub(crate) fn name(&self) -> String {
        let name = self.path.file_name().unwrap_or_default();
        format!("{SEGMENTS}/{}", name.to_string_lossy())
    }

    /// From when to when its samples were taken, by the wall clock, which may have jumped in between.
    pub(crate) fn span(&self) -> Option<(WallClock, WallClock)> {
        self.manifest.as_ref()?.span()
    }

    /// Whether it has a file, as far as is known.
    pub(crate) fn has(&self, name: &str) -> bool {
        match &self.manifest {
            Some(manifest) => manifest.has(name),
            None => self.path.join(name).exists(),
        }
    }

    /// Whether it says what it consists of, and all of that is there.
    pub(crate) fn is_whole(&self) -> bool {
        let manifest = self.manifest.as_ref();
        manifest.is_some_and(|it| it.is_whole(&self.path, self.sequence))
    }

    fn open(&self, name: &str) -> Result<Opened, String> {
        let bytes = place::read_regular(&self.path.join(name), LARGEST_FILE);
        let bytes = bytes.map_err(|e| e.to_string())?;
        if let Some(manifest) = &self.manifest {
            manifest.check(name, &bytes)?;
        }
        Opened::new(bytes).map_err(|e| e.to_string())
    }

    /// Opens the host's table.
    pub(crate) fn host(&self) -> Result<HostFile, String> {
        let file = self.open(names::file_of(Entity::Host))?;
        let taken = host::read_taken(&file)?;
        Ok(HostFile { file, taken })
    }

    /// Opens the roll-ups.
    pub(crate) fn minutes(&self) -> Result<Minutes, String> {
        Minutes::open(self.open(names::MINUTES)?)
    }

    /// Appends the readings of a kind of entity to a timeline.
    pub(crate) fn read(
        &self,
        entity: Entity,
        picks: &Picks,
        timeline: &mut Timeline,
    ) -> Result<(), String> {
        let file = self.open(names::file_of(entity))?;
        let counts = file
            .metadata(ROWS)
            .ok_or("its metadata is not a segment's")?;
        let counts: Vec<usize> = serde_json::from_str(counts).map_err(|e| e.to_string())?;
        entities::read(&file, entity, &counts, picks, timeline)
    }

    /// Its events.
    pub(crate) fn events(&self) -> Result<(Vec<Kept>, usize), String> {
        if !self.has(names::EVENTS) {
            return Ok((Vec::new(), 0));
        }
        events::read(&self.open(names::EVENTS)?)
    }

    /// What was lost before it was written, in words.
    pub(crate) fn lost(&self) -> impl Iterator<Item = String> + '_ {
        let lost = self.manifest.iter().flat_map(|manifest| &manifest.lost);
        lost.map(|what| format!("{}: {what}", self.name()))
    }

    /// How many bytes it takes, without what somebody else put there.
    pub(crate) fn bytes(&self) -> u64 {
        let tables = Entity::ALL.into_iter().map(names::file_of);
        let names = tables.chain([names::MINUTES, names::EVENTS, names::MANIFEST]);
        let sizes = names.filter_map(|name| fs::symlink_metadata(self.path.join(name)).ok());
        let files = sizes.filter(fs::Metadata::is_file);
        files.map(|metadata| metadata.len()).sum()
    }

    /// What is wrong with each of its files.
    pub(crate) fn damage(&self) -> Vec<String> {
        let Some(manifest) = &self.manifest else {
            let what = "damaged; its files are read without their checksums";
            return vec![format!("{}/{}: {what}", self.name(), names::MANIFEST)];
        };
        let files = manifest.files().filter_map(|name| {
            let error = self.open(name).err()?;
            Some(format!("{}/{name}: {error}", self.name()))
        });
        files.collect()
    }
}

/// The host's table of a segment, opened.
pub(crate) struct HostFile {
    file: Opened,
    /// Its samples.
    pub(crate) taken: Vec<Taken>,
}

impl HostFile {
    /// Appends its readings to a timeline.
    pub(crate) fn read(&self, picks: &Picks, timeline: &mut Timeline) -> Result<(), String> {
        host::read(&self.file, picks, timeline)
    }

    /// Tells a timeline what the segment says beside its tables. Gives how many rows of entities it lacks.
    pub(crate) fn tell(&self, timeline: &mut Timeline) -> usize {
        tell(&self.file, timeline)
    }
}

/// Tells a timeline what a file of a segment says beside its table. Gives how many rows of entities the segment lacks.
pub(crate) fn tell(file: &Opened, timeline: &mut Timeline) -> usize {
    let about = file.metadata(ABOUT).map(serde_json::from_str::<About>);
    let Some(Ok(about)) = about else {
        return 0;
    };
    let cut = about.entities_cut;
    about.tell(timeline);
    cut
}
