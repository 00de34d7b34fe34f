//! What can be typed, and what comes back.

use crate::support::{file, folded, json, memtide, stderr, stdout};

fn corpus(id: &str) -> String {
    crate::cases::path(id)
}

#[test]
fn exit_codes_are_those_of_monitoring_plugins() {
    for (case, code) in
        [("healthy--idle", 0), ("swap-thrash--512m-swapdisk", 2), ("node-reclaim--dist21", 2)]
    {
        let output = memtide(&["check", &corpus(case)]);
        assert_eq!(output.status.code(), Some(code), "{case}: {}", stdout(&output));
    }
    for usage in [&["check", "--for", "never"][..], &["chek"], &["check", "--nonsense"]] {
        assert_eq!(memtide(usage).status.code(), Some(3), "{usage:?}");
    }
    assert_eq!(memtide(&["--help"]).status.code(), Some(0));
    assert_eq!(memtide(&["--version"]).status.code(), Some(0));
}

#[test]
fn one_bad_file_does_not_hide_the_others() {
    let good = corpus("healthy--idle");
    let output = memtide(&["check", "/no/such/file", &good]);
    assert_eq!(output.status.code(), Some(3));
    assert!(stdout(&output).contains("OK"), "{}", stdout(&output));
    assert!(stderr(&output).contains("/no/such/file"));
}

#[test]
fn several_files_give_an_array_in_their_order_whatever_fails() {
    let good = corpus("healthy--idle");
    let two = |first: &str, second: &str| {
        let output = memtide(&["check", first, second, "--format", "json"]);
        assert_eq!(output.status.code(), Some(3));
        let answers = json(&output);
        assert_eq!(answers.as_array().map(Vec::len), Some(2), "{answers}");
        answers
    };
    let answers = two("/no/such/file", &good);
    assert_eq!(answers[0]["source"]["name"], "/no/such/file");
    let error = answers[0]["error"].as_str().unwrap();
    assert!(error.contains("cannot read /no/such/file"), "{error}");
    assert_eq!(answers[1]["verdict"], "ok");
    assert_eq!(answers[1]["source"]["name"], good.as_str());
    let answers = two("/no/such/file", "/nor/this");
    assert_eq!(answers[1]["source"]["name"], "/nor/this");
    let one = memtide(&["check", &good, "--format", "json"]);
    assert!(json(&one).is_object());
    let none = memtide(&["check", "/no/such/file", "--format", "json"]);
    assert_eq!((none.status.code(), stdout(&none).as_str()), (Some(3), ""));
}

#[test]
fn an_answer_that_cannot_be_written_is_said() {
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let run = |stderr: std::process::Stdio| {
        std::process::Command::new(env!("CARGO_BIN_EXE_memtide"))
            .args(["check", &corpus("healthy--idle")])
            .stdout(full.try_clone().unwrap())
            .stderr(stderr)
            .output()
            .unwrap()
    };
    let output = run(std::process::Stdio::piped());
    assert_eq!(output.status.code(), Some(3));
    let message = stderr(&output);
    assert!(message.contains("cannot write the answer"), "{message}");
    // With nobody left to tell, the exit code still says it.
    let output = run(full.try_clone().unwrap().into());
    assert_eq!(output.status.code(), Some(3));
}

#[test]
fn standard_input_is_a_source() {
    let capture = std::fs::File::open(corpus("healthy--idle")).unwrap();
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_memtide"))
        .args(["check", "-"])
        .stdin(capture)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
}

#[test]
fn colour_is_off_without_a_terminal_and_on_when_asked_for() {
    let case = corpus("swap-thrash--512m-swapdisk");
    assert!(!stdout(&memtide(&["check", &case])).contains('\u{1b}'));
    assert!(stdout(&memtide(&["check", &case, "--color", "always"])).contains('\u{1b}'));
}

#[test]
fn rules_and_signals_explain_themselves() {
    let rule = stdout(&memtide(&["rules", "swap-thrash"]));
    assert!(rule.contains("What it means") && rule.contains("How it is recognised"), "{rule}");
    let unknown = memtide(&["rules", "swap-trash"]);
    assert_eq!(unknown.status.code(), Some(3));
    assert_eq!(
        stderr(&unknown),
        "error: there is no rule `swap-trash`\nhelp: the nearest is swap-thrash; `memtide rules` \
         lists all\n"
    );
    let signal = stdout(&memtide(&["signals", "kbavail"]));
    assert!(signal.contains("mem.available"), "sar's name finds it: {signal}");
    let rules = json(&memtide(&["rules", "--format", "json"]));
    assert_eq!(rules.as_array().unwrap().len(), diagnose::rules::ALL.len());
    let signals = json(&memtide(&["signals", "--format", "json"]));
    assert_eq!(signals.as_array().unwrap().len(), timeline::signals::ALL.len());
}

/// What a bash offers behind these words, the last of which was begun.
fn completed(words: &[&str]) -> Vec<String> {
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_memtide"))
        .env("COMPLETE", "bash")
        .env("_CLAP_IFS", "\n")
        .env("_CLAP_COMPLETE_INDEX", words.len().to_string())
        .args(["--", "memtide"])
        .args(words)
        .output()
        .unwrap();
    assert!(output.status.success(), "{words:?}: {}", stderr(&output));
    stdout(&output).lines().map(str::to_owned).collect()
}

