//! Searches logs of any length for kernel reports about memory, a block at a time.
//!
//! A **window** is cut around each signature of a report, from some lines before it to where lines no longer resemble a
//! report. Other lines are only counted. Memory is bounded by a block and a window, time by a few vectorised searches
//! of each block.

use std::io::{ErrorKind, Read};
use std::ops::ControlFlow;
use std::sync::LazyLock;

use memchr::memmem::Finder;
use probe::kernel_report::signatures::{self, CONTINUES, SIGNATURES};

use super::PlainText;
use super::kernel_words::WordSearch;

/// Bytes of a block: small enough to stay in the L2 cache while it is searched several times.
const BLOCK: usize = 256 << 10;
/// Bytes before a signature that belong to its window: a report may begin with an unknown line.
const BEFORE: usize = 4 << 10;
/// At most 4 MiB of a window, enough for a table of 30,000 tasks.
pub(crate) const WINDOW_MAX: usize = 4 << 20;
/// At most 16 MiB of all windows, as much as of a text that is read whole.
const BYTES_MAX: u64 = PlainText::BYTES_MAX as u64;
/// After this many signatures that were skipped, the rest is not searched: nothing of it would be read.
const SKIPPED_MAX: usize = 100_000;
/// A report has at most this many lines in a row that could be of something else.
const QUIET_LINES: usize = 256;

/// The result of a search.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Searched {
    /// Bytes searched.
    pub(crate) bytes: u64,
    /// Windows found.
    pub(crate) windows: usize,
    /// Signatures that were skipped because there were too many windows.
    pub(crate) skipped: usize,
}

/// Takes a window with the number of its first line, from 1. It ends the search if nothing more would be read.
pub(crate) type TakeWindow<'a> = &'a mut dyn FnMut(&[u8], usize) -> ControlFlow<()>;

/// Searches a log to its end, or until `found` has enough.
///
/// # Errors
/// Of the input. Windows before it were passed to `found`; `Searched` has how far the search came.
pub(crate) fn search(
    input: &mut dyn Read,
    found: TakeWindow<'_>,
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
        if search.has_enough || search.searched.skipped >= SKIPPED_MAX {
            break Ok(());
        }
        if filled == block.len() {
            // A line longer than the block is split: no report has such lines.
            let whole = memchr::memrchr(b'\n', &block).map_or(filled, |end| end + 1);
            let done = search.lines(&block[..whole]);
            block.copy_within(done..filled, 0);
            filled -= done;
        }
    };
    search.lines(&block[..filled]);
    search.close();
    (search.searched, end)
}

/// A part that several signatures have: a block is searched for a few parts, and not for each signature.
struct Anchor {
    finder: Finder<'static>,
    /// The signatures that have it, and how many bytes they begin before it.
    of: Vec<(&'static [u8], usize)>,
}

impl Anchor {
    fn new(part: &'static str) -> Self {
        let has = |signature: &'static str| Some((signature.as_bytes(), signature.find(part)?));
        Self { finder: Finder::new(part), of: SIGNATURES.into_iter().filter_map(has).collect() }
    }

    /// The places of its signatures.
    fn signatures<'a>(&'a self, text: &'a [u8]) -> impl Iterator<Item = usize> + 'a {
        let begins = move |at: usize| {
            self.of.iter().find_map(|(signature, before)| {
                let start = at.checked_sub(*before)?;
                text[start..].starts_with(signature).then_some(start)
            })
        };
        self.finder.find_iter(text).filter_map(begins)
    }
}

struct Search<'a> {
    anchors: Vec<Anchor>,
    /// Offsets of signatures in the current lines.
    places: Vec<usize>,
    /// Number of the first of these lines.
    line: usize,
    /// How many of these bytes were searched before; they are only context.
    old: usize,
    window: Option<LineWindow>,
    window_bytes: u64,
    found: TakeWindow<'a>,
    has_enough: bool,
    searched: Searched,
}

/// Lines of a report.
struct LineWindow {
    text: Vec<u8>,
    first_line: usize,
    quiet: usize,
}

impl<'a> Search<'a> {
    fn new(found: TakeWindow<'a>) -> Self {
        Self {
            anchors: signatures::ANCHORS.iter().map(|part| Anchor::new(part)).collect(),
            places: Vec::new(),
            line: 1,
            old: 0,
            window: None,
            window_bytes: 0,
            found,
            has_enough: false,
            searched: Searched::default(),
        }
    }

    /// Searches whole lines. Returns how many of their bytes are done with.
    fn lines(&mut self, text: &[u8]) -> usize {
        self.places.clear();
        for anchor in &self.anchors {
            let places = anchor.signatures(&text[self.old..]);
            self.places.extend(places.map(|place| place + self.old));
        }
        self.places.sort_unstable();
        let mut taken = self.extend(text, self.old);
        for i in 0..self.places.len() {
            let place = self.places[i];
            if place < taken {
                continue;
            }
            if self.has_enough {
                break;
            }
            if self.window_bytes >= BYTES_MAX {
                self.searched.skipped += 1;
                continue;
            }
            let from = line_start(text, place.saturating_sub(BEFORE).max(taken), place);
            self.window = Some(LineWindow {
                text: Vec::new(),
                first_line: self.line + count_lines(&text[..from]),
                quiet: 0,
            });
            taken = self.extend(text, from);
        }
        self.keep_context(text, taken)
    }

