//! Many arenas of malloc, each with free memory of its own.

use timeline::signals::{
    PROC_HEAP_ARENAS, PROC_HEAP_FREE_RESIDENT, PROC_HEAP_RESIDENT, PROC_HEAP_RETURNABLE,
    PROC_HEAP_UNKNOWN, PROC_RSS, PROC_SWAP,
};

use crate::measures::available::little_left;
use crate::measures::heap_growth;
use crate::prelude::*;
use crate::process_memory::{
    ARENAS_MANY, FREE_MIN, FREE_OF_RSS_MIN, FREE_SHARE_MIN, HeapFigures, MemoryVerdict,
    ProcessFigures,
};

declare_rule! {
    /// glibc's malloc keeps much free memory in many arenas of a process with threads.
    ///
    /// ## What it means
    /// Threads that allocate at the same time get arenas of their own, up to 8 for each CPU. Memory that is free in one
    /// arena is of no use to a thread of another, and each keeps room for its own peak: the process needs the sum of
    /// peaks that never come together.
    /// ## How it is recognised
    /// The malloc heap was read while it ran (`memtide record --explain NAME`). In two readings in a row or more, it
    /// has {ARENAS_MANY} arenas or more, and of its memory much is free but in RAM: {FREE_MIN} or more,
    /// {FREE_SHARE_MIN} of the heap, and {FREE_OF_RSS_MIN} of the process, whatever is uncertain in the reading. It is
    /// informational, and a warning if less than {AVAILABLE_LOW_SHARE} of RAM is available.
    /// ## Not this
    /// - `heap-fragmentation-growth`: free memory that grows, in however few arenas.
    /// - `process-leak`: the memory is live.
    /// - Fewer arenas: free memory in one or two is no matter of their number.
    /// ## What to do
    /// Start it with `MALLOC_ARENA_MAX=2` (2 to 4), or with jemalloc; threads then wait for each other a little more:
    /// measure latency as well as memory. `memtide explain PID` says what fewer arenas would save. `malloc_trim(0)`
    /// returns free pages in the middle of arenas, not their tops. Verify: fewer arenas and less free memory at the
    /// same load, latency as before.
    /// ## References
    /// - mallopt(3) M_ARENA_MAX, M_ARENA_TEST
    /// - glibc manual, Malloc Tunable Parameters: glibc.malloc.arena_max
    pub(crate) RULE = {
        id: "malloc-arena-bloat", since: "0.1.0", class: Growth,
        numbers: [ARENAS_MANY, FREE_MIN, AVAILABLE_LOW_SHARE, FREE_SHARE_MIN, FREE_OF_RSS_MIN],
        trigger: trigger, story: story,
        cause: "Each arena keeps free memory for its own peak, and what is free in one cannot \
                serve a thread of another.",
        verify: "memtide explain PID at the same load: fewer arenas, less free memory; latency as \
                 before",
        brings_about: WANT_AND_THRASH,
    }
}

/// A heap at one reading.
#[derive(Debug, Clone, Copy)]
struct ArenaReading {
    arenas: Count,
    figures: ProcessFigures,
    heap: HeapFigures,
}

fn trigger() -> Trigger {
    Trigger::Found(FoundBy {
        find,
        could: None,
        scope: Subjects::Each(Entity::Process, |_, _| true),
        none: Some(|_| clear!("no malloc heap has much free memory in many arenas")),
    })
}

fn find(cx: &Evidence<'_>) -> Result<Vec<Occurrence>, Missing> {
    heap_growth::runs(cx, PROC_HEAP_RESIDENT, |process| {
        // Most processes have few arenas: no reading of theirs need be looked up.
        let arenas = cx.timeline.bounds_of(process, PROC_HEAP_ARENAS);
        let ever_many = arenas.is_some_and(|(_, most)| most >= ARENAS_MANY);
        move |index| {
            ever_many && ArenaReading::at(cx, process, index).is_some_and(|it| it.is_bloated())
        }
    })
}

impl ArenaReading {
    /// Returns the reading of a process with many arenas; `None` of any other.
    fn at(cx: &Evidence<'_>, process: &EntitySeries, index: usize) -> Option<Self> {
        let timeline = cx.timeline;
        let bytes = |signal| timeline.at_of(process, signal, index);
        let arenas = timeline.at_of(process, PROC_HEAP_ARENAS, index)?;
        if arenas < ARENAS_MANY {
            return None;
        }
        let heap = HeapFigures {
            resident: bytes(PROC_HEAP_RESIDENT)?,
            free_resident: bytes(PROC_HEAP_FREE_RESIDENT)?,
            uncertain: bytes(PROC_HEAP_UNKNOWN).unwrap_or_default(),
            // Others are not recorded.
            is_whole: true,
        };
        let rss = timeline.at_of(process, PROC_RSS, index)?.to_bytes(cx.facts.page_size?);
        Some(Self {
            arenas,
            figures: ProcessFigures {
                rss,
                swapped: bytes(PROC_SWAP).unwrap_or_default(),
                // Only whether its heap is fragmented is asked.
                largest_other: Bytes::ZERO,
                heap: Some(heap),
            },
            heap,
        })
    }

