//! Swap readahead brings pages that nobody uses.

use timeline::facts::PAGE_CLUSTER;
use timeline::signals::{PSWPIN, SWAP_RA, SWAP_RA_HIT};

use crate::prelude::*;

declare_rule! {
    /// More than half of the pages that are read ahead from swap are never used: they cost I/O, CPU and memory.
    ///
    /// ## What it means
    /// With a page, the kernel reads its neighbours in swap: up to 2 to the power of `vm.page-cluster`, by default 8.
    /// That pays on rotating disks and for programs that walk through their memory. Where access is random, and on zram
    /// and SSDs, where a second read costs as much as the first, it multiplies the traffic and evicts other pages.
    /// ## How it is recognised
    /// For {STALL} or longer, {READ_AHEAD} or more are read ahead from swap, at most {USED_MAX} of them are then
    /// used, and `vm.page-cluster` is not 0. It is always informational: readahead makes a shortage worse, and never is
    /// the reason for one.
    /// ## Not this
    /// - `swap-thrash`: memory does not fit; this adds I/O to each page that comes in.
    /// - Swap that is read through in order: nearly every page is used.
    /// - A first read of much swap after a job ended: pages are used a little later.
    /// ## What to do
    /// Now: `sysctl -w vm.page-cluster=0` on zram and SSDs; for good in a file under `/etc/sysctl.d/`. On a rotating
    /// disk keep it, and reduce demand. Verify: swap reads fall and stalls do not rise under the same load.
    /// ## References
    /// - kernel Documentation/admin-guide/sysctl/vm.rst, page-cluster
    /// - kernel mm/swap_state.c, swap_vma_readahead
    pub(crate) RULE = {
        id: "swap-readahead-waste", since: "0.1.0", class: Setting,
        numbers: [STALL, READ_AHEAD, USED_MAX],
        trigger: trigger, waits: MemoryOrDisk, story: story,
        cause: "Swap readahead takes neighbours in swap for neighbours in use, which they are not \
                under this access.",
        verify: "memtide check --for 1m under the same load: less is swapped in, and tasks wait no \
                 longer",
        explained_by: &[Explains::Maybe(PAGE_CLUSTER)],
    }
}

/// 1 MiB/s; an engineering choice. Labelled captures, November 2026: 3,000 to 12,000 pages/s while swap thrashes.
const READ_AHEAD: PerSecond<Pages> = PerSecond::new(256.0);
/// An engineering choice. Labelled captures: 90 % and more where programs walk through their memory.
const USED_MAX: Ratio = Ratio::from_percent(30.0);

fn trigger() -> Trigger {
    let ahead = || rate(SWAP_RA);
    Trigger::on_host(
        STALL,
        all![
            ahead().at_least("read ahead from swap", READ_AHEAD),
            rate(SWAP_RA_HIT).at_most("used of it", ahead().share(USED_MAX)),
            fact(PAGE_CLUSTER).at_least("vm.page-cluster", Count::new(1)).if_measured(),
        ],
    )
}

fn story<'a>(cx: &Evidence<'a>, incident: &Incident<'a>) -> Result<Outcome, Missing> {
    let stretch = &incident.stretch;
    let (ahead, hits) = (cx.rate(SWAP_RA)?, cx.rate(SWAP_RA_HIT)?);
    let rate = cx.mean_in(stretch, SWAP_RA, &ahead)?;
    let used = Ratio::new(hits.integral_in(stretch) / ahead.integral_in(stretch).max(1.0));
    if used > USED_MAX {
        return clear!("{used} of the pages that were read ahead from swap were used");
    }
    let bytes = rate.to_bytes(cx.page_size()?);
    let now = cx.number(PAGE_CLUSTER).ok();
    let title = format!(
        "Swap readahead is mostly wasted: {bytes} are read ahead from swap for {}, and {used} of \
         it is used.",
        stretch.duration()
    );
    let stalls = PressureWindow::during(cx, stretch);
    Ok(RULE
        .found(Severity::Info, title)
        .graph("read ahead from swap", &ahead)
        .shows_from(SWAP_RA, rate, READ_AHEAD, None, format!("{rate} read ahead from swap"))
        .shows_below(
            Computed(SWAP_RA_HIT),
            used,
            USED_MAX,
            None,
            format!("{used} of them were used"),
        )
        .counts_as("readahead and its hits")
        .with(now, |finding, now| {
            let pages =
                1_u64.checked_shl(u32::try_from(now).unwrap_or(u32::MAX)).unwrap_or(u64::MAX);
            let text = format!(
                "vm.page-cluster is {now}: up to {} at once",
                Count::new(pages).named("page", "pages")
            );
            finding.shows_fact(PAGE_CLUSTER, now, text).counts_as("the setting")
        })
        .shows_mean(cx, PSWPIN, stretch, |rate| format!("{rate} swapped in from devices in all"))
        .shows_stalls(&stalls)
        .fix(Fix::tunable(
            cx,
            "Read single pages. Do so on zram and SSDs; on a rotating disk readahead still saves \
             seeks.",
            PAGE_CLUSTER,
            0,
        ))
        .sure_by_kinds(cx, "")
        .into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::testing::{Case, amid_calm, changed, clear, found, not_evaluated, times};

    fn reading(ahead: u64, used: u64) -> Case {
        Case::over(30)
            .counter(SWAP_RA, ahead)
            .counter(SWAP_RA_HIT, used)
            .counter(PSWPIN, ahead + 300)
            .fact(PAGE_CLUSTER, "3")
    }

    #[test]
    fn readahead_that_is_not_used_is_informational() {
        let finding = found(RULE, &reading(2_100, 300));
        assert_eq!(finding.severity, Severity::Info);
        assert_eq!(finding.confidence.word(), "confirmed");
        assert!(finding.title.contains("14 % of it is used"), "{}", finding.title);
        assert_eq!(changed(&finding.fixes[0]), ["vm.page-cluster=3 -> vm.page-cluster=0"]);
    }

    #[test]
    fn clear_when_most_of_it_is_used_or_it_is_little() {
        clear(RULE, &reading(2_100, 2_000));
        clear(RULE, &reading(100, 0));
    }

    #[test]
    fn clear_when_pages_are_used_a_little_later() {
        let hits = [vec![0; 3], vec![4_000; 27]].concat();
        clear(RULE, &reading(2_100, 0).counter_steps(SWAP_RA_HIT, &hits));
    }

    #[test]
    fn clear_where_readahead_is_off() {
        clear(RULE, &reading(2_100, 300).fact(PAGE_CLUSTER, "0"));
    }

    #[test]
    fn finds_30_s_within_an_hour() {
        let hour = |used| {
            Case::over(3600)
                .counter_steps(SWAP_RA, &amid_calm(2_100, 0))
                .counter_steps(SWAP_RA_HIT, &amid_calm(used, 0))
        };
        assert_eq!(times(&found(RULE, &hour(200))), [(1800, 1830)]);
        clear(RULE, &hour(1_900));
    }

    #[test]
    fn not_evaluated_without_the_counters() {
        let case = Case::over(30).counter(PSWPIN, 2_000);
        assert_eq!(not_evaluated(RULE, &case).names, ["vm.swap_ra"]);
    }
}
