//! The screen of `events`: a line for each event in order of time, wrapped only on a terminal; on request with the
//! lines of the kernel log.

use super::ansi::Style;
use super::page::{TextPage, piece};
use super::{Detail, Screen, wrap};
use crate::clock::ReportClock;
use crate::model::{EventEntry, EventsReport, SourceKind};
use crate::quoted;
use timeline::EventKind;
use units::Count;

pub(super) fn draw(report: &EventsReport, screen: &Screen) -> String {
    let mut page = TextPage::new(screen);
    let clock = ReportClock::new(&report.source, screen);
    if report.events.is_empty() {
        let text = "Nothing happened that memtide counts as an event.";
        page.hanging(&[], 0, Style::Plain, text);
        return page.finish();
    }
    let (earlier, listed) = apart(report, screen);
    if let Some(first) = earlier.first() {
        let from = time(first, &clock);
        let count = Count::new(earlier.len() as u64);
        let text = format!(
            "{count} events from {from} on were before the recording began: --verbose lists them."
        );
        page.hanging(&[], 0, Style::Faint, &text);
    }
    let times: Vec<String> = listed.iter().map(|event| time(event, &clock)).collect();
    let widest = times.iter().map(|time| wrap::width(time)).max();
    let indent = widest.filter(|cells| *cells > 0).map_or(0, |cells| cells + 2);
    for (event, time) in listed.into_iter().zip(&times) {
        let head = [piece(Style::Faint, time.clone())];
        if screen.unbroken {
            let gap = " ".repeat(indent.saturating_sub(wrap::width(time)));
            let text = piece(style(event), clock.sentence(event));
            page.line(&[head[0].clone(), piece(Style::Plain, gap), text]);
        } else {
            page.hanging(&head, indent, style(event), &clock.sentence(event));
        }
        if event.kind == EventKind::KernelProfile.name() {
            let source = quoted(report.source.name.as_deref().unwrap_or("RECORDING"));
            let at = event.at.map_or_else(String::new, |at| {
                let at = at.to_zoned(screen.zone.clone());
                format!(" --at '{}'", at.strftime("%Y-%m-%d %H:%M:%S"))
            });
            let command = format!("memtide profile {source}{at}");
            page.hanging(
                &[piece(Style::Plain, " ".repeat(indent))],
                indent,
                Style::Command,
                &command,
            );
        }
        if screen.detail == Detail::All {
            let lines = event.report.iter().flat_map(|report| report.lines());
            lines.for_each(|line| page.line(&[piece(Style::Faint, format!("   {line}"))]));
        }
    }
    page.finish()
}

/// More events from before a recording are only counted.
const EARLIER_MAX: usize = 3;

/// Separates events from before a recording, if they are many and not asked for, from those that are listed.
fn apart<'a>(
    report: &'a EventsReport,
    screen: &Screen,
) -> (Vec<&'a EventEntry>, Vec<&'a EventEntry>) {
    let is_earlier = |event: &&EventEntry| event.offset_s.is_some_and(|at| at < 0.0);
    let (earlier, during): (Vec<_>, Vec<_>) = report.events.iter().partition(is_earlier);
    let is_recording = report.source.kind == SourceKind::Recording;
    if is_recording && screen.detail != Detail::All && earlier.len() > EARLIER_MAX {
        (earlier, during)
    } else {
        (Vec::new(), report.events.iter().collect())
    }
}

fn time(event: &EventEntry, clock: &ReportClock<'_>) -> String {
    clock.listed(event.offset_s, event.at).unwrap_or_default()
}