    fn is_bloated(&self) -> bool {
        MemoryVerdict::of(&self.figures) == MemoryVerdict::Fragmented
    }
}

fn story<'a>(cx: &Evidence<'a>, incident: &Incident<'a>) -> Result<Outcome, Missing> {
    let (stretch, process) = (&incident.stretch, incident.entity()?);
    let last = heap_growth::last_reading(cx, process, PROC_HEAP_RESIDENT, stretch.last);
    let Some(it) = ArenaReading::at(cx, process, last).filter(ArenaReading::is_bloated) else {
        return clear!("it has few arenas, or little free memory in them");
    };
    let (free, rss, arenas) = (it.heap.free_resident, it.figures.rss, it.arenas);
    let (name, at) = (heap_growth::named(process), cx.time(last));
    let share = free.ratio_of(rss).unwrap_or_default();
    let little = little_left(cx, stretch).is_some();
    let title = format!(
        "{name} keeps {free} of free memory in {arenas} arenas of malloc, {share} of its memory."
    );
    let returnable = cx.timeline.at_of(process, PROC_HEAP_RETURNABLE, last);
    let finding = RULE
        .found(Severity::warning_if(little), title)
        .with(cx.timeline.gauge_of(process, PROC_HEAP_FREE_RESIDENT), |finding, free| {
            finding.graph("free memory of its malloc heap in RAM", &free)
        })
        .shows_from(
            PROC_HEAP_FREE_RESIDENT,
            free,
            FREE_MIN,
            at,
            format!("{free} of its heap are free, but in RAM"),
        )
        .counts_as("free memory of its heap")
        .shows_from(PROC_HEAP_ARENAS, arenas, ARENAS_MANY, at, format!("{arenas} arenas"))
        .counts_as("its number of arenas")
        .with(returnable, |finding, returnable| {
            finding.shows(
                PROC_HEAP_RETURNABLE,
                returnable,
                at,
                format!("malloc_trim would return {returnable}"),
            )
        })
        .not("process-leak", format!("{free} of its memory are not live"))
        .fix(
            Fix::say("See what fewer arenas and malloc_trim would save.")
                .inspect(format!("memtide explain {} --full", process.pid())),
        )
        .fix(Fix::say(
            "Start it with MALLOC_ARENA_MAX=2 in Environment= of its unit, or with jemalloc, and \
             compare memory and latency; without the line it is as before.",
        ))
        .affects([heap_growth::affected(process, format!("{free} free in {arenas} arenas"))]);
    let open = "whether its next peak needs the free memory is unknown";
    Ok(finding.sure_by_kinds(cx, open).into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::testing::{Case, clear, found, not_evaluated, times};
    use timeline::signals::{MEM_AVAILABLE, MEM_TOTAL, PROC_HEAP_LIVE};

    /// A process of 1 GiB with `arenas` arenas and this many MiB of free memory in each second.
    fn host(arenas: u64, free: &[u64], uncertain: u64) -> Case {
        let mib = Bytes::from_mib;
        let free: Vec<Bytes> = free.iter().map(|free| mib(*free)).collect();
        let of = |case: Case, signal, value| case.gauge_of(Entity::Process, "7@1", signal, value);
        let case = Case::over(60)
            .gauge(MEM_TOTAL, Bytes::from_gib(16))
            .gauge(MEM_AVAILABLE, Bytes::from_gib(8))
            .gauge_of(Entity::Process, "7@1", PROC_RSS, Pages::new(1 << 18))
            .gauge_of(Entity::Process, "7@1", PROC_HEAP_ARENAS, Count::new(arenas))
            .gauge_steps_of(Entity::Process, "7@1", PROC_HEAP_FREE_RESIDENT, &free)
            .named("7@1", "puma");
        let case = of(case, PROC_HEAP_LIVE, mib(500));
        let case = of(case, PROC_HEAP_RESIDENT, mib(900));
        of(case, PROC_HEAP_UNKNOWN, mib(uncertain))
    }

    #[test]
    fn much_free_memory_in_many_arenas_is_found() {
        let finding = found(RULE, &host(33, &[400], 2));
        assert_eq!(finding.severity, Severity::Info);
        assert_eq!(
            finding.title,
            "puma (pid 7) keeps 400 MiB of free memory in 33 arenas of malloc, 39 % of its memory."
        );
        assert_eq!(finding.confidence.word(), "confirmed");
    }

    #[test]
    fn only_the_readings_that_show_it_are_its_time() {
        let mut free = [30; 60];
        free[20..40].fill(400);
        assert_eq!(times(&found(RULE, &host(33, &free, 2))), [(20, 39)]);
        let mut once = [30; 60];
        once[20] = 400;
        clear(RULE, &host(33, &once, 2));
    }

    #[test]
    fn clear_with_few_arenas_little_free_memory_or_an_uncertain_reading() {
        clear(RULE, &host(2, &[400], 2));
        clear(RULE, &host(33, &[60], 2));
        clear(RULE, &host(33, &[400], 300));
    }

    #[test]
    fn not_evaluated_without_figures_of_a_heap() {
        assert_eq!(not_evaluated(RULE, &Case::once()).need, Need::Heaps);
    }
}
