//! The words of `headroom`.

pub(crate) mod sentences;

use units::{Bytes, SignedBytes};

use super::LabelledText;
use crate::clock::ReportClock;
use crate::model::headroom::{FitAnswer, HeadroomReport, LimitTerms, ReadCache, Terms};

/// Headings.
pub(crate) const TERMS: &str = "What it was computed from, at the worst moment:";
pub(crate) const OTHER_LIMITS: &str = "Other limits:";
pub(crate) const NOT_KNOWN: &str = "Not known:";

/// A line of the terms: the sign, what it is, how much, and the reading it rests on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TermLine {
    /// `−`, `+` or nothing.
    pub(crate) sign: &'static str,
    pub(crate) label: &'static str,
    pub(crate) size: String,
    pub(crate) text: String,
}

/// The answer in capitals.
pub(crate) const fn word(answer: FitAnswer) -> &'static str {
    match answer {
        FitAnswer::Fits => "FITS",
        FitAnswer::FitsSoFar => "FITS SO FAR",
        FitAnswer::Tight => "TIGHT",
        FitAnswer::DoesNotFit => "DOES NOT FIT",
        FitAnswer::Unknown => "CANNOT TELL",
    }
}

/// What limits headroom, when the worst moment was and who ran then, and the answer's other main sentences.
pub(crate) fn first(report: &HeadroomReport, clock: &ReportClock<'_>) -> Vec<LabelledText> {
    let binds = Some(&report.binds)
        .filter(|binds| !binds.is_empty())
        .map(|binds| LabelledText::new("limited by", binds.clone()));
    let notes = report.remarks.iter().map(|remark| LabelledText::new("note", remark.clone()));
    binds.into_iter().chain(worst(report, clock)).chain(notes).collect()
}

/// The estimate's error, what was watched, the effect of the demand, how much RAM is enough, and the formula by hand.
pub(crate) fn further(report: &HeadroomReport, clock: &ReportClock<'_>) -> Vec<LabelledText> {
    let cycle = LabelledText::new("cycle", report.cycle.text.clone());
    let lines =
        [bounds(report), Some(cycle), added(report), smallest_ram(report), by_hand(report, clock)];
    lines.into_iter().flatten().collect()
}

/// Limits that are not the tightest.
pub(crate) fn other_limits(report: &HeadroomReport) -> Vec<LabelledText> {
    let is_stated = |text: &str| {
        let mut sentences = report.remarks.iter().chain([&report.binds]);
        sentences.any(|sentence| sentence.contains(text))
    };
    report
        .limits
        .iter()
        .filter(|limit| !is_stated(&limit.text))
        .map(|limit| LabelledText::new(limit.kind, limit.text.clone()))
        .collect()
}

/// Unknown quantities that decide the answer.
pub(crate) fn unknown(report: &HeadroomReport) -> Vec<LabelledText> {
    let unknown = report.unknown.iter();
    unknown.map(|one| LabelledText::new(one.what, one.text.clone())).collect()
}

/// When the worst moment was, and who ran then.
fn worst(report: &HeadroomReport, clock: &ReportClock<'_>) -> Option<LabelledText> {
    let room = report.room.as_ref()?;
    let who: Vec<String> =
        report.then.iter().map(|one| format!("{} ({})", one.name, one.what)).collect();
    let who = if who.is_empty() { "running processes unknown".to_owned() } else { who.join(", ") };
    let moment = clock.moment(room.worst_at_s, room.worst_at).filter(|_| report.source.samples > 1);
    Some(LabelledText::new(
        "worst",
        moment.map_or_else(|| who.clone(), |at| format!("at {at}: {who}")),
    ))
}

/// The terms at the worst moment, in the order in which they are subtracted.
pub(crate) fn terms(terms: &Terms) -> Vec<TermLine> {
    let mut lines = match &terms.limit {
        Some(limit) => vec![group_limit(limit), undroppable(limit), write_cache(terms)],
        None => vec![available(terms), kept(terms), write_cache(terms)],
    };
    let cache = &terms.read_cache;
    let (size, bounds) = read_cache(cache);
    lines.push(TermLine {
        sign: "−",
        label: "read cache",
        size,
        text: format!("{bounds}: {}", cache.text),
    });
    lines.extend(terms.left_out_bytes.map(|left_out| TermLine {
        sign: "+",
        label: "left out",
        size: left_out.to_string(),
        text: "of the cache, which available leaves out already".to_owned(),
    }));
    lines
}

fn group_limit(limit: &LimitTerms) -> TermLine {
    TermLine {
        sign: "",
        label: "limit",
        size: limit.limit_bytes.to_string(),
        text: format!("{} of {}", limit.file, limit.cgroup),
    }
}

fn undroppable(limit: &LimitTerms) -> TermLine {
    let parts: Vec<String> =
        limit.parts.iter().map(|part| format!("{} {}", part.label, part.bytes)).collect();
    let parts = if parts.is_empty() { String::new() } else { format!(": {}", parts.join(", ")) };
    TermLine {
        sign: "−",
        label: "in use",
        size: limit.undroppable_bytes.to_string(),
        text: format!("that reclaim cannot take{parts}"),
    }
}

