//! Transparent huge pages: memory that programs hold and may never have touched.

use timeline::{
    Entity,
    facts::{THP_ENABLED, THP_MAX_PTES_NONE},
    signals::{
        HUGEPAGE_SIZE, MEM_ANON, MEM_ANON_HUGE, PROC_ANON_HUGE, THP_COLLAPSE_ALLOC,
        THP_FAULT_ALLOC, THP_UNDERUSED_SPLIT,
    },
};
use units::{Bytes, Count, Quantity, Ratio, Span};

use crate::evidence::Evidence;
use crate::finding::{Affected, Severity};
use crate::fix::Fix;
use crate::missing::{Missing, Need};
use crate::rule::{Outcome, clear, declare_rule};
use crate::stalls::Stalls;

declare_rule! {
    /// Much anonymous memory is in huge pages that were given unasked; part of it may never have been touched.
    ///
    /// ## What it means
    /// With transparent huge pages on `always`, touching one byte of a fresh region brings 2 MiB into memory. Programs
    /// that use their memory sparsely then hold far more than they need. Dense users (most JVM heaps, databases with
    /// modern allocators) lose nothing and run faster: the counters alone cannot tell the two apart.
    /// ## How it is recognised
    /// The mode is `always`, huge pages make up half of anonymous memory or more and 20 % of RAM or more, and page
    /// faults or khugepaged made them. That makes it possible, no more. Huge pages that the kernel splits because most
    /// of them is empty (`thp_underused_split_page`, 6.12 and later) prove it.
    /// ## Not this
    /// - Mode `madvise`: the program asked for them.
    /// - A dense heap: resident memory is the same with small pages.
    /// - `hugetlb-unused`: pages that were reserved by the administrator.
    /// ## What to do
    /// Try: start the program with `madvise` and compare its RSS at the same load. Now:
    /// `echo madvise > /sys/kernel/mm/transparent_hugepage/enabled`; for good: `transparent_hugepage=madvise` on the
    /// kernel command line. Redis and Oracle want it off; MongoDB from 8.0 wants `always`. Verify: RSS falls and the
    /// work is not slower.
    /// ## References
    /// - kernel Documentation/admin-guide/mm/transhuge.rst
    pub(crate) RULE = { id: "thp-bloat", since: "0.1.0", purpose: Finding, check: check }
}

/// An engineering choice: most of it.
const OF_ANON: Ratio = Ratio::from_percent(50.0);
/// Less would not change the host's state even if all of it were empty; an engineering choice.
const OF_RAM: Ratio = Ratio::from_percent(20.0);
const HOLD: Span = Span::from_mins(10);

fn check(cx: &Evidence<'_>) -> Result<Outcome, Missing> {
    let huge = cx.gauge(MEM_ANON_HUGE)?;
    let anon = cx.gauge(MEM_ANON)?;
    let ram = cx.ram()?;
    let mode = cx.choice(THP_ENABLED).ok();
    if let Some(mode) = mode
        && mode != "always"
    {
        return clear!("transparent huge pages are on {mode}: nobody gets them unasked");
    }
    let dense = huge
        .at_least_track(&anon.scaled(OF_ANON.get()))
        .and(&huge.at_least(ram.share(OF_RAM)));
    let Some((stretch, most, index)) = cx.held_peak(&dense, &huge, HOLD) else {
        return match huge.max() {
            Some((most, _)) => clear!("anonymous memory in huge pages is {most} at most"),
            None => clear!("huge pages were not measured"),
        };
    };
    let faulted = cx.last(THP_FAULT_ALLOC)?;
    let collapsed = cx.last(THP_COLLAPSE_ALLOC).ok();
    if faulted == Count::ZERO && collapsed.is_none_or(|n| n == Count::ZERO) {
        return clear!("no page fault and no collapse made a huge page");
    }

    let of_ram = cx.of_ram(most)?;
    let of_anon = anon
        .at(index)
        .and_then(|anon| most.ratio_of(anon))
        .ok_or_else(|| Missing::because(vec![MEM_ANON.def().name], Need::SameTime))?;
    let split = cx
        .increase(THP_UNDERUSED_SPLIT)
        .ok()
        .filter(|pages| *pages > 0.0);
    let stalls = Stalls::during(cx, &stretch);
    let severity = if split.is_some() && stalls.for_memory() {
        Severity::Warning
    } else {
        Severity::Info
    };
    let used = if split.is_some() {
        "the kernel found some of them nearly empty"
    } else {
        "how much of it is in use, counters cannot tell"
    };
    let always = if mode.is_some() {
        " (transparent huge pages are on always)"
    } else {
        ""
    };
    let mut finding = RULE
        .found(
            severity,
            format!(
                "Huge pages hold {most}, {of_ram} of RAM and {of_anon} of anonymous memory; {used}{always}."
            ),
        )
        .during(stretch)
        .graph("anonymous memory in huge pages", &huge)
        .shows_from(
            MEM_ANON_HUGE,
            most, ram.share(OF_RAM),
            Some(cx.timeline.times()[index]),
            format!("{most} in huge pages, {of_anon} of anonymous memory"),
        );
    let size = cx
        .timeline
        .last(HUGEPAGE_SIZE)
        .unwrap_or(Bytes::from_mib(2));
    finding = match cx.increase(THP_FAULT_ALLOC) {
        Ok(pages) if pages > 0.0 => {
            let made = Count::from_f64(pages);
            let bytes = Bytes::from_f64(pages * size.as_f64());
            finding.shows(
                THP_FAULT_ALLOC,
                made,
                None,
                format!("page faults made {made} huge pages ({bytes}) while watched"),
            )
        }
        _ => finding.shows(
            THP_FAULT_ALLOC,
            faulted,
            None,
            format!("page faults made {faulted} huge pages since boot, none while watched"),
        ),
    };
    let mut kinds = Vec::new();
    if let Some(split) = split {
        let pages = Count::from_f64(split);
        finding = finding.shows(
            THP_UNDERUSED_SPLIT,
            pages,
            None,
            format!("the kernel split {pages} huge pages because most of them was empty"),
        );
        finding = stalls.shown_in(finding);
        kinds.push("huge pages split as nearly empty");
    }
    let filled = cx.number(THP_MAX_PTES_NONE);
    if let Ok(none) = filled {
        finding = finding.shows_fact(
            THP_MAX_PTES_NONE,
            none,
            format!("khugepaged fills in up to {none} untouched pages of a huge page"),
        );
    }
    Ok(finding
        .not("hugetlb-unused", "these pages come from ordinary memory, none is reserved")
        .cause("With transparent huge pages on always, touching one byte of a fresh region brings a whole huge page into memory.")
        .fix(Fix::file(
                "Give huge pages only to those that ask. Where the kernel's command line sets it: transparent_hugepage=madvise.",
                "/sys/kernel/mm/transparent_hugepage/enabled",
                "madvise",
                cx.choice(THP_ENABLED).ok(),
            ))
        .fix(Fix::file(
            "Or keep them, but let khugepaged not fill in what is untouched (the kernel's default is 511).",
            "/sys/kernel/mm/transparent_hugepage/khugepaged/max_ptes_none",
            64,
            filled.ok(),
        ))
        .verify("restart the program and compare: its RSS falls clearly at the same load, or nothing was wasted")
        .affects(holders(cx))
        .sure(cx.confidence(
            &kinds,
            "a look into the pages, or a run of the program with madvise, would settle it",
        ))
        .see("kernel: Documentation/admin-guide/mm/transhuge.rst")
        .into())
}

