//! What a source without MemTotal still shows: the cgroup nearest to its limit, the largest slab caches and programs,
//! or what is available or free. No level: that needs the size of RAM.

use timeline::{
    Entity,
    signals::{
        CGROUP_CURRENT, CGROUP_MAX, HUGEPAGE_SIZE, HUGEPAGES_FREE, HUGEPAGES_RSVD, HUGEPAGES_TOTAL,
        MEM_AVAILABLE, MEM_FREE, ZFS_ARC,
    },
};
use units::{Bytes, Count, Ratio};

use crate::evidence::Evidence;
use crate::measures::own_limit;
use crate::measures::processes;
use crate::measures::slab;

/// The number of caches and programs named.
const NAMED: usize = 3;
/// Limits that people set are whole multiples of this; the RAM that a kernel manages is none.
const ROUND: Bytes = Bytes::from_mib(64);
/// Fewer idle huge pages than a tenth of the pool are not worth a sentence.
const IDLE_PART: u64 = 10;
/// Caches that are smaller in sum explain nothing.
const WORTH_NAMING: Bytes = Bytes::from_mib(100);

/// Returns one sentence per kind of entity, the most useful first; empty if the source has none.
pub(crate) fn sentences(cx: &Evidence<'_>) -> Vec<String> {
    let entities: Vec<String> = [cgroup(cx), caches(cx), programs(cx), arc(cx), huge_pages(cx)]
        .into_iter()
        .flatten()
        .collect();
    if entities.is_empty() {
        return free(cx).into_iter().collect();
    }
    entities
}

/// Returns a sentence about the cgroup nearest to its limit, else about the largest one.
fn cgroup(cx: &Evidence<'_>) -> Option<String> {
    let used = |group| cx.timeline.last_of(group, CGROUP_CURRENT);
    let share = |group| -> Option<(Bytes, Bytes, Ratio)> {
        let max = cx.timeline.last_of(group, CGROUP_MAX)?.limited()?;
        Some((used(group)?, max, used(group)?.ratio_of(max)?))
    };
    let limited = cx
        .timeline
        .entities(Entity::Cgroup)
        .filter_map(|group| Some((group, share(group)?)))
        .max_by(|(_, a), (_, b)| a.2.get().total_cmp(&b.2.get()));
    if let Some((group, (used, max, _))) = limited {
        // Without a limit, container runtimes print the host's RAM.
        let all = || cx.timeline.entities(Entity::Cgroup).filter_map(share);
        if !max.get().is_multiple_of(ROUND.get())
            && all().count() > 1
            && all().all(|(_, other, _)| other == max)
        {
            return Some(format!(
                "The cgroup {} uses {used} of {max} ({}), {}. All cgroups show this limit: it is \
                 likely the host's RAM, and none is set.",
                group.key,
                used.ratio_of(max).unwrap_or_default(),
                with_cache(&group.key)
            ));
        }
        return Some(format!(
            "The cgroup {} uses {}, {}.",
            group.key,
            own_limit::words(used, max),
            with_cache(&group.key)
        ));
    }
    let (group, used) = cx
        .timeline
        .entities(Entity::Cgroup)
        .filter_map(|group| Some((group, used(group)?)))
        .max_by_key(|(_, used)| *used)?;
    Some(format!(
        "The cgroup {} uses {used}, {}; no limit is shown.",
        group.key,
        with_cache(&group.key)
    ))
}

/// What of page cache a usage includes: all of it by the cgroup's own files, which name it by its path; the tables of
/// container tools leave out inactive cache, and name it otherwise.
fn with_cache(key: &str) -> &'static str {
    if key.starts_with('/') {
        "page cache included"
    } else {
        "at least its active page cache included"
    }
}

fn caches(cx: &Evidence<'_>) -> Option<String> {
    let last = cx.timeline.len().saturating_sub(1);
    let caches = slab::caches(cx, last);
    let all: Bytes = caches.iter().map(|cache| cache.bytes).sum();
    if all < WORTH_NAMING {
        return None;
    }
    let named: Vec<String> = caches
        .iter()
        .take(NAMED)
        .map(|cache| format!("{} with {}", cache.name, cache.bytes))
        .collect();
    Some(format!("Largest slab caches: {}.", named.join(", ")))
}

