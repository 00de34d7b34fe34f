//! The head of a recording that was not ended, with bytes of its frames replaced and their checksums made right: what lies
//! behind the checksums is read.
//!
//! The input is a list of patches: the frame's number (two bytes), the place in its payload (two bytes), a length, the
//! bytes. A length of 0 cuts the payload there; the place 65535 puts the bytes as a frame of their own before it.
#![no_main]

#[path = "../judged.rs"]
mod judged;
#[path = "../sound.rs"]
mod sound;

use std::path::PathBuf;
use std::sync::OnceLock;

use libfuzzer_sys::fuzz_target;

/// Length, checksum and kind of a frame.
const HEADER: usize = 9;

fuzz_target!(|data: &[u8]| {
    static SOUND: OnceLock<(PathBuf, Vec<Vec<u8>>)> = OnceLock::new();
    let (from, frames) = SOUND.get_or_init(|| {
        let recording = sound::unsealed();
        let head = std::fs::read(head(&recording)).expect("a head");
        (recording, frames(&head))
    });
    let directory = tempfile::tempdir().expect("a directory");
    let recording = directory.path().join("recording");
    sound::copy(from, &recording);
    let head = head(&recording);
    std::fs::write(head, patched(frames.clone(), data)).expect("a head");
    sound::opened(&recording);
});

fn head(recording: &std::path::Path) -> PathBuf {
    let mut heads = sound::files(&recording.join("head"));
    heads.pop().expect("a head")
}

/// The frames of a head: kind and payload each.
fn frames(mut head: &[u8]) -> Vec<Vec<u8>> {
    let mut frames = Vec::new();
    while head.len() >= HEADER {
        let length = u32::from_le_bytes(head[..4].try_into().expect("four bytes"));
        let end = HEADER + usize::try_from(length).expect("a length");
        frames.push(head[HEADER - 1..end].to_vec());
        head = &head[end..];
    }
    frames
}

fn patched(mut frames: Vec<Vec<u8>>, mut data: &[u8]) -> Vec<u8> {
    while let [a, b, c, d, len, rest @ ..] = data {
        let number = usize::from(u16::from_be_bytes([*a, *b])) % frames.len();
        let place = u16::from_be_bytes([*c, *d]);
        let (new, rest) = rest.split_at(rest.len().min(usize::from(*len)));
        if place == u16::MAX {
            frames.insert(number, new.to_vec());
        } else {
            let frame = &mut frames[number];
            let at = usize::from(place) % frame.len().max(1);
            sound::patch(frame, at, new);
        }
        data = rest;
    }
    frames.iter().flat_map(|frame| framed(frame)).collect()
}

/// A frame with its length and its checksum.
fn framed(frame: &[u8]) -> Vec<u8> {
    let length = u32::try_from(frame.len().saturating_sub(1)).expect("a length");
    let mut sum = crc32fast::Hasher::new();
    sum.update(&length.to_le_bytes());
    sum.update(frame);
    let sum = sum.finalize();
    [&length.to_le_bytes()[..], &sum.to_le_bytes(), frame].concat()
}
