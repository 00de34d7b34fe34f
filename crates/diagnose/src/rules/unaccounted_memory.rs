//! Memory that no kernel counter covers.

use timeline::signals::{
    MEM_ANON, MEM_BUFFERS, MEM_CACHED, MEM_FREE, MEM_HUGETLB, MEM_KERNEL_STACK, MEM_PAGE_TABLES,
    MEM_PERCPU, MEM_SLAB, MEM_SLAB_RECLAIMABLE, MEM_SLAB_UNRECLAIMABLE, MEM_UNACCOUNTED, TCP_MEM,
    ZONE_PCP,
};

use crate::accounting::totals::Checks;
use crate::accounting::{Accounting, account};
use crate::finding::Confidence;
use crate::measures::rise::{self, LONG, Rise, with_levels};
use crate::measures::sockets;
use crate::measures::{arc, available};
use crate::prelude::*;
use crate::trigger::Subject;

declare_rule! {
    /// A large part of RAM is in none of the kernel's counters: it belongs to a driver, a hypervisor, or pipes and rings of processes.
    ///
    /// ## What it means
    /// Pages taken directly from the page allocator appear in no line of /proc/meminfo: buffers of sockets, data in
    /// pipes, rings of io_uring and of packet sockets, network rings, GPU and DMA buffers, a VMware balloon, part of
    /// the ZFS ARC, file-system modules. Processes, caches and kernel objects together do not explain where that memory
    /// is.
    /// ## How it is recognised
    /// MemTotal minus all disjoint terms (memtide where) is {UNACCOUNTED_SHARE_LARGE} of RAM or more and {AT_LEAST} or
    /// more (on small boards {AT_LEAST_OF_BOARD} of RAM) for {LEVEL}; each value is the median of five samples. If it
    /// rises by as much, is {TOO_LARGE} of RAM, or leaves less than {AVAILABLE_LOW_SHARE} available, it is a warning;
    /// otherwise informational. Kernels without counters of per-CPU lists, vmalloc or per-CPU memory leave 1 % to 4 %
    /// unexplained; there the threshold is {LARGE_INCOMPLETE}. Where Slab and the lines after it were cut off,
    /// {UNSHOWN_SHARE_LARGE} of RAM in none of the others is informational.
    /// ## Not this
    /// - `accounting-mismatch`: MemTotal itself is virtual, or memory is added lazily.
    /// - The ARC of ZFS, where the source shows it: what remains beside its pages must still be so large.
    /// - `hugetlb-unused`: huge pages are counted, in a line of their own.
    /// - A zram or zswap pool: it is counted too.
    /// ## What to do
    /// Now: let `memtide where` name the processes of sockets, pipes and rings; if none has much, find the driver:
    /// network rings (`ethtool -g`), ZFS (`arcstats`), GPU, balloon. For good: smaller rings, `zfs_arc_max`, a newer
    /// driver; `page_owner=on` at boot names the owner. Verify: unaccounted memory falls.
    /// ## References
    /// - kernel Documentation/mm/page_owner.rst
    /// - kernel Documentation/mm/allocation-profiling.rst: /proc/allocinfo, 6.10 or later
    pub(crate) RULE = {
        id: "unaccounted-memory", since: "0.1.0", class: Growth,
        numbers: [UNACCOUNTED_SHARE_LARGE, AT_LEAST, LEVEL, TOO_LARGE, AVAILABLE_LOW_SHARE,
            LARGE_INCOMPLETE, AT_LEAST_OF_BOARD, UNSHOWN_SHARE_LARGE],
        trigger: trigger, story: story,
        cause: "Pages taken directly from the page allocator are in no line of /proc/meminfo: \
                network rings, GPU and DMA buffers, a balloon, the ZFS ARC, data in pipes, rings \
                of io_uring.",
        verify: "memtide where: unaccounted falls below {UNACCOUNTED_SHARE_LARGE}",
        brings_about: WANT_AND_THRASH,
    }
}

