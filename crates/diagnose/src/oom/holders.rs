//! Which tasks used the memory at a kill: the report's table of tasks, by program, and whether the victim was the task
//! with the highest score.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use timeline::KernelReport;
use timeline::kernel_report::{Killed, ReportTask};
use timeline::signals::{MEM_TOTAL, SWAP_TOTAL};
use units::{Bytes, Count};

use crate::finding::Affected;

/// The tasks that used the memory.
#[derive(Debug, Clone, Default)]
pub(crate) struct Holders<'a> {
    /// Programs, the largest first.
    pub(crate) programs: Vec<Program<'a>>,
    /// The killed process.
    pub(crate) victim: Option<Victim<'a>>,
    /// The largest task that could be killed, by [`held`].
    pub(crate) largest: Option<&'a ReportTask>,
    /// Tasks that are protected from being killed, the largest first by [`held`].
    pub(crate) protected: Vec<&'a ReportTask>,
    /// The number of tasks that the report was too long to keep; their size is unknown.
    left_out: usize,
}

/// All processes of one name.
#[derive(Debug, Clone, Default)]
pub(crate) struct Program<'a> {
    pub(crate) name: &'a str,
    /// The number of its processes.
    pub(crate) processes: u64,
    /// Resident memory: anonymous memory of all, files and shared memory of the process that maps most; where the
    /// table does not separate the kinds, the sum of all.
    pub(crate) rss: Bytes,
    shared: Bytes,
    /// Memory in swap.
    pub(crate) swap: Bytes,
    /// Whether the sum exceeds RAM, so that pages which its processes share are counted more than once.
    is_counted_twice: bool,
}

/// The killed process, with its line in the table of tasks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Victim<'a> {
    /// The process as the kernel names it.
    pub(crate) killed: &'a Killed,
    /// Its line in the table.
    pub(crate) task: Option<&'a ReportTask>,
}

/// Tasks with this `oom_score_adj` or less are killed only when no other task is left.
pub(crate) const PROTECTED: i32 = -900;

/// The memory that killing a task frees, as the kernel scores it (mm/oom_kill.c, oom_badness).
pub(crate) fn held(task: &ReportTask) -> Bytes {
    task.rss + task.swap + task.page_tables
}

impl<'a> Holders<'a> {
    pub(super) fn from_report(report: &'a KernelReport) -> Self {
        // Threads of one process share its memory.
        let mut tasks: BTreeMap<u32, &ReportTask> = BTreeMap::new();
        for task in &report.tasks {
            let id = if task.tgid == 0 { task.pid } else { task.tgid };
            tasks.entry(id).or_insert(task);
        }
        let of = |killed: &Killed| {
            let mut same = report.tasks.iter();
            same.find(|task| task.pid == killed.pid || task.tgid == killed.pid)
        };
        let victim = report
            .killed
            .iter()
            .map(|killed| Victim { killed, task: of(killed) })
            .max_by_key(|victim| (victim.rss(), Reverse(victim.killed.pid)));
        let mut protected: Vec<&ReportTask> =
            tasks.values().copied().filter(|task| task.oom_score_adj <= PROTECTED).collect();
        protected.sort_by_key(|task| Reverse(held(task)));
        let mut programs = programs(tasks.values().copied());
        if let Some(ram) = report.host.get(MEM_TOTAL) {
            for program in &mut programs {
                program.is_counted_twice = program.rss > ram;
            }
        }
        Self {
            programs,
            victim,
            largest: tasks
                .values()
                .copied()
                .filter(|task| task.oom_score_adj > PROTECTED)
                .max_by_key(|task| held(task)),
            protected,
            left_out: report.tasks_left_out,
        }
    }

    /// The largest programs except the victim, as entries of a finding.
    pub(crate) fn affected(&self, most: usize) -> Vec<Affected> {
        // The victim has an entry of its own.
        let victim = self.victim.map(|victim| victim.killed.name.as_str());
        let is_victim = |p: &&Program<'_>| p.processes == 1 && Some(p.name) == victim;
        let largest = self.programs.iter().filter(|p| !is_victim(p));
        largest
            .take(most)
            .map(|program| Affected {
                kind: "process",
                name: program.name.to_owned(),
                what: program.what(),
            })
            .collect()
    }

