//! kcompactd, the background compactor, keeps a CPU busy.

use timeline::facts::{COMPACTION_PROACTIVENESS, THP_DEFRAG};
use timeline::signals::{
    COMPACT_DAEMON_WAKE, COMPACT_FREE_SCANNED, COMPACT_MIGRATE_SCANNED, COMPACT_STALL, PROC_STIME,
};

use crate::measures::kernel_threads;
use crate::prelude::*;
use crate::trigger::computed_within;

declare_rule! {
    /// kcompactd burns a CPU moving pages together, again and again.
    ///
    /// ## What it means
    /// kcompactd is the kernel thread that makes large free blocks by moving pages. It is woken when a large block is
    /// asked for, and by itself if `vm.compaction_proactiveness` is above 0. Where most pages cannot be moved (guests
    /// of a hypervisor, pinned or kernel memory) it scans without an end, holds locks of the page lists, and other
    /// tasks stutter.
    /// ## How it is recognised
    /// For {LEVEL} or longer, a kcompactd thread uses {CPU_BUSY} of a CPU or more. It is a warning if tasks wait for
    /// memory at that time, otherwise informational.
    /// ## Not this
    /// - `compaction-stall`: tasks compact by themselves, at a page fault.
    /// - `kswapd-saturated`: the thread that reclaims, not the one that moves.
    /// - A moment of compaction when a virtual machine starts or huge pages are reserved.
    /// ## What to do
    /// Now: `sysctl -w vm.compaction_proactiveness=0` (kernel 5.9 or later), and `echo madvise >
    /// /sys/kernel/mm/transparent_hugepage/defrag` if huge pages are asked for all the time; for good in files under
    /// `/etc/sysctl.d/` and `/etc/tmpfiles.d/`. On guests of VMware and VirtualBox: a newer hypervisor driver. Verify:
    /// kcompactd below {kernel_threads::CPU_GOAL} of a CPU under the same load.
    /// ## References
    /// - kernel Documentation/admin-guide/sysctl/vm.rst, compaction_proactiveness
    /// - kernel mm/compaction.c, kcompactd_do_work
    pub(crate) RULE = {
        id: "kcompactd-saturated", since: "0.1.0", class: Stall,
        numbers: [LEVEL, CPU_BUSY, kernel_threads::CPU_GOAL],
        trigger: trigger, waits: Memory, story: story,
        cause: "Large free blocks are asked for, and the pages in the way can hardly be moved.",
        verify: "memtide check --for 1m under the same load: kcompactd below \
                 {kernel_threads::CPU_GOAL} of a CPU",
        explained_by: &[Explains::Maybe(COMPACTION_PROACTIVENESS), Explains::Maybe(THP_DEFRAG)],
    }
}

const KCOMPACTD: &str = "kcompactd";
/// An engineering choice, as for kswapd. Labelled captures, November 2026: below 5 %.
const CPU_BUSY: Ratio = Ratio::from_percent(50.0);

fn trigger() -> Trigger {
    let cpu: Reading<Ratio> = computed_within(
        "kcompactd's CPU",
        |cx| kernel_threads::busiest(cx, KCOMPACTD),
        kernel_threads::at_most,
    );
    Trigger::on_host(LEVEL, cpu.at_least("kcompactd's CPU", CPU_BUSY))
}

fn story<'a>(cx: &Evidence<'a>, incident: &Incident<'a>) -> Result<Outcome, Missing> {
    let stretch = &incident.stretch;
    let Some((thread, cpus)) = kernel_threads::busiest_in(cx, KCOMPACTD, stretch) else {
        return clear!("kcompactd was not measured");
    };
    let name = &thread.label;
    let used = cx.mean_in(stretch, PROC_STIME, &cpus)?;
    let stalls = PressureWindow::during(cx, stretch);
    let moved = cx.mean_rate(COMPACT_MIGRATE_SCANNED, stretch);
    let scans = moved.map_or_else(String::new, |rate| format!(", scanning {rate} to move"));
    let title = format!("{name} used {used} of a CPU for {}{scans}.", stretch.duration());
    let finding = RULE
        .found(Severity::warning_if(stalls.for_memory()), title)
        .graph("kcompactd's CPU", &cpus)
        .shows_from(PROC_STIME, used, CPU_BUSY, None, format!("{name} used {used} of a CPU"))
        .counts_as("kcompactd's CPU time")
        .with(moved.filter(|rate| rate.get() > 0.0), |finding, rate| {
            finding
                .shows(
                    COMPACT_MIGRATE_SCANNED,
                    rate,
                    None,
                    format!("{rate} scanned for pages to move"),
                )
                .counts_as("compaction's counters")
        })
        .shows_mean(cx, COMPACT_FREE_SCANNED, stretch, |rate| {
            format!("{rate} scanned for free places")
        })
        .shows_mean(cx, COMPACT_DAEMON_WAKE, stretch, |rate| format!("kcompactd was woken {rate}"))
        .when(stalls.for_memory(), |finding| finding.shows_stalls(&stalls))
        .with(
            cx.mean_rate(COMPACT_STALL, stretch).filter(|rate| rate.get() < 1.0),
            |finding, rate| {
                finding.not("compaction-stall", format!("direct compactions by tasks: {rate}"))
            },
        );
    Ok(remedy(cx, finding)
        .affects([Affected::new("process", name, format!("{used} of a CPU"))])
        .sure_by_kinds(cx, "")
        .into())
}

