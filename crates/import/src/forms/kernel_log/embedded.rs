//! A message within a line of something else: behind prose, a list mark or a table bar, in quotation marks, in cells.

use std::borrow::Cow;
use std::iter;

use probe::kernel_report::{LineExtent, extent, is_line};
use probe::text::SplitText as _;

use super::messages::may_have_message;
use super::prefix::stripped;
use crate::text::kernel_words;
use crate::text::times::PrintedTime;

/// A line of prose names few messages; only a text that is one line has more.
const STARTS_MAX: usize = 32;
/// Prose behind a message has at most so many words that are taken off its end one by one.
const WORDS_MAX: usize = 24;

/// A stamp stands among the first characters of a line.
const STAMP_PLACE_MAX: usize = 80;

/// The text of a message.
#[derive(Debug)]
pub(super) struct MessageText<'a> {
    pub(super) text: Cow<'a, str>,
    /// The time before it, within what else stands around it.
    pub(super) time: Option<PrintedTime>,
    /// Whether something else stands around it.
    pub(super) is_inner: bool,
    /// How much of a line of a report it is.
    pub(super) extent: Option<LineExtent>,
}

/// The message in a line. `text` is the line without a known prefix: it is the message, or there is none, if nothing else
/// is found.
pub(super) fn message<'a>(line: &'a str, text: &'a str) -> MessageText<'a> {
    let may_have_message = may_have_message(line);
    if may_have_message && let Some(front) = before_file(text) {
        return MessageText { text: front.into(), time: None, is_inner: false, extent: None };
    }
    let extent = |text: &str| may_have_message.then(|| extent(text)).flatten();
    // Tests ask each line, to show that no word is missing.
    debug_assert!(
        !cfg!(test) || may_have_message || !is_line(text),
        "`{text}` has no word of a report"
    );
    let of_text = extent(text);
    let as_it_stands =
        || MessageText { text: text.into(), time: None, is_inner: false, extent: of_text };
    if of_text == Some(LineExtent::Whole) || !(may_have_message || is_quoted(line)) {
        return as_it_stands();
    }
    let bare = undecorated(line);
    let (inner, time) = stripped(bare);
    let inner = undecorated(inner);
    let is_bare = inner.len() < text.len();
    let of_inner = if inner == text { of_text } else { extent(inner) };
    if may_have_message && let Some(found) = begun_in(inner, of_inner, is_bare) {
        // A message from its first word on, but for an end that is not the kernel's, is read as it stands.
        if found.text.len() == text.len() {
            return as_it_stands();
        }
        return MessageText { extent: Some(found.extent), text: found.text, time, is_inner: true };
    }
    // A line such as `anon 4096` is recognised by the lines around it only.
    let inner = behind_stamp(inner).or_else(|| last_cell(bare)).unwrap_or(inner);
    if inner.len() < text.len() && is_quoted(line) {
        return MessageText { text: inner.into(), time, is_inner: true, extent: extent(inner) };
    }
    as_it_stands()
}

/// The part of a kernel's message that precedes the name of a file, which any user chooses: it may read as another message.
fn before_file(text: &str) -> Option<&str> {
    const SEGFAULT: &str = "]: segfault at ";
    const SCRIPT: &str = "process '";
    let is_script = || {
        let is_named = text.starts_with(SCRIPT);
        is_named && text.trim_end().ends_with("' started with executable stack")
    };
    let end = match text.around(SEGFAULT) {
        Some((front, _)) => front.len() + SEGFAULT.len(),
        None => is_script().then_some(SCRIPT.len())?,
    };
    text.get(..end)
}

/// The first whole message that begins within a text, else the first that is cut off. `of_text`: how much of a message the
/// text is as it stands. `is_bare`: it may also be a whole message of which the first word is none of those that messages
/// begin with.
fn begun_in(text: &str, of_text: Option<LineExtent>, is_bare: bool) -> Option<Repaired<'_>> {
    let starts = kernel_words::starts(text);
    let unnamed = (is_bare && starts.first() != Some(&0)).then_some(0);
    let named = starts.into_iter().take(STARTS_MAX);
    let found = unnamed.into_iter().chain(named).filter_map(|start| {
        let rest = text.get(start..)?;
        let of_rest = if start == 0 { of_text } else { extent(rest) };
        let found = repaired(rest, of_rest)?;
        let is_sure = found.extent == LineExtent::Whole || unnamed != Some(start);
        is_sure.then_some(found)
    });
    wholest(found)
}

