//! Kernel stacks of very many threads take a notable share of RAM.

use std::collections::BTreeMap;

use timeline::signals::{MEM_KERNEL_STACK, PROC_THREADS};

use crate::measures::available::little_left;
use crate::prelude::*;

declare_rule! {
    /// So many threads exist that their kernel stacks take a notable share of RAM.
    ///
    /// ## What it means
    /// Every thread, however idle, has a stack in the kernel: 16 KiB on x86-64 and arm64. That memory cannot be swapped
    /// or dropped. Ten thousand threads take 160 MiB, and as much again in kernel objects and pages of their own
    /// stacks. A pool without a bound, a leak of threads or a fork bomb makes them.
    /// ## How it is recognised
    /// KernelStack is {STACKS_SHARE} of RAM or more, and {STACKS_MIN} or more, for {LEVEL}. It is informational, and a
    /// warning from {MATTERS} of RAM on if less than {AVAILABLE_LOW_SHARE} of RAM is available at the same time.
    /// Per-process counts name the program.
    /// ## Not this
    /// - `vmalloc-large`: other memory of the kernel behind vmalloc; stacks are not counted there.
    /// - `slab-leak`: kernel objects. Threads need some of those too.
    /// - Large stacks of threads in user space are anonymous memory of their process.
    /// ## What to do
    /// Now: restart the program with the most threads. For good: bound its pools, and set `TasksMax=` for its unit.
    /// Verify: KernelStack is below {STACKS_GOAL} of RAM at the same load.
    /// ## References
    /// - kernel Documentation/mm/vmalloced-kernel-stacks.rst
    /// - systemd.resource-control(5), TasksMax
    pub(crate) RULE = {
        id: "kernel-stacks-large", since: "0.1.0", class: Growth,
        numbers: [STACKS_SHARE, STACKS_MIN, LEVEL, MATTERS, AVAILABLE_LOW_SHARE, STACKS_GOAL],
        trigger: trigger, story: story,
        cause: "Each thread has a kernel stack, also one that only waits.",
        verify: "memtide check at the same load: kernel stacks are below {STACKS_GOAL} of RAM",
    }
}

/// An engineering choice. Labelled captures, November 2026: 0.9 % at most, on a host of 384 MiB.
const STACKS_SHARE: Ratio = Ratio::from_percent(2.0);
/// What a fix must reach: half of the threshold.
const STACKS_GOAL: Ratio = Ratio::new(STACKS_SHARE.get() / 2.0);
/// 4,000 threads: a busy host may have as many; an engineering choice.
const STACKS_MIN: Bytes = Bytes::from_mib(64);
/// Below this part of RAM they are not why little is available: an engineering choice.
const MATTERS: Ratio = Ratio::from_percent(5.0);
/// THREAD_SIZE on x86-64 and arm64.
const STACK: Bytes = Bytes::from_kib(16);
/// The named program must have at least this share of all threads.
const EXPLAINS: Ratio = Ratio::from_percent(50.0);

fn trigger() -> Trigger {
    Trigger::on_host(LEVEL, gauge(MEM_KERNEL_STACK).at_least("kernel stacks", large()))
}

fn large() -> Reading<Bytes> {
    ram().share(STACKS_SHARE).max(STACKS_MIN)
}

fn story<'a>(cx: &Evidence<'a>, incident: &Incident<'a>) -> Result<Outcome, Missing> {
    let stretch = &incident.stretch;
    let stacks = cx.gauge(MEM_KERNEL_STACK)?;
    let Some((most, index)) = stacks.max_in(stretch) else {
        return clear!("kernel stacks were not measured");
    };
    let least = large().track(cx)?.at(index).unwrap_or_default();
    let about = Count::new(most.get() / STACK.get());
    let programs = threads(cx, index);
    let many = Count::from_f64(about.as_f64() * EXPLAINS.get());
    let top = programs.first().filter(|(_, threads)| *threads >= many);
    let who =
        top.map_or_else(String::new, |(name, threads)| format!(", {threads} of them in {name}"));
    let matters = cx.of_ram(most).is_ok_and(|share| share >= MATTERS);
    let little = matters && little_left(cx, stretch).is_some();
    let title =
        format!("Kernel stacks take {most}{}: about {about} threads{who}.", cx.remark_of_ram(most));
    let open = if top.is_some() { "" } else { "processes' thread counts would name the program" };
    Ok(RULE
        .found(Severity::warning_if(little), title)
        .graph("kernel stacks", &stacks)
        .shows_from(
            MEM_KERNEL_STACK,
            most,
            least,
            cx.time(index),
            format!("kernel stacks {most}{}", cx.remark_of_ram(most)),
        )
        .counts_as("the size of kernel stacks")
        .with(top, |finding, (name, threads)| {
            let text = format!("{name} has {threads} threads");
            finding.shows(PROC_THREADS, *threads, None, text).counts_as("the processes' own counts")
        })
        .shows_available(cx, stretch)
        .not("vmalloc-large", "stacks are counted in a line of their own")
        .fix(
            Fix::say("Find the program with the most threads and restart it.")
                .inspect("ps -eo nlwp,pid,comm --sort=-nlwp | head"),
        )
        .fix(Fix::say(
            "Bound its pools, and set TasksMax= in its unit, so that a leak of threads fails there \
             and not on the whole host.",
        ))
        .affects(
            programs.iter().take(3).map(|(name, threads)| {
                Affected::new("process", *name, format!("{threads} threads"))
            }),
        )
        .sure_by_kinds(cx, open)
        .into())
}

