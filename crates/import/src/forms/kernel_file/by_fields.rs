//! Names and values that are recognised by the names.

use super::field_file::{self, FieldFile};
use super::reader::KernelFileReader;
use super::shape::FileShape;
use super::{extent, file_path, pairs};
use crate::block::{BlockReader, TextBlock};

/// At most 64 lines decide which file it is.
const EXAMINED_MAX: usize = 64;

pub(super) fn read(input: &mut BlockReader<'_>) -> Option<TextBlock> {
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
            let taken = extent::count_fields(lines, file).max(1);
            let mut reader = KernelFileReader::new(input);
            reader.lines(&path, FileShape::Fields, 0, taken);
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
