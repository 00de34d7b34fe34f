//! A recording of this host by sysstat itself: whatever form it is read in, the timeline gives sadf's figures back.
#![allow(clippy::unwrap_used, clippy::print_stdout)] // helpers fail as the test does, and say what they compared

use std::path::Path;
use std::process::Command;

use import::{open, open_bytes};
use timeline::signals::{
    COMMITTED_AS, DENTRIES_UNUSED, FILES_OPEN, MEM_ACTIVE, MEM_ANON, MEM_AVAILABLE, MEM_BUFFERS,
    MEM_CACHED, MEM_DIRTY, MEM_FREE, MEM_INACTIVE, MEM_KERNEL_STACK, MEM_PAGE_TABLES, MEM_SHMEM,
    MEM_SLAB, MEM_SWAP_CACHED, MEM_VMALLOC_USED, PGFAULT, PGFREE, PGMAJFAULT, PGPGIN, PGPGOUT,
    PGSCAN_DIRECT, PGSCAN_KSWAPD, PSI_CPU_SOME, PSI_IO_FULL, PSI_IO_SOME, PSI_MEMORY_FULL,
    PSI_MEMORY_SOME, PSWPIN, PSWPOUT, SWAP_FREE, TASKS_BLOCKED, TASKS_RUNNING,
};
use timeline::{Counter, Gauge, Signal, Timeline};
use units::Unit;

/// Where distributions keep the program that writes binary files.
const SADC: &[&str] = &["/usr/lib/sysstat/sadc", "/usr/lib64/sa/sadc", "/usr/lib/sa/sadc"];

fn output(program: &str, arguments: &[&str], file: &Path, tables: &[&str]) -> Option<Vec<u8>> {
    let mut command = Command::new(program);
    command.env("LC_ALL", "C").args(arguments).arg(file).args(tables);
    let done = command.output().ok()?;
    done.status.success().then_some(done.stdout)
}

/// A column of sadf and the timeline's readings of it, in sadf's unit.
struct Column {
    heading: &'static str,
    readings: Vec<Option<f64>>,
    /// What rounding to whole counts may cost a rate over a second, in sadf's unit.
    rounding: f64,
}

fn gauge<U: Unit>(timeline: &Timeline, signal: Signal<Gauge<U>>, scale: f64) -> Column {
    let track = timeline.gauge(signal);
    Column {
        heading: signal.def().sar,
        readings: track.map_or_else(Vec::new, |t| values(t.values(), scale)),
        rounding: 0.0,
    }
}

fn rate<U: Unit>(timeline: &Timeline, signal: Signal<Counter<U>>, scale: f64) -> Column {
    let track = timeline.rate(signal);
    Column {
        heading: signal.def().sar,
        readings: track.map_or_else(Vec::new, |t| values(t.values(), scale)),
        rounding: 1.0 / scale,
    }
}

fn values(values: &[Option<f64>], scale: f64) -> Vec<Option<f64>> {
    values.iter().map(|v| v.map(|v| v / scale)).collect()
}

fn columns(t: &Timeline) -> Vec<Column> {
    const KIB: f64 = 1024.0;
    const PERCENT: f64 = 10_000.0;
    let sizes = [
        MEM_FREE,
        MEM_AVAILABLE,
        MEM_BUFFERS,
        MEM_CACHED,
        COMMITTED_AS,
        MEM_ACTIVE,
        MEM_INACTIVE,
        MEM_DIRTY,
        MEM_ANON,
        MEM_SLAB,
        MEM_KERNEL_STACK,
        MEM_PAGE_TABLES,
        MEM_VMALLOC_USED,
        MEM_SHMEM,
        SWAP_FREE,
        MEM_SWAP_CACHED,
    ];
    let counts = [TASKS_RUNNING, TASKS_BLOCKED, DENTRIES_UNUSED, FILES_OPEN];
    let pages = [PSWPIN, PSWPOUT, PGFREE, PGSCAN_KSWAPD, PGSCAN_DIRECT];
    let stalls = [PSI_CPU_SOME, PSI_IO_SOME, PSI_IO_FULL, PSI_MEMORY_SOME, PSI_MEMORY_FULL];
    let mut all: Vec<Column> = sizes.map(|s| gauge(t, s, KIB)).into();
    all.extend(counts.map(|s| gauge(t, s, 1.0)));
    all.extend(pages.map(|s| rate(t, s, 1.0)));
    all.extend([PGFAULT, PGMAJFAULT].map(|s| rate(t, s, 1.0)));
    all.extend([PGPGIN, PGPGOUT].map(|s| rate(t, s, KIB)));
    all.extend(stalls.map(|s| rate(t, s, PERCENT)));
    all
}

