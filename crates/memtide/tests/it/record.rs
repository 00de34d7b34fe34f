//! The flight recorder as people run it: started, watched, killed, and started again.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixDatagram;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::support::{folded, has, json, memtide, stderr, stdout};

/// A recorder that is ended with its test.
pub(crate) struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Running {
    fn start(directory: &Path, options: &[&str]) -> Self {
        Self::in_environment(directory, options, &[])
    }

    fn in_environment(directory: &Path, options: &[&str], variables: &[(&str, &str)]) -> Self {
        let child = Command::new(env!("CARGO_BIN_EXE_memtide"))
            .args(["record", "--every", "100ms", "--to"])
            .arg(directory)
            .args(options)
            .env("TZ", "UTC")
            .envs(variables.iter().copied())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        Self(child)
    }

    /// A recorder that sees another directory in the place of `/var/lib`; it needs root.
    pub(crate) fn with_var_lib(var_lib: &Path, directory: &Path, options: &[&str]) -> Self {
        let child = Command::new("unshare")
            .args(["--mount", "sh", "-c"])
            .arg("mount --bind \"$0\" /var/lib && exec \"$@\"")
            .arg(var_lib)
            .args([env!("CARGO_BIN_EXE_memtide"), "record", "--to"])
            .arg(directory)
            .args(options)
            .env("TZ", "UTC")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        Self(child)
    }

    /// As [`start`](Self::start), and waits until it has written its status.
    pub(crate) fn started(directory: &Path, options: &[&str]) -> Self {
        let running = Self::start(directory, options);
        let pid = running.0.id();
        until("the first status", || {
            status(directory)["recorder"]["pid"] == pid && status(directory)["state"] == "running"
        });
        running
    }

    pub(crate) fn signal(&self, name: &str) {
        let kill = ["-c", "kill -\"$0\" \"$1\"", name, &self.0.id().to_string()];
        assert!(Command::new("sh").args(kill).status().unwrap().success());
    }

    /// Ends it in good order.
    pub(crate) fn end(mut self) -> Output {
        self.signal("TERM");
        let code = self.0.wait().unwrap();
        let mut output = Output { status: code, stdout: Vec::new(), stderr: Vec::new() };
        let _ = self.0.stdout.take().unwrap().read_to_end(&mut output.stdout);
        if let Some(mut stderr) = self.0.stderr.take() {
            let _ = stderr.read_to_end(&mut output.stderr);
        }
        output
    }
}

pub(crate) fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < Duration::from_secs(60), "{what} did not come");
        std::thread::sleep(Duration::from_millis(200));
    }
}

pub(crate) fn status(directory: &Path) -> serde_json::Value {
    let directory = directory.to_str().unwrap();
    let output = memtide(&["record", "--status", "--format", "json", "--to", directory]);
    if output.stdout.is_empty() {
        return serde_json::Value::Null;
    }
    json(&output)
}

fn segments(directory: &Path) -> usize {
    let entries = std::fs::read_dir(directory.join("segments"));
    let names = entries.into_iter().flatten().flatten();
    names.filter(|entry| !entry.file_name().to_string_lossy().starts_with('.')).count()
}

pub(crate) fn is_root() -> bool {
    probe::host_facts::user_is_root()
}

/// What no set-up can install: a kernel log that may be read, a systemd.
#[allow(clippy::print_stdout)]
pub(crate) fn lacks(reason: &str) {
    println!("skipped: {reason}");
}

/// Says why a test does not run; on CI it must.
#[allow(clippy::print_stdout)]
pub(crate) fn skip(why: &str) {
    assert_ne!(std::env::var("CI").as_deref(), Ok("true"), "{why}");
    println!("skipped: {why}");
}

