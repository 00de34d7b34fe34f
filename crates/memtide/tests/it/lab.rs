//! `memtide lab`: a scenario is played in a virtual machine, found and scored; what cannot be played says why, and leaves
//! nothing behind.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::LazyLock;

use crate::record::{is_root, lacks, skip};
use crate::support::{has, root};

fn memtide(arguments: &[&str]) -> (Option<i32>, String, String) {
    memtide_in(Path::new("."), arguments)
}

/// Runs memtide with this directory for temporary files.
fn memtide_in(temporary: &Path, arguments: &[&str]) -> (Option<i32>, String, String) {
    let output = command(temporary, arguments).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

fn command(temporary: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_memtide"));
    command.args(arguments);
    if temporary != Path::new(".") {
        command.env("TMPDIR", temporary).current_dir(temporary);
    }
    command
}

/// Whether a machine can be started: QEMU is there, and so is a kernel of the distribution, fetched where it is not.
pub(crate) fn has_machine() -> bool {
    static FETCHED: LazyLock<bool> =
        LazyLock::new(|| memtide(&["lab", "kernel", "fetch"]).0 == Some(0));
    if !has("qemu-system-x86_64") {
        return false;
    }
    if !*FETCHED {
        let is_ci = std::env::var_os("CI").is_some_and(|ci| ci == "true");
        assert!(!is_ci, "memtide lab kernel fetched none");
        #[allow(clippy::print_stderr)] // a skipped test says why
        {
            eprintln!("skipped: there is no kernel to boot (memtide lab kernel fetch)");
        }
    }
    *FETCHED
}

#[test]
fn without_debians_programs_no_kernel_is_fetched_and_the_way_round_is_named() {
    let place = tempfile::tempdir().unwrap();
    let fetch = command(place.path(), &["lab", "kernel", "fetch"])
        .env("PATH", place.path())
        .env("XDG_CACHE_HOME", place.path())
        .output()
        .unwrap();
    let says = String::from_utf8_lossy(&fetch.stderr).into_owned();
    assert_eq!(fetch.status.code(), Some(3), "{says}");
    assert!(says.contains("is not installed") && says.contains("--kernel FILE"), "{says}");
    let kept: Vec<_> = std::fs::read_dir(place.path().join("memtide/kernels")).unwrap().collect();
    assert!(kept.is_empty(), "{kept:?}");
}

#[test]
fn a_kill_in_a_cgroup_is_made_found_and_scored() {
    if !has_machine() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let cases = directory.path().join("cases");
    let cases = cases.to_str().unwrap();
    let (code, out, progress) =
        memtide_in(directory.path(), &["lab", "run", "cgroup-oom", "--keep", "--out", "page"]);
    assert_eq!(code, Some(0), "{out}{progress}");
    assert!(out.contains("limit                   oom-cgroup"), "{out}");
    assert!(progress.contains("ready"), "{progress}");
    let page = directory.path().join("page");
    for name in ["report.html", "limit.html", "figure-1-limit.svg"] {
        assert!(page.join(name).is_file(), "{name}");
    }
    // What is kept is an ordinary capture.
    let capture = page.join("limit.jsonl");
    let (code, out, _) = memtide(&["check", capture.to_str().unwrap()]);
    assert_eq!(code, Some(2), "{out}");
    // Labelled cases of two machines at the same time, and their score.
    let made = ["lab", "corpus", "--scenario", "idle", "--out", cases];
    let two = [&made[..], &["--variants", "2", "--jobs", "2"]].concat();
    let (code, _, progress) = memtide_in(directory.path(), &two);
    assert_eq!(code, Some(0), "{progress}");
    let (code, out, _) = memtide(&["lab", "score", cases, "--json"]);
    assert_eq!(code, Some(0), "{out}");
    let score: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(score["perfect"], 2, "{out}");
    assert_eq!(score["cases"][0]["scenario"], "idle", "{out}");
    // It is there already, and is not played again.
    let (_, _, progress) = memtide_in(directory.path(), &made);
    assert!(progress.contains("there already"), "{progress}");
    assert_eq!(machines_in(directory.path()), 0);
}

#[test]
fn a_scenario_that_does_not_hold_ends_with_2() {
    if !has_machine() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    // What the program takes fits into a machine of 1 GiB, so nothing is killed.
    let arm = ["lab", "run", "global-oom", "--arm", "at-once"];
    let (code, out, progress) =
        memtide_in(directory.path(), &[&arm[..], &["--ram", "1G"]].concat());
    assert_eq!(code, Some(2), "{out}{progress}");
    assert!(out.contains("missed: oom-global"), "{out}");
    assert!(out.contains("NO"), "{out}");
}

/// One machine: every setting and limit that a rule's fix changes.
#[test]
fn every_fix_is_applied_read_back_and_undone() {
    if !has_machine() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let (code, out, progress) =
        memtide_in(directory.path(), &["lab", "run", "fixes", "--arm", "v2"]);
    assert_eq!(code, Some(0), "{out}{progress}");
    let held = out.lines().filter(|line| line.starts_with("cgroup v2") && line.ends_with("yes"));
    assert_eq!(held.count(), 3, "{out}{progress}");
}

/// A fix that cures, and that is taken back.
#[test]
fn a_fix_is_carried_out_while_the_load_goes_on_and_judged_by_the_time_after() {
    if !has_machine() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let (code, out, progress) =
        memtide_in(directory.path(), &["lab", "cure", "hugepages-idle", "--json"]);
    assert_eq!(code, Some(0), "{out}{progress}");
    let report: serde_json::Value = serde_json::from_str(&out).unwrap();
    let row = &report["rows"][0];
    assert_eq!(
        (&row["rule"], &row["effect"]),
        (&"hugetlb-unused".into(), &"cured".into()),
        "{out}"
    );
    assert_eq!(row["applied"][0], "sysctl -w vm.nr_hugepages=0", "{out}");
    assert_eq!(row["is_taken_back"], true, "{out}");
    assert_eq!(machines_in(directory.path()), 0);
}

/// Directories of machines below a directory for temporary files.
pub(crate) fn machines_in(temporary: &Path) -> usize {
    let entries = std::fs::read_dir(temporary).unwrap();
    let is_machine = |name: &str| name.starts_with("memtide-lab-");
    entries
        .filter(|entry| is_machine(&entry.as_ref().unwrap().file_name().to_string_lossy()))
        .count()
}

/// PIDs of machines whose files are below a directory.
pub(crate) fn qemus_with(directory: &Path) -> usize {
    let directory = directory.to_str().unwrap();
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let of = |path: &Path, file: &str| std::fs::read(path.join(file)).unwrap_or_default();
    processes
        .map(|entry| entry.path())
        // The command line lies in the memory of the process, for which a test of another one may wait.
        .filter(|path| of(path, "comm").starts_with(b"qemu"))
        .filter(|path| String::from_utf8_lossy(&of(path, "cmdline")).contains(directory))
        .count()
}

#[test]
fn ctrl_c_ends_the_machine_and_leaves_nothing() {
    if !has_machine() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let mut run = command(directory.path(), &["lab", "run", "idle"])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut progress = BufReader::new(run.stderr.take().unwrap()).lines();
    assert!(progress.any(|line| line.unwrap().contains("ready")));
    assert_eq!(qemus_with(directory.path()), 1);
    let pid = rustix::process::Pid::from_child(&run);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let rest: Vec<String> = progress.map(Result::unwrap).collect();
    assert_eq!(run.wait().unwrap().code(), Some(3), "{rest:?}");
    assert!(rest.iter().any(|line| line.contains("interrupted")), "{rest:?}");
    assert_eq!(qemus_with(directory.path()), 0);
    assert_eq!(machines_in(directory.path()), 0);
}

#[test]
fn a_second_run_into_the_same_directory_is_refused_and_the_first_goes_on() {
    if !has_machine() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let run = ["lab", "run", "idle", "--keep", "--out", "page"];
    let mut first = command(directory.path(), &run)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut progress = BufReader::new(first.stderr.take().unwrap()).lines();
    assert!(progress.any(|line| line.unwrap().contains("ready")));
    let other = ["lab", "run", "cgroup-oom", "--out", "./page/"];
    for second in [&run[..], &other] {
        let (code, out, error) = memtide_in(directory.path(), second);
        assert_eq!(code, Some(3), "{out}{error}");
        let expected = "page/ is in use: another lab run writes its pages to it";
        let error = error.replace("page is in use", "page/ is in use");
        assert!(error.contains(expected), "{error}");
        assert!(error.contains("help: --out DIR names another directory"));
    }
    let rest: Vec<String> = progress.map(Result::unwrap).collect();
    assert_eq!(first.wait().unwrap().code(), Some(0), "{rest:?}");
    for name in ["report.html", "idle.html", "idle.jsonl"] {
        assert!(directory.path().join("page").join(name).is_file(), "{name}");
    }
}

/// The commands `memtide lab run …` of a text, each as its words.
fn runs_in(text: &str) -> Vec<Vec<&str>> {
    let commands = text.split("memtide lab run ").skip(1).map(|rest| {
        let end = rest.find(['`', '\n', '#', ';']).unwrap_or(rest.len());
        rest[..end].split_whitespace().collect()
    });
    commands.filter(|words: &Vec<&str>| words[0] != "NAME").collect()
}

#[test]
fn every_run_in_the_documentation_can_be_played() {
    let mut pages: Vec<_> = std::fs::read_dir(root().join("docs/lab"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    pages.extend(["README.md", "docs/lab.md"].map(|page| root().join(page)));
    let mut count = 0;
    for page in pages {
        let text = std::fs::read_to_string(&page).unwrap();
        for mut words in runs_in(&text) {
            if let Some(at) = words.iter().position(|word| *word == "--kernel") {
                words.drain(at..at + 2);
            }
            // Here is no terminal to show it on.
            words.retain(|word| *word != "--watch");
            // The kernel is searched when all else was checked, and there is none of this name.
            let wanted = ["lab", "run", "--kernel", "/nonexistent"];
            let (code, _, error) = memtide(&[&wanted[..], &words].concat());
            let case = format!("{}: {words:?}: {error}", page.display());
            assert_eq!(code, Some(3), "{case}");
            assert!(error.contains("/nonexistent"), "{case}");
            count += 1;
        }
    }
    assert!(count > 40, "{count}");
}

/// The output of `memtide lab run NAME`, with options or without, that a page shows.
fn transcript<'a>(page: &'a str, name: &str) -> Option<&'a str> {
    let begin = page.find(&format!("$ memtide lab run {name}"))?;
    page[begin..].split("```").next()
}

#[test]
fn pages_show_the_claims_of_today_and_each_scenario_has_a_page() {
    for scenario in lab::scenarios::ALL {
        let path = root().join(format!("docs/lab/{}.md", scenario.name));
        let page = std::fs::read_to_string(&path).unwrap();
        // Lines are wrapped there: words are compared.
        let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        let shown = transcript(&page, scenario.name).map(words);
        let shown = shown.unwrap_or_else(|| panic!("{} has no transcript", path.display()));
        let arms = lab::ArmOutcomes::default();
        for claim in (scenario.claims)(&arms) {
            assert!(shown.contains(&words(&claim.what)), "{}: {}", path.display(), claim.what);
        }
    }
}

#[test]
fn the_guide_lists_every_scenario_with_its_ram_and_time() {
    let guide = std::fs::read_to_string(root().join("docs/lab.md")).unwrap();
    let (_, list, _) = memtide(&["lab", "list"]);
    for line in list.lines().skip(1) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let begin = format!("| [{0}](lab/{0}.md) |", words[0]);
        let row = guide.lines().find(|row| row.starts_with(&begin));
        let row = row.unwrap_or_else(|| panic!("docs/lab.md does not list {}", words[0]));
        let (ram, time) = (words[1..3].join(" "), words[3..5].join(" "));
        for expected in [ram, time] {
            assert!(row.contains(&format!("| {expected} |")), "{row}: {expected}");
        }
    }
}

