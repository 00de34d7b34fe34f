//! The text of `perf script`: a line for each sample, and its functions indented below it, the innermost first.
//!
//! Samples of a clock or of cycles count what ran. `sched:sched_switch` with call chains gives waits in state D, where the switch back
//! to the task is in the text too; begin and end of reclaim and compaction give episodes.

use std::collections::HashMap;

use crate::collected::{BlockedHow, BlockedStacks, CpuUnit, Profile};
use crate::episode::{EpisodeTable, TRACEPOINTS, TracepointRole};
use crate::stack::{FramePlace, StackTable};

/// The line above the functions of a sample.
#[derive(Debug, PartialEq)]
struct SampleLine<'a> {
    comm: &'a str,
    tid: u32,
    cpu: Option<u32>,
    at_s: Option<f64>,
    event: &'a str,
    /// What a tracepoint prints, or the one function of a sample without a chain.
    rest: &'a str,
}

/// A function with its place.
type ScriptFrame<'a> = (&'a str, FramePlace);

/// A task that waits.
struct OpenWait {
    comm: String,
    /// The outermost first.
    frames: Vec<(String, FramePlace)>,
    since_s: f64,
}

#[derive(Default)]
struct ScriptReader {
    cpu: HashMap<String, StackTable>,
    blocked: StackTable,
    has_switches: bool,
    episodes: EpisodeTable,
    has_episodes: bool,
    waiting: HashMap<u32, OpenWait>,
    first_s: Option<f64>,
    last_s: f64,
    cpu_max: Option<u32>,
    chains: usize,
    samples: usize,
    nameless: usize,
}

pub(super) fn read(text: &str) -> Option<Profile> {
    let mut reader = ScriptReader::default();
    let mut profile = Profile::default();
    let mut open: Option<(SampleLine<'_>, Vec<ScriptFrame<'_>>)> = None;
    for line in text.lines() {
        if let Some(note) = line.strip_prefix('#') {
            header(note, &mut profile);
            continue;
        }
        if let Some(frame) = frame_line(line).filter(|_| open.is_some()) {
            if let Some((_, frames)) = &mut open {
                frames.push(frame);
            }
            continue;
        }
        if let Some((sample, frames)) = open.take() {
            reader.take(&sample, frames);
        }
        open = sample_line(line).map(|sample| (sample, Vec::new()));
    }
    if let Some((sample, frames)) = open.take() {
        reader.take(&sample, frames);
    }
    reader.finish(profile)
}

