//! Swap is used, but nothing moves.

use timeline::signals::{PSWPIN, SWAP_USED};
use units::{Bytes, Pages, PerSecond};

use crate::evidence::Evidence;
use crate::finding::Severity;
use crate::missing::{Missing, Need};
use crate::rule::{Outcome, clear, declare_rule};

declare_rule! {
    /// Swap is used, but nobody asks for what lies in it: no shortage.
    ///
    /// ## What it means
    /// Pages that nobody had touched for long were written to swap at some time, and RAM serves something better since.
    /// Used swap is a stock; only swap that moves is a shortage.
    /// ## How it is recognised
    /// At least 1 MiB of swap is used, and fewer than 10 pages a second come back on average while watched.
    /// ## Not this
    /// - `swap-thrash`: pages come back as fast as they leave.
    /// - `swap-full`: nearly all of it is used and little is available.
    /// ## What to do
    /// Nothing. Alert on pages swapped in, not on swap used. Verify: a recording over a day stays below 10 pages a second.
    /// ## References
    /// - kernel mm/vmscan.c: cold anonymous pages leave so that page cache can stay
    pub(crate) RULE = { id: "swap-cold-harmless", since: "0.1.0", purpose: Note, check: check }
}

/// Less than this is noise.
const USED: Bytes = Bytes::from_mib(1);
/// An engineering choice: a labelled capture of cold swap shows 0, of thrash 2,500.
const QUIET: PerSecond<Pages> = PerSecond::new(10.0);

fn check(cx: &Evidence<'_>) -> Result<Outcome, Missing> {
    let Some(used) = cx.swap_used()?.last().filter(|used| *used >= USED) else {
        return clear!("no swap is used");
    };
    let swapped_in = cx.swapped_in()?;
    let Some(mean) = swapped_in
        .whole()
        .and_then(|whole| swapped_in.mean_in(&whole))
    else {
        return Err(Missing::because(vec![PSWPIN.def().name], Need::TwoLooks));
    };
    if mean >= QUIET {
        return clear!("{mean} came back from swap on average");
    }
    Ok(RULE
        .found(
            Severity::Info,
            format!("{used} lie in swap and nobody asks for them: {mean} came back."),
        )
        .shows(SWAP_USED, used, None, format!("{used} of swap used"))
        .shows_below(
            PSWPIN,
            mean,
            QUIET,
            None,
            format!("{mean} swapped in over {}", cx.look()),
        )
        .cause(
            "The kernel wrote out pages that nobody had touched for long, to keep others in RAM.",
        )
        .fix(
            "Nothing. Alert on pages swapped in, not on swap used.",
            "",
            "",
        )
        .verify("memtide capture --for 24h --every 1m -o day.jsonl.zst, then memtide check on it: below 10 pages/s come back from swap")
        .see("kernel: mm/vmscan.c, get_scan_count")
        .sure(cx.confidence(
            &["swap used", "no swap traffic"],
            "a day's recording would settle it",
        ))
        .into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::testing::{Case, clear, found, not_evaluated};
    use timeline::signals::{SWAP_FREE, SWAP_TOTAL};

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
    fn says_nothing_of_swap_that_moves_or_is_empty() {
        clear(RULE, &used(107).counter(PSWPIN, 500));
        clear(RULE, &used(0).counter(PSWPIN, 0));
    }

    #[test]
    fn needs_the_swap_counters() {
        assert_eq!(not_evaluated(RULE, &used(107)).names, ["vm.pswpin"]);
    }
}
