//! NUMA balancing works much and moves little.

use timeline::facts::NUMA_BALANCING;
use timeline::signals::{
    CPU_IDLE, CPU_IOWAIT, CPU_IRQ, CPU_NICE, CPU_SOFTIRQ, CPU_STEAL, CPU_SYSTEM, CPU_USER,
    NUMA_HINT_FAULTS, NUMA_HINT_FAULTS_LOCAL, NUMA_PAGES_MIGRATED, NUMA_PTE_UPDATES,
};

use crate::prelude::*;

declare_rule! {
    /// NUMA balancing makes many page faults to find out where memory is used, and it is on the right node already.
    ///
    /// ## What it means
    /// With `kernel.numa_balancing`, the kernel unmaps pages for a moment to see which CPU touches them next, and moves
    /// those that lie on another node. Programs that are pinned, or that manage nodes themselves (databases, virtual
    /// machines), gain nothing: their pages are local already. They pay with faults, flushed TLBs and CPU time in the
    /// kernel, felt as latency.
    /// ## How it is recognised
    /// For {LEVEL} or longer, page-table entries are marked at {MARKED} or more, hinting faults follow at {FAULTS} or
    /// more, {LOCAL} of them or more find the page on the task's own node, and at most one page in ten of them is
    /// moved. It is always informational: no counter shows what the faults delay.
    /// ## Not this
    /// - A program that has just started, or was moved to another node: pages are moved, and faults become fewer.
    /// - Tiered memory (`kernel.numa_balancing` 2): the faults find pages worth promoting.
    /// - `numa-imbalance`, `node-reclaim-on`: a node is full.
    /// ## What to do
    /// Now: `sysctl -w kernel.numa_balancing=0`, and compare latency; for good in a file under `/etc/sysctl.d/`.
    /// Verify: hinting faults stop, CPU time in the kernel falls, and numastat shows no more remote memory than before.
    /// ## References
    /// - kernel Documentation/admin-guide/sysctl/kernel.rst, numa_balancing
    pub(crate) RULE = {
        id: "numa-balancing-overhead", since: "0.1.0", class: Setting,
        numbers: [LEVEL, MARKED, FAULTS, LOCAL],
        trigger: trigger, story: story,
        cause: "The kernel samples memory that is on the right node already.",
        verify: "memtide check --for 1m under the same load: no hinting faults, less CPU time in \
                 the kernel",
        explained_by: &[Explains::Surely(NUMA_BALANCING)],
    }
}

/// 400 MiB/s of memory that is unmapped and faulted in again: an engineering choice.
const MARKED: PerSecond<Count> = PerSecond::new(100_000.0);
/// At 1 to 2 µs each, a hundredth of a CPU and more. Labelled captures, November 2026: 8 at most on settled hosts, 26,000
/// in one second while pages are moved.
const FAULTS: PerSecond<Count> = PerSecond::new(10_000.0);
/// An engineering choice: with a tenth elsewhere, balancing has something to do.
const LOCAL: Ratio = Ratio::from_percent(90.0);
const MOVED_MAX: f64 = 0.1;
/// Plain NUMA balancing; 2 is memory tiering.
const PLAIN: Count = Count::new(1);

fn trigger() -> Trigger {
    let faults = || rate(NUMA_HINT_FAULTS);
    Trigger::on_host(
        LEVEL,
        all![
            fact(NUMA_BALANCING).at_most("kernel.numa_balancing", PLAIN).if_measured(),
            rate(NUMA_PTE_UPDATES).at_least("entries marked", MARKED),
            faults().at_least("hinting faults", FAULTS),
            rate(NUMA_HINT_FAULTS_LOCAL).at_least("local hinting faults", faults().share(LOCAL)),
            rate(NUMA_PAGES_MIGRATED).at_most_of(
                &faults(),
                "pages moved, of the faults",
                MOVED_MAX
            ),
        ],
    )
}

