//! `top`: the sums at its head, of old and new procps and of busybox, and its processes; one look or a batch (`top -b`).
//!
//! "used" contains the cache before procps 3.3.10 and is not used here. A figure that ends in `+` did not fit its column
//! and lost its last digits: it is left out. The head has the time of day; with the uptime, which is printed to the
//! minute, it tells how much later the next one is.

use timeline::Sample;
use timeline::signals::{
    MEM_AVAILABLE, MEM_BUFFERS, MEM_CACHED, MEM_FREE, MEM_SHMEM, MEM_TOTAL, SWAP_FREE, SWAP_TOTAL,
};
use units::Span;

use super::fill;
use super::processes::Header;
use super::{Block, Form, Reading};
use crate::looks::{Look, When};

pub(super) const FORM: Form = Form { name: "top", read };

const DAY: u64 = 86_400;

fn read(reading: &mut Reading<'_>) -> Option<Block> {
    let mut block = Block::default();
    let mut before: Option<Clock> = None;
    while let Some(screen) = Screen::read(reading, block.lines) {
        let mut look = screen.look;
        if let (Some(before), Some(now)) = (before, screen.clock) {
            look.when = now.after(before).map_or(When::Unknown, When::After);
        }
        before = screen.clock;
        if block.lines == 0 {
            block.what = "top".to_owned();
            block.unit = screen.unit;
        }
        let problems = screen.problems.into_iter();
        block
            .problems
            .extend(problems.map(|(at, text)| (block.lines + at, text)));
        block.not_understood += screen.not_understood;
        block.lines += screen.lines;
        reading.look(look);
    }
    (block.lines > 0).then_some(block)
}

/// One printing of top.
struct Screen {
    look: Look,
    clock: Option<Clock>,
    unit: &'static str,
    lines: usize,
    problems: Vec<(usize, String)>,
    not_understood: usize,
}

impl Screen {
    /// Reads the screen that begins at a line, or behind blank ones.
    fn read(reading: &mut Reading<'_>, from: usize) -> Option<Self> {
        let lines = reading.lines.get(from..)?;
        let blank = match from {
            0 => 0,
            _ => lines
                .iter()
                .take(3)
                .take_while(|line| line.is_empty())
                .count(),
        };
        let mut screen = Self {
            look: Look::of(Sample::default()),
            clock: None,
            unit: "",
            lines: blank,
            problems: Vec::new(),
            not_understood: 0,
        };
        let first = *lines.get(blank)?;
        screen.clock = Clock::of(first);
        if first.starts_with("top - ") {
            screen.lines += 1;
        } else if !is_head(first) || from > 0 {
            // Without its first line a head may have been cut off; a batch has it every time.
            return None;
        }
        screen.head(lines);
        screen.processes(reading, from);
        (!screen.look.sample.host.is_empty() || screen.has_processes()).then_some(screen)
    }

    fn has_processes(&self) -> bool {
        let table = self.look.sample.table(timeline::Entity::Process);
        !table.rows().is_empty()
    }

    /// The sums: tasks, CPUs, memory, swap.
    fn head(&mut self, lines: &[&str]) {
        // A machine may show each of its CPUs on a line of its own.
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

    fn sums(&mut self, is_swap: bool, unit: fill::Unit, sums: &str) {
        // `2097148 free.  5672032 cached Mem`: busybox ends in a comma-free word, procps 3.3 in a point.
        for part in sums.split(',').flat_map(|part| part.split(". ")) {
            let mut words = part.split_whitespace();
            let (Some(figure), Some(name)) = (words.next(), words.next()) else {
                continue;
            };
            let name = name.trim_end_matches('.');
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
                let text = format!("`{figure} {name}` lost digits in its column; not used");
                self.problems.push((self.lines, text));
                continue;
            }
            if let Some(figure) = fill::figure(figure) {
                self.look.set_size(signal.id(), figure, unit.bytes);
            }
        }
    }

