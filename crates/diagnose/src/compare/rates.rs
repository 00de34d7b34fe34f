//! Rates on each side (refaults, swap, reclaim, stalls, reads and writes): means over the watched time, and whether
//! the intervals differ by more than they do within a side.

use timeline::{
    Counter, Signal, Track,
    signals::{
        ALLOCSTALL, COMPACT_STALL, CPU_IOWAIT, CPU_STEAL, CPU_SYSTEM, CPU_USER, NR_DIRTIED,
        NUMA_MISS, PGFAULT, PGMAJFAULT, PGPGIN, PGPGOUT, PGSCAN_DIRECT, PGSCAN_KSWAPD,
        PGSTEAL_DIRECT, PGSTEAL_KSWAPD, PSI_CPU_SOME, PSI_IO_FULL, PSI_IO_SOME, PSI_MEMORY_FULL,
        PSI_MEMORY_SOME, PSWPIN, PSWPOUT, REFAULT_ANON, REFAULT_FILE, THP_FAULT_ALLOC,
        THP_FAULT_FALLBACK, ZONE_RECLAIM_FAILED, ZONE_RECLAIM_SUCCESS,
    },
};
use units::{Pages, PerSecond, Quantity, Ratio, Ticks};

use super::figure::Measure;
use super::spread::{Contrast, Significance, Spread, contrast};
use crate::evidence::{Evidence, Missing};

/// A rate on both sides.
#[derive(Debug, Clone, PartialEq)]
pub struct RateChange {
    /// Name of its main signal in the catalogue.
    pub name: &'static str,
    /// Its label.
    pub label: &'static str,
    /// Its unit.
    pub measure: Measure,
    /// Whether a higher rate is worse for the work: true of stalls, not of faults.
    pub is_cost: bool,
    /// Its values before; `None` where the source lacks them.
    pub before: Option<Spread>,
    /// Its values after.
    pub after: Option<Spread>,
    /// The comparison of the two; `None` where one is missing.
    pub contrast: Option<Contrast>,
    /// The size of its change, weighted by its consistency: the list is ordered by it.
    pub effect: f64,
}

impl RateChange {
    /// Whether the difference is more than noise, and large enough to matter.
    pub fn is_clear(&self) -> bool {
        self.contrast.is_some_and(|contrast| contrast.significance == Significance::Clear)
    }

    /// The means, where both sides have the rate.
    pub fn means(&self) -> Option<(f64, f64)> {
        Some((self.before.as_ref()?.mean, self.after.as_ref()?.mean))
    }

    /// How it changed, in words; `None` where one side does not have it.
    pub fn change(&self) -> Option<String> {
        let (before, after) = self.means()?;
        Some(super::figure::ratio(before, after))
    }
}

