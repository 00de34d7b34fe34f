//! What processes have beside their RSS: page tables, huge pages, stacks in the kernel, sockets, pipes, rings of io_uring, BPF maps,
//! buffers of GPUs, and how much they have locked.
//!
//! Cost: one read of `/proc/PID/status` for each process, about 10 µs, within a time limit: processes with most shared memory
//! first.

use timeline::ProcessHoldings;
use units::Count;

use super::bpf_objects::BpfObjects;
use super::dma_heaps::DmaHeaps;
use super::gpu_buffers::GpuBuffers;
use super::io_rings::IoRings;
use super::open_files::OpenFile;
use super::pipes::Pipes;
use super::searched::SearchedProcess;
use super::sockets::Sockets;
use crate::kernel_file::Root;
use crate::process::status::StatusFacts;
use crate::search_time::SearchTime;

/// Objects of the kernel that processes have open.
#[derive(Debug, Default)]
pub(super) struct OpenObjects {
    sockets: Sockets,
    bpf: BpfObjects,
    pipes: Pipes,
    io_rings: IoRings,
    gpu_buffers: GpuBuffers,
    dma_heaps: DmaHeaps,
}

impl OpenObjects {
    /// Begins with the sockets of the host.
    pub(super) fn new(sockets: Sockets) -> Self {
        Self { sockets, ..Self::default() }
    }

    /// Takes an open file of a process; an object that several have open counts for the first.
    pub(super) fn take(&mut self, root: &Root, pid: u32, file: &OpenFile<'_>) {
        self.sockets.take(pid, file);
        self.bpf.take(root, pid, file);
        self.pipes.take(pid, file);
        self.io_rings.take(root, pid, file);
        self.gpu_buffers.take(root, pid, file);
        self.dma_heaps.take(root, pid, file);
    }
}

/// Reads the holdings of each process that has any, in no particular order.
pub(super) fn read(
    root: &Root,
    processes: &[SearchedProcess],
    objects: &OpenObjects,
    time: SearchTime,
) -> Vec<ProcessHoldings> {
    let of_process = |process: &SearchedProcess| {
        let path = format!("/proc/{}/status", process.pid);
        // It may have ended, or belong to somebody else under hidepid.
        let facts = StatusFacts::parse(&root.read(&path).ok()?);
        let sockets = objects.sockets.of(process.pid);
        let holdings = ProcessHoldings {
            process: process.user(),
            page_tables: facts.page_tables.unwrap_or_default(),
            huge_pages: process.huge,
            locked: facts.locked.unwrap_or_default(),
            threads: Count::new(facts.threads.unwrap_or_default()),
            sockets: sockets.buffers,
            packet_rings: sockets.rings,
            pipes: objects.pipes.of(process.pid),
            io_rings: objects.io_rings.of(process.pid),
            bpf: objects.bpf.of(process.pid),
            gpu_shared: objects.gpu_buffers.in_shared_memory(process.pid),
            gpu_pages: objects.gpu_buffers.of_own_pages(process.pid),
            dma_heaps: objects.dma_heaps.of(process.pid),
        };
        let none =
            ProcessHoldings { process: holdings.process.clone(), ..ProcessHoldings::default() };
        (holdings != none).then_some(holdings)
    };
    processes.iter().take_while(|_| !time.is_over()).filter_map(of_process).collect()
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
        let nothing = OpenObjects::default();
        let root = Root::at(root.path());
        let found = read(&root, &[process(41), process(42)], &nothing, time);
        assert_eq!(found.len(), 1, "the other has ended");
        assert_eq!(found[0].process.name, "qemu");
        assert_eq!(
            [found[0].page_tables, found[0].huge_pages, found[0].locked],
            [Bytes::from_kib(512), Bytes::from_mib(4), Bytes::from_mib(2)]
        );
    }
}
