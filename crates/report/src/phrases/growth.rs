//! The words of `growth` about one owner of memory, and the scale of its picture.

pub(crate) mod sentences;

use units::{Count, RatePeriod};

use super::LabelledText;
use crate::clock::ReportClock;
use crate::model::growth::GrowthEntry;

/// `probable, 82 %`: how sure the class is.
pub(crate) fn sure(entry: &GrowthEntry) -> String {
    format!("{}, {}", entry.confidence_text.word(), entry.confidence)
}

/// Returns the ends of the picture's vertical axis; `None` where nothing was measured. A range that is small beside the
/// size would be a flat block from zero, so the lower end is not always zero.
pub(crate) fn axis(courses: &[&[Option<f64>]]) -> Option<(f64, f64)> {
    let known = || courses.iter().copied().flatten().flatten().copied();
    let (low, high) = (known().fold(f64::INFINITY, f64::min), known().fold(0.0, f64::max));
    let floor = if low > high * 0.5 { low - (high - low).max(high * 0.02) * 0.2 } else { 0.0 };
    (low.is_finite() && high > 0.0).then_some((floor, high))
}

/// Returns when the limit is reached, in words.
pub(crate) fn limit(entry: &GrowthEntry) -> Option<String> {
    entry.limit_in_s.map(|left| left.to_string())
}

/// Returns how and when it ended: `killed 19:17:03`.
pub(crate) fn ended(entry: &GrowthEntry, clock: Option<&ReportClock<'_>>) -> Option<String> {
    let how = if entry.is_killed { "killed" } else { "ended" };
    let at = clock.and_then(|clock| clock.moment(entry.ended_s?, entry.ended));
    entry.ended_s.map(|_| match at {
        Some(at) => format!("{how} {at}"),
        None => how.to_owned(),
    })
}

/// Returns by how much it grows, in short: `+66 MiB/min`.
pub(crate) fn rate(entry: &GrowthEntry) -> Option<String> {
    let period = RatePeriod::of_growth_seen_for(entry.judged_s);
    let grown = entry.rate_bytes_per_s?.within(period);
    Some(format!("+{grown}{}", period.symbol()))
}

/// Returns how often the kernel killed in one that lives on: `killed 5 ×`.
pub(crate) fn kills(entry: &GrowthEntry) -> Option<String> {
    let is_over = entry.ended_s.is_none() && entry.limit_in_s.is_none();
    (is_over && entry.kills > 0).then(|| format!("killed {} ×", entry.kills))
}

/// Returns what is known of the growth, and what to do.
pub(crate) fn facts(entry: &GrowthEntry, clock: Option<&ReportClock<'_>>) -> Vec<LabelledText> {
    let ends = (entry.rate_from_bytes_per_s).zip(entry.rate_to_bytes_per_s);
    let period = RatePeriod::of_growth_seen_for(entry.judged_s);
    let rate = entry.rate_bytes_per_s.zip(ends).map(|(rate, (from, to))| {
        let [mean, from, to] = [rate, from, to].map(|rate| rate.within(period));
        format!("{mean} {} (95 % interval {from} to {to})", period.words())
    });
    let judged = entry.judged_s;
    let readings = Count::new(entry.readings as u64).named("reading", "readings");
    let ended = ended(entry, clock);
    let now = if ended.is_some() { "Last" } else { "Now" };
    let known = [
        ("Ended", ended.map(|ended| format!("{ended}, before the end of the source"))),
        (now, Some(entry.now_bytes.to_string())),
        ("Rate", rate),
        ("Levels off", entry.levels_off_at_bytes.map(|end| format!("at about {end}"))),
        ("Limit in", limit(entry).map(|limit| format!("{limit}, at this rate"))),
        ("Needs", entry.needs_s.map(|needs| format!("about {needs} more"))),
        ("Judged", Some(format!("{readings} over {judged}"))),
        ("Method", Some(entry.method.clone()).filter(|_| entry.readings > 1)),
    ];
    let mut facts: Vec<LabelledText> = (known.into_iter())
        .filter_map(|(label, text)| Some(LabelledText::new(label, text?)))
        .collect();
    let evidence = entry.evidence.iter().map(String::as_str);
    facts.extend(evidence.map(|text| LabelledText::new("Evidence", text)));
    facts.push(LabelledText::new("To do", entry.advice));
    facts
}