#[test]
fn a_scenario_lists_what_can_be_set() {
    let (code, out, _) = memtide(&["lab", "list", "swapdemo"]);
    assert_eq!(code, Some(0));
    for expected in [
        "  swap-off                swap=0\n",
        "article: S3 (docs/lab.md)\n",
        "  swappiness              60 (0 to 200)        vm.swappiness\n",
        "  data_share=0.96\n",
    ] {
        assert!(out.contains(expected), "{out}");
    }
}

#[test]
fn what_cannot_be_played_says_why() {
    for (arguments, expected) in [
        (
            &["lab", "run", "nosuch"][..],
            "there is no scenario `nosuch`; there are hogs, write-plateau",
        ),
        (
            &["lab", "run", "swapdemo", "--arm", "x"],
            "swapdemo has no arm `x`; it has swappiness-60",
        ),
        (
            &["lab", "run", "idle", "--kernel", "/etc/passwd"],
            "/etc/passwd: not an x86 kernel image (bzImage)",
        ),
        (
            &["lab", "run", "idle", "--ram", "64M"],
            "a virtual machine of 64 MiB is too small; it needs 256 MiB",
        ),
        (&["lab", "run", "idle", "--ram", "64T"], "virtual machines need 64 TiB"),
        (&["lab", "run", "idle", "--set", "hogs=3"], "idle has no setting `hogs`; it has seconds"),
        (&["lab", "run", "idle", "--set", "seconds=0"], "seconds=0 is not between 5 and 7200"),
        (&["lab", "score", "/nosuch"], "cannot read cases below /nosuch"),
    ] {
        let (code, _, error) = memtide(arguments);
        assert_eq!(code, Some(3), "{error}");
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn without_qemu_it_says_what_to_install() {
    if !has_machine() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let output = command(directory.path(), &["lab", "run", "idle"])
        .env("PATH", directory.path())
        .output()
        .unwrap();
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(3), "{error}");
    assert!(error.contains("qemu-system-x86_64 is not installed"), "{error}");
    assert!(
        error.contains("help: apt-get install --no-install-recommends qemu-system-x86"),
        "{error}"
    );
    assert_eq!(machines_in(directory.path()), 0);
}

#[test]
fn nothing_scored_is_no_success() {
    let directory = tempfile::tempdir().unwrap();
    let (code, _, error) = memtide(&["lab", "score", directory.path().to_str().unwrap()]);
    assert_eq!(code, Some(3), "{error}");
    assert!(error.contains("there is no labelled case"), "{error}");
}

/// A copy of a labelled capture.
fn copied_case(to: &Path, name: &str) -> PathBuf {
    let from = root().join("corpus/captures/oom-cgroup--5.10-768m-150m");
    let case = to.join(name);
    std::fs::create_dir(&case).unwrap();
    for file in ["capture.jsonl.gz", "case.toml"] {
        std::fs::copy(from.join(file), case.join(file)).unwrap();
    }
    case
}

#[test]
fn a_damaged_case_is_named_and_the_others_are_scored() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    copied_case(directory, "whole");
    let labels = |name: &str| copied_case(directory, name).join("case.toml");
    std::fs::write(labels("emptied"), "").unwrap();
    std::fs::write(labels("binary"), b"[labels]\nmust_find = [\"\xff\"]\n").unwrap();
    File::options()
        .write(true)
        .open(labels("huge"))
        .and_then(|file| file.set_len(2 << 20))
        .unwrap();
    let removed = ["gone", "pipe", "directory", "device", "dangling"].map(|name| {
        let path = labels(name);
        std::fs::remove_file(&path).unwrap();
        path
    });
    let [_, pipe, folder, device, dangling] = &removed;
    rustix::fs::mkfifoat(rustix::fs::CWD, pipe, rustix::fs::Mode::RUSR).unwrap();
    std::fs::create_dir(folder).unwrap();
    std::os::unix::fs::symlink("/dev/zero", device).unwrap();
    std::os::unix::fs::symlink("/nonexistent", dangling).unwrap();
    let (code, out, error) = memtide(&["lab", "score", directory.to_str().unwrap(), "--json"]);
    assert_eq!(code, Some(3), "{out}{error}");
    let score: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!((&score["perfect"], &score["unlabelled"]), (&1.into(), &0.into()));
    for (name, why) in [
        ("emptied", "it is empty"),
        ("binary", "it is not UTF-8"),
        ("huge", "it is larger than 1 MiB"),
        ("gone", "it is missing"),
        ("pipe", "it is not a regular file"),
        ("directory", "it is not a regular file"),
        ("device", "it is not a regular file"),
        ("dangling", "it is missing"),
    ] {
        let expected = format!("warning: {name} is not scored: case.toml: {why}\n");
        assert!(error.contains(&expected), "{expected}{error}");
    }
    assert_eq!(score["unscored"].as_array().unwrap().len(), 8, "{out}");
}

