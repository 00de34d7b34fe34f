//! A sound recording with bytes of its files replaced: it opens, or says why not, and what it holds can be judged.
//!
//! The input is a list of patches: the file's number, the place as a share of its length (two bytes), a length, the bytes.
#![no_main]

#[path = "../judged.rs"]
mod judged;
#[path = "../sound.rs"]
mod sound;

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    static SOUND: OnceLock<PathBuf> = OnceLock::new();
    let directory = tempfile::tempdir().expect("a directory");
    let recording = directory.path().join("recording");
    sound::copy(SOUND.get_or_init(sound::sealed), &recording);
    patch(&recording, data);
    sound::opened(&recording);
});

fn patch(recording: &Path, mut data: &[u8]) {
    let files = sound::files(recording);
    while let [file, high, low, len, rest @ ..] = data {
        let path = &files[usize::from(*file) % files.len()];
        let mut bytes = std::fs::read(path).expect("a file");
        let share = usize::from(u16::from_be_bytes([*high, *low]));
        let at = share * bytes.len() / usize::from(u16::MAX);
        let (new, rest) = rest.split_at(rest.len().min(usize::from(*len)));
        sound::patch(&mut bytes, at, new);
        std::fs::write(path, bytes).expect("a file");
        data = rest;
    }
}
