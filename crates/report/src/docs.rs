//! The catalogues as Markdown: `docs/rules.md` and `docs/signals.md`. A test checks that both files are current.

use std::fmt::Write as _;

use crate::model::{RuleEntry, SignalEntry};

/// Returns the text of `docs/rules.md`.
pub fn rules(rules: &[RuleEntry]) -> String {
    let mut text = String::from(
        "# Rules\n\nWhat `memtide check` looks for. Generated from the rules' own documentation \
         (`BLESS=1 cargo test -p memtide-report`);\n`memtide rules ID` shows the same.\n",
    );
    for (purpose, heading) in [("finding", "Findings"), ("note", "Notes")] {
        let listed = || rules.iter().filter(|rule| rule.purpose == purpose);
        let _ = write!(text, "\n## {heading}\n\n");
        for rule in listed() {
            let _ = writeln!(text, "- [`{0}`](#{0}): {1}", rule.id, rule.summary);
        }
        for rule in listed() {
            let _ = write!(text, "\n### {}\n\n", rule.id);
            for line in rule.docs.trim_end().lines() {
                match line.strip_prefix("## ") {
                    Some(heading) => {
                        let _ = write!(text, "\n#### {heading}\n\n");
                    }
                    None => {
                        let _ = writeln!(text, "{line}");
                    }
                }
            }
        }
    }
    text.replace("\n\n\n", "\n\n")
}

/// Returns the text of `docs/signals.md`.
pub fn signals(signals: &[SignalEntry]) -> String {
    let mut text = String::from(
        "# Signals\n\nThe catalogue: what memtide reads and knows, with its names in other tools. Generated \
         (`BLESS=1 cargo test -p memtide-report`);\n`memtide signals NAME` shows the same.\n\n\
         A gauge is a level; a counter only rises, so that only its rate says anything. Units are those of stored \
         readings.\n\n\
         Names in other tools are what their current versions offer, in units of their own: for node_exporter with \
         its optional collectors,\nbut of `/proc/vmstat` only what it exports unless told otherwise; columns of sar \
         for a counter are its rate.\n",
    );
    let mut entity = "";
    for signal in signals {
        if signal.entity != entity {
            entity = signal.entity;
            let _ = write!(
                text,
                "\n## Of {}\n\n| name | kind | unit | source | since | meaning | sar | PCP | node_exporter |\n\
                 |---|---|---|---|---|---|---|---|---|\n",
                signal.subject()
            );
        }
        let cells = [
            code(signal.name),
            signal.kind.to_owned(),
            signal.unit.to_owned(),
            format!("{} {}", cell(signal.file), code(signal.field)),
            signal.since.unwrap_or_default().to_owned(),
            cell(signal.meaning),
            signal.sar.map_or_else(String::new, code),
            signal.pcp.map_or_else(String::new, code),
            signal.node_exporter.map_or_else(String::new, code),
        ];
        let _ = writeln!(text, "| {} |", cells.join(" | "));
    }
    text
}

/// Escapes a bar, which would end the table's cell.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

fn code(text: &str) -> String {
    format!("`{}`", cell(text))
}
