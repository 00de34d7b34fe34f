//! Any bytes as the text of any file of a process or control group, several of them in one sample.
#![no_main]

use libfuzzer_sys::fuzz_target;
use timeline::{Facts, Sample};

const PATHS: &[&str] = &[
    "/proc/4242/stat",
    "/proc/4242/statm",
    "/proc/4242/status",
    "/proc/4242/io",
    "/proc/4242/smaps_rollup",
    "/proc/4242/oom_score_adj",
    "/proc/4242/cgroup",
    "/sys/fs/cgroup/app/memory.current",
    "/sys/fs/cgroup/app/memory.max",
    "/sys/fs/cgroup/app/memory.events",
    "/sys/fs/cgroup/app/memory.stat",
    "/sys/fs/cgroup/app/memory.pressure",
    "/sys/fs/cgroup/memory/app/memory.stat",
    "/sys/fs/cgroup/memory/app/memory.limit_in_bytes",
    "/sys/fs/cgroup/memory/app/memory.oom_control",
];

fuzz_target!(|data: &[u8]| {
    let mut parsers = probe::saved::Parsers::default();
    let (mut sample, mut facts) = (Sample::default(), Facts::default());
    for part in data.split(|b| *b == 0xff) {
        let Some((first, text)) = part.split_first() else {
            continue;
        };
        let path = PATHS[usize::from(*first) % PATHS.len()];
        let _ = parsers.read(path, text, &mut sample, &mut facts);
    }
});
