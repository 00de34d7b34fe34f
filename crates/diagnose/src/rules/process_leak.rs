//! A leak: the live bytes of a process's malloc heap rise without an end; or, where its heap was not read, its memory.

use timeline::signals::{PROC_HEAP_FREE, PROC_HEAP_LIVE, PROC_RSS, PROC_RSS_ANON, PROC_SWAP};

use crate::growth::{
    CONFIDENCE_MIN, GrowthClass, GrowthOwnerKind, NOTED, READINGS_SURE, late_line,
};
use crate::measures::heap_growth::{self, WantedCourse};
use crate::measures::rise::Rise;
use crate::measures::steady_growth::SteadyGrowth;
use crate::prelude::*;

declare_rule! {
    /// A process allocates memory and does not free it again.
    ///
    /// ## What it means
    /// What the program has allocated with malloc, its live bytes, rises in a line: objects that are never freed, a
    /// cache or a queue without a bound. It ends at the limit of its cgroup or of the host, with an OOM kill. No
    /// setting of the allocator helps, as the memory is in use.
    /// ## How it is recognised
    /// The malloc heap was read while it ran (`memtide record --explain NAME`, or a table of live bytes). The
    /// classifier of `memtide growth` calls the live bytes a leak with a confidence of {CONFIDENCE_MIN} or more, which takes
    /// {READINGS_SURE} readings, over an hour or longer; they grew by {Rise::NOISE} or more, and until the last
    /// reading. It is a warning if the limit is reached within {NEAR} at this rate, or if the limit is unknown.
    ///
    /// Where the heap was not read, anonymous memory and swap of the process (its RSS, if the source has no more) rise
    /// in a line until the last reading, for {NOTED} or longer: this is informational, as a cache that fills looks the
    /// same. It is a warning if the limit is met within ten times the time that was seen, from one minute on: there is
    /// still time to find out.
    /// ## Not this
    /// - `heap-fragmentation-growth`: live bytes stand still, and free ones grow.
    /// - `malloc-arena-bloat`: free memory in many arenas, which a load once needed.
    /// - A cache that fills: its growth slows down and ends. While it is still in a line, it cannot be distinguished.
    /// - More load: live bytes follow connections or requests, and fall with them.
    /// ## What to do
    /// Now: restart it before the limit is reached; a restart policy (`RuntimeMaxSec=`, `MemoryMax=` with `Restart=`)
    /// buys time. For good: a heap profile shows which call allocates what stays (bcc `memleak`, heaptrack, jemalloc
    /// with `prof:true`). Verify: memtide growth over the same time calls it flat, or a warm-up.
    /// ## References
    /// - mallinfo2(3): uordblks, the live bytes
    /// - bcc tools/memleak: outstanding allocations by their stacks, while the program runs
    pub(crate) RULE = {
        id: "process-leak", since: "0.1.0", class: Growth,
        numbers: [CONFIDENCE_MIN, READINGS_SURE, Rise::NOISE, NEAR, NOTED],
        trigger: trigger, story: story,
        cause: "The program allocates memory with malloc and does not free it: its live bytes \
                rise, whatever the allocator does.",
        verify: "memtide growth over as long a time: live bytes flat, or a warm-up that has ended",
        brings_about: LEAK_ENDS,
        aliases: &["memory-leak"],
    }
}

/// What a leak ends with, and what it takes memory from.
const LEAK_ENDS: &[&str] = &[
    "cgroup-limit-ahead",
    "available-exhaustion",
    "cache-starved-floor",
    "swap-full",
    "oom-global",
    "oom-cgroup",
    "swap-thrash",
    "page-cache-thrash",
    "no-swap-risk",
    "direct-reclaim-stall",
];

/// A limit that is farther away is reached after the next update of the program: an engineering choice.
const NEAR: Span = Span::from_hours(30 * 24);

fn trigger() -> Trigger {
    Trigger::Found(FoundBy {
        find,
        could: None,
        scope: Subjects::Each(Entity::Process, |_, _| true),
        none: Some(|_| {
            clear!("no memory of a process rises in a line for {NOTED}, or towards its limit")
        }),
    })
}

/// Where live bytes rise, and where memory of processes rises of which no heap was read.
fn find(cx: &Evidence<'_>) -> Result<Vec<Occurrence>, Missing> {
    let heaps = heap_growth::find(cx, LEAKS);
    if cx.is_single_sample() || cx.timeline.entities(Entity::Process).next().is_none() {
        return heaps;
    }
    let mut found = heaps.unwrap_or_default();
    for process in cx.timeline.entities(Entity::Process) {
        found.extend(grows(cx, process).map(|growth| Occurrence {
            first: growth.first,
            last: growth.last,
            key: Some(process.key.clone()),
        }));
    }
    Ok(found)
}

