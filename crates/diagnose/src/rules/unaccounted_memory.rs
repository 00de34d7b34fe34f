//! Memory that no counter of the kernel explains.

use timeline::signals::{
    MEM_ANON, MEM_BUFFERS, MEM_CACHED, MEM_FREE, MEM_HUGETLB, MEM_KERNEL_STACK, MEM_PAGE_TABLES,
    MEM_PERCPU, MEM_SLAB, MEM_SLAB_RECLAIMABLE, MEM_SLAB_UNRECLAIMABLE, MEM_UNACCOUNTED, ZONE_PCP,
};

use crate::accounting::totals::Checks;
use crate::accounting::{Accounting, account};
use crate::measures::available;
use crate::measures::rise::{self, LONG, Rise, with_levels};
use crate::prelude::*;
use crate::trigger::Subject;

declare_rule! {
    /// A large part of RAM is in none of the kernel's counters: a driver or a hypervisor holds it.
    ///
    /// ## What it means
    /// Whoever takes pages straight from the allocator appears in no line of /proc/meminfo: network rings, GPU and DMA
    /// buffers, a VMware balloon, ZFS's ARC in part, file-system modules. All processes, caches and kernel objects
    /// together do not explain where that memory is.
    /// ## How it is recognised
    /// MemTotal minus all disjoint terms (memtide where) is 5 % of RAM or more and 1 GiB or more for 10 s; of five samples
    /// the middle one counts. If it rises by as much, is 15 % of RAM, or leaves less than 10 % available, it is a
    /// warning; else information. Kernels that do not count per-CPU lists, vmalloc or per-CPU memory leave 1 % to 4 % unexplained;
    /// there 10 % counts.
    /// ## Not this
    /// - `accounting-mismatch`: MemTotal itself is faked, or set up lazily.
    /// - `hugetlb-unused`: huge pages are counted, in a line of their own.
    /// - A zram or zswap pool: it is counted too.
    /// ## What to do
    /// Now: see which driver it is: network rings (`ethtool -g`), ZFS (`arcstats`), GPU, balloon. For good: smaller
    /// rings, `zfs_arc_max`, a newer driver; `page_owner=on` at boot names the owner. Verify: unaccounted memory falls.
    /// ## References
    /// - kernel Documentation/mm/page_owner.rst
    /// - kernel Documentation/mm/allocation-profiling.rst: /proc/allocinfo, 6.10 or later
    pub(crate) RULE = {
        id: "unaccounted-memory", since: "0.1.0", class: Growth,
        trigger: trigger, story: story,
        cause: "Pages taken straight from the allocator are in no line of /proc/meminfo: network rings, GPU and DMA buffers, a balloon, ZFS's ARC.",
        verify: "memtide where: unaccounted falls below 5 %",
        brings_about: WANT_AND_THRASH,
    }
}

/// Measured: 0.5 % to 4.3 % on healthy hosts, old kernels included.
const LARGE: Ratio = Ratio::from_percent(5.0);
/// Where the source lacks terms that hold memory on any host; per-CPU lists alone may take some percent.
const LARGE_INCOMPLETE: Ratio = Ratio::from_percent(10.0);
/// An engineering choice.
const AT_LEAST: Bytes = Bytes::from_gib(1);
/// Three times what counts at all: no driver in order takes so much.
const TOO_LARGE: Ratio = Ratio::from_percent(15.0);
/// Samples before and after one whose middle value counts.
const AROUND: usize = 2;

fn trigger() -> Trigger {
    rise::trigger(find, all![could(), is_large()])
}

/// An upper bound that needs no more than arithmetic: what the counters that hold most leave.
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
    let large = ram().share(LARGE).max(AT_LEAST);
    let rest = ram().minus(counted);
    rest.at_least("memory in none of the counters that hold most", large)
}

fn is_large() -> Predicate {
    let rest: Reading<Bytes> = computed("unaccounted", |cx| Ok(unaccounted(cx)?.cast()));
    let large = computed("unaccounted_threshold", |cx| {
        Ok(cx.timeline.constant(large(cx, &last(cx)?)?).cast())
    });
    rest.at_least("memory in no counter", large)
}

