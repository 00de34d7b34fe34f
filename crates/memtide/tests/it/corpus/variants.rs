//! The pastes of the corpus as people shorten, mix and quote them. What is left is a part: no answer takes it for more
//! than it is.

use serde_json::Value;

use crate::cases;
use report::text::Screen;

/// Texts made of a paste and of the next one.
fn variants(text: &str, other: &str) -> Vec<String> {
    let lines: Vec<&str> = text.lines().collect();
    let cut = |part: usize| {
        let end = text.len() * part / 16;
        let end = (0..=end).rev().find(|at| text.is_char_boundary(*at));
        end.unwrap_or(0)
    };
    let mut all: Vec<String> = (1..16)
        .flat_map(|part| [text[..cut(part)].to_owned(), text[cut(part)..].to_owned()])
        .collect();
    // A figure with its digits twice, in one line.
    let doubled = |at: usize| {
        let line = lines[at];
        let from = line.find(|c: char| c.is_ascii_digit() && c != '0')?;
        let digits = line[from..].chars().take_while(char::is_ascii_digit).count();
        let digits = &line[from..from + digits];
        let mut changed = lines.clone();
        let line = line.replacen(digits, &digits.repeat(2), 1);
        changed[at] = &line;
        Some(changed.join("\n"))
    };
    all.extend((0..lines.len()).step_by(lines.len() / 12 + 1).filter_map(doubled));
    let joined = |lines: &mut dyn Iterator<Item = &str>| lines.collect::<Vec<_>>().join("\n");
    let without = |at: usize| {
        let kept = lines.iter().enumerate().filter(|(line, _)| *line != at);
        kept.map(|(_, line)| *line).collect::<Vec<_>>().join("\n")
    };
    all.extend((0..lines.len()).step_by(lines.len() / 12 + 1).map(without));
    all.push(joined(&mut lines.iter().copied().step_by(2)));
    all.push(joined(&mut lines.iter().rev().copied()));
    all.push(joined(&mut lines.iter().map(|line| {
        &line[..(0..=line.len().min(60)).rev().find(|at| line.is_char_boundary(*at)).unwrap_or(0)]
    })));
    all.push(format!("{other}\n{text}"));
    all.push(format!("{}\n{other}", &text[..cut(8)]));
    all.push(text.replace('\n', "\n> "));
    all.push(text.lines().map(|line| format!("| `{line}` |\n")).collect());
    all.push(
        text.lines().map(|line| format!("{}\n", serde_json::json!({"message": line}))).collect(),
    );
    all.push(text.replace('\n', " "));
    all
}

/// Shares of a whole in a text: numbers before a percent sign.
fn shares(text: &str) -> Vec<(f64, &str)> {
    let mut found = Vec::new();
    for (at, _) in text.match_indices(" %") {
        let before = &text[..at];
        let number = before.rsplit(|c: char| !(c.is_ascii_digit() || c == ',' || c == '.')).next();
        if let Some(Ok(share)) = number.map(|number| number.replace(',', "").parse()) {
            let line = before.rfind('\n').map_or(0, |end| end + 1);
            found.push((share, &text[line..at + 2]));
        }
    }
    found
}

/// Adds terms of memory that are larger than all memory.
fn note_large_terms(report: &Value, name: &str, wrong: &mut Vec<String>) {
    let accounting = &report["accounting"];
    let Some(total) = accounting["total_bytes"].as_i64() else {
        return;
    };
    for term in accounting["terms"].as_array().into_iter().flatten() {
        if term["bytes"].as_i64().is_some_and(|bytes| bytes > total) {
            wrong.push(format!("{name}: {term} of {total}"));
        }
    }
}

#[test]
fn no_part_of_a_paste_is_more_than_its_whole() {
    let texts: Vec<(String, String)> = cases::pastes()
        .map(|case| (case.id.clone(), std::fs::read_to_string(cases::path(&case.id)).unwrap()))
        .collect();
    let numbers: Vec<usize> = (0..texts.len()).collect();
    let wrong: Vec<String> = cases::on_each(&numbers, |number: &usize| {
        let (name, text) = &texts[*number];
        let other = &texts[(*number + 1) % texts.len()].1;
        let mut wrong = Vec::new();
        for (at, variant) in variants(text, other).iter().enumerate() {
            let Ok(source) = import::open_bytes("paste", variant.as_bytes()) else {
                continue;
            };
            let report = answers::check(&source);
            let printed = report::text::check(&report, &Screen::of_width(100));
            let name = format!("{name}, variant {at}");
            let large = shares(&printed).into_iter().filter(|(share, _)| *share > 100.0);
            wrong.extend(large.map(|(_, line)| format!("{name}: {line}")));
            note_large_terms(&serde_json::to_value(&report).unwrap(), &name, &mut wrong);
        }
        wrong
    })
    .into_iter()
    .flatten()
    .collect();
    assert!(wrong.is_empty(), "{} faults\n{}", wrong.len(), wrong.join("\n"));
}
