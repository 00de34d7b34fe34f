//! What a source without MemTotal tells all the same: a group near its limit, the largest slab caches and processes, or at
//! least what is free. No judgement: without the size of RAM there is none.

use timeline::{
    Entity,
    signals::{CGROUP_CURRENT, CGROUP_MAX, MEM_FREE},
};
use units::{Bytes, Ratio};

use crate::evidence::Evidence;
use crate::measures::processes;
use crate::measures::slab;

/// So many caches and processes are named.
const NAMED: usize = 3;
/// A smaller sum of caches explains nothing that anybody would ask about.
const WORTH_NAMING: Bytes = Bytes::from_mib(100);

/// One sentence for each kind of thing that was read, the most telling first; empty where nothing was.
pub(crate) fn tell(cx: &Evidence<'_>) -> Vec<String> {
    let said: Vec<String> = [group(cx), caches(cx), processes(cx)]
        .into_iter()
        .flatten()
        .collect();
    if said.is_empty() {
        return free(cx).into_iter().collect();
    }
    said
}

/// The group nearest to its limit, else the largest.
fn group(cx: &Evidence<'_>) -> Option<String> {
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
    if let Some((group, (used, max, share))) = limited {
        return Some(format!(
            "Control group {} uses {used} of its limit of {max} ({share}), page cache included.",
            group.key
        ));
    }
    let (group, used) = cx
        .timeline
        .entities(Entity::Cgroup)
        .filter_map(|group| Some((group, used(group)?)))
        .max_by_key(|(_, used)| *used)?;
    Some(format!(
        "Control group {} uses {used}, page cache included; no limit is shown.",
        group.key
    ))
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

fn processes(cx: &Evidence<'_>) -> Option<String> {
    let last = cx.timeline.len().saturating_sub(1);
    let named: Vec<String> = processes::largest(cx, last, NAMED)
        .into_iter()
        .map(|process| format!("{} ({})", process.name, process.what))
        .collect();
    (!named.is_empty()).then(|| format!("Largest programs: {}.", named.join(", ")))
}

fn free(cx: &Evidence<'_>) -> Option<String> {
    let free = cx.timeline.last(MEM_FREE)?;
    Some(format!("{free} are free, which alone says little."))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::testing::Case;
    use timeline::signals::{PROC_RSS_ANON, SLAB_PAGES};
    use units::{Limit, Pages};

    fn told(case: &Case) -> Vec<String> {
        case.with(tell)
    }

    #[test]
    fn the_group_nearest_to_its_limit_is_named() {
        let group = |case: Case, key, used, max| {
            case.gauge_of(Entity::Cgroup, key, CGROUP_CURRENT, Bytes::from_mib(used))
                .gauge_of(
                    Entity::Cgroup,
                    key,
                    CGROUP_MAX,
                    Limit::Bytes(Bytes::from_mib(max)),
                )
        };
        let case = group(Case::once(), "/big", 900, 2000);
        let said = told(&group(case, "/full", 500, 524));
        assert!(
            said[0].starts_with("Control group /full uses 500 MiB of its limit of 524 MiB (95 %)"),
            "{said:?}"
        );
    }

    #[test]
    fn large_caches_and_programs_are_named() {
        let case = Case::once()
            .gauge_of(
                Entity::Slab,
                "kmalloc-512",
                SLAB_PAGES,
                Pages::new(256 * 1400),
            )
            .gauge_of(Entity::Process, "7@1", PROC_RSS_ANON, Bytes::from_mib(2048))
            .named("7@1", "java");
        let said = told(&case);
        assert!(said[0].contains("kmalloc-512 with 1.4 GiB"), "{said:?}");
        assert!(said[1].contains("java (2 GiB in RAM)"), "{said:?}");
    }

    #[test]
    fn free_memory_is_told_where_nothing_else_is() {
        let said = told(&Case::once().gauge(MEM_FREE, Bytes::from_mib(60)));
        assert!(said[0].starts_with("60 MiB are free"), "{said:?}");
        assert!(told(&Case::once()).is_empty());
    }
}