/// Programs by the threads of all their processes around a sample, the one with the most first.
fn threads<'a>(cx: &Evidence<'a>, index: usize) -> Vec<(&'a str, Count)> {
    let Some(index) = cx.rows_at(Entity::Process, index) else {
        return Vec::new();
    };
    let mut programs: BTreeMap<&str, Count> = BTreeMap::new();
    for process in cx.timeline.entities(Entity::Process) {
        if let Some(threads) = cx.timeline.at_of(process, PROC_THREADS, index) {
            let all = programs.entry(&process.label).or_default();
            *all += threads;
        }
    }
    let mut programs: Vec<_> = programs.into_iter().collect();
    programs.sort_by_key(|(_, threads)| std::cmp::Reverse(*threads));
    programs
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::testing::{Case, amid_calm, clear, found, not_evaluated, times};
    use timeline::signals::{MEM_AVAILABLE, MEM_SLAB_UNRECLAIMABLE, MEM_TOTAL, MEM_VMALLOC_USED};

    const MIB: fn(u64) -> Bytes = Bytes::from_mib;

    /// A host of 8,000 MiB with `stacks` MiB of kernel stacks.
    fn host(stacks: u64, available: u64) -> Case {
        Case::over(20)
            .gauge(MEM_TOTAL, MIB(8000))
            .gauge(MEM_KERNEL_STACK, MIB(stacks))
            .gauge(MEM_AVAILABLE, MIB(available))
    }

    #[test]
    fn the_program_with_the_threads_is_named() {
        let threads = |case: Case, key, name, n| {
            case.gauge_of(Entity::Process, key, PROC_THREADS, Count::new(n)).named(key, name)
        };
        let case = threads(host(320, 4000), "7@1", "java", 12_000);
        let case = threads(threads(case, "8@1", "java", 3_000), "9@1", "sshd", 1);
        let finding = found(RULE, &case);
        assert_eq!(finding.severity, Severity::Info);
        assert_eq!(finding.confidence.word(), "confirmed");
        assert!(finding.title.contains("15,000 of them in java"), "{}", finding.title);
    }

    #[test]
    fn a_warning_when_little_is_available() {
        let finding = found(RULE, &host(500, 300));
        assert_eq!(finding.severity, Severity::Warning);
        assert_eq!(found(RULE, &host(320, 300)).severity, Severity::Info);
    }

    #[test]
    fn clear_on_a_busy_host_a_small_one_and_with_other_kernel_memory() {
        clear(RULE, &host(120, 4000));
        clear(RULE, &host(30, 4000).gauge(MEM_TOTAL, MIB(1000)));
        let other =
            host(20, 300).gauge(MEM_VMALLOC_USED, MIB(900)).gauge(MEM_SLAB_UNRECLAIMABLE, MIB(900));
        clear(RULE, &other);
    }

    #[test]
    fn finds_30_s_within_an_hour() {
        let hour = |most| {
            Case::over(3600)
                .gauge(MEM_TOTAL, MIB(8000))
                .gauge_steps(MEM_KERNEL_STACK, &amid_calm(MIB(most), MIB(20)))
        };
        assert_eq!(times(&found(RULE, &hour(300))), [(1799, 1829)]);
        clear(RULE, &hour(150));
    }

    #[test]
    fn not_evaluated_without_kernel_stacks() {
        assert_eq!(not_evaluated(RULE, &Case::once()).names, ["mem.kernel_stack"]);
    }
}