#[test]
fn labelled_captures_are_scored() {
    let captures = root().join("corpus/captures");
    let page = tempfile::tempdir().unwrap();
    let page = page.path().join("score.html");
    let (code, out, error) =
        memtide(&["lab", "score", captures.to_str().unwrap(), "-o", page.to_str().unwrap()]);
    assert_eq!(code, Some(0), "{out}{error}");
    assert!(out.starts_with("precision 1.000, recall 1.000 over "), "{out}");
    let html = std::fs::read_to_string(page).unwrap();
    assert!(html.contains("<table class=\"matrix\">"));
}

#[test]
fn parts_work_alone() {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path().to_str().unwrap();
    let (code, out, _) = memtide(&["lab", "write", place, "1M", "--files", "2"]);
    assert_eq!((code, out.lines().count()), (Some(0), 2), "{out}");
    let (code, out, _) = memtide(&["lab", "read", place, "--passes", "1"]);
    assert_eq!(code, Some(0));
    assert!(out.starts_with("pass 1: 2 MiB in "), "{out}");
    let file = directory.path().join("memtide-lab-0");
    let file = file.to_str().unwrap();
    for (part, expected) in [
        (&["map", file, "1M", "--data", "3M", "--iterations", "2"][..], "2.0 of 2 steps after"),
        (&["hog", "4M", "--content", "random", "--for", "100ms"], "has 4 MiB"),
        (&["hog", "8M", "--of-each-huge-page", "4K", "--for", "100ms"], "has 8 MiB"),
        (&["share", "2M", "--processes", "3", "--for", "1s"], "3 of 3 processes"),
        (&["fork", "2M", "--write", "1M", "--save", "100ms", "--for", "50ms"], "saved in"),
        (&["fragment", "2M", "--keep-one-of", "10", "--for", "10ms"], "live"),
        (&["lookup", place, "100"], "100 names"),
    ] {
        let arguments = [&["lab"], part].concat();
        let (code, out, error) = memtide(&arguments);
        assert_eq!(code, Some(0), "{part:?}: {error}");
        assert!(out.contains(expected), "{part:?}: {out}");
    }
}

