//! An image of a small heap, laid out as glibc 2.36 does it, that can be damaged: main arena, a thread arena of two heaps,
//! a chunk with a mapping of its own, a thread cache and a fast bin.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::ops::Range;

use heap::TargetMemory;
use probe::{Mappings, PageRun, PagesKnown};

const PAGE: u64 = 4096;
/// Words that one call reads on older kernels.
const WORDS_MAX: u64 = 8192;
const DATA: u64 = 0x7f00_0000_0000;
const MAIN: u64 = DATA + 0x1000;
const BINS: u64 = MAIN + 112;
const BRK: u64 = 0x5555_0000_0000;
const BRK_BYTES: u64 = 0x2_1000;
const ARENA: u64 = 0x7e00_0000_0000;
const HEAP_BYTES: u64 = 64 << 20;
const THREAD_BYTES: u64 = 0x1_0000;
const MMAPPED: u64 = 0x7d00_0000_0000;
const MMAPPED_BYTES: u64 = 0x2_1000;
const FORGED: u64 = 0x7c00_0000_0000;
const KEY: u64 = 0x1234_5678_9abc_def1;

/// Memory by page; what is not in it is not mapped.
pub(crate) struct Image {
    pages: BTreeMap<u64, Vec<u8>>,
    /// Pages in another state than in RAM: whether in swap, or absent.
    states: BTreeMap<u64, Option<bool>>,
    /// Whether pages in RAM are found without words of the page map: since Linux 6.7.
    pub(crate) can_scan: bool,
    /// Bytes that were read.
    pub(crate) cost: Cell<u64>,
    /// Words of the page map that were read.
    pub(crate) words: Cell<u64>,
}

impl TargetMemory for Image {
    fn read_parts(&self, parts: &[Range<u64>], buffer: &mut [u8]) -> usize {
        let mut got = 0;
        for part in parts {
            let mut at = part.start;
            while at < part.end && got < buffer.len() {
                let Some(page) = self.pages.get(&(at / PAGE)) else {
                    return got;
                };
                let from = usize::try_from(at % PAGE).unwrap_or(0);
                let wanted = usize::try_from(part.end - at).unwrap_or(usize::MAX);
                let length = wanted.min(page.len() - from).min(buffer.len() - got);
                buffer[got..got + length].copy_from_slice(&page[from..from + length]);
                got += length;
                at = at.saturating_add(length as u64);
            }
        }
        self.cost.set(self.cost.get() + got as u64);
        got
    }

    fn populated(&self, range: &Range<u64>, runs: &mut Vec<PageRun>) -> PagesKnown {
        let most = if self.can_scan { u64::MAX } else { WORDS_MAX * PAGE };
        let until = range.end.min(range.start.saturating_add(most));
        let pages = range.start / PAGE..until / PAGE;
        let words = if self.can_scan { 0 } else { pages.end - pages.start };
        self.words.set(self.words.get() + words);
        let mut states: BTreeMap<u64, Option<bool>> = BTreeMap::new();
        states.extend(self.pages.range(pages.clone()).map(|(page, _)| (*page, Some(false))));
        states.extend(self.states.range(pages));
        for (page, is_swapped) in states {
            if let Some(is_swapped) = is_swapped {
                PageRun::push(runs, page * PAGE..(page + 1) * PAGE, is_swapped);
            }
        }
        PagesKnown { until, words }
    }

    fn resident_bytes(&self) -> u64 {
        self.pages.len() as u64 * PAGE
    }
}

impl Image {
    /// The image and its mappings.
    pub(crate) fn new() -> (Self, Mappings) {
        let mut image = Self {
            pages: BTreeMap::new(),
            states: BTreeMap::new(),
            can_scan: true,
            cost: Cell::new(0),
            words: Cell::new(0),
        };
        image.map(DATA, 0x4000);
        image.map(BRK, BRK_BYTES);
        image.map(ARENA, THREAD_BYTES);
        image.map(ARENA + HEAP_BYTES, THREAD_BYTES);
        image.map(MMAPPED, MMAPPED_BYTES);
        image.main();
        image.thread();
        image.set(MMAPPED + 8, MMAPPED_BYTES | 2);
        let anonymous = |from: u64, bytes: u64, name: &str| {
            format!("{from:x}-{:x} rw-p 00000000 00:00 0 {name}\n", from + bytes)
        };
        let text = [
            anonymous(BRK, BRK_BYTES, "[heap]"),
            anonymous(MMAPPED, MMAPPED_BYTES, ""),
            anonymous(ARENA, THREAD_BYTES, ""),
            anonymous(ARENA + HEAP_BYTES, THREAD_BYTES, ""),
            format!("{DATA:x}-{:x} rw-p 00000000 08:01 77 /usr/lib/libc.so.6\n", DATA + 0x4000),
        ];
        (image, Mappings::parse(text.concat().as_bytes()))
    }

