//! Any bytes as a kernel log: behind a report's first line, so that most of them are read as one.
#![no_main]

use libfuzzer_sys::fuzz_target;

const FIRST: [&str; 4] = [
    "a invoked oom-killer: gfp_mask=0x140dca(GFP_HIGHUSER_MOVABLE), order=0, oom_score_adj=0\n",
    "[ 1.5] a: page allocation failure: order:4, mode:0x40cc0(GFP_KERNEL), nodemask=(null)\n",
    "memory: usage 102400kB, limit 102400kB, failcnt 6402\n",
    "",
];

fuzz_target!(|data: &[u8]| {
    let Some((first, rest)) = data.split_first() else {
        return;
    };
    let mut log = FIRST[usize::from(*first) % FIRST.len()].as_bytes().to_vec();
    log.extend_from_slice(rest);
    let text = String::from_utf8_lossy(&log);
    let lines = text.lines().count();
    if let Some((count, report)) = probe::kernel_report::read(text.lines()) {
        assert!((1..=lines).contains(&count) && report.lines == count);
        probe::kernel_report::fill(&report, &mut timeline::Sample::default());
    }
    if let Ok(opened) = import::open_bytes("fuzz.log", &log) {
        let _ = diagnose::diagnose(&opened.timeline, &opened.facts);
    }
});
