//! What people call containers, pods and users: names that a host's files give to the ids in paths of cgroups.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::ROOT;
use super::path_name::{ContainerPart, GroupName, PathPart, PodPart, unescaped};

/// At most so many bytes of each part of a name: Kubernetes allows 253.
pub const NAME_LEN_MAX: usize = 256;

/// Names by id. What is not in it is called by its id.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GroupNames {
    /// Of containers, by id.
    pub containers: BTreeMap<String, ContainerNames>,
    /// Of pods, by UID.
    pub pods: BTreeMap<String, PodNames>,
    /// Of users, by UID.
    pub users: BTreeMap<u32, String>,
}

/// What a container is called.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ContainerNames {
    /// Its name: of Kubernetes that within the pod.
    pub name: String,
    /// Its pod, where Kubernetes runs it.
    pub pod: Option<PodNames>,
}

/// What a pod is called.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PodNames {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

impl std::fmt::Display for PodNames {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

impl GroupNames {
    /// Returns what people call a container: `web (docker a59e4e7d3090)`, `shop/cart-0: app`, `docker a59e4e7d3090`.
    pub fn container(&self, container: &ContainerPart<'_>, pod: Option<&PodPart<'_>>) -> String {
        let runtime = container
            .runtime
            .map_or("container", |runtime| runtime.name());
        let short = format!("{runtime} {}", container.short_id());
        let known = self.containers.get(container.id);
        let pod_of_container = known.and_then(|known| known.pod.as_ref());
        let pod = pod_of_container.or_else(|| self.pods.get(&*pod?.uid()));
        match (known.map(|known| known.name.as_str()), pod) {
            (Some(name), Some(pod)) if !name.is_empty() => format!("{pod}: {name}"),
            (Some(name), None) if !name.is_empty() => format!("{name} ({short})"),
            (_, Some(pod)) => format!("{pod}: {short}"),
            _ => short,
        }
    }

    /// Returns what people call a pod: `shop/cart-0`, or `pod UID`.
    pub fn pod(&self, pod: &PodPart<'_>) -> String {
        let uid = pod.uid();
        match self.pods.get(&*uid) {
            Some(names) => names.to_string(),
            None => format!("pod {uid}"),
        }
    }

    /// Returns what people call a user: `alice`, or `user 1000`.
    pub fn user(&self, uid: u32) -> String {
        match self.users.get(&uid) {
            Some(name) => name.clone(),
            None => format!("user {uid}"),
        }
    }

    /// Whether the innermost of container, pod and user that a cgroup's path names is in it, or there is none.
    pub fn has_all_of(&self, path: &str) -> bool {
        let name = GroupName::of(path);
        let has_user = |uid: u32| self.users.contains_key(&uid);
        match (name.container, name.pod, name.user) {
            (Some(container), ..) => self.containers.contains_key(container.what.id),
            (None, Some(pod), _) => self.pods.contains_key(&*pod.what.uid()),
            (None, None, user) => user.is_none_or(|user| has_user(user.what)),
        }
    }

    /// Returns how many names there are.
    pub fn count(&self) -> usize {
        self.containers.len() + self.pods.len() + self.users.len()
    }

    /// Whether all ids of these names have a name there, too.
    pub fn is_known_to(&self, other: &Self) -> bool {
        self.containers
            .keys()
            .all(|id| other.containers.contains_key(id))
            && self.pods.keys().all(|uid| other.pods.contains_key(uid))
            && self.users.keys().all(|uid| other.users.contains_key(uid))
    }

    /// Returns these names but for those that are the same in others.
    #[must_use]
    pub fn without(&self, other: &Self) -> Self {
        let mut left = self.clone();
        left.containers
            .retain(|id, names| other.containers.get(id) != Some(names));
        left.pods
            .retain(|uid, names| other.pods.get(uid) != Some(names));
        left.users
            .retain(|uid, name| other.users.get(uid) != Some(name));
        left
    }

    /// Adds the names of what has none yet.
    pub fn fill_from(&mut self, other: Self) {
        for (id, name) in other.containers {
            self.containers.entry(id).or_insert(name);
        }
        for (uid, name) in other.pods {
            self.pods.entry(uid).or_insert(name);
        }
        for (uid, name) in other.users {
            self.users.entry(uid).or_insert(name);
        }
    }

    /// Returns what people call a service, which is one part of a path: a container by its names, a pod, a unit without
    /// escapes.
    pub fn service(&self, service: &str) -> String {
        let part = PathPart::of(service, "");
        match (part.container, part.pod) {
            (Some(container), pod) => self.container(&container, pod.as_ref()),
            (None, Some(pod)) => self.pod(&pod),
            (None, None) => unescaped(service).into_owned(),
        }
    }

