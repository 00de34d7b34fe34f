//! Was a variant applied? Read from its processes while they run: the environment shows what was wanted, and a mistyped
//! preload, a setuid bit or a wrapper that drops it lie silently.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anatomy::{AllocatorKind, EffectiveAllocator, EnvironmentUse, ProviderPlace};
use probe::{ProcessIdentity, Root};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::PageSize;

use crate::variant::{MallocChoice, Variant, VariantSetting};

/// A process of a run as it was seen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SeenProcess {
    /// Its PID, as memtide sees it.
    pub pid: u32,
    /// Its name, at most 15 bytes.
    pub name: String,
    /// Where its calls of malloc go, most of them first: names of allocators, or paths of libraries without a known one.
    pub mallocs: Vec<String>,
    /// The file of the first of them.
    pub malloc_file: Option<String>,
    /// Allocators in the program's own file that are another malloc than that.
    pub bundled: Vec<String>,
    /// Whether no library can be loaded into it.
    pub is_static: bool,
    /// Whether it ignores the environment, as it was started with more rights than its user has.
    pub ignores_environment: bool,
    /// Whether transparent huge pages are on for it; unknown before 5.0.
    pub has_thp: Option<bool>,
    /// Which of the variant's variables its environment has; tunables without the other ones.
    pub variables: Vec<String>,
    /// The CPUs that it may use.
    pub cpus: Vec<usize>,
    /// Arenas of glibc's malloc, where they were counted.
    pub arenas: Option<usize>,
}

/// Whether a variant was applied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Applied {
    /// Seen in each process.
    Yes,
    /// Seen not to be, and how.
    No(String),
    /// Not seen, and why.
    NotSeen(String),
}

/// Examines the processes of a run as it goes on, in a thread of its own: a heap of a GiB takes 0.3 s to walk, and readings must
/// not wait for that.
#[derive(Debug)]
pub(crate) struct AppliedWatch {
    wanted: WantedSettings,
    asked: Option<Sender<Vec<u32>>>,
    looker: Option<JoinHandle<BTreeMap<u32, SeenProcess>>>,
    /// Looks that were asked for and are not done.
    open: Arc<AtomicUsize>,
    next: Duration,
    begun: Instant,
}

/// What a variant wants to be seen.
#[derive(Debug, Clone, Default)]
struct WantedSettings {
    malloc: Option<MallocChoice>,
    arenas: Option<u32>,
    is_without_thp: bool,
    /// Variables, as `environ` has them: `NAME=value`, or the beginning of it.
    variables: Vec<String>,
    cpus: Option<Vec<usize>>,
}

impl WantedSettings {
    fn of(variant: &Variant) -> Self {
        let mut wanted = Self::default();
        for setting in &variant.settings {
            match setting {
                VariantSetting::Malloc(choice) => wanted.malloc = Some(choice.clone()),
                VariantSetting::Arenas(arenas) => {
                    wanted.arenas = Some(*arenas);
                    wanted.variables.push(format!("MALLOC_ARENA_MAX={arenas}"));
                }
                VariantSetting::ThpOff => wanted.is_without_thp = true,
                VariantSetting::Tunable { name, value } => {
                    wanted.variables.push(format!("glibc.malloc.{name}={value}"));
                }
                VariantSetting::Environment { name, value } => {
                    wanted.variables.push(format!("{name}={value}"));
                }
                VariantSetting::Cpus(cpus) => wanted.cpus = Some(cpus.clone()),
                // Read back where they are set, or not to be seen from outside.
                VariantSetting::Command(_)
                | VariantSetting::Vm { .. }
                | VariantSetting::SwapArea(_)
                | VariantSetting::Thp(_)
                | VariantSetting::Kernel(_)
                | VariantSetting::Limit(_)
                | VariantSetting::High(_)
                | VariantSetting::Swap(_) => {}
            }
        }
        wanted
    }
}

impl AppliedWatch {
    /// The first look: earlier the dynamic linker is still at work.
    const FIRST: Duration = Duration::from_millis(40);
    /// Processes beyond this number are not examined.
    const PROCESSES_MAX: usize = 64;

