//! What is written to a recording can be read back.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use proptest::prelude::*;
use timeline::{
    Absence, Entity, Event, EventKind, Facts, Sample, SignalId, Timeline, facts, signals,
};
use units::{Bytes, Span, WallClock};

use crate::directory::identity::HostIdentity;
use crate::{Recording, Resolution, Selection, StoreError, add_timeline, drop_oldest, enforce};

const DAY: i64 = 1_700_000_000;

pub(crate) fn host() -> HostIdentity {
    HostIdentity { id: "a1".to_owned(), name: "web3".to_owned() }
}

/// Formats the whole content of a timeline, sample by sample.
pub(crate) fn shown(timeline: &Timeline) -> String {
    let mut text = String::new();
    for index in 0..timeline.len() {
        let read = Entity::ALL.map(|entity| timeline.was_read(entity, index));
        let unrelated = timeline.starts_segment(index);
        text += &format!("{:?} {unrelated} {read:?}\n", timeline.sample(index).unwrap());
    }
    let rounded: Vec<_> =
        timeline.rounded_signals().map(|id| timeline.rounding_error(id)).collect();
    let unknown: Vec<_> = timeline.unknown().collect();
    text + &format!(
        "{:?} {:?} {unknown:?} {rounded:?}",
        timeline.recorder_events(),
        timeline.absent
    )
}

/// An entity's number, its kind, and readings by their position.
type MadeRow = (usize, u8, Vec<(usize, u64)>);

/// What the readings of a sample are generated from.
#[derive(Debug, Clone)]
struct Made {
    step: u64,
    dated: bool,
    unrelated: bool,
    host: Vec<(usize, u64)>,
    rows: Vec<MadeRow>,
}

fn made() -> impl Strategy<Value = Made> {
    let value = || prop_oneof![0..4_u64, any::<u64>(), Just(u64::MAX)];
    let readings = move || prop::collection::vec((0..200_usize, value()), 0..6);
    let rows = prop::collection::vec((1..10_usize, 0..4_u8, readings()), 0..5);
    (1..100_u64, prop::bool::weighted(0.9), prop::bool::weighted(0.1), readings(), rows).prop_map(
        |(step, dated, unrelated, host, rows)| Made { step, dated, unrelated, host, rows },
    )
}

fn timeline_of(samples: &[Made]) -> Timeline {
    let mut timeline = Timeline::default();
    let mut boot = 7;
    for made in samples {
        boot += made.step;
        let mut sample = Sample::at(Span::from_secs(boot));
        sample.stamp.wall = made
            .dated
            .then(|| WallClock::from_unix_nanos((DAY + boot.cast_signed()) * 1_000_000_000));
        let signal = |entity: Entity, at: usize| {
            let places = entity.signals();
            SignalId::from_index(places.start + at % places.len()).unwrap()
        };
        for (at, value) in &made.host {
            sample.host.set_raw(signal(Entity::Host, *at), *value);
        }
        for (kind, key, readings) in &made.rows {
            let entity = Entity::ALL[*kind];
            let row = sample.table_mut(entity).entry(&format!("k{key}"));
            row.label = format!("name of {key}");
            for (at, value) in readings {
                row.row.set_raw(signal(entity, *at), *value);
            }
        }
        // A sample earlier than the previous one is unrelated too.
        if made.unrelated || timeline.push(&sample).is_err() {
            timeline.push_new_segment(&sample);
        }
    }
    timeline
}

