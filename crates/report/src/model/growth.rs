//! The answer of `growth`: what each process and service does, the most urgent first.

use diagnose::Sureness;
use diagnose::growth::{
    Growth, GrowthClass, GrowthOwner, GrowthOwnerKind, GrowthPoint, GrowthSeries, leaks_on,
};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;
use units::{Bytes, BytesPerSecond, Quantity as _, Ratio, Span};

use super::Source;
use super::time::wall;
use crate::phrases::growth::sentences;

/// Name and version of the contract of `growth`.
pub const GROWTH_SCHEMA: &str = "memtide-growth/1";
/// Values of a course: a column of a terminal each.
const COURSE_MAX: usize = 80;

/// The whole answer of `growth`.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct GrowthReport {
    /// Name and version of this contract; a change that readers must know of is another version.
    #[schemars(extend("const" = "memtide-growth/1"))]
    pub schema: &'static str,
    /// Where the samples came from.
    pub source: Source,
    /// The class of the only owner of memory in the answer; null if there are several or none. As in `growths`.
    #[schemars(with = "Option<String>")]
    pub class: Option<GrowthClass>,
    /// How sure the class is, from 0 to 1; null where `class` is.
    pub confidence: Option<Ratio>,
    /// Each process and service, the most urgent first: what leaks to the end of the source, then what leaked until it
    /// ended or was killed, then the others; of each by the time to its limit, then by class and size.
    pub growths: Vec<GrowthEntry>,
}

/// How the memory of a process or a service grows.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct GrowthEntry {
    /// `process`, `cgroup` or `service`.
    pub kind: &'static str,
    /// Its name.
    pub name: String,
    /// PID of a process; null for others.
    pub pid: Option<u64>,
    /// When it ended, if it did before the source did; else null.
    pub ended: Option<Timestamp>,
    /// The same in seconds from the first sample.
    pub ended_s: Option<f64>,
    /// Whether the kernel killed it for lack of memory.
    pub is_killed: bool,
    /// How often the kernel killed in it, or at its limit.
    pub kills: usize,
    /// `leak`, `leak-and-fragmentation`, `fragmentation`, `saturating`, `warmup`, `pinned`, `steps`, `seasonal`,
    /// `stationary`, `flat`, `unknown`.
    #[schemars(with = "String")]
    pub class: GrowthClass,
    /// The class in words.
    pub class_text: &'static str,
    /// What the class means, in one sentence.
    pub meaning: &'static str,
    /// How sure the class is, from 0 to 1.
    pub confidence: Ratio,
    /// The same in a word: `confirmed`, `probable`, `possible`.
    #[schemars(with = "String")]
    pub confidence_text: Sureness,
    /// How it was found: fit, share of the variance, what the live bytes did.
    pub method: String,
    /// Its memory at the end.
    pub now_bytes: Bytes,
    /// The time that was judged, after the last restart.
    pub judged_s: Span,
    /// The readings that were judged.
    pub readings: usize,
    /// How fast it grows; null for classes that do not grow without an end. Of class `unknown`: where it rises in a line.
    pub rate_bytes_per_s: Option<BytesPerSecond>,
    /// The lower end of the rate's 95 % interval.
    pub rate_from_bytes_per_s: Option<BytesPerSecond>,
    /// The upper end.
    pub rate_to_bytes_per_s: Option<BytesPerSecond>,
    /// Where growth ends; null for classes that do not level off.
    pub levels_off_at_bytes: Option<Bytes>,
    /// How large it can become: up to the tightest limit, or with all that is available on the host; null if unknown.
    pub limit_bytes: Option<Bytes>,
    /// When it reaches that at its rate; null without a rate or a limit.
    pub limit_in_s: Option<Span>,
    /// For how long to record on, where the readings do not suffice; else null.
    pub needs_s: Option<Span>,
    /// What the class rests on, a sentence each.
    pub evidence: Vec<String>,
    /// What to do, in one sentence.
    pub advice: &'static str,
    /// Its memory over time: at most 80 means of equal times; null where nothing was read.
    pub course_bytes: Vec<Option<f64>>,
    /// The time that `course_bytes` covers.
    pub course_s: Span,
    /// What the program had allocated, at the same times; empty where that was not read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub live_course_bytes: Vec<Option<f64>>,
}

