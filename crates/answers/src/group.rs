//! The cgroup that a question is about, found by what people call it.

use std::collections::BTreeMap;

use diagnose::{Evidence, is_limited};
use probe::Root;
use timeline::cgroup::{GroupName, Named, ROOT, ancestors};
use timeline::signals::CGROUP_CURRENT;
use timeline::{Entity, Sample, Source, SourceKind, Timeline};
use units::Bytes;

use crate::coverage;
use crate::nearest::letters_to_change;
use crate::this_host::names;

/// The cgroup that an answer is asked about, as it was typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GroupSelector {
    /// Its path, with or without where the hierarchy is mounted.
    Cgroup(String),
    /// A unit of systemd, with or without `.service`.
    Unit(String),
    /// A container's name, or its id or the first digits of it.
    Container(String),
    /// A pod's name, `NAMESPACE/NAME`, or its UID or the first digits of it.
    Pod(String),
}

/// No single cgroup is what was typed.
// The message of a variant says what its fields are.
#[allow(missing_docs)]
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum GroupError {
    /// The source has no cgroup at all.
    #[error("{0} has no cgroups, so no {1} can be found in it")]
    NoGroups(String, &'static str),
    /// None of this kind is called so.
    #[error("no {what} is called `{typed}`{}{if_gone}", listed("; the nearest are", .nearest))]
    Unknown {
        what: &'static str,
        typed: String,
        /// The file or recording; `None`: this host.
        source_name: Option<String>,
        /// Names that resemble it most.
        nearest: Vec<String>,
        /// Where one is found that is gone; may be empty.
        if_gone: String,
    },
    /// The source has cgroups, but none of this kind.
    #[error("no {what} is called `{typed}`: {source_name} has no {what}s{}{if_gone}", listed("; \
                                                            its largest cgroups (--cgroup) \
                                                            are", .cgroups))]
    NoneOfKind {
        what: &'static str,
        typed: String,
        source_name: String,
        /// The cgroups with most memory.
        cgroups: Vec<String>,
        /// Where one is found that is gone; may be empty.
        if_gone: String,
    },
    /// One is called so, but has no reading in the part of the source that was asked about.
    #[error(
        "{typed} existed {}{}, not in the time that was asked about",
        .when.join(" and "),
        before(*.earlier)
    )]
    AtAnotherTime {
        /// As typed, with what it is: `cgroup /web`.
        typed: String,
        /// When it was read, in the order of time: `from 2026-11-21 09:00:00 to 09:02:10 +09:00`.
        when: Vec<String>,
        /// How many times before these.
        earlier: usize,
        /// A time at which it existed, as `--at` takes it.
        ask: String,
    },
    /// Several are.
    #[error("`{typed}` is {count} {what}s, one of which `--cgroup` chooses{}", listed(":", .some))]
    Ambiguous {
        what: &'static str,
        typed: String,
        count: usize,
        /// Some of them, by their paths.
        some: Vec<String>,
    },
}

impl GroupError {
    /// What to do about it.
    pub fn help(&self) -> Option<String> {
        match self {
            Self::Unknown { what, source_name, .. } => {
                let named = source_name.as_ref().map(|name| format!("{name} ")).unwrap_or_default();
                Some(format!("`memtide where {named}--by {what}` shows the names"))
            }
            Self::AtAnotherTime { ask, .. } => Some(format!("ask with `--at '{ask}'`")),
            // The text lists what may be meant.
            Self::NoneOfKind { .. } | Self::Ambiguous { .. } | Self::NoGroups(..) => None,
        }
    }
}

fn listed(before: &str, names: &[String]) -> String {
    if names.is_empty() {
        return String::new();
    }
    format!("{before} {}", names.join(", "))
}

fn before(times: usize) -> String {
    match times {
        0 => String::new(),
        1 => " and once before".to_owned(),
        many => format!(" and {many} times before"),
    }
}

/// At most so many names are listed in an error.
const LISTED_MAX: usize = 5;
/// The fewest digits of an id that are taken for one.
const DIGITS_MIN: usize = 4;

/// A cgroup of the source that could be meant.
struct GroupCandidate {
    path: String,
    /// What it is called, the most usual first.
    names: Vec<String>,
    /// Its id, of which the first digits suffice.
    id: Option<String>,
    /// Whether neither a user nor whoever runs in a container has made it.
    is_of_host: bool,
    bytes: Bytes,
}

