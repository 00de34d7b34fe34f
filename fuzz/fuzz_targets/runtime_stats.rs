//! Any bytes as a runtime's own report, bare and behind the words by which each kind is recognised.
#![no_main]

use anatomy::runtime_stats::RuntimeStats;
use libfuzzer_sys::fuzz_target;

const STARTS: [&str; 5] = [
    "",
    "{\"stat\":{\"heap_live_slots\":9,\"heap_eden_pages\":3",
    "20702:\n\nNative Memory Tracking:\n\nTotal: reserved=9KB +1KB, committed=9KB\n-  Java Heap (",
    "___ Begin jemalloc statistics ___\nPage size: 4096\nAllocated: 1, active: 2, metadata: 3, resident: 4\nMerged arenas stats:\nbins: size curregs curslabs regs\n ",
    "{\"jemalloc\":{\"stats\":{\"allocated\":1,\"active\":2,\"metadata\":3,\"resident\":4},\"arenas\":{",
];

fuzz_target!(|data: &[u8]| {
    for start in STARTS {
        match RuntimeStats::parse(&[start.as_bytes(), data].concat()) {
            Ok(RuntimeStats::Ruby(stats)) => {
                let _ = (stats.slot_occupancy(), stats.free(), stats.freed_places());
            }
            Ok(RuntimeStats::Jvm(stats)) => {
                let _ = (stats.by_committed(), stats.fastest_growing());
            }
            Ok(RuntimeStats::Jemalloc(stats)) => {
                let _ = (stats.returnable(), stats.by_unused());
            }
            Err(error) => assert!(!error.help().is_empty()),
        }
    }
});
