//! `memtide record --install` and `--uninstall`: the recorder as a systemd service. Both print what they do, are
//! idempotent, and change no unit that memtide did not write.

use std::path::{Path, PathBuf};
use std::process::Command;

use units::{Bytes, Span};

use super::unit::{MARK, SystemdInstance, SystemdUnit};
use crate::cli::RecordArgs;
use crate::command_error::{CommandError, ErrorContext, bail};
use crate::exit::Exit;
use crate::output::Output;

const NAME: &str = "memtide.service";
/// sd_booted(3): systemd runs if this directory exists.
const BOOTED: &str = "/run/systemd/system";

pub(super) fn install(args: &RecordArgs, output: &Output) -> Result<Exit, CommandError> {
    let service = Service::of_caller()?;
    let unit = SystemdUnit {
        owner: service.owner,
        program: std::env::current_exe().context("cannot find the path of this program")?,
        directory: super::directory(args)?,
        options: options(args),
    };
    let text = unit.text();
    if args.dry_run {
        output.print(&format!("# {}\n{text}", service.path.display()))?;
        for step in service.steps_to_install() {
            output.note(&format!("would run: {}", step.join(" ")));
        }
        warn_of_places(&unit, output);
        warn_of_profiles(&unit, output);
        if let Err(error) = needs_systemd() {
            output.warn(&format!("--install would fail: {error}"));
        }
        return Ok(Exit::Ok);
    }
    needs_systemd()?;
    let known = service.ours()?;
    warn_of_others(&unit, output);
    warn_of_places(&unit, output);
    warn_of_profiles(&unit, output);
    store::ensure_recording(&unit.directory)
        .with_context(|| format!("cannot make {}", unit.directory.display()))?;
    if known.as_deref() != Some(text.as_str()) {
        service.write(&text)?;
    }
    for step in service.steps_to_install() {
        run(&step)?;
    }
    let change = match known {
        None => "installed",
        Some(known) if known == text => "was installed already",
        Some(_) => "changed",
    };
    output.note(&format!(
        "{} {change}; {NAME} records into {}, now and at every start",
        service.path.display(),
        unit.directory.display()
    ));
    output.note("memtide record --status shows its state");
    Ok(Exit::Ok)
}

pub(super) fn uninstall(dry_run: bool, output: &Output) -> Result<Exit, CommandError> {
    let service = Service::of_caller()?;
    let path = service.path.display();
    if service.ours()?.is_none() {
        output.note(&format!("{path} does not exist; nothing to remove"));
        return Ok(Exit::Ok);
    }
    let before = service.systemctl(&["disable", "--now", NAME]);
    let after = service.systemctl(&["daemon-reload"]);
    if dry_run {
        output.note(&format!("would run: {}", before.join(" ")));
        output.note(&format!("would remove: {path}"));
        output.note(&format!("would run: {}", after.join(" ")));
        return Ok(Exit::Ok);
    }
    needs_systemd()?;
    run(&before)?;
    std::fs::remove_file(&service.path).with_context(|| format!("cannot remove {path}"))?;
    run(&after)?;
    output.note(&format!("{path} is removed; the recording stays where it is"));
    Ok(Exit::Ok)
}

/// A unit's file and the systemd instance that runs it.
struct Service {
    owner: SystemdInstance,
    path: PathBuf,
}

impl Service {
    /// Returns the system's service for root, else the user's own.
    fn of_caller() -> Result<Self, CommandError> {
        if probe::host_facts::user_is_root() {
            let path = Path::new("/etc/systemd/system").join(NAME);
            return Ok(Self { owner: SystemdInstance::System, path });
        }
        let config = config_home().context(
            "neither $HOME nor $XDG_CONFIG_HOME is set: there is no place for a user's unit",
        )?;
        Ok(Self { owner: SystemdInstance::User, path: config.join("systemd/user").join(NAME) })
    }

    /// Returns the text of the installed unit, if memtide wrote it.
    fn ours(&self) -> Result<Option<String>, CommandError> {
        let path = self.path.display();
        match std::fs::read_to_string(&self.path) {
            Ok(text) if text.starts_with(MARK) => Ok(Some(text)),
            Ok(_) => {
                bail!("{path} was not written by memtide and is unchanged; move it away first")
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error).with_context(|| format!("cannot read {path}")),
        }
    }

    fn write(&self, text: &str) -> Result<(), CommandError> {
        let path = &self.path;
        let directory = path.parent().unwrap_or(Path::new("/"));
        std::fs::create_dir_all(directory)
            .and_then(|()| std::fs::write(path, text))
            .with_context(|| format!("cannot write {}", path.display()))
    }

    fn systemctl(&self, arguments: &[&str]) -> Vec<String> {
        let user = (self.owner == SystemdInstance::User).then_some("--user");
        let words = ["systemctl"].into_iter().chain(user);
        words.chain(arguments.iter().copied()).map(str::to_owned).collect()
    }

    /// Uses `restart`, not `start`, so that a running service takes the new unit.
    fn steps_to_install(&self) -> Vec<Vec<String>> {
        vec![
            self.systemctl(&["daemon-reload"]),
            self.systemctl(&["enable", NAME]),
            self.systemctl(&["restart", NAME]),
        ]
    }
}

