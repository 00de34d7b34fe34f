//! Transparent huge pages: resident memory that programs may never have touched.

use timeline::facts::{THP_ENABLED, THP_MAX_PTES_NONE};
use timeline::settings::MAX_PTES_NONE_DEFAULT;
use timeline::signals::{
    HUGEPAGE_SIZE, MEM_ANON, MEM_ANON_HUGE, PROC_ANON_HUGE, THP_COLLAPSE_ALLOC, THP_FAULT_ALLOC,
    THP_UNDERUSED_SPLIT,
};

use crate::prelude::*;

declare_rule! {
    /// Much anonymous memory is in transparent huge pages that programs did not request; part of it may never have been touched.
    ///
    /// ## What it means
    /// With transparent huge pages on `always`, touching one byte of a fresh region brings 2 MiB into memory. Programs
    /// that use their memory sparsely then have far more resident memory than they need. Dense users (most JVM heaps,
    /// databases with modern allocators) lose nothing and run faster; the counters alone cannot distinguish the two.
    /// ## How it is recognised
    /// The mode is `always`, for {LEVEL} huge pages make up half of anonymous memory or more and {OF_RAM} of RAM or
    /// more, and page faults or khugepaged created them. That alone is only possible bloat. Huge pages that the kernel
    /// splits because they are mostly empty (`thp_underused_split_page`, 6.12 and later) prove it.
    /// ## Not this
    /// - Mode `madvise`: the program requested them.
    /// - A dense heap: resident memory is the same with small pages.
    /// - `hugetlb-unused`: pages that the administrator reserved.
    /// ## What to do
    /// Try: start the program with `madvise` and compare its RSS at the same load. Now: `echo madvise >
    /// /sys/kernel/mm/transparent_hugepage/enabled`; for good: `transparent_hugepage=madvise` on the kernel command
    /// line. Redis and Oracle require it off; MongoDB from 8.0 recommends `always`. Verify: RSS falls and the work is
    /// not slower.
    /// ## References
    /// - kernel Documentation/admin-guide/mm/transhuge.rst
    pub(crate) RULE = {
        id: "thp-bloat", since: "0.1.0", class: Growth,
        numbers: [LEVEL, OF_RAM],
        trigger: trigger, story: story,
        cause: "With transparent huge pages on always, touching one byte of a fresh region brings \
                a whole huge page into memory.",
        verify: "restart the program and compare: if memory was wasted, its RSS at the same load \
                 is clearly lower",
        explained_by: &[Explains::Surely(THP_ENABLED), Explains::Maybe(THP_MAX_PTES_NONE)],
    }
}

/// An engineering choice: most anonymous memory.
const OF_ANON: Ratio = Ratio::from_percent(50.0);
/// Less would not change the host's state even if all of it were empty; an engineering choice.
const OF_RAM: Ratio = Ratio::from_percent(20.0);

fn trigger() -> Trigger {
    let huge = || gauge(MEM_ANON_HUGE);
    Trigger::on_host(
        LEVEL,
        all![
            huge().at_least("anonymous memory in huge pages", ram().share(OF_RAM)),
            huge().at_least("anonymous memory in huge pages", gauge(MEM_ANON).share(OF_ANON)),
        ],
    )
}

fn story<'a>(cx: &Evidence<'a>, incident: &Incident<'a>) -> Result<Outcome, Missing> {
    let stretch = &incident.stretch;
    let mode = cx.choice(THP_ENABLED).ok();
    if let Some(mode) = mode.filter(|mode| *mode != "always") {
        return clear!(
            "transparent huge pages are on {mode}: only programs that request them get them"
        );
    }
    let huge = cx.gauge(MEM_ANON_HUGE)?;
    let same_time = || Missing::same_time(MEM_ANON.def());
    let (most, index) = huge.max_in(stretch).ok_or_else(same_time)?;
    let faulted = cx.last(THP_FAULT_ALLOC)?;
    let collapsed = cx.last(THP_COLLAPSE_ALLOC).ok();
    if faulted == Count::ZERO && collapsed.is_none_or(|n| n == Count::ZERO) {
        return clear!("no page fault and no collapse created a huge page");
    }
    let (ram, of_ram) = (cx.ram()?, cx.of_ram(most)?);
    let anon = cx.gauge(MEM_ANON)?.at(index).ok_or_else(same_time)?;
    let of_anon = most.ratio_of(anon).ok_or_else(same_time)?;
    let split = increase(cx, THP_UNDERUSED_SPLIT, stretch);
    let stalls = PressureWindow::during(cx, stretch);
    let severity = Severity::warning_if(split.is_some() && stalls.for_memory());
    let used = if split.is_some() {
        "the kernel found some of them nearly empty"
    } else {
        "counters cannot show how much of it is in use"
    };
    let always = mode.map_or("", |_| " (transparent huge pages are on always)");
    let title = format!(
        "Huge pages take {most}, {of_ram} of RAM and {of_anon} of anonymous memory; {used}{always}."
    );
    let text = format!("{most} in huge pages, {of_anon} of anonymous memory");
    let filled = cx.number(THP_MAX_PTES_NONE).ok();
    let open = "a scan of the pages, or a run of the program with madvise, would settle it";
    Ok(RULE
        .found(severity, title)
        .graph("anonymous memory in huge pages", &huge)
        .shows_from(MEM_ANON_HUGE, most, ram.share(OF_RAM), cx.time(index), text)
        .and(|finding| show_faults(finding, cx, stretch, faulted))
        .with(split, |finding, pages| {
            let text =
                format!("the kernel split {pages} huge pages because they were mostly empty");
            let finding = finding.shows(THP_UNDERUSED_SPLIT, pages, None, text);
            stalls.shown_in(finding).counts_as("huge pages split as nearly empty")
        })
        .with(filled, |finding, none| {
            let text =
                format!("khugepaged adds up to {none} untouched pages to complete a huge page");
            finding.shows_fact(THP_MAX_PTES_NONE, none, text)
        })
        .not("hugetlb-unused", "these pages come from ordinary memory and are not reserved")
        .fix(Fix::file(
            "Give huge pages only to programs that request them, and start the large programs \
             again: the huge pages that they have stay. If the kernel command line sets the mode: \
             transparent_hugepage=madvise.",
            THP_ENABLED,
            "madvise",
            mode,
        ))
        .fix(Fix::file(
            format!(
                "Or keep them, but stop khugepaged from adding untouched pages (the kernel's \
                 default is {MAX_PTES_NONE_DEFAULT})."
            ),
            THP_MAX_PTES_NONE,
            64,
            filled,
        ))
        .affects(processes::holding(
            cx,
            |process| Some(cx.timeline.gauge_of(process, PROC_ANON_HUGE)?.max()?.0),
            "in huge pages",
        ))
        .sure_by_kinds(cx, open)
        .into())
}