    /// Adds lines to the open window. Returns where it ended.
    fn extend(&mut self, text: &[u8], from: usize) -> usize {
        let Some(window) = &mut self.window else {
            return 0;
        };
        let mut at = from;
        while at < text.len() {
            let end = memchr::memchr(b'\n', &text[at..]).map_or(text.len(), |end| at + end + 1);
            if !window.push(&text[at..end]) {
                self.close();
                return at;
            }
            at = end;
        }
        at
    }

    fn close(&mut self) {
        if let Some(window) = self.window.take() {
            self.has_enough |= (self.found)(&window.text, window.first_line).is_break();
            self.window_bytes += window.text.len() as u64;
            self.searched.windows += 1;
        }
    }

    /// Keeps the last of these lines as context of the next.
    fn keep_context(&mut self, text: &[u8], taken: usize) -> usize {
        let from = text.len().saturating_sub(BEFORE).max(taken);
        let from = memchr::memchr(b'\n', &text[from..]).map_or(text.len(), |end| from + end + 1);
        self.line += count_lines(&text[..from]);
        self.old = text.len() - from;
        from
    }
}

impl LineWindow {
    /// Adds a line, unless the report ended some lines ago.
    fn push(&mut self, line: &[u8]) -> bool {
        self.quiet = if continues(line) { 0 } else { self.quiet + 1 };
        let fits = self.text.len() + line.len() <= WINDOW_MAX;
        let continues = fits && self.quiet <= QUIET_LINES;
        if continues {
            self.text.extend_from_slice(line);
        }
        continues
    }
}

/// Whether a line continues a report, whatever prefix a log added.
fn continues(line: &[u8]) -> bool {
    static WORDS: LazyLock<WordSearch> =
        LazyLock::new(|| WordSearch::new(&[&SIGNATURES[..], &CONTINUES].concat()));
    WORDS.is_in(line) || signatures::has_task(line)
}

/// The start of the first line at or after `from`, at most that of the line with `place`.
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
    use crate::paste::Paste;
    use crate::text::PlainText;

    fn windows(log: &[u8]) -> (Searched, Vec<(String, usize)>) {
        let mut found = Vec::new();
        let (searched, end) = search(&mut &log[..], &mut |window, line| {
            found.push((String::from_utf8_lossy(window).into_owned(), line));
            ControlFlow::Continue(())
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
    fn a_report_is_found_anywhere_with_its_line_number() {
        // The end of the block falls on many places of the report.
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

    /// All saved reports must be found in a long log as they are read from a short text.
    #[test]
    fn every_kernel_report_is_found_in_a_log_of_any_length() {
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
                found.read(&PlainText::from_bytes(window.as_bytes()), "", line);
            }
            let found = found.finish(timeline::SourceKind::Text).timeline;
            let mut whole = Paste::default();
            whole.read(&PlainText::from_bytes(text.as_bytes()), "", 1);
            let whole = whole.finish(timeline::SourceKind::Text).timeline;
            // A truncated report may take the stamp of the line after it.
            let without_stamp = |reported: &timeline::Reported| timeline::KernelReport {
                stamp: None,
                ..reported.report.clone()
            };
            let reports = |timeline: &timeline::Timeline| {
                let reports = timeline.all_reports().iter().map(without_stamp);
                reports.map(|r| format!("{r:?}")).collect::<Vec<_>>()
            };
            assert_eq!(found.len(), whole.len(), "{}", path.display());
            assert_eq!(reports(&found), reports(&whole), "{}", path.display());
        }
        assert!(logs >= 30, "{logs} logs");
    }

    #[test]
    fn a_line_in_the_middle_of_a_report_goes_on_with_it() {
        for (line, expected) in [
            ("kernel: [  812]     0   812   9142  77 0 java", true),
            ("[12.3] Node 0 DMA free:15360kB min:264kB", true),
            ("[12.3] usb 1-1: new device", false),
            ("sshd[812]: Accepted publickey for root", false),
        ] {
            assert_eq!(continues(line.as_bytes()), expected, "{line}");
        }
    }

    #[test]
    fn a_search_ends_where_nothing_more_would_be_read() {
        let log = [REPORT, &noise(9_000), REPORT, &noise(9_000)].concat();
        let mut windows = 0;
        let (searched, end) = search(&mut log.as_bytes(), &mut |_, _| {
            windows += 1;
            ControlFlow::Break(())
        });
        end.unwrap();
        assert_eq!(windows, 1);
        assert!(searched.bytes < log.len() as u64, "{}", searched.bytes);
    }

    #[test]
    fn reports_close_together_share_a_window() {
        let log = [&noise(5_000), REPORT, &noise(100), REPORT, &noise(9_000), REPORT].concat();
        let (searched, found) = windows(log.as_bytes());
        assert_eq!(searched.windows, 2);
        assert_eq!(found[0].0.matches("oom-killer").count(), 2);
    }

    #[test]
    fn windows_of_a_log_full_of_marks_are_bounded() {
        let line = format!("kernel: Mem-Info: {}\n", "x".repeat(1000));
        let (searched, found) = windows(line.repeat(100_000).as_bytes());
        assert!(found.iter().all(|(window, _)| window.len() <= WINDOW_MAX));
        let all: usize = found.iter().map(|(window, _)| window.len()).sum();
        assert!(all as u64 <= BYTES_MAX + WINDOW_MAX as u64);
        assert!(searched.skipped > 0);
    }

    #[test]
    fn endless_lines_are_searched() {
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
