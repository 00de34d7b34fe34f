//! A report while it is read: takes its parts line by line, and puts them together.

use timeline::KernelReport;
use timeline::kernel_report::{Constraint, GroupReport, ReportKind};
use units::PageSize;

use super::group::GroupLines;
use super::head::Head;
use super::kills::KillLines;
use super::lists::ReportLists;
use super::memory::ReportMemory;
use super::taken::Taken;
use super::tasks::TaskTable;
use super::zones::Zones;

/// A report as far as it is read.
#[derive(Debug, Default)]
pub(super) struct Draft {
    head: Head,
    memory: ReportMemory,
    zones: Zones,
    group: GroupLines,
    tasks: TaskTable,
    kills: KillLines,
    lists: ReportLists,
    /// Whether the lines are whole messages of the kernel.
    is_verbatim: bool,
    /// Whether another kernel event began since the head: its trace is not part of the report.
    is_elsewhere: bool,
}

/// The page size of nearly all machines, used if a report does not show it.
pub(super) const USUAL_PAGE: PageSize = PageSize::USUAL;

/// How lines of other kernel events begin.
const OTHER_EVENTS: [&str; 8] = [
    "------------[ cut here",
    "---[ end trace",
    "WARNING: ",
    "BUG: ",
    "INFO: ",
    "rcu: ",
    "watchdog: ",
    "Oops",
];

impl Draft {
    /// How many foreign lines may be within a report.
    pub(super) const PATIENCE: usize = 200;
    /// The same after a kill, and after the memory of a failed allocation, when the report is nearly complete.
    const PATIENCE_AT_END: usize = 20;
    /// The largest distance of the trace from the head, in lines.
    const LINES_NEAR: usize = 8;

    /// A report of whole messages of the kernel.
    pub(super) fn of_messages() -> Self {
        Self {
            head: Head::of_messages(),
            tasks: TaskTable::of_messages(),
            kills: KillLines::of_messages(),
            is_verbatim: true,
            ..Self::default()
        }
    }

    /// Takes a line; `foreign` lines that do not belong to the report come before it.
    pub(super) fn take(&mut self, line: &str, foreign: usize) -> Taken {
        // The blanks at the ends of a whole message belong to names.
        let whole = line;
        let line = line.trim();
        if line.is_empty() {
            return Taken::No;
        }
        let line = if self.is_verbatim { whole } else { line };
        if self.head.is_start(line) && (self.has_body() || self.kills.is_begun()) {
            return Taken::Again;
        }
        if self.kills.is_begun() {
            return self.take_end(line);
        }
        let mut taken = self.take_body(line);
        if taken == Taken::No {
            taken = self.head.take(line);
        }
        if taken == Taken::No {
            taken = self.kills.take(line);
        }
        let is_near = taken == Taken::No
            && (self.take_surroundings(line, foreign) || self.take_trace_of_kill(line));
        if is_near { Taken::Yes } else { taken }
    }

    /// Takes a line after a kill: more of the kill, or, if the kill came first, the report in reverse order.
    fn take_end(&mut self, line: &str) -> Taken {
        let taken = self.kills.take(line);
        let is_body = || !self.is_verbatim && Self::default().take_body(line) == Taken::Yes;
        match taken {
            Taken::Backwards if self.is_verbatim => Taken::Again,
            Taken::No if self.head.kind.is_none() && !self.has_body() && is_body() => {
                Taken::Backwards
            }
            taken => taken,
        }
    }

    /// Takes a line between head and kill.
    fn take_body(&mut self, whole: &str) -> Taken {
        let line = whole.trim();
        let taken = self.group.take(line);
        if taken != Taken::No {
            return taken;
        }
        let mut taken = self.memory.take(line);
        if taken == Taken::No {
            taken = self.zones.take(line, &mut self.memory);
        }
        if taken == Taken::No {
            taken = self.tasks.take(whole);
        }
        if taken == Taken::No && self.lists.take(line) {
            taken = Taken::Yes;
        }
        if taken != Taken::No {
            self.group.end_stat();
        }
        taken
    }

