//! `facts.jsonl`: facts, each with the time from which it holds.
//!
//! One line for each value that is new or has changed: `{"wall", "boot_ns", "boot_id", "name", "value", "since"}`,
//! `wall` in nanoseconds since 1970. Tunables have their dotted name and are texts; structured facts have their field's name and
//! are JSON, and the last field is a checksum of the line. `since` is when the previous value was last read, `{"wall", "boot_ns", "boot_id"}`; it is absent if unknown or if
//! there was none.

mod values;

use std::collections::{HashMap, HashSet};
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use timeline::{BootId, Facts, Stamp, Timeline, facts};
use units::{Span, WallClock};

use crate::StoreError;
use crate::json_lines::{self, ChecksummedLine};
use values::{fact_of, set, structured};

/// The file in a recording.
pub(crate) const FILE: &str = "facts.jsonl";

/// The consequence of a file that cannot be read.
const UNKNOWN: &str = "kernel version, tunables and topology are unknown";

/// The most bytes read of a longer file: its end, as the newest values count.
const FILE_BYTES_MAX: u64 = 8 << 20;

/// A longer file is compacted. A host has about 50 facts that change a few times a day, but a list of mounts may change
/// each minute.
const COMPACTED_FROM: u64 = 1 << 20;
/// Bytes of changes that compaction keeps for each name, newest first; the last value is always kept.
const LEFT_OF_EACH: usize = 64 << 10;
/// Bytes of changes that compaction keeps for all names together.
const LEFT_OF_ALL: usize = 512 << 10;

/// A line of the file: one value.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct FactLine {
    /// When this value was first read.
    #[serde(flatten)]
    time: FactTime,
    name: String,
    value: Value,
    /// When the previous value was last read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    since: Option<FactTime>,
    /// The checksum of the text before this field, which is the last one; `None` from an earlier memtide.
    #[serde(default, skip_serializing)]
    crc32: Option<u32>,
}

/// When a value was read.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
struct FactTime {
    /// Nanoseconds since 1970; `None` where the source has no wall clock.
    wall: Option<i64>,
    /// The boot clock.
    boot_ns: u64,
    /// The boot; `None` where the source does not name it.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "boot_id")]
    boot_id: Option<BootId>,
    /// The time on the timeline's clock, if a timeline was added as a whole: imports may have no other clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    at_ns: Option<u64>,
}

/// The number of a boot as text; what is no such number is unknown.
mod boot_id {
    use serde::{Deserialize, Deserializer, Serializer};
    use timeline::BootId;

    pub(super) fn serialize<S: Serializer>(id: &Option<BootId>, out: S) -> Result<S::Ok, S::Error> {
        match id {
            Some(id) => out.collect_str(id),
            None => out.serialize_none(),
        }
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        input: D,
    ) -> Result<Option<BootId>, D::Error> {
        let text = Option::<String>::deserialize(input)?;
        Ok(text.and_then(|text| BootId::from_text(&text)))
    }
}

impl FactTime {
    fn from_stamp(stamp: Stamp) -> Self {
        Self {
            wall: stamp.wall.map(WallClock::unix_nanos),
            boot_ns: stamp.boot.as_nanos(),
            boot_id: stamp.boot_id,
            at_ns: None,
        }
    }

    fn stamp(self) -> Stamp {
        Stamp {
            boot: Span::from_nanos(self.boot_ns),
            awake: None,
            wall: self.wall.map(WallClock::from_unix_nanos),
            boot_id: self.boot_id,
        }
    }
}

/// Returns all known facts by name.
pub(crate) fn entries(facts: &Facts) -> Vec<(String, Value)> {
    let mut all: Vec<(String, Value)> =
        facts.iter().map(|(name, text)| (name.to_owned(), Value::from(text))).collect();
    all.extend(structured(facts).map(|(name, value)| (name.to_owned(), value)));
    all.retain(|(_, value)| !value.is_null());
    all
}

