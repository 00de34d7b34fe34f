//! Metrics as text, for Prometheus and compatible programs, in three forms.
//!
//! The last readings without times are Prometheus' text format 0.0.4, for node_exporter's textfile collector, or
//! OpenMetrics 1.0, for whoever reads that strictly. All readings with their times are OpenMetrics, accepted by `promtool
//! tsdb create-blocks-from openmetrics`. The two formats differ in the declaration of counters and in the end, so that one
//! text cannot be both.

mod own;
mod settings;

use std::io::{self, ErrorKind, Write};

use timeline::metric::{Metric, MetricNaming, MetricType};
use timeline::{Entity, Run, SignalId, Timeline};

use crate::columns::{self, EntityColumns};
use crate::metric;
use crate::{Exported, Exporter, Picks};
use timeline::Source;
use timeline::signals::{CGROUP_CURRENT, SERVICE_RSS};

pub use own::OwnMetric;

/// Metrics of some tables.
#[allow(missing_docs)] // names say it
#[derive(Debug, Clone)]
pub struct MetricsText {
    pub tables: Vec<Entity>,
    /// The naming convention.
    pub names: MetricNaming,
    /// The form.
    pub format: MetricsFormat,
    /// Of so many cgroups and services at most, those with most memory; `None`: of all.
    pub entities_max: Option<usize>,
    /// Metrics that are no readings, written before these. They have no times.
    pub own: Vec<OwnMetric>,
}

/// Which readings are written, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetricsFormat {
    /// The last readings in Prometheus' text format 0.0.4.
    Prometheus,
    /// The last readings in OpenMetrics 1.0.
    OpenMetrics,
    /// All readings with their times in OpenMetrics 1.0.
    OpenMetricsOverTime,
}

impl MetricsText {
    /// Returns the default tables: all but slab caches and processes, as each of thousands would be a series of its
    /// own.
    pub fn default_tables() -> Vec<Entity> {
        let is_small = |table: &Entity| !matches!(table, Entity::Slab | Entity::Process);
        Entity::ALL.into_iter().filter(is_small).collect()
    }
}

impl Exporter for MetricsText {
    fn unit(&self) -> &'static str {
        "metric"
    }

    fn export(
        &self,
        source: &Source,
        picks: &Picks,
        output: &mut dyn Write,
    ) -> io::Result<Exported> {
        let timeline = &source.timeline;
        let has_times = (0..timeline.len())
            .all(|index| timeline.stamp(index).is_some_and(|s| s.wall.is_some()));
        let is_over_time = self.format == MetricsFormat::OpenMetricsOverTime;
        if is_over_time && !has_times {
            let why = "the source lacks the times of its samples, which all samples must have";
            return Err(io::Error::new(ErrorKind::Unsupported, why));
        }
        let mut exported = Exported::default();
        let mut without_pages = Vec::new();
        let mut backwards = 0;
        if !is_over_time {
            for metric in &self.own {
                metric.write(self.format, output)?;
                exported.written += 1;
            }
        }
        for entity in &self.tables {
            let mut table = columns::table(timeline, *entity, picks);
            self.keep_largest(*entity, &mut table);
            for signal in entity.signals().filter_map(SignalId::from_index) {
                let its = of_signal(&table, signal);
                if its.is_empty() {
                    continue;
                }
                let Some(metric) = Metric::new(signal, self.names, &source.facts) else {
                    without_pages.push(signal.def().name);
                    continue;
                };
                let family = Family { metric, entity: *entity, timeline, format: self.format };
                if is_over_time {
                    exported.written += 1;
                    backwards += family.all(&its, output)?;
                } else {
                    exported.written += usize::from(family.last(&its, output)?);
                }
            }
        }
        if picks.are_all() {
            exported.written += settings::write(source, is_over_time, output)?;
        }
        if !without_pages.is_empty() {
            exported.left_out.push(format!(
                "{} signals are counts of pages, and the source lacks the page size: {}",
                without_pages.len(),
                without_pages.join(", ")
            ));
        }
        if backwards > 0 {
            exported.left_out.push(format!(
                "{backwards} readings from after the wall clock was moved back, until it was there \
                 again"
            ));
        }
        if self.format != MetricsFormat::Prometheus {
            output.write_all(b"# EOF\n")?;
        }
        Ok(exported)
    }
}

impl MetricsText {
    /// Leaves out the smaller ones of many.
    fn keep_largest(&self, entity: Entity, table: &mut Vec<EntityColumns<'_>>) {
        let size = match entity {
            Entity::Cgroup => CGROUP_CURRENT.id(),
            Entity::Service => SERVICE_RSS.id(),
            _ => return,
        };
        let Some(most) = self.entities_max.filter(|most| *most < table.len()) else { return };
        let last = |series: &EntityColumns<'_>| {
            let (_, runs) = series.columns.iter().find(|(signal, _)| *signal == size)?;
            let run = runs.last()?;
            // One that has ended has no memory, however much it had.
            Some((run.last(), run.value))
        };
        let newest = table.iter().filter_map(last).map(|(at, _)| at).max();
        let now = |series: &EntityColumns<'_>| {
            last(series).filter(|(at, _)| Some(*at) == newest).map_or(0, |(_, value)| value)
        };
        table.sort_by_key(|series| std::cmp::Reverse(now(series)));
        table.truncate(most);
    }
}

