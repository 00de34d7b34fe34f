//! Units, containers, pods, users and cgroups by what the kernel charges to their cgroups.

use std::collections::BTreeMap;

use timeline::cgroup::{GroupName, GroupNames, ROOT, ancestors, parent, unique_name};
use timeline::signals::{CGROUP_CURRENT, CGROUP_HIGH, CGROUP_MAX};
use timeline::{Entity, EntitySeries};
use units::Bytes;

use super::{GroupBy, OwnerRow, OwnersFound, RestRow, first_read};
use crate::accounting::tree::and_others;
use crate::evidence::Evidence;

/// A cgroup that an owner has: its path, and what identifies the owner.
type OwnedGroup = (String, String);

/// Returns the owners of this kind; else why there are none, in a sentence.
pub(super) fn owners(cx: &Evidence<'_>, index: usize, by: GroupBy) -> Result<OwnersFound, String> {
    let no_groups = || {
        let by = by.name();
        format!(
            "this source has no memory of cgroups, which `--by {by}` needs; `--by process` needs \
             none"
        )
    };
    let at = cx.all_rows_at(Entity::Cgroup, index).ok_or_else(no_groups)?;
    let used = charged(cx, at);
    if used.is_empty() {
        return Err(no_groups());
    }
    let (sizes, paths) = sizes(&used, by);
    let rows: Vec<OwnerRow> = sizes
        .iter()
        .filter_map(|(key, bytes)| {
            let path = paths.get(key)?;
            Some(row(cx, at, by, (key, path, *bytes)))
        })
        .collect();
    let all: Bytes = used
        .iter()
        .filter(|(path, _)| path.rfind('/') == Some(0) && path.len() > 1)
        .map(|(_, bytes)| *bytes)
        .sum();
    let owned: Bytes = sizes.values().copied().sum();
    let first = first_read(cx, Entity::Cgroup).map(|first| {
        let (sizes, _) = self::sizes(&charged(cx, first), by);
        (first, sizes)
    });
    let (others, none) = words(by, rows.is_empty());
    let empty = none.map(|none| at_other_times(cx, by).unwrap_or(none));
    let is_whole = cx.timeline.all_read_before(Entity::Cgroup, at) == Some(at);
    let busiest = (!is_whole)
        .then(|| "Only the busiest cgroups were read at that time: others are missing.".to_owned());
    Ok(OwnersFound {
        rows,
        others: others.map(|label| RestRow { label, bytes: all.saturating_sub(owned) }),
        rest: "charged to no cgroup below the root: the kernel, drivers, early page cache",
        measured: "charged to cgroups, with their page cache and kernel memory",
        is_estimate: false,
        at,
        first,
        unknown: empty.into_iter().chain(busiest).collect(),
    })
}

/// Names owners that the source has at other times; `None` if there are none.
fn at_other_times(cx: &Evidence<'_>, by: GroupBy) -> Option<String> {
    const NAMED_MAX: usize = 3;
    let groups = cx.timeline.entities(Entity::Cgroup);
    let owners = groups.filter(|group| owner_at(&group.key, by).is_some());
    let names: Vec<String> = owners.map(|group| named(&group.key, by, &cx.facts.names).0).collect();
    let (first, rest) = names.split_at(names.len().min(NAMED_MAX));
    let rest = and_others(rest.len() as u64);
    let by = by.name();
    (!first.is_empty()).then(|| {
        format!(
            "There is no {by} at that time; at others there are {}{rest}: `--at` chooses one.",
            first.join(", ")
        )
    })
}

/// Names other cgroups, and says what a table without rows means.
fn words(by: GroupBy, is_empty: bool) -> (Option<&'static str>, Option<String>) {
    let (others, none) = match by {
        GroupBy::Unit => ("in cgroups of no unit", "No cgroup is a service or scope of systemd."),
        GroupBy::Container => {
            ("in cgroups of no container", "No cgroup is a container of a known runtime.")
        }
        GroupBy::Pod => ("in cgroups of no pod", "No cgroup is a pod."),
        GroupBy::User => (
            "in cgroups of no user: system services, containers",
            "No cgroup is a user's; owners of processes are read on a live host only.",
        ),
        _ => return (None, None),
    };
    (Some(others), is_empty.then(|| none.to_owned()))
}

/// Returns what is charged to each cgroup and those below it, by path.
fn charged<'a>(cx: &Evidence<'a>, at: usize) -> BTreeMap<&'a str, Bytes> {
    let timeline = cx.timeline;
    let groups = timeline.entities(Entity::Cgroup);
    groups
        .filter_map(|group| Some((&*group.key, timeline.at_of(group, CGROUP_CURRENT, at)?)))
        .collect()
}