#[test]
fn a_size_or_a_count_that_cannot_be_says_what_can() {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path().to_str().unwrap();
    let file = directory.path().join("file");
    std::fs::write(&file, "some").unwrap();
    let file = file.to_str().unwrap();
    for (part, expected) in [
        (&["hog", "0"][..], "`0` is nothing; write 500M or 2GiB"),
        (&["hog", "0.2"], "`0.2` is nothing"),
        (&["hog", "-1"], "`-1` is no size; write 500MiB, 2GiB"),
        (&["hog", "1e99"], "`1e99` is no size"),
        (&["hog", "99999999P"], "more than 16 EiB, the most"),
        (&["hog", "1M", "--limit", "0"], "`0` is nothing"),
        (&["hog", "1M", "--of-each-huge-page", "0"], "`0` is nothing"),
        (&["share", "0"], "`0` is nothing"),
        (&["share", "1M", "--processes", "0"], "0 is not in 1.."),
        (&["fragment", "0"], "`0` is nothing"),
        (&["fragment", "1M", "--keep-one-of", "0"], "0 is not in 1.."),
        (&["write", place, "0"], "`0` is nothing"),
        (&["write", place, "1M", "--files", "0"], "0 is not in 1.."),
        (&["map", file, "0", "--data", "1M"], "`0` is nothing"),
        (&["read", file, "--passes", "0"], "0 is not in 1.."),
        (&["read", file, "--passes", "1", "--cpu", "1000"], "there is no CPU 1000 that it may use"),
        (&["lookup", place, "0"], "0 is not in 1.."),
        (&["fork", "0", "--write", "1M", "--save", "1s", "--for", "1s"], "`0` is nothing"),
    ] {
        let (code, out, error) = memtide(&[&["lab"], part].concat());
        assert_eq!((code, &*out), (Some(3), ""), "{part:?}: {error}");
        assert!(error.contains(expected), "{part:?}: {error}");
    }
}