fn style(event: &EventEntry) -> Style {
    match event.kind {
        "oom-kill" => Style::Critical,
        "allocation-failure" | "samples-lost" | "cgroup-limit" => Style::Warning,
        _ => Style::Plain,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use timeline::{Dated, DatedEvent, Event, EventKind, Facts, Sample, Source, Stamp, Timeline};
    use units::{Span, WallClock};

    fn stamp(second: u64, wall: Option<i64>) -> Stamp {
        Stamp {
            boot: Span::from_secs(second),
            awake: None,
            wall: wall.map(|s| WallClock::from_unix_nanos(s * 1_000_000_000)),
            ..Stamp::default()
        }
    }

    fn drawn(wall: Option<i64>, detail: Detail) -> String {
        drawn_on(wall, detail, false)
    }

    fn drawn_on(wall: Option<i64>, detail: Detail, unbroken: bool) -> String {
        let mut timeline = Timeline::default();
        for second in 0..2 {
            let mut sample = Sample::default();
            sample.stamp = stamp(second, wall.map(|s| s + i64::try_from(second).unwrap()));
            timeline.push(&sample).unwrap();
        }
        let event = |text: &str| DatedEvent {
            event: Event {
                stamp: stamp(1, wall.map(|s| s + 1)),
                kind: EventKind::OomKill,
                subject: String::new(),
                text: text.to_owned(),
                report: "Out of memory: \u{1b}[2Jevil\nsecond line\n".to_owned(),
            },
            group: None,
            dated: Dated::Exactly,
            until: None,
        };
        let long = "word ".repeat(40);
        let events = [event("OOM kill of \u{1b}[31mhog (4)"), event(&long)];
        let source = Source::new(timeline::SourceKind::Capture, "x", timeline, Facts::default());
        let report = EventsReport::new(&source, &events);
        let screen = Screen { detail, unbroken, ..Screen::default() };
        draw(&report, &screen)
    }

    #[test]
    fn each_event_is_shown_whole_and_steers_nothing() {
        let text = drawn(Some(1_795_318_200), Detail::Brief);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "Nov 22 03:30:01  OOM kill of \\x1b[31mhog (4)");
        assert!(lines.len() > 3, "{text}");
        assert!(lines.iter().all(|line| wrap::width(line) <= 80), "{text}");
        assert_eq!(text.matches("word").count(), 40);
        let piped = drawn_on(Some(1_795_318_200), Detail::Brief, true);
        assert_eq!(piped.lines().count(), 2, "{piped}");
        assert_eq!(piped.matches("word").count(), 40);
        let timeless = drawn(None, Detail::Brief);
        assert!(timeless.starts_with("0:01  OOM kill"), "{timeless}");
    }

    #[test]
    fn many_events_from_before_a_recording_are_counted_and_listed_on_request() {
        let drawn = |earlier: u64, detail| {
            let mut timeline = Timeline::default();
            for second in 100..102 {
                let wall = Some(1_795_318_200 + i64::try_from(second).unwrap());
                let mut sample = Sample::default();
                sample.stamp = stamp(second, wall);
                timeline.push(&sample).unwrap();
            }
            let kill = |second: u64| DatedEvent {
                event: Event {
                    stamp: stamp(second, Some(1_795_318_200 + i64::try_from(second).unwrap())),
                    kind: EventKind::OomKill,
                    subject: String::new(),
                    text: "OOM kill".to_owned(),
                    report: String::new(),
                },
                group: None,
                dated: Dated::Exactly,
                until: None,
            };
            let events: Vec<_> = (0..earlier).chain([101]).map(kill).collect();
            let source =
                Source::new(timeline::SourceKind::Recording, "x", timeline, Facts::default());
            let screen = Screen { detail, ..Screen::default() };
            draw(&EventsReport::new(&source, &events), &screen)
        };
        let counted = drawn(34, Detail::Brief);
        assert!(
            counted.starts_with("34 events from Nov 22 03:30:00 on were before the recording"),
            "{counted}"
        );
        assert_eq!(counted.matches("OOM kill").count(), 1, "{counted}");
        assert_eq!(drawn(34, Detail::All).matches("OOM kill").count(), 35);
        assert_eq!(drawn(2, Detail::Brief).matches("OOM kill").count(), 3);
    }

    #[test]
    fn the_kernels_lines_are_shown_where_asked_for() {
        let text = drawn(Some(1_795_318_200), Detail::All);
        assert!(text.contains("   Out of memory: \\x1b[2Jevil\n   second line\n"), "{text}");
        assert!(!text.contains('\u{1b}'));
    }
}
