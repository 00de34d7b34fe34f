//! Facts of a process that no sample has: lines of `/proc/PID/status` of the form `Name:\tvalue`.
//!
//! The sizes of samples are read by [`ProcessFiles`](crate::ProcessFiles) from the same file. `NSpid` (4.1) lists the PID in every PID
//! namespace from the reader's inward; `CoreDumping` is of 4.15, `THP_enabled` of 5.0. Cost: one read of 1.4 KB.

use units::Bytes;

use crate::text;

/// Facts of a process; absent where this kernel does not print them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StatusFacts {
    /// Its PIDs, from the reader's PID namespace to its own; the last is the one that it knows itself.
    pub namespace_pids: Vec<u32>,
    /// Its effective user.
    pub uid: Option<u32>,
    /// Number of threads.
    pub threads: Option<u64>,
    /// Whether the kernel writes a core dump of it now.
    pub core_dumping: Option<bool>,
    /// Whether it may get transparent huge pages (`PR_SET_THP_DISABLE`).
    pub thp_enabled: Option<bool>,
    /// The process that traces it, such as a debugger; 0: none.
    pub tracer: Option<u32>,
    /// Its page tables (`VmPTE`).
    pub page_tables: Option<Bytes>,
    /// Memory that it has locked (`VmLck`).
    pub locked: Option<Bytes>,
    /// Letter of its state: `R`, `S`, `D`, `T`, `Z`.
    pub state: Option<char>,
}

/// Returns the effective user in a text; nothing is allocated.
pub(crate) fn uid(text: &[u8]) -> Option<u32> {
    u32::try_from(words(text, b"Uid:")?.nth(1)??).ok()
}

/// Whether the process is in execve(2), after it left its memory: it has a stack, and no program yet. Nothing is allocated.
pub(crate) fn is_in_exec(text: &[u8]) -> bool {
    let kib = |name| words(text, name).and_then(|mut words| words.next()?);
    kib(b"VmSize:").is_some_and(|size| size > 0) && kib(b"VmExe:") == Some(0)
}

fn words<'a>(text: &'a [u8], name: &[u8]) -> Option<impl Iterator<Item = Option<u64>> + use<'a>> {
    let line = text::lines(text).find_map(|(_, line)| line.strip_prefix(name))?;
    Some(text::words(line).map(text::number))
}

impl StatusFacts {
    /// Returns the facts in a text. Malformed lines are absent facts.
    pub fn parse(text: &[u8]) -> Self {
        let mut facts = Self::default();
        for (_, line) in text::lines(text) {
            let Some(colon) = memchr::memchr(b':', line) else {
                continue;
            };
            let mut words = text::words(&line[colon + 1..]);
            let mut number = || words.next().and_then(text::number);
            match &line[..colon] {
                b"NSpid" => {
                    let pids = std::iter::from_fn(number).filter_map(|n| u32::try_from(n).ok());
                    facts.namespace_pids = pids.take(NAMESPACES_MAX).collect();
                }
                b"Uid" => {
                    let _real = number();
                    facts.uid = number().and_then(|n| u32::try_from(n).ok());
                }
                b"VmPTE" => facts.page_tables = number().map(Bytes::from_kib),
                b"VmLck" => facts.locked = number().map(Bytes::from_kib),
                b"Threads" => facts.threads = number(),
                b"TracerPid" => facts.tracer = number().and_then(|n| u32::try_from(n).ok()),
                b"CoreDumping" => facts.core_dumping = number().map(|n| n != 0),
                b"THP_enabled" => facts.thp_enabled = number().map(|n| n != 0),
                b"State" => {
                    let letter = words.next().and_then(<[u8]>::first);
                    facts.state = letter.filter(|c| c.is_ascii_alphabetic()).map(|c| *c as char);
                }
                _ => {}
            }
        }
        facts
    }
}

/// `MAX_PID_NS_LEVEL`: the kernel nests no deeper.
const NAMESPACES_MAX: usize = 33;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hostile;

    const TEXT: &[u8] = b"Name:\tNSpid: 9\\nUid: 1\nUmask:\t0022\nState:\tS (sleeping)\nTgid:\t103\nPid:\t103\nTracerPid:\t7\n\
        Uid:\t0\t33\t0\t0\nGid:\t0\t0\t0\t0\nNSpid:\t103\t7\nVmSize:\t   43024 kB\nVmLck:\t       8 kB\nVmPTE:\t      64 kB\nCoreDumping:\t0\nTHP_enabled:\t1\n\
        Threads:\t12\n";

    #[test]
    fn lines_are_facts() {
        let facts = StatusFacts::parse(TEXT);
        let expected = StatusFacts {
            namespace_pids: vec![103, 7],
            uid: Some(33),
            threads: Some(12),
            core_dumping: Some(false),
            thp_enabled: Some(true),
            tracer: Some(7),
            page_tables: Some(Bytes::from_kib(64)),
            locked: Some(Bytes::from_kib(8)),
            state: Some('S'),
        };
        assert_eq!(facts, expected);
    }

    #[test]
    fn what_is_missing_or_malformed_is_absent() {
        assert_eq!(StatusFacts::parse(b""), StatusFacts::default());
        assert_eq!(StatusFacts::parse(b"Threads:\t-1\nState:\t\nUid\n"), StatusFacts::default());
    }

    #[test]
    fn no_text_makes_it_panic() {
        hostile::feed(TEXT, |text| {
            StatusFacts::parse(text);
        });
    }
}
