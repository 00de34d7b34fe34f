//! No swap on a host with much anonymous memory.

use timeline::signals::{MEM_ANON, MEM_AVAILABLE, SWAP_TOTAL};

use crate::measures::baselines::SWAP_TRAFFIC;
use crate::measures::readings::swappable;
use crate::oom;
use crate::prelude::*;
use crate::remedy::{ZRAM_SIZE_MAX, zram_swap};

declare_rule! {
    /// There is no swap, and programs use most of RAM: a peak ends in an OOM kill instead of a slow minute.
    ///
    /// ## What it means
    /// Without swap, anonymous and shared memory can never leave RAM, cold or not. When memory gets short, only file
    /// pages are left to evict, including the code of running programs, and after that only a kill helps.
    /// ## How it is recognised
    /// SwapTotal is 0 and anonymous plus shared memory is {ANON_SHARE_MUCH} of RAM or more for {LEVEL} or longer. Where
    /// anonymous memory was not measured (`free` does not print it), {UNAVAILABLE_SHARE_MUCH} of RAM or more is not
    /// available. That alone is informational. If programs lose their own code to reclaim at that time, or the kernel
    /// kills for lack of memory, it is reported with that finding.
    /// ## Not this
    /// - A Kubernetes node with memory limits on all pods, or a database sized for its RAM: swap is off on purpose
    ///   there.
    /// - `exec-pages-evicted`, `oom-global`: the consequences of missing swap.
    /// ## What to do
    /// Now: zram of half of RAM, {ZRAM_SIZE_MAX} at most, or a swap file. For good: fstab or zram-generator; on
    /// Kubernetes NodeSwap with LimitedSwap. Verify: swap is active after a reboot, and swap-in stays below
    /// {SWAP_TRAFFIC}.
    /// ## References
    /// - kernel mm/vmscan.c, get_scan_count: without swap only file pages are scanned
    /// - zram-generator.conf(5), swapon(8)
    pub(crate) RULE = {
        id: "no-swap-risk", since: "0.1.0", class: Scarcity,
        numbers: [ANON_SHARE_MUCH, LEVEL, UNAVAILABLE_SHARE_MUCH, ZRAM_SIZE_MAX, SWAP_TRAFFIC],
        trigger: trigger, story: story,
        cause: "Without swap the kernel can only evict file pages, however cold the other pages \
                are.",
        verify: "swapon --show lists it after a reboot; below {SWAP_TRAFFIC} swapped in",
        replaces: &["NodeMemoryHighUtilization"],
    }
}

/// An engineering choice.
const ANON_SHARE_MUCH: Ratio = Ratio::from_percent(70.0);
/// More than programs: what is not available includes the kernel's own memory, and what the watermarks reserve.
const UNAVAILABLE_SHARE_MUCH: Ratio = Ratio::from_percent(85.0);

/// Memory that reclaim without swap cannot take, the kernel's own included.
fn unavailable() -> Reading<Bytes> {
    ram().minus(gauge(MEM_AVAILABLE))
}

fn trigger() -> Trigger {
    Trigger::on_host(
        LEVEL,
        all![
            gauge(SWAP_TOTAL).at_most("swap", Bytes::ZERO),
            swappable()
                .at_least("anonymous and shared memory", ram().share(ANON_SHARE_MUCH))
                .or_without(
                    unavailable().at_least(
                        "memory that is not available",
                        ram().share(UNAVAILABLE_SHARE_MUCH)
                    )
                ),
        ],
    )
}

