//! Other programs read the same numbers as memtide: DuckDB answers the questions of the documentation, pyarrow reads the
//! host's table.
#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    clippy::cast_precision_loss,
    clippy::float_cmp,
    missing_docs
)]

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use store::{HostIdentity, Recording, Resolution, Selection, add_timeline};
use timeline::signals::{MEM_AVAILABLE, MEM_FREE, PROC_RSS, PSWPIN};
use timeline::{Entity, Facts, Sample, Timeline};
use units::{Bytes, Pages, Span, WallClock};

const BEGINS: i64 = 1_700_000_400;
const SAMPLES: u64 = 900;

/// Two hours and a half: memory that sinks, swapping now and then, a process that grows and one that ends.
fn hours() -> Timeline {
    let mut timeline = Timeline::default();
    for at in 0..SAMPLES {
        let mut sample = Sample::at(Span::from_secs(1000 + at * 10));
        let wall = (BEGINS + (at * 10).cast_signed()) * 1_000_000_000;
        sample.stamp.wall = Some(WallClock::from_unix_nanos(wall));
        sample.host.set(MEM_AVAILABLE, Bytes::from_mib(4000 - at));
        if at % 3 > 0 {
            sample.host.set(MEM_FREE, Bytes::new(at * 4096));
        }
        sample.host.set(PSWPIN, Pages::new(7 + at / 50 * 11));
        for (key, label, pages) in [("1@5", "java", at + 7), ("2@9", "make", 300)] {
            if key == "1@5" || at < 400 {
                let row = sample.table_mut(Entity::Process).entry(key);
                row.label = label.to_owned();
                row.row.set(PROC_RSS, Pages::new(pages));
            }
        }
        timeline.push(&sample).unwrap();
    }
    timeline
}

fn recorded(directory: &Path) -> Timeline {
    let host = HostIdentity { id: "0123".to_owned(), name: "host".to_owned() };
    let every = Span::from_secs(10);
    add_timeline(directory, &host, &hours(), &Facts::default(), every).unwrap();
    let selection = Selection { resolution: Resolution::Full, ..Selection::default() };
    let recording = Recording::open(directory).unwrap();
    recording.load(selection, &mut |_| ()).timeline
}

/// A Python with `duckdb` and `pyarrow`, made once beside the other things that tests build; or why there is none.
/// `MEMTIDE_PYTHON` names one that has them.
fn python() -> Result<PathBuf, String> {
    if let Some(given) = std::env::var_os("MEMTIDE_PYTHON") {
        return Ok(PathBuf::from(given));
    }
    let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join("python");
    let python = place.join("bin/python");
    let imports = ["-c", "import duckdb, pyarrow"];
    if run(Command::new(&python).args(imports)).is_ok() {
        return Ok(python);
    }
    run(Command::new("python3").args(["-m", "venv"]).arg(&place))?;
    let install = ["-m", "pip", "install", "--quiet", "duckdb", "pyarrow"];
    run(Command::new(&python).args(install))?;
    Ok(python)
}

fn run(command: &mut Command) -> Result<Vec<u8>, String> {
    let name = format!("{command:?}");
    let output = command.output().map_err(|error| format!("{name}: {error}"))?;
    if output.status.success() {
        Ok(output.stdout)
    } else {
        Err(format!("{name}: {}", String::from_utf8_lossy(&output.stderr)))
    }
}

/// What DuckDB and pyarrow say of a recording; `None` where they cannot be had, which only a machine of one's own may say.
fn asked(directory: &Path) -> Option<Value> {
    let python = match python() {
        Ok(python) => python,
        Err(why) => {
            let is_ci = std::env::var_os("CI").is_some_and(|value| value == "true");
            assert!(!is_ci, "python3 -m venv, and duckdb and pyarrow for it, are needed: {why}");
            eprintln!("skipped: no Python with duckdb and pyarrow: {why}");
            return None;
        }
    };
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut command = Command::new(python);
    command.arg(here.join("tests/data/questions.py"));
    command.arg(here.join("../../docs/recording.md")).arg(directory);
    Some(serde_json::from_slice(&run(&mut command).unwrap()).unwrap())
}

