//! What real kernels said goes into a recording and comes out the same.
#![allow(clippy::unwrap_used, missing_docs)]

use std::path::{Path, PathBuf};

use store::{HostIdentity, Recording, Resolution, Selection, add_timeline};
use timeline::{Entity, Facts, Timeline};
use units::Span;

fn host() -> HostIdentity {
    HostIdentity { id: "0123".to_owned(), name: "host".to_owned() }
}

/// Captures of the corpus.
fn captures() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus/captures");
    let cases = std::fs::read_dir(folder).unwrap();
    let mut paths: Vec<PathBuf> =
        cases.map(|case| case.unwrap().path().join("capture.jsonl.gz")).collect();
    paths.sort();
    paths
}

fn load(directory: &Path) -> store::Loaded {
    let selection = Selection { resolution: Resolution::Full, ..Selection::default() };
    Recording::open(directory).unwrap().load(selection, &mut |_| ())
}

/// The first thing in which two timelines differ, in words.
fn difference(a: &Timeline, b: &Timeline) -> Option<String> {
    if a.len() != b.len() {
        return Some(format!("{} and {} samples", a.len(), b.len()));
    }
    let stamp = (0..a.len()).find(|at| {
        a.stamp(*at) != b.stamp(*at)
            || Entity::ALL.iter().any(|entity| a.was_read(*entity, *at) != b.was_read(*entity, *at))
    });
    if let Some(at) = stamp {
        return Some(format!("sample {at}"));
    }
    if !a.host_runs().eq(b.host_runs()) {
        return Some("readings of the host".to_owned());
    }
    for entity in Entity::ALL.into_iter().skip(1) {
        let (mut of_a, mut of_b) = (a.entities(entity), b.entities(entity));
        loop {
            match (of_a.next(), of_b.next()) {
                (None, None) => break,
                (Some(a), Some(b))
                    if a.key == b.key && a.label == b.label && a.group == b.group =>
                {
                    if !a.runs().eq(b.runs()) {
                        return Some(format!("{} {}", entity.name(), a.key));
                    }
                }
                (a, b) => {
                    let key = |series: Option<&timeline::EntitySeries>| {
                        series.map(|series| series.key.clone())
                    };
                    return Some(format!("{} {:?} and {:?}", entity.name(), key(a), key(b)));
                }
            }
        }
    }
    (a.absent != b.absent).then(|| "what is absent".to_owned())
}

#[test]
fn every_capture_is_read_again_as_it_was() {
    let captures = captures();
    assert!(captures.len() > 50, "{}", captures.len());
    let mut differ = Vec::new();
    for path in captures {
        let source = import::open(&path, &mut |_| ()).unwrap();
        let directory = tempfile::tempdir().unwrap();
        let every = Span::from_secs(1);
        add_timeline(directory.path(), &host(), &source.timeline, &source.facts, every).unwrap();
        let loaded = load(directory.path());
        assert_eq!(loaded.problems, Vec::<String>::new(), "{}", path.display());
        let difference = difference(&source.timeline, &loaded.timeline);
        differ.extend(difference.map(|what| format!("{}: {what}", path.display())));
    }
    assert_eq!(differ, Vec::<String>::new());
}

#[test]
fn a_recording_of_an_earlier_memtide_is_read() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let loaded = load(&here.join("tests/data/format-2"));
    assert_eq!(loaded.problems, Vec::<String>::new());
    let capture = here.join("../../corpus/captures/cgroup-oom--96m/capture.jsonl.gz");
    let source = import::open(&capture, &mut |_| ()).unwrap();
    // A later memtide may read more of a capture than was kept then, but nothing of what was kept is other.
    assert_eq!(loaded.timeline.len(), source.timeline.len());
    let mut compared = 0;
    for (signal, runs) in loaded.timeline.host_runs() {
        let (_, now) = source.timeline.host_runs().find(|(id, _)| *id == signal).unwrap();
        assert_eq!(runs, now, "{}", signal.def().name);
        compared += 1;
    }
    assert!(compared > 150, "{compared}");
    for entity in Entity::ALL {
        let (then, now) = (loaded.timeline.entities(entity), source.timeline.entities(entity));
        assert_eq!(then.count(), now.count(), "{}", entity.name());
    }
    assert_eq!(loaded.facts.page_size, source.facts.page_size);
    assert_ne!(loaded.facts.page_size, Facts::default().page_size);
}
