//! `memtide report`: the page says what text and JSON say, holds nothing but text from the host, and is whole or not there.

use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::support::{capture, file, folded, json, memtide, root, stderr, stdout};

fn case(id: &str) -> String {
    crate::cases::path(id)
}

fn page(source: &str, more: &[&str]) -> String {
    let output = memtide(&[&["report", source, "-o", "-"], more].concat());
    assert!(output.status.success(), "{source}: {}", stderr(&output));
    stdout(&output)
}

/// What stands in an element of the page that a script reads.
fn element<'a>(html: &'a str, id: &str) -> &'a str {
    let (_, rest) = html.split_once(&format!("id=\"{id}\">")).unwrap();
    rest.split_once("</script>").unwrap().0
}

pub(crate) fn meta(html: &str) -> Value {
    serde_json::from_str(element(html, "memtide-page")).unwrap()
}

/// What a reader without a script sees: text without tags, scripts and styles, with its blanks folded.
pub(crate) fn read(html: &str) -> String {
    let mut text = String::new();
    let mut rest = html;
    while let Some((before, tag)) = rest.split_once('<') {
        text.push_str(before);
        text.push(' ');
        let hidden = ["script", "style"].into_iter().find(|name| tag.starts_with(name));
        let end = hidden.map_or_else(|| ">".to_owned(), |name| format!("</{name}>"));
        rest = tag.split_once(&end).unwrap().1;
    }
    plain(&(text + rest))
}