/// Measured: 0.5 % to 4.3 % on healthy hosts, old kernels included.
const UNACCOUNTED_SHARE_LARGE: Ratio = Ratio::from_percent(5.0);
/// Where the source lacks terms that every host has: per-CPU lists alone may take some percent.
const LARGE_INCOMPLETE: Ratio = Ratio::from_percent(10.0);
/// An engineering choice; on small boards a quarter of RAM.
const AT_LEAST: Bytes = Bytes::from_gib(1);
const AT_LEAST_OF_BOARD: Ratio = Ratio::from_percent(25.0);
/// Where lines are missing: slab and page tables of healthy hosts take less together. An engineering choice.
const UNSHOWN_SHARE_LARGE: Ratio = Ratio::from_percent(25.0);
/// Three times the threshold: no healthy driver takes this much.
const TOO_LARGE: Ratio = Ratio::from_percent(15.0);
/// Buffers of sockets that are so much of it are its main part: some of them are slab.
const SOCKETS_SHARE_MIN: Ratio = Ratio::from_percent(60.0);
/// The number of samples on either side of one, for the median.
const MEDIAN_REACH: usize = 2;

fn trigger() -> Trigger {
    rise::trigger(find, all![could(), is_large()])
}

/// A cheap upper bound: RAM minus the largest counters.
fn could() -> Predicate {
    let slab = gauge(MEM_SLAB_RECLAIMABLE).plus([gauge(MEM_SLAB_UNRECLAIMABLE)]);
    let counted = gauge(MEM_FREE).plus([
        gauge(MEM_ANON),
        gauge(MEM_CACHED),
        gauge(MEM_BUFFERS),
        gauge(MEM_SLAB).or(slab),
        gauge(MEM_PAGE_TABLES),
        gauge(MEM_KERNEL_STACK),
        gauge(MEM_PERCPU),
        gauge(MEM_HUGETLB),
    ]);
    let least = ram().share(AT_LEAST_OF_BOARD).min(AT_LEAST);
    let large = ram().share(UNACCOUNTED_SHARE_LARGE).max(least);
    let uncounted = ram().minus(counted);
    uncounted.at_least("memory in none of the largest counters", large)
}

fn is_large() -> Predicate {
    let unaccounted: Reading<Bytes> = computed("unaccounted", |cx| Ok(unaccounted(cx)?.cast()));
    let large = computed("unaccounted_threshold", |cx| {
        Ok(cx.timeline.constant(large(cx, &last(cx)?)?).cast())
    });
    unaccounted.at_least("unaccounted memory", large)
}

fn find(cx: &Evidence<'_>) -> Result<Vec<Occurrence>, Missing> {
    let last = match last(cx) {
        Ok(last) => last,
        Err(missing) => {
            return unshown(cx).map(|at| vec![Occurrence::on_host(at, at)]).ok_or(missing);
        }
    };
    let large = large(cx, &last)?;
    // On most hosts this is enough, without accounting for each sample.
    if !could().holds(Subject { cx, of: None })?.could_hold() {
        return Ok(Vec::new());
    }
    let rises = Rise::of_size(&unaccounted(cx)?, large);
    with_levels(cx, is_large(), rises)
}

/// The last sample of which the lines shown leave much of RAM out: Slab and what follows it in /proc/meminfo were cut
/// off.
fn unshown(cx: &Evidence<'_>) -> Option<usize> {
    let ram = cx.ram().ok()?;
    let index = cx.timeline.len().checked_sub(1)?;
    cx.timeline.at(MEM_SLAB, index).is_none().then_some(())?;
    (unshown_at(cx, index)? >= ram.share(UNSHOWN_SHARE_LARGE).max(AT_LEAST)).then_some(index)
}

