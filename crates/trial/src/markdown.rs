//! The answer as Markdown, for a pull request.

use crate::analysis::TrialMetric;
use crate::model::TrialReport;
use crate::words::{self, TableCell};

/// Returns the answer as Markdown.
pub fn markdown(report: &TrialReport) -> String {
    let metrics: Vec<TrialMetric> = TrialMetric::ALL
        .into_iter()
        .filter(|metric| words::is_shown(*metric) || *metric == TrialMetric::PeakMemory)
        .collect();
    let table = words::table(report, &metrics);
    let mut text = format!("**{}**\n\n", escaped(&words::headline(report)));
    let mut line = |cells: &[String]| {
        text.push_str(&format!("| {} |\n", cells.join(" | ")));
    };
    let head: Vec<String> = ["variant".to_owned()]
        .into_iter()
        .chain(table.columns.iter().map(|heading| escaped(heading)))
        .chain([String::new()])
        .collect();
    line(&head);
    let rule: Vec<String> = head
        .iter()
        .enumerate()
        .map(|(at, _)| if at == 0 || at + 1 == head.len() { "---" } else { "---:" }.to_owned())
        .collect();
    line(&rule);
    for row in &table.rows {
        let name = timeline::plain::escape(&row.name).replace('`', "'").replace('|', "\\|");
        let cells: Vec<String> = [format!("`{name}`")]
            .into_iter()
            .chain(row.cells.iter().map(cell))
            .chain([escaped(&row.remark)])
            .collect();
        line(&cells);
    }
    text.push_str(&format!(
        "\n{}. Ratios to `{}`; in brackets simultaneous 95 % intervals; bold: a difference.\n\n",
        escaped(&words::what_was_run(report)),
        table.rows.first().map_or("", |row| &row.name),
    ));
    for remark in words::remarks(report) {
        text.push_str(&format!("- {}\n", escaped(&remark)));
    }
    text
}

fn cell(cell: &TableCell) -> String {
    use crate::analysis::TrialVerdict::{Less, More};
    match cell.verdict {
        Some(Less | More) => format!("**{}**", cell.text),
        Some(verdict) => format!("{} {}", cell.text, verdict.word()),
        None => cell.text.clone(),
    }
}

/// Makes harmless what Markdown would read as its own signs.
fn escaped(text: &str) -> String {
    let text = text.replace(['\n', '\r'], " ");
    let text = timeline::plain::escape(&text);
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '|' | '*' | '_' | '`' | '<' | '[' | '\\' | '~' => {
                out.push('\\');
                out.push(c);
            }
            _ => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::escaped;

    #[test]
    fn what_a_command_prints_is_no_mark() {
        assert_eq!(escaped("a|b *c* <img> `x`\n[y]"), "a\\|b \\*c\\* \\<img> \\`x\\` \\[y]");
    }
}