/// Returns the path of the cgroup that was typed. A user, and whoever runs in a container, may give a cgroup any name: where one
/// of the host is called so, it is meant.
///
/// # Errors
/// [`GroupError`] if no cgroup of the source is called so, or several are.
pub fn find_group(source: &Source, selector: &GroupSelector) -> Result<String, GroupError> {
    let (what, typed) = selector.typed();
    let all = candidates(source, selector);
    if all.is_empty() {
        return Err(none_of_kind(source, selector));
    }
    let is_exact = |one: &&GroupCandidate| {
        one.names.iter().any(|name| name == typed) || one.id.as_deref() == Some(typed)
    };
    let is_begun = |one: &&GroupCandidate| {
        let id = one.id.as_ref().filter(|_| typed.len() >= DIGITS_MIN);
        id.is_some_and(|id| id.starts_with(typed))
    };
    let mut found: Vec<&GroupCandidate> = all.iter().filter(is_exact).collect();
    if found.is_empty() {
        found = all.iter().filter(is_begun).collect();
    }
    if found.iter().any(|one| one.is_of_host) {
        found.retain(|one| one.is_of_host);
    }
    match found[..] {
        [one] => Ok(one.path.clone()),
        [] => Err(GroupError::Unknown {
            what,
            typed: typed.to_owned(),
            source_name: Some(source.origin.name.clone()).filter(|name| !name.is_empty()),
            nearest: nearest(&all, typed),
            if_gone: if_gone(source, selector),
        }),
        _ => Err(GroupError::Ambiguous {
            what,
            typed: typed.to_owned(),
            count: found.len(),
            some: found.iter().take(LISTED_MAX).map(|one| one.path.clone()).collect(),
        }),
    }
}

/// Returns when the cgroup that was typed existed in the whole of a source, of which a part has none of that name. `None`
/// if the whole has none either.
pub fn at_another_time(whole: &Source, selector: &GroupSelector) -> Option<GroupError> {
    let path = find_group(whole, selector).ok()?;
    let mut lives = lives_of(&whole.timeline, &path);
    let earlier = lives.len().saturating_sub(LISTED_MAX);
    lives.drain(..earlier);
    let (first, last) = *lives.last()?;
    let when = lives.iter().map(|life| coverage::between(&whole.timeline, *life));
    let times = whole.timeline.times();
    let middle = times.get(first)?.plus(*times.get(last)?).as_secs_f64() / 2.0;
    let middle = (first..=last).find(|at| times[*at].as_secs_f64() >= middle)?;
    Some(GroupError::AtAnotherTime {
        typed: selector.to_string(),
        when: when.collect(),
        earlier,
        ask: coverage::as_typed(&whole.timeline, middle),
    })
}

/// The first and the last sample of each time that a cgroup existed. It was removed where all cgroups were read without it,
/// however often that is.
fn lives_of(timeline: &Timeline, path: &str) -> Vec<(usize, usize)> {
    let mut lives: Vec<(usize, usize)> = Vec::new();
    let group = timeline.entity(Entity::Cgroup, path);
    let read = group.into_iter().flat_map(|group| timeline.readings_of(group, CGROUP_CURRENT));
    for (at, _) in read {
        let all_read =
            at.checked_sub(1).and_then(|at| timeline.all_read_before(Entity::Cgroup, at));
        match lives.last_mut() {
            Some((_, last)) if all_read.is_none_or(|all_read| all_read <= *last) => *last = at,
            _ => lives.push((at, at)),
        }
    }
    lives
}

/// Says where a container or a pod is found that is gone: the live host does not know it.
fn if_gone(source: &Source, selector: &GroupSelector) -> String {
    let is_kept = matches!(selector, GroupSelector::Container(_) | GroupSelector::Pod(_));
    if !is_kept || source.origin.kind != SourceKind::Live {
        return String::new();
    }
    let (what, _) = selector.typed();
    format!("; one that is gone may be in a recording: `memtide check DIR --{what} NAME`")
}

fn none_of_kind(source: &Source, selector: &GroupSelector) -> GroupError {
    let (what, typed) = selector.typed();
    let source_name = match source.origin.name.as_str() {
        "" => "this host",
        name => name,
    };
    let mut groups: Vec<(&str, Bytes)> = groups(source).into_iter().collect();
    if groups.is_empty() {
        return GroupError::NoGroups(source_name.to_owned(), what);
    }
    groups.retain(|(path, _)| *path != ROOT);
    groups.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
    let cgroups = groups.into_iter().map(|(path, _)| path.to_owned());
    GroupError::NoneOfKind {
        what,
        typed: typed.to_owned(),
        source_name: source_name.to_owned(),
        cgroups: cgroups.take(LISTED_MAX).collect(),
        if_gone: if_gone(source, selector),
    }
}

