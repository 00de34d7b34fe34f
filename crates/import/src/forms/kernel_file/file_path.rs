//! The path of pasted kernel text: in the command, in a heading, or before each line.
//!
//! Files of a cgroup are often shown from its directory, by name only. Then the cgroup is unknown and is called
//! [`UNNAMED_CGROUP`]; `/` would be the root cgroup.

use probe::CgroupFiles;
use timeline::facts::CgroupMode;
use timeline::signals;

/// An unknown cgroup.
pub(in crate::forms) const UNNAMED_CGROUP: &str = "(pasted cgroup)";

/// At most 32 paths of a command, as each costs time on every line.
const PATHS_MAX: usize = 32;

/// The paths of kernel files that a command shows, in its order: `cat /proc/meminfo /proc/vmstat`.
pub(super) fn in_command(command: &str) -> Vec<String> {
    const SHOWS: [&str; 9] = ["cat", "grep", "egrep", "head", "tail", "sort", "awk", "sed", "more"];
    let words = || command.split([' ', ';', '|', '"', '\'', '(', ')']);
    if !words().any(|word| SHOWS.contains(&word.rsplit('/').next().unwrap_or_default())) {
        return Vec::new();
    }
    let mut paths: Vec<String> = Vec::new();
    for word in words() {
        match word {
            "/proc/pressure/*" => {
                let all = ["cpu", "io", "memory"].map(|name| format!("/proc/pressure/{name}"));
                paths.extend(all);
            }
            _ => paths.extend(full(word)),
        }
    }
    paths.truncate(PATHS_MAX);
    paths
}

/// The path that a line is a heading of: `==> /proc/vmstat <==`, `/proc/pressure/memory:`, `--- /proc/meminfo ---`.
pub(super) fn in_heading(line: &str) -> Option<String> {
    let line = line.trim_matches(|c: char| "=-#*<>:[]` ".contains(c)).trim_end_matches([':', ' ']);
    if line.len() > 300 || line.contains(' ') {
        return None;
    }
    full(line)
}

/// The path before a line, and the rest of the line: `/proc/meminfo:MemFree: 12 kB`, `memory.max:max`.
pub(super) fn before(line: &str) -> Option<(String, &str)> {
    let (path, rest) = line.split_once(':')?;
    if path.len() > 300 || path.contains(' ') || rest.is_empty() {
        return None;
    }
    Some((full(path)?, rest))
}

/// The same of a line between such lines: `grep . *` also prints files of a cgroup that are not read,
/// `memory.events.local:low 0`.
pub(super) fn before_next(line: &str) -> Option<(String, &str)> {
    before(line).or_else(|| {
        let (name, rest) = line.split_once(':')?;
        let controllers = ["memory.", "cgroup.", "cpu.", "io.", "pids."];
        let is_file = controllers.iter().any(|start| name.starts_with(start))
            && name.bytes().all(|b| b.is_ascii_lowercase() || b"._".contains(&b));
        is_file.then(|| (in_unnamed_cgroup(name), rest))
    })
}

/// The full path of a kernel file, also of a file of a cgroup given by its name only.
fn full(word: &str) -> Option<String> {
    let word = word.trim_end_matches(',');
    if word.contains('*') || word.ends_with('/') {
        return None;
    }
    // A directory of saved files may lie anywhere: `/host/proc/meminfo`, `./proc/vmstat`.
    for root in ["/proc/", "/sys/"] {
        if let Some((before, behind)) = word.split_once(root) {
            let is_prefix =
                before.bytes().all(|b| b.is_ascii_alphanumeric() || b"/._-".contains(&b));
            return is_prefix.then(|| format!("{root}{behind}"));
        }
    }
    let name = word.strip_prefix("./").unwrap_or(word);
    let is_file_of = |mode| CgroupFiles::names(mode).contains(&name);
    if is_file_of(CgroupMode::V2) {
        return Some(in_unnamed_cgroup(name));
    }
    is_file_of(CgroupMode::V1).then(|| format!("/sys/fs/cgroup/memory/{UNNAMED_CGROUP}/{name}"))
}

/// The path of a file of an unknown cgroup.
pub(super) fn in_unnamed_cgroup(name: &str) -> String {
    format!("/sys/fs/cgroup/{UNNAMED_CGROUP}/{name}")
}

/// The name of the form for the file at a path.
pub(super) fn form(path: &str) -> &'static str {
    let last = |path: &str| path.rsplit('/').next().map(str::to_owned);
    let matches = |file: &str| match file.split_once(['*', 'P']) {
        Some((start, _)) => path.starts_with(start) && last(file) == last(path),
        None => file == path,
    };
    signals::ALL.iter().map(|def| def.file).find(|file| matches(file)).unwrap_or("kernel file")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_found_in_commands() {
        for (command, paths) in [
            ("cat /proc/meminfo", vec!["/proc/meminfo"]),
            ("sudo cat /proc/vmstat | grep pgscan", vec!["/proc/vmstat"]),
            (
                "cat /proc/pressure/memory; cat /proc/pressure/io",
                vec!["/proc/pressure/memory", "/proc/pressure/io"],
            ),
            ("cat memory.max", vec!["/sys/fs/cgroup/(pasted cgroup)/memory.max"]),
            (
                "cat memory.limit_in_bytes",
                vec!["/sys/fs/cgroup/memory/(pasted cgroup)/memory.limit_in_bytes"],
            ),
            ("cat /sys/fs/cgroup/*/memory.max", vec![]),
            ("echo 1 > /proc/sys/vm/drop_caches", vec![]),
            ("cat /etc/fstab", vec![]),
            ("free -m", vec![]),
        ] {
            assert_eq!(in_command(command), paths, "{command}");
        }
        assert_eq!(in_command("cat /proc/pressure/*").len(), 3);
    }

    #[test]
    fn paths_are_found_in_headings_and_before_lines() {
        for line in [
            "==> /proc/vmstat <==",
            "/proc/vmstat:",
            "--- /proc/vmstat ---",
            "### /proc/vmstat",
            "[/proc/vmstat]",
        ] {
            assert_eq!(in_heading(line).as_deref(), Some("/proc/vmstat"), "{line}");
        }
        for line in
            ["memory.h", "memory.py", "see /proc/vmstat for more", "vmstat", "", "=====", "/proc/"]
        {
            assert_eq!(in_heading(line), None, "{line}");
        }
        let (path, rest) = before("/host/proc/meminfo:MemFree: 1 kB").unwrap();
        assert_eq!((path.as_str(), rest), ("/proc/meminfo", "MemFree: 1 kB"));
        assert_eq!(before("MemFree: 1 kB"), None);
    }

    #[test]
    fn a_path_has_the_name_in_the_catalogue() {
        for (path, name) in [
            ("/proc/meminfo", signals::MEMINFO),
            ("/sys/fs/cgroup/a/b/memory.stat", signals::CGROUP_STAT),
            ("/sys/devices/system/node/node1/meminfo", signals::NODE_MEMINFO),
            ("/proc/12/smaps_rollup", signals::SMAPS_ROLLUP),
            ("/proc/pressure/io", signals::IO_PRESSURE),
            ("/proc/version", "kernel file"),
        ] {
            assert_eq!(form(path), name, "{path}");
        }
    }
}
