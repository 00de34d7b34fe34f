//! Where is the memory?

use diagnose::Evidence;
use diagnose::accounting::account;
use probe::Root;
use probe::inventory::SearchedProcess;
use report::model::WhereReport;
use timeline::signals::{PROC_HUGETLB, PROC_PSS, PROC_RSS_SHMEM, PROC_SIZE};
use timeline::{Entity, EntitySeries, Source, Timeline};
use units::Bytes;

/// Returns the answer of `where` about the last sample; `None` if the source has no MemTotal.
pub fn where_memory(source: &Source) -> Option<WhereReport> {
    let evidence = Evidence::new(&source.timeline, &source.facts);
    let last = source.timeline.len().checked_sub(1)?;
    let accounting = account(&evidence, last).ok()?;
    Some(WhereReport::new(source, &accounting))
}

/// Reads what people call the containers, pods and users of a source, from state files of this host. An id of a container
/// is unique, so a source of another host gets no wrong names.
pub fn find_names(root: &Root, source: &mut Source) {
    let timeline = &source.timeline;
    let paths = timeline.entities(Entity::Cgroup).map(|group| &group.key);
    let processes = timeline.entities(Entity::Process);
    let services = processes.map(|process| &process.group);
    let all = paths.chain(services).map(String::as_str);
    source.inventory.names = probe::group_names::read(root, all);
}

/// Searches this host for owners of memory that no counter names, and for names of containers, right after the source's
/// last sample.
pub fn find_owners(root: &Root, source: &mut Source) {
    find_names(root, source);
    let names = std::mem::take(&mut source.inventory.names);
    let timeline = &source.timeline;
    let searched = |process: &EntitySeries| {
        // Kernel threads have no memory of their own.
        timeline
            .last_of(process, PROC_SIZE)
            .filter(|size| *size > Bytes::ZERO)?;
        let (pid, start) = process.key.split_once('@')?;
        Some(SearchedProcess {
            pid: pid.parse().ok()?,
            start_ticks: start.parse().ok(),
            name: process.label.clone(),
            service: names.service(&process.group),
            shared: timeline.last_of(process, PROC_RSS_SHMEM),
            huge: timeline.last_of(process, PROC_HUGETLB).unwrap_or_default(),
        })
    };
    let processes = timeline.entities(Entity::Process).filter_map(searched);
    source.inventory = probe::inventory::read(root, processes.collect());
    source.inventory.names = names;
}

/// Returns how many processes have memory but no proportional share (PSS), because it was not read.
pub fn pss_not_read(timeline: &Timeline) -> u64 {
    let unread = timeline.entities(Entity::Process).filter(|process| {
        // Kernel threads have no memory of their own.
        timeline.last_of(process, PROC_SIZE) > Some(Bytes::ZERO)
            && timeline.last_of(process, PROC_PSS).is_none()
    });
    unread.count() as u64
}