/// Appends new and changed facts, and syncs the file. Returns their number. The facts' own clock is the boot clock.
///
/// # Errors
/// [`StoreError::Io`]
pub(crate) fn append(
    directory: &Path,
    stamp: Stamp,
    facts: &Facts,
    previous: Option<&Facts>,
) -> Result<usize, StoreError> {
    let line = |(name, value): (String, Value)| FactLine {
        time: FactTime::from_stamp(stamp),
        since: since(facts, stamp, &name, &value),
        name,
        value,
        crc32: None,
    };
    let changed = changed(facts, previous);
    let lines: Vec<FactLine> = changed.into_iter().map(line).collect();
    write(directory, &lines)?;
    Ok(lines.len())
}

/// Returns when a fact's previous value was last read.
fn since(facts: &Facts, stamp: Stamp, name: &str, value: &Value) -> Option<FactTime> {
    let mut changes = facts.changes().iter().rev();
    let change =
        changes.find(|change| change.fact.name == name && value.as_str() == Some(&change.to))?;
    let since = change.since.filter(|since| *since <= stamp.boot)?;
    let ago = stamp.boot - since;
    Some(FactTime::from_stamp(Stamp {
        boot: since,
        awake: None,
        wall: stamp.wall.map(|wall| wall.minus(ago)),
        boot_id: stamp.boot_id,
    }))
}

fn changed(facts: &Facts, previous: Option<&Facts>) -> Vec<(String, Value)> {
    let before = previous.map(entries).unwrap_or_default();
    let mut now = entries(facts);
    let gone = before.iter().filter(|(name, _)| {
        // A tunable that can no longer be read keeps its last value.
        let is_there = now.iter().any(|(other, _)| other == name);
        !is_there && facts::ALL.iter().all(|fact| fact.name != name)
    });
    let gone: Vec<_> = gone.map(|(name, _)| (name.clone(), Value::Null)).collect();
    now.retain(|entry| !before.contains(entry));
    now.extend(gone);
    now
}

/// Appends the facts of a whole timeline, each with the time from which it holds.
///
/// # Errors
/// [`StoreError::Io`]
pub(crate) fn append_all(
    directory: &Path,
    timeline: &Timeline,
    facts: &Facts,
) -> Result<(), StoreError> {
    let time = |at: Span| {
        let sample = timeline.times().partition_point(|time| *time < at);
        let stamp =
            timeline.stamp(sample.min(timeline.len().saturating_sub(1))).unwrap_or_default();
        FactTime { at_ns: Some(at.as_nanos()), ..FactTime::from_stamp(stamp) }
    };
    let line = |at: Span, since: Option<Span>, name: &str, value: Value| FactLine {
        time: time(at),
        since: since.map(time),
        name: name.to_owned(),
        value,
        crc32: None,
    };
    let first = |name: &str, now: Value| {
        let changes = facts.changes().iter();
        let first = changes.clone().find(|change| change.fact.name == name);
        first.map_or(now, |change| Value::from(change.from.clone()))
    };
    let mut lines: Vec<FactLine> = entries(facts)
        .into_iter()
        .map(|(name, now)| line(Span::ZERO, None, &name, first(&name, now)))
        .collect();
    let changes = facts.changes().iter();
    lines.extend(changes.map(|change| {
        let to = Value::from(change.to.clone());
        line(change.at, change.since, change.fact.name, to)
    }));
    write(directory, &lines)
}

fn write(directory: &Path, lines: &[FactLine]) -> Result<(), StoreError> {
    if lines.is_empty() {
        return Ok(());
    }
    let path = directory.join(FILE);
    let write = || {
        if json_lines::append(&path, lines)? > COMPACTED_FROM {
            compact(directory, &path)?;
        }
        Ok(())
    };
    write().map_err(|error| StoreError::io("write", &path, error))
}

/// Rewrites the file with the newest changes of each name.
fn compact(directory: &Path, path: &Path) -> std::io::Result<()> {
    let bytes = json_lines::tail(path, FILE_BYTES_MAX, &mut Vec::new())?;
    let lines: Vec<&[u8]> = bytes.split_inclusive(|byte| *byte == b'\n').collect();
    let mut of_each: HashMap<String, usize> = HashMap::new();
    let mut of_all = 0;
    let mut left = Vec::new();
    for line in lines.into_iter().rev() {
        let Ok(FactLine { name, .. }) = json_lines::sound_line(line.trim_ascii_end()) else {
            continue;
        };
        let is_last = !of_each.contains_key(&name) && is_known(&name);
        let of_it = of_each.entry(name).or_default();
        if is_last || *of_it + line.len() <= LEFT_OF_EACH && of_all + line.len() <= LEFT_OF_ALL {
            *of_it += line.len();
            of_all += line.len();
            left.push(line);
        }
    }
    json_lines::replace(directory, FILE, left.into_iter().rev())
}