fn find(cx: &Evidence<'_>) -> Result<Vec<Occurrence>, Missing> {
    let large = large(cx, &last(cx)?)?;
    // Most hosts are done here, without an accounting of each sample.
    if !could().holds(Subject { cx, of: None })?.could_hold() {
        return Ok(Vec::new());
    }
    let rises = Rise::of_size(&unaccounted(cx)?, large);
    with_levels(cx, is_large(), rises)
}

/// The last accounting that breaks RAM down.
fn last(cx: &Evidence<'_>) -> Result<Accounting, Missing> {
    cx.ram()?;
    // Without these the remainder is not a riddle, but simply not broken down.
    for signal in [MEM_FREE, MEM_ANON, MEM_CACHED, MEM_PAGE_TABLES] {
        cx.gauge(signal)?;
    }
    let last = (0..cx.timeline.len()).rev().find_map(|index| of(cx, index));
    last.ok_or_else(|| cx.lacks_signal(MEM_SLAB_UNRECLAIMABLE.id()))
}

fn of(cx: &Evidence<'_>, index: usize) -> Option<Accounting> {
    let accounting = account(cx, index).ok();
    accounting.filter(Accounting::is_broken_down)
}

/// From where on it is much, for a source that has such terms.
fn large(cx: &Evidence<'_>, terms: &Accounting) -> Result<Bytes, Missing> {
    let share = match terms.missing.as_slice() {
        [] => LARGE,
        _ => LARGE_INCOMPLETE,
    };
    Ok(cx.ram()?.share(share).max(AT_LEAST))
}

/// What no counter explains at each sample: of a few samples the middle one, for files of one sample are not read at one
/// instant.
fn unaccounted(cx: &Evidence<'_>) -> Result<Track<Bytes>, Missing> {
    last(cx)?;
    // Terms that exceed MemTotal by drift leave nothing to explain.
    let rest = |index| {
        let rest = of(cx, index)?.unaccounted_bytes;
        Some(Bytes::new(u64::try_from(rest).unwrap_or(0)).as_f64())
    };
    let len = cx.timeline.len();
    let raw: Vec<Option<f64>> = (0..len).map(rest).collect();
    let middle = |index: usize| {
        let around = AROUND.min(index).min(len - 1 - index);
        let mut few: Vec<f64> = raw[index - around..=index + around]
            .iter()
            .flatten()
            .copied()
            .collect();
        few.sort_by(f64::total_cmp);
        raw[index].and(few.get(few.len() / 2).copied())
    };
    Ok(cx.timeline.track((0..len).map(middle).collect()))
}

