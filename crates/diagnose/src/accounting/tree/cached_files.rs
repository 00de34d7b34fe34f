//! The page cache by file, as a search of the host found them.

use timeline::{CachedDirectory, CachedEntry, CachedFile, CachedFiles};
use units::{Bytes, Count};

use super::shared_objects::process_in_words;
use super::{MemoryNode, others};
use crate::accounting::Accounting;

/// The number of files that are named; the others are one more line.
const NAMED: usize = 12;

impl Accounting {
    /// Returns files of processes, directories and `buffers` as nodes, largest first, and the other files.
    pub(super) fn cached_files(
        &self,
        cached: &CachedFiles,
        buffers: Option<MemoryNode>,
    ) -> Vec<MemoryNode> {
        let (named, rest) = self.largest(&cached.used, NAMED);
        let files = named.iter().map(node);
        let directories = cached.unused.iter().map(|unused| self.directory(unused));
        let mut nodes: Vec<MemoryNode> = files.chain(directories).chain(buffers).collect();
        nodes.retain(|node| node.bytes > Bytes::ZERO);
        nodes.sort_by_key(|node| std::cmp::Reverse(node.bytes));
        let rest_sum = rest.iter().map(|file| file.cached).sum();
        nodes.extend(others(rest.len(), rest_sum));
        nodes
    }

    /// Files below a directory that nobody has, by the entries of the directory.
    fn directory(&self, directory: &CachedDirectory) -> MemoryNode {
        let files = directory.entries.iter().map(|entry| entry.files).sum();
        let files = Count::new(files).named("file", "files");
        let sum = directory.entries.iter().map(|entry| entry.cached).sum();
        let mut node =
            MemoryNode::new(directory.path.clone(), sum).noted(format!("{files}, not open"));
        let (named, rest) = self.largest(&directory.entries, Self::NAMED);
        let entries = named.iter().map(|entry| entry_node(entry, &directory.path));
        node.children = entries.collect();
        let rest_sum = rest.iter().map(|entry| entry.cached).sum();
        node.children.extend(others(rest.len(), rest_sum));
        node
    }
}

fn entry_node(entry: &CachedEntry, directory: &str) -> MemoryNode {
    let CachedFile { path, cached, .. } = &entry.largest;
    let below = path.strip_prefix(directory).unwrap_or(path);
    let below = below.trim_start_matches('/');
    // The entry's name stands before it.
    let below = below.strip_prefix(entry.name.as_str()).unwrap_or(below);
    let below = below.trim_start_matches('/');
    let note = match entry.files {
        1 => String::new(),
        files => format!("{} files, the largest {below} ({cached})", Count::new(files)),
    };
    let name = match entry.name.as_str() {
        "" => "further entries",
        name => name,
    };
    MemoryNode::new(name, entry.cached).noted(note)
}

fn node(file: &CachedFile) -> MemoryNode {
    let users = match (&file.first_user, file.users) {
        (Some(first), 0 | 1) => process_in_words(first),
        (Some(first), users) => format!(
            "{}, {}",
            process_in_words(first),
            Count::new(users - 1).named("other", "others")
        ),
        (None, _) => String::new(),
    };
    let dirty = file.dirty.filter(|dirty| *dirty > Bytes::ZERO);
    let mut node = MemoryNode::new(file.path.clone(), file.cached).noted(users);
    if file.is_cut {
        node.note_also("at least: it was not counted to its end");
    }
    if let Some(dirty) = dirty {
        node.note_also(&format!("{dirty} dirty"));
    }
    node
}

/// Returns what the search could not see, most telling first.
pub(super) fn unseen(cached: &CachedFiles) -> Vec<String> {
    let closed = if cached.unused.is_empty() {
        "files that no process has open now: `memtide where --files-in DIR` names those below a \
         directory"
    } else {
        "files elsewhere that no process has open now"
    };
    let mut unseen = vec![closed.to_owned()];
    if cached.processes_denied > 0 {
        let denied = Count::new(cached.processes_denied).named("process", "processes");
        unseen.push(format!("files of {denied} that this user may not see"));
    }
    if cached.files_denied > 0 {
        let denied = Count::new(cached.files_denied).named("file", "files");
        unseen.push(format!("{denied} or directories that this user may not open"));
    }
    if cached.files_hidden > 0 {
        let hidden = Count::new(cached.files_hidden).named("file", "files");
        unseen.push(format!(
            "{hidden} that are not this user's: the kernel hides which of their pages are in RAM"
        ));
    }
    if cached.files_remote > 0 {
        let remote = Count::new(cached.files_remote).named("open file", "open files");
        unseen.push(format!(
            "{remote} on file systems that may not answer (NFS, FUSE) or have their pages \
             elsewhere (overlay)"
        ));
    }
    if cached.is_cut {
        unseen.push("files left out, as the time was over or they were too many".to_owned());
    }
    unseen
}

