//! The end of a report: the reason, and the killed processes.

use timeline::kernel_report::{Constraint, Killed};
use units::Bytes;

use super::scan::{self, cut, signed, size, small};
use super::taken::Taken;
use crate::text::SplitText as _;

/// The end of a report as far as it is read.
#[derive(Debug, Default)]
pub(super) struct KillLines {
    pub(super) constraint: Option<Constraint>,
    pub(super) group_path: Option<String>,
    pub(super) victim_path: Option<String>,
    pub(super) cpuset: Option<String>,
    pub(super) mems_allowed: Option<String>,
    pub(super) nodemask: Option<String>,
    /// Whether a kill line names a cgroup's limit as the reason.
    pub(super) is_group: bool,
    /// Whether there was no process to kill, or the kernel was configured to panic instead.
    pub(super) is_without_kill: bool,
    /// The task that `oom-kill:` names.
    named: Option<Killed>,
    /// The task that the kernel chose; it may have killed a child of it instead.
    chosen: Option<Killed>,
    killed: Vec<Killed>,
    is_whole_group: bool,
    /// Whether the line of the kill is cut off before the process.
    is_cut: bool,
    /// Whether kernel 2.4 wrote the line of the kill, behind lines of failed allocations.
    pub(super) is_of_old_kernel: bool,
    /// Whether the line with the reason is cut off before the task.
    is_reason_cut: bool,
    /// The text from the PID on of a kill with a line that ends within the name: the name has a line end.
    unclosed: Option<String>,
    /// Whether the lines are whole messages of the kernel.
    is_verbatim: bool,
}

/// Bounds the list: a cgroup may have more processes than is useful to list.
const KILLED_MAX: usize = 1000;

impl KillLines {
    /// The end of a report of whole messages of the kernel.
    pub(super) fn of_messages() -> Self {
        Self { is_verbatim: true, ..Self::default() }
    }

    pub(super) fn take(&mut self, line: &str) -> Taken {
        if let Some(front) = self.unclosed.take()
            && self.closed(&format!("{front}\n{line}"))
        {
            return Taken::Yes;
        }
        if let Some(rest) = line.strip_prefix("oom-kill:") {
            return self.constraint(rest);
        }
        if is_group_kill(line) {
            self.is_whole_group = true;
            return Taken::Yes;
        }
        if ENDS.iter().any(|end| line.starts_with(end)) {
            self.ended(line);
            return Taken::Yes;
        }
        if let Some(killed) = old_kill(line).or_else(|| traced_kill(line)) {
            if self.is_done() {
                return Taken::Again;
            }
            if killed.pid == 0 {
                self.is_of_old_kernel = true;
                // It has no cgroups.
                self.constraint = Some(Constraint::None);
            }
            self.killed.push(killed);
            return Taken::Yes;
        }
        let Some((front, rest)) = kill_line(line) else {
            return Taken::No;
        };
        let taken = if let Some(rest) = rest.strip_prefix("Killed process ") {
            self.killed(front, rest)
        } else {
            self.chosen(rest)
        };
        if taken.is_taken() {
            self.is_group |= front.starts_with("Memory cgroup");
            if front.eq_ignore_ascii_case("Out of memory") {
                self.constraint.get_or_insert(Constraint::None);
            }
            if front.contains("MPOL_BIND") {
                self.constraint = Some(Constraint::MemoryPolicy);
            }
        }
        taken
    }

    /// Notes a line of [`ENDS`].
    fn ended(&mut self, line: &str) {
        let Some(reaped) = line.strip_prefix("oom_reaper: ") else {
            self.is_without_kill = true;
            self.is_group |= line.starts_with("Memory cgroup");
            if !self.is_group {
                self.constraint.get_or_insert(Constraint::None);
            }
            return;
        };
        // Alone, it is the only line that names the killed process.
        let victim = reaped.strip_prefix("reaped process ").filter(|_| !self.is_begun());
        if let Some((pid, victim)) = victim.and_then(|victim| Some((pid(victim)?, victim))) {
            self.killed.push(Killed { pid, name: name(victim), ..Killed::default() });
        }
    }

