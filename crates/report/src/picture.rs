//! The drawable part of a source: its charts with their curves, and which chart shows which signal.

use chart::{Chart, ChartKind, ChartUnit, ColumnCells, Drawing};
use diagnose::Evidence;
use timeline::Timeline;
use units::{
    Bytes, BytesPerSecond, Count, Pages, PerSecond, Quantity as _, Ratio, Span, in_one_unit,
};

use crate::model::{Finding, Report};

/// Charts that have data, with their curves, and charts that have none, with the reason. Second 0 is the first drawn
/// sample.
#[derive(Debug, Default)]
pub struct Picture {
    pub(crate) charts: Vec<Chart>,
    pub(crate) drawing: Drawing,
    pub(crate) absent: Vec<AbsentChart>,
    /// The summary of each chart.
    about: Vec<ChartSummary>,
    /// The time from the first diagnosed sample to the first drawn one.
    begin: Span,
}

/// What a chart's curves show.
#[derive(Debug, Default)]
struct ChartSummary {
    /// The smallest and the largest value of each series; `None` where nothing was measured.
    ends: Vec<Ends>,
    /// The same in words.
    says: String,
    /// Indices of the findings that the chart proves.
    evidence_of: Vec<usize>,
    /// Whether it has no news and is folded into one line.
    is_quiet: bool,
}

/// A chart that cannot be drawn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AbsentChart {
    pub(crate) title: String,
    pub(crate) why: String,
}

/// A series, as the indices of its chart and of the series.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SeriesIndex {
    pub(crate) chart: usize,
    pub(crate) series: usize,
}

/// Seconds of the picture, and the value at each.
pub(crate) type PartialCurve = (Vec<f64>, Vec<Option<f64>>);

impl Picture {
    /// Builds the picture of these charts as drawn, for a report with these findings. `begin` is the time of the first
    /// drawn sample.
    pub fn new(
        charts: Vec<Chart>,
        mut drawing: Drawing,
        begin: Span,
        findings: &[Finding],
    ) -> Self {
        let drawn: Vec<bool> = (0..charts.len()).map(|index| drawing.has(index)).collect();
        for level in &mut drawing.levels {
            let mut keep = drawn.iter();
            level.cells.retain(|_| keep.next() == Some(&true));
        }
        let (mut shown, mut absent) = (Vec::new(), Vec::new());
        for (chart, has_data) in charts.into_iter().zip(drawn) {
            if has_data {
                shown.push(chart);
                continue;
            }
            absent.push(AbsentChart {
                title: chart.title,
                why: chart.absent.unwrap_or_else(|| "nothing was measured".to_owned()),
            });
        }
        move_back(&mut drawing, begin);
        let about = shown.iter().enumerate().map(|(index, chart)| {
            let levels = drawing.levels.iter();
            ChartSummary::of(chart, levels.filter_map(|level| level.cells.get(index)), findings)
        });
        Self { about: about.collect(), charts: shown, drawing, absent, begin }
    }

    /// Returns every sample of a part as one level of the same charts; `clock` has the times of the source's samples.
    pub(crate) fn closer(&self, part: &Evidence<'_>, clock: &Timeline) -> Option<Drawing> {
        let mut drawing = Drawing::default();
        let is_there = drawing.sharpen(&self.charts, part, clock);
        move_back(&mut drawing, self.begin);
        is_there.then_some(drawing)
    }

    /// Returns about how many bytes it keeps.
    pub fn size(&self) -> usize {
        /// A value, and whether there is one.
        const CELL: usize = size_of::<Option<f64>>();
        let columns = |cells: &ColumnCells| {
            let extremes = cells.extremes.as_ref();
            cells.mean.len() + extremes.map_or(0, |(least, most)| least.len() + most.len())
        };
        let cells = self.drawing.levels.iter().flat_map(|level| level.cells.iter().flatten());
        cells.map(|cells| columns(cells) * CELL).sum()
    }

    /// Returns the time from the first diagnosed sample to the picture's start.
    pub fn begin_s(&self) -> f64 {
        self.begin.as_secs_f64()
    }

    /// Returns the ends of the first level's columns.
    pub(crate) fn times(&self) -> &[Span] {
        self.drawing.levels.first().map_or(&[], |level| &level.times)
    }

    /// Returns the picture's length.
    pub(crate) fn span_s(&self) -> f64 {
        self.times().last().map_or(0.0, |last| last.as_secs_f64())
    }

