//! Why a report was written: one of a closed list of causes.

use timeline::kernel_report::{Constraint, GroupReport, ReportKind};
use timeline::signals::{
    MEM_ACTIVE_ANON, MEM_ACTIVE_FILE, MEM_ANON, MEM_BUFFERS, MEM_CACHED, MEM_FREE, MEM_HUGETLB,
    MEM_INACTIVE_ANON, MEM_INACTIVE_FILE, MEM_KERNEL_STACK, MEM_PAGE_TABLES, MEM_SHMEM,
    MEM_SLAB_RECLAIMABLE, MEM_SLAB_UNRECLAIMABLE, MEM_SWAP_CACHED, MEM_TOTAL, MEM_UNEVICTABLE,
    SWAP_FREE, SWAP_TOTAL,
};
use timeline::{Gauge, KernelReport, Row, Signal};
use units::{Bytes, Ratio};

use super::request::{Asked, ZoneType};
use super::watermarks::{Checked, Hurdle};

/// Why the kernel wrote the report.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum OomCause {
    /// The kill was requested by hand (SysRq f).
    ByHand,
    /// A cgroup hit its limit.
    GroupLimit(LimitHit),
    /// The request was confined to nodes that are full.
    Confined(Constraint),
    /// The request needs a low zone, which is exhausted while higher zones have room.
    LowZone,
    /// Enough memory is free, but not in one block.
    NoBlock,
    /// The free memory belongs to CMA.
    CmaOnly,
    /// A request that could not sleep found the reserve used up; no process is killed for that.
    AtomicReserve,
    /// RAM is used up.
    UsedUp {
        /// What swap could still take.
        swap: SwapState,
        /// What fills RAM.
        by: Filler,
    },
    /// The report does not show the cause; with the name of what is missing.
    Unknown(&'static str),
}

/// Which limit of a cgroup was hit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LimitHit {
    /// The memory limit.
    Memory,
    /// The limit of memory and swap together (cgroup v1).
    MemoryAndSwap,
    /// The kernel memory limit (cgroup v1).
    Kernel,
}

/// How much more swap could take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SwapState {
    /// There is no swap.
    None,
    /// It is full, or nearly so.
    Full,
    /// It had room.
    Room,
    /// The report does not show it.
    Unknown,
}

/// What fills RAM.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Filler {
    /// Anonymous memory of programs.
    Programs,
    /// Slab that cannot be reclaimed.
    Slab(Bytes),
    PageTables(Bytes),
    /// Shared memory and tmpfs.
    Shared(Bytes),
    /// The pool of huge pages.
    HugePages(Bytes),
    /// Memory that may not leave RAM (mlock).
    Locked(Bytes),
    /// Page cache, or names and inodes of files, that could not be dropped.
    Files(Bytes),
    /// Memory that no counter of the kernel shows.
    Unaccounted(Bytes),
    /// The report does not show it.
    Unknown,
}

impl OomCause {
    /// Whether the host itself had no memory left.
    pub(crate) fn is_shortage(&self) -> bool {
        matches!(self, Self::UsedUp { .. })
    }

    /// Whether the cause does not concern the whole host: a kill by hand, a cgroup's limit, a few nodes of many.
    pub(crate) fn is_not_the_hosts(&self) -> bool {
        matches!(self, Self::ByHand | Self::GroupLimit(_) | Self::Confined(_))
    }
}

impl Filler {
    /// The rule about this part of RAM.
    fn rule(&self) -> Option<&'static str> {
        match self {
            Self::Slab(_) => Some("slab-leak"),
            Self::PageTables(_) => Some("page-tables-large"),
            Self::Shared(_) => Some("shmem-growth"),
            Self::HugePages(_) => Some("hugetlb-unused"),
            Self::Unaccounted(_) => Some("unaccounted-memory"),
            Self::Locked(_) | Self::Files(_) | Self::Programs | Self::Unknown => None,
        }
    }

    /// The size and the description; `None` for programs and where unknown.
    pub(crate) fn words(&self) -> Option<(Bytes, &'static str)> {
        match *self {
            Self::Slab(held) => Some((held, "kernel objects that cannot be dropped (slab)")),
            Self::PageTables(held) => Some((held, "page tables")),
            Self::Shared(held) => Some((held, "shared memory and tmpfs")),
            Self::HugePages(held) => Some((held, "the pool of huge pages")),
            Self::Locked(held) => Some((held, "locked in RAM (mlock)")),
            Self::Files(held) => Some((held, "page cache that could not be dropped in time")),
            Self::Unaccounted(held) => Some((held, "memory that no counter shows")),
            Self::Programs | Self::Unknown => None,
        }
    }
}

