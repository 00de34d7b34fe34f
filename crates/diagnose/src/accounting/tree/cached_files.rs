//! The page cache by file, as a search of the host found them.

use timeline::{CachedFile, CachedFiles};
use units::{Bytes, Count};

use super::shared_objects::process_in_words;
use super::{MemoryNode, others};

/// The number of files that are named; the others are one more line.
const NAMED: usize = 12;

/// Returns the files as nodes, largest first.
pub(super) fn nodes(cached: &CachedFiles) -> Vec<MemoryNode> {
    let (named, rest) = cached.files.split_at(cached.files.len().min(NAMED));
    let mut nodes: Vec<MemoryNode> = named.iter().map(node).collect();
    let rest_bytes: Bytes = rest.iter().map(|file| file.cached).sum();
    let count = rest.len() + usize::try_from(cached.others).unwrap_or(usize::MAX - rest.len());
    nodes.extend(others(count, rest_bytes + cached.others_bytes));
    nodes
}

fn node(file: &CachedFile) -> MemoryNode {
    let users = match (&file.first_user, file.users) {
        (Some(first), 0 | 1) => process_in_words(first),
        (Some(first), users) => format!(
            "{}, {}",
            process_in_words(first),
            Count::new(users - 1).named("other", "others")
        ),
        (None, _) => "not open".to_owned(),
    };
    let dirty = file.dirty.filter(|dirty| *dirty > Bytes::ZERO);
    let mut node = MemoryNode::new(file.path.clone(), file.cached).noted(users);
    if let Some(dirty) = dirty {
        node.note_also(&format!("{dirty} dirty"));
    }
    node
}

/// Returns what the search could not see, most telling first.
pub(super) fn unseen(cached: &CachedFiles) -> Vec<String> {
    let mut unseen = vec![
        "files that no process has open now: `memtide where --files-in DIR` names those below a directory"
            .to_owned(),
    ];
    if cached.processes_denied > 0 {
        let denied = Count::new(cached.processes_denied).named("process", "processes");
        unseen.push(format!(
            "files of {denied} that this user may not see: ask as root"
        ));
    }
    if cached.files_denied > 0 {
        let denied = Count::new(cached.files_denied).named("file", "files");
        unseen.push(format!("{denied} of others: ask as root"));
    }
    if cached.files_remote > 0 {
        let remote = Count::new(cached.files_remote).named("open file", "open files");
        unseen.push(format!(
            "{remote} on file systems that may not answer (NFS, FUSE)"
        ));
    }
    if cached.is_cut {
        unseen.push("what was left when the time was over".to_owned());
    }
    unseen
}

#[cfg(test)]
mod tests {
    use timeline::UserProcess;

    use super::*;

    fn file(path: &str, mib: u64, users: u64) -> CachedFile {
        CachedFile {
            path: path.to_owned(),
            cached: Bytes::from_mib(mib),
            dirty: Some(Bytes::from_mib(mib / 2)),
            users,
            first_user: (users > 0).then(|| UserProcess {
                pid: 7,
                name: "mariadbd".to_owned(),
                ..UserProcess::default()
            }),
        }
    }

    #[test]
    fn files_are_named_with_who_has_them_and_the_others_counted() {
        let mut cached = CachedFiles {
            files: vec![file("/db/a", 9, 3), file("/db/b", 8, 1), file("/log", 2, 0)],
            others: 4,
            others_bytes: Bytes::from_mib(1),
            ..CachedFiles::default()
        };
        let lines = |cached: &CachedFiles| -> Vec<_> {
            let nodes = nodes(cached).into_iter();
            nodes
                .map(|node| format!("{} {} {}", node.label, node.bytes, node.note))
                .collect()
        };
        assert_eq!(
            lines(&cached),
            [
                "/db/a 9 MiB mariadbd (7), 2 others; 4 MiB dirty",
                "/db/b 8 MiB mariadbd (7); 4 MiB dirty",
                "/log 2 MiB not open; 1 MiB dirty",
                "4 others 1 MiB ",
            ]
        );
        cached.files = vec![file("/x", 1, 0); 20];
        assert_eq!(lines(&cached).last().unwrap(), "12 others 9 MiB ");
    }

    #[test]
    fn what_the_search_could_not_see_is_in_the_remainder() {
        let cached = CachedFiles {
            processes_denied: 1,
            files_denied: 2,
            files_remote: 3,
            is_cut: true,
            ..CachedFiles::default()
        };
        let unseen = unseen(&cached).join("; ");
        for part in [
            "files of 1 process that",
            "2 files of others",
            "3 open files on",
            "time was over",
        ] {
            assert!(unseen.contains(part), "{unseen}");
        }
    }
}
