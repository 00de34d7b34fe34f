//! Containers are asked for by their names when they and their state files are gone: in a recording, a capture, and what
//! is made of them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use probe::Root;

use crate::record::{Group, Running, is_root, lacks, skip, until};
use crate::support::{folded, memtide, stderr};

/// A container as Docker makes it: a cgroup of the v1 memory controller, and a state file.
struct DockerContainer {
    group: Group,
    state: PathBuf,
}

impl DockerContainer {
    /// Makes one with this first digit of its id.
    fn make(docker: &Group, var_lib: &Path, digit: &str, name: &str) -> Self {
        let id = digit.repeat(64);
        let group = docker.make_within(&id, "16777216").unwrap();
        let state = var_lib.join("docker/containers").join(&id);
        fs::create_dir_all(&state).unwrap();
        let config = format!(r#"{{"ID":"{id}","Name":"/{name}"}}"#);
        fs::write(state.join("config.v2.json"), config).unwrap();
        Self { group, state }
    }
}

impl Drop for DockerContainer {
    /// The cgroup goes after it.
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.state);
    }
}

/// A process in a cgroup.
struct Sleeper(std::process::Child);

impl Sleeper {
    fn start(group: &Group) -> Self {
        let script = "echo $$ > \"$0/cgroup.procs\" && exec sleep 60";
        let mut sleep = Command::new("sh");
        let child = sleep.args(["-c", script]).arg(group.path()).spawn();
        Self(child.unwrap())
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Takes a capture of a host with another directory in the place of `/var/lib`.
fn capture(var_lib: &Path, to: &Path) {
    let script = "mount --bind \"$0\" /var/lib && exec \"$@\"";
    let taken = Command::new("unshare")
        .args(["--mount", "sh", "-c", script])
        .arg(var_lib)
        .args([env!("CARGO_BIN_EXE_memtide"), "capture", "--for", "1s", "-o"])
        .arg(to)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(taken.status.success(), "{}", stderr(&taken));
}

fn can_make_containers() -> bool {
    if !is_root() {
        skip("making a cgroup needs root: run the tests as root");
        return false;
    }
    let unshare = Command::new("unshare").args(["--mount", "true"]).output();
    if !unshare.is_ok_and(|answer| answer.status.success()) {
        skip("this user may not make mount namespaces");
        return false;
    }
    true
}

const WEB: &str = "web (docker aaaaaaaaaaaa)";

fn assert_is_found(source: &str) {
    let check = folded(&memtide(&["check", source, "--container", "web"]));
    assert!(check.contains(WEB), "{source}: {check}");
}

fn assert_is_in_the_table(source: &str, at: &str) {
    let table = memtide(&["where", source, "--by", "container", "--at", at]);
    let (text, why) = (folded(&table), stderr(&table));
    assert!(text.contains(WEB), "{source}: {text}{why}");
}

#[test]
fn a_container_that_is_gone_is_found_by_its_name() {
    if !can_make_containers() {
        return;
    }
    let outer = match Group::make("names", "67108864") {
        Ok(group) => group,
        Err(why) => return skip(&format!("{why}: mount the v1 memory controller")),
    };
    let docker = outer.make_within("docker", "67108864").unwrap();
    let place = tempfile::tempdir().unwrap();
    let at = |name: &str| place.path().join(name);
    let (var_lib, recording, captured) = (at("var-lib"), at("rec"), at("capture.jsonl"));
    fs::create_dir(&var_lib).unwrap();
    let has_log = probe::kmsg::KernelLog::open(&Root::default()).is_ok();

    let web = DockerContainer::make(&docker, &var_lib, "a", "web");
    let sleeper = Sleeper::start(&web.group);
    let began = Instant::now();
    let running = Running::with_var_lib(&var_lib, &recording, &[]);
    let is_kept = |name: &str| {
        let names = fs::read_to_string(recording.join("names.jsonl"));
        names.is_ok_and(|names| names.contains(&format!("\"name\":\"{name}\"")))
    };
    until("the name of web", || is_kept("web"));
    capture(&var_lib, &captured);
    if has_log {
        // Gone before the next scan of all cgroups: only the kernel's report names it.
        let batch = DockerContainer::make(&docker, &var_lib, "b", "batch");
        batch.group.have_one_killed();
        until("the name of batch", || is_kept("batch"));
    } else {
        lacks("the kernel log may not be read here");
    }
    // Cgroups are read every ten seconds, and only two readings say how often.
    std::thread::sleep(Duration::from_secs(14).saturating_sub(began.elapsed()));
    let while_it_ran = jiff::Timestamp::now().to_string();
    drop(sleeper);
    drop(web);
    assert_eq!(running.end().status.code(), Some(0));

    let path = |path: &Path| path.to_str().unwrap().to_owned();
    let (recording, captured) = (path(&recording), path(&captured));
    let (converted, again) = (path(&at("converted.jsonl")), path(&at("again")));
    for made in [
        memtide(&["convert", &recording, "-o", &converted]),
        memtide(&["record", "--from", &converted, "--to", &again]),
    ] {
        assert!(made.status.success(), "{}", stderr(&made));
    }
    for source in [&recording, &captured, &converted, &again] {
        assert_is_found(source);
    }
    // A converted sample of the busiest cgroups has no others.
    for source in [&recording, &captured] {
        assert_is_in_the_table(source, &while_it_ran);
    }
    let unknown = memtide(&["check", &recording, "--container", "wbe"]);
    assert!(stderr(&unknown).contains("the nearest are"), "{}", stderr(&unknown));
    if has_log {
        let killed = folded(&memtide(&["check", &recording, "--container", "batch"]));
        assert!(killed.contains("batch (docker bbbbbbbbbbbb)"), "{killed}");
        assert!(killed.contains("oom-cgroup"), "{killed}");
    }
}
