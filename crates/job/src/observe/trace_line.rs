//! One line of a trace: `   tar-9465  [001] .....  4051.012345: mm_filemap_get_pages: dev=254:0 ino=3e1 ofs=0-16383`.
//!
//! Offsets are in bytes; those of ranges end at the last byte. Inodes are hexadecimal but for `writeback_dirty_folio` and ext4's.
//! Events of 6.12 and later have all of these; `mm_filemap_add_to_page_cache` has no order before 5.18. The name at the beginning
//! is what the kernel noted of the thread when it was last switched, which may be before it executed another program.

use units::Span;

use crate::observe::file_lookup::device;

/// Names of the events, with their folder below `events`.
pub(super) const EVENTS: [&str; 8] = [
    "filemap/mm_filemap_get_pages",
    "filemap/mm_filemap_map_pages",
    "filemap/mm_filemap_fault",
    "filemap/mm_filemap_add_to_page_cache",
    "writeback/writeback_dirty_folio",
    "ext4/ext4_evict_inode",
    "sched/sched_process_exec",
    "sched/sched_process_fork",
];

/// What an event is about; pages are given by offsets of their first and last byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TraceEvent<'a> {
    /// Read by a system call.
    Read { device: u64, inode: u64, first: u64, last: u64 },
    /// Read through a mapping.
    Mapped { device: u64, inode: u64, first: u64, last: u64 },
    /// New in the cache.
    Added { device: u64, inode: u64, first: u64, order: u32 },
    /// Made dirty; by the number of its first page.
    Dirtied { inode: u64, page: u64 },
    /// The last name and the last descriptor of a file are gone.
    Gone { device: u64, inode: u64 },
    /// The thread executes this file.
    Executed { path: &'a str },
    /// It made a thread or a process, of which this is the name so far.
    Forked { name: &'a str, thread: u32 },
    /// So many events were dropped before this one.
    Lost(u64),
}

/// A line with who did it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TraceLine<'a> {
    pub(super) name: &'a str,
    pub(super) thread: u32,
    /// On the clock of the trace.
    pub(super) at: Span,
    pub(super) event: TraceEvent<'a>,
}

impl<'a> TraceLine<'a> {
    /// Reads a line; `None` where it is of another form.
    pub(super) fn parse(line: &'a str) -> Option<Self> {
        if let Some((_, rest)) = line.split_once(" [LOST ") {
            let lost = rest.split_once(' ')?.0.parse().ok()?;
            let event = TraceEvent::Lost(lost);
            return Some(Self { name: "", thread: 0, at: Span::ZERO, event });
        }
        // A name has at most 15 bytes of any kind, so the event is the first word of this length that is one.
        let found = EVENTS.iter().filter_map(|event| {
            let name = event.split_once('/')?.1;
            Some((line.find(name)?, name))
        });
        let (at, name) = found.min()?;
        let (head, rest) = (line.get(..at)?, line.get(at + name.len()..)?.strip_prefix(": ")?);
        let who = head.get(..head.rfind('[')?)?.trim();
        let (comm, thread) = who.rsplit_once('-')?;
        let at = head.trim_end().trim_end_matches(':').rsplit(' ').next()?.parse().ok()?;
        Some(Self {
            name: comm,
            thread: thread.parse().ok()?,
            at: Span::from_secs_f64(at),
            event: event(name, rest)?,
        })
    }
}

fn event<'a>(name: &str, rest: &'a str) -> Option<TraceEvent<'a>> {
    let mut fields = rest.split_ascii_whitespace();
    let mut after = |key: &str| {
        fields.find_map(|word| word.strip_prefix(key).filter(|value| !value.is_empty()))
    };
    Some(match name {
        "mm_filemap_get_pages" | "mm_filemap_map_pages" => {
            let device = numbers(after("dev=")?, ':')?;
            let inode = hex(after("ino=")?)?;
            let (first, last) = after("ofs=")?.split_once('-')?;
            let (first, last) = (first.parse().ok()?, last.parse().ok()?);
            match name {
                "mm_filemap_get_pages" => TraceEvent::Read { device, inode, first, last },
                _ => TraceEvent::Mapped { device, inode, first, last },
            }
        }
        "mm_filemap_fault" => {
            let device = numbers(after("dev=")?, ':')?;
            let inode = hex(after("ino=")?)?;
            let first = after("ofs=")?.parse().ok()?;
            TraceEvent::Mapped { device, inode, first, last: first }
        }
        "mm_filemap_add_to_page_cache" => {
            let mut words = rest.split_ascii_whitespace();
            let device = numbers(words.nth(1)?, ':')?;
            let inode = hex(words.nth(1)?)?;
            let first = after("ofs=")?.parse().ok()?;
            let order = after("order=").and_then(|order| order.parse().ok()).unwrap_or(0);
            TraceEvent::Added { device, inode, first, order }
        }
        "writeback_dirty_folio" => {
            let inode = after("ino=")?.parse().ok()?;
            TraceEvent::Dirtied { inode, page: after("index=")?.parse().ok()? }
        }
        "sched_process_exec" => {
            // A path may contain what follows it.
            let path = rest.strip_prefix("filename=")?.rsplit_once(" pid=")?.0;
            TraceEvent::Executed { path }
        }
        "sched_process_fork" => {
            let (before, thread) = rest.trim_end().rsplit_once(" child_pid=")?;
            let name = before.rsplit_once(" child_comm=")?.1;
            TraceEvent::Forked { name, thread: thread.parse().ok()? }
        }
        _ => {
            let mut words = rest.split_ascii_whitespace();
            let device = numbers(words.nth(1)?, ',')?;
            let inode = words.nth(1)?.parse().ok()?;
            // nlink 0: a file that only leaves memory has names left.
            let names = words.nth(1)?;
            (names == "0").then_some(TraceEvent::Gone { device, inode })?
        }
    })
}