    /// Arenas are counted where `counts_arenas`, as that walks the whole heap.
    pub(crate) fn of(variant: &Variant, counts_arenas: bool) -> Self {
        let mut wanted = WantedSettings::of(variant);
        wanted.arenas = wanted.arenas.filter(|_| counts_arenas);
        let (asked, to_look) = channel::<Vec<u32>>();
        let open = Arc::new(AtomicUsize::new(0));
        let (left, with_arenas) = (Arc::clone(&open), wanted.arenas.is_some());
        let variables = wanted.variables.clone();
        let looker = std::thread::spawn(move || {
            let mut seen = BTreeMap::new();
            for pids in to_look {
                look(&pids, with_arenas, &variables, &mut seen);
                left.fetch_sub(1, Ordering::Relaxed);
            }
            seen
        });
        Self {
            wanted,
            asked: Some(asked),
            looker: Some(looker),
            open,
            next: Self::FIRST,
            begun: Instant::now(),
        }
    }

    /// Looks where it is time for it: after 40 ms, 80 ms and so on.
    pub(crate) fn look_when_due(&mut self, pids: impl FnOnce() -> Vec<u32>) {
        if self.begun.elapsed() >= self.next && !self.is_looking() {
            self.next = self.begun.elapsed() * 2;
            self.look(pids());
        }
    }

    /// Examines processes that are new, and those with calls that were not bound before.
    pub(crate) fn look(&mut self, mut pids: Vec<u32>) {
        pids.truncate(Self::PROCESSES_MAX);
        self.open.fetch_add(1, Ordering::Relaxed);
        let is_taken = self.asked.as_ref().is_some_and(|asked| asked.send(pids).is_ok());
        if !is_taken {
            self.open.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Whether a look goes on, for which a process must not end yet.
    pub(crate) fn is_looking(&self) -> bool {
        self.open.load(Ordering::Relaxed) > 0
    }

    /// What was seen, and whether it is what was wanted.
    pub(crate) fn finish(mut self) -> (Vec<SeenProcess>, Applied) {
        self.asked.take();
        let seen = self.looker.take().and_then(|looker| looker.join().ok()).unwrap_or_default();
        let seen: Vec<SeenProcess> = seen.into_values().collect();
        let applied = judge(&self.wanted, &seen);
        (seen, applied)
    }
}

/// Examines processes that were not seen as they are.
fn look(
    pids: &[u32],
    counts_arenas: bool,
    variables: &[String],
    seen: &mut BTreeMap<u32, SeenProcess>,
) {
    for pid in pids {
        let is_settled = seen
            .get(pid)
            .is_some_and(|one| one.is_static || (!one.mallocs.is_empty() && !counts_arenas));
        if !is_settled && let Some(now) = see(*pid, counts_arenas, variables) {
            seen.insert(*pid, now);
        }
    }
}

/// Examines a process; `None` where it has ended, or may not be read.
fn see(pid: u32, counts_arenas: bool, variables: &[String]) -> Option<SeenProcess> {
    let root = Root::default();
    let page = u64::try_from(rustix::param::page_size()).ok().and_then(PageSize::from_bytes)?;
    let identity = ProcessIdentity::read(&root, pid).ok()?;
    let found = anatomy::effective_allocator(&root, pid, page).ok()?;
    let arenas = counts_arenas
        .then(|| heap::read_process(&root, pid, page).ok().map(|heap| heap.arenas.len()))
        .flatten();
    Some(SeenProcess {
        pid,
        name: String::from_utf8_lossy(&identity.name).into_owned(),
        mallocs: names(&found),
        malloc_file: found.providers.first().and_then(|one| Some(one.file()?.path.clone())),
        bundled: if found.has_several() {
            found.bundled.iter().map(|one| one.kind.name().to_owned()).collect()
        } else {
            Vec::new()
        },
        is_static: found.is_static,
        ignores_environment: found.environment == EnvironmentUse::IgnoredAsSecure,
        has_thp: identity.facts.thp_enabled,
        variables: variables_of(&root, pid, variables),
        cpus: cpus_of(pid),
        arenas,
    })
}

/// Which of these its environment has, as it was when its program was started.
fn variables_of(root: &Root, pid: u32, wanted: &[String]) -> Vec<String> {
    let environment = root.read(&format!("/proc/{pid}/environ")).unwrap_or_default();
    let has = |wanted: &&String| {
        environment.split(|byte| *byte == 0).any(|variable| {
            match variable.strip_prefix(b"GLIBC_TUNABLES=") {
                Some(tunables) => {
                    tunables.split(|byte| *byte == b':').any(|one| one == wanted.as_bytes())
                }
                None => variable == wanted.as_bytes(),
            }
        })
    };
    wanted.iter().filter(has).cloned().collect()
}

/// The CPUs that a process may use; none where it has ended.
fn cpus_of(pid: u32) -> Vec<usize> {
    let pid = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw);
    let set = pid.and_then(|pid| rustix::thread::sched_getaffinity(Some(pid)).ok());
    let set = set.unwrap_or_else(rustix::thread::CpuSet::new);
    (0..rustix::thread::CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu)).collect()
}

