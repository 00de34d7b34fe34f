//! KSM uses CPU time and saves hardly any memory.

use timeline::facts::KSM_RUN;
use timeline::signals::{KSM_SHARED, KSM_SHARING, PROC_STIME};

use crate::measures::kernel_threads;
use crate::prelude::*;
use crate::trigger::computed_within;

declare_rule! {
    /// KSM searches for equal pages, which costs CPU time, and saves hardly any memory.
    ///
    /// ## What it means
    /// Kernel samepage merging compares pages of programs that asked for it (virtual machines, browsers, containers)
    /// and keeps one copy of equal ones. Its thread, ksmd, reads all of that memory again and again, and has to
    /// remember every page. Where guests differ, that is work for nothing; merged pages must also be copied again when
    /// written.
    /// ## How it is recognised
    /// For {LEVEL} the kernel thread ksmd uses {KSMD_CPU} of a CPU or more, while the pages that it saves
    /// (pages_sharing) are less than {SAVES_LITTLE} of RAM. It is informational: nothing waits for ksmd.
    /// ## Not this
    /// - KSM that was just switched on: it merges nothing before its second pass over memory (full_scans).
    /// - KSM that saves memory at the same cost: that is its purpose.
    /// - `thp-bloat`: khugepaged, another thread of the kernel that goes through memory.
    /// ## What to do
    /// Now: stop it (`echo 0 > /sys/kernel/mm/ksm/run`); what is merged stays merged. Or slow it down (pages_to_scan,
    /// sleep_millisecs), or let its advisor choose (6.8 or later). For good: switch off ksmtuned or the hypervisor's
    /// setting for it. Verify: ksmd below {KSMD_CPU_GOAL} of a CPU.
    /// ## References
    /// - kernel Documentation/admin-guide/mm/ksm.rst
    pub(crate) RULE = {
        id: "ksm-cost", since: "0.1.0", class: Setting,
        numbers: [LEVEL, KSMD_CPU, SAVES_LITTLE, KSMD_CPU_GOAL],
        trigger: trigger, story: story,
        cause: "The programs that asked for merging have few pages in common, or pages_to_scan is \
                high.",
        verify: "memtide check --for 1m: ksmd below {KSMD_CPU_GOAL} of a CPU",
        explained_by: &[Explains::Maybe(KSM_RUN)],
    }
}

/// An engineering choice: with the kernel's own settings (100 pages each 20 ms) it takes 1 % to 3 %.
const KSMD_CPU: Ratio = Ratio::from_percent(10.0);
/// What a fix must reach: what it takes where it is slowed down.
const KSMD_CPU_GOAL: Ratio = Ratio::from_percent(1.0);
/// An engineering choice: less is lost in the noise of any host.
const SAVES_LITTLE: Ratio = Ratio::from_percent(1.0);

/// The thread that merges; there is one.
const KSMD_THREAD: &str = "ksmd";

fn saved() -> Reading<Bytes> {
    gauge(KSM_SHARING).bytes()
}

fn trigger() -> Trigger {
    let cpu: Reading<Ratio> = computed_within(
        "ksmd's CPU",
        |cx| kernel_threads::busiest(cx, KSMD_THREAD),
        kernel_threads::at_most,
    );
    Trigger::on_host(
        LEVEL,
        all![
            saved().at_most("memory that KSM saves", ram().share(SAVES_LITTLE)),
            cpu.at_least("ksmd's CPU", KSMD_CPU),
        ],
    )
}