/// RAM less the largest counters; `None` without one of them.
fn unshown_at(cx: &Evidence<'_>, index: usize) -> Option<Bytes> {
    let parts = [MEM_FREE, MEM_ANON, MEM_CACHED, MEM_BUFFERS];
    let shown: Bytes =
        parts.into_iter().map(|part| cx.timeline.at(part, index)).sum::<Option<Bytes>>()?;
    let pool = cx.timeline.at(MEM_HUGETLB, index).unwrap_or_default();
    Some(cx.ram().ok()?.saturating_sub(shown + pool))
}

/// The finding where the lines that would explain the rest are not shown.
fn of_lines_not_shown(cx: &Evidence<'_>, index: usize) -> Result<Outcome, Missing> {
    let ram = cx.ram()?;
    let Some(rest) = unshown_at(cx, index) else {
        return clear!("memory was not broken down");
    };
    let of_ram = cx.of_ram(rest)?;
    let title = format!(
        "{rest} of RAM ({of_ram}) is in none of the lines shown; Slab and the lines after it in \
         /proc/meminfo are missing."
    );
    let text = format!("{rest} of MemTotal ({ram}) is neither free, nor anonymous, nor page cache");
    Ok(RULE
        .found(Severity::Info, title)
        .shows_from(MEM_UNACCOUNTED, rest, ram.share(UNSHOWN_SHARE_LARGE), None, text)
        .cause(
            "Slab, page tables, huge pages, or memory in no counter at all: the lines that would \
             tell are not shown.",
        )
        .fix(
            Fix::say("Give memtide the whole file; as root also the slab caches.")
                .inspect("cat /proc/meminfo\nslabtop -o | head -n 20"),
        )
        .sure(Confidence {
            value: 0.5,
            why:
                "rests on the lines shown; Slab, SUnreclaim, PageTables and HugePages_Total would \
                 tell what it is"
                    .to_owned(),
        })
        .into())
}

/// The last accounting that breaks RAM down.
fn last(cx: &Evidence<'_>) -> Result<Accounting, Missing> {
    cx.ram()?;
    // Without these, memory is not broken down, so the remainder means nothing.
    for signal in [MEM_FREE, MEM_ANON, MEM_CACHED, MEM_PAGE_TABLES] {
        cx.gauge(signal)?;
    }
    (0..cx.timeline.len())
        .rev()
        .find_map(|index| accounting_at(cx, index))
        .ok_or_else(|| cx.lacks_signal(MEM_SLAB_UNRECLAIMABLE.id()))
}

fn accounting_at(cx: &Evidence<'_>, index: usize) -> Option<Accounting> {
    let accounting = account(cx, index).ok();
    accounting.filter(Accounting::is_broken_down)
}

/// The threshold for a source with these terms.
fn large(cx: &Evidence<'_>, terms: &Accounting) -> Result<Bytes, Missing> {
    let share = if terms.missing.is_empty() { UNACCOUNTED_SHARE_LARGE } else { LARGE_INCOMPLETE };
    let ram = cx.ram()?;
    Ok(ram.share(share).max(AT_LEAST.min(ram.share(AT_LEAST_OF_BOARD))))
}

/// Unaccounted memory at each sample: the median of a few samples, because the files of one sample are not all read at
/// the same instant.
fn unaccounted(cx: &Evidence<'_>) -> Result<Track<Bytes>, Missing> {
    last(cx)?;
    // The remainder is negative if the terms exceed MemTotal by drift.
    let at = |index| {
        let bytes = accounting_at(cx, index)?.unaccounted_bytes;
        Some(Bytes::new(u64::try_from(bytes).unwrap_or(0)).as_f64())
    };
    let len = cx.timeline.len();
    let raw: Vec<Option<f64>> = (0..len).map(at).collect();
    let median = |index: usize| {
        let around = MEDIAN_REACH.min(index).min(len - 1 - index);
        let mut values: Vec<f64> =
            raw[index - around..=index + around].iter().flatten().copied().collect();
        raw[index].and(stats::quantile_in_place(&mut values, 0.5))
    };
    Ok(cx.timeline.track((0..len).map(median).collect()))
}

