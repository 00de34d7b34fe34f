//! Fixes of units: the command of a finding, carried out by a shell as it stands, ends the harm, and its undo takes it back.

use std::time::Duration;

use serde_json::Value;

use crate::asked::memtide;
use crate::host::root;
use crate::score::Score;

/// A service with a limit that is too small.
struct SickUnit {
    name: &'static str,
    /// The limit, as systemd writes it, and what systemd says of it.
    limit: &'static str,
    rule: &'static str,
    load: &'static [&'static str],
}

const SICK: [SickUnit; 2] = [
    SickUnit {
        name: "starved",
        limit: "MemoryMax=62914560",
        rule: "cgroup-cache-starved",
        load: &["read", "/root/files", "--for", "5m"],
    },
    SickUnit {
        name: "throttled",
        limit: "MemoryHigh=62914560",
        rule: "cgroup-high-throttle",
        load: &["hog", "100M", "--touch", "2s", "--for", "5m"],
    },
];

pub(crate) fn fixed(score: &mut Score) {
    root(&["mkdir", "-p", "/root/files"]);
    root(&["memtide", "lab", "write", "/root/files", "10M", "--files", "10"]);
    // What is cached already is charged to whoever wrote it.
    root(&["sh", "-c", "sync; echo 1 > /proc/sys/vm/drop_caches"]);
    for unit in &SICK {
        unit.fix(score);
    }
    root(&["rm", "-r", "/root/files"]);
}

impl SickUnit {
    fn fix(&self, score: &mut Score) {
        let starts = ["systemd-run", "--quiet", "--unit", self.name, "-p", "MemorySwapMax=0", "-p"];
        root(&[&starts[..], &[self.limit, "memtide", "lab"], self.load].concat());
        std::thread::sleep(Duration::from_secs(8));
        let found = self.finding();
        let fix = |part: &str| found["fix"][0][part].as_str().unwrap_or_default().to_owned();
        let (now, undo) = (fix("now"), fix("undo"));
        let is_of_unit = now.starts_with("systemctl set-property --runtime");
        score.check(self.name, "check advises a command for the unit", is_of_unit, &now);
        root(&["sh", "-e", "-c", &now]);
        std::thread::sleep(Duration::from_secs(8));
        // The recorder has the time before, too.
        let after = self.finding();
        let more = after["more"].as_str().unwrap_or_default();
        let is_over = after.is_null() || more.contains("It is over since the limit was raised");
        score.check(self.name, "once it ran, it is over", is_over, more);
        root(&["sh", "-e", "-c", &undo]);
        let property = self.limit.split('=').next().unwrap_or_default();
        let limit = root(&["systemctl", "show", self.name, "-p", property]).out;
        score.check(self.name, "its undo takes it back", limit.trim() == self.limit, &limit);
        root(&["systemctl", "stop", self.name]);
    }

    /// What check finds in the unit by its rule; null where it finds nothing.
    fn finding(&self) -> Value {
        let answer = memtide(&["check", "--for", "15s", "--unit", self.name, "--json"]);
        let report: Value = serde_json::from_str(&answer.out).unwrap_or_default();
        let found = report["findings"].as_array().cloned().unwrap_or_default();
        found.into_iter().find(|finding| finding["id"] == self.rule).unwrap_or_default()
    }
}
