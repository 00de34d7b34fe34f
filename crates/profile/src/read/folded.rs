//! Folded stacks: `comm;outermost;…;innermost COUNT`, a stack a line, as FlameGraph, inferno and memtide write them.
//!
//! memtide writes a first line `# {JSON}` with what the counts are and how long it took; another such line begins another part, and
//! `# {"cgroup": …}` says of which cgroup the stacks below it are. Without a first line they are taken for samples, but where all
//! stacks end in the scheduler: those are waits, in microseconds.

use serde::Deserialize;

use crate::cgroup_use::CgroupUse;
use crate::collected::{BlockedHow, BlockedStacks, CpuUnit, NotMeasured, Profile};
use crate::episode::{EpisodeTable, WrittenEpisodes};
use crate::stack::{FramePlace, StackTable};

/// The form in messages.
pub(super) const FORM: &str = "folded stacks";
/// A text has lines of other kinds too; so many may be skipped for each stack.
const FOREIGN_LINES_MAX: usize = 4;
/// With fewer stacks in all, counted once each, they are single backtraces and no samples.
const BACKTRACES_MAX: f64 = 10.0;
/// Functions at the end of a stack of a task that gave its CPU away.
const SWITCHED_OUT: [&str; 6] = [
    "__schedule",
    "schedule",
    "finish_task_switch",
    "__sched_text_start",
    "io_schedule",
    "preempt_schedule_common",
];

/// A line `# {…}` before stacks: the first line of a part, or the cgroup of the stacks below it.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct FoldedHeader {
    kind: Option<String>,
    unit: Option<String>,
    /// Alone in its line, of the stacks that follow; empty: unknown.
    cgroup: Option<String>,
    how: Option<BlockedHow>,
    kernel: Option<String>,
    cpus: Option<u32>,
    seconds: Option<f64>,
    hz: Option<f64>,
    event: Option<String>,
    lost: Option<u64>,
    scope: Option<String>,
    unix_time_s: Option<f64>,
    vmstat_delta: std::collections::BTreeMap<String, i64>,
    settings: std::collections::BTreeMap<String, String>,
    episodes: Option<Vec<WrittenEpisodes>>,
    cgroups: Vec<CgroupUse>,
    remarks: Vec<String>,
    not_measured: Vec<NotMeasured>,
}

impl FoldedHeader {
    fn begins_part(&self) -> bool {
        self.kind.is_some() || self.unit.is_some()
    }
}

pub(super) fn read(text: &str) -> Option<Profile> {
    let mut header = FoldedHeader::default();
    let mut stacks = StackTable::default();
    let mut parts = Vec::new();
    let mut cgroup: Option<String> = None;
    let (mut known, mut foreign) = (0_usize, 0_usize);
    for line in text.lines() {
        if let Some(json) = line.strip_prefix("# {") {
            match serde_json::from_str::<FoldedHeader>(&format!("{{{json}")) {
                Ok(read) if read.begins_part() => {
                    if header.begins_part() || !stacks.is_empty() {
                        parts.push((std::mem::take(&mut header), std::mem::take(&mut stacks)));
                    }
                    (header, cgroup) = (read, None);
                }
                Ok(read) => cgroup = read.cgroup.filter(|path| !path.is_empty()),
                Err(_) => {}
            }
            continue;
        }
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        match stack_line(line) {
            Some((comm, names, count)) => {
                let frames = names.map(|name| (name, place(name)));
                stacks.add_in(cgroup.as_deref(), comm, frames, count);
                known += 1;
            }
            None => foreign += 1,
        }
    }
    let has_header = header.begins_part();
    if (known == 0 && !has_header) || foreign > known.saturating_mul(FOREIGN_LINES_MAX) {
        return None;
    }
    let last = with_unit(header, stacks);
    let mut parts = parts.into_iter().map(|(header, stacks)| with_unit(header, stacks));
    let Some(mut whole) = parts.next() else {
        return Some(last);
    };
    parts.chain([last]).for_each(|part| whole.join(part));
    Some(whole)
}

/// The thread's name, the functions and the count of a line.
fn stack_line(line: &str) -> Option<(&str, impl Iterator<Item = &str>, f64)> {
    let (stack, count) = line.trim_end().rsplit_once(' ')?;
    let count: f64 = count.parse().ok().filter(|count: &f64| count.is_finite() && *count >= 0.0)?;
    let (comm, frames) = stack.split_once(';')?;
    // offcputime separates user and kernel functions by `-`.
    let frames = frames.split(';').filter(|name| !name.is_empty() && *name != "-");
    Some((comm, frames, count))
}

/// `[user]` is a program that was not unwound; `_[k]` marks the kernel, which the table sees itself.
fn place(name: &str) -> FramePlace {
    if name == "[user]" { FramePlace::User } else { FramePlace::Unmarked }
}

