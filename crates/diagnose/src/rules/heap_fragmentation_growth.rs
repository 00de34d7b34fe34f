//! Fragmentation: the free bytes of a process's malloc heap grow beyond what its peaks explain.

use timeline::signals::{
    PROC_HEAP_FREE, PROC_HEAP_FREE_RESIDENT, PROC_HEAP_LIVE, PROC_HEAP_RETURNABLE,
};

use crate::growth::{CONFIDENCE_MIN, GrowthClass};
use crate::measures::available::little_left;
use crate::measures::heap_growth::{self, WantedCourse};
use crate::prelude::*;
use crate::process_memory::{FREE_MIN, FREE_OF_RSS_MIN};

declare_rule! {
    /// The allocator of a process keeps ever more free memory in pieces that the program's peaks do not explain.
    ///
    /// ## What it means
    /// The program's data do not grow, but the pieces that it frees do not fit what it allocates next, or lie between
    /// live ones on the same pages: malloc takes new memory from the kernel and cannot return the old. It looks like a
    /// leak from outside, and no heap profile shows it. It levels off, often at one and a half to three times the live
    /// bytes.
    /// ## How it is recognised
    /// The malloc heap was read while it ran (`memtide record --explain NAME`, or a table of live and free bytes). The
    /// classifier of `memtide growth` calls it fragmentation with a confidence of {CONFIDENCE_MIN} or more, over an
    /// hour or longer: free bytes grew beyond what the highest live size so far leaves behind. {FREE_MIN} or more are
    /// free. It is informational, and a warning if less than {AVAILABLE_LOW_SHARE} of RAM was available meanwhile.
    /// ## Not this
    /// - `process-leak`: live bytes rise; both may be there.
    /// - `malloc-arena-bloat`: the free memory lies in many arenas, one for each few threads.
    /// - A batch that is over: free bytes jumped once, when live ones fell.
    /// ## What to do
    /// Try another allocator (jemalloc, tcmalloc) or `MALLOC_ARENA_MAX=2`, and measure memory and latency together;
    /// `malloc_trim(0)` at quiet times returns what lies on whole free pages. Without a change: size the limit for the
    /// level at which it ends. Verify: free bytes of the heap stay below {FREE_OF_RSS_MIN} of the process over the same
    /// time.
    /// ## References
    /// - mallinfo2(3): fordblks, the free bytes
    /// - malloc_trim(3), mallopt(3) M_ARENA_MAX
    pub(crate) RULE = {
        id: "heap-fragmentation-growth", since: "0.1.0", class: Growth,
        numbers: [CONFIDENCE_MIN, FREE_MIN, AVAILABLE_LOW_SHARE, FREE_OF_RSS_MIN],
        trigger: trigger, story: story,
        cause: "What the program frees does not fit what it allocates next, and live pieces keep \
                the pages between them.",
        verify: "memtide growth over as long a time with the other allocator: no fragmentation, \
                 and latency as before",
        brings_about: WANT_AND_THRASH,
    }
}

fn trigger() -> Trigger {
    Trigger::Found(FoundBy {
        find: |cx| heap_growth::find(cx, FRAGMENTS),
        could: None,
        scope: Subjects::Each(Entity::Process, |_, _| true),
        none: Some(|_| {
            clear!("no free bytes of a malloc heap grow beyond what its peaks leave behind")
        }),
    })
}

const FRAGMENTS: WantedCourse = WantedCourse {
    figure: PROC_HEAP_FREE,
    is_large: |change| change.free.1 >= FREE_MIN,
    is_class: GrowthClass::fragments,
};

