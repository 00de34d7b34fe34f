//! How fast a long paste is read: `cargo bench -p memtide-import --bench mixed_paste`.
//!
//! 16 MiB of lines of logs, of JSON, of code, of prose and of tables of other tools, with the pastes of the corpus in
//! between, a sixteenth of the text. The floor is one vectorised pass for line ends over the same bytes, in the same run.
//! Lines are tested ahead of the reader by another thread, so elapsed time is shown beside that of all CPUs.

#![allow(clippy::print_stdout, clippy::unwrap_used)] // a benchmark prints, and fails where it cannot go on

use std::fmt::Write;
use std::hint::black_box;
use std::path::Path;
use std::time::Instant;

const BYTES: usize = 16 << 20;
const ROUNDS: usize = 3;
const PASSES: u32 = 100;

fn main() {
    let text = mixed();
    let noise = noise(BYTES);
    println!("MB/s, best of {ROUNDS}: of elapsed time, and of CPU time");
    for (name, text) in [("mixed", &text), ("nothing to read", &noise)] {
        // One pass takes a millisecond.
        let (passes, _) = best(text, || {
            for _ in 0..PASSES {
                black_box(memchr::memchr_iter(b'\n', black_box(text.as_bytes())).count());
            }
        });
        let floor = passes * f64::from(PASSES);
        let mut blocks = 0;
        let (elapsed, cpu) = best(text, || {
            let read = import::open_bytes("paste", text.as_bytes());
            blocks = read.map_or(0, |source| source.origin.inputs.len());
        });
        println!(
            "{name:<16} one memchr {floor:>7.0}   memtide {elapsed:>7.1} {cpu:>7.1}   {blocks} blocks"
        );
    }
}

/// The CPU time of all threads that the program has had, in ticks of 10 ms.
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let (_, fields) = stat.rsplit_once(')').unwrap();
    let ticks = fields.split_whitespace().skip(11).take(2);
    ticks.map(|ticks| ticks.parse::<f64>().unwrap()).sum::<f64>() / 100.0
}

/// The speeds by elapsed time and by CPU time, each of the best round.
fn best(text: &str, mut run: impl FnMut()) -> (f64, f64) {
    #[allow(clippy::cast_precision_loss)] // a speed
    let megabytes = text.len() as f64 / 1e6;
    let (mut elapsed, mut cpu) = (f64::INFINITY, f64::INFINITY);
    for _ in 0..ROUNDS {
        let (begun, begun_cpu) = (Instant::now(), cpu_seconds());
        run();
        elapsed = elapsed.min(begun.elapsed().as_secs_f64());
        cpu = cpu.min(cpu_seconds() - begun_cpu);
    }
    (megabytes / elapsed, megabytes / cpu)
}

/// Pastes of the corpus, each between fifteen times its length of other lines.
fn mixed() -> String {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus/pasted");
    let mut paths: Vec<_> =
        std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let pastes: Vec<String> = paths
        .iter()
        .filter_map(|path| std::fs::read_to_string(path.join("paste.txt")).ok())
        .collect();
    let mut text = String::new();
    for paste in pastes.iter().cycle() {
        if text.len() + paste.len() * 16 + 2 > BYTES {
            break;
        }
        text += paste;
        text += "\n\n";
        text += &noise(paste.len() * 15);
    }
    text
}

/// Lines that are not of memory.
fn noise(bytes: usize) -> String {
    let mut text = String::new();
    let mut i = 0_usize;
    while text.len() + 200 < bytes {
        i = i.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let n = i >> 40;
        let (minute, second) = (n / 60 % 60, n % 60);
        let _ = match n % 8 {
            0 | 1 => writeln!(
                text,
                "Nov 21 23:{minute:02}:{second:02} web sshd[{n}]: Accepted publickey for deploy \
                 from 10.0.0.7 port {} ssh2",
                n % 50_000
            ),
            2 => writeln!(
                text,
                "{{\"time\":\"2026-11-21T23:{minute:02}:{second:02}Z\",\"level\":\"info\",\"msg\":\"request {n} served\",\"ms\":{}}}",
                n % 900
            ),
            3 => writeln!(
                text,
                "    let value = table.get(index + {n}).map(|row| row.first * scale); // see note {second}"
            ),
            4 => writeln!(
                text,
                "The service was restarted {second} times, and each time somebody asked whether it \
                 has enough memory."
            ),
            5 => writeln!(
                text,
                "/dev/sd{}        {n} {}  {}  {second}% /srv/data/{minute}",
                ['a', 'd', 'f', 'r'][n % 4],
                n / 2,
                n / 3
            ),
            6 => writeln!(
                text,
                "[{n}.{second:06}] usb 1-{}: new high-speed USB device number {second} using \
                 xhci_hcd",
                n % 9
            ),
            _ => writeln!(text, "{second} {minute} {} {} {n} 0 0 {}", n % 7, n % 11, n % 13),
        };
    }
    text
}