fn available(terms: &Terms) -> TermLine {
    TermLine {
        sign: "",
        label: "available",
        size: terms.available_bytes.to_string(),
        text: if terms.available_is_from_kernel {
            "the kernel's MemAvailable"
        } else {
            "MemAvailable is missing: free memory and files"
        }
        .to_owned(),
    }
}

fn kept(terms: &Terms) -> TermLine {
    let predicted =
        if terms.floor_is_measured { "" } else { " (predicted for a host of this size)" };
    TermLine {
        sign: "−",
        label: "kept free",
        size: terms.kept_bytes.map_or_else(unknown_size, |kept| kept.to_string()),
        text: format!(
            "beyond the floor of {} to {}{predicted}, left out of it already",
            terms.floor_low_bytes, terms.floor_high_bytes
        ),
    }
}

fn write_cache(terms: &Terms) -> TermLine {
    let least = terms.write_cache_lower_bytes;
    let most = terms.write_cache_upper_bytes;
    let is_measured = least == most;
    TermLine {
        sign: "−",
        label: "write cache",
        size: if is_measured { most.to_string() } else { unknown_size() },
        text: match terms.unwritten_bytes {
            Some(waited) if waited > most => {
                format!("{waited} of files waited for disks then; with {most} writers run free")
            }
            Some(_) => "of files that waited for disks then".to_owned(),
            None => format!("{least} to {most}: not measured, up to where writers run free"),
        },
    }
}

fn unknown_size() -> String {
    "unknown".to_owned()
}

/// The estimate or `unknown`, and the bounds: `0 B to 340 MiB`.
fn read_cache(cache: &ReadCache) -> (String, String) {
    let lower = cache.lower_bytes;
    let size = cache.likely_bytes.map_or_else(unknown_size, |size| size.to_string());
    let bounds = match cache.upper_bytes {
        Some(upper) => format!("{lower} to {upper}"),
        None if lower > Bytes::ZERO => format!("more than {lower}"),
        None => "anything".to_owned(),
    };
    (size, bounds)
}

/// The certain bounds of headroom, where there is an estimate; otherwise the headline has them.
fn bounds(report: &HeadroomReport) -> Option<LabelledText> {
    let least = report.room.as_ref()?.least;
    let (lower, _) = least.lower_bytes.zip(least.likely_bytes)?;
    let upper = least.upper_bytes;
    (lower != upper).then(|| {
        let text =
            format!("between {lower} (if all re-read cache is needed) and {upper} (if none is)");
        LabelledText::new("bounds", text)
    })
}

fn added(report: &HeadroomReport) -> Option<LabelledText> {
    let added = report.added.as_ref()?;
    let left = added.left_bytes.map(|left| {
        let size = Bytes::new(left.get().unsigned_abs());
        if left < SignedBytes::default() {
            format!("At the worst moment {size} would be lacking. ")
        } else {
            format!("At the worst moment {size} would be left. ")
        }
    });
    let text = format!("{}{}", left.unwrap_or_default(), added.text.join(" "));
    Some(LabelledText::new("added", text))
}

/// The simple formula that people use by hand, with its time if that differs.
fn by_hand(report: &HeadroomReport, clock: &ReportClock<'_>) -> Option<LabelledText> {
    let article = report.article.as_ref()?;
    let differs = if article.differs { "" } else { " (about the same)" };
    let moment = article.at_s.and_then(|at| clock.moment(at, article.at));
    let at = moment.map_or_else(String::new, |at| format!("at {at}: "));
    Some(LabelledText::new("by hand", format!("{at}{}{differs}", article.text)))
}

fn smallest_ram(report: &HeadroomReport) -> Option<LabelledText> {
    let with = match report.asked.add_bytes {
        Some(_) => ", with what is added",
        None => "",
    };
    let enough = |bytes: Bytes, are: &str| {
        format!("{} {are} enough for the worst moment{with}", bytes.rounded_up())
    };
    let text = match (report.smallest_ram_bytes, report.smallest_safe_ram_bytes) {
        (Some(likely), Some(safe)) if likely != safe => format!(
            "{}; {} if all re-read cache is needed",
            enough(likely, "would be"),
            safe.rounded_up()
        ),
        (Some(needed), _) => enough(needed, "would be"),
        (None, Some(safe)) => enough(safe, "are surely"),
        (None, None) if !report.short.is_empty() => more_ram(report, with),
        (None, None) => return None,
    };
    let is_limit = group_terms(report).is_some();
    Some(LabelledText::new(if is_limit { "limit" } else { "RAM" }, text))
}

fn group_terms(report: &HeadroomReport) -> Option<&LimitTerms> {
    report.terms.as_ref()?.limit.as_ref()
}

/// For a host or cgroup that was short of memory: all that is known is how much was wanted at once.
fn more_ram(report: &HeadroomReport, with: &str) -> String {
    if let Some(terms) = group_terms(report) {
        return format!(
            "more than the {} of {}; to see how much more, raise it and record again",
            terms.limit_bytes, terms.file
        );
    }
    let there = report.host.ram_bytes.filter(|ram| *ram > Bytes::ZERO);
    let there = there.map_or_else(|| "there is".to_owned(), |ram| format!("the {ram} there are"));
    match report.wanted_at_once_bytes {
        Some(wanted) => format!(
            "more than {there}; {wanted} would have held all that was in RAM and in swap at \
             once{with}"
        ),
        None => {
            format!("more than {there}; to see how much more, add RAM and record again")
        }
    }
}
