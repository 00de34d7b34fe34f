//! What a sample costs from the kernel's files to the head of a recording: `cargo bench -p memtide-sampler`.
//!
//! CPU time of the whole process, the disk thread included, for each sample: in a hot loop, and with a pause before each as
//! a recorder has, after which the CPU's caches have gone to others. Numbers of two runs on a shared machine cannot be
//! compared; the ratio of the lines of one run can. For the tools beside it, see `bench/` at the top of the repository.

#![allow(clippy::print_stdout)]

mod measured;

use std::time::Duration;

use probe::TaskSource;
use sampler::Settings;
use units::Span;

use measured::{MeasuredRecorder, cpu, kib};

fn main() {
    let base =
        Settings { groups: None, shares: None, slabs: Span::from_hours(24), ..Settings::default() };
    let every = Some(base.every);
    let with = |processes, source, groups| Settings { processes, source, groups, ..base };
    println!("                         hot   paced   (CPU µs a sample, medians)   processes   PSS");
    for (name, settings) in [
        ("host", with(None, None, None)),
        ("host, groups", with(None, None, every)),
        ("host, processes (/proc)", with(every, Some(TaskSource::Proc), None)),
        ("host, processes (best)", with(every, None, None)),
    ] {
        measure(name, settings);
    }
}

fn measure(name: &str, settings: Settings) {
    let mut measured = MeasuredRecorder::start(settings);
    let recorder = &mut measured.recorder;
    (0..3).for_each(|_| recorder.take());
    let hot = median((0..60).map(|_| cpu_micros(|| recorder.take())));
    let paced = median((0..30).map(|_| {
        // What the disk thread does after a sample belongs to it.
        cpu_micros(|| {
            recorder.take();
            std::thread::sleep(Duration::from_millis(150));
        })
    }));
    let processes = measured.health.figures().processes;
    println!(
        "{name:<24} {hot:>6.0} {paced:>7.0} {processes:>40} {:>6} KiB",
        kib("/proc/self/smaps_rollup", "Pss:")
    );
    measured.stop();
}

/// CPU time of this process, user and system, that `work` takes.
fn cpu_micros(work: impl FnOnce()) -> f64 {
    let before = cpu();
    work();
    (cpu() - before).as_secs_f64() * 1e6
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    stats::median(&values.collect::<Vec<f64>>()).unwrap_or(f64::NAN)
}
