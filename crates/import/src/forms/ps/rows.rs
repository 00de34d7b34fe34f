//! Rows of `ps aux` without their heading, as `ps aux | grep NAME` leaves them, each alone or behind its time:
//! `root  5494  0.0 12.8 1137192 1050264 ?  Sl  May06 107:16 /usr/local/bin/vmtoolsd`.

use std::sync::LazyLock;

use crate::block::{BlockReader, TextBlock};
use crate::builder::Snapshot;
use crate::forms::processes::ProcessHeader;
use crate::text::times::{PrintedTime, SampleTimes};

/// The heading that `grep` took away.
const HEADING: &str = "USER PID %CPU %MEM VSZ RSS TTY STAT START TIME COMMAND";

/// Whether a line is such a row.
pub(super) fn is_row(line: &str) -> bool {
    // This runs for every line of a text.
    let mut words = line.split_ascii_whitespace().skip(1);
    let mut next = || words.next().unwrap_or_default();
    let is_number = |word: &str| !word.is_empty() && word.bytes().all(|b| b.is_ascii_digit());
    let is_share = |word: &str| {
        word.split_once('.')
            .is_some_and(|(whole, part)| is_number(whole) && part.len() == 1 && is_number(part))
            || is_number(word)
    };
    let is_terminal = |word: &str| {
        word == "?" || ["pts/", "tty", "console"].iter().any(|start| word.starts_with(start))
    };
    let is_state = |word: &str| {
        word.starts_with(|c| "RSDTZIWX".contains(c))
            && word.len() <= 6
            && !word.contains(|c: char| c.is_ascii_digit())
    };
    let is_time = |word: &str| {
        word.split_once(':')
            .is_some_and(|(minutes, seconds)| is_number(minutes) && is_number(seconds))
    };
    is_number(next())
        && is_share(next())
        && is_share(next())
        && is_number(next())
        && is_number(next())
        && is_terminal(next())
        && is_state(next())
        && !next().is_empty()
        && is_time(next())
        && !next().is_empty()
}

/// The row in a line, and the time before it.
fn row(line: &str) -> Option<(Option<PrintedTime>, &str)> {
    if !has_two_shares(line.as_bytes()) {
        return None;
    }
    if is_row(line) {
        return Some((None, line));
    }
    let (time, rest) = PrintedTime::leading(line)?;
    is_row(rest).then_some((Some(time), rest))
}

/// Whether a line has two numbers with one decimal, as the shares of CPU time and RAM are: cheaper than to parse it.
fn has_two_shares(line: &[u8]) -> bool {
    let is_share = |at: &usize| {
        let around = line.get(at.saturating_sub(1)..at + 3);
        matches!(around, Some([b'0'..=b'9', b'.', b'0'..=b'9', b' ']))
    };
    memchr::memchr_iter(b'.', line).filter(is_share).nth(1).is_some()
}

/// Whether rows begin here.
pub(super) fn begin(lines: &[&str]) -> bool {
    lines.first().is_some_and(|line| row(line).is_some())
}

/// Reads the rows: one snapshot, or one for each time.
pub(super) fn read(input: &mut BlockReader<'_>) -> Option<TextBlock> {
    static HEADER: LazyLock<Option<ProcessHeader>> =
        LazyLock::new(|| ProcessHeader::from_line(HEADING));
    let header = HEADER.as_ref()?;
    let mut times = SampleTimes::new(None);
    let mut snapshots: Vec<(Option<PrintedTime>, Snapshot)> = Vec::new();
    let mut lines = 0;
    for line in input.lines {
        let Some((time, text)) = row(line) else {
            break;
        };
        if snapshots.last().is_none_or(|(last, _)| *last != time) {
            let Some((when, _)) = times.next(time) else {
                break;
            };
            let snapshot = Snapshot { when, ..Snapshot::default() };
            snapshots.push((time, snapshot));
        }
        let (_, snapshot) = snapshots.last_mut()?;
        if !header.read_row(text, lines, snapshot, input.facts) {
            break;
        }
        lines += 1;
    }
    let count = snapshots.len();
    for (_, snapshot) in snapshots.into_iter().filter(|(_, snapshot)| snapshot.has_readings()) {
        input.add(snapshot);
    }
    (lines > 0 && input.added > 0).then(|| TextBlock {
        what: match count {
            1 => "processes, rows of ps aux without the heading".to_owned(),
            count => format!("processes, rows of ps aux at {count} times"),
        },
        lines,
        unit: "KiB",
        ..TextBlock::default()
    })
}

#[cfg(test)]
mod tests {
    use super::is_row;
    use crate::testing::{paste, survives};
    use timeline::Entity;
    use timeline::signals::PROC_RSS;
    use units::{Pages, Span};

    const ROW: &str =
        "root  5494  0.0 12.8 1137192 1048576 ?  Sl  May06 107:16 /usr/local/bin/vmtoolsd";

    #[test]
    fn a_row_is_read_without_its_heading() {
        let timeline = paste(&format!("It has grown:\n{ROW}\n")).timeline;
        let process = timeline.entity(Entity::Process, "5494@0").unwrap();
        assert_eq!(process.label, "vmtoolsd");
        assert_eq!(timeline.last_of(process, PROC_RSS), Some(Pages::new(262_144)));
    }

    #[test]
    fn rows_behind_their_times_are_a_course() {
        let text =
            format!("Thu Jul 30 15:58:53 UTC 2026 {ROW}\nThu Jul 30 16:13:53 UTC 2026 {ROW}\n");
        let timeline = paste(&text).timeline;
        assert_eq!((timeline.len(), timeline.duration()), (2, Span::from_mins(15)));
        survives(&text);
    }

    #[test]
    fn other_lines_are_no_rows() {
        for line in [
            "root 5494 seconds ago the host went down, and 12 of 14 came back",
            "1 0 0 896784 97772 2821868 0 0 65 106 0 0 12 5 83 0 0",
            "[ 4711] 0 4711 1 2 3 4 5 6 0 name",
            "root 5494 0.0 12.8 1137192",
            "",
        ] {
            assert!(!is_row(line), "{line}");
        }
    }
}
