//! Reserved huge pages that nobody uses.

use timeline::facts::NR_HUGEPAGES;
use timeline::signals::{
    HUGEPAGE_SIZE, HUGEPAGES_FREE, HUGEPAGES_RSVD, HUGEPAGES_TOTAL, HUGETLB_UNUSED, MEM_AVAILABLE,
    PROC_HUGETLB,
};

use crate::prelude::*;

declare_rule! {
    /// Memory is reserved for huge pages that nobody uses.
    ///
    /// ## What it means
    /// Pages of `vm.nr_hugepages` belong to programs that ask for hugetlb memory and to nobody else. They count neither
    /// as free nor as available, and cannot hold page cache or swap out, so an unused reserve makes the host smaller.
    /// ## How it is recognised
    /// Huge pages that are free and not promised to anyone make up 5 % of RAM or more. Where RAM is not known: 1 GiB and
    /// a tenth of the reserve.
    /// ## Not this
    /// - Pages promised but not touched yet (`HugePages_Rsvd`): a database that has just started.
    /// - `thp-bloat`: transparent huge pages are taken from ordinary memory and are not reserved.
    /// - A reserve for a program that runs at other hours: a recording over its cycle would show it.
    /// ## What to do
    /// Now: `sysctl -w vm.nr_hugepages=` what is in use. For good: the same in a file under `/etc/sysctl.d/`, or the
    /// `hugepages=` of the kernel command line. PostgreSQL tells its need: `postgres -C shared_memory_size_in_huge_pages`.
    /// Verify: MemAvailable rises by what is given back.
    /// ## References
    /// - kernel Documentation/admin-guide/mm/hugetlbpage.rst
    pub(crate) RULE = {
        id: "hugetlb-unused", since: "0.1.0", class: Setting,
        trigger: trigger, story: story,
        cause: "vm.nr_hugepages (or hugepages= at boot) reserves more than any program asks for.",
        brings_about: WANT_AND_THRASH,
        explained_by: &[Explains::Surely(NR_HUGEPAGES)],
    }
}

/// An engineering choice: a reserve is sized with some slack.
const SHARE: Ratio = Ratio::from_percent(5.0);
/// Less is not worth a change even on the smallest host; eight pages of 2 MiB.
const LEAST: Bytes = Bytes::from_mib(16);
/// Where RAM is not known: so much would matter on any host that uses huge pages at all; an engineering choice.
const LEAST_OF_UNKNOWN_RAM: Bytes = Bytes::from_gib(1);
/// Where RAM is not known: a smaller part of the reserve is slack.
const PART_OF_RESERVE: Ratio = Ratio::from_percent(10.0);

fn trigger() -> Trigger {
    let reserved = gauge(HUGEPAGES_TOTAL).at_least("reserved huge pages", Count::new(1));
    let unused = unused().at_least("unused huge pages", least());
    Trigger::on_host(LEVEL, all![reserved, unused])
}

/// Free and promised to nobody.
fn unused() -> Reading<Bytes> {
    let free = gauge(HUGEPAGES_FREE);
    let unused = free.clone().minus(gauge(HUGEPAGES_RSVD)).or(free);
    unused.of_size(gauge(HUGEPAGE_SIZE))
}

/// From where on a reserve is wasted.
fn least() -> Reading<Bytes> {
    let reserve = gauge(HUGEPAGES_TOTAL).of_size(gauge(HUGEPAGE_SIZE));
    let of_ram = ram().share(SHARE).max(LEAST);
    of_ram.or(reserve.share(PART_OF_RESERVE).max(LEAST_OF_UNKNOWN_RAM))
}

