//! The recorder's memory stays in RAM, however little the host has: mlockall(2), of as little memory as possible.

use rustix::mm::{MlockAllFlags, mlockall, munlockall};
use rustix::process::{Resource, getrlimit};
use rustix::thread::CapabilitySet;

use super::own_pages::OwnPages;
use super::privilege::{is_root, may, needs, words};

/// Locks present and future memory; returns a line in words. Call it when everything is open: memory needed only to
/// start (40 MiB to load a BPF program, the pages of our own program that parse options) is given back first, which the
/// kernel refuses for locked memory. Called again, it also gives back memory that only the first samples needed.
pub fn lock_memory() -> String {
    // Nothing is locked the first time. A refusal leaves all as it was.
    let _ = munlockall();
    probe::give_back_free_heap();
    let own_pages = OwnPages::find();
    own_pages.give_back();
    lock_all(&own_pages)
}

fn lock_all(own_pages: &OwnPages) -> String {
    // Without the capability, locked memory has a limit. As later mappings are locked too, an allocation beyond that
    // limit would fail and end the recorder.
    let may_lock_all =
        getrlimit(Resource::Memlock).current.is_none() || may(CapabilitySet::IPC_LOCK);
    if !may_lock_all {
        return format!(
            "memory is not locked, so under memory pressure samples may come late: {}",
            needs(is_root(), "CAP_IPC_LOCK", "an unlimited `ulimit -l`")
        );
    }
    own_pages.cut();
    // Locks only pages that are touched: most of the stacks and mapped files never are.
    let flags = MlockAllFlags::CURRENT | MlockAllFlags::FUTURE | MlockAllFlags::ONFAULT;
    match mlockall(flags) {
        Ok(()) => "memory is locked: reclaim does not touch the recorder".to_owned(),
        Err(errno) => format!(
            "memory is not locked, so under memory pressure samples may come late: {}",
            words(errno)
        ),
    }
}
