//! The process that is meant: of several with one name, the largest.

use answers::ExplainTarget;
use probe::{ProcessIdentity, Root};
use units::Count;

use crate::apart;
use crate::command_error::{CommandError, ErrorContext};
use crate::output::Output;

/// Returns its PID, and notes the others on standard error.
pub(super) fn pid(
    root: &Root,
    target: &ExplainTarget,
    output: &Output,
) -> Result<u32, CommandError> {
    let processes = target.select(root, &apart::own_pids())?;
    let (first, others) = processes.split_first().context("there is no process")?;
    if !others.is_empty() {
        output.note(&others_note(first, others));
    }
    Ok(first.pid)
}

/// Names the other processes that were meant too.
fn others_note(first: &ProcessIdentity, others: &[ProcessIdentity]) -> String {
    const NAMED: usize = 8;
    let pids = others.iter().take(NAMED).map(|one| one.pid.to_string());
    let more = if others.len() > NAMED { " …" } else { "" };
    format!(
        "PID {} is the largest of {}; the others: {}{more}",
        first.pid,
        Count::new(others.len() as u64 + 1).named("process", "processes"),
        pids.collect::<Vec<_>>().join(", "),
    )
}