/// Entities as characters, blanks folded.
pub(crate) fn plain(text: &str) -> String {
    let entities = [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&#39;", "'"), ("&amp;", "&")];
    let text =
        entities.into_iter().fold(text.to_owned(), |text, (from, to)| text.replace(from, to));
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Every sentence and number of a finding or a note.
fn sentences(finding: &Value) -> Vec<String> {
    let mut all =
        vec![finding["title"].clone(), finding["cause"].clone(), finding["verify"].clone()];
    let lists = [
        ("evidence", &["text", "value_text", "threshold_text"][..]),
        ("ruled_out", &["because"]),
        ("affected", &["what"]),
        ("fix", &["what", "now", "persistent"]),
    ];
    for (list, fields) in lists {
        for entry in finding[list].as_array().unwrap() {
            all.extend(fields.iter().map(|field| entry[*field].clone()));
        }
    }
    all.iter().filter_map(Value::as_str).map(plain).collect()
}

fn texts(values: &Value, field: &str) -> Vec<String> {
    let values = values.as_array().unwrap().iter();
    values.filter_map(|value| value[field].as_str()).map(plain).collect()
}

#[test]
fn text_json_and_the_page_say_the_same() {
    for name in [
        "swap-thrash--512m-swapdisk",
        "node-reclaim--dist21",
        "dirty-throttling--1g-20mbps",
        "cgroup-oom--96m",
        "healthy--idle",
    ] {
        let source = case(name);
        let answer = json(&memtide(&["check", &source, "--format", "json"]));
        let text = folded(&memtide(&["check", &source, "--all"]));
        let html = page(&source, &[]);
        let shown = read(&html);
        let says = |sentence: &str| {
            assert!(shown.contains(sentence), "{name}: the page lacks `{sentence}`");
        };
        says(&plain(answer["headline"].as_str().unwrap()));
        for finding in answer["findings"].as_array().unwrap() {
            sentences(finding).iter().for_each(|sentence| says(sentence));
            for evidence in texts(&finding["evidence"], "text") {
                assert!(
                    finding["caused_by"] != Value::Null || text.contains(&evidence),
                    "{name}: text lacks `{evidence}`"
                );
            }
        }
        for note in answer["notes"].as_array().unwrap() {
            says(&plain(note["title"].as_str().unwrap()));
        }
        texts(&answer["clear"], "because").iter().for_each(|sentence| says(sentence));
        texts(&answer["not_evaluated"], "needs").iter().for_each(|sentence| says(sentence));
        texts(&answer["not_evaluated"], "id").iter().for_each(|id| says(id));
        let titles = texts(&meta(&html)["findings"], "title");
        let whole = |finding: &Value| {
            let parts = ["title", "more"].map(|part| finding[part].as_str().unwrap_or_default());
            plain(parts.join(" ").trim_end())
        };
        let findings = answer["findings"].as_array().unwrap();
        assert_eq!(titles, findings.iter().map(whole).collect::<Vec<_>>(), "{name}");
    }
}

/// Numbers of seven bits a byte.
struct Packed(std::vec::IntoIter<u8>);

impl Packed {
    fn of(html: &str) -> Self {
        let encoded = element(html, "memtide-data");
        let mut bytes = Vec::new();
        let deflated = base64(encoded);
        flate2::read::DeflateDecoder::new(deflated.as_slice()).read_to_end(&mut bytes).unwrap();
        Self(bytes.into_iter())
    }

    fn byte(&mut self) -> u8 {
        self.0.next().expect("more packed bytes")
    }

    fn number(&mut self) -> u64 {
        let (mut number, mut shift) = (0, 0);
        loop {
            let byte = self.byte();
            number |= u64::from(byte & 0x7f) << shift;
            shift += 7;
            if byte < 0x80 {
                return number;
            }
        }
    }

    /// The values of a column in steps; `None` where nothing was measured.
    fn column(&mut self, rows: u64) -> Vec<Option<i64>> {
        let mut last = 0;
        let mut value = |number: u64| {
            let zigzag = number.checked_sub(1)?;
            let half = i64::try_from(zigzag >> 1).unwrap();
            last += if zigzag & 1 == 0 { half } else { -half - 1 };
            Some(last)
        };
        (0..rows).map(|_| value(self.number())).collect()
    }
}

fn base64(text: &str) -> Vec<u8> {
    const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let digit = |byte: &u8| DIGITS.iter().position(|digit| digit == byte);
    let digits: Vec<u32> =
        text.bytes().filter_map(|byte| digit(&byte)).map(|at| u32::try_from(at).unwrap()).collect();
    let bytes = digits.chunks(4).flat_map(|four| {
        let bits = four.iter().fold(0, |bits, digit| bits << 6 | digit) << (6 * (4 - four.len()));
        let [_, three @ ..] = bits.to_be_bytes();
        three.into_iter().take(four.len() - 1)
    });
    bytes.collect()
}

#[test]
fn the_packed_numbers_are_laid_out_as_the_page_says() {
    for name in ["swap-thrash--512m-swapdisk", "healthy--numa-mode0"] {
        let html = page(&case(name), &[]);
        let meta = meta(&html);
        let mut packed = Packed::of(&html);
        for level in meta["levels"].as_array().unwrap() {
            let rows = level["rows"].as_u64().unwrap();
            let millis: u64 = (0..rows).map(|_| packed.number()).sum();
            let to_s = level["to_s"].as_f64().unwrap();
            assert!((millis as f64 / 1e3 - to_s).abs() < 0.001, "{name}: {millis} ms, {to_s} s");
            for chart in meta["charts"].as_array().unwrap() {
                for series in chart["series"].as_array().unwrap() {
                    let columns = packed.byte();
                    assert!([0, 1, 3].contains(&columns), "{name}: {series}: {columns}");
                    let values: Vec<_> = (0..columns).map(|_| packed.column(rows)).collect();
                    // What is available is a real number of bytes.
                    if series["id"] == "available" && chart["id"] == "free" {
                        let scale = series["scale"].as_f64().unwrap();
                        let first = values[0][0].unwrap() as f64 * scale;
                        assert!((1e6..1e10).contains(&first), "{name}: {first}");
                    }
                }
            }
        }
        assert_eq!(packed.0.next(), None, "{name}: more bytes than told");
    }
}

#[test]
fn every_chart_of_the_script_has_its_place_and_its_words() {
    let html = page(&case("swap-thrash--512m-swapdisk"), &[]);
    let meta = meta(&html);
    let charts = meta["charts"].as_array().unwrap();
    assert!(charts.len() > 8, "{}", charts.len());
    for chart in charts {
        let id = chart["id"].as_str().unwrap();
        assert!(html.contains(&format!("id=\"chart-{id}\" data-chart=\"{id}\"")), "{id}");
        assert!(!chart["says"].as_str().unwrap().is_empty(), "{id}");
    }
    // The stretch that was found, its proof, and the way back.
    let finding = &meta["findings"][0];
    assert_eq!(finding["id"], "swap-thrash");
    let (from, to) = (finding["from_s"].as_f64().unwrap(), finding["to_s"].as_f64().unwrap());
    let worst = meta["worst_s"].as_f64().unwrap();
    assert!(from <= worst && worst <= to, "{from} {worst} {to}");
    let first = finding["charts"][0].as_str().unwrap();
    let proof = charts.iter().find(|chart| chart["id"] == first).unwrap();
    assert!(proof["evidence_of"].as_array().unwrap().contains(&0.into()), "{proof}");
    assert!(html.contains("evidence for <a href=\"#finding-0\">swap-thrash</a>"));
    assert_eq!(meta["start_unix_ms"], Value::Null, "times of a capture are offsets");
}

/// The page's tags in order, checked to be closed in order.
pub(crate) fn tags(html: &str) -> Vec<String> {
    const EMPTY: [&str; 4] = ["meta", "!doctype", "br", "hr"];
    let (mut open, mut all) = (Vec::new(), Vec::new());
    let mut rest = html;
    while let Some((_, tag)) = rest.split_once('<') {
        let (tag, after) = tag.split_once('>').unwrap();
        let name = tag.split([' ', '\n']).next().unwrap().to_owned();
        rest = after;
        if let Some(name) = name.strip_prefix('/') {
            assert_eq!(open.pop().as_deref(), Some(name), "{after:.200}");
            continue;
        }
        if ["script", "style"].contains(&name.as_str()) {
            rest = after.split_once(&format!("</{name}>")).unwrap().1;
        } else if !EMPTY.contains(&name.as_str()) && !tag.ends_with('/') {
            open.push(name);
        }
        all.push(tag.to_owned());
    }
    assert_eq!(open, Vec::<String>::new());
    all
}

/// The values of an attribute.
fn attributes<'a>(tags: &'a [String], name: &str) -> Vec<&'a str> {
    let mark = format!(" {name}=\"");
    let of = |tag: &'a String| Some(tag.split_once(&mark)?.1.split_once('"')?.0);
    tags.iter().filter_map(of).collect()
}

