//! Swap is used, but nothing moves.

use timeline::signals::{MEM_AVAILABLE, PSWPIN, SWAP_TOTAL, SWAP_USED};

use crate::measures::available;
use crate::measures::baselines::{SWAP_TRAFFIC, SWAP_USED as USED};
use crate::measures::disk_wait;
use crate::measures::readings::{ROOM, swap_used, swapped_in};
use crate::oom;
use crate::prelude::*;

declare_rule! {
    /// Swap is used, but nobody asks for what lies in it: no shortage.
    ///
    /// ## What it means
    /// Pages that nobody had touched for long were written to swap at some time, and RAM serves something better since.
    /// Used swap is a stock; only swap that moves is a shortage.
    /// ## How it is recognised
    /// For 10 s or longer, at least 1 MiB of swap is used, and at most 10 pages a second come back. Where nothing tells
    /// what moves (one sample, `free` alone), at most a quarter of swap is used and at least a quarter of RAM is available;
    /// then this is no more than possible.
    /// ## Not this
    /// - `swap-thrash`: pages come back as fast as they leave.
    /// - `swap-full`: nearly all of it is used and little is available.
    /// ## What to do
    /// Nothing. Alert on pages swapped in, not on swap used. Verify: a recording over a day stays below 10 pages a second.
    /// ## References
    /// - kernel mm/vmscan.c: cold anonymous pages leave so that page cache can stay
    pub(crate) RULE = { id: "swap-cold-harmless", since: "0.1.0", class: Note,
        trigger: trigger, story: story,
        cause: "The kernel wrote out pages that nobody had touched for long, to keep others in RAM.",
    }
}

/// An engineering choice: of swap that was once in demand, as far as levels can tell, more is used.
const SOME: Ratio = Ratio::from_percent(25.0);

fn trigger() -> Trigger {
    let comes_back = swapped_in().at_most("swapped in", SWAP_TRAFFIC);
    Trigger::on_host(
        LEVEL,
        all![
            swap_used().at_least("swap used", USED),
            comes_back.if_measured(),
        ],
    )
}

fn story<'a>(cx: &Evidence<'a>, incident: &Incident<'a>) -> Result<Outcome, Missing> {
    let used = cx.swap_used()?;
    let used = used.at(incident.stretch.last).unwrap_or_default();
    let stretch = match oom::apart_from_shortage(cx, &incident.stretch) {
        Ok(stretch) => stretch,
        Err(why) => return clear!("{used} lie in swap, and {why}"),
    };
    let swapped_in = match cx.swapped_in() {
        Ok(track) => track,
        Err(missing) => return levels_only(cx, used, &stretch).ok_or(missing),
    };
    let mean = cx.mean_in(&stretch, PSWPIN, &swapped_in)?;
    if mean > SWAP_TRAFFIC {
        return clear!("{mean} came back from swap on average");
    }
    let title = match disk_wait::tell(cx) {
        None => format!("{used} lie in swap and nobody asks for them: {mean} came back."),
        Some(_) => format!(
            "{used} lie in swap, and {mean} came back: tasks wait for the disk, but hardly for these pages."
        ),
    };
    Ok(RULE
        .found(Severity::Info, title)
        .shows(SWAP_USED, used, None, format!("{used} of swap used"))
        .counts_as("swap used")
        .shows_below(PSWPIN, mean, SWAP_TRAFFIC, None, format!("{mean} swapped in over {}", stretch.duration()))
        .counts_as("no swap traffic")
        .during(stretch)
        .fix(Fix::say("Nothing. Alert on pages swapped in, not on swap used."))
        .verify("memtide capture --for 24h --every 1m -o day.jsonl.zst, then memtide check on it: below 10 pages/s come back from swap")
        .sure_by_kinds(cx, "a day's recording would settle it")
        .into())
}

/// Levels show no movement, but little swap used beside much available memory is what idle pages leave behind.
fn levels_only(cx: &Evidence<'_>, used: Bytes, stretch: &Stretch) -> Option<Outcome> {
    let total = cx.gauge(SWAP_TOTAL).ok()?.at(stretch.last)?;
    let of_swap = used.ratio_of(total).filter(|share| *share <= SOME)?;
    let (available, told) = available::available_at_most(cx).ok()?;
    let (least, _) = available.min_in(stretch)?;
    let room = cx.ram().ok()?.share(ROOM);
    if least < room {
        return None;
    }
    let share = cx.of_ram(least).ok()?;
    let kind = if told { "available" } else { "free or cache" };
    let source = if cx.is_single_look() {
        "one look"
    } else {
        "this source"
    };
    let title = format!(
        "{used} lie in swap while {least} are {kind}, as idle pages do that left long ago; whether any come back, {source} cannot tell."
    );
    let finding = RULE
        .found(Severity::Info, title)
        .shows(
            SWAP_USED,
            used,
            None,
            format!("{used} of swap used ({of_swap} of {total})"),
        )
        .shows_from(
            MEM_AVAILABLE,
            least,
            room,
            None,
            format!("{least} {kind} ({share} of RAM)"),
        )
        .fix(
            Fix::say("Nothing yet. See whether swap moves: the columns si and so stay near 0.")
                .look("vmstat 5 12"),
        )
        .verify("memtide check --for 1m on that host: below 10 pages/s come back from swap")
        .sure_by_kinds(cx, "what moves was not measured");
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
    fn explains_used_swap_that_does_not_move() {
        found(RULE, &used(107).counter(PSWPIN, 1));
    }

    #[test]
    fn tasks_that_wait_for_the_disk_are_not_denied() {
        let case = used(107).counter(PSWPIN, 1).counter(CPU_IOWAIT, 84);
        assert!(found(RULE, &case).title.contains("wait for the disk"));
    }

    #[test]
    fn says_nothing_of_swap_that_moves_or_is_empty() {
        clear(RULE, &used(107).counter(PSWPIN, 500));
        clear(RULE, &used(0).counter(PSWPIN, 0));
    }

    /// One look at a host of 4000 MiB.
    fn one_look(used: u64, available: u64) -> Case {
        Case::once()
            .gauge(MEM_TOTAL, Bytes::from_mib(4000))
            .gauge(MEM_AVAILABLE, Bytes::from_mib(available))
            .gauge(SWAP_TOTAL, Bytes::from_mib(512))
            .gauge(SWAP_FREE, Bytes::from_mib(512 - used))
    }

    #[test]
    fn one_look_at_little_swap_and_much_room_makes_it_possible() {
        let finding = found(RULE, &one_look(57, 2000));
        assert_eq!(finding.confidence.word(), "possible");
        assert!(finding.title.contains("one look cannot tell"));
    }

    #[test]
    fn one_look_at_much_swap_or_little_room_says_nothing() {
        assert_eq!(
            not_evaluated(RULE, &one_look(300, 2000)).names,
            ["vm.pswpin"]
        );
        assert_eq!(not_evaluated(RULE, &one_look(57, 600)).names, ["vm.pswpin"]);
    }

    #[test]
    fn needs_the_swap_counters() {
        assert_eq!(not_evaluated(RULE, &used(107)).names, ["vm.pswpin"]);
    }

    #[test]
    fn it_speaks_of_quiet_times_and_of_no_others() {
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