fn is_known(name: &str) -> bool {
    facts::ALL.iter().any(|fact| fact.name == name)
        || structured(&Facts::default()).any(|(known, _)| known == name)
}

/// Reads the facts that hold during a timeline, and their changes; also returns problems in words.
pub(crate) fn read(directory: &Path, timeline: &Timeline) -> (Facts, Vec<String>) {
    let mut problems = Vec::new();
    let lines = lines(directory, &mut problems);
    let mut facts = Facts::default();
    let mut unknown = 0;
    // Values from before the first sample are not changes; only the last one of each counts.
    let clocks = FactClocks::from_timeline(timeline);
    let (before, within) = split(lines, timeline, &clocks);
    let mut last: HashMap<&str, usize> = HashMap::new();
    for (at, line) in before.iter().enumerate() {
        last.insert(&line.name, at);
    }
    let last: HashSet<usize> = last.into_values().collect();
    let latest = before.into_iter().enumerate().filter(|(at, _)| last.contains(at));
    for (_, line) in latest {
        unknown += usize::from(!set(&mut facts, Span::ZERO, &line.name, &line.value));
        if let (None, Some(fact)) = (clocks.place(timeline, line.time), fact_of(&line.name)) {
            facts.read_before(fact);
        }
    }
    for (at, line) in within {
        let since = line.since.and_then(|since| clocks.place(timeline, since));
        if let (Some(since), Some(fact)) = (since, fact_of(&line.name)) {
            facts.read_again(since, fact);
        }
        unknown += usize::from(!set(&mut facts, at, &line.name, &line.value));
    }
    if unknown > 0 {
        problems.push(format!(
            "{FILE}: {unknown} values have unknown names; a later memtide reads them"
        ));
    }
    (facts, problems)
}

/// Splits lines into those that hold at a timeline's first sample, and later ones with their times; lines after its end
/// are left out.
fn split(
    lines: Vec<FactLine>,
    timeline: &Timeline,
    clocks: &FactClocks,
) -> (Vec<FactLine>, Vec<(Span, FactLine)>) {
    let mut before = Vec::new();
    let mut within = Vec::new();
    for line in lines {
        let its_boot = timeline.first_of_boot_from(line.time.stamp());
        let sample = its_boot.unwrap_or_else(|| clocks.first_from(line.time));
        let at = match line.time.at_ns.filter(|_| !clocks.is_dated) {
            Some(at) => Some(Span::from_nanos(at)),
            None => timeline.times().get(sample).map(|time| {
                let own = clocks.place(timeline, line.time);
                own.filter(|own| own < time && is_after(timeline, *own, sample)).unwrap_or(*time)
            }),
        };
        match at {
            _ if timeline.is_empty() || sample == 0 => before.push(line),
            Some(Span::ZERO) => before.push(line),
            Some(at) => within.push((at, line)),
            None => {}
        }
    }
    (before, within)
}

/// Whether a time is later than the previous sample.
fn is_after(timeline: &Timeline, time: Span, sample: usize) -> bool {
    let before = sample.checked_sub(1);
    before.is_some_and(|before| timeline.times().get(before) < Some(&time))
}

/// The latest time up to each sample, by each clock. It never decreases, so a binary search finds the first sample from
/// a time on, even if a clock was set back.
struct FactClocks {
    is_dated: bool,
    wall: Vec<Option<i64>>,
    boot: Vec<u64>,
    /// The boot clock of samples without a wall clock.
    undated: Vec<Option<u64>>,
}