/// Returns the owner that begins at this cgroup; `None` if none does.
pub(super) fn owner_at(path: &str, by: GroupBy) -> Option<String> {
    let name = GroupName::of(path);
    let (at, key) = match by {
        GroupBy::Unit => name.unit.map(|it| (it.path, it.path.to_owned()))?,
        GroupBy::Container => name.container.map(|it| (it.path, owner_key(it.path, it.what.id)))?,
        GroupBy::Pod => name.pod.map(|it| (it.path, owner_key(it.path, &it.what.uid())))?,
        GroupBy::User => name.user.map(|it| (it.path, it.what.to_string()))?,
        _ if path == ROOT => return None,
        _ => (path, path.to_owned()),
    };
    (at == path).then_some(key)
}

/// Identifies the container or pod of this id: others than the host's systemd may give its id to a cgroup elsewhere.
fn owner_key(path: &str, id: &str) -> String {
    match parent(path).filter(|_| unique_name(path) == path) {
        Some(above) => format!("{above}/{id}"),
        None => id.to_owned(),
    }
}

/// Returns each owner's memory without that of owners within it, and the path of its largest cgroup.
fn sizes(
    used: &BTreeMap<&str, Bytes>,
    by: GroupBy,
) -> (BTreeMap<String, Bytes>, BTreeMap<String, String>) {
    let owned: Vec<OwnedGroup> =
        used.keys().filter_map(|path| Some(((*path).to_owned(), owner_at(path, by)?))).collect();
    let mut own: BTreeMap<&str, Bytes> =
        owned.iter().filter_map(|(path, _)| Some((&**path, *used.get(&**path)?))).collect();
    for (path, _) in &owned {
        let outer = ancestors(path).skip(1).find(|outer| own.contains_key(*outer));
        if let Some(outer) = outer.and_then(|outer| own.get_mut(outer)) {
            *outer = outer.saturating_sub(used.get(&**path).copied().unwrap_or_default());
        }
    }
    let mut sizes: BTreeMap<String, Bytes> = BTreeMap::new();
    let mut paths: BTreeMap<String, String> = BTreeMap::new();
    for (path, key) in &owned {
        let size = sizes.entry(key.clone()).or_default();
        *size += own.get(&**path).copied().unwrap_or_default();
        let known = paths.entry(key.clone()).or_insert_with(|| path.clone());
        if used.get(&**known) < used.get(&**path) {
            known.clone_from(path);
        }
    }
    (sizes, paths)
}

fn row(
    cx: &Evidence<'_>,
    at: usize,
    by: GroupBy,
    (key, path, bytes): (&str, &str, Bytes),
) -> OwnerRow {
    let group = cx.timeline.entity(Entity::Cgroup, path);
    let limit = group.and_then(|group| own_limit_at(cx, group, at));
    let used = group.and_then(|group| cx.timeline.at_of(group, CGROUP_CURRENT, at));
    let (name, note) = named(path, by, &cx.facts.names);
    OwnerRow {
        key: key.to_owned(),
        name,
        note,
        bytes,
        limit,
        of_limit: used.zip(limit).and_then(|(used, limit)| used.ratio_of(limit)),
        ..OwnerRow::default()
    }
}

/// Returns the tighter one of the cgroup's own limits, if it is below RAM.
pub(crate) fn own_limit_at(cx: &Evidence<'_>, group: &EntitySeries, at: usize) -> Option<Bytes> {
    let ram = cx.ram().ok();
    [CGROUP_MAX, CGROUP_HIGH]
        .into_iter()
        .filter_map(|signal| cx.timeline.at_of(group, signal, at)?.limited())
        .filter(|limit| *limit > Bytes::ZERO && ram.is_none_or(|ram| *limit < ram))
        .min()
}

/// Returns what people call an owner, and what else its path says.
pub(super) fn named(path: &str, by: GroupBy, names: &GroupNames) -> (String, String) {
    let name = GroupName::of(path);
    let known = names.innermost(path).unwrap_or_else(|| path.to_owned());
    match by {
        GroupBy::Pod => {
            let pod = name.pod.map(|pod| pod.what);
            let class = pod.and_then(|pod| pod.qos).map(|class| class.to_string());
            let named = names.pod(&name).unwrap_or(known);
            (named, class.unwrap_or_default())
        }
        GroupBy::User => {
            let named = name.user.map_or(known, |user| names.user(user.what));
            (named, String::new())
        }
        GroupBy::Cgroup => {
            let called = names.innermost(path).filter(|name| !path.ends_with(&**name));
            (path.to_owned(), called.unwrap_or_default())
        }
        _ => (known, String::new()),
    }
}
