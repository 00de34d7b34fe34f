//! A walk over all processes allocates nothing once every buffer has its size.
//!
//! A test binary of its own, as it counts with the allocator of the whole process.

#![allow(clippy::print_stderr)]

use allocation_counter::measure;
use probe::{Root, TaskSource, Tasks};

#[test]
fn walks_allocate_nothing_after_the_first() {
    for want in [TaskSource::Bpf, TaskSource::Proc] {
        let mut tasks = Tasks::open(&Root::default(), Some(want));
        if tasks.source() != want {
            eprintln!("skipped: {}", tasks.why_not_bpf().unwrap_or_default());
            continue;
        }
        let mut processes = 0;
        let mut walk = || {
            tasks.each(&mut |task| processes += usize::from(!task.name.is_empty()));
        };
        walk();
        // Processes that others start meanwhile need room once, so the quietest counts.
        let mut counts = (0..50).map(|_| measure(|| (0..10).for_each(|_| walk())).count_total);
        assert!(counts.any(|count| count == 0), "{want:?}");
        assert!(processes > 51, "{want:?}");
    }
}
