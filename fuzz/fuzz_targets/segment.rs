//! A sealed segment with bytes of its tables, of their metadata or of its list of files replaced, and all checksums made
//! right: what lies behind them is read.
//!
//! The input is a list of patches: the file's number, the place (two bytes), a length, the bytes. An even place counts
//! from the start, an odd one back from the end, where a table has its metadata. No bytes cut the file there.
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
    let files = sound::files(&recording.join("segments"));
    let mut is_list = false;
    for (number, patches) in by_file(data, files.len()) {
        let path = &files[number];
        let mut bytes = std::fs::read(path).expect("a file");
        is_list |= path.ends_with("segment.json");
        patches.iter().for_each(|(place, new)| patch(&mut bytes, *place, new));
        std::fs::write(path, bytes).expect("a file");
    }
    listed(&files, is_list);
    sound::opened(&recording);
});

/// Patches of each file: a place and bytes each.
fn by_file(mut data: &[u8], files: usize) -> std::collections::BTreeMap<usize, Vec<(usize, &[u8])>> {
    let mut all = std::collections::BTreeMap::<usize, Vec<_>>::new();
    while let [file, high, low, len, rest @ ..] = data {
        let place = usize::from(u16::from_be_bytes([*high, *low]));
        let (new, rest) = rest.split_at(rest.len().min(usize::from(*len)));
        all.entry(usize::from(*file) % files).or_default().push((place, new));
        data = rest;
    }
    all
}

fn patch(bytes: &mut Vec<u8>, place: usize, new: &[u8]) {
    let at = match place % 2 {
        0 => place / 2 % bytes.len().max(1),
        _ => bytes.len().saturating_sub(place / 2),
    };
    sound::patch(bytes, at, new);
}

/// Makes the list of files right again: each file's length and checksum, where the list itself was left alone, and its own.
fn listed(files: &[PathBuf], is_patched: bool) {
    let path = files.iter().find(|path| path.ends_with("segment.json")).expect("a list");
    let bytes = std::fs::read(path).expect("a list");
    let Ok(mut text) = String::from_utf8(bytes) else {
        return;
    };
    let Some(end) = text.rfind(",\"crc32\":") else {
        return;
    };
    text.truncate(end);
    if !is_patched {
        files.iter().for_each(|file| entry(&mut text, file));
    }
    let sum = crc32fast::hash(text.as_bytes());
    std::fs::write(path, format!("{text},\"crc32\":{sum}}}")).expect("a list");
}

/// Makes a file's entry right.
fn entry(list: &mut String, file: &Path) {
    let name = file.file_name().and_then(|name| name.to_str()).expect("a name");
    let Some((before, rest)) = list.split_once(&format!("\"{name}\":{{")) else {
        return;
    };
    let (_, after) = rest.split_once('}').expect("an entry");
    let bytes = std::fs::read(file).expect("a file");
    let (len, sum) = (bytes.len(), crc32fast::hash(&bytes));
    *list = format!("{before}\"{name}\":{{\"bytes\":{len},\"crc32\":{sum}}}{after}");
}