    fn take_surroundings(&mut self, line: &str, foreign: usize) -> bool {
        self.is_elsewhere |= OTHER_EVENTS.iter().any(|event| line.starts_with(event));
        let is_near = self.head.kind.is_some() && !self.has_body() && foreign <= Self::LINES_NEAR;
        is_near && !self.is_elsewhere && self.head.take_surroundings(line)
    }

    /// Takes a trace of a report that lost its first line.
    fn take_trace_of_kill(&mut self, line: &str) -> bool {
        let is_headless = self.head.kind.is_none() && !self.has_body();
        is_headless && !self.is_elsewhere && self.head.take_trace_of_kill(line)
    }

    /// Whether nothing but a call trace shows that there was a kill: a task that hangs there has the same trace, unless
    /// it prints the report.
    pub(super) fn is_trace_alone(&self) -> bool {
        let is_alone = self.head.is_of_trace && !self.has_body() && !self.kills.is_begun();
        is_alone && !self.head.is_printed_kill()
    }

    /// Returns how many foreign lines may follow before the report ends.
    pub(super) fn patience(&self) -> usize {
        let is_over = self.kills.is_done()
            || (self.head.kind == Some(ReportKind::AllocationFailure) && self.memory.is_whole());
        if is_over { Self::PATIENCE_AT_END } else { Self::PATIENCE }
    }

    fn has_body(&self) -> bool {
        self.memory.is_begun()
            || self.zones.is_begun()
            || self.group.is_begun()
            || self.tasks.is_begun()
    }

    /// Builds the report from its parts.
    pub(super) fn finish(self) -> KernelReport {
        let kind = self.kind();
        let is_cut = match kind {
            ReportKind::OomKill => !self.kills.is_done(),
            ReportKind::AllocationFailure => self.memory.is_begun() && !self.memory.is_whole(),
        };
        let by_task =
            || self.kills.address_space().and_then(|(pid, size)| self.tasks.page_size(pid, size));
        let page_size = self.zones.page_size().or_else(by_task);
        let page = page_size.unwrap_or(USUAL_PAGE);
        // Behind the zones come the page cache and swap.
        let has_all_zones = self.memory.is_whole()
            || self.zones.is_whole()
            || self.memory.free(page).is_some_and(|free| self.zones.have_most_of(free));
        let managed = self.zones.managed().filter(|_| has_all_zones);
        let host = self.memory.row(page, managed, has_all_zones);
        let group = self.group_report();
        let constraint = self.kills.constraint.or(group.as_ref().map(|_| Constraint::ControlGroup));
        KernelReport {
            kind,
            constraint,
            group,
            host,
            page_size,
            is_cut,
            cpuset: self.kills.cpuset.clone().or(self.head.cpuset),
            nodemask: self.kills.nodemask.clone(),
            mems_allowed: self.kills.mems_allowed.clone().or(self.head.mems_allowed),
            killed: self.kills.into_killed(),
            zones: self.zones.into_reports(page),
            tasks_left_out: self.tasks.left_out,
            has_task_table: self.tasks.has_begun(),
            tasks: self.tasks.into_tasks(page),
            invoker: self.head.invoker,
            request: self.head.request,
            vmalloc: self.head.vmalloc,
            waited: self.head.waited,
            kernel: self.head.kernel,
            slab_cache: self.head.slab_cache,
            slabs: self.lists.slabs,
            trace: self.head.trace,
            ..KernelReport::default()
        }
    }

    /// Returns the kind of the report. Without a head, a table of tasks or a kill decides; a memory dump alone could be
    /// either kind, and counts as an OOM kill without its end.
    fn kind(&self) -> ReportKind {
        match self.head.kind {
            Some(ReportKind::AllocationFailure) if self.kills.is_of_old_kernel => {
                ReportKind::OomKill
            }
            kind => kind.unwrap_or_default(),
        }
    }

    fn group_report(&self) -> Option<GroupReport> {
        let is_group = self.group.is_hit
            || self.kills.is_group
            || self.kills.group_path.is_some()
            || self.kills.constraint == Some(Constraint::ControlGroup);
        is_group.then(|| {
            let mut report = self.group.report.clone();
            report.mode = self.group.mode();
            if let Some(path) = &self.kills.group_path {
                report.path.clone_from(path);
            }
            if let Some(path) = &self.kills.victim_path {
                report.victim_path.clone_from(path);
            }
            report
        })
    }
}