impl std::fmt::Display for GroupSelector {
    /// `unit web.service`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (what, typed) = self.typed();
        write!(f, "{what} {typed}")
    }
}

impl GroupSelector {
    /// Returns the kind in words, and what was typed, as names are compared with it.
    fn typed(&self) -> (&'static str, &str) {
        match self {
            Self::Cgroup(path) => ("cgroup", below_the_mount(path)),
            Self::Unit(name) => ("unit", name),
            Self::Container(name) => ("container", name),
            Self::Pod(name) => ("pod", name),
        }
    }
}

/// Returns the path of the cgroup of this host that was typed, from listings of its cgroups alone.
///
/// # Errors
/// As [`find_group`].
pub fn find_group_of_this_host(
    root: &Root,
    selector: &GroupSelector,
) -> Result<String, GroupError> {
    find_group(&groups_of_this_host(root), selector)
}

/// Returns what the cgroups of this host are called of the kind that was typed, from listings of its cgroups alone.
pub fn group_names_of_this_host(root: &Root, selector: &GroupSelector) -> Vec<String> {
    let all = candidates(&groups_of_this_host(root), selector);
    all.into_iter().filter_map(|one| one.names.into_iter().next().or(one.id)).collect()
}

/// The cgroups of this host and their names, without figures.
fn groups_of_this_host(root: &Root) -> Source {
    let mut sample = Sample::at(probe::now().boot);
    for key in probe::cgroup_keys(root) {
        let row = sample.table_mut(Entity::Cgroup).entry(&key);
        // A cgroup without a reading is none; sizes are not asked for.
        row.row.set(CGROUP_CURRENT, Bytes::ZERO);
    }
    let mut source = Source::default();
    // One sample is in order.
    let _ = source.timeline.push(&sample);
    names::add(root, &mut source);
    source
}

/// Returns the path of the cgroup that an answer is about: the one that was typed, else in a container the container, unless
/// its host was asked about; `None` for the host.
///
/// # Errors
/// As [`find_group`].
pub fn group_of(
    source: &Source,
    typed: Option<&GroupSelector>,
    of_host: bool,
) -> Result<Option<String>, GroupError> {
    match typed {
        Some(selector) => find_group(source, selector).map(Some),
        None if source.origin.kind == SourceKind::Live && !of_host => Ok(own_container(source)),
        None => Ok(None),
    }
}

/// Returns the cgroup of the container in which a source was read, if it has a limit: its files are those of the root, or of
/// a cgroup with the path that processes have.
fn own_container(source: &Source) -> Option<String> {
    source.facts.container.as_ref()?;
    if has_container_at_root(source) {
        return Some(ROOT.to_owned());
    }
    let cx = Evidence::new(&source.timeline, &source.facts);
    let own = source.facts.own_container();
    ancestors(own).any(|path| is_limited(&cx, path)).then(|| own.to_owned())
}

/// Whether the root is that of a container: the root of a host has no limit.
fn has_container_at_root(source: &Source) -> bool {
    let cx = Evidence::new(&source.timeline, &source.facts);
    is_limited(&cx, ROOT)
}

/// Returns a path without where the hierarchy is mounted and without a slash at its end.
fn below_the_mount(path: &str) -> &str {
    let mounted = ["/sys/fs/cgroup/memory", "/sys/fs/cgroup/unified", "/sys/fs/cgroup"];
    let is_path = |below: &&str| below.is_empty() || below.starts_with('/');
    let below = mounted.iter().find_map(|mount| path.strip_prefix(mount).filter(is_path));
    match below.unwrap_or(path).trim_end_matches('/') {
        "" => ROOT,
        path => path,
    }
}

/// Returns all cgroups of a source with their memory; also those that only messages of the kernel name.
fn groups(source: &Source) -> BTreeMap<&str, Bytes> {
    let timeline = &source.timeline;
    let reports = timeline.all_reports().iter();
    let mut all: BTreeMap<&str, Bytes> = reports
        .filter_map(|one| Some(one.report.group.as_ref()?.path.as_str()))
        .filter(|path| !path.is_empty())
        .map(|path| (path, Bytes::ZERO))
        .collect();
    all.extend(timeline.entities(Entity::Cgroup).map(|group| {
        let bytes = timeline.last_of(group, CGROUP_CURRENT);
        (group.key.as_str(), bytes.unwrap_or_default())
    }));
    all
}

