//! Sound recordings that fuzz targets damage: of a labelled capture, sealed, or as a recorder that was killed leaves it.

#![allow(dead_code)] // each target uses a part

use std::path::{Path, PathBuf};

use store::{HostIdentity, Writer, WriterOptions, add_timeline};
use timeline::Source;
use units::Span;

fn host() -> HostIdentity {
    HostIdentity {
        id: "fuzz".to_owned(),
        name: "fuzz".to_owned(),
    }
}

fn capture() -> Source {
    let capture = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../corpus/captures/cgroup-oom--96m/capture.jsonl.gz"
    );
    import::open(Path::new(capture), &mut |_| ()).expect("a capture")
}

/// A recording of one segment.
pub fn sealed() -> PathBuf {
    let directory = tempfile::tempdir().expect("a directory").keep();
    let source = capture();
    let every = Span::from_secs(1);
    add_timeline(&directory, &host(), &source.timeline, &source.facts, every).expect("a recording");
    directory
}

/// A recording of one head file.
pub fn unsealed() -> PathBuf {
    let directory = tempfile::tempdir().expect("a directory").keep();
    let source = capture();
    let options = WriterOptions {
        patient: true,
        // It does nothing, so that the head stays.
        sealer: Some(vec!["true".into()]),
        ..WriterOptions::default()
    };
    let mut writer = Writer::open(&directory, &host(), &source.facts, options).expect("a writer");
    for index in 0..source.timeline.len().min(40) {
        let sample = source.timeline.sample(index).expect("a sample");
        writer.begin(sample.stamp);
        writer.rows(&sample);
        writer.end();
    }
    writer.close().expect("a written recording");
    directory
}

/// All files below a directory, in order of their paths.
pub fn files(directory: &Path) -> Vec<PathBuf> {
    let mut all = Vec::new();
    let mut entries: Vec<PathBuf> = std::fs::read_dir(directory)
        .expect("a directory")
        .map(|entry| entry.expect("an entry").path())
        .collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            all.extend(files(&path));
        } else {
            all.push(path);
        }
    }
    all
}

/// Copies a directory.
pub fn copy(from: &Path, to: &Path) {
    for file in files(from) {
        let target = to.join(file.strip_prefix(from).expect("a path below it"));
        std::fs::create_dir_all(target.parent().expect("a directory")).expect("a directory");
        std::fs::copy(file, target).expect("a copy");
    }
}

/// Replaces bytes from a place on; no new ones cut there.
pub fn patch(bytes: &mut Vec<u8>, at: usize, new: &[u8]) {
    if new.is_empty() {
        bytes.truncate(at);
    }
    for (place, byte) in bytes.iter_mut().skip(at).zip(new) {
        *place = *byte;
    }
}

/// Opens a recording in all ways, and judges it.
pub fn opened(recording: &Path) {
    if let Ok(recording) = store::Recording::open(recording) {
        let _ = recording.info(true);
    }
    if let Ok(source) = import::open(recording, &mut |_| ()) {
        let source = source
            .within(timeline::TimeRange::default())
            .expect("the whole of it");
        super::judged::judge(&source);
    }
}
