//! One whole report in the ways in which people pass it on: each is read as fully as the report itself.

use std::fmt::Write;

use serde_json::json;

use super::{log, print};
use crate::testing::paste;

/// Each line in another form, with a line end.
fn each(lines: &[&str], wrap: impl Fn(usize, &str) -> String) -> String {
    let wrapped = lines.iter().enumerate();
    wrapped.fold(String::new(), |mut text, (at, line)| {
        let _ = writeln!(text, "{}", wrap(at, line));
        text
    })
}

fn quoted_printable(lines: &[&str]) -> String {
    each(lines, |_, line| {
        let escaped = line.replace('=', "=3D").replace('\t', "=09");
        let mut text = String::new();
        let mut column = 0;
        for part in escaped.split_inclusive(' ') {
            if column + part.len() > 75 && column > 0 {
                text += "=\n";
                column = 0;
            }
            text += part;
            column += part.len();
        }
        text
    })
}

fn html(line: &str) -> String {
    let escaped = line.replace('&', "&amp;");
    escaped.replace('<', "&lt;").replace('>', "&gt;")
}

fn stamp(at: usize) -> String {
    format!("[12345.{:06}]", at * 11)
}

type Wrap = (&'static str, fn(&[&str]) -> String);

const WRAPS: [Wrap; 38] = [
    ("dmesg", |l| each(l, |at, line| format!("{} {line}", stamp(at)))),
    ("dmesg -T", |l| each(l, |_, line| format!("[Sat Nov 21 23:58:47 2026] {line}"))),
    ("dmesg -T in Chinese", |l| each(l, |_, line| format!("[六 11月 21 23:58:47 2026] {line}"))),
    ("dmesg -x", |l| each(l, |at, line| format!("kern  :warn  : {} {line}", stamp(at)))),
    ("/dev/kmsg", |l| each(l, |at, line| format!("4,{at},{at}000,-;{line}"))),
    ("syslog", |l| each(l, |at, line| format!("Nov 21 23:58:47 db1 kernel: {} {line}", stamp(at)))),
    ("host removed", |l| each(l, |_, line| format!("Nov 21 23:58:47 *** kernel: {line}"))),
    ("RFC 5424", |l| {
        each(l, |_, line| format!("<6>1 2026-11-21T23:58:47Z db1 kernel - - - {line}"))
    }),
    ("RFC 5424 with data", |l| {
        each(l, |_, line| {
            format!("<6>1 2026-11-21T23:58:47.003Z db1 kernel - - [meta sequenceId=\"29\"] {line}")
        })
    }),
    ("Talos", |l| each(l, |_, line| format!("kern:    info: [2026-11-21T23:58:47.5Z]: {line}"))),
    ("Talos, two nodes", |l| {
        each(l, |_, line| format!("10.0.0.9: kern: warning: [2026-11-21T23:58:47.5Z]: {line}"))
    }),
    ("containers", |l| each(l, |_, line| format!("2026-11-21T23:58:47.123Z stdout F {line}"))),
    ("compose", |l| each(l, |at, line| format!("node-1  | {} {line}", stamp(at)))),
    ("journal, JSON", |l| {
        each(l, |_, line| {
            json!({"MESSAGE": line, "__REALTIME_TIMESTAMP": "1795305527000000", "PRIORITY": "4"})
                .to_string()
        })
    }),
    ("journal, JSON with a bytes field", |l| {
        each(l, |_, line| {
            json!({"MESSAGE": line.as_bytes(), "__REALTIME_TIMESTAMP": "1795305527000000"})
                .to_string()
        })
    }),
    ("journal, export", |l| {
        each(l, |_, line| {
            format!(
                "__CURSOR=s=1;i=2\n__REALTIME_TIMESTAMP=1795305527000000\nPRIORITY=4\n_TRANSPORT=kernel\nMESSAGE={line}\n"
            )
        })
    }),
    ("journal, verbose", |l| {
        each(l, |_, line| {
            format!(
                "Sat 2026-11-21 23:58:47.000000 UTC [s=ab;i=2f;b=1;m=2;t=3;x=4]\n    PRIORITY=4\n    _TRANSPORT=kernel\n    MESSAGE={line}"
            )
        })
    }),
    ("containers, JSON", |l| {
        each(l, |_, line| {
            json!({"log": format!("{line}\n"), "stream": "stdout", "time": "2026-11-21T23:58:47.1Z"}).to_string()
        })
    }),
    ("cloud logging", |l| {
        each(l, |_, line| {
            json!({"jsonPayload": {"message": line}, "timestamp": "2026-11-21T23:58:47Z", "severity": "INFO"}).to_string()
        })
    }),
    ("cloud logging, one array", |l| {
        let entries: Vec<_> = l
            .iter()
            .map(|line| json!({"textPayload": line, "timestamp": "2026-11-21T23:58:47Z"}))
            .collect();
        json!(entries).to_string()
    }),
    ("Loki", |l| {
        let values: Vec<_> = l.iter().map(|line| json!(["1795305527000000000", line])).collect();
        json!({"status": "success", "data": {"result": [{"stream": {"job": "kernel"}, "values": values}]}}).to_string()
    }),
    ("one message of JSON", |l| {
        json!({"message": l.join("\n"), "time": "2026-11-21T23:58:47Z"}).to_string()
    }),
    ("JSON text in a pretty document", |l| {
        format!("{{\n  \"kind\": \"Event\",\n  \"note\": {}\n}}\n", json!(l.join("\n")))
    }),
    ("string literals", |l| {
        each(l, |at, line| format!("    {},", json!(format!("{} {line}", stamp(at)))))
    }),
    ("fields of objects", |l| {
        each(l, |at, line| {
            format!("  {{\n    line: {},\n  }},", json!(format!("{} {line}", stamp(at))))
        })
    }),
    ("Python, joined literals", |l| each(l, |at, line| format!("    '{} {line}\\n'", stamp(at)))),
    ("Go, plus", |l| each(l, |at, line| format!("\t\"{} {line}\\n\" +", stamp(at)))),
    ("mail quote", |l| each(l, |_, line| format!("> > {line}"))),
    ("mail, quoted-printable", quoted_printable),
    ("block in a list", |l| each(l, |_, line| format!("    {line}"))),
    ("bullets", |l| each(l, |at, line| format!("* `{} {line}`", stamp(at)))),
    ("table", |l| each(l, |at, line| format!("| {at} | `{} {line}` |", stamp(at)))),
    ("CSV", |l| {
        each(l, |_, line| format!("\"2026-11-21T23:58:47.000Z\",\"{}\"", line.replace('"', "\"\"")))
    }),
    ("HTML", |l| each(l, |at, line| format!("{} {}<br>", stamp(at), html(line)))),
    ("HTML, one line", |l| {
        each(l, |at, line| format!("{} {}<br/>", stamp(at), html(line))).replace('\n', "")
    }),
    ("tabs and carriage returns", |l| each(l, |_, line| format!("{}\r", line.replace("  ", "\t")))),
    ("glued", |l| {
        each(l, |at, line| format!("Nov 21 23:58:47 db1 kernel: {} {line}", stamp(at)))
            .replace('\n', "")
    }),
    ("newest first", |l| {
        let turned: Vec<&str> = l.iter().rev().copied().collect();
        each(&turned, |at, line| format!("{} {line}", stamp(at)))
    }),
];

#[test]
fn a_report_is_read_as_fully_in_every_wrapping() {
    let text = log("6.1-swap-full");
    let lines: Vec<&str> = text.lines().collect();
    let known = print(&paste(&text));
    let mut failed = Vec::new();
    for (name, wrap) in WRAPS {
        let opened = paste(&wrap(&lines));
        let read = print(&opened);
        if read != known {
            let at = read.bytes().zip(known.bytes()).take_while(|(a, b)| a == b).count();
            let shown =
                |text: &str| text.chars().skip(at.saturating_sub(60)).take(160).collect::<String>();
            failed.push(format!(
                "{name}: {} reports\n  {}\n  {}",
                opened.timeline.all_reports().len(),
                shown(&read),
                shown(&known)
            ));
        }
    }
    assert!(failed.is_empty(), "{} of {}\n{}", failed.len(), WRAPS.len(), failed.join("\n"));
}
