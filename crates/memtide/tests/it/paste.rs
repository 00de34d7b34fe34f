//! Pasted text as people type, pipe and mangle it.

use std::io::Write;
use std::process::{Command, Stdio};

use crate::support::{file, folded, json, memtide, stderr, stdout};

const MEMINFO: &str = "MemTotal:       16384000 kB\nMemFree:          350000 kB\nMemAvailable:   12000000 kB\n\
    Buffers:          100000 kB\nCached:         11000000 kB\nSwapTotal:             0 kB\nSwapFree:              0 kB\n";

fn piped(text: &[u8], arguments: &[&str]) -> std::process::Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_memtide"))
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(text).unwrap();
    child.wait_with_output().unwrap()
}

#[test]
fn a_paste_on_standard_input_is_read() {
    let report = json(&piped(MEMINFO.as_bytes(), &["check", "-", "--format", "json"]));
    assert_eq!(report["host"]["ram_bytes"], 16_384_000_u64 * 1024);
    assert_eq!(report["source"]["kind"], "text");
    let said = stdout(&piped(MEMINFO.as_bytes(), &["check", "-", "--explain-input"]));
    assert!(said.contains("/proc/meminfo") && said.contains("lines 1–7"), "{said}");
}

#[test]
fn a_text_that_nothing_reads_is_not_passed_over_in_silence() {
    let check = ["check", "--for", "200ms", "--every", "100ms"];
    let note = "memtide check -";
    let output = piped(MEMINFO.as_bytes(), &check);
    assert!(stderr(&output).contains(note), "{}", stderr(&output));
    let output = piped(b"", &check);
    assert!(!stderr(&output).contains(note), "{}", stderr(&output));
}

#[test]
fn several_files_give_an_answer_each_and_a_bad_one_hides_none() {
    let directory = tempfile::tempdir().unwrap();
    let good = file(&directory, "good.txt", MEMINFO);
    let bad = file(&directory, "bad.txt", "hello\n");
    let output = memtide(&["check", &good, &bad, &good, "--format", "json"]);
    let reports = json(&output);
    let reports = reports.as_array().unwrap();
    assert_eq!(reports.len(), 3);
    assert!(reports[1]["error"].as_str().unwrap().contains("nothing that memtide reads"));
    assert_eq!(output.status.code(), Some(3));
}

/// Ways in which text is mangled on its way, and the figure that must come through all of them.
#[test]
fn mangled_text_says_the_same() {
    let directory = tempfile::tempdir().unwrap();
    let lines =
        |change: &dyn Fn(&str) -> String| -> String { MEMINFO.lines().map(change).collect() };
    let utf16 = |text: &str| -> Vec<u8> {
        let units = text.encode_utf16().flat_map(u16::to_le_bytes);
        b"\xff\xfe".iter().copied().chain(units).collect()
    };
    for (name, bytes) in [
        ("crlf", lines(&|line| format!("{line}\r\n")).into_bytes()),
        ("ansi", lines(&|line| format!("\x1b[1;32m{line}\x1b[0m\n")).into_bytes()),
        ("quoted twice", lines(&|line| format!("> > {line}\n")).into_bytes()),
        ("utf-16", utf16(MEMINFO)),
        ("byte order mark", format!("\u{feff}{MEMINFO}").into_bytes()),
        ("tabs", MEMINFO.replace("  ", "\t").into_bytes()),
        ("prose", format!("hi all,\n\n{MEMINFO}\nany ideas?\n").into_bytes()),
        ("prompt", format!("root@web:~# cat /proc/meminfo\n{MEMINFO}").into_bytes()),
    ] {
        let output = memtide(&["check", &file(&directory, "paste", bytes), "--format", "json"]);
        let report = json(&output);
        assert_eq!(report["host"]["ram_bytes"], 16_384_000_u64 * 1024, "{name}");
    }
}

#[test]
fn the_head_of_an_answer_is_about_the_host_of_its_verdict() {
    let short = "MemTotal: 64000000 kB\nMemFree: 400000 kB\nMemAvailable: 900000 kB\n";
    let roomy = "MemTotal: 4096000 kB\nMemFree: 1400000 kB\nMemAvailable: 2900000 kB\n";
    for text in [format!("a:\n{short}\nb:\n{roomy}"), format!("b:\n{roomy}\na:\n{short}")] {
        let report = json(&piped(text.as_bytes(), &["check", "-", "--format", "json"]));
        assert_eq!(report["verdict"], "warning", "{text}");
        assert_eq!(report["host"]["ram_bytes"], 64_000_000_u64 * 1024, "{text}");
    }
}

