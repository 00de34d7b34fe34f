//! No swap, on a host where that costs something.

use timeline::signals::{MEM_ANON, MEM_SHMEM, SWAP_TOTAL};
use units::{Bytes, Ratio};

use super::{exec_pages_evicted, oom_global};
use crate::evidence::Evidence;
use crate::finding::Severity;
use crate::fix::Fix;
use crate::missing::Missing;
use crate::oom;
use crate::rule::{Outcome, Rule, clear, declare_rule};
use crate::who;

declare_rule! {
    /// There is no swap, and programs hold most of RAM: a peak ends in an OOM kill instead of a slow minute.
    ///
    /// ## What it means
    /// Without swap, anonymous and shared memory can never leave RAM, cold or not. When memory gets short only file pages
    /// are left to drop, the code of running programs among them, and after that only a kill helps.
    /// ## How it is recognised
    /// SwapTotal is 0 and anonymous and shared memory together reach 70 % of RAM
    /// (peaks of a twentieth of the time left out). By itself that is only a note. It is a
    /// warning on a host where programs lost their own code to reclaim or the kernel killed for want of memory.
    /// ## Not this
    /// - A Kubernetes node whose pods have limits, or a database sized for its RAM: swap is off on purpose there.
    /// - `exec-pages-evicted`, `oom-global`: what missing swap leads to.
    /// ## What to do
    /// Now: zram, or a swap file of 1 GiB or a tenth of RAM. For good: fstab or zram-generator; on Kubernetes NodeSwap with
    /// LimitedSwap. Verify: swap is there after a reboot, and pages that come back from it stay below 10 a second.
    /// ## References
    /// - kernel mm/vmscan.c, get_scan_count: without swap only file pages are scanned
    /// - zram-generator.conf(5), swapon(8)
    pub(crate) RULE = { id: "no-swap-risk", since: "0.1.0", purpose: Finding, check: check }
}

/// An engineering choice.
const MUCH: Ratio = Ratio::from_percent(70.0);
/// What is held at most for this share of the time, so that one peak is not taken for the rule.
const NEARLY_ALWAYS: Ratio = Ratio::from_percent(95.0);

fn check(cx: &Evidence<'_>) -> Result<Outcome, Missing> {
    if oom::only_others(cx) {
        return clear!("the kernel's report is not about a shortage of the host");
    }
    let swap = cx.gauge(SWAP_TOTAL)?;
    if swap.max().is_some_and(|(total, _)| total > Bytes::ZERO) {
        return clear!("there is swap");
    }
    let ram = cx.ram()?;
    let anon = cx.gauge(MEM_ANON)?;
    let held = match cx.gauge(MEM_SHMEM) {
        Ok(shared) => anon.plus(&shared),
        Err(_) => anon,
    };
    let Some(held) = held.quantile(NEARLY_ALWAYS) else {
        return clear!("anonymous memory was not measured");
    };
    let killed = found(cx, oom_global::RULE);
    let evicted = found(cx, exec_pages_evicted::RULE);
    if held < ram.share(MUCH) && !killed && !evicted {
        return clear!("there is no swap, but programs hold only {held} of {ram}");
    }
    let (severity, consequence) = match (killed, evicted) {
        (true, _) => (Severity::Warning, "and the kernel had to kill"),
        (false, true) => (Severity::Warning, "and programs lost their own code"),
        (false, false) => (Severity::Info, "so a peak would end in an OOM kill"),
    };
    let mut kinds = vec!["the setting"];
    if killed || evicted {
        kinds.push("what it led to");
    }
    let last = cx.timeline.len().saturating_sub(1);
    Ok(RULE
        .found(
            severity,
            format!(
                "There is no swap: up to {held} of anonymous and shared memory cannot leave {ram} of RAM, {consequence}."
            ),
        )
        .shows(SWAP_TOTAL, Bytes::ZERO, None, "there is no swap")
        .shows_from(
            MEM_ANON,
            held, ram.share(MUCH),
            None,
            if cx.is_single_look() {
                format!("{held} of anonymous and shared memory")
            } else {
                format!("at most {held} of anonymous and shared memory for {NEARLY_ALWAYS} of the time")
            },
        )
        .cause("Without swap the kernel can only drop file pages, however cold the rest is.")
        .fix(Fix::say("Compressed swap in RAM, or a swap file; unless swap is off on purpose and every service has a limit. It lasts where systemd's zram-generator is installed.")
            .now("zramctl --find --size 2G --algorithm zstd && mkswap /dev/zram0 && swapon -p 100 /dev/zram0")
            .keep("printf '[zram0]\\nzram-size = ram / 2\\n' >> /etc/systemd/zram-generator.conf")
            .undo("swapoff /dev/zram0 && zramctl --reset /dev/zram0"))
        .verify("swapon --show lists it after a reboot; below 10 pages/s come back from swap")
        .affects(who::largest(cx, last, 3))
        .sure(cx.confidence(&kinds, "whether swap is off on purpose is not known"))
        .see("kernel: mm/vmscan.c, get_scan_count")
        .into())
}

/// Whether another rule finds something worse than a note.
fn found(cx: &Evidence<'_>, rule: Rule) -> bool {
    matches!((rule.check)(cx), Ok(Outcome::Found(finding)) if finding.severity > Severity::Info)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oom::testing::Report;
    use crate::rules::testing::{Case, clear, found, not_evaluated};
    use timeline::signals::{ALLOCSTALL, MEM_AVAILABLE, MEM_TOTAL, OOM_KILLS};

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
    fn a_kill_makes_it_a_warning() {
        let mut kills = vec![0; 60];
        kills[30] = 1;
        let mut stalls = vec![0; 60];
        stalls[30] = 18;
        let case = host(300)
            .gauge(MEM_AVAILABLE, Bytes::from_mib(20))
            .counter_steps(OOM_KILLS, &kills)
            .counter_steps(ALLOCSTALL, &stalls);
        assert_eq!(found(RULE, &case).severity, Severity::Warning);
    }

    #[test]
    fn a_kill_of_a_host_without_swap_is_what_it_leads_to() {
        let report = Report::of_a_host().swap(0, 0);
        let shared = Case::of_report(report);
        assert_eq!(found(RULE, &shared).severity, Severity::Warning);
    }

    #[test]
    fn with_swap_it_is_clear_and_without_meminfo_not_evaluated() {
        clear(RULE, &host(700).gauge(SWAP_TOTAL, Bytes::from_mib(1)));
        assert_eq!(not_evaluated(RULE, &Case::over(60)).names, ["swap.total"]);
    }
}
