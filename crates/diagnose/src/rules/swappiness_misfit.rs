//! vm.swappiness does not fit: it drops files that are in use to keep cold anonymous memory, or the other way round.

use timeline::{
    Stretch,
    facts::{MGLRU, SWAPPINESS},
    signals::{
        MEM_ANON, MEM_INACTIVE_ANON, MEM_SHMEM, PAGE_CACHE, REFAULT_ANON, REFAULT_FILE, SWAP_FREE,
        SWAP_TOTAL,
    },
};
use units::{Bytes, Pages, PerSecond, Ratio};

use super::exec_pages_evicted::LOW_SWAPPINESS;
use super::page_cache_thrash::{HOLD, READ_AGAIN, evicted_by_another, reading_again};
use crate::evidence::Evidence;
use crate::finding::Severity;
use crate::fix::Fix;
use crate::missing::Missing;
use crate::rule::{Outcome, clear, declare_rule};
use crate::stalls::Stalls;

declare_rule! {
    /// vm.swappiness makes the kernel drop the pages that are in use and keep the ones that are not.
    ///
    /// ## What it means
    /// When memory is short, `vm.swappiness` weighs anonymous memory against page cache: 0 spares anonymous memory to
    /// the end, 100 treats both alike, 200 (since 5.8) spares the cache. Set too low, cold anonymous memory stays and
    /// files in use are read again and again; set too high, a copy or backup pushes program data out to swap.
    /// ## How it is recognised
    /// Too low: vm.swappiness is 10 or less, a fifth of swap is free, file pages come back after eviction at 1 MiB/s or
    /// more for long, and cold anonymous memory (the inactive list, or half of all where the kernel keeps generations)
    /// is 10 % of RAM. Too high: vm.swappiness is 60 or more, 200 anonymous pages a second come back from swap while
    /// hardly any file page does, and page cache is above 30 % of RAM. Where nothing waits it is only worth a note.
    /// ## Not this
    /// - `swap-thrash`: anonymous memory does not fit, whatever the setting.
    /// - `page-cache-thrash` at a fitting setting, or without swap (`no-swap-risk`): there is nothing to turn.
    /// - A control group's own setting (v1 memory.swappiness) or limit.
    /// ## What to do
    /// Now: `sysctl -w vm.swappiness=60`. For good: a file under `/etc/sysctl.d/`, and no tuned profile or installer that
    /// sets it back. Verify: file and anonymous pages that come back, together, become fewer under the same load.
    /// ## References
    /// - kernel Documentation/admin-guide/sysctl/vm.rst, swappiness
    /// - kernel mm/vmscan.c, get_scan_count
    pub(crate) RULE = { id: "swappiness-misfit", since: "0.1.0", purpose: Finding, check: check }
}

/// Room to swap to; an engineering choice.
const SWAP_FREE_SHARE: Ratio = Ratio::from_percent(20.0);
/// Anonymous memory worth swapping; an engineering choice.
const COLD: Ratio = Ratio::from_percent(10.0);
/// Generations do not tell active from inactive as two lists do; half of all anonymous memory stands for the cold part.
const COLD_OF_GENERATIONS: f64 = 0.5;
/// The kernel's default, from which on the setting can be too high (mm/vmscan.c, vm_swappiness).
const DEFAULT: u64 = 60;
const ANON_BACK: PerSecond<Pages> = super::swap_thrash::REFAULTS;
/// Beside 200 anonymous pages a second, this many file pages are hardly any.
const FILE_BACK: PerSecond<Pages> = PerSecond::new(20.0);
/// Cache that could give way instead; an engineering choice.
const MUCH_CACHE: Ratio = Ratio::from_percent(30.0);

fn check(cx: &Evidence<'_>) -> Result<Outcome, Missing> {
    let swappiness = cx.number(SWAPPINESS)?;
    if swappiness <= LOW_SWAPPINESS {
        too_low(cx, swappiness)
    } else if swappiness >= DEFAULT {
        too_high(cx, swappiness)
    } else {
        clear!("vm.swappiness is {swappiness}")
    }
}

