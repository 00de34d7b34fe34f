//! Reads the facts of the host again once a minute: a changed tunable is an event, and all facts are stored with it.

use std::collections::BTreeSet;

use probe::Root;
use timeline::{Event, EventKind, Facts, Stamp};

use crate::watch::read_again;

/// The last known facts of the host.
#[derive(Debug)]
pub(crate) struct FactsWatch {
    root: Root,
    known: Facts,
}

impl FactsWatch {
    /// Watches the host below `root`; its facts are `known`.
    pub(crate) fn new(root: &Root, known: Facts) -> Self {
        Self { root: root.clone(), known }
    }

    /// Reads the facts again. If something changed, returns the new facts and the events of the changes that are worth
    /// one.
    pub(crate) fn poll(&mut self, now: Stamp) -> Option<(Facts, Vec<Event>)> {
        // A fact that cannot be read this time keeps its value, and changes reported before are cleared.
        let mut facts = self.known.clone();
        facts.forget_changes();
        read_again(&self.root, now.boot, &mut facts);
        let mut events: Vec<Event> = facts
            .changes()
            .iter()
            .map(|change| Event::of_change(now, change.fact.name, &change.from, &change.to))
            .collect();
        events.extend(structural(&self.known, &facts, now));
        let is_changed = !events.is_empty() || self.known.memory_mounts != facts.memory_mounts;
        self.known = facts;
        is_changed.then(|| (self.known.clone(), events))
    }
}

/// Returns changes of the host's hardware and mounts. File systems in RAM come and go with each login, and loop devices
/// with each mounted package: they are not events.
fn structural(before: &Facts, after: &Facts, now: Stamp) -> Vec<Event> {
    let mut events = Vec::new();
    if let (Some(from), Some(to)) = (before.cpus, after.cpus)
        && from != to
    {
        let (from, to) = (from.to_string(), to.to_string());
        events.push(Event::of_change(now, "cpus", &from, &to));
    }
    let nodes = |facts: &Facts| facts.nodes.iter().map(|node| node.id.to_string()).collect();
    let disks = |facts: &Facts| {
        let names = facts.disks.iter().map(|disk| disk.name.clone());
        names.filter(|name| !name.starts_with("loop")).collect()
    };
    for (what, before, after) in
        [("NUMA node", nodes(before), nodes(after)), ("disk", disks(before), disks(after))]
    {
        events.extend(came_and_went(what, &before, &after, now));
    }
    events
}

fn came_and_went(
    what: &str,
    before: &BTreeSet<String>,
    after: &BTreeSet<String>,
    now: Stamp,
) -> Vec<Event> {
    let event = |name: &String, verb: &str| Event {
        stamp: now,
        kind: EventKind::FactChanged,
        subject: name.clone(),
        text: format!("{what} {name} {verb}"),
        report: String::new(),
    };
    let came = after.difference(before).map(|name| event(name, "came"));
    let went = before.difference(after).map(|name| event(name, "is gone"));
    came.chain(went).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use probe::host_facts;
    use units::Span;

    fn write(directory: &std::path::Path, file: &str, text: &str) {
        let path = directory.join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    #[test]
    fn a_changed_tunable_is_told_once_and_one_that_is_gone_is_not() {
        let directory = tempfile::tempdir().unwrap();
        let root = Root::at(directory.path());
        write(directory.path(), "proc/sys/vm/swappiness", "60\n");
        write(directory.path(), "proc/stat", "cpu 1 2\ncpu0 1 2\n");
        let mut known = Facts::default();
        host_facts::read(&root, Span::ZERO, &mut known);
        let mut watch = FactsWatch::new(&root, known);
        let texts = |watch: &mut FactsWatch| -> Vec<String> {
            let now = Stamp::default();
            let found = watch.poll(now).into_iter().flat_map(|(_, events)| events);
            found.map(|event| event.text).collect()
        };
        assert_eq!(texts(&mut watch), [""; 0]);
        write(directory.path(), "proc/sys/vm/swappiness", "10\n");
        assert_eq!(texts(&mut watch), ["vm.swappiness changed from 60 to 10"]);
        assert_eq!(texts(&mut watch), [""; 0]);
        std::fs::remove_file(directory.path().join("proc/sys/vm/swappiness")).unwrap();
        assert_eq!(texts(&mut watch), [""; 0]);
        write(directory.path(), "sys/block/sdb/queue/rotational", "1\n");
        assert_eq!(texts(&mut watch), ["disk sdb came"]);
        write(directory.path(), "sys/block/sdc/queue/rotational", "1\n");
        std::fs::remove_dir_all(directory.path().join("sys/block/sdb")).unwrap();
        assert_eq!(texts(&mut watch), ["disk sdc came", "disk sdb is gone"]);
        let of_now = watch.known.changes().len();
        assert_eq!(of_now, 0, "changes must not pile up for months");
    }

    #[test]
    fn a_change_is_told_with_the_look_before_it() {
        let directory = tempfile::tempdir().unwrap();
        let root = Root::at(directory.path());
        write(directory.path(), "proc/sys/vm/swappiness", "60\n");
        let mut known = Facts::default();
        host_facts::read(&root, Span::from_secs(100), &mut known);
        let mut watch = FactsWatch::new(&root, known);
        let at = |second| Stamp { boot: Span::from_secs(second), ..Stamp::default() };
        assert!(watch.poll(at(160)).is_none());
        write(directory.path(), "proc/sys/vm/swappiness", "10\n");
        let (facts, _) = watch.poll(at(220)).unwrap();
        let [change] = facts.changes() else { panic!("{:?}", facts.changes()) };
        assert_eq!(change.since, Some(Span::from_secs(160)));
        assert_eq!(change.at, Span::from_secs(220));
    }
}