fn remedy(cx: &Evidence<'_>, finding: Finding) -> Finding {
    let eager = cx.number(COMPACTION_PROACTIVENESS).ok();
    let finding = match eager.filter(|eager| *eager > 0) {
        Some(eager) => finding
            .shows_fact(
                COMPACTION_PROACTIVENESS,
                eager,
                format!("vm.compaction_proactiveness is {eager}: it also compacts unasked"),
            )
            .fix(Fix::tunable(cx, "Let it compact only on request.", COMPACTION_PROACTIVENESS, 0)),
        None => finding,
    };
    let is_eager = |word: &&str| ["always", "defer"].contains(word);
    match cx.choice(THP_DEFRAG).ok().filter(is_eager) {
        Some(word) => finding.fix(Fix::file(
            format!("Wake it only for programs that ask for huge pages (defrag is {word})."),
            THP_DEFRAG,
            "madvise",
            Some(word),
        )),
        None => finding.fix(
            Fix::say(
                "Find who asks for large blocks: huge pages at a fault, network or storage \
                 drivers, a starting virtual machine.",
            )
            .inspect(
                "grep -H . /sys/kernel/mm/transparent_hugepage/enabled \
                 /sys/kernel/mm/transparent_hugepage/defrag\n\
                 cat /proc/buddyinfo\n\
                 grep -E '^(compact|thp_fault)' /proc/vmstat",
            ),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measures::kernel_threads::KTHREADD;
    use crate::rules::testing::{Case, amid_calm, changed, clear, found, not_evaluated, times};
    use timeline::signals::{PROC_PARENT, PSI_MEMORY_SOME};

    const THREAD: &str = "31@12";

    fn thread(case: Case) -> Case {
        case.gauge_of(Entity::Process, THREAD, PROC_PARENT, KTHREADD).named(THREAD, "kcompactd0")
    }

    fn running(ticks: u64) -> Case {
        thread(Case::over(30))
            .counter_of(Entity::Process, THREAD, PROC_STIME, ticks)
            .counter(COMPACT_MIGRATE_SCANNED, 900_000)
            .counter(COMPACT_STALL, 0)
    }

    #[test]
    fn a_busy_thread_is_informational_while_no_task_waits() {
        let case = running(90).fact(COMPACTION_PROACTIVENESS, "20");
        let finding = found(RULE, &case);
        assert_eq!(finding.severity, Severity::Info);
        assert_eq!(finding.confidence.word(), "confirmed");
        assert!(finding.title.starts_with("kcompactd0 used 90 %"), "{}", finding.title);
        let eager = ["vm.compaction_proactiveness=20 -> vm.compaction_proactiveness=0"];
        assert_eq!(changed(&finding.fixes[0]), eager);
    }

    #[test]
    fn a_warning_while_tasks_wait_for_memory() {
        let case = running(90)
            .counter(PSI_MEMORY_SOME, 200_000)
            .fact(THP_DEFRAG, "[always] defer defer+madvise madvise never");
        let finding = found(RULE, &case);
        assert_eq!(finding.severity, Severity::Warning);
        assert_eq!(changed(&finding.fixes[0]), ["thp.defrag=always -> thp.defrag=madvise"]);
    }

    #[test]
    fn clear_when_it_is_idle_or_works_for_a_moment() {
        clear(RULE, &running(20));
        let moment = [vec![1; 10], vec![95; 5], vec![1; 15]].concat();
        clear(RULE, &running(1).counter_steps_of(Entity::Process, THREAD, PROC_STIME, &moment));
    }

    #[test]
    fn not_evaluated_when_only_a_user_process_has_the_name() {
        let case = running(90).gauge_of(Entity::Process, THREAD, PROC_PARENT, Count::new(1));
        assert_eq!(not_evaluated(RULE, &case).names, ["proc.stime"]);
        assert_eq!(not_evaluated(RULE, &Case::over(30)).names, ["proc.stime"]);
    }

    #[test]
    fn finds_30_s_within_an_hour() {
        let hour = |ticks| {
            thread(Case::over(3600)).counter_steps_of(
                Entity::Process,
                THREAD,
                PROC_STIME,
                &amid_calm(ticks, 1),
            )
        };
        assert_eq!(times(&found(RULE, &hour(90))), [(1800, 1830)]);
        clear(RULE, &hour(30));
    }
}
