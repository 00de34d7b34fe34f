//! Commands in real cgroups: limits, kills, what is counted, and what is left after every kind of end.

#![allow(clippy::print_stderr, clippy::unwrap_used)]

use std::io::{BufRead as _, BufReader};
use std::ops::ControlFlow;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use probe::{OwnCgroups, Root};
use rustix::process::{Pid, Signal, geteuid, kill_process};
use sampler::{
    CgroupRun, CgroupRunError, CgroupRunOptions, GroupLimits, GroupReading, RunEnd, RunPeak,
    run_in_cgroup,
};
use timeline::facts::CgroupMode;
use timeline::signals::{CGROUP_ANON, CGROUP_CURRENT, CGROUP_EVENTS_MAX};
use units::{Bytes, Limit, Span};

const NAME: &str = "memtide-test-run";
const GOES_ON: ControlFlow<()> = ControlFlow::Continue(());

/// Whether cgroups can be made here; where tests must not be skipped, they have to be.
fn has_groups() -> bool {
    let why = if !geteuid().is_root() {
        "making a cgroup needs root: run the tests as root"
    } else if let Err(error) = run("true", GroupLimits::default()) {
        &format!("no cgroup can be made here: {error}")
    } else {
        return true;
    };
    assert_ne!(std::env::var("CI").as_deref(), Ok("true"), "{why}");
    eprintln!("skipped: {why}");
    false
}