#[test]
fn the_page_is_whole_and_fetches_nothing() {
    for name in ["swap-thrash--512m-swapdisk", "healthy--idle", "free-m-126g-cache"] {
        let source = case(name);
        let html = page(&source, &[]);
        let tags = tags(&html);
        let mut ids = attributes(&tags, "id");
        for link in attributes(&tags, "href") {
            let target = link.strip_prefix('#').unwrap_or_else(|| panic!("{name}: {link}"));
            assert!(ids.contains(&target), "{name}: nothing is at {link}");
        }
        for label in attributes(&tags, "aria-labelledby") {
            assert!(ids.contains(&label), "{name}: {label}");
        }
        let count = ids.len();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), count, "{name}: an id is there twice");
        for forbidden in ["src", "style", "onclick", "srcset", "action"] {
            assert_eq!(attributes(&tags, forbidden), [""; 0], "{name}: {forbidden}");
        }
        assert!(html.contains("default-src 'none'"), "{name}");
    }
}

const HOSTILE: &str = "</script><script>alert(1)</script>\"'onload=\"x\u{202e}\u{200b}\0&amp;";

/// A sick host all of whose names are attacks.
fn hostile(directory: &tempfile::TempDir) -> String {
    let long = format!("{HOSTILE}{}", "x".repeat(4096));
    let samples: Vec<_> = (0..20u64)
        .map(|t| {
            let used = 100_000 + t * 20_000;
            let group = "/sys/fs/cgroup/".to_owned() + &HOSTILE.replace('/', "|").replace('\0', "");
            let events = format!("low 0\nhigh {}\nmax {t}\noom {t}\noom_kill {t}\n", t * 50);
            vec![
                ("/proc/meminfo".to_owned(), format!("MemTotal: 600000 kB\nMemFree: {} kB\nMemAvailable: {} kB\nAnonPages: {used} kB\nSwapTotal: 500000 kB\nSwapFree: {} kB\n", 550_000 - used, 560_000 - used, 500_000 - t * 9_000)),
                ("/proc/vmstat".to_owned(), format!("pswpin {0}\npswpout {0}\nworkingset_refault_anon {0}\n", t * 9_000)),
                ("/proc/pressure/memory".to_owned(), format!("some avg10=50.00 avg60=50.00 avg300=50.00 total={0}\nfull avg10=50.00 avg60=50.00 avg300=50.00 total={0}\n", t * 700_000)),
                ("/proc/77/stat".to_owned(), format!("77 ({long}) S 1 0 0 0 -1 4194560 0 0 {t} 0 0 0 0 0 20 0 1 0 26 231424000 {} 18446744073709551615 0 0 0 0 0 0 0 0 0 0 0 0 17 0 0 0 0 0 0\n", used / 4)),
                ("/proc/77/status".to_owned(), format!("Name:\t{HOSTILE}\nVmRSS:\t{used} kB\nRssAnon:\t{used} kB\nVmSwap:\t{} kB\n", t * 9_000)),
                ("/proc/mounts".to_owned(), format!("tmpfs /mnt/{} tmpfs rw,size=1000k 0 0\n", HOSTILE.replace(' ', "\\040"))),
                (format!("{group}/memory.current"), format!("{}\n", used * 1024)),
                (format!("{group}/memory.max"), format!("{}\n", 500_000 * 1024)),
                (format!("{group}/memory.events"), events),
            ]
        })
        .collect();
    let samples: Vec<Vec<(&str, String)>> = samples
        .iter()
        .map(|files| files.iter().map(|(path, text)| (path.as_str(), text.clone())).collect())
        .collect();
    file(directory, "<script>alert(1)<|script>.jsonl", capture(&samples))
}