fn story<'a>(cx: &Evidence<'a>, incident: &Incident<'a>) -> Result<Outcome, Missing> {
    let stretch = &incident.stretch;
    let ram = cx.ram()?;
    if last(cx).is_err() {
        return of_lines_not_shown(cx, stretch.last);
    }
    if Checks::run(cx).disagree() {
        return clear!("MemTotal is unreliable on this host, so unaccounted memory is unknown");
    }
    let track = unaccounted(cx)?;
    let Some((most, at)) = track.max_in(stretch) else {
        return clear!("memory was not broken down");
    };
    let terms = accounting_at(cx, at).map_or_else(|| last(cx), Ok)?;
    let large = large(cx, &terms)?;
    let growth = Rise::seen(&track, large).max_by_key(Rise::by);
    let level = growth.as_ref().map_or(most, |rise| rise.to);
    if let Some(arc) = arc::pages(cx, at)
        && level.saturating_sub(arc) < large
    {
        return clear!("the ARC of ZFS has {arc} of it, and shrinks when programs want memory");
    }
    let of_ram = cx.of_ram(level)?;
    let least = available::available(cx).ok().and_then(|(track, _)| track.min_in(stretch));
    let little = least.is_some_and(|(least, _)| least < ram.share(AVAILABLE_LOW_SHARE));
    let severity = Severity::warning_if(growth.is_some() || of_ram >= TOO_LARGE || little);
    let buffers =
        sockets::buffers(cx, at).filter(|buffers| *buffers >= level.share(SOCKETS_SHARE_MIN));
    let title = title(growth.as_ref(), level, of_ram, buffers);
    let text = format!("{level} of MemTotal ({ram}) is in none of {} terms", terms.terms.len());
    let incomplete = !terms.missing.is_empty();
    let lacks_lists = terms.missing.contains(&ZONE_PCP.def().name);
    let open = open(&terms, stretch);
    Ok(RULE
        .found(severity, title)
        .graph("unaccounted memory", &track)
        .shows_from(MEM_UNACCOUNTED, level, large, None, text)
        .counts_as("the level")
        .with(growth, |finding, rise| {
            let (from, to) = (rise.stretch.from.as_clock(), rise.stretch.to.as_clock());
            let text = format!("{} at {from}, {} at {to}", rise.from, rise.to);
            finding
                .shows(MEM_UNACCOUNTED, rise.by(), Some(rise.stretch.to), text)
                .counts_as("a climb")
        })
        .counts_once_if(incomplete)
        .when(lacks_lists, |finding| {
            finding.not(
                "per-CPU lists",
                "this source does not have them; they take a few percent at most",
            )
        })
        .not("accounting-mismatch", "the zones agree with MemTotal, as far as the source has them")
        .not("hugetlb-unused", "huge pages are counted in a line of their own")
        .with(buffers, |finding, buffers| {
            let text = format!(
                "TCP and UDP sockets have {buffers} of data that was not read or not acknowledged"
            );
            of_sockets(finding).shows_from(
                TCP_MEM,
                buffers,
                level.share(SOCKETS_SHARE_MIN),
                cx.time(at),
                text,
            )
        })
        .when(buffers.is_none(), |finding| {
            finding.fix(
                Fix::say(
                    "On the host, memtide where names the processes of pipes, Unix sockets, rings \
                     and buffers of GPUs, as root of all users; where the kernel has \
                     /proc/allocinfo, also the drivers' functions.",
                )
                .inspect("memtide where"),
            )
        })
        .and(look_for_owners)
        .sure_by_kinds(cx, &open)
        .into())
}

