//! A wall clock that is set while somebody records: every answer tells each moment by the clock of its own stretch, and
//! what is recorded decides how finely it is judged.

use std::io::Read;

use serde_json::{Value, json};

use crate::report::read;
use crate::support::{file, json as answer, memtide, stderr, stdout};

/// 11:06:40 UTC.
const BEGIN: i32 = 1_795_000_000;

/// 39 s of swap thrash in a recording whose wall clock shows so much at the first sample, and is set by so many seconds
/// before one of the others.
fn recorded(directory: &tempfile::TempDir, begin: i32, (at, by): (u32, i32)) -> String {
    let case = &crate::cases::named("swap-thrash--512m-swapdisk").source;
    let mut text = String::new();
    let packed = std::fs::File::open(case).unwrap();
    flate2::read::GzDecoder::new(packed).read_to_string(&mut text).unwrap();
    let mut lines = text.lines();
    let mut set = format!("{}\n", lines.next().unwrap());
    for (second, line) in (0..).zip(lines) {
        let mut sample: Value = serde_json::from_str(line).unwrap();
        sample["t"] = json!(second);
        let set_by = if second < at { 0 } else { by };
        let wall = i64::from(begin) + i64::from(second) + i64::from(set_by);
        sample["wall_ns"] = json!(wall * 1_000_000_000);
        set.push_str(&format!("{sample}\n"));
    }
    let capture = file(directory, "set.jsonl", set);
    let kept = directory.path().join("kept").to_str().unwrap().to_owned();
    let output = memtide(&["record", "--from", &capture, "--to", &kept]);
    assert!(output.status.success(), "{}", stderr(&output));
    kept
}

fn meta(html: &str) -> Value {
    let (_, rest) = html.split_once("id=\"memtide-page\">").unwrap();
    serde_json::from_str(rest.split_once("</script>").unwrap().0).unwrap()
}

#[test]
fn a_clock_that_was_set_changes_no_finding_and_is_told_everywhere() {
    for (begin, step, header, event) in [
        (BEGIN, (20, 3600), "11:06:40 to 12:07:", "the wall clock was set forward by 60 min"),
        (BEGIN, (20, -3600), "11:06:40 to 10:07:", "the wall clock was set back by 60 min"),
        (
            30,
            (10, BEGIN - 30),
            "1970-01-01 00:00:30 (clock not yet set) to 2026-11-18 11:07:",
            "the wall clock was set forward by 20,775 d",
        ),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let kept = recorded(&directory, begin, step);
        let plain = tempfile::tempdir().unwrap();
        let plain = recorded(&plain, BEGIN, (0, 0));
        let found = |kept: &str| {
            let report = answer(&memtide(&["check", kept, "--format", "json"]));
            let of = |it: &Value| (it["id"].clone(), it["title"].clone(), it["from_s"].clone());
            let findings: Vec<_> = report["findings"].as_array().unwrap().iter().map(of).collect();
            assert_eq!(report["source"]["thinned_to_s"], Value::Null);
            (report["source"]["samples"].clone(), findings)
        };
        assert_eq!(found(&kept), found(&plain), "{event}");

        let output = memtide(&["report", &kept, "-o", "-"]);
        let html = stdout(&output);
        assert!(read(&html).contains(header), "{header}");
        let meta = meta(&html);
        let (at, by) = step;
        assert_eq!(meta["offsets"], json!([[0.0, 0.0], [f64::from(at), f64::from(by)]]));
        assert_eq!(meta["start_unix_ms"], json!(i64::from(begin) * 1000));
        let told = meta["events"].as_array().unwrap().iter();
        let told: Vec<_> = told.filter(|it| it["text"] == event).collect();
        assert_eq!(told.len(), 1, "{event}");
        assert_eq!(told[0]["at_s"], json!(f64::from(at)));

        let output =
            memtide(&["check", &kept, "--since", "+5s", "--until", "+25s", "--format", "json"]);
        let part = answer(&output);
        assert_eq!(part["source"]["samples"], 21, "{event}");
        assert_eq!(part["source"]["cut_at_s"], 5.0, "{event}");
        assert!(stdout(&memtide(&["where", &kept])).contains("470 MiB"), "{event}");
    }
}
