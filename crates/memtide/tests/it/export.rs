//! `memtide export` and `record --from`: what other programs make of it.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::{capture, file, has, json, memtide, promtool, promtool_minds, stderr, stdout};

fn case(id: &str) -> String {
    crate::cases::path(id)
}

fn export(source: &str, more: &[&str]) -> String {
    let output = memtide(&[&["export", source], more].concat());
    assert!(output.status.success(), "{more:?}: {}", stderr(&output));
    stdout(&output)
}

/// This host, now.
fn live(directory: &tempfile::TempDir) -> String {
    let path = directory.path().join("live.jsonl");
    let path = path.to_str().unwrap();
    let taken = memtide(&["capture", "--for", "10ms", "--every", "10ms", "-o", path]);
    assert!(taken.status.success(), "{}", stderr(&taken));
    path.to_owned()
}

#[test]
fn promtool_has_nothing_to_say_about_any_table() {
    if !has("promtool") {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let live = live(&directory);
    let cgroups = case("cgroup-oom--96m");
    let metrics = ["--format", "prometheus"];
    for (source, table) in [
        (&live, ""),
        (&live, "host,process,slab"),
        (&live, "node,zone,disk,swap-area,zram,service"),
        (&cgroups, "cgroup"),
    ] {
        let tables: &[&str] = if table.is_empty() { &[] } else { &["--table", table] };
        let text = export(source, &[&metrics, tables].concat());
        let (is_fine, says) = promtool(&["check", "metrics"], &text);
        assert!(is_fine && says.is_empty(), "{table}: {says}");
        let theirs = export(source, &[&metrics, tables, &["--names", "node-exporter"]].concat());
        assert_eq!(promtool_minds(&theirs), Vec::<String>::new(), "{table}");
    }
}

/// The system's Python has Debian's packages; one that stands before it on the path has its own.
const PYTHON: &str = "/usr/bin/python3";

/// Reads standard input as its first argument says, and prints how many families it has.
const PARSE: &str = "
import sys
from prometheus_client import parser
from prometheus_client.openmetrics import parser as strict
read = {'prometheus': parser, 'openmetrics': strict}[sys.argv[1]].text_string_to_metric_families
print(len(list(read(sys.stdin.read()))))";

/// The families that the parsers of Prometheus' Python client find; they refuse what the specifications do not allow.
pub(crate) fn families(format: &str, text: &str) -> usize {
    let mut python = Command::new(PYTHON)
        .args(["-c", PARSE, format])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    python.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let output = python.wait_with_output().unwrap();
    String::from_utf8(output.stdout).unwrap().trim().parse().unwrap_or(0)
}

/// Whether the strict parsers are there; where tests must not be skipped, they have to be.
pub(crate) fn has_python_client() -> bool {
    let client = Command::new(PYTHON).args(["-c", "import prometheus_client"]).output();
    let is_there = client.is_ok_and(|output| output.status.success());
    if !is_there {
        crate::record::skip("python3-prometheus-client is not installed");
    }
    is_there
}

#[test]
fn the_strict_parsers_of_pythons_client_take_every_form() {
    if !has_python_client() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let live = live(&directory);
    for source in [live, case("cgroup-oom--96m"), case("node-reclaim--dist21")] {
        for names in ["memtide", "node-exporter"] {
            let tables = "host,node,zone,disk,swap-area,zram,slab,cgroup,process,service";
            let options = ["--names", names, "--table", tables];
            for format in ["prometheus", "openmetrics"] {
                let text = export(&source, &[&["--format", format], &options[..]].concat());
                let found = families(format, &text);
                let declared = text.lines().filter(|line| line.starts_with("# TYPE ")).count();
                assert!(found > 100 && found == declared, "{format} {names}: {found}");
            }
        }
    }
}

#[test]
fn prometheus_takes_all_samples_with_their_times() {
    if !has("promtool") {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let text =
        export(&live(&directory), &["--format", "openmetrics", "--all", "--table", "host,process"]);
    let metrics = file(&directory, "all.txt", text);
    let data = directory.path().join("data");
    let arguments = ["tsdb", "create-blocks-from", "openmetrics", &metrics, data.to_str().unwrap()];
    let (is_fine, says) = promtool(&arguments, "");
    assert!(is_fine, "{says}");
    assert!(data.exists(), "{says}");
}

/// Name with labels → value, of a text of metrics.
fn values(text: &str) -> BTreeMap<String, f64> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines
        .filter_map(|line| {
            let (name, value) = line.rsplit_once(' ')?;
            Some((name.to_owned(), value.parse().ok()?))
        })
        .collect()
}

/// What node_exporter says on a port of its own.
fn scrape() -> Option<String> {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let address = format!("127.0.0.1:{port}");
    let mut exporter = Command::new("prometheus-node-exporter")
        .arg(format!("--web.listen-address={address}"))
        .args(["--collector.zoneinfo", "--collector.ksmd", "--collector.meminfo_numa"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let end = Instant::now() + Duration::from_secs(60);
    let mut said = None;
    while said.is_none() && Instant::now() < end {
        said = TcpStream::connect(&address).ok().and_then(|mut stream| {
            stream.write_all(b"GET /metrics HTTP/1.0\r\n\r\n").ok()?;
            let mut text = String::new();
            stream.read_to_string(&mut text).ok()?;
            Some(text)
        });
        std::thread::sleep(Duration::from_millis(50));
    }
    exporter.kill().unwrap();
    exporter.wait().unwrap();
    said
}

/// Our values under node_exporter's names, its own, and the names of those that are far from each other.
fn compared_with_node_exporter() -> (BTreeMap<String, f64>, BTreeMap<String, f64>, Vec<String>) {
    let directory = tempfile::tempdir().unwrap();
    let theirs = values(&scrape().expect("node_exporter answers"));
    let names = ["--format", "prometheus", "--names", "node-exporter"];
    let ours = values(&export(&live(&directory), &names));
    // What is on its way to a disk at this moment is not at the next.
    let passing = "node_memory_Writeback_bytes";
    let shared: Vec<_> =
        ours.iter().filter(|(name, _)| *name != passing && theirs.contains_key(*name)).collect();
    assert!(shared.len() > 60, "{}", shared.len());
    let is_off = |(name, ours): &&(&String, &f64)| {
        let (ours, theirs) = (**ours, theirs[*name]);
        let large = ours.abs().max(theirs.abs());
        large > 1e5 && (ours - theirs).abs() > 0.9 * large
    };
    let off = shared.iter().filter(is_off).map(|(name, _)| (*name).clone()).collect();
    (ours, theirs, off)
}

#[test]
fn under_node_exporters_names_are_node_exporters_values() {
    if !has("prometheus-node-exporter") {
        return;
    }
    let (ours, theirs, mut off) = compared_with_node_exporter();
    // Levels of a busy host move between the two looks; a wrong unit is off by three orders each time.
    for _ in 0..4 {
        if off.is_empty() {
            break;
        }
        let (_, _, again) = compared_with_node_exporter();
        off.retain(|name| again.contains(name));
    }
    assert!(off.is_empty(), "{off:?}");
    for name in ["node_memory_MemTotal_bytes", "node_memory_SwapTotal_bytes"] {
        assert_eq!(ours[name], theirs[name], "{name}");
    }
    let free = (ours["node_vmstat_pgfault"] - theirs["node_vmstat_pgfault"]).abs();
    assert!(free < 0.05 * theirs["node_vmstat_pgfault"]);
}

#[test]
fn csv_is_one_table_and_a_file_is_not_overwritten_unless_asked() {
    let source = case("cgroup-oom--96m");
    let text =
        export(&source, &["--format", "csv", "--table", "cgroup", "--signal", "cgroup.current"]);
    assert!(text.starts_with("time,elapsed_s,key,label,group,cgroup.current\n"), "{text}");
    let directory = tempfile::tempdir().unwrap();
    let there = file(&directory, "there.csv", "precious");
    for (more, says) in [
        (&["--format", "csv", "-o", there.as_str()][..], "--force"),
        (&["--format", "csv", "--table", "host,disk"], "one table"),
        (&["--format", "csv", "--signal", "mem.nothing"], "no signal `mem.nothing`"),
        (&["--format", "csv", "--all"], "openmetrics"),
        (&["--format", "capture", "--table", "host"], "hold everything"),
        (&["--format", "openmetrics", "--all"], "lacks the times of its samples"),
        (&["--format", "parquet"], "-o DIR"),
    ] {
        let refused = memtide(&[&["export", source.as_str()], more].concat());
        assert_eq!(refused.status.code(), Some(3), "{more:?}");
        assert!(stderr(&refused).contains(says), "{more:?}: {}", stderr(&refused));
    }
    assert_eq!(std::fs::read(&there).unwrap(), b"precious");
}

#[test]
fn a_source_becomes_a_recording_with_the_same_findings_and_is_added_to_once() {
    let directory = tempfile::tempdir().unwrap();
    let to = directory.path().join("rec");
    let to = to.to_str().unwrap();
    let source = case("cgroup-oom--96m");
    let kept = memtide(&["record", "--from", &source, "--to", to]);
    assert!(kept.status.success(), "{}", stderr(&kept));
    let ids = |of: &str| {
        let report = json(&memtide(&["check", of, "--format", "json"]));
        let findings = report["findings"].as_array().unwrap().clone();
        findings.into_iter().map(|f| f["id"].to_string()).collect::<Vec<_>>()
    };
    assert_eq!(ids(to), ids(&source));
    assert!(!ids(to).is_empty());
    // Without a machine id a host goes by the name of its file.
    let other = std::fs::read(case("healthy--idle")).unwrap();
    let other = file(&directory, "other.jsonl.gz", other);
    for (source, says) in [(source, "cannot add to"), (other, "is the recording of")] {
        let refused = memtide(&["record", "--from", &source, "--to", to]);
        assert_eq!(refused.status.code(), Some(3), "{source}");
        assert!(stderr(&refused).contains(says), "{source}: {}", stderr(&refused));
    }
    let foreign = file(&directory, "precious.txt", "mine");
    let refused = memtide(&[
        "record",
        "--from",
        &case("healthy--idle"),
        "--to",
        directory.path().to_str().unwrap(),
    ]);
    assert_eq!(refused.status.code(), Some(3));
    assert_eq!(std::fs::read(foreign).unwrap(), b"mine");
}

#[test]
fn later_samples_of_the_same_host_go_on_and_those_that_overlap_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let sample = |n: u32| vec![("/proc/meminfo", format!("MemTotal: 1000 kB\nMemFree: {n} kB\n"))];
    let dated = |name: &str, second: u64| {
        let mut text = String::from("{\"interval_s\": 1.0, \"hostname\": \"web1\"}\n");
        for (t, line) in capture(&[sample(5), sample(6)]).lines().skip(1).enumerate() {
            let wall = (1_795_318_200 + second + t as u64) * 1_000_000_000;
            text.push_str(&line.replacen('{', &format!("{{\"wall_ns\":{wall},"), 1));
            text.push('\n');
        }
        file(&directory, name, text)
    };
    let to = directory.path().join("rec");
    let to = to.to_str().unwrap();
    for (source, fine) in
        [(dated("a.jsonl", 0), true), (dated("b.jsonl", 100), true), (dated("c.jsonl", 50), false)]
    {
        let kept = memtide(&["record", "--from", &source, "--to", to]);
        assert_eq!(kept.status.success(), fine, "{source}: {}", stderr(&kept));
        assert!(fine || stderr(&kept).contains("nothing is overwritten"));
    }
    let rows = export(to, &["--format", "csv", "--signal", "mem.free"]);
    assert_eq!(rows.lines().count(), 5, "{rows}");
}

#[test]
fn parquet_is_a_directory_that_was_not_there() {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("pq");
    let arguments =
        ["export", &case("cgroup-oom--96m"), "--format", "parquet", "-o", out.to_str().unwrap()];
    let written = memtide(&arguments);
    assert!(written.status.success(), "{}", stderr(&written));
    let segment = std::fs::read_dir(&out).unwrap().next().unwrap().unwrap().path();
    assert!(segment.join("host.parquet").exists() && segment.join("cgroup.parquet").exists());
    assert_eq!(memtide(&arguments).status.code(), Some(3));
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1, "drafts are gone");
}

#[test]
fn the_capture_of_a_recording_says_what_the_recording_says() {
    let directory = tempfile::tempdir().unwrap();
    for name in [
        "node-reclaim--dist21",
        "cgroup-oom--96m",
        "global-oom--512m",
        "dirty-throttle--7.2-1280m-ratio5",
        "healthy--5.10-768m-build",
    ] {
        let recording = directory.path().join(name);
        let recording = recording.to_str().unwrap();
        let kept = memtide(&["record", "--from", &case(name), "--to", recording]);
        assert!(kept.status.success(), "{}", stderr(&kept));
        let exported = format!("{recording}.jsonl.zst");
        let options = ["--format", "capture", "-o", &exported];
        let export = memtide(&[&["export", recording], &options[..]].concat());
        assert!(export.status.success(), "{}", stderr(&export));
        let said = stderr(&export);
        let mut left_out = said.lines().filter(|line| line.contains("left out"));
        assert!(left_out.all(|line| line.contains("memtide does not know")), "{said}");
        let [before, after] = [recording, &exported]
            .map(|source| json(&memtide(&["check", source, "--format", "json"])));
        assert_eq!(before["source"]["samples"], after["source"]["samples"]);
        for part in ["verdict", "headline", "findings", "notes", "clear", "not_evaluated"] {
            assert_eq!(before[part], after[part], "{name}: {part}");
        }
        assert!(!before["headline"].is_null());
    }
}