    /// Returns a cgroup in a sentence: its path, `this container`, `pod shop/cart-0`, `container web (docker a59e4e7d3090)`. The
    /// kernel's own root is the host: one that has a limit or is asked about is of a container, which sees its cgroup as
    /// the root.
    pub fn place<'a>(&self, path: &'a str) -> Cow<'a, str> {
        let name = GroupName::of(path);
        let is_at = |at: &str| at == path;
        let pod = name.pod.as_ref();
        if path == ROOT {
            return Cow::Borrowed("this container");
        }
        if let Some(container) = name.container.filter(|it| is_at(it.path)) {
            let short = container.what.short_id();
            let named = self.container(&container.what, pod.map(|pod| &pod.what));
            // Without any name it is called by its runtime.
            let is_nameless = named
                .rsplit_once(' ')
                .is_some_and(|(runtime, id)| id == short && !runtime.contains(' '));
            let named = if is_nameless { short } else { &named };
            return Cow::Owned(format!("container {named}"));
        }
        match pod.filter(|pod| is_at(pod.path)) {
            Some(pod) if self.pods.contains_key(&*pod.what.uid()) => {
                Cow::Owned(format!("pod {}", self.pod(&pod.what)))
            }
            Some(pod) => Cow::Owned(self.pod(&pod.what)),
            None => Cow::Borrowed(path),
        }
    }

    /// Returns what a sentence calls the cgroup of this path: as [`place`](Self::place), or `cgroup /web`.
    pub fn called<'a>(&self, path: &'a str) -> Cow<'a, str> {
        match self.place(path) {
            Cow::Borrowed(same) if same == path => Cow::Owned(format!("cgroup {path}")),
            place => place,
        }
    }

    /// Returns what people call the innermost thing that a cgroup's path names; `None` where it names nothing.
    pub fn innermost(&self, path: &str) -> Option<String> {
        let name = GroupName::of(path);
        let pod = name.pod.map(|pod| pod.what);
        if let Some(container) = name.container {
            return Some(self.container(&container.what, pod.as_ref()));
        }
        pod.map(|pod| self.pod(&pod))
            .or_else(|| Some(name.unit_name()?.into_owned()))
            .or_else(|| Some(self.user(name.user?.what)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "3350ade4226f0adcd9e4e9545d7c2a16a5aa362d12315f2a88e2024cea1246cf";
    const UID: &str = "b312a30a-d345-42c8-a659-32a04d5fd529";

    fn named(container: Option<(&str, bool)>, pod: bool) -> GroupNames {
        let cart = PodNames {
            namespace: "shop".to_owned(),
            name: "cart-0".to_owned(),
        };
        let mut names = GroupNames::default();
        if let Some((name, is_in_pod)) = container {
            let container = ContainerNames {
                name: name.to_owned(),
                pod: is_in_pod.then(|| cart.clone()),
            };
            names.containers.insert(ID.to_owned(), container);
        }
        if pod {
            names.pods.insert(UID.to_owned(), cart);
        }
        names
    }

    #[test]
    fn a_container_is_called_by_what_is_known_of_it() {
        let alone = format!("/system.slice/docker-{ID}.scope");
        let in_pod = format!("/kubepods/burstable/pod{UID}/{ID}");
        for (names, path, expected) in [
            (named(None, false), &alone, "docker 3350ade4226f"),
            (
                named(Some(("web", false)), false),
                &alone,
                "web (docker 3350ade4226f)",
            ),
            (
                named(Some(("app", true)), false),
                &in_pod,
                "shop/cart-0: app",
            ),
            (
                named(Some(("app", false)), true),
                &in_pod,
                "shop/cart-0: app",
            ),
            (
                named(None, true),
                &in_pod,
                "shop/cart-0: container 3350ade4226f",
            ),
            (named(None, false), &in_pod, "container 3350ade4226f"),
        ] {
            assert_eq!(names.innermost(path).as_deref(), Some(expected));
        }
    }

    #[test]
    fn what_has_a_name_keeps_it() {
        let mut names = named(Some(("web", false)), false);
        names.fill_from(named(Some(("other", false)), true));
        let mut expected = named(Some(("web", false)), true);
        assert_eq!(names, expected);
        assert_eq!(names.count(), 2);
        let user = GroupNames {
            users: BTreeMap::from([(7, "al".to_owned())]),
            ..GroupNames::default()
        };
        expected.fill_from(user);
        assert_eq!(expected.count(), 3);
    }

    #[test]
    fn pods_units_and_users_too() {
        let mut names = named(None, true);
        names.users.insert(1000, "alice".to_owned());
        let pod = format!("/kubepods/burstable/pod{UID}");
        for (path, expected) in [
            (&*pod, Some("shop/cart-0")),
            ("/user.slice/user-1000.slice", Some("alice")),
            ("/user.slice/user-7.slice", Some("user 7")),
            (r"/system.slice/a\x2db.service", Some("a-b.service")),
            ("/app", None),
        ] {
            assert_eq!(names.innermost(path).as_deref(), expected, "{path}");
        }
        assert_eq!(
            named(None, false).innermost(&pod),
            Some(format!("pod {UID}"))
        );
        assert_eq!(names.service(r"a\x2db.service"), "a-b.service");
        assert!(names.has_all_of(&pod) && names.has_all_of("/app"));
        assert!(!names.has_all_of(&format!("{pod}/{ID}")));
        assert!(!names.has_all_of("/user.slice/user-7.slice"));
        assert_eq!(
            names.service(&format!("docker-{ID}.scope")),
            "docker 3350ade4226f"
        );
    }
}
