//! A job that runs already.

use ::job::{JobReport, JobTarget, observe_running};
use answers::this_host::Besides;
use sampler::WatchOptions;
use units::Span;

use crate::cli::JobArgs;
use crate::command_error::CommandError;
use crate::commands::source;
use crate::interrupt;
use crate::output::Output;

/// Watches it until it ends, the time is over, or Ctrl-C.
pub(super) fn watched(args: &JobArgs, output: &Output) -> Result<JobReport, CommandError> {
    let target = match args.pid {
        Some(pid) => JobTarget::Process(pid),
        None => JobTarget::Cgroup(group(args, output)?),
    };
    let name = target.to_string();
    let until = match args.lasts {
        Some(lasts) => format!("for {lasts}"),
        None => "until it ends, or Ctrl-C".to_owned(),
    };
    output.note(&format!("watching {name} {until}"));
    let is_interrupted = interrupt::listen_to_any();
    let at_most = args.lasts.map(Span::as_duration);
    let seen = observe_running(&target, args.watch.into(), at_most, &is_interrupted)?;
    Ok(JobReport::of_observation(&name, &seen, &args.caches, args.disk))
}

/// The path of the cgroup that was named.
fn group(args: &JobArgs, output: &Output) -> Result<String, CommandError> {
    let one = WatchOptions::one_sample(false);
    let mut host = source::watch(one, Besides::default(), output)?;
    source::name_containers(&mut host)?;
    let found = answers::group_of(&host, args.group.selector().as_ref(), true)?;
    Ok(found.unwrap_or_else(|| timeline::cgroup::ROOT.to_owned()))
}
