//! Root of the machine: sets it up, lets al try, and prints what was seen.

use std::fs;
use std::path::Path;
use std::time::Duration;

use crate::asked::recorder_state;
use crate::host::{OF_AL, RECORDING, root, until};
use crate::score::Score;
use crate::{floods, homes, names, units};

/// A chapter's name, and what is tried in it.
type Chapter = (&'static str, fn(&mut Score));

pub(crate) fn play() {
    let mut score = Score::new();
    set_up(&mut score);
    let chapters: [Chapter; 5] = [
        // First, before al has a container.
        ("untouched", homes::untouched),
        ("units", units::fixed),
        ("names", names::tried),
        ("floods", floods::tried),
        // Last: his own systemd waits for file systems of his that do not answer.
        ("homes", homes::tried),
    ];
    let only = std::env::var("MEMTIDE_USERS_ONLY").unwrap_or_default();
    for (name, chapter) in chapters {
        if only.is_empty() || only == name {
            chapter(&mut score);
        }
    }
    recorder_is_well(&mut score);
    score.end();
}

fn set_up(score: &mut Score) {
    let uptime = fs::read_to_string("/proc/uptime").unwrap();
    score.note(&format!("the machine is up for {} s", uptime.split('.').next().unwrap()));
    fs::copy("/job/memtide", "/usr/local/bin/memtide").unwrap();
    for user in ["al", "bo"] {
        assert_eq!(root(&["useradd", "-m", "-s", "/bin/sh", user]).code, Some(0));
    }
    assert_eq!(root(&["loginctl", "enable-linger", "al"]).code, Some(0));
    let manager = "/run/user/1000/systemd/private";
    let came = until(Duration::from_secs(120), || Path::new(manager).exists());
    assert!(came.is_some(), "al has no systemd");
    let controllers = fs::read_to_string(Path::new(OF_AL).join("cgroup.controllers")).unwrap();
    score.check(
        "",
        "al has a slice of his own with the memory controller",
        controllers.contains("memory"),
        &controllers,
    );
    let installed = root(&["memtide", "record", "--install"]);
    score.check(
        "",
        "the recorder runs as a unit of systemd",
        installed.code == Some(0),
        &installed.short(),
    );
    let security = root(&["systemd-analyze", "security", "--no-pager", "memtide.service"]);
    let level = security.out.lines().last().unwrap_or_default().to_owned();
    let exposure =
        level.split(": ").nth(1).and_then(|rest| rest.split(' ').next()?.parse::<f64>().ok());
    score.check(
        "",
        "systemd-analyze security says 2.5 or less",
        exposure.is_some_and(|exposure| exposure <= 2.5),
        &level,
    );
}

fn recorder_is_well(score: &mut Score) {
    let unit = root(&["systemctl", "show", "memtide.service", "-p", "ActiveState,NRestarts"]);
    let is_well = unit.out.contains("ActiveState=active") && unit.out.contains("NRestarts=0");
    score.check("", "the recorder was never started again", is_well, &unit.out);
    let (is_well, seen) = recorder_state();
    score.check("", "the recorder says that it is well", is_well, &seen);
    // The unit of the recorder has a limit of its own.
    for command in ["check", "headroom"] {
        let answer = root(&["memtide", command, RECORDING]);
        let is_of_host = !answer.out.contains("this container")
            && !answer.out.contains("limited by:  cgroup: /system.slice/memtide.service");
        score.check(
            "",
            &format!("`memtide {command} {RECORDING}` is about the host"),
            is_of_host && answer.code.is_some(),
            &answer.short(),
        );
    }
}
