//! The screen of `events`: a line for each event in order of time, wrapped only on a terminal; on request with the
//! lines of the kernel log.

use super::ansi::Style;
use super::page::{TextPage, piece};
use super::{Detail, Screen, wrap};
use crate::clock::ReportClock;
use crate::model::{EventEntry, EventsReport};

pub(super) fn draw(report: &EventsReport, screen: &Screen) -> String {
    let mut page = TextPage::new(screen);
    let clock = ReportClock::new(&report.source, screen);
    if report.events.is_empty() {
        let text = "Nothing happened that memtide counts as an event.";
        page.hanging(&[], 0, Style::Plain, text);
        return page.finish();
    }
    let times: Vec<String> = report.events.iter().map(|event| time(event, &clock)).collect();
    let widest = times.iter().map(|time| wrap::width(time)).max();
    let indent = widest.filter(|cells| *cells > 0).map_or(0, |cells| cells + 2);
    for (event, time) in report.events.iter().zip(&times) {
        let head = [piece(Style::Faint, time.clone())];
        if screen.unbroken {
            let gap = " ".repeat(indent.saturating_sub(wrap::width(time)));
            let text = piece(style(event), clock.sentence(event));
            page.line(&[head[0].clone(), piece(Style::Plain, gap), text]);
        } else {
            page.hanging(&head, indent, style(event), &clock.sentence(event));
        }
        if screen.detail == Detail::All {
            let lines = event.report.iter().flat_map(|report| report.lines());
            lines.for_each(|line| page.line(&[piece(Style::Faint, format!("   {line}"))]));
        }
    }
    page.finish()
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
    use timeline::{
        Dated, DatedEvent, Event, EventKind, Facts, Sample, Source, SourceKind, Stamp, Timeline,
    };
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
        let source = Source::new(SourceKind::Capture, "x", timeline, Facts::default());
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
    fn the_kernels_lines_are_shown_where_asked_for() {
        let text = drawn(Some(1_795_318_200), Detail::All);
        assert!(text.contains("   Out of memory: \\x1b[2Jevil\n   second line\n"), "{text}");
        assert!(!text.contains('\u{1b}'));
    }
}
