//! `free`, of any procps: old columns (`buffers cached`, `-/+ buffers/cache`) and new (`buff/cache available`), all its
//! units.
//!
//! What its words mean changed: "used" contains buffers and cache before procps 3.3.10, and is total − available since
//! 4.0; so it is not used here. "buff/cache" contains reclaimable slab since 3.3.10. "shared" was always 0 before 3.3.10 on
//! kernels after 2.6.

use timeline::signals::{
    MEM_AVAILABLE, MEM_BUFFERS, MEM_CACHED, MEM_FREE, MEM_SHMEM, MEM_TOTAL, SWAP_FREE, SWAP_TOTAL,
};
use timeline::{Gauge, Sample, Signal};
use units::{Bytes, Span};

use super::{Block, Form, Reading};
use crate::figure::{Base, Figure, raw};
use crate::looks::{Look, When};

pub(super) const FORM: Form = Form { name: "free", read };

fn read(reading: &mut Reading<'_>) -> Option<Block> {
    let command = reading.command.unwrap_or_default();
    let every = every(command);
    let base = match command.contains("--si") {
        true => Base::Decimal,
        false => Base::Binary,
    };
    let mut block = Block::default();
    loop {
        let rest = &reading.lines[block.lines..];
        let blank = usize::from(block.lines > 0 && rest.first() == Some(&""));
        let Some(table) = Table::read(&rest[blank.min(rest.len())..], base) else {
            break;
        };
        if block.lines > 0 && every.is_none() {
            break;
        }
        let unit = Unit::of(command, &table);
        if block.lines == 0 {
            block.what = format!("free, {}", table.era());
            block.unit = unit.name;
        }
        for (line, problem) in &table.problems {
            block
                .problems
                .push((block.lines + blank + line, problem.clone()));
        }
        let mut look = table.look(unit);
        if let (true, Some(span)) = (block.lines > 0, every) {
            look.when = When::After(span);
        }
        reading.look(look);
        block.lines += blank + table.lines;
    }
    (block.lines > 0).then_some(block)
}

/// The interval of `free -s 5`.
fn every(command: &str) -> Option<Span> {
    let words: Vec<&str> = command.split_whitespace().collect();
    let at = words
        .iter()
        .position(|w| w.starts_with("-s") || w.starts_with("--seconds"))?;
    let inline = words[at].trim_start_matches(|c: char| !c.is_ascii_digit());
    let text = if inline.is_empty() {
        words.get(at + 1)?
    } else {
        &inline
    };
    let seconds: f64 = text.parse().ok()?;
    (seconds > 0.0 && seconds < 1e6).then(|| Span::from_secs_f64(seconds))
}

/// One printing of `free`: columns by name, rows as figures.
struct Table<'a> {
    columns: Vec<&'a str>,
    mem: Vec<Figure>,
    swap: Vec<Figure>,
    lines: usize,
    problems: Vec<(usize, String)>,
}

/// Columns of a row without its header, as procps orders them.
const OLD: [&str; 6] = ["total", "used", "free", "shared", "buffers", "cached"];
const NEW: [&str; 6] = ["total", "used", "free", "shared", "buff/cache", "available"];

impl<'a> Table<'a> {
    fn read(lines: &[&'a str], base: Base) -> Option<Self> {
        let header: Vec<&str> = lines.first()?.split_whitespace().collect();
        let has_header = header.starts_with(&["total", "used", "free"]);
        let mut table = Self {
            columns: header,
            mem: Vec::new(),
            swap: Vec::new(),
            lines: usize::from(has_header),
            problems: Vec::new(),
        };
        if !has_header {
            table.columns = Vec::new();
        }
        for line in &lines[table.lines..] {
            let Some((name, rest)) = line.split_once(':') else {
                break;
            };
            let row = match name.trim() {
                "Mem" => &mut table.mem,
                "Swap" => &mut table.swap,
                // Sums and parts of what is known.
                "-/+ buffers/cache" | "Low" | "High" | "Total" | "Comm" => {
                    table.lines += 1;
                    continue;
                }
                _ => break,
            };
            if !row.is_empty() {
                break;
            }
            for word in rest.split_whitespace() {
                match Figure::parse(word, base) {
                    Some(figure) => row.push(figure),
                    None => {
                        let shown: String = word.chars().take(30).collect();
                        let problem =
                            format!("`{shown}` is no size; the rest of the line is left out");
                        table.problems.push((table.lines, problem));
                        break;
                    }
                }
            }
            table.lines += 1;
        }
        // Three figures are the least that a row of memory has.
        if table.mem.len() < 3 {
            return None;
        }
        if !has_header {
            let adds_up = |parts: &[usize]| {
                let sum: f64 = parts
                    .iter()
                    .filter_map(|i| table.mem.get(*i))
                    .map(|f| f.value)
                    .sum();
                (sum - table.mem[0].value).abs() <= table.mem[0].value * 0.01 + 3.0
            };
            table.columns = if adds_up(&[1, 2]) { OLD } else { NEW }.to_vec();
        }
        Some(table)
    }

    fn has(&self, column: &str) -> bool {
        self.columns.contains(&column)
    }

    /// A column's figure. A name with blanks in it (`buff cache`) would shift the rest: free prints none.
    fn figure(&self, column: &str) -> Option<Figure> {
        let at = self.columns.iter().position(|c| *c == column)?;
        self.mem.get(at).copied()
    }

    /// Which procps, for people: it decides what "used" means.
    fn era(&self) -> &'static str {
        if !self.has("available") {
            return "procps before 3.3.10: used contains the cache";
        }
        let value = |column| self.figure(column).map(|f| f.value);
        let since_4 = || {
            let (total, used, available) = (value("total")?, value("used")?, value("available")?);
            Some((total - used - available).abs() <= total * 0.002 + 2.0)
        };
        if since_4() == Some(true) {
            "procps 4: used is total − available"
        } else {
            "procps 3.3.10 or later: used is without cache"
        }
    }

