//! Free memory is flat on its floor with hardly any page cache: a shortage that looks like free memory.

use timeline::signals::{
    MEM_AVAILABLE, MEM_FLOOR_HIGH, MEM_FREE, PAGE_CACHE, PGPGIN, PSI_IO_SOME, PSI_MEMORY_SOME,
};

use crate::measures::floor::Floor;
use crate::measures::readings::{floor, page_cache, refaults_file};
use crate::prelude::*;

declare_rule! {
    /// RAM is full although some looks free: free memory is down to the kernel's floor, and hardly any page cache is left.
    ///
    /// ## What it means
    /// The kernel keeps a few hundred MiB free at all times and reclaims to stay there; programs cannot use that
    /// memory. When free memory rests on this floor and the page cache is nearly gone too, programs fill all of RAM.
    /// Every file read waits for a disk, even if swap is quiet and monitoring shows "800 MB free".
    /// ## How it is recognised
    /// For {LEVEL} or longer, MemFree is at most {Floor::REACH} times the floor (the zones' high watermarks plus
    /// reserves), at most {AVAILABLE_STARVED_SHARE} of RAM is available, and page cache is at most {LITTLE_CACHE} of
    /// RAM or twice the floor, whichever is more. Something waits at the same time: files refault (are read again after
    /// eviction) at {READ_AGAIN}, tasks stall for memory {PressureWindow::MEMORY} of the time, or for disks
    /// {PressureWindow::IO} of the time while {READ} are read. Without zone data the floor is predicted for a host of
    /// this size, with lower confidence.
    /// ## Not this
    /// - `free-low-harmless`: free memory is on its floor because cache fills the rest.
    /// - More than {AVAILABLE_STARVED_SHARE} of RAM available: then cache is not starved.
    /// - `min-free-too-large`: the floor itself is too high.
    /// - A database that reads with O_DIRECT does not use page cache.
    /// ## What to do
    /// Now: stop or cap what grew last, or move the batch job. For good: MemoryHigh for the job, pipes instead of
    /// intermediate files, or more RAM. Verify: free memory no longer has a flat lower edge, and the job reads less.
    /// ## References
    /// - kernel mm/page_alloc.c, calculate_totalreserve_pages and __setup_per_zone_wmarks
    /// - kernel Documentation/admin-guide/sysctl/vm.rst, min_free_kbytes
    pub(crate) RULE = {
        id: "cache-starved-floor", since: "0.1.0", class: Shortage,
        numbers: [LEVEL, Floor::REACH, AVAILABLE_STARVED_SHARE, LITTLE_CACHE, READ_AGAIN,
            PressureWindow::MEMORY, PressureWindow::IO, READ],
        trigger: trigger, waits: MemoryOrDisk, story: story,
        cause: "Anonymous, shared and kernel memory leave hardly any RAM for the page cache.",
        verify: "memtide check --for 1m during the job: free memory rises above its floor, and \
                 less is read from disks",
        brings_about: &["available-exhaustion", "direct-reclaim-stall", "kswapd-saturated"],
    }
}

/// An engineering choice.
const LITTLE_CACHE: Ratio = Ratio::from_percent(3.0);
/// Cache below this multiple of the floor is hardly any, on hosts where that is more than the share: an engineering
/// choice.
const CACHE_FLOOR_MULTIPLE: f64 = 2.0;
/// With more than this available, cache is not starved.
const AVAILABLE_STARVED_SHARE: Ratio = AVAILABLE_LOW_SHARE;
/// An engineering choice: disk reads that a cache might have avoided.
const READ: BytesPerSecond = BytesPerSecond::from_mib(5.0);

