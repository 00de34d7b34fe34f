//! A guard of speed: how many times as much CPU time an answer takes as reading its source takes, and a sample as bare
//! reads of its files, against the ratios that decisions 0005 and 0009 state. Fails at 1.4 times of one.
//!
//! Ratios of CPU time within one process depend little on the machine and its load. They are those of the build that runs
//! the tests, without optimisation: `cargo test -p memtide-answers --test speed -- --nocapture` prints them.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

#[path = "../../probe/benches/bare_reads/mod.rs"]
mod bare_reads;
#[path = "../../store/benches/week/mod.rs"]
mod week;

use std::hint::black_box;
use std::path::Path;
use std::time::Duration;

use answers::PageSource;
use diagnose::headroom::Question;
use probe::{HostProbe, Root};
use report::Screen;
use rustix::time::{ClockId, clock_gettime};
use timeline::{Sample, TimeRange};

use bare_reads::BareReads;

/// A ratio may grow by this much before the change that makes it so is refused.
const TOLERANCE: f64 = 1.4;
/// The least of so many runs counts: others use the machine meanwhile.
const RUNS: usize = 3;
/// Samples of a run.
const SAMPLES: usize = 100;

#[test]
fn no_answer_takes_more_of_the_time_of_reading_than_it_did() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("hour");
    week::made_of_hours(&path, 1..2);
    let all = TimeRange::default();
    let events = least(|| {
        let source = answers::open_for_events(&path, all, &mut |_| ()).unwrap();
        black_box(answers::events(&source, &[], None));
    });
    let check = least(|| {
        black_box(answers::check(&opened(&path)));
    });
    let source = opened(&path);
    let of = PageSource { source: &source, path: &path, range: all, group: None, at: None };
    let page = least(|| {
        let (page, _) = answers::page(of, &Question::default());
        black_box(report::html::report(&page, &Screen::default()));
    });
    let ratios = [
        ("check ÷ events", check / events, stated(1.6, 1.5)),
        ("page ÷ check", page / check, stated(1.3, 1.7)),
        ("a sample ÷ bare reads", sample_ratio(), stated(4.8, 1.3)),
    ];
    for (name, ratio, stated) in ratios {
        println!("{name}: {ratio:.2}, {stated} are stated");
    }
    let slow = ratios.into_iter().filter(|(_, ratio, stated)| *ratio > stated * TOLERANCE);
    let slow: Vec<String> = slow.map(|(name, ratio, _)| format!("{name}: {ratio:.2}")).collect();
    assert!(slow.is_empty(), "slower than decisions 0005 and 0009 state: {}", slow.join(", "));
}

/// A ratio of the build with debug assertions, or of the optimised one.
fn stated(debug: f64, optimised: f64) -> f64 {
    if cfg!(debug_assertions) { debug } else { optimised }
}

fn opened(path: &Path) -> timeline::Source {
    answers::open_screened(path, TimeRange::default(), &mut |_| ()).unwrap()
}

/// A sample of the host's files against bare reads of them to their end.
fn sample_ratio() -> f64 {
    let mut probe = HostProbe::open(&Root::default()).slabinfo_every(u32::MAX);
    let mut bare = BareReads::open(&probe);
    let mut sample = Sample::default();
    let reads = least(|| {
        (0..SAMPLES).for_each(|_| {
            black_box(bare.read());
        })
    });
    let samples = least(|| {
        for _ in 0..SAMPLES {
            sample.clear();
            probe.sample(&mut sample);
            black_box(&sample);
        }
    });
    samples / reads
}

/// The least CPU time of this process, user and system, that some runs take.
fn least(mut work: impl FnMut()) -> f64 {
    let now = || Duration::try_from(clock_gettime(ClockId::ProcessCPUTime)).unwrap();
    let runs = (0..RUNS).map(|_| {
        let before = now();
        work();
        (now() - before).as_secs_f64()
    });
    runs.fold(f64::INFINITY, f64::min)
}
