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