#[test]
fn hostile_names_are_text() {
    let directory = tempfile::tempdir().unwrap();
    let source = hostile(&directory);
    let title = format!("{HOSTILE}{}", "t".repeat(4096)).replace('\0', "");
    for more in [&[][..], &["--title", &title]] {
        let html = page(&source, more);
        let tags = tags(&html);
        assert_eq!(html.matches("<script").count(), 3, "ours: two of data, one that runs");
        assert_eq!(html.matches("</script").count(), 3);
        assert!(!html.contains("<script>alert"), "{html}");
        assert!(attributes(&tags, "onload").is_empty());
        assert!(html.contains("&lt;script&gt;alert(1)"), "the name is there, as text");
        let steers = |c: char| c.is_control() && c != '\n' || matches!(c, '\u{202e}' | '\u{200b}');
        assert_eq!(html.chars().find(|c| steers(*c)), None);
        let longest = read(&html).split(' ').map(|word| word.chars().count()).max();
        assert!(longest < Some(420), "{longest:?}");
        // What the script sets as text is as harmless.
        let shown = meta(&html).to_string();
        assert!(shown.contains("alert(1)") && !shown.contains(steers), "{shown}");
    }
}

fn written(arguments: &[&str]) -> (Option<i32>, String) {
    let output = memtide(&[&["report"], arguments].concat());
    let message = stderr(&output);
    assert!(!message.contains("panicked"), "{message}");
    (output.status.code(), message)
}

fn entries(directory: &Path) -> usize {
    std::fs::read_dir(directory).unwrap().count()
}

