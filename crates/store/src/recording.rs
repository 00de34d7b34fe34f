//! The only reader of recordings: segments and head become a timeline and facts.

pub(crate) mod damaged;
mod duration;
mod load;
mod losses;
mod part;
mod placement;
mod scan;
mod screen;
mod strides;
mod survey;
mod woven;

use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use timeline::{Facts, Stamp, Timeline};
use units::{Bytes, Span, WallClock};

use crate::StoreError;
use crate::directory::identity::{self, HostIdentity};
use crate::head::{self, HeadFile};
use crate::segment::{self, Segment, names};
use load::{HeadPart, Loading};
pub use screen::{RollUpScreen, Screened};

/// A range of a recording, and the resolution to read it at.
#[allow(missing_docs)] // names say it
#[derive(Debug, Clone, Copy, Default)]
pub struct Selection {
    /// The start; `None`: the beginning of the recording.
    pub since: Option<WallClock>,
    /// The end; `None`: the end of the recording.
    pub until: Option<WallClock>,
    pub resolution: Resolution,
}

/// The interval of samples of a long range.
const MINUTE: Span = Span::from_mins(1);

/// The resolution at which a recording is read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Resolution {
    /// Every sample of a range of hours. Of a longer range one per minute, and every sample of minutes that screening
    /// selects.
    #[default]
    Auto,
    /// Every sample.
    Full,
    /// The last sample of each minute, and every sample of minutes that screening selects.
    Minutes,
}

/// A loaded selection of a recording.
#[derive(Debug)]
pub struct Loaded {
    /// Its samples, kernel reports and noted events.
    pub timeline: Timeline,
    /// Facts of the host, with their changes.
    pub facts: Facts,
    /// Problems, in words; the rest was read.
    pub problems: Vec<String>,
    /// The interval of samples if they were downsampled, which may apply to a part of the time only: see
    /// [`Timeline::resolution_at`]. `None` if every sample was read.
    pub thinned_to: Option<Span>,
    /// The result of screening; `None` without screening.
    pub screened: Option<Screened>,
    /// Recorder's events with a sample that shows the host as the event's report does: index in
    /// [`Timeline::recorder_events`], index of the sample. Only recordings of kernel reports have them.
    pub reported: Vec<(usize, usize)>,
}

/// A summary of a recording, without its samples.
#[derive(Debug, Clone)]
pub struct Info {
    /// The host that it was recorded on.
    pub host: HostIdentity,
    /// How many sealed segments it has.
    pub segments: usize,
    /// Its size on disk.
    pub bytes: Bytes,
    /// First and last wall-clock time; `None` if it is empty or has no wall clock.
    pub span: Option<(WallClock, WallClock)>,
    /// The clocks of its newest sample; `None` if that is sealed, as while no recorder writes.
    pub end: Option<Stamp>,
    /// How long it was recorded, by the boot clock: a wall clock may be set in between.
    pub lasts: Span,
    /// The PID of its writer: `Some(None)` if it is unknown, `None` without a writer.
    pub writer: Option<Option<u32>>,
    /// Damage in each file, in words.
    pub damage: Vec<String>,
}

/// A recording, opened for reading; a recorder may be writing to it.
#[derive(Debug)]
pub struct Recording {
    directory: PathBuf,
    host: HostIdentity,
    segments: Vec<Segment>,
    heads: Vec<HeadFile>,
    /// Head files without any valid frame.
    damaged: Vec<HeadFile>,
    problems: Vec<String>,
}

impl Recording {
    /// Whether a directory is a recording.
    pub fn is_at(directory: &Path) -> bool {
        directory.join(identity::FILE).is_file()
    }

