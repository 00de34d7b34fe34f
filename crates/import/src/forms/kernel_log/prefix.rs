//! Prefixes of kernel messages in logs: stamps, levels, hosts, names of containers. What else may stand around a message
//! is known to [`embedded`].

use std::borrow::Cow;

use probe::kernel_report::LineExtent;
use probe::text::SplitText as _;
use timeline::kernel_report::LogStamp;
use units::WallClock;

use super::embedded::{self, MessageText};
use crate::text::times::PrintedTime;

/// A message without its prefix.
#[derive(Debug, Clone)]
pub(in crate::forms) struct LogMessage<'a> {
    pub(super) text: Cow<'a, str>,
    /// How much of a line of a report its text is.
    pub(super) extent: Option<LineExtent>,
    /// Whether it has a prefix: the second half of a broken line has none.
    pub(super) is_prefixed: bool,
    /// Its time, if the date has a year.
    pub(in crate::forms) wall: Option<WallClock>,
    /// Its time, if the date lacks the year.
    pub(super) stamp: Option<LogStamp>,
}

/// At most 8 parts of a prefix: enough for level, date, host, name, stamp, caller.
const PARTS_MAX: usize = 8;
/// At most 160 characters of a prefix up to `kernel: `.
const PREFIX_MAX: usize = 160;

/// Removes the prefix of a line, and what else stands around the message.
pub(in crate::forms) fn message(line: &str) -> LogMessage<'_> {
    let (text, time) = stripped(line);
    let MessageText { text, time: inner, is_inner, extent } = embedded::message(line, text);
    let time = time.or(inner);
    LogMessage {
        is_prefixed: is_inner || text.len() < line.trim_start().len(),
        extent,
        text,
        wall: time.and_then(PrintedTime::wall),
        stamp: time.and_then(|time| stamp(line, time)),
    }
}

/// Whether a log wrote a line: a time of day, seconds since boot, the name of the kernel or that of a field stands beside
/// the message. A sentence or a source file that quotes a message has none of them.
pub(super) fn is_logged(line: &str) -> bool {
    let bytes = line.as_bytes();
    let is_digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
    let is_between_digits = |at: usize| at > 0 && is_digit(at - 1) && is_digit(at + 1);
    let has_time = memchr::memchr2_iter(b':', b'.', bytes).any(|at| {
        is_between_digits(at) && is_digit(at + 2) && (bytes[at] == b':' || is_digit(at + 3))
    });
    has_time || ["kern", "\": \"", "\":\"", "MESSAGE="].iter().any(|word| line.contains(word))
}

/// The stamp of a line, as printed.
fn stamp(line: &str, time: PrintedTime) -> Option<LogStamp> {
    let of_year = time.since_new_year()?;
    let line = line.trim_start();
    let (_, rest) = PrintedTime::leading(line).filter(|(leading, _)| *leading == time)?;
    let text = line.strip_suffix(rest)?.trim_end();
    Some(LogStamp { text: text.to_owned(), of_year })
}

/// The message and its time, preferably one with a year.
pub(super) fn stripped(line: &str) -> (&str, Option<PrintedTime>) {
    let mut text = line.trim_start();
    let mut known: Option<PrintedTime> = None;
    for _ in 0..PARTS_MAX {
        let Some((rest, time)) = part(text, text.len() < line.trim_start().len()) else {
            break;
        };
        let is_better = known.is_none_or(|known| known.wall().is_none());
        known =
            time.filter(|time| is_better && (known.is_none() || time.wall().is_some())).or(known);
        text = rest.trim_start();
    }
    (text, known)
}

/// Removes the first part of a prefix. Returns its time, if it is one.
fn part(text: &str, is_inner: bool) -> Option<(&str, Option<PrintedTime>)> {
    let plain = |rest| Some((rest, None));
    if let Some((time, rest)) = rfc_5424(text) {
        return Some((rest, PrintedTime::leading(time).map(|(time, _)| time)));
    }
    if let Some(rest) = level(text) {
        return plain(rest);
    }
    if let Some((before, rest)) = named(text) {
        return Some((rest, PrintedTime::leading(before).map(|(time, _)| time)));
    }
    kmsg(text)
        .or_else(|| facility(text))
        .or_else(|| container(text))
        .and_then(plain)
        .or_else(|| bracket(text, is_inner))
        .or_else(|| dated(text))
}

/// Splits `Nov 21 23:58:47 host kernel: message` at `kernel: `.
fn named(text: &str) -> Option<(&str, &str)> {
    let (before, rest) = text.around("kernel: ")?;
    let is_word = before.is_empty() || before.ends_with([' ', '.', ']', '>']);
    // A longer text is a sentence of the message itself.
    let is_prefix = before.len() < PREFIX_MAX && before.split_whitespace().count() <= 8;
    (is_word && is_prefix).then_some((before, rest))
}

