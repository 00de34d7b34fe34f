//! What fills the page cache now: by unit or cgroup, by directory, by file.
//!
//! By cgroup it is the kernel's own count, of all pages. Files are those that a search found ([`probe::inventory`]): open and
//! mapped ones, removed ones among them, and closed ones below directories that were walked. How much of the cache that explains
//! belongs to the answer.

use std::collections::BTreeMap;

use report::Screen;
use report::text::{Style, TextPage, piece};
use schemars::JsonSchema;
use serde::Serialize;
use timeline::cgroup::{GroupNames, parent};
use timeline::signals::{CGROUP_FILE, CGROUP_SHMEM, MEM_BUFFERS, MEM_CACHED, MEM_SHMEM};
use timeline::{CachedFile, Entity, Source};
use units::{Bytes, Count, Ratio};

use crate::screen::{more, table};
use crate::words::short;

/// The schema of the answer.
pub const CACHED_SCHEMA: &str = "memtide-cached/1";

/// Rows of each kind in the answer, and on a screen.
const ROWS_MAX: usize = 1000;
const SHOWN_MAX: usize = 8;

/// The mark of the kernel on a path that leads to a removed file.
const REMOVED: &str = " (deleted)";

/// What fills the page cache.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct CachedNow {
    /// Always [`CACHED_SCHEMA`] here.
    pub schema: String,
    /// Pages of files on disks, and of disks themselves: Cached + Buffers - Shmem of `/proc/meminfo`.
    pub cache_bytes: Bytes,
    /// Of that, what is in files that are named here or counted in directories.
    pub named_bytes: Bytes,
    /// Of that, files that a process has open or mapped.
    pub open_bytes: Bytes,
    /// By cgroup, each without those below it; the largest first, a thousand at most.
    pub groups: Vec<CachedGroup>,
    /// By directory; the largest first, a thousand at most.
    pub directories: Vec<CachedPlace>,
    /// Files, the largest first, a thousand at most: open ones, and the largest of each directory.
    pub files: Vec<CachedOne>,
    /// Processes with files that this user may not see.
    pub processes_denied: Count,
    /// Files that this user may not open, and files with pages that the kernel does not count for this user.
    pub files_denied: Count,
    /// Whether files were left out, as the time was over or they were too many.
    pub is_cut: bool,
}

/// A cgroup and its files in the cache.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CachedGroup {
    /// Its unit or container, or its path.
    pub name: String,
    /// Its path below the mount of the hierarchy.
    pub cgroup: String,
    /// Pages of files that are charged to it: whoever reads a page first is charged.
    pub bytes: Bytes,
}

/// A directory and the files below it that are in the cache.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CachedPlace {
    /// Its path in this mount namespace.
    pub path: String,
    /// Pages of files below it.
    pub bytes: Bytes,
    /// How many files those are.
    pub files: Count,
}

/// A file in the cache.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CachedOne {
    /// Its path, as the process sees it that has it open.
    pub path: String,
    /// Its pages in the cache.
    pub bytes: Bytes,
    /// Of these, not yet written; `null` before Linux 6.5.
    pub dirty_bytes: Option<Bytes>,
    /// Whether it has no name any more.
    pub is_removed: bool,
    /// How many processes have it open or mapped.
    pub users: Count,
    /// The first of them that was found, and its unit.
    pub user: Option<String>,
}

impl CachedNow {
    /// What a source of this host shows, with files that were searched for right after its last sample.
    pub fn of(source: &Source) -> Self {
        let timeline = &source.timeline;
        let size = |signal| timeline.last(signal).unwrap_or_default();
        let found = source.inventory.cached_files.clone().unwrap_or_default();
        let closed = || {
            found
                .unused
                .iter()
                .flat_map(|place| place.entries.iter().map(move |entry| (place, entry)))
        };
        let open_bytes: Bytes = found.used.iter().map(|file| file.cached).sum();
        let closed_bytes: Bytes = closed().map(|(_, entry)| entry.cached).sum();
        let mut directories: BTreeMap<String, (Bytes, u64)> = BTreeMap::new();
        let mut add = |path: String, bytes: Bytes, files: u64| {
            let row = directories.entry(path).or_default();
            *row = (row.0 + bytes, row.1 + files);
        };
        for (place, entry) in closed() {
            add(below(&place.path, &entry.name), entry.cached, entry.files);
        }
        for file in &found.used {
            add(two_levels(&file.path), file.cached, 1);
        }
        let mut directories: Vec<CachedPlace> = directories
            .into_iter()
            .map(|(path, (bytes, files))| CachedPlace { path, bytes, files: Count::new(files) })
            .collect();
        directories.sort_by_key(|place| std::cmp::Reverse(place.bytes));
        directories.truncate(ROWS_MAX);
        let largest = closed().map(|(_, entry)| &entry.largest);
        let mut files: Vec<CachedOne> =
            found.used.iter().chain(largest).map(CachedOne::of).collect();
        files.sort_by_key(|file| std::cmp::Reverse(file.bytes));
        files.truncate(ROWS_MAX);
        Self {
            schema: CACHED_SCHEMA.to_owned(),
            cache_bytes: (size(MEM_CACHED) + size(MEM_BUFFERS)).saturating_sub(size(MEM_SHMEM)),
            named_bytes: open_bytes + closed_bytes,
            open_bytes,
            groups: groups(source),
            directories,
            files,
            processes_denied: Count::new(found.processes_denied),
            files_denied: Count::new(found.files_denied + found.files_hidden),
            is_cut: found.is_cut,
        }
    }

    /// The share of the cache that is named.
    pub fn coverage(&self) -> Option<Ratio> {
        self.named_bytes.min(self.cache_bytes).ratio_of(self.cache_bytes)
    }
}

