//! Damaged and vanishing heaps: the reader ends soon, with an error or with figures that show the damage.

use std::cell::Cell;
use std::ops::Range;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use heap::{Heap, HeapError, TargetMemory, read, read_settled};
use probe::{Mappings, PageRun, PagesKnown, Root};
use proptest::prelude::*;

use crate::image::Image;
use crate::target::{Target, figure};

/// Reading any heap of this size takes far less, also on a slow and busy host: after this it hangs.
const SOON: Duration = Duration::from_secs(60);

fn corrupted(kind: &str) -> (Result<Heap, HeapError>, u64) {
    corrupted_of("4 frag 48 5", kind)
}

fn corrupted_of(arguments: &str, kind: &str) -> (Result<Heap, HeapError>, u64) {
    let mut target = Target::start(arguments);
    assert_eq!(target.ask(&format!("corrupt {kind}")).trim(), format!("corrupted {kind}"));
    let start = Instant::now();
    let heap = target.heap();
    assert!(start.elapsed() < SOON, "{kind}");
    (heap, figure(&target.ready, "live"))
}

#[test]
fn a_looped_bin_changes_nothing_as_bins_are_not_followed() {
    let (heap, own) = corrupted("loop");
    let heap = heap.unwrap();
    assert_eq!(heap.chunks().unknown_bytes, 0);
    assert!(heap.live_bytes().abs_diff(own) < own / 1000 + 192_000);
}

#[test]
fn a_chunk_with_a_forged_size_is_unknown_and_the_others_are_counted() {
    let (heap, own) = corrupted("size");
    let heap = heap.unwrap();
    let unknown = heap.chunks().unknown_bytes;
    assert!((1..64_000).contains(&unknown), "{unknown}");
    assert!(heap.uncertain_bytes() >= unknown);
    assert!(heap.live_bytes().abs_diff(own) < own / 1000 + 192_000);
}

#[test]
fn a_top_outside_of_memory_is_an_error() {
    let (heap, _) = corrupted("top");
    assert!(matches!(heap, Err(HeapError::NoArena | HeapError::UnknownLayout(_))), "{heap:?}");
}

#[test]
fn a_ring_that_never_comes_back_leaves_the_main_arena() {
    let (heap, _) = corrupted("ring");
    let heap = heap.unwrap();
    assert!(!heap.is_ring_whole);
    assert_eq!(heap.arenas.len(), 1);
    assert_eq!(heap.chunks().unknown_bytes, 0);
}

#[test]
fn a_looped_thread_cache_is_counted_once() {
    for threads in [1, 4] {
        let (heap, own) = corrupted_of(&format!("{threads} frag 48 5"), "cache");
        let heap = heap.unwrap();
        assert_eq!(heap.is_safe_linking, Some(true));
        let cached = heap.chunks().cached;
        assert_eq!(cached, heap.cached_by_lists);
        assert!(heap.live_bytes().abs_diff(own) < own / 1000 + 64_000);
    }
}

#[test]
fn a_looped_fast_bin_is_counted_once() {
    let (heap, own) = corrupted("fast");
    let heap = heap.unwrap();
    let error = heap.live_bytes().abs_diff(own);
    assert!(error < own / 1000 + 64_000, "{error}");
    assert!(heap.chunks().fast.bytes < own);
}

#[test]
fn a_looped_chain_of_heaps_leaves_uncertain_what_it_hides() {
    // Each thread's arena has more than one heap.
    let (heap, own) = corrupted_of("2 full 300 5", "heaps");
    let heap = heap.unwrap();
    assert!(!heap.is_whole());
    assert!(heap.live_bytes() < own / 10 * 9, "the heaps are not found");
    assert!(heap.uncertain_bytes() >= own - heap.live_bytes());
}

/// Counts what is read of a process.
struct Counted<M> {
    memory: M,
    calls: Cell<u64>,
    bytes: Cell<u64>,
    words: Cell<u64>,
}