fn too_low(cx: &Evidence<'_>, swappiness: u64) -> Result<Outcome, Missing> {
    let total = cx.last(SWAP_TOTAL)?;
    if total == Bytes::ZERO {
        return clear!("vm.swappiness is {swappiness}, but there is no swap");
    }
    let again = cx.refaults_file()?;
    let in_bytes = again.to_bytes(cx.page_size()?);
    let rereading = reading_again(cx)?;
    let Some((stretch, came_back)) = cx.held(&rereading, &in_bytes, HOLD) else {
        return clear!(
            "vm.swappiness is {swappiness}, but no file pages came back after eviction for long"
        );
    };
    if let Some(why) = evicted_by_another(cx, &stretch, &again) {
        return Ok(Outcome::Clear(why));
    }
    let free = cx.gauge(SWAP_FREE)?;
    let left = cx.mean_in(&stretch, SWAP_FREE, &free)?;
    if left < total.share(SWAP_FREE_SHARE) {
        return clear!("vm.swappiness is {swappiness}, but only {left} of swap are free");
    }
    let ram = cx.ram()?;
    let cold = cold_in(cx, &stretch)?;
    if cold < ram.share(COLD) {
        return clear!(
            "vm.swappiness is {swappiness}, but only {cold} of anonymous memory are cold"
        );
    }
    let stalls = Stalls::during(cx, &stretch);
    let finding = RULE
        .found(
            severity(&stalls),
            format!(
                "Files are read again and again ({came_back}) while {cold} of cold memory stay in RAM and {left} of swap are free: vm.swappiness is {swappiness}."
            ),
        )
        .during(cx.each_time(stretch, &rereading, HOLD, |one| {
            evicted_by_another(cx, one, &again).is_none()
                && free.mean_in(one).is_some_and(|left| left >= total.share(SWAP_FREE_SHARE))
                && cold_in(cx, one).is_ok_and(|cold| cold >= ram.share(COLD))
        }))
        .graph("read again after eviction", &in_bytes)
        .shows_fact(SWAPPINESS, swappiness, format!("vm.swappiness = {swappiness}"))
        .shows_from(
            REFAULT_FILE,
            came_back, READ_AGAIN,
            None,
            format!("{came_back} of files came back after eviction (refaults)"),
        )
        .shows_from(MEM_INACTIVE_ANON, cold, ram.share(COLD), None, format!("about {cold} of anonymous memory are cold"))
        .shows_from(SWAP_FREE, left, total.share(SWAP_FREE_SHARE), None, format!("{left} of swap are free"));
    let mut kinds = vec!["the setting", "refaults"];
    if stalls.any() {
        kinds.push("stalls");
    }
    Ok(stalls
        .shown_in(finding)
        .not("no-swap-risk", format!("{left} of swap are free"))
        .cause("At this setting the kernel drops file pages to the end before it swaps anonymous memory that nobody touches.")
        .fix(Fix::tunable(cx, format!("Let cold memory go to swap (the setting was {swappiness})."), SWAPPINESS, 60))
        .verify("memtide check --for 1m under the same load: fewer file pages come back, and few from swap")
        .sure(cx.confidence(&kinds, stalls.open()))
        .see("kernel: Documentation/admin-guide/sysctl/vm.rst, swappiness")
        .see("kernel: mm/vmscan.c, get_scan_count")
        .into())
}

