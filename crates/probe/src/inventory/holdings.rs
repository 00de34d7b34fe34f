//! What processes have beside their RSS: page tables, huge pages, sockets, BPF maps, and how much they have locked.
//!
//! Cost: one read of `/proc/PID/status` for each process, about 10 µs, within a time limit: processes with most shared memory
//! first.

use timeline::ProcessHoldings;

use super::bpf_objects::BpfObjects;
use super::searched::{SearchTime, SearchedProcess};
use super::sockets::Sockets;
use crate::kernel_file::Root;
use crate::process::status::StatusFacts;

/// Reads the holdings of each process that has any, in no particular order.
pub(super) fn read(
    root: &Root,
    processes: &[SearchedProcess],
    (sockets, bpf): (&Sockets, &BpfObjects),
    time: SearchTime,
) -> Vec<ProcessHoldings> {
    let of_process = |process: &SearchedProcess| {
        let path = format!("/proc/{}/status", process.pid);
        // It may have ended, or belong to somebody else under hidepid.
        let facts = StatusFacts::parse(&root.read(&path).ok()?);
        let holdings = ProcessHoldings {
            process: process.user(),
            page_tables: facts.page_tables.unwrap_or_default(),
            huge_pages: process.huge,
            locked: facts.locked.unwrap_or_default(),
            sockets: sockets.of(process.pid),
            bpf: bpf.of(process.pid),
        };
        let none = ProcessHoldings {
            process: holdings.process.clone(),
            ..ProcessHoldings::default()
        };
        (holdings != none).then_some(holdings)
    };
    processes
        .iter()
        .take_while(|_| !time.is_over())
        .filter_map(of_process)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use units::Bytes;

    #[test]
    fn page_tables_and_locked_memory_are_read_by_process() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(root.path().join("proc/42")).unwrap();
        let text = "Name:\tqemu\nVmLck:\t  2048 kB\nVmPTE:\t  512 kB\n";
        std::fs::write(root.path().join("proc/42/status"), text).unwrap();
        let process = |pid| SearchedProcess {
            pid,
            name: "qemu".to_owned(),
            huge: Bytes::from_mib(4),
            ..SearchedProcess::default()
        };
        let time = SearchTime::starts(Duration::from_secs(60));
        let nothing = (&Sockets::default(), &BpfObjects::default());
        let found = read(
            &Root::at(root.path()),
            &[process(41), process(42)],
            nothing,
            time,
        );
        assert_eq!(found.len(), 1, "the other has ended");
        assert_eq!(found[0].process.name, "qemu");
        assert_eq!(
            [found[0].page_tables, found[0].huge_pages, found[0].locked],
            [Bytes::from_kib(512), Bytes::from_mib(4), Bytes::from_mib(2)]
        );
    }
}
