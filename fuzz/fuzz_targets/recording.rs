//! A sound recording with bytes of its files replaced: it opens, or says why not, and what it holds can be judged.
//!
//! The input is a list of patches: the file's number, the place as a share of its length (two bytes), a length, the bytes.
#![no_main]

#[path = "../judged.rs"]
mod judged;

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use libfuzzer_sys::fuzz_target;
use store::{HostIdentity, Recording, add_timeline};
use timeline::TimeRange;
use units::Span;

fuzz_target!(|data: &[u8]| {
    let directory = tempfile::tempdir().expect("a directory");
    let recording = directory.path().join("recording");
    copy(sound(), &recording);
    patch(&recording, data);
    if let Ok(recording) = Recording::open(&recording) {
        let _ = recording.info(true);
    }
    if let Ok(source) = import::open(&recording, &mut |_| ()) {
        let source = source.within(TimeRange::default()).expect("the whole of it");
        judged::judge(&source);
    }
});

/// A recording of a labelled capture, sealed.
fn sound() -> &'static Path {
    static SOUND: OnceLock<PathBuf> = OnceLock::new();
    SOUND.get_or_init(|| {
        let directory = tempfile::tempdir().expect("a directory").keep();
        let capture = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../corpus/captures/cgroup-oom--96m/capture.jsonl.gz"
        );
        let source = import::open(Path::new(capture), &mut |_| ()).expect("a capture");
        let host = HostIdentity {
            id: "fuzz".to_owned(),
            name: "fuzz".to_owned(),
        };
        let every = Span::from_secs(1);
        add_timeline(&directory, &host, &source.timeline, &source.facts, every).expect("a recording");
        directory
    })
}

/// All files below a directory, in order of their paths.
fn files(directory: &Path) -> Vec<PathBuf> {
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

fn copy(from: &Path, to: &Path) {
    for file in files(from) {
        let target = to.join(file.strip_prefix(from).expect("a path below it"));
        std::fs::create_dir_all(target.parent().expect("a directory")).expect("a directory");
        std::fs::copy(file, target).expect("a copy");
    }
}

fn patch(recording: &Path, mut data: &[u8]) {
    let files = files(recording);
    while let [file, high, low, len, rest @ ..] = data {
        let path = &files[usize::from(*file) % files.len()];
        let mut bytes = std::fs::read(path).expect("a file");
        let share = usize::from(u16::from_be_bytes([*high, *low]));
        let at = share * bytes.len() / usize::from(u16::MAX);
        let (new, rest) = rest.split_at(rest.len().min(usize::from(*len)));
        // Nothing new cuts the file there.
        if new.is_empty() {
            bytes.truncate(at);
        }
        for (place, byte) in bytes.iter_mut().skip(at).zip(new) {
            *place = *byte;
        }
        std::fs::write(path, bytes).expect("a file");
        data = rest;
    }
}
