//! The screen of `top`: one frame, of exactly as many lines as the terminal has.
//!
//! From above: the host and the moment, the verdict, RAM, swap and waits, the names of the panels, one panel or an opened
//! page, how memory ran with what was wrong, and the keys. A frame shows a [`TopReport`]; what is chosen in it is a
//! [`TopView`].

mod findings;
mod head;
mod process;
mod strip;
mod table;
mod tables;

use super::ansi::Style;
use super::page::{StyledLine, TextPage, piece};
use super::wrap::width;
use super::{Screen, where_tree};
use crate::clock::ReportClock;
use crate::model::top::{Course, TopReport};

pub use process::process_page;
pub use table::TopRow;

/// The least size of a terminal for a frame, columns and lines.
pub const TOP_SIZE_MIN: (usize, usize) = (40, 12);

/// A panel: one thing that is listed.
#[allow(missing_docs)] // names say it
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum TopPanel {
    /// What is wrong.
    #[default]
    Findings,
    /// Services, containers, cgroups.
    Units,
    Processes,
    /// The tree of `where`.
    Where,
}

/// Which moment is shown, and whether it moves on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum TopMoment {
    /// The last sample of this host; the next one follows.
    #[default]
    Live,
    /// The last sample of this host when it was frozen.
    Frozen,
    /// An earlier moment of this host.
    Earlier,
    /// A moment of a file or recording.
    Replay,
}

/// What is chosen on the screen.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TopView {
    /// The panel that is shown.
    pub panel: TopPanel,
    /// The index of the column that rows are sorted by.
    pub sort: usize,
    /// Only rows with this in their name are shown.
    pub filter: String,
    /// Whether the filter is being typed.
    pub is_filtering: bool,
    /// The index of the selected row.
    pub selected: usize,
    /// Whether units below another unit are left out.
    pub is_folded: bool,
    /// How many lines of a page are above the panel.
    pub scroll: usize,
    /// Which moment is shown.
    pub moment: TopMoment,
    /// What happened last, for the lowest line; empty if nothing.
    pub message: String,
}

/// A drawn frame.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TopFrame {
    /// Its lines, as many as the terminal has or fewer.
    pub lines: Vec<StyledLine>,
    /// The line of the selected row.
    pub selected: Option<usize>,
    /// How many rows or lines the panel shows at once.
    pub room: usize,
    /// How many lines the panel's page has; 0 where it has rows.
    pub page: usize,
    /// The indices of the columns that are shown, by which rows can be sorted.
    pub columns: Vec<usize>,
}

impl TopPanel {
    /// All of them, in the order of their keys.
    pub const ALL: [Self; 4] = [Self::Findings, Self::Units, Self::Processes, Self::Where];

    /// Its name on the screen.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Findings => "findings",
            Self::Units => "units",
            Self::Processes => "processes",
            Self::Where => "where",
        }
    }

    /// Whether it has rows that can be sorted and filtered.
    pub const fn is_table(self) -> bool {
        matches!(self, Self::Units | Self::Processes)
    }
}

/// Returns what the rows of a panel are, in the order in which they are shown.
pub fn rows(report: &TopReport, view: &TopView) -> Vec<TopRow> {
    match view.panel {
        TopPanel::Findings => findings::rows(report),
        TopPanel::Units => tables::units(report, view)
            .into_iter()
            .map(|row| TopRow::Unit(row.path.clone()))
            .collect(),
        TopPanel::Processes => tables::processes(report, view)
            .into_iter()
            .map(|row| TopRow::Process(row.key.clone()))
            .collect(),
        TopPanel::Where => Vec::new(),
    }
}

/// Draws a frame of `size` columns and lines. `courses` are how memory ran before and up to the moment, in order of time;
/// `opened` is a page in the panel's place.
pub fn frame(
    report: &TopReport,
    courses: &[&Course],
    view: &TopView,
    opened: Option<&[StyledLine]>,
    (screen, lines): (&Screen, usize),
) -> TopFrame {
    if screen.width() < TOP_SIZE_MIN.0 || lines < TOP_SIZE_MIN.1 {
        return too_small(screen, lines);
    }
    let clock = ReportClock::new(&report.check.source, screen);
    let mut page = TextPage::new(screen);
    head::draw(&mut page, report, view, &clock, (screen, lines));
    panels(&mut page, view, opened.is_some(), screen);
    let mut all = page.into_lines();
    let mut foot = TextPage::new(screen);
    strip::draw(&mut foot, report, courses, &clock, screen);
    keys(&mut foot, view, opened.is_some(), screen);
    let foot = foot.into_lines();
    let room = lines.saturating_sub(all.len() + foot.len());
    let begin = all.len();
    let mut body = match opened {
        Some(lines) => part_of(&wrapped(lines, screen.width()), view.scroll, room),
        None => panel(report, view, &clock, (screen, room)),
    };
    body.lines.truncate(room);
    body.lines.resize(room, Vec::new());
    all.extend(body.lines);
    all.extend(foot);
    TopFrame { lines: all, selected: body.selected.map(|at| begin + at), room, ..body }
}

