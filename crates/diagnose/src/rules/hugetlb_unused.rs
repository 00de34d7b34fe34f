//! Reserved huge pages that no program uses.

use timeline::facts::NR_HUGEPAGES;
use timeline::signals::{
    HUGEPAGE_SIZE, HUGEPAGES_FREE, HUGEPAGES_RSVD, HUGEPAGES_TOTAL, HUGETLB_UNUSED, MEM_AVAILABLE,
    PROC_HUGETLB,
};

use crate::finding::SettingChange;
use crate::prelude::*;

declare_rule! {
    /// RAM is reserved for huge pages (hugetlb) that no program uses.
    ///
    /// ## What it means
    /// Pages of `vm.nr_hugepages` belong only to programs that request hugetlb memory. They count neither as free nor
    /// as available, and cannot hold page cache or be swapped, so an unused reserve makes the host smaller.
    /// ## How it is recognised
    /// Free huge pages without a reservation (HugePages_Free − HugePages_Rsvd) make up {UNUSED_SHARE} of RAM or more,
    /// and {UNUSED_MIN} or more, for {LEVEL}. Where RAM is unknown: {UNKNOWN_RAM_MIN} and {PART_OF_RESERVE} of the pool.
    /// ## Not this
    /// - Pages reserved by a program but not touched yet (`HugePages_Rsvd`): a database that has just started.
    /// - `thp-bloat`: transparent huge pages come from ordinary memory and are not reserved.
    /// - A pool for a program that runs at other hours: a recording over its cycle would show it.
    /// ## What to do
    /// Now: set `sysctl -w vm.nr_hugepages=` to the number in use. For good: the same in a file under `/etc/sysctl.d/`,
    /// or `hugepages=` on the kernel command line. PostgreSQL prints what it needs: `postgres -C
    /// shared_memory_size_in_huge_pages`. Verify: MemAvailable rises by the released amount.
    /// ## References
    /// - kernel Documentation/admin-guide/mm/hugetlbpage.rst
    pub(crate) RULE = {
        id: "hugetlb-unused", since: "0.1.0", class: Setting,
        numbers: [UNUSED_SHARE, UNUSED_MIN, LEVEL, UNKNOWN_RAM_MIN, PART_OF_RESERVE],
        trigger: trigger, story: story,
        cause: "vm.nr_hugepages (or hugepages= at boot) reserves more than programs use.",
        brings_about: WANT_AND_THRASH,
        explained_by: &[Explains::Surely(NR_HUGEPAGES)],
    }
}

/// An engineering choice: some slack in the pool is usual.
const UNUSED_SHARE: Ratio = Ratio::from_percent(5.0);
/// Less is not worth a change even on the smallest host: eight pages of 2 MiB.
const UNUSED_MIN: Bytes = Bytes::from_mib(16);
/// Where RAM is unknown: this much matters on any host that uses huge pages; an engineering choice.
const UNKNOWN_RAM_MIN: Bytes = Bytes::from_gib(1);
/// Where RAM is unknown: a smaller part of the pool is slack.
const PART_OF_RESERVE: Ratio = Ratio::from_percent(10.0);

fn trigger() -> Trigger {
    let reserved = gauge(HUGEPAGES_TOTAL).at_least("reserved huge pages", Count::new(1));
    let unused = unused().at_least("unused huge pages", least());
    Trigger::on_host(LEVEL, all![reserved, unused])
}

/// Free huge pages without a reservation.
fn unused() -> Reading<Bytes> {
    let free = gauge(HUGEPAGES_FREE);
    let unused = free.clone().minus(gauge(HUGEPAGES_RSVD)).or(free);
    unused.of_size(gauge(HUGEPAGE_SIZE))
}

/// The threshold for wasted huge pages.
fn least() -> Reading<Bytes> {
    let reserve = gauge(HUGEPAGES_TOTAL).of_size(gauge(HUGEPAGE_SIZE));
    let of_ram = ram().share(UNUSED_SHARE).max(UNUSED_MIN);
    of_ram.or(reserve.share(PART_OF_RESERVE).max(UNKNOWN_RAM_MIN))
}

