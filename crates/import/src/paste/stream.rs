//! Text of any length: read whole while it fits in memory, searched for kernel reports otherwise.

use std::collections::{BTreeSet, HashMap};
use std::hash::{BuildHasher as _, RandomState};
use std::io::Read;
use std::ops::ControlFlow;

use units::Bytes;

use super::Paste;
use crate::decompress::{Packing, Started, damage};
use crate::forms::unknown_layout;
use crate::text::PlainText;
use crate::text::log_search;

impl Paste {
    /// Reads a text. One that is too long to keep is searched for kernel reports; then its length is returned.
    pub(crate) fn read_stream(
        &mut self,
        file: &str,
        packing: Packing,
        started: Started<'_>,
    ) -> Option<u64> {
        let mut input = started.input;
        let mut bytes = Vec::new();
        let end = (&mut input).take(PlainText::BYTES_MAX as u64 + 1).read_to_end(&mut bytes);
        if bytes.len() <= PlainText::BYTES_MAX {
            if let Err(error) = end {
                self.problem(cut_off(file, packing, &error));
            }
            let text = PlainText::from_bytes(&bytes);
            self.read(&text, file, 1);
            self.name_unknown_layout(&text, file);
            return None;
        }
        self.problem(format!(
            "{}longer than {}: searched for kernel reports only",
            prefix(file),
            Bytes::new(PlainText::BYTES_MAX as u64)
        ));
        Some(self.search(file, packing, &mut bytes.as_slice().chain(input)))
    }

    /// Lists the figures of memory of a text that is read alone, if it has nothing else.
    fn name_unknown_layout(&mut self, text: &PlainText, file: &str) {
        if !(self.is_empty() && file.is_empty()) {
            return;
        }
        if let Some((first, block)) = unknown_layout::read(&text.lines()) {
            let number = |line: usize| 1 + text.source_line(first + line);
            self.note(file, &number, unknown_layout::NAME, BTreeSet::new(), block);
        }
    }

    /// Searches a log of any length for kernel reports. Returns its length.
    pub(crate) fn search(&mut self, file: &str, packing: Packing, input: &mut dyn Read) -> u64 {
        let (searched, end) = log_search::search(input, &mut |window, first_line| {
            if self.builder.is_past_counting() {
                return ControlFlow::Break(());
            }
            if self.windows.is_of_another_file(window, file) {
                return ControlFlow::Continue(());
            }
            let was_full = self.windows.is_full();
            self.windows.bytes += window.len() as u64;
            if self.windows.is_full() {
                if !was_full {
                    self.problem(format!(
                        "only {} of possible kernel reports are read; those from {}line \
                         {first_line} on are skipped",
                        Bytes::new(WindowsRead::BYTES_MAX),
                        prefix(file)
                    ));
                }
                return ControlFlow::Break(());
            }
            self.read(&PlainText::from_bytes(window), file, first_line);
            ControlFlow::Continue(())
        });
        if searched.skipped > 0 {
            self.problem(format!(
                "{}only the first {} possible kernel reports are read; at least {} more are \
                 skipped",
                prefix(file),
                searched.windows,
                searched.skipped
            ));
        }
        if let Err(error) = end {
            self.problem(cut_off(file, packing, &error));
        }
        searched.bytes
    }
}

/// Windows of logs that were read, by a hash of their text, and the file of each. Bundles have copies of logs: the same lines of
/// another file are the same events.
#[derive(Debug, Default)]
pub(super) struct WindowsRead {
    files: HashMap<u64, u64>,
    bytes: u64,
    hash: RandomState,
}

impl WindowsRead {
    /// At most so many are kept.
    const WINDOWS_MAX: usize = 65_536;
    /// At most 32 MiB of windows in all logs of a source: more than 1,000 whole reports, and a few seconds.
    const BYTES_MAX: u64 = 32 << 20;

    /// Whether a window was read from another file; if not, it counts as read now.
    fn is_of_another_file(&mut self, window: &[u8], file: &str) -> bool {
        let (window, file) = (self.hash.hash_one(window), self.hash.hash_one(file));
        if let Some(known) = self.files.get(&window) {
            return *known != file;
        }
        if self.files.len() < Self::WINDOWS_MAX {
            self.files.insert(window, file);
        }
        false
    }

    /// Whether no further window is read.
    fn is_full(&self) -> bool {
        self.bytes > Self::BYTES_MAX
    }
}

fn cut_off(file: &str, packing: Packing, error: &std::io::Error) -> String {
    let what = match packing {
        Packing::None => format!("reading ended early ({error})"),
        packed => damage(packed, error),
    };
    format!("{}{what}; the text before it is used", prefix(file))
}

/// `file: `, or nothing without a file.
pub(super) fn prefix(file: &str) -> String {
    if file.is_empty() { String::new() } else { format!("{file}: ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_lines_of_another_file_are_read_once() {
        let mut windows = WindowsRead::default();
        assert!(!windows.is_of_another_file(b"a killed b", "messages"));
        assert!(!windows.is_of_another_file(b"a killed b", "messages"));
        assert!(windows.is_of_another_file(b"a killed b", "messages.1"));
        assert!(!windows.is_of_another_file(b"a killed c", "messages.1"));
    }

    #[test]
    fn all_logs_of_a_source_share_a_bound() {
        let mut paste = Paste::default();
        let line = "kernel: Out of memory: Killed process 7 (java) total-vm:1kB, anon-rss:1kB\n";
        // Room for one of them.
        paste.windows.bytes = WindowsRead::BYTES_MAX - line.len() as u64 - 2;
        for log in ["a", "b", "c"] {
            let text = format!("{log} {line}");
            paste.search(log, Packing::None, &mut text.as_bytes());
        }
        let source = paste.finish(timeline::SourceKind::Bundle);
        assert_eq!(source.timeline.all_reports().len(), 1);
        let [problem] = source.problems.as_slice() else {
            panic!("{:?}", source.problems);
        };
        assert!(problem.contains("those from b: line 1 on are skipped"));
    }
}