    /// Whether any of its lines was read.
    pub(super) fn is_begun(&self) -> bool {
        self.named.is_some() || self.is_reason_cut || self.is_done()
    }

    /// Whether a process was killed, so that the report is complete.
    pub(super) fn is_done(&self) -> bool {
        !self.killed.is_empty()
            || self.chosen.is_some()
            || self.is_without_kill
            || self.is_whole_group
            || self.is_cut
    }

    /// Returns the killed processes that were reported.
    pub(super) fn into_killed(self) -> Vec<Killed> {
        let mut killed = self.killed;
        if killed.is_empty() {
            killed.extend(self.chosen.or(self.named));
        }
        killed
    }

    /// Returns the first killed process with a known size of its address space.
    pub(super) fn address_space(&self) -> Option<(u32, Bytes)> {
        let mut sizes =
            self.killed.iter().filter_map(|killed| Some((killed.pid, killed.total_vm?)));
        sizes.next()
    }

    /// Takes
    /// `constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=/,mems_allowed=0,global_oom,task_memcg=/a,task=b,pid=1,uid=0`.
    fn constraint(&mut self, text: &str) -> Taken {
        if !text.trim_start().starts_with("constraint=") {
            return Taken::No;
        }
        let constraint = match scan::value(text, "constraint") {
            Some("CONSTRAINT_NONE") => Some(Constraint::None),
            Some("CONSTRAINT_CPUSET") => Some(Constraint::Cpuset),
            Some("CONSTRAINT_MEMORY_POLICY") => Some(Constraint::MemoryPolicy),
            Some("CONSTRAINT_MEMCG") => Some(Constraint::ControlGroup),
            _ => None,
        };
        let (front, named) = match named(text) {
            Some((front, named)) => (front, Some(named)),
            None => (text.around(",task=").map_or(text, |(front, _)| front), None),
        };
        match (&named, constraint) {
            (Some(named), _) if self.named.is_some() || !self.killed.is_empty() => {
                return self.before(named.pid);
            }
            (None, _) if self.is_begun() => return Taken::Again,
            _ => {}
        }
        let taken = Taken::whole(named.is_some());
        self.is_reason_cut |= taken == Taken::Part;
        self.constraint = constraint;
        let paths = paths(front);
        // Lists of nodes may contain commas: they end where the next field begins.
        let before = paths.as_ref().map_or(front, |paths| paths.before);
        let until = |from: &str, to: &str| {
            let (_, rest) = before.around(from)?;
            let end = rest.find(to)?;
            Some(cut(rest.get(..end)?, 4096))
        };
        self.cpuset = until(",cpuset=", ",mems_allowed=");
        self.nodemask = until(",nodemask=", ",cpuset=").filter(|mask| mask != "(null)");
        let mems = before.around(",mems_allowed=").map(|(_, mems)| mems);
        let nodes = mems.map(|mems| mems.strip_suffix(",global_oom").unwrap_or(mems));
        if let Some(paths) = paths {
            self.mems_allowed = nodes.map(|nodes| cut(nodes, 4096));
            self.group_path = paths.limit.map(|path| cut(path, 4096));
            let is_whole = front.len() < text.len();
            self.victim_path = is_whole.then(|| cut(paths.victim, 4096));
        }
        self.named = named;
        taken
    }

    /// Takes the rest of a kill's line: with it, the line is whole or goes on to break.
    fn closed(&mut self, text: &str) -> bool {
        let killed = killed(text, self.is_verbatim);
        let Some((killed, is_whole)) = killed.filter(|(it, _)| scan::is_task_name(&it.name)) else {
            return false;
        };
        if is_whole || killed.total_vm.is_some() {
            let known = self.killed.iter_mut().find(|it| it.pid == killed.pid);
            known.map(|known| *known = killed).is_some()
        } else {
            self.unclosed = is_unclosed(text).then(|| text.to_owned());
            self.unclosed.is_some()
        }
    }

