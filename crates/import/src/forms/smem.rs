//! `smem -tw`: memory of the kernel and of user space. Tables of processes are read as those of `ps`.
//!
//! Three of its figures are fields of `/proc/meminfo`: free memory, anonymous memory (user space, noncache) and mapped
//! files (user space, cache). The cache of the kernel is a sum of several fields and is not used. Sizes are KiB, or
//! have a suffix (`-k`); percentages (`-p`) are not used.
//!
//! Also `ps_mem`, which adds up the proportional shares of a program's processes:
//! `200.0 KiB +  20.0 KiB = 220.0 KiB name (2)`.

use timeline::Entity;
use timeline::signals::{MEM_ANON, MEM_FREE, MEM_MAPPED, MEM_TOTAL, PROC_PSS};
use units::Bytes;

use super::Form;

use crate::block::{BlockReader, TextBlock};
use crate::builder::Snapshot;
use crate::text::figure::{KIB, PrintedFigure, raw};
use crate::text::line_scan::BlockStart;

pub(super) const FORM: Form =
    Form { name: "smem", begins: BlockStart::with(&["Noncache", "RAM used"]), read };

/// The rows that add up to MemTotal. Firmware and the kernel image are not part of it.
const AREAS: [&str; 3] = ["kernel dynamic memory", "userspace memory", "free memory"];

/// At most 1,000 programs of ps_mem.
const PROGRAMS_MAX: usize = 1000;

fn read(input: &mut BlockReader<'_>) -> Option<TextBlock> {
    areas(input).or_else(|| programs(input))
}

/// The table of ps_mem.
fn programs(input: &mut BlockReader<'_>) -> Option<TextBlock> {
    let header: Vec<&str> = input.lines.first()?.split_whitespace().collect();
    if header != ["Private", "+", "Shared", "=", "RAM", "used", "Program"] {
        return None;
    }
    let mut snapshot = Snapshot::default();
    let mut lines = 1;
    for (at, line) in input.lines.iter().enumerate().take(PROGRAMS_MAX).skip(1) {
        if line.trim().is_empty() {
            continue;
        }
        let Some((program, used)) = program(line) else {
            break;
        };
        let row = snapshot.sample.table_mut(Entity::Process).add();
        // It prints no PIDs.
        row.key = format!("0@{at}");
        row.label = program.to_owned();
        row.row.set(PROC_PSS, used);
        lines = at + 1;
    }
    (lines > 1).then(|| {
        input.add(snapshot);
        TextBlock { what: "ps_mem".to_owned(), lines, unit: "as printed", ..TextBlock::default() }
    })
}

/// `200.0 KiB +  20.0 KiB = 220.0 KiB name (2)`: the program, and the last size.
fn program(line: &str) -> Option<(&str, Bytes)> {
    let (parts, sum) = line.split_once('=')?;
    parts.split_once('+')?;
    let sum = sum.trim_start();
    let (number, rest) = sum.split_once(' ')?;
    let (unit, program) = rest.trim_start().split_once(' ')?;
    let figure = PrintedFigure::with_unit(&format!("{number}{unit}"))?;
    let program = program.trim();
    (!program.is_empty()).then_some((program, Bytes::new(raw(figure.value)?)))
}

/// The table of smem.
fn areas(input: &mut BlockReader<'_>) -> Option<TextBlock> {
    let header: Vec<&str> = input.lines.first()?.split_whitespace().collect();
    if header != ["Area", "Used", "Cache", "Noncache"] {
        return None;
    }
    let mut snapshot = Snapshot::default();
    let mut used: Vec<PrintedFigure> = Vec::new();
    let mut lines = 1;
    for line in &input.lines[1..] {
        let Some((area, figures)) = row(line) else {
            break;
        };
        lines += 1;
        let [sum, cache, other] = figures;
        match area {
            "free memory" => snapshot.set_size(MEM_FREE.id(), sum, KIB),
            "userspace memory" => {
                snapshot.set_size(MEM_MAPPED.id(), cache, KIB);
                snapshot.set_size(MEM_ANON.id(), other, KIB);
            }
            _ => {}
        }
        if AREAS.contains(&area) {
            used.push(sum.in_bytes(KIB));
        }
    }
    if used.len() == AREAS.len() {
        let total = PrintedFigure {
            value: used.iter().map(|f| f.value).sum(),
            error: used.iter().map(|f| f.error).sum(),
            has_unit: true,
        };
        snapshot.set_size(MEM_TOTAL.id(), total, 1.0);
        // A sum of three figures in KiB is exact enough.
        snapshot.error_at_most.retain(|(_, error)| *error > 4096);
    }
    if used.is_empty() {
        return None;
    }
    let rest = &input.lines[lines..];
    lines += rest.iter().take(2).take_while(|line| is_sum(line)).count();
    input.add(snapshot);
    Some(TextBlock { what: "smem -w".to_owned(), lines, unit: "KiB", ..TextBlock::default() })
}

