//! Disks that are full or may only be read, a recorder that stands still, and a directory that becomes a link.

use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::process::Signal;

use crate::bench::{Bench, patiently};
use crate::recorder::{Recorder, Run, boot, judge, wait};
use crate::score::Score;

/// A file system of its own; unmounted at the end.
struct SmallDisk(PathBuf);

impl Drop for SmallDisk {
    fn drop(&mut self) {
        patiently(|| run("umount", &[self.0.as_os_str()]));
    }
}

fn run(program: &str, arguments: &[&std::ffi::OsStr]) -> bool {
    let output = Command::new(program).args(arguments).output();
    output.is_ok_and(|output| output.status.success())
}

impl SmallDisk {
    /// A tmpfs, or ext4 in a file; `None` where this kernel has no loop device.
    fn mount(bench: &Bench, kind: &str) -> Option<Self> {
        let place = bench.path(&format!("disk-{kind}"));
        std::fs::create_dir(&place).unwrap();
        let is_mounted = if kind == "tmpfs" {
            let options = ["-t", "tmpfs", "-o", "size=6m", "tmpfs"].map(std::ffi::OsStr::new);
            run("mount", &[&options[..], &[place.as_os_str()]].concat())
        } else {
            let image = bench.path("ext4.image");
            std::fs::File::create(&image).unwrap().set_len(12 << 20).unwrap();
            run("mkfs.ext4", &[std::ffi::OsStr::new("-q"), image.as_os_str()])
                && run(
                    "mount",
                    &["-o".as_ref(), "loop".as_ref(), image.as_os_str(), place.as_os_str()],
                )
        };
        is_mounted.then(|| Self(place))
    }

    fn remount(&self, how: &str) {
        let how = format!("remount,{how}");
        run("mount", &["-o".as_ref(), how.as_ref(), self.0.as_os_str()]);
    }

    /// Fills the rest of it.
    fn fill(&self) -> PathBuf {
        let path = self.0.join("filler");
        let mut file = std::fs::File::create(&path).unwrap();
        let block = vec![7; 64 << 10];
        while std::io::Write::write_all(&mut file, &block).is_ok() {}
        path
    }
}

pub(crate) fn full_and_read_only(bench: &Bench) -> Score {
    let rounds = bench.count(30);
    let mut score = Score::default();
    let mut done = Vec::new();
    for kind in ["tmpfs", "ext4"] {
        let Some(disk) = SmallDisk::mount(bench, kind) else {
            done.push(format!("{kind} cannot be mounted here"));
            continue;
        };
        filled_and_freed(bench, &disk, rounds, &mut score);
        done.push(format!("{rounds} times {kind} full and read-only"));
    }
    score.done = done.join(", ");
    score
}

fn filled_and_freed(bench: &Bench, disk: &SmallDisk, rounds: u64, score: &mut Score) {
    let dice = bench.dice(200);
    let directory = disk.0.join("recording");
    let start = || Recorder::start(bench, &directory, &["--sync", "1s"]);
    let mut recorder = start();
    // A recording that does not exist cannot begin on a full disk.
    let from = recorder.until_it_samples(&directory);
    for round in 0..rounds {
        let filler = disk.fill();
        wait(1_500 + dice.below(6_000));
        if dice.one_in(2) {
            disk.remount("ro");
            wait(1_000 + dice.below(1_000));
            disk.remount("rw");
        }
        // A tenth of the rounds, as the test suite runs, has one as well.
        if round % 5 == 1 {
            recorder.kill(false, score);
            recorder = start();
            wait(1_000 + dice.below(2_000));
        }
        std::fs::remove_file(filler).unwrap();
        wait(4_000);
        if !recorder.is_alive() {
            let errors = std::fs::read_to_string(directory.with_extension("stderr"));
            let errors = errors.unwrap_or_default();
            let last = errors.lines().last().unwrap_or("it wrote nothing");
            score.refused.push(format!("the recorder ended on a full disk: {last}"));
            recorder = start();
            wait(4_000);
        }
    }
    wait(3_000);
    let until = boot();
    recorder.end(score);
    judge(bench, &directory, &[Run { from, until }], score);
    let _ = std::fs::copy(directory.with_extension("stderr"), bench.path("disk.stderr"));
}

/// Stops a recorder for longer than what may pass without an event, then lets its directory become a link to a foreign one.
pub(crate) fn stopped_and_swapped(bench: &Bench) -> Score {
    let mut score = Score::default();
    let directory = bench.path("stopped");
    let mut recorder = Recorder::start(bench, &directory, &["--sync", "1s"]);
    let from = recorder.until_it_samples(&directory);
    let stops = bench.count(10);
    for _ in 0..stops {
        wait(6_000);
        recorder.signal(Signal::STOP);
        wait(11_000);
        recorder.signal(Signal::CONT);
    }
    // What is judged ends after the last stop.
    wait(8_000);
    let until = boot();
    recorder.end(&mut score);
    judge(bench, &directory, &[Run { from, until }], &mut score);
    let (foreign, swapped) = swapped(bench);
    assert_eq!(foreign, 0, "files written into a foreign directory");
    score.add(swapped);
    score.done =
        format!("{stops} stops of 11 s; the directory became a link, which was not followed");
    score
}

/// Returns how many files a recorder made in a directory that a link in place of its own points to, and what that cost.
fn swapped(bench: &Bench) -> (usize, Score) {
    let mut score = Score::default();
    let [directory, away, foreign] = ["swapped", "away", "foreign"].map(|name| bench.path(name));
    let mut recorder = Recorder::start(bench, &directory, &["--sync", "1s"]);
    recorder.until_it_samples(&directory);
    std::fs::create_dir(&foreign).unwrap();
    std::fs::rename(&directory, &away).unwrap();
    std::os::unix::fs::symlink(&foreign, &directory).unwrap();
    recorder.signal(Signal::HUP);
    wait(5_000);
    let made = entries(&foreign);
    std::fs::remove_file(&directory).unwrap();
    std::fs::rename(&away, &directory).unwrap();
    wait(4_000);
    recorder.end(&mut score);
    judge(bench, &directory, &[], &mut score);
    (made, score)
}

fn entries(directory: &Path) -> usize {
    std::fs::read_dir(directory).unwrap().count()
}
