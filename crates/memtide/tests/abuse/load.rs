//! Thousands of processes and cgroups that come and go beside a recorder.

use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

use crate::bench::Bench;
use crate::recorder::{Recorder, Run, boot, judge, wait};
use crate::score::Score;

/// A program that runs, with all that it starts, until this is dropped.
struct Program(Child);

impl Drop for Program {
    fn drop(&mut self) {
        let _ = kill_process_group(Pid::from_child(&self.0), Signal::KILL);
        let _ = self.0.wait();
    }
}

fn shell(bench: &Bench, script: &str) -> Program {
    let mut command = bench.command("sh");
    Program(
        command.args(["-c", script]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap(),
    )
}

/// The kernel's count of forks since boot.
fn forks() -> u64 {
    let text = std::fs::read_to_string("/proc/stat").unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("processes "));
    line.unwrap().parse().unwrap()
}

pub(crate) fn under_load(bench: &Bench) -> Score {
    let mut score = Score::default();
    let directory = bench.path("loaded");
    let mut recorder = Recorder::start(bench, &directory, &["--processes", "1s"]);
    let from = recorder.until_it_samples(&directory);
    let began = Instant::now();
    let (forked, lasts) = (forks(), Duration::from_secs(bench.count(150)));
    let groups = {
        let _forks = shell(bench, "while :; do (:); (:); (:); (:); done");
        let _memory =
            shell(bench, "while :; do head -c 60000000 /dev/zero | tail >/dev/null; done");
        come_and_go(bench, bench.count(2_000));
        let mut groups = bench.count(2_000);
        while began.elapsed() < lasts {
            come_and_go(bench, 100);
            groups += 100;
        }
        groups
    };
    let each_second = (forks() - forked) / began.elapsed().as_secs().max(1);
    wait(2_000);
    let until = boot();
    recorder.end(&mut score);
    judge(bench, &directory, &[Run { from, until }], &mut score);
    score.done = format!("{each_second} forks a second, {groups} cgroups");
    score
}

/// Makes cgroups, and removes them.
fn come_and_go(bench: &Bench, count: u64) {
    let path = |number: u64| bench.group().join(format!("group{number}"));
    (0..count).for_each(|number| std::fs::create_dir(path(number)).unwrap());
    wait(100);
    (0..count).for_each(|number| std::fs::remove_dir(path(number)).unwrap());
}
