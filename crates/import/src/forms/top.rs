//! `top`: the sums at its head, of old and new procps and of busybox, and its processes; one screen or a batch (`-b`).
//!
//! "used" includes the cache before procps 3.3.10 and is not used. A figure that ends in `+` did not fit its column and
//! lost its last digits: it is not used either. The interval of a batch follows from the time of day and the uptime in
//! the head.

use timeline::signals::{
    MEM_AVAILABLE, MEM_BUFFERS, MEM_CACHED, MEM_FREE, MEM_SHMEM, MEM_TOTAL, SWAP_FREE, SWAP_TOTAL,
};
use units::Span;

use super::Form;
use super::processes::ProcessHeader;
use super::size_unit::SizeUnit;
use crate::block::{BlockReader, TextBlock};
use crate::builder::{Snapshot, SnapshotTime};
use crate::text::figure::{PrintedFigure, raw};
use crate::text::line_scan::BlockStart;
use crate::text::prompt;

pub(super) const FORM: Form = Form {
    name: "top",
    begins: BlockStart::with(&[
        "top - ",
        "Tasks:",
        "Threads:",
        "Cpu",
        "CPU:",
        "Load average:",
        "Mem",
        "Swap",
    ]),
    read,
};

const DAY: u64 = 86_400;

fn read(input: &mut BlockReader<'_>) -> Option<TextBlock> {
    let mut block = TextBlock::default();
    let mut before: Option<TopClock> = None;
    while let Some(screen) = TopScreen::read(input, block.lines) {
        let mut snapshot = screen.snapshot;
        if let (Some(before), Some(now)) = (before, screen.clock) {
            snapshot.when = now.after(before).map_or(SnapshotTime::Unknown, SnapshotTime::After);
        }
        before = screen.clock;
        if block.lines == 0 {
            block.what = "top".to_owned();
            block.unit = screen.unit;
        }
        let problems = screen.problems.into_iter();
        block.problems.extend(problems.map(|(at, text)| (block.lines + at, text)));
        block.not_understood += screen.not_understood;
        block.lines += screen.lines;
        input.add(snapshot);
    }
    (block.lines > 0).then_some(block)
}

/// One screen of top.
struct TopScreen {
    snapshot: Snapshot,
    clock: Option<TopClock>,
    unit: &'static str,
    lines: usize,
    problems: Vec<(usize, String)>,
    not_understood: usize,
}

impl TopScreen {
    /// Reads the screen that begins at a line, or after blank ones.
    fn read(input: &mut BlockReader<'_>, from: usize) -> Option<Self> {
        let lines = input.lines.get(from..)?;
        let most_blank = if from == 0 { 0 } else { 3 };
        let blank = lines.iter().take(most_blank).take_while(|line| line.is_empty()).count();
        let mut screen = Self {
            snapshot: Snapshot::default(),
            clock: None,
            unit: "",
            lines: blank,
            problems: Vec::new(),
            not_understood: 0,
        };
        let first = *lines.get(blank)?;
        screen.clock = TopClock::from_line(first);
        if first.starts_with("top - ") {
            screen.lines += 1;
        } else if !is_head(first) || from > 0 {
            // The first line of the first screen may be missing; a batch prints it each time.
            return None;
        }
        screen.head(lines);
        screen.processes(input, from);
        screen.snapshot.has_readings().then_some(screen)
    }

    /// The sums: tasks, CPUs, memory, swap.
    fn head(&mut self, lines: &[&str]) {
        // There may be a line for each CPU.
        while let Some(line) = lines.get(self.lines).filter(|line| is_head(line)) {
            if let Some((is_swap, unit, sums)) = sums(line) {
                if self.unit.is_empty() {
                    self.unit = unit.name;
                }
                self.sums(is_swap, unit, sums);
            }
            self.lines += 1;
        }
    }

