//! Any bytes below the header of a table: rows of any form, times in any order, figures of any size.
#![no_main]

use libfuzzer_sys::fuzz_target;

const HEADERS: [&str; 4] = [
    "$ series (MiB, every 10 s)\nMemFree,pswpin,pgscand/s,some_avg10\n",
    "uptime_min Slab SUnreclaim rss_MB\n",
    "| time | MemAvailable (kB) | host |\n",
    "date;time;MemFree;full_total\n",
];

fuzz_target!(|data: &[u8]| {
    for header in HEADERS {
        let text = [header.as_bytes(), data].concat();
        if let Ok(opened) = import::open_bytes("fuzz", &text) {
            // Looks lie in order on the clock, whatever the rows say.
            assert!(opened.timeline.times().is_sorted());
        }
    }
});
