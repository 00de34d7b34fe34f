//! Memory that no counter of the kernel explains.

use timeline::signals::{
    MEM_ANON, MEM_CACHED, MEM_FREE, MEM_PAGE_TABLES, MEM_SLAB_UNRECLAIMABLE, MEM_UNACCOUNTED,
    ZONE_PCP,
};
use units::{Bytes, Ratio, Span};

use super::available_exhaustion;
use crate::accounting::{Accounting, account};
use crate::calm;
use crate::evidence::Evidence;
use crate::finding::Severity;
use crate::fix::Fix;
use crate::missing::Missing;
use crate::rule::{Outcome, clear, declare_rule};

declare_rule! {
    /// A large part of RAM is in none of the kernel's counters: a driver or a hypervisor holds it.
    ///
    /// ## What it means
    /// Whoever takes pages straight from the allocator appears in no line of /proc/meminfo: network rings, GPU and DMA
    /// buffers, a VMware balloon, ZFS's ARC in part, file-system modules. All processes, caches and kernel objects
    /// together do not explain where that memory is.
    /// ## How it is recognised
    /// MemTotal minus all disjoint terms (memtide where) is more than 5 % of RAM and more than 1 GiB, all the time. If
    /// it grows by as much while watched, is 15 % of RAM, or leaves less than 10 % available, it is a warning; else
    /// information. Kernels that do not count per-CPU lists, vmalloc or per-CPU memory leave 1 % to 4 % unexplained;
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
    /// - kernel Documentation/mm/allocation-profiling.rst (6.10 or later: /proc/allocinfo)
    pub(crate) RULE = { id: "unaccounted-memory", since: "0.1.0", purpose: Finding, check: check }
}

/// Measured: 0.5 % to 4.3 % on healthy hosts, old kernels included.
const LARGE: Ratio = Ratio::from_percent(5.0);
/// Where the source lacks terms that hold memory on any host; per-CPU lists alone may take some percent.
const LARGE_INCOMPLETE: Ratio = Ratio::from_percent(10.0);
/// An engineering choice.
const AT_LEAST: Bytes = Bytes::from_gib(1);
/// Three times what counts at all: no driver in order takes so much.
const TOO_LARGE: Ratio = Ratio::from_percent(15.0);
/// Available memory below this is little.
const LITTLE: Ratio = available_exhaustion::LOW;
/// Samples looked at, spread over the look.
const LOOKS: usize = 32;
const LONG: Span = Span::from_hours(1);