    /// Whether a column of the first level may hold more than one sample.
    pub(crate) fn is_reduced(&self) -> bool {
        self.drawing.levels.first().is_some_and(|level| level.is_reduced)
    }

    /// Returns the first level of a series.
    pub(crate) fn cells(&self, at: SeriesIndex) -> Option<&ColumnCells> {
        self.drawing.levels.first()?.cells.get(at.chart)?.get(at.series)
    }

    /// Returns the values of a series in a range of seconds of the picture, at the finest level that has them.
    pub(crate) fn finest(&self, at: SeriesIndex, (from, to): (f64, f64)) -> Option<PartialCurve> {
        let within = self.drawing.levels.iter().filter_map(|level| {
            let values = &level.cells.get(at.chart)?.get(at.series)?.mean;
            let seconds = level.times.iter().map(|time| time.as_secs_f64());
            let known = seconds.zip(values.iter().copied());
            let within = known.filter(|(second, _)| (from..=to).contains(second));
            Some(within.unzip::<f64, Option<f64>, Vec<f64>, Vec<Option<f64>>>())
        });
        within
            .max_by_key(|(_, values)| values.iter().flatten().count())
            .filter(|(_, values)| values.iter().flatten().count() > 1)
    }

    /// Returns the height of a stack that is all of one cgroup, in a range of seconds of the picture, with its chart.
    pub(crate) fn height_of(
        &self,
        cgroup: &str,
        range: (f64, f64),
    ) -> Option<(usize, PartialCurve)> {
        let is_its_own = |chart: &Chart| {
            let mut parts = chart.series.iter().filter(|one| !chart.is_limit(&one.id));
            chart.kind == ChartKind::Stack
                && chart.unit == ChartUnit::Bytes
                && parts.all(|one| one.group.as_deref() == Some(cgroup))
        };
        let chart = self.charts.iter().position(is_its_own)?;
        let drawn = &self.charts[chart];
        let parts = (0..drawn.series.len()).filter(|at| !drawn.is_limit(&drawn.series[*at].id));
        let curves = parts.map(|series| self.finest(SeriesIndex { chart, series }, range));
        let sum = |(times, sum): PartialCurve, (_, part): PartialCurve| {
            let added =
                sum.iter().zip(&part).map(|(sum, part)| Some((*sum)? + part.unwrap_or_default()));
            (times, added.collect())
        };
        Some((chart, curves.flatten().reduce(sum)?))
    }

    /// Returns the series that show a signal: lines before stacks, in which one term is hard to follow.
    pub(crate) fn showing(&self, signal: &str) -> Vec<SeriesIndex> {
        let of_chart = |(chart, it): (usize, &Chart)| {
            let series = it.series.iter().enumerate();
            let shows = series
                .filter(|(_, series)| series.signals.iter().any(|id| id.def().name == signal));
            shows.map(|(series, _)| SeriesIndex { chart, series }).collect::<Vec<_>>()
        };
        let charts = self.charts.iter().enumerate();
        let mut all: Vec<SeriesIndex> = charts.flat_map(of_chart).collect();
        all.retain(|at| self.least_and_most(*at).is_some());
        all.sort_by_key(|at| self.charts[at.chart].kind == ChartKind::Stack);
        all
    }

    /// Returns the series that shows a finding's evidence: for cgroups, and among several alike (disks, processes),
    /// that of the entity that it is about, or of an affected one. Charts of changes show no levels and are left out.
    pub(crate) fn proof(&self, finding: &Finding, signal: &str) -> Option<SeriesIndex> {
        let all = self.showing(signal);
        let is_it = |at: &&SeriesIndex| {
            let chart = &self.charts[at.chart];
            let alike = all.iter().filter(|other| other.chart == at.chart);
            let series = &chart.series[at.series];
            let name = series.group.as_ref().unwrap_or(&series.label);
            let is_alone = series.group.is_none() && alike.count() == 1;
            let is_its_own = *name == finding.scope.key;
            let mut affected = finding.affected.iter();
            let is_shown =
                is_alone || is_its_own || affected.any(|one| is_name_of(name, &one.name));
            !chart.is_of_changes && is_shown
        };
        all.iter().find(is_it).copied()
    }

    /// Returns the smallest and the largest value of a series; `None` where nothing was measured.
    pub(crate) fn least_and_most(&self, at: SeriesIndex) -> Option<(f64, f64)> {
        *self.about.get(at.chart)?.ends.get(at.series)?
    }

