//! `memtide headroom`: what fits, judged on captures in which so much was added until it hurt.

use std::sync::LazyLock;

use diagnose::headroom::{Demand, DemandKind, Question};
use report::model::headroom::{FitAnswer, HeadroomReport};
use serde_json::Value;
use timeline::signals::MEM_TOTAL;
use timeline::{Source, TimePoint, TimeRange};
use units::{Bytes, Quantity, Span};

use crate::cases::{self, Case};
use crate::support::{capture, file, json, memtide, stderr, stdout};

/// What `free` printed on the article's first host, where 500 MB did not fit though 9.4 GiB were available.
const ARTICLE: &str = "# free -m
              total        used        free      shared  buff/cache   available
Mem:          80429       58906         579        1028       20943        9662
Swap:         20480        1402       19077
";

/// So long is watched before anything is added; for these loads it is all of their cycle.
const WATCHED: &str = "15s";
const WATCHED_SPAN: Span = Span::from_secs(15);

/// The answer from what was watched before anything was added.
fn before(case: &Case, more: &[&str]) -> std::process::Output {
    let add_at = case.file.headroom.as_ref().unwrap().add_at_s;
    let until = format!("+{:.1}s", add_at - 0.5);
    memtide(&[&["headroom", case.path(), "--until", &until], more].concat())
}

/// How much fits into a host according to the time before memory was added.
struct Estimate {
    case: &'static Case,
    held: f64,
    ram: f64,
    source: Source,
}

impl Estimate {
    fn new((case, known): (&'static Case, &'static cases::Headroom)) -> Self {
        let range = TimeRange {
            since: None,
            until: Some(TimePoint::AfterStart(Span::from_secs_f64(known.add_at_s - 0.5))),
        };
        let source = answers::open_screened(&case.source, range, &mut |_| ()).unwrap();
        Self {
            case,
            held: known.held_bytes,
            ram: source.timeline.last(MEM_TOTAL).unwrap().as_f64(),
            source,
        }
    }

    /// Only bounds are known of a host with multi-generational LRU: nothing says what of the cache is read again.
    fn is_open(&self) -> bool {
        self.case.id.contains("mglru")
    }

    fn ask(&self, question: &Question) -> HeadroomReport {
        answers::headroom(&self.source, question, None)
    }

    /// The answer to whether so much more fits.
    fn fits(&self, bytes: f64) -> FitAnswer {
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        // whole bytes of a small host
        let bytes = Bytes::new(bytes as u64);
        let add = Some(Demand { bytes, kind: DemandKind::Anon });
        self.ask(&Question { add, cycle: WATCHED_SPAN, ..Question::default() }).answer
    }
}

static ESTIMATES: LazyLock<Vec<Estimate>> =
    LazyLock::new(|| cases::with_headroom().map(Estimate::new).collect());

#[test]
fn the_estimate_lies_within_a_tenth_of_ram_of_what_could_be_added() {
    assert!(ESTIMATES.len() >= 15);
    for estimate in &*ESTIMATES {
        let (id, held) = (&estimate.case.id, estimate.held);
        let answer = serde_json::to_value(estimate.ask(&Question::default())).unwrap();
        let last = &answer["room"]["last"];
        let bound = |name: &str| last[name].as_f64().map(|room| room.min(binding(&answer)));
        let (lower, upper) = (bound("lower_bytes").unwrap(), bound("upper_bytes").unwrap());
        let slack = estimate.ram * 0.1;
        assert!(lower - slack < held && held < upper + slack, "{id}: {held} {last}");
        match bound("likely_bytes") {
            Some(likely) => assert!((likely - held).abs() < slack, "{id}: {held} {last}"),
            None => assert!(estimate.is_open(), "{id}: {last}"),
        }
    }
}