fn story<'a>(cx: &Evidence<'a>, incident: &Incident<'a>) -> Result<Outcome, Missing> {
    let (stretch, process) = (&incident.stretch, incident.entity()?);
    let Some(course) = FRAGMENTS.of(cx, process, &(stretch.first..=stretch.last)) else {
        return clear!("its free bytes are what its peaks left behind");
    };
    let (growth, at) = (&course.growth, cx.time(course.change.last));
    let ((from, free), live) = (course.change.free, course.change.live.1);
    let little = little_left(cx, stretch).is_some();
    let ends = growth
        .levels_off_at
        .map_or_else(String::new, |level| format!("; it levels off at about {level}"));
    let title = format!(
        "The malloc heap of {} is ever more fragmented: {free} of it are free beside {live} of \
         live data, {from} were {} before{ends}.",
        course.name(),
        growth.judged,
    );
    let returnable = cx.timeline.at_of(process, PROC_HEAP_RETURNABLE, course.change.last);
    let resident = cx.timeline.at_of(process, PROC_HEAP_FREE_RESIDENT, course.change.last);
    let finding = RULE
        .found(Severity::warning_if(little), title)
        .with(cx.timeline.gauge_of(process, PROC_HEAP_FREE), |finding, free| {
            finding.graph("free bytes of its malloc heap", &free)
        })
        .shows_from(PROC_HEAP_FREE, free, FREE_MIN, at, format!("{free} are free in its heap"))
        .shows(PROC_HEAP_LIVE, live, at, format!("{live} are live"))
        .with(resident, |finding, resident| {
            finding.shows(
                PROC_HEAP_FREE_RESIDENT,
                resident,
                at,
                format!("{resident} of the free memory are in RAM"),
            )
        })
        .with(returnable, |finding, returnable| {
            finding.shows(
                PROC_HEAP_RETURNABLE,
                returnable,
                at,
                format!("malloc_trim would return {returnable}"),
            )
        })
        .with_line(growth.method.to_string())
        .counts_as("live and free bytes of its malloc heap")
        .when(!growth.class.leaks(), |finding| {
            finding.not("process-leak", "its live bytes do not rise in a line")
        })
        .not("a batch that is over", "free bytes did not jump once")
        .fix(
            Fix::say(
                "See which arenas and sizes it is, and what malloc_trim or fewer arenas would \
                 save.",
            )
            .inspect(format!("memtide explain {} --full", process.pid())),
        )
        .fix(Fix::say(
            "Start it with another allocator (LD_PRELOAD of libjemalloc.so.2) or with \
             MALLOC_ARENA_MAX=2 in Environment= of its unit, and compare memory and latency.",
        ))
        .fix(Fix::say(
            "If it stays: have it call malloc_trim(0) at quiet times, and size its limit for the \
             level at which the growth ends.",
        ));
    Ok(finding.affects([course.affected()]).sure(course.confidence()).into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::testing::{Case, clear, found, not_evaluated};
    use timeline::signals::{MEM_AVAILABLE, MEM_TOTAL};

    const HOUR: f64 = 3600.0;

    fn host(available: u64, heap: impl Fn(f64) -> [f64; 2]) -> Case {
        Case::every(Span::from_mins(1), 600)
            .gauge(MEM_TOTAL, Bytes::from_gib(16))
            .gauge(MEM_AVAILABLE, Bytes::from_mib(available))
            .heap_of("7@1", heap)
            .named("7@1", "ruby")
    }

    /// 300 MiB of live data, and free memory that levels off at 260 MiB.
    fn fragmenting(at: f64) -> [f64; 2] {
        [300.0, 260.0 - 250.0 * (-at / (3.0 * HOUR)).exp()]
    }

    #[test]
    fn free_bytes_that_no_peak_explains_are_fragmentation() {
        let finding = found(RULE, &host(8000, fragmenting));
        assert_eq!(finding.severity, Severity::Info);
        assert!(
            finding
                .title
                .starts_with("The malloc heap of ruby (pid 7) is ever more fragmented: 25"),
            "{}",
            finding.title
        );
        assert!(
            finding.title.contains("beside 300 MiB of live data, 10 MiB were"),
            "{}",
            finding.title
        );
        assert_eq!(finding.confidence.word(), "confirmed");
        assert!(finding.ruled_out.iter().any(|out| out.id == "process-leak"));
        assert_eq!(found(RULE, &host(800, fragmenting)).severity, Severity::Warning);
    }

    #[test]
    fn clear_where_a_batch_left_its_memory_behind() {
        // Live bytes double for an hour, and their memory stays free.
        clear(
            RULE,
            &host(8000, |at| match at / HOUR {
                hour if hour < 3.0 => [300.0, 20.0],
                hour if hour < 4.0 => [600.0, 20.0],
                _ => [300.0, 320.0],
            }),
        );
    }

    #[test]
    fn clear_where_live_bytes_leak_or_nothing_grows() {
        clear(RULE, &host(8000, |at| [200.0 + at / HOUR * 60.0, 20.0]));
        clear(RULE, &host(8000, |_| [300.0, 200.0]));
        // Live bytes swing, and free ones are what their peaks leave behind.
        clear(
            RULE,
            &host(8000, |at| {
                let load = (at / (5.0 * HOUR) * std::f64::consts::TAU).sin();
                [300.0 + 100.0 * load, 110.0 - 100.0 * load]
            }),
        );
    }

    #[test]
    fn not_evaluated_without_figures_of_a_heap() {
        assert_eq!(not_evaluated(RULE, &Case::once()).need, Need::Heaps);
        // A table of live bytes alone shows no free ones.
        let live = Case::every(Span::from_mins(1), 600)
            .gauge(MEM_TOTAL, Bytes::from_gib(16))
            .gauge_of(Entity::Process, "7@1", PROC_HEAP_LIVE, Bytes::from_mib(300));
        assert_eq!(not_evaluated(RULE, &live).names, [PROC_HEAP_FREE.def().name]);
    }
}