    /// Takes `123 (name) score 651 or sacrifice child`: the chosen task, which the next line kills.
    fn chosen(&mut self, text: &str) -> Taken {
        let Some((rest, pid)) = kill_or_child(text).and_then(|rest| Some((rest, pid(rest)?)))
        else {
            return Taken::No;
        };
        if self.is_verbatim && !names_task(rest) {
            return Taken::No;
        }
        if rest.contains("sharing same memory") {
            return Taken::Yes;
        }
        if self.chosen.is_some() || !self.killed.is_empty() {
            return self.before(pid);
        }
        let Some((_, score)) = rest.rsplit_once(" score ") else {
            // Cut off before the score.
            let is_cut = rest.trim_end().ends_with(')') && !name(rest).is_empty();
            if is_cut {
                self.chosen = Some(Killed { pid, name: name(rest), ..Killed::default() });
            }
            return if is_cut { Taken::Part } else { Taken::No };
        };
        let end = score.split_once(' ').map_or("", |(_, end)| end);
        // The score is a number of points or thousandths, depending on the kernel; a child may be killed instead.
        if !["", "or sacrifice child", "or a child", "and children."].contains(&end.trim_end()) {
            return Taken::No;
        }
        self.chosen = Some(Killed { pid, name: name(rest), ..Killed::default() });
        Taken::Yes
    }

    /// Classifies a line that belongs before a kill but was found after one: if it names a killed process, the report
    /// is in reverse order.
    fn before(&self, pid: u32) -> Taken {
        let is_of_kill = self.named.is_none()
            && self.chosen.is_none()
            && self.killed.iter().any(|killed| killed.pid == pid);
        if is_of_kill { Taken::Backwards } else { Taken::Again }
    }

    /// Takes `123 (name) total-vm:47388kB, anon-rss:3744kB, …`.
    fn killed(&mut self, front: &str, text: &str) -> Taken {
        let Some((killed, is_whole)) = killed(text, self.is_verbatim) else {
            // Cut off within the PID.
            let is_cut = !front.is_empty() && text.trim_end().bytes().all(|b| b.is_ascii_digit());
            self.is_cut |= is_cut;
            return if is_cut { Taken::Part } else { Taken::No };
        };
        let is_first = self.killed.is_empty();
        let is_same = self.killed.iter().any(|known| known.pid == killed.pid);
        // Children of a chosen task may die with it; a second kill with its own reason belongs to another report.
        if !(is_first
            || is_same
            || self.is_whole_group
            || (self.chosen.is_some() && front.is_empty()))
        {
            return Taken::Again;
        }
        if !is_same && self.killed.len() < KILLED_MAX {
            self.killed.push(killed);
        }
        self.unclosed = (!is_whole && is_unclosed(text)).then(|| text.to_owned());
        Taken::whole(is_whole)
    }
}

/// Lines that end a report without a killed process, and the reaper's line after a kill.
const ENDS: [&str; 7] = [
    "oom_reaper: ",
    "Out of memory and no killable processes",
    "Memory cgroup out of memory and no killable processes",
    "Kernel panic - not syncing: Out of memory",
    "Kernel panic - not syncing: System is deadlocked on memory",
    "Kernel panic - not syncing: out of memory",
    "System is deadlocked on memory",
];

/// Whether a line is `Tasks in /a are going to be killed due to memory.oom.group set`.
fn is_group_kill(line: &str) -> bool {
    line.starts_with("Tasks in ")
        && line.trim_end().ends_with(" are going to be killed due to memory.oom.group set")
}

/// Parses `VM: killing process gammu-smsd` of kernel 2.4, which does not name the PID.
fn old_kill(line: &str) -> Option<Killed> {
    let name = line.strip_prefix("VM: killing process ")?.trim();
    (!name.is_empty() && scan::is_task_name(name))
        .then(|| Killed { name: name.to_owned(), ..Killed::default() })
}

