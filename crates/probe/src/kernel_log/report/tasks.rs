//! The table of tasks that could have been killed.
//!
//! Its columns changed five times; the heading names them. Without a heading their number shows which they are
//! ([`columns_of`]). A bracket may be lost, and with it the PID; the next columns have the thread group's.

use timeline::kernel_report::ReportTask;
use units::{Bytes, PageSize, Pages};

use super::scan::{self, number, signed, small};
use super::taken::Taken;
use crate::text::SplitText as _;

/// The table as far as it is read; sizes in pages.
#[derive(Debug, Default)]
pub(super) struct TaskTable {
    has_title: bool,
    columns: Option<Vec<TaskColumn>>,
    rows: Vec<TaskRow>,
    /// Rows beyond the limit.
    pub(super) left_out: usize,
    /// Whether the lines are whole messages of the kernel: a name may begin with blanks and numbers, or be empty.
    is_verbatim: bool,
}

/// A row with sizes in pages, until the page size is known.
#[derive(Debug, Default)]
struct TaskRow {
    task: ReportTask,
    total_vm: u64,
    rss: u64,
    by_kind: [Option<u64>; 3],
    /// Page tables, of one page each.
    tables: u64,
    table_bytes: u64,
    swap: u64,
}

/// A machine may have four million tasks; only the largest matter, but the table is not sorted.
const ROWS_MAX: usize = 20_000;

/// A column between the PID and the name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TaskColumn {
    Uid,
    Tgid,
    TotalVm,
    Rss,
    RssAnon,
    RssFile,
    RssShmem,
    /// Page tables, by levels: `nr_ptes`, `nr_pmds`, `nr_puds`.
    Tables,
    TableBytes,
    Swap,
    Adj,
    OldAdj,
    /// `cpu`, and columns of future kernels.
    Other,
}

const COLUMNS: [(&str, TaskColumn); 15] = [
    ("uid", TaskColumn::Uid),
    ("tgid", TaskColumn::Tgid),
    ("total_vm", TaskColumn::TotalVm),
    ("rss", TaskColumn::Rss),
    ("rss_anon", TaskColumn::RssAnon),
    ("rss_file", TaskColumn::RssFile),
    ("rss_shmem", TaskColumn::RssShmem),
    ("nr_ptes", TaskColumn::Tables),
    ("nr_pmds", TaskColumn::Tables),
    ("nr_puds", TaskColumn::Tables),
    ("pgtables_bytes", TaskColumn::TableBytes),
    ("swapents", TaskColumn::Swap),
    ("oom_score_adj", TaskColumn::Adj),
    ("oom_adj", TaskColumn::OldAdj),
    ("cpu", TaskColumn::Other),
];

/// The columns of a row without a heading, by their number. Since 4.15 page tables are bytes, whole pages of at least
/// 4 KiB; before, pages. `None`: no kernel prints so many.
fn columns_of(numbers: &[&str]) -> Option<Vec<TaskColumn>> {
    use TaskColumn::{Adj, OldAdj, Other, Rss, RssAnon, RssFile, RssShmem, Swap};
    use TaskColumn::{TableBytes, Tables, Tgid, TotalVm, Uid};
    let in_bytes = || {
        let tables = numbers.get(4).copied().and_then(number);
        tables.is_some_and(|bytes| bytes > 0 && bytes % 4096 == 0)
    };
    let last: &[TaskColumn] = match numbers.len() {
        6 => &[Other, OldAdj],
        7 if in_bytes() => &[TableBytes, Swap, Adj],
        // A negative `oom_adj` shows a kernel before 2.6.36.
        7 if numbers.get(5).is_some_and(|adj| adj.starts_with('-')) => &[Other, OldAdj, Adj],
        7 => &[Tables, Swap, Adj],
        8 => &[Tables, Tables, Swap, Adj],
        9 => &[Tables, Tables, Tables, Swap, Adj],
        10 => &[RssAnon, RssFile, RssShmem, TableBytes, Swap, Adj],
        _ => return None,
    };
    Some([&[Uid, Tgid, TotalVm, Rss], last].concat())
}

impl TaskTable {
    /// A table of whole messages of the kernel.
    pub(super) fn of_messages() -> Self {
        Self { is_verbatim: true, ..Self::default() }
    }

    pub(super) fn take(&mut self, line: &str) -> Taken {
        if line.starts_with("Tasks state (memory values in ") {
            let taken = Taken::once(self.has_title);
            self.has_title = true;
            return taken;
        }
        if let Some(names) = heading(line) {
            return self.heading(&names);
        }
        let row = match line.split_once(']') {
            Some((pid, rest)) => {
                let pid = pid.strip_prefix('[').unwrap_or(pid);
                small(pid.trim()).and_then(|pid| self.row(Some(pid), rest))
            }
            None if self.columns.is_some() => self.row(None, line),
            None => None,
        };
        match row {
            Some(row) if self.rows.len() < ROWS_MAX => self.rows.push(row),
            Some(_) => self.left_out += 1,
            None => return Taken::No,
        }
        Taken::Yes
    }

    /// Whether its title was read, or a row.
    pub(super) fn has_begun(&self) -> bool {
        self.has_title || !self.rows.is_empty()
    }

    /// Whether any of its lines was read.
    pub(super) fn is_begun(&self) -> bool {
        self.has_title || self.columns.is_some() || !self.rows.is_empty()
    }

    fn heading(&mut self, names: &[&str]) -> Taken {
        if self.columns.is_none() && !self.rows.is_empty() {
            return Taken::Backwards;
        }
        let column = |name: &str| {
            let known = COLUMNS.iter().find(|(known, _)| *known == name);
            known.map_or(TaskColumn::Other, |(_, column)| *column)
        };
        let taken = Taken::once(self.columns.is_some());
        self.columns.get_or_insert_with(|| names.iter().copied().map(column).collect());
        taken
    }