#[test]
fn a_written_page_exits_0_whatever_is_in_it_and_is_not_overwritten() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("sick.html");
    let path = path.to_str().unwrap();
    let source = case("swap-thrash--512m-swapdisk");
    let (code, says) = written(&[&source, "-o", path]);
    assert_eq!((code, says.contains("written")), (Some(0), true), "{says}");
    let html = std::fs::read_to_string(path).unwrap();
    assert!(html.ends_with("</html>\n"));
    assert!(html.contains("<title>Critical: capture.jsonl.gz · memtide</title>"));
    std::fs::write(path, "mine").unwrap();
    let (code, says) = written(&[&source, "-o", path]);
    assert_eq!(code, Some(3));
    assert!(says.contains("--force overwrites it"), "{says}");
    assert_eq!(std::fs::read_to_string(path).unwrap(), "mine");
    let (code, _) = written(&[&source, "-o", path, "--force", "--title", "web3 <b>"]);
    assert_eq!(code, Some(0));
    let html = std::fs::read_to_string(path).unwrap();
    assert!(html.contains("<title>Critical: web3 &lt;b&gt; · memtide</title>"));
    assert_eq!(entries(directory.path()), 1);
}

#[test]
fn what_cannot_be_written_leaves_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let source = case("healthy--idle");
    let nowhere = directory.path().join("no/such/place.html");
    let (code, says) = written(&[&source, "-o", nowhere.to_str().unwrap()]);
    assert_eq!(code, Some(3));
    assert!(says.contains("no/such/place.html"), "{says}");
    let (code, says) = written(&[&source, "-o", "/dev/full"]);
    assert_eq!(code, Some(3));
    assert!(says.contains("cannot write /dev/full: No space left"), "{says}");
    let (code, says) = written(&[&source, "-o", directory.path().to_str().unwrap()]);
    assert_eq!(code, Some(3));
    assert!(says.contains("is a directory"), "{says}");
    // A file may grow to 8 KiB: as a disk that is full half-way.
    let cut = directory.path().join("cut.html");
    let limited = "trap '' XFSZ; ulimit -f 16; exec \"$@\"";
    let output = Command::new("sh")
        .args(["-c", limited, "sh", env!("CARGO_BIN_EXE_memtide"), "report", &source, "-o"])
        .arg(&cut)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    assert!(stderr(&output).contains("cut.html: File too large"), "{}", stderr(&output));
    assert_eq!(entries(directory.path()), 0);
}

#[test]
fn a_source_without_anything_to_draw_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("out.html");
    let out = out.to_str().unwrap();
    let empty = file(&directory, "empty.jsonl", "");
    let (code, says) = written(&[&empty, "-o", out]);
    assert_eq!(code, Some(3));
    assert!(says.contains("is empty"), "{says}");
    let source = case("healthy--idle");
    let (code, says) = written(&[&source, "-o", out, "--since", "+2h"]);
    assert_eq!(code, Some(3));
    assert!(says.contains("it lasts"), "{says}");
    let (code, says) = written(&[&source, "-o", out, "--since", "+9s", "--until", "+3s"]);
    assert_eq!(code, Some(3));
    assert!(says.contains("`--since` is later than `--until`"), "{says}");
    assert_eq!(entries(directory.path()), 1, "only the empty source");
}

#[test]
fn one_look_is_a_bar_and_says_what_it_cannot_tell() {
    let directory = tempfile::tempdir().unwrap();
    let one = capture(&[vec![(
        "/proc/meminfo",
        "MemTotal: 1000000 kB\nMemFree: 500000 kB\nMemAvailable: 800000 kB\nAnonPages: 100000 kB\n"
            .to_owned(),
    )]]);
    let html = page(&file(&directory, "one.jsonl", one), &[]);
    let shown = read(&html);
    assert!(html.contains("<svg class=\"bar\""), "{shown}");
    assert!(shown.contains("rates need a second one"), "{shown}");
    assert!(shown.contains("anonymous"), "{shown}");
    assert_eq!(meta(&html)["charts"].as_array().unwrap().len(), 0);
}

#[test]
fn a_pasted_kill_shows_memory_at_the_kill() {
    let source =
        crate::cases::pastes().find(|case| case.id == "oom-tmpfs-fills-256m-board").unwrap();
    let html = page(source.path(), &[]);
    tags(&html);
    let shown = read(&html);
    assert!(shown.contains("killed"), "{shown}");
    assert!(html.contains("<svg class=\"bar\""), "{shown}");
}

