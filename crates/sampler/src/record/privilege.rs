//! Privileges that keep a recorder running under memory pressure: a lower OOM score and a higher priority; locked memory
//! is in [`memory_lock`](super::memory_lock).
//!
//! Each is requested if the kernel allows it; a refusal is reported and has no other effect. A better value that is
//! already set stays: whoever starts the recorder (a unit file) may have given more.

use std::io::ErrorKind;
use std::num::NonZeroU64;

use rustix::io::Errno;
use rustix::process::{
    Resource, Rlimit, getpriority_process, getrlimit, setpriority_process, setrlimit,
};
use rustix::thread::{CapabilitySet, capabilities};

/// Enough to be scheduled before the processes that load the host without starving them: some 3 times the weight.
const NICE: i32 = -5;

/// The OOM killer's badness is a share of RAM in thousandths plus this value, so it spares us unless we use half of
/// RAM: then we are the problem. `-1000` would spare us even then.
const OOM_SCORE_ADJ: i32 = -500;

const OWN_ADJ: &str = "/proc/self/oom_score_adj";

/// Requests everything except locked memory; returns a line in words for each. Call it before any thread is started, as
/// threads inherit the priority.
pub fn claim() -> Vec<String> {
    hold_no_more_than_needed();
    // A huge page with only a few used small pages would be most of our memory. Every kernel that has huge pages
    // accepts this.
    let _ = rustix::thread::disable_transparent_huge_pages(true);
    vec![be_spared(), come_first()]
}

/// Makes this thread wake exactly on time. By default the kernel delays it by up to 50 µs (or what a unit file says) to
/// save wake-ups of the CPU; lateness must show only the host's load.
pub(crate) fn wake_exactly() {
    // The kernel never refuses this; a refusal would do no harm.
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1_000));
}

/// Makes the allocator keep less. By default the C library creates an arena for each thread, which keeps its peak. And
/// after a large block was freed, as when the BPF program is loaded, it keeps blocks of that size in the heap, where
/// each growing list leaves its former places behind; separate mappings grow in place.
#[allow(unsafe_code)]
fn hold_no_more_than_needed() {
    #[cfg(target_env = "gnu")]
    {
        const MAPPED_FROM: libc::c_int = 128 << 10;
        // SAFETY: it sets numbers in the allocator, which takes its own lock; no thread but this one runs yet.
        unsafe {
            libc::mallopt(libc::M_ARENA_MAX, 1);
            libc::mallopt(libc::M_MMAP_THRESHOLD, MAPPED_FROM);
        }
    }
}

fn be_spared() -> String {
    let before = std::fs::read_to_string(OWN_ADJ);
    let before = before.ok().and_then(|text| text.trim().parse::<i32>().ok());
    match before {
        None => format!(
            "{OWN_ADJ} cannot be read: whether the OOM killer spares the recorder is not known"
        ),
        Some(adj) if adj <= OOM_SCORE_ADJ => format!("oom_score_adj is {adj}, as it was given"),
        Some(adj) => match std::fs::write(OWN_ADJ, OOM_SCORE_ADJ.to_string()) {
            Ok(()) => {
                format!("oom_score_adj is {OOM_SCORE_ADJ}: the OOM killer takes others first")
            }
            Err(error) => format!(
                "oom_score_adj stays {adj}, so the OOM killer may take the recorder, which is \
                 small and seldom chosen: {}",
                why(&error, "CAP_SYS_RESOURCE", "")
            ),
        },
    }
}

fn come_first() -> String {
    match getpriority_process(None) {
        Ok(nice) if nice <= NICE => format!("nice is {nice}, as it was given"),
        before => match setpriority_process(None, NICE) {
            Ok(()) => format!("nice is {NICE}: samples come on time on a busy host"),
            Err(errno) => format!(
                "nice stays {}, so on a busy host samples may come late: {}",
                before.unwrap_or(0),
                why(&words(errno), "CAP_SYS_NICE", "a higher `ulimit -e`")
            ),
        },
    }
}

pub(crate) fn may(capability: CapabilitySet) -> bool {
    capabilities(None).is_ok_and(|ours| ours.effective.contains(capability))
}

/// Says why the kernel refused something that needs a capability, or something else.
fn why(error: &std::io::Error, capability: &str, or: &str) -> String {
    match error.kind() {
        ErrorKind::PermissionDenied => needs(is_root(), capability, or),
        _ => error.to_string(),
    }
}

/// Says what is needed for something. Advice to be root is useless to a root user who lacks capabilities in a
/// container.
pub(crate) fn needs(is_root: bool, capability: &str, or: &str) -> String {
    let (comma, or) = match or {
        "" => (" or", String::new()),
        or => (",", format!(" or {or}")),
    };
    match is_root {
        true if or.is_empty() => format!("that needs {capability}, which root does not have here"),
        true => format!("that needs {capability}, which root does not have here,{or}"),
        false => format!("that needs root{comma} {capability}{or}"),
    }
}

pub(crate) fn is_root() -> bool {
    probe::host_facts::user_is_root()
}

pub(crate) fn words(errno: Errno) -> std::io::Error {
    errno.into()
}

/// Raises the soft limit of open files as far as it may be: services start with 1,024, and the files of a thousand
/// cgroups stay open.
pub(crate) fn allow_open_files() {
    const WANTED: u64 = 16_384;
    let limit = getrlimit(Resource::Nofile);
    let allowed = limit.maximum.map_or(WANTED, |maximum| maximum.min(WANTED));
    if limit.current.is_some_and(|current| current < allowed) {
        let current = Some(allowed);
        // Without it fewer files stay open.
        let _ = setrlimit(Resource::Nofile, Rlimit { current, ..limit });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_is_root_already_is_not_told_to_be() {
        for (is_root, or, expected) in [
            (false, "", "that needs root or CAP_X"),
            (false, "`ulimit -e`", "that needs root, CAP_X or `ulimit -e`"),
            (true, "", "that needs CAP_X, which root does not have here"),
            (
                true,
                "`ulimit -e`",
                "that needs CAP_X, which root does not have here, or `ulimit -e`",
            ),
        ] {
            assert_eq!(needs(is_root, "CAP_X", or), expected);
        }
    }
}