/// `<6>1 2026-11-21T23:58:47Z host kernel - - - `, with data in brackets instead of the last dash: the time, and the rest.
fn rfc_5424(text: &str) -> Option<(&str, &str)> {
    let (level, rest) = text.strip_prefix('<')?.around(">1 ")?;
    level.bytes().all(|b| b.is_ascii_digit()).then_some(())?;
    // Time, host, program, process, kind.
    let mut words = rest.splitn(6, ' ');
    let time = words.next()?;
    let data = words.nth(4)?;
    let rest = match data.strip_prefix('[') {
        Some(data) => data.around("] ")?.1,
        None => data.strip_prefix("- ")?,
    };
    Some((time, rest.trim_start_matches('\u{feff}')))
}

/// `<4>`.
fn level(text: &str) -> Option<&str> {
    let (level, rest) = text.strip_prefix('<')?.split_once('>')?;
    let is_level = (1..=3).contains(&level.len()) && level.bytes().all(|b| b.is_ascii_digit());
    is_level.then(|| rest.strip_prefix("1 ").unwrap_or(rest))
}

/// `4,19685342,241227987454,-,caller=T12845;` of `/dev/kmsg`.
fn kmsg(text: &str) -> Option<&str> {
    let (head, rest) = text.split_once(';')?;
    let mut fields = head.split(',');
    let numbers =
        fields.by_ref().take(3).filter(|f| !f.is_empty() && f.bytes().all(|b| b.is_ascii_digit()));
    (numbers.count() == 3 && head.len() < 100).then_some(rest)
}

/// `kern  :warn  : ` of `dmesg -x`, `kern.warn ` of small systems; Talos writes the address of the node in front.
fn facility(text: &str) -> Option<&str> {
    let at_host = || {
        let (host, rest) = text.around(": kern:")?;
        let is_host = |b: u8| b.is_ascii_alphanumeric() || b"-.:".contains(&b);
        let is_name = host.len() < 64 && host.bytes().all(is_host);
        is_name.then(|| text.get(text.len() - rest.len() - 1..))?
    };
    let rest = text.strip_prefix("kern").or_else(at_host)?;
    if let Some(rest) = rest.strip_prefix('.') {
        return rest.split_once([' ', ':']).map(|(_, rest)| rest);
    }
    let (level, rest) = rest.trim_start().strip_prefix(':')?.split_once(':')?;
    let is_level = level.trim().bytes().all(|b| b.is_ascii_lowercase());
    is_level.then_some(rest)
}

/// `stdout F ` of container runtimes, `name-1  | ` of compose.
fn container(text: &str) -> Option<&str> {
    for stream in ["stdout ", "stderr "] {
        if let Some(rest) = text.strip_prefix(stream) {
            return rest.strip_prefix("F ").or_else(|| rest.strip_prefix("P "));
        }
    }
    let (name, rest) = text.around("| ")?;
    let name = name.trim_end();
    let is_name = name.len() < 64 && name.starts_with(|c: char| c.is_ascii_alphabetic());
    (is_name && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b)))
        .then_some(rest)
}

/// `[12345.678901]`, `[Sat Nov 21 23:58:47 2026]`, and a caller `[ T1598]`. Reports have PIDs in brackets, too.
fn bracket(text: &str, is_inner: bool) -> Option<(&str, Option<PrintedTime>)> {
    let (inner, rest) = text.strip_prefix('[')?.split_once(']')?;
    let (inner, rest) = (inner.trim(), rest.strip_prefix(':').unwrap_or(rest));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let is_stamp = inner.split_once('.').is_some_and(|(whole, part)| digits(whole) && digits(part));
    let is_caller = is_inner && inner.strip_prefix(['T', 'C']).is_some_and(digits);
    if is_stamp || is_caller {
        return Some((rest, None));
    }
    // With the month in another language, only the time of day is recognised.
    let is_date = inner.len() < 60 && inner.split(' ').any(|word| word.matches(':').count() == 2);
    is_date.then(|| (rest, PrintedTime::leading(inner).map(|(time, _)| time)))
}