fn shell(script: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", script]).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

fn options(limits: GroupLimits) -> CgroupRunOptions {
    CgroupRunOptions { name: NAME, limits, every: Span::from_millis(20) }
}

fn run(script: &str, limits: GroupLimits) -> Result<CgroupRun, CgroupRunError> {
    run_in_cgroup(shell(script), &options(limits), &mut |_| GOES_ON)
}

fn of_memory(mib: u64) -> GroupLimits {
    let (memory, swap) = (Some(Bytes::from_mib(mib)), Some(Bytes::new(0)));
    GroupLimits { memory, swap, ..GroupLimits::default() }
}

/// Whether a process is there that is no zombie.
fn is_alive(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(')')
        .next()
        .and_then(|rest| rest.split_whitespace().next())
        .is_some_and(|s| s != "Z")
}

fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < Duration::from_secs(20), "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// The cgroups of runs by this process with a name that begins so.
fn groups_named(start: &str) -> Vec<PathBuf> {
    let own = OwnCgroups::find(&Root::default()).unwrap();
    let beside = own.memory.parent().map(Path::to_owned);
    let parents = [Some(own.memory), beside, own.cpuacct, own.freezer];
    let entries = parents.into_iter().flatten().flat_map(std::fs::read_dir).flatten().flatten();
    let name = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().into_owned();
    entries.map(|entry| entry.path()).filter(|path| name(path).starts_with(start)).collect()
}

/// A file to which a script writes PIDs, one a line.
struct PidFile(tempfile::NamedTempFile);

impl PidFile {
    fn new() -> Self {
        Self(tempfile::NamedTempFile::new().unwrap())
    }

    fn path(&self) -> String {
        self.0.path().display().to_string()
    }

    fn pids(&self) -> Vec<u32> {
        let text = std::fs::read_to_string(self.0.path()).unwrap();
        text.lines().filter_map(|line| line.trim().parse().ok()).collect()
    }
}

#[test]
fn a_limit_binds_and_a_kill_at_it_is_reported() {
    if !has_groups() {
        return;
    }
    let grow = "x=0123456789abcdef; while :; do x=$x$x; done";
    let run = run(grow, of_memory(24)).unwrap();
    assert_eq!(run.limits.memory, Limit::Bytes(Bytes::from_mib(24)));
    assert_eq!(run.end, RunEnd::Signalled(9));
    assert_eq!(run.was_oom_killed(), Some(true));
    let peak = run.peak.unwrap();
    assert!(matches!(peak, RunPeak::Counted(_) | RunPeak::Sampled(_)));
    assert!(peak.bytes() <= Bytes::from_mib(24) && peak.bytes() > Bytes::from_mib(8), "{peak:?}");
    assert!(!run.group.exists(), "{}", run.group.display());
}

#[test]
fn hits_of_a_limit_are_counted() {
    if !has_groups() {
        return;
    }
    // Without a limit of swap: where that is none, v1 counts no hits on some kernels.
    let limits = GroupLimits { swap: None, ..of_memory(24) };
    let run = run("head -c 60000000 /dev/zero | tail -c 60000000", limits).unwrap();
    assert!(run.last.row.get(CGROUP_EVENTS_MAX).unwrap().get() > 0, "{:?}", run.end);
}

#[test]
fn a_command_within_its_limit_ends_as_it_would_and_has_its_code() {
    if !has_groups() {
        return;
    }
    let calm = run("exit 7", of_memory(64)).unwrap();
    assert_eq!(
        (calm.end, calm.was_oom_killed(), calm.left_over),
        (RunEnd::Exited(7), Some(false), 0)
    );
    let ended = run("kill -TERM $$", GroupLimits::default()).unwrap();
    assert_eq!((ended.end, ended.limits.memory), (RunEnd::Signalled(15), Limit::Unlimited));
}

#[test]
fn children_of_children_are_counted_in_memory_and_cpu_time() {
    if !has_groups() {
        return;
    }
    // tail keeps what it is to print: 32 MB.
    let script = "sh -c 'sh -c \"head -c 32000000 /dev/zero | tail -c 32000000 >/dev/null\"'";
    let mut readings: Vec<GroupReading> = Vec::new();
    let run = run_in_cgroup(shell(script), &options(GroupLimits::default()), &mut |now| {
        readings.push(now.reading.clone());
        GOES_ON
    });
    let run = run.unwrap();
    assert_eq!(run.end, RunEnd::Exited(0));
    assert!(run.peak.unwrap().bytes() > Bytes::new(30_000_000), "{:?}", run.peak);
    assert!(run.last.cpu.is_some_and(|cpu| cpu > Span::from_millis(1)), "{:?}", run.last.cpu);
    assert!(run.wall >= readings.last().unwrap().at);
    let first = &readings[0].row;
    assert!(first.get(CGROUP_CURRENT).is_some() && first.get(CGROUP_ANON).is_some());
}

#[test]
fn what_a_command_leaves_running_is_ended() {
    if !has_groups() {
        return;
    }
    let file = PidFile::new();
    let script = format!(
        "exec >{}; setsid sleep 1000 & echo $!; sh -c 'setsid sh -c \"echo \\$\\$; sleep 1000 & \
         echo \\$!; wait\" & wait' & echo $!; sleep 0.2; exit 3",
        file.path()
    );
    let run = run(&script, GroupLimits::default()).unwrap();
    let pids = file.pids();
    assert_eq!((run.end, pids.len()), (RunEnd::Exited(3), 4), "{pids:?}");
    assert_eq!(run.left_over, 4);
    until("all are ended", || !pids.iter().any(|pid| is_alive(*pid)));
    assert!(!run.group.exists());
}

#[test]
fn many_processes_and_groups_that_a_command_makes_are_ended_too() {
    if !has_groups() {
        return;
    }
    let own = OwnCgroups::find(&Root::default()).unwrap();
    let path = match own.mode {
        CgroupMode::V1 => "sed -n s/^.*:memory://p",
        CgroupMode::V2 => "sed -n s/^0:://p",
    };
    let script = format!(
        "g={}$({path} /proc/self/cgroup); mkdir $g/inner $g/inner/most && echo $$ \
         >$g/inner/most/cgroup.procs || exit 9; i=0; while [ $i -lt 200 ]; do sleep 1000 & \
         i=$((i+1)); done",
        own.mount.display()
    );
    let begun = Instant::now();
    let run = run(&script, GroupLimits::default()).unwrap();
    assert_eq!((run.end, run.left_over), (RunEnd::Exited(0), 200));
    assert!(!run.group.exists());
    eprintln!("200 processes were started and ended in {:?}", begun.elapsed());
}

#[test]
fn a_callback_that_breaks_ends_the_run_and_one_that_panics_leaves_nothing() {
    if !has_groups() {
        return;
    }
    let mut readings = 0;
    let stopped = run_in_cgroup(shell("sleep 1000"), &options(of_memory(64)), &mut |_| {
        readings += 1;
        if readings == 3 { ControlFlow::Break(()) } else { GOES_ON }
    });
    let stopped = stopped.unwrap();
    assert_eq!((stopped.end, readings), (RunEnd::Stopped, 3));
    assert!(stopped.wall < Span::from_secs(10) && !stopped.group.exists());

    let file = PidFile::new();
    let script = format!("exec >{}; echo $$; sleep 1000 & echo $!; wait", file.path());
    let options = CgroupRunOptions { name: "memtide-test-panic", ..options(of_memory(64)) };
    let panicked = std::panic::catch_unwind(|| {
        run_in_cgroup(shell(&script), &options, &mut |_| {
            let has_started = file.pids().len() == 2;
            assert!(!has_started, "the callback of a test panics");
            GOES_ON
        })
    });
    assert!(panicked.is_err());
    until("all are ended", || !file.pids().iter().any(|pid| is_alive(*pid)));
    assert_eq!(groups_named("memtide-test-panic"), Vec::<PathBuf>::new());
}

#[test]
fn readings_follow_the_beat_and_cost_little() {
    if !has_groups() {
        return;
    }
    let readings_of = |every| {
        let mut at = Vec::new();
        let options = CgroupRunOptions { every, ..options(of_memory(64)) };
        let before = probe::thread_cpu();
        let run = run_in_cgroup(shell("sleep 0.5"), &options, &mut |now| {
            at.push(now.reading.at);
            GOES_ON
        });
        (at, run.unwrap().wall, (probe::thread_cpu() - before).as_secs_f64() * 1e6)
    };
    let (few, _, base) = readings_of(Span::from_secs(10));
    let (at, wall, micros) = readings_of(Span::from_millis(10));
    assert_eq!(few.len(), 1);
    assert!(at.is_sorted() && (10..=60).contains(&at.len()), "{at:?}");
    assert!(wall >= Span::from_millis(500) && wall < Span::from_secs(5), "{wall}");
    let each = (micros - base) / (at.len() - few.len()) as f64;
    eprintln!("a run takes {base:.0} µs of CPU here, and {each:.0} µs for each reading");
    assert!(each < 1_000.0, "{each} µs");
}

#[test]
fn what_cannot_be_run_is_an_error_that_says_so() {
    if !has_groups() {
        return;
    }
    let start = "memtide-test-error";
    let named = CgroupRunOptions { name: start, ..options(GroupLimits::default()) };
    let absent = Command::new("/nowhere/at/all");
    let error = run_in_cgroup(absent, &named, &mut |_| GOES_ON).unwrap_err();
    let error = timeline::with_causes(&error);
    assert!(error.starts_with("cannot run /nowhere/at/all: No such file"), "{error}");

    let own = OwnCgroups::find(&Root::default()).unwrap();
    let high = GroupLimits { high: Some(Bytes::from_mib(16)), ..GroupLimits::default() };
    let limited = run_in_cgroup(
        shell("exit"),
        &CgroupRunOptions { limits: high, ..named.clone() },
        &mut |_| GOES_ON,
    );
    match (own.mode, limited) {
        (CgroupMode::V1, limited) => {
            assert_eq!(limited.unwrap_err().to_string(), "there is no memory.high on this host");
        }
        (CgroupMode::V2, limited) => {
            assert_eq!(limited.unwrap().limits.high, Some(Limit::Bytes(Bytes::from_mib(16))));
        }
    }
    assert_eq!(groups_named(start), Vec::<PathBuf>::new());
}

/// The environment variable that makes the test below run a command and be killed.
const CALLER: &str = "MEMTIDE_TEST_CALLER";

#[test]
fn plays_the_caller() {
    let Ok(part) = std::env::var(CALLER) else {
        return;
    };
    let script = "cat /proc/self/cgroup; sleep 1000 & echo pid $!; echo pid $$; echo ready; wait";
    let mut command = shell(script);
    command.stdout(Stdio::inherit());
    let options = CgroupRunOptions { name: "memtide-test-caller", ..options(of_memory(64)) };
    let ended = run_in_cgroup(command, &options, &mut |now| {
        if part == "aborts" && now.reading.at > Span::from_millis(500) {
            std::process::abort();
        }
        GOES_ON
    });
    eprintln!(
        "ended: {}",
        ended
            .map_err(|e| format!("{} {}", timeline::with_causes(&e), e.help().unwrap_or_default()))
            .unwrap_err()
    );
}

/// This program as a caller.
fn caller(part: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "run_in_cgroup::plays_the_caller", "--nocapture"]).env(CALLER, part);
    command
}