/// `free memory    3121720    3121720          0`.
fn row(line: &str) -> Option<(&str, [PrintedFigure; 3])> {
    let mut words = line.split_whitespace().rev();
    let other = PrintedFigure::binary(words.next()?)?;
    let cache = PrintedFigure::binary(words.next()?)?;
    let used = PrintedFigure::binary(words.next()?)?;
    let (area, _) = line.split_once(|c: char| c.is_ascii_digit())?;
    let area = area.trim();
    (!area.is_empty()).then_some((area, [used, cache, other]))
}

/// The lines below the areas: a rule, and the sums.
fn is_sum(line: &str) -> bool {
    line.starts_with("-----")
        || (!line.is_empty() && line.split_whitespace().all(|w| PrintedFigure::binary(w).is_some()))
}

#[cfg(test)]
mod tests {
    use crate::testing::paste;
    use timeline::Entity;
    use timeline::signals::{MEM_ANON, MEM_FREE, MEM_MAPPED, MEM_TOTAL, PROC_PSS, PROC_SWAP};
    use units::Bytes;

    const WHOLE: &str = "\
Area                           Used      Cache   Noncache 
firmware/hardware                 0          0          0 
kernel image                      0          0          0 
kernel dynamic memory        551260     506304      44956 
userspace memory             385556     167180     218376 
free memory                 3121720    3121720          0 
----------------------------------------------------------
                            4058536    3795204     263332 
";

    #[test]
    fn areas_become_fields_of_meminfo() {
        let opened = paste(WHOLE);
        let timeline = &opened.timeline;
        assert_eq!(timeline.last(MEM_FREE), Some(Bytes::from_kib(3_121_720)));
        assert_eq!(timeline.last(MEM_ANON), Some(Bytes::from_kib(218_376)));
        assert_eq!(timeline.last(MEM_MAPPED), Some(Bytes::from_kib(167_180)));
        assert_eq!(timeline.last(MEM_TOTAL), Some(Bytes::from_kib(4_058_536)));
        assert_eq!(timeline.rounded_signals().count(), 0);
        assert_eq!(opened.origin.inputs[0].last_line, 8);
        let cut = paste(&WHOLE.replace("kernel dynamic", "other")).timeline;
        assert_eq!(cut.last(MEM_TOTAL), None, "an area is missing");
    }

    #[test]
    fn suffixes_are_read_and_percentages_are_not() {
        let text = "Area Used Cache Noncache\nkernel dynamic memory 538.3M 494.4M 43.9M\nuserspace memory 376.5M 163.3M 213.3M\nfree memory 3.0G 3.0G 0\n";
        let timeline = paste(text).timeline;
        assert_eq!(timeline.last(MEM_FREE), Some(Bytes::from_gib(3)));
        assert!(timeline.rounded_signals().any(|id| id == MEM_TOTAL.id()));
        let percent = "Area Used Cache Noncache\nuserspace memory 9.50% 4.12% 5.38%\nfree memory 76.92% 76.92% 0.00%\n";
        assert!(paste(percent).timeline.is_empty());
    }

    #[test]
    fn programs_of_ps_mem_have_sizes() {
        let text = " Private  +   Shared  =  RAM used Program\n\n  1.2 MiB +  200.0 KiB =   1.4 MiB systemd\n 14.9 GiB +  20.0 MiB =  15.0 GiB hyprswitch (2)\n---------------------------------\n                         15.0 GiB\n";
        let timeline = paste(text).timeline;
        let programs: Vec<_> = timeline.entities(Entity::Process).collect();
        assert_eq!(programs.len(), 2);
        assert_eq!(programs[1].label, "hyprswitch (2)");
        assert_eq!(timeline.last_of(programs[1], PROC_PSS), Some(Bytes::from_gib(15)));
    }

    #[test]
    fn processes_have_proportional_shares() {
        let text = "\
  PID User     Command                         Swap      USS      PSS      RSS 
 1234 jan      /usr/lib/firefox/firefox -n         4   163372   181290   254896 
-------------------------------------------------------------------------------
    1 1                                            4   163372   181290   254896 
";
        let timeline = paste(text).timeline;
        let series = timeline.entity(Entity::Process, "1234@0").unwrap();
        assert_eq!(timeline.last_of(series, PROC_PSS), Some(Bytes::from_kib(181_290)));
        assert_eq!(timeline.last_of(series, PROC_SWAP), Some(Bytes::from_kib(4)));
        assert_eq!(series.label, "firefox");
        assert_eq!(timeline.entities(Entity::Process).count(), 1, "the sum is not a process");
    }
}
