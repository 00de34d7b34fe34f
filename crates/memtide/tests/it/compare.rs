//! `memtide compare`: what people see of three pairs, and what scripts read.

use crate::support::{capture, file, folded, json, memtide, stderr, stdout};

fn corpus(id: &str) -> String {
    crate::cases::path(id)
}

fn compared(before: &str, after: &str, more: &[&str]) -> std::process::Output {
    let (before, after) = (corpus(before), corpus(after));
    memtide(&[&["compare", &before, &after], more].concat())
}

const RECLAIM: &str = "node-reclaim--dist21";
const NO_RECLAIM: &str = "healthy--numa-mode0";
const IDLE: &str = "healthy--idle";
const THRASH: &str = "swap-thrash--512m-swapdisk";

#[test]
fn a_fix_names_the_setting_that_was_the_cause() {
    let output = compared(RECLAIM, NO_RECLAIM, &[]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let said = "vm.zone_reclaim_mode is the cause: 1 before, 0 after.";
    assert!(folded(&output).contains(said), "{}", stdout(&output));
    insta::assert_snapshot!(stdout(&output));
    let back = compared(NO_RECLAIM, RECLAIM, &[]);
    assert_eq!(back.status.code(), Some(1));
    let said = "vm.zone_reclaim_mode is the cause: 0 before, 1 after.";
    assert!(folded(&back).contains(said), "{}", stdout(&back));
}

#[test]
fn more_load_is_told_by_what_differs_most() {
    let output = compared(IDLE, THRASH, &[]);
    assert_eq!(output.status.code(), Some(1));
    insta::assert_snapshot!(stdout(&output));
}

#[test]
fn huge_pages_under_another_setting() {
    let output = compared("healthy--thp-never", "thp-bloat--always", &[]);
    assert_eq!(output.status.code(), Some(0));
    insta::assert_snapshot!(stdout(&output));
}

#[test]
fn a_recording_against_itself_shows_no_change() {
    for case in [IDLE, THRASH, RECLAIM] {
        let output = compared(case, case, &["--format", "json"]);
        assert_eq!(output.status.code(), Some(0), "{case}");
        let answer = json(&output);
        assert_eq!(answer["direction"], "same", "{case}: {}", answer["headline"]);
        let headline = answer["headline"].as_str().unwrap();
        assert!(headline.starts_with("Nothing changed"), "{case}: {headline}");
        assert_eq!(answer["facts"].as_array().map(Vec::len), Some(0));
    }
}

#[test]
fn lines_fit_into_eighty_columns() {
    for (before, after) in [(RECLAIM, NO_RECLAIM), (IDLE, THRASH), (IDLE, RECLAIM)] {
        for more in [&[][..], &["--all"]] {
            let text = stdout(&compared(before, after, more));
            for line in text.lines() {
                assert!(line.chars().count() <= 80, "{line}");
            }
        }
    }
}

#[test]
fn parts_of_one_source_are_compared() {
    let same = corpus(THRASH);
    let output = memtide(&[
        "compare",
        &same,
        &same,
        "--before-until",
        "+9s",
        "--after-since",
        "+11s",
        "--format",
        "json",
    ]);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let answer = json(&output);
    assert_eq!(answer["schema"], "memtide-compare/1");
    assert_eq!(answer["after"]["verdict"], "critical");
    let samples = |side: &str| answer[side]["source"]["samples"].as_u64().unwrap();
    assert!(samples("before") < 12 && samples("after") > 20);
}

#[test]
fn single_looks_cannot_be_told_and_say_why() {
    let directory = tempfile::tempdir().unwrap();
    let look = |name: &str, free: u64| {
        let meminfo =
            format!("MemTotal: 1000000 kB\nMemFree: {free} kB\nMemAvailable: {free} kB\n");
        file(&directory, name, capture(&[vec![("/proc/meminfo", meminfo)]]))
    };
    let (one, other) = (look("a.jsonl", 600_000), look("b.jsonl", 200_000));
    let output = memtide(&["compare", &one, &other]);
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    let text = folded(&output);
    assert!(text.contains("There is one sample only before: levels, and no rates."), "{text}");
    assert!(text.contains("−391 MiB"), "{text}");
}

#[test]
fn names_from_the_host_steer_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let look = |name: &str, program: &str| {
        let meminfo = "MemTotal: 1000000 kB\nMemFree: 600000 kB\nAnonPages: 300000 kB\n".to_owned();
        let stat =
            format!("7 ({program}) S 1 7 7 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 100 900000 75000");
        let status = "RssAnon: 300000 kB\n".to_owned();
        let files =
            vec![("/proc/meminfo", meminfo), ("/proc/7/stat", stat), ("/proc/7/status", status)];
        file(&directory, name, capture(&[files.clone(), files]))
    };
    let one = look("a.jsonl", "calm");
    let other = look("b.jsonl", "\u{1b}[2Jevil\u{202e}<script>");
    let output = memtide(&["compare", &one, &other]);
    let text = stdout(&output);
    assert!(text.contains("evil"), "{text}");
    assert!(!text.contains('\u{1b}') && !text.contains('\u{202e}'), "{text}");
}