fn story<'a>(cx: &Evidence<'a>, incident: &Incident<'a>) -> Result<Outcome, Missing> {
    let stretch = &incident.stretch;
    let ram = cx.ram()?;
    if Checks::of(cx).disagree() {
        return clear!("MemTotal cannot be trusted on this host, so nothing can be missed in it");
    }
    let track = unaccounted(cx)?;
    let Some((most, at)) = track.max_in(stretch) else {
        return clear!("memory was not broken down");
    };
    let terms = of(cx, at).map_or_else(|| last(cx), Ok)?;
    let large = large(cx, &terms)?;
    let growth = Rise::seen(&track, large).max_by_key(Rise::by);
    let level = growth.as_ref().map_or(most, |rise| rise.to);
    let of_ram = cx.of_ram(level)?;
    let least = available::available(cx)
        .ok()
        .and_then(|(t, _)| t.min_in(stretch));
    let little = least.is_some_and(|(least, _)| least < ram.share(LITTLE_AVAILABLE));
    let severity = Severity::warning_if(growth.is_some() || of_ram >= TOO_LARGE || little);
    let title = title(growth.as_ref(), level, of_ram);
    let text = format!(
        "{level} of MemTotal ({ram}) in none of {} terms",
        terms.terms.len()
    );
    let incomplete = !terms.missing.is_empty();
    let lacks_lists = terms.missing.contains(&ZONE_PCP.def().name);
    let open = if incomplete {
        format!("this source lacks {}", terms.missing.join(", "))
    } else if stretch.elapsed() < LONG {
        "whether it grows, a recording over hours would tell".to_owned()
    } else {
        String::new()
    };
    Ok(RULE
        .found(severity, title)
        .graph("memory in no counter", &track)
        .shows_from(MEM_UNACCOUNTED, level, large, None, text)
        .counts_as("the level")
        .with(growth, |finding, rise| {
            let (from, to) = (rise.stretch.from.as_clock(), rise.stretch.to.as_clock());
            let text = format!("{} at {from}, {} at {to}", rise.from, rise.to);
            finding.shows(MEM_UNACCOUNTED, rise.by(), Some(rise.stretch.to), text).counts_as("a climb")
        })
        .counts_once_if(incomplete)
        .when(lacks_lists, |finding| finding.not("per-CPU lists", "this source does not tell them; they take a few percent at most"))
        .not("accounting-mismatch", "the zones agree with MemTotal, as far as the source tells")
        .not("hugetlb-unused", "huge pages are counted in a line of their own")
        .fix(Fix::say("Look at the usual owners: network rings (ethtool -g), ZFS, GPU, the hypervisor's balloon.")
            .look("grep -E '^(size|c_max) ' /proc/spl/kstat/zfs/arcstats\nsort -rn /proc/allocinfo | head"))
        .fix(Fix::say("Let the kernel record who takes pages: page_owner=on on its command line, then /sys/kernel/debug/page_owner. It costs some memory, so not for good."))
        .sure_by_kinds(cx, &open)
        .into())
}

fn title(growth: Option<&Rise>, level: Bytes, of_ram: Ratio) -> String {
    match growth {
        Some(rise) => format!(
            "Memory that no counter explains grew by {} to {level} ({of_ram} of RAM): a driver or a hypervisor takes it.",
            rise.by()
        ),
        None => format!(
            "{level} ({of_ram} of RAM) are in no counter of the kernel: a driver or a hypervisor holds them."
        ),
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

    /// 32 GiB, of which `missing` are nowhere.
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
    fn a_level_that_stands_still_is_information() {
        let finding = found(RULE, &host(30, &[13]));
        assert_eq!(finding.severity, Severity::Info);
        assert!(
            finding.title.starts_with("3 GiB (9.4 % of RAM)"),
            "{}",
            finding.title
        );
    }

    #[test]
    fn what_grows_or_is_absurd_is_a_warning() {
        let mut free = vec![16; 11];
        free.extend([15, 14, 13, 12]);
        let finding = found(RULE, &host(30, &free));
        assert_eq!(finding.severity, Severity::Warning);
        assert!(finding.title.contains("grew by 4 GiB"), "{}", finding.title);
        assert_eq!(found(RULE, &host(30, &[8])).severity, Severity::Warning);
    }

    #[test]
    fn a_percent_or_a_moment_is_clear() {
        clear(RULE, &host(30, &[15]));
        // One sample whose files were read far apart.
        let mut free = vec![16; 10];
        free.push(10);
        free.extend([16; 5]);
        clear(RULE, &host(30, &free));
    }

    #[test]
    fn half_a_minute_within_a_calm_hour_is_found() {
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
    fn a_small_host_is_clear() {
        let mut case = host(30, &[0]);
        for (signal, mib) in [(MEM_TOTAL, 700), (MEM_ANON, 300), (MEM_CACHED, 100)] {
            case = case.gauge(signal, Bytes::from_mib(mib));
        }
        clear(RULE, &case);
    }

    #[test]
    fn a_source_that_breaks_nothing_down_is_not_judged() {
        let case = Case::over(3)
            .gauge(MEM_TOTAL, GIB(32))
            .gauge(MEM_FREE, GIB(2))
            .gauge(MEM_CACHED, GIB(4));
        assert_eq!(not_evaluated(RULE, &case).names, ["mem.anon"]);
    }
}