impl GrowthReport {
    /// From the owners of a source and their growth.
    pub fn new(source: &timeline::Source, judged: &[(&GrowthOwner<'_>, Growth)]) -> Self {
        let mut order: Vec<&(&GrowthOwner<'_>, Growth)> = judged.iter().collect();
        let urgency = |(owner, growth): &(&GrowthOwner<'_>, Growth)| {
            let left = growth.limit_in.unwrap_or(Span::from_nanos(u64::MAX));
            // What goes on is before what is over, as in `check`.
            (!leaks_on(owner, growth), !growth.class.leaks(), left, growth.class)
        };
        order.sort_by(|a, b| urgency(a).cmp(&urgency(b)).then(b.1.now.cmp(&a.1.now)));
        let growths: Vec<GrowthEntry> = order
            .into_iter()
            .map(|(owner, growth)| GrowthEntry::new(source, owner, growth))
            .collect();
        let only = match growths.as_slice() {
            [only] => Some((only.class, only.confidence)),
            _ => None,
        };
        Self {
            schema: GROWTH_SCHEMA,
            source: Source::new(source),
            class: only.map(|(class, _)| class),
            confidence: only.map(|(_, confidence)| confidence),
            growths,
        }
    }
}

impl GrowthEntry {
    /// From an owner of memory in a source, and its growth.
    pub fn new(source: &timeline::Source, owner: &GrowthOwner<'_>, growth: &Growth) -> Self {
        let ended = owner.ended;
        Self {
            pid: owner.pid(),
            ended: ended.and_then(|end| wall(&source.timeline, end.at)),
            ended_s: ended.map(|end| end.at.as_secs_f64()),
            is_killed: ended.is_some_and(|end| end.is_killed),
            ..Self::of(owner.kind, owner.name(), &owner.series, growth)
        }
    }

    /// From the series of an owner with this name, and its growth.
    pub fn of(kind: GrowthOwnerKind, name: &str, series: &GrowthSeries, growth: &Growth) -> Self {
        Self {
            kind: kind.name(),
            name: name.to_owned(),
            pid: None,
            ended: None,
            ended_s: None,
            is_killed: false,
            kills: series.killed.len(),
            class: growth.class,
            class_text: sentences::name(growth.class),
            meaning: if growth.gave_back() {
                sentences::GAVE_BACK
            } else {
                sentences::meaning(growth.class, kind)
            },
            confidence: Ratio::from_percent((growth.confidence.get() * 100.0).round()),
            confidence_text: Sureness::of(growth.confidence),
            method: growth.method.to_string(),
            now_bytes: growth.now,
            judged_s: growth.judged,
            readings: growth.readings,
            rate_bytes_per_s: growth.rate.map(|rate| rate.rate),
            rate_from_bytes_per_s: growth.rate.map(|rate| rate.from),
            rate_to_bytes_per_s: growth.rate.map(|rate| rate.to),
            levels_off_at_bytes: growth.levels_off_at,
            limit_bytes: series.limit,
            limit_in_s: growth.limit_in,
            needs_s: growth.needs,
            evidence: sentences::reasons(growth),
            advice: if growth.gave_back() && series.killed.is_empty() {
                sentences::JUDGE_THE_RISE
            } else if growth.class == GrowthClass::Unknown && growth.method.is_of_live {
                sentences::WATCH_ON
            } else {
                sentences::advice(growth.class, series.killed.len())
            },
            course_s: covered(series),
            course_bytes: course(series, |point| Some(point.total)),
            live_course_bytes: course(series, |point| point.live),
        }
    }
}

/// Returns the time from the first to the last point.
fn covered(series: &GrowthSeries) -> Span {
    let points = &series.points;
    let ends = points.first().zip(points.last());
    ends.map_or(Span::ZERO, |(first, last)| last.at - first.at)
}

/// Returns means of equal times; nothing where no point has the value. A reading holds until the next one, unless that comes
/// far later than such readings usually do: live bytes are read more seldom than the total.
fn course(
    series: &GrowthSeries,
    value: impl Fn(&GrowthPoint) -> Option<Bytes>,
) -> Vec<Option<f64>> {
    let points = &series.points;
    let start = points.first().map_or(Span::ZERO, |first| first.at);
    let known = points.iter().filter_map(|point| {
        let at = (point.at - start).as_secs_f64();
        Some((at, value(point)?.as_f64()))
    });
    let known: Vec<(f64, f64)> = known.collect();
    if known.is_empty() {
        return Vec::new();
    }
    let mut steps: Vec<f64> = known.windows(2).map(|pair| pair[1].0 - pair[0].0).collect();
    steps.sort_unstable_by(f64::total_cmp);
    let holds = steps.get(steps.len() * 9 / 10).map_or(0.0, |usual| usual * 2.0);
    let count = COURSE_MAX.min(points.len());
    let width = (covered(series).as_secs_f64() / count as f64).max(f64::MIN_POSITIVE);
    let (mut from, mut last) = (known.into_iter().peekable(), None);
    let cells = (1..=count).map(|cell| {
        let end = width * cell as f64;
        let (mut sum, mut n) = (0.0, 0_u32);
        while let Some(reading) = from.next_if(|(at, _)| cell == count || *at < end) {
            last = Some(reading);
            sum += reading.1;
            n += 1;
        }
        let held = last.filter(|(at, _)| end <= at + holds);
        let mean = (n > 0).then(|| sum / f64::from(n));
        mean.or(held.map(|(_, value)| value))
    });
    cells.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_reading_leaves_no_gap_and_a_long_pause_does() {
        let usual = (0..20).filter(|second| *second != 7);
        let readings: Vec<u64> = usual.chain([60]).collect();
        let at = |seconds: u64| GrowthPoint {
            at: Span::from_secs(seconds),
            total: Bytes::from_mib(seconds),
            ..GrowthPoint::default()
        };
        let drawn = |count: usize| {
            let series = GrowthSeries {
                points: readings[..count].iter().copied().map(at).collect(),
                ..GrowthSeries::default()
            };
            course(&series, |point| Some(point.total))
        };
        assert!(drawn(19).iter().all(Option::is_some));
        assert_eq!(drawn(20).iter().filter(|mean| mean.is_none()).count(), 12);
    }
}