fn story<'a>(cx: &Evidence<'a>, incident: &Incident<'a>) -> Result<Outcome, Missing> {
    let stretch = &incident.stretch;
    let cpu = kernel_threads::busiest(cx, KSMD_THREAD)?;
    let mean = cx.mean_in(stretch, PROC_STIME, &cpu)?;
    let saved = saved().track(cx)?;
    let saves = cx.mean_in(stretch, KSM_SHARING, &saved)?;
    let little = cx.ram()?.share(SAVES_LITTLE);
    let kept = cx.bytes(KSM_SHARED).ok().and_then(|kept| kept.mean_in(stretch));
    let old = cx.number(KSM_RUN).ok();
    Ok(RULE
        .found(
            Severity::Info,
            format!(
                "KSM uses {mean} of a CPU to search for equal pages, and saves only {saves}{}.",
                cx.remark_of_ram(saves)
            ),
        )
        .graph("ksmd's CPU", &cpu)
        .shows_from(PROC_STIME, mean, KSMD_CPU, None, format!("ksmd uses {mean} of a CPU"))
        .counts_as("ksmd's CPU time")
        .shows_below(
            Computed(KSM_SHARING),
            saves,
            little,
            None,
            format!("{saves} saved by merging"),
        )
        .counts_as("the little that it saves")
        .with(kept, |finding, kept| {
            finding.shows(
                Computed(KSM_SHARED),
                kept,
                None,
                format!("{kept} of merged pages are in use"),
            )
        })
        .fix(
            Fix::say(
                "See how many passes it made, and what it merges; before its second pass it saves \
                 nothing.",
            )
            .inspect("grep -H . /sys/kernel/mm/ksm/*"),
        )
        .fix(Fix::file(
            "Stop it. What is merged stays merged; 2 instead of 0 takes merged pages apart, which \
             needs RAM.",
            KSM_RUN,
            0,
            old,
        ))
        .sure_by_kinds(cx, "full_scans would show whether it has only begun")
        .into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measures::kernel_threads::KTHREADD;
    use crate::rules::testing::{Case, amid_calm, changed, clear, found, not_evaluated, times};
    use timeline::signals::{MEM_TOTAL, PROC_PARENT};

    const KSMD: &str = "61@9";

    /// A host of 16 GiB on which ksmd takes `ticks` a second and saves `mib`.
    fn host(ticks: u64, mib: u64) -> Case {
        named(Case::over(30).counter_of(Entity::Process, KSMD, PROC_STIME, ticks), mib)
    }

    fn named(case: Case, mib: u64) -> Case {
        case.gauge(MEM_TOTAL, Bytes::from_gib(16))
            .gauge(KSM_SHARING, Pages::new(mib * 256))
            .fact(KSM_RUN, "1")
            .gauge_of(Entity::Process, KSMD, PROC_PARENT, KTHREADD)
            .named(KSMD, "ksmd")
    }

    #[test]
    fn work_for_little_is_informational() {
        let finding = found(RULE, &host(40, 20));
        assert_eq!(finding.severity, Severity::Info);
        assert_eq!(finding.confidence.word(), "confirmed");
        assert_eq!(changed(&finding.fixes[1]), ["ksm.run=1 -> ksm.run=0"]);
    }

    #[test]
    fn clear_when_it_saves_memory_or_hardly_runs() {
        clear(RULE, &host(40, 2000));
        clear(RULE, &host(2, 20));
    }

    #[test]
    fn clear_when_another_thread_works() {
        let case = host(1, 20)
            .counter_of(Entity::Process, "70@9", PROC_STIME, 90)
            .gauge_of(Entity::Process, "70@9", PROC_PARENT, KTHREADD)
            .named("70@9", "khugepaged");
        clear(RULE, &case);
    }

    #[test]
    fn finds_30_s_within_an_hour() {
        let hour = |ticks| {
            let steps = amid_calm(ticks, 0);
            named(Case::over(3600).counter_steps_of(Entity::Process, KSMD, PROC_STIME, &steps), 20)
        };
        assert_eq!(times(&found(RULE, &hour(60))), [(1800, 1830)]);
        clear(RULE, &hour(5));
    }

    #[test]
    fn not_evaluated_without_ksms_files_or_its_thread() {
        let without = Case::over(30).gauge(MEM_TOTAL, Bytes::from_gib(16));
        assert_eq!(not_evaluated(RULE, &without).names, ["ksm.pages_sharing"]);
        let without = without.gauge(KSM_SHARING, Pages::ZERO);
        assert_eq!(not_evaluated(RULE, &without).names, ["proc.stime"]);
    }
}