impl CachedOne {
    fn of(file: &CachedFile) -> Self {
        let path = file.path.strip_suffix(REMOVED);
        let user = file.first_user.as_ref().map(|user| match user.service.as_str() {
            "" => format!("{} ({})", user.name, user.pid),
            service => format!("{} ({}), {service}", user.name, user.pid),
        });
        Self {
            path: path.unwrap_or(&file.path).to_owned(),
            bytes: file.cached,
            dirty_bytes: file.dirty,
            is_removed: path.is_some(),
            users: Count::new(file.users),
            user,
        }
    }
}

fn groups(source: &Source) -> Vec<CachedGroup> {
    let timeline = &source.timeline;
    let files = |key: &str| {
        let series = timeline.entity(Entity::Cgroup, key)?;
        let shmem = timeline.last_of(series, CGROUP_SHMEM).unwrap_or_default();
        Some(timeline.last_of(series, CGROUP_FILE)?.saturating_sub(shmem))
    };
    let keys: Vec<&str> =
        timeline.entities(Entity::Cgroup).map(|series| series.key.as_str()).collect();
    let mut below: BTreeMap<&str, Bytes> = BTreeMap::new();
    for key in &keys {
        if let (Some(above), Some(bytes)) = (parent(key), files(key)) {
            *below.entry(above).or_default() += bytes;
        }
    }
    let group = |key: &&str| {
        let bytes = files(key)?.saturating_sub(below.get(key).copied().unwrap_or_default());
        let name = GroupNames::default().called(key).into_owned();
        (bytes > Bytes::ZERO).then(|| CachedGroup { name, cgroup: (*key).to_owned(), bytes })
    };
    let mut groups: Vec<CachedGroup> = keys.iter().filter_map(group).collect();
    groups.sort_by_key(|group| std::cmp::Reverse(group.bytes));
    groups.truncate(ROWS_MAX);
    groups
}

fn below(directory: &str, name: &str) -> String {
    format!("{}/{name}", directory.trim_end_matches('/'))
}

/// The first two directories of a file's path, as closed files are counted below directories of the root.
fn two_levels(path: &str) -> String {
    let above = path.rsplit_once('/').map_or("", |(above, _)| above);
    let parts: Vec<&str> = above.split('/').filter(|part| !part.is_empty()).take(2).collect();
    format!("/{}", parts.join("/"))
}

/// Returns the screen.
pub fn cached_screen(now: &CachedNow, screen: &Screen) -> String {
    let rows_max = if screen.detail == report::text::Detail::All { usize::MAX } else { SHOWN_MAX };
    let mut page = TextPage::new(screen);
    let coverage = now.coverage().map_or_else(String::new, |share| format!(" ({share})"));
    let says = format!(
        "{} of the page cache are of disks and their files. {}{coverage} of it are named: {} are open or \
         mapped, {} are closed files.",
        now.cache_bytes,
        now.named_bytes,
        now.open_bytes,
        now.named_bytes.saturating_sub(now.open_bytes)
    );
    page.hanging(&[], 0, Style::Strong, &says);
    let mut rows = |head: &[&str], rows: Vec<Vec<String>>, (one, many): (&str, &str)| {
        if rows.is_empty() {
            return;
        }
        let all = rows.len();
        let titles = head.iter().map(|cell| (*cell).to_owned()).collect();
        page.gap();
        table(
            &mut page,
            &[titles].into_iter().chain(rows.into_iter().take(rows_max)).collect::<Vec<_>>(),
        );
        more(&mut page, all, rows_max, one, many);
    };
    let groups = now.groups.iter().map(|group| vec![group.name.clone(), group.bytes.to_string()]);
    rows(&["charged to", "in the cache"], groups.collect(), ("cgroup", "cgroups"));
    let places = now
        .directories
        .iter()
        .map(|place| vec![place.path.clone(), place.bytes.to_string(), place.files.to_string()]);
    rows(&["directory", "in the cache", "files"], places.collect(), ("directory", "directories"));
    let files = now.files.iter().map(|file| {
        let removed = if file.is_removed { ", removed" } else { "" };
        let others = match file.users.get() {
            0 | 1 => String::new(),
            users => format!(" and {} others", users - 1),
        };
        let user = file.user.as_ref().map_or_else(|| "closed".to_owned(), Clone::clone);
        vec![
            format!("{}{removed}", short(&file.path)),
            file.bytes.to_string(),
            file.dirty_bytes
                .filter(|dirty| *dirty > Bytes::ZERO)
                .map_or_else(String::new, |dirty| dirty.to_string()),
            format!("{user}{others}"),
        ]
    });
    rows(&["file", "in the cache", "dirty", "open in"], files.collect(), ("file", "files"));
    page.gap();
    let mut notes = vec![
        "A page is charged to the cgroup that touched it first, and stays charged when that is gone: then to the one above."
            .to_owned(),
    ];
    if now.is_cut {
        notes.push("Files were left out: the time was over, or they were too many.".to_owned());
    }
    if now.processes_denied.get() + now.files_denied.get() > 0 {
        notes.push(format!(
            "{} and {} are not this user's to see.",
            now.processes_denied.named("process", "processes"),
            now.files_denied.named("file", "files")
        ));
    }
    for says in notes {
        page.hanging(&[piece(Style::Faint, "- ")], 2, Style::Faint, &says);
    }
    page.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_open_file_counts_in_the_second_directory_of_its_path() {
        for (path, directory) in [
            ("/var/lib/mysql/a/ibdata1", "/var/lib"),
            ("/swap", "/"),
            ("/etc/passwd", "/etc"),
            ("relative", "/"),
        ] {
            assert_eq!(two_levels(path), directory);
        }
    }
}