/// The figures of `sadf -d -U`: heading, seconds since 1970, value.
fn printed(text: &str) -> Vec<(&str, i64, f64)> {
    let mut headings: Vec<&str> = Vec::new();
    let mut found = Vec::new();
    for line in text.lines() {
        let fields: Vec<&str> = line.split(';').collect();
        if line.starts_with("# ") {
            headings = fields;
            continue;
        }
        let unix: i64 = fields[2].parse().unwrap();
        for (heading, field) in headings.iter().zip(&fields).skip(3) {
            found.push((*heading, unix, field.parse().unwrap()));
        }
    }
    found
}

/// Every figure of a known column is the timeline's, within what its two decimals leave open.
fn compare(form: &str, timeline: &Timeline, printed: &[(&str, i64, f64)]) {
    let columns = columns(timeline);
    let wall = |i| timeline.stamp(i).and_then(|stamp| stamp.wall);
    let seconds = |i| wall(i).map(|wall| wall.unix_nanos() / 1_000_000_000);
    let mut good = 0;
    for (heading, unix, expected) in printed {
        let Some(column) = columns.iter().find(|c| c.heading == *heading) else {
            continue;
        };
        // `sar` prints local times: the days may differ, the seconds of the hour do not.
        let is_it =
            |i: &usize| seconds(*i).map(|s| s.rem_euclid(900)) == Some(unix.rem_euclid(900));
        let index = (0..timeline.len()).rev().find(is_it);
        let reading = index.and_then(|i| column.readings.get(i).copied().flatten());
        match reading {
            Some(found) => {
                let tolerance = 0.005 + column.rounding + 1e-6;
                assert!(
                    (found - expected).abs() <= tolerance,
                    "{form}, {heading} at {unix}: {found}, not {expected}"
                );
                good += 1;
            }
            // Zero throughout where no host has none: this sysstat or kernel does not know it.
            None => {
                assert!(*expected == 0.0, "{form}, {heading} at {unix}: nothing, not {expected}")
            }
        }
    }
    assert!(good >= 80, "{form}: only {good} figures of {}", printed.len());
    println!("{form}: {good} figures agree");
}

#[test]
fn every_form_gives_back_what_sadf_prints() {
    let Some(sadc) = SADC.iter().find(|path| Path::new(path).exists()) else {
        assert!(std::env::var_os("CI").is_none(), "sysstat is not installed");
        println!("skipped: sysstat is not installed");
        return;
    };
    let scratch = tempfile::tempdir().unwrap();
    let file = scratch.path().join("sa");
    let recorded = Command::new(sadc).args(["-S", "XALL", "1", "5"]).arg(&file).status();
    assert!(recorded.unwrap().success());
    let sadf = |form: &[&str], tables: &[&str]| output("sadf", form, &file, tables);
    let tables = ["--", "-r", "ALL", "-S", "-B", "-W", "-v", "-q", "ALL"];
    let all = ["--", "-A"];
    let text = String::from_utf8(sadf(&["-d", "-U"], &tables).unwrap()).unwrap();
    let printed = printed(&text);
    for (form, bytes) in [
        ("sadf -d", sadf(&["-d"], &all)),
        ("sadf -d -U", sadf(&["-d", "-U"], &all)),
        ("sadf -p", sadf(&["-p"], &all)),
        ("sadf -j", sadf(&["-j"], &all)),
        ("sadf -x", sadf(&["-x"], &all)),
        ("sar -A", output("sar", &["-A", "-f"], &file, &[])),
        (
            "sar",
            output("sar", &["-r", "ALL", "-S", "-B", "-W", "-v", "-q", "ALL", "-f"], &file, &[]),
        ),
    ] {
        let opened = open_bytes(form, &bytes.unwrap()).unwrap();
        assert_eq!(opened.problems, Vec::<String>::new(), "{form}");
        compare(form, &opened.timeline, &printed);
    }
    let opened = open(&file, &mut |_| ()).unwrap();
    compare("sa file", &opened.timeline, &printed);
}

#[test]
fn a_broken_sa_file_says_what_to_do() {
    let broken = b"\x96\xd5\x75\x21\x0c\x01\x05\x00 and then nothing";
    let error = open_bytes("sa21", broken).unwrap_err();
    let text = timeline::with_causes(&error);
    assert!(text.contains("binary file of sysstat"), "{text}");
    assert!(error.help().is_some_and(|help| help.contains("sadf -j FILE")));
}
