//! `memtide trial` with real commands: what is measured, applied, killed, interrupted, refused.

use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use crate::lab::has_machine;
use crate::support::{folded, has, json, memtide, stderr, stdout};

/// A program that keeps so many megabytes until its input ends, and takes some CPU time.
fn keeps(megabytes: u32) -> String {
    format!("head -c {megabytes}000000 /dev/zero | tail -c {megabytes}000000 | sha256sum")
}

/// Whether trials can run here; where tests must not be skipped, they have to.
fn can_run() -> bool {
    let output = trial(&["true", "true", "--blocks", "2"], "probe");
    let is_refused = stderr(&output).contains("cgroup");
    if is_refused {
        assert_ne!(std::env::var("CI").as_deref(), Ok("true"), "{}", stderr(&output));
        #[allow(clippy::print_stderr)] // a skipped test says why
        {
            eprintln!("skipped: {}", stderr(&output));
        }
    }
    !is_refused
}

/// Runs a trial that keeps its runs in a directory of this test.
fn trial(arguments: &[&str], name: &str) -> Output {
    let directory = directory(name);
    let _ = std::fs::remove_dir_all(&directory);
    memtide(&[&["trial", "--directory", &directory], arguments].concat())
}

fn directory(name: &str) -> String {
    let id = std::process::id();
    std::env::temp_dir().join(format!("memtide-test-trial-{id}-{name}")).display().to_string()
}

fn remove(name: &str) {
    let _ = std::fs::remove_dir_all(directory(name));
}

#[test]
fn of_two_commands_the_smaller_one_is_seen_to_be_smaller() {
    if !can_run() {
        return;
    }
    let (large, small) = (keeps(60), keeps(15));
    let output = trial(&[&large, &small, "--blocks", "3", "--format", "json"], "two");
    let report = json(&output);
    let memory = &report["analysis"]["metrics"][0];
    assert_eq!((memory["metric"].as_str(), memory["blocks"].as_u64()), (Some("memory"), Some(3)));
    let effect = &memory["effects"][0];
    assert_eq!(effect["verdict"], "less", "{effect}");
    let baseline = memory["baseline"].as_f64().unwrap();
    assert!((20e6..90e6).contains(&baseline), "{baseline}");
    assert_eq!(output.status.code(), Some(0));
    let shown = memtide(&["trial", "--show", &directory("two")]);
    let text = folded(&shown);
    assert!(text.contains("less memory") || text.contains("KEEP"), "{text}");
    let markdown =
        stdout(&memtide(&["trial", "--show", &directory("two"), "--format", "markdown"]));
    assert!(
        markdown.contains("| variant | memory |") && markdown.contains("| --- | ---: |"),
        "{markdown}"
    );
    let page = stdout(&memtide(&["trial", "--show", &directory("two"), "--format", "html"]));
    assert!(page.contains("<svg") && page.contains("Memory over time"));
    remove("two");
    remove("probe");
}

#[test]
fn a_limit_below_the_need_is_a_result() {
    if !can_run() {
        return;
    }
    let command = keeps(60);
    let output = trial(&[&command, "--vary", "limit=default,20M", "--blocks", "3"], "limit");
    let text = folded(&output);
    assert!(text.contains("limit=20M was killed 3 of 3"), "{text}{}", stderr(&output));
    assert_eq!(output.status.code(), Some(0), "{text}");
    remove("limit");
}

#[test]
fn a_command_that_fails_says_what_it_wrote() {
    if !can_run() {
        return;
    }
    for (command, says) in [
        ("sh -c 'echo no such table >&2; exit 7'", "exited with code 7: no such table"),
        ("kill -9 $$", "ended by signal 9"),
    ] {
        let output = trial(&[command, "true"], "fails");
        assert_eq!(output.status.code(), Some(3), "{}", stdout(&output));
        assert!(folded(&output).contains(says), "{}", folded(&output));
        let shown = memtide(&["trial", "--show", &directory("fails")]);
        assert!(folded(&shown).contains(says), "{}", folded(&shown));
    }
    let output = trial(&["true", "sh -c 'exit 9'", "--blocks", "2"], "other-fails");
    assert!(folded(&output).contains("exited with code 9"), "{}", folded(&output));
    assert_eq!(output.status.code(), Some(3));
    let absent = trial(&["--vary", "arenas=default,1", "--", "/no/such/program"], "absent");
    assert!(
        stderr(&absent).contains("there is no program /no/such/program"),
        "{}",
        stderr(&absent)
    );
    let slow = trial(&["sleep 60", "sleep 60", "--timeout", "300ms"], "slow");
    assert!(folded(&slow).contains("took longer than --timeout"), "{}", folded(&slow));
    for name in ["fails", "other-fails", "absent", "slow"] {
        remove(name);
    }
}