fn trigger() -> Trigger {
    let disk_waits = all![
        stall(PSI_IO_SOME).at_least("I/O stalls", PressureWindow::IO),
        rate(PGPGIN).at_least("read from disks", READ).if_measured(),
    ];
    let waits = any![
        stall(PSI_MEMORY_SOME).at_least("memory stalls", PressureWindow::MEMORY),
        disk_waits,
        refaults_file().bytes().at_least("file refaults", READ_AGAIN),
    ];
    Trigger::on_host(
        LEVEL,
        all![
            gauge(MEM_FREE).at_most("free memory", floor().times(Floor::REACH)),
            page_cache().at_most("page cache", little_cache()),
            gauge(MEM_AVAILABLE)
                .at_most("available", ram().share(AVAILABLE_STARVED_SHARE))
                .if_measured(),
            waits,
        ],
    )
}

/// At most this much page cache counts as starved.
fn little_cache() -> Reading<Bytes> {
    ram().share(LITTLE_CACHE).max(floor().times(CACHE_FLOOR_MULTIPLE))
}

fn story<'a>(cx: &Evidence<'a>, incident: &Incident<'a>) -> Result<Outcome, Missing> {
    let stretch = &incident.stretch;
    let cache = cx.page_cache()?;
    let free = cx.mean_in(stretch, MEM_FREE, &cx.gauge(MEM_FREE)?)?;
    let floor = cx.mean_in(stretch, MEM_FLOOR_HIGH, &floor().track(cx)?)?;
    let Some((least, index)) = cache.min_in(stretch) else {
        return clear!("page cache was not measured");
    };
    let is_measured = cx.floor().is_ok();
    let predicted = if is_measured { "" } else { ", predicted for a host of this size" };
    let little = little_cache().track(cx)?.at(index).unwrap_or_default();
    let ram = cx.ram()?;
    let stalls = PressureWindow::during(cx, stretch);
    let near = Bytes::from_f64(floor.as_f64() * Floor::REACH);
    let at = cx.time(index);
    let refaults = refaults_file().bytes().track(cx).ok();
    let open = if is_measured {
        stalls.open()
    } else {
        "the floor is predicted; /proc/zoneinfo has the real one"
    };
    let title = Title::from(format!(
        "RAM is full: the {free} still free is the kernel's own floor, and only {least} of {ram} \
         is page cache."
    ))
    .then(stalls.sentence());
    Ok(RULE
        .found(Severity::critical_if(stalls.standstill()), title)
        .graph("page cache", &cache)
        .shows_below(MEM_FREE, free, near, None, format!("{free} free on average"))
        .shows(MEM_FLOOR_HIGH, floor, None, format!("the floor is {floor}{predicted}"))
        .shows_below(PAGE_CACHE, least, little, at, format!("page cache fell to {least}"))
        .counts_as("free memory on its floor without cache")
        .shows_refaults(refaults.and_then(|refaults| refaults.mean_in(stretch)))
        .shows_stalls(&stalls)
        .not("free-low-harmless", format!("only {least} is page cache"))
        .fix(Fix::cap(cx, index, "Stop what grew last, or cap its cgroup."))
        .fix(Fix::say(
            "Run batch jobs at another hour and capped (systemd-run --scope -p MemoryHigh=512M \
             COMMAND, or MemoryHigh=512M in the unit file), and pipe data instead of writing \
             intermediate files.",
        ))
        .affects(processes::largest(cx, index, 3))
        .sure_by_kinds(cx, open)
        .sure_at_most(if is_measured { 1.0 } else { 0.75 })
        .into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::testing::{Case, amid_calm, clear, found, not_evaluated, times};
    use timeline::Entity;
    use timeline::signals::{
        MEM_CACHED, MEM_SHMEM, MEM_TOTAL, PSI_IO_FULL, PSI_MEMORY_FULL, ZONE_HIGH, ZONE_LOW,
        ZONE_MANAGED,
    };
    use units::Pages;

    /// A host of 8,000 MiB with a floor of 100 MiB.
    fn host(free: u64, cache: u64, available: u64) -> Case {
        over(60, free, cache, available)
    }

    fn over(seconds: u64, free: u64, cache: u64, available: u64) -> Case {
        let pages = |mib: u64| Pages::new(mib * 256);
        let zone = "0/Normal";
        Case::over(seconds)
            .gauge(MEM_TOTAL, Bytes::from_mib(8000))
            .gauge(MEM_FREE, Bytes::from_mib(free))
            .gauge(MEM_CACHED, Bytes::from_mib(cache))
            .gauge(MEM_SHMEM, Bytes::ZERO)
            .gauge(MEM_AVAILABLE, Bytes::from_mib(available))
            .gauge_of(Entity::Zone, zone, ZONE_MANAGED, pages(8000))
            .gauge_of(Entity::Zone, zone, ZONE_LOW, pages(80))
            .gauge_of(Entity::Zone, zone, ZONE_HIGH, pages(100))
    }

    fn waiting(case: Case, memory: u64, io: u64) -> Case {
        case.counter(PSI_MEMORY_SOME, memory * 10_000)
            .counter(PSI_MEMORY_FULL, memory * 9_000)
            .counter(PSI_IO_SOME, io * 10_000)
            .counter(PSI_IO_FULL, io * 5_000)
            .counter(PGPGIN, 20 << 20)
    }

    #[test]
    fn found_when_tasks_wait_without_cache_on_the_floor() {
        let finding = found(RULE, &waiting(host(105, 120, 50), 0, 40));
        assert_eq!(finding.severity, Severity::Warning);
        assert_eq!(finding.confidence.word(), "confirmed");
        assert_eq!(found(RULE, &waiting(host(105, 120, 50), 60, 0)).severity, Severity::Critical);
    }

    #[test]
    fn clear_with_cache_available_memory_or_free_above_the_floor() {
        clear(RULE, &waiting(host(105, 3000, 2500), 0, 40));
        clear(RULE, &waiting(host(105, 200, 1500), 0, 40));
        clear(RULE, &waiting(host(400, 120, 50), 0, 40));
    }

    #[test]
    fn finds_30_s_within_an_hour_but_not_a_full_cache() {
        let in_an_hour = |cache, available| {
            let steps = |mib, calm| amid_calm(Bytes::from_mib(mib), Bytes::from_mib(calm));
            over(3600, 105, 0, 0)
                .gauge_steps(MEM_CACHED, &steps(cache, 6000))
                .gauge_steps(MEM_AVAILABLE, &steps(available, 5500))
                .counter_steps(PSI_MEMORY_SOME, &amid_calm(600_000, 0))
                .counter_steps(PSI_MEMORY_FULL, &amid_calm(500_000, 0))
        };
        let finding = found(RULE, &in_an_hour(120, 50));
        assert_eq!(finding.severity, Severity::Critical);
        let (first, last) = times(&finding)[0];
        assert!(first >= 1799 && last <= 1830, "{first} {last}");
        clear(RULE, &in_an_hour(6000, 5500));
    }

    #[test]
    fn clear_while_nothing_waits() {
        clear(RULE, &waiting(host(105, 120, 50), 0, 2));
    }

    #[test]
    fn a_predicted_floor_is_probable() {
        let case = Case::over(60)
            .gauge(MEM_TOTAL, Bytes::from_mib(8192))
            .gauge(MEM_FREE, Bytes::from_mib(130))
            .gauge(MEM_CACHED, Bytes::from_mib(120))
            .gauge(MEM_SHMEM, Bytes::ZERO)
            .counter(PSI_MEMORY_SOME, 400_000);
        assert_eq!(found(RULE, &case).confidence.word(), "probable");
    }

    #[test]
    fn not_evaluated_without_stalls_reads_and_refaults() {
        let missing = not_evaluated(RULE, &host(105, 120, 50));
        assert!(missing.names.contains(&"psi.memory.some"));
        assert_eq!(not_evaluated(RULE, &Case::over(60)).names, ["mem.free"]);
    }
}
