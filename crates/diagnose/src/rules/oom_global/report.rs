//! What a kernel report says of a kill by the host itself.

use timeline::Stretch;
use timeline::signals::{MEM_TOTAL, SWAP_FREE, SWAP_TOTAL};
use units::Bytes;

use super::RULE;
use crate::evidence::Evidence;
use crate::finding::Fix;
use crate::finding::{Finding, Severity};
use crate::oom::{self, Cause, Explained, Filler, SwapState};

pub(super) fn is_the_hosts(one: &Explained<'_>) -> bool {
    one.is_kill() && !one.cause.is_not_the_hosts()
}

/// What the last report says, where none is about a kill of the host; `None` without any report.
pub(super) fn why_not_the_hosts(cx: &Evidence<'_>) -> Option<&'static str> {
    Some(match oom::last(cx, |_| true)?.cause {
        Cause::ByHand => "the kill was requested by hand (oom-manual)",
        Cause::GroupLimit(_) => {
            "the kernel's report is about a control group's limit (oom-cgroup) and says nothing of the host"
        }
        Cause::Confined(_) => "the request was confined to some nodes (oom-constrained)",
        _ => "an allocation failed, and nobody was killed for it",
    })
}

/// What the last report of a stretch says; `None` where it has none.
pub(super) fn finding(cx: &Evidence<'_>, stretch: &Stretch) -> Option<Finding> {
    let reports = oom::within(cx, stretch, is_the_hosts);
    let one = reports.last()?;
    let finding = RULE.found(severity(one), title(cx, one)).cause(cause(one));
    let finding = oom::tell_all(cx, stretch, &reports, oom::measures(cx, one, finding));
    Some(rest(cx, one, finding))
}

/// Where the host had memory, the kill is told, but what is wrong is another rule's.
fn severity(one: &Explained<'_>) -> Severity {
    match one.cause {
        Cause::LowZone | Cause::CmaOnly | Cause::NoBlock => Severity::Info,
        _ if !one.report.shows_scope() => Severity::Info,
        _ => Severity::Critical,
    }
}

fn title(cx: &Evidence<'_>, one: &Explained<'_>) -> String {
    format!(
        "{}{} {}{}.",
        oom::kill(one),
        oom::among(cx, one.report),
        because(cx, one),
        chosen(one)
    )
}

/// What follows the report's lines.
fn rest(cx: &Evidence<'_>, one: &Explained<'_>, finding: Finding) -> Finding {
    let is_aside = one.holders.crowd().is_some() || is_beside(one);
    let finding = match compared(one).filter(|_| is_aside) {
        Some(compared) => finding.tells(format!("of single processes, {compared}")),
        None => finding,
    };
    let finding = remedy(cx, finding, one);
    let finding = if one.cause.is_shortage() {
        ruled_out(finding, one)
    } else {
        finding
    };
    let open = match one.cause {
        Cause::Unknown(missing) => format!("missing: {missing}"),
        _ => String::new(),
    };
    finding
        .verify(
            "no further report in the kernel log (journalctl -k -g 'Out of memory'); MemAvailable stays above 10 % of RAM over a work cycle",
        )
        .affects(oom::victim(one))
        .affects(one.holders.affected(4))
        .sure(oom::sure(one, if one.report.shows_scope() { 0.98 } else { 0.5 }, &open))
}

/// The second half of the title.
fn because(cx: &Evidence<'_>, one: &Explained<'_>) -> String {
    let at = |signal| cx.timeline.at(signal, one.index);
    match one.cause {
        Cause::UsedUp { swap, by } => {
            let used_up = match swap {
                SwapState::Full => "because RAM and swap were used up".to_owned(),
                SwapState::None => "because RAM was used up, and there is no swap".to_owned(),
                SwapState::Unknown => "because RAM was used up".to_owned(),
                SwapState::Room => match (at(SWAP_FREE), at(SWAP_TOTAL)) {
                    (Some(free), Some(total)) => {
                        format!(
                            "because RAM was used up, though {free} of {total} of swap were free"
                        )
                    }
                    _ => "because RAM was used up, though swap had room".to_owned(),
                },
            };
            match (by.words(), at(MEM_TOTAL)) {
                (Some((held, what)), Some(ram)) => {
                    format!("{used_up}: {held} of {ram} were {what}")
                }
                _ => used_up,
            }
        }
        Cause::LowZone => "although memory was free: not in the zone that was asked for".to_owned(),
        Cause::CmaOnly => "although memory was free: set aside for CMA".to_owned(),
        Cause::NoBlock => "although memory was free: not in one piece".to_owned(),
        _ if !one.report.shows_scope() => {
            "for want of memory; whether the host ran out or a control group, this line does not show"
                .to_owned()
        }
        _ => "for want of memory; the report does not show why".to_owned(),
    }
}

/// Who held most, where that was many processes of one program; else whether the kernel chose the largest.
fn chosen(one: &Explained<'_>) -> String {
    let crowd = one
        .holders
        .crowd()
        .map(|crowd| format!("most was held by {}", crowd.words()));
    let said = crowd.or_else(|| compared(one).filter(|_| !is_beside(one)));
    said.map_or_else(String::new, |said| format!("; {said}"))
}

/// Whether something else than programs filled RAM, so that which of them was killed is beside the point.
fn is_beside(one: &Explained<'_>) -> bool {
    matches!(one.cause, Cause::UsedUp { by, .. } if by.words().is_some())
}

/// How the victim compares with the largest.
fn compared(one: &Explained<'_>) -> Option<String> {
    let victim = one.holders.victim.as_ref()?;
    victim.compared(&one.holders, one.report)
}

fn cause(one: &Explained<'_>) -> &'static str {
    match one.cause {
        Cause::UsedUp {
            by: Filler::Slab(_),
            ..
        } => {
            "Kernel objects that cannot be dropped filled RAM; killing programs gives little of it back."
        }
        Cause::UsedUp {
            by: Filler::PageTables(_),
            ..
        } => "Page tables filled RAM: many processes map the same large memory in small pages.",
        Cause::UsedUp {
            by: Filler::Shared(_),
            ..
        } => {
            "Shared memory and files in tmpfs filled RAM; they stay when the process that made them is killed."
        }
        Cause::UsedUp {
            by: Filler::HugePages(_),
            ..
        } => "The pool of huge pages takes RAM that nothing else can use.",
        Cause::UsedUp {
            by: Filler::Unaccounted(_),
            ..
        } => {
            "Something that the kernel does not count took RAM: a driver, a balloon, a hypervisor's share, ZFS."
        }
        Cause::UsedUp {
            by: Filler::Locked(_),
            ..
        } => "Programs locked memory in RAM (mlock); neither swap nor reclaim may touch it.",
        Cause::UsedUp {
            by: Filler::Files(_),
            ..
        } => {
            "Page cache filled RAM and could not be dropped in time: it waited to be written, or was in use."
        }
        Cause::UsedUp {
            swap: SwapState::Room,
            ..
        } => {
            "What filled RAM could not be moved to swap in time: it is locked, or kernel memory, or swap is too slow."
        }
        Cause::UsedUp {
            swap: SwapState::Full,
            ..
        } => "Memory that cannot be dropped filled RAM, and swap could not take more.",
        Cause::UsedUp {
            swap: SwapState::None,
            ..
        } => "Memory that cannot be dropped filled RAM, and there is no swap for it.",
        Cause::UsedUp { .. } => "Memory that cannot be dropped filled RAM.",
        Cause::LowZone | Cause::CmaOnly => "Only a part of memory would do, and that was full.",
        Cause::NoBlock => "Free memory was in pieces smaller than what was asked for.",
        _ => "What filled memory is not shown.",
    }
}

fn ruled_out(finding: Finding, one: &Explained<'_>) -> Finding {
    let small = oom::too_small(&one.report.host).into_iter();
    let finding = small.fold(
        finding.not("oom-cgroup", "no limit of a control group is named"),
        |finding, (rule, why)| finding.not(rule, why),
    );
    match &one.asked {
        Some(asked) if !one.zones.is_empty() => finding
            .not(
                "lowmem-zone-exhausted",
                "what low zones have free is what they keep from requests like this",
            )
            .not(
                "external-fragmentation",
                if asked.order == 0 {
                    "a single page was asked for"
                } else {
                    "the zones were short of memory, whatever its pieces"
                },
            ),
        _ => finding,
    }
}

/// Where to look first, by what used memory up.
fn first_look(cause: &Cause) -> (&'static str, &'static str) {
    match cause {
        Cause::UsedUp {
            by: Filler::Slab(_),
            ..
        } => (
            "See which kernel objects grow, and what makes them.",
            "slabtop -o -s c | head -20",
        ),
        Cause::UsedUp {
            by: Filler::PageTables(_),
            ..
        } => (
            "Use huge pages for large shared memory, or fewer processes.",
            "grep -E 'PageTables|HugePages' /proc/meminfo; ps -eo rss,comm --sort=-rss | head",
        ),
        Cause::UsedUp {
            by: Filler::Shared(_),
            ..
        } => (
            "Find the files and segments, delete what is left over, and limit each tmpfs (size=).",
            "df -h -t tmpfs; ipcs -m -u; find /dev/shm /run /tmp -xdev -size +10M",
        ),
        Cause::UsedUp {
            by: Filler::HugePages(_),
            ..
        } => (
            "Make the pool of huge pages as large as what uses it.",
            "grep -E 'HugePages|Hugetlb' /proc/meminfo",
        ),
        Cause::UsedUp {
            by: Filler::Unaccounted(_),
            ..
        } => (
            "Find what takes memory without being counted: drivers, a balloon, ZFS.",
            "memtide where; cat /proc/spl/kstat/zfs/arcstats 2>/dev/null | grep -w size",
        ),
        Cause::UsedUp {
            by: Filler::Locked(_),
            ..
        } => (
            "See who locks memory, and limit it (LimitMEMLOCK).",
            "grep -H VmLck /proc/[0-9]*/status | sort -nk2 | tail",
        ),
        Cause::UsedUp {
            by: Filler::Files(_),
            ..
        } => (
            "See whether it waits for a slow disk: Dirty and Writeback beside what the disk writes.",
            "grep -E 'Dirty|Writeback|Unevictable' /proc/meminfo; iostat -x 5 3",
        ),
        Cause::Unknown(_) => (
            "Show memtide the whole report: from the line with \"invoked oom-killer\" on.",
            "journalctl -k -b --no-pager | memtide check -",
        ),
        _ => (
            "See whether it grows again, and cap it before it fills the host.",
            "memtide check --for 10m",
        ),
    }
}

fn remedy(cx: &Evidence<'_>, finding: Finding, one: &Explained<'_>) -> Finding {
    let (what, look) = first_look(&one.cause);
    let finding = finding.fix(Fix::say(what).look(look)).fix(Fix::cap(
        cx,
        one.index,
        "Cap what grew: it is then slowed down or killed alone.",
    ));
    let finding = match one.cause {
        Cause::UsedUp {
            swap: SwapState::None,
            ..
        } => finding.fix(Fix::swap_file(
            "Give the kernel swap as a buffer; here there is none.",
            "/swapfile",
            Bytes::from_gib(2),
        )),
        _ => finding,
    };
    finding.fix(Fix::say("Keep the service that must live from being chosen: OOMScoreAdjust=-500 in its unit file; choom sets it for a process that runs."))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oom::testing::Report;
    use crate::rules::testing::{Case, clear, found};
    use timeline::signals::{MEM_ANON, MEM_SHMEM};

    #[test]
    fn a_kill_names_its_victim_the_reason_and_the_choice() {
        let finding = found(RULE, &Case::of_report(Report::of_a_host()));
        assert_eq!(finding.severity, Severity::Critical);
        assert_eq!(
            finding.title,
            "The kernel killed doxygen (8.8 GiB resident) because RAM and swap were used up; it was the largest process."
        );
        assert_eq!(finding.confidence.word(), "confirmed");
        let told = |what: &str| finding.evidence.iter().any(|e| e.text.contains(what));
        assert!(told("asked for: 4 KiB (order 0)"), "{:?}", finding.evidence);
        assert!(told("Normal: 60 MiB free, 48 KiB below its mark"));
        assert!(told(
            "49 MiB are kept for requests that have no higher zone"
        ));
        assert!(told("by program: doxygen 8.8 GiB"));
    }

    #[test]
    fn what_else_than_programs_fills_ram_is_in_the_title() {
        let report = Report::of_a_host()
            .host(MEM_ANON, 2_000_000)
            .host(MEM_SHMEM, 11_000_000)
            .swap(0, 0);
        let finding = found(RULE, &Case::of_report(report));
        assert!(
            finding
                .title
                .contains("there is no swap: 10 GiB of 15 GiB were shared memory"),
            "{}",
            finding.title
        );
        assert!(finding.fixes[0].now.contains("df -h -t tmpfs"));
    }

    #[test]
    fn what_is_too_small_to_be_the_reason_is_ruled_out() {
        let report = Report::of_a_host().host(MEM_SHMEM, 600_000);
        let finding = found(RULE, &Case::of_report(report));
        assert!(finding.ruled_out.iter().any(|r| r.id == "shmem-growth"));
        let report = Report::of_a_host().host(MEM_SHMEM, 9_000_000);
        let finding = found(RULE, &Case::of_report(report));
        assert!(finding.ruled_out.iter().all(|r| r.id != "shmem-growth"));
    }

    #[test]
    fn the_line_of_the_kill_alone_is_a_kill_without_a_reason() {
        let line = || Report::default().killing(5, "java");
        let bare = found(RULE, &Case::of_report(line()));
        assert_eq!(bare.severity, Severity::Info);
        assert!(bare.title.contains("the host ran out or a control group"));
        // `Out of memory:` in front of it is the host's.
        let mut report = line();
        report.0.constraint = Some(timeline::kernel_report::Constraint::None);
        let hosts = found(RULE, &Case::of_report(report));
        assert_eq!(hosts.severity, Severity::Critical);
        assert!(hosts.title.contains("does not show why"), "{}", hosts.title);
    }

    #[test]
    fn limits_and_failed_requests_are_not_the_hosts_kills() {
        clear(RULE, &Case::of_report(Report::of_a_group(102_400, 102_400)));
        clear(
            RULE,
            &Case::of_report(Report::of_a_host().asking(0xa20, 0).failed()),
        );
    }

    #[test]
    fn several_kills_are_told_as_a_history() {
        let case = Case::of_reports([Report::of_a_host(), Report::of_a_host()]);
        let finding = found(RULE, &case);
        assert!(
            finding
                .title
                .contains(", one of 2 kills in this source, because")
        );
        assert!(
            finding.evidence.iter().any(|e| e
                .text
                .contains("2 such reports in this source; killed: doxygen ×2")),
            "{:?}",
            finding.evidence
        );
    }
}