fn names(found: &EffectiveAllocator) -> Vec<String> {
    let name = |place: &ProviderPlace, kind: Option<AllocatorKind>| {
        let known = match (kind, place) {
            (Some(kind), _) => kind.name().to_owned(),
            (None, ProviderPlace::File(file)) => file.path.clone(),
            (None, ProviderPlace::Anonymous) => "code without a file".to_owned(),
            // A slot that is being written: the process is in exec(2).
            (None, ProviderPlace::Nowhere) => return None,
        };
        Some(known)
    };
    found.providers.iter().filter_map(|one| name(&one.place, one.kind())).collect()
}

/// The allocator that a choice is.
fn wanted_kind(choice: &MallocChoice) -> Option<AllocatorKind> {
    Some(match choice {
        MallocChoice::Glibc => AllocatorKind::Ptmalloc,
        MallocChoice::Jemalloc => AllocatorKind::Jemalloc,
        MallocChoice::Tcmalloc => AllocatorKind::Gperftools,
        MallocChoice::Mimalloc => AllocatorKind::Mimalloc,
        MallocChoice::Library(_) => return None,
    })
}

fn judge(wanted: &WantedSettings, seen: &[SeenProcess]) -> Applied {
    let wants_anything = wanted.malloc.is_some()
        || wanted.arenas.is_some()
        || wanted.is_without_thp
        || !wanted.variables.is_empty()
        || wanted.cpus.is_some();
    if !wants_anything {
        return Applied::Yes;
    }
    if seen.is_empty() {
        return Applied::NotSeen("it ended before it could be looked at".to_owned());
    }
    // A wrapper may have it and its program not, or the other way round: one that has it is enough.
    for variable in &wanted.variables {
        if !seen.iter().any(|one| one.variables.contains(variable)) {
            return Applied::No(format!("no process has {variable} in its environment"));
        }
    }
    let mut unseen = None;
    for one in seen {
        match judge_one(wanted, one) {
            Applied::Yes => {}
            Applied::No(why) => return Applied::No(format!("{} ({}) {why}", one.name, one.pid)),
            Applied::NotSeen(why) => unseen = Some(format!("{} ({}) {why}", one.name, one.pid)),
        }
    }
    unseen.map_or(Applied::Yes, Applied::NotSeen)
}

fn judge_one(wanted: &WantedSettings, one: &SeenProcess) -> Applied {
    let needs_environment =
        wanted.malloc.is_some() || wanted.arenas.is_some() || !wanted.variables.is_empty();
    if needs_environment && one.ignores_environment {
        return Applied::No(
            "runs with more rights than its user (set-user-ID or capabilities) and ignores the \
             environment"
                .to_owned(),
        );
    }
    if let Some(choice) = &wanted.malloc {
        if one.is_static {
            return Applied::No("is static: no library can be loaded into it".to_owned());
        }
        let kind = wanted_kind(choice).map(AllocatorKind::name);
        let is_it = match (kind, choice) {
            (Some(kind), _) => one.mallocs.first().is_some_and(|name| name == kind),
            (None, MallocChoice::Library(path)) => is_same_file(one.malloc_file.as_deref(), path),
            (None, _) => false,
        };
        match one.mallocs.first() {
            None => {
                return Applied::NotSeen("had not called malloc when it was looked at".to_owned());
            }
            Some(name) if !is_it => return Applied::No(format!("uses {name}")),
            Some(_) => {}
        }
        if one.mallocs.len() > 1 || !one.bundled.is_empty() {
            let others: Vec<&str> =
                one.mallocs.iter().skip(1).chain(&one.bundled).map(String::as_str).collect();
            return Applied::NotSeen(format!("has two allocators: {} too", others.join(", ")));
        }
    }
    if wanted.is_without_thp && one.has_thp == Some(true) {
        return Applied::No("has transparent huge pages".to_owned());
    }
    if let Some(cpus) = wanted.cpus.as_ref().filter(|_| !one.cpus.is_empty())
        && one.cpus.iter().any(|cpu| !cpus.contains(cpu))
    {
        return Applied::No(format!("may use the CPUs {:?}", one.cpus));
    }
    if let Some(most) = wanted.arenas {
        match one.arenas {
            Some(arenas) if arenas > usize::try_from(most).unwrap_or(usize::MAX) => {
                return Applied::No(format!("has {arenas} arenas"));
            }
            Some(_) => {}
            None if one
                .mallocs
                .first()
                .is_some_and(|name| name == AllocatorKind::Ptmalloc.name()) =>
            {
                return Applied::NotSeen("has a heap that could not be read".to_owned());
            }
            None => return Applied::No("does not use glibc's malloc".to_owned()),
        }
    }
    Applied::Yes
}

