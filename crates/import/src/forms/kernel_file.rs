//! Pasted text of kernel files: complete, truncated, a few lines of `grep`, one or several files. The parsers of live
//! files read it; this module finds out which file it is.
//!
//! The path is before each line (`/proc/meminfo:MemFree: …`), in a heading (`==> /proc/vmstat <==`), or in the command
//! (`cat /proc/vmstat`); else the content decides. If that is ambiguous (pressure of memory or of io? `pgfault` of the
//! host or of a cgroup?), the text is skipped and a problem reports it.

use super::Form;
use crate::block::{BlockReader, TextBlock};
use crate::text::line_scan::BlockStart;
use crate::text::prompt;
use reader::KernelFileReader;

mod by_command;
mod by_fields;
mod by_heading;
mod by_prefix;
mod by_shape;
mod extent;
mod field_file;
mod file_path;
pub(super) use file_path::UNNAMED_CGROUP;
mod pairs;
mod pressure;
mod reader;
mod shape;

pub(super) const FORM: Form = Form {
    name: "kernel file",
    begins: BlockStart {
        // A heading, the first line.
        lines: 2,
        or: Some(may_be_fields),
        commands: &["/proc", "/sys", "memory.", "pressure", "uname"],
        ..BlockStart::with(&[
            "/proc",
            "/sys/",
            ".max",
            ".current",
            ".stat",
            ".events",
            ".low",
            ".min",
            ".high",
            ".peak",
            ".pressure",
            "memory.swap",
            "_in_bytes",
            ".failcnt",
            "memory.oom",
            "memory.numa",
            "memory.zswap",
            "io.",
            "cgroup.",
            "cpu.",
            "avg10=",
            ", zone ",
            "Page block order",
            "Free pages count",
            "slabinfo",
            "# name ",
            " : slabdata ",
            "cpu ",
            "sockets: used",
            "Node ",
            "Linux ",
            "BOOT_IMAGE=",
            "Name:",
            "Rss:",
            "00:00 ",
        ])
    },
    read,
};

/// Whether a line may be a field, or a row of figures. This runs for each line of a text.
fn may_be_fields(lines: &[&str]) -> bool {
    let line = lines.first().map_or("", |line| line.trim_start());
    let start = pairs::without_list_mark(line);
    match start.as_bytes().first() {
        Some(b'0'..=b'9') => shape::is_row(start),
        // Of several fields on a line, any may be known.
        Some(b'{' | b'|' | b'"' | b'`' | b'*') => pairs::parse(start).is_some(),
        Some(_) => {
            let is_end = |b: &u8| matches!(b, b' ' | b':' | b'=' | b'|' | b',' | b'"');
            let end = start.bytes().take(64).position(|b| is_end(&b));
            let name = start.get(..end.unwrap_or(start.len().min(64)));
            name.is_some_and(|name| field_file::files_with(name) != 0)
                || shape::is_mapping(start)
                || (memchr::memchr2(b',', b'|', start.as_bytes()).is_some()
                    && pairs::parse(start).is_some())
        }
        None => false,
    }
}

/// The ways to find out which file it is, the surest first.
fn read(input: &mut BlockReader<'_>) -> Option<TextBlock> {
    by_prefix::read(input)
        .or_else(|| by_heading::read(input))
        .or_else(|| by_command::read(input))
        .or_else(|| by_shape::read(input))
        .or_else(|| by_fields::read(input))
        .or_else(|| uname(input))
}

/// `Linux db1 5.15.0-91-generic #101-Ubuntu SMP …`, and `uname -r`. The host name is dropped.
fn uname(input: &mut BlockReader<'_>) -> Option<TextBlock> {
    let line = *input.lines.first()?;
    let words: Vec<&str> = line.split_whitespace().take(4).collect();
    let is_release = |word: &str| {
        timeline::facts::KernelVersion::parse(word).is_some()
            && word.starts_with(|c: char| c.is_ascii_digit())
    };
    let text = match words.as_slice() {
        ["Linux", _, release, build] if is_release(release) && build.starts_with('#') => {
            let rest = line.split_once(release).map_or("", |(_, rest)| rest);
            format!("Linux version {release}{rest}")
        }
        [release] if is_release(release) && input.command.is_some_and(|c| c.contains("uname")) => {
            format!("Linux version {release}")
        }
        _ => return None,
    };
    let mut reader = KernelFileReader::new(input);
    reader.raw("/proc/version", &[(0, &text)]);
    Some(reader.finish("the kernel's version", 1))
}

/// Whether a line is a prompt with a command, and so not part of a file.
fn is_prompt(line: &str) -> bool {
    prompt::command(line).is_some()
}

#[cfg(test)]
mod tests;
