//! `memtide job`: a plan, real commands watched as this user and by trace points, and what goes wrong.

use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use crate::support::{folded, json, memtide, root, stderr, stdout};

fn example() -> String {
    root().join("docs/examples/backup.toml").display().to_string()
}

/// A directory of this test on a disk: files of a tmpfs are in memory anyway.
fn directory(name: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("job-{name}"));
    let _ = std::fs::remove_dir_all(&path);
    std::fs::create_dir_all(&path).unwrap();
    path
}

/// Watches a shell script; the answer is written beside, as the script has standard output to itself.
fn watched(name: &str, method: &str, script: &str) -> (Output, serde_json::Value) {
    let answer = directory(name).join("answer.json");
    let path = answer.display().to_string();
    let arguments = ["job", "--watch", method, "--format", "json", "--output", &path, "--"];
    let output = memtide(&[&arguments[..], &["sh", "-c", script]].concat());
    let text = std::fs::read_to_string(&answer).unwrap_or_default();
    (output, serde_json::from_str(&text).unwrap_or_default())
}

/// Whether the kernel can be traced here; where tests must not be skipped, it has to.
fn can_trace() -> bool {
    let output = memtide(&["job", "--watch", "trace", "--", "true"]);
    let can = output.status.success();
    if !can {
        assert_ne!(std::env::var("CI").as_deref(), Ok("true"), "{}", stderr(&output));
        #[allow(clippy::print_stderr)] // a skipped test says why
        {
            eprintln!("skipped: {}", stderr(&output));
        }
    }
    can
}

#[test]
fn the_backup_of_the_example_needs_no_ram_but_a_pipe() {
    let output = memtide(&["job", "--plan", &example()]);
    assert_eq!(output.status.code(), Some(0));
    let text = folded(&output);
    for says in [
        "tar, then gzip: 31 GiB of I/O in 5:17 at 100 MiB/s with a cache of 200 MiB.",
        "One step: 11 GiB of I/O instead of 31 GiB in 1:53, with any cache.",
        "From 11 to 20 GiB of cache on the job reads up to 10 GiB less from the disk",
    ] {
        assert!(text.contains(says), "{text}");
    }
    assert!(stdout(&output).lines().all(|line| line.chars().count() <= 80));
    let report = json(&memtide(&["job", "--plan", &example(), "--format", "json"]));
    assert_eq!(report["schema"], "memtide-job/1");
    let row = &report["variants"][0]["rows"][0];
    assert_eq!(row["seconds"].as_f64().map(f64::round), Some(317.0));
    let schema = std::fs::read_to_string(root().join("docs/job.schema.json")).unwrap();
    let schema = serde_json::from_str(&schema).unwrap();
    assert!(jsonschema::validator_for(&schema).unwrap().is_valid(&report));
}

