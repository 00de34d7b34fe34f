//! Where messages of a kernel report begin within a line: behind prose, a table bar, another message.

use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, AhoCorasickKind};

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

/// Words of which a message within a line may begin, by what follows or comes before.
const OTHERS: [&str; 3] = ["Node ", "[", "active_anon:"];

/// A search for many words at once.
#[derive(Debug)]
pub(crate) struct WordSearch {
    /// `None` if the words cannot be searched for at once.
    automaton: Option<AhoCorasick>,
    words: Vec<&'static str>,
}

impl WordSearch {
    pub(crate) fn new(words: &[&'static str]) -> Self {
        let automaton = AhoCorasick::builder().kind(Some(AhoCorasickKind::DFA)).build(words);
        Self { automaton: automaton.ok(), words: words.to_vec() }
    }

    /// Whether a text has one of the words.
    pub(crate) fn is_in(&self, text: &[u8]) -> bool {
        match &self.automaton {
            Some(automaton) => automaton.is_match(text),
            None => {
                let mut words = self.words.iter();
                words.any(|word| memchr::memmem::find(text, word.as_bytes()).is_some())
            }
        }
    }

    /// Calls `found` with each word and its place.
    fn places(&self, text: &str, mut found: impl FnMut(&'static str, usize)) {
        let Some(automaton) = &self.automaton else {
            for word in &self.words {
                text.match_indices(word).for_each(|(at, _)| found(word, at));
            }
            return;
        };
        for place in automaton.find_overlapping_iter(text) {
            if let Some(word) = self.words.get(place.pattern().as_usize()) {
                found(word, place.start());
            }
        }
    }
}

/// The offsets at which messages begin, in order.
pub(crate) fn starts(text: &str) -> Vec<usize> {
    static SEARCH: LazyLock<WordSearch> = LazyLock::new(|| {
        WordSearch::new(&[&FIRST[..], &BEHIND_A_NAME, &BEHIND_A_NUMBER, &OTHERS].concat())
    });
    let mut starts = Vec::new();
    SEARCH.places(text, |word, at| {
        let (before, found) = text.split_at(at);
        let behind = found.get(word.len()..).unwrap_or_default();
        starts.extend(match word {
            "Node " => is_node(behind).then_some(at),
            "[" => is_task(behind).then_some(at),
            "active_anon:" => is_counters(before, behind).then_some(at),
            _ if BEHIND_A_NAME.contains(&word) => name_start(before),
            _ if BEHIND_A_NUMBER.contains(&word) => number_start(before),
            _ => (!is_middle(before, found)).then_some(at),
        });
    });
    starts.sort_unstable();
    starts.dedup();
    starts
}

/// Whether a word is in the middle of a message: `Out of memory: Killed process`, `memory+swap: usage`.
fn is_middle(before: &str, found: &str) -> bool {
    (before.ends_with([':', '+']) || before.ends_with(": "))
        && ["Kill", "kill", "swap"].iter().any(|start| found.starts_with(start))
}

/// The start of the name at the end of a text: the last word, without quotation marks.
fn name_start(before: &str) -> Option<usize> {
    let word = before.rsplit([' ', '"', '\'', '`', '|', '>']).next()?;
    (!word.is_empty()).then(|| before.len() - word.len())
}

/// Where the number at the end of a text begins.
fn number_start(before: &str) -> Option<usize> {
    let start = before.trim_end_matches(|c: char| c.is_ascii_digit()).len();
    (start < before.len()).then_some(start)
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
    is_number(pid) && row.split_ascii_whitespace().take(6).filter(|w| is_number(w)).count() == 6
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
            ("saw `Out of memory: Killed process 12 (java)`", &["Out of"][..]),
            ("| a | Killed process 12 (java) total-vm:1kB |", &["Killed"]),
            ("\"java invoked oom-killer: gfp_mask=0xd0\"", &["java"]),
            ("we had kworker/u8:2: page allocation failure: order:1", &["kworker/u8:2"]),
            (
                "Mem-Info: active_anon:1 inactive_anon:2 Node 0 DMA free:1kB min:2kB \
                 active_anon:3kB",
                &["Mem-Info", "active_anon:1", "Node 0 DMA"],
            ),
            ("x memory+swap: usage 1kB, limit 2kB, failcnt 0", &["memory+swap"]),
            ("5 pages reserved[ 12]     0    12  100  20  3  0   0 sh", &["5 pages", "[ 12]"]),
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
