//! `memtide profile` of files, of this host, of a command; what it writes, and how it ends.

use std::io::Write;
use std::process::{Command, Stdio};

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
    for (at, content) in [long, many, deep, huge, cut, map].iter().enumerate() {
        let path = file(&directory, &format!("hostile{at}"), content);
        let output = memtide(&["profile", "--from", &path, "--json"]);
        let code = output.status.code();
        assert!(matches!(code, Some(0 | 1 | 3)), "{at}: {code:?} {}", stderr(&output));
        assert!(!stderr(&output).contains("panicked"), "{at}: {}", stderr(&output));
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