impl FactClocks {
    fn from_timeline(timeline: &Timeline) -> Self {
        let stamps: Vec<Stamp> = (0..timeline.len()).filter_map(|at| timeline.stamp(at)).collect();
        let boot = |stamp: &Stamp| stamp.boot.as_nanos();
        let undated = |stamp: &Stamp| stamp.wall.is_none().then(|| boot(stamp));
        Self {
            is_dated: stamps.first().is_some_and(|stamp| stamp.wall.is_some()),
            wall: latest(stamps.iter().map(|stamp| stamp.wall.map(WallClock::unix_nanos))),
            boot: latest(stamps.iter().map(boot)),
            undated: latest(stamps.iter().map(undated)),
        }
    }

    /// Returns the first sample that is not earlier than a line.
    fn first_from(&self, line: FactTime) -> usize {
        let Some(wall) = line.wall.filter(|_| self.is_dated) else {
            return self.boot.partition_point(|boot| *boot < line.boot_ns);
        };
        let dated = self.wall.partition_point(|at| *at < Some(wall));
        let undated = self.undated.partition_point(|at| *at < Some(line.boot_ns));
        dated.min(undated)
    }

    /// Converts a line's time to a timeline's clock; `None` before its first sample.
    fn place(&self, timeline: &Timeline, time: FactTime) -> Option<Span> {
        if let Some(at) = time.at_ns.filter(|_| !self.is_dated) {
            return Some(Span::from_nanos(at));
        }
        let nanos = timeline.nanos_at(time.stamp())?;
        u64::try_from(nanos).ok().map(Span::from_nanos)
    }
}

/// Returns the running maximum.
fn latest<T: Ord + Copy>(of: impl Iterator<Item = T>) -> Vec<T> {
    let mut last: Option<T> = None;
    of.map(|value| *last.insert(last.map_or(value, |last| last.max(value)))).collect()
}

fn lines(directory: &Path, problems: &mut Vec<String>) -> Vec<FactLine> {
    match json_lines::tail(&directory.join(FILE), FILE_BYTES_MAX, problems) {
        // It is created with its first line.
        Ok(bytes) if bytes.trim_ascii().is_empty() => {
            problems.push(format!("{FILE}: it is empty; {UNKNOWN}"));
            Vec::new()
        }
        Ok(bytes) => json_lines::sound(FILE, &bytes, problems),
        Err(error) => {
            problems.push(format!("{FILE}: {error}; {UNKNOWN}"));
            Vec::new()
        }
    }
}

