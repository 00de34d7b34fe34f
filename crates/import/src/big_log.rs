//! Logs that are too long to be kept: searched for what the kernel says of memory, a block at a time.
//!
//! Around each mark of a report a **window** is cut, from some lines before the mark to where the lines stop to look like
//! a report. Everything else is only counted for line numbers. Memory is bounded by a block and a window, whatever the
//! log holds; time by a few vectorised searches over each block.

use std::io::{ErrorKind, Read};

use memchr::memmem::Finder;
use probe::kernel_report::marks::{MARKS, continues};

/// What is read at once: it stays in a core's own cache while it is searched several times.
const BLOCK: usize = 256 << 10;
/// Bytes before a mark that belong to its window: a report whose first line is not known begins there.
const BEFORE: usize = 4 << 10;
/// A window's bound: the table of 30,000 tasks.
const LONGEST_WINDOW: usize = 4 << 20;
/// All windows' bound.
const MOST_BYTES: u64 = 64 << 20;
/// A report has no more lines in a row than these that nothing but a report could have.
const QUIET_LINES: usize = 256;

/// What came of a search.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Searched {
    /// Bytes looked at.
    pub(crate) bytes: u64,
    /// Windows handed on.
    pub(crate) windows: usize,
    /// Marks that were passed over, as there were too many windows.
    pub(crate) passed_over: usize,
}