fn needs_systemd() -> Result<(), CommandError> {
    if !Path::new(BOOTED).is_dir() {
        bail!(
            "systemd does not run here ({BOOTED} does not exist), so there is no service to \
             install or remove; nothing was changed. `memtide record` records in the foreground, \
             under any supervisor"
        );
    }
    Ok(())
}

fn run(step: &[String]) -> Result<(), CommandError> {
    let Some((program, arguments)) = step.split_first() else {
        return Ok(());
    };
    let line = step.join(" ");
    let done = Command::new(program).args(arguments).output();
    let done = done.with_context(|| format!("cannot run `{line}`"))?;
    if !done.status.success() {
        let stderr = String::from_utf8_lossy(&done.stderr).trim().to_owned();
        bail!("`{line}` failed: {stderr}");
    }
    Ok(())
}

/// Warns if another user could replace this program, which root will run.
fn warn_of_others(unit: &SystemdUnit, output: &Output) {
    use std::os::unix::fs::MetadataExt;
    let is_others = |path: &Path| {
        std::fs::metadata(path).is_ok_and(|meta| meta.uid() != 0 || meta.mode() & 0o022 != 0)
    };
    if unit.owner == SystemdInstance::System && unit.program.ancestors().any(is_others) {
        output.warn(&format!(
            "{} or a directory above it is owned or writable by another user than root, who could \
             replace the program that root runs; install memtide into /usr/local/bin",
            unit.program.display()
        ));
    }
}

/// Warns if this kernel gives samples only to CAP_SYS_ADMIN, which the service does not have: Debian's and Ubuntu's do.
fn warn_of_profiles(unit: &SystemdUnit, output: &Output) {
    let level = std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").unwrap_or_default();
    let is_strict = level.trim().parse::<i32>().is_ok_and(|level| level > 2);
    if is_strict && unit.takes_profiles() {
        output.warn(&format!(
            "--profile-when will get no samples while kernel.perf_event_paranoid is {}; \
             `sysctl -w kernel.perf_event_paranoid=2` gives them to the service",
            level.trim()
        ));
    }
}

/// Warns of what would end the recorder unintentionally.
fn warn_of_places(unit: &SystemdUnit, output: &Output) {
    if let Some(why) = does_not_stay(&unit.program) {
        output.warn(&format!(
            "the service would run {}, which {why}; install memtide into /usr/local/bin first",
            unit.program.display()
        ));
    }
    if unit.owner == SystemdInstance::User {
        output.note(
            "a user's service ends when that user logs out, unless `loginctl enable-linger` was \
             run once",
        );
    }
}

/// Returns why a program may be missing at the next start.
fn does_not_stay(program: &Path) -> Option<&'static str> {
    let is_below = |places: &[&str]| places.iter().any(|place| program.starts_with(place));
    if is_below(&["/tmp", "/var/tmp", "/dev/shm", "/run"]) {
        Some("lies in a directory that is cleaned automatically")
    } else if is_below(&["/home", "/root"]) {
        Some("lies in a home directory, which may not be mounted at boot")
    } else {
        None
    }
}

/// Returns the options that differ from the defaults.
fn options(args: &RecordArgs) -> Vec<String> {
    let mut options = Vec::new();
    let mut push = |name: &str, value: String| options.extend([name.to_owned(), value]);
    let span = |span: Span| format!("{}ms", span.as_nanos() / 1_000_000);
    if args.every != Span::from_secs(1) {
        push("--every", span(args.every));
    }
    if let Some(processes) = args.processes {
        push("--processes", span(processes));
    }
    if args.keep != Span::from_hours(14 * 24) {
        push("--keep", span(args.keep));
    }
    if args.keep_size != Bytes::from_gib(2) {
        push("--keep-size", args.keep_size.get().to_string());
    }
    if args.sync != Span::from_secs(5) {
        push("--sync", span(args.sync));
    }
    if let Some((name, value)) = args.followed.option() {
        push(name, super::unit::word(value));
    }
    if let Some(condition) = &args.profile_when {
        push("--profile-when", super::unit::word(&condition.to_string()));
    }
    if let Some(every) = args.check {
        push("--check", span(every));
    }
    if let Some(command) = &args.on_finding {
        push("--on-finding", super::unit::word(command));
    }
    if let Some(timeout) = args.on_finding_timeout {
        push("--on-finding-timeout", span(timeout));
    }
    for name in &args.explain {
        push("--explain", super::unit::word(name));
    }
    if let Some(every) = args.explain_every {
        push("--explain-every", span(every));
    }
    if args.no_processes {
        options.push("--no-processes".to_owned());
    }
    if args.no_cgroups {
        options.push("--no-cgroups".to_owned());
    }
    options
}

/// Returns the user's configuration directory: `$XDG_CONFIG_HOME` or `~/.config`.
fn config_home() -> Option<PathBuf> {
    let config = std::env::var_os("XDG_CONFIG_HOME").map(PathBuf::from);
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let absolute = |path: &PathBuf| path.is_absolute();
    config.filter(absolute).or_else(|| {
        let home = home.filter(absolute)?;
        Some(home.join(".config"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_may_be_gone_at_the_next_start_is_warned_of() {
        for (program, expected) in [
            ("/tmp/memtide", true),
            ("/home/u/bin/memtide", true),
            ("/usr/local/bin/memtide", false),
            ("/tmpfs/memtide", false),
        ] {
            let is_refused = does_not_stay(Path::new(program)).is_some();
            assert_eq!(is_refused, expected, "{program}");
        }
    }
}
