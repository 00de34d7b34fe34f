//! Bad input: a clear message or a sound answer, exit 3 where nothing can be said, no panic.

use std::io::Write;

use crate::support::{capture, complaints, file, folded, json, memtide, stderr, stdout};

fn healthy() -> Vec<u8> {
    std::fs::read(&crate::cases::named("healthy--idle").source).unwrap()
}

/// Exit code and message of `memtide check` on a file, with the faults that the answer names.
fn check(path: &str) -> (i32, String) {
    let output = memtide(&["check", path]);
    let message = complaints(&output);
    assert!(!message.contains("panicked"), "{message}");
    (output.status.code().unwrap(), message)
}

#[test]
fn what_is_no_capture_is_named() {
    let directory = tempfile::tempdir().unwrap();
    for (name, content, says) in [
        ("empty", &b""[..], "is empty"),
        ("picture.jpg", b"\xff\xd8\xff\xe0\x00\x10JFIF", "a JPEG picture"),
        ("notes.txt", b"hello there\n", "it starts with `hello there`"),
        ("list.json", b"[1, 2]\n", "nothing that memtide reads"),
    ] {
        let (code, message) = check(&file(&directory, name, content));
        assert_eq!(code, 3, "{name}");
        assert!(message.contains(says), "{name}: {message}");
        assert!(message.contains("help:"), "{name}: {message}");
    }
    let (code, message) = check("/no/such/file.jsonl");
    assert_eq!(code, 3);
    assert!(message.contains("/no/such/file.jsonl"), "{message}");
    let (code, message) = check(directory.path().to_str().unwrap());
    assert_eq!(code, 3);
    assert!(message.contains("has no file"), "{message}");
}

#[test]
fn a_recording_of_another_format_is_named_once_with_the_help_of_the_store() {
    let directory = tempfile::tempdir().unwrap();
    file(&directory, "recording.json", br#"{"format":9}"#);
    let path = directory.path().to_str().unwrap();
    let page = directory.path().join("page.html");
    let page = page.to_str().unwrap();
    for command in [
        &["check", path][..],
        &["events", path],
        &["report", path, "-o", page],
        &["record", "--status", "--to", path],
    ] {
        let output = memtide(command);
        assert_eq!(output.status.code(), Some(3), "{command:?}");
        assert_eq!(
            stderr(&output),
            format!(
                "error: {path} was written by another memtide (format 9; this one reads format 2)\n\
                 help: use that memtide, or another directory\n"
            ),
            "{command:?}"
        );
    }
    // What is damaged was not written by another memtide.
    file(&directory, "recording.json", b"{");
    let message = stderr(&memtide(&["check", path]));
    assert_eq!(message.matches(path).count(), 1, "{message}");
    assert!(message.contains("help: restore its recording.json"), "{message}");
}

#[test]
fn a_capture_of_more_samples_than_fit_in_memory_is_not_called_ok() {
    const SAMPLES_MAX: usize = 100_000;
    let directory = tempfile::tempdir().unwrap();
    let sample = |t: usize| {
        let meminfo = "MemTotal: 4000000 kB\\nMemFree: 3000000 kB\\nMemAvailable: 3000000 kB\\n";
        let vmstat = "pswpin 0\\nworkingset_refault_file 0\\n";
        format!(
            "{{\"t\":{t},\"files\":{{\"/proc/meminfo\":\"{meminfo}\",\"/proc/vmstat\":\"{vmstat}\"}}}}\n"
        )
    };
    let mut text = String::from("{\"interval_s\":1.0,\"page_size\":4096}\n");
    text.extend((0..=SAMPLES_MAX).map(sample));
    let long = file(&directory, "long.jsonl", text.as_bytes());
    let output = memtide(&["check", &long]);
    assert_eq!(output.status.code(), Some(3));
    let says = folded(&output);
    assert!(says.contains("the rest was not read"), "{says}");
    assert!(says.contains("only its first 100000 samples were read"), "{says}");
    let to = directory.path().join("kept");
    let kept = memtide(&["record", "--from", &long, "--to", to.to_str().unwrap()]);
    assert_eq!(kept.status.code(), Some(3));
    assert!(stderr(&kept).contains("only its first 100000 samples were read"));
}

#[test]
fn a_cut_file_gives_what_was_before_the_cut() {
    let directory = tempfile::tempdir().unwrap();
    let whole = healthy();
    let cut = file(&directory, "cut.jsonl.gz", &whole[..whole.len() / 2]);
    let output = memtide(&["check", &cut, "--format", "json"]);
    let report = json(&output);
    assert!(report["source"]["samples"].as_u64().unwrap() > 2);
    let problems = report["source"]["problems"].to_string();
    assert!(problems.contains("ends early"), "{problems}");
    // What the answer says is not said twice.
    assert_eq!(stderr(&output), "");
}

#[test]
fn a_flipped_bit_anywhere_never_panics() {
    let directory = tempfile::tempdir().unwrap();
    let whole = healthy();
    for place in (0..whole.len()).step_by(whole.len() / 25) {
        let mut damaged = whole.clone();
        damaged[place] ^= 0x10;
        let (code, _) = check(&file(&directory, "flipped.jsonl.gz", &damaged));
        assert!((0..=3).contains(&code), "byte {place}: {code}");
    }
}

#[test]
fn one_sample_says_levels_and_not_that_all_is_well() {
    let directory = tempfile::tempdir().unwrap();
    let one = capture(&[vec![(
        "/proc/meminfo",
        "MemTotal: 1000000 kB\nMemFree: 500000 kB\nMemAvailable: 800000 kB\n".to_owned(),
    )]]);
    let output = memtide(&["check", &file(&directory, "one.jsonl", one)]);
    assert_eq!(output.status.code(), Some(3));
    assert!(folded(&output).contains("One sample cannot show"), "{}", stdout(&output));
}

#[test]
fn samples_in_reverse_order_are_said() {
    let directory = tempfile::tempdir().unwrap();
    let forward = capture(&vec![vec![("/proc/meminfo", "MemTotal: 1000 kB\n".to_owned())]; 5]);
    let mut lines: Vec<&str> = forward.lines().collect();
    lines[1..].reverse();
    let (code, message) = check(&file(&directory, "reverse.jsonl", lines.join("\n")));
    assert_eq!(code, 3);
    assert!(message.contains("4 samples lie before"), "{message}");
}

#[test]
fn impossible_numbers_cost_their_line() {
    let directory = tempfile::tempdir().unwrap();
    for number in ["-5", "1180591620717411303424", "18446744073709551615", "12abc", "0x10"] {
        let meminfo =
            format!("MemTotal: 1000000 kB\nMemFree: {number} kB\nMemAvailable: 900000 kB\n");
        let text = capture(&vec![vec![("/proc/meminfo", meminfo)]; 12]);
        let (code, message) = check(&file(&directory, "numbers.jsonl", text));
        assert!((0..=3).contains(&code));
        assert!(message.contains("/proc/meminfo, line 2"), "{number}: {message}");
    }
    let zeros =
        capture(&vec![vec![("/proc/meminfo", "MemTotal: 0 kB\nMemFree: 0 kB\n".to_owned())]; 12]);
    let (code, _) = check(&file(&directory, "zeros.jsonl", zeros));
    assert_eq!(code, 3, "a host without memory says nothing");
}

#[test]
fn a_huge_line_is_passed_over_in_bounded_memory() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("long.jsonl");
    let mut out = std::io::BufWriter::new(std::fs::File::create(&path).unwrap());
    let samples = capture(&vec![
        vec![(
            "/proc/meminfo",
            "MemTotal: 1000000 kB\nMemFree: 500000 kB\nMemAvailable: 800000 kB\n".to_owned()
        )];
        12
    ]);
    out.write_all(samples.as_bytes()).unwrap();
    let block = vec![b'x'; 1 << 20];
    for _ in 0..300 {
        out.write_all(&block).unwrap();
    }
    out.write_all(b"\n").unwrap();
    out.into_inner().unwrap();
    // The shell's limit on address space stands for "at most 300 MiB".
    let output = std::process::Command::new("sh")
        .args(["-c", "ulimit -v 307200; exec \"$0\" check \"$1\""])
        .arg(env!("CARGO_BIN_EXE_memtide"))
        .arg(&path)
        .output()
        .unwrap();
    let message = complaints(&output);
    assert!(message.contains("has 300 MiB and was passed over"), "{message}");
    assert_eq!(output.status.code(), Some(3), "{message}");
    let answer = folded(&output);
    assert!(answer.contains("cannot show whether memory is enough"), "{answer}");
}

