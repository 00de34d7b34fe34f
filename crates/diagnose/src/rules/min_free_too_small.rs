//! Atomic allocations fail because the reserve is used up.

use timeline::facts::{MIN_FREE, WATERMARK_SCALE};
use timeline::signals::MEM_TOTAL;

use crate::oom::{self, Explained, OomCause};
use crate::prelude::*;

declare_rule! {
    /// Atomic allocations of network or disk code failed: the reserve (`vm.min_free_kbytes`) is too small for its bursts.
    ///
    /// ## What it means
    /// Interrupt code cannot wait for reclaim. It allocates from free memory, down to a part of each zone's min
    /// watermark. A burst of packets can use that up before kswapd has refilled it; packets are then dropped, and the
    /// kernel logs a page allocation failure. Nothing is killed.
    /// ## How it is recognised
    /// A kernel report of a failed atomic allocation (GFP_ATOMIC) of a single page, or of a larger one while every zone
    /// was below its watermark. Allocations without access to the reserve (GFP_NOWAIT) have a fallback, so they are
    /// informational.
    /// ## Not this
    /// - `external-fragmentation`: a large allocation fails while enough memory is free.
    /// - `oom-global`: allocations that may wait fail too, and a process is killed.
    /// - `min-free-too-large`: the opposite.
    /// ## What to do
    /// Now and for good: raise `vm.min_free_kbytes` to {ADVISED} of RAM, {RESERVE_MAX} at most. Verify: no further
    /// failures, and no drops on the interface.
    /// ## References
    /// - kernel Documentation/admin-guide/sysctl/vm.rst, min_free_kbytes
    /// - kernel mm/page_alloc.c, __zone_watermark_ok
    pub(crate) RULE = { id: "min-free-too-small", since: "0.1.0", class: Setting,
        numbers: [ADVISED, RESERVE_MAX],
        trigger: trigger, story: story,
        cause: "A burst used free memory faster than kswapd reclaims it, and the reserve is the \
                only buffer for that.",
        verify: "no further failure in a work cycle: journalctl -k -g 'page allocation failure'; \
                 ip -s link: no drops",
        explained_by: &[Explains::Surely(MIN_FREE), Explains::Surely(WATERMARK_SCALE)],
    }
}

/// The advised value: 1 % of RAM, between 128 MiB and 1 GiB, and at most 4 % of RAM on small hosts, because kswapd's
/// watermarks are above it. All four are engineering choices; the kernel's default is lower on any host.
const ADVISED: Ratio = Ratio::from_percent(1.0);
const RESERVE_MIN: Bytes = Bytes::from_mib(128);
const RESERVE_MAX: Bytes = Bytes::from_gib(1);
const AT_MOST: Ratio = Ratio::from_percent(4.0);

fn trigger() -> Trigger {
    Trigger::Found(FoundBy {
        find: |cx| Ok(failures(cx).map(|one| Occurrence::on_host(one.index, one.index)).collect()),
        could: None,
        scope: Subjects::Host,
        none: Some(|_| clear!("no kernel report of a failed atomic allocation")),
    })
}

/// Reports of failed atomic allocations.
fn failures<'a>(cx: &Evidence<'a>) -> impl Iterator<Item = Explained<'a>> {
    oom::reports(cx).into_iter().filter(|failure| failure.cause == OomCause::AtomicReserve)
}

fn story<'a>(cx: &Evidence<'a>, incident: &Incident<'a>) -> Result<Outcome, Missing> {
    let at = incident.stretch.first;
    let Some(one) = failures(cx).filter(|one| one.index == at).last() else {
        return clear!("no kernel report of a failed atomic allocation");
    };
    let Some(asked) = &one.asked else {
        return clear!("the report does not show the allocation");
    };
    let is_open = one.zones.is_empty() && asked.order > 0;
    let reason = if asked.is_privileged && is_open {
        "the reserve for atomic allocations was used up, or had no block of that size"
    } else if asked.is_privileged {
        "the reserve for atomic allocations was used up"
    } else {
        "free memory was at its watermarks; such allocations have a fallback"
    };
    let by = one.report.invoker.as_ref();
    let by = by.map_or_else(String::new, |by| format!(" by {}", by.name));
    let title = Title::from(format!(
        "An atomic allocation{by} of {} failed: {reason}.",
        asked.size(one.report.page_size.or(cx.facts.page_size))
    ))
    .then("That alone kills nothing.");
    let finding = RULE.found(Severity::warning_if(asked.is_privileged), title);
    let finding = oom::measures(cx, &one, oom::explain(cx, &one, finding));
    let (value, open) = if one.zones.is_empty() {
        (if is_open { 0.6 } else { 0.75 }, "the report does not show the zones")
    } else {
        (0.92, "")
    };
    Ok(remedy(cx, &one, finding)
        .not("oom-global", "the kernel kills no process for such a request")
        .affects(one.holders.affected(3))
        .sure(oom::sure(&one, value, open))
        .into())
}

