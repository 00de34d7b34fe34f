//! What people call the containers, pods, services and users of a source.

use probe::{Root, StatusFacts};
use timeline::{Entity, Source, SourceKind};

/// Adds what people call the containers, pods and users of a source, from state files of this host. An id of a container
/// is unique, so a source of another host gets no wrong names. Names that a recording has itself stay; of the live host
/// those of now count.
pub(crate) fn add(root: &Root, source: &mut Source) {
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
pub(super) fn add_users(root: &Root, source: &mut Source) {
    let users = source.timeline.entities(Entity::Process).filter_map(|process| {
        let pid = process.pid();
        let status = root.read(&format!("/proc/{pid}/status")).ok()?;
        Some((process.key.clone(), StatusFacts::parse(&status).uid?))
    });
    source.inventory.process_users = users.collect();
}