fn candidates(source: &Source, selector: &GroupSelector) -> Vec<GroupCandidate> {
    let names = &source.facts.names;
    let candidate = |(path, bytes): (&str, Bytes)| {
        let name = GroupName::of(path);
        let begins = |at: &str| at == path;
        let pod = name.pod.filter(|pod| begins(pod.path));
        let is_in_container = match (&pod, &name.container) {
            (Some(pod), _) => pod.is_in_container,
            (None, container) => container.is_some_and(|it| it.is_in_container),
        };
        let (called, id) = match selector {
            GroupSelector::Cgroup(_) => {
                let bare = path.trim_start_matches('/');
                (vec![path.to_owned(), bare.to_owned()], None)
            }
            GroupSelector::Unit(_) => {
                let unit: Named<'_, &str> = name.unit.filter(|unit| begins(unit.path))?;
                let plain = name.unit_name()?.into_owned();
                let mut called = vec![plain.clone(), unit.what.to_owned()];
                called.extend(plain.strip_suffix(".service").map(str::to_owned));
                (called, None)
            }
            GroupSelector::Container(_) => {
                let container = name.container.filter(|it| begins(it.path))?;
                let mut called: Vec<String> = names.container(&name).into_iter().collect();
                let known = names.of_container(&container);
                called.extend(known.map(|known| known.name.clone()));
                (called, Some(container.what.id.to_owned()))
            }
            GroupSelector::Pod(_) => {
                let pod = pod?;
                let uid = pod.what.uid().into_owned();
                let mut called: Vec<String> = names.pod(&name).into_iter().collect();
                called.extend(names.of_pod(&pod).map(|known| known.name.clone()));
                (called, Some(uid))
            }
        };
        Some(GroupCandidate {
            path: path.to_owned(),
            names: called,
            id,
            is_of_host: name.user.is_none() && !is_in_container,
            bytes,
        })
    };
    // Else the root is the host itself.
    let is_one = |path: &str| path != ROOT || has_container_at_root(source);
    let all = groups(source).into_iter().filter(|(path, _)| is_one(path));
    all.filter_map(candidate).collect()
}

