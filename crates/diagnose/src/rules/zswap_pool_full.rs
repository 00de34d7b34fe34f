//! The pool of zswap is at its limit, and pages go to the swap device.

use timeline::facts::{ZSWAP_ENABLED, ZSWAP_MAX_POOL};
use timeline::settings::ZSWAP_MAX_POOL_DEFAULT;
use timeline::signals::{MEM_ZSWAP, MEM_ZSWAPPED, PSWPIN, PSWPOUT, ZSWPIN, ZSWPOUT, ZSWPWB};

use crate::measures::readings::SWAP_OUT_NOTABLE;
use crate::prelude::*;

declare_rule! {
    /// zswap's compressed pool is full: pages go past it to the slow swap device, and cold ones keep the fast place.
    ///
    /// ## What it means
    /// zswap keeps swapped pages compressed in RAM, up to `max_pool_percent` of it (20 by default). When the pool is
    /// full, it takes nothing until it is at 90 % again: newer pages, which are needed sooner, go to the disk, while
    /// old ones stay in the pool, unless the kernel writes them back (the shrinker, since 6.8).
    /// ## How it is recognised
    /// The pool is at {FULL} or more of its limit for {LEVEL} or longer, or in a single sample. It is a warning if
    /// {TO_DEVICE} or more go to or come from the swap device and tasks wait at that time, otherwise informational.
    /// ## Not this
    /// - A pool below its limit with traffic on the disk: zswap refuses pages that do not compress.
    /// - `swap-thrash`: traffic in both directions for longer; a larger pool helps only if the data compresses well.
    /// - `zram-misuse`: compressed swap without a disk behind it.
    /// ## What to do
    /// Now: a larger pool, `echo {POOL_PERCENT_MAX} > /sys/module/zswap/parameters/max_pool_percent`, and the shrinker
    /// where the kernel has it, `echo Y > /sys/module/zswap/parameters/shrinker_enabled`; for good as
    /// `zswap.max_pool_percent={POOL_PERCENT_MAX}` at boot. The pool is RAM too: if memory is short, reduce demand
    /// instead. Verify: the pool stays below {FULL} of its limit, and pages are no longer swapped to the device.
    /// ## References
    /// - kernel Documentation/admin-guide/mm/zswap.rst
    pub(crate) RULE = {
        id: "zswap-pool-full", since: "0.1.0", class: Limit,
        numbers: [FULL, LEVEL, TO_DEVICE, POOL_PERCENT_MAX],
        trigger: trigger, waits: MemoryOrDisk, story: story,
        cause: "While its pool is at its limit, zswap takes no page, so new ones go to the disk.",
        verify: "Zswap in /proc/meminfo below {FULL} of the limit, and below {TO_DEVICE} swapped \
                 out to the device",
        brings_about: &["swap-slow-device"],
    }
}

/// Once full, zswap takes nothing until it is at this share again (mm/zswap.c, accept_threshold_percent).
const FULL: Ratio = Ratio::from_percent(90.0);
/// Traffic with the device from here on is more than a few pages that do not compress.
const TO_DEVICE: PerSecond<Pages> = SWAP_OUT_NOTABLE;
/// The largest advised share of RAM; an engineering choice: more leaves too little for what is in use.
const POOL_PERCENT_MAX: u64 = 2 * ZSWAP_MAX_POOL_DEFAULT;

fn trigger() -> Trigger {
    let full = gauge(MEM_ZSWAP).at_least("zswap's pool", limit().share(FULL));
    // A limit of 0 is off.
    let is_set = fact(ZSWAP_MAX_POOL).at_least("zswap.max_pool_percent", Count::new(1));
    let is_used = gauge(MEM_ZSWAP).at_least("zswap's pool", Bytes::new(1));
    Trigger::on_host(LEVEL, all![is_used, is_set, full])
}

/// The most RAM that the pool may take.
fn limit() -> Reading<Bytes> {
    fact(ZSWAP_MAX_POOL).of_size(ram().times(0.01))
}

fn story<'a>(cx: &Evidence<'a>, incident: &Incident<'a>) -> Result<Outcome, Missing> {
    let stretch = &incident.stretch;
    let pool = cx.gauge(MEM_ZSWAP)?;
    let Some((most, at)) = pool.max_in(stretch) else {
        return clear!("zswap's pool was not measured");
    };
    if cx.facts.text(ZSWAP_ENABLED) == Some("N") {
        return clear!("zswap is switched off; its pool of {most} only empties");
    }
    let limit = limit().track(cx)?.at(at);
    let limit = limit.ok_or_else(|| Missing::fact(ZSWAP_MAX_POOL))?;
    let percent = cx.number(ZSWAP_MAX_POOL)?;
    let out = cx.mean_rate(PSWPOUT, stretch);
    let back = cx.mean_rate(PSWPIN, stretch);
    let much = |rate: Option<PerSecond<Pages>>| rate.is_some_and(|rate| rate >= TO_DEVICE);
    let passes = much(out) || much(back);
    let stalls = PressureWindow::during(cx, stretch);
    let beyond = match (out, back) {
        (Some(out), Some(back)) if passes => {
            format!(": {out} go past it to the swap device, {back} come from there")
        }
        _ => ", and takes no more pages".to_owned(),
    };
    let title = Title::from(format!(
        "zswap's pool is full ({most} of {limit}, {percent} % of RAM){beyond}."
    ))
    .then(stalls.sentence());
    let finding = RULE
        .found(Severity::warning_if(passes && stalls.any()), title)
        .graph("zswap's pool", &pool)
        .shows_from(
            MEM_ZSWAP,
            most,
            limit.share(FULL),
            cx.time(at),
            format!("the pool takes {most} of RAM"),
        )
        .counts_as("the pool")
        .and(|finding| data_in_pool(cx, finding, most, at))
        .with(out, |finding, out| {
            finding.shows(PSWPOUT, out, None, format!("{out} written to the swap device"))
        })
        .with(back, |finding, back| {
            finding.shows(PSWPIN, back, None, format!("{back} read from the swap device"))
        })
        .counts_if(passes, "traffic with the swap device")
        .and(|finding| traffic_of_pool(cx, finding, stretch))
        .shows_stalls(&stalls);
    Ok(remedy(percent, finding).affects(processes::largest(cx, at, 3)).sure_by_kinds(cx, "").into())
}