/// How the memory of a process grows of which no heap was read: towards its limit, or for long.
fn grows(cx: &Evidence<'_>, process: &EntitySeries) -> Option<SteadyGrowth> {
    let is_of_heap = cx.timeline.last_of(process, PROC_HEAP_LIVE).is_some();
    if is_of_heap || !SteadyGrowth::may_be_of(cx, process) || !may_rise(cx, process) {
        return None;
    }
    late_line(cx, GrowthOwnerKind::Process, process)
}

/// Whether the sizes of a process differ by as much as a rise, whenever that was: those of most do not, and no track is
/// made of them.
fn may_rise(cx: &Evidence<'_>, process: &EntitySeries) -> bool {
    let range = |(least, largest): (Bytes, Bytes)| largest.saturating_sub(least);
    let bytes = |signal| cx.timeline.bounds_of(process, signal).map(range);
    let resident = || {
        let (least, largest) = cx.timeline.bounds_of(process, PROC_RSS)?;
        let page = cx.facts.page_size?;
        Some(range((least.to_bytes(page), largest.to_bytes(page))))
    };
    let by = bytes(PROC_RSS_ANON).map(|by| by + bytes(PROC_SWAP).unwrap_or_default());
    by.or_else(resident).is_none_or(|by| by >= Rise::NOISE)
}

/// The finding about memory that grows, without a figure of its heap.
fn growing(cx: &Evidence<'_>, process: &EntitySeries, growth: &SteadyGrowth) -> Outcome {
    let name = heap_growth::named(process);
    let (from, to, judged) = (growth.from, growth.to, growth.growth.judged);
    let left = growth.limit_in();
    let ends = match (left, growth.growth.limit_in) {
        (Some(left), _) => format!(" If it goes on like this, its limit is met in {left}."),
        (None, Some(far)) => format!(" At this rate its limit would be met in {far}."),
        (None, None) => String::new(),
    };
    let title = Title::from(format!(
        "{name} may leak: its memory rose in a line from {from} to {to} in {judged}, {}.",
        growth.pace()
    ))
    .then(ends);
    RULE.found(Severity::warning_if(left.is_some()), title)
        .foretells_in(left)
        .shows_from(
            PROC_RSS_ANON,
            to.saturating_sub(from),
            Rise::NOISE,
            cx.time(growth.last),
            format!("{from}, then {to}"),
        )
        .with_line(growth.growth.method.to_string())
        .counts_as("a line of readings")
        .not("a warm-up that ended", "the rise does not slow down")
        .fix(
            Fix::say(
                "See whether it is a leak, a cache that fills, or fragmentation: live bytes of its \
                 heap over time.",
            )
            .inspect(format!(
                "memtide explain {pid}\nmemtide record --explain {}",
                process.label,
                pid = process.pid()
            )),
        )
        .fix(Fix::say(
            "Restart it before the limit is met; MemoryMax= with Restart=on-failure in its unit \
             bounds the damage.",
        ))
        .affects([heap_growth::affected(process, format!("{to} in RAM and swap"))])
        .sure(growth.confidence("its memory"))
        .into()
}

const LEAKS: WantedCourse = WantedCourse {
    figure: PROC_HEAP_LIVE,
    is_large: |change| change.grew() >= Rise::NOISE,
    is_class: GrowthClass::leaks,
};