impl<M: TargetMemory> TargetMemory for Counted<M> {
    fn read_parts(&self, parts: &[Range<u64>], buffer: &mut [u8]) -> usize {
        let got = self.memory.read_parts(parts, buffer);
        self.calls.set(self.calls.get() + 1);
        self.bytes.set(self.bytes.get() + got as u64);
        got
    }

    fn populated(&self, range: &Range<u64>, runs: &mut Vec<PageRun>) -> PagesKnown {
        let known = self.memory.populated(range, runs);
        self.calls.set(self.calls.get() + 1);
        self.words.set(self.words.get() + known.words);
        known
    }

    fn resident_bytes(&self) -> u64 {
        self.memory.resident_bytes()
    }
}

#[test]
fn a_terabyte_of_forged_arenas_is_read_no_further_than_what_is_in_ram_explains() {
    let mut target = Target::start("2 frag 16 5");
    let own = figure(&target.ready, "live");
    assert_eq!(target.ask("corrupt arenas").trim(), "corrupted arenas");
    let (mappings, memory) = target.memory();
    let resident = memory.resident_bytes();
    let memory = Counted { memory, calls: Cell::new(0), bytes: Cell::new(0), words: Cell::new(0) };
    let again = || Mappings::read(&Root::default(), target.pid()).ok();
    let heap = read_settled(&memory, &mappings, again, 4096).unwrap();
    assert!(heap.is_cut && !heap.is_whole());
    // 0.5 s and 1 µs for each KiB in RAM, in calls of 1 µs, KiB of 0.17 µs and words of 24 ns.
    let most_us = 500_000 + resident / 1024;
    let (calls, bytes, words) = (memory.calls.get(), memory.bytes.get(), memory.words.get());
    let cost_us = calls + bytes / 1024 * 17 / 100 + words * 24 / 1000;
    assert!(
        cost_us <= most_us,
        "{calls} calls, {bytes} bytes, {words} words of the page map: {cost_us} of {most_us}"
    );
    // What was read before is right, and what was not is no confidence.
    assert!(heap.arenas.len() > 16_000 && heap.live_bytes() >= own / 2);
    assert!(heap.uncertain_bytes() > 1 << 30);
    assert!(heap.pages().resident <= resident);
}

#[test]
fn memory_that_is_remapped_while_it_is_read_is_uncertain_and_right_again_afterwards() {
    const READINGS: usize = if cfg!(debug_assertions) { 10 } else { 100 };
    let mut target = Target::start("4 frag 48 5");
    let own = target.heap().unwrap().live_bytes();
    assert_eq!(target.ask("corrupt remap").trim(), "corrupted remap");
    let (mut damaged, mut readings) = (0, 0);
    let began = Instant::now();
    // On a busy host the target may stand still during a reading.
    while readings < READINGS || damaged == 0 {
        let start = Instant::now();
        assert!(began.elapsed() < SOON || readings < READINGS, "none differs");
        let heap = target.heap();
        assert!(start.elapsed() < SOON);
        readings += 1;
        let Ok(heap) = heap else { continue };
        let (live, uncertain) = (heap.live_bytes(), heap.uncertain_bytes());
        damaged += usize::from(live != own);
        assert!(live.abs_diff(own) <= uncertain, "{live} of {own}, {uncertain}");
    }
    eprintln!("remapped: {damaged} of {readings} readings differ");
    target.ask("stop");
    let heap = target.heap().unwrap();
    assert_eq!((heap.live_bytes(), heap.uncertain_bytes()), (own, 0));
}

#[test]
fn a_process_that_exits_meanwhile_ends_the_walk() {
    let mut target = Target::start("4 frag 64 6");
    let (mappings, memory) = target.memory();
    let reader = std::thread::spawn(move || {
        let start = Instant::now();
        while read(&memory, &mappings, 4096).is_ok() {
            assert!(start.elapsed() < SOON);
        }
        (mappings, memory)
    });
    target.end();
    let (mappings, memory) = reader.join().unwrap();
    assert_eq!(read(&memory, &mappings, 4096), Err(HeapError::NoArena));
}

