//! What each line of a text may be: which forms may begin there, whether it has a prompt or a time. These tests need no
//! other state, so those of a long text run ahead of the reader, on another core.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use crate::forms;
use crate::text::line_scan::{BlockStart, LineSearch};
use crate::text::prompt;
use crate::text::times::PrintedTime;

/// Lines that are tested together: some hundred KiB.
const WINDOW_LINES: usize = 4096;
/// A text of fewer lines is read before another thread has begun.
const AHEAD_LINES_MIN: usize = 4 * WINDOW_LINES;
/// Windows that are ready before the reader needs them.
const READY_MAX: usize = 4;

/// What a line may be, as bits: the forms by their index, and those below.
#[derive(Debug, Clone, Copy)]
pub(super) struct LineKinds(u64);

impl LineKinds {
    const PROMPT: u64 = 1 << 63;
    const TIME: u64 = 1 << 62;

    /// Whether a block of a form may begin here, below a command.
    pub(super) fn may_begin(self, form: usize, command: Option<&str>) -> bool {
        let is_shown = |command: &str| {
            let words = forms::ALL[form].begins.commands;
            words.iter().any(|word| command.contains(word))
        };
        self.0 & 1 << form != 0 || command.is_some_and(is_shown)
    }

    /// Whether a host or a command is in it.
    pub(super) fn is_prompt(self) -> bool {
        self.0 & Self::PROMPT != 0
    }

    /// Whether it is a time.
    pub(super) fn is_time(self) -> bool {
        self.0 & Self::TIME != 0
    }
}

const _: () = assert!(forms::ALL.len() < 62, "each form has a bit");

/// The tests of a text.
pub(super) struct LineTests<'t> {
    lines: TestedLines<'t>,
    /// The index of the first line of `window`.
    first: usize,
    window: Vec<u64>,
    ahead: Option<WindowsAhead<'t>>,
}

/// Windows from another thread, with the index of the first line of each.
struct WindowsAhead<'t> {
    ready: Receiver<(usize, Vec<u64>)>,
    /// The first line that the reader still needs.
    needed: &'t AtomicUsize,
}

impl LineTests<'_> {
    /// Reads lines, which are parts of `text` in its order.
    pub(super) fn run<R>(text: &str, lines: &[&str], read: impl FnOnce(LineTests<'_>) -> R) -> R {
        let lines = TestedLines { text, lines };
        let of_reader = |ahead| LineTests { lines, first: 0, window: Vec::new(), ahead };
        if lines.lines.len() < AHEAD_LINES_MIN {
            return read(of_reader(None));
        }
        let needed = AtomicUsize::new(0);
        thread::scope(|scope| {
            let (send, ready) = sync_channel(READY_MAX);
            let needed = &needed;
            // Where no thread can be started, the reader tests the lines.
            let started = thread::Builder::new()
                .spawn_scoped(scope, move || lines.test_ahead(needed, &send))
                .ok();
            read(of_reader(started.map(|_| WindowsAhead { ready, needed })))
        })
    }

    /// What a line may be.
    pub(super) fn at(&mut self, line: usize) -> LineKinds {
        debug_assert!(line >= self.first, "a reader goes on, never back");
        if line - self.first >= self.window.len() {
            self.first = line / WINDOW_LINES * WINDOW_LINES;
            self.window = self.window_at(self.first);
        }
        LineKinds(self.window[line - self.first])
    }

    fn window_at(&self, first: usize) -> Vec<u64> {
        let from_ahead = |ahead: &WindowsAhead<'_>| {
            ahead.needed.store(first, Ordering::Relaxed);
            let mut ready = ahead.ready.iter();
            ready.find(|(at, _)| *at == first).map(|(_, kinds)| kinds)
        };
        let ready = self.ahead.as_ref().and_then(from_ahead);
        ready.unwrap_or_else(|| self.lines.test(first))
    }
}

/// The lines of a text.
#[derive(Clone, Copy)]
struct TestedLines<'t> {
    text: &'t str,
    lines: &'t [&'t str],
}

