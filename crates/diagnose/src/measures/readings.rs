//! Quantities that no kernel file reports and that several triggers and stories need: each is defined here, once.

use timeline::signals::{
    ALLOCSTALL, CGROUP_ANON, CGROUP_SWAP_CURRENT, MEM_ACTIVE, MEM_ANON, MEM_AVAILABLE, MEM_BUFFERS,
    MEM_CACHED, MEM_FREE, MEM_INACTIVE, MEM_SHMEM, MEM_SLAB, MEM_TOTAL, PROC_RSS, PROC_RSS_ANON,
    PROC_SWAP, PSI_MEMORY_SOME, PSI_MEMORY_SOME_AVG60, PSWPIN, PSWPOUT, REFAULT, REFAULT_FILE,
    SWAP_FREE, SWAP_TOTAL, SWAP_USED, SWPIN_ZERO, SWPOUT_ZERO, ZSWPIN, ZSWPOUT,
};
use timeline::{Gauge, Signal, Track};
use units::{Bytes, BytesPerSecond, Micros, Pages, PerSecond, Quantity as _, Ratio};

use crate::evidence::{Evidence, Missing};
use crate::measures::available::available_at_most;
use crate::measures::floor::Floor;
use crate::measures::pressure::PressureWindow;
use crate::trigger::{Predicate, Reading, any, computed, gauge, ram, rate, stall};

/// What a process holds that only swap can take, in RAM and in swap; all that is resident where that is not divided.
pub(crate) fn held_by_process() -> Reading<Bytes> {
    gauge(PROC_RSS_ANON).plus([gauge(PROC_SWAP)]).or(gauge(PROC_RSS).bytes())
}

/// The anonymous memory of a cgroup, in RAM and in swap.
pub(crate) fn held_by_cgroup() -> Reading<Bytes> {
    gauge(CGROUP_ANON).plus([gauge(CGROUP_SWAP_CURRENT)])
}

/// Threshold of file refaults: 256 pages of 4 KiB a second. Labelled captures, November 2026: 30 MiB/s and more while
/// thrashing, one second of 0.4 MiB/s on a calm host. A slow disk delivers no more than this if every page needs a
/// seek.
pub(crate) const READ_AGAIN: BytesPerSecond = BytesPerSecond::from_mib(1.0);

/// Threshold of anonymous refaults. The same captures: 2,500 pages/s while swap thrashes, against 200 in one second of
/// a host with a floor set too high.
pub(crate) const ANON_REFAULTS_MIN: PerSecond<Pages> = PerSecond::new(200.0);

/// Swap-out of 0.4 MiB/s; less is a few cold pages: an engineering choice.
pub(crate) const SWAP_OUT_NOTABLE: PerSecond<Pages> = PerSecond::new(100.0);

/// A host with this much memory available all the time does not swap for lack of memory: an engineering choice;
/// thrashing hosts have below 10 % (labelled captures, November 2026).
pub(crate) const AVAILABLE_ROOMY_SHARE: Ratio = Ratio::from_percent(25.0);

/// At this vm.swappiness and below the kernel drops file pages as long as it can (mm/vmscan.c, get_scan_count).
pub(crate) const LOW_SWAPPINESS: u64 = 10;

/// Users notice waiting for a tenth of the time: an engineering choice.
pub(crate) const STALL_NOTICED_SHARE: Ratio = Ratio::from_percent(10.0);

/// From this share of waiting for memory on, reclaim costs something: an engineering choice. Healthy hosts stay below
/// 1 %. Labelled captures: 1 % where a reader reclaims clean cache at no cost, 15 % and more where it does harm.
pub(crate) const RECLAIM_COSTS: Ratio = Ratio::from_percent(2.0);

/// With this share of RAM available or less the host is near a shortage: an engineering choice, used only together with
/// other evidence. Calm labelled captures have 15 % and more (November 2026).
pub(crate) const AVAILABLE_LOW_SHARE: Ratio = Ratio::from_percent(10.0);

/// RAM, or where the source lacks MemTotal, a lower bound: the largest sum of parts that it shows. It is a lower bound
/// only, so it is known where little of it is available; anything else it cannot prove.
pub(crate) fn ram_at_least() -> Reading<Bytes> {
    let parts = computed("parts of RAM", |cx| {
        let of = |parts: &[Signal<Gauge<Bytes>>]| {
            let known = parts.iter().filter_map(|part| cx.timeline.gauge(*part));
            known.reduce(|sum, part| sum.plus(&part))
        };
        let sums = RAM_PARTS.iter().filter_map(|parts| of(parts)?.max());
        let most = sums.map(|(sum, _)| sum).max().ok_or_else(|| cx.lacks_signal(MEM_TOTAL.id()))?;
        let (available, _) = available_at_most(cx)?;
        let is_little = |(least, _): (Bytes, _)| least <= most.share(AVAILABLE_LOW_SHARE);
        if !available.min().is_some_and(is_little) {
            return Err(cx.lacks_signal(MEM_TOTAL.id()));
        }
        Ok(cx.timeline.constant(most).cast())
    });
    ram().or(parts).named("known RAM")
}

