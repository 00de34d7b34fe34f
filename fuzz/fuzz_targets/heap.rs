//! A small heap with damaged words and pages, through the reader: it ends soon, and reads a bounded amount.
//!
//! The input says whether the kernel scans page maps (one byte); then a list of damages: a place (two bytes), a kind, a
//! value (eight bytes).
#![no_main]

#[path = "../../crates/heap/tests/it/image.rs"]
mod image;

use image::Image;
use libfuzzer_sys::fuzz_target;

/// More damages only make the rest of the heap irrelevant.
const DAMAGES_MAX: usize = 64;
/// The image is 600 KiB, and mappings are at most 128 MiB.
const COST_MAX: u64 = 256 << 20;
/// Half a second of 24 ns each, and some for what the image has in RAM.
const WORDS_MAX: u64 = 22_000_000;

fuzz_target!(|data: &[u8]| {
    let Some((scans, damages)) = data.split_first() else { return };
    let (mut image, mappings) = Image::new();
    image.can_scan = scans % 2 == 0;
    for damage in damages.chunks_exact(11).take(DAMAGES_MAX) {
        let place = u16::from_le_bytes([damage[0], damage[1]]);
        let value = u64::from_le_bytes(damage[3..11].try_into().expect("eight bytes"));
        image.damage(place, damage[2], value);
    }
    if let Ok(heap) = heap::read(&image, &mappings, 4096) {
        let _ = (heap.chunks(), heap.pages(), heap.uncertain_bytes(), heap.live_bytes());
    }
    assert!(image.cost.get() < COST_MAX, "{} bytes read", image.cost.get());
    assert!(image.words.get() < WORDS_MAX, "{} words of the page map", image.words.get());
});