/// Finds the cause; `zones` as [`replay`](super::watermarks::replay) returns them.
pub(super) fn of(report: &KernelReport, asked: Option<&Asked>, zones: &[Checked<'_>]) -> OomCause {
    if report.is_by_hand() {
        return OomCause::ByHand;
    }
    if is_at_a_limit(report) {
        return OomCause::GroupLimit(report.group.as_ref().map_or(LimitHit::Memory, limit));
    }
    if let Some(by @ (Constraint::Cpuset | Constraint::MemoryPolicy)) = report.constraint {
        return OomCause::Confined(by);
    }
    if let Some(cause) = by_zones(report, zones) {
        return cause;
    }
    match report.kind {
        ReportKind::AllocationFailure => failure(report, asked, zones),
        ReportKind::OomKill if !report.shows_scope() => {
            OomCause::Unknown("whether the host or a cgroup ran out of memory")
        }
        ReportKind::OomKill
            if report.host.get(MEM_TOTAL).is_none()
                && zones.is_empty()
                && report.slabs.is_empty()
                && !is_swap_used_up(report) =>
        {
            OomCause::Unknown("the part of the report that shows memory (Mem-Info)")
        }
        ReportKind::OomKill if zones.iter().any(is_roomy) => OomCause::Unknown(ROOM_BY_THEN),
        ReportKind::OomKill if asked.is_none() && has_much_free(report) => {
            OomCause::Unknown(NO_REQUEST)
        }
        ReportKind::OomKill => used_up(report),
    }
}

/// Whether the lines about swap show that it could take nothing more.
fn is_swap_used_up(report: &KernelReport) -> bool {
    matches!(host_swap(&report.host), SwapState::Full)
}

const ROOM_BY_THEN: &str = "why: by the time it was written a zone could have served the request";

const NO_REQUEST: &str = "what was asked for (order and gfp mask)";

/// Whether a tenth of RAM was free and a zone was far above its watermarks. What lacked then depends on the request.
fn has_much_free(report: &KernelReport) -> bool {
    let is_far_above = report.zones.iter().any(|zone| {
        let reserve = zone.reserve.iter().max().copied().unwrap_or_default();
        zone.free > zone.high + zone.high + reserve
    });
    is_far_above && free_share(&report.host).is_some_and(|share| share >= MUCH_FREE)
}

/// Where memory is used up, far less than this is free, unless watermarks are set high.
pub(crate) const MUCH_FREE: Ratio = Ratio::from_percent(10.0);

/// The share of RAM that was free.
pub(crate) fn free_share(host: &Row) -> Option<Ratio> {
    host.get(MEM_FREE)?.ratio_of(host.get(MEM_TOTAL)?)
}

/// Whether a zone could serve the request with twice its high watermark to spare, which no shortage leaves.
fn is_roomy(zone: &Checked<'_>) -> bool {
    zone.hurdle == Hurdle::Nothing && zone.usable > zone.zone.high + zone.zone.high + zone.reserve
}

/// Whether a cgroup was at its limit: by its lines, or where these are cut off, by the call trace.
pub(crate) fn is_at_a_limit(report: &KernelReport) -> bool {
    const CHARGES: [&str; 4] = [
        "mem_cgroup_out_of_memory",
        "mem_cgroup_oom",
        "mem_cgroup_oom_synchronize",
        "mem_cgroup_handle_oom",
    ];
    report.group.is_some()
        || report.constraint == Some(Constraint::ControlGroup)
        || report.trace.iter().any(|f| CHARGES.contains(&f.as_str()))
}

/// Which of the cgroup's limits is reached.
fn limit(group: &GroupReport) -> LimitHit {
    let full = |limit: Option<timeline::kernel_report::GroupLimit>| {
        limit.is_some_and(|limit| limit.is_full())
    };
    if full(group.memory) {
        LimitHit::Memory
    } else if full(group.memory_and_swap) {
        LimitHit::MemoryAndSwap
    } else if full(group.kernel) {
        LimitHit::Kernel
    } else {
        LimitHit::Memory
    }
}

/// The cause where memory is free, but this request cannot have it; `None` where no zone has enough.
fn by_zones(report: &KernelReport, zones: &[Checked<'_>]) -> Option<OomCause> {
    let eligible = || zones.iter().filter(|zone| zone.is_eligible());
    if eligible().next().is_none() {
        // A host may lack the zone that a device needs.
        return has_room_above(zones).then_some(OomCause::LowZone);
    }
    let none_has_enough = eligible()
        .all(|z| matches!(z.hurdle, Hurdle::BelowWatermark | Hurdle::Reserved | Hurdle::CmaOnly));
    if none_has_enough && has_room_above(zones) {
        return Some(OomCause::LowZone);
    }
    // Free CMA memory that alone would keep a zone above its high watermark.
    let cma = |z: &Checked<'_>| z.hurdle == Hurdle::CmaOnly && z.zone.free >= z.zone.high;
    if none_has_enough && eligible().any(cma) {
        return Some(OomCause::CmaOnly);
    }
    let in_pieces = |z: &Checked<'_>| {
        z.hurdle == Hurdle::NoBlock && (z.usable >= z.zone.high + z.reserve || can_reclaim(report))
    };
    let could_serve = eligible().any(|z| z.hurdle == Hurdle::Nothing);
    (!could_serve && eligible().any(in_pieces)).then_some(OomCause::NoBlock)
}

/// Whether a zone above those that the request may use has room.
fn has_room_above(zones: &[Checked<'_>]) -> bool {
    let best = zones
        .iter()
        .filter(|z| z.is_eligible())
        .filter_map(|z| ZoneType::named(&z.zone.name))
        .max();
    zones.iter().any(|z| {
        z.hurdle == Hurdle::TooHigh
            && ZoneType::named(&z.zone.name) > best
            && z.room() > Bytes::ZERO
    })
}

/// Whether reclaim could have turned page cache into free memory, so that memory itself was not lacking.
fn can_reclaim(report: &KernelReport) -> bool {
    const TENTH: Ratio = Ratio::from_percent(10.0);
    let Some(ram) = report.host.get(MEM_TOTAL) else {
        return false;
    };
    file(&report.host).is_some_and(|file| file >= ram.share(TENTH))
}

/// The cause of a failed allocation without a kill: the request could not sleep, or did not justify a kill.
fn failure(report: &KernelReport, asked: Option<&Asked>, zones: &[Checked<'_>]) -> OomCause {
    // Only a request that may reclaim waits, so nothing could be reclaimed.
    if report.waited.is_some() && zones.is_empty() {
        return used_up(report);
    }
    let Some(asked) = asked else {
        return OomCause::Unknown(NO_REQUEST);
    };
    let low = |z: &Checked<'_>| z.hurdle != Hurdle::Nothing;
    let is_known_low = zones.iter().filter(|z| z.is_eligible()).all(low);
    match (asked.is_atomic(), asked.order, zones.is_empty()) {
        (true, 0, _) | (true, 1..=2, true) => OomCause::AtomicReserve,
        (true, _, false) if is_known_low => OomCause::AtomicReserve,
        // One page fails only where no page could be freed.
        (false, 0, true) => used_up(report),
        // Nothing shows a shortage, and a larger block is what most likely lacked.
        (_, _, true) => OomCause::NoBlock,
        (false, ..) if is_known_low => used_up(report),
        // By their sizes zones had enough, and which blocks were free is not shown.
        (_, 1.., _) if zones.iter().all(|z| z.zone.blocks.is_empty()) => OomCause::NoBlock,
        _ => OomCause::Unknown(ROOM_BY_THEN),
    }
}

fn used_up(report: &KernelReport) -> OomCause {
    OomCause::UsedUp {
        swap: host_swap(&report.host),
        by: listed_slab(report).unwrap_or_else(|| filler(&report.host)),
    }
}

/// What the list of unreclaimable slab caches shows where RAM is unknown. The kernel prints it only where they are larger
/// than all pages of programs and files (mm/oom_kill.c, should_dump_unreclaim_slab); others, such as huge pages, may be
/// larger still.
fn listed_slab(report: &KernelReport) -> Option<Filler> {
    let listed: Bytes = report.slabs.iter().map(|cache| cache.total).sum();
    let is_large = listed >= LISTED_MIN && report.host.get(MEM_TOTAL).is_none();
    is_large.then_some(Filler::Slab(listed))
}

/// With less than this, hosts of today have lost their memory to something else: an engineering choice.
pub(crate) const LISTED_MIN: Bytes = Bytes::from_gib(1);

/// How much more swap could take.
fn host_swap(host: &Row) -> SwapState {
    const NEARLY: Ratio = Ratio::from_percent(10.0);
    const AT_MOST: Bytes = Bytes::from_gib(1);
    match (host.get(SWAP_TOTAL), host.get(SWAP_FREE)) {
        (Some(Bytes::ZERO), _) => SwapState::None,
        (Some(total), Some(free)) if free <= total.share(NEARLY).min(AT_MOST) => SwapState::Full,
        (Some(_), Some(_)) => SwapState::Room,
        _ => SwapState::Unknown,
    }
}

/// A part of RAM from this share on is named as filling it.
const SHARE_MUCH: Ratio = Ratio::from_percent(25.0);

/// What fills RAM: the largest of the parts that are seldom large, if it takes a quarter; else files or programs.
fn filler(host: &Row) -> Filler {
    let Some(ram) = host.get(MEM_TOTAL).filter(|ram| *ram > Bytes::ZERO) else {
        return Filler::Unknown;
    };
    let largest = seldom(host, ram)
        .into_iter()
        .filter_map(|filler| Some((filler.words()?.0, filler)))
        .max_by_key(|(held, _)| *held);
    // Page cache is large on any host; it is named only where programs use less.
    let cache = file(host).unwrap_or_default() + host.get(MEM_SLAB_RECLAIMABLE).unwrap_or_default();
    match largest {
        Some((held, filler)) if held >= ram.share(SHARE_MUCH) => filler,
        _ if cache >= ram.share(SHARE_MUCH) && anon(host).is_none_or(|anon| anon <= cache) => {
            Filler::Files(cache)
        }
        _ if anon(host).is_some_and(|anon| anon >= ram.share(SHARE_MUCH)) => Filler::Programs,
        _ => Filler::Unknown,
    }
}

/// Other parts than programs and page cache that may fill RAM.
fn seldom(host: &Row, ram: Bytes) -> [Filler; 6] {
    let held = |signal: Signal<Gauge<Bytes>>| host.get(signal).unwrap_or_default();
    [
        Filler::Slab(held(MEM_SLAB_UNRECLAIMABLE)),
        Filler::PageTables(held(MEM_PAGE_TABLES)),
        Filler::Shared(held(MEM_SHMEM)),
        Filler::HugePages(held(MEM_HUGETLB)),
        Filler::Locked(held(MEM_UNEVICTABLE)),
        Filler::Unaccounted(unaccounted(host, ram).unwrap_or_default()),
    ]
}

/// Rules about parts of RAM that are present, but too small to have caused the shortage.
pub(crate) fn too_small(host: &Row) -> Vec<(&'static str, String)> {
    const WORTH_A_WORD: Ratio = Ratio::from_percent(3.0);
    let Some(ram) = host.get(MEM_TOTAL) else {
        return Vec::new();
    };
    seldom(host, ram)
        .iter()
        .filter_map(|filler| {
            let (held, what) = filler.words()?;
            let small = held >= ram.share(WORTH_A_WORD) && held < ram.share(SHARE_MUCH);
            small.then_some((filler.rule()?, format!("only {held} of {ram} were {what}")))
        })
        .collect()
}

/// Anonymous memory; the LRU lists that replace it where it is not printed include shared memory.
fn anon(host: &Row) -> Option<Bytes> {
    host.get(MEM_ANON).or_else(|| {
        let lists = host.get(MEM_ACTIVE_ANON)? + host.get(MEM_INACTIVE_ANON)?;
        Some(lists.saturating_sub(host.get(MEM_SHMEM).unwrap_or_default()))
    })
}

/// Page cache without shared memory.
fn file(host: &Row) -> Option<Bytes> {
    let lists = || Some(host.get(MEM_ACTIVE_FILE)? + host.get(MEM_INACTIVE_FILE)?);
    let cached = || {
        let buffers = host.get(MEM_BUFFERS).unwrap_or_default();
        Some((host.get(MEM_CACHED)? + buffers).saturating_sub(host.get(MEM_SHMEM)?))
    };
    lists().or_else(cached)
}

/// RAM less all that the report counts; `None` where it lacks a part that is usually large.
fn unaccounted(host: &Row, ram: Bytes) -> Option<Bytes> {
    let counted =
        [MEM_FREE, MEM_SLAB_UNRECLAIMABLE, MEM_SLAB_RECLAIMABLE, MEM_PAGE_TABLES, MEM_SHMEM];
    let known: Bytes = counted.iter().map(|signal| host.get(*signal)).sum::<Option<Bytes>>()?;
    let maybe: Bytes = [MEM_KERNEL_STACK, MEM_HUGETLB, MEM_UNEVICTABLE, MEM_SWAP_CACHED]
        .iter()
        .filter_map(|signal| host.get(*signal))
        .sum();
    Some(ram.saturating_sub(known + maybe + anon(host)? + file(host)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oom::Explained;
    use crate::oom::testing::{Report, kib};
    use units::Span;

    fn cause(report: &Report) -> OomCause {
        Explained::from_report(&report.0, 0, Span::ZERO).cause
    }

    #[test]
    fn ram_and_swap_used_up_by_programs() {
        let used_up = OomCause::UsedUp { swap: SwapState::Full, by: Filler::Programs };
        assert_eq!(cause(&Report::of_a_host()), used_up);
    }

    #[test]
    fn swap_with_room_and_no_swap_are_told_apart() {
        for (total, free, state) in [
            (0, 0, SwapState::None),
            (8_000_000, 84, SwapState::Full),
            (8_000_000, 4_000_000, SwapState::Room),
        ] {
            let report = Report::of_a_host().swap(total, free);
            assert!(
                matches!(cause(&report), OomCause::UsedUp { swap, .. } if swap == state),
                "{total} {free}"
            );
        }
    }

    #[test]
    fn kernel_memory_and_shared_memory_are_named_where_they_fill_ram() {
        let with = |signal, kib| {
            let report = Report::of_a_host().host(MEM_ANON, 1_000_000);
            cause(&report.host(signal, kib))
        };
        assert!(matches!(
            with(MEM_SLAB_UNRECLAIMABLE, 9_000_000),
            OomCause::UsedUp { by: Filler::Slab(held), .. } if held == kib(9_000_000)
        ));
        assert!(matches!(
            with(MEM_SHMEM, 9_000_000),
            OomCause::UsedUp { by: Filler::Shared(_), .. }
        ));
    }

    #[test]
    fn by_hand_and_by_a_limit_come_before_all_that_zones_tell() {
        assert_eq!(cause(&Report::of_a_host().asking(0xcc0, -1)), OomCause::ByHand);
        let limited = Report::of_a_group(102_400, 102_400);
        assert_eq!(cause(&limited), OomCause::GroupLimit(LimitHit::Memory));
    }

    #[test]
    fn a_call_trace_tells_a_limit_where_its_lines_are_cut_off() {
        let mut report = Report::of_a_host();
        report.0.trace = vec!["mem_cgroup_out_of_memory".to_owned()];
        assert_eq!(cause(&report), OomCause::GroupLimit(LimitHit::Memory));
    }

    #[test]
    fn a_zone_that_the_host_does_not_have_is_a_low_zone_too() {
        let report = Report::default()
            .asking(0xcc1, 0)
            .zone("DMA32", 200_000, 3000, 300_000, &[0; 5])
            .failed();
        assert_eq!(cause(&report), OomCause::LowZone);
    }

    #[test]
    fn the_limit_that_is_reached_is_named() {
        let mut report = Report::of_a_group(50_000, 102_400);
        let group = report.0.group.as_mut().unwrap();
        group.kernel = Some(timeline::kernel_report::GroupLimit {
            usage: kib(20_000),
            limit: kib(20_000),
            failures: 9,
        });
        assert_eq!(cause(&report), OomCause::GroupLimit(LimitHit::Kernel));
    }

    /// A 32-bit host: little of the memory that the kernel can map is left, much of what it cannot.
    fn low_memory(high_free: u64) -> Report {
        Report::default()
            .asking(0xd0, 0)
            .zone("DMA", 3500, 64, 15_900, &[0, 861, 5000, 5000])
            .zone("Normal", 3000, 3700, 880_000, &[0, 0, 33_000, 33_000])
            .zone("HighMem", high_free, 512, 4_000_000, &[0; 4])
    }

    #[test]
    fn a_low_zone_is_exhausted_only_beside_room_above() {
        assert_eq!(cause(&low_memory(900_000)), OomCause::LowZone);
        assert_ne!(cause(&low_memory(600)), OomCause::LowZone);
        // What DMA32 keeps during an ordinary shortage is not a low zone's exhaustion.
        assert!(cause(&Report::of_a_host()).is_shortage());
    }

    #[test]
    fn pieces_are_to_blame_only_where_enough_is_free() {
        let report = |free| {
            Report::default()
                .asking(0xcc0, 3)
                .zone("Normal", free, 60_000, 8_000_000, &[0; 5])
                .blocks(&[(20_000, "UM"), (500, "U"), (0, ""), (0, "")])
        };
        assert_eq!(cause(&report(400_000)), OomCause::NoBlock);
        assert_ne!(cause(&report(59_000)), OomCause::NoBlock);
        assert_ne!(cause(&report(61_000)), OomCause::NoBlock);
    }

    #[test]
    fn zones_with_room_by_then_are_no_shortage() {
        let report = Report::of_a_host();
        let roomy = Report::default()
            .asking(0x14_0dca, 0)
            .zone("Normal", 4_000_000, 61_948, 12_774_792, &[0; 5]);
        assert!(matches!(cause(&roomy), OomCause::Unknown(_)));
        assert!(cause(&report).is_shortage());
    }

    #[test]
    fn memory_is_not_used_up_where_much_of_it_is_free_and_the_request_is_cut_off() {
        let report = |free| {
            Report::default()
                .zone("DMA", free, 10_428, 968_704, &[0, 0, 3188, 3188])
                .host(MEM_TOTAL, 3_928_348)
                .host(MEM_FREE, free)
                .swap(785_668, 785_668)
        };
        let cause_of = |report: Report| {
            let mut report = report;
            report.0.constraint = Some(Constraint::None);
            cause(&report)
        };
        assert_eq!(cause_of(report(519_112)), OomCause::Unknown(NO_REQUEST));
        assert!(cause_of(report(12_000)).is_shortage());
    }

    #[test]
    fn locked_memory_and_stuck_page_cache_are_named() {
        let with = |signal, kib| {
            let report = Report::of_a_host().host(MEM_ANON, 3_000_000);
            cause(&report.host(signal, kib))
        };
        assert!(matches!(
            with(MEM_UNEVICTABLE, 8_000_000),
            OomCause::UsedUp { by: Filler::Locked(_), .. }
        ));
        assert!(matches!(
            with(MEM_INACTIVE_FILE, 8_000_000),
            OomCause::UsedUp { by: Filler::Files(_), .. }
        ));
    }

    #[test]
    fn a_failure_of_a_request_that_cannot_wait_is_the_reserves() {
        let report = Report::of_a_host().asking(0xa20, 0).failed();
        assert_eq!(cause(&report), OomCause::AtomicReserve);
    }

    #[test]
    fn a_request_that_waited_lacked_memory() {
        let mut report = Report::default().failed();
        report.0.waited = Some(units::Span::from_secs(10));
        assert!(cause(&report).is_shortage());
    }

    #[test]
    fn a_kill_line_alone_tells_no_cause() {
        assert!(matches!(cause(&Report::default()), OomCause::Unknown(_)));
    }
}