#[cfg(test)]
mod tests {
    use timeline::UserProcess;
    use units::Span;

    use super::*;

    fn file(path: &str, mib: u64, users: u64) -> CachedFile {
        CachedFile {
            path: path.to_owned(),
            cached: Bytes::from_mib(mib),
            dirty: Some(Bytes::from_mib(mib / 2)),
            is_cut: false,
            users,
            first_user: (users > 0).then(|| UserProcess {
                pid: 7,
                name: "mariadbd".to_owned(),
                ..UserProcess::default()
            }),
        }
    }

    fn entry(name: &str, mib: u64, files: u64) -> CachedEntry {
        CachedEntry {
            name: name.to_owned(),
            cached: Bytes::from_mib(mib),
            files,
            largest: file(&format!("/var/{name}/big"), mib / 2, 0),
        }
    }

    fn nodes(cached: &CachedFiles, top: Option<usize>) -> Vec<MemoryNode> {
        let accounting = Accounting {
            at: Span::ZERO,
            index: 0,
            total: Bytes::ZERO,
            terms: Vec::new(),
            unaccounted_bytes: 0,
            missing: Vec::new(),
            top,
        };
        let buffers = MemoryNode::new("buffers", Bytes::from_mib(2));
        accounting.cached_files(cached, Some(buffers))
    }

    fn lines(nodes: &[MemoryNode]) -> Vec<String> {
        let line = |node: &MemoryNode| format!("{} {} {}", node.label, node.bytes, node.note);
        nodes.iter().map(line).collect()
    }

    #[test]
    fn files_are_named_with_who_has_them_and_the_others_counted() {
        let mut cached = CachedFiles {
            used: vec![file("/db/a", 9, 3), file("/db/b", 8, 1)],
            ..CachedFiles::default()
        };
        assert_eq!(
            lines(&nodes(&cached, None)),
            [
                "/db/a 9 MiB mariadbd (7), 2 others; 4 MiB dirty",
                "/db/b 8 MiB mariadbd (7); 4 MiB dirty",
                "buffers 2 MiB ",
            ]
        );
        cached.used = vec![file("/x", 1, 1); 20];
        let usual = lines(&nodes(&cached, None));
        assert_eq!(usual.last().unwrap(), "8 others 8 MiB ");
        let chosen = nodes(&cached, Some(18));
        assert_eq!(lines(&chosen).last().unwrap(), "2 others 2 MiB ");
        let buffers = 1;
        assert_eq!(chosen.len(), 18 + buffers + 1);
        assert_eq!(nodes(&cached, Some(100)).len(), 20 + buffers);
    }

    #[test]
    fn a_directory_has_its_largest_entries_and_adds_up() {
        let mut entries = vec![entry("log", 12, 40), entry("one", 4, 1)];
        entries.extend((0..9).map(|_| entry("", 1, 2)));
        let cached = CachedFiles {
            used: vec![file("/db/a", 30, 1)],
            unused: vec![CachedDirectory { path: "/var".to_owned(), entries }],
            ..CachedFiles::default()
        };
        let nodes = nodes(&cached, None);
        assert_eq!(
            lines(&nodes),
            [
                "/db/a 30 MiB mariadbd (7); 15 MiB dirty",
                "/var 25 MiB 59 files, not open",
                "buffers 2 MiB ",
            ]
        );
        let nodes = &nodes[1..];
        let parts = &nodes[0].children;
        assert_eq!(
            lines(&parts[..2]),
            ["log 12 MiB 40 files, the largest big (6 MiB)", "one 4 MiB "]
        );
        assert_eq!(lines(parts).last().unwrap(), "6 others 6 MiB ");
        let sum: Bytes = parts.iter().map(|part| part.bytes).sum();
        assert_eq!(sum, nodes[0].bytes);
    }

    #[test]
    fn what_the_search_could_not_see_is_in_the_remainder() {
        let cached = CachedFiles {
            processes_denied: 1,
            files_denied: 2,
            files_hidden: 4,
            files_remote: 3,
            is_cut: true,
            ..CachedFiles::default()
        };
        let unseen = unseen(&cached).join("; ");
        for part in [
            "files of 1 process that",
            "2 files or directories",
            "4 files that are not this user's",
            "3 open files on",
            "time was over",
        ] {
            assert!(unseen.contains(part), "{unseen}");
        }
    }
}