#[test]
fn a_caller_that_is_killed_leaves_neither_processes_nor_groups() {
    if !has_groups() {
        return;
    }
    let own = OwnCgroups::find(&Root::default()).unwrap();
    let prefix = if own.mode == CgroupMode::V1 { ":memory:" } else { "0::" };
    for (part, signal) in [
        ("is interrupted", Some(Signal::INT)),
        ("is terminated", Some(Signal::TERM)),
        ("is killed", Some(Signal::KILL)),
        ("aborts", None),
    ] {
        let mut command = caller(part);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let (mut pids, mut group) = (Vec::new(), None);
        let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        for line in lines.take_while(|line| line != "ready") {
            pids.extend(line.strip_prefix("pid ").and_then(|pid| pid.parse::<u32>().ok()));
            group = group.or(line.split_once(prefix).map(|(_, path)| path.to_owned()));
        }
        let group = own.mount.join(group.unwrap().trim_start_matches('/'));
        assert!(group.exists() && pids.len() == 2, "{part}: {} {pids:?}", group.display());
        if let Some(signal) = signal {
            kill_process(Pid::from_raw(child.id().cast_signed()).unwrap(), signal).unwrap();
        }
        let ended = Instant::now();
        child.wait().unwrap();
        until(part, || !group.exists() && !pids.iter().any(|pid| is_alive(*pid)));
        eprintln!("a caller that {part}: nothing is left after {:?}", ended.elapsed());
        until(part, || groups_named(&format!("memtide-test-caller-{}-", child.id())).is_empty());
    }
}

#[test]
fn without_the_right_to_make_a_cgroup_the_error_names_it_and_says_what_to_do() {
    if !has_groups() {
        return;
    }
    const NOBODY: u32 = 65534;
    // Where this program lies, others may not enter.
    let directory = tempfile::tempdir().unwrap();
    let program = directory.path().join("test");
    std::fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(directory.path(), open).unwrap();
    let mut command = Command::new(&program);
    command.args(["--exact", "run_in_cgroup::plays_the_caller", "--nocapture"]);
    let output = command.env(CALLER, "is nobody").uid(NOBODY).gid(NOBODY).current_dir("/").output();
    let output = output.unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(error.contains("cannot be made: Permission denied"), "{error}");
    assert!(error.contains("systemd-run --user --scope"), "{error}");
}
