//! Owners of memory that no counter names, and the files in the page cache.

use std::path::{Path, PathBuf};

use probe::Root;
use probe::inventory::{SearchedProcess, cached_files};
use timeline::cgroup::GroupNames;
use timeline::signals::{PROC_HUGETLB, PROC_RSS_SHMEM, PROC_SIZE};
use timeline::{Entity, EntitySeries, Inventory, ProcessKey, Source, Timeline};
use units::{Bytes, PageSize};

/// Why a directory is not searched for files in the page cache.
// The message of a variant says what its fields are.
#[allow(missing_docs)]
#[derive(Debug, thiserror::Error)]
pub enum NotSearched {
    /// It cannot be read.
    #[error("cannot search the directory {}", directory.display())]
    Unreadable { directory: PathBuf, source: std::io::Error },
    /// Its files have no pages of a disk in RAM, or its file system may never answer.
    #[error("cannot search the directory {}: {why}", directory.display())]
    NoDisk {
        directory: PathBuf,
        /// What its files are instead.
        why: &'static str,
    },
}

/// Searches this host for owners of memory that no counter names, right after the source's last sample.
pub(super) fn add(root: &Root, source: &mut Source) {
    let known = std::mem::take(&mut source.inventory);
    source.inventory = Inventory {
        cached_files: known.cached_files,
        ..probe::inventory::read(root, searched(&source.timeline, &source.facts.names))
    };
}

/// Searches this host for files in the page cache: those that processes have, and those below directories.
///
/// # Errors
/// [`NotSearched`] if a directory cannot be read, or has no files in the page cache that are on a disk.
pub(super) fn add_cached_files(
    root: &Root,
    source: &mut Source,
    directories: &[PathBuf],
) -> Result<(), NotSearched> {
    let searched_for = directories.iter().map(|directory| {
        let failed = |source| NotSearched::Unreadable { directory: directory.clone(), source };
        let allowed = |path: &Path| match cached_files::refused(root, path) {
            Some(why) => Err(NotSearched::NoDisk { directory: directory.clone(), why }),
            None => Ok(()),
        };
        // Before a file system that never answers is asked.
        let path = std::path::absolute(directory).map_err(failed)?;
        allowed(&path)?;
        // As the kernel lists mounts: without links.
        let path = std::fs::canonicalize(path).map_err(failed)?;
        allowed(&path)?;
        std::fs::read_dir(&path).map_err(failed)?;
        Ok(path)
    });
    let directories: Vec<PathBuf> = searched_for.collect::<Result<_, NotSearched>>()?;
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
        let ProcessKey { pid, start_ticks } = ProcessKey::parse(&process.key);
        Some(SearchedProcess {
            pid: pid.parse().ok()?,
            start_ticks: start_ticks.and_then(|start| start.parse().ok()),
            name: process.label.clone(),
            service: names.service(&process.group),
            shared: timeline.last_of(process, PROC_RSS_SHMEM),
            huge: timeline.last_of(process, PROC_HUGETLB).unwrap_or_default(),
        })
    };
    let processes = timeline.entities(Entity::Process);
    processes.filter_map(searched).collect()
}
