//! Where is the memory?

use diagnose::Evidence;
use diagnose::accounting::account;
use probe::Root;
use report::model::WhereReport;
use timeline::signals::{PROC_PSS, PROC_SIZE};
use timeline::{Entity, Source, Timeline};
use units::Bytes;

/// Returns the answer of `where` about the last sample; `None` if the source has no MemTotal.
pub fn where_memory(source: &Source) -> Option<WhereReport> {
    let evidence = Evidence::new(&source.timeline, &source.facts);
    let last = source.timeline.len().checked_sub(1)?;
    let accounting = account(&evidence, last).ok()?;
    Some(WhereReport::new(source, &accounting))
}

/// Searches this host for owners of memory that no counter names, right after the source's last sample.
pub fn find_owners(root: &Root, source: &mut Source) {
    source.inventory = probe::inventory::read(root);
}

/// Returns how many processes have memory but no proportional share (PSS), because it was not read.
pub fn pss_not_read(timeline: &Timeline) -> u64 {
    let unread = timeline.entities(Entity::Process).filter(|process| {
        // Kernel threads have no memory of their own.
        timeline.last_of(process, PROC_SIZE) > Some(Bytes::ZERO)
            && timeline.last_of(process, PROC_PSS).is_none()
    });
    unread.count() as u64
}