/// `env -u` drops the preload, as sudo and many wrappers do; the program then runs as the baseline and says nothing.
#[test]
fn a_preload_that_a_wrapper_drops_is_seen() {
    if !can_run()
        || !has("python3")
        || !Path::new("/usr/lib/x86_64-linux-gnu/libjemalloc.so.2").exists()
    {
        return;
    }
    let work = "import time; x = [str(i) for i in range(300000)]; time.sleep(0.6)";
    let arguments = ["--vary", "alloc=default,jemalloc", "--blocks", "2", "--format", "json", "--"];
    let kept = trial(&[&arguments[..], &["/usr/bin/python3", "-c", work]].concat(), "kept");
    let report = json(&kept);
    let runs = report["runs"].as_array().unwrap();
    let of = |variant: u64| runs.iter().filter(move |run| run["variant"].as_u64() == Some(variant));
    // Where the host is busy a short run may end before it was seen; what is seen is never another malloc.
    let seen = |variant| of(variant).filter_map(|run| run["processes"][0]["mallocs"][0].as_str());
    assert!(seen(1).count() > 0 && seen(1).all(|malloc| malloc == "jemalloc"), "{runs:#?}");
    assert!(seen(0).count() > 0 && seen(0).all(|malloc| malloc == "ptmalloc (glibc)"), "{runs:#?}");
    assert!(of(1).all(|run| run["applied"].get("no").is_none()));

    let dropped = trial(
        &[&arguments[..], &["env", "-u", "LD_PRELOAD", "/usr/bin/python3", "-c", work]].concat(),
        "dropped",
    );
    let shown = json(&memtide(&["trial", "--show", &directory("dropped"), "--format", "json"]));
    assert_eq!(shown["runs"], json(&dropped)["runs"], "also where a variant dropped out");
    let out = json(&dropped)["analysis"]["variants"][1]["out"].as_str().unwrap().to_owned();
    assert!(out.starts_with("not applied: python3") && out.contains("uses ptmalloc"), "{out}");
    assert_eq!(dropped.status.code(), Some(3));
    remove("kept");
    remove("dropped");
}

/// Each would lead to a wrong choice if it were believed.
#[test]
fn a_choice_respects_budget_operations_and_what_a_wrapper_drops() {
    if !can_run() {
        return;
    }
    let (large, small) = (keeps(40), keeps(30));
    let over = trial(&[&large, &small, "--blocks", "2", "--memory-budget", "5M"], "budget");
    assert!(
        folded(&over).contains("NONE fits") || folded(&over).contains("KEEP"),
        "{}",
        folded(&over)
    );
    assert!(!folded(&over).contains("less memory ("), "{}", folded(&over));

    let counts = format!("{}; echo ops 100 >&$MEMTIDE_FD", keeps(30));
    let report =
        json(&trial(&[&large, &counts, "--blocks", "2", "--format", "json"], "operations"));
    let measure = &report["analysis"]["measure"];
    assert_eq!(measure["is_per_operation"], false, "one of them counts none");
    let text = folded(&memtide(&["trial", "--show", &directory("operations")]));
    assert!(text.contains("Only some runs counted their operations"), "{text}");

    let dropped =
        ["--vary", "FOO=default,1", "--blocks", "2", "--", "env", "-u", "FOO", "sleep", "0.3"];
    let text = folded(&trial(&dropped, "variable"));
    assert!(text.contains("no process has FOO=1 in its environment"), "{text}");
    for name in ["budget", "operations", "variable"] {
        remove(name);
    }
}

