//! Processes below this one: `/proc/PID/task/TID/children` (3.5, `CONFIG_PROC_CHILDREN`), which lists the children that a thread
//! started or adopted.

use std::collections::HashSet;

/// Threads of one process that are asked for children.
const THREADS_MAX: usize = 64;

/// Processes of one job that are watched.
const PROCESSES_MAX: usize = 4096;

/// All processes below this one, but some of its children.
pub(super) fn descendants(but: &[u32]) -> Vec<u32> {
    let mut found = children("self");
    found.retain(|pid| !but.contains(pid));
    with_all_below(found)
}

/// These processes, and all below them.
pub(super) fn with_all_below(mut found: Vec<u32>) -> Vec<u32> {
    found.sort_unstable();
    found.dedup();
    let mut seen: HashSet<u32> = found.iter().copied().collect();
    let mut next = 0;
    while next < found.len() && found.len() < PROCESSES_MAX {
        for child in children(&found[next].to_string()) {
            if seen.insert(child) {
                found.push(child);
            }
        }
        next += 1;
    }
    found
}

/// The threads of a process.
pub(super) fn threads(pid: &str) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    names.take(THREADS_MAX).collect()
}

/// Children of all threads of a process.
pub(super) fn children(pid: &str) -> Vec<u32> {
    let mut all = Vec::new();
    for thread in threads(pid) {
        let list = std::fs::read_to_string(format!("/proc/{pid}/task/{thread}/children"));
        let Ok(list) = list else { continue };
        all.extend(list.split_ascii_whitespace().filter_map(|pid| pid.parse::<u32>().ok()));
    }
    all
}

/// The name of a process, at most 15 bytes.
pub(super) fn name_of(pid: u32) -> Option<String> {
    let name = std::fs::read(format!("/proc/{pid}/comm")).ok()?;
    Some(String::from_utf8_lossy(name.trim_ascii_end()).into_owned())
}
