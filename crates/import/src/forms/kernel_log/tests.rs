mod wraps;

use std::path::Path;

use crate::testing::paste;
use timeline::signals::{CGROUP_ANON, CGROUP_MAX, MEM_FREE, MEM_TOTAL};
use timeline::{Entity, Source};
use units::{Bytes, Limit};

/// All saved reports.
fn logs() -> Vec<(String, String)> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../probe/tests/kernel_reports");
    let paths = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    let mut found: Vec<_> = paths
        .filter(|path| path.extension().is_some_and(|e| e == "log"))
        .map(|path| {
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            (name, std::fs::read_to_string(path).unwrap())
        })
        .collect();
    found.sort();
    found
}

fn log(name: &str) -> String {
    let found = logs().into_iter().find(|(known, _)| known == name);
    found.unwrap().1
}

/// Everything in the reports of a paste.
fn print(opened: &Source) -> String {
    let mut all = String::new();
    for reported in opened.timeline.all_reports() {
        let mut report = reported.report.clone();
        // Broken lines count more than once.
        report.lines = 0;
        // Of the log, not of the report.
        report.stamp = None;
        for (number, _) in &mut report.not_understood {
            *number = 0;
        }
        all += &format!("{report:?}\n");
    }
    all
}

/// Logs with other prefixes.
fn bare() -> Vec<(String, String)> {
    let bare =
        |(name, _): &(String, String)| !name.starts_with("vm-") && name != "2.6.32-swap-full";
    logs().into_iter().filter(bare).collect()
}

#[test]
fn every_log_has_its_reports() {
    for (name, text) in logs() {
        let opened = paste(&text);
        let whats: Vec<_> = opened.origin.inputs.iter().map(|i| i.what.as_str()).collect();
        // A memory dump alone is not a report.
        let is_dump = ["2.6.18-memory-dump", "5.13-64k-pages", "5.15-false-global"];
        let has_none = opened.timeline.all_reports().is_empty();
        assert_eq!(has_none, is_dump.contains(&name.as_str()), "{name}: {whats:?}");
        assert!(opened.origin.lines_skipped <= 3, "{name}: {whats:?}");
    }
}

#[test]
fn every_prefix_is_removed() {
    for (name, text) in bare() {
        let known = print(&paste(&text));
        for prefix in [
            "[12345.678901] ",
            "Nov 21 23:58:47 host kernel: [12345.678901] ",
            "[Sat Nov 21 23:58:47 2026] ",
            "<4>[  659.997051][ T1598] ",
            "kern  :warn  : [12345.678901] ",
            "2026-11-21T23:58:47.123Z stdout F ",
            "4,19685342,241227987454,-;",
        ] {
            let stamped: String = text.lines().map(|l| format!("{prefix}{l}\n")).collect();
            assert_eq!(print(&paste(&stamped)), known, "{name} {prefix}");
        }
    }
}

#[test]
fn json_lines_are_a_log() {
    let text = log("5.13-by-hand");
    let known = print(&paste(&text));
    let json: String = text
        .lines()
        .map(|line| {
            format!("{}\n", serde_json::json!({ "log": format!("{line}\n"), "stream": "stdout" }))
        })
        .collect();
    assert_eq!(print(&paste(&json)), known);
}

/// Breaks lines between words, as mails do.
fn broken(text: &str, prefix: &str, width: usize) -> String {
    let mut out = String::new();
    for line in text.lines() {
        let mut column = prefix.len();
        out += prefix;
        for (count, word) in line.split(' ').enumerate() {
            if count > 0 && column + word.len() > width && !word.is_empty() {
                out.push('\n');
                column = 0;
            } else if count > 0 {
                out.push(' ');
            }
            out += word;
            column += word.len() + 1;
        }
        out.push('\n');
    }
    out
}

#[test]
fn lines_broken_by_mail_are_joined() {
    for name in
        ["6.1-swap-full", "5.13-by-hand", "5.7-highmem-i386-kill", "3.10-two-nodes-swap-full"]
    {
        let text = log(name);
        let known = paste(&text);
        let opened = paste(&broken(&text, "[12345.678901] ", 78));
        let (report, whole) =
            (&opened.timeline.all_reports()[0].report, &known.timeline.all_reports()[0].report);
        assert_eq!(report.invoker, whole.invoker, "{name}");
        assert_eq!(report.request, whole.request, "{name}");
        assert_eq!(report.zones, whole.zones, "{name}");
        assert_eq!(report.tasks, whole.tasks, "{name}");
        assert_eq!(report.killed, whole.killed, "{name}");
        assert_eq!(format!("{:?}", report.host), format!("{:?}", whole.host), "{name}");
    }
}

#[test]
fn a_report_gives_the_rows_of_kernel_files() {
    let opened = paste(&log("6.1-swap-full"));
    assert!(opened.timeline.last(MEM_TOTAL) > Some(Bytes::from_gib(15)));
    assert_eq!(opened.timeline.entities(Entity::Zone).count(), 3);
    assert_eq!(opened.facts.kernel_release(), Some("6.1.1-arch1-1"));
    assert!(opened.origin.inputs[0].what.starts_with("kernel OOM report, "));
}

