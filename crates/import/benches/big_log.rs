//! How fast a long log is searched for kernel reports: `cargo bench -p memtide-import --bench big_log`.
//!
//! The log is syslog of sshd with one OOM report near its end, 2 GiB of it unless `MEMTIDE_BENCH_MIB` says otherwise. The
//! lower bound is one vectorised search of the same file through the same block size, in turns with the whole reading in
//! one run; `grep -c` stands beside it for what people would type. All read from the page cache.

#![allow(clippy::print_stdout, clippy::unwrap_used)] // a benchmark prints, and fails where it cannot go on

use std::fs::File;
use std::hint::black_box;
use std::io::{BufWriter, Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use memchr::memmem;

const REPORT: &str = include_str!("report.txt");
const ROUNDS: usize = 3;

fn main() {
    let mib = std::env::var("MEMTIDE_BENCH_MIB").map_or(2048, |mib| mib.parse().unwrap());
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("syslog");
    write(&path, mib << 20);
    println!("{mib} MiB, MB/s, best of {ROUNDS}");
    let timed = |name: &str, run: &dyn Fn(&Path)| {
        let times = (0..ROUNDS).map(|_| {
            let begun = Instant::now();
            run(&path);
            begun.elapsed().as_secs_f64()
        });
        let best = times.fold(f64::INFINITY, f64::min);
        let bytes = std::fs::metadata(&path).unwrap().len();
        #[allow(clippy::cast_precision_loss)] // a speed
        let speed = bytes as f64 / 1e6 / best;
        println!("{name:<16} {speed:>8.0}");
    };
    timed("one memmem", &one_search);
    timed("grep -c", &grep);
    timed("memtide, file", &open);
    timed("memtide, pipe", &open_pipe);
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let peak = status.lines().find(|line| line.starts_with("VmHWM")).unwrap();
    println!("{peak}");
}

fn write(path: &Path, bytes: usize) {
    let mut log = BufWriter::with_capacity(1 << 20, File::create(path).unwrap());
    let (mut written, mut i) = (0, 0);
    let mut put = |text: &str| {
        log.write_all(text.as_bytes()).unwrap();
        text.len()
    };
    let mut is_due = true;
    while written < bytes {
        written += put(&format!(
            "Nov 21 23:{:02}:{:02} web sshd[{i}]: Accepted publickey for deploy from 10.0.0.7 port {} ssh2\n",
            i / 60 % 60,
            i % 60,
            i % 50_000
        ));
        if is_due && written > bytes / 10 * 9 {
            written += put(REPORT);
            is_due = false;
        }
        i += 1;
    }
    log.flush().unwrap();
}

fn one_search(path: &Path) {
    let mut file = File::open(path).unwrap();
    let mut block = vec![0; 256 << 10];
    let finder = memmem::Finder::new("oom-killer");
    loop {
        match file.read(&mut block).unwrap() {
            0 => break,
            read => {
                black_box(finder.find_iter(&block[..read]).count());
            }
        }
    }
}

fn grep(path: &Path) {
    let grep = Command::new("grep").arg("-c").arg("oom-killer").arg(path).output();
    assert_eq!(grep.unwrap().stdout, b"1\n");
}

fn open(path: &Path) {
    check(import::open(path, &mut |_| ()));
}

fn open_pipe(path: &Path) {
    let mut cat = Command::new("cat").arg(path).stdout(Stdio::piped()).spawn().unwrap();
    let pipe = cat.stdout.take().unwrap();
    let name = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&pipe));
    check(import::open(Path::new(&name), &mut |_| ()));
    cat.wait().unwrap();
}

fn check(read: Result<timeline::Source, import::OpenError>) {
    let inputs = read.map(|source| source.origin.inputs);
    let reports = inputs.iter().flatten().filter(|input| input.form == "kernel log");
    if reports.count() != 1 {
        println!("the report was not read: {inputs:?}");
    }
}
