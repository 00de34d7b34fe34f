//! Writes a profile as folded stacks, with a first line that says what the counts are: what [`read_profile`](crate::read_profile) reads.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde::Serialize;

use crate::cgroup_use::CgroupUse;
use crate::classify::{begins_kernel, classify};
use crate::collected::{BlockedHow, CpuUnit, NotMeasured, Profile, ProfilePart};
use crate::episode::WrittenEpisodes;
use crate::kernel_work::KernelWork;
use crate::stack::{FramePlace, Stack, StackFrame, StackTable};

/// A kept text is shorter: rare stacks are cut down to what their reason and work rest on.
const KEPT_BYTES_MAX: usize = 64 << 10;
/// So many of all lines of a kept text are whole.
const KEPT_WHOLE_BYTES: usize = 40 << 10;
/// Episodes of so many kinds and threads are written.
const EPISODE_ROWS_MAX: usize = 64;
/// So many cgroups with limits that were met are written.
const CGROUPS_MAX: usize = 256;

/// The first line of a part.
#[derive(Debug, Serialize)]
struct WrittenHeader<'a> {
    unit: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    how: Option<BlockedHow>,
    #[serde(skip_serializing_if = "Option::is_none")]
    kernel: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cpus: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    seconds: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hz: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    event: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lost: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    scope: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    unix_time_s: Option<f64>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    vmstat_delta: &'a BTreeMap<String, i64>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    settings: &'a BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    episodes: Option<Vec<WrittenEpisodes>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    cgroups: Vec<&'a CgroupUse>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    remarks: &'a [String],
    #[serde(skip_serializing_if = "<[NotMeasured]>::is_empty")]
    not_measured: &'a [NotMeasured],
}

/// The line before the stacks of a cgroup.
#[derive(Debug, Serialize)]
struct CgroupLine<'a> {
    cgroup: &'a str,
}

/// Returns a part as folded stacks: samples, or microseconds of waiting. Empty where it was not measured.
pub fn folded(profile: &Profile, part: ProfilePart) -> String {
    let Some((stacks, are_waits)) = profile.part(part) else {
        return String::new();
    };
    let (unit, factor) = unit_of(profile, are_waits);
    let mut text = header_line(profile, unit, true);
    put_stacks(&mut text, stacks, factor, usize::MAX);
    text
}

/// Returns all of a profile as one text of at most 64 KiB, for a recording: what ran, what waited, episodes. Of rare stacks only the
/// functions are kept on which their reason and their work rest.
pub fn kept_text(profile: &Profile) -> String {
    let mut text = String::new();
    let parts = [ProfilePart::Cpu, ProfilePart::Waits];
    let are_both = profile.cpu.is_some() && profile.blocked.is_some();
    for (at, part) in parts.into_iter().enumerate().take(if are_both { 2 } else { 1 }) {
        let Some((stacks, are_waits)) = profile.part(part) else {
            continue;
        };
        let (unit, factor) = unit_of(profile, are_waits);
        text.push_str(&header_line(profile, unit, at == 0));
        let room = KEPT_WHOLE_BYTES.saturating_sub(text.len());
        put_stacks(&mut text, stacks, factor, if are_both && at == 0 { room / 2 } else { room });
    }
    if text.is_empty() {
        text = header_line(profile, "samples", true);
    }
    cut(text)
}

/// A text within the bound: whole lines, of which the last are the rarest.
fn cut(mut text: String) -> String {
    if text.len() > KEPT_BYTES_MAX {
        let end = text.get(..KEPT_BYTES_MAX).and_then(|kept| kept.rfind('\n'));
        text.truncate(end.map_or(0, |end| end + 1));
    }
    text
}

/// The unit of counts, and how many make one: counts are whole numbers.
fn unit_of(profile: &Profile, are_waits: bool) -> (&'static str, f64) {
    let is_percent = matches!(profile.cpu, Some((CpuUnit::Percent, _)));
    match (are_waits, is_percent) {
        (true, _) => ("us", 1e6),
        (false, true) => ("samples", 100.0),
        (false, false) => ("samples", 1.0),
    }
}

