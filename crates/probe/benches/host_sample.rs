//! What a host sample costs above reading the files: `cargo bench -p memtide-probe`.
//!
//! The goal is a ratio, `HostProbe::sample` ÷ the bare `pread`s of the same files to their end, of CPU times measured in
//! turns in one run: on a shared machine two runs cannot be compared. Benchmark libraries compare runs and measure wall
//! time, so this is a program of its own. A recorder sleeps between samples, and the CPU's caches go to others: both parts
//! then cost several times as much. `evicted` brings that about at once and repeatably, by walking through 16 MiB.

#![allow(clippy::print_stdout)]

mod bare_reads;

use std::hint::black_box;
use std::time::Duration;

use probe::{HostProbe, Root};
use rustix::time::{ClockId, clock_gettime};
use timeline::Sample;

use bare_reads::BareReads;

/// A sample must cost less than this times the bare reads.
const GOAL: f64 = 1.3;

fn main() {
    // Slabinfo is not a part of the usual sample.
    let mut probe = HostProbe::open(&Root::default()).slabinfo_every(u32::MAX);
    let mut sample = Sample::default();
    let mut take = || {
        sample.clear();
        probe.sample(&mut sample);
        black_box(&sample);
    };
    take();
    let mut bare = BareReads::open(&HostProbe::open(&Root::default()));
    println!("{} files, {} bytes", bare.files(), bare.read());
    println!("              reads   sample   ratio   (CPU µs, medians; goal {GOAL})");
    let mut others = vec![0_u8; 16 << 20];
    let mut evict = || others.iter_mut().step_by(64).for_each(|byte| *byte ^= 1);
    let pause = |millis| move || std::thread::sleep(Duration::from_millis(millis));
    let cases: [(&str, usize, &mut dyn FnMut()); 4] = [
        ("hot", 4_000, &mut || {}),
        ("evicted", 500, &mut evict),
        ("every 50 ms", 80, &mut pause(50)),
        ("every 200 ms", 25, &mut pause(200)),
    ];
    for (name, rounds, before) in cases {
        let (mut reads, mut samples) = (Vec::new(), Vec::new());
        for _ in 0..rounds {
            before();
            reads.push(cpu_micros(|| {
                black_box(bare.read());
            }));
            before();
            samples.push(cpu_micros(&mut take));
        }
        let [reads, samples] =
            [reads, samples].map(|micros| stats::median(&micros).unwrap_or(f64::NAN));
        let ratio = samples / reads;
        println!("{name:<12} {reads:>6.1} {samples:>8.1} {ratio:>7.2}");
    }
}

/// CPU time of this process, user and system, that `work` takes.
fn cpu_micros(work: impl FnOnce()) -> f64 {
    let now = || {
        let time = Duration::try_from(clock_gettime(ClockId::ProcessCPUTime));
        time.expect("CPU time is not negative")
    };
    let before = now();
    work();
    (now() - before).as_secs_f64() * 1e6
}
