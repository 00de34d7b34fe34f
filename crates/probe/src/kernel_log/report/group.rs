//! A cgroup at its limit: its charges, its limits, and the kinds of its memory.

use timeline::facts::CgroupMode;
use timeline::kernel_report::{GroupLimit, GroupReport};

use super::scan::{self, number, size};
use super::taken::Taken;
use crate::text::SplitText as _;

/// The cgroup as far as it is read.
#[derive(Debug, Default)]
pub(super) struct GroupLines {
    pub(super) report: GroupReport,
    /// Whether any line named a cgroup's limit.
    pub(super) is_hit: bool,
    has_stat_title: bool,
    /// Whether lines `name value` follow the title, until another line comes.
    in_stat: bool,
}

/// More fields than any `memory.stat` has.
const FIELDS_MAX: usize = 512;

impl GroupLines {
    pub(super) fn take(&mut self, line: &str) -> Taken {
        if self.in_stat && self.stat_field(line) {
            return Taken::Yes;
        }
        // Since 6.18; it is not a limit, and reports of the host have it too.
        if line.starts_with("Memory cgroup min protection ") {
            return Taken::Yes;
        }
        let taken = self
            .take_title(line)
            .or_else(|| self.take_limit(line))
            .or_else(|| self.take_paths(line));
        if taken.is_some_and(Taken::is_taken) {
            self.is_hit = true;
        }
        taken.unwrap_or(Taken::No)
    }

    /// Whether any of its lines was read.
    pub(super) fn is_begun(&self) -> bool {
        self.is_hit || self.has_stat_title
    }

    /// Returns the cgroup version: v1 counts swap with memory, and calls anonymous memory `rss`.
    pub(super) fn mode(&self) -> Option<CgroupMode> {
        let report = &self.report;
        let named = |name| report.stat.iter().any(|(field, _)| field == name);
        let is_v1 = report.memory_and_swap.is_some()
            || report.kernel.is_some()
            || (named("rss") && !named("anon"));
        let is_v2 = report.swap.is_some() || named("anon");
        match (is_v1, is_v2) {
            (true, _) => Some(CgroupMode::V1),
            (false, true) => Some(CgroupMode::V2),
            (false, false) => None,
        }
    }

    /// Ends the list of fields, as a line of another kind came.
    pub(super) fn end_stat(&mut self) {
        self.in_stat = false;
    }

    /// Takes `memory: usage 102400kB, limit 102400kB, failcnt 6402`.
    fn take_limit(&mut self, line: &str) -> Option<Taken> {
        let (name, rest) = line.around(": usage ")?;
        let limit = limit(rest)?;
        let slot = match name {
            "memory" => &mut self.report.memory,
            "swap" => &mut self.report.swap,
            "memory+swap" => &mut self.report.memory_and_swap,
            "kmem" => &mut self.report.kernel,
            _ => return None,
        };
        let taken = Taken::once(slot.is_some());
        slot.get_or_insert(limit);
        Some(taken)
    }

    /// Takes `Memory cgroup stats for /a/b:`; its fields are on the same line or on those that follow. v1 kernels
    /// before 5.3 write a line for each descendant, with its own charges only: the sum is the cgroup's memory.
    fn take_title(&mut self, line: &str) -> Option<Taken> {
        let rest = line.strip_prefix("Memory cgroup stats")?;
        let (path, fields) = match rest.strip_prefix(" for ") {
            Some(rest) => rest
                .around(": ")
                .or_else(|| rest.around(":#012"))
                .or_else(|| Some((rest.strip_suffix(':')?, "")))?,
            None => ("", rest.strip_prefix(':')?),
        };
        let (fields, is_whole) = fields_of(fields);
        if fields.is_empty() && !is_whole {
            return None;
        }
        if self.has_stat_title && fields.is_empty() {
            return Some(Taken::Again);
        }
        if self.report.path.is_empty() {
            self.report.path = scan::cut(path, 4096);
        }
        for (name, value) in fields {
            self.add(name, value);
        }
        self.has_stat_title = true;
        self.in_stat = true;
        Some(Taken::whole(is_whole))
    }

    /// Takes `anon 98742272`.
    fn stat_field(&mut self, line: &str) -> bool {
        let mut words = scan::words(line);
        let field = (words.next(), words.next(), words.next());
        let (Some(name), Some(value), None) = field else {
            return false;
        };
        let is_name = scan::is_name(name) && name.starts_with(|c: char| c.is_ascii_lowercase());
        match number(value).filter(|_| is_name) {
            Some(value) => {
                self.add(name, value);
                true
            }
            None => false,
        }
    }

    fn add(&mut self, name: &str, value: u64) {
        let stat = &mut self.report.stat;
        if let Some((_, sum)) = stat.iter_mut().find(|(known, _)| known == name) {
            *sum = sum.saturating_add(value);
        } else if stat.len() < FIELDS_MAX {
            stat.push((name.to_owned(), value));
        }
    }

    /// Takes `Task in /a killed as a result of limit of /b`.
    fn take_paths(&mut self, line: &str) -> Option<Taken> {
        const BETWEEN: &str = " killed as a result of limit of ";
        let rest = line.strip_prefix("Task in ")?;
        // A cgroup may have these words in its name. The path of the task is within that of the limit.
        let both = |(at, _)| {
            let (victim, limit) = rest.split_at_checked(at)?;
            Some((victim, limit.strip_prefix(BETWEEN)?))
        };
        let is_within = |(victim, limit): &(&str, &str)| {
            limit.starts_with('/') && victim.starts_with(limit.trim_end())
        };
        let splits = || rest.match_indices(BETWEEN).filter_map(both);
        let (victim, limit) = splits()
            .find(is_within)
            .or_else(|| splits().find(|(_, limit)| limit.starts_with('/')))
            .or_else(|| {
                // Before 3.10 the two halves were separate messages.
                rest.strip_suffix(" killed as a result of limit of").map(|victim| (victim, ""))
            })?;
        let is_there = !self.report.victim_path.is_empty();
        if !is_there {
            self.report.victim_path = scan::cut(victim, 4096);
            self.report.path = scan::cut(limit.trim_end(), 4096);
        }
        Some(Taken::once(is_there))
    }
}

/// Parses `102400kB, limit 102400kB, failcnt 6402`.
fn limit(text: &str) -> Option<GroupLimit> {
    let (usage, rest) = text.around(", limit ")?;
    let (limit, failures) = rest.around(", failcnt ")?;
    Some(GroupLimit {
        usage: size(usage)?,
        limit: size(limit)?,
        failures: number(failures.trim_end())?,
    })
}

/// Parses `cache:5664KB rss:249452KB …` of v1, and `anon 98742272 file 2469888 …` of v2 if its lines were joined; up to
/// the first word of another form, and whether there is none.
fn fields_of(text: &str) -> (Vec<(&str, u64)>, bool) {
    let mut fields = Vec::new();
    let mut words = scan::words(text);
    while let Some(word) = words.next() {
        let field = match word.split_once(':') {
            Some((name, value)) => size(value).map(|value| (name, value.get())),
            None => words.next().and_then(number).map(|value| (word, value)),
        };
        let Some(field) = field else {
            return (fields, false);
        };
        fields.push(field);
    }
    (fields, true)
}
