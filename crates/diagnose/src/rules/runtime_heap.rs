//! A process that is mostly the heap of its runtime, where malloc's figures and settings say nothing.

use timeline::signals::{PROC_HEAP_RESIDENT, PROC_RSS, PROC_RUNTIME_HEAP};

use crate::measures::available::little_left;
use crate::measures::heap_growth;
use crate::prelude::*;
use crate::process_memory::OWNER_SHARE_MIN;

declare_rule! {
    /// Most of a process is the heap of its runtime or of an allocator other than glibc's malloc.
    ///
    /// ## What it means
    /// Java, Go, Node, CPython and Ruby keep objects in memory that they manage themselves, and so do jemalloc and
    /// tcmalloc. They return it late or never, and grow up to a limit of their own. Settings of malloc and
    /// `malloc_trim` do not change it.
    /// ## How it is recognised
    /// The process was read while it ran (`memtide record --explain NAME`). In two readings in a row or more, half of
    /// its RSS or more is such a heap, and that is {RUNTIME_HEAP_MIN} or more. It is informational, and a warning if
    /// less than {AVAILABLE_LOW_SHARE} of RAM is available.
    /// ## Not this
    /// - `process-leak`, `heap-fragmentation-growth`, `malloc-arena-bloat`: the memory is malloc's. How much of a
    ///   runtime's heap is live, only the runtime knows: neither a leak nor fragmentation in it shows from outside.
    /// - A small part: an embedded interpreter beside much malloc memory.
    /// ## What to do
    /// Ask the runtime: `jcmd PID GC.heap_info`, `GODEBUG=gctrace=1`, `process.memoryUsage()`, `GC.stat`; `memtide
    /// explain PID --runtime-stats FILE` reads them. Bound it by its own setting (`-Xmx`, `GOMEMLIMIT`,
    /// `--max-old-space-size`), below the limit of its cgroup. Verify: the heap stays below that bound, and response
    /// times as before.
    /// ## References
    /// - JDK guide, Native Memory Tracking; Go's runtime/debug.SetMemoryLimit; Node's --max-old-space-size; Ruby's GC.stat
    pub(crate) RULE = {
        id: "runtime-heap", since: "0.1.0", class: Growth,
        numbers: [RUNTIME_HEAP_MIN, AVAILABLE_LOW_SHARE],
        trigger: trigger, story: story,
        cause: "The runtime keeps its objects, and memory that its collector freed, in a heap of \
                its own.",
        verify: "memtide explain PID at the same load: a smaller heap of the runtime; response \
                 times as before",
        brings_about: WANT_AND_THRASH,
    }
}

/// A smaller heap is not worth an action: an engineering choice.
const RUNTIME_HEAP_MIN: Bytes = Bytes::from_mib(64);

fn trigger() -> Trigger {
    Trigger::Found(FoundBy {
        find: |cx| {
            heap_growth::runs(cx, PROC_RUNTIME_HEAP, |process| {
                move |index| RuntimeReading::at(cx, process, index).is_some_and(|it| it.is_most())
            })
        },
        could: None,
        scope: Subjects::Each(Entity::Process, |_, _| true),
        none: Some(|_| clear!("no process that was read is mostly the heap of a runtime")),
    })
}

/// A process at one reading.
#[derive(Debug, Clone, Copy)]
struct RuntimeReading {
    runtime: Bytes,
    rss: Bytes,
}

impl RuntimeReading {
    fn at(cx: &Evidence<'_>, process: &EntitySeries, index: usize) -> Option<Self> {
        let rss = cx.timeline.at_of(process, PROC_RSS, index)?;
        Some(Self {
            runtime: cx.timeline.at_of(process, PROC_RUNTIME_HEAP, index)?,
            rss: rss.to_bytes(cx.facts.page_size?),
        })
    }

    fn is_most(&self) -> bool {
        self.runtime >= RUNTIME_HEAP_MIN && self.runtime >= self.rss.share(OWNER_SHARE_MIN)
    }
}

