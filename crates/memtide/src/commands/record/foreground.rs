//! Records until SIGTERM or Ctrl-C: connects sampler, housekeeper and store.

use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::sync_channel;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use probe::{Root, TaskSource, host_facts};
use recorder_status::RecorderSettings;
use sampler::{
    Control, Health, HeapPlan, HeapWatch, Housekeeper, INBOX, Recorder, RecordingState, Settings,
    memory_lock, privilege,
};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;
use store::{Cut, HostIdentity, Writer, WriterOptions};
use timeline::Facts;
use units::{Quantity, Span};

use super::checks::hook::HookPlan;
use super::checks::{self, CheckPlan};
use super::status_line::StatusLine;
use super::{followed, profiles};
use crate::cli::{RecordArgs, TasksBy};
use crate::command_error::{CommandError, ErrorContext};
use crate::exit::Exit;
use crate::output::Output;

pub(super) fn run(
    args: &RecordArgs,
    processes: Option<Span>,
    directory: &Path,
    output: &Output,
) -> Result<Exit, CommandError> {
    let control = Control::default();
    listen(&control).context("cannot listen for signals")?;
    let health = Arc::new(Health::default());
    // Threads inherit privileges, so this precedes them.
    let mut privileges = privilege::claim();
    let root = Root::default();
    let (identity, facts) = host(&root);
    let writer = Writer::open(directory, &identity, &facts, options(args))?;
    if let Some(cut) = writer.before() {
        output.warn(&cut_short(directory, cut));
    }
    if let Some(who) = writer.exposed() {
        output.warn(&format!("{who}, and so rename or remove {}", directory.display()));
    }
    let recording = RecordingState {
        settings: recorder_settings(args, processes)?,
        memtide: env!("CARGO_PKG_VERSION").to_owned(),
        monitor: writer.monitor(),
    };
    let (outbox, inbox) = sync_channel(INBOX);
    let settings = settings(args, processes);
    let mut recorder = Recorder::new(&root, writer, settings, Arc::clone(&health), inbox);
    if let Some(selector) = args.followed.selector() {
        let found = answers::find_group_of_this_host(&root, &selector);
        let found = found
            .inspect_err(|error| output.warn(&format!("{error}; it is read once it is there")));
        followed::start(&root, selector, found.ok(), outbox.clone())
            .context("cannot start a thread")?;
    }
    if let Some(condition) = &args.profile_when {
        let command = own_command(&["record", "--take-profile"]);
        let command = command.context("cannot find the path of this program")?;
        profiles::start(condition.clone(), command, outbox.clone())
            .context("cannot start a thread")?;
    }
    if let Some(plan) = check_plan(args, directory)? {
        checks::start(plan, Arc::clone(&health), outbox.clone())
            .context("cannot start a thread")?;
    }
    if let Some(plan) = heap_plan(args, processes)? {
        let heaps = HeapWatch::start(plan, Arc::clone(&health));
        recorder = recorder.with_heaps(heaps.context("cannot start a thread")?);
    }
    // Memory is locked when all is open: locked pages stay, and what opening used for a moment must not.
    privileges.insert(0, memory_lock::lock_memory());
    health.set_privileges(privileges);
    let status_line = StatusLine::start(args, directory, &recording, &health, &control, output);
    let housekeeper = Housekeeper::start(&root, facts, recording, Arc::clone(&health), outbox)
        .context("cannot start a thread")?;
    let ended = recorder.run(&control);
    housekeeper.stop();
    status_line.stop(ended.is_ok());
    ended?;
    Ok(Exit::Ok)
}

/// Returns a warning that the last recorder was cut short; the recording also has an event of it.
fn cut_short(directory: &Path, Cut { last }: Cut) -> String {
    let at = last.wall;
    let at = at.and_then(|at| Timestamp::from_nanosecond(at.unix_nanos().into()).ok());
    let after = at.map_or_else(String::new, |at| {
        let at = at.to_zoned(TimeZone::system());
        format!("; its last sample is of {}", at.strftime("%Y-%m-%d %H:%M:%S"))
    });
    format!(
        "{}: the previous recorder was killed or the machine went down{after}",
        directory.display()
    )
}

fn settings(args: &RecordArgs, processes: Option<Span>) -> Settings {
    Settings {
        every: args.every,
        processes,
        source: args.tasks.map(|tasks| match tasks {
            TasksBy::Bpf => TaskSource::Bpf,
            TasksBy::Proc => TaskSource::Proc,
        }),
        groups: args.cgroups_every(processes),
        ..Settings::default()
    }
}