fn story<'a>(cx: &Evidence<'a>, incident: &Incident<'a>) -> Result<Outcome, Missing> {
    let stretch = &incident.stretch;
    let faults = cx.rate(NUMA_HINT_FAULTS)?;
    let rate = cx.mean_in(stretch, NUMA_HINT_FAULTS, &faults)?;
    let local = cx.rate(NUMA_HINT_FAULTS_LOCAL)?.integral_in(stretch);
    let local = Ratio::new(local / faults.integral_in(stretch).max(1.0));
    if local < LOCAL {
        return clear!("{local} of the hinting faults were local: balancing has pages to move");
    }
    let title = format!(
        "NUMA balancing makes {rate} hinting faults for {}, and {local} of them find the page \
         where it belongs.",
        stretch.duration()
    );
    let setting = cx.number(NUMA_BALANCING).ok();
    Ok(RULE
        .found(Severity::Info, title)
        .graph("hinting faults", &faults)
        .shows_from(NUMA_HINT_FAULTS, rate, FAULTS, None, format!("{rate} hinting faults"))
        .counts_as("hinting faults")
        .shows_from(
            Computed(NUMA_HINT_FAULTS_LOCAL),
            local,
            LOCAL,
            None,
            format!("{local} of them on the task's own node"),
        )
        .counts_as("their result")
        .shows_mean(cx, NUMA_PTE_UPDATES, stretch, |rate| {
            format!("{rate} page-table entries marked")
        })
        .shows_mean(cx, NUMA_PAGES_MIGRATED, stretch, |rate| {
            format!("{rate} moved to another node")
        })
        .with(in_kernel(cx, stretch), |finding, share| {
            finding.shows(
                Computed(CPU_SYSTEM),
                share,
                None,
                format!("{share} of CPU time is spent in the kernel"),
            )
        })
        .with(setting, |finding, value| {
            finding.shows_fact(NUMA_BALANCING, value, format!("kernel.numa_balancing is {value}"))
        })
        .fix(Fix::tunable(
            cx,
            "Switch NUMA balancing off, and compare latency. Keep it where programs are neither \
             pinned nor aware of nodes.",
            NUMA_BALANCING,
            0,
        ))
        .sure_by_kinds(cx, "the programs' latency with it switched off would show what it costs")
        .into())
}

/// The share of CPU time that is spent in the kernel.
fn in_kernel(cx: &Evidence<'_>, stretch: &Stretch) -> Option<Ratio> {
    let ticks = |signal| Some(cx.mean_rate(signal, stretch)?.get());
    let all =
        [CPU_USER, CPU_NICE, CPU_SYSTEM, CPU_IDLE, CPU_IOWAIT, CPU_IRQ, CPU_SOFTIRQ, CPU_STEAL];
    let all: f64 = all.into_iter().filter_map(ticks).sum();
    let system = ticks(CPU_SYSTEM)?;
    (all > 0.0).then(|| Ratio::new(system / all))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::testing::{Case, amid_calm, changed, clear, found, not_evaluated, times};

    fn balancing(faults: u64, local: u64, moved: u64) -> Case {
        Case::over(30)
            .counter(NUMA_PTE_UPDATES, 400_000)
            .counter(NUMA_HINT_FAULTS, faults)
            .counter(NUMA_HINT_FAULTS_LOCAL, local)
            .counter(NUMA_PAGES_MIGRATED, moved)
            .fact(NUMA_BALANCING, "1")
    }

    #[test]
    fn many_faults_on_local_pages_are_informational() {
        let case = balancing(30_000, 29_500, 40).counter(CPU_SYSTEM, 120).counter(CPU_USER, 280);
        let finding = found(RULE, &case);
        assert_eq!(finding.severity, Severity::Info);
        assert_eq!(finding.confidence.word(), "confirmed");
        assert!(finding.title.contains("98 % of them"), "{}", finding.title);
        let has_line = |text: &str| finding.evidence.iter().any(|line| line.text.contains(text));
        assert!(has_line("30 % of CPU time"));
        assert_eq!(
            changed(&finding.fixes[0]),
            ["kernel.numa_balancing=1 -> kernel.numa_balancing=0"]
        );
    }

    #[test]
    fn clear_when_pages_are_moved_to_where_they_are_used() {
        clear(RULE, &balancing(30_000, 12_000, 15_000));
        clear(RULE, &balancing(30_000, 28_000, 9_000));
    }

    #[test]
    fn clear_with_few_faults_and_on_tiered_memory() {
        clear(RULE, &balancing(900, 890, 0));
        clear(RULE, &balancing(30_000, 29_500, 40).fact(NUMA_BALANCING, "2"));
    }

    #[test]
    fn finds_30_s_within_an_hour() {
        let hour = |faults: u64| {
            Case::over(3600)
                .counter_steps(NUMA_PTE_UPDATES, &amid_calm(400_000, 0))
                .counter_steps(NUMA_HINT_FAULTS, &amid_calm(faults, 0))
                .counter_steps(NUMA_HINT_FAULTS_LOCAL, &amid_calm(faults, 0))
                .counter(NUMA_PAGES_MIGRATED, 0)
        };
        assert_eq!(times(&found(RULE, &hour(30_000))), [(1800, 1830)]);
        clear(RULE, &hour(2_000));
    }

    #[test]
    fn not_evaluated_without_the_counters() {
        assert_eq!(not_evaluated(RULE, &Case::over(30)).names, ["vm.numa_pte_updates"]);
    }
}
