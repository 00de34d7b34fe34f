//! `memtide growth`: of tables and of captures.

use crate::support::{file, json, memtide, stderr, stdout};

/// A table of an hour, a reading every ten seconds.
fn table(row: impl Fn(u64) -> (u64, u64, u64)) -> String {
    let mut text = String::from("ts,rss,live,free\n");
    for n in 0..360 {
        let (rss, live, free) = row(n);
        text.push_str(&format!("{},{rss},{live},{free}\n", n * 10));
    }
    text
}

/// A leak of 2 KiB a second.
fn leak() -> String {
    table(|n| (9_000_000 + n * 20_480, 12_000_000 + n * 20_480, 60_000 + n % 7 * 5_000))
}

/// Live stands still, and free rises to half of the total.
fn fragmentation() -> String {
    table(|n| {
        let free = 60_000_000 - 60_000_000 / (1 + n / 12);
        (62_000_000 + free, 60_000_000 + n % 11 * 90_000, free)
    })
}

#[test]
fn a_table_of_one_process_has_class_and_confidence_at_the_top() {
    let directory = tempfile::tempdir().unwrap();
    for (name, text) in [("leak", leak()), ("fragmentation", fragmentation())] {
        let path = file(&directory, &format!("{name}.csv"), text);
        let output = memtide(&["growth", &path, "--format", "json"]);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let answer = json(&output);
        assert_eq!(answer["class"], name, "{answer}");
        assert!(answer["confidence"].as_f64().unwrap() >= 0.8, "{answer}");
        assert_eq!(answer["growths"][0]["class"], name);
        assert_eq!(answer["growths"][0]["name"], name);
    }
}

#[test]
fn one_process_is_shown_with_a_picture_and_what_to_do() {
    let directory = tempfile::tempdir().unwrap();
    let path = file(&directory, "web.csv", leak());
    let text = stdout(&memtide(&["growth", &path]));
    assert!(text.starts_with("LEAK  web (confirmed"), "{text}");
    for part in ["Rate:       120 KiB a minute", "█", "Method:", "To do:"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
}

#[test]
fn without_live_bytes_nothing_is_called_a_warm_up_or_fragmentation() {
    let directory = tempfile::tempdir().unwrap();
    let total: String = fragmentation()
        .lines()
        .map(|line| line.splitn(3, ',').take(2).collect::<Vec<_>>().join(",") + "\n")
        .collect();
    let answer = json(&memtide(&["growth", &file(&directory, "a.csv", total), "--json"]));
    assert_eq!(answer["class"], "saturating", "{answer}");
    assert!(answer["confidence"].as_f64().unwrap() <= 0.7);
}

#[test]
fn a_short_table_says_how_much_more_it_needs() {
    let directory = tempfile::tempdir().unwrap();
    let short: Vec<String> = leak().lines().take(20).map(str::to_owned).collect();
    let output = memtide(&["growth", &file(&directory, "a.csv", short.join("\n"))]);
    assert_eq!(output.status.code(), Some(0));
    assert!(stdout(&output).contains("Not enough data: about"), "{}", stdout(&output));
}

#[test]
fn a_capture_lists_processes_and_an_unknown_name_is_an_error() {
    let case = crate::cases::path("healthy--6.12-jvm70-1152m");
    let output = memtide(&["growth", &case]);
    assert!(stdout(&output).contains("misc2 (146)"), "{}", stdout(&output));
    let answer = json(&memtide(&["growth", &case, "--json"]));
    assert!(answer["class"].is_null());
    let classes = answer["growths"].as_array().unwrap();
    // Seconds show no leak.
    assert!(classes.iter().all(|one| one["class"] != "leak"), "{answer}");
    let unknown = memtide(&["growth", &case, "--service", "nosuch"]);
    assert_eq!(unknown.status.code(), Some(3));
    assert!(stderr(&unknown).contains("`nosuch`"), "{}", stderr(&unknown));
}

/// As in `check`, what goes on comes before what is over.
#[test]
fn a_leak_that_goes_on_comes_before_one_that_was_killed() {
    let case = crate::cases::played("leak-after-a-kill");
    let answer = json(&memtide(&["growth", &case, "--format", "json"]));
    let growths = answer["growths"].as_array().unwrap();
    let named: Vec<&str> = growths.iter().filter_map(|one| one["name"].as_str()).collect();
    assert_eq!(named[..2], ["api", "ledger"], "{growths:#?}");
    assert_eq!((&growths[0]["class"], &growths[1]["class"]), (&"leak".into(), &"leak".into()));
    assert!(growths[0]["limit_in_s"].as_f64().is_some_and(|left| (100.0..130.0).contains(&left)));
    assert!(growths[1]["limit_in_s"].is_null());
}