fn story<'a>(cx: &Evidence<'a>, incident: &Incident<'a>) -> Result<Outcome, Missing> {
    let (stretch, process) = (&incident.stretch, incident.entity()?);
    if let Some(growth) = grows(cx, process) {
        return Ok(growing(cx, process, &growth));
    }
    let Some(course) = LEAKS.of(cx, process, &(stretch.first..=stretch.last)) else {
        return clear!("its live bytes do not rise in a line");
    };
    let growth = &course.growth;
    let (name, grown) = (course.name(), course.change.grew());
    let (Some(rate), from, to) = (growth.rate, course.change.live.0, course.change.live.1) else {
        return clear!("its live bytes do not rise in a line");
    };
    let ends = growth
        .limit_in
        .map_or_else(String::new, |left| format!("; at this rate its limit is reached in {left}"));
    let title = format!(
        "{name} leaks: its live bytes rose from {from} to {to} in {}, {} an hour{ends}.",
        growth.judged,
        Bytes::from_f64(rate.rate.get() * Span::from_hours(1).as_secs_f64())
    );
    let is_near = growth.limit_in.is_none_or(|left| left <= NEAR);
    let finding = RULE.found(Severity::warning_if(is_near), title);
    let finding = finding
        .with(cx.timeline.gauge_of(process, PROC_HEAP_LIVE), |finding, live| {
            finding.graph("live bytes of its malloc heap", &live)
        })
        .shows_from(
            PROC_HEAP_LIVE,
            grown,
            Rise::NOISE,
            cx.time(course.change.last),
            format!("{grown} more are allocated and not freed"),
        )
        .shows(
            PROC_HEAP_FREE,
            course.change.free.1,
            cx.time(course.change.last),
            format!("{} are free in its heap", course.change.free.1),
        )
        .with_line(growth.method.to_string())
        .counts_as("live bytes of its malloc heap");
    let free = course.change.free.1.saturating_sub(course.change.free.0);
    let finding = finding
        .when(!growth.class.fragments(), |finding| {
            finding.not(
                "heap-fragmentation-growth",
                format!("of its growth {grown} are live and {free} are free"),
            )
        })
        .not("a warm-up", "the rise does not slow down")
        .fix(
            Fix::say("See how it goes on, and what else its memory is.")
                .inspect(format!("memtide explain {}", process.pid())),
        )
        .fix(Fix::say(
            "Restart it before the limit is reached; RuntimeMaxSec= in its unit does so by itself, \
             and MemoryMax= with Restart=on-failure bounds the damage.",
        ))
        .fix(Fix::say(
            "Find what allocates and stays: bcc's memleak on the running process, or heaptrack and \
             jemalloc's profiler after a restart. Look for caches, maps and queues without a \
             bound.",
        ));
    Ok(finding.affects([course.affected()]).sure(course.confidence()).into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::testing::{Case, clear, found, not_evaluated};
    use timeline::signals::{MEM_AVAILABLE, MEM_TOTAL, PROC_RSS, PROC_RSS_ANON};

    const HOUR: f64 = 3600.0;

    /// A host of 16 GiB with a process; its heap is read once a minute; live and free MiB by the second.
    fn host(hours: u64, heap: impl Fn(f64) -> [f64; 2]) -> Case {
        Case::every(Span::from_mins(1), hours * 60)
            .gauge(MEM_TOTAL, Bytes::from_gib(16))
            .gauge(MEM_AVAILABLE, Bytes::from_gib(8))
            .heap_of("7@1", heap)
            .named("7@1", "web")
    }

    #[test]
    fn live_bytes_that_rise_for_hours_are_a_leak_with_the_time_that_is_left() {
        let case = host(3, |at| [200.0 + at / HOUR * 60.0, 20.0]);
        let finding = found(RULE, &case);
        assert_eq!(finding.severity, Severity::Warning);
        assert!(
            finding.title.starts_with("web (pid 7) leaks: its live bytes rose from 200 MiB to"),
            "{}",
            finding.title
        );
        assert!(finding.title.contains("its limit is reached in 5."), "{}", finding.title);
        assert_eq!(finding.confidence.word(), "confirmed");
        assert_eq!(finding.affected[0].name, "web");
        assert!(finding.ruled_out.iter().any(|out| out.id == "heap-fragmentation-growth"));
    }

    #[test]
    fn a_leak_that_is_slow_against_its_limit_is_informational() {
        let case = host(12, |at| [200.0 + at / HOUR * 4.0, 20.0]);
        assert_eq!(found(RULE, &case).severity, Severity::Info);
    }

    #[test]
    fn a_leak_of_six_hours_is_found_at_the_end_of_two_days() {
        let begins = 42.0 * HOUR;
        let case = host(48, move |at| [200.0 + (at - begins).max(0.0) / HOUR * 60.0, 20.0]);
        let finding = found(RULE, &case);
        let when = finding.when.unwrap();
        let (from, lasts) = (when.from.as_secs_f64() / HOUR, when.duration().as_secs_f64() / HOUR);
        assert!((41.5..43.0).contains(&from) && lasts > 5.0, "{from} {lasts}");
    }

    #[test]
    fn a_leak_goes_on_until_the_end_where_its_heap_is_read_rarely() {
        let rarely = |case: Case| case.read_every(11, Entity::Process);
        let case = rarely(host(24, |at| [200.0 + at / HOUR * 60.0, 20.0]));
        let sizes = vec![Pages::new(100_000)];
        let case = case.gauge_steps_of(Entity::Process, "7@1", PROC_RSS, &sizes);
        let when = found(RULE, &case.named("7@1", "web")).when.unwrap();
        assert_eq!((when.first, when.last), (0, 24 * 60));
    }

    #[test]
    fn clear_where_live_bytes_rose_and_stay() {
        // A cache that is full after four hours, in a line.
        clear(RULE, &host(16, |at| [200.0 + (at / HOUR).min(4.0) * 60.0, 20.0]));
        // One that fills ever more slowly.
        clear(RULE, &host(16, |at| [600.0 - 400.0 * (-at / (2.0 * HOUR)).exp(), 20.0]));
    }

    #[test]
    fn clear_where_only_free_bytes_rise_or_load_comes_and_goes() {
        clear(RULE, &host(6, |at| [200.0, 20.0 + at / HOUR * 60.0]));
        clear(
            RULE,
            &host(48, |at| {
                let load = (at / (24.0 * HOUR) * std::f64::consts::TAU).sin();
                [300.0 + 100.0 * load, 120.0 - 100.0 * load]
            }),
        );
        clear(RULE, &host(6, |_| [200.0, 20.0]));
    }

    #[test]
    fn clear_within_the_first_hour() {
        let case = Case::every(Span::from_secs(10), 300)
            .gauge(MEM_TOTAL, Bytes::from_gib(16))
            .heap_of("7@1", |at| [200.0 + at / 10.0, 20.0]);
        clear(RULE, &case);
    }

    /// A process with this many MiB of anonymous memory at each second, on a host with 4 GiB available.
    fn growing_over(seconds: u64, mib: impl Fn(u64) -> u64) -> Case {
        let sizes: Vec<Bytes> = (0..=seconds).map(|n| Bytes::from_mib(mib(n))).collect();
        Case::over(seconds)
            .gauge(MEM_TOTAL, Bytes::from_gib(16))
            .gauge(MEM_AVAILABLE, Bytes::from_gib(4))
            .gauge_steps_of(Entity::Process, "7@1", PROC_RSS_ANON, &sizes)
            .named("7@1", "web")
    }

    #[test]
    fn memory_that_grows_for_an_hour_may_be_a_leak_and_is_urgent_near_its_limit() {
        let slow = found(RULE, &growing_over(4000, |n| 200 + n / 40));
        assert_eq!(slow.severity, Severity::Info);
        assert!(slow.title.starts_with("web (pid 7) may leak"), "{}", slow.title);
        let fast = found(RULE, &growing_over(120, |n| 200 + 10 * n));
        assert_eq!(fast.severity, Severity::Warning);
        assert!(fast.title.contains("its limit is met in"), "{}", fast.title);
        assert_ne!(fast.confidence.word(), "confirmed");
    }

    #[test]
    fn a_few_readings_in_a_day_are_enough_to_say_that_it_grows() {
        let mib = [200, 214, 230, 243, 259, 271, 290, 303, 316, 331];
        let sizes: Vec<Bytes> = mib.into_iter().map(Bytes::from_mib).collect();
        let every = |sizes: &[Bytes]| {
            Case::every(Span::from_hours(2), 9)
                .gauge_steps_of(Entity::Process, "7@1", PROC_RSS_ANON, sizes)
                .named("7@1", "web")
        };
        let finding = found(RULE, &every(&sizes));
        assert_eq!(finding.severity, Severity::Info);
        assert_eq!(finding.confidence.word(), "possible");
        let levels_off = [200, 240, 270, 290, 300, 305, 307, 308, 309, 309].map(Bytes::from_mib);
        clear(RULE, &every(&levels_off));
        clear(RULE, &every(&sizes[..1]));
    }

    #[test]
    fn memory_that_grew_and_stands_or_grows_for_minutes_only_is_clear() {
        clear(RULE, &growing_over(4000, |n| 200 + n.min(2000)));
        clear(RULE, &growing_over(240, |n| 200 + n / 4));
        clear(RULE, &growing_over(4000, |n| 200 + n % 500));
    }

    #[test]
    fn not_evaluated_without_processes_and_of_one_sample() {
        let one = Case::once().gauge_of(Entity::Process, "7@1", PROC_RSS_ANON, Bytes::from_mib(9));
        assert_eq!(not_evaluated(RULE, &one).names, ["proc.heap_live"]);
        assert_eq!(not_evaluated(RULE, &Case::once()).need, Need::Heaps);
    }
}