#[test]
fn hostile_names_are_inert_everywhere() {
    let directory = tempfile::tempdir().unwrap();
    let name = "\u{1b}[31mred\u{202e}<script>alert(1)</script>";
    let stat = |utime: u64| {
        format!(
            "66 ({name}) S 1 66 66 0 -1 0 1 0 900 0 {utime} 10 0 0 20 0 1 0 55 104857600 200000 18446744073709551615 0 0 0 0 0 0 0 0 0 0 0 0 17 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n"
        )
    };
    let status = format!("Name:\t{name}\nRssAnon:\t  800000 kB\nVmSwap:\t  100000 kB\n");
    let samples: Vec<_> = (0..20u64)
        .map(|i| {
            vec![
                ("/proc/meminfo", "MemTotal: 1000000 kB\nMemFree: 9000 kB\nMemAvailable: 9000 kB\nSwapTotal: 1000000 kB\nSwapFree: 500000 kB\nAnonPages: 900000 kB\nCached: 10000 kB\nShmem: 0 kB\nBuffers: 0 kB\n".to_owned()),
                ("/proc/vmstat", format!("pswpin {0}\npswpout {0}\nworkingset_refault_anon {0}\n", i * 5000)),
                ("/proc/66/stat", stat(i)),
                ("/proc/66/status", status.clone()),
            ]
        })
        .collect();
    let path = file(&directory, "hostile.jsonl", capture(&samples));
    let text = memtide(&["check", &path, "--color", "never"]);
    // Pages come back from swap, and nothing says how long tasks waited for them: a warning.
    assert_eq!(text.status.code(), Some(1), "{}", stdout(&text));
    assert!(stdout(&text).contains("red"), "the process is named: {}", stdout(&text));
    for output in [&text, &memtide(&["where", &path, "--color", "never"])] {
        for bad in ['\u{1b}', '\u{202e}'] {
            assert!(!stdout(output).contains(bad), "{}", stdout(output));
        }
    }
    let report = json(&memtide(&["check", &path, "--format", "json"]));
    assert!(report.to_string().contains("<script>"), "JSON keeps the name as it is");
}
