//! BPF maps and programs by the process that has them open, from `/proc/PID/fdinfo/FD`, field `memlock`: what the kernel has
//! allocated for a map since 6.4, an estimate by its entries before. A map that is only pinned to a file has no process.

use std::collections::{HashMap, HashSet};

use units::Bytes;

use super::open_files::OpenFile;
use crate::kernel_file::Root;

/// The targets of their descriptors.
const TARGETS: [&[u8]; 2] = [b"anon_inode:bpf-map", b"anon_inode:bpf-prog"];
/// At most this many are kept.
const OBJECTS_MAX: usize = 65_536;

/// What was found so far.
#[derive(Debug, Default)]
pub(super) struct BpfObjects {
    seen: HashSet<ObjectId>,
    by_process: HashMap<u32, Bytes>,
}

/// A map or a program has an id for as long as it exists.
#[derive(Debug, PartialEq, Eq, Hash)]
enum ObjectId {
    Map(u64),
    Program(u64),
}

impl BpfObjects {
    /// Takes an open file of a process if it is one; what several have counts for the first.
    pub(super) fn take(&mut self, root: &Root, pid: u32, file: &OpenFile<'_>) {
        if !TARGETS.contains(&file.target) || self.seen.len() >= OBJECTS_MAX {
            return;
        }
        let number = file.name.to_string_lossy();
        let path = format!("/proc/{pid}/fdinfo/{number}");
        let object = root.read(&path).ok().and_then(|text| parse(&text));
        if let Some((id, bytes)) = object
            && self.seen.insert(id)
        {
            *self.by_process.entry(pid).or_default() += bytes;
        }
    }

    /// What a process has open.
    pub(super) fn of(&self, pid: u32) -> Bytes {
        self.by_process.get(&pid).copied().unwrap_or_default()
    }
}

/// The id and the size of an object.
fn parse(fdinfo: &[u8]) -> Option<(ObjectId, Bytes)> {
    let text = std::str::from_utf8(fdinfo).ok()?;
    let field = |name: &str| {
        let mut lines = text.lines().filter_map(|line| line.split_once(':'));
        let (_, value) = lines.find(|(key, _)| *key == name)?;
        value.trim().parse::<u64>().ok()
    };
    let id = field("map_id")
        .map(ObjectId::Map)
        .or_else(|| field("prog_id").map(ObjectId::Program))?;
    Some((id, Bytes::new(field("memlock")?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fdinfo_has_the_id_and_the_size() {
        let map = b"pos:\t0\nflags:\t02000002\nmap_type:\t1\nkey_size:\t4\nmemlock:\t8192\nmap_id:\t31\nfrozen:\t0\n";
        let (id, bytes) = parse(map).unwrap();
        assert_eq!((id, bytes), (ObjectId::Map(31), Bytes::new(8192)));
        let program = b"prog_type:\t5\nprog_jited:\t1\nmemlock:\t4096\nprog_id:\t31\n";
        assert_eq!(parse(program).unwrap().0, ObjectId::Program(31));
        for text in [
            &b""[..],
            b"memlock:\t4096\n",
            b"map_id:\t1\nmemlock:\t-1\n",
            b"\xff",
        ] {
            assert_eq!(parse(text), None);
        }
    }
}
