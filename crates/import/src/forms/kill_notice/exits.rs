//! What ended a process without saying why: exit status 137, SIGKILL, an allocation that failed in a program. Such lines are
//! recognised, so that the answer says what they prove, and tell of no kill.

use probe::text::SplitText as _;

use super::{NoticeLine, NoticeMessage};

const STATUS_137: &str = "exit status 137: ended by SIGKILL, from whom is not shown; a kill for \
                          memory has OOMKilled or a kernel report";
const SIGKILL: &str = "ended by SIGKILL, from whom is not shown";
const ENOMEM: &str =
    "an allocation failed in a program: memory, a limit of it, or overcommit; which is not shown";
const OF_JVM: &str =
    "OutOfMemoryError of Java: a limit of its own heap; the host's memory is not shown";

/// What the compiler driver, the linker, Cargo and systemd print when a program of theirs was killed.
const KILLED: [&str; 4] = [
    "status=9/KILL",
    "Killed signal terminated program",
    "terminated with signal 9 [Killed]",
    "(signal: 9, SIGKILL: kill)",
];
/// What programs print when an allocation failed.
const FAILED: [&str; 8] = [
    "ERROR:  out of memory",
    "ERROR:  Out of memory",
    "Failed on request of size ",
    "VM protect failed to allocate",
    "annot allocate memory",
    "std::bad_alloc",
    "virtual memory exhausted",
    "insufficient memory for the Java Runtime",
];

const RESTARTS: &str =
    "restarts of a container: why is not shown; `Last State` in kubectl describe pod shows it";
const OF_CMA: &str = "the area of CMA had no free range of that size: memory set aside for devices \
                      (cma=), not RAM as a whole; CmaFree in /proc/meminfo shows the rest";
const OF_OOMD: &str =
    "a candidate of systemd-oomd: what it used; whether it was killed is not shown";
const OF_KUBELET: &str =
    "the kubelet evicts pods: for which resource is not shown; kubectl describe pod shows it";
const OF_GPU: &str = "memory of a GPU ran out; the host's memory is not shown";

/// Limits that runtimes set for themselves, by what they print when they reach them.
const OWN_LIMITS: [(&str, &str); 6] = [
    (
        "Allocation failed - process out of memory",
        "an allocation failed in V8; the host's memory is not shown",
    ),
    (
        "heap out of memory",
        "a limit of V8's own heap (--max-old-space-size); the host's memory is not shown",
    ),
    ("Allowed memory size of ", "PHP's own limit (memory_limit); the host's memory is not shown"),
    ("memory allocation of ", ENOMEM),
    (
        "runtime: out of memory",
        "an allocation failed in a Go program; the host's memory is not shown",
    ),
    (
        "MemoryError",
        "an allocation failed in a Python program: memory, or a limit of it; which is not shown",
    ),
];

pub(super) fn read(line: NoticeLine<'_>) -> Option<NoticeMessage> {
    let text = line.text;
    let has = |phrases: &[&str]| phrases.iter().any(|phrase| text.contains(phrase));
    let own = OWN_LIMITS.iter().find(|(phrase, _)| text.contains(phrase));
    let what = if has(&["java.lang.OutOfMemoryError"]) {
        OF_JVM
    } else if let Some((_, what)) = own {
        what
    } else if has(&[
        "CUDA out of memory",
        "CUDA error: out of memory",
        "cudaMalloc failed: out of memory",
    ]) {
        OF_GPU
    } else if text.trim_start().starts_with("Restart Count:") {
        RESTARTS
    } else if is_137(text) {
        STATUS_137
    } else if has(&["alloc failed, req-size"]) {
        OF_CMA
    } else if is_candidate(text) {
        OF_OOMD
    } else if has(&["ranked for eviction", "is evicted successfully"]) {
        OF_KUBELET
    } else if has(&KILLED) {
        SIGKILL
    } else if has(&FAILED) {
        ENOMEM
    } else {
        return None;
    };
    Some(NoticeMessage::Nothing(what))
}

/// A line of the candidates of systemd-oomd, and of what `oomctl` shows of a cgroup.
fn is_candidate(text: &str) -> bool {
    ["Last Pgscan: ", "Current Memory Usage: "]
        .iter()
        .any(|label| text.trim_start().starts_with(label))
}

/// `exit code 137`, `Exit Code:    137`, `"ExitCode": 137`, `exitCode:137`, `Exited (137)`, `exitCode=137`.
fn is_137(text: &str) -> bool {
    let Some((before, behind)) = text.around("137") else {
        return false;
    };
    let is_mark = |c: char| "\"' :=(\t".contains(c);
    let before = before.trim_end_matches(is_mark).to_ascii_lowercase();
    let is_number = !behind.starts_with(|c: char| c.is_ascii_digit() || c == '.');
    let names =
        ["exit code", "exitcode", "exit_code", "exited", "exit status", "with code", "container"];
    is_number && names.iter().any(|name| before.ends_with(name))
}
