//! Owners of memory that no counter names, searched for once: pools of huge pages, callers of vmalloc.
//!
//! Meant for one answer, never for every sample. What this user may not read is absent.

mod huge_pools;
mod vmallocinfo;

use timeline::Inventory;

use crate::kernel_file::Root;

/// Searches the host below `root`.
pub fn read(root: &Root) -> Inventory {
    let mut inventory = Inventory::default();
    huge_pools::read(root, &mut inventory.huge_pools);
    if let Ok(text) = root.read(vmallocinfo::PATH) {
        inventory.vmalloc = vmallocinfo::parse(&text);
    }
    inventory
}

/// Whether [`from_saved`] reads the file at this path.
pub fn is_known(path: &str) -> bool {
    from_saved(path, b"", &mut Inventory::default())
}

/// Reads the saved text of a kernel file. `false`: the path is none of those that are searched.
pub fn from_saved(path: &str, text: &[u8], inventory: &mut Inventory) -> bool {
    if path == vmallocinfo::PATH {
        inventory.vmalloc = vmallocinfo::parse(text);
        return true;
    }
    huge_pools::parse(path, text, &mut inventory.huge_pools)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn saved_files_are_known_by_their_paths() {
        for path in [
            "/proc/vmallocinfo",
            "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages",
        ] {
            assert!(is_known(path), "{path}");
        }
        assert!(!is_known("/proc/meminfo"));
    }
}
