//! What a recorder says that it was allowed is what the kernel says.
//!
//! A test binary of its own, as all of it holds for the whole process.

// What is not in a test function counts as other code.
#![allow(clippy::unwrap_used)]

use std::fs::read_to_string;

fn status(field: &str) -> u64 {
    let status = read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with(field));
    let number = line.unwrap().split_whitespace().nth(1);
    number.unwrap().parse().unwrap()
}

#[test]
fn what_was_claimed_holds_and_what_was_refused_is_told_with_its_consequence() {
    let mut lines = sampler::privilege::claim();
    lines.insert(0, sampler::memory_lock::lock_memory());
    let [memory, killer, nice] = &lines[..] else {
        panic!("{lines:?}");
    };
    let is_locked = memory.starts_with("memory is locked");
    assert_eq!(status("VmLck:") > 0, is_locked, "{memory}");
    assert!(is_locked || memory.contains("samples may come late"), "{memory}");
    // All that is mapped is locked, and of that only what was touched is there.
    assert!(status("VmRSS:") < 64 << 10);
    let adj = read_to_string("/proc/self/oom_score_adj").unwrap();
    assert!(killer.contains(adj.trim()), "{killer}: {adj}");
    let stat = read_to_string("/proc/thread-self/stat").unwrap();
    let after_name = stat.rsplit(')').next().unwrap();
    // Threads have one each, which those that begin later inherit. Field 19 of all, the 17th behind the name.
    let is = after_name.split_whitespace().nth(16).unwrap();
    assert!(nice.contains(is), "{nice}: {is}");
    // Freed memory below memory in use stays locked, until memory is locked again.
    let mut blocks: Vec<Vec<u8>> = (0..128).map(|_| vec![1; 64 << 10]).collect();
    let last = blocks.pop();
    drop(blocks);
    let before_kib = status("VmRSS:");
    let again = sampler::memory_lock::lock_memory();
    assert_eq!(&again, memory);
    assert_eq!(status("VmLck:") > 0, is_locked);
    assert!(status("VmRSS:") + (7 << 10) < before_kib, "{before_kib} KiB before");
    assert_eq!(last.map(|block| block.iter().map(|byte| u64::from(*byte)).sum()), Some(64 << 10));
    // A thread that begins later is locked, too, and an allocation still works.
    let sum = std::thread::spawn(|| vec![1_u64; 1 << 18].iter().sum::<u64>());
    assert_eq!(sum.join().unwrap(), 1 << 18);
}
