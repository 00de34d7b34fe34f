//! Any files under the names of a support bundle, packed as tar, through all rules to the printed report.
//!
//! The input is a list of files: a name's number, the length (two bytes), the contents.
#![no_main]

#[path = "../judged.rs"]
mod judged;

use libfuzzer_sys::fuzz_target;

const NAMES: [&str; 16] = [
    "sos/proc/meminfo",
    "sos/proc/vmstat",
    "sos/proc/zoneinfo",
    "sos/proc/buddyinfo",
    "sos/proc/slabinfo",
    "sos/proc/swaps",
    "sos/proc/mounts",
    "sos/proc/1/status",
    "sos/sys/fs/cgroup/memory.stat",
    "sos/sos_commands/memory/free_-m",
    "sos/sos_commands/process/ps_auxwww",
    "sos/sos_commands/kernel/dmesg",
    "sos/sos_commands/sar/sar20",
    "sos/var/log/messages",
    "sos/date",
    "../../etc/passwd",
];

fuzz_target!(|data: &[u8]| {
    let mut data = data;
    let mut archive = tar::Builder::new(Vec::new());
    while let [name, high, low, rest @ ..] = data {
        let len = usize::from(u16::from_be_bytes([*high, *low])).min(rest.len());
        let (contents, rest) = rest.split_at(len);
        let mut header = tar::Header::new_gnu();
        let name = NAMES[usize::from(*name) % NAMES.len()];
        // A name that climbs is written as a hostile archive would have it.
        header.as_gnu_mut().expect("a GNU header").name[..name.len()].copy_from_slice(name.as_bytes());
        header.set_size(contents.len() as u64);
        header.set_mode(0o644);
        header.set_cksum();
        archive.append(&header, contents).expect("a buffer");
        data = rest;
    }
    judged::judged(&archive.into_inner().expect("a buffer"));
});
