//! Where messages of a kernel report begin within a line: behind prose, a table bar, another message.

use std::sync::LazyLock;

use memchr::memmem::Finder;

/// Words that a message begins with.
const FIRST: [&str; 24] = [
    "Out of memory",
    "Out of Memory",
    "Memory cgroup out of memory",
    "Memory cgroup stats",
    "Killed process ",
    "Kill process ",
    "oom-kill:constraint=",
    "oom_reaper: reaped",
    "Mem-Info:",
    "Mem-info:",
    "Task in /",
    "Tasks state (memory",
    "memory: usage ",
    "memory+swap: usage ",
    "swap: usage ",
    "kmem: usage ",
    "lowmem_reserve[]:",
    "Swap cache stats:",
    "Free swap",
    "Total swap",
    "Triggered by PID ",
    "VM: killing process ",
    "__alloc_pages: ",
    "XFS: ",
];

/// Words behind the name of a task.
const BEHIND_A_NAME: [&str; 6] = [
    " invoked oom-killer:",
    ": page allocation failure",
    ": page allocation stalls for ",
    ": vmalloc: allocation failure",
    ": vmalloc error: ",
    ", mode:0x",
];

/// Words behind a number.
const BEHIND_A_NUMBER: [&str; 8] = [
    " total pagecache pages",
    " pages in swap cache",
    " pages RAM",
    " pages HighMem",
    " pages reserved",
    " pages shared",
    " pages non-shared",
    " pages hwpoisoned",
];

/// A search for each of some words.
struct WordSearch(Vec<Finder<'static>>);

impl WordSearch {
    fn new(words: &[&'static str]) -> Self {
        Self(words.iter().map(|word| Finder::new(*word)).collect())
    }

    /// Calls `found` with each place.
    fn places(&self, text: &str, mut found: impl FnMut(usize)) {
        for finder in &self.0 {
            finder.find_iter(text.as_bytes()).for_each(&mut found);
        }
    }
}

/// The offsets at which messages begin, in order.
pub(crate) fn starts(text: &str) -> Vec<usize> {
    static FIRSTS: LazyLock<WordSearch> = LazyLock::new(|| WordSearch::new(&FIRST));
    static NAMED: LazyLock<WordSearch> = LazyLock::new(|| WordSearch::new(&BEHIND_A_NAME));
    static COUNTED: LazyLock<WordSearch> = LazyLock::new(|| WordSearch::new(&BEHIND_A_NUMBER));
    let mut starts = Vec::new();
    FIRSTS.places(text, |at| {
        // `Out of memory: Killed process`, `memory+swap: usage`: the middle of a message.
        let is_inner = text
            .get(..at)
            .is_some_and(|before| before.ends_with([':', '+']) || before.ends_with(": "))
            && text.get(at..).is_some_and(|rest| {
                rest.starts_with("Kill") || rest.starts_with("swap") || rest.starts_with("kill")
            });
        if !is_inner {
            starts.push(at);
        }
    });
    NAMED.places(text, |at| starts.extend(name_start(text, at)));
    COUNTED.places(text, |at| {
        let digits = text.get(..at).unwrap_or_default();
        let start = digits.trim_end_matches(|c: char| c.is_ascii_digit()).len();
        if start < at {
            starts.push(start);
        }
    });
    for (at, _) in text.match_indices("Node ") {
        starts.extend(is_node(text.get(at + 5..).unwrap_or_default()).then_some(at));
    }
    for (at, _) in text.match_indices('[') {
        starts.extend(is_task(text.get(at + 1..).unwrap_or_default()).then_some(at));
    }
    for (at, _) in text.match_indices("active_anon:") {
        let before = text.get(..at).unwrap_or_default();
        starts.extend(is_counters(before, text.get(at + 12..).unwrap_or_default()).then_some(at));
    }
    starts.sort_unstable();
    starts.dedup();
    starts
}

/// The start of the name that ends at `end`: the last word, without quotation marks.
fn name_start(text: &str, end: usize) -> Option<usize> {
    let before = text.get(..end)?;
    let word = before.rsplit([' ', '"', '\'', '`', '|', '>']).next()?;
    (!word.is_empty()).then(|| before.len() - word.len())
}

/// Whether the text behind `Node ` goes on as a line of a node or zone: `0 DMA free:`, `0 Normal: 1*4kB`.
fn is_node(rest: &str) -> bool {
    let behind = rest.trim_start_matches(|c: char| c.is_ascii_digit());
    let is_number = behind.len() < rest.len();
    let mut words = behind.split_ascii_whitespace().take(2);
    let (first, second) = (words.next(), words.next().unwrap_or_default());
    let is_line = |word: &str| {
        word.starts_with("active_anon:")
            || word.starts_with("hugepages_total=")
            || second.starts_with("free:")
            || second == "per-cpu:"
            || (word.ends_with(':') && (second.contains('*') || second == "empty"))
    };
    is_number && behind.starts_with(' ') && first.is_some_and(is_line)
}

/// Whether the text behind `[` goes on as a row of the table of tasks, or as its heading.
fn is_task(rest: &str) -> bool {
    // A PID has at most seven digits.
    let Some(end) = rest.bytes().take(12).position(|b| b == b']') else {
        return false;
    };
    let (pid, row) = rest.split_at(end);
    let (pid, row) = (pid.trim(), row.get(1..).unwrap_or_default());
    if pid == "pid" {
        return row.trim_start().starts_with("uid");
    }
    let is_number = |word: &str| {
        let digits = word.strip_prefix('-').unwrap_or(word);
        !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit())
    };
    is_number(pid)
        && row
            .split_ascii_whitespace()
            .take(6)
            .filter(|w| is_number(w))
            .count()
            == 6
}

/// Whether `active_anon:` begins the counters of the host, which have no unit, or is in the line of a zone.
fn is_counters(before: &str, rest: &str) -> bool {
    let behind = rest.trim_start_matches(|c: char| c.is_ascii_digit());
    behind.len() < rest.len()
        && (behind.is_empty() || behind.starts_with(' '))
        && !behind.trim_start().starts_with("kB")
        && !before.ends_with("in")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_found_within_a_line() {
        for (line, expected) in [
            (
                "saw `Out of memory: Killed process 12 (java)`",
                &["Out of"][..],
            ),
            ("| a | Killed process 12 (java) total-vm:1kB |", &["Killed"]),
            ("\"java invoked oom-killer: gfp_mask=0xd0\"", &["java"]),
            (
                "we had kworker/u8:2: page allocation failure: order:1",
                &["kworker/u8:2"],
            ),
            (
                "Mem-Info: active_anon:1 inactive_anon:2 Node 0 DMA free:1kB min:2kB active_anon:3kB",
                &["Mem-Info", "active_anon:1", "Node 0 DMA"],
            ),
            (
                "x memory+swap: usage 1kB, limit 2kB, failcnt 0",
                &["memory+swap"],
            ),
            (
                "5 pages reserved[ 12]     0    12  100  20  3  0   0 sh",
                &["5 pages", "[ 12]"],
            ),
            ("Node 0 is full, Node memory", &[]),
            ("[12] 0 12 of 14", &[]),
            ("nothing of the kernel", &[]),
        ] {
            let found: Vec<&str> = starts(line).into_iter().map(|at| &line[at..]).collect();
            assert_eq!(found.len(), expected.len(), "{line}: {found:?}");
            let pairs = found.iter().zip(expected);
            assert!(
                pairs.clone().all(|(found, start)| found.starts_with(start)),
                "{line}: {found:?}"
            );
        }
    }
}
