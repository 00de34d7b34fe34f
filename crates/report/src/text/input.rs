//! What was recognised in a text: in one paragraph above the verdict, or block by block.

use units::Count;

use super::Screen;
use super::page::{Page, Style, piece};
use crate::model::{Input, Source};

/// So many blocks are named above a verdict; the rest is counted.
const MOST_NAMED: usize = 5;
const INDENT: usize = 6;

/// `Read: free, MiB (lines 2–4) · /proc/meminfo, KiB (lines 7–50) · 12 other lines passed over`.
pub(super) fn brief(page: &mut Page, source: &Source) {
    if source.inputs.is_empty() {
        return;
    }
    let named = source.inputs.iter().take(MOST_NAMED);
    let mut items: Vec<String> = named
        .map(|input| {
            let unit = input
                .unit
                .as_ref()
                .map_or_else(String::new, |unit| format!(", {unit}"));
            // What follows a comma is detail for --explain-input.
            let what = input.what.split(',').next().unwrap_or(&input.form);
            format!("{what}{unit} ({})", place(input))
        })
        .collect();
    if let Some(more) = source
        .inputs
        .len()
        .checked_sub(MOST_NAMED)
        .filter(|n| *n > 0)
    {
        items.push(format!("{more} more blocks (--explain-input)"));
    }
    if source.lines_skipped > 0 {
        let skipped = Count::new(source.lines_skipped as u64);
        items.push(format!("{skipped} other lines passed over"));
    }
    page.hanging(
        &[piece(Style::Faint, "Read:")],
        INDENT,
        Style::Faint,
        &items.join(" · "),
    );
}

/// Every block with its lines, unit and signals.
pub(super) fn explain(source: &Source, screen: &Screen) -> String {
    let mut page = Page::new(screen);
    let name = source.name.as_deref().unwrap_or("this host");
    if source.inputs.is_empty() {
        page.hanging(
            &[],
            0,
            Style::Plain,
            &format!("{name}: no text with blocks to tell apart."),
        );
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
        page.hanging(
            &[piece(Style::Faint, "   signals")],
            12,
            Style::Plain,
            &signals,
        );
        if input.not_understood > 0 {
            let lost = Count::new(input.not_understood as u64);
            page.hanging(
                &[piece(Style::Faint, "   lost")],
                12,
                Style::Plain,
                &format!("{lost} lines not understood"),
            );
        }
    }
    page.gap();
    let skipped = Count::new(source.lines_skipped as u64);
    page.hanging(
        &[],
        0,
        Style::Faint,
        &format!("{skipped} other lines passed over."),
    );
    page.finish()
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
