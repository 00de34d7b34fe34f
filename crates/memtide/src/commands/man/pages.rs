//! Man pages of commands.
//!
//! What stands after the options in a help becomes sections of man-pages(7): a line that is a heading of [`HEADINGS`] begins
//! one, which lasts as long as its lines are indented. The rest is NOTES.

use std::fs::File;
use std::io;
use std::path::Path;

use clap::Command;
use clap_mangen::Man;
use clap_mangen::roff::{Inline, Roff, bold, roman};

const EXIT_STATUS: &str = "EXIT STATUS";
const EXAMPLES: &str = "EXAMPLES";

/// Headings of the help, and the sections that they become.
const HEADINGS: [(&str, &str); 3] =
    [("Examples:", EXAMPLES), ("Example:", EXAMPLES), ("Exit codes:", EXIT_STATUS)];

/// The codes of a command if its help names none.
const USUAL_CODES: &str = "  0 done   3 an error, or bad usage";

/// What the commands read and write where nothing else is named.
const FILES: [(&str, &str); 4] = [
    ("/var/lib/memtide", "The recording of this host, where root records."),
    (
        "$XDG_STATE_HOME/memtide, ~/.local/state/memtide",
        "The recording of this host, where another user records.",
    ),
    ("/etc/systemd/system/memtide.service", "The recorder's unit, by memtide record --install."),
    ("~/.cache/memtide/kernels", "Kernels that memtide lab has fetched."),
];

/// Writes the pages of a command, which is one of `kin` if it is no program, and of its own.
pub(super) fn write_pages(command: &Command, kin: &[String], directory: &Path) -> io::Result<()> {
    let commands = || command.get_subcommands().filter(|its| !its.is_hide_set());
    let mut family = vec![page_name(command)];
    family.extend(commands().map(page_name));
    for its in commands() {
        write_pages(its, &family, directory)?;
    }
    let related = kin.iter().chain(&family[1..]).filter(|name| **name != family[0]);
    let related: Vec<&str> = related.map(String::as_str).collect();
    write_page(command, &related, directory)
}

/// `memtide-check`.
fn page_name(command: &Command) -> String {
    command.get_display_name().unwrap_or_else(|| command.get_name()).to_owned()
}

fn write_page(command: &Command, related: &[&str], directory: &Path) -> io::Result<()> {
    let page = Man::new(command.clone())
        .title(page_name(command))
        .source(concat!("memtide ", env!("CARGO_PKG_VERSION")))
        .manual("memtide");
    let after = command.get_after_long_help().or_else(|| command.get_after_help());
    let help = after.map(ToString::to_string).unwrap_or_default();
    let sections = HelpSections::of(&help);
    let mut file = File::create(directory.join(page.get_filename()))?;
    page.render_title(&mut file)?;
    page.render_name_section(&mut file)?;
    page.render_synopsis_section(&mut file)?;
    page.render_description_section(&mut file)?;
    page.render_options_section(&mut file)?;
    if command.has_subcommands() {
        page.render_subcommands_section(&mut file)?;
    }
    let mut roff = Roff::new();
    as_typed(&mut roff, EXIT_STATUS, &sections.exit_status);
    as_typed(&mut roff, EXAMPLES, &sections.examples);
    notes(&mut roff, &sections.notes);
    files(&mut roff);
    see_also(&mut roff, related);
    roff.to_writer(&mut file)
}

/// The text after the options, by sections.
#[derive(Debug, PartialEq)]
struct HelpSections<'a> {
    exit_status: Vec<&'a str>,
    examples: Vec<&'a str>,
    notes: Vec<&'a str>,
}

impl<'a> HelpSections<'a> {
    fn of(help: &'a str) -> Self {
        let mut sections =
            Self { exit_status: Vec::new(), examples: Vec::new(), notes: Vec::new() };
        let mut within = None;
        for line in help.lines() {
            if let Some((_, section)) = HEADINGS.iter().find(|(heading, _)| *heading == line) {
                within = Some(*section);
                continue;
            }
            within = within.filter(|_| line.starts_with(' '));
            match within {
                Some(EXIT_STATUS) => sections.exit_status.push(line),
                Some(_) => sections.examples.push(line),
                None => sections.notes.push(line),
            }
        }
        if sections.exit_status.is_empty() {
            sections.exit_status.push(USUAL_CODES);
        }
        sections
    }
}

/// Lines that keep their breaks and blanks.
fn as_typed(roff: &mut Roff, heading: &str, lines: &[&str]) {
    if lines.is_empty() {
        return;
    }
    roff.control("SH", [heading]).control("nf", []);
    for line in lines {
        roff.text([roman(line.strip_prefix("  ").unwrap_or(line))]);
    }
    roff.control("fi", []);
}

/// Paragraphs.
fn notes(roff: &mut Roff, lines: &[&str]) {
    let is_blank = |line: &&str| line.trim().is_empty();
    let mut paragraphs = lines.split(is_blank).filter(|lines| !lines.is_empty()).peekable();
    if paragraphs.peek().is_none() {
        return;
    }
    roff.control("SH", ["NOTES"]);
    for paragraph in paragraphs {
        roff.control("PP", []).text([roman(paragraph.join("\n"))]);
    }
}

fn files(roff: &mut Roff) {
    roff.control("SH", ["FILES"]);
    for (path, what) in FILES {
        roff.control("TP", []).text([bold(path)]).text([roman(what)]);
    }
}

fn see_also(roff: &mut Roff, related: &[&str]) {
    if related.is_empty() {
        return;
    }
    let mut text: Vec<Inline> = Vec::new();
    for (place, name) in related.iter().enumerate() {
        let comma = if place == 0 { "" } else { ", " };
        text.extend([roman(comma), bold(*name), roman("(1)")]);
    }
    roff.control("SH", ["SEE ALSO"]).text(text);
}
