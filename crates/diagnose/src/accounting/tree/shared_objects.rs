//! Shared memory by object, as a search of the host found them: file systems, files without a name, segments.
//!
//! Objects of one name and one owner are a line. Sizes that count pages in swap are estimates while swap is in use.

use std::collections::BTreeMap;

use timeline::{
    SharedKind, SharedMeasure, SharedMemory, SharedObject, SystemVSegment, UserProcess,
};
use units::{Bytes, Count};

use super::{MemoryNode, largest, others};

/// The number of objects that are named; the others are one more line.
const NAMED: usize = 6;

/// Objects in one line.
struct ObjectLine<'a> {
    /// The largest of them.
    first: &'a SharedObject,
    label: String,
    objects: u64,
    users: u64,
    bytes: Bytes,
    is_estimate: bool,
}

/// Returns the objects as nodes, the `top` largest first.
pub(super) fn nodes(
    shared: &SharedMemory,
    is_swap_used: bool,
    top: Option<usize>,
) -> Vec<MemoryNode> {
    let mut lines: BTreeMap<(String, &str), ObjectLine<'_>> = BTreeMap::new();
    let mut objects: Vec<&SharedObject> = shared.objects.iter().collect();
    objects.sort_by_key(|object| std::cmp::Reverse(object.bytes));
    for (index, object) in objects.into_iter().enumerate() {
        let mut key = (label(object), owner(object).map_or("", owner_name));
        if is_alone(object) {
            key.0 = format!("{} {index}", key.0);
        }
        let line = lines.entry(key).or_insert_with(|| ObjectLine {
            first: object,
            label: label(object),
            objects: 0,
            users: 0,
            bytes: Bytes::ZERO,
            is_estimate: false,
        });
        line.objects += 1;
        line.users = line.users.max(object.users);
        line.bytes += object.bytes;
        line.is_estimate |= match object.measure {
            SharedMeasure::InRam => false,
            SharedMeasure::InRamOrSwap => is_swap_used,
            SharedMeasure::Mapped => true,
        };
    }
    let mut lines: Vec<ObjectLine<'_>> = lines.into_values().collect();
    lines.retain(|line| line.bytes > Bytes::ZERO);
    lines.sort_by(|a, b| {
        let size = b.bytes.cmp(&a.bytes);
        size.then_with(|| a.label.cmp(&b.label))
    });
    let (named, rest) = largest(&lines, top, NAMED);
    let mut nodes: Vec<MemoryNode> = named.iter().map(node).collect();
    nodes.extend(
        others(rest.len(), rest.iter().map(|line| line.bytes).sum())
            .map(|node| node.estimated(rest.iter().any(|line| line.is_estimate))),
    );
    nodes
}

/// Returns what the search could not see, most telling first.
pub(super) fn unseen(shared: &SharedMemory) -> Vec<String> {
    let mut unseen = Vec::new();
    if let Some(denied) = &shared.largest_denied {
        let denied = process_in_words(denied);
        let more = and_more(shared.processes_denied.saturating_sub(1));
        unseen.push(format!("files of {denied}{more}: this user may not see them"));
    }
    if shared.processes_left_out > 0 {
        let left_out = Count::new(shared.processes_left_out).named("process", "processes");
        unseen.push(format!("{left_out} not searched, as the time was over"));
    }
    if !shared.unknown_mounts.is_empty() {
        let mounts = shared.unknown_mounts.iter().take(NAMED);
        let mounts: Vec<&str> = mounts.map(String::as_str).collect();
        let more = and_more((shared.unknown_mounts.len() - mounts.len()) as u64);
        let mounts = mounts.join(", ");
        unseen.push(format!("tmpfs that is hidden, closed or unlimited: {mounts}{more}"));
    }
    if shared.is_mounts_cut {
        unseen.push("tmpfs of containers not searched, as the time was over".to_owned());
    }
    unseen
}

fn and_more(n: u64) -> String {
    match n {
        0 => String::new(),
        n => format!(" and {} more", Count::new(n)),
    }
}

