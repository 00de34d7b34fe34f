//! An opened process: its figures, and the commands that say more.

use super::tables::named;
use crate::model::top::TopReport;
use crate::text::Screen;
use crate::text::ansi::Style;
use crate::text::page::{TextPage, piece};

/// Column of the figures.
const INDENT: usize = 18;

/// Returns the page of a process by its key; `None` where it is not in the frame.
pub fn process_page(report: &TopReport, key: &str, screen: &Screen) -> Option<TextPage> {
    let process = report.processes.iter().find(|process| process.key == key)?;
    let mut page = TextPage::new(screen);
    page.line(&[piece(Style::Strong, named(process))]);
    let mut row = |label: &str, text: Option<String>| {
        if let Some(text) = text.filter(|text| !text.is_empty()) {
            page.hanging(&[piece(Style::Faint, label)], INDENT, Style::Plain, &text);
        }
    };
    row("service", Some(process.service.clone()));
    row("RAM and swap", Some(process.bytes.to_string()));
    row("in swap", process.swap.map(|swap| swap.to_string()));
    row(
        "growth",
        process.growth.map(|growth| {
            format!("{growth:+} in the last minute, or as long as it was watched (RSS)")
        }),
    );
    row("major faults", process.major_faults.map(|rate| rate.to_string()));
    row("minor faults", process.minor_faults.map(|rate| rate.to_string()));
    row("CPUs busy", process.cpus.map(|cpus| cpus.to_string()));
    page.heading("More:");
    for (command, shows) in [
        (
            format!("memtide explain {}", process.pid),
            "who owns each part of its memory, its malloc heap",
        ),
        (format!("memtide explain {} --watch 10m", process.pid), "leak, fragmentation or warm-up"),
    ] {
        page.line(&[piece(Style::Command, format!("   {command}"))]);
        page.hanging(&[], 6, Style::Faint, shows);
    }
    Some(page)
}
