//! Swap is used, but there is no swap-in.

use timeline::signals::{MEM_AVAILABLE, PSWPIN, SWAP_TOTAL, SWAP_USED};

use crate::measures::available;
use crate::measures::baselines::{SWAP_TRAFFIC, SWAP_USED as USED};
use crate::measures::disk_wait;
use crate::measures::readings::{AVAILABLE_ROOMY_SHARE, swap_used, swapped_in};
use crate::oom;
use crate::prelude::*;

declare_rule! {
    /// Swap is used, but there is hardly any swap-in: no shortage.
    ///
    /// ## What it means
    /// The kernel wrote pages to swap that had been idle for long, and uses the RAM for something better. Used swap is
    /// harmless; only swap-in hurts, because a task waits for it.
    /// ## How it is recognised
    /// For {LEVEL} or longer, at least {USED} of swap is used, and at most {SWAP_TRAFFIC} are swapped in. If the
    /// source cannot show swap-in (one sample, `free` alone), at most {SWAP_USED_SHARE} of swap is used and at least
    /// {AVAILABLE_ROOMY_SHARE} of RAM is available; then the finding is only possible.
    /// ## Not this
    /// - `swap-thrash`: pages are swapped in as fast as out.
    /// - `swap-full`: nearly all of it is used and little is available.
    /// ## What to do
    /// Nothing. Alert on pages swapped in, not on swap used. Verify: a recording over a day stays below
    /// {SWAP_TRAFFIC}.
    /// ## References
    /// - kernel mm/vmscan.c: cold anonymous pages leave so that page cache can stay
    pub(crate) RULE = { id: "swap-cold-harmless", since: "0.1.0", class: Note,
        numbers: [LEVEL, USED, SWAP_TRAFFIC, SWAP_USED_SHARE, AVAILABLE_ROOMY_SHARE],
        trigger: trigger, story: story,
        cause: "The kernel swapped out pages that had been idle for long, to keep others in RAM.",
    }
}

/// An engineering choice: a shortage leaves more swap than this in use.
const SWAP_USED_SHARE: Ratio = Ratio::from_percent(25.0);

fn trigger() -> Trigger {
    let hardly_any = swapped_in().at_most("swapped in", SWAP_TRAFFIC);
    Trigger::on_host(
        LEVEL,
        all![swap_used().at_least("swap used", USED), hardly_any.if_measured(),],
    )
}

fn story<'a>(cx: &Evidence<'a>, incident: &Incident<'a>) -> Result<Outcome, Missing> {
    let used = cx.swap_used()?;
    let used = used.at(incident.stretch.last).unwrap_or_default();
    let stretch = match oom::apart_from_shortage(cx, &incident.stretch) {
        Ok(stretch) => stretch,
        Err(why) => return clear!("{used} is in swap, and {why}"),
    };
    let swapped_in = match cx.swapped_in() {
        Ok(track) => track,
        Err(missing) => return levels_only(cx, used, &stretch).ok_or(missing),
    };
    let mean = cx.mean_in(&stretch, PSWPIN, &swapped_in)?;
    if mean > SWAP_TRAFFIC {
        return clear!("{mean} swapped in on average");
    }
    let title = match disk_wait::sentence(cx) {
        None => format!("{used} is in swap and hardly any of it is needed: {mean} swapped in."),
        Some(_) => format!(
            "{used} is in swap, and {mean} swapped in: tasks wait for the disk, but hardly for \
             these pages."
        ),
    };
    Ok(RULE
        .found(Severity::Info, title)
        .shows(SWAP_USED, used, None, format!("{used} of swap used"))
        .counts_as("swap used")
        .shows_below(
            PSWPIN,
            mean,
            SWAP_TRAFFIC,
            None,
            format!("{mean} swapped in over {}", stretch.duration()),
        )
        .counts_as("no swap traffic")
        .during(stretch)
        .fix(Fix::say("Nothing. Alert on pages swapped in, not on swap used."))
        .verify(format!(
            "memtide capture --for 24h --every 1m -o day.jsonl.zst, then memtide check on it: \
             below {SWAP_TRAFFIC} swapped in"
        ))
        .sure_by_kinds(cx, "a day's recording would settle it")
        .into())
}