impl ChecksummedLine for FactLine {
    fn crc32(&self) -> Option<u32> {
        self.crc32
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use timeline::Sample;
    use timeline::facts::{CgroupMode, Container, Disk, MemoryMount, Node};
    use timeline::facts::{KERNEL_VERSION, SWAPPINESS};
    use units::{Bytes, PageSize};

    fn rich() -> Facts {
        let mut facts = Facts::default();
        facts.page_size = PageSize::from_bytes(65_536);
        facts.ticks_per_second = Some(250);
        facts.cpus = Some(4);
        facts.nodes = vec![Node { id: 1, distances: vec![10, 21] }];
        let disk = |name: &str, rotational| Disk { name: name.to_owned(), rotational };
        facts.disks = vec![disk("sda", Some(true)), disk("vda", None)];
        facts.memory_mounts = vec![MemoryMount {
            point: "/run".to_owned(),
            kind: "tmpfs".to_owned(),
            size: Some(Bytes::from_mib(5)),
        }];
        facts.cgroup_mode = Some(CgroupMode::V2);
        facts.own_cgroup = Some("/a".to_owned());
        facts.container = Some(Container { signs: vec!["lxc".to_owned()], meminfo_is_own: true });
        facts.hostname = Some("web3".to_owned());
        facts.record(Span::ZERO, SWAPPINESS, "60");
        facts.record(Span::ZERO, KERNEL_VERSION, "Linux version 6.1.0 (gcc)");
        facts
    }

    fn shown(facts: &Facts) -> String {
        format!("{facts:#?}")
    }

    fn timeline(seconds: &[i64]) -> Timeline {
        let mut timeline = Timeline::default();
        for second in seconds {
            let mut sample = Sample::at(Span::from_secs(second.unsigned_abs()));
            sample.stamp.wall = Some(WallClock::from_unix_nanos(second * 1_000_000_000));
            timeline.push(&sample).unwrap();
        }
        timeline
    }

    fn stamp(second: i64) -> Stamp {
        timeline(&[second]).stamp(0).unwrap()
    }

    #[test]
    fn every_field_survives() {
        let facts = rich();
        let fields = shown(&facts);
        let fields =
            fields.lines().filter(|line| line.starts_with("    ") && !line.starts_with("     "));
        let names: Vec<_> = fields
            .filter_map(|line| Some(line.trim().split_once(": ")?.0))
            // Names have a file of their own; several hosts stand only in a text.
            .filter(|name| !["names", "hosts"].contains(name))
            .collect();
        // A new field of `Facts` must be added to `structured` and `set`, and to the example.
        let stored = structured(&facts).map(|(name, _)| name);
        let known: Vec<_> = ["values", "read", "changes", "budget", "changes_left_out"]
            .into_iter()
            .chain(stored)
            .collect();
        assert_eq!(names, known);
        assert!(structured(&facts).all(|(_, value)| !value.is_null()));
        let directory = tempfile::tempdir().unwrap();
        let written = append(directory.path(), stamp(5), &facts, None).unwrap();
        assert_eq!(written, 12);
        let (found, problems) = read(directory.path(), &timeline(&[5, 6]));
        assert_eq!(problems, Vec::<String>::new());
        assert_eq!(shown(&found), shown(&facts));
    }

    #[test]
    fn only_what_changed_is_appended_and_it_is_a_change_at_its_time() {
        let directory = tempfile::tempdir().unwrap();
        let before = rich();
        append(directory.path(), stamp(5), &before, None).unwrap();
        let mut after = before.clone();
        after.record(Span::from_secs(9), SWAPPINESS, "1");
        after.container = None;
        let written = append(directory.path(), stamp(7), &after, Some(&before)).unwrap();
        assert_eq!(written, 2);
        let (found, _) = read(directory.path(), &timeline(&[4, 5, 6, 7, 8]));
        assert_eq!(found.number(SWAPPINESS), Some(1));
        assert_eq!(found.changes().len(), 1);
        assert_eq!(found.changes()[0].at, Span::from_secs(3));
        // A later reading of the stored value is not stored.
        assert_eq!(found.changes()[0].since, Some(Span::from_secs(1)));
        assert_eq!(found.container, None);
        let (later, _) = read(directory.path(), &timeline(&[8, 9]));
        assert_eq!(later.changes(), [], "it had changed before");
        assert_eq!(later.number(SWAPPINESS), Some(1));
        let (earlier, _) = read(directory.path(), &timeline(&[5, 6]));
        assert_eq!(earlier.number(SWAPPINESS), Some(60));
    }

    #[test]
    fn a_change_keeps_both_readings_between_which_it_lies() {
        let directory = tempfile::tempdir().unwrap();
        let mut facts = Facts::default();
        facts.record(Span::from_secs(5), SWAPPINESS, "60");
        append(directory.path(), stamp(5), &facts, None).unwrap();
        let before = facts.clone();
        // Read each 10 s, as the recorder does, on the boot clock.
        facts.record(Span::from_secs(15), SWAPPINESS, "60");
        facts.record(Span::from_secs(25), SWAPPINESS, "1");
        append(directory.path(), stamp(25), &facts, Some(&before)).unwrap();
        let seconds: Vec<i64> = (4..40).step_by(3).collect();
        let (found, _) = read(directory.path(), &timeline(&seconds));
        let [change] = found.changes() else { panic!("{:?}", found.changes()) };
        assert_eq!(change.since, Some(Span::from_secs(11)));
        assert_eq!(change.at, Span::from_secs(21), "its own time, between two samples");
        let (part, _) = read(directory.path(), &timeline(&[19, 22, 25, 28]));
        assert_eq!(part.changes()[0].since, None, "it was read before this part");
    }

    #[test]
    fn a_torn_line_is_left_out_said_and_swallows_nothing() {
        let directory = tempfile::tempdir().unwrap();
        append(directory.path(), stamp(5), &rich(), None).unwrap();
        let path = directory.path().join(FILE);
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, &text[..text.len() - 4]).unwrap();
        let (found, problems) = read(directory.path(), &timeline(&[5]));
        assert_eq!(problems.len(), 1);
        assert!(problems[0].contains("its last line is incomplete"), "{problems:?}");
        assert_eq!(found.cpus, Some(4));
        let mut changed = rich();
        changed.cpus = Some(8);
        append(directory.path(), stamp(6), &changed, Some(&rich())).unwrap();
        let (found, problems) = read(directory.path(), &timeline(&[5, 6, 7]));
        assert_eq!(found.cpus, Some(8));
        assert!(problems[0].contains("line"), "{problems:?}");
    }

