//! Finds the lines that belong to kernel files, and their paths.

use super::field_file::{self, FieldFile};
use super::shape::{self, FileShape};
use super::{KernelFileReader, file_path, is_prompt, pairs};
use crate::block::{BlockReader, TextBlock};

/// At most 2 other lines between two fields (`…`, `[snip]`).
const BETWEEN_MAX: usize = 2;
/// At most 4 unknown fields at the start of a truncated text.
const BEFORE_KNOWN_MAX: usize = 4;
/// At most 3 lines above lines of pressure may name the resource.
const NAMED_ABOVE_MAX: usize = 3;
/// At most 64 lines decide which file it is.
const EXAMINED_MAX: usize = 64;

/// Lines with their path before them, as `grep` prints several files.
pub(super) fn before_each_line(input: &mut BlockReader<'_>) -> Option<TextBlock> {
    let (path, _) = file_path::before(input.lines.first()?)?;
    FileShape::at(&path)?;
    let lines = input.lines;
    let mut files: Vec<(String, Vec<(usize, &str)>)> = Vec::new();
    let mut taken = 0;
    let mut foreign = 0;
    while let Some((path, rest)) = lines.get(taken).and_then(|line| file_path::before_next(line)) {
        match files.last_mut() {
            Some((last, lines)) if *last == path => lines.push((taken, rest)),
            _ => files.push((path, vec![(taken, rest)])),
        }
        taken += 1;
    }
    let mut reader = KernelFileReader::new(input);
    let what = match files.as_slice() {
        [(path, _)] => path.clone(),
        files => format!("{} kernel files, from {} on", files.len(), files[0].0),
    };
    for (path, lines) in &files {
        match FileShape::at(path) {
            Some(shape) => reader.file(path, shape, lines),
            None => foreign += lines.len(),
        }
    }
    reader.block.not_understood += foreign;
    Some(reader.finish(&what, taken))
}

/// Files with their path as a heading, one after the other.
pub(super) fn with_headings(input: &mut BlockReader<'_>) -> Option<TextBlock> {
    let lines = input.lines;
    let mut at = 0;
    let mut files = Vec::new();
    while let Some((path, shape, from, to)) = headed(lines, at) {
        files.push((path, shape, from, to));
        at = to;
    }
    let (first, ..) = files.first()?;
    let what = match files.len() {
        1 => first.clone(),
        n => format!("{n} kernel files, from {first} on"),
    };
    let mut reader = KernelFileReader::new(input);
    for (path, shape, from, to) in &files {
        reader.file(path, *shape, &numbered(lines, *from, *to));
    }
    Some(reader.finish(&what, at))
}

/// The file with its heading at a line, or after one blank line: path, shape, first line and end of its text.
fn headed(lines: &[&str], at: usize) -> Option<(String, FileShape, usize, usize)> {
    let is_blank = |at: usize| lines.get(at).is_some_and(|line| line.is_empty());
    let at = at + usize::from(at > 0 && is_blank(at));
    let line = *lines.get(at)?;
    let path = file_path::in_heading(line).or_else(|| pressure_heading(line))?;
    let shape = FileShape::at(&path)?;
    let from = at + 1;
    let to = end(lines, from, shape, &path);
    (to > from).then_some((path, shape, from, to))
}

/// `memory:` or `io pressure` above lines of pressure.
fn pressure_heading(line: &str) -> Option<String> {
    let line = line.trim_matches(|c: char| "=-#*<>:[] ".contains(c));
    if line.len() > 40 {
        return None;
    }
    named_pressure(&line.to_ascii_lowercase()).filter(|_| line.split_whitespace().count() <= 3)
}

/// The pressure file named by words, if it is one.
fn named_pressure(words: &str) -> Option<String> {
    let words: Vec<&str> =
        words.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let mut named = [("memory", "memory"), ("mem", "memory"), ("io", "io"), ("cpu", "cpu")]
        .into_iter()
        .filter(|(word, _)| words.contains(word))
        .map(|(_, file)| format!("/proc/pressure/{file}"));
    let first = named.next()?;
    named.all(|other| other == first).then_some(first)
}

