//! A file that is recognised by the shape of its lines.

use super::pressure;
use super::reader::KernelFileReader;
use super::shape::{self, FileShape};
use crate::block::{BlockReader, TextBlock};

pub(super) fn read(input: &mut BlockReader<'_>) -> Option<TextBlock> {
    let lines = input.lines;
    let shape = FileShape::recognise(lines)?;
    let most = if shape.is_one_line() { 1 } else { lines.len() };
    let taken = lines[..most].iter().take_while(|line| shape.continues(line)).count().max(1);
    let lines = &lines[..taken];
    let path = path_of(shape, lines, input.command).or_else(|| pressure::around(input, lines));
    let assumed = path.is_none() && pressure::is_memory_alone(input, lines);
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
    reader.repeated(&path, shape, 0, taken);
    let what = match shape {
        FileShape::Smaps => "mappings of a process",
        FileShape::Status => "/proc/PID/status",
        _ => &path,
    };
    Some(reader.finish(what, taken))
}

/// The path of a file of this shape; `None` if it is unknown.
fn path_of(shape: FileShape, lines: &[&str], command: Option<&str>) -> Option<String> {
    let path = match shape {
        FileShape::Pressure => return pressure::named_by(&command?.to_ascii_lowercase()),
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
