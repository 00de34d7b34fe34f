//! `ps aux` and similar tables: resident memory of processes. Any columns (`ps -eo pid,rss,comm`), all rows or the
//! first ones; RSS and VSZ are KiB. RSS counts shared pages once per process, so its sum exceeds the memory in use.
//!
//! Rows may lack the heading ([`rows`]).
//!
//! `pmap` is recognised and skipped: `smaps` of the process has more.

mod rows;

use super::Form;
use timeline::Entity;

use super::processes::ProcessHeader;
use crate::block::{BlockReader, TextBlock};
use crate::builder::Snapshot;
use crate::text::line_scan::BlockStart;
use crate::text::prompt;

pub(super) const FORM: Form = Form {
    name: "ps",
    begins: BlockStart {
        or: Some(|lines| pmap(lines).is_some() || rows::begin(lines)),
        ..BlockStart::with(&[
            "RSS", "rss", "Rss", "RSZ", "rsz", "Rsz", "RES", " res ", " Res ", "PSS", "pss", "Pss",
            "SWAP", "swap", "Swap", "%CPU", "%cpu", "CPU%", "VSZ",
        ])
    },
    read,
};

fn read(input: &mut BlockReader<'_>) -> Option<TextBlock> {
    if let Some(block) = pmap(input.lines) {
        return Some(block);
    }
    let Some(header) = ProcessHeader::from_line(input.lines.first()?) else {
        return rows::read(input);
    };
    let mut snapshot = Snapshot::default();
    let mut block = TextBlock {
        what: "processes, as ps prints them".to_owned(),
        lines: 1,
        unit: header.unit_name(),
        ..TextBlock::default()
    };
    for line in &input.lines[1..] {
        if line.is_empty() || prompt::time(line).is_some() {
            break;
        }
        // Rows that somebody left out.
        if matches!(*line, "..." | "…" | "[...]") {
            block.lines += 1;
            continue;
        }
        if line.starts_with("-----") {
            // Below the table smem prints sums.
            block.lines += 2.min(input.lines.len() - block.lines);
            break;
        }
        if !header.read_row(line, block.lines, &mut snapshot, input.facts) {
            // One line may have been broken in two by the terminal.
            if block.not_understood > 0 || prompt::command(line).is_some() {
                break;
            }
            block.not_understood += 1;
        }
        block.lines += 1;
    }
    if !snapshot.has_rows(Entity::Process) {
        return None;
    }
    input.add(snapshot);
    Some(block)
}

/// `4242:   /usr/bin/java -jar x.jar`, then mappings: `00007f… 132K rw---   [ anon ]`; mappings alone where they were sorted.
fn pmap(lines: &[&str]) -> Option<TextBlock> {
    let (first, second) = (*lines.first()?, *lines.get(1)?);
    first.starts_with(|c: char| c.is_ascii_hexdigit()).then_some(())?;
    let is_pid = first
        .split_once(':')
        .is_some_and(|(pid, _)| !pid.is_empty() && pid.bytes().all(|b| b.is_ascii_digit()));
    let is_mapping = |line: &str| {
        let mut words = line.split_whitespace();
        words
            .next()
            .is_some_and(|word| word.len() >= 8 && word.bytes().all(|b| b.is_ascii_hexdigit()))
            && words.next().is_some_and(|word| word.starts_with(|c: char| c.is_ascii_digit()))
    };
    let is_head = second.starts_with("Address ");
    let has_mode = |line: &str| line.split_whitespace().any(is_mode);
    let is_headless = || {
        let few = lines.get(..3).unwrap_or_default();
        few.len() == 3 && few.iter().all(|line| is_mapping(line) && has_mode(line))
    };
    if !(is_pid && (is_head || is_mapping(second)) || is_headless()) {
        return None;
    }
    let continues = |line: &&&str| {
        is_mapping(line)
            || ["Address ", "-----", "total", "mapped:", " total"]
                .iter()
                .any(|start| line.starts_with(start))
    };
    let lines = 1 + lines[1..].iter().take_while(continues).count();
    Some(TextBlock {
        what: "pmap: mappings of one process, not used".to_owned(),
        lines,
        ..TextBlock::default()
    })
}

/// The access of a mapping: `rw-s-`.
fn is_mode(word: &str) -> bool {
    word.len() == 5 && word.bytes().zip(b"rwxsR").all(|(b, flag)| b == *flag || b == b'-')
}