fn too_high(cx: &Evidence<'_>, swappiness: u64) -> Result<Outcome, Missing> {
    let anon = cx.refaults_anon()?;
    let files = cx.refaults_file()?;
    let cache = cx.page_cache()?;
    let ram = cx.ram()?;
    let pushed_out = anon
        .at_least(ANON_BACK)
        .and(&files.at_most(FILE_BACK))
        .and(&cache.at_least(ram.share(MUCH_CACHE)));
    let Some((stretch, back)) = cx.held(&pushed_out, &anon, HOLD) else {
        return clear!(
            "vm.swappiness is {swappiness}, and no anonymous memory went to swap for the sake of idle cache"
        );
    };
    let stalls = Stalls::during(cx, &stretch);
    let kept = cx.mean_in(&stretch, PAGE_CACHE, &cache)?;
    let finding = RULE
        .found(
            severity(&stalls),
            format!(
                "Program data goes to swap and comes back ({back}) while {kept} of page cache are hardly used: vm.swappiness is {swappiness}."
            ),
        )
        .during(cx.each_time(stretch, &pushed_out, HOLD, |_| true))
        .graph("swapped in again", &anon)
        .shows_fact(SWAPPINESS, swappiness, format!("vm.swappiness = {swappiness}"))
        .shows_from(REFAULT_ANON, back, ANON_BACK, None, format!("{back} of anonymous memory came back after eviction"))
        .shows_from(PAGE_CACHE, kept, ram.share(MUCH_CACHE), None, format!("{kept} of page cache, of which nothing was read again"));
    let mut kinds = vec!["the setting", "refaults"];
    if stalls.any() {
        kinds.push("stalls");
    }
    Ok(stalls
        .shown_in(finding)
        .not("swap-thrash", format!("{kept} of page cache could give way"))
        .cause("Much reading or writing fills the cache with pages that are used once, and at this setting the kernel makes room by swapping.")
        .fix(Fix::tunable(cx, format!("Spare program data more (the setting was {swappiness}; 100 and more suit zram only)."), SWAPPINESS, 30))
        .fix(Fix::say("Or keep the job that fills the cache to itself: systemd-run --scope -p MemoryHigh=512M before its command, or MemoryHigh=512M in its unit file."))
        .verify("memtide check --for 1m under the same load: below 10 pages/s come back from swap")
        .sure(cx.confidence(&kinds, stalls.open()))
        .see("kernel: Documentation/admin-guide/sysctl/vm.rst, swappiness")
        .into())
}

/// A setting modifies a shortage; it never is the emergency itself.
fn severity(stalls: &Stalls) -> Severity {
    if stalls.any() || !stalls.measured() {
        Severity::Warning
    } else {
        Severity::Info
    }
}

/// Anonymous and shared memory that nobody touched lately.
fn cold_in(cx: &Evidence<'_>, stretch: &Stretch) -> Result<Bytes, Missing> {
    let generations = cx.facts.number(MGLRU).is_some_and(|mask| mask & 1 == 1);
    let cold = match cx.gauge(MEM_INACTIVE_ANON) {
        Ok(inactive) if !generations => inactive,
        _ => {
            let anon = cx.gauge(MEM_ANON)?;
            let all = match cx.gauge(MEM_SHMEM) {
                Ok(shared) => anon.plus(&shared),
                Err(_) => anon,
            };
            all.scaled(COLD_OF_GENERATIONS)
        }
    };
    cx.mean_in(stretch, MEM_INACTIVE_ANON, &cold)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::testing::{Case, clear, found, not_evaluated};
    use timeline::signals::{
        MEM_CACHED, MEM_TOTAL, PGPGIN, PSI_IO_FULL, PSI_IO_SOME, PSI_MEMORY_FULL, PSI_MEMORY_SOME,
    };

    /// A host of 1,000 MiB with 500 MiB of swap, to which `files` and `anon` pages a second come back.
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
    fn a_misfit_that_nobody_waits_for_is_a_note() {
        let finding = found(RULE, &stalling(host("1", 10_000, 0), 0));
        assert_eq!(finding.severity, Severity::Info);
    }

    #[test]
    fn a_fitting_or_idle_setting_is_clear() {
        clear(RULE, &host("30", 10_000, 0));
        clear(RULE, &host("0", 10, 0));
        clear(RULE, &host("60", 10_000, 2000));
        clear(RULE, &host("60", 0, 50));
    }

    #[test]
    fn nothing_can_be_turned_without_free_swap_or_cold_memory() {
        clear(RULE, &host("0", 10_000, 0).gauge(SWAP_TOTAL, Bytes::ZERO));
        clear(
            RULE,
            &host("0", 10_000, 0).gauge(SWAP_FREE, Bytes::from_mib(50)),
        );
        clear(
            RULE,
            &host("0", 10_000, 0).gauge(MEM_INACTIVE_ANON, Bytes::from_mib(50)),
        );
    }

    #[test]
    fn generations_do_not_tell_what_is_inactive() {
        let case = host("0", 10_000, 0)
            .gauge(MEM_INACTIVE_ANON, Bytes::from_mib(5))
            .gauge(MEM_ANON, Bytes::from_mib(600))
            .fact(MGLRU, "0x0007");
        found(RULE, &case);
    }

    #[test]
    fn an_unknown_setting_is_not_evaluated() {
        assert_eq!(
            not_evaluated(RULE, &Case::over(60)).names,
            ["vm.swappiness"]
        );
    }
}
