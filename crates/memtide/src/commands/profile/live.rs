//! This host is sampled: for a while, or until a command ends.

use std::ops::ControlFlow;
use std::os::fd::AsFd;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use ::profile::{LiveOptions, LiveProfile, Profile, ProfileScope, USUAL_NICE};
use answers::find_group_of_this_host;
use probe::Root;
use units::Span;

use crate::cli::ProfileArgs;
use crate::command_error::{CommandError, bail};
use crate::interrupt;
use crate::output::Output;

/// How long this host is sampled, where nothing says otherwise: 3,000 samples of each busy CPU.
const LASTS: Span = Span::from_secs(30);

pub(super) fn sample(args: &ProfileArgs, output: &Output) -> Result<Profile, CommandError> {
    let lasts = args.lasts.or(args.command.is_empty().then_some(LASTS));
    let live = LiveProfile::open(LiveOptions {
        scope: scope(args)?,
        lasts,
        hz: args.rate,
        off_cpu: args.off_cpu.into(),
        nice: USUAL_NICE,
    })?;
    let mut command = Command::new(args.command.first().map_or("", String::as_str));
    command.args(args.command.get(1..).unwrap_or_default());
    // Standard output is the answer's.
    command.stdout(Stdio::from(std::io::stderr().as_fd().try_clone_to_owned()?));
    let mut child: Option<std::io::Result<Child>> = None;
    let mut has_ended = false;
    let is_interrupted = interrupt::listen();
    let bar = output.progress("sampling", lasts.map_or(0, Span::as_nanos));
    let started = std::cell::RefCell::new(&mut child);
    let profile = live.run(
        || {
            if args.command.is_empty() {
                return None;
            }
            let spawned = command.spawn();
            let pid = spawned.as_ref().ok().map(Child::id);
            **started.borrow_mut() = Some(spawned);
            pid
        },
        &mut |elapsed| {
            bar.set_position(elapsed.as_nanos().min(lasts.map_or(u64::MAX, Span::as_nanos)));
            has_ended |= match &mut **started.borrow_mut() {
                Some(Ok(child)) => child.try_wait().is_ok_and(|status| status.is_some()),
                Some(Err(_)) => true,
                None => false,
            };
            let is_over = has_ended || is_interrupted();
            if is_over { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        },
    );
    bar.finish_and_clear();
    if let Some(Err(error)) = child {
        let program = args.command.first().map_or("", String::as_str);
        return Err(CommandError::from(error).context(format!("{program} cannot be started")));
    }
    Ok(profile?)
}

fn scope(args: &ProfileArgs) -> Result<ProfileScope, CommandError> {
    if let Some(selector) = args.group.selector() {
        return Ok(ProfileScope::Cgroup(find_group_of_this_host(&Root::default(), &selector)?));
    }
    if let Some(gone) = args.pid.iter().find(|pid| !Path::new(&format!("/proc/{pid}")).exists()) {
        bail!("there is no process {gone}");
    }
    let is_host = args.pid.is_empty() && args.command.is_empty();
    Ok(if is_host { ProfileScope::Host } else { ProfileScope::Processes(args.pid.clone()) })
}
