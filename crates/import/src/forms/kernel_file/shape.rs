//! The shape of the lines of kernel files, to recognise them and to find their end.

use super::{field_file, pairs};

/// The shape of the lines of a kernel file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FileShape {
    /// `name: value`, `name value`.
    Fields,
    /// One line of values.
    OneLine,
    /// One line of words: the kernel's version, its parameters.
    Words,
    Pressure,
    Zoneinfo,
    Buddyinfo,
    Pagetypeinfo,
    Slabinfo,
    Stat,
    Diskstats,
    Sockstat,
    NodeMeminfo,
    Status,
    /// The mappings of a process, or their sum.
    Smaps,
}

impl FileShape {
    /// The shape of the file at a path; `None` for files that are not read.
    pub(super) fn at(path: &str) -> Option<Self> {
        if field_file::FieldFile::at(path).is_some() && !path.contains("/smaps") {
            return Some(Self::Fields);
        }
        let name = path.rsplit('/').next()?;
        Some(match (path, name) {
            ("/proc/zoneinfo", _) => Self::Zoneinfo,
            ("/proc/buddyinfo", _) => Self::Buddyinfo,
            ("/proc/pagetypeinfo", _) => Self::Pagetypeinfo,
            ("/proc/slabinfo", _) => Self::Slabinfo,
            ("/proc/stat", _) => Self::Stat,
            ("/proc/diskstats", _) => Self::Diskstats,
            ("/proc/net/sockstat", _) => Self::Sockstat,
            (_, "memory" | "io" | "cpu" | "irq") if path.starts_with("/proc/pressure/") => {
                Self::Pressure
            }
            (_, "memory.pressure" | "io.pressure") => Self::Pressure,
            (_, "meminfo") if path.starts_with("/sys/devices/system/node/") => Self::NodeMeminfo,
            (_, "status") if path.starts_with("/proc/") => Self::Status,
            (_, "smaps" | "smaps_rollup") if path.starts_with("/proc/") => Self::Smaps,
            (_, "memory.oom_control") => Self::Fields,
            (_, name) if name.starts_with("memory.") && path.starts_with("/sys/fs/cgroup/") => {
                Self::OneLine
            }
            ("/proc/cmdline" | "/proc/version", _) => Self::Words,
            _ if path.starts_with("/proc/sys/") || path.starts_with("/sys/") => Self::OneLine,
            _ => return None,
        })
    }

    /// The shape that begins at the first line, if it is unique to one file.
    pub(super) fn recognise(lines: &[&str]) -> Option<Self> {
        let line = *lines.first()?;
        [
            Self::Pressure,
            Self::Zoneinfo,
            Self::Buddyinfo,
            Self::Pagetypeinfo,
            Self::Slabinfo,
            Self::Stat,
            Self::Diskstats,
            Self::Sockstat,
            Self::NodeMeminfo,
            Self::Smaps,
            Self::Words,
        ]
        .into_iter()
        .find(|shape| shape.begins(line))
        .or_else(|| is_status(lines).then_some(Self::Status))
    }

    /// Whether such a file begins with this line.
    fn begins(self, line: &str) -> bool {
        match self {
            Self::Pressure => is_pressure(line),
            Self::Zoneinfo => zone(line).is_some_and(str::is_empty),
            Self::Buddyinfo => zone(line).is_some_and(|rest| numbers(rest) >= 4),
            Self::Pagetypeinfo => {
                line.starts_with("Page block order:")
                    || line.starts_with("Free pages count per migrate type")
            }
            Self::Slabinfo => {
                line.starts_with("slabinfo - version")
                    || line.starts_with("# name            <active_objs>")
                    || is_slab(line)
            }
            Self::Stat => {
                line.strip_prefix("cpu ").is_some_and(|rest| (7..=10).contains(&numbers(rest)))
            }
            Self::Diskstats => is_disk(line),
            Self::Sockstat => line.starts_with("sockets: used "),
            // Kernel reports have `Node 0 hugepages_total=4 …`.
            Self::NodeMeminfo => node_field(line)
                .filter(|(_, rest)| !rest.trim_start().starts_with("hugepages_"))
                .and_then(|(_, rest)| pairs::parse(rest))
                .is_some_and(|pairs| pairs.iter().all(|p| p.has_colon)),
            Self::Smaps => is_mapping(line),
            Self::Words => line.starts_with("Linux version ") || line.starts_with("BOOT_IMAGE="),
            Self::Fields | Self::OneLine | Self::Status => false,
        }
    }

    /// The file's own line: the raw file of collectl has `Slab ` before each row of slabinfo.
    pub(super) fn line_of_file(self, line: &str) -> &str {
        match self {
            Self::Slabinfo => line.strip_prefix("Slab ").unwrap_or(line),
            _ => line,
        }
    }

