//! The lower part of a frame: how available memory ran up to the moment and after it, with what was wrong and the moment.

use jiff::Timestamp;

use crate::clock::ReportClock;
use crate::model::Severity;
use crate::model::top::{Course, TopReport};
use crate::text::Screen;
use crate::text::ansi::Style;
use crate::text::page::{StyledLine, TextPage, piece};
use crate::text::spark;
use crate::text::wrap::{cut, width};
use units::Span;

/// Column of the curve.
const INDENT: usize = 10;

/// Seconds from the begin of the first course.
struct Axis {
    begin: Option<Timestamp>,
    whole_s: f64,
    cells: usize,
}

impl Axis {
    fn offset(&self, at: Option<Timestamp>, at_s: f64) -> f64 {
        match (self.begin, at) {
            (Some(begin), Some(at)) => at.duration_since(begin).as_secs_f64(),
            _ => at_s,
        }
    }

    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // clamped
    fn cell(&self, offset_s: f64) -> Option<usize> {
        let share = offset_s / self.whole_s.max(1e-9);
        (0.0..=1.0)
            .contains(&share)
            .then(|| ((share * self.cells as f64) as usize).min(self.cells.saturating_sub(1)))
    }
}

pub(super) fn draw(
    page: &mut TextPage,
    report: &TopReport,
    courses: &[&Course],
    clock: &ReportClock<'_>,
    screen: &Screen,
) {
    let (Some(first), Some(last)) = (courses.first(), courses.last()) else { return };
    let begin = first.from;
    let end = match (begin, last.to) {
        (Some(begin), Some(to)) => to.duration_since(begin).as_secs_f64(),
        _ => last.to_s,
    };
    let tail = format!("  {}", Span::from_secs_f64(end.max(0.0)));
    let cells = screen.width().saturating_sub(INDENT + width(&tail));
    let axis = Axis { begin, whole_s: end, cells };
    let moment = axis.cell(axis.offset(report.at, report.offset_s()));
    page.line(&curve(courses, &axis, moment, &tail));
    page.line(&incident_line(report, courses, &axis, clock));
}

/// Available memory as a share of RAM, cell by cell; the moment stands out.
fn curve(courses: &[&Course], axis: &Axis, moment: Option<usize>, tail: &str) -> StyledLine {
    let mut line = vec![piece(Style::Plain, format!("{:<INDENT$}", "available"))];
    let (mut run, mut rest) = (String::new(), String::new());
    for cell in 0..axis.cells {
        let at_s = (cell as f64 + 0.5) / axis.cells as f64 * axis.whole_s;
        let share = share_at(courses, axis, at_s);
        let block = share.map_or(' ', |share| spark::block((share * 8.0).max(1.0)));
        match moment {
            Some(moment) if cell > moment => rest.push(block),
            Some(moment) if cell == moment => {
                line.push(piece(Style::Data(32), std::mem::take(&mut run)));
                line.push(piece(Style::Strong, if block == ' ' { '┃' } else { block }));
            }
            _ => run.push(block),
        }
    }
    line.push(piece(Style::Data(32), run));
    line.push(piece(Style::Faint, rest));
    line.push(piece(Style::Faint, tail));
    line
}

fn share_at(courses: &[&Course], axis: &Axis, at_s: f64) -> Option<f64> {
    courses.iter().rev().find_map(|course| {
        let from = axis.offset(course.from, 0.0);
        let values = &course.available_bytes;
        let within = (at_s - from) / course.to_s.max(1e-9);
        if !(0.0..=1.0).contains(&within) || values.is_empty() {
            return None;
        }
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // clamped
        let index = ((within * values.len() as f64) as usize).min(values.len() - 1);
        let total = course.total?.get() as f64;
        values[index].map(|bytes| (bytes / total).clamp(0.0, 1.0))
    })
}

/// A mark below the begin of each incident, and the one at the moment, or else the last before it, in words.
fn incident_line(
    report: &TopReport,
    courses: &[&Course],
    axis: &Axis,
    clock: &ReportClock<'_>,
) -> StyledLine {
    let now_s = axis.offset(report.at, report.offset_s());
    let mut cells: Vec<Option<Severity>> = vec![None; axis.cells];
    let mut last: Option<(f64, String)> = None;
    let all = courses.iter().flat_map(|course| course.incidents.iter().map(move |it| (course, it)));
    for (course, incident) in all {
        if !incident.is_listed() {
            continue;
        }
        let begin_s = axis.offset(incident.from, incident.from_s + axis.offset(course.from, 0.0));
        let Some(cell) = axis.cell(begin_s) else { continue };
        cells[cell] = cells[cell].max(Some(incident.severity));
        if begin_s <= now_s && last.as_ref().is_none_or(|(known, _)| *known <= begin_s) {
            let at = clock.moment(incident.from_s, incident.from).unwrap_or_default();
            last = Some((begin_s, format!("▲ {at} {}", incident.id)));
        }
    }
    let text = last.map(|(_, text)| cut(&text, axis.cells)).unwrap_or_default();
    let taken = cells.iter().rposition(Option::is_some).map_or(0, |at| at + 1);
    let mut line = vec![piece(Style::Plain, " ".repeat(INDENT))];
    for cell in &cells[..taken] {
        line.push(match cell {
            Some(severity) => piece((*severity).into(), "▲"),
            None => piece(Style::Plain, " "),
        });
    }
    // The words stand behind the last mark, or before the first one.
    let behind = axis.cells.saturating_sub(taken);
    let ahead = cells.iter().position(Option::is_some).unwrap_or(0);
    if behind > width(&text) {
        line.push(piece(Style::Faint, format!(" {text}")));
    } else if ahead > width(&text) + 1 {
        let blanks = INDENT + ahead - width(&text) - 1;
        line.splice(..=ahead, [piece(Style::Faint, format!("{}{text} ", " ".repeat(blanks)))]);
    }
    line
}
