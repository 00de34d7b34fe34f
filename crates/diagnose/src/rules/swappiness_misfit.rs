//! vm.swappiness does not fit: the kernel evicts files in use and keeps cold anonymous memory, or the other way round.

use timeline::facts::{MGLRU, SWAPPINESS};
use timeline::settings::SWAPPINESS_DEFAULT;
use timeline::signals::{
    MEM_ANON, MEM_INACTIVE_ANON, MEM_SHMEM, PAGE_CACHE, REFAULT_ANON, REFAULT_FILE, SWAP_FREE,
    SWAP_TOTAL,
};

use crate::measures::baselines::SWAP_TRAFFIC;
use crate::measures::readings::{ANON_REFAULTS_MIN, LOW_SWAPPINESS, page_cache, refaults_file};
use crate::measures::refaults::{OF_READS, evicted_by_another, rereading};
use crate::prelude::*;

declare_rule! {
    /// vm.swappiness does not fit the load: the kernel evicts pages in use and keeps cold ones.
    ///
    /// ## What it means
    /// When memory is short, `vm.swappiness` weighs anonymous memory against page cache: 0 spares anonymous memory to
    /// the end, 100 treats both alike, 200 (since 5.8) spares the cache. If it is too low, cold anonymous memory stays
    /// and files in use are read again and again; if it is too high, a copy or backup pushes program data out to swap.
    /// ## How it is recognised
    /// For {STALL} or longer. Too low: vm.swappiness is {LOW_SWAPPINESS} or less, {SWAP_FREE_SHARE} of swap is free,
    /// file pages refault at {READ_AGAIN} or more and refaults are {OF_READS} of all disk reads, and cold anonymous memory
    /// (the inactive list, or half of it all with the multi-generational LRU) is {COLD} of RAM. Too high: vm.swappiness
    /// is {DEFAULT} or more, {ANON_REFAULTS_MIN} of anonymous memory refault while hardly any file page does, and page
    /// cache is above {MUCH_CACHE} of RAM. It is informational if no task waits.
    /// ## Not this
    /// - `swap-thrash`: anonymous memory does not fit, whatever the setting.
    /// - `page-cache-thrash` at a fitting setting, or without swap (`no-swap-risk`): changing the setting would not
    ///   help.
    /// - A cgroup's own setting (v1 memory.swappiness) or limit.
    /// ## What to do
    /// Now: `sysctl -w vm.swappiness={DEFAULT}`. For good: a file under `/etc/sysctl.d/`, and no tuned profile or
    /// installer that resets it. Verify: file and anonymous refaults together fall under the same load.
    /// ## References
    /// - kernel Documentation/admin-guide/sysctl/vm.rst, swappiness
    /// - kernel mm/vmscan.c, get_scan_count
    pub(crate) RULE = { id: "swappiness-misfit", since: "0.1.0", class: Setting,
        numbers: [STALL, LOW_SWAPPINESS, SWAP_FREE_SHARE, READ_AGAIN, COLD, DEFAULT, ANON_REFAULTS_MIN,
            MUCH_CACHE, OF_READS],
        trigger: trigger, waits: MemoryOrDisk, story: story,
        explained_by: &[Explains::Maybe(SWAPPINESS)],
    }
}

/// Enough free swap; an engineering choice.
const SWAP_FREE_SHARE: Ratio = Ratio::from_percent(20.0);
/// Anonymous memory worth swapping; an engineering choice.
const COLD: Ratio = Ratio::from_percent(10.0);
/// The multi-generational LRU has no inactive list; half of all anonymous memory stands for the cold part.
const COLD_OF_GENERATIONS: f64 = 0.5;
/// Lower settings cannot be too high.
const DEFAULT: u64 = SWAPPINESS_DEFAULT;
/// Hardly any file refaults, compared with 200 anonymous pages per second.
const FEW_FILE_REFAULTS: PerSecond<Pages> = PerSecond::new(20.0);
/// Cache that could be evicted instead; an engineering choice.
const MUCH_CACHE: Ratio = Ratio::from_percent(30.0);