    /// Whether such a file may continue with this line.
    pub(super) fn continues(self, line: &str) -> bool {
        match self {
            Self::Pressure => is_pressure(line),
            Self::Zoneinfo => line.starts_with("Node ") || line.starts_with("  "),
            Self::Buddyinfo => zone(line).is_some_and(|rest| numbers(rest) >= 1),
            Self::Pagetypeinfo => {
                line.is_empty()
                    || line.starts_with("Page")
                    || line.starts_with("Free pages")
                    || line.starts_with("Number of ")
                    || line.starts_with("Node ")
            }
            Self::Slabinfo => {
                line.starts_with("slabinfo") || line.starts_with("# name") || is_slab(line)
            }
            Self::Stat => is_stat(line),
            Self::Diskstats => is_disk(line),
            Self::Sockstat => is_sockets(line),
            Self::NodeMeminfo => self.begins(line),
            Self::Status => is_status_field(line),
            Self::Smaps => is_mapping(line) || is_field_of_mapping(line),
            Self::Fields => pairs::parse(line).is_some(),
            Self::OneLine => is_one_value(line),
            Self::Words => line.starts_with("Linux version ") || line.contains('='),
        }
    }

    /// Whether the file is one line.
    pub(super) const fn is_one_line(self) -> bool {
        matches!(self, Self::OneLine | Self::Words)
    }

    /// The key of a line: the file was printed again when that of the first line is repeated.
    pub(super) fn identity(self, line: &str) -> String {
        let words = match self {
            Self::Zoneinfo | Self::Buddyinfo => 4,
            Self::Diskstats | Self::NodeMeminfo => 3,
            _ => 1,
        };
        line.split_whitespace().take(words).collect::<Vec<_>>().join(" ")
    }
}

/// `some avg10=0.00 avg60=0.00 avg300=0.00 total=0`.
fn is_pressure(line: &str) -> bool {
    (line.starts_with("some ") || line.starts_with("full ")) && line.contains("avg10=")
}

/// The rest of a line `Node 0, zone   Normal …`.
fn zone(line: &str) -> Option<&str> {
    let (node, rest) = line.strip_prefix("Node ")?.split_once(", zone ")?;
    let rest = rest.trim_start();
    let (name, behind) = rest.split_once(' ').unwrap_or((rest, ""));
    let is_node = node.trim().bytes().all(|b| b.is_ascii_digit());
    (is_node && !name.is_empty()).then(|| behind.trim())
}

/// How many numbers a line has; 0 if it has anything else.
fn numbers(line: &str) -> usize {
    let is_number = |word: &str| word.bytes().all(|b| b.is_ascii_digit());
    if line.split_whitespace().all(is_number) { line.split_whitespace().count() } else { 0 }
}

/// `dentry  217728 217728    192   21    1 : tunables    0    0    0 : slabdata  10368  10368      0`.
fn is_slab(line: &str) -> bool {
    line.contains(" : slabdata ")
}

/// `   8       0 sda 123 4 …`: two numbers, a name, eleven or more figures.
fn is_disk(line: &str) -> bool {
    let mut words = line.split_whitespace();
    let is_number =
        |word: Option<&str>| word.is_some_and(|w| w.bytes().all(|b| b.is_ascii_digit()));
    is_number(words.next())
        && is_number(words.next())
        && words.next().is_some_and(|w| w.starts_with(|c: char| c.is_ascii_alphabetic()))
        && numbers(&words.collect::<Vec<_>>().join(" ")) >= 11
}

/// Whether a line that begins with figures is of a file that is recognised by it.
pub(super) fn is_row(line: &str) -> bool {
    is_disk(line) || is_mapping(line)
}

fn is_stat(line: &str) -> bool {
    let Some((name, rest)) = line.split_once(' ') else {
        return false;
    };
    let is_name = name.starts_with("cpu")
        || matches!(
            name,
            "intr"
                | "ctxt"
                | "btime"
                | "processes"
                | "procs_running"
                | "procs_blocked"
                | "softirq"
                | "page"
                | "swap"
        );
    is_name && rest.split_whitespace().all(|w| w.bytes().all(|b| b.is_ascii_digit()))
}

fn is_sockets(line: &str) -> bool {
    ["sockets:", "TCP:", "UDP:", "UDPLITE:", "RAW:", "FRAG:", "TCP6:", "UDP6:"]
        .iter()
        .any(|name| line.starts_with(name))
}