fn data_in_pool(cx: &Evidence<'_>, finding: Finding, most: Bytes, at: usize) -> Finding {
    finding.with(cx.level(MEM_ZSWAPPED, at), |finding, data| {
        let ratio = most
            .ratio_of(data)
            .map_or_else(String::new, |ratio| format!(", compressed to {ratio}"));
        finding.shows(MEM_ZSWAPPED, data, cx.time(at), format!("{data} is in it{ratio}"))
    })
}

fn traffic_of_pool(cx: &Evidence<'_>, finding: Finding, stretch: &Stretch) -> Finding {
    finding
        .shows_mean(cx, ZSWPOUT, stretch, |rate| format!("{rate} stored in the pool"))
        .shows_mean(cx, ZSWPIN, stretch, |rate| format!("{rate} taken out of the pool"))
        .shows_mean(cx, ZSWPWB, stretch, |rate| {
            format!("{rate} written back from the pool to the device")
        })
}

fn remedy(percent: u64, finding: Finding) -> Finding {
    let more = percent.saturating_mul(2).min(POOL_PERCENT_MAX);
    let finding = if more > percent {
        let what = format!(
            "Give the pool more of RAM ({more} % instead of {percent} %), if its data compresses \
             well."
        );
        finding.fix(Fix::file(what, ZSWAP_MAX_POOL, more, Some(percent)))
    } else {
        finding.fix(Fix::say("The pool is large already: use less anonymous memory, or add RAM."))
    };
    finding.fix(
        Fix::say(
            "Let the kernel write cold pages of the pool to the device (the shrinker, kernel 6.8 \
             or later): without it the oldest pages keep the fastest place.",
        )
        .inspect("grep -H . /sys/module/zswap/parameters/*"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::testing::{Case, amid_calm, changed, clear, found, not_evaluated, times};
    use timeline::signals::{MEM_TOTAL, PSI_MEMORY_FULL, PSI_MEMORY_SOME};

    /// A host of 1,000 MiB with a limit of 200 MiB and this much in the pool.
    fn pool(case: Case, mib: u64) -> Case {
        case.gauge(MEM_TOTAL, Bytes::from_mib(1000))
            .gauge(MEM_ZSWAP, Bytes::from_mib(mib))
            .gauge(MEM_ZSWAPPED, Bytes::from_mib(mib * 3))
            .fact(ZSWAP_MAX_POOL, "20")
            .fact(ZSWAP_ENABLED, "Y")
    }

    fn swapping(mib: u64, out: u64) -> Case {
        pool(Case::over(30), mib)
            .counter(PSWPOUT, out)
            .counter(PSWPIN, out)
            .counter(PSI_MEMORY_SOME, 300_000)
            .counter(PSI_MEMORY_FULL, 100_000)
    }

    #[test]
    fn a_full_pool_with_traffic_past_it_is_a_warning() {
        let finding = found(RULE, &swapping(195, 2_000));
        assert_eq!(finding.severity, Severity::Warning);
        assert_eq!(finding.confidence.word(), "confirmed");
        assert!(finding.title.contains("195 MiB of 200 MiB, 20 % of RAM"), "{}", finding.title);
        let pool = ["zswap.max_pool_percent=20 -> zswap.max_pool_percent=40"];
        assert_eq!(changed(&finding.fixes[0]), pool);
    }

    #[test]
    fn informational_without_traffic_and_in_a_single_sample() {
        assert_eq!(found(RULE, &swapping(195, 0)).severity, Severity::Info);
        assert_eq!(found(RULE, &pool(Case::once(), 190)).severity, Severity::Info);
    }

    #[test]
    fn clear_below_the_limit_and_where_it_is_off() {
        clear(RULE, &swapping(120, 2_000));
        clear(RULE, &swapping(195, 2_000).fact(ZSWAP_ENABLED, "N"));
        clear(RULE, &swapping(0, 2_000).fact(ZSWAP_MAX_POOL, "0"));
    }

    #[test]
    fn finds_30_s_within_an_hour() {
        let hour = |mib| {
            let levels = amid_calm(Bytes::from_mib(mib), Bytes::from_mib(20));
            pool(Case::over(3600), 0).gauge_steps(MEM_ZSWAP, &levels)
        };
        assert_eq!(times(&found(RULE, &hour(195))), [(1799, 1829)]);
        clear(RULE, &hour(150));
    }

    #[test]
    fn not_evaluated_without_zswap_or_its_limit() {
        assert_eq!(not_evaluated(RULE, &Case::over(30)).names, ["mem.zswap_pool"]);
        let case = Case::over(30)
            .gauge(MEM_TOTAL, Bytes::from_mib(1000))
            .gauge(MEM_ZSWAP, Bytes::from_mib(190));
        assert_eq!(not_evaluated(RULE, &case).names, ["zswap.max_pool_percent"]);
    }
}
