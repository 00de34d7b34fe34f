//! What the page's script reads: which curves there are, where findings and events lie, and how the packed numbers are laid
//! out. It says nothing that the page's text does not say as well.

use chart::{ChartKind, ChartSize, ChartUnit, LimitValue};
use diagnose::accounting::Standing;
use jiff::Timestamp;
use serde::Serialize;
use timeline::EventKind;
use units::Span;

use super::{EventEntry, Finding, Report, Severity};
use crate::clock::ReportClock;
use crate::phrases::incidents::named_subject;
use crate::picture::{Picture, SeriesIndex};
use crate::plain::harmless;

/// Name and version of this contract.
pub const PAGE_FORMAT: &str = "memtide-page/1";

/// All of it. Times are seconds from the picture's beginning.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PageMeta {
    /// Name and version of this contract.
    pub format: &'static str,
    /// The wall clock at second 0; null where times are read as offsets.
    pub start_unix_ms: Option<i64>,
    /// By how many seconds the clock that people read is ahead of that and the time since, from which second on; the first
    /// is of second 0. It changes with the zone, and where the host's clock was set. Empty where times are read as offsets.
    pub offsets: Vec<(f64, f64)>,
    /// The day of the source's last sample as that clock showed it, in days since 1970: moments of it are shown without
    /// their day. Null where every moment is shown with its day.
    pub last_day: Option<i64>,
    /// The year of that day: days of it are shown without their year. Null where each day is shown with its year.
    pub last_year: Option<i16>,
    /// What to add to a time where it is read as an offset: people count from the source's first sample.
    pub offset_s: f64,
    /// How long the picture is.
    pub span_s: f64,
    /// The usual distance between samples.
    pub interval_s: Option<Span>,
    /// The moment that matters.
    pub worst_s: f64,
    /// How the packed numbers are laid out; the first covers everything.
    pub levels: Vec<LevelMeta>,
    /// Stretches in which nothing was recorded: from, to, and how much of that is missing. Where they are many, those that
    /// no column of the whole range separates are one.
    pub gaps: Vec<[f64; 3]>,
    /// Charts that have data, in the page's order.
    pub charts: Vec<ChartMeta>,
    /// Findings, in the order of the report.
    pub findings: Vec<FindingMeta>,
    /// What happened, in order of time.
    pub events: Vec<EventMeta>,
}

/// A stretch of time in columns.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LevelMeta {
    /// Its first column.
    pub from_s: f64,
    /// Its last column.
    pub to_s: f64,
    /// How many columns.
    pub rows: usize,
}

/// A chart.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ChartMeta {
    /// Its anchor is `chart-ID`.
    pub id: String,
    /// Its heading.
    pub title: String,
    /// `stack`, `lines` or `mirror`.
    pub kind: &'static str,
    /// `bytes`, `bytes/s`, `pages/s`, `share`, `count/s` or `ms`.
    pub unit: &'static str,
    /// `overview` for the one that stands for the whole range in small, too; `wide`; `small`. The first two take the whole
    /// width, and a stack then has a table of values at the cursor.
    pub size: &'static str,
    /// Whether its vertical axis is logarithmic.
    pub is_log: bool,
    /// A fixed upper end of that axis.
    pub top: Option<f64>,
    /// Its curves.
    pub series: Vec<SeriesMeta>,
    /// Its limits.
    pub limits: Vec<LimitMeta>,
    /// Ids of two series between which a band lies: the low and the high edge of the floor.
    pub band: Option<[String; 2]>,
    /// Which findings it proves.
    pub evidence_of: Vec<usize>,
    /// What it shows, in words.
    pub says: String,
}

/// A curve.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SeriesMeta {
    /// Unique in its chart.
    pub id: String,
    /// What people call it; harmless, but text.
    pub label: String,
    /// The name of its colour.
    pub colour: String,
    /// What one of the packed numbers stands for, in the chart's unit.
    pub scale: f64,
    /// Drawn as steps that end at their sample.
    pub is_steps: bool,
    /// Drawn downwards.
    pub is_negative: bool,
    /// Drawn as a limit and not as data.
    pub is_limit: bool,
    /// The heading below which a table of values has it: `can be taken back`; null where there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<&'static str>,
    /// The pale one of a pair of colours.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_pale: bool,
    /// Hatched: what no colour may stand for.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_hatched: bool,
    /// One of several alike in a stack with a table: distinguished by lines between them and by their names, not by hues.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_alike: bool,
}

