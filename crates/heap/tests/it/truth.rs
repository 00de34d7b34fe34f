//! An idle program: every figure equals the program's own count and malloc's.

use heap::{Arena, Heap, TargetMemory};

use crate::target::{ArenaInfo, Target, figure};

/// Shapes of the target's heap.
pub(crate) const IDLE_SHAPES: [&str; 6] = ["full", "frag", "tiny", "fast", "mix", "big"];
/// What makes a heap irregular.
pub(crate) const IDLE_OPTIONS: [&str; 4] =
    ["--exit-threads", "--cross-free", "--foreign-brk", "--foreign-sbrk"];

/// What was compared, and by how much the live bytes exceed the program's own count: by libc's own chunks.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Compared {
    heaps: u64,
    arenas: u64,
    chunks: u64,
    bytes: u64,
    excess: u64,
}

impl Compared {
    const fn add(&mut self, other: Self) {
        self.heaps += other.heaps;
        self.arenas += other.arenas;
        self.chunks += other.chunks;
        self.bytes += other.bytes;
        self.excess += other.excess;
    }
}

/// Per arena and in all: what malloc counts as free and as used equals what the walk found; live chunks are those of the
/// program and few of libc's.
pub(crate) fn equals_its_own_count(target: &mut Target, arguments: &str) -> Compared {
    let ready = target.ready.clone();
    equals(target, &ready, arguments)
}

/// The same against the counts of an answer, for a target that churned and is idle again.
pub(crate) fn equals(target: &mut Target, counts: &str, arguments: &str) -> Compared {
    let heap = target.heap().unwrap_or_else(|error| panic!("{arguments}: {error}"));
    let (all, arenas) = target.info();
    assert_eq!(arenas.len(), heap.arenas.len(), "{arguments}");
    for (index, (arena, info)) in heap.arenas.iter().zip(&arenas).enumerate() {
        arena_equals(arena, info, &format!("{arguments}: arena {index}"));
    }
    all_equal(&heap, &all, arguments);
    let chunks = heap.chunks();
    assert_eq!(chunks.cached, heap.cached_by_lists, "{arguments}");
    let mmapped = heap.mmapped.len() as u64;
    assert_eq!(mmapped, figure(counts, "mmapped"), "{arguments}");
    let mmapped_bytes = figure(counts, "mmapped_bytes");
    assert_eq!(heap.mmapped_bytes(), mmapped_bytes, "{arguments}");
    assert!(!heap.has_changed(), "{arguments}");
    assert_eq!(heap.uncertain_bytes(), 0, "{arguments}");
    let (live, own) = (heap.live_bytes(), figure(counts, "live"));
    assert!(live >= own && live - own < own / 1000 + 64_000, "{arguments}: {live} of {own}");
    Compared {
        heaps: 1,
        arenas: arenas.len() as u64,
        chunks: mmapped
            + [chunks.live, chunks.cached, chunks.fast, chunks.binned]
                .iter()
                .map(|amount| amount.chunks)
                .sum::<u64>(),
        bytes: own,
        excess: live - own,
    }
}

fn arena_equals(arena: &Arena, info: &ArenaInfo, name: &str) {
    let chunks = &arena.chunks;
    let free = chunks.binned.bytes + chunks.top_bytes;
    assert_eq!(free, info.rest, "{name}");
    assert_eq!(chunks.fast.bytes, info.fast, "{name}");
    assert_eq!(arena.system_bytes, info.system, "{name}");
    assert_eq!(chunks.unknown_bytes, 0, "{name}");
    assert_eq!(arena.unexplained_bytes(), 0, "{name}");
}

/// `mallinfo2`, since 2.33, sums over all arenas.
fn all_equal(heap: &Heap, mallinfo: &str, arguments: &str) {
    if mallinfo.contains("absent") {
        return;
    }
    let chunks = heap.chunks();
    let free = chunks.binned.bytes + chunks.top_bytes + chunks.fast.bytes;
    let expected = [
        ("arena", heap.system_bytes() - heap.mmapped_bytes()),
        ("fordblks", free),
        ("fsmblks", chunks.fast.bytes),
        ("hblks", heap.mmapped.len() as u64),
        ("hblkhd", heap.mmapped_bytes()),
        ("keepcost", heap.arenas[0].chunks.top_bytes),
    ];
    for (key, found) in expected {
        assert_eq!(found, figure(mallinfo, key), "{arguments}: {key}");
    }
}

/// All shapes with 1, 8 and 64 threads, a heap for each seed. Goes on behind a wrong one, so that one run shows all.
fn all_shapes_equal(seeds: std::ops::Range<u64>) {
    let mut wrong = Vec::new();
    for shape in IDLE_SHAPES {
        for threads in [1, 8, 64] {
            let mut sum = Compared::default();
            for seed in seeds.clone() {
                let arguments = format!("{threads} {shape} 48 {seed}");
                let compared = std::panic::catch_unwind(|| {
                    equals_its_own_count(&mut Target::start(&arguments), &arguments)
                });
                match compared {
                    Ok(compared) => sum.add(compared),
                    Err(_) => wrong.push(arguments),
                }
            }
            eprintln!(
                "| {shape} | {threads} | {} | {} | {} | {:.4} |",
                sum.heaps,
                sum.arenas,
                sum.chunks,
                sum.excess as f64 / sum.bytes.max(1) as f64 * 100.0
            );
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn an_idle_heap_equals_the_programs_own_count() {
    all_shapes_equal(0..1);
}

#[test]
#[ignore = "360 heaps take a minute: make test-heap"]
fn idle_heaps_of_20_seeds_equal_their_programs_own_count() {
    eprintln!("| shape | threads | heaps equal | arenas | chunks | live more than own count, % |");
    all_shapes_equal(0..20);
}

#[test]
fn threads_that_exit_and_a_heap_that_cannot_grow_are_counted_too() {
    for options in IDLE_OPTIONS {
        let arguments = format!("4 frag 64 7 {options}");
        equals_its_own_count(&mut Target::start(&arguments), &arguments);
    }
}

#[test]
fn pages_that_something_else_took_by_sbrk_are_not_the_heaps() {
    let target = Target::start("1 frag 16 7 --foreign-sbrk");
    let heap = target.heap().unwrap();
    let [part] = heap.arenas[0].parts.as_slice() else { panic!("{:?}", heap.arenas[0].parts) };
    let lengths = part.foreign.iter().map(|foreign| foreign.end - foreign.start);
    assert_eq!(lengths.sum::<u64>(), 3 * 4096);
    let (_, memory) = target.memory();
    let (mut runs, mut at, end) = (Vec::new(), part.range.start, part.range.end);
    while at < end {
        at = memory.populated(&(at..end), &mut runs).until;
    }
    let in_ram = runs.iter().map(|run| run.range.end - run.range.start);
    assert_eq!(part.resident, in_ram.sum::<u64>() - 3 * 4096);
}

#[test]
fn a_trim_returns_what_was_forecast() {
    for arguments in ["1 frag 64 1", "8 mix 100 2", "4 fast 64 3", "16 full 64 4", "4 tiny 60 5"] {
        let mut target = Target::start(arguments);
        let heap = target.heap().unwrap();
        let answer = target.ask("trim");
        let real = figure(&answer, "anon_before") - figure(&answer, "anon_after");
        let forecast = heap.pages().returnable;
        eprintln!("{arguments}: trim returns {real}, forecast {forecast}");
        let tolerance = (real / 100).max(64 << 10);
        assert!(forecast.abs_diff(real) <= tolerance, "{arguments}: {forecast}, {real}");
    }
}