#[test]
fn two_lines_of_a_cgroup_are_enough() {
    let text = "memory: usage 262144kB, limit 262144kB, failcnt 2472\n\
        Memory cgroup stats for /case: cache:5664KB rss:249452KB rss_huge:30720KB mapped_file:5660KB dirty:0KB writeback:0KB\n";
    let opened = paste(text);
    let group = opened.timeline.entities(Entity::Cgroup).next().unwrap();
    assert_eq!(group.key, "/case");
    assert_eq!(
        opened.timeline.latest_of(group, CGROUP_MAX, 0),
        Some(Limit::Bytes(Bytes::from_mib(256)))
    );
    assert_eq!(opened.timeline.latest_of(group, CGROUP_ANON, 0), Some(Bytes::from_kib(249_452)));
    let report = &opened.timeline.all_reports()[0].report;
    assert!(report.is_cut && report.group.is_some());
}

#[test]
fn a_sysrq_dump_is_not_a_report() {
    let text = format!("SysRq : Show Memory\n{}", log("2.6.18-memory-dump"));
    let opened = paste(&text);
    assert!(opened.timeline.all_reports().is_empty());
    assert!(opened.timeline.last(MEM_FREE).is_some());
}

#[test]
fn nothing_in_a_log_makes_it_panic() {
    let text = log("vm-7.2-noswap");
    for cut in (0..text.len()).step_by(211) {
        let _ = paste(text.get(..cut).unwrap_or_default());
    }
    for drop in (0..text.lines().count()).step_by(5) {
        let rest: Vec<&str> =
            text.lines().enumerate().filter(|(at, _)| *at != drop).map(|(_, line)| line).collect();
        let _ = paste(&rest.join("\n"));
    }
    let turned: Vec<&str> = text.lines().rev().collect();
    let _ = paste(&turned.join("\n"));
    for number in ["99999999999999999999", "-5"] {
        let _ = paste(&text.replace("120", number).replace("0kB", &format!("{number}kB")));
    }
}

#[test]
fn a_message_that_is_quoted_as_an_example_is_no_kill() {
    const KILL: &str = "Out of memory: Killed process 812 (java) total-vm:400kB, anon-rss:300kB";
    for words in [
        "Do you see something like \"",
        "Is it there? I expected to see ",
        "It kills a process. A typical message looks like this:\n\n```\n[ 11686.858888] ",
        "If you see a line such as\n",
        "    let source = \"",
        "\tpr_warn(\"",
        "printk(KERN_ERR \"",
    ] {
        let reports = paste(&format!("{words}{KILL}\n")).timeline;
        assert_eq!(reports.all_reports().len(), 0, "{words}");
    }
    for words in [
        "Each night I get messages like this:\n\n",
        "If you see a pattern, tell me.\nMar  5 02:11:09 db1 kernel: ",
        "Why? If you see it, tell me. This is what dmesg has:\n",
        "ts=2026-03-05T02:11:09Z msg=\"",
        "",
    ] {
        let reports = paste(&format!("{words}{KILL}\n")).timeline;
        assert_eq!(reports.all_reports().len(), 1, "{words}");
    }
}

/// A name with a line end is printed as it is by `dmesg` and the journal; syslog repeats its prefix.
#[test]
fn a_kill_whose_name_breaks_its_line_is_one_kill() {
    let front = "Memory cgroup out of memory: Killed process 812 (";
    let back = "ghost) total-vm:24504kB, anon-rss:13604kB, file-rss:3704kB, shmem-rss:0kB";
    let killed = |text: &str| -> Vec<_> {
        let opened = paste(text);
        let reports = opened.timeline.all_reports().iter();
        let killed = reports.flat_map(|reported| &reported.report.killed);
        killed.map(|killed| (killed.name.clone(), killed.pid)).collect()
    };
    for (text, name) in [
        (format!("[  101.5] {front}\n{back}\n"), "ghost"),
        (format!("[  101.5] {front}\n\n\n{back}\n"), "\nghost"),
        (format!("[  101.5] {front}\n[  101.5] {back}\n"), "\nghost"),
        (format!("[  101.5] {front}\n          {back}\n"), "ghost"),
        (format!("[  101.5] {front}a\n[  101.5] b\n[  101.5] {back}\n"), "a\nb\nghost"),
        (
            format!("Nov 21 23:58:47 db1 kernel: {front}\n                            {back}\n"),
            "ghost",
        ),
        (
            format!(
                "{{\"MESSAGE\":\"{front}\\n{back}\",\"__REALTIME_TIMESTAMP\":\"1795305527000000\"}}\n"
            ),
            "\nghost",
        ),
        // Where its end is lost, the process is known.
        (format!("[  101.5] {front}\n[  102.0] usb 1-1: new device\n"), ""),
    ] {
        assert_eq!(killed(&text), [(name.to_owned(), 812)], "{text}");
    }
    let next = front.replace("812", "813");
    let text = format!("[  101.5] {front}gh\n[  102.0] {next}x{back}\n");
    let both = [(String::new(), 812), ("xghost".to_owned(), 813)];
    assert_eq!(killed(&text), both);
}
