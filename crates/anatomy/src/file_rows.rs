//! Mapped files by what they cost: how much of each is resident here, in the page cache, and mapped by others.

use std::collections::HashMap;

use probe::{
    FileCacheUse, FileKey, FileUsers, MapFiles, MappedFile, Mapping, Root, SharerBudget, Sharers,
    SmapsBlock,
};
use units::{Bytes, PageSize};

use crate::find_allocators::key_of;
use crate::sizes::PartSizes;

/// A file that the process maps, shared memory included.
#[allow(missing_docs)] // names say it
#[derive(Debug, Clone, PartialEq)]
pub struct FileRow {
    /// Its path or name, as bytes.
    pub name: Vec<u8>,
    /// Whether it was removed since it was mapped.
    pub is_deleted: bool,
    /// Which file it is.
    pub key: FileKey,
    /// Costs of all its mappings together.
    pub sizes: PartSizes,
    /// Number of its mappings.
    pub mappings: usize,
    pub length: Option<Bytes>,
    /// How much of the whole file is in the page cache.
    pub cached: PageCache,
    /// Other processes that map it; `None` if it was not among the files that were searched for.
    pub users: Option<FileUsers>,
}

/// The page cache of a file, or why it is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PageCache {
    /// As the kernel counts it.
    Known(FileCacheUse),
    /// This user may not open the file, or not ask.
    NotPermitted,
    /// It is no regular file, beyond the number of files that are examined, or too large to be counted in time.
    NotAsked,
}

/// What was learned of the mapped files.
#[derive(Debug, Clone, Default)]
pub struct MappedFiles {
    /// The largest by resident size first, at most [`ROWS_MAX`].
    pub rows: Vec<FileRow>,
    /// Files beyond that number.
    pub left_out: usize,
    /// Processes that could not be searched for other users: the counts are lower bounds if there are any.
    pub processes_unread: usize,
}

/// Rows that are kept.
pub const ROWS_MAX: usize = 256;
/// Files for which the page cache is examined.
const CACHED_MAX: usize = 64;
/// Files for which other users are searched.
const SEARCHED_MAX: usize = 32;

impl MappedFiles {
    /// Groups the mappings by file; nothing is read.
    pub fn of(blocks: &[SmapsBlock]) -> Self {
        let mut index: HashMap<FileKey, usize> = HashMap::new();
        let mut rows: Vec<FileRow> = Vec::new();
        for block in blocks.iter().filter(|block| !block.mapping.is_anonymous()) {
            let mapping = &block.mapping;
            let key = key_of(mapping);
            let at = *index.entry(key).or_insert_with(|| {
                rows.push(row(mapping));
                rows.len() - 1
            });
            rows[at].sizes.add(&PartSizes::of(block));
            rows[at].mappings += 1;
        }
        rows.sort_by_key(|row| std::cmp::Reverse((row.sizes.rss, row.sizes.virtual_size)));
        let left_out = rows.len().saturating_sub(ROWS_MAX);
        rows.truncate(ROWS_MAX);
        Self { rows, left_out, processes_unread: 0 }
    }

    /// Reads length and page cache of the largest files.
    pub fn read_cache(&mut self, root: &Root, pid: u32, blocks: &[SmapsBlock], page: PageSize) {
        let mut first: HashMap<FileKey, &Mapping> = HashMap::new();
        for mapping in blocks.iter().map(|block| &block.mapping) {
            first.entry(key_of(mapping)).or_insert(mapping);
        }
        let files = MapFiles::of(root, pid);
        for row in self.rows.iter_mut().take(CACHED_MAX) {
            let Some(mapping) = first.get(&row.key) else {
                continue;
            };
            match files.open(mapping) {
                Ok(file) => {
                    row.length = Some(file.size());
                    row.cached = page_cache(&file, page);
                }
                Err(error) => {
                    let refused = error.source.kind() == std::io::ErrorKind::PermissionDenied;
                    row.cached =
                        if refused { PageCache::NotPermitted } else { PageCache::NotAsked };
                }
            }
        }
    }

    /// Searches other processes for the largest files.
    pub fn search_users(&mut self, root: &Root, pid: u32, budget: SharerBudget) {
        let keys: Vec<FileKey> = self.rows.iter().take(SEARCHED_MAX).map(|row| row.key).collect();
        let found = Sharers::search(root, pid, &keys, budget);
        for (row, users) in self.rows.iter_mut().zip(found.files) {
            row.users = Some(users);
        }
        self.processes_unread = found.unread;
    }
}

fn row(mapping: &Mapping) -> FileRow {
    let name = mapping.path().unwrap_or(&mapping.name);
    FileRow {
        name: name.to_vec(),
        is_deleted: mapping.is_deleted(),
        key: key_of(mapping),
        sizes: PartSizes::default(),
        mappings: 0,
        length: None,
        cached: PageCache::NotAsked,
        users: None,
    }
}

fn page_cache(file: &MappedFile, page: PageSize) -> PageCache {
    match file.cached(page) {
        Ok(cached) => PageCache::Known(cached),
        Err(errno) => match std::io::Error::from(errno).kind() {
            std::io::ErrorKind::PermissionDenied => PageCache::NotPermitted,
            _ => PageCache::NotAsked,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mappings_of_one_file_are_one_row() {
        let text = b"1000-2000 r--p 0 fe:0 7 /lib/a\nRss: 4 kB\n2000-4000 r-xp 0 fe:0 7 /lib/a\nRss: 8 kB\n\
            5000-9000 rw-s 0 0:1 9 /memfd:x (deleted)\nRss: 16 kB\n9000-a000 rw-p 0 0:0 0\nRss: 4 kB\n";
        let mut blocks = Vec::new();
        probe::parse_smaps(text, &mut |block| blocks.push(block));
        let files = MappedFiles::of(&blocks);
        let [memfd, library] = &files.rows[..] else {
            panic!("{files:?}");
        };
        assert_eq!((memfd.name.as_slice(), memfd.is_deleted), (b"/memfd:x".as_slice(), true));
        assert_eq!((library.mappings, library.sizes.rss), (2, Bytes::from_kib(12)));
    }

    #[test]
    fn this_processs_libraries_are_in_the_page_cache() {
        let (root, pid) = (Root::default(), std::process::id());
        let mut blocks = Vec::new();
        probe::each_smaps_block(&root, pid, &mut |block| blocks.push(block)).unwrap();
        let mut files = MappedFiles::of(&blocks);
        files.read_cache(&root, pid, &blocks, PageSize::USUAL);
        let libc = files.rows.iter().find(|row| {
            let name = String::from_utf8_lossy(&row.name);
            name.contains("/libc.so") || name.contains("/libc-2")
        });
        let libc = libc.unwrap();
        assert!(libc.length.unwrap() > Bytes::from_kib(500));
        match libc.cached {
            PageCache::Known(cache) => assert!(cache.cached >= Bytes::from_kib(500)),
            PageCache::NotPermitted => {}
            PageCache::NotAsked => panic!("{libc:?}"),
        }
    }
}