fn story<'a>(cx: &Evidence<'a>, incident: &Incident<'a>) -> Result<Outcome, Missing> {
    let last = incident.stretch.last;
    let at = |reading: Reading<Bytes>| Ok(reading.track(cx)?.at(last).unwrap_or_default());
    let (wasted, least): (Bytes, Bytes) = (at(unused())?, at(least())?);
    let pages = cx.gauge(HUGEPAGES_TOTAL)?.at(last).unwrap_or_default();
    let size = cx.last(HUGEPAGE_SIZE)?;
    if size == Bytes::ZERO {
        return clear!("the huge page size is unknown");
    }
    if were_taken(cx, last, pages)? {
        return clear!("{pages} huge pages were reserved, and a program then used them");
    }
    let reserve = Bytes::from_f64(pages.as_f64() * size.as_f64());
    let idle = Count::new(wasted.get() / size.get());
    let of_ram = cx.ram().ok().and_then(|ram| wasted.ratio_of(ram));
    let of_ram = of_ram.map_or_else(String::new, |share| format!(", {share} of RAM,"));
    let title = format!(
        "{wasted}{of_ram} is wasted: no program uses {idle} of {pages} reserved huge pages."
    );
    let (kept, old) = (pages.saturating_sub(idle).get(), pages.get());
    Ok(RULE
        .found(Severity::Warning, title)
        .shows_from(
            HUGETLB_UNUSED,
            wasted,
            least,
            None,
            format!(
                "{idle} of {pages} huge pages of {size} are free and not reserved by a program"
            ),
        )
        .counts_as("the pool's counters")
        .shows(HUGEPAGES_TOTAL, pages, None, format!("the pool has {reserve} in all"))
        .with(cx.number(NR_HUGEPAGES).ok(), |finding, set| {
            finding.shows_fact(NR_HUGEPAGES, set, format!("vm.nr_hugepages = {set}"))
        })
        .with(cx.level(MEM_AVAILABLE, last), |finding, available| {
            let text = format!("{available} available, without this pool");
            finding.shows(MEM_AVAILABLE, available, None, text)
        })
        .counts_if(cx.gauge(HUGEPAGES_RSVD).is_ok(), "no reservation on them")
        .not("unaccounted-memory", "the huge page pool explains the memory that no process uses")
        .fix(Fix::setting(
            cx,
            "Reserve only what is used; do the same with hugepages= on the kernel command line.",
            SettingChange::new(NR_HUGEPAGES, kept).instead_of(Some(old)),
        ))
        .fix(Fix::say(
            "Or make the program use them: PostgreSQL huge_pages=on, Oracle use_large_pages, MySQL \
             large-pages, JVM -XX:+UseLargePages.",
        ))
        .verify(format!("memtide check: about {wasted} more available, HugePages_Free near 0"))
        .affects(processes::holding(
            cx,
            |process| cx.timeline.last_of(process, PROC_HUGETLB),
            "in huge pages",
        ))
        .sure_by_kinds(
            cx,
            "a recording over a work cycle would show whether a program uses them at another hour",
        )
        .into())
}

/// Whether the pool is in use after the incident, so that a program which had just started took it.
fn were_taken(cx: &Evidence<'_>, last: usize, pages: Count) -> Result<bool, Missing> {
    let after = last + 1;
    let reserved = cx.gauge(HUGEPAGES_TOTAL)?.at(after);
    let unused = unused().track(cx)?.at(after);
    let least = least().track(cx)?.at(after);
    Ok(reserved.is_some_and(|reserved| reserved >= pages)
        && unused.zip(least).is_some_and(|(unused, least)| unused < least))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::testing::{Case, changed, clear, found, not_evaluated};
    use timeline::signals::MEM_TOTAL;

    fn reserved(case: Case, total: u64, free: u64, promised: u64) -> Case {
        case.gauge(HUGEPAGES_TOTAL, Count::new(total))
            .gauge(HUGEPAGES_FREE, Count::new(free))
            .gauge(HUGEPAGES_RSVD, Count::new(promised))
            .gauge(HUGEPAGE_SIZE, Bytes::from_mib(2))
    }

    #[test]
    fn an_unused_pool_is_found() {
        let case = reserved(Case::over(20), 96, 96, 0).gauge(MEM_TOTAL, Bytes::from_mib(600));
        let finding = found(RULE, &case);
        assert_eq!(finding.severity, Severity::Warning);
        assert!(finding.title.starts_with("192 MiB, 32 % of RAM, is wasted"));
        assert_eq!(changed(&finding.fixes[0]), ["vm.nr_hugepages=96 -> vm.nr_hugepages=0"]);
    }

    #[test]
    fn clear_when_pages_are_used_or_reserved() {
        let host = || Case::over(20).gauge(MEM_TOTAL, Bytes::from_mib(600));
        clear(RULE, &reserved(host(), 96, 90, 85));
        clear(RULE, &reserved(host(), 96, 3, 0));
        clear(RULE, &reserved(host(), 0, 0, 0));
    }

    #[test]
    fn clear_when_a_program_takes_the_pool_later() {
        let steps: Vec<Count> = (0..20).map(|i| Count::new(if i < 15 { 96 } else { 2 })).collect();
        let case = reserved(Case::over(20), 96, 0, 0)
            .gauge_steps(HUGEPAGES_FREE, &steps)
            .gauge(MEM_TOTAL, Bytes::from_mib(600));
        clear(RULE, &case);
    }

    #[test]
    fn a_single_sample_without_memtotal_shows_a_large_pool() {
        let finding = found(RULE, &reserved(Case::once(), 53_342, 11_904, 0));
        assert_eq!(finding.confidence.word(), "probable");
        assert!(finding.title.starts_with("23 GiB is wasted"));
        clear(RULE, &reserved(Case::once(), 53_342, 400, 0));
    }

    #[test]
    fn not_evaluated_without_hugepages_in_meminfo() {
        assert_eq!(not_evaluated(RULE, &Case::once()).names, ["hugepages.total"]);
    }
}