/// Parts of RAM that do not overlap; each list by itself.
const RAM_PARTS: [&[Signal<Gauge<Bytes>>]; 3] = [
    &[MEM_FREE, MEM_CACHED, MEM_BUFFERS, MEM_ANON, MEM_SLAB],
    &[MEM_FREE, MEM_ACTIVE, MEM_INACTIVE, MEM_SLAB],
    &[MEM_AVAILABLE],
];

/// Page cache that can be dropped: Cached − Shmem + Buffers.
pub(crate) fn page_cache() -> Reading<Bytes> {
    gauge(MEM_CACHED).minus(gauge(MEM_SHMEM)).plus([gauge(MEM_BUFFERS)])
}

/// The level of free memory under load: the floor's upper edge from the zones' watermarks, or predicted for a host of
/// this size.
pub(crate) fn floor() -> Reading<Bytes> {
    computed("floor", |cx| match cx.floor() {
        Ok(floor) => Ok(floor.high.cast()),
        Err(_) => Ok(cx.timeline.constant(Floor::predicted(cx.ram()?).1).cast()),
    })
}

/// Memory that only swap can take: anonymous, shared and tmpfs.
pub(crate) fn swappable() -> Reading<Bytes> {
    gauge(MEM_ANON).plus([gauge(MEM_SHMEM)])
}

/// Holds where tasks wait for memory: memory stalls (of the last minute if there is only one sample), or allocations
/// that reclaim memory themselves.
pub(crate) fn memory_waits() -> Predicate {
    let now = stall(PSI_MEMORY_SOME).at_least("memory stalls", PressureWindow::MEMORY);
    let of_a_second = Micros::from_f64(PressureWindow::MEMORY.get() * 1e6);
    let average = gauge(PSI_MEMORY_SOME_AVG60).at_least("memory stalls of a minute", of_a_second);
    any![
        now.or_without(average),
        rate(ALLOCSTALL).at_least("allocation stalls", PressureWindow::ALLOCATION_STALLS),
    ]
}

/// Used swap as the source prints it (the finer figure if `free -h` rounds), or SwapTotal − SwapFree.
pub(crate) fn swap_used() -> Reading<Bytes> {
    gauge(SWAP_USED).or(gauge(SWAP_TOTAL).minus(gauge(SWAP_FREE)))
}

/// Pages swapped in from anywhere: devices, the zswap pool, zero pages.
pub(crate) fn swapped_in() -> Reading<PerSecond<Pages>> {
    rate(PSWPIN).plus([rate(ZSWPIN), rate(SWPIN_ZERO)]).named("swapped in")
}

/// Pages swapped out to anywhere: devices, the zswap pool, zero pages.
pub(crate) fn swapped_out() -> Reading<PerSecond<Pages>> {
    rate(PSWPOUT).plus([rate(ZSWPOUT), rate(SWPOUT_ZERO)]).named("swapped out")
}

/// File pages read again after eviction. Kernels before 5.9 have one counter, of file pages only: the shadow of an
/// evicted page is stored for page cache alone (mm/vmscan.c, __remove_mapping, 5.8).
pub(crate) fn refaults_file() -> Reading<PerSecond<Pages>> {
    rate(REFAULT_FILE).or(rate(REFAULT)).named("file pages read again")
}

// The same as tracks, for stories.
impl Evidence<'_> {
    /// Returns page cache that can be dropped: Cached − Shmem + Buffers.
    pub fn page_cache(&self) -> Result<Track<Bytes>, Missing> {
        page_cache().track(self)
    }

    /// Returns used swap as the source prints it (the finer figure if `free -h` rounds), or SwapTotal − SwapFree.
    pub fn swap_used(&self) -> Result<Track<Bytes>, Missing> {
        swap_used().track(self)
    }

    /// Returns pages swapped in from anywhere: devices, the zswap pool, zero pages.
    pub fn swapped_in(&self) -> Result<Track<PerSecond<Pages>>, Missing> {
        swapped_in().track(self)
    }

    /// Returns pages swapped out to anywhere: devices, the zswap pool, zero pages.
    pub fn swapped_out(&self) -> Result<Track<PerSecond<Pages>>, Missing> {
        swapped_out().track(self)
    }

    /// Returns file pages read again after eviction.
    pub fn refaults_file(&self) -> Result<Track<PerSecond<Pages>>, Missing> {
        refaults_file().track(self)
    }
}