    fn look(&self, unit: Unit) -> Look {
        let mut filling = Filling {
            look: Look::of(Sample::default()),
            unit,
        };
        filling.set(MEM_TOTAL, self.figure("total"));
        filling.set(MEM_FREE, self.figure("free"));
        filling.set(MEM_AVAILABLE, self.figure("available"));
        filling.set(MEM_BUFFERS, self.figure("buffers"));
        let cache = ["buff/cache", "cache", "cached"];
        filling.set(MEM_CACHED, cache.iter().find_map(|c| self.figure(c)));
        // Before 3.3.10 a 0 means that free does not know.
        let knows = |shared: &Figure| self.has("available") || shared.value > 0.0;
        filling.set(MEM_SHMEM, self.figure("shared").filter(knows));
        filling.set(SWAP_TOTAL, self.swap.first().copied());
        filling.set(SWAP_FREE, self.swap.get(2).copied());
        filling.look
    }
}

/// Puts figures into a look.
struct Filling {
    look: Look,
    unit: Unit,
}

impl Filling {
    fn set(&mut self, signal: Signal<Gauge<Bytes>>, figure: Option<Figure>) {
        let Some(figure) = figure else { return };
        let factor = match figure.has_unit {
            true => 1.0,
            false => self.unit.bytes,
        };
        let Some(value) = raw(figure.value * factor) else {
            return;
        };
        self.look.sample.host.set(signal, Bytes::new(value));
        // Sizes in KiB are the kernel's own. free cuts off what does not fill a unit, and -h rounds: a whole step either way.
        if let Some(step) =
            raw(figure.step * factor).filter(|step| *step > 1024 && figure.value > 0.0)
        {
            self.look.rounded.push((signal.id(), step));
        }
    }
}

/// What a figure without suffix counts.
#[derive(Clone, Copy)]
struct Unit {
    name: &'static str,
    bytes: f64,
}

const KIB: f64 = 1024.0;

impl Unit {
    const fn of_size(name: &'static str, bytes: f64) -> Self {
        Self { name, bytes }
    }

    fn of(command: &str, table: &Table<'_>) -> Self {
        let options: Vec<&str> = command
            .split_whitespace()
            .filter(|w| w.starts_with('-'))
            .collect();
        let short = |letter: char| {
            let is_short = |w: &&&str| !w.starts_with("--");
            options.iter().filter(is_short).any(|w| w.contains(letter))
        };
        let long = |name: &str| options.contains(&name);
        let si = long("--si");
        for (is_it, name, bytes) in [
            (short('h') || long("--human"), "as printed", KIB * KIB * KIB),
            (short('b') || long("--bytes"), "bytes", 1.0),
            (
                long("--kilo") || (si && short('k')),
                "kB of 1000 bytes",
                1e3,
            ),
            (
                long("--mega") || (si && (short('m') || long("--mebi"))),
                "MB of 10^6 bytes",
                1e6,
            ),
            (
                long("--giga") || (si && (short('g') || long("--gibi"))),
                "GB of 10^9 bytes",
                1e9,
            ),
            (long("--tera"), "TB of 10^12 bytes", 1e12),
            (short('m') || long("--mebi"), "MiB", KIB * KIB),
            (short('g') || long("--gibi"), "GiB", KIB * KIB * KIB),
            (long("--tebi"), "TiB", KIB * KIB * KIB * KIB),
            (short('k') || long("--kibi"), "KiB", KIB),
        ] {
            if is_it {
                return Self::of_size(name, bytes);
            }
        }
        Self::guessed(table)
    }