    /// The program that uses most of the memory of all programs, with many processes of similar size.
    pub(crate) fn many_processes_program(&self) -> Option<&Program<'a>> {
        const PROCESSES_MIN: u64 = 8;
        let held = |program: &Program<'_>| program.rss + program.swap;
        let all: Bytes = self.programs.iter().map(held).sum();
        let first = self.programs.first().filter(|p| p.processes >= PROCESSES_MIN)?;
        let one = Bytes::new(held(first).get() / 4);
        let none_stands_out = self.largest.is_none_or(|largest| self::held(largest) < one);
        let is_most = held(first).get() > all.get() / 2;
        (is_most && none_stands_out && self.left_out == 0).then_some(first)
    }

    /// The largest programs in one line; `None` without a table.
    pub(crate) fn line(&self) -> Option<String> {
        let largest: Vec<String> = self.programs.iter().take(5).map(Program::words).collect();
        let of = match self.left_out {
            0 => String::new(),
            left_out => format!(", {left_out} tasks left out"),
        };
        (!largest.is_empty()).then(|| format!("by program{of}: {}", largest.join(" · ")))
    }
}

impl Program<'_> {
    fn what(&self) -> String {
        let processes = match self.processes {
            1 => String::new(),
            n => format!("{} processes: ", Count::new(n)),
        };
        let twice = self.twice();
        format!("{processes}{} in RAM{twice}{}", self.rss, in_swap(self.swap))
    }

    /// `php-fpm ×458 12 GiB, 3 GiB in swap`.
    pub(crate) fn words(&self) -> String {
        let processes = match self.processes {
            1 => String::new(),
            n => format!(" ×{}", Count::new(n)),
        };
        format!("{}{processes} {}{}{}", self.name, self.rss, self.twice(), in_swap(self.swap))
    }

    fn twice(&self) -> &'static str {
        if self.is_counted_twice { " (pages that they share counted more than once)" } else { "" }
    }
}

/// The swapped memory: `, 5.8 GiB in swap`, or nothing.
fn in_swap(swap: Bytes) -> String {
    if swap > Bytes::ZERO { format!(", {swap} in swap") } else { String::new() }
}

impl<'a> Victim<'a> {
    /// Its resident memory, as far as reported.
    pub(crate) fn rss(&self) -> Option<Bytes> {
        self.killed.rss().or(self.task.map(|task| task.rss))
    }

    /// The memory that its end freed.
    pub(crate) fn held(&self) -> Option<Bytes> {
        self.task.map(held).or_else(|| self.rss())
    }

    /// Its `oom_score_adj`, as far as reported.
    pub(crate) fn adj(&self) -> Option<i32> {
        self.killed.oom_score_adj.or(self.task.map(|task| task.oom_score_adj))
    }

    /// `mysqld (PID 2211, 20 GiB resident, 5.8 GiB in swap)`.
    pub(crate) fn words(&self) -> String {
        let swap = self.task.map_or_else(String::new, |t| in_swap(t.swap));
        let pid = Some(self.killed.pid).filter(|pid| *pid > 0).map(|pid| format!("PID {pid}"));
        let size = self.rss().map(|rss| format!("{rss} resident{swap}"));
        let known: Vec<String> = pid.into_iter().chain(size).collect();
        match known.as_slice() {
            [] => self.killed.name.clone(),
            known => format!("{} ({})", self.killed.name, known.join(", ")),
        }
    }

    /// How it compares with the largest task of the table; `None` unless the table is complete and contains it.
    pub(crate) fn compared(&self, holders: &Holders<'a>, report: &KernelReport) -> Option<String> {
        let (task, largest) = (self.task?, holders.largest?);
        if holders.left_out > 0 {
            return None;
        }
        if task.pid == largest.pid || held(task) >= held(largest) {
            let spared = holders.protected.first();
            return Some(match spared.filter(|spared| held(spared) > held(task)) {
                None => "it was the largest process".to_owned(),
                Some(spared) => format!(
                    "it was the largest that could be killed: {} is larger ({}) but spared \
                     (oom_score_adj {})",
                    spared.name,
                    held(spared),
                    spared.oom_score_adj
                ),
            });
        }
        let other = format!("{} was larger ({})", largest.name, held(largest));
        let shift = i64::from(task.oom_score_adj) - i64::from(largest.oom_score_adj);
        let why = match pool(report) {
            Some(pool) if shift > 0 => {
                let worth = Bytes::new(pool.get() / 1000 * shift.unsigned_abs());
                format!(
                    ", but their oom_score_adj ({} and {}) puts {worth} between them",
                    task.oom_score_adj, largest.oom_score_adj
                )
            }
            _ => String::new(),
        };
        Some(format!("{other}{why}"))
    }
}

/// The memory that 1,000 points of score stand for: all that the tasks could use.
fn pool(report: &KernelReport) -> Option<Bytes> {
    match &report.group {
        Some(group) => group.memory.filter(|m| m.is_limited()).map(|m| m.limit),
        None => Some(report.host.get(MEM_TOTAL)? + report.host.get(SWAP_TOTAL).unwrap_or_default()),
    }
}

