//! The messages of a log, one after the other, without prefixes. Lines broken by a terminal or mail are joined.

use std::borrow::Cow;
use std::sync::LazyLock;

use probe::kernel_report::{LineExtent, ReportLine, is_line, signatures};
use timeline::kernel_report::LogStamp;
use units::WallClock;

use super::prefix::{self, LogMessage};
use crate::text::kernel_words::{self, WordSearch};

/// The text of a message, joined if it was broken.
#[derive(Debug)]
pub(super) struct MessageLine<'a> {
    text: Cow<'a, str>,
    extent: Option<LineExtent>,
}

impl AsRef<str> for MessageLine<'_> {
    fn as_ref(&self) -> &str {
        &self.text
    }
}

impl ReportLine for MessageLine<'_> {
    fn extent(&self) -> Option<LineExtent> {
        self.extent
    }
}

/// Reads the messages of a log.
#[derive(Debug)]
pub(super) struct LogMessages<'a> {
    lines: &'a [&'a str],
    at: usize,
    /// The end of each message, in lines.
    ends: Vec<usize>,
    wall: Option<WallClock>,
    stamp: Option<LogStamp>,
}

impl<'a> LogMessages<'a> {
    /// At most 4,096 bytes of a joined line.
    const BYTES_MAX: usize = 4096;
    /// At most 12 pieces of a line: that of a zone (600 characters) has nine in a mail of 72 columns.
    const PIECES_MAX: usize = 12;

    pub(super) fn new(lines: &'a [&'a str]) -> Self {
        Self { lines, at: 0, ends: Vec::new(), wall: None, stamp: None }
    }

    /// How many lines the first `messages` have.
    pub(super) fn lines_of(&self, messages: usize) -> usize {
        let last = messages.checked_sub(1).and_then(|last| self.ends.get(last));
        last.copied().unwrap_or(0)
    }

    /// The time of the first dated message.
    pub(super) fn wall(&self) -> Option<WallClock> {
        self.wall
    }

    /// The stamp of the first message, if it lacks the year and no message has a full date.
    pub(super) fn stamp(&self) -> Option<LogStamp> {
        self.stamp.clone().filter(|_| self.wall.is_none())
    }

    /// Joins a broken line with the next ones: those have no prefix, are no message themselves, and complete a message
    /// of a report. The longest such message is taken.
    fn joined(&mut self, message: LogMessage<'a>) -> MessageLine<'a> {
        let is_broken = may_be_broken(&message);
        let LogMessage { text, extent, is_prefixed, .. } = message;
        let unbroken = MessageLine { text, extent };
        if !is_broken {
            return unbroken;
        }
        let mut joined = unbroken.text.to_string();
        let mut whole = None;
        for (count, line) in self.lines[self.at..].iter().take(Self::PIECES_MAX).enumerate() {
            if line.is_empty() || joined.len() + line.len() > Self::BYTES_MAX {
                break;
            }
            // Where a message begins, the one before has ended.
            if kernel_words::starts(line.trim_start()).first() == Some(&0) {
                break;
            }
            let piece = prefix::message(line);
            let is_whole = piece.extent == Some(LineExtent::Whole);
            if (is_prefixed && piece.is_prefixed) || is_whole {
                break;
            }
            let Some(longer) = joins(&joined, line) else {
                joined.push(' ');
                joined.push_str(line.trim_start());
                continue;
            };
            joined = longer;
            whole = Some((count + 1, joined.clone()));
        }
        match whole {
            Some((count, whole)) => {
                self.at += count;
                MessageLine { text: whole.into(), extent: Some(LineExtent::Whole) }
            }
            None => unbroken,
        }
    }
}

/// Whether a line may be broken: messages of its kind are long, or it is incomplete. Fields after the title of a
/// cgroup are lines of their own.
fn may_be_broken(message: &LogMessage<'_>) -> bool {
    let line = &*message.text;
    let is_whole = message.extent == Some(LineExtent::Whole);
    let is_long = || signatures::LONG_LINES.iter().any(|signature| line.contains(signature));
    // After `adj=`, the last field, the line is complete.
    if is_whole && line.contains("oom-killer: ") && line.contains("adj=") {
        return false;
    }
    (!is_whole || is_long())
        && !line.starts_with("Memory cgroup stats")
        && (line.starts_with('[') || is_candidate(line))
}

/// Joins two pieces to a message: broken between words, or within a word.
fn joins(front: &str, back: &str) -> Option<String> {
    let back = back.trim_start();
    // Some mail programs begin the rest of a line with a plus; a list mark has a blank behind it.
    let back = back.strip_prefix('+').filter(|rest| !rest.starts_with(' ')).unwrap_or(back);
    let (apart, together) = (format!("{front} {back}"), format!("{front}{back}"));
    // No blank stands behind a bracket: a name begins there.
    let both = if front.ends_with('(') { [together, apart] } else { [apart, together] };
    both.into_iter().find(|line| is_line(line))
}

impl<'a> Iterator for LogMessages<'a> {
    type Item = MessageLine<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        let line = self.lines.get(self.at)?;
        let mut message = prefix::message(line);
        self.at += 1;
        self.wall = self.wall.or(message.wall);
        // If the report has no stamp, a message after it may have one.
        if self.ends.is_empty() {
            self.stamp = message.stamp.take();
        }
        let text = self.joined(message);
        self.ends.push(self.at);
        Some(text)
    }
}

/// Whether a line may have a line of a report that is recognised alone.
pub(super) fn may_have_message(line: &str) -> bool {
    static WORDS: LazyLock<WordSearch> =
        LazyLock::new(|| WordSearch::new(&[&signatures::BEGINS[..], &signatures::WITHIN].concat()));
    WORDS.is_in(line.as_bytes()) || signatures::has_task(line.as_bytes())
}

/// Whether a line has a word that a report can begin with.
fn is_candidate(line: &str) -> bool {
    // This runs for every line of a log.
    static WORDS: LazyLock<WordSearch> = LazyLock::new(|| WordSearch::new(&signatures::BEGINS));
    line.len() <= 1 << 20 && WORDS.is_in(line.as_bytes())
}