/// Files with their paths in the command, in that order.
pub(super) fn in_command(input: &mut BlockReader<'_>) -> Option<TextBlock> {
    let lines = input.lines;
    let mut paths = file_path::in_command(input.command?);
    with_irq(&mut paths, lines);
    let mut at = 0;
    let mut files = Vec::new();
    for (i, path) in paths.iter().enumerate() {
        let Some(shape) = FileShape::at(path) else {
            continue;
        };
        let mut to = end(lines, at, shape, path);
        if i + 1 < paths.len() {
            to = to.min(first_repeated(lines, at, to, shape));
        }
        if path == IRQ {
            to = to.min(at + 1);
        }
        if to > at {
            files.push((path.clone(), shape, at, to));
            at = to;
        }
    }
    let (first, ..) = files.first()?;
    let what = match files.len() {
        1 => first.clone(),
        n => format!("{n} kernel files, from {first} on"),
    };
    let one = files.len() == 1;
    let mut reader = KernelFileReader::new(input);
    for (path, shape, from, to) in &files {
        if one {
            repeated(&mut reader, path, *shape, *from, *to);
        } else {
            reader.file(path, *shape, &numbered(lines, *from, *to));
        }
    }
    Some(reader.finish(&what, at))
}

/// This file has only the line `full`, and no signal.
const IRQ: &str = "/proc/pressure/irq";

/// Newer kernels have `irq` between the other files of `/proc/pressure/*`: seven lines, not six.
fn with_irq(paths: &mut Vec<String>, lines: &[&str]) {
    let is_pressure = |line: &&&str| FileShape::Pressure.continues(line);
    let names = ["/proc/pressure/cpu", "/proc/pressure/io", "/proc/pressure/memory"];
    if *paths == names && lines.iter().take(8).take_while(is_pressure).count() == 7 {
        paths.insert(2, IRQ.to_owned());
    }
}

/// The first line that the file already had: there the next file begins.
fn first_repeated(lines: &[&str], from: usize, to: usize, shape: FileShape) -> usize {
    let mut seen = std::collections::HashSet::new();
    let is_new = |line: &&&str| seen.insert(shape.identity(line));
    from + lines[from..to].iter().take_while(is_new).count()
}

/// The end of the text of a file that begins at `from`.
fn end(lines: &[&str], from: usize, shape: FileShape, path: &str) -> usize {
    let rest = lines.get(from..).unwrap_or_default();
    let first = rest.first().copied().unwrap_or_default();
    if is_prompt(first) {
        return from;
    }
    match (shape, FieldFile::at(path)) {
        (FileShape::Fields, Some(file)) => from + count_fields(rest, file),
        _ if shape.is_one_line() => from + usize::from(shape.continues(first)),
        _ => from + rest.iter().take_while(|l| shape.continues(l)).count(),
    }
}

/// How many of the lines are fields of a file. One of the first must be known; one or two other lines may be between
/// fields.
fn count_fields(lines: &[&str], file: FieldFile) -> usize {
    let mut end = 0;
    let mut knows_any = false;
    for (at, line) in lines.iter().enumerate() {
        if line.is_empty() || is_prompt(line) || at > end + BETWEEN_MAX {
            break;
        }
        match pairs::parse(line) {
            Some(pairs) => {
                let knows = pairs.iter().any(|pair| file.knows(pair.name));
                let is_of_another = !knows && field_file::files_with(pairs[0].name) != 0;
                // A field of a new kernel may have a name from another file: then known fields follow.
                if is_of_another && !knows_next(lines.get(at + 1), file) {
                    break;
                }
                // After another line, only a known name shows that the file continues.
                if at > end && !knows {
                    break;
                }
                knows_any |= knows;
                end = at + 1;
            }
            None if end == 0 => break,
            None => {}
        }
        if !knows_any && end > BEFORE_KNOWN_MAX {
            break;
        }
    }
    if knows_any { end } else { 0 }
}

fn knows_next(line: Option<&&str>, file: FieldFile) -> bool {
    let pairs = line.and_then(|line| pairs::parse(line));
    pairs.is_some_and(|pairs| pairs.iter().any(|pair| file.knows(pair.name)))
}