/// Processes with the most memory in huge pages, as last seen.
fn holders(cx: &Evidence<'_>) -> Vec<Affected> {
    let mut holders: Vec<_> = cx
        .timeline
        .entities(Entity::Process)
        .filter_map(|process| {
            let huge = cx.timeline.gauge_of(process, PROC_ANON_HUGE)?.max()?.0;
            (huge > Bytes::ZERO).then_some((process, huge))
        })
        .collect();
    holders.sort_by_key(|(_, huge)| std::cmp::Reverse(*huge));
    holders
        .into_iter()
        .take(3)
        .map(|(process, huge)| Affected {
            kind: "process",
            name: process.label.clone(),
            what: format!("{huge} in huge pages"),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::testing::{Case, clear, found, not_evaluated};
    use timeline::signals::{MEM_TOTAL, PSI_MEMORY_SOME};

    fn dense(huge: u64, anon: u64) -> Case {
        Case::over(20)
            .gauge(MEM_TOTAL, Bytes::from_mib(1000))
            .gauge(MEM_ANON, Bytes::from_mib(anon))
            .gauge(MEM_ANON_HUGE, Bytes::from_mib(huge))
            .fact(THP_ENABLED, "[always] madvise never")
    }

    #[test]
    fn dense_huge_pages_are_possible_bloat_and_no_more() {
        let finding = found(
            RULE,
            &dense(600, 610)
                .counter(THP_FAULT_ALLOC, 15)
                .counter(PSI_MEMORY_SOME, 300_000),
        );
        assert_eq!(finding.severity, Severity::Info);
        assert_eq!(finding.confidence.word(), "possible");
    }

    #[test]
    fn empty_huge_pages_are_proof_and_a_warning_where_memory_is_missed() {
        let case = || {
            dense(600, 610)
                .counter(THP_FAULT_ALLOC, 15)
                .counter(THP_UNDERUSED_SPLIT, 3)
        };
        assert_eq!(found(RULE, &case()).severity, Severity::Info);
        assert_eq!(found(RULE, &case()).confidence.word(), "probable");
        let short = case().counter(PSI_MEMORY_SOME, 300_000);
        assert_eq!(found(RULE, &short).severity, Severity::Warning);
    }

    #[test]
    fn few_huge_pages_or_none_unasked_are_clear() {
        clear(RULE, &dense(150, 200).counter(THP_FAULT_ALLOC, 15));
        clear(RULE, &dense(300, 700).counter(THP_FAULT_ALLOC, 15));
        let asked = dense(600, 610)
            .counter(THP_FAULT_ALLOC, 15)
            .fact(THP_ENABLED, "always [madvise] never");
        clear(RULE, &asked);
    }

    #[test]
    fn needs_to_know_that_page_faults_made_them() {
        assert_eq!(
            not_evaluated(RULE, &dense(600, 610)).names,
            ["vm.thp_fault_alloc"]
        );
        assert_eq!(not_evaluated(RULE, &Case::once()).names, ["mem.anon_thp"]);
    }
}