    /// Returns a number that is another one after a recorder has written to a directory: of the sizes and times of its files,
    /// so that following a recording costs little while nothing is written.
    ///
    /// # Errors
    /// If there is no recording any more, or it cannot be read.
    pub fn mark(directory: &Path) -> std::io::Result<u64> {
        let identity = directory.join(identity::FILE).metadata()?;
        let heads = head::files(directory)?;
        let heads = heads.iter().filter_map(|head| head.path.metadata().ok());
        let segments = directory.join(segment::SEGMENTS).metadata();
        let found = std::iter::once(identity).chain(segments).chain(heads);
        Ok(found.fold(0, |mark: u64, found| {
            let time = found.modified().ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok());
            let nanos = time.unwrap_or_default().as_nanos();
            #[allow(clippy::cast_possible_truncation)] // a mark, not a time
            let one = (nanos as u64).wrapping_add(found.len());
            mark.wrapping_mul(31).wrapping_add(one)
        }))
    }

    /// Opens a directory.
    ///
    /// # Errors
    /// [`StoreError`] if it is not a recording, has another format, or cannot be read.
    pub fn open(directory: &Path) -> Result<Self, StoreError> {
        let host = identity::read(directory)?;
        let fail = |error: std::io::Error| StoreError::io("read", directory, error);
        // Heads first: a part that is sealed in between is then found twice instead of missed.
        let mut heads = head::files(directory).map_err(fail)?;
        let (mut segments, strange) = segment::list(directory).map_err(fail)?;
        // Of a segment and its head file only one counts: the segment if it is complete.
        let is_of = |head: &HeadFile, one: &Segment| one.sequence == head.sequence;
        heads.retain(|head| {
            !segments.iter().any(|segment| is_of(head, segment) && segment.is_whole())
        });
        segments.retain(|segment| !heads.iter().any(|head| is_of(head, segment)));
        let problems = strange.into_iter().map(|name| {
            format!("{}/{name}: not the name of a segment; ignored", segment::SEGMENTS)
        });
        let mut recording = Self {
            directory: directory.to_owned(),
            host,
            problems: problems.collect(),
            segments,
            heads,
            damaged: damaged::files(directory).map_err(fail)?,
        };
        recording.problems.extend(recording.holes());
        let unreadable: Vec<String> = recording.unreadable().collect();
        recording.problems.extend(unreadable);
        Ok(recording)
    }

    /// Describes parts that cannot be read at all.
    fn unreadable(&self) -> impl Iterator<Item = String> + '_ {
        let say = |file: &HeadFile| {
            let path = file.path.display();
            format!("{path}: it cannot be read at all; the file stays, its samples are missing")
        };
        self.damaged.iter().map(say)
    }

    /// Lists missing sequence numbers between existing parts.
    fn holes(&self) -> Vec<String> {
        let sealed = self.segments.iter().map(|segment| segment.sequence);
        let heads = self.heads.iter().chain(&self.damaged);
        let manifests = self.segments.iter().filter_map(|segment| segment.manifest.as_ref());
        let empty = manifests.flat_map(|manifest| manifest.empty.iter().copied());
        let known = sealed.chain(heads.map(|head| head.sequence));
        let mut numbers: Vec<u64> = known.collect();
        let first = numbers.iter().min().copied().unwrap_or_default();
        // Parts before the first were dropped and are not missing.
        numbers.extend(empty.filter(|number| *number > first));
        numbers.sort_unstable();
        let holes = numbers.windows(2).filter(|pair| pair[1] > pair[0] + 1);
        let name = |pair: &[u64]| match pair[1] - pair[0] {
            2 => format!("part {} is missing", pair[0] + 1),
            _ => format!("parts {} to {} are missing", pair[0] + 1, pair[1] - 1),
        };
        holes.map(name).collect()
    }

    /// Returns the latest facts of the host.
    pub fn facts(&self) -> Facts {
        crate::facts::read(&self.directory, &Timeline::default()).0
    }

    /// Returns the host that it was recorded on.
    pub fn host(&self) -> &HostIdentity {
        &self.host
    }

    /// Returns the first and the last wall-clock time.
    pub fn span(&self) -> Option<(WallClock, WallClock)> {
        let heads = self.heads.iter().filter_map(|file| head::first_and_last(&file.path));
        let spans = self.segments.iter().filter_map(Segment::span).chain(heads);
        spans.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))
    }

    /// Returns the clocks of the newest sample in the head.
    fn end(&self) -> Option<Stamp> {
        let last = self.segments.last().map(|segment| segment.sequence);
        let heads = self.heads.iter().rev();
        let mut heads = heads.take_while(|head| last < Some(head.sequence));
        heads.find_map(|head| head::ends(&head.path).ok()?.end)
    }

    /// Returns a summary; `check_files` reads all files to check them for damage.
    pub fn info(&self, check_files: bool) -> Info {
        let mut damage = self.problems.clone();
        damage.extend(self.segments.iter().flat_map(Segment::lost));
        if check_files {
            damage.extend(self.segments.iter().flat_map(Segment::damage));
        }
        Info {
            host: self.host.clone(),
            segments: self.segments.len(),
            bytes: self.bytes(),
            span: self.span(),
            end: self.end(),
            lasts: self.lasts(),
            writer: crate::directory::lock::writer(&self.directory),
            damage,
        }
    }

    /// Returns the size of its segments and heads.
    pub fn bytes(&self) -> Bytes {
        let heads = self
            .heads
            .iter()
            .chain(&self.damaged)
            .filter_map(|head| Some(head.path.metadata().ok()?.len()));
        let segments = self.segments.iter().map(Segment::bytes);
        Bytes::new(segments.chain(heads).sum())
    }

    /// Loads a selection; `progress` receives the share that is done.
    pub fn load(&self, selection: Selection, progress: &mut dyn FnMut(f64)) -> Loaded {
        let segments = self.wanted(selection);
        let by_minute = self.is_by_minute(selection, &segments);
        let window = (selection.since, selection.until);
        let mut loading = Loading::new(window, by_minute, &self.problems, segments.iter().copied());
        let parts = self.in_order(segments);
        let mut done = steps(parts.len(), progress);
        for part in parts {
            match part {
                // The oldest part was dropped since the recording was opened.
                Ok(segment) if !is_there(&segment.path) => {}
                Ok(segment) => loading.segment(segment, None, &[]),
                Err(file) => self.head(file, &mut loading),
            }
            done();
        }
        loading.losses.finish(&loading.timeline);
        self.loaded(loading, selection)
    }

    /// Returns the segments that may have samples of a selection.
    fn wanted(&self, Selection { since, until, .. }: Selection) -> Vec<&Segment> {
        let wanted = |segment: &&Segment| {
            // A segment without a manifest must be read to know its times.
            segment.span().is_none_or(|(from, to)| {
                since.is_none_or(|since| since <= to) && until.is_none_or(|until| from <= until)
            })
        };
        self.segments.iter().filter(wanted).collect()
    }

    /// Returns these segments and all head files, in order.
    fn in_order<'a>(
        &'a self,
        segments: Vec<&'a Segment>,
    ) -> Vec<Result<&'a Segment, &'a HeadFile>> {
        let segments = segments.into_iter().map(|segment| (segment.sequence, Ok(segment)));
        let heads = self.heads.iter().map(|head| (head.sequence, Err(head)));
        let mut parts: Vec<_> = segments.chain(heads).collect();
        parts.sort_by_key(|(sequence, _)| *sequence);
        parts.into_iter().map(|(_, part)| part).collect()
    }

    /// Reads a head file, or the segment that was made from it since the recording was opened.
    fn head(&self, file: &HeadFile, loading: &mut Loading) {
        let window = loading.window();
        match self.head_or_segment(file, window, &mut loading.losses.problems) {
            Some(Ok(part)) => loading.part(&part, &[]),
            Some(Err(segment)) => loading.segment(&segment, None, &[]),
            None => {}
        }
    }

    /// Returns the content of a head file in a window, or the segment that was made from it; `None` if it was empty, or
    /// dropped by retention: neither is damage.
    fn head_or_segment(
        &self,
        file: &HeadFile,
        window: head::Window,
        problems: &mut Vec<String>,
    ) -> Option<Result<HeadPart, Segment>> {
        // Its content is copied, and then both are in memory.
        let mut timeline = Timeline::of_a_part();
        let read = head::load(&file.path, &mut timeline, Some(window));
        if timeline.is_empty() && !is_there(&file.path) {
            let (segments, _) = segment::list(&self.directory).unwrap_or_default();
            let sealed = segments.into_iter().find(|segment| segment.sequence == file.sequence);
            return sealed.map(Err);
        }
        problems.extend(read.problems);
        let is_cut = !read.ended && read.tail.is_none();
        Some(Ok(HeadPart { timeline, cut: is_cut.then(|| file.path.clone()) }))
    }

    fn loaded(&self, loading: Loading, selection: Selection) -> Loaded {
        let Loading { timeline, losses, reported, .. } = loading;
        let mut problems = losses.problems;
        let (mut facts, wrong) = crate::facts::read(&self.directory, &timeline);
        problems.extend(wrong);
        facts.names = crate::kept_names::read(&self.directory, &mut problems);
        if timeline.is_empty() {
            problems.push(self.why_empty(selection));
        }
        problems.extend(self.later_than_its_files(&timeline));
        Loaded {
            thinned_to: (!timeline.downsampled().is_empty()).then_some(MINUTE),
            screened: None,
            timeline,
            facts,
            problems,
            reported,
        }
    }

    fn why_empty(&self, selection: Selection) -> String {
        let name = self.directory.display();
        let Some((from, until)) = self.span() else {
            return format!("{name} holds no sample yet");
        };
        let (from, until) = (names::utc(from), names::utc(until));
        let wanted = match (selection.since, selection.until) {
            (Some(a), Some(b)) => format!("from {} to {}", names::utc(a), names::utc(b)),
            (Some(a), None) => format!("since {}", names::utc(a)),
            (None, Some(b)) => format!("until {}", names::utc(b)),
            (None, None) => "that could be read".to_owned(),
        };
        format!("{name} holds no sample {wanted}; it covers {from} to {until}")
    }

    /// Reports samples later than the files were written, which is impossible.
    fn later_than_its_files(&self, timeline: &Timeline) -> Option<String> {
        const SLACK: Span = Span::from_hours(1);
        let end = timeline.stamp(timeline.len().checked_sub(1)?)?.wall?;
        let segments = self.segments.iter().map(|segment| &segment.path);
        let paths = segments.chain(self.heads.iter().map(|head| &head.path));
        let ages = paths.filter_map(|path| path.metadata().ok()?.modified().ok());
        let written = ages.max()?.duration_since(std::time::UNIX_EPOCH).ok()?;
        let written = WallClock::from_unix_nanos(i64::try_from(written.as_nanos()).ok()?);
        (end > written.plus(SLACK)).then(|| {
            format!(
                "its last sample is of {}, later than its files ({}): the clock was wrong when it \
                 was recorded, or is wrong on this host",
                names::utc(end),
                names::utc(written)
            )
        })
    }
}

/// Returns a function that reports progress in `all` steps, one per call.
fn steps(all: usize, progress: &mut dyn FnMut(f64)) -> impl FnMut() {
    let mut done = 0.0;
    #[allow(clippy::cast_precision_loss)] // a share for a progress bar
    let step = 1.0 / all.max(1) as f64;
    move || {
        done += step;
        progress(f64::min(done, 1.0));
    }
}

/// Whether a path exists; also true if that cannot be checked.
fn is_there(path: &Path) -> bool {
    path.try_exists().unwrap_or(true)
}