/// Whether it has a line of its own: a file system or segment is one thing, whatever its name.
fn is_alone(object: &SharedObject) -> bool {
    matches!(object.kind, SharedKind::FileSystem { .. } | SharedKind::SystemV(_))
}

fn label(object: &SharedObject) -> String {
    match &object.kind {
        SharedKind::FileSystem { point, .. } => point.clone(),
        SharedKind::Memfd(name) => format!("memfd:{name}"),
        SharedKind::Mapping => "shared mapping".to_owned(),
        SharedKind::SystemV(segment) => format!("System V segment {}", segment.id),
    }
}

fn owner(object: &SharedObject) -> Option<&UserProcess> {
    match &object.kind {
        SharedKind::FileSystem { seen_by, .. } => seen_by.as_ref(),
        SharedKind::Memfd(_) | SharedKind::Mapping => object.first_user.as_ref(),
        SharedKind::SystemV(segment) => segment.creator.as_ref().or(object.first_user.as_ref()),
    }
}

/// Returns the service of a process, or else its name.
fn owner_name(process: &UserProcess) -> &str {
    if process.service.is_empty() { &process.name } else { &process.service }
}

fn node(line: &ObjectLine<'_>) -> MemoryNode {
    let note = match &line.first.kind {
        SharedKind::FileSystem { kind, limit, seen_by, .. } => {
            let place = seen_by.as_ref().map_or_else(String::new, |process| {
                format!(", mounted for {}", process_in_words(process))
            });
            format!("{kind}, at most {limit}{place}")
        }
        SharedKind::SystemV(segment) => segment_in_words(segment, line.first),
        SharedKind::Memfd(_) | SharedKind::Mapping => users_in_words(line),
    };
    MemoryNode::new(line.label.clone(), line.bytes).noted(note).estimated(line.is_estimate)
}

/// Names a process, with its service.
pub(super) fn process_in_words(process: &UserProcess) -> String {
    let UserProcess { pid, name, service } = process;
    match (name.as_str(), service.as_str()) {
        ("", _) => format!("PID {pid}"),
        (name, "") => format!("{name} ({pid})"),
        (name, service) => format!("{name} ({pid}) of {service}"),
    }
}

fn users_in_words(line: &ObjectLine<'_>) -> String {
    let mut words = Vec::new();
    if line.objects > 1 {
        words.push(format!("{} of them", Count::new(line.objects)));
    }
    let first = line.first.first_user.as_ref();
    words.extend(first.map(process_in_words));
    match line.users.saturating_sub(1) {
        0 => {}
        n => words.push(format!("shared with {}", Count::new(n).named("other", "others"))),
    }
    words.join(", ")
}