    #[test]
    fn an_empty_file_is_named() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join(FILE), "").unwrap();
        let (_, problems) = read(directory.path(), &Timeline::default());
        assert!(problems.len() == 1 && problems[0].contains("it is empty"), "{problems:?}");
    }

    #[test]
    fn a_whole_timelines_facts_are_the_same_again() {
        let directory = tempfile::tempdir().unwrap();
        let timeline = timeline(&[5, 6, 7, 8]);
        let mut facts = rich();
        facts.record(Span::from_secs(2), SWAPPINESS, "1");
        facts.record(Span::from_secs(3), SWAPPINESS, "90");
        append_all(directory.path(), &timeline, &facts).unwrap();
        let (found, _) = read(directory.path(), &timeline);
        assert_eq!(shown(&found), shown(&facts));
    }

    #[test]
    fn a_list_that_changes_each_minute_leaves_the_rest_known_and_the_file_small() {
        let directory = tempfile::tempdir().unwrap();
        let mut before = rich();
        append(directory.path(), stamp(5), &before, None).unwrap();
        for minute in 0..300 {
            let mut after = before.clone();
            let mount = |number: i64| MemoryMount {
                point: format!("/run/user/{}", minute * 1000 + number),
                ..rich().memory_mounts[0].clone()
            };
            after.memory_mounts = (0..200).map(mount).collect();
            append(directory.path(), stamp(6 + minute), &after, Some(&before)).unwrap();
            before = after;
            let length = std::fs::metadata(directory.path().join(FILE)).unwrap();
            assert!(length.len() < COMPACTED_FROM + 100_000);
        }
        let (found, problems) = read(directory.path(), &timeline(&[400]));
        assert_eq!(problems, Vec::<String>::new());
        // What was read before the first sample has no time.
        let later = Span::from_secs(1);
        assert_eq!(shown(&found), shown(&before.within(later, later)));
    }

    #[test]
    fn of_a_file_that_is_too_long_the_newest_values_count() {
        let directory = tempfile::tempdir().unwrap();
        let mut text = String::new();
        for number in 0..100_000 {
            let line = FactLine {
                time: FactTime { wall: Some(number), boot_ns: 0, boot_id: None, at_ns: None },
                name: format!("strange{number}.{}", "x".repeat(80)),
                value: Value::from(1),
                since: None,
                crc32: None,
            };
            text += &(serde_json::to_string(&line).unwrap() + "\n");
        }
        assert!(text.len() as u64 > FILE_BYTES_MAX);
        std::fs::write(directory.path().join(FILE), text).unwrap();
        append(directory.path(), stamp(5), &rich(), None).unwrap();
        let length = std::fs::metadata(directory.path().join(FILE)).unwrap();
        assert!(length.len() <= COMPACTED_FROM, "{}", length.len());
        let (found, _) = read(directory.path(), &timeline(&[5, 6]));
        assert_eq!(shown(&found), shown(&rich()));
    }

    #[test]
    fn no_flipped_bit_makes_another_value() {
        let directory = tempfile::tempdir().unwrap();
        let mut timeline = Timeline::default();
        timeline.push(&Sample::at(Span::ZERO)).unwrap();
        let mut known = Facts::default();
        known.record(Span::ZERO, facts::SWAPPINESS, "60");
        append(directory.path(), timeline.stamp(0).unwrap(), &known, None).unwrap();
        let path = directory.path().join(FILE);
        let sound = std::fs::read(&path).unwrap();
        for bit in 0..sound.len() * 8 {
            let mut flipped = sound.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            std::fs::write(&path, &flipped).unwrap();
            let (found, problems) = read(directory.path(), &timeline);
            let value = found.text(facts::SWAPPINESS);
            assert!(
                value == Some("60") || value.is_none() && !problems.is_empty(),
                "{bit}: {value:?}"
            );
        }
    }
}