fn programs(cx: &Evidence<'_>) -> Option<String> {
    let last = cx.timeline.len().saturating_sub(1);
    let named: Vec<String> = processes::largest(cx, last, NAMED)
        .into_iter()
        .map(|process| format!("{} ({})", process.name, process.what))
        .collect();
    let heading = match named.len() {
        0 => return None,
        1 => "Largest program",
        _ => "Largest programs",
    };
    Some(format!("{heading}: {}.", named.join(", ")))
}

fn arc(cx: &Evidence<'_>) -> Option<String> {
    let arc = cx.timeline.last(ZFS_ARC)?;
    Some(format!("The cache of ZFS (ARC) has {arc}; it shrinks when programs want memory."))
}

/// Returns a sentence about a pool of huge pages of unknown size.
fn huge_pages(cx: &Evidence<'_>) -> Option<String> {
    let last = |signal| cx.timeline.last(signal);
    let (free, total) = (last(HUGEPAGES_FREE)?, last(HUGEPAGES_TOTAL)?);
    let is_known = cx.timeline.last(HUGEPAGE_SIZE).is_some();
    let idle = free.saturating_sub(last(HUGEPAGES_RSVD).unwrap_or_default());
    if is_known || idle == Count::ZERO || idle.get().saturating_mul(IDLE_PART) < total.get() {
        return None;
    }
    Some(format!(
        "{idle} of {total} huge pages are neither used nor reserved by a program; how much memory \
         that is, depends on their size (Hugepagesize in /proc/meminfo)."
    ))
}

/// Returns a sentence about available memory, else about free memory.
fn free(cx: &Evidence<'_>) -> Option<String> {
    if let Some(available) = cx.timeline.last(MEM_AVAILABLE) {
        return Some(format!(
            "{available} are available, an upper bound: it includes page cache that the workload \
             may use."
        ));
    }
    let free = cx.timeline.last(MEM_FREE)?;
    Some(format!("{free} are free; free memory alone proves nothing."))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::testing::Case;
    use timeline::signals::{PROC_RSS_ANON, SLAB_PAGES};
    use units::{Limit, Pages};

    fn shown(case: &Case) -> Vec<String> {
        case.with(sentences)
    }

    #[test]
    fn the_cgroup_nearest_to_its_limit_is_named() {
        let group = |case: Case, key, used, max| {
            case.gauge_of(Entity::Cgroup, key, CGROUP_CURRENT, Bytes::from_mib(used)).gauge_of(
                Entity::Cgroup,
                key,
                CGROUP_MAX,
                Limit::Bytes(Bytes::from_mib(max)),
            )
        };
        let case = group(Case::once(), "/big", 900, 2000);
        let lines = shown(&group(case, "/full", 500, 524));
        assert!(
            lines[0].starts_with("The cgroup /full uses 500 MiB of its limit of 524 MiB (95 %)"),
            "{lines:?}"
        );
    }

    #[test]
    fn a_usage_above_the_limit_is_no_share_of_it() {
        let of = |key, signal| Case::once().gauge_of(Entity::Cgroup, key, CGROUP_CURRENT, signal);
        let limit = Limit::Bytes(Bytes::from_mib(512));
        let case =
            of("/web", Bytes::from_mib(900)).gauge_of(Entity::Cgroup, "/web", CGROUP_MAX, limit);
        let line = shown(&case).concat();
        assert!(line.contains("900 MiB, more than its limit of 512 MiB"), "{line}");
        assert!(!line.contains('%'), "{line}");
    }

    #[test]
    fn large_caches_and_programs_are_named() {
        let case = Case::once()
            .gauge_of(Entity::Slab, "kmalloc-512", SLAB_PAGES, Pages::new(256 * 1400))
            .gauge_of(Entity::Process, "7@1", PROC_RSS_ANON, Bytes::from_mib(2048))
            .named("7@1", "java");
        let lines = shown(&case);
        assert!(lines[0].contains("kmalloc-512 with 1.4 GiB"), "{lines:?}");
        assert_eq!(lines[1], "Largest program: java (2 GiB in RAM).");
    }

    #[test]
    fn free_memory_is_the_last_resort() {
        let lines = shown(&Case::once().gauge(MEM_FREE, Bytes::from_mib(60)));
        assert!(lines[0].starts_with("60 MiB are free"), "{lines:?}");
        let both = Case::once()
            .gauge(MEM_FREE, Bytes::from_mib(60))
            .gauge(MEM_AVAILABLE, Bytes::from_mib(900));
        assert!(shown(&both)[0].starts_with("900 MiB are available"));
        assert!(shown(&Case::once()).is_empty());
    }
}