/// Sockets hold the memory.
fn of_sockets(finding: Finding) -> Finding {
    finding
        .cause(
            "Sockets hold data that their program does not read or their peer does not \
             acknowledge; pages of it are in no line of /proc/meminfo.",
        )
        .fix(
            Fix::say(
                "Find the program that does not read, or reads too slowly: memtide where names \
                 the processes of sockets.",
            )
            .inspect("memtide where\nss -tmp"),
        )
}

fn look_for_owners(finding: Finding) -> Finding {
    finding
        .fix(
            Fix::say(
                "Check the usual owners: network rings (ethtool -g), ZFS, GPU, the hypervisor's \
                 balloon.",
            )
            .inspect(
                "grep -E '^(size|c_max) ' /proc/spl/kstat/zfs/arcstats\n\
                 sort -rn /proc/allocinfo | head",
            ),
        )
        .fix(Fix::say(
            "Let the kernel record the owner of each page: page_owner=on on its command line, \
             then /sys/kernel/debug/page_owner. It costs memory, so do not leave it on.",
        ))
}

/// What would make it surer.
fn open(terms: &Accounting, stretch: &Stretch) -> String {
    if !terms.missing.is_empty() {
        format!("this source lacks {}", terms.missing.join(", "))
    } else if stretch.elapsed() < LONG {
        "a recording over hours would show whether it grows".to_owned()
    } else {
        String::new()
    }
}