/// The first line of a part; the first part says what is of all.
fn header_line(profile: &Profile, unit: &str, is_first: bool) -> String {
    let origin = &profile.origin;
    let none = BTreeMap::new();
    let how = profile.blocked.as_ref().map(|blocked| blocked.how).filter(|_| unit == "us");
    let episodes = profile.episodes.as_ref().filter(|_| is_first).map(|table| {
        let mut rows = table.written();
        rows.truncate(EPISODE_ROWS_MAX);
        rows
    });
    let cgroups = profile.cgroups.iter().filter(|one| is_first && is_of_interest(profile, one));
    let header = WrittenHeader {
        unit,
        how,
        kernel: origin.kernel.as_deref().filter(|_| is_first),
        cpus: origin.cpus,
        seconds: origin.seconds,
        hz: origin.hz.filter(|_| unit == "samples"),
        event: origin.event.as_deref().filter(|_| unit == "samples"),
        lost: origin.lost.filter(|lost| *lost > 0 && is_first),
        scope: origin.scope.as_deref().filter(|_| is_first),
        unix_time_s: origin.unix_time_s.filter(|_| is_first),
        vmstat_delta: if is_first { &profile.vmstat_delta } else { &none },
        settings: if is_first { &profile.settings } else { EMPTY_SETTINGS },
        episodes,
        cgroups: cgroups.take(CGROUPS_MAX).collect(),
        remarks: if is_first { &profile.remarks } else { &[] },
        not_measured: if is_first { &profile.not_measured } else { &[] },
    };
    format!("# {}\n", serde_json::to_string(&header).unwrap_or_default())
}

/// Settings of a part that is not the first.
const EMPTY_SETTINGS: &BTreeMap<String, String> = &BTreeMap::new();

/// Whether a cgroup met a limit, or has stacks or episodes.
fn is_of_interest(profile: &Profile, one: &CgroupUse) -> bool {
    let is_it = |cgroup: Option<&str>| cgroup == Some(one.path.as_str());
    let mut stacks = [ProfilePart::Cpu, ProfilePart::Waits]
        .into_iter()
        .filter_map(|part| Some(profile.part(part)?.0))
        .flat_map(StackTable::iter);
    let mut keys = profile.episodes.iter().flat_map(|table| table.sorted());
    one.max_hits > 0
        || one.high_hits > 0
        || stacks.any(|(stack, _)| is_it(stack.cgroup.as_deref()))
        || keys.any(|(key, _)| is_it(key.cgroup.as_deref()))
}

/// Writes stacks, those of a cgroup together, the heaviest first; beyond so many bytes they are cut down.
fn put_stacks(text: &mut String, stacks: &StackTable, factor: f64, whole_bytes: usize) {
    let mut all = stacks.sorted();
    let mut cut_down = StackTable::default();
    if whole_bytes < usize::MAX {
        all.sort_by(|one, other| other.1.total_cmp(&one.1));
        let mut bytes = 0;
        all.retain(|(stack, weight)| {
            let names: usize = stack.frames.iter().map(|frame| frame.name.len() + 5).sum();
            bytes += names + stack.comm.len() + 8;
            if bytes > whole_bytes {
                add_cut_down(&mut cut_down, stack, *weight);
            }
            bytes <= whole_bytes
        });
        all.sort_by_key(|(stack, _)| *stack);
    }
    let mut all: Vec<(&Stack, f64)> = all.into_iter().chain(cut_down.iter()).collect();
    // The sort is stable: within a cgroup the order stays.
    all.sort_by(|one, other| one.0.cgroup.cmp(&other.0.cgroup));
    let mut within = None;
    for (stack, weight) in all {
        let count = (weight * factor).round();
        if count < 1.0 {
            continue;
        }
        if within != stack.cgroup.as_deref() {
            within = stack.cgroup.as_deref();
            let line = CgroupLine { cgroup: within.unwrap_or_default() };
            let _ = writeln!(text, "# {}", serde_json::to_string(&line).unwrap_or_default());
        }
        text.push_str(&plain(&stack.comm));
        for frame in &stack.frames {
            let mark = if frame.place == FramePlace::Kernel { "_[k]" } else { "" };
            // Writing to a String cannot fail.
            let _ = write!(text, ";{}{mark}", plain(&frame.name));
        }
        let _ = writeln!(text, " {count}");
    }
}

/// Adds a stack with the functions alone by which it is classified.
fn add_cut_down(table: &mut StackTable, stack: &Stack, weight: f64) {
    let class = classify(stack);
    let work_at = stack.frames.iter().rposition(|frame| {
        class.work.is_some() && KernelWork::of_function(&frame.name) == class.work
    });
    let is_kept = |(at, frame): (usize, &StackFrame)| {
        let is_entry = begins_kernel(&frame.name) || frame.place != FramePlace::Kernel;
        is_entry || Some(at) == class.trigger || Some(at) == work_at || at == class.start
    };
    let kept = stack.frames.iter().enumerate().filter(|(at, frame)| is_kept((*at, frame)));
    let frames = kept.map(|(_, frame)| (&*frame.name, frame.place));
    table.add_in(stack.cgroup.as_deref(), &stack.comm, frames, weight);
}

