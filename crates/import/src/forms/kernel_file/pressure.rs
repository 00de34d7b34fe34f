//! Of which resource lines of pressure are: all three files look alike.

use super::shape::FileShape;
use crate::block::BlockReader;

/// At most 3 lines above lines of pressure may name the resource.
const NAMED_ABOVE_MAX: usize = 3;

/// `memory:` or `io pressure` above lines of pressure.
pub(super) fn in_heading(line: &str) -> Option<String> {
    let line = line.trim_matches(|c: char| "=-#*<>:[] ".contains(c));
    if line.len() > 40 {
        return None;
    }
    named_by(&line.to_ascii_lowercase()).filter(|_| line.split_whitespace().count() <= 3)
}

/// The pressure file that the name of the text's file or the last lines before the block name.
pub(super) fn around(input: &BlockReader<'_>, lines: &[&str]) -> Option<String> {
    if !FileShape::Pressure.continues(lines.first()?) {
        return None;
    }
    let name = input.file.rsplit('/').next().unwrap_or_default();
    let prose = input.before.iter().rev().filter(|line| !line.is_empty());
    let is_of_pressure = |line: &String| line.contains("pressure") || line.contains("psi");
    let mut named = prose
        .take(NAMED_ABOVE_MAX)
        .map(|line| line.to_ascii_lowercase())
        .filter(is_of_pressure)
        .filter_map(|line| named_by(&line));
    named.next().or_else(|| named_by(&name.to_ascii_lowercase()))
}

/// Whether the text is one pressure file and nothing else, and not that of the CPUs, of which no task waits for all: who
/// asks memtide about such a file means memory.
pub(super) fn is_memory_alone(input: &BlockReader<'_>, lines: &[&str]) -> bool {
    let is_alone = input.command.is_none()
        && input.before.iter().all(|line| line.is_empty())
        && input.lines.iter().skip(lines.len()).all(|line| line.is_empty());
    let [some, full] = lines else {
        return false;
    };
    let is_idle = |line: &str| line.ends_with(" total=0");
    is_alone && some.starts_with("some ") && full.starts_with("full ") && !is_idle(full)
}

/// The pressure file named by words, if it is one.
pub(super) fn named_by(words: &str) -> Option<String> {
    let words: Vec<&str> =
        words.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let mut named = [("memory", "memory"), ("mem", "memory"), ("io", "io"), ("cpu", "cpu")]
        .into_iter()
        .filter(|(word, _)| words.contains(word))
        .map(|(_, file)| format!("/proc/pressure/{file}"));
    let first = named.next()?;
    named.all(|other| other == first).then_some(first)
}
