//! `memtide profile` of files, of this host, of a command; what it writes, and how it ends.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::record::{Group, Running, is_root, skip, until};
use crate::support::{blesses, file, folded, json, memtide, root, stderr, stdout};

/// Samples of a host whose reads reclaim at the limit of their cgroup; the name of a thread tries what it can.
const AT_LIMIT: &str = "# {\"unit\": \"samples\", \"hz\": 99, \"seconds\": 10, \"cpus\": 2}\n\
    <b>\u{1b}[2J&;entry_SYSCALL_64_after_hwframe;do_syscall_64;ksys_read;vfs_read;filemap_read;page_cache_ra_unbounded;\
    filemap_add_folio;__mem_cgroup_charge;try_charge_memcg;try_to_free_mem_cgroup_pages;shrink_node;shrink_lruvec 300\n\
    db;entry_SYSCALL_64_after_hwframe;do_syscall_64;ksys_read;vfs_read;filemap_read;copy_page_to_iter 500\n\
    db;[user] 200\n";

const CALM: &str = "# {\"unit\": \"samples\", \"hz\": 99, \"seconds\": 10, \"cpus\": 2}\n\
    db;entry_SYSCALL_64_after_hwframe;do_syscall_64;ksys_read;vfs_read;filemap_read;copy_page_to_iter 500\ndb;[user] 200\n";

#[test]
fn what_is_hot_is_said_first_and_by_the_exit_code() {
    let directory = tempfile::tempdir().unwrap();
    let (sick, calm) = (file(&directory, "sick", AT_LIMIT), file(&directory, "calm", CALM));
    let output = memtide(&["profile", "--from", &sick]);
    assert_eq!(output.status.code(), Some(1));
    let text = folded(&output);
    assert!(
        text.starts_with("Reclaim at a cgroup's limit in <b>\\x1b[2J& takes 30 % of the busy CPU"),
        "{text}"
    );
    let report = json(&memtide(&["profile", "--from", &sick, "--json"]));
    assert_eq!(report["hot"][0]["reason"], "memcg-max");
    assert_eq!(report["hot"][0]["work"], "lru-scan");
    assert_eq!(report["hot"].as_array().unwrap().len(), 1);
    let output = memtide(&["profile", "--from", &calm, "--json"]);
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(json(&output)["hot"], serde_json::json!([]));
    let both = json(&memtide(&["profile", "--from", &sick, "--diff", &calm, "--json"]));
    let reasons = both["difference"]["reasons"].as_array().unwrap();
    assert!(reasons.iter().any(|one| one["reason"] == "memcg-max"), "{reasons:?}");
}

