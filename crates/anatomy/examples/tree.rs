//! Prints the anatomy of a process.
#![allow(clippy::print_stdout, clippy::unwrap_used)]
use anatomy::{MallocRanges, Part, ProcessAnatomy, ReadOptions};
fn show(part: &Part, depth: usize) {
    if depth < 4 {
        println!(
            "{:indent$}{:?} {} rss {} pss {} uss {} swap {} size {} huge {} n={} {:?} [{}]",
            "",
            part.kind,
            part.label,
            part.sizes.rss,
            part.sizes.pss,
            part.sizes.uss,
            part.sizes.swap,
            part.sizes.virtual_size,
            part.sizes.huge,
            part.mappings,
            part.certainty,
            part.recognised_by,
            indent = depth * 2
        );
        for part in part.parts.iter().take(12) {
            show(part, depth + 1);
        }
    }
}
fn main() {
    let args: Vec<String> = std::env::args().collect();
    let pid = args[1].parse().unwrap();
    let empty = MallocRanges::default();
    let malloc = args.get(2).map(|_| &empty);
    let start = std::time::Instant::now();
    let read = ProcessAnatomy::read(
        &probe::Root::default(),
        pid,
        malloc,
        &ReadOptions::usual(units::PageSize::USUAL),
    )
    .unwrap();
    println!("{:?}", start.elapsed());
    println!("{:?}", read.identity);
    println!(
        "{:?} {:?} threads {:?} mappings {} problems {:?} unread {:?}",
        read.limits,
        read.memory_variables,
        read.threads,
        read.mappings,
        read.problems,
        read.allocators.unread
    );
    for one in &read.allocators.allocators {
        println!("  {one:?} {}", read.anatomy.resident_of(one.kind));
    }
    println!("{:?}", read.sizes);
    show(&read.anatomy.root, 0);
    for row in read.files.rows.iter().take(5) {
        println!(
            "  {} {} {:?} {:?} {:?}",
            String::from_utf8_lossy(&row.name),
            row.sizes.rss,
            row.length,
            row.cached,
            row.users
        );
    }
    println!("{:?} absent {:?}", read.files.search, read.anatomy.absent);
}
