//! What must hold for a recorder that goes on while the host has no memory left: a sample allocates nothing.
//!
//! A test binary of its own, as it counts with the allocator of the whole process.

use std::path::Path;

use allocation_counter::measure;
use probe::{HostProbe, Root};
use timeline::{Entity, Sample};

/// Allocations of so many samples.
fn allocations(samples: usize, probe: &mut HostProbe, sample: &mut Sample) -> u64 {
    let take = || {
        for _ in 0..samples {
            sample.clear();
            probe.sample(sample);
        }
    };
    measure(take).count_total
}

#[test]
fn this_hosts_samples_allocate_nothing_after_the_first() {
    // Slabinfo only in the first sample: which caches are the largest changes, and with it the names to be held.
    let mut probe = HostProbe::open(&Root::default()).slabinfo_every(u32::MAX);
    let mut sample = Sample::default();
    let first = allocations(1, &mut probe, &mut sample);
    assert!(first > 0, "the counter counts");
    // A disk that others add meanwhile needs room once, so the quietest counts.
    let mut counts = (0..5).map(|_| allocations(20, &mut probe, &mut sample));
    assert!(counts.any(|count| count == 0));
    assert!(!sample.table(Entity::Zone).rows().is_empty());
    assert!(sample.host.iter().count() > 100);
}

#[test]
fn samples_of_all_files_allocate_nothing_after_the_first() {
    let directory = tempfile::tempdir().unwrap();
    let kernel = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/kernel/6.1");
    for (saved, path) in [
        ("vmstat", "proc/vmstat"),
        ("zoneinfo", "proc/zoneinfo"),
        ("buddyinfo", "proc/buddyinfo"),
        ("stat", "proc/stat"),
        ("diskstats", "proc/diskstats"),
        ("swaps", "proc/swaps"),
        ("slabinfo", "proc/slabinfo"),
        ("node0_meminfo", "sys/devices/system/node/node0/meminfo"),
        ("node1_meminfo", "sys/devices/system/node/node1/meminfo"),
        ("node0_numastat", "sys/devices/system/node/node0/numastat"),
        ("node1_numastat", "sys/devices/system/node/node1/numastat"),
    ] {
        let path = directory.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::copy(kernel.join(saved), path).unwrap();
    }
    let mut probe = HostProbe::open(&Root::at(directory.path())).slabinfo_every(1);
    let mut sample = Sample::default();
    allocations(1, &mut probe, &mut sample);
    assert_eq!(allocations(20, &mut probe, &mut sample), 0);
    assert_eq!(probe.problems(), []);
    for (entity, rows) in [
        (Entity::Zone, 3),
        (Entity::Node, 2),
        (Entity::Disk, 1),
        (Entity::SwapArea, 1),
        (Entity::Slab, 64),
    ] {
        let name = entity.name();
        assert_eq!(sample.table(entity).rows().len(), rows, "{name}");
    }
}