#[test]
fn a_shell_completes_names_of_the_catalogues_and_of_this_host() {
    for (words, offered) in [
        (&["cap"][..], "capture"),
        (&["rules", "page-cache"], "page-cache-thrash"),
        (&["signals", "mem.av"], "mem.available"),
        (&["export", "x", "--signal", "mem.free,psi.memory.so"], "mem.free,psi.memory.some"),
        (&["lab", "run", "swap"], "swapdemo"),
        (&["lab", "run", "swapdemo", "--arm", "zram"], "zram-random"),
        (&["lab", "run", "swapdemo", "--set", "swap"], "swappiness="),
        (&["lab", "cure", "cgroup"], "cgroup-high"),
    ] {
        let all = completed(words);
        assert!(all.iter().any(|one| one == offered), "{words:?}: {all:?}");
    }
    let arms = completed(&["lab", "run", "write-plateau", "--arm", ""]);
    assert!(!arms.is_empty() && !arms.contains(&"zram-random".to_owned()), "{arms:?}");
    let groups = completed(&["check", "--cgroup", "/"]);
    let root = probe::Root::default();
    let some = probe::cgroup_keys(&root).into_iter().find(|path| path.len() > 1);
    assert!(some.is_none() || groups.iter().all(|path| path.starts_with('/')), "{groups:?}");
}

#[test]
fn completion_scripts_ask_memtide_and_unknown_rules_have_neighbours() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = stdout(&memtide(&["completions", shell]));
        assert!(script.contains("COMPLETE") && script.contains("memtide"), "{shell}: {script}");
    }
    let unknown = memtide(&["rules", "thrash"]);
    assert_eq!(unknown.status.code(), Some(3));
    let help = stderr(&unknown).lines().last().unwrap_or_default().to_owned();
    assert!(help.starts_with("help: the nearest are swap-thrash, "), "{help}");
    assert!(help.contains("page-cache-thrash"), "{help}");
}

#[test]
fn json_is_short_for_its_format() {
    let case = &crate::cases::named("swap-thrash--512m-swapdisk").source;
    let case = case.to_str().unwrap();
    for command in [
        vec!["check", case],
        vec!["events", case],
        vec!["headroom", case],
        vec!["growth", case],
        vec!["rules"],
    ] {
        let long = memtide(&[&command[..], &["--format", "json"]].concat());
        let short = memtide(&[&command[..], &["--json"]].concat());
        assert_eq!(stdout(&short), stdout(&long), "{command:?}");
        let both = memtide(&[&command[..], &["--json", "--format", "text"]].concat());
        assert_eq!(both.status.code(), Some(3), "{command:?}");
    }
}

#[test]
fn man_pages_are_written_where_nothing_is_yet() {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path().join("share/man/man1");
    let written = memtide(&["man", place.to_str().unwrap()]);
    assert!(written.status.success(), "{}", stderr(&written));
    assert!(place.join("memtide-check.1").exists());
    let order = [
        "NAME",
        "SYNOPSIS",
        "DESCRIPTION",
        "OPTIONS",
        "SUBCOMMANDS",
        "EXIT STATUS",
        "EXAMPLES",
        "NOTES",
        "FILES",
        "SEE ALSO",
    ];
    for page in std::fs::read_dir(&place).unwrap() {
        let path = page.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        let sections: Vec<&str> = text
            .lines()
            .filter_map(|line| line.strip_prefix(".SH "))
            .map(|name| name.trim_matches('"'))
            .collect();
        let mut wanted = order.iter().filter(|name| sections.contains(name));
        assert!(sections.iter().all(|name| Some(name) == wanted.next()), "{path:?}: {sections:?}");
        for name in ["NAME", "SYNOPSIS", "DESCRIPTION", "EXIT STATUS", "FILES", "SEE ALSO"] {
            assert!(sections.contains(&name), "{path:?} has no {name}");
        }
        // A heading that is none in `man.rs` would be a line of the notes.
        for heading in ["\nExamples", "\nExit codes", "\nExample:"] {
            assert!(!text.contains(heading), "{path:?}: {heading}");
        }
    }
}

/// A host of 80,429 MB with 579 MB free and 9,662 MB available, of which the owner believed that it has room.
#[test]
fn the_misjudged_host_is_not_called_fine() {
    let kib = |mb: u64| mb * 1024;
    let meminfo = format!(
        "MemTotal: {} kB\nMemFree: {} kB\nMemAvailable: {} kB\nBuffers: 0 kB\nCached: {} kB\nShmem: {} kB\nSwapTotal: {} kB\nSwapFree: {} kB\n",
        kib(80_429),
        kib(579),
        kib(9_662),
        kib(20_943),
        kib(1_028),
        kib(20_480),
        kib(20_480 - 1_402)
    );
    let directory = tempfile::tempdir().unwrap();
    let text = crate::support::capture(&[vec![("/proc/meminfo", meminfo)]]);
    let output = memtide(&["check", &file(&directory, "host.jsonl", text)]);
    let answer = folded(&output);
    assert_eq!(output.status.code(), Some(3), "{answer}");
    assert!(answer.contains("headroom seems small"), "{answer}");
    assert!(!answer.contains("Memory is enough"), "{answer}");
}
