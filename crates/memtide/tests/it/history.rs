//! Looking back: captures as recordings, parts of sources, and rows that are read more rarely than the host.

use std::collections::BTreeSet;
use std::path::Path;

use diagnose::{Diagnosis, Severity};
use store::HostIdentity;
use timeline::Source;
use timeline::{Entity, Timeline};
use units::Span;

use crate::cases::{self, Case};
use crate::support::{folded, json, memtide, stderr, stdout};

type Said = BTreeSet<(&'static str, Severity)>;

fn said(diagnosis: &Diagnosis) -> Said {
    let all = diagnosis.findings.iter().chain(&diagnosis.notes);
    all.map(|finding| (finding.id, finding.severity)).collect()
}

fn judged(source: &Source) -> Diagnosis {
    diagnose::diagnose(&source.timeline, &source.facts)
}

fn captures() -> Vec<&'static Case> {
    // All of them take minutes; which are taken differs from test to test by nothing but their order.
    let step = if std::env::var_os("MEMTIDE_ALL_CAPTURES").is_some() { 1 } else { 6 };
    cases::captures().step_by(step).collect()
}

fn open(path: &Path) -> Source {
    import::open(path, &mut |_| ()).unwrap()
}

/// Samples and facts as a recording of this boot's host in that directory.
fn add_timeline(directory: &Path, timeline: &Timeline, facts: &timeline::Facts) {
    let host =
        HostIdentity { id: "0123456789abcdef0123456789abcdef".to_owned(), name: "sick".to_owned() };
    let kept = store::add_timeline(directory, &host, timeline, facts, Span::from_secs(1)).unwrap();
    assert_eq!(kept.problems, Vec::<String>::new());
}

/// The source as a recording in that directory.
fn recorded(source: &Source, directory: &Path) {
    let host =
        HostIdentity { id: "0123456789abcdef0123456789abcdef".to_owned(), name: "sick".to_owned() };
    let every = source.timeline.interval().unwrap_or(Span::from_secs(1));
    let kept =
        store::add_timeline(directory, &host, &source.timeline, &source.facts, every).unwrap();
    assert_eq!(kept.problems, Vec::<String>::new());
}

#[test]
fn a_recording_made_of_a_capture_is_judged_as_the_capture() {
    let mut differ = Vec::new();
    for case in captures() {
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path().join("recording");
        let source = &case.judged().source;
        recorded(source, &place);
        let recording = open(&place);
        assert_eq!(recording.origin.kind, timeline::SourceKind::Recording);
        assert_eq!(recording.problems, Vec::<String>::new());
        let (before, after) = (&case.judged().diagnosis, judged(&recording));
        if said(before) != said(&after) || before.verdict.level != after.verdict.level {
            let name = case.id.clone();
            differ.push((name, said(before), said(&after)));
        }
    }
    assert!(differ.is_empty(), "{differ:#?}");
}

/// The same source with entities of a kind read in each tenth sample only, and in the last.
fn thinned(source: &Timeline, rare: &[Entity]) -> Timeline {
    let mut thinned = Timeline::default();
    for index in 0..source.len() {
        let mut sample = source.sample(index).unwrap();
        if index % 10 != 0 {
            for entity in rare {
                let table = sample.table_mut(*entity);
                while !table.rows().is_empty() {
                    table.drop_last();
                }
            }
        }
        if source.starts_segment(index) {
            thinned.push_new_segment(&sample)
        } else {
            thinned.push(&sample).unwrap()
        }
    }
    thinned
}