/// Whether a mapped file is the one that was asked for: links and `..` lead to the same.
fn is_same_file(mapped: Option<&str>, asked: &str) -> bool {
    let real = std::fs::canonicalize(asked).ok();
    mapped.is_some_and(|mapped| {
        mapped == asked || real.is_some_and(|real| real.as_os_str() == mapped)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(malloc: &str) -> SeenProcess {
        SeenProcess {
            pid: 7,
            name: "jobs".into(),
            mallocs: vec![malloc.to_owned()],
            malloc_file: None,
            bundled: Vec::new(),
            is_static: false,
            ignores_environment: false,
            has_thp: Some(true),
            variables: Vec::new(),
            cpus: vec![0, 1],
            arenas: None,
        }
    }

    #[test]
    fn what_is_seen_decides_and_not_what_was_wanted() {
        let jemalloc =
            WantedSettings { malloc: Some(MallocChoice::Jemalloc), ..WantedSettings::default() };
        assert_eq!(judge(&jemalloc, &[seen("jemalloc")]), Applied::Yes);
        let escaped = judge(&jemalloc, &[seen("jemalloc"), seen("ptmalloc (glibc)")]);
        assert_eq!(escaped, Applied::No("jobs (7) uses ptmalloc (glibc)".into()));
        let secure = SeenProcess { ignores_environment: true, ..seen("jemalloc") };
        assert!(matches!(judge(&jemalloc, &[secure]), Applied::No(_)));
        assert!(matches!(judge(&jemalloc, &[]), Applied::NotSeen(_)));
        let unbound = SeenProcess { mallocs: Vec::new(), ..seen("") };
        assert!(matches!(judge(&jemalloc, &[unbound]), Applied::NotSeen(_)));
        assert_eq!(judge(&WantedSettings::default(), &[seen("jemalloc")]), Applied::Yes);
    }

    #[test]
    fn a_variable_that_no_process_has_and_other_cpus_are_seen() {
        let variables = vec!["FOO=1".to_owned()];
        let wanted = WantedSettings { variables: variables.clone(), ..WantedSettings::default() };
        assert!(matches!(judge(&wanted, &[seen("x")]), Applied::No(_)));
        let with = SeenProcess { variables, ..seen("x") };
        assert_eq!(judge(&wanted, &[seen("x"), with]), Applied::Yes);
        let on_first = WantedSettings { cpus: Some(vec![0]), ..WantedSettings::default() };
        let why = judge(&on_first, &[seen("x")]);
        assert_eq!(why, Applied::No("jobs (7) may use the CPUs [0, 1]".into()));
    }

    #[test]
    fn arenas_and_huge_pages_are_read_back() {
        let wanted = WantedSettings { arenas: Some(2), ..WantedSettings::default() };
        let with = |arenas| SeenProcess { arenas, ..seen("ptmalloc (glibc)") };
        assert_eq!(judge(&wanted, &[with(Some(2))]), Applied::Yes);
        assert_eq!(judge(&wanted, &[with(Some(8))]), Applied::No("jobs (7) has 8 arenas".into()));
        assert!(matches!(judge(&wanted, &[with(None)]), Applied::NotSeen(_)));
        let without = WantedSettings { is_without_thp: true, ..WantedSettings::default() };
        assert!(matches!(judge(&without, &[seen("x")]), Applied::No(_)));
    }
}