/// The first `cells` of each row of an answer.
fn rows(answer: &Value) -> Vec<Vec<String>> {
    let row = |row: &Value| {
        let cells = row.as_array().unwrap().iter();
        cells.map(|cell| cell.as_str().unwrap().to_owned()).collect()
    };
    answer.as_array().unwrap().iter().map(row).collect()
}

#[test]
fn duckdb_and_pyarrow_read_what_memtide_reads() {
    let directory = tempfile::tempdir().unwrap();
    let timeline = recorded(directory.path());
    assert_eq!(timeline.len() as u64, SAMPLES);
    let Some(said) = asked(directory.path()) else {
        return;
    };
    least_by_the_hour(&timeline, &rows(&said["answers"][0]));
    swapped_in(&timeline, &rows(&said["answers"][1]));
    largest(&timeline, &rows(&said["answers"][2]));
    columns(&timeline, &said["columns"]);
}

fn seconds(timeline: &Timeline, at: usize) -> i64 {
    timeline.stamp(at).unwrap().wall.unwrap().unix_nanos() / 1_000_000_000
}

fn least_by_the_hour(timeline: &Timeline, answer: &[Vec<String>]) {
    let mut hours = std::collections::BTreeMap::<i64, u64>::new();
    for at in 0..timeline.len() {
        let least = hours.entry(seconds(timeline, at) / 3600).or_insert(u64::MAX);
        *least = timeline.at(MEM_AVAILABLE, at).unwrap().get().min(*least);
    }
    assert_eq!(answer.len(), hours.len());
    for (row, least) in answer.iter().zip(hours.values()) {
        let mib: f64 = row[1].parse().unwrap();
        assert_eq!(mib, *least as f64 / 1_048_576.0, "{row:?}");
    }
}

fn swapped_in(timeline: &Timeline, answer: &[Vec<String>]) {
    let pages = answer.iter().map(|row| row[1].parse::<u64>().unwrap());
    let at = |at: usize| timeline.at(PSWPIN, at).unwrap().get();
    // Over all segments nothing is left out, also not from the end of one to the beginning of the next.
    assert_eq!(pages.sum::<u64>(), at(timeline.len() - 1) - at(0));
}

fn largest(timeline: &Timeline, answer: &[Vec<String>]) {
    let mut processes: Vec<Vec<String>> = Vec::new();
    for series in timeline.entities(Entity::Process) {
        let readings = (0..timeline.len()).filter_map(|at| timeline.at_of(series, PROC_RSS, at));
        let peak = readings.map(Pages::get).max().unwrap();
        processes.push(vec![series.key.clone(), series.label.clone(), peak.to_string()]);
    }
    processes.sort_by_key(|row| std::cmp::Reverse(row[2].parse::<u64>().unwrap()));
    assert_eq!(answer, processes);
}

fn columns(timeline: &Timeline, said: &Value) {
    let numbers = |name: &str| {
        let column = said[name].as_array().unwrap().iter();
        column.map(Value::as_u64).collect::<Vec<_>>()
    };
    let mut compared = 0;
    for (signal, runs) in timeline.host_runs() {
        let mut expected = vec![None; timeline.len()];
        for run in runs {
            expected[run.first()..=run.last()].fill(Some(run.value));
        }
        assert_eq!(numbers(signal.def().name), expected, "{}", signal.def().name);
        compared += 1;
    }
    assert_eq!(compared, 3);
    let walls =
        (0..timeline.len()).map(|at| timeline.stamp(at)?.wall?.unix_nanos().try_into().ok());
    assert_eq!(numbers("time"), walls.collect::<Vec<_>>());
}