#[test]
fn what_was_changed_in_a_directory_is_refused() {
    if !can_run() {
        return;
    }
    trial(&["sleep 0.1", "sleep 0.11", "--blocks", "2"], "changed");
    let place = directory("changed");
    let plan = std::fs::read_to_string(format!("{place}/plan.json")).unwrap();
    let run = std::fs::read_to_string(format!("{place}/runs/000-00.json")).unwrap();
    let shown = || stderr(&memtide(&["trial", "--show", &place]));
    for (from, to, says) in [
        ("\"margin\": 0.05", "\"margin\": -3", "its margin or slowdown is no share"),
        ("\"looks\": [", "\"looks\": [9999,", "its looks are not numbers of blocks"),
        ("memtide-trial-plan/1", "memtide-trial-plan/9", "was written by another memtide"),
        ("\"variants\": [", "\"variants\": 7, \"x\": [", "is damaged"),
    ] {
        std::fs::write(format!("{place}/plan.json"), plan.replace(from, to)).unwrap();
        assert!(shown().contains(says), "{from}: {}", shown());
    }
    std::fs::write(format!("{place}/plan.json"), &plan).unwrap();
    std::fs::write(format!("{place}/runs/000-09.json"), &run).unwrap();
    assert!(shown().contains("is a run of another trial"), "{}", shown());
    std::fs::remove_file(format!("{place}/runs/000-09.json")).unwrap();
    std::fs::write(format!("{place}/runs/000-00.json"), &run[..run.len() / 2]).unwrap();
    assert!(shown().contains("help: remove it, and the run is made again"), "{}", shown());
    remove("changed");
}

/// The cgroups of trials that a process made.
fn groups_of(pid: u32) -> Vec<String> {
    let found = Command::new("find")
        .args(["/sys/fs/cgroup", "-type", "d", "-name", &format!("memtide-trial-{pid}-*")])
        .output()
        .unwrap();
    stdout(&found).lines().map(str::to_owned).collect()
}