#[cfg(test)]
mod tests {
    use crate::testing::paste;
    use timeline::signals::{PROC_RSS, PROC_SIZE};
    use timeline::{Entity, Timeline};
    use units::{Bytes, Pages};

    const AUX: &str = "\
USER         PID %CPU %MEM    VSZ   RSS TTY      STAT START   TIME COMMAND
root           1  0.0  0.1 167744 13092 ?        Ss   Nov11   0:14 /sbin/init splash
mysql       4242  9.1 71.0 9123456 8388608 ?     Ssl  Nov11 120:14 /usr/sbin/mysqld --datadir=/var/lib/mysql
root          33  0.0  0.0      0     0 ?        I<   Nov11   0:00 [kworker/0:1-events]
";

    fn resident(timeline: &Timeline, key: &str) -> Option<(String, u64)> {
        let series = timeline.entity(Entity::Process, key)?;
        let pages: Pages = timeline.last_of(series, PROC_RSS)?;
        Some((series.label.clone(), pages.get()))
    }

    #[test]
    fn columns_are_found_by_their_names() {
        let timeline = paste(AUX).timeline;
        assert_eq!(resident(&timeline, "4242@0"), Some(("mysqld".to_owned(), 2_097_152)));
        assert_eq!(resident(&timeline, "33@0"), Some(("kworker/0:1-events".to_owned(), 0)));
        let series = timeline.entity(Entity::Process, "1@0").unwrap();
        assert_eq!(timeline.last_of(series, PROC_SIZE), Some(Bytes::from_kib(167_744)));
        let text = "$ ps -eo pid,rss,comm --sort -rss | head\n    PID   RSS COMMAND\n   7 4096 Web Content\n";
        assert_eq!(resident(&paste(text).timeline, "7@0"), Some(("Web".to_owned(), 1024)));
        let text = " PID                  STARTED   RSS CMD\n   7 Sat Nov 21 23:58:47 2026  4096 java -jar x\n";
        assert_eq!(resident(&paste(text).timeline, "7@0"), Some(("java".to_owned(), 1024)));
        let text = "  RSS   PID\n 4096 7\n";
        assert_eq!(resident(&paste(text).timeline, "7@0"), Some(("7@0".to_owned(), 1024)));
    }

    #[test]
    fn the_heading_may_name_the_unit() {
        let text = "USER PID %CPU %MEM VSZ-MiB RSS-MiB TTY STAT START TIME COMMAND\n\
                    500 61839 957 14.8 196307 77185 ? Sl Dec03 52977:23 db2sysc 18\n";
        let timeline = paste(text).timeline;
        let pages = 77_185 * 256;
        assert_eq!(resident(&timeline, "61839@0"), Some(("db2sysc".to_owned(), pages)));
    }

    #[test]
    fn a_table_with_times_is_a_timeline() {
        let text = format!("2026-11-21 23:58:00\n{AUX}\n2026-11-21 23:59:00\n{AUX}");
        let timeline = paste(&text).timeline;
        assert_eq!(timeline.duration(), units::Span::from_secs(60));
    }

    #[test]
    fn bad_rows_are_counted_and_end_the_table() {
        let text = "PID RSS COMMAND\n1 4096 a\nx y z\n2 4096 b\nmore words here\nand here too\n";
        let opened = paste(text);
        assert_eq!(
            (opened.origin.inputs[0].last_line, opened.origin.inputs[0].not_understood),
            (4, 1)
        );
        assert!(resident(&opened.timeline, "2@0").is_some());
        assert!(paste("PID RSS COMMAND\nx y z\n").origin.inputs.is_empty());
        assert!(paste("PID RSS COMMAND\n-1 -5 x\n").origin.inputs.is_empty());
        let huge = paste("PID RSS COMMAND\n1 99999999999999999999 x\n");
        assert_eq!(resident(&huge.timeline, "1@0"), None);
    }

    #[test]
    fn mappings_are_skipped() {
        let text =
            "4242:   /usr/bin/java\n000055d0c8a00000    132K rw---   [ anon ]\n total  132K\n";
        let opened = paste(text);
        assert_eq!(opened.origin.inputs[0].last_line, 3);
        assert!(opened.timeline.is_empty());
    }

    #[test]
    fn any_cut_is_read_without_panic() {
        for cut in 0..AUX.len() {
            paste(&AUX[..cut]);
            paste(&AUX[cut..]);
        }
    }
}