    fn sums(&mut self, is_swap: bool, unit: SizeUnit, sums: &str) {
        // busybox prints no total; its "used" is all that is not free.
        let mut of_busybox = sums.contains(" shrd").then(Vec::new);
        // procps 3.3 prints a point between two sums: `2097148 free.  5672032 cached Mem`.
        for part in sums.split(',').flat_map(|part| part.split(". ")) {
            let mut words = part.split_whitespace();
            let (Some(figure), Some(name)) = (words.next(), words.next()) else {
                continue;
            };
            let name = name.trim_end_matches('.');
            if let (Some(parts), "used" | "free") = (&mut of_busybox, name) {
                parts.extend(PrintedFigure::binary(figure));
            }
            let signal = match (is_swap, name) {
                (false, "total") => MEM_TOTAL,
                (false, "free") => MEM_FREE,
                (false, "buffers" | "buff") => MEM_BUFFERS,
                (_, "buff/cache" | "cached" | "cache") => MEM_CACHED,
                (false, "shrd") => MEM_SHMEM,
                (_, "avail") => MEM_AVAILABLE,
                (true, "total") => SWAP_TOTAL,
                (true, "free") => SWAP_FREE,
                _ => continue,
            };
            if figure.ends_with('+') {
                let text = format!("`{figure} {name}` is truncated (`+`); not used");
                self.problems.push((self.lines, text));
                continue;
            }
            if let Some(figure) = PrintedFigure::binary(figure) {
                self.snapshot.set_size(signal.id(), figure, unit.bytes);
            }
        }
        if let Some([used, free]) = of_busybox.as_deref() {
            let (used, free) = (used.in_bytes(unit.bytes), free.in_bytes(unit.bytes));
            let total = PrintedFigure { value: used.value + free.value, ..used };
            let parts = [MEM_BUFFERS, MEM_CACHED].map(|part| self.snapshot.host(part.id()));
            let cache: u64 = parts.into_iter().flatten().sum();
            // It is cut off, or not busybox's, where the cache does not fit into what is used.
            if raw(used.value).is_some_and(|used| used >= cache) {
                self.snapshot.set_size(MEM_TOTAL.id(), total, 1.0);
            }
        }
    }

    /// The table of processes, after a blank line.
    fn processes(&mut self, input: &mut BlockReader<'_>, from: usize) {
        let lines = input.lines;
        let at = |offset: usize| lines.get(from + offset).copied();
        let start = self.lines + usize::from(at(self.lines) == Some(""));
        let Some(header) = at(start).and_then(ProcessHeader::from_line) else {
            return;
        };
        self.lines = start + 1;
        while let Some(line) = at(self.lines).filter(|line| !line.is_empty()) {
            if line.starts_with("top - ") || prompt::command(line).is_some() {
                break;
            }
            if !header.read_row(line, self.lines, &mut self.snapshot, input.facts) {
                if self.not_understood > 0 {
                    break;
                }
                self.not_understood += 1;
            }
            self.lines += 1;
        }
    }
}

/// `Tasks: …`, `%Cpu(s): …`, `KiB Mem : …`.
fn is_head(line: &str) -> bool {
    ["Tasks:", "Threads:", "%Cpu", "Cpu", "CPU:", "Load average:"]
        .iter()
        .any(|start| line.starts_with(start))
        || sums(line).is_some()
}

/// A line of memory or swap: whether it is swap, its unit, and the text after the colon.
fn sums(line: &str) -> Option<(bool, SizeUnit, &str)> {
    let (name, rest) = line.split_once(':')?;
    let mut words = name.split_whitespace();
    let first = words.next()?;
    let (unit, kind) = match words.next() {
        // Of a line that lost its first characters the unit is unknown: no top prints bytes.
        Some(kind) if first != "B" => (SizeUnit::named(first)?, kind),
        Some(_) => return None,
        None => (SizeUnit::KIB, first),
    };
    let is_sums = ["total,", "free,", " used,", "total ,"].iter().any(|word| rest.contains(word));
    (words.next().is_none() && matches!(kind, "Mem" | "Swap") && is_sums).then_some((
        kind == "Swap",
        unit,
        rest,
    ))
}

/// When a screen was printed.
#[derive(Debug, Clone, Copy, PartialEq)]
struct TopClock {
    /// Seconds of the day.
    of_day: u64,
    /// Whole minutes since boot.
    up_minutes: Option<u64>,
}

