//! Messages of programs about kills for memory: killers in user space ([`killers`]), Kubernetes ([`kubelet`]), container
//! runtimes ([`containers`]), units of systemd ([`units`]), batch systems and platforms ([`quotas`]). Also messages of the kernel
//! in a line: of TCP's memory, and of errors of memory modules ([`modules`]).
//!
//! Each message is one line, wherever it stands; lines around it may name its container and limit. What only looks like
//! such a message, as `"OOMKilled": false`, is recognised and says nothing.

mod containers;
mod exits;
mod killers;
mod kubelet;
mod modules;
mod phrase;
mod quotas;
mod units;

use timeline::{KillNotice, NoticeKind};

use super::Form;
use super::kernel_log::prefix;
use crate::block::{BlockReader, TextBlock};
use crate::text::line_scan::BlockStart;

pub(super) const FORM: Form = Form {
    name: "kill notice",
    begins: BlockStart::with(&[
        "due to memory",
        "due to swap",
        "systemd-oomd",
        "top candidates were:",
        "low memory! at or below",
        "Low Memory! At or below",
        "ending SIG",
        "illing process",
        "low on resource: ",
        "eviction manager: ",
        "MemoryPressure",
        "nsufficientMemory",
        "OOM encountered",
        "OOM event in contain",
        "OOMKilled",
        "OOM Killed",
        "container oom ",
        "oom-kill",
        "OOM killer",
        "oom_kill event",
        "OOMKilled}}",
        "TaskOOM",
        "/tasks/oom",
        "ow memory! mem avail",
        "container_oom_events_total",
        "with reclaim activity",
        "is more than ",
        "emory limit",
        "TERM_MEMLIMIT",
        "job killed: mem ",
        "OutOfMemoryError",
        "Error R1",
        "lowmemorykiller: Kill",
        "137",
        "status=9/KILL",
        "annot allocate memory",
        "std::bad_alloc",
        "Killed signal terminated program",
        "terminated with signal 9",
        "signal: 9, SIGKILL",
        "virtual memory exhausted",
        "insufficient memory for the Java Runtime",
        "memory allocation of ",
        "Allowed memory size of ",
        "MemoryError",
        "CUDA",
        "cudaMalloc",
        "Restart Count:",
        "EvictionThresholdMet",
        "ut of memory",
        "Failed on request of size ",
        "EDAC ",
        "Memory failure: 0x",
        "hardware memory corruption",
        "highest badness",
        "alloc failed, req-size",
        "ranked for eviction",
        "is evicted successfully",
        "Last Pgscan:",
        "--max-memory-restart",
        "Current Memory Usage:",
    ]),
    read,
};

/// What a line says.
#[derive(Debug)]
enum NoticeMessage {
    /// A kill, or what announces one.
    Notice(KillNotice),
    /// It is such a message, and says that nothing was killed; in words.
    Nothing(&'static str),
}

/// A line with those around it.
#[derive(Debug, Clone, Copy)]
struct NoticeLine<'a> {
    /// The line, without the marks at its ends.
    text: &'a str,
    /// The lines before it.
    above: &'a [&'a str],
    /// The lines after it.
    below: &'a [&'a str],
}

/// The readers; the first that knows a line reads it.
const READERS: [fn(NoticeLine<'_>) -> Option<NoticeMessage>; 7] = [
    killers::read,
    modules::read,
    kubelet::read,
    containers::read,
    units::read,
    quotas::read,
    exits::read,
];

fn read(input: &mut BlockReader<'_>) -> Option<TextBlock> {
    let (line, below) = input.lines.split_first()?;
    // A log of nothing else is not searched around each line.
    let (above, below): (&[&str], &[&str]) =
        if input.builder.has_many_notices() { (&[], &[]) } else { (input.before, below) };
    let line = NoticeLine { text: line.trim(), above, below };
    let message = READERS.iter().find_map(|read| read(line))?;
    let what = match message {
        NoticeMessage::Nothing(what) => what.to_owned(),
        NoticeMessage::Notice(mut notice) => {
            let wall = prefix::message(line.text).wall;
            notice.wall = wall.or_else(|| input.time.and_then(|time| time.wall()));
            notice.text = phrase::shortened(line.text, KillNotice::TEXT_MAX);
            let about = match notice.kind {
                NoticeKind::Sockets => "the memory of TCP",
                NoticeKind::Module => "errors of a memory module",
                _ => "a kill",
            };
            let what = format!("message of {} about {about}", notice.messenger.name());
            input.builder.notice(notice);
            what
        }
    };
    Some(TextBlock { what, lines: 1, ..TextBlock::default() })
}

#[cfg(test)]
mod tests;
