//! The labelled cases as one flat directory, for tools that score any program on them.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use serde_json::{Value, json};

use lab::CaseLabels;

use crate::cases::{self, Case};

/// Labels go into the first line of a capture.
fn capture(case: &Case, labels: &CaseLabels, directory: &Path) {
    let mut text = String::new();
    GzDecoder::new(std::fs::File::open(&case.source).unwrap()).read_to_string(&mut text).unwrap();
    let (header, samples) = text.split_once('\n').unwrap();
    let mut header: Value = serde_json::from_str(header).unwrap();
    header["expected_findings"] = json!(labels.must_find);
    header["not_expected"] = json!(labels.must_not_find);
    header["calm"] = json!(labels.calm);
    let file = std::fs::File::create(directory.join(format!("{}.jsonl.gz", case.id))).unwrap();
    let mut packed = GzEncoder::new(file, flate2::Compression::default());
    write!(packed, "{header}\n{samples}").unwrap();
    packed.finish().unwrap();
}

/// Labels stand before the figures of a paste; one without figures is left out.
fn paste(case: &Case, labels: &CaseLabels, directory: &Path) {
    let Ok(figures) = std::fs::read_to_string(case.folder.join("figures.txt")) else {
        return;
    };
    let (must_find, must_not_find) = (labels.must_find.join(", "), labels.must_not_find.join(", "));
    let text =
        format!("id: {}\nscore: [{must_find}]\nscore_not: [{must_not_find}]\n{figures}", case.id);
    std::fs::write(directory.join(format!("{}.txt", case.id)), text).unwrap();
}

/// `LAYOUT=DIR` keeps the directory.
#[test]
fn the_labelled_cases_are_laid_out_for_other_tools() {
    let temporary = tempfile::tempdir().unwrap();
    let directory =
        std::env::var_os("LAYOUT").map_or_else(|| temporary.path().to_owned(), PathBuf::from);
    std::fs::create_dir_all(&directory).unwrap();
    for case in cases::captures() {
        capture(case, case.file.labels.as_ref().unwrap(), &directory);
    }
    for case in cases::pastes() {
        if let Some(labels) = &case.file.labels {
            paste(case, labels, &directory);
        }
    }
    let written = std::fs::read_dir(&directory).unwrap().count();
    assert!(written > 100, "{written} files");
}