impl TopClock {
    /// `top - 23:58:47 up 10 days,  3:04,  2 users,  load average: …`; `up 5 min`, `up 1 day, 12 min`.
    fn from_line(line: &str) -> Option<Self> {
        let rest = line.strip_prefix("top - ")?;
        let (time, rest) = rest.split_once(" up ").unwrap_or((rest, ""));
        let mut parts = time.trim().split(':').map(|part| part.parse::<u64>().ok());
        let (hours, minutes, seconds) = (parts.next()??, parts.next()??, parts.next()??);
        (hours < 24 && minutes < 60 && seconds < 61)
            .then(|| Self { of_day: hours * 3600 + minutes * 60 + seconds, up_minutes: up(rest) })
    }

    /// The time since `before`; `None` if it is not positive.
    fn after(self, before: Self) -> Option<Span> {
        let by_clock = (self.of_day + DAY - before.of_day) % DAY;
        let (Some(now), Some(then)) = (self.up_minutes, before.up_minutes) else {
            return (by_clock > 0).then(|| Span::from_secs(by_clock));
        };
        let by_uptime = now.checked_sub(then)?.checked_mul(60)?;
        // The clock does not show whole days; the uptime is a minute off at most.
        let days = by_uptime.checked_add(120)?.saturating_sub(by_clock) / DAY;
        let seconds = by_clock + days * DAY;
        let agrees = seconds.abs_diff(by_uptime) <= 120;
        (agrees && seconds > 0).then(|| Span::from_secs(seconds))
    }
}

