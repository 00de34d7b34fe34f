//! Values as typed: times, sizes, percentiles. A value out of bounds is refused with the bound.

use jiff::SpanRelativeTo;
use units::{Bytes, Ratio, SizeError, Span};

/// `500ms`, `10s`, `2m`, `1h 30m`, `14d`; a plain number is seconds.
pub(super) fn span(text: &str) -> Result<Span, String> {
    let wrong = || format!("`{text}` is no duration; write 500ms, 10s, 2m, 1h or 14d");
    let seconds = match text.parse::<f64>() {
        Ok(seconds) => seconds,
        Err(_) => seconds_in(text).ok_or_else(wrong)?,
    };
    if !seconds.is_finite() || seconds < 0.0 {
        return Err(wrong());
    }
    if seconds < 0.01 {
        return Err(format!("`{text}` is too short; 10ms is the least"));
    }
    if seconds > 366.0 * 86_400.0 {
        return Err(format!("`{text}` is longer than a year"));
    }
    Ok(Span::from_secs_f64(seconds))
}

/// A day is 24 hours, also where daylight saving time begins or ends.
fn seconds_in(text: &str) -> Option<f64> {
    let span: jiff::Span = text.parse().ok()?;
    let length = span.to_duration(SpanRelativeTo::days_are_24_hours()).ok()?;
    Some(length.as_secs_f64())
}

/// As [`span`], or nothing.
pub(super) fn idle(text: &str) -> Result<Span, String> {
    if matches!(text.trim(), "0" | "0s") { Ok(Span::ZERO) } else { span(text) }
}

/// A duration between bounds, each with its reason.
fn span_within(
    text: &str,
    (least, why_least): (Span, &str),
    (most, why_most): (Span, &str),
) -> Result<Span, String> {
    let span = match text.trim().parse::<f64>() {
        Ok(seconds) if (0.0..0.01).contains(&seconds) => Span::ZERO,
        _ => span(text)?,
    };
    if span < least {
        return Err(format!("`{text}` is too short: {why_least}"));
    }
    if span > most {
        return Err(format!("`{text}` is too long: {why_most}"));
    }
    Ok(span)
}

/// A recorder's interval. At 10 Hz the host's files alone take 0.3 % of a CPU; with minutes between two samples, rules about
/// a minute of trouble find nothing.
pub(super) fn every(text: &str) -> Result<Span, String> {
    span_within(
        text,
        (Span::from_millis(100), "100ms is the least, ten times the cost of 1s"),
        (Span::from_mins(10), "10m is the most, as trouble of minutes would be missed"),
    )
}

/// How often a recorder reads malloc heaps: each time a child is started, and a GiB of small chunks takes 0.3 s of CPU.
pub(super) fn explain_every(text: &str) -> Result<Span, String> {
    span_within(
        text,
        (Span::from_secs(1), "1s is the least"),
        (Span::from_hours(24), "1d is the most"),
    )
}

/// How often a recorder judges itself: samples reach the disk every few seconds, and a check takes some 20 ms of CPU.
pub(super) fn check_every(text: &str) -> Result<Span, String> {
    span_within(
        text,
        (Span::from_secs(10), "10s is the least"),
        (Span::from_mins(10), "10m is the most, as each check is about the last 10 minutes"),
    )
}

/// A command for a shell.
pub(super) fn hook(text: &str) -> Result<String, String> {
    match text.trim() {
        "" => Err("the command is empty".to_owned()),
        command => Ok(command.to_owned()),
    }
}

/// How long the command of a finding may take: meanwhile others wait.
pub(super) fn hook_timeout(text: &str) -> Result<Span, String> {
    span_within(
        text,
        (Span::from_secs(1), "1s is the least"),
        (Span::from_mins(5), "5m is the most, as other findings wait meanwhile"),
    )
}

/// The name of what has malloc heaps to read.
pub(super) fn explained(text: &str) -> Result<String, String> {
    match text.trim() {
        "" => Err("a name is empty; write that of a service, a cgroup or a process".to_owned()),
        name => Ok(name.to_owned()),
    }
}