#[test]
fn a_zombie_has_no_heap() {
    let mut child = Command::new("true").stdin(Stdio::null()).spawn().unwrap();
    let stat = format!("/proc/{}/stat", child.id());
    let start = Instant::now();
    while !std::fs::read_to_string(&stat).unwrap().contains(") Z ") {
        assert!(start.elapsed() < SOON);
        std::thread::yield_now();
    }
    // Its maps are empty, or cannot be read, by version of the kernel; a kernel thread's are as empty.
    let mappings = Mappings::read(&Root::default(), child.id()).unwrap_or_default();
    let (image, _) = Image::new();
    assert_eq!(read(&image, &mappings, 4096), Err(HeapError::NoArena));
    child.wait().unwrap();
}

#[test]
fn the_image_is_a_heap() {
    let (image, mappings) = Image::new();
    let heap = read(&image, &mappings, 4096).unwrap();
    let chunks = heap.chunks();
    assert_eq!((heap.arenas.len(), heap.arenas[1].parts.len()), (2, 2));
    assert_eq!((chunks.cached.chunks, chunks.fast.chunks), (1, 2));
    assert_eq!((chunks.unknown_bytes, chunks.resyncs), (0, 0));
    assert!(chunks.binned.chunks > 50, "{chunks:?}");
    assert_eq!(heap.mmapped.len(), 1);
}

#[test]
fn a_main_heap_that_is_divided_into_mappings_is_one() {
    let (image, mut mappings) = Image::new();
    let whole = read(&image, &mappings, 4096).unwrap();
    let index = mappings.all.iter().position(|one| one.name == b"[heap]");
    let index = index.unwrap();
    let mut behind = mappings.all[index].clone();
    behind.range.start += 8 * 4096;
    mappings.all[index].range.end = behind.range.start;
    mappings.all.insert(index + 1, behind);
    assert_eq!(read(&image, &mappings, 4096), Ok(whole));
}

#[test]
fn a_process_stopped_while_it_changes_a_bin_has_a_heap() {
    let (mut image, mappings) = Image::new();
    image.half_link_a_bin();
    let heap = read(&image, &mappings, 4096).unwrap();
    assert_eq!((heap.arenas.len(), heap.chunks().unknown_bytes), (2, 0));
}

#[test]
fn a_page_in_swap_is_not_read_and_its_chunks_are_no_guess() {
    let (mut image, mappings) = Image::new();
    let whole = read(&image, &mappings, 4096).unwrap();
    image.swap_out(5);
    let heap = read(&image, &mappings, 4096).unwrap();
    let chunks = heap.chunks();
    assert_eq!((chunks.unknown_bytes, chunks.resyncs), (0, 0));
    assert!((4096..8192).contains(&chunks.swapped_bytes), "{chunks:?}");
    assert_eq!(heap.pages().swapped, 4096);
    let missing = whole.live_bytes() - heap.live_bytes();
    assert!(missing > 0 && missing <= heap.uncertain_bytes());
}

#[test]
fn sizes_that_arenas_forge_are_no_confidence() {
    let (mut image, mappings) = Image::new();
    image.claim_sizes(u64::MAX);
    let heap = read(&image, &mappings, 4096).unwrap();
    assert_eq!(heap.chunks().unknown_bytes, 0);
    assert!(heap.system_bytes() >= 1 << 40);
    assert!(heap.uncertain_bytes() >= 1 << 40);
    assert!(heap.live_bytes() < 1 << 20);
}

#[test]
fn forged_bins_cost_no_more_than_their_bytes() {
    const BYTES: u64 = 1 << 20;
    let (mut image, mut mappings) = Image::new();
    mappings.all.splice(0..0, image.forge_bins(BYTES).all);
    mappings.all.sort_by_key(|one| one.range.start);
    let heap = read(&image, &mappings, 4096).unwrap();
    assert_eq!(heap.arenas.len(), 2);
    let cost = image.cost.get();
    assert!(cost < 3 * BYTES, "{cost}");
}