#[test]
fn a_part_takes_no_more_than_the_host_has_unless_it_is_asked_to() {
    for part in [
        &["hog", "64T"][..],
        &["fragment", "64T"],
        &["fork", "64T", "--write", "1M", "--save", "1s", "--for", "1s"],
    ] {
        let (code, _, error) = memtide(&[&["lab"], part].concat());
        assert_eq!(code, Some(3), "{error}");
        for expected in ["that this host has available", "help: --limit SIZE"] {
            assert!(error.contains(expected), "{error}");
        }
    }
}

/// Cgroups that parts with a limit have made: below that of this test, on v2 beside it.
fn cgroups_of_parts() -> BTreeSet<std::ffi::OsString> {
    let own = probe::OwnCgroups::find(&probe::Root::default()).map(|own| own.memory);
    let parent = own.as_deref().and_then(Path::parent);
    let entries = own.iter().map(PathBuf::as_path).chain(parent).flat_map(std::fs::read_dir);
    entries
        .flatten()
        .flatten()
        .map(|entry| entry.file_name())
        .filter(|name| name.to_string_lossy().starts_with("memtide-lab-"))
        .collect()
}

#[test]
fn a_limit_ends_the_part_alone_and_leaves_no_cgroup() {
    if !is_root() {
        return skip("making a cgroup needs root: run the tests as root");
    }
    let before = cgroups_of_parts();
    let hog = |size| ["lab", "hog", size, "--for", "100ms", "--limit", "24M"];
    let (code, out, error) = memtide(&hog("4M"));
    if error.contains("cannot be made") || error.contains("memory controller") {
        return lacks(&error);
    }
    assert_eq!(code, Some(0), "{error}");
    assert_eq!(out, "has 4 MiB\n");
    let (code, out, error) = memtide(&hog("64M"));
    assert_eq!(code, Some(3), "{out}{error}");
    assert!(error.contains("the kernel killed it at its limit of 24 MiB"), "{error}");
    // Others may work here, too.
    assert!(cgroups_of_parts().is_subset(&before));
}

#[test]
fn logs_are_packed_to_a_tenth() {
    let directory = tempfile::tempdir().unwrap();
    let logs = directory.path().join("logs");
    std::fs::create_dir(&logs).unwrap();
    let (logs, packed) = (logs.to_str().unwrap(), directory.path().join("logs.gz"));
    let (code, _, _) = memtide(&["lab", "write", logs, "4M", "--content", "log"]);
    assert_eq!(code, Some(0));
    let (code, _, error) = memtide(&["lab", "archive", logs, packed.to_str().unwrap(), "--gzip"]);
    assert_eq!(code, Some(0), "{error}");
    let share = packed.metadata().unwrap().len() * 100 / (4 << 20);
    assert!((7..=13).contains(&share), "{share} %");
}
