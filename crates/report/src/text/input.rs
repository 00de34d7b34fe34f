//! What was recognised in a text: as one paragraph above the verdict, or block by block.

use units::Count;

use super::Screen;
use super::ansi::Style;
use super::page::{TextPage, piece};
use crate::model::{Input, Source};

/// At most 5 blocks are named above a verdict; the rest is counted.
const NAMED_MAX: usize = 5;
const INDENT: usize = 6;

/// `Read: free, MiB (lines 2–4) · /proc/meminfo, KiB (lines 7–50) · 12 other lines passed over`.
pub(super) fn brief(page: &mut TextPage, source: &Source) {
    if source.inputs.is_empty() {
        return;
    }
    let groups = alike(&source.inputs);
    let named = groups.iter().take(NAMED_MAX);
    let mut items: Vec<String> = named.map(|group| in_short(group)).collect();
    let more: usize = groups.iter().skip(NAMED_MAX).map(|group| group.len()).sum();
    if more > 0 {
        let blocks = Count::new(more as u64).named("more block", "more blocks");
        items.push(format!("{blocks} (--explain-input)"));
    }
    if source.lines_skipped > 0 {
        items.push(passed_over(source));
    }
    page.hanging(&[piece(Style::Faint, "Read:")], INDENT, Style::Faint, &items.join(" · "));
}

/// Groups consecutive blocks of one kind: to a reader a series of `free` is one thing.
fn alike(inputs: &[Input]) -> Vec<&[Input]> {
    let same = |a: &Input, b: &Input| a.form == b.form && a.unit == b.unit && a.file == b.file;
    inputs.chunk_by(same).collect()
}

/// `free, MiB (lines 2–4)`, `120 × free, MiB (lines 2–480)`, `/sys/fs/cgroup/memory.max and 3 more (lines 4–9)`.
fn in_short(group: &[Input]) -> String {
    let (Some(first), Some(last)) = (group.first(), group.last()) else {
        return String::new();
    };
    let unit = first.unit.as_ref();
    let unit = unit.map_or_else(String::new, |unit| format!(", {unit}"));
    // The text after a comma is detail for --explain-input.
    let short = |input: &Input| input.what.split(',').next().unwrap_or(&input.form).to_owned();
    let what = short(first);
    let are_same = group.iter().all(|input| short(input) == what);
    let what = match group.len() {
        1 => what,
        many if are_same => format!("{} × {what}", Count::new(many as u64)),
        many => format!("{what} and {} more", Count::new(many as u64 - 1)),
    };
    let place = place(&Input { last_line: last.last_line, ..first.clone() });
    format!("{what}{unit} ({place})")
}

/// Draws every block with its lines, unit and signals.
pub(super) fn explain(source: &Source, screen: &Screen) -> String {
    let mut page = TextPage::new(screen);
    let name = source.name.as_deref().unwrap_or("this host");
    if source.inputs.is_empty() {
        page.hanging(&[], 0, Style::Plain, &format!("{name}: no text with blocks."));
    }
    for input in &source.inputs {
        page.gap();
        page.line(&[
            piece(Style::Strong, place(input)),
            piece(Style::Plain, format!("  {}", input.what)),
        ]);
        if let Some(unit) = &input.unit {
            page.hanging(&[piece(Style::Faint, "   unit")], 12, Style::Plain, unit);
        }
        let signals = match input.signals.as_slice() {
            [] => "none".to_owned(),
            names => names.join(", "),
        };
        page.hanging(&[piece(Style::Faint, "   signals")], 12, Style::Plain, &signals);
        if input.not_understood > 0 {
            let lost = Count::new(input.not_understood as u64).named("line", "lines");
            page.hanging(
                &[piece(Style::Faint, "   lost")],
                12,
                Style::Plain,
                &format!("{lost} not understood"),
            );
        }
    }
    page.gap();
    let skipped = format!("{}.", passed_over(source));
    page.hanging(&[], 0, Style::Faint, &skipped);
    page.finish()
}

fn passed_over(source: &Source) -> String {
    let lines = Count::new(source.lines_skipped as u64).named("other line", "other lines");
    format!("{lines} passed over")
}

fn place(input: &Input) -> String {
    let lines = if input.first_line == input.last_line {
        format!("line {}", input.first_line)
    } else {
        format!("lines {}–{}", input.first_line, input.last_line)
    };
    match &input.file {
        Some(file) => format!("{file}, {lines}"),
        None => lines,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_of_one_form_are_counted_as_what_they_are_only_where_they_are_the_same() {
        let input = |what: &str, first_line| Input {
            form: "kernel file".to_owned(),
            what: what.to_owned(),
            file: None,
            first_line,
            last_line: first_line,
            unit: None,
            signals: Vec::new(),
            not_understood: 0,
        };
        let same = [input("free, MiB", 2), input("free, as printed", 4)];
        assert_eq!(in_short(&same), "2 × free (lines 2–4)");
        let files = [input("memory.max", 2), input("memory.current", 3), input("memory.max", 4)];
        assert_eq!(in_short(&files), "memory.max and 2 more (lines 2–4)");
    }
}
