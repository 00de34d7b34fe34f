//! The process that is meant: of several with one name, the largest, with what all of them have.

use answers::{ExplainTarget, StopProspect};
use probe::{ProcessIdentity, Root};
use report::model::explain::ProgramEntry;
use units::Count;

use crate::apart;
use crate::command_error::{CommandError, ErrorContext};
use crate::output::Output;

/// Returns its PID and the sum of the program, and notes the others on standard error.
pub(super) fn process(
    root: &Root,
    target: &ExplainTarget,
    output: &Output,
) -> Result<(u32, Option<ProgramEntry>), CommandError> {
    let processes = target.select(root, &apart::own_pids())?;
    let (first, others) = processes.split_first().context("there is no process")?;
    if !others.is_empty() {
        output.note(&others_note(first, others));
    }
    let name = match target {
        ExplainTarget::Pid(_) => None,
        ExplainTarget::Name(name) | ExplainTarget::Service(name) => Some(name),
    };
    let program = name.and_then(|name| answers::explain_program(root, name, &processes));
    Ok((first.pid, program))
}

/// Says what a stop will cost; returns whether it is worth it.
pub(super) fn stops(root: &Root, pid: u32, output: &Output) -> Result<bool, CommandError> {
    match answers::stop_prospect(root, pid)? {
        StopProspect::Stops(time) => {
            output.note(&format!("PID {pid} stands still for about {time} while it is read"));
            Ok(true)
        }
        StopProspect::Useless(why) => {
            output.note(&format!("PID {pid} is not stopped: {why}"));
            Ok(false)
        }
    }
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