/// Whole minutes of an uptime.
fn up(text: &str) -> Option<u64> {
    let mut minutes = 0_u64;
    let mut any = false;
    for part in text.split(',').take(2) {
        let words: Vec<&str> = part.split_whitespace().collect();
        let add = match words.as_slice() {
            [days, "day" | "days"] => days.parse::<u64>().ok()?.checked_mul(1440)?,
            [number, "min"] => number.parse().ok()?,
            [clock] => {
                let (hours, minutes) = clock.split_once(':')?;
                let hours: u64 = hours.parse().ok()?;
                hours.checked_mul(60)?.checked_add(minutes.parse().ok()?)?
            }
            _ => break,
        };
        minutes = minutes.checked_add(add)?;
        any = true;
    }
    any.then_some(minutes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::paste;
    use timeline::Entity;
    use timeline::signals::PROC_RSS;
    use units::{Bytes, Pages};

    const NEW: &str = "\
top - 23:58:47 up 10 days,  3:04,  2 users,  load average: 0.00, 0.01, 0.05
Tasks: 213 total,   1 running, 212 sleeping,   0 stopped,   0 zombie
%Cpu(s):  0.3 us,  0.2 sy,  0.0 ni, 99.5 id,  0.0 wa,  0.0 hi,  0.0 si,  0.0 st
KiB Mem :  16268680 total,   349408 free, 10247240 used,  5672032 buff/cache
KiB Swap:  2097148 total,  2097148 free,        0 used.  5620544 avail Mem 

  PID USER      PR  NI    VIRT    RES    SHR S  %CPU %MEM     TIME+ COMMAND
 4242 mysql     20   0   18.2g   9.5g  12304 S   0.3 61.2 120:14.71 mysqld
    1 root      20   0  167744  13092   8400 S   0.0  0.1   0:14.12 systemd
";

    fn kib(n: u64) -> Option<Bytes> {
        Some(Bytes::from_kib(n))
    }

    #[test]
    fn the_head_is_read_in_all_its_layouts() {
        for text in [
            NEW,
            "Mem:  16268680k total, 15919272k used,   349408k free,   197688k buffers\nSwap:  2097148k total,        0k used,  2097148k free,  5672032k cached\n",
            "KiB Mem:  16268680 total, 15919272 used,   349408 free,   197688 buffers\nKiB Swap:  2097148 total,        0 used,  2097148 free.  5672032 cached Mem\n",
        ] {
            let timeline = paste(text).timeline;
            assert_eq!(timeline.last(MEM_TOTAL), kib(16_268_680), "{text}");
            assert_eq!(timeline.last(MEM_FREE), kib(349_408));
            assert_eq!(timeline.last(MEM_CACHED), kib(5_672_032));
            assert_eq!(timeline.last(SWAP_TOTAL), kib(2_097_148));
            assert_eq!(timeline.last(SWAP_FREE), kib(2_097_148));
            assert_eq!(timeline.rounded_signals().count(), 0);
        }
        assert_eq!(paste(NEW).timeline.last(MEM_AVAILABLE), kib(5_620_544));
        let busybox = "Mem: 15919272K used, 349408K free, 1208K shrd, 197688K buff, 5672032K cached\nCPU:   0% usr\n";
        let timeline = paste(busybox).timeline;
        assert_eq!(timeline.last(MEM_TOTAL), kib(16_268_680));
        assert_eq!((timeline.last(MEM_FREE), timeline.last(MEM_SHMEM)), (kib(349_408), kib(1208)));
        let headless = NEW.replace("KiB Mem", "B Mem");
        let headless = headless.split_once("\nB Mem").unwrap().1;
        let timeline = paste(&format!("B Mem{headless}")).timeline;
        assert_eq!(timeline.last(MEM_TOTAL), None);
        assert_eq!(timeline.last(MEM_AVAILABLE), kib(5_620_544));
        let cut = busybox.replace("15919272K", "919K");
        assert_eq!(paste(&cut).timeline.last(MEM_TOTAL), None);
        let mib = "MiB Mem :  15887.4 total,    341.2 free,  10007.1 used,   5539.1 buff/cache\n";
        let opened = paste(mib);
        assert!(opened.timeline.rounded_signals().any(|id| id == MEM_FREE.id()));
        assert_eq!(opened.origin.inputs[0].unit, "MiB");
    }

    #[test]
    fn truncated_figures_are_not_used() {
        let opened =
            paste("KiB Mem : 13184268+total,   349408 free, 10247240 used,  5672032 buff/cache\n");
        assert_eq!(opened.timeline.last(MEM_TOTAL), None);
        assert_eq!(opened.timeline.last(MEM_FREE), kib(349_408));
        let opened =
            paste("KiB Mem : 13184268+ total,   349408 free, 10247240 used,  5672032 buff/cache\n");
        assert!(opened.problems[0].contains("truncated"), "{:?}", opened.problems);
    }

    #[test]
    fn processes_have_sizes_with_suffixes() {
        let timeline = paste(NEW).timeline;
        let series = timeline.entity(Entity::Process, "4242@0").unwrap();
        assert_eq!(series.label, "mysqld");
        assert_eq!(timeline.last_of(series, PROC_RSS), Some(Pages::new(2_490_368)));
        assert_eq!(timeline.entities(Entity::Process).count(), 2);
    }

    #[test]
    fn a_batch_is_a_timeline() {
        let next = NEW.replace("23:58:47", "00:03:47").replace("10 days,  3:04", "10 days,  3:09");
        let opened = paste(&format!("$ top -b -d 300 -n 2\n{NEW}\n{next}"));
        assert_eq!((opened.timeline.len(), opened.origin.inputs.len()), (2, 1));
        assert_eq!(opened.timeline.duration(), Span::from_secs(300));
    }

    #[test]
    fn the_interval_follows_from_clock_and_uptime() {
        let at = |time: &str, up: &str| {
            TopClock::from_line(&format!("top - {time} up {up},  2 users,  load")).unwrap()
        };
        for (a, b, seconds) in [
            (at("23:58:47", "10 days,  3:04"), at("23:58:52", "10 days,  3:04"), Some(5)),
            (at("23:58:47", "10 days,  3:04"), at("00:00:47", "10 days,  3:06"), Some(120)),
            (at("12:00:00", "1 day, 12 min"), at("12:00:30", "2 days, 13 min"), Some(86_430)),
            (at("12:00:00", "5 min"), at("12:00:00", "5 min"), None),
            (at("12:00:00", "10 days,  3:04"), at("12:05:00", "3 min"), None),
            // In seconds it nearly overflows 64 bits.
            (at("12:00:00", "0 min"), at("12:00:00", "307445734561825860 min"), None),
        ] {
            assert_eq!(b.after(a), seconds.map(Span::from_secs), "{a:?} {b:?}");
        }
    }

    #[test]
    fn any_cut_is_read_without_panic() {
        for cut in 0..NEW.len() {
            paste(&NEW[..cut]);
            paste(&NEW[cut..]);
        }
        for number in ["-1", "99999999999999999999", "+", ""] {
            paste(&NEW.replace(['1', '2', '4'], number));
        }
    }
}
