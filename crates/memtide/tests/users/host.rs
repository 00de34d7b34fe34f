//! The machine: its users, its containers, and commands that end in time.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The recording of the system's recorder.
pub(crate) const RECORDING: &str = "/var/lib/memtide";
/// The slice of al that his systemd may divide.
pub(crate) const OF_AL: &str = "/sys/fs/cgroup/user.slice/user-1000.slice/user@1000.service";
/// Longer than any command takes under emulation: what takes longer hangs.
pub(crate) const HANGS: Duration = Duration::from_secs(90);

/// What a command printed.
pub(crate) struct Answer {
    /// `None` where it hung, or a signal ended it.
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
    pub(crate) took: Duration,
}

impl Answer {
    /// In short, for a line of the score.
    pub(crate) fn short(&self) -> String {
        let text: String = format!("{} {}", self.out, self.err);
        let text: Vec<&str> = text.split_whitespace().collect();
        let text: String = text.join(" ").chars().take(200).collect();
        format!("code {:?} after {:.1} s: {text}", self.code, self.took.as_secs_f64())
    }
}

/// Runs a command, and ends it where it hangs.
pub(crate) fn run(command: &mut Command) -> Answer {
    let place = tempfile::tempdir().unwrap();
    let file = |name: &str| fs::File::create(place.path().join(name)).unwrap();
    let mut child =
        command.stdin(Stdio::null()).stdout(file("out")).stderr(file("err")).spawn().unwrap();
    let began = Instant::now();
    let code = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status.code();
        }
        if began.elapsed() > HANGS {
            let _ = child.kill();
            // One that waits for a file system does not end before that.
            break None;
        }
        std::thread::sleep(Duration::from_millis(50));
    };
    let text = |name: &str| {
        let text = fs::read(place.path().join(name)).unwrap_or_default();
        String::from_utf8_lossy(&text).into_owned()
    };
    Answer { code, out: text("out"), err: text("err"), took: began.elapsed() }
}

/// A command of root.
pub(crate) fn root(words: &[&str]) -> Answer {
    run(Command::new(words[0]).args(&words[1..]))
}

/// A command of al, outside his slice until his systemd starts something.
pub(crate) fn of_al(words: &[&str]) -> Command {
    let mut command = Command::new("runuser");
    command
        .args(["-u", "al", "--", "env", "HOME=/home/al", "XDG_RUNTIME_DIR=/run/user/1000"])
        .args(words)
        .current_dir("/");
    command
}

/// A script that al runs as a service of his systemd. It must succeed.
#[track_caller]
pub(crate) fn al(script: &str) -> Answer {
    let words =
        ["systemd-run", "--user", "--pipe", "--wait", "--collect", "--quiet", "sh", "-euc", script];
    let answer = run(&mut of_al(&words));
    assert_eq!(answer.code, Some(0), "al cannot {script}: {}", answer.short());
    answer
}

/// A service of al's systemd that goes on.
pub(crate) struct AlService {
    unit: String,
    /// A cgroup that it made for itself.
    group: Option<PathBuf>,
}

impl AlService {
    /// Starts this program as a part of al.
    #[track_caller]
    pub(crate) fn start(name: &str, part: &[&str]) -> Self {
        let unit = format!("--unit={name}");
        // Not in his home, where he may have mounted something.
        let words = [
            "systemd-run",
            "--user",
            "--collect",
            "--quiet",
            "-p",
            "WorkingDirectory=/",
            &unit,
            "/job/users",
            "al",
        ];
        let answer = run(&mut of_al(&[&words[..], part].concat()));
        assert_eq!(answer.code, Some(0), "{name}: {}", answer.short());
        Self { unit: name.to_owned(), group: None }
    }
}

