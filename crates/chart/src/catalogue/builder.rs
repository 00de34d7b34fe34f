//! Builds a chart: each line is computed once on the whole source, and lines without data are left out.

use diagnose::{Evidence, Missing, Need};
use timeline::{SignalId, Track};
use units::Quantity;

use crate::{
    Chart, ChartKind, ChartLimit, ChartSeries, ChartSize, ChartUnit, Colour, Curve, Draw,
    LimitValue,
};

/// Signals for a series: `signals![MEM_FREE, MEM_AVAILABLE]`.
macro_rules! signals {
    ($($signal:expr),* $(,)?) => { vec![$($signal.id()),*] };
}
pub(super) use signals;

/// Computes one curve, or returns what the source lacks for it.
type LineCurve = Box<dyn Fn(&Evidence<'_>) -> Result<Curve, Missing> + Send + Sync>;

/// A chart of lines; the methods below complete it.
pub(super) struct ChartBuilder {
    chart: Chart,
    lines: Vec<LineCurve>,
    has_data: bool,
    missing: Option<Missing>,
}

impl ChartBuilder {
    /// Creates a chart without series, of the host's own signals unless set otherwise.
    pub(super) fn new(
        id: impl Into<String>,
        title: impl Into<String>,
        help: &'static str,
        kind: ChartKind,
        unit: ChartUnit,
    ) -> Self {
        Self {
            chart: Chart {
                id: id.into(),
                title: title.into(),
                help,
                kind,
                unit,
                size: ChartSize::Small,
                is_log: false,
                top: None,
                series: Vec::new(),
                limits: Vec::new(),
                band: None,
                is_of_changes: false,
                quiet_up_to: None,
                absent: None,
                is_of_host: true,
                draw: nothing(),
            },
            lines: Vec::new(),
            has_data: false,
            missing: None,
        }
    }

    /// Makes it take the whole width, with a table of values.
    pub(super) fn wide(mut self) -> Self {
        self.chart.size = ChartSize::Wide;
        self
    }

    /// Makes it the chart of which a small copy shows the whole range.
    pub(super) fn overview(mut self) -> Self {
        self.chart.size = ChartSize::Overview;
        self
    }

    /// Makes it show changes since the first sample.
    pub(super) fn of_changes(mut self) -> Self {
        self.chart.is_of_changes = true;
        self
    }

    /// Makes its axis logarithmic.
    pub(super) fn log(mut self) -> Self {
        self.chart.is_log = true;
        self
    }

    /// Sets a fixed upper end.
    pub(super) fn top(mut self, top: Option<f64>) -> Self {
        self.chart.top = top;
        self
    }

    /// Sets the value up to which the chart is quiet.
    pub(super) fn quiet_up_to<Q: Quantity>(mut self, level: Q) -> Self {
        self.chart.quiet_up_to = Some(level.as_f64());
        self
    }

    /// Declares that it needs rows of entities: the host's own signals are not enough.
    pub(super) fn of_entities(mut self) -> Self {
        self.chart.is_of_host = false;
        self
    }

    /// Adds a line, if the source has data for it.
    pub(super) fn line(
        mut self,
        cx: &Evidence<'_>,
        series: ChartSeries,
        curve: impl Fn(&Evidence<'_>) -> Result<Curve, Missing> + Send + Sync + 'static,
    ) -> Self {
        match curve(cx) {
            Ok(_) => {
                self.has_data = true;
                self.chart.series.push(series);
                self.lines.push(Box::new(curve));
            }
            Err(missing) => self.missing = self.missing.or(Some(named(cx, missing))),
        }
        self
    }

    /// Adds a moving limit, if the source has data for it. A chart of limits alone is not drawn.
    pub(super) fn moving_limit(
        mut self,
        cx: &Evidence<'_>,
        series: ChartSeries,
        curve: impl Fn(&Evidence<'_>) -> Result<Curve, Missing> + Send + Sync + 'static,
    ) -> Self {
        if curve(cx).is_ok() {
            self.chart.limits.push(ChartLimit {
                label: series.label.clone(),
                value: LimitValue::Moving(series.id.clone()),
            });
            self.chart.series.push(series);
            self.lines.push(Box::new(curve));
        }
        self
    }

    /// Adds a band between two moving limits, if both have data.
    pub(super) fn band(mut self, low: &str, high: &str) -> Self {
        let both = [low, high].map(str::to_owned);
        self.chart.band = Some(both).filter(|both| both.iter().all(|id| self.chart.is_limit(id)));
        self
    }

    /// Adds a limit at one value.
    pub(super) fn limit(mut self, label: &str, value: f64) -> Self {
        self.chart
            .limits
            .push(ChartLimit { label: label.to_owned(), value: LimitValue::Fixed(value) });
        self
    }

    /// Returns the chart; without any line it says what the first one lacks.
    pub(super) fn done(self) -> Chart {
        if !self.has_data {
            let why = self.missing.as_ref().map_or_else(String::new, why);
            return self.absent(why);
        }
        let lines = self.lines;
        let draw = move |part: &Evidence<'_>| {
            let curves = lines.iter().map(|line| line(part).unwrap_or_default());
            curves.collect()
        };
        Chart { draw: Box::new(draw), ..self.chart }
    }

    /// Returns the chart, with series that one function computes together.
    pub(super) fn together(self, series: Vec<ChartSeries>, draw: Draw) -> Chart {
        Chart { series, draw, ..self.chart }
    }

    /// Returns a chart that cannot be drawn, and why.
    pub(super) fn absent(self, why: String) -> Chart {
        Chart {
            series: Vec::new(),
            limits: Vec::new(),
            band: None,
            absent: Some(why),
            draw: nothing(),
            ..self.chart
        }
    }

    /// Returns a chart that cannot be drawn, with what is missing.
    pub(super) fn lacks(self, cx: &Evidence<'_>, missing: Missing) -> Chart {
        self.absent(why(&named(cx, missing)))
    }
}

fn nothing() -> Draw {
    Box::new(|_| Vec::new())
}

/// Names the file instead of its field if nothing of the file is known.
fn named(cx: &Evidence<'_>, mut missing: Missing) -> Missing {
    if let Need::Field { file, .. } = missing.need {
        let mut known = cx.timeline.host_runs().map(|(signal, _)| signal.def().file);
        if known.all(|known| known != file) {
            missing.need = Need::File(file);
        }
    }
    missing
}

/// Returns why something cannot be drawn, with the file and what would help.
fn why(missing: &Missing) -> String {
    match &missing.need {
        need @ (Need::TwoSamples
        | Need::MoreSamples { .. }
        | Need::LongerWatch { .. }
        | Need::SameTime
        | Need::FinerFigures
        | Need::PageSize) => {
            format!("cannot be drawn: needs {need}")
        }
        need => format!("not recorded: needs {need}"),
    }
}

/// Creates a series of levels: straight lines, or areas.
pub(super) fn level(
    id: impl Into<String>,
    label: impl Into<String>,
    colour: Colour,
    signals: Vec<SignalId>,
) -> ChartSeries {
    ChartSeries {
        id: id.into(),
        label: label.into(),
        colour,
        is_steps: false,
        is_negative: false,
        signals,
        related: Vec::new(),
        inputs: Vec::new(),
        group: None,
        standing: None,
    }
}

/// Creates a series of a counter's rates: steps that end at their sample.
pub(super) fn rate(
    id: impl Into<String>,
    label: impl Into<String>,
    colour: Colour,
    signals: Vec<SignalId>,
) -> ChartSeries {
    ChartSeries { is_steps: true, ..level(id, label, colour, signals) }
}

impl ChartSeries {
    /// Adds signals that this series also covers, though its values are different.
    pub(super) fn related(self, related: Vec<SignalId>) -> Self {
        Self { related, ..self }
    }

    /// Adds signals that the values are computed from.
    pub(super) fn inputs(self, inputs: Vec<SignalId>) -> Self {
        Self { inputs, ..self }
    }

    /// Makes it drawn downwards in a mirrored chart.
    pub(super) fn mirrored(self) -> Self {
        Self { is_negative: true, ..self }
    }
}

/// Returns the values of a track.
pub(super) fn curve<Q: Quantity>(track: &Track<Q>) -> Curve {
    track.values().to_vec()
}

/// Returns the values of a track, each multiplied by `factor`.
pub(super) fn scaled<Q: Quantity>(track: &Track<Q>, factor: f64) -> Curve {
    let values = track.values().iter();
    values.map(|value| value.map(|v| v * factor)).collect()
}