#[test]
fn a_source_that_cannot_be_read_is_an_error_that_names_it() {
    let output = memtide(&["compare", &corpus(IDLE), "/no/such/file"]);
    assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(3), ""));
    assert!(stderr(&output).contains("/no/such/file"));
    let both = memtide(&["compare", "-", "-"]);
    assert_eq!(both.status.code(), Some(3));
    assert!(stderr(&both).contains("not both"), "{}", stderr(&both));
}

/// The page of two sources, as a file and as what its readers read.
fn paged(before: &str, after: &str) -> (String, String) {
    let output = memtide(&["compare", before, after, "-o", "-"]);
    let html = stdout(&output);
    assert!(html.starts_with("<!doctype html>"), "{}", stderr(&output));
    let text = crate::report::read(&html);
    (html, text)
}

#[test]
fn the_page_says_what_text_and_json_say() {
    for (before, after) in [(RECLAIM, NO_RECLAIM), (IDLE, THRASH), (THRASH, THRASH)] {
        let answer = json(&compared(before, after, &["--format", "json"]));
        let (_, page) = paged(&corpus(before), &corpus(after));
        let mut said =
            vec![&answer["headline"], &answer["before"]["headline"], &answer["after"]["headline"]];
        said.extend(answer["basis"].as_array().unwrap());
        said.extend(answer["more"].as_array().unwrap());
        for finding in answer["findings"].as_array().unwrap() {
            said.push(&finding["id"]);
            said.extend(["before", "after"].map(|side| &finding[side]["title"]));
        }
        for rate in answer["rates"].as_array().unwrap() {
            said.push(&rate["label"]);
            said.extend(["before", "after"].map(|side| &rate[side]["text"]));
        }
        for fact in answer["facts"].as_array().unwrap() {
            said.push(&fact["name"]);
        }
        for sentence in said.into_iter().filter_map(|it| it.as_str()) {
            assert!(page.contains(sentence), "{before} {after}: {sentence}");
        }
        // Row by row: label, both values and the change stand side by side, as in the terminal.
        let text = stdout(&compared(before, after, &[]));
        let rows = text.lines().filter(|line| line.starts_with("   ") && !line.starts_with("    "));
        for row in rows.filter(|row| row.contains("  ") && !row.contains("left out")) {
            let row = row.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(page.contains(&row), "{before} {after}: {row}");
        }
    }
}

#[test]
fn the_page_holds_all_it_needs_and_runs_its_own_program_only() {
    let (html, page) = paged(&corpus(RECLAIM), &corpus(NO_RECLAIM));
    let (markup, program) = html.rsplit_once("<script>").unwrap();
    assert!(!program.contains("<script") && !markup.contains("<script>"));
    let tags = markup.split('<').filter_map(|part| part.split_once('>'));
    for (tag, _) in tags {
        assert!(!tag.contains(" on") && !tag.contains(" style="), "{tag}");
    }
    assert!(!markup.contains("http:") && !markup.contains("https:") && !markup.contains("url("));
    assert!(html.contains("default-src 'none'"));
    assert!(page.contains("Findings before"), "{page}");
    assert!(html.len() < 400 * 1024, "{}", html.len());
}

#[test]
fn the_page_has_the_curves_of_both_sides_and_text_has_none_of_them() {
    let (html, _) = paged(&corpus(RECLAIM), &corpus(NO_RECLAIM));
    for chart in ["where", "free", "pressure", "swap", "refaults", "dirty"] {
        for side in ["before", "after"] {
            let id = format!("id=\"chart-{side}-{chart}\"");
            assert_eq!(html.matches(&id).count(), 1, "{id}");
        }
    }
    for side in ["before", "after"] {
        let data = format!("id=\"memtide-data-{side}\">");
        let (_, packed) = html.split_once(&data).unwrap();
        assert!(packed.find('<').is_some_and(|end| end > 1_000), "{side}");
    }
    let answer = json(&compared(RECLAIM, NO_RECLAIM, &["--format", "json"]));
    assert!(answer["rates"][0]["before"].get("course").is_none());
}

