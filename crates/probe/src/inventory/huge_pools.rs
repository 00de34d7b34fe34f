//! Pools of huge pages of each size: `/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages` and its neighbours.
//!
//! One directory for each size that the CPU and the kernel support, in KiB; in each a file for each number (2.6.27).
//! `/proc/meminfo` counts only the pages of the default size. `free_hugepages` contains `resv_hugepages`, `nr_hugepages`
//! contains `surplus_hugepages`. Cost: 5 µs for each of 4 files.

use timeline::HugePool;
use units::{Bytes, Count};

use crate::kernel_file::Root;
use crate::text;

const DIRECTORY: &str = "/sys/kernel/mm/hugepages/";

/// The files of a pool that are read.
const FILES: [&str; 4] = ["nr_hugepages", "free_hugepages", "resv_hugepages", "surplus_hugepages"];

/// Reads the pools of a host.
pub(super) fn read(root: &Root, pools: &mut Vec<HugePool>) {
    for size in root.names(DIRECTORY) {
        for file in FILES {
            let path = format!("{DIRECTORY}{size}/{file}");
            if let Ok(text) = root.read(&path) {
                parse(&path, &text, pools);
            }
        }
    }
}

/// Reads the saved text of one of the files. `false`: the path is none of them.
pub(super) fn parse(path: &str, text: &[u8], pools: &mut Vec<HugePool>) -> bool {
    let Some((page, file)) = place(path) else {
        return false;
    };
    // A malformed number is an absent one.
    let Some(number) = text::number(text::trim(text)).map(Count::new) else {
        return true;
    };
    let index = match pools.binary_search_by_key(&page, |pool| pool.page) {
        Ok(known) => known,
        Err(index) => {
            let pool = HugePool { page, ..HugePool::default() };
            pools.insert(index, pool);
            index
        }
    };
    let pool = &mut pools[index];
    match file {
        "nr_hugepages" => pool.total = number,
        "free_hugepages" => pool.free = number,
        "resv_hugepages" => pool.reserved = number,
        _ => pool.surplus = number,
    }
    true
}

/// Splits a path into the size of a page and the file.
fn place(path: &str) -> Option<(Bytes, &str)> {
    let (size, file) = path.strip_prefix(DIRECTORY)?.split_once('/')?;
    let kib = size.strip_prefix("hugepages-")?.strip_suffix("kB")?;
    let kib = text::number(kib.as_bytes())?;
    FILES.contains(&file).then_some((Bytes::from_kib(kib), file))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_size_is_a_pool() {
        let directory = tempfile::tempdir().unwrap();
        for (path, text) in [
            ("hugepages-2048kB/nr_hugepages", "96\n"),
            ("hugepages-2048kB/free_hugepages", "90\n"),
            ("hugepages-2048kB/resv_hugepages", "4\n"),
            ("hugepages-2048kB/surplus_hugepages", "-1\n"),
            ("hugepages-1048576kB/nr_hugepages", "1\n"),
            ("hugepages-1048576kB/surplus_hugepages", "1\n"),
            ("hugepages-64/nr_hugepages", "7\n"),
        ] {
            let path = directory.path().join(DIRECTORY.trim_start_matches('/')).join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let mut pools = Vec::new();
        read(&Root::at(directory.path()), &mut pools);
        let pool = |page, [total, free, reserved, surplus]: [u64; 4]| HugePool {
            page,
            total: Count::new(total),
            free: Count::new(free),
            reserved: Count::new(reserved),
            surplus: Count::new(surplus),
        };
        let small = pool(Bytes::from_mib(2), [96, 90, 4, 0]);
        let large = pool(Bytes::from_gib(1), [1, 0, 0, 1]);
        assert_eq!(pools, [small, large]);
        assert_eq!(small.bytes(small.free), Bytes::from_mib(180));
    }

    #[test]
    fn other_files_are_left_alone() {
        let mut pools = Vec::new();
        for path in [
            "/sys/kernel/mm/hugepages/hugepages-2048kB/demote",
            "/sys/kernel/mm/hugepages/hugepages-2048kB/demote/nr_hugepages",
            "/sys/kernel/mm/hugepages/nr_hugepages",
            "/proc/meminfo",
        ] {
            assert!(!parse(path, b"1\n", &mut pools), "{path}");
        }
        assert!(pools.is_empty());
    }
}
