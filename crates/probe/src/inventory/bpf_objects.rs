//! BPF maps and programs by the process that has them open, from `/proc/PID/fdinfo/FD`, field `memlock`: what the kernel has
//! allocated for a map since 6.4, an estimate by its entries before. A map that is only pinned to a file has no process.

use units::Bytes;

use super::first_owners::FirstOwners;
use super::open_files::OpenFile;
use crate::fdinfo::field;
use crate::kernel_file::Root;

/// The targets of their descriptors.
const TARGETS: [&[u8]; 2] = [b"anon_inode:bpf-map", b"anon_inode:bpf-prog"];

/// What was found so far.
#[derive(Debug, Default)]
pub(super) struct BpfObjects {
    found: FirstOwners<ObjectId>,
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
        if !TARGETS.contains(&file.target) || !self.found.has_room() {
            return;
        }
        if let Some((id, size)) = file.info(root, pid).and_then(|text| parse(&text)) {
            self.found.add(pid, id, size);
        }
    }

    /// What a process has open.
    pub(super) fn of(&self, pid: u32) -> Bytes {
        self.found.of(pid)
    }
}

/// The id and the size of an object.
fn parse(fdinfo: &[u8]) -> Option<(ObjectId, Bytes)> {
    let number = |name| field(fdinfo, name)?.parse().ok();
    let id =
        number("map_id").map(ObjectId::Map).or_else(|| number("prog_id").map(ObjectId::Program))?;
    Some((id, Bytes::new(number("memlock")?)))
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
        for text in [&b""[..], b"memlock:\t4096\n", b"map_id:\t1\nmemlock:\t-1\n", b"\xff"] {
            assert_eq!(parse(text), None);
        }
    }
}