#[test]
fn a_trial_that_is_killed_goes_on_where_it_was_and_leaves_nothing() {
    if !can_run() {
        return;
    }
    let command = format!("sleep 0.2; {}", keeps(20));
    let place = directory("killed");
    let _ = std::fs::remove_dir_all(&place);
    let mut child = Command::new(env!("CARGO_BIN_EXE_memtide"))
        .args(["trial", "--directory", &place, "--blocks", "3", &command, &keeps(10)])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let runs = || {
        std::fs::read_dir(format!("{place}/runs")).map_or(0, |files| {
            files
                .flatten()
                .filter(|file| file.path().extension().is_some_and(|e| e == "json"))
                .count()
        })
    };
    let begun = Instant::now();
    while runs() < 2 {
        assert!(begun.elapsed() < Duration::from_secs(60), "no run ended");
        std::thread::sleep(Duration::from_millis(20));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let before = runs();
    assert!((2..9).contains(&before), "{before}");
    let pid = child.id();
    let begun = Instant::now();
    while !groups_of(pid).is_empty() {
        assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", groups_of(pid));
        std::thread::sleep(Duration::from_millis(50));
    }
    let resumed = memtide(&["trial", "--resume", &place, "--format", "json"]);
    let report = json(&resumed);
    assert_eq!(report["analysis"]["blocks"].as_u64(), Some(3), "{}", stderr(&resumed));
    assert_eq!(report["runs"].as_array().unwrap().len(), 9);
    let taken = memtide(&["trial", "--directory", &place, "true", "false"]);
    assert!(stderr(&taken).contains("has a trial already"), "{}", stderr(&taken));
    remove("killed");
}

#[test]
fn what_cannot_be_tried_is_refused_before_a_run() {
    for (arguments, says) in [
        (&["--vary", "speed=9", "--", "true"][..], "there is no key `speed`"),
        (&["--vary", "arenas=two", "--", "true"], "write default, or a number from 1 on"),
        (&["--vary", "malloc.arena_mx=1", "--", "true"], "has no tunable glibc.malloc.arena_mx"),
        (&["--variant", "a=alloc", "--", "true"], "has no `:`"),
        (&[], "there is no command to run"),
        (&["true", "--vary", "alloc=default", "--", "true"], "stands before `--` or behind it"),
        (&["--ready", "port:1", "--load", "x", "true", "false"], "no sign of a ready server"),
        (&["--resume", "/no/such/trial"], "/no/such/trial has no trial"),
        (&["--resume", "/no/such/trial", "--margin", "9"], "cannot be used with"),
        (
            &["--vary", "vm.swappiness=1", "--", "true"],
            "vm.swappiness:1 is a setting of the whole machine",
        ),
        (&["--vary", "swapon=1G", "--", "true"], "write off, disk or zram"),
        (&["--ram", "2G", "true", "false"], "--vm"),
        (&["--plan", "/no/such/plan"], "/no/such/plan cannot be read"),
    ] {
        let output = memtide(&[&["trial"], arguments].concat());
        assert_eq!(output.status.code(), Some(3), "{arguments:?}: {}", stdout(&output));
        assert!(stderr(&output).contains(says), "{arguments:?}: {}", stderr(&output));
    }
    let dry =
        memtide(&["trial", "--dry-run", "--vary", "arenas=default,1,2", "--", "/bin/sleep", "1"]);
    let text = stdout(&dry);
    assert!(text.contains("arenas=2: MALLOC_ARENA_MAX=2 /bin/sleep 1"), "{text}");
    assert!(text.contains("block 3: ") && text.contains("12 to 80 runs"), "{text}");
}

#[test]
fn a_plan_in_a_file_is_the_same_as_typed() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("plan.toml");
    let dry = |text: &str| {
        std::fs::write(&file, text).unwrap();
        memtide(&["trial", "--dry-run", "--plan", &file.display().to_string()])
    };
    let typed = memtide(&[
        "trial",
        "--dry-run",
        "--blocks",
        "4",
        "--vary",
        "arenas=default,1",
        "--variant",
        "two=arenas:2",
        "--no-control",
        "--",
        "/bin/sleep",
        "1",
    ]);
    let of_file = dry(
        "command = ['/bin/sleep', '1']\nblocks = 4\nvary = 'arenas=default,1'\nvariant = ['two=arenas:2']\n\
                       no-control = true\n",
    );
    assert_eq!(stdout(&of_file), stdout(&typed), "{}", stderr(&of_file));
    assert!(stdout(&typed).contains("two: MALLOC_ARENA_MAX=2 /bin/sleep 1"), "{}", stdout(&typed));
    for (text, says) in [
        ("blocks = 1\ncommand = 'true'\n", "invalid value '1' for '--blocks <NUMBER>'"),
        ("speed = 9\n", "unexpected argument '--speed'"),
        ("blocks = [\n", "is no TOML"),
        ("[vary]\narenas = 2\n", "vary is no text or number"),
    ] {
        let output = dry(text);
        assert_eq!(output.status.code(), Some(3), "{text}");
        assert!(stderr(&output).contains(says), "{text}: {}", stderr(&output));
    }
}

