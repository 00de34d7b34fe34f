//! A process gives memory back to the kernel and takes it again: its CPU goes into page faults.

use timeline::Facts;
use timeline::signals::{
    NUMA_HINT_FAULTS, PGFREE, PGSCAN_DIRECT, PGSCAN_KSWAPD, PROC_MINFLT, PROC_PARENT, PROC_RSS,
    PROC_RSS_ANON, PROC_STIME, PROC_UTIME,
};

use crate::prelude::*;

declare_rule! {
    /// A process gives memory back to the kernel and takes it again, and its CPU time goes into that.
    ///
    /// ## What it means
    /// The kernel zeroes each page that a process touches first. An allocator that returns memory as soon as it is freed
    /// (`munmap`, `madvise`, a smaller program break) makes the next allocation pay for it again: one minor fault for each
    /// 4 KiB. Memory is plentiful, nothing waits for it, and the program may run many times slower than with an allocator that keeps some
    /// free memory.
    /// ## How it is recognised
    /// One process has {FAULTS} minor faults or more for {LEVEL}, spends {SYSTEM} of a CPU or more in the kernel, which
    /// is {SYSTEM_SHARE} of its own CPU time or more, and touches {TURNOVER} times the memory that it has, or more. The host
    /// frees at least {FREED} as many pages meanwhile.
    /// ## Not this
    /// - A process that starts or grows for the first time: it touches its memory once.
    /// - `fork-cow-spike`: each fork makes a process copy what it writes; a child of its own name lives meanwhile.
    /// - A collector that copies: it uses its own memory again, without the kernel.
    /// - Files that are mapped again and again: their pages are in the cache and stay there, so few are freed.
    /// - `numa-balancing-overhead`: its faults move pages, and take none.
    /// - `swap-thrash`, `page-cache-thrash`: reclaim takes the pages, and the process wants them back.
    /// ## What to do
    /// Now: `memtide explain PID` names its allocator and the settings it was started with. For good, at its next start: glibc with
    /// `MALLOC_MMAP_THRESHOLD_=33554432` and `MALLOC_TRIM_THRESHOLD_=268435456`, both together, as each alone fixes the other at its
    /// small default; jemalloc without `dirty_decay_ms:0`; tcmalloc without `TCMALLOC_AGGRESSIVE_DECOMMIT`; mimalloc
    /// with a longer `MIMALLOC_PURGE_DELAY`; Go with a larger `GOGC` and fewer calls of `debug.FreeOSMemory`. Verify: less
    /// than {FAULTS} minor faults at the same load.
    /// ## References
    /// - mallopt(3): M_TRIM_THRESHOLD, M_MMAP_THRESHOLD, and that setting one ends their automatic adjustment
    /// - jemalloc(3): opt.dirty_decay_ms
    /// - getrusage(2): ru_minflt
    pub(crate) RULE = {
        id: "allocator-churn", since: "0.1.0", class: Setting,
        numbers: [FAULTS, LEVEL, SYSTEM, SYSTEM_SHARE, TURNOVER, FREED, FAULTS],
        trigger: trigger, story: story,
        cause: "Its allocator returns freed memory to the kernel at once, and each page that it takes \
                again is zeroed and mapped anew.",
        verify: "less than {FAULTS} minor faults of the process at the same load",
    }
}

/// An engineering choice: 80 MiB/s of pages, which take 5 to 10 % of a CPU.
const FAULTS: PerSecond<Count> = PerSecond::new(20_000.0);
/// Less is not worth a setting: an engineering choice.
const SYSTEM: Ratio = Ratio::from_percent(20.0);
/// A program that computes more than it waits for pages gains little: an engineering choice.
const SYSTEM_SHARE: Ratio = Ratio::from_percent(25.0);
/// A process touches what it has once as it grows; a fork makes it do so once more. An engineering choice.
const TURNOVER: Count = Count::new(5);
/// Pages of files that are mapped are not freed; allocated ones are, all of them where the process does not grow. An
/// engineering choice, as others free and allocate, too.
const FREED: Ratio = Ratio::from_percent(50.0);

fn trigger() -> Trigger {
    let faults = rate(PROC_MINFLT).at_least("minor faults", FAULTS);
    // Clock ticks, of which a kernel counts as many a second.
    #[allow(clippy::cast_precision_loss)] // 100
    let ticks = PerSecond::new(SYSTEM.get() * Facts::default().user_hz() as f64);
    let all_time = rate(PROC_STIME).plus([rate(PROC_UTIME)]);
    let freed = PerSecond::<Pages>::new(FAULTS.get() * FREED.get());
    Trigger::on(Subjects::Each(Entity::Process, may_churn), LEVEL, faults).alert_if(all![
        rate(PROC_STIME).at_least("CPU time in the kernel", ticks),
        rate(PROC_STIME).at_least("its share", all_time.share(SYSTEM_SHARE)),
        rate(PGFREE).at_least("pages freed", freed).if_measured(),
    ])
}