impl TestedLines<'_> {
    /// Tests windows in order, but those that a block took whole, until the reader has gone.
    fn test_ahead(self, needed: &AtomicUsize, send: &SyncSender<(usize, Vec<u64>)>) {
        for first in (0..self.lines.len()).step_by(WINDOW_LINES) {
            let is_needed = first >= needed.load(Ordering::Relaxed);
            if is_needed && send.send((first, self.test(first))).is_err() {
                return;
            }
        }
    }

    /// Tests the window that begins at a line.
    fn test(self, first: usize) -> Vec<u64> {
        static SEARCH: LazyLock<Option<LineSearch>> =
            LazyLock::new(|| LineSearch::new(forms::ALL.iter().map(|form| &form.begins)));
        static OTHERS: LazyLock<Vec<usize>> = LazyLock::new(forms_without_words);
        let end = (first + WINDOW_LINES).min(self.lines.len());
        let Some(search) = SEARCH.as_ref() else {
            return vec![u64::MAX; end - first];
        };
        let below = OTHERS.iter().map(|form| forms::ALL[*form].begins.lines);
        let to = (end + below.max().unwrap_or(0)).min(self.lines.len());
        let mut kinds = search.forms_of(self.text, &self.lines[first..to]);
        for at in 0..end - first {
            let lines = &self.lines[first + at..];
            let few = &lines[..lines.len().min(BlockStart::OR_LINES_MAX)];
            for form in OTHERS.iter() {
                let begins = &forms::ALL[*form].begins;
                let mut words = kinds.iter().skip(at).take(begins.lines);
                let may_begin = words.any(|forms| forms & 1 << form != 0)
                    || begins.or.is_some_and(|or| or(few));
                kinds[at] |= u64::from(may_begin) << form;
            }
            let (host, command) = prompt::host_and_command(lines[0]);
            if host.is_some() || command.is_some() {
                kinds[at] |= LineKinds::PROMPT;
            }
            if PrintedTime::whole(lines[0]).is_some() {
                kinds[at] |= LineKinds::TIME;
            }
        }
        kinds.truncate(end - first);
        kinds
    }
}

/// The forms that may begin where none of their words is in the line.
fn forms_without_words() -> Vec<usize> {
    let is_without = |form: &usize| {
        let begins = &forms::ALL[*form].begins;
        begins.lines > 1 || begins.or.is_some()
    };
    (0..forms::ALL.len()).filter(is_without).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(text: &str, at: impl IntoIterator<Item = usize>) -> Vec<u64> {
        let lines: Vec<&str> = text.lines().collect();
        LineTests::run(text, &lines, |mut tests| {
            at.into_iter().map(|line| tests.at(line).0).collect()
        })
    }

    /// No test may read on to the end of its block.
    #[test]
    fn a_table_of_a_hundred_thousand_mappings_is_tested_in_linear_time() {
        let row = "00007f0000000000    132K rw---   [ anon ]\n";
        let text = row.repeat(100_000);
        let lines: Vec<&str> = text.lines().collect();
        let found = LineTests::run(&text, &lines, |mut tests| {
            (0..lines.len()).filter(|line| tests.at(*line).0 != 0).count()
        });
        // The last rows lack those below them.
        assert!(found >= lines.len() - 2, "{found}");
    }

    #[test]
    fn lines_of_a_long_text_are_tested_as_those_of_a_short_one() {
        let block = "$ free -m\n        total  used  free\nMem: 7 5 2\nSat Nov 21 23:58:47 UTC 2026\nprose\n\n";
        let text = block.repeat(AHEAD_LINES_MIN);
        let of_one = kinds(block, 0..6);
        assert_ne!(of_one[0] & LineKinds::PROMPT, 0);
        assert_ne!(of_one[3] & LineKinds::TIME, 0);
        assert_eq!(of_one[4], 0);
        let all = kinds(&text, 0..6 * AHEAD_LINES_MIN);
        // The last line of a text has none below it.
        let (last, before) = all.as_chunks::<6>().0.split_last().unwrap();
        assert!(before.iter().all(|found| *found == before[0]));
        assert_eq!(last[..], of_one);
        // As a reader of blocks that take whole windows.
        let some = [0, 3, WINDOW_LINES - 1, 9 * WINDOW_LINES, 20 * WINDOW_LINES + 7];
        let expected: Vec<u64> = some.iter().map(|at| all[*at]).collect();
        assert_eq!(kinds(&text, some), expected);
    }
}