#[test]
fn a_recorder_says_where_it_records_and_ends_in_good_order_when_told() {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path().join("made/on/the/way");
    let running = Running::started(&place, &[]);
    let taken = || status(&place)["recorder"]["samples"]["taken"].as_u64();
    until("the first sample", || taken() >= Some(1));
    let answer = status(&place);
    assert_eq!(answer["schema"], "memtide-recorder/1");
    assert_eq!(answer["pid"], running.0.id());
    assert_eq!(answer["recorder"]["settings"]["every_s"], 0.1);
    let output = running.end();
    assert_eq!(output.status.code(), Some(0));
    let begins = format!("recording into {}, the last 14 d or 2 GiB\n", place.display());
    assert_eq!((stdout(&output), stderr(&output)), (String::new(), begins));
    let answer = status(&place);
    assert_eq!(answer["state"], "stopped");
    assert!(answer["recorder"]["samples"]["taken"].as_u64().unwrap() >= 1);
    assert!(answer["recording"]["size_bytes"].as_u64().unwrap() > 0);
}

#[test]
fn a_second_recorder_is_told_who_the_first_is() {
    let directory = tempfile::tempdir().unwrap();
    let first = Running::started(directory.path(), &[]);
    let place = directory.path().to_str().unwrap();
    let second = memtide(&["record", "--to", place]);
    assert_eq!(second.status.code(), Some(3));
    let message = stderr(&second);
    assert!(message.contains(&format!("pid {}", first.0.id())), "{message}");
    assert!(message.contains("help: "), "{message}");
    assert_eq!(first.end().status.code(), Some(0));
}

#[test]
fn what_is_no_place_to_record_into_is_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let theirs = directory.path().join("theirs");
    std::fs::create_dir(&theirs).unwrap();
    std::fs::write(theirs.join("thesis.txt"), "four years of work").unwrap();
    let file = directory.path().join("file");
    std::fs::write(&file, "a file").unwrap();
    for (place, says) in [(&theirs, "thesis.txt"), (&file, "file")] {
        let output = memtide(&["record", "--to", place.to_str().unwrap()]);
        assert_eq!(output.status.code(), Some(3));
        assert!(stderr(&output).contains(says), "{}", stderr(&output));
    }
    assert_eq!(std::fs::read_dir(&theirs).unwrap().count(), 1);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "a file");
}

#[test]
fn a_recorder_that_was_killed_is_told_as_gone_and_the_next_goes_on() {
    let directory = tempfile::tempdir().unwrap();
    let mut first = Running::started(directory.path(), &[]);
    first.0.kill().unwrap();
    first.0.wait().unwrap();
    let place = directory.path().to_str().unwrap();
    let output = memtide(&["record", "--status", "--to", place]);
    assert_eq!(output.status.code(), Some(3));
    assert!(folded(&output).contains("was killed or the machine went down"), "{}", stdout(&output));
    let gone = status(directory.path());
    assert_eq!((&gone["state"], &gone["health"]), (&"gone".into(), &serde_json::Value::Null));
    let second = Running::started(directory.path(), &[]);
    assert_eq!(second.end().status.code(), Some(0));
    assert_eq!(status(directory.path())["state"], "stopped");
}

#[test]
fn sighup_makes_a_segment() {
    let directory = tempfile::tempdir().unwrap();
    let running = Running::started(directory.path(), &[]);
    assert_eq!(segments(directory.path()), 0);
    running.signal("HUP");
    until("a segment", || segments(directory.path()) == 1);
    assert_eq!(running.end().status.code(), Some(0));
}

#[test]
fn what_was_recorded_is_in_files_for_everybody_when_the_recorder_has_ended() {
    let directory = tempfile::tempdir().unwrap();
    let running = Running::started(directory.path(), &[]);
    assert_eq!(running.end().status.code(), Some(0));
    // The one that seals goes on by itself on a slow machine.
    until("the segment", || segments(directory.path()) == 1);
    until("the end of the head", || {
        std::fs::read_dir(directory.path().join("head")).unwrap().count() == 0
    });
    let next = Running::started(directory.path(), &[]);
    assert_eq!(next.end().status.code(), Some(0));
    until("the next segment", || segments(directory.path()) == 2);
    let place = directory.path().to_str().unwrap();
    let checked = memtide(&["check", place]);
    assert!(!stderr(&checked).contains("error"), "{}", stderr(&checked));
}