impl ScriptReader {
    fn take<'a>(&mut self, sample: &SampleLine<'a>, mut frames: Vec<ScriptFrame<'a>>) {
        if let Some(at_s) = sample.at_s {
            self.first_s = Some(self.first_s.map_or(at_s, |first| first.min(at_s)));
            self.last_s = self.last_s.max(at_s);
        }
        self.cpu_max = self.cpu_max.max(sample.cpu);
        let event = sample.event;
        if event == "sched:sched_switch" {
            self.switch(sample, frames);
            return;
        }
        let point = TRACEPOINTS.iter().find(|point| {
            event.strip_prefix(point.system).and_then(|rest| rest.strip_prefix(':'))
                == Some(point.name)
        });
        if let (Some(point), Some(at_s)) = (point, sample.at_s) {
            self.has_episodes = true;
            let field = match point.role {
                TracepointRole::Lasted(name, _) => {
                    field(sample.rest, name).and_then(|v| v.parse().ok())
                }
                _ => None,
            };
            self.episodes.event(point, sample.tid, (sample.comm, None), at_s, field);
            return;
        }
        if frames.is_empty() {
            frames.extend(frame_line(sample.rest));
        } else {
            self.chains += 1;
        }
        if frames.is_empty() {
            return;
        }
        self.samples += 1;
        let is_nameless =
            |frame: &ScriptFrame<'_>| frame.1 == FramePlace::Kernel && frame.0 == "[unknown]";
        if frames.iter().any(is_nameless) {
            self.nameless += 1;
        }
        let stacks = self.cpu.entry(event.to_owned()).or_default();
        stacks.add(sample.comm, frames.into_iter().rev(), 1.0);
    }

    /// A task gives its CPU to another: the one begins to wait, where it is in state D, the other waited.
    fn switch(&mut self, sample: &SampleLine<'_>, frames: Vec<ScriptFrame<'_>>) {
        let Some(at_s) = sample.at_s else {
            return;
        };
        self.has_switches = true;
        let Some((before, after)) = sample.rest.split_once("==>") else {
            return;
        };
        if let Some(wait) = next_tid(after).and_then(|tid| self.waiting.remove(&tid)) {
            let frames = wait.frames.iter().map(|(name, place)| (name.as_str(), *place));
            self.blocked.add(&wait.comm, frames, at_s - wait.since_s);
        }
        let state = field(before, "prev_state").or_else(|| before.split_whitespace().last());
        if state.is_some_and(|state| state.starts_with('D')) && !frames.is_empty() {
            let frames = frames.into_iter().rev().map(|(name, place)| (name.to_owned(), place));
            let wait =
                OpenWait { comm: sample.comm.to_owned(), frames: frames.collect(), since_s: at_s };
            self.waiting.insert(sample.tid, wait);
        }
    }

    fn finish(self, mut profile: Profile) -> Option<Profile> {
        if self.samples == 0 && !self.has_switches && !self.has_episodes {
            return None;
        }
        profile.origin.form = "perf script".to_owned();
        let lasted = self.first_s.map(|first| self.last_s - first).filter(|seconds| *seconds > 0.0);
        profile.origin.seconds = profile.origin.seconds.or(lasted);
        profile.origin.cpus = profile.origin.cpus.or(self.cpu_max.map(|cpu| cpu + 1));
        // Of several events the clock decides; they are not added.
        let rank = |event: &str| {
            let clocks = ["cycles", "cpu-clock", "cpu-cycles", "task-clock"];
            let name = event.rsplit('/').find(|part| !part.is_empty()).unwrap_or(event);
            clocks.iter().position(|clock| event.contains(clock) || name.starts_with(clock))
        };
        let mut events: Vec<(String, StackTable)> = self.cpu.into_iter().collect();
        events.sort_by_key(|(event, stacks)| {
            (rank(event).unwrap_or(usize::MAX), std::cmp::Reverse(stacks.len()), event.clone())
        });
        let others = events.len().saturating_sub(1);
        if let Some((event, stacks)) = events.into_iter().next() {
            if others > 0 {
                let text = format!("Of {} events, {event} is used.", others + 1);
                profile.remarks.push(text);
            }
            profile.origin.event = Some(event).filter(|event| !event.is_empty());
            profile.cpu = Some((CpuUnit::Samples, stacks));
        }
        if self.has_switches {
            profile.blocked = Some(BlockedStacks { how: BlockedHow::Traced, stacks: self.blocked });
        }
        profile.episodes = self.has_episodes.then_some(self.episodes);
        if self.samples > 0 && self.chains == 0 {
            profile.remarks.push(super::NO_CHAINS.to_owned());
        }
        if self.nameless * 2 > self.samples {
            profile.remarks.push(super::NO_NAMES.to_owned());
        }
        Some(profile)
    }
}

/// What the header says: `nrcpus online : 2`, `sample_freq } = 99`.
fn header(note: &str, profile: &mut Profile) {
    let note = note.trim();
    if let Some(cpus) = note.strip_prefix("nrcpus online") {
        profile.origin.cpus = cpus.trim_start_matches([' ', ':']).parse().ok();
    } else if let Some(release) = note.strip_prefix("os release : ") {
        profile.origin.kernel = Some(release.to_owned());
    } else if let Some((_, hz)) = note.split_once("sample_freq } = ") {
        let digits: String = hz.chars().take_while(char::is_ascii_digit).collect();
        profile.origin.hz = profile.origin.hz.or(digits.parse().ok());
    }
}