/// A limit.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LimitMeta {
    /// What it is.
    pub label: String,
    /// Where it is; null where a series says.
    pub value: Option<f64>,
    /// Which series says.
    pub series: Option<String>,
}

/// A finding.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FindingMeta {
    /// How much it matters.
    pub severity: Severity,
    /// Its rule.
    pub id: String,
    /// What it is about: `/shop`, `disk sda`; null where nothing in particular. Harmless, but text.
    pub subject: Option<String>,
    /// Its sentence; harmless, but text.
    pub title: String,
    /// When it began; null for a state without a beginning.
    pub from_s: Option<f64>,
    /// When it ended.
    pub to_s: Option<f64>,
    /// Every time at which it held, in order, from and to; those two are the longest of them.
    pub stretches: Vec<(f64, f64)>,
    /// Ids of the charts that prove it, the best first.
    pub charts: Vec<String>,
    /// Whether it follows from no other.
    pub is_root: bool,
}

/// An event.
#[allow(missing_docs)] // names say it
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EventMeta {
    pub at_s: f64,
    /// What; harmless, but text.
    pub text: String,
    /// Whether it is worth a label of its own.
    pub is_main: bool,
}

/// No screen distinguishes more.
const EVENTS_MAX: usize = 500;

/// Whether an event is one that explains what charts show.
pub(crate) fn is_main(event: &EventEntry) -> bool {
    let kind = EventKind::ALL.iter().find(|kind| kind.name() == event.kind);
    kind.is_some_and(|kind| kind.explains())
}

impl PageMeta {
    /// All of it; `scales` has a number for each series of each chart of the picture.
    pub(crate) fn new(
        report: &Report,
        picture: &Picture,
        events: &[EventEntry],
        scales: &[Vec<f64>],
        clock: &ReportClock<'_>,
    ) -> Self {
        let begin = clock.wall(picture.begin_s()).filter(|_| clock.is_of_the_wall());
        Self {
            format: PAGE_FORMAT,
            start_unix_ms: begin.map(Timestamp::as_millisecond),
            offsets: match begin {
                Some(_) => clock.ahead(picture.begin_s(), picture.span_s()),
                None => Vec::new(),
            },
            last_day: begin.and_then(|_| clock.last_day()),
            last_year: begin.and_then(|_| clock.last_year()),
            offset_s: report.source.cut_at_s.unwrap_or_default() + picture.begin_s(),
            span_s: picture.span_s(),
            interval_s: report.source.interval_s,
            worst_s: picture.worst_s(report),
            levels: levels(picture),
            gaps: gaps(picture),
            charts: charts(picture, scales),
            findings: findings(report, picture),
            events: events_of(events, picture, clock),
        }
    }
}

fn levels(picture: &Picture) -> Vec<LevelMeta> {
    let second = |at: Option<&units::Span>| at.map_or(0.0, |at| at.as_secs_f64());
    let levels = picture.drawing.levels.iter();
    let meta = levels.map(|level| LevelMeta {
        from_s: second(level.times.first()),
        to_s: second(level.times.last()),
        rows: level.times.len(),
    });
    meta.collect()
}

/// More are distinguished only where they are longer than a column of the whole range.
const GAPS_MAX: usize = 200;

fn gaps(picture: &Picture) -> Vec<[f64; 3]> {
    let gaps = picture.drawing.gaps.iter().map(|(from, to)| (from.as_secs_f64(), to.as_secs_f64()));
    #[allow(clippy::cast_precision_loss)] // some thousand
    let column_s = picture.span_s() / picture.times().len().max(1) as f64;
    gaps_of(gaps.collect(), column_s)
}

/// Where there are many, those that end in one column of so many seconds are one, unless they are longer than it: so there
/// are never more than two for a column.
fn gaps_of(gaps: Vec<(f64, f64)>, column_s: f64) -> Vec<[f64; 3]> {
    let is_many = gaps.len() > GAPS_MAX;
    let is_short = |(from, to): &(f64, f64)| to - from < column_s;
    let column = |(_, to): &(f64, f64)| (to / column_s).floor();
    let together = |one: &(f64, f64), other: &(f64, f64)| {
        is_many && is_short(one) && is_short(other) && column(one).total_cmp(&column(other)).is_eq()
    };
    let merged = gaps.chunk_by(together).filter_map(|gaps| {
        let (from, to) = (gaps.first()?.0, gaps.last()?.1);
        Some([from, to, gaps.iter().map(|(from, to)| to - from).sum()])
    });
    merged.collect()
}

