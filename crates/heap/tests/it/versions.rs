//! The same truth on other versions of glibc, on other ways to link, and on other allocators.
//!
//! `scripts/heap-versions.sh` makes a root for each version and compiles the target in it.

use std::path::{Path, PathBuf};
use std::process::Command;

use heap::HeapError;

use crate::target::{Target, compile, program};
use crate::truth::{IDLE_OPTIONS, IDLE_SHAPES, equals_its_own_count};

const HOW_TO: &str = "make it as root: scripts/heap-versions.sh";

fn script() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/heap-versions.sh")
}

fn root_of(suite: &str) -> PathBuf {
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache")));
    let root = cache.unwrap_or_default().join("memtide/roots").join(suite);
    assert!(
        root.join("target/target-static").exists(),
        "no root of {suite} in {}; {HOW_TO}",
        root.display()
    );
    root
}

fn inside(mode: &str, suite: &str, arguments: &str) -> Command {
    root_of(suite);
    let mut command = Command::new(script());
    command.args([mode, suite]).args(arguments.split_whitespace());
    command
}

/// All shapes and options in a suite. Goes on behind a wrong one, so that one run shows all of them.
fn is_right_in(suite: &str) {
    let shapes = IDLE_SHAPES
        .iter()
        .flat_map(|shape| [1, 8].map(|threads| format!("{threads} {shape} 48 {threads}")));
    let options = IDLE_OPTIONS.iter().map(|option| format!("4 frag 64 7 {option}"));
    let wrong: Vec<String> = shapes
        .chain(options)
        .filter(|arguments| {
            let mut target = Target::of(&mut inside("--start", suite, arguments));
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                equals_its_own_count(&mut target, &format!("{suite} {arguments}"));
            }))
            .is_err()
        })
        .collect();
    assert!(wrong.is_empty(), "{suite}: {wrong:#?}");
}

#[test]
#[ignore = "needs root and a Debian root: scripts/heap-versions.sh"]
fn an_idle_heap_is_right_on_glibc_2_31() {
    is_right_in("bullseye");
}

#[test]
#[ignore = "needs root and a Debian root: scripts/heap-versions.sh"]
fn an_idle_heap_is_right_on_glibc_2_36() {
    is_right_in("bookworm");
}

#[test]
#[ignore = "needs root and a Debian root: scripts/heap-versions.sh"]
fn an_idle_heap_is_right_on_glibc_2_41() {
    is_right_in("trixie");
}

#[test]
#[ignore = "needs root and a Debian root: scripts/heap-versions.sh"]
fn an_idle_heap_is_right_on_glibc_2_43() {
    is_right_in("sid");
}

#[test]
#[ignore = "needs root and Debian roots: scripts/heap-versions.sh"]
fn a_static_program_is_right_on_all_versions() {
    for suite in ["bullseye", "bookworm", "trixie", "sid"] {
        // A static program needs no library of its root.
        let program = root_of(suite).join("target/target-static");
        for arguments in ["1 frag 48 1", "8 mix 48 8", "4 tiny 48 4"] {
            let mut target = Target::of(Command::new(&program).args(arguments.split_whitespace()));
            equals_its_own_count(&mut target, &format!("{suite} static {arguments}"));
        }
    }
}

#[test]
#[ignore = "needs root and a Debian root: scripts/heap-versions.sh"]
fn a_program_in_its_own_pid_namespace_is_right() {
    for suite in ["bookworm", "sid"] {
        let mut target = Target::contained(&mut inside("--contain", suite, "4 frag 48 4"));
        equals_its_own_count(&mut target, &format!("{suite} contained"));
    }
}

#[test]
fn a_static_program_is_right() {
    let program = compile("cc", &["-static"], "heap-target-static");
    for arguments in ["1 frag 48 1", "8 mix 48 8", "4 tiny 48 4"] {
        let mut target = Target::of(Command::new(&program).args(arguments.split_whitespace()));
        equals_its_own_count(&mut target, &format!("static {arguments}"));
    }
}

#[test]
#[ignore = "needs musl-gcc: scripts/setup.sh heap"]
fn a_musl_program_has_no_arena() {
    for (flags, name) in
        [(&[][..], "heap-target-musl"), (&["-static"][..], "heap-target-musl-static")]
    {
        let program = compile("musl-gcc", flags, name);
        let target = Target::of(Command::new(program).args(["2", "frag", "16", "1"]));
        assert!(matches!(target.heap(), Err(HeapError::NoArena | HeapError::Unused)));
    }
}

#[test]
#[ignore = "needs libjemalloc2: scripts/setup.sh heap"]
fn memory_of_a_preloaded_jemalloc_is_not_claimed() {
    const LIBRARY: &str = "/usr/lib/x86_64-linux-gnu/libjemalloc.so.2";
    assert!(Path::new(LIBRARY).exists(), "no {LIBRARY}; scripts/setup.sh heap");
    for arguments in ["2 frag 64 1", "2 big 64 1"] {
        let mut command = Command::new(program());
        command.args(arguments.split_whitespace()).env("LD_PRELOAD", LIBRARY);
        let target = Target::of(&mut command);
        match target.heap() {
            Err(error) => assert!(matches!(error, HeapError::NoArena | HeapError::Unused)),
            Ok(heap) => {
                let claimed: u64 = heap.arenas.iter().map(|arena| arena.system_bytes).sum();
                let claimed = claimed + heap.mmapped_bytes();
                assert!(claimed < 1 << 20, "{arguments}: claims {claimed} bytes");
            }
        }
    }
}