fn load(directory: &Path, resolution: Resolution) -> crate::Loaded {
    let selection = Selection { resolution, ..Selection::default() };
    Recording::open(directory).unwrap().load(selection, &mut |_| ())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn what_is_kept_is_read_again(samples in prop::collection::vec(made(), 0..40)) {
        let timeline = timeline_of(&samples);
        let directory = tempfile::tempdir().unwrap();
        add_timeline(directory.path(), &host(), &timeline, &Facts::default(), Span::from_secs(1)).unwrap();
        let loaded = load(directory.path(), Resolution::Full);
        prop_assert_eq!(shown(&loaded.timeline), shown(&timeline));
    }

    #[test]
    fn a_minute_shows_its_last_readings(samples in prop::collection::vec(made(), 1..60)) {
        let timeline = timeline_of(&samples);
        let directory = tempfile::tempdir().unwrap();
        add_timeline(directory.path(), &host(), &timeline, &Facts::default(), Span::from_secs(1)).unwrap();
        let loaded = load(directory.path(), Resolution::Minutes).timeline;
        let places = (0..timeline.len()).filter(|at| {
            (0..loaded.len()).any(|to| loaded.stamp(to) == timeline.stamp(*at))
        });
        prop_assert_eq!(places.count(), loaded.len());
        for (signal, runs) in loaded.host_runs() {
            let (_, original) = timeline.host_runs().find(|(id, _)| *id == signal).unwrap();
            prop_assert_eq!(runs.last().unwrap().value, original.last().unwrap().value);
        }
    }

    #[test]
    fn without_the_host_table_a_minute_has_the_readings_that_were_taken_in_it(samples in prop::collection::vec(made(), 1..25)) {
        let timeline = timeline_of(&samples);
        let directory = tempfile::tempdir().unwrap();
        add_timeline(directory.path(), &host(), &timeline, &Facts::default(), Span::from_secs(1)).unwrap();
        for segment in fs::read_dir(directory.path().join("segments")).unwrap() {
            fs::write(segment.unwrap().path().join("host.parquet"), "PAR1").unwrap();
        }
        let loaded = load(directory.path(), Resolution::Full).timeline;
        let mut from = 0;
        for to in 0..loaded.len() {
            let end = (from..timeline.len()).find(|at| timeline.stamp(*at) == loaded.stamp(to)).unwrap();
            let taken: BTreeSet<_> = (from..=end).flat_map(|at| readings(&timeline, at)).collect();
            let shown: BTreeSet<_> = readings(&loaded, to).into_iter().collect();
            prop_assert!(shown.is_subset(&taken), "{:?}", shown.difference(&taken));
            from = end + 1;
        }
        prop_assert_eq!(from, timeline.len());
    }
}

/// Returns which readings a sample has: kind, key and signal.
fn readings(timeline: &Timeline, at: usize) -> Vec<(Entity, String, SignalId)> {
    let sample = timeline.sample(at).unwrap();
    let of_host = sample.host.iter().map(|(signal, _)| (Entity::Host, String::new(), signal));
    let of_rows = Entity::ALL.into_iter().skip(1).flat_map(|entity| {
        let rows = sample.table(entity).rows();
        rows.iter().flat_map(move |row| {
            row.row.iter().map(move |(signal, _)| (entity, row.key.clone(), signal))
        })
    });
    of_host.chain(of_rows).collect()
}

/// Two and a half hours at one sample in 10 s: a counter that grows, a cgroup that appears and disappears.
pub(crate) fn hours() -> Timeline {
    let mut timeline = Timeline::default();
    for at in 0..900_u64 {
        let mut sample = Sample::at(Span::from_secs(1000 + at * 10));
        let wall = (DAY + (at * 10).cast_signed()) * 1_000_000_000;
        sample.stamp.wall = Some(WallClock::from_unix_nanos(wall));
        sample.host.set(signals::MEM_FREE, Bytes::from_mib(at % 7));
        sample.host.set(signals::PSWPIN, units::Pages::new(at * 3));
        if at % 100 < 50 {
            let row = sample.table_mut(Entity::Cgroup).entry("/web");
            row.row.set(signals::CGROUP_CURRENT, Bytes::from_mib(at / 10));
        }
        timeline.push(&sample).unwrap();
    }
    timeline.absent.insert(signals::SLABINFO, Absence::PermissionDenied);
    timeline.note_rounding(signals::MEM_FREE.id(), 512);
    timeline.note_unknown(signals::VMSTAT, "nr_new".to_owned(), 7);
    timeline.add_recorder_event(Event {
        stamp: timeline.stamp(500).unwrap(),
        kind: EventKind::OomKill,
        subject: "java".to_owned(),
        text: "the kernel killed java".to_owned(),
        report: "java invoked oom-killer: …\nKilled process 1".to_owned(),
    });
    timeline
}

