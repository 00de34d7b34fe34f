//! `check --brief`: what a monitoring system reads.

use crate::cases;
use crate::support::{memtide, stderr, stdout};

/// The line of an answer, split at the first `|`, with its exit code.
fn brief(arguments: &[&str]) -> (String, Vec<String>, i32) {
    let output = memtide(&[&["check", "--brief"], arguments].concat());
    assert_eq!(stderr(&output), "", "a monitoring system may show both streams");
    let line = stdout(&output);
    assert_eq!(line.lines().count(), 1, "{line}");
    let (text, data) = line.trim_end().split_once(" | ").unwrap_or((line.trim_end(), ""));
    let data = data.split(' ').filter(|datum| !datum.is_empty()).map(str::to_owned);
    (text.to_owned(), data.collect(), output.status.code().unwrap())
}

/// `'label'=value[UOM];[warn];[crit];[min];[max]`, as the guidelines define it.
fn is_datum(datum: &str) -> bool {
    let Some((label, figures)) = datum.split_once('=') else {
        return false;
    };
    let mut fields = figures.split(';');
    let value = fields.next().unwrap_or_default();
    let number = value.trim_end_matches(|c: char| !c.is_ascii_digit());
    let unit = &value[number.len()..];
    let is_number = |field: &str| field.is_empty() || field.parse::<f64>().is_ok();
    label.chars().all(|c| c.is_ascii_lowercase() || c == '_')
        && number.parse::<f64>().is_ok()
        && ["B", "%", "c"].contains(&unit)
        && fields.clone().count() <= 4
        && fields.all(|field| is_number(field.trim_end_matches(':')))
}

#[test]
fn a_line_has_the_verdict_and_data_and_its_exit_code() {
    let swapping = cases::path("swap-thrash--5.10-384m-disk");
    let limited = cases::path("cgroup-oom--96m");
    let idle = cases::path("healthy--idle");
    for (arguments, word, code, labels) in [
        (&[swapping.as_str()][..], "CRITICAL", 2, &["available", "swap_used", "stalled_full"][..]),
        (&[&idle], "OK", 0, &["available"]),
        (&[&limited, "--cgroup", "/app"], "CRITICAL", 2, &["usage", "oom_kills", "limit_hits"]),
        (&[&limited, "--cgroup", "/quiet"], "OK", 0, &["usage", "stalled_some"]),
    ] {
        let (text, data, exit) = brief(arguments);
        assert!(text.starts_with(&format!("MEMORY {word} - ")), "{text}");
        assert_eq!(exit, code, "{text}");
        assert!(data.iter().all(|datum| is_datum(datum)), "{data:?}");
        for label in labels {
            let with_value = format!("{label}=");
            assert!(data.iter().any(|datum| datum.starts_with(&with_value)), "{label}: {data:?}");
        }
    }
}

#[test]
fn this_host_is_judged_within_the_time_of_check_nrpe() {
    let begun = std::time::Instant::now();
    let (text, data, code) = brief(&["--no-history"]);
    assert!(begun.elapsed().as_secs() < 10, "{:?}", begun.elapsed());
    assert!(text.starts_with("MEMORY ") && code < 3, "{code}: {text}");
    assert!(data[0].starts_with("available=") && is_datum(&data[0]), "{data:?}");
}

#[test]
fn whatever_fails_is_unknown_in_one_line() {
    let limited = cases::path("cgroup-oom--96m");
    for (arguments, says) in [
        (&["/nothing/here"][..], "cannot read /nothing/here"),
        (&["--wrong"], "--wrong"),
        (&[&limited, "--cgroup", "/no"], "no cgroup is called"),
        (&[&limited, &limited], "one FILE"),
    ] {
        let (text, data, code) = brief(arguments);
        assert!(text.starts_with("MEMORY UNKNOWN - ") && text.contains(says), "{text}");
        assert_eq!((code, data.len()), (3, 0), "{text}");
    }
}
