//! The words by which a log search recognises lines of reports before they are parsed.

/// Words that at least one line of every report has, and other lines almost never.
pub const SIGNATURES: [&str; 16] = [
    "oom-kill",
    "Mem-Info",
    "Mem-info",
    "page allocation failure",
    "page allocation stalls",
    "vmalloc: allocation failure",
    "vmalloc error: ",
    "SLUB: Unable to allocate",
    "SLAB: Unable to allocate",
    "Killed process",
    "Kill process",
    "ut of memory: Kill",
    "order allocation failed",
    "VM: killing process",
    "OOM kill of PID",
    "memory allocation deadlock",
];

/// Parts of the signatures: each signature has one, so that a text is searched for these alone.
pub const ANCHORS: [&str; 4] = ["kill", "Kill", "Mem-", "lloc"];

/// Words of lines that continue a report.
pub const CONTINUES: [&str; 7] =
    ["Node ", "Call Trace", "Tasks state", "oom_score_adj", "pages", "hugepages_", " kB"];

/// Words of lines that a report can begin with, even if its head was cut off. Rows of the table of tasks have none.
pub const BEGINS: [&str; 62] = [
    "how Memory",
    "hugepages_",
    "oom-kill",
    "oom_kill",
    "oom_reaper",
    "out_of_memory",
    "ut of memory",
    "ut of Memory",
    "No available memory",
    "Kernel oom",
    "llocation failure",
    "llocation stalls",
    "llocation error",
    "vmalloc error",
    "SLUB: ",
    "SLAB: ",
    "Mem-",
    "total_vm",
    "Killed process",
    "Kill process",
    "kill process",
    "killed as a result",
    "are going to be killed",
    "emory cgroup ",
    "emory: usage ",
    "swap: usage ",
    "kmem: usage ",
    "Tasks state",
    "anon:",
    "ctive:",
    "unevictable:",
    "slab_reclaimable:",
    "mapped:",
    "pagetables:",
    "free:",
    "lowmem_reserve[]",
    "protections[]",
    "kB (",
    "*4kB",
    "pagecache pages",
    "in swap cache",
    "swap cached",
    "pages RAM",
    "pages of RAM",
    "pages reserved",
    "reserved pages",
    "pages hwpoisoned",
    "cma reserved",
    "pages HighMem",
    "pages of HIGHMEM",
    "pages shared",
    "pages non-shared",
    "pagetable cache",
    "Free swap",
    "Total swap",
    "Swap cache",
    "deadlocked on memory",
    "order allocation failed",
    "VM: killing process",
    "OOM kill of PID",
    "memory allocation deadlock",
    "dump_header+",
];

/// Words of the other lines of a report that are recognised alone.
pub const WITHIN: [&str; 19] = [
    "_file:",
    "dirty:",
    "writeback:",
    "unstable:",
    "bounce:",
    "shmem:",
    "slab:",
    "reclaimable:",
    "zspages:",
    "free_pcp:",
    "free_cma:",
    " hi:",
    " high ",
    ": empty",
    "per-cpu:",
    " pages",
    "slab info:",
    "allocations:",
    "mems_allowed=",
];

/// Words of lines so long that terminals and mails break them.
pub const LONG_LINES: [&str; 9] = [
    " free:",
    "anon:",
    "*",
    "oom-killer",
    "gfp",
    "mode:",
    "Killed process",
    "hugepages_",
    "usage ",
];

/// Whether a line has a row of the table of tasks: `[  812]     0   812   9142 …` after any prefix.
pub fn has_task(line: &[u8]) -> bool {
    line.split(|b| *b == b']').skip(1).any(|rest| {
        let words = rest.split(u8::is_ascii_whitespace).filter(|w| !w.is_empty());
        let numbers = words.take_while(|w| w.iter().all(u8::is_ascii_digit));
        numbers.take(4).count() == 4
    })
}

#[cfg(test)]
mod tests {
    use super::super::head;
    use super::*;

    #[test]
    fn every_reason_that_a_head_names_has_a_mark_to_be_searched_by() {
        for reason in head::FAILURES.iter().chain(&head::SLAB_FAILURES) {
            assert!(SIGNATURES.iter().any(|mark| reason.contains(mark)), "{reason}");
        }
        for mark in SIGNATURES {
            let begins = BEGINS.iter().any(|part| mark.contains(part));
            assert!(begins, "{mark} is searched for and never read");
        }
    }

    #[test]
    fn every_signature_has_a_part_that_is_searched_for() {
        for signature in SIGNATURES {
            let has_part = ANCHORS.iter().any(|part| signature.contains(part));
            assert!(has_part, "{signature}");
        }
    }
}