/// `comm pid/tid [cpu] time: period event: rest`, of which cpu, time, period and event may be absent.
fn sample_line(line: &str) -> Option<SampleLine<'_>> {
    if line.trim().is_empty() {
        return None;
    }
    let tokens: Vec<(usize, &str)> = tokens(line).collect();
    let number = |text: &str| text.parse::<u32>().ok();
    let tid_of = |text: &str| match text.split_once('/') {
        Some((pid, tid)) => number(pid).and(number(tid)),
        None => number(text),
    };
    let time_of = |text: &str| {
        let digits = text.strip_suffix(':')?;
        digits.contains('.').then(|| digits.parse::<f64>().ok()).flatten()
    };
    let cpu_of = |text: &str| number(text.strip_prefix('[')?.strip_suffix(']')?);
    // The name may hold blanks and numbers: the last number before the CPU, the time or the event is the thread.
    let time = tokens.iter().position(|(_, token)| time_of(token).is_some());
    let first_event = tokens.iter().position(|(_, token)| token.ends_with(':') && token.len() > 1);
    let end = time.or(first_event).unwrap_or(tokens.len());
    let tid_at = tokens.get(..end)?.iter().rposition(|(_, token)| tid_of(token).is_some())?;
    // Without a time, the last number may be the period: `comm 12 99 cycles:`.
    let tid_at = match tokens.get(tid_at.wrapping_sub(1)) {
        Some((_, before)) if time.is_none() && tid_at > 1 && tid_of(before).is_some() => tid_at - 1,
        _ => tid_at,
    };
    let (start, tid_text) = *tokens.get(tid_at)?;
    let comm = line.get(..start)?.trim();
    if comm.is_empty() {
        return None;
    }
    let between = tokens.get(tid_at + 1..end).unwrap_or_default();
    let cpu = between.iter().find_map(|(_, token)| cpu_of(token));
    let after_time = time.map_or(tid_at + 1, |at| at + 1);
    let mut rest_at = after_time;
    let mut event = "";
    for (at, (_, token)) in tokens.iter().enumerate().skip(after_time).take(2) {
        if number_of_events(token) {
            continue;
        }
        if let Some(name) = token.strip_suffix(':') {
            event = name;
            rest_at = at + 1;
        }
        break;
    }
    if time.is_none() && event.is_empty() && (tokens.len() > tid_at + 1 || tid_of(comm).is_some()) {
        return None;
    }
    let rest = tokens.get(rest_at).and_then(|(start, _)| line.get(*start..)).unwrap_or_default();
    Some(SampleLine {
        comm,
        tid: tid_of(tid_text)?,
        cpu,
        at_s: time.and_then(|at| time_of(tokens.get(at)?.1)),
        event: without_modifier(event),
        rest,
    })
}

fn number_of_events(token: &str) -> bool {
    token.bytes().all(|byte| byte.is_ascii_digit())
}

/// `cycles:ppp` and `cpu-clock:k` are events with modifiers; `sched:sched_switch` is a tracepoint.
fn without_modifier(event: &str) -> &str {
    match event.rsplit_once(':') {
        Some((name, modifier))
            if modifier.len() <= 4 && modifier.chars().all(|c| "ukhGHpPDI".contains(c)) =>
        {
            name
        }
        _ => event,
    }
}

/// Words of a line with their places.
fn tokens(line: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut at = 0;
    line.split_whitespace().map(move |token| {
        // A word is found where the last one ended, or behind.
        let start = line.get(at..).and_then(|rest| rest.find(token)).map_or(at, |found| at + found);
        at = start + token.len();
        (start, token)
    })
}

/// `ffffffff8165dd21 vma_alloc_folio_noprof+0x61 ([kernel.kallsyms])`.
fn frame_line(line: &str) -> Option<ScriptFrame<'_>> {
    let is_indented = line.starts_with([' ', '\t']);
    let (address, rest) = match line.trim().split_once(char::is_whitespace) {
        Some(both) => both,
        None => (line.trim(), ""),
    };
    if !is_indented && rest.is_empty() {
        return None;
    }
    if address.is_empty() || address.len() > 16 || !address.bytes().all(|b| b.is_ascii_hexdigit()) {
        return None;
    }
    let rest = rest.trim();
    let (name, place) = match rest.rsplit_once(" (") {
        Some((name, file)) => {
            let file = file.trim_end_matches(')');
            let is_kernel = file.starts_with("[kernel")
                || file.starts_with("[guest.kernel")
                || file.contains("/vmlinux")
                || file.ends_with(".ko")
                || file.contains(".ko.")
                || (file.starts_with('[')
                    && !["[unknown]", "[vdso]", "[vsyscall]", "[heap]", "[stack]", "[anon]"]
                        .contains(&file));
            (name, if is_kernel { FramePlace::Kernel } else { FramePlace::User })
        }
        None => (rest, FramePlace::Unmarked),
    };
    // Without a file, the upper half of the addresses is the kernel's.
    let place = match place {
        FramePlace::Unmarked | FramePlace::User
            if address.len() == 16 && address.starts_with("ffff") =>
        {
            FramePlace::Kernel
        }
        place => place,
    };
    let name = if name.is_empty() { "[unknown]" } else { name };
    Some((name, place))
}

/// The value of `name=value` in what a tracepoint prints.
fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.split_whitespace().find_map(|word| word.strip_prefix(name)?.strip_prefix('='))
}