fn numbers(text: &str, between: char) -> Option<u64> {
    let (major, minor) = text.split_once(between)?;
    Some(device(major.parse().ok()?, minor.parse().ok()?))
}

fn hex(text: &str) -> Option<u64> {
    u64::from_str_radix(text, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEVICE: u64 = 254 << 20;

    #[test]
    fn lines_of_linux_6_18() {
        for (line, name, thread, event) in [
            (
                "             tar-9465    [001] .....  4051.012345: mm_filemap_get_pages: dev=254:0 ino=3e1 ofs=0-16383",
                "tar",
                9465,
                TraceEvent::Read { device: DEVICE, inode: 0x3e1, first: 0, last: 16383 },
            ),
            (
                " my [1] prog-7-12      [000] d..1.  4051.1: mm_filemap_add_to_page_cache: dev 254:0 ino 3e1 pfn=0x15f0 ofs=8192 order=3",
                "my [1] prog-7",
                12,
                TraceEvent::Added { device: DEVICE, inode: 0x3e1, first: 8192, order: 3 },
            ),
            (
                "            gzip-9466    [000] .....  4051.1: writeback_dirty_folio: bdi 254:0: ino=1001 index=77",
                "gzip",
                9466,
                TraceEvent::Dirtied { inode: 1001, page: 77 },
            ),
            (
                "            gzip-9466    [000] .....  4051.1: mm_filemap_fault: dev=254:0 ino=1 ofs=4096",
                "gzip",
                9466,
                TraceEvent::Mapped { device: DEVICE, inode: 1, first: 4096, last: 4096 },
            ),
            (
                "            gzip-9466    [000] .....  4051.1: ext4_evict_inode: dev 254,0 ino 1001 nlink 0",
                "gzip",
                9466,
                TraceEvent::Gone { device: DEVICE, inode: 1001 },
            ),
            (
                "              sh-9467    [000] .....  4051.1: sched_process_exec: filename=/opt/a pid=1 b/head pid=9467 old_pid=9467\n",
                "sh",
                9467,
                TraceEvent::Executed { path: "/opt/a pid=1 b/head" },
            ),
            (
                "           <...>-9460    [000] .....  4051.1: sched_process_fork: comm=sh pid=9460 child_comm=my sh child_pid=9467\n",
                "<...>",
                9460,
                TraceEvent::Forked { name: "my sh", thread: 9467 },
            ),
        ] {
            let read = TraceLine::parse(line).unwrap();
            assert_eq!((read.name, read.thread, read.event), (name, thread, event), "{line}");
            assert_eq!(read.at.as_secs_f64().floor(), 4051.0);
        }
        let lost = TraceLine::parse("CPU:1 [LOST 4242 EVENTS]").map(|line| line.event);
        assert_eq!(lost, Some(TraceEvent::Lost(4242)));
    }

    #[test]
    fn other_lines_are_none() {
        for line in [
            "",
            "# tracer: nop",
            "tar-1 [000] ..... 1.0: mm_filemap_get_pages: dev=254:0 ino=zz ofs=0-1",
            "tar-1 [000] ..... 1.0: mm_filemap_get_pages: dev=254:0",
            "mm_filemap_get_pages: dev=254:0 ino=1 ofs=0-1",
            "gzip-9466 [000] ..... 1.1: ext4_evict_inode: dev 254,0 ino 1001 nlink 1",
            "tar-1 [000] ..... 1.0: mm_filemap_add_to_page_cache: dev 254:0",
            "sh-1 [000] ..... 1.0: sched_process_exec: filename=/bin/mm_filemap_fault: dev=1:1 ino=1 ofs=1",
            "sh-1 [000] ..... 1.0: sched_process_fork: comm=sh pid=1 child_comm=sh child_pid=x",
        ] {
            assert_eq!(TraceLine::parse(line), None, "{line}");
        }
    }
}
