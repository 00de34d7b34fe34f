//! Where is the memory?

use std::fmt;
use std::path::{Path, PathBuf};

use diagnose::Evidence;
use diagnose::accounting::{GroupBy, NoTable, account, by_owner};
use probe::inventory::{SearchedProcess, cached_files};
use probe::{Root, StatusFacts};
use report::model::{WhereByReport, WhereReport};
use timeline::cgroup::GroupNames;
use timeline::signals::{PROC_HUGETLB, PROC_PSS, PROC_RSS_SHMEM, PROC_SIZE};
use timeline::{Entity, EntitySeries, Inventory, Source, SourceKind, Timeline};
use units::{Bytes, PageSize};

/// Returns the answer of `where` about the last sample; `None` if the source has no MemTotal.
pub fn where_memory(source: &Source) -> Option<WhereReport> {
    let evidence = Evidence::new(&source.timeline, &source.facts);
    let last = source.timeline.len().checked_sub(1)?;
    let accounting = account(&evidence, last).ok()?;
    Some(WhereReport::new(source, &accounting))
}

/// Adds what people call the containers, pods and users of a source, from state files of this host. An id of a container
/// is unique, so a source of another host gets no wrong names. Names that a recording has itself stay; of the live host
/// those of now count.
pub fn find_names(root: &Root, source: &mut Source) {
    let timeline = &source.timeline;
    let paths = timeline.entities(Entity::Cgroup).map(|group| &group.key);
    let processes = timeline.entities(Entity::Process);
    let services = processes.map(|process| &process.group);
    let all = paths.chain(services).map(String::as_str);
    let mut names = probe::group_names::read(root, all);
    let known = &mut source.inventory.names;
    if source.origin.kind == SourceKind::Live {
        std::mem::swap(known, &mut names);
    }
    known.fill_from(names);
}

/// Reads the users of the processes at the last sample of this host.
pub fn find_users(root: &Root, source: &mut Source) {
    let users = source
        .timeline
        .entities(Entity::Process)
        .filter_map(|process| {
            let pid = process.key.split('@').next()?;
            let status = root.read(&format!("/proc/{pid}/status")).ok()?;
            Some((process.key.clone(), StatusFacts::parse(&status).uid?))
        });
    source.inventory.process_users = users.collect();
}

/// Returns RAM by owners of one kind, largest first, at the last sample.
///
/// # Errors
/// Why the source has no such table, in a sentence.
pub fn where_by(source: &Source, by: GroupBy) -> Result<WhereByReport, String> {
    let evidence = Evidence::new(&source.timeline, &source.facts);
    let no_total = || "the source has no /proc/meminfo with a MemTotal".to_owned();
    let last = source.timeline.len().checked_sub(1).ok_or_else(no_total)?;
    let table = by_owner(&evidence, last, by, &source.inventory).map_err(|why| match why {
        NoTable::NoTotal(_) => no_total(),
        NoTable::NoOwners(why) => why,
    })?;
    Ok(WhereByReport::new(source, &table))
}

/// Searches this host for owners of memory that no counter names, and for names of containers, right after the source's
/// last sample.
pub fn find_owners(root: &Root, source: &mut Source) {
    find_names(root, source);
    let known = std::mem::take(&mut source.inventory);
    source.inventory = Inventory {
        names: known.names.clone(),
        cached_files: known.cached_files,
        ..probe::inventory::read(root, searched(&source.timeline, &known.names))
    };
}

/// Searches this host for files in the page cache: those that processes have, and those below directories.
///
/// # Errors
/// Which directory cannot be read, and why, in a sentence.
pub fn find_cached_files(
    root: &Root,
    source: &mut Source,
    directories: &[PathBuf],
) -> Result<(), String> {
    let searched_for = directories.iter().map(|directory| {
        let failed = |why: &dyn fmt::Display| {
            format!("cannot search the directory {}: {why}", directory.display())
        };
        let allowed = |path: &Path| match cached_files::refused(root, path) {
            Some(why) => Err(failed(&why)),
            None => Ok(()),
        };
        // Before a file system that never answers is asked.
        let path = std::path::absolute(directory).map_err(|why| failed(&why))?;
        allowed(&path)?;
        // As the kernel lists mounts: without links.
        let path = std::fs::canonicalize(path).map_err(|why| failed(&why))?;
        allowed(&path)?;
        std::fs::read_dir(&path).map_err(|why| failed(&why))?;
        Ok(path)
    });
    let directories: Vec<PathBuf> = searched_for.collect::<Result<_, String>>()?;
    let processes = searched(&source.timeline, &source.inventory.names);
    let page = source.facts.page_size.unwrap_or(PageSize::USUAL);
    let found = cached_files::read(root, &processes, &directories, page);
    source.inventory.cached_files = Some(found);
    Ok(())
}

/// The processes to search: those with memory of their own.
fn searched(timeline: &Timeline, names: &GroupNames) -> Vec<SearchedProcess> {
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
    let processes = timeline.entities(Entity::Process);
    processes.filter_map(searched).collect()
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