    /// Without the command, the size of RAM tells: nobody has 78 MiB, nor 100 TiB.
    fn guessed(table: &Table<'_>) -> Self {
        let figures = || table.mem.iter().chain(&table.swap);
        let total = table.mem[0].value;
        if figures().any(|f| f.has_unit) {
            Self::of_size("as printed", KIB * KIB * KIB)
        } else if total < 256.0 {
            Self::of_size("GiB, by the size", KIB * KIB * KIB)
        } else if total < 200_000.0 {
            Self::of_size("MiB, by the size", KIB * KIB)
        } else if total > 1e8 && figures().all(|f| f.value % KIB == 0.0) {
            Self::of_size("bytes, by the size", 1.0)
        } else {
            Self::of_size("KiB", KIB)
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::paste;
    use timeline::signals::{
        MEM_AVAILABLE, MEM_CACHED, MEM_FREE, MEM_SHMEM, MEM_TOTAL, SWAP_FREE, SWAP_TOTAL,
    };
    use units::{Bytes, Span};

    const ARTICLE: &str = "\
              total        used        free      shared  buff/cache   available
Mem:          80429       58906         579       1,028       20943        9662
Swap:         20480        1402       19078
";

    #[test]
    fn sizes_are_in_the_unit_that_was_asked_for() {
        for (command, unit) in [("free -m", "MiB"), ("", "MiB, by the size")] {
            let opened = paste(&format!("$ {command}\n{ARTICLE}"));
            let timeline = &opened.timeline;
            assert_eq!(timeline.last(MEM_TOTAL), Some(Bytes::from_mib(80_429)));
            assert_eq!(timeline.last(MEM_SHMEM), Some(Bytes::from_mib(1_028)));
            assert_eq!(timeline.last(MEM_AVAILABLE), Some(Bytes::from_mib(9_662)));
            assert_eq!(timeline.last(SWAP_FREE), Some(Bytes::from_mib(19_078)));
            assert_eq!(opened.inputs[0].unit, unit);
        }
    }

    #[test]
    fn kilo_is_a_thousand() {
        let text = "$ free --kilo\n total used free shared buff/cache available\nMem: 33667661 332746 32226500 517029 1108414 32417837\n";
        assert_eq!(
            paste(text).timeline.last(MEM_SHMEM),
            Some(Bytes::new(517_029_000))
        );
    }

    #[test]
    fn old_columns_are_known() {
        let text = "$ free -m\n total used free shared buffers cached\nMem: 16022 804 15218 0 81 459\n-/+ buffers/cache: 264 15758\nSwap: 2053 0 2053\n";
        let opened = paste(text);
        assert_eq!(opened.timeline.last(MEM_CACHED), Some(Bytes::from_mib(459)));
        assert_eq!(
            opened.timeline.last(MEM_SHMEM),
            None,
            "0 is not known there"
        );
        assert_eq!(
            opened.timeline.last(SWAP_TOTAL),
            Some(Bytes::from_mib(2_053))
        );
        assert!(opened.inputs[0].what.contains("before 3.3.10"));
        assert_eq!(opened.inputs[0].last_line, 5);
    }

    #[test]
    fn human_sizes_carry_their_rounding() {
        let text = "$ free -h\n total used free shared buff/cache available\nMem: 31Gi 27Gi 3.6Gi 13Gi 228Mi 6,1Gi\nSwap: 0B 0B 0B\n";
        let timeline = paste(text).timeline;
        assert_eq!(
            timeline.last(MEM_FREE).map(|b| b.to_string()),
            Some("3.6 GiB".to_owned())
        );
        assert_eq!(
            timeline.last(MEM_AVAILABLE).map(|b| b.to_string()),
            Some("6.1 GiB".to_owned())
        );
        assert_eq!(timeline.last(SWAP_TOTAL), Some(Bytes::ZERO));
        assert!(timeline.rounded().any(|id| id == MEM_FREE.id()));
    }

    #[test]
    fn a_series_with_its_interval_is_a_timeline_and_without_is_not() {
        let series = format!("{ARTICLE}\n{ARTICLE}\n{ARTICLE}");
        let timed = paste(&format!("$ free -m -s 5\n{series}")).timeline;
        assert_eq!((timed.len(), timed.lasts()), (3, Span::from_secs(10)));
        let untimed = paste(&format!("$ free -m\n{series}")).timeline;
        assert_eq!((untimed.len(), untimed.stretches().len()), (3, 3));
        let dated = paste(&format!(
            "Sat Nov 21 23:58:00 UTC 2026\n{ARTICLE}Sat Nov 21 23:59:00 UTC 2026\n{ARTICLE}"
        ));
        assert_eq!(dated.timeline.lasts(), Span::from_secs(60));
    }

    #[test]
    fn a_row_without_its_header_is_told_by_its_sums() {
        let opened = paste(
            "Mem:          80429       58906         579        1028       20943        9662\n",
        );
        assert_eq!(
            opened.timeline.last(MEM_AVAILABLE),
            Some(Bytes::from_mib(9_662))
        );
        assert!(paste("Mem: 7\n").inputs.is_empty());
    }
}