#[test]
fn the_page_tells_how_to_mend_what_is_new_and_how_much_fits_on_either_side() {
    let (html, page) = paged(&corpus(IDLE), &corpus(THRASH));
    assert!(html.contains("id=\"finding-after-0\""));
    for words in ["Findings after", "Fix", "Verify", "Headroom", "read cache"] {
        assert!(page.contains(words), "{words}");
    }
    let (_, back) = paged(&corpus(THRASH), &corpus(IDLE));
    assert!(back.contains("Findings before"));
    assert!(!back.contains("Findings after"));
}

#[test]
fn a_page_is_whole_or_not_there_and_overwrites_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let target = directory.path().join("compare.html");
    let target = target.to_str().unwrap();
    let (one, other) = (corpus(IDLE), corpus(THRASH));
    let write =
        |more: &[&str]| memtide(&[&["compare", &one, &other, "-o", target][..], more].concat());
    // The exit code says where it went, as without a page.
    assert_eq!(write(&[]).status.code(), Some(1));
    let refused = write(&[]);
    assert_eq!(refused.status.code(), Some(3));
    assert!(stderr(&refused).contains("--force"), "{}", stderr(&refused));
    assert_eq!(write(&["--force"]).status.code(), Some(1));
    let nowhere = memtide(&["compare", &one, &other, "-o", "/no/such/directory/a.html"]);
    assert_eq!(nowhere.status.code(), Some(3));
    let full = memtide(&["compare", &one, &other, "-o", "/dev/full"]);
    assert_eq!(full.status.code(), Some(3), "{}", stderr(&full));
}

#[test]
fn a_page_shows_names_from_the_host_as_text() {
    let directory = tempfile::tempdir().unwrap();
    let look = |name: &str, program: &str| {
        let meminfo = "MemTotal: 1000000 kB\nMemFree: 600000 kB\nAnonPages: 300000 kB\n".to_owned();
        let stat =
            format!("7 ({program}) S 1 7 7 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 100 900000 75000");
        let files = vec![
            ("/proc/meminfo", meminfo),
            ("/proc/7/stat", stat),
            ("/proc/7/status", "RssAnon: 300000 kB\n".to_owned()),
        ];
        file(&directory, name, capture(&[files.clone(), files]))
    };
    let one = look("a.jsonl", "calm");
    let other = look("b.jsonl", "</td><script>alert(1)</script>\u{202e}\"x");
    let (html, page) = paged(&one, &other);
    assert_eq!(html.matches("<script>").count(), 1, "the page's own");
    assert!(!html.contains("<script>alert") && !html.contains('\u{202e}'));
    assert!(page.contains("</td><script>alert(1)</script>"), "{page}");
}

#[test]
fn any_two_captures_are_compared_and_one_with_itself_shows_nothing() {
    use diagnose::compare::{Compared, Direction, compare};
    let cases: Vec<_> = crate::cases::captures().collect();
    let side = |at: usize| Compared {
        timeline: &cases[at].judged().source.timeline,
        facts: &cases[at].judged().source.facts,
        diagnosis: &cases[at].judged().diagnosis,
    };
    for at in 0..cases.len() {
        let same = compare(side(at), side(at));
        assert!(
            matches!(same.direction, Direction::Same | Direction::Unknown),
            "{:?}",
            cases[at].id
        );
        assert!(
            same.rates.iter().all(|rate| !rate.is_clear()) && same.facts.is_empty(),
            "{:?}",
            cases[at].id
        );
        // Each against two others: neighbours are of one kind, the far one is of another.
        for other in [(at + 1) % cases.len(), (at + 37) % cases.len()] {
            let (there, back) = (compare(side(at), side(other)), compare(side(other), side(at)));
            let both = (there.direction, back.direction);
            assert_ne!(
                both,
                (Direction::Better, Direction::Better),
                "{:?} {:?}",
                cases[at].id,
                cases[other].id
            );
            for rate in &there.rates {
                let same = back.rates.iter().find(|it| it.name == rate.name).unwrap();
                assert_eq!(
                    (&rate.before, &rate.after),
                    (&same.after, &same.before),
                    "{}",
                    rate.name
                );
            }
            assert!(!there.headline.is_empty() && !back.headline.is_empty());
        }
    }
}