/// Parses `Triggered by PID 10426 ("perl"), OOM kill of PID 10517 ("a.out"), 2361183 pages, loadavg: …`, which oomkill of
/// bcc and bpftrace print where the kernel kills.
fn traced_kill(line: &str) -> Option<Killed> {
    let (_, rest) = line.strip_prefix("Triggered by PID ")?.around("OOM kill of PID ")?;
    let pid = pid(rest).filter(|pid| *pid > 0)?;
    let (_, quoted) = rest.around("(\"")?;
    let name = quoted.around("\")")?.0.trim();
    Some(Killed { pid, name: cut(name, 64), ..Killed::default() })
}

/// Splits a kill line into the reason and the text from `Kill` on.
fn kill_line(line: &str) -> Option<(&str, &str)> {
    const FRONTS: [&str; 6] = [
        "Out of memory",
        "Out of Memory",
        "Memory cgroup out of memory",
        "Memory cgroup stats",
        "No available memory",
        "Kernel oom",
    ];
    let lower =
        |line: &str| line.starts_with("Killed process ") || line.starts_with("Kill process ");
    if lower(line) {
        return Some(("", line));
    }
    let is_front = FRONTS.iter().any(|front| line.starts_with(front));
    let (front, rest) = line.around(": ").filter(|_| is_front)?;
    (lower(rest) || rest.starts_with("kill process ")).then_some((front, rest))
}

fn kill_or_child(text: &str) -> Option<&str> {
    text.strip_prefix("Kill process ").or_else(|| text.strip_prefix("kill process "))
}

fn pid(text: &str) -> Option<u32> {
    small(text.split([' ', ',', ':']).next()?)
}

/// Whether a text is `123 (name` or, of Red Hat, `123, UID 27, (name`: what follows a PID where the kernel names a task.
fn names_task(text: &str) -> bool {
    let behind = text.trim_start_matches(|c: char| c.is_ascii_digit());
    behind.starts_with(" (") || behind.starts_with(", UID ")
}

/// The words behind a name.
const BEHIND_NAMES: [&str; 4] = ["total-vm:", "vsz:", " score ", ", now anon-rss:"];

/// Where the words behind the name begin. A name may have the same words, but has 15 bytes: they begin at the last place
/// that leaves a name before it. Further kills in the same line leave none.
fn behind_name(text: &str) -> Option<usize> {
    let places = BEHIND_NAMES.iter().flat_map(|words| text.match_indices(words)).map(|(at, _)| at);
    let leaves_name = |at: &usize| {
        let front = text.get(..*at).unwrap_or_default();
        in_brackets(front).is_some_and(scan::is_task_name)
    };
    places.clone().filter(leaves_name).max().or(places.min())
}

/// The text in brackets, which may contain brackets itself.
fn in_brackets(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once('(')?;
    Some(rest.rsplit_once(')')?.0)
}

/// Returns the name in brackets.
fn name(text: &str) -> String {
    let front = behind_name(text).and_then(|end| text.get(..end));
    cut(in_brackets(front.unwrap_or(text)).unwrap_or_default(), 64)
}

/// Parses `123 (name) total-vm:47388kB, anon-rss:3744kB, file-rss:80kB, UID:27 pgtables:57kB oom_score_adj:0` and its
/// variants, and whether that is all of the text. What follows the first word that is not the kernel's is ignored.
fn killed(text: &str, is_verbatim: bool) -> Option<(Killed, bool)> {
    if is_verbatim && !names_task(text) {
        return None;
    }
    let mut killed = Killed { pid: pid(text)?, name: name(text), ..Killed::default() };
    let sizes = behind_name(text).and_then(|at| text.get(at..));
    let Some(sizes) = sizes.filter(|sizes| !sizes.starts_with(" score ")) else {
        // Before 2.6.28 the line ends after the name.
        let is_whole = text.trim_end().ends_with([')', '.'])
            && !killed.name.is_empty()
            && scan::is_task_name(&killed.name);
        return (is_whole || is_cut_name(text)).then_some((killed, is_whole));
    };
    for word in scan::words(sizes) {
        if note(&mut killed, word).is_none() {
            return Some((killed, false));
        }
    }
    Some((killed, true))
}