/// The increase of a counter; `None` if it did not rise, or was not measured.
fn increase(
    cx: &Evidence<'_>,
    counter: Signal<Counter<Count>>,
    stretch: &Stretch,
) -> Option<Count> {
    let increase = cx.rate(counter).ok()?.integral_in(stretch);
    (increase > 0.0).then(|| Count::from_f64(increase))
}

/// Adds the huge pages that page faults created.
fn show_faults(finding: Finding, cx: &Evidence<'_>, stretch: &Stretch, faulted: Count) -> Finding {
    let size = cx.timeline.last(HUGEPAGE_SIZE);
    let size = size.unwrap_or(Bytes::from_mib(2));
    let (count, text) = match increase(cx, THP_FAULT_ALLOC, stretch) {
        Some(made) => {
            let bytes = Bytes::from_f64(made.as_f64() * size.as_f64());
            let text = format!("page faults created {made} huge pages ({bytes})");
            (made, text)
        }
        None => {
            let text = format!(
                "page faults created {faulted} huge pages since boot, none during this time"
            );
            (faulted, text)
        }
    };
    finding.shows(THP_FAULT_ALLOC, count, None, text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::testing::{Case, clear, found, not_evaluated};
    use timeline::signals::{MEM_TOTAL, PSI_MEMORY_SOME};

    fn dense(huge: u64, anon: u64) -> Case {
        dense_over(20, huge, anon)
    }

    fn dense_over(seconds: u64, huge: u64, anon: u64) -> Case {
        Case::over(seconds)
            .gauge(MEM_TOTAL, Bytes::from_mib(1000))
            .gauge(MEM_ANON, Bytes::from_mib(anon))
            .gauge(MEM_ANON_HUGE, Bytes::from_mib(huge))
            .fact(THP_ENABLED, "[always] madvise never")
    }

    #[test]
    fn dense_huge_pages_are_only_possible_bloat() {
        let finding = found(
            RULE,
            &dense(600, 610).counter(THP_FAULT_ALLOC, 15).counter(PSI_MEMORY_SOME, 300_000),
        );
        assert_eq!(finding.severity, Severity::Info);
        assert_eq!(finding.confidence.word(), "possible");
    }

    #[test]
    fn split_huge_pages_confirm_it_and_stalls_make_it_a_warning() {
        let case = || dense(600, 610).counter(THP_FAULT_ALLOC, 15).counter(THP_UNDERUSED_SPLIT, 3);
        assert_eq!(found(RULE, &case()).severity, Severity::Info);
        assert_eq!(found(RULE, &case()).confidence.word(), "probable");
        let short = case().counter(PSI_MEMORY_SOME, 300_000);
        assert_eq!(found(RULE, &short).severity, Severity::Warning);
    }

    #[test]
    fn clear_with_few_huge_pages_or_madvise() {
        clear(RULE, &dense(150, 200).counter(THP_FAULT_ALLOC, 15));
        clear(RULE, &dense(300, 700).counter(THP_FAULT_ALLOC, 15));
        let asked = dense(600, 610)
            .counter(THP_FAULT_ALLOC, 15)
            .fact(THP_ENABLED, "always [madvise] never");
        clear(RULE, &asked);
    }

    #[test]
    fn finds_30_s_within_an_hour() {
        let hour = |huge: u64| {
            let steps = |high| {
                let mib = [vec![50; 1800], vec![high; 30], vec![50]].concat();
                mib.into_iter().map(Bytes::from_mib).collect::<Vec<_>>()
            };
            dense_over(3600, 0, 0)
                .gauge_steps(MEM_ANON, &steps(610))
                .gauge_steps(MEM_ANON_HUGE, &steps(huge))
                .counter(THP_FAULT_ALLOC, 15)
        };
        let finding = found(RULE, &hour(600));
        assert_eq!(finding.severity, Severity::Info);
        assert_eq!(finding.when.unwrap().duration().as_secs_f64(), 30.0);
        assert_eq!(
            clear(RULE, &hour(150)),
            "anonymous memory in huge pages: at most 150 MiB, threshold 200 MiB"
        );
    }

    #[test]
    fn not_evaluated_without_thp_counters() {
        assert_eq!(not_evaluated(RULE, &dense(600, 610)).names, ["vm.thp_fault_alloc"]);
        assert_eq!(not_evaluated(RULE, &Case::once()).names, ["mem.anon_thp"]);
    }
}