pub(crate) fn kept_hours(directory: &Path) -> Timeline {
    let timeline = hours();
    let mut known = Facts::default();
    known.record(Span::ZERO, facts::SWAPPINESS, "60");
    known.record(timeline.times()[700], facts::SWAPPINESS, "1");
    let added = add_timeline(directory, &host(), &timeline, &known, Span::from_secs(10)).unwrap();
    assert_eq!(added.segments, 3);
    timeline
}

#[test]
fn a_long_recording_is_segments_and_reads_as_one() {
    let directory = tempfile::tempdir().unwrap();
    let timeline = kept_hours(directory.path());
    let loaded = load(directory.path(), Resolution::Auto);
    assert_eq!(loaded.problems, Vec::<String>::new());
    assert_eq!(shown(&loaded.timeline), shown(&timeline));
    assert_eq!(loaded.thinned_to, None);
    assert_eq!(loaded.facts.changes()[0].at, timeline.times()[700]);
    let wall = |at| timeline.stamp(at).unwrap().wall.unwrap();
    let recording = Recording::open(directory.path()).unwrap();
    assert_eq!(recording.span(), Some((wall(0), wall(899))));
    let info = recording.info(true);
    assert_eq!((info.segments, info.writer, info.damage.len()), (3, None, 0));
}

#[test]
fn a_range_takes_its_samples_events_and_facts_only() {
    let directory = tempfile::tempdir().unwrap();
    let timeline = kept_hours(directory.path());
    let wall = |at| timeline.stamp(at).unwrap().wall;
    let recording = Recording::open(directory.path()).unwrap();
    let range = |since, until| Selection { since, until, resolution: Resolution::Full };
    let loaded = recording.load(range(wall(350), wall(499)), &mut |_| ());
    assert_eq!(loaded.timeline.len(), 150);
    assert_eq!(loaded.timeline.stamp(0), timeline.stamp(350));
    assert_eq!(loaded.timeline.recorder_events().len(), 0);
    assert_eq!(loaded.facts.text(facts::SWAPPINESS), Some("60"));
    let loaded =
        recording.load(range(wall(899).map(|t| t.plus(Span::from_secs(1))), None), &mut |_| ());
    assert!(loaded.timeline.is_empty());
    assert!(
        loaded.problems[0].contains("it covers 2023-11-14 22:13:20 UTC to"),
        "{:?}",
        loaded.problems
    );
}

#[test]
fn minutes_show_the_same_levels_and_growth() {
    let directory = tempfile::tempdir().unwrap();
    let timeline = kept_hours(directory.path());
    let loaded = load(directory.path(), Resolution::Minutes);
    assert_eq!(loaded.thinned_to, Some(Span::from_mins(1)));
    let thinned = &loaded.timeline;
    assert!((150..=154).contains(&thinned.len()), "{}", thinned.len());
    for at in 0..thinned.len() {
        let original = (0..900).find(|of| timeline.stamp(*of) == thinned.stamp(at)).unwrap();
        assert_eq!(thinned.at(signals::PSWPIN, at), timeline.at(signals::PSWPIN, original));
        assert_eq!(thinned.at(signals::MEM_FREE, at), timeline.at(signals::MEM_FREE, original));
    }
    assert_eq!(thinned.recorder_events().len(), 1);
    assert_eq!(thinned.entities(Entity::Cgroup).count(), 1);
}

/// Two hours at one sample in 2 s, in each fifth of which all three cgroups are read, and otherwise only the busy one.
fn hours_in_part() -> Timeline {
    let mut timeline = Timeline::default();
    for at in 0..3_600_u64 {
        let mut sample = Sample::at(Span::from_secs(1000 + at * 2));
        let wall = (DAY + (at * 2).cast_signed()) * 1_000_000_000;
        sample.stamp.wall = Some(WallClock::from_unix_nanos(wall));
        sample.host.set(signals::MEM_FREE, Bytes::from_mib(at % 7));
        let is_partial = at % 5 != 0;
        let table = sample.table_mut(Entity::Cgroup);
        let groups = [("/busy", at), ("/idle", 3), ("/slow", at)];
        for (key, value) in &groups[..if is_partial { 1 } else { 3 }] {
            let row = &mut table.entry(key).row;
            row.set(signals::CGROUP_CURRENT, Bytes::from_mib(*value));
            row.set(signals::CGROUP_EVENTS_MAX, units::Count::new(*value));
        }
        if is_partial {
            table.set_partial();
        }
        timeline.push(&sample).unwrap();
    }
    timeline
}