/// SIGTERM and Ctrl-C end the recorder in good order, a second Ctrl-C at once; SIGHUP seals what is recorded so far.
fn listen(control: &Control) -> std::io::Result<()> {
    // In this order each Ctrl-C is checked before it sets the flag, so only the second one ends memtide at once.
    let pressed = Arc::new(AtomicBool::new(false));
    flag::register_conditional_shutdown(SIGINT, 128 + SIGINT, Arc::clone(&pressed))?;
    flag::register(SIGINT, pressed)?;
    flag::register(SIGINT, Arc::clone(&control.stop))?;
    flag::register(SIGTERM, Arc::clone(&control.stop))?;
    flag::register(SIGHUP, Arc::clone(&control.seal))?;
    control.stop.store(false, Ordering::Relaxed);
    Ok(())
}

/// Returns this host's identity and facts.
fn host(root: &Root) -> (HostIdentity, Facts) {
    let mut facts = Facts::default();
    host_facts::read(root, probe::now().boot, &mut facts);
    facts.hostname = host_facts::hostname(root);
    (answers::this_host::identity(root), facts)
}

fn options(args: &RecordArgs) -> WriterOptions {
    let sealer = own_command(&["record", "--seal"]);
    WriterOptions {
        keep: args.keep,
        keep_size: args.keep_size,
        sync_every: args.sync,
        every: args.every,
        sealer,
        ..WriterOptions::default()
    }
}

/// Returns a command of this program. One that is replaced while it runs keeps its path, and the new program can do the
/// old one's work.
fn own_command(arguments: &[&str]) -> Option<Vec<OsString>> {
    let program = std::env::current_exe().ok()?.into_os_string();
    let arguments = arguments.iter().map(OsString::from);
    Some(std::iter::once(program).chain(arguments).collect())
}

/// Returns how the recording is checked; `None` if it is not.
fn check_plan(args: &RecordArgs, directory: &Path) -> Result<Option<CheckPlan>, CommandError> {
    let Some(every) = args.check else {
        return Ok(None);
    };
    let command = |option: &str, value: OsString| {
        let mut command =
            own_command(&["record"]).context("cannot find the path of this program")?;
        // Whatever the value begins with, it is no option.
        let mut option = OsString::from(option);
        option.push("=");
        option.push(value);
        command.push(option);
        Ok::<_, CommandError>(command)
    };
    let hook = args.on_finding.as_ref().map(|typed| {
        let command = command("--run-hook", typed.into())?;
        Ok::<_, CommandError>(HookPlan { command, timeout: args.hook_timeout() })
    });
    let before = sampler::status::read(directory).and_then(|status| status.checks);
    Ok(Some(CheckPlan {
        command: command("--judge", directory.into())?,
        every,
        hook: hook.transpose()?,
        active: before.map(|checks| checks.active).unwrap_or_default(),
    }))
}

/// Returns which malloc heaps are read, and how; `None` if none are.
fn heap_plan(args: &RecordArgs, processes: Option<Span>) -> Result<Option<HeapPlan>, CommandError> {
    if args.explain.is_empty() {
        return Ok(None);
    }
    let mut command =
        own_command(&["record", "--read-heaps"]).context("cannot find the path of this program")?;
    let names = args.explain.iter();
    command.extend(names.map(|name| format!("--explain={name}").into()));
    let every = args.heaps_every(processes)?;
    Ok(Some(HeapPlan { command, every }))
}

fn recorder_settings(
    args: &RecordArgs,
    processes: Option<Span>,
) -> Result<RecorderSettings, CommandError> {
    let heaps_every = args.heaps_every(processes)?;
    let sampled = settings(args, processes);
    Ok(RecorderSettings {
        every_s: args.every.as_f64(),
        processes_s: processes.map(Span::as_secs_f64),
        cgroups_s: sampled.groups.map(Span::as_secs_f64),
        cgroups_cpu_share: sampled.groups.map(|_| sampled.share_of_group_scans().get()),
        keep_s: args.keep.as_f64(),
        keep_size_bytes: args.keep_size.get(),
        sync_s: args.sync.as_f64(),
        heaps_of: args.explain.clone(),
        follows: args.followed.selector().map(|selector| selector.to_string()),
        profiles_when: args.profile_when.as_ref().map(ToString::to_string),
        checks_s: args.check.map(Span::as_secs_f64),
        on_finding: args.on_finding.clone(),
        heaps_s: (!args.explain.is_empty()).then(|| heaps_every.as_secs_f64()),
    })
}