#[test]
fn a_profile_is_read_from_standard_input_and_prose_is_refused_with_help() {
    let read = |content: &str| {
        let mut child = Command::new(env!("CARGO_BIN_EXE_memtide"))
            .args(["profile", "--from", "-"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(content.as_bytes()).unwrap();
        child.wait_with_output().unwrap()
    };
    assert_eq!(read(AT_LIMIT).status.code(), Some(1));
    let output = read("nothing to see\n");
    assert_eq!(output.status.code(), Some(3));
    let text = stderr(&output);
    assert!(
        text.contains("standard input: no profile is recognised") && text.contains("perf script"),
        "{text}"
    );
}

#[test]
fn files_hold_names_of_strangers_as_text_and_are_not_overwritten() {
    let directory = tempfile::tempdir().unwrap();
    let sick = file(&directory, "sick", AT_LIMIT);
    let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let names = ["x.svg", "x.folded", "x.json.gz"].map(path);
    let outputs: Vec<&str> = names.iter().flat_map(|name| ["-o", name]).collect();
    let arguments = [&["profile", "--from", &sick], &outputs[..]].concat();
    assert_eq!(memtide(&arguments).status.code(), Some(1));
    let svg = std::fs::read_to_string(&names[0]).unwrap();
    assert!(svg.starts_with("<svg") && !svg.contains("<b>") && !svg.contains('\u{1b}'), "{svg}");
    assert!(svg.contains("&lt;b&gt;\\x1b[2J&amp;"), "{svg}");
    let again = json(&memtide(&["profile", "--from", &names[1], "--json"]));
    let first = json(&memtide(&["profile", "--from", &sick, "--json"]));
    assert_eq!(again["hot"][0]["share"], first["hot"][0]["share"]);
    assert_eq!(std::fs::read(&names[2]).unwrap()[..2], [0x1f, 0x8b]);
    let output = memtide(&arguments);
    assert_eq!(output.status.code(), Some(3));
    assert!(stderr(&output).contains("--force overwrites it"), "{}", stderr(&output));
}

#[test]
fn hostile_input_is_an_error_or_an_answer() {
    let directory = tempfile::tempdir().unwrap();
    let long = format!("a;{} 1\n", "f;".repeat(100_000));
    let many = (0..5_000).map(|n| format!("c{n};f{n} {n}\n")).collect::<String>();
    let deep = format!("10.00% a [k] [k] f {}\n", "- 99.00% g ".repeat(5_000));
    let huge = "a;f 1e308\nb;g 1e308\nc;h NaN\nd;i -5\ne;j inf\n".to_owned();
    let cut = "x 1 [000] 1.0: cycles: \n\tffff".to_owned();
    let map = "@us[a,\n    b+1\n".repeat(1_000);
    let row = "{\"kind\":\"memcg-reclaim\",\"comm\":\"x\",\"cgroup\":\"/\u{1b}[2J\",\"count\":18446744073709551615,\
               \"total_s\":9e8,\"max_s\":9e8,\"steps\":[[65535,18446744073709551615],[0,18446744073709551615]]}";
    let limits = "{\"path\":\"/\u{1b}[2J\",\"max_hits\":18446744073709551615,\"high_hits\":18446744073709551615,\
                  \"grew_bytes\":-9223372036854775808}";
    let rows = [row; 1_000].join(",").replace('\u{1b}', "\\u001b");
    let limits = limits.replace('\u{1b}', "\\u001b");
    let sums = format!(
        "# {{\"unit\":\"samples\",\"seconds\":1e-300,\"episodes\":[{rows}],\"cgroups\":[{limits}]}}\n\
         # {{\"cgroup\":\"/\\u001b[2J\"}}\nx;y 1\n# {{\"unit\":\"us\"}}\nz;w 1\n"
    );
    for (at, content) in [long, many, deep, huge, cut, map, sums].iter().enumerate() {
        let path = file(&directory, &format!("hostile{at}"), content);
        let output = memtide(&["profile", "--from", &path, "--json"]);
        let code = output.status.code();
        assert!(matches!(code, Some(0 | 1 | 3)), "{at}: {code:?} {}", stderr(&output));
        assert!(!stderr(&output).contains("panicked"), "{at}: {}", stderr(&output));
        let text = memtide(&["profile", "--from", &path]);
        assert!(!stderr(&text).contains("panicked"), "{at}: {}", stderr(&text));
        assert!(!stdout(&text).contains('\u{1b}'), "{at}");
    }
    let damaged = file(&directory, "perf.data", [b"PERFILE2".as_slice(), &[0xfe; 4096]].concat());
    assert_eq!(memtide(&["profile", "--from", &damaged]).status.code(), Some(3));
}

/// With or without rights, it says what it could not measure and goes on with the rest.
#[test]
fn a_command_is_profiled_and_its_output_is_not_the_answer() {
    let output =
        memtide(&["profile", "--json", "--", "sh", "-c", "echo from the command; sleep 1.2"]);
    assert!(stderr(&output).contains("from the command"), "{}", stderr(&output));
    let report = json(&output);
    let expected: &[i32] = if report["cpu"].is_object() { &[0, 1] } else { &[1, 3] };
    assert!(expected.contains(&output.status.code().unwrap()), "{}", stderr(&output));
    assert_eq!(report["origin"]["scope"], "the command");
    let seconds = report["origin"]["seconds"].as_f64().unwrap();
    assert!((1.0..10.0).contains(&seconds), "{seconds}");
    let is_measured = report["cpu"].is_object();
    let is_explained = report["not_measured"]
        .as_array()
        .unwrap()
        .iter()
        .any(|one| one["what"] == "CPU samples" && one["why"] != "");
    assert!(is_measured || is_explained, "{report}");
    let absent = memtide(&["profile", "--", "/nonexistent/program"]);
    assert_eq!(absent.status.code(), Some(3));
    assert!(
        stderr(&absent).contains("/nonexistent/program cannot be started"),
        "{}",
        stderr(&absent)
    );
}

/// A shell that does this in a cgroup until it is dropped.
struct Busy(Child);

impl Busy {
    fn within(group: &Path, script: &str) -> Self {
        let script = format!("echo $$ > \"$0/cgroup.procs\" && while :; do {script}; done");
        let mut shell = Command::new("sh");
        let shell = shell.args(["-c", &script]).arg(group).stdout(Stdio::null());
        Self(shell.spawn().unwrap())
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A file of so many MiB, which no cgroup has in memory yet.
fn file_of(directory: &tempfile::TempDir, name: &str, mib: usize) -> String {
    let path = file(directory, name, vec![7_u8; mib << 20]);
    let file = std::fs::File::open(&path).unwrap();
    file.sync_all().unwrap();
    rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed).unwrap();
    path
}

/// Whether CPU samples can be taken here.
fn can_sample() -> bool {
    json(&memtide(&["profile", "--for", "200ms", "--json"]))["cpu"].is_object()
}

/// The cgroups of a profile that have a CPU share.
fn cgroups_of(report: &serde_json::Value) -> Vec<&str> {
    let rows = report["cgroups"].as_array().unwrap();
    rows.iter().map(|row| row["cgroup"].as_str().unwrap()).collect()
}

/// Real cgroups with the paths that systemd, Docker and the kubelet give them.
#[test]
fn a_cgroup_is_chosen_by_its_path_or_by_what_people_call_it() {
    if !is_root() || !can_sample() {
        return skip("making a cgroup and sampling need root");
    }
    let mount = PathBuf::from("/sys/fs/cgroup/memory");
    let number = std::process::id();
    let id = format!("{number:0>8x}").repeat(8);
    let uid = format!("{number:08x}-1111-2222-3333-444444444444");
    let unit = format!("memtide-test-{number}.service");
    for (parent, name, option, typed) in [
        ("system.slice", unit.clone(), "--unit", unit.clone()),
        ("docker", id.clone(), "--container", id[..12].to_owned()),
        ("kubepods", format!("pod{uid}"), "--pod", uid.clone()),
    ] {
        let (parent, is_ours) = (mount.join(parent), !mount.join(parent).exists());
        if is_ours && let Err(why) = std::fs::create_dir(&parent) {
            return skip(&format!("no memory cgroup (v1): {why}"));
        }
        let group = Group::at(parent.join(&name), "67108864").unwrap();
        let busy = Busy::within(group.path(), ":");
        let key = format!("/{}", group.path().strip_prefix(&mount).unwrap().display());
        for (option, typed) in [(option, typed.as_str()), ("--cgroup", key.as_str())] {
            let output = memtide(&["profile", "--for", "1s", "--json", option, typed]);
            assert!(matches!(output.status.code(), Some(0 | 1)), "{}", stderr(&output));
            let report = json(&output);
            assert_eq!(report["origin"]["scope"], format!("cgroup {key}"), "{option}");
            assert_eq!(cgroups_of(&report), [key.as_str()], "{option}");
            assert!(report["cpu"]["samples"].as_f64().unwrap() >= 3.0, "{option} {report}");
        }
        let output = memtide(&["profile", "--for", "1s", option, "no-such-name"]);
        assert_eq!(output.status.code(), Some(3));
        assert!(stderr(&output).contains("is called `no-such-name`"), "{}", stderr(&output));
        let pid = busy.0.id().to_string();
        let report = json(&memtide(&["profile", "--for", "1s", "--json", "--pid", &pid]));
        assert_eq!(report["origin"]["scope"], format!("PID {pid}"));
        assert_eq!(cgroups_of(&report), [key.as_str()]);
        drop((busy, group));
        if is_ours {
            std::fs::remove_dir(parent).unwrap();
        }
    }
    let both = memtide(&["profile", "--pid", "1", "--unit", "x"]);
    assert_eq!(both.status.code(), Some(3));
}

/// Each of two cgroups waits at a limit: its own, or that of the cgroup around it.
#[test]
fn who_waits_at_which_limit_is_said_for_each_cgroup() {
    if !is_root() || !can_sample() {
        return skip("making a cgroup and sampling need root");
    }
    let groups = || {
        let own = Group::make("own", "16777216")?;
        let outer = Group::make("outer", "16777216")?;
        let within = outer.make_within("in", "1073741824")?;
        Ok::<_, String>((own, outer, within))
    };
    let (own, outer, within) = match groups() {
        Ok(all) => all,
        Err(why) => return skip(&why),
    };
    let directory = tempfile::tempdir().unwrap();
    let files = ["one", "other"].map(|name| file_of(&directory, name, 64));
    let reads = |path: &String| format!("cat '{path}' > /dev/null");
    let busy = [
        Busy::within(own.path(), &reads(&files[0])),
        Busy::within(within.path(), &reads(&files[1])),
    ];
    let report = json(&memtide(&["profile", "--for", "4s", "--json"]));
    drop(busy);
    let path_of = |group: &Group| {
        format!("/{}", group.path().strip_prefix("/sys/fs/cgroup/memory").unwrap().display())
    };
    let limits = |group: &Group| {
        let rows = report["cgroups"].as_array().unwrap();
        let row =
            rows.iter().find(|row| row["cgroup"] == path_of(group)).cloned().unwrap_or_default();
        let limits = row["limits"].as_array().cloned().unwrap_or_default();
        let of = limits.iter().map(|limit| limit["cgroup"].as_str().unwrap().to_owned());
        (of.collect::<Vec<_>>(), row)
    };
    let ((of_own, own_row), (of_within, within_row)) = (limits(&own), limits(&within));
    assert_eq!(of_own, [path_of(&own)], "{own_row}");
    assert_eq!(of_within, [path_of(&outer)], "{within_row}");
    if report["has_episodes"] == true {
        let seconds = |row: &serde_json::Value, name: &str| row[name].as_f64().unwrap();
        assert!(seconds(&own_row, "own_limit_s") > 0.0, "{own_row}");
        assert!(seconds(&own_row, "outer_limit_s") <= 0.0, "{own_row}");
        assert!(seconds(&within_row, "own_limit_s") <= 0.0, "{within_row}");
        assert!(seconds(&within_row, "outer_limit_s") > 0.0, "{within_row}");
    }
}

#[test]
fn an_armed_recorder_keeps_a_profile_of_the_moment() {
    if !is_root() || !can_sample() {
        return skip("making a cgroup and sampling need root");
    }
    let group = match Group::make("armed", "16777216") {
        Ok(group) => group,
        Err(why) => return skip(&why),
    };
    let directory = tempfile::tempdir().unwrap();
    let recording = tempfile::tempdir().unwrap();
    let place = recording.path().to_str().unwrap();
    let path = file_of(&directory, "read-again", 64);
    let armed = ["--no-processes", "--sync", "1s", "--profile-when", "reclaim"];
    let running = Running::started(recording.path(), &armed);
    let recorder = crate::record::status(recording.path())["recorder"].clone();
    assert_eq!(recorder["settings"]["profiles_when"], "reclaim");
    let busy = Busy::within(group.path(), &format!("cat '{path}' > /dev/null"));
    let kept = || {
        let output = memtide(&["events", place, "--kind", "kernel-profile", "--json"]);
        // Before the first sample is on the disk there is nothing to read.
        let report = if output.status.success() { json(&output) } else { Default::default() };
        report["events"].as_array().cloned().unwrap_or_default()
    };
    until("a profile", || !kept().is_empty());
    drop(busy);
    let ended = running.end();
    assert_eq!(ended.status.code(), Some(0), "{}", stderr(&ended));
    // The recorder that ended sealed it: it is read from a segment.
    let kept = kept();
    let text = kept[0]["text"].as_str().unwrap();
    assert!(text.starts_with("profile: ") && text.contains("; reclaim was met: "), "{text}");
    assert!(kept[0]["report"].as_str().unwrap().contains("recorded"), "{}", kept[0]["report"]);
    let listed = stdout(&memtide(&["events", place]));
    let command = listed.lines().find(|line| line.contains("memtide profile")).unwrap();
    let at = command.split('\'').nth(1).unwrap();
    let shown = json(&memtide(&["profile", place, "--at", at, "--json"]));
    assert!(shown["origin"]["seconds"].as_f64().unwrap() > 9.0, "{shown}");
    let of_group = format!("/{}", group.name());
    assert!(cgroups_of(&shown).contains(&of_group.as_str()), "{shown}");
    let far = memtide(&["profile", place, "--at", "2001-01-01 00:00"]);
    assert_eq!(far.status.code(), Some(3));
    assert!(stderr(&far).contains("has no profile of that time; it has "), "{}", stderr(&far));
    let checked = json(&memtide(&["check", place, "--json"]));
    let remarks = checked["remarks"].to_string();
    assert!(remarks.contains("Profiles of the kernel were kept"), "{remarks}");
    let page = directory.path().join("page.html");
    let written = memtide(&["report", place, "-o", page.to_str().unwrap()]);
    assert_eq!(written.status.code().map(|code| code < 3), Some(true), "{}", stderr(&written));
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.contains("<summary>The profile</summary>"));
}

#[test]
fn a_condition_that_is_not_met_ends_the_wait() {
    let output = memtide(&["profile", "--when", "pswpin>999999999/s", "--for-at-most", "1.5s"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stderr(&output).contains("was not met within 1.5 s"), "{}", stderr(&output));
    let wrong = memtide(&["profile", "--when", "load>5"]);
    assert_eq!(wrong.status.code(), Some(3));
    assert!(stderr(&wrong).contains("psi.memory>10%"), "{}", stderr(&wrong));
}

/// `BLESS=1 cargo test -p memtide --test it profile` writes it anew: the screen at 80 columns.
#[test]
fn the_screen_is_as_expected() {
    let directory = tempfile::tempdir().unwrap();
    file(&directory, "sick.folded", AT_LIMIT);
    let waits = "# {\"unit\": \"us\", \"seconds\": 10, \"vmstat_delta\": {\"workingset_refault_file\": 90000}}\n\
                 db;do_syscall_64;ksys_read;vfs_read;filemap_read;folio_wait_bit_common;io_schedule;schedule 4200000\n\
                 jbd2/vda-8;kthread;kjournald2;jbd2_journal_commit_transaction;io_schedule 300000\n";
    file(&directory, "sick.waits.folded", waits);
    // By their names alone: a path may be of any length.
    let output = Command::new(env!("CARGO_BIN_EXE_memtide"))
        .args(["profile", "--from", "sick.folded", "sick.waits.folded"])
        .current_dir(directory.path())
        .output()
        .unwrap();
    let text = stdout(&output);
    let expected = root().join("crates/memtide/tests/it/snapshots/profile.txt");
    if blesses() {
        std::fs::write(&expected, &text).unwrap();
    }
    assert_eq!(text, std::fs::read_to_string(expected).unwrap());
    let wide: Vec<&str> = text.lines().filter(|line| line.chars().count() > 80).collect();
    assert!(wide.is_empty(), "{wide:#?}");
}