    /// Returns the indices of the findings that a chart proves.
    pub(crate) fn evidence_of(&self, chart: usize) -> &[usize] {
        &self.about[chart].evidence_of
    }

    /// Whether a chart has no news and is folded into one line.
    pub(crate) fn is_quiet(&self, chart: usize) -> bool {
        self.about[chart].is_quiet
    }

    /// Returns what a chart shows in words: each series with its smallest and largest value.
    pub(crate) fn says(&self, chart: usize) -> &str {
        &self.about[chart].says
    }

    /// Returns when a finding occurred, in seconds of the picture; `None` if that is outside the picture or unknown.
    pub(crate) fn stretch_of(&self, finding: &Finding) -> Option<(f64, f64)> {
        self.within((finding.from_s?, finding.to_s?))
    }

    /// Returns every time at which a finding occurred; [`stretch_of`](Self::stretch_of) has the longest only.
    pub(crate) fn stretches_of(&self, finding: &Finding) -> Vec<(f64, f64)> {
        let all = finding.stretches.iter();
        all.filter_map(|one| self.within((one.from_s, one.to_s))).collect()
    }

    /// Clips a stretch to the picture, in seconds of the picture.
    fn within(&self, (from, to): (f64, f64)) -> Option<(f64, f64)> {
        let (from, to) = (from - self.begin_s(), to - self.begin_s());
        (to >= 0.0 && from <= self.span_s()).then(|| (from.max(0.0), to.min(self.span_s())))
    }

    /// Returns the time of the report's accounting, the worst moment; if RAM's size is unknown, the start of the
    /// leading finding.
    pub(crate) fn worst_s(&self, report: &Report) -> f64 {
        let accounted = report.accounting.as_ref().map(|accounting| accounting.at_s);
        let begins = || report.findings.first()?.from_s;
        let at = accounted.or_else(begins).unwrap_or_default();
        (at - self.begin_s()).clamp(0.0, self.span_s())
    }
}

impl ChartSummary {
    /// Summarises a chart; `levels` has its cells at each level of the drawing.
    fn of<'a>(
        chart: &Chart,
        levels: impl Iterator<Item = &'a Vec<ColumnCells>>,
        findings: &[Finding],
    ) -> Self {
        // Stacks have means only, so their extremes are those of their finest levels.
        let ends = levels.fold(vec![None; chart.series.len()], |ends, cells| {
            let found = cells.iter().map(self::ends).chain(std::iter::repeat(None));
            ends.into_iter().zip(found).map(wider).collect()
        });
        let proves = |finding: &Finding| {
            let mut signals = finding.evidence.iter().filter_map(|line| line.signal.as_ref());
            signals.any(|signal| shows(chart, signal))
        };
        let all = findings.iter().enumerate();
        let proven = all.filter(|(_, finding)| proves(finding));
        let evidence_of: Vec<usize> = proven.map(|(index, _)| index).collect();
        Self {
            says: says(chart, &ends),
            is_quiet: evidence_of.is_empty() && is_calm(chart, &ends),
            evidence_of,
            ends,
        }
    }
}

/// The smallest and the largest value of a series; `None` where nothing was measured.
type Ends = Option<(f64, f64)>;

fn ends(cells: &ColumnCells) -> Ends {
    let (least, most) =
        cells.extremes.as_ref().map_or((&cells.mean, &cells.mean), |(least, most)| (least, most));
    let least = least.iter().flatten().copied().reduce(f64::min)?;
    Some((least, most.iter().flatten().copied().reduce(f64::max)?))
}

/// Combines two ranges into one that covers both.
fn wider(both: (Ends, Ends)) -> Ends {
    match both {
        (Some((least, most)), Some((other_least, other_most))) => {
            Some((least.min(other_least), most.max(other_most)))
        }
        (one, other) => one.or(other),
    }
}

/// Whether a chart is where a reader expects a signal.
fn shows(chart: &Chart, signal: &str) -> bool {
    let mut related = chart.series.iter().flat_map(|series| series.covered());
    related.any(|related| related.def().name == signal)
}

/// Whether a chart's values never exceed what an idle host shows.
fn is_calm(chart: &Chart, ends: &[Option<(f64, f64)>]) -> bool {
    chart.quiet_up_to.is_some_and(|up_to| {
        let all = chart.series.iter().zip(ends);
        let mut data = all.filter(|(series, _)| !chart.is_limit(&series.id));
        data.all(|(_, ends)| ends.is_none_or(|(_, most)| most <= up_to))
    })
}