/// A recorder's retention. Elsewhere a plain number is seconds, as for `sleep`; here that is refused as a likely mistake.
pub(super) fn keep(text: &str) -> Result<Span, String> {
    let typed = text.trim();
    let is_plain = typed.starts_with(|c: char| matches!(c, '1'..='9'));
    if is_plain && typed.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(format!(
            "`{typed}` has no unit; write {typed}d for days, {typed}h for hours or {typed}w for \
             weeks"
        ));
    }
    span_within(
        text,
        (Span::from_hours(1), "1h is the least"),
        (Span::from_hours(24 * 366), "366d is the most"),
    )
}

/// A recorder's sync interval: what a power failure may cost.
pub(super) fn sync(text: &str) -> Result<Span, String> {
    span_within(
        text,
        (Span::from_secs(1), "1s is the least, as each sync makes the disk write"),
        (Span::from_mins(10), "10m is the most"),
    )
}

/// The smallest recording: below this, heads alone would be most of it.
const KEPT_MIN: Bytes = Bytes::from_mib(16);

pub(super) fn keep_size(text: &str) -> Result<Bytes, String> {
    let size = size(text)?;
    if size < KEPT_MIN {
        let typed = text.trim();
        let help = match typed.parse::<f64>() {
            Ok(_) => format!(" (a plain number is bytes); write {typed}MiB or {typed}GiB"),
            Err(_) => String::new(),
        };
        return Err(format!("`{typed}` is too small: 16MiB is the least{help}"));
    }
    Ok(size)
}

/// As [`Bytes`] are read; a plain number is bytes.
pub(super) fn size(text: &str) -> Result<Bytes, String> {
    text.parse().map_err(|error: SizeError| error.to_string())
}

/// A size above zero.
pub(super) fn some_size(text: &str) -> Result<Bytes, String> {
    let size = size(text)?;
    if size > Bytes::ZERO {
        Ok(size)
    } else {
        let typed = text.trim();
        Err(format!("`{typed}` is nothing; write 500M or 2GiB"))
    }
}

/// The length of a workload's cycle.
pub(super) fn cycle(text: &str) -> Result<Span, String> {
    span_within(
        text,
        (Span::from_secs(1), "1s is the least"),
        (Span::from_hours(24 * 366), "366d is the most"),
    )
}

/// `p99`, or 99.
pub(super) fn percentile(text: &str) -> Result<Ratio, String> {
    let typed = text.trim();
    let number = typed.trim_start_matches(['p', 'P']).trim_end_matches('%');
    match number.parse::<f64>() {
        Ok(percent) if (50.0..=100.0).contains(&percent) => Ok(Ratio::from_percent(percent)),
        Ok(_) => Err(format!("`{typed}` is not between p50 and p100")),
        Err(_) => Err(format!("`{typed}` is no percentile; write p95")),
    }
}

/// `5%` or `5`, from 0 to below 1000.
pub(super) fn percent(text: &str) -> Result<Ratio, String> {
    let typed = text.trim().trim_end_matches('%').trim_end();
    match typed.parse::<f64>() {
        Ok(percent) if (0.0..1000.0).contains(&percent) => Ok(Ratio::from_percent(percent)),
        _ => Err(format!("`{}` is no percentage; write 5%", text.trim())),
    }
}

/// The names of all kinds of events.
pub(super) fn event_kinds() -> clap::builder::PossibleValuesParser {
    timeline::EventKind::ALL.map(timeline::EventKind::name).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_as_people_write_them() {
        for (text, seconds) in [
            ("10s", 10.0),
            ("500ms", 0.5),
            ("2m", 120.0),
            ("1h", 3600.0),
            ("1h 30m", 5400.0),
            ("15", 15.0),
            ("2d", 172_800.0),
            ("1w", 604_800.0),
        ] {
            assert_eq!(span(text), Ok(Span::from_secs_f64(seconds)), "{text}");
        }
        for text in ["", "-1s", "soon", "0", "nan", "1e300", "500y"] {
            assert!(span(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_size_of_nothing_is_refused() {
        assert_eq!(some_size("1.5G"), Ok(Bytes::from_mib(1536)));
        for text in ["0", "0.2", "0GiB"] {
            let error = some_size(text).unwrap_err();
            assert_eq!(error, format!("`{text}` is nothing; write 500M or 2GiB"));
        }
    }
}
