//! `events.parquet`: what happened at a moment, and what the kernel said of it.

use timeline::{Event, EventKind, Stamp, Timeline};
use units::WallClock;

use super::host::{nanos, span};
use super::table::{Cells, Column, Opened, Shape};

/// An event, and the sample that shows the host as the event's report does, where there is one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Kept {
    /// The event.
    pub(crate) event: Event,
    /// Number of the sample in its segment.
    pub(crate) sample: Option<usize>,
}

/// A timeline's noted events, and its kernel reports that are not among them.
pub(super) fn of(timeline: &Timeline) -> Vec<Kept> {
    let noted = timeline.noted().iter().map(|event| Kept {
        event: event.clone(),
        sample: None,
    });
    let mut all: Vec<Kept> = noted.collect();
    let is_noted = |text: &str| timeline.noted().iter().any(|event| event.report == text);
    for reported in timeline.reports() {
        let (Some(sample), Some(text)) = (timeline.sample_of(reported), &reported.text) else {
            continue;
        };
        if is_noted(text) {
            continue;
        }
        let kind = match reported.report.kind {
            timeline::kernel_report::ReportKind::OomKill => EventKind::OomKill,
            timeline::kernel_report::ReportKind::AllocationFailure => EventKind::AllocationFailure,
        };
        let killed = reported.report.killed.first();
        all.push(Kept {
            event: Event {
                stamp: timeline.stamp(sample).unwrap_or_default(),
                kind,
                subject: killed.map(|killed| killed.name.clone()).unwrap_or_default(),
                text: String::new(),
                report: text.to_string(),
            },
            sample: Some(sample),
        });
    }
    all
}

/// The columns of a list of events.
pub(super) fn columns(events: &[Kept]) -> Vec<Column<'_>> {
    let number = |name, shape, of: fn(&Kept) -> Option<i64>| {
        Column::numbers(name, shape, move |_, cells| {
            events.iter().for_each(|event| cells.push(of(event)));
        })
    };
    let word = |name, of: fn(&Event) -> &str| {
        let words = events.iter().map(|kept| of(&kept.event)).collect();
        Column::words(name, words, move |_, out| (0..events.len()).for_each(out))
    };
    vec![
        number("time", Shape::Time, |kept| {
            kept.event.stamp.wall.map(WallClock::unix_nanos)
        }),
        number("boot_ns", Shape::Reading, |kept| {
            Some(nanos(kept.event.stamp.boot))
        }),
        number("awake_ns", Shape::Reading, |kept| {
            kept.event.stamp.awake.map(nanos)
        }),
        number("sample", Shape::Reading, |kept| {
            kept.sample.and_then(|sample| i64::try_from(sample).ok())
        }),
        word("kind", |event| event.kind.name()),
        word("subject", |event| &event.subject),
        word("text", |event| &event.text),
        word("report", |event| &event.report),
    ]
}

/// The events of a file, and how many of kinds that are not known here were left out.
pub(super) fn read(file: &Opened) -> Result<(Vec<Kept>, usize), String> {
    let names = file.columns();
    let column = |name: &str| {
        let found = names.iter().position(|found| found == name);
        found.ok_or_else(|| format!("it has no column `{name}`"))
    };
    let part = file.part(0).map_err(|e| e.to_string())?;
    let number = |name: &str| {
        let mut cells = Cells::default();
        let read = part.numbers(column(name)?, &mut cells);
        read.map_err(|e| e.to_string())?;
        let mut values = cells.values.into_iter();
        let present = cells.present.into_iter();
        let numbers = present.map(|present| (present > 0).then(|| values.next()).flatten());
        Ok::<_, String>(numbers.collect::<Vec<_>>())
    };
    let rows: Vec<usize> = (0..part.rows).collect();
    let words = |name: &str| {
        let words = part.words_at(column(name)?, &rows);
        words.map_err(|e| e.to_string())
    };
    let (times, boots, awakes) = (number("time")?, number("boot_ns")?, number("awake_ns")?);
    let samples = number("sample")?;
    let (kinds, subjects) = (words("kind")?, words("subject")?);
    let (texts, reports) = (words("text")?, words("report")?);
    let all = rows.iter().map(|row| {
        Some(Kept {
            event: Event {
                stamp: Stamp {
                    boot: span(boots[*row].unwrap_or_default()),
                    awake: awakes[*row].map(span),
                    wall: times[*row].map(WallClock::from_unix_nanos),
                },
                kind: EventKind::by_name(&kinds[*row])?,
                subject: subjects[*row].clone(),
                text: texts[*row].clone(),
                report: reports[*row].clone(),
            },
            sample: samples[*row].and_then(|sample| usize::try_from(sample).ok()),
        })
    });
    let known: Vec<Kept> = all.flatten().collect();
    let unknown = rows.len() - known.len();
    Ok((known, unknown))
}