/// Names each series of a chart with its smallest and largest value.
fn says(chart: &Chart, ends: &[Option<(f64, f64)>]) -> String {
    let (mut ranges, mut zero) = (Vec::new(), Vec::new());
    for (series, ends) in chart.series.iter().zip(ends) {
        let label = &series.label;
        match ends {
            #[allow(clippy::float_cmp)] // exactly nothing
            Some((0.0, 0.0)) => zero.push(label.as_str()),
            Some((least, most)) => {
                ranges.push(format!("{label} {}", from_to(chart.unit, *least, *most)));
            }
            None => {}
        }
    }
    if !zero.is_empty() {
        ranges.push(format!("0 throughout: {}", zero.join(", ")));
    }
    ranges.join("; ")
}

/// Whether a label names this entity: `web.service` also names `/system.slice/web.service`.
fn is_name_of(label: &str, name: &str) -> bool {
    let last = |path: &str| path.rsplit('/').next().unwrap_or_default().to_owned();
    !name.is_empty() && (label == name || last(label) == last(name))
}

/// Shifts a drawing so that its start is second 0.
fn move_back(drawing: &mut Drawing, begin: Span) {
    let times = drawing.levels.iter_mut().flat_map(|level| &mut level.times);
    let gaps = drawing.gaps.iter_mut().flat_map(|(from, to)| [from, to]);
    times.chain(gaps).for_each(|time| *time = *time - begin);
}

/// `6.2 to 403 MiB` where both have one unit, else `900 KiB to 403 MiB`; one value if it never changed.
fn from_to(unit: ChartUnit, least: f64, most: f64) -> String {
    let (least, most) = (shown(unit, least), shown(unit, most));
    if least == most {
        return most;
    }
    in_one_unit(least, "to", most)
}

/// Formats a chart's value for readers.
pub fn shown(unit: ChartUnit, value: f64) -> String {
    match unit {
        ChartUnit::Bytes if value < 0.0 => format!("-{}", Bytes::from_f64(-value)),
        ChartUnit::Bytes => Bytes::from_f64(value).to_string(),
        ChartUnit::BytesPerSecond => BytesPerSecond::from_f64(value).to_string(),
        ChartUnit::PagesPerSecond => PerSecond::<Pages>::from_f64(value).to_string(),
        ChartUnit::CountPerSecond => PerSecond::<Count>::from_f64(value).to_string(),
        ChartUnit::Share => Ratio::from_f64(value).to_string(),
        ChartUnit::Millis => Span::from_secs_f64(value / 1e3).to_string(),
    }
}

#[cfg(test)]
mod tests {
    use chart::{ChartLimit, ChartSeries, ChartSize, Colour, CurveLevel, LimitValue};
    use timeline::signals::CGROUP_CURRENT;

    use super::*;
    use crate::model::{Affected, Harm, Scope, Severity, Sureness};

    fn series(id: &str, label: &str) -> ChartSeries {
        ChartSeries {
            id: id.to_owned(),
            label: label.to_owned(),
            colour: Colour::Nth(0),
            is_steps: false,
            is_negative: false,
            signals: vec![CGROUP_CURRENT.id()],
            related: Vec::new(),
            inputs: Vec::new(),
            group: Some(label.to_owned()),
            standing: None,
        }
    }

    fn chart(id: &str, series: Vec<ChartSeries>) -> Chart {
        Chart {
            id: id.to_owned(),
            title: id.to_owned(),
            help: "",
            kind: ChartKind::Lines,
            unit: ChartUnit::Bytes,
            size: ChartSize::Small,
            is_log: false,
            top: None,
            series,
            limits: Vec::new(),
            band: None,
            is_of_changes: false,
            quiet_up_to: Some(10.0),
            absent: None,
            is_of_host: false,
            draw: Box::new(|_| Vec::new()),
        }
    }

    /// A picture of these charts, with these values of each series.
    fn picture(charts: Vec<Chart>, values: &[Vec<Vec<Option<f64>>>]) -> Picture {
        let mut drawing = Drawing::default();
        let cells = |mean: &Vec<Option<f64>>| ColumnCells { mean: mean.clone(), extremes: None };
        let of_chart = |chart: &Vec<Vec<_>>| chart.iter().map(cells).collect();
        drawing.levels.push(CurveLevel {
            times: (0..3).map(Span::from_secs).collect(),
            is_reduced: false,
            cells: values.iter().map(of_chart).collect(),
        });
        Picture::new(charts, drawing, Span::ZERO, &[])
    }