/// Levels alone show no swap-in, but little used swap with much available memory is typical of idle pages.
fn levels_only(cx: &Evidence<'_>, used: Bytes, stretch: &Stretch) -> Option<Outcome> {
    let total = cx.gauge(SWAP_TOTAL).ok()?.at(stretch.last)?;
    let share_of_swap = used.ratio_of(total).filter(|share| *share <= SWAP_USED_SHARE)?;
    let (available, is_reported) = available::available_at_most(cx).ok()?;
    let (least, _) = available.min_in(stretch)?;
    let much = cx.ram().ok()?.share(AVAILABLE_ROOMY_SHARE);
    if least < much {
        return None;
    }
    let share = cx.of_ram(least).ok()?;
    let kind = if is_reported { "available" } else { "free or cache" };
    let source = if cx.is_single_sample() { "a single sample" } else { "this source" };
    let title = format!(
        "{used} is in swap while {least} is {kind}, which is typical of idle pages; {source} \
         cannot show whether pages are swapped in."
    );
    let finding = RULE
        .found(Severity::Info, title)
        .shows(SWAP_USED, used, None, format!("{used} of swap used ({share_of_swap} of {total})"))
        .shows_from(MEM_AVAILABLE, least, much, None, format!("{least} {kind} ({share} of RAM)"))
        .fix(
            Fix::say("Nothing yet. Check swap-in and swap-out: the columns si and so stay near 0.")
                .inspect("vmstat 5 12"),
        )
        .verify(format!("memtide check --for 1m on that host: below {SWAP_TRAFFIC} swapped in"))
        .sure_by_kinds(cx, "swap-in was not measured");
    Some(finding.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::testing::{Case, clear, found, not_evaluated, times};
    use timeline::signals::{CPU_IOWAIT, MEM_TOTAL, SWAP_FREE};

    fn used(mib: u64) -> Case {
        Case::over(20)
            .gauge(SWAP_TOTAL, Bytes::from_mib(512))
            .gauge(SWAP_FREE, Bytes::from_mib(512 - mib))
    }

    #[test]
    fn found_when_used_swap_is_idle() {
        found(RULE, &used(107).counter(PSWPIN, 1));
    }

    #[test]
    fn the_title_says_when_tasks_wait_for_the_disk() {
        let case = used(107).counter(PSWPIN, 1).counter(CPU_IOWAIT, 84);
        assert!(found(RULE, &case).title.contains("wait for the disk"));
    }

    #[test]
    fn clear_with_swap_in_or_empty_swap() {
        clear(RULE, &used(107).counter(PSWPIN, 500));
        clear(RULE, &used(0).counter(PSWPIN, 0));
    }

    /// One sample of a host of 4000 MiB.
    fn one_look(used: u64, available: u64) -> Case {
        Case::once()
            .gauge(MEM_TOTAL, Bytes::from_mib(4000))
            .gauge(MEM_AVAILABLE, Bytes::from_mib(available))
            .gauge(SWAP_TOTAL, Bytes::from_mib(512))
            .gauge(SWAP_FREE, Bytes::from_mib(512 - used))
    }

    #[test]
    fn a_single_sample_with_little_swap_used_is_possible() {
        let finding = found(RULE, &one_look(57, 2000));
        assert_eq!(finding.confidence.word(), "possible");
        assert!(finding.title.contains("a single sample cannot show"));
    }

    #[test]
    fn a_single_sample_with_much_swap_used_or_little_available_is_not_enough() {
        assert_eq!(not_evaluated(RULE, &one_look(300, 2000)).names, ["vm.pswpin"]);
        assert_eq!(not_evaluated(RULE, &one_look(57, 600)).names, ["vm.pswpin"]);
    }

    #[test]
    fn not_evaluated_without_swap_counters() {
        assert_eq!(not_evaluated(RULE, &used(107)).names, ["vm.pswpin"]);
    }

    #[test]
    fn only_quiet_times_are_reported() {
        let an_hour = |calm: u64, then: u64| {
            let mut back = vec![calm; 3600];
            back[1800..1830].fill(then);
            Case::over(3600)
                .gauge(SWAP_TOTAL, Bytes::from_mib(512))
                .gauge(SWAP_FREE, Bytes::from_mib(400))
                .counter_steps(PSWPIN, &back)
        };
        assert_eq!(times(&found(RULE, &an_hour(2500, 0))), [(1800, 1830)]);
        let quiet = times(&found(RULE, &an_hour(0, 2500)));
        assert_eq!(quiet, [(0, 1800), (1830, 3600)]);
        clear(RULE, &an_hour(2500, 2500));
    }
}