/// `2026-11-21T23:58:47.123Z `, `Nov 21 23:58:47 `.
fn dated(text: &str) -> Option<(&str, Option<PrintedTime>)> {
    let start: &str = text.get(..4)?;
    let is_likely = start.bytes().all(|b| b.is_ascii_digit())
        || start.starts_with(|c: char| c.is_ascii_uppercase());
    let colon = text.find(':').filter(|at| is_likely && *at < 40)?;
    let is_time = text.as_bytes().get(colon.wrapping_sub(1)).is_some_and(u8::is_ascii_digit);
    let (time, rest) = PrintedTime::leading(text).filter(|_| is_time)?;
    Some((rest, Some(time)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_of_logs_are_removed() {
        let bare = "94990 total pagecache pages";
        for (prefix, has_date) in [
            ("", false),
            ("[12345.678901] ", false),
            ("[    0.000001] ", false),
            ("[  659.997051][ T1598] ", false),
            ("[  659.997051][    C1] ", false),
            ("[Sat Nov 21 23:58:47 2026] ", true),
            ("[dim. 19 avril 18:03:30 2026] ", false),
            ("Nov 21 23:58:47 db1 kernel: [12345.678901] ", false),
            ("Nov 21 23:58:47 db1 kernel: ", false),
            ("2026-11-21T23:58:47.123456+00:00 db1 kernel: [12345.678901] ", true),
            ("2026-11-21T23:58:47+0000 db1 kernel: ", true),
            ("2026-11-21 23:58:47 db1 kernel: ", true),
            ("2026-11-21T23:58:47.123Z stdout F ", true),
            ("2026-11-21T23:58:47,123456+00:00 ", true),
            ("<4>[12345.678901] ", false),
            ("<6>1 2026-11-21T23:58:47Z db1 kernel - - - kernel: ", true),
            ("kern  :warn  : [12345.678901] ", false),
            ("kern  :warn  : [Sat Nov 21 23:58:47 2026] ", true),
            ("kern.warn kernel: [12345.678901] ", false),
            ("1763769527.123456 db1 kernel: ", true),
            ("[12345.678901] db1 kernel: ", false),
            ("4,19685342,241227987454,-,caller=T12845;", false),
            ("node-1  | [12345.678901] ", false),
            ("kern:    info: [2025-06-05T03:41:57.572293906Z]: ", true),
            ("10.0.0.91: kern: warning: [2025-06-05T03:41:57.5Z]: ", true),
        ] {
            let line = format!("{prefix}{bare}");
            let message = message(&line);
            assert_eq!(message.text, bare, "{prefix}");
            assert_eq!(message.is_prefixed, !prefix.is_empty(), "{prefix}");
            assert_eq!(message.wall.is_some(), has_date, "{prefix}");
        }
    }

    #[test]
    fn a_line_of_a_log_differs_from_a_quotation() {
        let kill = "Out of memory: Killed process 812 (java) total-vm:9142kB, anon-rss:77kB";
        for (before, expected) in [
            ("", false),
            ("    ", false),
            ("> ", false),
            ("assert_kill(\"", false),
            ("it ends with ", false),
            ("[12345.678901] ", true),
            ("Nov 21 23:58:47 db1 ", true),
            ("kernel: ", true),
            ("MESSAGE=", true),
            ("\"message\": \"", true),
            ("{\"msg\":\"", true),
        ] {
            assert_eq!(is_logged(&format!("{before}{kill}")), expected, "{before}");
        }
    }

    #[test]
    fn a_stamp_without_a_year_is_kept_as_printed() {
        let stamp = |line: &str| message(line).stamp;
        let first = stamp("Nov 21 23:58:47 db1 kernel: [12345.678901] Mem-Info:").unwrap();
        assert_eq!(first.text, "Nov 21 23:58:47");
        let later = stamp("Nov 22 00:00:47 db1 kernel: Mem-Info:").unwrap();
        assert_eq!(later.of_year - first.of_year, units::Span::from_mins(2));
        assert_eq!(stamp("2026-11-21 23:58:47 db1 kernel: Mem-Info:"), None);
        assert_eq!(stamp("[12345.678901] Mem-Info:"), None);
    }

    #[test]
    fn brackets_in_a_report_are_not_a_prefix() {
        for line in [
            "[ 1234]     0  1234     5678      900    57344        0             0 bash",
            "[  pid  ]   uid  tgid total_vm      rss pgtables_bytes swapents oom_score_adj name",
            "[<ffffffff81184c7e>] oom_kill_process+0x24e/0x3c0",
            "Node 0 DMA: 1*4kB (U) 0*8kB = 4kB",
            "0 pages in swap cache",
            "memory: usage 102400kB, limit 102400kB, failcnt 6402",
            "CPU: 3 PID: 473206 Comm: doxygen Not tainted 6.1.1-arch1-1 #1",
            "<TASK>",
        ] {
            assert_eq!(message(line).text, line);
        }
    }
}
