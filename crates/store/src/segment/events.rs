//! `events.parquet`: events, with the kernel's log lines.

use timeline::{Event, EventKind, Stamp, Timeline};
use units::WallClock;

use super::boots;
use super::host::{nanos, span};
use super::table::{Cells, ColumnChunk, ColumnShape, OpenedTable};

/// An event, and the sample of its kernel report, if any.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KeptEvents {
    pub(crate) event: Event,
    /// Number of the sample in its segment.
    pub(crate) sample: Option<usize>,
}

/// Returns a timeline's noted events, and its kernel reports that are not among them.
pub(super) fn stored_events(timeline: &Timeline) -> Vec<KeptEvents> {
    let mut all: Vec<KeptEvents> = Vec::new();
    for event in timeline.recorder_events() {
        // After a failure of the disk an event may have been written twice, the second time soon after the first.
        let mut recent = all.iter().rev().take(REPEATED_WITHIN);
        if recent.all(|stored| stored.event != *event) {
            let (event, sample) = (event.clone(), None);
            all.push(KeptEvents { event, sample });
        }
    }
    for reported in timeline.reports() {
        let (Some(sample), Some(text)) = (timeline.sample_of(reported), &reported.text) else {
            continue;
        };
        if timeline.is_noted(reported) {
            continue;
        }
        let mut event = Event::of_report(reported.stamp, &reported.report, text.to_string());
        if reported.report.is_memory_dump() {
            // A memory dump without an OOM kill.
            "memory dump on request (SysRq m)".clone_into(&mut event.text);
        }
        let sample = Some(sample);
        all.push(KeptEvents { event, sample });
    }
    all
}

/// How many previous events are compared to find a repeated one.
const REPEATED_WITHIN: usize = 64;

/// Returns the columns of a list of events.
pub(super) fn columns(events: &[KeptEvents]) -> Vec<ColumnChunk<'_>> {
    let number = |name, shape, of: fn(&KeptEvents) -> Option<i64>| {
        ColumnChunk::numbers(name, shape, move |cells| {
            events.iter().for_each(|event| cells.push(of(event)));
        })
    };
    let word = |name, of: fn(&Event) -> &str| {
        let words = events.iter().map(|stored| of(&stored.event)).collect();
        ColumnChunk::words(name, words, move |out| (0..events.len()).for_each(out))
    };
    vec![
        number("time", ColumnShape::Time, |stored| {
            stored.event.stamp.wall.map(WallClock::unix_nanos)
        }),
        number("boot_ns", ColumnShape::Reading, |stored| Some(nanos(stored.event.stamp.boot))),
        number("awake_ns", ColumnShape::Reading, |stored| stored.event.stamp.awake.map(nanos)),
        number("sample", ColumnShape::Reading, |stored| {
            stored.sample.and_then(|sample| i64::try_from(sample).ok())
        }),
        word("kind", |event| event.kind.name()),
        word("subject", |event| &event.subject),
        word("text", |event| &event.text),
        word("report", |event| &event.report),
    ]
}

/// Reads the events of a file; also returns how many were left out because this version does not know their kind.
pub(super) fn read(file: &OpenedTable) -> Result<(Vec<KeptEvents>, usize), String> {
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
    let (samples, boot_ids) = (number("sample")?, boots::read(file)?);
    let (kinds, subjects) = (words("kind")?, words("subject")?);
    let (texts, reports) = (words("text")?, words("report")?);
    let all = rows.iter().map(|row| {
        Some(KeptEvents {
            event: Event {
                stamp: Stamp {
                    boot: span(boots[*row].unwrap_or_default()),
                    awake: awakes[*row].map(span),
                    wall: times[*row].map(WallClock::from_unix_nanos),
                    boot_id: boot_ids[*row],
                },
                kind: EventKind::by_name(&kinds[*row])?,
                subject: subjects[*row].clone(),
                text: texts[*row].clone(),
                report: reports[*row].clone(),
            },
            sample: samples[*row].and_then(|sample| usize::try_from(sample).ok()),
        })
    });
    let known: Vec<KeptEvents> = all.flatten().collect();
    let unknown = rows.len() - known.len();
    Ok((known, unknown))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_disk_was_given_twice_is_there_once() {
        let mut timeline = Timeline::default();
        for second in [1, 2, 1, 3, 2] {
            timeline.add_recorder_event(Event {
                stamp: Stamp { boot: units::Span::from_secs(second), ..Stamp::default() },
                kind: EventKind::OomKill,
                subject: "java (7)".to_owned(),
                text: String::new(),
                report: String::new(),
            });
        }
        let at = stored_events(&timeline).into_iter();
        let at: Vec<u64> = at.map(|stored| stored.event.stamp.boot.as_nanos()).collect();
        assert_eq!(at, [1, 2, 3].map(|second| second * 1_000_000_000));
    }
}