#[test]
fn a_part_of_a_source_keeps_its_times() {
    let source = case("swap-thrash--512m-swapdisk");
    let html = page(&source, &["--since", "+10s", "--until", "+30s"]);
    let meta = meta(&html);
    let offset = meta["offset_s"].as_f64().unwrap();
    assert!((9.0..11.0).contains(&offset), "{offset}");
    let span = meta["span_s"].as_f64().unwrap();
    assert!((17.0..21.0).contains(&span), "{span}");
    assert_eq!(meta["levels"][0]["from_s"], 0.0);
}

#[test]
fn a_recording_is_told_by_the_clock() {
    let directory = tempfile::tempdir().unwrap();
    let place = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let (taken, kept) = (place("live.jsonl"), place("kept"));
    for arguments in [
        &["capture", "--for", "600ms", "--every", "100ms", "-o", &taken][..],
        &["record", "--from", &taken, "--to", &kept],
    ] {
        let output = memtide(arguments);
        assert!(output.status.success(), "{arguments:?}: {}", stderr(&output));
    }
    let html = page(&kept, &[]);
    let meta = meta(&html);
    let start_ms = meta["start_unix_ms"].as_i64().unwrap();
    assert!(start_ms > 1_700_000_000_000, "{start_ms}");
    assert_eq!(meta["offsets"], serde_json::json!([[0.0, 0.0]]));
    assert!(read(&html).contains("a recording by memtide record"));
    assert!(attributes(&tags(&html), "class").contains(&"plot"));
}

#[test]
fn what_was_wrong_with_a_source_is_said_first() {
    let directory = tempfile::tempdir().unwrap();
    let whole = std::fs::read(case("healthy--idle")).unwrap();
    let cut = file(&directory, "cut.jsonl.gz", &whole[..whole.len() / 2]);
    let html = page(&cut, &[]);
    let strip = html.find("<p class=\"strip\">").expect("a strip");
    assert!(strip < html.find("<main>").unwrap());
    assert!(read(&html).contains("ends early"));
}

#[test]
fn a_capture_of_forty_samples_is_small() {
    let html = page(&case("swap-thrash--512m-swapdisk"), &[]);
    assert!(html.len() <= 200 << 10, "{} KiB", html.len() >> 10);
}

#[test]
fn a_figure_is_called_what_it_measures() {
    // Evidence about free swap, about a node and about another group must not be taken for what a chart draws beside it.
    for (source, wrong) in [
        (root().join("docs/examples/oom.txt").display().to_string(), "Swap used: used"),
        (case("node-reclaim--dist21"), "Node 0: free"),
    ] {
        let shown = read(&page(&source, &[]));
        assert!(!shown.contains(wrong), "{source}: {wrong}");
    }
}

#[test]
fn the_page_says_whether_a_demand_fits() {
    let source = case("healthy--idle");
    for (add, cycle) in [("100M", "25s"), ("100M", "7d"), ("2GiB", "7d")] {
        let more = ["--add", add, "--cycle", cycle];
        let answer =
            json(&memtide(&[&["headroom", &source, "--format", "json"], &more[..]].concat()));
        let headline = plain(answer["headline"].as_str().unwrap());
        let shown = read(&page(&source, &more));
        assert!(shown.contains(&headline), "{add} over {cycle}: `{headline}`");
    }
}

#[test]
fn a_page_never_takes_the_place_of_its_source() {
    let directory = tempfile::tempdir().unwrap();
    let source = directory.path().join("sick.jsonl.gz");
    std::fs::copy(case("healthy--idle"), &source).unwrap();
    let before = std::fs::read(&source).unwrap();
    let source = source.to_str().unwrap();
    let (code, said) = written(&[source, "-o", source, "--force"]);
    assert_eq!(code, Some(3), "{said}");
    assert!(said.contains("would be overwritten"), "{said}");
    assert!(std::fs::read(source).unwrap() == before);
}
