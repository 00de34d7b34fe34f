//! Where a part of a workload runs: in this cgroup, in one that it joins, or in one that is made for it.

use lab::parts::{LimitedEnd, check_available, is_within_limit, run_within_limit};

use crate::cli::{HoldingPartArgs, LabCommand, PartOfLabArgs};
use crate::command_error::{CommandError, ErrorContext, bail};
use crate::exit::Exit;
use crate::interrupt;

/// Puts this process where the part belongs before it takes memory. The answer is the exit code where a child has played it.
pub(super) fn enter(command: &LabCommand) -> Result<Option<Exit>, CommandError> {
    let Some(part) = part(command) else {
        return Ok(None);
    };
    if let Some(directory) = &part.join {
        let file = directory.join("cgroup.procs");
        std::fs::write(file, std::process::id().to_string())
            .with_context(|| format!("cannot join {}", directory.display()))?;
    } else if let Some(limit) = part.limit {
        if is_within_limit() {
            return Ok(None);
        }
        return match run_within_limit(limit, interrupt::listen_to_any())? {
            LimitedEnd::Exited(0) | LimitedEnd::Interrupted => Ok(Some(Exit::Ok)),
            LimitedEnd::Exited(_) => Ok(Some(Exit::Unknown)),
            LimitedEnd::KilledAtLimit => bail!("the kernel killed it at its limit of {limit}"),
            LimitedEnd::Killed => bail!("a signal ended it: it was killed, or it crashed"),
        };
    } else if let Some(holding) = holding(command)
        && !part.in_scenario
        && !lab::init::is_inside()
        && !holding.args.beyond_available
    {
        check_available(holding.size)?;
    }
    Ok(None)
}

fn part(command: &LabCommand) -> Option<&PartOfLabArgs> {
    match command {
        LabCommand::Write(args) => Some(&args.part),
        LabCommand::Read(args) => Some(&args.part),
        LabCommand::Lookup(args) => Some(&args.part),
        LabCommand::Archive(args) => Some(&args.part),
        _ => holding(command).map(|holding| &holding.args.part),
    }
}

/// A part that holds memory, and how much at most.
struct Holding<'a> {
    args: &'a HoldingPartArgs,
    size: units::Bytes,
}

fn holding(command: &LabCommand) -> Option<Holding<'_>> {
    let (args, size) = match command {
        LabCommand::Hog(args) => (&args.holding, args.size),
        LabCommand::Map(args) => (&args.holding, args.data),
        LabCommand::Share(args) => (&args.holding, args.size),
        // Each page may be copied once.
        LabCommand::Fork(args) => (&args.holding, args.size + args.size),
        LabCommand::Fragment(args) => (&args.holding, args.size),
        _ => return None,
    };
    Some(Holding { args, size })
}
