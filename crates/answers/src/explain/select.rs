//! Which process is meant: a PID, a name, or a service.

use probe::{ProcessIdentity, ReadError, Root};

use super::ExplainError;

/// How a process is named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExplainTarget {
    /// By its PID.
    Pid(u32),
    /// By its name, or by that of its program: the largest of that name.
    Name(String),
    /// By its service, container or pod, or by its cgroup: the largest process of it.
    Service(String),
}

impl ExplainTarget {
    /// A number is a PID, anything else a name.
    pub fn parse(text: &str) -> Self {
        text.parse().map_or_else(|_| Self::Name(text.to_owned()), Self::Pid)
    }

    /// Returns the processes that are meant; never none. The first is the largest by anonymous memory, and the owners take
    /// turns ([`ProcessIdentity::in_turns`]). `own` are the PIDs of the program that asks: a name does not mean them.
    ///
    /// # Errors
    /// [`ExplainError`] if there is none, or only such that have no memory.
    pub fn select(&self, root: &Root, own: &[u32]) -> Result<Vec<ProcessIdentity>, ExplainError> {
        let found = match self {
            Self::Pid(pid) => match ProcessIdentity::read(root, *pid) {
                Ok(one) => vec![one],
                Err(_) => return Err(no_such(root, *pid)),
            },
            Self::Name(name) => find(root, own, |one| one.is_named(name.as_bytes()))?,
            Self::Service(name) => find(root, own, |one| one.belongs_to(name))?,
        };
        let reason = |one: &ProcessIdentity| memoryless(root, one);
        let (living, without): (Vec<_>, Vec<_>) =
            found.into_iter().partition(|one| reason(one).is_none());
        match (living.is_empty(), without.first(), self) {
            (false, ..) => {
                let in_turns = ProcessIdentity::in_turns(&living);
                Ok(in_turns.into_iter().cloned().collect())
            }
            (true, Some(one), _) => Err(reason(one).unwrap_or(ExplainError::Ended(one.pid))),
            (true, None, Self::Service(name)) => Err(ExplainError::NoService(name.clone())),
            (true, None, Self::Name(name)) => {
                Err(ExplainError::NoName { name: name.clone(), running: meant(root, own, name) })
            }
            (true, None, Self::Pid(pid)) => Err(ExplainError::Ended(*pid)),
        }
    }
}

/// What people call programs, and what their processes are called: the names of Debian, Fedora and upstream.
const OTHER_NAMES: [(&str, &[&str]); 14] = [
    ("mysqld", &["mariadbd"]),
    ("mysql", &["mariadbd", "mysqld"]),
    ("mariadb", &["mariadbd", "mysqld"]),
    ("postgresql", &["postgres"]),
    ("pgsql", &["postgres"]),
    ("redis", &["redis-server", "valkey-server"]),
    ("valkey", &["valkey-server", "redis-server"]),
    ("erlang", &["beam.smp"]),
    ("rabbitmq", &["beam.smp"]),
    ("nodejs", &["node"]),
    ("apache", &["apache2", "httpd"]),
    ("mongodb", &["mongod"]),
    ("elasticsearch", &["java"]),
    ("chrome", &["chromium"]),
];

/// Returns names of running processes that may be meant: that people call so, that contain what was typed, or that differ from
/// it in a letter.
fn meant(root: &Root, own: &[u32], typed: &str) -> Vec<String> {
    const NAMES_MAX: usize = 3;
    const LETTERS_MIN: usize = 3;
    let of_people = OTHER_NAMES.iter().filter(|(name, _)| *name == typed);
    let others: Vec<&str> = of_people.flat_map(|(_, names)| *names).copied().collect();
    let likeness = |name: &str| {
        let is_part = typed.len() >= LETTERS_MIN && name.contains(typed);
        let is_near =
            typed.len() > LETTERS_MIN && crate::nearest::letters_to_change(name, typed) <= 1;
        (others.contains(&name)).then_some(0).or(is_part.then_some(1)).or(is_near.then_some(2))
    };
    let processes = ProcessIdentity::find(root, |one| {
        !own.contains(&one.pid) && memoryless(root, one).is_none()
    });
    let ranked = processes.unwrap_or_default().into_iter().filter_map(|one| {
        let name = String::from_utf8_lossy(&one.name).into_owned();
        Some((likeness(&name)?, name))
    });
    let mut ranked: Vec<(u32, String)> = ranked.collect();
    ranked.sort_unstable();
    ranked.dedup();
    ranked.into_iter().map(|(_, name)| name).take(NAMES_MAX).collect()
}

fn find(
    root: &Root,
    own: &[u32],
    mut is_wanted: impl FnMut(&ProcessIdentity) -> bool,
) -> Result<Vec<ProcessIdentity>, ExplainError> {
    ProcessIdentity::find(root, |one| !own.contains(&one.pid) && is_wanted(one))
        .map_err(|source: ReadError| ExplainError::Read { source })
}

/// Returns why a process has no memory to explain; `None` if it has.
fn memoryless(root: &Root, one: &ProcessIdentity) -> Option<ExplainError> {
    let name = || String::from_utf8_lossy(&one.name).into_owned();
    let pid = one.pid;
    match one.facts.state {
        Some('Z' | 'X') => Some(match one.other_thread(root) {
            Some(thread) => ExplainError::FirstThreadEnded { pid, name: name(), thread },
            None => ExplainError::Zombie { pid, name: name() },
        }),
        _ if one.is_kernel_thread => Some(ExplainError::KernelThread { pid, name: name() }),
        _ => None,
    }
}

/// The PID may be that of a container.
fn no_such(root: &Root, pid: u32) -> ExplainError {
    let inner = |one: &ProcessIdentity| {
        let pids = &one.facts.namespace_pids;
        pids.len() > 1 && pids.last() == Some(&pid)
    };
    let here = ProcessIdentity::find(root, inner).unwrap_or_default();
    ExplainError::NoPid { pid, here: here.first().map(|one| one.pid) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_memory_is_refused_with_the_reason() {
        let root = Root::default();
        let own = std::process::id();
        assert_eq!(ExplainTarget::Pid(own).select(&root, &[]).unwrap()[0].pid, own);
        let gone = ExplainTarget::Pid(0x3fff_ffff).select(&root, &[]).unwrap_err();
        assert!(matches!(gone, ExplainError::NoPid { here: None, .. }));
        let mut zombie = ProcessIdentity::default();
        zombie.facts.state = Some('Z');
        assert!(matches!(memoryless(&root, &zombie), Some(ExplainError::Zombie { .. })));
        assert_eq!(ExplainTarget::parse("12"), ExplainTarget::Pid(12));
        assert_eq!(ExplainTarget::parse("ruby"), ExplainTarget::Name("ruby".to_owned()));
    }
}
