//! Locked memory: a large part of RAM that reclaim cannot take.

use timeline::signals::{MEM_AVAILABLE, MEM_MLOCKED, MEM_UNEVICTABLE, PROC_LOCKED};

use crate::prelude::*;

declare_rule! {
    /// A large part of RAM is locked: reclaim cannot take it, however long it is idle.
    ///
    /// ## What it means
    /// `mlock`, `mlockall`, locked shared memory and ramfs put pages on the unevictable list: they are neither swapped
    /// nor dropped. A database or a virtual machine that locks its memory does so on purpose; everything else must then
    /// fit into the remaining RAM, and idle locked pages cannot relieve a shortage there.
    /// ## How it is recognised
    /// Unevictable is {LOCKED_SHARE_LARGE} of RAM or more for {LEVEL}. It is informational, and a warning if less than
    /// {AVAILABLE_LOW_SHARE} of RAM is available at the same time. Per-process figures (VmLck) name the owner; Mlocked
    /// distinguishes locked pages from ramfs and locked segments.
    /// ## Not this
    /// - `hugetlb-unused`: reserved huge pages are never on the list.
    /// - `shmem-growth`: shared memory that is not locked can be swapped.
    /// - Pages pinned for devices (VFIO, RDMA) cannot be moved either, and are in no counter of the host.
    /// ## What to do
    /// Make the locked part smaller (heap, buffer pool, guest memory), or do not lock memory that may be swapped:
    /// `LimitMEMLOCK=` in the unit file; `bootstrap.memory_lock` of Elasticsearch, `lock_sga` of Oracle, `<locked/>` of
    /// libvirt. ramfs has no size limit: use tmpfs. Verify: Unevictable below {LOCKED_SHARE_LARGE} of RAM, or
    /// {AVAILABLE_LOW_SHARE} or more available.
    /// ## References
    /// - kernel Documentation/mm/unevictable-lru.rst
    /// - mlock(2), systemd.exec(5) LimitMEMLOCK
    pub(crate) RULE = {
        id: "locked-memory-large", since: "0.1.0", class: Growth,
        numbers: [LOCKED_SHARE_LARGE, LEVEL, AVAILABLE_LOW_SHARE],
        trigger: trigger, story: story,
        cause: "Programs lock their memory to keep it in RAM, and the kernel can evict only the \
                rest.",
        verify: "memtide check at the same load: {AVAILABLE_LOW_SHARE} of RAM or more available",
        brings_about: WANT_AND_THRASH,
    }
}

/// An engineering choice. Labelled captures, November 2026: 1.3 % at most, the recorder's own memory.
const LOCKED_SHARE_LARGE: Ratio = Ratio::from_percent(25.0);
/// Named processes must lock at least this share of locked memory to explain it.
const EXPLAINS: Ratio = Ratio::from_percent(50.0);
/// Recorders and time servers lock a few megabytes.
const WORTH_NAMING: Bytes = Bytes::from_mib(16);

fn trigger() -> Trigger {
    let large =
        gauge(MEM_UNEVICTABLE).at_least("unevictable memory", ram().share(LOCKED_SHARE_LARGE));
    Trigger::on_host(LEVEL, large)
}

fn story<'a>(cx: &Evidence<'a>, incident: &Incident<'a>) -> Result<Outcome, Missing> {
    let (stretch, ram) = (&incident.stretch, cx.ram()?);
    let unevictable = cx.gauge(MEM_UNEVICTABLE)?;
    let Some((most, index)) = unevictable.max_in(stretch) else {
        return clear!("unevictable memory was not measured");
    };
    let share = cx.of_ram(most)?;
    let available = cx.lowest_in(MEM_AVAILABLE, stretch);
    let little = available.filter(|(left, _)| *left < ram.share(AVAILABLE_LOW_SHARE));
    let lockers = lockers(cx, index);
    let top = lockers.first().filter(|(_, locked)| *locked >= most.share(EXPLAINS));
    let who = top.map_or_else(String::new, |(name, locked)| format!(" ({name} locks {locked})"));
    let left =
        little.map_or_else(String::new, |(left, _)| format!(", and only {left} is available"));
    let title =
        format!("{most} of RAM is locked ({share}), and reclaim cannot take it{who}{left}.");
    let open = if top.is_some() {
        "whether this is intended is unknown"
    } else {
        "processes' VmLck, ipcs and findmnt would show who locks it"
    };
    Ok(RULE
        .found(Severity::warning_if(little.is_some()), title)
        .graph("unevictable memory", &unevictable)
        .shows_from(
            MEM_UNEVICTABLE,
            most,
            ram.share(LOCKED_SHARE_LARGE),
            cx.time(index),
            format!("{most} unevictable, {share} of RAM"),
        )
        .counts_as("the unevictable list")
        .with(cx.level(MEM_MLOCKED, index), |finding, locked| {
            let other = Some(most.saturating_sub(locked)).filter(|other| *other >= WORTH_NAMING);
            let other = other.map_or_else(String::new, |other| {
                format!(
                    ", {other} in ramfs or locked segments"
                )
            });
            finding.shows(
                MEM_MLOCKED,
                locked,
                cx.time(index),
                format!(
                    "{locked} of it is locked by mlock{other}"
                ),
            )
        })
        .with(available, |finding, (left, index)| {
            let text = format!("available fell to {left}");
            finding.shows_below(
                MEM_AVAILABLE,
                left,
                ram.share(AVAILABLE_LOW_SHARE),
                cx.time(index),
                text,
            )
        })
        .counts_if(little.is_some(), "little available")
        .counts_if(top.is_some(), "the processes' own figures")
        .not("hugetlb-unused", "reserved huge pages are not on this list")
        .fix(
            Fix::say(
                "Find out who locks memory, which segments are locked, and what is in ramfs.",
            )
            .inspect(
                "grep -H VmLck /proc/[0-9]*/status | sort -nk2 | tail\nipcs -m\nfindmnt -t ramfs",
            ),
        )
        .fix(Fix::say(
            "Make the locked part smaller (heap, buffer pool, guest memory), or forbid locking \
             with LimitMEMLOCK= in the unit file; it takes effect at the next start.",
        ))
        .affects(lockers.iter().take(3).map(affected))
        .sure_by_kinds(cx, open)
        .into())
}

