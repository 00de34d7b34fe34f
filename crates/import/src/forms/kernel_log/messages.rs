//! The messages of a log, one after the other: without prefixes, and whole where a terminal or a mail broke them.

use std::borrow::Cow;
use std::sync::LazyLock;

use memchr::memmem::Finder;
use probe::kernel_report::{is_line, marks};
use timeline::kernel_report::LogStamp;
use units::WallClock;

use super::prefix;

/// A log being read.
#[derive(Debug)]
pub(super) struct LogMessages<'a> {
    lines: &'a [&'a str],
    at: usize,
    /// Where each message ends, in lines.
    ends: Vec<usize>,
    wall: Option<WallClock>,
    stamp: Option<LogStamp>,
}

impl<'a> LogMessages<'a> {
    /// Lines longer than this are not joined with others.
    const MOST_BYTES: usize = 4096;
    /// A zone's line of 600 characters in a mail of 72 columns has nine.
    const MOST_PIECES: usize = 12;

    pub(super) fn of(lines: &'a [&'a str]) -> Self {
        Self {
            lines,
            at: 0,
            ends: Vec::new(),
            wall: None,
            stamp: None,
        }
    }

    /// How many lines the first messages have.
    pub(super) fn lines_of(&self, messages: usize) -> usize {
        let last = messages.checked_sub(1).and_then(|last| self.ends.get(last));
        last.copied().unwrap_or(0)
    }

    /// When the first dated message was written.
    pub(super) fn wall(&self) -> Option<WallClock> {
        self.wall
    }

    /// The stamp of the first message, where it lacks the year and no message has a whole date.
    pub(super) fn stamp(&self) -> Option<LogStamp> {
        self.stamp.clone().filter(|_| self.wall.is_none())
    }

    /// Joins the lines that follow with one that they go on from: lines without a prefix that say nothing by themselves,
    /// and make a line of a report together with it. The last such whole counts.
    fn whole(&mut self, text: Cow<'a, str>, is_prefixed: bool) -> Cow<'a, str> {
        if !may_go_on(&text) {
            return text;
        }
        let mut joined = text.to_string();
        let mut whole = None;
        for (count, line) in self.lines[self.at..]
            .iter()
            .take(Self::MOST_PIECES)
            .enumerate()
        {
            if line.is_empty() || joined.len() + line.len() > Self::MOST_BYTES {
                break;
            }
            let piece = prefix::message(line);
            if (is_prefixed && piece.is_prefixed) || is_line(&piece.text) {
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
                whole.into()
            }
            None => text,
        }
    }
}

/// Whether more of a line could follow: it is long of nature, or says nothing without its end. The fields that follow on
/// the title of a group are lines of their own.
fn may_go_on(line: &str) -> bool {
    let is_long = || marks::LONG.iter().any(|mark| line.contains(mark));
    let is_of_report = line.starts_with('[') || is_candidate(line);
    // The last field of its line.
    if line.contains("oom-killer: ") && line.contains("adj=") && is_line(line) {
        return false;
    }
    !line.starts_with("Memory cgroup stats") && is_of_report && (is_long() || !is_line(line))
}

/// Two pieces as one line of a report: broken between words, or within one.
fn joins(front: &str, back: &str) -> Option<String> {
    let back = back.trim_start();
    let apart = format!("{front} {back}");
    let together = || format!("{front}{back}");
    Some(apart)
        .filter(|line| is_line(line))
        .or_else(|| Some(together()).filter(|line| is_line(line)))
}

impl<'a> Iterator for LogMessages<'a> {
    type Item = Cow<'a, str>;

    fn next(&mut self) -> Option<Self::Item> {
        let line = self.lines.get(self.at)?;
        let message = prefix::message(line);
        self.at += 1;
        self.wall = self.wall.or(message.wall);
        // What stands behind the report may be stamped where it is not.
        if self.ends.is_empty() {
            self.stamp = message.stamp;
        }
        let text = self.whole(message.text, message.is_prefixed);
        self.ends.push(self.at);
        Some(text)
    }
}

/// Whether a line could be one of a report.
pub(super) fn is_candidate(line: &str) -> bool {
    // Every line of a log is asked: searchers are made once.
    static FINDERS: LazyLock<Vec<Finder<'static>>> = LazyLock::new(|| {
        marks::BEGINS
            .iter()
            .map(|mark| Finder::new(*mark))
            .collect()
    });
    let has = |finder: &Finder<'_>| finder.find(line.as_bytes()).is_some();
    line.len() <= 1 << 20 && FINDERS.iter().any(has)
}
