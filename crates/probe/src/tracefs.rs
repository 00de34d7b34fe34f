//! Tracepoints of the kernel in tracefs: the number by which one is opened, and where its fields are.
//!
//! `events/sched/sched_switch/format` has a line `field:long prev_state;  offset:32;  size:8;  signed:1;` for each field; offsets differ
//! between kernels. Readable by root only, unless it was mounted otherwise. Since 4.1 at `/sys/kernel/tracing`, before below debugfs.

use std::collections::BTreeSet;

use crate::kernel_file::Root;
use crate::text;

/// Where tracefs may be mounted.
const MOUNTS: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];
const CPUS_ONLINE: &str = "/sys/devices/system/cpu/online";

/// A field of what a tracepoint records.
#[derive(Debug, Clone, PartialEq, Eq)]
struct TracepointField {
    name: String,
    offset: usize,
    size: usize,
}

/// A tracepoint: its number and its fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tracepoint {
    /// Its number, which each boot may change.
    pub id: u64,
    fields: Vec<TracepointField>,
}

/// A mounted tracefs.
#[derive(Debug, Clone)]
pub struct Tracefs {
    root: Root,
    mount: &'static str,
}

impl Tracefs {
    /// Finds it. `None`: it is not mounted, or not for this user.
    pub fn find(root: &Root) -> Option<Self> {
        let mount = MOUNTS.into_iter().find(|mount| root.has(&format!("{mount}/events")))?;
        Some(Self { root: root.clone(), mount })
    }

    /// Reads a tracepoint; `None` where this kernel does not have it, or this user may not read it.
    pub fn tracepoint(&self, system: &str, name: &str) -> Option<Tracepoint> {
        let file = |part: &str| {
            self.root.read(&format!("{}/events/{system}/{name}/{part}", self.mount)).ok()
        };
        let id = text::number(text::trim(&file("id")?))?;
        Some(Tracepoint { id, fields: fields(&file("format")?) })
    }
}

/// The fields of a `format`.
fn fields(format: &[u8]) -> Vec<TracepointField> {
    let lines = text::lines(format).map(|(_, line)| text::lossy(line));
    lines
        .filter_map(|line| {
            let (declaration, rest) = line.trim().strip_prefix("field:")?.split_once(';')?;
            // `char prev_comm[16]`
            let name = declaration.rsplit(' ').next()?.split('[').next()?.trim_start_matches('*');
            let number = |key: &str| {
                let (_, value) = rest.split_once(key)?;
                value.split(';').next()?.trim().parse().ok()
            };
            Some(TracepointField {
                name: name.to_owned(),
                offset: number("offset:")?,
                size: number("size:")?,
            })
        })
        .collect()
}

impl Tracepoint {
    /// The bytes of a field in what was recorded.
    pub fn bytes<'a>(&self, name: &str, raw: &'a [u8]) -> Option<&'a [u8]> {
        let field = self.fields.iter().find(|field| field.name == name)?;
        raw.get(field.offset..field.offset.checked_add(field.size)?)
    }

    /// The value of a field of 4 or 8 bytes in what was recorded.
    pub fn number(&self, name: &str, raw: &[u8]) -> Option<i64> {
        let bytes = self.bytes(name, raw)?;
        match bytes.len() {
            4 => bytes.try_into().ok().map(i32::from_ne_bytes).map(i64::from),
            8 => bytes.try_into().ok().map(i64::from_ne_bytes),
            _ => None,
        }
    }
}

/// Returns the numbers of the CPUs that are online; of a list that cannot be read CPU 0.
pub fn cpus_online(root: &Root) -> Vec<u32> {
    /// More than Linux supports.
    const CPUS_MAX: usize = 8192;
    let list = root.read(CPUS_ONLINE).unwrap_or_default();
    let list = text::lossy(text::trim(&list)).into_owned();
    let range = |part: &str| match part.split_once('-') {
        Some((first, last)) => Some(first.parse().ok()?..=last.parse().ok()?),
        None => part.parse().ok().map(|cpu: u32| cpu..=cpu),
    };
    let cpus: BTreeSet<u32> = list.split(',').filter_map(range).flatten().take(CPUS_MAX).collect();
    if cpus.is_empty() { vec![0] } else { cpus.into_iter().collect() }
}

/// Returns the path of the cgroup by which a process's memory is counted: that of version 1 with the memory controller, else that of
/// version 2. `None` if the process has ended, or there is none.
pub fn memory_cgroup(root: &Root, pid: u32) -> Option<String> {
    let text = root.read(&format!("/proc/{pid}/cgroup")).ok()?;
    let text = text::lossy(&text);
    let parts = || text.lines().filter_map(|line| line.split_once(':')?.1.split_once(':'));
    let of_version_1 = parts().find(|(names, _)| names.split(',').any(|name| name == "memory"));
    let of_version_2 = || parts().find(|(names, _)| names.is_empty());
    of_version_1.or_else(of_version_2).map(|(_, path)| path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const FORMAT: &[u8] = b"name: sched_switch\nID: 318\nformat:\n\tfield:unsigned short common_type;\t\
        offset:0;\tsize:2;\tsigned:0;\n\n\tfield:char prev_comm[16];\toffset:8;\tsize:16;\tsigned:0;\n\
        \tfield:pid_t prev_pid;\toffset:24;\tsize:4;\tsigned:1;\n\tfield:long prev_state;\toffset:32;\t\
        size:8;\tsigned:1;\n\nprint fmt: \"prev_comm=%s\"\n";

    #[test]
    fn fields_are_found_where_the_format_has_them() {
        let point = Tracepoint { id: 318, fields: fields(FORMAT) };
        let mut raw = [0_u8; 40];
        raw[8..12].copy_from_slice(b"bash");
        raw[24..28].copy_from_slice(&7_i32.to_ne_bytes());
        raw[32..40].copy_from_slice(&2_i64.to_ne_bytes());
        assert_eq!(point.number("prev_pid", &raw), Some(7));
        assert_eq!(point.number("prev_state", &raw), Some(2));
        assert_eq!(point.bytes("prev_comm", &raw).unwrap()[..4], *b"bash");
        assert_eq!(point.number("prev_state", &raw[..36]), None);
        assert_eq!(point.number("next_pid", &raw), None);
    }

    #[test]
    fn the_cgroup_of_memory_is_that_of_its_controller() {
        let directory = tempfile::tempdir().unwrap();
        let root = Root::at(directory.path());
        std::fs::create_dir_all(directory.path().join("proc/7")).unwrap();
        for (text, path) in [
            ("0::/system.slice/db.service\n", Some("/system.slice/db.service")),
            ("5:cpu,cpuacct:/x\n4:hugetlb,memory:/a:b\n0::/\n", Some("/a:b")),
            ("5:cpu:/x\n", None),
            ("", None),
        ] {
            std::fs::write(root.path("/proc/7/cgroup"), text).unwrap();
            assert_eq!(memory_cgroup(&root, 7).as_deref(), path, "{text}");
        }
        assert_eq!(memory_cgroup(&root, 8), None);
    }

    #[test]
    fn lists_of_cpus_are_ranges_and_numbers() {
        let directory = tempfile::tempdir().unwrap();
        let root = Root::at(directory.path());
        assert_eq!(cpus_online(&root), [0]);
        std::fs::create_dir_all(directory.path().join("sys/devices/system/cpu")).unwrap();
        std::fs::write(root.path(CPUS_ONLINE), "0-2,5\n").unwrap();
        assert_eq!(cpus_online(&root), [0, 1, 2, 5]);
    }
}