#[test]
fn a_cgroup_that_was_not_read_is_not_gone() {
    let directory = tempfile::tempdir().unwrap();
    let timeline = hours_in_part();
    let facts = Facts::default();
    add_timeline(directory.path(), &host(), &timeline, &facts, Span::from_secs(2)).unwrap();
    let loaded = load(directory.path(), Resolution::Full).timeline;
    assert_eq!(shown(&loaded), shown(&timeline));
    let thinned = load(directory.path(), Resolution::Minutes).timeline;
    for (timeline, last) in [(&timeline, 3_600), (&thinned, thinned.len())] {
        for key in ["/busy", "/idle", "/slow"] {
            let group = timeline.entity(Entity::Cgroup, key).unwrap();
            let levels = timeline.gauge_of(group, signals::CGROUP_CURRENT).unwrap();
            assert!(levels.values()[..last].iter().all(Option::is_some), "{key}");
            let rates = timeline.rate_of(group, signals::CGROUP_EVENTS_MAX).unwrap();
            let rate = if key == "/idle" { 0.0 } else { 0.5 };
            let known: Vec<f64> = rates.values().iter().flatten().copied().collect();
            assert!(known.len() + 6 > last, "{key}: {}", known.len());
            assert!(known.iter().all(|known| (known - rate).abs() < 1e-9), "{key}: {known:?}");
        }
    }
}

