//! The screens of `rules` and `signals`: lists, and one entry explained.

use super::ansi::Style;
use super::page::{NARROW, TextPage, piece};
use super::{Screen, check, markdown, wrap};
use crate::model::{RuleEntry, SignalEntry};

/// Cells of a row's text: in fewer, it has lines of its own below the columns.
const TEXT_CELLS_MIN: usize = 24;

/// Returns rows of columns with a text beside them, which is wrapped; in a file or a pipe each row is one line.
pub(super) fn columns(rows: &[(String, String)], screen: &Screen) -> String {
    let mut page = TextPage::new(screen);
    let cells = rows.iter().map(|(columns, _)| wrap::width(columns)).max();
    let indent = cells.map_or(0, |cells| if cells == 0 { 0 } else { cells + 1 });
    for (columns, text) in rows {
        let head = piece(Style::Plain, wrap::pad(columns, indent));
        if screen.unbroken {
            page.line(&[head, piece(Style::Plain, text.clone())]);
        } else if screen.width() < indent + TEXT_CELLS_MIN {
            page.line(&[head]);
            page.hanging(&[], 4, Style::Plain, text);
        } else {
            page.hanging(&[head], indent, Style::Plain, text);
        }
    }
    page.finish()
}

pub(super) fn rules(rules: &[RuleEntry], screen: &Screen) -> String {
    let mut page = TextPage::new(screen);
    for (purpose, heading) in [
        ("finding", "Rules that find what is wrong"),
        ("note", "Rules that explain what only looks wrong"),
    ] {
        let listed: Vec<_> = rules.iter().filter(|rule| rule.purpose == purpose).collect();
        if listed.is_empty() {
            continue;
        }
        page.heading(&format!("{heading} ({}):", listed.len()));
        for rule in listed {
            check::entry(&mut page, rule.id, &rule.summary, screen);
        }
    }
    page.gap();
    page.line(&[piece(Style::Faint, "memtide rules ID explains one.")]);
    page.finish()
}

pub(super) fn rule(rule: &RuleEntry, screen: &Screen) -> String {
    let mut page = TextPage::new(screen);
    page.line(&[
        piece(Style::Strong, rule.id),
        piece(Style::Faint, format!("  {}, since memtide {}", rule.purpose, rule.since)),
    ]);
    page.gap();
    markdown::draw(&mut page, &rule.docs, 3);
    page.finish()
}

pub(super) fn signals(signals: &[SignalEntry], screen: &Screen) -> String {
    let mut page = TextPage::new(screen);
    let mut entity = "";
    for signal in signals {
        if signal.entity != entity {
            entity = signal.entity;
            let n = signals.iter().filter(|other| other.entity == entity).count();
            page.heading(&format!("Of {} ({n}):", signal.subject()));
        }
        let text = format!("{} ({}, {})", signal.meaning, signal.kind, signal.unit);
        let head = [piece(Style::Plain, format!("   {}", signal.name))];
        // A name as wide as its column has its text below it.
        let indent = if screen.width() < NARROW { 5 } else { 30 };
        if signal.name.len() + 4 > indent {
            page.line(&head);
            page.hanging(&[], indent, Style::Plain, &text);
        } else {
            page.hanging(&head, indent, Style::Plain, &text);
        }
    }
    page.gap();
    page.line(&[piece(Style::Faint, "memtide signals NAME explains one.")]);
    page.finish()
}

pub(super) fn signal(signal: &SignalEntry, screen: &Screen) -> String {
    let mut page = TextPage::new(screen);
    page.line(&[
        piece(Style::Strong, signal.name),
        piece(
            Style::Faint,
            format!("  {} of {}, of {}", signal.kind, signal.unit, signal.subject()),
        ),
    ]);
    page.gap();
    page.hanging(&[], 3, Style::Plain, signal.meaning);
    page.gap();
    let source = match signal.file {
        timeline::signals::DERIVED => format!("computed: {}", signal.field),
        file => format!("{file}, {}", signal.field),
    };
    let scale = match (signal.scale, signal.unit) {
        (1, _) => None,
        (scale, unit) => Some(format!("1 in the file is {scale} {unit}")),
    };
    let rows = [
        ("source", Some(source)),
        ("scale", scale),
        (
            "since",
            Some(signal.since.map_or_else(
                || "all kernels in use".to_owned(),
                |since| format!("kernel {since}"),
            )),
        ),
        ("sar", signal.sar.map(str::to_owned)),
        ("PCP", signal.pcp.map(str::to_owned)),
        ("node_exporter", signal.node_exporter.map(str::to_owned)),
    ];
    for (label, text) in rows {
        if let Some(text) = text {
            let head = [piece(Style::Faint, format!("   {label}"))];
            page.hanging(&head, 18, Style::Plain, &text);
        }
    }
    page.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_wrapped_beside_its_columns_but_not_in_a_pipe() {
        let text = "Free memory stops at the watermarks, not at zero; the rest goes to swap.";
        let rows = [("hogs    768 MiB".to_owned(), text.to_owned())];
        let wide = columns(&rows, &Screen::of_width(80));
        assert_eq!(
            wide,
            "hogs    768 MiB Free memory stops at the watermarks, not at zero; the rest goes\n\
             \u{20}               to swap.\n"
        );
        let narrow = columns(&[("x".repeat(30), text.to_owned())], &Screen::of_width(40));
        assert!(narrow.lines().all(|line| line.len() <= 40), "{narrow}");
        assert!(narrow.contains("\n    Free memory"), "{narrow}");
        let piped = columns(&rows, &Screen { unbroken: true, ..Screen::default() });
        assert_eq!(piped, format!("hogs    768 MiB {text}\n"));
    }
}