fn panel(
    report: &TopReport,
    view: &TopView,
    clock: &ReportClock<'_>,
    (screen, room): (&Screen, usize),
) -> TopFrame {
    match view.panel {
        TopPanel::Findings => findings::draw(report, view, clock, (screen, room)),
        TopPanel::Units => tables::draw_units(report, view, (screen, room)),
        TopPanel::Processes => tables::draw_processes(report, view, (screen, room)),
        TopPanel::Where => {
            let mut page = TextPage::new(screen);
            match &report.place {
                Some(place) => where_tree::tree_of(&mut page, place, clock, &screen.reading()),
                None => page.line(&[piece(Style::Plain, "The source has no /proc/meminfo.")]),
            }
            part_of(&page.into_lines(), view.scroll, room)
        }
    }
}

/// The same lines, those that are too long for the screen on several: a command that is cut does something else.
fn wrapped(lines: &[StyledLine], columns: usize) -> Vec<StyledLine> {
    let mut all = Vec::with_capacity(lines.len());
    for line in lines {
        let (mut row, mut used) = (StyledLine::new(), 0);
        for (style, text) in line {
            let mut part = String::new();
            for letter in text.chars() {
                let cells = width(letter.encode_utf8(&mut [0; 4]));
                if used + cells > columns {
                    row.push(piece(*style, std::mem::take(&mut part)));
                    all.push(std::mem::take(&mut row));
                    used = 0;
                }
                part.push(letter);
                used += cells;
            }
            row.push(piece(*style, part));
        }
        all.push(row);
    }
    all
}

/// Returns the lines of a page from `scroll` on; the last ones where it is too far.
fn part_of(lines: &[StyledLine], scroll: usize, room: usize) -> TopFrame {
    let first = scroll.min(lines.len().saturating_sub(room));
    let shown = lines.iter().skip(first).take(room).cloned().collect();
    TopFrame { lines: shown, page: lines.len(), room, ..TopFrame::default() }
}

fn too_small(screen: &Screen, lines: usize) -> TopFrame {
    let mut page = TextPage::new(screen);
    let (columns, least) = TOP_SIZE_MIN;
    let text = format!(
        "memtide top needs {columns} columns and {least} lines: this terminal has {} and {lines}.",
        screen.width()
    );
    page.hanging(&[], 0, Style::Plain, &text);
    let mut all = page.into_lines();
    all.truncate(lines);
    TopFrame { lines: all, ..TopFrame::default() }
}

/// The names of the panels with their keys, at the end of a line.
fn panels(page: &mut TextPage, view: &TopView, is_opened: bool, screen: &Screen) {
    let mut names = Vec::new();
    let mut cells = 0;
    for (index, panel) in TopPanel::ALL.into_iter().enumerate() {
        let name = format!(" {} {}", index + 1, panel.name());
        cells += width(&name);
        let style = match panel == view.panel {
            true if is_opened => Style::Plain,
            true => Style::Strong,
            false => Style::Faint,
        };
        names.push(piece(style, name));
    }
    let rule = "─".repeat(screen.width().saturating_sub(cells));
    let mut line = vec![piece(Style::Faint, rule)];
    line.extend(names);
    page.line(&line);
}

/// The lowest line: what happened last, or the moment and the keys that matter now.
fn keys(page: &mut TextPage, view: &TopView, is_opened: bool, screen: &Screen) {
    if view.is_filtering {
        let text = format!("filter: {}▏  ⏎ keep  Esc clear", view.filter);
        page.line(&[piece(Style::Strong, super::wrap::cut(&text, screen.width()))]);
        return;
    }
    let (moment, style) = match view.moment {
        TopMoment::Live => ("live", Style::Fine),
        TopMoment::Frozen => ("frozen", Style::Warning),
        TopMoment::Earlier => ("earlier", Style::Warning),
        TopMoment::Replay => ("replay", Style::Unknown),
    };
    let what = match (is_opened, view.panel) {
        (true, _) => "Esc back  ↑↓ scroll",
        (false, TopPanel::Findings) => "⏎ open",
        (false, TopPanel::Units) => "⏎ open  s sort  / filter  f fold",
        (false, TopPanel::Processes) => "⏎ open  s sort  / filter",
        (false, TopPanel::Where) => "↑↓ scroll",
    };
    let room = screen.width().saturating_sub(width(moment));
    let text = if view.message.is_empty() {
        let live = match view.moment {
            TopMoment::Live => "  space freeze",
            TopMoment::Frozen | TopMoment::Earlier => "  space go on",
            TopMoment::Replay => "",
        };
        let filter = if view.filter.is_empty() {
            String::new()
        } else {
            format!("  only “{}”", view.filter)
        };
        // On a narrow screen the keys that the help lists as well give way.
        let ways = ["  ←→[] time  n N incident", "  ←→ time", ""];
        let ends = "  ? help  q end";
        let line = |ways: &str| format!("  {what}{filter}{live}{ways}{ends}");
        let fits = ways.iter().map(|ways| line(ways)).find(|line| width(line) <= room);
        fits.unwrap_or_else(|| line(""))
    } else {
        format!("  {}", view.message)
    };
    page.line(&[piece(style, moment), piece(Style::Faint, super::wrap::cut(&text, room))]);
}
