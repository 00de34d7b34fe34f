//! No swap, on a host where that costs something.

use timeline::signals::{MEM_ANON, SWAP_TOTAL};

use crate::measures::readings::swappable;
use crate::oom;
use crate::prelude::*;
use crate::remedy::whole_mib;

declare_rule! {
    /// There is no swap, and programs hold most of RAM: a peak ends in an OOM kill instead of a slow minute.
    ///
    /// ## What it means
    /// Without swap, anonymous and shared memory can never leave RAM, cold or not. When memory gets short only file pages
    /// are left to drop, the code of running programs among them, and after that only a kill helps.
    /// ## How it is recognised
    /// SwapTotal is 0 and anonymous and shared memory together are 70 % of RAM or more for 10 s or longer. That is only a
    /// note. Where programs lose their own code to reclaim at that time, or the kernel kills for want of memory, it stands
    /// with that.
    /// ## Not this
    /// - A Kubernetes node whose pods have limits, or a database sized for its RAM: swap is off on purpose there.
    /// - `exec-pages-evicted`, `oom-global`: what missing swap leads to.
    /// ## What to do
    /// Now: zram, or a swap file of 1 GiB or a tenth of RAM. For good: fstab or zram-generator; on Kubernetes NodeSwap with
    /// LimitedSwap. Verify: swap is there after a reboot, and pages that come back from it stay below 10 a second.
    /// ## References
    /// - kernel mm/vmscan.c, get_scan_count: without swap only file pages are scanned
    /// - zram-generator.conf(5), swapon(8)
    pub(crate) RULE = {
        id: "no-swap-risk", since: "0.1.0", class: Scarcity,
        trigger: trigger, story: story,
        cause: "Without swap the kernel can only drop file pages, however cold the rest is.",
        verify: "swapon --show lists it after a reboot; below 10 pages/s come back from swap",
    }
}

/// An engineering choice.
const MUCH: Ratio = Ratio::from_percent(70.0);

fn trigger() -> Trigger {
    Trigger::on_host(
        LEVEL,
        all![
            gauge(SWAP_TOTAL).at_most("swap", Bytes::ZERO),
            swappable().at_least("anonymous and shared memory", ram().share(MUCH)),
        ],
    )
}

/// What zram-generator gives by default as well.
const HALF: Ratio = Ratio::from_percent(50.0);

fn story<'a>(cx: &Evidence<'a>, incident: &Incident<'a>) -> Result<Outcome, Missing> {
    if oom::only_others(cx) {
        return clear!("the kernel's report is not about a shortage of the host");
    }
    let stretch = &incident.stretch;
    let ram = cx.ram()?;
    let swappable = swappable().track(cx)?;
    let Some((most, index)) = swappable.max_in(stretch) else {
        return clear!("anonymous memory was not measured");
    };
    let at_most = if cx.is_single_look() { "" } else { "up to " };
    let title = format!(
        "There is no swap: {at_most}{most} of anonymous and shared memory cannot leave {ram} of RAM, so a peak would end in an OOM kill."
    );
    let text = format!("{at_most}{most} of anonymous and shared memory");
    Ok(RULE
        .found(Severity::Info, title)
        .graph("anonymous and shared memory", &swappable)
        .shows(SWAP_TOTAL, Bytes::ZERO, None, "there is no swap")
        .shows_from(MEM_ANON, most, ram.share(MUCH), cx.time(index), text)
        .counts_as("the setting")
        .fix(Fix::say("Compressed swap in RAM, or a swap file; unless swap is off on purpose and every service has a limit. It lasts where systemd's zram-generator is installed.")
            .now(format!("zramctl --find --size {}M --algorithm zstd && mkswap /dev/zram0 && swapon -p 100 /dev/zram0", whole_mib(ram.share(HALF))))
            .keep("printf '[zram0]\\nzram-size = ram / 2\\n' >> /etc/systemd/zram-generator.conf")
            .undo("swapoff /dev/zram0 && zramctl --reset /dev/zram0"))
        .affects(processes::largest(cx, index, 3))
        .sure_by_kinds(cx, "whether swap is off on purpose is not known")
        .into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oom::testing::Report;
    use crate::rules::testing::{Case, amid_calm, clear, found, not_evaluated, times};
    use timeline::signals::{MEM_SHMEM, MEM_TOTAL, OOM_KILLS};

    fn host(anon: u64) -> Case {
        Case::over(60)
            .gauge(MEM_TOTAL, Bytes::from_mib(1000))
            .gauge(SWAP_TOTAL, Bytes::ZERO)
            .gauge(MEM_ANON, Bytes::from_mib(anon))
            .gauge(MEM_SHMEM, Bytes::from_mib(50))
    }

    #[test]
    fn much_anonymous_memory_without_swap_is_a_note() {
        assert_eq!(found(RULE, &host(700)).severity, Severity::Info);
        clear(RULE, &host(600));
    }

    #[test]
    fn half_a_minute_in_an_hour_is_a_note_and_a_moment_is_not() {
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
    fn files_that_fill_ram_are_no_risk() {
        let case = host(300).gauge_steps(
            timeline::signals::MEM_CACHED,
            &amid_calm(Bytes::from_mib(650), Bytes::ZERO),
        );
        clear(RULE, &case);
    }

    #[test]
    fn a_kill_stands_with_its_own_rule() {
        let mut kills = vec![0; 60];
        kills[30] = 1;
        let case = |anon| host(anon).counter_steps(OOM_KILLS, &kills);
        clear(RULE, &case(300));
        assert_eq!(found(RULE, &case(700)).severity, Severity::Info);
    }

    #[test]
    fn a_report_of_a_host_without_swap_shows_it_too() {
        let report = Report::of_a_host().swap(0, 0);
        let finding = found(RULE, &Case::of_report(report));
        assert_eq!(finding.severity, Severity::Info);
    }

    #[test]
    fn with_swap_it_is_clear_and_without_meminfo_not_evaluated() {
        clear(RULE, &host(700).gauge(SWAP_TOTAL, Bytes::from_mib(1)));
        assert_eq!(not_evaluated(RULE, &Case::over(60)).names, ["swap.total"]);
    }
}