/// Returns the names that resemble what was typed: those that contain it, then those with the fewest letters to change;
/// of equal ones the largest.
fn nearest(all: &[GroupCandidate], typed: &str) -> Vec<String> {
    let typed = typed.to_lowercase();
    let mut ranked: Vec<_> = all
        .iter()
        .filter_map(|one| Some((one.names.first()?, one)))
        .map(|(name, one)| {
            let lower = name.to_lowercase();
            let is_part = lower.contains(&typed) || typed.contains(&lower);
            (!is_part, letters_to_change(&lower, &typed), std::cmp::Reverse(one.bytes), name)
        })
        .collect();
    ranked.sort();
    ranked.dedup_by_key(|(.., name)| *name);
    let names = ranked.into_iter().map(|(.., name)| name.clone());
    names.take(LISTED_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use timeline::cgroup::{ContainerNames, PodNames};
    use units::Span;

    const A: &str = "a59e4e7d3090c04c6ce5a4b7a8bc85228eb9b96ac00b1284643a8c7c11dda661";
    const B: &str = "a59e6375cfe46efa5cd90d095603dec2de888c28b203285819233040b5cf1212";
    const UID: &str = "b312a30a-d345-42c8-a659-32a04d5fd529";

    fn source() -> Source {
        let mut sample = Sample::at(Span::ZERO);
        for path in [
            "/".to_owned(),
            "/system.slice".to_owned(),
            "/system.slice/nginx.service".to_owned(),
            r"/system.slice/my\x2dapp.service".to_owned(),
            "/system.slice/nginx-cache.service".to_owned(),
            format!("/system.slice/docker-{A}.scope"),
            format!("/docker/{B}"),
            format!("/kubepods/burstable/pod{UID}"),
        ] {
            let row = sample.table_mut(Entity::Cgroup).entry(&path);
            row.row.set(CGROUP_CURRENT, Bytes::from_mib(1));
        }
        let mut timeline = Timeline::default();
        timeline.push(&sample).unwrap();
        let mut source =
            Source::new(SourceKind::Capture, "x.jsonl", timeline, timeline::Facts::default());
        let names = &mut source.facts.names;
        let web = ContainerNames { name: "web".to_owned(), pod: None };
        names.containers.insert(format!("docker-{A}.scope"), web);
        let cart = PodNames { namespace: "shop".to_owned(), name: "cart-0".to_owned() };
        names.pods.insert(format!("/kubepods/burstable/pod{UID}"), cart);
        source
    }

    /// Whether the cgroup is there, each time that all are read.
    fn seen(every: Span, is_there: &[bool]) -> Source {
        let mut timeline = Timeline::default();
        for (n, is_there) in is_there.iter().enumerate() {
            let mut sample = Sample::at(every.times(n as f64));
            for path in [Some("/"), is_there.then_some("/near")].into_iter().flatten() {
                let row = sample.table_mut(Entity::Cgroup).entry(path);
                row.row.set(CGROUP_CURRENT, Bytes::from_mib(1));
            }
            timeline.push(&sample).unwrap();
        }
        Source::new(SourceKind::Capture, "x.jsonl", timeline, timeline::Facts::default())
    }

    #[test]
    fn a_group_existed_until_all_were_read_without_it() {
        let (y, n) = (true, false);
        for every in [Span::from_secs(10), Span::from_mins(5)] {
            let lives = |there: &[bool]| lives_of(&seen(every, there).timeline, "/near");
            assert_eq!(lives(&[n, y, y, y, y, n]), [(1, 4)], "{every}");
            assert_eq!(lives(&[y, n, y, y]), [(0, 0), (2, 3)], "{every}");
        }
        let often = seen(Span::from_mins(5), &[y, n, y, n, y, n, y, n, y, n, y, n, y]);
        let error = at_another_time(&often, &GroupSelector::Cgroup("/near".to_owned())).unwrap();
        assert!(error.to_string().contains(" and 2 times before, not in"), "{error}");
    }

    #[test]
    fn a_group_is_found_by_all_that_people_call_it() {
        let source = source();
        let docker = format!("/system.slice/docker-{A}.scope");
        let pod = format!("/kubepods/burstable/pod{UID}");
        for (selector, expected) in [
            (GroupSelector::Cgroup("/system.slice/".to_owned()), "/system.slice"),
            (GroupSelector::Cgroup("system.slice".to_owned()), "/system.slice"),
            (
                GroupSelector::Cgroup(
                    "/sys/fs/cgroup/memory/system.slice/nginx.service".to_owned(),
                ),
                "/system.slice/nginx.service",
            ),
            (GroupSelector::Unit("nginx".to_owned()), "/system.slice/nginx.service"),
            (GroupSelector::Unit("nginx.service".to_owned()), "/system.slice/nginx.service"),
            (GroupSelector::Unit("my-app".to_owned()), r"/system.slice/my\x2dapp.service"),
            (GroupSelector::Container("web".to_owned()), &docker),
            (GroupSelector::Container(A.to_owned()), &docker),
            (GroupSelector::Container("a59e4e7d".to_owned()), &docker),
            (GroupSelector::Pod("cart-0".to_owned()), &pod),
            (GroupSelector::Pod("shop/cart-0".to_owned()), &pod),
            (GroupSelector::Pod("b312a30a".to_owned()), &pod),
        ] {
            assert_eq!(find_group(&source, &selector).as_deref(), Ok(expected), "{selector:?}");
        }
    }

    #[test]
    fn what_is_unknown_or_ambiguous_names_the_nearest() {
        let source = source();
        let error = |selector| find_group(&source, &selector).unwrap_err().to_string();
        let unknown = error(GroupSelector::Unit("ngnix".to_owned()));
        assert!(unknown.starts_with("no unit is called `ngnix`; the nearest are"), "{unknown}");
        assert!(unknown.contains("nginx.service"), "{unknown}");
        let unknown = error(GroupSelector::Container("cache".to_owned()));
        assert!(unknown.contains("web (docker a59e4e7d3090)"), "{unknown}");
        let several = error(GroupSelector::Container("a59e".to_owned()));
        assert!(
            several.starts_with("`a59e` is 2 containers, one of which `--cgroup` chooses: "),
            "{several}"
        );
        let short = error(GroupSelector::Container("a5".to_owned()));
        assert!(short.starts_with("no container is called"), "{short}");
        let mut plain = Sample::at(Span::ZERO);
        for (path, mib) in [("/", 99), ("/batch", 2), ("/web", 5)] {
            let row = plain.table_mut(Entity::Cgroup).entry(path);
            row.row.set(CGROUP_CURRENT, Bytes::from_mib(mib));
        }
        let mut without_units = Source::default();
        without_units.timeline.push(&plain).unwrap();
        let unit = GroupSelector::Unit("web".to_owned());
        assert_eq!(
            find_group(&without_units, &unit).unwrap_err().to_string(),
            "no unit is called `web`: this host has no units; its largest cgroups (--cgroup) are \
             /web, /batch"
        );
        let none = find_group(&Source::default(), &GroupSelector::Pod("x".to_owned())).unwrap_err();
        assert_eq!(none.to_string(), "this host has no cgroups, so no pod can be found in it");
    }
}
