//! What people call containers, pods and users: names that a host's files give to the ids in paths of cgroups.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::ROOT;
use super::path_name::{ContainerPart, GroupName, Named, PodPart, unescaped, unique_name};

/// At most so many bytes of each part of a name: Kubernetes allows 253.
pub const NAME_LEN_MAX: usize = 256;

/// Names by cgroup: by the [`unique_name`] of that of a container or a pod, as ids in paths may be anybody's. What is not in
/// it is called by its id.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GroupNames {
    /// Of containers, by their cgroups.
    pub containers: BTreeMap<String, ContainerNames>,
    /// Of pods, by their cgroups.
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
    /// Returns what the host's files say of a container.
    pub fn of_container(
        &self,
        container: &Named<'_, ContainerPart<'_>>,
    ) -> Option<&ContainerNames> {
        self.containers.get(unique_name(container.path))
    }

    /// Returns what the host's files say of a pod.
    pub fn of_pod(&self, pod: &Named<'_, PodPart<'_>>) -> Option<&PodNames> {
        self.pods.get(unique_name(pod.path))
    }

    /// Returns what people call the container that a path names: `web (docker a59e4e7d3090)`, `shop/cart-0: app`,
    /// `docker a59e4e7d3090`, `web (podman b6e375cfe46e) of user al`.
    pub fn container(&self, name: &GroupName<'_>) -> Option<String> {
        let container = name.container?;
        let runtime = container.what.runtime;
        let runtime = runtime.map_or("container", |runtime| runtime.name());
        let short = format!("{runtime} {}", container.what.short_id());
        Some(self.container_or(name, &container, &short) + &self.of_owner(name))
    }

    /// Returns its name as files have it, or `short`.
    fn container_or(
        &self,
        name: &GroupName<'_>,
        container: &Named<'_, ContainerPart<'_>>,
        short: &str,
    ) -> String {
        let known = self.of_container(container);
        let pod_of_container = known.and_then(|known| known.pod.as_ref());
        let pod = pod_of_container.or_else(|| self.of_pod(name.pod.as_ref()?));
        match (known.map(|known| known.name.as_str()), pod) {
            (Some(name), Some(pod)) if !name.is_empty() => format!("{pod}: {name}"),
            (Some(name), None) if !name.is_empty() => format!("{name} ({short})"),
            (_, Some(pod)) => format!("{pod}: {short}"),
            _ => short.to_owned(),
        }
    }

    /// Names the owner of what a path names, where that is not the host: ` of user al`.
    fn of_owner(&self, name: &GroupName<'_>) -> String {
        match name.user {
            Some(user) => format!(" of {}", self.named_user(user.what)),
            None => String::new(),
        }
    }

    /// `user al`, or `user 1000`.
    fn named_user(&self, uid: u32) -> String {
        let known = self.users.get(&uid);
        known.map_or_else(|| format!("user {uid}"), |name| format!("user {name}"))
    }

    /// Returns what people call the pod that a path names: `shop/cart-0`, or `pod UID`.
    pub fn pod(&self, name: &GroupName<'_>) -> Option<String> {
        let pod = name.pod?;
        let named = match self.of_pod(&pod) {
            Some(names) => names.to_string(),
            None => format!("pod {}", pod.what.uid()),
        };
        Some(named + &self.of_owner(name))
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
            (Some(container), ..) => self.of_container(&container).is_some(),
            (None, Some(pod), _) => self.of_pod(&pod).is_some(),
            (None, None, user) => user.is_none_or(|user| has_user(user.what)),
        }
    }

    /// Returns how many names there are.
    pub fn count(&self) -> usize {
        self.containers.len() + self.pods.len() + self.users.len()
    }

    /// Whether all ids of these names have a name there, too.
    pub fn is_known_to(&self, other: &Self) -> bool {
        self.containers.keys().all(|id| other.containers.contains_key(id))
            && self.pods.keys().all(|uid| other.pods.contains_key(uid))
            && self.users.keys().all(|uid| other.users.contains_key(uid))
    }

    /// Returns these names but for those that are the same in others.
    #[must_use]
    pub fn without(&self, other: &Self) -> Self {
        let mut left = self.clone();
        left.containers.retain(|id, names| other.containers.get(id) != Some(names));
        left.pods.retain(|uid, names| other.pods.get(uid) != Some(names));
        left.users.retain(|uid, name| other.users.get(uid) != Some(name));
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

    /// Returns what people call a service, by the unique name of its cgroup: a container by its names, a pod, a unit without
    /// escapes, with its owner.
    pub fn service(&self, service: &str) -> String {
        let path = if service.starts_with('/') {
            Cow::Borrowed(service)
        } else {
            Cow::Owned(format!("/{service}"))
        };
        let name = GroupName::of(&path);
        let at_end = |at: &str| at == path;
        if name.container.is_some_and(|it| at_end(it.path)) {
            self.container(&name).unwrap_or_default()
        } else if name.pod.is_some_and(|it| at_end(it.path)) {
            self.pod(&name).unwrap_or_default()
        } else {
            let part = path.rsplit('/').next().unwrap_or_default();
            let within = self.container(&name).map(|outer| format!(" in {outer}"));
            unescaped(part).into_owned() + &within.unwrap_or_else(|| self.of_owner(&name))
        }
    }

    /// Returns a cgroup in a sentence: its path, `this container`, `pod shop/cart-0`, `container web (docker a59e4e7d3090)`. The
    /// kernel's own root is the host: one that has a limit or is asked about is of a container, which sees its cgroup as
    /// the root.
    pub fn place<'a>(&self, path: &'a str) -> Cow<'a, str> {
        if path == ROOT {
            return Cow::Borrowed("this container");
        }
        let name = GroupName::of(path);
        if let Some(container) = name.container.filter(|it| it.path == path) {
            // Without any name it is called by its id.
            let named = match (self.of_container(&container), self.of_pod_in(&name)) {
                (None, None) => container.what.short_id().to_owned() + &self.of_owner(&name),
                _ => self.container(&name).unwrap_or_default(),
            };
            return Cow::Owned(format!("container {named}"));
        }
        match name.pod.filter(|pod| pod.path == path) {
            Some(pod) if self.of_pod(&pod).is_some() => {
                Cow::Owned(format!("pod {}", self.pod(&name).unwrap_or_default()))
            }
            Some(_) => Cow::Owned(self.pod(&name).unwrap_or_default()),
            None => Cow::Borrowed(path),
        }
    }

    fn of_pod_in(&self, name: &GroupName<'_>) -> Option<&PodNames> {
        self.of_pod(name.pod.as_ref()?)
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
        self.container(&name)
            .or_else(|| self.pod(&name))
            .or_else(|| Some(name.unit_name()?.into_owned() + &self.of_owner(&name)))
            .or_else(|| Some(self.user(name.user?.what)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "3350ade4226f0adcd9e4e9545d7c2a16a5aa362d12315f2a88e2024cea1246cf";
    const UID: &str = "b312a30a-d345-42c8-a659-32a04d5fd529";

    /// Names of the container with this id, and of its pod.
    fn named(container: Option<(&str, bool)>, pod: bool) -> GroupNames {
        let cart = PodNames { namespace: "shop".to_owned(), name: "cart-0".to_owned() };
        let mut names = GroupNames::default();
        if let Some((name, is_in_pod)) = container {
            let container =
                ContainerNames { name: name.to_owned(), pod: is_in_pod.then(|| cart.clone()) };
            for group in [alone(), in_pod()] {
                let unique = unique_name(&group).to_owned();
                names.containers.insert(unique, container.clone());
            }
        }
        if pod {
            names.pods.insert(pod_group(), cart);
        }
        names
    }

    fn alone() -> String {
        format!("/system.slice/docker-{ID}.scope")
    }

    fn pod_group() -> String {
        format!("/kubepods/burstable/pod{UID}")
    }

    fn in_pod() -> String {
        pod_group() + "/" + ID
    }

    #[test]
    fn a_container_is_called_by_what_is_known_of_it() {
        let (alone, in_pod) = (alone(), in_pod());
        for (names, path, expected) in [
            (named(None, false), &alone, "docker 3350ade4226f"),
            (named(Some(("web", false)), false), &alone, "web (docker 3350ade4226f)"),
            (named(Some(("app", true)), false), &in_pod, "shop/cart-0: app"),
            (named(Some(("app", false)), true), &in_pod, "shop/cart-0: app"),
            (named(None, true), &in_pod, "shop/cart-0: container 3350ade4226f"),
            (named(None, false), &in_pod, "container 3350ade4226f"),
        ] {
            assert_eq!(names.innermost(path).as_deref(), Some(expected));
            assert_eq!(names.service(unique_name(path)), expected);
        }
    }

    #[test]
    fn a_name_is_of_one_cgroup_and_of_no_other_with_its_id() {
        let mut names = named(Some(("web", false)), true);
        names.users.insert(7, "al".to_owned());
        let of_al = "/user.slice/user-7.slice/user@7.service";
        for (path, expected) in [
            (format!("{of_al}/docker-{ID}.scope"), "docker 3350ade4226f of user al"),
            (
                format!("/user.slice/user-7.slice/docker-{ID}.scope"),
                "docker 3350ade4226f of user al",
            ),
            (format!("/system.slice/batch.service/docker-{ID}.scope"), "docker 3350ade4226f"),
            (format!("{}/docker/{ID}", in_pod()), "shop/cart-0: docker 3350ade4226f"),
            (format!("{of_al}/app.slice/mysqld.service"), "mysqld.service of user al"),
            (format!("{of_al}{}", pod_group()), &*format!("pod {UID} of user al")),
            (alone(), "web (docker 3350ade4226f)"),
        ] {
            assert_eq!(names.service(unique_name(&path)), expected, "{path}");
            assert_eq!(names.innermost(&path).as_deref(), Some(expected), "{path}");
        }
        let copy = format!("{of_al}/docker-{ID}.scope");
        assert_eq!(names.place(&copy), "container 3350ade4226f of user al");
        let inner = format!("{}/system.slice/nginx.service", alone());
        assert_eq!(names.service(&inner), "nginx.service in web (docker 3350ade4226f)");
    }

    #[test]
    fn what_has_a_name_keeps_it() {
        let mut names = named(Some(("web", false)), false);
        names.fill_from(named(Some(("other", false)), true));
        let mut expected = named(Some(("web", false)), true);
        assert_eq!(names, expected);
        assert_eq!(names.count(), 3);
        let user =
            GroupNames { users: BTreeMap::from([(7, "al".to_owned())]), ..GroupNames::default() };
        expected.fill_from(user);
        assert_eq!(expected.count(), 4);
    }

    #[test]
    fn pods_units_and_users_too() {
        let mut names = named(None, true);
        names.users.insert(1000, "alice".to_owned());
        let pod = pod_group();
        for (path, expected) in [
            (&*pod, Some("shop/cart-0")),
            ("/user.slice/user-1000.slice", Some("alice")),
            ("/user.slice/user-7.slice", Some("user 7")),
            (r"/system.slice/a\x2db.service", Some("a-b.service")),
            ("/app", None),
        ] {
            assert_eq!(names.innermost(path).as_deref(), expected, "{path}");
        }
        assert_eq!(named(None, false).innermost(&pod), Some(format!("pod {UID}")));
        assert_eq!(names.service(r"a\x2db.service"), "a-b.service");
        assert!(names.has_all_of(&pod) && names.has_all_of("/app"));
        assert!(!names.has_all_of(&format!("{pod}/{ID}")));
        assert!(!names.has_all_of("/user.slice/user-7.slice"));
        assert_eq!(names.service(&format!("docker-{ID}.scope")), "docker 3350ade4226f");
    }
}