fn trigger() -> Trigger {
    // Both cases need file refaults.
    let is_measured = refaults_file().at_least("file refaults", PerSecond::new(0.0));
    Trigger::on_host(STALL, all![any![is_too_low(), is_too_high()], is_measured])
}

/// Files in use are evicted while cold memory stays.
fn is_too_low() -> Predicate {
    let low = Count::new(LOW_SWAPPINESS);
    let much = gauge(SWAP_TOTAL).share(SWAP_FREE_SHARE);
    all![
        fact(SWAPPINESS).at_most("vm.swappiness", low),
        rereading(),
        gauge(SWAP_TOTAL).at_least("swap", Bytes::new(1)),
        gauge(SWAP_FREE).at_least("free swap", much),
        cold().at_least("cold anonymous memory", ram().share(COLD)),
    ]
}

/// Program data is swapped out while idle cache stays.
fn is_too_high() -> Predicate {
    all![
        fact(SWAPPINESS).at_least("vm.swappiness", Count::new(DEFAULT)),
        rate(REFAULT_ANON).at_least("anonymous refaults", ANON_REFAULTS_MIN),
        refaults_file().at_most("file refaults", FEW_FILE_REFAULTS),
        page_cache().at_least("page cache", ram().share(MUCH_CACHE)),
    ]
}

/// Anonymous and shared memory that has not been touched recently.
fn cold() -> Reading<Bytes> {
    computed("cold anonymous memory", |cx| {
        let generations = cx.facts.number(MGLRU).is_some_and(|mask| mask & 1 == 1);
        let all = gauge(MEM_ANON).plus([gauge(MEM_SHMEM)]);
        let half = all.times(COLD_OF_GENERATIONS);
        let cold = if generations { half } else { gauge(MEM_INACTIVE_ANON).or(half) };
        let cold: Numbers = cold.track(cx)?.cast();
        Ok(cold)
    })
}

fn story<'a>(cx: &Evidence<'a>, incident: &Incident<'a>) -> Result<Outcome, Missing> {
    let swappiness = cx.number(SWAPPINESS)?;
    let stretch = &incident.stretch;
    let stalls = PressureWindow::during(cx, stretch);
    let finding = if swappiness <= LOW_SWAPPINESS {
        if let Some(why) = evicted_by_another(cx, stretch, &cx.refaults_file()?) {
            return Ok(Outcome::Clear(why));
        }
        too_low(cx, stretch, swappiness, severity(&stalls))?
    } else {
        too_high(cx, stretch, swappiness, severity(&stalls))?
    };
    Ok(finding
        .counts_as("the setting")
        .counts_as("refaults")
        .shows_stalls(&stalls)
        .sure_by_kinds(cx, stalls.open())
        .into())
}

fn too_low(
    cx: &Evidence<'_>,
    stretch: &Stretch,
    swappiness: u64,
    severity: Severity,
) -> Result<Finding, Missing> {
    let refaults = refaults_file().bytes().track(cx)?;
    let refaulted = cx.mean_in(stretch, REFAULT_FILE, &refaults)?;
    let left = cx.mean_in(stretch, SWAP_FREE, &cx.gauge(SWAP_FREE)?)?;
    let total = cx.mean_in(stretch, SWAP_TOTAL, &cx.gauge(SWAP_TOTAL)?)?;
    let cold = cx.mean_in(stretch, MEM_INACTIVE_ANON, &cold().track(cx)?)?;
    let ram = cx.ram()?;
    let title = format!(
        "Files are read again and again ({refaulted}) while {cold} of cold memory stays in RAM and \
         {left} of swap is free: vm.swappiness is {swappiness}."
    );
    Ok(RULE
        .found(severity, title)
        .graph("file refaults", &refaults)
        .shows_fact(SWAPPINESS, swappiness, format!("vm.swappiness = {swappiness}"))
        .shows_from(
            REFAULT_FILE,
            refaulted,
            READ_AGAIN,
            None,
            format!("{refaulted} of files read again after eviction (refaults)"),
        )
        .shows_from(
            MEM_INACTIVE_ANON,
            cold,
            ram.share(COLD),
            None,
            format!("about {cold} of anonymous memory is cold"),
        )
        .shows_from(
            SWAP_FREE,
            left,
            total.share(SWAP_FREE_SHARE),
            None,
            format!("{left} of swap is free"),
        )
        .not("no-swap-risk", format!("{left} of swap is free"))
        .cause(
            "At this setting the kernel evicts file pages to the end before it swaps out cold \
             anonymous memory.",
        )
        .fix(Fix::tunable(
            cx,
            format!("Let the kernel swap out cold memory (vm.swappiness was {swappiness})."),
            SWAPPINESS,
            DEFAULT,
        ))
        .verify(
            "memtide check --for 1m under the same load: fewer file refaults and little swap-in",
        ))
}