/// The node and the rest of a line of its meminfo: `Node 0 MemTotal:  1 kB`.
pub(super) fn node_field(line: &str) -> Option<(&str, &str)> {
    let (node, rest) = line.strip_prefix("Node ")?.split_once(' ')?;
    let is_number = !node.is_empty() && node.bytes().all(|b| b.is_ascii_digit());
    is_number.then(|| (node, rest.trim_start()))
}

/// `Name:`, then `State:`; `Umask:` is between them since 4.7.
fn is_status(lines: &[&str]) -> bool {
    lines[0].starts_with("Name:")
        && lines.iter().skip(1).take(2).any(|line| line.starts_with("State:"))
}

fn is_status_field(line: &str) -> bool {
    line.split_once(':').is_some_and(|(name, _)| {
        !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
    })
}

/// `55d0c8a00000-55d0c8a21000 rw-p 00000000 00:00 0    [heap]`.
pub(super) fn is_mapping(line: &str) -> bool {
    if !line.starts_with(|c: char| c.is_ascii_hexdigit()) {
        return false;
    }
    let mut words = line.split(' ');
    let range = words.next().and_then(|word| word.split_once('-'));
    let is_hex = |word: &str| word.len() >= 6 && word.bytes().all(|b| b.is_ascii_hexdigit());
    range.is_some_and(|(from, to)| is_hex(from) && is_hex(to))
        && words
            .next()
            .is_some_and(|word| word.len() == 4 && word.bytes().all(|b| b"rwxps-".contains(&b)))
}

fn is_field_of_mapping(line: &str) -> bool {
    line.starts_with("VmFlags:") || pairs::parse(line).is_some_and(|p| p[0].has_colon)
}

/// Whether a line is one or several numbers, `max`, or `[always] madvise never`; not prose.
fn is_one_value(line: &str) -> bool {
    let is_value = |word: &str| {
        let word = word.trim_matches(['[', ']']);
        !word.is_empty() && word.bytes().all(|b| b.is_ascii_alphanumeric() || b"+_-".contains(&b))
    };
    let is_number = |word: &str| word.starts_with(|c: char| c.is_ascii_digit() || c == '-');
    let mut words = line.split_whitespace();
    let count = words.clone().count();
    (1..=12).contains(&count)
        && words.clone().all(is_value)
        && (count == 1 || words.clone().all(is_number) || words.any(|word| word.starts_with('[')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_recognised_by_a_line() {
        for (line, shape) in [
            ("some avg10=0.00 avg60=0.00 avg300=0.00 total=0", FileShape::Pressure),
            ("Node 0, zone   Normal", FileShape::Zoneinfo),
            ("Node 0, zone   Normal    216     55    189    101     84", FileShape::Buddyinfo),
            ("Page block order: 9", FileShape::Pagetypeinfo),
            ("slabinfo - version: 2.1", FileShape::Slabinfo),
            ("dentry 1 2 192 21 1 : tunables 0 0 0 : slabdata 9 9 0", FileShape::Slabinfo),
            ("cpu  46828483 16683 25195175 1979168 1 2 3 0 0 0", FileShape::Stat),
            ("   8       0 sda 1 2 3 4 5 6 7 8 9 10 11", FileShape::Diskstats),
            ("sockets: used 290", FileShape::Sockstat),
            ("Node 0 MemTotal:       16268680 kB", FileShape::NodeMeminfo),
            ("00400000-7ffd395f7000 ---p 00000000 00:00 0   [rollup]", FileShape::Smaps),
        ] {
            assert_eq!(FileShape::recognise(&[line]), Some(shape), "{line}");
        }
        assert_eq!(
            FileShape::recognise(&["Name:        bash", "Umask:        0022", "State:        S"]),
            Some(FileShape::Status)
        );
        for line in
            ["cpu usage is high", "Node 0 is full", "Name: x", "some words", "8 0 sda 1 2 3", ""]
        {
            assert_eq!(FileShape::recognise(&[line, "b", "c"]), None, "{line}");
        }
    }

    #[test]
    fn a_path_has_a_shape() {
        for (path, shape) in [
            ("/proc/meminfo", Some(FileShape::Fields)),
            ("/sys/fs/cgroup/a/memory.stat", Some(FileShape::Fields)),
            ("/sys/fs/cgroup/a/memory.max", Some(FileShape::OneLine)),
            ("/sys/fs/cgroup/a/memory.pressure", Some(FileShape::Pressure)),
            ("/sys/devices/system/node/node0/meminfo", Some(FileShape::NodeMeminfo)),
            ("/proc/sys/vm/swappiness", Some(FileShape::OneLine)),
            ("/proc/1/smaps", Some(FileShape::Smaps)),
            ("/proc/1/environ", None),
        ] {
            assert_eq!(FileShape::at(path), shape, "{path}");
        }
    }
}