/// Each run has a machine with the files of this host, and what it writes there is gone with it.
#[test]
fn a_setting_of_a_whole_machine_is_tried_in_a_virtual_one() {
    if !has_machine() {
        return;
    }
    let written = std::env::temp_dir().join(format!("memtide-written-{}", std::process::id()));
    let command = format!(
        "echo x > {0} && test -s {0} && for i in 1 2 3 4 5 6 7 8 9; do echo ops $((i * $(cat /proc/sys/vm/swappiness))) \
         >&$MEMTIDE_FD; sleep 0.1; done",
        written.display()
    );
    // The working directory is the one of this test.
    let settings = [
        "--vary",
        "vm.swappiness=60,7",
        "--variant",
        "zram=swapon:zram:64M+thp:never",
        "--variant",
        "disk=swapon:disk:64M+vm.page-cluster:0",
        "--prepare",
        "test -f Cargo.toml",
    ];
    let size = ["--vm", "--ram", "320M", "--blocks", "2", "--no-control", "--format", "json"];
    let locks = || std::fs::read_dir("/run/virtiofsd").map_or(0, Iterator::count);
    let before = locks();
    let output = trial(&[&size[..], &settings, &[&command]].concat(), "machine");
    assert_eq!(locks(), before);
    let report = json(&output);
    let runs = report["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 8, "{report}");
    for run in runs {
        assert_eq!(
            (&run["outcome"], &run["applied"]),
            (&"completed".into(), &"yes".into()),
            "{run}"
        );
        let operations = run["speed"]["operations"].as_f64();
        let expected = if run["variant"] == 1 { 63.0 } else { 540.0 };
        assert_eq!(operations, Some(expected), "{run}");
        assert!(run["machine"]["kernel"].as_str().unwrap().contains('.'), "{run}");
    }
    assert_eq!(report["analysis"]["speed_metric"], "time");
    assert!(!written.exists(), "a machine wrote to this host");
    let text = folded(&memtide(&["trial", "--show", &directory("machine")]));
    assert!(text.contains("a virtual machine for each: 2 CPUs, 320 MiB of RAM"), "{text}");
    remove("machine");

    let refused =
        ["--vm", "--ram", "320M", "--blocks", "2", "--vary", "vm.swappiness=60,999", "--", "true"];
    let text = folded(&trial(&refused, "refused"));
    assert!(text.contains("/proc/sys/vm/swappiness does not take 999"), "{text}");
    remove("refused");
    let end = "echo b > /proc/sysrq-trigger; sleep 9";
    let dies = ["--vm", "--ram", "320M", "--blocks", "2", "--vary", "vm.swappiness=60,9", end];
    let text = folded(&trial(&dies, "dies"));
    assert!(text.contains("vm.swappiness=60 its machine died"), "{text}");
    remove("dies");
}

#[test]
fn a_trial_goes_on_only_where_all_of_it_can_still_be_run() {
    if !can_run() {
        return;
    }
    let library = "/usr/lib/x86_64-linux-gnu/libmimalloc.so.2";
    if !Path::new(library).exists() {
        return;
    }
    let place = directory("moved");
    let own = tempfile::tempdir().unwrap();
    let copy = own.path().join("libmimalloc.so.2");
    std::fs::copy(library, &copy).unwrap();
    let variant = format!("mine=alloc:{}", copy.display());
    let limit = ["--blocks", "2", "--variant", &variant, "--", "sleep", "0.2"];
    trial(&limit, "moved");
    std::fs::remove_file(format!("{place}/runs/001-00.json")).unwrap();
    std::fs::remove_file(&copy).unwrap();
    let gone = memtide(&["trial", "--resume", &place]);
    assert!(stderr(&gone).contains("libmimalloc.so.2 is not installed"), "{}", stderr(&gone));
    let plan = std::fs::read_to_string(format!("{place}/plan.json")).unwrap();
    let elsewhere =
        plan.replace("\"host\": {\n    \"name\": \"", "\"host\": {\n    \"name\": \"other-");
    assert_ne!(plan, elsewhere);
    std::fs::copy(library, &copy).unwrap();
    std::fs::write(format!("{place}/plan.json"), elsewhere).unwrap();
    let moved = memtide(&["trial", "--resume", &place]);
    assert!(
        stderr(&moved).contains("it was begun on another machine: other-"),
        "{}",
        stderr(&moved)
    );
    std::fs::write(format!("{place}/plan.json"), plan).unwrap();
    let done = memtide(&["trial", "--resume", &place, "--format", "json"]);
    assert_eq!(json(&done)["runs"].as_array().unwrap().len(), 6, "{}", stderr(&done));
    assert_eq!(json(&done)["end"], "all_blocks");
    remove("moved");
}

#[test]
fn an_interrupt_while_a_run_is_prepared_leaves_a_trial_that_goes_on() {
    if !can_run() {
        return;
    }
    let place = directory("prepared");
    let _ = std::fs::remove_dir_all(&place);
    let own = tempfile::tempdir().unwrap();
    let begun = own.path().join("begun");
    let prepare = format!("touch {}; sleep 60", begun.display());
    let child = Command::new(env!("CARGO_BIN_EXE_memtide"))
        .args([
            "trial",
            "--directory",
            &place,
            "--blocks",
            "2",
            "--prepare",
            &prepare,
            "true",
            "false",
        ])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let started = Instant::now();
    while !begun.exists() {
        assert!(started.elapsed() < Duration::from_secs(30), "it did not begin");
        std::thread::sleep(Duration::from_millis(10));
    }
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(started.elapsed() < Duration::from_secs(30), "it waited for what it prepared");
    let text = folded(&output);
    assert!(text.contains("memtide trial --resume"), "{text}");
    remove("prepared");
}