fn too_high(
    cx: &Evidence<'_>,
    stretch: &Stretch,
    swappiness: u64,
    severity: Severity,
) -> Result<Finding, Missing> {
    let anon = cx.refaults_anon()?;
    let refaulted = cx.mean_in(stretch, REFAULT_ANON, &anon)?;
    let cache = cx.mean_in(stretch, PAGE_CACHE, &cx.page_cache()?)?;
    let much = cx.ram()?.share(MUCH_CACHE);
    let title = format!(
        "Program data is swapped out and needed again ({refaulted}) while {cache} of page cache is \
         hardly used: vm.swappiness is {swappiness}."
    );
    Ok(RULE
        .found(severity, title)
        .graph("anonymous refaults", &anon)
        .shows_fact(SWAPPINESS, swappiness, format!("vm.swappiness = {swappiness}"))
        .shows_from(
            REFAULT_ANON,
            refaulted,
            ANON_REFAULTS_MIN,
            None,
            format!("{refaulted} of anonymous refaults (evicted and needed again)"),
        )
        .shows_from(
            PAGE_CACHE,
            cache,
            much,
            None,
            format!("{cache} of page cache with hardly any refaults"),
        )
        .not("swap-thrash", format!("{cache} of page cache could be evicted instead"))
        .cause(
            "Much reading or writing fills the cache with pages that are used once, and at this \
             setting the kernel swaps program data out for them.",
        )
        .fix(Fix::tunable(
            cx,
            format!(
                "Keep program data in RAM (vm.swappiness was {swappiness}; values of 100 and more \
                 suit zram only)."
            ),
            SWAPPINESS,
            30,
        ))
        .fix(Fix::say(
            "Or limit the job that fills the cache: systemd-run --scope -p MemoryHigh=512M \
             COMMAND, or MemoryHigh=512M in its unit file.",
        ))
        .verify(format!(
            "memtide check --for 1m under the same load: below {SWAP_TRAFFIC} swapped in"
        )))
}