/// The thread that gets the CPU: `next_pid=12`, or `swapper/0:0 [120]` in old texts.
fn next_tid(after: &str) -> Option<u32> {
    if let Some(tid) = field(after, "next_pid") {
        return tid.parse().ok();
    }
    after.split_whitespace().find_map(|word| word.rsplit_once(':')?.1.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_usual_selection_of_fields_is_read() {
        for (line, comm, tid, event) in [
            (
                "qemu-system-x86 18931/19016 [000]  4803.769572: cpu-clock: ",
                "qemu-system-x86",
                19016,
                "cpu-clock",
            ),
            ("dd 19016 [000]  4803.769572:   10101010 cpu-clock: ", "dd", 19016, "cpu-clock"),
            ("Web Content  12 [003] 1.500000: 99 cycles:ppp: ", "Web Content", 12, "cycles"),
            (
                "swapper     0 [000] 12.000001: sched:sched_switch: prev_comm=a",
                "swapper",
                0,
                "sched:sched_switch",
            ),
            ("java 4711 cycles: ", "java", 4711, "cycles"),
            (":-1 12 [000] 3.1: cpu-clock:pppH: ", ":-1", 12, "cpu-clock"),
            (
                "kworker/u4:1+fl   88 [001]   77.000001:     250000 cpu-clock:",
                "kworker/u4:1+fl",
                88,
                "cpu-clock",
            ),
        ] {
            let sample = sample_line(line).unwrap_or_else(|| panic!("{line}"));
            assert_eq!((sample.comm, sample.tid, sample.event), (comm, tid, event), "{line}");
        }
        for line in ["", "hello world", "# comment", "12 13"] {
            assert_eq!(sample_line(line), None, "{line}");
        }
    }

    #[test]
    fn functions_have_their_place() {
        for (line, name, place) in [
            (
                "\tffffffff821eb0e7 clear_page_erms+0x7 ([kernel.kallsyms])",
                "clear_page_erms+0x7",
                FramePlace::Kernel,
            ),
            ("\tffffffffc0123456 ext4_map_blocks ([ext4])", "ext4_map_blocks", FramePlace::Kernel),
            ("\t          1af670 try_charge (/opt/a b/lib.so)", "try_charge", FramePlace::User),
            ("\t    7f71d358c000 [unknown] ([unknown])", "[unknown]", FramePlace::User),
            ("\tffffffff81000000 [unknown] ([unknown])", "[unknown]", FramePlace::Kernel),
            (
                "\t    7ffd1e1f operator new(unsigned long) (/usr/lib/x.so)",
                "operator new(unsigned long)",
                FramePlace::User,
            ),
        ] {
            assert_eq!(frame_line(line), Some((name, place)), "{line}");
        }
        assert_eq!(frame_line("python3 23646/23646 [001]  4803.7: cpu-clock: "), None);
    }

    #[test]
    fn switches_in_state_d_become_waits_and_begins_and_ends_episodes() {
        let text = "\
hog 7 [000] 10.000000: sched:sched_switch: prev_comm=hog prev_pid=7 prev_prio=120 prev_state=D ==> next_comm=swapper/0 next_pid=0 next_prio=120
\tffffffff81 __schedule ([kernel.kallsyms])
\tffffffff82 do_swap_page ([kernel.kallsyms])

swapper 0 [000] 10.500000: sched:sched_switch: prev_comm=swapper/0 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=hog next_pid=7 next_prio=120
\tffffffff81 __schedule ([kernel.kallsyms])

hog 7 [000] 10.600000: vmscan:mm_vmscan_direct_reclaim_begin: order=0 gfp_flags=GFP_KERNEL
hog 7 [000] 10.850000: vmscan:mm_vmscan_direct_reclaim_end: nr_reclaimed=32
";
        let profile = read(text).unwrap();
        let blocked = profile.blocked.unwrap().stacks;
        assert!((blocked.total() - 0.5).abs() < 1e-6);
        let episodes = profile.episodes.unwrap();
        let (key, times) = episodes.sorted()[0];
        assert_eq!(key.kind, crate::EpisodeKind::DirectReclaim);
        assert_eq!((&*key.comm, times.count()), ("hog", 1));
        assert!((times.total_s() - 0.25).abs() < 1e-6);
        assert!((profile.origin.seconds.unwrap() - 0.85).abs() < 1e-6);
    }
}