/// Whether it had enough faults for an incident at all: no rate is computed of the others.
fn may_churn(cx: &Evidence<'_>, process: &EntitySeries) -> bool {
    let bounds = cx.timeline.bounds_of(process, PROC_MINFLT);
    bounds.is_some_and(|(least, most)| {
        most.saturating_sub(least).as_f64() >= FAULTS.get() * LEVEL.as_secs_f64() * 0.5
    })
}

fn story<'a>(cx: &Evidence<'a>, incident: &Incident<'a>) -> Result<Outcome, Missing> {
    let (stretch, process) = (&incident.stretch, incident.entity()?);
    let name = format!("{} (PID {})", process.label, process.pid());
    let faults = cx.rate_of(process, PROC_MINFLT)?;
    let mean = cx.mean_in(stretch, PROC_MINFLT, &faults)?;
    let page = cx.facts.page_size.map_or(Bytes::from_kib(4), |page| page.bytes());
    let touched = Bytes::from_f64(faults.integral_in(stretch) * page.as_f64());
    let size = size(cx, process)?;
    let Some((most, _)) = size.max_in(stretch) else {
        return clear!("the size of {name} was not measured");
    };
    let hertz = cx.facts.user_hz();
    let system = cx.rate_of(process, PROC_STIME)?.to_cpus(hertz);
    let in_kernel = cx.mean_in(stretch, PROC_STIME, &system)?;
    let user = cx.rate_of(process, PROC_UTIME)?.to_cpus(hertz).mean_in(stretch);
    let all = in_kernel.get() + user.unwrap_or_default().get();
    let share = Ratio::new(in_kernel.get() / all.max(f64::MIN_POSITIVE));
    if touched.as_f64() < most.as_f64() * TURNOVER.as_f64() {
        return clear!("{name} touched {touched}, and has {most}: it starts or grows");
    }
    if in_kernel < SYSTEM || share < SYSTEM_SHARE {
        return clear!("{name} spends {share} of its CPU time in the kernel, {in_kernel} of a CPU");
    }
    if let Some(why) = other_reason(cx, stretch, process, mean) {
        return clear!("{name} has {mean} minor faults, but {why}");
    }
    let speed = BytesPerSecond::new(touched.as_f64() / stretch.duration().as_secs_f64());
    let title = format!(
        "{name} takes {speed} from the kernel and gives it back, at {most} of its own: {share} of \
         its CPU time goes into that."
    );
    let freed = cx.rate(PGFREE).ok().and_then(|freed| freed.mean_in(stretch));
    Ok(RULE
        .found(Severity::Warning, title)
        .graph("minor faults", &faults)
        .shows_from(PROC_MINFLT, mean, FAULTS, None, format!("{mean} minor faults of {name}"))
        .counts_as("its minor faults")
        .shows_from(
            PROC_STIME,
            in_kernel,
            SYSTEM,
            None,
            format!("{in_kernel} of a CPU in the kernel, {share} of its CPU time"),
        )
        .counts_as("its CPU time in the kernel")
        .with(freed, |finding, freed| {
            finding.shows(PGFREE, freed, None, format!("the host frees {freed} meanwhile"))
        })
        .not("process-leak", format!("it touched {touched} and has {most} at most"))
        .not("page-cache-thrash", "reclaim scans next to nothing meanwhile")
        .fix(look(process.pid()))
        .fix(Fix::say(
            "At its next start, let its malloc keep what is freed. glibc: \
             MALLOC_MMAP_THRESHOLD_=33554432 and MALLOC_TRIM_THRESHOLD_=268435456 in its \
             environment, together, as one alone fixes the other at its small default; jemalloc: no \
             dirty_decay_ms:0; tcmalloc: no TCMALLOC_AGGRESSIVE_DECOMMIT; mimalloc: \
             MIMALLOC_PURGE_DELAY=1000; Go: a larger GOGC.",
        ))
        .affects([Affected::new(
            "process",
            &process.label,
            format!("PID {}, {in_kernel} of a CPU in the kernel", process.pid()),
        )])
        .sure_by_kinds(cx, "")
        .into())
}

/// Shows its allocator, and the variables that it was started with.
fn look(pid: &str) -> Fix {
    Fix::say("See which allocator it has, and the variables for it that it was started with.")
        .inspect(format!("memtide explain {pid}"))
}

