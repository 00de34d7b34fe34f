//! Hostile sources: whatever is opened, a command neither panics, nor hangs, nor takes more than 300 MiB of memory or ten
//! seconds of a CPU for each source that it opens, and says what it could not read.
//!
//! The suite opens each source, a ten-thousandth of its size, with one command. `MEMTIDE_HOSTILE=whole` opens each in full with
//! every command and prints a table (`scripts/abuse.sh --hostile`); `MEMTIDE_HOSTILE_ONLY=part of a name` selects sources,
//! `MEMTIDE_HOSTILE_COMMANDS=check,where` commands, `MEMTIDE_HOSTILE_BINARY` another build.
//! Needs root, python3 and a memory cgroup of version 1; skips with a reason where they are missing, except on CI.

mod captures;
mod files;
mod making;
mod recordings;
mod texts;
mod trees;

use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;

use crate::record::Group;
use making::Making;

/// A source: its name, how it is made at a path, and where it lies then.
pub(crate) type Hostile = (&'static str, fn(&Making) -> PathBuf);

/// The memory of the cgroup in which sources are opened, in bytes.
const GROUP_BYTES: &str = "536870912";
/// The most memory of a command, in KiB.
const PEAK_KIB_MAX: u64 = 300 << 10;
/// The most CPU time of a command for each source that it opens, in seconds; a debug build is slower.
const CPU_S_MAX: f64 = if cfg!(debug_assertions) { 60.0 } else { 10.0 };
/// When a command is ended, in seconds: it hangs.
const WALL_S_MAX: u64 = 300;

/// The commands that open a source, with what stands before and after its name; `OUT` is a name for what they write.
const COMMANDS: [(&str, &str, &str); 14] = [
    ("check", "check", ""),
    ("check json", "check --format json", ""),
    ("where", "where", ""),
    ("where by", "where --by process", ""),
    ("explain", "explain --runtime-stats", ""),
    ("headroom", "headroom", ""),
    ("growth", "growth", ""),
    ("compare", "compare SOURCE", ""),
    ("events", "events", ""),
    ("report", "report", "-o OUT.html"),
    ("csv", "export", "--format csv --table process -o OUT.csv"),
    ("parquet", "export", "--format parquet -o OUT"),
    ("convert", "convert", "-o OUT.jsonl.zst"),
    ("record", "record --to OUT --from", ""),
];

/// What a run cost, as `run.py` prints it.
#[derive(Debug, Deserialize)]
struct Cost {
    code: Option<i32>,
    signal: Option<i32>,
    is_late: bool,
    peak_kib: u64,
    cpu_s: f64,
    wall_s: f64,
}

/// A run of a command on a source.
struct Ran {
    source: &'static str,
    command: &'static str,
    cost: Cost,
    says: String,
    faults: Vec<String>,
}

#[test]
fn no_source_costs_more_than_a_source_may_and_each_says_what_is_wrong_with_it() {
    let is_whole = std::env::var_os("MEMTIDE_HOSTILE").is_some_and(|whole| whole == "whole");
    let shows = std::env::var_os("MEMTIDE_HOSTILE").is_some();
    let group = match place() {
        Ok(group) => group,
        Err(why) => return skip(&why),
    };
    let only = std::env::var("MEMTIDE_HOSTILE_ONLY").unwrap_or_default();
    let commands = std::env::var("MEMTIDE_HOSTILE_COMMANDS").unwrap_or_default();
    let all = [files::ALL, captures::ALL, texts::ALL, trees::ALL, recordings::ALL];
    let sources: Vec<Hostile> = all.concat();
    assert!(sources.len() >= 60, "{}", sources.len());
    let mut faults = Vec::new();
    for (number, (name, make)) in sources.into_iter().enumerate() {
        if !name.contains(&only) {
            continue;
        }
        let making = Making::new(if is_whole { 1 } else { 10_000 });
        let source = make(&making);
        let chosen = COMMANDS.iter().enumerate().filter(|(at, (command, ..))| {
            if is_whole {
                commands.is_empty() || commands.split(',').any(|chosen| chosen == *command)
            } else {
                *at == number % COMMANDS.len()
            }
        });
        for (_, command) in chosen {
            let ran = run(&group, name, &source, command, &making);
            if is_whole || shows {
                show(&ran);
            }
            let fault = |fault: &String| format!("{name}, {}: {fault}: {}", ran.command, ran.says);
            faults.extend(ran.faults.iter().map(fault));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// The program that opens them.
fn binary() -> String {
    std::env::var("MEMTIDE_HOSTILE_BINARY")
        .unwrap_or_else(|_| env!("CARGO_BIN_EXE_memtide").to_owned())
}

/// The cgroup in which sources are opened.
fn place() -> Result<Group, String> {
    if !rustix::process::geteuid().is_root() {
        return Err("making a cgroup needs root".to_owned());
    }
    let python = Command::new("python3").arg("--version").output();
    python.map_err(|error| format!("no python3: {error}"))?;
    Group::make("hostile", GROUP_BYTES)
}

#[allow(clippy::print_stderr)] // a skipped test says why
fn skip(why: &str) {
    assert!(
        std::env::var_os("CI").is_none_or(|ci| ci != "true"),
        "must not be skipped on CI: {why}"
    );
    eprintln!("skipped: {why}");
}

#[allow(clippy::print_stdout)] // the table
fn show(ran: &Ran) {
    let Cost { code, signal, peak_kib, cpu_s, wall_s, .. } = ran.cost;
    let end =
        code.map_or_else(|| format!("signal {}", signal.unwrap_or(0)), |code| code.to_string());
    println!(
        "{:44} {:10} {end:>9} {:5} MiB {cpu_s:6.2} s {wall_s:6.2} s  {}{}",
        ran.source,
        ran.command,
        peak_kib >> 10,
        if ran.faults.is_empty() { "" } else { "FAULT " },
        ran.says.chars().take(160).collect::<String>()
    );
}

fn run(
    group: &Group,
    source: &'static str,
    path: &Path,
    (name, before, after): &(&'static str, &str, &str),
    making: &Making,
) -> Ran {
    let out = making.path("out");
    let words = |text: &str| -> Vec<String> {
        let word = |word: &str| match word {
            "SOURCE" => path.to_str().unwrap().to_owned(),
            word => word.replace("OUT", out.to_str().unwrap()),
        };
        text.split_whitespace().map(word).collect()
    };
    let (said, complained) = (making.path("stdout"), making.path("stderr"));
    let ran = Command::new("python3")
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/hostile/run.py"))
        .arg(group.path())
        .arg(WALL_S_MAX.to_string())
        .args([&said, &complained])
        .arg(binary())
        .args(words(before))
        .arg(path)
        .args(words(after))
        .env("TZ", "UTC")
        .output()
        .unwrap();
    let cost: Cost = serde_json::from_slice(&ran.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&ran.stderr)));
    for left in ["out", "out.html", "out.csv", "out.jsonl.zst"].map(|name| making.path(name)) {
        let _ = std::fs::remove_dir_all(&left).or_else(|_| std::fs::remove_file(&left));
    }
    let (answer, complaint) = (start(&said), start(&complained));
    let opened = 1 + before.matches("SOURCE").count();
    let cpu_s_max = CPU_S_MAX * f64::from(u32::try_from(opened).unwrap());
    let faults = faults(&cost, cpu_s_max, &answer, &complaint);
    let says = complaint.lines().next().map_or_else(|| problem(&answer), str::to_owned);
    Ran { source, command: name, cost, says, faults }
}

/// The first line of an answer that names a problem of the source.
fn problem(answer: &str) -> String {
    let is_problem =
        |line: &&str| line.contains('!') || line.contains("⚠") || line.contains("left out");
    answer.lines().find(is_problem).unwrap_or_default().to_owned()
}

/// The start of a file.
fn start(path: &Path) -> String {
    use std::io::Read;
    let mut text = Vec::new();
    let file = std::fs::File::open(path).unwrap();
    file.take(1 << 20).read_to_end(&mut text).unwrap();
    String::from_utf8_lossy(&text).into_owned()
}

/// What is wrong with how a command ended.
fn faults(cost: &Cost, cpu_s_max: f64, answer: &str, complaint: &str) -> Vec<String> {
    let errors = complaint.lines().filter(|line| line.starts_with("error:")).count();
    let is_sound = match cost.code {
        Some(0..=2) => errors == 0,
        Some(3) => {
            errors <= 1 && (errors == 1 || !answer.is_empty() || complaint.contains("warning:"))
        }
        _ => false,
    };
    let faults = [
        (cost.is_late, "it hangs".to_owned()),
        (!is_sound, format!("code {:?}, signal {:?}, {errors} errors", cost.code, cost.signal)),
        (complaint.contains("panicked"), "it panics".to_owned()),
        (cost.peak_kib > PEAK_KIB_MAX, format!("{} MiB", cost.peak_kib >> 10)),
        (cost.cpu_s > cpu_s_max, format!("{:.1} s of a CPU", cost.cpu_s)),
    ];
    let wrong = faults.into_iter().filter(|(is_wrong, _)| *is_wrong);
    wrong.map(|(_, fault)| fault).collect()
}