/// A line without list marks, table bars and quotation marks at both ends.
fn undecorated(line: &str) -> &str {
    let mut rest = line.trim();
    loop {
        let mark =
            ["- ", "* ", "+ ", "• ", "# ", "// "].iter().find_map(|mark| rest.strip_prefix(mark));
        let inner = mark.unwrap_or(rest).trim_start_matches(is_mark);
        let inner = inner.trim_end_matches(|c| is_mark(c) || c == ',' || c == '\\').trim();
        let inner = inner.strip_suffix("\" +").unwrap_or(inner);
        let inner = inner.strip_suffix("\\n").unwrap_or(inner);
        if inner.len() == rest.len() {
            return inner;
        }
        rest = inner;
    }
}

/// The text behind a stamp near the start of a line: `line: "[12345.678901] CPU: 3`.
fn behind_stamp(text: &str) -> Option<&str> {
    let at = text.find('[').filter(|at| *at < STAMP_PLACE_MAX)?;
    let (rest, _) = stripped(text.get(at..)?);
    let rest = undecorated(rest);
    (rest.len() < text.len() - at).then_some(rest)
}

/// The last cell of a row: `"2026-11-21T23:58:47Z","CPU: 3 …`.
fn last_cell(text: &str) -> Option<&str> {
    let (_, cell) = text.rsplit_once("\",\"").or_else(|| text.rsplit_once(",\""))?;
    Some(undecorated(cell))
}

fn is_mark(c: char) -> bool {
    matches!(c, '`' | '"' | '\'' | '|' | '│' | '┃' | '“' | '”' | '‘' | '’' | '«' | '»' | ';')
}

fn is_quoted(line: &str) -> bool {
    let end = line.trim_end().trim_end_matches([',', '+', ' ']);
    line.trim_start().starts_with(is_mark) || end.ends_with(is_mark)
}

/// A message as the kernel writes it.
struct Repaired<'a> {
    text: Cow<'a, str>,
    extent: LineExtent,
}

impl<'a> Repaired<'a> {
    fn of(text: Cow<'a, str>) -> Option<Self> {
        let extent = extent(&text)?;
        Some(Self { text, extent })
    }
}

/// The first whole message, else the first that is cut off.
fn wholest<'a>(found: impl Iterator<Item = Repaired<'a>>) -> Option<Repaired<'a>> {
    let mut cut_off = None;
    for found in found {
        if found.extent == LineExtent::Whole {
            return Some(found);
        }
        cut_off.get_or_insert(found);
    }
    cut_off
}

/// A text as the kernel writes it: as it stands, without what follows a quotation, with units glued to their numbers,
/// without table bars, without prose behind it. `of_text`: how much of a message it is as it stands.
fn repaired(text: &str, of_text: Option<LineExtent>) -> Option<Repaired<'_>> {
    let as_it_stands = of_text.map(|extent| Repaired { text: text.into(), extent });
    let shorter = iter::once_with(|| quoted(text).map(Cow::Borrowed));
    let glued = iter::once_with(|| glued(text).map(Cow::Owned));
    let changed = shorter
        .chain(glued)
        .flatten()
        .chain(without_prose(text).map(Cow::Borrowed))
        .filter_map(Repaired::of);
    wholest(as_it_stands.into_iter().chain(changed))
}

/// The text before the end of a quotation or a cell.
fn quoted(text: &str) -> Option<&str> {
    let ends = ["\"", "`", "”", "»", " |", "</", "<br"];
    let end = ends.iter().filter_map(|end| text.find(end)).min()?;
    text.get(..end).map(str::trim_end)
}

/// A text with units glued to their numbers and without table bars, if it has any.
fn glued(text: &str) -> Option<String> {
    let mut glued = None;
    if [" kB", " KB"].iter().any(|unit| text.contains(unit)) {
        glued = Some(with_units_glued(text));
    }
    if text.contains('|') {
        let cells = glued.as_deref().unwrap_or(text).replace('|', " ");
        glued = Some(cells.split_whitespace().collect::<Vec<_>>().join(" "));
    }
    glued
}