fn charts(picture: &Picture, scales: &[Vec<f64>]) -> Vec<ChartMeta> {
    let shown = picture.charts.iter().enumerate();
    let meta = shown.map(|(index, chart)| {
        let scale = |series: usize| scales.get(index).and_then(|of| of.get(series));
        ChartMeta {
            id: chart.id.clone(),
            title: harmless(&chart.title),
            kind: kind(chart.kind),
            unit: unit(chart.unit),
            size: size(chart.size),
            is_log: chart.is_log,
            top: chart.top.filter(|top| top.is_finite()),
            series: series(chart, &scale),
            limits: limits(chart),
            band: chart.band.clone(),
            evidence_of: picture.evidence_of(index).to_vec(),
            says: harmless(picture.says(index)),
        }
    });
    meta.collect()
}

fn series<'a>(chart: &chart::Chart, scale: &impl Fn(usize) -> Option<&'a f64>) -> Vec<SeriesMeta> {
    let all = chart.series.iter().enumerate();
    let meta = all.map(|(i, series)| SeriesMeta {
        id: series.id.clone(),
        label: harmless(&series.label),
        colour: series.colour.name(),
        scale: scale(i).copied().unwrap_or(1.0),
        is_steps: series.is_steps,
        is_negative: series.is_negative,
        is_limit: chart.is_limit(&series.id),
        group: series.standing.map(Standing::label),
        is_pale: series.colour.is_pale(),
        is_hatched: series.colour.is_hatched(),
        is_alike: chart.kind == ChartKind::Stack && chart.is_wide() && series.colour.is_numbered(),
    });
    meta.collect()
}

const fn size(size: ChartSize) -> &'static str {
    match size {
        ChartSize::Overview => "overview",
        ChartSize::Wide => "wide",
        ChartSize::Small => "small",
    }
}

fn limits(chart: &chart::Chart) -> Vec<LimitMeta> {
    let meta = chart.limits.iter().map(|limit| {
        let (value, series) = match &limit.value {
            LimitValue::Fixed(value) => (Some(*value).filter(|v| v.is_finite()), None),
            LimitValue::Moving(series) => (None, Some(series.clone())),
        };
        LimitMeta { label: harmless(&limit.label), value, series }
    });
    meta.collect()
}

fn findings(report: &Report, picture: &Picture) -> Vec<FindingMeta> {
    let meta = report.findings.iter().map(|finding| {
        let within = picture.stretch_of(finding);
        FindingMeta {
            severity: finding.severity,
            id: finding.id.clone(),
            subject: named_subject(finding).as_deref().map(harmless),
            title: harmless(&finding.whole_title()),
            from_s: within.map(|(from, _)| from),
            to_s: within.map(|(_, to)| to),
            stretches: picture.stretches_of(finding),
            charts: charts_of(finding, picture),
            is_root: finding.caused_by.is_none(),
        }
    });
    meta.collect()
}

/// The charts that prove a finding: those of its first evidence first.
fn charts_of(finding: &Finding, picture: &Picture) -> Vec<String> {
    let mut ids: Vec<String> = Vec::new();
    let signals = finding.evidence.iter().filter_map(|it| it.signal.as_ref());
    for SeriesIndex { chart, .. } in signals.flat_map(|signal| picture.showing(signal)) {
        let id = &picture.charts[chart].id;
        if !ids.contains(id) {
            ids.push(id.clone());
        }
    }
    ids
}

/// Events on the picture. Where they are many, each stretch of time has one that speaks for all in it.
fn events_of(events: &[EventEntry], picture: &Picture, clock: &ReportClock<'_>) -> Vec<EventMeta> {
    let ends = 0.0..=picture.span_s();
    let placed = events.iter().filter_map(|event| {
        let at_s = event.offset_s? - picture.begin_s();
        ends.contains(&at_s).then_some((at_s, event))
    });
    let placed: Vec<(f64, &EventEntry)> = placed.collect();
    if placed.len() <= EVENTS_MAX {
        return placed.iter().map(|one| event(&[*one], clock)).collect();
    }
    #[allow(clippy::cast_precision_loss)] // some hundred
    let step = picture.span_s() / EVENTS_MAX as f64;
    let together = |one: &(f64, &EventEntry), other: &(f64, &EventEntry)| {
        (one.0 / step).floor().total_cmp(&(other.0 / step).floor()).is_eq()
    };
    let chunks = placed.chunk_by(together);
    chunks.map(|chunk| event(chunk, clock)).collect()
}

