//! Sentences about the host and the source of an answer.

use units::{Bytes, Count, Span};

use crate::clock::ReportClock;
use crate::model::{Finding, Host, Source, SourceKind};
use crate::plain::cut;

/// At most 20 fields of an unknown kernel are named; the rest is counted.
const UNKNOWN_MAX: usize = 20;

/// Whether a note is about the source instead of the host.
pub(crate) fn is_about_the_source(note: &Finding) -> bool {
    let rule = diagnose::rules::by_id(&note.id);
    rule.is_some_and(|rule| rule.class == diagnose::Class::Source)
}

/// Names the kernel's fields that memtide does not know.
pub(crate) fn unknown_fields(fields: &[String]) -> String {
    let named = fields.len().min(UNKNOWN_MAX);
    let names = fields[..named].join(", ");
    match fields.len() - named {
        0 => names,
        more => format!("{names} and {more} more"),
    }
}

/// The host, then the source: `Linux 6.1.0`, `470 MiB RAM, 512 MiB swap`, `capture of 39 s, 40 samples`.
pub(crate) fn host_items(host: &Host, source: &Source, clock: &ReportClock<'_>) -> Vec<String> {
    let mut items: Vec<String> = host.hostname.iter().map(|name| cut(name, 30)).collect();
    items.extend(hardware_items(host));
    items.extend(source_items(source, clock));
    items
}

/// Kernel, RAM and swap.
pub(crate) fn hardware_items(host: &Host) -> Vec<String> {
    let kernel = host.kernel.as_ref();
    let mut items: Vec<String> =
        kernel.map(|kernel| format!("Linux {}", cut(kernel, 40))).into_iter().collect();
    let swap = match host.swap_bytes {
        None => String::new(),
        Some(Bytes::ZERO) => ", no swap".to_owned(),
        Some(swap) => format!(", {swap} swap"),
    };
    items.extend(host.ram_bytes.map(|ram| format!("{ram} RAM{swap}")));
    if host.container.is_some() {
        items.push("in a container".to_owned());
    }
    items
}

/// The source: its kind, length and samples, and the name of its file.
pub(crate) fn source_items(source: &Source, clock: &ReportClock<'_>) -> Vec<String> {
    let mut items = vec![extent(source, clock)];
    items.extend(history(source, clock));
    // The file's name distinguishes several sources; the user typed the directory and knows it.
    items.extend(source.file_name().map(|name| cut(name, 60)));
    items
}

fn extent(source: &Source, clock: &ReportClock<'_>) -> String {
    let watched = source.watched_s;
    match (source.kind, source.samples) {
        (_, 0) => "no sample".to_owned(),
        (SourceKind::Text, samples) => snapshots("text", samples, watched),
        (SourceKind::Bundle, samples) => snapshots("support bundle", samples, watched),
        (SourceKind::Capture | SourceKind::Recording, _) if source.cut_at_s.is_some() => {
            part(source, clock)
        }
        (SourceKind::Capture, 1) => "capture of one sample".to_owned(),
        (SourceKind::Recording, _) => {
            let until = clock.until();
            let until = until.map_or_else(String::new, |at| format!(" until {at}"));
            format!("recording of {watched}{until}, {}", how_closely(source))
        }
        (SourceKind::Capture, samples) => {
            let until = clock.until();
            let until = until.map_or_else(String::new, |at| format!(" until {at}"));
            let samples = Count::new(samples as u64);
            format!("capture of {watched}{until}, {samples} samples")
        }
        (SourceKind::Live, samples) => {
            let until = clock.until();
            if samples == 1 {
                until.map_or_else(|| "one sample".to_owned(), |at| format!("one sample at {at}"))
            } else {
                let until = until.map_or_else(String::new, |at| format!(" until {at}"));
                format!("watched {watched}{until}")
            }
        }
    }
}

/// The requested part of a source: `10 min of a recording, 2026-11-21 13:42:18 to 13:52:18 +09:00, 600 samples`.
fn part(source: &Source, clock: &ReportClock<'_>) -> String {
    let kind = match source.kind {
        SourceKind::Recording => "recording",
        _ => "capture",
    };
    let watched = match source.samples {
        1 => "one sample".to_owned(),
        _ => source.watched_s.to_string(),
    };
    let when = clock.whole();
    let every = how_closely(source);
    format!("{watched} of a {kind}, {when}, {every}")
}

fn how_closely(source: &Source) -> String {
    match (source.thinned_to_s, source.samples) {
        (Some(every), _) => format!("judged every {every}"),
        (None, 1) => "1 sample".to_owned(),
        (None, samples) => format!("{} samples", Count::new(samples as u64)),
    }
}

/// The recording that completes a live source: `and its recording since Nov 21 13:42:18, every 60 s`.
fn history(source: &Source, clock: &ReportClock<'_>) -> Option<String> {
    let history = source.history.as_ref()?;
    let since = clock.moment(0.0, history.from)?;
    Some(format!("and its recording since {since}, by the minute"))
}

fn snapshots(what: &str, samples: usize, watched: Span) -> String {
    let count = Count::new(samples as u64);
    match samples {
        1 => format!("{what}, one snapshot"),
        _ if watched == Span::ZERO => format!("{what}, {count} snapshots"),
        _ => format!("{what}, {count} snapshots over {watched}"),
    }
}
