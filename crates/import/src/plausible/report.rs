//! Sizes in a kernel report that are larger than RAM or than their cgroup.

use timeline::KernelReport;
use timeline::kernel_report::{GroupLimit, GroupReport, Killed, ReportTask};
use units::Bytes;

use super::{RAM_MAX, charged_most, drifted, mapped_most};

/// Sizes in memory.stat of a cgroup, cgroup v2 and v1.
const STAT_SIZES: [&str; 11] = [
    "anon",
    "file",
    "kernel",
    "kernel_stack",
    "pagetables",
    "shmem",
    "slab",
    "slab_unreclaimable",
    "cache",
    "rss",
    "mapped_file",
];
/// By how much they may be off: 64 pages of 64 KiB on each of 128 CPUs.
const STAT_DRIFT: Bytes = Bytes::from_mib(512);

/// Drops the figures of a kernel report that are larger than RAM or than their cgroup. Returns whether there was one.
pub(super) fn drop_impossible(report: &mut KernelReport, ram: Option<u64>) -> bool {
    let ram = ram.map_or(RAM_MAX, drifted);
    let mut is_any = false;
    for killed in &mut report.killed {
        is_any |= drop_of_killed(killed, &report.tasks, ram);
    }
    if let Some(group) = &mut report.group {
        is_any |= drop_of_group(group, ram);
    }
    let rows = report.tasks.len() + report.zones.len();
    report.tasks.retain(|task| {
        let is_possible = task.rss.get() <= mapped_most(ram) && task.page_tables.get() <= ram;
        is_possible && task.swap.get() <= RAM_MAX
    });
    report.zones.retain(|zone| {
        let largest = zone.free.max(zone.min).max(zone.low).max(zone.high);
        // With vm.min_free_kbytes too large, watermarks are above the zone.
        let is_known = zone.managed > Bytes::ZERO;
        largest.get() <= RAM_MAX && !(is_known && largest.get() / 2 > zone.managed.get())
    });
    is_any || report.tasks.len() + report.zones.len() < rows
}

/// Drops sizes of a victim above RAM or above its row in the table. Returns whether there was one.
fn drop_of_killed(killed: &mut Killed, tasks: &[ReportTask], ram: u64) -> bool {
    // The table has what it held a moment before.
    let task = tasks.iter().find(|task| task.pid == killed.pid);
    let held = task.map_or(RAM_MAX, |task| charged_most(task.rss));
    let mut is_any = false;
    for (size, most) in [
        (&mut killed.anon, held.min(ram)),
        (&mut killed.page_tables, ram),
        // A page counts as often as it is mapped.
        (&mut killed.file, RAM_MAX),
        (&mut killed.shmem, RAM_MAX),
    ] {
        is_any |= size.take_if(|size| size.get() > most).is_some();
    }
    is_any
}

/// Drops what a cgroup is charged above RAM or its limit, a limit that it is not at, and sizes above what it is charged.
/// Returns whether there was one.
fn drop_of_group(group: &mut GroupReport, ram: u64) -> bool {
    let is_elsewhere =
        [group.swap, group.memory_and_swap, group.kernel].iter().flatten().any(GroupLimit::is_full);
    let is_above = |limit: &GroupLimit| {
        let most = if limit.is_limited() { charged_most(limit.limit) } else { RAM_MAX };
        limit.usage.get() > ram.min(most)
    };
    // The kernel reports a cgroup that is at a limit.
    let is_at_none = |memory: &GroupLimit| {
        memory.is_limited() && memory.usage.get() < memory.limit.get() / 2 && !is_elsewhere
    };
    let of_memory = group.memory.take_if(|it| is_above(it) || is_at_none(it));
    let of_kernel = group.kernel.take_if(|it| is_above(it));
    let charged = group.memory.map_or(ram, |memory| drifted(memory.usage.get()));
    let most = charged.saturating_add(STAT_DRIFT.get());
    let fields = group.stat.len();
    group.stat.retain(|(field, value)| {
        let is_size = STAT_SIZES.contains(&field.trim_start_matches("total_"));
        *value <= if is_size { most } else { RAM_MAX }
    });
    of_memory.is_some() || of_kernel.is_some() || group.stat.len() < fields
}

#[cfg(test)]
mod tests {
    use super::*;
    use timeline::kernel_report::ZoneReport;

    #[test]
    fn a_cgroup_that_is_at_no_limit_and_a_victim_larger_than_its_row_are_misread() {
        let report = |usage: u64, limit: u64, anon: u64| KernelReport {
            group: Some(GroupReport {
                memory: Some(GroupLimit {
                    usage: Bytes::from_mib(usage),
                    limit: Bytes::from_mib(limit),
                    failures: 7,
                }),
                ..GroupReport::default()
            }),
            tasks: vec![ReportTask { pid: 7, rss: Bytes::from_mib(81), ..ReportTask::default() }],
            killed: vec![Killed { pid: 7, anon: Some(Bytes::from_mib(anon)), ..Killed::default() }],
            ..KernelReport::default()
        };
        let left = |usage, limit, anon| {
            let mut report = report(usage, limit, anon);
            let is_any = drop_impossible(&mut report, None);
            let has_limit = report.group.unwrap().memory.is_some();
            (is_any, has_limit, report.killed[0].anon.is_some())
        };
        assert_eq!(left(75, 75, 74), (false, true, true));
        assert_eq!(left(758, 75, 74), (true, false, true));
        assert_eq!(left(75, 758, 74), (true, false, true));
        assert_eq!(left(75, 75, 758), (true, true, false));
    }

    #[test]
    fn sizes_in_a_kernel_report_above_ram_or_their_cgroup_are_dropped() {
        let report = || {
            let killed = Killed {
                anon: Some(Bytes::from_gib(288)),
                file: Some(Bytes::from_mib(1)),
                ..Killed::default()
            };
            let memory = GroupLimit {
                usage: Bytes::from_mib(256),
                limit: Bytes::from_mib(256),
                failures: 7,
            };
            let mib = |count: u64| Bytes::from_mib(count).get();
            let stat = [("file", mib(92 << 10)), ("anon", mib(200)), ("pgfault", mib(92 << 10))];
            KernelReport {
                killed: vec![killed],
                group: Some(GroupReport {
                    memory: Some(memory),
                    stat: stat.map(|(field, value)| (field.to_owned(), value)).into(),
                    ..GroupReport::default()
                }),
                ..KernelReport::default()
            }
        };
        let mut small = report();
        assert!(drop_impossible(&mut small, Some(1 << 30)));
        assert_eq!(small.killed[0].rss(), Some(Bytes::from_mib(1)));
        small.zones = [(4, 1), (1, 4), (9, 4)]
            .map(|(high, managed)| ZoneReport {
                high: Bytes::from_gib(high),
                managed: Bytes::from_gib(managed),
                ..ZoneReport::default()
            })
            .into();
        assert!(drop_impossible(&mut small, Some(1 << 30)));
        assert_eq!(small.zones.len(), 1);
        let mut unknown = report();
        assert!(drop_impossible(&mut unknown, None));
        assert_eq!(unknown.killed[0].anon, Some(Bytes::from_gib(288)));
        for report in [small, unknown] {
            let group = report.group.unwrap();
            let left: Vec<_> = group.stat.iter().map(|(field, _)| field.as_str()).collect();
            assert_eq!(left, ["anon", "pgfault"]);
            assert!(group.memory.is_some());
        }
    }
}