/// The first that explains something, else the first, with how many more there are.
fn event(together: &[(f64, &EventEntry)], clock: &ReportClock<'_>) -> EventMeta {
    let main = together.iter().find(|(_, event)| is_main(event));
    let lead = main.or(together.first());
    let text = lead.map_or_else(String::new, |(_, event)| clock.sentence(event));
    EventMeta {
        at_s: lead.map_or(0.0, |(at_s, _)| *at_s),
        text: match together.len() {
            0 | 1 => harmless(&text),
            n => harmless(&format!("{text}, and {} more events about then", n - 1)),
        },
        is_main: main.is_some(),
    }
}

const fn kind(kind: ChartKind) -> &'static str {
    match kind {
        ChartKind::Stack => "stack",
        ChartKind::Lines => "lines",
        ChartKind::Mirror => "mirror",
    }
}

/// What a unit is called in this contract.
pub(crate) const fn unit(unit: ChartUnit) -> &'static str {
    match unit {
        ChartUnit::Bytes => "bytes",
        ChartUnit::BytesPerSecond => "bytes/s",
        ChartUnit::PagesPerSecond => "pages/s",
        ChartUnit::CountPerSecond => "count/s",
        ChartUnit::Share => "share",
        ChartUnit::Millis => "ms",
    }
}

#[cfg(test)]
mod fixtures;

#[cfg(test)]
mod tests {
    use super::*;

    fn event_at(second: f64, kind: &'static str) -> EventEntry {
        EventEntry {
            at: None,
            since: None,
            since_offset_s: None,
            until: None,
            until_offset_s: None,
            dated: "exactly",
            offset_s: Some(second),
            kind,
            subject: None,
            cgroup: None,
            text: format!("{kind} at {second}"),
            report: None,
        }
    }

    fn shown_events(events: &[EventEntry], lasts: u64) -> Vec<EventMeta> {
        let source = crate::model::Source::new(&timeline::Source::default().named("x"));
        let screen = crate::Screen::default();
        events_of(events, &picture(lasts), &ReportClock::new(&source, &screen))
    }

    fn picture(lasts: u64) -> Picture {
        let mut drawing = chart::Drawing::default();
        drawing.levels.push(chart::CurveLevel {
            times: vec![units::Span::ZERO, units::Span::from_secs(lasts)],
            ..chart::CurveLevel::default()
        });
        Picture::new(Vec::new(), drawing, units::Span::ZERO, &[])
    }

    #[test]
    fn few_events_are_shown_each() {
        let events = [event_at(1.0, "blocked"), event_at(2.0, "boot"), event_at(99.0, "boot")];
        let shown = shown_events(&events, 10);
        let shown: Vec<_> = shown.iter().map(|it| (it.at_s, it.is_main)).collect();
        assert_eq!(shown, [(1.0, false), (2.0, true)]);
    }

    #[test]
    fn of_many_events_none_is_forgotten() {
        let mut events: Vec<_> = (0..5_000).map(|i| event_at(f64::from(i), "blocked")).collect();
        events[4_007].kind = "oom-kill";
        let shown = shown_events(&events, 5_000);
        assert_eq!(shown.len(), EVENTS_MAX);
        let kill = shown.iter().find(|it| it.is_main).unwrap();
        assert_eq!(kill.text, "blocked at 4007, and 9 more events about then");
        assert!((kill.at_s - 4_007.0).abs() < 1e-9);
    }

    #[test]
    fn few_gaps_are_shown_each_and_of_many_the_short_ones_by_columns() {
        let few: Vec<(f64, f64)> =
            (0..200).map(|i| (f64::from(i) * 3.0, f64::from(i) * 3.0 + 2.0)).collect();
        assert_eq!(gaps_of(few, 100.0).len(), 200);
        let mut many: Vec<(f64, f64)> =
            (0..6_000).map(|i| (f64::from(i) * 3.0, f64::from(i) * 3.0 + 2.0)).collect();
        many.push((20_000.0, 20_500.0));
        let shown = gaps_of(many, 100.0);
        assert!(shown.len() <= 182, "{}", shown.len());
        assert_eq!(shown.last(), Some(&[20_000.0, 20_500.0, 500.0]));
        let lost: f64 = shown.iter().map(|[.., lost]| lost).sum();
        assert!((lost - 12_500.0).abs() < 1e-6, "{lost}");
        assert!(shown.windows(2).all(|pair| pair[0][1] <= pair[1][0]));
    }
}