    fn about(name: &str) -> Finding {
        let affected =
            vec![Affected { kind: "cgroup", name: name.to_owned(), what: String::new() }];
        Finding {
            id: String::new(),
            severity: Severity::Info,
            scope: Scope::host(),
            harm: Harm::default(),
            title: String::new(),
            confidence: Ratio::new(0.0),
            more: String::new(),
            is_headline: false,
            is_over: false,
            confidence_word: Sureness::Possible,
            confidence_why: String::new(),
            from: None,
            to: None,
            from_s: None,
            to_s: None,
            stretches: Vec::new(),
            share: None,
            evidence: Vec::new(),
            ruled_out: Vec::new(),
            cause: String::new(),
            fix: Vec::new(),
            verify: String::new(),
            affected,
            references: Vec::new(),
            aliases: Vec::new(),
            caused_by: None,
            graph: None,
        }
    }

    #[test]
    fn of_several_alike_the_one_that_is_meant_proves_it() {
        let value = vec![Some(1.0), Some(2.0), None];
        let groups = vec![series("a", "a.service"), series("b", "b.service")];
        let changes = vec![series("a", "b.service")];
        let mut growth = chart("growth", changes);
        growth.is_of_changes = true;
        let charts = vec![growth, chart("cgroups", groups)];
        let picture = picture(charts, &[vec![value.clone()], vec![value.clone(), value]]);
        let proof = |name| picture.proof(&about(name), "cgroup.current");
        assert_eq!(proof("/system.slice/b.service"), Some(SeriesIndex { chart: 1, series: 1 }));
        assert_eq!(proof("/system.slice/c.service"), None);
        assert_eq!(picture.proof(&about("x"), "mem.free"), None);
    }

    #[test]
    fn a_stack_of_a_cgroup_is_as_high_as_its_parts() {
        let of = |label: &str| ChartSeries { group: Some("/a".to_owned()), ..series(label, label) };
        let mut stack = chart("group_memory", vec![of("anon"), of("cache"), of("limit")]);
        stack.kind = ChartKind::Stack;
        stack.limits = vec![ChartLimit {
            label: "limit".to_owned(),
            value: LimitValue::Moving("limit".to_owned()),
        }];
        let parts = [vec![Some(1.0), Some(2.0), None], vec![Some(4.0); 3], vec![Some(9.0); 3]];
        let picture = picture(vec![stack], &[parts.to_vec()]);
        let height = picture.height_of("/a", (0.0, 9.0));
        assert_eq!(height, Some((0, (vec![0.0, 1.0, 2.0], vec![Some(5.0), Some(6.0), None]))));
        assert_eq!(picture.height_of("/b", (0.0, 9.0)), None);
    }

    #[test]
    fn a_limit_far_above_is_no_news() {
        let all = || vec![series("dirty", "dirty"), series("limit", "limit")];
        let values = vec![vec![Some(1.0), Some(0.0), None], vec![Some(900.0); 3]];
        let mut quiet = chart("dirty", all());
        quiet.limits = vec![ChartLimit {
            label: "limit".to_owned(),
            value: LimitValue::Moving("limit".to_owned()),
        }];
        let picture = picture(vec![quiet, chart("loud", all())], &[values.clone(), values]);
        assert!(picture.is_quiet(0));
        assert!(!picture.is_quiet(1));
        assert_eq!(picture.says(0), "dirty 0 to 1 B; limit 900 B");
    }

    #[test]
    fn charts_without_data_say_why_and_keep_the_others_in_their_place() {
        let mut absent = chart("pressure", vec![series("a", "a")]);
        absent.absent = Some("not recorded".to_owned());
        let charts = vec![absent, chart("free", vec![series("a", "a")])];
        let picture = picture(charts, &[vec![vec![None; 3]], vec![vec![Some(7.0); 3]]]);
        assert_eq!(picture.charts.len(), 1);
        assert_eq!(picture.charts[0].id, "free");
        let at = SeriesIndex { chart: 0, series: 0 };
        assert_eq!(picture.least_and_most(at), Some((7.0, 7.0)));
        assert_eq!(picture.absent[0].why, "not recorded");
    }
}