/// Searches a log to its end; `found` gets each window with the number of its first line, from 1.
///
/// # Errors
/// The input's; windows before it were handed on, and `Searched` says how far it came.
pub(crate) fn search(
    input: &mut dyn Read,
    found: &mut dyn FnMut(&[u8], usize),
) -> (Searched, std::io::Result<()>) {
    let mut search = Search::new(found);
    let mut block = vec![0; BLOCK];
    let mut filled = 0;
    let end = loop {
        match input.read(&mut block[filled..]) {
            Ok(0) => break Ok(()),
            Ok(read) => {
                filled += read;
                search.searched.bytes += read as u64;
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => break Err(error),
        }
        if filled == block.len() {
            // A line that fills the block is cut: no report has such lines.
            let whole = memchr::memrchr(b'\n', &block).map_or(filled, |end| end + 1);
            let kept = search.lines(&block[..whole]);
            block.copy_within(kept..filled, 0);
            filled -= kept;
        }
    };
    search.lines(&block[..filled]);
    search.close();
    (search.searched, end)
}

struct Search<'a> {
    marks: [Finder<'static>; MARKS.len()],
    /// Places of marks in the lines at hand.
    places: Vec<usize>,
    /// Number of the first of the lines at hand.
    line: usize,
    /// How many of the bytes at hand were searched before: they may only stand before a mark.
    old: usize,
    window: Option<Window>,
    handed_on: u64,
    found: &'a mut dyn FnMut(&[u8], usize),
    searched: Searched,
}

/// A report in the reading.
struct Window {
    text: Vec<u8>,
    first_line: usize,
    quiet: usize,
}

impl<'a> Search<'a> {
    fn new(found: &'a mut dyn FnMut(&[u8], usize)) -> Self {
        Self {
            marks: MARKS.map(Finder::new),
            places: Vec::new(),
            line: 1,
            old: 0,
            window: None,
            handed_on: 0,
            found,
            searched: Searched::default(),
        }
    }

    /// Looks at whole lines. Gives back how many of their bytes need not come again.
    fn lines(&mut self, text: &[u8]) -> usize {
        self.places.clear();
        for mark in &self.marks {
            let places = mark.find_iter(&text[self.old..]);
            self.places.extend(places.map(|place| place + self.old));
        }
        self.places.sort_unstable();
        let mut taken = self.go_on(text, self.old);
        for i in 0..self.places.len() {
            let place = self.places[i];
            if place < taken {
                continue;
            }
            if self.handed_on >= MOST_BYTES {
                self.searched.passed_over += 1;
                continue;
            }
            let from = line_start(text, place.saturating_sub(BEFORE).max(taken), place);
            self.window = Some(Window {
                text: Vec::new(),
                first_line: self.line + count_lines(&text[..from]),
                quiet: 0,
            });
            taken = self.go_on(text, from);
        }
        self.keep(text, taken)
    }

    /// Adds lines to the open window; gives back where it ended.
    fn go_on(&mut self, text: &[u8], from: usize) -> usize {
        let Some(window) = &mut self.window else {
            return 0;
        };
        let mut at = from;
        while at < text.len() {
            let end = memchr::memchr(b'\n', &text[at..]).map_or(text.len(), |end| at + end + 1);
            if !window.take(&text[at..end]) {
                self.close();
                return at;
            }
            at = end;
        }
        at
    }

    fn close(&mut self) {
        if let Some(window) = self.window.take() {
            (self.found)(&window.text, window.first_line);
            self.handed_on += window.text.len() as u64;
            self.searched.windows += 1;
        }
    }

    /// Prepares for the next lines, before which the last of these stand again.
    fn keep(&mut self, text: &[u8], taken: usize) -> usize {
        let from = text.len().saturating_sub(BEFORE).max(taken);
        let from = memchr::memchr(b'\n', &text[from..]).map_or(text.len(), |end| from + end + 1);
        self.line += count_lines(&text[..from]);
        self.old = text.len() - from;
        from
    }
}

impl Window {
    /// Takes a line, unless the report ended some lines ago.
    fn take(&mut self, line: &[u8]) -> bool {
        self.quiet = if continues(line) { 0 } else { self.quiet + 1 };
        let fits = self.text.len() + line.len() <= LONGEST_WINDOW;
        let goes_on = fits && self.quiet <= QUIET_LINES;
        if goes_on {
            self.text.extend_from_slice(line);
        }
        goes_on
    }
}

/// The start of the first line that begins at `from` or later, at most that of the line with `place` in it.
fn line_start(text: &[u8], from: usize, place: usize) -> usize {
    if from == 0 || text[from - 1] == b'\n' {
        return from;
    }
    let next = memchr::memchr(b'\n', &text[from..place]).map(|end| from + end + 1);
    next.unwrap_or(from)
}

fn count_lines(text: &[u8]) -> usize {
    memchr::memchr_iter(b'\n', text).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SourceKind;
    use crate::paste::Paste;
    use crate::text::Text;

    fn windows(log: &[u8]) -> (Searched, Vec<(String, usize)>) {
        let mut found = Vec::new();
        let (searched, end) = search(&mut &log[..], &mut |window, line| {
            found.push((String::from_utf8_lossy(window).into_owned(), line));
        });
        end.unwrap();
        (searched, found)
    }

    fn noise(lines: usize) -> String {
        let line = |i| format!("Nov 21 23:58:47 web sshd[{i}]: Accepted publickey for root\n");
        (0..lines).map(line).collect()
    }

    const REPORT: &str = "Nov 21 23:58:48 web kernel: java invoked oom-killer: gfp_mask=0x0\n\
        Nov 21 23:58:48 web kernel: [  812]     0   812   9142  77 0 java\n";

    #[test]
    fn a_report_is_found_wherever_it_lies_and_its_line_is_told() {
        // Steps of a prime: the report crosses the block's end at many places.
        for before in (1..9_000).step_by(497) {
            let log = format!("{}{REPORT}{}", noise(before), noise(3_000));
            let (searched, found) = windows(log.as_bytes());
            assert_eq!(searched.bytes, log.len() as u64);
            let [(window, first_line)] = found.as_slice() else {
                panic!("{before}: {} windows", found.len());
            };
            assert!(window.contains(REPORT), "{before}");
            let above = window.split("java invoked").next().unwrap().lines().count() - 1;
            assert_eq!(first_line + above, before + 1, "{before}");
            assert!(window.lines().count() < 400, "{before}");
        }
    }

    /// The real reports, each of which must be found as it is read where it is short.
    #[test]
    fn whatever_is_read_as_a_report_is_found_in_a_log_of_any_length() {
        let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/../probe/tests/kernel_reports");
        let mut logs = 0;
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_none_or(|e| e != "log") {
                continue;
            }
            logs += 1;
            let text = std::fs::read_to_string(&path).unwrap();
            let log = format!("{}{text}{}", noise(4_000), noise(4_000));
            let mut found = Paste::default();
            for (window, line) in windows(log.as_bytes()).1 {
                found.read(&Text::of(window.as_bytes()), "", line);
            }
            let found = found.finish(SourceKind::Text).timeline;
            let mut whole = Paste::default();
            whole.read(&Text::of(text.as_bytes()), "", 1);
            let whole = whole.finish(SourceKind::Text).timeline;
            // The lines around it have a stamp, which a report that is cut off at its end may take for its own.
            let said = |reported: &timeline::Reported| timeline::KernelReport {
                stamp: None,
                ..reported.report.clone()
            };
            let reports = |timeline: &timeline::Timeline| {
                let reports = timeline.all_reports().iter().map(said);
                reports.map(|r| format!("{r:?}")).collect::<Vec<_>>()
            };
            assert_eq!(found.len(), whole.len(), "{}", path.display());
            assert_eq!(reports(&found), reports(&whole), "{}", path.display());
        }
        assert!(logs >= 30, "{logs} logs");
    }

    #[test]
    fn reports_far_apart_have_windows_of_their_own_and_near_ones_share_one() {
        let log = [
            &noise(5_000),
            REPORT,
            &noise(100),
            REPORT,
            &noise(9_000),
            REPORT,
        ]
        .concat();
        let (searched, found) = windows(log.as_bytes());
        assert_eq!(searched.windows, 2);
        assert_eq!(found[0].0.matches("oom-killer").count(), 2);
    }

    #[test]
    fn a_log_of_nothing_but_marks_is_bounded() {
        let line = format!("kernel: Mem-Info: {}\n", "x".repeat(1000));
        let (searched, found) = windows(line.repeat(100_000).as_bytes());
        assert!(
            found
                .iter()
                .all(|(window, _)| window.len() <= LONGEST_WINDOW)
        );
        let all: usize = found.iter().map(|(window, _)| window.len()).sum();
        assert!(all as u64 <= MOST_BYTES + LONGEST_WINDOW as u64);
        assert!(searched.passed_over > 0);
    }

    #[test]
    fn lines_without_end_are_searched_too() {
        let mut log = vec![b'x'; 3 * BLOCK];
        log.extend_from_slice(format!(" oom-kill\n{REPORT}").as_bytes());
        let (_, found) = windows(&log);
        assert_eq!(found.len(), 1);
        assert!(found[0].0.ends_with(REPORT));
        assert_eq!(found[0].1, 1);
        assert_eq!(windows(b"").1, []);
        assert_eq!(windows(&[b'\n'; BLOCK * 2]).1, []);
    }
}
