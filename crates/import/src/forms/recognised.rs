//! Text about memory that is recognised and not used: of other systems, of programs' own limits, of single objects. The answer
//! names it, and the command that gives what is needed.

use super::Form;
use crate::block::{BlockReader, TextBlock};
use crate::text::line_scan::BlockStart;

pub(super) const FORM: Form = Form { name: "recognised", begins: BlockStart::with(&WORDS), read };

/// A text: how its first line begins (blanks aside), what it is.
const TEXTS: [(&str, &str); 13] = [
    ("Mach Virtual Memory Statistics", "vm_stat of macOS: another system, not used"),
    ("PhysMem: ", "top of macOS: another system, not used"),
    (
        "Total Physical Memory:",
        "systeminfo of Windows: another system, not used; in WSL, free shows the virtual machine's \
         memory",
    ),
    (
        "Native Memory Tracking:",
        "memory of a JVM as it counts itself (NMT); memtide explain PID --runtime-stats FILE reads \
         it",
    ),
    (
        "___ Begin jemalloc statistics",
        "statistics of jemalloc; memtide explain PID --runtime-stats FILE reads them",
    ),
    (
        "BUFFER POOL AND MEMORY",
        "memory of InnoDB as it counts itself; how much of it is in RAM shows ps -o rss",
    ),
    (
        "STAT limit_maxbytes",
        "limits of memcached as it counts itself; how much of it is in RAM shows ps -o rss",
    ),
    (
        "unreferenced object 0x",
        "kmemleak: an object of the kernel that nothing refers to; how much such objects hold \
         shows /proc/slabinfo",
    ),
    (
        "Page allocated via order ",
        "page_owner: where a page was allocated; sums of it by stack show who holds most",
    ),
    (
        "Per-zone buddy allocator's information",
        "free blocks as corelens prints them from a dump; /proc/buddyinfo of a live host is read",
    ),
    (
        "TopMemoryContext: ",
        "memory contexts of a PostgreSQL process; how much of it is in RAM shows ps -o rss",
    ),
    ("Total online memory:", "lsmem: memory that the kernel was given; free shows its use"),
    ("Total Memory: ", "docker info: RAM of the host; free shows its use"),
];

/// Systems that are not Linux, as the texts name them.
const OTHER_SYSTEMS: [&str; 3] = ["macOS", "Windows", "FreeBSD"];

const GO_MEM_STATS: &str = "runtime.MemStats of a Go program as it counts itself; how much of it \
                            is in RAM shows ps -o rss";

/// Lines anywhere: what is in them, what it is.
const LINES: [(&str, &str); 7] = [
    ("TotalAlloc", GO_MEM_STATS),
    ("HeapAlloc", GO_MEM_STATS),
    (
        ", active: ",
        "totals of jemalloc; memtide explain PID --runtime-stats FILE reads its whole statistics",
    ),
    (
        " blocked for more than ",
        "a task that waits in the kernel (hung task): for what is not shown; /proc/pressure shows \
         whether it is memory",
    ),
    (
        "swiotlb buffer is full",
        "the bounce buffer of DMA is full (swiotlb=): memory set aside at boot, not RAM as a whole",
    ),
    (
        "Metric Memory Usage =",
        "an alarm of vCenter: what the hypervisor counts has the guest's page cache in it; free in \
         the guest shows what is available",
    ),
    ("M Wired", "top of FreeBSD: another system, not used"),
];

/// The first words of both.
const WORDS: [&str; 20] = {
    let mut words = [""; 20];
    let mut at = 0;
    while at < TEXTS.len() {
        words[at] = TEXTS[at].0;
        at += 1;
    }
    while at < words.len() {
        words[at] = LINES[at - TEXTS.len()].0;
        at += 1;
    }
    words
};

fn read(input: &mut BlockReader<'_>) -> Option<TextBlock> {
    let line = input.lines.first()?.trim();
    let begins = TEXTS.iter().find(|(start, _)| line.starts_with(start));
    let (_, what) = begins.or_else(|| LINES.iter().find(|(word, _)| line.contains(word)))?;
    let other =
        OTHER_SYSTEMS.iter().find(|name| what.contains(&format!(" of {name}: another system")));
    Some(TextBlock {
        what: (*what).to_owned(),
        lines: 1,
        other_system: other.copied().unwrap_or_default(),
        ..TextBlock::default()
    })
}

#[cfg(test)]
mod tests {
    use crate::testing::{paste, survives};

    #[test]
    fn the_answer_names_what_is_not_used() {
        for (text, name) in [
            (
                "Mach Virtual Memory Statistics: (page size of 16384 bytes)\nPages free: 12.\n",
                "macOS",
            ),
            ("Mem: 1234M Active, 500M Inact, 2048M Wired, 300M Free\n", "FreeBSD"),
            ("Native Memory Tracking:\n\nTotal: reserved=3555728KB\n", "NMT"),
            ("[12.6] INFO: task jbd2/sda1-8:287 blocked for more than 120 seconds.\n", "hung task"),
        ] {
            let opened = paste(text);
            assert!(opened.timeline.is_empty(), "{text}");
            let inputs = &opened.origin.inputs;
            assert!(inputs.iter().any(|input| input.what.contains(name)), "{text}: {inputs:?}");
            let is_other = ["macOS", "FreeBSD"].contains(&name);
            let other = if is_other { name } else { "" };
            assert_eq!(inputs[0].other_system, other);
            survives(text);
        }
    }
}