#[test]
fn a_plan_with_an_error_is_refused_with_its_place() {
    let plan = directory("bad-plan").join("bad.toml");
    for (text, says) in [
        (
            "[[step]]\nname = \"tar\"\nread = [\"logs\"]\n",
            "step `tar`: the size of `logs` is not known",
        ),
        ("[[step]]\nreads = [\"logs\"]\n", "line 2"),
        ("", "it has no [[step]]"),
    ] {
        std::fs::write(&plan, text).unwrap();
        let output = memtide(&["job", "--plan", plan.to_str().unwrap()]);
        assert_eq!(output.status.code(), Some(3));
        assert!(stderr(&output).contains(says), "{}", stderr(&output));
    }
    let output = memtide(&["job", "--plan", "/nowhere.toml"]);
    assert!(
        stderr(&output).contains("cannot read /nowhere.toml: No such file or directory"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn a_command_that_cannot_be_started_is_an_error() {
    let output = memtide(&["job", "--watch", "files", "--", "/no/such/program"]);
    assert_eq!(output.status.code(), Some(3));
    assert!(stderr(&output).contains("cannot start `/no/such/program`"), "{}", stderr(&output));
    assert_eq!(memtide(&["job"]).status.code(), Some(3), "no command");
}

#[test]
fn as_any_user_the_sum_is_exact_and_the_coverage_is_in_the_answer() {
    let place = directory("files-data");
    let file = place.join("data").display().to_string();
    let script = format!("head -c 30000000 /dev/urandom > {file}; sleep 0.1; cat {file}; exit 4");
    let (output, report) = watched("files", "files", &script);
    assert_eq!(output.stdout.len(), 30_000_000, "the command has its standard output");
    let seen = &report["seen"];
    assert_eq!((&seen["touch_source"], &seen["end"]["exited"]), (&"open-files".into(), &4.into()));
    let io = &seen["io"];
    assert!(io["write_bytes"].as_u64() >= Some(29_900_000), "{io}");
    assert!(io["rchar_bytes"].as_u64() >= Some(60_000_000), "{io}");
    assert!(seen["coverage"].as_f64() <= Some(1.0));
    let schema = std::fs::read_to_string(root().join("docs/job.schema.json")).unwrap();
    let schema = serde_json::from_str(&schema).unwrap();
    assert!(jsonschema::validator_for(&schema).unwrap().is_valid(&report));
}

#[test]
fn by_trace_points_each_page_and_its_program_are_seen() {
    if !can_trace() {
        return;
    }
    let place = directory("trace-data");
    let at = place.display();
    let script = format!(
        "head -c 20000000 /dev/urandom > {at}/data; cat {at}/data > {at}/copy; rm {at}/data; \
         cat {at}/copy > /dev/null"
    );
    let (_, report) = watched("trace", "trace", &script);
    assert_eq!(report["seen"]["touch_source"], "trace", "{report}");
    let job = &report["variants"][0];
    let files = job["files"].as_array().unwrap();
    let file = |name: &str| {
        files.iter().find(|file| file["name"].as_str().is_some_and(|path| path.ends_with(name)))
    };
    let copy = file("/copy").unwrap_or_else(|| panic!("{files:?}"));
    // A shell may become its last command, and opens each file that its commands write: neither is a reader or a writer.
    assert_eq!(
        (&copy["readers"], &copy["writers"]),
        (&serde_json::json!(["cat"]), &serde_json::json!(["cat"]))
    );
    let pages = |bytes: u64| bytes.div_ceil(4096) * 4096;
    assert_eq!(copy["read_bytes"], pages(20_000_000));
    let removed = files.iter().find(|file| !file["lived_seconds"].is_null()).unwrap();
    assert_eq!(removed["written_bytes"], pages(20_000_000));
    assert_eq!(
        (&removed["readers"], &removed["writers"]),
        (&serde_json::json!(["cat"]), &serde_json::json!(["head"]))
    );
}

/// The kernel counts no child of a process that ignores SIGCHLD.
#[test]
fn what_no_account_has_is_noticed() {
    let place = directory("reaped-data");
    let file = place.join("data");
    std::fs::write(&file, vec![1; 30_000_000]).unwrap();
    let file = file.display();
    // Written back and dropped from the cache, so that it is read from the disk.
    let script = format!(
        "sync {file}; dd if={file} iflag=nocache count=0 status=none; \
         perl -e '$SIG{{CHLD}}=\"IGNORE\"; if (!fork) {{ exec \"sh\", \"-c\", \
         \"sleep 0.1; cat {file} >/dev/null; sleep 0.1\" }} sleep 1'"
    );
    let (_, report) = watched("reaped", "best", &script);
    if report["seen"]["touch_source"] == "trace" {
        assert!(
            report["seen"]["uncounted_bytes"].as_u64() >= Some(25_000_000),
            "{}",
            report["seen"]
        );
    }
}

#[test]
fn what_still_runs_when_the_command_ends_is_counted_and_left_alone() {
    let begun = Instant::now();
    let script = "sleep 3 </dev/null >/dev/null 2>&1 & exit 0";
    let (_, report) = watched("daemon", "files", script);
    assert!(begun.elapsed() < Duration::from_secs(3));
    assert_eq!(report["seen"]["still_running"], 1);
}

/// Whatever ends memtide, the kernel traces nothing afterwards, and the command goes on.
#[test]
fn killed_it_leaves_no_trace_behind() {
    if !can_trace() {
        return;
    }
    let mut killed = Command::new(env!("CARGO_BIN_EXE_memtide"))
        .args(["job", "--watch", "trace", "--", "sleep", "2.25"])
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    std::thread::sleep(Duration::from_millis(500));
    let name = format!("memtide-job-{}", killed.id());
    let guards = || {
        let lists = std::fs::read_dir("/proc").unwrap().flatten();
        let lines = lists.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
        lines.filter(|line| String::from_utf8_lossy(line).contains(&name)).count()
    };
    assert_eq!(guards(), 1);
    killed.kill().unwrap();
    killed.wait().unwrap();
    // The guard ends only when the instance is gone, or after five seconds of trying.
    let begun = Instant::now();
    while guards() > 0 {
        assert!(begun.elapsed() < Duration::from_secs(3), "the instance cannot be removed");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A memory cgroup (v1) of a test with some below it; `None` where this user or host cannot have one.
struct Groups(PathBuf);

impl Groups {
    fn make(name: &str, limit: u64, below: &[&str]) -> Option<Self> {
        let top = format!("/sys/fs/cgroup/memory/memtide-it-{name}-{}", std::process::id());
        let groups = Self(top.into());
        std::fs::create_dir(&groups.0).ok()?;
        std::fs::write(groups.0.join("memory.limit_in_bytes"), limit.to_string()).unwrap();
        below.iter().for_each(|below| std::fs::create_dir(groups.0.join(below)).unwrap());
        Some(groups)
    }

    /// A shell that joins the cgroup before its script.
    fn shell(&self, group: &str, script: &str) -> Command {
        let door = self.0.join(group).join("cgroup.procs");
        let mut command = Command::new("sh");
        command.args(["-c", &format!("echo 0 > {}; {script}", door.display())]);
        command
    }
}

impl Drop for Groups {
    fn drop(&mut self) {
        std::thread::sleep(Duration::from_millis(300));
        let below = std::fs::read_dir(&self.0).into_iter().flatten().flatten();
        below.filter(|entry| entry.path().is_dir()).for_each(|entry| {
            let _ = std::fs::remove_dir(entry.path());
        });
        let _ = std::fs::remove_dir(&self.0);
    }
}

fn read_bytes(pid: u32) -> u64 {
    read_bytes_of(&std::fs::read_to_string(format!("/proc/{pid}/io")).unwrap())
}

fn read_bytes_of(text: &str) -> u64 {
    let line = text.lines().find(|line| line.starts_with("read_bytes")).unwrap();
    line.split(' ').nth(1).unwrap().parse().unwrap()
}

/// A neighbour that reads its files again and again beside a job, in cgroups within one limit: what it had to read again is
/// what its own account has.
#[test]
fn harm_to_a_neighbour_is_what_its_own_account_has() {
    let Some(groups) = Groups::make("harm", 96 << 20, &["neighbour", "job"]) else { return };
    let place = directory("harm-data");
    let (theirs, big) = (place.join("theirs"), place.join("big"));
    std::fs::write(&theirs, vec![1; 60 << 20]).unwrap();
    std::fs::write(&big, vec![2; 300 << 20]).unwrap();
    let evict = |path: &std::path::Path| {
        let path = path.display();
        let line = format!("sync {path}; dd if={path} iflag=nocache count=0 status=none");
        assert!(Command::new("sh").args(["-c", &line]).status().unwrap().success());
    };
    evict(&theirs);
    evict(&big);
    // One process: the account of a child is in it only when that has ended.
    let script = format!(
        "exec perl -e 'while (1) {{ open(F, \"<\", \"{}\"); while (sysread(F, $_, 1 << 20)) {{}} close F; \
         select(undef, undef, undef, 0.1) }}'",
        theirs.display()
    );
    let mut neighbour = groups.shell("neighbour", &script).spawn().unwrap();
    let begun = Instant::now();
    while read_bytes(neighbour.id()) < 60 << 20 && begun.elapsed() < Duration::from_secs(20) {
        std::thread::sleep(Duration::from_millis(50));
    }
    let answer = place.join("answer.json");
    // It reads only between the two readings of its account, however long memtide watches before and after.
    let id = neighbour.id();
    assert!(Command::new("kill").args(["-STOP", &id.to_string()]).status().unwrap().success());
    let account = |name: &str| format!("cat /proc/{id}/io > {}", place.join(name).display());
    let job = format!(
        "exec {} job --watch files --format json --output {} -- \
         sh -c '{}; kill -CONT {id}; cat {big}; cat {big}; kill -STOP {id}; {}'",
        env!("CARGO_BIN_EXE_memtide"),
        answer.display(),
        account("before"),
        account("after"),
        big = big.display()
    );
    let status = groups.shell("job", &job).stdout(Stdio::null()).status().unwrap();
    let kept = |name: &str| read_bytes_of(&std::fs::read_to_string(place.join(name)).unwrap());
    let measured = kept("after") - kept("before");
    neighbour.kill().unwrap();
    neighbour.wait().unwrap();
    assert!(status.success());
    let report: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(answer).unwrap()).unwrap();
    let others = report["seen"]["others"].as_array().unwrap();
    let group = others
        .iter()
        .find(|group| group["cgroup"].as_str().is_some_and(|path| path.ends_with("/neighbour")));
    let printed = group.map_or(0, |group| group["reread_bytes"].as_u64().unwrap());
    assert!(measured > 20 << 20, "{measured}: the neighbour lost nothing");
    assert!(
        printed.abs_diff(measured) * 100 <= measured * 15,
        "printed {printed}, measured {measured}: {others:?}"
    );
    assert_eq!(group.unwrap()["readers"][0]["name"], "perl");
}

#[test]
fn a_process_that_runs_already_is_watched_until_it_ends() {
    let place = directory("pid-data");
    let file = place.join("data");
    std::fs::write(&file, vec![1; 20 << 20]).unwrap();
    let script = format!("sleep 1; cat {} > {}", file.display(), place.join("copy").display());
    let mut job = Command::new("sh").args(["-c", &script]).spawn().unwrap();
    let pid = job.id().to_string();
    let reaper = std::thread::spawn(move || job.wait());
    let output = memtide(&["job", "--pid", &pid, "--format", "json"]);
    let _ = reaper.join();
    let report = json(&output);
    let seen = &report["seen"];
    assert_eq!((&seen["end"], &seen["is_attached"]), (&"ended".into(), &true.into()));
    if seen["touch_source"] == "trace" {
        assert!(report["variants"][0]["curve"]["footprint_bytes"].as_u64() >= Some(40 << 20));
    }
    let output = memtide(&["job", "--pid", &pid]);
    assert_eq!(output.status.code(), Some(3));
    assert!(stderr(&output).contains(&format!("nothing runs of process {pid}")));
}

/// Both remedies leave nothing behind, and the command does its work with each.
#[test]
fn a_remedy_is_tried_beside_the_command_as_it_is() {
    let Some(_) = Groups::make("can", 1 << 30, &[]) else { return };
    let place = directory("verify-data");
    let (file, copy) = (place.join("data"), place.join("copy"));
    std::fs::write(&file, vec![1; 40 << 20]).unwrap();
    let prepare = format!("rm -f {}", copy.display());
    let (from, to) = (format!("if={}", file.display()), format!("of={}", copy.display()));
    let output = memtide(&[
        "job",
        "--verify-hint",
        "fadvise",
        "--verify-hint",
        "command=exit 3",
        "--blocks",
        "2",
        "--prepare",
        &prepare,
        "--format",
        "json",
        "--",
        "dd",
        &from,
        &to,
        "bs=1M",
        "status=none",
    ]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let report = json(&output);
    let left = |way: usize| {
        let values = report["ways"][way]["values"].as_array().unwrap();
        values.iter().find(|one| one["metric"] == "left_behind").unwrap()["median"].as_f64()
    };
    assert!(left(0) >= Some(f64::from(60 << 20)), "{report}");
    assert!(left(1) <= Some(f64::from(4 << 20)), "{report}");
    assert_eq!(report["ways"][2]["fault"], "exit code 3");
    let bad = memtide(&["job", "--verify-hint", "magic", "--", "true"]);
    assert!(stderr(&bad).contains("`magic` is no hint: write fadvise"), "{}", stderr(&bad));
    let fails = memtide(&["job", "--verify-hint", "fadvise", "--blocks", "2", "--", "false"]);
    assert!(stderr(&fails).contains("exit code 1 as it is"), "{}", stderr(&fails));
}

#[test]
fn a_recording_needs_to_know_which_job() {
    let output = memtide(&["job", "--unit", "backup.service", "/nowhere"]);
    assert_eq!(output.status.code(), Some(3));
    assert!(stderr(&output).contains("cannot read /nowhere"), "{}", stderr(&output));
    assert_eq!(memtide(&["job", "/nowhere"]).status.code(), Some(3));
}
