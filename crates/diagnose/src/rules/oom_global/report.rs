//! A kernel report of a kill for a shortage of the host.

use timeline::Stretch;
use timeline::signals::{MEM_FREE, MEM_TOTAL, SWAP_FREE, SWAP_TOTAL};
use units::Bytes;

use super::RULE;
use crate::evidence::Evidence;
use crate::finding::Fix;
use crate::finding::{Finding, Severity};
use crate::measures::readings::AVAILABLE_LOW_SHARE;
use crate::oom::{self, Explained, Filler, OomCause, SwapState};

pub(super) fn is_the_hosts(explained: &Explained<'_>) -> bool {
    explained.is_kill() && !explained.cause.is_not_the_hosts()
}

/// Why the last report is not about a kill of the host; `None` without any report.
pub(super) fn why_not_the_hosts(cx: &Evidence<'_>) -> Option<&'static str> {
    Some(match oom::last(cx, |_| true)?.cause {
        OomCause::ByHand => "the kill was requested by hand (oom-manual)",
        OomCause::GroupLimit(_) => {
            "the kernel report is about a cgroup limit (oom-cgroup) and says nothing about the host"
        }
        OomCause::Confined(_) => "the allocation was confined to some nodes (oom-constrained)",
        _ => "an allocation failed, and nothing was killed for it",
    })
}

/// The finding of the last report of a stretch; `None` without a report.
pub(super) fn finding(cx: &Evidence<'_>, stretch: &Stretch) -> Option<Finding> {
    let reports = oom::within(cx, stretch, is_the_hosts);
    let one = reports.last()?;
    let finding = RULE.found(severity(one), title(cx, one)).cause(cause(one));
    let finding = oom::tell_all(cx, stretch, &reports, oom::measures(cx, one, finding));
    Some(completed(cx, one, finding))
}

/// The severity: where the host had memory, another rule explains the kill.
fn severity(one: &Explained<'_>) -> Severity {
    match one.cause {
        OomCause::LowZone | OomCause::CmaOnly | OomCause::NoBlock => Severity::Info,
        _ if !one.report.shows_scope() => Severity::Info,
        _ => Severity::Critical,
    }
}

fn title(cx: &Evidence<'_>, one: &Explained<'_>) -> String {
    format!("{}{} {}{}.", oom::kill(one), oom::among(cx, one.report), because(cx, one), chosen(one))
}

/// Adds what comes after the report's lines.
fn completed(cx: &Evidence<'_>, one: &Explained<'_>, finding: Finding) -> Finding {
    let is_secondary = one.holders.many_processes_program().is_some() || is_not_programs(one);
    let finding = finding.with(compared(one).filter(|_| is_secondary), |finding, compared| {
        finding.with_line(format!("of single processes, {compared}"))
    });
    let finding =
        remedy(cx, finding, one).when(one.cause.is_shortage(), |finding| ruled_out(finding, one));
    let open = match one.cause {
        OomCause::Unknown(missing) => format!("missing: {missing}"),
        _ => String::new(),
    };
    finding
        .verify(format!(
            "no further kill in the kernel log (journalctl -k -g 'Out of memory'); MemAvailable \
             stays above {AVAILABLE_LOW_SHARE} of RAM over a work cycle"
        ))
        .affects(oom::victim(one))
        .affects(one.holders.affected(4))
        .sure(oom::sure(one, if one.report.shows_scope() { 0.98 } else { 0.5 }, &open))
}

/// The second half of the title: why memory ran out.
fn because(cx: &Evidence<'_>, one: &Explained<'_>) -> String {
    let at = |signal| cx.timeline.at(signal, one.index);
    match one.cause {
        OomCause::UsedUp { swap, by } => {
            let used_up = match swap {
                SwapState::Full => "because RAM and swap were used up".to_owned(),
                SwapState::None => "because RAM was used up, and there is no swap".to_owned(),
                SwapState::Unknown => "because RAM was used up".to_owned(),
                SwapState::Room => match (at(SWAP_FREE), at(SWAP_TOTAL)) {
                    (Some(free), Some(total)) => {
                        format!("because RAM was used up, although {free} of {total} swap was free")
                    }
                    _ => "because RAM was used up, although swap was free".to_owned(),
                },
            };
            match (by.words(), at(MEM_TOTAL)) {
                (Some((bytes, what)), Some(ram)) => {
                    format!("{used_up}: {bytes} of {ram} was {what}")
                }
                _ => used_up,
            }
        }
        OomCause::LowZone => "although memory was free, but not in the requested zone".to_owned(),
        OomCause::CmaOnly => "although memory was free, but reserved for CMA".to_owned(),
        OomCause::NoBlock => "although memory was free, but not in one block".to_owned(),
        _ if !one.report.shows_scope() => {
            "for lack of memory; this line does not show whether the host or a cgroup ran out"
                .to_owned()
        }
        _ => without_a_reason(one),
    }
}

/// A report that does not show why: what was free, if that was much, else nothing more.
fn without_a_reason(one: &Explained<'_>) -> String {
    let host = &one.report.host;
    let free = oom::free_share(host).filter(|share| *share >= oom::MUCH_FREE);
    match (free, host.get(MEM_FREE), host.get(MEM_TOTAL)) {
        (Some(_), Some(free), Some(ram)) => {
            format!("although {free} of {ram} RAM was free; the report does not show why")
        }
        _ => "for lack of memory; the report does not show why".to_owned(),
    }
}

/// A sentence on the program with most memory, if it has many processes; else on whether the kernel chose the largest.
fn chosen(one: &Explained<'_>) -> String {
    one.holders
        .many_processes_program()
        .map(|program| format!("most was used by {}", program.words()))
        .or_else(|| compared(one).filter(|_| !is_not_programs(one)))
        .map_or_else(String::new, |text| format!("; {text}"))
}

/// Whether something other than programs filled RAM, so that the choice of the victim does not matter.
fn is_not_programs(one: &Explained<'_>) -> bool {
    matches!(one.cause, OomCause::UsedUp { by, .. } if by.words().is_some())
}

/// The victim compared with the largest process.
fn compared(one: &Explained<'_>) -> Option<String> {
    let victim = one.holders.victim.as_ref()?;
    victim.compared(&one.holders, one.report)
}

fn cause(one: &Explained<'_>) -> &'static str {
    match one.cause {
        OomCause::UsedUp { by: Filler::Slab(_), .. } => {
            "Kernel objects that cannot be reclaimed filled RAM; killing programs frees little of \
             it."
        }
        OomCause::UsedUp { by: Filler::PageTables(_), .. } => {
            "Page tables filled RAM: many processes map the same large segment with small pages."
        }
        OomCause::UsedUp { by: Filler::Shared(_), .. } => {
            "Shared memory and files in tmpfs filled RAM; they stay when the process that created \
             them is killed."
        }
        OomCause::UsedUp { by: Filler::HugePages(_), .. } => {
            "The huge page pool takes RAM that nothing else can use."
        }
        OomCause::UsedUp { by: Filler::Unaccounted(_), .. } => {
            "Memory that the kernel does not count filled RAM: a driver, a balloon, the \
             hypervisor, ZFS."
        }
        OomCause::UsedUp { by: Filler::Locked(_), .. } => {
            "Programs locked memory in RAM (mlock); neither swap nor reclaim can take it."
        }
        OomCause::UsedUp { by: Filler::Files(_), .. } => {
            "Page cache filled RAM and could not be evicted in time: it was dirty or in use."
        }
        OomCause::UsedUp { swap: SwapState::Room, .. } => {
            "The memory that filled RAM could not be swapped out in time: it is locked, or kernel \
             memory, or swap is too slow."
        }
        OomCause::UsedUp { swap: SwapState::Full, .. } => {
            "Memory that cannot be reclaimed filled RAM, and swap could not take more."
        }
        OomCause::UsedUp { swap: SwapState::None, .. } => {
            "Memory that cannot be reclaimed filled RAM, and there is no swap for it."
        }
        OomCause::UsedUp { .. } => "Memory that cannot be reclaimed filled RAM.",
        OomCause::LowZone | OomCause::CmaOnly => {
            "The allocation could use only a part of memory, and that was full."
        }
        OomCause::NoBlock => {
            "Free memory was fragmented: its blocks were smaller than the allocation."
        }
        _ => "The report does not show what filled memory.",
    }
}

fn ruled_out(finding: Finding, one: &Explained<'_>) -> Finding {
    let small = oom::too_small(&one.report.host).into_iter();
    let finding = small.fold(
        finding.not("oom-cgroup", "the report names no cgroup limit"),
        |finding, (rule, why)| finding.not(rule, why),
    );
    match &one.asked {
        Some(asked) if !one.zones.is_empty() => finding
            .not(
                "lowmem-zone-exhausted",
                "the free memory of low zones is their reserve, which this allocation cannot use",
            )
            .not(
                "external-fragmentation",
                if asked.order == 0 {
                    "the allocation was a single page"
                } else {
                    "the zones were short of memory, fragmented or not"
                },
            ),
        _ => finding,
    }
}

/// The first step and its command, by what filled memory.
fn first_step(cause: &OomCause) -> (&'static str, &'static str) {
    match cause {
        OomCause::UsedUp { by: Filler::Slab(_), .. } => (
            "Find out which kernel objects grow, and what creates them.",
            "slabtop -o -s c | head -20",
        ),
        OomCause::UsedUp { by: Filler::PageTables(_), .. } => (
            "Use huge pages for large shared memory, or fewer processes.",
            "grep -E 'PageTables|HugePages' /proc/meminfo; ps -eo rss,comm --sort=-rss | head",
        ),
        OomCause::UsedUp { by: Filler::Shared(_), .. } => (
            "Find the files and segments, delete those no longer needed, and limit each tmpfs \
             (size=).",
            "df -h -t tmpfs; ipcs -m -u; find /dev/shm /run /tmp -xdev -size +10M",
        ),
        OomCause::UsedUp { by: Filler::HugePages(_), .. } => (
            "Make the huge page pool as large as its use.",
            "grep -E 'HugePages|Hugetlb' /proc/meminfo",
        ),
        OomCause::UsedUp { by: Filler::Unaccounted(_), .. } => (
            "Find what uses memory without being counted: drivers, a balloon, ZFS.",
            "memtide where; cat /proc/spl/kstat/zfs/arcstats 2>/dev/null | grep -w size",
        ),
        OomCause::UsedUp { by: Filler::Locked(_), .. } => (
            "Find out which processes lock memory, and limit them (LimitMEMLOCK).",
            "grep -H VmLck /proc/[0-9]*/status | sort -nk2 | tail",
        ),
        OomCause::UsedUp { by: Filler::Files(_), .. } => (
            "Check whether it waits for a slow disk: compare Dirty and Writeback with the disk's \
             throughput.",
            "grep -E 'Dirty|Writeback|Unevictable' /proc/meminfo; iostat -x 5 3",
        ),
        OomCause::Unknown(_) => (
            "Give memtide the whole report: from the line with \"invoked oom-killer\" to the one \
             with \"Killed process\".",
            "journalctl -k -b --no-pager | memtide check -",
        ),
        _ => (
            "Check whether it grows again, and cap it before it fills the host.",
            "memtide check --for 10m",
        ),
    }
}

fn remedy(cx: &Evidence<'_>, finding: Finding, one: &Explained<'_>) -> Finding {
    let (what, look) = first_step(&one.cause);
    let finding = finding.fix(Fix::say(what).inspect(look)).fix(Fix::cap(
        cx,
        one.index,
        "Cap what grew: then only it is throttled or killed.",
    ));
    let finding = match one.cause {
        OomCause::UsedUp { swap: SwapState::None, .. } => finding.fix(Fix::swap_file(
            "Add swap as a buffer; this host has none.",
            "/swapfile",
            Bytes::from_gib(2),
        )),
        _ => finding,
    };
    finding.fix(Fix::say(
        "Protect the service that must survive: OOMScoreAdjust=-500 in its unit file; choom sets \
         it for a running process.",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::Inspection;
    use crate::oom::testing::Report;
    use crate::rules::testing::{Case, clear, found};
    use timeline::signals::{MEM_ANON, MEM_SHMEM};

    #[test]
    fn the_title_names_victim_reason_and_choice() {
        let finding = found(RULE, &Case::of_report(Report::of_a_host()));
        assert_eq!(finding.severity, Severity::Critical);
        assert_eq!(
            finding.title,
            "The kernel killed doxygen (PID 20, 8.8 GiB resident) because RAM and swap were used up; it \
             was the largest process."
        );
        assert_eq!(finding.confidence.word(), "confirmed");
        let has_line = |what: &str| finding.evidence.iter().any(|e| e.text.contains(what));
        assert!(has_line("asked for: 4 KiB (order 0)"), "{:?}", finding.evidence);
        assert!(has_line("Normal: 60 MiB free, 48 KiB below its watermark"));
        assert!(has_line("49 MiB are kept for requests that have no higher zone"));
        assert!(has_line("by program: doxygen 8.8 GiB"));
    }

    #[test]
    fn the_title_names_what_else_than_programs_fills_ram() {
        let report =
            Report::of_a_host().host(MEM_ANON, 2_000_000).host(MEM_SHMEM, 11_000_000).swap(0, 0);
        let finding = found(RULE, &Case::of_report(report));
        assert!(
            finding.title.contains("there is no swap: 10 GiB of 15 GiB was shared memory"),
            "{}",
            finding.title
        );
        let Inspection::Commands(commands) = &finding.fixes[0].inspect else {
            panic!("{:?}", finding.fixes[0]);
        };
        assert!(commands.contains("df -h -t tmpfs"));
    }

    #[test]
    fn causes_that_are_too_small_are_ruled_out() {
        let report = Report::of_a_host().host(MEM_SHMEM, 600_000);
        let finding = found(RULE, &Case::of_report(report));
        assert!(finding.ruled_out.iter().any(|r| r.id == "shmem-growth"));
        let report = Report::of_a_host().host(MEM_SHMEM, 9_000_000);
        let finding = found(RULE, &Case::of_report(report));
        assert!(finding.ruled_out.iter().all(|r| r.id != "shmem-growth"));
    }

    #[test]
    fn the_kill_line_alone_gives_no_reason() {
        let line = || Report::default().killing(5, "java");
        let bare = found(RULE, &Case::of_report(line()));
        assert_eq!(bare.severity, Severity::Info);
        assert!(bare.title.contains("whether the host or a cgroup ran out"));
        // A line that starts with `Out of memory:` is about the host.
        let mut report = line();
        report.0.constraint = Some(timeline::kernel_report::Constraint::None);
        let hosts = found(RULE, &Case::of_report(report));
        assert_eq!(hosts.severity, Severity::Critical);
        assert!(hosts.title.contains("does not show why"), "{}", hosts.title);
    }

    #[test]
    fn a_title_without_a_reason_tells_of_much_free_memory() {
        let mut report = Report::default()
            .killing(5, "java")
            .zone("DMA", 519_112, 10_428, 968_704, &[0, 0, 3188, 3188])
            .host(MEM_TOTAL, 3_928_348)
            .host(MEM_FREE, 519_112);
        report.0.constraint = Some(timeline::kernel_report::Constraint::None);
        let title = found(RULE, &Case::of_report(report)).title;
        assert!(title.contains("although 507 MiB of 3.7 GiB RAM was free"), "{title}");
        assert!(!title.contains("used up") && !title.contains("lack of"), "{title}");
    }

    #[test]
    fn clear_on_cgroup_limits_and_failed_allocations() {
        clear(RULE, &Case::of_report(Report::of_a_group(102_400, 102_400)));
        clear(RULE, &Case::of_report(Report::of_a_host().asking(0xa20, 0).failed()));
    }

    #[test]
    fn several_kills_are_listed() {
        let case = Case::of_reports([Report::of_a_host(), Report::of_a_host()]);
        let finding = found(RULE, &case);
        assert!(finding.title.contains(", one of 2 kills in this source, because"));
        assert!(
            finding
                .evidence
                .iter()
                .any(|e| e.text.contains("2 such reports in this source; killed: doxygen ×2")),
            "{:?}",
            finding.evidence
        );
    }
}