#[test]
fn what_is_read_more_rarely_is_never_judged_wrong() {
    let mut wrong = Vec::new();
    for case in captures() {
        let source = &case.judged().source;
        let before = &case.judged().diagnosis;
        let rare = thinned(&source.timeline, &[Entity::Process, Entity::Cgroup]);
        let after = diagnose::diagnose(&rare, &source.facts);
        let loud = |said: Said| -> BTreeSet<&str> {
            let loud = said.into_iter().filter(|(_, severity)| *severity > Severity::Info);
            loud.map(|(id, _)| id).collect()
        };
        let (known, now) = (loud(said(before)), loud(said(&after)));
        let new: Vec<_> = now.difference(&known).collect();
        if !new.is_empty() {
            wrong.push((case.id.clone(), format!("{new:?}")));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// A labelled capture as a recording, and the directory that it lives in.
fn recording(name: &str) -> (tempfile::TempDir, String) {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path().join("recording");
    recorded(&cases::named(name).judged().source, &place);
    let place = place.to_str().unwrap().to_owned();
    (directory, place)
}

#[test]
fn a_part_of_a_source_is_judged_by_itself() {
    let (_directory, place) = recording("swap-thrash--512m-swapdisk");
    let capture = &cases::named("swap-thrash--512m-swapdisk").source;
    for source in [place.as_str(), capture.to_str().unwrap()] {
        let calm = json(&memtide(&["check", "--format", "json", "--until", "+5s", source]));
        assert_ne!(calm["verdict"], "critical", "{source}");
        let sick = memtide(&["check", "--format", "json", "--since", "+0:12", source]);
        assert_eq!(json(&sick)["verdict"], "critical", "{source}");
        let around = json(&memtide(&["check", "--format", "json", "--at", "+20s", source]));
        assert_eq!(around["verdict"], "critical", "{source}");
    }
}

#[test]
fn a_part_says_which_it_is_and_counts_from_the_sources_start() {
    let (_directory, place) = recording("swap-thrash--512m-swapdisk");
    let capture = &cases::named("swap-thrash--512m-swapdisk").source;
    for (source, kind) in [(place.as_str(), "recording"), (capture.to_str().unwrap(), "capture")] {
        let text = folded(&memtide(&["check", source, "--since", "+0:12"]));
        let window = format!("27 s of a {kind}, 0:12 to 0:39, 28 samples");
        assert!(text.contains(&window), "{text}");
        let cut = ["check", source, "--since", "+12s", "--format", "json"];
        let json = json(&memtide(&cut));
        let begins = json["source"]["cut_at_s"].as_f64().unwrap();
        assert!((11.9..13.0).contains(&begins), "{begins}");
        let lead = &json["findings"][0];
        let seconds = lead["from_s"].as_f64().unwrap() + begins;
        let shown = Span::from_secs_f64(seconds).as_clock();
        assert!(text.contains(&shown), "{shown}: {text}");
        let whole = folded(&memtide(&["check", source]));
        assert!(whole.contains(&format!("{kind} of 39 s")), "{whole}");
    }
}

#[test]
fn around_a_moment_the_minutes_are_named_by_the_clock() {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path().join("recording");
    let now = 1_795_322_400;
    add_timeline(&place, &past(now), &timeline::Facts::default());
    let place = place.to_str().unwrap();
    let at = ["check", place, "--at", "2026-11-22T01:00:00Z"];
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_memtide"))
        .args(at)
        .env("TZ", "UTC")
        .output()
        .unwrap();
    let text = folded(&output);
    let window = "10 min of a recording, 2026-11-22 00:55:00 to 01:05:00 +00:00, 11 samples";
    assert!(text.contains(window), "{text}");
}

/// Hours, of which those minutes are read sample by sample in which something could be wrong: nothing is left to look at
/// more closely.
#[test]
fn a_long_recording_is_judged_at_every_sample_where_something_could_be_wrong() {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path().join("a recording");
    let mut facts = timeline::Facts::default();
    facts.page_size = units::PageSize::from_bytes(4096);
    add_timeline(&place, &past(1_795_322_400), &facts);
    let path = place.to_str().unwrap();
    let long = json(&memtide(&["check", "--format", "json", path]));
    let lead = &long["findings"][0];
    let (from, to) = (&lead["from"], &lead["to"]);
    let range = ["--since", from.as_str().unwrap(), "--until", to.as_str().unwrap()];
    let close = json(&memtide(&[&["check", "--format", "json", path][..], &range].concat()));
    assert_eq!(close["source"]["thinned_to_s"], serde_json::Value::Null);
    assert_eq!(close["findings"][0]["id"], lead["id"]);
    assert_eq!(close["findings"][0]["severity"], lead["severity"]);
}

/// A source as a long recording of it is judged: of so many samples the last.
fn coarse(source: &Timeline, of: usize) -> Timeline {
    let mut coarse = Timeline::default();
    for index in (0..source.len()).filter(|index| index % of == of - 1) {
        let sample = source.sample(index).unwrap();
        coarse.push(&sample).unwrap();
    }
    for reported in source.all_reports() {
        let at = (reported.sample / of).min(coarse.len() - 1);
        coarse.report_at(at, reported.report.clone(), reported.text.clone());
    }
    coarse
}

/// Here two of the three samples that are left happen to lie in dips of a few seconds: available memory seems to stay where it
/// was but for moments, which no sampler could know. The findings are the same, and critical instead of warnings.
const SAMPLED_AT_ITS_WORST: [&str; 1] = ["min-free-too-large--6.12-768m-16pct"];

#[test]
fn one_sample_in_ten_makes_nothing_worse() {
    let mut wrong = Vec::new();
    let mut judged_at_all = 0;
    for case in captures() {
        let source = &case.judged().source;
        let is_long = source.timeline.len() >= 30;
        if !is_long || !source.timeline.is_one_segment() {
            continue;
        }
        judged_at_all += 1;
        let worst = |diagnosis: &Diagnosis| {
            let findings = diagnosis.findings.iter();
            findings.map(|finding| finding.severity).max()
        };
        let all = worst(&case.judged().diagnosis);
        let few = coarse(&source.timeline, 10);
        let few = worst(&diagnose::diagnose(&few, &source.facts));
        let is_loud = few.is_some_and(|severity| severity > Severity::Info);
        let name = case.id.clone();
        if is_loud && few > all && !SAMPLED_AT_ITS_WORST.contains(&name.as_str()) {
            wrong.push((name, all, few));
        }
    }
    assert!(judged_at_all > 0, "no capture is long enough");
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn what_lies_outside_of_a_source_is_said_with_what_it_has() {
    let capture = &cases::named("swap-thrash--512m-swapdisk").source;
    let capture = capture.to_str().unwrap();
    for (since, says) in [
        ("+90s", "help: it lasts 39 s"),
        ("yesterday", "it has no wall clock and lasts 39 s; count from its start"),
        ("soon", "`soon` is no time; write `2h ago`"),
    ] {
        let output = memtide(&["check", "--since", since, capture]);
        assert_eq!(output.status.code(), Some(3), "{since}");
        let error = stderr(&output).split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(error.contains(says), "{since}: {error}");
        assert_eq!(stdout(&output), "");
    }
}

#[test]
fn where_shows_the_last_sample_before_a_moment() {
    let (_directory, place) = recording("swap-thrash--512m-swapdisk");
    let free = |at: &str| {
        let answer = json(&memtide(&["where", "--format", "json", "--at", at, &place]));
        let at_s = answer["accounting"]["at_s"].as_f64().unwrap();
        let terms = answer["accounting"]["terms"].as_array().unwrap();
        let free = terms.iter().find(|term| term["id"] == "free").unwrap();
        (at_s, free["bytes"].as_u64().unwrap())
    };
    let (calm, sick) = (free("+3s"), free("+20s"));
    assert!(calm.0 <= 3.0 && calm.1 > 4 * sick.1, "{calm:?} {sick:?}");
    let last = folded(&memtide(&["where", &place]));
    assert!(last.contains("MemTotal"), "{last}");
}

#[test]
fn without_a_recording_looking_back_says_how_to_begin_one() {
    let home = tempfile::tempdir().unwrap();
    for command in ["check", "where"] {
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_memtide"))
            .args([command, "--at", "1h ago"])
            .env("HOME", home.path())
            .env_remove("XDG_STATE_HOME")
            .output()
            .unwrap();
        // A host that is recorded itself has one.
        if !Path::new("/var/lib/memtide").exists() {
            assert_eq!(output.status.code(), Some(3));
            assert!(stderr(&output).contains("`memtide record` begins one"), "{}", stderr(&output));
        }
    }
}

/// Seconds of a recording: hours of calm, a thrash of forty minutes, calm until now.
fn past(now: i64) -> Timeline {
    use timeline::Sample;
    use timeline::signals::{
        MEM_AVAILABLE, MEM_FREE, MEM_TOTAL, PSI_MEMORY_FULL, PSI_MEMORY_SOME, PSWPIN, PSWPOUT,
        REFAULT_ANON,
    };
    use units::{Bytes, Micros, Pages, WallClock};
    const MINUTES: u64 = 600;
    let boot_s = std::fs::read_to_string("/proc/uptime").unwrap();
    let boot_s: f64 = boot_s.split(' ').next().unwrap().parse().unwrap();
    let mut timeline = Timeline::default();
    let mut moved = 0;
    for minute in 0..MINUTES {
        let ago = (MINUTES - minute) * 60;
        let sick = (200..240).contains(&minute);
        moved += if sick { 200_000 } else { 0 };
        let mut sample = Sample::default();
        // As the clocks of this host would have been, which may not be up for so long.
        sample.stamp.boot = Span::from_secs_f64((boot_s + 1e6).max(0.0)) - Span::from_secs(ago);
        let wall = now - i64::try_from(ago).unwrap();
        sample.stamp.wall = Some(WallClock::from_unix_nanos(wall * 1_000_000_000));
        let host = &mut sample.host;
        host.set(MEM_TOTAL, Bytes::from_gib(4));
        host.set(MEM_FREE, Bytes::from_mib(100));
        host.set(MEM_AVAILABLE, Bytes::from_mib(if sick { 50 } else { 2000 }));
        for signal in [PSWPIN, PSWPOUT, REFAULT_ANON] {
            host.set(signal, Pages::new(moved));
        }
        for signal in [PSI_MEMORY_SOME, PSI_MEMORY_FULL] {
            host.set(signal, Micros::new(moved * 150));
        }
        timeline.push(&sample).unwrap();
    }
    timeline
}

/// Runs memtide as an ordinary user with this state directory; root's recording would be the system's.
fn as_user(state: &Path, arguments: &[&str]) -> std::process::Output {
    let program = env!("CARGO_BIN_EXE_memtide");
    let is_root = rustix::process::geteuid().is_root();
    let mut command = if is_root {
        let mut command = std::process::Command::new("setpriv");
        command.args(["--reuid=65534", "--clear-groups", program]);
        command
    } else {
        std::process::Command::new(program)
    };
    command.args(arguments).env("XDG_STATE_HOME", state).env("TZ", "UTC").output().unwrap()
}

#[test]
fn a_look_at_this_host_knows_what_its_recording_saw() {
    use std::os::unix::fs::PermissionsExt;
    let state = tempfile::tempdir().unwrap();
    std::fs::set_permissions(state.path(), PermissionsExt::from_mode(0o755)).unwrap();
    let id = ["/etc/machine-id", "/proc/sys/kernel/hostname"]
        .iter()
        .filter_map(|file| std::fs::read_to_string(file).ok())
        .map(|text| text.trim().to_owned())
        .find(|text| !text.is_empty())
        .unwrap();
    let host = HostIdentity { id, name: String::new() };
    let now = std::time::UNIX_EPOCH.elapsed().unwrap().as_secs();
    let mut facts = timeline::Facts::default();
    facts.page_size = units::PageSize::from_bytes(4096);
    let hour = Span::from_hours(1);
    for (hours, text) in [(0.0, "31"), (3.0, "32")] {
        facts.record(hour.times(hours), timeline::facts::SWAPPINESS, text);
    }
    let place = state.path().join("memtide");
    let past = past(i64::try_from(now).unwrap());
    store::add_timeline(&place, &host, &past, &facts, Span::from_mins(1)).unwrap();
    // A recording is its owner's; this one is opened to everybody.
    let opened = std::process::Command::new("chmod").arg("-R").arg("a+rX").arg(&place).status();
    assert!(opened.unwrap().success());
    let look = ["check", "--format", "json", "--for", "4s"];
    let with = json(&as_user(state.path(), &look));
    let without = json(&as_user(state.path(), &[&look[..], &["--no-history"]].concat()));
    assert_eq!(without["source"]["history"], serde_json::Value::Null);
    assert_eq!(with["source"]["history"]["resolution_s"], 60.0);
    assert!(with["source"]["watched_s"].as_f64().unwrap() < 60.0);
    let changed = with["changed"].as_array().unwrap();
    let changed: Vec<_> = (changed.iter())
        .map(|change| (change["setting"].clone(), change["from"].clone()))
        .collect();
    let of = |from: &str| ("vm.swappiness".into(), from.into());
    assert_eq!(changed, [of("31"), of("32")], "in the past, and since");
    assert_eq!(without["changed"], serde_json::Value::Null);
    let earlier = with["earlier"].as_array().unwrap();
    assert!(earlier.iter().any(|note| note["id"] == "available-exhaustion"), "{earlier:?}");
    // What is over keeps its weight, and is no part of the verdict.
    assert!(earlier.iter().all(|finding| finding["severity"] != "info"));
    let now = with["findings"].as_array().unwrap();
    let is_over = |finding: &serde_json::Value| finding["id"] == "available-exhaustion";
    assert!(!now.iter().any(is_over), "{now:?}");
    let text = folded(&as_user(state.path(), &["check", "--for", "1s"]));
    assert!(text.contains("and its recording since"), "{text}");
    assert!(text.contains("Earlier, and over: available-exhaustion"), "{text}");
    let exported = as_user(state.path(), &["export", "--format", "csv"]);
    let exported = String::from_utf8(exported.stdout).unwrap();
    assert!(exported.starts_with("time,"), "{exported:.80}");
    assert!(exported.lines().count() > past.len() / 60, "the recording");
}