#[test]
fn address_space_that_is_reserved_costs_nothing_where_the_kernel_scans_and_little_elsewhere() {
    for (can_scan, most) in [(true, 0), (false, 16 << 20)] {
        let (mut image, mut mappings) = Image::new();
        image.can_scan = can_scan;
        let whole = read(&image, &mappings, 4096).unwrap();
        let cost = image.cost.replace(0);
        // One chunk more than there is: the search does not end by itself.
        image.claim_mmapped(2);
        let text = b"1000000000-18000000000 rw-p 00000000 00:00 0\n";
        mappings.all.splice(0..0, Mappings::parse(text).all);
        let heap = read(&image, &mappings, 4096).unwrap();
        assert_eq!(heap.mmapped, whole.mmapped);
        assert!(image.cost.get() < cost + 1_000_000, "{}", image.cost.get());
        assert!(image.words.get() < most + 8192, "{}", image.words.get());
    }
}

#[test]
fn a_forged_heap_is_passed_over_where_the_kernel_scans_and_given_up_elsewhere() {
    for (can_scan, is_cut) in [(true, false), (false, true)] {
        let (mut image, mut mappings) = Image::new();
        image.can_scan = can_scan;
        // The main arena's heap and its top say that it is 2 TiB; what is in RAM is as it was.
        const BYTES: u64 = 2 << 40;
        let heap = mappings.all.iter_mut().find(|one| one.name == b"[heap]");
        heap.unwrap().range.end += BYTES;
        image.enlarge_top(BYTES);
        let heap = read(&image, &mappings, 4096).unwrap();
        assert_eq!((heap.is_cut, heap.is_whole()), (is_cut, !is_cut));
        // 24 ns each, and 0.5 s for all.
        assert!(image.words.get() < 22_000_000, "{}", image.words.get());
        assert!(image.cost.get() < 4 << 20, "{}", image.cost.get());
    }
}

#[test]
fn a_picture_of_a_heap_with_a_forged_size_is_small() {
    const BYTES: u64 = 4 << 30;
    let (mut image, mut mappings) = Image::new();
    image.claim_sizes(4096);
    let heap = mappings.all.iter_mut().find(|one| one.name == b"[heap]");
    heap.unwrap().range.end += BYTES;
    image.enlarge_top(BYTES);
    let heap = read(&image, &mappings, 4096).unwrap();
    let rows = heap.arenas.iter().flat_map(|arena| &arena.parts);
    let cells: usize = rows.map(|part| part.row.cells.len()).sum();
    assert!((1024..=32_768).contains(&cells), "{cells}");
}

#[test]
fn looped_caches_of_all_threads_have_one_bound() {
    let (mut image, mappings) = Image::new();
    let caches = image.forge_caches();
    assert!(caches > 150);
    let heap = read(&image, &mappings, 4096).unwrap();
    assert!(heap.cached_by_lists.chunks > 65_535 * 4, "they are followed");
    assert!(heap.is_cut);
    assert!(image.cost.get() < 32 << 20, "{}", image.cost.get());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]
    #[test]
    fn a_damaged_heap_is_read_in_bounded_time(
        damages in prop::collection::vec(any::<(u16, u8, u64)>(), 0..12)
    ) {
        let (mut image, mappings) = Image::new();
        for (place, how, value) in damages {
            image.damage(place, how, value);
        }
        if let Ok(heap) = read(&image, &mappings, 4096) {
            let _ = (heap.pages(), heap.system_bytes(), heap.uncertain_bytes());
            prop_assert!(heap.live_bytes() <= heap.arenas.iter().flat_map(|arena| &arena.parts)
                .map(|part| part.range.end - part.range.start).sum::<u64>() + heap.mmapped_bytes());
        }
        prop_assert!(image.cost.get() < 1 << 30, "{}", image.cost.get());
    }
}