#[test]
fn systemd_is_told_when_it_is_ready_that_it_lives_and_that_it_ends() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("notify");
    let socket = UnixDatagram::bind(&path).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let word = || {
        let mut bytes = [0; 1024];
        let len = socket.recv(&mut bytes).expect("word within 30 s");
        String::from_utf8_lossy(&bytes[..len]).into_owned()
    };
    let place = directory.path().join("recording");
    let path = path.to_str().unwrap();
    let variables = [("NOTIFY_SOCKET", path), ("WATCHDOG_USEC", "400000")];
    let running = Running::in_environment(&place, &[], &variables);
    let ready = word();
    assert!(ready.starts_with("READY=1\nSTATUS="), "{ready}");
    assert!(ready.contains(" sample") && !ready.contains('\u{1b}'), "{ready}");
    for _ in 0..3 {
        let alive = word();
        assert!(alive.starts_with("WATCHDOG=1\nSTATUS="), "{alive}");
    }
    running.signal("TERM");
    let last = std::iter::repeat_with(word).find(|word| !word.starts_with("WATCHDOG=1"));
    assert_eq!(last.as_deref(), Some("STOPPING=1"));
    assert_eq!(running.end().status.code(), Some(0));
}

/// A small file system of its own, unmounted with its test; `None` where this user may not mount.
struct Small(tempfile::TempDir);

impl Small {
    fn mount(size: &str) -> Option<Self> {
        let place = tempfile::tempdir().unwrap();
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", size, "tmpfs"]).arg(place.path());
        let done = mount.stderr(Stdio::null()).status();
        done.is_ok_and(|status| status.success()).then(|| Self(place))
    }

    /// Mounts it with other options. While a file is open for writing it is busy, and cannot become read-only.
    fn remount(&self, option: &str) {
        let option = format!("remount,{option}");
        let mut mount = Command::new("mount");
        mount.args(["-o", &option]).arg(self.0.path());
        until("another mount", || mount.status().unwrap().success());
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        // At once from here, and for good when the recorder has ended.
        let mut umount = Command::new("umount");
        let _ = umount.arg("--lazy").arg(self.0.path()).status();
    }
}

#[test]
fn a_disk_that_is_full_or_read_only_or_gone_is_told_and_recording_goes_on_when_it_is_not() {
    let Some(disk) = Small::mount("size=3m") else {
        return skip("mounting a tmpfs needs root");
    };
    let place = disk.0.path().join("recording");
    // A supervisor that never listens: it makes the recorder look four times in its time, and must not hold it up.
    let deaf = tempfile::tempdir().unwrap();
    let path = deaf.path().join("notify");
    let _socket = UnixDatagram::bind(&path).unwrap();
    let path = path.to_str().unwrap();
    let variables = [("NOTIFY_SOCKET", path), ("WATCHDOG_USEC", "2000000")];
    let mut running = Running::in_environment(&place, &["--sync", "1s"], &variables);
    let heard = heard(&mut running);
    let told = |what: &str, times: usize| {
        until(what, || heard.lock().unwrap().matches(what).count() >= times);
        let heard = heard.lock().unwrap();
        assert_eq!(heard.matches(what).count(), times, "{what}: {heard}");
    };
    let problem = || status(&place)["recorder"]["disk"]["problem"].clone();
    let written = || status(&place)["recorder"]["disk"]["samples_written"].as_u64();
    until("samples on the disk", || written() > Some(0));
    assert_eq!(status(&place)["health"]["is_healthy"], true);
    running.signal("HUP");
    until("a segment", || segments(&place) == 1);

    let ballast = disk.0.path().join("ballast");
    let fill = || {
        // Behind what is there: emptied first, it would leave room for a moment, and the recorder would take it.
        let mut file = std::fs::File::options();
        let mut file = file.create(true).append(true).open(&ballast).unwrap();
        let _ = std::io::copy(&mut std::io::repeat(1).take(8 << 20), &mut file);
    };
    fill();
    until("word of the full disk", || {
        // What it drops to go on is taken, too.
        fill();
        problem().as_str().is_some_and(|text| text.contains("full"))
    });
    // It is less than what a full disk leaves to a recording.
    assert_eq!(segments(&place), 1, "what little there is stays");
    told("the disk is full", 1);
    std::fs::remove_file(&ballast).unwrap();
    until("the disk to be well", || problem().is_null());

    told("works again", 1);

    disk.remount("ro");
    told("is read-only", 1);
    disk.remount("rw");
    told("works again", 2);

    let before = written();
    until("its removal", || {
        let _ = std::fs::remove_dir_all(&place);
        !place.exists()
    });
    told("the directory is gone", 1);
    std::fs::create_dir(&place).unwrap();
    told("works again", 3);
    until("samples after it came back", || written() > before);
    let output = running.end();
    assert_eq!(output.status.code(), Some(0));
    // Once each, however long it lasts.
    for what in ["the disk is full", "is read-only", "the directory is gone"] {
        told(what, 1);
    }
}

