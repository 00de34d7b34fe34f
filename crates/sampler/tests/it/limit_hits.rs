//! A small cgroup among many that meets its limit for a few seconds: the recording names it and when.

#![allow(clippy::print_stderr)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use probe::Root;
use sampler::Settings;
use timeline::signals::CGROUP_EVENTS_MAX;
use timeline::{Facts, cgroup_counter_rises};
use units::Ratio;

use crate::fake::recorder;

/// Cgroups of v1 below one of their own, removed when dropped.
struct Groups(Vec<PathBuf>);

impl Groups {
    fn make(count: usize) -> Option<Self> {
        let top =
            Path::new("/sys/fs/cgroup/memory").join(format!("memtide-hits-{}", std::process::id()));
        let mut made = Self(Vec::new());
        let below = (0..count).map(|index| top.join(format!("g{index:03}")));
        for path in std::iter::once(top.clone()).chain(below) {
            fs::create_dir(&path).ok()?;
            made.0.push(path);
        }
        made.0[0].join("memory.failcnt").exists().then_some(made)
    }
}

impl Drop for Groups {
    fn drop(&mut self) {
        for path in self.0.iter().rev() {
            for _ in 0..50 {
                if fs::remove_dir(path).is_ok() {
                    break;
                }
                std::thread::sleep(Duration::from_millis(20));
            }
        }
    }
}

#[test]
fn a_small_group_that_meets_its_limit_for_seconds_is_named_with_the_second() {
    let Some(groups) = Groups::make(250) else {
        eprintln!("skipped: no cgroups of v1 can be made; run as root");
        return;
    };
    let full = &groups.0[177];
    fs::write(full.join("memory.limit_in_bytes"), (8 << 20).to_string()).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let settings = Settings {
        processes: None,
        // All are asked each second, however slow the machine is.
        groups_share: Ratio::from_percent(100.0),
        ..Settings::default()
    };
    let (mut recorder, _, _outbox) =
        recorder(&Root::default(), &directory.path().join("recording"), settings);
    let ended = directory.path().join("ended");
    let start = Instant::now();
    let mut stalled = None;
    for second in 0..9 {
        let due = start + Duration::from_secs(second);
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        recorder.take();
        if second == 3 {
            // It writes until the last sample, so that a slow machine reads the cgroup often enough meanwhile.
            let script = format!(
                "echo $$ > {}/cgroup.procs; while [ ! -e {} ]; do head -c 24000000 /dev/zero > {}; \
                 done",
                full.display(),
                ended.display(),
                directory.path().join("file").display()
            );
            stalled = Command::new("sh").args(["-c", &script]).spawn().ok();
        }
    }
    fs::write(&ended, "").unwrap();
    stalled.unwrap().wait().unwrap();
    recorder.stop().unwrap();
    let recording = store::Recording::open(&directory.path().join("recording")).unwrap();
    let timeline = recording.load(store::Selection::default(), &mut |_| ()).timeline;
    let key = full.strip_prefix("/sys/fs/cgroup/memory").unwrap();
    let rises = cgroup_counter_rises(&timeline, &Facts::default(), CGROUP_EVENTS_MAX);
    let its = &rises[&format!("/{}", key.display())];
    let times = timeline.times();
    eprintln!(
        "limit hits between {:?}",
        its.iter().map(|rise| (times[rise.from], times[rise.to], rise.by)).collect::<Vec<_>>()
    );
    // The second scan of all comes after 10 s, and the recording ends before.
    assert!(its.len() >= 2, "it is found, and read each second from then on");
    let mut later = its.iter().skip(1);
    assert!(later.all(|rise| rise.to == rise.from + 1));
}