/// Programs by locked memory around a sample.
fn lockers<'a>(cx: &Evidence<'a>, index: usize) -> Vec<(&'a str, Bytes)> {
    let locked = |process: &EntitySeries, at| cx.timeline.at_of(process, PROC_LOCKED, at);
    let mut programs = processes::programs(cx, index, locked, |all, more| all + more);
    programs.retain(|(_, locked)| *locked >= WORTH_NAMING);
    programs
}

fn affected((name, locked): &(&str, Bytes)) -> Affected {
    Affected::new("process", *name, format!("{locked} locked"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::testing::{Case, amid_calm, clear, found, not_evaluated, times};
    use timeline::signals::{HUGEPAGE_SIZE, HUGEPAGES_TOTAL, MEM_SHMEM, MEM_TOTAL};
    use units::Count;

    const MIB: fn(u64) -> Bytes = Bytes::from_mib;

    /// A host of 1,000 MiB with `locked` MiB locked and `available` MiB available.
    fn host(locked: u64, available: u64) -> Case {
        Case::over(20)
            .gauge(MEM_TOTAL, MIB(1000))
            .gauge(MEM_UNEVICTABLE, MIB(locked))
            .gauge(MEM_MLOCKED, MIB(locked))
            .gauge(MEM_AVAILABLE, MIB(available))
    }

    #[test]
    fn a_database_that_locks_its_buffers_is_informational() {
        let case = host(400, 300)
            .gauge_of(Entity::Process, "9@1", PROC_LOCKED, MIB(390))
            .named("9@1", "oracle");
        let finding = found(RULE, &case);
        assert_eq!(finding.severity, Severity::Info);
        assert!(finding.title.contains("(oracle locks 390 MiB)"), "{}", finding.title);
        assert_eq!(finding.confidence.word(), "confirmed");
        assert_eq!(finding.affected[0].name, "oracle");
    }

    #[test]
    fn a_warning_when_little_is_available() {
        let finding = found(RULE, &host(700, 60));
        assert_eq!(finding.severity, Severity::Warning);
        assert!(finding.title.contains("only 60 MiB is available"), "{}", finding.title);
    }

    #[test]
    fn found_in_a_single_sample() {
        let case = Case::once().gauge(MEM_TOTAL, MIB(1000)).gauge(MEM_UNEVICTABLE, MIB(300));
        assert_eq!(found(RULE, &case).confidence.word(), "probable");
    }

    #[test]
    fn clear_when_only_a_recorder_locks_memory() {
        clear(RULE, &host(6, 800));
    }

    #[test]
    fn clear_with_unlocked_shared_memory_and_huge_pages() {
        let case = host(0, 60)
            .gauge(MEM_SHMEM, MIB(500))
            .gauge(HUGEPAGES_TOTAL, Count::new(200))
            .gauge(HUGEPAGE_SIZE, MIB(2));
        clear(RULE, &case);
    }

    #[test]
    fn finds_30_s_within_an_hour() {
        let hour = |locked| {
            Case::over(3600)
                .gauge(MEM_TOTAL, MIB(1000))
                .gauge_steps(MEM_UNEVICTABLE, &amid_calm(MIB(locked), MIB(5)))
        };
        assert_eq!(times(&found(RULE, &hour(300))), [(1799, 1829)]);
        assert_eq!(
            clear(RULE, &hour(200)),
            "unevictable memory: at most 200 MiB, threshold 250 MiB"
        );
    }

    #[test]
    fn not_evaluated_without_unevictable() {
        assert_eq!(not_evaluated(RULE, &Case::once()).names, ["mem.unevictable"]);
    }
}