/// What a recorder says on stderr, as it comes.
fn heard(running: &mut Running) -> Arc<Mutex<String>> {
    let heard = Arc::new(Mutex::new(String::new()));
    let (theirs, stderr) = (Arc::clone(&heard), running.0.stderr.take().unwrap());
    std::thread::spawn(move || {
        for line in BufReader::new(stderr).lines().map_while(Result::ok) {
            theirs.lock().unwrap().push_str(&(line + "\n"));
        }
    });
    heard
}

#[test]
fn an_ordinary_user_records_with_less_and_is_told_what_is_missing() {
    if !is_root() {
        return skip("becoming another user needs root; the other tests run as one already");
    }
    let Some(setpriv) = ["/usr/bin/setpriv", "/bin/setpriv"].iter().find(|p| Path::new(p).exists())
    else {
        return skip("setpriv (util-linux) is not installed");
    };
    let directory = tempfile::tempdir().unwrap();
    let open = |path: &Path, mode| {
        std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
    };
    open(directory.path(), 0o777);
    // The build's own place may be closed to others.
    let program = directory.path().join("memtide");
    std::fs::copy(env!("CARGO_BIN_EXE_memtide"), &program).unwrap();
    open(&program, 0o755);
    let place = directory.path().join("recording");
    let child = Command::new(setpriv)
        .args(["--reuid=65534", "--regid=65534", "--clear-groups", "--"])
        .arg(&program)
        .args(["record", "--every", "100ms", "--to"])
        .arg(&place)
        .stderr(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let running = Running(child);
    until("a status", || status(&place)["state"] == "running");
    let absent = || status(&place)["recorder"]["absent"].clone();
    until("what cannot be read", || {
        let absent = absent();
        let files = absent.as_array().into_iter().flatten();
        let mut files = files.filter_map(|file| file["file"].as_str());
        files.any(|file| file == "/proc/slabinfo")
    });
    let output = running.end();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
}

#[test]
fn what_makes_no_sense_is_refused_with_what_would() {
    for (options, says) in [
        (&["--every", "0"][..], "100ms is the least"),
        (&["--every", "10ms"], "100ms is the least"),
        (&["--every", "10s", "--processes", "5s"], "is shorter than"),
        (&["--keep", "1"], "`1` has no unit; write 1d"),
        (&["--keep", "30m"], "1h is the least"),
        (&["--keep-size", "3 gallons"], "is no size"),
        (&["--processes", "20s", "--no-processes"], "cannot be used with"),
        (&["--status", "--install"], "cannot be used with"),
        (&["--dry-run"], "--install or --uninstall"),
        (&["--to", "/proc/nowhere"], "/proc/nowhere"),
    ] {
        let output = memtide(&[&["record"], options].concat());
        assert_eq!(output.status.code(), Some(3), "{options:?}");
        assert!(stderr(&output).contains(says), "{options:?}: {}", stderr(&output));
    }
}

#[test]
fn the_status_of_nothing_is_said_and_is_no_error_in_json() {
    let output = memtide(&["record", "--status", "--to", "/no/such/place"]);
    assert_eq!(output.status.code(), Some(3));
    assert!(stdout(&output).contains("holds no recording"));
    assert_eq!(status(Path::new("/no/such/place"))["state"], "none");
}

#[test]
fn the_unit_is_shown_without_being_written_and_systemd_accepts_it() {
    let output =
        memtide(&["record", "--install", "--dry-run", "--to", "/var/lib/memtide", "--every", "5s"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let unit = stdout(&output);
    assert!(unit.contains("Type=notify") && unit.contains("--every 5000ms"), "{unit}");
    assert!(stderr(&output).contains("would run: systemctl"), "{}", stderr(&output));
    if !has("systemd-analyze") {
        return;
    }
    let said = stderr(&analyzed(&["verify", "--man=no"], &unit));
    let ours: Vec<_> = said.lines().filter(|line| line.contains("memtide.service")).collect();
    assert_eq!(ours, Vec::<&str>::new());
}

/// What systemd-analyze says of a unit.
fn analyzed(arguments: &[&str], unit: &str) -> Output {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("memtide.service");
    std::fs::write(&path, unit).unwrap();
    let mut analyze = Command::new("systemd-analyze");
    analyze.args(arguments).arg(path).output().unwrap()
}

#[test]
fn systemd_rates_the_exposure_of_the_unit_at_2_5_of_10_at_most() {
    if !is_root() {
        return skip("the system's unit is root's");
    }
    if !has("systemd-analyze") {
        return;
    }
    let install = ["record", "--install", "--dry-run"];
    for options in [&[][..], &["--to", "/srv/rec", "--explain", "redis"]] {
        let unit = stdout(&memtide(&[&install, options].concat()));
        let rate = ["security", "--offline=yes", "--threshold=25", "--no-pager"];
        let rated = analyzed(&rate, &unit);
        if stderr(&rated).contains("unrecognized option") {
            return lacks("systemd-analyze rates no unit file before systemd 250");
        }
        assert!(rated.status.success(), "{}{}", stdout(&rated), stderr(&rated));
    }
}

#[test]
fn without_systemd_installing_changes_nothing_and_says_so() {
    if Path::new("/run/systemd/system").is_dir() {
        return skip("systemd runs here, and tests install nothing");
    }
    let output = memtide(&["record", "--install"]);
    assert_eq!(output.status.code(), Some(3));
    assert!(stderr(&output).contains("systemd does not run here"), "{}", stderr(&output));
}

/// A cgroup of its own, of the v1 memory controller, removed with its test.
pub(crate) struct Group(PathBuf);

impl Group {
    pub(crate) fn make(name: &str, limit: &str) -> Result<Self, String> {
        let path = PathBuf::from(format!(
            "/sys/fs/cgroup/memory/memtide-test-{name}-{}",
            std::process::id()
        ));
        Self::at(path, limit)
    }

    /// A cgroup in this one.
    pub(crate) fn make_within(&self, name: &str, limit: &str) -> Result<Self, String> {
        Self::at(self.0.join(name), limit)
    }

    /// A cgroup in this directory.
    pub(crate) fn at(path: PathBuf, limit: &str) -> Result<Self, String> {
        std::fs::create_dir(&path).map_err(|error| format!("no memory cgroup (v1): {error}"))?;
        let group = Self(path);
        let limited = std::fs::write(group.0.join("memory.limit_in_bytes"), limit);
        limited.map_err(|error| error.to_string())?;
        Ok(group)
    }

    /// Its directory.
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// The name of its directory, which is in the kernel's reports.
    pub(crate) fn name(&self) -> String {
        self.0.file_name().unwrap().to_str().unwrap().to_owned()
    }

    /// Has the kernel kill a process in it: a shell with a string that doubles until it fills the cgroup. The shell is alone
    /// there, so the kernel has no other process to kill: its PID.
    pub(crate) fn have_one_killed(&self) -> u32 {
        self.have_one_killed_as("sh")
    }

    /// As [`have_one_killed`](Self::have_one_killed), under this name.
    pub(crate) fn have_one_killed_as(&self, name: &str) -> u32 {
        let script = "printf %s \"$1\" > /proc/$$/comm && echo $$ > \"$0/cgroup.procs\" &&
            x=0123456789abcdef && while :; do x=$x$x; done";
        let mut shell = Command::new("sh");
        let mut child = shell
            .args(["-c", script])
            .arg(&self.0)
            .arg(name)
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let ended = child.wait().unwrap();
        assert_eq!(ended.signal(), Some(9), "{ended:?}");
        child.id()
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // What was killed in it may take a moment to end.
        for _ in 0..100 {
            if std::fs::remove_dir(&self.0).is_ok() {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

#[test]
fn where_bpf_has_no_room_the_recorder_lives_and_says_why() {
    if !is_root() {
        return skip("making a cgroup needs root");
    }
    let group = match Group::make("room", "25165824") {
        Ok(group) => group,
        Err(why) => return skip(&why),
    };
    let directory = tempfile::tempdir().unwrap();
    let script = "echo $$ > \"$0/cgroup.procs\" && exec \"$1\" record --every 100ms --to \"$2\"";
    let child = Command::new("sh")
        .args(["-c", script])
        .arg(&group.0)
        .arg(env!("CARGO_BIN_EXE_memtide"))
        .arg(directory.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let running = Running(child);
    until("how processes are read", || {
        status(directory.path())["recorder"]["tasks_source"].is_string()
    });
    let why = status(directory.path())["recorder"]["why_not_bpf"].clone();
    let way = why.as_str().unwrap_or("by BPF");
    let never = ["CAP_BPF", "PID namespace", "built without"];
    if never.iter().any(|reason| way.contains(reason)) {
        return lacks(way);
    }
    let limit = "of 24 MiB has";
    assert!(way.contains("too little memory to load it") && way.contains(limit), "{way}");
    assert_eq!(running.end().status.code(), Some(0));
}

#[test]
fn what_could_not_be_sealed_is_told_by_the_exit_code() {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path();
    let mut running = Running::started(place, &["--no-processes", "--sync", "1s"]);
    until("a sample on the disk", || !status(place)["recording"]["to"].is_null());
    running.0.kill().unwrap();
    running.0.wait().unwrap();
    let seal = || memtide(&["record", "--seal", place.to_str().unwrap()]);
    // Where segments go, nothing can be written.
    let segments_are = place.join("segments");
    let _ = std::fs::remove_dir_all(&segments_are);
    std::fs::write(&segments_are, "in the way").unwrap();
    let output = seal();
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    assert!(!stderr(&output).is_empty());
    std::fs::remove_file(&segments_are).unwrap();
    let output = seal();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(segments(place), 1);
}

#[test]
fn the_status_shows_which_cgroup_is_read_with_every_sample() {
    let directory = tempfile::tempdir().unwrap();
    let path = "/sys/fs/cgroup/memory/web.slice/";
    let running = Running::started(directory.path(), &["--cgroup", path]);
    assert_eq!(status(directory.path())["recorder"]["settings"]["follows"], "cgroup /web.slice");
    let place = directory.path().to_str().unwrap();
    let shown = memtide(&["record", "--status", "--to", place]);
    assert!(
        stdout(&shown).contains("cgroup /web.slice: with every sample while it is there"),
        "{}",
        stdout(&shown)
    );
    assert_eq!(running.end().status.code(), Some(0));
}

#[test]
fn a_unit_to_follow_that_does_not_run_is_no_reason_to_record_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let running = Running::started(directory.path(), &["--unit", "no-such-unit"]);
    let ended = running.end();
    assert_eq!(ended.status.code(), Some(0));
    assert!(stderr(&ended).contains("`no-such-unit`"), "{}", stderr(&ended));
}

#[test]
fn a_kill_is_kept_with_the_kernels_report() {
    if !is_root() {
        return skip("making a cgroup needs root");
    }
    let group = match Group::make("kill", "16777216") {
        Ok(group) => group,
        Err(why) => return skip(&why),
    };
    let directory = tempfile::tempdir().unwrap();
    let mut running = Running::started(directory.path(), &["--sync", "1s"]);
    let recorder = || status(directory.path())["recorder"].clone();
    if !recorder()["kernel_log"]["problem"].is_null() {
        return lacks("the kernel log may not be read here");
    }
    let reports = || recorder()["kernel_log"]["reports"].as_u64();
    let before = reports();
    group.have_one_killed();
    until("the report", || reports() > before);
    // Killed when the samples of then are on the disk.
    let taken = recorder()["samples"]["taken"].as_u64();
    until("its samples on the disk", || recorder()["disk"]["samples_written"].as_u64() >= taken);
    running.0.kill().unwrap();
    running.0.wait().unwrap();
    // As after a kill within seconds of the report: the next recorder reads the log from its beginning.
    let file = directory.path().join("status.json");
    let text = std::fs::read_to_string(&file).unwrap();
    let mut known: serde_json::Value = serde_json::from_str(&text).unwrap();
    known["kernel_log"]["next"] = serde_json::Value::Null;
    std::fs::write(&file, known.to_string()).unwrap();
    let again = Running::started(directory.path(), &[]);
    until("what the log holds", || {
        status(directory.path())["recorder"]["kernel_log"]["reports"].as_u64() > Some(0)
    });
    assert_eq!(again.end().status.code(), Some(0));
    let recording = store::Recording::open(directory.path()).unwrap();
    let loaded = recording.load(store::Selection::default(), &mut |_| {});
    let name = group.name();
    let kill = |event: &&timeline::Event| {
        event.kind == timeline::EventKind::OomKill && event.report.contains(&name)
    };
    let events = loaded.timeline.recorder_events();
    let kills: Vec<_> = events.iter().filter(kill).collect();
    let [found] = kills.as_slice() else { panic!("{kills:?}") };
    assert!(
        found.report.contains("oom-kill") || found.report.contains("Killed process"),
        "{found:?}"
    );
    assert!(!found.subject.is_empty() && found.text.contains(&name), "{found:?}");
}

#[test]
fn heaps_are_read_while_it_records_and_what_is_not_there_is_told() {
    let mut child = Command::new("sh")
        .args(["-c", "x=$(printf '%900000s'); echo; read x"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = [0];
    child.stdout.as_mut().unwrap().read_exact(&mut line).unwrap();
    let place = tempfile::tempdir().unwrap();
    let directory = place.path().join("rec");
    let pid = child.id().to_string();
    let names = ["--explain", &pid, "--explain", "no-such-name"];
    let options = ["--processes", "1s", "--explain-every", "1s"];
    let running = Running::started(&directory, &[options, names].concat());
    until("the second round", || {
        status(&directory)["recorder"]["heaps"]["rounds"].as_u64() >= Some(2)
    });
    let heaps = status(&directory)["recorder"]["heaps"].clone();
    let problems = heaps["problems"].to_string();
    let ended = running.end();
    drop(child.stdin.take());
    child.wait().unwrap();
    assert!(stderr(&ended).contains("`no-such-name`"), "{}", stderr(&ended));
    assert!(problems.contains("`no-such-name`"), "{problems}");
    if heaps["processes"] == 0 {
        assert!(problems.contains("may not be read"), "{problems}");
        return;
    }
    let copy = place.path().join("copy");
    let [directory, copy] = [&directory, &copy].map(|path| path.to_str().unwrap());
    assert!(memtide(&["record", "--from", directory, "--to", copy]).status.success());
    for recording in [directory, copy] {
        let arguments = ["--format", "csv", "--table", "process", "--signal"];
        let arguments = [&["export", recording][..], &arguments, &["proc.heap_live"]].concat();
        let rows = stdout(&memtide(&arguments));
        let live = rows.lines().filter(|row| row.contains(&format!("{pid}@")));
        assert!(live.clone().any(|row| !row.ends_with(',')), "{recording}: {rows}");
    }
}