/// What else makes so many faults.
fn other_reason(
    cx: &Evidence<'_>,
    stretch: &Stretch,
    process: &EntitySeries,
    faults: PerSecond<Count>,
) -> Option<String> {
    let enough = faults.get() * FREED.get();
    let pages = |signal| {
        cx.rate(signal).ok().and_then(|rate: Track<PerSecond<Pages>>| rate.mean_in(stretch))
    };
    if let Some(freed) = pages(PGFREE).filter(|freed| freed.get() < enough) {
        return Some(format!(
            "the host frees only {freed}: they map pages that are in RAM already"
        ));
    }
    let hints = cx.rate(NUMA_HINT_FAULTS).ok().and_then(|hints| hints.mean_in(stretch));
    if let Some(hints) = hints.filter(|hints| hints.get() > enough) {
        return Some(format!("{hints} are hints for NUMA balancing"));
    }
    let scanned = [PGSCAN_KSWAPD, PGSCAN_DIRECT].into_iter().filter_map(pages);
    let scanned: f64 = scanned.map(|pages| pages.get()).sum();
    if scanned > enough {
        return Some("reclaim takes pages meanwhile".to_owned());
    }
    let children = cx.timeline.entities(Entity::Process).filter(|child| {
        let parent = cx.timeline.last_of(child, PROC_PARENT);
        let is_child = parent.is_some_and(|parent| parent.get().to_string() == process.pid());
        is_child && child.label == process.label
    });
    let lived = children.filter(|child| {
        let lived = child.samples();
        lived.is_some_and(|(first, last)| first <= stretch.last && last >= stretch.first)
    });
    (lived.count() > 0).then(|| "it forks: a child of its name copies what it writes".to_owned())
}

/// Its memory over time; its RSS on kernels before 4.5.
fn size(cx: &Evidence<'_>, process: &EntitySeries) -> Result<Track<Bytes>, Missing> {
    cx.gauge_of(process, PROC_RSS_ANON).or_else(|missing| {
        let page = cx.facts.page_size.ok_or(missing)?;
        Ok(cx.gauge_of(process, PROC_RSS)?.to_bytes(page))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::testing::{Case, clear, found, times};

    const KEY: &str = "4711@100";

    /// A process of 60 MiB on a quiet host: minor faults and ticks in the kernel, each per second; the host frees as many pages.
    fn process(faults: u64, system: u64, user: u64) -> Case {
        Case::over(60)
            .counter_of(Entity::Process, KEY, PROC_MINFLT, faults)
            .counter_of(Entity::Process, KEY, PROC_STIME, system)
            .counter_of(Entity::Process, KEY, PROC_UTIME, user)
            .gauge_of(Entity::Process, KEY, PROC_RSS_ANON, Bytes::from_mib(60))
            .counter(PGFREE, faults)
            .named(KEY, "python3")
    }

    #[test]
    fn temporaries_that_are_given_back_each_time_are_found() {
        // Measured with numpy and MALLOC_TRIM_THRESHOLD_=268435456.
        let finding = found(RULE, &process(376_000, 82, 17));
        assert_eq!(finding.severity, Severity::Warning);
        assert!(finding.title.contains("python3 (PID 4711)"), "{}", finding.title);
        assert!(finding.title.contains("83 %"), "{}", finding.title);
        assert_eq!(finding.confidence.word(), "confirmed");
    }

    #[test]
    fn a_process_that_grows_for_the_first_time_is_clear() {
        let sizes: Vec<Bytes> = (0..=60).map(|n| Bytes::from_mib(100 + 160 * n)).collect();
        let case =
            process(41_000, 60, 20).gauge_steps_of(Entity::Process, KEY, PROC_RSS_ANON, &sizes);
        assert!(clear(RULE, &case).contains("starts or grows"));
    }

    #[test]
    fn faults_that_cost_little_or_free_nothing_are_clear() {
        assert!(clear(RULE, &process(30_000, 8, 90)).contains("in the kernel"));
        assert!(clear(RULE, &process(300_000, 30, 170)).contains("in the kernel"));
        let of_files = process(300_000, 60, 20).counter(PGFREE, 900);
        assert!(clear(RULE, &of_files).contains("in RAM already"));
        assert!(clear(RULE, &process(9_000, 60, 20)).contains("minor faults"));
    }

    #[test]
    fn numa_hints_and_reclaim_and_forks_are_clear() {
        let hints = process(100_000, 60, 20).counter(NUMA_HINT_FAULTS, 90_000);
        assert!(clear(RULE, &hints).contains("NUMA"));
        let reclaim = process(100_000, 60, 20).counter(PGSCAN_DIRECT, 200_000);
        assert!(clear(RULE, &reclaim).contains("reclaim"));
        let child = "4800@200";
        let fork = process(100_000, 60, 20)
            .gauge_of(Entity::Process, child, PROC_PARENT, Count::new(4711))
            .named(child, "python3");
        assert!(clear(RULE, &fork).contains("forks"));
    }

    #[test]
    fn finds_half_a_minute_within_an_hour() {
        let mut faults = vec![10; 3600];
        faults[1800..1830].fill(200_000);
        let mut system = vec![0; 3600];
        system[1800..1830].fill(80);
        let case = Case::over(3600)
            .counter_steps_of(Entity::Process, KEY, PROC_MINFLT, &faults)
            .counter_steps_of(Entity::Process, KEY, PROC_STIME, &system)
            .counter_of(Entity::Process, KEY, PROC_UTIME, 1)
            .gauge_of(Entity::Process, KEY, PROC_RSS_ANON, Bytes::from_mib(60))
            .named(KEY, "python3");
        assert_eq!(times(&found(RULE, &case)), [(1800, 1830)]);
    }
}