/// What the counts are.
fn with_unit(header: FoldedHeader, stacks: StackTable) -> Profile {
    let mut profile = Profile::default();
    let unit = header.unit.as_deref().unwrap_or_default();
    let kind = header.kind.as_deref().unwrap_or_default();
    let in_seconds = |per_second: f64| {
        let mut scaled = StackTable::default();
        for (stack, weight) in stacks.iter() {
            let frames = stack.frames.iter().map(|frame| (&*frame.name, frame.place));
            let cgroup = stack.cgroup.as_deref();
            scaled.add_in(cgroup, &stack.comm, frames, weight / per_second);
        }
        scaled
    };
    let blocked = |how, per_second| Some(BlockedStacks { how, stacks: in_seconds(per_second) });
    let is_unit = |names: &[&str]| names.contains(&unit);
    if is_unit(&["hits"]) || kind == "d-state-poll" {
        let hz = header.hz.filter(|hz| *hz > 0.0).unwrap_or(1.0);
        profile.blocked = blocked(BlockedHow::Polled, hz);
    } else if is_unit(&["us", "microseconds"]) || kind == "off-cpu" {
        profile.blocked = blocked(header.how.unwrap_or(BlockedHow::Traced), 1e6);
    } else if is_unit(&["ns"]) {
        profile.blocked = blocked(BlockedHow::Traced, 1e9);
    } else if unit.is_empty() && kind.is_empty() && all_switched_out(&stacks) {
        profile.blocked = blocked(BlockedHow::Traced, 1e6);
        profile.remarks.push(
            "All stacks end in the scheduler: they are read as waits in microseconds.".to_owned(),
        );
    } else {
        let is_single = kind == "traces" || (kind.is_empty() && stacks.total() < BACKTRACES_MAX);
        let unit = if is_single { CpuUnit::Backtraces } else { CpuUnit::Samples };
        profile.cpu = Some((unit, stacks));
    }
    let hz = header.hz.filter(|hz| *hz > 0.0 && profile.cpu.is_some());
    profile.origin.form = FORM.to_owned();
    profile.origin.kernel = header.kernel;
    profile.origin.cpus = header.cpus;
    profile.origin.seconds = header.seconds;
    profile.origin.hz = hz;
    profile.origin.event = header.event;
    profile.origin.lost = header.lost;
    profile.origin.scope = header.scope;
    profile.origin.unix_time_s = header.unix_time_s;
    profile.episodes = header.episodes.map(EpisodeTable::of_written);
    profile.cgroups = header.cgroups;
    profile.remarks.extend(header.remarks);
    profile.not_measured = header.not_measured;
    profile.vmstat_delta = header.vmstat_delta;
    profile.settings = header.settings;
    profile
}

/// Whether every stack ends where a task gives its CPU away.
fn all_switched_out(stacks: &StackTable) -> bool {
    !stacks.is_empty()
        && stacks.iter().all(|(stack, _)| {
            stack.frames.last().is_some_and(|leaf| SWITCHED_OUT.contains(&&*leaf.name))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_blanks_and_counts_of_fractions_are_read() {
        let profile = read("Web Content;foo(int, char);bar 12\nkworker/0:1;a 0.5\n").unwrap();
        let (unit, stacks) = profile.cpu.unwrap();
        assert_eq!((unit, stacks.len()), (CpuUnit::Samples, 2));
        assert!((stacks.total() - 12.5).abs() < 1e-9);
    }

    #[test]
    fn waits_are_recognised_by_their_end() {
        let text =
            "a;vfs_read;io_schedule;schedule;__schedule 2000000\nb;x;finish_task_switch.isra.0 5\n";
        let blocked = read(text).unwrap().blocked.unwrap();
        assert!((blocked.stacks.total() - 2.000_005).abs() < 1e-9);
        assert!(read("a;b 2000\nc;d 5\n").unwrap().blocked.is_none());
    }

    #[test]
    fn a_header_decides_what_the_counts_are() {
        let text = "# {\"unit\": \"hits\", \"hz\": 20, \"seconds\": 10}\na;b 40\n";
        let profile = read(text).unwrap();
        let blocked = profile.blocked.unwrap();
        assert_eq!(blocked.how, BlockedHow::Polled);
        assert!((blocked.stacks.total() - 2.0).abs() < 1e-9);
        // A poll that found nobody is an answer.
        assert!(read("# {\"unit\": \"hits\", \"hz\": 20}\n").unwrap().blocked.is_some());
    }

    #[test]
    fn prose_is_no_profile() {
        for text in ["", "hello world\n", "Price; 20\n line\n line\n line\n line\n line\n"] {
            assert!(read(text).is_none(), "{text}");
        }
    }
}
