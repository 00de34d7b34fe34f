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

/// Length of the names that the kernel keeps; longer ones are cut.
const COMM_LEN: usize = 15;

impl ExplainTarget {
    /// A number is a PID, anything else a name.
    pub fn parse(text: &str) -> Self {
        text.parse()
            .map_or_else(|_| Self::Name(text.to_owned()), Self::Pid)
    }

    /// Returns the processes that are meant, the largest first; never none.
    ///
    /// # Errors
    /// [`ExplainError`] if there is none, or only such that have no memory.
    pub fn select(&self, root: &Root) -> Result<Vec<ProcessIdentity>, ExplainError> {
        let found = match self {
            Self::Pid(pid) => match ProcessIdentity::read(root, *pid) {
                Ok(one) => vec![one],
                Err(_) => return Err(no_such(root, *pid)),
            },
            Self::Name(name) => find(root, |one| is_named(one, name.as_bytes()))?,
            Self::Service(name) => find(root, |one| belongs_to(one, name))?,
        };
        let (living, without): (Vec<_>, Vec<_>) =
            found.into_iter().partition(|one| memoryless(one).is_none());
        match (living.is_empty(), without.first(), self) {
            (false, ..) => Ok(living),
            (true, Some(one), _) => Err(memoryless(one).unwrap_or(ExplainError::Ended(one.pid))),
            (true, None, Self::Service(name)) => Err(ExplainError::NoService(name.clone())),
            (true, None, Self::Name(name)) => Err(ExplainError::NoName(name.clone())),
            (true, None, Self::Pid(pid)) => Err(ExplainError::Ended(*pid)),
        }
    }
}

fn find(
    root: &Root,
    is_wanted: impl FnMut(&ProcessIdentity) -> bool,
) -> Result<Vec<ProcessIdentity>, ExplainError> {
    let own = std::process::id();
    let found = ProcessIdentity::find(root, is_wanted);
    let mut found = found.map_err(|source: ReadError| ExplainError::Read { source })?;
    found.retain(|one| one.pid != own);
    Ok(found)
}

fn is_named(one: &ProcessIdentity, name: &[u8]) -> bool {
    let is_cut = one.name.len() == COMM_LEN && name.starts_with(&one.name);
    let program = one.program.as_deref().unwrap_or_default();
    one.name == name || is_cut || program.rsplit(|byte| *byte == b'/').next() == Some(name)
}

fn belongs_to(one: &ProcessIdentity, name: &str) -> bool {
    let is_service =
        |service: &str| service == name || service.strip_suffix(".service") == Some(name);
    let is_cgroup = |cgroup: &str| {
        let leaf = cgroup.rsplit('/').next().unwrap_or_default();
        cgroup == name || is_service(leaf)
    };
    one.service.as_deref().is_some_and(is_service) || one.cgroup.as_deref().is_some_and(is_cgroup)
}

/// Returns why a process has no memory to explain; `None` if it has.
fn memoryless(one: &ProcessIdentity) -> Option<ExplainError> {
    let name = || String::from_utf8_lossy(&one.name).into_owned();
    match one.facts.state {
        Some('Z' | 'X') => Some(ExplainError::Zombie {
            pid: one.pid,
            name: name(),
        }),
        // A program may overwrite its arguments, but only a kernel thread has neither those nor a resident page.
        _ if one.command.is_empty() && one.rss.is_some_and(|pages| pages.get() == 0) => {
            Some(ExplainError::KernelThread {
                pid: one.pid,
                name: name(),
            })
        }
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
    ExplainError::NoPid {
        pid,
        here: here.first().map(|one| one.pid),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(name: &str, program: &str, service: &str) -> ProcessIdentity {
        ProcessIdentity {
            name: name.as_bytes().to_vec(),
            program: Some(program.as_bytes().to_vec()),
            service: Some(service.to_owned()),
            cgroup: Some("/system.slice/ruby.service".to_owned()),
            ..ProcessIdentity::default()
        }
    }

    #[test]
    fn a_process_has_several_names() {
        let one = process("puma: cluster w", "/usr/bin/ruby3.1", "jobs.service");
        assert!(is_named(&one, b"ruby3.1") && is_named(&one, b"puma: cluster worker 1"));
        assert!(!is_named(&one, b"ruby") && !is_named(&one, b"puma"));
        assert!(belongs_to(&one, "jobs") && belongs_to(&one, "jobs.service"));
        assert!(belongs_to(&one, "/system.slice/ruby.service") && belongs_to(&one, "ruby"));
        assert!(!belongs_to(&one, "job"));
    }

    #[test]
    fn what_has_no_memory_is_refused_with_the_reason() {
        let root = Root::default();
        let own = std::process::id();
        assert_eq!(ExplainTarget::Pid(own).select(&root).unwrap()[0].pid, own);
        let gone = ExplainTarget::Pid(0x3fff_ffff).select(&root).unwrap_err();
        assert!(matches!(gone, ExplainError::NoPid { here: None, .. }));
        let mut zombie = process("x", "", "");
        zombie.facts.state = Some('Z');
        assert!(matches!(
            memoryless(&zombie),
            Some(ExplainError::Zombie { .. })
        ));
        assert_eq!(ExplainTarget::parse("12"), ExplainTarget::Pid(12));
        assert_eq!(
            ExplainTarget::parse("ruby"),
            ExplainTarget::Name("ruby".to_owned())
        );
    }
}
