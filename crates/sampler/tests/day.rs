//! A day at one sample a second, taken as fast as it goes: the recorder's memory does not grow.
//!
//! A test binary of its own, as the memory of the whole process is measured.

// What is not in a test function counts as other code.
#![allow(clippy::unwrap_used)]

#[path = "it/fake.rs"]
#[allow(dead_code)]
mod fake;

use fake::{Fake, Process, always};
use units::Span;

/// Resident memory that belongs to no file, in KiB: pages of the test binary come and go.
fn private_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("RssAnon:"));
    let number = line.unwrap().split_whitespace().nth(1);
    number.unwrap().parse().unwrap()
}

#[test]
fn a_day_of_churn_takes_no_more_memory_than_its_first_quarter_of_an_hour() {
    // Unoptimised, a sample takes ten times as long; a twentieth of the day shows growth as well.
    let (samples, per_hour) = if cfg!(debug_assertions) { (4_320, 180) } else { (86_400, 3_600) };
    let fake = Fake::host();
    let process =
        |pid: u32| Process::new(pid, "worker", &format!("/system.slice/unit{}.service", pid % 20));
    (1..100).for_each(|pid| fake.process(&process(pid)));
    let mut settings = always();
    settings.processes = Some(Span::from_secs(10));
    settings.groups = Some(Span::from_secs(60));
    let (mut recorder, health, _outbox) = fake.recorder(settings);
    let mut after_start = 0;
    let mut most = 0;
    for sample in 0..samples {
        // Each minute a process ends and another begins, and the host's figures change with every sample.
        if sample % (per_hour / 60) == 0 {
            let minute = u32::try_from(sample / (per_hour / 60)).unwrap();
            if minute > 0 {
                fake.end(1_000 + minute - 1);
            }
            fake.process(&process(1_000 + minute));
        }
        fake.meminfo(1_000_000 + (sample * 7_919) % 10_007);
        recorder.take();
        if sample == per_hour / 4 {
            after_start = private_kib();
        }
        if sample > per_hour / 4 && sample % 97 == 0 {
            most = most.max(private_kib());
        }
    }
    recorder.stop().unwrap();
    let lost = health.figures().lost;
    println!(
        "RssAnon {after_start} KiB after a quarter of an hour, {most} KiB at most until the end; \
         {lost} samples lost"
    );
    // The writer's two buffers fill where the disk is slower than samples that nobody paces, and then samples are lost.
    const BUFFERS: u64 = 2 * 1536;
    assert!(most < after_start + BUFFERS + 512, "{after_start} KiB grew to {most} KiB");
}