/// A file that is recognised by the shape of its lines.
pub(super) fn by_shape(input: &mut BlockReader<'_>) -> Option<TextBlock> {
    let lines = input.lines;
    let shape = FileShape::recognise(lines)?;
    let most = if shape.is_one_line() { 1 } else { lines.len() };
    let taken = lines[..most].iter().take_while(|line| shape.continues(line)).count().max(1);
    let lines = &lines[..taken];
    let path = path_of(shape, lines, input.command).or_else(|| pressure_around(input, lines));
    let assumed = path.is_none() && is_memory_alone(input, lines);
    let path = path.or_else(|| assumed.then(|| "/proc/pressure/memory".to_owned()));
    let Some(path) = path else {
        let problem = "pressure of memory, io or cpu? There is no path or heading; not read";
        return Some(TextBlock {
            what: "pressure of an unknown resource".to_owned(),
            lines: taken,
            problems: vec![(0, problem.to_owned())],
            not_understood: taken,
            ..TextBlock::default()
        });
    };
    let mut reader = KernelFileReader::new(input);
    if assumed {
        reader
            .problem(0, "pressure of memory, io or cpu? The text is nothing else: taken as memory");
    }
    repeated(&mut reader, &path, shape, 0, taken);
    let what = match shape {
        FileShape::Smaps => "mappings of a process",
        FileShape::Status => "/proc/PID/status",
        _ => &path,
    };
    Some(reader.finish(what, taken))
}

/// The pressure file that the name of the text's file or the last lines before the block name.
fn pressure_around(input: &BlockReader<'_>, lines: &[&str]) -> Option<String> {
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
        .filter_map(|line| named_pressure(&line));
    named.next().or_else(|| named_pressure(&name.to_ascii_lowercase()))
}

/// Whether the text is one pressure file and nothing else, and not that of the CPUs, of which no task waits for all: who
/// asks memtide about such a file means memory.
fn is_memory_alone(input: &BlockReader<'_>, lines: &[&str]) -> bool {
    let is_alone = input.command.is_none()
        && input.before.iter().all(|line| line.is_empty())
        && input.lines.iter().skip(lines.len()).all(|line| line.is_empty());
    let [some, full] = lines else {
        return false;
    };
    let is_idle = |line: &str| line.ends_with(" total=0");
    is_alone && some.starts_with("some ") && full.starts_with("full ") && !is_idle(full)
}

/// Reads a file that may have been printed several times.
fn repeated(
    reader: &mut KernelFileReader<'_, '_>,
    path: &str,
    shape: FileShape,
    from: usize,
    to: usize,
) {
    let all = reader.input.lines;
    // Lines of these files may repeat the key of the first.
    if matches!(shape, FileShape::Smaps | FileShape::Fields | FileShape::Pagetypeinfo)
        || shape.is_one_line()
    {
        return reader.file(path, shape, &numbered(all, from, to));
    }
    let first = shape.identity(all[from]);
    let mut start = from;
    for at in from + 1..=to {
        if at == to || shape.identity(all[at]) == first {
            reader.file(path, shape, &numbered(all, start, at));
            start = at;
        }
    }
}

/// The path of a file of this shape; `None` if it is unknown.
fn path_of(shape: FileShape, lines: &[&str], command: Option<&str>) -> Option<String> {
    let path = match shape {
        FileShape::Pressure => return named_pressure(&command?.to_ascii_lowercase()),
        FileShape::Zoneinfo => "/proc/zoneinfo",
        FileShape::Buddyinfo => "/proc/buddyinfo",
        FileShape::Pagetypeinfo => "/proc/pagetypeinfo",
        FileShape::Slabinfo => "/proc/slabinfo",
        FileShape::Stat => "/proc/stat",
        FileShape::Diskstats => "/proc/diskstats",
        FileShape::Sockstat => "/proc/net/sockstat",
        FileShape::Words if lines[0].starts_with("BOOT_IMAGE=") => "/proc/cmdline",
        FileShape::Words => "/proc/version",
        FileShape::NodeMeminfo => {
            let node = shape::node_field(lines[0]).map_or("0", |(node, _)| node);
            return Some(format!("/sys/devices/system/node/node{node}/meminfo"));
        }
        FileShape::Status => {
            let pid = lines.iter().find_map(|line| line.strip_prefix("Pid:"));
            return Some(format!("/proc/{}/status", pid.unwrap_or("0").trim()));
        }
        // PID 0: an unknown process.
        FileShape::Smaps => "/proc/0/smaps",
        FileShape::Fields | FileShape::OneLine => return None,
    };
    Some(path.to_owned())
}

