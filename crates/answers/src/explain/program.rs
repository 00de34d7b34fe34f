//! A program is many processes: what they have together, with shared memory once, and the one that differs.

use probe::{ProcessFiles, ProcessIdentity, Root, read_within};
use report::model::explain::ProgramEntry;
use timeline::EntityRow;
use timeline::signals::{
    PROC_PRIVATE_CLEAN, PROC_PRIVATE_DIRTY, PROC_PSS, PROC_PSS_SHMEM, PROC_RSS_ANON, PROC_RSS_FILE,
    PROC_RSS_SHMEM,
};
use units::{Bytes, Span};

/// Processes beyond this number are not read: reading one takes up to some milliseconds.
const PROCESSES_MAX: usize = 1000;
/// How long reading one may wait for its lock.
const WAIT_MAX: Span = Span::from_millis(200);

/// What is read of one process.
struct ProcessShare {
    pss: Bytes,
    shared: Option<Bytes>,
    rss: Bytes,
    own: Bytes,
}

/// Sums up the processes of a program, of which the first is explained; `None` where it is the only one, or may not be read.
pub fn explain_program(
    root: &Root,
    name: &str,
    processes: &[ProcessIdentity],
) -> Option<ProgramEntry> {
    if processes.len() < 2 {
        return None;
    }
    let read = processes.iter().take(PROCESSES_MAX).map(|one| share_of(root, one.pid));
    let read: Vec<Option<ProcessShare>> = read.collect();
    let explained_own_bytes = read.first()?.as_ref()?.own;
    let known: Vec<&ProcessShare> = read.iter().flatten().collect();
    let mut own: Vec<Bytes> = known.iter().map(|one| one.own).collect();
    own.sort_unstable();
    Some(ProgramEntry {
        name: name.to_owned(),
        processes: processes.len() as u64,
        pss_bytes: known.iter().map(|one| one.pss).sum(),
        shared_bytes: known.iter().map(|one| one.shared).sum(),
        rss_bytes: known.iter().map(|one| one.rss).sum(),
        typical_own_bytes: own.get(own.len() / 2).copied().unwrap_or_default(),
        explained_own_bytes,
        unread: (processes.len() - known.len()) as u64,
    })
}

fn share_of(root: &Root, pid: u32) -> Option<ProcessShare> {
    let root = root.clone();
    let read = move || {
        let mut row = EntityRow::default();
        let mut files = ProcessFiles::default();
        for name in ["smaps_rollup", "status"] {
            let text = root.read(&format!("/proc/{pid}/{name}")).ok()?;
            // A malformed line is an absent reading.
            let _ = files.parse(pid, name, &text, &mut row);
        }
        let row = &row.row;
        let resident = [PROC_RSS_ANON, PROC_RSS_FILE, PROC_RSS_SHMEM];
        let private = [PROC_PRIVATE_CLEAN, PROC_PRIVATE_DIRTY];
        Some(ProcessShare {
            pss: row.get(PROC_PSS)?,
            shared: row.get(PROC_PSS_SHMEM),
            rss: resident.into_iter().filter_map(|size| row.get(size)).sum(),
            own: private.into_iter().filter_map(|size| row.get(size)).sum(),
        })
    };
    read_within(WAIT_MAX, read).ok().flatten()
}

#[cfg(test)]
mod tests {
    use units::Quantity as _;

    use super::*;

    #[test]
    fn processes_add_up_by_pss_and_the_only_one_is_no_sum() {
        let root = Root::default();
        let own = ProcessIdentity::read(&root, std::process::id()).unwrap();
        assert_eq!(explain_program(&root, "tests", std::slice::from_ref(&own)), None);
        let sum = explain_program(&root, "tests", &[own.clone(), own]).unwrap();
        let one = share_of(&root, std::process::id()).unwrap();
        assert_eq!((sum.processes, sum.unread), (2, 0));
        let twice = one.pss + one.pss;
        let least = twice.min(sum.pss_bytes).as_f64() / twice.max(sum.pss_bytes).as_f64();
        assert!(least > 0.9, "{sum:?}");
        assert!(sum.rss_bytes > sum.pss_bytes);
    }
}