#[test]
fn an_example_in_a_quotation_is_not_taken_for_the_host_without_a_word() {
    let killed = "> Out of memory: Killed process 12 (java) total-vm:9000kB, anon-rss:8000kB, file-rss:0kB, shmem-rss:0kB, UID:0 pgtables:4kB oom_score_adj:0\n";
    let warns = |text: &str| {
        let report = json(&piped(text.as_bytes(), &["check", "-", "--format", "json"]));
        report["remarks"].to_string().contains("another host than yours")
    };
    assert!(warns(&format!("An example:\n{killed}\nOurs:\n{MEMINFO}")));
    assert!(!warns(MEMINFO));
    assert!(!warns(killed));
}

#[test]
fn a_text_of_another_system_is_named_as_such_and_asks_for_no_file_of_linux() {
    let text = "PhysMem: 15G used (2911M wired), 112M unused.\n";
    let said = stdout(&piped(text.as_bytes(), &["check", "-"]));
    assert!(said.contains("output of macOS"), "{said}");
    assert!(!said.contains("/proc") && !said.contains("found nothing"), "{said}");
    let php = b"PHP Fatal error:  Allowed memory size of 3221225472 bytes exhausted\n";
    let said = folded(&piped(php, &["check", "-"]));
    assert!(said.contains("Recognised: PHP's own limit"), "{said}");
}

#[test]
fn hostile_text_passes_nothing_through_and_never_panics() {
    let directory = tempfile::tempdir().unwrap();
    let hostile = [
        MEMINFO.replace("350000", "99999999999999999999"),
        MEMINFO.replace("350000", "-1"),
        MEMINFO.replace("MemFree:", "MemFree:\x1b]0;owned\x07"),
        format!("{MEMINFO}\x1b[2J<script>alert(1)</script>: 7 kB\n"),
        MEMINFO.chars().map(|c| format!("{c}\u{202e}")).collect(),
        MEMINFO.lines().map(|line| format!("{}\n", &line[1..])).collect(),
        format!("{}{MEMINFO}", "[".repeat(100_000)),
        "Mem:\n".repeat(500),
        "java invoked oom-killer: \x1b[31m\n".repeat(100),
    ];
    for (i, text) in hostile.iter().enumerate() {
        let path = file(&directory, "hostile", text);
        for arguments in [&["check", &path][..], &["check", &path, "--explain-input"]] {
            let output = memtide(arguments);
            let (answer, said) = (stdout(&output), stderr(&output));
            assert!((0..=3).contains(&output.status.code().unwrap()), "{i}: {said}");
            assert!(!said.contains("panicked"), "{i}: {said}");
            for bad in ['\u{1b}', '\u{7}', '\u{202e}'] {
                assert!(!answer.contains(bad) && !said.contains(bad), "{i}: {answer}{said}");
            }
        }
    }
}

#[test]
fn what_is_no_text_is_refused_at_once() {
    for (path, says) in [("/dev/zero", "the bytes 00"), ("/dev/null", "is empty")] {
        let output = memtide(&["check", path]);
        assert_eq!(output.status.code(), Some(3));
        assert!(stderr(&output).contains(says), "{}", stderr(&output));
    }
    let output = memtide(&["check", "/no/such/file"]);
    let said = stderr(&output);
    assert_eq!(said.matches("No such file").count(), 1, "the reason is said once: {said}");
}

#[test]
fn a_pipe_with_a_name_is_read_to_its_end() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
    let writer = {
        let path = path.clone();
        std::thread::spawn(move || std::fs::write(path, MEMINFO).unwrap())
    };
    let report = json(&memtide(&["check", path.to_str().unwrap(), "--format", "json"]));
    writer.join().unwrap();
    assert_eq!(report["host"]["ram_bytes"], 16_384_000_u64 * 1024);
}

#[test]
fn a_long_log_is_searched_for_kernel_reports_and_says_so() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("syslog");
    let mut log = std::io::BufWriter::new(std::fs::File::create(&path).unwrap());
    let noise = "Nov 21 23:58:47 web sshd[7]: Accepted publickey for root\n".repeat(10_000);
    let report = include_str!("../../../import/benches/report.txt");
    for i in 0..70 {
        log.write_all(noise.as_bytes()).unwrap();
        if i == 60 {
            log.write_all(report.as_bytes()).unwrap();
        }
    }
    log.into_inner().unwrap();
    let output = memtide(&["check", path.to_str().unwrap(), "--format", "json"]);
    let answer = json(&output);
    let said = answer["source"]["problems"].to_string();
    assert!(said.contains("longer than 16 MiB: searched for kernel reports only"), "{said}");
    assert_eq!(answer["source"]["inputs"][0]["first_line"], 610_001, "{}", answer["source"]);
    let without = file(&directory, "quiet", noise.repeat(70));
    let output = memtide(&["check", &without]);
    assert_eq!(output.status.code(), Some(3));
    let said = folded(&output) + &stderr(&output);
    assert!(said.contains("kernel reports: none in"), "{said}");
}