/// Reads a rate from a source: its values, and their mean over the watched time.
type Read = fn(&Evidence<'_>) -> Result<Option<Spread>, Missing>;

struct Spec {
    name: &'static str,
    label: &'static str,
    measure: Measure,
    is_cost: bool,
    /// Rates below this on both sides do not matter, and their ratios mean nothing. Engineering choices, each a tenth
    /// or less of the threshold that rules use.
    floor: f64,
    read: Read,
}

const MIB: f64 = 1_048_576.0;

const fn cost(
    signal: &'static str,
    label: &'static str,
    measure: Measure,
    floor: f64,
    read: Read,
) -> Spec {
    Spec { name: signal, label, measure, is_cost: true, floor, read }
}

const fn work(
    signal: &'static str,
    label: &'static str,
    measure: Measure,
    floor: f64,
    read: Read,
) -> Spec {
    Spec { is_cost: false, ..cost(signal, label, measure, floor, read) }
}

#[rustfmt::skip]
fn specs() -> [Spec; 28] {
    use Measure::{Events, Share, Throughput};
    [
        cost(PSI_MEMORY_SOME.def().name, "time with tasks waiting for memory", Share, 0.01, |cx| share(cx, PSI_MEMORY_SOME)),
        cost(PSI_MEMORY_FULL.def().name, "time with all waiting for memory", Share, 0.01, |cx| share(cx, PSI_MEMORY_FULL)),
        cost(PSI_IO_SOME.def().name, "time with tasks waiting for disks", Share, 0.02, |cx| share(cx, PSI_IO_SOME)),
        cost(PSI_IO_FULL.def().name, "time with all waiting for disks", Share, 0.02, |cx| share(cx, PSI_IO_FULL)),
        work(PSI_CPU_SOME.def().name, "time with tasks waiting for a CPU", Share, 0.02, |cx| share(cx, PSI_CPU_SOME)),
        cost(PSWPIN.def().name, "swapped in", Throughput, 0.1 * MIB, |cx| pages(cx, cx.swapped_in()?)),
        cost(PSWPOUT.def().name, "swapped out", Throughput, 0.1 * MIB, |cx| pages(cx, cx.swapped_out()?)),
        cost(REFAULT_ANON.def().name, "swapped pages needed again", Throughput, 0.1 * MIB, |cx| pages(cx, cx.refaults_anon()?)),
        cost(REFAULT_FILE.def().name, "file pages read again", Throughput, 0.1 * MIB, |cx| pages(cx, cx.refaults_file()?)),
        cost(ALLOCSTALL.def().name, "allocations that had to reclaim", Events, 1.0, |cx| spread(&cx.allocation_stalls()?)),
        cost(PGSCAN_DIRECT.def().name, "scanned by tasks themselves", Throughput, MIB, |cx| pages(cx, cx.rate(PGSCAN_DIRECT)?)),
        cost(PGSTEAL_DIRECT.def().name, "reclaimed by tasks themselves", Throughput, MIB, |cx| pages(cx, cx.rate(PGSTEAL_DIRECT)?)),
        work(PGSCAN_KSWAPD.def().name, "scanned in the background", Throughput, MIB, |cx| pages(cx, cx.rate(PGSCAN_KSWAPD)?)),
        work(PGSTEAL_KSWAPD.def().name, "reclaimed in the background", Throughput, MIB, |cx| pages(cx, cx.rate(PGSTEAL_KSWAPD)?)),
        cost(ZONE_RECLAIM_FAILED.def().name, "node reclaims", Events, 1.0, node_reclaims),
        cost(COMPACT_STALL.def().name, "allocations that had to compact", Events, 1.0, |cx| spread(&cx.rate(COMPACT_STALL)?)),
        cost(PGMAJFAULT.def().name, "page faults that waited for a disk", Events, 5.0, |cx| spread(&cx.rate(PGMAJFAULT)?)),
        work(PGFAULT.def().name, "page faults", Events, 500.0, |cx| spread(&cx.rate(PGFAULT)?)),
        work(THP_FAULT_ALLOC.def().name, "huge pages given at faults", Events, 0.5, |cx| spread(&cx.rate(THP_FAULT_ALLOC)?)),
        work(THP_FAULT_FALLBACK.def().name, "huge pages refused at faults", Events, 0.5, |cx| spread(&cx.rate(THP_FAULT_FALLBACK)?)),
        work(PGPGIN.def().name, "read from disks", Throughput, MIB, |cx| spread(&cx.rate(PGPGIN)?)),
        work(PGPGOUT.def().name, "written to disks", Throughput, MIB, |cx| spread(&cx.rate(PGPGOUT)?)),
        work(NR_DIRTIED.def().name, "made dirty", Throughput, MIB, |cx| pages(cx, cx.rate(NR_DIRTIED)?)),
        work(NUMA_MISS.def().name, "allocated on another node", Throughput, MIB, |cx| pages(cx, cx.rate(NUMA_MISS)?)),
        work(CPU_USER.def().name, "CPU time of programs", Share, 0.05, |cx| cpus(cx, CPU_USER)),
        work(CPU_SYSTEM.def().name, "CPU time in the kernel", Share, 0.05, |cx| cpus(cx, CPU_SYSTEM)),
        work(CPU_IOWAIT.def().name, "CPUs idle, waiting for disks", Share, 0.05, |cx| cpus(cx, CPU_IOWAIT)),
        work(CPU_STEAL.def().name, "CPU time that other guests took", Share, 0.05, |cx| cpus(cx, CPU_STEAL)),
    ]
}

fn spread<Q: Quantity>(track: &Track<Q>) -> Result<Option<Spread>, Missing> {
    let mean = track.whole().and_then(|whole| track.mean_in(&whole));
    let values = track.values().iter().flatten().copied();
    Ok(Spread::from_values(values, mean.map(Quantity::as_f64)))
}

fn pages(cx: &Evidence<'_>, track: Track<PerSecond<Pages>>) -> Result<Option<Spread>, Missing> {
    spread(&track.to_bytes(cx.page_size()?))
}

fn share(
    cx: &Evidence<'_>,
    signal: Signal<Counter<units::Micros>>,
) -> Result<Option<Spread>, Missing> {
    spread(&cx.stall(signal)?)
}

/// CPU time as a share of all CPUs.
fn cpus(cx: &Evidence<'_>, signal: Signal<Counter<Ticks>>) -> Result<Option<Spread>, Missing> {
    let Some(cpus) = cx.facts.cpus.filter(|cpus| *cpus > 0) else {
        return Ok(None);
    };
    let busy = cx.rate(signal)?.to_cpus(cx.facts.user_hz());
    spread(&busy.scaled(1.0 / f64::from(cpus)))
}

fn node_reclaims(cx: &Evidence<'_>) -> Result<Option<Spread>, Missing> {
    let failed = cx.rate(ZONE_RECLAIM_FAILED)?;
    match cx.rate(ZONE_RECLAIM_SUCCESS) {
        Ok(succeeded) => spread(&failed.plus(&succeeded)),
        Err(_) => spread(&failed),
    }
}

/// All rates that either side has, the largest effect first.
pub(super) fn compare(before: &Evidence<'_>, after: &Evidence<'_>) -> Vec<RateChange> {
    let mut rates: Vec<RateChange> = specs()
        .iter()
        .map(|spec| spec.compare(before, after))
        .filter(|rate| rate.before.is_some() || rate.after.is_some())
        .collect();
    rates.sort_by(|a, b| b.effect.total_cmp(&a.effect));
    rates
}

impl Spec {
    fn compare(&self, before: &Evidence<'_>, after: &Evidence<'_>) -> RateChange {
        let read = |cx| (self.read)(cx).ok().flatten();
        let (before, after) = (read(before), read(after));
        let contrast =
            before.as_ref().zip(after.as_ref()).map(|(before, after)| self.contrast(before, after));
        let effect = match (&before, &after, contrast) {
            (Some(before), Some(after), Some(it)) => {
                let factor = ((after.mean + self.floor) / (before.mean + self.floor)).ln();
                factor.abs() * it.lead.abs()
            }
            _ => 0.0,
        };
        RateChange {
            name: self.name,
            label: self.label,
            measure: self.measure,
            is_cost: self.is_cost,
            before,
            after,
            contrast,
            effect,
        }
    }

    /// Where most intervals show one direction and the sum of all shows the other (a few huge bursts), nothing is
    /// clear.
    fn contrast(&self, before: &Spread, after: &Spread) -> Contrast {
        /// A change below this share of the larger mean is too small to act on.
        const CHANGE_MIN: Ratio = Ratio::from_percent(10.0);
        let mut it = contrast(before, after);
        let change = after.mean - before.mean;
        let most = before.mean.max(after.mean);
        let is_small = most < self.floor || change.abs() < most * CHANGE_MIN.get();
        let disagrees = change.signum() != it.lead.signum();
        if it.significance == Significance::Clear && (is_small || disagrees) {
            it.significance = Significance::Noise;
        }
        // A rate below the floor on both sides is known to be the same, however short the recording.
        if it.significance == Significance::TooFew && most < self.floor {
            it.significance = Significance::Noise;
        }
        it
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::testing::Case;
    use units::Bytes;

    fn of(before: &Case, after: &Case, name: &str) -> Option<RateChange> {
        before.with(|before| {
            after.with(|after| {
                let rates = compare(before, after);
                rates.into_iter().find(|rate| rate.name == name)
            })
        })
    }

    const READS: &str = "vm.pgpgin";

    fn reading(mib: &[u64]) -> Case {
        let bytes: Vec<u64> = mib.iter().map(|n| n << 20).collect();
        Case::over(mib.len() as u64).counter_steps(PGPGIN, &bytes)
    }

    #[test]
    fn a_rate_that_rose_is_clear_and_says_by_how_much() {
        let quiet = reading(&[10, 12, 9, 11, 10, 8, 13, 10]);
        let busy = reading(&[200, 210, 190, 205, 220, 180, 200, 195]);
        let rate = of(&quiet, &busy, READS).unwrap();
        assert!(rate.is_clear());
        assert_eq!(rate.change().as_deref(), Some("× 19"));
    }

    #[test]
    fn noise_is_no_change() {
        let one = reading(&[10, 80, 9, 11, 50, 8, 13, 10]);
        let other = reading(&[60, 12, 9, 14, 10, 70, 8, 20]);
        assert!(!of(&one, &other, READS).unwrap().is_clear());
    }

    #[test]
    fn one_huge_burst_is_no_change() {
        let steady = reading(&[10, 11, 10, 12, 10, 9, 10, 11, 10, 12]);
        let burst = reading(&[10, 11, 10, 12, 10, 9, 10, 11, 10, 900]);
        assert!(!of(&steady, &burst, READS).unwrap().is_clear());
    }

    #[test]
    fn a_rate_that_one_side_lacks_is_not_a_change_to_zero() {
        let with = reading(&[50; 10]);
        let without = Case::over(10).gauge(timeline::signals::MEM_TOTAL, Bytes::from_mib(1));
        let rate = of(&with, &without, READS).unwrap();
        assert!(rate.after.is_none() && rate.contrast.is_none() && rate.change().is_none());
    }

    #[test]
    fn short_looks_are_too_few_unless_nothing_moved_at_all() {
        let significance = |rate: RateChange| rate.contrast.unwrap().significance;
        let rate = of(&reading(&[10; 3]), &reading(&[90; 3]), READS).unwrap();
        assert_eq!(significance(rate), Significance::TooFew);
        let rate = of(&reading(&[0; 3]), &reading(&[0; 3]), READS).unwrap();
        assert_eq!(significance(rate), Significance::Noise);
    }
}