/// A name that cannot end its field or its line, nor steer a terminal: any user may choose the name of a thread.
fn plain(name: &str) -> String {
    let name = timeline::plain::escape(name);
    name.replace([';', ' '], "_")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collected::BlockedStacks;
    use crate::episode::{EpisodeKind, EpisodeTable};
    use crate::{ProfileReport, read_profile};

    #[test]
    fn what_is_written_is_read_back_with_the_same_answer() {
        let mut profile = Profile::default();
        let mut stacks = StackTable::default();
        let frames = |names: &[&'static str]| {
            names.iter().map(|name| (*name, FramePlace::Kernel)).collect::<Vec<_>>()
        };
        stacks.add("a;b c\n", frames(&["do_syscall_64", "node_reclaim", "shrink_lruvec"]), 60.0);
        stacks.add("x", [("[user]", FramePlace::User)], 40.0);
        profile.cpu = Some((CpuUnit::Samples, stacks));
        profile.origin.seconds = Some(10.0);
        profile.origin.cpus = Some(2);
        profile.origin.hz = Some(99.0);
        let text = folded(&profile, ProfilePart::Cpu);
        assert!(text.contains("\na_b_c\\n;do_syscall_64_[k];node_reclaim_[k]"), "{text}");
        let read = read_profile("x", text.as_bytes()).unwrap();
        let (one, other) = (ProfileReport::of(&profile), ProfileReport::of(&read));
        assert_eq!(one.hot[0].share, other.hot[0].share);
        assert_eq!(one.cpu, other.cpu);
    }

    #[test]
    fn a_kept_text_is_bounded_and_gives_the_same_answer() {
        let mut profile = Profile::default();
        let (mut ran, mut waited) = (StackTable::default(), StackTable::default());
        let mut episodes = EpisodeTable::default();
        for number in 0..3_000_u32 {
            let caller = format!("a_function_with_quite_a_long_name_{number}");
            let frames = [
                "entry_SYSCALL_64_after_hwframe",
                "do_syscall_64",
                caller.as_str(),
                "try_charge_memcg",
                "try_to_free_mem_cgroup_pages",
                "do_try_to_free_pages",
                "shrink_lruvec",
                "_raw_spin_unlock_irq",
            ];
            let kernel = frames.iter().map(|name| (*name, FramePlace::Kernel));
            let cgroup = format!("/web{}", number % 3);
            ran.add_in(Some(&cgroup), "php", kernel.clone(), f64::from(1 + number % 7));
            waited.add_in(Some(&cgroup), "php", kernel, 0.001);
            episodes.add(EpisodeKind::MemcgReclaim, "php", Some(&cgroup), 0.002);
        }
        profile.cpu = Some((CpuUnit::Samples, ran));
        profile.blocked = Some(BlockedStacks { how: BlockedHow::Polled, stacks: waited });
        profile.episodes = Some(episodes);
        let web = |path: &str, max_hits| CgroupUse {
            path: path.to_owned(),
            max_hits,
            ..CgroupUse::default()
        };
        profile.cgroups = vec![web("/web0", 7), web("/idle", 0)];
        profile.origin.seconds = Some(10.0);
        profile.remarks = vec!["Tasks switch".to_owned()];
        let text = kept_text(&profile);
        assert!(text.len() <= KEPT_BYTES_MAX, "{}", text.len());
        let read = read_profile("kept", text.as_bytes()).unwrap();
        let (one, other) = (ProfileReport::of(&profile), ProfileReport::of(&read));
        assert_eq!(one.headline, other.headline);
        let summed = |report: &ProfileReport| {
            let row = &report.hot[0];
            (row.samples, row.work, row.blocked_s.map(|s| (s * 1e3).round()), row.cgroups.clone())
        };
        assert_eq!(summed(&one), summed(&other));
        assert_eq!(other.blocked.as_ref().unwrap().how, BlockedHow::Polled);
        assert_eq!(other.hot[0].episodes.as_ref().unwrap().count, 3_000);
        assert_eq!(one.cgroups.len(), 3);
        let stalls = |report: &ProfileReport| {
            let rows = report.cgroups.iter();
            rows.map(|row| (row.cgroup.clone(), (row.own_limit_s * 1e3).round(), row.limits.len()))
                .collect::<Vec<_>>()
        };
        assert_eq!(stalls(&one), stalls(&other));
        assert_eq!(read.remarks, profile.remarks);
        assert!(!text.contains("/idle"));
    }
}