fn story<'a>(cx: &Evidence<'a>, incident: &Incident<'a>) -> Result<Outcome, Missing> {
    let (stretch, process) = (&incident.stretch, incident.entity()?);
    let last = heap_growth::last_reading(cx, process, PROC_RUNTIME_HEAP, stretch.last);
    let Some(it) = RuntimeReading::at(cx, process, last).filter(RuntimeReading::is_most) else {
        return clear!("its runtime's heap is not most of it");
    };
    let (runtime, name, at) = (it.runtime, heap_growth::named(process), cx.time(last));
    let share = runtime.ratio_of(it.rss).unwrap_or_default();
    let little = little_left(cx, stretch).is_some();
    let title =
        format!("{name} is mostly the heap of its runtime: {runtime}, {share} of its memory.");
    let malloc = cx.timeline.at_of(process, PROC_HEAP_RESIDENT, last);
    let finding = RULE
        .found(Severity::warning_if(little), title)
        .with(cx.timeline.gauge_of(process, PROC_RUNTIME_HEAP), |finding, heap| {
            finding.graph("heap of its runtime in RAM", &heap)
        })
        .shows_from(
            PROC_RUNTIME_HEAP,
            runtime,
            RUNTIME_HEAP_MIN,
            at,
            format!("{runtime} are not malloc's, but its runtime's"),
        )
        .counts_as("the heap of its runtime")
        .with(malloc, |finding, malloc| {
            finding
                .shows(PROC_HEAP_RESIDENT, malloc, at, format!("glibc's malloc has {malloc}"))
                .not("malloc-arena-bloat", format!("malloc has {malloc} of {}", it.rss))
        })
        .fix(
            Fix::say("See which runtime it is, and what shows the inside of its heap.")
                .inspect(format!("memtide explain {}", process.pid())),
        )
        .fix(Fix::say(
            "Bound it by the runtime's own setting (-Xmx, GOMEMLIMIT, --max-old-space-size) below \
             its cgroup's limit; without the setting it is as before. Settings of malloc do not \
             change it.",
        ))
        .affects([heap_growth::affected(process, format!("{runtime} in its runtime's heap"))]);
    let open = "how much of it is live, only the runtime knows";
    Ok(finding.sure_by_kinds(cx, open).into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::testing::{Case, clear, found, not_evaluated, times};
    use timeline::signals::{MEM_AVAILABLE, MEM_TOTAL, PROC_HEAP_LIVE};

    /// A process of 1 GiB with this many MiB of its runtime's heap in each second.
    fn host(runtime: &[u64]) -> Case {
        let runtime: Vec<Bytes> = runtime.iter().map(|mib| Bytes::from_mib(*mib)).collect();
        Case::over(60)
            .gauge(MEM_TOTAL, Bytes::from_gib(16))
            .gauge(MEM_AVAILABLE, Bytes::from_gib(8))
            .gauge_of(Entity::Process, "7@1", PROC_RSS, Pages::new(1 << 18))
            .gauge_steps_of(Entity::Process, "7@1", PROC_RUNTIME_HEAP, &runtime)
            .named("7@1", "java")
    }

    #[test]
    fn a_process_that_is_mostly_the_heap_of_its_runtime_is_found() {
        let malloc = Bytes::from_mib(90);
        let case = host(&[800]).gauge_of(Entity::Process, "7@1", PROC_HEAP_RESIDENT, malloc);
        let finding = found(RULE, &case);
        assert_eq!(finding.severity, Severity::Info);
        assert_eq!(
            finding.title,
            "java (pid 7) is mostly the heap of its runtime: 800 MiB, 78 % of its memory."
        );
        assert_eq!(finding.ruled_out[0].id, "malloc-arena-bloat");
    }

    #[test]
    fn it_is_a_warning_where_little_is_available() {
        let case = host(&[800]).gauge(MEM_AVAILABLE, Bytes::from_mib(300));
        assert_eq!(found(RULE, &case).severity, Severity::Warning);
    }

    #[test]
    fn only_the_readings_that_show_it_are_its_time() {
        let mut runtime = [200; 60];
        runtime[20..40].fill(800);
        assert_eq!(times(&found(RULE, &host(&runtime))), [(20, 39)]);
        let mut once = [200; 60];
        once[20] = 800;
        clear(RULE, &host(&once));
    }

    #[test]
    fn clear_where_it_is_a_small_part_or_only_malloc_was_read() {
        clear(RULE, &host(&[400]));
        let live = Bytes::from_mib(700);
        let only_malloc = Case::over(60).gauge_of(Entity::Process, "7@1", PROC_HEAP_LIVE, live);
        clear(RULE, &only_malloc);
    }

    #[test]
    fn not_evaluated_where_no_heap_was_read() {
        assert_eq!(not_evaluated(RULE, &Case::once()).need, Need::Heaps);
    }
}
