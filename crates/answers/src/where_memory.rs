//! Where is the memory?

use std::fmt;
use std::path::{Path, PathBuf};

use diagnose::Evidence;
use diagnose::accounting::{GroupBy, NoTable, account, by_owner};
use probe::inventory::{SearchedProcess, cached_files};
use probe::{Root, StatusFacts};
use report::model::{WhereByReport, WhereReport};
use timeline::cgroup::GroupNames;
use timeline::signals::{MEM_TOTAL, PROC_HUGETLB, PROC_PSS, PROC_RSS, PROC_RSS_SHMEM, PROC_SIZE};
use timeline::{Entity, EntitySeries, Inventory, Source, SourceKind, Timeline};
use units::{Bytes, PageSize, Ratio};

/// Returns the answer of `where` about the last sample; `None` if the source has no MemTotal. Each part names its `top`
/// largest owners, caches and files.
pub fn where_memory(source: &Source, top: Option<usize>) -> Option<WhereReport> {
    let evidence = Evidence::new(&source.timeline, &source.facts);
    let last = source.timeline.len().checked_sub(1)?;
    let mut accounting = account(&evidence, last).ok()?;
    accounting.top = top;
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
    let known = &mut source.facts.names;
    if source.origin.kind == SourceKind::Live {
        std::mem::swap(known, &mut names);
    } else {
        // Numbers of users mean others on other hosts.
        names.users.clear();
    }
    known.fill_from(names);
}

/// Reads the users of the processes at the last sample of this host.
pub fn find_users(root: &Root, source: &mut Source) {
    let users = source.timeline.entities(Entity::Process).filter_map(|process| {
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
        cached_files: known.cached_files,
        ..probe::inventory::read(root, searched(&source.timeline, &source.facts.names))
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
    let processes = searched(&source.timeline, &source.facts.names);
    let page = source.facts.page_size.unwrap_or(PageSize::USUAL);
    let found = cached_files::read(root, &processes, &directories, page);
    source.inventory.cached_files = Some(found);
    Ok(())
}

/// The processes to search: those with memory of their own.
fn searched(timeline: &Timeline, names: &GroupNames) -> Vec<SearchedProcess> {
    let searched = |process: &EntitySeries| {
        // Kernel threads have no memory of their own.
        timeline.last_of(process, PROC_SIZE).filter(|size| *size > Bytes::ZERO)?;
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

/// Less of the RSS of all processes than this share, or of RAM, would change no figure that a reader acts on: an engineering
/// choice.
const UNREAD_OF_RSS_MIN: Ratio = Ratio::from_percent(10.0);
const UNREAD_OF_RAM_MIN: Ratio = Ratio::from_percent(1.0);

/// Returns how many processes have memory but no proportional share (PSS), because it was not read; 0 if they have little.
pub fn much_without_pss(source: &Source) -> u64 {
    let timeline = &source.timeline;
    let page = source.facts.page_size.unwrap_or(PageSize::USUAL);
    let resident = |process: &EntitySeries| {
        let rss = timeline.last_of(process, PROC_RSS).unwrap_or_default();
        rss.to_bytes(page)
    };
    let all = || {
        // Kernel threads have no memory of their own.
        timeline
            .entities(Entity::Process)
            .filter(|process| timeline.last_of(process, PROC_SIZE) > Some(Bytes::ZERO))
    };
    let unread = || all().filter(|process| timeline.last_of(process, PROC_PSS).is_none());
    let sum: Bytes = unread().map(resident).sum();
    let rss: Bytes = all().map(resident).sum();
    let ram = timeline.last(MEM_TOTAL).unwrap_or_default();
    let is_much = sum >= rss.share(UNREAD_OF_RSS_MIN) && sum >= ram.share(UNREAD_OF_RAM_MIN);
    if is_much { unread().count() as u64 } else { 0 }
}

#[cfg(test)]
mod tests {
    use timeline::Sample;
    use units::{Pages, Span};

    use super::*;

    /// A host of 1 GiB with a process of which the PSS was read, and one of this RSS without.
    fn host(unread_mib: u64) -> Source {
        let mut sample = Sample::at(Span::ZERO);
        sample.host.set(MEM_TOTAL, Bytes::from_gib(1));
        for (key, mib) in [("1@1", 40), ("2@2", unread_mib)] {
            let row = &mut sample.table_mut(Entity::Process).entry(key).row;
            row.set(PROC_SIZE, Bytes::from_gib(1));
            row.set(PROC_RSS, Pages::new(mib * 256));
            if key == "1@1" {
                row.set(PROC_PSS, Bytes::from_mib(mib));
            }
        }
        let mut source = Source::default();
        source.timeline.push(&sample).unwrap();
        source
    }

    #[test]
    fn a_missing_pss_counts_where_much_memory_is_without_one() {
        for (unread_mib, processes) in [(0, 0), (4, 0), (9, 0), (11, 1), (400, 1)] {
            let much = much_without_pss(&host(unread_mib));
            assert_eq!(much, processes, "{unread_mib} MiB");
        }
    }
}