fn title(growth: Option<&Rise>, level: Bytes, of_ram: Ratio, buffers: Option<Bytes>) -> String {
    let owner = buffers.map_or_else(
        || "a driver, a hypervisor, or pipes and rings of processes have it".to_owned(),
        |buffers| format!("buffers of sockets ({buffers}) are most of it"),
    );
    match growth {
        Some(rise) => format!(
            "Unaccounted memory grew by {} to {level} ({of_ram} of RAM): {owner}.",
            rise.by()
        ),
        None => format!("{level} of RAM ({of_ram}) is in no kernel counter: {owner}."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::testing::{Case, clear, found, not_evaluated};
    use timeline::{
        Entity,
        facts::KERNEL_VERSION,
        signals::{MEM_AVAILABLE, MEM_SHMEM, MEM_SWAP_CACHED, MEM_TOTAL, MEM_VMALLOC_USED},
    };
    use units::Pages;

    const GIB: fn(u64) -> Bytes = Bytes::from_gib;

    #[test]
    fn a_file_that_is_cut_before_slab_is_said_to_lack_it() {
        let cut = |anon| {
            Case::once()
                .gauge(MEM_TOTAL, GIB(251))
                .gauge(MEM_FREE, GIB(12))
                .gauge(MEM_BUFFERS, GIB(4))
                .gauge(MEM_CACHED, GIB(42))
                .gauge(MEM_ANON, GIB(anon))
        };
        let finding = found(RULE, &cut(91));
        assert_eq!(finding.severity, Severity::Info);
        assert!(finding.title.contains("lines shown"), "{}", finding.title);
        assert_eq!(not_evaluated(RULE, &cut(180)).names, ["mem.page_tables"]);
    }

    #[test]
    fn clear_when_the_arc_of_zfs_explains_it() {
        use timeline::signals::{ZFS_ARC, ZFS_ARC_DATA, ZFS_ARC_METADATA};
        let case = |data| {
            host(60, &[2; 60])
                .gauge(ZFS_ARC, GIB(14))
                .gauge(ZFS_ARC_DATA, GIB(data))
                .gauge(ZFS_ARC_METADATA, GIB(1))
        };
        clear(RULE, &case(12));
        found(RULE, &case(9));
    }

    /// A host of 32 GiB with this much free; the other counters are constant.
    fn host(seconds: u64, free: &[u64]) -> Case {
        let mut case = Case::over(seconds)
            .fact(KERNEL_VERSION, "Linux version 6.1.0")
            .gauge(MEM_TOTAL, GIB(32))
            .gauge(MEM_AVAILABLE, GIB(10))
            .gauge(MEM_ANON, GIB(8))
            .gauge(MEM_CACHED, GIB(8))
            .gauge(MEM_PAGE_TABLES, Bytes::ZERO)
            .gauge_of(Entity::Zone, "0/Normal", ZONE_PCP, Pages::ZERO);
        for zero in [
            MEM_SHMEM,
            MEM_BUFFERS,
            MEM_SLAB_RECLAIMABLE,
            MEM_SLAB_UNRECLAIMABLE,
            MEM_KERNEL_STACK,
            MEM_PERCPU,
            MEM_VMALLOC_USED,
            MEM_HUGETLB,
            MEM_SWAP_CACHED,
        ] {
            case = case.gauge(zero, Bytes::ZERO);
        }
        let free: Vec<Bytes> = free.iter().map(|g| GIB(*g)).collect();
        case.gauge_steps(MEM_FREE, &free)
    }

    #[test]
    fn a_constant_level_is_informational() {
        let finding = found(RULE, &host(30, &[13]));
        assert_eq!(finding.severity, Severity::Info);
        assert!(finding.title.starts_with("3 GiB of RAM (9.4 %)"), "{}", finding.title);
    }

    #[test]
    fn growth_or_an_extreme_level_is_a_warning() {
        let mut free = vec![16; 11];
        free.extend([15, 14, 13, 12]);
        let finding = found(RULE, &host(30, &free));
        assert_eq!(finding.severity, Severity::Warning);
        assert!(finding.title.contains("grew by 4 GiB"), "{}", finding.title);
        assert_eq!(found(RULE, &host(30, &[8])).severity, Severity::Warning);
    }

    #[test]
    fn buffers_of_sockets_are_named_where_they_are_most_of_it() {
        let with = |mib: u64| host(30, &[13]).gauge(TCP_MEM, Pages::new(mib * 256));
        let finding = found(RULE, &with(2_500));
        assert!(finding.title.contains("buffers of sockets (2.4 GiB)"), "{}", finding.title);
        assert!(finding.cause.contains("Sockets hold data"), "{}", finding.cause);
        let finding = found(RULE, &with(500));
        assert!(finding.title.contains("a driver, a hypervisor"), "{}", finding.title);
    }

    #[test]
    fn clear_at_a_percent_or_for_one_sample() {
        clear(RULE, &host(30, &[15]));
        // One sample with files that were read far apart.
        let mut free = vec![16; 10];
        free.push(10);
        free.extend([16; 5]);
        clear(RULE, &host(30, &free));
    }

    #[test]
    fn finds_30_s_within_an_hour() {
        let hour = |free: u64| {
            let steps = [vec![16; 1800], vec![free; 30], vec![16]].concat();
            host(3600, &steps)
        };
        let finding = found(RULE, &hour(12));
        assert_eq!(finding.severity, Severity::Warning);
        assert_eq!(finding.when.unwrap().duration(), Span::from_secs(30));
        let why = clear(RULE, &hour(15));
        assert!(why.contains("at most 1 GiB, threshold 1.6 GiB"), "{why}");
    }

    #[test]
    fn clear_on_a_small_host() {
        let with_cache = |mib| {
            let sizes = [(MEM_TOTAL, 700), (MEM_ANON, 300), (MEM_CACHED, mib)];
            sizes.into_iter().fold(host(30, &[0]), |case, (signal, mib)| {
                case.gauge(signal, Bytes::from_mib(mib))
            })
        };
        clear(RULE, &with_cache(300));
        // Half of a small board is no small matter.
        found(RULE, &with_cache(50));
    }

    #[test]
    fn not_evaluated_when_memory_is_not_broken_down() {
        let case = Case::over(3)
            .gauge(MEM_TOTAL, GIB(32))
            .gauge(MEM_FREE, GIB(2))
            .gauge(MEM_CACHED, GIB(4));
        assert_eq!(not_evaluated(RULE, &case).names, ["mem.anon"]);
    }
}
