//! The labelled captures: every rule on every case. Precision before recall; a calm case has no warning.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};

use diagnose::Severity;

use crate::support::root;

struct Case {
    name: String,
    want: Vec<String>,
    forbid: Vec<String>,
    calm: bool,
    loud: BTreeSet<&'static str>,
    said: BTreeSet<&'static str>,
}

/// Reads the labels, which memtide itself never looks at, and diagnoses the capture.
fn cases() -> Vec<Case> {
    let mut paths: Vec<_> = std::fs::read_dir(root().join("corpus"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.to_string_lossy().ends_with(".jsonl.gz"))
        .collect();
    paths.sort();
    paths
        .into_iter()
        .map(|path| {
            let file = std::fs::File::open(&path).unwrap();
            let mut header = String::new();
            BufReader::new(flate2::read::GzDecoder::new(file))
                .read_line(&mut header)
                .unwrap();
            let header: serde_json::Value = serde_json::from_str(&header).unwrap();
            let ids = |key: &str| -> Vec<String> {
                header[key]
                    .as_array()
                    .map(|ids| {
                        ids.iter()
                            .map(|id| id.as_str().unwrap().to_owned())
                            .collect()
                    })
                    .unwrap_or_default()
            };
            let opened = import::open(&path, &mut |_| ()).unwrap();
            assert_eq!(opened.problems, Vec::<String>::new(), "{}", path.display());
            let diagnosis = diagnose::diagnose(&opened.timeline, &opened.facts);
            let want = ids("expected_findings");
            let calm = header["calm"].as_bool().unwrap_or(true)
                && want.iter().all(|id| id.contains("-harmless"));
            Case {
                name: path.file_name().unwrap().to_string_lossy().into_owned(),
                calm,
                forbid: ids("not_expected"),
                want,
                loud: diagnosis
                    .findings
                    .iter()
                    .filter(|f| f.severity > Severity::Info)
                    .map(|f| f.id)
                    .collect(),
                said: diagnosis
                    .findings
                    .iter()
                    .chain(&diagnosis.notes)
                    .flat_map(|f| std::iter::once(f.id).chain(f.aliases.iter().copied()))
                    .collect(),
            }
        })
        .collect()
}

#[test]
fn every_labelled_case_is_judged_right() {
    let cases = cases();
    assert!(cases.len() >= 20, "the corpus has {} cases", cases.len());
    let mut wrong = String::new();
    for case in &cases {
        for want in &case.want {
            if !want.split('|').any(|id| case.said.contains(id)) {
                wrong += &format!("{}: misses {want}; said {:?}\n", case.name, case.said);
            }
        }
        for id in &case.loud {
            if case.calm || case.forbid.iter().any(|forbidden| forbidden == id) {
                wrong += &format!("{}: wrongly says {id}\n", case.name);
            }
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}

/// Rules that some case of the corpus makes fire. The others are judged on synthetic cases only; this list says which.
#[test]
fn rules_without_a_labelled_case_are_known() {
    let cases = cases();
    let covered: BTreeSet<String> = cases
        .iter()
        .flat_map(|case| case.want.iter())
        .flat_map(|want| want.split('|'))
        .map(str::to_owned)
        .collect();
    let uncovered: Vec<&str> = diagnose::rules::ALL
        .iter()
        .map(|rule| rule.id)
        .filter(|id| !covered.contains(*id))
        .collect();
    assert_eq!(
        uncovered,
        [
            "available-exhaustion",
            "cache-starved-floor",
            "swap-full",
            "no-swap-risk",
            "zram-misuse",
            "direct-reclaim-stall",
            "kswapd-saturated",
            "numa-imbalance",
            "compaction-stall",
            "external-fragmentation",
            "unaccounted-memory",
            "accounting-mismatch",
            "cache-full-harmless",
            "streaming-read",
            "monitoring-gap",
        ]
    );
}