/// Returns the series of a signal: labels and readings, those with equal labels in order of time.
fn of_signal<'a>(table: &[EntityColumns<'a>], signal: SignalId) -> Vec<(String, &'a [Run])> {
    let its = |series: &EntityColumns<'a>| {
        let (_, runs) = series.columns.iter().find(|(found, _)| *found == signal)?;
        Some((metric::labels(series.entity), *runs))
    };
    let mut all: Vec<_> = table.iter().filter_map(its).collect();
    // A PID may be used again, with the same name.
    all.sort_by(|a, b| {
        let first = |runs: &[Run]| runs.first().map(|run| run.first());
        (&a.0, first(a.1)).cmp(&(&b.0, first(b.1)))
    });
    all
}

/// Returns the time of a sample in Prometheus' milliseconds since 1970.
fn millis(timeline: &Timeline, index: usize) -> Option<i64> {
    let wall = timeline.stamp(index)?.wall?;
    Some(wall.unix_nanos().div_euclid(1_000_000))
}

fn seconds(millis: i64) -> String {
    let (seconds, rest) = (millis.div_euclid(1000), millis.rem_euclid(1000));
    format!("{seconds}.{rest:03}")
}

/// All metrics of one name.
struct Family<'a> {
    metric: Metric,
    entity: Entity,
    timeline: &'a Timeline,
    format: MetricsFormat,
}

impl Family<'_> {
    /// Writes the readings of the last sample in which the table was read. Returns whether there were any.
    fn last(&self, its: &[(String, &[Run])], output: &mut dyn Write) -> io::Result<bool> {
        let indexes = (0..self.timeline.len()).rev();
        let mut read = indexes.filter(|index| self.timeline.was_read(self.entity, *index));
        let Some(last) = read.next() else {
            return Ok(false);
        };
        let reading = |runs: &[Run]| runs.iter().rev().find(|run| run.first() <= last).copied();
        let now: Vec<(&String, u64)> = its
            .iter()
            .filter_map(|(labels, runs)| {
                let run = reading(runs).filter(|run| run.last() >= last)?;
                Some((labels, run.value))
            })
            .collect();
        if now.is_empty() {
            return Ok(false);
        }
        self.head(output)?;
        for (labels, raw) in now {
            writeln!(output, "{}{labels} {}", self.metric.name, self.metric.value(raw))?;
        }
        Ok(true)
    }

    /// Writes all readings with their times. Returns how many were left out because their time was not after the one
    /// before: the wall clock was set back, and a series must go forward.
    fn all(&self, its: &[(String, &[Run])], output: &mut dyn Write) -> io::Result<usize> {
        let name = &self.metric.name;
        self.head(output)?;
        let mut backwards = 0;
        let mut before: Option<(&str, i64)> = None;
        for (labels, runs) in its {
            for run in *runs {
                let value = self.metric.value(run.value);
                for millis in (run.first()..=run.last()).filter_map(|index| self.time(index)) {
                    if before.is_some_and(|(its, last)| its == labels && millis <= last) {
                        backwards += 1;
                        continue;
                    }
                    before = Some((labels, millis));
                    writeln!(output, "{name}{labels} {value} {}", seconds(millis))?;
                }
            }
        }
        Ok(backwards)
    }

    /// Declares the family. OpenMetrics knows a counter by its name without `_total`.
    fn head(&self, output: &mut dyn Write) -> io::Result<()> {
        let name = self.metric.name.as_str();
        let is_open = self.format != MetricsFormat::Prometheus;
        let (family, kind) = match self.metric.kind {
            MetricType::Counter if is_open => {
                (name.strip_suffix("_total").unwrap_or(name), "counter")
            }
            MetricType::Counter => (name, "counter"),
            MetricType::Gauge => (name, "gauge"),
            MetricType::Untyped if is_open => (name, "unknown"),
            MetricType::Untyped => (name, "untyped"),
        };
        let help = metric::escaped(self.metric.help());
        writeln!(output, "# HELP {family} {help}\n# TYPE {family} {kind}")
    }

    /// Returns the time of a sample in which the table was read.
    fn time(&self, index: usize) -> Option<i64> {
        let was_read = self.timeline.was_read(self.entity, index);
        was_read.then(|| millis(self.timeline, index)).flatten()
    }
}

#[cfg(test)]
mod tests;