fn story<'a>(cx: &Evidence<'a>, incident: &Incident<'a>) -> Result<Outcome, Missing> {
    if oom::only_others(cx) {
        return clear!("the kernel report is not about a shortage of the host");
    }
    let stretch = &incident.stretch;
    let ram = cx.ram()?;
    let (what, signal, share, track) = match swappable().track(cx) {
        Ok(track) => ("anonymous and shared memory", MEM_ANON, ANON_SHARE_MUCH, track),
        Err(_) => {
            let what = "memory that is not available, the kernel's own included,";
            (what, MEM_AVAILABLE, UNAVAILABLE_SHARE_MUCH, unavailable().track(cx)?)
        }
    };
    let Some((most, index)) = track.max_in(stretch) else {
        return clear!("anonymous memory was not measured");
    };
    let at_most = if cx.is_single_sample() { "" } else { "up to " };
    let title = format!(
        "There is no swap: {at_most}{most} of {what} cannot leave the {ram} of RAM, so a peak \
         would end in an OOM kill."
    );
    let name = what.trim_end_matches(',');
    Ok(RULE
        .found(Severity::Info, title)
        .graph(name, &track)
        .shows(SWAP_TOTAL, Bytes::ZERO, None, "there is no swap")
        .shows_from(
            signal,
            most,
            ram.share(share),
            cx.time(index),
            format!("{at_most}{most} of {name}"),
        )
        .counts_as("the setting")
        .fix(
            Fix::say(
                "Add compressed swap in RAM (zram) or a swap file, unless swap is off on purpose \
                 and every service has a limit. It survives a reboot where systemd's \
                 zram-generator is installed.",
            )
            .command(zram_swap(ram, "")),
        )
        .affects(processes::largest(cx, index, 3))
        .sure_by_kinds(cx, "whether swap is off on purpose is unknown")
        .into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oom::testing::Report;
    use crate::rules::testing::{Case, amid_calm, changed, clear, found, not_evaluated, times};
    use timeline::signals::{MEM_SHMEM, MEM_TOTAL, OOM_KILLS};

    fn host(anon: u64) -> Case {
        Case::over(60)
            .gauge(MEM_TOTAL, Bytes::from_mib(1000))
            .gauge(SWAP_TOTAL, Bytes::ZERO)
            .gauge(MEM_ANON, Bytes::from_mib(anon))
            .gauge(MEM_SHMEM, Bytes::from_mib(50))
    }

    #[test]
    fn much_anonymous_memory_without_swap_is_informational() {
        assert_eq!(found(RULE, &host(700)).severity, Severity::Info);
        clear(RULE, &host(600));
    }

    #[test]
    fn without_anonymous_memory_what_is_available_decides() {
        let case = |available| {
            Case::over(60)
                .gauge(MEM_TOTAL, Bytes::from_mib(1000))
                .gauge(SWAP_TOTAL, Bytes::ZERO)
                .gauge(MEM_AVAILABLE, Bytes::from_mib(available))
        };
        assert_eq!(found(RULE, &case(60)).severity, Severity::Info);
        clear(RULE, &case(300));
    }

    #[test]
    fn a_source_of_two_seconds_shows_no_less_than_one_sample() {
        let case = Case::over(2)
            .gauge(MEM_TOTAL, Bytes::from_mib(1000))
            .gauge(SWAP_TOTAL, Bytes::ZERO)
            .gauge(MEM_ANON, Bytes::from_mib(700))
            .gauge(MEM_SHMEM, Bytes::from_mib(50));
        assert_eq!(found(RULE, &case).severity, Severity::Info);
    }

    #[test]
    fn finds_30_s_within_an_hour_but_not_a_moment() {
        let in_an_hour = |seconds: usize| {
            let mut anon = vec![Bytes::from_mib(300); 3600];
            anon[1800..1800 + seconds].fill(Bytes::from_mib(700));
            Case::over(3600)
                .gauge(MEM_TOTAL, Bytes::from_mib(1000))
                .gauge(SWAP_TOTAL, Bytes::ZERO)
                .gauge_steps(MEM_ANON, &anon)
                .gauge(MEM_SHMEM, Bytes::from_mib(50))
        };
        let finding = found(RULE, &in_an_hour(30));
        assert_eq!(finding.severity, Severity::Info);
        assert_eq!(times(&finding), [(1799, 1829)]);
        clear(RULE, &in_an_hour(5));
    }

    #[test]
    fn clear_when_files_fill_ram() {
        let case = host(300).gauge_steps(
            timeline::signals::MEM_CACHED,
            &amid_calm(Bytes::from_mib(650), Bytes::ZERO),
        );
        clear(RULE, &case);
    }

    #[test]
    fn a_kill_is_reported_by_its_own_rule() {
        let mut kills = vec![0; 60];
        kills[30] = 1;
        let case = |anon| host(anon).counter_steps(OOM_KILLS, &kills);
        clear(RULE, &case(300));
        assert_eq!(found(RULE, &case(700)).severity, Severity::Info);
    }

    #[test]
    fn a_kernel_report_shows_missing_swap() {
        let report = Report::of_a_host().swap(0, 0);
        let finding = found(RULE, &Case::of_report(report));
        assert_eq!(finding.severity, Severity::Info);
    }

    #[test]
    fn the_advised_zram_is_half_of_ram_and_at_most_4_gib() {
        let now = |case: Case| changed(&found(RULE, &case).fixes[0])[0].clone();
        assert!(now(host(700)).contains("--size 500M"));
        let large =
            host(700).gauge(MEM_TOTAL, Bytes::from_gib(256)).gauge(MEM_ANON, Bytes::from_gib(200));
        assert!(now(large).contains("--size 4096M"));
    }

    #[test]
    fn clear_with_swap_and_not_evaluated_without_meminfo() {
        clear(RULE, &host(700).gauge(SWAP_TOTAL, Bytes::from_mib(1)));
        assert_eq!(not_evaluated(RULE, &Case::over(60)).names, ["swap.total"]);
    }
}