    fn map(&mut self, from: u64, bytes: u64) {
        for page in from / PAGE..(from + bytes) / PAGE {
            self.pages.insert(page, vec![0; 4096]);
        }
    }

    /// Writes a word, if its page is mapped.
    pub(crate) fn set(&mut self, address: u64, word: u64) {
        let at = usize::try_from(address % PAGE / 8 * 8).unwrap_or(0);
        if let Some(page) = self.pages.get_mut(&(address / PAGE)) {
            page[at..at + 8].copy_from_slice(&word.to_le_bytes());
        }
    }

    fn arena(&mut self, state: u64, top: u64, next: u64, system: u64) {
        let bins = state + 112;
        self.set(bins - 16, top);
        for pair in 0..127 {
            self.set(bins + pair * 16, bins + pair * 16 - 16);
            self.set(bins + pair * 16 + 8, bins + pair * 16 - 16);
        }
        self.set(bins + 2048, next);
        self.set(bins + 2064, 1);
        self.set(bins + 2072, system);
        self.set(bins + 2080, system);
    }

    /// Chunks from `at` on, every third one free in no bin, then the top. Returns where it is, and its flag 1.
    fn chunks(&mut self, mut at: u64, end: u64, flags: u64) -> (u64, u64) {
        let (mut in_use, mut index, mut before) = (1, 0_u64, 0);
        loop {
            let size = 32 + (index * 7 % 61) * 16;
            if in_use == 0 {
                self.set(at, before);
            }
            if at + size + 4096 > end {
                self.set(at + 8, (end - at) | in_use);
                return (at, in_use);
            }
            self.set(at + 8, size | in_use | flags);
            in_use = u64::from(index % 3 != 1);
            (index, before) = (index + 1, size);
            at += size;
        }
    }

    fn main(&mut self) {
        // The cache of the main thread, with one entry of 32 bytes, and a fast bin with two.
        self.set(BRK + 8, 0x291);
        self.set(BRK + 16, 1);
        let first = BRK + 0x290;
        self.set(BRK + 16 + 128, first + 16);
        for (chunk, next) in [(first, 0), (first + 32, 0), (first + 64, first + 32)] {
            self.set(chunk + 8, 0x21);
            self.set(chunk + 16, next ^ ((chunk + 16) >> 12));
        }
        self.set(first + 24, KEY);
        let (top, _) = self.chunks(first + 96, BRK + BRK_BYTES, 0);
        self.arena(MAIN, top, ARENA + 48, BRK_BYTES);
        self.set(BINS - 96, first + 64);
        // mp_: thresholds, counters of mapped chunks, where the heap begins.
        let mp = DATA + 0x200;
        self.set(mp, 128 << 10);
        self.set(mp + 16, 128 << 10);
        self.set(mp + 56, 1 << 32);
        self.set(mp + 64, 65_536 | 1 << 32);
        self.set(mp + 72, 0);
        self.set(mp + 80, MMAPPED_BYTES);
        self.set(mp + 96, BRK);
    }

    fn thread(&mut self) {
        let (state, second) = (ARENA + 48, ARENA + HEAP_BYTES);
        let (top, _) = self.chunks(second + 48, second + THREAD_BYTES, 4);
        self.arena(state, top, MAIN, 2 * THREAD_BYTES);
        for (heap, previous) in [(ARENA, 0), (second, ARENA)] {
            for (index, word) in
                [state, previous, THREAD_BYTES, THREAD_BYTES, PAGE].iter().enumerate()
            {
                self.set(heap + index as u64 * 8, *word);
            }
        }
        let first = (state + 2200).next_multiple_of(16);
        let end = ARENA + THREAD_BYTES;
        let (at, in_use) = self.chunks(first, end - 32, 4);
        // No top here: the rest is a chunk, then fenceposts.
        self.set(at + 8, (end - 32 - at) | 4 | in_use);
        self.set(end - 32 + 8, 0x11);
        self.set(end - 16 + 8, 1);
    }

    /// Moves a page of the main heap to swap.
    pub(crate) fn swap_out(&mut self, page: u64) {
        self.states.insert(BRK / PAGE + page, Some(true));
    }