    /// The table of processes, behind a blank line.
    fn processes(&mut self, reading: &mut Reading<'_>, from: usize) {
        let lines = reading.lines;
        let at = |offset: usize| lines.get(from + offset).copied();
        let start = self.lines + usize::from(at(self.lines) == Some(""));
        let Some(header) = at(start).and_then(Header::of) else {
            return;
        };
        self.lines = start + 1;
        while let Some(line) = at(self.lines).filter(|line| !line.is_empty()) {
            if line.starts_with("top - ") || crate::prompt::command(line).is_some() {
                break;
            }
            if !header.row(line, self.lines, &mut self.look, reading.facts) {
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

/// A line of memory or swap: whether it is swap, its unit, what follows on the colon with figures first.
fn sums(line: &str) -> Option<(bool, fill::Unit, &str)> {
    let (name, rest) = line.split_once(':')?;
    let mut words = name.split_whitespace();
    let first = words.next()?;
    let (unit, kind) = match words.next() {
        Some(kind) => (fill::unit(first)?, kind),
        None => (fill::unit("KiB")?, first),
    };
    let is_sums = ["total,", "free,", " used,", "total ,"]
        .iter()
        .any(|word| rest.contains(word));
    (words.next().is_none() && matches!(kind, "Mem" | "Swap") && is_sums).then_some((
        kind == "Swap",
        unit,
        rest,
    ))
}

/// When a screen was drawn.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Clock {
    /// Seconds of the day.
    of_day: u64,
    /// Whole minutes since boot.
    up_minutes: Option<u64>,
}

impl Clock {
    /// `top - 23:58:47 up 10 days,  3:04,  2 users,  load average: …`; `up 5 min`, `up 1 day, 12 min`.
    fn of(line: &str) -> Option<Self> {
        let rest = line.strip_prefix("top - ")?;
        let (time, rest) = rest.split_once(" up ").unwrap_or((rest, ""));
        let mut parts = time.trim().split(':').map(|part| part.parse::<u64>().ok());
        let (hours, minutes, seconds) = (parts.next()??, parts.next()??, parts.next()??);
        (hours < 24 && minutes < 60 && seconds < 61).then(|| Self {
            of_day: hours * 3600 + minutes * 60 + seconds,
            up_minutes: up(rest),
        })
    }

    /// How much later it is than `before`; `None` where it is not later.
    fn after(self, before: Self) -> Option<Span> {
        let by_clock = (self.of_day + DAY - before.of_day) % DAY;
        let (Some(now), Some(then)) = (self.up_minutes, before.up_minutes) else {
            return (by_clock > 0).then(|| Span::from_secs(by_clock));
        };
        let by_uptime = now.checked_sub(then)?.checked_mul(60)?;
        // Whole days that the clock does not show; the uptime is up to a minute off.
        let days = by_uptime.checked_add(120)?.saturating_sub(by_clock) / DAY;
        let seconds = by_clock + days * DAY;
        let agrees = seconds.abs_diff(by_uptime) <= 120;
        (agrees && seconds > 0).then(|| Span::from_secs(seconds))
    }
}

/// Whole minutes of an uptime: up to the users.
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
        assert_eq!(
            (timeline.last(MEM_FREE), timeline.last(MEM_SHMEM)),
            (kib(349_408), kib(1208))
        );
        let mib = "MiB Mem :  15887.4 total,    341.2 free,  10007.1 used,   5539.1 buff/cache\n";
        let opened = paste(mib);
        assert!(
            opened
                .timeline
                .rounded_signals()
                .any(|id| id == MEM_FREE.id())
        );
        assert_eq!(opened.inputs[0].unit, "MiB");
    }

    #[test]
    fn figures_that_lost_digits_are_not_used() {
        let opened =
            paste("KiB Mem : 13184268+total,   349408 free, 10247240 used,  5672032 buff/cache\n");
        assert_eq!(opened.timeline.last(MEM_TOTAL), None);
        assert_eq!(opened.timeline.last(MEM_FREE), kib(349_408));
        let opened =
            paste("KiB Mem : 13184268+ total,   349408 free, 10247240 used,  5672032 buff/cache\n");
        assert!(
            opened.problems[0].contains("lost digits"),
            "{:?}",
            opened.problems
        );
    }

    #[test]
    fn processes_have_sizes_with_suffixes() {
        let timeline = paste(NEW).timeline;
        let series = timeline.entity(Entity::Process, "4242@0").unwrap();
        assert_eq!(series.label, "mysqld");
        assert_eq!(
            timeline.last_of(series, PROC_RSS),
            Some(Pages::new(2_490_368))
        );
        assert_eq!(timeline.entities(Entity::Process).count(), 2);
    }

    #[test]
    fn a_batch_is_a_timeline() {
        let next = NEW
            .replace("23:58:47", "00:03:47")
            .replace("10 days,  3:04", "10 days,  3:09");
        let opened = paste(&format!("$ top -b -d 300 -n 2\n{NEW}\n{next}"));
        assert_eq!((opened.timeline.len(), opened.inputs.len()), (2, 1));
        assert_eq!(opened.timeline.duration(), Span::from_secs(300));
    }

    #[test]
    fn the_clock_and_the_uptime_tell_the_interval() {
        let at = |time: &str, up: &str| {
            Clock::of(&format!("top - {time} up {up},  2 users,  load")).unwrap()
        };
        for (a, b, seconds) in [
            (
                at("23:58:47", "10 days,  3:04"),
                at("23:58:52", "10 days,  3:04"),
                Some(5),
            ),
            (
                at("23:58:47", "10 days,  3:04"),
                at("00:00:47", "10 days,  3:06"),
                Some(120),
            ),
            (
                at("12:00:00", "1 day, 12 min"),
                at("12:00:30", "2 days, 13 min"),
                Some(86_430),
            ),
            (at("12:00:00", "5 min"), at("12:00:00", "5 min"), None),
            (
                at("12:00:00", "10 days,  3:04"),
                at("12:05:00", "3 min"),
                None,
            ),
            // No uptime that anybody printed; in seconds it nearly fills 64 bits.
            (
                at("12:00:00", "0 min"),
                at("12:00:00", "307445734561825860 min"),
                None,
            ),
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
