//! Processes that come and go for months must not fill memory. Alone in its program, as it measures that.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::process::{Command, Stdio};
use std::time::Duration;

use probe::{Root, TaskSource, Tasks};

fn anonymous_kib() -> i64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let mut lines = status.lines();
    let line = lines.find_map(|line| line.strip_prefix("RssAnon:"));
    let kib = line.unwrap().trim().trim_end_matches(" kB").to_owned();
    kib.parse().unwrap()
}

#[test]
fn processes_that_come_and_go_leave_nothing_behind() {
    // Where BPF does not work, the first is by /proc as well.
    for source in [TaskSource::Bpf, TaskSource::Proc] {
        let mut tasks = Tasks::open(&Root::default(), Some(source));
        let mut churn = Command::new("sh")
            .args(["-c", "i=0; while [ $i -lt 2000 ]; do (:); i=$((i+1)); done"])
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        let mut after_first = None;
        while churn.try_wait().unwrap().is_none() {
            tasks.each(&mut |_| ());
            after_first.get_or_insert_with(anonymous_kib);
            std::thread::sleep(Duration::from_millis(10));
        }
        let mut is_there = false;
        tasks.each(&mut |task| is_there |= task.pid == churn.id());
        assert!(!is_there, "it has ended");
        let grown = anonymous_kib() - after_first.unwrap_or_default();
        assert!(grown < 4 << 10, "{grown} KiB by {:?}", tasks.source());
    }
}
