//! A report as a sample: the same rows as from the kernel's files, so that every rule can read it.

use timeline::facts::CgroupMode;
use timeline::kernel_report::{GroupLimit, GroupReport, Killed, ReportTask, ZoneReport};
use timeline::signals::{
    CGROUP_CURRENT, CGROUP_EVENTS_MAX, CGROUP_MAX, CGROUP_SWAP_CURRENT, CGROUP_SWAP_MAX,
    PROC_OOM_ADJ, PROC_PAGE_TABLES, PROC_RSS, PROC_RSS_ANON, PROC_RSS_FILE, PROC_RSS_SHMEM,
    PROC_SIZE, PROC_SWAP, SLAB_PAGES, ZONE_BLOCKS, ZONE_BOOST, ZONE_FREE, ZONE_FREE_CMA, ZONE_HIGH,
    ZONE_LOW, ZONE_MANAGED, ZONE_MIN, ZONE_PCP, ZONE_PROTECTION,
};
use timeline::{Entity, EntityRow, KernelReport, Sample};
use units::{Bytes, Count, Limit, PageSize, Pages};

use super::draft::USUAL_PAGE;
use crate::CgroupFiles;

/// Writes the content of a report into a sample.
pub fn fill(report: &KernelReport, sample: &mut Sample) {
    let page = report.page_size.unwrap_or(USUAL_PAGE);
    for (signal, raw) in report.host.iter() {
        sample.host.set_raw(signal, raw);
    }
    // Old kernels also print zones without memory.
    let is_populated = |zone: &&ZoneReport| zone.managed > Bytes::ZERO || zone.free > Bytes::ZERO;
    for zone in report.zones.iter().filter(is_populated) {
        let row = sample.table_mut(Entity::Zone).add();
        row.key = format!("{}/{}", zone.node, zone.name);
        fill_zone(zone, page, row);
    }
    if let Some(group) = &report.group {
        let row = sample.table_mut(Entity::Cgroup).add();
        let path = if group.path.is_empty() { "/" } else { &group.path };
        row.key.push_str(path);
        fill_group(group, row);
    }
    for cache in &report.slabs {
        let row = sample.table_mut(Entity::Slab).add();
        row.key.push_str(&cache.name);
        row.row.set(SLAB_PAGES, pages(cache.total, page));
    }
    for task in &report.tasks {
        let row = sample.table_mut(Entity::Process).add();
        name(row, task.pid, &task.name);
        fill_task(task, page, row);
    }
    for killed in &report.killed {
        if report.tasks.iter().all(|task| task.pid != killed.pid) {
            let row = sample.table_mut(Entity::Process).add();
            name(row, killed.pid, &killed.name);
            fill_killed(killed, page, row);
        }
    }
}

fn pages(size: Bytes, page: PageSize) -> Pages {
    Pages::new(size.get() / page.bytes().get())
}

fn fill_zone(zone: &ZoneReport, page: PageSize, row: &mut EntityRow) {
    let row = &mut row.row;
    for (signal, size) in [
        (ZONE_FREE, zone.free),
        (ZONE_MIN, zone.min),
        (ZONE_LOW, zone.low),
        (ZONE_HIGH, zone.high),
        (ZONE_BOOST, zone.boost),
        (ZONE_PCP, zone.free_pcp),
        (ZONE_FREE_CMA, zone.free_cma),
    ] {
        row.set(signal, pages(size, page));
    }
    // A line that is cut off does not have it.
    if zone.managed > Bytes::ZERO || zone.free == Bytes::ZERO {
        row.set(ZONE_MANAGED, pages(zone.managed, page));
    }
    if let Some(reserve) = zone.reserve.iter().max() {
        row.set(ZONE_PROTECTION, pages(*reserve, page));
    }
    for (signal, blocks) in ZONE_BLOCKS.iter().zip(&zone.blocks) {
        row.set(*signal, Count::new(blocks.count));
    }
}

fn fill_group(group: &GroupReport, row: &mut EntityRow) {
    let row = &mut row.row;
    let limit = |limit: &GroupLimit| {
        if limit.is_limited() { Limit::Bytes(limit.limit) } else { Limit::Unlimited }
    };
    // The v2 names come first; those of v1 differ, or mean the same.
    let text: String = group.stat.iter().map(|(name, value)| format!("{name} {value}\n")).collect();
    for mode in [CgroupMode::V1, CgroupMode::V2] {
        // The kernel's text here is the same as in its file; a malformed line affects only itself.
        let _ = CgroupFiles::default().parse(mode, "memory.stat", text.as_bytes(), row);
    }
    if let Some(memory) = &group.memory {
        row.set(CGROUP_CURRENT, memory.usage);
        row.set(CGROUP_MAX, limit(memory));
        row.set(CGROUP_EVENTS_MAX, Count::new(memory.failures));
    }
    if let Some(swap) = &group.swap {
        row.set(CGROUP_SWAP_CURRENT, swap.usage);
        row.set(CGROUP_SWAP_MAX, limit(swap));
    }
}

/// Sets the name of a process; a report lacks its start time.
fn name(row: &mut EntityRow, pid: u32, name: &str) {
    row.key = format!("{pid}@0");
    row.label.push_str(name);
}

fn fill_task(task: &ReportTask, page: PageSize, row: &mut EntityRow) {
    let row = &mut row.row;
    row.set(PROC_SIZE, task.total_vm);
    row.set(PROC_RSS, pages(task.rss, page));
    row.set(PROC_PAGE_TABLES, task.page_tables);
    row.set(PROC_SWAP, task.swap);
    if let Some((anon, file, shmem)) = task.rss_by_kind {
        row.set(PROC_RSS_ANON, anon);
        row.set(PROC_RSS_FILE, file);
        row.set(PROC_RSS_SHMEM, shmem);
    }
    set_adj(task.oom_score_adj, row);
}

fn fill_killed(killed: &Killed, page: PageSize, row: &mut EntityRow) {
    let row = &mut row.row;
    for (signal, size) in [
        (PROC_SIZE, killed.total_vm),
        (PROC_RSS_ANON, killed.anon),
        (PROC_RSS_FILE, killed.file),
        (PROC_RSS_SHMEM, killed.shmem),
        (PROC_PAGE_TABLES, killed.page_tables),
    ] {
        if let Some(size) = size {
            row.set(signal, size);
        }
    }
    if let Some(rss) = killed.rss() {
        row.set(PROC_RSS, pages(rss, page));
    }
    if let Some(adj) = killed.oom_score_adj {
        set_adj(adj, row);
    }
}

/// Sets the score, which the catalogue shifts so that it is never negative.
fn set_adj(adj: i32, row: &mut timeline::Row) {
    if let Ok(shifted) = u64::try_from(adj.saturating_add(1000)) {
        row.set(PROC_OOM_ADJ, Count::new(shifted));
    }
}