/// Returns the severity, which is never critical: the setting makes a shortage worse, but is not the shortage.
fn severity(stalls: &PressureWindow) -> Severity {
    Severity::warning_if(stalls.any() || !stalls.measured())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::testing::{Case, clear, found, not_evaluated, times};
    use timeline::signals::{
        MEM_CACHED, MEM_TOTAL, PGPGIN, PSI_IO_FULL, PSI_IO_SOME, PSI_MEMORY_FULL, PSI_MEMORY_SOME,
    };

    /// A host of 1,000 MiB with 500 MiB of swap and `files` and `anon` refaults per second.
    fn host(swappiness: &str, files: u64, anon: u64) -> Case {
        Case::over(60)
            .gauge(MEM_TOTAL, Bytes::from_mib(1000))
            .gauge(MEM_CACHED, Bytes::from_mib(406))
            .gauge(MEM_SHMEM, Bytes::from_mib(6))
            .gauge(MEM_INACTIVE_ANON, Bytes::from_mib(300))
            .gauge(SWAP_TOTAL, Bytes::from_mib(500))
            .gauge(SWAP_FREE, Bytes::from_mib(400))
            .counter(REFAULT_FILE, files)
            .counter(REFAULT_ANON, anon)
            .counter(PGPGIN, files * 4096)
            .fact(SWAPPINESS, swappiness)
    }

    fn stalling(case: Case, percent: u64) -> Case {
        case.counter(PSI_MEMORY_SOME, percent * 10_000)
            .counter(PSI_MEMORY_FULL, percent * 9_000)
            .counter(PSI_IO_SOME, 0)
            .counter(PSI_IO_FULL, 0)
    }

    #[test]
    fn too_low_is_found_and_never_critical() {
        let finding = found(RULE, &stalling(host("0", 10_000, 0), 80));
        assert_eq!(finding.severity, Severity::Warning);
        assert!(finding.title.contains("vm.swappiness is 0"));
        assert!(finding.fixes[0].what.contains("was 0"));
    }

    #[test]
    fn too_high_is_found() {
        let finding = found(RULE, &stalling(host("100", 0, 2000), 20));
        assert!(finding.title.contains("Program data"));
    }

    #[test]
    fn informational_when_no_task_waits() {
        let finding = found(RULE, &stalling(host("1", 10_000, 0), 0));
        assert_eq!(finding.severity, Severity::Info);
    }

    #[test]
    fn clear_at_a_fitting_setting_or_without_reclaim() {
        clear(RULE, &host("30", 10_000, 0));
        clear(RULE, &host("0", 10, 0));
        clear(RULE, &host("60", 10_000, 2000));
        clear(RULE, &host("60", 0, 50));
    }

    #[test]
    fn clear_without_free_swap_or_cold_memory() {
        clear(RULE, &host("0", 10_000, 0).gauge(SWAP_TOTAL, Bytes::ZERO));
        clear(RULE, &host("0", 10_000, 0).gauge(SWAP_FREE, Bytes::from_mib(50)));
        clear(RULE, &host("0", 10_000, 0).gauge(MEM_INACTIVE_ANON, Bytes::from_mib(50)));
    }

    #[test]
    fn half_of_anonymous_memory_is_cold_with_mglru() {
        let case = host("0", 10_000, 0)
            .gauge(MEM_INACTIVE_ANON, Bytes::from_mib(5))
            .gauge(MEM_ANON, Bytes::from_mib(600))
            .fact(MGLRU, "0x0007");
        found(RULE, &case);
    }

    #[test]
    fn not_evaluated_when_the_setting_is_unknown() {
        assert_eq!(not_evaluated(RULE, &Case::over(60)).names, ["vm.swappiness"]);
    }

    #[test]
    fn finds_30_s_within_an_hour_with_the_same_severity() {
        let an_hour = |free_swap: u64| {
            let steps = |then: u64| {
                let mut all = vec![0; 3600];
                all[1800..1830].fill(then);
                all
            };
            Case::over(3600)
                .gauge(MEM_TOTAL, Bytes::from_mib(1000))
                .gauge(MEM_INACTIVE_ANON, Bytes::from_mib(300))
                .gauge(SWAP_TOTAL, Bytes::from_mib(500))
                .gauge(SWAP_FREE, Bytes::from_mib(free_swap))
                .counter_steps(REFAULT_FILE, &steps(10_000))
                .counter_steps(PSI_MEMORY_SOME, &steps(800_000))
                .counter_steps(PSI_MEMORY_FULL, &steps(700_000))
                .fact(SWAPPINESS, "0")
        };
        let finding = found(RULE, &an_hour(400));
        assert_eq!(finding.severity, Severity::Warning);
        assert_eq!(times(&finding), [(1800, 1830)]);
        // Swap is full.
        clear(RULE, &an_hour(20));
    }
}