/// Words of the messages that people quote in a sentence: who asked for memory, who was killed.
const REQUESTS: [&str; 2] = ["invoked oom-killer: ", "page allocation failure: "];
const KILLS: [&str; 2] = ["ill process ", "illed process "];

/// The beginnings of a text that ends in prose, longest first. None if people do not quote such a message in prose.
fn without_prose(text: &str) -> impl Iterator<Item = &str> {
    let is_of_kill = || text.contains('(') && KILLS.iter().any(|words| text.contains(words));
    let is_in_prose = REQUESTS.iter().any(|words| text.contains(words)) || is_of_kill();
    let words = text.split(' ').take(WORDS_MAX);
    let length: usize = words.map(|word| word.len() + 1).sum();
    let front = is_in_prose.then(|| text.get(..length).unwrap_or(text));
    let fronts = iter::successors(front, |front| front.rsplit_once(' ').map(|(front, _)| front));
    fronts.map(|front| front.trim_end_matches(|c: char| is_mark(c) || ".,:?!*_ ".contains(c)))
}

/// `0 kB` becomes `0kB`.
fn with_units_glued(text: &str) -> String {
    let mut glued = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = [" kB", " KB"].iter().filter_map(|unit| rest.find(unit)).min() {
        let (before, unit) = rest.split_at(at);
        glued.push_str(before);
        let is_size = before.ends_with(|c: char| c.is_ascii_digit());
        let skipped = usize::from(is_size);
        glued.push_str(unit.get(skipped..3).unwrap_or_default());
        rest = unit.get(3..).unwrap_or_default();
    }
    glued + rest
}

#[cfg(test)]
mod tests {
    use super::super::prefix;
    use super::extent;

    const KILL: &str = "Out of memory: Killed process 812 (java) total-vm:9142kB, anon-rss:77kB, \
                        file-rss:0kB, shmem-rss:0kB";

    #[test]
    fn a_message_is_found_wherever_it_stands() {
        for (before, after) in [
            ("`", "`"),
            ("- ", ""),
            ("* `[12.5] ", "`"),
            ("| 12 | Nov 21 23:58:47 db1 kernel: ", " |"),
            ("it ended with \"", "\" again"),
            ("12.5] ", ""),
            ("> ", ""),
            ("\"[12.5] ", "\","),
            ("    line: \"kern:     err: [2026-07-26T12:53:17.5Z]: ", "\","),
            ("2026-11-21,db1,\"", "\",warn"),
            ("<td>", "</td>"),
            ("I see ", " in the log"),
            ("**", "**"),
            ("it says '", "' and then stops"),
            ("mod.c:12: ", ""),
        ] {
            let line = format!("{before}{KILL}{after}");
            assert_eq!(prefix::message(&line).text, KILL, "{line}");
        }
        let apart = KILL.replace("kB", " kB");
        assert_eq!(prefix::message(&apart).text, KILL);
    }

    #[test]
    fn the_name_of_a_file_is_no_message() {
        for line in [
            format!("[12.5] x[9]: segfault at 0 ip 05 sp 07 error 4 in {KILL}[5000+1000]"),
            format!(
                "Nov 21 23:58:47 db1 kernel: process '/tmp/{KILL}' started with executable stack"
            ),
            "[12.5] x[9]: segfault at 0 ip 05 sp 07 error 4 in a invoked oom-killer: \
             gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0"
                .to_owned(),
        ] {
            let message = prefix::message(&line);
            assert!(message.extent.is_none(), "{line}: {message:?}");
            assert!(extent(&message.text).is_none(), "{line}: {message:?}");
        }
    }

    #[test]
    fn what_only_speaks_of_messages_is_none() {
        for line in [
            "grep 'Killed process' /var/log/kern.log",
            "the line Out of memory: Killed process shows the PID",
            "pr_err(\"Out of memory: Killed process %d (%s)\", pid, comm)",
            r"Killed process (\d+) \((.*)\) total-vm:(\d+)kB",
            "| Free swap | none |",
        ] {
            let message = prefix::message(line);
            assert!(extent(&message.text).is_none(), "{line}: {message:?}");
        }
    }
}