fn segments(directory: &Path) -> Vec<std::path::PathBuf> {
    let mut found: Vec<_> = fs::read_dir(directory.join("segments"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    found.sort();
    found
}

#[test]
fn a_damaged_file_loses_itself_and_is_named() {
    for (file, resolution, samples, named) in [
        ("host.parquet", Resolution::Full, 600, "roll-ups are read instead"),
        ("minutes.parquet", Resolution::Minutes, 152, "samples are read instead"),
        ("cgroup.parquet", Resolution::Full, 900, "cgroup readings are missing"),
        ("events.parquet", Resolution::Full, 900, "its events are missing"),
        ("about.json", Resolution::Full, 900, "its list of unreadable files is missing"),
        ("segment.json", Resolution::Full, 900, "without checksums"),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let timeline = kept_hours(directory.path());
        let segment = segments(directory.path())[1].join(file);
        let mut bytes = fs::read(&segment).unwrap();
        let middle = bytes.len() / 3;
        bytes[middle] ^= 0x80;
        fs::write(&segment, bytes).unwrap();
        let loaded = load(directory.path(), resolution);
        let len = loaded.timeline.len();
        assert!(len.abs_diff(samples) <= 3, "{file}: {len}");
        let problems = loaded.problems.join("\n");
        assert!(problems.contains(file) && problems.contains(named), "{file}: {problems}");
        let last = |timeline: &Timeline| timeline.last(signals::PSWPIN);
        assert_eq!(last(&loaded.timeline), last(&timeline), "{file}");
    }
}

#[test]
fn a_file_that_no_recorder_writes_so_large_is_not_read() {
    let directory = tempfile::tempdir().unwrap();
    kept_hours(directory.path());
    let about = segments(directory.path())[1].join("about.json");
    // Sparse: it takes no disk.
    let file = fs::OpenOptions::new().write(true).open(about).unwrap();
    file.set_len(300 << 20).unwrap();
    let loaded = load(directory.path(), Resolution::Full);
    assert_eq!(loaded.timeline.len(), 900);
    let problems = loaded.problems.join("\n");
    assert!(problems.contains("about.json") && problems.contains("too long"), "{problems}");
}

#[test]
fn a_table_of_other_rows_than_were_written_is_not_read() {
    let samples = ("samples", serde_json::json!(5));
    let minutes = ("minute_rows", serde_json::json!({"host": 0}));
    let (host_problem, minutes_problem) = ("segment.json lists 5", "segment.json lists 0");
    for (changes, resolution, len, problem) in [
        (
            vec![samples.clone()],
            Resolution::Full,
            600,
            vec![host_problem, "its roll-ups are read instead"],
        ),
        (
            vec![minutes.clone()],
            Resolution::Minutes,
            152,
            vec![minutes_problem, "its samples are read instead"],
        ),
        (
            vec![samples.clone(), minutes.clone()],
            Resolution::Full,
            540,
            vec!["it cannot be read; host.parquet", host_problem, minutes_problem],
        ),
        (
            vec![samples, minutes],
            Resolution::Minutes,
            91,
            vec!["it cannot be read; minutes.parquet", host_problem, minutes_problem],
        ),
    ] {
        let directory = tempfile::tempdir().unwrap();
        kept_hours(directory.path());
        let path = segments(directory.path())[1].join("segment.json");
        let mut manifest: serde_json::Value =
            serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        // As an earlier memtide wrote it.
        manifest.as_object_mut().unwrap().remove("crc32");
        for (name, value) in changes {
            manifest[name] = value;
        }
        fs::write(&path, manifest.to_string()).unwrap();
        let loaded = load(directory.path(), resolution);
        let is_len = loaded.timeline.len().abs_diff(len) <= 3;
        assert!(is_len, "{problem:?}: {}", loaded.timeline.len());
        let first = &loaded.problems[0];
        assert!(problem.iter().all(|problem| first.contains(problem)), "{first}");
        let damage = Recording::open(directory.path()).unwrap().info(true).damage;
        let is_named = damage.iter().any(|text| text.contains("segment.json"));
        assert!(is_named, "{damage:?}");
    }
}

#[test]
fn a_changed_bit_of_the_list_of_files_loses_no_reading() {
    let directory = tempfile::tempdir().unwrap();
    kept_hours(directory.path());
    let path = segments(directory.path())[1].join("segment.json");
    let text = fs::read(&path).unwrap();
    let whole = load(directory.path(), Resolution::Full);
    assert_eq!(whole.problems, Vec::<String>::new());
    let without = |text: &[u8]| {
        let text = String::from_utf8_lossy(text).into_owned();
        let (before, _) = text.rsplit_once(",\"crc32\":").unwrap();
        format!("{before}}}").into_bytes()
    };
    let groups = |loaded: &crate::Loaded| {
        let timeline = &loaded.timeline;
        let group = timeline.entities(Entity::Cgroup).next();
        let series = group.unwrap();
        (0..timeline.len())
            .filter_map(|at| timeline.at_of(series, signals::CGROUP_CURRENT, at))
            .count()
    };
    let changed = |text: &[u8], at: usize, bit: u8| {
        let mut changed = text.to_vec();
        changed[at] ^= 1 << bit;
        changed
    };
    let place = |text: &[u8], word: &str| String::from_utf8_lossy(text).find(word).unwrap();
    let old = without(&text);
    let mut cases = vec![
        changed(&old, place(&old, "cgroup.parquet"), 1),
        changed(&text, place(&text, "crc32\":") + 1, 0),
        changed(&text, text.len() - 2, 0),
        changed(&text, text.len() - 10, 1),
    ];
    cases.extend((0..text.len()).step_by(37).map(|at| changed(&text, at, 0)));
    for (number, case) in cases.into_iter().enumerate() {
        fs::write(&path, &case).unwrap();
        let loaded = load(directory.path(), Resolution::Full);
        assert_eq!(loaded.timeline.len(), whole.timeline.len(), "{number}");
        assert_eq!(groups(&loaded), groups(&whole), "{number}");
        let problems = &loaded.problems;
        assert!(
            problems.iter().any(|text| text.contains("segment.json: damaged")),
            "{number}: {problems:?}"
        );
    }
    // As an earlier memtide wrote it.
    fs::write(&path, &old).unwrap();
    let loaded = load(directory.path(), Resolution::Full);
    assert_eq!((groups(&loaded), loaded.problems), (groups(&whole), Vec::new()));
}

#[test]
fn a_foreign_head_file_makes_no_range_coarser_and_what_follows_it_is_read() {
    let directory = tempfile::tempdir().unwrap();
    kept_hours(directory.path());
    let before = load(directory.path(), Resolution::Auto).timeline.len();
    let heads = directory.path().join("head");
    fs::create_dir_all(&heads).unwrap();
    for number in 0..9 {
        fs::write(heads.join(format!("{}.log", 99_999_990 + number)), "foreign").unwrap();
    }
    let loaded = load(directory.path(), Resolution::Auto);
    assert_eq!(loaded.timeline.len(), before);
    assert!(
        loaded.problems.iter().any(|text| text.contains("are missing")),
        "{:?}",
        loaded.problems
    );
    let name = crate::segment::names::directory(100_000_000, None);
    assert_eq!(crate::segment::names::sequence(&name), Some(100_000_000));
}

#[test]
fn a_missing_segment_is_said() {
    let directory = tempfile::tempdir().unwrap();
    kept_hours(directory.path());
    fs::remove_dir_all(&segments(directory.path())[1]).unwrap();
    let loaded = load(directory.path(), Resolution::Full);
    assert_eq!(loaded.timeline.len(), 540);
    assert!(loaded.problems[0].contains("part 2 is missing"), "{:?}", loaded.problems);
}

#[test]
fn the_oldest_goes_first_by_age_and_by_size() {
    let directory = tempfile::tempdir().unwrap();
    let timeline = kept_hours(directory.path());
    let end = timeline.stamp(899).unwrap();
    let day = Span::from_hours(24);
    let nothing = enforce(directory.path(), day, Bytes::from_gib(1), end).unwrap();
    assert_eq!(nothing.parts, 0);
    let by_age = enforce(directory.path(), Span::from_hours(1), Bytes::from_gib(1), end).unwrap();
    assert_eq!(by_age.parts, 1, "the one that ends more than an hour ago");
    // One byte less than there is, with the space that is needed until the next file.
    let until_next = 2 * crate::head::full_bytes(Bytes::ZERO);
    let less = Bytes::new(by_age.left.get() - 1 + until_next);
    let by_size = enforce(directory.path(), day, less, end).unwrap();
    assert_eq!(by_size.parts, 1);
    assert!(by_size.left < by_age.left);
    assert!(drop_oldest(directory.path()).unwrap());
    assert!(!drop_oldest(directory.path()).unwrap(), "nothing is left");
}

#[test]
fn what_is_not_this_hosts_recording_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("letter.txt"), "dear").unwrap();
    let keep_in = |path: &Path, host: &HostIdentity| {
        add_timeline(path, host, &hours(), &Facts::default(), Span::from_secs(1))
    };
    let refused = keep_in(directory.path(), &host()).unwrap_err().to_string();
    assert!(refused.contains("letter.txt"), "{refused}");
    assert!(!Recording::is_at(directory.path()));
    let mine = tempfile::tempdir().unwrap();
    keep_in(mine.path(), &host()).unwrap();
    let other = HostIdentity { id: "b2".to_owned(), name: "db1".to_owned() };
    let refused = keep_in(mine.path(), &other).unwrap_err();
    assert!(matches!(refused, StoreError::OtherHost { .. }), "{refused}");
}

#[test]
fn an_empty_recording_says_so() {
    let directory = tempfile::tempdir().unwrap();
    let nothing = Timeline::default();
    add_timeline(directory.path(), &host(), &nothing, &Facts::default(), Span::from_secs(1))
        .unwrap();
    let loaded = load(directory.path(), Resolution::Auto);
    assert!(loaded.timeline.is_empty());
    assert!(
        loaded.problems.iter().any(|text| text.contains("holds no sample yet")),
        "{:?}",
        loaded.problems
    );
}