/// A cgroup of a container below al's slice, with a process in it.
#[track_caller]
pub(crate) fn group_of_al(path: &str) -> AlService {
    let group = format!("{OF_AL}/{path}");
    let unit: String = path.chars().filter(char::is_ascii_alphanumeric).collect();
    let mut service = AlService::start(&format!("stay-{unit}"), &["stay", &group]);
    service.group = Some(PathBuf::from(&group));
    let is_there =
        || fs::read_to_string(format!("{group}/cgroup.procs")).is_ok_and(|pids| !pids.is_empty());
    assert!(until(Duration::from_secs(30), is_there).is_some(), "al has no {group}");
    service
}

impl Drop for AlService {
    fn drop(&mut self) {
        run(&mut of_al(&["systemctl", "--user", "kill", "-s", "KILL", &self.unit]));
        // An empty cgroup is a container, too, and so are those around it.
        for group in self.group.iter().flat_map(|group| group.ancestors()) {
            let is_within = group != Path::new(OF_AL) && group.starts_with(OF_AL);
            if !is_within
                || until(Duration::from_secs(5), || fs::remove_dir(group).is_ok()).is_none()
            {
                break;
            }
        }
    }
}

/// A process that was started and is ended with its test.
pub(crate) struct Started(Child);

impl Started {
    pub(crate) fn by(command: &mut Command) -> Self {
        let quiet = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Self(quiet.spawn().unwrap())
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// An id of 64 digits, each the same.
pub(crate) fn id(digit: char) -> String {
    digit.to_string().repeat(64)
}

/// Names a container of root, as Docker does.
pub(crate) fn docker_names(id: &str, name: &str) {
    let state = Path::new("/var/lib/docker/containers").join(id);
    fs::create_dir_all(&state).unwrap();
    let config = format!(r#"{{"ID":"{id}","Name":"/{name}"}}"#);
    fs::write(state.join("config.v2.json"), config).unwrap();
}

/// A container of root: a scope of the host's systemd with a process that holds memory.
pub(crate) fn container_of_root(id: &str, name: &str, size: &str) -> Started {
    docker_names(id, name);
    let unit = format!("--unit=docker-{id}.scope");
    let words =
        ["--scope", "--quiet", &unit, "-p", "MemoryMax=200M", "memtide", "lab", "hog", size];
    let started = Started::by(Command::new("systemd-run").args(words));
    let group = format!("/sys/fs/cgroup/system.slice/docker-{id}.scope");
    assert!(until(Duration::from_secs(60), || Path::new(&group).exists()).is_some(), "{group}");
    started
}

/// A cgroup of root with a sleeping process, named as a container is: quicker than a scope.
pub(crate) struct GroupOfRoot {
    group: PathBuf,
    _sleep: Started,
}

impl GroupOfRoot {
    pub(crate) fn make(id: &str, name: &str) -> Self {
        docker_names(id, name);
        let group = Path::new("/sys/fs/cgroup/system.slice").join(format!("docker-{id}.scope"));
        fs::create_dir(&group).unwrap();
        // It enters before it starts: memory stays charged to the cgroup that it was taken in, and an owner without any has
        // no row.
        let enter = r#"echo $$ > "$0/cgroup.procs"; exec sleep 3600"#;
        let sleep = Started::by(Command::new("sh").args(["-c", enter]).arg(&group));
        let is_in =
            || fs::read_to_string(group.join("cgroup.procs")).is_ok_and(|pids| !pids.is_empty());
        assert!(until(Duration::from_secs(30), is_in).is_some(), "{group:?} is empty");
        Self { group, _sleep: sleep }
    }
}

impl Drop for GroupOfRoot {
    fn drop(&mut self) {
        let _ = self._sleep.0.kill();
        let _ = self._sleep.0.wait();
        until(Duration::from_secs(5), || fs::remove_dir(&self.group).is_ok());
    }
}

/// Waits for something; how long that took, or `None`.
pub(crate) fn until(max: Duration, mut is_so: impl FnMut() -> bool) -> Option<Duration> {
    let began = Instant::now();
    loop {
        if is_so() {
            return Some(began.elapsed());
        }
        if began.elapsed() > max {
            return None;
        }
        std::thread::sleep(Duration::from_millis(200));
    }
}
