//! Any bytes as the text of any of the host's kernel files: the parsers neither panic nor hang.
#![no_main]

use libfuzzer_sys::fuzz_target;
use timeline::{Facts, Sample};

const PATHS: &[&str] = &[
    "/proc/meminfo",
    "/proc/vmstat",
    "/proc/zoneinfo",
    "/proc/buddyinfo",
    "/proc/pressure/memory",
    "/proc/stat",
    "/proc/diskstats",
    "/proc/swaps",
    "/proc/slabinfo",
    "/proc/net/sockstat",
    "/proc/sys/fs/dentry-state",
    "/proc/sys/fs/inode-nr",
    "/proc/mounts",
    "/proc/version",
    "/sys/devices/system/node/node0/meminfo",
    "/sys/devices/system/node/node1/numastat",
    "/sys/devices/system/node/node1/distance",
    "/sys/block/zram0/mm_stat",
    "/sys/block/zram0/io_stat",
    "/sys/kernel/mm/transparent_hugepage/enabled",
];

fuzz_target!(|data: &[u8]| {
    let Some((first, text)) = data.split_first() else {
        return;
    };
    let path = PATHS[usize::from(*first) % PATHS.len()];
    let mut parsers = probe::saved::Parsers::default();
    let (mut sample, mut facts) = (Sample::default(), Facts::default());
    // Twice: the second time the parser remembers the layout.
    for _ in 0..2 {
        sample.clear();
        let _ = parsers.read(path, text, &mut sample, &mut facts);
    }
});