    /// A bin amid a change: one of its links is written, the other one not yet.
    pub(crate) fn half_link_a_bin(&mut self) {
        self.set(BINS + 40 * 16, BRK + 0x290);
    }

    /// Lets both arenas claim a size.
    pub(crate) fn claim_sizes(&mut self, bytes: u64) {
        for state in [MAIN, ARENA + 48] {
            self.set(state + 112 + 2072, bytes);
        }
    }

    /// Puts a library's data before the C library's: pairs of words that each look like an empty bin.
    pub(crate) fn forge_bins(&mut self, bytes: u64) -> Mappings {
        self.map(FORGED, bytes);
        for at in (FORGED..FORGED + bytes).step_by(16) {
            self.set(at, at - 16);
            self.set(at + 8, at - 16);
        }
        Mappings::parse(
            format!("{FORGED:x}-{:x} rw-p 00000000 08:01 78 /tmp/libc.so.6\n", FORGED + bytes)
                .as_bytes(),
        )
    }

    /// Lets malloc count this many chunks with a mapping of their own.
    pub(crate) fn claim_mmapped(&mut self, chunks: u64) {
        self.set(DATA + 0x238, chunks << 32);
        self.set(DATA + 0x240, 65_536 | chunks << 32);
        self.set(DATA + 0x250, chunks * MMAPPED_BYTES);
    }

    /// Enlarges the top of the main arena by memory that was never touched.
    pub(crate) fn enlarge_top(&mut self, bytes: u64) {
        let mut words = [0; 8];
        self.read_at(BINS - 16, &mut words);
        let top = u64::from_le_bytes(*words.first_chunk().unwrap());
        self.set(top + 8, (BRK + BRK_BYTES - top + bytes) | 1);
    }

    /// Fills the main heap with caches of one list that leads to itself 65,535 times. Returns how many they are.
    pub(crate) fn forge_caches(&mut self) -> u64 {
        let end = BRK + BRK_BYTES;
        let entry = BRK + 0x290 + 96;
        self.set(entry + 8, 0x21);
        self.set(entry + 16, (entry + 16) ^ ((entry + 16) >> 12));
        let (mut at, mut caches) = (entry + 32, 0);
        while at + 0x290 + 4096 < end {
            for offset in (8..0x290).step_by(8) {
                self.set(at + offset, 0);
            }
            self.set(at + 8, 0x291);
            self.set(at + 16, 0xffff);
            self.set(at + 16 + 128, entry + 16);
            (at, caches) = (at + 0x290, caches + 1);
        }
        self.set(at + 8, (end - at) | 1);
        self.set(BINS - 16, at);
        caches
    }

    /// Damages a word as four numbers say: where, how, and with what.
    pub(crate) fn damage(&mut self, place: u16, how: u8, value: u64) {
        let pages: Vec<u64> = self.pages.keys().copied().collect();
        let index = usize::from(place >> 9) * pages.len() / 128;
        let Some(page) = pages.get(index).copied() else {
            return;
        };
        let address = page * PAGE + u64::from(place % 512) * 8;
        // Fields of arenas and headers are a few words of many: they have numbers of their own.
        let fields = [
            BINS - 16,
            BINS - 96,
            BINS + 2048,
            BINS + 2072,
            DATA + 0x260,
            ARENA,
            ARENA + 8,
            ARENA + 16,
            ARENA + HEAP_BYTES,
            ARENA + HEAP_BYTES + 8,
            ARENA + HEAP_BYTES + 16,
            ARENA + 48 + 96,
            BRK + 8,
            BRK + 16,
            BRK + 144,
            BRK + 0x298,
            BINS,
            BINS + 8,
            ARENA + 48 + 112 + 2048,
            MMAPPED + 8,
            MMAPPED,
            MAIN,
        ];
        let field = fields[usize::from(place) % fields.len()];
        match how % 7 {
            0 => self.set(address, value),
            1 => self.set(field, value),
            2 => self.set(field, value % (64 << 20)),
            3 => self.set(field, ARENA + value % (2 * HEAP_BYTES)),
            4 => self.set(field, BRK + value % BRK_BYTES / 16 * 16),
            5 => {
                let states = [None, Some(true), Some(false), Some(false)];
                let state = usize::try_from(value >> 62).ok();
                let state = state.and_then(|state| states.get(state).copied());
                self.states.insert(page, state.flatten());
            }
            _ => {
                self.pages.remove(&page);
            }
        }
    }
}