/// Room below the tightest limit that holds for whatever is added: a node that reclaims its own pages first.
fn binding(answer: &Value) -> f64 {
    let limits = answer["limits"].as_array().unwrap().iter();
    let holding = limits.filter(|limit| limit["holds"] == true);
    let rooms = holding.filter_map(|limit| limit["room_bytes"].as_f64());
    rooms.fold(f64::INFINITY, f64::min)
}

#[test]
fn what_fitted_is_said_to_fit_and_what_hurt_is_not() {
    for estimate in &*ESTIMATES {
        let id = &estimate.case.id;
        let unknown = |answer| {
            estimate.is_open() && matches!(answer, FitAnswer::Unknown | FitAnswer::FitsSoFar)
        };
        let least = estimate.held - estimate.ram * 0.15;
        if least > 0.0 {
            let less = estimate.fits(least);
            assert!(
                matches!(less, FitAnswer::Fits | FitAnswer::Tight) || unknown(less),
                "{id}: {less:?}"
            );
        }
        let more = estimate.fits(estimate.held + estimate.ram * 0.1);
        assert!(more == FitAnswer::DoesNotFit || unknown(more), "{id}: {more:?}");
    }
}

#[test]
fn exit_codes_say_whether_it_fits() {
    let directory = tempfile::tempdir().unwrap();
    let article = file(&directory, "article.txt", ARTICLE);
    let case = cases::path;
    for (source, more, code) in [
        (case("healthy--idle"), &["--add", "100M", "--cycle", WATCHED][..], 0),
        // So little of a week shows a lack, and never that there is enough.
        (case("healthy--idle"), &["--add", "100M"], 3),
        (case("healthy--idle"), &["--add", "360M"], 1),
        (case("healthy--idle"), &["--add", "1G", "--as", "tmpfs"], 2),
        (case("overcommit-limit--6.1-768m-ratio50-swap"), &["--add", "100M"], 2),
        (case("swap-thrash--512m-swapdisk"), &[], 2),
        (case("page-cache-thrash--512m"), &[], 2),
        (case("swap-cold-harmless--512m"), &["--add", "64M", "--cycle", WATCHED], 0),
        (article.clone(), &["--add", "500M"], 3),
        (article.clone(), &["--add", "12G"], 2),
        (article, &["--at", "p10"], 3),
        ("/no/such/file".to_owned(), &[], 3),
    ] {
        let output = memtide(&[&["headroom", &source], more].concat());
        let said = stdout(&output) + &stderr(&output);
        assert_eq!(output.status.code(), Some(code), "{source} {more:?}: {said}");
    }
}