fn story<'a>(cx: &Evidence<'a>, incident: &Incident<'a>) -> Result<Outcome, Missing> {
    let last = incident.stretch.last;
    let at = |reading: Reading<Bytes>| Ok(reading.track(cx)?.at(last).unwrap_or_default());
    let (wasted, least): (Bytes, Bytes) = (at(unused())?, at(least())?);
    let pages = cx.gauge(HUGEPAGES_TOTAL)?.at(last).unwrap_or_default();
    let size = cx.last(HUGEPAGE_SIZE)?;
    if size == Bytes::ZERO {
        return clear!("the size of huge pages is not known");
    }
    if were_taken(cx, last, pages)? {
        return clear!("{pages} huge pages were reserved, and a program took them");
    }
    let reserve = Bytes::from_f64(pages.as_f64() * size.as_f64());
    let idle = Count::new(wasted.get() / size.get());
    let of_ram = cx.ram().ok().and_then(|ram| wasted.ratio_of(ram));
    let of_ram = of_ram.map_or_else(String::new, |share| format!(", {share} of RAM,"));
    let title = format!(
        "{wasted}{of_ram} lie idle: {idle} of {pages} reserved huge pages are used by nobody."
    );
    let (kept, old) = (pages.saturating_sub(idle).get(), pages.get());
    Ok(RULE
        .found(Severity::Warning, title)
        .shows_from(HUGETLB_UNUSED, wasted, least, None, format!("{idle} of {pages} huge pages of {size} are free and promised to nobody"))
        .counts_as("the reserve's counters")
        .shows(HUGEPAGES_TOTAL, pages, None, format!("{reserve} are reserved in all"))
        .with(cx.number(NR_HUGEPAGES).ok(), |it, set| it.shows_fact(NR_HUGEPAGES, set, format!("vm.nr_hugepages = {set}")))
        .with(cx.level(MEM_AVAILABLE, last), |it, left| {
            let text = format!("available is {left}; the reserve is not part of it");
            it.shows(MEM_AVAILABLE, left, None, text)
        })
        .counts_if(cx.gauge(HUGEPAGES_RSVD).is_ok(), "no promise on them")
        .not("unaccounted-memory", "the reserve explains what no process holds")
        .fix(Fix::tunable(cx, "Reserve what is used; hugepages= of the kernel's command line likewise.", NR_HUGEPAGES, kept)
            .undo(format!("sysctl -w vm.nr_hugepages={old}")))
        .fix(Fix::say("Or let the program use them: PostgreSQL huge_pages=on, Oracle use_large_pages, MySQL large-pages, JVM -XX:+UseLargePages."))
        .verify(format!("memtide check: about {wasted} more available, HugePages_Free near 0"))
        .affects(processes::holding(cx, |process| cx.timeline.last_of(process, PROC_HUGETLB), "in huge pages"))
        .sure_by_kinds(cx, "a recording over a cycle of the work would show whether anybody takes them at another hour")
        .into())
}

/// Whether the reserve is still there after the incident, and in use: a program that has just started takes it.
fn were_taken(cx: &Evidence<'_>, last: usize, pages: Count) -> Result<bool, Missing> {
    let after = last + 1;
    let reserved = cx.gauge(HUGEPAGES_TOTAL)?.at(after);
    let unused = unused().track(cx)?.at(after);
    let least = least().track(cx)?.at(after);
    Ok(reserved.is_some_and(|it| it >= pages)
        && unused.zip(least).is_some_and(|(it, least)| it < least))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::testing::{Case, clear, found, not_evaluated};
    use timeline::signals::MEM_TOTAL;

    fn reserved(case: Case, total: u64, free: u64, promised: u64) -> Case {
        case.gauge(HUGEPAGES_TOTAL, Count::new(total))
            .gauge(HUGEPAGES_FREE, Count::new(free))
            .gauge(HUGEPAGES_RSVD, Count::new(promised))
            .gauge(HUGEPAGE_SIZE, Bytes::from_mib(2))
    }

    #[test]
    fn an_idle_reserve_is_found() {
        let case = reserved(Case::over(20), 96, 96, 0).gauge(MEM_TOTAL, Bytes::from_mib(600));
        let finding = found(RULE, &case);
        assert_eq!(finding.severity, Severity::Warning);
        assert!(finding.title.starts_with("192 MiB, 32 % of RAM, lie idle"));
        assert_eq!(finding.fixes[0].now, "sysctl -w vm.nr_hugepages=0");
    }

    #[test]
    fn pages_in_use_or_promised_are_not_idle() {
        let host = || Case::over(20).gauge(MEM_TOTAL, Bytes::from_mib(600));
        clear(RULE, &reserved(host(), 96, 90, 85));
        clear(RULE, &reserved(host(), 96, 3, 0));
        clear(RULE, &reserved(host(), 0, 0, 0));
    }

    #[test]
    fn a_reserve_that_is_taken_while_watched_is_clear() {
        let steps: Vec<Count> = (0..20)
            .map(|i| Count::new(if i < 15 { 96 } else { 2 }))
            .collect();
        let case = reserved(Case::over(20), 96, 0, 0)
            .gauge_steps(HUGEPAGES_FREE, &steps)
            .gauge(MEM_TOTAL, Bytes::from_mib(600));
        clear(RULE, &case);
    }

    #[test]
    fn one_look_without_total_ram_is_enough_for_a_large_reserve() {
        let finding = found(RULE, &reserved(Case::once(), 53_342, 11_904, 0));
        assert_eq!(finding.confidence.word(), "probable");
        assert!(finding.title.starts_with("23 GiB lie idle"));
        clear(RULE, &reserved(Case::once(), 53_342, 400, 0));
    }

    #[test]
    fn needs_the_huge_page_lines() {
        assert_eq!(
            not_evaluated(RULE, &Case::once()).names,
            ["hugepages.total"]
        );
    }
}