fn remedy(cx: &Evidence<'_>, one: &Explained<'_>, finding: Finding) -> Finding {
    let known = cx.facts.number(MIN_FREE);
    let finding = finding.with(known, |finding, now| {
        finding.shows_fact(MIN_FREE, now, format!("vm.min_free_kbytes is {}", Count::new(now)))
    }); // The zones' watermarks add up to the setting.
    let watermarks: Bytes = one.zones.iter().map(|zone| zone.zone.min).sum();
    let now = known.unwrap_or(watermarks.get() / 1024);
    let advised = cx.timeline.last(MEM_TOTAL).map(|ram| advised(ram, now));
    match advised.filter(|advised| *advised > now) {
        Some(advised) => finding.fix(Fix::tunable(cx, "Keep a larger reserve.", MIN_FREE, advised)),
        None => finding.fix(
            Fix::say(
                "Keep a larger reserve: vm.min_free_kbytes of 1 % of RAM, 1 GiB at most. If it is \
                 that large already, smooth the bursts (rings of ethtool -g, interrupt rate).",
            )
            .inspect("sysctl vm.min_free_kbytes"),
        ),
    }
}

/// The advised value, or twice the current one, in KiB.
fn advised(ram: Bytes, now: u64) -> u64 {
    let share = ram.share(ADVISED).max(RESERVE_MIN);
    let more = Bytes::from_kib(now.saturating_mul(2));
    share.max(more).min(RESERVE_MAX).min(ram.share(AT_MOST)).get() / 1024
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oom::testing::Report;
    use crate::rules::testing::{Case, changed, clear, found};

    /// A failed allocation while free memory is a sixth of the min watermark.
    fn failed(gfp: u64, order: i32) -> Report {
        Report::default()
            .asking(gfp, order)
            .zone("Normal", 10_000, 61_948, 12_774_792, &[0; 5])
            .host(MEM_TOTAL, 16_000_000)
            .failed()
    }

    #[test]
    fn a_failed_atomic_page_points_to_the_reserve() {
        let finding = found(RULE, &Case::of_report(failed(0xa20, 0)));
        assert_eq!(finding.severity, Severity::Warning);
        let change = &changed(&finding.fixes[0])[0];
        assert!(change.ends_with("=160000"), "{change}");
        found(RULE, &Case::of_report(failed(0x20, 0)));
        found(RULE, &Case::of_report(failed(0xa20, 2)));
    }

    #[test]
    fn allocations_with_a_fallback_are_informational() {
        let finding = found(RULE, &Case::of_report(failed(0x800, 0)));
        assert_eq!(finding.severity, Severity::Info);
    }

    #[test]
    fn clear_on_kills_and_allocations_that_may_wait() {
        clear(RULE, &Case::of_report(Report::of_a_host()));
        clear(RULE, &Case::of_report(failed(0xcc0, 0)));
        clear(RULE, &Case::once());
    }

    #[test]
    fn clear_when_memory_is_fragmented() {
        let report = Report::default()
            .asking(0xa20, 3)
            .zone("Normal", 600_000, 61_948, 12_774_792, &[0; 5])
            .blocks(&[(100_000, "UM"), (20_000, "U"), (0, ""), (0, "")])
            .failed();
        clear(RULE, &Case::of_report(report));
    }

    #[test]
    fn each_failure_is_an_event() {
        let case = Case::of_reports([failed(0xa20, 0), failed(0xa20, 2), failed(0xcc0, 0)]);
        let finding = found(RULE, &case);
        assert_eq!(finding.occasions.len(), 2);
        assert_eq!(finding.severity, Severity::Warning);
    }

    #[test]
    fn finds_a_failure_within_an_hour_with_the_same_severity() {
        let severity = |gfp| {
            let case = Case::over(3600).with_report(1800, failed(gfp, 0));
            found(RULE, &case).severity
        };
        assert_eq!(severity(0xa20), Severity::Warning);
        assert_eq!(severity(0x800), Severity::Info);
        clear(RULE, &Case::over(3600).with_report(1800, failed(0xcc0, 0)));
    }
}
