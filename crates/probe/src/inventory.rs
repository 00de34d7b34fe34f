//! Owners of memory that no counter names, searched for once: pools of huge pages, callers of vmalloc, call sites that
//! took pages, objects of shared memory, page tables, sockets, pipes, rings of io_uring, BPF maps, buffers of GPUs and locked
//! memory of processes.
//!
//! Meant for one answer, never for every sample: it may take [`SEARCH_TIME_MAX`]. What this user may not read is absent,
//! and counted where it may hide shared memory.

mod allocinfo;
mod bpf_objects;
pub mod cached_files;
mod dma_heaps;
mod file_systems;
mod first_owners;
mod gpu_buffers;
mod holdings;
mod huge_pools;
mod io_rings;
mod iomem;
mod nameless_files;
mod open_files;
mod pipes;
mod searched;
mod sockets;
mod system_v;
mod vmallocinfo;

use std::collections::HashSet;
use std::time::Duration;

use timeline::{Inventory, SharedMemory, Stamp};

use crate::host::live::now;
use crate::kernel_file::Root;
use crate::search_time::SearchTime;
use file_systems::FileSystems;
use holdings::OpenObjects;
use nameless_files::NamelessFiles;
use sockets::Sockets;

pub use searched::SearchedProcess;

/// A person waits for the answer.
pub const SEARCH_TIME_MAX: Duration = Duration::from_millis(500);

/// Searches the host below `root`, and these processes in the order of their shared memory.
pub fn read(root: &Root, mut processes: Vec<SearchedProcess>) -> Inventory {
    processes.sort_by_key(|process| std::cmp::Reverse((process.shared, process.huge)));
    let time = SearchTime::starts(SEARCH_TIME_MAX);
    let mut inventory = Inventory::default();
    // First what is read at once: it is near in time to the sample.
    let segments = root.read(system_v::PATH).unwrap_or_default();
    let segments = system_v::parse(&segments);
    // Many containers must not leave no time for files.
    let half = SearchTime::starts(SEARCH_TIME_MAX / 2);
    let file_systems = FileSystems::read(root, &processes, half);
    let quarter = SearchTime::starts(SEARCH_TIME_MAX / 4);
    let mut objects = OpenObjects::new(Sockets::read(root, &processes, quarter));
    let files = NamelessFiles::search(root, &processes, time, &mut |process, file| {
        objects.take(root, process.pid, file);
    });
    let mut shared = SharedMemory {
        unknown_mounts: file_systems.unknown(),
        is_mounts_cut: file_systems.is_cut,
        processes_denied: files.processes_denied,
        largest_denied: files.largest_denied.clone(),
        processes_left_out: files.processes_left_out,
        objects: file_systems.objects,
    };
    let segments = system_v::objects(&segments, &files.huge_segments, &processes, now());
    shared.objects.extend(segments);
    shared.objects.extend(files.into_objects());
    inventory.shared = Some(shared);
    let quarter = SearchTime::starts(SEARCH_TIME_MAX / 4);
    inventory.holdings = holdings::read(root, &processes, &objects, quarter);
    huge_pools::read(root, &mut inventory.huge_pools);
    if let Ok(text) = root.read(vmallocinfo::PATH) {
        inventory.vmalloc = vmallocinfo::parse(&text);
    }
    inventory.physical = iomem::read(root);
    if let Ok(text) = root.read(allocinfo::PATH) {
        inventory.page_call_sites = allocinfo::parse(&text);
    }
    inventory
}

/// Whether [`from_saved`] reads the file at this path.
pub fn is_known(path: &str) -> bool {
    from_saved(path, b"", &mut Inventory::default())
}

/// Reads the saved text of a kernel file. `false`: the path is none of those that are searched.
pub fn from_saved(path: &str, text: &[u8], inventory: &mut Inventory) -> bool {
    match path {
        vmallocinfo::PATH => inventory.vmalloc = vmallocinfo::parse(text),
        iomem::PATH => inventory.physical = iomem::parse(text),
        allocinfo::PATH => inventory.page_call_sites = allocinfo::parse(text),
        system_v::PATH => {
            let segments = system_v::parse(text);
            let objects = system_v::objects(&segments, &HashSet::new(), &[], Stamp::default());
            inventory.shared.get_or_insert_default().objects = objects;
        }
        _ => return huge_pools::parse(path, text, &mut inventory.huge_pools),
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn saved_files_are_known_by_their_paths() {
        for path in [
            "/proc/vmallocinfo",
            "/proc/allocinfo",
            "/proc/iomem",
            "/proc/sysvipc/shm",
            "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages",
        ] {
            assert!(is_known(path), "{path}");
        }
        assert!(!is_known("/proc/meminfo"));
    }
}