fn check(cx: &Evidence<'_>) -> Result<Outcome, Missing> {
    let ram = cx.ram()?;
    // Without these the remainder is not a riddle, but simply not broken down.
    for signal in [MEM_FREE, MEM_ANON, MEM_CACHED, MEM_PAGE_TABLES] {
        cx.gauge(signal)?;
    }
    let looks: Vec<Accounting> = spread(cx.timeline.len(), LOOKS)
        .filter_map(|index| account(cx, index).ok())
        .filter(Accounting::is_broken_down)
        .collect();
    let (Some(first), Some(last)) = (looks.first(), looks.last()) else {
        return Err(Missing::signal(
            MEM_SLAB_UNRECLAIMABLE.def(),
            cx.timeline.absent.get(MEM_SLAB_UNRECLAIMABLE.def().file),
        ));
    };
    if super::accounting_mismatch::disagrees(cx) {
        return clear!("MemTotal cannot be trusted on this host, so nothing can be missed in it");
    }
    let third = looks.len().div_ceil(3);
    // The lowest and highest of several looks: files of one sample are not read at one instant.
    // Terms that exceed MemTotal by drift leave nothing to explain.
    let rest = |a: &Accounting| Bytes::new(u64::try_from(a.unaccounted_bytes).unwrap_or(0));
    let least = |looks: &[Accounting]| looks.iter().map(rest).fold(rest(last), Bytes::min);
    let all_the_time = least(&looks);
    let before = looks[..third]
        .iter()
        .map(rest)
        .fold(rest(first), Bytes::max);
    let after = least(&looks[looks.len() - third..]);
    let incomplete = !last.missing.is_empty();
    let share = if incomplete { LARGE_INCOMPLETE } else { LARGE };
    let large = ram.share(share).max(AT_LEAST);
    let grown = after.saturating_sub(before);
    let grows = grown >= large;
    if all_the_time < large && !grows {
        let now = rest(last);
        let now_share = cx.of_ram(now)?;
        return clear!("{now} ({now_share} of RAM) are in no counter");
    }

    let level = if grows { after } else { all_the_time };
    let of_ram = cx.of_ram(level)?;
    let least = calm::available(cx).ok().and_then(|(t, _)| t.min());
    let little = least.is_some_and(|(least, _)| least < ram.share(LITTLE));
    let severity = if grows || of_ram >= TOO_LARGE || little {
        Severity::Warning
    } else {
        Severity::Info
    };
    let title = if grows {
        format!(
            "Memory that no counter explains grew by {grown} to {level} ({of_ram} of RAM): a driver or a hypervisor takes it."
        )
    } else {
        format!(
            "{level} ({of_ram} of RAM) are in no counter of the kernel: a driver or a hypervisor holds them."
        )
    };
    let mut finding = RULE.found(severity, title).shows_from(
        MEM_UNACCOUNTED,
        level,
        large,
        None,
        format!(
            "{level} of MemTotal ({ram}) in none of {} terms",
            last.terms.len()
        ),
    );
    let mut kinds = vec!["the level"];
    if grows {
        kinds.push("a climb");
        finding = finding.shows(
            MEM_UNACCOUNTED,
            grown,
            Some(last.at),
            format!(
                "{before} between {} and {}, {after} later",
                first.at.as_clock(),
                looks[third - 1].at.as_clock()
            ),
        );
        if let Some(whole) = cx.timeline.whole() {
            finding = finding.during(whole);
        }
    }
    let open = if incomplete {
        format!("this source lacks {}", last.missing.join(", "))
    } else if cx.look() < LONG {
        "whether it grows, a recording over hours would tell".to_owned()
    } else {
        String::new()
    };
    if incomplete {
        kinds.truncate(1);
    }
    if last.missing.contains(&ZONE_PCP.def().name) {
        finding = finding.not(
            "per-CPU lists",
            "this source does not tell them; they take a few percent at most",
        );
    }
    Ok(finding
        .not("accounting-mismatch", "the zones agree with MemTotal, as far as the source tells")
        .not("hugetlb-unused", "huge pages are counted in a line of their own")
        .cause("Pages taken straight from the allocator are in no line of /proc/meminfo: network rings, GPU and DMA buffers, a balloon, ZFS's ARC.")
        .fix(Fix::say("Look at the usual owners: network rings (ethtool -g), ZFS, GPU, the hypervisor's balloon.")
                .look("grep -E '^(size|c_max) ' /proc/spl/kstat/zfs/arcstats\nsort -rn /proc/allocinfo | head"))
        .fix(Fix::say("Let the kernel record who takes pages: page_owner=on on its command line, then /sys/kernel/debug/page_owner. It costs some memory, so not for good."))
        .verify("memtide where: unaccounted falls below 5 %")
        .sure(cx.confidence(&kinds, &open))
        .see("kernel: Documentation/mm/page_owner.rst")
        .into())
}

/// At most `most` indices spread over `len` samples, the first and the last among them.
pub(super) fn spread(len: usize, most: usize) -> impl Iterator<Item = usize> {
    let looks = len.min(most);
    (0..looks).map(move |i| match looks {
        1 => len - 1,
        _ => i * (len - 1) / (looks - 1),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::testing::{Case, clear, found, not_evaluated};
    use timeline::{
        Entity,
        facts::KERNEL_VERSION,
        signals::{
            MEM_AVAILABLE, MEM_BUFFERS, MEM_HUGETLB, MEM_KERNEL_STACK, MEM_PERCPU, MEM_SHMEM,
            MEM_SLAB_RECLAIMABLE, MEM_SWAP_CACHED, MEM_TOTAL, MEM_VMALLOC_USED,
        },
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

    #[test]
    fn looks_are_spread_from_the_first_to_the_last() {
        assert_eq!(spread(0, 4).count(), 0);
        assert_eq!(spread(1, 4).collect::<Vec<_>>(), [0]);
        assert_eq!(spread(100, 4).collect::<Vec<_>>(), [0, 33, 66, 99]);
    }
}
