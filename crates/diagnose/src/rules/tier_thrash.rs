//! Pages go to slow memory and come back at once.

use timeline::facts::NUMA_BALANCING;
use timeline::signals::{PGDEMOTE_DIRECT, PGDEMOTE_KSWAPD, PGPROMOTE_SUCCESS};

use crate::prelude::*;

declare_rule! {
    /// Pages are demoted to slow memory and promoted again: the working set does not fit into fast memory.
    ///
    /// ## What it means
    /// With memory tiers (CXL, persistent memory) the kernel demotes cold pages to the slow tier instead of swapping
    /// them, and NUMA balancing promotes those that turn out to be in use. If both run all the time, pages in use are
    /// moved to and fro: bandwidth of both tiers and CPU time go into copies.
    /// ## How it is recognised
    /// For {LEVEL} or longer, {MOVED} or more are demoted and as many are promoted, with at most
    /// twice as much one way as the other. It is a warning if tasks wait for memory, otherwise informational.
    /// ## Not this
    /// - A job that starts or ends: pages move one way.
    /// - `swap-thrash`: pages go to a disk.
    /// - `numa-balancing-overhead`: pages stay where they are.
    /// ## What to do
    /// Give the programs that matter the fast tier (`numactl --membind` or AllowedMemoryNodes= in the unit file), or
    /// use less of it. Slower promotion helps where the load moves on: kernel.numa_balancing_promote_rate_limit_MBps.
    /// Verify: less than {MOVED} each way.
    /// ## References
    /// - kernel Documentation/admin-guide/sysctl/kernel.rst, numa_balancing
    /// - kernel Documentation/ABI/testing/sysfs-kernel-mm-numa: demotion
    pub(crate) RULE = {
        id: "tier-thrash", since: "0.1.0", class: Shortage,
        numbers: [LEVEL, MOVED],
        trigger: trigger, waits: Memory, story: story,
        cause: "Programs use more memory at a time than the fast tier has.",
        verify: "grep -E 'pgdemote|pgpromote_success' /proc/vmstat, twice: less than {MOVED} each \
                 way",
        explained_by: &[Explains::Maybe(NUMA_BALANCING)],
    }
}

/// 10 MiB/s in pages of 4 KiB: an engineering choice, a small part of what a memory channel moves.
const MOVED: PerSecond<Pages> = PerSecond::new(2_560.0);
/// With more one way than this the memory of a tier fills or empties: an engineering choice.
const ONE_WAY_MAX: f64 = 2.0;

fn trigger() -> Trigger {
    let promoted = || rate(PGPROMOTE_SUCCESS);
    Trigger::on_host(
        LEVEL,
        all![
            demoted().at_least("demoted", MOVED),
            promoted().at_least("promoted", MOVED),
            demoted().at_most_of(&promoted(), "demoted, of what is promoted", ONE_WAY_MAX),
            promoted().at_most_of(&demoted(), "promoted, of what is demoted", ONE_WAY_MAX),
        ],
    )
}

fn demoted() -> Reading<PerSecond<Pages>> {
    rate(PGDEMOTE_KSWAPD).plus([rate(PGDEMOTE_DIRECT)]).named("demoted")
}

fn story<'a>(cx: &Evidence<'a>, incident: &Incident<'a>) -> Result<Outcome, Missing> {
    let stretch = &incident.stretch;
    let page = cx.page_size()?;
    let down = demoted().track(cx)?.to_bytes(page);
    let up = cx.bytes_rate(PGPROMOTE_SUCCESS)?;
    let down_rate = cx.mean_in(stretch, PGDEMOTE_KSWAPD, &down)?;
    let up_rate = cx.mean_in(stretch, PGPROMOTE_SUCCESS, &up)?;
    let stalls = PressureWindow::during(cx, stretch);
    let least = MOVED.to_bytes(page);
    let title = Title::from(format!(
        "Pages in use are moved to slow memory and back: {down_rate} demoted and {up_rate} \
         promoted for {}.",
        stretch.duration()
    ))
    .then(stalls.sentence());
    Ok(RULE
        .found(Severity::warning_if(stalls.for_memory()), title)
        .graph("promoted", &up)
        .shows_from(
            PGDEMOTE_KSWAPD,
            down_rate,
            least,
            None,
            format!("{down_rate} demoted to slow memory"),
        )
        .shows_from(
            PGPROMOTE_SUCCESS,
            up_rate,
            least,
            None,
            format!("{up_rate} promoted to fast memory"),
        )
        .counts_as("pages that move both ways")
        .shows_stalls(&stalls)
        .not("numa-balancing-overhead", "pages are moved, not only sampled")
        .fix(
            Fix::say(
                "Find the programs with memory on both tiers, and give those that matter the fast \
                 one: AllowedMemoryNodes= in the unit file, or numactl --membind.",
            )
            .inspect(
                "numastat -mc\n\
                 grep -H . /sys/devices/virtual/memory_tiering/*/nodelist \
                 /sys/kernel/mm/numa/demotion_enabled",
            ),
        )
        .fix(
            Fix::say(
                "Or use less fast memory at a time. Slower promotion helps if the load moves on \
                 by itself: note the old value of kernel.numa_balancing_promote_rate_limit_MBps \
                 before changing it.",
            )
            .inspect("sysctl kernel.numa_balancing_promote_rate_limit_MBps"),
        )
        .affects(processes::largest(cx, stretch.last, 3))
        .sure_by_kinds(cx, stalls.open())
        .into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::testing::{Case, amid_calm, clear, found, not_evaluated, times};
    use timeline::signals::PSI_MEMORY_SOME;

    fn moving(down: u64, up: u64) -> Case {
        Case::over(30).counter(PGDEMOTE_KSWAPD, down).counter(PGPROMOTE_SUCCESS, up)
    }

    #[test]
    fn pages_that_move_both_ways_are_found() {
        let finding = found(RULE, &moving(12_800, 12_000));
        assert_eq!(finding.severity, Severity::Info);
        assert_eq!(finding.confidence.word(), "probable");
        assert!(finding.title.contains("50 MiB/s demoted"), "{}", finding.title);
    }

    #[test]
    fn a_warning_while_tasks_wait_for_memory() {
        let finding = found(RULE, &moving(12_800, 12_000).counter(PSI_MEMORY_SOME, 200_000));
        assert_eq!(finding.severity, Severity::Warning);
        assert_eq!(finding.confidence.word(), "confirmed");
    }

    #[test]
    fn direct_demotion_counts_too() {
        found(RULE, &moving(200, 12_000).counter(PGDEMOTE_DIRECT, 12_000));
    }

    #[test]
    fn clear_when_pages_move_one_way_or_hardly() {
        clear(RULE, &moving(12_800, 100));
        clear(RULE, &moving(3_000, 12_000));
        clear(RULE, &moving(300, 300));
    }

    #[test]
    fn finds_30_s_within_an_hour() {
        let hour = |up| {
            Case::over(3600)
                .counter_steps(PGDEMOTE_KSWAPD, &amid_calm(12_800, 0))
                .counter_steps(PGPROMOTE_SUCCESS, &amid_calm(up, 0))
        };
        assert_eq!(times(&found(RULE, &hour(12_000))), [(1800, 1830)]);
        clear(RULE, &hour(1_000));
    }

    #[test]
    fn not_evaluated_on_kernels_without_tiers() {
        assert_eq!(not_evaluated(RULE, &Case::over(30)).names, ["vm.pgdemote_kswapd"]);
    }
}
