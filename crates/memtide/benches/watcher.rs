//! What a host costs that is watched for long: memory over eight hours of samples, and the CPU time to judge its window anew.
//!
//! `cargo bench -p memtide --bench watcher [-- PROCESSES…]`. Samples of this host follow each other without a pause, so eight
//! hours at 1 Hz take some minutes; a window is 600 samples. Starts so many sleeping children of its own, and ends them.
#![allow(clippy::unwrap_used, clippy::print_stdout, missing_docs)]

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use probe::{ProcessDetail, Root};
use rustix::time::{ClockId, clock_gettime};
use sampler::{RECENT, WatchOptions, Watcher};
use units::Span;

/// From one sample to the next, if reading takes no longer.
const EVERY: Span = Span::from_millis(1);
/// Ten minutes at 1 Hz.
const WINDOW: u64 = 600;
/// Eight hours at 1 Hz.
const DAY: u64 = 8 * 3_600;
/// With more than this many processes only four windows are watched.
const WHOLE_UP_TO: usize = 100;

fn main() {
    let counts: Vec<usize> = std::env::args().skip(1).filter_map(|n| n.parse().ok()).collect();
    let counts = if counts.is_empty() { vec![0, 500, 2_000] } else { counts };
    println!("processes   samples   RSS MiB by the window        judged again, ms of CPU");
    for count in counts {
        let _children = Sleepers::start(count);
        watch(count);
    }
}

fn watch(more: usize) {
    let samples = if more > WHOLE_UP_TO { 4 * WINDOW } else { DAY };
    let mut watcher = Watcher::open(
        &Root::default(),
        WatchOptions {
            duration: Span::from_hours(24),
            every: EVERY,
            last: ProcessDetail::COMPLETE,
            recent: RECENT,
            window: Some(EVERY.times(WINDOW as f64)),
            pss_every: None,
        },
    );
    let (mut rss, mut judged) = (Vec::new(), Vec::new());
    for sample in 1..=samples {
        while !watcher.wait(Span::from_secs(1)) {}
        watcher.take();
        if sample % (samples / 8).max(WINDOW) == 0 {
            let before = cpu();
            let report = answers::check_now(watcher.source(), RECENT, None);
            judged.push((cpu() - before).as_secs_f64() * 1e3);
            drop(report);
            rss.push(own_rss_mib());
        }
    }
    let list = |numbers: &[f64]| {
        let words: Vec<String> = numbers.iter().map(|number| format!("{number:.1}")).collect();
        words.join(" ")
    };
    let processes = watcher.source().timeline.entities(timeline::Entity::Process).count();
    println!("{processes:>9} {samples:>9}   {:<28} {}", list(&rss), list(&judged));
}

fn cpu() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.try_into().unwrap(), time.tv_nsec.try_into().unwrap())
}

fn own_rss_mib() -> f64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: f64 = statm.split(' ').nth(1).unwrap().parse().unwrap();
    pages * rustix::param::page_size() as f64 / (1 << 20) as f64
}

/// Children that sleep until they are dropped.
struct Sleepers(Vec<Child>);

impl Sleepers {
    fn start(count: usize) -> Self {
        let sleeper = || Command::new("sleep").arg("100000").stdin(Stdio::null()).spawn().unwrap();
        Self((0..count).map(|_| sleeper()).collect())
    }
}

impl Drop for Sleepers {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
