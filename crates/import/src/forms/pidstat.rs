//! `pidstat -r`: RSS and size of processes in KiB, a table for each interval. Its rates of faults are not used: a rate of
//! one process is no rate of the host.

use std::collections::HashSet;

use timeline::Entity;

use super::Form;
use super::processes::ProcessHeader;
use crate::block::{BlockReader, TextBlock};
use crate::builder::{Snapshot, SnapshotTime};
use crate::text::line_scan::BlockStart;
use crate::text::times::{PrintedTime, SampleTimes};

pub(super) const FORM: Form =
    Form { name: "pidstat", begins: BlockStart::with(&["minflt/s"]), read };

fn read(input: &mut BlockReader<'_>) -> Option<TextBlock> {
    let (header, times) = header(input.lines.first()?)?;
    let mut block =
        TextBlock { what: "pidstat -r".to_owned(), unit: "KiB", lines: 1, ..TextBlock::default() };
    let mut series = SampleTimes::new(None);
    let mut snapshot = Snapshot::default();
    // Each process has one row of a time.
    let mut seen = HashSet::new();
    let mut last_clock = "";
    let lines = input.lines;
    for (at, line) in lines.iter().enumerate().skip(1) {
        let is_between = line.is_empty() || self::header(line).is_some();
        // The averages at the end are of no time.
        let row = without_words(line, times).filter(|_| !line.starts_with(is_average));
        let Some(row) = row.filter(|_| !is_between) else {
            if is_between {
                continue;
            }
            break;
        };
        let clock = line.get(..line.len() - row.len()).unwrap_or_default().trim();
        let pid = row.split_whitespace().nth(1).unwrap_or_default();
        if clock != last_clock && snapshot.has_readings() {
            seen.clear();
            input.add(std::mem::take(&mut snapshot));
        }
        last_clock = clock;
        if !seen.insert(pid) {
            break;
        }
        if !snapshot.has_readings() {
            let time = PrintedTime::leading(line).map(|(time, _)| time);
            snapshot.when = match series.next(time) {
                Some((when, _)) => when,
                None => SnapshotTime::Unknown,
            };
        }
        if !header.read_row(row, at, &mut snapshot, input.facts) {
            break;
        }
        block.lines = at + 1;
    }
    if snapshot.has_rows(Entity::Process) {
        input.add(snapshot);
    }
    (input.added > 0).then_some(block)
}

/// The header without its time, and how many words its time has.
fn header(line: &str) -> Option<(ProcessHeader, usize)> {
    if !line.contains("minflt/s") || line.len() > 300 {
        return None;
    }
    let words: Vec<&str> = line.trim_start_matches(['#', ' ']).split_whitespace().collect();
    let times = words.iter().position(|word| matches!(*word, "UID" | "USER" | "PID"))?;
    let names = words.get(times..)?.join(" ").replace("flt/s", "flt");
    (times <= 2).then_some((ProcessHeader::from_line(&names)?, times))
}

/// The line without its first words.
fn without_words(line: &str, words: usize) -> Option<&str> {
    (0..words).try_fold(line.trim_start(), |rest, _| {
        let (_, rest) = rest.split_once(' ')?;
        Some(rest.trim_start())
    })
}

/// `Average:`, `平均时间:`, `Durchschn.:`: no clock, as a clock begins with a digit.
const fn is_average(c: char) -> bool {
    !c.is_ascii_digit()
}

#[cfg(test)]
mod tests {
    use crate::testing::{paste, survives};
    use timeline::Entity;
    use timeline::signals::{PROC_RSS, PROC_SIZE};
    use units::{Bytes, Pages, Span};

    #[test]
    fn clocks_of_any_language_are_left_out() {
        for text in [
            "17时36分04秒   UID       PID  minflt/s  majflt/s     VSZ    RSS   %MEM  Command\n17时36分04秒     0       991      0.02      0.00 1970456 1719552  21.47  exchange\n",
            "11:36:04 PM   UID       PID  minflt/s  majflt/s     VSZ    RSS   %MEM  Command\n11:36:04 PM     0       991      0.02      0.00 1970456 1719552  21.47  exchange\n",
        ] {
            let timeline = paste(text).timeline;
            let process = timeline.entities(Entity::Process).next().unwrap();
            assert_eq!(process.label, "exchange", "{text}");
            assert_eq!(timeline.last_of(process, PROC_RSS), Some(Pages::new(1_719_552 / 4)));
            assert_eq!(timeline.last_of(process, PROC_SIZE), Some(Bytes::from_kib(1_970_456)));
            survives(text);
        }
    }

    #[test]
    fn each_interval_is_a_sample_and_the_average_is_none() {
        let head =
            "16:47:29      UID       PID  minflt/s  majflt/s     VSZ     RSS   %MEM  Command\n";
        let row = |clock: &str, rss: u32| {
            format!(
                "{clock}        0     735      4.95      0.00 1071492   {rss}   0.36  node (web 1)\n"
            )
        };
        let text = [
            head,
            &row("16:47:30", 4000),
            "\n",
            head,
            &row("16:47:31", 8000),
            "\n",
            &head.replace("16:47:29", "Average:"),
            &row("Average:", 6000),
        ]
        .concat();
        let timeline = paste(&text).timeline;
        assert_eq!(timeline.len(), 2);
        assert_eq!(timeline.duration(), Span::from_secs(1));
        let process = timeline.entities(Entity::Process).next().unwrap();
        assert_eq!(timeline.last_of(process, PROC_RSS), Some(Pages::new(2000)));
        survives(&text);
    }
}