fn programs<'a>(tasks: impl Iterator<Item = &'a ReportTask>) -> Vec<Program<'a>> {
    let mut by_name: BTreeMap<&str, Program<'_>> = BTreeMap::new();
    for task in tasks {
        let program = by_name.entry(&task.name).or_default();
        program.name = &task.name;
        program.processes += 1;
        let (own, shared) = match task.rss_by_kind {
            Some((anon, file, shmem)) => (anon, file + shmem),
            None => (task.rss, Bytes::ZERO),
        };
        // Processes of one program map mostly the same files and segments.
        let known = program.shared;
        program.shared = known.max(shared);
        program.rss = program.rss.saturating_sub(known) + own + program.shared;
        program.swap += task.swap;
    }
    let mut programs: Vec<_> = by_name.into_values().collect();
    programs.retain(|p| p.rss + p.swap > Bytes::ZERO);
    programs.sort_by_key(|p| Reverse(p.rss + p.swap));
    programs
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oom::testing::{Report, kib, task};

    #[test]
    fn programs_of_one_name_are_one_line_and_threads_are_not_counted_twice() {
        let mut report = Report::of_a_host();
        report.0.tasks = vec![
            task(10, "php-fpm", 500_000, 0),
            task(11, "php-fpm", 400_000, 0),
            task(20, "mysqld", 600_000, 0),
        ];
        report.0.tasks.push(ReportTask { tgid: 20, ..task(21, "mysqld", 600_000, 0) });
        let holders = Holders::from_report(&report.0);
        assert_eq!(
            holders.line().as_deref(),
            Some("by program: php-fpm ×2 879 MiB · mysqld 586 MiB")
        );
    }

    #[test]
    fn many_processes_of_one_name_that_hold_most_are_a_crowd() {
        let mut report = Report::of_a_host();
        let workers = || (1..=60).map(|pid| task(pid, "php-fpm", 300_000, 0));
        report.0.tasks = workers().collect();
        report.0.tasks.push(task(99, "mysqld", 900_000, 0));
        let holders = Holders::from_report(&report.0);
        assert_eq!(
            holders.many_processes_program().unwrap().words(),
            "php-fpm ×60 17 GiB (pages that they share counted more than once)"
        );
        report.0.tasks.push(task(100, "java", 9_000_000, 0));
        assert!(Holders::from_report(&report.0).many_processes_program().is_none());
    }

    #[test]
    fn what_processes_share_is_counted_once_where_the_table_tells() {
        let mut report = Report::of_a_host();
        let worker = |pid| ReportTask {
            rss_by_kind: Some((kib(100 << 10), kib(0), kib(4 << 20))),
            ..task(pid, "postgres", (4 << 20) + (100 << 10), 0)
        };
        report.0.tasks = (1..=10).map(worker).collect();
        assert_eq!(
            Holders::from_report(&report.0).line().as_deref(),
            Some("by program: postgres ×10 5 GiB")
        );
    }

    #[test]
    fn a_smaller_victim_is_explained_by_its_adjustment() {
        let mut report = Report::of_a_host().killing(30, "web");
        report.0.tasks = vec![task(20, "mysqld", 9_000_000, 0), task(30, "web", 1_000_000, 500)];
        let holders = Holders::from_report(&report.0);
        let why = holders.victim.unwrap().compared(&holders, &report.0);
        let why = why.unwrap();
        assert!(why.contains("mysqld was larger"), "{why}");
        assert!(why.contains("oom_score_adj (500 and 0)"), "{why}");
    }

    #[test]
    fn protected_tasks_are_not_candidates() {
        let mut report = Report::of_a_host().killing(30, "web");
        report.0.tasks = vec![task(20, "dbms", 9_000_000, -1000), task(30, "web", 1_000_000, 0)];
        let holders = Holders::from_report(&report.0);
        assert_eq!(holders.protected[0].name, "dbms");
        assert_eq!(
            holders.victim.unwrap().compared(&holders, &report.0),
            Some(
                "it was the largest that could be killed: dbms is larger (8.6 GiB) but spared \
                 (oom_score_adj -1000)"
                    .to_owned()
            )
        );
    }

    #[test]
    fn a_table_that_is_not_whole_tells_nothing_of_the_largest() {
        let mut report = Report::of_a_host();
        report.0.tasks_left_out = 3;
        let holders = Holders::from_report(&report.0);
        assert_eq!(holders.victim.unwrap().compared(&holders, &report.0), None);
        let line = holders.line().unwrap();
        assert!(line.starts_with("by program, 3 tasks left out: doxygen"), "{line}");
    }
}