fn segment_in_words(segment: &SystemVSegment, object: &SharedObject) -> String {
    let mut words = vec![match segment.attached.max(object.users) {
        0 => "detached".to_owned(),
        n => format!("attached by {}", Count::new(n).named("process", "processes")),
    }];
    let creator = segment.creator.as_ref();
    words.extend(creator.map(|process| format!("made by {}", process_in_words(process))));
    let last = segment.last_user.as_ref().filter(|last| Some(*last) != creator);
    words.extend(last.map(|process| format!("last used by {}", process_in_words(process))));
    if creator.is_none() {
        words.extend(object.first_user.as_ref().map(process_in_words));
    }
    words.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(pid: u32, name: &str) -> UserProcess {
        UserProcess { pid, name: name.to_owned(), ..UserProcess::default() }
    }

    fn object(kind: SharedKind, mib: u64, users: u64) -> SharedObject {
        SharedObject {
            kind,
            bytes: Bytes::from_mib(mib),
            measure: SharedMeasure::InRamOrSwap,
            users,
            first_user: (users > 0).then(|| user(7, "java")),
        }
    }

    fn memfd(name: &str, mib: u64, users: u64) -> SharedObject {
        object(SharedKind::Memfd(name.to_owned()), mib, users)
    }

    fn lines_of(objects: Vec<SharedObject>) -> Vec<(String, u64, String)> {
        let shared = SharedMemory { objects, ..SharedMemory::default() };
        let nodes = nodes(&shared, false, None).into_iter();
        nodes.map(|node| (node.label, node.bytes.get() >> 20, node.note)).collect()
    }

    fn line(label: &str, mib: u64, note: &str) -> (String, u64, String) {
        (label.to_owned(), mib, note.to_owned())
    }

    #[test]
    fn files_of_one_name_and_owner_are_one_line() {
        let mut others = memfd("pool", 3, 1);
        others.first_user = Some(user(9, "node"));
        let lines =
            lines_of(vec![memfd("pool", 4, 3), memfd("pool", 2, 1), others, memfd("", 0, 1)]);
        let expected = [
            line("memfd:pool", 6, "2 of them, java (7), shared with 2 others"),
            line("memfd:pool", 3, "node (9)"),
        ];
        assert_eq!(lines, expected);
    }

    #[test]
    fn a_file_system_names_its_limit_and_whom_it_is_mounted_for() {
        let file_system = |mib, seen_by| {
            let kind = SharedKind::FileSystem {
                point: "/dev/shm".to_owned(),
                kind: "tmpfs".to_owned(),
                limit: Bytes::from_mib(64),
                seen_by,
            };
            object(kind, mib, 0)
        };
        let service = UserProcess { service: "db.service".to_owned(), ..user(8, "postgres") };
        let lines = lines_of(vec![file_system(5, None), file_system(9, Some(service))]);
        let expected = [
            line("/dev/shm", 9, "tmpfs, at most 64 MiB, mounted for postgres (8) of db.service"),
            line("/dev/shm", 5, "tmpfs, at most 64 MiB"),
        ];
        assert_eq!(lines, expected);
    }

    #[test]
    fn a_segment_names_its_creator_and_its_last_user() {
        let segment = |attached, creator, last_user| {
            let segment = SystemVSegment {
                id: 3,
                attached,
                creator: Some(creator),
                last_user: Some(last_user),
            };
            object(SharedKind::SystemV(segment), 80, 0)
        };
        for (segment, note) in [
            (
                segment(0, user(4711, ""), user(5, "psql")),
                "detached, made by PID 4711, last used by psql (5)",
            ),
            (
                segment(1, user(5, "psql"), user(5, "psql")),
                "attached by 1 process, made by psql (5)",
            ),
        ] {
            let lines = lines_of(vec![segment]);
            assert_eq!(lines, [line("System V segment 3", 80, note)]);
        }
    }

    #[test]
    fn sizes_with_pages_in_swap_are_estimates_and_the_small_ones_are_together() {
        let objects = (1..=8).map(|i| memfd(&i.to_string(), i, 1)).collect();
        let shared = SharedMemory { objects, ..SharedMemory::default() };
        for is_swap_used in [true, false] {
            let nodes = nodes(&shared, is_swap_used, None);
            assert_eq!(nodes.len(), NAMED + 1);
            let expected = MemoryNode::new("2 others", Bytes::from_mib(3)).estimated(is_swap_used);
            assert_eq!(nodes[NAMED], expected);
        }
    }

    #[test]
    fn what_was_not_searched_is_named() {
        let shared = SharedMemory {
            unknown_mounts: (0..8).map(|i| format!("/{i}")).collect(),
            processes_denied: 3,
            largest_denied: Some(user(1, "init")),
            processes_left_out: 20,
            is_mounts_cut: true,
            ..SharedMemory::default()
        };
        let expected = [
            "files of init (1) and 2 more: this user may not see them",
            "20 processes not searched, as the time was over",
            "tmpfs that is hidden, closed or unlimited: /0, /1, /2, /3, /4, /5 and 2 more",
            "tmpfs of containers not searched, as the time was over",
        ];
        assert_eq!(unseen(&shared), expected);
    }
}