/// Whether a text is cut off within `123 (name) total-vm:`.
fn is_cut_name(text: &str) -> bool {
    let Some((_, rest)) = text.around(" (") else {
        return false;
    };
    match rest.rsplit_once(')') {
        Some((_, behind)) => "total-vm:".starts_with(behind.trim()),
        None => scan::is_task_name(rest) && !rest.contains(' '),
    }
}

/// Whether a text ends within the name of `123 (name)`.
fn is_unclosed(text: &str) -> bool {
    let name = text.around(" (").map(|(_, rest)| rest);
    name.is_some_and(|name| !name.contains(')') && scan::is_task_name(name))
}

/// The cgroups of an `oom-kill:` line, and the text before them.
struct KillPaths<'a> {
    before: &'a str,
    /// The one at its limit.
    limit: Option<&'a str>,
    /// That of the task.
    victim: &'a str,
}

/// Splits `…,mems_allowed=0,oom_memcg=/a,task_memcg=/a/b` or `…,global_oom,task_memcg=/a`. Whoever may make a cgroup
/// chooses its name, which may have these words: the path of the task lies within that of the limit.
fn paths(text: &str) -> Option<KillPaths<'_>> {
    const LIMIT: &str = ",oom_memcg=";
    const VICTIM: &str = ",task_memcg=";
    let path = |at: usize, name: &str| text.get(at + name.len()..);
    let mut victims = text.match_indices(VICTIM).map(|(at, _)| at);
    let begin = text.find(LIMIT);
    let first = victims.clone().next()?;
    let Some(begin) = begin.filter(|begin| *begin < first) else {
        return Some(KillPaths {
            before: text.get(..first)?,
            limit: None,
            victim: path(first, VICTIM)?,
        });
    };
    let split = |at: usize| {
        Some(KillPaths {
            before: text.get(..begin)?,
            limit: Some(text.get(begin + LIMIT.len()..at)?),
            victim: path(at, VICTIM)?,
        })
    };
    let is_within = |paths: &KillPaths<'_>| {
        let limit = paths.limit.unwrap_or_default();
        paths.victim.starts_with(limit)
    };
    victims.find_map(|at| split(at).filter(is_within)).or_else(|| split(first))
}

/// Returns the task at the end of an `oom-kill:` line, and the text before it. `None` if the line is cut.
fn named(text: &str) -> Option<(&str, Killed)> {
    let (front, uid) = text.rsplit_once(",uid=")?;
    small(uid.trim_end())?;
    let (front, pid) = front.rsplit_once(",pid=")?;
    let pid = small(pid)?;
    // A name may have the same word.
    let mut names = front.match_indices(",task=").filter_map(|(at, word)| {
        let name = front.get(at + word.len()..)?;
        Some((front.get(..at)?, name))
    });
    let last = names.clone().last();
    let (front, name) = names.find(|(_, name)| scan::is_task_name(name)).or(last)?;
    let killed = Killed { pid, name: cut(name, 64), ..Killed::default() };
    Some((front, killed))
}

/// Notes a word such as `anon-rss:3744kB,`. `None` if it is not one of the kernel.
fn note(killed: &mut Killed, word: &str) -> Option<()> {
    // If a comma was lost, the last number is part of the word before it.
    let word = word.trim_end_matches(',');
    let Some((name, value)) = word.split_once(':') else {
        // Red Hat's `lowmem 0kB`.
        return (word == "lowmem" || size(word).is_some()).then_some(());
    };
    let slot = match name {
        "total-vm" | "vsz" => &mut killed.total_vm,
        "anon-rss" => &mut killed.anon,
        "file-rss" => &mut killed.file,
        "shmem-rss" => &mut killed.shmem,
        "pgtables" => &mut killed.page_tables,
        "oom_score_adj" => {
            killed.oom_score_adj = Some(signed(value)?);
            return Some(());
        }
        _ => return Some(()),
    };
    *slot = Some(size(value)?);
    Some(())
}
