//! An idle program: every figure equals the program's own count and malloc's.

use crate::target::{Target, figure};

/// Shapes of the target's heap.
pub(crate) const IDLE_SHAPES: [&str; 6] = ["full", "frag", "tiny", "fast", "mix", "big"];
/// What makes a heap irregular.
pub(crate) const IDLE_OPTIONS: [&str; 4] = [
    "--exit-threads",
    "--cross-free",
    "--foreign-brk",
    "--foreign-sbrk",
];

/// Per arena: what malloc counts as free equals what the walk found.
pub(crate) fn equals_its_own_count(target: &mut Target, arguments: &str) {
    let heap = target
        .heap()
        .unwrap_or_else(|error| panic!("{arguments}: {error}"));
    let infos = target.arenas();
    let (chunks, ready) = (heap.chunks(), target.ready.clone());
    let own = figure(&ready, "live");
    let live = chunks.live.bytes + heap.mmapped_bytes();
    eprintln!(
        "{arguments}: live {live} of {own} ({:+.4} %), cached {:?} lists {:?}, fast {:?}, binned {:?}, unknown {}, resyncs {}, mmapped {} = {:?}",
        (live as f64 / own as f64 - 1.0) * 100.0,
        chunks.cached,
        heap.cached_by_lists,
        chunks.fast,
        chunks.binned,
        chunks.unknown_bytes,
        chunks.resyncs,
        heap.mmapped_bytes(),
        heap.parameters.map(|p| p.mmapped_bytes),
    );
    assert_eq!(infos.len(), heap.arenas.len(), "{arguments}");
    for (index, (arena, info)) in heap.arenas.iter().zip(&infos).enumerate() {
        let name = format!("{arguments}: arena {index}");
        assert_eq!(
            arena.chunks.binned.bytes + arena.chunks.top_bytes,
            info.rest,
            "{name}"
        );
        assert_eq!(arena.chunks.fast.bytes, info.fast, "{name}");
        assert_eq!(arena.system_bytes, info.system, "{name}");
        assert_eq!(arena.chunks.unknown_bytes, 0, "{name}");
    }
    assert_eq!(chunks.cached, heap.cached_by_lists, "{arguments}");
    assert_eq!(
        heap.mmapped.len() as u64,
        figure(&ready, "mmapped"),
        "{arguments}"
    );
    assert_eq!(
        heap.mmapped_bytes(),
        figure(&ready, "mmapped_bytes"),
        "{arguments}"
    );
    assert!(
        live >= own && live - own < own / 1000 + 64_000,
        "{arguments}: {live} of {own}"
    );
}

#[test]
fn an_idle_heap_equals_the_programs_own_count() {
    for shape in IDLE_SHAPES {
        for threads in [1, 8, 64] {
            let arguments = format!("{threads} {shape} 48 {threads}");
            equals_its_own_count(&mut Target::start(&arguments), &arguments);
        }
    }
}

#[test]
fn threads_that_exit_and_a_heap_that_cannot_grow_are_counted_too() {
    for options in IDLE_OPTIONS {
        let arguments = format!("4 frag 64 7 {options}");
        equals_its_own_count(&mut Target::start(&arguments), &arguments);
    }
}

#[test]
fn a_trim_returns_what_was_forecast() {
    for arguments in [
        "1 frag 64 1",
        "8 mix 100 2",
        "4 fast 64 3",
        "16 full 64 4",
        "4 tiny 60 5",
    ] {
        let mut target = Target::start(arguments);
        let heap = target.heap().unwrap();
        let answer = target.ask("trim");
        let real = figure(&answer, "anon_before") - figure(&answer, "anon_after");
        let forecast = heap.pages().returnable;
        eprintln!("{arguments}: trim returns {real}, forecast {forecast}");
        let tolerance = (real / 100).max(64 << 10);
        assert!(
            forecast.abs_diff(real) <= tolerance,
            "{arguments}: {forecast}, {real}"
        );
    }
}
