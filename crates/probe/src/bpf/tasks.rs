//! The kernel's tasks by a BPF iterator: the program (`tasks.bpf.c`), its records, and a self-test against `/proc`.

mod iterator;
mod record;
mod self_test;

use crate::kernel_file::Root;

pub(crate) use iterator::TaskIter;

/// Loads the program and tests it against `/proc`.
///
/// # Errors
/// Why it does not work here, in words.
pub(crate) fn open(root: &Root) -> Result<TaskIter, String> {
    let mut iterator = TaskIter::open(root)?;
    self_test::check(root, &mut iterator)?;
    Ok(iterator)
}