/// Names and values that are recognised by the names.
pub(super) fn by_fields(input: &mut BlockReader<'_>) -> Option<TextBlock> {
    let lines = input.lines;
    let first = pairs::parse(lines.first()?)?;
    let known = first.iter().map(|pair| field_file::files_with(pair.name));
    if known.fold(0, |all, files| all | files) == 0 {
        return None;
    }
    let mut names = std::collections::HashSet::new();
    let mut head = Vec::new();
    'lines: for line in lines.iter().take(EXAMINED_MAX) {
        let Some(pairs) = pairs::parse(line) else {
            break;
        };
        for pair in pairs {
            if pair.has_colon != first[0].has_colon || !names.insert(pair.name) {
                break 'lines;
            }
            head.push(pair);
        }
    }
    match FieldFile::find(&head)? {
        Ok(file) => {
            let path = path_of_fields(file);
            let taken = count_fields(lines, file).max(1);
            let mut reader = KernelFileReader::new(input);
            reader.file(&path, FileShape::Fields, &numbered(lines, 0, taken));
            reader.name_process();
            Some(reader.finish(what(file), taken))
        }
        Err(reason) => {
            let same = |line: &&&str| pairs::parse(line).is_some();
            let taken = lines.iter().take_while(same).count().max(1);
            Some(TextBlock {
                what: "names and values of a kernel file".to_owned(),
                lines: taken,
                problems: vec![(0, format!("{reason}, and there is no path; not read"))],
                not_understood: taken,
                ..TextBlock::default()
            })
        }
    }
}

/// The path to read a file under if only its content is known.
fn path_of_fields(file: FieldFile) -> String {
    match file {
        FieldFile::Meminfo => "/proc/meminfo".to_owned(),
        FieldFile::Vmstat => "/proc/vmstat".to_owned(),
        FieldFile::CgroupStat => file_path::in_unnamed_cgroup("memory.stat"),
        FieldFile::CgroupStatV1 => {
            format!("/sys/fs/cgroup/memory/{}/memory.stat", file_path::UNNAMED_CGROUP)
        }
        FieldFile::CgroupEvents => file_path::in_unnamed_cgroup("memory.events"),
        FieldFile::NodeNumastat => "/sys/devices/system/node/node0/numastat".to_owned(),
        FieldFile::SmapsRollup => "/proc/0/smaps_rollup".to_owned(),
        FieldFile::Status => "/proc/0/status".to_owned(),
        FieldFile::Io => "/proc/0/io".to_owned(),
    }
}

/// The name of a file, human-readable.
const fn what(file: FieldFile) -> &'static str {
    match file {
        FieldFile::Meminfo => "/proc/meminfo",
        FieldFile::Vmstat => "/proc/vmstat",
        FieldFile::CgroupStat => "memory.stat of an unknown cgroup",
        FieldFile::CgroupStatV1 => "memory.stat (v1) of an unknown cgroup",
        FieldFile::CgroupEvents => "memory.events of an unknown cgroup",
        FieldFile::NodeNumastat => "numastat of a node",
        FieldFile::SmapsRollup => "smaps_rollup of an unknown process",
        FieldFile::Status => "/proc/PID/status",
        FieldFile::Io => "/proc/PID/io",
    }
}

fn numbered<'l>(lines: &[&'l str], from: usize, to: usize) -> Vec<(usize, &'l str)> {
    lines[from..to].iter().enumerate().map(|(i, line)| (from + i, *line)).collect()
}