    /// Parses the row after `[ 1234]`, or, if that is lost, a row with a number in each column, or with one more.
    fn row(&self, pid: Option<u32>, text: &str) -> Option<TaskRow> {
        if let Some(columns) = self.columns.as_ref().filter(|_| self.is_verbatim) {
            return verbatim_row(pid?, columns, text);
        }
        let (mut numbers, name) = numbers(text);
        let guessed = match self.columns {
            None => Some(columns_of(&numbers)?),
            Some(_) => None,
        };
        let columns = self.columns.as_ref().or(guessed.as_ref())?;
        let mut row = TaskRow::default();
        if pid.is_none() && numbers.len() == columns.len() + 1 {
            row.task.pid = small(numbers.remove(0))?;
        }
        // A name may begin with a number.
        let name = match numbers.get(columns.len()) {
            Some(first) => text.get(offset_in(text, first)..)?.trim_end(),
            None => name,
        };
        for (at, column) in columns.iter().enumerate() {
            row.set(*column, numbers.get(at)?)?;
        }
        if row.task.pid == 0 {
            row.task.pid = pid.unwrap_or(row.task.tgid);
        }
        row.task.name = scan::cut(name, 64);
        (!name.is_empty()).then_some(row)
    }

    /// Returns the page size, from the address space of a killed task: the table has the same size in pages.
    pub(super) fn page_size(&self, pid: u32, total_vm: Bytes) -> Option<PageSize> {
        let row = self.rows.iter().find(|row| row.task.pid == pid || row.task.tgid == pid)?;
        let bytes = total_vm.get().checked_div(row.total_vm)?;
        let is_exact = bytes.checked_mul(row.total_vm) == Some(total_vm.get());
        PageSize::from_bytes(bytes).filter(|_| is_exact)
    }

    /// Returns the tasks with sizes in bytes.
    pub(super) fn into_tasks(self, page: PageSize) -> Vec<ReportTask> {
        self.rows.into_iter().map(|row| row.into_task(page)).collect()
    }
}

impl TaskRow {
    fn set(&mut self, column: TaskColumn, word: &str) -> Option<()> {
        match column {
            TaskColumn::Adj => self.task.oom_score_adj = signed(word)?,
            TaskColumn::OldAdj => self.task.oom_score_adj = modern_adj(signed(word)?),
            TaskColumn::Uid => {
                number(word)?;
            }
            TaskColumn::Tgid => self.task.tgid = small(word)?,
            TaskColumn::TotalVm => self.total_vm = number(word)?,
            TaskColumn::Rss => self.rss = number(word)?,
            TaskColumn::RssAnon => self.by_kind[0] = Some(number(word)?),
            TaskColumn::RssFile => self.by_kind[1] = Some(number(word)?),
            TaskColumn::RssShmem => self.by_kind[2] = Some(number(word)?),
            TaskColumn::Tables => self.tables = self.tables.saturating_add(number(word)?),
            TaskColumn::TableBytes => self.table_bytes = number(word)?,
            TaskColumn::Swap => self.swap = number(word)?,
            TaskColumn::Other => {}
        }
        Some(())
    }

    fn into_task(self, page: PageSize) -> ReportTask {
        let bytes = |pages: u64| Pages::new(pages).to_bytes(page);
        let mut task = self.task;
        task.total_vm = bytes(self.total_vm);
        task.rss = bytes(self.rss);
        task.rss_by_kind = match self.by_kind {
            [Some(anon), Some(file), Some(shmem)] => Some((bytes(anon), bytes(file), bytes(shmem))),
            _ => None,
        };
        task.page_tables = bytes(self.tables) + Bytes::new(self.table_bytes);
        task.swap = bytes(self.swap);
        task
    }
}

/// Parses a row of a whole message: behind the last number stand a blank and the name.
fn verbatim_row(pid: u32, columns: &[TaskColumn], text: &str) -> Option<TaskRow> {
    let mut row = TaskRow::default();
    row.task.pid = pid;
    let mut rest = text;
    for column in columns {
        let (word, behind) = rest.trim_start_matches(' ').split_once(' ')?;
        row.set(*column, word)?;
        rest = behind;
    }
    row.task.name = scan::cut(rest, 64);
    Some(row)
}

/// The names of the columns in a heading: `[ pid ]   uid  tgid total_vm … name`. A bracket may be lost.
fn heading(line: &str) -> Option<Vec<&str>> {
    let (_, names) = line.around("pid")?;
    let mut names: Vec<&str> = scan::words(names).filter(|word| *word != "]").collect();
    let is_heading = names.pop() == Some("name") && names.starts_with(&["uid", "tgid", "total_vm"]);
    is_heading.then_some(names)
}

/// The numbers that a text begins with, and what follows.
fn numbers(text: &str) -> (Vec<&str>, &str) {
    let mut numbers = Vec::new();
    let mut rest = text.trim();
    while let Some((word, behind)) = rest.split_once(' ') {
        if signed(word).is_none() && number(word).is_none() {
            break;
        }
        numbers.push(word);
        rest = behind.trim_start();
    }
    (numbers, rest)
}

/// Where a part of a text begins.
fn offset_in(text: &str, part: &str) -> usize {
    (part.as_ptr() as usize).saturating_sub(text.as_ptr() as usize)
}

/// Converts `oom_adj` (-17 to 15) of kernels before 2.6.36 to today's scale of -1000 to 1000.
pub(super) fn modern_adj(adj: i32) -> i32 {
    match adj {
        15 => 1000,
        _ => adj.saturating_mul(1000) / 17,
    }
}