#[test]
fn nothing_more_fits_into_a_cgroup_that_fills_its_limit_by_itself() {
    let source = cases::played("leak-after-a-kill");
    let output = memtide(&["headroom", &source, "--cgroup", "/api", "--add", "10M"]);
    let says = stdout(&output).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(says.contains("does not fit into cgroup /api: it fills its limit without"), "{says}");
    assert!(says.contains("meets its limit of 400 MiB in"), "{says}");
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn one_look_says_what_is_missing_and_takes_nothing_for_zero() {
    let directory = tempfile::tempdir().unwrap();
    let article = file(&directory, "article.txt", ARTICLE);
    let answer = json(&memtide(&["headroom", &article, "--add", "500M", "--format", "json"]));
    assert_eq!(answer["schema"], "memtide-headroom/1");
    assert_eq!(answer["answer"], "unknown");
    assert_eq!(answer["terms"]["read_cache"]["likely_bytes"], Value::Null);
    assert_eq!(answer["terms"]["read_cache"]["upper_bytes"], Value::Null);
    assert_eq!(answer["room"]["least"]["lower_bytes"], Value::Null);
    assert!(answer["room"]["least"]["upper_bytes"].as_i64().unwrap() > 9 << 30);
    assert!(answer["article"]["bytes"].as_i64().unwrap() < 0);
    let unknown: Vec<_> =
        answer["unknown"].as_array().unwrap().iter().map(|one| &one["what"]).collect();
    assert_eq!(unknown, ["floor", "write cache", "read cache"]);
    let text = stdout(&memtide(&["headroom", &article, "--add", "500M"]));
    assert!(text.starts_with("CANNOT TELL"), "{text}");
    assert!(text.contains("read cache     unknown"), "{text}");
}

#[test]
fn text_and_json_say_the_same() {
    let case = cases::named("headroom-hot-files--6.1-512m");
    let asked = ["--add", "100M", "--cycle", WATCHED];
    let answer = json(&before(case, &[&asked[..], &["--format", "json"]].concat()));
    let text = stdout(&before(case, &asked));
    let folded = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    for said in [
        &answer["headline"],
        &answer["binds"],
        &answer["cycle"]["text"],
        &answer["article"]["text"],
    ] {
        assert!(folded.contains(said.as_str().unwrap()), "{said}: {text}");
    }
    // Does it fit, by how much, what binds, when was the worst and who ran: in the first lines.
    let first: Vec<_> = text.lines().take(5).collect();
    let first = first.join("\n");
    for word in ["FITS", "215 MiB at worst", "limited by:", "worst:", "app (100 MiB in RAM)"] {
        assert!(first.contains(word), "{first}");
    }
}

#[test]
fn programs_get_the_bounds_that_people_read() {
    // A node whose files nothing tells the use of, and a group of others.
    for (name, add) in [("node-reclaim--dist21", "100M"), ("cgroup-oom--96m", "50M")] {
        let path = cases::path(name);
        let path = path.as_str();
        let answer = json(&memtide(&["headroom", path, "--add", add, "--format", "json"]));
        let limits = answer["limits"].as_array().unwrap();
        assert!(!limits.is_empty(), "{name}");
        for limit in limits {
            let of = |bound: &str| limit[format!("{bound}_bytes")].as_i64();
            let (lower, upper) = (of("lower"), of("upper"));
            assert!(lower.is_some() && lower <= upper.or(lower), "{limit}");
            assert_eq!(of("room"), of("likely").or(lower), "{limit}");
        }
        let added = &answer["added"];
        let left = |bound: &str| added[format!("left_{bound}_bytes")].as_i64().unwrap();
        assert!(left("lower") <= left("upper"), "{added}");
    }
    let text = stdout(&memtide(&["headroom", &cases::path("cgroup-oom--96m"), "--add", "50M"]));
    // Before the terms: perhaps it is to run in that group.
    let first = text.split("What it was computed from").next().unwrap();
    assert!(first.contains("In there 50 MiB more do not fit"), "{text}");
}

#[test]
fn a_hostile_name_is_shown_harmless_and_whole_to_programs() {
    let name = "\u{1b}[2J<script>";
    let meminfo = "MemTotal: 1000000 kB\nMemFree: 500000 kB\nMemAvailable: 600000 kB\nCached: 100000 kB\nShmem: 0 kB\n";
    let sample = || {
        vec![
            ("/proc/meminfo", meminfo.to_owned()),
            (
                "/proc/7/stat",
                format!("7 ({name}) S 1 7 7 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 5 99999999 20000 0\n"),
            ),
        ]
    };
    let directory = tempfile::tempdir().unwrap();
    let source = file(&directory, "a.jsonl", capture(&[sample(), sample()]));
    let output = memtide(&["headroom", &source]);
    let text = stdout(&output);
    assert!(!text.contains('\u{1b}') && text.contains("\\x1b[2J<script>"), "{text}");
    let answer = json(&memtide(&["headroom", &source, "--format", "json"]));
    assert_eq!(answer["then"][0]["name"], name);
}

#[test]
fn a_range_without_samples_is_an_error_that_says_what_there_is() {
    let path = cases::path("healthy--idle");
    let output = memtide(&["headroom", &path, "--since", "+2h"]);
    assert_eq!(output.status.code(), Some(3));
    assert!(stdout(&output).is_empty());
    assert!(stderr(&output).contains("help:"), "{}", stderr(&output));
}

/// What the page of a capture says, without its markup.
fn page(source: &str) -> String {
    let directory = tempfile::tempdir().unwrap();
    let target = directory.path().join("page.html");
    let output = memtide(&["report", source, "-o", target.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    crate::report::read(&std::fs::read_to_string(target).unwrap())
}

#[test]
fn the_page_says_what_the_terminal_says() {
    for name in [
        "headroom-hot-files--6.1-512m",
        "headroom-hot-files--6.12-640m-mglru",
        "headroom-numa--6.1-768m",
    ] {
        let path = cases::path(name);
        let source = path.as_str();
        let page = page(source);
        let output = memtide(&["headroom", source]);
        let text = crate::support::folded(&output);
        let answer = json(&memtide(&["headroom", source, "--format", "json"]));
        let mut said = vec![&answer["headline"], &answer["binds"], &answer["cycle"]["text"]];
        said.extend([&answer["article"]["text"], &answer["terms"]["read_cache"]["text"]]);
        said.extend(answer["remarks"].as_array().unwrap());
        said.extend(answer["unknown"].as_array().unwrap().iter().map(|it| &it["text"]));
        said.extend(answer["limits"].as_array().unwrap().iter().map(|it| &it["text"]));
        for sentence in said {
            let sentence = sentence.as_str().unwrap();
            assert!(text.contains(sentence), "{name}: text lacks {sentence}: {text}");
            assert!(page.contains(sentence), "{name}: page lacks {sentence}");
        }
        // Line by line: what the terminal labels, the page has as well.
        for line in stdout(&output).lines().filter(|line| line.contains(':')) {
            let (_, first) = line.split_once(':').unwrap();
            let first = first.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(page.contains(&first), "{name}: {first}");
        }
    }
}

#[test]
fn a_range_is_said_to_be_backwards_by_every_command() {
    let source = cases::path("healthy--idle");
    let source = source.as_str();
    let directory = tempfile::tempdir().unwrap();
    let page = directory.path().join("page.html");
    let page = page.to_str().unwrap();
    for command in [
        &["check", source][..],
        &["headroom", source],
        &["events", source],
        &["compare", source, source],
        &["export", source, "--format", "csv"],
        &["report", source, "-o", page],
    ] {
        let range = ["--since", "+20s", "--until", "+10s"];
        let output = memtide(&[command, &range].concat());
        assert_eq!(output.status.code(), Some(3), "{command:?}");
        let said = stderr(&output);
        assert!(said.contains("`--since` is later than `--until`"), "{command:?}: {said}");
        assert!(stdout(&output).is_empty(), "{command:?}");
    }
    assert!(!std::path::Path::new(page).exists());
}

#[test]
fn what_a_range_lacks_is_said() {
    let directory = tempfile::tempdir().unwrap();
    let meminfo = "MemTotal: 1000000 kB\nMemFree: 500000 kB\nMemAvailable: 600000 kB\n";
    // At 2026-11-20 12:00:00 UTC, for a minute.
    let mut text = String::from("{\"interval_s\": 1.0, \"page_size\": 4096}\n");
    for second in 0..60 {
        let files = serde_json::json!({ "/proc/meminfo": meminfo });
        let wall = 1_795_176_000_000_000_000_i64 + second * 1_000_000_000;
        let line = serde_json::json!({ "t": second, "wall_ns": wall, "files": files });
        text.push_str(&(line.to_string() + "\n"));
    }
    let source = file(&directory, "a.jsonl", text);
    let range = ["--since", "2026-11-20T11:00:00Z", "--until", "2026-11-20T13:00:00Z"];
    let output = memtide(&[&["headroom", &source][..], &range].concat());
    let said = crate::support::complaints(&output);
    assert!(said.contains("the source begins at"), "{said}");
    assert!(said.contains("the source ends at"), "{said}");
}
